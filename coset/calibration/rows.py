"""Somebody's own measurements: a CSV file with an op, the types of its operands and microseconds in each row."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from coset.extract.fit import MeasuredLink, predicted
from coset.frontends.onnx.single_node import NodeOperand, single_node
from coset.ir.errors import CosetError
from coset.ir.place import Place
from coset.ir.problems import FileProblem, refusal
from coset.ir.suggestions import like
from coset.ir.types import DTYPES
from coset.lowering.planning.primitive import primitive
from coset.optimizing.legality import without_form
from coset.targets.target import Target

ASKED = ("op", "shapes", "dtype", "microseconds")
"""Columns that must be there, in any order."""
OPTIONAL = ("attributes",)
LONGEST = 1e9  # us of one node
LARGEST = 1 << 34  # B of a file


@dataclass(frozen=True)
class MeasuredRow:
    """A row at `line` of its file: the op, and what the fit is told of it."""

    line: int
    op: str
    link: MeasuredLink


def measured_rows(path: Path, target: Target) -> list[MeasuredRow]:
    """The rows of the file at `path`, as programs of `target`.

    Raises:
        CosetError: the file cannot be read, or has no rows.
        WrongFile: columns or rows are not what they should be, with the line of each.
    """
    problems: list[FileProblem] = []
    rows: list[MeasuredRow] = []
    for line, given in _lines(path):
        try:
            rows.append(_row(line, given, target))
        except CosetError as error:
            problems.append(FileProblem(error.message, Place(str(path), line, 1, ",".join(given.values())), error.help))
    if problems:
        raise refusal(problems)
    if not rows:
        raise CosetError("there are no measurements", place=Place(str(path)), help=f"a row {','.join(ASKED)} for each")
    return rows


def _lines(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Each row with its line, by column. Empty lines and those that begin with # are passed over.

    Raises:
        CosetError: the file cannot be read, or its first row names other columns.
    """
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, ValueError) as error:
        what = error.strerror if isinstance(error, OSError) and error.strerror else "it is not UTF-8"
        raise CosetError(f"`{path}` cannot be read: {what}", place=Place(str(path)), help="a CSV file of measurements") from None
    columns: list[str] | None = None
    reader = csv.reader(io.StringIO(text, newline=""), skipinitialspace=True)
    for cells in reader:
        if not cells or cells[0].startswith("#"):
            continue
        place = Place(str(path), reader.line_num, 1, ",".join(cells))
        if columns is None:
            columns = [cell.strip() for cell in cells]
            _check_columns(columns, place)
        elif len(cells) != len(columns):
            help = f"the columns are {', '.join(columns)}; a cell with a comma stands in quotes"
            raise CosetError(f"the row has {len(cells)} cells, not {len(columns)}", place=place, help=help)
        else:
            yield reader.line_num, dict(zip(columns, (cell.strip() for cell in cells), strict=True))


def _check_columns(columns: Sequence[str], place: Place) -> None:
    known = (*ASKED, *OPTIONAL)
    problems = [
        FileProblem(f"there is no column `{name}`", place, like(name, known) or f"columns are: {', '.join(known)}")
        for name in columns
        if name not in known
    ]
    missing = [name for name in ASKED if name not in columns]
    if missing and not problems:
        problems = [FileProblem(f"the column `{name}` is missing", place, f"the first row names {', '.join(ASKED)}") for name in missing]
    if len(set(columns)) < len(columns):
        problems.append(FileProblem("a column is named twice", place, "name each once"))
    if problems:
        raise refusal(problems)


def _row(line: int, given: dict[str, str], target: Target) -> MeasuredRow:
    """What a row says.

    Raises:
        CosetError: it says what cannot be, or something that the target does not run.
    """
    seconds = _microseconds(given["microseconds"]) * 1e-6
    op = given["op"].removeprefix("onnx.")
    read = single_node(op, list(_operands(given["shapes"], given["dtype"])), _attributes(given.get("attributes", "")))
    if target.dialect != "onnx":
        read = read.with_roots(primitive(read))
    refused = without_form(read, target)
    if refused:
        term, why = next(iter(refused.items()))
        raise CosetError(f"`{target.name}` does not run `{term.op.name}` of these operands: {why}", help="leave the row out")
    link = MeasuredLink(f"{line}", (tuple(read.inputs), read.roots), (0, 1), seconds)
    if not predicted(link, target) > 0:
        raise CosetError(f"`{op}` of these operands is nothing that `{target.name}` takes time for", help="leave the row out")
    return MeasuredRow(line, op, link)


def _microseconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        raise CosetError(f"`{text}` is no number of microseconds", help="a number above 0, as 12.5") from None
    if not isfinite(found) or not 0 < found <= LONGEST:
        raise CosetError(f"{text} microseconds cannot be", help="a finite number above 0")
    return found


def _operands(shapes: str, dtypes: str) -> Iterator[NodeOperand]:
    """What stands in the columns `shapes` and `dtype`."""
    parts = [part.strip() for part in shapes.split(";")]
    types = [word.strip() for word in dtypes.split(";")]
    if len(types) not in (1, len(parts)):
        raise CosetError(f"{len(types)} element types for {len(parts)} operands", help="one for all, or one for each with `;` between them")
    for part, dtype in zip(parts, types * len(parts) if len(types) == 1 else types, strict=True):
        if dtype not in DTYPES:
            help = like(dtype, tuple(DTYPES)) or f"one of: {', '.join(DTYPES)}"
            raise CosetError(f"there is no element type `{dtype}`", help=help)
        if part.startswith("="):
            yield NodeOperand(values=_numbers(part[1:], ",", negative=True))
        elif part:
            yield NodeOperand(dtype, () if part == "scalar" else _numbers(part, "x"))
        else:
            yield NodeOperand()


def _numbers(text: str, between: str, *, negative: bool = False) -> tuple[int, ...]:
    words = [word.strip() for word in text.split(between)]
    if not all(word.removeprefix("-" if negative else "").isdecimal() for word in words):
        raise CosetError(f"`{text}` is no shape", help='sizes with x between them, operands with ; between them: "1x64x56x56;64x64x3x3"')
    found = tuple(int(word) for word in words)
    size = 1
    for number in found:
        size *= abs(number)
    if not negative and not 0 < size < LARGEST:
        raise CosetError(f"`{text}` is nothing that was timed", help="sizes from 1 on, and fewer than 2^34 elements")
    return found


def _attributes(text: str) -> dict[str, str]:
    """Attributes by name: `name=value` with spaces between them."""
    found = {}
    for word in text.split():
        name, equals, value = word.partition("=")
        if not (name and equals and value):
            raise CosetError(f"`{word}` gives no attribute a value", help="name=value, with spaces between them: pads=1,1,1,1 group=32")
        found[name] = value
    return found
