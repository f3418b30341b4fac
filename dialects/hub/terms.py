"""Smart constructors of hub terms in their normal form: movement that changes nothing gives back the term that is there.

The normal form: broadcasts are explicit and expand no dim of size 1 (it is reshaped away first); one that only adds dims
of size 1 is a reshape; a splat constant is a rank-0 constant under `broadcast_in_dim`, and stays one when it is moved.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coset.dialects.hub.scalars import cast
from coset.ir.constants import Constant, constant_of
from coset.ir.dims import Dim, Shape
from coset.ir.errors import TypeRuleError, require
from coset.ir.term import CONSTANT, Term, constant, make
from coset.ir.types import DType

SPLAT_ELEMENTS = 1 << 20  # constants up to this size are looked at for equal elements


def _core(x: Term) -> Term | None:
    """The rank-0 term that `x` repeats, or None: any movement of x is a broadcast of it."""
    if x.op.name == "stablehlo.broadcast_in_dim" and x.operands[0].tensor.rank == 0:
        return x.operands[0]
    return x if x.op is CONSTANT and x.tensor.rank == 0 else None


def is_splat(term: Term) -> Constant | None:
    """The rank-0 constant that every element of `term` equals by construction, or None."""
    core = _core(term)
    return core.attribute("value") if core is not None and core.op is CONSTANT else None


def literal(value: Constant | object, dtype: DType | None = None) -> Term:
    """The constant term in normal form: a splat when every element has the same bits (and there are 1 to 2^20 of them)."""
    whole = value if isinstance(value, Constant) else constant_of(value, dtype)
    shape = whole.type.static
    assert shape is not None
    count = int(np.prod(shape, dtype=np.int64))
    if not shape or not 1 <= count <= SPLAT_ELEMENTS or whole.type.dtype.kind == "string":
        return constant(whole)
    flat = whole.array().reshape(-1)
    bits = flat.view(np.uint8).reshape(count, -1)
    if bits[0].tobytes() != bits[-1].tobytes() or not np.array_equal(bits, np.broadcast_to(bits[0], bits.shape)):  # most differ in the last
        return constant(whole)
    return broadcast(constant(np.array(flat[0], flat.dtype), whole.type.dtype), shape, ())


def splat(value: object, dtype: DType, shape: Shape) -> Term:
    """The scalar `value`, rounded once to `dtype`, in every element of `shape`."""
    return broadcast(constant(cast(np.asarray(value), dtype), dtype), shape, ())


def reshape(x: Term, shape: Shape) -> Term:
    """`x` under another shape; a reshape of a reshape is one.

    Raises:
        TypeRuleError: the number of elements differs.
    """
    if x.tensor.shape == shape:
        return x
    reshaped = make("stablehlo.reshape", (x,), {"shape": shape})
    core = _core(x)
    if core is not None:
        return broadcast(core, shape, ())
    if x.op.name == "stablehlo.reshape":
        return reshape(x.operands[0], shape)
    return reshaped


def transpose(x: Term, permutation: tuple[int, ...]) -> Term:
    """`x` with dim i from its dim `permutation[i]`."""
    if permutation == tuple(range(x.tensor.rank)):
        return x
    transposed = make("stablehlo.transpose", (x,), {"permutation": permutation})
    core = _core(x)
    return transposed if core is None else broadcast(core, transposed.tensor.dims, ())


def convert(x: Term, dtype: DType) -> Term:
    """`x` in another element type."""
    return x if x.tensor.dtype == dtype else make("stablehlo.convert", (x,), {"dtype": dtype})


def broadcast(x: Term, shape: Shape, broadcast_dimensions: tuple[int, ...]) -> Term:
    """`x` with its dim i along dim `broadcast_dimensions[i]` of `shape`.

    Raises:
        TypeRuleError: a dim of x is neither 1 nor the one that it becomes.
    """
    if x.tensor.shape == shape and broadcast_dimensions == tuple(range(len(shape))):
        return x
    spread = make("stablehlo.broadcast_in_dim", (x,), {"shape": shape, "broadcast_dimensions": broadcast_dimensions})
    core = _core(x)
    if core is x:
        return spread
    if core is not None:
        return broadcast(core, shape, ())
    pairs = list(zip(x.tensor.dims, broadcast_dimensions, strict=True))
    kept = [(dim, axis) for dim, axis in pairs if dim == shape[axis]]
    ordered = [axis for _, axis in kept] == sorted(axis for _, axis in kept)
    added = set(range(len(shape))) - {axis for _, axis in kept}
    if ordered and all(shape[axis] == 1 for axis in added):
        return reshape(x, shape)
    if len(kept) < len(pairs):
        return broadcast(reshape(x, tuple(dim for dim, _ in kept)), shape, tuple(axis for _, axis in kept))
    return spread


def numpy_broadcast(x: Term, shape: Shape) -> Term:
    """`x` broadcast to `shape` as NumPy does it: dims are matched from the right.

    Raises:
        TypeRuleError: the shapes do not fit.
    """
    missing = len(shape) - x.tensor.rank
    require(missing >= 0, f"{x.type} has more dims than the shape {shape} that it is broadcast to")
    return broadcast(x, shape, tuple(range(missing, len(shape))))


def numpy_shape(*shapes: Shape) -> Shape:
    """The shape that NumPy broadcasts all of `shapes` to.

    Raises:
        TypeRuleError: two dims are neither equal nor 1, or cannot be seen to be.
    """
    result: list[Dim] = [1] * max(map(len, shapes), default=0)
    for shape in shapes:
        for position, dim in enumerate(reversed(shape), start=1):
            known = result[-position]
            if known == 1:
                result[-position] = dim
            elif dim not in (1, known):
                raise TypeRuleError(f"shapes {' and '.join(map(str, shapes))} do not broadcast: {known} and {dim} differ")
    return tuple(result)


def numpy_view(shape: Shape, broadcast_dimensions: tuple[int, ...], operand_shape: Shape) -> Shape | None:
    """The operand's shape with 1s put in so that NumPy broadcasts it to `shape` (leading 1s dropped), for a
    `broadcast_in_dim` whose dimensions rise strictly; None for any other."""
    if list(broadcast_dimensions) != sorted(set(broadcast_dimensions)):
        return None
    view: list[Dim] = [1] * len(shape)
    for axis, dim in zip(broadcast_dimensions, operand_shape, strict=True):
        view[axis] = dim
    first = next((i for i, dim in enumerate(view) if dim != 1), len(view))
    return tuple(view[first:])


def dot(lhs: Term, rhs: Term, **attributes: tuple[int, ...]) -> Term:
    """`stablehlo.dot_general` with its attributes by name; those left out are empty."""
    given: dict[str, Any] = dict(attributes)
    return make("stablehlo.dot_general", (lhs, rhs), given)
