"""Ops that a term defines: their types, their values, and that both directions agree."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rule_texts import read_rules

from coset.ir.builtin import absent
from coset.ir.dims import symbol
from coset.ir.errors import CosetError, TypeRuleError
from coset.ir.evaluate import evaluate
from coset.ir.op import DEFERRED, get_op
from coset.ir.registry import all_ops
from coset.ir.term import input_term, make
from coset.ir.types import F32, tensor
from coset.rules.definition import definition_of, definitions, evaluate_defined, expand, is_defined, is_kernel

X = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)


def value(name: str, arrays: list[np.ndarray | None], **attributes: object) -> np.ndarray:
    terms = [absent() if a is None else input_term(f"i{i}", tensor(F32, *a.shape)) for i, a in enumerate(arrays)]
    inputs = {f"i{i}": a for i, a in enumerate(arrays) if a is not None}
    return np.asarray(evaluate([make(name, terms, attributes)], inputs, fallback=evaluate_defined)[0])


def test_softmax() -> None:
    e = np.exp(X - X.max(1, keepdims=True))
    np.testing.assert_allclose(value("onnx.Softmax", [X], axis=1), e / e.sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(value("onnx.Softmax", [X], axis=-2), value("onnx.Softmax", [X], axis=1))
    np.testing.assert_allclose(np.exp(value("onnx.LogSoftmax", [X], axis=1)), e / e.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("axis", [-1, 1, -3])
def test_layer_normalization(axis: int) -> None:
    axes = tuple(range(axis % 3, 3))
    scale, bias = (np.random.default_rng(i).normal(size=X.shape[axis % 3 :]).astype(np.float32) for i in (1, 2))
    expected = (X - X.mean(axes, keepdims=True)) / np.sqrt(X.var(axes, keepdims=True) + 1e-5) * scale
    np.testing.assert_allclose(value("onnx.LayerNormalization", [X, scale, None], axis=axis), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(value("onnx.LayerNormalization", [X, scale, bias], axis=axis), expected + bias, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [None, (), (1,), (5,), (1, 5), (2, 1), (2, 5)], ids=str)
@pytest.mark.parametrize("alpha", [1.0, 0.5])
def test_gemm(shape: tuple[int, ...] | None, alpha: float) -> None:
    generator = np.random.default_rng(3)
    a, b = generator.normal(size=(3, 2)).astype(np.float32), generator.normal(size=(5, 3)).astype(np.float32)
    c = None if shape is None else generator.normal(size=shape).astype(np.float32)
    expected = alpha * (a.T @ b.T) + (0 if c is None else 2 * c)
    np.testing.assert_allclose(value("onnx.Gemm", [a, b, c], alpha=alpha, beta=2.0, transA=1, transB=1), expected, rtol=1e-5, atol=1e-6)


def test_activations() -> None:
    np.testing.assert_array_equal(value("onnx.Relu", [X]), np.maximum(X, 0))
    np.testing.assert_array_equal(value("onnx.Clip", [X, np.float32(-0.5), None]), np.maximum(X, np.float32(-0.5)))
    np.testing.assert_array_equal(value("onnx.Clip", [X, None, np.float32(0.5)]), np.minimum(X, np.float32(0.5)))
    np.testing.assert_allclose(value("onnx.HardSwish", [X]), X * np.clip(X / 6 + 0.5, 0, 1), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(value("onnx.Elu", [X], alpha=0.3), np.where(X > 0, X, 0.3 * (np.exp(X) - 1)), rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(value("onnx.Gelu", [X]), value("onnx.Gelu", [X], approximate="tanh"), atol=1e-3)
    np.testing.assert_allclose(value("onnx.Mish", [X]), X * np.tanh(np.log1p(np.exp(X))), rtol=1e-4, atol=1e-6)


def test_types_are_those_of_the_expansion() -> None:
    batch = symbol("B")
    image, filters = input_term("x", tensor(F32, batch, 8, 9, 9)), input_term("w", tensor(F32, 16, 4, 3, 3))
    bias = input_term("b", tensor(F32, 16))
    attributes = {"strides": (2, 2), "padding": ((1, 1), (1, 1)), "dilations": (1, 1), "group": 2}
    for operands in ((image, filters, absent()), (image, filters, bias)):
        conv = make("onnx.Conv", operands, attributes)
        assert conv.type == expand(conv).type == tensor(F32, batch, 16, 5, 5)
    pooled = make("onnx.GlobalAveragePool", [image])
    assert pooled.type == tensor(F32, batch, 8, 1, 1)
    with pytest.raises(TypeRuleError, match=r"onnx\.Conv"):
        make("onnx.Conv", (image, input_term("v", tensor(F32, 16, 3, 3, 3)), absent()), attributes)


def test_a_mean_over_a_symbolic_dim_divides_by_the_number_at_run_time() -> None:
    x = input_term("x", tensor(F32, symbol("B"), 4))
    (mean,) = evaluate([make("onnx.ReduceMean", [x], {"dimensions": (0,)})], {"x": X[0]}, fallback=evaluate_symbolic)
    np.testing.assert_allclose(mean, X[0].mean(0), rtol=1e-6)
    assert "builtin.dims" in {node.op.name for node in _terms(expand(make("onnx.ReduceMean", [x], {"dimensions": (0,)})))}


def evaluate_symbolic(term, operands):  # type: ignore[no-untyped-def]
    return evaluate_defined(term, operands)


def _terms(root):  # type: ignore[no-untyped-def]
    from coset.ir.term import topological

    return topological([root])


def test_each_definition_is_read_in_both_directions() -> None:
    defined = {rule.definition for rule in definitions()}
    recognised = {rule.definition for rule in definitions() if rule.family.endswith(".recognise")}
    assert defined >= recognised
    assert recognised >= {f"onnx.{name}" for name in ("Conv", "Gemm", "Gelu", "Softmax", "LayerNormalization", "BatchNormalization")}
    assert all(is_defined(get_op(name)) for name in defined if name)


def test_a_circle_of_definitions_is_refused(tmp_path: Path) -> None:
    text = "op circle.A(x: F[S..]) means -circle.B(x) numerics exact\nop circle.B(x: F[S..]) means -circle.A(x) numerics exact\n"
    _, errors = read_rules(tmp_path, "use circle\n" + text)
    assert any("leads back to itself" in error.message for error in errors)


def test_an_op_without_a_definition_says_so() -> None:
    with pytest.raises(CosetError, match="no definition"):
        expand(make("stablehlo.tanh", [input_term("x", tensor(F32, 2))]))


def test_rules_of_definitions_know_values_worth_trying() -> None:
    """Defaults of attributes, and what the entry compares them with."""
    for name in ("onnx.Softmax", "onnx.LayerNormalization", "onnx.Gemm"):
        get_op(name)
    rules = [rule for rule in definitions() if rule.definition is not None]
    for rule in rules:
        op = get_op(rule.definition or "")
        assert set(rule.hints) == {attribute.name for attribute in op.attributes}
        assert all(attribute.required or rule.hints.get(attribute.name, ())[0] == attribute.default for attribute in op.attributes)
    assert any(len(values) > 1 for rule in rules for values in rule.hints.values())


def test_what_is_a_kernel_is_known_before_its_definition_is_read() -> None:
    said = {name: is_kernel(name) for name in sorted(DEFERRED)}
    every = {op.name: is_defined(op) and bool(definition_of(op).targets) for op in all_ops()}
    assert all(every[name] == kernel for name, kernel in said.items())
    assert {name: is_kernel(name) for name in every} == every and any(every.values()) and not is_kernel("onnx.Gelu")
