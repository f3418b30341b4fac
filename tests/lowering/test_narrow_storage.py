"""A value that is widened behind a product is stored as it was before: half of the bytes, whatever it is made from."""

from __future__ import annotations

import coset.dialects  # noqa: F401  (fills the registry)
from coset.dialects.hub.terms import broadcast, convert, dot, splat
from coset.ir.program import Program
from coset.ir.term import Term, input_term, make
from coset.ir.types import F16, F32, TensorType
from coset.lowering.planning.plan import plan
from coset.lowering.triton.source import can_emit
from coset.targets.target import get_target

ROWS, WIDTH = 4096, 512


def x_(name: str, *dims: int) -> Term:
    return input_term(name, TensorType(F16, dims))


def both(name: str, left: Term, right: Term) -> Term:
    return make(f"stablehlo.{name}", (left, right))


def mean(x: Term) -> Term:
    total = make("stablehlo.reduce", (x,), {"dimensions": (1,), "combiner": "add"})
    return both("divide", total, splat(float(WIDTH), F32, (ROWS,)))


def normalized(x: Term) -> Term:
    """x with mean 0 and variance 1, in f32."""
    wide = convert(x, F32)
    centered = both("subtract", wide, broadcast(mean(wide), (ROWS, WIDTH), (0,)))
    variance = both("add", mean(both("multiply", centered, centered)), splat(1e-5, F32, (ROWS,)))
    root = make("stablehlo.rsqrt", (variance,))
    return convert(both("multiply", centered, broadcast(root, (ROWS, WIDTH), (0,))), F16)


def test_sums_of_long_chains_are_stored_narrow() -> None:
    """Layers behind each other: what the second one's sum is made from is too much to be computed again."""
    x, weights = x_("x", ROWS, WIDTH), [x_(f"w{place}", WIDTH, WIDTH) for place in range(4)]
    biases = [x_(f"b{place}", WIDTH) for place in range(4)]
    value: Term = x
    for weight, bias in zip(weights, biases, strict=True):
        product = dot(value, weight, lhs_contract=(1,), rhs_contract=(0,))
        value = normalized(both("add", value, both("add", product, broadcast(bias, (ROWS, WIDTH), (1,)))))
    program = Program((x, *weights, *biases), (("y", value),))
    planned = plan(program, get_target("nvidia-h200"), computes=can_emit)
    sizes = {buffer.name: buffer for buffer in planned.buffers.values() if buffer.shape == (ROWS, WIDTH)}
    assert len(sizes) > len(weights) and {buffer.dtype for buffer in sizes.values()} == {F16}
