"""What a forward graph keeps for its backward graph, chosen by the predicted seconds of both, within a limit of bytes.

torch's partitioner cuts the joint graph where the fewest bytes cross, by rules of its own of what may be computed again, or for a budget by
FLOP alone. Here ways to cut are priced as the kernels that both graphs become: values of one kind (what made them, and their type: the same
place in every layer) are given up one kind after the other, if that costs nothing, or under a limit what costs least for each byte; beside
those that torch finds for budgets.
"""

from __future__ import annotations

import copy
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.checkpoint import CheckpointPolicy

from coset.frontends.torch.fx import Imported, Node
from coset.frontends.torch.parts import compiled_parts, is_view
from coset.ir.errors import CosetError

aten = torch.ops.aten
Seconds = Callable[[Imported, Any], float]  # predicted, of one part on a device
Kind = tuple[str, str]  # what made a value, and the types of that
Cutting = Callable[[Any, float], tuple[Any, Any]]  # a joint graph and torch's memory budget for it -> its forward and its backward graph
BUDGETS = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0)  # shares of what can be kept
LEAST = 0.03  # of what is kept: kinds of less are not looked at
FEW = 3  # kinds that are tried without a limit
TRIES = 32  # ways to cut that are priced, under a limit; a block of a transformer takes 0.2 s each
UNKNOWN = 4096  # the number for a size that torch has no hint of
_REGION = 0  # one for all: torch would keep what a recomputed value of another region is made of


@dataclass(frozen=True)
class Kept:
    """Bytes that are kept beside inputs, weights and results, and predicted seconds of both graphs before they are searched; the same as
    torch's partitioner would have it. `limit`: the bytes that were asked for."""

    bytes: int
    seconds: float
    default_bytes: int
    default_seconds: float
    limit: int | None = None


@dataclass(frozen=True)
class _Cut:
    """One way to cut: without the values of these kinds, by this budget; it keeps those of `kinds`, of so many bytes."""

    without: frozenset[Kind]
    budget: float
    seconds: float
    kinds: Mapping[Kind, int]

    @property
    def bytes(self) -> int:
        return sum(self.kinds.values())


HEAVY = frozenset(map(str, (aten.mm.default, aten.bmm.default, aten.addmm.default, aten.baddbmm.default, aten.convolution.default)))


class Keeping:
    """The choice for one joint graph. `limit`: bytes (None: what costs nothing to be without is given up). `found` is set by `choose`, and
    stays None where a graph has no price."""

    def __init__(self, seconds: Seconds, limit: int | None = None) -> None:
        self.seconds, self.limit = seconds, limit
        self.found: Kept | None = None
        self._in_torch = 0  # calls of the first cut that torch runs
        self._known: dict[tuple[str, ...], float | None] = {}  # seconds by the results of the forward graph

    def choose(self, joint: Any, forward: Iterable[Node], outputs: int, cutting: Cutting) -> float:
        """Mark what is not to be kept in a joint graph, whose first `outputs` results are the forward graph's own; the budget for torch."""
        self._names = {node.name for node in forward}
        self._outputs, self._cutting, self._tries = outputs, cutting, 0
        first = self._cut(joint, frozenset())
        if first is None:
            return 1.0
        best = self._without_loss(joint, first)
        if self.limit is not None and best.bytes > self.limit:
            best = self._limited(joint, best, self.limit)
        self.found = Kept(best.bytes, best.seconds, first.bytes, first.seconds, self.limit)
        self._mark(joint, best.without)
        return best.budget

    def _without_loss(self, joint: Any, first: _Cut) -> _Cut:
        """Without what makes nothing slower when it is computed again: of what is no product the kinds with the most bytes are tried."""
        best = first
        light = [(-size, kind) for kind, size in first.kinds.items() if size >= LEAST * first.bytes and kind[0] not in HEAVY]
        for _, kind in sorted(light)[:FEW]:
            if kind in best.kinds:
                tried = self._cut(joint, best.without | {kind})
                if tried is not None and tried.bytes < best.bytes and tried.seconds <= best.seconds:
                    best = tried
        return best

    def _limited(self, joint: Any, best: _Cut, limit: int) -> _Cut:
        """The cheapest way found that keeps to the limit; what keeps least where none does."""
        budgeted = [cut for budget in BUDGETS if (cut := self._cut(joint, frozenset(), budget)) is not None]
        found = [self._given_up(joint, best, limit), *budgeted]
        return min(found, key=lambda cut: (max(cut.bytes, limit), cut.seconds))

    def _given_up(self, joint: Any, best: _Cut, limit: int) -> _Cut:
        """One kind after the other, until the limit is kept to or nothing keeps less."""
        while best.bytes > limit and self._tries < TRIES:
            large = [kind for kind in sorted(best.kinds) if best.kinds[kind] >= LEAST * best.bytes]
            tried = [cut for kind in large if (cut := self._cut(joint, best.without | {kind})) and cut.bytes < best.bytes]
            if not tried:
                return best
            fitting = [cut for cut in tried if cut.bytes <= limit]
            base = best
            best = (
                min(fitting, key=lambda cut: cut.seconds)
                if fitting
                else min(tried, key=lambda cut: (cut.seconds - base.seconds) / (base.bytes - cut.bytes))
            )
        for kind in sorted(best.without):  # the last one may have made an earlier one needless
            tried_again = self._cut(joint, best.without - {kind})
            if tried_again is not None and tried_again.bytes <= limit and tried_again.seconds < best.seconds:
                best = tried_again
        return best

    # ------------------------------------------------------------ one cut

    def _cut(self, joint: Any, without: frozenset[Kind], budget: float = 1.0) -> _Cut | None:
        """The graphs without some kinds; None where one has no price, or more of it would run in torch."""
        self._tries += 1
        trial = _copied(joint)
        self._mark(trial, without)
        forward, backward = self._cutting(trial, budget)
        kinds: dict[Kind, int] = {}
        for value in _kept(forward.graph, self._outputs):
            kind = _kind(_root(value))
            kinds[kind] = kinds.get(kind, 0) + _bytes(value)
        given = tuple(map(str, forward.graph.find_nodes(op="output")[0].args[0]))
        if given not in self._known:  # the graphs are what they are for what is kept
            self._known[given] = self._both(forward, backward)
        price = self._known[given]
        return None if price is None else _Cut(without, budget, price, kinds)

    def _both(self, forward: Any, backward: Any) -> float | None:
        """Predicted seconds of two graphs; None where one has no price, or more calls stay in torch than by default, which have none."""
        priced = [self._priced(graph) for graph in (forward, backward)]
        if any(seconds is None for seconds, _ in priced):
            return None
        in_torch = sum(calls for _, calls in priced)
        if not self._known:
            self._in_torch = in_torch
        return sum(seconds or 0.0 for seconds, _ in priced) if in_torch <= self._in_torch else None

    def _priced(self, module: Any) -> tuple[float | None, int]:
        """Predicted seconds of a graph's parts (None where one has no price), and how many calls are in none."""
        prices: list[float | None] = []

        def price(imported: Imported, device: Any) -> Any:
            try:
                prices.append(self.seconds(imported, device))
            except CosetError:
                prices.append(None)
            return list

        with torch.utils._python_dispatch._disable_current_modes(), torch.no_grad():
            _, __, fallbacks = compiled_parts(_copied(module), price)
        known = [each for each in prices if each is not None]
        return (math.fsum(known) if len(known) == len(prices) else None), len(fallbacks)

    def _mark(self, joint: Any, without: frozenset[Kind]) -> None:
        for node in joint.graph.nodes:
            if node.name in self._names:
                node.meta.setdefault("ac_graph_id", _REGION)
                root = _root(node)
                if root.name in self._names and not draws(root) and _kind(root) in without:
                    node.meta["recompute"] = CheckpointPolicy.MUST_RECOMPUTE


def _copied(module: Any) -> Any:
    """Another graph of the same tensors."""
    return torch.fx.GraphModule(module, copy.deepcopy(module.graph))


def _kept(graph: Any, outputs: int) -> list[Node]:
    """What holds the memory of the values that a forward graph gives to its backward graph, each once; not inputs and results, which others
    hold anyway."""
    (output,) = graph.find_nodes(op="output")
    given = [
        [_memory(each) for each in part if isinstance(each, torch.fx.Node)] for part in (output.args[0][:outputs], output.args[0][outputs:])
    ]
    held = {id(node) for node in given[0]}
    return [node for node in dict.fromkeys(given[1]) if node.op == "call_function" and id(node) not in held and _tensors(node)]


def _memory(node: Node) -> Node:
    """The value in whose memory another lies."""
    while is_view(node):
        node = node.args[0]
    return node


def _root(node: Node) -> Node:
    """The call that makes the memory in which a value lies."""
    node = _memory(node)
    return _root(node.args[0]) if node.op == "call_function" and node.target is operator.getitem else node


def _kind(node: Node) -> Kind:
    return str(node.target), ", ".join(f"{each.dtype}{list(each.shape)}" for each in _tensors(node))


def _tensors(node: Node) -> list[Any]:
    value = node.meta.get("val")
    return [each for each in (value if isinstance(value, list | tuple) else (value,)) if isinstance(each, torch.Tensor)]


def _bytes(node: Node) -> int:
    total = 0
    for value in _tensors(node):
        count = 1
        for size in value.shape:
            count *= size if isinstance(size, int) else UNKNOWN if size.node.hint is None else int(size.node.hint)
        total += count * value.element_size()
    return total


def draws(node: Node) -> bool:
    """True for a call that draws random numbers."""
    return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
