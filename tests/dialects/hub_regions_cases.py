"""Cases of the hub's ops with payload functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hub_cases import ANY_TYPE, ANY_VALUE, CASES, DIM, SHAPE, Case, Draw, adversarial, numbers
from hypothesis import strategies as st

from coset.dialects.hub.chlo_scan import scan_term
from coset.dialects.hub.region_terms import case_term, composite_term, if_term, region, while_term
from coset.ir.dims import Shape
from coset.ir.op import Attributes
from coset.ir.term import Region, Term, constant, input_term, make
from coset.ir.types import BOOL, DTYPES, I32, DType, TensorType, tensor

NUMBERS = [dtype for dtype in DTYPES.values() if dtype.kind not in ("string", "complex")]
SUMMED = [*NUMBERS, DTYPES["c64"], DTYPES["c128"]]
ORDERED = [dtype for dtype in NUMBERS if dtype is not BOOL]
SIX = st.sampled_from([(2, 1, 3, 2, 1, 2), (1, 2, 1, 3, 2, 2), (2, 1, 2, 0, 1, 2)])  # shapes of rank 6
Shapes = st.SearchStrategy[Shape]
RANKED = st.tuples(DIM, SHAPE).map(lambda pair: (pair[0], *pair[1]))
LONG = st.lists(DIM, max_size=4).map(tuple)
INTEGERS = [dtype for dtype in DTYPES.values() if dtype.kind in ("int", "uint")]
ANY_TYPE |= {"stablehlo.if", "stablehlo.case", "stablehlo.while", "stablehlo.composite"}
ANY_VALUE |= {("stablehlo.composite", key) for key in ("name", "attributes", "payload")}


def entered(name: str) -> Callable[[Callable[[], st.SearchStrategy[Case]]], Callable[[], st.SearchStrategy[Case]]]:
    """Enter a strategy as the cases of `stablehlo.name`."""

    def enter(strategy: Callable[[], st.SearchStrategy[Case]]) -> Callable[[], st.SearchStrategy[Case]]:
        CASES[f"stablehlo.{name}"] = strategy
        return strategy

    return enter


def call(op: str, *terms: Term, **attributes: Any) -> Term:
    """The term of a hub op by its short name."""
    return make(f"stablehlo.{op}", terms, attributes)


def case(draw: Draw, name: str, kinds: Sequence[tuple[DType, Shape]], attributes: Attributes, *regions: Region) -> Case:
    """The op on inputs of these types with drawn values."""
    terms = [input_term(f"x{i}", TensorType(dtype, shape)) for i, (dtype, shape) in enumerate(kinds)]
    return Case(make(f"stablehlo.{name}", terms, attributes, tuple(regions)), values(draw, kinds))


def values(draw: Draw, kinds: Sequence[tuple[DType, Shape]]) -> list[np.ndarray[Any, Any]]:
    """Adversarial arrays of these types."""
    seed = draw(st.integers(0, 10_000))
    return [adversarial(dtype, numbers(shape), seed + i) for i, (dtype, shape) in enumerate(kinds)]


def words(dtype: DType) -> list[str]:
    """The combiners that take the dtype."""
    return (
        ["add", "multiply"] + ["maximum", "minimum"] * (dtype.kind != "complex") + ["and", "or"] * (dtype.kind in ("int", "uint", "bool"))
    )


def folding(dtypes: Sequence[DType]) -> Region:
    """A body that no word names and that is not associative: what it gives depends on the order of every element."""

    def one(total: Term, element: Term, first: Term) -> Term:
        if total.tensor.dtype.kind in ("int", "uint"):
            return call("select", first, call("add", call("add", total, total), element), total)
        if total.tensor.dtype.kind == "bool":
            return call("xor", call("and", first, total), element)
        return call("select", first, element, call("maximum", total, call("negate", element)))

    def body(*both: Term) -> list[Term]:
        pairs = list(zip(both[: len(dtypes)], both[len(dtypes) :], strict=True))
        first = call("compare", *pairs[0], direction="GE")
        return [one(total, element, first) for total, element in pairs]

    return region([tensor(dtype) for dtype in (*dtypes, *dtypes)], body)


@entered("reduce_region")
@st.composite
def reduce_region(draw: Draw, shapes: Shapes = SHAPE) -> Case:
    dtypes = draw(st.lists(st.sampled_from(NUMBERS), min_size=1, max_size=3))
    shape = draw(shapes)
    axes = tuple(sorted(draw(st.sets(st.integers(0, len(shape) - 1))) if shape else ()))
    kinds = [*((dtype, shape) for dtype in dtypes), *((dtype, ()) for dtype in dtypes)]
    return case(draw, "reduce_region", kinds, {"dimensions": axes}, folding(dtypes))


def windows(draw: Draw, shapes: Shapes, *, dilated: bool) -> tuple[Shape, Attributes]:
    """A shape and windows on it: a symbolic dim holds one window or more, which the rule takes it to do."""
    shape = draw(shapes)
    rows = []
    for dim, size in zip(shape, numbers(shape), strict=True):
        symbolic = not isinstance(dim, int)
        low, high = draw(st.tuples(st.integers(0 if symbolic else -min(size, 1), 2), st.integers(0, 2)))
        base, dilation = draw(st.tuples(st.integers(1, 2), st.integers(1, 2))) if dilated else (1, 1)
        room = (size - 1) * base + 1 + low + high
        window = draw(st.integers(1, max(1, (room - 1) // dilation + 1) if symbolic else 4))
        rows.append((window, draw(st.integers(1, 3)), base, dilation, (low, high)))
    keys = ("window_dimensions", "window_strides", "base_dilations", "window_dilations", "padding")
    attributes = {key: tuple(row[i] for row in rows) for i, key in enumerate(keys)}
    return shape, attributes if dilated else {key: attributes[key] for key in attributes if "dilations" not in key}


@entered("reduce_window")
@st.composite
def reduce_window(draw: Draw, shapes: Shapes = SHAPE) -> Case:
    shape, attributes = windows(draw, shapes, dilated=True)
    dtype = draw(st.sampled_from(SUMMED))
    return case(draw, "reduce_window", [(dtype, shape)], {**attributes, "combiner": draw(st.sampled_from(words(dtype)))})


@entered("reduce_window_region")
@st.composite
def reduce_window_region(draw: Draw, shapes: Shapes = SHAPE) -> Case:
    shape, attributes = windows(draw, shapes, dilated=True)
    dtypes = draw(st.lists(st.sampled_from(NUMBERS), min_size=1, max_size=2))
    kinds = [*((dtype, shape) for dtype in dtypes), *((dtype, ()) for dtype in dtypes)]
    return case(draw, "reduce_window_region", kinds, attributes, folding(dtypes))


@entered("select_and_scatter")
@st.composite
def select_and_scatter(draw: Draw, shapes: Shapes = SHAPE) -> Case:
    shape, attributes = windows(draw, shapes, dilated=False)
    dtype = draw(st.sampled_from(ORDERED))
    counts = make("stablehlo.reduce_window", [input_term("x", TensorType(dtype, shape))], {
        **attributes, "base_dilations": (1,) * len(shape), "window_dilations": (1,) * len(shape), "combiner": "add"})  # fmt: skip
    select = draw(st.sampled_from(["GE", "GT", "LE", "LT", "region"]))
    combiner = draw(st.sampled_from([*words(dtype), "region"]))
    one = tensor(dtype)
    bodies = [region([one, one], lambda a, b: call("compare", a, b, direction="GT"))] * (select == "region")
    bodies += [region([one, one], lambda a, b: call("maximum", a, b))] * (combiner == "region")
    kinds = [(dtype, shape), (dtype, counts.tensor.dims), (dtype, ())]
    return case(draw, "select_and_scatter", kinds, {**attributes, "select": select, "combiner": combiner}, *bodies)


@entered("sort")
@st.composite
def sort(draw: Draw, shapes: Shapes = RANKED) -> Case:
    dtypes = draw(st.lists(st.sampled_from(NUMBERS), min_size=1, max_size=3))
    shape = draw(shapes)
    direction = draw(st.sampled_from(["LT", "GT", "LE", "GE", "region"]))
    attributes = {
        "dimension": draw(st.integers(0, len(shape) - 1)), "direction": direction,
        "is_stable": draw(st.booleans()), "total": draw(st.booleans()),
    }  # fmt: skip
    pairs = [tensor(dtype) for dtype in dtypes for _ in range(2)]
    bodies = [region(pairs, lambda *p: call("compare", p[-2], p[-1], direction="GT"))] * (direction == "region")
    return case(draw, "sort", [(dtype, shape) for dtype in dtypes], attributes, *bodies)


@entered("scatter")
@st.composite
def scatter(draw: Draw, shapes: Shapes = LONG) -> Case:
    """Operand dims have a role each: window, inserted, or batching; some of the first two are scattered to."""
    shape = draw(shapes)
    sizes = numbers(shape)
    roles = [draw(st.sampled_from(["window", "inserted", "batching"])) for _ in shape]
    named = draw(st.permutations([axis for axis, role in enumerate(roles) if role != "batching"]))
    named = named[: draw(st.integers(0, len(named)))]
    batching = [axis for axis, role in enumerate(roles) if role == "batching"]
    free = [("free", draw(DIM)) for _ in range(draw(st.integers(0, 2)))]
    scattered = draw(st.permutations([*free, *(("batch", axis) for axis in batching)]))
    dims = [shape[item] if role == "batch" else item for role, item in scattered]
    vector = draw(st.integers(0, len(dims)))
    implicit = len(named) == 1 and draw(st.booleans())  # index_vector_dim is the rank: the index is a scalar
    indices = tuple(dims) if implicit else (*dims[:vector], len(named), *dims[vector:])
    vector = len(dims) if implicit else vector
    where = [scattered.index(("batch", axis)) for axis in batching]
    window = [axis for axis, role in enumerate(roles) if role == "window"]
    kept = [shape[axis] if not isinstance(shape[axis], int) else draw(st.integers(0, sizes[axis])) for axis in window]
    rank = len(dims) + len(window)
    places = sorted(draw(st.permutations(range(rank)))[: len(window)])
    rest, moved = iter(dims), iter(kept)
    updates = tuple(next(moved) if axis in places else next(rest) for axis in range(rank))
    count = draw(st.integers(1, 2))
    dtypes = [draw(st.sampled_from(SUMMED)) for _ in range(count)]
    common = set.intersection(*(set(words(dtype)) for dtype in dtypes))
    payloads = ["region"] * all(dtype.kind != "complex" for dtype in dtypes)
    combiner = draw(st.sampled_from([*sorted(common), "second", *payloads]))
    integer = draw(st.sampled_from(INTEGERS))
    kinds = [*((dtype, shape) for dtype in dtypes), (integer, indices), *((dtype, updates) for dtype in dtypes)]
    attributes = {
        "update_window_dims": tuple(places),
        "inserted_window_dims": tuple(axis for axis, role in enumerate(roles) if role == "inserted"),
        "input_batching_dims": tuple(batching),
        "scatter_indices_batching_dims": tuple(at + (at >= vector and not implicit) for at in where),
        "scatter_dims_to_operand_dims": tuple(named),
        "index_vector_dim": vector,
        "combiner": combiner,
        "count": count,
    }
    made = case(draw, "scatter", kinds, attributes, *[folding(dtypes)] * (combiner == "region"))
    low = -1 if integer.kind == "int" else 0
    random = np.random.default_rng(draw(st.integers(0, 10_000)))
    made.arrays[count] = random.integers(low, 4 if integer.bits > 2 else 2, numbers(indices)).astype(integer.numpy)
    return made


@entered("map")
@st.composite
def map_(draw: Draw, shapes: Shapes = SHAPE) -> Case:
    shape, dtype = draw(shapes), draw(st.sampled_from(NUMBERS))
    truth = draw(st.booleans())

    def body(a: Term, b: Term) -> Term:
        below = call("compare", a, b, direction="LT")
        return below if truth else call("select", below, call("add", a, a), b)

    attributes = {"dimensions": tuple(range(len(shape))), "dtype": BOOL if truth else None}
    return case(draw, "map", [(dtype, shape)] * 2, attributes, region([tensor(dtype)] * 2, body))


def _inputs(kinds: Sequence[tuple[DType, Shape]]) -> list[Term]:
    return [input_term(f"x{i}", TensorType(dtype, shape)) for i, (dtype, shape) in enumerate(kinds)]


@entered("if")
@st.composite
def if_(draw: Draw) -> Case:
    kinds = [(BOOL, ()), (draw(st.sampled_from(NUMBERS)), numbers(draw(SHAPE)))]
    pred, x = _inputs(kinds)
    several = draw(st.booleans())
    term = if_term(pred, [x], lambda x: [x] * (1 + several), lambda x: [call("add", x, x)] * (1 + several))
    return Case(term, values(draw, kinds))


@entered("case")
@st.composite
def case_(draw: Draw) -> Case:
    kinds = [(I32, ()), (draw(st.sampled_from(NUMBERS)), numbers(draw(SHAPE)))]
    index, x = _inputs(kinds)
    bodies = [lambda x: call("add", x, x), lambda x: x, lambda x: call("multiply", x, x)]
    term = case_term(index, [x], *bodies[: draw(st.integers(1, 3))])
    return Case(term, [np.int32(draw(st.integers(-1, 4))) * np.ones((), np.int32), *values(draw, kinds)[1:]])


@entered("while")
@st.composite
def while_(draw: Draw) -> Case:
    kinds = [(I32, ()), (draw(st.sampled_from(NUMBERS)), draw(SHAPE))]
    one, last = (constant(np.asarray(n, np.int32)) for n in (1, 3))
    term = while_term(
        _inputs(kinds),
        lambda i, _: call("compare", i, last, direction="LT"),
        lambda i, x: [call("add", i, one), call("add", x, x)],
    )
    return Case(term, [np.asarray(draw(st.integers(0, 4)), np.int32), *values(draw, kinds)[1:]])


@st.composite
def scan(draw: Draw) -> Case:
    """Inputs of two types, or none with a number of steps; an output of another rank, and a body that its order matters to."""
    dtype, several = draw(st.sampled_from(NUMBERS)), draw(st.integers(0, 2))
    shape = numbers(draw(LONG))
    outputs = draw(st.integers(0 if several else 1, 2))
    axis = draw(st.integers(0, len(shape)))
    size = draw(DIM if several else st.integers(0, 4))
    kinds = [(dtype, (*shape[:axis], size, *shape[axis:]))] * several + [(dtype, shape)]
    hints = {"is_reverse": draw(st.booleans()), "is_associative": False, "size": None if several else size}

    def body(*parts: Term) -> list[Term]:
        *slices, carry = parts
        total = carry
        for part in slices or [carry]:
            total = call("maximum", part, call("add", total, part))
        return [*[carry] * outputs, total]

    terms = _inputs(kinds)
    return Case(scan_term(terms[:several], terms[several:], body, axis, **hints), values(draw, kinds))


CASES["chlo.scan"] = scan


@entered("composite")
@st.composite
def composite(draw: Draw) -> Case:
    kinds = [(draw(st.sampled_from(NUMBERS)), numbers(draw(SHAPE)))] * 2
    term = composite_term("ours.twice", _inputs(kinds), lambda a, b: [call("add", a, b), a][: draw(st.integers(1, 2))])
    return Case(term, values(draw, kinds))
