"""Values that are tried for what a rule leaves open in the attributes of a node: names that it binds, attributes that it does not write."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import ml_dtypes

from coset.ir.types import DTYPES, DType, TensorType, Type
from coset.rules.algebra import Call, Expression, Ref, Scope, evaluate
from coset.rules.candidates import attribute_values, enumerable, lengths, mixed, values_of
from coset.rules.instance import InstanceSearch
from coset.rules.meant import floats_asked_for, pinned
from coset.rules.parts import parts
from coset.rules.pattern import Application
from coset.rules.places import places
from coset.rules.rule import Rule
from coset.rules.uses import bounds

UNUSUAL = (-2.0, 0.0, math.inf, -math.inf, math.nan)  # numbers of constants that rules forget
EXTREME = 4.0  # how far from the largest and the least normal number of a float type extreme ones are


SAMPLES = 40  # choices of attributes that are tried for operands drawn at random


def _unusual(rule: Rule, values: Mapping[str, Any], search: InstanceSearch) -> tuple[float, ...]:
    """Numbers that a constant may hold too: at random now and then, for they keep many rules from firing; for proofs those that are real
    numbers where floats are. Where a rule speaks of real numbers half of those drawn are at an end of the range of the floats in `values`:
    what goes out of it is tested and not proved."""
    if search.random is None:
        return () if not search.exhaustive else UNUSUAL if rule.numerics.word == "exact" else UNUSUAL[:2]
    search.rare = search.random.random() < 0.4
    extreme = rule.numerics.word != "exact" and search.random.random() < 0.5
    return (search.random.choice(_extremes(values) if extreme else UNUSUAL),) if search.rare else ()


def _extremes(values: Mapping[str, Any]) -> tuple[float, ...]:
    """What products and quotients of take the widest float type of `values` out of its range."""
    floats = [value for value in values.values() if isinstance(value, DType) and value.kind == "float"]
    widest = ml_dtypes.finfo(max(floats, key=lambda each: each.bits, default=DTYPES["f32"]).numpy)  # type: ignore[no-untyped-call]
    return float(widest.max) / EXTREME, float(widest.tiny) / EXTREME


def left_open(attribute: Any, node: Application, operands: Sequence[Type], search: InstanceSearch) -> list[Any]:
    """Values of an attribute that the rule does not write."""
    found = (
        places(f"{attribute.name}{node.index}", None, node.op.name, attribute.name, operands, search.most_rank) if search.symbolic else []
    )
    if found:
        return found
    all_ = pinned(node.op, attribute.name)
    if all_ is not None:
        return search.arrange(all_)
    options = _or_default(attribute, operands, exhaustive=search.exhaustive)
    if search.random is not None and search.uneven:
        options = [*options, *mixed(attribute.kind, attribute.name, options, search.random)]
    return search.arrange(options)


def _or_default(attribute: Any, operands: Sequence[Type], *, exhaustive: bool) -> list[Any]:
    found = attribute_values(attribute, operands, exhaustive=exhaustive)
    return found if attribute.required else list(dict.fromkeys([attribute.default, *found]))


def _rank(given: Any) -> int | None:
    """The number of axes that `permutation(S)` or `axes(3)` speaks of; None of a symbol."""
    return len(given) if isinstance(given, tuple) else given if isinstance(given, int) else None


def open_values(
    rule: Rule, items: Sequence[tuple[str, Expression]], node: Application, scope: Scope, operands: Sequence[Type], search: InstanceSearch
) -> Iterator[dict[str, Any]]:
    """`scope.values` with each choice for the names that these attributes bind."""
    names: dict[str, list[Any]] = {}
    for name, value in items:
        for part in parts(value):
            if isinstance(part, Ref) and part.name not in scope.values and part.name not in names:
                names[part.name] = _values_of_name(rule, part, name, value, node, scope, operands, search)
    for choice in _combinations(list(names.values()), search):
        yield {**scope.values, **dict(zip(names, choice, strict=True))}


def _values_of_name(
    rule: Rule, part: Ref, name: str, value: Expression, node: Application, scope: Scope, operands: Sequence[Type], search: InstanceSearch
) -> list[Any]:
    """The values that are tried for a name, which stands in the attribute `name` of `node`."""
    kind = rule.compiled.kinds[part.name]
    if part.name in search.numbers and kind.word == "float":  # in a mirror the name may be that of something else
        return [search.numbers[part.name]]
    choices = search.choices.get(part.name)
    if choices is not None:
        return choices(scope.values)
    all_ = pinned(node.op, name) if isinstance(value, Ref) else None
    if all_ is not None:
        return search.arrange(all_)
    kinds = {attribute.name: attribute.kind for attribute in node.op.attributes}
    word = kind.word if kind.word not in ("any", "dims") else kinds.get(name, kind.word)
    if isinstance(value, Call) and value.function == "begin_end":
        word, name = "ints", "pads"
    rank = _rank(evaluate(kind.arguments[0], scope)) if kind.arguments else None
    hints = [value for value in rule.hints.get(part.name, ()) if isinstance(value, str) == (word == "string")]
    options = values_of(word, name, operands, rank, exhaustive=search.exhaustive)
    unusual = _unusual(rule, scope.values, search) if word == "float" and name == "value" else ()
    if search.random is not None and word == "float":
        options = list(dict.fromkeys([*options, *floats_asked_for(node.op)]))
    if search.random is None:
        options = [*options, *unusual]
    elif search.uneven:
        told = [*bounds(rule, part.name, word), *(lengths(operands, search.random) if word == "int" else ())]
        options = [*options, *told, *mixed(word, name, options, search.random)]
    found = places(part.name, value, node.op.name, name, operands, search.most_rank) if search.symbolic else []
    if found:
        return found
    if word in ("pack", "dims"):
        options = [*options, *(type.shape for type in (*scope.left, *scope.variables.values()) if isinstance(type, TensorType))]
    ordered = search.ordered(hints, options)
    enumerated = enumerable(word, name) or (word == "dtype" and bool(node.op.functions))
    if not enumerated and word != "pack":  # what a pack may be is said where it is drawn
        search.guess(f"`{part.name}`")
    return ordered if search.random is None else [*unusual, *ordered]


def _combinations(options: Sequence[Sequence[Any]], search: InstanceSearch) -> Iterator[tuple[Any, ...]]:
    """Choices of one value from each: all in order, or at random a few, half of them the first value, which is an attribute's default."""
    if search.random is None or math.prod(map(len, options)) <= SAMPLES:
        yield from search.first(itertools.product(*options), search.attempts)
    elif all(options):
        for _ in range(SAMPLES):
            yield tuple(each[0] if search.random.random() < 0.5 else search.random.choice(each) for each in options)
