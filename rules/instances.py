"""Instances of a rule: types for its variables and attributes for its left side, built forwards until the left side types.

The same instances serve the type checker (symbolic dims, every small rank) and the tests of `prove/` (numbers, at random)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from coset.ir import dims
from coset.ir.dims import Dim, symbol
from coset.ir.errors import CosetError
from coset.ir.term import AttributeItems
from coset.ir.types import DTYPES, DType, TensorType
from coset.rules.algebra import Ref, Scope, Splice, Unbound, Wild, evaluate
from coset.rules.attempts import attributed
from coset.rules.candidates import representatives
from coset.rules.instance import MOST, Instance, InstanceSearch
from coset.rules.parts import parts
from coset.rules.pattern import Application, applications
from coset.rules.rule import Rule
from coset.rules.scalar import Undefined
from coset.rules.undecided import possible
from coset.rules.unify import bound
from coset.rules.uses import spread_only
from coset.rules.watched import noting


def instances(rule: Rule, search: InstanceSearch) -> Iterator[Instance]:
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


def _expansions(rule: Rule, mirror: Rule, search: InstanceSearch) -> Iterator[Instance]:
    """The right sides of `mirror` as instances of `rule`, whose left side has their form."""
    for instance in _drawn(mirror, search):
        try:
            decision = mirror.decide(instance.attributes, instance.left_types, instance.variable_types)
        except CosetError:
            continue
        if decision is not None:
            types = dict(zip(mirror.variables, instance.variable_types, strict=True))
            yield Instance(decision.attributes, decision.types, tuple(types[name] for name in rule.variables), instance.values)


def _drawn(rule: Rule, search: InstanceSearch) -> Iterator[Instance]:
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


def _elements(classes: frozenset[DType], search: InstanceSearch) -> list[DType]:
    if not search.elements:
        found = representatives(classes, search.dtypes)
        return [*found, *(dtype for name in search.further if (dtype := DTYPES[name]) in classes and dtype not in found)]
    asked = [DTYPES[name] for name in search.elements]
    chosen = [dtype for dtype in asked if dtype in classes]
    kinds = {dtype.kind for dtype in asked} - {dtype.kind for dtype in chosen}  # of which the class has others than those asked for
    others = frozenset(dtype for dtype in classes if dtype.kind in kinds)
    chosen += representatives(others, len(others)) if search.exhaustive else []
    return chosen or representatives(classes, len(classes) if search.exhaustive else search.dtypes)


def _with_ones(values: dict[str, Any], packs: Sequence[str]) -> Iterator[dict[str, Any]]:
    """`values`, and with each choice of dims of packs that are 1: a broadcast treats them apart."""
    places = [(name, axis) for name in packs for axis in range(len(values[name]))]
    for chosen in itertools.product((False, True), repeat=len(places)):
        ones = {place for place, one in zip(places, chosen, strict=True) if one}
        yield values | {name: tuple(1 if (name, axis) in ones else dim for axis, dim in enumerate(values[name])) for name in packs}


def _lone(name: str, values: dict[str, Any], packs: Sequence[str], search: InstanceSearch) -> list[Any]:
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


def _wider(own: tuple[Dim, ...], name: str, search: InstanceSearch) -> list[tuple[Dim, ...]]:
    """`own` with one or two dims more, at every place."""
    shapes = [own]
    for i in range(2 if len(own) < 2 else 1):
        fresh = search.dim(f"{name}_new_{i}")
        shapes += [(*shape[:place], fresh, *shape[place:]) for shape in shapes for place in range(len(shape) + 1)]
    return shapes


def _completed(rule: Rule, values: dict[str, Any], search: InstanceSearch) -> Iterator[Instance]:
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
    rule: Rule, node: Application, scope: Scope, done: dict[int, AttributeItems], search: InstanceSearch
) -> Iterator[tuple[Scope, dict[int, AttributeItems]]]:
    """What is known once `node` has attributes, way by way; `done`: the attributes of the nodes before."""
    for later, items, binding in attributed(rule, node, scope, search):
        yield later, {**(bound(done, binding) if binding else done), node.index: items}


def _variable_type(pattern: Any, scope: Scope, search: InstanceSearch, number: int) -> TensorType:
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
