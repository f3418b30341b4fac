"""A target whose kernels have other numbers than those of a file, as a file that is based on it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from coset.targets.target import Curve, Kernel, Rate, Target

CURVES = ("bandwidth", "rows", "work")
SUFFIX = "calibrated"  # so that no entry takes the place of one that other kernels of the base read too


def overlay(target: Target, base: Target, title: str) -> str:
    """TOML of a target that is `base` with the kernels of `target`; those that are the same are left out.

    `read_target` makes of it a target with the numbers of `target`, bit by bit (rates of one kernel share their sources). A base that is a
    file of the user's is named by its whole path.
    """
    based_on = str(Path(base.file).resolve()) if base.file else base.name
    changed = {name: kernel for name, kernel in target.kernels.items() if kernel != base.kernels[name]}
    parts = [f"base = {_text(based_on)}\ntitle = {_text(title)}\n"]
    for section, entries in (("launches", _launches), ("rates", _rates), ("curves", _curves), ("kernels", _kernels)):
        lines = [line for name, kernel in changed.items() for line in entries(name, kernel)]
        if lines:
            parts.append(f"[{section}]\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def _launches(name: str, kernel: Kernel) -> Iterator[str]:
    yield f"{_key(name)} = {{ value = {kernel.launch.value!r}, {_told(kernel.launch)} }}"
    if kernel.piece is not None:
        yield f"{_key(name, 'piece')} = {{ value = {kernel.piece.value!r}, {_told(kernel.piece)} }}"


def _rates(name: str, kernel: Kernel) -> Iterator[str]:
    if kernel.rates:
        sources = " | ".join(dict.fromkeys(rate.source for rate in kernel.rates.values()))  # a table of rates has one
        told = _told(replace(next(iter(kernel.rates.values())), source=sources))
        yield f"{_key(name)} = {{ {told}, {', '.join(f'{_text(dtype)} = {rate.value!r}' for dtype, rate in kernel.rates.items())} }}"


def _curves(name: str, kernel: Kernel) -> Iterator[str]:
    for field in CURVES:
        curve: Curve | None = getattr(kernel, field)
        if curve is not None:
            points = ", ".join(f"[{x!r}, {y!r}]" for x, y in curve.points)
            yield f"{_key(name, field)} = {{ x = {_text(curve.x)}, {_told(curve)}, points = [{points}] }}"


def _kernels(name: str, kernel: Kernel) -> Iterator[str]:
    fields = [f"launch = {_key(name)}"]
    fields += [f"piece = {_key(name, 'piece')}"] if kernel.piece is not None else []
    fields += [f"rates = {_key(name)}"] if kernel.rates else []
    fields += [f"{field} = {_key(name, field)}" for field in CURVES if getattr(kernel, field) is not None]
    if kernel.tiles is not None:
        sides = ", ".join(f"{side} = {getattr(kernel.tiles, side)}" for side in ("rows", "columns", "depth"))
        fields.append(f"tiles = {{ {sides}, source = {_text(kernel.tiles.source)} }}")
    yield f"{_text(name)} = {{ {', '.join(fields)} }}"


def _told(number: Rate | Curve) -> str:
    return f"unit = {_text(number.unit)}, source = {_text(number.source)}"


def _key(name: str, field: str = "") -> str:
    return _text(" ".join(filter(None, (name, field, SUFFIX))))


def _text(value: str) -> str:
    return json.dumps(value)  # a basic string of TOML has JSON's escapes, and JSON writes no others
