"""The hub's first ops (elementwise, movement, contractions, reductions) against StableHLO's reference interpreter, on drawn cases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hub_cases import HUB, Case, numbers
from reference import arrays_of, interpret, module, spell
from test_hub_data_reference import LACKS_INFINITY, array, convolution, drawn, ints, results_of, same

from coset.dialects.hub.scalars import narrow, widen
from coset.dialects.hub.tensors import identity
from coset.ir.op import Op
from coset.ir.types import dtype_of

pytest.importorskip("torch_mlir", reason="the reference interpreter is in the torch-mlir wheel")

Attributes = dict[str, Any]


def _dot(a: Attributes) -> str:
    names = {"lhs_batching_dimensions": "lhs_batch", "rhs_batching_dimensions": "rhs_batch",
             "lhs_contracting_dimensions": "lhs_contract", "rhs_contracting_dimensions": "rhs_contract"}  # fmt: skip
    return f"dot_dimension_numbers = #stablehlo.dot<{', '.join(f'{theirs} = {list(a[ours])}' for theirs, ours in names.items())}>"


def _convolution(a: Attributes) -> str:
    pairs = [list(pair) for pair in a["padding"]]
    return f"{convolution(a)}, padding = dense<{pairs or ''}> : tensor<{len(pairs)}x2xi64>"


MLIR: dict[str, Callable[[Attributes], str]] = {
    "compare": lambda a: f"comparison_direction = #stablehlo<comparison_direction {a['direction']}>",
    "broadcast_in_dim": ints("broadcast_dimensions"),
    "transpose": ints("permutation"),
    "slice": lambda a: (
        f"start_indices = {array(numbers(a['start']))}, limit_indices = {array(numbers(a['limit']))}, strides = {array(a['strides'])}"
    ),
    "concatenate": lambda a: f"dimension = {a['dimension']} : i64",
    "pad": lambda a: (
        f"edge_padding_low = {array(a['low'])}, edge_padding_high = {array(a['high'])}, interior_padding = {array(a['interior'])}"
    ),
    "reverse": ints("dimensions"),
    "iota": lambda a: f"iota_dimension = {a['dimension']} : i64",
    "dot_general": _dot,
    "convolution": _convolution,
    "reduce": ints("dimensions"),
}
PLAIN = """
    abs negate sign floor ceil round_nearest_even round_nearest_afz sqrt rsqrt cbrt exponential exponential_minus_one log log_plus_one
    logistic tanh tan sine cosine not is_finite add subtract multiply divide remainder power maximum minimum atan2 and or xor shift_left
    shift_right_arithmetic shift_right_logical select clamp convert reshape
"""
# Units in the last place of the result's dtype: the interpreter computes functions in f64 and rounds, NumPy's are within 4 of the truth;
# complex functions are composed of several. Sums are of the numbers -1, 0 and 1, and exact.
_FUNCTIONS = """
    sqrt rsqrt cbrt exponential exponential_minus_one log log_plus_one logistic tanh tan sine cosine power atan2
"""
UNITS = dict.fromkeys(_FUNCTIONS.split(), 8)
UNITS |= {"divide": 4, "multiply": 4, "sign": 4, "abs": 4}
OPS = [op for op in HUB if op.dialect == "stablehlo" and op.name.split(".")[1] in {*MLIR, *PLAIN.split()}]


def region(combiner: str, type: str) -> str:
    """A function of two scalars."""
    return f'{{ ^bb0(%a: {type}, %b: {type}):\n %c = stablehlo.{combiner} %a, %b : {type}\n "stablehlo.return"(%c) : ({type}) -> () }}'


def source_of(name: str, case: Case) -> str:
    """The case as a module."""
    attributes = dict(case.term.attributes)
    text = MLIR[name](attributes) if name in MLIR else ""
    if name != "reduce":
        return module(name, text, case.arrays, results_of(case))
    dtype = dtype_of(case.arrays[0].dtype)
    arrays = [*case.arrays, identity(attributes["combiner"], dtype)]
    return module(name, text, arrays, results_of(case), [region(attributes["combiner"], spell(dtype, ()))])


def tame(name: str, case: Case) -> Case:
    """Sums that are exact in any order; complex numbers without infinities, whose arithmetic is nobody's standard."""
    sums = name in ("dot_general", "convolution") or (name == "reduce" and case.term.attribute("combiner") in ("add", "multiply"))
    if name in ("divide", "remainder") and dtype_of(case.arrays[0].dtype).kind in ("int", "uint"):
        x, y = case.arrays  # it dies of a division by 0, or of the smallest number by -1
        return Case(case.term, [x, narrow(np.where(np.isin(widen(y), (0, -1)), 1, widen(y)), dtype_of(y.dtype))])
    arrays = []
    for x in case.arrays:
        kind = dtype_of(x.dtype).kind
        if sums and kind in ("float", "complex"):
            arrays.append(np.asarray(np.sign(np.nan_to_num(widen(x.real))).astype(x.dtype)))
        elif kind == "complex":
            parts = [np.where(np.abs(np.nan_to_num(part)) < 50, np.nan_to_num(part), 1.25) for part in (x.real, x.imag)]
            whole = np.asarray(parts[0] + 1j * parts[1]).astype(x.dtype)
            arrays.append(np.where(whole == 0, x.dtype.type(1.25), whole) if name in ("divide", "power") else whole)
        else:
            arrays.append(x)
    return Case(case.term, arrays)


def skipped(name: str, case: Case) -> bool:
    """What the interpreter does not know."""
    types = [operand.tensor for operand in case.term.operands] + results_of(case)
    if name == "logistic" and types[0].dtype.name in LACKS_INFINITY:
        return True  # it rounds e^-x to the dtype on the way, where it is NaN
    if name == "convolution" and 0 in case.arrays[1].shape[2:]:
        return True  # its verifier wants windows of 1 or more
    if name in ("remainder", "divide", "convert") and any(type.dtype.name == "f4e2m1fn" for type in types):
        return True  # x / 0 and NaN have no value in a dtype without NaN and infinities
    return any(type.dtype.name in ("f8e8m0fnu", "string") for type in types)


@pytest.mark.parametrize("op", OPS, ids=str)
def test_op_is_as_the_reference_interpreter_has_it(op: Op) -> None:
    name = op.name.removeprefix("stablehlo.")
    found = [tame(name, case) for case in drawn(op, 60) if not skipped(name, case)]
    sources = [source_of(name, case) for case in found]
    agreed = 0
    for case, source, answer in zip(found, sources, interpret(sources), strict=True):
        if isinstance(answer, str):
            print((answer.splitlines() or [""])[-1], source)  # pytest shows it when too few could be compared
            continue
        (theirs,) = arrays_of(answer, results_of(case))
        ours = case.value()
        assert same(ours, theirs, UNITS.get(name, 0)), f"{source}\nours   {ours.tolist()}\ntheirs {theirs.tolist()}"
        agreed += 1
    assert agreed >= 0.7 * len(found) and len(found) >= 30, f"{agreed} of {len(found)} could be compared"
