"""From groups of terms to kernels: each stored value as a scalar expression over the kernel's loops."""

from __future__ import annotations

from coset.dialects.hub.tensors import identity
from coset.ir.builtin import ABSENT
from coset.ir.dims import symbols
from coset.ir.term import PARAMETER, Term, make, rebuild
from coset.lowering.kernels.kernel import (
    Attention,
    Choose,
    ColumnFold,
    Grouped,
    InBounds,
    Kernel,
    Library,
    Loop,
    Pointwise,
    Product,
    Rows,
    Scalar,
    ScalarConstant,
    Scan,
    Scatter,
    Sort,
)
from coset.lowering.planning.emission_body import SHORT, KernelBody, SharedEmission, by_role, name_of, word
from coset.lowering.planning.emission_gradients import chain, statistics
from coset.lowering.planning.emission_recurrence import recurrence
from coset.lowering.planning.group import (
    ATTENTION,
    CHAIN,
    GROUPED,
    LIBRARY,
    PRODUCT,
    RECURRENCE,
    ROWS,
    SCAN,
    SCATTER,
    SORT,
    STATISTICS,
    KernelGroup,
    read_whole,
)
from coset.lowering.planning.kinds import WINDOWED, wide
from coset.lowering.planning.scanning import prefix_of
from coset.lowering.planning.sorting import results_of
from coset.lowering.planning.visible import ends_of, hidden


def emit(emission: SharedEmission, group: KernelGroup, live: set[Term]) -> tuple[Kernel, frozenset[Term]]:
    """The kernel of `group`, of whose terms `live` are needed, and the terms that it computes."""
    if group.kind in _EMITTERS:
        return _EMITTERS[group.kind](emission, group)
    folds = [term for term in group.heavy if term in live]
    names: dict[Term, str] = {}
    body = KernelBody(emission, group, names)
    steps: list[tuple[Scalar, ...]] = []
    for place, term in enumerate(folds):
        steps.append(tuple(body.scalar(operand, index) for operand, index in zip(term.operands, group.reads[term], strict=True)))
        names[term] = "sum" if group.kind == PRODUCT else f"fold{place}"
        body.used.add(term)
    stored = body.stores()
    stores = tuple(stored.values())
    used = body.known()
    words = tuple(map(word, used))
    name = name_of(used)
    picks = tuple(body.picks.values())
    if group.kind == PRODUCT:
        batch, m, n, k = by_role(group, "bmnk")
        ((lhs, rhs),) = steps
        accumulator = wide(folds[0].tensor.dtype)
        windowed = folds[0].op.name == WINDOWED
        made = Product(name, batch, m, n, k, lhs, rhs, accumulator, stores, terms=words, picks=picks, windowed=windowed)
        return made, frozenset(body.used)
    if group.kind != ROWS:
        return Pointwise(name, tuple(group.loops.values()), stores, terms=words, picks=picks), frozenset(body.used)
    is_row = [group.is_row(group.at[term]) for term in stored]
    parts = tuple(
        ColumnFold(names[term], term.attribute("combiner"), step[0], wide(term.tensor.dtype))
        for term, step in zip(folds, steps, strict=True)
    )
    rows, columns = _rows(group)
    row_stores = tuple(store for store, row in zip(stores, is_row, strict=True) if row)
    elements = tuple(store for store, row in zip(stores, is_row, strict=True) if not row)
    return Rows(name, rows, columns, parts, row_stores, elements, terms=words, picks=picks), frozenset(body.used)


def _attention(emission: SharedEmission, group: KernelGroup) -> tuple[Kernel, frozenset[Term]]:
    dot, weights, result = group.heavy
    attended = emission.attended[dot]
    names = {dot: "dot"}
    body = KernelBody(emission, group, names)
    batch, m, n, keys, k = by_role(group, "bmnsk")
    query, key = (body.scalar(operand, index) for operand, index in zip(dot.operands, group.reads[dot], strict=True))
    score = hidden(body.scalar(weights.operands[0], group.at[dot]), keys, body.extents)
    value = body.scalar(result.operands[1], *group.reads[result])
    names[result] = "sum"
    body.used |= {dot, weights, result}
    stores = tuple(body.stores().values())
    words = tuple(map(word, body.known()))
    safe, seen = weights.attribute("safe"), attended.seen(group.at[dot])
    if seen is None and len(keys) == 1:
        _, seen = ends_of(score, keys, keys, body.extents, safe=safe)
    accumulator, picks = wide(result.tensor.dtype), tuple(body.picks.values())
    sides, dtype = (query, key, score, value), dot.tensor.dtype
    kernel = Attention("attention", batch, m, n, keys, k, *sides, dtype, accumulator, safe, seen, stores, terms=words, picks=picks)
    return kernel, frozenset(body.used)


def _scan(emission: SharedEmission, group: KernelGroup) -> tuple[Kernel, frozenset[Term]]:
    (term,) = group.heavy
    prefix = prefix_of(term)
    assert prefix is not None
    (read,), combiner, dtype = group.reads[term], term.attribute("combiner"), term.tensor.dtype
    body = KernelBody(emission, group, {})
    value = body.scalar(term.operands[0], read)
    if prefix.shift:  # the first counts nothing
        start = ScalarConstant(identity(combiner, dtype).item(), dtype)
        value = Choose((InBounds(read[prefix.axis], 0, term.tensor.dims[prefix.axis]),), value, start, dtype)
    ends = body.ends({term: "scan"})
    (name,) = symbols(group.at[term][prefix.axis]) & group.extents.keys()
    column = next(loop for loop in group.loops.values() if loop.name == name)
    rows = tuple(loop for loop in group.loops.values() if loop is not column)
    return Scan(ends.name, rows, column, value, combiner, wide(dtype), ends.stores, terms=ends.terms, picks=ends.picks), ends.used


def _scatter(emission: SharedEmission, group: KernelGroup) -> tuple[Kernel, frozenset[Term]]:
    (term,) = group.heavy
    body = KernelBody(emission, group, {})
    base, key, value = body.heavy()
    ends = body.ends({term: "sum"})
    rows, columns, updates = by_role(group, "rcs")
    combiner, dtype = term.attribute("combiner"), wide(term.tensor.dtype)
    made = (rows, columns, updates, base, key, value, combiner, dtype, group.form)
    return Scatter(ends.name, *made, ends.stores, terms=ends.terms, picks=ends.picks), ends.used


def _grouped(emission: SharedEmission, group: KernelGroup) -> tuple[Kernel, frozenset[Term]]:
    (term,) = group.heavy
    body = KernelBody(emission, group, {})
    lhs, rhs, key = body.heavy()
    ends = body.ends({term: "sum"})
    each, m, n, k = by_role(group, "bmnk")
    made = (each, m, n, k, key, lhs, rhs, wide(term.tensor.dtype))
    return Grouped(ends.name, *made, ends.stores, terms=ends.terms, picks=ends.picks), ends.used


def _sort(emission: SharedEmission, group: KernelGroup) -> tuple[Kernel, frozenset[Term]]:
    (term,) = group.heavy
    body = KernelBody(emission, group, {})
    values = body.heavy()
    ends = body.ends(results_of(term, group))
    rows, (column,), front = by_role(group, "icf")
    made = (rows, column, front, values[0], values, term.attribute("direction"), term.attribute("total"))
    return Sort(ends.name, *made, ends.stores, terms=ends.terms, picks=ends.picks), ends.used


def _rows(group: KernelGroup) -> tuple[tuple[Loop, ...], tuple[Loop, ...]]:
    rows = tuple(loop for loop in group.loops.values() if loop.name not in group.columns)
    return rows, tuple(loop for loop in group.loops.values() if loop.name in group.columns)


def _library(emission: SharedEmission, group: KernelGroup) -> tuple[Library, frozenset[Term]]:
    (term,) = group.heavy
    given = [o if o.op is ABSENT else make(PARAMETER, (), {"index": i, "type": o.type}) for i, o in enumerate(term.operands)]
    alone = rebuild(term, given)
    operands = tuple(emission.buffers.get(operand) for operand in read_whole(term))
    name = word(term)
    return Library(SHORT.get(name, name), alone, operands, emission.results[term], (name,)), frozenset({term})


_EMITTERS = {
    LIBRARY: _library, ATTENTION: _attention, STATISTICS: statistics, CHAIN: chain, SCAN: _scan, GROUPED: _grouped, SORT: _sort,
    SCATTER: _scatter, RECURRENCE: recurrence,
}  # fmt: skip
