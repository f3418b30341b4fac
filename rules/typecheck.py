"""The type checker: a rule's two sides are typed on many instances when it is read, so that nothing is found out at firing time."""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Hashable, Iterator, Sequence
from functools import lru_cache

from coset.ir.errors import CosetError
from coset.ir.judging import Ended, judged
from coset.ir.op import Attributes, Op
from coset.ir.types import DTYPES, TensorType, Type
from coset.rules.candidates import attribute_values
from coset.rules.expression_text import text
from coset.rules.instance import EXPANSION, InstanceSearch
from coset.rules.instances import instances
from coset.rules.pattern import Application, Pattern, Variable, applications
from coset.rules.rule import Rule
from coset.rules.syntax import RuleError
from coset.rules.uses import highest_rank, sizes, types_named

SYMBOLIC, NUMERIC = 60, 40  # instances tried for each variant
BUDGET = 800 * EXPANSION  # questions to type rules for each
UNTYPED = "no element type"
FEW = 3  # values of an attribute that are tried to see whether it has a say in types
FURTHER = 12  # draws while no variant has fired: conditions on numbers (so many groups as channels) hold seldom
MANY = 400  # rules from which on processes beside each other check them, a share of the entries each
LARGEST_STATED = (1 << 31) - 1  # of dims that a rule states and that are tried
HOPELESS = 2  # draws of 2,000 attempts after which a left side that never had a type is not drawn again


def type_errors(rules: Sequence[Rule]) -> list[RuleError]:
    """What is wrong with the types of rules: one error an entry, the first one found."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    if len(rules) < MANY or processors < 2:
        return _type_errors(rules)
    families = {family: place for place, family in enumerate(dict.fromkeys(rule.family for rule in rules))}
    shares: dict[str, list[Rule]] = {str(place): [] for place in range(4 * processors)}
    for rule in rules:
        shares[str(families[rule.family] % len(shares))].append(rule)

    def ended(name: str, error: Ended) -> list[RuleError]:
        raise error

    found = judged(list(shares), lambda name: _type_errors(shares[name]), ended, seconds=None, workers=processors)
    return [error for errors in found.values() for error in errors]


def _type_errors(rules: Sequence[Rule]) -> list[RuleError]:
    errors: list[RuleError] = []
    directions: dict[tuple[str, str], list[Rule]] = {}
    for rule in rules:
        directions.setdefault((rule.family, rule.name.split("#")[0]), []).append(rule)
    refused: set[str] = set()
    checked: dict[tuple[str, str], RuleError | None] = {}
    right: set[Hashable] = set()  # what the forms without a mistake are like

    def check(key: tuple[str, str]) -> RuleError | None:
        if key not in checked:
            like = (key[0], *map(likeness, directions[key]))
            checked[key] = None if like in right else _without_types(directions[key]) or _check_direction(directions[key])
            if checked[key] is None:
                right.add(like)
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


def _without_types(forms: Sequence[Rule]) -> Untyped | None:
    """The error where an op variable is an op that takes no element type that is drawn."""
    for rule in forms:
        if "[" in rule.name and any(_typing(node.op) == UNTYPED for node in applications(rule.left)):
            return _no_instance(rule)
    return None


def _no_instance(rule: Rule) -> Untyped:
    return Untyped(f"the left side of `{rule.family}` has no instance", place=rule.place, help="check the declared types")


def likeness(rule: Rule) -> Hashable:
    """Equal for rules of one entry that are typed alike: an op variable stands for dozens of ops with a few type rules between them."""

    def shape(pattern: Pattern) -> Hashable:
        return pattern if isinstance(pattern, Variable) else (_typing(pattern.op), *map(shape, pattern.operands))

    read = rule.compiled
    sides = (shape(rule.left), shape(rule.right), rule.variables, read.types, read.left, read.right, read.conditions, read.guards)
    return (*sides, read.order, read.left_order, read.result, tuple(read.kinds.items()), bool(rule.mirrors))


@lru_cache(maxsize=1024)
def _typing(op: Op) -> Hashable:
    """What the type rule of an elementwise op makes of one or two operands of every element type; of others, and of those whose
    attributes have a say in it, the op itself. `UNTYPED` where it takes none: quantized types are not among those that are drawn."""
    if not op.has("elementwise") or op.variadic or op.optional or not 1 <= len(op.operands) <= 2:
        return op
    names = [a.name for a in op.attributes]
    options = [[*([] if a.required else [a.default]), *attribute_values(a, ())[:FEW]] for a in op.attributes]
    given = [dict(zip(names, chosen, strict=True)) for chosen in itertools.product(*options)]
    outcomes = []
    for dtypes in itertools.product(DTYPES.values(), repeat=len(op.operands)):
        for shapes in (((2, 3), (2, 3)), ((), (2, 3)), ((2, 3), ())):
            operands = [TensorType(dtype, shape) for dtype, shape in zip(dtypes, shapes, strict=False)]
            outcomes.append({_typed(op, operands, attributes) for attributes in given} - {None})
    if not any(outcomes):
        return UNTYPED
    return op if any(len(each) > 1 for each in outcomes) else tuple(next(iter(each), None) for each in outcomes)


def _typed(op: Op, operands: Sequence[Type], attributes: Attributes) -> Type | None:
    try:
        return op.infer(operands, attributes)
    except CosetError:
        return None


def _check_direction(forms: Sequence[Rule]) -> RuleError | None:
    """All variants may fire only where both sides have one type, and one of them fires somewhere."""
    fired, typed = False, False
    first: tuple[Rule, InstanceSearch] | None = None
    for rule in forms:
        search = InstanceSearch(budget=BUDGET, further=types_named(rule))
        first = first or (rule, search)
        numeric = _numeric(rule)
        draws = itertools.chain([(search, SYMBOLIC)], ((own, NUMERIC) for own in numeric))
        for number, (own, count) in enumerate(draws):
            if number > 1 and (fired or (number > HOPELESS and not typed)):
                break
            for instance in itertools.islice(instances(rule, own), count):
                typed = True
                try:
                    fired |= rule.decide(instance.attributes, instance.left_types, instance.variable_types) is not None
                except CosetError as error:  # of types, or of a native function
                    help = error.help or "declare dims and element types so that the right side has a type wherever the left one has"
                    return RuleError(error.message, place=error.place or rule.place, help=help)
    if fired or all(rule.mirrors for rule in forms):  # how an op is recognised may be too rare for the instances that are drawn
        return None
    assert first is not None
    rule, search = first
    if typed:
        help = "check the declared dims and the conditions against what the left side gives"
        return RuleError(f"`{rule.family}` never fires: no small instance fulfils its types and conditions", place=rule.place, help=help)
    return _untyped(rule, search)


def _numeric(rule: Rule) -> Iterator[InstanceSearch]:
    """Searches with numbers; every other one takes dims and ranks that the rule states."""
    stated, rank = sizes(rule, LARGEST_STATED), highest_rank(rule, InstanceSearch.most_rank)
    for seed in range(1 + FURTHER):
        own = InstanceSearch(random.Random(seed), attempts=2000, budget=BUDGET, firing=seed >= HOPELESS, further=types_named(rule))
        if seed % 2 and (stated or rank > InstanceSearch.most_rank):
            own.sizes, own.most_rank = stated[seed // 2 % len(stated)] if stated else (), rank
        yield own


def _untyped(rule: Rule, search: InstanceSearch) -> Untyped:
    if not search.failures:
        return _no_instance(rule)
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
    if any(len(items) < 2 for items in patterns) or text(patterns[0][-1]) == text(patterns[1][-2]):
        return None
    columns, rows = text(patterns[0][-1]), text(patterns[1][-2])
    help = f"write {names[0]}: F[.., {columns}], {names[1]}: F[{columns}, ..]"
    return f"the columns of `{names[0]}` are {columns} but the rows of `{names[1]}` are {rows}", help


def describe(types: Sequence[Type]) -> str:
    """Types as a list, for messages."""
    return ", ".join(str(t) for t in types if isinstance(t, TensorType))
