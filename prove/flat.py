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
from coset.rules.algebra import Call, Ref, parts
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
    written = [value for side in (compiled.left, compiled.right) for attributes in side for name, value in attributes.items if name not in _SHAPES]
    asked: list[Any] = [*compiled.conditions, *(guard for guards in compiled.guards for guard in guards)]
    return not any(_speaks_of_shapes(rule, part) for whole in (*written, *asked) for part in parts(whole))


def _fits(op: Op) -> bool:
    return op.has("elementwise") or op.name in ("stablehlo.reshape", "stablehlo.broadcast_in_dim", "builtin.constant", "builtin.absent")


def _speaks_of_shapes(rule: Rule, part: Any) -> bool:
    if isinstance(part, Ref):
        kind = rule.compiled.kinds.get(part.name)
        return kind is None or kind.word in _OF_SHAPE
    return isinstance(part, Call) and part.function in _OF_RANK


def flat(pair: Sequence[Term]) -> bool:
    """Whether an instance has such ops only: what is broadcast has rank 0, and constants have one element."""
    return all(_of_rows(term) for term in topological(pair))


def _of_rows(term: Term) -> bool:
    if term.op.name == "stablehlo.broadcast_in_dim":
        return term.operands[0].tensor.rank == 0
    if term.op.name == "builtin.constant":
        return term.tensor.rank == 0
    return isinstance(term.type, TensorType) and (term.op.name == "builtin.input" or _fits(term.op))
