"""Where outputs are not finite, and integers that are numbers: what counts as the same program there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import coset
from coset.backends.onnxruntime import Session
from coset.comparing.check import CheckReport, Oracle
from coset.comparing.difference import difference
from coset.comparing.feeds import OTHER_SIZES, cases, with_other_sizes
from coset.comparing.infinities import ANOTHER, EXCHANGED, LOST, exact_outputs
from coset.comparing.reference import against_reference, values_of
from coset.comparing.sizes import trials
from coset.comparing.whole_numbers import plain_integers
from coset.frontends.onnx.model import import_model
from coset.proving.prove import Proving, prove

INF = float("inf")
MASK = np.tril(np.ones((4, 4), bool))
CONSTANTS = {
    "m": MASK, "inf": np.float32(INF), "minf": np.float32(-INF), "z": np.float32(0), "one": np.float32(1), "big": np.float32(-3.4e38),
    "nan": np.float32(np.nan), "am": np.where(MASK, 0, -INF).astype(np.float32), "two": np.int64(2), "twice": np.float32(2),
    "up": np.float32(2.0**100), "down": np.float32(2.0**-100), "half": np.float32(0.5), "wide": np.int64([4, 4]),
}  # fmt: skip


def model(body: str, *, head: str = "float[4,4] x", result: str = "float[4,4] y") -> Any:
    """A model by its text, which may name the constants above."""
    found = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g ({head}) => ({result}) {{ {body} }}')
    used = {name for node in found.graph.node for name in node.input}
    found.graph.initializer.extend(
        onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in CONSTANTS.items() if name in used
    )
    return found


def compared(folder: Path, one: Any, other: Any, **given: Any) -> CheckReport:
    paths = folder / "one.onnx", folder / "other.onnx"
    for path, each in zip(paths, (one, other), strict=True):
        onnx.save(each, path)
    return Oracle(paths[0], import_model(paths[0]), {}).compare(paths[1], exact=False, **given)


MASKED = "y = Where(m, x, minf)"
DIFFERENT = {
    "a mask that is left out": (MASKED, "y = Identity(x)", ANOTHER),
    "a mask of zeros": (MASKED, "y = Where(m, x, z)", ANOTHER),
    "a mask of the other infinity": (MASKED, "y = Where(m, x, inf)", ANOTHER),
    "a mask of the lowest number": (MASKED, "y = Where(m, x, big)", ANOTHER),
    "a mask of NaN": (MASKED, "y = Where(m, x, nan)", EXCHANGED),
    "an added mask": ("y = Add(x, am)", "y = Identity(x)", ANOTHER),
    "the sign of a zero under a quotient": ("s = Sub(z, x) y = Reciprocal(s)", "s = Neg(x) y = Reciprocal(s)", ANOTHER),
    "an infinity everywhere": ("a = Mul(x, z) y = Add(a, inf)", "a = Mul(x, z) y = Add(a, one)", ANOTHER),
    "the logarithm of a mask": ("c = Cast<to=1>(m) l = Log(c) y = Add(x, l)", "y = Identity(x)", ANOTHER),
    "a NaN of an infinity": ("y = Sub(x, x)", "y = Mul(x, z)", ""),  # the same, NaN and all
    "a select as a product": ("p = Greater(x, z) y = Where(p, x, z)", "p = Greater(x, z) f = Cast<to=1>(p) y = Mul(x, f)", "new"),
    "a root of a negative number": ("y = Sqrt(x)", "a = Abs(x) y = Sqrt(a)", LOST),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_an_infinity_meets_the_same_infinity(name: str, tmp_path: Path) -> None:
    first, second, problem = DIFFERENT[name]
    one, other = model(first), model(second)
    assert compared(tmp_path, one, one).ok
    report = compared(tmp_path, one, other)
    assert report.ok is (problem == "")
    assert problem in str(report.worst) if problem else True
    evaluated = against_reference(import_model(one), lambda feed: values_of(import_model(other), feed), {})
    assert evaluated.ok is report.ok, "the evaluator judges as the runtime does"


@pytest.mark.parametrize("name", [name for name, (_, _, problem) in DIFFERENT.items() if problem])
def test_prove_refutes_them(name: str, tmp_path: Path) -> None:
    paths = tmp_path / "one.onnx", tmp_path / "other.onnx"
    for path, text in zip(paths, DIFFERENT[name], strict=False):
        onnx.save(model(text), path)
    for before, after in (paths, paths[::-1]):
        found = prove(Proving(before, after, seconds=2.0))
        assert found["answer"] == "refuted", found


def test_only_an_overflow_may_be_lost(tmp_path: Path) -> None:
    """2^100 x 2^100 2^-100 overflows where 2^100 x does not: the exact value is as good as the infinity, any other number is not."""
    overflowing = model("a = Mul(x, up) b = Mul(a, up) y = Mul(b, down)")
    assert compared(tmp_path, overflowing, model("y = Mul(x, up)")).ok
    report = compared(tmp_path, overflowing, model("a = Mul(x, up) y = Mul(a, half)"))
    assert not report.ok and report.worst is not None and report.worst.problem == ANOTHER
    assert not compared(tmp_path, model("y = Mul(x, up)"), overflowing).ok, "a new infinity"


def test_exact_outputs_leave_out_what_f64_does_not_hold() -> None:
    feed = {"x": np.full((4, 4), 90, np.float32)}
    (y,) = exact_outputs(import_model(model("a = Mul(x, up) b = Mul(a, up) y = Mul(b, down)")), feed).values()
    assert np.array_equal(y, np.full((4, 4), 90 * 2.0**100))
    assert exact_outputs(import_model(model("a = Mul(x, x) e = Exp(a) y = Mul(e, z)")), feed) == {}, "e^8100 is no number of f64"
    (y,) = exact_outputs(import_model(model("y = Div(x, z)")), feed).values()
    assert np.array_equal(y, np.full((4, 4), INF)), "a quotient by zero is infinite exactly"


def test_exact_outputs_go_around_nodes_without_a_meaning() -> None:
    """ArrayFeatureExtractor has none: it computes in f32, what is around it in f64."""
    body = "a = Mul(x, up) b = Mul(a, up) r = Cast<to=1>(b) y = Mul(r, down)"
    program = import_model(model(body))
    (y,) = exact_outputs(program, {"x": np.ones((4, 4), np.float32)}).values()
    assert y.dtype == np.float64 and np.array_equal(y, np.full((4, 4), 2.0**100))
    kept = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 3]> g (float[4,4] x) => (float[4,2] y)'
        " <int64[2] i = {0, 2}> { a = Add(x, x) b = ai.onnx.ml.ArrayFeatureExtractor(a, i) y = Sqrt(b) }"
    )
    program = import_model(kept)
    assert any(term.op.has("foreign") for term in program.terms())
    x = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)
    (y,) = exact_outputs(program, {"x": x}).values()
    with np.errstate(invalid="ignore"):
        assert np.allclose(y, np.sqrt(2 * x[:, [0, 2]].astype(np.float64)), equal_nan=True)


@pytest.mark.parametrize(
    ("exceptions", "left", "right", "ok"),
    [
        (frozenset(), [INF, 1], [np.nan, 1], False),
        ({"nonfinite"}, [INF, 1], [np.nan, 1], True),
        ({"nonfinite"}, [np.nan, 1], [-INF, 1], True),
        ({"nonfinite"}, [INF, 1], [-INF, 1], False),
        ({"nonfinite"}, [np.nan, 1], [2, 1], False),
        ({"masked"}, [np.nan, 1], [2, 1], True),
        ({"masked"}, [INF, 1], [-INF, 1], False),
        ({"masked"}, [1, 1], [np.nan, 1], False),
    ],
)
def test_what_rules_except_is_allowed(exceptions: Any, left: list[float], right: list[float], ok: bool) -> None:
    one, other = np.float32(left), np.float32(right)
    assert difference("normal", "y", one, other, 0.0, exact=False, exceptions=exceptions).ok is ok


# ---------------------------------------------------------------- integers


def test_integers_that_are_numbers_are_drawn_as_numbers(tmp_path: Path) -> None:
    """A product with itself is x for 0 and 1 alone."""
    head, result = "int32[4,4] x", "int32[4,4] y"
    one, other = (model(body, head=head, result=result) for body in ("y = Mul(x, x)", "y = Identity(x)"))
    assert not compared(tmp_path, one, other).ok
    drawn = {case.name: case.feed["x"] for case in cases(import_model(one), {})}
    assert {"normal", "negative", "huge"} <= drawn.keys()
    assert (drawn["negative"] < 0).any() and np.abs(drawn["normal"]).max() > 1
    assert np.iinfo(np.int32).min in drawn["huge"]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_all_widths_are_drawn_to_their_ends(dtype: str) -> None:
    program = import_model(model("y = Identity(x)", head=f"{dtype}[64] x", result=f"{dtype}[64] y"))
    drawn = {case.name: case.feed["x"] for case in cases(program, {})}
    ends = np.iinfo(dtype)
    assert drawn["huge"].dtype == dtype and {ends.min, ends.max} <= set(drawn["huge"].tolist())


@pytest.mark.parametrize(
    ("body", "plain"),
    [
        ("y = Add(i, two)", True),
        ("c = Cast<to=1>(i) f = Mul(c, half) y = Cast<to=7>(f)", True),
        ("t = Transpose(i) y = Add(t, two)", True),
        ("y = Div(i, two)", True),
        ("y = Div(two, i)", False),
        ("a = Add(i, two) y = Mod(two, a)", False),
        ("y = Gather(wide, i)", False),
        ("n = Neg(i) a = Abs(n) y = Gather(wide, a)", False),
        ("e = Expand(two, i) y = Identity(e)", False),
        ("y = ReduceSum<keepdims=0>(i)", True),
    ],
)
def test_what_is_read_as_a_place_or_a_divisor_is_no_plain_number(body: str, plain: bool) -> None:
    program = import_model(model(body, head="int64[n] i", result="int64[] y"))
    assert plain_integers(program) == (frozenset({"i"}) if plain else frozenset())


# ---------------------------------------------------------------- sizes


def test_sizes_are_drawn_in_both_orders(tmp_path: Path) -> None:
    """The distance of two sizes, and the first less the second where that is not negative, are equal where the first is the larger one."""
    shapes = "s = Shape(a) t = Shape(b) d = Sub(s, t) f = Cast<to=1>(d)"
    given = {"head": "float[rows] a, float[cols] b", "result": "float[1] y"}
    for op in ("Relu(f)", "Identity(f)"):
        one, other = model(f"{shapes} y = Abs(f)", **given), model(f"{shapes} y = {op}", **given)
        report = compared(tmp_path, one, other)
        assert not report.ok
    one, other = model(f"{shapes} y = Abs(f)", **given), model(f"{shapes} n = Neg(f) y = Relu(n)", **given)
    assert not compared(tmp_path, one, other).ok
    report = compared(tmp_path, one, one)
    assert report.ok and OTHER_SIZES in report.cases
    told = Oracle(tmp_path / "one.onnx", import_model(one), {"rows": 5, "cols": 3}).compare(tmp_path / "one.onnx", exact=False)
    assert told.ok and OTHER_SIZES not in told.cases, "the user's sizes are never changed"


@pytest.mark.parametrize(
    ("head", "result", "rows", "others"),
    [
        ("float[unk,4] x", "float[unk,4] y", 2, 32),
        ("float[unk,3,300,300] x", "float[unk,3,300,300] y", 2, 3),
        ("float[unk,4,unk] x", "float[unk,4,unk] y", 32, None),
        ("float[unk,4] x", "float[4,unk] y", 32, None),
        ("float[unk,time,4] x", "float[unk,time,4] y", 2, 32),
    ],
)
def test_few_rows_are_compared_and_once_others(head: str, result: str, rows: int, others: int | None, tmp_path: Path) -> None:
    """Rows that lead are few, by any name; a dim that also stands elsewhere is no such."""
    program = import_model(model("y = Relu(x)" if head[5:-2] == result[5:-2] else "y = Transpose(x)", head=head, result=result))
    binding = next(trials(program, {}))
    assert binding["unk"] == rows
    sizes = [case.feed["x"].shape[0] for case in with_other_sizes(cases, {})(program, binding, 0) if case.name == OTHER_SIZES]
    assert sizes == ([] if others is None else [others])


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("(int64[n] a, int64[n] b) => (int64[n] y) { y = Div(a, b) }", "b"),
        ("(int64[n] a, int64[n] b) => (int64[n] y) { y = Mod(a, b) }", "b"),
        ("(float[3,4] x, int64[2] s) => (float[p,q] y) { y = Reshape(x, s) }", "s"),
        ("(int64 a, int64 b, int64 c) => (int64[n] y) { y = Range(a, b, c) }", "c"),
        ("(float[3,4] x, int64[2] s) => (float[3,p] y, float[3,q] z) { y, z = Split<axis=1>(x, s) }", "s"),
        ("(float[1,1,3,4] x, int64[4] s) => (float[a,b,c,d] y) { e = Identity(s) y = Resize(x, , , e) }", "s"),
    ],
)
def test_what_an_integer_must_obey_is_drawn(text: str, name: str, tmp_path: Path) -> None:
    """A divisor is not 0, sizes fit: the original runs, whatever is drawn, so nothing is skipped."""
    found = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {text}')
    report = compared(tmp_path, found, found)
    assert report.ok and not report.skipped
    drawn = {case.feed[name].tobytes() for case in cases(import_model(found), report.binding)}
    assert len(drawn) > 1 or "Reshape" in text, "only a reshape has but one shape that always fits"


@pytest.mark.parametrize(
    "divisor", ["d = Mul(b, b)", "n = Neg(b) d = Abs(n)", "c = Concat<axis=0>(b, b) d, e = Split<axis=0>(c)", "d = Gather(b, a)"]
)
def test_what_divisors_are_computed_from_is_drawn_anew(divisor: str, tmp_path: Path) -> None:
    """The first draws have zeros: no usual number runs, and the model was refused."""
    text = f"(int64[8] a, int64[8] b) => (int64[8] y, int64[8] z) {{ {divisor} y = Mod(a, d) z = Sub(b, a) }}"
    found = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {text}')
    assert coset.optimize(found).report["check"]["ok"]
    report = compared(tmp_path, found, found)
    assert report.ok and any(case.startswith(("normal", "second", "negative")) for case in report.cases)


def test_free_dims_are_sizes_that_weights_have(tmp_path: Path) -> None:
    """Three channels, and pictures that are large enough: neither one number for both nor the usual ones."""
    weights = np.ones((2, 3, 40, 40), np.float32) * np.linspace(0, 1, 40, dtype=np.float32)
    found = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[n,ch,h,w] x) => (float[n,2,p,q] y) { y = Conv(x, k) }'
    )
    found.graph.initializer.append(onnx.numpy_helper.from_array(weights, "k"))
    report = compared(tmp_path, found, found)
    assert report.ok and report.binding["ch"] == 3 and report.binding["h"] >= 40


def test_exact_compares_bits_before_it_looks_for_steps(tmp_path: Path) -> None:
    """ONNX Runtime's Relu leaves a zero of either sign as it is, its Max does not, and the definitions have both as one maximum."""
    paths = tmp_path / "one.onnx", tmp_path / "other.onnx"
    for path, text in zip(paths, ("y = Max(x, z)", "y = Relu(x)"), strict=True):
        onnx.save(model(text), path)
    assert prove(Proving(*paths, "exact", seconds=2.0))["answer"] == "refuted"
    assert prove(Proving(*paths, "reassociates", seconds=2.0))["answer"] == "proved"


BITS = {
    "a product that overflows and comes back": ("a = Mul(x, twice) y = Mul(a, half)", "y = Identity(x)"),
    "a square and its root": ("a = Mul(x, x) y = Sqrt(a)", "y = Abs(x)"),
    "a mask beside an infinity": (MASKED, "y = Add(x, am)"),
    "a Relu that keeps the sign of a zero": ("a = Max(x, z) y = Reciprocal(a)", "a = Relu(x) y = Reciprocal(a)"),
}


@pytest.mark.parametrize("name", BITS)
def test_exact_compares_at_the_ends_of_the_type(name: str, tmp_path: Path) -> None:
    """Every number of the type is an input, where every bit counts: the largest ones, and infinities beside them."""
    paths = tmp_path / "one.onnx", tmp_path / "other.onnx"
    for path, text in zip(paths, BITS[name], strict=True):
        onnx.save(model(text), path)
    assert not Oracle(paths[0], import_model(paths[0]), {}, exact=True).compare(paths[1], exact=True).ok
    assert prove(Proving(*paths, "exact", seconds=2.0))["answer"] == "refuted"


@pytest.mark.parametrize("text", ["a = Max(x, z) y = Reciprocal(a)", "a = Relu(x) y = Reciprocal(a)", "a = Clip(x, z) y = Reciprocal(a)"])
def test_exact_takes_no_relu_for_a_maximum(text: str, tmp_path: Path) -> None:
    """They are one by definition, and differ in the sign of a zero in ONNX Runtime (docs/undefined.md, `zero-sign`): bits are compared."""
    coset.optimize(model(text), numerics="exact").save(tmp_path / "out.onnx")
    assert onnx.load(tmp_path / "out.onnx").graph.node[0].op_type == text.split()[2].partition("(")[0]


def test_exact_is_bits_where_a_constant_is_computed_too(tmp_path: Path) -> None:
    """ONNX Runtime makes +0 of a -0 that Where takes from its second operand, so that Where of twice the same is not that; and a constant
    that is computed elsewhere excuses nothing."""
    given = model("p = Less(x, one) y = Where(p, x, x) c = Transpose(am) d = Mul(x, c)", result="float[4,4] y, float[4,4] d")
    coset.optimize(given, numerics="exact").save(tmp_path / "out.onnx")
    onnx.save(given, tmp_path / "in.onnx")
    zeros = {"x": np.array([0.0, -0.0] * 8, np.float32).reshape(4, 4)}
    one, other = (Session(tmp_path / name).run(zeros)["y"] for name in ("in.onnx", "out.onnx"))
    np.testing.assert_array_equal(np.signbit(one), np.signbit(other))


@pytest.mark.parametrize(("dtype", "loose"), [("float16", True), ("float", False)])
def test_exact_says_when_the_runtime_changes_bits_by_itself(dtype: str, loose: bool) -> None:
    """ONNX Runtime rounds f16 between two ops or not by what stands there, be it a Transpose and a Reshape that change nothing."""
    body = "s = Softsign(x) d = Add(s, s) t = Transpose<perm = [0]>(d) y = Sqrt(t) r = Reshape(t, n) z = Exp(r)"
    head = f"g ({dtype}[64] x) => ({dtype}[64] y, {dtype}[64] z) <int64[1] n = {{64}}>"
    found = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 20]> {head} {{ {body} }}')
    check = coset.optimize(found, numerics="exact").report["check"]
    assert check["ok"] and bool(check["loose"]) is loose
    assert (check["max_abs"] > 0) is loose
