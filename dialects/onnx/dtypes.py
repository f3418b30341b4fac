"""ONNX's numbering of element types (`TensorProto.DataType`), and which of them become terms."""

from __future__ import annotations

import ml_dtypes

from coset.ir.types import DTYPES, DType

_NAMES = {
    1: "f32", 2: "u8", 3: "i8", 4: "u16", 5: "i16", 6: "i32", 7: "i64", 8: "string", 9: "bool", 10: "f16", 11: "f64", 12: "u32", 13: "u64",
    14: "c64", 15: "c128", 16: "bf16", 17: "f8e4m3fn", 18: "f8e4m3fnuz", 19: "f8e5m2", 20: "f8e5m2fnuz", 21: "u4", 22: "i4", 23: "f4e2m1fn",
    24: "f8e8m0fnu", 25: "u2", 26: "i2",
}  # fmt: skip
DTYPE_OF_CODE: dict[int, DType] = {code: DTYPES[name] for code, name in _NAMES.items()}
CODE_OF_DTYPE: dict[DType, int] = {dtype: code for code, dtype in DTYPE_OF_CODE.items()}

# Element types whose ops become terms; nodes on the others (bf16, fp8, 4-bit, complex, strings) stay opaque, because
# kernels for them differ from op to op and a rewritten program could ask for one that does not exist.
USUAL = frozenset(DTYPES[name] for name in ("f64", "f32", "f16", "i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8", "bool"))


def clipped_at(dtype: DType) -> float:
    """Where a Clip without a bound ends for floats of `dtype`: at the largest finite number, by the standard's text."""
    return float(ml_dtypes.finfo(dtype.numpy).max)  # type: ignore[no-untyped-call]
