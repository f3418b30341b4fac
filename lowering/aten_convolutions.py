"""Convolutions and their gradients as torch expressions: cuDNN's kernels where torch says the op, else functions around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from coset.ir.errors import CosetError
from coset.ir.term import Term
from coset.lowering.aten_dims import tuple_text
from coset.lowering.aten_dtypes import narrowed
from coset.lowering.aten_movement import ends

if TYPE_CHECKING:
    from coset.lowering.aten import Writer


def _said(named: Sequence[tuple[str, Sequence[int], int]], groups: int) -> str:
    """Keywords of a call: those that are not what they are by default, and the groups where there are several."""
    text = "".join(f", {key}={tuple_text(value)}" for key, value, plain in named if set(value) != {plain})
    return text + (f", groups={groups}" if groups != 1 else "")


def convolution(writer: Writer, term: Term, x: Sequence[str]) -> str:
    """cuDNN's convolution through torch where it says the op; see the function for the rest."""
    lhs, rhs = (operand.tensor for operand in term.operands[:2])
    spatial, dtype = lhs.rank - 2, lhs.dtype
    if spatial > 3 and dtype.kind in ("float", "complex"):
        raise CosetError(f"`{term.op.name}` over {spatial} spatial dims has no torch expression", help="torch has 1 to 3")
    dynamic = len(x) == 3
    padding: Sequence[tuple[int, int]] = () if dynamic else term.attribute("padding")
    strides, spread, dilation = (term.attribute(key) for key in ("strides", "lhs_dilation", "rhs_dilation"))
    groups, batches = term.attribute("feature_group_count"), term.attribute("batch_group_count")
    filled = all(isinstance(dim, int) and dim > 0 for dim in (*lhs.dims[1:], *rhs.dims, *term.tensor.dims[1:]))
    usual = not dynamic and 1 <= spatial <= 3 and batches == 1 and filled and set(spread) == {1} and dtype.kind == "float"
    if usual and all(low == high >= 0 for low, high in padding):
        named = [("stride", strides, 1), ("padding", tuple(low for low, _ in padding), 0), ("dilation", dilation, 1)]
        return narrowed(f"torch.nn.functional.conv{spatial}d({x[0]}, {x[1]}{_said(named, groups)})", dtype)
    if usual:
        first = f"torch.nn.functional.pad({x[0]}, {tuple_text(ends(*zip(*padding, strict=True)))})"
        named = [("stride", strides, 1), ("dilation", dilation, 1)]
        return narrowed(f"torch.nn.functional.conv{spatial}d({first}, {x[1]}{_said(named, groups)})", dtype)
    amounts = f"{x[2]}.tolist()" if dynamic else tuple_text(tuple_text(pair) for pair in padding)
    text = f"strides={tuple_text(strides)}, padding={amounts}, lhs_dilation={tuple_text(spread)}, rhs_dilation={tuple_text(dilation)}"
    bits = {"float": 0, "complex": 0, "bool": 1}.get(dtype.kind, dtype.bits)
    return narrowed(f"convolution({x[0]}, {x[1]}, {text}, groups={groups}, batch_groups={batches}, bits={bits})", dtype)


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
