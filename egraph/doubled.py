"""Constants whose rows hold the same numbers twice, as concatenations of what they hold once: the tables of rotations are such.

They stand in two halves, or beside each other. As a rule this would read the elements of a constant. If a rule asks for the
concatenation of a term with itself, the equalities are entered before the search instead. Each is a computation with constants, and a
certificate says it as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from coset.egraph.chains import Entered
from coset.ir.constants import Constant, constant_of
from coset.ir.errors import CosetError
from coset.ir.evaluate import evaluate
from coset.ir.term import CONSTANT, Term, constant, make, rebuild, topological
from coset.rules.pattern import Application, Pattern, Variable, applications
from coset.rules.rule import Rule

BROADCAST, CONCATENATE = "stablehlo.broadcast_in_dim", "stablehlo.concatenate"
RESHAPE, SLICE = "stablehlo.reshape", "stablehlo.slice"
MOVES = frozenset({RESHAPE, SLICE})


def asks_for_doubles(rule: Rule) -> bool:
    """True for a rule whose left side has a concatenation of a term with itself and whose right side has none; told by its shape."""
    name = f"{CONCATENATE}/2"
    return name in rule.reads and name not in rule.makes and any(map(_is_double, applications(rule.left)))


def _is_double(pattern: Application) -> bool:
    """True for the concatenation of a variable with itself, as it is or under another shape."""
    names = {_variable(operand) for operand in pattern.operands}
    return pattern.op.name == CONCATENATE and len(pattern.operands) == 2 and len(names) == 1 and None not in names


def _variable(pattern: Pattern) -> str | None:
    if isinstance(pattern, Application) and pattern.op.name == RESHAPE:
        return _variable(pattern.operands[0])
    return pattern.name if isinstance(pattern, Variable) else None


def doubled_axis(value: Constant) -> int | None:
    """How the numbers of each row of floats stand twice, bit by bit: 0 for halves that are equal, 1 for neighbours that are; None where
    they do not. Not of a number that fills a tensor."""
    *_, columns = value.type.static or (0,)
    if value.type.dtype.kind != "float" or columns < 2 or columns % 2 or not value.has_elements or not value.bytes:
        return None
    rows = value.array().reshape(-1, columns)
    halves, neighbours = rows.reshape(-1, 2, columns // 2), rows.reshape(-1, columns // 2, 2)
    for axis, (first, other) in enumerate(((halves[:, 0], halves[:, 1]), (neighbours[..., 0], neighbours[..., 1]))):
        if _same_bits(first[0], other[0]) and _same_bits(first, other):  # most differ in the first row
            return axis if bool((rows != rows[0, 0]).any()) else None
    return None


def _same_bits(one: Any, other: Any) -> bool:
    return np.ascontiguousarray(one).tobytes() == np.ascontiguousarray(other).tobytes()


def double_constants(roots: Sequence[Term], rules: Iterable[Rule]) -> Entered | None:
    """The doubled constants under `roots`, and what slices and reshapes of them are, as concatenations; None if there are none, or no rule
    of `rules` asks for them."""
    if not any(map(asks_for_doubles, rules)):
        return None
    values: dict[Term, Term] = {}  # what is doubled, with the constant that it is
    for term in topological(roots):
        if term.op is CONSTANT and doubled_axis(term.attribute("value")) is not None:
            values[term] = term
        elif term.op.name in MOVES and term.operands[0] in values:
            try:
                (array,) = evaluate([rebuild(term, [values[term.operands[0]]])], {})
            except CosetError:  # it is cut at a dim without a number
                continue
            moved = constant_of(array, term.tensor.dtype)
            if doubled_axis(moved) is not None:
                values[term] = constant(moved)
    pairs = [(term, _doubled(term, value.attribute("value"))) for term, value in values.items()]
    return Entered(None, tuple(pairs)) if pairs else None


def _doubled(term: Term, value: Constant) -> Term:
    """A term that has this value, by what it holds once; of a matrix under dims of 1 the matrix. What it holds once is a slice, which a
    certificate can say, and which is computed when the program is written."""
    shape = value.type.static
    assert shape is not None
    beside, first = doubled_axis(value), len(shape) - 2 if set(shape[:-2]) == {1} else 0
    *rows, columns = shape[first:]
    pairs = columns // 2
    cut = {
        "start": (0,) * len(shape),
        "limit": shape if beside else (*shape[:-1], pairs),
        "strides": (*(1 for _ in shape[1:]), 2 if beside else 1),
    }
    half = make(SLICE, (term,), cut)
    half = make(RESHAPE, (half,), {"shape": (*rows, pairs)}) if first else half
    if beside:
        column = make(RESHAPE, (half,), {"shape": (*rows, pairs, 1)})
        double = make(RESHAPE, (make(CONCATENATE, (column, column), {"dimension": len(rows) + 1}),), {"shape": (*rows, columns)})
    else:
        double = make(CONCATENATE, (half, half), {"dimension": len(rows)})
    return make(BROADCAST, (double,), {"shape": shape, "broadcast_dimensions": tuple(range(first, len(shape)))}) if first else double
