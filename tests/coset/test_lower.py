"""`coset lower` from end to end: models become packages that compute what the evaluator says, in a process without coset."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from coset import lower
from coset.cli import run
from coset.ir.errors import CosetError
from coset.targets.target import get_target

torch = pytest.importorskip("torch")
TARGET = "nvidia-h200"


def weight(name: str, *shape: int, seed: int = 0) -> Any:
    rng = np.random.default_rng([seed, *name.encode()])
    return numpy_helper.from_array((rng.standard_normal(shape) * 0.5).astype(np.float32), name)


Shapes = dict[str, list[Any]]


def saved(path: Path, nodes: list[Any], inputs: Shapes, outputs: Shapes, weights: list[Any], opset: int = 17) -> Path:
    def ends(shapes: Shapes) -> list[Any]:
        return [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in shapes.items()]

    graph = helper.make_graph(nodes, "model", ends(inputs), ends(outputs), weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]), path)
    return path


def mlp(folder: Path) -> Path:
    node = helper.make_node
    nodes = [node("Gemm", ["x", "w1", "b1"], ["a"]), node("Relu", ["a"], ["b"]), node("MatMul", ["b", "w2"], ["c"]),
             node("Softmax", ["c"], ["y"], axis=-1)]  # fmt: skip
    weights = [weight("w1", 16, 32), weight("b1", 32), weight("w2", 32, 8)]
    return saved(folder / "mlp.onnx", nodes, {"x": ["batch", 16]}, {"y": ["batch", 8]}, weights)


MODELS = {"mlp": mlp}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_becomes_a_package_that_computes_the_same(name: str, tmp_path: Path) -> None:
    """Within 32 times the rounding noise of the model itself, plus 64 roundings of the largest element (`coset.check`)."""
    report = lower.lower(lower.Lowering(MODELS[name](tmp_path), get_target(TARGET)), tmp_path / "out")
    assert report["check"]["ok"] and report["check"]["inputs"][:2] == ["normal", "second"]
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["writer"] == "coset" and manifest["check"]["ok"] and manifest["rules"] == report["rules"]
    for text in (tmp_path / "out").glob("*.py"):
        assert "coset" not in {
            line.split()[1].split(".")[0] for line in text.read_text().splitlines() if line.startswith(("import", "from"))
        }


def test_the_command_writes_an_importable_package(tmp_path: Path) -> None:
    model, out = mlp(tmp_path), tmp_path / "lowered"
    assert run(["lower", str(model), "--target", TARGET, "-o", str(out), "--json"]) == 0
    script = (
        "import sys, torch; sys.modules['coset'] = None; from lowered import model; x = torch.ones(3, 16); y = model.to('cpu')(x);"
        "assert y.shape == (3, 8) and torch.equal(model(x=x), y) and torch.equal(model.run({'x': x})['y'], y); print('fine')"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, env={"PATH": ""}, check=False)
    assert done.stdout.strip() == "fine", done.stderr
    assert run(["lower", str(model), "--target", TARGET, "-o", str(out)]) == 0  # in place of the older one


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "takes the inputs x: `x` is missing"),
        ((np.zeros((2, 16), np.float64),), "must have elements of torch.float32, not torch.float64"),
        ((np.zeros((2, 15), np.float32),), "dim 1 of input `x` must be 16, not 15"),
        ((np.zeros((2, 2, 16), np.float32),), "must have rank 2, not 3"),
        ((np.zeros((2, 16), np.float32),) * 2, "takes 1 inputs"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(arguments: tuple[Any, ...], message: str, packaged: Any) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        packaged(*map(torch.from_numpy, arguments))


@pytest.fixture(scope="module")
def packaged(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("packages")
    lower.lower(lower.Lowering(mlp(folder), get_target(TARGET), check=False), folder / "refusing_package")
    sys.path.insert(0, str(folder))
    try:
        from refusing_package import model  # type: ignore[import-not-found]
    finally:
        sys.path.pop(0)
    return model.to("cpu")


def test_a_folder_of_somebody_else_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(CosetError, match="holds other files"):
        lower.lower(lower.Lowering(mlp(tmp_path), get_target(TARGET)), tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


def test_nothing_is_left_where_the_package_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: Any) -> Any:
        raise CosetError("it differs")

    monkeypatch.setattr(lower, "compare", refuses)
    model = mlp(tmp_path)
    with pytest.raises(CosetError, match="it differs"):
        lower.lower(lower.Lowering(model, get_target(TARGET)), tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == [model.name]


def test_a_target_that_is_not_lowered_to_torch_is_refused(tmp_path: Path) -> None:
    assert run(["lower", str(mlp(tmp_path)), "--target", "cpu-onnxruntime", "-o", str(tmp_path / "out")]) == 2


def test_a_missing_torch_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(lower, "installed", lambda: False)
    assert run(["lower", str(mlp(tmp_path)), "--target", TARGET, "-o", str(tmp_path / "out")]) == 0
    assert [line for line in capsys.readouterr().err.splitlines() if "torch" in line] == [
        f"not checked: torch is not installed: {lower.INSTALL}"
    ]
