"""The functions of `functions.py` and its further files as text: those that a program calls, and those that they call."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cache
from pathlib import Path

SOURCES = [Path(__file__).with_name(f"functions{part}.py") for part in ("", "_movement", "_folds", "_library", "_payloads")]


@cache
def _definitions() -> dict[str, tuple[str, frozenset[str]]]:
    """The text of each top-level definition, and the names it mentions, in the file's order."""
    return {name: entry for source in SOURCES for name, entry in _definitions_in(source.read_text()).items()}


def _definitions_in(text: str) -> dict[str, tuple[str, frozenset[str]]]:
    lines = text.splitlines()
    found: dict[str, tuple[str, frozenset[str]]] = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            name = node.name
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
        else:
            continue
        mentioned = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
        assert node.end_lineno is not None
        found[name] = ("\n".join(lines[node.lineno - 1 : node.end_lineno]), frozenset(mentioned))
    return found


def copied_functions(names: Iterable[str]) -> str:
    """The definitions that `names` need, those first that others mention; names that are none of ours are passed over."""
    definitions = _definitions()
    needed: set[str] = set()
    stack = [name for name in names if name in definitions]
    while stack:
        name = stack.pop()
        if name not in needed:
            needed.add(name)
            stack += [other for other in definitions[name][1] if other in definitions]
    texts = []
    for name, (text, _) in definitions.items():
        if name in needed:
            texts.append(f"\n\n{text}\n" if text.startswith("def") else f"\n{text}\n")
    return "".join(texts)


def known_functions() -> frozenset[str]:
    """Every name that can be copied."""
    return frozenset(_definitions())
