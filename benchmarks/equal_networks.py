"""Spellings of parts of networks: heads of attention, loops and what they unroll to, recurrences, branches, functions, exports by torch."""

from __future__ import annotations

import importlib.util
import io
import warnings
from collections.abc import Iterator
from contextlib import redirect_stdout
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from benchmarks.spelled_net import Net, Spelled, both, form, weights

Models = tuple[Any, Any]


# ---------------------------------------------------------------- heads


def _sizes(*values: tuple[Any, int, int, int]) -> tuple[dict[str, Any], ...]:
    return tuple(dict(zip(("batch", "rows", "heads", "depth"), each, strict=True)) for each in values)


HEADS = _sizes((1, 4, 2, 3), (2, 5, 3, 4), ("n", 4, 2, 4), (2, 6, 4, 2), (1, 3, 1, 5))


def _moved(net: Net, x: str, heads: int, depth: int, rows: int) -> str:
    """Heads in front of rows, by reshape and transpose."""
    return str(net("Transpose", net("Reshape", x, net.ints(-1, rows, heads, depth)), perm=[0, 2, 1, 3]))


def _attended(net: Net, q: str, k: str, v: str, depth: int, *, rank: int = 4) -> str:
    """softmax(q k^T / sqrt(depth)) v."""
    turned = net("Transpose", k, perm=[*range(rank - 2), rank - 1, rank - 2])
    scores = net("Mul", net("MatMul", q, turned), net.const(np.float64(depth**-0.5)))
    return str(net("MatMul", net("Softmax", scores, axis=-1), v))


@form(*HEADS)
def heads_by_split(batch: Any, rows: int, heads: int, depth: int) -> Models:
    """Attention of all heads at once, and of each of the parts of a Split, put together again."""
    a, b = both(18)
    width = heads * depth
    names = [[net.input(name, [batch, rows, width]) for name in "qkv"] for net in (a, b)]
    whole = _attended(a, *[_moved(a, name, heads, depth, rows) for name in names[0]], depth)
    one = a("Reshape", a("Transpose", whole, perm=[0, 2, 1, 3]), a.ints(-1, rows, width))
    parts = [b("Split", name, b.ints(*[depth] * heads), results=heads, axis=-1) for name in names[1]]
    parts = [[each] if heads == 1 else each for each in parts]
    apart = [_attended(b, *each, depth, rank=3) for each in zip(*parts, strict=True)]
    return a.model(one), b.model(b("Concat", *apart, axis=-1))


@form(*HEADS)
def heads_moved_by_split(batch: Any, rows: int, heads: int, depth: int) -> Models:
    """Heads in front of rows by reshape and transpose, and by Split, Unsqueeze and Concat."""
    a, b = both(18)
    x = [net.input("x", [batch, rows, heads * depth]) for net in (a, b)]
    parts = b("Split", x[1], b.ints(*[depth] * heads), results=heads, axis=-1)
    parts = [parts] if heads == 1 else parts
    return a.model(_moved(a, x[0], heads, depth, rows)), b.model(b("Concat", *[b("Unsqueeze", part, b.ints(1)) for part in parts], axis=1))


@form(*HEADS)
def heads_by_einsum(batch: Any, rows: int, heads: int, depth: int) -> Models:
    a, b = both(18)
    names = [[net.input(name, [batch, heads, rows, depth]) for name in "qkv"] for net in (a, b)]
    q, k, v = names[1]
    scores = b("Mul", b("Einsum", q, k, equation="bhid,bhjd->bhij"), b.const(np.float64(depth**-0.5)))
    other = b("Einsum", b("Softmax", scores, axis=-1), v, equation="bhij,bhjd->bhid")
    return a.model(_attended(a, *names[0], depth)), b.model(other)


@form(*HEADS)
def attention_as_one_op(batch: Any, rows: int, heads: int, depth: int) -> Models:
    a, b = both(23)
    names = [[net.input(name, [batch, heads, rows, depth]) for name in "qkv"] for net in (a, b)]
    return a.model(a("Attention", *names[0])), b.model(_attended(b, *names[1], depth))


@form(*HEADS)
def scale_before_the_product(batch: Any, rows: int, heads: int, depth: int) -> Models:
    """Scores scaled, and queries scaled by a power of two."""
    a, b = both(18)
    names = [[net.input(name, [batch, heads, rows, depth]) for name in "qk"] for net in (a, b)]
    one = a("Mul", a("MatMul", names[0][0], a("Transpose", names[0][1], perm=[0, 1, 3, 2])), a.const(np.float64(0.5)))
    other = b("MatMul", b("Mul", names[1][0], b.const(np.float64(0.5))), b("Transpose", names[1][1], perm=[0, 1, 3, 2]))
    return a.model(a("Softmax", one)), b.model(b("Softmax", other))


@form(*HEADS)
def one_projection_for_all(batch: Any, rows: int, heads: int, depth: int) -> Models:
    """q, k and v by three products, and by one that is split."""
    a, b = both(18)
    width = heads * depth
    x = [net.input("x", [batch, rows, width]) for net in (a, b)]
    ws = [weights(width, width, seed=seed) for seed in range(3)]
    one = _attended(a, *[_moved(a, a("MatMul", x[0], a.const(w)), heads, depth, rows) for w in ws], depth)
    parts = b("Split", b("MatMul", x[1], b.const(np.concatenate(ws, 1))), b.ints(width, width, width), results=3, axis=-1)
    return a.model(one), b.model(_attended(b, *[_moved(b, part, heads, depth, rows) for part in parts], depth))


# ---------------------------------------------------------------- loops


@form(*({"turns": turns, "shape": shape} for turns in (1, 2, 4) for shape in ((3,), ("n", 4))))
def loop_unrolled(turns: int, shape: Any) -> Models:
    """x becomes tanh(x * 0.5) + x so many times."""
    a, b = both(16)
    x = [net.input("x", shape) for net in (a, b)]
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("h", "next")]
    counted = helper.make_tensor_value_info("turn", TensorProto.INT64, [])
    kept = [helper.make_tensor_value_info(name, TensorProto.BOOL, []) for name in ("go", "on")]
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Mul", ["h", "half"], ["m"]),
            helper.make_node("Tanh", ["m"], ["t"]), helper.make_node("Add", ["t", "h"], ["next"]),
        ],
        "body", [counted, kept[0], value[0]], [kept[1], value[1]], [onnx.numpy_helper.from_array(np.float32(0.5), "half")],
    )  # fmt: skip
    one = a("Loop", a.const(np.array(turns)), a.const(np.array(True)), x[0], body=body)
    other = x[1]
    for _ in range(turns):
        other = b("Add", other, b("Tanh", b("Mul", b.const(np.float64(0.5)), other)))
    return a.model(one), b.model(other)


@form(*({"steps": steps, "width": width} for steps in (1, 2, 4) for width in (3, 5)))
def scan_unrolled(steps: int, width: int) -> Models:
    """A running h = tanh(h + x_t) over the rows of x, by Scan and row by row."""
    a, b = both(16)
    x = [net.input("x", [steps, width]) for net in (a, b)]
    start = [net.input("h", [width]) for net in (a, b)]
    values = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [width]) for name in ("s", "row", "t", "out")}
    body = helper.make_graph(
        [helper.make_node(*each) for each in (("Add", ["s", "row"], ["m"]), ("Tanh", ["m"], ["t"]), ("Identity", ["t"], ["out"]))],
        "body", [values["s"], values["row"]], [values["t"], values["out"]],
    )  # fmt: skip
    last, every = a("Scan", start[0], x[0], results=2, body=body, num_scan_inputs=1)
    state, rows = start[1], []
    for step in range(steps):
        state = b("Tanh", b("Add", state, b("Gather", x[1], b.const(np.array(step)), axis=0)))
        rows.append(b("Unsqueeze", state, b.ints(0)))
    return a.model(last, every), b.model(state, b("Concat", *rows, axis=0))


@form(*({"steps": steps, "hidden": hidden} for steps, hidden in ((1, 2), (2, 3), (3, 2))))
def recurrence_unrolled(steps: int, hidden: int) -> Models:
    """A recurrent layer, and its equations step by step. (The runtime's GRU and LSTM lose a NaN.)"""
    a, b = both(14)
    batch, width = 2, 3
    x = [net.input("x", [steps, batch, width]) for net in (a, b)]
    w, r, bias = (weights(*shape).astype(np.float32) for shape in ((1, hidden, width), (1, hidden, hidden), (1, 2 * hidden)))
    _, last = a("RNN", x[0], *map(a.const, (w, r, bias)), results=2, hidden_size=hidden)
    state = b.const(np.zeros((batch, hidden)))
    for number in range(steps):
        step = b("Gather", x[1], b.const(np.array(number)), axis=0)
        given = b("Add", b("MatMul", step, b.const(w[0].T.copy())), b.const(bias[0, :hidden] + bias[0, hidden:]))
        state = b("Tanh", b("Add", given, b("MatMul", state, b.const(r[0].T.copy()))))
    return a.model(last), b.model(b("Unsqueeze", state, b.ints(0)))


# ---------------------------------------------------------------- branches and functions


@form(*({"shape": shape, "condition": condition} for shape in ((3, 4), ("n", 5)) for condition in (True, False)))
def branch_that_is_taken(shape: Any, condition: bool) -> Models:
    a, b = both(16)
    x = [net.input("x", shape) for net in (a, b)]
    ends = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)] for name in ("p", "q")]
    bodies = [helper.make_graph([helper.make_node(op, ["x"], [end[0].name])], end[0].name, [], end)
              for op, end in zip(("Tanh", "Sigmoid"), ends, strict=True)]  # fmt: skip
    one = a("If", a.const(np.array(condition)), then_branch=bodies[0], else_branch=bodies[1])
    return a.model(a("Mul", one, x[0])), b.model(b("Mul", x[1], b("Tanh" if condition else "Sigmoid", x[1])))


@form(*({"shape": shape} for shape in ((3, 4), ("n", 5), (2, 3, 4))))
def branch_as_choice(shape: Any) -> Models:
    """If with an input as its condition, and a Where of both sides."""
    a, b = both(16)
    x = [net.input("x", shape) for net in (a, b)]
    asked = [net.input("c", [], "bool") for net in (a, b)]
    ends = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)] for name in ("p", "q")]
    bodies = [helper.make_graph([helper.make_node(op, ["x"], [end[0].name])], end[0].name, [], end)
              for op, end in zip(("Tanh", "Sigmoid"), ends, strict=True)]  # fmt: skip
    one = a("If", asked[0], then_branch=bodies[0], else_branch=bodies[1])
    return a.model(one), b.model(b("Where", asked[1], b("Tanh", x[1]), b("Sigmoid", x[1])))


@form(*({"shape": shape} for shape in ((3, 4), ("n", 5), (2, 3, 4))))
def function_inlined(shape: Any) -> Models:
    """A function of the model's own, and its nodes in its place."""
    a, b = both(18)
    x = [net.input("x", shape) for net in (a, b)]
    nodes = [helper.make_node("Sigmoid", ["p"], ["s"]), helper.make_node("Mul", ["p", "s"], ["q"])]
    a.functions.append(helper.make_function("local", "Silu", ["p"], ["q"], nodes, [helper.make_opsetid("", 18)]))
    one = a("Silu", a("Silu", x[0], domain="local"), domain="local")
    once = b("Mul", x[1], b("Sigmoid", x[1]))
    return a.model(one), b.model(b("Mul", once, b("Sigmoid", once)))


@form(*({"opsets": opsets, "shape": shape} for opsets in ((9, 13), (11, 17), (13, 18), (17, 21)) for shape in ((3, 4), ("n", 6))))
def net_in_two_versions(opsets: tuple[int, int], shape: Any) -> Models:
    """A small net without ops that changed, in two versions of the opset."""
    models = []
    for opset in opsets:
        net = Net(opset)
        x = net.input("x", shape)
        hidden = net("Relu", net("Gemm", x, net.const(weights(int(shape[1]), 8)), net.const(weights(8))))
        scaled = net("Mul", net("Softmax", hidden, axis=1), net.const(np.float64(2)))
        models.append(net.model(net("Concat", scaled, net("Transpose", net("Transpose", hidden, perm=[1, 0]), perm=[1, 0]), axis=1)))
    return models[0], models[1]


# ---------------------------------------------------------------- exports


def exported() -> Iterator[Spelled]:
    """Small nets as torch exports them at versions 13 and 18 of the opset, with a number and a name for the batch; none without torch."""
    if importlib.util.find_spec("torch") is None:
        return
    import torch

    for name, module, shape in _nets(torch):
        for free in (False, True):
            models = tuple(_export(torch, module, shape, opset, free=free) for opset in (13, 18))
            yield Spelled("torch_export", f"torch_export {name} free={free}", (models[0], models[1]))


def _nets(torch: Any) -> list[tuple[str, Any, tuple[int, ...]]]:
    nn = torch.nn
    torch.manual_seed(0)
    conv = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 5))
    dense = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3), nn.Softmax(-1))
    pools = nn.Sequential(nn.Conv2d(2, 4, 3, groups=2), nn.GroupNorm(2, 4), nn.Hardswish(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    upsampled = nn.Sequential(nn.Conv2d(2, 3, 1), nn.Upsample(scale_factor=2, mode="nearest"), nn.LeakyReLU(0.1), nn.AvgPool2d(2))
    norms = nn.Sequential(nn.InstanceNorm1d(3, affine=True), nn.PReLU(3), nn.Conv1d(3, 2, 3), nn.Hardtanh(), nn.Softplus())
    shuffled = nn.Sequential(nn.Conv2d(2, 8, 3, padding=1), nn.PixelShuffle(2), nn.ELU(), nn.ReflectionPad2d(1), nn.SiLU())

    class Attention(nn.Module):  # type: ignore[misc,name-defined]
        """One layer of attention."""

        def __init__(self) -> None:
            super().__init__()
            self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)

        def forward(self, x: Any) -> Any:
            """Two heads over the rows of x."""
            q, k, v = (each.unflatten(-1, (2, 4)).transpose(1, 2) for each in self.qkv(x).chunk(3, -1))
            scores = torch.softmax(q @ k.transpose(-1, -2) / 2.0, -1)
            return x + self.out((scores @ v).transpose(1, 2).flatten(-2))

    class Reduced(nn.Module):  # type: ignore[misc,name-defined]
        """Reductions, slices, and what is put together."""

        def forward(self, x: Any) -> Any:
            """Mean, variance and extremes beside each other."""
            parts = [
                x.mean(-1, keepdim=True),
                x.var(-1, keepdim=True, unbiased=False),
                x.amax(-1, keepdim=True),
                x[..., 1:3].sum(-1, keepdim=True),
            ]
            return torch.cat([*parts, x.clamp(-1, 1), x.cumsum(-1)], -1)

    found = [("conv", conv, (2, 3, 8, 8)), ("dense", dense, (2, 6)), ("pools", pools, (2, 2, 6, 6)), ("upsampled", upsampled, (2, 2, 4, 4)),
             ("norms", norms, (2, 3, 7)), ("shuffled", shuffled, (2, 2, 5, 5)), ("attention", Attention(), (2, 5, 8)),
             ("reduced", Reduced(), (2, 3, 6))]  # fmt: skip
    return [(name, module.eval(), shape) for name, module, shape in found]


def _export(torch: Any, module: Any, shape: tuple[int, ...], opset: int, *, free: bool) -> Any:
    """The model that torch's exporter of scripts writes."""
    file = io.BytesIO()
    axes = {"x": {0: "batch"}} if free else None
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        torch.onnx.export(module, (torch.randn(*shape),), file, opset_version=opset, input_names=["x"], output_names=["y"],
                          dynamic_axes=axes, dynamo=False)  # fmt: skip
    return onnx.load_model_from_string(file.getvalue())
