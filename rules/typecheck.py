"""The type checker: a rule's two sides are typed on many instances when it is read, so that nothing is found out at firing time."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

from coset.ir.errors import CosetError
from coset.ir.types import TensorType, Type
from coset.rules.instance import EXPANSION, Search, instances
from coset.rules.pattern import Application, Variable, applications
from coset.rules.rule import Rule
from coset.rules.syntax import RuleError

SYMBOLIC, NUMERIC = 60, 40  # instances tried for each variant
BUDGET = 800 * EXPANSION  # questions to type rules for each
FURTHER = 8  # draws while no variant has fired: conditions on numbers (so many groups as channels) hold seldom


def type_errors(rules: Sequence[Rule]) -> list[RuleError]:
    """What is wrong with the types of the rules of one file: one error an entry, the first one found."""
    errors: list[RuleError] = []
    directions: dict[tuple[str, str], list[Rule]] = {}
    for rule in rules:
        directions.setdefault((rule.family, rule.name.split("#")[0]), []).append(rule)
    refused: set[str] = set()
    checked: dict[tuple[str, str], RuleError | None] = {}

    def check(key: tuple[str, str]) -> RuleError | None:
        if key not in checked:
            checked[key] = _check_direction(directions[key])
        return checked[key]

    def another_types(family: str, name: str) -> bool:
        """Whether an op variable can be another op: one that is made for rare element types does not make the rule wrong."""
        others = [key for key in directions if key[0] == family and key[1] != name]
        return any(not isinstance(check(key), Untyped) for key in others)

    for family, name in directions:
        if family not in refused:
            error = check((family, name))
            if error is not None and not (isinstance(error, Untyped) and "[" in name and another_types(family, name)):
                errors.append(error)
                refused.add(family)
    return errors


class Untyped(RuleError):
    """No instance of a left side has a type."""


def _check_direction(forms: Sequence[Rule]) -> RuleError | None:
    """All variants may fire only where both sides have one type, and one of them fires somewhere."""
    fired, typed = False, False
    first: tuple[Rule, Search] | None = None
    for rule in forms:
        search = Search(budget=BUDGET)
        first = first or (rule, search)
        numeric = (Search(random.Random(seed), attempts=2000, budget=BUDGET) for seed in range(1 + FURTHER))
        draws = itertools.chain([(search, SYMBOLIC)], ((own, NUMERIC) for own in numeric))
        for number, (own, count) in enumerate(draws):
            if number > 1 and fired:
                break
            for instance in itertools.islice(instances(rule, own), count):
                typed = True
                try:
                    fired |= rule.decide(instance.attributes, instance.left_types, instance.variable_types) is not None
                except CosetError as error:  # of types, or of a native function
                    return RuleError(error.message, place=error.place or rule.place, help=error.help)
    if fired or all(rule.mirrors for rule in forms):  # how an op is recognised may be too rare for the instances that are drawn
        return None
    assert first is not None
    rule, search = first
    if typed:
        help = "check the declared dims and the conditions against what the left side gives"
        return RuleError(f"`{rule.family}` never fires: no small instance fulfils its types and conditions", place=rule.place, help=help)
    return _untyped(rule, search)


def _untyped(rule: Rule, search: Search) -> Untyped:
    if not search.failures:
        return Untyped(f"the left side of `{rule.family}` has no instance", place=rule.place, help="check the declared types")
    index, message = search.failures[0]
    place = rule.compiled.left_places[index]
    node = list(applications(rule.left))[index]
    better = _matmul_message(rule, node)
    if better is not None:
        return Untyped(better[0], place=place, help=better[1])
    return Untyped(message, place=place, help="check the declared types of its operands")


def _matmul_message(rule: Rule, node: Application) -> tuple[str, str] | None:
    """The contracted dims of `a @ b` by name, when they are two variables whose dims differ."""
    if node.op.name != "stablehlo.dot_general" or not all(isinstance(operand, Variable) for operand in node.operands):
        return None
    names = [str(operand) for operand in node.operands]
    patterns = [rule.compiled.types[rule.variables.index(name)].dims.items for name in names]
    if any(len(items) < 2 for items in patterns) or str(patterns[0][-1]) == str(patterns[1][-2]):
        return None
    columns, rows = str(patterns[0][-1]), str(patterns[1][-2])
    help = f"write {names[0]}: F[.., {columns}], {names[1]}: F[{columns}, ..]"
    return f"the columns of `{names[0]}` are {columns} but the rows of `{names[1]}` are {rows}", help


def describe(types: Sequence[Type]) -> str:
    """Types as a list, for messages."""
    return ", ".join(str(t) for t in types if isinstance(t, TensorType))
