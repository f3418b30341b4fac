"""Instances of a rule: types for its variables and attributes for its left side, built forwards until the left side types.

The same instances serve the type checker (symbolic dims, every small rank) and the tests of `prove/` (numbers, at random).
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

import ml_dtypes

from coset.ir import dims
from coset.ir.dims import Dim, symbol
from coset.ir.errors import CosetError
from coset.ir.op import Attribute, Op
from coset.ir.term import AttributeItems, exact_key
from coset.ir.types import DTYPES, DType, TensorType, Type
from coset.rules.algebra import Expression, Ref, Scope, Splice, TypeOf, Unbound, Wild, evaluate
from coset.rules.candidates import attribute_values, enumerable, lengths, mixed, representatives, values_of
from coset.rules.drawn_functions import choices
from coset.rules.equation import Attributes
from coset.rules.meant import CLAUSES, floats_asked_for, pinned
from coset.rules.parts import parts
from coset.rules.pattern import Application, Variable, applications
from coset.rules.payloads import roles
from coset.rules.places import PLACES, places
from coset.rules.rule import Rule
from coset.rules.scalar import Undefined
from coset.rules.unify import Binding, bound, understood, unifiers
from coset.rules.uses import bounds, spread_only
from coset.rules.watched import noting

NUMBERS = (2, 3, 1, 4, 5, 8)
MOST_ANSWERS = 20_000  # of one condition that are remembered
ROW = 4096  # elements of a row that has all combinations of some numbers
COUNTS = (
    129,
    257,
    46_342,
    65_537,
)  # more places than an integer of 8 bits counts, with or without sign, or whose squares wrap around in 32
MULTIPLES = (6, 12, 16, 64)  # what groups and blocks divide
UNUSUAL = (-2.0, 0.0, math.inf, -math.inf, math.nan)  # numbers of constants that rules forget
EXTREME = 4.0  # how far from the largest and the least normal number of a float type extreme ones are
EXPANSION = 20  # what the type of a defined op costs, or payload functions to try, in types of other ops
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
    least_rank: int = 0
    attempts: int = 300
    pool: Sequence[int] = NUMBERS
    failures: list[tuple[int, str]] = field(default_factory=list)
    budget: int = QUESTIONS
    spent: int = 0
    elements: tuple[str, ...] = ()  # the dtypes to take of each class, instead of the first `dtypes` of it
    further: tuple[str, ...] = ()  # dtypes to take beside those of a class that has them
    exhaustive: bool = False  # every value of what can be enumerated, for proofs; `gaps` says what could not
    gaps: set[str] = field(default_factory=set)
    symbolic: bool = False  # the numbers that say where an op reads (`rules/places.py`) are symbols
    watch: Callable[[], None] = lambda: None  # asked at each question; may raise when there is no time left
    choices: Mapping[str, Callable[[dict[str, Any]], list[int]]] = field(default_factory=dict)  # all values of names that have few
    numbers: Mapping[str, float] = field(default_factory=dict)  # names that stand for any number, and the number that marks them
    turn: int = 0  # of many draws at random: each begins with another choice of element types
    rare: bool = False  # whether a number was drawn that constants seldom hold
    firing: bool = False  # whether what conditions refuse is passed over at once, instead of being left to `decide`
    uneven: bool = False  # whether lists of numbers are mixed from others, and numbers are those of conditions
    empty: bool = False  # whether dims may be 0
    long: bool = False  # whether dims may be as large as narrow integers count
    high: bool = False  # whether ranks are high, so that dims must be small
    row: bool = False  # whether dims are long enough for all combinations of some numbers
    sizes: Sequence[int] = ()  # dims that a rule speaks of, of which each is one

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
        """Count one question to the type rule of `op`, which expands one that is defined; False when the budget of a draw is used up."""
        self.watch()
        self.spent += 1 if op.meaning is not None else EXPANSION
        return self.spent <= self.budget

    def dim(self, name: str) -> Dim:
        """A value for the dim `name`."""
        return symbol(name) if self.random is None else self.random.choice(self.pool)

    def refresh(self) -> None:
        """Draw the numbers that dims are made of: few different ones, so that dims which must agree often do."""
        if self.random is not None:
            self.pool = self.random.sample(NUMBERS, self.random.choice((1, 2, 3, 6)))
            if self.empty:
                self.pool = [0, *self.pool[:2]]
            elif self.long:
                self.pool = [self.random.choice(COUNTS), 1]
            elif self.row:
                self.pool = [ROW]
            elif self.sizes:
                self.pool = self.sizes
            elif self.high:
                self.pool = self.random.sample((1, 2, 3, 4), 3)


def instances(rule: Rule, search: Search) -> Iterator[Instance]:
    """Instances whose left side types; whether conditions hold is for `decide` to judge. A rule that recognises an op is also tried on what
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
    dtypes = [name for name, kind in kinds.items() if kind.word == "dtype"]
    lone = shapes_given(rule)
    packs = [name for name, kind in kinds.items() if kind.word == "pack" and name not in lone]
    single = [name for name, kind in kinds.items() if kind.word == "dim"]
    spreads = {name: spread_only(rule, name) for name in lone}
    unnamed = [_open_rank(i) for i, pattern in enumerate(rule.compiled.types) if _is_open(pattern)] if search.exhaustive else []
    ranks = search.arrange(list(itertools.product(range(search.least_rank, search.most_rank + 1), repeat=len(packs) + len(unnamed))))
    elements = search.rotated(list(itertools.product(*(_elements(kinds[name].classes, search) for name in dtypes))))
    if search.firing:
        elements = possible(rule, dtypes, elements)
    search.spent = 0
    chosen = itertools.product(ranks, elements) if search.random is None else itertools.cycle(itertools.product(ranks, elements))
    for chosen_ranks, chosen_dtypes in search.first(chosen, search.attempts):
        if search.spent > search.budget:
            search.guess("more instances than are looked at")
            return
        search.refresh()
        values: dict[str, Any] = dict(zip(dtypes, chosen_dtypes, strict=True))
        values |= {name: tuple(search.dim(f"{name}_{i}") for i in range(rank)) for name, rank in zip(packs, chosen_ranks, strict=False)}
        values |= {name: search.dim(name) for name in single}
        values |= dict(zip(unnamed, chosen_ranks[len(packs) :], strict=True))
        if not search.symbolic and not all(spreads.values()):
            search.guess("all shapes that are only given")
        for given in _with_ones(values, packs) if search.exhaustive and lone and not search.symbolic else (values,):
            options = (
                search.arrange(_symbols(name, rule, search.most_rank) if search.symbolic else _lone(name, given, packs, search))
                for name in lone
            )
            starts = [{**given, **dict(zip(lone, lone_values, strict=True))} for lone_values in itertools.product(*options)]
            if search.exhaustive and lone and not search.symbolic:
                starts.append(given)  # and where they come to stand, from what stands there already
            for start in starts:
                yield from search.first(_completed(rule, start, search), 24)


def _open_rank(number: int) -> str:
    """How the number of dims is called that `..` stands for in the type of a variable: no name of a rule is like it."""
    return f"rank of {number}"


def _is_open(pattern: Any) -> bool:
    """Whether a type has a `..` without a name."""
    return any(not isinstance(item, Wild) and getattr(item, "value", item) is None for item in pattern.dims.items)


def shapes_given(rule: Rule) -> list[str]:
    """The packs that no variable's type has."""
    declared = {p.name for t in rule.compiled.types for e in (t.dtype, t.dims) for p in parts(e) if isinstance(p, Ref)}
    return [name for name, kind in rule.compiled.kinds.items() if kind.word == "pack" and name not in declared]


def _elements(classes: frozenset[DType], search: Search) -> list[DType]:
    if not search.elements:
        found = representatives(classes, search.dtypes)
        return [*found, *(dtype for name in search.further if (dtype := DTYPES[name]) in classes and dtype not in found)]
    asked = [DTYPES[name] for name in search.elements]
    chosen = [dtype for dtype in asked if dtype in classes]
    kinds = {dtype.kind for dtype in asked} - {dtype.kind for dtype in chosen}  # of which the class has others than those asked for
    others = frozenset(dtype for dtype in classes if dtype.kind in kinds)
    chosen += representatives(others, len(others)) if search.exhaustive else []
    return chosen or representatives(classes, len(classes) if search.exhaustive else search.dtypes)


def _unusual(rule: Rule, values: Mapping[str, Any], search: Search) -> tuple[float, ...]:
    """Numbers that a constant may hold too: at random now and then, for they keep many rules from firing; for proofs those that are real
    numbers where floats are. Where a rule speaks of real numbers half of those drawn are at an end of the range of the floats in `values`:
    what goes out of it is tested and not proved."""
    if search.random is None:
        return () if not search.exhaustive else UNUSUAL if rule.numerics.word == "exact" else UNUSUAL[:2]
    search.rare = search.random.random() < 0.4
    extreme = rule.numerics.word != "exact" and search.random.random() < 0.5
    return (search.random.choice(_extremes(values) if extreme else UNUSUAL),) if search.rare else ()


def _extremes(values: Mapping[str, Any]) -> tuple[float, ...]:
    """What products and quotients of take the widest float type of `values` out of its range."""
    floats = [value for value in values.values() if isinstance(value, DType) and value.kind == "float"]
    widest = ml_dtypes.finfo(max(floats, key=lambda each: each.bits, default=DTYPES["f32"]).numpy)  # type: ignore[no-untyped-call]
    return float(widest.max) / EXTREME, float(widest.tiny) / EXTREME


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


def _symbols(name: str, rule: Rule, most: int) -> list[Any]:
    """The same as symbols of every rank that counts, beside as many dims as a variable has by name: they stand for all such packs."""
    named = [sum(not isinstance(item, Splice) for item in pattern.dims.items) for pattern in rule.compiled.types]
    return [tuple(symbol(f"{name}_{i}") for i in range(rank)) for rank in range(max(named, default=0) + most + 1)]


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
        with noting() as noted:
            types = tuple(_variable_type(pattern, scope, search, number) for number, pattern in enumerate(rule.compiled.types))
    except (Undefined, Unbound):
        for what in noted:
            search.guess(f"sizes that {what} tells apart")
        return
    nodes = list(applications(rule.left))
    start = Scope(values, dict(zip(rule.variables, types, strict=True)), [None] * len(nodes))
    partial: list[Iterator[tuple[Scope, dict[int, AttributeItems]]]] = [iter([(start, {})])]  # the ways to go on, node by node
    steps = 0
    while partial:
        way = next(partial[-1], None)
        if way is None:
            partial.pop()
            continue
        steps += 1
        if steps > (MOST if search.exhaustive else search.attempts * 4):
            search.guess("all attributes")
            return
        scope, done = way
        if len(partial) > len(nodes):
            left_types = tuple(scope.left)
            final = tuple(scope.variables[name] for name in rule.variables)
            yield Instance(tuple(done[i] for i in range(len(nodes))), left_types, final, scope.values)  # type: ignore[arg-type]
            continue
        partial.append(_ways(rule, nodes[rule.compiled.left_order[len(partial) - 1]], scope, done, search))


def _ways(
    rule: Rule, node: Application, scope: Scope, done: dict[int, AttributeItems], search: Search
) -> Iterator[tuple[Scope, dict[int, AttributeItems]]]:
    """What is known once `node` has attributes, way by way; `done`: the attributes of the nodes before."""
    for later, items, binding in _applied(rule, node, scope, search):
        yield later, {**(bound(done, binding) if binding else done), node.index: items}


def _variable_type(pattern: Any, scope: Scope, search: Search, number: int) -> TensorType:
    shape: list[Dim] = []
    own = f"any_{number}" if search.exhaustive else "any"  # else dims that nothing ties together are taken for equal
    for place, item in enumerate(pattern.dims.items):
        if isinstance(item, Wild):
            shape.append(search.dim(f"{own}_{place}" if search.exhaustive else own))
        elif getattr(item, "value", item) is None:  # `..`
            count = scope.values.get(_open_rank(number), 2) if search.random is None else search.random.randrange(3)
            shape += [search.dim(f"{own}_{place}_{i}" if search.exhaustive else f"{own}_{i}") for i in range(count)]
        else:
            value = evaluate(getattr(item, "value", item) if type(item).__name__ == "Splice" else item, scope)
            shape += list(value) if isinstance(value, tuple) else [value]
    return TensorType(evaluate(pattern.dtype, scope), tuple(shape))


def _applied(rule: Rule, node: Application, scope: Scope, search: Search) -> Iterator[tuple[Scope, AttributeItems, Binding]]:
    """The ways to give `node` attributes that its type rule accepts; in proofs also those that it accepts once dims are bound."""
    operands = [scope.variables[o.name] if isinstance(o, Variable) else scope.left[o.index] for o in node.operands]
    known = [operand for operand in operands if operand is not None]
    written, functions = rule.compiled.left[node.index], roles(node.op)
    written = Attributes(tuple(item for item in written.items if item[0] not in functions), written.rest)
    names = {name for name, _ in written.items}
    plain = [(name, value) for name, value in written.items if not isinstance(value, Wild)]
    wild = names - {name for name, _ in plain}
    rest = [a for a in node.op.attributes if a.name not in names] if written.rest is not None else []
    free = [*(a for a in node.op.attributes if a.name in wild), *rest]
    symbols = PLACES.get(node.op.name, {}) if search.symbolic else {}
    unknown = [a.name for a in free if a.name not in symbols and not _known(a, node.op)]
    count = 0
    asked: Sequence[_Question] | None = None  # the conditions that what is tried here may decide: others are asked once
    for values in _open_values(rule, written.items, node, scope, known, search):
        if search.firing:
            if asked is None:
                asked = _questions(rule, values.keys() - scope.values.keys())
                if _hopeless(rule, _questions(rule), scope):
                    search.spent += 1
                    return
            if _hopeless(rule, asked, replace(scope, values=values)):
                search.spent += 1  # rules that can never fire must come to an end, too
                if search.spent > search.budget:
                    return
                continue
        attempt = Scope(values, scope.variables, list(scope.left))
        bound_rest = dict(values.get(written.rest, ())) if written.rest is not None else {}
        options = [[bound_rest[a.name]] if a.name in bound_rest else _left_open(a, node, known, search) for a in free]
        for name in unknown:
            if name not in bound_rest:
                search.guess(f"`{name}` of {node.op.name}")
        try:
            with noting() as noted:
                given = {name: evaluate(value, attempt) for name, value in plain}
        except (Undefined, Unbound):
            for what in noted:
                search.guess(f"sizes that {what} tells apart")
            continue
        except CosetError as error:
            search.failures.append((node.index, error.message))
            continue
        hopeless = False
        for choice in search.first(itertools.product(*options), 120):
            if not search.spend(node.op):
                search.guess("all attributes")
                return
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
                    if search.exhaustive and node.op.name == "stablehlo.pad" and _refuses_symbols(node.op, known, fixed):
                        search.guess(f"sizes of {node.op.name}")
                    continue
                later = bound(dict(values), binding)
                if written.rest is not None:
                    later[written.rest] = tuple(sorted((a.name, fixed[a.name]) for a in rest))
                if node.op.functions:
                    if written.rest is not None:
                        later[written.rest] += tuple((role, bound_rest[role]) for role in roles(node.op) if role in bound_rest)
                    for way in _with_functions(rule, node, Scope(later, scope.variables, list(scope.left)), fixed, type, binding, search):
                        count += 1
                        yield way
                    continue
                types = [bound(each, binding) for each in scope.left]
                types[node.index] = type
                variables = bound(dict(scope.variables), binding)
                count += 1
                yield Scope(later, variables, types), tuple(sorted(fixed.items())), binding
            if hopeless:
                break
            if count > 40 and not search.exhaustive:
                return


def possible(rule: Rule, dtypes: Sequence[str], elements: Sequence[tuple[DType, ...]]) -> list[tuple[DType, ...]]:
    """The choices of element types of which no condition about element types alone is false."""
    left = list(elements)
    for condition in rule.compiled.conditions:
        names = {part.name for part in parts(condition) if isinstance(part, Ref)}
        if names and names <= set(dtypes) and not any(isinstance(part, TypeOf) for part in parts(condition)):
            own = [place for place, name in enumerate(dtypes) if name in names]
            wrong: dict[tuple[DType, ...], bool] = {}  # of few names there are few choices
            for chosen in left:
                few = tuple(chosen[place] for place in own)
                if few not in wrong:
                    wrong[few] = _is_false(condition, Scope({dtypes[place]: chosen[place] for place in own}))
            left = [chosen for chosen in left if not wrong[tuple(chosen[place] for place in own)]]
    return left


def _hopeless(rule: Rule, questions: Sequence[_Question], scope: Scope) -> bool:
    """Whether one of these conditions of `rule` is false already, whatever the names get that have no value yet."""
    known = Scope(scope.values, scope.variables, scope.left, [None] * len(rule.compiled.right), rule.numerics.word)
    return any(question.is_false(known) for question in questions)


@dataclass(eq=False)
class _Question:
    """A condition with the names and the types that it reads, and its answers for their values: most stand while one is tried out."""

    condition: Expression
    names: tuple[str, ...]
    types: tuple[TypeOf, ...]
    answers: dict[Any, bool] = field(default_factory=dict)

    def is_false(self, scope: Scope) -> bool:
        """As `_is_false`."""
        types = [scope.variables.get(each.key) if each.kind == "variable" else getattr(scope, each.kind)[each.key] for each in self.types]
        key = (tuple([exact_key(scope.values.get(name, self)) for name in self.names]), *types)
        known = self.answers.get(key)
        if known is None:
            if len(self.answers) >= MOST_ANSWERS:
                self.answers.clear()
            known = self.answers[key] = _is_false(self.condition, scope)
        return known


def _question(condition: Expression) -> _Question:
    found = list(parts(condition))
    names = dict.fromkeys(part.name for part in found if isinstance(part, Ref))
    return _Question(condition, tuple(names), tuple(dict.fromkeys(part for part in found if isinstance(part, TypeOf))))


def _questions(rule: Rule, names: AbstractSet[str] | None = None) -> Sequence[_Question]:
    """The conditions of `rule`; those that read one of `names` where these are given."""
    found = _QUESTIONS.get(rule)
    if found is None:
        found = _QUESTIONS[rule] = tuple(map(_question, rule.compiled.conditions))
    return found if names is None else [question for question in found if not names.isdisjoint(question.names)]


_QUESTIONS: WeakKeyDictionary[Rule, tuple[_Question, ...]] = WeakKeyDictionary()


def _is_false(condition: Expression, scope: Scope) -> bool:
    """Whether `condition` has a value already, which is false."""
    try:
        return not evaluate(condition, scope)
    except (Unbound, Undefined, CosetError):
        return False


def _of_functions(attribute: Attribute, op: Op) -> bool:
    """Whether an attribute is the element type of what a payload function gives: while nothing is known of it, one of each kind does."""
    return bool(op.functions) and attribute.kind == "dtype"


def _known(attribute: Attribute, op: Op) -> bool:
    """Whether all values of an attribute are tried where all are asked for."""
    return enumerable(attribute.kind, attribute.name) or _of_functions(attribute, op) or pinned(op, attribute.name) is not None


def _with_functions(
    rule: Rule, node: Application, scope: Scope, attributes: dict[str, Any], type: Type, binding: Binding, search: Search
) -> Iterator[tuple[Scope, AttributeItems, Binding]]:
    """The ways to give payload functions to `node`, whose attributes stand."""
    written = rule.compiled.left[node.index]
    types = [bound(each, binding) for each in scope.left]
    variables = bound(dict(scope.variables), binding)
    operands = [variables[o.name] if isinstance(o, Variable) else types[o.index] for o in node.operands]
    types[node.index] = type
    named = {name for name, _ in written.items}
    search.spent += EXPANSION  # functions are made of many ops, and each choice of them is typed
    for functions, more in choices(
        written, node.op, node.index, operands, attributes, scope, None if search.exhaustive else search.arrange
    ):
        if not search.spend(node.op):
            search.guess("all functions")
            return
        later = {**scope.values, **more}
        if written.rest is not None:
            own = [(role, value) for role, value in functions.items() if role not in named]
            later[written.rest] = tuple(sorted(dict((*later[written.rest], *own)).items()))
        yield Scope(later, variables, list(types)), tuple(sorted((attributes | functions).items())), binding


def _unified(op: Op, operands: Sequence[Type], attributes: dict[str, Any], search: Search) -> list[Binding]:
    """What must be bound so that `op` takes the operands; the type rule refuses what still does not fit. What a defined op takes with the
    symbols as they are it takes with any numbers for them: what its definition asks of them is asked again (`prove/decisions.py`)."""
    settled = understood(op) or (op.name in CLAUSES and _accepted(op, operands, attributes))
    if not settled and (len(operands) > 1 or _refuses_symbols(op, operands, attributes)):
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
    found = (
        places(f"{attribute.name}{node.index}", None, node.op.name, attribute.name, operands, search.most_rank) if search.symbolic else []
    )
    if found:
        return found
    all_ = pinned(node.op, attribute.name)
    if all_ is not None:
        return search.arrange(all_)
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
            choices = search.choices.get(part.name)
            if choices is not None:
                names[part.name] = choices(scope.values)
                continue
            all_ = pinned(node.op, name) if isinstance(value, Ref) else None
            if all_ is not None:
                names[part.name] = search.arrange(all_)
                continue
            word = kind.word if kind.word not in ("any", "dims") else kinds.get(name, kind.word)
            rank = _rank(evaluate(kind.arguments[0], scope)) if kind.arguments else None
            hints = [value for value in rule.hints.get(part.name, ()) if isinstance(value, str) == (word == "string")]
            options = values_of(word, name, operands, rank, exhaustive=search.exhaustive)
            unusual = _unusual(rule, scope.values, search) if word == "float" and name == "value" else ()
            if search.random is not None and word == "float":
                options = list(dict.fromkeys([*options, *floats_asked_for(node.op)]))
            if search.random is None:
                options = [*options, *unusual]
            elif search.uneven:
                told = [*bounds(rule, part.name, word), *(lengths(operands, search.random) if word == "int" else ())]
                options = [*options, *told, *mixed(word, name, options, search.random)]
            found = places(part.name, value, node.op.name, name, operands, search.most_rank) if search.symbolic else []
            if found:
                names[part.name] = found
                continue
            if word in ("pack", "dims"):
                options = [*options, *(type.shape for type in (*scope.left, *scope.variables.values()) if isinstance(type, TensorType))]
            ordered = search.ordered(hints, options)
            names[part.name] = ordered if search.random is None else [*unusual, *ordered]
            enumerated = enumerable(word, name) or (word == "dtype" and bool(node.op.functions))
            if not enumerated and word != "pack":  # what a pack may be is said where it is drawn
                search.guess(f"`{part.name}`")
    for choice in _combinations(list(names.values()), search):
        yield {**scope.values, **dict(zip(names, choice, strict=True))}


def _combinations(options: Sequence[Sequence[Any]], search: Search) -> Iterator[tuple[Any, ...]]:
    """Choices of one value from each: all in order, or at random a few, half of them the first value, which is an attribute's default."""
    if search.random is None or math.prod(map(len, options)) <= SAMPLES:
        yield from search.first(itertools.product(*options), search.attempts)
    elif all(options):
        for _ in range(SAMPLES):
            yield tuple(each[0] if search.random.random() < 0.5 else search.random.choice(each) for each in options)
