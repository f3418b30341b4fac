"""MLIR's spelling of element types, tensor types and dense elements, read and written; shared by what reads and what prints StableHLO."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

import numpy as np

from coset.dialects.hub.scalars import cast
from coset.ir.dims import Poly, Shape
from coset.ir.errors import CosetError
from coset.ir.op import Array
from coset.ir.quantized import QuantizedType, quantized
from coset.ir.types import DTYPES, I64, DType, TensorType, TokenType, TupleType, Type

DimBounds = tuple[int | None, ...]  # of the dims of a type
NO_BOUNDS: Mapping[str, int] = {}
TEXT_OF_DTYPE: dict[DType, str] = {
    DTYPES[ours]: theirs
    for ours, theirs in {
        "f64": "f64", "f32": "f32", "f16": "f16", "bf16": "bf16", "f8e4m3fn": "f8E4M3FN", "f8e5m2": "f8E5M2", "f8e4m3fnuz": "f8E4M3FNUZ",
        "f8e5m2fnuz": "f8E5M2FNUZ", "f8e8m0fnu": "f8E8M0FNU", "f4e2m1fn": "f4E2M1FN", "i64": "i64", "i32": "i32", "i16": "i16", "i8": "i8",
        "i4": "i4", "i2": "i2", "u64": "ui64", "u32": "ui32", "u16": "ui16", "u8": "ui8", "u4": "ui4", "u2": "ui2", "bool": "i1",
        "c64": "complex<f32>", "c128": "complex<f64>",
    }.items()
}  # fmt: skip
DTYPE_OF_TEXT = {text: dtype for dtype, text in TEXT_OF_DTYPE.items()}
_QUANTIZED = re.compile(
    r"!quant\.uniform<(?P<storage>[iu]\d+)(?:<(?P<least>-?\d+):(?P<most>-?\d+)>)?:(?P<expressed>\w+)(?::(?P<axis>\d+))?, (?P<values>[^>]*)>"
)
PLAIN_ELEMENTS = 16  # constants up to this many elements are printed as numbers, larger ones as bytes
_TOKEN = re.compile(r'"(0x[0-9A-Fa-f]*)"|([\[\]()])|([^\s,\[\]()]+)')


def element_text(dtype: DType) -> str:
    """MLIR's name of an element type.

    Raises:
        CosetError: it has none.
    """
    if isinstance(dtype, QuantizedType):
        return _quantized_text(dtype)
    if dtype not in TEXT_OF_DTYPE:
        raise CosetError(f"{dtype} elements have no MLIR type", help="convert them first")
    return TEXT_OF_DTYPE[dtype]


def _quantized_text(dtype: QuantizedType) -> str:
    pairs = ", ".join(f"{decimal_text(scale)}:{point}" for scale, point in zip(dtype.scales, dtype.zero_points, strict=True))
    axis, values = ("", pairs) if dtype.axis is None else (f":{dtype.axis}", f"{{{pairs}}}")
    return f"!quant.uniform<{dtype.storage}<{dtype.minimum}:{dtype.maximum}>:{dtype.expressed}{axis}, {values}>"


def element_type(text: str) -> DType | None:
    """The element type that MLIR calls `text`, or None; `index` counts dims and is i64."""
    if text == "index":
        return I64
    match = _QUANTIZED.fullmatch(text)
    if match is None:
        return DTYPE_OF_TEXT.get(text)
    storage, expressed = DTYPES.get(match["storage"]), DTYPE_OF_TEXT.get(match["expressed"])
    if storage is None or expressed is None:
        return None
    pairs = [pair.strip().partition(":") for pair in match["values"].strip("{}").split(",")]
    limits = None if match["least"] is None else (int(match["least"]), int(match["most"]))
    return quantized(storage, expressed, tuple(float(scale) for scale, _, _ in pairs), tuple(int(point or 0) for _, _, point in pairs),
                     axis=None if match["axis"] is None else int(match["axis"]), limits=limits)  # fmt: skip


Bounds = Mapping[str, int]  # by dim symbols: the largest number that each may be


def type_text(type: Type, bounds: Bounds = NO_BOUNDS) -> str:
    """MLIR's spelling of a type; a symbolic dim is `?`, with its bound where the `bounds` of symbols say one.

    Raises:
        CosetError: the type has none.
    """
    if isinstance(type, TokenType):
        return "!stablehlo.token"
    if isinstance(type, TupleType):
        return f"tuple<{', '.join(type_text(item, bounds) for item in type.items)}>"
    if not isinstance(type, TensorType):
        description = getattr(type, "description", b"")
        if getattr(type, "format", "") == "mlir":
            return str(description.decode())
        raise CosetError(f"a value of type {type} has no MLIR type")
    if type.shape is None:
        return f"tensor<*x{element_text(type.dtype)}>"
    return bounded_text(type, bounds_of_shape(type.shape, bounds))


def bounded_text(type: TensorType, bounds: DimBounds) -> str:
    """The type of a tensor whose dims have these bounds."""
    sizes = "".join(f"{dim}x" if isinstance(dim, int) else "?x" for dim in type.dims)
    return f"tensor<{sizes}{element_text(type.dtype)}{_encoding(bounds)}>"


def bounds_of_shape(shape: Shape, bounds: Bounds) -> DimBounds:
    """The bound of each symbolic dim, None where there is none."""
    return tuple(None if isinstance(dim, int) or not bounds else _bound(dim, bounds) for dim in shape)


def _bound(dim: Poly, bounds: Bounds) -> int | None:
    """The largest number of a sum of products of symbols with bounds; None for any other dim."""
    total = 0
    for monomial, coefficient in dim.terms:
        if any(atom.args or atom.name not in bounds for atom in monomial) or (monomial and coefficient < 0):
            return None
        total += coefficient * prod(bounds[atom.name] for atom in monomial)
    return total


def _encoding(bounds: DimBounds) -> str:
    return (
        "" if all(bound is None for bound in bounds) else f", #stablehlo.bounds<{', '.join('?' if b is None else str(b) for b in bounds)}>"
    )


# ---------------------------------------------------------------- dense elements


def dense_text(array: Array, dtype: DType) -> str:
    """`dense<..>` without its type: numbers for a few elements, else the bytes in hexadecimal. Every bit is kept."""
    flat = np.ascontiguousarray(array).reshape(-1)
    if not flat.size:
        return "dense<>"
    if flat.size <= PLAIN_ELEMENTS:
        return f"dense<{_nested([number_text(item, dtype) for item in flat], list(np.shape(array)))}>"
    if (flat.view(np.uint8).reshape(flat.size, -1) == flat[:1].view(np.uint8)).all():
        return f"dense<{number_text(flat[0], dtype)}>"
    return f'dense<"0x{stored(flat, dtype).tobytes().hex().upper()}">'


def stored(flat: Array, dtype: DType) -> Array:
    """The bytes that MLIR keeps for elements: one or more whole bytes each, those of small integers sign-extended or not as they come."""
    return flat.astype(np.int8 if dtype.kind == "int" else np.uint8) if dtype.kind in ("int", "uint") and dtype.bits < 8 else flat


def _nested(items: list[str], shape: list[int]) -> str:
    if not shape:
        return items[0]
    for extent in reversed(shape[1:]):
        items = [f"[{', '.join(items[i : i + extent])}]" for i in range(0, len(items), extent)]
    return f"[{', '.join(items)}]"


def number_text(item: Any, dtype: DType) -> str:
    """One element as MLIR writes it: floats by a decimal that is exactly theirs, or by their bits where there is none."""
    if dtype.kind == "bool":
        return "true" if item else "false"
    if dtype.kind in ("int", "uint"):
        return str(int(item))
    if dtype.kind == "complex":
        part = DTYPES["f32" if dtype.bits == 64 else "f64"]
        return f"({number_text(item.real, part)}, {number_text(item.imag, part)})"
    value = float(item)
    if not np.isfinite(value):
        bits = int.from_bytes(np.asarray(item, dtype.numpy).tobytes(), "little")
        return f"0x{bits:0{max(1, dtype.bits // 4)}X}"
    return decimal_text(value)


def decimal_text(value: float) -> str:
    """A finite float as MLIR's grammar has it: digits, a point, digits, an exponent."""
    mantissa, _, exponent = repr(value).partition("e")
    mantissa = mantissa if "." in mantissa else f"{mantissa}.0"
    return f"{mantissa}e{exponent}" if exponent else mantissa


def dense_array(text: str, dtype: DType, shape: tuple[int, ...]) -> Array:
    """The array that `dense<..>` (without its type) means.

    Raises:
        CosetError: the text is no such attribute.
    """
    inside = text.strip().removeprefix("dense<").removesuffix(">")
    count = prod(shape)
    blob = re.fullmatch(r'\s*"0x([0-9A-Fa-f]*)"\s*', inside)
    if blob is not None:
        return bytes_array(bytes.fromhex(blob.group(1)), dtype, shape)
    items = [_number(token, dtype) for token in _tokens(inside)]
    if dtype.kind == "complex":
        items = [complex(*items[i : i + 2]) for i in range(0, len(items), 2)]
    if len(items) not in (1, count):
        raise CosetError(f"{len(items)} elements are given for {dtype}[{', '.join(map(str, shape))}]")
    flat = np.array(items, dtype.numpy) if dtype.kind in ("complex", "bool") else _rounded(items, dtype)
    return np.broadcast_to(flat, shape) if flat.size == 1 != count else flat.reshape(shape)


def bytes_array(blob: bytes | memoryview, dtype: DType, shape: tuple[int, ...]) -> Array:
    """The array of MLIR's bytes of elements, without a copy where the element type has whole bytes; those of one element are a splat.

    Raises:
        CosetError: there are too few or too many bytes.
    """
    count, width = prod(shape), dtype.numpy.itemsize
    if len(blob) not in (count * width, width):
        raise CosetError(f"{len(blob)} bytes are given for {dtype}[{', '.join(map(str, shape))}], which takes {count * width}")
    if dtype.kind in ("int", "uint") and dtype.bits < 8:
        flat = cast(np.frombuffer(blob, np.int8), dtype)
    elif dtype.kind == "bool":
        flat = np.frombuffer(blob, np.uint8) != 0
    else:
        flat = np.frombuffer(blob, dtype.numpy)
    return np.broadcast_to(flat, shape) if flat.size == 1 != count else flat.reshape(shape)


def _tokens(text: str) -> Iterator[str]:
    for match in _TOKEN.finditer(text):
        if match.group(3):
            yield match.group(3)


def _number(token: str, dtype: DType) -> Any:
    if token in ("true", "false"):
        return token == "true"
    try:
        if dtype.kind in ("int", "uint", "bool"):
            return int(token, 0)
        if token.startswith("0x"):
            storage = DTYPES["f32" if dtype.bits == 64 else "f64"] if dtype.kind == "complex" else dtype
            return np.frombuffer(int(token, 16).to_bytes(storage.numpy.itemsize, "little"), storage.numpy)[0]
        return float(token)
    except (ValueError, OverflowError):
        raise CosetError(f"`{token}` is no element of type {dtype}") from None


def _rounded(items: list[Any], dtype: DType) -> Array:
    """Integers wrapped; decimals rounded once; elements that are given by their bits keep them."""
    if dtype.kind in ("int", "uint"):
        return cast(np.array([item & 0xFFFF_FFFF_FFFF_FFFF for item in items], np.uint64), dtype)
    flat = np.empty(len(items), dtype.numpy)
    for index, item in enumerate(items):
        flat[index] = item if isinstance(item, np.generic) else cast(np.asarray(item, np.float64), dtype)
    return flat
