"""What a term prints to: a small expression of ONNX calls over other terms, constants and numbers of the host."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Union

import numpy as np

from coset.ir.constants import Constant, constant_of
from coset.ir.dims import Dim
from coset.ir.term import Term
from coset.ir.types import I64, DType

FOLD_BYTES = 64 << 20  # larger constants are moved by a node of the model and not when it is written


@dataclass(frozen=True, eq=False)
class NodeCall:
    """One ONNX node. `since`: the version of the default domain in which it can first be written so. `results` are the terms that its
    results are, where it has several (all calls of one node name the same ones); else it has one. `domain`: empty for the default one."""

    op: str
    inputs: tuple["Input", ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    since: int = 1
    results: tuple[Term, ...] = ()
    domain: str = ""


@dataclass(frozen=True)
class Numbers:
    """Integers of the host: a vector of dims, or with another `shape` a tensor of them."""

    dims: tuple[Dim, ...]
    dtype: DType = I64
    shape: tuple[int, ...] | None = None  # None: a vector


Input = Union[Term, NodeCall, Constant, Numbers, None]  # None: an optional input that is not given


class NoOnnxForm(Exception):
    """A term has no ONNX form under the given version; the argument says why. `since` is the version that has one, where there is."""

    def __init__(self, message: str, since: int = 0) -> None:
        super().__init__(message)
        self.since = since


@dataclass
class PrintContext:
    """What a printer may ask: what the version of the default domain `reaches`, which reductions are printed with their dims kept, which
    slices are the parts of one split (slice -> all parts, in order), and which symbols are `positive`: at least 1 in a run that does not
    fail. `beyond`: the versions that were asked for and not reached."""

    opset: int
    positive: frozenset[str] = frozenset()
    kept: set[Term] = field(default_factory=set)
    splits: dict[Term, tuple[Term, ...]] = field(default_factory=dict)
    beyond: set[int] = field(default_factory=set)

    def reaches(self, version: int) -> bool:
        """True when the version of the default domain is at least `version`."""
        if self.opset < version:
            self.beyond.add(version)
        return self.opset >= version

    def same_at(self, version: int) -> bool:
        """True when all that was asked would have had the same answers under a later `version`."""
        return all(each > version for each in self.beyond)


Printer = Callable[[Term, PrintContext], Input]


def vector(*numbers: int) -> Constant:
    """A constant int64 vector."""
    return constant_of(np.array(numbers, np.int64))


def with_axes(op: str, x: Input, axes: tuple[int, ...], context: PrintContext, *, operand_since: int, **attributes: Any) -> NodeCall:
    """`op` with its axes where the version has them: an operand from `operand_since` on, an attribute before."""
    if context.reaches(operand_since):
        return NodeCall(op, (x, vector(*axes)), attributes)
    return NodeCall(op, (x,), {**attributes, "axes": axes})


def squeeze(x: Input, axes: tuple[int, ...], context: PrintContext) -> NodeCall:
    """`x` without the dims `axes`, which are 1."""
    return with_axes("Squeeze", x, axes, context, operand_since=13)


def unsqueeze(x: Input, axes: tuple[int, ...], context: PrintContext) -> NodeCall:
    """`x` with dims of 1 at `axes` of the result."""
    return with_axes("Unsqueeze", x, axes, context, operand_since=13)


def folded(x: Term, move: Callable[[Any], Any]) -> Constant | None:
    """The constant that a movement of the constant `x` is, or None where x is none, or too large to be copied here."""
    if x.op.name != "builtin.constant" or x.attribute("value").bytes > FOLD_BYTES:
        return None
    value: Constant = x.attribute("value")
    return constant_of(move(value.array()), value.type.dtype)
