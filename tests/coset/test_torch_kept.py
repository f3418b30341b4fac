"""What is kept for a backward pass: by predicted seconds, within a limit of bytes, with the gradients of eager torch."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import pytest
from torch_models import nn, torch  # without torch the tests are skipped here

import coset
from coset.compiling import compiled_graphs, forget_graphs
from coset.frontends.torch import kept as torch_kept
from coset.frontends.torch.kept import Kept
from coset.ir.errors import CosetError

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("few_plans")]

QUICK: dict[str, Any] = {"seconds": 2.0, "nodes": 2000, "code": "torch", "check": False}


@pytest.fixture(autouse=True)
def _anew() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    forget_graphs()


def gradients(call: Any, given: Sequence[Any], parameters: Sequence[Any]) -> tuple[Any, list[Any]]:
    """The result, and the gradients of its squares' sum."""
    result = call(*given)
    return result, list(torch.autograd.grad(result.square().sum(), [each for each in (*parameters, *given) if each.requires_grad]))


def told() -> Kept:
    (forward,) = (graph for graph in compiled_graphs() if graph.kind == "forward")
    assert forward.kept is not None
    assert all(graph.kept is None for graph in compiled_graphs() if graph.kind != "forward")
    return forward.kept


def held(call: Any, given: Sequence[Any], parameters: Sequence[Any]) -> int:
    """Bytes of the memory that autograd holds after a call, beside inputs, weights and the result."""
    memory: dict[int, int] = {}

    def pack(value: Any) -> Any:
        memory[value.untyped_storage().data_ptr()] = value.untyped_storage().nbytes()
        return value

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda value: value):
        result = call(*given)
    return sum(
        bytes_ for at, bytes_ in memory.items() if at not in {each.untyped_storage().data_ptr() for each in (result, *parameters, *given)}
    )


def block(width: int = 32, heads: int = 2) -> Any:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
            self.projections, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            batch, length, _ = x.shape
            q, k, v = self.projections(self.first(x)).view(batch, length, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
            return x + self.down(nn.functional.gelu(self.up(self.second(x))))

    return Block()


def pictures(width: int = 8, side: int = 16) -> Any:
    return nn.Sequential(
        nn.Conv2d(3, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
        nn.Conv2d(width, 2 * width, 3, padding=1, stride=2), nn.BatchNorm2d(2 * width), nn.ReLU(),
        nn.Flatten(), nn.Linear(width * side**2 // 2, 10),
    )  # fmt: skip


NETWORKS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "block": (block, (4, 32, 32)),
    "pictures": (pictures, (4, 3, 16, 16)),
    "layers": (lambda: nn.Sequential(*(each for _ in range(3) for each in (nn.Linear(32, 32), nn.GELU()))), (64, 32)),
}


@pytest.mark.parametrize("share", [None, 0.3, 0.0])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_limit_is_kept_to_and_gradients_stay(name: str, share: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    cuts: list[Any] = []
    cut = torch_kept.Keeping._cut
    monkeypatch.setattr(torch_kept.Keeping, "_cut", lambda *given: (cuts.append(given), cut(*given))[1])
    make, shape = NETWORKS[name]
    module, x = make(), torch.randn(shape, requires_grad=True)
    parameters = list(module.parameters())
    expected = gradients(module, (x,), parameters)
    limit = None
    if share is not None:
        gradients(coset.compile(module, dynamic=False, **QUICK), (x,), parameters)
        limit = int(share * told().bytes)
        forget_graphs()
        torch._dynamo.reset()
    cuts.clear()
    call = coset.compile(module, dynamic=False, max_kept=limit, **QUICK)
    torch.testing.assert_close(gradients(call, (x,), parameters), expected, rtol=1e-3, atol=1e-4)
    kept = told()
    assert kept.limit == limit and (limit is None or kept.bytes <= limit)
    assert kept.bytes <= kept.default_bytes
    assert kept.seconds <= kept.default_seconds if limit is None else kept.seconds >= kept.default_seconds * 0.99
    assert held(call, (x,), parameters) == kept.bytes, "what is said is what is held"
    assert len(compiled_graphs()) == 2
    assert len(cuts) <= 1 + torch_kept.FEW + (0 if limit is None else len(torch_kept.BUDGETS) + 2 * torch_kept.TRIES)


def test_less_is_kept_for_nothing() -> None:
    """A rectifier before a layer is made again from what is kept anyway, where bytes count more than launches."""
    module, x = pictures(32, 32), torch.randn(32, 3, 32, 32)
    gradients(coset.compile(module, dynamic=False, **QUICK), (x,), list(module.parameters()))
    kept = told()
    assert kept.bytes < 0.9 * kept.default_bytes and kept.seconds <= kept.default_seconds


@pytest.mark.parametrize("limit", [None, 9000])
def test_sizes_may_change(limit: int | None) -> None:
    """The bytes are those of the sizes that were seen first."""
    make, _ = NETWORKS["layers"]
    module = make()
    parameters = list(module.parameters())
    call = coset.compile(module, dynamic=True, max_kept=limit, **QUICK)
    for rows in (24, 48):
        x = torch.randn(rows, 32, requires_grad=True)
        torch.testing.assert_close(gradients(call, (x,), parameters), gradients(module, (x,), parameters), rtol=1e-3, atol=1e-4)
    assert len(compiled_graphs()) == 2 and (limit is None or told().bytes <= limit)


def test_what_was_drawn_is_not_drawn_again(caplog: pytest.LogCaptureFixture) -> None:
    """A mask of dropout is kept whatever the limit is, and that is said; the gradients are those of the mask that was drawn."""
    module, x = nn.Sequential(nn.Linear(16, 16), nn.Dropout(0.5), nn.Linear(16, 16)), torch.ones(8, 16, requires_grad=True)
    parameters = list(module.parameters())
    torch.manual_seed(1)
    expected = gradients(module, (x,), parameters)
    with caplog.at_level(logging.WARNING, logger="coset"):
        call = coset.compile(module, dynamic=False, max_kept=0, **QUICK)
        torch.manual_seed(1)
        found = gradients(call, (x,), parameters)
    torch.testing.assert_close(found, expected)
    kept = told()
    assert kept.bytes == held(call, (x,), parameters) == 8 * 16 * (1 + 4), "the mask, and what it was applied to"
    assert f"{kept.bytes} bytes are kept for the backward pass: no way was found that keeps at most 0" in caplog.text


def test_what_torch_runs_is_not_run_again_for_nothing() -> None:
    """It has no price: recomputing it would look free."""

    def formula(x: Any, w: Any) -> Any:
        return torch.linalg.matrix_exp(x @ w).tanh() @ w

    x, w = (torch.randn(8, 8, requires_grad=True) for _ in range(2))
    call = coset.compile(formula, dynamic=False, max_kept=0, **QUICK)
    torch.testing.assert_close(gradients(call, (x, w), ()), gradients(formula, (x, w), ()), rtol=1e-3, atol=1e-4)
    forward, backward = compiled_graphs()
    assert [fallback.op for fallback in forward.fallbacks].count("aten.linalg_matrix_exp.default") == 1
    assert len(backward.fallbacks) <= 1, "the exponential of the gradient's matrix, not that of the forward pass too"


def test_graphs_without_a_price_are_cut_as_torch_cuts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: Any) -> float:
        raise CosetError("no kernels can be planned for it")

    monkeypatch.setattr("coset.compiling.PlanPrices.seconds", unknown)
    module, x = pictures(), torch.randn(4, 3, 16, 16)
    gradients(coset.compile(module, dynamic=False, **QUICK), (x,), list(module.parameters()))
    assert all(graph.kept is None for graph in compiled_graphs())


@pytest.mark.parametrize(("options", "why"), [({"max_kept": -1}, "0 or more"), ({"max_kept": 9, "code": "aten"}, "no plan")])
def test_a_limit_that_cannot_be_is_said_at_once(options: dict[str, Any], why: str) -> None:
    with pytest.raises(CosetError, match=why):
        coset.compile(lambda x: x + 1, **options)


def test_a_limit_for_code_without_a_plan_is_refused() -> None:
    """What `auto` is on a CPU is known when a graph comes."""
    with pytest.raises(Exception, match="op-by-op code has not"):
        coset.compile(lambda x: (x * 2).sum(), max_kept=100)(torch.ones(3, requires_grad=True))
