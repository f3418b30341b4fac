"""Parsed rule files, kept from run to run: the surface syntax by the hash of the text, so that a start needs neither the grammar's tables
nor the parser."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

from coset.ir.place import lines_of
from coset.rules import cache, syntax
from coset.rules.codec import Codec, compact
from coset.rules.syntax import RuleError

CODEC = Codec((
    syntax.Number, syntax.Text, syntax.Name, syntax.Spread, syntax.Brackets, syntax.Invocation, syntax.Comprehension, syntax.Operation,
    syntax.Lambda, syntax.TensorKind, syntax.ValueKind, syntax.Declaration, syntax.OpVariable, syntax.Local, syntax.Promise,
    syntax.RuleEntry, syntax.Clause, syntax.OpEntry, syntax.PhaseEntry, syntax.RuleFile, syntax.Written, syntax.Ground,
))  # fmt: skip
UNREADABLE = (ValueError, ArithmeticError, TypeError, LookupError)  # what a body that is not as it was written raises


def parse(text: str, path: str) -> tuple[syntax.RuleFile, list[RuleError]]:
    """As `coset.rules.parser.parse`, which is asked only for texts that were not parsed before, or had mistakes.

    Raises:
        RuleError: the text is no rule file.
    """
    file = cache.cache_file("parsed", version(), text)
    found = _read(file, text, path)
    if found is not None:
        return found, []
    from coset.rules import parser  # its grammar takes longer to load than all of the rest here

    parsed, errors = parser.parse(text, path)
    if not errors:
        body = CODEC.encode(replace(parsed, path=""))
        cache.write(file, compact(body).encode())
    return parsed, errors


@lru_cache(maxsize=1)
def version() -> str:
    """The hash of what decides how a text is parsed and kept: the grammar, the parser, the syntax and how it is written down."""
    here = Path(__file__).parent
    names = ("grammar.lark", "parser.py", "reader.py", "syntax.py", "parsed.py", "codec.py")
    return blake2b(b"\0".join((here / name).read_bytes() for name in names), digest_size=20).hexdigest()


def _read(file: Path | None, text: str, path: str) -> syntax.RuleFile | None:
    body = cache.read(file)
    if body is None:
        return None
    try:
        found = CODEC.decoder(lines_of(text), path)(json.loads(body))
    except UNREADABLE:
        return None
    return replace(found, path=path) if isinstance(found, syntax.RuleFile) else None
