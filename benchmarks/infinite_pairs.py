"""Pairs of programs that differ in infinities, NaN and signs of zeros alone, or not at all: are the comparison and `coset prove` right?

    python -m benchmarks.infinite_pairs [--sample N] [--record FILE]

What differs is known from outside: both programs of a pair are run by ONNX Runtime without its optimizer on all pairs of numbers among
infinities, NaN, zeros of both signs, ones, the ends of the type and drawn ones, which is more than the comparison draws. Each pair stands
in one of several surroundings (negated, joined, turned, halved, under a hyperbolic tangent) or alone.

Right is, under `exact`, that other bits are seen and refuted, and that no equal pair is; under the default, that another infinity, a lost
NaN, a new one, or another number is seen and never called proved, and that no equal pair is refuted. What happens beyond 1e18 is a matter
of range there, which f32 may leave (docs/numerics.md, C).
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser

from coset.backends.onnxruntime import Session
from coset.comparing.check import Oracle
from coset.frontends.onnx.model import import_model
from coset.ir.errors import CosetError
from coset.proving.prove import PROVED, REFUTED, Proving, prove

SIDE = 24
MASK = np.tril(np.ones((SIDE, SIDE), bool))
INF, NAN = float("inf"), float("nan")
BODIES = {
    # what each computes of x and w, in families: any two of one family are a pair
    "masks": (
        "t = Where(m, x, minf)", "t = Identity(x)", "t = Where(m, x, inf)", "t = Where(m, x, nan)", "t = Where(m, x, zero)",
        "t = Where(m, x, low)", "t = Add(x, am)",
    ),
    "zeros": ("t = Sub(zero, x)", "t = Neg(x)", "t = Mul(x, mone)", "t = Sub(mzero, x)"),
    "nothing": ("t = Sub(x, x)", "t = Mul(x, zero)", "t = Mul(zero, x)", "a = Abs(x) t = Mul(a, mzero)"),
    "halves": ("t = Mul(x, half)", "t = Div(x, two)", "a = Mul(x, quarter) t = Add(a, a)"),
    "rectified": (
        "t = Relu(x)", "t = Max(x, zero)", "p = Greater(x, zero) t = Where(p, x, zero)", "p = Less(x, zero) t = Where(p, zero, x)",
        "p = Greater(x, zero) f = Cast<to=1>(p) t = Mul(x, f)", "a = Abs(x) b = Add(x, a) t = Mul(b, half)",
    ),
    "bounded": ("t = Clip(x, minf, inf)", "t = Identity(x)", "t = Clip(x, low, high)", "t = Min(x, inf)", "t = Max(x, minf)"),
    "there and back": ("a = Add(x, one) t = Sub(a, one)", "a = Exp(x) t = Log(a)", "t = Identity(x)", "a = Mul(x, two) t = Mul(a, half)"),
    "roots": ("a = Mul(x, x) t = Sqrt(a)", "t = Abs(x)", "p = Less(x, zero) n = Neg(x) t = Where(p, n, x)", "n = Neg(x) t = Max(x, n)"),
    "quotients": ("t = Reciprocal(x)", "t = Div(one, x)", "a = Neg(x) b = Reciprocal(a) t = Neg(b)", "a = Add(x, zero) t = Reciprocal(a)"),
    "sums": ("t = Add(x, w)", "t = Add(w, x)", "n = Neg(w) t = Sub(x, n)", "n = Neg(x) t = Sub(w, n)", "a = Add(x, zero) t = Add(a, w)"),
    "differences": ("t = Sub(x, w)", "a = Sub(w, x) t = Neg(a)", "n = Neg(w) t = Add(x, n)"),
    "chosen": (
        "p = Equal(x, x) t = Where(p, x, zero)", "p = IsNaN(x) t = Where(p, zero, x)", "t = Identity(x)",
        "p = IsInf(x) t = Where(p, zero, x)",
    ),
    "larger": ("t = Max(x, w)", "t = Max(w, x)", "p = Greater(x, w) t = Where(p, x, w)", "p = GreaterOrEqual(x, w) t = Where(p, x, w)"),
}  # fmt: skip
AROUND = {
    "": "y = Identity(t)", "negated": "y = Neg(t)", "joined": "y = Concat<axis=0>(t, w)", "turned": "y = Transpose(t)",
    "halved": "y = Mul(t, half)", "under tanh": "y = Tanh(t)",
}  # fmt: skip
CONSTANTS: dict[str, Any] = {
    "m": MASK, "am": np.where(MASK, 0, -INF), "zero": 0.0, "mzero": -0.0, "one": 1.0, "mone": -1.0, "two": 2.0, "half": 0.5,
    "quarter": 0.25, "inf": INF, "minf": -INF, "nan": NAN, "low": -3.4028234663852886e38, "high": 3.4028234663852886e38,
}  # fmt: skip


@dataclass(frozen=True)
class Pair:
    """Two programs: a family, the numbers of two of its members, and what is around them."""

    family: str
    one: int
    other: int
    around: str

    @property
    def name(self) -> str:
        """What it is called in the record."""
        return f"{self.family} {self.one} {self.other}{f', {self.around}' if self.around else ''}"

    def models(self) -> tuple[Any, Any]:
        """Both, as ONNX models."""
        first, second = (_model(f"{BODIES[self.family][number]} {AROUND[self.around]}") for number in (self.one, self.other))
        return first, second


def pairs() -> list[Pair]:
    """All of them, with each surrounding in turn: one of them for a pair, and the bare one."""
    found = []
    around = itertools.cycle(name for name in AROUND if name)
    for family, bodies in BODIES.items():
        for one, other in itertools.permutations(range(len(bodies)), 2):
            found.append(Pair(family, one, other, "" if one < other else next(around)))
    return found


def _model(body: str) -> Any:
    shape = f"float[{SIDE},{SIDE}]"
    found = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g ({shape} x, {shape} w) => (float[a,b] y) {{ {body} }}')
    used = {name for node in found.graph.node for name in node.input}
    for name in sorted(used & CONSTANTS.keys()):
        value = np.asarray(CONSTANTS[name])
        found.graph.initializer.append(onnx.numpy_helper.from_array(value if value.dtype == bool else value.astype(np.float32), name))
    return found


def numbers() -> dict[str, Any]:
    """Inputs in which each of the numbers meets each, on both sides of the mask."""
    ends = np.finfo(np.float32)
    special = [INF, -INF, NAN, 0.0, -0.0, 1.0, -1.0, 2.5, ends.max, ends.min, ends.tiny, -ends.tiny]
    column = np.array([*special, *np.random.default_rng(0).standard_normal(SIDE - len(special))], np.float32)
    return {"x": np.repeat(column[:, None], SIDE, 1), "w": np.repeat(column[None], SIDE, 0)}


def known(one: Any, other: Any, feed: dict[str, Any]) -> tuple[bool, bool, bool]:
    """Whether bits differ, whether more than roundings, signs of zeros and exchanges of an infinity and a NaN do, and whether that is so
    where the inputs are finite; the latter two of inputs that are not near the ends of the type."""
    left, right = (Session(model.SerializeToString(), level="off").run(feed)["y"] for model in (one, other))
    bits = not np.array_equal(left.view(np.uint32), right.view(np.uint32)) and not _same_but_nan(left, right)
    with np.errstate(all="ignore"):
        near = np.abs(left - right) <= 1e-4 * np.maximum(np.abs(left), 1.0)
    same = (left == right) | (np.isfinite(left) & np.isfinite(right) & near) | (np.isnan(left) & ~np.isfinite(right))
    same |= np.isnan(right) & ~np.isfinite(left)
    inside, finite = (_seen(feed, left.shape[0], far) for far in (True, False))
    return bits, not (same | ~inside).all(), not (same | ~finite).all()


def _seen(feed: dict[str, Any], rows: int, infinite: bool) -> Any:
    """Where both inputs are of usual size or, where it is asked for, not finite; at all other rows of what was joined."""
    usual = [
        (np.abs(value) < 1e18) & ((np.abs(value) > 1e-18) | (value == 0)) | (~np.isfinite(value) & infinite) for value in feed.values()
    ]
    seen = usual[0] & usual[1]
    return np.concatenate([seen, np.ones_like(seen)]) if rows > SIDE else seen


def _same_but_nan(left: Any, right: Any) -> bool:
    """All NaN are one, whatever their bits."""
    one, other = (np.where(np.isnan(value), np.uint32(0x7FC00000), value.view(np.uint32)) for value in (left, right))
    return bool(np.array_equal(one, other))


def wrong(pair: Pair, folder: Path, feed: dict[str, Any]) -> tuple[str, list[str]]:
    """What kind of pair it is, and what is said wrongly of it."""
    models = pair.models()
    bits, different, plainly = known(*models, feed)
    paths = folder / "one.onnx", folder / "other.onnx"
    for path, model in zip(paths, models, strict=True):
        onnx.save(model, path)
    found = []
    for numerics, differs in (("exact", bits), ("reassociates", different)):
        exact = numerics == "exact"
        same = Oracle(paths[0], import_model(paths[0]), {}, exact=exact).compare(paths[1], exact=exact).ok
        said = _answer(paths, numerics)
        if differs and same:
            found.append(f"{numerics}: the comparison sees no difference")
        if not bits and not same:
            found.append(f"{numerics}: the comparison sees a difference")
        if (bits if numerics == "exact" else plainly) and said == PROVED:
            found.append(f"{numerics}: proved")
        if numerics == "exact" and bits and said != REFUTED:
            found.append(f"{numerics}: {said}, not refuted")
        if not bits and said == REFUTED:
            found.append(f"{numerics}: refuted")
    kind = "the same bits" if not bits else "other numbers" if plainly else "other on infinite inputs" if different else "other bits"
    return kind, found


def _answer(paths: tuple[Path, Path], numerics: str) -> str:
    try:
        return str(prove(Proving(*paths, numerics, seconds=2.0))["answer"])
    except CosetError as error:
        return f"an error: {error.message}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, help="so many, drawn")
    parser.add_argument("--record", type=Path, help="write what was found")
    asked = parser.parse_args()
    chosen = pairs() if asked.sample is None else random.Random(0).sample(pairs(), asked.sample)
    feed, kinds, lines = numbers(), Counter[str](), list[str]()
    with tempfile.TemporaryDirectory() as folder:
        for pair in chosen:
            kind, found = wrong(pair, Path(folder), feed)
            kinds[kind] += 1
            lines += [f"{pair.name} ({kind}): {each}" for each in found]
            print("\n".join(lines[len(lines) - len(found) :]), end="\n" if found else "", flush=True)
    summary = f"{len(chosen)} pairs ({', '.join(f'{count} {kind}' for kind, count in kinds.most_common())}): {len(lines)} answers are wrong"
    print(summary)
    if asked.record is not None:
        asked.record.write_text("\n".join([summary, *lines]) + "\n")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
