"""Types of nodes that say nothing of an attribute are those of its default."""

from __future__ import annotations

import onnx

from coset.frontends.onnx.model import import_model


def test_an_stft_that_does_not_say_so_is_one_sided() -> None:
    """ONNX's inference of shapes answers for both sides where `onesided` is left out."""
    found = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[1,128,1] x) => (int64[4] s)'
        " <int64 step = {8}, int64 length = {16}> { y = STFT(x, step, , length) s = Shape(y) }"
    )
    (shape,) = import_model(found.SerializeToString()).roots
    assert shape.attribute("value").array().tolist() == [1, 15, 9, 2]
