"""Instances of a rule: types for its variables and attributes for its left side, built forwards until the left side types.

The same instances serve the type checker (symbolic dims, every small rank) and the tests of `prove/` (numbers, at random).
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from coset.ir import dims
from coset.ir.dims import Dim, symbol
from coset.ir.errors import CosetError
from coset.ir.op import Op
from coset.ir.term import AttributeItems, exact_key
from coset.ir.types import DTYPES, DType, TensorType, Type
from coset.rules.algebra import Expression, Ref, Scope, Unbound, Wild, evaluate, parts
from coset.rules.candidates import attribute_values, enumerable, mixed, representatives, values_of
from coset.rules.pattern import Application, Variable, applications
from coset.rules.roles import bounds, slice_only, spread_only
from coset.rules.rule import Rule
from coset.rules.scalar import Undefined
from coset.rules.unify import Binding, bound, understood, unifiers

NUMBERS = (2, 3, 1, 4, 5, 8)
MULTIPLES = (6, 12, 16, 64)  # what groups and blocks divide
UNUSUAL = (-2.0, 0.0, math.inf, -math.inf, math.nan)  # numbers of constants that rules forget
EXTREME = (1e-40, 1e38)  # what products and quotients of take f32 out of its range
EXPANSION = 20  # what the type of a defined op costs, in those of other ops
QUESTIONS = 1500 * EXPANSION  # that type rules answer in one draw
MOST = 20_000  # choices of each kind where everything is looked at
SAMPLES = 40  # choices of attributes that are tried for operands drawn at random


@dataclass(frozen=True)
class Instance:
    """Arguments of `Rule.decide`, and the values of the names behind them."""

    attributes: tuple[AttributeItems, ...]
    left_types: tuple[Type, ...]
    variable_types: tuple[Type, ...]
    values: dict[str, Any]


@dataclass
class Search:
    """How instances are drawn: in order with symbolic dims, or at random with numbers. `failures` are the type rules' refusals."""

    random: random.Random | None = None
    dtypes: int = 3
    most_rank: int = 3
    attempts: int = 300
    pool: Sequence[int] = NUMBERS
    failures: list[tuple[int, str]] = field(default_factory=list)
    budget: int = QUESTIONS
    spent: int = 0
    elements: tuple[str, ...] = ()  # the dtypes to take of each class, instead of the first `dtypes` of it
    exhaustive: bool = False  # every value of what can be enumerated, for proofs; `gaps` says what could not
    gaps: set[str] = field(default_factory=set)
    symbolic: bool = False  # where slices begin and end, and their strides, are symbols
    numbers: Mapping[str, float] = field(default_factory=dict)  # names that stand for any number, and the number that marks them
    turn: int = 0  # of many draws at random: each begins with another choice of element types
    rare: bool = False  # whether a number was drawn that constants seldom hold
    uneven: bool = False  # whether lists of numbers are mixed from others, and numbers are those of conditions
    over: Callable[[], bool] = lambda: False  # whether the time is up

    def arrange(self, options: Sequence[Any]) -> list[Any]:
        """The order in which options are tried."""
        chosen = list(options)
        if self.random is not None:
            self.random.shuffle(chosen)
        return chosen

    def rotated(self, options: Sequence[Any]) -> list[Any]:
        """The options in one order that begins elsewhere in every turn, far from the last beginning: each comes first once."""
        chosen = list(options)
        if self.random is not None and chosen:
            random.Random(len(chosen)).shuffle(chosen)
            stride = next(step for step in range(round(0.618 * len(chosen)), 2 * len(chosen) + 1) if math.gcd(step, len(chosen)) == 1)
            start = self.turn * stride % len(chosen)
            chosen = chosen[start:] + chosen[:start]
        return chosen

    def ordered(self, hints: Sequence[Any], options: Sequence[Any]) -> list[Any]:
        """Values in the order in which they are tried: the first hint, which is a default, and then all others."""
        found = list({exact_key(value): value for value in (*hints, *options)}.values())
        return [*found[:1], *self.arrange(found[1:])] if hints else self.arrange(found)

    def first(self, options: Iterable[Any], most: int) -> Iterator[Any]:
        """The first `most` options, or all of them where everything is looked at."""
        for number, option in enumerate(options):
            if number >= (MOST if self.exhaustive else most):
                if self.exhaustive:
                    self.gaps.add("more instances than are looked at")
                return
            yield option

    def guess(self, what: str) -> None:
        """Note that some values of `what` are left out."""
        if self.exhaustive:
            self.gaps.add(what)

    def spend(self, op: Op) -> bool:
        """Count one question to the type rule of `op`, which expands one that is defined; False when the budget of a draw is used up, or
        the time."""
        self.spent += 1 if op.meaning is not None else EXPANSION
        if self.over():
            self.spent = self.budget + 1
        return self.spent <= self.budget

    def dim(self, name: str) -> Dim:
        """A value for the dim `name`."""
        return symbol(name) if self.random is None else self.random.choice(self.pool)

    def refresh(self) -> None:
        """Draw the numbers that dims are made of: few different ones, so that dims which must agree often do."""
        if self.random is not None:
            self.pool = self.random.sample(NUMBERS, self.random.choice((1, 2, 3, 6)))


def instances(rule: Rule, search: Search) -> Iterator[Instance]:
    """Instances whose left side types; conditions are for `decide` to judge. A rule that recognises an op is also tried on what
    the op expands to."""
    sources = [_drawn(rule, search), *(_expansions(rule, mirror, search) for mirror in rule.mirrors)]
    while sources:
        for source in list(sources):
            found = next(source, None)
            if found is None:
                sources.remove(source)
            else:
                yield found


def _expansions(rule: Rule, mirror: Rule, search: Search) -> Iterator[Instance]:
    """The right sides of `mirror` as instances of `rule`, whose left side has their form."""
    for instance in _drawn(mirror, search):
        try:
            decision = mirror.decide(instance.attributes, instance.left_types, instance.variable_types)
        except CosetError:
            continue
        if decision is not None:
            types = dict(zip(mirror.variables, instance.variable_types, strict=True))
            yield Instance(decision.attributes, decision.types, tuple(types[name] for name in rule.variables), instance.values)


def _drawn(rule: Rule, search: Search) -> Iterator[Instance]:
    kinds = rule.compiled.kinds
    declared = {p.name for t in rule.compiled.types for e in (t.dtype, t.dims) for p in parts(e) if isinstance(p, Ref)}
    dtypes = [name for name, kind in kinds.items() if kind.word == "dtype"]
    packs = [name for name, kind in kinds.items() if kind.word == "pack" and name in declared]
    lone = [name for name, kind in kinds.items() if kind.word == "pack" and name not in declared]
    single = [name for name, kind in kinds.items() if kind.word == "dim"]
    spreads = {name: spread_only(rule, name) for name in lone}
    ranks = search.arrange(list(itertools.product(range(search.most_rank + 1), repeat=len(packs))))
    elements = search.rotated(list(itertools.product(*(_elements(kinds[name].classes, search) for name in dtypes))))
    search.spent = 0
    chosen = itertools.product(ranks, elements) if search.random is None else itertools.cycle(itertools.product(ranks, elements))
    for chosen_ranks, chosen_dtypes in search.first(chosen, search.attempts):
        if search.spent > search.budget:
            return
        search.refresh()
        values: dict[str, Any] = dict(zip(dtypes, chosen_dtypes, strict=True))
        values |= {name: tuple(search.dim(f"{name}_{i}") for i in range(rank)) for name, rank in zip(packs, chosen_ranks, strict=True)}
        values |= {name: search.dim(name) for name in single}
        if any(not spread and not (search.symbolic and slice_only(rule, name)) for name, spread in spreads.items()):
            search.guess("all shapes that are only given")
        for given in _with_ones(values, packs) if search.exhaustive and lone else (values,):
            options = (search.arrange(_lone(name, given, packs, search)) for name in lone)
            starts = [{**given, **dict(zip(lone, lone_values, strict=True))} for lone_values in itertools.product(*options)]
            if search.exhaustive and lone:
                starts.append(given)  # and where they come to stand, from what stands there already
            for start in starts:
                yield from search.first(_completed(rule, start, search), 24)


def _elements(classes: frozenset[DType], search: Search) -> list[DType]:
    if not search.elements:
        return representatives(classes, search.dtypes)
    return [DTYPES[name] for name in search.elements if DTYPES[name] in classes] or representatives(classes, search.dtypes)


def _unusual(rule: Rule, search: Search) -> tuple[float, ...]:
    """Numbers that a constant may hold too: at random now and then, for they keep many rules from firing; for proofs those that are real
    numbers where floats are."""
    if search.random is not None:
        rare = (*UNUSUAL, *EXTREME)
        search.rare = search.random.random() < 0.4
        return (rare[search.turn % len(rare)],) if search.rare else ()
    return () if not search.exhaustive else UNUSUAL if rule.numerics.word == "exact" else UNUSUAL[:2]


def _with_ones(values: dict[str, Any], packs: Sequence[str]) -> Iterator[dict[str, Any]]:
    """`values`, and with each choice of dims of packs that are 1: a broadcast treats them apart."""
    places = [(name, axis) for name in packs for axis in range(len(values[name]))]
    for chosen in itertools.product((False, True), repeat=len(places)):
        ones = {place for place, one in zip(places, chosen, strict=True) if one}
        yield values | {name: tuple(1 if (name, axis) in ones else dim for axis, dim in enumerate(values[name])) for name in packs}


def _lone(name: str, values: dict[str, Any], packs: Sequence[str], search: Search) -> list[Any]:
    """Values of a pack that no variable's type mentions, such as the target of a reshape."""
    options: list[Any] = [tuple(search.dim(f"{name}_{i}") for i in range(rank)) for rank in range(3)]
    for pack in packs:
        own = values[pack]
        options += [own, (dims.product(own),), (1, *own)]
        if search.exhaustive:
            options += _wider(tuple(search.dim(f"{name}_{i}") if dim == 1 else dim for i, dim in enumerate(own)), name, search)
            options += _wider(own, name, search)
    return list(dict.fromkeys(options))


def _wider(own: tuple[Dim, ...], name: str, search: Search) -> list[tuple[Dim, ...]]:
    """`own` with one or two dims more, at every place."""
    shapes = [own]
    for i in range(2 if len(own) < 2 else 1):
        fresh = search.dim(f"{name}_new_{i}")
        shapes += [(*shape[:place], fresh, *shape[place:]) for shape in shapes for place in range(len(shape) + 1)]
    return shapes


def _completed(rule: Rule, values: dict[str, Any], search: Search) -> Iterator[Instance]:
    scope = Scope(values)
    try:
        types = tuple(_variable_type(pattern, scope, search) for pattern in rule.compiled.types)
    except (Undefined, Unbound):
        return
    nodes = list(applications(rule.left))
    start = Scope(values, dict(zip(rule.variables, types, strict=True)), [None] * len(nodes))
    partial: list[tuple[int, Scope, dict[int, AttributeItems]]] = [(0, start, {})]
    steps = 0
    while partial:
        steps += 1
        if steps > (MOST if search.exhaustive else search.attempts * 4):
            search.guess("all attributes")
            return
        position, scope, done = partial.pop()
        if position == len(nodes):
            left_types = tuple(scope.left)
            final = tuple(scope.variables[name] for name in rule.variables)
            yield Instance(tuple(done[i] for i in range(len(nodes))), left_types, final, scope.values)  # type: ignore[arg-type]
            continue
        node = nodes[rule.compiled.left_order[position]]
        partial += [
            (position + 1, later, {**(bound(done, binding) if binding else done), node.index: items})
            for later, items, binding in _applied(rule, node, scope, search)
        ][::-1]


def _variable_type(pattern: Any, scope: Scope, search: Search) -> TensorType:
    shape: list[Dim] = []
    for item in pattern.dims.items:
        if isinstance(item, Wild):
            shape.append(search.dim("any"))
        elif getattr(item, "value", item) is None:  # `..`
            shape += [search.dim(f"any_{i}") for i in range(2 if search.random is None else search.random.randrange(3))]
        else:
            value = evaluate(getattr(item, "value", item) if type(item).__name__ == "Splice" else item, scope)
            shape += list(value) if isinstance(value, tuple) else [value]
    return TensorType(evaluate(pattern.dtype, scope), tuple(shape))


def _applied(rule: Rule, node: Application, scope: Scope, search: Search) -> list[tuple[Scope, AttributeItems, Binding]]:
    """The ways to give `node` attributes that its type rule accepts; in proofs also those that it accepts once dims are bound."""
    operands = [scope.variables[o.name] if isinstance(o, Variable) else scope.left[o.index] for o in node.operands]
    known = [operand for operand in operands if operand is not None]
    written = rule.compiled.left[node.index]
    names = {name for name, _ in written.items}
    plain = [(name, value) for name, value in written.items if not isinstance(value, Wild)]
    wild = names - {name for name, _ in plain}
    rest = [a for a in node.op.attributes if a.name not in names] if written.rest is not None else []
    free = [*(a for a in node.op.attributes if a.name in wild), *rest]
    symbols = search.symbolic and node.op.name == "stablehlo.slice"
    unknown = [] if symbols else [a.name for a in free if not enumerable(a.kind, a.name)]
    found: list[tuple[Scope, AttributeItems, Binding]] = []
    for values in _open_values(rule, written.items, node, scope, known, search):
        attempt = Scope(values, scope.variables, list(scope.left))
        bound_rest = dict(values.get(written.rest, ())) if written.rest is not None else {}
        options = [[bound_rest[a.name]] if a.name in bound_rest else _left_open(a, node, known, search) for a in free]
        for name in unknown:
            if name not in bound_rest:
                search.guess(f"`{name}` of {node.op.name}")
        try:
            given = {name: evaluate(value, attempt) for name, value in plain}
        except (Undefined, Unbound):
            continue
        except CosetError as error:
            search.failures.append((node.index, error.message))
            continue
        hopeless = False
        for choice in search.first(itertools.product(*options), 120):
            if not search.spend(node.op):
                search.guess("all attributes")
                return found
            try:
                complete = node.op.complete(given | {a.name: value for a, value in zip(free, choice, strict=True)})
            except CosetError as error:
                search.failures.append((node.index, error.message))
                continue
            for binding in _unified(node.op, known, complete, search) if search.exhaustive else [dict[str, Dim]()]:
                fixed = bound(complete, binding)
                try:
                    type = node.op.infer([bound(operand, binding) for operand in known] if binding else known, fixed)
                except CosetError as error:
                    failure = (node.index, error.message)
                    hopeless = search.failures[-12:].count(failure) == 12 and not search.exhaustive
                    search.failures.append(failure)
                    continue
                later = bound(dict(values), binding)
                if written.rest is not None:
                    later[written.rest] = tuple(sorted((a.name, fixed[a.name]) for a in rest))
                types = [bound(each, binding) for each in scope.left]
                types[node.index] = type
                variables = bound(dict(scope.variables), binding)
                found.append((Scope(later, variables, types), tuple(sorted(fixed.items())), binding))
            if hopeless:
                break
            if len(found) > 40 and not search.exhaustive:
                return found
    return found


def _unified(op: Op, operands: Sequence[Type], attributes: dict[str, Any], search: Search) -> list[Binding]:
    """What must be bound so that `op` takes the operands; the type rule refuses what still does not fit."""
    if not understood(op) and (len(operands) > 1 or _refuses_symbols(op, operands, attributes)):
        search.guess(f"sizes of {op.name}")
    found = unifiers(op, operands, attributes)
    if found is None and understood(op) and _refuses_symbols(op, operands, attributes):
        search.guess(f"sizes of {op.name}")
    return [{}] if found is None else found


def _refuses_symbols(op: Op, operands: Sequence[Type], attributes: dict[str, Any]) -> bool:
    """Whether the type rule refuses the operands as they are and takes them with some numbers for their symbols."""
    if _accepted(op, operands, attributes):
        return False
    names = sorted({name for value in (*operands, *attributes.values()) for name in symbols_of(value)})
    counted: list[Binding] = [
        dict(zip(names, [*(NUMBERS[turn:] + NUMBERS[:turn])] * len(names), strict=False)) for turn in range(len(NUMBERS))
    ]
    alike: list[Binding] = [dict[str, Dim](dict.fromkeys(names, number)) for number in (*NUMBERS, *MULTIPLES)]
    trials = [*alike, *counted] if names else []
    return any(_accepted(op, [bound(operand, trial) for operand in operands], bound(dict(attributes), trial)) for trial in trials)


def _accepted(op: Op, operands: Sequence[Type], attributes: dict[str, Any]) -> bool:
    try:
        op.infer(operands, attributes)
    except CosetError:
        return False
    return True


def symbols_of(value: Any) -> frozenset[str]:
    """The dim symbols in a type, a dim or a list of them."""
    if isinstance(value, TensorType):
        return frozenset().union(*map(dims.symbols, value.shape or ()))
    if isinstance(value, tuple):
        return frozenset().union(*map(symbols_of, value))
    return dims.symbols(value) if isinstance(value, dims.Poly) else frozenset()


def _left_open(attribute: Any, node: Application, operands: Sequence[Type], search: Search) -> list[Any]:
    """Values of an attribute that the rule does not write."""
    places = _places_of_slice(f"{attribute.name}{node.index}", None, node, attribute.name, operands, search)
    if places is not None:
        return [places]
    options = _or_default(attribute, operands, exhaustive=search.exhaustive)
    if search.random is not None and search.uneven:
        options = [*options, *mixed(attribute.kind, attribute.name, options, search.random)]
    return search.arrange(options)


def _or_default(attribute: Any, operands: Sequence[Type], *, exhaustive: bool) -> list[Any]:
    found = attribute_values(attribute, operands, exhaustive=exhaustive)
    return found if attribute.required else list(dict.fromkeys([attribute.default, *found]))


def _rank(given: Any) -> int | None:
    """The number of axes that `permutation(S)` or `axes(3)` speaks of; None of a symbol."""
    return len(given) if isinstance(given, tuple) else given if isinstance(given, int) else None


def _open_values(
    rule: Rule, items: Sequence[tuple[str, Expression]], node: Application, scope: Scope, operands: Sequence[Type], search: Search
) -> Iterator[dict[str, Any]]:
    """`scope.values` with each choice for the names that these attributes bind."""
    kinds = {attribute.name: attribute.kind for attribute in node.op.attributes}
    names: dict[str, list[Any]] = {}
    for name, value in items:
        for part in parts(value):
            if not isinstance(part, Ref) or part.name in scope.values or part.name in names:
                continue
            kind = rule.compiled.kinds[part.name]
            if part.name in search.numbers and kind.word == "float":  # in a mirror the name may be that of something else
                names[part.name] = [search.numbers[part.name]]
                continue
            word = kind.word if kind.word not in ("any", "dims") else kinds.get(name, kind.word)
            rank = _rank(evaluate(kind.arguments[0], scope)) if kind.arguments else None
            hints = [value for value in rule.hints.get(part.name, ()) if isinstance(value, str) == (word == "string")]
            options = values_of(word, name, operands, rank, exhaustive=search.exhaustive)
            unusual = _unusual(rule, search) if word == "float" and name == "value" else ()
            if search.random is None:
                options = [*options, *unusual]
            elif search.uneven:
                options = [*options, *bounds(rule, part.name, word), *mixed(word, name, options, search.random)]
            places = _places_of_slice(part.name, value, node, name, operands, search)
            if places is not None:
                names[part.name] = [places]
                continue
            if word in ("pack", "dims"):
                options = [*options, *(type.shape for type in (*scope.left, *scope.variables.values()) if isinstance(type, TensorType))]
            ordered = search.ordered(hints, options)
            names[part.name] = ordered if search.random is None else [*unusual, *ordered]
            if not enumerable(word, name) and word != "pack":  # what a pack may be is said where it is drawn
                search.guess(f"`{part.name}`")
    for choice in _combinations(list(names.values()), search):
        yield {**scope.values, **dict(zip(names, choice, strict=True))}


def _places_of_slice(
    label: str, written: Expression | None, node: Application, attribute: str, operands: Sequence[Type], search: Search
) -> Any:
    """Symbols for where a slice begins or ends, or for its strides: a list of them, or one for an item of a list; None for other ops.

    The colon in their names says that they may be 0, unlike the sizes of dims.
    """
    if not search.symbolic or node.op.name != "stablehlo.slice" or attribute not in ("start", "limit", "strides"):
        return None
    if isinstance(written, Ref) or written is None:
        rank = len(operands[0].shape or ()) if isinstance(operands[0], TensorType) else 0
        return tuple(symbol(f"at:{label}:{axis}") for axis in range(rank))
    return symbol(f"at:{label}")


def _combinations(options: Sequence[Sequence[Any]], search: Search) -> Iterator[tuple[Any, ...]]:
    """Choices of one value from each: all in order, or at random a few, half of them the first value, which is an attribute's default."""
    if search.random is None or math.prod(map(len, options)) <= SAMPLES:
        yield from search.first(itertools.product(*options), search.attempts)
    elif all(options):
        for _ in range(SAMPLES):
            yield tuple(each[0] if search.random.random() < 0.5 else search.random.choice(each) for each in options)
