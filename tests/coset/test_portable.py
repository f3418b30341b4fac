"""`onnx-portable`: ops of the default domain, in the one version that the model came with, no runtime's options."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from coset.cli import run

CORPUS = Path(__file__).resolve().parent.parent / "corpus"


def _optimized(model: onnx.ModelProto, folder: Path, *options: str) -> tuple[int, onnx.ModelProto | None]:
    path, out = folder / "model.onnx", folder / "out.onnx"
    onnx.save(model, path)
    code = run(["optimize", str(path), "-o", str(out), "--target", "onnx-portable", *options])
    return code, onnx.load(str(out)) if out.exists() else None


def _parsed(opset: str, body: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f"<ir_version: 8, opset_import: [{opset}]> g (float[4, 16] x) => (float[4, 16] y) {{ {body} }}")


ENTRIES = sorted(path for folder in ("attention", "layer_norm", "gelu", "silu") for path in (CORPUS / folder).glob("torch-*.onnxtxt"))


@pytest.mark.parametrize("path", ENTRIES[::7], ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_version_is_the_models_own_and_the_only_one(path: Path, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(path.read_text())
    own = {each.domain: each.version for each in model.opset_import}[""]
    code, written = _optimized(model, tmp_path)
    assert code == 0 and written is not None
    assert [(each.domain, each.version) for each in written.opset_import] == [("", own)]
    assert not any(node.domain for node in written.graph.node) and not written.metadata_props
    onnx.checker.check_model(written, full_check=True)


def test_a_runtimes_op_is_written_as_what_it_means(tmp_path: Path) -> None:
    code, written = _optimized(_parsed('"": 20, "com.microsoft": 1', "y = com.microsoft.FastGelu (x)"), tmp_path)
    assert code == 0 and written is not None
    assert not any(node.domain for node in written.graph.node)
    assert [each.domain for each in written.opset_import] == [""]


def test_an_op_that_nothing_replaces_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, written = _optimized(_parsed('"": 20, "com.microsoft": 1', "a = com.microsoft.Thing (x) y = Relu (a)"), tmp_path)
    assert (code, written) == (2, None)
    assert "`com.microsoft.Thing` is no op of the standard's own domain" in capsys.readouterr().err
