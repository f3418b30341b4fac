"""Drawn terms of CHLO's definitions and of the hub's elementwise ops, with their text in MLIR, which XLA compiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.definitions.instance import Draw, Fit, Instance, Shape, Slot
from coset.ir.builtin import absent
from coset.ir.op import get_op
from coset.ir.term import Term, get, input_term, make
from coset.ir.types import BOOL, DTYPES, DType, TensorType, TupleType

NAMES = {
    **{name: name for name in ("f64", "f32", "f16", "bf16")}, **{f"i{n}": f"i{n}" for n in (64, 32, 16, 8)},
    **{f"u{n}": f"ui{n}" for n in (64, 32, 16, 8)}, "bool": "i1", "c64": "complex<f32>", "c128": "complex<f64>",
}  # fmt: skip
FLOATS = tuple(DTYPES[name] for name in ("f32", "f32", "f64", "f16", "bf16"))
INTEGERS = tuple(DTYPES[name] for name in ("i32", "i64", "i8", "i16", "u8", "u32", "u64", "u16"))
SIGNED = tuple(dtype for dtype in INTEGERS if dtype.kind == "int")
NUMBERS = (*FLOATS, *INTEGERS)
Drawer = Callable[[Draw, str], "TermInstance"]
HUB: dict[str, Drawer] = {}


@dataclass(frozen=True)
class TermInstance(Instance):
    """A term of one op over inputs; `written` are its attributes in MLIR, `given` those of the term."""

    given: Mapping[str, Any] = field(default_factory=dict)
    written: str = ""

    def roots(self) -> list[Term]:
        """The results as terms."""
        operands = [input_term(f"x{i}", TensorType(slot.dtype, slot.shape)) for i, slot in enumerate(self.slots) if slot is not None]
        op = get_op(self.op)
        missing = 0 if op.variadic else len(op.operands) - len(operands)
        term = make(op, [*operands, *[absent()] * missing], dict(self.given))
        return [get(term, i) for i in range(len(term.type.items))] if isinstance(term.type, TupleType) else [term]

    def text(self) -> str:
        """A module of this op alone."""
        results = [spelled(root.tensor) for root in self.roots()]
        types = [spelled(TensorType(slot.dtype, slot.shape)) for slot in self.slots if slot is not None]
        arguments = ", ".join(f"%x{i}: {type}" for i, type in enumerate(types))
        names = ", ".join(f"%r{i}" for i in range(len(results)))
        inside = f" <{{{self.written}}}>" if self.written else ""
        values = ", ".join(f"%x{i}" for i in range(len(types)))
        return (
            f"func.func public @main({arguments}) -> ({', '.join(results)}) {{\n"
            f'  {names} = "{self.op}"({values}){inside} : ({", ".join(types)}) -> ({", ".join(results)})\n'
            f"  return {names} : {', '.join(results)}\n}}"
        )

    def __str__(self) -> str:
        shown = ", ".join(f"{slot.dtype}{list(slot.shape)}" for slot in self.slots if slot is not None)
        return f"{self.op}({shown}{'; ' if self.given else ''}{', '.join(f'{k}={v}' for k, v in self.given.items())})"


def spelled(type: TensorType) -> str:
    """A type in MLIR."""
    return f"tensor<{''.join(f'{dim}x' for dim in type.dims)}{NAMES[type.dtype.name]}>"


def hub(*ops: str) -> Callable[[Drawer], Drawer]:
    """Enter the way to draw terms of some ops."""

    def enter(drawer: Drawer) -> Drawer:
        HUB.update(dict.fromkeys(ops, drawer))
        return drawer

    return enter


def term(
    op: str, slots: Sequence[Slot], given: Mapping[str, Any] | None = None, written: str = "", *, ulps: float = 0.0
) -> TermInstance:  # fmt: skip
    """An instance."""
    return TermInstance(op, tuple(slots), most_ulps=ulps, given=given or {}, written=written)


def array(values: Sequence[int]) -> str:
    """Integers in MLIR."""
    return f"array<i64: {', '.join(map(str, values))}>" if values else "array<i64>"


# ---------------------------------------------------------------- one operand

FUNCTION_ULPS = 256.0  # XLA is off that much in f64
EXACT = {"abs": (*FLOATS, *SIGNED), "negate": NUMBERS, "sign": (*FLOATS, *SIGNED), "floor": FLOATS, "ceil": FLOATS,
         "round_nearest_even": FLOATS, "round_nearest_afz": FLOATS, "not": (*INTEGERS, BOOL), "is_finite": FLOATS, "popcnt": INTEGERS,
         "count_leading_zeros": INTEGERS}  # fmt: skip
FUNCTIONS = "sqrt rsqrt cbrt exponential exponential_minus_one log log_plus_one logistic tanh tan sine cosine"
CHLO_FUNCTIONS = "acos acosh asin asinh atan atanh cosh sinh erf erfc erf_inv lgamma digamma bessel_i1e tan"


@hub(*(f"stablehlo.{name}" for name in (*EXACT, *FUNCTIONS.split())), *(f"chlo.{name}" for name in CHLO_FUNCTIONS.split()),
     "chlo.square", "chlo.is_pos_inf", "chlo.is_neg_inf", "chlo.is_inf")  # fmt: skip
def _unary(r: Draw, op: str) -> TermInstance:
    name = op.split(".")[1]
    dtypes = EXACT.get(name, FLOATS)
    ulps = 0.0 if name in EXACT or name.startswith(("is_", "square")) else FUNCTION_ULPS * (64 if op in WIDER else 1)
    return term(op, [Slot(r.choice(dtypes), r.wide())], ulps=ulps)


WIDER = ("chlo.lgamma", "chlo.digamma", "chlo.bessel_i1e", "chlo.polygamma", "chlo.zeta", "chlo.erf_inv", "chlo.acosh")


@hub("chlo.conj")
def _conjugate(r: Draw, op: str) -> TermInstance:
    return term(op, [Slot(DTYPES[r.choice(["c64", "c128"])], r.wide())])


@hub("chlo.constant_like")
def _like(r: Draw, op: str) -> TermInstance:
    dtype, value = r.choice(FLOATS), r.choice([0.0, 1.5, -2.0, 0.1])
    return term(op, [Slot(dtype, r.wide())], {"value": value}, f"value = {value!r} : {NAMES[dtype.name]}")


# ---------------------------------------------------------------- two operands


def not_zero(x: Any) -> Any:
    """Divisors of integers: neither 0 nor -1."""
    return np.where((x == 0) | (x == -1) if x.dtype.kind == "i" else x == 0, 3, x)


PAIRS: dict[str, tuple[DType, ...]] = {
    **dict.fromkeys(("add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum"), NUMBERS),
    **dict.fromkeys(("power", "atan2"), FLOATS), **dict.fromkeys(("and", "or", "xor"), (*INTEGERS, BOOL)),
    **dict.fromkeys(("shift_left", "shift_right_arithmetic", "shift_right_logical"), INTEGERS),
    "next_after": FLOATS, "polygamma": FLOATS[:2], "zeta": FLOATS[:2], "complex": FLOATS[:3],
}  # fmt: skip


def _fit(name: str, dtype: DType) -> Fit | None:
    if name in ("divide", "remainder") and dtype.kind in ("int", "uint"):
        return not_zero
    return (lambda y: y % dtype.bits) if name.startswith("shift") else None


def _ulps(name: str) -> float:
    return FUNCTION_ULPS * (4096 if name in ("polygamma", "zeta") else 1) if name in ("power", "atan2", "polygamma", "zeta") else 0.0


@hub(*(f"stablehlo.{name}" for name in PAIRS if name not in ("next_after", "polygamma", "zeta")), "chlo.next_after", "chlo.polygamma",
     "chlo.zeta")  # fmt: skip
def _binary(r: Draw, op: str) -> TermInstance:
    name = op.split(".")[1]
    dtype, shape = r.choice(PAIRS[name]), r.wide()
    first = (lambda x: np.floor(np.abs(np.nan_to_num(x, nan=1)) % 4)) if name == "polygamma" else None
    return term(op, [Slot(dtype, shape, first), Slot(dtype, shape, _fit(name, dtype))], ulps=_ulps(name))


@hub("chlo.mulhi")
def _upper(r: Draw, op: str) -> TermInstance:
    dtype, shape = r.choice(INTEGERS), r.wide()
    return term(op, [Slot(dtype, shape), Slot(dtype, shape)])


def _broadcast(r: Draw) -> tuple[Shape, Shape, dict[str, Any], str]:
    """Two shapes, and perhaps which dims of the result the one of lower rank has."""
    if r.maybe(0.4):
        whole = r.shape(1, 3)
        axes = sorted(r.sample(range(len(whole)), r.randint(0, len(whole) - 1)))
        part = tuple(1 if r.maybe(0.3) else whole[axis] for axis in axes)
        shapes = (part, whole) if r.maybe() else (whole, part)
        return *shapes, {"broadcast_dimensions": tuple(axes)}, f"broadcast_dimensions = {array(axes)}"
    one, other = r.shapes(2)
    return one, other, {}, ""


@hub(*(f"chlo.broadcast_{name}" for name in PAIRS))
def _broadcast_pair(r: Draw, op: str) -> TermInstance:
    name = op.removeprefix("chlo.broadcast_")
    dtype = r.choice(PAIRS[name])
    one, other, given, written = _broadcast(r)
    first = (lambda x: np.floor(np.abs(np.nan_to_num(x, nan=1)) % 4)) if name == "polygamma" else None
    return term(op, [Slot(dtype, one, first), Slot(dtype, other, _fit(name, dtype))], given, written, ulps=_ulps(name))


DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")


@hub("stablehlo.compare", "chlo.broadcast_compare")
def _compare(r: Draw, op: str) -> TermInstance:
    dtype, direction = r.choice((*NUMBERS, BOOL)), r.choice(DIRECTIONS)
    dialect = op.split(".")[0]
    one, other, given, written = _broadcast(r)
    if dialect == "stablehlo":
        one, given, written = other, {}, ""
    kind = "FLOAT" if dtype.kind == "float" else "SIGNED" if dtype.kind == "int" else "UNSIGNED"
    words = [f"comparison_direction = #{dialect}<comparison_direction {direction}>", f"compare_type = #{dialect}<comparison_type {kind}>"]
    return term(
        op, [Slot(dtype, one), Slot(dtype, other)], {"direction": direction, **given}, ", ".join([*words, *([written] if written else [])])
    )


@hub("chlo.broadcast_select", "stablehlo.select", "stablehlo.clamp")
def _three(r: Draw, op: str) -> TermInstance:
    dtype = r.choice((*NUMBERS, BOOL) if "select" in op else NUMBERS)
    if op == "chlo.broadcast_select":
        one, other, third = r.shapes(3)
        return term(op, [Slot(BOOL, one), Slot(dtype, other), Slot(dtype, third)])
    shape = r.wide()
    small = () if r.maybe() else shape
    if op == "stablehlo.select":
        return term(op, [Slot(BOOL, small), Slot(dtype, shape), Slot(dtype, shape)])
    return term(op, [Slot(dtype, small), Slot(dtype, shape), Slot(dtype, small)])


@hub("stablehlo.convert")
def _convert(r: Draw, op: str) -> TermInstance:
    source, target = r.choice((*NUMBERS, BOOL)), r.choice((*NUMBERS, BOOL))

    def inside(x: Any) -> Any:
        info = np.iinfo(target.numpy)
        return np.clip(np.nan_to_num(x.astype(np.float64), nan=1), float(info.min) / 2, float(info.max) / 2)

    fit = inside if source.kind == "float" and target.kind in ("int", "uint") else None
    return term(op, [Slot(source, r.wide(), fit)], {"dtype": target})


# ---------------------------------------------------------------- rows and products of groups


@hub("chlo.top_k")
def _top(r: Draw, op: str) -> TermInstance:
    shape = r.shape(1, 3, least=1) if r.maybe(0.7) else (2, 64)
    k = r.randint(0, shape[-1])
    return term(op, [Slot(r.choice(NUMBERS), shape)], {"k": k}, f"k = {k} : i64")
