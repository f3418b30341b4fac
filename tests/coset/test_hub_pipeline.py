"""The pipeline on StableHLO: in and out, from ONNX and to ONNX, with the comparison that nothing leaves without."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

pytest.importorskip("torch_mlir", reason="the extra `mlir` is not installed")

import jax
import jax.numpy as jnp

import coset
from coset.backends.onnxruntime import Session
from coset.cli import run as command
from coset.comparing.refused import Refused
from coset.frontends.stablehlo.program import import_stablehlo
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.registry import all_ops
from coset.ir.term import make
from coset.lowering.stablehlo.module import print_stablehlo
from coset.optimizing import hub_pipeline
from coset.targets.target import get_target

SHAPES = [(16, 64), (64, 256), (256, 8), (8, 32), (8, 32)]


def block(x: Any, w1: Any, w2: Any, a: Any, b: Any) -> Any:
    """Two products that are cheaper in the other order, and two that are one."""
    h = jax.nn.gelu(x @ w1 @ w2)
    return jax.nn.softmax(h @ a + h @ b, axis=-1)


def loop(x: Any, w: Any) -> Any:
    """A recurrence, whose loop no rule sees into, beside products that are one."""
    final, seen = jax.lax.scan(lambda c, row: (jnp.tanh(c + row), c * row), jnp.zeros(x.shape[1]), x)
    return final @ w + final @ w, seen


def text_of(function: Callable[..., Any], *shapes: tuple[int, ...]) -> str:
    return str(jax.jit(function).lower(*(jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes)).as_text())


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.mlir"
    path.write_text(text_of(block, *SHAPES))
    return path


def feed(shapes: list[tuple[int, ...]] = SHAPES) -> list[np.ndarray[Any, Any]]:
    random = np.random.default_rng(0)
    return [random.normal(size=shape).astype(np.float32) for shape in shapes]


def products(program: Program) -> int:
    return sum(term.op.name == "stablehlo.dot_general" for term in program.terms())


def test_stablehlo_becomes_cheaper_stablehlo(model: Path) -> None:
    result = coset.optimize(model)
    assert products(import_stablehlo(model)) == 4 and products(result.program) == 3
    assert result.report["cost"]["output"] < result.report["cost"]["input"] and result.report["check"]["ok"]
    assert "normal, interpreted" in result.report["check"]["inputs"]
    written = model.with_name("out.mlir")
    result.save(written)
    assert import_stablehlo(written).roots == import_stablehlo(print_stablehlo(result.program)).roots
    arrays = feed()
    (ours,) = result({str(term.attribute("name")): array for term, array in zip(result.program.inputs, arrays, strict=True)}).values()
    np.testing.assert_allclose(ours, block(*arrays), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("symbolic", [False, True])
def test_the_command_line_goes_by_suffixes(symbolic: bool, tmp_path: Path) -> None:
    """StableHLO to StableHLO and to ONNX, and ONNX back to StableHLO; with a batch of any size, too."""
    first = tmp_path / "a.mlir"
    if symbolic:
        (batch,) = jax.export.symbolic_shape("n")
        types = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in [(batch, 64), *SHAPES[1:]]]
        first.write_text(str(jax.export.export(jax.jit(block))(*types).mlir_module()))
    else:
        first.write_text(text_of(block, *SHAPES))
    second, third, fourth = (tmp_path / name for name in ("b.onnx", "c.mlir", "d.mlir"))
    for source, target in ((first, second), (second, third), (first, fourth)):
        assert command(["optimize", str(source), "-o", str(target), "--json"]) == 0
        assert command(["diff", str(source), str(target)]) == 0
    onnx.checker.check_model(onnx.load(second))
    arrays = feed()
    names = [value.name for value in onnx.load(second).graph.input]
    (found,) = Session(second, level="all").run(dict(zip(names, arrays, strict=True))).values()
    np.testing.assert_allclose(found, block(*arrays), rtol=1e-4, atol=1e-5)


def test_loops_pass_through(tmp_path: Path) -> None:
    path = tmp_path / "loop.mlir"
    path.write_text(text_of(loop, (5, 4), (4, 3)))
    result = coset.optimize(path)
    assert any(term.op.name == "stablehlo.while" for term in result.program.terms()) and result.report["check"]["ok"]


def test_a_target_is_written_in_its_own_format(model: Path) -> None:
    with pytest.raises(CosetError, match=r"`stablehlo` is not written as \.onnx"):
        hub_pipeline.flow_of(_job(model, "stablehlo"), model.with_suffix(".onnx"))
    with pytest.raises(CosetError, match=r"`cpu-onnxruntime` is not written as \.mlir"):
        hub_pipeline.flow_of(_job(model, "cpu-onnxruntime"), model)


def _job(model: Path, target: str) -> Any:
    from coset.egraph.limits import Limits
    from coset.job.job import Job

    return Job(model, get_target(target), "reassociates", Limits(), (), {}, lambda _: None)


def test_stablehlo_is_not_timed(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["bench", str(model)]) == 2
    assert "it is ONNX Runtime that is timed" in capsys.readouterr().err


def test_a_wrong_result_is_refused(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A printer that doubles the result: no rule is to blame, and nothing is handed out."""
    honest = hub_pipeline.write_stablehlo

    def wrong(program: Program, path: Path) -> None:
        honest(program.with_roots(tuple(make("stablehlo.add", (root, root)) for root in program.roots)), path)

    monkeypatch.setattr(hub_pipeline, "write_stablehlo", wrong)
    with pytest.raises(Refused, match="does not survive import and export") as caught:
        coset.optimize(model)
    assert caught.value.rule is None and not caught.value.check.ok


def test_differing_programs_are_told_apart(model: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.mlir"
    other.write_text(text_of(lambda *given: block(*given) * 1.01, *SHAPES))
    assert command(["diff", str(model), str(other)]) == 1
    small = tmp_path / "small.mlir"
    small.write_text(text_of(lambda x: x, (3,)))
    with pytest.raises(CosetError, match="has 5 inputs, but"):
        hub_pipeline.compare_files(str(model), str(small), {})


def test_every_op_that_is_printed_is_legal() -> None:
    """The target has a form for every op of the hub: what StableHLO text can say, extraction may choose."""
    target = get_target("stablehlo")
    for op in all_ops():
        if op.dialect == "stablehlo" or (op.dialect == "chlo" and not op.name.startswith("chlo.broadcast")):
            assert op.name in target.forms or op.dialect == target.dialect, op.name
