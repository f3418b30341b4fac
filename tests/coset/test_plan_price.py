"""Whole programs priced as kernels: by hand, the bound below every program, and choices that prices of single ops get wrong."""

from __future__ import annotations

import numpy as np
import pytest

from coset.comparing.fold import fold
from coset.comparing.sizes import bindings
from coset.dialects.hub.terms import broadcast, dot, splat
from coset.egraph.limits import Limits
from coset.ir import dims
from coset.ir.errors import CosetError
from coset.ir.evaluate import evaluate
from coset.ir.program import Program
from coset.ir.term import Term, input_term, make, topological
from coset.ir.types import F16, F32, I32, TensorType
from coset.job.job import Job
from coset.job.phases import phases_for
from coset.lowering.planning.plan import plan
from coset.lowering.planning.primitive import primitive
from coset.lowering.triton.source import can_emit
from coset.packaging.searched import EVERY_OPSET
from coset.pricing.judge import Judge, draft
from coset.pricing.plan_price import PlanPrices
from coset.rules.definition import evaluate_defined
from coset.searching.regionwise import Solved
from coset.searching.solving import solve_task
from coset.searching.task import Task
from coset.targets.document import target_files
from coset.targets.target import get_target
from tests.lowering.attention_cases import Backward, Case
from tests.lowering.plan_cases import CASES, scatter_rows

A100 = get_target("nvidia-a100")


def program_of(*roots: Term) -> Program:
    return draft(roots)


def x_(name: str, *shape: dims.Dim) -> Term:
    return input_term(name, TensorType(F32, shape))


def matmul(lhs: Term, rhs: Term) -> Term:
    return dot(lhs, rhs, lhs_contract=(1,), rhs_contract=(0,))


def prices(binding: dict[str, int] | None = None) -> PlanPrices:
    return PlanPrices(A100, binding or {})


def test_every_gpu_prices_its_kernels() -> None:
    ours = [target for target in map(get_target, target_files()) if target.dialect == "torch"]
    assert len(ours) >= 5 and all(target.fusion is not None for target in ours)


def test_a_chain_is_one_kernel_that_reads_and_writes_once() -> None:
    x = x_("x", 1 << 20)
    y = make("stablehlo.add", (make("stablehlo.multiply", (x, x)), x))
    own = A100.kernels["fused"]
    moved = 2 * 4 * (1 << 20)
    assert prices().seconds(program_of(y)) == pytest.approx(own.launch.value + own.moving(moved))


def test_costly_functions_count_beside_the_bytes() -> None:
    x = x_("x", 1 << 20)
    y = x
    for _ in range(40):
        y = make("stablehlo.tanh", (y,))
    own, product = A100.kernels["fused"], A100.kernels["matmul"]
    rate, arithmetic = own.rate("f32"), product.rate("f32")
    assert rate is not None and arithmetic is not None
    work = 40 * (1 << 20) / rate.value + 40 * 2 * (1 << 20) / arithmetic.value
    assert work > own.moving(2 * 4 * (1 << 20))
    assert prices().seconds(program_of(y)) == pytest.approx(own.launch.value + work)


def test_an_epilogue_costs_nothing_but_what_it_reads() -> None:
    a, b, row = x_("a", 64, 32), x_("b", 32, 64), x_("row", 64)
    product = matmul(a, b)
    with_bias = make("stablehlo.add", (product, broadcast(row, (64, 64), (1,))))
    own = A100.kernels["full"]
    sizes = 4 * (64 * 32 * 2 + 64 * 64)
    work = own.multiplying("f32", 2 * 64 * 32 * 64, 64)
    assert prices().seconds(program_of(product)) == pytest.approx(own.launch.value + max(work, own.moving(sizes)))
    assert prices().seconds(program_of(with_bias)) == pytest.approx(own.launch.value + max(work, own.moving(sizes + 4 * 64)))


def test_a_kernel_needs_the_share_of_the_machine_that_its_bytes_and_its_work_fill() -> None:
    """Of the longer one's rate; what a kernel takes is its launch and its work."""
    a, b = x_("a", 512, 256), x_("b", 256, 512)
    own = A100.kernels["full"]
    assert own.bandwidth is not None and (rate := own.rate("f32")) is not None
    planned = plan(program_of(matmul(a, b)), A100)
    work = prices().work(planned, planned.kernels[0])
    assert work.launch == own.launch.value and work.launch + work.seconds == prices().kernel(planned, planned.kernels[0])
    flop, bytes_ = 2 * 512 * 256 * 512, 4 * (512 * 256 * 2 + 512 * 512)
    most = max(y for _, y in own.bandwidth.points)
    assert work.share == pytest.approx(max(flop / rate.value, bytes_ / most) / work.seconds) and 0.0 < work.share < 0.5
    filling = x_("x", 1 << 26)
    planned = plan(program_of(make("stablehlo.tanh", (filling,))), A100)
    assert prices().work(planned, planned.kernels[0]).share == pytest.approx(1.0)
    planned = plan(program_of(make("stablehlo.cholesky", (x_("m", 64, 64),), {"lower": True})), A100)
    assert prices().work(planned, planned.kernels[0]).launch == A100.kernels["library"].launch.value != own.launch.value
    planned = plan(program_of(make("stablehlo.tanh", (x_("none", 0, 4),))), A100)
    assert prices().work(planned, planned.kernels[0]).share == 0.0


def test_a_scatter_moves_its_updates_and_its_result() -> None:
    """The keys are read once, whatever the bisection asks for."""
    at, updates = input_term("at", TensorType(I32, (1 << 16,))), x_("updates", 1 << 16, 64)
    total = scatter_rows(splat(0, F32, (1 << 12, 64)), at, updates, indices_are_sorted=True)
    own = A100.kernels["fused"]
    moved = 4 * (64 * (1 << 12) + 64 * (1 << 16) + (1 << 16))
    assert prices().seconds(program_of(total)) == pytest.approx(own.launch.value + own.moving(moved), rel=1e-6)


def test_a_grouped_product_works_on_the_rows_of_each_group() -> None:
    x, w, group = x_("x", 1 << 14, 512), x_("w", 8, 512, 1024), input_term("group", TensorType(I32, (1 << 14,)))
    grouped = make("kernel.grouped_product", (x, w, group), {"ascending": True})
    own, clamp = A100.kernels["full"], A100.kernels["fused"]
    work = own.multiplying("f32", 2 * 512 * 1024 * (1 << 14), 1 << 11)
    keys = clamp.launch.value + clamp.moving(2 * 4 * (1 << 14))
    assert prices().seconds(program_of(grouped)) == pytest.approx(keys + own.launch.value + work)


def test_longer_rows_are_more_to_sort() -> None:
    """The same elements in all: every layer of the network goes over each of them."""
    short, long = (prices().seconds(program_of(make("stablehlo.sort", (x_("x", (1 << 24) // n, n),), {"dimension": 1, "direction": "LT"})))
                   for n in (32, 4096))  # fmt: skip
    assert long > 3 * short


def test_a_free_dim_is_bound() -> None:
    n = dims.symbol("n")
    x = x_("x", n, 1024)
    y = make("stablehlo.negate", (x,))
    small, large = (prices({"n": count}).seconds(program_of(y)) for count in (1, 1 << 16))
    assert large > 10 * small


@pytest.mark.parametrize("name", sorted(CASES))
def test_what_ops_add_to_any_program_is_no_more_than_a_program_takes(name: str) -> None:
    """The bound: `least` of all ops of a program, as it is and opened."""
    program, feeds = CASES[name]()
    binding = {str(dim): size for term in program.inputs for dim, size in zip(term.tensor.dims, np.shape(feeds[term.attribute("name")]),
                                                                            strict=True) if not isinstance(dim, int)}  # fmt: skip
    priced = prices(binding)
    for roots in (program.roots, primitive(program)):
        taken = priced.seconds(program.with_roots(roots))
        added = sum(priced.least(t.op, t.attributes, t.type, tuple(o.type for o in t.operands)) for t in topological(roots))
        assert added <= taken * (1 + 1e-9)


def test_the_least_of_a_product_is_its_launch_and_its_work() -> None:
    a, b = x_("a", 512, 256), x_("b", 256, 512)
    term = matmul(a, b)
    library = A100.kernels["full_library"]
    found = prices().least(term.op, term.attributes, term.type, (a.type, b.type))
    assert found == pytest.approx(library.launch.value + library.multiplying("f32", 2 * 512 * 256 * 512, 512))
    thin = matmul(x_("row", 1, 256), b)  # a sum along rows, which may share a kernel
    assert prices().least(thin.op, thin.attributes, thin.type, tuple(o.type for o in thin.operands)) == 0


def test_large_stored_values_are_not_computed_to_be_judged() -> None:
    """A weight transposed at build time is an input of its shape; a number is its value."""
    judge = Judge(prices(), None)
    weight = make("stablehlo.transpose", (make("stablehlo.iota", (), {"shape": (256, 128), "dtype": F32, "dimension": 0}),),
                  {"permutation": (1, 0)})  # fmt: skip
    x = x_("x", 64, 128)
    y = matmul(x, weight)
    seconds = judge([y], {weight})
    (drafted,) = judge.known
    assert [term.attribute("name") for term in topological(drafted) if term.op.name == "builtin.input"] == ["x", "stored 0"]
    assert seconds == prices().seconds(program_of(matmul(x, x_("w", 128, 256))))
    assert judge([y], {weight}) == seconds and len(judge.known) == 1


def test_what_is_no_tensor_is_refused() -> None:
    with pytest.raises(CosetError, match="no tensor"):
        draft([make("builtin.tuple", (x_("x", 2), x_("y", 2)))])


# ------------------------------------------------------------ choices


def solved(program: Program) -> tuple[Task, Solved]:
    program = program.with_roots(primitive(program))
    job = Job(None, A100, "reassociates", Limits(seconds=30.0, nodes=20_000), (), {}, lambda _: None)
    task = Task(job, program, dict(next(bindings(program, {}))), phases_for(job, EVERY_OPSET))
    return task, solve_task(task, task.phases)[0]


def scan(steps: int, channels: int, states: int) -> Program:
    """A selective scan written out, as exporters write it: each step slices its gate, its input and its read-out."""

    def op(name: str, *operands: Term, **attributes: object) -> Term:
        return make(f"stablehlo.{name}", operands, attributes)

    def at(x: Term, step: int) -> Term:
        row = op("slice", x, start=(step, 0), limit=(step + 1, x.tensor.dims[1]), strides=(1, 1))
        return op("reshape", row, shape=x.tensor.dims[1:])

    gate, wide, across, out = (
        x_("gate", steps, channels),
        x_("wide", steps, channels),
        x_("across", steps, states),
        x_("out", steps, states),
    )
    rate = x_("rate", channels, states)
    shape = (channels, states)
    state, ends = None, []
    for step in range(steps):
        delta = broadcast(at(gate, step), shape, (0,))
        decay = op("exponential", op("multiply", delta, rate))
        entering = op(
            "multiply", broadcast(op("multiply", at(gate, step), at(wide, step)), shape, (0,)), broadcast(at(across, step), shape, (1,))
        )
        state = entering if state is None else op("add", op("multiply", decay, state), entering)
        column = op("reshape", at(out, step), shape=(states, 1))
        ends.append(op("reshape", matmul(state, column), shape=(1, channels)))
    return program_of(op("concatenate", *ends, dimension=0))


def test_a_scan_becomes_fewer_kernels() -> None:
    """What a step makes is kept in registers or written down, by what its neighbours need: no price of a single op sees it."""
    program = scan(8, 64, 8)
    task, found = solved(program)
    assert found.planned is not None
    assert found.planned.lower_bound <= found.planned.cost < 0.9 * found.planned.input_cost
    chosen, _ = fold(found.terms, found.storable, {})
    before, after = (plan(program.with_roots(roots), A100, computes=can_emit) for roots in (program.roots, chosen))
    assert len(after.kernels) < len(before.kernels)
    assert PlanPrices(A100, task.binding).seconds(program.with_roots(chosen)) == pytest.approx(found.planned.cost)
    draw = np.random.default_rng(1)
    feed = {t.attribute("name"): draw.normal(size=t.tensor.static).astype(np.float32) for t in program.inputs}
    ours, theirs = (evaluate(roots, feed, fallback=evaluate_defined)[0] for roots in (chosen, program.roots))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["attention", "training_step", "group_norm", "swiglu", "library"])
def test_the_choice_is_never_dearer_than_the_input(name: str) -> None:
    _, found = solved(CASES[name]()[0])
    assert found.planned is not None
    assert 0 <= found.planned.lower_bound <= found.cost <= found.input_cost
    assert (found.cost, found.input_cost) == (found.planned.cost, found.planned.input_cost)


def gradients_of_attention(length: int, mask: str, offset: int = 0) -> dict[str, float]:
    """Seconds of the work of each kernel of attention and its gradients, 64 heads of 64, by name."""
    program = Backward(Case((64,), (), length, length, 64, 64, F16, mask, offset=offset)).program()
    planned = plan(program, A100, binding={}, computes=can_emit)
    launch = A100.kernels["matmul"].launch.value
    return {kernel.name.split("_", 1)[1]: prices().kernel(planned, kernel) - launch for kernel in planned.kernels}


def test_kernels_of_attention_cost_their_products_and_exponentials() -> None:
    """All products of a kernel are its work: its share of the rate is looked up once."""
    length = 4096
    own, functions = A100.kernels["matmul"], A100.kernels["fused"].rate("f32")
    assert functions is not None
    found = gradients_of_attention(length, "none")
    for name, products in {"attention": 2, "softmax_rows": 2, "gradient": 3, "gradients": 4}.items():
        work = own.multiplying("f16", products * 2 * 64 * 64 * length**2, length)
        assert found[name] == pytest.approx(work + 64 * length**2 / functions.value), name
    few = gradients_of_attention(256, "none")
    assert few["gradients"] < 2 * few["softmax_rows"], "twice the work fills the processors better"


def test_what_masks_hide_is_not_paid_for() -> None:
    """A causal mask ends the loop over keys for the queries and begins that over queries for the keys; what the row in the middle looks
    at is paid for, and with such an offset that is all."""
    whole, causal = gradients_of_attention(4096, "none"), gradients_of_attention(4096, "causal")
    far = gradients_of_attention(4096, "causal", 2048)
    for name in ("softmax_rows", "gradient", "gradients"):
        assert causal[name] == pytest.approx(whole[name] / 2, rel=0.01), name
        assert far[name] == pytest.approx(whole[name], rel=0.01), name


def test_the_same_program_is_chosen_twice() -> None:
    first, second = (solved(scan(4, 32, 4))[1] for _ in range(2))
    assert first.terms == second.terms and first.planned == second.planned
