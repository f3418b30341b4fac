"""Gradients of convolutions in the layouts that frameworks write: a GPU target calls torch's own; values stay."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402

import coset.dialects  # noqa: F401, E402  (fills the registry)
from coset.comparing.reference import read_program  # noqa: E402
from coset.dialects.expansion import opened_once  # noqa: E402
from coset.dialects.hub.terms import transpose  # noqa: E402
from coset.egraph.limits import Limits  # noqa: E402
from coset.extract.work import WorkSizes, flops_of  # noqa: E402
from coset.ir.evaluate import evaluate_program  # noqa: E402
from coset.ir.program import Program  # noqa: E402
from coset.ir.term import Term, input_term, make  # noqa: E402
from coset.ir.types import F32, TensorType  # noqa: E402
from coset.job.job import Job  # noqa: E402
from coset.job.machine import find_target  # noqa: E402
from coset.lowering.planning.convolution_gradients import gradient_of_convolution  # noqa: E402
from coset.packaging.asked import Lowering  # noqa: E402
from coset.packaging.lower import lower  # noqa: E402
from coset.packaging.searched import searched  # noqa: E402
from coset.rules.definition import evaluate_defined  # noqa: E402
from coset.searching.solving import finish, solve_task  # noqa: E402

TRANSPOSED, FILTERS, PLAIN = "kernel.transposed_convolution", "kernel.filter_gradient", "stablehlo.convolution"
SWAP = (1, 0, 2, 3)
LAYOUTS = {"channels first": ("NCHW", "OIHW", "NCHW"), "channels last": ("NHWC", "HWIO", "NHWC"), "mixed": ("NHWC", "OIHW", "NCHW")}
CASES: dict[str, tuple[Any, ...]] = {
    "same": ((1, 1), "SAME", (1, 1), 3),
    "halved": ((2, 2), "SAME", (1, 1), 3),
    "valid": ((2, 2), "VALID", (1, 1), 3),
    "dilated": ((1, 1), "SAME", (2, 2), 3),
    "uneven": ((2, 1), ((1, 1), (0, 2)), (1, 2), 3),
    "pointwise": ((2, 2), "VALID", (1, 1), 1),
}


def found(program: Program) -> Program:
    """What is lowered for a GPU."""
    job = Job(program, find_target("nvidia-h200"), "reassociates", Limits(seconds=20), (), {}, lambda _: None)
    task = searched(job, program)
    solved, _ = solve_task(task, task.phases)
    return finish(task, solved)[0]


def convolutions(program: Program) -> Counter[str]:
    return Counter(term.op.name for term in program.terms() if term.op.name in (TRANSPOSED, FILTERS, PLAIN))


def feeds_of(program: Program) -> dict[str, Any]:
    draw = np.random.default_rng(1)
    return {term.attribute("name"): draw.integers(-3, 4, term.tensor.static).astype(np.float32) for term in program.inputs}


def require_equal(one: Program, other: Program) -> None:
    """On small whole numbers all sums are exact, in any order."""
    feeds = feeds_of(one)
    pairs = zip(*(evaluate_program(each, feeds, fallback=evaluate_defined) for each in (one, other)), strict=True)
    for expected, value in pairs:
        np.testing.assert_array_equal(value, expected)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", CASES)
def test_what_jax_writes(case: str, layout: str, tmp_path: Path) -> None:
    strides, padding, dilation, size = CASES[case]
    shapes = {"N": 2, "C": 4, "H": 7, "W": 6}, {"O": 5, "I": 4, "H": size, "W": size}
    x, w = (np.zeros([sizes[axis] for axis in axes], np.float32) for sizes, axes in zip(shapes, LAYOUTS[layout], strict=False))

    def forward(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(x, w, strides, padding, rhs_dilation=dilation, dimension_numbers=LAYOUTS[layout])

    g = jnp.zeros(jax.eval_shape(forward, x, w).shape, jnp.float32)
    program = written(lambda x, w, g: jax.vjp(forward, x, w)[1](g), (x, w, g), tmp_path)
    lowered = found(program)
    assert convolutions(lowered) == {TRANSPOSED: 1, FILTERS: 1}
    assert "stablehlo.reverse" not in {term.op.name for term in lowered.terms()}, "filters are read as they lie"
    require_equal(program, lowered)


def test_they_pass_the_comparison_where_filters_are_inputs(tmp_path: Path) -> None:
    """Among its inputs are filters with NaN, which the definition would spread by the zeros between elements."""
    pytest.importorskip("torch")
    x, w = np.zeros((2, 4, 7, 6), np.float32), np.zeros((5, 4, 3, 3), np.float32)

    def forward(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=LAYOUTS["channels first"])

    g = jnp.zeros(jax.eval_shape(forward, x, w).shape, jnp.float32)
    written(lambda x, w, g: jax.vjp(forward, x, w)[1](g), (x, w, g), tmp_path)
    report = lower(Lowering(tmp_path / "m.mlir", find_target("nvidia-h200"), code="torch"), tmp_path / "out")
    assert report["check"]["ok"] and "nan" in report["check"]["inputs"] and "a NaN is lost" in report["check"]["apart"]
    assert {op for kernel in report["kernels"] for op in kernel["ops"]} >= {"transposed_convolution", "filter_gradient"}


@pytest.mark.parametrize("groups", [2, 4])
def test_filters_of_groups(groups: int, tmp_path: Path) -> None:
    """JAX turns the filters of groups through other shapes: their input's gradient stays a convolution."""
    x, w = np.zeros((2, 4, 7, 6), np.float32), np.zeros((8, 4 // groups, 3, 3), np.float32)

    def forward(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(x, w, (2, 2), "SAME", feature_group_count=groups)

    g = jnp.zeros(jax.eval_shape(forward, x, w).shape, jnp.float32)
    program = written(lambda x, w, g: jax.vjp(forward, x, w)[1](g), (x, w, g), tmp_path)
    lowered = found(program)
    assert convolutions(lowered)[FILTERS] == 1
    require_equal(program, lowered)


@pytest.mark.parametrize("groups", [1, 2])
def test_the_work_is_that_of_the_convolution(groups: int) -> None:
    """Which is as much where no zeros stand between elements, and as often less as there are steps where they do."""
    x, w, g = (input_term(name, TensorType(F32, dims)) for name, dims in
               (("x", (2, 4, 16, 16)), ("w", (4, 6, 3, 3)), ("g", (2, 8, 16, 16))))  # fmt: skip
    same = {"strides": (1, 1), "padding": ((1, 1), (1, 1)), "dilations": (1, 1), "group": groups}
    apart = {"strides": (2, 2), "padding": ((1, 2), (1, 2)), "dilations": (1, 1), "group": groups}
    for call, share in (
        (make(FILTERS, (x, g), same), 1),
        (make(TRANSPOSED, (x, w), same), 1),
        (make(TRANSPOSED, (x, w), apart), 4),
    ):
        assert work(call) * share == sum(map(work, Program((), (("y", opened_once(call)),)).terms()))


def work(term: Term) -> float:
    if not term.op.name.startswith("kernel") and term.op.name != PLAIN:
        return 0.0
    types = [operand.type for operand in term.operands]
    return flops_of(term.op, dict(term.attributes), term.type, types, WorkSizes({}))[0]


def written(function: Any, arguments: Sequence[Any], folder: Path) -> Program:
    """The program that JAX writes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (folder / "m.mlir").write_text(jax.jit(function).lower(*arguments).as_text())
    return read_program(folder / "m.mlir")


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_what_onnx_calls_a_transposed_convolution(groups: int) -> None:
    """In groups too: the definition is found in what the op is opened to."""
    x, w = input_term("x", TensorType(F32, (2, 4, 5, 6))), input_term("w", TensorType(F32, (4, 3, 3, 2)))
    bias = input_term("b", TensorType(F32, (3 * groups,)))
    attributes = {"strides": (2, 3), "padding": ((1, 2), (1, 1)), "dilations": (1, 1), "group": groups}
    program = Program((x, w, bias), (("y", make("onnx.ConvTranspose", (x, w, bias), attributes)),))
    lowered = found(program)
    assert convolutions(lowered) == {TRANSPOSED: 1}
    require_equal(program, lowered)


def convolution(x: Term, w: Term, **given: Any) -> Term:
    plain = {"strides": (1, 1), "padding": ((1, 1), (1, 1)), "lhs_dilation": (1, 1), "rhs_dilation": (1, 1),
             "feature_group_count": 1, "batch_group_count": 1}  # fmt: skip
    return make(PLAIN, (x, w), {**plain, **given})


def test_what_is_none_stays_a_convolution() -> None:
    """A forward convolution, in either layout; filters turned along one axis alone; sums over channels; steps between results;
    groups of channels."""
    x, w = input_term("x", TensorType(F32, (4, 4, 6, 6))), input_term("w", TensorType(F32, (4, 4, 3, 3)))
    last, filters = input_term("x", TensorType(F32, (4, 6, 6, 4))), input_term("w", TensorType(F32, (3, 3, 4, 4)))
    turned = make("stablehlo.reverse", (w,), {"dimensions": (2,)})
    halves, thin = (input_term("w", TensorType(F32, (*sides, 3, 3))) for sides in ((4, 2), (2, 4)))
    none = (
        convolution(x, w),
        convolution(transpose(last, (0, 3, 1, 2)), transpose(filters, (3, 2, 0, 1))),
        convolution(x, transpose(turned, SWAP)),
        convolution(transpose(x, SWAP), w),
        convolution(x, transpose(w, SWAP)),
        convolution(x, make("stablehlo.reverse", (w,), {"dimensions": (2, 3)}), strides=(2, 2)),
        convolution(transpose(x, SWAP), transpose(w, SWAP), lhs_dilation=(2, 2), strides=(2, 1)),
        convolution(transpose(x, SWAP), transpose(thin, SWAP), feature_group_count=2),
        convolution(x, halves, lhs_dilation=(2, 2), feature_group_count=2),
        convolution(x, w, lhs_dilation=(2, 2), batch_group_count=2),
    )
    for term in none:
        assert gradient_of_convolution(term) is None, term
    both = make("stablehlo.reverse", (transpose(w, SWAP),), {"dimensions": (2, 3)})
    assert gradient_of_convolution(convolution(x, both)) is not None
    assert gradient_of_convolution(convolution(x, w, lhs_dilation=(2, 1))) is not None
    assert gradient_of_convolution(convolution(transpose(x, SWAP), transpose(w, SWAP))) is not None


@pytest.mark.parametrize("seed", range(40))
def test_transposes_and_turns_in_any_order(seed: int) -> None:
    """Of filters whose sides may be 1, one to four times."""
    draw = np.random.default_rng(seed)
    x = input_term("x", TensorType(F32, (2, 3, 5, 4)))
    shape = tuple(int(n) for n in draw.permutation([3, 3, *draw.integers(1, 4, 2)]))
    w = input_term("w", TensorType(F32, shape))
    term = w
    for _ in range(draw.integers(1, 5)):
        if draw.integers(2):
            term = transpose(term, tuple(int(n) for n in draw.permutation(4)))
        else:
            axes = tuple(int(n) for n in np.flatnonzero(draw.integers(0, 2, 4)))
            term = make("stablehlo.reverse", (term,), {"dimensions": axes}) if axes else term
    channels = term.tensor.dims.index(3)
    rest = [axis for axis in range(4) if axis != channels]
    term = transpose(term, (rest[0], channels, *rest[1:]))
    once = convolution(x, term, lhs_dilation=(2, 1), padding=((2, 3), (2, 2)))
    known = gradient_of_convolution(once)
    assert known is not None
    require_equal(*(Program((x, w), (("y", each),)) for each in (once, known)))
    several = [each.op.name for each in Program((x, w), (("y", known),)).terms()]
    assert several.count("stablehlo.transpose") <= 1 and several.count("stablehlo.reverse") <= 1
