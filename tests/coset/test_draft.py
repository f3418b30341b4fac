"""What is handed out is the file that was compared; what is not handed out leaves nothing behind, however the job ends."""

from __future__ import annotations

import gc
import os
import re
import resource
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import coset
from coset.backends.onnxruntime import Session
from coset.cli import run
from coset.ir.errors import CosetError
from coset.job.job import Job
from coset.lowering.onnx.model import write
from coset.optimizing import flow, pipeline
from coset.optimizing.draft import Draft
from coset.optimizing.running import stored
from coset.searching import solving
from coset.targets.running import KEY

W = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
X = np.ones((2, 64), np.float32)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files go: a folder of this test."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """y = x W, in a folder of its own."""
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 64]) for name in ("x", "y")]
    weights = [numpy_helper.from_array(W, "W")]
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "W"], ["y"])], "test", values[:1], values[1:], weights)
    path = tmp_path / "input" / "model.onnx"
    path.parent.mkdir()
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.fixture(params=[False, True], ids=["one file", "weights beside"])
def names(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that a model `out.onnx` is made of."""
    if request.param:
        monkeypatch.setattr("coset.lowering.onnx.model.EXTERNAL_BYTES", W.nbytes - 1)
    return ["out.onnx", "out.onnx.DIGEST.data"] if request.param else ["out.onnx"]


def files(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, hidden ones too; folders have no bytes."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"" for path in sorted(folder.rglob("*"))}


def named(folder: Path) -> list[str]:
    """The names of those files, the digest in the name of a file of weights spelled so."""
    return [re.sub(r"[0-9a-f]{12}(?=[.]data$)", "DIGEST", name) for name in sorted(files(folder), key=len)]


def counted(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The paths that the pipeline writes programs to, from now on."""
    written: list[Path] = []

    def count(program: Any, path: Path, **rest: Any) -> None:
        written.append(path)
        write(program, path, **rest)

    monkeypatch.setattr(pipeline, "write", count)
    return written


def test_the_command_writes_once_and_renames(
    model: Path, tmp_path: Path, temporary: Path, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    written = counted(monkeypatch)
    output = tmp_path / "output" / "out.onnx"
    output.parent.mkdir()
    assert run(["optimize", str(model), "-o", str(output)]) == 0
    assert [path.name for path in written] == ["out.onnx"] and written[0].parent.parent == output.parent
    assert named(output.parent) == names and not files(temporary)
    np.testing.assert_allclose(Session(output).run({"x": X})["y"], X @ W, rtol=1e-4, atol=1e-4)


def test_the_result_may_take_the_place_of_the_input(model: Path, temporary: Path, names: list[str]) -> None:
    assert run(["optimize", str(model), "-o", str(model)]) == 0
    assert named(model.parent) == [name.replace("out", "model") for name in names] and not files(temporary)
    np.testing.assert_allclose(Session(model).run({"x": X})["y"], X @ W, rtol=1e-4, atol=1e-4)


def test_save_copies_what_was_compared(
    model: Path, tmp_path: Path, temporary: Path, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    written = counted(monkeypatch)
    optimized = coset.optimize(model)
    checked = {Path(name).name: data for name, data in files(temporary).items() if data}
    assert len(written) == 1 and len(checked) == len(names)
    for folder in ("first", "second"):
        output = tmp_path / folder / "out.onnx"
        output.parent.mkdir()
        optimized.save(output)
        assert named(output.parent) == names
        np.testing.assert_allclose(Session(output).run({"x": X})["y"], optimized({"x": X})["y"], rtol=1e-6)
    assert len(written) == 1
    again = tmp_path / "again" / "out.onnx"
    again.parent.mkdir()
    options = stored(output)
    assert options is not None
    write(optimized.program, again, metadata={KEY: options.text()})  # the name of the weights' file is all that a copy changes
    assert files(again.parent) == files(output.parent)
    if len(names) == 1:
        assert files(output.parent)["out.onnx"] == checked["optimized.onnx"]


STAGES = {
    "import_model": pipeline, "saturate": solving, "select": solving, "fold": solving, "write": pipeline, "Oracle": pipeline,
    "report_of": flow,
}  # fmt: skip
ENDS = [KeyboardInterrupt(), CosetError("no"), MemoryError()]


@pytest.mark.parametrize("stage", sorted(STAGES))
@pytest.mark.parametrize("end", ENDS, ids=lambda end: type(end).__name__)
def test_a_job_that_ends_early_leaves_everything_as_it_was(
    stage: str, end: BaseException, model: Path, tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out.onnx"
    output.write_bytes(b"what was there")
    before = files(tmp_path)
    real: Callable[..., Any] = getattr(STAGES[stage], stage)

    def ends(*arguments: Any, **named: Any) -> Any:
        real(*arguments, **named)
        raise end

    monkeypatch.setattr(STAGES[stage], stage, ends)
    job = Job(model, pipeline.find_target("cpu-onnxruntime"), "exact", pipeline.Limits(), (), {}, lambda _: None)
    with pytest.raises(type(end)):
        pipeline.optimize_file(job, output)
    assert files(tmp_path) == before
    with pytest.raises(type(end)) as kept:
        coset.optimize(model, numerics="exact")
    assert files(tmp_path) == before  # though the error, and with it every frame, is still there
    assert kept.value is end or stage == "Oracle"  # which works in a process of its own


def test_an_interrupt_while_a_draft_moves_leaves_no_draft(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = files(tmp_path)

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("coset.optimizing.draft.move_model", interrupted)
    assert run(["optimize", str(model), "-o", str(tmp_path / "out.onnx")]) == 130
    assert files(tmp_path) == before


@pytest.mark.parametrize("output", ["none/out.onnx", "input", "input/model.onnx/out.onnx"])
def test_a_place_that_cannot_be_written_is_found_before_the_search(
    output: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pipeline, "import_model", None)
    before = files(tmp_path)
    assert run(["optimize", str(model), "-o", str(tmp_path / output)]) == 2
    assert "cannot write" in capsys.readouterr().err and files(tmp_path) == before


@pytest.mark.parametrize("option", ["--report=none/report.json", "--certificate=none/proof", "--extraction-problem=none/problem"])
def test_a_folder_that_is_not_there_is_found_before_the_search(
    option: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pipeline, "import_model", None)
    before = files(tmp_path)
    assert run(["optimize", str(model), "-o", str(tmp_path / "out.onnx"), option]) == 2
    assert "there is no folder `none`" in capsys.readouterr().err and files(tmp_path) == before


def test_a_full_disk_is_a_plain_error(model: Path, tmp_path: Path, names: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "out.onnx"
    output.write_bytes(b"what was there")
    before = files(tmp_path)
    limit, ignored = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (W.nbytes // 2, limit[1]))
    try:
        assert run(["optimize", str(model), "-o", str(output)]) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, ignored)
    assert "error: cannot write out.onnx" in capsys.readouterr().err and files(tmp_path) == before


def test_two_runs_on_one_output_leave_one_whole_result(model: Path, tmp_path: Path, names: list[str]) -> None:
    output = tmp_path / "output" / "out.onnx"
    output.parent.mkdir()
    children = []
    for numerics in ("exact", "real", "reassociates"):
        children.append(os.fork())
        if not children[-1]:
            os._exit(run(["optimize", str(model), "-o", str(output), "--numerics", numerics]))
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0, 0]
    assert named(output.parent) == names
    np.testing.assert_allclose(Session(output).run({"x": X})["y"], X @ W, rtol=1e-4, atol=1e-4)


def test_the_checked_file_goes_with_the_last_reference(model: Path, temporary: Path) -> None:
    optimized = coset.optimize(model)
    assert files(temporary)
    del optimized
    gc.collect()
    assert not files(temporary)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_takes_nothing_with_it(temporary: Path) -> None:
    draft = Draft("model.onnx")
    child = os.fork()
    if not child:
        draft.discard()
        os._exit(0)
    os.waitpid(child, 0)
    assert draft.path.parent.is_dir()
    draft.discard()
    assert not files(temporary)
