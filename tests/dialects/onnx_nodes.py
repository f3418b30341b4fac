"""One ONNX node, computed by our evaluator and by ONNX Runtime without optimization (or ONNX's own evaluator where it has no kernel)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import helper

from coset.backends.onnxruntime import Session
from coset.frontends.onnx import import_model
from coset.ir.errors import CosetError
from coset.ir.evaluate import evaluate
from coset.lowering.onnx import run_reference
from coset.rules.definition import evaluate_defined

IR_VERSION = 10


def model(op: str, inputs: Sequence[Any], outputs: int = 1, *, opset: int = 22, **attributes: Any) -> Any:
    """A model of one node whose inputs are typed by the arrays `inputs` (None: not given); results have no declared shape."""
    names = [f"x{i}" if array is not None else "" for i, array in enumerate(inputs)]
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.asarray(array).dtype), np.shape(array))
        for name, array in zip(names, inputs, strict=True)
        if name
    ]
    node = helper.make_node(op, names, [f"y{i}" for i in range(outputs)], **attributes)
    results = [helper.make_empty_tensor_value_info(f"y{i}") for i in range(outputs)]
    return helper.make_model(
        helper.make_graph([node], "one", infos, results), opset_imports=[helper.make_opsetid("", opset)], ir_version=IR_VERSION
    )


def both(op: str, inputs: Sequence[Any], outputs: int = 1, *, opset: int = 22, **attributes: Any) -> tuple[list[Any], list[Any]]:
    """(ours, theirs): the results of the node."""
    proto = model(op, inputs, outputs, opset=opset, **attributes)
    feed = {f"x{i}": np.asarray(array) for i, array in enumerate(inputs) if array is not None}
    serialized = proto.SerializeToString()
    try:
        theirs = list(Session(serialized).run(feed).values())
    except CosetError:
        theirs = run_reference(serialized, feed)
    program = import_model(proto)
    assert not [term for term in program.terms() if term.op.name == "builtin.opaque"], f"{op} is opaque"
    with np.errstate(all="ignore"):
        ours = evaluate(program.roots, feed, fallback=evaluate_defined)
    return ours, theirs


def assert_same(op: str, inputs: Sequence[Any], outputs: int = 1, *, rtol: float = 1e-5, atol: float = 1e-6, **more: Any) -> None:
    """Both give results of one type and shape, equal within the tolerance (integers exactly)."""
    ours, theirs = both(op, inputs, outputs, **more)
    for index, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        a, b = np.asarray(a), np.asarray(b)
        assert a.dtype == b.dtype and a.shape == b.shape, f"{op} result {index}: {a.dtype}{a.shape}, expected {b.dtype}{b.shape}"
        if a.dtype.kind in "biu":
            np.testing.assert_array_equal(a, b, err_msg=f"{op} result {index}")
        else:
            np.testing.assert_allclose(a.astype(np.float64), b.astype(np.float64), rtol=rtol, atol=atol, err_msg=f"{op} result {index}")
