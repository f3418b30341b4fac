"""Rules whose shapes do not count: elementwise ops, reshapes and repeated numbers.

Take the elements of each tensor in row-major order. A reshape changes nothing of that row; an elementwise op works on rows place by
place, with a number for what has rank 0; and a repeated number is a row of it. So the row of each side is what the side
makes of rows, whatever the shapes are, and what is shown of tensors of rank 1 holds for all ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coset.ir.op import Op
from coset.ir.term import Term, topological
from coset.ir.types import TensorType
from coset.rules.algebra import Call, Literal, Ref, TypeOf
from coset.rules.parts import parts
from coset.rules.pattern import applications
from coset.rules.rule import Rule

_SHAPES = frozenset({"shape", "broadcast_dimensions"})  # attributes that say shapes and nothing else
_OF_RANK = frozenset({"rank", "len", "elements", "product", "static"})
_OF_SHAPE = frozenset({"pack", "dims", "dim", "ints", "axes", "permutation"})


def shapeless(rule: Rule) -> bool:
    """Whether `rule` has only such ops, and nothing else in it depends on shapes: its conditions, its cases or a number."""
    compiled = rule.compiled
    if not all(_fits(node.op) for pair in rule.pairs for side in pair for node in applications(side)):
        return False
    written = [
        value for side in (compiled.left, compiled.right) for attributes in side for name, value in attributes.items if name not in _SHAPES
    ]
    asked = [condition for condition in _asked(rule) if not _asks_for_none(condition)]
    return not any(_speaks_of_shapes(rule, whole) for whole in (*written, *asked))


def asks_rank(rule: Rule) -> bool:
    """Whether a shapeless rule asks which tensors have rank 0."""
    return any(map(_asks_for_none, _asked(rule)))


def _asked(rule: Rule) -> list[Any]:
    return [*rule.compiled.conditions, *(guard for guards in rule.compiled.guards for guard in guards)]


def _asks_for_none(condition: Any) -> bool:
    """Whether a condition compares a rank with 0: that has one answer for all ranks from 1 on."""
    if not isinstance(condition, Call) or condition.function not in ("==", "!="):
        return False
    rank, number = condition.arguments
    return isinstance(rank, Call) and rank.function == "rank" and isinstance(number, Literal) and number.value == 0


def _fits(op: Op) -> bool:
    return op.has("elementwise") or op.name in ("stablehlo.reshape", "stablehlo.broadcast_in_dim", "builtin.constant", "builtin.absent")


def _speaks_of_shapes(rule: Rule, whole: Any) -> bool:
    """Whether an expression has a dim, a list of them, or a type of which more counts than its elements."""
    inside = list(parts(whole))
    elements = {id(part.arguments[0]) for part in inside if isinstance(part, Call) and part.function == "dtype"}
    for part in inside:
        kind = rule.compiled.kinds.get(part.name) if isinstance(part, Ref) else None
        if isinstance(part, Ref) and (kind is None or kind.word in _OF_SHAPE):
            return True
        if (isinstance(part, TypeOf) and id(part) not in elements) or (isinstance(part, Call) and part.function in _OF_RANK):
            return True
    return False


def flat(pair: Sequence[Term]) -> bool:
    """Whether an instance has such ops only: what is broadcast has rank 0, and constants have one element."""
    return all(_of_rows(term) for term in topological(pair))


def _of_rows(term: Term) -> bool:
    if term.op.name == "stablehlo.broadcast_in_dim":
        return term.operands[0].tensor.rank == 0
    if term.op.name == "builtin.constant":
        return term.tensor.rank == 0
    return isinstance(term.type, TensorType) and (term.op.name == "builtin.input" or _fits(term.op))
