"""Constants whose rows hold the same numbers twice, as concatenations of what they hold once: the tables of rotations are such.

As a rule this would read the elements of a constant. If a rule asks for `concatenate(x, x)`, the equalities are entered before the search
instead. Each is a computation with constants, and a certificate says it as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from coset.egraph.chains import Entered
from coset.ir.constants import Constant, constant_of
from coset.ir.errors import CosetError
from coset.ir.evaluate import evaluate
from coset.ir.term import CONSTANT, Term, constant, make, rebuild, topological
from coset.rules.pattern import Application, Variable, applications
from coset.rules.rule import Rule

BROADCAST, CONCATENATE = "stablehlo.broadcast_in_dim", "stablehlo.concatenate"
MOVES = frozenset({"stablehlo.reshape", "stablehlo.slice"})


def asks_for_doubles(rule: Rule) -> bool:
    """True for a rule whose left side has `concatenate(x, x)` and whose right side is made of x; told by its shape."""
    name = f"{CONCATENATE}/2"
    return name in rule.reads and name not in rule.makes and any(map(_is_double, applications(rule.left)))


def _is_double(pattern: Application) -> bool:
    first, *others = pattern.operands or (None,)
    return pattern.op.name == CONCATENATE and isinstance(first, Variable) and others == [first]


def is_doubled(value: Constant) -> bool:
    """True where each row of floats is one half twice, bit by bit. Not of a number that fills a tensor."""
    *_, columns = value.type.static or (0,)
    if value.type.dtype.kind != "float" or columns < 2 or columns % 2 or not value.has_elements or not value.bytes:
        return False
    halves = value.array().reshape(-1, 2, columns // 2)
    bits = halves.view(np.uint8)
    same = bool((bits[0, 0] == bits[0, 1]).all()) and bool((bits[:, 0] == bits[:, 1]).all())  # most say no in the first row
    return same and bool((halves != halves[0, 0, 0]).any())


def double_constants(roots: Sequence[Term], rules: Iterable[Rule]) -> Entered | None:
    """The doubled constants under `roots`, and what slices and reshapes of them are, as concatenations; None if there are none, or no rule
    of `rules` asks for them."""
    if not any(map(asks_for_doubles, rules)):
        return None
    values: dict[Term, Term] = {}  # what is doubled, with the constant that it is
    for term in topological(roots):
        if term.op is CONSTANT and is_doubled(term.attribute("value")):
            values[term] = term
        elif term.op.name in MOVES and term.operands[0] in values:
            try:
                (array,) = evaluate([rebuild(term, [values[term.operands[0]]])], {})
            except CosetError:  # it is cut at a dim without a number
                continue
            moved = constant_of(array, term.tensor.dtype)
            if is_doubled(moved):
                values[term] = constant(moved)
    pairs = [(term, _doubled(value.attribute("value"))) for term, value in values.items()]
    return Entered(None, tuple(pairs)) if pairs else None


def _doubled(value: Constant) -> Term:
    """The constant by its first half; of a matrix under dims of 1 the matrix."""
    array = value.array()
    shape, first = array.shape, array.ndim - 2 if set(array.shape[:-2]) == {1} else 0
    half = constant(constant_of(array[..., : shape[-1] // 2].reshape(*shape[first:-1], shape[-1] // 2), value.type.dtype))
    double = make(CONCATENATE, (half, half), {"dimension": half.tensor.rank - 1})
    return make(BROADCAST, (double,), {"shape": shape, "broadcast_dimensions": tuple(range(first, len(shape)))}) if first else double
