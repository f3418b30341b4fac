"""Rules that write ONNX's ops as nodes: with the attributes of the standard, or ops that no program holds. What they stand for is not known
here, so nothing is said of a step by one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from coset.prove.second import syntax as l
from coset.prove.second.answer import CannotSay

Entries = Mapping[str, Sequence[l.Entry]]


def refuse_nodes(rule: l.Entry, entries: Entries) -> None:
    """Nothing for a rule that writes the terms that programs hold.

    Raises:
        CannotSay: it writes nodes of ONNX.
    """
    if not isinstance(rule, l.Rule):
        return
    for call in _calls((rule.left, rule.right, rule.locals)):
        for name in _meant(call.function, dict(rule.dialects)):
            if _is_node(call, name, entries):
                raise CannotSay(f"what a node of {name} is in the rule `{rule.name}`")


def _calls(part: Any) -> Iterator[l.Call]:
    if isinstance(part, l.Call):
        yield part
    if is_dataclass(part) and not isinstance(part, type):
        part = tuple(getattr(part, field.name) for field in fields(part))
    if isinstance(part, tuple):
        for inner in part:
            yield from _calls(inner)


def _meant(function: str, dialects: Mapping[str, str]) -> list[str]:
    """The ops of ONNX that the name of a function may mean."""
    used, _, name = function.rpartition(".")
    if used:
        return [f"onnx.{name}"] if dialects.get(used) == "onnx" else []
    return [f"onnx.{name}"] if "onnx" in dialects.values() else []


def _is_node(call: l.Call, name: str, entries: Entries) -> bool:
    own = next((each for each in entries.get(name, ()) if isinstance(each, l.Definition)), None)
    if own is None:
        return False
    if re.match(rf"op {re.escape(name)} ?: ?sugar\b", own.text):
        return True
    if f"node.{name.removeprefix('onnx.')}" not in entries:
        return False
    attributes = {each.name: each.default for each in own.variables if each.kind.dims is None and not each.name[0].isupper()}
    given = {key for key, _ in call.named}
    if given - attributes.keys():
        return True
    operands = sum(each.kind.dims is not None for each in own.variables)
    if call.rest is not None or len(call.arguments) > operands:
        return False
    axis = dict(call.named).get("axis")
    left_out = any(default is None for key, default in attributes.items() if key not in given)
    return left_out or ("axis" in attributes and not isinstance(axis, l.Name | l.Item | l.Call | l.Binary))
