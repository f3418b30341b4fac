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
from coset.ir.types import TensorType, TupleType, Type

Binding = dict[str, Dim]


def unifier(op: Op, operands: Sequence[Type], attributes: Mapping[str, Any]) -> Binding | None:
    """The least binding of dim symbols under which `op` may take `operands`; None where none is known."""
    shapes = [operand.shape for operand in operands if isinstance(operand, TensorType)]
    if len(shapes) != len(operands) or any(shape is None for shape in shapes):
        return None
    binding: Binding = {}
    for left, right in _equations(op, [shape for shape in shapes if shape is not None], attributes):
        a, b = dims.substitute(left, binding), dims.substitute(right, binding)
        if a == b:
            continue
        name, other = (dims.alone(a), b) if dims.alone(a) is not None else (dims.alone(b), a)
        if name is None or name in dims.symbols(other):
            return None
        binding = {key: dims.substitute(value, {name: other}) for key, value in binding.items()} | {name: other}
    return binding


def _equations(op: Op, shapes: Sequence[tuple[Dim, ...]], attributes: Mapping[str, Any]) -> Iterator[tuple[Dim, Dim]]:
    """Pairs of dims that the op wants equal, as far as ranks and attributes fit."""
    if op.has("elementwise"):
        full = [shape for shape in shapes if shape]  # a rank-0 operand is a predicate or a bound
        for shape in full[1:]:
            if len(shape) == len(full[0]):
                yield from zip(full[0], shape, strict=True)
    elif op.name == "stablehlo.dot_general":
        for kind in ("batch", "contract"):
            for i, j in zip(attributes[f"lhs_{kind}"], attributes[f"rhs_{kind}"], strict=False):
                if isinstance(i, int) and isinstance(j, int) and 0 <= i < len(shapes[0]) and 0 <= j < len(shapes[1]):
                    yield shapes[0][i], shapes[1][j]
    elif op.name == "stablehlo.convolution" and len(shapes[0]) == len(shapes[1]) >= 2:
        yield shapes[0][1], dims.multiply(shapes[1][1], attributes["feature_group_count"])
    elif op.name == "stablehlo.concatenate":
        for shape in shapes[1:]:
            if len(shape) == len(shapes[0]):
                yield from (pair for axis, pair in enumerate(zip(shapes[0], shape, strict=True)) if axis != attributes["dimension"])


def understood(op: Op) -> bool:
    """True when `unifier` knows everything that the op wants of its operands' dims together."""
    return op.has("elementwise") or op.name.removeprefix("stablehlo.") in ("dot_general", "concatenate", "convolution")


def bound(value: Any, binding: Binding) -> Any:
    """A dim, type, attribute or tuple of them with the symbols of `binding` replaced."""
    if isinstance(value, Poly):
        return dims.substitute(value, binding)
    if not binding:
        return value
    if isinstance(value, dict):
        return {key: bound(item, binding) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(bound(item, binding) for item in value)
    if isinstance(value, TensorType) and value.shape is not None:
        return TensorType(value.dtype, bound(value.shape, binding))
    if isinstance(value, TupleType):
        return TupleType(tuple(bound(item, binding) for item in value.items))
    return value
