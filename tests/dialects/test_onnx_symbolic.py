"""ONNX definitions with symbolic shapes: what a node of the standard's cases means is typed for all sizes, and truly."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import numpy as np
import onnx

from benchmarks import onnx_cases
from coset.dialects.onnx_node import Node, define
from coset.frontends.onnx import import_model
from coset.frontends.onnx_values import host_value
from coset.ir import dims
from coset.ir.errors import TypeRuleError
from coset.ir.evaluate import bind
from coset.ir.term import Term
from coset.ir.types import AbsentType, TensorType

SMALL = 64  # elements of an integer input that is a constant in real models: axes, shapes, k


def frozen(model: Any, inputs: dict[str, Any]) -> Any:
    """The model with its small integer inputs and scalars as initializers, as exporters write them; the other inputs' dims are symbols."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    kept = []
    for value in result.graph.input:
        array = np.asarray(inputs[value.name])
        if (array.dtype in (np.int64, np.int32, np.bool_) and array.ndim <= 1 and array.size <= SMALL) or array.ndim == 0:
            result.graph.initializer.append(onnx.numpy_helper.from_array(array, value.name))
        else:
            kept.append(value)
    del result.graph.input[:]
    result.graph.input.extend(kept)
    return onnx_cases.symbolic(result)


def meanings(case: Any) -> tuple[str, list[Term] | None]:
    """The op of a case of one node, and the terms that its definition gives for symbolic shapes; None where it gives none."""
    inputs, _ = next(onnx_cases.data_sets(case, case.model))
    program = import_model(frozen(case.model, inputs))
    node = case.model.graph.node[0]
    whole = next((term for term in program.terms() if term.op.name == "onnx.node"), None)
    if whole is None:
        return node.op_type, [term for _, term in program.outputs]
    given = dict(whole.attribute("given"))
    host = tuple(host_value(operand) for operand in whole.operands)
    results = whole.attribute("results")
    wanted = max((i + 1 for i, type in enumerate(results) if not isinstance(type, AbsentType)), default=1)
    seen = Node(str(whole.attribute("name")), whole.operands, given, host, whole.attribute("since"), wanted, len(results))
    try:
        found = define(seen)
    except TypeRuleError:
        return node.op_type, None
    return node.op_type, None if found is None else list(found[:wanted])


def test_definitions_are_typed_for_all_sizes(record_property: Any) -> None:
    """Each type, with the symbols' numbers put in, is that of the expected value. Most ops have a definition for symbolic shapes."""
    outcomes: dict[str, Counter[str]] = defaultdict(Counter)
    for case in onnx_cases.tensor_cases():
        if len(case.model.graph.node) != 1 or onnx_cases.outcome(case).status != "ok":
            continue
        op, terms = meanings(case)
        outcomes[op]["none" if terms is None else "typed"] += 1
        inputs, expected = next(onnx_cases.data_sets(case, case.model))
        if terms is None:
            continue
        binding: dict[str, int] = {}
        for value in onnx_cases.symbolic(case.model).graph.input:
            for dim, number in zip(value.type.tensor_type.shape.dim, np.shape(inputs[value.name]), strict=True):
                if dim.dim_param:
                    binding[dim.dim_param] = number
        names = list(case.model.graph.node[0].output)
        wanted = dict(zip([value.name for value in case.model.graph.output], expected, strict=True))
        for name, term in zip(names, terms, strict=False):
            if name not in wanted or not isinstance(term.type, TensorType) or term.type.shape is None:
                continue
            array = np.asarray(wanted[name])
            assert term.type.dtype.numpy == array.dtype, f"{case.name}: {term.type}, expected {array.dtype}"
            known = dict(binding)
            bind(term.type, array, known)  # symbols of the data's own
            assert tuple(dims.evaluate(dim, known) for dim in term.type.dims) == array.shape, f"{case.name}: {term.type}, {array.shape}"
    never = sorted(op for op, counts in outcomes.items() if not counts["typed"])
    sometimes = sorted(op for op, counts in outcomes.items() if counts["typed"] and counts["none"])
    record_property("typed for all sizes", {"always": len(outcomes) - len(never) - len(sometimes), "sometimes": sometimes, "never": never})
    print(f"\n{len(outcomes)} ops, {len(never)} with static shapes only: {never}\nsometimes: {sometimes}")
    assert len(never) <= 0.2 * len(outcomes), never
