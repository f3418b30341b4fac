"""Addresses in buffers, how large indices become, and loops joined where no address tells them apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from coset.ir.dims import Atom, Dim, Poly, Shape, add, evaluate, floordiv, mod, multiply, product, substitute, subtract, symbol, symbols
from coset.lowering.kernels.index_arithmetic import joined, linear
from coset.lowering.kernels.kernel import Buffer, Loop


def terms_of(dim: Dim) -> tuple[tuple[tuple[Atom, ...], int], ...]:
    """The (monomial, coefficient) pairs of a dim; those of a number too."""
    return dim.terms if isinstance(dim, Poly) else ((((), dim),) if dim else ())


def strides_of(buffer: Buffer) -> Shape:
    """The strides of a buffer in elements of its memory."""
    if buffer.strides is not None:
        return buffer.strides
    extents = buffer.extents
    order = range(len(extents)) if buffer.order is None else buffer.order
    inside = {axis: product(extents[inner] for inner in order[place + 1 :]) for place, axis in enumerate(order)}
    return tuple(inside[axis] for axis in range(len(extents)))


def address(buffer: Buffer, index: Sequence[Dim]) -> Dim:
    """The offset of an element from the buffer's begin, in elements of its memory, with quotients and remainders of one thing joined."""
    total: Dim = 0
    for axis, (place, stride) in enumerate(zip(index, strides_of(buffer), strict=True)):
        total = add(total, multiply(floordiv(place, buffer.sharing) if axis == buffer.packed else place, stride))
    return joined(total)


def shift(buffer: Buffer, index: Sequence[Dim]) -> Dim:
    """How many bits of its byte are below an element of a packed buffer."""
    assert buffer.packed is not None
    return joined(multiply(mod(index[buffer.packed], buffer.sharing), buffer.dtype.bits))


def places_of(buffer: Buffer, index: Sequence[Dim]) -> list[Dim]:
    """What says where an element is: its address, and of a packed buffer its place in the byte."""
    return [address(buffer, index), *([shift(buffer, index)] if buffer.packed is not None else [])]


def span(buffer: Buffer) -> Dim:
    """One more than the largest offset in a buffer whose dims are 1 or more."""
    total: Dim = 1
    for dim, stride in zip(buffer.extents, strides_of(buffer), strict=True):
        total = add(total, multiply(subtract(dim, 1), stride))
    return total


# ---------------------------------------------------------------- joining loops


def _joins(dim: Dim, outer: str, inner: str, extent: Dim) -> bool:
    """True when `dim` depends on the two loops only through outer * extent + inner."""
    known = symbols(dim)
    if outer not in known and inner not in known:
        return True
    plain: list[tuple[tuple[Atom, ...], int]] = []
    for monomial, coefficient in terms_of(dim):
        inside = [arg for atom in monomial for arg in atom.args if symbols(arg) & {outer, inner}]
        if not inside:
            plain.append((monomial, coefficient))
        elif any(atom.name in (outer, inner) for atom in monomial) or not all(_joins(arg, outer, inner, extent) for arg in inside):
            return False
    rest: Dim = 0
    for term in plain:
        rest = add(rest, Poly((term,)) if term[0] else term[1])
    a, b = linear(rest, outer), linear(rest, inner)
    return a is not None and b is not None and not symbols(b) & {outer, inner} and a == multiply(b, extent)


def join_loops(loops: Sequence[Loop], uses: Iterable[Dim]) -> tuple[tuple[Loop, ...], dict[str, Dim]]:
    """Fewer loops for the same index space in the same order, and what the old indices are over the new ones where they occur in
    `uses` (all dims of the kernel): neighbours that every use sees as one index are one loop, and loops of extent 1 are 0."""
    dims = list(uses)
    binding: dict[str, Dim] = {loop.name: 0 for loop in loops if loop.extent == 1}
    dims = [substitute(dim, binding) for dim in dims]
    left: list[Loop] = []
    for loop in loops:
        if loop.extent == 1:
            continue
        if left and all(_joins(dim, left[-1].name, loop.name, loop.extent) for dim in dims):
            outer = left.pop()
            whole = Loop(loop.name, multiply(outer.extent, loop.extent))
            dims = [substitute(dim, {outer.name: 0}) for dim in dims]  # inner alone stands for outer * extent + inner
            binding[outer.name] = 0
            left.append(whole)
        else:
            left.append(loop)
    return tuple(left), binding


def largest_index(dim: Dim, extents: Mapping[str, Dim]) -> Dim:
    """A dim that no absolute value of `dim`, or of a sum of some of its terms, is above; loops run to their extents."""
    total: Dim = 0
    for monomial, coefficient in terms_of(dim):
        bound: Dim = abs(coefficient)
        for atom in monomial:
            bound = multiply(bound, _largest_atom(atom, extents))
        total = add(total, bound)
    return total


def _largest_atom(atom: Atom, extents: Mapping[str, Dim]) -> Dim:
    if not atom.args:
        return extents.get(atom.name, symbol(atom.name))
    first, second = (largest_index(arg, extents) for arg in atom.args)
    return first if atom.name in ("floordiv", "min") else second if atom.name == "mod" else add(first, second)


def count_of(loops: Iterable[Loop]) -> Dim:
    """How many places loops have together."""
    return product(loop.extent for loop in loops)


def number_of(loops: Iterable[Loop], sizes: Mapping[str, int]) -> int:
    """The same as a number, for these sizes of free dims."""
    return evaluate(count_of(loops), sizes)
