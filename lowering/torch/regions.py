"""Hub ops with payload functions as torch code: a region becomes a Python function inside the program.

The bodies of reductions, sorts and scatters are called on whole tensors, one element of each parameter at every place; so their ops
must be elementwise. Branches and loops read their condition back to the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from coset.ir.errors import CosetError
from coset.ir.term import Term, topological
from coset.ir.types import TensorType, TupleType
from coset.lowering.torch.dims import tuple_text
from coset.lowering.torch.movement import Expression, position

if TYPE_CHECKING:
    from coset.lowering.torch.program import Writer

_STILL = frozenset({"stablehlo.broadcast_in_dim", "stablehlo.reshape", "stablehlo.transpose"})  # of rank 0 to rank 0: nothing
_WINDOW = ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
SCATTERING = ("update_window_dims", "inserted_window_dims", "input_batching_dims", "scatter_indices_batching_dims",
              "scatter_dims_to_operand_dims")  # fmt: skip


def scalar_body(writer: Writer, term: Term, number: int = 0, name: str = "body") -> str:
    """The name of the function that is region `number` on whole tensors.

    Raises:
        CosetError: its ops are not elementwise.
    """
    region = term.regions[number]
    for inner in topological(region.results):
        type = inner.type
        fine = isinstance(type, TensorType) and type.rank == 0
        fine = fine and (inner.op.has("elementwise") or inner.op.has("leaf") or inner.op.name in _STILL)
        if not fine:
            raise CosetError(f"`{term.op.name}` with `{inner.op.name}` in its function has no torch expression")
    return writer.function(region, name, scalars=True)


def _result(term: Term, text: str) -> str:
    """`text` is a tuple; the term may be its only item."""
    return text if isinstance(term.type, TupleType) else f"{text}[0]"


def if_(writer: Writer, term: Term, x: Sequence[str]) -> str:
    """One branch is run."""
    then, other = (writer.function(region, name) for region, name in zip(term.regions, ("then", "otherwise"), strict=True))
    captured = ", ".join(x[1:])
    return _result(term, f"({then}({captured}) if bool({x[0]}) else {other}({captured}))")


def case(writer: Writer, term: Term, x: Sequence[str]) -> str:
    """One branch is run, the last one for an index out of range."""
    branches = [writer.function(region, f"branch_{i}") for i, region in enumerate(term.regions)]
    return _result(term, f"chosen({tuple_text(branches)}, {x[0]})({', '.join(x[1:])})")


def while_(writer: Writer, term: Term, x: Sequence[str]) -> str:
    """A loop of the host."""
    condition, body = (writer.function(region, name) for region, name in zip(term.regions, ("goes_on", "step"), strict=True))
    return _result(term, f"loop({condition}, {body}, {tuple_text(x)})")


def _called(writer: Writer, term: Term, x: Sequence[str]) -> str:
    return _result(term, f"{writer.function(term.regions[0], 'inner')}({', '.join(x)})")


def map_(writer: Writer, term: Term, x: Sequence[str]) -> str:
    """The body on whole tensors."""
    return f"torch.broadcast_to({scalar_body(writer, term)}({', '.join(x)})[0], {writer.shape(term.tensor.dims)})"


def reduce_region(writer: Writer, term: Term, x: Sequence[str]) -> str:
    """The body step by step, all results at once."""
    body, count = scalar_body(writer, term), len(x) // 2
    return _result(term, f"reduce_by({body}, {tuple_text(x[:count])}, {tuple_text(x[count:])}, {tuple_text(term.attribute('dimensions'))})")


def reduce_window_region(writer: Writer, term: Term, x: Sequence[str]) -> str:
    """The body step by step, all windows at once."""
    body, count = scalar_body(writer, term), len(x) // 2
    parts = [tuple_text(term.attribute(key)) for key in _WINDOW]
    parts.append(tuple_text(tuple_text(pair) for pair in term.attribute("padding")))
    return _result(term, f"reduce_window_by({body}, {tuple_text(x[:count])}, {tuple_text(x[count:])}, {', '.join(parts)})")


def sort(writer: Writer, term: Term, x: Sequence[str]) -> str:
    """A merge sort by the comparator."""
    body = scalar_body(writer, term, name="before")
    return _result(term, f"sort_by({body}, {tuple_text(x)}, {term.attribute('dimension')})")


def scatter(writer: Writer, term: Term, x: Sequence[str]) -> str:
    """One update after the other where a position repeats."""
    body, count = scalar_body(writer, term), term.attribute("count")
    named = [f"{key}={tuple_text(term.attribute(key))}" for key in SCATTERING if term.attribute(key)]
    named.append(f"index_vector_dim={term.attribute('index_vector_dim')}")
    indices = position(term.operands[count], x[count])
    return _result(term, f"scatter_by({body}, {tuple_text(x[:count])}, {indices}, {tuple_text(x[count + 1 :])}, {', '.join(named)})")


def select_and_scatter(writer: Writer, term: Term, x: Sequence[str]) -> str:
    """Functions for the choice, the combination, or both; a word for one of them becomes a function too."""
    select, combiner = term.attribute("select"), term.attribute("combiner")
    dtype = term.tensor.dtype
    if dtype.kind == "complex" or dtype.name == "u64" or dtype.kind == "bool":
        raise CosetError(f"`{term.op.name}` of {dtype} with functions of its own has no torch expression")
    choose = scalar_body(writer, term, 0, "keeps") if select == "region" else f"lambda a, b: (a {_SIGNS[select]} b,)"
    if combiner == "region":
        body = scalar_body(writer, term, len(term.regions) - 1)
    else:
        body = f"lambda a, b: (combine(a, b, {combiner!r}),)" if combiner != "second" else "lambda a, b: (b,)"
    parts = [tuple_text(term.attribute(key)) for key in ("window_dimensions", "window_strides")]
    parts.append(tuple_text(tuple_text(pair) for pair in term.attribute("padding")))
    return f"select_and_scatter_by({choose}, {body}, {', '.join(x)}, {', '.join(parts)})"


_SIGNS = {"GE": ">=", "GT": ">", "LE": "<=", "LT": "<", "EQ": "==", "NE": "!="}
REGIONS: dict[str, Expression] = {f"stablehlo.{f.__name__.rstrip('_')}": f for f in (
    if_, case, while_, map_, reduce_region, reduce_window_region)}  # fmt: skip
REGIONS["stablehlo.composite"] = _called
WITH_FUNCTIONS: dict[str, Expression] = {f"stablehlo.{f.__name__}": f for f in (sort, scatter, select_and_scatter)}
