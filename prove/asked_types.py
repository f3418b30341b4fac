"""What a rule looks at: which element types it must be shown for, and whether its numbers and shapes are left open."""

from __future__ import annotations

from coset.ir.types import DTYPES
from coset.rules.algebra import Call, Ref
from coset.rules.instances import shapes_given
from coset.rules.parts import parts
from coset.rules.pattern import Application, applications
from coset.rules.places import FAIR, PLACES, is_open
from coset.rules.rule import Rule
from coset.rules.uses import expressions

WIDTHS = ("i64", "i16", "i8", "i4", "i2", "u64", "u32", "u16", "u4", "u2")  # Z3's bit-vectors have a width each


def has_places(rule: Rule) -> bool:
    """Whether the left side has numbers that say where an op reads, or shapes only given, and nothing tells symbols from numbers."""
    told = any(isinstance(part, Call) and part.function not in FAIR for whole in expressions(rule) for part in parts(whole))
    return not told and (bool(shapes_given(rule)) or any(_leaves_open(rule, node) for node in applications(rule.left)))


def _leaves_open(rule: Rule, node: Application) -> bool:
    written = rule.compiled.left[node.index]
    unwritten = PLACES.get(node.op.name, {}).keys() - {name for name, _ in written.items} if written.rest is not None else ()
    return bool(unwritten) or any(is_open(node.op.name, name, value) for name, value in written.items)


def has_widths(rule: Rule) -> bool:
    """Whether an element type of the rule may be an integer of some other width."""
    return any(DTYPES[name] in kind.classes for kind in rule.compiled.kinds.values() if kind.word == "dtype" for name in WIDTHS)


def asks_types(rule: Rule) -> bool:
    """Whether a condition, or a number that the rule computes, depends on an element type."""
    compiled = rule.compiled
    names = {name for name, kind in compiled.kinds.items() if kind.word == "dtype"}
    asked = [*compiled.conditions, *(guard for guards in compiled.guards for guard in guards)]
    inside = [part for whole in asked for part in parts(whole)]
    calls = [part for whole in expressions(rule) for part in parts(whole) if isinstance(part, Call) and part.function in _OF_TYPES]
    return bool(calls) or any(isinstance(part, Ref) and part.name in names for part in inside)


_OF_TYPES = frozenset({"bits", "kind", "lowest", "highest", "lossless"})


def only_moves(rule: Rule) -> bool:
    """Whether a rule only says which element goes where: of one element type what is shown holds for all."""
    return all(node.op.has("movement") for node in _nodes(rule))


def names_types(rule: Rule) -> bool:
    """Whether a rule has something that is not the same for all floats: a constant, which is rounded, a conversion, or a definition, in
    which both may be."""
    ops = {node.op for node in _nodes(rule)}
    return any(not op.name.startswith("stablehlo.") or op.name == "stablehlo.convert" for op in ops)


def computes_numbers(rule: Rule, generic: frozenset[str]) -> bool:
    """Whether something other than the op that stays uninterpreted works on numbers."""
    return any(not (node.op.name in generic or node.op.has("movement") or node.op.name == "builtin.absent") for node in _nodes(rule))


def _nodes(rule: Rule) -> list[Application]:
    """The applications of both sides."""
    return [node for pair in rule.pairs for side in pair for node in applications(side)]
