"""Which loops are recurrences and why others are none; what of a round is made before a loop, and what behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.dialects.hub.region_terms import while_term
from coset.dialects.hub.terms import broadcast, dot, reshape, splat, transpose
from coset.dialects.onnx.arithmetic import counted
from coset.ir.dims import Dim, symbol
from coset.ir.evaluate import evaluate_program
from coset.ir.program import Program
from coset.ir.term import Term, constant, get, input_term, make, topological
from coset.ir.types import DTYPES, F16, F32, I32, DType, TensorType
from coset.lowering.kernels.kernel import Library, Recurrence, scalars, values_of
from coset.lowering.planning.plan import plan
from coset.lowering.planning.recurrence import LOOP, rounds_of, without_known
from coset.lowering.planning.recurrence_products import lighter_loops
from coset.lowering.planning.recurring import Recurring, recurring
from coset.rules.definition import evaluate_defined
from tests.lowering.plan_numpy import run

Step = Callable[..., list[Term]]


def op(name: str, *operands: Term, **attributes: Any) -> Term:
    return make(f"stablehlo.{name}", operands, attributes)


def x_(name: str, *shape: Dim, dtype: DType = F32) -> Term:
    return input_term(name, TensorType(dtype, shape))


def number(value: int) -> Term:
    return constant(value, I32)


def loop(state: Sequence[Term], count: Dim, step: Step, *, first: int = 0, by: int = 1) -> Term:
    """The state behind a counter, sent through `count` rounds of `step`, which gets the counter first."""

    def body(*inner: Term) -> list[Term]:
        return [op("add", inner[0], number(by)), *step(*inner)]

    bound = counted(count, I32) if first == 0 else number(int(count) * by + first)  # type: ignore[call-overload]
    return while_term([number(first), *state], lambda *inner: op("compare", inner[0], bound, direction="LT"), body)


def read(x: Term, place: Term) -> Term:
    rest = x.tensor.dims[1:]
    return reshape(op("dynamic_slice", x, place, *[number(0)] * len(rest), slice_sizes=(1, *rest)), rest)


def write(pile: Term, value: Term, place: Term) -> Term:
    return op("dynamic_update_slice", pile, reshape(value, (1, *value.tensor.dims)), place, *[number(0)] * value.tensor.rank)


def inputs_of(roots: Sequence[Term]) -> tuple[Term, ...]:
    return tuple(
        sorted((term for term in topological(roots) if term.op.name == "builtin.input"), key=lambda term: str(term.attribute("name")))
    )


def check(roots: Sequence[Term], *, sizes: dict[str, int] | None = None, kernels: int = 1) -> list[str]:
    """The plan of the roots gives their values, with so many recurrences; the names of its kernels."""
    inputs = inputs_of(roots)
    program = Program(inputs, tuple((f"y{place}", root) for place, root in enumerate(roots)))
    draw = np.random.default_rng(0)
    feeds = {}
    for term in inputs:
        shape = [dim if isinstance(dim, int) else (sizes or {})[str(dim)] for dim in term.tensor.dims]
        feeds[str(term.attribute("name"))] = draw.integers(-2, 3, shape).astype(term.tensor.dtype.numpy)
    made = plan(program)
    found = run(made, feeds)
    for (name, _), value in zip(program.outputs, evaluate_program(program, feeds, fallback=evaluate_defined), strict=True):
        np.testing.assert_array_equal(np.asarray(found[name], np.float64), np.asarray(value, np.float64), name)
    assert sum(isinstance(kernel, Recurrence) for kernel in made.kernels) == kernels
    return [kernel.name for kernel in made.kernels]


# ---------------------------------------------------------------- what is none

H, X, U = x_("h", 3, 4), x_("x", 5, 3, 4), x_("u", 4, 4)


def carrying(step: Callable[..., Term], *more: Term, state: Term = H, count: Dim = 5) -> Term:
    """One state, and what no round changes."""
    return loop([state, *more], count, lambda i, h, *rest: [step(i, h, *rest), *rest])


def product(x: Term, y: Term, left: int = 1, right: int = 0) -> Term:
    return dot(x, y, lhs_contract=(left,), rhs_contract=(right,))


def columns_of(x: Term, low: int, high: int) -> Term:
    return op("slice", x, start=(0, low), limit=(3, high), strides=(1, 1))


def heads(h: Term, q: Term) -> Term:
    """Sums along the columns of a state, weighed anew for each of as many heads as there are columns: [heads, rows]."""
    weighed = op("multiply", broadcast(h, (4, 3, 4), (1, 2)), broadcast(q, (4, 3, 4), (0, 2)))
    return op("reduce", weighed, dimensions=(2,), combiner="add")


def several_folds(_: Term, h: Term) -> Term:
    rows, columns = (op("reduce", h, dimensions=(axis,), combiner="add") for axis in (1, 0))
    return op("add", broadcast(rows, (3, 4), (0,)), broadcast(columns, (3, 4), (1,)))


def branching(_: Term, h: Term) -> Term:
    from coset.dialects.hub.region_terms import if_term

    return if_term(constant(True, DTYPES["bool"]), [h], lambda h: [h], lambda h: [op("negate", h)])


WIDE = x_("w", 3, 80)
REFUSED: dict[str, tuple[Term, str]] = {
    "two places": (carrying(lambda _, h: op("add", h, op("reverse", h, dimensions=(1,)))), "two places at once"),
    "turned": (
        carrying(lambda _, h: op("add", h, transpose(h, (1, 0))), state=x_("s", 4, 4)),
        "two places at once",
    ),
    "other places": (
        loop([H, x_("g", 3, 8)], 5, lambda _, h, g: [op("add", h, columns_of(g, 2, 6)), op("negate", g)]),
        "dim that no state has",
    ),
    "read in pieces": (
        loop([x_("g", 3, 8), H], 5, lambda _, g, h: [op("add", g, op("concatenate", h, h, dimension=1)), op("negate", h)]),
        "other places than the kernel's loops",
    ),
    "products of states": (carrying(lambda _, h: product(h, h, 1, 1), state=x_("s", 4, 4)), "states on both of its sides"),
    "a matrix of each round": (carrying(lambda i, h, w: product(h, read(w, i)), x_("w", 5, 4, 4)), "another matrix in each round"),
    "a batch of products": (
        carrying(
            lambda _, h, u: op("dot_general", h, u, lhs_batch=(0,), rhs_batch=(0,), lhs_contract=(2,), rhs_contract=(1,)),
            x_("w", 2, 4, 4),
            state=x_("s", 2, 3, 4),
        ),
        "none by a matrix",
    ),
    "another width": (
        loop([H, x_("g", 3, 8), x_("v", 4, 8)], 5, lambda _, h, g, v: [op("negate", h), op("add", g, product(h, v)), v]),
        "columns are not those|two places|other places|dim that no state has",
    ),
    "a wide matrix": (carrying(lambda _, h, u: product(h, u), x_("u", 80, 80), state=WIDE), "more than a program holds"),
    "integers multiplied": (
        carrying(lambda _, h, u: product(h, u), x_("u", 4, 4, dtype=I32), state=x_("h", 3, 4, dtype=I32)), "product is of i32"
    ),
    "several folds": (carrying(several_folds), "folds along several dims"),
    "columns of unknown number": (
        carrying(
            lambda _, h: op("add", h, broadcast(op("reduce", h, dimensions=(1,), combiner="add"), h.tensor.dims, (0,))),
            state=x_("h", 3, symbol("k")),
        ),
        "of unknown number",
    ),
    "many columns": (
        carrying(
            lambda _, h: op("add", h, broadcast(op("reduce", h, dimensions=(1,), combiner="add"), h.tensor.dims, (0,))),
            state=x_("h", 3, 5000),
        ),
        "more than a program holds",
    ),
    "a branch": (carrying(branching), "is in it"),
    "a long round": (carrying(lambda _, h: [h := op("sine", op("add", h, h)) for _ in range(120)][-1]), "more than a kernel holds"),
    "small floats": (carrying(lambda _, h: op("add", h, h), state=x_("h", 3, dtype=DTYPES["f8e5m2"])), "it carries f8e5m2"),
    "an array inside": (
        carrying(lambda _, h: op("add", h, broadcast(constant(np.arange(4, dtype=np.float32), F32), (3, 4), (1,)))),
        "a constant of several elements",
    ),
    "a stack that is shifted": (
        loop([H, x_("p", 5, 3, 4)], 5, lambda i, h, p: [op("negate", h), write(p, h, op("add", i, number(1)))]),
        "a place of what is carried",
    ),
    "a product of each row by each": (
        loop([x_("h", 4), x_("g", 4), x_("p", 5, 4, 4)], 5, lambda i, h, g, p: [
            op("add", h, g), op("negate", g), write(p, op("multiply", broadcast(h, (4, 4), (0,)), broadcast(g, (4, 4), (1,))), i)]),
        "twice",
    ),
    "part of the columns": (
        loop([x_("h", 3, 4, 5), x_("g", 3, 4)], 5, lambda _, h, g: [
            op("add", op("add", h, broadcast(g, (3, 4, 5), (0, 1))),
               broadcast(op("reduce", h, dimensions=(1, 2), combiner="add"), (3, 4, 5), (0,))), op("negate", g)]),
        "the same for several columns",
    ),
    "a fold for each of as many heads": (
        loop([H, x_("p", 5, 4, 3), x_("q", 4, 4)], 5, lambda i, h, p, q: [op("negate", h), write(p, heads(h, q), i), q]),
        "what its result moves along",
    ),
    "a product for each of as many heads": (
        loop([H, x_("p", 5, 4, 3, 4), U], 5, lambda i, h, p, u: [
            op("minimum", product(h, u), h), write(p, product(broadcast(h, (4, 3, 4), (1, 2)), u, 2, 0), i), u]),
        "dim that no state has",
    ),
    "part of a stack": (
        loop([H, x_("p", 7, 3, 4)], 5, lambda i, h, p: [op("negate", h), write(p, h, i)]),
        "a place of what is carried",
    ),
    "places written twice": (
        loop([H, x_("p", 5, 3, 4)], 5, lambda i, h, p: [op("negate", h), write(p, h, op("multiply", i, number(0)))]),
        "a place of what is carried",
    ),
    "a stack that is read": (
        loop([H, x_("p", 5, 3, 4)], 5, lambda i, h, p: [op("add", h, read(p, i)), write(p, h, i)]),
        "a place of what is carried|not counted",
    ),
    "a place that a state says": (
        loop([x_("s", dtype=I32), H, X], 5, lambda i, s, h, x: [op("multiply", s, number(3)), op("add", h, read(x, s)), x]),
        "a place of what is carried",
    ),
    "steps of two": (loop([H], 5, lambda _, h: [op("negate", h)], by=2), "not counted"),
    "steps back": (
        while_term(
            [number(0), H],
            lambda i, h: op("compare", i, number(9), direction="LT"),
            lambda i, h: [op("add", i, number(-1)), op("negate", h)],
        ),
        "not counted",
    ),
    "a bound that counts": (
        while_term(
            [number(0), number(9), H],
            lambda i, n, h: op("compare", i, n, direction="LT"),
            lambda i, n, h: [op("add", i, number(1)), op("add", n, number(1)), op("negate", h)],
        ),
        "not counted",
    ),
    "a bound that is reached": (
        while_term(
            [number(0), H],
            lambda i, h: op("compare", number(9), i, direction="GE"),
            lambda i, h: [op("add", i, number(1)), op("negate", h)],
        ),
        "not counted",
    ),
    "a bound that moves": (
        while_term(
            [number(0), number(9), H],
            lambda i, n, h: op("compare", i, n, direction="LT"),
            lambda i, n, h: [op("add", i, number(1)), op("add", n, op("subtract", n, n)), op("negate", h)],
        ),
        "not counted",
    ),
    "a condition that is no bound": (
        while_term(
            [number(0), H],
            lambda i, h: op("compare", i, number(9), direction="NE"),
            lambda i, h: [op("add", i, number(1)), op("negate", h)],
        ),
        "not counted",
    ),
    "nothing carried": (loop([X, x_("p", 5, 3, 4)], 5, lambda i, x, p: [x, write(p, op("negate", read(x, i)), i)]), "nothing is carried"),
    "one for all rows": (
        loop([H, x_("s", 4)], 5, lambda i, h, s: [op("add", h, broadcast(s, (3, 4), (1,))), op("negate", s)]),
        "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_recurrence_says_why(name: str) -> None:
    term, why = REFUSED[name]
    found = recurring(term)
    if name == "one for all rows":  # then rows are columns: each program has the whole of both
        assert isinstance(found, Recurring) and len(found.layout.columns) == 1
        return
    assert isinstance(found, str)
    assert any(words in found for words in why.split("|")), found


def test_a_result_that_no_round_changes_is_no_result_of_a_kernel() -> None:
    """Unless what it was stands for it."""
    found = carrying(lambda i, h, x: op("add", h, read(x, i)), X)
    both = [get(found, 1), get(found, 2), get(found, 0)]
    assert not any(
        isinstance(kernel, Recurrence) for kernel in plan(Program((H, X), tuple((f"y{i}", t) for i, t in enumerate(both)))).kernels
    )
    check(without_known(both))


# ---------------------------------------------------------------- what is one


def test_states_that_change_places() -> None:
    """All at once: neither sees what the other has become."""
    found = loop([H, x_("g", 3, 4)], 5, lambda _, h, g: [g, op("add", h, h)])
    check([get(found, 1), get(found, 2)])


@pytest.mark.parametrize("count", [0, 1, 6])
def test_a_number_of_rounds_that_is_known_at_run_time(count: int) -> None:
    n = symbol("n")
    found = loop([H, splat(0, F32, (n, 3, 4)), x_("x", n, 3, 4)], n, lambda i, h, p, x: [op("add", h, read(x, i)), write(p, h, i), x])
    check([get(found, 1), get(found, 2)], sizes={"n": count})


@pytest.mark.parametrize("first", [0, 3, -2])
def test_counters_that_begin_elsewhere(first: int) -> None:
    """What is read before the first row or behind the last one is clamped, as the hub says."""
    found = loop([H, X], 5, lambda i, h, x: [op("add", h, read(x, i)), x], first=first)
    assert first == 0 or isinstance(recurring(found), Recurring)
    check([get(found, 1)])


def test_a_number_of_the_round_is_a_value() -> None:
    found = carrying(lambda i, h: op("add", h, broadcast(op("convert", i, dtype=F32), (3, 4), ())))
    check([get(found, 1)])


def test_places_counted_from_the_end_where_they_are_negative() -> None:
    """As JAX writes them: a choice that comes out the same in all rounds."""

    def step(i: Term, h: Term, x: Term) -> Term:
        wrapped = op("select", op("compare", i, number(0), direction="LT"), op("add", i, number(5)), i)
        return op("add", h, read(x, wrapped))

    found = carrying(step, X)
    rounds = rounds_of(found)
    assert rounds is not None and not any(term.op.name == "stablehlo.select" for term in topological(rounds.results()))
    check([get(found, 1)])


def test_integers_that_wrap_are_no_places() -> None:
    """2^30 times the round is beyond 32 bits in the third one: it is computed, and clamped."""
    found = carrying(lambda i, h, x: op("add", h, read(x, op("multiply", i, number(1 << 30)))), X)
    check([get(found, 1)])


def test_a_choice_by_integers_that_wrap() -> None:
    """2^30 times the round is negative in the third round."""

    def step(i: Term, h: Term, x: Term) -> Term:
        wrapped = op("compare", op("multiply", i, number(1 << 30)), number(0), direction="LT")
        return op("add", op("add", h, h), read(x, op("select", wrapped, number(1), number(2))))

    check([get(carrying(step, X), 1)])


def test_products_of_each_row_by_its_own() -> None:
    """They are multiplications and folds."""

    def step(_: Term, h: Term, w: Term) -> Term:
        each = op("dot_general", h, w, lhs_batch=(0,), rhs_batch=(0,), lhs_contract=(1,), rhs_contract=(1,))
        return op("minimum", op("add", h, broadcast(each, (3, 4), (0,))), splat(2.0, F32, (3, 4)))

    check([get(carrying(step, x_("w", 3, 4)), 1)])


def test_slices_of_a_product_are_products() -> None:
    """With a step between columns, and turned round."""

    def step(_: Term, h: Term, v: Term) -> Term:
        whole = product(h, v)
        even = op("slice", whole, start=(0, 0), limit=(3, 8), strides=(1, 2))
        return op("minimum", op("subtract", even, op("reverse", columns_of(whole, 4, 8), dimensions=(1,))), splat(2.0, F32, (3, 4)))

    check([get(carrying(step, x_("v", 4, 8)), 1)])


def test_a_matrix_that_is_dear_to_make_is_made_once() -> None:
    """And not by each of the programs of many rows."""
    matrix, h = op("convert", op("tanh", op("sine", x_("u", 4, 4))), dtype=I32), x_("h", 300, 4)
    found = carrying(lambda _, h, u: op("minimum", product(h, u), splat(2.0, F32, (300, 4))), op("convert", matrix, dtype=F32), state=h)
    assert len(check([get(found, 1)])) == 2


def test_a_kernel_takes_in_no_more_than_it_holds() -> None:
    """What is computed in front of it, but for what would be too much."""
    given = []
    for place in range(6):
        each = x_(f"x{place}", 5, 3, 4)
        for _ in range(21):
            each = op("abs", op("negate", each))
        given.append(each)
    found = loop([H, *given], 5, lambda i, h, *xs: [sum_of([h, *(read(x, i) for x in xs)]), *xs])
    made = plan(Program(inputs_of([found]), (("y", get(found, 1)),)))
    (kernel,) = (each for each in made.kernels if isinstance(each, Recurrence))
    assert len(made.kernels) > 1 and len(list(scalars(*values_of(kernel)))) < 250
    check([get(found, 1)])


def sum_of(terms: Sequence[Term]) -> Term:
    total, *rest = terms
    for term in rest:
        total = op("maximum", total, term)
    return total


def test_ops_that_kernels_do_not_compute_keep_a_loop_whole() -> None:
    found = get(carrying(lambda i, h, x: op("tanh", op("add", h, read(x, i))), X), 1)
    program = Program((H, X), (("y", found),))
    for missing, kind in (("stablehlo.tanh", Library), ("stablehlo.sine", Recurrence)):
        (kernel,) = plan(program, computes=lambda name, _, missing=missing: name != missing).kernels  # type: ignore[misc]
        assert isinstance(kernel, kind)


def test_heads_of_as_many_as_there_are_columns() -> None:
    """What is refused keeps its values."""
    found = loop([H, splat(0, F32, (5, 4, 3)), x_("q", 4, 4)], 5, lambda i, h, p, q: [op("negate", h), write(p, heads(h, q), i), q])
    check([get(found, 2)], kernels=0)


def test_folds_and_products_of_columns_that_are_not_last() -> None:
    h, u = x_("h", 4, 3), x_("u", 4, 4)
    found = carrying(lambda _, h, u: op("minimum", dot(u, h, lhs_contract=(1,), rhs_contract=(0,)), splat(3.0, F32, (4, 3))), u, state=h)
    check([get(found, 1)])


# ---------------------------------------------------------------- before and behind


def lighter(roots: Sequence[Term], *, sums: bool = True) -> tuple[Term, ...]:
    return lighter_loops(roots, lambda *_: True, sums=sums)[0]


def inside(roots: Sequence[Term]) -> list[str]:
    """The ops of the rounds of all loops."""
    found = [rounds_of(term) for term in topological(roots) if term.op.name == LOOP]
    return [term.op.name for rounds in found if rounds is not None for term in topological(rounds.results(), known=rounds.outside)]


@pytest.mark.parametrize("turned", [False, True])
def test_products_of_no_state_are_made_before_the_loop(turned: bool) -> None:
    def step(i: Term, h: Term, x: Term, w: Term) -> Term:
        place = op("subtract", number(4), i) if turned else i
        return op("maximum", h, product(op("negate", read(x, place)), w))

    roots = lighter([get(carrying(step, x_("x", 5, 3, 6), x_("w", 6, 4)), 1)])
    assert "stablehlo.dot_general" not in inside(roots)
    assert check(roots)[-1].endswith("recurrence")


def test_a_part_of_a_sequence_is_what_rounds_read() -> None:
    """Of 9 rows those from the third on; what is read beyond the end is not moved out of the loop."""
    for first, inside_ in ((2, False), (6, True)):

        def step(i: Term, h: Term, x: Term, w: Term, first: int = first) -> Term:
            return op("maximum", h, product(read(x, op("add", i, number(first))), w))

        roots = lighter([get(carrying(step, x_("x", 9, 3, 6), x_("w", 6, 4)), 1)])
        assert ("stablehlo.dot_general" in inside(roots)) == inside_
        check(roots, kernels=1 - inside_)


def test_what_is_read_otherwise_is_not_moved_out_of_the_loop() -> None:
    """Two rows at once, every other row: their products stay in the rounds, so that the loop is no kernel."""

    def pairs(i: Term, h: Term, x: Term, w: Term) -> Term:
        both = op("dynamic_slice", x, i, number(0), number(0), slice_sizes=(2, 3, 6))
        return op("maximum", h, product(op("reduce", both, dimensions=(0,), combiner="add"), w))

    def apart(i: Term, h: Term, x: Term, w: Term) -> Term:
        return op("maximum", h, product(read(x, op("multiply", i, number(2))), w))

    for step in (pairs, apart):
        roots = lighter([get(carrying(step, x_("x", 10, 3, 6), x_("w", 6, 4)), 1)])
        assert "stablehlo.dot_general" in inside(roots)
        check(roots, kernels=0)


def test_what_no_state_needs_is_made_behind_the_loop() -> None:
    def step(i: Term, h: Term, p: Term, x: Term, v: Term) -> list[Term]:
        h = op("add", op("minimum", h, read(x, i)), read(x, i))
        return [h, write(p, product(h, v), op("subtract", number(4), i)), x, v]

    found = loop([H, splat(0, F32, (5, 3, 7)), X, x_("v", 4, 7)], 5, step)
    roots = lighter([get(found, 1), get(found, 2)])
    assert "stablehlo.dot_general" not in inside(roots)
    check(roots)


@pytest.mark.parametrize("sums", [False, True])
def test_sums_over_rounds(sums: bool) -> None:
    """A gradient of a matrix: each round adds a product of what it has of a state and of its row."""

    def step(i: Term, h: Term, total: Term, x: Term) -> list[Term]:
        return [
            op("minimum", op("add", h, read(x, i)), splat(2.0, F32, (3, 4))),
            op("add", total, transpose(product(h, read(x, i), 0, 0), (1, 0))),
            x,
        ]

    found = loop([H, x_("t", 4, 4), X], 5, step)
    roots = lighter([get(found, 2)], sums=sums)
    assert ("stablehlo.dot_general" in inside(roots)) != sums
    check(roots, kernels=int(sums))


def test_sums_that_are_read_or_narrow_stay_in_the_loop() -> None:
    def step(i: Term, h: Term, total: Term, x: Term) -> list[Term]:
        return [op("minimum", total, read(x, i)), op("add", total, h), x]

    found = loop([H, x_("t", 3, 4), X], 5, step)
    assert len([each for each in lighter([get(found, 2)]) if each.op.name == "builtin.get"]) == 1
    check(lighter([get(found, 2)]))
    half = loop([x_("t", 3, dtype=F16), x_("x", 5, 3, dtype=F16)], 5, lambda i, t, x: [op("add", t, read(x, i)), x])
    assert lighter([get(half, 1)])[0].op.name == "builtin.get"


def test_what_nobody_needs_is_gone() -> None:
    found = loop(
        [H, x_("g", 3, 4), splat(0, F32, (5, 3, 4)), X], 5,
        lambda i, h, g, p, x: [op("add", h, read(x, i)), op("add", g, h), write(p, g, i), x],
    )  # fmt: skip
    roots = lighter([get(found, 1)], sums=False)
    (left,) = (rounds_of(term) for term in topological(roots) if term.op.name == LOOP)
    assert left is not None and len(left.carried) == 1 and not left.stacks
    check(roots)


def test_a_loop_that_is_used_as_a_whole_is_left() -> None:
    found = carrying(lambda i, h, x: op("add", h, read(x, i)), X)
    assert lighter([found]) == (found,)
