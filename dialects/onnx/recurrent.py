"""What ONNX's recurrent layers mean: RNN, GRU and LSTM as loops over the sequence, one direction after the other.

The text: https://onnx.ai/onnx/operators/onnx__LSTM.html, onnx__GRU.html, onnx__RNN.html.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from coset.dialects.hub.terms import broadcast, dot, splat, transpose
from coset.dialects.onnx import arithmetic as a
from coset.dialects.onnx import ops as onnx_ops
from coset.dialects.onnx.loops import scan
from coset.dialects.onnx.node import Built, Node, constant_elements, definition
from coset.ir import dims
from coset.ir.dims import Dim
from coset.ir.errors import require
from coset.ir.term import Term, make

DEFINED = onnx_ops.RULES  # some activation functions are ops of their own
Activation = Callable[[Term], Term]
MOST_LENGTHS = 1 << 16  # of sequences that are looked at
_OLDEST = 7  # before, other attributes and no optional results


def _plain(op: str) -> Callable[..., Activation]:
    return lambda *_: partial(a.pointwise, op)


def _named(op: str, *names: str) -> Callable[..., Activation]:
    return lambda *values: lambda x: make(op, (x,), dict(zip(names, values, strict=False)))


# activation function -> (default alpha, default beta; None: it takes none; NaN: it must be given), the function of alpha and beta
_ACTIVATIONS: dict[str, tuple[float | None, float | None, Callable[..., Activation]]] = {
    "relu": (None, None, lambda *_: lambda x: a.maximum(x, 0.0)),
    "tanh": (None, None, _plain("tanh")),
    "sigmoid": (None, None, _plain("logistic")),
    "affine": (1.0, 0.0, lambda alpha, beta: lambda x: a.add(a.multiply(x, alpha), beta)),
    "leakyrelu": (float(np.float32(0.01)), None, _named("onnx.LeakyRelu", "alpha")),
    "thresholdedrelu": (1.0, None, lambda alpha, _: lambda x: a.select(a.compare(x, "GE", alpha), x, 0.0)),
    "scaledtanh": (np.nan, np.nan, lambda alpha, beta: lambda x: a.multiply(a.tanh(a.multiply(x, beta)), alpha)),
    "hardsigmoid": (float(np.float32(0.2)), 0.5, _named("onnx.HardSigmoid", "alpha", "beta")),
    "elu": (1.0, None, _named("onnx.Elu", "alpha")),
    "softsign": (None, None, lambda *_: lambda x: a.divide(x, a.add(a.absolute(x), 1.0))),
    "softplus": (None, None, lambda *_: lambda x: make("onnx.Softplus", (x,))),
}  # fmt: skip


def _activations(node: Node, defaults: Sequence[str], directions: int) -> list[list[Activation]]:
    """The activation functions of each direction; alphas and betas are taken in order by those that have them."""
    names = [str(name).lower() for name in node.attributes.get("activations", ()) or tuple(defaults) * directions]
    require(len(names) == len(defaults) * directions, f"{node.name} takes {len(defaults)} activations for each direction")
    alphas, betas = (list(node.attributes.get(f"activation_{name}", ())) for name in ("alpha", "beta"))
    made: list[Activation] = []
    for name in names:
        require(name in _ACTIVATIONS, f"{node.name} has no activation function `{name}`")
        *parameters, function = _ACTIVATIONS[name]
        values = [None if p is None else given.pop(0) if given else p for p, given in zip(parameters, (alphas, betas), strict=True)]
        require(not any(value != value for value in values), f"the activation function `{name}` needs its alpha and beta")
        made.append(function(*values))
    return [made[i : i + len(defaults)] for i in range(0, len(made), len(defaults))]


@dataclass(frozen=True)
class _Layer:
    """The operands of one direction of a layer with `gates` gates: sequences [S, B, I], weights [G*H, I] and [G*H, H], a bias [2*G*H]."""

    x: Term
    weights: Term
    recurrent: Term
    bias: Term | None
    gates: int

    @property
    def hidden(self) -> Dim:
        return self.recurrent.tensor.dims[1]

    def part(self, vector: Term, gate: int) -> Term:
        """Gate `gate`'s part of the leading dim of `vector`."""
        size = self.hidden
        return a.take(vector, 0, dims.multiply(gate, size), dims.multiply(gate + 1, size))

    def half(self, first: int) -> Term | None:
        """The biases of the weights (first = 0) or of the recurrent weights (first = gates)."""
        if self.bias is None:
            return None
        return a.concatenate([self.part(self.bias, first + gate) for gate in range(self.gates)], 0)

    def projected(self) -> list[Term]:
        """What the sequence adds to each gate, [S, B, H], with the bias of the weights."""
        bias, result = self.half(0), []
        for gate in range(self.gates):
            product = dot(self.x, self.part(self.weights, gate), lhs_contract=(2,), rhs_contract=(1,))
            result.append(product if bias is None else a.add(product, self.part(bias, gate)))
        return result


def _with_bias(x: Term, bias: Term | None) -> Term:
    return x if bias is None else a.add(x, bias)


def _through(h: Term, weights: Term) -> Term:
    """h [B, H] times the transposed weights [H, H]."""
    return dot(h, weights, lhs_contract=(1,), rhs_contract=(1,))


def _rnn_cell(node: Node, layer: _Layer, _: Term | None, functions: list[Activation], clip: Callable[[Term], Term]) -> Any:
    """h' = f(x W^T + h R^T + biases)."""
    captured = [layer.recurrent, *_given(layer.half(1))]

    def step(x: list[Term], state: Sequence[Term], weights: Sequence[Term]) -> list[Term]:
        return [functions[0](clip(a.add(x[0], _with_bias(_through(state[0], weights[0]), _second(weights)))))]

    return captured, step


def _second(terms: Sequence[Term]) -> Term | None:
    return terms[1] if len(terms) > 1 else None


def _given(*terms: Term | None) -> list[Term]:
    return [term for term in terms if term is not None]


def _gru_cell(node: Node, layer: _Layer, _: Term | None, functions: list[Activation], clip: Callable[[Term], Term]) -> Any:
    """z and r by f, the candidate by g; h' = (1 - z) candidate + z h. The reset gate works before or after the recurrent weights."""
    before = not node.attributes.get("linear_before_reset", 0)
    f, g = functions
    captured = [layer.recurrent, *_given(layer.half(3))]

    def step(x: list[Term], state: Sequence[Term], weights: Sequence[Term]) -> list[Term]:
        h, bias = state[0], _second(weights)
        parts = [layer.part(weights[0], gate) for gate in range(3)]
        biases = [None if bias is None else layer.part(bias, gate) for gate in range(3)]
        update, reset = (f(clip(a.add(x[gate], _with_bias(_through(h, parts[gate]), biases[gate])))) for gate in (0, 1))
        if before:
            inner = _with_bias(_through(a.multiply(reset, h), parts[2]), biases[2])
        else:
            inner = a.multiply(reset, _with_bias(_through(h, parts[2]), biases[2]))
        candidate = g(clip(a.add(x[2], inner)))
        return [a.add(a.multiply(a.subtract(splat(1, h.tensor.dtype, ()), update), candidate), a.multiply(update, h))]

    return captured, step


def lstm_cell(
    node: Node, layer: _Layer, peepholes: Term | None, functions: list[Activation], clip: Callable[[Term], Term],
    seen: Callable[[Term], Term] | None = None,
) -> Any:  # fmt: skip
    """c' = f c + i g(cell gate), h' = o h(c'); gates in the order i, o, f, c; `input_forget` makes f = 1 - i. `seen` says what the
    recurrent weights see of the hidden state, if not all of it."""
    f, g, h = functions
    coupled = node.attributes.get("input_forget", 0)
    captured = [layer.recurrent, *_given(layer.half(4), peepholes)]

    def step(x: list[Term], state: Sequence[Term], weights: Sequence[Term]) -> list[Term]:
        hidden, cell = state
        hidden = hidden if seen is None else seen(hidden)
        bias = weights[1] if layer.bias is not None else None
        peep = weights[-1] if peepholes is not None else None

        def gate(number: int, *seen: Term) -> Term:
            own = None if bias is None else layer.part(bias, number)
            total = a.add(x[number], _with_bias(_through(hidden, layer.part(weights[0], number)), own))
            for value in seen if peep is not None else ():
                assert peep is not None
                total = a.add(total, a.multiply(value, layer.part(peep, number)))
            return clip(total)

        let_in = f(gate(0, cell))
        forget = a.subtract(splat(1, cell.tensor.dtype, ()), let_in) if coupled else f(gate(2, cell))
        new = a.add(a.multiply(forget, cell), a.multiply(let_in, g(gate(3))))
        return [a.multiply(f(gate(1, new)), h(new)), new]

    return captured, step


def recurrent(node: Node, gates: int, defaults: Sequence[str], cell: Any, states: int) -> Built:
    """Y, Y_h and, with two states, Y_c: each direction is a loop; sequences that have ended keep their state and give zeros. Of one without
    a step the last states are zeros, as ONNX Runtime has it: the standard does not say."""
    if node.since < _OLDEST:
        return None
    batched = node.attributes.get("layout", 0)
    require(all(operand.tensor.rank == 3 for operand in node.operands[:3]), f"{node.name} takes a sequence and weights of rank 3")
    x = transpose(node.operands[0], (1, 0, 2)) if batched else node.operands[0]
    batch = x.tensor.dims[1]
    kind = node.attributes.get("direction", "forward")
    require(kind in ("forward", "reverse", "bidirectional"), f"{node.name} has no direction `{kind}`")
    turns = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[kind]
    functions = _activations(node, defaults, len(turns))
    clip = _clipped(node.attributes.get("clip"))
    initial = [node.operand(5 + i) for i in range(states)]
    initial = [transpose(h, (1, 0, 2)) if batched and h is not None else h for h in initial]
    sequences: list[Term] = []
    finals: list[list[Term]] = [[] for _ in range(states)]
    for direction, backward in enumerate(turns):
        w, r, b, p = (_picked(node, index, direction) for index in (1, 2, 3, 7))
        assert w is not None and r is not None
        layer = _Layer(x, w, r, b, gates)
        zero = splat(0, x.tensor.dtype, (batch, layer.hidden))
        start = [zero if h is None else a.picked(h, 0, direction) for h in initial]
        last, outputs = _one_direction(
            node, layer, cell(node, layer, p if states == 2 else None, functions[direction], clip), start, backward
        )
        sequences.append(outputs)
        for number, value in enumerate(_of_steps(last, x.tensor.dims[0], node.operand(4))):
            finals[number].append(value)
    y = a.concatenate([a.unsqueeze(outputs, 1) for outputs in sequences], 1)
    ends = [a.concatenate([a.unsqueeze(value, 0) for value in values], 0) for values in finals]
    if batched:
        return transpose(y, (2, 0, 1, 3)), *(transpose(value, (1, 0, 2)) for value in ends)
    return y, *ends


def _of_steps(states: Sequence[Term], length: Dim, lengths: Term | None) -> Sequence[Term]:
    """The last states, of sequences of so many steps at most: zeros where there was none."""
    if length == 0:
        return [splat(0, state.tensor.dtype, state.tensor.dims) for state in states]
    known = None if lengths is None else constant_elements(lengths, MOST_LENGTHS)
    if lengths is None or (known is not None and bool((known > 0).all())):
        return states
    some = a.compare(lengths, "GT", 0)
    return [a.select(broadcast(some, state.tensor.dims, (0,)), state, 0.0) for state in states]


def _picked(node: Node, index: int, direction: int) -> Term | None:
    operand = node.operand(index)
    return None if operand is None else a.picked(operand, 0, direction)


def _clipped(bound: float | None) -> Activation:
    return (lambda x: x) if not bound else lambda x: a.minimum(a.maximum(x, -bound), bound)


def _one_direction(node: Node, layer: _Layer, cell: Any, start: list[Term], backward: bool) -> tuple[list[Term], Term]:
    """The states after the last step, and the hidden state of each step in the order of the sequence."""
    captured, step = cell
    projected = layer.projected()
    length = layer.x.tensor.dims[0]
    lengths = node.operand(4)
    times = [] if lengths is None else [a.iota((length,), 0, lengths.tensor.dtype)]
    ends = [] if lengths is None else [lengths]

    def whole(_: Term, state: Sequence[Term], elements: Sequence[Term], constants: Sequence[Term]) -> tuple[list[Term], list[Term]]:
        new = step(list(elements[: layer.gates]), state, constants[: len(captured)])
        if lengths is None:
            return new, [new[0]]
        shape = state[0].tensor.dims
        open_ = broadcast(a.compare(elements[-1], "LT", constants[-1]), shape, (0,))
        return [a.select(open_, value, old) for value, old in zip(new, state, strict=True)], [a.select(open_, new[0], 0.0)]

    consumed = [*projected, *times]
    last, (outputs,) = scan(
        whole, start, consumed, [*captured, *ends], length, backward=(backward,) * len(consumed), stacked=(backward,)
    )  # fmt: skip
    return last, outputs


@definition("RNN")
def _rnn(node: Node) -> Built:
    return recurrent(node, 1, ("Tanh",), _rnn_cell, 1)


@definition("GRU")
def _gru(node: Node) -> Built:
    return recurrent(node, 3, ("Sigmoid", "Tanh"), _gru_cell, 1)


@definition("LSTM")
def _lstm(node: Node) -> Built:
    return recurrent(node, 4, ("Sigmoid", "Tanh", "Tanh"), lstm_cell, 2)
