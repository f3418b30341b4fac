"""Whether a rule may fire by the range of what it stores: its grades for the float types at hand, or the growth of the very instance.

What opens a defined op always fires, or rules would not see what is in it; but of its parts some may be too heavy to be stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any
from weakref import WeakKeyDictionary

from coset.egraph.kept_ranges import KeptRanges
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

MOST_NODES = 40  # of a right side whose instances are looked at: the linear programs of 70 took half a minute


def in_range(rule: Rule, given: Sequence[AttributeItems], variables: Sequence[Type], decision: Decision) -> bool:
    """Whether what `rule` stores is admitted where it is decided so: a situation, with the attributes of its left side. What is known of
    all instances is asked first; a rule without grades is admitted, and so is what opens a defined op (`too_heavy`) or finds one, which
    stores nothing but the result."""
    if rule.definition is not None:
        return True
    told = _told(rule, variables, decision)
    return not _heavy_nodes(rule, given, variables, decision) if told is None else told


def too_heavy(rule: Rule, given: Sequence[AttributeItems], variables: Sequence[Type], decision: Decision) -> frozenset[int]:
    """The nodes of the right side of a rule that opens a defined op, by index, of which the range of their type leaves no room to be
    stored: what the op keeps inside weighs more there than its inputs and its result. None of another rule."""
    if rule.definition is None or rule.recognises or _told(rule, variables, decision):
        return frozenset()
    return _heavy_nodes(rule, given, variables, decision)


def _told(rule: Rule, variables: Sequence[Type], decision: Decision) -> bool | None:
    """Whether all instances of a rule with these float types and so few elements are admitted (True), or none is; None where it depends."""
    if not rule.grades or not rule.keeps_range:
        return True
    tensors = _tensors(variables, decision)
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
    return None


def _tensors(variables: Sequence[Type], decision: Decision) -> list[TensorType]:
    return [type for type in (*variables, *decision.types) if isinstance(type, TensorType)]


def _heavy_nodes(rule: Rule, given: Sequence[AttributeItems], variables: Sequence[Type], decision: Decision) -> frozenset[int]:
    """The nodes of the right side whose values are not admitted."""
    known = _KNOWN.setdefault(rule, {})
    tensors = _tensors(variables, decision)
    attributes = (*given, *decision.attributes)
    key = _without_sizes(rule, attributes, tensors)
    if key in known:
        return known[key]
    name = KEPT.key(rule, *((variables, decision.types, attributes) if key is None else key))
    found = KEPT.get(name)
    if found is None:
        found = _outweighing(rule, given, variables, decision)
        KEPT.put(name, found)
    if key is not None:
        known[key] = found
    return found


_KNOWN: WeakKeyDictionary[Rule, dict[Any, frozenset[int]]] = WeakKeyDictionary()  # answers of rules that fold nothing, for all sizes
KEPT = KeptRanges()


def _without_sizes(rule: Rule, given: Sequence[AttributeItems], tensors: Sequence[TensorType]) -> Any:
    """What the growth of an instance depends on where its ops fold no elements: element types, numbers and axes, but no sizes. None where
    something is folded, or not known to be."""
    nodes = (*(applications(rule.left) if rule.definition is None else ()), *applications(rule.right))  # an op is what it opens to
    if any(map(_may_fold, nodes)):
        return None
    types = tuple((type.dtype, None if type.shape is None else len(type.shape)) for type in tensors)
    kept = [(name, len(value) if name == "shape" else exact_key(value)) for items in given for name, value in items or ()]
    return types, tuple(kept)


def _outweighing(rule: Rule, given: Sequence[AttributeItems], variables: Sequence[Type], decision: Decision) -> frozenset[int]:
    """The nodes of the right side of an instance whose growth is not admitted; all where nothing can be shown, or not soon."""
    from coset.prove.grades import constants_of  # which few searches need
    from coset.prove.growth import growth

    terms = {name: input_term(name, type) for name, type in zip(rule.variables, variables, strict=True)}
    every = frozenset(node.index for node in applications(rule.right))
    if len(every) > MOST_NODES:
        return every
    try:
        left, right = _left(rule.left, given, terms), built(rule.right, decision, terms)
        found = growth(left, right, constants=constants_of(rule), opens=rule.definition is not None, deciding=True).by_term
    except CosetError:
        return every
    return frozenset(
        node.index for node, term in _nodes(rule.right, right) if (value := found.get(term)) is not None and not value.admitted
    )


def _nodes(pattern: Pattern, term: Term) -> Iterator[tuple[Application, Term]]:
    """The nodes of a side with the terms that it was built as."""
    waiting = [(pattern, term)]
    while waiting:
        node, made = waiting.pop()
        if isinstance(node, Application):
            yield node, made
            waiting += zip(node.operands, made.operands, strict=True)


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
