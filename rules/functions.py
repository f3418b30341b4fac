"""The functions of the index algebra: one table with how each is written, what it is, and how it is computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from coset.rules.operations import OPERATIONS
from coset.rules.scalar import Undefined


@dataclass(frozen=True)
class Function:
    """One function of the algebra: how it is written, what it is, how it is computed."""

    usage: str
    document: str
    compute: Callable[..., Any]
    arity: tuple[int, int]


def _elsewhere(*_: Any) -> Any:
    raise Undefined  # `evaluate` answers these before


FUNCTIONS: dict[str, Function] = {
    "+": Function("a + b", "the sum of two numbers; of two lists their concatenation", OPERATIONS["+"], (2, 2)),
    "-": Function("a - b", "the difference of two numbers", OPERATIONS["-"], (2, 2)),
    "*": Function("a * b", "the product of two numbers", OPERATIONS["*"], (2, 2)),
    "/": Function("a / b", "the quotient of two numbers; of dims undefined unless it is known to leave no rest", OPERATIONS["/"], (2, 2)),
    "//": Function("a // b", "the quotient rounded down", OPERATIONS["//"], (2, 2)),
    "%": Function("a % b", "the rest of a // b, with b's sign", OPERATIONS["%"], (2, 2)),
    "negate": Function("-a", "the negative of a number", OPERATIONS["negate"], (1, 1)),
    "min": Function("min(a, b)", "the smaller number", OPERATIONS["min"], (2, 2)),
    "max": Function("max(a, b)", "the larger number", OPERATIONS["max"], (2, 2)),
    "==": Function("a == b", "equality; unknown for symbolic dims that differ by no number", OPERATIONS["=="], (2, 2)),
    "!=": Function("a != b", "the negation of ==", OPERATIONS["!="], (2, 2)),
    "<": Function("a < b", "order of dims; unknown unless they differ by a number", OPERATIONS["<"], (2, 2)),
    "<=": Function("a <= b", "less or equal; of dims not b < a", OPERATIONS["<="], (2, 2)),
    ">": Function("a > b", "b < a", OPERATIONS[">"], (2, 2)),
    ">=": Function("a >= b", "b <= a", OPERATIONS[">="], (2, 2)),
    "in": Function("a in p", "true when a is an item of the list p", OPERATIONS["in"], (2, 2)),
    "not": Function("not a", "the negation", OPERATIONS["not"], (1, 1)),
    "and": Function("a and b", "both", lambda a, b: a and b, (2, 2)),
    "or": Function("a or b", "one of them", lambda a, b: a or b, (2, 2)),
    "if": Function("if c then a else b", "a where c holds, else b; the other one needs no value", lambda c, a, b: a if c else b, (3, 3)),
    "ceildiv": Function("ceildiv(a, b)", "the quotient rounded up", OPERATIONS["ceildiv"], (2, 2)),
    "floor": Function("floor(v)", "the greatest integer that is no more than a number", OPERATIONS["floor"], (1, 1)),
    "ceil": Function("ceil(v)", "the least integer that is no less than a number", OPERATIONS["ceil"], (1, 1)),
    "rank": Function("rank(x)", "the number of dims of a term variable", OPERATIONS["rank"], (1, 1)),
    "dims": Function("dims(x)", "the shape of a term variable or a constant, as a list", OPERATIONS["dims"], (1, 1)),
    "dtype": Function("dtype(x)", "the element type of a term variable or a constant", OPERATIONS["dtype"], (1, 1)),
    "len": Function("len(p)", "the number of items of a list", OPERATIONS["len"], (1, 1)),
    "range": Function("range(n) or range(a, b)", "0 .. n-1, or a .. b-1, as a list", OPERATIONS["range"], (1, 2)),
    "repeat": Function("repeat(v, n)", "the list of n times v", OPERATIONS["repeat"], (2, 2)),
    "sum": Function("sum(p)", "the sum of a list of dims", OPERATIONS["sum"], (1, 1)),
    "all": Function("all(p)", "true when every item of a list of truths is true", OPERATIONS["all"], (1, 1)),
    "any": Function("any(p)", "true when an item of a list of truths is true", OPERATIONS["any"], (1, 1)),
    "product": Function("product(p)", "the product of a list of dims", OPERATIONS["product"], (1, 1)),
    "item": Function("p[i]", "item i of a list; from the end where i < 0", OPERATIONS["item"], (2, 2)),
    "slice": Function("p[a:b]", "items a .. b-1 of a list", OPERATIONS["slice"], (3, 3)),
    "index": Function("index(p, v)", "the place of the first item of p that equals v", OPERATIONS["index"], (2, 2)),
    "reverse": Function("reverse(p)", "the items of p from the last to the first", OPERATIONS["reverse"], (1, 1)),
    "put": Function("put(p, i, v)", "the list p with v as its item i", OPERATIONS["put"], (3, 3)),
    "drop": Function("drop(p, axes)", "the list p without the items at the axes", OPERATIONS["drop"], (2, 2)),
    "insert": Function(
        "insert(p, axes, v)", "the list p with v put in, so that v stands at the axes of the result", OPERATIONS["insert"], (3, 3)
    ),
    "ones_at": Function("ones_at(S, axes)", "the shape S with 1 at the axes", OPERATIONS["ones_at"], (2, 2)),
    "compose": Function("compose(p, q)", "the permutation of transpose(transpose(x, p), q)", OPERATIONS["compose"], (2, 2)),
    "inverse": Function("inverse(p)", "the permutation that undoes p", OPERATIONS["inverse"], (1, 1)),
    "permute": Function("permute(l, p)", "the list l[p[0]], l[p[1]], ...", OPERATIONS["permute"], (2, 2)),
    "sort": Function("sort(p)", "the integers of p in ascending order", OPERATIONS["sort"], (1, 1)),
    "without": Function("without(n, axes)", "0 .. n-1 less the axes: what a reduction keeps", OPERATIONS["without"], (2, 2)),
    "join": Function("join(A, B)", "the axes that reducing over A and then over B removes", OPERATIONS["join"], (2, 2)),
    "broadcast": Function("broadcast(A, B, ..)", "the common shape of shapes, numpy's way", OPERATIONS["broadcast"], (1, 99)),
    "placement": Function(
        "placement(S, B)", "the axes of B that hold the dims of S, all other dims of B being 1", OPERATIONS["placement"], (2, 2)
    ),
    "cut": Function("cut(S, n)", "the least number of leading dims of a shape whose product is n", OPERATIONS["cut"], (2, 2)),
    "runs": Function("runs(S, B)", "for each dim of B the axes of S that a reshape merges to it", OPERATIONS["runs"], (2, 2)),
    "relocated": Function(
        "relocated(A, S, B)", "where the axes A of a shape S are in B, which differs by dims of 1", OPERATIONS["relocated"], (3, 3)
    ),
    "joined": Function("joined(p)", "the lists of a list of lists as one list", OPERATIONS["joined"], (1, 1)),
    "integers": Function("integers(c)", "the elements of a small constant of integers, as a list", OPERATIONS["integers"], (1, 1)),
    "diagonal": Function(
        "diagonal(c)", "k where the constant matrix c is true, or 0, exactly at [i, j] with j <= i + k", OPERATIONS["diagonal"], (1, 1)
    ),
    "masking": Function("masking(c)", "the one other number of such a matrix of floats", OPERATIONS["masking"], (1, 1)),
    "regrouped": Function(
        "regrouped(S, B, A)", "the axes of S that hold what the axes A of a reshape of it to B hold", OPERATIONS["regrouped"], (3, 3)
    ),
    "associative": Function(
        "associative(f)", "true where it is shown that f(f(a, b), c) is f(a, f(b, c)), as far as the promise asks", _elsewhere, (1, 1)
    ),
    "commutative": Function("commutative(f)", "true where f(a, b) is shown to be f(b, a), as the promise asks", _elsewhere, (1, 1)),
    "neutral": Function("neutral(f, v)", "true where f(v, a) and f(a, v) are shown to be a, as the promise asks", _elsewhere, (2, 2)),
    "static": Function("static(e)", "true when a dim, list or shape has no symbol", OPERATIONS["static"], (1, 1)),
    "bits": Function("bits(T)", "the bits of one element of a dtype", OPERATIONS["bits"], (1, 1)),
    "kind": Function("kind(T)", '"float", "int", "uint", "bool" or "complex": what a dtype is', OPERATIONS["kind"], (1, 1)),
    "lowest": Function("lowest(T)", "the least number of a dtype, -inf of floats", OPERATIONS["lowest"], (1, 1)),
    "highest": Function("highest(T)", "the greatest number of a dtype, inf of floats", OPERATIONS["highest"], (1, 1)),
    "lossless": Function("lossless(A, B)", "true when every value of dtype A is one of dtype B", OPERATIONS["lossless"], (2, 2)),
    "batch_axes": Function("batch_axes(a, b)", "the batch axes of a @ b", OPERATIONS["batch_axes"], (2, 2)),
    "swap_axes": Function("swap_axes(x)", "the permutation that swaps the last two axes", OPERATIONS["swap_axes"], (1, 1)),
    "expanding": Function(
        "expanding(x, S)", "the size-1 axes of x that broadcasting to S repeats (under a symbol too)", OPERATIONS["expanding"], (2, 2)
    ),
}
