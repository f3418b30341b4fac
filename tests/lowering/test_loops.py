"""Loops as their rounds: the same values, no loop left where integers that are constants decide, and a loop where they do not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.ir.dims import symbol
from coset.ir.evaluate import evaluate_program
from coset.ir.program import Program
from coset.ir.term import PARAMETER, Region, Term, constant, get, input_term, make, topological
from coset.ir.types import BOOL, DTYPES, F32, I32, DType, TensorType, Type
from coset.lowering.planning import loops
from coset.lowering.planning.loops import unrolled

Function = Callable[..., Sequence[Term]]


def region(types: Sequence[Type], function: Function) -> Region:
    parameters = tuple(make(PARAMETER, (), {"index": index, "type": type}) for index, type in enumerate(types))
    return Region(parameters, tuple(function(*parameters)))


def loop(state: Sequence[Term], goes_on: Callable[..., Term], step: Function) -> list[Term]:
    """The state after a loop."""
    types = [each.type for each in state]
    whole = make("stablehlo.while", state, {}, (region(types, lambda *x: [goes_on(*x)]), region(types, step)))
    return [whole] if len(state) == 1 else [get(whole, index) for index in range(len(state))]


def below(i: Term, limit: Term, direction: str = "LT") -> Term:
    return make("stablehlo.compare", (i, limit), {"direction": direction})


def add(x: Term, y: Term) -> Term:
    return make("stablehlo.add", (x, y))


def number(value: object, dtype: DType = I32) -> Term:
    return constant(np.asarray(value, dtype.numpy), dtype)


def row(x: Term, i: Term, width: int) -> Term:
    """Row `i`, as [1, width]."""
    return make("stablehlo.dynamic_slice", (x, i, number(0)), {"slice_sizes": (1, width)})


def put(x: Term, update: Term, *at: Term) -> Term:
    return make("stablehlo.dynamic_update_slice", (x, update, *at))


def scan(rounds: int, width: int = 3, *, first: int = 0, by: int = 1) -> tuple[list[Term], list[Term]]:
    """Sums of rows from the first to each, as a loop writes them: inputs, and the last sum with all of them."""
    x, start, out = (
        input_term(name, TensorType(F32, shape)) for name, shape in (("x", (rounds, width)), ("s", (1, width)), ("o", (rounds, width)))
    )

    def step(i: Term, x: Term, total: Term, out: Term) -> list[Term]:
        total = add(total, row(x, i, width))
        return [add(i, number(by)), x, total, put(out, total, i, number(0))]

    end = first + by * rounds
    found = loop([number(first), x, start, out], lambda i, *_: below(i, number(end), "LT" if by > 0 else "GT"), step)
    return [x, start, out], found[2:]


def values(inputs: Sequence[Term], draw: np.random.Generator) -> dict[str, Any]:
    found = {}
    for term in inputs:
        shape = [dim if isinstance(dim, int) else 4 for dim in term.tensor.dims]
        drawn = draw.standard_normal(shape) if term.tensor.dtype.kind == "float" else draw.integers(0, 3, shape)
        found[str(term.attribute("name"))] = np.asarray(drawn).astype(term.tensor.dtype.numpy)
    return found


def ops(roots: Sequence[Term]) -> list[str]:
    return [term.op.name for term in topological(roots)]


def assert_unrolled(inputs: Sequence[Term], roots: Sequence[Term], *, left: int = 0) -> tuple[Term, ...]:
    """The same values with so many loops left."""
    found = unrolled(roots)
    assert ops(found).count("stablehlo.while") == left
    assert [root.type for root in found] == [root.type for root in roots]
    before, after = (Program(tuple(inputs), tuple((f"y{i}", root) for i, root in enumerate(some))) for some in (roots, found))
    for seed in range(3):
        given = values(inputs, np.random.default_rng(seed))
        for value, wanted in zip(evaluate_program(after, given), evaluate_program(before, given), strict=True):
            np.testing.assert_array_equal(value, wanted)
    return found


@pytest.mark.parametrize("rounds", [1, 2, 16, 17, 40, 300])
def test_rows_are_read_as_slices_and_written_as_one_concatenation(rounds: int) -> None:
    found = assert_unrolled(*scan(rounds))
    names = ops(found)
    assert not any("dynamic_slice" in name for name in names)
    assert names.count("stablehlo.dynamic_update_slice") == (rounds == 1), "one update is one"
    assert all(len(term.operands) <= loops.MOST_JOINED for term in topological(found) if term.op.name == "stablehlo.concatenate")


def test_rounds_may_go_backward() -> None:
    found = assert_unrolled(*scan(7, first=6, by=-1))
    assert "stablehlo.dynamic_update_slice" not in ops(found)


@pytest.mark.parametrize("dtype", ["i8", "u8", "i32", "u32", "i64", "u64"])
def test_counters_of_any_type(dtype: str) -> None:
    """Also one that goes round the end of its type."""
    kind = DTYPES[dtype]
    x = input_term("x", TensorType(F32, (2,)))
    most = np.iinfo(kind.numpy).max
    for first, direction, limit in ((2, "LT", 6), (int(most) - 2, "GT", 5)):
        _, found = loop(
            [number(first, kind), x],
            lambda i, _, d=direction, m=limit: below(i, number(m, kind), d),
            lambda i, x: [add(i, number(1, kind)), add(x, x)],
        )
        assert_unrolled([x], [found])


def test_several_integers_decide() -> None:
    """Of the state only what the condition depends on, through the body too."""
    x = input_term("x", TensorType(F32, ()))
    state = [number(0), number(1), x]
    found = loop(
        state, lambda a, b, x: below(a, number(50)), lambda a, b, x: [b, add(a, b), add(x, make("stablehlo.convert", (a,), {"dtype": F32}))]
    )
    assert_unrolled([x], found)
    assert found[0] is not unrolled(found)[0] and unrolled(found)[0].attribute("value").array().item() == 55


def test_loops_without_a_round_and_of_one_value() -> None:
    (found,) = loop([number(3)], lambda i: below(i, number(0)), lambda i: [add(i, i)])
    assert assert_unrolled([], [found]) == (number(3),)
    (found,) = loop([number(3)], lambda i: below(i, number(20)), lambda i: [add(i, i)])
    assert assert_unrolled([], [found]) == (number(24),)


def test_loops_in_loops() -> None:
    """The inner one begins where the outer one is."""
    x = input_term("x", TensorType(F32, (6, 3)))

    def inner(i: Term, x: Term) -> list[Term]:
        def step(j: Term, x: Term, i: Term) -> list[Term]:
            return [add(j, number(1)), put(x, add(row(x, j, 3), row(x, i, 3)), j, number(0)), i]

        return [add(i, number(1)), loop([i, x, i], lambda j, *_: below(j, number(6)), step)[1]]

    _, found = loop([number(0), x], lambda i, _: below(i, number(4)), inner)
    assert_unrolled([x], [found])


def test_branches_by_the_counter() -> None:
    x = input_term("x", TensorType(F32, (2,)))

    def step(i: Term, x: Term) -> list[Term]:
        once = region([x.type], lambda x: [add(x, x)])
        twice = region([x.type], lambda x: [make("stablehlo.multiply", (x, x))])
        even = below(make("stablehlo.remainder", (i, number(2))), number(0), "EQ")
        chosen = make("stablehlo.if", (even, x), {"results": (x.type,)}, (once, twice))
        return [add(i, number(1)), make("stablehlo.case", (i, chosen), {"results": (x.type,)}, (once, twice))]

    _, found = loop([number(-1), x], lambda i, _: below(i, number(4)), step)
    assert not {"stablehlo.if", "stablehlo.case"} & {*ops(assert_unrolled([x], [found]))}


@pytest.mark.parametrize("start", [-5, -1, 0, 2, 4, 9])
def test_places_are_clamped_as_the_hub_does_it(start: int) -> None:
    x, y = (input_term(name, TensorType(F32, (5, 3))) for name in "xy")

    def step(i: Term, x: Term, y: Term) -> list[Term]:
        at = add(i, number(start))
        two = make("stablehlo.dynamic_slice", (x, at, at), {"slice_sizes": (2, 3)})
        return [add(i, number(1)), x, put(y, two, at, number(7))]

    found = loop([number(0), x, y], lambda i, *_: below(i, number(3)), step)
    assert_unrolled([x, y], found[2:])


@pytest.mark.parametrize("places", [(0, 2), (4, 1, 3), (2, 2, 0), (5, 4, 3, 2, 1, 0), (3,)])
@pytest.mark.parametrize("axis", [0, 1])
def test_what_is_written_at_some_places_leaves_the_others(places: tuple[int, ...], axis: int) -> None:
    x = input_term("x", TensorType(F32, (6, 6)))
    parts = [input_term(f"p{i}", TensorType(F32, (1, 6) if axis == 0 else (6, 1))) for i in range(len(places))]
    (seed,) = loop([number(0)], lambda i: below(i, number(1)), lambda i: [add(i, number(1))])
    current = x
    for part, place in zip(parts, places, strict=True):
        at = [number(place), number(0)]
        current = put(current, part, *(at if axis == 0 else at[::-1]))
    found = assert_unrolled([x, *parts], [current, seed])
    assert ops(found).count("stablehlo.dynamic_update_slice") == (len(places) == 1)


def test_overlapping_parts_are_written_one_after_the_other() -> None:
    x, two, three = (input_term(name, TensorType(F32, (rows, 2))) for name, rows in (("x", 6), ("two", 2), ("three", 3)))
    (seed,) = loop([number(0)], lambda i: below(i, number(1)), lambda i: [add(i, number(1))])
    apart = put(put(x, two, number(1), number(0)), three, number(2), number(0))
    same = put(put(x, two, number(1), number(0)), three, number(1), number(0))
    for current in (apart, same):
        assert ops(assert_unrolled([x, two, three], [current, seed])).count("stablehlo.dynamic_update_slice") == 2


def test_what_is_read_between_two_writes_is_what_was_there() -> None:
    x, part = input_term("x", TensorType(F32, (4, 2))), input_term("part", TensorType(F32, (1, 2)))
    (seed,) = loop([number(0)], lambda i: below(i, number(1)), lambda i: [add(i, number(1))])
    middle = put(x, part, number(1), number(0))
    assert_unrolled([x, part], [put(middle, part, number(2), number(0)), middle, seed])
    assert_unrolled([x, part], [put(middle, row(middle, number(1), 2), number(2), number(0)), seed])


@pytest.mark.parametrize("why", ["data", "float", "input", "long", "endless", "terms", "drawn"])
def test_loops_that_stay(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, n = input_term("x", TensorType(F32, ())), input_term("n", TensorType(I32, ()))
    state, limit = [number(0), x, n], number(5)

    def goes_on(i: Term, x: Term, n: Term) -> Term:
        return {"data": below(x, number(2, F32)), "input": below(i, n), "endless": number(True, BOOL)}.get(why) or below(i, limit)

    def step(i: Term, x: Term, n: Term) -> list[Term]:
        if why == "float":
            i = make("stablehlo.convert", (make("stablehlo.convert", (i,), {"dtype": F32}),), {"dtype": I32})
        if why == "drawn":
            x = make("stablehlo.rng", (x, number(2, F32), constant(np.zeros(0, np.int64))), {"rng_distribution": "UNIFORM", "shape": ()})
        return [add(i, number(1)), add(x, number(1, F32)), n]

    if why == "long":
        limit = number(loops.MOST_ROUNDS + 1)
    if why == "terms":
        monkeypatch.setattr(loops, "MOST_TERMS", 20)
    found = loop(state, goes_on, step)
    assert unrolled(found) == tuple(found)


def test_the_last_number_of_rounds_that_is_unrolled() -> None:
    (found,) = loop([number(0)], lambda i: below(i, number(loops.MOST_ROUNDS)), lambda i: [add(i, number(1))])
    assert assert_unrolled([], [found]) == (number(loops.MOST_ROUNDS),)


def test_programs_without_a_loop_are_what_they_are() -> None:
    x = input_term("x", TensorType(F32, (symbol("n"), 3)))
    roots = (row(x, number(1), 3),)
    assert unrolled(roots) is roots


def test_sizes_that_are_free_are_read_at_places_that_are_known() -> None:
    """A slice of a dim that is free is clamped when it is run."""
    x, total = input_term("x", TensorType(F32, (symbol("n"), 3))), input_term("t", TensorType(F32, (1, 3)))
    found = loop([number(0), x, total], lambda i, *_: below(i, number(6)), lambda i, x, t: [add(i, number(1)), x, add(t, row(x, i, 3))])
    assert "stablehlo.dynamic_slice" in ops(assert_unrolled([x, total], found[2:]))
