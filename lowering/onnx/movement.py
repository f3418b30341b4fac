"""Movement ops as ONNX calls, and views: what NumPy's implicit broadcasting makes of a `broadcast_in_dim`."""

from __future__ import annotations

import numpy as np

from coset.dialects.hub.terms import is_splat, numpy_view
from coset.ir import dims
from coset.ir.constants import Constant, constant_of
from coset.ir.dim_factors import factors as factors_of
from coset.ir.dims import Dim, Shape
from coset.ir.term import CONSTANT, Term
from coset.ir.types import DTYPES, I64, DType
from coset.lowering.onnx import slice as onnx_slice
from coset.lowering.onnx.calls import Input, NodeCall, NoOnnxForm, Numbers, PrintContext, Printer, folded, squeeze, unsqueeze, vector
from coset.lowering.onnx.reduce_call import is_reduction, kept_reduction, kept_shape

_SPLAT_BYTES = 1 << 22  # larger splats are expanded when the model runs
FLATTENING = {"onnx.Softmax": "Softmax", "onnx.LogSoftmax": "LogSoftmax"}
_ADDED = frozenset(DTYPES[name] for name in ("i32", "i64", "f16", "f32", "f64"))  # by Add of version 7
_RANGES = frozenset(DTYPES[name] for name in ("i64", "i32", "i16", "f32", "f64"))


def view(x: Term, context: PrintContext | None) -> tuple[Input, Shape]:
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


def reshaped(x: Term | NodeCall | Constant, shape: Shape, target: Shape, context: PrintContext) -> Input:
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
        element = onnx_slice.element(x, target, context)
        if element is not None:
            return element
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


def flat(shape: Shape, axis: int) -> Shape:
    """The two dims that those before `axis` and the others make."""
    return dims.product(shape[:axis]), dims.product(shape[axis:])


def _reshape_call(x: Input, shape: Shape, target: Shape, context: PrintContext) -> NodeCall:
    """Reshape with 0 for dims that stay in place, and -1 for one other where no dim beside it can be 0."""
    copied = [axis < len(shape) and shape[axis] == dim for axis, dim in enumerate(target)]
    if 0 in target and not all(copied[axis] for axis, dim in enumerate(target) if dim == 0):
        if not context.reaches(14):
            raise NoOnnxForm("a reshape to a dim of 0 needs version 14 of the ONNX operators", 14)
        return NodeCall("Reshape", (x, Numbers(target)), {"allowzero": 1}, since=14)
    written: list[Dim] = [0 if same and not (isinstance(dim, int) and dim) else dim for same, dim in zip(copied, target, strict=True)]
    symbolic = [axis for axis, dim in enumerate(written) if not isinstance(dim, int)]
    if len(symbolic) == 1 and all(is_positive(dim, context) for axis, dim in enumerate(target) if axis != symbolic[0]):
        written[symbolic[0]] = -1
    elif symbolic and len(target) == 2:
        axis = next((axis for axis in range(len(shape) + 1) if target == flat(shape, axis)), None)
        if axis is not None:
            return NodeCall("Flatten", (x,), {"axis": axis}, since=9)
    return NodeCall("Reshape", (x, Numbers(tuple(written))), since=5)


def is_positive(dim: Dim, context: PrintContext) -> bool:
    factors = factors_of(dim)
    return factors is not None and factors <= context.positive


def transposed(x: Term, permutation: tuple[int, ...]) -> Term | NodeCall | Constant:
    """`x` transposed; transposes below it are joined with this one, and one of a constant is done here."""
    while x.op.name == "stablehlo.transpose":
        inner = x.attribute("permutation")
        permutation = tuple(inner[axis] for axis in permutation)
        x = x.operands[0]
    if permutation == tuple(range(len(permutation))):
        return x
    constant = folded(x, lambda array: array.transpose(permutation))
    return constant if constant is not None else NodeCall("Transpose", (x,), {"perm": permutation})


def _print_transpose(term: Term, _: PrintContext) -> Input:
    return transposed(term.operands[0], term.attribute("permutation"))


def _flattened(term: Term) -> NodeCall | None:
    """Softmax as it was before version 13, over all dims from one on, where `term` is that: between two reshapes."""
    softmax = term.operands[0]
    base, axis = softmax.operands[0], softmax.attribute("axis")
    while base.op.name == "stablehlo.reshape":
        base = base.operands[0]
    shape = base.tensor.dims
    if softmax.tensor.rank != 2 or axis % 2 != 1 or shape != term.tensor.dims:
        return None
    start = next((axis for axis in range(len(shape)) if softmax.tensor.dims == flat(shape, axis)), None)
    return None if start is None else NodeCall(FLATTENING[softmax.op.name], (base,), {"axis": start})


def _print_reshape(term: Term, context: PrintContext) -> Input:
    if term.operands[0].op.name in FLATTENING and not context.reaches(13):
        flattened = _flattened(term)
        if flattened is not None:
            return flattened
    return reshaped(term.operands[0], term.operands[0].tensor.dims, term.tensor.dims, context)


def written_out(term: Term) -> Constant | None:
    """The constant that a splat of moderate size is written as, of whatever element type; None where `term` is none."""
    splat, static = is_splat(term), None if term.op is CONSTANT else term.tensor.static
    if splat is None or static is None or np.prod(static, dtype=np.int64) * splat.type.dtype.numpy.itemsize > _SPLAT_BYTES:
        return None
    return constant_of(np.full(static, splat.array()), splat.type.dtype)


def _print_broadcast(term: Term, context: PrintContext) -> Input:
    """A splat of moderate size is a constant; all else is Expand."""
    source, shape, axes = term.operands[0], term.tensor.dims, term.attribute("broadcast_dimensions")
    constant = written_out(term)
    if constant is not None:
        return constant
    order = tuple(sorted(range(len(axes)), key=lambda i: axes[i]))
    inner = transposed(source, order)
    given = tuple(source.tensor.dims[i] for i in order)
    viewed = numpy_view(shape, tuple(sorted(axes)), given)
    assert viewed is not None
    return NodeCall("Expand", (reshaped(inner, given, viewed, context), Numbers(_asked(shape, viewed))), since=8)


def _asked(shape: Shape, given: Shape) -> Shape:
    """What Expand, which broadcasts in both directions, is to make of the shape `given`: 1 for a symbolic dim that is there already."""
    there = (*(1 for _ in shape[len(given) :]), *given)
    return tuple(1 if isinstance(dim, dims.Poly) and dim == own else dim for dim, own in zip(shape, there, strict=True))


def _print_concatenate(term: Term, _: PrintContext) -> Input:
    return (
        term.operands[0] if len(term.operands) == 1 else NodeCall("Concat", term.operands, {"axis": term.attribute("dimension")}, since=4)
    )


def _print_pad(term: Term, context: PrintContext) -> Input:
    low, high = term.attribute("low"), term.attribute("high")
    if any(term.attribute("interior")):
        raise NoOnnxForm("Pad puts nothing between elements")
    if not any(low) and not any(high):
        return term.operands[0]
    if context.reaches(11):
        since = 13 if term.tensor.dtype.kind == "bool" else 11
        return NodeCall("Pad", (term.operands[0], vector(*low, *high), term.operands[1]), {"mode": "constant"}, since=since)
    value = is_splat(term.operands[1])
    if value is None or term.tensor.dtype.kind != "float":
        return _put_around(term)
    return NodeCall("Pad", (term.operands[0],), {"pads": (*low, *high), "value": float(value.array()), "mode": "constant"}, since=2)


def _put_around(term: Term) -> Input:
    """A pad as concatenations: before version 11 Pad takes floats only, and a number for its value."""
    (x, value), shape = term.operands, list(term.operands[0].tensor.dims)
    found: Input = x
    for axis, ends in enumerate(zip(term.attribute("low"), term.attribute("high"), strict=True)):
        if min(ends) < 0:
            raise NoOnnxForm("a pad that takes elements away needs version 11 of the ONNX operators", 11)
        first, last = (filled(value, (*shape[:axis], size, *shape[axis + 1 :])) if size else None for size in ends)
        parts = tuple(part for part in (first, found, last) if part is not None)
        found = NodeCall("Concat", parts, {"axis": axis}, since=4) if len(parts) > 1 else found
        shape[axis] = shape[axis] + sum(ends)
    return found


def filled(value: Term, shape: Shape) -> Input:
    """A shape full of a number: by Expand, which is of version 8, or as what it is added to, -0 for floats."""
    dtype, sizes = value.tensor.dtype, [dim for dim in shape if isinstance(dim, int)]
    if dtype not in _ADDED or len(sizes) < len(shape):
        return NodeCall("Expand", (value, Numbers(shape)), since=8)
    return NodeCall("Add", (constant_of(np.full(sizes, -0.0 if dtype.kind == "float" else 0, dtype.numpy), dtype), value), since=7)


def counted(count: Dim, dtype: DType) -> NodeCall | Constant:
    """The vector 0, 1 .. count - 1: a constant where the number is static, else Range."""
    if isinstance(count, int):
        return constant_of(np.arange(count).astype(dtype.numpy), dtype)
    kind = dtype if dtype in _RANGES else I64
    ends: list[Input] = [constant_of(np.zeros((), kind.numpy)), Numbers((count,), kind, ()), constant_of(np.ones((), kind.numpy))]
    if kind not in (I64, DTYPES["i32"]):
        ends[1] = NodeCall("Cast", (Numbers((count,), I64, ()),), {"to": kind})
    line = NodeCall("Range", tuple(ends), since=11)
    return line if kind == dtype else NodeCall("Cast", (line,), {"to": dtype})


def _print_iota(term: Term, context: PrintContext) -> Input:
    """Numbers along one dim, expanded to the shape."""
    shape, dtype, axis = term.tensor.dims, term.tensor.dtype, term.attribute("dimension")
    count = shape[axis]
    line = counted(count, dtype)
    if len(shape) == 1:
        return line
    after = len(shape) - axis - 1
    column = reshaped(line, (count,), (count, *([1] * after)), context) if after else line
    return NodeCall("Expand", (column, Numbers(_asked(shape, (count, *([1] * after))))), since=8)


PRINTERS: dict[str, Printer] = {
    **onnx_slice.PRINTERS,
    "stablehlo.broadcast_in_dim": _print_broadcast,
    "stablehlo.reshape": _print_reshape,
    "stablehlo.transpose": _print_transpose,
    "stablehlo.concatenate": _print_concatenate,
    "stablehlo.pad": _print_pad,
    "stablehlo.iota": _print_iota,
}
