"""Contractions that are no matrix product: with nothing to contract they are a multiplication, with one row or one column, or in integers
that no matrix unit takes, a sum along rows. And gathers and slices at indices that are known."""

from __future__ import annotations

import numpy as np

from coset.dialects.hub.terms import broadcast, convert, is_splat, literal, reshape
from coset.ir.builtin import DIMS
from coset.ir.dims import Dim, add
from coset.ir.op import Array
from coset.ir.term import CONSTANT, Term, constant, intern, make
from coset.ir.types import F32, TensorType
from coset.lowering.planning.kinds import is_light, is_plain, is_product

FOLDED = 64  # elements of a result that is computed here from constants


def of_matrices(term: Term) -> Term | None:
    """As `dot`, but a product with one row or column stays what it is: the search may find an attention of one query in it, or another
    order of products, and the plan opens it."""
    return None if is_product(term) and not _is_shallow(term) else dot(term)


def _is_shallow(term: Term) -> bool:
    """True where nothing is summed."""
    return all(term.operands[0].tensor.dims[axis] == 1 for axis in term.attribute("lhs_contract"))


def dot(term: Term) -> Term | None:
    """The contraction as elementwise ops and a reduction, or None where it is a matrix product (or has complex elements)."""
    lhs, rhs = term.operands
    if not all(is_plain(side.tensor) for side in term.operands):
        return None
    taken = [(*term.attribute(f"{side}_batch"), *term.attribute(f"{side}_contract")) for side in ("lhs", "rhs")]
    free = [[axis for axis in range(side.tensor.rank) if axis not in own] for side, own in zip(term.operands, taken, strict=True)]
    depth = tuple(lhs.tensor.dims[axis] for axis in term.attribute("lhs_contract"))
    thin = any(all(side.tensor.dims[axis] == 1 for axis in own) for side, own in zip(term.operands, free, strict=True))
    if is_product(term) and not thin and not _is_shallow(term):
        return None
    shape: tuple[Dim, ...] = (*term.tensor.dims, *depth)
    rank, batch = term.tensor.rank, len(term.attribute("lhs_batch"))
    left: dict[int, int] = {}
    right: dict[int, int] = {}
    for places, side in ((left, "lhs"), (right, "rhs")):
        places |= {axis: place for place, axis in enumerate(term.attribute(f"{side}_batch"))}
        places |= {axis: rank + place for place, axis in enumerate(term.attribute(f"{side}_contract"))}
    left |= {axis: batch + place for place, axis in enumerate(free[0])}
    right |= {axis: batch + len(free[0]) + place for place, axis in enumerate(free[1])}
    dtype = term.tensor.dtype
    wide = F32 if dtype.kind == "float" and dtype.bits < 32 else dtype
    sides = [broadcast(convert(x, wide), shape, tuple(at[axis] for axis in range(x.tensor.rank))) for x, at in ((lhs, left), (rhs, right))]
    product = make("stablehlo.multiply", sides)
    if not depth:
        return convert(product, dtype)
    summed = make(
        "stablehlo.reduce", (product,), {"dimensions": tuple(range(rank, len(shape))), "combiner": "or" if dtype.kind == "bool" else "add"}
    )
    return convert(summed, dtype)


def reduction(term: Term) -> Term | None:
    """A reduction over dims of size 1 alone is a reshape."""
    operand = term.operands[0]
    if all(operand.tensor.dims[axis] == 1 for axis in term.attribute("dimensions")):
        return reshape(operand, term.tensor.dims)
    return None


# ---------------------------------------------------------------- what is known before anything runs


def known(term: Term) -> Term | None:
    """A light term of small constants, or of equal elements, computed; None for any other."""
    if not is_light(term) or not term.operands or term.op.meaning is None or term.regions:
        return None
    cores = [is_splat(operand) for operand in term.operands]
    if term.op.has("elementwise") and term.tensor.rank and all(core is not None for core in cores):
        one = intern(term.op, term.operands, term.attributes, (), TensorType(term.tensor.dtype, ()))
        value = one.op.meaning(one, [core.array() for core in cores if core is not None], {}) if one.op.meaning else None
        return broadcast(constant(value, term.tensor.dtype), term.tensor.dims, ())
    shape = term.tensor.static
    if shape is None or term.op.name == "stablehlo.broadcast_in_dim" or not all(_is_small(operand) for operand in term.operands):
        return None
    return literal(term.op.meaning(term, [_elements(operand) for operand in term.operands], {}), term.tensor.dtype)


def _is_small(term: Term) -> bool:
    shape = term.tensor.static
    count = 1
    for dim in shape or ():
        count *= dim
    constant = (
        term.op is CONSTANT or is_splat(term) is not None or (term.op is DIMS and all(isinstance(d, int) for d in term.attribute("dims")))
    )
    return shape is not None and count <= FOLDED and constant


def _elements(term: Term) -> Array:
    if term.op is DIMS:
        return np.array(term.attribute("dims"), term.tensor.dtype.numpy).reshape(term.tensor.static)
    core = is_splat(term)
    whole = term.attribute("value").array() if core is None else core.array()
    return np.broadcast_to(whole, term.tensor.static or ())


def _clamped(starts: list[int], operand: TensorType, sizes: tuple[Dim, ...]) -> list[int] | None:
    """The starts moved inside, as the ops do; None where a dim is no number."""
    found = []
    for start, dim, size in zip(starts, operand.dims, sizes, strict=True):
        if not isinstance(dim, int) or not isinstance(size, int):
            if start or dim != size:
                return None
            found.append(0)
            continue
        found.append(min(max(start, 0), dim - size))
    return found


def _sliced(operand: Term, starts: list[int], sizes: tuple[Dim, ...]) -> Term | None:
    inside = _clamped(starts, operand.tensor, sizes)
    if inside is None:
        return None
    limit = tuple(add(start, size) for start, size in zip(inside, sizes, strict=True))
    return make("stablehlo.slice", (operand,), {"start": tuple(inside), "limit": limit, "strides": (1,) * len(inside)})


def gather(term: Term) -> Term | None:
    """A gather of one slice at known indices is a slice."""
    operand, indices = term.operands
    if not _is_small(indices) or term.attribute("operand_batching_dims"):
        return None
    places = _elements(indices).reshape(-1)
    axes = term.attribute("start_index_map")
    if len(places) != len(axes):
        return None
    starts = [0] * operand.tensor.rank
    for axis, place in zip(axes, places, strict=True):
        starts[axis] = int(place)
    found = _sliced(operand, starts, term.attribute("slice_sizes"))
    return None if found is None else reshape(found, term.tensor.dims)


def dynamic_slice(term: Term) -> Term | None:
    """A dynamic slice at known indices is a slice."""
    operand, *indices = term.operands
    if not all(map(_is_small, indices)):
        return None
    return _sliced(operand, [int(_elements(index)) for index in indices], term.attribute("slice_sizes"))
