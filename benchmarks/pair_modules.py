"""Texts of StableHLO modules that differ from a given one in one place: a number, an op, a comparison, the order of operands."""

from __future__ import annotations

import re
from collections.abc import Iterator

SWAPS = {
    "stablehlo.add": "stablehlo.subtract", "stablehlo.subtract": "stablehlo.add", "stablehlo.multiply": "stablehlo.add",
    "stablehlo.divide": "stablehlo.multiply", "stablehlo.maximum": "stablehlo.minimum", "stablehlo.minimum": "stablehlo.maximum",
    "stablehlo.exponential": "stablehlo.tanh", "stablehlo.tanh": "stablehlo.logistic", "stablehlo.rsqrt": "stablehlo.sqrt",
    "stablehlo.sqrt": "stablehlo.rsqrt", "stablehlo.sine": "stablehlo.cosine", "stablehlo.cosine": "stablehlo.sine",
    "stablehlo.negate": "stablehlo.abs", "stablehlo.and": "stablehlo.or", "stablehlo.logistic": "stablehlo.tanh",
}  # fmt: skip
DIRECTIONS = {"LT": "LE", "LE": "GE", "GT": "LT", "GE": "GT", "EQ": "NE", "NE": "EQ"}
FLOAT = re.compile(r"dense<(-?\d+\.\d+(?:[eE][+-]?\d+)?)>")
INTEGER = re.compile(r"dense<(-?\d+)>")
LIST = re.compile(r"(?:array<i64: |dims = \[|dim = |\[)((?:\d+)(?:, \d+)*)[\]>,\s:]")
OPERANDS = re.compile(r"(stablehlo\.(?:subtract|divide|power|select|compare|dot_general|dot|concatenate)) (?:\w+, )?(%\w+), (%\w+)")


def text_edits(text: str) -> Iterator[tuple[str, str, str]]:
    """Kind, place and text of all differences; not all of them are modules."""
    for found in FLOAT.finditer(text):
        value = float(found[1])
        for kind, other in (("constant float", value + 1), ("constant float", -value), ("constant float", value * 1.125)):
            if other != value:
                yield kind, f"{found[1]} -> {other:e}", _put(text, found, 1, f"{other:e}")
    for found in INTEGER.finditer(text):
        for other in (int(found[1]) + 1, int(found[1]) - 1):
            yield "constant int", f"{found[1]} -> {other}", _put(text, found, 1, str(other))
    for found in LIST.finditer(text):
        numbers = [int(each) for each in found[1].split(",")]
        for place, each in enumerate(numbers):
            for other in (each + 1, each - 1):
                changed = [*numbers[:place], other, *numbers[place + 1 :]]
                yield "attribute ints", f"{numbers} -> {changed} at {found.start()}", _put(text, found, 1, ", ".join(map(str, changed)))
        for place in range(len(numbers) - 1):
            changed = [*numbers[:place], numbers[place + 1], numbers[place], *numbers[place + 2 :]]
            if changed != numbers:
                yield "attribute order", f"{numbers} -> {changed} at {found.start()}", _put(text, found, 1, ", ".join(map(str, changed)))
    for found in OPERANDS.finditer(text):
        if found[2] != found[3]:
            swapped = f"{text[: found.start(2)]}{found[3]}{text[found.end(2) : found.start(3)]}{found[2]}{text[found.end(3) :]}"
            yield "operands swapped", f"{found[1]} at {found.start()}", swapped
    for found in re.finditer(r"stablehlo\.[a-z_]+\b", text):
        if found[0] in SWAPS:
            yield "another op", f"{found[0]} at {found.start()}", _put(text, found, 0, SWAPS[found[0]])
    for found in re.finditer(r"stablehlo\.compare +(\w\w),", text):
        yield "attribute word", f"{found[1]} at {found.start()}", _put(text, found, 1, DIRECTIONS[found[1]])


def _put(text: str, found: re.Match[str], group: int, other: str) -> str:
    return f"{text[: found.start(group)]}{other}{text[found.end(group) :]}"
