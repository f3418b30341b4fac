"""The cases of a rule that a proof looks at: both sides of its instances, with symbols for sizes and inputs for numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from coset.ir.dims import Dim
from coset.ir.errors import CosetError
from coset.ir.term import Term, topological
from coset.prove import numbers
from coset.prove.decisions import ProofCase, Untold, decided
from coset.prove.sample import sides
from coset.rules.algebra import Literal
from coset.rules.attempts import symbols_of
from coset.rules.expansion import Unsettled
from coset.rules.instance import Instance, InstanceSearch
from coset.rules.instances import instances
from coset.rules.parts import parts
from coset.rules.rule import Rule
from coset.rules.unify import bound
from coset.rules.uses import expressions

MOST_IDLE = 20_000  # instances that do not fire with symbols, for which numbers are tried


def cases_of(rule: Rule, search: InstanceSearch, any_number: numbers.Marked | None) -> Iterator[ProofCase]:
    """Both sides of the instances, for any number in the place of each that the rule takes."""
    for case in (each for whole in _instances(rule, search) for each in _by_root(rule, whole)):
        if any_number is None:
            yield case
            continue
        try:
            for pair, stored in any_number.any_numbers(case.sides):
                yield replace(case, sides=pair, truths=any_number.truths(rule, inputs(pair)), stored=stored)
        except numbers.Mistaken:
            search.gaps.add("numbers that look alike")
        except Unsettled:
            search.gaps.add("sizes that a definition tells apart")


def _by_root(rule: Rule, case: ProofCase) -> list[ProofCase]:
    """Each root of an instance with what equals it: several roots are as many equations."""
    if rule.roots == 1:
        return [case]
    left, right = case.sides
    return [replace(case, sides=pair) for pair in zip(left.operands, right.operands, strict=True)]


def _instances(rule: Rule, search: InstanceSearch) -> Iterator[ProofCase]:
    """Both sides of the instances, whatever their conditions ask of the sizes."""
    idle = 0  # instances that do not fire with symbols
    for instance in instances(rule, search):
        fires = False
        try:
            for case in decided(rule, instance, search.gaps):
                fires = True
                yield case
        except Untold:
            search.gaps.add("sizes that a condition tells apart")
        if not fires and idle <= MOST_IDLE:
            idle += 1
            if idle > MOST_IDLE:
                search.gaps.add("more instances than are looked at")
            found = _with_numbers(rule, instance)
            if found is not None:
                search.gaps.add("sizes that a condition tells apart")
                yield ProofCase(found)


def inputs(pair: tuple[Term, Term]) -> list[Term]:
    """The inputs of both sides, by name."""
    found = {term for term in topological(pair) if term.op.name == "builtin.input"}
    return sorted(found, key=lambda term: str(term.attribute("name")))


def _with_numbers(rule: Rule, instance: Instance) -> tuple[Term, Term] | None:
    """An instance that does not fire with symbols, with small numbers for them with which it does: a condition looks at sizes."""
    written = [value for items in instance.attributes for _, value in items]
    names = sorted(frozenset().union(*map(symbols_of, (*instance.variable_types, *written))))
    if not names:
        return None
    sizes = sorted({1, 2, 3, 4, *_integers(rule)})
    for chosen in [*((n,) * len(names) for n in sizes), sizes * len(names)]:
        binding: dict[str, Dim] = dict(zip(names, chosen, strict=False))
        fixed = Instance(
            bound(instance.attributes, binding), bound(instance.left_types, binding), bound(instance.variable_types, binding), {}
        )  # fmt: skip
        try:
            pair = sides(rule, fixed)
        except CosetError:
            continue
        if pair is not None:
            return pair
    return None


def _integers(rule: Rule) -> set[int]:
    """The small integers that a rule speaks of."""
    found = (part.value for whole in expressions(rule) for part in parts(whole) if isinstance(part, Literal))
    return {value for value in found if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= 64}
