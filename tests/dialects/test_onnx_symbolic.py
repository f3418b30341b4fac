"""ONNX definitions with symbolic shapes: what a node of the standard's cases means is typed for all sizes, and truly."""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest
from onnx_sizes import Found, most_symbolic, parameters, single_cases, sizes

from benchmarks import onnx_cases
from coset.ir import dims
from coset.ir.evaluate import bind, evaluate
from coset.ir.types import TensorType
from coset.rules.definition import evaluate_defined

# Ops of which no dim at all can be a symbol in any case, and why. It may only get shorter.
STATIC: dict[str, str] = {}
# Ops of which some dims have to be numbers in some case: which (operand[axis]; all that any case needs), and why.
NUMBERS: dict[str, tuple[str, str]] = {
    "CausalConvWithState": ("weight[0], weight[2]", "a convolution of each channel: the number of groups and the padding are attributes"),
    "ConvInteger": ("w[0], w_zero_point[0]", "1 or not: a zero point for all filters, or one for each"),
    "DFT": ("input[3]", "1 or 2: whether the signal is real or complex"),
    "DeformConv": ("W[2], W[3], mask[2], mask[3], offset[2], offset[3]", "each pixel under a filter is read by a term of its own"),
    "Expand": ("input[0]", "1 or not: whether it is repeated"),
    "GatherND": ("indices[1], indices[2]", "the length of index vectors decides the rank of the result"),
    "LinearAttention": ("decay[2]", "whether heads or their elements fade"),
    "Reshape": ("data[0], data[1], data[2]", "a shape in numbers fixes the number of elements"),
    "Resize": ("X[2], X[3]", "a scale that is no simple fraction of the size, or one that the sizes decide (not_larger, antialias)"),
    "ScatterND": ("indices[0], indices[1], updates[0]", "the length of index vectors decides the rank of the updates"),
    "Slice": ("data[0], data[1], data[2]", "a step back from the end of a part of a dim"),
    "Unique": ("X[0], X[1], X[2]", "the elements of a slice are sorted one after the other"),
}


def check(case: Any, found: Found, inputs: dict[str, Any], expected: list[Any]) -> None:
    """The types, with the symbols' numbers put in, are those of the expected values; and the terms compute them."""
    binding = found.form.binding(inputs)
    wanted = dict(zip([value.name for value in case.model.graph.output], expected, strict=True))
    terms = {name: term for name, term in found.terms.items() if name in wanted}
    feed = {name: array for name, array in inputs.items() if name not in found.form.constants}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        values = evaluate(list(terms.values()), feed, fallback=evaluate_defined, binding=binding)
    for (name, term), value in zip(terms.items(), values, strict=True):
        array = np.asarray(wanted[name])
        noise = onnx_cases.TRANSFORM_NOISE * float(np.max(np.abs(array))) if case.model.graph.node[0].op_type == "DFT" else 0.0
        problem = onnx_cases.difference(value, array, case.rtol, max(case.atol, noise))
        assert not problem, f"{case.name}, {name} of {found.form}: {problem}"
        if not isinstance(term.type, TensorType) or term.type.shape is None:
            continue
        assert term.type.dtype.numpy == array.dtype, f"{case.name}: {term.type}, expected {array.dtype}"
        known = dict(binding)
        bind(term.type, array, known)  # symbols of the data's own
        assert tuple(dims.evaluate(dim, known) for dim in term.type.dims) == array.shape, f"{case.name}: {term.type}, {array.shape}"


@pytest.mark.slow
def test_definitions_are_typed_for_all_sizes(record_property: Any) -> None:
    """Every case of every op is tried with as many symbols as its definition takes. The ops that need numbers are known by name."""
    needed: dict[str, set[tuple[str, int]]] = defaultdict(set)
    outcomes: dict[str, Counter[str]] = defaultdict(Counter)
    for case in single_cases():
        op = case.model.graph.node[0].op_type
        inputs, expected = next(onnx_cases.data_sets(case, case.model))
        found = most_symbolic(case, inputs)
        check(case, found, inputs, expected)
        names = parameters(case)
        needed[op] |= {(names[name].name, axis) for name, axis in found.form.numbers}
        free = sum(1 for name, *_ in sizes(inputs) if name not in found.form.constants)
        outcomes[op]["all" if not found.form.numbers else "none" if len(found.form.numbers) == free else "some"] += 1
    numbers = {op: ", ".join(f"{name}[{axis}]" for name, axis in sorted(places)) for op, places in sorted(needed.items()) if places}
    static = {op for op, counts in outcomes.items() if set(counts) == {"none"}}
    record_property("ops", {"all": len(outcomes), "some are numbers": len(numbers), "all are numbers": len(static)})
    print(f"\n{len(outcomes)} ops, {len(numbers)} of which need dims as numbers in some case, {len(static)} all of them: {sorted(static)}")
    for op, places in numbers.items():
        print(f"{op} needs numbers for: {places} ({', '.join(f'{n} of its cases {kind}' for kind, n in outcomes[op].items())})")
    assert static == set(STATIC)
    assert numbers == {op: places for op, (places, _) in NUMBERS.items()}
