"""How element types are held in torch: many of the hub's have no torch dtype, or one that torch computes little in.

Inside a program a value is *held* in a dtype in which torch computes; at the ends of a program and in its weights it is
*stored* in the nearest dtype that torch has. u16 and u32 are held as the next wider signed integers, u64 as the bits of an i64,
integers below a byte in a byte, floats below 16 bits as f32 whose values the narrow type has.
"""

from __future__ import annotations

from coset.ir.quantized import QuantizedType
from coset.ir.types import DTYPES, DType

STORED = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "f8e4m3fn": "float8_e4m3fn", "f8e5m2": "float8_e5m2",
    "f8e4m3fnuz": "float8_e4m3fnuz", "f8e5m2fnuz": "float8_e5m2fnuz", "f8e8m0fnu": "float8_e8m0fnu", "f4e2m1fn": "float32",
    "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8", "i4": "int8", "i2": "int8",
    "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8", "u4": "uint8", "u2": "uint8",
    "bool": "bool", "c64": "complex64", "c128": "complex128",
}  # fmt: skip
HELD = {**STORED, "u64": "int64", "u32": "int64", "u16": "int32"} | {
    name: "float32" for name, dtype in DTYPES.items() if dtype.kind == "float" and dtype.bits < 16
}
ORDER_OF_U64 = "-0x8000000000000000"  # xor with it maps the order of u64 to that of the i64 that holds it


def plain(dtype: DType) -> DType:
    """The dtype that the elements are stored in: of a quantized type its integers."""
    return dtype.storage if isinstance(dtype, QuantizedType) else dtype


def held(dtype: DType) -> str:
    """The torch dtype that values of `dtype` are computed in."""
    return f"torch.{HELD[plain(dtype).name]}"


def stored(dtype: DType) -> str:
    """The torch dtype at the ends of a program."""
    return f"torch.{STORED[plain(dtype).name]}"


def narrowed(text: str, dtype: DType) -> str:
    """The expression `text` of held values brought back to what `dtype` can say: wrapped, or rounded."""
    dtype = plain(dtype)
    if dtype.kind == "float" and dtype.bits < 16:
        return f"rounded({text}, {dtype.name!r})"
    if dtype.kind == "int" and dtype.bits < 8:
        return f"wrapped({text}, {dtype.bits})"
    if dtype.kind == "uint" and dtype.bits in (2, 4, 16, 32):
        return f"({text}) & {hex((1 << dtype.bits) - 1)}"
    return text


def to_held(text: str, dtype: DType) -> str:
    """Stored values as held ones."""
    name = plain(dtype).name
    if HELD[name] == STORED[name]:
        return text
    return f"{text}.view(torch.int64)" if name == "u64" else f"{text}.to(torch.{HELD[name]})"


def to_stored(text: str, dtype: DType) -> str:
    """Held values as stored ones."""
    name = plain(dtype).name
    if HELD[name] == STORED[name]:
        return text
    return f"{text}.view(torch.uint64)" if name == "u64" else f"{text}.to(torch.{STORED[name]})"
