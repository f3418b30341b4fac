"""Convolutions and their gradients as torch expressions: cuDNN's kernels where torch says the op, else functions around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from coset.ir.errors import CosetError
from coset.ir.term import Term
from coset.lowering.torch.dims import tuple_text
from coset.lowering.torch.dtypes import narrowed
from coset.lowering.torch.movement import ends

if TYPE_CHECKING:
    from coset.lowering.torch.program import Writer


LAID_OUT = ("f16", "bf16", "f32")


def _said(named: Sequence[tuple[str, Sequence[int], int]], groups: int) -> str:
    """Keywords of a call: those that are not what they are by default, and the groups where there are several."""
    text = "".join(f", {key}={tuple_text(value)}" for key, value, plain in named if set(value) != {plain})
    return text + (f", groups={groups}" if groups != 1 else "")


def _is_torchs(term: Term) -> bool:
    """True for a convolution that torch says, perhaps of what is padded before."""
    if term.op.name != "stablehlo.convolution":
        return False
    lhs, rhs = (operand.tensor for operand in term.operands[:2])
    filled = all(isinstance(dim, int) and dim > 0 for dim in (*lhs.dims[1:], *rhs.dims, *term.tensor.dims[1:]))
    plain = term.attribute("batch_group_count") == 1 and set(term.attribute("lhs_dilation")) == {1}
    return plain and 3 <= lhs.rank <= 5 and filled and lhs.dtype.kind == "float"


def is_laid_out(term: Term) -> bool:
    """True for a convolution, or a gradient of one, that torch does with features last where its operands lie so: not in f64 (cuDNN has no
    such kernels), and gradients not over one dim of space, where torch lays out operands anew."""
    if term.op.name in ("kernel.transposed_convolution", "kernel.filter_gradient"):
        return term.tensor.rank >= 4 and term.tensor.dtype.name in LAID_OUT
    return _is_torchs(term) and term.tensor.dtype.name in LAID_OUT


def with_features_last(writer: Writer, term: Term, x: Sequence[str], laid: Sequence[bool]) -> str:
    """A convolution of `is_laid_out` run with features last, as its result lies then: torch runs it so where its first operand lies so,
    which is turned where it is not yet `laid`. Over one dim of space it is one of pictures of height 1, since torch turns other operands
    back."""
    last = (0, *range(2, term.operands[0].tensor.rank), 1)
    first = x[0] if laid[0] else in_order(x[0], last)
    if term.op.name != "stablehlo.convolution":
        return CONVOLUTIONS[term.op.name](writer, term, (first, *x[1:]))
    return _convolution(term, (first, *x[1:]), raised=term.tensor.rank == 3)


def in_order(text: str, order: Sequence[int]) -> str:
    """A tensor whose dims lie in this order in memory: itself where they do."""
    inverse = tuple(order.index(axis) for axis in range(len(order)))
    return f"{text}.permute({tuple_text(order)}).contiguous().permute({tuple_text(inverse)})"


def convolution(writer: Writer, term: Term, x: Sequence[str]) -> str:
    """cuDNN's convolution through torch where it says the op; see the function for the rest."""
    lhs = term.operands[0].tensor
    spatial, dtype = lhs.rank - 2, lhs.dtype
    if spatial > 3 and dtype.kind in ("float", "complex"):
        raise CosetError(f"`{term.op.name}` over {spatial} spatial dims has no torch expression", help="torch has 1 to 3")
    dynamic = len(x) == 3
    if not dynamic and _is_torchs(term):
        return _convolution(term, x)
    strides, spread, dilation = (term.attribute(key) for key in ("strides", "lhs_dilation", "rhs_dilation"))
    groups, batches = term.attribute("feature_group_count"), term.attribute("batch_group_count")
    amounts = f"{x[2]}.tolist()" if dynamic else tuple_text(tuple_text(pair) for pair in term.attribute("padding"))
    text = f"strides={tuple_text(strides)}, padding={amounts}, lhs_dilation={tuple_text(spread)}, rhs_dilation={tuple_text(dilation)}"
    bits = {"float": 0, "complex": 0, "bool": 1}.get(dtype.kind, dtype.bits)
    return narrowed(f"convolution({x[0]}, {x[1]}, {text}, groups={groups}, batch_groups={batches}, bits={bits})", dtype)


def _convolution(term: Term, x: Sequence[str], *, raised: bool = False) -> str:
    """torch's convolution; `raised`: with one more dim of space, of size 1."""
    first, filters = (f"{one}[:, :, None]" if raised else one for one in x[:2])
    padding = ((0, 0),) * raised + tuple(term.attribute("padding"))
    strides, dilation = ((1,) * raised + tuple(term.attribute(key)) for key in ("strides", "rhs_dilation"))
    named = [("stride", strides, 1), ("dilation", dilation, 1)]
    if all(low == high >= 0 for low, high in padding):
        named.insert(1, ("padding", tuple(low for low, _ in padding), 0))
    else:
        first = f"torch.nn.functional.pad({first}, {tuple_text(ends(*zip(*padding, strict=True)))})"
    said = _said(named, term.attribute("feature_group_count"))
    text = narrowed(f"torch.nn.functional.conv{len(padding)}d({first}, {filters}{said})", term.operands[0].tensor.dtype)
    return f"{text}[:, :, 0]" if raised else text


def transposed_convolution(writer: Writer, term: Term, x: Sequence[str]) -> str:
    """torch's transposed convolution, whose padding is what is cut off of the whole result; see the function for other sizes."""
    w = term.operands[1].tensor
    strides, padding, dilations, groups = (term.attribute(key) for key in ("strides", "padding", "dilations", "group"))
    assert w.static is not None
    reaches = [(size - 1) * dilation for size, dilation in zip(w.static[2:], dilations, strict=True)]
    cuts = [reach - low for reach, (low, _) in zip(reaches, padding, strict=True)]
    more = [high - low for low, high in padding]
    usual = all(isinstance(dim, int) for dim in term.tensor.dims[2:]) and all(cut >= 0 for cut in cuts)
    usual = usual and all(0 <= rest < max(s, d) for rest, s, d in zip(more, strides, dilations, strict=True))
    named = [("stride", strides, 1), ("padding", cuts, 0), ("output_padding", more, 0), ("dilation", dilations, 1)]
    if usual:
        return f"torch.nn.functional.conv_transpose{w.rank - 2}d({x[0]}, {x[1]}{_said(named, groups)})"
    pairs = tuple_text(tuple_text(pair) for pair in padding)
    return f"transposed_convolution({x[0]}, {x[1]}, {pairs}{_said([named[0], named[-1]], groups)})"


def filter_gradient(writer: Writer, term: Term, x: Sequence[str]) -> str:
    """torch's backward pass of a convolution, the filters' part alone."""
    strides, padding, dilations = (term.attribute(key) for key in ("strides", "padding", "dilations"))
    named = [("strides", tuple_text(strides)), ("padding", tuple_text(tuple_text(pair) for pair in padding)),
             ("dilations", tuple_text(dilations)), ("groups", str(term.attribute("group")))]  # fmt: skip
    text = "".join(f", {key}={value}" for key, value in named)
    return f"filter_gradient({x[0]}, {x[1]}, {writer.shape(term.tensor.dims)}{text})"


CONVOLUTIONS = {
    "stablehlo.convolution": convolution, "stablehlo.dynamic_conv": convolution,
    "kernel.transposed_convolution": transposed_convolution, "kernel.filter_gradient": filter_gradient,
}  # fmt: skip
