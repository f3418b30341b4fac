"""Tiles of operands for the matrix unit: in the dtype that they are multiplied in, and what shared memory holds of them."""

from __future__ import annotations

from coset.ir.types import DTYPES, F32, F64, I8, DType
from coset.lowering.kernels.kernel import Grouped, Load, Product, Scalar
from coset.lowering.triton.launch import EmitOptions
from coset.lowering.triton.scalars import EIGHTS, TYPES, beside, conversion, filling, from_bits
from coset.lowering.triton.scopes import Value
from coset.lowering.triton.tiling import is_eight
from coset.lowering.triton.values import Space
from coset.lowering.triton.walks import plain_loads

U8 = DTYPES["u8"]
_SUMS = {F64: "tl.float64", I8: "tl.int32"}  # of what is not summed as f32


def held_bits(kernel: Product | Grouped, unit: DType) -> tuple[int, int, int]:
    """Bits that shared memory holds for an element of each operand (all its loads, and what is made of them), and of the widest result."""
    left, right = (side_bits(side, unit) for side in (kernel.lhs, kernel.rhs))
    return left, right, max(store.value.dtype.bits for store in kernel.stores)


def side_bits(side: Scalar, unit: DType) -> int:
    """Bits that shared memory holds for an element of an operand: all its loads, and what is made of them."""
    return sum(load.dtype.bits for load in plain_loads(side)) + (0 if is_plain(side, unit) else unit.bits)


def is_plain(side: Scalar, unit: DType) -> bool:
    """True where an operand is multiplied as it is read."""
    return isinstance(side, Load) and (side.dtype is unit or (is_eight(unit) and is_eight(side.dtype)))


def operand_tile(
    space: Space, scalar: Scalar, side: str, block: tuple[str, str], summed: str, unit: DType, *, matrix: bool = True
) -> Value:
    """A tile of an operand in the dtype that it is multiplied in, 0 beyond the end of the axis `summed`. `matrix`: for the matrix unit,
    which takes whole tiles of the shape `block`."""
    axes = frozenset(space.axes)
    mask = space.axes[summed].mask
    if is_eight(unit):
        return _tile_of_eights(space, scalar, side, block, summed)
    if isinstance(scalar, Load) and scalar.dtype is unit:
        value = space.load(scalar, other=filling(0, unit) if mask is not None else None)
    elif scalar.dtype is unit:
        value = space.name(scalar, space.stored(scalar))
    else:
        value = space.name(scalar, space.computed(scalar))
        value = space.line(_as_unit(value.text, scalar.dtype, unit), value.axes, side)
    loaded = isinstance(scalar, Load) and scalar.dtype is unit and summed in value.axes
    if mask is not None and not loaded:
        text = f"tl.where({mask}, {value.text}, {beside(0, unit)})"
        value = space.line(text, value.axes | frozenset({summed}), f"{side}_inside")
    if axes - value.axes and matrix:
        value = space.line(f"tl.broadcast_to({value.text}, [{', '.join(block)}])", axes | value.axes, f"{side}_tile")
    return value


def _tile_of_eights(space: Space, scalar: Scalar, side: str, block: tuple[str, str], summed: str) -> Value:
    """The same of 8-bit floats: what is read and not changed is read as such, so that it goes to the matrix unit without passing through
    registers; else its bits are what is moved."""
    axes, mask = frozenset(space.axes), space.axes[summed].mask
    if isinstance(scalar, Load) and space.runs_along(scalar, summed):
        value = space.load(scalar, other="0.0" if mask is not None else None, type=EIGHTS[scalar.dtype.name])
    else:
        value = space.name(scalar, space.stored(scalar))
        if mask is not None:
            text = f"tl.where({mask}, {value.text}, {beside(0, U8)})"
            value = space.line(text, value.axes | frozenset({summed}), f"{side}_inside")
        value = space.line(from_bits(value.text, scalar.dtype), value.axes, side)
    if axes - value.axes:
        value = space.line(f"tl.broadcast_to({value.text}, [{', '.join(block)}])", axes, f"{side}_tile")
    return value


def dot_text(left: Value, right: Value, total: str | None, unit: DType, options: EmitOptions) -> str:
    """The product of two tiles by the matrix unit, added to `total`."""
    more = "" if total is None else f", {total}"
    if unit in _SUMS:  # up to Triton 3.7 it is not taken from what is added to
        return f"tl.dot({left.text}, {right.text}{more}, out_dtype={_SUMS[unit]})"
    if unit is F32 and options.f32_as == "bf16x6":
        return f"{'' if total is None else 'added_'}product_bf16x6({left.text}, {right.text}{more})"
    if unit is F32:
        return f'tl.dot({left.text}, {right.text}{more}, input_precision="{"tf32" if options.tf32 else "ieee"}")'
    return f"tl.dot({left.text}, {right.text}{more})"


def _as_unit(text: str, source: DType, unit: DType) -> str:
    """A computed value as the matrix unit's dtype, which holds it."""
    if unit.kind == "float" and unit.bits < 32:
        return f"{text}.to({TYPES[unit.name]})"
    return conversion(text, source, unit)
