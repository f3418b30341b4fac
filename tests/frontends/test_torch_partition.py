"""What a backward graph reads of its forward graph: no scores of attention, unless they are results or something is drawn for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from functorch.compile import make_boxed_func  # noqa: E402
from torch._functorch.aot_autograd import aot_function  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402

from coset.frontends.torch.capture import decompositions  # noqa: E402
from coset.frontends.torch.partition import partition  # noqa: E402

QUERIES, KEYS = 6, 7


def saved(function: Callable[..., Any], *given: Any) -> list[tuple[int, ...]]:
    """The shapes that the backward graph is given; results and gradients are those of torch."""
    found: list[tuple[int, ...]] = []

    def noted(joint: Any, inputs: Any, **more: Any) -> Any:
        forward, backward = partition(joint, inputs, **more)
        (output,) = (node for node in forward.graph.nodes if node.op == "output")
        found.extend(tuple(node.meta["val"].shape) for node in output.args[0][more["num_fwd_outputs"] :])
        return forward, backward

    with sdpa_kernel(SDPBackend.MATH):
        compiled = aot_function(
            function, fw_compiler=lambda graph, _: make_boxed_func(graph), partition_fn=noted, decompositions=decompositions()
        )
        torch.manual_seed(1)
        ours = compiled(*given)
        torch.manual_seed(1)
        theirs = function(*given)
        torch.testing.assert_close(tuple(ours), tuple(theirs))
        slopes = [torch.autograd.grad(_total(results), given, allow_unused=True) for results in (ours, theirs)]
    torch.testing.assert_close(*slopes)
    return found


def _total(results: Any) -> Any:
    return sum(each.square().sum() for each in (results if isinstance(results, tuple | list) else (results,)))


def drawn() -> tuple[Any, Any, Any, Any]:
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 3, size, 4, requires_grad=True) for size in (QUERIES, KEYS, KEYS))
    return q, k, v, torch.randn(QUERIES, KEYS, requires_grad=True)


def scores(shapes: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Those of a number for each query and key, or for each query."""
    return [shape for shape in shapes if shape[-2:] in ((QUERIES, KEYS), (KEYS, QUERIES), (QUERIES, 1))]


WAYS: dict[str, Callable[..., Any]] = {
    "plain": lambda q, k, v, mask: F.scaled_dot_product_attention(q, k, v),
    "causal": lambda q, k, v, mask: F.scaled_dot_product_attention(q, k, v, is_causal=True),
    "added mask": lambda q, k, v, mask: F.scaled_dot_product_attention(q, k, v, attn_mask=mask),
    "written out": lambda q, k, v, mask: ((q @ k.mT) / 2 + mask).softmax(-1) @ v,
    "capped": lambda q, k, v, mask: (torch.tanh(q @ k.mT / 3) * 3).softmax(-1) @ v,
}


@pytest.mark.parametrize("way", WAYS)
def test_scores_are_made_again(way: str) -> None:
    given = drawn()
    masked = way in ("added mask", "written out")  # the mask is an input, and has a gradient that no product follows
    assert scores(saved(WAYS[way], *given)) == [(QUERIES, KEYS)] * masked


def test_a_drawn_mask_is_kept_with_what_it_hides() -> None:
    """A kernel has no drawn mask: made again, the scores would be one product more."""
    q, k, v, _ = drawn()
    assert scores(saved(lambda q, k, v: F.dropout((q @ k.mT).softmax(-1), 0.3) @ v, q, k, v))


def test_scores_that_are_results_are_kept() -> None:
    def both(q: Any, k: Any, v: Any) -> Any:
        weights = (q @ k.mT).softmax(-1)
        return weights @ v, weights

    q, k, v, _ = drawn()
    assert scores(saved(both, q, k, v))


def test_weights_of_what_is_no_value_are_left_to_torch() -> None:
    """Of a mixture of experts: behind the weights comes all that the experts gave, up to the next product."""
    torch.manual_seed(0)
    x, router, experts, after = torch.randn(5, 8), torch.randn(8, 3), torch.randn(3, 8, 9), torch.randn(9, 4)
    given = [each.requires_grad_() for each in (x, router, experts, after)]

    def mixed(x: Any, router: Any, experts: Any, after: Any) -> Any:
        given = torch.einsum("tk,ekn->ten", x, experts)
        return ((x @ router).softmax(-1)[..., None] * given).sum(1).tanh() @ after

    assert (5, 3) in saved(mixed, *given)


def test_a_softmax_without_a_second_product_is_left_to_torch() -> None:
    """Of a classifier: its product is not computed twice."""
    x, w = torch.randn(5, 8, requires_grad=True), torch.randn(8, 9, requires_grad=True)
    shapes = saved(lambda x, w, b: (x @ w + b).softmax(-1).square(), x, w, torch.randn(9, requires_grad=True))
    assert (5, 9) in shapes
