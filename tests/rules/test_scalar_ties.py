"""Constants that a rule computes of numbers of a float type are bit by bit what the type's operation gives, at ties of tiny numbers too."""

from __future__ import annotations

import random
from decimal import Decimal

import numpy as np
import pytest

import coset.dialects
from coset.ir.evaluate import evaluate
from coset.ir.term import constant, make
from coset.ir.types import DTYPES, DType
from coset.rules.scalar import Undefined, scalar_constant, scalar_operation

assert coset.dialects
FORMATS = {
    "f64": (53, -1074, 970),
    "f32": (24, -149, 103),
    "f16": (11, -24, 5),
    "bf16": (8, -133, 120),
}  # bits, least and greatest exponent
OPERATIONS = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide"}


def _drawn(generator: random.Random, dtype: DType) -> np.ndarray:
    bits, least, greatest = FORMATS[dtype.name]
    significand = generator.choice([1, 3, 5, generator.getrandbits(bits) | 1, (1 << bits) - 1, (1 << (bits - 1)) + 1])
    exponent = generator.choice([least, least + 1, least + generator.randrange(40), generator.randrange(least, greatest)])
    return np.asarray(float(np.ldexp(float(significand), exponent)) * generator.choice([1, -1])).astype(dtype.numpy)


@pytest.mark.parametrize("name", FORMATS)
def test_a_number_computed_of_two_is_the_rounded_one(name: str) -> None:
    generator, dtype = random.Random(name), DTYPES[name]
    with np.errstate(all="ignore"):
        for _ in range(800):
            a, b = _drawn(generator, dtype), _drawn(generator, dtype)
            if generator.random() < 0.4:  # half a unit in the last place, or near it
                b = np.asarray(float(a) * 2.0 ** -generator.choice([1, 2, 7, 8, 9, 11, 12, 24, 25, 53, 54])).astype(dtype.numpy)
            for sign, op in OPERATIONS.items():
                wanted = evaluate([make(f"stablehlo.{op}", (constant(a, dtype), constant(b, dtype)), {})], {})[0]
                try:
                    found = scalar_constant(scalar_operation(sign, (Decimal(float(a)), Decimal(float(b)))), dtype).array()
                except Undefined:
                    continue
                assert np.asarray(wanted).tobytes() == np.asarray(found).tobytes(), f"{a!r} {sign} {b!r}"


@pytest.mark.parametrize("name", FORMATS)
def test_a_root_is_the_rounded_one(name: str) -> None:
    generator, dtype = random.Random(name), DTYPES[name]
    for _ in range(800):
        a = abs(_drawn(generator, dtype))
        wanted = evaluate([make("stablehlo.sqrt", (constant(a, dtype),), {})], {})[0]
        found = scalar_constant(scalar_operation("sqrt", (Decimal(float(a)),)), dtype).array()
        assert np.asarray(wanted).tobytes() == np.asarray(found).tobytes(), f"the root of {a!r}"
