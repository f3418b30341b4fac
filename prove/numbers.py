"""Numbers that a rule takes from its left side, such as a factor or an epsilon: what is shown of any number holds for all.

Such a number is given a mark, a value that nothing else has, and where the mark comes to stand as a constant an input is put instead.
That speaks for all numbers where the rule only puts the number into constants, and looks at it in conditions on numbers alone. Where floats
are real numbers it may also compute with them: the computation is put in the place of the constant. There each number is looked
at as positive, negative and 0, less what the conditions exclude; a positive one is written as e to any power.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import numpy as np
import z3

from coset.dialects.expansion import expanded
from coset.ir.constants import Constant, constant_of
from coset.ir.term import CONSTANT, Term, input_term, make, rebuild, topological
from coset.ir.types import DType, TensorType
from coset.prove import exact_functions, obligations
from coset.prove.opened import tells
from coset.rules.algebra import Call, Literal, Ref, Scalar, Scope, evaluate_scalar
from coset.rules.parts import parts
from coset.rules.pattern import applications
from coset.rules.rule import Rule
from coset.rules.scalar import Undefined, scalar_constant

NONE: Mapping[str, float] = MappingProxyType({})
_TAKEN = frozenset({"epsilon"})  # attributes that most definitions take as they are; others may be told apart (`if scale == 1`)
_MARKS = (0.87109375, 1.31640625, 2.70703125, 0.41796875)  # exact in f32, rounded apart in every smaller float
_OTHERS = (0.67578125, 1.83984375, 3.36328125, 0.29296875)  # the same: a number of a definition stays what it is where marks are others
_COMPUTED = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "negate": "negate"}
_ROUNDED = {**_COMPUTED, "sqrt": "sqrt"}  # one operation of numbers of a type: rounded once, it is that of the type (`rules/scalar.py`)
_STEPS = 5_000_000  # of Z3, about a second
# what a number is taken for: e to any power, the negative of that, 0, any number, any positive and finite float
POSITIVE, NEGATIVE, NOTHING, ANY, FINITE = "+", "-", "0", "", "finite"
Signs = Mapping[str, str]


class Mistaken(Exception):
    """Two numbers of a rule have one value at the marks: which constant is which is not known."""


@dataclass(frozen=True)
class Marked:
    """The names of a rule that stand for any float, with their marks, and what it computes of them."""

    marks: Mapping[str, float]
    expressions: tuple[Any, ...]
    cases: tuple[Signs, ...]
    rounded: bool  # whether floats are no real numbers
    stated: frozenset[str]  # names of attributes, whose numbers are rounded once they are put into constants

    def any_numbers(self, pair: tuple[Term, Term]) -> Iterator[tuple[tuple[Term, Term], frozenset[Term]]]:
        """Both sides with definitions opened and inputs for the numbers, in each case that there is, and the results of the definitions.

        Raises:
            Mistaken: a constant may be one of two numbers, or one that a definition states.
        """
        results: set[Term] = set()
        left, right = expanded(pair, lambda _: False, results)
        self._check_own(pair, (left, right))
        for signs in self.cases:
            changed: dict[Term, Term] = {}
            for term in topological((left, right)):
                operands = [changed[operand] for operand in term.operands]
                made = self._made(term, signs)
                changed[term] = rebuild(term, operands) if made is None else made
            yield (changed[left], changed[right]), frozenset(changed[term] for term in results if term in changed)

    def truths(self, rule: Rule, inputs: Sequence[Term]) -> tuple[Term, ...]:
        """What the conditions say of the numbers among `inputs`, compared with each other or with a number that their type has."""
        found: list[Term] = []
        for dtype in dict.fromkeys(term.type for term in inputs if _input_name(term) is not None):
            named = {_input_name(term): term for term in inputs if term.type == dtype and _input_name(term) is not None}
            for condition in rule.compiled.conditions:
                if isinstance(condition, Call) and condition.function in _DIRECTIONS:
                    near = any(isinstance(argument, Ref) and argument.name in self.stated for argument in condition.arguments)
                    sides = [_side(argument, named, dtype) for argument in condition.arguments]
                    known = tuple(side for side in sides if side is not None)
                    if len(known) == 2 and any(isinstance(argument, Ref) for argument in condition.arguments):
                        direction = _DIRECTIONS[condition.function]  # what is less may be equal once it is rounded
                        found.append(make("stablehlo.compare", known, {"direction": f"{direction[0]}E" if near else direction}))
        return tuple(found)

    def _made(self, term: Term, signs: Signs) -> Term | None:
        """The number that the constant `term` is, of inputs; None where it is another one."""
        found = self._expression(term)
        if found is None:
            return None
        if self.rounded and isinstance(found, Call) and term.tensor.dtype.name not in exact_functions.IEEE:
            raise Mistaken
        return _built(found, term.tensor, signs)

    def _expression(self, term: Term) -> Any:
        """What a constant is of the numbers; None where it is another one."""
        if term.op is not CONSTANT or not isinstance(term.type, TensorType) or term.type.dims:
            return None
        if term.type.dtype.kind == "complex":
            raise Mistaken
        if term.type.dtype.kind != "float":
            return None
        key, dtype = term.attribute("value").key, term.type.dtype
        found = [e for e in self.expressions if _constant(e, self.marks, dtype).key == key]
        if len(found) > 1:
            raise Mistaken
        return found[0] if found and _names(found[0]) else None

    def _check_own(self, pair: tuple[Term, Term], opened: tuple[Term, Term]) -> None:
        """Look whether each constant that bears a mark is another one where the marks are others: else a definition states it."""
        others = dict(zip(self.marks, _OTHERS, strict=False))
        there = list(topological(opened))
        if not any(self._expression(term) is not None for term in there):
            return
        moved = expanded(self._with(pair, others), keep=lambda _: False)
        for term, other in itertools.zip_longest(there, topological(moved)):
            if term is None or other is None or term.op is not other.op:
                raise Mistaken
            found = self._expression(term)
            if found is not None and other.attribute("value").key != _constant(found, others, term.tensor.dtype).key:
                raise Mistaken

    def _with(self, pair: tuple[Term, Term], others: Mapping[str, float]) -> tuple[Term, ...]:
        """Both sides with other marks."""

        def moved(value: Any) -> Any:
            if isinstance(value, float):
                return next((others[name] for name, mark in self.marks.items() if mark == value), value)
            if isinstance(value, Constant) and value.type.shape == () and value.type.dtype.kind == "float":
                dtype = value.type.dtype
                found = [e for e in self.expressions if _names(e) and _constant(e, self.marks, dtype).key == value.key]
                return _constant(found[0], others, dtype) if found else value
            return tuple(map(moved, value)) if type(value) is tuple else value

        done: dict[Term, Term] = {}
        for term in topological(pair):
            attributes = {name: moved(value) for name, value in term.attributes}
            done[term] = make(term.op, [done[operand] for operand in term.operands], attributes, term.regions)
        return tuple(done[side] for side in pair)


def marked(rule: Rule) -> Marked | None:
    """What `rule` takes as any number; None where there is no such number."""
    names = [name for name, kind in rule.compiled.kinds.items() if kind.word == "float"]
    classes = [{dtype.kind for dtype in kind.classes} for kind in rule.compiled.kinds.values() if kind.word == "dtype"]
    if any("float" in kinds and len(kinds) > 1 for kinds in classes):
        return None  # a number of a type that may be one of integers would be looked at for floats only
    real = rule.numerics.word != "exact"
    used = [name for name in names if _only_put(rule, name, frozenset(names), plain=_plain if real else _one_operation)]
    marks = dict(zip(used, _MARKS, strict=False))
    if not marks:
        return None
    written = (value for attribute, value in _written(rule) if not isinstance(value, Scalar) and attribute in _TAKEN)
    scalars = (value.value for _, value in _written(rule) if isinstance(value, Scalar))
    if any(
        isinstance(value, Scalar) and _names(value.value) & marks.keys() and not _names(value.value) <= marks.keys()
        for _, value in _written(rule)
    ):
        return None  # more numbers than marks
    expressions: dict[Any, None] = {}
    for expression in itertools.chain(scalars, written, map(Ref, marks)):
        if _names(expression) <= marks.keys():
            try:
                _value(expression, marks)
            except Undefined:
                return None
            expressions[expression] = None
    stated = frozenset(name for _, value in _written(rule) if not isinstance(value, Scalar) for name in _names(value) & marks.keys())
    signs = {name: _taken_for(rule, name, real=real, rounded=name in stated) for name in marks}
    cases = [dict(zip(signs, chosen, strict=True)) for chosen in itertools.product(*signs.values())]
    return Marked(marks, tuple(expressions), tuple(cases), not real, stated)


_DIRECTIONS = {"<": "LT", "<=": "LE", ">": "GT", ">=": "GE"}  # equality tells the zeros apart, IEEE's does not
_ANY_NUMBER = "number "
_TOLD = "told apart "


def _input_name(term: Term) -> str | None:
    """The name of the number for which an input stands; None for other inputs."""
    name = str(term.attribute("name"))
    start = next((start for start in (_ANY_NUMBER, exact_functions.POSITIVE) if name.startswith(start)), None)
    return None if start is None else name.removeprefix(start).rsplit(" ", 1)[0]


def _side(expression: Any, named: Mapping[str | None, Term], type: Any) -> Term | None:
    """One side of a condition, where it is a number at hand, or a literal that is a number of the type exactly."""
    if isinstance(expression, Ref):
        return named.get(expression.name)
    if not isinstance(expression, Literal) or isinstance(expression.value, bool | str):
        return None
    value = float(expression.value)
    with np.errstate(over="ignore"):
        constant = np.asarray(value).astype(type.dtype.numpy)
    return make(CONSTANT.name, (), {"value": constant_of(constant, type.dtype)}) if float(constant) == value else None


def _constant(expression: Any, marks: Mapping[str, float], dtype: DType) -> Constant:
    """The constant that an expression of the numbers is, whose marks are as the left side has them."""
    stored = {name: float(np.asarray(mark).astype(dtype.numpy)) for name, mark in marks.items()}
    return scalar_constant(_value(expression, stored), dtype)


def _value(expression: Any, marks: Mapping[str, float]) -> Decimal:
    found = evaluate_scalar(expression, Scope(dict(marks)))
    assert isinstance(found, Decimal)
    return found


def _built(expression: Any, type: TensorType, signs: Signs) -> Term:
    """The number as a term of rank 0."""
    if isinstance(expression, Ref):
        sign = signs[expression.name]
        if sign == NOTHING:
            return make(CONSTANT.name, (), {"value": constant_of(np.asarray(0, type.dtype.numpy), type.dtype)})
        known = exact_functions.POSITIVE if sign == FINITE else _ANY_NUMBER
        number = input_term(f"{known}{expression.name} {type.dtype}", type)
        if sign in (ANY, FINITE):
            return number
        positive = make("stablehlo.exponential", (number,), {})
        return positive if sign == POSITIVE else make("stablehlo.negate", (positive,), {})
    if isinstance(expression, Call):
        operands = tuple(_built(argument, type, signs) for argument in expression.arguments)
        return make(f"stablehlo.{_ROUNDED[expression.function]}", operands, {})
    return make(CONSTANT.name, (), {"value": scalar_constant(_value(expression, NONE), type.dtype)})


def _written(rule: Rule) -> list[tuple[str, Any]]:
    """The attributes of both sides by name; one that a definition tells apart is called so."""
    found: list[tuple[str, Any]] = []
    for side, written in ((rule.left, rule.compiled.left), (rule.right, rule.compiled.right)):
        ops = {node.index: node.op for node in applications(side)}
        for index, attributes in enumerate(written):
            told = {name for name, _ in attributes.items if name in _TAKEN and tells(ops[index], name)}
            found += [(f"{_TOLD}{name}" if name in told else name, value) for name, value in attributes.items]
    return found


def _conditions(rule: Rule) -> list[Any]:
    return [*rule.compiled.conditions, *(guard for guards in rule.compiled.guards for guard in guards)]


def _only_put(rule: Rule, name: str, names: frozenset[str], *, plain: Callable[[Any], bool]) -> bool:
    """Whether each attribute has the name alone or as a scalar, and each condition that has it speaks of numbers only."""
    using = [(attribute, value) for attribute, value in _written(rule) if name in _names(value)]
    if any(not _bare(attribute, value, names, plain) for attribute, value in using):
        return False
    return all(_of_numbers(condition, names) for condition in _conditions(rule) if name in _names(condition))


def _computed_with(rule: Rule, name: str) -> bool:
    return any(isinstance(value, Scalar) and not isinstance(value.value, Ref) and name in _names(value) for _, value in _written(rule))


def _names(expression: Any) -> frozenset[str]:
    return frozenset(part.name for part in parts(expression) if isinstance(part, Ref))


def _bare(attribute: str, expression: Any, names: frozenset[str], plain: Callable[[Any], bool]) -> bool:
    value = expression.value if isinstance(expression, Scalar) else expression if attribute in _TAKEN else None
    return isinstance(value, Ref) or (isinstance(expression, Scalar) and _names(value) <= names and plain(value))


def _plain(expression: Any) -> bool:
    """True for sums, products and quotients of names and numbers."""
    return all(isinstance(p, Ref | Literal) or (isinstance(p, Call) and p.function in _COMPUTED) for p in parts(expression))


def _one_operation(expression: Any) -> bool:
    """True for one operation of names: what it is of numbers of a type, rounded once, is what the type's operation gives."""
    return isinstance(expression, Call) and expression.function in _ROUNDED and all(isinstance(a, Ref) for a in expression.arguments)


def _of_numbers(condition: Any, names: frozenset[str]) -> bool:
    """True for a condition made of numbers only: which of them it takes does not depend on shapes."""
    return all(isinstance(part, Call | Literal) or (isinstance(part, Ref) and part.name in names) for part in parts(condition))


# ---------------------------------------------------------------- what conditions say of a number


def _taken_for(rule: Rule, name: str, *, real: bool, rounded: bool) -> tuple[str, ...]:
    if real:
        return _signs(rule, name) if _computed_with(rule, name) else (ANY,)
    return (FINITE,) if not rounded and _signs(rule, name) == (POSITIVE,) and _bounded(rule, name) else (ANY,)


def _bounded(rule: Rule, name: str) -> bool:
    """Whether a condition says that a number is less than some other one."""
    return any(
        isinstance(condition, Call) and condition.function == "<" and condition.arguments[0] == Ref(name)
        and isinstance(condition.arguments[1], Literal)
        for condition in rule.compiled.conditions
    )  # fmt: skip


def _signs(rule: Rule, name: str) -> tuple[str, ...]:
    """The signs that the conditions leave to a number."""
    obligations.about(rule.name)
    variables = {one: z3.Real(one) for condition in _conditions(rule) for one in (*_names(condition), name)}
    told = [fact for fact in (_fact(condition, variables) for condition in rule.compiled.conditions) if fact is not None]
    number = variables.setdefault(name, z3.Real(name))

    def possible(case: Any) -> bool:
        solver = z3.Solver()
        solver.add(*told, case)
        return not obligations.unsatisfiable(solver, f"`{name}` has this sign", steps=_STEPS)

    cases = ((POSITIVE, number > 0), (NEGATIVE, number < 0), (NOTHING, number == 0))
    return tuple(sign for sign, case in cases if possible(case))


def _fact(condition: Any, variables: Mapping[str, Any]) -> Any:
    """A comparison of numbers as one of reals; None for another condition, which is left out."""
    if not isinstance(condition, Call) or condition.function not in _COMPARED or not _names(condition):
        return None
    sides = [_real(argument, variables) for argument in condition.arguments]
    return None if any(side is None for side in sides) else _COMPARED[condition.function](*sides)


def _real(expression: Any, variables: Mapping[str, Any]) -> Any:
    if isinstance(expression, Ref):
        return variables.get(expression.name)
    if isinstance(expression, Literal) and isinstance(expression.value, int | float | Decimal) and not isinstance(expression.value, bool):
        if not Decimal(expression.value).is_finite():
            return None
        return z3.RealVal(str(Decimal(expression.value)))
    if isinstance(expression, Call) and expression.function in ("+", "-", "*"):
        operands: Sequence[Any] = [_real(argument, variables) for argument in expression.arguments]
        if all(operand is not None for operand in operands):
            first, second = operands
            return {"+": first + second, "-": first - second, "*": first * second}[expression.function]
    return None


_COMPARED: Mapping[str, Any] = {
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}  # fmt: skip
