"""The index algebra: expressions over dims, permutations, lists, scalars and types; pure, closed, and documented in `functions.FUNCTIONS`.

An expression is data, and `evaluate` computes it; `coset.rules.solving` reads it from right to left. Truth has three values: a comparison
of symbolic dims that nothing decides is *unknown* (`Undecided`), and a rule whose condition is unknown does not fire.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Union

from coset.ir.op import Op
from coset.ir.term import Region
from coset.ir.types import TensorType, Type
from coset.rules.arithmetic import Undecided, as_list
from coset.rules.judged import JUDGED, judged
from coset.rules.operations import OPERATIONS
from coset.rules.scalar import Undefined, number_in, scalar_constant, scalar_operation

if TYPE_CHECKING:  # the checker of certificates needs no syntax
    from coset.rules import syntax


class Unbound(Exception):
    """A variable has no value yet: the constraint waits until another one binds it."""


@dataclass(frozen=True)
class Literal:
    """A value that the rule writes down."""

    value: Any


@dataclass(frozen=True)
class Ref:
    """A variable of the index algebra: a dim, a pack, a dtype, an attribute."""

    name: str


@dataclass(frozen=True)
class Splice:
    """A list inside a list, `S..`; without a name it is a wildcard."""

    value: "Expression | None"


@dataclass(frozen=True)
class Listing:
    """A list with spliced lists in it."""

    items: tuple["Expression | Splice", ...]


@dataclass(frozen=True)
class Call:
    """A function of the table below."""

    function: str
    arguments: tuple["Expression", ...]


@dataclass(frozen=True)
class MappedList:
    """The list of `item` for the items of `lists`, taken in step under `names`, where `condition` holds."""

    item: "Expression"
    names: tuple[str, ...]
    lists: tuple["Expression", ...]
    condition: "Expression"


@dataclass(frozen=True)
class Wild:
    """`_`: any value."""


@dataclass(frozen=True)
class TypeOf:
    """The type of a term variable (`kind` variable), or of an application of the left or right side, by index."""

    kind: str
    key: Any


@dataclass(frozen=True)
class Scalar:
    """The rank-0 constant that `value` is after one rounding to `dtype`."""

    value: "Expression"
    dtype: "Expression"


@dataclass(frozen=True)
class PayloadFunction:
    """A payload function that a rule writes down: its text, the names of the algebra in it (`free`), and the dialects and ops that it may
    name. It has a value (a `Region`) where the types of its parameters are known: `region_of`."""

    written: syntax.Lambda
    free: tuple[Ref, ...]
    dialects: tuple[tuple[str, str], ...]
    ops: tuple[tuple[str, Op], ...]


Expression = Union[Literal, Ref, Listing, MappedList, Call, Wild, TypeOf, Scalar, PayloadFunction]


@dataclass
class Scope:
    """What is known while a rule is decided: values of names, and types by variable and by index of application. `promise` is the word of
    the rule's numerics: facts about payload functions are those that it allows."""

    values: dict[str, Any] = field(default_factory=dict)
    variables: Mapping[str, Type] = field(default_factory=dict)
    left: Sequence[Type | None] = ()
    right: Sequence[Type | None] = ()
    promise: str = "exact"

    def type_of(self, reference: TypeOf) -> TensorType:
        """The tensor type that `reference` names.

        Raises:
            Unbound: it is not known yet.
            Undefined: it is no tensor of known rank.
        """
        found = self.variables.get(reference.key) if reference.kind == "variable" else getattr(self, reference.kind)[reference.key]
        if found is None:
            raise Unbound
        if not isinstance(found, TensorType) or found.shape is None:
            raise Undefined
        return found


def evaluate(expression: Expression, scope: Scope) -> Any:
    """The value of `expression`.

    Raises:
        Unbound: a variable has no value yet.
        Undefined: there is no such value (index out of range, division that leaves a rest, undecided comparison).
    """
    if isinstance(expression, Call):
        if expression.function in ("and", "or"):
            return _connective(expression, scope)
        if expression.function == "if":
            return evaluate(_branch(expression, scope), scope)
        if expression.function in JUDGED:
            return judged(expression.function, [evaluate(argument, scope) for argument in expression.arguments], scope.promise)
        compute = OPERATIONS.get(expression.function)
        if compute is None and expression.function in SCALAR_FUNCTIONS:
            return evaluate_scalar(expression, scope)
        if compute is None:
            from coset.rules.native import find_native  # the user's own functions: few rules call one

            native = find_native(expression.function)
            assert native is not None, f"there is no function {expression.function}"
            compute = native.compute
        return compute(*[evaluate(argument, scope) for argument in expression.arguments])
    if isinstance(expression, Ref):
        if expression.name not in scope.values:
            raise Unbound
        return scope.values[expression.name]
    if isinstance(expression, Literal):
        return expression.value
    if isinstance(expression, Listing):
        items: list[Any] = []
        for item in expression.items:
            if isinstance(item, Splice):
                if item.value is None:
                    raise Unbound
                items.extend(as_list(evaluate(item.value, scope)))
            else:
                items.append(evaluate(item, scope))
        return tuple(items)
    if isinstance(expression, MappedList):
        return _comprehension(expression, scope)
    if isinstance(expression, TypeOf):
        return scope.type_of(expression)
    if isinstance(expression, Scalar):
        return scalar_constant(evaluate_scalar(expression.value, scope), evaluate(expression.dtype, scope))
    raise Unbound


def evaluate_scalar(expression: Expression, scope: Scope) -> Any:
    """The value of a scalar expression as an exact or 60-digit Decimal: `1/3` is a third here, and not a dim division.

    Raises:
        Unbound, Undefined: as `evaluate`.
    """
    if isinstance(expression, Call) and expression.function in SCALAR_FUNCTIONS:
        return scalar_operation(expression.function, [evaluate_scalar(argument, scope) for argument in expression.arguments])
    if isinstance(expression, Call) and expression.function == "if":
        return evaluate_scalar(_branch(expression, scope), scope)
    return number_in(evaluate(expression, scope))


SCALAR_FUNCTIONS = frozenset({"+", "-", "*", "/", "negate", "sqrt", "exp", "log", "pi"})


def _branch(expression: Call, scope: Scope) -> Expression:
    """The side of a conditional that is chosen; the other one needs no value."""
    condition, chosen, other = expression.arguments
    return chosen if evaluate(condition, scope) else other


def _comprehension(expression: MappedList, scope: Scope) -> tuple[Any, ...]:
    lists = [as_list(evaluate(each, scope)) for each in expression.lists]
    if len({len(each) for each in lists}) != 1:
        raise Undefined
    inner = Scope(dict(scope.values), scope.variables, scope.left, scope.right, scope.promise)
    found = []
    for items in zip(*lists, strict=True):
        inner.values.update(zip(expression.names, items, strict=True))
        if evaluate(expression.condition, inner):
            found.append(evaluate(expression.item, inner))
    return tuple(found)


def _connective(expression: Call, scope: Scope) -> bool:
    """Kleene's `and` and `or`: an unknown operand does not matter where the other one decides."""
    deciding, undecided = expression.function == "or", False
    for argument in expression.arguments:
        try:
            if bool(evaluate(argument, scope)) is deciding:
                return deciding
        except Undecided:
            undecided = True
    if undecided:
        raise Undecided
    return not deciding


def region_of(function: PayloadFunction, types: Sequence[Type], scope: Scope) -> Region:
    """The payload function that `function` is over parameters of these types.

    Raises:
        Unbound, Undefined: as `evaluate`.
    """
    from coset.rules.bodies import built  # which drafts terms, and so reads the algebra

    return built(function, types, scope)
