"""Kernels of attention's gradients: products of their own, what is made of them, and which places have no weight."""

from __future__ import annotations

from coset.ir.dims import Dim
from coset.ir.term import Term
from coset.lowering.kernels.kernel import Chain, Dot, Kernel, Slope, Statistics, Sum
from coset.lowering.planning.attention_gradients import COLUMNS, DEPTHS, SLOPE, Traced
from coset.lowering.planning.emission_body import KernelBody, SharedEmission, by_role
from coset.lowering.planning.group import KernelGroup
from coset.lowering.planning.kinds import wide
from coset.lowering.planning.visible import ends_of


def statistics(emission: SharedEmission, group: KernelGroup) -> tuple[Kernel, frozenset[Term]]:
    """The kernel that finds the numbers of rows."""
    each = emission.traced[group.heavy[0]]
    assert each.score is not None
    body = KernelBody(emission, group, {})
    dots = _dots(body, each)
    score = body.scalar(each.score, _place(group))
    rows = [term for term in group.heavy if term in each.ends]
    steep = [term for term in rows if term.op.name == SLOPE]
    slopes = {term: Slope(f"slope{count}", body.scalar(term.operands[1], _place(group))) for count, term in enumerate(steep)}
    names = {term: term.op.name.removeprefix("kernel.softmax_") for term in rows}
    ends = body.ends({**names, **{term: slope.name for term, slope in slopes.items()}})
    batch, queries, keys = by_role(group, "bms")
    low, high = ends_of(score, keys, keys, body.extents, safe=each.safe)
    made = (dots, score, tuple(slopes.values()), wide(rows[0].tensor.dtype), each.safe)
    return Statistics("softmax_rows", batch, queries, keys, *made, low, high, ends.stores, terms=ends.terms, picks=ends.picks), ends.used


def chain(emission: SharedEmission, group: KernelGroup) -> tuple[Kernel, frozenset[Term]]:
    """The kernel of gradients."""
    each = emission.traced[group.heavy[0]]
    assert each.score is not None
    body = KernelBody(emission, group, {})
    dots = _dots(body, each)
    score = body.scalar(each.score, _place(group))
    sums = {}
    for count, term in enumerate(term for term in group.heavy if term in each.ends):
        weight = body.scalar(term.operands[0], _place(group))
        value = body.scalar(term.operands[1], *group.reads[term])
        (columns,) = by_role(group, COLUMNS[count])
        sums[term] = Sum(f"sum{count}", columns, weight, value)
    ends = body.ends({term: each.name for term, each in sums.items()})
    batch, queries, keys = by_role(group, "bms")
    rows, summed = (keys, queries) if each.turned else (queries, keys)
    low, high = ends_of(score, summed, keys, body.extents, safe=each.safe)
    accumulator = wide(next(iter(sums)).tensor.dtype)
    name = "gradients" if each.turned else "gradient"
    made = (batch, rows, summed, dots, tuple(sums.values()), accumulator, low, high)
    return Chain(name, *made, ends.stores, terms=ends.terms, picks=ends.picks), ends.used


def _place(group: KernelGroup) -> tuple[Dim, ...]:
    """The index of the scores."""
    return group.at[group.heavy[0]]


def _dots(body: KernelBody, each: Traced) -> tuple[Dot, ...]:
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
