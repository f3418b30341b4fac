"""Packages whose kernels are branches of a captured graph: no two calls that touch the same bytes, of which one writes, are in no order.

Streams and events are stood in for by vector clocks; the calls and their bytes are those that torch sees while the package's own host code
runs, through the package's own `Streams`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from lowered_models import saved
from onnx import TensorProto, helper, numpy_helper

from coset.cli import run
from coset.egraph.limits import Limits
from coset.ir.errors import CosetError
from coset.packaging import lower
from coset.packaging.asked import Check, Lowering
from coset.targets.target import get_target

torch = pytest.importorskip("torch")
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from coset.backends.torch_loaded import imported  # noqa: E402
from coset.lowering.package import runtime as package_runtime  # noqa: E402
from tests.sampled import sampled  # noqa: E402

TARGET = "nvidia-h200"
MODELS = Path.home() / ".cache" / "coset" / "models"


class Stream:
    """A stream by what is surely done when its next call begins: for each stream, how many calls."""

    count = 0

    def __init__(self, _: Any = None) -> None:
        self.number, Stream.count = Stream.count, Stream.count + 1
        self.clock: dict[int, int] = {}

    def record_event(self) -> dict[int, int]:
        return dict(self.clock)

    def wait_event(self, event: dict[int, int]) -> None:
        for stream, calls in event.items():
            self.clock[stream] = max(calls, self.clock.get(stream, 0))


class Device:
    """What stands in for `torch.cuda` while a graph is recorded."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now = self.main = Stream()
        self.main.clock[self.main.number] = 1  # something was launched before
        patch.setattr(torch.cuda, "Stream", Stream)
        patch.setattr(torch.cuda, "stream", self.stream)
        patch.setattr(torch.cuda, "current_stream", lambda _=None: self.now)
        patch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)

    @contextmanager
    def stream(self, stream: Stream) -> Iterator[None]:
        before, self.now = self.now, stream
        try:
            yield
        finally:
            self.now = before


class Watch(TorchDispatchMode):  # type: ignore[misc]
    """Every call with the bytes that it touches and the clock at which it begins."""

    def __init__(self, device: Device) -> None:
        super().__init__()
        self.device = device
        self.calls: list[tuple[str, int, int, dict[int, int], list[tuple[_Touched, bool]]]] = []
        self.held: list[Any] = []  # so that no address is used twice

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = function(*args, **kwargs)
        given = [value for value in torch.utils._pytree.tree_leaves((args, kwargs)) if isinstance(value, torch.Tensor)]
        made = [value for value in torch.utils._pytree.tree_leaves(result) if isinstance(value, torch.Tensor)]
        self.held += made
        written = {
            id(value)
            for argument, value in zip(function._schema.arguments, args, strict=False)
            if argument.alias_info is not None and argument.alias_info.is_write
        }
        written |= {id(kwargs[one.name]) for one in function._schema.arguments if one.name in kwargs and one.alias_info is not None}
        old = {value.untyped_storage().data_ptr() for value in given}
        fresh = [value for value in made if value.untyped_storage().data_ptr() not in old]
        if written or (fresh and function is not torch.ops.aten.empty.memory_format):  # else a view, or nothing is launched
            touched = [(_Touched.of(value), id(value) in written) for value in given] + [(_Touched.of(value), True) for value in fresh]
            stream = self.device.now
            self.calls.append((str(function), stream.number, stream.clock.get(stream.number, 0), dict(stream.clock), touched))
            stream.clock[stream.number] = stream.clock.get(stream.number, 0) + 1
        return result

    def races(self) -> Iterator[tuple[str, str]]:
        """Pairs of calls in no order, one of which writes what the other touches."""
        for place, (later, _, __, clock, touched) in enumerate(self.calls):
            for earlier, stream, number, ___, others in self.calls[:place]:
                if clock.get(stream, 0) <= number and any(
                    (writes or also) and mine.meets(other) for mine, writes in touched for other, also in others
                ):
                    yield earlier, later


@dataclass(frozen=True)
class _Touched:
    """The bytes of a tensor, which may be a part of another."""

    begin: int
    shape: tuple[int, ...]
    steps: tuple[int, ...]  # in bytes
    size: int  # bytes of an element

    @staticmethod
    def of(value: Any) -> _Touched:
        return _Touched(value.data_ptr(), tuple(value.shape), tuple(step * value.itemsize for step in value.stride()), value.itemsize)

    @property
    def end(self) -> int:
        """Behind the last byte."""
        if 0 in self.shape:
            return self.begin
        return self.begin + self.size + sum((size - 1) * step for size, step in zip(self.shape, self.steps, strict=True))

    def meets(self, other: _Touched) -> bool:
        """True where both have a byte in common: of parts of one tensor that lie between each other none may be."""
        if not (self.begin < other.end and other.begin < self.end):
            return False
        return bool(np.intersect1d(self._bytes(), other._bytes()).size)

    def _bytes(self) -> np.ndarray[Any, Any]:
        found = np.array([self.begin])
        for size, step in zip((*self.shape, self.size), (*self.steps, 1), strict=True):
            found = np.add.outer(found, np.arange(size) * step).reshape(-1)
        return found


def packaged(model: Path, folder: Path, **given: Any) -> dict[str, Any]:
    asked = Lowering(model, get_target(TARGET), limits=Limits(seconds=20, nodes=4000), code="torch", check=Check.NONE, **given)
    return lower.lower(asked, folder)


def watched(folder: Path, patch: pytest.MonkeyPatch) -> tuple[Watch, Device]:
    """What one run of the package does on streams."""
    module = imported(folder, f"streams_of_{folder.parent.name}_{folder.name}")
    written = __import__("sys").modules[f"{module.__name__}.model"]
    inputs = []
    for one in module.model.inputs:
        shape = tuple(size if isinstance(size, int) else 4 for size in one.shape)
        inputs.append(torch.ones(shape, dtype=one.dtype))
    expected = module.model.to("cpu")(*inputs)  # buffers are made, and the values that streams must not change
    device, own = Device(patch), written.Streams
    patch.setattr(written, "Streams", lambda count, _: own(count, torch.device("cuda", 0)))
    watch = Watch(device)
    with watch:
        results = module.model(*inputs)
    for result, value in zip(*((each if isinstance(each, tuple) else (each,)) for each in (results, expected)), strict=True):
        assert torch.equal(result, value) or (result.isnan() == value.isnan()).all()
    return watch, device


@pytest.mark.parametrize("name", sampled(["train_cnn", "train_mlp", "bert_2l_d128_dyn", "squeezenet1_1", "transformer", "llama"], 2))
def test_calls_that_touch_the_same_bytes_have_an_order(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = MODELS / f"{name}.onnx" if "_" in name else saved(name, tmp_path)
    if not model.exists():
        pytest.skip(f"{name} is not built: python -m benchmarks.models")
    report = packaged(model, tmp_path / "out")
    told = report["streams"]
    assert told is not None and 2 <= told["count"] <= 4 and told["seconds"] <= 0.98 * told["in_turn"]
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["streams"] == told and {kernel["stream"] for kernel in manifest["kernels"]} == set(range(told["count"]))
    watch, device = watched(tmp_path / "out", monkeypatch)
    assert not list(watch.races())
    assert {number for _, number, *_ in watch.calls} == {
        device.main.number,
        *range(device.main.number + 1, device.main.number + told["count"]),
    }
    for _, stream, number, clock, _ in watch.calls:
        assert clock.get(device.main.number, 0) > 0, "a stream of the graph begins after the caller's"
        assert device.main.clock.get(stream, 0) > number, "the caller's stream waits for every call"


def test_a_missing_wait_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above sees a kernel that does not wait."""
    packaged(saved("transformer", tmp_path), tmp_path / "out")
    path = tmp_path / "out" / "model.py"
    text = path.read_text()
    at = text.index(", after=(")
    path.write_text(text[:at] + text[text.index(")", at) + 1 :])
    watch, _ = watched(tmp_path / "out", monkeypatch)
    assert list(watch.races())


def test_without_a_capture_all_is_launched_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(monkeypatch)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    streams = package_runtime.Streams(3, torch.device("cuda", 0))
    with streams.on(1, after=("a",), marks="b"):
        assert device.now is device.main
    streams.join()
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    token = package_runtime._BESIDE.set(False)
    try:
        with package_runtime.Streams(3, torch.device("cuda", 0)).on(1):
            assert device.now is device.main
    finally:
        package_runtime._BESIDE.reset(token)
    with package_runtime.Streams(3, torch.device("cuda", 0)).on(1):
        assert device.now is not device.main and device.now.clock == device.main.clock != {}


def test_one_stream_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = saved("transformer", tmp_path)
    arguments = ["lower", str(model), "--code", "torch", "--check", "none"]
    assert run([*arguments, "--streams", "1", "-o", str(tmp_path / "one"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["streams"] is None and "Streams" not in (tmp_path / "one" / "model.py").read_text()
    assert run([*arguments, "-o", str(tmp_path / "more")]) == 0
    assert "us predicted on" in capsys.readouterr().out
    assert run([*arguments, "--streams", "0", "-o", str(tmp_path / "none")]) == 2
    with pytest.raises(CosetError, match="cannot run on 0 streams"):
        packaged(model, tmp_path / "none", streams=0)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("without", ["wait", "streams"])
def test_a_target_that_does_not_say_what_waiting_costs(without: str, tmp_path: Path) -> None:
    """Nothing can be said about streams without `wait`; how many there may be can be asked for."""
    target = get_target(TARGET)
    target = replace(target, numbers={key: value for key, value in target.numbers.items() if key != without})
    asked = Lowering(saved("transformer", tmp_path), target, limits=Limits(seconds=20, nodes=4000), code="torch", check=Check.NONE)
    assert lower.lower(asked, tmp_path / "out")["streams"] is None
    told = lower.lower(replace(asked, streams=3), tmp_path / "three")["streams"]
    assert told is None if without == "wait" else told["count"] in (2, 3)


def test_inputs_may_be_called_streams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    w = numpy_helper.from_array(np.eye(16, dtype=np.float32), "w")
    names = ["streams", "Streams", "on", "join", "after", "marks"]
    nodes = [helper.make_node("MatMul", [name, "w"], [f"y_{name}"]) for name in names]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [16, 16]) for name in (*names, *(f"y_{name}" for name in names))]
    graph = helper.make_graph(nodes, "odd", ends[: len(names)], ends[len(names) :], [w])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    onnx.save(model, tmp_path / "odd.onnx")
    assert packaged(tmp_path / "odd.onnx", tmp_path / "out")["streams"] is not None
    watch, _ = watched(tmp_path / "out", monkeypatch)
    assert not list(watch.races())


def test_parts_of_torch_programs_have_one_stream(tmp_path: Path) -> None:
    """Nobody captures them by default, and their arenas would be larger."""
    from coset.compiling import compile

    layers = [torch.nn.Linear(16, 16) for _ in range(3)]
    call = compile(lambda x: layers[0](x) @ layers[1](x) @ layers[2](x), code="torch", folder=tmp_path)
    x = torch.randn(16, 16)
    assert torch.allclose(call(x), layers[0](x) @ layers[1](x) @ layers[2](x), atol=1e-4)
    texts = [path.read_text() for path in tmp_path.glob("part_*/model.py")]
    assert texts and not any("Streams" in text for text in texts)


def test_a_limit_of_memory_keeps_kernels_in_turn(tmp_path: Path) -> None:
    report = packaged(saved("transformer", tmp_path), tmp_path / "out", max_memory=1 << 30)
    assert report["streams"] is None
