"""Kernels run in Triton's interpreter beside the NumPy execution of the same scalar expressions. For tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from coset.backends.triton_runtime import Runner
from coset.ir.dims import evaluate
from coset.ir.types import DType
from coset.lowering.kernels.addresses import span, strides_of
from coset.lowering.kernels.kernel import Buffer, Computed, Plan, reads, writes
from coset.lowering.package.safetensors import stored_array
from coset.lowering.planning.packing import packed_pieces
from coset.lowering.triton.source import EmitOptions, emit, kernel_source
from tests.lowering.plan_numpy import _Run

Array = np.ndarray[Any, Any]
POISON = 0xA7
FINEST = {"f64": 2.0**-52, "f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7, "f8e4m3fn": 2.0**-3, "f8e5m2": 2.0**-2}


def kind_of(buffer: Buffer) -> np.dtype[Any]:
    """What the elements of the buffer's memory are."""
    return stored_array(np.empty(0, buffer.held.numpy), buffer.held).dtype  # type: ignore[no-any-return]


def strides(buffer: Buffer, binding: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(evaluate(stride, binding) * kind_of(buffer).itemsize for stride in strides_of(buffer))


def laid_out(buffer: Buffer, values: Array | None, binding: Mapping[str, int]) -> Array:
    """The buffer's memory: poison, with the values where its strides put them."""
    if buffer.packed is not None:
        assert values is not None
        return np.concatenate([np.zeros(0, np.uint8), *packed_pieces(np.asarray(values), buffer.packed, buffer.dtype.bits)])
    shape = tuple(evaluate(dim, binding) for dim in buffer.shape)
    count = 0 if 0 in shape else evaluate(span(buffer), binding)
    kind = kind_of(buffer)
    memory = np.full(count * kind.itemsize, POISON, np.uint8).view(kind)
    if values is not None and count:
        elements(memory, shape, strides(buffer, binding))[...] = bits_of(stored_array(np.asarray(values), buffer.dtype))
    return memory


def elements(memory: Array, shape: tuple[int, ...], steps: tuple[int, ...]) -> Array:
    """The bits of a tensor's elements in memory."""
    return np.lib.stride_tricks.as_strided(bits_of(memory), shape, steps)


def run(kernel: Computed, plan: Plan, values: Mapping[str, Array], binding: Mapping[str, int], interpreter: Runner,
        options: EmitOptions | None = None) -> dict[str, tuple[Array, Array]]:  # fmt: skip
    """What Triton's interpreter makes of each buffer that the kernel writes, and what NumPy makes of it. Memory that is no element of a
    buffer keeps its poison, or this fails."""
    expected = dict(values)
    _Run(plan, expected, binding).kernel(kernel)
    emission = emit(kernel, plan, options=options)
    buffers = {name: plan.buffers[name] for name in dict.fromkeys((*reads(kernel), *writes(kernel)))}
    buffers |= {buffer.name: buffer for buffer in emission.scratch}
    memory = {name: laid_out(buffer, values.get(name), binding) for name, buffer in buffers.items()}
    found = interpreter.run(kernel_source(kernel, plan, options=options), emission.launches, memory, binding)
    for name in reads(kernel):
        if name not in writes(kernel):
            assert found[name].tobytes() == memory[name].tobytes(), f"{name} is read only, but it changed"
    result = {}
    for name in writes(kernel):
        buffer = plan.buffers[name]
        shape = tuple(evaluate(dim, binding) for dim in buffer.shape)
        whole = np.array(found[name])
        if not whole.size:
            result[name] = np.zeros(shape, buffer.dtype.numpy), expected[name]
            continue
        view = elements(whole, shape, strides(buffer, binding))
        result[name] = view.copy().view(kind_of(buffer)).astype(buffer.dtype.numpy, copy=False), expected[name]
        view[...] = 0
        outside = laid_out(buffer, np.zeros(shape, buffer.dtype.numpy), binding)
        assert whole.tobytes() == outside.tobytes(), f"{name}: a store between its elements"
    return result


def bits_of(array: Array) -> Array:
    return (array if array.flags.c_contiguous else np.ascontiguousarray(array)).view(f"u{array.dtype.itemsize}")


def assert_same(found: Array, expected: Array, dtype: DType, what: str = "") -> None:
    """Bit for bit the same, but for the bits of NaN."""
    assert found.dtype == expected.dtype == dtype.numpy
    if dtype.kind == "float":
        wide, other = found.astype(np.float64), expected.astype(np.float64)
        wrong = ~((np.isnan(wide) & np.isnan(other)) | (bits_of(found) == bits_of(expected)))
    else:
        wrong = found != expected
    assert not wrong.any(), f"{what}: {found[wrong][:4]} instead of {expected[wrong][:4]} at {np.argwhere(wrong)[:4].tolist()}"


def assert_near(found: Array, expected: Array, dtype: DType, relative: float, absolute: float | Array = 0.0, what: str = "") -> None:
    """Within `relative` of the expected magnitude plus `absolute`, plus one unit in the last place and one subnormal of `dtype`; NaN and
    infinities are the same."""
    if dtype.kind != "float":
        assert_same(found, expected, dtype, what)
        return
    wide, other = found.astype(np.float64), expected.astype(np.float64)
    smallest = {"f64": 1e-300, "f32": 1e-38, "f16": 2.0**-24, "bf16": 1e-38, "f8e4m3fn": 2.0**-9, "f8e5m2": 2.0**-16}[dtype.name]
    with np.errstate(all="ignore"):
        allowed = (relative + FINEST[dtype.name]) * np.abs(other) + absolute + smallest
        same = (wide == other) | (np.isnan(wide) & np.isnan(other)) | (np.abs(wide - other) <= allowed)
    assert same.all(), f"{what}: {wide[~same][:4]} instead of {other[~same][:4]} at {np.argwhere(~same)[:4].tolist()}"
