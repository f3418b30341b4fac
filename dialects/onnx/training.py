"""ONNX's optimizers (`ai.onnx.preview.training`): the tensors are sorted out here; a step for one of them is in `training.rules`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from coset.dialects.hub import chlo, stablehlo
from coset.dialects.hub.terms import convert, reshape
from coset.dialects.onnx.node import Built, Node, definition
from coset.ir.builtin import ABSENT
from coset.ir.errors import require
from coset.ir.term import Term, get, make
from coset.ir.types import I64
from coset.rules.defining import defer_definitions

PRIMITIVES = (chlo, stablehlo)
RULES = defer_definitions(Path(__file__).with_name("training.rules"))
_DOMAIN = "ai.onnx.preview.training."


def _steps(node: Node, kinds: int, **defaults: object) -> Built:
    """`kinds` tensors belong to each optimized one: all of these come first, then all gradients, and so on; the results likewise."""
    rate, time, *tensors = node.operands
    count, rest = divmod(len(tensors), kinds)
    require(not rest, f"{node.name} takes {kinds} tensors for each that it optimizes, not {len(tensors)} in all")
    require(all(tensor.op is not ABSENT for tensor in tensors), f"{node.name} takes no tensor that is not given")
    given = {name: node.attributes.get(name, default) for name, default in defaults.items()}
    results: list[tuple[Term, ...]] = []
    for index in range(count):
        group = tensors[index::count]
        scalars = (reshape(convert(rate, group[0].tensor.dtype), ()), reshape(convert(time, I64), ()))
        step = make(f"onnx.{node.name.removeprefix(_DOMAIN)}", (*scalars, *group), given)
        results.append(tuple(get(step, i) for i in range(kinds - 1)))
    return tuple(result[i] for i in range(kinds - 1) for result in results)


@definition(_DOMAIN + "Momentum")
def _momentum(node: Node) -> Built:
    require(node.attributes["mode"] in ("standard", "nesterov"), f"Momentum has no mode `{node.attributes['mode']}`")
    return _steps(node, 3, **{name: node.attributes[name] for name in ("alpha", "beta", "norm_coefficient", "mode")})


@definition(_DOMAIN + "Adagrad")
def _adagrad(node: Node) -> Built:
    return _steps(node, 3, decay_factor=0.0, epsilon=_single(1e-6), norm_coefficient=0.0)


@definition(_DOMAIN + "Adam")
def _adam(node: Node) -> Built:
    defaults = {"alpha": _single(0.9), "beta": _single(0.999), "epsilon": _single(1e-6)}
    return _steps(node, 4, **defaults, norm_coefficient=0.0, norm_coefficient_post=0.0)


def _single(value: float) -> float:
    """An attribute's default as ONNX stores it: rounded to f32."""
    return float(np.float32(value))
