"""MatMul and Gemm of ONNX in every element type: on import only those with kernels of their own become terms."""

from __future__ import annotations

from coset.dialects.hub_terms import from_numpy_matmul
from coset.dialects.onnx_linear import gemm
from coset.dialects.onnx_node import Built, Node, definition

_GEMM_SINCE = 7  # before, broadcasting was asked for by an attribute


@definition("MatMul")
def _matmul(node: Node) -> Built:
    """NumPy's product of matrices."""
    return from_numpy_matmul(*node.operands)


@definition("Gemm")
def _gemm(node: Node) -> Built:
    """alpha a b + beta c."""
    return gemm(node) if node.since >= _GEMM_SINCE else None
