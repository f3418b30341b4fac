"""Drawn convolutional programs: convolutions of one to three dims of space with what stands between them in networks. For tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from coset.dialects.hub.scalars import cast
from coset.dialects.hub.terms import broadcast, reshape, splat, transpose
from coset.ir.dims import Dim, multiply, product, symbol
from coset.ir.program import Program
from coset.ir.term import Term, constant, input_term, make
from coset.ir.types import DTYPES, DType, TensorType

DRAWN = ("f32", "f16", "bf16")


def op(name: str, *operands: Term, **attributes: Any) -> Term:
    return make(f"stablehlo.{name}", operands, attributes)


class Network:
    """A program with inputs for it: `sizes` are those of its free dims."""

    def __init__(self, seed: int, *, dtype: DType | None = None, steps: int = 5) -> None:
        self.draw = np.random.default_rng(seed)
        self.dtype = dtype or DTYPES[self.pick(*DRAWN)]
        self.feeds: dict[str, Any] = {}
        self.inputs: list[Term] = []
        self.sizes = {"n": self.pick(1, 2, 3)}
        batch: Dim = symbol("n") if self.chance(0.4) else self.sizes["n"]
        space = self.pick(1, 2, 2, 2, 3)
        shape = (batch, self.pick(2, 4, 6, 16), *(self.pick(3, 5, 8) for _ in range(space)))
        self.values = [self.new("x", shape)]
        made = [self.convolution, self.convolution, self.convolution, self.by_feature, self.active, self.biased, self.added, self.joined]
        made += [self.normalized, self.balanced, self.pooled, self.padded]
        self.values.append(self.convolution(self.values[0]))
        for _ in range(steps):
            self.values.append(self.pick(*made)(self.values[-1]))
        self.values.append(self.convolution(self.values[-1]))
        outputs = [self.values[-1]]
        if self.chance(0.3):
            outputs.append(self.pick(*self.values[1:]))
        if self.chance(0.3):
            outputs.append(transpose(self.values[-2], (0, *range(2, space + 2), 1)))
        if self.chance(0.3):
            outputs.append(op("reduce", self.values[-1], dimensions=tuple(range(2, space + 2)), combiner="add"))
        self.program = Program(tuple(self.inputs), tuple((f"y{place}", term) for place, term in enumerate(outputs)))

    def pick(self, *values: Any) -> Any:
        return values[int(self.draw.integers(len(values)))]

    def chance(self, share: float) -> bool:
        return bool(self.draw.random() < share)

    def numbers(self, shape: tuple[Dim, ...], scale: float = 1.0) -> Any:
        return cast(self.draw.normal(size=[self.sizes["n"] if not isinstance(dim, int) else dim for dim in shape]) * scale, self.dtype)

    def new(self, name: str, shape: tuple[Dim, ...], scale: float = 1.0) -> Term:
        term = input_term(f"{name}{len(self.inputs)}", TensorType(self.dtype, shape))
        self.feeds[term.attribute("name")] = self.numbers(shape, scale)
        self.inputs.append(term)
        return term

    def weights(self, *shape: int, scale: float = 1.0) -> Term:
        """Constants, inputs, or what is computed of inputs."""
        kind = self.pick("constant", "constant", "input", "computed")
        if kind == "constant":
            return constant(self.numbers(shape, scale), self.dtype)
        term = self.new("w", shape, scale)
        return op("tanh", term) if kind == "computed" else term

    # ------------------------------------------------------------ what stands in a network

    def convolution(self, x: Term) -> Term:
        depth = x.tensor.dims[1]
        assert isinstance(depth, int)
        groups = self.pick(1, 1, 1, 2) if depth % 2 == 0 else 1
        features = groups * self.pick(1, 2, 4, 8, 17)
        return self._convolution(x, features, depth // groups, groups)

    def by_feature(self, x: Term) -> Term:
        depth = x.tensor.dims[1]
        assert isinstance(depth, int)
        return self._convolution(x, depth, 1, depth)

    def _convolution(self, x: Term, features: int, depth: int, groups: int) -> Term:
        window, padding, strides, dilations = [], [], [], []
        for size in x.tensor.dims[2:]:
            assert isinstance(size, int)
            k, low, high = self.pick(1, 2, 3, 3), self.pick(0, 1, 1), self.pick(0, 1, 1, 2)
            dilation = self.pick(1, 1, 2)
            if size + low + high < (k - 1) * dilation + 1:
                k = 1
            window.append(k)
            padding.append((low, high))
            strides.append(self.pick(1, 1, 1, 2))
            dilations.append(dilation)
        ones = (1,) * len(window)
        w = self.weights(features, depth, *window, scale=(depth * np.prod(window)) ** -0.5)
        return op("convolution", x, w, strides=tuple(strides), padding=tuple(padding), lhs_dilation=ones, rhs_dilation=tuple(dilations),
                  feature_group_count=groups, batch_group_count=1)  # fmt: skip

    def active(self, x: Term) -> Term:
        return op("maximum", x, splat(0, self.dtype, x.tensor.dims)) if self.chance(0.6) else op("tanh", x)

    def biased(self, x: Term) -> Term:
        depth = x.tensor.dims[1]
        assert isinstance(depth, int)
        return op("add", x, broadcast(self.weights(depth), x.tensor.dims, (1,)))

    def added(self, x: Term) -> Term:
        """A residual, of an earlier value or of an input."""
        alike = [value for value in self.values[:-1] if value.tensor.dims == x.tensor.dims]
        return op("add", x, self.pick(*alike) if alike else self.new("r", x.tensor.dims))

    def joined(self, x: Term) -> Term:
        """Features of an earlier value beside those of x."""
        batch, _, *space = x.tensor.dims
        alike = [value for value in self.values if (value.tensor.dims[0], *value.tensor.dims[2:]) == (batch, *space)]
        return op("concatenate", x, self.pick(*alike), dimension=1)

    def normalized(self, x: Term) -> Term:
        """By groups of features."""
        batch, depth, *space = x.tensor.dims
        assert isinstance(depth, int)
        groups = self.pick(*(count for count in (1, 2, 4) if depth % count == 0))
        length = multiply(depth // groups, product(space))
        assert isinstance(length, int)
        flat = reshape(x, (batch, groups, length))
        kept = broadcast(self._mean(flat, (2,), length), flat.tensor.dims, (0, 1))
        off = op("subtract", flat, kept)
        spread = op("add", self._mean(op("multiply", off, off), (2,), length), splat(0.1, self.dtype, (batch, groups)))
        whole = op("multiply", off, broadcast(op("rsqrt", spread), flat.tensor.dims, (0, 1)))
        return reshape(whole, x.tensor.dims)

    def balanced(self, x: Term) -> Term:
        """Less the mean of each feature over the batch and space."""
        space = x.tensor.dims[2:]
        count = self.sizes["n"] * int(np.prod(space))
        mean = self._mean(x, (0, *range(2, x.tensor.rank)), count)
        return op("subtract", x, broadcast(mean, x.tensor.dims, (1,)))

    def _mean(self, x: Term, axes: tuple[int, ...], count: int) -> Term:
        sum_ = op("reduce", x, dimensions=axes, combiner="add")
        return op("multiply", sum_, splat(1 / count, self.dtype, sum_.tensor.dims))

    def pooled(self, x: Term) -> Term:
        rank = x.tensor.rank
        window = (1, 1, *(min(2, size) if isinstance(size, int) else 1 for size in x.tensor.dims[2:]))
        ones, none, strides = (1,) * rank, ((0, 0),) * rank, (1, 1, *(self.pick(1, 2) for _ in window[2:]))
        return op("reduce_window", x, combiner="maximum", window_dimensions=window, window_strides=strides, base_dilations=ones,
                  window_dilations=ones, padding=none)  # fmt: skip

    def padded(self, x: Term) -> Term:
        none = (0,) * x.tensor.rank
        low = (0, 0, *(self.pick(0, 1) for _ in none[2:]))
        return op("pad", x, splat(0, self.dtype, ()), low=low, high=(0, 0, *(self.pick(0, 1) for _ in none[2:])), interior=none)
