"""A training step with attention: loss and gradients in one program are kernels that write no scores."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402
from torch.nn.functional import cross_entropy, gelu, layer_norm, softmax  # noqa: E402

from coset.backends.torch_package import TorchPackage  # noqa: E402
from coset.comparing.reference import read_program  # noqa: E402
from coset.egraph.limits import Limits  # noqa: E402
from coset.frontends.torch.capture import decompositions  # noqa: E402
from coset.frontends.torch.fx import import_graph  # noqa: E402
from coset.ir.program import Program  # noqa: E402
from coset.job.job import Job  # noqa: E402
from coset.lowering.kernels.kernel import Attention, Chain, Plan, Statistics, writes  # noqa: E402
from coset.lowering.planning.plan import plan  # noqa: E402
from coset.lowering.triton.source import can_emit, refusal  # noqa: E402
from coset.packaging.asked import Check, Lowering  # noqa: E402
from coset.packaging.lower import lower  # noqa: E402
from coset.packaging.searched import searched  # noqa: E402
from coset.searching.solving import finish, solve_task  # noqa: E402
from coset.targets.target import get_target  # noqa: E402

pytestmark = pytest.mark.slow

TARGET = get_target("nvidia-h200")
B, H, L, D = 2, 4, 128, 32
Attend = Callable[[Any, Any, Any], Any]


def lower_left() -> Any:
    return torch.ones(L, L, dtype=torch.bool).tril()


SPELLINGS: dict[str, Attend] = {
    "plain": lambda q, k, v: softmax(q @ k.mT / math.sqrt(D), -1) @ v,
    "matrix": lambda q, k, v: softmax(q[0] @ k[0].mT * D**-0.5, -1) @ v[0],
    "scaled_query": lambda q, k, v: softmax((q * D**-0.5) @ k.mT, -1) @ v,
    "scaled_key": lambda q, k, v: softmax(q @ (k * D**-0.5).mT, -1) @ v,
    "scaled_both": lambda q, k, v: softmax((q * D**-0.25) @ (k * D**-0.25).mT, -1) @ v,
    "unscaled": lambda q, k, v: softmax(q @ k.mT, -1) @ v,
    "filled": lambda q, k, v: softmax((q @ k.mT * D**-0.5).masked_fill(~lower_left(), -math.inf), -1) @ v,
    "chosen": lambda q, k, v: softmax(torch.where(lower_left(), q @ k.mT * D**-0.5, torch.finfo(q.dtype).min), -1) @ v,
    "added": lambda q, k, v: softmax(q @ k.mT * D**-0.5 + torch.full((L, L), -math.inf).triu(1), -1) @ v,
    "biased": lambda q, k, v: softmax(q @ k.mT * D**-0.5 + torch.linspace(-1, 1, L), -1) @ v,
    "repeated_keys": lambda q, k, v: softmax(q @ k[:, :2].repeat_interleave(2, 1).mT * D**-0.5, -1) @ v[:, :2].repeat_interleave(2, 1),
    "one_key_head": lambda q, k, v: softmax(q @ k[:, :1].mT * D**-0.5, -1) @ v[:, :1],
}


def traced(step: Callable[..., Any], *given: Any) -> Program:
    """A function of tensors, with the gradients that it takes, as a program."""
    graph = make_fx(step, decomposition_table=decompositions(), tracing_mode="fake")(*given)
    graph.graph.eliminate_dead_code()
    return import_graph(graph.graph).program


def chosen(program: Program) -> Plan:
    task = searched(Job(program, TARGET, "reassociates", Limits(), (), {}, lambda _: None), program)
    solved, _ = solve_task(task, task.phases)
    return plan(finish(task, solved)[0], TARGET, binding=task.binding, computes=can_emit)


def no_scores(planned: Plan, length: int) -> None:
    for kernel in planned.kernels:
        assert all(planned.buffers[name].shape[-2:] != (length, length) for name in writes(kernel)), kernel.name


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_spelling_becomes_kernels_without_scores(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is the integer program asked, which would prove something of a first choice only, in seconds."""
    monkeypatch.setattr("coset.extract.solve.solve_exactly", None)
    attend = SPELLINGS[name]

    def step(q: Any, k: Any, v: Any, g: Any) -> Any:
        q, k, v = (x.detach().requires_grad_() for x in (q, k, v))
        y = attend(q, k, v)
        return (y, *torch.autograd.grad(y, (q, k, v), g))

    given = [torch.randn(B, H, L, D) for _ in range(3)]
    planned = chosen(traced(step, *given, torch.randn(attend(*given).shape)))
    no_scores(planned, L)
    made = [kernel for kernel in planned.kernels if isinstance(kernel, Attention | Statistics | Chain)]
    assert sum(isinstance(kernel, Chain) for kernel in made) == 2 and not any(map(refusal, made))


@pytest.mark.parametrize("causal", [False, True])
def test_a_spelling_of_jax_becomes_kernels_without_scores(causal: bool, tmp_path: Path) -> None:
    """There a softmax is a quotient, and so is its gradient."""
    jax = pytest.importorskip("jax")

    def attend(q: Any, k: Any, v: Any) -> Any:
        scores = q @ k.mT * D**-0.5
        scores = jax.numpy.where(jax.numpy.tril(jax.numpy.ones((L, L), bool)), scores, -math.inf) if causal else scores
        return jax.nn.softmax(scores, axis=-1) @ v

    def step(q: Any, k: Any, v: Any, g: Any) -> Any:
        y, back = jax.vjp(attend, q, k, v)
        return (y, *back(g))

    path = tmp_path / "step.mlir"
    path.write_text(jax.jit(step).lower(*[jax.ShapeDtypeStruct((B, H, L, D), "float32")] * 4).as_text())
    planned = chosen(read_program(path))
    no_scores(planned, L)
    assert [type(kernel) for kernel in planned.kernels] == [Attention, Statistics, Chain, Chain]


HEADS, LENGTH, WIDTH = 2, 48, 32
KINDS = ("attention", "softmax_rows", "gradient", "gradients")  # of kernels that make scores and keep none


def block(x: Any, qkv: Any, out: Any, up: Any, down: Any, labels: Any, *, causal: bool) -> tuple[Any, ...]:
    """The loss of a transformer's block and the gradients of what it is trained in."""
    x, *weights = (w.detach().requires_grad_() for w in (x, qkv, out, up, down))
    q, k, v = ((layer_norm(x, (WIDTH,)) @ weights[0]).unflatten(-1, (3, HEADS, -1))).permute(2, 0, 3, 1, 4)
    scores = q @ k.mT * (WIDTH // HEADS) ** -0.5
    scores = scores.masked_fill(~torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril(), -math.inf) if causal else scores
    y = x + (softmax(scores, -1) @ v).transpose(1, 2).flatten(2) @ weights[1]
    y = y + gelu(layer_norm(y, (WIDTH,)) @ weights[2]) @ weights[3]
    loss = cross_entropy(y.flatten(0, 1), labels)
    return (loss, *torch.autograd.grad(loss, (x, *weights)))


@pytest.mark.parametrize("causal", [False, True])
def test_a_training_step_of_a_block(causal: bool, tmp_path: Path) -> None:
    """Loss and all gradients of a transformer's block in one program, in full f32. In Triton's interpreter the kernels give what the
    reference does on drawn inputs, huge ones too, and what eager torch gives."""
    pytest.importorskip("triton")
    draw = torch.Generator().manual_seed(7)
    sizes = ((2, LENGTH, WIDTH), (WIDTH, 3 * WIDTH), (WIDTH, WIDTH), (WIDTH, 2 * WIDTH), (2 * WIDTH, WIDTH))
    given = [torch.randn(size, generator=draw) / size[0] ** 0.5 for size in sizes]
    labels = torch.randint(WIDTH, (2 * LENGTH,), generator=draw)
    step = functools.partial(block, causal=causal)
    program = traced(step, *given, labels)
    report = lower(Lowering(program, TARGET, check=Check.INTERPRETED), tmp_path / "package")
    assert report["check"]["ok"] and "huge" in report["check"]["inputs"]
    names = [kernel["name"].split("_", 1)[1] for kernel in report["kernels"]]
    assert [name for name in names if name in KINDS] == list(KINDS)
    with TorchPackage(tmp_path / "package", interpreted=True) as package:
        feed = {str(term.attribute("name")): x.numpy() for term, x in zip(program.inputs, (*given, labels), strict=True)}
        found = package.run(feed)
    eager, exact = step(*given, labels), step(*(x.double() for x in given), labels)
    for (name, _), ours, right in zip(program.outputs, eager, exact, strict=True):
        own, allowed = (torch.from_numpy(found[name]).double() - right).abs().max(), (ours.double() - right).abs().max()
        assert own <= 8 * allowed + 16 * torch.finfo(torch.float32).eps * right.abs().max(), name
