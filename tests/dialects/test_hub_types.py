"""What the type rules refuse, and what they say; golden sentences."""

from __future__ import annotations

from typing import Any

import pytest

import coset.dialects  # noqa: F401  (registers the ops)
from coset.ir.dims import floordiv, multiply, symbol
from coset.ir.errors import TypeRuleError
from coset.ir.op import get_op
from coset.ir.types import BOOL, DTYPES, F32, I32, Type, tensor

S, T = symbol("S"), symbol("T")
CONV = {"strides": (1,), "padding": ((0, 0),), "lhs_dilation": (1,), "rhs_dilation": (1,)}
MATMUL = {"lhs_contract": (1,), "rhs_contract": (0,)}


def infer(name: str, operands: tuple[Type, ...], attributes: dict[str, Any]) -> Type:
    op = get_op(f"stablehlo.{name}")
    return op.infer(operands, op.complete(attributes))


@pytest.mark.parametrize(
    ("name", "operands", "attributes", "sentence"),
    [
        ("add", (tensor(F32, 2), tensor(F32, 3)), {}, "takes operands of one type, but `lhs` is f32[2] and `rhs` is f32[3]"),
        ("add", (tensor(F32, S), tensor(F32, T)), {}, "but `lhs` is f32[S] and `rhs` is f32[T]"),
        ("add", (tensor(F32, 2), tensor(I32, 2)), {}, "takes operands of one type"),
        ("add", (tensor(DTYPES["string"]),) * 2, {}, "takes number or bool elements, but `lhs` has string"),
        ("add", (tensor(F32),), {}, "takes 2 operands (lhs, rhs), not 1"),
        ("sqrt", (tensor(I32, 2),), {}, "takes float or complex elements"),
        ("negate", (tensor(BOOL),), {}, "takes number elements"),
        ("not", (tensor(F32),), {}, "takes int or bool elements"),
        ("is_finite", (tensor(I32),), {}, "takes float elements"),
        ("abs", (tensor(DTYPES["u8"]),), {}, "takes signed or float or complex elements"),
        ("compare", (tensor(F32), tensor(F32)), {"direction": "<"}, "must be one of EQ, NE, LT, LE, GT, GE, not '<'"),
        ("compare", (tensor(DTYPES["string"]),) * 2, {"direction": "LT"}, "orders numbers, not strings"),
        ("select", (tensor(F32), tensor(F32), tensor(F32)), {}, "`pred` of `stablehlo.select` must be bool"),
        ("select", (tensor(BOOL, 1), tensor(F32, 2), tensor(F32, 2)), {}, "must have rank 0 or the shape of the values"),
        ("clamp", (tensor(F32, 1), tensor(F32, 2), tensor(F32)), {}, "`min` of `stablehlo.clamp` must have rank 0"),
        ("clamp", (tensor(I32), tensor(F32, 2), tensor(F32)), {}, "must have f32 elements"),
        ("convert", (tensor(F32),), {"dtype": "f16"}, "must be a dtype, not 'f16'"),
        ("convert", (tensor(F32),), {"dtype": DTYPES["string"]}, "but one side has string"),
        ("broadcast_in_dim", (tensor(F32, 3),), {"shape": (4,), "broadcast_dimensions": (0,)}, "cannot make dim 0 of size 4 from dim 0"),
        ("broadcast_in_dim", (tensor(F32, S),), {"shape": (T,), "broadcast_dimensions": (0,)}, "it must be 1 or T"),
        ("broadcast_in_dim", (tensor(F32, 3),), {"shape": (3,), "broadcast_dimensions": ()}, "must have 1 entries, not 0"),
        ("broadcast_in_dim", (tensor(F32, 3, 3),), {"shape": (3, 3), "broadcast_dimensions": (0, 0)}, "names a dimension twice"),
        ("reshape", (tensor(F32, 6),), {"shape": (4,)}, "keeps the number of elements, but f32[6] has 6 and f32[4] has 4"),
        ("reshape", (tensor(F32, S),), {"shape": (T,)}, "keeps the number of elements"),
        ("reshape", (tensor(F32, S, 4),), {"shape": (S, 2)}, "keeps the number of elements"),
        ("reshape", (tensor(F32, 4),), {"shape": (-1, -4)}, "has a negative entry"),
        ("reshape", (tensor(F32, 4),), {"shape": [4]}, "must be a tuple of dims"),
        ("transpose", (tensor(F32, 2, 3),), {"permutation": (0, 2)}, "must lie in 0..1"),
        ("transpose", (tensor(F32, 2, 3),), {"permutation": (0,)}, "must have 2 entries"),
        ("slice", (tensor(F32, 3),), {"start": (2,), "limit": (1,), "strides": (1,)}, "takes 2 to 1 of dim 0, which has 3"),
        ("slice", (tensor(F32, S),), {"start": (0,), "limit": (S,), "strides": (0,)}, "must be 1 or more"),
        ("slice", (tensor(F32, 3),), {"start": (0,), "limit": (4,), "strides": (1,)}, "0 <= start <= limit <= 3"),
        ("concatenate", (tensor(F32, 2, 3), tensor(F32, 3, 3)), {"dimension": 1}, "may differ in dim 1 only"),
        ("concatenate", (), {"dimension": 0}, "takes one input or more"),
        ("pad", (tensor(F32, 2), tensor(I32)), {"low": (0,), "high": (0,), "interior": (0,)}, "must be one f32 of rank 0"),
        ("pad", (tensor(F32, 2), tensor(F32)), {"low": (-2,), "high": (-1,), "interior": (0,)}, "leaves a negative dim"),
        ("pad", (tensor(F32, 2), tensor(F32)), {"low": (0,), "high": (0,), "interior": (-1,)}, "must be 0 or more"),
        ("reverse", (tensor(F32, 2),), {"dimensions": (1,)}, "must lie in 0..0"),
        ("iota", (), {"shape": (), "dtype": F32, "dimension": 0}, "`dimension` of `stablehlo.iota` must lie in"),
        ("iota", (), {"shape": (2,), "dtype": BOOL, "dimension": 0}, "takes number elements"),
        ("dot_general", (tensor(F32, 2, 3), tensor(F32, 4, 5)), MATMUL, "lhs f32[2, 3] is 3 but contract dim 0 of rhs f32[4, 5] is 4"),
        ("dot_general", (tensor(F32, 2, 3), tensor(I32, 3, 5)), MATMUL, "takes operands of one element type"),
        ("dot_general", (tensor(F32, 2, 3), tensor(F32, 3)), {"lhs_contract": (1,)}, "as many lhs_contract dims as rhs_contract dims"),
        ("dot_general", (tensor(F32, 2, 3), tensor(F32, 3, 2)), {**MATMUL, "lhs_batch": (1,), "rhs_batch": (0,)}, "batch and contracted"),
        ("convolution", (tensor(F32, 1, 4, 9), tensor(F32, 6, 3, 3)), CONV, "has 4 input channels, but the filter's 3 times 1 groups"),
        ("convolution", (tensor(F32, 1, 4, 9), tensor(F32, 3, 2, 3)), {**CONV, "feature_group_count": 2}, "do not divide the output"),
        ("convolution", (tensor(F32, 3, 4, 9), tensor(F32, 4, 4, 3)), {**CONV, "batch_group_count": 2}, "do not divide the batch"),
        ("convolution", (tensor(F32, 1, 4, 9), tensor(F32, 4, 4, 3)), {**CONV, "padding": (0, 0)}, "must be 1 pairs of integers"),
        ("convolution", (tensor(F32, 1, 4, 9), tensor(F32, 4, 4)), CONV, "takes operands of one rank of 2 or more"),
        ("reduce", (tensor(F32, 2, 3),), {"dimensions": (1, 0), "combiner": "add"}, "must be sorted"),
        ("reduce", (tensor(F32, 2),), {"dimensions": (0,), "combiner": "mean"}, "must be one of add, multiply"),
        ("reduce", (tensor(F32, 2),), {"dimensions": (0,), "combiner": "and"}, "`stablehlo.reduce and` takes int or bool elements"),
    ],
)  # fmt: skip
def test_refused_with_a_clear_sentence(name: str, operands: tuple[Type, ...], attributes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(TypeRuleError) as caught:
        infer(name, operands, attributes)
    assert sentence in caught.value.message and f"stablehlo.{name}" in caught.value.message


def test_symbolic_shapes() -> None:
    half = floordiv(S, 2)
    assert infer("reshape", (tensor(F32, S, 6),), {"shape": (multiply(2, S), 3)}) == tensor(F32, multiply(2, S), 3)
    assert infer("reshape", (tensor(F32, S, 6),), {"shape": (half, 12)}) == tensor(F32, half, 12)  # the reshape asserts that 2 | S
    assert infer("dot_general", (tensor(F32, S, 3), tensor(F32, 3, T)), MATMUL) == tensor(F32, S, T)
    assert infer("concatenate", (tensor(F32, S), tensor(F32, S)), {"dimension": 0}) == tensor(F32, multiply(2, S))
    assert str(infer("slice", (tensor(F32, S),), {"start": (1,), "limit": (S,), "strides": (2,)})) == "f32[-floordiv(-S + 1, 2)]"
    conv = infer("convolution", (tensor(F32, S, 4, T), tensor(F32, 6, 4, 3)), {**CONV, "strides": (2,), "padding": ((1, 1),)})
    assert str(conv) == "f32[S, 6, floordiv(T - 1, 2) + 1]"


def test_flops() -> None:
    op = get_op("stablehlo.dot_general")
    types = (tensor(F32, S, 3), tensor(F32, 3, 5))
    assert op.flops is not None and op.flops(infer("dot_general", types, MATMUL), types, op.complete(MATMUL)) == multiply(30, S)
    conv = get_op("stablehlo.convolution")
    types = (tensor(F32, 1, 4, 9), tensor(F32, 6, 4, 3))
    assert conv.flops is not None and conv.flops(infer("convolution", types, CONV), types, conv.complete(CONV)) == 2 * 6 * 7 * 12
