"""The hub's ops with payload functions: reductions, windows, sort, scatter, map, control flow, composites.

A standard payload is a word (`combiner`, `direction`, `select`), so that rules can match it; `region` says that it is the function in
the term's regions. What branches and loops capture is an operand, so that a region speaks of its parameters only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

from coset.dialects.hub import control as hub_control
from coset.dialects.hub import region_types as rules
from coset.dialects.hub import scattering as hub_scattering
from coset.dialects.hub import signatures as hub_signatures
from coset.dialects.hub import sorting as hub_sorting
from coset.dialects.hub import windows as hub_windows
from coset.ir import dims
from coset.ir.dims import Dim
from coset.ir.op import Attribute, Attributes, Meaning, Op, register
from coset.ir.types import TensorType, TupleType, Type

SPECIFICATION = "https://openxla.org/stablehlo/spec#"


def _op(name: str, infer: Callable[..., Type], meaning: Meaning, document: str, *attributes: Attribute, **more: Any) -> Op:
    full = f"stablehlo.{name}"
    anchor = SPECIFICATION + name.removesuffix("_region")
    return register(Op(full, partial(infer, full), meaning, attributes, source=anchor, document=document, **more))


def _ints(*names: str) -> tuple[Attribute, ...]:
    return tuple(Attribute(name, "ints") for name in names)


def _flag(name: str) -> Attribute:
    return Attribute(name, "bool", False, required=False)


# ---------------------------------------------------------------- work


def _elements(type: Type) -> Dim:
    items = type.items if isinstance(type, TupleType) else (type,)
    total: Dim = 0
    for item in items:
        if isinstance(item, TensorType):
            total = dims.add(total, item.elements)
    return total


def _input_flops(_: Type, operands: Sequence[Type], __: Attributes) -> Dim:
    """One combination for each element of each input."""
    return _elements(TupleType(tuple(operands[: max(1, len(operands) // 2)])))


def _window_flops(result: Type, _: Sequence[Type], attributes: Attributes) -> Dim:
    """One combination for each element of each window."""
    return dims.multiply(_elements(result), prod(attributes["window_dimensions"]))


def _selection_flops(_: Type, operands: Sequence[Type], attributes: Attributes) -> Dim:
    """One comparison for each element of each window, and a combination for each window."""
    return dims.multiply(_elements(operands[1]), prod(attributes["window_dimensions"]) + 1)


def _sort_flops(_: Type, operands: Sequence[Type], attributes: Attributes) -> Dim:
    """A comparison for each element and each halving of a row; of a row of unknown length one halving is counted."""
    assert isinstance(operands[0], TensorType)
    length = operands[0].dims[attributes["dimension"]]
    return dims.multiply(operands[0].elements, max(1, (length - 1).bit_length() if isinstance(length, int) else 1))


def _update_flops(_: Type, operands: Sequence[Type], attributes: Attributes) -> Dim:
    """One combination for each element of the updates."""
    return 0 if attributes["combiner"] == "second" else _elements(TupleType(tuple(operands[attributes["count"] + 1 :])))


def result_flops(result: Type, _: Sequence[Type], __: Attributes) -> Dim:
    """One operation for each element of the results: how much a body does is not seen from here."""
    return _elements(result)


# ---------------------------------------------------------------- reductions and windows

_COMBINER = Attribute("combiner", "string")
_BODY = (("body", ""),)
_WINDOW = Attribute("window_dimensions", "ints"), Attribute("window_strides", "ints")
_DILATED = (*_WINDOW, *_ints("base_dilations", "window_dilations"), Attribute("padding", "any"))
REDUCE_REGION = _op(
    "reduce_region", rules.reduce_region, hub_control.reduce_region,
    "The inputs' elements along the sorted `dimensions` folded by the body from the init values; a tuple when there are several inputs.",
    *_ints("dimensions"), operands=("inputs",), variadic=True, flops=_input_flops, signatures=hub_signatures.folding, functions=_BODY,
)  # fmt: skip
REDUCE_WINDOW = _op(
    "reduce_window", rules.reduce_window, hub_windows.reduce_window,
    "The elements of each window folded by `combiner` (add multiply maximum minimum and or) from its identity, which pads too.",
    *_DILATED, _COMBINER, operands=("operand",), flops=_window_flops,
)  # fmt: skip
REDUCE_WINDOW_REGION = _op(
    "reduce_window_region", rules.reduce_window_region, hub_windows.reduce_window_region,
    "The inputs' elements in each window folded by the body from the init values, which pad too; a tuple when there are several inputs.",
    *_DILATED, operands=("inputs",), variadic=True, flops=_window_flops, signatures=hub_signatures.folding, functions=_BODY,
)  # fmt: skip
SELECT_AND_SCATTER = _op(
    "select_and_scatter", rules.select_and_scatter, hub_windows.select_and_scatter,
    "Each element of `source` combined into the element that `select` keeps of its window of the operand; `init_value` elsewhere.",
    *_WINDOW, Attribute("padding", "any"), Attribute("select", "string"), _COMBINER,
    operands=("operand", "source", "init_value"), flops=_selection_flops, signatures=hub_signatures.selection,
    functions=(("selector", "select"), ("update", "combiner")),
)  # fmt: skip

# ---------------------------------------------------------------- sort, scatter, map

SORT = _op(
    "sort", rules.sort, hub_sorting.sort,
    "The operands' elements along `dimension`, together, in the order of `direction` of the first operand; `total` is IEEE total order.",
    Attribute("dimension", "int"), _flag("is_stable"), Attribute("direction", "string"), _flag("total"),
    operands=("operands",), variadic=True, flops=_sort_flops, signatures=hub_signatures.comparator,
    functions=(("comparator", "direction"),),
)  # fmt: skip
SCATTER = _op(
    "scatter", rules.scatter, hub_scattering.scatter,
    "The operands with `updates` combined in at the windows that `indices` name; operands, then indices, then updates.",
    *_ints("update_window_dims", "inserted_window_dims", "input_batching_dims", "scatter_indices_batching_dims",
           "scatter_dims_to_operand_dims"),
    Attribute("index_vector_dim", "int"), _flag("indices_are_sorted"), _flag("unique_indices"), _COMBINER,
    Attribute("count", "int", 1, required=False),
    operands=("operands",), variadic=True, flops=_update_flops, signatures=hub_signatures.update_function,
    functions=(("update", "combiner"),),
)  # fmt: skip
MAP = _op(
    "map", rules.map_, hub_control.map_, "The body of the operands' elements at each position; `dimensions` are all of them.",
    *_ints("dimensions"), Attribute("dtype", "dtype", None, required=False),
    operands=("operands",), variadic=True, flops=result_flops, signatures=hub_signatures.mapping, functions=_BODY,
)  # fmt: skip

# ---------------------------------------------------------------- control flow

_RESULTS = Attribute("results", "any")
IF = _op("if", rules.if_, hub_control.if_, "The first region of the captured values where `pred`, else the second one.", _RESULTS,
         operands=("pred", "captured"), variadic=True, flops=result_flops, signatures=hub_signatures.branches,
         functions=(("true_branch", ""), ("false_branch", "")))  # fmt: skip
CASE = _op("case", rules.case, hub_control.case, "The region of that index of the captured values; the last one for any other index.",
           _RESULTS, operands=("index", "captured"), variadic=True, flops=result_flops, signatures=hub_signatures.branches)  # fmt: skip
WHILE = _op("while", rules.while_, hub_control.while_, "The state, sent through the second region as long as the first is true of it.",
            operands=("state",), variadic=True, flops=result_flops, signatures=hub_signatures.loop,
            functions=(("condition", ""), ("body", "")))  # fmt: skip
COMPOSITE = _op("composite", rules.composite, hub_control.composite, "A named op that means its region: its decomposition.",
                Attribute("name", "string"), _RESULTS, Attribute("attributes", "any", (), required=False),
                Attribute("payload", "any", (), required=False),
                operands=("operands",), variadic=True, flops=result_flops, signatures=hub_signatures.decomposition,
                functions=(("decomposition", ""),))  # fmt: skip
