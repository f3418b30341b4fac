"""Definitions with as many results as a list has items, and forms that symbolic dims leave open."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rule_texts import read_rules

from coset.ir.dims import symbol
from coset.ir.errors import TypeRuleError
from coset.ir.evaluate import evaluate
from coset.ir.op import get_op
from coset.ir.term import get, input_term, make
from coset.ir.types import F32, tensor
from coset.rules.definition import evaluate_defined, expand


def define(folder: Path, name: str, text: str) -> None:
    _, errors = read_rules(folder, text)
    assert not errors, errors
    assert get_op(name)


def test_a_comprehension_is_several_results(tmp_path: Path) -> None:
    text = (
        "op given.rows: sugar (x: F[S..], counts: ints)\n"
        "  means [slice(x, start: [sum(counts[:i])], limit: [sum(counts[:i]) + c], strides: [1]) for i, c in range(len(counts)), counts]\n"
        "  where len(S) == 1 and sum(counts) <= S[0] and all([c >= 0 for c in counts])\n"
        "  numerics exact\n"
    )
    define(tmp_path, "given.rows", text)
    x = input_term("x", tensor(F32, 6))
    parts = make("given.rows", [x], {"counts": (1, 3, 2)})
    values = evaluate([get(parts, i) for i in range(3)], {"x": np.arange(6, dtype=np.float32)}, fallback=evaluate_defined)
    assert [value.tolist() for value in values] == [[0], [1, 2, 3], [4, 5]]
    with pytest.raises(TypeRuleError):
        make("given.rows", [x], {"counts": (7,)})


def test_a_dim_of_1_is_repeated_under_a_symbol(tmp_path: Path) -> None:
    define(
        tmp_path,
        "given.spread",
        "op given.spread(x: F[A..], y: F[B..]) means bcast(x, broadcast(A, B)) + y where len(A) <= len(B) numerics exact\n",
    )
    m, n = symbol("M"), symbol("N")
    column, whole = input_term("x", tensor(F32, m, 1)), input_term("y", tensor(F32, m, n))
    spread = expand(make("given.spread", [column, whole])).operands[0]
    assert spread.op.name == "stablehlo.broadcast_in_dim"
    assert spread.operands[0].type == tensor(F32, m)
