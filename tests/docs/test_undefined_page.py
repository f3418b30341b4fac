"""docs/undefined.md is what the runtimes give, and speaks of every difference that is known."""

from __future__ import annotations

from importlib.metadata import version

import pytest

from benchmarks.definitions.known import ROWS
from benchmarks.undefined import PAGE, page

PINNED = {"onnx": "1.23.2", "onnxruntime": "1.32.0", "jaxlib": "0.10.2"}


def test_the_tables_are_what_the_runtimes_give() -> None:
    text = PAGE.read_text()
    for package, pinned in PINNED.items():
        pytest.importorskip(package)
        assert pinned in text
        if version(package) != pinned:
            pytest.skip(f"the page is about {package} {pinned}")
    assert page(text) == text, "run `python -m benchmarks.undefined --write`, and look at what changed"


def test_the_page_speaks_of_every_known_difference() -> None:
    text = PAGE.read_text()
    for name in {row.name for row in ROWS} | {"zero-sign", "range", "subnormals"}:
        assert f"- `{name}`: " in text, name
