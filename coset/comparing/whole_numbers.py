"""Which integer inputs are numbers like any other: nothing reads them as places, sizes, counts, divisors or widths of shifts."""

from __future__ import annotations

from coset.ir.program import Program
from coset.ir.term import INPUT, Term
from coset.ir.types import TensorType

# ops whose last operand may not be any number
LAST = tuple(
    f"stablehlo.{name}" for name in ("divide", "remainder", "power", "shift_left", "shift_right_arithmetic", "shift_right_logical")
)
FOLDS = ("stablehlo.reduce", "stablehlo.dot_general", "stablehlo.convolution", "stablehlo.reduce_window")
ELEMENTS = {"stablehlo.concatenate": 1 << 31, "stablehlo.dynamic_update_slice": 2}  # how many operands of a movement are moved, if not one


def plain_integers(program: Program) -> frozenset[str]:
    """The names of the integer inputs that may have any value."""
    origins: dict[Term, frozenset[str]] = {}  # of integers, the inputs that they are made of
    read: set[str] = set()  # as something else
    for term in program.terms():
        if term.op is INPUT:
            if _whole(term):
                origins[term] = frozenset((term.attribute("name"),))
            continue
        own = frozenset[str]()
        for place, operand in enumerate(term.operands):
            names = origins.get(operand)
            if names is None:
                continue
            own |= names
            if not _takes_any(term, place):
                read |= names
        if own and _whole(term):
            origins[term] = own
    every = frozenset(term.attribute("name") for term in program.inputs if _whole(term))
    return every - read


def _whole(term: Term) -> bool:
    return isinstance(term.type, TensorType) and term.type.dtype.kind in ("int", "uint")


def _takes_any(term: Term, place: int) -> bool:
    """Whether an operand of a term may have any value."""
    if term.op.has("foreign"):
        return False
    if term.op.has("elementwise"):
        return term.op.name not in LAST or place < len(term.operands) - 1
    if term.op.has("movement"):
        return place < ELEMENTS.get(term.op.name, 1)
    return term.op.name in FOLDS
