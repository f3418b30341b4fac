"""The functions of the index algebra: one table with how each is written, what it is, and how it is computed."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from coset.ir import dims
from coset.ir.constants import Constant
from coset.ir.dims import Poly
from coset.ir.types import DType, TensorType
from coset.rules import constants as values
from coset.rules import lists
from coset.rules.arithmetic import add, arithmetic, as_list, at_most, contains, equal, exact, integer, less, nonzero, number, rounded
from coset.rules.noted import note
from coset.rules.scalar import Undefined


@dataclass(frozen=True)
class Function:
    """One function of the algebra: how it is written, what it is, how it is computed."""

    usage: str
    document: str
    compute: Callable[..., Any]
    arity: tuple[int, int]


def _static(value: Any) -> bool:
    items = as_list(value) if isinstance(value, tuple | TensorType) else (value,)
    if any(isinstance(item, Poly) for item in items):
        note("`static`")
    return all(isinstance(item, int) for item in items)


def _dtype(value: Any) -> DType:
    if isinstance(value, Constant):
        return value.type.dtype
    if not isinstance(value, TensorType):
        raise Undefined
    return value.dtype


def _element(value: Any) -> DType:
    if not isinstance(value, DType):
        raise Undefined
    return value


def _end(value: Any, sign: int) -> int | float:
    """The least (`sign` -1) or greatest (1) number of a dtype: what no number of it is below or above."""
    dtype = _element(value)
    if dtype.kind == "float":
        return sign * math.inf
    if dtype.kind not in ("int", "uint"):
        raise Undefined
    width = dtype.bits - (dtype.kind == "int")
    return (1 << width) - 1 if sign > 0 else -(1 << width) if dtype.kind == "int" else 0


def _widens(a: Any, b: Any) -> bool:
    """Every value of dtype `a` is one of dtype `b`."""
    if not isinstance(a, DType) or not isinstance(b, DType):
        raise Undefined
    if a == b:
        return True
    order = {"bf16": {"f32", "f64"}, "f16": {"f32", "f64"}, "f32": {"f64"}}
    if a.kind == "bool":
        return b.kind in ("int", "uint", "float") and b.name != "f8e8m0fnu"  # which has no 0
    if a.kind == "float":
        return b.name in order.get(a.name, set())
    if a.kind in ("int", "uint") and b.kind in ("int", "uint"):
        return (a.kind == b.kind and a.bits < b.bits) or (a.kind == "uint" and b.kind == "int" and a.bits < b.bits)
    precision = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}.get(b.name, 0)
    return a.kind in ("int", "uint") and a.bits - (a.kind == "int") <= precision


def _proved(*_: Any) -> bool:
    raise Undefined  # `judged` answers before


FUNCTIONS: dict[str, Function] = {
    "+": Function("a + b", "the sum of two numbers; of two lists their concatenation", add, (2, 2)),
    "-": Function("a - b", "the difference of two numbers", arithmetic(dims.subtract, operator.sub), (2, 2)),
    "*": Function("a * b", "the product of two numbers", arithmetic(dims.multiply, operator.mul), (2, 2)),
    "/": Function("a / b", "the quotient of two numbers; of dims undefined unless it is known to leave no rest", exact, (2, 2)),
    "//": Function("a // b", "the quotient rounded down", arithmetic(nonzero(dims.floordiv), operator.floordiv), (2, 2)),
    "%": Function("a % b", "the rest of a // b, with b's sign", arithmetic(nonzero(dims.mod), operator.mod), (2, 2)),
    "negate": Function("-a", "the negative of a number", arithmetic(partial(dims.multiply, -1), operator.neg), (1, 1)),
    "min": Function("min(a, b)", "the smaller number", arithmetic(dims.minimum, min), (2, 2)),
    "max": Function("max(a, b)", "the larger number", arithmetic(dims.maximum, max), (2, 2)),
    "==": Function("a == b", "equality; unknown for symbolic dims that differ by no number", equal, (2, 2)),
    "!=": Function("a != b", "the negation of ==", lambda a, b: not equal(a, b), (2, 2)),
    "<": Function("a < b", "order of dims; unknown unless they differ by a number", less, (2, 2)),
    "<=": Function("a <= b", "less or equal; of dims not b < a", at_most, (2, 2)),
    ">": Function("a > b", "b < a", lambda a, b: less(b, a), (2, 2)),
    ">=": Function("a >= b", "b <= a", lambda a, b: at_most(b, a), (2, 2)),
    "in": Function("a in p", "true when a is an item of the list p", contains, (2, 2)),
    "not": Function("not a", "the negation", lambda a: not a, (1, 1)),
    "and": Function("a and b", "both", lambda a, b: a and b, (2, 2)),
    "or": Function("a or b", "one of them", lambda a, b: a or b, (2, 2)),
    "if": Function("if c then a else b", "a where c holds, else b; the other one needs no value", lambda c, a, b: a if c else b, (3, 3)),
    "ceildiv": Function("ceildiv(a, b)", "the quotient rounded up", arithmetic(nonzero(dims.ceildiv), lambda a, b: -(-a // b)), (2, 2)),
    "floor": Function("floor(v)", "the greatest integer that is no more than a number", lambda v: rounded(v, math.floor), (1, 1)),
    "ceil": Function("ceil(v)", "the least integer that is no less than a number", lambda v: rounded(v, math.ceil), (1, 1)),
    "rank": Function("rank(x)", "the number of dims of a term variable", lambda t: len(as_list(t)), (1, 1)),
    "dims": Function("dims(x)", "the shape of a term variable or a constant, as a list", lambda t: as_list(t), (1, 1)),
    "dtype": Function("dtype(x)", "the element type of a term variable or a constant", _dtype, (1, 1)),
    "len": Function("len(p)", "the number of items of a list", lambda p: len(as_list(p)), (1, 1)),
    "range": Function("range(n) or range(a, b)", "0 .. n-1, or a .. b-1, as a list", lambda *a: tuple(range(*map(integer, a))), (1, 2)),
    "repeat": Function("repeat(v, n)", "the list of n times v", lambda v, n: (v,) * integer(n), (2, 2)),
    "sum": Function("sum(p)", "the sum of a list of dims", lists.total, (1, 1)),
    "all": Function("all(p)", "true when every item of a list of truths is true", lambda p: all(as_list(p)), (1, 1)),
    "any": Function("any(p)", "true when an item of a list of truths is true", lambda p: any(as_list(p)), (1, 1)),
    "product": Function("product(p)", "the product of a list of dims", lambda p: dims.product(number(d) for d in as_list(p)), (1, 1)),
    "item": Function("p[i]", "item i of a list; from the end where i < 0", lists.item, (2, 2)),
    "slice": Function("p[a:b]", "items a .. b-1 of a list", lists.slice, (3, 3)),
    "index": Function("index(p, v)", "the place of the first item of p that equals v", lists.index, (2, 2)),
    "reverse": Function("reverse(p)", "the items of p from the last to the first", lambda p: as_list(p)[::-1], (1, 1)),
    "put": Function("put(p, i, v)", "the list p with v as its item i", lists.put, (3, 3)),
    "drop": Function("drop(p, axes)", "the list p without the items at the axes", lists.drop, (2, 2)),
    "insert": Function("insert(p, axes, v)", "the list p with v put in, so that v stands at the axes of the result", lists.insert, (3, 3)),
    "ones_at": Function("ones_at(S, axes)", "the shape S with 1 at the axes", lists.ones_at, (2, 2)),
    "compose": Function("compose(p, q)", "the permutation of transpose(transpose(x, p), q)", lists.compose, (2, 2)),
    "inverse": Function("inverse(p)", "the permutation that undoes p", lists.inverse, (1, 1)),
    "permute": Function("permute(l, p)", "the list l[p[0]], l[p[1]], ...", lists.permute, (2, 2)),
    "sort": Function("sort(p)", "the integers of p in ascending order", lambda p: tuple(sorted(map(integer, as_list(p)))), (1, 1)),
    "without": Function("without(n, axes)", "0 .. n-1 less the axes: what a reduction keeps", lists.without, (2, 2)),
    "join": Function("join(A, B)", "the axes that reducing over A and then over B removes", lists.join, (2, 2)),
    "broadcast": Function("broadcast(A, B, ..)", "the common shape of shapes, numpy's way", lists.broadcast, (1, 99)),
    "placement": Function("placement(S, B)", "the axes of B that hold the dims of S, all other dims of B being 1", lists.placement, (2, 2)),
    "cut": Function("cut(S, n)", "the least number of leading dims of a shape whose product is n", lists.cut, (2, 2)),
    "runs": Function("runs(S, B)", "for each dim of B the axes of S that a reshape merges to it", lists.runs, (2, 2)),
    "relocated": Function(
        "relocated(A, S, B)", "where the axes A of a shape S are in B, which differs by dims of 1", lists.relocated, (3, 3)
    ),
    "joined": Function("joined(p)", "the lists of a list of lists as one list", lists.joined, (1, 1)),
    "integers": Function("integers(c)", "the elements of a small constant of integers, as a list", values.integers, (1, 1)),
    "diagonal": Function(
        "diagonal(c)", "k where the constant matrix c is true, or 0, exactly at [i, j] with j <= i + k", values.diagonal, (1, 1)
    ),
    "masking": Function("masking(c)", "the one other number of such a matrix of floats", values.masking, (1, 1)),
    "regrouped": Function(
        "regrouped(S, B, A)", "the axes of S that hold what the axes A of a reshape of it to B hold", lists.regrouped, (3, 3)
    ),
    "associative": Function(
        "associative(f)", "true where it is shown that f(f(a, b), c) is f(a, f(b, c)), as far as the promise asks", _proved, (1, 1)
    ),
    "commutative": Function("commutative(f)", "true where f(a, b) is shown to be f(b, a), as the promise asks", _proved, (1, 1)),
    "neutral": Function("neutral(f, v)", "true where f(v, a) and f(a, v) are shown to be a, as the promise asks", _proved, (2, 2)),
    "static": Function("static(e)", "true when a dim, list or shape has no symbol", _static, (1, 1)),
    "bits": Function("bits(T)", "the bits of one element of a dtype", lambda t: _element(t).bits, (1, 1)),
    "kind": Function("kind(T)", '"float", "int", "uint", "bool" or "complex": what a dtype is', lambda t: _element(t).kind, (1, 1)),
    "lowest": Function("lowest(T)", "the least number of a dtype, -inf of floats", lambda t: _end(t, -1), (1, 1)),
    "highest": Function("highest(T)", "the greatest number of a dtype, inf of floats", lambda t: _end(t, 1), (1, 1)),
    "lossless": Function("lossless(A, B)", "true when every value of dtype A is one of dtype B", _widens, (2, 2)),
    "batch_axes": Function("batch_axes(a, b)", "the batch axes of a @ b", lists.batch_axes, (2, 2)),
    "swap_axes": Function("swap_axes(x)", "the permutation that swaps the last two axes", lists.swap_last, (1, 1)),
    "expanding": Function(
        "expanding(x, S)", "the size-1 axes of x that broadcasting to S repeats (under a symbol too)", lists.expanding_axes, (2, 2)
    ),
}
