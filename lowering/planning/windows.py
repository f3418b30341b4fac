"""Convolutions as products over windows of x, without writing the windows (implicit GEMM): a tile's operand is read where its window
lies, and what is done to x, to the filters and to the sums shares the kernel, as in any product. Where each feature has a window of its
own (a depthwise convolution, a pool), what is made of it is written out, and shares a kernel with anything elementwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING

from coset.dialects.hub.tensors import identity
from coset.dialects.hub.terms import splat
from coset.ir.dims import Dim, add, multiply
from coset.ir.term import Term, constant, make, rebuild, topological
from coset.ir.types import TensorType
from coset.lowering.planning.group import PRODUCT, loops_over
from coset.lowering.planning.grouped import FLOATS
from coset.lowering.planning.kinds import FOLDED, SUMMED, WINDOWED, is_plain
from coset.lowering.planning.scanning import prefix_of

if TYPE_CHECKING:
    from coset.lowering.planning.grouping import Grouper

TAPS = 25  # of a window whose sum is written out
_COMBINERS = ("add", "maximum", "minimum")

Windows = Callable[[Term], bool]  # convolution or pool -> it is to be a kernel


def has_windows(term: Term) -> bool:
    """True for a convolution that can be a product over windows: no zeros between the elements of x, filters of known size."""
    if term.op.name != "stablehlo.convolution" or term.tensor.dtype.name not in FLOATS or term.tensor.rank < 3:
        return False
    x, w = (operand.tensor for operand in term.operands)
    plain = set(term.attribute("lhs_dilation")) == {1} and term.attribute("batch_group_count") == 1
    counts = (*w.dims[2:], *term.attribute("strides"), *term.attribute("rhs_dilation"), term.attribute("feature_group_count"))
    return plain and all(isinstance(count, int) for count in counts) and 0 not in (*x.dims, *w.dims, *term.tensor.dims)


def is_thin(term: Term) -> bool:
    """True for a convolution of each feature by itself, with small windows: a sum of few elements, no product of matrices."""
    w = term.operands[1].tensor
    return term.attribute("feature_group_count") == w.dims[0] and w.dims[1] == 1 and prod(windows_of(w)) <= TAPS


def is_small_pool(term: Term) -> bool:
    """True for sums, largest or smallest elements of small windows, which can be written out."""
    if term.op.name != "stablehlo.reduce_window" or term.tensor.dtype.kind != "float" or not is_plain(term.tensor):
        return False
    plain = set(term.attribute("base_dilations")) == {1} and term.attribute("combiner") in _COMBINERS
    return plain and 1 < prod(term.attribute("window_dimensions")) <= TAPS and 0 not in term.tensor.dims and prefix_of(term) is None


def over_windows(roots: Sequence[Term], wanted: Windows) -> tuple[Term, ...]:
    """`roots` with the convolutions and pools that are `wanted` as kernels; their padding is a movement in front."""
    done: dict[Term, Term] = {}
    for term in topological(roots):
        moved = rebuild(term, [done[operand] for operand in term.operands])
        if has_windows(term) and wanted(term):
            done[term] = _windowed(moved)
        else:
            done[term] = _folded(moved) if is_small_pool(term) and wanted(term) else moved
    return tuple(done[root] for root in roots)


def windows_of(w: TensorType) -> tuple[int, ...]:
    """The spatial sizes of filters, which are known."""
    return tuple(dim for dim in w.dims[2:] if isinstance(dim, int))


def _windowed(term: Term) -> Term:
    """The convolution as one kernel's, behind its padding."""
    x, w = term.operands
    x = _padded(x, ((0, 0), (0, 0), *term.attribute("padding")), splat(0, x.tensor.dtype, ()))
    moves = {"strides": term.attribute("strides"), "dilations": term.attribute("rhs_dilation")}
    if is_thin(term):
        return make(SUMMED, (x, w), moves)
    return make(WINDOWED, (x, w), {**moves, "group": term.attribute("feature_group_count")})


def _folded(term: Term) -> Term:
    """The pool as a scalar of a kernel, behind its padding."""
    (x,), combiner = term.operands, term.attribute("combiner")
    x = _padded(x, term.attribute("padding"), constant(identity(combiner, x.tensor.dtype), x.tensor.dtype))
    window, strides, dilations = (term.attribute(f"window_{name}") for name in ("dimensions", "strides", "dilations"))
    return make(FOLDED, (x,), {"window": window, "strides": strides, "dilations": dilations, "combiner": combiner})


def _padded(x: Term, padding: Sequence[tuple[int, int]], by: Term) -> Term:
    """`x` with so many elements `by` before and behind it along each dim."""
    if all(pair == (0, 0) for pair in padding):
        return x
    low, high = (tuple(pair[side] for pair in padding) for side in (0, 1))
    return make("stablehlo.pad", (x, by), {"low": low, "high": high, "interior": (0,) * x.tensor.rank})


def _unpadded(walk: Grouper, x: Term) -> Term:
    """What `x` is where it is read: its padding is never written."""
    return x.operands[0] if x.op.name == "stablehlo.pad" and x in walk.weight else x


def place_windows(walk: Grouper, term: Term) -> None:
    """Begin a kernel with a product over windows: rows are places of the result, columns its features. The last of the loops that are
    summed is the one over features of x, so that all of a block of them lie in the same place of their windows."""
    x, w = term.operands
    features, depth, *window = w.tensor.dims
    batch, _, *space = term.tensor.dims
    groups = term.attribute("group")
    each = features // groups if isinstance(features, int) else features
    walk.store_operands((_unpadded(walk, x), w), ((each, *window), (batch, *space)))
    group = walk.open(PRODUCT, term)
    group.heavy.append(term)
    (part,), (at, *place) = loops_over(group, "b", (groups,)), loops_over(group, "m", (batch, *space))
    (feature,) = loops_over(group, "n", (each,))
    *taps, channel = loops_over(group, "k", (*window, depth))
    moved: list[Dim] = [
        add(multiply(i, stride), multiply(tap, dilation))
        for i, tap, stride, dilation in zip(place, taps, term.attribute("strides"), term.attribute("dilations"), strict=True)
    ]
    filters = add(multiply(part, each), feature)
    group.reads[term] = ((at, add(multiply(part, depth), channel), *moved), (filters, channel, *taps))
    walk.add(group, term, (at, filters, *place))


def place_written_out(walk: Grouper, term: Term) -> None:
    """Begin a kernel with sums over windows that are written out; what is done to x is done for each place of a window, or before."""
    under = _unpadded(walk, term.operands[0])
    if under in walk.weight and not walk.is_cheap(under, walk.limits.product_scalars):
        walk.found.required.add(under)
        walk.pointwise(under)
    walk.pointwise(term)
