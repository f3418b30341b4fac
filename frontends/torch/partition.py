"""What of a forward graph its backward graph reads, and what it computes again: torch's least cut, told that scores of attention are made
again.

torch saves what products made. Of attention that is a matrix of queries by keys, which its kernels never write: with the matrix among its
results the forward graph could not have such a kernel. The products' operands are saved anyway, for gradients need them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from functorch.compile import config, min_cut_rematerialization_partition
from torch.fx import GraphModule, Node
from torch.utils.checkpoint import CheckpointPolicy

from coset.frontends.torch.kept import Keeping, draws

aten = torch.ops.aten
_PRODUCTS = frozenset({aten.mm.default, aten.bmm.default, aten.addmm.default, aten.baddbmm.default, aten.matmul.default})
_SOFTMAXES = frozenset({aten._softmax.default, aten._safe_softmax.default})


def partition(joint: GraphModule, inputs: Any, *, keeping: Keeping | None = None, **given: Any) -> tuple[GraphModule, GraphModule]:
    """The forward and the backward graph of a joint one, in which the scores of attention are computed in both, and so are masks that are
    made of nothing. `keeping` chooses what else is; None: torch does."""

    def cutting(graph: GraphModule, budget: float) -> tuple[GraphModule, GraphModule]:
        with config.patch(activation_memory_budget=min(budget, config.activation_memory_budget)):
            return min_cut_rematerialization_partition(graph, inputs, **given)  # type: ignore[no-any-return]

    forward = _forward(joint)
    for node in _scores(joint, forward) | _constants(forward):
        node.meta.setdefault("recompute", CheckpointPolicy.MUST_RECOMPUTE)
    budget = keeping.choose(joint, forward, given["num_fwd_outputs"], cutting) if keeping is not None else 1.0
    return cutting(joint, budget)


def _scores(joint: GraphModule, forward: set[Node]) -> set[Node]:
    """What is made of a product until the next products, where a softmax is among it: if nothing of it is a result, or made of what is
    drawn or of another product."""
    (output,) = (node for node in joint.graph.nodes if node.op == "output")
    found: set[Node] = set()
    for softmax in (node for node in forward if node.target in _SOFTMAXES):
        above = _reached([softmax], lambda node: [each for each in node.all_input_nodes if each in forward])
        products = [node for node in above if node.target in _PRODUCTS]
        below = _reached(products, lambda node: [each for each in node.users if each in forward or each is output])
        made = {node for node in below if node.target not in _PRODUCTS}
        beside = {operand for node in made for operand in node.all_input_nodes} - made - set(products)
        if output not in below and not any(map(draws, made)) and not any(map(_is_costly, beside)):
            found |= made | set(products)
    return found


def _constants(forward: set[Node]) -> set[Node]:
    """What is made of no input, and not drawn."""
    found: set[Node] = set()
    for node in sorted(forward):
        if not draws(node) and all(each in found for each in node.all_input_nodes):
            found.add(node)
    return found


def _forward(joint: GraphModule) -> set[Node]:
    """The calls that no gradient of a result goes into."""
    after: set[Node] = set()
    for node in joint.graph.nodes:
        if (node.op == "placeholder" and "tangent" in str(node.target)) or any(each in after for each in node.all_input_nodes):
            after.add(node)
    return {node for node in joint.graph.nodes if node.op == "call_function" and node not in after}


def _reached(starts: Iterable[Node], steps: Callable[[Node], Iterable[Node]]) -> set[Node]:
    """`starts` and what `steps` lead to, up to the next products, which are among it."""
    found = set(starts)
    stack = list(found)
    while stack:
        for node in steps(stack.pop()):
            if node not in found:
                found.add(node)
                if node.target not in _PRODUCTS:
                    stack.append(node)
    return found


def _is_costly(node: Node) -> bool:
    """True where a random op is behind a value, or a product."""
    behind = _reached([node], lambda each: each.all_input_nodes)
    return any(each.target in _PRODUCTS or draws(each) for each in behind)
