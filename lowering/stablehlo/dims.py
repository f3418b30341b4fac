"""Symbolic dims in printed StableHLO: which value introduces a symbol, and the arithmetic that computes a dim from its sizes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from coset.ir import dims
from coset.ir.dims import Dim, Poly
from coset.ir.term import Term
from coset.ir.types import TensorType

Introducers = dict[str, tuple[Term, int]]  # symbol -> a value and the dim of it that is the symbol
SPENDERS = frozenset({
    "stablehlo.broadcast_in_dim", "stablehlo.reshape", "stablehlo.iota", "stablehlo.slice", "builtin.dims", "stablehlo.gather",
    "stablehlo.dynamic_slice",
})  # fmt: skip
"""Ops whose shape is an attribute: they need the number of a symbol, and cannot say what it is."""


def introducers(inputs: Sequence[Term], terms: Iterable[Term]) -> Introducers:
    """Where each symbol comes from: the first input, or else the first computed value, one of whose dims it is."""
    found: Introducers = {}
    for term in (*inputs, *(term for term in terms if term.op.name not in SPENDERS)):
        if isinstance(term.type, TensorType):
            for axis, dim in enumerate(term.type.shape or ()):
                name = dims.alone(dim)
                if name is not None:
                    found.setdefault(name, (term, axis))
    return found


def needed_symbols(term: Term) -> set[str]:
    """The symbols whose numbers must be computed to print `term`."""
    if term.op.name not in SPENDERS or not isinstance(term.type, TensorType):
        return set()
    needed: set[str] = set()
    for dim in spent(term):
        needed |= dims.symbols(dim)
    return needed


def spent(term: Term) -> tuple[Dim, ...]:
    """The dims that the attributes of a spender hold."""
    keys = ("dims", "shape", "start", "limit", "slice_sizes")
    whole = term.operands[0].tensor.dims if term.op.name == "stablehlo.dynamic_slice" else ()
    return tuple(dim for dim in whole if isinstance(dim, Poly)) + tuple(
        dim for key, value in term.attributes if key in keys for dim in value if isinstance(dim, Poly)
    )
