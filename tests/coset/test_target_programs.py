"""Whole programs on the targets that no device is here for: TPUs by their StableHLO, NPUs by what they refuse; and what tiles cost."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch_mlir", reason="the extra `mlir` is not installed")

import jax
import jax.numpy as jnp

import coset
from coset.cli import run as command
from coset.extract.select import reprice
from coset.ir.errors import CosetError
from coset.ir.term import Term, input_term, make
from coset.ir.types import BF16, F32, I8, tensor
from coset.targets.target import get_target


def mlp(x: Any, w1: Any, b1: Any, w2: Any) -> Any:
    return jnp.maximum(x @ w1 + b1, 0) @ w2


def attention(x: Any, wq: Any, wk: Any, wv: Any, wo: Any, scale: Any, w1: Any, w2: Any) -> Any:
    """A transformer block of two heads with normalization before, as exporters write it."""

    def normal(x: Any) -> Any:
        return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * scale

    def heads(x: Any) -> Any:
        return x.reshape(x.shape[0], 2, -1).transpose(1, 0, 2)

    h = normal(x)
    q, k, v = heads(h @ wq), heads(h @ wk), heads(h @ wv)
    mixed = jax.nn.softmax(q @ k.transpose(0, 2, 1) / 4.0, axis=-1) @ v
    x = x + mixed.transpose(1, 0, 2).reshape(x.shape) @ wo
    return x + jax.nn.gelu(normal(x) @ w1) @ w2


PROGRAMS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "mlp": (mlp, [(4, 16), (16, 32), (32,), (32, 8)]),
    "attention": (attention, [(6, 32), *[(32, 32)] * 4, (32,), (32, 64), (64, 32)]),
}


def exported(name: str, folder: Path) -> Path:
    function, shapes = PROGRAMS[name]
    path = folder / f"{name}.mlir"
    path.write_text(str(jax.jit(function).lower(*(jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes)).as_text()))
    return path


@pytest.mark.parametrize("target", ["tpu-v5e", "tpu-v6e"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_optimized_for_a_tpu(name: str, target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, out = exported(name, tmp_path), tmp_path / "out.mlir"
    assert command(["optimize", str(model), "--target", target, "-o", str(out), "--json", "--time-limit", "10"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["target"] == target and report["check"]["ok"] and out.exists()
    assert 0 < report["cost"]["output"] <= report["cost"]["input"]


@pytest.mark.parametrize(("target", "instead"), [("tpu-v5e", "ends in .mlir"), ("nvidia-h200", "`coset lower`")])
def test_a_target_that_takes_no_onnx_says_what_to_do(target: str, instead: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["optimize", "absent.onnx", "--target", target, "-o", str(tmp_path / "out.onnx")]) == 2
    said = capsys.readouterr().err
    assert f"`{target}` takes no ONNX model" in said and instead in said


@pytest.mark.parametrize("target", ["ethos-u55", "ethos-u65", "ethos-u85"])
def test_an_npu_says_what_it_cannot_run(target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = exported("mlp", tmp_path)
    assert command(["optimize", str(model), "--target", target, "-o", str(tmp_path / "out.mlir")]) == 2
    said = capsys.readouterr().err
    assert f"coset writes no TOSA, which `{target}` takes" in said and "Traceback" not in said
    for op, taken in (("dot_general", "i8"), ("maximum", "i32")):
        assert f"`stablehlo.{op}`: no kernel for f32, only for {taken}" in said


def test_an_npu_says_which_condition_fails(tmp_path: Path) -> None:
    """Integers, but with a dim that only a run tells; and a program of which every op has a form."""
    for size, message in (("?", r"only with `static` \(every dim is a number"), ("8", "every op of this program has a form there")):
        path = tmp_path / "integers.mlir"
        kind = f"tensor<{size}x4xi32>"
        path.write_text(f"func.func @main(%x: {kind}) -> {kind} {{\n  %y = stablehlo.add %x, %x : {kind}\n  return %y : {kind}\n}}\n")
        with pytest.raises(CosetError, match=message):
            coset.optimize(path, target="ethos-u55")


# ---------------------------------------------------------------- tiles


def product(rows: int, depth: int, columns: int, dtype: Any = BF16) -> Term:
    """[rows, depth] x [depth, columns]."""
    axes = {"lhs_batch": (), "rhs_batch": (), "lhs_contract": (1,), "rhs_contract": (0,)}
    a, b = input_term("a", tensor(dtype, rows, depth)), input_term("b", tensor(dtype, depth, columns))
    return make("stablehlo.dot_general", (a, b), axes)


def working(term: Term, name: str) -> float:
    """Seconds of a term on a target whose memory takes no time, without the launch."""
    target = get_target(name)
    kernels = {key: replace(kernel, launch=replace(kernel.launch, value=0.0), bandwidth=None) for key, kernel in target.kernels.items()}
    return reprice([term], replace(target, kernels=kernels), {})


def test_a_product_costs_what_its_padded_form_costs() -> None:
    """On a v5e 129 columns take as long as 256, on a v6e 257 as long as 512: one more than a tile is another tile."""
    for target, tile in (("tpu-v5e", 128), ("tpu-v6e", 256)):
        whole = working(product(8192, 8192, 2 * tile), target)
        assert working(product(8192, 8192, tile + 1), target) == pytest.approx(whole)
        assert working(product(8190, 8191, 2 * tile), target) == pytest.approx(whole)
        assert working(product(8192, 8192, 4 * tile), target) == pytest.approx(2 * whole)


def test_a_convolution_is_padded_as_the_product_that_it_is() -> None:
    """9 positions of 3 channels are 27 deep, which the NPU pads to 32; 10 channels out are 16."""

    def convolution(channels: int, outputs: int, size: int) -> Term:
        x, w = input_term("x", tensor(I8, 1, channels, size, size)), input_term("w", tensor(I8, outputs, channels, 3, 3))
        given = {"strides": (1, 1), "padding": ((1, 1), (1, 1)), "lhs_dilation": (1, 1), "rhs_dilation": (1, 1)}
        return make("stablehlo.convolution", (x, w), {**given, "feature_group_count": 1, "batch_group_count": 1})

    rate = get_target("ethos-u55").kernels["conv"].rates["i8"].value
    for term, flops in ((convolution(8, 16, 16), 2 * 256 * 72 * 16), (convolution(3, 10, 16), 2 * 256 * 32 * 16)):
        assert working(term, "ethos-u55") == pytest.approx(flops / rate)


def test_kernels_without_tiles_cost_what_they_did() -> None:
    """A convolution's work is its result times its filter, whatever its groups."""
    x, w = input_term("x", tensor(F32, 1, 64, 56, 56)), input_term("w", tensor(F32, 64, 1, 3, 3))
    given = {"strides": (1, 1), "padding": ((1, 1), (1, 1)), "lhs_dilation": (1, 1), "rhs_dilation": (1, 1)}
    term = make("stablehlo.convolution", (x, w), {**given, "feature_group_count": 64, "batch_group_count": 1})
    kernel = get_target("cpu").kernels["conv_depthwise"]
    flops = 2 * 56 * 56 * 64 * 9
    assert kernel.work and kernel.bandwidth
    moved = 4 * (2 * 64 * 56 * 56 + 64 * 9)
    expected = max(flops / (kernel.rates["f32"].value * kernel.work.at(flops)), moved / kernel.bandwidth.at(moved))
    assert reprice([term], get_target("cpu"), {}) == pytest.approx(kernel.launch.value + expected)
