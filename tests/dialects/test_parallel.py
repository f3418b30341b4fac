"""Programs on several processes: every collective against StableHLO's reference interpreter on drawn grids, groups, types and shapes.

The interpreter runs as many processes at once as the machine has processors, and a process that waits for another one keeps its
place: of more processes than that only those grids are drawn whose groups come together all the same.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hub_cases import adversarial
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import coset.dialects
from coset.dialects.hub.region_terms import region, while_term
from coset.dialects.hub.scalars import widen
from coset.ir.errors import CosetError
from coset.ir.evaluate_parallel import evaluate_parallel
from coset.ir.program import Program
from coset.ir.registry import all_ops
from coset.ir.term import Term, constant, get, input_term, make
from coset.ir.types import DTYPES, F32, I32, DType, TensorType, tensor
from coset.lowering.stablehlo.module import print_stablehlo

Array = np.ndarray[Any, Any]
Draw = Any
JOINT = sorted(op.name.removeprefix("stablehlo.") for op in all_ops() if op.joint is not None)
THREADS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
GRIDS = [(1, 1), (2, 1), (1, 2), (2, 2), (4, 1), (1, 4), (3, 1), (2, 3)]
NUMBERS = [dtype for dtype in DTYPES.values() if dtype.name not in ("f8e8m0fnu", "string")]  # the interpreter has neither
Grouped = tuple[tuple[int, int], tuple[tuple[int, ...], ...], dict[str, Any], int]


def test_every_distributed_op_has_a_joint_meaning() -> None:
    distributed = sorted(op.name.removeprefix("stablehlo.") for op in all_ops() if op.has("distributed"))
    assert distributed == JOINT


def expanded(grid: tuple[int, int], rows: Any, kind: str) -> list[list[int]]:
    """The process groups, written down anew from the specification's text."""
    replicas, partitions = grid
    if kind == "flat":
        return [list(row) for row in rows]
    if kind == "replicas":
        return [[r * partitions + p for r in row] for p in range(partitions) for row in rows]
    if kind == "partitions":
        return [[r * partitions + p for p in row] for r in range(replicas) for row in rows]
    return [[r * partitions + p for p in range(partitions) for r in row] for row in rows]


def comes_together(grid: tuple[int, int], groups: list[list[int]]) -> bool:
    """True when the first THREADS processes, then the next ones, wait only for each other."""
    return grid[0] * grid[1] <= THREADS or all(len({process // THREADS for process in group}) == 1 for group in groups)


@st.composite
def grouped(draw: Draw, *, gathers: bool) -> Grouped:
    """A grid, replica groups over it, the attributes that say what the groups are of, and the size of a group."""
    grid = draw(st.sampled_from(GRIDS))
    channel = draw(st.integers(0, 1)) * draw(st.integers(1, 5))
    flat = gathers and channel > 0 and draw(st.booleans())
    kind = "flat" if flat else ("both" if gathers else "partitions") if channel else "replicas"
    count = {"flat": grid[0] * grid[1], "partitions": grid[1]}.get(kind, grid[0])
    order = draw(st.permutations(range(count)))
    size = draw(st.sampled_from([n for n in range(1, count + 1) if count % n == 0]))
    rows = tuple(tuple(order[i : i + size]) for i in range(0, count, size))
    groups = expanded(grid, rows, kind)
    if not comes_together(grid, groups):
        order = list(range(count))
        rows = tuple(tuple(reversed(order[i : i + size])) for i in range(0, count, size))
        groups = expanded(grid, rows, kind)
    if not comes_together(grid, groups):
        rows, groups = tuple((i,) for i in range(count)), expanded(grid, [(i,) for i in range(count)], kind)
    if not comes_together(grid, groups):
        return ((1, 1), ((0,),), {"channel_id": 0, **({"use_global_device_ids": False} if gathers else {})}, 1)
    return grid, rows, {"channel_id": channel, **({"use_global_device_ids": flat} if gathers else {})}, len(groups[0])


def words(dtype: DType) -> list[str]:
    return ["add", "multiply", "maximum", "minimum"][: 2 if dtype.kind == "complex" else 4] + ["and"] * (
        dtype.kind in ("int", "uint", "bool")
    )


@st.composite
def programs(draw: Draw, name: str) -> tuple[Program, list[dict[str, Array]], int]:
    """A program of one collective, the inputs of each process, and how many partitions there are."""
    gathers = name in ("all_gather", "all_reduce", "reduce_scatter")
    grid, rows, attributes, size = draw(grouped(gathers=gathers))
    dtype = draw(st.sampled_from(NUMBERS))
    least = 1 if name in ("reduce_scatter", "all_to_all", "all_gather") else 0  # MLIR's verifier wants dims of 1 or more there
    shape = (size * draw(st.integers(least, 2)), *draw(st.lists(st.integers(least, 3), max_size=5)))
    bodies: tuple[Any, ...] = ()
    if name in ("replica_id", "partition_id"):
        attributes = {}
    elif name == "collective_permute":
        ids = [row for row in rows if len(row) > 1]
        rows = tuple((row[i], row[(i + 1) % len(row)]) for row in ids for i in range(len(row) - draw(st.integers(0, 1))))
        attributes["source_target_pairs"] = rows or ((0, 0),)
    else:
        attributes["replica_groups"] = rows
    if name == "all_to_all":
        attributes |= {"split_dimension": 0, "concat_dimension": draw(st.integers(0, len(shape) - 1)), "split_count": len(rows[0])}
    if name == "all_gather":
        attributes |= {"all_gather_dim": draw(st.integers(0, len(shape) - 1)), "group_size": size}
    if name == "reduce_scatter":
        attributes |= {"scatter_dimension": 0, "group_size": size}
    if name in ("all_reduce", "reduce_scatter"):
        attributes["combiner"] = draw(st.sampled_from([*words(dtype), "region"]))
        if attributes["combiner"] == "region":  # no word, and not associative
            bodies = (
                region(
                    [tensor(dtype)] * 2,
                    lambda a, b: make("stablehlo.select", (make("stablehlo.compare", (a, b), {"direction": "NE"}), b, a)),
                ),
            )
    x = input_term("x", TensorType(dtype, shape))
    term = make(f"stablehlo.{name}", [x] if attributes else [], attributes, bodies)
    seed = draw(st.integers(0, 10_000))
    feeds = [{"x": settled(adversarial(dtype, shape, seed + i), attributes.get("combiner"))} for i in range(grid[0] * grid[1])]
    return Program((x,), (("r", term),)), feeds, grid[1]


def settled(x: Array, combiner: str | None) -> Array:
    """Sums and products that are exact in any order and in any type."""
    if combiner not in ("add", "multiply") or x.dtype.kind in "iub":
        return x
    return np.asarray(np.sign(np.nan_to_num(widen(x.real))).astype(x.dtype))


def same(ours: Array, theirs: Array) -> bool:
    wide = widen(ours)
    return (
        ours.dtype == theirs.dtype and ours.shape == theirs.shape and np.array_equal(wide, widen(theirs), equal_nan=wide.dtype.kind in "fc")
    )


@pytest.fixture(scope="module")
def interpreter() -> Iterator[Any]:
    pytest.importorskip("torch_mlir", reason="the reference interpreter is in the torch-mlir wheel")
    from coset.backends.stablehlo_interpreter import StablehloInterpreter

    with StablehloInterpreter() as child:
        yield child


@pytest.mark.parametrize("name", JOINT)
def test_a_collective_is_as_the_reference_interpreter_has_it(name: str, interpreter: Any) -> None:
    refused, agreed, larger = [], 0, 0

    @settings(max_examples=60, deadline=None, derandomize=True, database=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(programs(name))
    def compare(case: tuple[Program, list[dict[str, Array]], int]) -> None:
        nonlocal agreed, larger
        program, feeds, partitions = case
        text = print_stablehlo(program)
        ours = evaluate_parallel(program, feeds, partitions=partitions)
        try:
            theirs = interpreter.run_parallel(text, [[feed["x"]] for feed in feeds], partitions=partitions)
        except CosetError as error:
            refused.append(error.message)
            return
        for process, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            assert same(np.asarray(mine[0]), other[0]), f"{text}\nprocess {process} of {feeds}: {mine[0]}, not {other[0]}"
        agreed += 1
        larger += len(feeds) > 1

    compare()
    assert agreed >= 30 and larger >= 20, (agreed, larger, refused[:3])
    assert not any("timed out" in message for message in refused)


# ---------------------------------------------------------------- programs of several steps


def test_a_step_of_data_parallel_training_is_that_of_the_whole_batch() -> None:
    x, y, w = (input_term(name, tensor(F32, *shape)) for name, shape in (("x", (4, 3)), ("y", (4,)), ("w", (3,))))
    loss = make("stablehlo.subtract", (make("stablehlo.dot_general", (x, w), {"lhs_contract": (1,), "rhs_contract": (0,)}), y))
    gradient = make("stablehlo.dot_general", (x, loss), {"lhs_contract": (0,), "rhs_contract": (0,)})
    total = make("stablehlo.all_reduce", (gradient,), {"replica_groups": ((0, 1, 2),), "combiner": "add"})
    program = Program((x, y, w), (("w", make("stablehlo.subtract", (w, total))),))
    random = np.random.default_rng(3)
    data, targets, weights = random.integers(-4, 5, (12, 3)), random.integers(-4, 5, 12), random.integers(-4, 5, 3)
    feeds = [{"x": data[i : i + 4].astype("f4"), "y": targets[i : i + 4].astype("f4"), "w": weights.astype("f4")} for i in (0, 4, 8)]
    wanted = weights - data.T @ (data @ weights - targets)
    for ((found,),) in zip(evaluate_parallel(program, feeds), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_what_is_gathered_and_scattered_again_is_the_sum() -> None:
    x = input_term("x", tensor(I32, 2, 2))
    sizes = {"replica_groups": ((1, 0), (3, 2)), "group_size": 2}
    summed = make("stablehlo.reduce_scatter", (x,), {**sizes, "scatter_dimension": 0, "combiner": "add"})
    gathered = make("stablehlo.all_gather", (summed,), {**sizes, "all_gather_dim": 0})
    reduced = make("stablehlo.all_reduce", (x,), {"replica_groups": sizes["replica_groups"], "combiner": "add"})
    feeds = [{"x": np.arange(4, dtype="i4").reshape(2, 2) * (i + 1)} for i in range(4)]
    for a, b in evaluate_parallel(Program((x,), (("a", gathered), ("b", reduced))), feeds):
        np.testing.assert_array_equal(a, b)


def test_operands_of_one_collective_stay_apart() -> None:
    x, y = input_term("x", tensor(F32, 2)), input_term("y", tensor(F32, 3))
    both = make("stablehlo.collective_permute", (x, y), {"source_target_pairs": ((0, 1),)})
    program = Program((x, y), (("x", get(both, 0)), ("y", get(both, 1))))
    first, second = evaluate_parallel(program, [{"x": np.full(2, i, "f4"), "y": np.full(3, 10 * i, "f4")} for i in (1, 2)])
    assert [value.tolist() for value in first] == [[0, 0], [0, 0, 0]]
    assert [value.tolist() for value in second] == [[1, 1], [10, 10, 10]]


# ---------------------------------------------------------------- what is refused


def _reduced(x: Term, groups: Any) -> Program:
    return Program((x,), (("r", make("stablehlo.all_reduce", (x,), {"replica_groups": groups, "combiner": "add"})),))


X = input_term("x", tensor(F32, 2))
FEEDS = [{"x": np.ones(2, "f4")}] * 4


@pytest.mark.parametrize(
    ("groups", "message"),
    [(((0, 1), (2, 4)), "names replica 4, but the program runs on 4"), (((0, 1), (3, -1)), "leaves process 2 out"),
     ((), "leaves process 0 out")],
)  # fmt: skip
def test_groups_that_do_not_fit_the_grid_are_refused(groups: Any, message: str) -> None:
    with pytest.raises(CosetError, match=message):
        evaluate_parallel(_reduced(X, groups), FEEDS)


def test_a_group_is_as_large_as_its_result_says() -> None:
    gathered = make("stablehlo.all_gather", (X,), {"replica_groups": ((0, 1),), "channel_id": 1, "group_size": 2, "all_gather_dim": 0})
    with pytest.raises(CosetError, match="groups of 2 processes, but one has 4"):
        evaluate_parallel(Program((X,), (("r", gathered),)), FEEDS, partitions=2)


def test_processes_are_whole_replicas() -> None:
    with pytest.raises(CosetError, match="no whole number"):
        evaluate_parallel(_reduced(X, ((0,),)), FEEDS, partitions=3)


def test_a_collective_in_a_loop_is_refused() -> None:
    start = constant(np.zeros((), "i4"))

    def below(i: Term, _: Term) -> Term:
        return make("stablehlo.compare", (i, constant(np.full((), 3, "i4"))), {"direction": "LT"})

    def body(i: Term, x: Term) -> list[Term]:
        total = make("stablehlo.all_reduce", (x,), {"replica_groups": ((0, 1, 2, 3),), "combiner": "add"})
        return [make("stablehlo.add", (i, constant(np.ones((), "i4")))), total]

    loop = while_term([start, X], below, body)
    with pytest.raises(CosetError, match=r"`stablehlo.all_reduce` inside of `stablehlo.while`"):
        evaluate_parallel(Program((X,), (("r", get(loop, 1)),)), FEEDS)


def test_processes_of_other_sizes_are_refused() -> None:
    x = input_term("x", tensor(F32, coset.ir.dims.symbol("N")))
    with pytest.raises(CosetError, match="operands of different shapes"):
        evaluate_parallel(_reduced(x, ((0, 1),)), [{"x": np.ones(2, "f4")}, {"x": np.ones(3, "f4")}])
