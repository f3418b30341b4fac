"""Every StableHLO and CHLO op with a meaning: printed, verified, run by the reference interpreter, imported again, on drawn cases.

The cases and what is settled in them (sums that are exact in every order, and so on) are those of the tests of the meanings; this
one goes through `print_stablehlo`, `Interpreter` and `import_stablehlo`. Run as a script it prints what covers each op.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch_mlir", reason="the `mlir` extra is not installed")

import hub_collectives_cases  # noqa: F401  (fills CASES)
import test_hub_data_reference as data
import test_hub_reference as first
import test_hub_regions_reference as regions
from hub_cases import BINDING, HUB, Case, adversarial, numbers
from test_hub_data_reference import drawn, same

from coset.backends.stablehlo_interpreter import StablehloInterpreter
from coset.dialects.hub.mlir_text import dense_text, type_text
from coset.dialects.hub.scalars import cast, widen
from coset.frontends.stablehlo.program import import_stablehlo
from coset.ir import dims
from coset.ir.builtin import OPAQUE
from coset.ir.errors import CosetError
from coset.ir.evaluate import evaluate_program
from coset.ir.op import Op
from coset.ir.program import Program
from coset.ir.term import Term, constant, get, input_term, make
from coset.ir.types import DTYPES, TensorType, TupleType, dtype_of
from coset.lowering.stablehlo.module import print_stablehlo

Array = np.ndarray[Any, Any]
MEANT = [op for op in HUB if op.meaning is not None]
COLLECTIVES = {
    f"stablehlo.{name}"
    for name in ("all_gather", "all_reduce", "all_to_all", "collective_broadcast", "collective_permute", "reduce_scatter")
}  # MLIR's verifier takes one operand or result of some, and no size 0
# Ops that the interpreter cannot run here: why, and what else compares them with code that is not ours.
ELSEWHERE = {
    **dict.fromkeys(
        (f"stablehlo.{name}" for name in ("batch_norm_grad", "batch_norm_inference", "batch_norm_training", "cholesky",
                                          "rng_bit_generator")),
        "the interpreter has no such op: XLA in test_hub_data_xla",
    ),
    **dict.fromkeys(
        ("stablehlo.uniform_quantize", "stablehlo.uniform_dequantize"),
        "the bindings pass no quantized arrays: as constants in test_hub_data_reference",
    ),
    **dict.fromkeys(
        (f"chlo.{name}" for name in ("bessel_i1e", "digamma", "erf_inv", "lgamma", "polygamma", "zeta")),
        "the interpreter has approximations of its own for it: SciPy's values in test_chlo",
    ),
}  # fmt: skip
UNITS = {
    **first.UNITS,
    **data.UNITS,
    **dict.fromkeys(("asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "erf", "erfc"), 64),
}
CONSTANT_OPERANDS = {"stablehlo.real_dynamic_slice": 1}  # from this operand on they are constants: the interpreter has the static form
SYMBOLS = input_term(
    "sizes", TensorType(DTYPES["f32"], tuple(map(dims.symbol, BINDING)))
)  # introduces the symbols of cases without operands


@pytest.fixture(scope="module")
def interpreter() -> Iterator[StablehloInterpreter]:
    with StablehloInterpreter() as child:
        yield child


def settled(case: Case) -> Case | None:
    """The case with values for which the specification leaves no choice, or None where the interpreter does not know its types."""
    full = case.term.op.name
    name = full.partition(".")[2]
    if full in {op.name for op in first.OPS}:
        return None if first.skipped(name, case) else first.tame(name, case)
    if full in {op.name for op in data.OPS}:
        return None if data.skipped(case) else data.tame(case)
    if name in regions.OPS:
        return regions.settled(case) if regions.comparable(case) else None
    if any(dtype_of(x.dtype).name in ("f8e8m0fnu", "string") for x in case.arrays):
        return None
    if full.startswith("chlo."):  # composed of functions: no overflow on the way, which the dtypes differ in
        return replace(case, arrays=[_small(x) for x in case.arrays])
    return case


def _small(x: Array) -> Array:
    wide = widen(x)
    if x.dtype.kind == "c":
        fine = np.isfinite(wide) & (np.abs(wide) < 4) & (np.abs(wide.real) > 0.01) & (np.abs(wide.imag) > 0.01)  # off the branch cuts
        return np.where(fine, x, x.dtype.type(0.5 + 0.25j))
    return np.where(np.abs(wide) > 4, cast(np.asarray(0.5, np.float32), dtype_of(x.dtype)), x).astype(x.dtype)


def program_of(case: Case) -> tuple[Program, dict[str, Array]]:
    """A program of the one op, and what to feed it."""
    fixed = CONSTANT_OPERANDS.get(case.term.op.name)
    operands = [
        constant(np.asarray(array)) if fixed is not None and index >= fixed else operand
        for index, (operand, array) in enumerate(zip(case.term.operands, case.arrays, strict=True))
    ]
    term = case.term if fixed is None else make(case.term.op, operands, dict(case.term.attributes), case.term.regions)
    items = len(term.type.items) if isinstance(term.type, TupleType) else 0
    roots: list[Term] = [get(term, index) for index in range(items)] if items else [term]
    given = {operand: array for operand, array in zip(operands, case.arrays, strict=True) if operand.op.name == "builtin.input"}
    given = given or {SYMBOLS: np.zeros(numbers(SYMBOLS.tensor.dims), np.float32)}
    outputs = tuple((f"r{index}", root) for index, root in enumerate(roots))
    return Program(tuple(given), outputs), {str(term.attribute("name")): array for term, array in given.items()}


def values(case: Case) -> list[Array]:
    value = case.value()
    return [np.asarray(item) for item in (value if isinstance(value, tuple) else (value,))]


def compared(case: Case, interpreter: StablehloInterpreter) -> bool | str:
    """True when the interpreter computes what we do, False when it does not, or why it computes nothing."""
    program, feed = program_of(case)
    try:
        theirs = interpreter.run(print_stablehlo(program, binding=BINDING), list(feed.values()))
    except CosetError as error:
        return error.message
    units = UNITS.get(case.term.op.name.partition(".")[2], 0)
    return all(same(mine, other, units) for mine, other in zip(values(case), theirs, strict=True))


@pytest.mark.parametrize("op", [op for op in MEANT if op.name not in ELSEWHERE], ids=str)
def test_printed_ops_mean_what_the_interpreter_computes(op: Op, interpreter: StablehloInterpreter) -> None:
    chosen = [case for case in map(settled, drawn(op, 20)) if case is not None]
    answers = [compared(case, interpreter) for case in chosen]
    wrong = [case for case, answer in zip(chosen, answers, strict=True) if answer is False]
    assert not wrong, f"{print_stablehlo(program_of(wrong[0])[0])}\non {wrong[0].arrays}: we have {values(wrong[0])}"
    refused = [answer for answer in answers if isinstance(answer, str)]
    assert answers.count(True) >= 0.3 * len(answers) > 0, refused[:1]


@pytest.mark.parametrize("op", [op for op in MEANT if op.name not in COLLECTIVES], ids=str)
def test_printed_ops_are_imported_as_what_they_were(op: Op) -> None:
    count = 0
    for case in drawn(op, 10):
        program, feed = program_of(case)
        try:
            text = print_stablehlo(program)
        except CosetError as error:  # no text for it: a symbol that nothing introduces, a size that must be a number, strings
            assert any(reason in error.message for reason in ("needs the number of the dim", "symbolic sizes", "string elements")), error
            continue
        try:
            again = import_stablehlo(text)
        except CosetError as error:  # MLIR's verifier wants windows of 1 or more
            assert "conv" in op.name and "positive value" in error.message, f"{error}\n{text}"
            continue
        assert not [term for term in again.terms() if term.op is OPAQUE], text
        renamed = dict(zip((term.attribute("name") for term in again.inputs), feed.values(), strict=True))
        for mine, other in zip(values(case), evaluate_program(again, renamed)[: len(program.outputs)], strict=True):
            other = np.asarray(other)
            assert (mine.dtype, mine.shape) == (other.dtype, other.shape), text
            assert np.ascontiguousarray(mine).tobytes() == np.ascontiguousarray(other).tobytes() or same(mine, other, 0), text
        count += 1
    assert count, f"no case of {op.name} could be printed"


BUILTINS = ("stablehlo.constant", "stablehlo.tuple", "stablehlo.get_tuple_element")  # ops of the specification that are terms of `ir`


def test_constants_and_tuples_are_what_the_interpreter_has(interpreter: StablehloInterpreter) -> None:
    """A tuple in a tuple, taken apart again: for every element type, with adversarial constants."""
    for dtype in DTYPES.values():
        if dtype.name in ("f8e8m0fnu", "string"):
            continue
        arrays = [adversarial(dtype, shape, 7) for shape in ((), (2, 3), (1, 0), (1, 2, 1, 1, 2, 3))]
        types = [type_text(TensorType(dtype, x.shape)) for x in arrays]
        constants = [f"%c{i} = stablehlo.constant {dense_text(x, dtype)} : {types[i]}" for i, x in enumerate(arrays)]
        inner, outer = f"tuple<{types[1]}, {types[2]}>", f"tuple<{types[0]}, tuple<{types[1]}, {types[2]}>, {types[3]}>"
        taken = [("%a", "%t", 0, outer, types[0]), ("%m", "%t", 1, outer, inner), ("%b", "%m", 0, inner, types[1]),
                 ("%c", "%m", 1, inner, types[2]), ("%d", "%t", 2, outer, types[3])]  # fmt: skip
        gets = [f"{r} = stablehlo.get_tuple_element {x}[{i}] : ({given}) -> {made}" for r, x, i, given, made in taken]
        ends = ", ".join(types)
        text = "\n".join([
            f"func.func public @main() -> ({ends}) {{", *constants, f"%i = stablehlo.tuple %c1, %c2 : {inner}",
            f"%t = stablehlo.tuple %c0, %i, %c3 : {outer}", *gets, f"return %a, %b, %c, %d : {ends}", "}"])  # fmt: skip
        theirs = interpreter.run(text, [])
        ours = evaluate_program(import_stablehlo(text), {})
        for mine, other, given in zip(ours, theirs, arrays, strict=True):
            assert np.asarray(mine).tobytes() == given.tobytes() and same(np.asarray(mine), other, 0), dtype


def test_nearly_every_stablehlo_op_is_compared() -> None:
    rows = [what for name, what in covered() if name.startswith("stablehlo.") and not what.startswith("no meaning")]
    compared_with_foreign_code = [what for what in rows if what == "interpreter" or "test_hub_data" in what]
    assert len(compared_with_foreign_code) == len(rows) >= 100
    assert rows.count("interpreter") + sum("test_hub_data_reference" in what for what in rows) >= 0.95 * len(rows)


def covered() -> list[tuple[str, str]]:
    """Each op with what it is compared with."""
    rows = [(op.name, ELSEWHERE.get(op.name, "interpreter") if op.meaning else "no meaning: it is kept as it is") for op in HUB]
    return sorted([*rows, *((name, "interpreter") for name in BUILTINS)])


if __name__ == "__main__":
    rows = covered()
    for name, what in rows:
        print(f"{name:40} {what}")
    specified = [(name, what) for name, what in rows if name.startswith("stablehlo.") and not what.startswith("no meaning")]
    kept = sum(name.startswith("stablehlo.") for name, _ in rows) - len(specified)
    direct = sum(what == "interpreter" or "reference" in what for _, what in specified)
    other = sum("XLA" in what for _, what in specified)
    share = f"{direct} ({direct / len(specified):.1%}) against the interpreter, {other} against XLA"
    print(f"{len(specified)} StableHLO ops with a meaning: {share}; {kept} have none")
