"""Loops whose number of turns is known, turn by turn: the same values, slices at known places, nothing where the end is not seen."""

from __future__ import annotations

import numpy as np
import pytest

from coset.dialects.hub.region_terms import while_term
from coset.dialects.hub.terms import literal
from coset.dialects.hub.turns import MOST_TURNS, unrolled
from coset.ir.evaluate import evaluate
from coset.ir.term import TUPLE, Term, get, input_term, make, topological
from coset.ir.types import F32, I32, TensorType
from coset.rules.definition import evaluate_defined

ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)


def number(value: int) -> Term:
    return literal(np.int32(value))


def counted(turns: int, begin: int = 0) -> Term:
    """A loop that sums rows of x and writes each sum in its row of y."""
    x, y, h = (input_term(name, TensorType(F32, shape)) for name, shape in (("x", (4, 3)), ("y", (4, 3)), ("h", (3,))))

    def condition(i: Term, *_: Term) -> Term:
        return make("stablehlo.compare", (i, number(turns)), {"direction": "LT"})

    def body(i: Term, h: Term, x: Term, y: Term) -> list[Term]:
        row = make("stablehlo.dynamic_slice", (x, i, number(0)), {"slice_sizes": (1, 3)})
        sum = make("stablehlo.add", (h, make("stablehlo.reshape", (row,), {"shape": (3,)})))
        written = make("stablehlo.dynamic_update_slice", (y, make("stablehlo.reshape", (sum,), {"shape": (1, 3)}), i, number(0)))
        return [make("stablehlo.add", (i, number(1))), sum, x, written]

    return while_term([number(begin), h, x, y], condition, body)


@pytest.mark.parametrize("turns", [0, 1, 3, 4, 6])
def test_turns_make_what_the_loop_makes(turns: int) -> None:
    """Six turns read a row beyond the last one, which is the last one."""
    loop = counted(turns)
    found = unrolled(loop)
    assert found is not None and found.type == loop.type and found.op is TUPLE
    feed = {"x": ROWS, "y": -ROWS, "h": np.ones(3, np.float32)}
    values = [evaluate([get(term, place) for place in range(4)], feed, fallback=evaluate_defined) for term in (loop, found)]
    for one, other in zip(*values, strict=True):
        np.testing.assert_array_equal(one, other)
    names = {term.op.name for term in topological([found])}
    assert "stablehlo.while" not in names
    assert ("stablehlo.dynamic_slice" in names) == (turns > 4)


def test_a_loop_whose_end_is_not_seen_stays() -> None:
    assert unrolled(counted(MOST_TURNS + 1)) is None
    limit, x = input_term("n", TensorType(I32, ())), input_term("x", TensorType(F32, (3,)))
    loop = while_term(
        [number(0), limit, x],
        lambda i, n, x: make("stablehlo.compare", (i, n), {"direction": "LT"}),
        lambda i, n, x: [make("stablehlo.add", (i, number(1))), n, x],
    )
    assert unrolled(loop) is None
    assert unrolled(x) is None


def test_one_value_is_no_tuple() -> None:
    loop = while_term([number(5)], lambda i: make("stablehlo.compare", (i, number(7)), {"direction": "LT"}),
                      lambda i: make("stablehlo.add", (i, number(1))))  # fmt: skip
    found = unrolled(loop)
    assert found is not None and int(found.attribute("value").array()) == 7
