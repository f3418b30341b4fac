"""Movement ops as ONNX calls, and views: what NumPy's implicit broadcasting makes of a `broadcast_in_dim`."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from coset.dialects.hub_terms import is_splat, numpy_view
from coset.ir import dims
from coset.ir.constants import Constant, constant_of
from coset.ir.dims import Dim, Shape
from coset.ir.term import Term
from coset.ir.types import DTYPES, I64
from coset.lowering.onnx_plan import Call, Context, Input, Numbers, Printer, Refused, folded, squeeze, unsqueeze, vector
from coset.lowering.onnx_reduce_call import is_reduction, kept_reduction, kept_shape

_SPLAT_BYTES = 1 << 22  # larger splats are expanded when the model runs
_LAST, _FIRST = (1 << 63) - 1, -(1 << 63)  # ends of Slice that mean "to the end" and "to the beginning"
_RANGES = frozenset(DTYPES[name] for name in ("i64", "i32", "i16", "f32", "f64"))


def view(x: Term, context: Context | None) -> tuple[Input, Shape]:
    """What NumPy broadcasts to the value of `x`, and its shape: x itself, or the source of the broadcast that it is.

    Without a context only views that need no call are taken.
    """
    if x.op.name != "stablehlo.broadcast_in_dim":
        return x, x.tensor.dims
    source = x.operands[0]
    shape = numpy_view(x.tensor.dims, x.attribute("broadcast_dimensions"), source.tensor.dims)
    if shape is None:
        return x, x.tensor.dims
    base = source
    while base.op.name == "stablehlo.reshape":
        base = base.operands[0]
    for candidate in (base, source):  # leading 1s are of no matter
        if len(candidate.tensor.dims) <= len(x.tensor.dims) and _without_leading_ones(candidate.tensor.dims) == shape:
            return candidate, candidate.tensor.dims
    if context is None:
        return x, x.tensor.dims
    if is_reduction(base) and _without_leading_ones(kept_shape(base)) == shape and len(kept_shape(base)) <= len(x.tensor.dims):
        context.kept.add(base)
        return kept_reduction(base, context), kept_shape(base)
    return reshaped(source, source.tensor.dims, shape, context), shape


def ranked_view(x: Term) -> Shape | None:
    """The shape, as long as that of `x`, from which NumPy broadcasts the source of the broadcast `x` to it; None where there is none."""
    if x.op.name != "stablehlo.broadcast_in_dim":
        return None
    shape = numpy_view(x.tensor.dims, x.attribute("broadcast_dimensions"), x.operands[0].tensor.dims)
    return None if shape is None else (1,) * (x.tensor.rank - len(shape)) + shape


def _without_leading_ones(shape: Shape) -> Shape:
    first = next((i for i, dim in enumerate(shape) if dim != 1), len(shape))
    return shape[first:]


def reshaped(x: Term | Call | Constant, shape: Shape, target: Shape, context: Context) -> Input:
    """`x` of `shape` under the shape `target`; where only NumPy's leading 1s differ a constant or reduction is taken as it is."""
    while isinstance(x, Term) and x.op.name == "stablehlo.reshape":
        x = x.operands[0]
        shape = x.tensor.dims
    if shape == target:
        return x
    if isinstance(x, Term):
        if is_reduction(x) and kept_shape(x) == target:
            context.kept.add(x)
            return kept_reduction(x, context)
        constant = folded(x, lambda array: array.reshape(target)) if not any(isinstance(d, dims.Poly) for d in target) else None
        if constant is not None:
            return constant
    axes = _ones_between(target, shape)
    if axes is not None:
        return unsqueeze(x, axes, context)
    axes = _ones_between(shape, target)
    if axes is not None:
        return squeeze(x, axes, context)
    return _reshape_call(x, shape, target, context)


def _ones_between(longer: Shape, shorter: Shape) -> tuple[int, ...] | None:
    """The dims of `longer`, all 1, without which it is `shorter`; None where it is not."""
    axes: list[int] = []
    position = 0
    for axis, dim in enumerate(longer):
        if position < len(shorter) and dim == shorter[position]:
            position += 1
        elif dim == 1:
            axes.append(axis)
        else:
            return None
    return tuple(axes) if position == len(shorter) and len(axes) == len(longer) - len(shorter) else None


def _reshape_call(x: Input, shape: Shape, target: Shape, context: Context) -> Call:
    """Reshape with 0 for dims that stay in place, and -1 for one other where no dim beside it can be 0."""
    copied = [axis < len(shape) and shape[axis] == dim for axis, dim in enumerate(target)]
    if 0 in target and not all(copied[axis] for axis, dim in enumerate(target) if dim == 0):
        if not context.reaches(14):
            raise Refused("a reshape to a dim of 0 needs version 14 of the ONNX operators", 14)
        return Call("Reshape", (x, Numbers(target)), {"allowzero": 1}, since=14)
    written: list[Dim] = [0 if same and not (isinstance(dim, int) and dim) else dim for same, dim in zip(copied, target, strict=True)]
    symbolic = [axis for axis, dim in enumerate(written) if not isinstance(dim, int)]
    if len(symbolic) == 1 and all(isinstance(dim, int) and dim > 0 for axis, dim in enumerate(written) if axis != symbolic[0]):
        written[symbolic[0]] = -1
    return Call("Reshape", (x, Numbers(tuple(written))), since=5)


def transposed(x: Term, permutation: tuple[int, ...]) -> Term | Call | Constant:
    """`x` transposed; transposes below it are joined with this one, and one of a constant is done here."""
    while x.op.name == "stablehlo.transpose":
        inner = x.attribute("permutation")
        permutation = tuple(inner[axis] for axis in permutation)
        x = x.operands[0]
    if permutation == tuple(range(len(permutation))):
        return x
    constant = folded(x, lambda array: array.transpose(permutation))
    return constant if constant is not None else Call("Transpose", (x,), {"perm": permutation})


def _print_transpose(term: Term, _: Context) -> Input:
    return transposed(term.operands[0], term.attribute("permutation"))


def _print_reshape(term: Term, context: Context) -> Input:
    return reshaped(term.operands[0], term.operands[0].tensor.dims, term.tensor.dims, context)


def _print_broadcast(term: Term, context: Context) -> Input:
    """A splat of moderate size is a constant; all else is Expand."""
    source, shape, axes = term.operands[0], term.tensor.dims, term.attribute("broadcast_dimensions")
    static = term.tensor.static
    splat = is_splat(term)
    if splat is not None and static is not None and np.prod(static, dtype=np.int64) * splat.type.dtype.numpy.itemsize <= _SPLAT_BYTES:
        return constant_of(np.full(static, splat.array()), splat.type.dtype)
    order = tuple(sorted(range(len(axes)), key=lambda i: axes[i]))
    inner = transposed(source, order)
    given = tuple(source.tensor.dims[i] for i in order)
    viewed = numpy_view(shape, tuple(sorted(axes)), given)
    assert viewed is not None
    return Call("Expand", (reshaped(inner, given, viewed, context), Numbers(shape)), since=8)


def find_splits(terms: Iterable[Term]) -> dict[Term, tuple[Term, ...]]:
    """The slices among `terms` that are together all of one value, each with all parts in order."""
    parts: dict[tuple[Term, int], dict[Dim, Term]] = {}
    for term in terms:
        axis = _sliced_axis(term) if term.op.name == "stablehlo.slice" else None
        if axis is not None:
            parts.setdefault((term.operands[0], axis), {}).setdefault(term.attribute("start")[axis], term)
    found = {}
    for (whole, axis), starts in parts.items():
        position: Dim = 0
        line: list[Term] = []
        while position in starts and starts[position] not in line:
            line.append(starts[position])
            position = line[-1].attribute("limit")[axis]
        if position == whole.tensor.dims[axis] and len(line) > 1:
            found.update(dict.fromkeys(line, tuple(line)))
    return found


def _sliced_axis(term: Term) -> int | None:
    """The one dim of which a slice without steps takes a part."""
    shape = term.operands[0].tensor.dims
    columns = zip(term.attribute("start"), term.attribute("limit"), shape, strict=True)
    axes = [axis for axis, (start, limit, dim) in enumerate(columns) if (start, limit) != (0, dim)]
    return axes[0] if len(axes) == 1 and all(step == 1 for step in term.attribute("strides")) else None


def _print_split(parts: tuple[Term, ...], context: Context) -> Call:
    axis = _sliced_axis(parts[0])
    assert axis is not None
    sizes = tuple(part.tensor.dims[axis] for part in parts)
    if context.reaches(13):
        return Call("Split", (parts[0].operands[0], Numbers(sizes)), {"axis": axis}, results=parts)
    return Call("Split", (parts[0].operands[0],), {"axis": axis, "split": sizes}, since=2, results=parts)


def _print_slice(term: Term, context: Context) -> Input:
    shape = term.operands[0].tensor.dims
    parts = context.splits.get(term)
    if parts is not None and (context.reaches(13) or all(part.tensor.static is not None for part in parts)):
        return _print_split(parts, context)
    starts: list[Dim] = []
    ends: list[Dim] = []
    axes: list[int] = []
    steps: list[int] = []
    for axis, (start, limit, step, dim) in enumerate(
        zip(term.attribute("start"), term.attribute("limit"), term.attribute("strides"), shape, strict=True)
    ):
        if (start, limit, step) != (0, dim, 1):
            starts.append(_from_end(start, dim))
            ends.append(_LAST if limit == dim else _from_end(limit, dim))
            axes.append(axis)
            steps.append(step)
    return _slice_call(term.operands[0], starts, ends, axes, steps, context) if axes else term.operands[0]


def _from_end(position: Dim, dim: Dim) -> Dim:
    """A symbolic position as a negative number where it is one."""
    difference = dims.subtract(position, dim)
    return difference if isinstance(difference, int) and difference < 0 and not isinstance(position, int) else position


def _slice_call(x: Input, starts: list[Dim], ends: list[Dim], axes: list[int], steps: list[int], context: Context) -> Call:
    if context.reaches(10):
        strides = (vector(*steps),) if any(step != 1 for step in steps) else ()
        return Call("Slice", (x, Numbers(tuple(starts)), Numbers(tuple(ends)), vector(*axes), *strides))
    if any(step != 1 for step in steps) or not all(isinstance(dim, int) for dim in (*starts, *ends)):
        raise Refused("a slice with steps or symbolic ends needs version 10 of the ONNX operators", 10)
    return Call("Slice", (x,), {"starts": tuple(starts), "ends": tuple(ends), "axes": tuple(axes)})


def _print_reverse(term: Term, context: Context) -> Input:
    axes = list(term.attribute("dimensions"))
    if not axes:
        return term.operands[0]
    return _slice_call(term.operands[0], [-1] * len(axes), [_FIRST] * len(axes), axes, [-1] * len(axes), context)


def _print_concatenate(term: Term, _: Context) -> Input:
    return term.operands[0] if len(term.operands) == 1 else Call("Concat", term.operands, {"axis": term.attribute("dimension")}, since=4)


def _print_pad(term: Term, context: Context) -> Input:
    low, high = term.attribute("low"), term.attribute("high")
    if any(term.attribute("interior")):
        raise Refused("Pad puts nothing between elements")
    if not any(low) and not any(high):
        return term.operands[0]
    if context.reaches(11):
        since = 13 if term.tensor.dtype.kind == "bool" else 11
        return Call("Pad", (term.operands[0], vector(*low, *high), term.operands[1]), {"mode": "constant"}, since=since)
    value = is_splat(term.operands[1])
    if value is None or term.tensor.dtype.kind != "float":
        raise Refused("a pad with a computed value needs version 11 of the ONNX operators", 11)
    return Call("Pad", (term.operands[0],), {"pads": (*low, *high), "value": float(value.array()), "mode": "constant"}, since=2)


def _print_iota(term: Term, context: Context) -> Input:
    """Numbers along one dim: a constant where it is static, else Range; expanded to the shape."""
    shape, dtype, axis = term.tensor.dims, term.tensor.dtype, term.attribute("dimension")
    count = shape[axis]
    line: Input
    if isinstance(count, int):
        line = constant_of(np.arange(count).astype(dtype.numpy), dtype)
    else:
        kind = dtype if dtype in _RANGES else I64
        ends: list[Input] = [constant_of(np.zeros((), kind.numpy)), Numbers((count,), kind, ()), constant_of(np.ones((), kind.numpy))]
        if kind not in (I64, DTYPES["i32"]):
            ends[1] = Call("Cast", (Numbers((count,), I64, ()),), {"to": kind})
        line = Call("Range", tuple(ends), since=11)
        line = line if kind == dtype else Call("Cast", (line,), {"to": dtype})
    if len(shape) == 1:
        return line
    after = len(shape) - axis - 1
    line = reshaped(line, (count,), (count, *([1] * after)), context) if after else line
    return Call("Expand", (line, Numbers(shape)), since=8)


PRINTERS: dict[str, Printer] = {
    "stablehlo.broadcast_in_dim": _print_broadcast,
    "stablehlo.reshape": _print_reshape,
    "stablehlo.transpose": _print_transpose,
    "stablehlo.slice": _print_slice,
    "stablehlo.concatenate": _print_concatenate,
    "stablehlo.pad": _print_pad,
    "stablehlo.reverse": _print_reverse,
    "stablehlo.iota": _print_iota,
}
