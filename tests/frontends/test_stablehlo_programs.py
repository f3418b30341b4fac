"""Programs of JAX and torch-mlir: imported, evaluated, printed, imported again, run by the interpreter and by XLA: one result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch_mlir", reason="the `mlir` extra is not installed")

from coset.backends.stablehlo_interpreter import StablehloInterpreter
from coset.frontends.stablehlo.program import import_stablehlo
from coset.ir.builtin import OPAQUE
from coset.ir.evaluate import evaluate_program
from coset.ir.program import Program
from coset.ir.term import Term, topological
from coset.lowering.stablehlo.module import print_stablehlo
from coset.rules.definition import evaluate_defined

Array = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(0)
# f32 sums of at most some hundred products of numbers near 1, in other orders: n * eps / 2 * sum of magnitudes stays below
TOLERANCE = 2e-5


def normal(*shape: int) -> Array:
    return RANDOM.normal(size=shape).astype(np.float32)


@pytest.fixture(scope="module")
def interpreter() -> Iterator[StablehloInterpreter]:
    with StablehloInterpreter() as child:
        yield child


@dataclass(frozen=True)
class Case:
    """A function of arrays (or trees of them); `dynamic`: (argument, dim) pairs that are one symbol in the dynamic form."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    dynamic: tuple[tuple[int, int], ...] = ()
    keywords: Mapping[str, Any] = field(default_factory=dict)


# ---------------------------------------------------------------- JAX


def _mlp(x: Any, w1: Any, b1: Any, w2: Any) -> Any:
    import jax

    return jax.nn.gelu(x @ w1 + b1) @ w2


def _attention(x: Any, w: Any) -> Any:
    import jax
    import jax.numpy as jnp

    parts = [t.reshape(*t.shape[:-1], 2, -1) for t in jnp.split(x @ w, 3, -1)]
    return jax.nn.dot_product_attention(*parts, is_causal=True)


def _convolutions(x: Any, kernel: Any) -> Any:
    import jax

    y = jax.lax.conv_general_dilated(x, kernel, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    y = jax.nn.relu(y)
    largest = jax.lax.reduce_window(y, -np.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return largest, jax.lax.reduce_window(y, 0.0, jax.lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "SAME")


def _normalizations(x: Any, scale: Any) -> Any:
    import jax

    centered = x - x.mean(-1, keepdims=True)
    return centered * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * scale, jax.nn.logsumexp(x, -1), jax.nn.softmax(x)


def _recurrent(xs: Any, h: Any, w: Any, u: Any) -> Any:
    import jax
    import jax.numpy as jnp

    def step(h: Any, x: Any) -> Any:
        update, reset, new = jnp.split(x @ w + h @ u, 3, -1)
        update = jax.nn.sigmoid(update)
        h = update * h + (1 - update) * jnp.tanh(jax.nn.sigmoid(reset) * new)
        return h, h

    return jax.lax.scan(step, h, xs)


def _training_step(parameters: Any, x: Any, labels: Any) -> Any:
    import jax
    import jax.numpy as jnp

    def loss(p: Any) -> Any:
        logits = jnp.tanh(x @ p["a"] + p["b"]) @ p["c"]
        return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * jax.nn.one_hot(labels, 3), -1))

    value, gradients = jax.value_and_grad(loss)(parameters)
    return value, jax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradients)


def _convolution_gradient(x: Any, kernel: Any) -> Any:
    import jax

    def loss(k: Any) -> Any:
        y = jax.lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW"))
        return (jax.lax.reduce_window(y, -np.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID") ** 2).sum()

    return jax.grad(loss)(kernel)


def _orders(x: Any) -> Any:
    import jax.numpy as jnp

    return jnp.sort(x, -1), jnp.argsort(x, -1), jnp.argmax(x, -1), jnp.cumsum(x, 0)


def _tables(table: Any, rows: Any) -> Any:
    import jax.numpy as jnp

    return table[rows], table.at[rows].add(1.0), jnp.take_along_axis(table[:4], rows[:, None] % table.shape[1], 1)


def _control(x: Any, flag: Any) -> Any:
    import jax
    import jax.numpy as jnp

    chosen = jax.lax.cond(flag, lambda: x * 2, lambda: x.sum() * jnp.ones_like(x))
    counted = jax.lax.fori_loop(0, 5, lambda i, c: c + x * i, x)
    return chosen, counted, jax.lax.while_loop(lambda c: c.sum() < 100.0, lambda c: c * 2, jnp.abs(x) + 1)


JAX = {
    "mlp": Case(_mlp, (normal(3, 8), normal(8, 16), normal(16), normal(16, 4)), ((0, 0),)),
    "attention": Case(_attention, (normal(2, 5, 8), normal(8, 24)), ((0, 0),)),
    "convolutions": Case(_convolutions, (normal(2, 8, 8, 3), normal(3, 3, 3, 4)), ((0, 0),)),
    "normalizations": Case(_normalizations, (normal(4, 6), normal(6)), ((0, 0),)),
    "scan GRU": Case(_recurrent, (normal(6, 2, 3), normal(2, 4), normal(3, 12), normal(4, 12)), ((0, 1), (1, 0))),
    "training step": Case(
        _training_step,
        ({"a": normal(5, 8), "b": normal(8), "c": normal(8, 3)}, normal(4, 5), np.array([0, 1, 2, 1], np.int32)),
        ((1, 0), (2, 0)),
    ),
    "gradient of a convolution": Case(_convolution_gradient, (normal(2, 3, 6, 6), normal(4, 3, 3, 3))),
    "orders": Case(_orders, (normal(4, 6),)),
    "tables": Case(_tables, (normal(10, 4), np.array([1, 3, 3, 9], np.int32))),
    "control flow": Case(_control, (normal(4), np.bool_(True))),
}


def leaves(tree: Any) -> list[Array]:
    import jax

    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


def opaque(program: Program) -> list[str]:
    """The names of kept operations, those inside regions too."""
    found, pending = [], list(program.roots)
    seen: set[Term] = set()
    while pending:
        for term in topological(pending):
            if term in seen:
                continue
            seen.add(term)
            found += [str(term.attribute("name"))] if term.op is OPAQUE else []
        pending = [r for term in list(seen) for region in term.regions for r in region.results if r not in seen]
    return found


def check(program: Program, arrays: list[Array], wanted: list[Array], interpreter: StablehloInterpreter) -> str:
    """Evaluate, print, import, evaluate, run: the printed static text."""
    assert not opaque(program)
    feed = {str(term.attribute("name")): array for term, array in zip(program.inputs, arrays, strict=True)}
    close(evaluate_program(program, feed, fallback=evaluate_defined)[: len(wanted)], wanted)
    again = import_stablehlo(print_stablehlo(program))
    assert not opaque(again)
    assert [term.type for term in again.inputs] == [term.type for term in program.inputs] or program.symbols()
    renamed = dict(zip((str(term.attribute("name")) for term in again.inputs), arrays, strict=True))
    close(evaluate_program(again, renamed, fallback=evaluate_defined)[: len(wanted)], wanted)
    binding = {
        str(dim): size for term, x in zip(program.inputs, arrays, strict=True) for dim, size in zip(term.tensor.dims, x.shape, strict=True)
    }
    alone = replace(program, source=None)  # the interpreter knows no assertions about sizes
    text = print_stablehlo(alone, binding={name: binding[name] for name in program.symbols()})
    close(interpreter.run(text, arrays), wanted)
    return text


def close(ours: list[Any], wanted: list[Array]) -> None:
    assert len(ours) == len(wanted)
    for mine, other in zip(ours, wanted, strict=True):
        assert (np.shape(mine), np.asarray(mine).dtype) == (other.shape, other.dtype)
        np.testing.assert_allclose(mine, other, rtol=TOLERANCE, atol=TOLERANCE)


def xla(text: str, arrays: list[Array]) -> list[Array]:
    """The results of `main` compiled by XLA for the CPU."""
    import jax
    from jax._src.interpreters import mlir
    from jaxlib import xla_client
    from jaxlib.mlir import ir

    client = jax.devices("cpu")[0].client
    with mlir.make_ir_context():
        devices = xla_client.DeviceList(tuple(client.devices()[:1]))
        program = client.compile_and_load(ir.Module.parse(text), devices, xla_client.CompileOptions())
    return [np.asarray(x) for x in program.execute([jax.device_put(x) for x in arrays])]


@pytest.mark.parametrize("name", JAX)
@pytest.mark.parametrize("form", ["text", "artifact", "dynamic"])
def test_jax_programs_keep_their_meaning(name: str, form: str, interpreter: StablehloInterpreter) -> None:
    jax = pytest.importorskip("jax", reason="the `jax` extra is not installed")
    from jax import export

    case = JAX[name]
    jitted = jax.jit(case.function)
    wanted, arrays = leaves(jitted(*case.arguments)), leaves(case.arguments)
    source: Any
    if form == "text":
        source = jitted.lower(*case.arguments).as_text()
    elif form == "artifact":
        pytest.importorskip("flatbuffers", reason="JAX serializes with flatbuffers")
        source = export.export(jitted)(*case.arguments).mlir_module_serialized
    else:
        if not case.dynamic:
            pytest.skip("the program has no dynamic form")
        (batch,) = export.symbolic_shape("b,")
        places = set(case.dynamic)

        def spec(index: int, leaf: Any) -> Any:
            shape = tuple(batch if (index, axis) in places else size for axis, size in enumerate(np.shape(leaf)))
            return jax.ShapeDtypeStruct(shape, np.asarray(leaf).dtype)

        specs = [jax.tree.map(lambda leaf, i=i: spec(i, leaf), argument) for i, argument in enumerate(case.arguments)]
        source = export.export(jitted)(*specs).mlir_module()
    program = import_stablehlo(source)
    assert program.symbols() == (("b",) if form == "dynamic" else ())
    text = check(program, arrays, wanted, interpreter)
    close(xla(text, arrays), wanted)


# ---------------------------------------------------------------- torch-mlir


def _torch_cases() -> dict[str, tuple[Any, tuple[Any, ...], bool]]:
    import torch
    from torch import nn

    torch.manual_seed(0)

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)

        def forward(self, x: Any) -> Any:
            q, k, v = (t.view(x.shape[0], x.shape[1], 2, 4).transpose(1, 2) for t in self.qkv(x).split(8, -1))
            mixed = nn.functional.scaled_dot_product_attention(q, k, v)
            return self.out(mixed.transpose(1, 2).reshape(x.shape[0], x.shape[1], 8))

    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gru = nn.GRU(3, 4, batch_first=True)

        def forward(self, x: Any) -> Any:
            return self.gru(x)[0]

    network = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 4, 3, groups=4, stride=2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(),
    )  # fmt: skip
    return {
        "mlp": (nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)), (torch.randn(3, 8),), True),
        "normalizations": (nn.Sequential(nn.Linear(8, 4), nn.LayerNorm(4), nn.Softmax(-1)), (torch.randn(3, 8),), True),
        "convolutions": (network, (torch.randn(2, 3, 8, 8),), True),
        "attention": (Attention(), (torch.randn(2, 5, 8),), True),
        "gru": (Recurrent(), (torch.randn(2, 5, 3),), False),
    }


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("name", ["mlp", "normalizations", "convolutions", "attention", "gru"])
@pytest.mark.filterwarnings("ignore")
def test_torch_programs_keep_their_meaning(name: str, dynamic: bool, interpreter: StablehloInterpreter) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    fx = pytest.importorskip("torch_mlir.fx", reason="torch-mlir's importer needs torch")
    module, arguments, batched = _torch_cases()[name]
    if dynamic and not batched:
        pytest.skip("the program has no dynamic form")
    module = module.eval()
    batch = torch.export.Dim("b", min=2, max=64)
    options = {"dynamic_shapes": ({0: batch},)} if dynamic else {}
    exported = fx.export_and_import(module, *arguments, output_type="stablehlo", **options)
    program = import_stablehlo(str(exported))
    assert len(program.symbols()) == int(dynamic)
    check(program, [x.numpy() for x in arguments], [module(*arguments).detach().numpy()], interpreter)
