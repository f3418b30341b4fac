"""Operands of products that are 8-bit floats times scales, where each scale stands for a block of k, or for all of it: the numbers are
multiplied as they are, and the sum of each block (or the whole sum) takes the scales. That is another order of multiplications, and
nothing is multiplied by each element of an operand; scaled in front of the sum, these would be f32.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import TypeVar

from coset.ir.dims import Dim, symbol, symbols
from coset.ir.types import F32
from coset.lowering.kernels.addresses import terms_of
from coset.lowering.kernels.kernel import Grouped, Load, Loop, Product, Scalar, ScalarOp, dims_in, scalars
from coset.lowering.triton.launch import EmitOptions, Rounding
from coset.lowering.triton.scalars import EIGHTS
from coset.lowering.triton.tiling import HOLDING, Tiling, narrowest, takes_eights, unit_of

P = TypeVar("P", bound=Product | Grouped)
LEAST = 64  # of k in a block: in shorter ones scaling the sums takes as long as scaling operands for a matrix unit of 16 bits
LEAST_OF_F32 = 32  # where scaled operands would be f32: what a matrix unit takes of 8-bit floats at least
MOST = 128  # of k in a tile of operands
_LEVELS = 8  # multiplications and conversions that are looked through


@dataclass(frozen=True)
class SumScales:
    """What sums are multiplied by: `blockwise`, each number over at least `block` elements of k, a power of two at whose multiples it
    changes (0: there are none), and `behind` all of k."""

    blockwise: tuple[Scalar, ...] = ()
    behind: tuple[Scalar, ...] = ()
    block: int = 0

    @property
    def factors(self) -> tuple[Scalar, ...]:
        """All of them."""
        return (*self.blockwise, *self.behind)

    def reads(self) -> tuple[str, ...]:
        """The buffers that they read."""
        return tuple(dict.fromkeys(item.buffer for item in scalars(*self.factors) if isinstance(item, Load)))

    def cut(self, tiling: Tiling) -> Tiling:
        """Tiles of which each lies in one block of k."""
        return replace(tiling, k=min(tiling.k, self.block)) if self.block else tiling


NO_SCALES = SumScales()


def without_scales(kernel: P, options: EmitOptions) -> tuple[P, SumScales]:
    """A kernel of 8-bit floats without their scales, and these; the same kernel where there are none that may go behind a sum."""
    if options.rounding is Rounding.EACH or kernel.accumulator is not F32:
        return kernel, NO_SCALES
    unit = unit_of(narrowest(kernel.lhs).dtype, narrowest(kernel.rhs).dtype, kernel.accumulator)
    least = LEAST_OF_F32 if unit is F32 else LEAST
    left, right = (next(_parts(side, kernel.k, least, _LEVELS), None) for side in (kernel.lhs, kernel.rhs))
    if left is None or right is None:
        return kernel, NO_SCALES
    (lhs, factors), (rhs, others) = left, right
    periods = [(factor, _period(factor, kernel.k) or 0) for factor in (*factors, *others)]
    if not periods:
        return kernel, NO_SCALES
    blockwise, behind = (tuple(factor for factor, period in periods if bool(period) is each) for each in (True, False))
    block = min((MOST, *(period & -period for _, period in periods if period))) if blockwise else 0
    return replace(kernel, lhs=lhs, rhs=rhs), SumScales(blockwise, behind, block)


def _parts(value: Scalar, k: Sequence[Loop], least: int, levels: int) -> Iterator[tuple[Scalar, tuple[Scalar, ...]]]:
    """The ways to see a scalar as an 8-bit float times factors that change with blocks of `least` of k or more, if at all."""
    if value.dtype.name in EIGHTS:
        yield value, ()
    if not (isinstance(value, ScalarOp) and value.dtype.name in HOLDING and levels):
        return
    if value.op.name == "stablehlo.convert":
        yield from _parts(value.operands[0], k, least, levels - 1)
    elif value.op.name == "stablehlo.multiply":
        for inner, factor in (value.operands, value.operands[::-1]):
            period = _period(factor, k)
            if period is not None and (period == 0 or period & -period >= least):
                yield from ((core, (*factors, factor)) for core, factors in _parts(inner, k, least, levels - 1))


def _period(factor: Scalar, k: Sequence[Loop]) -> int | None:
    """At which multiples of k, counted through its loops, a scalar may change: 0 where it is one number, None where nothing is known."""
    if not k:
        return 0
    *outer, last = k
    found = 0
    for item in scalars(factor):
        for dim in dims_in(item):
            names = symbols(dim)
            if any(name.startswith("pick:") for name in names):
                return None
            period = _dim_period(dim, last.name)
            if period is None:
                return None
            if outer and (period or names & {loop.name for loop in outer}):  # it begins anew with each pass of the last loop
                if not isinstance(last.extent, int):
                    return None
                period = gcd(period, last.extent)
            found = gcd(found, period)
    return found


def _dim_period(dim: Dim, name: str) -> int | None:
    """At which multiples of the symbol a dim may change: 0 where it does not depend on it, None where at each."""
    found = 0
    for monomial, _ in terms_of(dim):
        for atom in monomial:
            if atom.name == name and not atom.args:
                return None
            if atom.name == "floordiv" and atom.args[0] == symbol(name) and isinstance(atom.args[1], int):
                found = gcd(found, atom.args[1])
                continue
            for argument in atom.args:
                period = _dim_period(argument, name)
                if period is None:
                    return None
                found = gcd(found, period)
    return found


def may_take_eights(kernel: Product | Grouped, options: EmitOptions) -> bool:
    """True where its operands, without their scales, are 8-bit floats that the target's matrix units multiply."""
    return takes_eights(without_scales(kernel, options)[0], options)
