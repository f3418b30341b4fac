"""Constructors of terms with payload functions: a region is made of a Python function over its parameter terms."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from coset.ir.op import Attributes
from coset.ir.term import PARAMETER, Region, Term, make
from coset.ir.types import Type

Body = Callable[..., Term | Sequence[Term]]


def region(types: Sequence[Type], body: Body) -> Region:
    """The payload function that `body` builds over parameters of these types."""
    parameters = tuple(make(PARAMETER, (), {"index": i, "type": type}) for i, type in enumerate(types))
    built = body(*parameters)
    return Region(parameters, (built,) if isinstance(built, Term) else tuple(built))


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
