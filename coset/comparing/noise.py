"""The rounding noise of a program: what it does to the outputs when every number that goes in moves by one rounding error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from coset.dialects.hub.stablehlo import broadcast
from coset.ir.constants import constant_of
from coset.ir.program import Program
from coset.ir.term import Term, constant, make, rebuild, topological
from coset.ir.types import TensorType

LARGEST = 1 << 22  # elements of a constant that is nudged; larger ones stay, so that memory does not grow with the weights
TOTAL = 1 << 25  # ... and of all of them together
FACTORS = 1 << 14  # elements of what a result is multiplied by
_MOVING = frozenset({"stablehlo.broadcast_in_dim", "stablehlo.reshape", "stablehlo.convert"})  # what a number goes through to its op
QUANTIZING = frozenset({"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"})


def nudge(value: np.ndarray[Any, Any], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """`value` with each float element moved to one of its two neighbours; anything else as it is."""
    if not _is_float(value.dtype):
        return value
    bits = np.dtype(f"i{value.dtype.itemsize}")
    draws = np.unpackbits(np.frombuffer(rng.bytes((value.size + 7) // 8), np.uint8), count=value.size).reshape(value.shape)
    # neighbours of one sign are neighbours as integers
    moved = (np.ascontiguousarray(value).view(bits).reshape(value.shape) + (draws.astype(bits) * 2 - 1)).view(value.dtype)
    with np.errstate(invalid="ignore"):  # the neighbour of an infinity is a NaN that signals
        return np.where(np.isfinite(moved) & np.isfinite(value) & (value != 0), moved, value)  # zeros and infinities are exact by intention


def _is_float(dtype: np.dtype[Any]) -> bool:
    """True for real floats of 16 bits or more."""
    return (dtype.kind == "f" and dtype.itemsize > 1) or dtype.name == "bfloat16"


def moved(feed: Mapping[str, Any]) -> dict[str, Any]:
    """`feed` with every float moved by one rounding error."""
    return {name: _moved(value, np.random.default_rng(0)) for name, value in feed.items()}


def _moved(value: Any, rng: np.random.Generator) -> Any:
    if isinstance(value, dict):
        return {key: each if isinstance(each, str) else nudge(np.asarray(each), rng)[()] for key, each in value.items()}
    return [_moved(each, rng) for each in value] if isinstance(value, list) else nudge(value, rng)


def largest_step(value: Any, expected: Any) -> float:
    """How far apart the elements of two arrays, or of two sequences of such, are at most, where that is a number; 0 where they are no
    floats of one shape."""
    if isinstance(value, list) and isinstance(expected, list):
        return max((largest_step(one, other) for one, other in zip(value, expected, strict=False)), default=0.0)
    if not isinstance(value, np.ndarray) or not floating(value) or value.shape != expected.shape:
        return 0.0
    with np.errstate(all="ignore"):
        step = np.abs(wide(value) - wide(expected))
    return float(np.max(step[np.isfinite(step)], initial=0.0))


def floating(value: np.ndarray[Any, Any]) -> bool:
    """True for floats of any width and complex numbers."""
    return value.dtype.kind in "fcV" or value.dtype.name.startswith(("bfloat", "float8", "float4"))


def wide(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Floats as f64, complex numbers as they are."""
    return value if value.dtype.kind == "c" else value.astype(np.float64)


def nudged(program: Program, seed: int) -> Program:
    """`program` with its float constants nudged, also the splat ones element by element: equal channels must not stay equal.

    Constants that an opaque node reads stay (a scale of Resize decides a shape), but for the quantizing ones, and so do exponents: beside
    2 a power of a negative number is NaN.
    """
    rng = np.random.default_rng(seed)
    budget = TOTAL

    def change(term: Term, made: Term) -> Term:
        nonlocal budget
        value = _constant_value(term)
        if value is None or value.size > min(LARGEST, budget):
            return made
        budget -= value.size
        return constant(constant_of(nudge(np.array(value), rng), term.tensor.dtype))

    return _changed(program, change)


def rounded(program: Program, seed: int) -> Program:
    """`program` with the floats that its nodes compute moved by a rounding error, as ops with another order of their sums move them.

    Each is multiplied by numbers next to 1, which differ along its largest axes. What only moves numbers stays, and so does what an
    opaque node reads (a scale of Resize decides a shape).
    """
    rng = np.random.default_rng(seed)

    def change(term: Term, made: Term) -> Term:
        return make("stablehlo.multiply", (made, _near_one(made.tensor, rng))) if _rounds(term) else made

    return _changed(program, change)


def _changed(program: Program, change: Callable[[Term, Term], Term]) -> Program:
    """`program` with `change(term, made)` for each term, of which `made` stands over the changed operands. What opaque nodes read stays,
    and exponents do, with the constants that they are moved from."""
    order = list(topological(program.roots))
    fixed = {operand for term in order if _fixes(term) for operand in term.operands}
    fixed.update(term.operands[1] for term in order if term.op.name == "stablehlo.power")
    for term in reversed(order):
        if term in fixed and term.op.name in _MOVING:
            fixed.update(term.operands)
    replaced: dict[Term, Term] = {}
    for term in order:
        made = rebuild(term, [replaced[operand] for operand in term.operands])
        replaced[term] = made if term in fixed else change(term, made)
    return program.with_roots(tuple(replaced[root] for root in program.roots))


def weight_bytes(program: Program) -> int:
    """Bytes of all constants of a program."""
    return sum(term.attribute("value").bytes for term in program.terms() if term.op.name == "builtin.constant")


def _fixes(term: Term) -> bool:
    return term.op.has("foreign") and term.attribute("name") not in QUANTIZING


def _rounds(term: Term) -> bool:
    """True for floats that are computed: neither given nor only moved. A part of a tuple is what an op with several results computes."""
    if not isinstance(term.type, TensorType) or term.type.shape is None or not _is_float(term.type.dtype.numpy):
        return False
    maker = term.operands[0].op if term.op.name == "builtin.get" else term.op
    return bool(term.operands) and not maker.has("movement")


def _near_one(type: TensorType, rng: np.random.Generator) -> Term:
    """Numbers next to 1 for a tensor of `type`, others along its largest axes of known size, `FACTORS` at most."""
    axes: list[int] = []
    sizes: dict[int, int] = {axis: dim for axis, dim in enumerate(type.dims) if isinstance(dim, int)}
    room = FACTORS
    for axis in sorted(sizes, key=lambda axis: (-sizes[axis], axis)):
        if 1 < sizes[axis] <= room:
            room //= sizes[axis]
            axes.append(axis)
    axes.sort()
    ones = np.ones([sizes[axis] for axis in axes], type.dtype.numpy)
    return broadcast(constant(constant_of(nudge(ones, rng), type.dtype)), type.dims, tuple(axes))


def _constant_value(term: Term) -> np.ndarray[Any, Any] | None:
    """The elements of a float constant or of the broadcast of one number, else None."""
    if not isinstance(term.type, TensorType) or not _is_float(term.type.dtype.numpy) or term.type.static is None:
        return None
    source = term.operands[0] if term.op.name == "stablehlo.broadcast_in_dim" else term
    if source.op.name != "builtin.constant" or (source is not term and source.tensor.rank):
        return None
    elements = int(np.prod(term.type.static, dtype=np.int64))
    if elements > LARGEST:
        return None
    value: np.ndarray[Any, Any] = np.broadcast_to(source.attribute("value").array(), term.type.static)
    return value
