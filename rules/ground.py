"""Ground instances: a rule at the arrays and values that a `test` line gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from coset.ir.errors import CosetError
from coset.ir.term import AttributeItems
from coset.ir.types import TensorType, Type
from coset.rules import payloads, syntax
from coset.rules.algebra import Expression, PayloadFunction, Scope, Unbound, Wild, evaluate
from coset.rules.compile import type_pattern
from coset.rules.equation import Kind, TypePattern
from coset.rules.expression_text import text
from coset.rules.instance import Instance
from coset.rules.literals import Bindings, bindings, type_of
from coset.rules.names import Names
from coset.rules.pattern import Application, Variable, applications
from coset.rules.rule import Rule
from coset.rules.scalar import Undefined
from coset.rules.solving import match
from coset.rules.syntax import RuleError


def given(rule: Rule, ground: syntax.Ground) -> Bindings | None:
    """What a test line gives to the names of this form of its rule; None where it gives other operands than the form has."""
    if {written.name for written in ground.given if written.name not in rule.compiled.kinds} != set(rule.variables):
        return None
    return bindings(ground, dict(zip(rule.variables, rule.compiled.types, strict=True)), rule.compiled.kinds)


def instance(rule: Rule, known: Bindings) -> Instance | str:
    """The instance of the left side at these arrays and values, or why there is none."""
    types: tuple[Type, ...] = tuple(type_of(known.arrays[name][0]) for name in rule.variables)
    scope = Scope(dict(known.values), dict(zip(rule.variables, types, strict=True)))
    wrong = _declared(rule, scope)
    if wrong:
        return wrong
    nodes = list(applications(rule.left))
    left: list[Any] = [None] * len(nodes)
    scope.left = left
    items: list[AttributeItems] = [()] * len(nodes)
    for node in (nodes[index] for index in rule.compiled.left_order):
        operands = [scope.variables[o.name] if isinstance(o, Variable) else left[o.index] for o in node.operands]
        try:
            complete = payloads.complete(node.op, _attributes(rule, node, scope), operands, scope)
            left[node.index] = node.op.infer(operands, complete)
        except Unbound:
            return f"the attributes of {node.op} are not determined: give their names"
        except Undefined:
            return f"an attribute of {node.op} has no value"
        except CosetError as error:
            return error.message
        items[node.index] = tuple(sorted(complete.items()))
    return Instance(tuple(items), tuple(left), types, scope.values)


def _declared(rule: Rule, scope: Scope) -> str:
    """Bind the names in the declared types; what does not fit, or nothing."""
    equations: list[tuple[str, Expression, Any]] = []
    for name, pattern in zip(rule.variables, rule.compiled.types, strict=True):
        actual = scope.variables[name]
        assert isinstance(actual, TensorType)
        equations += [(name, pattern.dtype, actual.dtype), (name, pattern.dims, actual.shape)]
    while equations:
        late = []
        for equation in equations:
            name, expression, value = equation
            try:
                fits = match(expression, value, scope)
            except Unbound:
                late.append(equation)
                continue
            except Undefined:
                fits = False
            if not fits:
                return f"`{name}` is {scope.variables[name]}, declared {text(rule.compiled.types[rule.variables.index(name)])}"
        if len(late) == len(equations):
            break  # `decide` judges what these bind
        equations = late
    return ""


def _attributes(rule: Rule, node: Application, scope: Scope) -> dict[str, Any]:
    """The attributes that are written; `_` and `..rest` are the op's defaults."""
    written = rule.compiled.left[node.index]
    plain = [(name, value) for name, value in written.items if not isinstance(value, Wild)]
    values = {name: value if isinstance(value, PayloadFunction) else evaluate(value, scope) for name, value in plain}
    if written.rest is not None:
        named = {name for name, _ in written.items}
        rest = tuple(sorted((a.name, a.default) for a in node.op.attributes if a.name not in named and not a.required))
        scope.values.setdefault(written.rest, rest)
        values |= dict(scope.values[written.rest])
    return values


# ---------------------------------------------------------------- what is wrong with a test line before it is tried


def lint_tests(
    tests: Sequence[syntax.Ground], names: Names, kinds: Mapping[str, Kind], *, results: int | None, needed: bool = False
) -> list[RuleError]:
    """The mistakes in the test lines of an entry with these names; `results` is how many values the entry has, where that is known, and
    `needed` says that a line which gives none shows nothing."""
    found: list[RuleError] = []
    for ground in tests:
        try:
            _lint(ground, names, kinds, results, needed)
        except RuleError as error:
            found.append(error)
    return found


def _lint(ground: syntax.Ground, names: Names, kinds: Mapping[str, Kind], results: int | None, needed: bool) -> None:
    types: dict[str, TypePattern] = {}
    for name, declaration in names.terms.items():
        assert isinstance(declaration.kind, syntax.TensorKind)
        types[name] = type_pattern(declaration.kind, names)
    known = bindings(ground, types, kinds)
    for name, declaration in names.terms.items():
        count = len(known.arrays.get(name, ()))
        if not count and not declaration.optional:
            raise RuleError(f"the test does not say what `{name}` is", place=ground.place, help=f"add {name} = [1, 2]: f32")
        if count > 1 and not declaration.variadic:
            raise RuleError(f"`{name}` is given twice", place=ground.place, help="leave one out")
    if ground.never and ground.results:
        raise RuleError("what does not fire has no result", place=ground.results[0].place, help="leave out the value or `not`")
    if needed and not ground.never and not ground.results:
        raise RuleError("this test says nothing about the op", place=ground.place, help="write what it gives behind =>")
    if results is not None and ground.results and len(ground.results) != results:
        message = f"there are {len(ground.results)} values for {results} result{'' if results == 1 else 's'}"
        raise RuleError(message, place=ground.results[0].place, help="write one value for each result")
