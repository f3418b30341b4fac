"""What the checker of certificates imports: the modules of ours in a fresh process after `import coset.prove.kernel`, with lines.

    python -m benchmarks.trusted [--write]

`--write` puts the table into docs/trust.md; `tests/prove/test_trusted.py` refuses a page that says something else.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "trust.md"
START, END = "<!-- the closure of coset.prove.kernel: python -m benchmarks.trusted --write -->", "<!-- end of the closure -->"
BEFORE = 23_967  # lines of the 153 modules that the checker imported when it was first counted
KERNEL = "coset.prove.kernel"
LIST = "import importlib, sys; importlib.import_module(sys.argv[1]); print(*(n for n in sys.modules if n.split('.')[0] == 'coset'))"


def closure(module: str = KERNEL) -> dict[str, int]:
    """The modules of ours that importing `module` loads, with the lines of their files, by name."""
    run = subprocess.run([sys.executable, "-c", LIST, module], capture_output=True, text=True, check=True, cwd=ROOT)
    return {name: len(path.read_text().splitlines()) for name in sorted(run.stdout.split()) if (path := file_of(name)) is not None}


def file_of(module: str) -> Path | None:
    """The file of a module in the sources; None for a package that is a folder alone."""
    parts = module.split(".")[1:]
    bases = [ROOT.joinpath(*parts), ROOT.joinpath("coset", *parts)]
    found = [path for base in bases for path in (base.with_suffix(".py"), base / "__init__.py") if parts and path.is_file()]
    return found[0] if found else (ROOT / "coset" / "__init__.py" if not parts else None)


def table(found: Mapping[str, int]) -> str:
    """The rows of the page, by folder."""
    folders: dict[str, list[str]] = {}
    for name, lines in found.items():
        folder = name.split(".")[1] if name.count(".") else "coset"
        folders.setdefault(folder, []).append(f"`{name.removeprefix('coset.')}` {lines}")
    rows = [f"| {folder} | {', '.join(names)} |" for folder, names in folders.items()]
    total = sum(found.values())
    return "\n".join(
        [
            START,
            f"{len(found)} modules, {total} lines ({total / BEFORE:.0%} of the {BEFORE} that it once was):",
            "",
            "| folder | modules and lines |",
            "|---|---|",
            *rows,
            END,
        ]
    )


def written(page: str) -> dict[str, int]:
    """What a page says of the modules and lines."""
    part = page[page.index(START) : page.index(END)]
    entries = [each.strip(" |").split("` ") for line in part.splitlines() if "`" in line for each in line.split("|")[2].split(",")]
    return {name if name == "coset" else f"coset.{name}": int(lines) for name, lines in ((n.strip("` "), c) for n, c in entries)}


def main() -> None:
    """Print the table, or write it into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the table into docs/trust.md")
    given = parser.parse_args()
    made = table(closure())
    if given.write:
        page = PAGE.read_text()
        PAGE.write_text(page[: page.index(START)] + made + page[page.index(END) + len(END) :])
    print(made)


if __name__ == "__main__":
    main()
