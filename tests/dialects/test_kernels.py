"""The definitions of ONNX Runtime's kernels on values, against the kernels themselves (graph optimization off)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import helper
from onnx_runs import factors

import coset.dialects
from coset.ir.builtin import absent
from coset.ir.evaluate import evaluate
from coset.ir.op import get_op
from coset.ir.registry import all_ops
from coset.ir.term import input_term, make
from coset.ir.types import TensorType, TupleType, dtype_of
from coset.rules.definition import evaluate_defined
from coset.rules.library import load
from coset.targets.target import all_targets

assert coset.dialects
RANDOM = np.random.default_rng(0)
Arrays = Sequence[Any]


def normal(*shape: int) -> Any:
    return RANDOM.normal(size=shape).astype(np.float32)


def defined(name: str, operands: Arrays, attributes: Mapping[str, Any]) -> tuple[Any, ...]:
    """The results of our definition; their types are those that the definition promises."""
    operands = [*operands, *[None] * (len(get_op(f"ort.{name}").operands) - len(operands))]
    arrays = {f"i{i}": np.asarray(a) for i, a in enumerate(operands) if a is not None}
    types = [None if a is None else TensorType(dtype_of(np.asarray(a).dtype), np.shape(a)) for a in operands]
    terms = [absent() if type is None else input_term(f"i{i}", type) for i, type in enumerate(types)]
    term = make(f"ort.{name}", terms, dict(attributes))
    (found,) = evaluate([term], arrays, fallback=evaluate_defined)
    values, promised = (found, term.type.items) if isinstance(term.type, TupleType) else ((found,), (term.type,))
    assert [TensorType(dtype_of(v.dtype), v.shape) for v in values] == list(promised)
    return tuple(values)


def kernel(name: str, inputs: Arrays, attributes: Mapping[str, Any], results: int, domain: str = "com.microsoft") -> list[Any]:
    """The results of the kernel; an empty name is not asked for."""
    given = {f"i{i}": np.asarray(a) for i, a in enumerate(inputs) if a is not None}
    node = helper.make_node(name, [f"i{i}" if a is not None else "" for i, a in enumerate(inputs)], [f"o{i}" for i in range(results)],
                            domain=domain, **{k: v for k, v in attributes.items() if v is not None})  # fmt: skip
    values = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in given.items()]
    outputs = [helper.make_empty_tensor_value_info(n) for n in node.output]
    graph = helper.make_graph([node], "g", values, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, given))


def compare(
    name: str, operands: Arrays, attributes: Mapping[str, Any], *, inputs: Arrays | None = None, given: Mapping[str, Any] | None = None,
    results: Sequence[tuple[int, int]] = ((0, 0),), quantum: int = 0, domain: str = "com.microsoft",
) -> None:  # fmt: skip
    """Our results and the kernel's, paired by `results`; `inputs` and `given` are the kernel's form where it is another one."""
    ours = defined(name, operands, attributes)
    asked = max(theirs for _, theirs in results) + 1
    theirs = kernel(name, operands if inputs is None else inputs, attributes if given is None else given, asked, domain)
    for own, other in results:
        assert ours[own].dtype == theirs[other].dtype
        if quantum:  # the kernel may round a tie the other way
            assert np.abs(ours[own].astype(np.int64) - theirs[other].astype(np.int64)).max() <= quantum
        else:
            np.testing.assert_allclose(ours[own], theirs[other], rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", ["Gelu", "QuickGelu", "FastGelu"])
def test_activations(name: str) -> None:
    compare(name, [3 * normal(2, 3, 5)], {})


def test_activations_with_more() -> None:
    compare("BiasGelu", [normal(2, 3, 5), normal(5)], {})
    compare("FastGelu", [normal(2, 3, 5), normal(5)], {})
    compare("QuickGelu", [normal(4)], {"alpha": 0.5})
    compare("ScaledSiLU", [normal(2, 5)], {"alpha": 0.5})
    compare("ScaledSiLU", [normal(2, 5), np.float32(2.5)], {})
    compare("GatedAdd", [normal(2, 3, 4), normal(2, 3, 4), normal(2, 3, 1)], {})


MATMULS = {
    "plain": ((3, 4), (4, 5), {}), "alpha": ((3, 4), (4, 5), {"alpha": 0.5}), "transposed": ((4, 3), (5, 4), {"transA": 1, "transB": 1}),
    "batch": ((2, 3, 4), (2, 4, 5), {}), "one matrix": ((2, 3, 4), (4, 5), {}), "broadcast": ((2, 1, 3, 4), (6, 4, 5), {}),
    "left matrix": ((3, 4), (2, 4, 5), {}), "batch A": ((3, 2, 4), (2, 4, 5), {"transBatchA": 1}),
    "batch A transposed": ((4, 2, 3), (2, 4, 5), {"transBatchA": 1, "transA": 1}), "batch B": ((2, 3, 4), (4, 2, 5), {"transBatchB": 1}),
}  # fmt: skip


@pytest.mark.parametrize("case", MATMULS)
def test_matmuls(case: str) -> None:
    a, b, attributes = MATMULS[case]
    compare("FusedMatMul", [normal(*a), normal(*b)], attributes)
    if not any("Batch" in name for name in attributes):
        compare("TransposeMatMul", [normal(*a), normal(*b)], attributes)


ACTIVATIONS = {"Relu": [], "Tanh": [], "Sigmoid": [], "LeakyRelu": [0.25], "Clip": [-0.5, 0.75], "HardSigmoid": [0.3, 0.4]}


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("operands", [2, 3, 4])
def test_convolutions(name: str, operands: int) -> None:
    arrays = [normal(2, 4, 7, 6), normal(6, 2, 3, 3), normal(6), normal(2, 6, 4, 3)][:operands]
    own = {"strides": (2, 2), "padding": ((1, 1), (1, 1)), "dilations": (1, 1), "group": 2}
    theirs = {"strides": [2, 2], "pads": [1, 1, 1, 1], "group": 2, "activation": name, "activation_params": ACTIVATIONS[name] or None}
    parameters = tuple(map(float, np.float32(ACTIVATIONS[name])))
    compare("FusedConv", arrays, {**own, "activation": name, "activation_params": parameters}, given=theirs)


GEMMS = {
    "Relu": (0, 0),
    "Tanh": (0, 0),
    "Sigmoid": (0, 0),
    "LeakyRelu": (0.25, 0),
    "HardSigmoid": (0.3, 0.4),
    "Elu": (0.5, 0),
    "Softplus": (0, 0),
}


@pytest.mark.parametrize("name", GEMMS)
def test_gemms(name: str) -> None:
    alpha, beta = (float(np.float32(number)) for number in GEMMS[name])
    attributes = {"alpha": 0.5, "beta": 2.0, "transB": 1, "activation": name, "activation_alpha": alpha, "activation_beta": beta}
    compare("FusedGemm", [normal(3, 4), normal(5, 4), normal(5)], attributes)
    compare("FusedGemm", [normal(3, 4), normal(5, 4)], attributes)


@pytest.mark.parametrize("bits, block", [(4, 16), (4, 32), (8, 16)])
@pytest.mark.parametrize("points", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_matmul_of_few_bits(bits: int, block: int, points: bool, bias: bool) -> None:
    k, n = 40, 6
    blocks = -(-k // block)
    weight = RANDOM.integers(0, 256, (n, blocks, block * bits // 8), dtype=np.uint8)
    scales, zero = np.abs(normal(n, blocks)), RANDOM.integers(0, 256, (n, -(-blocks * bits // 8)), dtype=np.uint8) if points else None
    shift = normal(n) if bias else None
    given = {"K": k, "N": n, "bits": bits, "block_size": block}
    a = normal(2, 3, k)
    compare("MatMulNBits", [a, weight, scales, zero, shift], {"bits": bits, "block_size": block},
            inputs=[a, weight, scales, zero, None, shift], given=given)  # fmt: skip


def test_distances_and_integers() -> None:
    for metric in ("euclidean", "sqeuclidean"):
        compare("CDist", [normal(4, 5), normal(3, 5)], {"metric": metric})
    a, b = (RANDOM.integers(-3000, 3000, shape).astype(np.int16) for shape in ((2, 3, 4), (2, 4, 5)))
    np.testing.assert_array_equal(defined("MatMulInteger16", [a, b], {})[0], a.astype(np.int32) @ b.astype(np.int32))


def test_normalizations() -> None:
    x, scale = normal(2, 3, 8), normal(8)
    compare("SimplifiedLayerNormalization", [x, scale], {"axis": -1, "epsilon": 1e-5}, results=[(0, 0), (1, 1)], domain="")
    for skip in ((2, 3, 8), (1, 3, 8), (3, 8)):
        for rest in ([], [normal(8)], [normal(8), normal(8)], [None, normal(8)]):
            compare("SkipLayerNormalization", [x, normal(*skip), scale, *rest], {"epsilon": 1e-5}, results=[(0, 0), (3, 3)])
        for bias in ([], [normal(8)]):
            compare("SkipSimplifiedLayerNormalization", [x, normal(*skip), scale, *bias], {"epsilon": 1e-5}, results=[(0, 0), (2, 3)])
    for activation in ("silu", "sigmoid"):
        compare("GatedRMSNorm", [x, normal(4), normal(2, 3, 8)], {"activation": activation, "epsilon": 1e-5})


@pytest.mark.parametrize(
    "name", ["SimplifiedLayerNormalization", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "GatedRMSNorm"]
)
def test_normalizations_of_large_halves(name: str) -> None:
    """Numbers whose squares are more than f16 holds: statistics are f32, as in the kernels, which are beside where they take f16."""
    draw = np.random.default_rng(1)
    x, skip = (draw.uniform(-300, 300, (2, 3, 64)).astype(np.float16) for _ in range(2))
    gamma, beta = (draw.uniform(0.5, 2, 64).astype(np.float16) for _ in range(2))
    total = (x + skip if name.startswith("Skip") else x).astype(np.float64)
    if name == "GatedRMSNorm":
        operands, groups = [x, gamma[:16], np.full(x.shape, 8, np.float16)], x.reshape(2, 3, 4, 16).astype(np.float64)
        root = np.sqrt((groups * groups).mean(-1, keepdims=True))
        expected = (groups / root * gamma[:16]).reshape(x.shape) * (8 / (1 + np.exp(-8.0)))
    else:
        operands = [x, *([skip] if name.startswith("Skip") else []), gamma, *([beta] if name == "SkipLayerNormalization" else [])]
        middle = total.mean(-1, keepdims=True) if name == "SkipLayerNormalization" else 0.0
        expected = (total - middle) / np.sqrt(((total - middle) ** 2).mean(-1, keepdims=True)) * gamma.astype(np.float64)
        expected = expected + beta if name == "SkipLayerNormalization" else expected
    found, *more = defined(name, operands, {"epsilon": 1e-5})
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=4e-3, atol=1e-2)
    assert all(np.isfinite(each.astype(np.float64)).all() for each in more)
    if name.startswith("Skip"):
        (theirs, *_) = kernel(name, operands, {"epsilon": 1e-5}, 1)
        np.testing.assert_allclose(found.astype(np.float64), theirs.astype(np.float64), rtol=4e-3, atol=1e-2)


def test_branches_of_large_halves() -> None:
    x = np.random.default_rng(2).uniform(-900, 900, (2, 3, 4, 64)).astype(np.float16)
    scale = np.full((4, 64), 2, np.float16)
    (found,) = defined("BranchwiseRMSNorm", [x, scale], {"epsilon": 1e-5})
    wide = x.astype(np.float64)
    expected = 2 * wide / np.sqrt((wide * wide).mean(-1, keepdims=True))
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=4e-3, atol=1e-2)


@pytest.mark.parametrize("segments", [False, True])
@pytest.mark.parametrize("mask", [False, True])
def test_embeddings(segments: bool, mask: bool) -> None:
    ids = RANDOM.integers(0, 20, (2, 5)).astype(np.int32)
    words, positions, parts, gamma, beta = normal(20, 8), normal(9, 8), normal(2, 8), normal(8), normal(8)
    kinds = RANDOM.integers(0, 2, (2, 5)).astype(np.int32) if segments else None
    ones = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32) if mask else None
    table = parts if segments else None
    compare("EmbedLayerNormalization", [ids, words, positions, gamma, beta, kinds, table, ones, None], {"epsilon": 1e-5},
            inputs=[ids, kinds, words, positions, table, gamma, beta, ones],
            results=[(0, 0), (1, 1), (2, 2)])  # fmt: skip


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("many", [False, True])
def test_rotary_embedding(interleaved: int, partial: bool, many: bool) -> None:
    turned = 4 if partial else 8
    positions = RANDOM.integers(0, 10, (2, 3)) if many else np.array([4])
    attributes = {"interleaved": interleaved, "num_heads": 2, "rotary_embedding_dim": turned if partial else 0}
    compare("RotaryEmbedding", [normal(2, 3, 16), positions, normal(12, turned // 2), normal(12, turned // 2)], attributes)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("shape", [(2, 2, 3, 8), (1, 3, 1, 6), (2, 1, 4, 2), (1, 1, 1, 2), (0, 2, 3, 4), (2, 0, 3, 4)])
def test_rotated_heads(shape: tuple[int, ...], interleaved: int) -> None:
    x, cosines, sines = normal(*shape), *(normal(shape[2], shape[3] // 2) for _ in "cs")
    expected = kernel("RotaryEmbedding", [x, np.array([0]), cosines, sines], {"interleaved": interleaved}, 1)
    np.testing.assert_allclose(defined("RotatedHeads", [x, cosines, sines], {"interleaved": interleaved}), expected, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("sequences", [False, True])
@pytest.mark.parametrize("pairs", [1, 3, 4])
@pytest.mark.parametrize("unread", [0, 3])
def test_rotated_parts_and_sequences(pairs: int, unread: int, sequences: bool, interleaved: int) -> None:
    """Of heads of 8: rows behind those of the sequences are not read."""
    x, rows = normal(2, 3, 5, 8), 10 + unread if sequences else 5
    tables = [normal(rows, pairs) for _ in "cs"]
    positions = np.arange(10).reshape(2, 5) if sequences else np.array([0])
    name = {
        (False, False): "RotatedHeads",
        (False, True): "RotatedParts",
        (True, False): "RotatedSequences",
        (True, True): "RotatedSequenceParts",
    }
    attributes = {"interleaved": interleaved, "num_heads": 3, "rotary_embedding_dim": 2 * pairs}
    expected = kernel("RotaryEmbedding", [x, positions, *tables], attributes, 1)
    found = defined(name[sequences, pairs < 4], [x, *tables], {"interleaved": interleaved})
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-5)


MASK = np.array([[1, 1, 1, 0], [1, 0, 0, 0]], np.int32)


@pytest.mark.parametrize("mask", [False, True])
@pytest.mark.parametrize("unidirectional", [0, 1])
@pytest.mark.parametrize("bias", [False, True])
def test_attention(mask: bool, unidirectional: int, bias: bool) -> None:
    x, weights, shift, extra = normal(2, 4, 6), normal(6, 24), normal(24), normal(1, 2, 4, 4) if bias else None
    attributes = {"num_heads": 2, "unidirectional": unidirectional, "scale": 0.5 if bias else 0.0}
    compare("Attention", [x, weights, shift, MASK if mask else None, extra], attributes,
            inputs=[x, weights, shift, MASK if mask else None, None, extra],
            given=attributes if bias else {"num_heads": 2, "unidirectional": unidirectional})  # fmt: skip


@pytest.mark.parametrize("mask", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("extra", [None, (1, 1), (2, 2)])
def test_attention_of_many_heads(mask: bool, bias: bool, extra: tuple[int, int] | None) -> None:
    query, key, value = normal(2, 3, 8), normal(2, 4, 8), normal(2, 4, 6)
    shift, added = normal(22) if bias else None, None if extra is None else normal(*extra, 3, 4)
    keep = MASK if mask else None
    compare("MultiHeadAttention", [query, key, value, shift, keep, added], {"num_heads": 2}, inputs=[query, key, value, shift, keep, added])


def quantized(kind: Any, *shape: int) -> Any:
    info = np.iinfo(kind)
    return RANDOM.integers(info.min, info.max, shape, endpoint=True).astype(kind)


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
def test_quantized_elementwise_ops(kind: Any) -> None:
    a, b, point = quantized(kind, 2, 3, 4), quantized(kind, 3, 1), kind(3)
    scale = np.float32(0.05)
    for name in ("QLinearAdd", "QLinearMul"):
        compare(name, [a, scale, point, b, np.float32(0.02), kind(1), np.float32(0.1), kind(5)], {}, quantum=1)
    compare("QLinearSigmoid", [a, scale, point, np.float32(1 / 256), kind(0)], {}, quantum=1)
    compare("QLinearLeakyRelu", [a, scale, point, np.float32(0.06), kind(2)], {"alpha": 0.1}, quantum=1)
    condition = RANDOM.integers(0, 2, (2, 3, 1)) == 1
    compare("QLinearWhere", [condition, a, scale, point, b, np.float32(0.02), kind(1), np.float32(0.1), kind(5)], {}, quantum=1)


def test_quantized_contractions() -> None:
    image, point = quantized(np.uint8, 2, 3, 5, 4), np.uint8(120)
    compare("QLinearGlobalAveragePool", [image, np.float32(0.1), point, np.float32(0.02), np.uint8(100)], {}, quantum=1)
    a, b = quantized(np.uint8, 3, 4), RANDOM.integers(*factors(np.int8), (4, 5), endpoint=True).astype(np.int8)
    for bias in ([], [normal(5)]):
        compare("MatMulIntegerToFloat", [a, b, np.float32(0.1), np.float32(0.2), point, np.int8(-3), *bias], {})
    compare("MatMulIntegerToFloat", [a, b, np.float32(0.1), np.abs(normal(5)), point, quantized(np.int8, 5)], {})
    c = RANDOM.integers(-500, 500, 5).astype(np.int32)
    whole = [a, np.float32(0.1), point, b.T.copy(), np.float32(0.2), np.int8(-3), c]
    compare("QGemm", whole, {"transB": 1, "alpha": 0.5})
    compare("QGemm", [*whole, np.float32(2.0), np.uint8(90)], {"transB": 1}, quantum=1)


def test_the_dialect_is_none_that_a_target_prints() -> None:
    assert all(target.dialect != "ort" for target in all_targets())
    assert {rule.definition for rule in load().rules if rule.definition and rule.definition.startswith("ort.")}
    assert len([op for op in all_ops() if op.dialect == "ort"]) >= 30
