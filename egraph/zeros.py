"""Constants whose first or last rows or columns are zeros, as paddings of the rest: what multiplies those can be left out of products.

As `egraph/doubled.py` enters what stands twice: if a rule asks for a product with a padded operand, each such constant is entered as a
padding, which a certificate says as a computation with constants.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from coset.egraph.chains import Entered
from coset.ir.constants import Constant
from coset.ir.term import CONSTANT, Term, constant, make, topological
from coset.rules.pattern import Application, applications
from coset.rules.rule import Rule

DOT, PAD, SLICE = "stablehlo.dot_general", "stablehlo.pad", "stablehlo.slice"


def asks_for_zeros(rule: Rule) -> bool:
    """True for a rule about a product whose second operand is padded; told by its shape."""
    return f"{PAD}/2" in rule.reads and any(map(_is_product_with_padding, applications(rule.left)))


def _is_product_with_padding(pattern: Application) -> bool:
    second = pattern.operands[-1] if pattern.op.name == DOT else None
    return isinstance(second, Application) and second.op.name == PAD


def filled(value: Constant) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """The first row and column of matrices of floats that are not all zeros (without a sign, in each matrix), and those behind the last;
    None if no row and column at an end are zeros, or all are."""
    shape = value.type.static or ()
    if value.type.dtype.kind != "float" or len(shape) < 2 or not value.has_elements or not value.bytes:
        return None
    bits = value.array().reshape(-1, *shape[-2:])
    bits = bits.view(f"u{bits.dtype.itemsize}")
    if bits[0, 0].any() and bits[0, -1].any() and bits[0, :, 0].any() and bits[0, :, -1].any():  # as in most weights
        return None
    ends = []
    for axes in ((0, 2), (0, 1)):
        places = np.flatnonzero(bits.any(axes))
        if not places.size:
            return None
        ends.append((int(places[0]), int(places[-1]) + 1))
    return (ends[0], ends[1]) if ends != [(0, size) for size in shape[-2:]] else None


def pad_constants(roots: Sequence[Term], rules: Iterable[Rule]) -> Entered | None:
    """The constants under `roots` with zeros at the ends of their matrices, as paddings of rows of paddings of columns; None if there are
    none, or no rule of `rules` asks for them."""
    if not any(map(asks_for_zeros, rules)):
        return None
    pairs = []
    for term in topological(roots):
        found = filled(term.attribute("value")) if term.op is CONSTANT else None
        if found is not None:
            pairs.append((term, _padded(term, *found)))
    return Entered(None, tuple(pairs)) if pairs else None


def _padded(term: Term, rows: tuple[int, int], columns: tuple[int, int]) -> Term:
    """The constant by the part that is not zero at its ends."""
    *lead, height, width = term.tensor.static or ()
    nothing = (0,) * len(lead)
    cut = {"start": (*nothing, rows[0], columns[0]), "limit": (*lead, rows[1], columns[1]), "strides": (1,) * (len(lead) + 2)}
    found = make(SLICE, (term,), cut)
    zero = constant(np.zeros((), term.tensor.dtype.numpy), term.tensor.dtype)
    for low, high in (((0, columns[0]), (0, width - columns[1])), ((rows[0], 0), (height - rows[1], 0))):
        if any(low + high):
            found = make(PAD, (found, zero), {"low": (*nothing, *low), "high": (*nothing, *high), "interior": (*nothing, 0, 0)})
    return found
