"""Samples of the pairs of programs of benchmarks/different_pairs.py and benchmarks/equal_pairs.py, and faults that these found."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from benchmarks import different_pairs, equal_pairs
from benchmarks.spelled_net import Net, spelled, weights
from coset.comparing.feeds import cases
from coset.comparing.reference import read_program
from coset.egraph.limits import Limits
from coset.egraph.saturate import saturate
from coset.proving.prove import Proving, prove
from coset.proving.steps import COMPUTED, CertificateStep, replay

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def test_a_sample_of_pairs_that_differ_is_refuted() -> None:
    rows = different_pairs.run(14, 5, 10.0, different_pairs.Record(None))
    finite = [row for row in rows if row.differs == "finite"]
    assert len(finite) == 14
    assert not [row for row in finite if row.answer == "proved"]
    assert sum(row.answer == "refuted" for row in finite) >= 13, [different_pairs.line(row) for row in finite if row.answer != "refuted"]
    assert all(row.shown for row in rows if row.answer == "refuted")
    assert not [row for row in rows if row.answer == "crash"]


def test_a_sample_of_other_spellings_is_proved() -> None:
    rows = [equal_pairs.judged(pair, 20.0) for pair in random.Random(1).sample(list(spelled()), 14)]
    assert not [row for row in rows if row.answer in ("refuted", "error", "not asked")], list(map(equal_pairs.line, rows))
    assert sum(row.answer == "proved" for row in rows) >= 12, [equal_pairs.line(row) for row in rows if row.answer != "proved"]


def saved(folder: Path, name: str, net: Net | Any, *results: str, **given: Any) -> Path:
    path = folder / f"{name}.onnx"
    onnx.save(net.model(*results, **given) if isinstance(net, Net) else net, path)
    return path


def pair_of(folder: Path, *write: Any, opset: int = 17) -> tuple[Path, Path]:
    """Two models, each written by a function of a net that gives the result's name."""
    paths = []
    for place, each in enumerate(write):
        net = Net(opset)
        paths.append(saved(folder, str(place), net, each(net)))
    return paths[0], paths[1]


@pytest.mark.parametrize("step", [2, 3])
def test_integers_that_decide_sizes_are_drawn_as_such(step: int, tmp_path: Path) -> None:
    """With 0 and 1 for its ends a range has one element at most, whatever its step is."""

    def ranged(step: int) -> Any:
        def write(net: Net) -> str:
            ends = [net.input(name, [], "i64") for name in ("start", "limit")]
            return str(net("Cast", net("Range", *ends, net.const(np.array(step))), to=FLOAT))

        return write

    found = prove(Proving(*pair_of(tmp_path, ranged(1), ranged(step)), seconds=3.0))
    assert found["answer"] == "refuted"


def test_axes_that_are_inputs_are_axes(tmp_path: Path) -> None:
    net = Net(18)
    x, axes = net.input("x", [2, 3, 4]), net.input("axes", [2], "i64")
    program = read_program(saved(tmp_path, "sum", net, net("ReduceSum", x, axes)))
    for case in cases(program, {}):
        assert len({int(axis) % 3 for axis in case.feed["axes"]}) == 2


def test_divisors_without_a_sign_are_not_zero(tmp_path: Path) -> None:
    net = Net(14)
    x, y = (net.input(name, [8], "u32") for name in "xy")
    program = read_program(saved(tmp_path, "quotient", net, net("Div", x, y), dtypes=["u32"]))
    assert all((case.feed["y"] > 0).all() for case in cases(program, {}))


def test_a_threshold_that_one_number_meets_is_met(tmp_path: Path) -> None:
    """x > 0.7 and x >= 0.7 differ at one float."""

    def chosen(op: str) -> Any:
        return lambda net: net(
            "Where", net(op, net.input("x", [4]), net.const(np.full(4, 0.7))), net.const(np.ones(4)), net.const(np.zeros(4))
        )

    found = prove(Proving(*pair_of(tmp_path, chosen("Greater"), chosen("GreaterOrEqual")), seconds=5.0))
    assert found["answer"] == "refuted"


def test_a_program_without_a_value_is_another_one(tmp_path: Path) -> None:
    def shaped(*sizes: int) -> Any:
        def write(net: Net) -> str:
            x = net.input("x", ["n", 4])
            return str(net("Add", x, net("ReduceMax", net("Reshape", x, net.ints(*sizes)), keepdims=0)))

        return write

    one, other = pair_of(tmp_path, shaped(-1, 2), shaped(6, 2))
    inputs = tmp_path / "inputs.npz"
    found = prove(Proving(one, other, seconds=3.0, counterexample=inputs))
    assert found["answer"] == "refuted" and "has no value" in found["difference"]
    with np.load(inputs) as arrays:
        assert arrays["input x"].shape[0] != 3 and "first y0" in arrays


def test_values_that_are_sequences_part_too(tmp_path: Path) -> None:
    def joined(op: str) -> Any:
        def write(net: Net) -> str:
            x = net.input("x", [3])
            parts = net("SequenceConstruct", x, net(op, net("Concat", x, x, axis=0)))
            return str(net("ConcatFromSequence", parts, axis=0))

        return write

    assert prove(Proving(*pair_of(tmp_path, joined("Sin"), joined("Cos")), seconds=3.0))["answer"] == "refuted"


def test_what_the_runtime_has_no_kernel_for_is_run_by_the_evaluator(tmp_path: Path) -> None:
    def swish(alpha: float) -> Any:
        return lambda net: net("Swish", net.input("x", [3, 4]), alpha=alpha)

    assert prove(Proving(*pair_of(tmp_path, swish(1.0), swish(1.25), opset=24), seconds=3.0))["answer"] == "refuted"


def test_a_search_that_was_ended_from_outside_has_no_steps() -> None:
    """It has no log: nothing but what was entered is known."""
    from coset.dialects.hub.terms import literal
    from coset.ir.term import make

    number, sum = literal(np.float32(2)), make("stablehlo.add", (literal(np.float32(1)), literal(np.float32(1))))
    found = saturate([sum, number], [], Limits(seconds=1), logged=False)
    assert found.decoder is None
    played = replay(found, [(sum, number)], [CertificateStep(COMPUTED, (sum,), (number,))])
    assert played.joins([(sum, number)]) and not played.joins([(sum, literal(np.float32(1)))])


def test_a_number_that_rounds_is_stated_once(tmp_path: Path) -> None:
    """A normalization that someone else folded into the convolution: the shift is both a difference and a sum with a negative."""
    draw = [weights(2, seed=seed).astype(np.float32) for seed in range(4)]
    w, scale, shift, mean, variance = weights(2, 3, 3, 3), *draw[:3], np.abs(draw[3]) + np.float32(0.5)

    def apart(net: Net) -> str:
        conv = net("Conv", net.input("x", [1, 3, 6, 6]), net.const(w), pads=[1] * 4)
        return str(net("BatchNormalization", conv, *map(net.const, (scale, shift, mean, variance)), epsilon=1e-3))

    def folded(net: Net) -> str:
        factor = scale / np.sqrt(variance + 1e-3)
        x = net.input("x", [1, 3, 6, 6])
        return str(net("Conv", x, net.const(w * factor[:, None, None, None]), net.const(shift - mean * factor), pads=[1] * 4))

    found = prove(Proving(*pair_of(tmp_path, apart, folded), seconds=10.0))
    assert found["answer"] == "proved" and found["method"] == "steps"


def test_exact_is_not_proved_by_rules_that_reorder(tmp_path: Path) -> None:
    """Rules that only certificates are made with promised less than was asked for: both shifts and the quarters round to one number."""

    def shifted(quarter: float) -> Any:
        def write(net: Net) -> str:
            x = net("Unsqueeze", net.input("x", [3, 4, 5]), net.ints(1, 4))
            return str(net("Add", net("Sub", x, net.const(np.float64(1.25))), net.const(np.float32(quarter))))

        return write

    one, other = pair_of(tmp_path, shifted(0.25), shifted(float(np.nextafter(np.float32(0.25), np.float32(1)))), opset=13)
    assert prove(Proving(one, other, numerics="exact", seconds=5.0))["answer"] != "proved"


def test_the_same_weights_turned_and_reshaped_are_the_same(tmp_path: Path) -> None:
    """Filters of one place as a matrix that stands the other way: one weight in two files."""
    from coset.ir.term import constant
    from coset.proving.constants import _ways

    value = weights(5, 4, 1, 1).astype(np.float32)
    one = constant(
        np.ascontiguousarray(value), read_program(saved(tmp_path, "x", (net := Net()), net.input("x", [1]))).inputs[0].tensor.dtype
    )
    other = constant(np.ascontiguousarray(value[:, :, 0, 0].T), one.tensor.dtype)
    assert [way.tensor.dims for way in _ways(one, other)].count((4, 5)) == len(list(_ways(one, other)))
    from coset.ir.evaluate import evaluate

    assert any(np.array_equal(evaluate([way], {})[0], value[:, :, 0, 0].T) for way in _ways(one, other))


def test_an_output_without_a_rank_may_be_any(tmp_path: Path) -> None:
    """What shape inference does not know is no difference of interfaces."""
    paths = []
    for place, op in enumerate(("Sin", "Cos")):
        nodes = [helper.make_node(op, ["x"], ["h"]), helper.make_node("Reshape", ["h", "s"], ["y"])]
        shape = helper.make_tensor_value_info("s", INT64, [2] if place == 0 else ["k"])
        ends = [helper.make_tensor_value_info("x", FLOAT, [2, 3]), shape, helper.make_tensor_value_info("y", FLOAT, None)]
        graph = helper.make_graph(nodes, "g", ends[:2], ends[2:], [numpy_helper.from_array(np.array([3, 2]), "s")])
        paths.append(tmp_path / f"{op}.onnx")
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), paths[-1])
    from coset.proving.interface import _may_be

    types = [dict(read_program(path).outputs)["y"].type for path in paths]
    assert _may_be(types[0], types[1]) and _may_be(types[1], types[0])
