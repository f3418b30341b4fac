"""Rotary embeddings are written as ONNX Runtime's kernel where each cosine and sine is seen to stand in its table twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnx.reference
import pytest
from onnx import numpy_helper

import coset
from coset.cli import run

ROTATION = (
    "a{i} = Mul({x}, {c}) h{i}, g{i} = Split<axis = -1, num_outputs = 2>({x}) n{i} = Neg(g{i}) r{i} = Concat<axis = -1>(n{i}, h{i})"
    " b{i} = Mul(r{i}, {s}) {y} = Add(a{i}, b{i})"
)
PAIRS = (
    "h, g = Split<axis = -1, num_outputs = 2>(x) hc = Mul(h, c) gs = Mul(g, s) gc = Mul(g, c) hs = Mul(h, s)"
    " u = Sub(hc, gs) v = Add(gc, hs) y = Concat<axis = -1>(u, v)"
)
ONE = ROTATION.format(i="", x="x", y="y", c="c", s="s")
EVERY_OTHER = "h = Slice(x, first, end, last, pace) g = Slice(x, second, end, last, pace)"  # x[..., ::2] and x[..., 1::2]
UNBOUND = "p = Reshape(x, paired) h5, g5 = Split<axis = -1, num_outputs = 2>(p) h = Squeeze(h5, last) g = Squeeze(g5, last)"
STACKED = "u = Unsqueeze({}, last) v = Unsqueeze({}, last) w = Concat<axis = -1>(u, v) {} = Reshape(w, flat)"
NEIGHBOURS = f"n = Neg(g) {STACKED.format('n', 'h', 'r')} a = Mul(x, c) b = Mul(r, s) y = Add(a, b)"
NEIGHBOUR_PAIRS = (
    f"hc = Mul(h, c) gs = Mul(g, s) gc = Mul(g, c) hs = Mul(h, s) i = Sub(hc, gs) j = Add(gc, hs) {STACKED.format('i', 'j', 'y')}"
)
PLACES = {"first": [0], "second": [1], "end": [1 << 60], "last": [-1], "pace": [2]}
Shape = tuple[int | str, ...]


def model(body: str, shape: Shape, *, kind: str = "float", more: str = "", **constants: Any) -> onnx.ModelProto:
    """`body` of x to y, which have this shape."""
    text = f"{kind}[{', '.join(map(str, shape))}]"
    found = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> g ({text} x{more}) => ({text} y) {{ {body} }}')
    read = {name for node in found.graph.node for name in node.input}
    constants |= {name: value for name, value in PLACES.items() if name in read - constants.keys()}
    found.graph.initializer.extend(numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items())
    return found


def angles(rows: int, pairs: int) -> Any:
    return np.random.default_rng(0).uniform(-3, 3, (rows, pairs)).astype(np.float32)


def tables(shape: Shape, *ones: int) -> dict[str, Any]:
    """Cosines and sines of these heads, under so many dims of 1."""
    rows, size = (dim for dim in shape[2:] if isinstance(dim, int))
    twice = np.tile(angles(rows, size // 2), 2).reshape(*ones, rows, size)
    return {"c": np.cos(twice), "s": np.sin(twice)}


def kernels(given: onnx.ModelProto, **options: Any) -> list[str]:
    """The nodes of ONNX Runtime's own domain in what is made of the model, which costs no more and has the same values."""
    optimized = coset.optimize(given, **options)
    assert optimized.report["left_out"] == [] and optimized.report["check"]["ok"]
    assert optimized.report["cost"]["output"] <= optimized.report["cost"]["input"]
    if options.get("target") is None:
        draw = np.random.default_rng(1)
        feed = {}
        for entry in given.graph.input:
            kind, size = entry.type.tensor_type.elem_type, [dim.dim_value or 3 for dim in entry.type.tensor_type.shape.dim]
            feed[entry.name] = draw.integers(0, 9, size) if kind == onnx.TensorProto.INT64 else draw.normal(size=size).astype(np.float32)
        expected = onnx.reference.ReferenceEvaluator(given).run(None, feed)[0]
        np.testing.assert_allclose(optimized(feed)["y"], expected, rtol=2e-5, atol=2e-6)
    return [term.op.name for term in optimized.program.terms() if term.op.dialect == "ort"]


SHAPES: list[Shape] = [(2, 4, 16, 32), (1, 3, 5, 16), (1, 1, 7, 64), ("n", 4, 16, 32), (2, 3, 1, 8), (1, 1, 1, 8)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("ones", [(), (1, 1)])
def test_rotations_of_heads(shape: Shape, ones: tuple[int, ...]) -> None:
    assert kernels(model(ONE, shape, **tables(shape, *ones))) == ["ort.RotatedHeads"]


def test_a_rotation_is_one_node(tmp_path: Path) -> None:
    shape = (2, 4, 16, 32)
    coset.optimize(model(ONE, shape, **tables(shape))).save(tmp_path / "rotated.onnx")
    (node,) = onnx.load(tmp_path / "rotated.onnx").graph.node
    assert (node.domain, node.op_type) == ("com.microsoft", "RotaryEmbedding")


def test_pairs_written_out() -> None:
    once = angles(16, 16)
    assert kernels(model(PAIRS, (2, 4, 16, 32), c=np.cos(once), s=np.sin(once))) == ["ort.RotatedHeads"]


def test_the_first_rows_of_longer_tables() -> None:
    body = "c = Slice(cs, zero, sixteen, two) s = Slice(sn, zero, sixteen, two) " + ONE
    twice = np.tile(angles(64, 16), 2).reshape(1, 1, 64, 32)
    places = {"zero": np.array([0]), "sixteen": np.array([16]), "two": np.array([2])}
    assert kernels(model(body, (2, 4, 16, 32), cs=np.cos(twice), sn=np.sin(twice), **places)) == ["ort.RotatedHeads"]


@pytest.mark.parametrize("computed", [False, True])
def test_tables_made_of_angles(computed: bool) -> None:
    """Of constants, and of what only a run tells: what stands twice is computed once."""
    body = "e = Concat<axis = -1>(f, f) d = Cos(e) t = Sin(e) p = Mul(d, k) q = Mul(t, k) c = Unsqueeze(p, one) s = Unsqueeze(q, one)"
    body = f"{body} {ONE}"
    given = {"k": np.float32(1.25), "one": np.array([1])}
    more, held = (", float[1, 16, 16] f", {}) if computed else ("", {"f": angles(16, 16).reshape(1, 16, 16)})
    assert kernels(model(body, (2, 4, 16, 32), more=more, **given, **held)) == ["ort.RotatedHeads"]


HEADS, BEHIND = (2, 4, 16, 32), (2, 16, 4, 32)  # heads in front of the length and behind it
BESIDE = f"{EVERY_OTHER} {NEIGHBOURS}"
SPELLINGS = {  # the rotation, and how often its tables hold each number: in halves, beside each other, or once
    "halves": (ONE, "halves"), "pairs": (PAIRS, "once"), "neighbours": (BESIDE, "beside"), "unbound": (f"{UNBOUND} {NEIGHBOURS}", "beside"),
    "neighbour pairs": (f"{EVERY_OTHER} {NEIGHBOUR_PAIRS}", "once"),
}  # fmt: skip


def held(once: Any, how: str) -> Any:
    return {"halves": np.tile(once, 2), "beside": np.repeat(once, 2, -1), "once": once}[how]


def rotation(spelling: str, shape: Shape, *, each: bool = False, **constants: Any) -> onnx.ModelProto:
    """A rotation of heads of this shape, in front of the length of 16 or behind it; `each`: every sequence has angles of its own."""
    body, how = SPELLINGS[spelling]
    batch, (size, behind) = shape[0], (shape[3], shape[1] == 16)
    assert isinstance(size, int)
    own = angles(16 * (batch if each and isinstance(batch, int) else 1), size // 2).reshape(-1, 16, size // 2)
    own = np.expand_dims(own, 2 if behind else 1)
    rest = [dim if isinstance(dim, int) else -1 for dim in shape[:3]]
    given = {"c": held(np.cos(own), how), "s": held(np.sin(own), how), "flat": [*rest, size], "paired": [*rest, size // 2, 2]}
    return model(body, shape, **{name: value for name, value in given.items() if name in body} | constants)


@pytest.mark.parametrize("shape", [HEADS, BEHIND, ("n", 4, 16, 32), ("n", 16, 4, 32), (1, 16, 4, 32)])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_spellings(spelling: str, shape: Shape) -> None:
    """Pairs of halves and of neighbours, of heads in front of the length and behind it. A batch of one has angles of its own, too."""
    (found,) = kernels(rotation(spelling, shape))
    assert found == "ort.RotatedHeads" or (found == "ort.RotatedSequences" and shape[0] == 1)


@pytest.mark.parametrize("shape", [HEADS, BEHIND, (3, 2, 16, 32)])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_angles_of_each_sequence(spelling: str, shape: Shape) -> None:
    assert kernels(rotation(spelling, shape, each=True)) == ["ort.RotatedSequences"]


def test_heads_behind_the_length_are_turned_behind_their_transpose() -> None:
    """As a kernel takes them, so that nothing is moved twice."""
    given = rotation("halves", BEHIND)
    given.graph.node[-1].output[0] = "z"
    given.graph.node.append(onnx.helper.make_node("Transpose", ["z"], ["y"], perm=[0, 2, 1, 3]))
    for dim, size in zip(given.graph.output[0].type.tensor_type.shape.dim, HEADS, strict=True):
        dim.dim_value = size
    optimized = coset.optimize(given)
    assert [term.op.name for term in optimized.program.terms() if term.operands] == ["stablehlo.transpose", "ort.RotatedHeads"]


ANGLES = "p = Cast<to = 1>(ids) o = Unsqueeze(p, last) t = MatMul(o, f) e = Concat<axis = -1>(t, t) d = Cos(e) k = Sin(e)"
FREQUENCIES = np.float32(100.0) ** (-np.arange(16, dtype=np.float32)[None] / 16)


@pytest.mark.parametrize(("batch", "length"), [(2, 16), (2, "l"), ("n", 16), ("n", "l")])
@pytest.mark.parametrize("behind", [False, True])
def test_angles_computed_of_positions(batch: int | str, length: int | str, behind: bool) -> None:
    """As in Hugging Face's exports since 4.38: frequencies times `position_ids` of each sequence. An empty batch is one as well."""
    shape = (batch, length, 4, 32) if behind else (batch, 4, length, 32)
    given = model(
        f"{ANGLES} c = Unsqueeze(d, heads) s = Unsqueeze(k, heads) {ONE}", shape, more=f", int64[{batch}, {length}] ids",
        f=FREQUENCIES, heads=[2 if behind else 1],
    )  # fmt: skip
    assert kernels(given) == ["ort.RotatedSequences"]
    optimized, sizes = coset.optimize(given), {"n": 0, "l": 5}
    x = np.ones([sizes.get(dim, dim) if isinstance(dim, str) else dim for dim in shape], np.float32)
    ids = np.zeros([sizes.get(dim, dim) if isinstance(dim, str) else dim for dim in (batch, length)], np.int64)
    (expected,) = onnx.reference.ReferenceEvaluator(given).run(None, {"x": x, "ids": ids})
    np.testing.assert_allclose(optimized({"x": x, "ids": ids})["y"], expected, atol=1e-6)


@pytest.mark.parametrize("repeated", ["Expand({}, two)", "Concat<axis = -1>({0}, {0})"])
def test_neighbours_by_tables_of_each_position(repeated: str) -> None:
    """GPT-J: sines and cosines of each position stand in one tensor, and are repeated for the neighbours."""
    tables = "sine, cosine = Split<axis = -1, num_outputs = 2>(t)"
    for name, table in (("c", "cosine"), ("s", "sine")):
        tables += f" {name}1 = Unsqueeze({table}, last) {name}2 = {repeated.format(name + '1')}"
        tables += f" {name}3 = Reshape({name}2, rows) {name} = Unsqueeze({name}3, pace)"
    given = model(f"{tables} {BESIDE}", BEHIND, more=", float[2, 16, 32] t", two=[1, 1, 1, 2], rows=[2, 16, 32], flat=BEHIND)
    assert kernels(given) == ["ort.RotatedSequences"]


@pytest.mark.parametrize("spelling", ["halves", "neighbours"])
@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("shape", [(2, 4, 16, 48), (2, 16, 4, 48)])
def test_a_part_of_a_head(spelling: str, each: bool, shape: Shape) -> None:
    """The first 32 elements of 48 are turned (GPT-NeoX, GPT-J): one kernel takes the others along."""
    inner = rotation(spelling, (*shape[:3], 32), each=each)
    for node in inner.graph.node:
        node.input[:] = ["o" if name == "x" else name for name in node.input]
        node.output[:] = ["t" if name == "y" else name for name in node.output]
    whole = model("o, rest = Split<axis = -1>(x, parts) y = Concat<axis = -1>(t, rest)", shape, parts=[32, 16])
    split, joined = list(whole.graph.node)
    del whole.graph.node[:]
    whole.graph.node.extend([split, *inner.graph.node, joined])
    whole.graph.initializer.extend(inner.graph.initializer)
    assert kernels(whole) == ["ort.RotatedSequenceParts" if each else "ort.RotatedParts"]


NEAR = {  # what is no rotation, by what is put in the place of what
    "the other half is negated": ("halves", "n = Neg(g) r = Concat<axis = -1>(n, h)", "n = Neg(h) r = Concat<axis = -1>(g, n)"),
    "the halves stay": ("halves", "(n, h)", "(h, n)"), "a sum is a difference": ("pairs", "u = Sub", "u = Add"),
    "the other neighbour is negated": ("neighbours", "n = Neg(g) u = Unsqueeze(n, last) v = Unsqueeze(h, last)",
                                       "n = Neg(h) u = Unsqueeze(g, last) v = Unsqueeze(n, last)"),
    "neighbours become halves": ("neighbour pairs", "w = Concat<axis = -1>(u, v)", "w = Concat<axis = -2>(u, v)"),
    "the sine stands for the cosine": ("neighbour pairs", "gc = Mul(g, c)", "gc = Mul(g, s)"),
}  # fmt: skip


@pytest.mark.parametrize("case", NEAR)
@pytest.mark.parametrize("shape", [HEADS, BEHIND])
def test_what_is_no_rotation(case: str, shape: Shape, monkeypatch: pytest.MonkeyPatch) -> None:
    spelling, old, new = NEAR[case]
    body, how = SPELLINGS[spelling]
    assert old in body
    monkeypatch.setitem(SPELLINGS, spelling, (body.replace(old, new), how))
    assert kernels(rotation(spelling, shape)) == []


@pytest.mark.parametrize("spelling", ["halves", "neighbours"])
def test_tables_of_the_other_kind_stay(spelling: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Halves that are turned by tables whose neighbours are equal, and neighbours by tables of equal halves."""
    other = {"halves": "beside", "neighbours": "halves"}[spelling]
    monkeypatch.setitem(SPELLINGS, spelling, (SPELLINGS[spelling][0], other))
    assert kernels(rotation(spelling, HEADS)) == []


@pytest.mark.parametrize("table", ["c", "s"])
@pytest.mark.parametrize("place", [0, -1])
def test_halves_that_differ_stay(table: str, place: int) -> None:
    """By one number in one place."""
    given = tables((2, 4, 16, 32))
    given[table][place, place] += 1
    assert kernels(model(ONE, (2, 4, 16, 32), **given)) == []


def test_a_negated_half_stays() -> None:
    given = tables((2, 4, 16, 32))
    given["s"][:, 16:] *= -1
    assert kernels(model(ONE, (2, 4, 16, 32), **given)) == []


def test_few_elements_in_many_rows_stay() -> None:
    """The kernel takes each row for itself: as measured, it is no faster there."""
    assert kernels(model(ONE, (1, 4, 1024, 4), **tables((1, 4, 1024, 4)))) == []


@pytest.mark.parametrize("options", [{"target": "onnx-portable"}, {"numerics": "exact"}])
def test_where_the_kernel_may_not_be_used(options: dict[str, str]) -> None:
    assert kernels(model(ONE, (2, 4, 16, 32), **tables((2, 4, 16, 32))), **options) == []


def test_no_kernel_of_doubles() -> None:
    given = {name: value.astype(np.float64) for name, value in tables((2, 4, 16, 32)).items()}
    optimized = coset.optimize(model(ONE, (2, 4, 16, 32), kind="double", **given))
    assert not [term for term in optimized.program.terms() if term.op.dialect == "ort"]


def test_layers_that_share_tables() -> None:
    """The layers are one region, whose tables are known; a weight in each is not."""
    body, name = "", "x"
    weights = {f"w{i}": np.random.default_rng(i).normal(size=(32, 32)).astype(np.float32) / 6 for i in range(8)}
    for i in range(8):
        last = "y" if i == 7 else f"x{i}"
        body += f" m{i} = MatMul({name}, w{i}) t{i} = Tanh(m{i}) " + ROTATION.format(i=i, x=f"t{i}", y=last, c="c", s="s")
        name = last
    assert kernels(model(body, (1, 4, 16, 32), **tables((1, 4, 16, 32)), **weights)) == ["ort.RotatedHeads"] * 8


@pytest.mark.parametrize(("spelling", "shape", "each"), [("neighbours", HEADS, False), ("pairs", BEHIND, True), ("halves", HEADS, True)])
def test_certificates_of_other_forms(spelling: str, shape: Shape, each: bool, tmp_path: Path) -> None:
    before, after, proof = (str(tmp_path / name) for name in ("before.onnx", "after.onnx", "proof"))
    onnx.save(rotation(spelling, shape, each=each), before)
    assert run(["optimize", before, "-o", after, "--certificate", proof]) == 0
    assert "RotaryEmbedding" in [node.op_type for node in onnx.load(after).graph.node]
    assert run(["verify", proof, before, after]) == 0


@pytest.mark.parametrize(("shape", "ones"), [((2, 4, 16, 32), ()), ((1, 2, 3, 8), (1, 1)), (("n", 4, 16, 32), ())])
def test_certificates(shape: Shape, ones: tuple[int, ...], tmp_path: Path) -> None:
    before, after, proof = (str(tmp_path / name) for name in ("before.onnx", "after.onnx", "proof"))
    onnx.save(model(ONE, shape, **tables(shape, *ones)), before)
    assert run(["optimize", before, "-o", after, "--certificate", proof]) == 0
    assert [node.op_type for node in onnx.load(after).graph.node] == ["RotaryEmbedding"]
    assert run(["verify", proof, before, after]) == 0
