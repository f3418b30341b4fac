"""A Gather at places that are written down is a slice, however many there are."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

from coset.backends.onnxruntime import Session
from coset.frontends.onnx.model import import_model
from coset.lowering.onnx.model import lower

PLACES: dict[str, tuple[Any, int, str]] = {
    "a range": (np.arange(2, 130), 0, "Slice"),
    "a range of columns": (np.arange(0, 90, 3), 1, "Slice"),
    "with a dim more": (np.arange(5, 105)[None], 0, "Gather"),
    "from the end": (np.arange(-100, -1), 0, "Slice"),
    "around the end": (np.arange(-3, 97), 0, "Gather"),
    "backwards": (np.arange(99, -1, -1), 0, "Gather"),
    "uneven": (np.array([*range(90), 95]), 0, "Gather"),
    "all twice": (np.repeat(np.arange(80), 2), 0, "Gather"),
    "out of range": (np.arange(60, 160), 0, "Gather"),
}


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("name", PLACES)
def test_places_in_even_steps_are_a_slice(name: str, dtype: Any) -> None:
    places, axis, op = PLACES[name]
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> g (float[150,96] x) => (float y) {{ y = Gather<axis = {axis}>(x, i) }}'
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    model.graph.initializer.append(onnx.numpy_helper.from_array(places.astype(dtype), "i"))
    written = lower(import_model(model))
    assert written.graph.node[-1].op_type == op
    if name != "out of range":
        x = np.random.default_rng(0).standard_normal((150, 96)).astype(np.float32)
        one, other = (Session(each.SerializeToString()).run({"x": x})["y"] for each in (model, written))
        np.testing.assert_array_equal(one, other)
