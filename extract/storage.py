"""Which constant classes are computed at build time: all but those whose value is far larger than what it is made of."""

from __future__ import annotations

from dataclasses import dataclass

from coset.egraph.saturated import ENode, Saturated
from coset.extract.greedy import tree_order
from coset.extract.problem import Choice, Picks, Problem
from coset.extract.work import WorkSizes
from coset.ir.op import AT_RUN_TIME, Op
from coset.ir.term import CONSTANT, AttributeItems
from coset.ir.types import AbsentType, TensorType
from coset.targets.target import Target

BROADCAST = "stablehlo.broadcast_in_dim"
SPLAT = 1 << 22  # bytes up to which the ONNX printer writes a splat as a constant


@dataclass(frozen=True)
class Folded:
    """Classes that cost nothing at run time, those of them whose values are worth storing in the program, and for each class of
    constants the e-node that makes it."""

    classes: frozenset[int]
    stored: frozenset[int]
    picks: Picks


def folded(saturated: Saturated, target: Target) -> Folded:
    """The classes that cost nothing at run time: every constant where the target's runtime folds when it loads.

    Else only what is worth storing. Left out: what would be larger than the target's `Storing` allows or is kept by it, and a broadcast
    as such (but for splats, which are printed as constants), since most users read it as a view and folding would store it.
    """
    sizes = WorkSizes({})
    known = {number for number in saturated.constant if is_static(saturated, number)}
    classes = [_choices(saturated, number, known, sizes) for number in range(len(saturated.nodes))]
    order, found, _ = tree_order(Problem([[entry for _, entry in choices] for choices in classes], ()), [1] * len(classes))
    picks = {number: classes[number][index][0] for number, index in found.items()}
    made_of: dict[int, float] = {}
    stored: set[int] = set()
    for number in order:
        node = saturated.nodes[number][picks[number]]
        own = sizes.bytes(saturated.types[number])
        made_of[number] = own if node.op is CONSTANT else sum(made_of[child] for child in sorted(set(node.children)))
        if node.op.name == BROADCAST:
            worth = sizes.elements(saturated.types[node.children[0]]) == 1 and own <= SPLAT
        elif _name(node) in target.storing.kept:
            worth = False
        else:
            worth = own <= max(target.storing.small, target.storing.growth * made_of[number])
        if worth and number in known:
            stored.add(number)
    return Folded(frozenset(known & picks.keys() if target.folds_constants else stored), frozenset(stored), picks)


def computable(op: Op, attributes: AttributeItems) -> bool:
    """True when the op can be computed at build time from known operands: an opaque one by its own runtime, if it has no effect;
    an input never, whatever it is equal to."""
    if op.has("leaf"):
        return op.name in ("builtin.constant", "builtin.absent")
    if not op.traits.isdisjoint(AT_RUN_TIME):
        return False
    return not op.has("foreign") or not dict(attributes)["effect"]


def is_static(saturated: Saturated, number: int) -> bool:
    """True when the values of a class are tensors without symbols in their shape."""
    type = saturated.types[number]
    return isinstance(type, TensorType) and type.static is not None


def _name(node: ENode) -> str:
    """The name that ONNX has for an op: of an opaque one that of the node."""
    return str(dict(node.attributes)["name"]) if node.op.has("foreign") else node.op.name.removeprefix("onnx.")


def _choices(saturated: Saturated, number: int, known: set[int], sizes: WorkSizes) -> list[tuple[int, Choice]]:
    """The e-nodes over constants only, at the price of computing them: the bytes that they make."""
    if isinstance(saturated.types[number], AbsentType):
        return [(0, Choice(0.0, ()))]
    if number not in known:
        return []
    found = []
    for index, node in enumerate(saturated.nodes[number]):
        if _computable(saturated, node, known):
            cost = 0.0 if node.op is CONSTANT else sizes.bytes(saturated.types[number]) + 1.0
            found.append((index, Choice(cost, tuple(sorted(set(node.children))))))
    return found


def _computable(saturated: Saturated, node: ENode, known: set[int]) -> bool:
    if node.regions or not computable(node.op, node.attributes):
        return False
    return all(child in known or isinstance(saturated.types[child], AbsentType) for child in node.children)
