"""Programs of attention and of its gradients, drawn and with their definition in f64. For tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import coset.dialects  # noqa: F401  (fills the registry)
from coset.dialects.hub.scalars import cast
from coset.ir.builtin import absent
from coset.ir.dims import Dim, evaluate, symbol
from coset.ir.program import Program
from coset.ir.term import Term, input_term, make
from coset.ir.types import BF16, BOOL, F16, F32, F64, DType, TensorType

Array = np.ndarray[Any, Any]
FLOATS = (F16, BF16, F32, F32, F64)
SIDES = ("query", "key", "value")


@dataclass(frozen=True)
class Case:
    """An attention of queries [batch, groups, length, depth] over keys [batch, keys, depth]."""

    batch: tuple[Dim, ...]
    groups: tuple[Dim, ...]
    length: Dim
    keys: Dim
    depth: int
    width: int
    dtype: DType
    mask: str = "none"
    scale: float = 1.0
    offset: int = 0
    fill: float = -np.inf
    safe: bool = False

    def program(self) -> Program:
        rows = (*self.groups, self.length)
        query = input_term("q", TensorType(self.dtype, (*self.batch, *rows, self.depth)))
        key = input_term("k", TensorType(self.dtype, (*self.batch, self.keys, self.depth)))
        value = input_term("v", TensorType(self.dtype, (*self.batch, self.keys, self.width)))
        precision = F64 if self.dtype is F64 else F32
        mask: Term = absent()
        inputs: tuple[Term, ...] = (query, key, value)
        if self.mask in ("boolean", "additive"):
            own = BOOL if self.mask == "boolean" else precision
            given = input_term("mask", TensorType(own, (self.length, self.keys)))
            inputs = (*inputs, given)
            shape = (*self.batch, *rows, self.keys)
            mask = make("stablehlo.broadcast_in_dim", (given,), {"shape": shape, "broadcast_dimensions": (len(shape) - 2, len(shape) - 1)})
        attributes = {
            "scale": self.scale, "precision": precision, "causal": self.mask == "causal", "offset": self.offset,
            "fill": self.fill, "safe": self.safe,
        }  # fmt: skip
        result = make("kernel.attention", (query, key, value, mask), attributes)
        return Program(inputs, (("y", result),), None)

    def reference(self, values: dict[str, Array]) -> Array:
        """The definition in f64, with its mask and softmax written out."""
        query, key, value = (values[name].astype(np.float64) for name in "qkv")
        for _ in self.groups:
            key, value = key[..., None, :, :], value[..., None, :, :]
        with np.errstate(all="ignore"):
            scores = self.scale * (query @ key.swapaxes(-1, -2))
            if self.mask == "additive":
                scores = scores + values["mask"]
            if self.mask == "boolean":
                scores = np.where(values["mask"], scores, self.fill)
            if self.mask == "causal":
                seen = np.arange(scores.shape[-2])[:, None] + self.offset >= np.arange(scores.shape[-1])
                scores = np.where(seen, scores, self.fill)
            weights = np.exp(scores - scores.max(axis=-1, keepdims=True, initial=-np.inf))
            weights = weights / weights.sum(axis=-1, keepdims=True)
            if self.safe:
                weights = np.where((scores == -np.inf).all(axis=-1, keepdims=True), 0.0, weights)
            return weights @ value


def drawn_case(seed: int) -> tuple[Case, dict[str, int]]:
    draw = np.random.default_rng(seed)
    binding: dict[str, int] = {}

    def size(name: str, *choices: int) -> Dim:
        count = int(draw.choice(choices))
        if draw.random() < 0.25:
            binding[name] = count
            return symbol(name)
        return count

    batch = tuple(size(f"B{place}", 1, 2, 3) for place in range(int(draw.integers(0, 3))))
    groups = (size("G", 1, 2, 4),) if draw.random() < 0.3 else ()
    length = size("L", 1, 2, 3, 7, 16, 33, 65)
    keys = size("S", 1, 2, 5, 16, 31, 64, 100, 130) if draw.random() < 0.9 else size("S", 520, 777)
    mask = str(draw.choice(["none", "boolean", "additive", "causal"]))
    fill = float(draw.choice([-np.inf, -1e4, -3e38 if seed % 2 else -np.inf])) if mask in ("boolean", "causal") else -np.inf
    depth, width = int(draw.choice([1, 8, 16, 20, 40, 64])), int(draw.choice([1, 8, 16, 24, 64]))
    dtype = FLOATS[int(draw.integers(len(FLOATS)))]
    offset = int(draw.choice([0, 0, 3, 60, -2])) if mask == "causal" else 0
    scale = float(draw.choice([1.0, 0.125, 0.3]))
    return Case(batch, groups, length, keys, depth, width, dtype, mask, scale, offset, fill, bool(draw.random() < 0.3)), binding


# ---------------------------------------------------------------- gradients


@dataclass(frozen=True)
class Backward:
    """The gradients of the attention of `case`, beside it or `alone`; `sides`: of what."""

    case: Case
    alone: bool = False
    sides: tuple[str, ...] = SIDES

    def program(self) -> Program:
        forward = self.case.program()
        (_, call), *_ = forward.outputs
        query, key, value, mask = call.operands
        gradient = input_term("g", call.tensor)
        made = [] if self.alone else [("y", call)]
        for side in self.sides:
            operands = (query, key, gradient, mask) if side == "value" else (query, key, value, gradient, mask)
            made.append((f"d{side}", make(f"kernel.attention_gradient_{side}", operands, dict(call.attributes))))
        return Program((*forward.inputs, gradient), tuple(made), None)

    def reference(self, values: dict[str, Array]) -> dict[str, Array]:
        """The definitions in f64."""
        return {name: expected for name, (expected, _) in self.bounded(values, 0.0, 0.0).items()}

    def bounded(self, values: dict[str, Array], unit: float, rounding: float) -> dict[str, tuple[Array, Array]]:
        """The definitions in f64, and how far each element may be off where operands and what lies between products are rounded to `unit`
        and sums to `rounding`: twice the first order of both (sums: Higham 2002, (3.5); a softmax: each weight by the error of its score
        and by the mean of all)."""
        case = self.case
        query, key, value, gradient = (values[name].astype(np.float64) for name in "qkvg")
        for _ in case.groups:
            key, value = key[..., None, :, :], value[..., None, :, :]
        rows, keys = query.shape[-2] * int(np.prod(query.shape[-2 - len(case.groups) : -2])), key.shape[-2]
        with np.errstate(all="ignore"):
            scores = case.scale * (query @ _turned(key))
            kept = np.ones(scores.shape[-2:], bool)
            if case.mask == "additive":
                scores = scores + values["mask"]
            if case.mask in ("boolean", "causal"):
                kept = values["mask"] if case.mask == "boolean" else _seen(case, *scores.shape[-2:])
                scores = np.where(kept, scores, case.fill)
            weights = np.exp(scores - scores.max(axis=-1, keepdims=True, initial=-np.inf))
            weights = weights / weights.sum(axis=-1, keepdims=True)
            if case.safe:
                weights = np.where((scores == -np.inf).all(axis=-1, keepdims=True), 0.0, weights)
            reached = gradient @ _turned(value)
            common = (weights * reached).sum(axis=-1, keepdims=True)
            slopes = case.scale * np.where(kept, weights * (reached - common), 0.0)
            # what each of these is off
            size = case.scale * (np.abs(query) @ _turned(np.abs(key))) * ((case.depth + 8) * rounding + 2 * unit)
            size = np.where(kept, size + np.where(np.isfinite(scores), np.abs(scores), 0.0) * (2 * unit + 4 * rounding), 0.0)
            weight = weights * (size + (weights * size).sum(axis=-1, keepdims=True) + (keys + 8) * rounding + 2 * unit)
            reach = (np.abs(gradient) @ _turned(np.abs(value))) * ((case.width + 8) * rounding + 2 * unit)
            mean = weight * np.abs(reached) + weights * (reach + np.abs(reached) * (keys + 8) * rounding)
            mean = mean.sum(axis=-1, keepdims=True)
            slope = weight * np.abs(reached - common) + weights * (reach + mean + 4 * rounding * (np.abs(reached) + np.abs(common)))
            slope = np.where(kept, case.scale * slope + np.abs(slopes) * 4 * (unit + rounding), 0.0)
            found = {
                "y": (weights @ value, weight @ np.abs(value) + weights @ np.abs(value) * (keys * rounding + unit)),
                "dquery": (slopes @ key, slope @ np.abs(key) + np.abs(slopes) @ np.abs(key) * keys * rounding),
                "dkey": (_turned(slopes) @ query, _turned(slope + np.abs(slopes) * rows * rounding) @ np.abs(query)),
                "dvalue": (_turned(weights) @ gradient, _turned(weight + weights * (rows * rounding + unit)) @ np.abs(gradient)),
            }  # fmt: skip
        shared = tuple(range(-2 - len(case.groups), -2))
        return {
            name: (each.sum(axis=shared), 2 * off.sum(axis=shared)) if name in ("dkey", "dvalue") else (each, 2 * off)
            for name, (each, off) in found.items()
        }


def _turned(matrices: Array) -> Array:
    return matrices.swapaxes(-1, -2)


def _seen(case: Case, length: int, keys: int) -> Array:
    return np.arange(length)[:, None] + case.offset >= np.arange(keys)


def values_for(given: Backward, binding: dict[str, int], seed: int) -> dict[str, Array]:
    draw = np.random.default_rng(seed)
    values = {}
    for term in given.program().inputs:
        name, shape = str(term.attribute("name")), tuple(evaluate(dim, binding) for dim in term.tensor.dims)
        array: Array = draw.normal(size=shape)
        if term.tensor.dtype is BOOL:
            array = draw.random(shape) < 0.7
        elif name == "mask":
            array = np.where(draw.random(shape) < 0.2, -np.inf, array)
        values[name] = cast(array, term.tensor.dtype)
    return values
