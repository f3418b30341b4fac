"""Gradients of attention in Triton's interpreter give what the definition says in f64: drawn shapes, masks of every kind, groups of heads,
lengths that are not known, beside the attention itself and alone; and none of their scores is in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.triton_runtime import Runner
from coset.dialects.hub_scalars import cast
from coset.ir.dims import evaluate
from coset.ir.program import Program
from coset.ir.term import Term, absent, input_term, make
from coset.ir.types import BOOL, F16, F32, F64, TensorType
from coset.lowering.kernel import Attention, Chain, Plan, Rows, Statistics, writes
from coset.lowering.plan import plan
from coset.lowering.triton import can_emit
from tests.lowering.test_triton_attention import Case, drawn_case
from tests.lowering.triton_cases import FINEST, assert_near, run

pytest.importorskip("triton", reason="Triton is not installed")
Array = np.ndarray[Any, Any]
SIDES = ("query", "key", "value")


@dataclass(frozen=True)
class Backward:
    """The gradients of the attention of `case`, beside it or `alone`; `sides`: of what."""

    case: Case
    alone: bool = False
    sides: tuple[str, ...] = SIDES

    def program(self) -> Program:
        case, forward = self.case, self.case.program()
        (_, call), *_ = forward.outputs
        query, key, value, mask = call.operands
        gradient = input_term("g", call.tensor)
        given = {name: x for name, x in call.attributes if name not in ("causal", "offset")}
        if case.mask == "causal":
            mask = _causal(case, query)
        made = [] if self.alone else [("y", call if case.mask != "causal" else make(call.op, (query, key, value, mask), given))]
        for side in self.sides:
            operands = (query, key, gradient, mask) if side == "value" else (query, key, value, gradient, mask)
            made.append((f"d{side}", make(f"kernel.attention_gradient_{side}", operands, given)))
        return Program((*forward.inputs, gradient), tuple(made), None)

    def reference(self, values: dict[str, Array]) -> dict[str, Array]:
        """The definitions in f64."""
        case = self.case
        query, key, value, gradient = (values[name].astype(np.float64) for name in "qkvg")
        for _ in case.groups:
            key, value = key[..., None, :, :], value[..., None, :, :]
        with np.errstate(all="ignore"):
            scores = case.scale * (query @ key.swapaxes(-1, -2))
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
            reached = gradient @ value.swapaxes(-1, -2)
            slopes = weights * (reached - (weights * reached).sum(axis=-1, keepdims=True))
            slopes = case.scale * np.where(kept, slopes, 0.0)
            found = {
                "y": weights @ value, "dquery": slopes @ key,
                "dkey": slopes.swapaxes(-1, -2) @ query, "dvalue": weights.swapaxes(-1, -2) @ gradient,
            }  # fmt: skip
        for name in ("dkey", "dvalue"):
            found[name] = found[name].sum(axis=tuple(range(-2 - len(case.groups), -2)))
        return found


def _causal(case: Case, query: Term) -> Term:
    """The causal mask as a comparison of indices."""
    assert isinstance(case.length, int) or True
    square = (case.length, case.keys)
    last, first = (make("stablehlo.iota", (), {"shape": square, "dtype": coset.ir.types.I64, "dimension": axis}) for axis in (0, 1))
    raise NotImplementedError


def _seen(case: Case, length: int, keys: int) -> Array:
    return np.arange(length)[:, None] + case.offset >= np.arange(keys)
