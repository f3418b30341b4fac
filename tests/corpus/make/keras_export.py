"""Entries of Keras through tf2onnx; run in an environment of its own: tensorflow-cpu 2.21, keras 3, tf2onnx 1.17."""

# ruff: noqa: E501
from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy as np
import tensorflow as tf
import tf2onnx
from common import save_onnx
from header import ATTENTION, PROJECTED, B, D, H, L


@dataclass(frozen=True)
class Case:
    """A function of tensors of the given shapes (None: a symbol), made when it is exported."""

    function: Callable[[], Callable[..., Any]]
    shapes: tuple[tuple[int | None, ...], ...]
    wanted: tuple[str, ...]
    how: str
    beside: str = ""
    opset: int = 13


def layer(make: Callable[[], Any], *shape: int) -> Callable[[], Callable[..., Any]]:
    """A Keras layer with drawn weights (positive, so that they are variances too)."""

    def build() -> Callable[..., Any]:
        random = np.random.default_rng(5)
        made = make()
        made.build((None, *shape[1:]))
        made.set_weights([random.uniform(0.5, 1.5, w.shape).astype(np.float32) for w in made.get_weights()])
        return lambda x: made(x, training=False)

    return build


def formula(function: Callable[..., Any]) -> Callable[[], Callable[..., Any]]:
    return lambda: function


def _moments(x: Any) -> Any:
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    return tf.nn.batch_normalization(x, mean, variance, tf.linspace(0.5, 1.0, 8), tf.linspace(1.5, 1.0, 8), 1e-6)


def _rms(x: Any) -> Any:
    return tf.linspace(0.5, 1.0, 8) * x * tf.math.rsqrt(tf.reduce_mean(tf.square(x), -1, keepdims=True) + 1e-6)


def _gelu_gpt2(x: Any) -> Any:
    return 0.5 * x * (1 + tf.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * tf.pow(x, 3))))


def _gelu_bert(x: Any) -> Any:
    return x * 0.5 * (1.0 + tf.math.erf(x / tf.sqrt(2.0)))


def _attention_bert(q: Any, k: Any, v: Any, mask: Any) -> Any:
    scores = tf.multiply(tf.matmul(q, k, transpose_b=True), 1.0 / math.sqrt(float(D)))
    scores += (1.0 - tf.cast(mask[:, None, None, :], tf.float32)) * -10000.0
    return tf.matmul(tf.nn.softmax(scores), v)


def _attention_t2t(q: Any, k: Any, v: Any) -> Any:
    return tf.matmul(tf.nn.softmax(tf.matmul(q * D**-0.5, k, transpose_b=True)), v)


def _multihead() -> Callable[..., Any]:
    made = keras.layers.MultiHeadAttention(H, D)
    made.build(query_shape=(None, L, H * D), value_shape=(None, L, H * D))
    random = np.random.default_rng(5)
    made.set_weights([random.normal(size=w.shape).astype(np.float32) * 0.3 for w in made.get_weights()])
    return lambda x: made(x, x)


def _block(*layers: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: keras.Sequential([make() for make in layers])


ROWS = ((None, L, 8),)
IMAGE = ((2, 6, 6, 3),)
HEADS = ((B, H, L, D),) * 3
LN, GN = "onnx.LayerNormalization axis=-1", "onnx.GroupNormalization"
KL = keras.layers
CASES: dict[str, dict[str, Case]] = {
    "layer_norm": {
        "layer": Case(layer(lambda: KL.LayerNormalization(epsilon=1e-6), B, L, 8), ROWS, (f"{LN} epsilon=1e-6",), "keras.layers.LayerNormalization"),
        "moments": Case(formula(_moments), ROWS, (f"{LN} epsilon=1e-6",), "tf.nn.moments, tf.nn.batch_normalization"),
    },
    "rms_norm": {
        "layer": Case(layer(lambda: KL.RMSNormalization(), B, L, 8), ROWS, ("onnx.RMSNormalization axis=-1 epsilon=1e-6",), "keras.layers.RMSNormalization"),
        "formula": Case(formula(_rms), ROWS, ("onnx.RMSNormalization axis=-1 epsilon=1e-6",), "scale * x * rsqrt(mean square)"),
    },
    "group_norm": {"layer": Case(layer(lambda: KL.GroupNormalization(2, epsilon=1e-5), 2, 4, 5, 8), ((2, 4, 5, 8),), (f"{GN} num_groups=2 epsilon=1e-5",), "keras.layers.GroupNormalization, channels last")},
    "gelu": {
        "tanh": Case(formula(lambda x: tf.nn.gelu(x, approximate=True)), ROWS, ("onnx.Gelu approximate=tanh",), "tf.nn.gelu(approximate=True)"),
        "gpt2": Case(formula(_gelu_gpt2), ROWS, ("onnx.Gelu approximate=tanh",), "tf.pow(x, 3)"),
        "bert": Case(formula(_gelu_bert), ROWS, ("onnx.Gelu approximate=none",), "x / tf.sqrt(2.0)"),
    },
    "silu": {"layer": Case(formula(lambda x: keras.activations.silu(x)), ROWS, ("onnx.Swish alpha=1.0",), "keras.activations.silu")},
    "swiglu": {"layer": Case(formula(lambda g, u: keras.activations.silu(g) * u), (*ROWS, *ROWS), ("kernel.swiglu",), "silu(gate) * up")},
    "softmax": {"formula": Case(formula(lambda x: tf.exp(x) / tf.reduce_sum(tf.exp(x), -1, keepdims=True)), ROWS, ("onnx.Softmax axis=-1",), "exp(x) / reduce_sum(exp(x))")},
    "attention": {
        "multihead": Case(_multihead, ((B, L, H * D),), (ATTENTION,), "keras.layers.MultiHeadAttention", PROJECTED),
        "bert": Case(formula(_attention_bert), (*HEADS, (B, L)), (ATTENTION,), "the first BERT: matmul(transpose_b), (1 - mask) * -10000", "stablehlo.subtract stablehlo.multiply"),
        "scaled-query": Case(formula(_attention_t2t), HEADS, (ATTENTION,), "scaled query, matmul(transpose_b=True)"),
    },
    "conv_bn": {
        "relu": Case(layer(_block(lambda: KL.Conv2D(4, 3, use_bias=False), lambda: KL.BatchNormalization(), lambda: KL.ReLU()), 2, 6, 6, 3), IMAGE, ("onnx.Conv", "onnx.Relu"), "Conv2D, BatchNormalization, ReLU"),
        "relu6": Case(layer(_block(lambda: KL.Conv2D(4, 3, strides=2, padding="same"), lambda: KL.BatchNormalization(), lambda: KL.ReLU(6.0)), 2, 6, 6, 3), IMAGE, ("onnx.Conv", "onnx.Clip"), "Conv2D with bias, BatchNormalization, ReLU(6)"),
        "swish": Case(layer(_block(lambda: KL.Conv2D(4, 1, use_bias=False), lambda: KL.BatchNormalization(), lambda: KL.Activation("swish")), 2, 6, 6, 3), IMAGE, ("onnx.Conv", "onnx.Swish alpha=1.0"), "1x1 Conv2D, BatchNormalization, swish"),
        "depthwise": Case(layer(_block(lambda: KL.DepthwiseConv2D(3, use_bias=False), lambda: KL.BatchNormalization(), lambda: KL.ReLU()), 2, 6, 6, 4), ((2, 6, 6, 4),), ("onnx.Conv", "onnx.Relu"), "DepthwiseConv2D, BatchNormalization, ReLU"),
    },
}  # fmt: skip


def main() -> None:
    """Write what is asked for and say what could not be."""
    version = f"tensorflow {tf.__version__}, keras {keras.__version__}, tf2onnx {tf2onnx.__version__}"
    for folder, group in CASES.items():
        for name, case in group.items():
            if sys.argv[1:] and not any(part in f"{folder}/keras-{name}" for part in sys.argv[1:]):
                continue
            try:
                signature = [tf.TensorSpec(shape, tf.float32, name=f"x{i}") for i, shape in enumerate(case.shapes)]
                function = tf.function(case.function(), input_signature=signature)
                model, _ = tf2onnx.convert.from_function(function, input_signature=signature, opset=case.opset)
                save_onnx(
                    model, f"{folder}/keras-{name}", f"{version}, from_function(opset={case.opset}) of {case.how}", case.wanted, case.beside
                )
            except Exception as error:
                print(f"{folder}/keras-{name}: {type(error).__name__}: {str(error)[:200]}")


if __name__ == "__main__":
    main()
