"""The tables that inputs of integers are seen to be positions in: their rows are all read by inputs of so many seeds."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from coset.ir import dims
from coset.ir.dims import Dim
from coset.ir.evaluate import describe
from coset.ir.program import Program
from coset.ir.term import INPUT, Term
from coset.ir.types import TensorType


def seeds_for(program: Program, binding: Mapping[str, int]) -> int:
    """How many seeds read all rows of the tables that are seen."""
    tables, inputs = known_tables(program, binding), {term.attribute("name"): term for term in program.inputs}
    counts = {name: prod(dims.evaluate(dim, binding) for dim in inputs[name].tensor.dims) for name in tables}
    return max((-(-min(rows) // max(counts[name], 1)) for name, rows in tables.items() if rows), default=0)


def known_tables(program: Program, binding: Mapping[str, int]) -> dict[str, list[int]]:
    """The sizes of `tables_of` that are known."""
    found = tables_of(program).items()
    return {name: [dims.evaluate(rows, binding) for rows in each if dims.symbols(rows) <= binding.keys()] for name, each in found}


def tables_of(program: Program) -> dict[str, list[Dim]]:
    """For each input of integers the sizes of the axes that its elements are seen to be positions on."""
    found: dict[str, list[Dim]] = {}
    origins: dict[Term, set[str]] = {}  # the inputs that an index is made of, element by element
    for term in program.terms():
        if not isinstance(term.type, TensorType):
            continue
        index = term.operands[1] if describe(term).split(".")[-1].lower() == "gather" else None
        for name in origins.get(index, ()) if index is not None else ():
            found.setdefault(name, []).extend(_axes(term))
        if term.type.dtype.kind not in ("int", "uint"):
            continue
        if term.op is INPUT:
            origins[term] = {term.attribute("name")}
        elif term.op.has("elementwise") or term.op.has("movement"):
            origins[term] = set().union(*(origins.get(operand, set()) for operand in term.operands))
    return found


def _axes(gather: Term) -> list[Dim]:
    """The sizes of the axes that a gather's indices point into."""
    table = gather.operands[0].tensor.dims
    attributes = dict(gather.attributes)
    if "start_index_map" in attributes:
        return [table[axis] for axis in attributes["start_index_map"]]
    return [table[dict(attributes.get("given", ()), **attributes).get("axis", 0)]]
