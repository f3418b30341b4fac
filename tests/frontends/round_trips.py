"""Import and export of ONNX models, compared in ONNX Runtime without optimization."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper

from coset.backends.onnxruntime import Session
from coset.frontends.onnx.model import import_model
from coset.ir.program import Program
from coset.ir.term import Term
from coset.lowering.onnx.model import lower

Model = Any
FLOAT, INT64, BOOL = 1, 7, 9


def value(name: str, code: int, *shape: int | str | None) -> Any:
    return helper.make_tensor_value_info(name, code, list(shape))


def model_of(
    nodes: Sequence[Any],
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    *,
    opset: int = 17,
    weights: Mapping[str, Any] | None = None,
    **more: Any,
) -> Model:
    graph = helper.make_graph(list(nodes), "graph", list(inputs), list(outputs), more.pop("initializer", []))
    graph.initializer.extend(onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in (weights or {}).items())
    graph.value_info.extend(more.pop("value_info", []))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), *more.pop("imports", [])], **{"ir_version": 8, **more})


def exported(source: str | Path | bytes | Model) -> tuple[Program, Model]:
    """The imported program, and the model that it prints to, which passes the checker where the source does."""
    program = import_model(source)
    model = lower(program)
    if isinstance(source, bytes) or _passes(str(source) if isinstance(source, Path) else source):
        onnx.checker.check_model(model, full_check=True)
    return program, model


def _passes(source: str | Model) -> bool:
    try:
        onnx.checker.check_model(source, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return False
    return True


def round_trip(model: Model, feed: Mapping[str, Any]) -> tuple[Program, Model]:
    """As `exported`, with the interface and the values compared."""
    program, result = exported(model)
    assert list(result.graph.input) == list(model.graph.input)
    assert list(result.graph.output) == list(model.graph.output)
    expected, found = (Session(m.SerializeToString()).run(feed) for m in (model, result))
    for name, array in expected.items():
        assert equal(array, found[name]), name
    return program, result


def equal(a: Any, b: Any, *, tolerance: float = 1e-5) -> bool:
    """Arrays, or sequences of them, of one type and shape whose elements are equal to within the rounding of a few operations."""
    if isinstance(a, list):
        return len(a) == len(b) and all(equal(x, y, tolerance=tolerance) for x, y in zip(a, b, strict=True))
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind not in "fcV":
        return bool(np.array_equal(a, b))
    slack = max(tolerance, 4e-3 if a.itemsize == 2 else 0.0)
    return bool(np.allclose(a.astype(np.complex128), b.astype(np.complex128), rtol=slack, atol=slack, equal_nan=True))


def kept(program: Program) -> list[str]:
    """The ops of the nodes that were kept as they came, whether we know what they mean or not."""
    return sorted(term.attribute("name") for term in program.terms() if term.op.has("foreign"))


def output(program: Program, index: int = 0) -> Term:
    return program.outputs[index][1]
