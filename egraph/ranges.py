"""Whether a rule may fire by the range of what it stores: its grades for the float types at hand, or the growth of the very instance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any
from weakref import WeakKeyDictionary

from coset.ir.builtin import absent
from coset.ir.dims import Dim
from coset.ir.errors import CosetError
from coset.ir.term import AttributeItems, Term, exact_key, input_term, make
from coset.ir.types import TensorType, Type
from coset.rules import payloads
from coset.rules.applied import built
from coset.rules.equation import Decision
from coset.rules.pattern import Application, Pattern, Variable, applications
from coset.rules.ranges import ALWAYS, COUNTED, FEW, NEVER, class_of, verdict_of
from coset.rules.rule import Rule


def in_range(rule: Rule, given: Sequence[AttributeItems], variables: Sequence[Type], decision: Decision) -> bool:
    """Whether what `rule` stores is admitted where it is decided so: a situation, with the attributes of its left side. What is known of
    all instances is asked first; a rule without grades is admitted. So is what opens a defined op, or rules would not see what is in it:
    a program that stores its parts is weighed as a whole (`coset.weights`)."""
    if not rule.grades or not rule.keeps_range or rule.definition is not None:
        return True
    tensors = [type for type in (*variables, *decision.types) if isinstance(type, TensorType)]
    classes = {class_of(type.dtype) for type in tensors if type.dtype.kind == "float"}
    verdicts = {name: verdict_of(rule, name) for name in classes}
    if all(verdict == ALWAYS for verdict in verdicts.values()):
        return True
    if len(classes) == 1:
        ((name, verdict),) = verdicts.items()
        if verdict == NEVER:
            return False
        if verdict == COUNTED and _folded(rule, variables, decision) <= FEW[name]:
            return True
    known = _KNOWN.setdefault(rule, {})
    key = _without_sizes(rule, (*given, *decision.attributes), tensors)
    if key is None or key not in known:
        answer = _admitted(rule, given, variables, decision)
        if key is not None:
            known[key] = answer
        return answer
    return known[key]


_KNOWN: WeakKeyDictionary[Rule, dict[Any, bool]] = WeakKeyDictionary()  # answers of rules that fold nothing, for all sizes


def _without_sizes(rule: Rule, given: Sequence[AttributeItems], tensors: Sequence[TensorType]) -> Any:
    """What the growth of an instance depends on where its ops fold no elements: element types, numbers and axes, but no sizes. None where
    something is folded, or not known to be."""
    nodes = (*applications(rule.left), *applications(rule.right))
    if any(map(_may_fold, nodes)):
        return None
    types = tuple((type.dtype, None if type.shape is None else len(type.shape)) for type in tensors)
    kept = [(name, len(value) if name == "shape" else exact_key(value)) for items in given for name, value in items or ()]
    return types, tuple(kept)


def _admitted(rule: Rule, given: Sequence[AttributeItems], variables: Sequence[Type], decision: Decision) -> bool:
    """Whether the growth of the instance is admitted; what cannot be shown is not."""
    from coset.prove.grades import constants_of  # which few searches need
    from coset.prove.growth import growth

    terms = {name: input_term(name, type) for name, type in zip(rule.variables, variables, strict=True)}
    try:
        left = _left(rule.left, given, terms)
        return growth(left, built(rule.right, decision, terms), constants=constants_of(rule)).admitted
    except CosetError:
        return False


def _left(pattern: Pattern, given: Sequence[AttributeItems], terms: Mapping[str, Term]) -> Term:
    if isinstance(pattern, Variable):
        return terms[pattern.name]
    if pattern.op.name == "builtin.absent":
        return absent()
    operands = [_left(operand, given, terms) for operand in pattern.operands]
    attributes, regions = payloads.parted(pattern.op, given[pattern.index])
    return make(pattern.op, operands, dict(attributes), regions)


_SURE = frozenset(("builtin.constant", "builtin.absent", "builtin.tuple"))  # of what folds nothing, beside ops on single elements


def _may_fold(node: Application) -> bool:
    """Whether an op may fold elements."""
    return not (node.op.has("elementwise") or node.op.has("movement") or node.op.name in _SURE)


def _folded(rule: Rule, variables: Sequence[Type], decision: Decision) -> float:
    """How many elements the ops of the right side fold, all together at most; infinite where that is not told by their attributes."""
    types = dict(zip(rule.variables, variables, strict=True))
    total = 1.0
    for node in applications(rule.right):
        if not _may_fold(node):
            continue
        operands = [types[each.name] if isinstance(each, Variable) else decision.types[each.index] for each in node.operands]
        count = _count(node, operands, dict(decision.attributes[node.index]))
        if count is None or not all(isinstance(dim, int) for dim in count):
            return float("inf")
        total *= prod(dim for dim in count if isinstance(dim, int))
    return total


def _count(node: Application, operands: Sequence[Type], attributes: Mapping[str, Any]) -> Sequence[Dim] | None:
    """The dims that an op folds; None where that is not known."""
    shapes = [type.shape or () for type in operands if isinstance(type, TensorType)]
    if node.op.name == "stablehlo.reduce":
        return [shapes[0][axis] for axis in attributes["dimensions"]]
    if node.op.name == "stablehlo.dot_general":
        return [shapes[0][axis] for axis in attributes["lhs_contract"]]
    if node.op.name == "stablehlo.convolution":
        return shapes[1][1:]
    if node.op.name == "stablehlo.reduce_window":
        return tuple(attributes["window_dimensions"])
    return None
