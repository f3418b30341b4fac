"""Attention that a library may do: which it does, by the price of the whole plan; the transposes and shapes that go with it; and that a
package with it gives what the evaluator does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coset.dialects.hub.terms import convert, reshape, splat, transpose
from coset.ir.builtin import absent
from coset.ir.dims import Dim, symbol
from coset.ir.evaluate import evaluate_program
from coset.ir.program import Program
from coset.ir.term import Term, input_term, make
from coset.ir.types import BF16, BOOL, F16, F32, F64, DType, TensorType
from coset.lowering.kernels.kernel import Attention, Library, Plan
from coset.lowering.kernels.plan_text import show
from coset.lowering.planning.library_attention import BY_HEADS, BY_ROWS, CALLS, may_attend, with_attentions
from coset.lowering.planning.plan import plan
from coset.pricing.judge import draft
from coset.pricing.plan_price import PlanPrices
from coset.rules.definition import evaluate_defined
from coset.targets.target import get_target
from tests.coset.test_library_products import biased, dot, half, made, matmul, ops, x_
from tests.sampled import sampled

H200 = get_target("nvidia-h200")


def attention(q: Term, k: Term, v: Term, mask: Term | None = None, **attributes: Any) -> Term:
    return make("kernel.attention", (q, k, v, mask or absent()), {"scale": 0.125, "precision": F32, **attributes})


def plain(*batch: Dim, rows: Sequence[Dim] = (512,), keys: Dim = 512, width: int = 64, dtype: DType = F16, **attributes: Any) -> Term:
    """Attention of inputs as they are."""
    q, k, v = (x_(name, *batch, *dims, width, dtype=dtype) for name, dims in (("q", rows), ("k", (keys,)), ("v", (keys,))))
    return attention(q, k, v, **attributes)


def block(batch: Dim, length: Dim, heads: int, width: int, *, shared: int = 1, causal: bool = False, dtype: DType = F16) -> Term:
    """Projections, attention and a projection behind, of heads of which `shared` share keys; tokens come first in memory."""
    size = heads * width
    x = x_("x", batch, length, size, dtype=dtype)

    def projected(name: str, count: int) -> Term:
        y = biased(dot(x, x_(f"w{name}", size, count * width, dtype=dtype), lhs_contract=(2,), rhs_contract=(0,)), f"b{name}")
        return transpose(reshape(y, (batch, length, count, width)), (0, 2, 1, 3))

    q, k, v = projected("q", heads), projected("k", heads // shared), projected("v", heads // shared)
    q = q if shared == 1 else make("stablehlo.reshape", (q,), {"shape": (batch, heads // shared, shared, length, width)})
    y = attention(q, k, v, causal=causal)
    y = y if shared == 1 else make("stablehlo.reshape", (y,), {"shape": (batch, heads, length, width)})
    y = reshape(transpose(y, (0, 2, 1, 3)), (batch, length, size))
    return biased(dot(y, x_("wo", size, size, dtype=dtype), lhs_contract=(2,), rhs_contract=(0,)), "bo")


def everything(_: Term) -> bool:
    return True


def calls(planned: Plan) -> list[Library]:
    return [each for each in planned.kernels if isinstance(each, Library) and each.term.op.name in CALLS]


# ------------------------------------------------------------ which


def test_a_transformers_attention_and_products_are_a_librarys_with_nothing_between() -> None:
    """BERT's and ViT's sizes: no transpose, and no copy for another shape."""
    assert ops(made(block(16, 512, 12, 64), numerics="reassociates")) == ["kernel.dense"] * 3 + [BY_ROWS, "kernel.dense"]


def test_heads_that_share_keys_go_with_their_dims_apart() -> None:
    planned = made(block(1, 2048, 16, 128, shared=4, causal=True), numerics="reassociates")
    (call,) = calls(planned)
    assert [each.tensor.dims for each in call.term.operands] == [(1, 2048, 4, 4, 128), (1, 2048, 4, 128), (1, 2048, 4, 128)]
    assert call.term.op.name == BY_ROWS
    assert not any(word in show(planned) for word in ("transpose(", "pointwise"))


def test_under_exact_numerics_it_is_ours() -> None:
    assert not calls(made(block(16, 512, 12, 64)))


def test_one_token_and_little_work_are_ours() -> None:
    """Of those nothing was measured, and memory is waited for."""
    for term in (plain(16, 8, rows=(4, 1), keys=8192, width=128), plain(2, 4, rows=(64,), keys=64), plain(1, 2, rows=(512,))):
        assert may_attend(term) and not calls(made(term, numerics="reassociates"))


def test_what_no_number_is_known_of_is_ours() -> None:
    for target in ("nvidia-a100", "nvidia-b200", "amd-mi300x"):
        assert not calls(made(block(16, 512, 12, 64), target=target, numerics="reassociates"))


GIVEN: dict[str, tuple[Term, bool]] = {
    "heads": (plain(4, 16), True), "bf16": (plain(4, 16, dtype=BF16), True), "shared keys": (plain(4, 8, rows=(4, 512)), True),
    "one head": (plain(4), True), "heads of one": (plain(4, rows=(16, 512)), True), "causal": (plain(4, 16, causal=True), True),
    "causal by a number": (plain(4, 16, causal=True, fill=-1e30), True), "free batch": (plain(symbol("n"), 16), True),
    "free length": (plain(4, 16, rows=(symbol("n"),)), True), "safe": (plain(4, 16, safe=True), True),
    "f32": (plain(4, 16, dtype=F32), False), "f64": (plain(4, 16, dtype=F64, precision=F64), False),
    "softmax in f16": (plain(4, 16, precision=F16), True), "heads of 20": (plain(4, 16, width=20), False),
    "heads of 192": (plain(4, 16, width=192), False), "no keys": (plain(4, 16, keys=0), False),
    "free keys": (plain(4, 16, keys=symbol("s")), False), "as many": (plain(4, 16, rows=(symbol("s"),), keys=symbol("s")), True),
    "causal from a cache": (plain(4, 16, rows=(64,), causal=True, offset=448), False),
    "causal, fewer keys": (plain(4, 16, rows=(600,), causal=True), False),
    "causal by a small number": (plain(4, 16, causal=True, fill=-100.0), False),
    "three batches": (plain(2, 2, 16), False), "pages of rows": (plain(4, 16, rows=(2, 2, 128)), False),
    "masked": (attention(half(4, 16, 512, 64, name="q"), half(4, 16, 512, 64, name="k"), half(4, 16, 512, 64, name="v"),
                         input_term("m", TensorType(BOOL, (4, 16, 512, 512)))), False),
    "values of another width": (attention(half(4, 9, 64, name="q"), half(4, 9, 64, name="k"), half(4, 9, 32, name="v")), False),
    "values of f32": (attention(half(4, 9, 64, name="q"), half(4, 9, 64, name="k"), x_("v", 4, 9, 64)), False),
}  # fmt: skip


@pytest.mark.parametrize("name", GIVEN)
def test_what_torchs_kernels_compute(name: str) -> None:
    term, fits = GIVEN[name]
    assert may_attend(term) == fits
    assert bool(calls(plan(draft([term]), H200, libraries=everything))) == fits


def test_prices_are_those_that_were_measured() -> None:
    """Ours and torch's on an H200, us (benchmarks/results/gpu-attention-nvidia-h200-2026-11-26.txt; BERT's by its profile). Within 15 %."""
    prices = PlanPrices(H200, {}, numerics="reassociates")
    measured = {
        plain(4, 16, rows=(2048,), keys=2048): (181, 168), plain(4, 16, rows=(2048,), keys=2048, causal=True): (111.6, 101),
        plain(4, 16, rows=(4096,), keys=4096, width=128, dtype=BF16): (1140, 830),
        plain(4, 8, rows=(4, 4096), keys=4096, width=128, dtype=BF16, causal=True): (1230, 967), plain(16, 12): (42, 36),
    }  # fmt: skip
    for term, times in measured.items():
        for libraries, microseconds in zip((lambda _: False, everything), times, strict=True):
            planned = plan(draft([term]), H200, libraries=libraries)
            assert len(planned.kernels) == 1 and isinstance(planned.kernels[0], Library if libraries is everything else Attention)
            assert prices.plan_seconds(planned) * 1e6 == pytest.approx(microseconds, rel=0.15)


# ------------------------------------------------------------ what goes with it


TURNED = (0, 2, 1, 3)


def call_of(*roots: Term) -> tuple[str, list[str]]:
    """The one call's op, and the buffers that it reads; what a kernel made for it is `?`."""
    planned = plan(draft(roots), H200, libraries=everything)
    (call,) = calls(planned)
    return call.term.op.name, [name if planned.buffers[str(name)].role == "input" else "?" for name in map(str, call.operands)]


def test_operands_lie_by_heads_or_by_rows() -> None:
    """By rows where the result is turned, or one operand lies so: the others are turned for it."""
    heads = [half(2, 4, 64, 32, name=name) for name in "qkv"]
    rows = [half(2, 64, 4, 32, name=name) for name in "qkv"]
    assert call_of(attention(*heads)) == (BY_HEADS, ["q", "k", "v"])
    assert call_of(transpose(attention(*(transpose(x, TURNED) for x in rows)), TURNED)) == (BY_ROWS, ["q", "k", "v"])
    assert call_of(attention(heads[0], transpose(rows[1], TURNED), heads[2])) == (BY_ROWS, ["?", "k", "?"])
    assert call_of(transpose(attention(*heads), TURNED)) == (BY_ROWS, ["?", "?", "?"])


def test_other_orders_are_kernels_of_their_own() -> None:
    q, k, v = half(2, 4, 32, 64, name="q"), half(2, 4, 64, 32, name="k"), half(64, 2, 4, 32, name="v")
    y = attention(transpose(q, (0, 1, 3, 2)), k, transpose(v, (1, 2, 0, 3)))
    assert call_of(transpose(y, (2, 0, 1, 3))) == (BY_HEADS, ["?", "k", "?"])


def test_a_result_that_others_read_stays_by_heads() -> None:
    y = plain(2, 4, rows=(64,), keys=64, width=32)
    turned = transpose(y, TURNED)
    assert call_of(turned)[0] == BY_ROWS
    assert call_of(turned, make("stablehlo.tanh", (y,)))[0] == BY_HEADS and call_of(turned, y)[0] == BY_HEADS


def test_dims_that_are_split_otherwise_are_not_followed() -> None:
    """A reshape that tears the width of heads apart, or joins rows with heads."""
    q, k, v = half(2, 64, 4, 32, name="q"), half(2, 8, 64, 16, name="k"), half(2, 8, 64, 16, name="v")
    torn = make("stablehlo.reshape", (transpose(q, TURNED),), {"shape": (2, 8, 64, 16)})
    assert call_of(attention(torn, k, v)) == (BY_HEADS, ["?", "k", "v"])
    joined = make("stablehlo.reshape", (attention(*(half(2, 4, 64, 32, name=name) for name in "qkv")),), {"shape": (2, 1, 256, 32)})
    assert call_of(transpose(joined, TURNED))[0] == BY_HEADS


def test_rotated_queries_and_keys_are_made_by_rows() -> None:
    """What is computed by heads is stored by rows, by the one kernel that computes both."""
    rows = [half(2, 64, 4, 32, name=name) for name in "qkv"]
    q, k, v = (transpose(x, TURNED) for x in rows)
    y = transpose(attention(make("stablehlo.tanh", (q,)), make("stablehlo.cosine", (k,)), v), TURNED)
    planned = plan(draft([y]), H200, libraries=everything)
    assert call_of(y) == (BY_ROWS, ["?", "?", "v"]) and len(planned.kernels) == 2


def test_other_terms_stay_as_they_are() -> None:
    roots = [block(2, 64, 4, 32), make("stablehlo.tanh", (half(3, name="t"),))]
    assert with_attentions(roots, lambda _: False) == tuple(roots)
    assert with_attentions(roots, everything)[1] is roots[1]


# ------------------------------------------------------------ what is written


def fed(program: Program, sizes: dict[str, int] | None = None) -> dict[str, np.ndarray[Any, Any]]:
    draw = np.random.default_rng(4)
    shapes = {str(term.attribute("name")): [(sizes or {})[str(dim)] if not isinstance(dim, int) else dim for dim in term.tensor.dims]
              for term in program.inputs}  # fmt: skip
    kinds = {str(term.attribute("name")): term.tensor.dtype.numpy for term in program.inputs}
    return {name: (draw.normal(size=shape) / (8 if name.startswith("w") else 1)).astype(kinds[name]) for name, shape in shapes.items()}


CASES: dict[str, tuple[list[Term], dict[str, int]]] = {
    "block": ([block(2, 40, 4, 16)], {}), "causal": ([block(2, 40, 4, 16, causal=True)], {}),
    "bf16": ([block(1, 40, 4, 16, dtype=BF16)], {}),
    "shared": ([block(2, 24, 8, 16, shared=2, causal=True)], {}), "free": ([block(symbol("b"), symbol("l"), 4, 16)], {"b": 3, "l": 21}),
    "alone": ([plain(3, rows=(20,), keys=30, width=16)], {}), "heads of one": ([plain(3, rows=(4, 20), keys=30, width=16)], {}),
    "turned apart": ([transpose(plain(2, 3, rows=(2, 20), keys=30, width=16), (3, 0, 2, 1, 4))], {}),
    "read twice": ([transpose(y := plain(2, 3, rows=(20,), keys=20, width=16), TURNED), convert(y, F32)], {}),
    "a scale": ([attention(*(half(2, 3, 20, 16, name=name) for name in "qkv"), scale=0.3)], {}),
}  # fmt: skip


@pytest.mark.parametrize("name", sampled(CASES, 2))
def test_a_package_gives_the_same(name: str, tmp_path: Path) -> None:
    """torch's function beside the evaluator, whose definition multiplies, scales and weighs."""
    pytest.importorskip("torch", reason="torch is not installed")
    from coset.lowering.package.plan import planned_package
    from coset.lowering.package.program import write_package
    from coset.packaging.asked import in_a_child

    roots, sizes = CASES[name]
    program = draft(roots)
    planned = plan(program, H200, binding=sizes, libraries=everything)
    assert len(calls(planned)) == 1
    write_package(planned_package(program, planned, title="attention", triton=False), tmp_path / "package")
    assert (tmp_path / "package" / "model.py").read_text().count("scaled_dot_product_attention(") == 1
    feed = fed(program, sizes)
    with in_a_child(tmp_path / "package", False) as package:
        found = package.run(feed)
    close = 0.06 if name == "bf16" else 0.01  # the definition rounds scores and weights to 16 bits
    for (key, _), value in zip(program.outputs, evaluate_program(program, feed, fallback=evaluate_defined), strict=True):
        assert found[key].dtype == np.asarray(value).dtype and found[key].shape == np.asarray(value).shape
        np.testing.assert_allclose(found[key].astype(np.float32), np.asarray(value, np.float32), rtol=close, atol=close)


# ------------------------------------------------------------ what libraries hand to each other


def test_what_a_library_made_is_read_in_another_shape() -> None:
    """No kernel copies it, nor where it is also an output; of a convolution, which may lie in another order, it is a kernel's."""
    y = biased(matmul(half(512, 768), half(768, 768, name="w")))
    pages = make("stablehlo.reshape", (y,), {"shape": (8, 64, 768)})
    z = biased(dot(pages, half(768, 64, name="v"), lhs_contract=(2,), rhs_contract=(0,)), "other_bias")
    assert ops(plan(draft([z]), H200, libraries=everything)) == ["kernel.dense"] * 2
    assert ops(plan(draft([z, y]), H200, libraries=everything)) == ["kernel.dense"] * 2
    flat = make("stablehlo.reshape", (make("stablehlo.tanh", (half(512, 24, 32, name="t"),)),), {"shape": (512, 768)})
    planned = plan(draft([matmul(flat, half(768, 768, name="w"))]), H200, libraries=everything)
    assert ops(planned) == ["own", "stablehlo.dot_general"]
    assert planned.buffers[planned.kernels[1].operands[0]].shape == (512, 24, 32)  # type: ignore[union-attr,index]
    pictures, filters = make("stablehlo.reshape", (half(2, 8, 81, name="p"),), {"shape": (2, 8, 9, 9)}), half(4, 8, 3, 3, name="f")
    plain = {"strides": (1, 1), "padding": ((0, 0), (0, 0)), "lhs_dilation": (1, 1), "rhs_dilation": (1, 1)}
    planned = plan(draft([make("stablehlo.convolution", (pictures, filters), plain)]), H200)
    assert planned.buffers[planned.kernels[-1].operands[0]].shape == (2, 8, 9, 9)  # type: ignore[union-attr,index]


def test_the_shape_of_an_input_is_taken_at_the_call(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    from coset.lowering.package.plan import planned_package
    from coset.lowering.package.program import write_package
    from coset.packaging.asked import in_a_child

    rows = symbol("n")
    x = half(rows, 4, 8)
    program = draft([matmul(make("stablehlo.reshape", (x,), {"shape": (rows, 32)}), half(32, 16, name="w")), splat(1.0, F16, (2,))])
    planned = plan(program, H200, binding={"n": 6}, libraries=everything)
    assert "stablehlo.dot_general" in ops(planned)
    write_package(planned_package(program, planned, title="a shape", triton=False), tmp_path / "package")
    feed = fed(program, {"n": 6})
    with in_a_child(tmp_path / "package", False) as package:
        found = package.run(feed)
    (expected, _) = evaluate_program(program, feed)
    np.testing.assert_allclose(next(iter(found.values())).astype(np.float32), np.asarray(expected, np.float32), rtol=0.01, atol=0.01)
