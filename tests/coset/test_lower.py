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
from lowered_models import FLOAT, MODELS, saved
from onnx import helper, numpy_helper

from coset.backends.torch_package import TorchPackage
from coset.cli import run
from coset.egraph.limits import Limits
from coset.ir.errors import CosetError
from coset.lowering.stablehlo.module import print_stablehlo
from coset.packaging import compared, lower
from coset.packaging.asked import DIALECT, Check, Lowering
from coset.targets.target import all_targets, get_target

sys.path.insert(0, str(Path(__file__).parents[1] / "lowering"))  # programs of the kernel families
from plan_cases import CASES

from tests.sampled import sampled

torch = pytest.importorskip("torch")
TARGET = "nvidia-h200"


def mlp(folder: Path) -> Path:
    return saved("mlp", folder)


def training_step(folder: Path) -> Path:
    """A step of an MLP's training as StableHLO text."""
    program, _ = CASES["training_step"]()
    (folder / "training_step.mlir").write_text(print_stablehlo(program))
    return folder / "training_step.mlir"


WAYS = {"triton": Check.INTERPRETED, "torch": Check.TORCH, "aten": Check.TORCH}


@pytest.mark.parametrize("code", WAYS)
@pytest.mark.parametrize("name", sampled([*MODELS, "training_step"], 2))
def test_a_model_becomes_a_package_that_computes_the_same(name: str, code: str, tmp_path: Path) -> None:
    """Within 32 times the rounding noise of the model itself, plus 64 roundings of the largest element (`coset.comparing.difference`)."""
    model = training_step(tmp_path) if name == "training_step" else saved(name, tmp_path)
    asked = Lowering(model, get_target(TARGET), limits=Limits(seconds=20, nodes=4000), code=code, check=WAYS[code])
    if code == "triton":
        pytest.importorskip("triton")
    report = lower.lower(asked, tmp_path / "out")
    assert report["check"]["ok"] and report["check"]["inputs"][:2] == ["normal", "second"]
    assert code != "triton" or {"triton"} <= {kernel["code"] for kernel in report["kernels"]}
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["writer"] == "coset" and manifest["check"]["ok"] and manifest["rules"] == report["rules"]
    for text in (tmp_path / "out").glob("*.py"):
        assert "coset" not in {
            line.split()[1].split(".")[0] for line in text.read_text().splitlines() if line.startswith(("import", "from"))
        }


@pytest.mark.parametrize("target", [target.name for target in all_targets() if target.dialect == DIALECT])
def test_every_gpu_has_packages(target: str, tmp_path: Path) -> None:
    asked = Lowering(mlp(tmp_path), get_target(target), limits=Limits(seconds=5, nodes=500), check=Check.NONE)
    report = lower.lower(asked, tmp_path / "out")
    assert report["target"] == target and all(kernel["code"] == "triton" for kernel in report["kernels"])


@pytest.mark.parametrize("numerics", ["exact", "reassociates", "approx"])
def test_numerics_say_how_kernels_round(numerics: str, tmp_path: Path) -> None:
    """f32 is multiplied in full where results must be exact, as tf32 where they may be approximate, else as six products of bf16, and what
    is said is what the kernels do; with `exact`, nothing is contracted. The check in the interpreter holds for each, with tf32 to the
    roundings of tf32."""
    pytest.importorskip("triton")
    asked = Lowering(mlp(tmp_path), get_target(TARGET), numerics, Limits(seconds=5, nodes=500), check=Check.INTERPRETED)
    report = lower.lower(asked, tmp_path / "out")
    assert report["check"]["ok"]
    said = {kernel["multiplies"] for kernel in report["kernels"] if "multiplies" in kernel}
    text = "".join(path.read_text() for path in (tmp_path / "out").glob("*.py"))
    assert said == {{"exact": "f32", "reassociates": "bf16x6", "approx": "tf32"}[numerics]}
    assert ("_bf16x6(" in text) == (numerics == "reassociates")
    assert ('input_precision="tf32"' in text) == (numerics == "approx") and f"enable_fp_fusion={numerics != 'exact'}" in text
    assert text.count("enable_fp_fusion=") == text.count("num_warps="), "each launch says what it was compiled with"
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["tf32"] == (numerics == "approx")


def test_atomic_sums_are_asked_for(tmp_path: Path) -> None:
    """Sums that are scattered are in one order unless it is said; where results must be exact that is refused."""
    pytest.importorskip("triton")
    shapes = {"data": (9, 4), "at": (60, 1), "updates": (60, 4), "y": (9, 4)}
    kinds = {"at": onnx.TensorProto.INT64}
    values = [helper.make_tensor_value_info(name, kinds.get(name, FLOAT), shape) for name, shape in shapes.items()]
    node = helper.make_node("ScatterND", ["data", "at", "updates"], ["y"], reduction="add")
    model = helper.make_model(helper.make_graph([node], "g", values[:3], values[3:]), opset_imports=[helper.make_opsetid("", 18)])
    onnx.save(model, tmp_path / "sums.onnx")
    for atomics in (False, True):
        asked = Lowering(tmp_path / "sums.onnx", get_target(TARGET), limits=Limits(seconds=5), check=Check.INTERPRETED, atomics=atomics)
        report = lower.lower(asked, tmp_path / f"out{atomics}")
        text = (tmp_path / f"out{atomics}" / "kernels.py").read_text()
        assert report["check"]["ok"] and ("tl.atomic_add" in text) is atomics
    with pytest.raises(CosetError, match="added in any order, which is not exact"):
        lower.lower(Lowering(tmp_path / "sums.onnx", get_target(TARGET), "exact", atomics=True), tmp_path / "exact")


@pytest.mark.usefixtures("own_python")
def test_the_command_writes_an_importable_package(tmp_path: Path) -> None:
    model, out = mlp(tmp_path), tmp_path / "lowered"
    assert run(["lower", str(model), "--target", TARGET, "-o", str(out), "--code", "torch", "--json"]) == 0
    script = (
        "import sys, torch; sys.modules['coset'] = None; from lowered import model; x = torch.ones(3, 16); y = model.to('cpu')(x);"
        "assert y.shape == (3, 8) and torch.equal(model(x=x), y) and torch.equal(model.run({'x': x})[model.outputs[0]], y); print('fine')"
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
    lower.lower(Lowering(mlp(folder), get_target(TARGET), code="aten", check=Check.NONE), folder / "refusing_package")
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
        lower.lower(Lowering(mlp(tmp_path), get_target(TARGET)), tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


def test_nothing_is_left_where_the_package_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: Any, **__: Any) -> Any:
        raise CosetError("it differs")

    monkeypatch.setattr(compared, "compare", refuses)
    model = mlp(tmp_path)
    with pytest.raises(CosetError, match="it differs"):
        lower.lower(Lowering(model, get_target(TARGET)), tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == [model.name]


def test_a_target_that_is_not_lowered_to_torch_is_refused(tmp_path: Path) -> None:
    assert run(["lower", str(mlp(tmp_path)), "--target", "cpu-onnxruntime", "-o", str(tmp_path / "out")]) == 2


def test_a_missing_torch_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(compared, "installed", lambda: False)
    assert run(["lower", str(mlp(tmp_path)), "--target", TARGET, "-o", str(tmp_path / "out")]) == 0
    assert [line for line in capsys.readouterr().err.splitlines() if "torch" in line] == [
        f"not checked: torch is not installed: {compared.INSTALL}"
    ]


@pytest.mark.parametrize("code", ["torch", "aten"])
def test_inputs_may_be_called_as_the_host_code_or_python_calls_things(code: str, tmp_path: Path) -> None:
    names = ["device", "weights", "lambda", "x y/1", "torch", "k0_add", "program", "MEMORY", "start", "math", "5"]
    tensors = [helper.make_tensor_value_info(name, FLOAT, ["batch", 4]) for name in names]
    graph = helper.make_graph([helper.make_node("Sum", names, ["y"])], "odd", tensors, [helper.make_tensor_value_info("y", FLOAT, None)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "odd.onnx")
    report = lower.lower(Lowering(tmp_path / "odd.onnx", get_target(TARGET), code=code), tmp_path / "out")
    assert report["check"]["ok"]


def test_the_weights_are_a_safetensors_file(tmp_path: Path) -> None:
    load = pytest.importorskip("safetensors.numpy").load_file
    lower.lower(Lowering(mlp(tmp_path), get_target(TARGET), code="aten", check=Check.NONE), tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    found = load(str(tmp_path / "out" / "weights.safetensors"))
    assert {name: list(value.shape) for name, value in found.items()} == {one["name"]: one["shape"] for one in manifest["weights"]}


@pytest.mark.usefixtures("own_python")
def test_triton_kernels_on_a_cpu_say_what_they_need(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    lower.lower(Lowering(mlp(tmp_path), get_target(TARGET), check=Check.NONE), tmp_path / "out")
    with TorchPackage(tmp_path / "out") as package, pytest.raises(CosetError, match="need tensors on a GPU"):
        package.run({"x": np.zeros((2, 16), np.float32)})


@pytest.mark.parametrize("how", ["dequantized", "transposed", "narrowed"])
def test_weights_are_stored_as_what_is_smallest(how: str, tmp_path: Path) -> None:
    """A transpose or a cast to fewer bytes is done at build time; an int8 weight stays one, and its scale is applied in the product."""
    draw = np.random.default_rng(4)
    weight = draw.integers(-99, 99, (96, 128)).astype(np.int8) if how == "dequantized" else draw.normal(size=(96, 128)).astype(np.float32)
    constants = [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(np.float32(0.01), "s")]
    if how == "dequantized":
        nodes = [helper.make_node("DequantizeLinear", ["w", "s"], ["y0"]), helper.make_node("Transpose", ["y0"], ["v"])]
    elif how == "transposed":
        nodes = [helper.make_node("Transpose", ["w"], ["v"])]
    else:
        nodes = [helper.make_node("Cast", ["w"], ["y0"], to=onnx.TensorProto.FLOAT16), helper.make_node("Transpose", ["y0"], ["v"])]
    kind = onnx.TensorProto.FLOAT16 if how == "narrowed" else FLOAT
    nodes.append(helper.make_node("MatMul", ["x", "v"], ["y"]))
    ends = [[helper.make_tensor_value_info("x", kind, ["n", 128])], [helper.make_tensor_value_info("y", kind, ["n", 96])]]
    graph = helper.make_graph(nodes, "weights", *ends, constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "weights.onnx")
    report = lower.lower(Lowering(tmp_path / "weights.onnx", get_target(TARGET), limits=Limits(seconds=5, nodes=500)), tmp_path / "out")
    assert report["check"]["ok"] and len(report["kernels"]) == 1
    stored = json.loads((tmp_path / "out" / "manifest.json").read_text())["weights"]
    (matrix,) = [one for one in stored if len(one["shape"]) == 2]
    assert matrix["dtype"] == {"dequantized": "i8", "transposed": "f32", "narrowed": "f16"}[how]
    assert how == "transposed" or sum(int(np.prod(one["shape"])) for one in stored) <= 96 * 128 + 1


def test_an_op_that_stays_as_it_came_is_said_before_the_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool whose declared height is another than its definition gives for every size."""
    node = helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[3, 2], strides=[3, 2])
    ends = [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in (("x", ["n", 4, "h", "w"]), ("y", ["n", 4, 1, "v"]))]
    model = helper.make_model(helper.make_graph([node], "g", ends[:1], ends[1:]), opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    path = tmp_path / "pool.onnx"
    onnx.save(model, path)
    monkeypatch.setattr(lower, "solve_task", lambda *_: pytest.fail("it is searched"))
    with pytest.raises(CosetError, match="`AveragePool` has no torch expression"):
        lower.lower(Lowering(path, get_target(TARGET)), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("code", ["triton", "torch"])
def test_a_limit_of_memory_is_kept_and_its_price_is_said(code: str, tmp_path: Path) -> None:
    """A step of training in half the bytes of temporaries: equal to the reference, predicted to take longer."""
    if code == "triton":
        pytest.importorskip("triton")
    model = training_step(tmp_path)
    plain = lower.lower(Lowering(model, get_target(TARGET), code=code, check=Check.NONE), tmp_path / "plain")
    default = plain["memory"]["default"]
    limit = int(default["bytes"] // 2)
    asked = Lowering(model, get_target(TARGET), code=code, check=WAYS[code], max_memory=limit)
    report = lower.lower(asked, tmp_path / "half")
    memory = report["memory"]
    assert report["check"]["ok"] and memory["limit"] == limit and memory["default"] == default
    assert memory["chosen"]["bytes"] <= limit
    assert memory["slowdown"] == memory["chosen"]["seconds"] / default["seconds"] >= 1
    text = (tmp_path / "half" / "model.py").read_text()
    assert "MEMORY." not in text and "    del " in text, "temporaries come and go"


def test_a_limit_that_no_plan_keeps_names_the_least(tmp_path: Path) -> None:
    model = training_step(tmp_path)
    with pytest.raises(CosetError, match="no plan found keeps temporaries to 16 bytes: the least that one takes is") as error:
        lower.lower(Lowering(model, get_target(TARGET), code="torch", max_memory=16), tmp_path / "out")
    least = int(error.value.message.rsplit(" ", 1)[1])
    report = lower.lower(Lowering(model, get_target(TARGET), code="torch", max_memory=least), tmp_path / "out")
    assert report["memory"]["chosen"]["bytes"] <= least and report["check"]["ok"]


def test_code_without_a_plan_has_no_limit(tmp_path: Path) -> None:
    with pytest.raises(CosetError, match="no plan whose memory could be limited"):
        lower.lower(Lowering(training_step(tmp_path), get_target(TARGET), code="aten", max_memory=1000), tmp_path / "out")


def test_a_bf16_model_of_free_size_is_lowered(tmp_path: Path) -> None:
    """Its nodes are kept when it is read, as ONNX Runtime has no kernels for them: shapes behind them were unknown."""
    text = """<ir_version: 8, opset_import: ["" : 18]> g (int64[1,T] ids) => (float[1,T,40] y)
    <int64[4] heads = {1, -1, 4, 8}, int64[3] flat = {1, -1, 32}> {
        e = Gather (table, ids) c = Cast<to=1> (e) s = Mul (c, c) m = ReduceMean (s, last) r = Sqrt (m) n = Div (c, r) h = Cast<to=16> (n)
        p = MatMul (h, W) q = Reshape (p, heads) t = Tanh (q) f = Reshape (t, flat) a = Add (e, f) o = MatMul (a, V) y = Cast<to=1> (o)
    }"""
    model = onnx.parser.parse_model(text)
    draw = np.random.default_rng(0)
    weights = {
        name: draw.standard_normal(shape).astype(np.float32) for name, shape in (("table", (40, 32)), ("W", (32, 32)), ("V", (32, 40)))
    }
    for name, value in weights.items():
        bits = (value.view(np.uint32) >> 16).astype(np.uint16)
        raw = helper.make_tensor(name, onnx.TensorProto.BFLOAT16, value.shape, bits.tobytes(), raw=True)
        model.graph.initializer.append(raw)
    model.graph.initializer.append(numpy_helper.from_array(np.array([-1]), "last"))
    path = tmp_path / "decoder.onnx"
    onnx.save(model, path)
    report = lower.lower(Lowering(path, get_target(TARGET), limits=Limits(seconds=20, nodes=4000)), tmp_path / "out")
    assert report["check"]["ok"]
