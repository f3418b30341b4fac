"""Which test files load torch. They run in processes of their own: torch takes 200 MB, and each process that is forked beside it costs
three times as much."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

LOADS = re.compile(r"^ *(?:import|from) torch\b|\bimportorskip\(\"torch\"", re.MULTILINE)
IMPORTS = re.compile(r"^(?:import|from) (\w+)", re.MULTILINE)
PACKAGES = re.compile(r"\bTorchPackage\b|\bcoset\.packaging\b|\blowered_models\b|\"lower\"")
CHOICES = ("all", "none", "only")


@cache
def loads_torch(path: Path) -> bool:
    """Whether a file says that it imports torch, or a file beside it that it imports does."""
    text = path.read_text()
    beside = (path.with_name(f"{name}.py") for name in IMPORTS.findall(text))
    return bool(LOADS.search(text)) or any(loads_torch(file) for file in beside if file != path and file.is_file())


@cache
def runs_packages(path: Path) -> bool:
    """Whether the tests of a file run packages with torch, each in a process of its own."""
    return loads_torch(path) or bool(PACKAGES.search(path.read_text()))


def is_left_out(path: Path, choice: str) -> bool:
    """Whether a test file is not collected for this choice of `--torch`."""
    return choice != "all" and path.name.startswith("test_") and loads_torch(path) != (choice == "only")
