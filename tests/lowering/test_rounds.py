"""Products of rounds as one: the same values for drawn contractions, one product where places of one tensor are read, and nothing where
that would be another sum or would compute what nobody asks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.ir.dims import Dim, symbol
from coset.ir.evaluate import evaluate_program
from coset.ir.program import Program
from coset.ir.term import Term, input_term, make, topological
from coset.ir.types import BOOL, F32, I32, DType, TensorType
from coset.lowering.planning.rounds import products_of_rounds

FREE = 4  # what the free dim is in a run


def tensor(name: str, *dims: Dim, dtype: DType = F32) -> Term:
    return input_term(name, TensorType(dtype, dims))


def sliced(x: Term, start: Sequence[int], limit: Sequence[Dim]) -> Term:
    return make("stablehlo.slice", (x,), {"start": tuple(start), "limit": tuple(limit), "strides": (1,) * x.tensor.rank})


def reshaped(x: Term, *dims: Dim) -> Term:
    return make("stablehlo.reshape", (x,), {"shape": dims})


def place(x: Term, axis: int, at: int, *, dropped: bool = True, size: int = 1) -> Term:
    dims = [*x.tensor.dims]
    start, limit = [0] * len(dims), [*dims]
    start[axis], limit[axis] = at, at + size
    found = sliced(x, start, limit)
    return reshaped(found, *dims[:axis], *dims[axis + 1 :]) if dropped else found


def dot(lhs: Term, rhs: Term, contract: tuple[Sequence[int], Sequence[int]], batch: tuple[Sequence[int], Sequence[int]] = ((), ())) -> Term:
    names = {"lhs_contract": contract[0], "rhs_contract": contract[1], "lhs_batch": batch[0], "rhs_batch": batch[1]}
    return make("stablehlo.dot_general", (lhs, rhs), {name: tuple(axes) for name, axes in names.items()})


def add(*terms: Term) -> Term:
    total, *rest = terms
    for term in rest:
        total = make("stablehlo.add", (total, term))
    return total


def products(roots: Sequence[Term]) -> int:
    return sum(term.op.name == "stablehlo.dot_general" for term in topological(roots))


def joined(roots: Sequence[Term], *, sums: bool = True) -> tuple[Term, ...]:
    """What becomes of `roots`, whose values and types are the same: on small whole numbers, which no order of a sum rounds."""
    found = products_of_rounds(roots, sums=sums)
    assert [root.type for root in found] == [root.type for root in roots]
    inputs = tuple(term for term in topological(roots) if term.op.name == "builtin.input")
    draw = np.random.default_rng(len(inputs))
    feed: dict[str, Any] = {}
    for term in inputs:
        shape = [dim if isinstance(dim, int) else FREE for dim in term.tensor.dims]
        feed[str(term.attribute("name"))] = draw.integers(-3, 4, shape).astype(term.tensor.dtype.numpy)
    before, after = (Program(inputs, tuple((f"y{i}", root) for i, root in enumerate(some))) for some in (roots, found))
    for value, wanted in zip(evaluate_program(after, feed), evaluate_program(before, feed), strict=True):
        np.testing.assert_array_equal(value, wanted)
    return found


@pytest.mark.parametrize("seed", range(60))
def test_drawn_products(seed: int) -> None:
    """Any contraction, with the places on either side, along any axis, dropped or not, some of them left out, in any order."""
    draw = np.random.default_rng(seed)
    letters = [*"abcdefg"[: draw.integers(1, 4)]]  # of the dims of a place
    sizes: dict[str, Dim] = {letter: int(draw.integers(1, 4)) for letter in "abcdefg"}
    if draw.random() < 0.3:
        sizes[letters[0]] = symbol("n")
    kinds = {letter: str(draw.choice(["free", "contract", "batch"])) for letter in letters}
    others = [letter for letter, kind in kinds.items() if kind != "free"]
    others += ["e", "f"][: draw.integers(0, 3)]
    draw.shuffle(others)
    axis, count = int(draw.integers(0, len(letters) + 1)), int(draw.integers(2, 7))
    dims = [sizes[letter] for letter in letters]
    x = tensor("x", *dims[:axis], count, *dims[axis:])
    other = tensor("w", *(sizes[letter] for letter in others))
    dropped, side = bool(draw.random() < 0.7), int(draw.integers(0, 2))
    own = letters if dropped else [*letters[:axis], "t", *letters[axis:]]
    axes = {
        kind: (
            [own.index(each) for each in letters if kinds[each] == kind],
            [others.index(each) for each in letters if kinds[each] == kind],
        )
        for kind in ("contract", "batch")
    }
    at = draw.permutation(count)[: max(2, count - int(draw.integers(0, 2)))]
    narrow = draw.random() < 0.3
    roots = []
    for each in at:
        read: Term = place(x, axis, int(each), dropped=dropped)
        if narrow:
            read = make("stablehlo.convert", (make("stablehlo.convert", (read,), {"dtype": BOOL}),), {"dtype": F32})
        sides, pairs = (read, other), (axes["contract"], axes["batch"])
        if side == 1:
            sides, pairs = (other, read), tuple((right, left) for left, right in pairs)  # type: ignore[assignment]
        roots.append(dot(*sides, *pairs))
    assert products(joined(roots)) == 1


def test_places_that_nobody_asks_for() -> None:
    """Half of what one product computes is used, or there is none."""
    x, w = tensor("x", 9, 2, 3), tensor("w", 3, 2)
    for places, left in (((0, 1), 1), ((0, 3), 1), ((0, 4), 2), ((0, 3, 5), 1), ((0, 8), 2), ((4,), 1), ((0, 2, 8), 3)):
        found = joined([dot(place(x, 0, at), w, ((1,), (0,))) for at in places])
        assert products(found) == left
    found = joined([dot(place(x, 0, at), w, ((1,), (0,))) for at in (3, 4, 5)])
    (product,) = (term for term in topological(found) if term.op.name == "stablehlo.dot_general")
    assert product.type == TensorType(F32, (3, 2, 2))
    found = joined([dot(place(x, 0, at), w, ((1,), (0,))) for at in range(9)])
    (product,) = (term for term in topological(found) if term.op.name == "stablehlo.dot_general")
    assert product.operands == (x, w), "all of it is no slice"


@pytest.mark.parametrize("what", ["two rows", "two axes", "summed along", "other matrix", "flattened", "again", "one each"])
def test_products_that_stay(what: str) -> None:
    x, w = tensor("x", 4, 4, 6), tensor("w", 6, 2)
    single = [place(x, 0, at, dropped=False) for at in (0, 1)]
    reads = {
        "two rows": [place(x, 0, at, dropped=False, size=2) for at in (0, 2)],
        "two axes": [reshaped(sliced(x, (at, at, 0), (at + 1, at + 1, 6)), 1, 6) for at in (0, 1)],
        "summed along": [place(x, 2, at, dropped=False) for at in (0, 1)],
        "flattened": [reshaped(read, 24) for read in single],
        "again": [reshaped(reshaped(read, 4, 6), 6, 4) for read in single],
    }.get(what, single)
    if what == "other matrix":
        roots = [dot(read, tensor(f"w{at}", 6, 2), ((2,), (0,))) for at, read in enumerate(reads)]
    elif what == "one each":
        roots = [dot(reads[0], w, ((2,), (0,))), dot(reads[1], tensor("v", 1, 2), ((0,), (0,)))]
    else:
        last = reads[0].tensor.rank - 1
        roots = [dot(read, tensor("v", reads[0].tensor.dims[last], 2), ((last,), (0,))) for read in reads]
    assert joined(roots) == tuple(roots)


def test_what_comes_of_one_product_goes_into_the_next() -> None:
    """Two layers: the second reads places of what the first gives."""
    x, w = tensor("x", 5, 2, 3), tensor("w", 3, 3)
    first = [dot(place(x, 0, at), w, ((1,), (0,))) for at in range(5)]
    between = make("stablehlo.concatenate", [make("stablehlo.reshape", (y,), {"shape": (1, 2, 3)}) for y in first], {"dimension": 0})
    second = [dot(place(between, 0, at), w, ((1,), (0,))) for at in range(5)]
    assert products(joined(second)) == 2


# ---------------------------------------------------------------- sums


def contributions(dtype: DType = F32, rounds: int = 4) -> tuple[Term, list[Term], list[Term]]:
    """A tensor, what each round has beside its place, and the products."""
    x = tensor("x", rounds, 5, 3, dtype=dtype)
    deltas = [tensor(f"d{at}", 5, 2, dtype=dtype) for at in range(rounds)]
    return x, deltas, [dot(delta, place(x, 0, at), ((0,), (0,))) for at, delta in enumerate(deltas)]


@pytest.mark.parametrize("seed", range(20))
def test_drawn_sums(seed: int) -> None:
    """In any order and brackets, with other summands, transposed, by either side."""
    draw = np.random.default_rng(seed)
    rounds = int(draw.integers(2, 20))
    axis, side = int(draw.integers(0, 3)), int(draw.integers(0, 2))
    x = tensor("x", *[5, 3][:axis], rounds, *[5, 3][axis:])
    parts = []
    for at in range(rounds):
        sides = (tensor(f"d{at}", 5, 2), place(x, axis, at))
        parts.append(dot(*sides[:: 1 - 2 * side], ((0,), (0,))))
    if draw.random() < 0.5:
        parts = [make("stablehlo.transpose", (part,), {"permutation": (1, 0)}) for part in parts]
    if draw.random() < 0.5:
        parts = [reshaped(part, 6) for part in parts]
    parts += [tensor(f"s{i}", *parts[0].tensor.dims) for i in range(draw.integers(0, 3))]
    draw.shuffle(parts)  # type: ignore[arg-type]
    while len(parts) > 1:
        at = int(draw.integers(0, len(parts) - 1))
        parts[at : at + 2] = [add(*parts[at : at + 2])]
    assert products(joined(parts)) == 1
    assert products_of_rounds(parts, sums=False) == tuple(parts)


def test_sums_of_integers_have_no_order() -> None:
    _, _, parts = contributions(I32)
    assert products(joined([add(*parts)], sums=False)) == 1


@pytest.mark.parametrize("why", ["used", "gap", "root", "once", "transposed", "moved", "kept"])
def test_sums_that_stay(why: str) -> None:
    _, _, parts = contributions()
    rest: list[Term] = []
    if why == "gap":
        parts = [parts[0], parts[2]]
    if why == "once":
        parts = [parts[0], tensor("y", 2, 3)]
    if why == "used":
        rest = [make("stablehlo.negate", (part,)) for part in parts]
    if why == "root":
        rest = list(parts)
    if why == "moved":  # and used besides
        parts = [make("stablehlo.transpose", (part,), {"permutation": (1, 0)}) for part in parts]
        rest = list(parts)
    if why == "kept":
        x = tensor("x", 4, 5, 3)
        parts = [dot(tensor(f"d{at}", 5, 2), place(x, 0, at, dropped=False), ((0,), (1,))) for at in range(4)]
    if why == "transposed":
        x, other = tensor("x", 2, 5, 2), tensor("d", 5, 2)
        own = [dot(make("stablehlo.add", (other, tensor(f"e{at}", 5, 2))), place(x, 0, at), ((0,), (0,))) for at in range(2)]
        parts = [own[0], make("stablehlo.transpose", (own[1],), {"permutation": (1, 0)})]
    roots = [add(*parts), *rest]
    assert joined(roots) == tuple(roots)


def test_what_is_summed_beside_products() -> None:
    """The gradient of what each round adds is a sum of the same stack; of others it is not."""
    _, deltas, parts = contributions(rounds=6)
    sums = [make("stablehlo.reduce", (delta,), {"dimensions": (0,), "combiner": "add"}) for delta in deltas]
    found = joined([add(*parts), add(*sums[::-1], tensor("b", 2))])
    assert [term.op.name for term in topological(found)].count("stablehlo.reduce") == 1
    for some in (sums[1:], [*sums, make("stablehlo.reduce", (tensor("z", 5, 2),), {"dimensions": (0,), "combiner": "add"})]):
        left = joined([add(*parts), add(*some)])
        assert [term.op.name for term in topological(left)].count("stablehlo.reduce") == len(some)
    left = joined([add(*parts), add(*sums), *sums])
    assert [term.op.name for term in topological(left)].count("stablehlo.reduce") == 6
    most = [make("stablehlo.reduce", (delta,), {"dimensions": (0,), "combiner": "maximum"}) for delta in deltas]
    left = joined([add(*parts), add(*most)])
    assert [term.op.name for term in topological(left)].count("stablehlo.reduce") == 6


def test_one_contribution_of_two_rounds() -> None:
    """What stands in a stack twice is in the sum of the stack twice."""
    x, deltas = tensor("x", 6, 5, 3), [tensor(f"d{at}", 5, 2) for at in range(5)]
    parts = [dot(delta, place(x, 0, at), ((0,), (0,))) for at, delta in enumerate([*deltas, deltas[0]])]
    sums = [make("stablehlo.reduce", (delta,), {"dimensions": (0,), "combiner": "add"}) for delta in deltas]
    assert products(joined([add(*parts), add(*sums)])) == 1


def test_both_sides_are_places() -> None:
    """Each product is in the sum once."""
    x, y = tensor("x", 6, 5, 3), tensor("y", 6, 5, 2)
    assert products(joined([add(*(dot(place(x, 0, at), place(y, 0, at), ((0,), (0,))) for at in range(6)))])) == 1


def test_a_part_of_a_sum_that_is_used_by_itself() -> None:
    _, _, parts = contributions()
    part = add(*parts[:2])
    assert products(joined([add(part, *parts[2:]), part])) == 2


def test_stacks_that_change_again() -> None:
    """What is stacked for one product rests on a sum that becomes a reduction."""
    x, y = tensor("x", 2, 5, 3), tensor("y", 2, 5, 2)
    base = [tensor(f"b{at}", 5, 2) for at in range(2)]
    first = [dot(delta, place(x, 0, at), ((0,), (0,))) for at, delta in enumerate(base)]
    bias = add(*(make("stablehlo.reduce", (delta,), {"dimensions": (0,), "combiner": "add"}) for delta in base))
    wide = make("stablehlo.broadcast_in_dim", (bias,), {"shape": (5, 2), "broadcast_dimensions": (1,)})
    later = [make("stablehlo.multiply", (delta, wide)) for delta in base]
    second = [dot(delta, place(y, 0, at), ((0,), (0,))) for at, delta in enumerate(later)]
    final = add(*(make("stablehlo.reduce", (delta,), {"dimensions": (0,), "combiner": "add"}) for delta in later))
    found = joined([add(*first), add(*second), bias, final])
    assert [term.op.name for term in topological(found)].count("stablehlo.reduce") == 3
