"""Types of terms: tensors of known or unknown rank with symbolic dims, tuples, tokens, and foreign types kept as they came."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Union, cast

import ml_dtypes
import numpy as np

from coset.ir import dims
from coset.ir.dims import Dim, Shape
from coset.ir.errors import CosetError


@dataclass(frozen=True)
class DType:
    """An element type. `kind` is one of float, int, uint, bool, complex, string, quantized; `bits` is the storage of one element."""

    name: str
    kind: str
    bits: int
    numpy: np.dtype

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__

    def __hash__(self) -> int:
        return hash(self.name)  # types are keys everywhere, and NumPy's hash is slow

    @property
    def bytes(self) -> float:
        """Bytes of one element; half a byte for 4-bit types."""
        return self.bits / 8

    @property
    def along(self) -> int | None:
        """The dim along which equal elements stand for other numbers: that of quantized types with a scale for each index, else None."""
        return None


def _table() -> dict[str, DType]:
    rows: list[tuple[str, str, int, object]] = [
        ("f64", "float", 64, np.float64), ("f32", "float", 32, np.float32), ("f16", "float", 16, np.float16),
        ("bf16", "float", 16, ml_dtypes.bfloat16),
        ("f8e4m3fn", "float", 8, ml_dtypes.float8_e4m3fn), ("f8e5m2", "float", 8, ml_dtypes.float8_e5m2),
        ("f8e4m3fnuz", "float", 8, ml_dtypes.float8_e4m3fnuz), ("f8e5m2fnuz", "float", 8, ml_dtypes.float8_e5m2fnuz),
        ("f8e8m0fnu", "float", 8, ml_dtypes.float8_e8m0fnu), ("f4e2m1fn", "float", 4, ml_dtypes.float4_e2m1fn),
        ("i64", "int", 64, np.int64), ("i32", "int", 32, np.int32), ("i16", "int", 16, np.int16), ("i8", "int", 8, np.int8),
        ("i4", "int", 4, ml_dtypes.int4), ("i2", "int", 2, ml_dtypes.int2),
        ("u64", "uint", 64, np.uint64), ("u32", "uint", 32, np.uint32), ("u16", "uint", 16, np.uint16), ("u8", "uint", 8, np.uint8),
        ("u4", "uint", 4, ml_dtypes.uint4), ("u2", "uint", 2, ml_dtypes.uint2),
        ("bool", "bool", 8, np.bool_), ("c64", "complex", 64, np.complex64), ("c128", "complex", 128, np.complex128),
        ("string", "string", 64, np.object_),
    ]  # fmt: skip
    return {name: DType(name, kind, bits, np.dtype(numpy)) for name, kind, bits, numpy in rows}  # type: ignore[call-overload]


DTYPES = _table()
F64, F32, F16, BF16 = (DTYPES[n] for n in ("f64", "f32", "f16", "bf16"))
I64, I32, I8, U8, BOOL = (DTYPES[n] for n in ("i64", "i32", "i8", "u8", "bool"))
_BY_NUMPY = {dtype.numpy: dtype for dtype in DTYPES.values()}


def dtype_of(numpy: object) -> DType:
    """The dtype of a NumPy dtype or array type.

    Raises:
        CosetError: we have no such element type.
    """
    found = _BY_NUMPY.get(np.dtype(numpy))  # type: ignore[call-overload]
    if found is None:
        raise CosetError(f"element type {numpy} is not supported", help=f"known: {', '.join(DTYPES)}")
    return found


@dataclass(frozen=True)
class TensorType:
    """A tensor: element type and shape; `shape` is None only where a foreign graph gives no rank (kept in opaque terms)."""

    dtype: DType
    shape: Shape | None
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.dtype, self.shape)))

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        inner = "*" if self.shape is None else ", ".join(map(str, self.shape))
        return f"{self.dtype}[{inner}]"

    __repr__ = __str__

    @property
    def dims(self) -> Shape:
        """The shape of a tensor of known rank; asserts that it is known."""
        assert self.shape is not None, "rank is unknown"
        return self.shape

    @property
    def rank(self) -> int:
        """The number of dims; asserts that it is known."""
        return len(self.dims)

    @property
    def static(self) -> tuple[int, ...] | None:
        """The shape when every dim is a number, else None."""
        if self.shape is None:
            return None
        for dim in self.shape:  # no generator: this is asked of every term
            if not isinstance(dim, int):
                return None
        return cast(tuple[int, ...], self.shape)

    @property
    def elements(self) -> Dim:
        """The number of elements, symbolic where the shape is."""
        return dims.product(self.dims)

    def bytes(self, binding: dict[str, int]) -> float:
        """Bytes of the tensor with its symbols bound; 0 for an unknown rank."""
        return 0.0 if self.shape is None else dims.evaluate(self.elements, binding) * self.dtype.bytes


@dataclass(frozen=True)
class TupleType:
    """The results of an op with several of them."""

    items: tuple["Type", ...]

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.items))})"


@dataclass(frozen=True)
class TokenType:
    """The order of effects: passed from one effectful term to the next, so that none is doubled, dropped or moved."""

    def __str__(self) -> str:
        return "token"


@dataclass(frozen=True)
class ForeignType:
    """A value that is no tensor (sequence, map, optional): its serialized description, kept as it came."""

    format: str
    description: bytes

    def __str__(self) -> str:
        return f"{self.format} value"


@dataclass(frozen=True)
class AbsentType:
    """The type of `absent`: an optional operand that is not given."""

    def __str__(self) -> str:
        return "absent"


Type = Union[TensorType, TupleType, TokenType, ForeignType, AbsentType]


def tensor(dtype: DType, *shape: Dim) -> TensorType:
    """The type of a tensor of known rank."""
    return TensorType(dtype, tuple(shape))
