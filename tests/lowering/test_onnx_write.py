"""Files: weights are streamed, external data is laid out for mapping, and a write that fails leaves nothing behind."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import coset.dialects  # noqa: F401  (registers the ops)
from coset.backends.onnxruntime import Session
from coset.ir.constants import constant_of
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.term import constant, input_term, make
from coset.ir.types import DTYPES, TensorType
from coset.lowering.onnx import write as onnx_write
from coset.lowering.onnx.model import lower, write
from coset.lowering.onnx.write import move_model, weights_beside

W = np.random.default_rng(1).standard_normal((64, 64)).astype(np.float32)
X = np.ones((2, 64), np.float32)


def program(factor: float = 1.0) -> Program:
    x = input_term("x", TensorType(DTYPES["f32"], (2, 64)))
    y = make("stablehlo.dot_general", (x, constant(W * np.float32(factor))), {"lhs_contract": (1,), "rhs_contract": (0,)})
    return Program((x,), (("y", y),))


def value(path: Path) -> Any:
    onnx.checker.check_model(str(path), full_check=True)
    return Session(path).run({"x": X})["y"]


def test_one_file_is_what_lower_gives(tmp_path: Path) -> None:
    write(program(), tmp_path / "m.onnx")
    assert onnx.load(tmp_path / "m.onnx") == lower(program())
    assert np.allclose(value(tmp_path / "m.onnx"), X @ W, rtol=1e-5, atol=1e-5)
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]


def test_external_data_stands_beside_at_whole_pages(tmp_path: Path) -> None:
    write(program(), tmp_path / "m.onnx", external=True)
    (data,) = weights_beside(tmp_path / "m.onnx")
    assert {path.name for path in tmp_path.iterdir()} == {"m.onnx", data.name}
    (tensor,) = (t for t in onnx.load(tmp_path / "m.onnx", load_external_data=False).graph.initializer if t.external_data)
    assert {entry.key: entry.value for entry in tensor.external_data} == {"location": data.name, "offset": "0", "length": str(W.nbytes)}
    assert np.allclose(value(tmp_path / "m.onnx"), X @ W, rtol=1e-5, atol=1e-5)


def test_large_weights_go_beside_by_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coset.lowering.onnx.model.EXTERNAL_BYTES", W.nbytes - 1)
    write(program(), tmp_path / "m.onnx")
    (data,) = weights_beside(tmp_path / "m.onnx")
    assert data.stat().st_size == W.nbytes


@pytest.mark.parametrize("external", [False, True])
def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, external: bool) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(b"before")

    def full(_: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")
        yield b""

    monkeypatch.setattr(onnx_write, "_pieces", full)
    with pytest.raises(CosetError, match="No space left") as caught:
        write(program(), path, external=external)
    assert caught.value.help and caught.value.place is not None
    assert path.read_bytes() == b"before" and [p.name for p in tmp_path.iterdir()] == ["m.onnx"]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CosetError, match="cannot write"):
        write(program(), tmp_path / "none" / "m.onnx")


@pytest.mark.parametrize("name", ["i4", "u4", "i2", "u2", "bf16", "f8e4m3fn", "f4e2m1fn", "string", "bool", "c64"])
def test_every_element_type_is_stored_as_onnx_reads_it(name: str) -> None:
    dtype = DTYPES[name]
    elements: Any = np.array(["a", "bc", ""], object) if name == "string" else np.array([0, 1, 1]).astype(dtype.numpy)
    tensor = onnx_write.tensor_proto("t", constant_of(elements, dtype))
    if name == "string":
        assert list(tensor.string_data) == [b"a", b"bc", b""]
    else:
        assert onnx.numpy_helper.to_array(tensor).astype(np.complex128).tolist() == [0, 1, 1]


GROWTH = """
import sys
from pathlib import Path
from coset.frontends.onnx.model import import_model
from coset.lowering.onnx.model import write
def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
start = peak()
program = import_model(Path(sys.argv[1]))
imported = peak()
write(program, Path(sys.argv[2]))
print(start, imported, peak())
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from Linux's /proc")
def test_weights_pass_through_without_being_held(tmp_path: Path) -> None:
    """256 MiB in 4 weights: the import holds none of them, the export maps one at a time (pages of the file count while mapped)."""
    x = input_term("x", TensorType(DTYPES["f32"], (1, 4096)))
    y, random = x, np.random.default_rng(0)
    for _ in range(4):
        y = make(
            "stablehlo.dot_general", (y, constant(random.random((4096, 4096), np.float32))), {"lhs_contract": (1,), "rhs_contract": (0,)}
        )
    write(Program((x,), (("y", y),)), tmp_path / "large.onnx")
    for target in ("a.onnx", "b.onnx"):
        run = subprocess.run(
            [sys.executable, "-c", GROWTH, tmp_path / "large.onnx", tmp_path / target], capture_output=True, text=True, check=True
        )
        start, imported, written = map(int, run.stdout.split())  # kB
        assert imported - start < 16 * 1024
        assert written - imported < 80 * 1024
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()


def test_a_model_and_its_weights_are_a_pair_at_any_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed between the renaming of the weights and that of the model, the old model has its own weights still."""
    target, drafts = tmp_path / "m.onnx", [tmp_path / "first" / "m.onnx", tmp_path / "second" / "m.onnx"]
    for draft, factor in zip(drafts, (1.0, 2.0), strict=True):
        draft.parent.mkdir()
        write(program(factor), draft, external=True)
    move_model(drafts[0], target)
    real = Path.replace

    def killed(self: Path, other: Path) -> Path:
        if other == target:
            raise KeyboardInterrupt
        return real(self, other)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            move_model(drafts[1], target)
    assert np.allclose(value(target), X @ W, rtol=1e-5, atol=1e-5)
    write(program(2.0), drafts[1], external=True)
    move_model(drafts[1], target)
    assert np.allclose(value(target), X @ W * 2, rtol=1e-5, atol=1e-5)
    assert len(weights_beside(target)) == 1
    write(program(3.0), drafts[0])
    move_model(drafts[0], target)
    assert np.allclose(value(target), X @ W * 3, rtol=1e-5, atol=1e-5) and not weights_beside(target)
