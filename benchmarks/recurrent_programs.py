"""Loops over a sequence as people write them: `lax.scan` of JAX, and recurrent layers of ONNX, as files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import onnx
from jax import lax
from onnx import TensorProto, helper, numpy_helper

Array = Any
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


@dataclass(frozen=True)
class Scan:
    """A function of JAX and the shapes of its arguments, all of one dtype."""

    function: Callable[..., Array]
    shapes: tuple[tuple[int, ...], ...]
    dtype: str = "float32"

    def write(self, folder: Path) -> Path:
        """The file of the program."""
        arguments = [jax.ShapeDtypeStruct(shape, self.dtype) for shape in self.shapes]
        path = folder / "program.mlir"
        path.write_text(jax.jit(self.function).lower(*arguments).as_text())
        return path


@dataclass(frozen=True)
class Layer:
    """A recurrent layer of ONNX; `length` None: it is not known. `ends`: each sequence of the batch has a length of its own."""

    kind: str
    length: int | None
    batch: int
    width: int
    hidden: int
    direction: str = "forward"
    ends: bool = False

    def write(self, folder: Path) -> Path:
        """The file of the model."""
        draw = np.random.default_rng(0)
        directions, gates = 1 + (self.direction == "bidirectional"), GATES[self.kind] * self.hidden
        shapes = {"w": (directions, gates, self.width), "r": (directions, gates, self.hidden), "b": (directions, 2 * gates)}
        weights = [
            numpy_helper.from_array((draw.standard_normal(shape) / shape[-1] ** 0.5).astype(np.float32), name)
            for name, shape in shapes.items()
        ]
        names = ["x", "w", "r", "b", *(["ends"] if self.ends else [])]
        node = helper.make_node(self.kind, names, ["y"], hidden_size=self.hidden, direction=self.direction)
        length = self.length or "length"
        inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [length, self.batch, self.width])]
        inputs += [helper.make_tensor_value_info("ends", TensorProto.INT32, [self.batch])] if self.ends else []
        output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [length, directions, self.batch, self.hidden])
        graph = helper.make_graph([node], "layer", inputs, [output], weights)
        path = folder / "layer.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
        return path


# ---------------------------------------------------------------- functions


def moving_average(x: Array, h: Array, a: Array) -> Array:
    """h = a * h + x."""

    def step(h: Array, x: Array) -> tuple[Array, Array]:
        h = a * h + x
        return h, h

    return lax.scan(step, h, x)


def state_space(x: Array, d: Array, a: Array, b: Array, c: Array) -> Array:
    """A selective state space (Gu and Dao 2023, algorithm 2): h = exp(d a) h + d x b, and y is the sum of h c over the states."""

    def step(h: Array, now: tuple[Array, ...]) -> tuple[Array, Array]:
        x, d, b, c = now
        h = jnp.exp(d[:, :, None] * a) * h + (d * x)[:, :, None] * b[:, None, :]
        return h, jnp.sum(h * c[:, None, :], -1)

    return lax.scan(step, jnp.zeros((*x.shape[1:], a.shape[1]), x.dtype), (x, d, b, c))[1]


def linear_attention(q: Array, k: Array, v: Array) -> Array:
    """S = S + k v, y = q S, for each head: a state of two dims."""

    def step(s: Array, now: tuple[Array, ...]) -> tuple[Array, Array]:
        q, k, v = now
        s = 0.95 * s + k[:, :, None] * v[:, None, :]
        return s, jnp.sum(q[:, :, None] * s, 1)

    return lax.scan(step, jnp.zeros((q.shape[1], q.shape[2], v.shape[2]), q.dtype), (q, k, v))[1]


def rnn(x: Array, h: Array, w: Array, u: Array, b: Array) -> Array:
    """h = tanh(x w + h u + b)."""

    def step(h: Array, x: Array) -> tuple[Array, Array]:
        h = jnp.tanh(x @ w + h @ u + b)
        return h, h

    return lax.scan(step, h, x)


def rnn_gradient(x: Array, h: Array, w: Array, u: Array, b: Array) -> Array:
    """The gradients of a sum of the states: a second loop, from the end, reads what the first one kept."""
    return jax.grad(lambda w, u, b: jnp.sum(rnn(x, h, w, u, b)[1] ** 2), argnums=(0, 1, 2))(w, u, b)


def lstm(x: Array, h: Array, c: Array, w: Array, u: Array, b: Array) -> Array:
    """Four gates of one product."""

    def step(state: tuple[Array, Array], x: Array) -> tuple[tuple[Array, Array], Array]:
        h, c = state
        i, f, o, g = jnp.split(x @ w + h @ u + b, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    return lax.scan(step, (h, c), x)


def projected(x: Array, h: Array, w: Array, u: Array, v: Array) -> Array:
    """An RNN whose outputs are products of its states."""

    def step(h: Array, x: Array) -> tuple[Array, Array]:
        h = jnp.tanh(x @ w + h @ u)
        return h, h @ v

    return lax.scan(step, h, x)


def scans(length: int, batch: int, width: int, hidden: int, dtype: str = "float32") -> dict[str, Scan]:
    """The scans of these sizes by name."""
    sequence, state, square = (length, batch, width), (batch, hidden), (hidden, hidden)
    return {
        "moving average": Scan(moving_average, ((length, batch * hidden), (batch * hidden,), (batch * hidden,)), dtype),
        "state space": Scan(state_space, (sequence, sequence, (width, 16), (length, batch, 16), (length, batch, 16)), dtype),
        "linear attention": Scan(linear_attention, ((length, batch, 16), (length, batch, 16), sequence), dtype),
        "RNN": Scan(rnn, (sequence, state, (width, hidden), square, (hidden,)), dtype),
        "RNN's gradient": Scan(rnn_gradient, (sequence, state, (width, hidden), square, (hidden,)), dtype),
        "projected RNN": Scan(projected, (sequence, state, (width, hidden), square, (hidden, 24)), dtype),
        "LSTM": Scan(lstm, (sequence, state, state, (width, 4 * hidden), (hidden, 4 * hidden), (4 * hidden,)), dtype),
    }
