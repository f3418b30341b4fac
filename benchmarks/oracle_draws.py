"""Inputs on which a rule breaks its promise, looked for without the prover: empty dims, ranks to 4, infinities, NaN, both zeros, ends of
integers. What is found is a fact: the instance is evaluated, and judged by `benchmarks.promise_oracle`."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from math import prod
from typing import Any

import ml_dtypes
import numpy as np

from benchmarks.promise_oracle import BITS, Broken, broken, sides
from coset.dialects.expansion import expanded
from coset.ir.errors import CosetError
from coset.ir.evaluate import evaluate
from coset.ir.op import Array
from coset.ir.term import Term, topological
from coset.ir.types import DType, TensorType
from coset.rules.algebra import Call, Scalar
from coset.rules.definition import evaluate_defined
from coset.rules.instance import Instance, InstanceSearch
from coset.rules.instances import instances
from coset.rules.parts import parts
from coset.rules.rule import Rule

DIMS = (0, 1, 2, 3, 5, 7, 4, 6)
MOST_ELEMENTS = 2048
MOST_CHARACTERS = 100  # of an array in a message
INSTANCES = 6  # of one draw of types and ranks
MANNERS = ("moderate", "zeros", "special", "one_special")
_FUNCTIONS = frozenset(f"stablehlo.{name}" for name in (
    "exponential", "exponential_minus_one", "log", "log_plus_one", "logistic", "tanh", "sine", "cosine", "tan", "power", "cbrt",
    "dot_general", "convolution",
))  # fmt: skip


@dataclass(frozen=True)
class Witness:
    """An instance and inputs on which a rule breaks its promise."""

    attributes: str
    inputs: Mapping[str, Array]
    broken: Broken

    def __str__(self) -> str:
        given = [f"{name} = {_text(array)}: {array.dtype}" for name, array in self.inputs.items()]
        shown = f"left {_text(self.broken.left)}, right {_text(self.broken.right)}"
        return f"{'; '.join([*([self.attributes] if self.attributes else []), *given])}: {shown} ({self.broken.why})"


def _text(array: Any) -> str:
    text = re.sub(r"\s+", " ", np.array2string(np.asarray(array), threshold=12, separator=", "))
    return text if len(text) <= MOST_CHARACTERS else text[:MOST_CHARACTERS] + " .."


class Draw(InstanceSearch):
    """A search for instances at random, whose dims may be empty."""

    def refresh(self) -> None:
        """Draw the numbers that dims are made of."""
        assert self.random is not None
        self.pool = self.random.sample(DIMS, self.random.choice((1, 2, 3, 5)))


def witness(rule: Rule, seed: int, seconds: float) -> Witness | None:
    """Inputs on which `rule` is false, looked for in some `seconds`; None where none was found."""
    if rule.numerics.word not in ("exact", "reassociates", "real") or set(rule.numerics.exceptions) - {"signed_zero", "nonfinite"}:
        return None
    ends = time.perf_counter() + seconds
    turn = 0
    while time.perf_counter() < ends:
        generator = random.Random(f"{seed}:{turn}")
        search = Draw(generator, dtypes=9, most_rank=4, turn=turn, uneven=turn % 3 == 2, firing=True)
        turn += 1
        for instance in islice(instances(rule, search), INSTANCES * 4):
            if time.perf_counter() > ends:
                return None
            found = _tried(rule, instance, np.random.default_rng([seed, turn]))
            if found is not None:
                return found
    return None


def _tried(rule: Rule, instance: Instance, generator: np.random.Generator) -> Witness | None:
    if not all(map(_small, (*instance.variable_types, *instance.left_types))):
        return None
    try:
        pair = sides(rule, instance)
    except CosetError:
        return None
    if pair is None:
        return None
    facts = {name: fact for fact, name in rule.facts}
    manners = MANNERS[:2] if rule.numerics.word == "real" else MANNERS
    for manner in manners:
        inputs = {}
        for name, type in zip(rule.variables, instance.variable_types, strict=True):
            assert isinstance(type, TensorType) and type.static is not None
            fact = facts.get(name, "")
            if fact == "const" and rule.numerics.word != "exact" and type.dtype.kind == "float":
                fact = "finite"  # as docs/numerics.md says of constants
            inputs[name] = fitted(drawn(generator, type.dtype, type.static, manner), fact)
        try:
            found = broken(rule, pair, inputs, meant=False)
            if found is None or _unsure(pair, found) or undefined(pair, inputs) or (found.why == "other values" and computes_numbers(rule)):
                continue
        except (CosetError, ValueError, TypeError, OverflowError):
            continue
        attributes = "; ".join(", ".join(f"{k} = {v}" for k, v in items) for items in instance.attributes if items)
        return Witness(attributes, inputs, found)
    return None


def _small(type: Any) -> bool:
    return isinstance(type, TensorType) and type.static is not None and prod(type.static) <= MOST_ELEMENTS and type.dtype.kind != "complex"


def _unsure(pair: tuple[Term, Term], found: Broken) -> bool:
    """Whether the sides differ in last bits only and have functions of the library, whose bits depend on how they are vectorized."""
    if found.kind != BITS or not any(term.op.name in _FUNCTIONS for term in topological(expanded(pair, keep=lambda _: False))):
        return False
    left, right = (np.asarray(side) for side in (found.left, found.right))
    if left.shape != right.shape or left.dtype.kind in "biu?":
        return False
    with np.errstate(all="ignore"):
        return bool(np.allclose(left.astype(np.float64), right.astype(np.float64), rtol=1e-3, atol=1e-6, equal_nan=True))


def undefined(pair: tuple[Term, Term], inputs: Mapping[str, Array]) -> bool:
    """Whether the left side does what its dialect leaves open: an integer quotient by 0 or of the least number by -1, a shift by as many
    places as there are, NaN or what is out of range as an integer."""
    terms = [t for t in topological(expanded(pair, keep=lambda _: False)) if isinstance(t.type, TensorType)]
    if not any(t.op.name in _OPEN for t in terms):
        return False
    with np.errstate(all="ignore"):
        values = dict(zip(terms, evaluate(terms, inputs, fallback=evaluate_defined), strict=True))
    return any(_left_open(t, [np.asarray(values[o]) for o in t.operands]) for t in terms if t.op.name in _OPEN)


_OPEN = frozenset(f"stablehlo.{name}" for name in (
    "divide", "remainder", "shift_left", "shift_right_logical", "shift_right_arithmetic", "convert",
))  # fmt: skip


def _left_open(term: Term, operands: list[Array]) -> bool:
    dtype = term.operands[0].tensor.dtype
    if term.op.name == "stablehlo.convert":
        to = term.tensor.dtype
        if dtype.kind != "float" or to.kind not in ("int", "uint"):
            return False
        low, high = _ends(to)
        wide = operands[0].astype(np.float64)
        return bool(np.any(~np.isfinite(wide)) or np.any(wide < low) or np.any(wide > high))
    if dtype.kind not in ("int", "uint"):
        return False
    second = operands[1].astype(np.float64)
    if term.op.name.startswith("stablehlo.shift"):
        return bool(np.any(second < 0) or np.any(second >= dtype.bits))
    least = np.any((second == -1) & (operands[0].astype(np.float64) == _ends(dtype)[0])) if dtype.kind == "int" else False
    return bool(np.any(second == 0) or least)


def _ends(dtype: DType) -> tuple[int, int]:
    return (-(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1) if dtype.kind == "int" else (0, (1 << dtype.bits) - 1)


def drawn(generator: np.random.Generator, dtype: DType, shape: tuple[int, ...], manner: str) -> Array:
    """An array: moderate numbers, many zeros and ones, special numbers everywhere, or moderate ones and one that is special."""
    if dtype.kind == "bool":
        return generator.integers(0, 2, shape).astype(bool)
    if dtype.kind in ("int", "uint"):
        low, high = _ends(dtype)
        small = generator.integers(max(low, -9), min(high, 9), shape, endpoint=True)
        if manner in ("moderate", "zeros"):
            return np.asarray(small).astype(dtype.numpy)
        ends = np.array([low, low + 1, high, high - 1, 0, 1, high // 2 + 1], dtype=np.uint64 if high > 2**63 - 1 else np.int64)
        return np.where(generator.random(shape) < 0.5, generator.choice(ends, shape), small.astype(ends.dtype)).astype(dtype.numpy)
    base = generator.normal(size=shape)
    if manner == "zeros":
        base = np.where(generator.random(shape) < 0.6, generator.choice([0.0, -0.0, 1.0, -1.0, 2.0, 0.5], shape), base)
    values = np.asarray(base).astype(dtype.numpy)
    if manner in ("special", "one_special") and values.size:
        info = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]
        least = float(info.smallest_subnormal) if dtype.bits < 64 else 1.0  # products of f64's would vanish in the exact evaluation
        special = np.asarray([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, least]).astype(dtype.numpy)
        rare = (
            generator.random(shape) < 0.6
            if manner == "special"
            else np.arange(values.size).reshape(shape) == generator.integers(values.size)
        )
        values = np.where(rare, generator.choice(special, shape), values).astype(dtype.numpy)
    return np.asarray(values)


def computes_numbers(rule: Rule, *, left: bool = False) -> bool:
    """Whether the right side, or the `left` one, stores a number that is computed and counts exactly: others may be its rounding."""
    values = (value for own in (rule.compiled.left if left else rule.compiled.right) for _, value in own.items)
    return any(isinstance(part, Scalar) and isinstance(part.value, Call) for value in values for part in parts(value))


def fitted(values: Array, fact: str) -> Array:
    """`values` made such as a fact says."""
    if fact == "finite":
        return np.where(np.isfinite(values.astype(np.float64)), values, np.asarray(1.5, values.dtype)).astype(values.dtype)
    if fact in ("nonnegative", "positive"):
        upright = np.where(values.astype(np.float64) < 0, -values, values).astype(values.dtype)
        return np.where(upright == 0, np.asarray(0.5, values.dtype), upright).astype(values.dtype) if fact == "positive" else upright
    if fact == "unique_indices":
        return np.arange(values.size).astype(values.dtype).reshape(values.shape)
    if fact == "sparse":
        return np.where(np.arange(values.shape[-1]) % 4 < 2, values, np.zeros((), values.dtype)) if values.ndim else values
    return values
