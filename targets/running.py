"""How a runtime is told to run a program: the options that an optimized model carries, and what a target knows to choose them by."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from coset.ir.errors import CosetError
from coset.targets.target import Rate

KEY = "coset.session"
"""The key of an ONNX model's `metadata_props` under which its options lie, as JSON."""
DEVICE = "coset.device"
"""The key of an ONNX node's `metadata_props` under which the name of the target lies that it runs on, if there are two."""
LEVELS = ("all", "extended", "basic", "off")
"""ONNX Runtime's levels of graph optimization, most first."""
AS_STORED = "session.qdq_matmulnbits_accuracy_level"
"""How activations in front of weights of few bits are multiplied by ONNX Runtime's optimizer: `1` as they are, by default in 8 bits."""
ENTRIES = frozenset({"session.intra_op.allow_spinning", "session.dynamic_block_base", "session.set_denormal_as_zero", AS_STORED})
"""Session entries that are taken from a model: a file that someone sent may say how fast it is run, not what is read or written."""
MOST_THREADS = 1024


@dataclass(frozen=True)
class Running:
    """Options of a session: level of graph optimization, optimizers left out by name, intra-op threads (None: as many as whoever runs it
    has to give) and session entries by key."""

    level: str = "all"
    disabled: tuple[str, ...] = ()
    threads: int | None = None
    entries: tuple[tuple[str, str], ...] = ()

    def summary(self) -> dict[str, Any]:
        """What is stored, with every key there."""
        return {"level": self.level, "disabled": list(self.disabled), "threads": self.threads, "entries": dict(self.entries)}

    def text(self) -> str:
        """The stored form: JSON in one order, so that equal options are equal bytes."""
        return json.dumps(self.summary(), sort_keys=True, separators=(",", ":"))

    def at(self, level: str) -> Running:
        """The same options at another level."""
        return replace(self, level=level)


@dataclass(frozen=True)
class Sessions:
    """What a target knows about running. `levels`: from the fastest to the one that changes nothing, tried in this order until the
    outputs are those of the original. `disabled`: optimizers that lose on it, each with the measurement; those in `stacked` only where a
    program multiplies a stack of matrices by one. `alone`: predicted seconds below which a second thread does not pay."""

    levels: tuple[str, ...]
    disabled: Mapping[str, str]
    alone: Rate
    stacked: frozenset[str] = frozenset()


def parse_running(text: str) -> Running:
    """The options in the stored form `text`; keys and entries that this version does not know are passed over.

    Raises:
        CosetError: it is no JSON object, or a key that is known has a value that cannot be.
    """
    try:
        found = json.loads(text)
    except ValueError as error:
        raise _malformed(f"no JSON ({error})") from None
    if not isinstance(found, dict):
        raise _malformed("no JSON object")
    level, disabled = found.get("level", "all"), found.get("disabled", [])
    threads, entries = found.get("threads"), found.get("entries", {})
    if level not in LEVELS:
        raise _malformed(f"`level` is {level!r}, none of {', '.join(LEVELS)}")
    if not isinstance(disabled, list) or not all(isinstance(name, str) for name in disabled):
        raise _malformed("`disabled` is no list of names")
    if threads is not None and not (type(threads) is int and 1 <= threads <= MOST_THREADS):
        raise _malformed(f"`threads` is {threads!r}, no number from 1 to {MOST_THREADS}")
    if not isinstance(entries, dict) or not all(isinstance(value, str) for value in entries.values()):
        raise _malformed("`entries` is no object of texts")
    known = tuple((key, value) for key, value in sorted(entries.items()) if key in ENTRIES)
    if number := next((value for _, value in known if not value.isdigit()), None):
        raise _malformed(f"an entry is {number!r}, no number")
    return Running(level, tuple(disabled), threads, known)


def _malformed(what: str) -> CosetError:
    return CosetError(f"the options that the model stores under `{KEY}` are malformed: {what}", help="optimize the model again")
