"""Plans mean what their programs mean: executed kernel by kernel in NumPy they give the program's values."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from benchmarks import models, onnx_cases
from coset.dialects.hub.terms import broadcast, dot, transpose
from coset.frontends.onnx.model import import_model
from coset.ir.builtin import OPAQUE
from coset.ir.dims import multiply, symbol
from coset.ir.errors import CosetError
from coset.ir.evaluate import evaluate_program
from coset.ir.program import Program
from coset.ir.term import input_term, make
from coset.ir.types import F32, ForeignType, TensorType
from coset.lowering.kernels.kernel import Library, Plan, reads, writes
from coset.lowering.kernels.memory import ALIGNMENT, buffer_bytes, lifetimes, shared
from coset.lowering.kernels.needs import needs_of
from coset.lowering.kernels.plan_text import show
from coset.lowering.planning.kinds import KernelLimits
from coset.lowering.planning.library_products import Libraries
from coset.lowering.planning.plan import plan
from coset.lowering.planning.traffic import least, traffic, unfused
from coset.rules.definition import evaluate_defined
from tests.lowering.drawn_programs import program as drawn
from tests.lowering.golden_texts import read_as_golden
from tests.lowering.plan_cases import CASES, LEAN
from tests.lowering.plan_numpy import run
from tests.sampled import sampled

MODELS = (
    "mlp", "bert_2l_d128_dyn", "llama_2l_static", "llama_2l_dyn", "resnet50_w025", "dlrm", "train_mlp", "train_cnn", "mamba_like",
    "unet_gn",
    "lstm_bi",
)  # fmt: skip


def check(program: Program, feeds: Mapping[str, Any], *, limits: KernelLimits | None = None, libraries: Libraries | None = None) -> Plan:
    """The plan of `program`, after it has given the program's values and kept its own laws."""
    found = plan(program, limits=limits, libraries=libraries)
    expected = evaluate_program(program, feeds, fallback=evaluate_defined)
    results = run(found, feeds)
    assert list(results) == [name for name, _ in program.outputs]
    for (name, result), value in zip(results.items(), expected, strict=True):
        assert (result.shape, result.dtype) == (value.shape, value.dtype), name
        wide = np.asarray(value, np.float64)
        # the reference rounds sums of f32 once, a plan after each kernel: a few units in the last place of the largest value
        bound = 64 * {2: 2.0**-8, 4: 2.0**-24}.get(value.dtype.itemsize, 0.0) * np.max(np.abs(wide), initial=1.0)
        bound = bound if value.dtype.kind not in "iub" else 0.0
        np.testing.assert_allclose(np.asarray(result, np.float64), wide, atol=bound, rtol=0, err_msg=name)
    laws(found)
    return found


def laws(found: Plan) -> None:
    """Buffers are written once, or in parts by kernels of ours (`run` sees that these are apart, and what reads them sees none that is not
    stored), before they are read, by name; no two temporaries that live together share bytes."""
    ready = {name for name, buffer in found.buffers.items() if buffer.role in ("input", "constant")}
    makers = Counter(name for kernel in found.kernels for name in writes(kernel))
    libraries = {name for kernel in found.kernels if isinstance(kernel, Library) for name in writes(kernel)}
    assert all(makers[name] == 1 for name in libraries)
    for kernel in found.kernels:
        assert set(reads(kernel)) <= ready, kernel.name
        assert not {name for name in writes(kernel) if makers[name] == 1} & ready, kernel.name
        ready |= set(writes(kernel))
    assert ready == set(found.buffers) and {buffer for _, buffer in found.outputs} <= ready
    spans = lifetimes(found)
    placed = sorted((offset, name) for name, offset in found.offsets.items())
    for place, (offset, name) in enumerate(placed):
        size = buffer_bytes(found.buffers[name])
        assert size is not None and offset % ALIGNMENT == 0 and offset + size <= found.arena
        for later, other in placed[place + 1 :]:
            if later >= offset + size:
                break
            (first, last), (begin, end) = spans[name], spans[other]
            assert last < begin or end < first, f"{name} and {other} share bytes"
    assert all(found.buffers[name].role == "temporary" for name in found.offsets)
    heirs = shared(found)
    assert len(set(heirs.values())) == len(heirs), "memory is given on once"
    assert all(spans[giver][1] < spans[taker][0] for taker, giver in heirs.items())


@pytest.mark.parametrize("name", MODELS)
def test_a_model_s_plan_gives_its_values(name: str) -> None:
    check(*imported(name))


def imported(name: str) -> tuple[Program, Mapping[str, Any]]:
    """A built model and values of its inputs."""
    found = [model for model in models.built() if model.name == name]
    if not found:
        pytest.skip(f"{name} is not built: python -m benchmarks.models")
    return import_model(found[0].path), models.feeds(found[0])


@pytest.mark.parametrize("start", range(0, 400, 50))
def test_plans_of_drawn_programs_give_their_values(start: int) -> None:
    for seed in range(start, start + 50):
        check(*drawn(seed, 14 if seed % 5 else 50, symbolic=seed % 2 == 1))


@pytest.mark.parametrize("start", sampled(range(5)))
def test_plans_of_onnx_node_cases_give_their_values(start: int) -> None:
    """Every fifteenth case of onnx.backend.test, with numbers for dims and with symbols: all ops, all element types."""
    planned = 0
    for place, case in enumerate(onnx_cases.tensor_cases()):
        if place % 15 != 3 * start:
            continue
        model = case.model if case.model is not None else onnx.load(str(Path(case.model_dir) / "model.onnx"))
        planned += sum(onnx_case(model, case, symbols=symbols) for symbols in (False, True))
    assert planned > 60


def onnx_case(model: Any, case: Any, *, symbols: bool) -> bool:
    """True for a case that was planned and gave the evaluator's values; False for one that cannot be evaluated, or has no ranks."""
    model = onnx_cases.symbolic(model) if symbols else model
    feeds = next(onnx_cases.data_sets(case, model))[0]
    try:
        program = import_model(model)
        with np.errstate(all="ignore"):
            expected = evaluate_program(program, feeds, fallback=evaluate_defined)
        found = plan(program)
    except CosetError:
        return False
    with np.errstate(all="ignore"):
        results = run(found, feeds)
    for (name, result), value in zip(results.items(), map(np.asarray, expected), strict=True):
        assert (result.shape, result.dtype) == (value.shape, value.dtype), f"{case.name} {name}"
        if value.dtype.kind not in "OSU":
            wide = np.complex128 if value.dtype.kind == "c" else np.float64
            near = {1: 0.13, 2: 0.01}.get(value.dtype.itemsize, 2e-6)
            np.testing.assert_allclose(result.astype(wide), value.astype(wide), rtol=near, atol=near, err_msg=f"{case.name} {name}")
    return True


TIGHT = KernelLimits(scalars=5, inlined=3, sources=2, launch_bytes=0, product_scalars=1, search=4, long_row=4, few_rows=3, index=8)


def test_plans_under_tight_limits_give_the_values_too() -> None:
    for seed in range(60):
        check(*drawn(1000 + seed, 14, symbolic=seed % 2 == 1), limits=TIGHT)


@pytest.mark.parametrize("name", CASES)
def test_a_case_gives_its_values_and_reads_as_its_golden(name: str) -> None:
    text = show(check(*CASES[name]()))
    read_as_golden(name, text)


@pytest.mark.parametrize("name", ["mlp", "bert_2l_d128_dyn", "llama_2l_dyn", "dlrm", "train_mlp"])
def test_a_model_s_plan_with_a_librarys_products_gives_its_values(name: str) -> None:
    """Every second product, or all of them; those of an attention, or of a loop that is a kernel, stay there."""
    program, feeds = imported(name)
    places = itertools.count()
    for libraries in (lambda _: True, lambda _: next(places) % 2 == 0):
        found = check(program, feeds, libraries=libraries)
        assert any(isinstance(kernel, Library) and kernel.term.op.name == "stablehlo.dot_general" for kernel in found.kernels)


@pytest.mark.parametrize("name", CASES)
def test_a_case_with_a_librarys_products_gives_its_values(name: str) -> None:
    check(*CASES[name](), libraries=lambda _: True)


@pytest.mark.parametrize("name", sorted(LEAN))
def test_pointwise_and_normalization_groups_move_little_more_than_the_least(name: str) -> None:
    program, _ = CASES[name]()
    found = plan(program)
    binding = dict.fromkeys(found.symbols, 4096)
    assert traffic(found, binding).bytes <= 1.1 * least(found, binding)
    assert traffic(found, binding).kernels <= unfused(program, binding).kernels


@pytest.mark.parametrize("name", CASES)
def test_neighbours_that_are_apart_say_why(name: str) -> None:
    found = plan(CASES[name]()[0])
    names = [kernel.name for kernel in found.kernels]
    pairs = {(names[maker], name) for name, needed in zip(names, needs_of(found.kernels), strict=True) for maker in needed}
    assert {(a, b) for a, b, why in found.apart if why} == pairs


def test_the_plan_grows_with_the_program_and_no_faster() -> None:
    """Kernels of a chain of 3000 steps, each of several terms, and of a wide one; deep terms need no deep stack."""
    x, w = input_term("x", TensorType(F32, (16, 16))), input_term("w", TensorType(F32, (16, 16)))
    deep = x
    for step in range(3000):
        row = make("stablehlo.reduce", (deep,), {"dimensions": (1,), "combiner": "add"})
        deep = make("stablehlo.subtract", (transpose(deep, (1, 0)) if step % 7 == 0 else deep, broadcast(row, (16, 16), (0,))))
    found = plan(Program((x, w), (("y", deep), ("z", dot(deep, w, lhs_contract=(1,), rhs_contract=(0,))))))
    laws(found)
    assert 400 < len(found.kernels) < 1000


def test_a_library_s_term_has_parameters_for_operands() -> None:
    found = plan(CASES["library"]()[0])
    kernels = [kernel for kernel in found.kernels if isinstance(kernel, Library)]
    assert {kernel.term.op.name for kernel in kernels} == {"stablehlo.convolution"}
    assert all(operand.op.name == "builtin.parameter" for kernel in kernels for operand in kernel.term.operands)


def test_what_kernels_do_not_compute_is_a_library_s() -> None:
    program, feeds = CASES["gelu"]()
    found = plan(program, computes=lambda op, _: op != "chlo.erf")
    libraries = [kernel for kernel in found.kernels if isinstance(kernel, Library)]
    assert [kernel.term.op.name for kernel in libraries] == ["chlo.erf"]
    assert len(found.kernels) == 3
    (expected,) = evaluate_program(program, feeds)
    np.testing.assert_allclose(run(found, feeds)["y0"], expected, rtol=1e-6, atol=1e-6)


def test_what_is_no_tensor_has_no_buffer() -> None:
    """A sequence that is given or returned: what takes it otherwise is planned."""
    sequence, x = input_term("s", ForeignType("onnx", b"")), input_term("x", TensorType(F32, (4,)))
    made = make(OPAQUE, (x,), {"domain": "", "name": "SequenceConstruct", "payload": b"", "results": (ForeignType("onnx", b""),)})
    for program, what in ((Program((sequence,), ()), "input `s`"), (Program((x,), (("y", made),)), "output `y`")):
        with pytest.raises(CosetError, match=f"the {what} is onnx value, no tensor"):
            plan(program)


def test_a_dim_that_no_input_has_alone_is_refused() -> None:
    x = input_term("x", TensorType(F32, (multiply(2, symbol("n")),)))
    with pytest.raises(CosetError, match="the dim `n` alone"):
        plan(Program((x,), (("y", make("stablehlo.negate", (x,))),)))


def test_effects_are_kept_in_their_order() -> None:
    x = input_term("x", TensorType(F32, (4,)))
    first = make("stablehlo.outfeed", (make("stablehlo.negate", (x,)), make("stablehlo.create_token")))
    second = make("stablehlo.outfeed", (x, first))
    found = plan(Program((x,), (("y", make("stablehlo.abs", (x,))),), effects=second))
    libraries = [kernel for kernel in found.kernels if isinstance(kernel, Library)]
    assert [kernel.term.op.name for kernel in libraries] == ["stablehlo.create_token", "stablehlo.outfeed", "stablehlo.outfeed"]
    assert [kernel.operands[1] for kernel in libraries[1:]] == [None, None], "tokens have no memory"
    assert libraries[2].operands[0] == "x"
