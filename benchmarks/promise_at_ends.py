"""Every rule of the library at the ends of f16, bf16 and f32: does each instance that a search admits keep what the rule promises?

    nice -n 10 python -m benchmarks.promise_at_ends [ENTRY ..] [--seconds S] [--seed N] [--record FILE]

Instances are drawn of each element type; what the rule's grades keep a search from (`egraph/ranges.py`) is counted and left out. Inputs are
drawn at the ends: the largest numbers and their roots, the least normal and subnormal ones, their roots and inverses, 1 and its neighbours,
zeros, beside ordinary numbers. An oracle that knows nothing of the prover judges (`benchmarks.promise_oracle`, words of docs/numerics.md):

- values: exact evaluations in f64 agree (A), or the bits do, where the rule says `exact`;
- growth: no stored value of the right side outweighs the heaviest one of the left further than C admits, on all draws together;
- result: where that growth leaves room for every value and the left side, stored in its types, is right, the right side is right too, but
  for roundings of the largest value on the way. Elements that move by a hundredth when an input moves by a rounding are left out.

Exit code 1 where a promise is broken.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import prod
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import coset.dialects
from benchmarks.oracle_draws import Draw, computes_numbers, fitted, undefined
from benchmarks.promise_oracle import BITS, VALUES, broken, evaluated, results, sides, widening
from coset.egraph.ranges import in_range
from coset.ir.errors import CosetError
from coset.ir.evaluate import evaluate
from coset.ir.op import Array
from coset.ir.term import Term, topological
from coset.ir.types import DTYPES, DType, TensorType
from coset.rules.definition import evaluate_defined, expand, is_defined
from coset.rules.instance import Instance
from coset.rules.instances import instances
from coset.rules.library import load
from coset.rules.lock import entry_of
from coset.rules.rule import Rule

assert coset.dialects
Inputs = Mapping[str, Array]
TYPES = ("f16", "bf16", "f32")
WORDS = ("exact", "reassociates", "real")
INSTANCES, DRAWS = 4, 6  # of each element type in a turn; inputs of each
MOST_ELEMENTS = 512
# docs/numerics.md, C: log2 of what is admitted by the first and by the second weight, of what weighs nothing; degree, and its domain
FIRST, SECOND, LEAST = (
    {"f16": 1.0, "bf16": 16.0, "f32": 16.0},
    {"f16": 4.0, "bf16": 16.0, "f32": 16.0},
    {"f16": -8, "bf16": -64, "f32": -64},
)
DEGREE, OVER = 4, 16.0
NEAR, RIGHT, ROUNDINGS, MOVED, CANCELLED = 0.1, 0.02, 256.0, 0.01, 1e-12
POLES = frozenset(("divide", "log", "rsqrt", "log_plus_one", "remainder", "power"))  # not finite for some finite operands
SUMS = frozenset(f"stablehlo.{name}" for name in (
    "add", "subtract", "reduce", "reduce_window", "dot_general", "convolution", "maximum", "minimum", "select", "clamp", "negate", "abs",
    "convert",
))  # fmt: skip  # of which the second weight does not count: exact below the normal range, or an operand


@dataclass
class Found:
    """What became of one entry: draws that were judged, instances that no search fires, and how a promise was broken."""

    entry: str
    draws: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)


# ---------------------------------------------------------------- inputs


def at_ends(generator: np.random.Generator, dtype: DType, shape: tuple[int, ...], least: bool) -> Array:
    """Finite numbers of a float type at the ends of its range and in the middle; `least`: only those that are small, so that sums of them
    and products of a few have room."""
    info = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]
    high, tiny, below = float(info.max), float(info.tiny), float(info.smallest_subnormal)
    large = [high, high / 2, math.sqrt(high), math.sqrt(high) / 2, high**0.25]
    small = [tiny, 2 * tiny, below, math.sqrt(tiny), 1 / high**0.25, 0.0, -0.0]
    middle = [1.0, 1 + float(info.eps), 1 - float(info.eps), 2.0, 0.5, 3.0]
    own = np.asarray(generator.permutation([*([] if least else large), *small, *middle]))[: generator.integers(1, 6)]
    values = generator.choice(own, shape) * generator.choice([1.0, -1.0], shape) * generator.choice([1.0, 1.0, 0.75], shape)
    ordinary = generator.normal(size=shape)
    return np.asarray(np.where(generator.random(shape) < 0.3, ordinary, values)).astype(dtype.numpy)


def inputs_of(rule: Rule, instance: Instance, generator: np.random.Generator) -> dict[str, Array]:
    """Inputs of an instance, such as the facts of the rule say."""
    facts = {name: fact for fact, name in rule.facts}
    least = bool(generator.integers(2))
    found = {}
    for name, type in zip(rule.variables, instance.variable_types, strict=True):
        assert isinstance(type, TensorType) and type.static is not None
        if type.dtype.kind == "float":
            values = at_ends(generator, type.dtype, type.static, least)
        elif type.dtype.kind == "bool":
            values = generator.integers(0, 2, type.static).astype(bool)
        else:
            values = generator.integers(0 if type.dtype.kind == "uint" else -4, 5, type.static).astype(type.dtype.numpy)
        found[name] = fitted(values, facts.get(name, ""))
    return found


# ---------------------------------------------------------------- stored values


def is_float(term: Term) -> bool:
    """Whether a term is a tensor of floats."""
    return isinstance(term.type, TensorType) and term.type.dtype.kind == "float"


def stored(root: Term) -> list[Term]:
    """The float values that a side stores: what only moves elements stores nothing new."""
    return [term for term in filter(is_float, topological([root])) if term is root or not term.op.has("movement") or not term.operands]


def counts_below(term: Term) -> bool:
    """Whether the second weight of a value counts: of products, quotients and functions."""
    while is_defined(term.op):
        term = expand(term)
    while term.op.has("movement") and term.operands:
        term = term.operands[0]
    return term.op.name not in SUMS


def span(value: Array) -> tuple[float, float]:
    """log2 of the largest and of the least magnitude that is not 0; of a value that is not finite (inf, -inf)."""
    sizes = np.abs(value.astype(np.float64)).reshape(-1)
    sizes = sizes[sizes != 0]
    if not sizes.size:
        return -math.inf, math.inf
    if not np.all(np.isfinite(sizes)):
        return math.inf, -math.inf
    return float(np.log2(sizes.max())), float(np.log2(sizes.min()))


class Judge:
    """One instance of a rule, whose sides are evaluated exactly and as they are stored."""

    def __init__(self, rule: Rule, pair: tuple[Term, Term]) -> None:
        self.rule, self.pair = rule, pair
        constants = {name for fact, name in rule.facts if fact == "const"}
        self.left = stored(pair[0])
        mine = set(self.left)
        self.right = [term for term in stored(pair[1]) if term not in mine and term is not pair[1]]
        self.fixed = fixed_terms(pair, constants)
        wide = widening(pair)
        self.wide = [wide[term] for term in (*self.left, *self.right, *pair)]
        # of each value of the right side, over all draws: how far it outweighs the left beyond what a bound, and what a degree, admit
        self.beyond = [(-math.inf, -math.inf) for _ in self.right]

    def exact(self, inputs: Inputs) -> tuple[Inputs, list[Array]]:
        """The inputs in f64, and the exact evaluations of what the sides store and of the sides."""
        wide = {name: a.astype(np.float64) if a.dtype.kind not in "biu" else a for name, a in inputs.items()}
        with np.errstate(all="ignore"):
            return wide, list(map(np.asarray, evaluate(self.wide, wide, fallback=evaluate_defined)))

    def says_nothing(self, values: Sequence[Array]) -> bool:
        """Whether f64 itself overflows on the way, or a function is 0 where it is none."""
        known = dict(zip((*self.left, *self.right, *self.pair), values, strict=True))
        for term, value in known.items():
            name = term.op.name.rpartition(".")[2]
            if name == "reduce" and term.attribute("combiner") == "multiply" and long_product(known.get(term.operands[0])):
                return True
            if name in POLES or not term.operands or not all(np.all(np.isfinite(known[o])) for o in term.operands if o in known):
                continue
            if not np.all(np.isfinite(value)) or (name in ("exponential", "power", "logistic") and not np.all(value)):
                return True
        return False

    def cancels(self, values: Sequence[Array], left: Array, right: Array) -> bool:
        """Whether two results differ by roundings that f64 makes of the sums inside of ops."""
        highs = dict(zip((*self.left, *self.right), (span(value)[0] for value in values), strict=False))
        largest = max((self.inside(term, highs) for term in topological(self.pair)), default=0.0)
        with np.errstate(all="ignore"):
            apart = np.abs(left.astype(np.float64) - right.astype(np.float64))
        return largest < 1000 and bool(np.all(apart[np.isfinite(apart)] <= CANCELLED * 2.0**largest))

    @staticmethod
    def inside(term: Term, highs: Mapping[Term, float]) -> float:
        """log2 of how large sums inside of an op may become that folds elements, or has a definition."""
        if not term.operands or not is_float(term) or (not is_defined(term.op) and (term.op.has("elementwise") or term.op.has("movement"))):
            return 0.0
        operands = [operand for operand in term.operands if is_float(operand)]
        most = max((prod(operand.tensor.static or ()) for operand in operands), default=1)
        return sum(max(0.0, highs.get(operand, 0.0)) for operand in operands) + math.log2(max(4, most))

    def draw(self, inputs: Inputs, wide: Inputs, values: Sequence[Array], generator: np.random.Generator) -> str:
        """What one draw shows against the range; "" for nothing."""
        room = self.weigh([span(value) for value in values[: len(self.left) + len(self.right)]])
        if not room or self.rule.numerics.word == "real":
            return ""
        return self.result(inputs, wide, values, generator)

    def weigh(self, spans: Sequence[tuple[float, float]]) -> bool:
        """Weighs the values of one draw; whether what is admitted leaves room for every one on the right."""
        left, right = spans[: len(self.left)], spans[len(self.left) :]
        if any(high == math.inf for high, _ in left):
            return False
        ends = {name: math.log2(float(ml_dtypes.finfo(DTYPES[name].numpy).max)) for name in TYPES}  # type: ignore[no-untyped-call]
        names = [term.tensor.dtype.name for term in self.left]
        if any(name not in ends for name in names):
            return False
        heavy = [high - ends[name] for (high, _), name in zip(left, names, strict=True)]
        heavy += [-low - ends[name] for (_, low), name, term in zip(left, names, self.left, strict=True) if term not in self.fixed]
        widest = max(0.0, *(max(high, -low) for high, low in left if high > -math.inf))
        room = self.sums_have_room(dict(zip((*self.left, *self.right), (high for high, _ in spans), strict=True)))
        for number, ((high, low), term) in enumerate(zip(right, self.right, strict=True)):
            name = term.tensor.dtype.name
            if name not in ends or high == math.inf:
                room = False
                continue
            weight = max(LEAST[name], *heavy)
            small = counts_below(term)
            below = small and term not in self.fixed
            bound = max(high - ends[name] - weight - FIRST[name], (-low - ends[name] - weight - SECOND[name]) if below else -math.inf)
            degree = math.inf if name == "f16" else max(high, -low if below else -math.inf) - DEGREE * widest - OVER
            self.beyond[number] = max(self.beyond[number][0], bound), max(self.beyond[number][1], degree)
            room = room and high < ends[name] - 0.01 and (not small or -low < ends[name] - 2.0)
        return room

    def sums_have_room(self, highs: Mapping[Term, float]) -> bool:
        """Whether partial sums inside of ops fit their types: they are not stored, and their range is nobody's promise."""
        floats = [term for term in topological(self.pair) if is_float(term)]
        return all(self.inside(t, highs) <= math.log2(float(ml_dtypes.finfo(t.tensor.dtype.numpy).max)) for t in floats)  # type: ignore[no-untyped-call]

    def result(self, inputs: Inputs, wide: Inputs, values: Sequence[Array], generator: np.random.Generator) -> str:
        """Whether the right side is right where the left is."""
        (left, right), exact = evaluated(self.pair, inputs), values[-1]
        if left.dtype.kind in "biu":
            return ""
        largest = max((float(np.max(np.abs(v), where=np.isfinite(v), initial=0.0)) for v in values if v.dtype.kind == "f"), default=0.0)
        widths = [float(ml_dtypes.finfo(t.tensor.dtype.numpy).eps) for t in (*self.left, *self.right, self.pair[1]) if is_float(t)]  # type: ignore[no-untyped-call]
        info = ml_dtypes.finfo(self.pair[0].tensor.dtype.numpy)  # type: ignore[no-untyped-call]
        with np.errstate(all="ignore"):
            own, other = left.astype(np.float64), right.astype(np.float64)
            good = np.isfinite(exact) & np.isfinite(own) & (np.abs(own - exact) <= RIGHT * np.abs(exact))
            allowed = NEAR * np.abs(exact) + ROUNDINGS * max(widths) * largest + 8 * float(info.tiny)
            lost = good & ~(np.abs(other - exact) <= allowed)
            if np.any(lost):
                lost &= steady(self.wide[-1], wide, exact, max(widths), generator)
        return "the right side leaves its range" if np.any(lost) else ""


def long_product(value: Array | None) -> bool:
    """Whether some order of multiplying numbers leaves the range of f64."""
    sizes = np.abs(np.zeros(0) if value is None else value.astype(np.float64))
    with np.errstate(all="ignore"):
        return bool(np.sum(np.abs(np.log2(sizes[sizes > 0]))) > 1000)


def steady(root: Term, wide: Mapping[str, Array], exact: Array, width: float, generator: np.random.Generator) -> Array:
    """The elements that hardly move where inputs move by a rounding."""
    kept = np.ones(exact.shape, bool)
    for _ in range(3):
        near = {name: v * (1 + width * generator.uniform(-1, 1, v.shape)) if v.dtype.kind == "f" else v for name, v in wide.items()}
        (value,) = evaluate([root], near, fallback=evaluate_defined)
        kept &= np.abs(np.asarray(value) - exact) <= MOVED * np.abs(exact)
    return kept


def fixed_terms(pair: tuple[Term, Term], constants: set[str]) -> set[Term]:
    """What is computed of constants alone."""
    found: set[Term] = set()
    for term in topological(pair):
        own = str(term.attribute("name")) in constants if term.op.name == "builtin.input" else all(o in found for o in term.operands)
        if own:
            found.add(term)
    return found


# ---------------------------------------------------------------- entries


def judge(name: str, rules: Sequence[Rule], seconds: float, seed: int = 0) -> Found:
    """Draws instances of an entry's rules in turn, of each element type, for some `seconds` of the processor."""
    found = Found(name)
    ends, turn = time.process_time() + seconds, 0
    while time.process_time() < ends and turn < 40 and len(found.broken) < 3:
        for rule in rules:
            for dtype in TYPES:
                search = Draw(random.Random(f"{seed}:{turn}:{dtype}"), dtypes=2, most_rank=3, turn=turn, elements=(dtype,), firing=True)
                generator = np.random.default_rng([seed, turn])
                try:
                    for instance in islice(instances(rule, search), INSTANCES):
                        _instance(rule, instance, generator, dtype, found)
                        if time.process_time() > ends:
                            return found
                except CosetError:
                    continue
        turn += 1
    return found


def _instance(rule: Rule, instance: Instance, generator: np.random.Generator, dtype: str, found: Found) -> None:
    types = (*instance.variable_types, *instance.left_types)
    if not all(isinstance(t, TensorType) and t.static is not None and prod(t.static) <= MOST_ELEMENTS for t in types):
        return
    if not any(t.dtype.name == dtype for t in types if isinstance(t, TensorType)) or any(t.dtype.kind == "complex" for t in types):  # type: ignore[union-attr]
        return
    decision = rule.decide(instance.attributes, instance.left_types, instance.variable_types)
    both = sides(rule, instance)
    if decision is None or both is None:
        return
    if not in_range(rule, instance.attributes, instance.variable_types, decision):
        found.refused[dtype] += 1
        return
    exact = rule.numerics.word == "exact"
    rounded = computes_numbers(rule) or computes_numbers(
        rule, left=True
    )  # what cancels does so up to the rounding of a number, and weighs anything
    for pair in results(both):
        if not prod(pair[0].tensor.static or ()):
            continue  # without elements
        try:
            judge = Judge(rule, pair)
        except CosetError:
            return  # a payload function, or an op that is not for f64
        for _ in range(DRAWS):
            inputs = inputs_of(rule, instance, generator)
            try:
                if undefined(pair, inputs):
                    continue
                wrong = broken(rule, pair, inputs, BITS if exact else VALUES, meant=False)
                wide, values = judge.exact(inputs)
                if not exact and judge.says_nothing(values):
                    continue
                if wrong is not None and wrong.why == "other values" and (rounded or judge.cancels(values, wrong.left, wrong.right)):
                    wrong = None
                if rule.numerics.word == "real" and wrong is not None and wrong.why != "other values":
                    wrong = None  # the domain may change
                why = wrong.why if wrong is not None else "" if exact else judge.draw(inputs, wide, values, generator)
            except (CosetError, ValueError, TypeError, OverflowError):
                continue
            found.draws[dtype] += 1
            if why:
                found.broken.append(f"{rule.name} at {dtype}: {why}; {_told(instance, inputs, evaluated(pair, inputs))}")
                return
        if rounded or rule.numerics.word != "reassociates":
            continue
        for term, (bound, degree) in zip(judge.right, judge.beyond, strict=True):
            if min(bound, degree) > 0.01:
                found.broken.append(
                    f"{rule.name} at {dtype}: `{term.op.name}` outweighs the left by 2^{bound:.2f} more than is admitted; "
                    f"{_told(instance, {}, None)}"
                )


def _told(instance: Instance, inputs: Mapping[str, Array], values: Any) -> str:
    own = [", ".join(f"{key} = {value}" for key, value in items) for items in instance.attributes if items]
    given = [f"{name} = {np.array2string(a.astype(np.float64), threshold=10)}".replace("\n", "") for name, a in inputs.items()]
    shown = [] if values is None else [f"{np.array2string(v.astype(np.float64), threshold=10)}".replace("\n", "") for v in values]
    return "; ".join([*own, *map(str, instance.variable_types), *given, *shown])[:900]


def entries() -> dict[str, list[Rule]]:
    """The rules of the library that speak of ranges or bits, by entry, each once."""
    found: dict[str, list[Rule]] = {}
    for rule in load(with_definitions=False).rules:
        judged = rule.numerics.word in WORDS and not set(rule.numerics.exceptions) - {"signed_zero", "nonfinite"}
        if judged and not rule.name.endswith(f" in {rule.phase}"):
            found.setdefault(entry_of(rule), []).append(rule)
    return found


def main() -> int:
    """Judge the entries that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("entries", nargs="*", help="by default all")
    parser.add_argument("--seconds", type=float, default=4.0, help="of the processor for an entry")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", type=Path, help="write what was found")
    asked = parser.parse_args()
    every = entries()
    for name in asked.entries:
        if name not in every:
            parser.error(f"there is no entry `{name}` in the library, or it promises neither bits nor ranges")
    found = []
    for name in asked.entries or sorted(every):
        found.append(judge(name, every[name], asked.seconds, asked.seed))
        for line in found[-1].broken:
            print(line, flush=True)
    lines = [line for each in found for line in each.broken]
    draws, refused = sum((each.draws for each in found), Counter()), sum((each.refused for each in found), Counter())
    silent = [each.entry for each in found if not each.draws]
    lines.append(
        f"{len(found)} entries, draws {dict(draws)}, instances that no search fires by their range {dict(refused)}; "
        f"{sum(bool(each.broken) for each in found)} entries broken; nothing drawn of {len(silent)}: {', '.join(silent)}"
    )
    print(lines[-1])
    if asked.record is not None:
        asked.record.write_text("\n".join(lines) + "\n")
    return int(any(each.broken for each in found))


if __name__ == "__main__":
    sys.exit(main())
