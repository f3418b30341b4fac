"""Plans under a limit of memory give the values of the plans that they are made of, and keep to it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from coset.dialects.hub.terms import dot, splat
from coset.dialects.onnx.loops import element, placed
from coset.ir.dims import add, symbol
from coset.ir.op import get_op
from coset.ir.program import Program
from coset.ir.term import Term, get, input_term, make
from coset.ir.types import BOOL, F32, F64, TensorType
from coset.lowering.arranging.recomputing import fewest_bytes, in_place, recomputed
from coset.lowering.kernels.kernel import (
    Buffer,
    Chain,
    Dot,
    Kernel,
    Library,
    Load,
    Loop,
    Plan,
    Pointwise,
    Product,
    Recurrence,
    Result,
    Rows,
    ScalarConstant,
    ScalarOp,
    State,
    Statistics,
    Store,
    Sum,
    reads,
    stores_of,
    writes,
)
from coset.lowering.kernels.memory import live_bytes
from coset.lowering.planning.plan import plan
from tests.lowering.attention_cases import Backward, Case
from tests.lowering.drawn_programs import program as drawn
from tests.lowering.plan_cases import CASES, recurrence
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
    stores = Counter(store.buffer for kernel in found.kernels for store in stores_of(kernel))  # `run` sees that parts are apart
    for kernel in found.kernels:
        assert set(reads(kernel)) <= ready, kernel.name
        assert not {name for name in writes(kernel) if stores[name] <= 1} & ready, kernel.name
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


def wide(seed: int) -> tuple[Program, dict[str, Any]]:
    """Products side by side that later products read as one, soon and once more behind a row of others; a part is read by itself too."""
    draw = np.random.default_rng(seed)
    side, count, between = 8, int(draw.integers(10, 13)), int(draw.integers(2, 5))
    inputs = [input_term(f"x{place}", TensorType(F32, (side, side))) for place in range(count + between + 2)]

    def times(x: Term, y: Term) -> Term:
        return dot(x, y, lhs_contract=(x.tensor.rank - 1,), rhs_contract=(0,))

    skip = times(inputs[0], inputs[-1])
    parts = [times(inputs[0], each) for each in inputs[1 : count + 1]]
    parts = [parts[0], *(make("stablehlo.add", (part, skip)) if seed % 2 else part for part in parts[1:])]
    whole = make("stablehlo.concatenate", parts, {"dimension": int(draw.integers(2))})
    wide = whole if whole.tensor.dims[1] == side else make("stablehlo.transpose", (whole,), {"permutation": (1, 0)})
    behind = times(wide, inputs[-1])
    for each in inputs[count + 1 : -1]:
        behind = times(behind, each) if draw.random() < 0.5 else make("stablehlo.tanh", (times(behind, each),))
    outputs = [times(make("stablehlo.transpose", (wide,), {"permutation": (1, 0)}), behind), times(parts[0], inputs[1])]
    feeds = {f"x{place}": draw.integers(-1, 2, (side, side)).astype(np.float32) for place in range(len(inputs))}
    return Program(tuple(inputs), (("y", outputs[0]), ("z", outputs[1]))), feeds


@pytest.mark.slow
def test_parts_of_a_value_go_and_are_made_again_together() -> None:
    """Values that several kernels store, under every limit: who reads a part finds it where the others are."""
    repeated = kept = 0
    for seed in range(12):
        program, feeds = wide(seed)
        whole = plan(program)
        most = live_bytes(replace(whole, offsets={}, arena=0), size_of)
        fewest = fewest_bytes(whole, one, size_of)
        for limit in {fewest, (fewest + most) // 2, most}:
            found = within(whole, limit)
            assert found is not None
            same(found, whole, feeds)
            stores = Counter(store.buffer for kernel in found.kernels for store in stores_of(kernel))
            several = [name for name, count in stores.items() if count > 1 and found.buffers[name].role == "temporary"]
            kept += bool(several)
            repeated += any(name not in whole.buffers for name in several)
    assert kept > 20 and repeated, (kept, repeated)


def test_parts_have_memory_of_their_own() -> None:
    """Where one part takes the memory of what it is made of, the other would find it gone."""
    loop = Loop("loop:i", 4)
    names = {"x": ((4,), "input"), "c": ((8,), "temporary"), "d": ((8,), "temporary"), "y": ((8,), "output")}
    buffers = {name: Buffer(name, F32, shape, role) for name, (shape, role) in names.items()}
    kernels = []
    for name, source in (("c", "x"), ("d", "c")):
        for start in (0, 4):
            index = (add(loop.index, start),)
            load = Load(source, (loop.index,) if source == "x" else index, F32)
            value = ScalarOp(get_op("stablehlo.add"), (load, ScalarConstant(float(start + 1), F32)), F32)
            kernels.append(Pointwise(f"k{len(kernels)}", (loop,), (Store(name, index, value),)))
    whole_loop = Loop("loop:i", 8)
    kernels.append(Pointwise("k4", (whole_loop,), (Store("y", (whole_loop.index,), Load("d", (whole_loop.index,), F32)),)))
    whole = Plan(buffers, tuple(kernels), (("x", "x"),), (("y", "y"),))
    feeds = {"x": np.arange(4, dtype=np.float32)}
    for limit in (64, 48, 32):
        found = within(whole, limit)
        if found is not None:
            assert not found.over
            same(found, whole, feeds)


def test_a_kernel_is_not_launched_before_an_output_that_it_reads() -> None:
    program, feeds = drawn(287, 30, symbolic=True)
    whole = plan(program)
    found = within(whole, fewest_bytes(whole, one, size_of))
    assert found is not None
    same(found, whole, feeds)


def test_a_training_step_takes_half_of_its_memory() -> None:
    program, feeds = CASES["training_step"]()
    whole = plan(program)
    most = live_bytes(replace(whole, offsets={}, arena=0), size_of)
    found = within(whole, most // 2)
    assert found is not None and found.frees and not found.offsets
    same(found, whole, feeds)


def used_twice(given: Backward) -> Program:
    """Each gradient is needed before and behind a row of products that take more memory than it."""
    program = given.program()
    weight = input_term("w", TensorType(F32, (given.case.depth, given.case.depth)))
    outputs = []
    for name, gradient in program.outputs:
        behind = gradient
        for _ in range(3):
            behind = dot(behind, weight, lhs_contract=(gradient.tensor.rank - 1,), rhs_contract=(0,))
        outputs.append((name, make("stablehlo.multiply", (behind, gradient))))
    return Program((*program.inputs, weight), tuple(outputs), None)


@pytest.mark.parametrize("lengths, parts", [((6, 40), {(1, 1), (2, 1), (1, 0)}), ((40, 6), {(2, 1)})])
def test_gradients_of_attention_under_every_limit(lengths: tuple[int, int], parts: set[tuple[int, int]]) -> None:
    """What is launched again finds only what is missing: rows without slopes have no product for them, gradients of values alone none of
    what reached the weights."""
    program = used_twice(Backward(Case((2,), (), *lengths, 8, 8, F32, "causal", 0.5), alone=True))
    draw = np.random.default_rng(5)
    feeds = {str(term.attribute("name")): draw.normal(size=term.tensor.dims).astype(np.float32) for term in program.inputs}
    whole = plan(program)
    most = live_bytes(replace(whole, offsets={}, arena=0), size_of)
    made: set[tuple[int, int]] = set()
    for limit in range(most, fewest_bytes(whole, one, size_of) - 1, -max(1, most // 16)):
        found = within(whole, limit)
        assert found is not None
        same(found, whole, feeds)
        again = [kernel for kernel in found.kernels if "_again" in kernel.name]
        made |= {(len(kernel.dots), len(kernel.sums)) for kernel in again if isinstance(kernel, Chain)}
        made |= {(len(kernel.dots), len(kernel.slopes)) for kernel in again if isinstance(kernel, Statistics)}
    assert made >= parts, made


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


def test_gradients_of_attention_take_the_memory_of_what_is_added_to_them() -> None:
    """A residual that stands behind a gradient, and none of what its weights and products read."""
    here, all_keys = (ROW.index, COLUMN.index), (DEPTH.index, COLUMN.index)
    scores = Dot("dot0", (COLUMN,), load("q", *here), load("k", *all_keys), F32)
    total = Sum("sum0", (COLUMN,), Result("dot0", F32), load("v", *all_keys))
    buffers = {"q": (F32, SQUARE), "k": (F32, (8, 4)), "v": (F32, (8, 4)), "x": (F32, SQUARE)}

    def added(buffer: str) -> tuple[Store]:
        return (Store("y", here, ScalarOp(get_op("stablehlo.add"), (Result("sum0", F32), load(buffer, *here)), F32)),)

    chain = Chain("c", (), (ROW,), (DEPTH,), (scores,), (total,), F32, None, None, added("x"))
    assert pairs(chain, **buffers) == [("y", "x")]
    assert pairs(replace(chain, stores=added("q")), **buffers) == [], "a tile of columns reads all of it"
    weighed = replace(total, weight=load("x", *here))
    assert pairs(replace(chain, sums=(weighed,)), **buffers) == [], "weights are made of it"


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


# ---------------------------------------------------------------- rounds


def test_rounds_have_no_result_in_the_memory_of_what_they_read() -> None:
    """Reads of later rounds are on their way while this one stores."""
    rounds, row = Loop("loop:round", 4), Loop("loop:i0", 4)
    here = (rounds.index, row.index)
    state = State("s", ScalarConstant(0.0, F32), load("x", *here), F32, False)
    kernel = Recurrence("r", (row,), (), rounds, (state,), (), (Store("y", here, load("x", *here)),), ())
    assert pairs(kernel) == []


def test_loops_under_every_limit() -> None:
    """Two stacks and the last of a state, each needed before and behind what takes more memory: a kernel that is launched again stores what
    is missing, and has the states and steps of that alone."""
    h, x, u = (input_term(name, TensorType(F32, shape)) for name, shape in (("h", (3, 8)), ("x", (6, 3, 8)), ("u", (8, 8))))

    def step(index: Term, h: Term, g: Term, first: Term, second: Term, x: Term, u: Term) -> list[Term]:
        new = make("stablehlo.tanh", (make("stablehlo.add", (element(x, index), dot(h, u, lhs_contract=(1,), rhs_contract=(0,)))),))
        other = make("stablehlo.maximum", (make("stablehlo.negate", (g,)), element(x, index)))
        return [new, other, placed(first, new, index), placed(second, other, index)]

    piles = [splat(0, F32, (6, 3, 8))] * 2
    loop = recurrence([h, h, *piles], [x, u], 6, step)
    outputs = []
    for name, made in (("a", get(loop, 3)), ("b", get(loop, 4))):
        behind = made
        for _ in range(4):
            behind = dot(behind, u, lhs_contract=(2,), rhs_contract=(0,))
        outputs.append((name, make("stablehlo.multiply", (behind, made))))
    program = Program((h, x, u), tuple(outputs))
    draw = np.random.default_rng(5)
    feeds = {str(term.attribute("name")): draw.normal(size=term.tensor.dims).astype(np.float32) for term in program.inputs}
    whole = plan(program)
    assert any(isinstance(kernel, Recurrence) and len(kernel.states) == 2 for kernel in whole.kernels)
    most = live_bytes(replace(whole, offsets={}, arena=0), size_of)
    again: set[tuple[int, int]] = set()
    for limit in range(most, fewest_bytes(whole, one, size_of) - 1, -max(1, most // 16)):
        found = within(whole, limit)
        assert found is not None
        same(found, whole, feeds)
        again |= {(len(k.states), len(k.steps)) for k in found.kernels if isinstance(k, Recurrence) and "_again" in k.name}
    assert again & {(1, 0), (1, 1)}, again
