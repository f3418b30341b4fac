"""The blocks and networks of `benchmarks.modern_models`, small: the runtime and our evaluator agree on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from benchmarks import feeds, modern_models
from benchmarks.rivals import OPTIONS, open_ort
from benchmarks.stacks import Builder
from coset.comparing.reference import read_program, values_of

SMALL: dict[str, dict[str, int]] = {
    "llama2_7b": {"layers": 2, "width": 32, "heads": 4, "hidden": 48, "words": 40, "tokens": 6},
    "mixtral_block": {"width": 32, "heads": 4, "keys": 2, "hidden": 24, "experts": 4, "tokens": 6},
    "unet_block": {"channels": 16, "side": 4, "heads": 2, "groups": 4, "time": 12, "words": 5, "context": 12},
    "whisper_base": {"layers": 2, "width": 32, "heads": 4, "bins": 8, "frames": 20},
    "mamba_block": {"width": 16, "states": 4, "rank": 3, "tokens": 5},
}


def agrees(model: onnx.ModelProto, path: Path) -> None:
    """ONNX Runtime, its optimizer off, and the evaluator on one drawn input: both add the same numbers in another order."""
    feed = feeds.make(model, path.stem, 0)
    (found,) = open_ort(path, OPTIONS["off"])(feed)
    (expected,) = values_of(read_program(path), feed).values()
    assert np.abs(expected).max() > 1e-3 and np.isfinite(expected).all()
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5 * float(np.abs(expected).max()))


@pytest.mark.parametrize("name", sorted(modern_models.MODELS))
def test_the_runtime_and_the_evaluator_agree(name: str, tmp_path: Path) -> None:
    model = modern_models.MODELS[name].make(Builder(), **SMALL[name])
    onnx.save(model, tmp_path / f"{name}.onnx")
    agrees(model, tmp_path / f"{name}.onnx")


def test_no_two_weights_that_are_windows_are_equal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modern_models, "INLINE_BYTES", 256)
    b = modern_models.Windows("w.numbers")
    model = modern_models.llama(b, **SMALL["llama2_7b"])
    b.write_numbers(tmp_path)
    onnx.save(model, tmp_path / "w.onnx")
    agrees(model, tmp_path / "w.onnx")
    loaded = onnx.load(tmp_path / "w.onnx")
    long = [array for tensor in loaded.graph.initializer if (array := onnx.numpy_helper.to_array(tensor)).nbytes > 1024]
    assert len(long) == 2 * 7 + 2 and len({array.tobytes() for array in long}) == len(long)


def test_each_token_goes_to_as_many_experts_as_the_router_may_choose() -> None:
    sizes: dict[str, Any] = SMALL["mixtral_block"]
    model = modern_models.mixtral_block(Builder(), **sizes, top=2)
    shares = next(node.input[0] for node in model.graph.node if node.op_type == "Gather")
    model.graph.output.append(onnx.helper.make_empty_tensor_value_info(shares))
    found = open_ort(model, OPTIONS["off"])(feeds.make(model, "m", 0))[1]
    assert found.shape == (6, 4) and (np.count_nonzero(found, axis=1) == 2).all()
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-6)
