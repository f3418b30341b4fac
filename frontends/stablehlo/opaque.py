"""Operations that we do not know, kept as text: what they say between their operands and their types."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

_NAME = re.compile(r'"(?:[^"\\]|\\.)*"|%[\w$.\-]+(?:#\d+)?')
_EFFECTFUL = frozenset({
    "stablehlo.rng", "stablehlo.infeed", "stablehlo.outfeed", "stablehlo.send", "stablehlo.recv",
})  # fmt: skip
_PURE_DIALECTS = frozenset({"stablehlo", "chlo", "arith", "math", "tensor", "shape", "linalg", "tosa", "complex", "mhlo", "sdy"})


def captured(op: Any) -> list[Any]:
    """The outer values that the regions of `op` use, each once, in order of first use."""
    found: dict[Any, None] = {}
    _capture(op, set(), found)
    return list(found)


def _capture(op: Any, inside: set[Any], found: dict[Any, None]) -> None:
    """Regions nest shallowly: recursion over nesting."""
    for region in op.regions:
        for block in region.blocks:
            inside.update(block.arguments)
            for inner in block.operations:
                for value in inner.operands:
                    if value not in inside:
                        found.setdefault(value)
                _capture(inner.operation, inside, found)
                inside.update(inner.results)


def opaque_payload(op: Any, outer: Sequence[Any]) -> str:
    """The text of `op` after its operands up to its types. `%@i` stands for the i-th of `outer`; names of its own begin with `%_`."""
    text = op.get_asm(print_generic_op_form=True, use_local_scope=True)
    _, _, rest = text.partition(f'"{op.name}"(')
    _, _, body = rest.partition(")")
    body = body[: body.rindex(" : (")]
    places = {value.get_name(use_local_scope=True): f"%@{index}" for index, value in enumerate(outer)}

    own: dict[str, str] = {}

    def renamed(match: re.Match[str]) -> str:
        name = match.group(0)
        if name.startswith('"'):
            return name
        if name in places:
            return places[name]
        base, mark, part = name.partition("#")
        return own.setdefault(base, f"%_{len(own)}") + mark + part

    return _NAME.sub(renamed, body)


def _effects(op: Any) -> bool:
    """True when the operation may not be doubled, dropped or moved."""
    return any(_effect(inner) for inner in _nested(op))


def _effect(op: Any) -> bool:
    if op.name == "stablehlo.custom_call":
        return "has_side_effect" in op.attributes and bool(op.attributes["has_side_effect"].value)
    if op.name.partition(".")[0] not in _PURE_DIALECTS and op.name not in ("func.call", "func.return"):
        return True
    return op.name in _EFFECTFUL


def _nested(op: Any) -> Iterator[Any]:
    yield op
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from _nested(inner.operation)


EFFECTS = _effects
