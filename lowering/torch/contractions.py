"""Contractions, reductions and pools of the hub as torch expressions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from coset.dialects.hub.scalars import widen
from coset.dialects.hub.tensors import identity
from coset.ir.errors import CosetError
from coset.ir.term import Term
from coset.ir.types import DType
from coset.lowering.planning.library_attention import BY_ROWS, CALLS
from coset.lowering.planning.scanning import prefix_of
from coset.lowering.torch.dims import tuple_text
from coset.lowering.torch.dtypes import ORDER_OF_U64, narrowed

if TYPE_CHECKING:
    from coset.lowering.torch.program import Writer

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


# ---------------------------------------------------------------- dot products


def dot_general(_: Writer, term: Term, x: Sequence[str]) -> str:
    """matmul where it says the op, else einsum; products of integers and booleans through floats that are exact."""
    dtype = term.operands[0].tensor.dtype
    equation = _equation(term)
    if dtype.kind in ("int", "uint", "bool"):
        return _integer_product(f"einsum({equation!r}, {x[0]}, {x[1]}", dtype)
    (lb, lc), (rb, rc) = ((term.attribute(f"{side}_batch"), term.attribute(f"{side}_contract")) for side in ("lhs", "rhs"))
    left, right, batch = term.operands[0].tensor.rank, term.operands[1].tensor.rank, len(lb)
    if lb == rb == tuple(range(batch)) and len(lc) == 1 and left == batch + 2 if batch else len(lc) == 1 and left >= 1 and not rb:
        a = x[0] if lc == (left - 1,) else f"{x[0]}.mT" if left == batch + 2 and lc == (left - 2,) else None
        b = x[1] if rc == (batch,) else f"{x[1]}.mT" if rc == (batch + 1,) else None
        if a and b and right == batch + 2:
            return narrowed(f"{a} @ {b}", dtype)
    return narrowed(f"torch.einsum({equation!r}, {x[0]}, {x[1]})", dtype)


def linear(_: Writer, term: Term, x: Sequence[str]) -> str:
    """torch's own, whose matrix has a row for each feature."""
    matrix = x[1] if term.op.name == "kernel.linear" else f"{x[1]}.mT"
    return narrowed(f"torch.nn.functional.linear({x[0]}, {matrix}, {x[2]})", term.tensor.dtype)


def library_attention(_: Writer, term: Term, x: Sequence[str]) -> str:
    """torch's own over heads [batch, heads, rows, width]; queries that share their keys are heads beside each other."""
    dims, key = term.operands[0].tensor.dims, term.operands[1].tensor.rank
    shared, alone, rows = len(dims) > key, key == 3, term.op.name == BY_ROWS
    q, k, v = x
    if rows:
        q, k, v = f"{q}.flatten(2, 3)" if shared else q, *(f"{text}.transpose(1, 2)" for text in (k, v))
        q = f"{q}.transpose(1, 2)"
    elif alone:
        q, k, v = q if shared else f"{q}.unsqueeze(1)", f"{k}.unsqueeze(1)", f"{v}.unsqueeze(1)"
    elif shared:
        q = f"{q}.flatten(1, 2)"
    more = ", is_causal=True" * term.attribute("causal") + ", enable_gqa=True" * shared
    text = f"torch.nn.functional.scaled_dot_product_attention({q}, {k}, {v}{more}, scale={term.attribute('scale')!r})"
    if rows:
        return f"{text}.transpose(1, 2)" + (f".unflatten(2, {tuple_text(map(str, dims[2:4]))})" if shared else "")
    if alone:
        return text if shared else f"{text}.squeeze(1)"
    return f"{text}.unflatten(1, {tuple_text(map(str, dims[1:3]))})" if shared else text


def _integer_product(call: str, dtype: DType) -> str:
    bits = 1 if dtype.kind == "bool" else dtype.bits
    return narrowed(call.replace("einsum(", "einsum_of_integers(", 1) + f", {bits})", dtype)


def _equation(term: Term) -> str:
    (lb, lc), (rb, rc) = ((term.attribute(f"{side}_batch"), term.attribute(f"{side}_contract")) for side in ("lhs", "rhs"))
    letters = iter(_LETTERS)
    left = [next(letters) for _ in range(term.operands[0].tensor.rank)]
    right = ["" for _ in range(term.operands[1].tensor.rank)]
    for a, b in zip((*lb, *lc), (*rb, *rc), strict=True):
        right[b] = left[a]
    for axis, letter in enumerate(right):
        right[axis] = letter or next(letters)
    free_left = [left[i] for i in range(len(left)) if i not in lb + lc]
    free_right = [right[i] for i in range(len(right)) if i not in rb + rc]
    return f"{''.join(left)},{''.join(right)}->{''.join([*(left[i] for i in lb), *free_left, *free_right])}"


# ---------------------------------------------------------------- reductions


def identity_text(combiner: str, dtype: DType) -> str:
    """The held element that changes nothing under `combiner`, as a Python number."""
    if combiner in ("add", "or"):
        return "False" if dtype.kind == "bool" else "0"
    if combiner in ("multiply", "and"):
        whole = -1 if dtype.kind == "int" or dtype.bits == 64 else (1 << dtype.bits) - 1
        return "True" if dtype.kind == "bool" else "1" if combiner == "multiply" else str(whole)
    low = combiner == "maximum"
    if dtype.kind == "bool":
        return str(not low)
    if dtype.kind == "uint":  # u64: in the order of the i64 that holds it
        if dtype.bits == 64:
            return ORDER_OF_U64 if low else str((1 << 63) - 1)
        return "0" if low else str((1 << dtype.bits) - 1)
    if dtype.kind == "int":
        return str(-(1 << dtype.bits - 1) if low else (1 << dtype.bits - 1) - 1)
    bound = float(widen(identity(combiner, dtype)))  # of a dtype without infinities its largest number
    return ("-math.inf" if low else "math.inf") if bound in (math.inf, -math.inf) else repr(bound)


def _require_zero(term: Term, dtype: DType) -> None:
    """A sum of nothing is 0, which f8e8m0fnu does not have."""
    if dtype.name == "f8e8m0fnu" and term.attribute("combiner") == "add":
        raise CosetError(f"`{term.op.name}` of sums of {dtype} has no torch expression")


def reduce(writer: Writer, term: Term, x: Sequence[str]) -> str:
    """torch's reductions; sums of floats below 32 bits are kept in f32 by torch."""
    operand, axes, combiner = term.operands[0].tensor, term.attribute("dimensions"), term.attribute("combiner")
    dtype = operand.dtype
    _require_zero(term, dtype)
    if not axes:
        return x[0]
    dims = tuple_text(axes)
    if dtype.kind == "bool":
        return f"{x[0]}.{'all' if combiner in ('multiply', 'and', 'minimum') else 'any'}(dim={dims})"
    if combiner == "add":
        wide = f", dtype={x[0]}.dtype" if dtype.kind in ("int", "uint") else ""
        return narrowed(f"{x[0]}.sum(dim={dims}{wide})", dtype)
    if combiner in ("maximum", "minimum") and dtype.kind != "complex":
        ordered = f"({x[0]} ^ {ORDER_OF_U64})" if dtype.name == "u64" else x[0]
        if all(isinstance(operand.dims[axis], int) and operand.dims[axis] != 0 for axis in axes):
            text = f"{ordered}.{'amax' if combiner == 'maximum' else 'amin'}(dim={dims})"
        else:
            text = f"extreme_of({ordered}, {dims}, {combiner!r}, {identity_text(combiner, dtype)})"
        return narrowed(f"{text} ^ {ORDER_OF_U64}" if dtype.name == "u64" else text, dtype)
    start = "complex(-math.inf, -math.inf)" if combiner == "maximum" else "complex(math.inf, math.inf)"
    start = start if dtype.kind == "complex" and combiner in ("maximum", "minimum") else identity_text(combiner, dtype)
    return narrowed(f"fold({x[0]}, {dims}, {combiner!r}, {start})", dtype)


def _is_max_pool(term: Term) -> bool:
    """True for a reduction over windows that torch has as a pool."""
    window, strides, spread, dilation, padding = (
        term.attribute(key) for key in ("window_dimensions", "window_strides", "base_dilations", "window_dilations", "padding")
    )
    rank, dtype = term.tensor.rank, term.tensor.dtype
    outer = rank >= 3 and all(tuple(row[:2]) == plain for row, plain in (
        (window, (1, 1)), (strides, (1, 1)), (dilation, (1, 1)), (padding, ((0, 0), (0, 0))),
    ))  # fmt: skip
    filled = all(isinstance(dim, int) and dim > 0 for dim in (*term.operands[0].tensor.dims[1:], *term.tensor.dims[1:]))
    even = all(low == high and 0 <= low <= size // 2 for (low, high), size in zip(padding, window, strict=True))
    plain = outer and filled and even and 3 <= rank <= 5 and set(spread) == {1}
    return plain and dtype.kind == "float" and term.attribute("combiner") == "maximum"


def is_pool(term: Term) -> bool:
    """True for a pool of pictures, which torch does in the order in which they lie in memory."""
    return term.op.name == "stablehlo.reduce_window" and term.tensor.rank == 4 and _is_max_pool(term)


def reduce_window(writer: Writer, term: Term, x: Sequence[str]) -> str:
    """torch's pools where they say the op; see the function for the rest."""
    dtype, combiner, rank = term.tensor.dtype, term.attribute("combiner"), term.tensor.rank
    window, strides, spread, dilation = (
        term.attribute(key) for key in ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
    )
    padding = term.attribute("padding")
    _require_zero(term, dtype)
    if _is_max_pool(term):
        named = [("stride", strides[2:], None), ("padding", tuple(low for low, _ in padding[2:]), 0), ("dilation", dilation[2:], 1)]
        text = "".join(f", {key}={tuple_text(value)}" for key, value, plain in named if set(value) != {plain})
        return f"torch.nn.functional.max_pool{rank - 2}d({x[0]}, {tuple_text(window[2:])}{text})"
    prefix = prefix_of(term)
    if prefix is not None and not prefix.shift and dtype.kind != "uint":
        turned = f".flip({prefix.axis})" if prefix.backward else ""
        wide = f"{x[0]}.float()" if dtype.kind == "float" and dtype.bits < 32 else x[0]
        return narrowed(f"scanned({wide}{turned}, {prefix.axis}, {combiner!r}){turned}", dtype)
    start = identity_text(combiner, dtype)
    ordered = f"({x[0]} ^ {ORDER_OF_U64})" if dtype.name == "u64" and combiner in ("maximum", "minimum") else x[0]
    pairs = tuple_text(tuple_text(pair) for pair in padding)
    text = (
        f"reduce_window({ordered}, {combiner!r}, {start}, {tuple_text(window)}, {tuple_text(strides)}, {tuple_text(spread)}, "
        f"{tuple_text(dilation)}, {pairs})"
    )
    return narrowed(f"{text} ^ {ORDER_OF_U64}" if ordered != x[0] else text, dtype)


CONTRACTIONS = {
    "kernel.linear": linear, "kernel.dense": linear, **dict.fromkeys(CALLS, library_attention), "stablehlo.dot_general": dot_general,
    "stablehlo.reduce": reduce, "stablehlo.reduce_window": reduce_window,
}  # fmt: skip
