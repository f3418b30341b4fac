"""Movement ops of the hub as torch expressions: mostly views."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from coset.ir.dims import Dim
from coset.ir.term import CONSTANT, Term
from coset.ir.types import DTYPES
from coset.lowering.torch.dims import tuple_text
from coset.lowering.torch.dtypes import held, plain
from coset.lowering.torch.elementwise import converted

if TYPE_CHECKING:
    from coset.lowering.torch.program import Writer

Expression = Callable[["Writer", Term, Sequence[str]], str]


def broadcast_in_dim(writer: Writer, term: Term, x: Sequence[str]) -> str:
    """A view, by NumPy's rules where they do."""
    axes, shape = term.attribute("broadcast_dimensions"), term.tensor.dims
    text = x[0]
    order = sorted(range(len(axes)), key=axes.__getitem__)
    if order != list(range(len(axes))):
        text = f"{text}.permute({tuple_text(order)})"
    kept = sorted(axes)
    if kept != list(range(len(shape) - len(kept), len(shape))):
        first = kept[0]
        text += f"[{', '.join(':' if axis in kept else 'None' for axis in range(first, len(shape)))}]"
    sizes = [term.operands[0].tensor.dims[axis] for axis in order]
    if len(kept) == len(shape) and sizes == list(shape):
        return text
    return f"{text}.expand({writer.shape(shape)})"


def reshape(writer: Writer, term: Term, x: Sequence[str]) -> str:
    """A view where the strides allow it."""
    return f"{x[0]}.reshape({writer.shape(term.tensor.dims)})"


def transpose(_: Writer, term: Term, x: Sequence[str]) -> str:
    """A view."""
    permutation = term.attribute("permutation")
    if permutation == tuple(range(len(permutation))):
        return x[0]
    return f"{x[0]}.T" if permutation == (1, 0) else f"{x[0]}.permute({tuple_text(permutation)})"


def slice_(writer: Writer, term: Term, x: Sequence[str]) -> str:
    """A view."""
    rows = zip(term.operands[0].tensor.dims, *(term.attribute(key) for key in ("start", "limit", "strides")), strict=True)
    parts = [_part(writer, *row) for row in rows]
    while parts and parts[-1] == ":":
        parts.pop()
    return f"{x[0]}[{', '.join(parts)}]" if parts else x[0]


def _part(writer: Writer, dim: Dim, start: Dim, limit: Dim, stride: int) -> str:
    first = "" if start == 0 else writer.dim(start)
    last = "" if limit == dim else writer.dim(limit)
    return f"{first}:{last}" + (f":{stride}" if stride != 1 else "")


def concatenate(_: Writer, term: Term, x: Sequence[str]) -> str:
    """A copy."""
    return f"torch.cat({tuple_text(x)}, dim={term.attribute('dimension')})"


def pad(writer: Writer, term: Term, x: Sequence[str]) -> str:
    """torch's own pad where the value is a number and nothing stands between the elements."""
    low, high, interior = (term.attribute(key) for key in ("low", "high", "interior"))
    value = term.operands[1]
    if not any(interior) and value.op is CONSTANT and term.tensor.dtype.kind == "float":
        number = writer.number(value)
        if number is not None and term.tensor.rank:
            return f"torch.nn.functional.pad({x[0]}, {tuple_text(ends(low, high))}, value={number})"
    return f"pad({x[0]}, {x[1]}, {tuple_text(low)}, {tuple_text(high)}, {tuple_text(interior)})"


def ends(low: Sequence[int], high: Sequence[int]) -> list[int]:
    """The amounts in torch's order: the last dim first; leading dims without any are left out."""
    pairs = list(zip(low, high, strict=True))
    while len(pairs) > 1 and pairs[0] == (0, 0):
        pairs.pop(0)
    return [amount for pair in reversed(pairs) for amount in pair]


def reverse(_: Writer, term: Term, x: Sequence[str]) -> str:
    """A copy."""
    axes = term.attribute("dimensions")
    return f"{x[0]}.flip({tuple_text(axes)})" if axes else x[0]


def iota(writer: Writer, term: Term, _: Sequence[str]) -> str:
    """0, 1, 2 .. as a view that repeats along the other dims."""
    shape, axis, dtype = term.tensor.dims, term.attribute("dimension"), term.tensor.dtype
    count = f"torch.arange({writer.dim(shape[axis])}, device=device)"
    text = converted(count, DTYPES["i64"], plain(dtype))
    text = f"({text})" if " " in text and text[0] != "t" else text
    if len(shape) == 1:
        return text
    places = ", ".join([":", *["None"] * (len(shape) - axis - 1)])
    return f"{text}{f'[{places}]' if axis < len(shape) - 1 else ''}.expand({writer.shape(shape)})"


# ---------------------------------------------------------------- computed indices and shapes


def dynamic_slice(writer: Writer, term: Term, x: Sequence[str]) -> str:
    """Clamped starts that stay on the device."""
    return f"dynamic_slice({x[0]}, {tuple_text(_positions(term, 1, x))}, {writer.shape(term.tensor.dims)})"


def dynamic_update_slice(_: Writer, term: Term, x: Sequence[str]) -> str:
    """A copy with the update in it."""
    return f"dynamic_update_slice({x[0]}, {x[1]}, {tuple_text(_positions(term, 2, x))})"


def _positions(term: Term, first: int, x: Sequence[str]) -> list[str]:
    return [position(operand, text) for operand, text in zip(term.operands[first:], x[first:], strict=True)]


def position(operand: Term, text: str) -> str:
    """Indices as i64; what u64 says beyond it is its largest number, which is out of every range."""
    if operand.tensor.dtype.name == "u64":
        return f"torch.where({text} < 0, {(1 << 63) - 1}, {text})"
    return text if held(operand.tensor.dtype) == "torch.int64" else f"{text}.long()"


GATHERING = ("offset_dims", "collapsed_slice_dims", "operand_batching_dims", "start_indices_batching_dims", "start_index_map")


def gather(writer: Writer, term: Term, x: Sequence[str]) -> str:
    """One indexed read; see the function."""
    sizes = writer.shape(term.attribute("slice_sizes")) if len(x) == 2 else f"tuple({x[2]}.tolist())"
    named = [f"{key}={tuple_text(term.attribute(key))}" for key in GATHERING if term.attribute(key)]
    named.append(f"index_vector_dim={term.attribute('index_vector_dim')}")
    return f"gather({x[0]}, {position(term.operands[1], x[1])}, {sizes}, {', '.join(named)})"


def dynamic_reshape(_: Writer, term: Term, x: Sequence[str]) -> str:
    """A view where the strides allow it."""
    return f"{x[0]}.reshape({x[1]}.tolist())"


def dynamic_broadcast_in_dim(_: Writer, term: Term, x: Sequence[str]) -> str:
    """A view."""
    return f"broadcast({x[0]}, {x[1]}.tolist(), {tuple_text(term.attribute('broadcast_dimensions'))})"


def dynamic_iota(_: Writer, term: Term, x: Sequence[str]) -> str:
    """0, 1, 2 .. along the dim."""
    axis = term.attribute("dimension")
    count = converted(f"torch.arange({x[0]}.tolist()[{axis}], device=device)", DTYPES["i64"], plain(term.tensor.dtype))
    return f"broadcast({count}, {x[0]}.tolist(), ({axis},))"


def dynamic_pad(_: Writer, term: Term, x: Sequence[str]) -> str:
    """`pad` by amounts read from the device."""
    return f"pad({x[0]}, {x[1]}, {', '.join(f'{one}.tolist()' for one in x[2:])})"


def real_dynamic_slice(_: Writer, term: Term, x: Sequence[str]) -> str:
    """A view."""
    bounds = ", ".join(f"{one}.tolist()" for one in x[1:])
    return f"{x[0]}[(..., *map(slice, {bounds}))]"


def get_dimension_size(writer: Writer, term: Term, x: Sequence[str]) -> str:
    """A number of the host, put on the device."""
    return f"torch.full((), {x[0]}.shape[{term.attribute('dimension')}], dtype=torch.int32, device=device)"


def bitcast_convert(_: Writer, term: Term, x: Sequence[str]) -> str:
    """The same bits; a view where torch has both dtypes."""
    old, new = plain(term.operands[0].tensor.dtype), plain(term.tensor.dtype)
    widths = [1 if dtype.kind == "bool" else dtype.bits for dtype in (old, new)]
    return f"bitcast({x[0]}, {old.name!r}, {widths[0]}, {new.name!r}, {widths[1]})"


MOVEMENT: dict[str, Expression] = {f"stablehlo.{f.__name__.rstrip('_')}": f for f in (
    broadcast_in_dim, reshape, transpose, slice_, concatenate, pad, reverse, iota, dynamic_slice, dynamic_update_slice, gather,
    dynamic_reshape, dynamic_broadcast_in_dim, dynamic_iota, dynamic_pad, real_dynamic_slice, get_dimension_size, bitcast_convert,
)}  # fmt: skip
MOVEMENT["stablehlo.dynamic_gather"] = gather
