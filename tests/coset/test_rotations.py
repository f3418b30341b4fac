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
Shape = tuple[int | str, ...]


def model(body: str, shape: Shape, *, kind: str = "float", more: str = "", **constants: Any) -> onnx.ModelProto:
    """`body` of x to y, which have this shape."""
    text = f"{kind}[{', '.join(map(str, shape))}]"
    found = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> g ({text} x{more}) => ({text} y) {{ {body} }}')
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
        feed = {entry.name: draw.normal(size=[dim.dim_value or 3 for dim in entry.type.tensor_type.shape.dim]).astype(np.float32)
                for entry in given.graph.input}  # fmt: skip
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


def test_a_part_of_a_head() -> None:
    turned = ROTATION.format(i="i", x="o", y="t", c="c", s="s")
    body = f"o, rest = Split<axis = -1, num_outputs = 2>(x) {turned} y = Concat<axis = -1>(t, rest)"
    assert kernels(model(body, (2, 4, 16, 64), **tables((2, 4, 16, 32)))) == ["ort.RotatedHeads"]


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


@pytest.mark.parametrize(("shape", "ones"), [((2, 4, 16, 32), ()), ((1, 2, 3, 8), (1, 1)), (("n", 4, 16, 32), ())])
def test_certificates(shape: Shape, ones: tuple[int, ...], tmp_path: Path) -> None:
    before, after, proof = (str(tmp_path / name) for name in ("before.onnx", "after.onnx", "proof"))
    onnx.save(model(ONE, shape, **tables(shape, *ones)), before)
    assert run(["optimize", before, "-o", after, "--certificate", proof]) == 0
    assert [node.op_type for node in onnx.load(after).graph.node] == ["RotaryEmbedding"]
    assert run(["verify", proof, before, after]) == 0
