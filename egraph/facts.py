"""Facts about the numbers of a class, derived in the e-graph for the rules that ask for them, by the laws of `coset.prove.laws`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from coset.egraph import door
from coset.egraph.tables import Tables
from coset.ir.constants import Constant
from coset.ir.term import AttributeItems
from coset.prove.laws import KEEPING, LAWS, MOVING, UNIQUE, F, N, P, of_constant, of_iota
from coset.rules.facts import NUMBERS, PATTERNS

SUMS = "sums"  # payloads of folds by sums and products: the relation of their numbers
NAMES = (*NUMBERS, *PATTERNS)


def asked(facts: Iterable[str]) -> tuple[str, ...]:
    """The facts that must be derived for those that rules ask for."""
    wanted = {fact for fact in facts if fact in NAMES}
    return tuple(name for name in NAMES if name in wanted or (name in (N, P) and wanted & {N, P}))


def declarations(wanted: Sequence[str], ruleset: str) -> Iterator[str]:
    """The relations of facts, of the constants that have them, and of folds that keep signs."""
    for fact in wanted:
        yield f"(relation {fact} (T))"
        yield f"(relation {fact}_constant (i64))"
    if P in wanted:
        yield f'(rule ((positive e)) ((nonnegative e)) :ruleset {ruleset} :name "positive_is_nonnegative")'
        yield f"(relation {SUMS} (i64))"


def derivations(name: str, wanted: Sequence[str], tables: Tables, ruleset: str) -> Iterator[str]:
    """The rules that derive facts about nodes of the constructor `name`."""
    op, arity = tables.constructors[name]
    operands = [f"x{i}" for i in range(arity)]
    node = f"(= e ({' '.join([name, *operands, 'p'])}))"

    def rule(fact: str, label: str, *conditions: str) -> str:
        return f'(rule ({" ".join((node, *conditions))}) (({fact} e)) :ruleset {ruleset} :name "{fact}_{name}_{label}")'

    for fact in wanted:
        if op.name == "builtin.constant" or (fact in (UNIQUE, F) and op.name == "stablehlo.iota"):
            yield rule(fact, "constant", f"({fact}_constant p)")
        if fact in PATTERNS:
            pass  # a broadcast repeats, and what is a row may be a column
        elif op.name in MOVING or (op.name == "stablehlo.concatenate" and operands):
            yield rule(fact, "moved", *(f"({fact} {x})" for x in operands))
        ways = LAWS[fact].get(op.name.removeprefix("stablehlo."), ()) if op.dialect == "stablehlo" else ()
        for number, way in enumerate(ways):
            if len(way) == arity:
                yield rule(fact, str(number), *(f"({need} {x})" for need, x in zip(way, operands, strict=True) if need))
        if fact == N and op.name == "stablehlo.multiply":
            yield f'(rule ((= e ({name} x x p))) (({N} e)) :ruleset {ruleset} :name "square_{name}")'
        if fact == N and op.name == "stablehlo.reduce":
            yield rule(fact, "sum", f"({N} x0)", f"({SUMS} p)")


def _usable(value: Constant) -> list[str]:
    """The facts of a constant that a search begins with. Of one with a NaN no sign: rules that ask for signs promise nothing of NaN, and a
    conversion to integers behind them would turn what they make of it into another number."""
    found = of_constant(value)
    if N in found and np.isnan(value.array().astype(np.float64)).any():
        return [fact for fact in found if fact in PATTERNS]
    return found


def rows(number: int, attributes: AttributeItems, wanted: Sequence[str]) -> list[door.Command]:
    """What is known of the payload `number`."""
    named = dict(attributes)
    value = named.get("value")
    found = [f"{fact}_constant" for fact in _usable(value) if fact in wanted] if isinstance(value, Constant) else []
    found += [f"{fact}_constant" for fact in of_iota(named) if fact in wanted]
    if N in wanted and named.get("combiner") in KEEPING:
        found.append(SUMS)
    return [door.insert(relation, door.integer(number)) for relation in found]
