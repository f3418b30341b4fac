"""One reduction as an ONNX call, with its dims kept or not."""

from __future__ import annotations

from coset.ir.dims import Shape
from coset.ir.term import Term
from coset.ir.types import BOOL, DTYPES
from coset.lowering.onnx.calls import NodeCall, NoOnnxForm, PrintContext, with_axes

_OPS = {"add": "ReduceSum", "multiply": "ReduceProd", "maximum": "ReduceMax", "minimum": "ReduceMin", "and": "ReduceMin", "or": "ReduceMax"}
_ON_BOOL = {
    "add": "ReduceMax", "maximum": "ReduceMax", "or": "ReduceMax", "multiply": "ReduceMin", "minimum": "ReduceMin", "and": "ReduceMin",
}  # fmt: skip
NAMED = frozenset(f"onnx.{name}" for name in ("ReduceMean", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"))
_WIDE = frozenset(DTYPES[name] for name in ("f16", "f32", "f64", "i32", "i64", "u32", "u64"))
_BYTES = frozenset(DTYPES[name] for name in ("i8", "u8"))


def is_reduction(term: Term) -> bool:
    """True for the terms that `kept_reduction` prints."""
    return term.op.name == "stablehlo.reduce" or term.op.name in NAMED


def reduced_axes(term: Term) -> tuple[int, ...]:
    """The dims that a reduction removes."""
    return tuple(term.attribute("dimensions"))


def kept_shape(term: Term) -> Shape:
    """The shape of a reduction whose reduced dims are kept as 1."""
    axes = reduced_axes(term)
    return tuple(1 if axis in axes else dim for axis, dim in enumerate(term.operands[0].tensor.dims))


def kept_reduction(term: Term, context: PrintContext, *, keepdims: int = 1) -> NodeCall:
    """The reduction `term` as a call."""
    x = term.operands[0]
    dtype = x.tensor.dtype
    op = term.op.name.removeprefix("onnx.") if term.op.name in NAMED else _OPS[term.attribute("combiner")]
    if dtype is BOOL:
        whole = NodeCall("Cast", (x,), {"to": DTYPES["i32"]})
        call = _call(_ON_BOOL[term.attribute("combiner")], whole, reduced_axes(term), context, keepdims)
        return NodeCall("Cast", (call,), {"to": BOOL})
    extreme = op in ("ReduceMax", "ReduceMin")
    if term.op.name == "stablehlo.reduce" and term.attribute("combiner") in ("and", "or"):
        raise NoOnnxForm(f"a bitwise reduction of {dtype} has no ONNX form")
    if dtype not in _WIDE and not (extreme and dtype in _BYTES):
        raise NoOnnxForm(f"{op} takes no {dtype} elements")
    return _call(op, x, reduced_axes(term), context, keepdims, since=12 if dtype in _BYTES else 1)


def _call(op: str, x: Term | NodeCall, axes: tuple[int, ...], context: PrintContext, keepdims: int, since: int = 1) -> NodeCall:
    call = with_axes(op, x, axes, context, operand_since=13 if op == "ReduceSum" else 18, keepdims=keepdims)
    return NodeCall(call.op, call.inputs, call.attributes, since)
