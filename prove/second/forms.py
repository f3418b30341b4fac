"""Forms of the language that are no ops: numbers in every element, broadcasts in their spellings, reductions by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from coset.ir.builtin import DIMS
from coset.ir.term import CONSTANT, GET, Term
from coset.ir.types import TensorType
from coset.prove.second import syntax as l
from coset.prove.second.answer import CannotSay
from coset.prove.second.scope import Found
from coset.prove.second.unify import unify

Terms = Iterator[Found]
Match = Callable[[l.Expression, Term, Found], Terms]


def core(term: Term) -> Term | None:
    """The term of rank 0 that `term` has in every element, or None."""
    if isinstance(term.type, TensorType) and term.type.shape == ():
        return term
    return term.operands[0] if term.op.name == "stablehlo.broadcast_in_dim" and term.operands[0].tensor.shape == () else None


def match_number(e: l.Expression, term: Term, found: Found) -> Terms:
    """A value in every element: a constant that stores it, or a number of the host."""
    inner = core(term)
    if inner is None:
        return
    if inner.op is CONSTANT:
        dtype = inner.tensor.dtype
        element_of = inner.attribute("value").array().reshape(-1)[0]
        yield from unify(e, element_of, found, dtype)
    elif inner.op is DIMS:
        raise CannotSay("a number of the host in a sum or product")


def _splat(e: l.Call, term: Term, found: Found, match: Match) -> Terms:
    inner = core(term)
    if not found.scope.is_term(e.arguments[0]):
        yield from match_number(e.arguments[0], term, found)
    elif inner is not None:
        yield from match(e.arguments[0], inner, found)


def _bcast(e: l.Call, term: Term, found: Found, match: Match) -> Terms:
    """A broadcast; without axes the operand itself, too, where it has the shape already."""
    inner, named = e.arguments[0], dict(e.named)
    wanted = e.arguments[1] if len(e.arguments) > 1 else None
    if not found.scope.is_term(inner):
        yield from match_number(inner, term, found)
        return
    if term.op.name == "stablehlo.broadcast_in_dim":
        operand, axes = term.operands[0], term.attribute("broadcast_dimensions")
        rank = term.tensor.rank
        for after in match(inner, operand, found):
            fits = after if wanted is None else after.wait(wanted, tuple(term.tensor.dims))
            if "axes" in named:
                yield from unify(named["axes"], axes, fits, None)
            elif axes == tuple(range(rank - operand.tensor.rank, rank)):
                yield fits
        yield from _bcast_without_ones(e, term, found, match)
    elif term.op.name == "stablehlo.reshape" and "axes" not in named:
        yield from _bcast_of_ones(e, term, found, match)
    if "axes" not in named:  # equal shapes leave no trace; where axes are given the op itself is meant
        for after in match(inner, term, found):
            yield after if wanted is None else after.wait(wanted, tuple(term.tensor.dims))


def _bcast_of_ones(e: l.Call, term: Term, found: Found, match: Match) -> Terms:
    """A broadcast that only adds dims of 1 in front is a reshape in the normal form."""
    operand, shape = term.operands[0], term.tensor.dims
    added = len(shape) - operand.tensor.rank
    if added > 0 and shape[added:] == operand.tensor.dims and all(dim == 1 for dim in shape[:added]):
        for after in match(e.arguments[0], operand, found):
            yield after if len(e.arguments) < 2 else after.wait(e.arguments[1], tuple(shape))


def _bcast_without_ones(e: l.Call, term: Term, found: Found, match: Match) -> Terms:
    """A broadcast of dims of 1 is written as one of what is left when a reshape has taken them away."""
    operand, axes = term.operands[0], term.attribute("broadcast_dimensions")
    if operand.op.name != "stablehlo.reshape":
        return
    before = operand.operands[0]
    shape, named = term.tensor.dims, dict(e.named)
    rank = before.tensor.rank
    if "axes" in named or rank > len(shape):
        return
    own = tuple(range(len(shape) - rank, len(shape)))
    kept = tuple(axis for axis, dim in zip(own, before.tensor.dims, strict=True) if dim == shape[axis] and axis in axes)
    ones = [dim for axis, dim in zip(own, before.tensor.dims, strict=True) if axis not in kept]
    if kept == axes and all(dim == 1 for dim in ones):
        for after in match(e.arguments[0], before, found):
            yield after if len(e.arguments) < 2 else after.wait(e.arguments[1], tuple(shape))


def _full(e: l.Call, term: Term, found: Found, match: Match) -> Terms:
    value, shape, dtype = e.arguments
    if isinstance(term.type, TensorType):
        for inner in unify(dtype, term.tensor.dtype, found.wait(shape, tuple(term.tensor.dims)), None):
            yield from match_number(value, term, inner)


def _number(e: l.Call, term: Term, found: Found, match: Match) -> Terms:
    value, dtype = e.arguments
    if isinstance(term.type, TensorType) and term.type.shape == ():
        for inner in unify(dtype, term.tensor.dtype, found, None):
            yield from match_number(value, term, inner)


def _host(e: l.Call, term: Term, found: Found, match: Match) -> Terms:
    if not isinstance(term.type, TensorType) or term.type.shape != () or term.tensor.dtype.name != "i64":
        return
    if term.op is DIMS:
        yield from unify(e.arguments[0], term.attribute("dims")[0], found, None)
    elif term.op is CONSTANT:
        yield from unify(e.arguments[0], int(term.attribute("value").array()), found, None)


def _swap_last(e: l.Call, term: Term, found: Found, match: Match) -> Terms:
    rank = term.tensor.rank if isinstance(term.type, TensorType) else 0
    if term.op.name == "stablehlo.transpose" and term.attribute("permutation") == (*range(rank - 2), rank - 1, rank - 2):
        yield from match(e.arguments[0], term.operands[0], found)


def _get(e: l.Call, term: Term, found: Found, match: Match) -> Terms:
    if term.op is GET:
        for inner in match(e.arguments[0], term.operands[0], found):
            yield from unify(e.arguments[1], term.attribute("index"), inner, None)


def _fold(e: l.Call, term: Term, found: Found, match: Match) -> Terms:
    """`fold(f, xs..)`: f(f(a, b), c) .. of terms that are known."""
    name, *items = e.arguments
    if not isinstance(name, l.Name) or len(items) != 1 or not isinstance(items[0], l.Splice) or not isinstance(items[0].inner, l.Name):
        raise CannotSay("this fold")
    known = found.values.get(items[0].inner.name)
    if known is None:
        raise CannotSay("a fold over operands that are not known yet")
    op = found.scope.op(name.name)
    parts: list[Term] = []
    current = term
    for _ in range(len(known) - 1):
        if current.op is not op:
            return
        parts.insert(0, current.operands[1])
        current = current.operands[0]
    if (current, *parts) == known:
        yield found


def match_reduction(word: str, e: l.Call, term: Term, found: Found, match: Match) -> Terms:
    """A reduction by the name of what it does."""
    if term.op.name == "stablehlo.reduce" and term.attribute("combiner") == word and not term.regions:
        for inner in match(e.arguments[0], term.operands[0], found):
            yield from unify(e.arguments[1], term.attribute("dimensions"), inner, None)


SPECIAL: dict[str, Callable[[l.Call, Term, Found, Match], Terms]] = {
    "splat": _splat,
    "bcast": _bcast,
    "full": _full,
    "scalar": _number,
    "host": _host,
    "swap_last": _swap_last,
    "get": _get,
    "fold": _fold,
}
