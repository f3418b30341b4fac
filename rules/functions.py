"""The functions of the index algebra: one table with how each is written, what it is, and how it is computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from coset.rules.operations import OPERATIONS
from coset.rules.scalar import Undefined


@dataclass(frozen=True)
class AlgebraFunction:
    """One function of the algebra: how it is written, what it is, how it is computed."""

    usage: str
    document: str
    compute: Callable[..., Any]
    arity: tuple[int, int]


def _elsewhere(*_: Any) -> Any:
    raise Undefined  # `evaluate` answers these before


FUNCTIONS: dict[str, AlgebraFunction] = {
    "+": AlgebraFunction("a + b", "the sum of two numbers; of two lists their concatenation", OPERATIONS["+"], (2, 2)),
    "-": AlgebraFunction("a - b", "the difference of two numbers", OPERATIONS["-"], (2, 2)),
    "*": AlgebraFunction("a * b", "the product of two numbers", OPERATIONS["*"], (2, 2)),
    "/": AlgebraFunction(
        "a / b", "the quotient of two numbers; of dims undefined unless it is known to leave no rest", OPERATIONS["/"], (2, 2)
    ),
    "//": AlgebraFunction("a // b", "the quotient rounded down", OPERATIONS["//"], (2, 2)),
    "%": AlgebraFunction("a % b", "the rest of a // b, with b's sign", OPERATIONS["%"], (2, 2)),
    "negate": AlgebraFunction("-a", "the negative of a number", OPERATIONS["negate"], (1, 1)),
    "min": AlgebraFunction("min(a, b)", "the smaller number", OPERATIONS["min"], (2, 2)),
    "max": AlgebraFunction("max(a, b)", "the larger number", OPERATIONS["max"], (2, 2)),
    "==": AlgebraFunction("a == b", "equality; unknown for symbolic dims that differ by no number", OPERATIONS["=="], (2, 2)),
    "!=": AlgebraFunction("a != b", "the negation of ==", OPERATIONS["!="], (2, 2)),
    "<": AlgebraFunction("a < b", "order of dims; unknown unless they differ by a number", OPERATIONS["<"], (2, 2)),
    "<=": AlgebraFunction("a <= b", "less or equal; of dims not b < a", OPERATIONS["<="], (2, 2)),
    ">": AlgebraFunction("a > b", "b < a", OPERATIONS[">"], (2, 2)),
    ">=": AlgebraFunction("a >= b", "b <= a", OPERATIONS[">="], (2, 2)),
    "in": AlgebraFunction("a in p", "true when a is an item of the list p", OPERATIONS["in"], (2, 2)),
    "not": AlgebraFunction("not a", "the negation", OPERATIONS["not"], (1, 1)),
    "and": AlgebraFunction("a and b", "both", lambda a, b: a and b, (2, 2)),
    "or": AlgebraFunction("a or b", "one of them", lambda a, b: a or b, (2, 2)),
    "if": AlgebraFunction(
        "if c then a else b", "a where c holds, else b; the other one needs no value", lambda c, a, b: a if c else b, (3, 3)
    ),
    "ceildiv": AlgebraFunction("ceildiv(a, b)", "the quotient rounded up", OPERATIONS["ceildiv"], (2, 2)),
    "floor": AlgebraFunction("floor(v)", "the greatest integer that is no more than a number", OPERATIONS["floor"], (1, 1)),
    "ceil": AlgebraFunction("ceil(v)", "the least integer that is no less than a number", OPERATIONS["ceil"], (1, 1)),
    "rank": AlgebraFunction("rank(x)", "the number of dims of a term variable", OPERATIONS["rank"], (1, 1)),
    "dims": AlgebraFunction("dims(x)", "the shape of a term variable or a constant, as a list", OPERATIONS["dims"], (1, 1)),
    "dtype": AlgebraFunction("dtype(x)", "the element type of a term variable or a constant", OPERATIONS["dtype"], (1, 1)),
    "len": AlgebraFunction("len(p)", "the number of items of a list", OPERATIONS["len"], (1, 1)),
    "range": AlgebraFunction("range(n) or range(a, b)", "0 .. n-1, or a .. b-1, as a list", OPERATIONS["range"], (1, 2)),
    "repeat": AlgebraFunction("repeat(v, n)", "the list of n times v", OPERATIONS["repeat"], (2, 2)),
    "sum": AlgebraFunction("sum(p)", "the sum of a list of dims", OPERATIONS["sum"], (1, 1)),
    "all": AlgebraFunction("all(p)", "true when every item of a list of truths is true", OPERATIONS["all"], (1, 1)),
    "any": AlgebraFunction("any(p)", "true when an item of a list of truths is true", OPERATIONS["any"], (1, 1)),
    "product": AlgebraFunction("product(p)", "the product of a list of dims", OPERATIONS["product"], (1, 1)),
    "item": AlgebraFunction("p[i]", "item i of a list; from the end where i < 0", OPERATIONS["item"], (2, 2)),
    "slice": AlgebraFunction("p[a:b]", "items a .. b-1 of a list", OPERATIONS["slice"], (3, 3)),
    "index": AlgebraFunction("index(p, v)", "the place of the first item of p that equals v", OPERATIONS["index"], (2, 2)),
    "reverse": AlgebraFunction("reverse(p)", "the items of p from the last to the first", OPERATIONS["reverse"], (1, 1)),
    "put": AlgebraFunction("put(p, i, v)", "the list p with v as its item i", OPERATIONS["put"], (3, 3)),
    "drop": AlgebraFunction("drop(p, axes)", "the list p without the items at the axes", OPERATIONS["drop"], (2, 2)),
    "insert": AlgebraFunction(
        "insert(p, axes, v)", "the list p with v put in, so that v stands at the axes of the result", OPERATIONS["insert"], (3, 3)
    ),
    "ones_at": AlgebraFunction("ones_at(S, axes)", "the shape S with 1 at the axes", OPERATIONS["ones_at"], (2, 2)),
    "compose": AlgebraFunction("compose(p, q)", "the permutation of transpose(transpose(x, p), q)", OPERATIONS["compose"], (2, 2)),
    "inverse": AlgebraFunction("inverse(p)", "the permutation that undoes p", OPERATIONS["inverse"], (1, 1)),
    "permute": AlgebraFunction("permute(l, p)", "the list l[p[0]], l[p[1]], ...", OPERATIONS["permute"], (2, 2)),
    "sort": AlgebraFunction("sort(p)", "the integers of p in ascending order", OPERATIONS["sort"], (1, 1)),
    "without": AlgebraFunction("without(n, axes)", "0 .. n-1 less the axes: what a reduction keeps", OPERATIONS["without"], (2, 2)),
    "join": AlgebraFunction("join(A, B)", "the axes that reducing over A and then over B removes", OPERATIONS["join"], (2, 2)),
    "broadcast": AlgebraFunction("broadcast(A, B, ..)", "the common shape of shapes, numpy's way", OPERATIONS["broadcast"], (1, 99)),
    "placement": AlgebraFunction(
        "placement(S, B)", "the axes of B that hold the dims of S, all other dims of B being 1", OPERATIONS["placement"], (2, 2)
    ),
    "cut": AlgebraFunction("cut(S, n)", "the least number of leading dims of a shape whose product is n", OPERATIONS["cut"], (2, 2)),
    "runs": AlgebraFunction("runs(S, B)", "for each dim of B the axes of S that a reshape merges to it", OPERATIONS["runs"], (2, 2)),
    "relocated": AlgebraFunction(
        "relocated(A, S, B)", "where the axes A of a shape S are in B, which differs by dims of 1", OPERATIONS["relocated"], (3, 3)
    ),
    "begin_end": AlgebraFunction(
        "begin_end(p)", "ONNX's `pads`, first those before each dim, then those behind, as a list of pairs", OPERATIONS["begin_end"], (1, 1)
    ),
    "joined": AlgebraFunction("joined(p)", "the lists of a list of lists as one list", OPERATIONS["joined"], (1, 1)),
    "integers": AlgebraFunction("integers(c)", "the elements of a small constant of integers, as a list", OPERATIONS["integers"], (1, 1)),
    "diagonal": AlgebraFunction(
        "diagonal(c)", "k where the constant matrix c is true, or 0, exactly at [i, j] with j <= i + k", OPERATIONS["diagonal"], (1, 1)
    ),
    "masking": AlgebraFunction("masking(c)", "the one other number of such a matrix of floats", OPERATIONS["masking"], (1, 1)),
    "regrouped": AlgebraFunction(
        "regrouped(S, B, A)", "the axes of S that hold what the axes A of a reshape of it to B hold", OPERATIONS["regrouped"], (3, 3)
    ),
    "associative": AlgebraFunction(
        "associative(f)", "true where it is shown that f(f(a, b), c) is f(a, f(b, c)), as far as the promise asks", _elsewhere, (1, 1)
    ),
    "commutative": AlgebraFunction("commutative(f)", "true where f(a, b) is shown to be f(b, a), as the promise asks", _elsewhere, (1, 1)),
    "neutral": AlgebraFunction(
        "neutral(f, v)", "true where f(v, a) and f(a, v) are shown to be a, as the promise asks", _elsewhere, (2, 2)
    ),
    "static": AlgebraFunction("static(e)", "true when a dim, list or shape has no symbol", OPERATIONS["static"], (1, 1)),
    "bits": AlgebraFunction("bits(T)", "the bits of one element of a dtype", OPERATIONS["bits"], (1, 1)),
    "kind": AlgebraFunction("kind(T)", '"float", "int", "uint", "bool" or "complex": what a dtype is', OPERATIONS["kind"], (1, 1)),
    "lowest": AlgebraFunction("lowest(T)", "the least number of a dtype, -inf of floats", OPERATIONS["lowest"], (1, 1)),
    "highest": AlgebraFunction("highest(T)", "the greatest number of a dtype, inf of floats", OPERATIONS["highest"], (1, 1)),
    "lossless": AlgebraFunction("lossless(A, B)", "true when every value of dtype A is one of dtype B", OPERATIONS["lossless"], (2, 2)),
    "batch_axes": AlgebraFunction("batch_axes(a, b)", "the batch axes of a @ b", OPERATIONS["batch_axes"], (2, 2)),
    "swap_axes": AlgebraFunction("swap_axes(x)", "the permutation that swaps the last two axes", OPERATIONS["swap_axes"], (1, 1)),
    "expanding": AlgebraFunction(
        "expanding(x, S)", "the size-1 axes of x that broadcasting to S repeats (under a symbol too)", OPERATIONS["expanding"], (2, 2)
    ),
}
