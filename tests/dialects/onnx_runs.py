"""One ONNX node run three ways: by our definition (through an imported model, or on symbolic shapes), by ONNX Runtime without
optimization, and by ONNX's own reference implementation."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx.reference import ReferenceEvaluator

from coset.dialects.hub.terms import literal
from coset.dialects.onnx.node import Node, define
from coset.frontends.onnx.model import import_model
from coset.ir.builtin import absent
from coset.ir.dims import symbol
from coset.ir.evaluate import evaluate
from coset.ir.term import input_term
from coset.ir.types import TensorType, dtype_of
from coset.rules.definition import evaluate_defined

Arrays = Sequence[Any]


def model_of(
    op: str, inputs: Arrays, attributes: dict[str, Any] | None = None, *, outputs: int = 1, opset: int = 26, domain: str = ""
) -> onnx.ModelProto:
    """A model of one node; an input that is None is not given."""
    names = [f"x{index}" if x is not None else "" for index, x in enumerate(inputs)]
    results = [f"y{index}" for index in range(outputs)]
    node = onnx.helper.make_node(op, names, results, domain=domain, **(attributes or {}))
    given = [
        onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(np.asarray(x).dtype), np.shape(x))
        for name, x in zip(names, inputs, strict=True)
        if x is not None
    ]
    graph = onnx.helper.make_graph([node], "one", given, [onnx.ValueInfoProto(name=name) for name in results])
    versions = [onnx.helper.make_opsetid("", opset)] + ([onnx.helper.make_opsetid(domain, 1)] if domain else [])
    model = onnx.helper.make_model(graph, opset_imports=versions, ir_version=10)
    return onnx.shape_inference.infer_shapes(model, data_prop=True)


def feed_of(inputs: Arrays) -> dict[str, Any]:
    """The inputs by the names of `model_of`."""
    return {f"x{index}": np.asarray(x) for index, x in enumerate(inputs) if x is not None}


def ours(model: onnx.ModelProto, inputs: Arrays) -> list[Any]:
    """The results of the model after import, by our evaluator; nothing of it may be opaque."""
    program = import_model(model)
    assert not [term for term in program.terms() if term.op.name == "builtin.opaque"], "a node stayed opaque"
    return evaluate(program.roots, feed_of(inputs), fallback=evaluate_defined)


def by_runtime(model: onnx.ModelProto, inputs: Arrays) -> list[Any]:
    """The results of ONNX Runtime with graph optimization off."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, feed_of(inputs)))


@cache
def factors(kind: Any) -> tuple[int, int]:
    """The least and the greatest 8-bit integers of `kind` that ONNX Runtime multiplies by others without an error here: on processors
    without an instruction for it (x86 with AVX2 or AVX-512 and no VNNI) it adds pairs of products of u8 and s8 in 16 bits, which hold
    those by 7 bits (https://onnxruntime.ai/docs/performance/model-optimizations/quantization.html)."""
    limits = np.iinfo(kind)
    if limits.min == 0:
        return 0, int(limits.max)
    pair = [np.full((1, 2), 255, np.uint8), np.full((2, 1), 127, np.int8)]
    (sum_,) = by_runtime(model_of("MatMulInteger", pair), pair)
    return (int(limits.min), int(limits.max)) if sum_ == 2 * 255 * 127 else (-64, 63)


def by_reference(model: onnx.ModelProto, inputs: Arrays) -> list[Any]:
    """The results of `onnx.reference`."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return list(ReferenceEvaluator(model).run(None, feed_of(inputs)))


def symbolic(
    op: str, inputs: Arrays, attributes: dict[str, Any], open_dims: dict[int, dict[int, str]], *, outputs: int = 1, since: int = 25,
    known: Sequence[int] = (),
) -> list[Any]:  # fmt: skip
    """The results of the definition built on symbolic shapes: `open_dims[input][axis]` names a dim; the inputs `known` are constants."""
    operands = []
    for index, x in enumerate(inputs):
        if x is None:
            operands.append(absent())
        elif index in known:
            operands.append(literal(np.asarray(x)))
        else:
            names = open_dims.get(index, {})
            shape = tuple(symbol(names[axis]) if axis in names else size for axis, size in enumerate(np.shape(x)))
            operands.append(input_term(f"x{index}", TensorType(dtype_of(np.asarray(x).dtype), shape)))
    host = tuple(np.asarray(x).astype(object) if i in known and np.asarray(x).dtype.kind in "iu" else None for i, x in enumerate(inputs))
    built = define(Node(op, tuple(operands), attributes, host, since, outputs, outputs))
    assert built is not None, f"{op} is not defined on symbolic shapes"
    return evaluate(built[:outputs], feed_of(inputs), fallback=evaluate_defined)


def assert_close(found: Arrays, expected: Arrays, *, ulps: float = 0.0, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    """As many results of equal shapes and dtypes, integers equal, floats near; for floats of fewer bits than f32 `ulps` widens `rtol`."""
    for index, (value, wanted) in enumerate(zip(found, expected, strict=True)):
        value, wanted = np.asarray(value), np.asarray(wanted)
        assert value.shape == wanted.shape, f"result {index}: shape {value.shape}, expected {wanted.shape}"
        assert value.dtype == wanted.dtype, f"result {index}: dtype {value.dtype}, expected {wanted.dtype}"
        if wanted.dtype.kind in "biu" or wanted.dtype.name.startswith(("int", "uint")):
            np.testing.assert_array_equal(value.astype(np.int64), wanted.astype(np.int64), err_msg=f"result {index}")
            continue
        step = float(ml_dtypes.finfo(wanted.dtype).eps)
        np.testing.assert_allclose(
            value.astype(np.float64), wanted.astype(np.float64), rtol=max(rtol, ulps * step), atol=max(atol, ulps * step / 4),
            err_msg=f"result {index}",
        )  # fmt: skip
