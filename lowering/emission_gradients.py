"""Kernels of attention's gradients: products of their own, what is made of them, and which places have no weight."""

from __future__ import annotations

from coset.ir.dims import Dim
from coset.ir.term import Term
from coset.lowering.attention_gradients import COLUMNS, DEPTHS, SLOPE, Traced
from coset.lowering.emission_body import Body, Emission, by_role, word
from coset.lowering.group import Group
from coset.lowering.kernel import Chain, Dot, Kernel, Pick, Statistics, Store, Sum
from coset.lowering.kinds import STATISTICAL, wide
from coset.lowering.visible import ends_of


def result_name(term: Term) -> str:
    """What a number of rows is called inside its kernel."""
    return term.op.name.removeprefix("kernel.softmax_")


def statistics(emission: Emission, group: Group) -> tuple[Kernel, frozenset[Term]]:
    """The kernel that finds the numbers of rows."""
    each = emission.traced[group.heavy[0]]
    names: dict[Term, str] = {}
    body = Body(emission, group, names)
    dots = _dots(body, each)
    assert each.score is not None
    score = body.scalar(each.score, _place(group))
    rows = [term for term in group.heavy if term.op.name in STATISTICAL]
    slopes = [term for term in rows if term.op.name == SLOPE]
    values = tuple(body.scalar(term.operands[1], _place(group)) for term in slopes)
    names |= {term: result_name(term) for term in rows if term not in slopes}
    names |= {term: f"slope{count}" for count, term in enumerate(slopes)}
    body.used |= {*group.heavy}
    stores, words, picks = _stores(body)
    batch, queries, keys = by_role(group, "bms")
    low, high = ends_of(score, keys, keys, body.extents, safe=each.safe)
    loops, accumulator = (batch, queries, keys), wide(rows[0].tensor.dtype)
    kernel = Statistics("softmax_rows", *loops, dots, score, values, accumulator, each.safe, stores, low, high, words, picks)
    return kernel, frozenset(body.used)


def chain(emission: Emission, group: Group) -> tuple[Kernel, frozenset[Term]]:
    """The kernel of gradients."""
    each = emission.traced[group.heavy[0]]
    names: dict[Term, str] = {}
    body = Body(emission, group, names)
    dots = _dots(body, each)
    results = [term for term in group.heavy if term in each.ends]
    sums = []
    for count, term in enumerate(results):
        weight = body.scalar(term.operands[0], _place(group))
        value = body.scalar(term.operands[1], *group.reads[term])
        (columns,) = by_role(group, COLUMNS[count])
        sums.append(Sum(f"sum{count}", columns, weight, value))
    assert each.score is not None
    score = body.scalar(each.score, _place(group))
    names |= {term: f"sum{count}" for count, term in enumerate(results)}
    body.used |= {*group.heavy}
    stores, words, picks = _stores(body)
    batch, queries, keys = by_role(group, "bms")
    rows, summed = (keys, queries) if each.turned else (queries, keys)
    low, high = ends_of(score, summed, keys, body.extents, safe=each.safe)
    accumulator = wide(results[0].tensor.dtype)
    name = "gradients" if each.turned else "gradient"
    kernel = Chain(name, batch, rows, summed, dots, tuple(sums), accumulator, stores, low, high, words, picks)
    return kernel, frozenset(body.used)


def _place(group: Group) -> tuple[Dim, ...]:
    """The index of the scores."""
    return group.at[group.heavy[0]]


def _dots(body: Body, each: Traced) -> tuple[Dot, ...]:
    """The products, which are named; rows of tiles on the left."""
    found = []
    group = body.group
    for count, term in enumerate(term for term in group.heavy if term in each.dots):
        left, right = (body.scalar(operand, index) for operand, index in zip(term.operands, group.reads[term], strict=True))
        (depth,) = by_role(group, DEPTHS[count])
        sides = (right, left) if each.turned else (left, right)
        found.append(Dot(f"dot{count}", depth, *sides, term.tensor.dtype))
        body.names[term] = found[-1].name
    return tuple(found)


def _stores(body: Body) -> tuple[tuple[Store, ...], tuple[str, ...], tuple[Pick, ...]]:
    stores = tuple(body.stores().values())
    return stores, tuple(map(word, body.known())), tuple(body.picks.values())
