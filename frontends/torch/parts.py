"""The parts of an FX graph that coset compiles, and what stays in torch, each op with the reason why.

Views at the end of a graph stay views of torch: their strides and offsets are what AOTAutograd makes a caller's aliases from.
"""

from __future__ import annotations

import heapq
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase
from torch.fx.passes.utils.fuser_utils import fuse_by_partitions

from coset.dialects.aten.node import NoTerm
from coset.frontends.torch.fx import Imported, Node, built, import_graph, is_number, linear, told
from coset.frontends.torch.types import TorchSizes
from coset.ir import dims
from coset.ir.errors import CosetError
from coset.ir.term import Term, input_term

Run = Callable[[Sequence[Any]], Sequence[Any]]
Tell = Callable[["Fallback"], None]
Compile = Callable[[Imported, Any], Run]
LAST_VIEW = "coset_last_view"  # a mark of nodes that stay in torch without a word


@dataclass(frozen=True)
class Fallback:
    """An op that torch runs, and why; `where` is the line of the user's program, where it is known."""

    op: str
    reason: str
    where: str = ""

    def __str__(self) -> str:
        return f"{self.op} runs in torch: {self.reason}" + (f" ({self.where})" if self.where else "")


def reason_of(error: Exception) -> str:
    """What a fallback says of an error. One that is not ours to raise is a fault of coset, which does not end a user's program: torch has
    the op as well. It is said, with its kind, so that it can be reported."""
    if isinstance(error, CosetError):
        return error.message + (f"; {error.help}" if error.help else "")
    return f"coset failed with {type(error).__name__}: {' '.join(str(error).split()) or 'no message'}"


# ---------------------------------------------------------------- what torch keeps


def is_view(node: Node) -> bool:
    """True for an op whose result shares the memory of its operand."""
    if node.op != "call_function":
        return False
    if node.target is operator.getitem:
        return is_view(node.args[0])
    if not isinstance(node.target, torch._ops.OpOverload):
        return False
    schema = node.target._schema
    return not schema.is_mutable and any(result.alias_info is not None for result in schema.returns)


def views_last(graph: Any) -> None:
    """Give every result of the graph that is a view a chain of views of its own, which stays in torch."""
    output = next(node for node in graph.nodes if node.op == "output")
    copies: dict[Node, Node] = {}

    def copied(node: Node) -> Node:
        chain = []
        while is_view(node) and node not in copies:
            chain.append(node)
            node = node.args[0]
        root = copies.get(node, node)
        for view in reversed(chain):
            with graph.inserting_before(output):
                fresh = graph.node_copy(view, lambda each, view=view, root=root: root if each is view.args[0] else each)
            fresh.meta[LAST_VIEW] = True
            root = copies[view] = fresh
        return root

    output.args = (torch.fx.node.map_arg(output.args[0], copied),)
    graph.eliminate_dead_code()


def refusals(graph: Any) -> dict[Node, str]:
    """The calls that no term says, each with the reason; empty for those that stay in torch by themselves."""
    value: dict[Node, Any] = {}
    sizes = TorchSizes()
    device = main_device(graph)
    refused: dict[Node, str] = {}
    for node in graph.nodes:
        if node.op not in ("call_function", "placeholder", "get_attr", "call_module", "call_method"):
            continue
        if is_number(node):
            continue
        try:
            if node.meta.get(LAST_VIEW):
                raise NoTerm("")
            if node.op == "call_function":
                other = [each for each in devices_of(node) if each != device]
                if other:
                    raise NoTerm(f"it is on {other[0]}, and most of the graph on {device}")
                value[node] = built(node, value, sizes)
                continue
            if node.op in ("call_module", "call_method"):
                raise NoTerm("it is no ATen op")
        except CosetError as error:
            refused[node] = error.message
        except Exception as error:
            refused[node] = reason_of(error)
        stand_in(node, value, sizes)
    return refused


def stand_in(node: Node, value: dict[Node, Any], sizes: TorchSizes) -> None:
    """Let terms stand for what `node` gives, so that those who take it can be asked."""
    try:
        given = node.meta["val"]
        if isinstance(given, torch.Tensor):
            value[node] = input_term(node.name, sizes.type(given))
        elif isinstance(given, list | tuple):
            value[node] = tuple(_input(f"{node.name}.{i}", each, sizes) for i, each in enumerate(given))
    except (KeyError, CosetError):
        return  # who takes it has no operand, and says so


def _input(name: str, given: Any, sizes: TorchSizes) -> Term | None:
    return input_term(name, sizes.type(given)) if isinstance(given, torch.Tensor) else None


def devices_of(node: Node) -> list[Any]:
    """The devices of what a node takes and gives."""
    values = [node.meta.get("val"), *(each.meta.get("val") for each in node.all_input_nodes)]
    flat = [one for value in values for one in (value if isinstance(value, list | tuple) else (value,))]
    return [one.device for one in flat if isinstance(one, torch.Tensor)]


def main_device(graph: Any) -> Any:
    """The device of most values; the CPU where there is none."""
    counts: dict[Any, int] = {}
    for node in graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            counts[value.device] = counts.get(value.device, 0) + 1
    return max(counts, key=lambda each: counts[each], default=torch.device("cpu"))


# ---------------------------------------------------------------- parts


class _Said(OperatorSupportBase):  # type: ignore[misc]
    """The nodes that terms say."""

    def __init__(self, refused: Mapping[Node, str]) -> None:
        self.refused = refused

    def is_node_supported(self, _: Any, node: Node) -> bool:
        return node.op == "call_function" and node not in self.refused


def split(module: Any) -> tuple[Any, list[str], list[Fallback]]:
    """The graph with each part that terms say as a submodule, the names of these, and what stays in torch."""
    graph = module.graph
    views_last(graph)
    refused = refusals(graph)
    fallbacks = [Fallback(str(node.target), reason, _line(node)) for node, reason in refused.items() if reason]
    mutating = [node for node in refused if isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable]
    if mutating:
        # moving reads and writes of one memory past each other would change what they see
        return module, [], [*fallbacks, Fallback("the graph", f"`{mutating[0].target}` writes into memory that others read", "")]
    said = [node for node in graph.nodes if node.op == "call_function" and node not in refused]
    if not any(computes(node) for node in said):
        return module, [], fallbacks
    effects = [node for node in graph.nodes if node in refused and has_effect(node)]
    if all(not reason for reason in refused.values()):
        parts = [dict.fromkeys(said)]  # views at the end depend on nobody: no circle is possible
    else:
        partitioner = CapabilityBasedPartitioner(module, _Said(refused), allows_single_node_partition=True)
        partitioner.dependency_viewer.downstreams = downstreams(graph, effects)
        parts = [part.nodes for part in partitioner.propose_partitions() if any(computes(node) for node in part.nodes)]
    module = fuse_by_partitions(module, parts, prefix="coset_part_", always_return_tuple=True)
    in_order(module.graph, effects)
    names = [node.target for node in module.graph.nodes if node.op == "call_module"]
    return module, names, fallbacks


def has_effect(node: Node) -> bool:
    """True for a call that must keep its place among others of its kind: it draws from a generator, checks, prints, communicates."""
    drawn = isinstance(node.target, torch._ops.OpOverload) and torch.Tag.nondeterministic_seeded in node.target.tags
    return node.op == "call_function" and (drawn or node.is_impure())


def followers(node: Node, effects: Sequence[Node]) -> list[Node]:
    """Who must come after `node`: those who take its results, and the next effect."""
    place = effects.index(node) + 1 if node in effects else len(effects)
    return [*node.users, *effects[place : place + 1]]


def downstreams(graph: Any, effects: Sequence[Node]) -> dict[Node, set[Node]]:
    """All that must come after each node. A part must not stand before and after the same one."""
    found: dict[Node, set[Node]] = {}
    for node in reversed(graph.nodes):
        found[node] = set()
        for follower in followers(node, effects):
            found[node] |= {follower, *found[follower]}
    return found


def in_order(graph: Any, effects: Sequence[Node]) -> None:
    """Sort a graph so that every node comes after what it takes, and effects come in the order of `effects`; else as it was."""
    nodes = list(graph.nodes)
    waits = dict.fromkeys(nodes, 0)
    after = {node: followers(node, effects) for node in nodes}
    for node in nodes:
        for follower in after[node]:
            waits[follower] += 1
    place = {node: number for number, node in enumerate(nodes)}
    ready = [place[node] for node in nodes if not waits[node]]
    heapq.heapify(ready)
    last = graph._root
    while ready:
        node = nodes[heapq.heappop(ready)]
        last.append(node)
        last = node
        for follower in after[node]:
            waits[follower] -= 1
            if not waits[follower]:
                heapq.heappush(ready, place[follower])
    assert not any(waits.values()), "a part stands before and after the same node"


def computes(node: Node) -> bool:
    """True for a node that does more than show what is there already, or compute with sizes."""
    return node.target is not operator.getitem and not is_view(node) and not is_number(node)


def _line(node: Node) -> str:
    """Where the user's program calls the op."""
    trace = [line.strip() for line in (node.stack_trace or "").splitlines() if line.strip().startswith("File ")]
    return trace[-1].removeprefix("File ").split(", in ")[0].replace('"', "") if trace else ""


class PartModule(torch.nn.Module):  # type: ignore[misc]
    """A compiled part: called as the submodule that it stands for, `original`. `run` takes and gives tensors as the program does. Where it
    fails (an op that stays in torch gave another type than it had said, or an index is out of range) the call is torch's, and so is the
    error if torch refuses it too; the first time `tell` hears why."""

    def __init__(self, imported: Imported, run: Run, device: Any, original: Any) -> None:
        super().__init__()
        self.imported, self.run, self.device, self.original = imported, run, device, original
        self.tell: Tell | None = None
        self.numbers = any(isinstance(place, str) for place in imported.places) or any(
            not isinstance(output, tuple | int) and output is not None for output in imported.outputs
        )

    def forward(self, *arguments: Any) -> Sequence[Any]:
        """The results, new tensors all of them, in the layouts that torch expects."""
        try:
            return self._results(arguments)
        except Exception as error:
            found: Sequence[Any] = self.original(*arguments)
            if self.tell is not None:
                self.tell(Fallback(f"a part of {self.imported.ops} ops", reason_of(error)))
                self.tell = None
            return found

    def _results(self, arguments: Sequence[Any]) -> list[Any]:
        imported = self.imported
        sizes = self._sizes(arguments) if self.numbers else {}
        given = []
        for place in imported.places:
            if isinstance(place, str):
                given.append(torch.empty((sizes[place], 0), dtype=torch.int8, device=self.device))
                continue
            at, layout = place
            given.append(arguments[at] if layout.plain else arguments[at].permute(layout.order))
        found = self.run(given)
        taken = {one.untyped_storage().data_ptr() for one in arguments if isinstance(one, torch.Tensor)}
        results: list[Any] = []
        for output in imported.outputs:
            if not isinstance(output, tuple):
                results.append(None if output is None else dims.evaluate(output, sizes))
                continue
            at, layout = output
            result = found[at].contiguous()  # op-by-op code gives views of what it has: torch's graph goes on with strides that it knows
            memory = result.untyped_storage().data_ptr()
            if memory in taken and result.numel():  # two names for one memory: torch's graph has none, and may write into either
                result = result.clone()
                memory = result.untyped_storage().data_ptr()
            taken.add(memory)
            results.append(result if layout.plain else result.permute(layout.back))
        return results

    def _sizes(self, arguments: Sequence[Any]) -> dict[str, int]:
        """The numbers of the symbols that are needed."""
        sizes: dict[str, int] = {}
        for name, place, axis, dim in self.imported.solved:
            given = arguments[place] if axis is None else arguments[place].shape[axis]
            if dims.alone(dim) is not None:
                sizes[name] = int(given)
                continue
            found = linear(dim, name)
            assert found is not None
            factor, rest = (dims.evaluate(each, sizes) for each in found)
            sizes[name] = (int(given) - rest) // factor
        return sizes


def lend_sizes(graph: Any, call: Node, part: Any) -> None:
    """Give the submodule that `call` calls more arguments: sizes that it speaks of, and that the graph knows better than it does."""
    spoken = {name: size for node in part.graph.nodes for name, size in _symbols(node).items()}
    own = {dims.alone(dim) for dim, _, _ in told([node for node in part.graph.nodes if node.op == "placeholder"])}
    givers = [node for node in graph.nodes if node.op == "placeholder"]
    for dim, place, axis in told(givers):
        name = dims.alone(dim)
        if name is None or name not in spoken or name in own:
            continue
        own.add(name)
        size = givers[place].meta["val"] if axis is None else givers[place].meta["val"].shape[axis]
        with graph.inserting_before(call):
            lent = givers[place] if axis is None else graph.call_function(torch.ops.aten.sym_size.int, (givers[place], axis))
        lent.meta["val"] = size
        first = next(iter(part.graph.nodes))
        with part.graph.inserting_before(first):
            taken = part.graph.placeholder(f"lent_{name}")
        taken.meta["val"] = size
        call.args = (lent, *call.args)
    part.recompile()


def _symbols(node: Node) -> dict[str, Any]:
    """The symbols in the sizes of what `node` gives."""
    value = node.meta.get("val")
    found: dict[str, Any] = {}
    for each in value if isinstance(value, list | tuple) else (value,):
        sizes = each.shape if isinstance(each, torch.Tensor) else (each,)
        found |= {str(symbol): size for size in sizes if isinstance(size, torch.SymInt) for symbol in size.node.expr.free_symbols}
    return found


def copied(graph: Any) -> Any:
    """A graph as it is, for what was begun and given up."""
    copy = torch.fx.Graph()
    copy.output(copy.graph_copy(graph, {}))
    return copy


def tell_later(module: Any, tell: Tell) -> None:
    """Let the parts of a compiled graph say when one of their calls is torch's."""
    for part in module.children():
        if isinstance(part, PartModule):
            part.tell = tell


def compiled_parts(module: Any, compile: Compile) -> tuple[Any, list[Imported], list[Fallback]]:
    """The graph with its parts compiled; what cannot be is left to torch, and said."""
    whole = torch.fx.GraphModule(module, copied(module.graph))
    try:
        module, names, fallbacks = split(module)
    except Exception as error:
        return whole, [], [Fallback("the graph", reason_of(error))]
    done: list[Imported] = []
    for name in names:
        part = module.get_submodule(name)
        lend_sizes(module.graph, next(node for node in module.graph.nodes if node.target == name), part)
        device = main_device(part.graph)
        try:
            imported = import_graph(part.graph)
            run = compile(imported, device)
        except Exception as error:
            ops = sum(node.op == "call_function" and computes(node) for node in part.graph.nodes)
            fallbacks.append(Fallback(f"a part of {ops} ops", reason_of(error)))
            continue
        setattr(module, name, PartModule(imported, run, device, part))
        done.append(imported)
    module.recompile()
    return module, done, fallbacks
