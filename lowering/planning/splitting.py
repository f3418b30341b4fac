"""Long reductions in two steps: where few programs would have a long way to go, each row is folded in parts, so that the whole machine
works on it.

Sums about what a fold gives are made of sums about what that fold gives of each part, which are made in one walk with it: of
exp(v - max v) (Milakov and Gimelshein, arXiv:1805.02867), and of (v - c)^2, where of each part the squares about its own mean m are kept,
and about c they are more by count * (m - c)^2 (Chan, Golub and LeVeque, 1979). Neither subtracts large numbers from each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise, takewhile
from operator import mul

from coset.dialects.hub.tensors import identity
from coset.dialects.hub.terms import broadcast, convert, is_splat, reshape, splat
from coset.ir.dims import Dim, Shape, add, evaluate, floordiv, multiply, product, subtract
from coset.ir.term import Term, make, rewritten
from coset.ir.types import BOOL, F32, F64, I32, DType
from coset.lowering.kernels.indexing import aligned
from coset.lowering.planning.kinds import KernelLimits, is_fold

_NEAR = 8  # elementwise steps between a sum and what squares are summed about
_OPEN = 16  # and between a sum and the tensors whose dims it may be split by


@dataclass(frozen=True)
class _Cut:
    """How the rows of a fold are cut: of its operand as `shape`, `axes` are folded, and the one at `axis` is cut into `parts` of `length`
    elements each, more than there are where `missing` is not 0."""

    shape: Shape
    axes: tuple[int, ...]
    axis: int
    parts: int
    length: Dim

    @property
    def missing(self) -> Dim:
        return subtract(multiply(self.parts, self.length), self.shape[self.axis])

    @property
    def cut(self) -> Shape:
        """The shape with a dim for the parts."""
        return (*self.shape[: self.axis], self.parts, self.length, *self.shape[self.axis + 1 :])

    @property
    def inner(self) -> tuple[int, ...]:
        """What is folded of each part."""
        return tuple(place + (place >= self.axis) for place in self.axes)

    @property
    def outer(self) -> int:
        """The dim of the parts behind that."""
        return self.axis - sum(1 for other in self.axes if other < self.axis)

    def parted(self, x: Term, edge: object) -> Term:
        """`x` in parts, with `edge` where there is no element."""
        x = reshape(x, self.shape)
        if self.missing != 0:
            shape = (*self.shape[: self.axis], self.missing, *self.shape[self.axis + 1 :])
            rest = splat(edge, x.tensor.dtype, shape)
            x = make("stablehlo.concatenate", (x, rest), {"dimension": self.axis})
        return reshape(x, self.cut)

    def folded(self, x: Term, combiner: str) -> Term:
        """One value for each part of what is in parts."""
        return make("stablehlo.reduce", (x,), {"dimensions": self.inner, "combiner": combiner})

    def joined(self, x: Term, combiner: str) -> Term:
        """One value for each row of what each part has."""
        return make("stablehlo.reduce", (x,), {"dimensions": (self.outer,), "combiner": combiner})

    def along(self, x: Term, shape: Shape) -> Term:
        """What each part has, for each element of what is in parts (`shape` is `cut`), or what each row has, for each part."""
        if len(shape) == len(self.cut):
            return broadcast(x, shape, tuple(place for place in range(len(shape)) if place not in self.inner))
        return broadcast(x, shape, tuple(place for place in range(len(shape)) if place != self.outer))


@dataclass(frozen=True)
class _Parts:
    """A fold that was split: of `value`, over `axes`, each part's in `parts`."""

    value: Term
    axes: tuple[int, ...]
    combiner: str
    cut: _Cut
    parts: Term


def split(roots: Iterable[Term], limits: KernelLimits, binding: Mapping[str, int]) -> tuple[Term, ...]:
    """`roots` with each reduction of few long rows as one over parts of rows and one over the parts. Which these are is said by the sizes,
    with typical numbers of dim symbols from `binding`; the result holds for all. Sums of floats are rounded in another order; between the
    steps they are f32."""
    return rewritten(roots, _Splitter(limits, binding).split)


class _Splitter:
    def __init__(self, limits: KernelLimits, binding: Mapping[str, int]) -> None:
        self.limits, self.binding = limits, binding
        self.made: dict[Term, _Parts] = {}  # by what became of the fold

    def split(self, term: Term) -> Term:
        """A fold of few long rows in two steps; any other term as it is."""
        if not is_fold(term):
            return term
        x, axes, combiner = term.operands[0], tuple(term.attribute("dimensions")), str(term.attribute("combiner"))
        cut = self._cut(x, axes)
        if cut is None:
            return term
        whole = self._about(x, axes, cut) if combiner == "add" and self.limits.contracts else None
        if whole is not None:
            return whole
        dtype = term.tensor.dtype
        if dtype.kind == "float" and dtype.bits < 32:
            x = convert(x, F32)
        parts = cut.folded(cut.parted(x, identity(combiner, x.tensor.dtype)), combiner)
        result = convert(cut.joined(parts, combiner), dtype)
        self.made[result] = _Parts(x, axes, combiner, cut, parts)
        return result

    def _cut(self, x: Term, axes: tuple[int, ...]) -> _Cut | None:
        """How a fold of `x` over `axes` is cut; None where it is not."""
        sizes = [evaluate(dim, self.binding) for dim in x.tensor.dims]
        if 0 in sizes:
            return None
        rows = evaluate(product(dim for axis, dim in enumerate(x.tensor.dims) if axis not in axes), self.binding)
        columns = evaluate(product(x.tensor.dims[axis] for axis in axes), self.binding)
        last = max((axis for axis, size in enumerate(sizes) if size > 1), default=0)
        wanted = self.limits.parts(rows, columns, along_rows=last not in axes)
        if wanted == 1:
            return None
        shape, opened = _opened(x, axes)
        counts = {axis: evaluate(shape[axis], self.binding) for axis in opened}
        axis = max(opened, key=lambda axis: counts[axis])
        parts = _parts(counts[axis], max(2, wanted))
        if parts == columns:
            return None  # nothing would be left to fold in a part
        return _Cut(shape, opened, axis, parts, floordiv(add(shape[axis], parts - 1), parts))

    # ------------------------------------------------------------ sums about a fold

    def _about(self, x: Term, axes: tuple[int, ...], cut: _Cut) -> Term | None:
        """The sum of `x` of sums about each part's own; None where it is not about the fold of what it sums."""
        if x.tensor.dtype not in (F32, F64):
            return None
        if x.op.name == "stablehlo.exponential":
            off = _difference(x.operands[0], axes)
            top = self.made.get(off[1]) if off is not None else None
            if off is not None and top is not None and (top.value, top.axes, top.combiner, top.cut) == (off[0], axes, "maximum", cut):
                return _exponentials(top, off[1])
        if x.op.name == "stablehlo.multiply" and x.operands[0] is x.operands[1]:
            off = _difference(x.operands[0], axes)
            total = self._total(*off, axes, cut) if off is not None else None
            if off is not None and total is not None:
                return _squares(total, off[1])
        return None

    def _total(self, value: Term, center: Term, axes: tuple[int, ...], cut: _Cut) -> _Parts | None:
        """The sum of `value`, where `center` is made of it in few steps."""
        stack, seen = [center], 0
        while stack and seen < _NEAR:
            term, seen = stack.pop(), seen + 1
            found = self.made.get(term)
            if found is not None and (found.value, found.axes, found.combiner, found.cut) == (value, axes, "add", cut):
                return found
            if term.op.has("elementwise") or term.op.name in ("stablehlo.reshape", "stablehlo.broadcast_in_dim"):
                stack += term.operands
        return None


def _difference(x: Term, axes: tuple[int, ...]) -> tuple[Term, Term] | None:
    """What is subtracted from, and what each row has that is subtracted, without the dims in `axes`."""
    if x.op.name != "stablehlo.subtract":
        return None
    value, spread = x.operands
    if spread.op.name != "stablehlo.broadcast_in_dim":
        return None
    row = spread.operands[0]
    kept = tuple(axis for axis in range(x.tensor.rank) if axis not in axes)
    pairs = list(zip(row.tensor.dims, spread.attribute("broadcast_dimensions"), strict=True))
    if any(dim != (1 if axis in axes else x.tensor.dims[axis]) for dim, axis in pairs):
        return None
    if tuple(axis for _, axis in pairs if axis not in axes) != kept:
        return None
    bare = tuple(x.tensor.dims[axis] for axis in kept)
    return value, row if row.tensor.dims == bare else reshape(row, bare)


def _exponentials(top: _Parts, center: Term) -> Term:
    """Of exp(value - center), where `center` is the largest value. Of a part of -inf alone the sum about its own is not a number."""
    cut, dtype, shape = top.cut, center.tensor.dtype, top.parts.tensor.dims
    off = make("stablehlo.subtract", (cut.parted(top.value, float("-inf")), cut.along(top.parts, cut.cut)))
    sums = cut.folded(make("stablehlo.exponential", (off,)), "add")
    less = make("stablehlo.exponential", (make("stablehlo.subtract", (top.parts, cut.along(center, shape))),))
    lowest = make("stablehlo.compare", (top.parts, splat(float("-inf"), dtype, shape)), {"direction": "EQ"})
    return cut.joined(make("stablehlo.select", (lowest, less, make("stablehlo.multiply", (sums, less)))), "add")


def _squares(total: _Parts, center: Term) -> Term:
    """Of (value - center)^2."""
    cut, dtype = total.cut, center.tensor.dtype
    shape = total.parts.tensor.dims
    count = some = _counts(cut, dtype, shape)
    if is_splat(count) is None:
        some = make("stablehlo.maximum", (count, splat(1.0, dtype, shape)))  # the last parts may be empty
    mean = make("stablehlo.divide", (total.parts, some))
    off = make("stablehlo.subtract", (cut.parted(total.value, 0.0), cut.along(mean, cut.cut)))
    if cut.missing != 0:
        off = make("stablehlo.select", (_inside(cut), off, splat(0.0, dtype, cut.cut)))
    squares = cut.folded(make("stablehlo.multiply", (off, off)), "add")
    apart = make("stablehlo.subtract", (mean, cut.along(center, shape)))
    more = make("stablehlo.multiply", (count, make("stablehlo.multiply", (apart, apart))))
    return cut.joined(make("stablehlo.add", (squares, more)), "add")


def _inside(cut: _Cut) -> Term:
    """True where a part has an element."""
    line = splat(True, BOOL, (cut.shape[cut.axis],))
    if cut.missing != 0:
        line = make("stablehlo.concatenate", (line, splat(False, BOOL, (cut.missing,))), {"dimension": 0})
    return broadcast(reshape(line, (cut.parts, cut.length)), cut.cut, (cut.axis, cut.axis + 1))


def _counts(cut: _Cut, dtype: DType, shape: Shape) -> Term:
    """How many elements each part has."""
    lines, others = cut.shape[cut.axis], product(cut.shape[axis] for axis in cut.axes if axis != cut.axis)
    if not (isinstance(lines, int) and isinstance(cut.length, int) and isinstance(others, int)):
        return cut.folded(convert(_inside(cut), dtype), "add")
    if cut.missing == 0:
        return splat(float(cut.length * others), dtype, shape)
    begun = make("stablehlo.iota", (), {"shape": shape, "dtype": I32, "dimension": cut.outer})
    begun = make("stablehlo.multiply", (begun, splat(cut.length, I32, shape)))
    left = make("stablehlo.subtract", (splat(lines, I32, shape), begun))
    own = make("stablehlo.clamp", (splat(0, I32, shape), left, splat(cut.length, I32, shape)))
    return make("stablehlo.multiply", (convert(own, dtype), splat(float(others), dtype, shape)))


# ---------------------------------------------------------------- where rows are cut


def _opened(x: Term, axes: tuple[int, ...]) -> tuple[Shape, tuple[int, ...]]:
    """The shape of `x` where dims of `axes` that a reshape merged are several again, and the axes of these: an image is cut between its
    lines, so that parts of it are neighbours in memory in whatever order its features lie."""
    stack, seen = [x], 0
    while stack and seen < _OPEN:
        term, seen = stack.pop(), seen + 1
        if term.op.name == "stablehlo.reshape":
            found = _refined(x.tensor.dims, axes, term.operands[0].tensor.dims)
            if found is not None:
                return found
        elif term.op.has("elementwise") or term.op.name == "stablehlo.convert":
            stack += [operand for operand in reversed(term.operands) if operand.tensor.dims == x.tensor.dims]
    return x.tensor.dims, axes


def _refined(shape: Shape, axes: tuple[int, ...], other: Shape) -> tuple[Shape, tuple[int, ...]] | None:
    """`shape` with the dims of `axes` taken apart as `other` has them, which is of as many elements; None where none is."""
    runs: dict[int, list[int]] = {}
    for mine, theirs in aligned(shape, other):
        sizes, others = ([dims[axis] for axis in group] for dims, group in ((shape, mine), (other, theirs)))
        ends, cuts = _ends(sizes), sorted({*_ends(sizes), *_ends(others)})
        if len(ends) < len(sizes) or any(after % before for before, after in pairwise(cuts)):
            continue  # a size is a symbol, or no element has a place in both
        for axis, begin, end in zip(mine, (1, *ends), ends, strict=False):
            inside = [begin, *(cut for cut in cuts if begin < cut <= end)]
            if axis in axes:
                runs[axis] = [after // before for before, after in pairwise(inside)]
    if all(len(run) < 2 for run in runs.values()):
        return None
    opened: list[Dim] = []
    folded: list[int] = []
    for axis, dim in enumerate(shape):
        run = runs.get(axis, [dim])
        if axis in axes:
            folded += range(len(opened), len(opened) + len(run))
        opened += run
    return tuple(opened), tuple(folded)


def _ends(sizes: Iterable[Dim]) -> list[int]:
    """How many elements so many of the first dims have together, as far as they are numbers."""
    return list(accumulate(takewhile(lambda size: isinstance(size, int), sizes), mul))


def _parts(length: int, wanted: int) -> int:
    """A number of parts near `wanted`, one that divides the length where there is one between a half and twice that."""
    if length <= wanted:
        return length
    dividing = [parts for parts in range(max(2, wanted // 2), 2 * wanted + 1) if length % parts == 0]
    return min(dividing, key=lambda parts: abs(parts - wanted)) if dividing else wanted
