"""Certificates as files: compressed lines of JSON. The checker takes any lines, so that nothing it accepts rests on how they were read;
what is refused here is what a second reader could take for something else, or what fills the memory.
"""

from __future__ import annotations

import gzip
import json
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

from coset.ir.dim_text import parse
from coset.ir.dims import Poly
from coset.ir.errors import CosetError
from coset.prove.certificate import FORMAT, VERSION, Certificate, Line, is_number

LARGEST = 1 << 26  # B of a certificate, unpacked, at most
MOST_VALUES = 1 << 22  # of JSON, which take up to 100 times the room of their text
LONGEST_DIM = 300  # letters of a dim
MADE_BY = "give one that `coset optimize --certificate` or `coset prove --certificate` wrote"


def packed(certificate: Certificate) -> bytes:
    """The bytes of the file; the same for the same certificate."""
    rows = (certificate.head, *certificate.lines, {"end": len(certificate.lines)})
    texts = (json.dumps(row, separators=(",", ":"), default=_as_text) for row in rows)
    return gzip.compress("".join(text + "\n" for text in texts).encode(), 9, mtime=0)


def read_certificate(path: Path) -> Certificate:
    """The certificate at `path`; what it says is not looked at yet.

    Raises:
        CosetError: the file cannot be read, or is no whole certificate of this version.
    """
    try:
        lines = [_read(text) for text in _unpacked(path.read_bytes()).split(b"\n")[:-1]]
    except (OSError, zlib.error, ValueError, RecursionError) as error:
        raise CosetError(f"{path} is no certificate: {error}", help=MADE_BY) from None
    if not lines or lines[0].get("format") != FORMAT:
        raise CosetError(f"{path} is no certificate", help=MADE_BY)
    if not is_number(lines[0].get("version"), VERSION):
        help = "make it again with `coset optimize --certificate` or `coset prove --certificate`"
        raise CosetError(f"{path} has version {lines[0].get('version')}, this coset reads version {VERSION}", help=help)
    if len(lines) < 2 or lines[-1].keys() != {"end"} or not is_number(lines[-1]["end"], len(lines) - 2):
        raise CosetError(f"{path} is cut off", help="make it again")
    return Certificate(lines[0], lines[1:-1])


def _unpacked(packed: bytes) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)  # one member of gzip
    data = unpacker.decompress(packed, LARGEST + 1)
    if len(data) > LARGEST:
        raise ValueError(f"it is larger than {LARGEST >> 20} MiB")
    if sum(map(data.count, (b",", b"[", b"{", b"\n"))) > MOST_VALUES:
        raise ValueError(f"it has more than {MOST_VALUES} values")
    if not unpacker.eof or unpacker.unused_data or not data.endswith(b"\n"):
        raise ValueError("it is cut off, or something is behind it")
    return data


def _read(text: bytes) -> Line:
    """One line; the only numbers in it are integers."""
    line = json.loads(text.decode(), object_pairs_hook=_object, parse_float=_no_number, parse_constant=_no_number)
    if not isinstance(line, dict):
        raise ValueError("a line is no object")
    if b"\\u" in text:
        json.dumps(line, ensure_ascii=False, default=_as_text).encode()  # half a letter, which no message could say
    return line


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has a key twice")
    dim = found.get("dim")
    if len(found) == 1 and isinstance(dim, str) and len(dim) <= LONGEST_DIM:
        with suppress(CosetError):  # text that is no dim stays text, which the checker refuses at its line
            return {"dim": parse(dim)}
    return found


def _as_text(value: object) -> str:
    """What JSON has for a value of a line that is none of its own: a dim."""
    assert isinstance(value, Poly), value
    return str(value)


def _no_number(text: str) -> Any:
    raise ValueError(f"`{text}` is no integer")
