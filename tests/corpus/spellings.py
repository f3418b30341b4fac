"""The spelling corpus: one file an entry, what it says of itself in its first lines, and whether an entry is recognised as that.

An entry is `<op>/<name>.onnxtxt` (ONNX's text form) or `.mlir` (StableHLO); the comments at its top are fields:

    # op: onnx.LayerNormalization axis=-1 epsilon=1e-5     an op that must be found, with attributes (repeated for several ops)
    # beside: stablehlo.dot_general stablehlo.add          other kernels that may be there (projections, a residual)
    # source: torch 2.13.0, torch.onnx.export(..) of ..    what made it, or where it was read

A near-miss (`near_misses/`) has `# near: layer_norm/hand-plain` (the entry that it resembles and must differ from in value),
`# not: OP attributes` (what must not be found to be its output; `query=q` asks for the input q as that operand), and `# why:`.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import onnx.parser

from coset.egraph.limits import Limits
from coset.egraph.saturated import ENode, Saturated
from coset.frontends.onnx.model import import_model
from coset.frontends.stablehlo.program import import_stablehlo
from coset.ir.op import find_op, get_op
from coset.ir.program import Program
from coset.ir.term import Term
from coset.searching.recognise import Recognised, recognise

FOLDER = Path(__file__).resolve().parent
NEAR_MISSES = "near_misses"
MISSES = FOLDER / "known_misses.txt"
LIMITS = Limits(seconds=20, nodes=60_000)
COMMENTS = {".onnxtxt": "#", ".mlir": "//"}
CLOSE = 2e-3  # of attributes: an epsilon of f16 is rounded to 11 bits


@dataclass(frozen=True)
class Wanted:
    """An op with some of its attributes and operands, as a header line says."""

    op: str
    values: tuple[tuple[str, Any], ...]

    def describes(self, attributes: dict[str, Any], rank: int) -> bool:
        """True when every attribute that is asked for is there; axes may count from the end of `rank` dims."""
        asked = [(name, value) for name, value in self.values if name not in get_op(self.op).operands]
        return all(name in attributes and _equal(name, value, attributes[name], rank) for name, value in asked)

    def __str__(self) -> str:
        return " ".join([self.op, *(f"{name}={value}" for name, value in self.values)])


@dataclass(frozen=True)
class Entry:
    """One spelling. `wanted`: what it is; `beside`: kernels that may be left; `near`, `refused`: of a near-miss."""

    path: Path
    wanted: tuple[Wanted, ...]
    beside: frozenset[str]
    source: str
    near: str = ""
    refused: tuple[Wanted, ...] = ()

    @property
    def name(self) -> str:
        """Folder and file, without the suffix."""
        return str(self.path.relative_to(FOLDER).with_suffix(""))

    @property
    def folder(self) -> str:
        """What kind of op it is."""
        return self.path.parent.name

    def program(self) -> Program:
        """The entry as it is imported."""
        text = self.path.read_text()
        if self.path.suffix == ".mlir":
            return import_stablehlo(text)
        return import_model(onnx.parser.parse_model(text))


def read(path: Path) -> Entry:
    """The entry in the file at `path`; asserts that its header is whole."""
    fields: dict[str, list[str]] = {}
    mark = COMMENTS[path.suffix]
    for line in path.read_text().splitlines():
        if not line.startswith(mark):
            break
        key, _, rest = line[len(mark) :].strip().partition(":")
        assert key in ("op", "beside", "source", "near", "not", "why"), f"{path}: `{key}` is no field of a header"
        fields.setdefault(key, []).append(rest.strip())
    miss = path.parent.name == NEAR_MISSES
    needed = {"near", "not", "why"} if miss else {"op", "source"}
    assert needed <= fields.keys(), f"{path}: the header has no {needed - fields.keys()}"
    return Entry(
        path, tuple(map(_wanted, fields.get("op", ()))), frozenset(" ".join(fields.get("beside", ())).split()),
        " ".join(fields.get("source", ())), " ".join(fields.get("near", ())), tuple(map(_wanted, fields.get("not", ()))),
    )  # fmt: skip


def _wanted(text: str) -> Wanted:
    op, *rest = text.split()
    return Wanted(op, tuple((name, _value(value)) for name, _, value in (part.partition("=") for part in rest)))


def _value(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _equal(name: str, wanted: Any, got: Any, rank: int) -> bool:
    if name == "axis":
        return bool(wanted % rank == got % rank)
    if isinstance(wanted, float) or isinstance(got, float):
        return abs(wanted - got) <= CLOSE * max(abs(wanted), abs(got))
    return bool(wanted == got)


def entries() -> list[Entry]:
    """Every entry that is to be recognised, by name."""
    return [read(path) for path in _files() if path.parent.name != NEAR_MISSES]


def near_misses() -> list[Entry]:
    """Every near-miss, by name."""
    return [read(path) for path in _files() if path.parent.name == NEAR_MISSES]


def _files() -> list[Path]:
    return sorted(path for suffix in COMMENTS for path in FOLDER.glob(f"*/*{suffix}"))


def resembled(entry: Entry) -> Entry:
    """The entry that a near-miss resembles."""
    (path,) = FOLDER.glob(f"{entry.near}.*")
    assert path.parent.name != NEAR_MISSES
    return read(path)


def known_misses() -> dict[str, str]:
    """The entries that are not recognised yet, each with the reason."""
    lines = MISSES.read_text().splitlines() if MISSES.exists() else []
    pairs = (line.partition(": ") for line in lines if line and not line.startswith("#"))
    return {name: reason for name, _, reason in pairs}


@cache
def searched(entry: Entry) -> Recognised:
    """What the entry is recognised as."""
    asked = {wanted.op for wanted in (*entry.wanted, *entry.refused)}
    return recognise(entry.program(), asked, limits=LIMITS)


def unknown(entry: Entry) -> list[str]:
    """The ops that the entry speaks of and that are not there."""
    return sorted({wanted.op for wanted in (*entry.wanted, *entry.refused) if find_op(wanted.op) is None})


def missing(entry: Entry) -> str:
    """Why the entry is not recognised as what it is: empty when it is."""
    if unknown(entry):
        return f"there is no op `{unknown(entry)[0]}`"
    result = searched(entry)
    left = list(result.found)
    for wanted in entry.wanted:
        match = next((term for term in left if _is(term, wanted)), None)
        if match is None:
            others = ", ".join(f"{term.op.name}{dict(term.attributes)}" for term in left) or "nothing"
            return f"no {wanted}; found {others}; left {_counted(result.rest)} (search {result.saturation.stop})"
        left.remove(match)
    rest = [name for name in (*(term.op.name for term in left), *result.rest) if name not in entry.beside]
    return f"found, but beside it {_counted(rest)}" if rest else ""


def _is(term: Term, wanted: Wanted) -> bool:
    return term.op.name == wanted.op and wanted.describes(dict(term.attributes), term.operands[0].tensor.rank)


def _counted(names: Sequence[str]) -> str:
    counts = Counter(name.removeprefix("stablehlo.") for name in names)
    return ", ".join(f"{name} {count}" if count > 1 else name for name, count in sorted(counts.items())) or "nothing"


def forbidden(entry: Entry) -> str:
    """What a near-miss was taken for although it is not: empty when nothing."""
    return taken(searched(entry), entry.refused)


def taken(result: Recognised, refused: Sequence[Wanted]) -> str:
    """Which of `refused` was found to be an output: empty when none."""
    graph = result.saturation.graph
    for wanted in refused:
        for node in result.at_roots(wanted.op):
            rank = len(getattr(graph.types[node.children[0]], "shape", ()))
            if wanted.describes(dict(node.attributes), rank) and _reads(graph, node, wanted):
                return f"{wanted} was found to be an output: {node.op.name}{dict(node.attributes)}"
    return ""


def _reads(graph: Saturated, node: ENode, wanted: Wanted) -> bool:
    """True when every operand that is asked for by the name of an input is that input."""
    asked = dict(wanted.values)
    for operand, child in zip(node.op.operands, node.children, strict=False):
        inputs = {dict(other.attributes)["name"] for other in graph.nodes[child] if other.op.name == "builtin.input"}
        if operand in asked and asked[operand] not in inputs:
            return False
    return True
