"""Which dims must be equal so that an op takes its operands: what makes the most general instances of a rule.

A rule names the dims of its variables apart; an op of its left side may want some of them to be one (the contracted dims of a product). For
proofs every instance must be covered, so the symbols are bound by what the op wants, and by nothing more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from coset.ir import dims
from coset.ir.dims import Dim, Poly
from coset.ir.op import Op
from coset.ir.types import AbsentType, TensorType, TupleType, Type

Binding = dict[str, Dim]
OFFSETS = ("at:", "before:")  # how the symbols of places begin that may be 0


def unifiers(op: Op, operands: Sequence[Type], attributes: Mapping[str, Any]) -> list[Binding] | None:
    """The least bindings of dim symbols under which `op` may take `operands`: all of them together are all that there is. None where
    that is not known; none at all where dims that must be equal are different numbers."""
    there = [operand for operand in operands if not isinstance(operand, AbsentType)]
    shapes = [operand.shape for operand in there if isinstance(operand, TensorType)]
    if len(shapes) != len(there) or any(shape is None for shape in shapes):
        return None
    found: list[Binding] = [{}]
    for left, right, repeats in _equations(op, [shape for shape in shapes if shape is not None], attributes):
        again: list[Binding] = []
        for binding in found:
            for other in (right, 1) if repeats else (right,):
                sides = dims.substitute(left, binding), dims.substitute(other, binding)
                more_bound = solved(*sides)
                if more_bound is None:
                    return None
                nothing: list[Binding] = [{name: 0} for name in _common(*sides)] if sides[0] != sides[1] else []
                for more in (*more_bound, *nothing):
                    later = {key: dims.substitute(value, more) for key, value in binding.items()} | more
                    again += [later] if later not in again else []
                if left == right:
                    break  # a dim that stays need not be 1
        found = again
    return found


def solved(a: Dim, b: Dim) -> list[Binding] | None:
    """The least binding with which two dims are equal; empty where they cannot be, None where it is not known."""
    a, b = _without_common(a, b)
    if a == b:
        return [{}]
    if isinstance(a, int) and isinstance(b, int):
        return []
    for one, other in ((a, b), (b, a)):
        name = dims.alone(one)
        if name is not None and name not in dims.symbols(other):
            return [{name: other}]
        if other == 1 and (factors := _factors(one)) is not None:  # a product of sizes is 1 where each is
            return [dict.fromkeys(factors, 1)]
    return _offset(dims.subtract(a, b))


def _offset(difference: Dim) -> list[Binding] | None:
    """What an offset is (`rules/places.py`) that stands alone in a difference that is 0; that it is not negative is then not known."""
    for monomial, coefficient in difference.terms if isinstance(difference, Poly) else ():
        name = monomial[0].name if len(monomial) == 1 and abs(coefficient) == 1 else ""
        rest = dims.add(dims.multiply(-coefficient, difference), dims.symbol(name)) if name.startswith(OFFSETS) else difference
        if name.startswith(OFFSETS) and name not in dims.symbols(rest):
            return [{name: rest}]
    return None


def _common(a: Dim, b: Dim) -> list[str]:
    """The symbols that two products have both: where one of these is 0 they are equal."""
    names = sorted(dims.symbols(a) & dims.symbols(b))
    return [name for name in names if all(dims.divide_exactly(side, dims.symbol(name)) is not None for side in (a, b))]


def _without_common(a: Dim, b: Dim) -> tuple[Dim, Dim]:
    """Two products without the symbols that both have; that these may be 0 is for the caller to say."""
    for name in sorted(dims.symbols(a) & dims.symbols(b)):
        while True:
            less = [dims.divide_exactly(side, dims.symbol(name)) for side in (a, b)]
            if less[0] is None or less[1] is None:
                break
            a, b = less[0], less[1]
    return a, b


def _factors(dim: Dim) -> list[str] | None:
    """The symbols of which `dim` is the product, or None."""
    if isinstance(dim, int) or len(dim.terms) != 1 or dim.terms[0][1] != 1 or any(atom.args for atom in dim.terms[0][0]):
        return None
    return [atom.name for atom in dim.terms[0][0]]


def _equations(op: Op, shapes: Sequence[tuple[Dim, ...]], attributes: Mapping[str, Any]) -> Iterator[tuple[Dim, Dim, bool]]:
    """Pairs of dims that the op wants equal, as far as ranks and attributes fit, and whether the first one may also be 1."""
    if op.has("elementwise") or op.name == "stablehlo.map":
        full = [shape for shape in shapes if shape]  # a rank-0 operand is a predicate or a bound
        for shape in full[1:]:
            if len(shape) == len(full[0]):
                yield from ((a, b, False) for a, b in zip(full[0], shape, strict=True))
    elif op.name == "stablehlo.reduce_region":  # inputs of one shape, then an init value for each
        for shape in shapes[1 : len(shapes) // 2]:
            if len(shape) == len(shapes[0]):
                yield from ((a, b, False) for a, b in zip(shapes[0], shape, strict=True))
    elif op.name == "stablehlo.dot_general":
        for kind in ("batch", "contract"):
            for i, j in zip(attributes[f"lhs_{kind}"], attributes[f"rhs_{kind}"], strict=False):
                if isinstance(i, int) and isinstance(j, int) and 0 <= i < len(shapes[0]) and 0 <= j < len(shapes[1]):
                    yield shapes[0][i], shapes[1][j], False
    elif op.name == "stablehlo.convolution" and len(shapes[0]) == len(shapes[1]) >= 2:
        features, batches = attributes["feature_group_count"], attributes["batch_group_count"]
        yield shapes[0][1], dims.multiply(shapes[1][1], features), False
        yield from _divided(shapes[1][0], dims.multiply(features, batches))
        yield from _divided(shapes[0][0], batches)
    elif op.name == "onnx.Conv" and len(shapes[0]) == len(shapes[1]) >= 2:
        yield shapes[0][1], dims.multiply(shapes[1][1], attributes["group"]), False
        yield from _divided(shapes[1][0], attributes["group"])
    elif op.name == "onnx.ConvTranspose" and len(shapes[0]) == len(shapes[1]) >= 2:
        yield shapes[0][1], shapes[1][0], False
        yield from _divided(shapes[1][0], attributes["group"])
    elif op.name == "stablehlo.concatenate":
        for shape in shapes[1:]:
            if len(shape) == len(shapes[0]):
                pairs = enumerate(zip(shapes[0], shape, strict=True))
                yield from ((a, b, False) for axis, (a, b) in pairs if axis != attributes["dimension"])
    elif op.name == "stablehlo.broadcast_in_dim" and _are_dims(attributes["shape"]):
        for dim, axis in zip(shapes[0], attributes["broadcast_dimensions"], strict=False):
            if isinstance(axis, int) and 0 <= axis < len(attributes["shape"]) and dim != 1:
                yield dim, attributes["shape"][axis], True
    elif op.name == "stablehlo.reshape" and _are_dims(attributes["shape"]):
        yield dims.product(shapes[0]), dims.product(attributes["shape"]), False


def _divided(dim: Dim, groups: Dim) -> Iterator[tuple[Dim, Dim, bool]]:
    """That a symbolic number of groups divides a dim which is a symbol too."""
    name, count = dims.alone(dim), dims.alone(groups)
    if name is not None and count is not None and name != count:
        yield dim, dims.multiply(groups, dims.symbol(f"{name}.by.{count}")), False


def _are_dims(shape: Any) -> bool:
    return isinstance(shape, tuple) and all(isinstance(dim, int | Poly) for dim in shape)


def understood(op: Op) -> bool:
    """True when `unifiers` knows everything that the op wants of its operands' dims."""
    return op.has("elementwise") or op.name == "builtin.tuple" or op.name.removeprefix("stablehlo.") in _UNDERSTOOD


_UNDERSTOOD = frozenset({
    "dot_general", "concatenate", "convolution", "broadcast_in_dim", "reshape", "transpose", "reverse", "reduce", "iota", "pad",
    "onnx.Conv", "onnx.ConvTranspose", "map", "reduce_region", "if", "while",
})  # fmt: skip


def bound(value: Any, binding: Binding) -> Any:
    """A dim, type, attribute or tuple of them with the symbols of `binding` replaced."""
    if not binding:
        return value
    if isinstance(value, Poly):
        return value if dims.symbols(value).isdisjoint(binding) else dims.substitute(value, binding)
    if isinstance(value, dict):
        return {key: bound(item, binding) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(bound(item, binding) for item in value)
    if isinstance(value, TensorType) and value.shape is not None:
        return TensorType(value.dtype, bound(value.shape, binding))
    if isinstance(value, TupleType):
        return TupleType(tuple(bound(item, binding) for item in value.items))
    return value
