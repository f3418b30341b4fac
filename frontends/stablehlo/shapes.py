"""Shape arithmetic of StableHLO, `arith`, `tensor` and `shape` operations on host values, and the ops that take a shape as a tensor.

A value that is evaluated here never becomes tensor work. Where a rule cannot be exact the operation stays a term.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from coset.dialects.hub.terms import broadcast, literal, reshape
from coset.dialects.onnx.bounds import at_most, least, maximum, minimum
from coset.frontends.onnx.values import LIMIT, Host, Unsure, host_array, host_value, term_of
from coset.frontends.stablehlo.attributes import Foreign
from coset.frontends.stablehlo.node import Builder, Built, MlirOperation
from coset.ir import dims
from coset.ir.constants import constant_of
from coset.ir.dims import Dim, Poly, Shape
from coset.ir.errors import TypeRuleError
from coset.ir.op import find_op
from coset.ir.term import CONSTANT, Term, make
from coset.ir.types import BOOL, I32, I64


def host(term: Term) -> Host | None:
    """The elements of an integer or boolean tensor as dims, where they are known."""
    return host_value(term)


def shape_operand(term: Term) -> Shape | None:
    """The dims that a rank-1 operand holds, where all are known and none is negative."""
    value = host_value(term)
    if value is None or value.ndim != 1:
        return None
    shape = tuple(value.tolist())
    return None if any(isinstance(dim, int) and dim < 0 for dim in shape) else shape


# ---------------------------------------------------------------- evaluation


def _quotient(a: Dim, b: Dim) -> Dim:
    """Rounded to zero: floor division where neither operand is negative."""
    if isinstance(a, int) and isinstance(b, int) and b != 0:
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    low, divisor = least(a), least(b)
    if low is None or low < 0 or divisor is None or divisor < 1:
        raise Unsure
    return dims.floordiv(a, b)


def _remainder(a: Dim, b: Dim) -> Dim:
    return dims.subtract(a, dims.multiply(b, _quotient(a, b))) if isinstance(a, int) and isinstance(b, int) else _modulo(a, b)


def _modulo(a: Dim, b: Dim) -> Dim:
    _quotient(a, b)  # sure of the signs
    return dims.mod(a, b)


def _order(a: Dim, b: Dim) -> bool:
    """a <= b."""
    known = at_most(a, b)
    if known is None:
        raise Unsure
    return bool(known)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, bool) or a == b:
        return bool(a == b)
    if at_most(a, b) is False or at_most(b, a) is False:
        return False
    raise Unsure


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "EQ": _same, "NE": lambda a, b: not _same(a, b), "LE": _order, "GE": lambda a, b: _order(b, a), "LT": lambda a, b: not _order(b, a),
    "GT": lambda a, b: not _order(a, b),
}  # fmt: skip
_POINTWISE: dict[str, Callable[..., Any]] = {
    "stablehlo.add": dims.add, "stablehlo.subtract": dims.subtract, "stablehlo.multiply": dims.multiply, "stablehlo.divide": _quotient,
    "stablehlo.remainder": _remainder, "stablehlo.maximum": maximum, "stablehlo.minimum": minimum,
    "stablehlo.negate": lambda a: dims.multiply(-1, a), "stablehlo.select": lambda p, a, b: a if p else b,
}  # fmt: skip
_LOGIC: dict[str, Callable[..., Any]] = {
    "stablehlo.and": lambda a, b: a and b, "stablehlo.or": lambda a, b: a or b, "stablehlo.not": lambda a: not a,
}  # fmt: skip


def folded(name: str, operands: Sequence[Term], attributes: dict[str, Any]) -> Term | None:
    """The hub op `name` on operands whose elements are known, as known elements again; None where it cannot be told exactly."""
    if not operands:
        return None
    values = [host_value(operand) for operand in operands]
    if any(value is None for value in values):
        return None
    dtype = BOOL if name == "stablehlo.compare" else attributes.get("dtype", operands[-1].tensor.dtype)
    try:
        result = _evaluated(name, [value for value in values if value is not None], attributes, logic=operands[0].tensor.dtype is BOOL)
    except (Unsure, ZeroDivisionError):
        return None
    return None if result is None or result.size > LIMIT else _term_of(result, dtype)


def _term_of(value: Host, dtype: Any) -> Term | None:
    """As `term_of`, a constant in the form that one in the text has."""
    term = term_of(value, dtype)
    return literal(term.attribute("value")) if term is not None and term.op is CONSTANT else term


def _evaluated(name: str, values: list[Host], attributes: dict[str, Any], *, logic: bool) -> Host | None:
    function = _LOGIC.get(name) if logic and name != "stablehlo.select" else _POINTWISE.get(name)
    if name == "stablehlo.compare":
        function = _COMPARE[attributes["direction"]]
    if function is not None:
        spread = np.broadcast_arrays(*values)
        return host_array([function(*items) for items in zip(*(v.ravel().tolist() for v in spread), strict=True)], spread[0].shape)
    first = values[0]
    if name == "stablehlo.convert":
        return first if not logic and attributes["dtype"] in (I32, I64) else None
    if name == "stablehlo.reshape" and all(isinstance(dim, int) for dim in attributes["shape"]):
        return first.reshape(attributes["shape"])
    if name == "stablehlo.concatenate":
        return np.concatenate(values, axis=attributes["dimension"])
    if name == "stablehlo.slice" and not any(isinstance(dim, Poly) for key in ("start", "limit") for dim in attributes[key]):
        return first[tuple(map(slice, attributes["start"], attributes["limit"], attributes["strides"]))]
    if name == "stablehlo.transpose":
        return np.transpose(first, attributes["permutation"])
    if name == "stablehlo.broadcast_in_dim" and not first.ndim and all(isinstance(dim, int) for dim in attributes["shape"]):
        return np.broadcast_to(first, attributes["shape"])
    return None


def elements(items: Sequence[Any], shape: tuple[int, ...], dtype: Any) -> Term:
    """The term of host elements.

    Raises:
        Foreign: a number does not fit, or the dtype holds no dims.
    """
    term = _term_of(host_array(list(items), shape), dtype)
    if term is None:
        raise Foreign
    return term


# ---------------------------------------------------------------- operations on shapes


def _known(term: Term) -> Host:
    value = host_value(term)
    if value is None:
        raise Foreign
    return value


def _dim(node: MlirOperation) -> Built:
    """`tensor.dim`, `shape.dim`: one dim; its index is a constant."""
    (axis,) = _known(node.operands[1]).ravel().tolist()
    return elements([node.operands[0].tensor.dims[axis]], (), I64)


def _dimension_size(node: MlirOperation) -> Built:
    return elements([node.operands[0].tensor.dims[node.value("dimension")]], (), I32)


def _shape_of(node: MlirOperation) -> Built:
    shape = node.operands[0].tensor.dims
    return elements(shape, (len(shape),), I64)


def _broadcast_shapes(node: MlirOperation) -> Built:
    """`shape.broadcast`; dims that are symbols are taken as NumPy would, and as equal where neither is 1."""
    shapes = [tuple(_known(operand).tolist()) for operand in node.operands]
    rank = max(map(len, shapes))
    result: list[Dim] = [1] * rank
    for shape in shapes:
        for position, dim in enumerate(shape, start=rank - len(shape)):
            result[position] = _joined(node, result[position], dim)
    return elements(result, (rank,), I64)


def _joined(node: MlirOperation, a: Dim, b: Dim) -> Dim:
    if a == 1 or a == b:
        return b
    if b == 1:
        return a
    if isinstance(a, int) or isinstance(b, int):  # a symbol beside a number that is not 1: the symbol is 1 or the number
        return a if isinstance(a, int) else b
    raise Foreign  # either may be 1 when it is run


def _from_elements(node: MlirOperation) -> Built:
    dtype, sizes = node.result()
    items = [_known(operand).ravel().tolist()[0] for operand in node.operands]
    return elements(items, tuple(size or 0 for size in sizes), dtype)


def _extract(node: MlirOperation) -> Built:
    index = tuple(int(_known(operand).ravel()[0]) for operand in node.operands[1:])
    return elements([_known(node.operands[0])[index]], (), node.operands[0].tensor.dtype)


def _num_elements(node: MlirOperation) -> Built:
    return elements([dims.product(_known(node.operands[0]).tolist())], (), I64)


def _same_value(node: MlirOperation) -> Built:
    """An operation that only changes what is known of the type, or `index` to an integer."""
    term = node.operands[0]
    dtype = node.result()[0]
    if term.tensor.dtype == dtype:
        return term
    value = host_value(term)
    return make("stablehlo.convert", (term,), {"dtype": dtype}) if value is None else elements(value.ravel().tolist(), value.shape, dtype)


def _arith(name: str) -> Builder:
    def build(node: MlirOperation) -> Built:
        result = folded(name, node.operands, {})
        return make(name, node.operands) if result is None else result

    return build


_PREDICATES = ("EQ", "NE", "LT", "LE", "GT", "GE")


def _arith_compare(node: MlirOperation) -> Built:
    code = node.value("predicate")
    if not isinstance(code, int) or code >= len(_PREDICATES):
        raise Foreign
    attributes = {"direction": _PREDICATES[code]}
    result = folded("stablehlo.compare", node.operands, attributes)
    return make("stablehlo.compare", node.operands, attributes) if result is None else result


def _assuming(node: MlirOperation) -> Built:
    """What an assuming region computes: its witness says that shapes fit, which the ops themselves need."""
    return node.importer.inline(node.regions[0], (), node.scope)


def _witness(node: MlirOperation) -> Built:
    return make("builtin.constant", (), {"value": _TRUE})


def _nothing(_: MlirOperation) -> Built:
    return ()


# ---------------------------------------------------------------- ops that take a shape as a tensor


def _dynamic_broadcast(node: MlirOperation) -> Built:
    x = node.operands[0]
    axes = node.value("broadcast_dimensions")
    target = shape_operand(node.operands[1])
    if target is None:
        return _unknown_shape(node, {"broadcast_dimensions": axes})
    target = refined(node, target)
    kept = node.value("known_nonexpanding_dimensions", ())
    for axis, dim, place in zip(range(len(axes)), x.tensor.dims, axes, strict=True):
        if dim not in (1, target[place]) and (axis in kept or isinstance(dim, int)):
            node.importer.equal(dim, target[place])
    if all(dim in (1, target[place]) for dim, place in zip(x.tensor.dims, axes, strict=True)):
        return broadcast(x, target, axes)
    return _unknown_shape(node, {"broadcast_dimensions": axes}, target)


def _dynamic_reshape(node: MlirOperation) -> Built:
    target = shape_operand(node.operands[1])
    if target is None:
        return _unknown_shape(node, {})
    target = refined(node, target)
    try:
        return reshape(node.operands[0], target)
    except TypeRuleError:  # as many elements, for reasons that dims do not show
        return _unknown_shape(node, {}, target)


def _dynamic_iota(node: MlirOperation) -> Built:
    dtype, axis = node.result()[0], node.value("iota_dimension")
    target = shape_operand(node.operands[0])
    if target is None:
        return _unknown_shape(node, {"dtype": dtype, "dimension": axis})
    return make("stablehlo.iota", (), {"shape": refined(node, target), "dtype": dtype, "dimension": axis})


def _dynamic_pad(node: MlirOperation) -> Built:
    amounts = [_numbers(operand) for operand in node.operands[2:]]
    if None in amounts:
        return _unknown_shape(node, {})
    low, high, interior = amounts
    return make("stablehlo.pad", node.operands[:2], {"low": low, "high": high, "interior": interior})


def _dynamic_slice_bounds(node: MlirOperation) -> Built:
    """`real_dynamic_slice`: a slice where its bounds are known."""
    x = node.operands[0]
    start, limit = (shape_operand(operand) for operand in node.operands[1:3])
    strides = _numbers(node.operands[3])
    if start is None or limit is None or strides is None:
        sizes = _added(node.operands[1], node.operands[2]) if strides is not None and set(strides) <= {1} else None
        return _unknown_shape(node, {}, None if sizes is None else refined(node, sizes))
    return make("stablehlo.slice", (x,), {"start": start, "limit": limit, "strides": strides})


def _added(start: Term, limit: Term) -> Shape | None:
    """The sizes of which `limit` is `start` plus them, where they are known: how a slice of known size at a computed place is written."""
    if limit.op.name != "stablehlo.add" or start not in limit.operands:
        return None
    return shape_operand(limit.operands[1 - limit.operands.index(start)])


def _numbers(term: Term) -> tuple[int, ...] | None:
    value = host_value(term)
    if value is None or any(isinstance(item, Poly) for item in value.ravel().tolist()):
        return None
    return tuple(int(item) for item in value.ravel().tolist())


def refined(node: MlirOperation, target: Shape) -> Shape:
    """`target`, where the declared result type has a number: that number."""
    for dim, size in zip(target, node.result()[1], strict=True):
        if size is not None and dim != size:
            node.importer.equal(dim, size)
    return tuple(dim if size is None else size for dim, size in zip(target, node.result()[1], strict=True))


def _unknown_shape(node: MlirOperation, attributes: dict[str, Any], shape: Shape | None = None) -> Term:
    """The op as it is: its shape operand is looked at when it is run."""
    if find_op(node.name) is None:
        raise Foreign
    return make(node.name, node.operands, {**attributes, "shape": node.open_shape() if shape is None else shape})


_TRUE = constant_of(np.asarray(True))
SHAPE_BUILDERS: dict[str, Builder] = {
    "tensor.dim": _dim, "shape.dim": _dim, "shape.get_extent": _dim, "stablehlo.get_dimension_size": _dimension_size,
    "shape.shape_of": _shape_of, "shape.broadcast": _broadcast_shapes, "tensor.from_elements": _from_elements,
    "shape.from_extents": _from_elements, "tensor.extract": _extract, "shape.num_elements": _num_elements,
    "tensor.cast": _same_value, "arith.index_cast": _same_value, "arith.index_castui": _same_value, "arith.extsi": _same_value,
    "arith.trunci": _same_value, "shape.to_extent_tensor": _same_value, "shape.from_extent_tensor": _same_value,
    "shape.size_to_index": _same_value, "shape.index_to_size": _same_value,
    "arith.addi": _arith("stablehlo.add"), "arith.subi": _arith("stablehlo.subtract"), "arith.muli": _arith("stablehlo.multiply"),
    "arith.divsi": _arith("stablehlo.divide"), "arith.remsi": _arith("stablehlo.remainder"),
    "arith.maxsi": _arith("stablehlo.maximum"), "arith.minsi": _arith("stablehlo.minimum"), "arith.select": _arith("stablehlo.select"),
    "arith.andi": _arith("stablehlo.and"), "arith.ori": _arith("stablehlo.or"), "arith.cmpi": _arith_compare,
    "shape.assuming": _assuming, "shape.cstr_broadcastable": _witness, "shape.cstr_eq": _witness, "shape.cstr_require": _witness,
    "shape.const_witness": _witness, "shape.assuming_all": _witness, "cf.assert": _nothing,
    "stablehlo.dynamic_broadcast_in_dim": _dynamic_broadcast, "stablehlo.dynamic_reshape": _dynamic_reshape,
    "stablehlo.dynamic_iota": _dynamic_iota, "stablehlo.dynamic_pad": _dynamic_pad,
    "stablehlo.real_dynamic_slice": _dynamic_slice_bounds,
}  # fmt: skip
