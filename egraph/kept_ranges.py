"""What was found of the range of instances, kept from run to run: nothing else that a search asks of Python takes as long.

An answer belongs to a rule of the library or of the dialects, to what the instance looks like, and to the sources that decide both.
Instances with values that have no short text are asked about anew.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

from coset.ir.constants import Constant
from coset.ir.dims import Poly
from coset.ir.types import DType, TensorType
from coset.rules import cache
from coset.rules.codec import compact
from coset.rules.definition import further_definitions
from coset.rules.elaborated import ROOT, KeptRule, sources
from coset.rules.parsed import UNREADABLE
from coset.rules.rule import Rule

GROWING = ("egraph/ranges.py", "egraph/kept_ranges.py", "prove/*.py")  # the sources, beside those of meaning, that decide an answer
MOST_ANSWERS = 20_000  # above which all are forgotten
_PLAIN = (str, int, bool, type(None))


@dataclass
class KeptRanges:
    """The answers of a file, by digest: the nodes of a right side that may not be stored. New ones are kept by `save`."""

    new: dict[str, list[int]] = field(default_factory=dict)
    names: dict[Rule, str | None] = field(default_factory=dict)

    @cached_property
    def file(self) -> Path | None:
        """Where they are."""
        stamps = ((str(path), path.stat()) for pattern in GROWING for path in sorted(ROOT.glob(pattern)))
        growing = (f"{name} {stat.st_size} {stat.st_mtime_ns}" for name, stat in stamps)
        return cache.cache_file("ranges", sources(), *growing, *further_definitions())

    @cached_property
    def found(self) -> dict[str, list[int]]:
        """Those that were there."""
        return self._read()

    def _read(self) -> dict[str, list[int]]:
        body = cache.read(self.file)
        try:
            return {} if body is None else dict(json.loads(body))
        except UNREADABLE:
            return {}

    def key(self, rule: Rule, *instance: Any) -> str | None:
        """What the answer about an instance is kept under; None where it is not kept."""
        name = self._name(rule)
        if name is None:
            return None
        try:
            return _digest(name + compact(_text(instance)))
        except TypeError:
            return None

    def _name(self, rule: Rule) -> str | None:
        if rule not in self.names:
            words = (rule.own_name, rule.text, *rule.variables, *sorted(rule.reads), *sorted(rule.makes))
            self.names[rule] = "\0".join(words) if isinstance(rule, KeptRule) else None
        return self.names[rule]

    def get(self, key: str | None) -> frozenset[int] | None:
        """The answer, where one is known."""
        found = None if key is None else self.new.get(key, self.found.get(key))
        return None if found is None else frozenset(found)

    def put(self, key: str | None, answer: frozenset[int]) -> None:
        """Keep an answer."""
        if key is not None:
            self.new[key] = sorted(answer)

    def save(self) -> None:
        """Write what is new, beside what other processes wrote meanwhile."""
        if not self.new:
            return
        every = {**self._read(), **self.new}
        cache.write(self.file, compact(every if len(every) <= MOST_ANSWERS else self.new).encode())
        self.__dict__["found"] = every
        self.new = {}


def _digest(text: str) -> str:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=15).hexdigest()


def _text(value: Any) -> Any:
    """A value as JSON, another one for each value.

    Raises:
        TypeError: it has none.
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if isinstance(value, tuple | list):
        return [_text(item) for item in value]
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, DType | TensorType | Poly):
        return {kind.__name__: str(value)}
    if isinstance(value, Constant) and value.has_elements and value.span is None:
        return {"constant": [str(value.type), value.key]}
    raise TypeError(kind.__name__)
