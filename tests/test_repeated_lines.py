"""No run of more than a dozen lines stands twice in the product, whatever its names are: what is one logic is written once."""

from __future__ import annotations

import ast
import io
import keyword
import re
import tokenize
from collections.abc import Iterator

from tests.test_house import ROOT, sources

MOST = 12  # lines, one after the other, that may stand twice
NAME = re.compile(r"(?<![.\w\"'])[a-z_]\w*(?!\w*\()")  # of a variable; what is called, and attributes, tell one logic from another
INDEPENDENT = "prove/second/"  # the second checker is written without the first on purpose
ALLOWED: dict[tuple[str, str], str] = {}  # (file, file): why they say the same in more lines

Line = tuple[int, str]  # its number in the file, and what it says


def lines_of(text: str) -> list[Line]:
    """The lines of Python text that say something, with one name for all variables: without spaces at both ends, comments, documentation
    and imports."""
    skipped: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(node)
        if documented or isinstance(node, ast.Import | ast.ImportFrom):
            left_out = node.body[0] if documented else node
            skipped |= set(range(left_out.lineno, left_out.end_lineno + 1))
    rows = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            rows[row - 1] = rows[row - 1][:column]
    kept = [(number, " ".join(row.split())) for number, row in enumerate(rows, 1) if number not in skipped]
    return [(number, NAME.sub(_variable, said)) for number, said in kept if said]


def _variable(found: re.Match[str]) -> str:
    return found[0] if keyword.iskeyword(found[0]) else "name"


def repeated(files: dict[str, list[Line]], most: int = MOST) -> Iterator[tuple[tuple[str, int], tuple[str, int], int]]:
    """Runs of more than `most` lines that stand twice: where each begins, and how many lines both are, each run once."""
    seen: dict[tuple[str, ...], tuple[str, int]] = {}
    covered: set[tuple[str, int]] = set()
    for name, lines in files.items():
        said = [line for _, line in lines]
        for at in range(len(said) - most):
            window = tuple(said[at : at + most + 1])
            other, start = seen.setdefault(window, (name, at))
            if other == name and at - start <= most:  # itself, or rows of one table, which have one form
                seen[window] = (name, at)
            if seen[window] == (name, at) or (name, at) in covered:
                continue
            there = [line for _, line in files[other]]
            length = most + 1
            while at + length < len(said) and start + length < len(there) and said[at + length] == there[start + length]:
                length += 1
            covered |= {(name, place) for place in range(at, at + length)}
            yield (other, files[other][start][0]), (name, lines[at][0]), length


def test_no_run_of_lines_stands_twice() -> None:
    """But those that are listed, each with a reason that still holds."""
    places = {str(path.relative_to(ROOT)): path for path in sources()}
    files = {name: lines_of(path.read_text()) for name, path in places.items() if not name.startswith(INDEPENDENT)}
    found = list(repeated(files))
    told = [f"{count} lines: {a}:{line} and {b}:{other}" for (a, line), (b, other), count in found if (a, b) not in ALLOWED]
    assert not told, f"write these once, or list them with a reason: {told}"
    assert not ALLOWED.keys() - {(a, b) for (a, _), (b, _), _ in found}, "these are listed for nothing"


SUMS = [f"    y{number} = f{number}(x) + {number}  # one more" for number in range(13)]
FIRST = "\n".join(["import os", "def first(x):", '    """A sum."""', *SUMS, "    return y0"])


def test_a_run_that_stands_twice_is_found() -> None:
    """With other names, comments and documentation; one line less is allowed, and so is a call of something else."""
    second = FIRST.replace("first(x)", "second(x)").replace("(x) +", "(value) +").replace("  # one more", "")
    second = second.replace("A sum.", "Another\n\n    sum.")
    shorter = "\n".join(FIRST.replace("first(x)", "third(x)").splitlines()[:-2])
    texts = {"a": FIRST, "b": second, "c": shorter, "d": FIRST.replace("f6(", "g6(")}
    assert list(repeated({name: lines_of(text) for name, text in texts.items()})) == [(("a", 4), ("b", 6), 14)]
    assert list(repeated({"a": lines_of("\n".join([FIRST, *FIRST.splitlines()[1:]]))})) == [(("a", 2), ("a", 18), 15)]
