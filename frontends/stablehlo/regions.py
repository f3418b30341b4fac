"""Operations with payload functions: standard ones become words, others regions whose outer values are operands."""

from __future__ import annotations

from typing import Any

import numpy as np

from coset.dialects.hub.chlo_scan import of_region
from coset.dialects.hub.mlir_ops import SCATTER
from coset.dialects.hub.region_terms import direction_of, is_closed
from coset.dialects.hub.tensors import identity
from coset.dialects.hub.terms import is_splat, numpy_broadcast
from coset.dialects.hub.types import COMBINERS
from coset.frontends.stablehlo.attributes import Foreign, dims_of, sized
from coset.frontends.stablehlo.node import Builder, Built, MlirOperation
from coset.frontends.stablehlo.opaque import captured
from coset.ir.term import PARAMETER, Region, Term, get, make
from coset.ir.types import TensorType, TupleType, Type

_MIRRORED = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE"}


def combiner_word(region: Any) -> str | None:
    """The word of a payload function that is one op on its two parameters, or None."""
    (block,) = region.blocks
    operations = [op.operation for op in block.operations]
    arguments = list(block.arguments)
    if len(arguments) != 2:
        return None
    if len(operations) == 1:
        return "second" if list(operations[0].operands) == arguments[1:] else None
    if len(operations) != 2 or set(operations[0].operands) != set(arguments) or len(operations[0].operands) != 2:
        return None
    word = operations[0].name.removeprefix("stablehlo.")
    returned = list(operations[1].operands) == list(operations[0].results)
    same = operations[0].name.startswith("stablehlo.") and word in COMBINERS and returned
    return word if same else None


def comparison_word(region: Any) -> tuple[str, bool] | None:
    """Direction of a comparator that compares its first two parameters, and whether by total order; None for any other."""
    (block,) = region.blocks
    operations = [op.operation for op in block.operations]
    if len(operations) != 2 or operations[0].name != "stablehlo.compare" or list(operations[1].operands) != list(operations[0].results):
        return None
    first, second = list(block.arguments)[:2]
    operands = list(operations[0].operands)
    if set(operands) != {first, second} or len(operands) != 2:
        return None
    text = str(operations[0].attributes["comparison_direction"])
    direction = text.rstrip(">").split()[-1]
    if direction not in _MIRRORED:
        return None
    kind = str(operations[0].attributes["compare_type"]) if "compare_type" in operations[0].attributes else ""
    return (direction if operands[0] == first else _MIRRORED[direction]), "TOTALORDER" in kind


def payload(node: MlirOperation, index: int) -> Region:
    """Region `index` of the operation as a function of its block's parameters.

    Raises:
        Foreign: it uses an outer value that is no constant, or has parameters that we have no type for.
    """
    region = node.regions[index]
    (block,) = region.blocks
    closed: dict[Any, Term] = {}
    for value in captured(node.op):
        term = node.scope[value]
        if not is_closed(term):
            raise Foreign
        closed[value] = term
    parameters = [parameter(i, _static(argument)) for i, argument in enumerate(block.arguments)]
    return node.importer.region(region, parameters, closed)


def parameter(index: int, type: Type) -> Term:
    """The parameter `index` of a payload function."""
    return make(PARAMETER, (), {"index": index, "type": type})


def _static(argument: Any) -> Type:
    found = sized(argument.type)
    if found is None or None in found[1]:
        raise Foreign
    return TensorType(found[0], tuple(size for size in found[1] if size is not None))


def results(term: Term) -> Built:
    """The results of an op that has one or several."""
    return [get(term, index) for index in range(len(term.type.items))] if isinstance(term.type, TupleType) else term


# ---------------------------------------------------------------- reductions and windows


def _starts_with_identity(init: Term, word: str) -> bool:
    value = is_splat(init)
    return value is not None and bool(np.array_equal(value.array().reshape(1).view(np.uint8), _bits(identity(word, value.type.dtype))))


def _bits(array: Any) -> Any:
    return np.asarray(array).reshape(1).view(np.uint8)


def _folded(node: MlirOperation, name: str, attributes: dict[str, Any]) -> Built:
    """`reduce` or `reduce_window` of one operand by a word, its init value combined in; else the form with a region."""
    count = len(node.operands) // 2
    word = combiner_word(node.regions[0]) if count == 1 else None
    if word is None or word == "second" or node.operands[0].tensor.dtype != node.result()[0]:
        return results(make(f"{name}_region", node.operands, attributes, (payload(node, 0),)))
    operand, init = node.operands
    if not _starts_with_identity(init, word) and word in ("add", "multiply") and _pads(attributes):
        return make(f"{name}_region", node.operands, attributes, (payload(node, 0),))  # each padding element counts
    term = make(name, (operand,), {**attributes, "combiner": word})
    if _starts_with_identity(init, word):
        return term
    return make(f"stablehlo.{word}", (numpy_broadcast(init, term.tensor.dims), term))


def _pads(attributes: dict[str, Any]) -> bool:
    """True for windows that may see elements that are not the operand's: those are the init value."""
    return any(low or high for low, high in attributes.get("padding", ())) or any(
        step != 1 for step in attributes.get("base_dilations", ())
    )


def _reduce(node: MlirOperation) -> Built:
    axes = node.value("dimensions")
    if list(axes) != sorted(axes):
        raise Foreign
    return _folded(node, "stablehlo.reduce", {"dimensions": tuple(axes)})


def _window(node: MlirOperation, rank: int) -> dict[str, Any]:
    ones = (1,) * rank
    pairs = node.value("padding")
    return {
        "window_dimensions": node.value("window_dimensions", ones), "window_strides": node.value("window_strides", ones),
        "padding": ((0, 0),) * rank if pairs is None else tuple((int(low), int(high)) for low, high in np.asarray(pairs).reshape(-1, 2)),
    }  # fmt: skip


def _reduce_window(node: MlirOperation) -> Built:
    rank = node.operands[0].tensor.rank
    ones = (1,) * rank
    dilations = {key: node.value(key, ones) for key in ("base_dilations", "window_dilations")}
    return _folded(node, "stablehlo.reduce_window", {**_window(node, rank), **dilations})


def _select_and_scatter(node: MlirOperation) -> Built:
    select, combiner = comparison_word(node.regions[0]), combiner_word(node.regions[1])
    regions = []
    if select is None or select[1]:
        regions.append(payload(node, 0))
    if combiner is None or combiner == "second":
        regions.append(payload(node, 1))
    words = {
        "select": "region" if select is None or select[1] else select[0],
        "combiner": "region" if combiner in (None, "second") else combiner,
    }
    return make(node.name, node.operands, {**_window(node, node.operands[0].tensor.rank), **words}, tuple(regions))


# ---------------------------------------------------------------- sort, scatter, map


def _sort(node: MlirOperation) -> Built:
    rank = node.operands[0].tensor.rank
    word = comparison_word(node.regions[0])
    body = payload(node, 0) if word is None else None
    if body is not None and (direction := direction_of(body)) is not None:
        word, body = (direction, False), None  # NaN is the largest, zeros are equal: what a direction means here
    attributes = {
        "dimension": node.value("dimension", -1) % max(1, rank), "is_stable": bool(node.value("is_stable", False)),
        "direction": "region" if word is None else word[0], "total": word is not None and word[1],
    }  # fmt: skip
    return results(make(node.name, node.operands, attributes, () if body is None else (body,)))


def _scatter(node: MlirOperation) -> Built:
    numbers = dims_of(node.op, "scatter_dimension_numbers", "ScatterDimensionNumbers")
    count = (len(node.operands) - 1) // 2
    word = combiner_word(node.regions[0]) if count == 1 else None
    same = len({operand.tensor.dtype for operand in (node.operands[0], node.operands[-1])}) == 1
    attributes = {
        **{ours: tuple(getattr(numbers, theirs)) for ours, theirs in SCATTER.items()}, "index_vector_dim": numbers.index_vector_dim,
        "indices_are_sorted": bool(node.value("indices_are_sorted", False)), "unique_indices": bool(node.value("unique_indices", False)),
        "combiner": word if word is not None and same else "region", "count": count,
    }  # fmt: skip
    regions = () if attributes["combiner"] != "region" else (payload(node, 0),)
    return results(make(node.name, node.operands, attributes, regions))


def _map(node: MlirOperation) -> Built:
    body = payload(node, 0)
    attributes = {"dimensions": tuple(node.value("dimensions")), "dtype": body.results[0].tensor.dtype}
    return make(node.name, node.operands, attributes, (body,))


# ---------------------------------------------------------------- control flow


def _outer(node: MlirOperation) -> tuple[dict[Any, Term], list[Any]]:
    """The outer values of the regions: those that are constants, and the others."""
    closed: dict[Any, Term] = {}
    free = []
    for value in captured(node.op):
        term = node.scope[value]
        if is_closed(term):
            closed[value] = term
        else:
            free.append(value)
    return closed, free


def _choice(node: MlirOperation) -> Built:
    closed, free = _outer(node)
    values = [node.scope[value] for value in free]
    parameters = [parameter(index, term.type) for index, term in enumerate(values)]
    scope = {**closed, **dict(zip(free, parameters, strict=True))}
    regions = [node.importer.region(region, (), scope) for region in node.regions]
    made = tuple(Region(tuple(parameters), region.results) for region in regions)
    types = [tuple(result.type for result in region.results) for region in made]
    if any(other != types[0] for other in types):
        raise Foreign  # sizes that depend on the branch
    return results(make(node.name, (node.operands[0], *values), {"results": types[0]}, made))


def _while(node: MlirOperation) -> Built:
    closed, free = _outer(node)
    state = [*node.operands, *(node.scope[value] for value in free)]
    parameters = [parameter(index, term.type) for index, term in enumerate(state)]
    count = len(node.operands)
    scope = {**closed, **dict(zip(free, parameters[count:], strict=True))}
    condition, body = (node.importer.region(region, parameters[:count], scope) for region in node.regions)
    whole = Region(tuple(parameters), (*body.results, *parameters[count:]))
    for ours, result in zip(parameters, whole.results, strict=True):
        if ours.type != result.type:
            raise Foreign
    term = make(node.name, state, {}, (Region(tuple(parameters), condition.results), whole))
    built = results(term)
    return [built] if isinstance(built, Term) else list(built)[:count]


def _scan(node: MlirOperation) -> Built:
    count, axis = node.value("operandSegmentSizes")[0], node.value("dimension")
    inputs, carries = node.operands[:count], node.operands[count:]
    slices = [TensorType(x.tensor.dtype, (*x.tensor.dims[:axis], *x.tensor.dims[axis + 1 :])) for x in inputs]
    parameters = [parameter(index, type) for index, type in enumerate([*slices, *(carry.type for carry in carries)])]
    attributes = {
        "dimension": axis, "size": None if inputs else node.value("scan_dim_size"), "is_reverse": bool(node.value("is_reverse", False)),
        "is_associative": bool(node.value("is_associative", False)),
    }  # fmt: skip
    return results(of_region(inputs, carries, node.importer.region(node.regions[0], parameters, {}), attributes))


def _composite(node: MlirOperation) -> Built:
    """A named op that means its decomposition, a private function."""
    body = node.importer.function(node.value("decomposition"), [operand.type for operand in node.operands])
    attributes = node.text("composite_attributes")
    given = {
        "name": node.value("name"), "attributes": attributes or "", "payload": node.value("version", 0),
        "results": tuple(result.type for result in body.results),
    }  # fmt: skip
    return results(make(node.name, node.operands, given, (body,)))


REGION_BUILDERS: dict[str, Builder] = {
    "stablehlo.reduce": _reduce, "stablehlo.reduce_window": _reduce_window, "stablehlo.select_and_scatter": _select_and_scatter,
    "stablehlo.sort": _sort, "stablehlo.scatter": _scatter, "stablehlo.map": _map, "stablehlo.if": _choice, "stablehlo.case": _choice,
    "stablehlo.while": _while, "stablehlo.composite": _composite, "chlo.scan": _scan,
}  # fmt: skip
