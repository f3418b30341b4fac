"""Elementwise equations bit by bit with Z3: IEEE 754 arithmetic of each format, bit-vectors that wrap around, truth values.

Both sides are taken apart down to what is not elementwise: such a term is a leaf, the same one wherever it stands. Functions that Z3 has
no theory of (exponential, ..) stay uninterpreted. The meanings are those of the evaluator: a quotient by 0 of integers is -1 (all
ones), a rest by 0 the dividend, a shift by the width or more 0 or the sign, 0.0 is above -0.0 for maximum and minimum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import z3

from coset.ir.term import Term, topological
from coset.ir.types import DTYPES, DType
from coset.prove import obligations

STEPS = 20_000_000  # of Z3, about four seconds: counted, so that what is shown does not depend on what else the machine does
FORMATS = {
    "f16": (5, 11),
    "bf16": (8, 8),
    "f32": (8, 24),
    "f64": (11, 53),
    "f8e5m2": (5, 3),
}  # exponent and significand bits (IEEE formats)
_TO_NEAREST = z3.RNE()


@dataclass(frozen=True)
class Complex:
    """A complex number as its parts."""

    real: Any
    imag: Any


PARTS = {"c64": "f32", "c128": "f64"}


class Unsupported(Exception):
    """Something that has no translation."""


def equal(left: Term, right: Term, exceptions: frozenset[str], truths: Sequence[Term] = ()) -> bool:
    """True when Z3 shows that every element of both terms is the same for all values of the leaves where `truths` hold; all NaNs are one.

    `exceptions` may allow zeros of different sign.

    Raises:
        Unsupported: an element type has no theory.
    """
    translation = _Translation()
    a, b = (translation.element(side) for side in (left, right))
    parts = zip((a.real, a.imag), (b.real, b.imag), strict=True) if isinstance(a, Complex) else ((a, b),)
    same = z3.And(*(_same(x, y, exceptions) for x, y in parts))
    solver = z3.Solver()
    solver.add(z3.Not(same), *map(translation.element, truths))
    return obligations.unsatisfiable(solver, "an element of the sides differs bit by bit", steps=STEPS)


def _same(a: Any, b: Any, exceptions: frozenset[str]) -> Any:
    return z3.Or(a == b, z3.fpEQ(a, b)) if "signed_zero" in exceptions and z3.is_fp(a) else a == b


class _Translation:
    """Elements of terms as Z3's terms."""

    def __init__(self) -> None:
        self.done: dict[Term, Any] = {}
        self.leaves: dict[Term, Any] = {}

    def element(self, root: Term) -> Any:
        """The element of `root`, by what is elementwise in it."""
        root = _primitive(root)
        for term in topological([root]):
            if term not in self.done and _passes(term):
                self.done[term] = self._translated(term)
        return self._of(root)

    def _of(self, term: Term) -> Any:
        if term in self.done:
            return self.done[term]
        if term not in self.leaves:
            self.leaves[term] = _leaf(f"x{len(self.leaves)}", term.tensor.dtype)
        return self.leaves[term]

    def _translated(self, term: Term) -> Any:
        dtype = term.tensor.dtype
        if term.op.name == "builtin.constant":
            return _constant(term.attribute("value").array().reshape(-1)[0], dtype)
        operands = [self._of(operand) for operand in term.operands]
        if term.op.name == "stablehlo.broadcast_in_dim":
            return operands[0]
        name = term.op.name.split(".", 1)[1]
        kinds = [operand.tensor.dtype for operand in term.operands]
        if any(type.kind == "complex" for type in (dtype, *kinds)):
            return _of_complex(term, name, operands, kinds)
        if name == "convert":
            return _converted(operands[0], kinds[0], dtype)
        if name == "compare":
            return _compared(term.attribute("direction"), operands[0], operands[1], kinds[0])
        if name == "select":
            return z3.If(*operands)
        if name == "clamp":
            low, x, high = operands
            return _TABLES[dtype.kind]["minimum"](_TABLES[dtype.kind]["maximum"](x, low, dtype), high, dtype)
        table = _TABLES.get(kinds[0].kind if kinds else dtype.kind, {})
        if name in table and not term.attributes:
            return table[name](*operands, kinds[0])
        sorts = [operand.sort() for operand in operands]
        return z3.Function(f"{term.op.name} {term.attributes} {kinds}", *sorts, _sort(dtype))(*operands)


def _leaf(name: str, dtype: DType) -> Any:
    if dtype.name in PARTS:
        sort = _sort(DTYPES[PARTS[dtype.name]])
        return Complex(z3.Const(f"{name} real", sort), z3.Const(f"{name} imag", sort))
    return z3.Const(name, _sort(dtype))


def _of_complex(term: Term, name: str, operands: list[Any], kinds: list[DType]) -> Any:
    """What works part by part; products, quotients and the rest have no translation.

    Raises:
        Unsupported: another op.
    """
    dtype = term.tensor.dtype
    if name == "select" and dtype.name in PARTS:
        condition, a, b = operands
        return Complex(z3.If(condition, a.real, b.real), z3.If(condition, a.imag, b.imag))
    if name == "compare" and term.attribute("direction") in ("EQ", "NE"):
        a, b = operands
        same = z3.And(z3.fpEQ(a.real, b.real), z3.fpEQ(a.imag, b.imag))
        return same if term.attribute("direction") == "EQ" else z3.Not(same)
    if name == "complex":
        return Complex(*operands)
    if name in ("real", "imag"):
        return getattr(operands[0], name)
    if name in ("add", "subtract", "negate"):
        part = DTYPES[PARTS[dtype.name]]
        return Complex(*(_FLOATS[name](*(getattr(x, each) for x in operands), part) for each in ("real", "imag")))
    if name == "convert" and dtype.name in PARTS and kinds[0].name in PARTS:
        old, new = DTYPES[PARTS[kinds[0].name]], DTYPES[PARTS[dtype.name]]
        return Complex(*(_converted(part, old, new) for part in (operands[0].real, operands[0].imag)))
    if name == "convert" and dtype.name in PARTS:
        part = DTYPES[PARTS[dtype.name]]
        return Complex(_converted(operands[0], kinds[0], part), z3.fpZero(_sort(part), False))
    if name == "convert" and dtype.kind == "bool":
        return z3.Not(z3.And(z3.fpIsZero(operands[0].real), z3.fpIsZero(operands[0].imag)))
    raise Unsupported(next(type.name for type in (dtype, *kinds) if type.kind == "complex"))


def _passes(term: Term) -> bool:
    """What is looked into: elementwise ops, numbers, and numbers (or scalars) in every element."""
    if term.op.name == "builtin.constant":
        return bool(term.attribute("value").array().size == 1)
    if term.op.name == "stablehlo.broadcast_in_dim":
        return term.operands[0].tensor.rank == 0
    return bool(term.op.has("elementwise"))


def _primitive(root: Term) -> Term:
    """`root` with defined elementwise ops expanded."""
    from coset.dialects.expansion import expanded

    return expanded([root], lambda term: not term.op.has("elementwise"))[0]


def _sort(dtype: DType) -> Any:
    if dtype.kind == "bool":
        return z3.BoolSort()
    if dtype.kind in ("int", "uint"):
        return z3.BitVecSort(dtype.bits)
    if dtype.name in FORMATS:
        return z3.FPSort(*FORMATS[dtype.name])
    raise Unsupported(dtype.name)


def _constant(value: Any, dtype: DType) -> Any:
    if dtype.kind == "bool":
        return z3.BoolVal(bool(value))
    if dtype.kind in ("int", "uint"):
        return z3.BitVecVal(int(value), dtype.bits)
    if dtype.name in PARTS:
        part = DTYPES[PARTS[dtype.name]]
        return Complex(_constant(value.real, part), _constant(value.imag, part))
    number, sort = float(value), _sort(dtype)
    if np.isnan(number):
        return z3.fpNaN(sort)
    if np.isinf(number):
        return z3.fpInfinity(sort, number < 0)
    return z3.fpZero(sort, bool(np.signbit(number))) if number == 0 else z3.FPVal(number, sort)


def _converted(x: Any, source: DType, target: DType) -> Any:
    if source == target:
        return x
    if source.kind == "bool":
        return z3.If(x, _constant(1, target), _constant(0, target))
    if target.kind == "bool":
        return z3.Not(z3.fpIsZero(x)) if source.kind == "float" else x != 0
    if source.kind == target.kind == "float":
        return z3.fpFPToFP(_TO_NEAREST, x, _sort(target))
    if target.kind == "float":
        return (z3.fpSignedToFP if source.kind == "int" else z3.fpUnsignedToFP)(_TO_NEAREST, x, _sort(target))
    if source.kind == "float":
        return z3.Function(f"convert {source} {target}", _sort(source), _sort(target))(x)
    if target.bits <= source.bits:
        return z3.Extract(target.bits - 1, 0, x)
    return (z3.SignExt if source.kind == "int" else z3.ZeroExt)(target.bits - source.bits, x)


def _compared(direction: str, a: Any, b: Any, dtype: DType) -> Any:
    if dtype.kind == "bool":
        a, b = (z3.If(x, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1)) for x in (a, b))
    if direction in ("EQ", "NE"):
        same = z3.fpEQ(a, b) if dtype.kind == "float" else a == b
        return same if direction == "EQ" else z3.Not(same)
    if dtype.kind == "float":
        return {"LT": z3.fpLT, "LE": z3.fpLEQ, "GT": z3.fpGT, "GE": z3.fpGEQ}[direction](a, b)
    signed = dtype.kind == "int"
    table: dict[str, Callable[[Any, Any], Any]] = {
        "LT": (lambda x, y: x < y) if signed else z3.ULT, "LE": (lambda x, y: x <= y) if signed else z3.ULE,
        "GT": (lambda x, y: x > y) if signed else z3.UGT, "GE": (lambda x, y: x >= y) if signed else z3.UGE,
    }  # fmt: skip
    return table[direction](a, b)


def _extreme(larger: bool) -> Callable[[Any, Any, DType], Any]:
    def of(a: Any, b: Any, _: DType) -> Any:
        first = z3.fpGT(a, b) if larger else z3.fpLT(a, b)
        tie = z3.And(z3.fpEQ(a, b), z3.fpIsNegative(b) if larger else z3.fpIsNegative(a))  # of the zeros
        nan = z3.Or(z3.fpIsNaN(a), z3.fpIsNaN(b))
        return z3.If(nan, z3.fpNaN(a.sort()), z3.If(z3.Or(first, tie), a, b))

    return of


def _sign(x: Any, dtype: DType) -> Any:
    one = z3.If(z3.fpIsNegative(x), _constant(-1.0, dtype), _constant(1.0, dtype))
    return z3.If(z3.Or(z3.fpIsZero(x), z3.fpIsNaN(x)), x, one)


def _rounded(mode: Any) -> Callable[[Any, DType], Any]:
    return lambda x, _: z3.fpRoundToIntegral(mode, x)


Table = dict[str, Callable[..., Any]]
_FLOATS: Table = {
    "add": lambda a, b, _: z3.fpAdd(_TO_NEAREST, a, b), "subtract": lambda a, b, _: z3.fpSub(_TO_NEAREST, a, b),
    "multiply": lambda a, b, _: z3.fpMul(_TO_NEAREST, a, b), "divide": lambda a, b, _: z3.fpDiv(_TO_NEAREST, a, b),
    "negate": lambda a, _: z3.fpNeg(a), "abs": lambda a, _: z3.fpAbs(a), "sqrt": lambda a, _: z3.fpSqrt(_TO_NEAREST, a),
    "maximum": _extreme(True), "minimum": _extreme(False), "sign": _sign,
    "floor": _rounded(z3.RTN()), "ceil": _rounded(z3.RTP()),
    "round_nearest_even": _rounded(_TO_NEAREST), "round_nearest_afz": _rounded(z3.RNA()),
    "is_finite": lambda a, _: z3.Not(z3.Or(z3.fpIsNaN(a), z3.fpIsInf(a))),
    "is_nan": lambda a, _: z3.fpIsNaN(a), "is_inf": lambda a, _: z3.fpIsInf(a),
}  # fmt: skip


def _quotient(a: Any, b: Any, dtype: DType) -> Any:
    return z3.If(b == 0, z3.BitVecVal(-1, dtype.bits), a / b) if dtype.kind == "int" else z3.UDiv(a, b)


def _rest(a: Any, b: Any, dtype: DType) -> Any:
    return z3.SRem(a, b) if dtype.kind == "int" else z3.URem(a, b)


def _ordered(larger: bool) -> Callable[[Any, Any, DType], Any]:
    return lambda a, b, dtype: z3.If(_compared("GE" if larger else "LE", a, b, dtype), a, b)


def _integer_sign(a: Any, dtype: DType) -> Any:
    one = z3.BitVecVal(1, dtype.bits)
    return z3.If(a == 0, a, z3.If(a < 0, -one, one)) if dtype.kind == "int" else z3.If(a == 0, a, one)


_INTEGERS: Table = {
    "add": lambda a, b, _: a + b, "subtract": lambda a, b, _: a - b, "multiply": lambda a, b, _: a * b, "negate": lambda a, _: -a,
    "divide": _quotient, "remainder": _rest, "maximum": _ordered(True), "minimum": _ordered(False), "sign": _integer_sign,
    "abs": lambda a, dtype: z3.If(a < 0, -a, a) if dtype.kind == "int" else a,
    "and": lambda a, b, _: a & b, "or": lambda a, b, _: a | b, "xor": lambda a, b, _: a ^ b, "not": lambda a, _: ~a,
    "shift_left": lambda a, b, _: a << b, "shift_right_arithmetic": lambda a, b, _: a >> b,
    "shift_right_logical": lambda a, b, _: z3.LShR(a, b),
}  # fmt: skip
_BOOLS: Table = {
    "and": lambda a, b, _: z3.And(a, b), "or": lambda a, b, _: z3.Or(a, b), "xor": lambda a, b, _: z3.Xor(a, b),
    "not": lambda a, _: z3.Not(a),
    "add": lambda a, b, _: z3.Or(a, b), "multiply": lambda a, b, _: z3.And(a, b),
    "maximum": lambda a, b, _: z3.Or(a, b), "minimum": lambda a, b, _: z3.And(a, b),
}  # fmt: skip
_TABLES: dict[str, Table] = {"float": _FLOATS, "int": _INTEGERS, "uint": _INTEGERS, "bool": _BOOLS}


def signature(pair: Sequence[Term]) -> str:
    """What `equal` depends on: the two sides with leaves numbered, without shapes."""
    numbers: dict[Term, int] = {}
    parts: list[str] = []
    for root in pair:
        top = _primitive(root)
        for term in topological([top]):
            if term in numbers:
                continue
            numbers[term] = len(numbers)
            dtype = getattr(term.type, "dtype", None)
            if not _passes(term):
                parts.append(f"{numbers[term]}: {dtype}")
            elif term.op.name == "stablehlo.broadcast_in_dim":
                parts.append(f"{numbers[term]} = {numbers[term.operands[0]]}")
            else:
                operands = [numbers[operand] for operand in term.operands]
                parts.append(f"{numbers[term]} = {term.op.name} {term.attributes} {operands} {dtype}")
        parts.append(f"-> {numbers[top]}")
    return "\n".join(parts)
