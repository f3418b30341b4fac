"""Blocks in blocks: what is computed from the parameters of one is not what is computed from those of another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import coset.dialects
from coset.dialects.hub.region_terms import if_term, while_term
from coset.frontends.stablehlo.program import import_stablehlo
from coset.ir.constants import constant_of
from coset.ir.evaluate import evaluate
from coset.ir.program import Program
from coset.ir.term import Term, constant, get, input_term, make
from coset.ir.types import BOOL, F32, I32, tensor
from coset.lowering.stablehlo.module import write_stablehlo

assert coset.dialects


def hub(name: str, *operands: Term, **attributes: Any) -> Term:
    return make(f"stablehlo.{name}", operands, attributes)


def turns(state: Term, count: int, body: Any) -> Term:
    """`body` of the state so many times: the counter is the first parameter of each loop."""
    zero, one, end = (constant(constant_of(np.int32(number))) for number in (0, 1, count))
    loop = while_term(
        (zero, state), lambda i, _: hub("compare", i, end, direction="LT"), lambda i, v: (hub("add", i, one), body(v))
    )  # fmt: skip
    return get(loop, 1)


def written(program: Program, folder: Path, **feed: Any) -> tuple[list[Any], list[Any]]:
    """The values of a program, and of what its text is read as."""
    path = folder / "m.mlir"
    write_stablehlo(program, path)
    again = import_stablehlo(path)
    return evaluate(list(program.roots), feed), evaluate(list(again.roots), feed)


def test_counters_of_nested_loops_are_two(tmp_path: Path) -> None:
    x = input_term("x", tensor(F32, 3))
    half = constant(constant_of(np.full(3, 0.5, np.float32)))
    nested = turns(x, 2, lambda v: turns(hub("multiply", v, half), 3, lambda w: hub("add", hub("multiply", w, half), w)))
    before, after = written(Program((x,), (("y", nested),)), tmp_path, x=np.arange(3, dtype=np.float32))
    np.testing.assert_array_equal(before[0], after[0])
    assert before[0][1] == np.float32(0.25 * 1.5**6)


def test_branches_of_a_loop_see_its_parameters_only_as_their_own(tmp_path: Path) -> None:
    x, c = input_term("x", tensor(F32, 3)), input_term("c", tensor(BOOL))
    inner = if_term(c, (x, c), lambda v, p: turns(v, 2, lambda w: hub("tanh", w)), lambda v, p: hub("tanh", hub("tanh", v)))
    for flag in (True, False):
        before, after = written(
            Program((x, c), (("y", turns(inner, 2, lambda v: hub("tanh", v))),)),
            tmp_path,
            x=np.arange(3, dtype=np.float32),
            c=np.array(flag),
        )
        np.testing.assert_array_equal(before[0], after[0])


def test_a_number_of_dims_is_still_seen_from_inside(tmp_path: Path) -> None:
    x, n = input_term("x", tensor(F32, 3)), input_term("n", tensor(I32))
    ones = constant(constant_of(np.full(3, 1, np.float32)))
    program = Program((x, n), (("y", turns(hub("add", x, ones), 2, lambda v: hub("add", v, ones))),))
    before, after = written(program, tmp_path, x=np.arange(3, dtype=np.float32), n=np.int32(1))
    np.testing.assert_array_equal(before[0], after[0])
