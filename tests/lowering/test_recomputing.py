"""Plans under a limit of memory give the values of the plans that they are made of, and keep to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from coset.ir.dims import symbol
from coset.ir.types import BOOL, F32, F64
from coset.lowering.kernel import Buffer, Kernel, Library, Load, Loop, Plan, Pointwise, Product, Result, Rows, Store, reads, writes
from coset.lowering.memory import live_bytes
from coset.lowering.plan import plan
from coset.lowering.recomputing import fewest_bytes, in_place, recomputed
from tests.lowering.drawn_programs import program as drawn
from tests.lowering.plan_cases import CASES
from tests.lowering.plan_numpy import run


def size_of(buffer: Buffer) -> int:
    """Bytes, with 16 for each dim that is no number."""
    return int(np.prod([dim if isinstance(dim, int) else 16 for dim in buffer.shape], dtype=np.int64)) * max(1, buffer.dtype.bits // 8)


def one(_: Plan, kernel: Kernel) -> float:
    """Seconds of a kernel: all the same, a library's ten times as many."""
    return 10.0 if isinstance(kernel, Library) else 1.0


def within(whole: Plan, limit: int) -> Plan | None:
    """The plan under a limit, after its laws were looked at."""
    found = recomputed(whole, limit, one, size_of)
    if found is None:
        return None
    assert live_bytes(found, size_of) <= limit
    assert found.outputs == whole.outputs and found.inputs == whole.inputs
    ready = {name for name, buffer in found.buffers.items() if buffer.role in ("input", "constant")}
    for kernel in found.kernels:
        assert set(reads(kernel)) <= ready, kernel.name
        assert not set(writes(kernel)) & ready, kernel.name
        ready |= set(writes(kernel))
    assert len({kernel.name for kernel in found.kernels}) == len(found.kernels)
    for name, taken in found.over.items():
        assert found.buffers[name].shape == found.buffers[taken].shape and found.buffers[name].dtype is found.buffers[taken].dtype
    return found


def same(found: Plan, whole: Plan, feeds: Any) -> None:
    """Both plans give the same bits."""
    for (name, value), expected in zip(run(found, feeds).items(), run(whole, feeds).values(), strict=True):
        np.testing.assert_array_equal(value, expected, err_msg=name)


def test_drawn_plans_give_their_values_under_every_limit() -> None:
    repeated = lesser = taken = 0
    for seed in range(60):
        program, feeds = drawn(seed, 30, symbolic=seed % 2 == 1)
        whole = plan(program)
        most = live_bytes(replace(whole, offsets={}, arena=0), size_of)
        fewest = fewest_bytes(whole, one, size_of)
        assert fewest <= most
        for limit in sorted({most, (most + fewest) // 2, fewest}):
            found = within(whole, limit)
            assert found is not None, f"seed {seed}: {fewest} bytes were said to be enough, not {limit}"
            same(found, whole, feeds)
            repeated += len(found.kernels) > len(whole.kernels)
            lesser += live_bytes(found, size_of) < most
            taken += bool(found.over)
    assert repeated and lesser > 5 and taken > 5


def test_a_training_step_takes_half_of_its_memory() -> None:
    program, feeds = CASES["training_step"]()
    whole = plan(program)
    most = live_bytes(replace(whole, offsets={}, arena=0), size_of)
    found = within(whole, most // 2)
    assert found is not None and found.frees and not found.offsets
    same(found, whole, feeds)


def test_what_is_launched_again_stores_only_what_is_missing() -> None:
    program, _ = CASES["training_step"]()
    whole = plan(program)
    most = live_bytes(replace(whole, offsets={}, arena=0), size_of)
    found = within(whole, most // 2)
    assert found is not None
    outputs = {buffer for _, buffer in found.outputs}
    used = outputs | {name for kernel in found.kernels for name in reads(kernel)}
    for kernel in found.kernels:
        assert isinstance(kernel, Library) or set(writes(kernel)) <= used, f"{kernel.name} stores what nobody reads"
        assert "_again" not in kernel.name or not set(writes(kernel)) & outputs


# ---------------------------------------------------------------- in place


ROW, COLUMN, DEPTH = (Loop(f"loop:{name}", extent) for name, extent in (("i", 4), ("j", 4), ("k", 8)))
SQUARE = (4, 4)


def planned(kernel: Kernel, **buffers: Any) -> Plan:
    made = {name: Buffer(name, dtype, shape, "temporary") for name, (dtype, shape) in buffers.items()}
    return Plan(made, (kernel,), (), ())


def pairs(kernel: Kernel, **buffers: Any) -> list[tuple[str, str]]:
    return list(in_place(kernel, planned(kernel, **{"x": (F32, SQUARE), "y": (F32, SQUARE), **buffers})))


def load(buffer: str, *index: Any, dtype: Any = F32) -> Load:
    return Load(buffer, index, dtype)


def test_a_result_takes_the_memory_of_what_is_read_at_its_own_place() -> None:
    here, across = (ROW.index, COLUMN.index), (COLUMN.index, ROW.index)
    assert pairs(Pointwise("p", (ROW, COLUMN), (Store("y", here, load("x", *here)),))) == [("y", "x")]
    assert pairs(Pointwise("p", (ROW, COLUMN), (Store("y", here, load("x", *across)),))) == [], "another program writes there"
    both = Store("y", here, load("x", *here)), Store("z", here, load("x", *across))
    assert pairs(Pointwise("p", (ROW, COLUMN), both), z=(F64, SQUARE)) == [], "another store reads elsewhere"
    assert pairs(Pointwise("p", (ROW, COLUMN), (Store("y", here, load("x", *here, dtype=BOOL)),)), x=(BOOL, SQUARE)) == [], "other bytes"
    assert pairs(Pointwise("p", (ROW, COLUMN), (Store("y", here, load("x", *here)),)), y=(F32, (4, symbol("N")))) == [], "another shape"


def test_what_other_programs_read_stays() -> None:
    m, n, k = (ROW,), (COLUMN,), (DEPTH,)
    here = (ROW.index, COLUMN.index)
    total = Result("sum", F32)
    behind = Product(
        "p",
        (),
        m,
        n,
        k,
        load("a", ROW.index, DEPTH.index),
        load("b", DEPTH.index, COLUMN.index),
        F32,
        (Store("y", here, load("x", *here)),),
    )
    operands = {"a": (F32, (4, 8)), "b": (F32, (8, 4))}
    assert pairs(behind, **operands) == [("y", "x")]
    inside = replace(behind, lhs=load("x", *here), stores=(Store("y", here, total),))
    assert pairs(inside, **operands) == [], "the tiles of other programs read it"
    rows = Rows("r", (ROW,), (COLUMN,), (), (Store("s", (ROW.index,), load("t", ROW.index)),), (Store("y", here, load("x", *here)),))
    vectors = {"s": (F32, (4,)), "t": (F32, (4,))}
    assert pairs(rows, **vectors) == [("y", "x")], "stores of rows come before those of elements"
