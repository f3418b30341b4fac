"""From groups of terms to kernels: each stored value as a scalar expression over the kernel's loops."""

from __future__ import annotations

from collections.abc import Sequence

from coset.dialects.hub_tensors import identity
from coset.ir.dims import symbols
from coset.ir.term import ABSENT, PARAMETER, Term, make, rebuild
from coset.lowering.emission_body import Body, Emission, by_role, word
from coset.lowering.emission_gradients import chain, result_name, statistics
from coset.lowering.group import ATTENTION, CHAIN, LIBRARY, PRODUCT, ROWS, SCAN, STATISTICS, Group
from coset.lowering.kernel import Attention, Bound, Choose, Fold, Kernel, Library, Loop, Number, Pointwise, Product, Rows, Scalar, Scan
from coset.lowering.kinds import STATISTICAL, is_arithmetic, wide
from coset.lowering.scanning import prefix_of

HEAVY = ("stablehlo.reduce", "stablehlo.reduce_window", "stablehlo.dot_general")


def emit(emission: Emission, group: Group, live: set[Term]) -> tuple[Kernel, frozenset[Term]]:
    """The kernel of `group`, of whose terms `live` are needed, and the terms that it computes."""
    if group.kind == LIBRARY:
        return _library(emission, group)
    if group.kind == ATTENTION:
        return _attention(emission, group)
    if group.kind == STATISTICS:
        return statistics(emission, group)
    if group.kind == CHAIN:
        return chain(emission, group)
    if group.kind == SCAN:
        return _scan(emission, group)
    folds = [term for term in group.heavy if term in live]
    names: dict[Term, str] = {}
    body = Body(emission, group, names)
    steps: list[tuple[Scalar, ...]] = []
    for place, term in enumerate(folds):
        steps.append(tuple(body.scalar(operand, index) for operand, index in zip(term.operands, group.reads[term], strict=True)))
        names[term] = "sum" if group.kind == PRODUCT else f"fold{place}"
        body.used.add(term)
    stored = body.stores()
    stores = tuple(stored.values())
    used = body.known()
    words = tuple(map(word, used))
    name = _name(used)
    picks = tuple(body.picks.values())
    if group.kind == PRODUCT:
        batch, m, n, k = by_role(group, "bmnk")
        ((lhs, rhs),) = steps
        accumulator = wide(folds[0].tensor.dtype)
        return Product(name, batch, m, n, k, lhs, rhs, accumulator, stores, words, picks), frozenset(body.used)
    if group.kind != ROWS:
        return Pointwise(name, tuple(group.loops.values()), stores, words, picks), frozenset(body.used)
    is_row = [group.is_row(group.at[term]) for term in stored]
    parts = tuple(
        Fold(names[term], term.attribute("combiner"), step[0], wide(term.tensor.dtype)) for term, step in zip(folds, steps, strict=True)
    )
    rows, columns = _rows(group)
    row_stores = tuple(store for store, row in zip(stores, is_row, strict=True) if row)
    elements = tuple(store for store, row in zip(stores, is_row, strict=True) if not row)
    return Rows(name, rows, columns, parts, row_stores, elements, words, picks), frozenset(body.used)


def _attention(emission: Emission, group: Group) -> tuple[Kernel, frozenset[Term]]:
    rows = [term for term in group.heavy if term.op.name in STATISTICAL]
    dot, weights, result = (term for term in group.heavy if term not in rows)
    attended = emission.attended[dot]
    names = {dot: "dot"}
    body = Body(emission, group, names)
    batch, m, n, keys, k = by_role(group, "bmnsk")
    query, key = (body.scalar(operand, index) for operand, index in zip(dot.operands, group.reads[dot], strict=True))
    score = body.scalar(weights.operands[0], group.at[dot])
    value = body.scalar(result.operands[1], *group.reads[result])
    names[result] = "sum"
    names |= {term: result_name(term) for term in rows}
    body.used |= {*group.heavy}
    stored = body.stores()
    row_stores = tuple(store for term, store in stored.items() if term in rows)
    stores = tuple(store for term, store in stored.items() if term not in rows)
    words = tuple(map(word, body.known()))
    safe, seen = weights.attribute("safe"), attended.seen(group.at[dot])
    accumulator, picks = wide(result.tensor.dtype), tuple(body.picks.values())
    sides, dtype = (query, key, score, value), dot.tensor.dtype
    kernel = Attention("attention", batch, m, n, keys, k, *sides, dtype, accumulator, safe, seen, stores, words, picks, row_stores)
    return kernel, frozenset(body.used)


def _scan(emission: Emission, group: Group) -> tuple[Kernel, frozenset[Term]]:
    (term,) = group.heavy
    prefix = prefix_of(term)
    assert prefix is not None
    (read,), combiner, dtype = group.reads[term], term.attribute("combiner"), term.tensor.dtype
    names: dict[Term, str] = {}
    body = Body(emission, group, names)
    value = body.scalar(term.operands[0], read)
    if prefix.shift:  # the first counts nothing
        start = Number(identity(combiner, dtype).item(), dtype)
        value = Choose((Bound(read[prefix.axis], 0, term.tensor.dims[prefix.axis]),), value, start, dtype)
    names[term] = "scan"
    body.used.add(term)
    stores = tuple(body.stores().values())
    used = body.known()
    (name,) = symbols(group.at[term][prefix.axis]) & group.extents.keys()
    column = next(loop for loop in group.loops.values() if loop.name == name)
    rows = tuple(loop for loop in group.loops.values() if loop is not column)
    words, picks = tuple(map(word, used)), tuple(body.picks.values())
    return Scan(_name(used), rows, column, value, combiner, wide(dtype), stores, words, picks), frozenset(body.used)


def _rows(group: Group) -> tuple[tuple[Loop, ...], tuple[Loop, ...]]:
    rows = tuple(loop for loop in group.loops.values() if loop.name not in group.columns)
    return rows, tuple(loop for loop in group.loops.values() if loop.name in group.columns)


def _name(used: Sequence[Term]) -> str:
    """The first few of a kernel's ops; a number is put before them in launch order."""
    wanted = [word(term) for term in used if is_arithmetic(term) or term.op.name in HEAVY] or [word(term) for term in used]
    short = list(dict.fromkeys(_SHORT.get(word, word) for word in wanted))
    return "_".join([*short[:3], *(["etc"] if len(short) > 3 else [])])


_SHORT = {
    "dot_general": "dot", "broadcast_in_dim": "broadcast", "exponential": "exp", "maximum": "max", "minimum": "min", "multiply": "mul",
    "reduce_window": "scan", "subtract": "sub", "divide": "div", "concatenate": "concat", "negate": "neg",
}  # fmt: skip


def _library(emission: Emission, group: Group) -> tuple[Library, frozenset[Term]]:
    (term,) = group.heavy
    given = [o if o.op is ABSENT else make(PARAMETER, (), {"index": i, "type": o.type}) for i, o in enumerate(term.operands)]
    alone = rebuild(term, given)
    operands = tuple(emission.buffers.get(operand) for operand in term.operands)
    name = word(term)
    return Library(_SHORT.get(name, name), alone, operands, emission.results[term], (name,)), frozenset({term})
