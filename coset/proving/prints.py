"""What values are known by: a few sums under drawn signs, so that those of a whole program are compared without being kept."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from coset.comparing.feeds import Feed
from coset.comparing.fold import fallback_for
from coset.comparing.noise import floating, nudge, wide
from coset.ir.evaluate import evaluate_program
from coset.ir.program import Program
from coset.ir.term import INPUT, Term
from coset.prove.error_bound import roundoff

SEGMENTS = 32  # of a value, each of which is known by a sum; what has no more elements is compared one by one
# How many times the noise of a rounding error in every node, and how many roundings, equal values are apart: less than two outputs may be,
# since who is wrong here names another node and not another answer
NOISE_FACTOR, ROUNDINGS = 4.0, 16.0
Sums = np.ndarray[Any, np.dtype[np.float64]]
NOTHING: Sums = np.zeros(0)
Of = TypeVar("Of")


@dataclass(frozen=True)
class Print:
    """What a value is known by: equal ones have one `key`, and `sums` that are nearly the same, for elements of the size of `scales`."""

    key: Hashable
    sums: Sums
    scales: Sums
    epsilon: float

    @staticmethod
    def of(value: Any) -> Print:
        """The print of any value of a term."""
        if isinstance(value, list | tuple):
            parts = [Print.of(part) for part in value]
            sums, scales = (np.concatenate([NOTHING, *(getattr(part, each) for part in parts)]) for each in ("sums", "scales"))
            return Print(tuple(part.key for part in parts), sums, scales, max((part.epsilon for part in parts), default=0.0))
        if not isinstance(value, np.ndarray | np.generic) or value.dtype.kind in "OUS":
            return Print(repr(value.tolist() if isinstance(value, np.ndarray) else value), NOTHING, NOTHING, 0.0)
        array = np.ascontiguousarray(value)
        if not floating(array):
            return Print((array.size, array.dtype.kind, _digest(array)), NOTHING, NOTHING, 0.0)
        flat = np.ascontiguousarray(wide(array)).reshape(-1)
        flat = flat.view(flat.real.dtype).astype(np.float64, copy=False)
        finite = np.isfinite(flat)
        odd = b"" if finite.all() else _digest(np.where(finite, 0.0, flat))
        return Print((flat.size, odd), *_sums(np.where(finite, flat, 0.0)), roundoff(array.dtype))

    def allowed(self, moved: Print | None) -> Sums:
        """How far the sums of an equal value may be from these, of which `moved` are those after a rounding error in each node."""
        noise = 0.0
        if moved is not None and moved.key == self.key:
            relative = np.abs(moved.sums - self.sums) / np.where(self.scales, self.scales, np.inf)
            noise = float(np.max(relative, initial=0.0))
        return (NOISE_FACTOR * noise + ROUNDINGS * self.epsilon) * self.scales

    @property
    def first(self) -> float:
        """The first of the sums, by which prints are ordered."""
        return float(self.sums[0]) if self.sums.size else 0.0

    def distance(self, other: Print) -> float:
        """How far the sums of another print of this key are from these."""
        return float(np.max(np.abs(self.sums - other.sums), initial=0.0))

    def close(self, other: Print, allowed: Sums) -> bool:
        """Whether this may be the print of the same value."""
        return self.key == other.key and bool(np.all(np.abs(self.sums - other.sums) <= allowed))


Prints = Mapping[Term, Print]


class Shelf(Generic[Of]):
    """Things by their prints. Only those are compared that are kept under one key, and whose first sums are near."""

    def __init__(self, things: Iterable[tuple[Hashable, Print, Of]]) -> None:
        """Each with what must be the same beside the print's own key."""
        self._rows: dict[Hashable, list[tuple[float, Print, Of]]] = {}
        for key, own, thing in things:
            self._rows.setdefault((key, own.key), []).append((own.first, own, thing))
        for row in self._rows.values():
            row.sort(key=lambda entry: entry[0])

    def near(self, key: Hashable, own: Print, allowed: Sums) -> Iterator[tuple[Print, Of]]:
        """The things whose print may be that of the same value, where sums may be `allowed` apart."""
        row = self._rows.get((key, own.key), [])
        around = float(allowed[0]) if allowed.size else 0.0
        for place in range(bisect_left(row, own.first - around, key=lambda entry: entry[0]), len(row)):
            first, other, thing = row[place]
            if first > own.first + around:
                break
            if own.close(other, allowed):
                yield other, thing


def _digest(array: np.ndarray[Any, Any]) -> bytes:
    return hashlib.blake2b(array.tobytes(), digest_size=16).digest()


def _sums(flat: Sums) -> tuple[Sums, Sums]:
    """The sums of the segments of a value under signs that its size decides, in the unit of an element, and the size of these elements."""
    signs = np.unpackbits(np.frombuffer(np.random.default_rng(flat.size).bytes((flat.size + 7) // 8), np.uint8), count=flat.size)
    width = -(-flat.size // SEGMENTS) if flat.size else 1
    padded = np.zeros(-(-flat.size // width) * width)
    padded[: flat.size] = np.where(signs, flat, -flat)
    rows = padded.reshape(-1, width)
    return rows.sum(1) / np.sqrt(width), np.sqrt((rows * rows).sum(1) / width)


def known_by(program: Program, feed: Feed, *, noisy: bool = False) -> dict[Term, Print]:
    """The prints of what a program computes from its inputs, and of those; with `noisy` each moved by a rounding error."""
    varying: dict[Term, Print] = {}
    draw = np.random.default_rng(0)

    def tap(term: Term, value: Any) -> Any:
        if term.op is not INPUT and not any(operand in varying for operand in term.operands):
            return value
        if noisy and isinstance(value, np.ndarray):
            value = nudge(value, draw)
        varying[term] = Print.of(value)
        return value

    with np.errstate(all="ignore"):
        evaluate_program(program, feed, fallback=fallback_for(program.source), tap=tap)
    return varying
