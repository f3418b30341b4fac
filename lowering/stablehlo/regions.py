"""Printed payload functions: words become blocks again, branches see their captured values, loops carry them as state."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coset.dialects.hub.mlir_ops import SCATTER
from coset.dialects.hub.mlir_text import number_text, type_text
from coset.dialects.hub.scalars import cast
from coset.dialects.hub.tensors import identity
from coset.ir.errors import require
from coset.ir.term import Region, Term
from coset.ir.types import DType, TensorType
from coset.lowering.stablehlo.attributes import attribute_texts, quoted, truth
from coset.lowering.stablehlo.body import PrintedBlock


def scalar(body: PrintedBlock, value: object, dtype: DType) -> tuple[str, str]:
    """A rank-0 constant with its type."""
    name, type = body.fresh(), type_text(TensorType(dtype, ()))
    body.line(f"{name} = stablehlo.constant dense<{number_text(value, dtype)}> : {type}")
    return name, type


def combiner_block(body: PrintedBlock, word: str, dtype: DType) -> list[str]:
    """The block of a payload function that is one op on its two parameters, or that returns the second one."""
    type = type_text(TensorType(dtype, ()))
    left, right = body.fresh(), body.fresh()
    head = f"^bb0({left}: {type}, {right}: {type}):"
    if word == "second":
        return [head, _return([(right, type)])]
    result = body.fresh()
    return [head, f"{result} = stablehlo.{word} {left}, {right} : {type}", _return([(result, type)])]


def comparison_block(
    body: PrintedBlock, direction: str, dtypes: Sequence[DType], *, settled: bool = False, total: bool = False
) -> list[str]:
    """The block of a comparator of the first pair of its parameters. `settled`: with one NaN, the largest, and one zero."""
    types = [type_text(TensorType(dtype, ())) for dtype in dtypes for _ in range(2)]
    names = [body.fresh() for _ in types]
    lines: list[str] = []
    sides = names[:2]
    if settled and dtypes[0].kind == "float":
        total = True
        sides = [_settled(body, name, dtypes[0], types[0], lines) for name in sides]
    kind = ", compare_type = #stablehlo<comparison_type TOTALORDER>" if total and dtypes[0].kind == "float" else ""
    result = _compared(body, direction, sides[0], sides[1], types[0], lines, kind)
    head = f"^bb0({', '.join(f'{name}: {type}' for name, type in zip(names, types, strict=True))}):"
    return [head, *lines, _return([(result, "tensor<i1>")])]


def _compared(body: PrintedBlock, direction: str, left: str, right: str, type: str, lines: list[str], kind: str = "") -> str:
    result = body.fresh()
    attributes = f"comparison_direction = #stablehlo<comparison_direction {direction}>{kind}"
    lines.append(f'{result} = "stablehlo.compare"({left}, {right}) <{{{attributes}}}> : ({type}, {type}) -> tensor<i1>')
    return result


def _settled(body: PrintedBlock, name: str, dtype: DType, type: str, lines: list[str]) -> str:
    """The parameter with 0.0 for -0.0 and one NaN for every NaN, as JAX's comparators have it."""
    constants = []
    for value in (0.0, np.nan):
        constants.append(body.fresh())
        lines.append(f"{constants[-1]} = stablehlo.constant dense<{number_text(cast(np.asarray(value), dtype)[()], dtype)}> : {type}")
    zero, nan = constants
    is_zero, is_nan = _compared(body, "EQ", name, zero, type, lines), _compared(body, "NE", name, name, type, lines)
    signless, result = body.fresh(), body.fresh()
    lines.append(f"{signless} = stablehlo.select {is_zero}, {zero}, {name} : tensor<i1>, {type}")
    lines.append(f"{result} = stablehlo.select {is_nan}, {nan}, {signless} : tensor<i1>, {type}")
    return result


def _return(values: Sequence[tuple[str, str]]) -> str:
    return f'"stablehlo.return"({", ".join(v for v, _ in values)}) : ({", ".join(t for _, t in values)}) -> ()'


def region_block(body: PrintedBlock, region: Region, *, captured: Sequence[str] | None = None, isolated: bool = False) -> list[str]:
    """The block of a region. With `captured` its parameters are these outer values, and the block has none of its own. An `isolated`
    one sees no value from outside, not even a constant."""
    inner = body.isolated(region.parameters) if isolated else body.inner(region.parameters)
    heads = []
    for index, parameter in enumerate(region.parameters):
        inner.define(parameter, inner.fresh() if captured is None else captured[index])
        heads.append(f"{inner.value(parameter)}: {inner.type(parameter)}")
    inner.emit(region.results)
    head = [f"^bb0({', '.join(heads)}):"] if captured is None and heads else []
    return [*head, *inner.lines, _return(inner.typed(region.results))]


# ---------------------------------------------------------------- reductions and windows


def reduce(body: PrintedBlock, term: Term) -> str:
    """`reduce` and `reduce_window` by a word, from its identity."""
    word, dtype = term.attribute("combiner"), term.tensor.dtype
    operands = [*body.typed(term.operands), scalar(body, identity(word, dtype)[()], dtype)]
    block = combiner_block(body, word, dtype)
    return body.op(term.op.name, operands, attribute_texts(term), [body.type(term)], regions=[block])


def with_region(body: PrintedBlock, term: Term) -> str:
    """Ops whose regions are printed as they are: the general forms of reductions and windows, `map`."""
    blocks = [region_block(body, region) for region in term.regions]
    name = term.op.name.removesuffix("_region")
    return body.op(name, body.typed(term.operands), attribute_texts(term), body.result_types(term.type), regions=blocks)


def select_and_scatter(body: PrintedBlock, term: Term) -> str:
    """Two payload functions, each a word or a region."""
    dtype, regions = term.tensor.dtype, list(term.regions)
    select, combiner = term.attribute("select"), term.attribute("combiner")
    chosen = region_block(body, regions.pop(0)) if select == "region" else comparison_block(body, select, [dtype])
    combined = region_block(body, regions.pop(0)) if combiner == "region" else combiner_block(body, combiner, dtype)
    return body.op(term.op.name, body.typed(term.operands), attribute_texts(term), [body.type(term)], regions=[chosen, combined])


# ---------------------------------------------------------------- sort, scatter


def sort(body: PrintedBlock, term: Term) -> str:
    """The order as a comparator."""
    dtypes = [operand.tensor.dtype for operand in term.operands]
    direction = term.attribute("direction")
    if direction == "region":
        block = region_block(body, term.regions[0])
    else:
        total = term.attribute("total")
        block = comparison_block(body, direction, dtypes, settled=not total, total=total)
    attributes = [f"dimension = {term.attribute('dimension')} : i64", f"is_stable = {truth(term.attribute('is_stable'))}"]
    return body.op(term.op.name, body.typed(term.operands), attributes, body.result_types(term.type), regions=[block])


def scatter(body: PrintedBlock, term: Term) -> str:
    """The update function as a block."""
    word, count = term.attribute("combiner"), term.attribute("count")
    block = region_block(body, term.regions[0]) if word == "region" else _combined(body, word, term.operands[:count])
    numbers = [f"{key} = [{', '.join(map(str, term.attribute(key)))}]" for key in SCATTER]
    numbers.append(f"index_vector_dim = {term.attribute('index_vector_dim')}")
    attributes = [
        f"scatter_dimension_numbers = #stablehlo.scatter<{', '.join(numbers)}>",
        f"indices_are_sorted = {truth(term.attribute('indices_are_sorted'))}",
        f"unique_indices = {truth(term.attribute('unique_indices'))}",
    ]  # fmt: skip
    return body.op(term.op.name, body.typed(term.operands), attributes, body.result_types(term.type), regions=[block])


def _combined(body: PrintedBlock, word: str, operands: Sequence[Term]) -> list[str]:
    """One word for each of several operands."""
    if len(operands) == 1:
        return combiner_block(body, word, operands[0].tensor.dtype)
    types = [type_text(TensorType(operand.tensor.dtype, ())) for operand in operands]
    left, right = ([body.fresh() for _ in types] for _ in range(2))
    heads = ", ".join(f"{name}: {type}" for name, type in zip([*left, *right], types * 2, strict=True))
    lines, results = [f"^bb0({heads}):"], []
    for a, b, type in zip(left, right, types, strict=True):
        results.append((b, type) if word == "second" else (body.fresh(), type))
        if word != "second":
            lines.append(f"{results[-1][0]} = stablehlo.{word} {a}, {b} : {type}")
    return [*lines, _return(results)]


# ---------------------------------------------------------------- control flow


def choice(body: PrintedBlock, term: Term) -> str:
    """`if` and `case`: branches have no parameters, they see what they capture."""
    captured = [body.value(operand) for operand in term.operands[1:]]
    blocks = [region_block(body, region, captured=captured) for region in term.regions]
    return body.op(term.op.name, body.typed(term.operands[:1]), [], body.result_types(term.type), regions=blocks)


def loop(body: PrintedBlock, term: Term) -> str:
    """`while`: each of its regions has the state as parameters."""
    blocks = [region_block(body, region) for region in term.regions]
    return body.op(term.op.name, body.typed(term.operands), [], body.result_types(term.type), regions=blocks)


def scan(body: PrintedBlock, term: Term) -> str:
    """CHLO's scan: inputs and carries, outputs and carries are told apart by their counts."""
    given = dict(term.attributes)
    carries = len(term.operands) - given["inputs"]
    attributes = [f"dimension = {given['dimension']} : i64"]
    attributes += [f"{name} = true" for name in ("is_associative", "is_reverse") if given[name]]
    require(given["size"] is None or isinstance(given["size"], int), "its number of steps must be a number")
    if given["size"] is not None:
        attributes.append(f"scan_dim_size = {given['size']} : i64")
    for name, counts in (("operandSegmentSizes", (given["inputs"], carries)), ("resultSegmentSizes", (len(given["slices"]), carries))):
        attributes.append(f"{name} = array<i32: {counts[0]}, {counts[1]}>")
    block = region_block(body, term.regions[0], isolated=True)
    return body.op(term.op.name, body.typed(term.operands), attributes, body.result_types(term.type), regions=[block])


def composite(body: PrintedBlock, term: Term) -> str:
    """A call by name, its decomposition a private function beside `main`."""
    region = term.regions[0]
    inner = body.function(region.parameters)
    heads = []
    for parameter in region.parameters:
        inner.define(parameter, inner.fresh())
        heads.append(f"{inner.value(parameter)}: {inner.type(parameter)}")
    inner.emit(region.results)
    types = ", ".join(map(inner.type, region.results))
    values = ", ".join(map(inner.value, region.results))
    name = body.add_function(", ".join(heads), types, [*inner.lines, f"return {values} : {types}" if values else "return"])
    given = term.attribute("attributes") or "{}"
    attributes = [f"name = {quoted(term.attribute('name'))}", f"decomposition = @{name}", f"composite_attributes = {given}"]
    attributes.append(f"version = {term.attribute('payload') or 0} : i32")
    return body.op(term.op.name, body.typed(term.operands), attributes, body.result_types(term.type))
