"""Kernels beside each other: nothing that two of them touch, of which one writes, is in no order; and the model of the machine."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise, product
from math import prod
from typing import Any

import pytest

from coset.dialects.hub.terms import dot
from coset.ir.dims import add, evaluate, mod, symbol, symbols
from coset.ir.op import get_op
from coset.ir.program import Program
from coset.ir.term import Term, input_term, make
from coset.ir.types import F32, TensorType
from coset.lowering.arranging.streams import WORTH, Beside, Work, beside, simulated
from coset.lowering.kernels.kernel import (
    Buffer,
    Kernel,
    Library,
    Load,
    Loop,
    Plan,
    Pointwise,
    ScalarOp,
    Store,
    StreamPlan,
    loops_of,
    reads,
    scalars,
    stores_of,
    values_of,
    writes,
)
from coset.lowering.kernels.memory import ALIGNMENT, arena, buffer_bytes, released
from coset.lowering.kernels.plan_text import show
from coset.lowering.planning.kinds import KernelLimits
from coset.lowering.planning.plan import plan
from tests.lowering import drawn_parts
from tests.lowering.drawn_programs import program as drawn
from tests.lowering.plan_cases import CASES
from tests.sampled import sampled

WAIT = 0.25
Works = Callable[[Plan, Kernel], Work]


def launches(_: Plan, __: Kernel) -> Work:
    """Kernels that are little but a launch."""
    return Work(1.0, 0.1, 0.1)


def drawn_works(seed: int) -> Works:
    """Other works for each kernel, always the same."""

    def found(_: Plan, kernel: Kernel) -> Work:
        draw = random.Random(f"{seed} {kernel.name}")
        return Work(draw.choice([0.0, 1.0]), draw.choice([0.1, 1.0, 5.0]), draw.choice([0.0, 0.1, 0.5, 1.0]))

    return found


def before(streams: StreamPlan) -> list[set[int]]:
    """The kernels that are over when each begins: by going back over all waits, and all kernels of a stream."""
    found: list[set[int]] = []
    for place, (stream, waits) in enumerate(zip(streams.of, streams.waits, strict=True)):
        direct = {other for other in range(place) if streams.of[other] == stream} | set(waits)
        found.append(direct.union(*(found[other] for other in direct)))
    return found


def ordered(found: Plan) -> None:
    """No race, and no wait that others imply; what libraries made is let go of on the stream that it came from."""
    assert found.streams is not None
    over = before(found.streams)
    for place, waits in enumerate(found.streams.waits):
        own = next((other for other in reversed(range(place)) if found.streams.of[other] == found.streams.of[place]), None)
        for other in waits:
            known = [each for each in (own, *waits) if each is not None and each != other]
            assert all(other not in over[each] for each in known), "a wait that others imply"
    no_race(found)
    used = [(name, found.streams.of[place]) for place, kernel in enumerate(found.kernels) for name in (*reads(kernel), *writes(kernel))]
    for names in released(found).values():
        assert all(len({stream for each, stream in used if each == name}) == 1 for name in names)


def no_race(found: Plan) -> None:
    """Any two kernels that touch the same bytes, of which one writes them, have an order."""
    assert found.streams is not None
    assert all(other < place for place, waits in enumerate(found.streams.waits) for other in waits)
    over = before(found.streams)
    touched: list[tuple[int, str, bool]] = [(place, name, False) for place, kernel in enumerate(found.kernels) for name in reads(kernel)]
    touched += [(place, name, True) for place, kernel in enumerate(found.kernels) for name in writes(kernel)]

    def shares(one: str, other: str) -> bool:
        if one == other:
            return True
        if one not in found.offsets or other not in found.offsets:
            return False
        ends = [found.offsets[name] + (buffer_bytes(found.buffers[name]) or 0) for name in (one, other)]
        return found.offsets[one] < ends[1] and found.offsets[other] < ends[0]

    parts = {name for name, count in Counter(name for kernel in found.kernels for name in writes(kernel)).items() if count > 1}
    elements = {
        (place, name, writing): touched_elements(found, found.kernels[place], name, writing=writing)
        for place, name, writing in touched
        if name in parts
    }

    def apart(*both: tuple[int, str, bool]) -> bool:
        return both[0][1] == both[1][1] and both[0][1] in parts and not elements[both[0]] & elements[both[1]]

    for at, (place, name, writing) in enumerate(touched):
        for other, beside_, also in touched[at + 1 :]:
            if apart((place, name, writing), (other, beside_, also)):
                continue
            if place != other and (writing or also) and shares(name, beside_):
                assert place in over[other] or other in over[place], (found.kernels[place].name, found.kernels[other].name, name, beside_)
    for name, offset in found.offsets.items():
        assert offset % ALIGNMENT == 0 and offset + (buffer_bytes(found.buffers[name]) or 0) <= found.arena


def touched_elements(found: Plan, kernel: Kernel, name: str, *, writing: bool) -> set[int]:
    """The elements of a buffer that a kernel writes, or those that it may read: where loads are masked off it reads fewer."""
    assert not isinstance(kernel, Library)
    sizes = dict.fromkeys(found.symbols, 3)
    loops = {loop.name: range(evaluate(loop.extent, sizes)) for loop in loops_of(kernel)}
    stores = [store.index for store in stores_of(kernel) if store.buffer == name]
    loads = [value.index for value in scalars(*values_of(kernel)) if isinstance(value, Load) and value.buffer == name]
    shape = [evaluate(dim, sizes) for dim in found.buffers[name].shape]
    elements: set[int] = set()
    for index in stores if writing else loads:
        names = sorted({each for dim in index for each in symbols(dim) & loops.keys()})
        if any(each.startswith("pick:") for dim in index for each in symbols(dim)):
            return set(range(prod(shape)))
        for point in product(*(loops[each] for each in names)):
            at = [evaluate(dim, sizes | dict(zip(names, point, strict=True))) for dim in index]
            if all(0 <= i < size for i, size in zip(at, shape, strict=True)):
                elements.add(sum(i * prod(shape[axis + 1 :]) for axis, i in enumerate(at)))
    return elements


def on_streams(whole: Plan, works: Works, most: int) -> Beside | None:
    """The plan on streams, after its laws were looked at."""
    found = beside(whole, works, most=most, wait=WAIT)
    if found is None:
        return None
    ordered(found.plan)
    assert found.plan.streams is not None and max(found.plan.streams.of) < most and found.plan.streams.of[0] == 0
    turn = StreamPlan((0,) * len(whole.kernels), ((),) * len(whole.kernels))
    each = [works(whole, kernel) for kernel in whole.kernels]
    assert found.in_turn == pytest.approx(simulated(each, turn, WAIT)) and found.seconds <= WORTH * found.in_turn
    assert found.seconds == pytest.approx(simulated(each, found.plan.streams, WAIT))
    return found


@pytest.mark.parametrize("start", range(0, 300, 50))
def test_drawn_programs_have_an_order_where_they_need_one(start: int) -> None:
    several = shared = 0
    for seed in range(start, start + 50):
        program, _ = drawn(seed, 30 if seed % 5 else 150, symbolic=seed % 5 == 1)
        whole = plan(program, limits=replace(KernelLimits(), launch_bytes=0) if seed % 2 else None)
        for works in (launches, drawn_works(seed)):
            found = on_streams(whole, works, 2 + seed % 3)
            if found is not None:
                several += 1
                shared += len(found.plan.offsets) > 1 and found.plan.arena < sum(
                    buffer_bytes(found.plan.buffers[name]) or 0 for name in found.plan.offsets
                )
    assert several > 40 and shared > 5, (several, shared)


@pytest.mark.parametrize("start", range(0, 200, 50))
def test_those_who_store_parts_need_no_order(start: int) -> None:
    """Of drawn programs whose values are put together: readers wait for those who store what they read, and for nobody else."""
    free = several = 0
    for seed in range(start, start + 50):
        whole = plan(drawn_parts.program(seed, symbolic=seed % 3 == 1)[0])
        for works in (launches, drawn_works(seed)):
            found = on_streams(whole, works, 2 + seed % 3)
            if found is not None and found.plan.streams is not None:
                several += 1
                over = before(found.plan.streams)
                makers: dict[str, list[int]] = {}
                for place, kernel in enumerate(found.plan.kernels):
                    for name in writes(kernel):
                        makers.setdefault(name, []).append(place)
                free += any(a not in over[b] for places in makers.values() for a, b in pairwise(places))
    assert several > 20 and free > 5, (several, free)


@pytest.mark.parametrize("name", CASES)
def test_golden_plans_have_an_order_where_they_need_one(name: str) -> None:
    program, _ = CASES[name]()
    for most in (2, 4):
        on_streams(plan(program), launches, most)


def times(x: Term, y: Term) -> Term:
    """The product of two matrices."""
    return dot(x, y, lhs_contract=(1,), rhs_contract=(0,))


def heads(count: int, rows: int = 64) -> Program:
    """A product with each of several matrices, twice, and the product of all."""
    x = input_term("x", TensorType(F32, (rows, rows)))
    weights = [input_term(f"w{place}", TensorType(F32, (rows, rows))) for place in range(count)]
    ends = [times(times(x, w), w) for w in weights]
    total = ends[0]
    for end in ends[1:]:
        total = times(total, end)
    return Program((x, *weights), (("y", total),))


def test_what_is_independent_runs_beside() -> None:
    """Three chains of two products on three streams; the product of two waits for one of them, and so does that with the third."""
    found = on_streams(plan(heads(3)), launches, 4)
    assert found is not None and found.plan.streams is not None
    streams = found.plan.streams
    assert max(streams.of) == 2 and sum(map(len, streams.waits)) == 2
    last = len(streams.of) - 1
    assert before(streams)[last] == set(range(last))
    assert "on stream 1" in show(found.plan) and " after " in show(found.plan)


def test_works_that_fill_the_machine_gain_nothing() -> None:
    whole = plan(heads(3))
    assert on_streams(whole, lambda _, __: Work(0.0, 1.0, 1.0), 4) is None
    assert on_streams(whole, lambda _, __: Work(0.0, 1.0, 0.2), 4) is not None
    assert on_streams(whole, launches, 1) is None
    assert beside(whole, launches, most=4, wait=100.0) is None


def test_chains_stay_on_one_stream() -> None:
    x = input_term("x", TensorType(F32, (64, 64)))
    y: Term = x
    for _ in range(4):
        y = times(y, x)
    assert on_streams(plan(Program((x,), (("y", y),))), launches, 4) is None


def test_plans_whose_order_is_more_stay_in_turn() -> None:
    """Memory that is given back in the launches' order, ops with effects, sizes that the host waits for."""
    whole = plan(heads(3))
    assert beside(whole, launches, most=4, wait=WAIT) is not None
    assert beside(replace(whole, frees=True, offsets={}, arena=0), launches, most=4, wait=WAIT) is None
    first = whole.kernels[0]
    sized = replace(whole, symbols={"n": (writes(first)[0], 0)})
    assert beside(sized, launches, most=4, wait=WAIT) is None
    given = whole.buffers[whole.inputs[0][1]]
    given = replace(given, shape=(symbol("n"), *given.shape[1:]))
    inputs = replace(whole, buffers={**whole.buffers, given.name: given}, symbols={"n": (given.name, 0)})
    assert beside(inputs, launches, most=4, wait=WAIT) is not None
    x = input_term("x", TensorType(F32, (4, 4)))
    for term in (make("stablehlo.create_token", (), {}), make("stablehlo.collective_permute", (x,), {"source_target_pairs": ((0, 1),)})):
        effect = Library("k9_effect", term, (), ())
        assert beside(replace(whole, kernels=(*whole.kernels, effect)), launches, most=4, wait=WAIT) is None


@pytest.mark.parametrize(
    ("works", "of", "waits", "seconds"),
    [
        ([Work(1, 2, 1.0)], (0,), ((),), 3.0),
        ([Work(1, 2, 1.0), Work(1, 2, 0.5)], (0, 0), ((), ()), 6.0),
        ([Work(1, 2, 0.5), Work(1, 2, 0.5)], (0, 1), ((), ()), 3.0 + 0.25 + 0.25),  # begun later by a wait, and waited for
        ([Work(0, 2, 1.0), Work(0.75, 2, 1.0)], (0, 1), ((), ()), 4.0 + 0.25),  # the machine has no room for both
        ([Work(0, 4, 0.75), Work(0.75, 2, 0.75)], (0, 1), ((), ()), 1.0 + 3.0 + 1.0 + 0.25),  # both at two thirds for three seconds
        ([Work(1, 1, 0.1), Work(1, 1, 0.1), Work(1, 1, 0.1)], (0, 1, 0), ((), (0,), (1,)), 2 + 2.25 + 2.25 + 0.25),
    ],
)
def test_the_model_of_the_machine(works: list[Work], of: tuple[int, ...], waits: Any, seconds: float) -> None:
    assert simulated(works, StreamPlan(of, waits), WAIT) == pytest.approx(seconds)


def drawn_plan(seed: int) -> Plan:
    """Kernels that add up to three of the values before them, and each write one of another size, or two a half of it; on streams drawn at
    random, with the waits that data ask for and some more."""
    draw = random.Random(seed)
    buffers = {"x": Buffer("x", F32, (64,), "input")}
    makers: dict[str, list[int]] = {"x": []}
    kernels: list[Kernel] = []
    of: list[int] = []
    waits: list[tuple[int, ...]] = []
    for number in range(draw.randint(4, 30)):
        name, known = f"t{number}", sorted(buffers)
        extent, parts = 64 * draw.choice([1, 2, 3, 5, 8]), 2 if draw.random() < 0.3 else 1
        buffers[name] = Buffer(name, F32, (extent * parts,), "temporary" if draw.random() < 0.9 else "output")
        makers[name] = []
        for part in range(parts):
            place = len(kernels)
            given = draw.sample(known, min(len(known), draw.randint(1, 3)))
            loop = Loop("i0", extent)
            loads = [Load(each, (mod(loop.index, buffers[each].shape[0]),), F32) for each in given]
            value = loads[0] if len(loads) == 1 else ScalarOp(get_op("stablehlo.add"), tuple(loads[:2]), F32)
            kernels.append(Pointwise(f"k{place}", (loop,), (Store(name, (add(loop.index, part * extent),), value),)))
            makers[name].append(place)
            of.append(draw.randrange(3))
            needs = {maker for each in reads(kernels[-1]) for maker in makers[each]}
            needs |= {draw.randrange(place)} if place and draw.random() < 0.3 else set()
            waits.append(tuple(sorted(other for other in needs if of[other] != of[place])))
    return Plan(buffers, tuple(kernels), (("x", "x"),), (), streams=StreamPlan(tuple(of), tuple(waits)))


@pytest.mark.parametrize("start", sampled(range(0, 400, 100), 4))
def test_an_arena_for_any_streams_gives_bytes_away_only_when_they_are_free(start: int) -> None:
    reused = 0
    for seed in range(start, start + 100):
        whole = drawn_plan(seed)
        offsets, size = arena(whole)
        assert set(offsets) == {name for name, buffer in whole.buffers.items() if buffer.role == "temporary"}
        no_race(replace(whole, offsets=offsets, arena=size))
        reused += size < sum(buffer_bytes(whole.buffers[name]) or 0 for name in offsets)
    assert reused > 60


def test_the_smallest_gap_is_taken() -> None:
    """Gaps of 3, 1 and 2 aligned pieces between values that are used to the end: a piece takes the one of 1."""
    sizes = {"a": 3, "b": 1, "c": 1, "d": 1, "e": 2, "f": 1}
    buffers = {name: Buffer(name, F32, (64 * size,), "temporary") for name, size in sizes.items()} | {"x": Buffer("x", F32, (64,), "input")}
    loop = Loop("i0", 64)

    def kernel(number: int, name: str, *given: str) -> Kernel:
        stores = [Store(name, (loop.index,), Load(each, (loop.index,), F32)) for each in given or ("x",)]
        return Pointwise(f"k{number}", (loop,), tuple(stores))

    buffers["g"] = Buffer("g", F32, (64,), "temporary")
    buffers["h"] = Buffer("h", F32, (64,), "output")
    kernels = [kernel(number, name) for number, name in enumerate(sizes)]
    kernels += [kernel(6, "h", "a", "c", "e"), kernel(7, "g"), kernel(8, "h", "b", "d", "f", "g")]
    whole = Plan(buffers, tuple(kernels), (("x", "x"),), ())
    offsets, size = arena(whole)
    assert (offsets["c"], offsets["g"], size) == (4 * ALIGNMENT, 4 * ALIGNMENT, 9 * ALIGNMENT)


def test_an_arena_for_one_stream_holds_what_lives_together() -> None:
    """Streams that are one are no streams: the same places."""
    for seed in range(60):
        whole = plan(drawn(seed, 30)[0])
        turn = StreamPlan((0,) * len(whole.kernels), ((),) * len(whole.kernels))
        assert arena(replace(whole, streams=turn)) == (whole.offsets, whole.arena)


def test_streams_cost_memory_where_kernels_overlap() -> None:
    """Chains of products on two streams cannot have each other's memory; on one the second takes the first one's."""
    inputs = [input_term(name, TensorType(F32, (64, 64))) for name in "xy"]
    ends = []
    for term in inputs:
        end: Term = term
        for _ in range(4):
            end = times(end, term)
        ends.append(end)
    whole = plan(Program(tuple(inputs), tuple((f"{place}", end) for place, end in enumerate(ends))))
    found = on_streams(whole, launches, 2)
    assert found is not None
    assert (whole.arena, found.plan.arena) == (2 * 64 * 64 * 4, 4 * 64 * 64 * 4)
