"""One HTML file with its style, its code and its data: nothing is fetched, and what a model says is data and never markup."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import PurePath
from typing import Any

from coset.job.answer import as_json

SCRIPTS = ("dom.js", "graph.js", "view.js", "sections.js", "page.js")  # in the order in which they are run


def report_page(report: Mapping[str, Any], graphs: Mapping[str, Any] | None, model: Any) -> str:
    """The page of an optimization: its report, and both programs as graphs where they are given."""
    name = PurePath(model).name if isinstance(model, str | PurePath) else "model"
    return page({"kind": "optimize", "title": name, "report": report, "graphs": graphs})


def diff_page(summary: Mapping[str, Any], graphs: Mapping[str, Any], first: str, second: str) -> str:
    """The page of two programs side by side."""
    title = f"{PurePath(first).name} and {PurePath(second).name}"
    return page({"kind": "diff", "title": title, "report": summary, "graphs": graphs, "models": [str(first), str(second)]})


def page(data: Mapping[str, Any]) -> str:
    """The page that shows `data`. Its policy lets only these very scripts and this style take part, and no request leave."""
    style, code = _part("page.css"), "\n".join(map(_part, SCRIPTS))
    policy = f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(code)}'; base-uri 'none'; form-action 'none'"
    parts = {"POLICY": policy, "TITLE": html.escape(str(data["title"])), "STYLE": style, "CODE": code, "DATA": embedded(data)}
    pieces = re.split("@@([A-Z]+)@@", _part("page.html"))  # once: nothing that a model says is taken for a place
    return "".join(parts[piece] if number % 2 else piece for number, piece in enumerate(pieces))


def embedded(data: Mapping[str, Any]) -> str:
    """`data` as JSON that cannot end the element it stands in."""
    text = as_json(data)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _part(name: str) -> str:
    return (files("coset.reporting") / "page" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """What the policy knows an inline element by."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
