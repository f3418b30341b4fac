"""Constructors of terms with payload functions: a region is made of a Python function over its parameter terms."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from coset.dialects.hub.terms import splat
from coset.ir.builtin import DIMS
from coset.ir.op import Attributes
from coset.ir.term import CONSTANT, PARAMETER, TUPLE, Region, Term, make, rebuild, topological
from coset.ir.types import DTYPES, DType, TensorType, TupleType, Type

Body = Callable[..., Term | Sequence[Term]]


def region(types: Sequence[Type], body: Body) -> Region:
    """The payload function that `body` builds over parameters of these types."""
    parameters = tuple(make(PARAMETER, (), {"index": i, "type": type}) for i, type in enumerate(types))
    built = body(*parameters)
    return Region(parameters, (built,) if isinstance(built, Term) else tuple(built))


def applied(region: Region, operands: Sequence[Term]) -> list[Term]:
    """The results of `region` with `operands` for its parameters."""
    done = dict(zip(region.parameters, operands, strict=True))
    for term in topological(region.results):
        if term not in done:
            done[term] = rebuild(term, [done[operand] for operand in term.operands])
    return [done[result] for result in region.results]


def _types(terms: Sequence[Term]) -> list[Type]:
    return [term.type for term in terms]


def if_term(pred: Term, captured: Sequence[Term], on_true: Body, on_false: Body) -> Term:
    """`on_true(*captured)` where `pred`, else `on_false(*captured)`."""
    return _choice("stablehlo.if", pred, captured, (on_true, on_false), {})


def case_term(index: Term, captured: Sequence[Term], *branches: Body) -> Term:
    """`branches[index](*captured)`, the last one for an index out of range."""
    return _choice("stablehlo.case", index, captured, branches, {})


def composite_term(name: str, operands: Sequence[Term], body: Body, *, attributes: object = (), payload: object = ()) -> Term:
    """The composite `name`, which means `body(*operands)`."""
    made = region(_types(operands), body)
    results = tuple(_types(made.results))
    given: Attributes = {"name": name, "results": results, "attributes": attributes, "payload": payload}
    return make("stablehlo.composite", operands, given, (made,))


def while_term(state: Sequence[Term], condition: Body, body: Body) -> Term:
    """The state, sent through `body` as long as `condition` is true of it."""
    types = _types(state)
    return make("stablehlo.while", state, {}, (region(types, condition), region(types, body)))


def _choice(name: str, choice: Term, captured: Sequence[Term], bodies: Sequence[Body], attributes: Attributes) -> Term:
    regions = tuple(region(_types(captured), body) for body in bodies)
    results = tuple(_types(regions[0].results))
    return make(name, (choice, *captured), {**attributes, "results": results}, regions)


def is_closed(term: Term) -> bool:
    """True for a constant (perhaps repeated) and for numbers of dims: what a region of StableHLO text mentions from outside."""
    core = term.operands[0] if term.op.name == "stablehlo.broadcast_in_dim" else term
    return core.op in (CONSTANT, DIMS) or core.op.name == "stablehlo.iota"


def plain_choice(term: Term) -> Term | None:
    """An `if` or `case` that captures what its branches use, once and in the order of use, and holds constants itself: as it is read from
    text. None where it does already, and for any other op."""
    if term.op.name not in ("stablehlo.if", "stablehlo.case"):
        return None
    captured = term.operands[1:]
    used = dict.fromkeys(captured[place] for own in term.regions for place in _uses(own) if not is_closed(captured[place]))
    kept = list(used)
    if kept == list(captured):
        return None

    def branch(own: Region) -> Body:
        def body(*parameters: Term) -> Sequence[Term]:
            inner = dict(zip(kept, parameters, strict=True))
            return applied(own, [inner.get(operand, operand) for operand in captured])

        return body

    regions = tuple(region(_types(kept), branch(own)) for own in term.regions)
    return make(term.op, (term.operands[0], *kept), dict(term.attributes), regions)


def as_selection(term: Term) -> Term | None:
    """An `if` or `case` as a selection from what all of its branches give: none of them does more than compute, and ends. None for any
    other op, and where one may not."""
    if term.op.name not in ("stablehlo.if", "stablehlo.case") or not all(map(_only_computes, term.regions)):
        return None
    sides = [applied(own, term.operands[1:]) for own in term.regions]
    if any(not isinstance(each.type, TensorType) or each.type != sides[0][place].type for side in sides for place, each in enumerate(side)):
        return None
    choice = term.operands[0]
    if term.op.name == "stablehlo.if":
        whether = [choice]
    else:
        numbers = [splat(place, choice.tensor.dtype, ()) for place in range(len(sides) - 1)]
        whether = [make("stablehlo.compare", (choice, number), {"direction": "EQ"}) for number in numbers]
    found = sides[-1]
    for condition, side in zip(reversed(whether), reversed(sides[:-1]), strict=True):
        found = [_selected(condition, one, other) for one, other in zip(side, found, strict=True)]
    return make(TUPLE, found) if isinstance(term.type, TupleType) else found[0]


def _selected(condition: Term, one: Term, other: Term) -> Term:
    shape = one.tensor.dims
    spread = make("stablehlo.broadcast_in_dim", (condition,), {"shape": shape, "broadcast_dimensions": ()}) if shape else condition
    return make("stablehlo.select", (spread, one, other))


def _only_computes(own: Region) -> bool:
    """Whether a function draws nothing, does nothing beside, and has no loop, which may not end."""
    for term in topological(own.results):
        kept = term.op.name == "onnx.node" and not term.attribute("effect") and term.attribute("name") != "Loop"
        does_more = any(term.op.has(trait) for trait in ("effect", "distributed")) or (term.op.has("foreign") and not kept)
        does_more = does_more or term.op.name == "stablehlo.while" or term.op.name.startswith("stablehlo.rng")
        if does_more or not all(map(_only_computes, term.regions)):
            return False
    return True


def _uses(region: Region) -> list[int]:
    """The parameters in the order in which a function uses them."""
    terms = [operand for term in topological(region.results) for operand in term.operands]
    return [term.attribute("index") for term in (*terms, *region.results) if term.op is PARAMETER]


# ---------------------------------------------------------------- orders of floats


def total_order(x: Term) -> Term:
    """Signed integers in IEEE total order of the floats `x`: the bits, turned round below zero."""
    dtype = x.tensor.dtype
    integer = DTYPES[f"i{dtype.bits}"]
    shape = x.tensor.dims
    bits = make("stablehlo.bitcast_convert", (x,), {"dtype": integer})
    sign = make("stablehlo.shift_right_arithmetic", (bits, splat(dtype.bits - 1, integer, shape)))
    return make("stablehlo.xor", (bits, make("stablehlo.and", (sign, splat((1 << dtype.bits - 1) - 1, integer, shape)))))


def one_zero_one_nan(x: Term) -> Term:
    """`x` with 0.0 for -0.0 and one NaN for every NaN, so that total order takes each of them as equal."""
    zero, nan = (splat(value, x.tensor.dtype, x.tensor.dims) for value in (0.0, np.nan))
    is_zero = make("stablehlo.compare", (x, zero), {"direction": "EQ"})
    is_nan = make("stablehlo.compare", (x, x), {"direction": "NE"})
    return make("stablehlo.select", (is_nan, nan, make("stablehlo.select", (is_zero, zero, x))))


def comparator(direction: str, dtypes: Sequence[DType]) -> Region:
    """What `direction` means for a sort of operands of these dtypes, the first one of floats: NaN is the largest, zeros are equal."""

    def body(a: Term, b: Term, *_: Term) -> Term:
        keys = [total_order(one_zero_one_nan(x)) for x in (a, b)]
        return make("stablehlo.compare", keys, {"direction": direction})

    return region([TensorType(dtype, ()) for dtype in dtypes for _ in range(2)], body)


def direction_of(payload: Region) -> str | None:
    """The direction whose `comparator` this is, or None."""
    dtypes = [parameter.tensor.dtype for parameter in payload.parameters[::2]]
    if dtypes[0].kind != "float" or f"i{dtypes[0].bits}" not in DTYPES:
        return None
    return next((direction for direction in ("LT", "GT", "LE", "GE") if comparator(direction, dtypes) == payload), None)
