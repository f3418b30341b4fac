"""What convolutions take beside the work of their products: loads that each have an address and bounds of their own, in kernels over
windows; and features that a library adds, so that their number is a multiple of what its kernels read at once."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, gcd

from coset.extract.work import Product as Sides
from coset.ir.dims import Dim
from coset.ir.term import Term
from coset.ir.types import DType, TensorType
from coset.lowering.kernels.addresses import address
from coset.lowering.kernels.index_arithmetic import linear
from coset.lowering.kernels.kernel import Load, Plan, Product, scalars

_VECTOR = 128  # bits of one load at most
_TILE = 128  # columns of a tile at most: windows are read anew for each
_BLOCK = 16  # of a sum at least: where the features are a multiple, all of a block are in one place of their windows


def gathered(sides: Sides, features: Dim, dtype: DType, *, beside: bool) -> float:
    """How many loads of windows have addresses and bounds of their own: none where all that a block sums over lies in one place of its
    windows. `beside`: features lie side by side, so that one load brings several of them."""
    if isinstance(features, int) and features % _BLOCK == 0:
        return 0.0
    width = gcd(features, _VECTOR // dtype.bits) if beside and isinstance(features, int) else 1
    return sides.batch * sides.rows * ceil(sides.depth / _BLOCK) * _BLOCK * ceil(sides.columns / _TILE) / width


def lies_beside(plan: Plan, kernel: Product) -> bool:
    """True where the features that a kernel over windows reads lie side by side."""
    channel = kernel.k[-1].name
    loads = [value for value in scalars(kernel.lhs) if isinstance(value, Load)]
    return all(linear(address(plan.buffers[load.buffer], load.index), channel) == 1 for load in loads)


def padded(term: Term, multiple: int) -> tuple[TensorType, ...]:
    """The operands of a convolution with so many more features that there is a multiple; as they are where their number is not known, and
    in groups, of which nothing was measured."""
    x, w = (operand.tensor for operand in term.operands)
    features = w.dims[1]
    if term.attribute("feature_group_count") > 1 or not isinstance(features, int) or features % multiple == 0:
        return x, w
    wide = ceil(features / multiple) * multiple
    return tuple(replace(tensor, shape=(tensor.dims[0], wide, *tensor.dims[2:])) for tensor in (x, w))
