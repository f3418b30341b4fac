"""Nodes of com.microsoft: imported with a meaning, and evaluated to what ONNX Runtime's kernels give (graph optimization off)."""

from __future__ import annotations

from typing import Any

import contrib_attention_cases
import contrib_mixed_cases
import contrib_other_cases
import contrib_standard_cases
import numpy as np
import onnx
import onnxruntime
import pytest
from contrib_cases import CASES, Case, normal
from onnx import helper
from onnx_runs import by_runtime, feed_of, model_of
from onnxruntime.capi import onnxruntime_pybind11_state

from coset.dialects.onnx.node import DEFINITIONS
from coset.dialects.ort.nodes import DOMAIN
from coset.dialects.ort.undefined import UNDEFINED
from coset.frontends.onnx.model import import_model
from coset.ir.dims import symbol
from coset.ir.evaluate import evaluate
from coset.ir.op import find_op
from coset.ir.types import F32, TensorType
from coset.lowering.onnx.model import lower
from coset.rules.definition import evaluate_defined

assert contrib_attention_cases and contrib_standard_cases and contrib_mixed_cases and contrib_other_cases
EACH = [(op, index) for op in sorted(CASES) for index in range(len(CASES[op]))]


def contrib_model(op: str, case: Case) -> onnx.ModelProto:
    """A model of one node; the `known` inputs are initializers."""
    model = model_of(op, case.inputs, case.attributes, outputs=case.outputs, opset=17, domain="com.microsoft")
    for index in case.known:
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(case.inputs[index]), f"x{index}"))
    kept = [value for value in model.graph.input if value.name not in {f"x{index}" for index in case.known}]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    node, outputs = model.graph.node[0], list(model.graph.output)
    for index in case.skipped:
        node.output[index] = ""
    del model.graph.output[:]
    model.graph.output.extend(value for index, value in enumerate(outputs) if index not in case.skipped)
    return model


def by_kernel(model: onnx.ModelProto, case: Case, feed: dict[str, Any]) -> list[Any]:
    """The results of the kernel, some of them in the buffers of inputs."""
    if not case.shared:
        return by_runtime(model, [None if i in case.known else x for i, x in enumerate(case.inputs)])
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array.copy()) for name, array in feed.items()}
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    buffers = {f"y{result}": values[f"x{index}"] for index, result in case.shared.items()}
    for output in session.get_outputs():
        if output.name in buffers:
            binding.bind_ortvalue_output(output.name, buffers[output.name])
        else:
            binding.bind_output(output.name)
    session.run_with_iobinding(binding)
    return list(binding.copy_outputs_to_cpu())


@pytest.mark.parametrize("op, index", EACH)
def test_a_node_means_what_its_kernel_gives(op: str, index: int) -> None:
    case = CASES[op][index]
    model = contrib_model(op, case)
    feed = {name: value for name, value in feed_of(case.inputs).items() if name not in {f"x{i}" for i in case.known}}
    try:
        wanted = by_kernel(model, case, feed)
    except onnxruntime_pybind11_state.Fail as error:
        if "not yet supported on this hardware platform" in str(error):
            pytest.skip(f"ONNX Runtime has no kernel for {op} on this processor")
        raise
    program = import_model(model)
    assert not [term for term in program.terms() if term.op.name == "builtin.opaque"], "a node stayed opaque"
    found = evaluate(program.roots, feed, fallback=evaluate_defined)
    for own, other in zip(found, wanted, strict=True):
        same(np.asarray(own), np.asarray(other), case)


def same(own: Any, other: Any, case: Case) -> None:
    """Equal shapes and dtypes; integers equal up to the quantum, floats near."""
    assert (own.shape, own.dtype) == (other.shape, other.dtype)
    if own.dtype.kind in "iub":
        assert np.abs(own.astype(np.int64) - other.astype(np.int64)).max(initial=0) <= case.quantum
    else:
        np.testing.assert_allclose(own.astype(np.float64), other.astype(np.float64), rtol=case.rtol, atol=case.atol)


@pytest.mark.parametrize("op", sorted(CASES))
def test_a_node_is_written_back_as_it_came(op: str) -> None:
    model = contrib_model(op, CASES[op][0])
    (before,), (after,) = (
        [node for node in graph.node if node.domain == "com.microsoft"] for graph in (model.graph, lower(import_model(model)).graph)
    )
    assert (after.op_type, [bool(name) for name in after.input]) == (before.op_type, [bool(name) for name in before.input])
    assert sorted(map(str, after.attribute)) == sorted(map(str, before.attribute))


LENGTHS = {"B": 3, "L": 4}  # dims that the models below leave open


def test_open_dims_stay_open() -> None:
    """An encoder layer's nodes over a symbolic batch and length: typed by the definitions, one after the other."""
    nodes = [
        helper.make_node("SkipLayerNormalization", ["x", "x", "gamma"], ["n"], domain="com.microsoft", epsilon=1e-5),
        helper.make_node("Attention", ["n", "weights", "bias", "mask"], ["a"], domain="com.microsoft", num_heads=2),
        helper.make_node("FusedMatMul", ["a", "square"], ["m"], domain="com.microsoft", alpha=0.5),
        helper.make_node("BiasGelu", ["m", "gamma"], ["y"], domain="com.microsoft"),
    ]
    weights = {"gamma": normal(8), "weights": normal(8, 24), "bias": normal(24), "square": normal(8, 8)}
    inputs = [
        helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["B", "L", 8]),
        helper.make_tensor_value_info("mask", onnx.TensorProto.INT32, ["B", "L"]),
    ]
    outputs = [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)]
    initializers = [onnx.numpy_helper.from_array(value, name) for name, value in weights.items()]
    versions = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(helper.make_graph(nodes, "g", inputs, outputs, initializers), opset_imports=versions, ir_version=9)
    program = import_model(model)
    assert program.roots[0].type == TensorType(F32, (symbol("B"), symbol("L"), 8))
    shape = tuple(LENGTHS.values())
    feed = {"x": normal(*shape, 8), "mask": np.array([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]], np.int32)}
    (found,) = evaluate(program.roots, feed, fallback=evaluate_defined)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(found, session.run(None, feed)[0], rtol=2e-4, atol=2e-5)


def kernels_on_cpu() -> set[str]:
    """The ops of the domain that the installed ONNX Runtime has kernels for."""
    found = onnxruntime_pybind11_state.get_all_opkernel_def()
    return {kernel.op_name for kernel in found if (kernel.domain, kernel.provider) == ("com.microsoft", "CPUExecutionProvider")}


def test_the_ops_without_a_definition_are_those_of_the_table() -> None:
    defined = {name.removeprefix(DOMAIN) for name in DEFINITIONS if name.startswith(DOMAIN)}
    assert kernels_on_cpu() - defined == set(UNDEFINED)
    assert not defined & set(UNDEFINED)
    assert defined <= kernels_on_cpu()


def test_every_definition_is_compared_with_its_kernel() -> None:
    defined = {name.removeprefix(DOMAIN) for name in DEFINITIONS if name.startswith(DOMAIN)}
    assert defined == set(CASES)


def test_defaults_are_those_of_the_schemas() -> None:
    """A node need not write an attribute whose default the schema says: the definition's is the same."""
    wrong = []
    for schema in onnxruntime_pybind11_state.get_all_operator_schema():
        op = find_op(f"ort.{schema.name}") if schema.domain == "com.microsoft" else None
        for attribute in () if op is None else op.attributes:
            given = schema.attributes.get(attribute.name)
            text = b"" if given is None else given._default_value
            default = onnx.helper.get_attribute_value(onnx.AttributeProto.FromString(text)) if text else None
            default = default.decode() if isinstance(default, bytes) else default
            if default is not None and default != attribute.default:
                wrong.append((schema.name, attribute.name, attribute.default, default))
    assert not wrong
