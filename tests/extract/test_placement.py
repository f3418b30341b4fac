"""An accelerator with a host: every choice of places of small programs is tried out, and what runs where is said."""

from __future__ import annotations

import itertools
import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

import coset.dialects
from coset.cli import run
from coset.extract.cost import Pricer
from coset.extract.placement import NOWHERE, TRANSFER
from coset.extract.plain import saturated_of
from coset.extract.select import reprice, select
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.term import INPUT, Term, input_term, make, topological
from coset.ir.types import F32, tensor
from coset.lowering.onnx.model import write
from coset.targets.target import Curve, Kernel, Rate, Target, get_target

assert coset.dialects
HOST = "cpu-onnxruntime"
UNARY = ("tanh", "sqrt", "exponential", "negate", "abs")
BINARY = ("add", "multiply", "divide")
SHAPE = (64, 64)


def accelerator(never: set[str], launch: float, faster: float) -> Target:
    """The host's kernels at another speed, without some ops, a transfer away."""
    base = get_target(HOST)
    curve = Curve(((1e3, 1e10),), "B", "B/s", "drawn")

    def sped(kernel: Kernel) -> Kernel:
        rates = {dtype: replace(rate, value=rate.value * faster) for dtype, rate in kernel.rates.items()}
        bandwidth = kernel.bandwidth and replace(kernel.bandwidth, points=tuple((x, y * faster) for x, y in kernel.bandwidth.points))
        return replace(kernel, rates=rates, bandwidth=bandwidth)

    kernels = {name: sped(kernel) for name, kernel in base.kernels.items()}
    kernels[TRANSFER] = Kernel(Rate(launch, "s", "drawn"), bandwidth=curve)
    forms = {op: (() if op in never else found) for op, found in base.forms.items()}
    return replace(base, name="npu", kernels=kernels, forms=forms, host=HOST, strict=True)


def drawn(seed: int) -> tuple[Target, list[Term]]:
    generator = random.Random(seed)
    terms = [input_term("x", tensor(F32, *SHAPE)), input_term("y", tensor(F32, *SHAPE))]
    for _ in range(generator.randint(3, 6)):
        name = generator.choice((*UNARY, *BINARY))
        terms.append(make(f"stablehlo.{name}", generator.choices(terms, k=1 if name in UNARY else 2)))
    never = {f"stablehlo.{name}" for name in generator.sample((*UNARY, *BINARY), 4)}
    return accelerator(never, generator.choice((1e-8, 3e-7, 2e-6)), generator.choice((1.0, 4.0, 20.0))), terms[-2:]


def least(target: Target, roots: list[Term]) -> float:
    """The cheapest of all ways to place the terms, each computed once on one side, or on both."""
    here, there = Pricer(target, {}), Pricer(get_target(HOST), {})
    order = [term for term in topological(roots) if term.op is not INPUT]
    inputs = [term for term in topological(roots) if term.op is INPUT]
    moved = target.kernels[TRANSFER].launch.value + 4 * SHAPE[0] * SHAPE[1] / 1e10

    def seconds(pricer: Pricer, term: Term) -> float:
        types = tuple(operand.type for operand in term.operands)
        form = pricer.form(term.op, term.attributes, term.type, types, original=True)
        if form is None:
            return float("inf")
        size = pricer.sizes.bytes(term.type)
        read = tuple(0.0 if operand in term.operands[:place] else size for place, operand in enumerate(term.operands))
        return pricer.seconds(form, term.op, term.attributes, term.type, types, read=read, fixed=(False,) * len(types))

    prices = {term: (seconds(here, term), seconds(there, term)) for term in order}
    best = float("inf")
    for sides in itertools.product(((True, False), (False, True), (True, True)), repeat=len(order)):
        computed = dict.fromkeys(inputs, (False, True)) | dict(zip(order, sides, strict=True))
        cost = sum(prices[term][side] for term in order for side in (0, 1) if computed[term][side])
        wanted = {(root, 1) for root in roots} | {
            (o, side) for term in order for side in (0, 1) if computed[term][side] for o in term.operands
        }
        cost += moved * sum(not computed[term][side] for term, side in wanted)
        best = min(best, cost)
    return best


@pytest.mark.parametrize("seed", range(40))
def test_no_other_places_are_cheaper(seed: int) -> None:
    target, roots = drawn(seed)
    assert reprice(roots, target, {}) == pytest.approx(least(target, roots), rel=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_what_has_no_form_is_on_the_host_with_its_reason(seed: int) -> None:
    target, roots = drawn(seed)
    placement = select(saturated_of(roots)[0], target, {}).placement
    named = {f"stablehlo.{name}" for name in (*UNARY, *BINARY) if not target.forms[f"stablehlo.{name}"]}
    present = {term.op.name for term in topological(roots)} & named
    assert {each.op for each in placement.hosted if each.reason != NOWHERE} == present
    assert sum(each.count for each in placement.hosted) + placement.here >= sum(term.op is not INPUT for term in topological(roots))
    assert (placement.transfers > 0) == (placement.here > 0)


def test_a_target_without_a_host_still_refuses() -> None:
    target = replace(accelerator({"stablehlo.tanh"}, 1e-6, 1.0), host=None)
    with pytest.raises(CosetError, match=r"cannot run this program: `stablehlo.tanh`: the target has no kernel"):
        select(saturated_of([make("stablehlo.tanh", (input_term("x", tensor(F32, 4)),))])[0], target, {})


FILE = """
base = "cpu-onnxruntime"
title = "an accelerator without functions"
host = "{host}"
strict = true
[rates]
fast = {{ unit = "FLOP/s", source = "drawn here", "*" = 1e13 }}
[kernels]
matmul = {{ launch = "row", rates = "fast" }}
{transfer}
[legal]
never = "{never}"
"""
LINK = 'transfer = { launch = { value = 1e-6, unit = "s", source = "drawn here" } }'


def optimized(folder: Path, never: str, host: str = HOST, transfer: str = LINK) -> int:
    x = input_term("x", tensor(F32, 256, 512))
    weights = input_term("w", tensor(F32, 512, 512))
    contract = {"lhs_contract": (1,), "rhs_contract": (0,)}
    product = make("stablehlo.dot_general", (make("stablehlo.tanh", (x,)), weights), contract)
    result = make("stablehlo.tanh", (make("stablehlo.dot_general", (product, weights), contract),))
    write(Program((x, weights), (("z", result),)), folder / "m.onnx")
    (folder / "npu.toml").write_text(FILE.format(never=never, host=host, transfer=transfer))
    return run(["optimize", str(folder / "m.onnx"), "-o", str(folder / "o.onnx"), "--target", str(folder / "npu.toml"), "--json"])


def test_half_an_accelerator_gets_a_program_with_the_host_s_part_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert optimized(tmp_path, "tanh") == 0
    answer = json.loads(capsys.readouterr().out)
    assert [(each["op"], each["count"], each["reason"]) for each in answer["host"]] == [
        ("stablehlo.tanh", 2, "the target has no kernel for it")
    ]
    assert answer["on_target"] == 2 and answer["transfers"]["count"] == 3 and answer["check"]["ok"]
    assert answer["cost"]["output"] > answer["transfers"]["seconds"] > 0


def test_an_accelerator_that_can_run_nothing_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert optimized(tmp_path, "tanh dot_general onnx.Gemm") == 2
    said = capsys.readouterr().err
    assert "can run nothing of this program" in said and "stablehlo.tanh" in said and not (tmp_path / "o.onnx").exists()


@pytest.mark.parametrize(
    ("host", "transfer", "message"),
    [
        ("nowhere", LINK, "there is no target `nowhere`"),
        ("hub", LINK, "there is no target `hub`"),
        ("nvidia-a100", LINK, "takes torch"),
        (HOST, "", "`kernels.transfer` is missing"),
    ],
)
def test_a_host_that_is_none_is_refused(host: str, transfer: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert optimized(tmp_path, "tanh", host, transfer) == 2
    assert message in capsys.readouterr().err
