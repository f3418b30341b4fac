"""Instances of a rule: types for its variables and attributes for its left side, built forwards until the left side types.

The same instances serve the type checker (symbolic dims, every small rank) and the tests of `prove/` (numbers, at random).
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from coset.ir import dims
from coset.ir.dims import Dim, symbol
from coset.ir.errors import CosetError
from coset.ir.op import Op
from coset.ir.term import AttributeItems, exact_key
from coset.ir.types import TensorType, Type
from coset.rules.algebra import Expression, Ref, Scope, Unbound, Wild, evaluate, parts
from coset.rules.candidates import attribute_values, representatives, values_of
from coset.rules.pattern import Application, Variable, applications
from coset.rules.rule import Rule
from coset.rules.scalar import Undefined

NUMBERS = (2, 3, 1, 4, 5, 8)
EXPANSION = 20  # what the type of a defined op costs, in those of other ops
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
    budget: int = 1500 * EXPANSION
    spent: int = 0

    def arrange(self, options: Sequence[Any]) -> list[Any]:
        """The order in which options are tried."""
        chosen = list(options)
        if self.random is not None:
            self.random.shuffle(chosen)
        return chosen

    def ordered(self, hints: Sequence[Any], options: Sequence[Any]) -> list[Any]:
        """Values in the order in which they are tried: the first hint, which is a default, and then all others."""
        found = list({exact_key(value): value for value in (*hints, *options)}.values())
        return [*found[:1], *self.arrange(found[1:])] if hints else self.arrange(found)

    def spend(self, op: Op) -> bool:
        """Count one question to the type rule of `op`, which expands one that is defined; False when the budget of a draw is used up."""
        self.spent += 1 if op.meaning is not None else EXPANSION
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
    ranks = search.arrange(list(itertools.product(range(search.most_rank + 1), repeat=len(packs))))
    elements = search.arrange(list(itertools.product(*(representatives(kinds[name].classes, search.dtypes) for name in dtypes))))
    search.spent = 0
    chosen = itertools.product(ranks, elements) if search.random is None else itertools.cycle(itertools.product(ranks, elements))
    for chosen_ranks, chosen_dtypes in itertools.islice(chosen, search.attempts):
        if search.spent > search.budget:
            return
        search.refresh()
        values: dict[str, Any] = dict(zip(dtypes, chosen_dtypes, strict=True))
        values |= {name: tuple(search.dim(f"{name}_{i}") for i in range(rank)) for name, rank in zip(packs, chosen_ranks, strict=True)}
        values |= {name: search.dim(name) for name in single}
        for lone_values in itertools.product(*(search.arrange(_lone(name, values, packs, search)) for name in lone)):
            yield from itertools.islice(_completed(rule, {**values, **dict(zip(lone, lone_values, strict=True))}, search), 24)


def _lone(name: str, values: dict[str, Any], packs: Sequence[str], search: Search) -> list[Any]:
    """Values of a pack that no variable's type mentions, such as the target of a reshape."""
    options: list[Any] = [tuple(search.dim(f"{name}_{i}") for i in range(rank)) for rank in range(3)]
    for pack in packs:
        own = values[pack]
        options += [own, (dims.product(own),), (1, *own)]
    return list(dict.fromkeys(options))


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
    while partial and steps < search.attempts * 4:
        steps += 1
        position, scope, done = partial.pop()
        if position == len(nodes):
            left_types = tuple(scope.left)
            yield Instance(tuple(done[i] for i in range(len(nodes))), left_types, types, scope.values)  # type: ignore[arg-type]
            continue
        node = nodes[rule.compiled.left_order[position]]
        partial += [(position + 1, later, {**done, node.index: items}) for later, items in _applied(rule, node, scope, search)][::-1]


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


def _applied(rule: Rule, node: Application, scope: Scope, search: Search) -> list[tuple[Scope, AttributeItems]]:
    """The ways to give `node` attributes that its type rule accepts."""
    operands = [scope.variables[o.name] if isinstance(o, Variable) else scope.left[o.index] for o in node.operands]
    known = [operand for operand in operands if operand is not None]
    written = rule.compiled.left[node.index]
    found: list[tuple[Scope, AttributeItems]] = []
    for values in _open_values(rule, written.items, node, scope, known, search):
        attempt = Scope(values, scope.variables, list(scope.left))
        wild = [name for name, value in written.items if isinstance(value, Wild)]
        rest = [a for a in node.op.attributes if a.name not in dict(written.items)] if written.rest is not None else []
        free = [a for a in node.op.attributes if a.name in wild] + rest
        bound_rest = dict(values.get(written.rest, ())) if written.rest is not None else {}
        options = ([bound_rest[a.name]] if a.name in bound_rest else search.arrange(_or_default(a, known)) for a in free)
        for choice in itertools.islice(itertools.product(*options), 120):
            if not search.spend(node.op):
                return found
            try:
                given = {name: evaluate(value, attempt) for name, value in written.items if name not in wild}
                given |= {a.name: value for a, value in zip(free, choice, strict=True)}
                complete = node.op.complete(given)
                type = node.op.infer(known, complete)
            except (Undefined, Unbound):
                break
            except CosetError as error:
                failure = (node.index, error.message)
                hopeless = search.failures[-12:].count(failure) == 12
                search.failures.append(failure)
                if hopeless:
                    break
                continue
            bound = dict(values)
            if written.rest is not None:
                bound[written.rest] = tuple(sorted((a.name, complete[a.name]) for a in rest))
            types = list(scope.left)
            types[node.index] = type
            found.append((Scope(bound, scope.variables, types), tuple(sorted(complete.items()))))
            if len(found) > 40:
                return found
    return found


def _or_default(attribute: Any, operands: Sequence[Type]) -> list[Any]:
    found = attribute_values(attribute, operands)
    return found if attribute.required else list(dict.fromkeys([attribute.default, *found]))


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
            word = kind.word if kind.word not in ("any", "dims") else kinds.get(name, kind.word)
            rank = len(evaluate(kind.arguments[0], scope)) if kind.arguments else None
            hints = [value for value in rule.hints.get(part.name, ()) if isinstance(value, str) == (word == "string")]
            names[part.name] = search.ordered(hints, values_of(word, name, operands, rank))
    for choice in _combinations(list(names.values()), search):
        yield {**scope.values, **dict(zip(names, choice, strict=True))}


def _combinations(options: Sequence[Sequence[Any]], search: Search) -> Iterator[tuple[Any, ...]]:
    """Choices of one value from each: all in order, or at random a few, half of them the first value, which is an attribute's default."""
    if search.random is None or math.prod(map(len, options)) <= SAMPLES:
        yield from itertools.islice(itertools.product(*options), search.attempts)
    elif all(options):
        for _ in range(SAMPLES):
            yield tuple(each[0] if search.random.random() < 0.5 else search.random.choice(each) for each in options)
