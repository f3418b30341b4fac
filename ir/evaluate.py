"""The NumPy evaluator: the reference meaning of a program, one term after the other, without recursion.

A run is a generator that stops at each term whose value depends on other processes (see `coset.ir.evaluate_parallel`); here a process
is alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import numpy as np

from coset.ir.dims import Poly, alone, substitute
from coset.ir.errors import CosetError, UnboundDim
from coset.ir.meter import METER
from coset.ir.op import Array
from coset.ir.program import Program
from coset.ir.term import Region, Term, intern, topological
from coset.ir.types import TensorType, TupleType, Type

Evaluated = Array | tuple[Array, ...]
Fallback = Callable[[Term, Sequence[Any]], Any]
Exchange = tuple[Term, list[Any]]  # a term that needs all processes, and what this one gives to it
Run = Generator[Exchange, Any, list[Any]]  # is sent the term's value here
Tap = Callable[[Term, Any], Any]  # is given each term with its value, and says what is taken for it


def evaluate(
    roots: Sequence[Term], inputs: Mapping[str, Array], *, fallback: Fallback | None = None, binding: Mapping[str, int] | None = None
) -> list[Any]:
    """The values of `roots` under `inputs` (by name). Each term is computed once; a value is freed after its last use.

    `fallback(term, operand values)` computes the terms whose op has no NumPy meaning (opaque ones, or ops that are
    defined by a term: `coset.dialects` expands those). `binding` are numbers of dim symbols; those that the types of the inputs
    and of computed values spell alone are found. `evaluate_program` knows the inputs that no root uses, too.

    Raises:
        CosetError: an input is missing, or a term has no meaning and there is no `fallback`.
    """
    return _alone(_started(roots, inputs, fallback, binding or {}), fallback)


def _started(
    roots: Sequence[Term], inputs: Mapping[str, Array], fallback: Fallback | None, binding: Mapping[str, int], tap: Tap | None = None
) -> Run:
    order = list(topological(roots))
    known = dict(binding)
    for term in order:
        if term.op.name == "builtin.input" and term.attribute("name") in inputs:
            bind(term.type, inputs[term.attribute("name")], known)
    return _run(order, _uses(order, roots), roots, {}, inputs, known, fallback, tap)


def _alone(run: Run, fallback: Fallback | None) -> list[Any]:
    """The results of a run of the only process there is."""
    answer: Any = None
    while True:
        try:
            term, operands = run.send(answer)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]
        assert term.op.joint is not None
        answer = term.op.joint(term, [operands], (1, 1), fallback)[0]


def evaluate_program(
    program: Program, inputs: Mapping[str, Array], *, fallback: Fallback | None = None, tap: Tap | None = None
) -> list[Any]:
    """The values of the program's roots under `inputs` (by name), as `evaluate` gives them. `tap` sees, and may change, the value of each
    term on the way, but not of those inside functions.

    Dim symbols get their numbers from all inputs, and where no root needs the term that introduces one, from that term.
    """
    return _alone(run_program(program, inputs, fallback=fallback, tap=tap), fallback)


def run_program(program: Program, inputs: Mapping[str, Array], *, fallback: Fallback | None = None, tap: Tap | None = None) -> Run:
    """The run of one process: see `evaluate_program`."""
    binding: dict[str, int] = {}
    for term in program.inputs:
        if term.attribute("name") in inputs:
            bind(term.type, inputs[term.attribute("name")], binding)
    introduces = program.introduces
    roots = list(program.roots)
    while True:
        try:
            values = yield from _started(roots, inputs, fallback, binding, tap)
            return values[: len(program.roots)]
        except UnboundDim as missing:
            more = [introduces[name] for name in missing.names if name in introduces]
            if all(term in roots for term in more):
                raise
            roots += [term for term in more if term not in roots]


def region_function(region: Region, binding: Mapping[str, int], fallback: Fallback | None = None) -> Callable[..., list[Any]]:
    """The payload function `region` as a function of the values of its parameters: what order to compute in is found once.

    `binding` has the dim symbols known outside; each call binds anew those that the parameters' types and the body spell alone.
    """
    given = set(region.parameters)
    order = [term for term in topological(region.results) if term not in given]
    uses = _uses(order, region.results)

    def apply(*arguments: Any) -> list[Any]:
        meter = METER.get()
        if meter is not None:
            meter(None, arguments)
        inner = dict(binding)
        values = dict(zip(region.parameters, arguments, strict=True))
        for parameter, value in values.items():
            bind(parameter.type, value, inner)
        return _alone(_run(order, uses, region.results, values, {}, inner, fallback), fallback)

    return apply


def _uses(order: Sequence[Term], roots: Sequence[Term]) -> Counter[Term]:
    uses = Counter(roots)
    for term in order:
        uses.update(term.operands)
    return uses


def _run(
    order: Sequence[Term], uses: Mapping[Term, int], roots: Sequence[Term], values: dict[Term, Any], inputs: Mapping[str, Array],
    binding: dict[str, int], fallback: Fallback | None, tap: Tap | None = None,
) -> Run:  # fmt: skip
    """Compute the terms of `order` into `values`; one that `uses` does not count any more is freed.

    A term whose dims have no numbers yet waits, with all that needs it, for the terms that come with them (a number of the host does
    not have the value whose dim it is as an operand).
    """
    left = dict(uses)
    while True:
        waiting: list[Term] = []
        unbound: UnboundDim | None = None
        held = set[Term]()
        for term in order:
            if held and any(operand in held for operand in term.operands):
                held.add(term)
                waiting.append(term)
                continue
            try:
                if term.op.joint is not None:
                    values[term] = yield term, [values[operand] for operand in term.operands]
                else:
                    values[term] = _value(term, values, inputs, fallback, binding)
            except UnboundDim as error:
                unbound = unbound or error
                held.add(term)
                waiting.append(term)
                continue
            bind(term.type, values[term], binding)
            if tap is not None:
                values[term] = tap(term, values[term])
            _free(term, left, values)
        if unbound is None:
            return [values[root] for root in roots]
        if len(waiting) == len(order):
            raise unbound
        order = waiting


def _free(term: Term, left: dict[Term, int], values: dict[Term, Any]) -> None:
    """Count the operands of a term as used; those that nothing needs any more are gone."""
    for operand in term.operands:
        left[operand] -= 1
        if not left[operand]:
            del values[operand]


def bind(type: Type, value: Any, binding: dict[str, int]) -> None:
    """Enter into `binding` the dim symbols that `type` spells alone, with their numbers in `value`; the first one stays."""
    if isinstance(type, TupleType):
        for item, part in zip(type.items, value, strict=True):
            bind(item, part, binding)
    elif isinstance(type, TensorType) and type.shape is not None and type.static is None:
        for dim, number in zip(type.shape, np.shape(value), strict=True):
            name = alone(dim)
            if name is not None:
                binding.setdefault(name, int(number))


def _value(
    term: Term, values: Mapping[Term, Any], inputs: Mapping[str, Array], fallback: Fallback | None, binding: Mapping[str, int]
) -> Any:
    name = term.op.name
    if name == "builtin.input":
        key = term.attribute("name")
        if key not in inputs:
            raise CosetError(f"input `{key}` is not given", help=f"given: {', '.join(inputs) or 'none'}")
        return inputs[key]
    operands = [values[operand] for operand in term.operands]
    meter = METER.get()
    if meter is not None:
        meter(term, operands)
    if name in ("builtin.absent", "builtin.token"):
        return None
    if name == "builtin.tuple":
        return tuple(operands)
    if term.op.meaning is not None:
        return term.op.meaning(term, operands, binding, fallback) if term.regions else term.op.meaning(term, operands, binding)
    if fallback is not None:
        return fallback(_with_numbers(term, binding), operands)
    raise CosetError(f"`{describe(term)}` has no NumPy meaning, so that the program cannot be evaluated")


def _with_numbers(term: Term, binding: Mapping[str, int]) -> Term:
    """`term` with numbers for the dim symbols in its attributes, which a fallback that sees arrays only does not know."""
    items = tuple((name, _numbered(value, binding)) for name, value in term.attributes)
    return term if items == term.attributes else intern(term.op, term.operands, items, term.regions, term.type)


def _numbered(value: Any, binding: Mapping[str, int]) -> Any:
    if isinstance(value, Poly):
        return substitute(value, binding)
    return tuple(_numbered(item, binding) for item in value) if type(value) is tuple else value


def describe(term: Term) -> str:
    """The op's name as the user knows it: for an opaque term its foreign name, for a hinted one that of its op."""
    if term.op.has("hinted"):
        return str(term.attribute("op"))
    if not term.op.has("foreign"):
        return term.op.name
    domain = term.attribute("domain")
    return f"{domain}.{term.attribute('name')}" if domain else str(term.attribute("name"))
