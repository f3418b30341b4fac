"""Every ATen op that has a term means what torch computes: graphs that Dynamo and AOTAutograd made, evaluated with NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from torch_samples import aten, samples, torch  # without torch the tests are skipped here

from coset.dialects.aten.node import BUILDERS
from coset.frontends.torch.capture import capture
from coset.frontends.torch.fx import Imported
from coset.frontends.torch.parts import downstreams, has_effect, in_order
from coset.ir.evaluate import evaluate_program
from coset.ir.types import DTYPES
from coset.lowering.package.safetensors import from_stored, stored_array
from coset.lowering.planning.primitive import primitive

SAMPLES = samples()
CLOSE = {torch.float64: 1e-11, torch.float32: 4e-6, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
"""A few roundings: what a product of some numbers, or another formula of a function, may be off of the largest element."""


def to_numpy(value: Any, name: str) -> np.ndarray:
    data = bytes(value.detach().contiguous().reshape(-1).view(torch.uint8).numpy()) if value.numel() else b""
    return from_stored(data, tuple(value.shape), DTYPES[name])


def to_torch(array: np.ndarray, name: str, dtype: Any) -> Any:
    stored = np.ascontiguousarray(stored_array(array, DTYPES[name]))
    flat = torch.frombuffer(bytearray(stored.tobytes()), dtype=torch.uint8) if array.size else torch.empty(0, dtype=torch.uint8)
    return flat.view(dtype).reshape(array.shape)


def evaluated(imported: Imported, _: Any) -> Any:
    """The program run by the evaluator."""
    program = imported.program.with_roots(primitive(imported.program))
    kinds = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "bool": torch.bool,
             "u8": torch.uint8, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64}  # fmt: skip

    def run(given: Sequence[Any]) -> list[Any]:
        feed = {term.attribute("name"): to_numpy(x, term.tensor.dtype.name) for term, x in zip(program.inputs, given, strict=True)}
        with np.errstate(all="ignore"):
            values = evaluate_program(program, feed)
        names = [term.tensor.dtype.name for _, term in program.outputs]
        return [to_torch(np.asarray(value), name, kinds[name]) for value, name in zip(values, names, strict=True)]

    return run


def compiled(call: Any, heard: list[Any], *, dynamic: bool = False) -> Any:
    torch._dynamo.reset()
    back = lambda module, inputs: capture(module, inputs, evaluated, lambda *said: heard.append(said))  # noqa: E731
    return torch.compile(call, backend=back, dynamic=dynamic, fullgraph=True)


def flat(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def assert_same(found: Any, wanted: Any) -> None:
    assert len(flat(found)) == len(flat(wanted))
    for a, b in zip(flat(found), flat(wanted), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        if not b.dtype.is_floating_point:
            assert torch.equal(a, b)
            continue
        a, b, dtype = a.double(), b.double(), b.dtype
        finite = b.isfinite()
        assert torch.equal(b[~finite].nan_to_num(7.0, 8.0, 9.0), a[~finite].nan_to_num(7.0, 8.0, 9.0)), "NaN or infinite elsewhere"
        largest = torch.where(finite & (b.abs() < 1e6), b.abs(), torch.zeros_like(b)).max() if b.numel() else 0.0
        bound = CLOSE[dtype] * torch.maximum(b.abs(), torch.as_tensor(largest)).nan_to_num(0.0, 0.0, 0.0)
        assert bool(((a - b).abs()[finite] <= bound[finite]).all()), (a - b).abs()[finite].max()


def of_all(part: Sequence[Any]) -> tuple[Any, list[Any]]:
    """One function that makes all calls, and what it takes."""
    counts = [len(given) for _, _, given in part]

    def call(*tensors: Any) -> list[Any]:
        results, start = [], 0
        for (_, one, _), count in zip(part, counts, strict=True):
            results += flat(one(*tensors[start : start + count]))
            start += count
        return results

    return call, [tensor for _, _, given in part for tensor in given]


PARTS = [SAMPLES[start : start + 24] for start in range(0, len(SAMPLES), 24)]


@pytest.mark.parametrize("part", PARTS, ids=[f"{part[0][0]} .. {part[-1][0]}" for part in PARTS])
def test_a_term_is_what_torch_computes(part: Any) -> None:
    """In one graph each, for speed; the name of the call that differs is in the message."""
    heard: list[Any] = []
    call, given = of_all(part)
    found = iter(flat(compiled(call, heard)(*given)))
    for name, one, tensors in part:
        wanted = flat(one(*tensors))
        try:
            assert_same([next(found) for _ in wanted], wanted)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from None
    assert [fallback for _, _, fallbacks in heard for fallback in fallbacks] == []


@pytest.mark.slow
def test_every_builder_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever enters an op is told to enter a sample of it too."""
    asked: set[str] = set()

    def listening(name: str, build: Any) -> Any:
        def heard(node: Any) -> Any:
            asked.add(name)
            return build(node)

        return heard

    for name, build in list(BUILDERS.items()):
        monkeypatch.setitem(BUILDERS, name, listening(name, build))
    for part in PARTS:
        call, given = of_all(part)
        compiled(call, [])(*given)
    asked.add("true_divide.Tensor")  # only what torch makes of resizing by a symbol has it: a module of `tests/coset` does
    assert sorted(BUILDERS.keys() - asked) == []


def test_a_result_that_no_term_says_is_not_left_out() -> None:
    """What a bag of rows notes for its gradient: who asks for it gets torch's."""
    heard: list[Any] = []
    given = torch.randn(5, 3), torch.tensor([1, 4, 0]), torch.tensor([0, 2])
    found = compiled(lambda w, i, o: torch.tanh(aten._embedding_bag(w, i, o)[0]), heard)(*given)
    assert_same(found, torch.tanh(aten._embedding_bag(*given)[0]))
    assert [fallback for _, _, fallbacks in heard for fallback in fallbacks] == []
    sizes = compiled(lambda w, i, o: torch.tanh(aten._embedding_bag(w, i, o)[2].float()), heard)(*given)
    assert_same(sizes, torch.tanh(aten._embedding_bag(*given)[2].float()))
    (fallback,) = [fallback for _, _, fallbacks in heard for fallback in fallbacks]
    assert fallback.reason == "its definition does not say all results that are asked for"


def test_effects_keep_their_order() -> None:
    """What follows the second draw comes after the first one too, so that no part can stand around it; and sorting puts draws back."""
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    before = graph.call_function(torch.ops.aten.tanh.default, (x,))
    first = graph.call_function(torch.ops.aten.rand_like.default, (before,))
    second = graph.call_function(torch.ops.aten.rand_like.default, (x,))
    after = graph.call_function(torch.ops.aten.sinh.default, (second,))
    graph.output((first, after))
    effects = [node for node in graph.nodes if has_effect(node)]
    assert effects == [first, second]
    assert {second, after} <= downstreams(graph, effects)[first] and after not in downstreams(graph, [])[first]
    x.append(second)  # where a sort by operands alone may put it
    assert [node for node in graph.nodes if node in effects] == [second, first]
    in_order(graph, effects)
    assert [node for node in graph.nodes if node in effects] == effects
    graph.lint()
