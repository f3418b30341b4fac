"""Certificates as files: compressed lines of JSON that say which instances of rules join two programs (docs/certificates.md).

Terms are numbered: those of the program before, in topological order of its roots, then those of the program after, then those that a
certificate's `term` lines add. Large constants are named by a hash of their bytes, so that the numbering does not depend on where they are.
"""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coset.ir import dims
from coset.ir.constants import INLINE_ELEMENTS, constant_of
from coset.ir.errors import CosetError
from coset.ir.op import get_op
from coset.ir.program import Program
from coset.ir.term import INPUT, PARAMETER, AttributeItems, Region, Term, check_regions, intern, make, topological
from coset.ir.types import DTYPES, AbsentType, TensorType, TupleType
from coset.prove.contents import all_terms

FORMAT, VERSION = "coset certificate", 3
LARGEST = 1 << 26  # B of a certificate, unpacked, at most
MOST_VALUES = 1 << 22  # of JSON, which take up to 100 times the room of their text
LONGEST_DIM = 300  # letters of a dim
MOST_FACTORS = 2  # sums in it that are multiplied: written out they may be as many as there are atoms
MADE_BY = "give one that `coset optimize --certificate` or `coset prove --certificate` wrote"

Line = dict[str, Any]


class Rejected(CosetError):
    """The certificate does not show what it claims."""


# ---------------------------------------------------------------- values of attributes


def decode(value: Any) -> Any:
    """The value that `encode` gave as JSON.

    Raises:
        CosetError, ValueError, TypeError, KeyError: it is none.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, list):
        return tuple(decode(item) for item in value)
    if not isinstance(value, dict) or len(value) != 1:
        raise ValueError("no value of an attribute")
    ((kind, inner),) = value.items()
    if kind == "float":
        return float("nan") if inner == "nan" else float.fromhex(inner)
    if kind == "dim":
        if len(inner) > LONGEST_DIM or inner.replace(" ", "").count("*(") > MOST_FACTORS:
            raise ValueError("a dim is too long")
        return dims.parse(inner)
    if kind == "dtype":
        return DTYPES[inner]
    if kind == "tensor":
        dtype, shape = inner
        return TensorType(decode(dtype), None if shape is None else decode(shape))
    if kind == "types":
        return TupleType(decode(inner))
    if kind == "absent":
        return AbsentType()
    if kind == "constant":
        type_ = decode(inner[0])
        flat = np.frombuffer(base64.b64decode(inner[1], validate=True), type_.dtype.numpy)
        if flat.size > INLINE_ELEMENTS:
            raise ValueError(f"a constant has more than {INLINE_ELEMENTS} elements")
        return constant_of(flat.reshape(type_.static), type_.dtype)
    raise ValueError(f"no value of an attribute is a `{kind}`")


# ---------------------------------------------------------------- numbered terms


class Numbered:
    """The terms of two programs, and those that are added, by number."""

    def __init__(self, before: Program, after: Program) -> None:
        self.terms: list[Term] = []
        self.number: dict[Term, int] = {}
        self.program(before)
        self.program(after)

    def add(self, term: Term) -> int:
        """The number of the term, new if it is."""
        if term not in self.number:
            self.number[term] = len(self.terms)
            self.terms.append(term)
        return self.number[term]

    def program(self, program: Program) -> None:
        """Add the terms of a program."""
        for term in all_terms(program):
            self.add(term)

    def enter(self, root: Term) -> None:
        """Add the term with all below it, operands first."""
        for term in topological([root], known=self.number):
            self.add(term)

    def __getitem__(self, number: object) -> Term:
        if type(number) is not int or not 0 <= number < len(self.terms):
            raise ValueError(f"there is no term {number!r}")
        return self.terms[number]


def decode_function(value: Any) -> Region:
    """The function that `encode_function` gave as JSON.

    Raises:
        CosetError, ValueError, TypeError, KeyError, IndexError: it is none.
    """
    rows, *ends = value
    terms: list[Term] = []
    for name, operands, payload, *functions in rows:
        attributes = {key: decode(each) for key, each in payload.items()}
        given = [terms[number] for number in operands]
        terms.append(make(name, given, attributes, tuple(decode_function(each) for each in (functions[0] if functions else ()))))
    parameters, results = (tuple(terms[number] for number in numbers) for numbers in ends)
    return Region(parameters, results)


def read_term(line: Any, numbered: Numbered) -> Term:
    """The term that a `term` line adds, its type inferred.

    Raises:
        CosetError, ValueError, TypeError, KeyError: there is no such term.
    """
    name, operands, payload, *functions = line
    op = get_op(name)
    if op in (INPUT, PARAMETER) or len(functions) > 1:
        raise ValueError("a certificate adds no inputs" if not functions else "a term has no more than four parts")
    given = tuple(numbered[operand] for operand in operands)
    if isinstance(payload, dict):
        attributes: AttributeItems = tuple(sorted((key, decode(value)) for key, value in payload.items()))
        regions: tuple[Region, ...] = ()
        complete = dict(attributes)
        if complete.keys() != {each.name for each in op.attributes}:
            raise ValueError(f"`{name}` has other attributes")
        if functions:
            return make(op, given, complete, tuple(map(decode_function, functions[0])))
    else:
        like = numbered[payload]
        if like.op is not op:
            raise ValueError(f"term {payload} is no `{name}`")
        if functions:
            raise ValueError("a term has functions of its own or those of another")
        attributes, regions, complete = like.attributes, like.regions, dict(like.attributes)
    types = [operand.type for operand in given]
    type = op.infer(types, complete)
    if not op.has("foreign"):
        check_regions(op, types, complete, regions)
    return intern(op, given, attributes, regions, type)


# ---------------------------------------------------------------- files


@dataclass(frozen=True)
class Certificate:
    """A certificate as it is written: `head` says what is claimed, `lines` why."""

    head: Line
    lines: Sequence[Line]

    def packed(self) -> bytes:
        """The file's bytes; the same for the same certificate."""
        texts = (json.dumps(line, separators=(",", ":")) for line in (self.head, *self.lines, {"end": len(self.lines)}))
        return gzip.compress("".join(text + "\n" for text in texts).encode(), 9, mtime=0)


def read_certificate(path: Path) -> Certificate:
    """The certificate at `path`; what it says is not looked at yet.

    Raises:
        CosetError: the file cannot be read, or is no whole certificate of this version.
    """
    try:
        lines = list(_lines(path))
    except (OSError, EOFError, zlib.error, ValueError, RecursionError) as error:
        raise CosetError(f"{path} is no certificate: {error}", help=MADE_BY) from None
    if not lines or lines[0].get("format") != FORMAT:
        raise CosetError(f"{path} is no certificate", help=MADE_BY)
    if lines[0].get("version") != VERSION:
        help = "make it again with `coset optimize --certificate` or `coset prove --certificate`"
        raise CosetError(f"{path} has version {lines[0].get('version')}, this coset reads version {VERSION}", help=help)
    if len(lines) < 2 or lines[-1] != {"end": len(lines) - 2}:
        raise CosetError(f"{path} is cut off", help="make it again")
    return Certificate(lines[0], lines[1:-1])


def _lines(path: Path) -> Iterator[Line]:
    with gzip.open(path, "rb") as file:
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise ValueError(f"it is larger than {LARGEST >> 20} MiB")
    if sum(map(data.count, (b",", b"[", b"{", b"\n"))) > MOST_VALUES:
        raise ValueError(f"it has more than {MOST_VALUES} values")
    for text in data.splitlines():
        line = json.loads(text)
        if not isinstance(line, dict):
            raise ValueError("a line is no object")
        if b"\\u" in text:
            json.dumps(line, ensure_ascii=False).encode()  # half a letter, which no message could say
        yield line
