"""The comparison of outputs: what counts as equal, what as different, and how the culprit is found."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import pytest

from coset.comparing import check
from coset.comparing.check import Oracle, breaking_rule
from coset.comparing.difference import MOST_NOISE, ROUNDINGS, difference
from coset.comparing.noise import largest_step, nudge, nudged, rounded
from coset.comparing.reference import against_reference, values_of
from coset.comparing.usual_outputs import usual_sizes
from coset.egraph.limits import Limits
from coset.frontends.onnx.model import import_model
from coset.job.job import Job
from coset.packaging.searched import searched
from coset.targets.running import Running
from coset.targets.target import get_target


def compare(expected: object, got: object, *, exact: bool = False, noise: float = 0.0, case: str = "normal") -> bool:
    return difference(case, "y", np.asarray(expected), np.asarray(got), np.asarray(noise), exact=exact).ok


def test_rounding_is_within_and_a_wrong_value_is_not() -> None:
    x = np.linspace(-3, 3, 50, dtype=np.float32)
    assert compare(x, np.nextafter(x, np.float32(9)))
    assert not compare(x, x + np.float32(1e-3))
    assert compare(x, x + np.float32(1e-3), noise=1e-4)


def test_no_noise_excuses_another_number() -> None:
    x = np.linspace(-3, 3, 50, dtype=np.float32)
    assert difference("normal", "y", x, x + np.float32(1), 1.0, exact=False).ok
    assert not difference("normal", "y", x, x + np.float32(1), 1.0, exact=False, usual=3.0).ok
    assert difference("normal", "y", x, x + np.float32(0.2), 1.0, exact=False, usual=3.0).ok
    tiny = x * np.float32(1e-9)
    assert difference("zeros", "y", tiny, 3 * tiny, 1e-9, exact=False, usual=3.0).ok, "noise of what is 3 on other inputs"


@pytest.mark.parametrize(("bias", "blind"), [(-17.0, True), (17.0, True), (0.0, False)])
def test_ends_of_bounded_functions_are_judged_by_roundings_of_one(bias: float, blind: bool, tmp_path: Path) -> None:
    """Near its ends ONNX Runtime's Sigmoid gives multiples of 1.5e-8: one rounding of its operand moves all of the result."""
    body = "t = MatMul(x, w) s = Add(t, b) y = Sigmoid(s)"
    text = f"<ir_version: 8, opset_import: ['': 17]> g (float[6, 8] x) => (float[6, 8] y) {{ {body} }}".replace("'", '"')
    model = onnx.parser.parse_model(text)
    weights = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32) / 100
    given = {"w": weights, "b": np.full(8, bias, np.float32)}
    model.graph.initializer.extend(onnx.numpy_helper.from_array(value, name) for name, value in given.items())
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    program = import_model(path)
    oracle = Oracle(path, program, {})
    report = oracle.compare(path, exact=False)
    assert report.ok and bool(report.blind) is blind and bool(report.summary()["blind"]) is blind
    assert ("`y`" in report.blind) is blind and bool(against_reference(program, lambda feed: values_of(program, feed), {}).blind) is blind
    sizes = [usual_sizes(program, {"y": np.full((6, 8), size, np.float32)})["y"] for size in (1e-7, 0.5)]
    assert sizes[0] * MOST_NOISE == pytest.approx(ROUNDINGS * 2.0**-23) and sizes[1] == 0.5


def test_exact_means_every_bit() -> None:
    x = np.array([0.0, np.nan, 1.0], np.float32)
    assert compare(x, x.copy(), exact=True)
    assert not compare(x, np.array([-0.0, np.nan, 1.0], np.float32), exact=True)
    assert not compare(x, np.nextafter(x, np.float32(9)), exact=True)


@pytest.mark.parametrize(
    ("dtype", "share", "ok"), [("bfloat16", 0.04, True), ("bfloat16", 0.2, False), ("float16", 0.04, True), ("float16", 0.1, False)]
)
def test_many_roundings_of_a_coarse_type_are_no_half_of_the_element(dtype: str, share: float, ok: bool) -> None:
    x = np.linspace(-4, 4, 9).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    assert compare(x, (x.astype(np.float32) + 4 * share).astype(x.dtype)) is ok


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        (np.float32([1, 2]), np.float64([1, 2])),
        (np.float32([1, 2]), np.float32([[1, 2]])),
        (np.float32([1, 2]), np.float32([1, np.nan])),
        (np.float32([1, 2]), np.float32([1, np.inf])),
        (np.int64([1, 2]), np.int64([1, 3])),
        (np.bool_([True]), np.bool_([False])),
    ],
)
def test_dtype_shape_new_nan_and_integers_are_never_tolerated(expected: object, got: object) -> None:
    assert not compare(expected, got)


def test_a_lost_nan_is_a_difference() -> None:
    assert not compare(np.float32([np.nan, 1]), np.float32([0, 1]), case="nan")


@pytest.mark.parametrize("culprit", range(7))
def test_the_breaking_rule_is_found_by_halving(culprit: int) -> None:
    names = [f"r{i}" for i in range(7)]
    assert breaking_rule(names, lambda kept: f"r{culprit}" not in kept) == f"r{culprit}"


def test_no_rule_is_blamed_for_what_breaks_without_rules() -> None:
    assert breaking_rule(["a"], lambda kept: False) is None


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("shape", [(), (0, 3), (7,), (5, 1001)])
def test_a_nudge_moves_to_a_neighbour_and_leaves_what_is_exact(dtype: str, shape: tuple[int, ...]) -> None:
    limits = np.finfo(dtype)
    value = np.random.default_rng(1).standard_normal(shape).astype(dtype)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, limits.max, -limits.max, limits.smallest_subnormal, -limits.smallest_subnormal]
    value.reshape(-1)[: len(special)] = np.array(special, dtype)[: value.size]
    moved = nudge(value, np.random.default_rng(0))
    with np.errstate(over="ignore"):
        up, down = (np.nextafter(value, np.array(end, dtype)) for end in (np.inf, -np.inf))
    keeps = (value == 0) | ~np.isfinite(value)
    assert (moved.dtype, moved.shape) == (value.dtype, shape)
    assert np.array_equal(moved[keeps], value[keeps], equal_nan=True)
    largest = (abs(value) == limits.max) & (moved == value)
    assert np.all(((moved == up) | (moved == down) | largest)[~keeps])
    if value.size > 1000:
        assert 0.4 < np.mean(moved > value) < 0.6


def test_a_nudge_takes_any_layout() -> None:
    value = np.random.default_rng(1).standard_normal((6, 10)).astype(np.float32)
    for view in (value.T, value[::2, 1:], np.broadcast_to(value[0], (6, 10))):
        assert np.array_equal(nudge(view, np.random.default_rng(0)), nudge(view.copy(), np.random.default_rng(0)))


def test_one_copy_of_the_weights_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The original, the two with moved constants and the one that is compared are never loaded together."""
    live: weakref.WeakSet[Any] = weakref.WeakSet()
    counts: list[int] = []

    class Counted(check.Session):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            live.add(self)
            counts.append(len(live))

    monkeypatch.setattr(check, "Session", Counted)
    weights = onnx.numpy_helper.from_array(np.ones((3, 3), np.float32), "w")
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, 3]) for name in "xy")
    graph = onnx.helper.make_graph([onnx.helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [x], [y], [weights])
    path = tmp_path / "model.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9), path)
    oracle = Oracle(path, import_model(path), {})
    assert oracle.compare(path, exact=False).ok
    assert counts == [1, 1], "no noise is measured where it is not needed"
    graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(np.full((3, 3), 2, np.float32), "w"))
    other = tmp_path / "other.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9), other)
    report = oracle.compare(other, exact=False)
    assert not report.ok and report.measured == "inputs, constants and results"
    assert all(run.noise["y"] > 0 for run in oracle.runs if run.case.name == "normal")
    assert counts == [1] * 8


def scaled(path: Path, factor: float, *, above: float | None = None) -> Path:
    """A model that multiplies its input; where a number is given only what is larger than that."""
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [64]) for name in "xy")
    numbers = [onnx.numpy_helper.from_array(np.float32(value), name) for name, value in (("f", factor), ("a", above or 0.0))]
    nodes = [onnx.helper.make_node("Mul", ["x", "f"], ["y" if above is None else "m"])]
    if above is not None:
        rest = (("Abs", ["x"], ["s"]), ("Greater", ["s", "a"], ["l"]), ("Where", ["l", "m", "x"], ["y"]))
        nodes += [onnx.helper.make_node(*each) for each in rest]
    graph = onnx.helper.make_graph(nodes, "g", [x], [y], numbers)
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9), path)
    return path


@pytest.mark.parametrize("above", [None, 1e6])
def test_a_runtime_that_changes_the_original_too_may_change_the_result_likewise(
    above: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An optimizer that doubles what is huge: what it makes of the result must be what it makes of the original. One that doubles
    everything is not taken."""
    original, wrong = scaled(tmp_path / "original.onnx", 1.0), scaled(tmp_path / "wrong.onnx", 3.0)
    doubled = {path: scaled(tmp_path / f"doubled-{path.name}", 2 * factor, above=above) for path, factor in ((original, 1.0), (wrong, 3.0))}
    told = check.Session.told

    def spoiled(model: Path, running: Running, **options: Any) -> check.Session:
        return told(doubled[model] if running.level == "all" else model, running, **options)

    monkeypatch.setattr(check.Session, "told", spoiled)
    oracle = Oracle(original, import_model(original), {})
    assert not oracle.compare(original, exact=False).apart
    report = oracle.compare(original, exact=False, running=Running("all"))
    assert (report.ok, "output `y`" in report.apart) == ((False, False) if above is None else (True, True))
    report = oracle.compare(wrong, exact=False, running=Running("all"))
    assert not report.ok and not report.apart


def test_sums_inside_nodes_round_too(tmp_path: Path) -> None:
    """Equal channels far from zero under a Softmax: no constant or input that moves tells them apart, another order of the sum does."""
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in (("x", [1, 64]), ("y", [1, 8])))
    weights = onnx.numpy_helper.from_array(np.full((64, 8), 2.0**30, np.float32), "w")
    nodes = [onnx.helper.make_node("Abs", ["x"], ["a"]), onnx.helper.make_node("MatMul", ["a", "w"], ["s"])]
    graph = onnx.helper.make_graph([*nodes, onnx.helper.make_node("Softmax", ["s"], ["y"])], "g", [x], [y], [weights])
    path = tmp_path / "model.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9), path)
    moved = rounded(import_model(path), 1)
    assert [term.op.name for term in moved.terms()].count("stablehlo.multiply") == 3
    outputs = values_of(moved, {"x": np.ones((1, 64), np.float32)})
    assert len(np.unique(outputs["y"])) > 1, "the channels are told apart"
    assert len(np.unique(values_of(import_model(path), {"x": np.ones((1, 64), np.float32)})["y"])) == 1


def test_noise_decides_where_a_few_roundings_do_not(tmp_path: Path) -> None:
    """A cancelling sum moves by more than its own size under one rounding error: another order of its terms is no mistake."""

    def saved(name: str, first: str, second: str, third: str) -> Path:
        x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [64]) for name in "xy")
        huge = [onnx.numpy_helper.from_array(np.float32(value), name) for name, value in (("h", 3e4), ("m", -3e4))]
        nodes = [onnx.helper.make_node("Add", [first, second], ["s"]), onnx.helper.make_node("Add", ["s", third], ["y"])]
        graph = onnx.helper.make_graph(nodes, "g", [x], [y], huge)
        path = tmp_path / name
        onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9), path)
        return path

    rounding, exact = saved("rounding.onnx", "x", "h", "m"), saved("exact.onnx", "h", "m", "x")
    report = Oracle(rounding, import_model(rounding), {}).compare(exact, exact=False)
    assert report.ok and report.measured, "64 roundings of the outputs alone would refuse it"


def test_numbers_below_the_normal_ones_may_be_zeros() -> None:
    """GPUs and vector libraries flush them: a gradient of nothing but such numbers is not another one. Not in f64, and not above."""
    small = np.asarray([7e-39, -3e-40], np.float32)
    assert difference("normal", "y", small, np.zeros_like(small), 0.0, exact=False).ok
    assert not difference("normal", "y", small, np.zeros_like(small), 0.0, exact=True).ok
    assert not difference("normal", "y", small.astype(np.float64), np.zeros(2), 0.0, exact=False).ok
    assert not difference("normal", "y", np.full(2, 1e-35, np.float32), np.zeros(2, np.float32), 0.0, exact=False).ok


def program_weights(width: int = 16) -> Any:
    return np.array([round(0.37 * ((7 * i) % 11 - 5), 3) for i in range(width)])


def of_text(body: str, *, width: int = 16, head: str = "float[4,16] x", result: str = "float[4,16] y", more: str = "") -> Any:
    weights = ", ".join(map(str, program_weights(width)))
    values = f"<float[{width}] w = {{{weights}}}, float two = {{2}}{more}>"
    return import_model(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g ({head}) => ({result}) {values} {{ {body} }}'))


def test_an_exponent_is_no_number_with_a_rounding_error() -> None:
    """Beside 2 a power of a negative number is NaN, so that whatever is normalized by its mean square had no noise at all."""
    program = of_text("a = Mul(x, w) y = Pow(a, two)")
    feed = {"x": np.random.default_rng(0).standard_normal((4, 16)).astype(np.float32)}
    value, expected = values_of(nudged(program, 1), feed)["y"], values_of(program, feed)["y"]
    assert np.isfinite(value).all()
    assert 0 < largest_step(value, expected) < 1e-5 * np.abs(expected).max()


def test_what_ops_round_is_noise_too() -> None:
    """1 + x - e^x near 0, as in the divergence of two distributions: neither x nor a constant moves it as far as its sums round."""
    program = of_text(
        "m = Mul(w, small) l = Add(x, m) o = Div(one, one) a = Add(l, o) e = Exp(l) y = Sub(a, e)",
        more=", float small = {0.001}, float one = {1}",
    )
    w = program_weights()

    def over_the_reals(feed: Any, error: float = 0.0) -> Any:
        sums = feed["x"].astype(np.float64) + 1e-3 * w
        with np.errstate(all="ignore"):
            return {"y": (sums - np.expm1(sums) + error).astype(np.float32)}

    report = against_reference(program, over_the_reals, {})
    assert report.ok, report.worst
    assert not against_reference(program, lambda feed: over_the_reals(feed, 1e-3), {}).ok
    assert max(each.max_abs for each in report.differences if each.case == "zeros") > 64 * 2**-24 * 1e-6, "nothing is shown"


def test_the_noise_of_kept_nodes_is_that_of_their_meaning() -> None:
    """Nodes on bf16 are kept, and what they read is not moved: a rounding of bf16 in front of an f32 output was more than was allowed."""
    body = "b = Cast<to=16>(x) m = MatMul(b, v) y = Cast<to=1>(m)"
    program = of_text(f"u = Unsqueeze(w, last) v = Cast<to=16>(u) {body}", result="float[4,1] y", more=", int64[1] last = {1}")
    assert any(term.op.has("foreign") for term in program.terms())
    opened = searched(
        Job(program, get_target("nvidia-h200"), "reassociates", Limits(), (), {}, print, None, None, 0, False), program
    ).program
    rounding = lambda feed: {"y": (values_of(program, feed)["y"] * (1 + 2**-8)).astype(np.float32)}  # noqa: E731
    assert not against_reference(program, rounding, {}).ok
    assert against_reference(program, rounding, {}, opened=opened).ok
    wrong = lambda feed: {"y": (values_of(program, feed)["y"] * 1.6).astype(np.float32)}  # noqa: E731
    assert not against_reference(program, wrong, {}, opened=opened).ok


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ([{0: float("nan"), 1: 0.5}], [{0: float("nan"), 1: 0.5}], True),
        ([{0: float("nan"), 1: 0.5}], [{0: 0.25, 1: 0.5}], False),
        ([{0: np.float32("nan")}], [{0: np.float32("nan")}], True),
        ([{"a": 0.5}], [{"b": 0.5}], False),
        ([np.array([np.nan, 1.0])], [np.array([np.nan, 1.0])], True),
        ([], [{}], False),
    ],
)
def test_a_nan_in_a_map_or_a_sequence_is_the_same(before: Any, after: Any, same: bool) -> None:
    """As a classifier's probabilities behind a ZipMap."""
    assert (difference("nan", "y", before, after, None, exact=True).problem == "") is same


def test_dims_of_different_names_are_given_different_numbers(tmp_path: Path) -> None:
    """What holds where two sizes are equal only is no program: here the difference of two sizes is left out."""

    def model(name: str, op: str) -> Path:
        nodes = [onnx.helper.make_node("Shape", [x], [f"s{x}"]) for x in "ab"]
        nodes += [onnx.helper.make_node(op, ["sa", "sb"], ["y"])]
        inputs = [onnx.helper.make_tensor_value_info(x, 1, [dim]) for x, dim in zip("ab", ("rows", "cols"), strict=True)]
        graph = onnx.helper.make_graph(nodes, "g", inputs, [onnx.helper.make_tensor_value_info("y", 7, [1])])
        path = tmp_path / f"{name}.onnx"
        onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9), path)
        return path

    one, other = model("one", "Max"), model("other", "Min")
    oracle = Oracle(one, import_model(one), {})
    assert len(set(oracle.binding.values())) == 2
    assert not oracle.compare(other, exact=False).ok
    told = Oracle(one, import_model(one), {"rows": 5, "cols": 5})
    assert told.binding == {"rows": 5, "cols": 5} and told.compare(other, exact=False).ok


def test_two_samples_are_drawn_in_one_case(tmp_path: Path) -> None:
    """What holds of one sample only is another program."""
    paths = []
    for number, shape in enumerate(("0, -1", "1, -1")):
        text = f"""<ir_version: 8, opset_import: ["": 17]> g (float[batch, 3, 4, 4] x) => (float[m, k] y)
            <int64[2] s = {{{shape}}}> {{ y = Reshape(x, s) }}"""
        paths.append(tmp_path / f"{number}.onnx")
        onnx.save(onnx.parser.parse_model(text), paths[-1])
    oracle = Oracle(paths[0], import_model(paths[0]), {})
    assert oracle.binding == {"batch": 1}
    assert {run.case.name: run.case.feed["x"].shape[0] for run in oracle.runs}["normal, of other sizes"] == 2
    worst = oracle.compare(paths[1], exact=False).worst
    assert worst is not None and not worst.ok and worst.case == "normal, of other sizes"
