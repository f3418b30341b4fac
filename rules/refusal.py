"""Why a rule does not fire where its left side was found: the equations and conditions that do not hold, with the values in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coset.ir.constants import Constant
from coset.ir.term import AttributeItems, Region
from coset.ir.types import DType, TensorType, Type
from coset.rules.algebra import Call, Expression, Literal, Ref, Scalar, Scope, TypeOf, Unbound, evaluate, evaluate_scalar
from coset.rules.arithmetic import Undecided
from coset.rules.equation import RuleTypeError
from coset.rules.parts import parts
from coset.rules.pattern import Application, applications
from coset.rules.rule import Rule
from coset.rules.scalar import Undefined, number_in, scalar_constant
from coset.rules.solving import match
from coset.rules.wording import Wording

UNDECIDED = "nothing decides it for all sizes of the free dims"
LONGEST = 80  # characters of a value


@dataclass(frozen=True)
class Unmet:
    """What a rule asks for that is not so: `condition` in the rule's words, what was `found` instead, and the `values` of the names in it.
    `node` is the application of the left side that it is about (by index), `variable` the variable; None where it is about neither."""

    condition: str
    found: str
    values: tuple[tuple[str, str], ...]
    node: int | None = None
    variable: str | None = None

    def __str__(self) -> str:
        known = f" with {', '.join(f'{name} = {value}' for name, value in self.values)}" if self.values else ""
        return f"{self.condition}{known}; {self.found}"


@dataclass(frozen=True)
class _Wish:
    """An equation between what is declared and what is there, or a condition (`expected` alone), with how it is said."""

    expected: Expression
    actual: Any
    condition: str
    words: Wording
    node: int | None = None
    variable: str | None = None
    alone: bool = False


def unmet(rule: Rule, attributes: Sequence[AttributeItems], left_types: Sequence[Type | None], variables: Sequence[Type]) -> list[Unmet]:
    """What does not hold for `rule` where `Rule.decide`, given the same, refuses; empty where it fires.

    An equation that fails binds nothing more, and the ones behind it are still looked at: the first of the list is the one to mend.
    """
    if _decides(rule, attributes, left_types, variables):
        return []
    scope = Scope({}, dict(zip(rule.variables, variables, strict=True)), left_types, promise=rule.numerics.word)
    found: list[Unmet] = []
    wishes: list[_Wish] = []
    for wish in _wishes(rule, attributes, variables):
        (wishes if isinstance(wish, _Wish) else found).append(wish)  # type: ignore[arg-type]
    _settle(wishes, scope, found)
    moved = {node.index for node in applications(rule.left) if node.op.has("movement")}
    found.sort(key=lambda each: each.node in moved)  # what is computed otherwise says more than what is moved otherwise because of it
    found += _classes(rule, scope)
    if not found:
        found.append(_of_right_side(rule, left_types, scope))
    return found


def _decides(rule: Rule, attributes: Sequence[AttributeItems], left_types: Sequence[Type | None], variables: Sequence[Type]) -> bool:
    try:
        return rule.decide(attributes, left_types, variables) is not None
    except RuleTypeError:
        return False


def _wishes(rule: Rule, attributes: Sequence[AttributeItems], variables: Sequence[Type]) -> Iterator[_Wish | Unmet]:
    """In the order in which `Rule.decide` looks at them."""
    compiled, words = rule.compiled, Wording(rule)
    for name, pattern, actual in zip(rule.variables, compiled.types, variables, strict=True):
        if not isinstance(actual, TensorType) or actual.shape is None:
            yield Unmet(f"`{name}` is a tensor of known rank", f"it is {actual}", (), None, name)
            continue
        yield _Wish(pattern.dtype, actual.dtype, f"the elements of `{name}` are {words.expression(pattern.dtype)}", words, None, name)
        yield _Wish(pattern.dims, actual.shape, f"the dims of `{name}` are {words.expression(pattern.dims)}", words, None, name)
    for node, expected, given in zip(applications(rule.left), compiled.left, attributes, strict=False):
        named = dict(given)
        for name, expression in expected.items:
            if name not in named:
                yield Unmet(f"`{node.op.name}` has `{name}`", "it has none", (), node.index)
                continue
            said = _owner(name, node) + words.expression(expression)
            yield _Wish(expression, named.pop(name), said, words, node.index)
        if expected.rest is not None:
            said = f"the other attributes of `{node.op.name}` are those that `{expected.rest}` stands for"
            yield _Wish(Ref(expected.rest), tuple(sorted(named.items())), said, words, node.index)
    for condition in compiled.conditions:
        yield _Wish(condition, None, words.expression(condition), words, alone=True)


def wrong_attributes(rule: Rule, pattern: Application, items: AttributeItems) -> tuple[Unmet, ...]:
    """What the attributes of one application cannot be whatever else there is: words and numbers that the rule writes down."""
    named = dict(items)
    wrong = []
    for name, expression in rule.compiled.left[pattern.index].items:
        if name in named and not _possible(expression, named[name]):
            said = _owner(name, pattern) + Wording(rule).expression(expression)
            wrong.append(Unmet(said, f"it is {value_text(named[name])}", (), pattern.index))
    return tuple(wrong)


def _owner(name: str, node: Application) -> str:
    return "the constant is " if node.op.name == "builtin.constant" else f"`{name}` of `{node.op.name}` is "


def _possible(expression: Expression, value: Any) -> bool:
    try:
        if isinstance(expression, Scalar) and isinstance(value, Constant):
            if any(isinstance(part, Ref | TypeOf) for part in parts(expression.value)):
                return True
            number = evaluate_scalar(expression.value, Scope())
            return value.type.shape == () and scalar_constant(number, value.type.dtype).key == value.key
        closed = not any(isinstance(part, Ref | TypeOf) for part in parts(expression))
        return not closed or match(expression, value, Scope())
    except (Unbound, Undefined):
        return True


def _settle(wishes: list[_Wish], scope: Scope, found: list[Unmet]) -> None:
    """Look at each as soon as its names have values; what is left at the end has none for some name."""
    while wishes:
        late = []
        for wish in wishes:
            try:
                said = _broken(wish, scope)
            except Unbound:
                late.append(wish)
                continue
            if said is not None:
                found.append(said)
        if len(late) == len(wishes):
            if not found:
                found += [_said(wish, scope, "some name in it has no value") for wish in late[:1]]
            return
        wishes = late


def _broken(wish: _Wish, scope: Scope) -> Unmet | None:
    before = dict(scope.values)
    try:
        holds = _condition(wish.expected, scope) if wish.alone else match(wish.expected, wish.actual, scope)
    except Undecided:
        scope.values.clear()
        scope.values.update(before)
        return _said(wish, scope, UNDECIDED)
    except Undefined:
        holds = False
    if holds:
        return None
    scope.values.clear()  # a failed match may have bound some of its names
    scope.values.update(before)
    return _said(wish, scope, "it does not hold" if wish.alone else f"it is {value_text(wish.actual)}")


def _condition(condition: Expression, scope: Scope) -> bool:
    """Whether it holds; an equality may bind a name."""
    try:
        return bool(evaluate(condition, scope))
    except Unbound:
        if not (isinstance(condition, Call) and condition.function == "=="):
            raise
    for pattern, other in (condition.arguments, condition.arguments[::-1]):
        try:
            value = evaluate(other, scope)
        except Unbound:
            continue
        return match(pattern, value, scope)
    raise Unbound


def _said(wish: _Wish, scope: Scope, found: str) -> Unmet:
    return Unmet(wish.condition, found, _values(wish, scope), wish.node, wish.variable)


def _values(wish: _Wish, scope: Scope) -> tuple[tuple[str, str], ...]:
    """The names of `expression` that have values, and the whole where it is more than one name and can be computed."""
    expression = wish.expected
    names = dict.fromkeys(part.name for part in parts(expression) if isinstance(part, Ref) and part.name in scope.values)
    rows = [(name, value_text(scope.values[name])) for name in names]
    if not isinstance(expression, Ref | Literal):
        try:
            whole = evaluate(expression, scope)
        except (Unbound, Undefined):
            return tuple(rows)
        if not isinstance(whole, bool):
            rows.append((wish.words.expression(expression), value_text(whole)))
    return tuple(rows)


def _classes(rule: Rule, scope: Scope) -> list[Unmet]:
    kinds = [(name, kind) for name, kind in rule.compiled.kinds.items() if kind.word == "dtype" and name in scope.values]
    wrong = [name for name, kind in kinds if scope.values[name] not in kind.classes]
    return [Unmet(f"the element type `{name}` is one of those that the rule is for", f"it is {scope.values[name]}", ()) for name in wrong]


def _of_right_side(rule: Rule, left_types: Sequence[Type | None], scope: Scope) -> Unmet:
    values = tuple((name, value_text(value)) for name, value in sorted(scope.values.items()) if not isinstance(value, tuple | Region))
    wanted = f" of type {left_types[0]}" if left_types and left_types[0] is not None else ""
    found = "it cannot: a size or an index in it has no value here, or its type is another"
    return Unmet(f"the right side can be made{wanted}", found, values)


_TEXTS: Mapping[type, Callable[[Any], str]] = {
    tuple: lambda value: f"[{', '.join(value_text(item) for item in value)}]",
    DType: str,
    str: lambda value: f'"{value}"',
    float: lambda value: f"{value:.9g}",
}


def value_text(value: Any) -> str:
    """A value of the index algebra as a person reads it."""
    if isinstance(value, Constant):
        if value.type.shape == ():
            array = value.array()
            try:
                return f"{float(array):.9g}" if value.type.dtype.kind == "float" else str(array.item())
            except (TypeError, ValueError):
                return str(array)
        return f"a constant {value.type}"
    if isinstance(value, Region):
        return "a function"
    text = next((text(value) for kind, text in _TEXTS.items() if isinstance(value, kind)), None)
    text = str(value if text is None else text) if not hasattr(value, "as_tuple") else f"{number_in(value):.9g}"
    return text if len(text) <= LONGEST else text[: LONGEST - 2] + ".."
