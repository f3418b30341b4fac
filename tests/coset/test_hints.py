"""Hints of StableHLO: what a program asks of an op is part of the op, and never dropped."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch_mlir", reason="the extra `mlir` is not installed")

import coset
from coset.dialects.hub.hints import full_precision, unhinted
from coset.egraph.limits import Limits
from coset.frontends.stablehlo.program import import_stablehlo
from coset.ir.builtin import HINTED
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.term import Term, constant, make
from coset.job.job import Job
from coset.lowering.stablehlo.module import print_stablehlo
from coset.packaging.searched import searched
from coset.prove.certificate import Certificate, Rejected
from coset.prove.certificate_file import packed
from coset.prove.kernel import verify
from coset.prove.second import REJECTS, answered, read
from coset.prove.second.classes import Contents
from coset.prove.second.programs import by_content, program_hash
from coset.proving.meanings import DEFINED, meaning
from coset.second import LIBRARY
from coset.targets.target import get_target

MATRIX = "tensor<4x4xf32>"
PRECISE = "precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGH>]"
DEFAULT = "precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]"
FUNCTIONS = (
    "cbrt",
    "cosine",
    "exponential",
    "exponential_minus_one",
    "log",
    "log_plus_one",
    "logistic",
    "rsqrt",
    "sine",
    "sqrt",
    "tan",
    "tanh",
)
BEST = "result_accuracy = #stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<HIGHEST>>"
NEAR = "result_accuracy = #stablehlo.result_accuracy<ulps = 1, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>"
ANY = "result_accuracy = #stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<DEFAULT>>"


def algorithm(kind: str, products: int = 1) -> str:
    return (
        f"algorithm = #stablehlo.dot_algorithm<lhs_precision_type = {kind}, rhs_precision_type = {kind}, accumulation_type = f32, "
        f"lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = {products}, allow_imprecise_accumulation = false>"
    )


def product(hint: str = "") -> str:
    numbers = "dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>"
    return f'"stablehlo.dot_general"(%x, %y) <{{{", ".join(filter(None, (numbers, hint)))}}}> : ({MATRIX}, {MATRIX}) -> {MATRIX}'


def function(name: str, hint: str = "") -> str:
    return f'"stablehlo.{name}"(%x) <{{{hint}}}> : ({MATRIX}) -> {MATRIX}'


def module(*values: str) -> str:
    """A module of two matrices that returns each of these values."""
    lines = [f"  %{place} = {value}" for place, value in enumerate(values)]
    names, types = ", ".join(f"%{place}" for place in range(len(values))), ", ".join([MATRIX] * len(values))
    head = f"func.func @main(%x: {MATRIX}, %y: {MATRIX}) -> ({types}) {{"
    return "\n".join([head, *lines, f"  return {names} : {types}", "}", ""])


def written(text: str, folder: Path, name: str = "model.mlir") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def convolution(hint: str) -> str:
    numbers = "dimension_numbers = #stablehlo.conv<[b, f]x[i, o]->[b, f]>"
    counts = "batch_group_count = 1 : i64, feature_group_count = 1 : i64"
    return f'"stablehlo.convolution"(%x, %y) <{{{counts}, {numbers}, {hint}}}> : ({MATRIX}, {MATRIX}) -> {MATRIX}'


ASKED = [
    *((product(), product(hint)) for hint in (PRECISE, algorithm("tf32"), algorithm("bf16", 6), algorithm("f32"))),
    (product(algorithm("bf16", 6)), product(algorithm("bf16", 9))),
    (convolution(DEFAULT), convolution(PRECISE)),
    *((function(name), function(name, hint)) for name in FUNCTIONS for hint in (BEST, NEAR)),
    (function("tanh", BEST), function("tanh", NEAR)),
]


@pytest.mark.parametrize(("one", "other"), ASKED)
def test_two_ops_of_other_hints_are_two(one: str, other: str) -> None:
    program = import_stablehlo(module(one, other))
    (_, first), (_, second) = program.outputs
    assert first is not second
    again = import_stablehlo(print_stablehlo(program))
    assert again == program
    (_, first), (_, second) = unhinted(program).outputs
    assert first is second


@pytest.mark.parametrize(
    "hints", [("", DEFAULT, product), ("", ANY, lambda hint: function("exponential", hint)), ("", ANY, lambda hint: function("tanh", hint))]
)
def test_a_default_hint_is_none(hints: Any) -> None:
    none, default, op = hints
    assert import_stablehlo(module(op(none))) == import_stablehlo(module(op(default)))


@pytest.mark.parametrize("hint", [PRECISE, algorithm("tf32")])
def test_no_rule_looks_into_a_hinted_op(hint: str, tmp_path: Path) -> None:
    """A product over one element is a multiplication, but not one by an algorithm; what stands around it is rewritten."""
    numbers = "dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>"
    text = f"""
func.func @main(%x: tensor<4x1xf32>, %y: tensor<1x4xf32>) -> {MATRIX} {{
  %0 = stablehlo.negate %x : tensor<4x1xf32>
  %1 = stablehlo.negate %0 : tensor<4x1xf32>
  %2 = "stablehlo.dot_general"(%1, %y) <{{{numbers}, {hint}}}> : (tensor<4x1xf32>, tensor<1x4xf32>) -> {MATRIX}
  return %2 : {MATRIX}
}}
"""
    result = coset.optimize(written(text, tmp_path))
    assert [term.op.name for term in result.program.terms()] == ["builtin.input", "builtin.input", "builtin.hinted"]
    result.save(tmp_path / "out.mlir")
    assert hint in (tmp_path / "out.mlir").read_text()


def test_a_hinted_function_of_constants_is_left_to_the_runtime(tmp_path: Path) -> None:
    text = f"""
func.func @main() -> {MATRIX} {{
  %c = stablehlo.constant dense<0.3> : {MATRIX}
  %0 = "stablehlo.exponential"(%c) <{{{BEST}}}> : ({MATRIX}) -> {MATRIX}
  return %0 : {MATRIX}
}}
"""
    result = coset.optimize(written(text, tmp_path))
    ((_, root),) = result.program.outputs
    assert root.op is HINTED


# ---------------------------------------------------------------- other formats


@pytest.mark.parametrize("hint", [PRECISE, algorithm("f32")])
def test_onnx_does_what_is_asked(hint: str, tmp_path: Path) -> None:
    """ONNX Runtime multiplies f32 as it is: both products are one."""
    result = coset.optimize(written(module(product(hint), product()), tmp_path), target="cpu-onnxruntime")
    assert result.report["check"]["ok"]
    assert Counter(term.op.name for term in result.program.terms())["builtin.input"] == len(list(result.program.terms())) - 1


@pytest.mark.parametrize(
    "value", [product(algorithm("tf32")), product(algorithm("bf16", 6)), function("tanh", NEAR), function("log", BEST)]
)
@pytest.mark.parametrize("target", ["cpu-onnxruntime", "nvidia-h100"])
def test_what_a_target_does_not_do_is_an_error_at_its_place(value: str, target: str, tmp_path: Path) -> None:
    model = written(module(value), tmp_path)
    with pytest.raises(CosetError, match=r"is asked for with (algorithm|result_accuracy) = ") as caught:
        if target == "nvidia-h100":
            coset.lower(model, tmp_path / "package", target=target)
        else:
            coset.optimize(model, target=target)
    assert caught.value.place is not None and (caught.value.place.line, caught.value.place.column) == (2, 8)
    assert not (tmp_path / "package").exists()


@pytest.mark.parametrize("numerics", ["reassociates", "approx"])
def test_a_precise_product_is_rounded_under_no_numerics(numerics: str, tmp_path: Path) -> None:
    model = written(module(product(PRECISE)), tmp_path)
    job = Job(model, get_target("nvidia-h100"), numerics, Limits(), (), {}, lambda _: None)
    if numerics == "approx":
        with pytest.raises(CosetError, match="may be rounded"):
            searched(job, import_stablehlo(model))
    else:
        assert not any(term.op is HINTED for term in searched(job, import_stablehlo(model)).program.terms())


def test_hints_inside_of_bodies_are_seen(tmp_path: Path) -> None:
    text = f"""
func.func @main(%p: tensor<i1>, %x: {MATRIX}) -> {MATRIX} {{
  %0 = "stablehlo.if"(%p) ({{
    %1 = "stablehlo.tanh"(%x) <{{{NEAR}}}> : ({MATRIX}) -> {MATRIX}
    stablehlo.return %1 : {MATRIX}
  }}, {{
    stablehlo.return %x : {MATRIX}
  }}) : (tensor<i1>) -> {MATRIX}
  return %0 : {MATRIX}
}}
"""
    program = import_stablehlo(text)
    assert NEAR in print_stablehlo(program)
    assert NEAR not in print_stablehlo(unhinted(program))
    with pytest.raises(CosetError, match="result_accuracy"):
        coset.optimize(written(text, tmp_path), target="cpu-onnxruntime")


def test_which_algorithms_full_precision_is() -> None:
    def why(hint: str) -> str:
        return full_precision(import_stablehlo(module(product(hint))).outputs[0][1])

    assert not why(algorithm("f32")) and not why(PRECISE)
    assert why(algorithm("tf32")) and why(algorithm("tf32", 3)) and why(algorithm("bf16", 9))


# ---------------------------------------------------------------- proofs


@pytest.mark.parametrize(("one", "other"), [ASKED[0], ASKED[1], ASKED[5], (function("exponential"), function("exponential", BEST))])
def test_programs_of_other_hints_are_not_proved_equal(one: str, other: str, tmp_path: Path) -> None:
    paths = [written(module(each), tmp_path, f"{place}.mlir") for place, each in enumerate((one, other))]
    assert coset.prove(*paths)["answer"] != "proved"
    assert coset.prove(paths[1], paths[1])["answer"] == "proved"


def judged(before: Program, after: Program, lines: list[Any]) -> tuple[bool, bool]:
    """Whether each checker rejects a certificate of these lines, whose head is right."""
    hashes = [program_hash(by_content(each, Contents())) for each in (before, after)]
    head = {"format": "coset certificate", "version": 3, "before": hashes[0], "after": hashes[1], "rules": []}
    certificate = Certificate(head, lines)
    try:
        verify(certificate, before, after, lambda _: None, meaning=meaning, fallback=DEFINED)
        first = False
    except Rejected:
        first = True
    entries = read(path.read_text() for path in LIBRARY)
    return first, answered(packed(certificate), before, after, entries).verdict == REJECTS


def test_both_checkers_keep_hinted_ops_apart() -> None:
    plain, hinted = (import_stablehlo(module(product(hint))) for hint in ("", PRECISE))
    assert judged(hinted, hinted, []) == (False, False)
    assert judged(plain, hinted, []) == judged(hinted, plain, []) == (True, True)
    assert judged(hinted, import_stablehlo(module(product(algorithm("tf32")))), []) == (True, True)


def test_both_checkers_compute_no_hinted_op() -> None:
    """What it is of constants is known where the program runs: 0 of every constant, by a precision that nobody has."""

    def of(value: Term) -> Program:
        return Program((), (("y", value),))

    zero = constant(np.zeros((2,), np.float32))
    plain = make("stablehlo.tanh", (zero,))
    hinted = make(HINTED, (zero,), {"op": "stablehlo.tanh", "given": (), "hints": (("result_accuracy", NEAR),)})
    step = [{"computed": 1}]
    assert judged(of(plain), of(zero), step) == (False, False)
    assert judged(of(hinted), of(zero), step) == (True, True)
