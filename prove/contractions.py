"""Elements of reductions, products and convolutions: folds over index variables. For the denotation in `prove.denote`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coset.dialects.hub.tensors import identity
from coset.ir import dims
from coset.ir.dims import Dim
from coset.ir.term import Term
from coset.prove import functions, scalar
from coset.prove.movement import inside, spread_out
from coset.prove.scalar import MonomialSum

if TYPE_CHECKING:
    from coset.prove.denote import Denotation

Index = tuple[Dim, ...]


def reduce(elements: Denotation, term: Term, index: Index) -> MonomialSum:
    (x,) = term.operands
    axes = term.attribute("dimensions")
    variables = elements.bound([x.tensor.dims[axis] for axis in axes])
    bound = {axis: dims.symbol(name) for axis, (name, _) in zip(axes, variables, strict=True)}
    kept = iter(index)
    source = tuple(bound[axis] if axis in bound else next(kept) for axis in range(x.tensor.rank))
    return elements.folded(term.attribute("combiner"), variables, lambda: elements.element(x, source), x.tensor)


def dot(elements: Denotation, term: Term, index: Index) -> MonomialSum:
    a, b = term.operands
    batch = (term.attribute("lhs_batch"), term.attribute("rhs_batch"))
    contract = (term.attribute("lhs_contract"), term.attribute("rhs_contract"))
    variables = elements.bound([a.tensor.dims[axis] for axis in contract[0]])
    sources: list[list[Dim]] = []
    rest = list(index[len(batch[0]) :])
    for side, x in enumerate((a, b)):
        source: list[Dim] = []
        for axis in range(x.tensor.rank):
            if axis in batch[side]:
                source.append(index[batch[side].index(axis)])
            elif axis in contract[side]:
                source.append(dims.symbol(variables[contract[side].index(axis)][0]))
            else:
                source.append(rest.pop(0))
        sources.append(source)

    def body() -> MonomialSum:
        factors = [elements.element(x, tuple(source)) for x, source in zip((a, b), sources, strict=True)]
        return elements.scalar("multiply", factors, term.tensor)

    return elements.folded("add", variables, body, term.tensor, "dot ")  # its products are not rounded one by one


def convolution(elements: Denotation, term: Term, index: Index) -> MonomialSum:
    x, w = term.operands
    batch, channel, *places = index
    groups, batches = term.attribute("feature_group_count"), term.attribute("batch_group_count")
    filters, inner, *window = w.tensor.dims
    variables = elements.bound([extent for extent in (inner, *window) if extent != 1])
    bound = iter(variables)
    c, *k = (0 if extent == 1 else dims.symbol(next(bound)[0]) for extent in (inner, *window))
    count = groups if groups != 1 else batches
    share = dims.floordiv(filters, count)  # without a rest, as the type rule asks
    group = elements.known.divided(channel, share)[0] if count != 1 else 0
    first = dims.add(c, dims.multiply(group, inner)) if groups != 1 else c
    image = dims.add(batch, dims.multiply(group, term.tensor.dims[0])) if batches != 1 else batch
    steps = zip(
        term.attribute("strides"),
        term.attribute("rhs_dilation"),
        term.attribute("lhs_dilation"),
        term.attribute("padding"),
        strict=True,
    )
    source: list[Dim] = []
    hit = scalar.ONE  # whether the window stands on elements, not between them
    for o, j, (stride, dilation, spread, (low, _)) in zip(places, k, steps, strict=True):
        place = dims.subtract(dims.add(dims.multiply(o, stride), dims.multiply(j, dilation)), low)
        element, on = spread_out(place, spread)
        source.append(element)
        hit = scalar.multiply(hit, on)

    def body() -> MonomialSum:
        zero = elements.number(0.0, term.tensor)
        value = functions.choice(hit, inside(elements, x, (image, first, *source), zero, axis=2), zero)  # the groups are all there
        return elements.scalar("multiply", [value, elements.element(w, (channel, c, *k))], term.tensor)

    return elements.folded("add", variables, body, term.tensor, "convolution ")


def reduce_window(elements: Denotation, term: Term, index: Index) -> MonomialSum:
    (x,) = term.operands
    combiner = term.attribute("combiner")
    window = term.attribute("window_dimensions")
    variables = elements.bound([extent for extent in window if extent != 1])
    bound = iter(variables)
    rows = zip(
        index, window, *(term.attribute(key) for key in ("window_strides", "base_dilations", "window_dilations", "padding")), strict=True
    )
    source: list[Dim] = []
    hit = scalar.ONE  # whether the window stands on elements, not between them
    for o, extent, stride, spread, dilation, (low, _) in rows:
        j: Dim = 0 if extent == 1 else dims.symbol(next(bound)[0])
        place = dims.subtract(dims.add(dims.multiply(o, stride), dims.multiply(j, dilation)), low)
        element, on = spread_out(place, spread)
        source.append(element)
        hit = scalar.multiply(hit, on)

    def body() -> MonomialSum:
        nothing = elements.number(identity(combiner, x.tensor.dtype), x.tensor)
        return functions.choice(hit, inside(elements, x, tuple(source), nothing), nothing)

    return elements.folded(combiner, variables, body, term.tensor, "window ")
