"""ATen's reductions, scans, orders and softmax as hub terms. 16-bit floats are added up in f32, as torch does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coset.dialects.aten.movement import sliced
from coset.dialects.aten.node import AtenNode, Built, aten, axes_of, axis_of, convert, given_as, wide, widened
from coset.dialects.hub import stablehlo_regions
from coset.dialects.hub.terms import broadcast, reshape
from coset.dialects.onnx import ops as onnx_ops
from coset.dialects.onnx.arithmetic import counted, divide, fold, iota, maximum, multiply, subtract, truth
from coset.dialects.onnx.selection import ordered
from coset.ir import dims
from coset.ir.dims import Dim
from coset.ir.term import Term, make
from coset.ir.types import U8, DType

PRIMITIVES = (onnx_ops, stablehlo_regions)  # their ops are made here


def _reduced(node: AtenNode, x: Term, axes: Any, combiner: str) -> Term:
    """`x` folded over `axes` (all where None), in the shape that torch says."""
    found = axes_of(axes, x.tensor.rank)
    return reshape(fold(x, found, combiner, keep=False) if x.tensor.rank else x, node.shape)


def _axes(node: AtenNode) -> Any:
    return node.arguments.get("dim")


@aten("sum.dim_IntList")
def _sum(node: AtenNode) -> Built:
    x = convert(node.term("self"), node.dtype)
    working = convert(x, wide(node.dtype))
    return convert(_reduced(node, working, _axes(node), "add"), node.dtype)


@aten("mean.dim", "mean.default")
def _mean(node: AtenNode) -> Built:
    x = node.term("self")
    axes = axes_of(_axes(node), x.tensor.rank)
    working = convert(convert(x, node.dtype), wide(node.dtype))
    mean = make("onnx.ReduceMean", (working,), {"dimensions": axes}) if x.tensor.rank else working
    return convert(reshape(mean, node.shape), node.dtype)


@aten("var.correction")
def _var(node: AtenNode) -> Built:
    """The sum of the squares of the differences from the mean, over the count less `correction` (1 where it is not given)."""
    return _variance(node)[0]


@aten("var_mean.correction")
def _var_mean(node: AtenNode) -> Built:
    return _variance(node)


def about_mean(x: Term, axes: Sequence[int]) -> tuple[Term, Term]:
    """The mean over `axes`, and the squares of the differences from it."""
    mean = make("onnx.ReduceMean", (x,), {"dimensions": tuple(axes)})
    centered = subtract(x, broadcast(mean, x.tensor.dims, tuple(axis for axis in range(x.tensor.rank) if axis not in axes)))
    return mean, multiply(centered, centered)


def _variance(node: AtenNode) -> tuple[Term, Term]:
    x = convert(node.term("self"), wide(node.dtype))
    axes = axes_of(_axes(node), x.tensor.rank)
    mean, squares = about_mean(x, axes)
    correction = 1 if node["correction"] is None else node["correction"]
    count: Dim = dims.product(x.tensor.dims[axis] for axis in axes)
    if correction == 0:
        variance = make("onnx.ReduceMean", (squares,), {"dimensions": axes})
    else:
        total = make("stablehlo.reduce", (squares,), {"dimensions": axes, "combiner": "add"})
        if isinstance(count, int) and isinstance(correction, int | float):
            variance = divide(total, max(count - correction, 0))
        else:
            variance = divide(total, _less(count, correction, x.tensor.dtype))
    return tuple(convert(reshape(each, node.shape), node.dtype) for each in (variance, mean))  # type: ignore[return-value]


def _less(count: Dim, correction: Any, dtype: DType) -> Term:
    """A count that only a run tells less what is taken off it, or 0."""
    return maximum(subtract(counted(count, dtype), given_as(dtype, correction)), 0)


@aten("prod.default", "prod.dim_int")
def _prod(node: AtenNode) -> Built:
    x = convert(convert(node.term("self"), node.dtype), wide(node.dtype))
    return convert(_reduced(node, x, _axes(node), "multiply"), node.dtype)


@aten("amax.default")
def _amax(node: AtenNode) -> Built:
    return _reduced(node, node.term("self"), _axes(node), "maximum")


@aten("amin.default")
def _amin(node: AtenNode) -> Built:
    return _reduced(node, node.term("self"), _axes(node), "minimum")


@aten("max.default")
def _max(node: AtenNode) -> Built:
    return _reduced(node, node.term("self"), None, "maximum")


@aten("min.default")
def _min(node: AtenNode) -> Built:
    return _reduced(node, node.term("self"), None, "minimum")


@aten("any.default", "any.dim", "any.dims")
def _any(node: AtenNode) -> Built:
    return convert(_reduced(node, truth(node.term("self")), _axes(node), "or"), node.dtype)


def _place(node: AtenNode, x: Term, axis: Any, name: str) -> Term:
    """Where the extreme element is along `axis`, or in the flat tensor where there is none; the first one of equals."""
    flat = axis is None
    x = convert(x, U8) if x.tensor.dtype.kind == "bool" else x
    vector = reshape(x, (x.tensor.elements,)) if flat or x.tensor.rank == 0 else x
    at = 0 if flat else axis_of(axis, x.tensor.rank)
    return make(f"onnx.{name}", (vector,), {"axis": at, "select_last_index": 0})


@aten("argmax.default")
def _argmax(node: AtenNode) -> Built:
    return reshape(_place(node, node.term("self"), node["dim"], "ArgMax"), node.shape)


@aten("argmin.default")
def _argmin(node: AtenNode) -> Built:
    return reshape(_place(node, node.term("self"), node["dim"], "ArgMin"), node.shape)


@aten("max.dim", "min.dim")
def _extreme(node: AtenNode) -> Built:
    x, axis = node.term("self"), int(node.number("dim"))
    most = node.name == "max.dim"
    values = _reduced(node, x, axis, "maximum" if most else "minimum")
    return values, reshape(_place(node, x, axis, "ArgMax" if most else "ArgMin"), node.shape)


@aten("cumsum.default", "cumprod.default")
def _cumulative(node: AtenNode) -> Built:
    x = convert(convert(node.term("self"), node.dtype), wide(node.dtype))
    if x.tensor.rank == 0:
        return convert(x, node.dtype)
    name = "CumSum" if node.name == "cumsum.default" else "CumProd"
    axis = node.axis(x)
    return convert(make(f"onnx.{name}", (x,), {"axis": axis, "exclusive": 0, "backward": 0}), node.dtype)


@aten("sort.default", "sort.stable")
def _sort(node: AtenNode) -> Built:
    """Equal elements keep their order; NaN is larger than all numbers."""
    x = node.term("self")
    if x.tensor.rank == 0:
        return x, reshape(iota((1,), 0), ())
    axis = node.axis(x)
    return in_order(x, axis, x.tensor.dims[axis], largest=bool(node["descending"]))


def in_order(x: Term, axis: int, count: Dim, *, largest: bool) -> tuple[Term, Term]:
    """The `count` largest or smallest elements along `axis` in order, with their positions: equal ones by position."""
    found = ordered((x, iota(x.tensor.dims, axis)), "GT" if largest else "LT", axis=axis)
    values, where = (sliced(each, axis, 0, count) for each in found)
    return values, where


@aten("topk.default")
def _topk(node: AtenNode) -> Built:
    x, count = node.term("self"), int(node.number("k"))
    if x.tensor.rank == 0:
        return x, reshape(iota((1,), 0), ())
    return in_order(x, node.axis(x), count, largest=bool(node["largest"]))


@aten("_softmax.default")
def _softmax(node: AtenNode) -> Built:
    return _soft(node, "Softmax")


@aten("_log_softmax.default")
def _log_softmax(node: AtenNode) -> Built:
    return _soft(node, "LogSoftmax")


def _soft(node: AtenNode, name: str) -> Term:
    x = node.term("self")
    working = x if not node["half_to_float"] else convert(x, node.dtype)
    flat = reshape(working, (1,)) if x.tensor.rank == 0 else working
    axis = node.axis(flat)
    return reshape(widened(flat, lambda one: make(f"onnx.{name}", (one,), {"axis": axis})), node.shape)
