"""Terms with payload functions as modules for the reference interpreter (see `reference`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hub_cases import BINDING, Case
from reference import module, spell

from coset.dialects.hub.region_terms import region
from coset.dialects.hub.tensors import identity
from coset.ir import dims
from coset.ir.term import CONSTANT, PARAMETER, Region, Term, make, topological
from coset.ir.types import DType, TensorType, TupleType, Type, dtype_of, tensor

Array = np.ndarray[Any, Any]


def static(type: Type) -> list[TensorType]:
    """The result types with their dims under BINDING."""
    items = type.items if isinstance(type, TupleType) else (type,)
    return [TensorType(t.dtype, tuple(dims.evaluate(d, BINDING) for d in t.dims)) for t in items if isinstance(t, TensorType)]


def _spelled(type: Type) -> str:
    (one,) = static(type)
    return spell(one.dtype, one.static or ())


def block(body: Region, *, outer: Sequence[str] = ()) -> str:
    """The region as MLIR; with `outer`, its parameters are these values from outside and it has no arguments."""
    names: dict[Term, str] = {p: f"%p{i}" for i, p in enumerate(body.parameters)}
    head = ", ".join(f"{names[p]}: {_spelled(p.type)}" for p in body.parameters)
    if outer:
        names, head = dict(zip(body.parameters, outer, strict=True)), ""
    lines = [f"^bb0({head}):"] if head else []
    for term in topological(body.results):
        if term.op is not PARAMETER:
            names[term] = f"%v{len(names)}"
            lines.append(f"{names[term]} = {_operation(term, names)}")
    ends = ", ".join(_spelled(result.type) for result in body.results)
    lines.append(f'"stablehlo.return"({", ".join(names[r] for r in body.results)}) : ({ends}) -> ()')
    return "{ " + "\n    ".join(lines) + " }"


def _operation(term: Term, names: dict[Term, str]) -> str:
    if term.op is CONSTANT:
        return f"stablehlo.constant dense<{term.attribute('value').array().item()}> : {_spelled(term.type)}"
    assert not term.regions
    operands = ", ".join(names[o] for o in term.operands)
    inside = f" <{{comparison_direction = #stablehlo<comparison_direction {term.attribute('direction')}>}}>" if term.attributes else ""
    return f'"{term.op.name}"({operands}){inside} : ({", ".join(_spelled(o.type) for o in term.operands)}) -> {_spelled(term.type)}'


# ---------------------------------------------------------------- ops


def word_region(word: str, dtypes: Sequence[DType]) -> Region:
    """The region that a word stands for, on several pairs at once."""

    def body(*both: Term) -> list[Term]:
        pairs = zip(both[: len(dtypes)], both[len(dtypes) :], strict=True)
        return [b if word == "second" else make(f"stablehlo.{word}", pair) for pair in pairs for b in pair[1:]]

    return region([tensor(dtype) for dtype in (*dtypes, *dtypes)], body)


def compare_region(direction: str, dtype: DType, others: Sequence[DType] = ()) -> Region:
    """The comparator that a direction stands for."""
    types = [tensor(d) for d in (dtype, *others) for _ in range(2)]
    return region(types, lambda a, b, *_: make("stablehlo.compare", (a, b), {"direction": direction}))


def _list(values: Sequence[int]) -> str:
    return f"array<i64{':' if values else ''} {', '.join(map(str, values))}>"


def _windows(term: Term) -> str:
    known = [k for k, _ in term.attributes if k.startswith("window") or k == "base_dilations"]
    pairs = term.attribute("padding")
    padding = f"dense<{[list(p) for p in pairs] if pairs else ''}> : tensor<{len(pairs)}x2xi64>"
    return ", ".join([*(f"{k} = {_list(term.attribute(k))}" for k in known), f"padding = {padding}"])


def _scatter(term: Term) -> str:
    keys = ("update_window_dims", "inserted_window_dims", "input_batching_dims", "scatter_indices_batching_dims",
            "scatter_dims_to_operand_dims")  # fmt: skip
    numbers = [f"{key} = {list(term.attribute(key))}" for key in keys]
    numbers.append(f"index_vector_dim = {term.attribute('index_vector_dim')}")
    return f"scatter_dimension_numbers = #stablehlo.scatter<{', '.join(numbers)}>"


def _truth(term: Term, key: str) -> str:
    return f"{key} = {str(term.attribute(key)).lower()}"


def _is_total(term: Term) -> bool:
    return term.attribute("total") and not term.regions and term.operands[0].tensor.dtype.kind == "float"  # type: ignore[no-any-return]


def _total(comparator: str) -> str:
    return comparator.replace(">}> : (", ">, compare_type = #stablehlo<comparison_type TOTALORDER>}> : (")


Form = tuple[str, str, list[Array], list[str]]  # op, attributes, operands, regions


def _form(case: Case) -> Form:
    term, arrays = case.term, list(case.arrays)
    name = term.op.name.removeprefix("stablehlo.")
    dtypes = [dtype_of(x.dtype) for x in arrays]
    given = list(term.regions)

    def words(key: str) -> Region:
        return given.pop(0) if term.attribute(key) == "region" else word_region(term.attribute(key), dtypes[:1])

    if name in ("reduce_region", "reduce_window_region"):
        attributes = f"dimensions = {_list(term.attribute('dimensions'))}" if name == "reduce_region" else _windows(term)
        return name.removesuffix("_region"), attributes, arrays, [block(given[0])]
    if name == "reduce_window":
        return name, _windows(term), [*arrays, identity(term.attribute("combiner"), dtypes[0])], [block(words("combiner"))]
    if name == "select_and_scatter":
        select = term.attribute("select")
        chosen = given.pop(0) if select == "region" else compare_region(select, dtypes[0])
        return name, _windows(term), arrays, [block(chosen), block(words("combiner"))]
    if name == "sort":
        direction = term.attribute("direction")
        order = given[0] if direction == "region" else compare_region(direction, dtypes[0], dtypes[1:])
        attributes = f"dimension = {term.attribute('dimension')} : i64, {_truth(term, 'is_stable')}"
        return name, attributes, arrays, [_total(block(order)) if _is_total(term) else block(order)]
    if name == "scatter":
        body = given[0] if given else word_region(term.attribute("combiner"), dtypes[: term.attribute("count")])
        attributes = f"{_scatter(term)}, {_truth(term, 'indices_are_sorted')}, {_truth(term, 'unique_indices')}"
        return name, attributes, arrays, [block(body)]
    if name == "map":
        return name, f"dimensions = {_list(term.attribute('dimensions'))}", arrays, [block(given[0])]
    if name in ("if", "case"):
        names = [f"%x{i}" for i in range(1, len(arrays))]
        return name, "", arrays, [block(body, outer=names) for body in given]
    assert name == "while", name
    return name, "", arrays, [block(body) for body in given]


def module_of(case: Case) -> str:
    """The module that applies the case's op to its arrays."""
    op, attributes, arrays, regions = _form(case)
    given = 1 if op in ("if", "case") else None  # what branches capture is no operand there
    return module(op, attributes, arrays, static(case.term.type), regions, given=given)
