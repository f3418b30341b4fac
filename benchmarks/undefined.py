"""The cases that ONNX and StableHLO leave open or in which runtimes differ: what each runtime gives, and what coset says.

    python -m benchmarks.undefined [--write]

Prints the tables of docs/undefined.md; `--write` puts them into the page. Each case is one node on a few numbers, computed by coset's
evaluator, ONNX Runtime without optimization, ONNX's reference, and for StableHLO by XLA on the CPU.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import coset.dialects
from benchmarks.definitions.hub import TermInstance
from benchmarks.definitions.instance import Instance, Slot, constant, fixed
from benchmarks.definitions.judging import Results
from benchmarks.definitions.runtimes import ONNX_RUNTIME, REFERENCE, XLA, Answer, Worker, workers
from coset.frontends.onnx.model import import_model
from coset.ir.errors import CosetError
from coset.ir.term import Term
from coset.ir.types import DTYPES, dtype_of

assert coset.dialects
PAGE = Path(__file__).resolve().parents[1] / "docs" / "undefined.md"
MARK = re.compile(r"(<!-- table (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
NAN, INF = np.nan, np.inf
LEAST = -(2**31)


@dataclass(frozen=True)
class Case:
    """A case: its table, what is asked, and what the standard says of it."""

    table: str
    asked: str
    standard: str
    instance: Instance


def f32(*values: float) -> Any:
    return np.array(values, np.float32)


def i32(*values: int) -> Any:
    return np.array(values, np.int32)


def u8(values: Sequence[int]) -> Any:
    return np.array(values, np.uint8)


def f16(values: Sequence[float]) -> Any:
    return np.array(values, np.float16)


def node(
    op: str,
    inputs: Sequence[Any],
    attributes: Mapping[str, Any] | None = None,
    *,
    opset: int = 13,
    known: Sequence[int] = (),
    outputs: int = 1,
) -> Instance:
    """A node on these inputs, some of which the model knows."""
    slots = tuple(None if x is None else constant(x) if i in known else fixed(x) for i, x in enumerate(inputs))
    return Instance(op, slots, attributes or {}, opset, outputs)


def hub(op: str, inputs: Sequence[Any], given: Mapping[str, Any] | None = None, written: str = "") -> TermInstance:
    """A term of StableHLO on these inputs."""
    slots = tuple(Slot(dtype_of(np.asarray(x).dtype), np.shape(x), value=np.asarray(x)) for x in inputs)
    return TermInstance(f"stablehlo.{op}", slots, given=given or {}, written=written)


EMPTY, EMPTY_INTEGERS = np.zeros(0, np.float32), np.zeros(0, np.int32)
OUTSIDE = f32(1e10, -1e10, NAN, INF, 300.7, -1.5)
GATHERED = {"offset_dims": (), "collapsed_slice_dims": (0,), "operand_batching_dims": (), "start_indices_batching_dims": (),
            "start_index_map": (0,), "index_vector_dim": 1, "slice_sizes": (1,), "indices_are_sorted": False}  # fmt: skip
NUMBERS = "#stablehlo.gather<offset_dims = [], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>"
NO_WORD = "nothing"

CASES = (
    # ---------------------------------------------------------------- integers
    Case("integers", "Div of [1, -5] by 0", NO_WORD, node("Div", [i32(1, -5), i32(0, 0)], opset=14)),
    Case("integers", "Mod of [1, -5] by 0", NO_WORD, node("Mod", [i32(1, -5), i32(0, 0)])),
    Case("integers", "Mod of -2^31 by -1", NO_WORD, node("Mod", [i32(LEAST), i32(-1)])),
    Case("integers", "Mod of [-7, 7] by [3, -3]", "the sign of the divisor", node("Mod", [i32(-7, 7), i32(3, -3)])),
    Case("integers", "Mod with `fmod` of [-7, 7] by [3, -3]", "as C's fmod", node("Mod", [i32(-7, 7), i32(3, -3)], {"fmod": 1})),
    Case("integers", "Add of 2^31 - 1 and 1", NO_WORD, node("Add", [i32(2**31 - 1), i32(1)], opset=14)),
    Case("integers", "Abs of -2^31", NO_WORD, node("Abs", [i32(LEAST)])),
    Case("integers", "Pow of [2, -1, 0] by [-1, -3, -2]", NO_WORD, node("Pow", [i32(2, -1, 0), i32(-1, -3, -2)], opset=15)),
    Case("integers", "Pow of [7, 46341] by [40, 2]", NO_WORD, node("Pow", [i32(7, 46341), i32(40, 2)], opset=15)),
    Case(
        "integers",
        "Pow of int64 94906267 by 2 (9007199515875289)",
        "the power",
        node("Pow", [np.array([94906267]), np.array([2])], opset=15),
    ),
    Case("integers", "Pow of int32 [2, 3] by [0.5, -1.5]", NO_WORD, node("Pow", [i32(2, 3), f32(0.5, -1.5)], opset=15)),
    Case(
        "integers",
        "BitShift LEFT of uint8 1 by [7, 8, 9]",
        NO_WORD,
        node("BitShift", [u8([1, 1, 1]), u8([7, 8, 9])], {"direction": "LEFT"}, opset=11),
    ),
    Case(
        "integers",
        "BitShift RIGHT of uint8 255 by [7, 8, 9]",
        NO_WORD,
        node("BitShift", [u8([255] * 3), u8([7, 8, 9])], {"direction": "RIGHT"}, opset=11),
    ),
    Case(
        "integers",
        "ReduceSum of int64 [2^53 + 1, 0] (9007199254740993)",
        "the sum",
        node("ReduceSum", [np.array([2**53 + 1, 0])], {"keepdims": 0}),
    ),
    Case("integers", "ReduceSum of [2^31 - 1, 1]", NO_WORD, node("ReduceSum", [i32(2**31 - 1, 1)], {"keepdims": 0})),
    Case("integers", "ReduceProd of [2^31 - 1, 3]", NO_WORD, node("ReduceProd", [i32(2**31 - 1, 3)], {"keepdims": 0})),
    Case("integers", "ReduceMean of [2^31 - 1, 1]", NO_WORD, node("ReduceMean", [i32(2**31 - 1, 1)], {"keepdims": 0})),
    Case("integers", "ReduceL2 of 927089923", "its magnitude", node("ReduceL2", [i32(927089923)], {"keepdims": 0})),
    Case("integers", "ReduceLogSum of [1, -3]", NO_WORD, node("ReduceLogSum", [i32(1, -3)], {"keepdims": 0})),
    Case(
        "integers",
        "ReduceLogSumExp of [7, 7, 6, 6, 6, 6] (8.24)",
        NO_WORD,
        node("ReduceLogSumExp", [i32(7, 7, 6, 6, 6, 6)], {"keepdims": 0}),
    ),
    Case(
        "integers",
        "Shrink of uint8 [0, 5], bias -1, lambd -1",
        NO_WORD,
        node("Shrink", [u8([0, 5])], {"bias": -1.0, "lambd": -1.0}, opset=9),
    ),
    # ---------------------------------------------------------------- conversions
    *(
        Case("conversions", f"Cast of [1e10, -1e10, NaN, inf, 300.7, -1.5] to {name}", "undefined", node("Cast", [OUTSIDE], {"to": code}))
        for name, code in (("int32", 6), ("int8", 3), ("uint8", 2))
    ),
    Case(
        "conversions",
        "Cast of int64 [2^40 + 5, -1, 300] to uint8",
        "the low bits",
        node("Cast", [np.array([2**40 + 5, -1, 300])], {"to": 2}),
    ),
    Case(
        "conversions",
        "QuantizeLinear of [NaN, inf, -inf] to int8",
        "saturates",
        node("QuantizeLinear", [f32(NAN, INF, -INF), np.array(0.5, np.float32), np.array(0, np.int8)]),
    ),
    Case(
        "conversions",
        "DynamicQuantizeLinear of zeros: the scale",
        NO_WORD,
        Instance("DynamicQuantizeLinear", (fixed(f32(0, 0)),), {}, 11, 3),
    ),
    # ---------------------------------------------------------------- indices
    Case("indices", "Gather of [1, 2, 3] at [5, -7]", "an error", node("Gather", [f32(1, 2, 3), np.array([5, -7])])),
    Case("indices", "GatherElements of [1, 2, 3] at 5", "an error", node("GatherElements", [f32(1, 2, 3), np.array([5])])),
    Case("indices", "GatherND of [1, 2, 3] at [5]", "an error", node("GatherND", [f32(1, 2, 3), np.array([[5]])])),
    Case(
        "indices",
        "ScatterElements into [1, 2, 3] at 5",
        "an error",
        node("ScatterElements", [f32(1, 2, 3), np.array([5]), f32(9)], opset=18),
    ),
    Case("indices", "ScatterND into [1, 2, 3] at [5]", "an error", node("ScatterND", [f32(1, 2, 3), np.array([[5]]), f32(9)], opset=18)),
    Case(
        "indices",
        "ReverseSequence of [1, 2, 3], length 5",
        NO_WORD,
        node("ReverseSequence", [f32(1, 2, 3).reshape(1, 3), np.array([5])], {"time_axis": 1, "batch_axis": 0}, opset=10),
    ),
    Case(
        "indices",
        "OneHot of [0, 3, -1, -4] in 3",
        "a row of `off`",
        node("OneHot", [np.array([0, 3, -1, -4]), np.array(3), f32(0, 1)], opset=11, known=(1,)),
    ),
    Case(
        "indices",
        "Squeeze of [1, 3, 1] at no axes (given): the shape",
        "axes that are not given mean all",
        node("Squeeze", [np.zeros((1, 3, 1), np.float32), np.zeros(0, np.int64)], known=(1,)),
    ),
    # ---------------------------------------------------------------- nothing
    *(
        Case("nothing", f"{op} of no {what}", said, node(op, [x], {"keepdims": 0}, opset=18))
        for op, said in (
            ("ReduceSum", "0"),
            ("ReduceProd", "1"),
            ("ReduceMax", "the least number"),
            ("ReduceMean", "undefined"),
            ("ReduceLogSum", "-inf or undefined"),
        )
        for what, x in (("floats", EMPTY), ("integers", EMPTY_INTEGERS))
    ),
    Case("nothing", "ArgMax of [0, 2] along 0", NO_WORD, node("ArgMax", [np.zeros((0, 2), np.float32)], {"keepdims": 0})),
    Case("nothing", "GlobalAveragePool of [1, 1, 0]", NO_WORD, node("GlobalAveragePool", [np.zeros((1, 1, 0), np.float32)], opset=1)),
    # ---------------------------------------------------------------- NaN and infinities
    *(Case("nan", f"{op} of [1, NaN, 3]", NO_WORD, node(op, [f32(1, NAN, 3)], {"keepdims": 0})) for op in ("ReduceMax", "ReduceMin")),
    Case("nan", "Unique of [NaN, NaN]", NO_WORD, node("Unique", [f32(NAN, NAN)])),
    Case("nan", "Unique of [3, NaN, 1, NaN, 2, 3]", NO_WORD, node("Unique", [f32(3, NAN, 1, NAN, 2, 3)])),
    Case("nan", "ReduceMax of [NaN, 1, 3]", NO_WORD, node("ReduceMax", [f32(NAN, 1, 3)], {"keepdims": 0})),
    *(Case("nan", f"{op} of [1, NaN, 3]", NO_WORD, node(op, [f32(1, NAN, 3)], {"axis": 0, "keepdims": 0})) for op in ("ArgMax", "ArgMin")),
    Case("nan", "Hardmax of [NaN, 1, 3]", NO_WORD, node("Hardmax", [f32(NAN, 1, 3)], {"axis": 0})),
    Case(
        "nan",
        "TopK of [1, NaN, 3], largest",
        NO_WORD,
        node("TopK", [f32(1, NAN, 3), np.array([3])], {"axis": 0}, opset=11, known=(1,), outputs=2),
    ),
    Case("nan", "MaxPool of [1, NaN, 3]", NO_WORD, node("MaxPool", [f32(1, NAN, 3).reshape(1, 1, 3)], {"kernel_shape": [3]}, opset=12)),
    Case("nan", "Max of [1, NaN] and 2", NO_WORD, node("Max", [f32(1, NAN), f32(2, 2)])),
    Case("nan", "Clip of [-inf, 1, inf] without bounds", "the ends of the type", node("Clip", [f32(-INF, 1, INF)])),
    Case("nan", "Clip of [1, 5] between NaN and 2", NO_WORD, node("Clip", [f32(1, 5), np.array(NAN, np.float32), np.array(2, np.float32)])),
    Case(
        "nan",
        "Clip of [1, 5, -3] between 3 and 2",
        "the upper bound",
        node("Clip", [f32(1, 5, -3), np.array(3, np.float32), np.array(2, np.float32)]),
    ),
    Case("nan", "Sign of NaN, float", NO_WORD, node("Sign", [f32(NAN)])),
    Case("nan", "Sign of NaN, float16", NO_WORD, node("Sign", [f32(NAN).astype(np.float16)])),
    Case("nan", "Softmax of [inf, 1]", NO_WORD, node("Softmax", [f32(INF, 1)])),
    Case("nan", "Softmax of [-inf, -inf]", NO_WORD, node("Softmax", [f32(-INF, -INF)])),
    Case("nan", "PRelu of 0 with the slope NaN", "0", node("PRelu", [f32(0), f32(NAN)], opset=16)),
    Case("nan", "AveragePool of [1, NaN]", NO_WORD, node("AveragePool", [f32(1, NAN).reshape(1, 1, 2)], {"kernel_shape": [2]}, opset=11)),
    Case(
        "nan",
        "ConvTranspose of [1, 1] with [inf, 1], stride 2",
        NO_WORD,
        node("ConvTranspose", [f32(1, 1).reshape(1, 1, 2), f32(INF, 1).reshape(1, 1, 2)], {"strides": [2]}, opset=11),
    ),
    Case(
        "nan",
        "Col2Im of [[1, 2], [inf, 3]], blocks of 2",
        NO_WORD,
        node("Col2Im", [f32(1, 2, INF, 3).reshape(1, 2, 2), np.array([3]), np.array([2])], opset=18, known=(1, 2)),
    ),
    Case(
        "nan",
        "Resize of [1, NaN, 3, 4, 5] to 9, linear",
        NO_WORD,
        node("Resize", [f32(1, NAN, 3, 4, 5).reshape(1, 1, 5), None, None, np.array([1, 1, 9])], {"mode": "linear"}, opset=19, known=(3,)),
    ),
    # ---------------------------------------------------------------- numbers
    Case("numbers", "Relu of -0.0", "0 or -0", node("Relu", [f32(-0.0)], opset=14)),
    Case("numbers", "Max of [0.0, -0.0] and [-0.0, 0.0]", "0 or -0", node("Max", [f32(0.0, -0.0), f32(-0.0, 0.0)])),
    Case("numbers", "Sign of -0.0", "0 or -0", node("Sign", [f32(-0.0)])),
    Case("numbers", "Mean of two float16 60000", NO_WORD, node("Mean", [f16([60000]), f16([60000])])),
    Case(
        "numbers",
        "ReduceLogSumExp of [1000, 1000], opset 18",
        "the stable sum",
        node("ReduceLogSumExp", [f32(1000, 1000)], {"keepdims": 0}, opset=18),
    ),
    Case(
        "numbers",
        "ReduceLogSumExp of [1000, 1000], opset 28",
        "the stable sum",
        node("ReduceLogSumExp", [f32(1000, 1000)], {"keepdims": 0}, opset=28),
    ),
    Case(
        "numbers",
        "MeanVarianceNormalization of one element",
        "0",
        node("MeanVarianceNormalization", [f32(1.7640524).reshape(1, 1)], {"axes": [1]}),
    ),
    Case(
        "numbers",
        "Resize of [0, 1, 2] by 0.75, align_corners",
        "lengths of 2 or of 2.25",
        node(
            "Resize",
            [f32(0, 1, 2).reshape(1, 1, 3), None, f32(1, 1, 0.75)],
            {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
            opset=19,
            known=(2,),
        ),
    ),
    Case("numbers", "LpNormalization of [-3, 1], p = 1", "[-0.75, 0.25]", node("LpNormalization", [f32(-3, 1)], {"p": 1}, opset=22)),
    Case(
        "numbers",
        "BatchNormalization of [[1], [3]], opset 9, identity",
        "[1, 3]",
        node("BatchNormalization", [f32(1, 3).reshape(2, 1), f32(1), f32(0), f32(0), f32(1)], opset=9),
    ),
    # ---------------------------------------------------------------- StableHLO
    Case("hub", "divide of s32 [1, -5] by 0", NO_WORD, hub("divide", [i32(1, -5), i32(0, 0)])),
    Case("hub", "divide of u8 7 by 0", NO_WORD, hub("divide", [u8([7]), u8([0])])),
    Case("hub", "divide of -2^31 by -1", NO_WORD, hub("divide", [i32(LEAST), i32(-1)])),
    Case("hub", "remainder of [1, -5] by 0", NO_WORD, hub("remainder", [i32(1, -5), i32(0, 0)])),
    Case("hub", "remainder of -2^31 by -1", NO_WORD, hub("remainder", [i32(LEAST), i32(-1)])),
    Case("hub", "shift_left of 1 by [31, 32, -1]", NO_WORD, hub("shift_left", [i32(1, 1, 1), i32(31, 32, -1)])),
    Case("hub", "shift_right_arithmetic of -8 by [1, 32, -1]", NO_WORD, hub("shift_right_arithmetic", [i32(-8, -8, -8), i32(1, 32, -1)])),
    Case(
        "hub", "convert of [1e10, -1e10, NaN, inf, 300.7, -1.5] to i8", "to be decided", hub("convert", [OUTSIDE], {"dtype": DTYPES["i8"]})
    ),
    Case(
        "hub", "convert of [1e10, -1e10, NaN, inf, 300.7, -1.5] to u8", "to be decided", hub("convert", [OUTSIDE], {"dtype": DTYPES["u8"]})
    ),
    Case("hub", "power of s32 [2, -1, 0] by [-1, -3, -2]", NO_WORD, hub("power", [i32(2, -1, 0), i32(-1, -3, -2)])),
    Case("hub", "maximum of [1, NaN] and 2", "NaN", hub("maximum", [f32(1, NAN), f32(2, 2)])),
    Case("hub", "maximum of [0.0, -0.0] and [-0.0, 0.0]", "0", hub("maximum", [f32(0.0, -0.0), f32(-0.0, 0.0)])),
    Case("hub", "sign of [NaN, -0.0]", "[NaN, -0]", hub("sign", [f32(NAN, -0.0)])),
    Case("hub", "ceil of 1e-45", "1", hub("ceil", [f32(1e-45)])),
    Case("hub", "multiply of 1e-45 and inf", "inf", hub("multiply", [f32(1e-45), f32(INF)])),
    Case(
        "hub",
        "gather of [1, 2, 3] at [5, -7]",
        "the nearest index",
        hub(
            "gather",
            [f32(1, 2, 3), i32(5, -7).reshape(2, 1)],
            GATHERED,
            f"dimension_numbers = {NUMBERS}, slice_sizes = array<i64: 1>, indices_are_sorted = false",
        ),
    ),
    Case(
        "hub",
        "dynamic_slice of one of [1, 2, 3] at 5",
        "the nearest index",
        hub("dynamic_slice", [f32(1, 2, 3), np.array(5, np.int32)], {"slice_sizes": (1,)}, "slice_sizes = array<i64: 1>"),
    ),
    Case("hub", "count_leading_zeros of 0", "32", hub("count_leading_zeros", [i32(0)])),
)

RUNTIMES = {True: (XLA,), False: (ONNX_RUNTIME, REFERENCE)}  # by whether a case is StableHLO's


def shown(answer: Answer, *, shape: bool = False) -> str:
    """A result in a cell: its numbers, or its shape, or that there is none."""
    if isinstance(answer, str):
        return "an error"
    value = np.asarray(answer[1] if len(answer) == 3 else answer[0])  # of DynamicQuantizeLinear the scale
    return str(list(value.shape)) if shape else _listed(value.squeeze())


def _listed(value: Any) -> str:
    if value.ndim == 0:
        return str(int(value)) if value.dtype.kind in "iub" else _number(float(value))
    return f"[{', '.join(_listed(each) for each in value)}]"


def _number(x: float) -> str:
    return "NaN" if x != x else f"{x:.6g}".replace("e+", "e")


def _roots(instance: Instance, arrays: Sequence[Any]) -> Sequence[Term]:
    return instance.roots() if isinstance(instance, TermInstance) else import_model(instance.model(arrays)).roots


def ours(case: Case) -> Answer:
    """What coset's evaluator gives."""
    arrays = case.instance.arrays("moderate", np.random.default_rng(0))
    try:
        return list(Results.of(_roots(case.instance, arrays), case.instance.feed(arrays)).values)
    except CosetError as error:
        return error.message


def theirs(case: Case, worker: Worker) -> Answer:
    """What a runtime gives."""
    arrays = case.instance.arrays("moderate", np.random.default_rng(0))
    instance = case.instance
    data = instance.text().encode() if isinstance(instance, TermInstance) else instance.model(arrays).SerializeToString()
    answer = worker.ask(data, [instance.feed(arrays)])
    return answer if isinstance(answer, str) else answer[0]


def table(name: str, runtimes: Mapping[str, Worker]) -> str:
    """A table of the page in Markdown."""
    columns = RUNTIMES[name == "hub"]
    lines = [f"| case | the standard says | {' | '.join(columns)} | coset |", "|---|---|" + "---|" * (len(columns) + 1)]
    for case in CASES:
        if case.table == name:
            answers = [*(theirs(case, runtimes[column]) for column in columns), ours(case)]
            cells = [shown(answer, shape=case.asked.endswith(": the shape")) for answer in answers]
            lines.append(f"| {case.asked} | {case.standard} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def page(text: str) -> str:
    """The page with its tables made anew."""
    with workers((ONNX_RUNTIME, REFERENCE, XLA)) as runtimes:
        return MARK.sub(lambda found: found[1] + table(found[2], runtimes) + found[3], text)


def main() -> int:
    """Print or write the page."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--write", action="store_true", help="into docs/undefined.md")
    given = options.parse_args()
    text = page(PAGE.read_text())
    if given.write:
        PAGE.write_text(text)
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
