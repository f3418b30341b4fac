"""Kernels whose offsets pass 2^31 elements: run on memory that is reserved but hardly touched, by an interpreter of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.ir.dims import Dim, add, evaluate, multiply, symbol
from coset.ir.op import get_op
from coset.ir.types import F32, I32, U8
from coset.lowering.kernels.kernel import (
    Buffer,
    ColumnFold,
    Kernel,
    Load,
    Loop,
    Plan,
    Pointwise,
    Product,
    Recurrence,
    Result,
    Rows,
    Scalar,
    ScalarConstant,
    ScalarOp,
    Scan,
    Sort,
    State,
    Store,
)
from coset.lowering.triton.source import emit, kernel_source

pytest.importorskip("triton", reason="Triton is not installed")

ROW = 2**30 + 3  # elements: three rows are more than 2^31
STEP = 2**28
SCRIPT = """
import json, sys, tempfile
from pathlib import Path
import numpy as np
from coset.backends.triton_child import imported, interpret
request = json.loads(sys.stdin.read())
x = np.zeros(request["size"], np.uint8)  # reserved, not touched
for i in range(3):
    for j in range(4):
        x[i * request["row"] + j * request["step"]] = 10 * i + j
y = np.full(32, 77, np.int32)
with tempfile.TemporaryDirectory() as folder:
    module = imported(request["source"], Path(folder))
    interpret(module, request["launches"], [x.ctypes.data, y.ctypes.data])
print(json.dumps(y.tolist()))
"""


def wide(value: Scalar) -> ScalarOp:
    return ScalarOp(get_op("stablehlo.convert"), (value,), I32, (("dtype", I32),))


def kernels(rows: Dim, step: Dim) -> dict[str, tuple[Kernel, list[int]]]:
    """Kernels over x[i, step * j] of u8, i < 3 and j < 4, with what they make."""
    i, j = Loop("loop:i", rows), Loop("loop:j", 4)
    x = wide(Load("x", (i.index, multiply(step, j.index)), U8))
    one = wide(ScalarConstant(1, U8))
    fold = ColumnFold("total", "add", x, I32)
    total = Store("y", (i.index,), Result("total", I32))
    return {
        "pointwise": (Pointwise("far", (i, j), (Store("y", (i.index, j.index), x),)), [10 * a + b for a in range(3) for b in range(4)]),
        "rows": (Rows("far", (i,), (j,), (fold,), (total,), ()), [40 * a + 6 for a in range(3)]),
        "product": (
            Product("far", (), (i,), (), (j,), x, one, I32, (replace(total, value=Result("sum", I32)),)),
            [40 * a + 6 for a in range(3)],
        ),
    }


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("family", ["pointwise", "rows", "product"])
def test_offsets_past_32_bits(family: str, dynamic: bool) -> None:
    rows, step = (symbol("n"), symbol("s")) if dynamic else (3, STEP)
    kernel, expected = kernels(rows, step)[family]
    shape = (rows, 4) if family == "pointwise" else (rows,)
    long: Dim = symbol("r") if dynamic else ROW
    plan = Plan({"x": Buffer("x", U8, (rows, long), "input"), "y": Buffer("y", I32, shape, "output")}, (kernel,), (), ())
    (launch,) = emit(kernel, plan).launches
    numbers = {"n": 3, "s": STEP, "r": ROW}
    assert not dynamic or (launch.numbers(numbers)["WIDE"] and not launch.numbers({"n": 3, "s": 2, "r": 9})["WIDE"])
    arguments = [[each.type, ("x", "y").index(each.buffer) if each.buffer else numbers[str(each.dim)]] for each in launch.arguments]
    start = {
        "function": launch.function,
        "arguments": arguments,
        "grid": [evaluate(dim, numbers) for dim in launch.grid],
        "constexprs": launch.numbers(numbers),
    }
    found = interpreted({"source": kernel_source(kernel, plan), "launches": [start], "row": ROW, "step": STEP, "size": 3 * ROW})
    assert found[: len(expected)] == expected and set(found[len(expected) :]) == {77}


def interpreted(request: dict[str, object]) -> list[int]:
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, "-c", SCRIPT], input=json.dumps(request), capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-600:]
    return list(json.loads(done.stdout))


def down(summed: Dim) -> dict[str, tuple[Kernel, list[int]]]:
    """Kernels over x[j, i] of u8, i < 3 and j < 4, in which j alone passes 2^31; what is summed goes along it."""
    i, j = Loop("loop:i", 3), Loop("loop:j", summed)
    x = wide(Load("x", (j.index, i.index), U8))
    one = wide(ScalarConstant(1, U8))
    sums = [40 * a + 6 for a in range(3)]
    total = Store("y", (i.index,), Result("total", I32))
    first = Store("y", (i.index, j.index), Result("scan", I32))
    front = Loop("loop:f", summed)
    place = Store("y", (i.index, front.index), Result("sorted0", I32))
    halves = (Loop("loop:h", 2), Loop("loop:r", 2))
    parted = wide(Load("x", (add(multiply(2, halves[0].index), halves[1].index), i.index), U8))
    last = replace(total, value=Result("sum", I32))
    state = Result("s", I32)
    grown = ScalarOp(get_op("stablehlo.add"), (state, x), I32)
    return {
        "rows": (Rows("far", (i,), (j,), (ColumnFold("total", "add", x, I32),), (total,), ()), sums),
        "product": (Product("far", (), (i,), (), (j,), x, one, I32, (last,)), sums),
        "parted product": (Product("far", (), (i,), (), halves, parted, one, I32, (last,)), sums),
        "scan": (Scan("far", (i,), j, x, "add", I32, (first,)), [10 * a * (b + 1) + b * (b + 1) // 2 for a in range(3) for b in range(4)]),
        "recurrence": (
            Recurrence(
                "far", (i,), (), j, (State("s", wide(ScalarConstant(0, U8)), grown, I32, False),), (), (), (replace(total, value=state),)
            ),
            sums,
        ),
        "sort": (Sort("far", (i,), j, (front,), x, (x,), "GT", False, (place,)), [10 * a + 3 - b for a in range(3) for b in range(4)]),
    }


@pytest.mark.parametrize(
    ("family", "dynamic"),
    [*((family, False) for family in down(4)), *((family, True) for family in ("rows", "product", "scan", "recurrence"))],
)
def test_offsets_of_what_is_summed_past_32_bits(family: str, dynamic: bool) -> None:
    summed: Dim = symbol("k") if dynamic else 4
    kernel, expected = down(summed)[family]
    shape: tuple[Dim, ...] = (3,) if len(expected) == 3 else (3, summed)
    plan = Plan({"x": Buffer("x", U8, (summed, ROW), "input"), "y": Buffer("y", I32, shape, "output")}, (kernel,), (), ())
    (launch,) = emit(kernel, plan).launches
    numbers = {"k": 4}
    start = {
        "function": launch.function,
        "arguments": [[each.type, ("x", "y").index(each.buffer) if each.buffer else numbers[str(each.dim)]] for each in launch.arguments],
        "grid": [evaluate(dim, numbers) for dim in launch.grid],
        "constexprs": launch.numbers(numbers),
    }
    found = interpreted({"source": kernel_source(kernel, plan), "launches": [start], "row": 1, "step": ROW, "size": 4 * ROW})
    assert found[: len(expected)] == expected and set(found[len(expected) :]) == {77}


DEVICE = """
import sys
import numpy as np
from coset.backends.triton_child import InterpreterMemory
from coset.backends.triton_runtime import Device
from coset.lowering.triton.source import emit, kernel_source
from tests.lowering.test_triton_rows import softmax
from coset.ir.dims import symbol
kernel, plan = softmax(symbol("n"), 10)
x, y = np.arange(30, dtype=np.float32).reshape(3, 10) / 7, np.zeros((3, 10), np.float32)
tensors = {name: InterpreterMemory(array.ctypes.data, "*fp32") for name, array in (("x", x), ("y", y))}
with Device(kernel_source(kernel, plan)) as device:
    device.run(emit(kernel, plan).launches, tensors, {"n": 3})
    device.run(emit(kernel, plan).launches, tensors, {"n": 0})
expected = np.exp(x - x.max(1, keepdims=True))
np.testing.assert_allclose(y, expected / expected.sum(1, keepdims=True), rtol=1e-6)
"""


def test_a_module_runs_where_the_tensors_are() -> None:
    """As on a GPU, with the interpreter in its place."""
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, "-c", DEVICE], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-600:]


def test_a_row_of_f32_is_as_far() -> None:
    """Bytes are the pointer's matter: 2^30 elements of f32 need no wide offsets, twice as many do."""
    for count, types in ((2**30, set()), (2**31, {"int64"})):
        loop = Loop("loop:i", count)
        kernel = Pointwise("copy", (loop,), (Store("y", (loop.index,), Load("x", (loop.index,), F32)),))
        source = emit(kernel, Plan({name: Buffer(name, F32, (count,), "input") for name in "xy"}, (kernel,), (), ())).source
        assert {word for word in ("int64",) if word in source} == types
