"""The index algebra: expressions over dims, permutations, lists, scalars and types; pure, closed, and documented in `FUNCTIONS`.

An expression is data. `evaluate` computes it; `match` reads it from right to left against a value and binds what is
unbound. Truth has three values: a comparison of symbolic dims that nothing decides is *unknown* (`Undecided`), and a rule
whose condition is unknown does not fire.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Union

from coset.ir import dims
from coset.ir.constants import Constant
from coset.ir.dims import Dim, Poly
from coset.ir.types import DType, TensorType, Type
from coset.rules.scalar import Undefined, number_in, scalar_constant, scalar_operation


class Unbound(Exception):
    """A variable has no value yet: the constraint waits until another one binds it."""


class Undecided(Undefined):
    """A comparison of symbolic dims that their canonical forms do not settle."""


@dataclass(frozen=True)
class Literal:
    """A value that the rule writes down."""

    value: Any

    def __str__(self) -> str:
        return f'"{self.value}"' if isinstance(self.value, str) else str(self.value)


@dataclass(frozen=True)
class Ref:
    """A variable of the index algebra: a dim, a pack, a dtype, an attribute."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Splice:
    """A list inside a list, `S..`; without a name it is a wildcard."""

    value: "Expression | None"

    def __str__(self) -> str:
        return f"{self.value or ''}.."


@dataclass(frozen=True)
class Listing:
    """A list with spliced lists in it."""

    items: tuple["Expression | Splice", ...]

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.items))}]"


@dataclass(frozen=True)
class Call:
    """A function of the table below."""

    function: str
    arguments: tuple["Expression", ...]

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.arguments))})"


@dataclass(frozen=True)
class Wild:
    """`_`: any value."""

    def __str__(self) -> str:
        return "_"


@dataclass(frozen=True)
class TypeOf:
    """The type of a term variable (`kind` variable), or of an application of the left or right side, by index."""

    kind: str
    key: Any

    def __str__(self) -> str:
        return f"type({self.kind} {self.key})"


@dataclass(frozen=True)
class Scalar:
    """The rank-0 constant that `value` is after one rounding to `dtype`."""

    value: "Expression"
    dtype: "Expression"

    def __str__(self) -> str:
        return f"scalar({self.value}: {self.dtype})"


Expression = Union[Literal, Ref, Listing, Call, Wild, TypeOf, Scalar]


@dataclass
class Scope:
    """What is known while a rule is decided: values of names, and types by variable and by index of application."""

    values: dict[str, Any] = field(default_factory=dict)
    variables: Mapping[str, Type] = field(default_factory=dict)
    left: Sequence[Type | None] = ()
    right: Sequence[Type | None] = ()

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
    if isinstance(expression, Literal):
        return expression.value
    if isinstance(expression, Ref):
        if expression.name not in scope.values:
            raise Unbound
        return scope.values[expression.name]
    if isinstance(expression, Listing):
        items: list[Any] = []
        for item in expression.items:
            if isinstance(item, Splice):
                if item.value is None:
                    raise Unbound
                items.extend(_as_list(evaluate(item.value, scope)))
            else:
                items.append(evaluate(item, scope))
        return tuple(items)
    if isinstance(expression, Call):
        if expression.function in ("and", "or"):
            return _connective(expression, scope)
        return FUNCTIONS[expression.function].compute(*(evaluate(argument, scope) for argument in expression.arguments))
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
    return number_in(evaluate(expression, scope))


SCALAR_FUNCTIONS = frozenset({"+", "-", "*", "/", "negate", "sqrt", "exp", "log", "pi"})


def _connective(expression: Call, scope: Scope) -> bool:
    """Kleene's `and` and `or`: an unknown operand does not matter where the other one decides."""
    deciding = expression.function == "or"
    undecided = False
    for argument in expression.arguments:
        try:
            if bool(evaluate(argument, scope)) is deciding:
                return deciding
        except Undecided:
            undecided = True
    if undecided:
        raise Undecided
    return not deciding


def match(pattern: Expression, value: Any, scope: Scope) -> bool:
    """True when `pattern` is `value`; unbound variables of `pattern` are bound in `scope`.

    Raises:
        Unbound: `pattern` cannot be read from right to left yet.
        Undefined: `pattern` has no value.
    """
    if isinstance(pattern, Wild):
        return True
    if isinstance(pattern, Ref) and pattern.name not in scope.values:
        scope.values[pattern.name] = value
        return True
    if isinstance(pattern, Listing):
        return isinstance(value, tuple) and _match_list(pattern.items, value, scope)
    if isinstance(pattern, Scalar):
        return _match_scalar(pattern, value, scope)
    try:
        return same(evaluate(pattern, scope), value)
    except Unbound:
        if not isinstance(pattern, Call):
            raise
    return _solve(pattern, value, scope)


def _match_list(items: Sequence[Expression | Splice], values: tuple[Any, ...], scope: Scope) -> bool:
    lengths: list[int | None] = []
    for item in items:
        if not isinstance(item, Splice):
            lengths.append(1)
            continue
        try:
            lengths.append(None if item.value is None else len(_as_list(evaluate(item.value, scope))))
        except Unbound:
            lengths.append(None)
    open_places = lengths.count(None)
    known = sum(length for length in lengths if length is not None)
    if open_places > 1:
        raise Unbound
    if known > len(values) or (not open_places and known != len(values)):
        return False
    start = 0
    for item, length in zip(items, lengths, strict=True):
        width = len(values) - known if length is None else length
        part = values[start : start + width]
        start += width
        if isinstance(item, Splice):
            if item.value is not None and not match(item.value, part, scope):
                return False
        elif not match(item, part[0], scope):
            return False
    return True


def _match_scalar(pattern: Scalar, value: Any, scope: Scope) -> bool:
    if not isinstance(value, Constant) or value.type.shape != ():
        return False
    dtype = evaluate(pattern.dtype, scope)
    if value.type.dtype != dtype or dtype.kind == "complex":
        return False
    if isinstance(pattern.value, Ref) and pattern.value.name not in scope.values:
        element = value.array().item() if dtype.kind in ("int", "uint", "bool") else float(value.array().astype("float64"))
        scope.values[pattern.value.name] = element
        return True
    return scalar_constant(evaluate_scalar(pattern.value, scope), dtype).key == value.key


def _solve(call: Call, value: Any, scope: Scope) -> bool:
    """Solve `call == value` for the one unbound variable, where that is plain: sums, differences, and remainders."""
    if call.function not in ("+", "-", "%", "negate") or not isinstance(value, int | Poly):
        raise Unbound
    if call.function == "negate":
        return match(call.arguments[0], dims.multiply(-1, value), scope)
    first, second = call.arguments
    if call.function == "%":  # the canonical representative: x % n == v is solved by x = v
        bound = evaluate(second, scope)
        return same(FUNCTIONS["%"].compute(value, bound), value) and match(first, value, scope)
    try:
        known = evaluate(second, scope)
        return match(first, FUNCTIONS["-" if call.function == "+" else "+"].compute(value, known), scope)
    except Unbound:
        known = evaluate(first, scope)
    rest = dims.subtract(value, known) if call.function == "+" else dims.subtract(known, value)
    return match(second, rest, scope)


def same(a: Any, b: Any) -> bool:
    """True when two values are known to be equal: dims by canonical form, floats bit for bit, constants by key."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, float):
        return a.hex() == b.hex() or (a != a and b != b)
    return bool(a == b)


def _as_list(value: Any) -> tuple[Any, ...]:
    if isinstance(value, TensorType):
        return value.dims
    if not isinstance(value, tuple):
        raise Undefined
    return value


# ---------------------------------------------------------------- the functions


@dataclass(frozen=True)
class Function:
    """One function of the algebra: how it is written, what it is, how it is computed."""

    usage: str
    document: str
    compute: Callable[..., Any]
    arity: tuple[int, int]


def _number(value: Any) -> Dim:
    if isinstance(value, bool) or not isinstance(value, int | Poly):
        raise Undefined
    return value


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise Undefined
    return value


def _add(a: Any, b: Any) -> Any:
    if isinstance(a, tuple) or isinstance(b, tuple):
        return _as_list(a) + _as_list(b)
    return dims.add(_number(a), _number(b))


def _exact(a: Any, b: Any) -> Dim:
    a, b = _number(a), _number(b)
    quotient = (a // b if b and a % b == 0 else None) if isinstance(a, int) and isinstance(b, int) else dims.divide_exactly(a, b)
    if quotient is None:
        raise Undefined
    return quotient


def _nonzero(compute: Callable[[Dim, Dim], Dim]) -> Callable[[Any, Any], Dim]:
    def guarded(a: Any, b: Any) -> Dim:
        if _number(b) == 0:
            raise Undefined
        return compute(_number(a), b)

    return guarded


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, TensorType):
        a = a if isinstance(b, TensorType) else a.dims
    if isinstance(a, tuple) and isinstance(b, tuple):
        if len(a) != len(b):
            return False
        verdicts = [_equal_or_none(x, y) for x, y in zip(a, b, strict=True)]
        if False in verdicts:
            return False
        if None in verdicts:
            raise Undecided
        return True
    if isinstance(a, Poly) or isinstance(b, Poly):
        if not isinstance(a, int | Poly) or not isinstance(b, int | Poly):
            return False
        difference = dims.subtract(a, b)
        if not isinstance(difference, int):
            raise Undecided
        return difference == 0
    return same(a, b)


def _equal_or_none(a: Any, b: Any) -> bool | None:
    try:
        return _equal(a, b)
    except Undecided:
        return None


def _less(a: Any, b: Any) -> bool:
    if isinstance(a, float) or isinstance(b, float):
        return bool(a < b)
    difference = dims.subtract(_number(a), _number(b))
    if not isinstance(difference, int):
        raise Undecided
    return difference < 0


def _contains(item: Any, items: Any) -> bool:
    verdicts = [_equal_or_none(item, other) for other in _as_list(items)]
    if True in verdicts:
        return True
    if None in verdicts:
        raise Undecided
    return False


def _permutation(p: Any) -> tuple[int, ...]:
    items = tuple(_integer(item) for item in _as_list(p))
    if sorted(items) != list(range(len(items))):
        raise Undefined
    return items


def _compose(p: Any, q: Any) -> tuple[int, ...]:
    first, second = _permutation(p), _permutation(q)
    if len(first) != len(second):
        raise Undefined
    return tuple(first[i] for i in second)


def _inverse(p: Any) -> tuple[int, ...]:
    items = _permutation(p)
    return tuple(items.index(i) for i in range(len(items)))


def _item(items: Any, index: Any) -> Any:
    found = _as_list(items)
    if not -len(found) <= _integer(index) < len(found):
        raise Undefined
    return found[index]


def _slice(items: Any, start: Any, stop: Any) -> tuple[Any, ...]:
    return _as_list(items)[None if start is None else _integer(start) : None if stop is None else _integer(stop)]


def _permute(items: Any, p: Any) -> tuple[Any, ...]:
    return tuple(_item(items, i) for i in _as_list(p))


def _without(count: Any, axes: Any) -> tuple[int, ...]:
    length = _integer(count)
    dropped = {_integer(axis) % length for axis in _as_list(axes)} if length else set()
    return tuple(i for i in range(length) if i not in dropped)


def _join(first: Any, second: Any) -> tuple[int, ...]:
    """Axes of the operand that reducing over `first` and then, in what is left, over `second` removes."""
    inner, outer = sorted(map(_integer, _as_list(first))), sorted(map(_integer, _as_list(second)))
    left = [i for i in range(len(inner) + (max(outer) + 1 if outer else 0)) if i not in inner]
    return tuple(sorted(inner + [left[i] for i in outer]))


def _broadcast(a: Any, b: Any) -> tuple[Dim, ...]:
    first, second = _as_list(a), _as_list(b)
    result: list[Dim] = []
    for x, y in itertools.zip_longest(reversed(first), reversed(second), fillvalue=1):
        if x != 1 and y != 1 and not _equal(x, y):
            raise Undefined
        result.append(y if x == 1 else x)
    return tuple(reversed(result))


def _batch_axes(a: Any, b: Any) -> tuple[int, ...]:
    """The batch axes of `a @ b`: none under a matrix on the right, all but the last two of equal ranks of three and more."""
    left, right = len(_as_list(a)), len(_as_list(b))
    if right == 2 and left >= 2:
        return ()
    if left != right or left < 3:
        raise Undefined
    return tuple(range(left - 2))


def _swap_last(a: Any) -> tuple[int, ...]:
    count = len(_as_list(a))
    if count < 2:
        raise Undefined
    return (*range(count - 2), count - 1, count - 2)


def _expanding_axes(a: Any, shape: Any) -> tuple[int, ...]:
    """The axes of `a` whose dim is 1 and which broadcasting `a` to `shape` repeats, numpy's way."""
    own, target = _as_list(a), _as_list(shape)
    offset = len(target) - len(own)
    if offset < 0:
        raise Undefined
    found = []
    for axis, dim in enumerate(own):
        if not _equal(dim, target[offset + axis]):
            if dim != 1:
                raise Undefined
            found.append(axis)
    return tuple(found)


def _placement(own: Any, shape: Any) -> tuple[int, ...]:
    """The places of the dims of one shape in another one that has only dims of 1 besides."""
    target, found = list(_as_list(shape)), []
    for dim in _as_list(own):
        start = found[-1] + 1 if found else 0
        while start < len(target) and target[start] == 1 and dim != 1:
            start += 1
        if start >= len(target) or not _equal(target[start], dim):
            raise Undefined
        found.append(start)
    if any(dim != 1 for axis, dim in enumerate(target) if axis not in found):
        raise Undefined
    return tuple(found)


def _static(value: Any) -> bool:
    items = _as_list(value) if isinstance(value, tuple | TensorType) else (value,)
    return all(isinstance(item, int) for item in items)


def _dtype(value: Any) -> DType:
    if not isinstance(value, TensorType):
        raise Undefined
    return value.dtype


def _widens(a: Any, b: Any) -> bool:
    """Every value of dtype `a` is one of dtype `b`."""
    if not isinstance(a, DType) or not isinstance(b, DType):
        raise Undefined
    if a == b:
        return True
    order = {"bf16": {"f32", "f64"}, "f16": {"f32", "f64"}, "f32": {"f64"}}
    if a.kind == "float" or a.kind == "bool":
        return a.kind == "bool" and b.kind in ("int", "uint", "float") if a.kind == "bool" else b.name in order.get(a.name, set())
    if a.kind in ("int", "uint") and b.kind in ("int", "uint"):
        return (a.kind == b.kind and a.bits < b.bits) or (a.kind == "uint" and b.kind == "int" and a.bits < b.bits)
    precision = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}.get(b.name, 0)
    return a.kind in ("int", "uint") and a.bits - (a.kind == "int") <= precision




FUNCTIONS: dict[str, Function] = {
    "+": Function("a + b", "the sum of two dims; of two lists their concatenation", _add, (2, 2)),
    "-": Function("a - b", "the difference of two dims", lambda a, b: dims.subtract(_number(a), _number(b)), (2, 2)),
    "*": Function("a * b", "the product of two dims", lambda a, b: dims.multiply(_number(a), _number(b)), (2, 2)),
    "/": Function("a / b", "the quotient of two dims; undefined unless it is known to leave no rest", _exact, (2, 2)),
    "//": Function("a // b", "the quotient rounded down", _nonzero(dims.floordiv), (2, 2)),
    "%": Function("a % b", "the rest of a // b, with b's sign", _nonzero(dims.mod), (2, 2)),
    "negate": Function("-a", "the negative of a dim", lambda a: dims.multiply(-1, _number(a)), (1, 1)),
    "min": Function("min(a, b)", "the smaller dim", lambda a, b: dims.minimum(_number(a), _number(b)), (2, 2)),
    "max": Function("max(a, b)", "the larger dim", lambda a, b: dims.maximum(_number(a), _number(b)), (2, 2)),
    "==": Function("a == b", "equality; unknown for symbolic dims that differ by no number", _equal, (2, 2)),
    "!=": Function("a != b", "the negation of ==", lambda a, b: not _equal(a, b), (2, 2)),
    "<": Function("a < b", "order of dims; unknown unless they differ by a number", _less, (2, 2)),
    "<=": Function("a <= b", "not b < a", lambda a, b: not _less(b, a), (2, 2)),
    ">": Function("a > b", "b < a", lambda a, b: _less(b, a), (2, 2)),
    ">=": Function("a >= b", "not a < b", lambda a, b: not _less(a, b), (2, 2)),
    "in": Function("a in p", "true when a is an item of the list p", _contains, (2, 2)),
    "not": Function("not a", "the negation", lambda a: not a, (1, 1)),
    "and": Function("a and b", "both", lambda a, b: a and b, (2, 2)),
    "or": Function("a or b", "one of them", lambda a, b: a or b, (2, 2)),
    "rank": Function("rank(x)", "the number of dims of a term variable", lambda t: len(_as_list(t)), (1, 1)),
    "dims": Function("dims(x)", "the shape of a term variable, as a list", lambda t: _as_list(t), (1, 1)),
    "dtype": Function("dtype(x)", "the element type of a term variable", _dtype, (1, 1)),
    "len": Function("len(p)", "the number of items of a list", lambda p: len(_as_list(p)), (1, 1)),
    "range": Function("range(n) or range(a, b)", "0 .. n-1, or a .. b-1, as a list", lambda *a: tuple(range(*map(_integer, a))), (1, 2)),
    "repeat": Function("repeat(v, n)", "the list of n times v", lambda v, n: (v,) * _integer(n), (2, 2)),
    "product": Function("product(p)", "the product of a list of dims", lambda p: dims.product(_number(d) for d in _as_list(p)), (1, 1)),
    "item": Function("p[i]", "item i of a list; from the end where i < 0", _item, (2, 2)),
    "slice": Function("p[a:b]", "items a .. b-1 of a list", _slice, (3, 3)),
    "compose": Function("compose(p, q)", "the permutation of transpose(transpose(x, p), q)", _compose, (2, 2)),
    "inverse": Function("inverse(p)", "the permutation that undoes p", _inverse, (1, 1)),
    "permute": Function("permute(l, p)", "the list l[p[0]], l[p[1]], ...", _permute, (2, 2)),
    "sort": Function("sort(p)", "the integers of p in ascending order", lambda p: tuple(sorted(map(_integer, _as_list(p)))), (1, 1)),
    "without": Function("without(n, axes)", "0 .. n-1 less the axes: what a reduction keeps", _without, (2, 2)),
    "join": Function("join(A, B)", "the axes that reducing over A and then over B removes", _join, (2, 2)),
    "broadcast": Function("broadcast(A, B)", "the common shape of two shapes, numpy's way", _broadcast, (2, 2)),
    "placement": Function("placement(S, B)", "the axes of B that hold the dims of S, all other dims of B being 1", _placement, (2, 2)),
    "static": Function("static(e)", "true when a dim, list or shape has no symbol", _static, (1, 1)),
    "lossless": Function("lossless(A, B)", "true when every value of dtype A is one of dtype B", _widens, (2, 2)),
    "batch_axes": Function("batch_axes(a, b)", "the batch axes of a @ b", _batch_axes, (2, 2)),
    "swap_axes": Function("swap_axes(x)", "the permutation that swaps the last two axes", _swap_last, (1, 1)),
    "expanding": Function("expanding(x, S)", "the size-1 axes of x that broadcasting to S repeats", _expanding_axes, (2, 2)),
}
