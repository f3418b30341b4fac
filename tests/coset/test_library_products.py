"""Products that a library may do: which it does, by the price of the whole plan; what stays in our kernels; and that both give the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from coset.dialects.hub.terms import broadcast, convert, dot, splat
from coset.ir.dims import Dim, symbol
from coset.ir.program import Program
from coset.ir.term import Term, input_term, make
from coset.ir.types import BF16, F16, F32, F64, I8, DType, TensorType
from coset.lowering.kernels.kernel import Library, Plan, Product
from coset.lowering.planning.library_products import may_be_librarys
from coset.lowering.planning.plan import plan
from coset.lowering.triton.launch import EmitOptions
from coset.lowering.triton.product import emit_product
from coset.pricing.judge import draft
from coset.pricing.plan_price import PlanPrices
from coset.pricing.windows import Planning
from coset.targets.target import get_target

H200 = get_target("nvidia-h200")


def x_(name: str, *shape: Dim, dtype: DType = F32) -> Term:
    return input_term(name, TensorType(dtype, shape))


def matmul(lhs: Term, rhs: Term) -> Term:
    batch = tuple(range(lhs.tensor.rank - 2))
    return dot(lhs, rhs, lhs_batch=batch, rhs_batch=batch, lhs_contract=(len(batch) + 1,), rhs_contract=(len(batch),))


def active(y: Term, name: str = "bias") -> Term:
    """With a bias and a ReLU behind it."""
    shape = y.tensor.dims
    biased = make("stablehlo.add", (y, broadcast(x_(name, shape[-1], dtype=y.tensor.dtype), shape, (len(shape) - 1,))))
    return make("stablehlo.maximum", (biased, splat(0, y.tensor.dtype, shape)))


def made(*roots: Term, target: str = "nvidia-h200", numerics: str = "exact", binding: dict[str, int] | None = None) -> Plan:
    machine, binding = get_target(target), binding or {}
    return Planning(draft(roots), machine, binding, numerics=numerics).cheapest(PlanPrices(machine, binding, numerics=numerics))


def kinds(planned: Plan) -> list[str]:
    return ["library" if isinstance(each, Library) else "own" if isinstance(each, Product) else "other" for each in planned.kernels]


# ------------------------------------------------------------ which


def test_much_work_is_a_librarys_and_little_is_ours() -> None:
    assert kinds(made(active(matmul(x_("x", 4096, 4096), x_("w", 4096, 4096))))) == ["library", "other"]
    assert kinds(made(active(matmul(x_("x", 64, 64), x_("w", 64, 64))))) == ["own"]
    assert kinds(made(active(matmul(x_("x", 1 << 20, 16), x_("w", 16, 64))))) == ["own"]  # it waits for memory


def test_many_small_matrices_are_one_call() -> None:
    """As the interactions of DLRM."""
    x = x_("x", 8192, 27, 64)
    turned = dot(x, x, lhs_batch=(0,), rhs_batch=(0,), lhs_contract=(2,), rhs_contract=(2,))
    assert kinds(made(turned)) == ["library"]


def test_a_free_batch_is_a_librarys_for_the_size_that_is_given() -> None:
    y = active(matmul(x_("x", symbol("n"), 256), x_("w", 256, 256)))
    assert kinds(made(y, binding={"n": 8192})) == ["library", "other"]
    assert kinds(made(y, binding={"n": 16})) == ["own"]


@pytest.mark.parametrize("dtype", [F16, BF16, F64], ids=str)
def test_what_matrix_units_multiply_is_ours(dtype: DType) -> None:
    assert kinds(made(active(matmul(x_("x", 4096, 4096, dtype=dtype), x_("w", 4096, 4096, dtype=dtype))))) == ["own"]


def test_tf32_is_ours() -> None:
    y = active(matmul(x_("x", 4096, 4096), x_("w", 4096, 4096)))
    assert kinds(made(y, numerics="approx")) == ["own"] != kinds(made(y, numerics="reassociates"))


def test_matrix_cores_that_multiply_f32_keep_it() -> None:
    assert kinds(made(active(matmul(x_("x", 4096, 4096), x_("w", 4096, 4096))), target="amd-mi300x")) == ["own"]


def test_both_operands_from_half_precision_are_multiplied_as_that() -> None:
    x, w = (convert(x_(name, 4096, 4096, dtype=F16), F32) for name in "xw")
    assert not may_be_librarys(matmul(x, w)) and kinds(made(active(matmul(x, w)))) == ["own"]
    assert may_be_librarys(matmul(x, x_("v", 4096, 4096)))
    assert may_be_librarys(matmul(*(convert(x_(name, 64, 64, dtype=I8), F32) for name in "xw")))


@pytest.mark.parametrize(("shapes", "axes", "fits"), [
    (((8, 4), (4, 6)), ((), (1,), (), (0,)), True), (((4, 8), (6, 4)), ((), (0,), (), (1,)), True),
    (((2, 3, 8, 4), (2, 3, 4, 6)), ((0, 1), (3,), (0, 1), (2,)), True), (((8, 4, 5), (4, 5, 6)), ((), (1, 2), (), (0, 1)), True),
    (((8, 4, 5), (5, 4, 6)), ((), (1, 2), (), (1, 0)), False), (((8, 4, 5), (4, 6)), ((), (1,), (), (0,)), False),
    (((8, 2, 4), (2, 4, 6)), ((1,), (2,), (0,), (1,)), False), (((2, 3, 4, 5), (3, 2, 5, 6)), ((0, 1), (3,), (1, 0), (2,)), False),
])  # fmt: skip
def test_operands_are_matrices_where_no_copy_is_needed(
    shapes: tuple[tuple[int, ...], ...], axes: tuple[tuple[int, ...], ...], fits: bool
) -> None:
    names = ("lhs_batch", "lhs_contract", "rhs_batch", "rhs_contract")
    term = dot(x_("x", *shapes[0]), x_("w", *shapes[1]), **dict(zip(names, axes, strict=True)))
    assert may_be_librarys(term) == fits


def test_no_plan_is_dearer_than_one_without_a_library() -> None:
    """Layers of several sizes, of which some pay."""
    x = x_("x", 2048, 16)
    y = x
    for place, width in enumerate((1024, 64, 512, 8, 2048)):
        last = y.tensor.dims[-1]
        y = active(matmul(y, x_(f"w{place}", last, width)), f"b{place}")
    prices, planned = PlanPrices(H200, {}), made(y)
    assert {"own", "library"} <= set(kinds(planned))
    assert prices.plan_seconds(planned) < prices.plan_seconds(plan(draft([y]), H200))


def biased(y: Term, name: str = "bias") -> Term:
    shape = y.tensor.dims
    return make("stablehlo.add", (y, broadcast(x_(name, shape[-1], dtype=y.tensor.dtype), shape, (len(shape) - 1,))))


def half(*shape: Dim, name: str = "x", dtype: DType = F16) -> Term:
    return x_(name, *shape, dtype=dtype)


def ops(planned: Plan) -> list[str]:
    return [kernel.term.op.name if isinstance(kernel, Library) else "own" for kernel in planned.kernels]


@pytest.mark.parametrize("dtype", [F16, BF16], ids=str)
def test_half_precision_by_weights_is_a_librarys_with_its_bias(dtype: DType) -> None:
    """Few rounds of tiles, which ours finish while nothing is multiplied; what rounds once less is for other numerics than exact ones."""
    x, w, rows = half(8192, 768, dtype=dtype), half(768, 768, name="w", dtype=dtype), half(768, 768, name="v", dtype=dtype)
    y, z = biased(matmul(x, w)), biased(dot(x, rows, lhs_contract=(1,), rhs_contract=(1,)))
    assert ops(made(y, numerics="reassociates")) == ["kernel.dense"] and ops(made(z, numerics="reassociates")) == ["kernel.linear"]
    assert not set(ops(made(y))) & {"kernel.dense", "kernel.linear"}
    three = half(16, 512, 768, name="three", dtype=dtype)
    assert ops(made(biased(dot(three, w, lhs_contract=(2,), rhs_contract=(0,))), numerics="reassociates")) == ["kernel.dense"]
    assert ops(made(matmul(x, w), numerics="reassociates")) == ["stablehlo.dot_general"]


def test_what_else_needs_a_product_needs_it_without_its_bias() -> None:
    """And a sum along rows is no bias, nor are numbers for each row."""
    product, rows = matmul(half(8192, 768), half(768, 768, name="w")), x_("rows", 768, dtype=F16)

    def by_a_library(*roots: Term) -> list[str]:
        return ops(plan(draft(roots), H200, libraries=may_be_librarys))

    assert by_a_library(biased(product)) == ["kernel.dense"]
    assert "kernel.dense" not in by_a_library(biased(product), product)
    assert "kernel.dense" not in by_a_library(biased(product), make("stablehlo.tanh", (product,)))
    square = matmul(half(768, 768), half(768, 768, name="w"))
    assert by_a_library(make("stablehlo.add", (square, broadcast(rows, (768, 768), (1,))))) == ["kernel.dense"]
    assert "kernel.dense" not in by_a_library(make("stablehlo.add", (square, broadcast(rows, (768, 768), (0,)))))
    turned = dot(half(768, 8192), half(768, 768, name="w"), lhs_contract=(0,), rhs_contract=(0,))
    assert may_be_librarys(turned) and "kernel.dense" not in by_a_library(biased(turned))


def test_half_precision_that_stays_ours() -> None:
    """Activations by activations, batches, weights of 8 bits; few rows; sizes that are not known; a machine that says nothing of it."""
    x, w = half(8192, 768), half(768, 768, name="w")
    tanh = make("stablehlo.tanh", (x_("y", 768, 768, dtype=F16),))
    assert not may_be_librarys(matmul(make("stablehlo.tanh", (x,)), tanh)) and may_be_librarys(matmul(make("stablehlo.tanh", (x,)), w))
    assert not may_be_librarys(matmul(half(4, 512, 768), half(4, 768, 768, name="w")))
    assert not may_be_librarys(matmul(x, convert(x_("w8", 768, 768, dtype=I8), F16)))
    assert ops(made(biased(matmul(half(16, 768), w)), numerics="reassociates")) == ["own"]
    assert ops(made(biased(matmul(x, w)), numerics="reassociates", target="nvidia-a100")) == ["own"]


def test_prices_in_half_precision_are_those_that_were_measured() -> None:
    """On an H200, us (benchmarks/results/gpu-matmul-*, gpu-models-*): ours with bias, GELU and residual or with the bias alone, the
    library's with its bias or without. Within 15 %."""
    prices = PlanPrices(H200, {}, numerics="reassociates")
    own = {(8192, 8192, 8192): 1795.9, (4096, 4096, 4096): 217.4, (2048, 14336, 4096): 410.7, (512, 4096, 4096): 34.1}
    for (m, n, k), microseconds in own.items():
        y = biased(matmul(half(m, k), half(k, n, name="w")))
        gate = make("stablehlo.multiply", (y, make("stablehlo.logistic", (y,))))
        planned = plan(draft([make("stablehlo.add", (gate, half(m, n, name="residual")))]), H200)
        assert kinds(planned) == ["own"]
        assert prices.plan_seconds(planned) * 1e6 == pytest.approx(microseconds, rel=0.15)
    alone = plan(draft([biased(matmul(half(8192, 768), half(768, 768, name="w")))]), H200)
    assert prices.plan_seconds(alone) * 1e6 == pytest.approx(25, rel=0.2)
    library = {(8192, 768, 768): 16, (2048, 1024, 4096): 25.6, (512, 4096, 4096): 25.9, (4096, 4096, 4096): 199.7, (8192, 8192, 8192): 1671}
    for (m, n, k), microseconds in library.items():
        planned = plan(draft([biased(matmul(half(m, k), half(k, n, name="w")))]), H200, libraries=lambda _: True)
        assert ops(planned) == ["kernel.dense"]
        assert prices.plan_seconds(planned) * 1e6 == pytest.approx(microseconds, rel=0.2)


def test_rounds_of_tiles_are_priced_whole() -> None:
    """240 tiles take 132 processors as long as 264, but leave room for others; a function and an operand behind them take their time."""
    prices = PlanPrices(H200, {}, numerics="reassociates")

    def own(rows: int, behind: Callable[[Term], Term] = lambda y: y) -> tuple[Plan, float]:
        planned = plan(draft([behind(biased(matmul(half(128 * rows, 2048), half(2048, 256, name="w"))))]), H200)
        assert kinds(planned) == ["own"]
        return planned, prices.plan_seconds(planned)

    few, many = own(240), own(264)
    assert few[1] == pytest.approx(many[1], rel=1e-6) and own(265)[1] > 1.3 * few[1]
    shares = [prices.work(planned, planned.kernels[0]).share for planned, _ in (few, many)]
    assert shares == pytest.approx([240 / 264, 1.0], rel=0.01)
    more = H200.numbers["tile_more"].value
    bent = own(240, lambda y: make("stablehlo.tanh", (y,)))[1] - few[1]
    both = own(240, lambda y: make("stablehlo.add", (make("stablehlo.tanh", (y,)), half(240 * 128, 256, name="z"))))[1] - few[1]
    assert bent == pytest.approx(2 * more, rel=1e-3) and both == pytest.approx(4 * more, rel=1e-3)


def test_prices_are_those_that_were_measured() -> None:
    """The products of DLRM and a large one on an H200, us; what stands beside them is in some. Within a half."""
    own: dict[tuple[int, ...], float] = {
        (1, 8192, 415, 256): 178,
        (1, 8192, 256, 64): 33,
        (8192, 27, 64, 27): 166,
        (1, 4096, 4096, 4096): 6029,
    }
    library: dict[tuple[int, ...], float] = {(1, 8192, 415, 256): 50, (8192, 27, 64, 27): 53, (1, 4096, 4096, 4096): 2724}
    prices = PlanPrices(H200, {})
    for measured, libraries in ((own, lambda _: False), (library, lambda _: True)):
        for (batch, rows, depth, columns), microseconds in measured.items():
            planned = plan(draft([matmul(x_("x", batch, rows, depth), x_("w", batch, depth, columns))]), H200, libraries=libraries)
            assert prices.plan_seconds(planned) * 1e6 == pytest.approx(microseconds, rel=0.5)


# ------------------------------------------------------------ what is written


def test_large_tiles_where_they_fill_the_machine_and_are_held() -> None:
    def sides(rows: int, options: EmitOptions, *, scaled: bool = False) -> tuple[int, int]:
        x, w = x_("x", rows, 1024), x_("w", 1024, 4096)
        if scaled:
            x = make("stablehlo.multiply", (x, x_("s", rows, 1024)))
        planned = plan(draft([matmul(x, w)]))
        (kernel,) = planned.kernels
        assert isinstance(kernel, Product)
        choice = emit_product(kernel, planned, options, []).choice
        assert choice is not None
        return choice["BLOCK_M"], choice["BLOCK_N"]

    full = EmitOptions(bulk=232448)
    assert sides(4096, full) == (128, 128) and sides(256, full) == (64, 64) and sides(4096, EmitOptions()) == (64, 64)
    assert sides(4096, replace(full, bulk=100000)) == (128, 128) != sides(4096, replace(full, bulk=100000), scaled=True)


def network(count: Dim = 48) -> Program:
    """A turned weight, a chain, a batched product of a value with itself, and a bias that is an output's last."""
    x, w, v, b = x_("x", count, 24), x_("w", 32, 24), x_("v", 32, 40), x_("b", 40)
    y = active(dot(x, w, lhs_contract=(1,), rhs_contract=(1,)))
    z = matmul(y, v)
    biased = make("stablehlo.add", (z, broadcast(b, z.tensor.dims, (1,))))
    cubes = x_("c", 5, 6, 8)
    both = dot(cubes, cubes, lhs_batch=(0,), rhs_batch=(0,), lhs_contract=(2,), rhs_contract=(2,))
    inputs = (x, w, v, b, x_("bias", 32), cubes)
    return Program(inputs, (("y", biased), ("z", make("stablehlo.tanh", (both,)))))


def cheap_library() -> PlanPrices:
    """Prices under which a library does everything."""
    own, rate = H200.kernels["full"], H200.kernels["full"].rates["f32"]
    fast = replace(own, rates={"f32": replace(rate, value=1e20)}, rows=None, work=None)
    slow = replace(own, rates={"f32": replace(rate, value=1e6)})
    return PlanPrices(replace(H200, kernels={**H200.kernels, "full": slow, "full_library": fast}), {})


@pytest.mark.parametrize("count", [48, symbol("n")], ids=str)
def test_a_library_gives_the_same(count: Dim, tmp_path: Path) -> None:
    """A package whose products are a library's, and the rest Triton's interpreter's, beside the evaluator; a dim may be free."""
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("triton", reason="Triton is not installed")
    from coset.ir.evaluate import evaluate_program
    from coset.lowering.package.plan import planned_package
    from coset.lowering.package.program import write_package
    from coset.packaging.asked import in_a_child

    program = network(count)
    planned = Planning(program, H200, {"n": 48}).cheapest(cheap_library())
    assert kinds(planned).count("library") == 3 and "own" not in kinds(planned)
    write_package(planned_package(program, planned, title="products"), tmp_path / "package")
    text = (tmp_path / "package" / "model.py").read_text()
    assert text.count(" @ ") == 3 and ".mT" in text
    generator = np.random.default_rng(3)
    sizes = [tuple(20 if not isinstance(dim, int) else dim for dim in term.tensor.dims) for term in program.inputs]
    sizes = sizes if count != 48 else [term.tensor.static or () for term in program.inputs]
    feed = {str(term.attribute("name")): generator.standard_normal(shape).astype(np.float32)
            for term, shape in zip(program.inputs, sizes, strict=True)}  # fmt: skip
    with in_a_child(tmp_path / "package", True) as package:
        found = package.run(feed)
    for (name, _), value in zip(program.outputs, evaluate_program(program, feed), strict=True):
        np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-4)


def test_half_precision_of_a_library_gives_the_same(tmp_path: Path) -> None:
    """A package that calls torch's linear with weights by rows and by columns, beside the evaluator."""
    pytest.importorskip("torch", reason="torch is not installed")
    from coset.backends.torch_loaded import LoadedPackage
    from coset.ir.evaluate import evaluate_program
    from coset.lowering.package.plan import planned_package
    from coset.lowering.package.program import write_package
    from coset.packaging.asked import in_a_child

    x, w, v = half(3, 20, 24), half(24, 32, name="w"), half(40, 32, name="v")
    y = biased(dot(x, w, lhs_contract=(2,), rhs_contract=(0,)), "b")
    z = biased(dot(make("stablehlo.tanh", (y,)), v, lhs_contract=(2,), rhs_contract=(1,)), "c")
    program = draft([z])
    planned = plan(program, H200, libraries=may_be_librarys)
    assert ops(planned) == ["kernel.dense", "own", "kernel.linear"]
    write_package(planned_package(program, planned, title="products", triton=False), tmp_path / "package")
    text = (tmp_path / "package" / "model.py").read_text()
    assert text.count("torch.nn.functional.linear(") == 2 and text.count(".mT") == 1
    assert json.loads((tmp_path / "package" / "manifest.json").read_text())["f32_sums"]
    assert "f32_sums" not in planned_package(program, plan(program, H200), title="products", triton=False).manifest
    assert not LoadedPackage(tmp_path / "package").manifest["f32_sums"], "a part of torch.compile leaves torch's settings alone"
    generator = np.random.default_rng(5)
    feed = {str(term.attribute("name")): generator.standard_normal(term.tensor.static or ()).astype(np.float16) for term in program.inputs}
    with in_a_child(tmp_path / "package", False) as package:
        (found,) = package.run(feed).values()
    (expected,) = evaluate_program(program, feed)
    np.testing.assert_allclose(found.astype(np.float32), np.asarray(expected, np.float32), rtol=4e-3, atol=2e-2)


def test_how_a_library_sums_is_set_and_set_back() -> None:
    """Sums of 16-bit floats are kept in f32 while a package runs, whatever else torch is told."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from coset.lowering.package.runtime import precision

    matmul = torch.backends.cuda.matmul
    names = [f"allow_{kind}_reduced_precision_reduction" for kind in ("fp16", "bf16")] + ["allow_fp16_accumulation"]
    split = hasattr(matmul, f"{names[0]}_split_k")
    before = [getattr(matmul, name) for name in names]
    try:
        matmul.allow_bf16_reduced_precision_reduction = True
        matmul.allow_fp16_reduced_precision_reduction = (False, False) if split else False  # not split either
        matmul.allow_fp16_accumulation = True
        with precision(False, f32_sums=False):
            assert [getattr(matmul, name) for name in names] == [False, True, True] and matmul.fp32_precision == "ieee"
        with precision(False, f32_sums=True):
            assert [getattr(matmul, name) for name in names] == [False, False, False] and matmul.fp32_precision == "ieee"
        assert [getattr(matmul, name) for name in names] == [False, True, True]
        assert not split or not getattr(matmul, f"{names[0]}_split_k")
    finally:
        for name, value in zip(names, before, strict=True):
            setattr(matmul, name, value)


def test_lowered_and_compared(tmp_path: Path) -> None:
    """A layer of much work is a library's in the package of `coset lower`, which says so; code of torch functions runs it too."""
    pytest.importorskip("torch", reason="torch is not installed")
    from coset.packaging.asked import Lowering
    from coset.packaging.lower import lower

    program = draft([active(matmul(x_("x", 1024, 512), x_("w", 512, 512)))])
    report = lower(Lowering(program, H200), tmp_path / "package")
    codes: Callable[[str], list[str]] = lambda key: [kernel[key] for kernel in report["kernels"]]  # noqa: E731
    assert codes("code") == ["library", "triton"] and report["check"]["ok"]
    assert report["cost"]["output"] == pytest.approx(report["memory"]["default"]["seconds"])
    assert lower(Lowering(program, H200, code="torch"), tmp_path / "torch")["check"]["ok"]
