"""`coset prove`: kinds of other spellings that are proved: parts side by side, rounded constants, loops, branches, functions, gathers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from benchmarks.equal_networks import _attended, _moved
from benchmarks.spelled_net import Net, both, weights
from coset.cli import run
from coset.dialects.hub.region_terms import as_selection, if_term, while_term
from coset.frontends.onnx.model import import_model
from coset.ir.term import constant, input_term, make
from coset.ir.types import BOOL, F32, TensorType
from coset.proving.parts import DOWN, PARTS, down
from coset.proving.prove import Proving, prove
from coset.rules.library import DEFAULT, load

FAR = (1 << 63) - 1


def files(folder: Path, *models: Any) -> tuple[Path, Path]:
    """The models as files."""
    paths = folder / "one.onnx", folder / "other.onnx"
    for path, model in zip(paths, models, strict=True):
        onnx.save(model, path)
    return paths


def proved(folder: Path, one: Any, other: Any) -> dict[str, Any]:
    """What is said of the pair, which must be proved by steps that the checker accepts again from the files."""
    paths = files(folder, one, other)
    found = prove(Proving(*paths, certificate=folder / "proof"))
    assert found["answer"] == "proved", found.get("reason")
    assert run(["verify", str(folder / "proof"), *map(str, paths)]) == 0
    return found


def value(name: str, shape: Any = None, kind: int = TensorProto.FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


# ---------------------------------------------------------------- parts


@pytest.mark.parametrize(("batch", "heads"), [("n", 3), (2, 2), (1, 1)])
def test_heads_of_a_split_are_heads_at_once(batch: Any, heads: int, tmp_path: Path) -> None:
    a, b = both(18)
    depth, rows = 3, 4
    names = [[net.input(name, [batch, rows, heads * depth]) for name in "qkv"] for net in (a, b)]
    whole = _attended(a, *[_moved(a, name, heads, depth, rows) for name in names[0]], depth)
    one = a("Reshape", a("Transpose", whole, perm=[0, 2, 1, 3]), a.ints(-1, rows, heads * depth))
    parts = [b("Split", name, b.ints(*[depth] * heads), results=heads, axis=-1) for name in names[1]]
    parts = [[each] if heads == 1 else each for each in parts]
    other = b("Concat", *[_attended(b, *each, depth, rank=3) for each in zip(*parts, strict=True)], axis=-1)
    proved(tmp_path, a.model(one), b.model(other))


def test_heads_that_are_stacked_and_moved(tmp_path: Path) -> None:
    a, b = both(18)
    names = [[net.input(name, ["n", 5, 6]) for name in "qkv"] for net in (a, b)]
    whole = _attended(a, *[_moved(a, name, 2, 3, 5) for name in names[0]], 3)
    one = a("Reshape", a("Transpose", whole, perm=[0, 2, 1, 3]), a.ints(-1, 5, 6))
    slices = [[b("Slice", x, b.ints(3 * at), b.ints(3 * at + 3), b.ints(2)) for x in names[1]] for at in range(2)]
    stacked = b("Concat", *[b("Unsqueeze", _attended(b, *each, 3, rank=3), b.ints(1)) for each in slices], axis=1)
    other = b("Reshape", b("Transpose", stacked, perm=[0, 2, 1, 3]), b.ints(-1, 5, 6))
    proved(tmp_path, a.model(one), b.model(other))


@pytest.mark.parametrize("groups", [2, 4])
def test_groups_of_a_convolution_one_by_one(groups: int, tmp_path: Path) -> None:
    a, b = both(18)
    x = [net.input("x", ["n", 4, 6, 6]) for net in (a, b)]
    w, c = weights(4, 4 // groups, 3, 3), weights(4)
    each = 4 // groups
    parts = b("Split", x[1], results=groups, axis=1, num_outputs=groups)
    ranges = [slice(each * at, each * at + each) for at in range(groups)]
    convs = [b("Conv", part, b.const(w[own]), b.const(c[own]), pads=[1] * 4) for part, own in zip(parts, ranges, strict=True)]
    proved(tmp_path, a.model(a("Conv", x[0], a.const(w), a.const(c), pads=[1] * 4, group=groups)), b.model(b("Concat", *convs, axis=1)))


def test_eight_parts_through_ops(tmp_path: Path) -> None:
    a, b = both(18)
    x = [net.input("x", ["n", 8, 3]) for net in (a, b)]
    w = weights(8, 1)
    parts = b("Split", x[1], results=8, axis=1, num_outputs=8)
    sums = [b("Tanh", b("Add", part, b.const(w[at : at + 1]))) for at, part in enumerate(parts)]
    proved(tmp_path, a.model(a("Tanh", a("Add", x[0], a.const(w)))), b.model(b("Concat", *sums, axis=1)))


def test_repeated_by_tile_and_by_concat(tmp_path: Path) -> None:
    a, b = both(13)
    x = [net.input("x", ["n", 3, 4]) for net in (a, b)]
    wide = b("Concat", x[1], x[1], axis=2)
    proved(tmp_path, a.model(a("Tile", x[0], a.ints(1, 3, 2))), b.model(b("Concat", wide, wide, wide, axis=1)))


def test_a_wrong_order_of_parts_is_not_proved(tmp_path: Path) -> None:
    a, b = both(18)
    x = [net.input("x", ["n", 4, 3]) for net in (a, b)]
    parts = b("Split", x[1], results=2, axis=1, num_outputs=2)
    swapped = b("Concat", *[b("Tanh", part) for part in reversed(parts)], axis=1)
    assert prove(Proving(*files(tmp_path, a.model(a("Tanh", x[0])), b.model(swapped))))["answer"] == "refuted"


def test_blocks_are_windows_that_do_not_overlap(tmp_path: Path) -> None:
    a, b = both(18)
    x = [net.input("x", ["n", 2, 6, 9]) for net in (a, b)]
    blocks = b("Reshape", x[1], b.ints(-1, 2, 2, 3, 3, 3))
    one = a("AveragePool", x[0], kernel_shape=[3, 3], strides=[3, 3])
    proved(tmp_path, a.model(one), b.model(b("ReduceMean", blocks, b.ints(3, 5), keepdims=0)))


def test_every_second_place_by_slices(tmp_path: Path) -> None:
    a, b = both(18)
    x = [net.input("x", ["n", 3, 4, 6]) for net in (a, b)]
    corners = [(0, 0), (0, 1), (1, 0), (1, 1)]
    parts = [b("Slice", x[1], b.ints(*corner), b.ints(FAR, FAR), b.ints(2, 3), b.ints(2, 2)) for corner in corners]
    proved(tmp_path, a.model(a("SpaceToDepth", x[0], blocksize=2)), b.model(b("Concat", *parts, axis=1)))


def test_a_pointwise_convolution_is_a_product_of_the_last_axis(tmp_path: Path) -> None:
    a, b = both(13)
    x = [net.input("x", ["n", 4, 5, 5]) for net in (a, b)]
    w = weights(3, 4, 1, 1)
    product = b("MatMul", b("Transpose", x[1], perm=[0, 2, 3, 1]), b.const(np.ascontiguousarray(w[:, :, 0, 0].T)))
    proved(tmp_path, a.model(a("Conv", x[0], a.const(w))), b.model(b("Transpose", product, perm=[0, 3, 1, 2])))


def test_lines_are_pictures_of_one_column(tmp_path: Path) -> None:
    a, b = both(13)
    x = [net.input("x", ["n", 4, 9]) for net in (a, b)]
    w = weights(8, 2, 3)
    one = a("Conv", x[0], a.const(w), dilations=[2], pads=[1, 2], group=2)
    wide = b("Conv", b("Unsqueeze", x[1], b.ints(3)), b.const(w[..., None]), dilations=[2, 1], pads=[1, 0, 2, 0], group=2)
    proved(tmp_path, a.model(one), b.model(b("Squeeze", wide, b.ints(3))))


def test_what_moves_parts_down_is_there() -> None:
    phases = load(DEFAULT).phases
    named = {rule.name.split("[")[0] for phase in phases for rule in phase.rules}
    assert named >= DOWN
    own = {rule.name for phase in phases for rule in phase.rules if phase.name == PARTS}
    assert own and own <= {rule.name for rule in down(phases).rules}
    assert not any(rule.name.split("[")[0].endswith(".reverse") for rule in down(phases).rules)


# ---------------------------------------------------------------- constants that round


@pytest.mark.parametrize("count", [3, 24])
def test_a_normalization_as_factors_and_shifts(count: int, tmp_path: Path) -> None:
    a, b = both(15)
    x = [net.input("x", ["n", count, 4]) for net in (a, b)]
    scale, shift, mean = (weights(count, seed=seed) for seed in range(3))
    variance = np.abs(weights(count, seed=3)) + 0.5
    one = a("BatchNormalization", x[0], *map(a.const, (scale, shift, mean, variance)), epsilon=1e-3)
    factor = scale / np.sqrt(variance + 1e-3)
    other = b("Add", b("Mul", x[1], b.const(factor.reshape(-1, 1))), b.const((shift - mean * factor).reshape(1, -1, 1)))
    assert proved(tmp_path, a.model(one), b.model(other))["rounded"]


def test_wrong_factors_are_refuted(tmp_path: Path) -> None:
    a, b = both(15)
    x = [net.input("x", [2, 3, 4]) for net in (a, b)]
    scale, shift, mean = (weights(3, seed=seed) for seed in range(3))
    variance = np.abs(weights(3, seed=3)) + 0.5
    one = a("BatchNormalization", x[0], *map(a.const, (scale, shift, mean, variance)), epsilon=1e-3)
    factor = 1.001 * scale / np.sqrt(variance + 1e-3)
    other = b("Add", b("Mul", x[1], b.const(factor.reshape(-1, 1))), b.const((shift - mean * factor).reshape(-1, 1)))
    assert prove(Proving(*files(tmp_path, a.model(one), b.model(other))))["answer"] == "refuted"


def test_a_quotient_of_f64_by_a_number(tmp_path: Path) -> None:
    a, b = both(20, "f64")
    x = [net.input("x", ["n", 5]) for net in (a, b)]
    inner = b("Add", b("Erf", b("Div", x[1], b.const(np.sqrt(2.0)))), b.const(np.float64(1)))
    proved(tmp_path, a.model(a("Gelu", x[0])), b.model(b("Mul", b("Mul", x[1], b.const(np.float64(0.5))), inner)))


def test_attention_whose_scale_is_rounded_twice(tmp_path: Path) -> None:
    a, b = both(23)
    names = [[net.input(name, [2, 3, 5, 4]) for name in "qkv"] for net in (a, b)]
    proved(tmp_path, a.model(a("Attention", *names[0])), b.model(_attended(b, *names[1], 4)))


# ---------------------------------------------------------------- control flow and functions


def test_a_recurrent_layer_step_by_step(tmp_path: Path) -> None:
    a, b = both(14)
    steps, batch, width, hidden = 2, 2, 3, 4
    x = [net.input("x", [steps, batch, width]) for net in (a, b)]
    w, r, bias = (weights(*shape).astype(np.float32) for shape in ((1, hidden, width), (1, hidden, hidden), (1, 2 * hidden)))
    every = a("RNN", x[0], *map(a.const, (w, r, bias)), hidden_size=hidden)
    state, found = b.const(np.zeros((batch, hidden))), []
    for step in range(steps):
        given = b("MatMul", b("Gather", x[1], b.const(np.array(step)), axis=0), b.const(w[0].T.copy()))
        kept = b("MatMul", state, b.const(r[0].T.copy()))
        state = b("Tanh", b("Add", b("Add", given, kept), b.const(bias[0, :hidden] + bias[0, hidden:])))
        found.append(b("Unsqueeze", state, b.ints(0, 1)))
    proved(tmp_path, a.model(every), b.model(b("Concat", *found, axis=0)))


def test_a_loop_that_stacks_values_of_a_free_size(tmp_path: Path) -> None:
    a, b = both(16)
    x = [net.input("x", ["n", 3]) for net in (a, b)]
    body = helper.make_graph(
        [helper.make_node(op, [x], [y]) for op, x, y in (("Identity", "go", "on"), ("Tanh", "h", "next"), ("Neg", "next", "out"))],
        "body", [value("turn", [], TensorProto.INT64), value("go", [], TensorProto.BOOL), value("h", ["n", 3])],
        [value("on", [], TensorProto.BOOL), value("next", ["n", 3]), value("out", ["n", 3])],
    )  # fmt: skip
    last, every = a("Loop", a.const(np.array(3)), "", x[0], results=2, body=body)
    state, rows = x[1], []
    for _ in range(3):
        state = b("Tanh", state)
        rows.append(b("Unsqueeze", b("Neg", state), b.ints(0)))
    proved(tmp_path, a.model(last, every), b.model(state, b("Concat", *rows, axis=0)))


@pytest.mark.parametrize("shape", [(2, 3), ("n", 3)])
def test_a_branch_is_a_choice(shape: Any, tmp_path: Path) -> None:
    a, b = both(16)
    x, asked = ([net.input(name, own, dtype) for net in (a, b)] for name, own, dtype in (("x", shape, ""), ("c", [], "bool")))
    then, other = (
        helper.make_graph([helper.make_node(op, ["x"], [name])], name, [], [value(name)]) for op, name in (("Tanh", "p"), ("Neg", "q"))
    )
    one = a("Relu", a("If", asked[0], then_branch=then, else_branch=other))
    proved(tmp_path, a.model(one), b.model(b("Relu", b("Where", asked[1], b("Tanh", x[1]), b("Neg", x[1])))))


def test_a_branch_that_may_not_end_is_no_selection() -> None:
    x, p = input_term("x", TensorType(F32, (2,))), input_term("p", TensorType(BOOL, ()))

    def forever(inner: Any) -> Any:
        return while_term([inner], lambda _: constant(np.array(True)), lambda state: make("stablehlo.negate", (state,)))

    assert as_selection(if_term(p, [x], lambda inner: make("stablehlo.negate", (inner,)), lambda inner: inner)) is not None
    assert as_selection(if_term(p, [x], forever, lambda inner: inner)) is None


def local(op: str) -> Any:
    """A model that calls its own function `Act` twice, which is this op of twice the operand by another function."""
    net = Net(18)
    x = net.input("x", ["n", 4])
    twice = [helper.make_node("Add", ["p", "p"], ["q"])]
    inner = helper.make_function("own", "Twice", ["p"], ["q"], twice, [helper.make_opsetid("", 18)])
    nodes = [helper.make_node("Twice", ["p"], ["s"], domain="own"), helper.make_node(op, ["s"], ["q"])]
    outer = helper.make_function("own", "Act", ["p"], ["q"], nodes, [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)])
    net.functions += [outer, inner]
    return net.model(net("Act", net("Act", x, domain="own"), domain="own"))


def test_functions_of_a_model_are_their_nodes(tmp_path: Path) -> None:
    b = Net(18)
    x = b.input("x", ["n", 4])
    for _ in range(2):
        x = b("Tanh", b("Add", x, x))
    proved(tmp_path, local("Tanh"), b.model(x))


def test_functions_of_one_name_are_not_one_op(tmp_path: Path) -> None:
    same, other = files(tmp_path, local("Tanh"), local("Erf"))
    assert prove(Proving(same, other))["answer"] == "refuted"
    assert prove(Proving(same, same, certificate=tmp_path / "proof"))["answer"] == "proved"
    assert run(["verify", str(tmp_path / "proof"), str(same), str(same)]) == 0
    assert run(["verify", str(tmp_path / "proof"), str(same), str(other)]) == 1


def old(axis: int) -> Any:
    """A model that calls its own function, which is written in an older version of the opset and so stays closed."""
    net = Net(18)
    x = net.input("x", [2, 3])
    nodes = [helper.make_node("Softmax", ["p"], ["q"], axis=axis)]
    net.functions.append(helper.make_function("own", "Act", ["p"], ["q"], nodes, [helper.make_opsetid("", 11)]))
    return net.model(net("Act", x, domain="own"))


def test_two_closed_functions_of_one_name_are_not_one_op(tmp_path: Path) -> None:
    same, other = files(tmp_path, old(1), old(0))
    assert prove(Proving(same, same, certificate=tmp_path / "proof"))["answer"] == "proved"
    assert run(["verify", str(tmp_path / "proof"), str(same), str(same)]) == 0
    assert prove(Proving(same, other))["answer"] != "proved"
    assert run(["verify", str(tmp_path / "proof"), str(same), str(other)]) == 1


# ---------------------------------------------------------------- reads at places that are written down


@pytest.mark.parametrize("places", [[5, 4, 3, 2, 1, 0], [3, 4, 5, 0, 1, 2], [0, 3, 1, 4, 2, 5], [-1, 2, 2, 0]])
def test_places_that_are_written_down(places: list[int], tmp_path: Path) -> None:
    a, b = both(13)
    x = [net.input("x", ["n", 6, 3]) for net in (a, b)]
    ends = [(place % 6, place % 6 + 1) for place in places]
    parts = [b("Slice", x[1], b.ints(start), b.ints(end), b.ints(1)) for start, end in ends]
    proved(tmp_path, a.model(a("Gather", x[0], a.const(np.array(places)), axis=1)), b.model(b("Concat", *parts, axis=1)))


def test_upsampling_by_places(tmp_path: Path) -> None:
    a, b = both(13)
    x = [net.input("x", [1, 2, 3, 4]) for net in (a, b)]
    one = a("Resize", x[0], "", a.const(np.array([1, 1, 2, 3], np.float32), np.float32), mode="nearest", nearest_mode="floor",
            coordinate_transformation_mode="asymmetric")  # fmt: skip
    rows = b("Gather", x[1], b.const(np.repeat(np.arange(3), 2)), axis=2)
    proved(tmp_path, a.model(one), b.model(b("Gather", rows, b.const(np.repeat(np.arange(4), 3)), axis=3)))


def test_index_vectors_of_one_are_indices(tmp_path: Path) -> None:
    a, b = both(13)
    x = [net.input("x", [6, "n"]) for net in (a, b)]
    rows = np.array([2, 0, 1, -1])
    proved(tmp_path, a.model(a("Gather", x[0], a.const(rows), axis=0)), b.model(b("GatherND", x[1], b.const(rows[:, None]))))


@pytest.mark.parametrize("places", [[[0, 1], [2, 2]], [4, -5], [0] * 5, [1, 1, 0, 0], list(range(40))])
def test_what_moves_is_what_is_read(places: Any) -> None:
    """The meaning of a Gather whose places are written down is numpy's."""
    from coset.comparing.reference import values_of

    net = Net(13)
    x = net.input("x", [2, 5 if len(places) < 40 else 40])
    program = import_model(net.model(net("Gather", x, net.const(np.array(places)), axis=1)))
    data = np.arange(2 * program.inputs[0].tensor.dims[1], dtype=np.float32).reshape(2, -1)
    assert np.array_equal(values_of(program, {"x": data})["y0"], np.take(data, np.array(places), axis=1))


# ---------------------------------------------------------------- slopes


@pytest.mark.parametrize("by", ["Min", "Neg"])
def test_slopes_of_channels_by_parts(by: str, tmp_path: Path) -> None:
    a, b = both(16)
    x = [net.input("x", ["n", 4, 6]) for net in (a, b)]
    w = weights(4, 1)
    below = b("Min", x[1], b.const(np.float64(0))) if by == "Min" else b("Relu", b("Neg", x[1]))
    other = b("Add" if by == "Min" else "Sub", b("Relu", x[1]), b("Mul", b.const(w), below))
    proved(tmp_path, a.model(a("PRelu", x[0], a.const(w))), b.model(other))


def test_a_sum_over_what_is_stacked(tmp_path: Path) -> None:
    a, b = both(18)
    x, y = ([net.input(name, ["n", 4]) for net in (a, b)] for name in "xy")
    stacked = a("Concat", a("Unsqueeze", x[0], a.ints(0)), a("Unsqueeze", y[0], a.ints(0)), axis=0)
    proved(tmp_path, a.model(a("ReduceSum", stacked, a.ints(0), keepdims=0)), b.model(b("Add", x[1], y[1])))
