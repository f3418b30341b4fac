"""Programs of what kernels are made of: defined ops are opened, kept nodes become the terms that they mean, wrappers fall away."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Union

from coset.dialects.expansion import expanded
from coset.dialects.hub.chlo_scan import as_loop
from coset.dialects.hub.region_terms import applied
from coset.dialects.hub.terms import broadcast, splat
from coset.dialects.onnx.kept import opened
from coset.dialects.onnx.quantized import spread
from coset.ir.program import Program
from coset.ir.term import TUPLE, Term, make, rewritten, topological
from coset.ir.types import F32, TupleType
from coset.lowering.planning import contraction
from coset.lowering.planning.argument import argument

MOST_INNER = 64  # rounds of opening one term; definitions have no circle, regions nest shallowly


Opener = Callable[[Term], Union[Term, None]]


def primitive(program: Program, keep: Callable[[Term], bool] = lambda _: False, *, product: Opener = contraction.dot) -> tuple[Term, ...]:
    """The program's roots over primitive ops: no defined op but those of which `keep` is true, no kept node with a definition, no wrapper
    (composite, map with a body of scalars, barrier, batch normalization) is left. `product`: what a contraction becomes, if not itself."""
    return primitive_terms(program.roots, keep, product=product)


def primitive_terms(
    roots: Sequence[Term], keep: Callable[[Term], bool] = lambda _: False, *, product: Opener = contraction.dot
) -> tuple[Term, ...]:
    """The same of terms."""
    for _ in range(MOST_INNER):
        opened = _opened(expanded(roots, lambda term: keep(term) or spread(term) is not None), product)
        if all(a is b for a, b in zip(opened, roots, strict=True)):
            return opened
        roots = opened
    raise AssertionError("opening a program's definitions does not end")


def _opened(roots: Sequence[Term], product: Opener) -> tuple[Term, ...]:
    def opened(term: Term) -> Term:
        open_ = product if term.op.name == "stablehlo.dot_general" else _OPENERS.get(term.op.name, contraction.known)
        found = open_(term) if open_ is not None else None
        return term if found is None else found

    return rewritten(roots, opened)


# ---------------------------------------------------------------- wrappers


def _get(term: Term) -> Term | None:
    whole = term.operands[0]
    return whole.operands[term.attribute("index")] if whole.op is TUPLE else None


def _barrier(term: Term) -> Term | None:
    return make(TUPLE, term.operands)


def _composite(term: Term) -> Term | None:
    results = applied(term.regions[0], term.operands)
    return make(TUPLE, results) if isinstance(term.type, TupleType) else results[0]


def _map(term: Term) -> Term | None:
    """The body's elementwise ops on whole operands; None for a body of other ops."""
    (region,) = term.regions
    shape = term.tensor.dims
    done = dict(zip(region.parameters, term.operands, strict=True))
    for inner in topological(region.results):
        if inner in done:
            continue
        if inner.op.name == "builtin.constant" and inner.tensor.rank == 0:
            done[inner] = broadcast(inner, shape, ())
        elif inner.op.has("elementwise") and inner.tensor.rank == 0:
            done[inner] = make(inner.op, [done[operand] for operand in inner.operands], dict(inner.attributes))
        else:
            return None
    return done[region.results[0]]


# ---------------------------------------------------------------- batch normalization


class _Features:
    """Hub terms in f32 (f64 for f64) with one number for each feature of `operand`."""

    def __init__(self, term: Term) -> None:
        self.shape, self.given = term.operands[0].tensor.dims, term.operands[0].tensor.dtype
        self.axis, self.epsilon = term.attribute("feature_index"), term.attribute("epsilon")
        self.rest = tuple(axis for axis in range(len(self.shape)) if axis != self.axis)
        self.dtype = self.given if self.given.bits >= 32 else F32
        self.feature = (self.shape[self.axis],)

    def wide(self, x: Term) -> Term:
        return x if x.tensor.dtype == self.dtype else make("stablehlo.convert", (x,), {"dtype": self.dtype})

    def narrow(self, x: Term) -> Term:
        return x if x.tensor.dtype == self.given else make("stablehlo.convert", (x,), {"dtype": self.given})

    def spread(self, x: Term) -> Term:
        return broadcast(x, self.shape, (self.axis,))

    def sum(self, x: Term) -> Term:
        return make("stablehlo.reduce", (x,), {"dimensions": self.rest, "combiner": "add"})

    def deviation(self, variance: Term) -> Term:
        """sqrt(variance + epsilon)."""
        shifted = make("stablehlo.add", (variance, splat(self.epsilon, self.dtype, self.feature)))
        return make("stablehlo.sqrt", (shifted,))

    def count(self) -> Term | None:
        """How many elements a feature has, as f32; None where it is no number."""
        total = 1
        for axis in self.rest:
            dim = self.shape[axis]
            if not isinstance(dim, int):
                return None
            total *= dim
        return splat(total, self.dtype, self.feature)


def _binary(op: str, a: Term, b: Term) -> Term:
    return make(f"stablehlo.{op}", (a, b))


def _normalized(features: _Features, x: Term, scale: Term, offset: Term, mean: Term, variance: Term) -> Term:
    """scale * ((x - mean) / deviation) + offset."""
    centered = _binary("subtract", x, features.spread(mean))
    unit = _binary("divide", centered, features.spread(features.deviation(variance)))
    return _binary("add", _binary("multiply", features.spread(scale), unit), features.spread(offset))


def _inference(term: Term) -> Term | None:
    features = _Features(term)
    x, scale, offset, mean, variance = map(features.wide, term.operands)
    return features.narrow(_normalized(features, x, scale, offset, mean, variance))


def _training(term: Term) -> Term | None:
    features = _Features(term)
    x, scale, offset = map(features.wide, term.operands)
    count = features.count()
    if count is None:
        return None
    mean = _binary("divide", features.sum(x), count)
    centered = _binary("subtract", x, features.spread(mean))
    variance = _binary("divide", features.sum(_binary("multiply", centered, centered)), count)
    return make(TUPLE, [features.narrow(y) for y in (_normalized(features, x, scale, offset, mean, variance), mean, variance)])


def _gradient(term: Term) -> Term | None:
    """scale / (deviation * count) * (count * g - sum(g) - sum(g * centered) * centered / (variance + epsilon)), and the sums."""
    features = _Features(term)
    x, scale, mean, variance, output = map(features.wide, term.operands)
    count = features.count()
    if count is None:
        return None
    centered = _binary("subtract", x, features.spread(mean))
    total, slope = features.sum(output), features.sum(_binary("multiply", output, centered))
    deviation = features.deviation(variance)
    shifted = _binary("add", variance, splat(features.epsilon, features.dtype, features.feature))
    inner = _binary("subtract", _binary("multiply", output, features.spread(count)), features.spread(total))
    inner = _binary("subtract", inner, _binary("multiply", features.spread(_binary("divide", slope, shifted)), centered))
    factor = _binary("divide", _binary("divide", scale, deviation), count)
    grads = (_binary("multiply", features.spread(factor), inner), _binary("divide", slope, deviation), total)
    return make(TUPLE, [features.narrow(y) for y in grads])


_OPENERS = {
    "builtin.get": _get,
    "onnx.node": opened,
    **dict.fromkeys(("onnx.QuantizeLinear", "onnx.DequantizeLinear"), spread),
    "stablehlo.reduce": contraction.reduction,
    "stablehlo.reduce_region": argument,
    "stablehlo.gather": contraction.gather,
    "stablehlo.dynamic_slice": contraction.dynamic_slice,
    "stablehlo.optimization_barrier": _barrier,
    "stablehlo.composite": _composite,
    "stablehlo.map": _map,
    "chlo.scan": as_loop,
    "stablehlo.batch_norm_inference": _inference,
    "stablehlo.batch_norm_training": _training,
    "stablehlo.batch_norm_grad": _gradient,
}
