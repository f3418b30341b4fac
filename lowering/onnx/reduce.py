"""Reductions, contractions and convolutions as ONNX calls."""

from __future__ import annotations

from coset.dialects.hub.terms import numpy_shape
from coset.ir import dims
from coset.ir.dims import Dim, Shape
from coset.ir.errors import TypeRuleError
from coset.ir.term import Term
from coset.ir.types import DTYPES
from coset.lowering.onnx.calls import Input, NodeCall, NoOnnxForm, PrintContext, Printer, squeeze
from coset.lowering.onnx.movement import reshaped, transposed, view
from coset.lowering.onnx.reduce_call import NAMED, kept_reduction, reduced_axes

_MATMUL = frozenset(DTYPES[name] for name in ("f16", "f32", "f64"))
_EIGHT_BITS = frozenset((DTYPES["i8"], DTYPES["u8"]))
_INTEGER_MATMUL = frozenset(DTYPES[name] for name in ("i32", "i64", "u32", "u64"))


def print_reduction(term: Term, context: PrintContext) -> Input:
    """A reduction; where a user wants its dims kept, that one is printed and this is a squeeze of it."""
    axes = reduced_axes(term)
    if not axes:
        return term.operands[0]
    if term in context.kept:
        return squeeze(kept_reduction(term, context), axes, context)
    return kept_reduction(term, context, keepdims=0)


# ---------------------------------------------------------------- contractions


def print_dot(term: Term, context: PrintContext) -> Input:
    """MatMul, with the transposes that it needs; reshapes around it where several dims are free or contracted."""
    lhs, rhs = term.operands
    lhs_batch, rhs_batch, lhs_contract, rhs_contract = (
        tuple(term.attribute(name)) for name in ("lhs_batch", "rhs_batch", "lhs_contract", "rhs_contract")
    )
    since = _matmul_since(term)
    lhs_free = _rest(lhs.tensor.rank, lhs_batch, lhs_contract)
    rhs_free = _rest(rhs.tensor.rank, rhs_batch, rhs_contract)
    left_order, right_order = (*lhs_batch, *lhs_free, *lhs_contract), (*rhs_batch, *rhs_contract, *rhs_free)
    one = len(lhs_contract) == 1
    if one and not lhs_batch and len(rhs_free) <= 1:
        return NodeCall("MatMul", (transposed(lhs, left_order), transposed(rhs, right_order)), since=since)
    if one and lhs_batch and len(lhs_free) == 1 and len(rhs_free) == 1:
        left, right = _batched(lhs, left_order), _batched(rhs, right_order)
        try:
            fits = numpy_shape(left[1][:-2], right[1][:-2]) == term.tensor.dims[: len(lhs_batch)]
        except TypeRuleError:
            fits = False
        if fits:
            return NodeCall("MatMul", (left[0], right[0]), since=since)
        return NodeCall("MatMul", (transposed(lhs, left_order), transposed(rhs, right_order)), since=since)
    if one and lhs_batch and not lhs_free and len(rhs_free) == 1:
        row, shape = view(lhs, None)
        if len(shape) == 1:  # one row for all matrices of the batch
            return NodeCall("MatMul", (row, _batched(rhs, right_order)[0]), since=since)
    return _general(term, context, (lhs_batch, lhs_free, lhs_contract), (rhs_batch, rhs_contract, rhs_free), since)


def _matmul_since(term: Term) -> int:
    dtype = term.tensor.dtype
    if dtype not in _MATMUL | _INTEGER_MATMUL:
        raise NoOnnxForm(f"MatMul takes no {dtype} elements")
    return 9 if dtype in _INTEGER_MATMUL else 1


def _rest(rank: int, *axes: tuple[int, ...]) -> tuple[int, ...]:
    taken = {axis for group in axes for axis in group}
    return tuple(axis for axis in range(rank) if axis not in taken)


def _batched(x: Term, order: tuple[int, ...]) -> tuple[Input, Shape]:
    """An operand of a batched MatMul, which broadcasts batch dims itself, and its shape."""
    if order == tuple(range(x.tensor.rank)):
        source, shape = view(x, None)
        if len(shape) >= 2 and shape[-2:] == x.tensor.dims[-2:]:
            return source, shape
    return transposed(x, order), tuple(x.tensor.dims[axis] for axis in order)


Groups = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def _general(term: Term, context: PrintContext, left: Groups, right: Groups, since: int) -> Input:
    lhs, rhs = term.operands
    count = len(left[0])
    a = _as_matrices(lhs, left, count, context)
    b = _as_matrices(rhs, right, count, context)
    product = NodeCall("MatMul", (a, b), since=since)
    batch = tuple(lhs.tensor.dims[axis] for axis in left[0])
    rows, columns = _size(lhs, left[1]), _size(rhs, right[2])
    return reshaped(product, (*batch, rows, columns), term.tensor.dims, context)


def _as_matrices(x: Term, groups: Groups, count: int, context: PrintContext) -> Input:
    """`x` transposed to its groups of dims, all but the batch flattened to two."""
    order = (*groups[0], *groups[1], *groups[2])
    shape = tuple(x.tensor.dims[axis] for axis in order)
    moved = transposed(x, order)
    return reshaped(moved, shape, (*shape[:count], _size(x, groups[1]), _size(x, groups[2])), context)


def _size(x: Term, axes: tuple[int, ...]) -> Dim:
    return dims.product(x.tensor.dims[axis] for axis in axes)


def print_convolution(term: Term, _: PrintContext) -> Input:
    """Conv; it dilates no input and groups no batch."""
    if term.tensor.dtype not in _MATMUL:
        raise NoOnnxForm(f"Conv takes no {term.tensor.dtype} elements")
    if term.attribute("batch_group_count") != 1 or any(d != 1 for d in term.attribute("lhs_dilation")):
        raise NoOnnxForm("Conv has no input dilation and no batch groups")
    return convolution_call(term, term.attribute("rhs_dilation"), term.attribute("feature_group_count"))


def convolution_call(term: Term, dilations: tuple[int, ...], group: int) -> NodeCall:
    """Conv of the operands of `term`."""
    window = term.operands[1].tensor.static
    padding = term.attribute("padding")
    if window is None:
        raise NoOnnxForm("Conv needs a filter of static shape")
    if any(low < 0 or high < 0 for low, high in padding):
        raise NoOnnxForm("Conv takes no negative padding")
    attributes = {
        "strides": tuple(term.attribute("strides")), "dilations": tuple(dilations), "group": group, "kernel_shape": window[2:],
        "pads": (*(low for low, _ in padding), *(high for _, high in padding)),
    }  # fmt: skip
    if not window[2:] or 0 in (*window[2:], *term.tensor.dims[2:]):
        raise NoOnnxForm("Conv needs a spatial dim, and a window that fits")
    return NodeCall("Conv", given(term), attributes)


def given(term: Term) -> tuple[Input, ...]:
    """The operands; None where one is absent."""
    return tuple(None if operand.op.name == "builtin.absent" else operand for operand in term.operands)


def print_transposed_convolution(term: Term, _: PrintContext) -> Input:
    """ConvTranspose: its pads are what the padding of the convolution lacks of the reach of a filter, output padding what is beyond it."""
    window, strides, dilations = term.operands[1].tensor.static, term.attribute("strides"), term.attribute("dilations")
    if term.tensor.dtype not in _MATMUL:
        raise NoOnnxForm(f"ConvTranspose takes no {term.tensor.dtype} elements")
    if window is None or not window[2:]:
        raise NoOnnxForm("ConvTranspose needs a filter of static shape, with a spatial dim")
    reaches = [(width - 1) * dilation for width, dilation in zip(window[2:], dilations, strict=True)]
    padding = term.attribute("padding")
    more = [max(0, high - reach) for reach, (_, high) in zip(reaches, padding, strict=True)]
    if any(low > reach for reach, (low, _) in zip(reaches, padding, strict=True)):
        raise NoOnnxForm("ConvTranspose takes no negative padding")
    if any(each >= max(stride, dilation) for each, stride, dilation in zip(more, strides, dilations, strict=True)):
        raise NoOnnxForm("ConvTranspose takes no output padding as large as its stride and dilation")
    ends = [reach + each - high for reach, each, (_, high) in zip(reaches, more, padding, strict=True)]
    attributes = {
        "strides": tuple(strides), "dilations": tuple(dilations), "group": term.attribute("group"), "kernel_shape": window[2:],
        "pads": (*(reach - low for reach, (low, _) in zip(reaches, padding, strict=True)), *ends),
    } | ({"output_padding": tuple(more)} if any(more) else {})  # fmt: skip
    return NodeCall("ConvTranspose", given(term), attributes)


def print_pool(term: Term, _: PrintContext) -> Input:
    """MaxPool, or AveragePool that counts all of its padding or none."""
    name = term.op.name.removeprefix("onnx.")
    window, dilations = term.attribute("window"), term.attribute("dilations")
    around = [term.attribute(key) for key in (("padding",) if name == "MaxPool" else ("counted", "uncounted"))]
    used = [padding for padding in around if any(any(pair) for pair in padding)]
    eight_bits = name == "MaxPool" and term.tensor.dtype in _EIGHT_BITS
    if term.tensor.dtype not in _MATMUL and not eight_bits:
        raise NoOnnxForm(f"{name} takes no {term.tensor.dtype} elements")
    if len(used) > 1:
        raise NoOnnxForm("AveragePool counts all of its padding or none")
    if not all(isinstance(width, int) and width > 0 for width in window):
        raise NoOnnxForm(f"{name} needs windows of known size")
    padding = used[0] if used else ((0, 0),) * len(window)
    if any(not 0 <= each < width for width, pair in zip(window, padding, strict=True) for each in pair):
        raise NoOnnxForm(f"{name} takes no padding as wide as its window")
    dilated = any(dilation != 1 for dilation in dilations)
    attributes = {
        "kernel_shape": tuple(window), "strides": tuple(term.attribute("strides")),
        "pads": (*(low for low, _ in padding), *(high for _, high in padding)),
    } | ({"dilations": tuple(dilations)} if dilated else {})  # fmt: skip
    if name == "MaxPool":
        return NodeCall(name, term.operands, attributes, since=12 if eight_bits else 10 if dilated else 1)
    counted = {"count_include_pad": 1} if used and used[0] is around[0] else {}
    return NodeCall(name, term.operands, attributes | counted, since=19 if dilated else 7)


PRINTERS: dict[str, Printer] = {
    "stablehlo.reduce": print_reduction,
    **dict.fromkeys(NAMED, print_reduction),
    "stablehlo.dot_general": print_dot,
    "stablehlo.convolution": print_convolution,
    "onnx.ConvTranspose": print_transposed_convolution,
    **dict.fromkeys(("onnx.MaxPool", "onnx.AveragePool"), print_pool),
    "onnx.Conv": lambda term, _: convolution_call(term, term.attribute("dilations"), term.attribute("group")),
}
