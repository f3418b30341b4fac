"""The results that a node should have: ONNX Runtime's without optimization, or those of ONNX's reference where it has no kernel."""

from __future__ import annotations

from typing import Any

from onnx_runs import assert_close, by_reference, by_runtime, model_of, ours

_NO_KERNEL = (
    "NOT_IMPLEMENTED",
    "has no kernel for",
    "Could not find an implementation",
    "is not supported",
    "Unsupported",
    "Indices tensor must have rank >= 1",
)


def expected(op: str, inputs: list[Any], attributes: dict[str, Any], *, outputs: int = 1, opset: int = 22) -> tuple[Any, list[Any]]:
    """The model of one node and what it should give."""
    model = model_of(op, inputs, attributes, outputs=outputs, opset=opset)
    try:
        return model, by_runtime(model, inputs)
    except Exception as error:  # ONNX Runtime says only in words that it has no kernel, or (OneHot) none for rank 0
        if not any(words in str(error) for words in _NO_KERNEL):
            raise
    return model, by_reference(model, inputs)


def same(op: str, inputs: list[Any], attributes: dict[str, Any], *, outputs: int = 1, opset: int = 22, **tolerance: float) -> None:
    """Our definition gives the same."""
    model, wanted = expected(op, inputs, attributes, outputs=outputs, opset=opset)
    assert_close(ours(model, inputs), wanted, **tolerance)
