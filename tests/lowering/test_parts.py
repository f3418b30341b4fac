"""What is put together from others is stored by those who make the parts: the same values, each element stored once, fewer bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.torch_package import TorchPackage
from coset.backends.triton_runtime import Runner
from coset.dialects.hub.terms import dot, literal, reshape, splat, transpose
from coset.ir.dims import Dim, add, symbol
from coset.ir.evaluate import evaluate_program
from coset.ir.program import Program
from coset.ir.term import INPUT, Term, make, topological
from coset.ir.types import F16, F32, I32, DType
from coset.lowering.kernels.boxes import MOST_PARTS, StoreFrame, parts_of
from coset.lowering.kernels.kernel import (
    Choose,
    InBounds,
    Load,
    Loop,
    Plan,
    Pointwise,
    Product,
    Recurrence,
    Rows,
    Scalar,
    Scatter,
    Store,
    reads,
    stores_of,
    writes,
)
from coset.lowering.kernels.memory import shared
from coset.lowering.kernels.needs import needs_of
from coset.lowering.package.plan import planned_package
from coset.lowering.package.program import write_package
from coset.lowering.planning.kinds import KernelLimits
from coset.lowering.planning.plan import plan
from coset.lowering.planning.traffic import kernel_traffic, traffic
from coset.lowering.triton.source import can_emit
from coset.rules.definition import evaluate_defined
from tests.lowering import drawn_parts, plan_numpy, test_triton_plans
from tests.lowering.plan_cases import element, get, op, placed, recurrence, scatter_rows, x_
from tests.lowering.test_plan import check, laws
from tests.sampled import sampled

FREE_LAUNCHES = replace(KernelLimits(), launch_bytes=0)


def in_parts(found: Plan) -> set[str]:
    """The buffers that several stores make."""
    stores = Counter(store.buffer for kernel in found.kernels for store in stores_of(kernel))
    return {name for name, count in stores.items() if count > 1}


def program(*roots: Term) -> Program:
    """The program of these roots over what they read."""
    inputs = tuple(term for term in topological(roots) if term.op is INPUT)
    return Program(inputs, tuple((f"y{place}", root) for place, root in enumerate(roots)))


def values(given: Program, sizes: Mapping[str, int] | None = None) -> dict[str, Any]:
    """Small integers for the inputs of a program."""
    draw = np.random.default_rng(3)
    found = {}
    for term in given.inputs:
        shape = [dim if isinstance(dim, int) else (sizes or {})[str(dim)] for dim in term.tensor.dims]
        low = 0 if term.tensor.dtype is I32 else -3
        found[term.attribute("name")] = draw.integers(low, 4, shape).astype(term.tensor.dtype.numpy)
    return found


def times(x: Term, y: Term) -> Term:
    """The product of two matrices."""
    return dot(x, y, lhs_contract=(1,), rhs_contract=(0,))


def joined(*parts: Term, axis: int = 0) -> Term:
    return op("concatenate", *parts, dimension=axis)


def product(number: int, rows: Dim = 4, columns: int = 16, dtype: DType = F32) -> Term:
    """A product of inputs of its own."""
    return times(x_(f"x{number}", dtype, rows, 8), x_(f"w{number}", dtype, 8, columns))


def checked(*roots: Term, sizes: Mapping[str, int] | None = None, limits: KernelLimits | None = None) -> Plan:
    given = program(*roots)
    return check(given, values(given, sizes), limits=limits)


# ---------------------------------------------------------------- drawn programs


@pytest.mark.parametrize("start", range(0, 400, 100))
def test_drawn_programs_give_their_values(start: int) -> None:
    several = 0
    for seed in range(start, start + 100):
        given, feeds = drawn_parts.program(seed, symbolic=seed % 3 == 1)
        several += bool(in_parts(check(given, feeds)))
        check(given, feeds, limits=FREE_LAUNCHES)
    assert several > 15, several


@pytest.mark.parametrize("batch", range(4))
def test_drawn_programs_in_the_interpreter(batch: int, interpreter: Runner) -> None:
    """Kernel by kernel, with poison in all that is not stored: a store outside of a part would change it."""
    tried = seed = 0
    while tried < 6:
        seed += 1
        given, feeds = drawn_parts.program(1000 * batch + seed, symbolic=seed % 2 == 1)
        if in_parts(plan(given, computes=can_emit)):
            tried += 1
            test_triton_plans.check(given, feeds, interpreter, f"seed {1000 * batch + seed}:")


@pytest.mark.parametrize("triton", sampled([True, False], 2))
def test_drawn_programs_as_packages(triton: bool, tmp_path: Path) -> None:
    """Whole packages, whose outputs are memory that was never written before."""
    tried = seed = 0
    while tried < 8:
        seed += 1
        given, feeds = drawn_parts.program(7000 + seed, symbolic=seed % 2 == 1)
        found = plan(given, computes=can_emit)
        if not in_parts(found):
            continue
        tried += 1
        folder = tmp_path / f"p{seed}"
        write_package(planned_package(given, found, title="parts", triton=triton), folder)
        expected = evaluate_program(given, feeds, fallback=evaluate_defined)
        with TorchPackage(folder, interpreted=triton) as package:
            for _ in range(2):  # the second call finds what the first one left in the arena
                results = package.run(feeds)
                for (name, _), value in zip(given.outputs, expected, strict=True):
                    np.testing.assert_array_equal(
                        np.asarray(results[name], np.float64), np.asarray(value, np.float64), err_msg=f"{seed} {name}"
                    )


# ---------------------------------------------------------------- what is stored in its place


def copies(found: Plan) -> int:
    """The kernels that only move elements."""
    moving = [kernel for kernel in found.kernels if isinstance(kernel, Pointwise) and reads(kernel)]
    return sum(not any(word in ARITHMETIC for word in kernel.terms) for kernel in moving)


ARITHMETIC = ("tanh", "abs", "add", "multiply", "negate")


@pytest.mark.parametrize("axis", [0, 1])
def test_products_are_stored_beside_each_other(axis: int) -> None:
    found = checked(joined(product(0), product(1), product(2), axis=axis))
    assert len(found.kernels) == 3 and not found.arena and in_parts(found) == {"y0"}


def test_concatenations_in_each_other_are_one() -> None:
    """Down to what is deepest: three levels are one value."""
    value = joined(product(0), product(1))
    for number in range(2, 5):
        value = joined(value, product(number), axis=0)
    found = checked(value)
    assert len(found.kernels) == 5 and in_parts(found) == {"y0"}


def test_what_others_read_is_read_from_its_place() -> None:
    """Also across a reshape of two dims that are one there."""
    first = reshape(product(0, rows=6), (2, 3, 16))
    value = joined(first, x_("more", F32, 2, 2, 16), axis=1)
    found = checked(value, op("tanh", op("reduce", first, dimensions=(2,), combiner="add")))
    stored, folding = found.kernels[0], next(kernel for kernel in found.kernels if isinstance(kernel, Rows))
    assert writes(stored) == ("y0",) and "y0" in reads(folding) and copies(found) == 1


def test_what_is_read_from_elsewhere_is_all_that_is_copied() -> None:
    """A cache grows by what a product makes: the past is copied, not more."""
    n = symbol("n")
    past, new = x_("past", F16, 2, n, 64), reshape(product(0, rows=2, columns=64, dtype=F16), (2, 1, 64))
    found = checked(joined(past, new, axis=1), sizes={"n": 5})
    assert len(found.kernels) == 2 and not [name for name, buffer in found.buffers.items() if buffer.role == "temporary"]
    copying = found.kernels[1]
    assert isinstance(copying, Pointwise) and [loop.extent for loop in copying.loops] == [2, n, 64]
    assert kernel_traffic(found, copying, {"n": 100}) == 2 * 2 * 100 * 64 * 2
    assert kernel_traffic(found, found.kernels[0], {"n": 100}) == 2 * (2 * 8 + 8 * 64 + 2 * 64)


def test_a_pad_stores_only_its_edges() -> None:
    value = op("pad", product(0, rows=4096, columns=512), splat(0.0, F32, ()), low=(1, 0), high=(0, 0), interior=(0, 0))
    found = plan(program(value))
    assert [store.index[0] for kernel in found.kernels for store in stores_of(kernel)][1] == 0
    assert len(found.kernels) == 2 and not found.arena
    small = plan(program(op("pad", product(0), splat(0.0, F32, ()), low=(1, 1), high=(1, 1), interior=(0, 0))))
    assert copies(small) == 1 and small.arena, "four launches more are not worth it"


def test_a_slice_that_is_written_at_a_known_place() -> None:
    """And one that the op moves inside."""
    for start, place in ((3, 3), (9, 4), (-1, 0)):
        value = make("stablehlo.dynamic_update_slice", (x_("x", F32, 8, 16), product(0), *(literal(np.int32(i)) for i in (start, 0))))
        found = checked(value, limits=FREE_LAUNCHES)
        assert stores_of(found.kernels[0])[0].index[0] == add(found.kernels[0].m[0].index, place)  # type: ignore[union-attr]
    at = x_("at", I32)
    value = make("stablehlo.dynamic_update_slice", (x_("x", F32, 8, 16), product(0), at, at))
    assert copies(plan(program(value))) == 1, "where it goes is known when it runs"


def test_what_a_reshape_makes_of_a_concatenation() -> None:
    found = checked(reshape(joined(product(0, rows=4), product(1, rows=8)), (3, 4, 16)), reshape(joined(product(2), product(3)), (128,)))
    assert not copies(found)


# ---------------------------------------------------------------- what is stored twice, or copied as before


def test_what_is_an_output_too_is_stored_twice() -> None:
    last = op("tanh", product(0))
    found = checked(joined(product(1), last), last)
    assert len(found.kernels) == 2 and sorted(len(stores_of(kernel)) for kernel in found.kernels) == [1, 2]


def test_what_stands_in_several_places_is_stored_there() -> None:
    part = product(0)
    found = checked(joined(part, product(1), part), joined(product(2), part))
    assert len(found.kernels) == 3 and not found.arena
    assert sorted(len(stores_of(kernel)) for kernel in found.kernels) == [1, 1, 3]


def test_what_a_library_makes_is_copied_and_what_it_reads_is_stored_twice() -> None:
    def by_a_library(x: Term) -> Term:
        return op("remainder", x, splat(2.0, F32, x.tensor.dims))

    given = program(joined(by_a_library(x_("x", F32, 4, 16)), product(0)), by_a_library(joined(product(1), product(2))))
    found = plan(given, computes=can_emit)
    laws(found)
    expected = evaluate_program(given, values(given), fallback=evaluate_defined)
    for value, result in zip(expected, plan_numpy.run(found, values(given)).values(), strict=True):
        np.testing.assert_array_equal(np.asarray(value), result)
    assert copies(found) == 1 and in_parts(found) >= {"y0"}
    part = product(3)
    found = plan(program(joined(part, product(4)), by_a_library(part)), computes=can_emit)
    assert not copies(found) and max(len(stores_of(kernel)) for kernel in found.kernels) == 2


def test_neighbours_are_not_stored_apart() -> None:
    """A part that is turned, and parts of few bytes that are worth no launch."""
    turned = transpose(product(0, rows=16, columns=4), (1, 0))
    found = checked(joined(turned, product(1), x_("x", F32, 4, 16)))
    assert copies(found) == 1 and {store.buffer for store in stores_of(found.kernels[0])} != {"y0"}
    assert not copies(checked(joined(turned, product(1)))), "a launch is dearer than a few sectors"
    columns = joined(product(0, rows=64, columns=4), product(1, rows=64, columns=4), axis=1)
    assert copies(plan(program(columns), limits=FREE_LAUNCHES)) == 1 and not copies(plan(program(columns)))


def test_keys_that_are_searched_stay_by_themselves(interpreter: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scatter finds a row's updates by bisection in its sorted keys, which must lie one after the other."""
    x, places, updates = x_("x", F32, 5, 3), x_("places", I32, 40), x_("updates", F32, 40, 3)
    keys = op("sort", places, dimension=0, direction="LT")
    given = program(scatter_rows(x, keys, updates, indices_are_sorted=True), joined(x_("more", I32, 3), keys))
    made = plan(given, computes=can_emit)
    (scatter,) = (kernel for kernel in made.kernels if isinstance(kernel, Scatter))
    assert scatter.form == "sorted" and isinstance(scatter.key, Load) and made.buffers[scatter.key.buffer].shape == (40,)
    test_triton_plans.check(given, values(given), interpreter, "keys:", made)


@pytest.mark.parametrize("twice", [False, True])
def test_sums_into_memory_are_added_in_their_place(twice: bool, interpreter: Runner) -> None:
    """A scatter that adds into memory is stored once: where it is an output too it is copied."""
    x, places, updates = x_("x", F32, 5, 16), x_("places", I32, 40), x_("updates", F32, 40, 16)
    found = scatter_rows(x, places, updates)
    given = program(joined(product(0), found), *([found] if twice else []))
    made = plan(given, computes=can_emit, atomics=True)
    (kernel,) = (kernel for kernel in made.kernels if isinstance(kernel, Scatter))
    assert kernel.form == "atomic" and len(kernel.stores) == 1 and copies(made) == twice
    test_triton_plans.check(given, values(given), interpreter, "atomic:", made)


def test_nothing_is_moved_where_an_index_would_be_too_long() -> None:
    value = joined(reshape(product(0, rows=6, columns=10), (4, 15)), x_("x", F32, 1, 15))
    assert in_parts(plan(program(value)))
    assert not in_parts(plan(program(value), limits=replace(KernelLimits(), index=2)))


def test_ends_in_no_known_order_are_no_boxes() -> None:
    """The first four of what two free dims give: whether the second has any of them is known when it runs."""
    n, s = symbol("n"), symbol("s")
    whole = joined(product(0, rows=n), product(1, rows=s))
    value = op("slice", whole, start=(0, 0), limit=(4, 16), strides=(1, 1))
    assert copies(checked(value, sizes={"n": 3, "s": 5})) == 1


def test_what_is_turned_round_behind_it() -> None:
    """A store may go through its buffer backward: that is no place for parts."""
    both = joined(product(0), product(1))
    checked(both, op("reverse", both, dimensions=(0,)))


def test_who_reads_one_of_four_quarters_needs_nobody_else() -> None:
    """No dim tells them apart."""
    quarters = [product(number, rows=4, columns=16) for number in range(4)]
    whole = joined(joined(*quarters[:2], axis=1), joined(*quarters[2:], axis=1))
    found = checked(whole, *(op("reduce", quarter, dimensions=(1,), combiner="add") for quarter in quarters))
    assert in_parts(found) == {"y0"}
    folding = [needed for kernel, needed in zip(found.kernels, needs_of(found.kernels), strict=True) if isinstance(kernel, Rows)]
    assert [len(needed) for needed in folding] == [1, 1, 1, 1] and len({place for needed in folding for place in needed}) == 4


def test_temporaries_of_free_dims_are_given_on_once() -> None:
    """The memory of a value that several kernels store is one."""
    n = symbol("n")
    parts = [product(number, rows=n) for number in range(12)]
    value = times(joined(*parts, axis=1), x_("v", F32, 192, 192))
    first, second = (times(value, x_(f"u{place}", F32, 192, 192)) for place in range(2))
    found = plan(program(dot(first, second, lhs_contract=(1,), rhs_contract=(1,))))
    (name,) = in_parts(found)
    assert found.buffers[name].role == "temporary" and name not in found.offsets
    laws(found)
    counted = [name for kernel in found.kernels for name in writes(kernel)].count(name)
    assert counted == 12 and list(shared(found).values()).count(name) <= 1


def test_a_store_of_very_many_parts_is_one() -> None:
    rows = 2 * MOST_PARTS
    loops = (Loop("loop:i", rows),)
    value: Scalar = Load("x", (0,), F32)
    for place in range(rows):
        value = Choose((InBounds(loops[0].index, place, place + 1),), Load("x", (place,), F32), value, F32)
    store = Store("y", (loops[0].index,), value)
    frame = StoreFrame.of(store, loops)
    assert frame is not None and len(parts_of(store, frame)) <= MOST_PARTS


def test_a_concatenation_of_nothing() -> None:
    checked(joined(product(0, rows=0), product(1, rows=0)))


def test_many_parts() -> None:
    """Rounds that each make a row: no copy, and each reads only the round before it."""
    state, rows = x_("h", F32, 1, 16), []
    w = x_("w", F32, 16, 16)
    for _ in range(200):
        state = op("abs", times(state, w))
        rows.append(state)
    found = plan(program(joined(*rows)))
    laws(found)
    assert len(found.kernels) == 200 and not found.arena and len(found.apart) == 199


def test_rounds_in_another_shape_with_the_last_one() -> None:
    """As a recurrent layer gives them: what is put together has too many parts to be computed where it is used, but only the output in
    another shape uses it, so that it is not stored by itself."""
    state, rows = x_("h", F32, 2, 16), []
    w = x_("w", F32, 16, 16)
    for _ in range(60):
        state = op("sign", times(state, w))
        rows.append(reshape(state, (1, 2, 16)))
    found = checked(reshape(joined(*rows), (60, 1, 2, 16)), reshape(state, (1, 2, 16)))
    assert len(found.kernels) == 60 and {buffer.role for buffer in found.buffers.values()} == {"input", "output"}


def test_bytes_are_those_that_are_moved() -> None:
    given = program(joined(product(0, rows=1024, columns=512), product(1, rows=1024, columns=512)))
    found = plan(given)
    moved = 4 * 2 * (1024 * 8 + 8 * 512 + 1024 * 512)
    assert traffic(found).bytes == moved and traffic(found).kernels == 2


@pytest.mark.parametrize("dimension", [0, 2])
def test_what_a_recurrence_reads_and_makes_beside_others(dimension: int) -> None:
    """What it reads is stored in its place too, where that pays; what it makes is copied."""
    count, shape = 6, (6, 3, 8)
    x, w, z = x_("x", F32, count, 3, 5), x_("w", F32, 5, 8), x_("z", F32, *shape)
    read = dot(x, w, lhs_contract=(2,), rhs_contract=(0,))

    def step(index: Term, state: Term, pile: Term, read: Term) -> list[Term]:
        new = op("add", op("multiply", state, splat(0.5, F32, (3, 8))), op("tanh", element(read, index)))
        return [new, placed(pile, new, index)]

    loop = recurrence([splat(0, F32, (3, 8)), splat(0, F32, shape)], [read], count, step)
    program = Program((x, w, z), (("y", op("concatenate", read, get(loop, 2), z, dimension=dimension)), ("last", get(loop, 1))))
    draw = np.random.default_rng(dimension)
    found = check(program, {term.attribute("name"): draw.normal(size=term.tensor.static).astype(np.float32) for term in program.inputs})
    assert sum(isinstance(kernel, Recurrence) for kernel in found.kernels) == 1
    (product,) = (kernel for kernel in found.kernels if isinstance(kernel, Product))
    assert len(stores_of(product)) == (2 if dimension == 0 else 1)
