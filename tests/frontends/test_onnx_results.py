"""Shapes of results of nodes that are kept, where ONNX's inference leaves dims open."""

from __future__ import annotations

import pytest
from onnx import parser

from coset.frontends.onnx.model import import_model


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("(float[1,12,H,W] x) => (float[a,b,c,d] y) { y = DepthToSpace<blocksize=2>(x) }", "f32[1, 3, 2*H, 2*W]"),
        ("(float[N,C,H,W] x) => (float[a,b,c,d] y) { y = DepthToSpace<blocksize=2>(x) }", "f32[N, d0, 2*H, 2*W]"),
        ("(float[N,3,8,H] x) => (float[a,b,c,d] y) { y = SpaceToDepth<blocksize=4>(x) }", "f32[N, 48, 2, d0]"),
        ("(bfloat16[1,T,32] x) => (bfloat16[a,b,c,d] y) <int64[4] to = {1, -1, 4, 8}> { y = Reshape(x, to) }", "bf16[1, T, 4, 8]"),
        ("(bfloat16[3,T,32] x) => (bfloat16[a,b] y) <int64[2] to = {-1, 32}> { y = Reshape(x, to) }", "bf16[3*T, 32]"),
        ("(bfloat16[3,T] x) => (bfloat16[a,b] y) <int64[2] to = {-1, 32}> { y = Reshape(x, to) }", "bf16[d0, 32]"),
        ("(bfloat16[3,T] x) => (bfloat16[a,b] y) { y = Transpose(x) }", "bf16[T, 3]"),
        ("(int32[1,4] x, int32[3,1] s) => (int32[a,b] y) { y = PRelu(x, s) }", "i32[3, 4]"),  # inference says that it is as x
        ("(int32[N,C] x, int32[C] s) => (int32[a,b] y) { y = PRelu(x, s) }", "i32[N, C]"),
    ],
)
def test_dims_of_kept_nodes_are_known(text: str, shape: str) -> None:
    """The unknown dims of a pixel shuffle and of bf16 reshapes spread over all that came after: no package could be made of it."""
    program = import_model(parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> g {text}'))
    assert str(program.roots[0].type) == shape
