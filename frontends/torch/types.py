"""What torch says of values, in our words: element types, sizes with symbols as dims, numbers that only a run tells as terms."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, reduce
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true

from coset.dialects.aten.node import NoTerm
from coset.dialects.hub.terms import convert
from coset.dialects.onnx.arithmetic import add, counted, divide, exp, log, multiply, power, sqrt
from coset.ir import dims
from coset.ir.dims import Dim
from coset.ir.term import Term, constant
from coset.ir.types import DTYPES, F64, DType, TensorType

_DTYPES: dict[Any, str] = {
    torch.float64: "f64", torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.int64: "i64", torch.int32: "i32",
    torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8", torch.bool: "bool", torch.complex64: "c64", torch.complex128: "c128",
    torch.float8_e4m3fn: "f8e4m3fn", torch.float8_e5m2: "f8e5m2", torch.uint16: "u16", torch.uint32: "u32", torch.uint64: "u64",
}  # fmt: skip


def dtype_of(dtype: Any) -> DType:
    """Our element type.

    Raises:
        NoTerm: we have none.
    """
    if dtype not in _DTYPES:
        raise NoTerm(f"elements of {dtype} have no type here")
    return DTYPES[_DTYPES[dtype]]


@cache
def saturating() -> frozenset[str]:
    """Our names of the 8-bit floats to which the torch that is installed converts numbers out of range as their largest one (float8_e4m3fn
    from torch 2.13 on: before, they were NaN)."""
    beyond = torch.full((1,), float("inf"), device="cpu")
    return frozenset(name for dtype, name in _DTYPES.items() if name.startswith("f8") and bool(beyond.to(dtype).float().isfinite()))


# ---------------------------------------------------------------- promotion

_STAND_INS = {torch.SymInt: 1, torch.SymFloat: 1.0, torch.SymBool: True}
_WEIGHTS = ("number", "scalar", "dims")  # what an operand is, and from the weakest to the strongest what it has to say


def promoted(operands: Iterable[Any]) -> DType | None:
    """The element type that torch computes operands in: tensors with dims decide before those without, these before numbers, unless
    the weaker one is of a higher kind. None where there is neither a tensor nor a number."""
    found: dict[str, Any] = {}
    for each in operands:
        one = _STAND_INS.get(type(each), each)
        if isinstance(one, torch.Tensor):
            weight, dtype = "dims" if one.dim() else "scalar", one.dtype
        elif isinstance(one, bool | int | float | complex):
            weight, dtype = "number", torch.tensor(one).dtype if isinstance(one, complex) else _OF_NUMBER[type(one)]()
        else:
            continue
        found[weight] = dtype if weight not in found else torch.promote_types(found[weight], dtype)
    if not found:
        return None
    listed = [found[weight] for weight in _WEIGHTS if weight in found]
    total = listed[0]
    for stronger in listed[1:]:
        total = torch.promote_types(stronger, total) if _kind(total) > _kind(stronger) else stronger
    return dtype_of(total)


_OF_NUMBER: dict[type, Callable[[], Any]] = {bool: lambda: torch.bool, int: lambda: torch.int64, float: torch.get_default_dtype}


def _kind(dtype: Any) -> int:
    return 3 if dtype.is_complex else 2 if dtype.is_floating_point else 0 if dtype == torch.bool else 1


# ---------------------------------------------------------------- sizes


def _quotient(a: Dim, b: Dim) -> Dim:
    return dims.floordiv(a, b)


_FUNCTIONS: dict[str, Callable[..., Dim]] = {
    "FloorDiv": _quotient, "CleanDiv": _quotient, "Mod": dims.mod, "PythonMod": dims.mod, "CeilDiv": dims.ceildiv,
    "Max": lambda *args: reduce(dims.maximum, args), "Min": lambda *args: reduce(dims.minimum, args),
    "Add": lambda *args: reduce(dims.add, args), "Mul": lambda *args: dims.product(args),
    "ModularIndexing": lambda a, b, c: dims.mod(dims.floordiv(a, b), c), "Identity": lambda a: a,
    "PowByNatural": lambda a, b: _power(a, b), "Pow": lambda a, b: _power(a, b),
}  # fmt: skip


def _power(base: Dim, exponent: Dim) -> Dim:
    if not isinstance(exponent, int) or exponent < 0:
        raise NoTerm(f"the size {base} to the power {exponent} is no dim here")
    return dims.product([base] * exponent)


def dim_of_expression(expression: Any) -> Dim:
    """A size that sympy has as a dim; deep only as the expression is.

    Raises:
        NoTerm: it is an expression that dims do not have.
    """
    if expression.is_Integer:
        return int(expression)
    if expression.is_Symbol:
        return dims.symbol(str(expression))
    function = _FUNCTIONS.get(type(expression).__name__)
    if function is None or not all(getattr(each, "is_integer", False) or each.is_Symbol for each in expression.args):
        raise NoTerm(f"the size {expression} is no dim here")
    return function(*map(dim_of_expression, expression.args))


class TorchSizes:
    """The sizes in a graph as dims. torch's symbols keep their names; sizes that torch's guards make equal are one dim, that of the first
    one seen. `hints` are the numbers that symbols have in the call that is compiled for: those that depend on data have none."""

    def __init__(self) -> None:
        self.hints: dict[str, int] = {}
        self._known: dict[Any, Dim] = {}  # by what sympy has
        self._first: list[tuple[Any, Dim]] = []

    def dim(self, size: Any) -> Dim:
        """The dim of an int or SymInt.

        Raises:
            NoTerm: it is an expression that dims do not have.
        """
        if isinstance(size, int) and not isinstance(size, bool):
            return size
        expression = size.node.expr
        if expression not in self._known:
            self._learn(size)
            self._known[expression] = self._found(size, dim_of_expression(expression))
        return self._known[expression]

    def _found(self, size: Any, dim: Dim) -> Dim:
        if isinstance(dim, int) or not dims.symbols(dim) <= self.hints.keys():
            return dim
        number = dims.evaluate(dim, self.hints)
        if statically_known_true(size == number):
            return number
        for other, first in self._first:
            if dims.evaluate(first, self.hints) == number and statically_known_true(size == other):
                return first
        self._first.append((size, dim))
        return dim

    def _learn(self, size: Any) -> None:
        environment = size.node.shape_env
        known = getattr(environment, "backed_var_to_val", None) or environment.var_to_val
        self.hints |= {str(symbol): int(known[symbol]) for symbol in size.node.expr.free_symbols if symbol in known}

    def type(self, value: Any) -> TensorType:
        """The type of a (fake) tensor.

        Raises:
            NoTerm: it is no dense tensor of numbers.
        """
        if value.layout != torch.strided or value.is_quantized:
            raise NoTerm(f"a tensor in the layout {value.layout} has no type here")
        return TensorType(dtype_of(value.dtype), tuple(self.dim(size) for size in value.shape))

    def given(self, value: Any) -> Any:
        """A plain number as it is, a size as a dim, and a number made of sizes as a term.

        Raises:
            NoTerm: it is none of these.
        """
        if isinstance(value, bool | int | float):
            return value
        if isinstance(value, torch.SymInt):
            if may_be_negative(value):
                raise NoTerm("a number that a run gives is the size of nothing, and may be negative")
            return self.dim(value)
        if isinstance(value, torch.SymFloat):
            return number_of(value)
        raise NoTerm(f"a {type(value).__name__} that only a run tells has no term")


def may_be_negative(size: Any) -> bool:
    """True where a symbol of `size` may be below 0: then it is the size of nothing."""
    ranges = size.node.shape_env.var_to_range
    return any(symbol not in ranges or ranges[symbol].lower < 0 for symbol in size.node.expr.free_symbols)


# ---------------------------------------------------------------- numbers

_OF_NUMBERS: dict[str, Callable[..., Term]] = {
    "Add": lambda *args: reduce(add, args), "Mul": lambda *args: reduce(multiply, args), "FloatTrueDiv": divide, "IntTrueDiv": divide,
    "FloatPow": power, "Pow": power, "OpaqueUnaryFn_sqrt": sqrt, "OpaqueUnaryFn_exp": exp, "OpaqueUnaryFn_log": log,
    "ToFloat": lambda a: a, "Identity": lambda a: a,
}  # fmt: skip


def number_of(value: Any) -> Term:
    """A number that only a run tells, from its sizes: a scalar of f64, in which Python computes.

    Raises:
        NoTerm: it is made by a function that has no term here, or of something else than sizes.
    """
    return _number(value.node.expr)


def _number(expression: Any) -> Term:
    if expression.is_Number:
        return constant(float(expression), F64)
    if expression.is_integer:
        return convert(counted(dim_of_expression(expression), F64), F64)
    function = _OF_NUMBERS.get(type(expression).__name__)
    if function is None:
        raise NoTerm(f"the number {expression} has no term here")
    return function(*map(_number, expression.args))
