"""Differences between runtimes and our definitions that `docs/undefined.md` speaks of: which row speaks of which.

A row is as narrow as it can be said: some ops, some runtimes, some ways to differ, and on which inputs. `ORDINARY` inputs are numbers
near 1 and small integers; `ODD` ones have infinities and NaN; `HUGE` ones are near the ends of a type.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from benchmarks.definitions import judging
from benchmarks.definitions.hub import TermInstance
from benchmarks.definitions.instance import Instance
from benchmarks.definitions.judging import INTEGER, NONFINITE, TYPE, VALUE, ZERO, Difference
from benchmarks.definitions.runtimes import ONNX_RUNTIME, REFERENCE, XLA
from coset.prove.values import GRID, KINDS, LARGE, RANGE
from coset.prove.values import NONFINITE as NONFINITE_INPUTS

ORDINARY, ODD, HUGE, OVERFLOWING = (KINDS[0], KINDS[1]), (NONFINITE_INPUTS, GRID), (KINDS[2], RANGE), (LARGE,)
SINGLE = 1e-5  # relative, what a few roundings of f32 make
EVERY = (*ORDINARY, *ODD, *HUGE, *OVERFLOWING)


@dataclass(frozen=True)
class Situation:
    """A difference and where it was seen. `agrees`: another runtime gives what we do."""

    op: str
    instance: Instance
    inputs: str
    runtime: str
    difference: Difference
    agrees: bool

    @property
    def dtypes(self) -> set[str]:
        """The element types of the operands."""
        return {slot.dtype.name for slot in self.instance.slots if slot is not None}

    @property
    def kinds(self) -> set[str]:
        """Their kinds."""
        return {slot.dtype.kind for slot in self.instance.slots if slot is not None}

    @property
    def empty(self) -> bool:
        """Whether an operand has no elements."""
        return any(slot is not None and 0 in slot.shape for slot in self.instance.slots)

    def near(self) -> bool:
        """Whether the integers are neighbours."""
        return abs(int(self.difference.ours) - int(self.difference.theirs)) == 1

    def of_nan(self) -> bool:
        """Whether one of the numbers is NaN."""
        return any(math.isnan(float(number)) for number in (self.difference.ours, self.difference.theirs))

    def single(self) -> bool:
        """Whether the numbers differ by roundings of f32."""
        ours, theirs = float(self.difference.ours), float(self.difference.theirs)
        return abs(ours - theirs) <= SINGLE * max(1.0, abs(ours))


Test = Callable[[Situation], bool]


@dataclass(frozen=True)
class Row:
    """What a row of the page speaks of."""

    name: str
    ops: frozenset[str]
    runtimes: tuple[str, ...]
    differences: tuple[str, ...]
    inputs: tuple[str, ...] = EVERY
    where: Test = lambda _: True

    def speaks_of(self, it: Situation) -> bool:
        """Whether it is about that difference."""
        return (
            it.op in self.ops and it.runtime in self.runtimes and it.difference.kind in self.differences and it.inputs in self.inputs
            and (it.difference.kind != NONFINITE or not self.name.startswith("nan-") or it.of_nan()) and self.where(it)
        )  # fmt: skip


def row(
    name: str,
    ops: str,
    runtimes: tuple[str, ...],
    differences: tuple[str, ...],
    inputs: tuple[str, ...] = EVERY,
    where: Test = lambda _: True,
) -> Row:
    """A row about the ops that are listed."""
    return Row(name, frozenset(ops.split()), runtimes, differences, inputs, where)


def _integers(it: Situation) -> bool:
    return bool(it.kinds & {"int", "uint"})


def _floats(it: Situation) -> bool:
    return bool(it.kinds & {"float"})


def _by_extreme(it: Situation) -> bool:
    return it.instance.attributes.get("reduction") in ("max", "min")


def _safe(it: Situation) -> bool:
    """An attention whose rows that see nothing are 0."""
    return isinstance(it.instance, TermInstance) and bool(it.instance.given.get("safe"))


def _confirmed(it: Situation) -> bool:
    """ONNX Runtime computes what we do."""
    return it.agrees


ORT, REF, BOTH = (ONNX_RUNTIME,), (REFERENCE,), (ONNX_RUNTIME, REFERENCE)
GRADIENTS = "kernel.attention_gradient_query kernel.attention_gradient_key kernel.attention_gradient_value"
FOLDS = "ReduceSum ReduceProd ReduceL1 ReduceL2 ReduceSumSquare ReduceMean"
ROWS = (
    # NaN
    row("nan-extreme", "ReduceMax ReduceMin MaxPool GlobalMaxPool", BOTH, (NONFINITE,), (*ODD, KINDS[2]), _floats),
    row("nan-extreme", "ScatterElements ScatterND", ORT, (NONFINITE,), ODD, _by_extreme),
    row("nan-arg", "ArgMax ArgMin", ORT, (INTEGER,), (*ODD, KINDS[2]), _floats),
    row("nan-arg", "Hardmax", ORT, (VALUE,), ODD),
    row("no-bound", "Clip", REF, (NONFINITE,), ODD, lambda it: math.isinf(float(it.difference.theirs))),
    row("no-bound", "Clip", ORT, (NONFINITE,), ODD, lambda it: "f16" in it.dtypes and math.isinf(float(it.difference.theirs))),
    row("nan-bound", "Clip", ORT, (NONFINITE, VALUE), ODD, lambda it: math.isnan(float(it.difference.ours))),
    row("nan-sign", "Sign", ORT, (NONFINITE,), ODD, lambda it: bool(it.dtypes & {"f16", "bf16"})),
    row("nan-skipped", "AveragePool LpPool", REF, (NONFINITE, VALUE), ODD),
    row("nan-shortcut", "PRelu ScatterElements Conv OneHot", REF, (NONFINITE,), ODD),
    row("nan-unstable", "LogSoftmax SoftmaxCrossEntropyLoss ReduceLogSumExp", ORT, (NONFINITE,), ODD),
    row("nan-unstable", "InstanceNormalization BatchNormalization", ORT, (NONFINITE,), ODD),
    row("nan-unstable", "ReduceLogSumExp LogSoftmax", REF, (NONFINITE,), ODD),
    row("nan-unstable", "LRN ms.CDist ms.FusedGemm", ORT, (NONFINITE,), ODD),
    row("nan-unstable", "Adagrad Adam LRN BatchNormalization", REF, (NONFINITE,), ODD),
    row("nan-spreads", "Resize RoiAlign GridSample Col2Im ConvTranspose", BOTH, (NONFINITE,), ODD),
    row("nan-spreads", GRADIENTS, ("NumPy",), (NONFINITE,), ODD, _safe),
    row("nan-spreads", "kernel.transposed_convolution", ("NumPy",), (NONFINITE,), ODD),
    row("clipped-infinity", "Resize", REF, (NONFINITE,), ODD, lambda it: math.isinf(float(it.difference.ours))),
    row("nan-taps", "RoiAlign", REF, (VALUE,), ODD),
    # integers
    row("integer-folds", FOLDS + " Pow Gemm", BOTH, (INTEGER,), (*ODD, *HUGE, *OVERFLOWING), _integers),
    row("empty-mean", "ReduceMean", BOTH, (INTEGER, NONFINITE), EVERY, lambda it: it.empty),
    row("float-to-integer", "Shrink ReduceLogSum", BOTH, (INTEGER,), EVERY, _integers),
    row("float-to-integer", "QuantizeLinear", BOTH, (INTEGER,), (*ODD, *HUGE)),
    row("integer-exponentials", "ReduceLogSumExp", ORT, (INTEGER,), EVERY, _integers),
    row("quantized-ties", "QLinearConv QLinearMatMul ms.QLinearAdd ms.QLinearMul ms.QGemm ms.QLinearWhere ms.QLinearGlobalAveragePool",
        BOTH, (INTEGER,), EVERY, Situation.near),
    row("quantized-ties", "ms.QLinearSigmoid ms.QLinearLeakyRelu", ORT, (INTEGER,), EVERY, Situation.near),
    # what the standard says in two ways, or the runtimes do
    row("squeeze-nothing", "Squeeze", REF, (TYPE,), EVERY, _confirmed),
    row("resized-length", "Resize", ORT, (VALUE,), EVERY,
        lambda it: it.agrees and it.instance.attributes.get("coordinate_transformation_mode") == "align_corners"),
    row("stash", "GroupNormalization", BOTH, (VALUE,), EVERY, lambda it: "f64" in it.dtypes and it.single()),
    row("single-precision", "Gelu HammingWindow BlackmanWindow HannWindow BatchNormalization Swish Shrink", ORT, (VALUE,), EVERY,
        lambda it: ("f64" in it.dtypes or it.op.endswith("Window")) and it.single()),
    row("single-precision", "Erf Gelu HardSwish LRN", REF, (VALUE,), EVERY, lambda it: "f64" in it.dtypes and it.single()),
    row("mean-variance", "MeanVarianceNormalization", ORT, (NONFINITE,), EVERY, _confirmed),
    row("stable-sum", "ReduceLogSumExp", ORT, (NONFINITE,), OVERFLOWING, lambda it: it.instance.opset >= 28),
    row("half-epsilon", "BatchNormalization", BOTH, (NONFINITE,), (*ORDINARY, *ODD), lambda it: "f16" in it.dtypes),
    row("cancels", "BatchNormalization", ORT, (VALUE,), OVERFLOWING, lambda it: bool(it.instance.attributes.get("training_mode"))),
    # of the reference alone
    row("reference", "BatchNormalization", REF, (VALUE, NONFINITE), EVERY, lambda it: it.instance.opset < 14),
    row("reference", "Softmax LogSoftmax Hardmax", REF, (VALUE, NONFINITE), EVERY, lambda it: it.instance.opset < 13),
    row("reference", "LpNormalization", REF, (VALUE, NONFINITE), EVERY, lambda it: it.instance.attributes.get("p") == 1),
    row("reference", "LRN", REF, (VALUE, NONFINITE), EVERY),
    row("reference", "RoiAlign", REF, (VALUE,), EVERY, lambda it: it.instance.opset < 16),
    row("reference", "MaxPool", REF, (TYPE, INTEGER, VALUE), EVERY, lambda it: it.agrees or it.inputs in (*ODD, KINDS[2])),
    row("reference", "AveragePool Resize GridSample DynamicQuantizeLinear NegativeLogLikelihoodLoss", REF, (VALUE,), EVERY, _confirmed),
    row("reference", "GlobalMaxPool Adam ReduceSumSquare Unsqueeze", REF, (TYPE,)),
    row("reference", "SoftmaxCrossEntropyLoss LogSoftmax", REF, (NONFINITE, VALUE), OVERFLOWING),
    row("reference", "QuantizeLinear", REF, (INTEGER,), EVERY, _confirmed),
    # XLA
    row("poles", "chlo.polygamma chlo.zeta chlo.broadcast_polygamma chlo.broadcast_zeta", (XLA,), (NONFINITE, VALUE)),
)  # fmt: skip


def known(op: str, instance: Instance, kind: str, runtime: str, difference: Difference, *, agrees: bool) -> str:
    """The row that speaks of a difference on inputs of a `kind`, or nothing."""
    it = Situation(op, instance, kind, runtime, difference, agrees)
    return next(iter(_speaking(it)), "")


def _speaking(it: Situation) -> Iterator[str]:
    if it.difference.kind == ZERO:
        yield "zero-sign"
    yield from (each.name for each in ROWS if each.speaks_of(it))
    if it.runtime == XLA and it.inputs in HUGE:
        yield "subnormals"
    if it.difference.kind == judging.RANGE or (it.inputs in HUGE and it.difference.kind in (VALUE, NONFINITE)):
        yield "range"
