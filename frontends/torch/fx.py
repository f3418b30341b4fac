"""FX graphs of ATen ops (as AOTAutograd makes them) as programs: each op becomes the hub term that its builder says it is.

What torch says of every value (`node.meta["val"]`) is the last word on types: a term of another type is refused, never converted.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from coset.dialects.aten.node import BUILDERS, AtenNode, NoTerm
from coset.dialects.hub.terms import transpose
from coset.dialects.onnx.arithmetic import sized
from coset.frontends.torch.types import TorchSizes, dim_of_expression, dtype_of, promoted, saturating
from coset.ir import dims
from coset.ir.dims import Dim, Poly
from coset.ir.errors import CosetError
from coset.ir.program import Program, spelled, symbols_of, tensors_in
from coset.ir.stages import passed
from coset.ir.term import Term, input_term, topological
from coset.ir.types import I8, TensorType

Node = Any  # torch.fx.Node
Value = Any  # a term, the tuple of an op's results, or a dim
_RANDOM = "it draws random numbers"
_PASSED_OVER = ("Device", "Layout", "MemoryFormat", "Generator")


@dataclass(frozen=True)
class MemoryLayout:
    """How a tensor lies in memory: `order` are its dims from the outermost to the innermost."""

    order: tuple[int, ...]

    @property
    def back(self) -> tuple[int, ...]:
        """The dims as they are called, in what lies in this order."""
        return tuple(self.order.index(axis) for axis in range(len(self.order)))

    @property
    def plain(self) -> bool:
        """True where the last dim is the innermost, and so on."""
        return self.order == tuple(range(len(self.order)))


def layout_of(value: Any, sizes: TorchSizes) -> MemoryLayout:
    """The layout of a (fake) tensor that fills its memory; of any other that of one which does."""
    rank = value.dim()
    plain = MemoryLayout(tuple(range(rank)))
    try:
        shape, strides = (tuple(dims.evaluate(sizes.dim(n), sizes.hints) for n in numbers) for numbers in (value.shape, value.stride()))
    except CosetError:
        return plain
    # a dim of 1 has any stride: it stays where it is called
    real = [axis for axis in range(rank) if shape[axis] != 1]
    by_stride = iter(sorted(real, key=lambda axis: (-strides[axis], axis)))
    order = tuple(axis if shape[axis] == 1 else next(by_stride) for axis in range(rank))
    expected = 1
    for axis in reversed(order):
        if shape[axis] != 1 and strides[axis] != expected:
            return plain
        expected *= shape[axis]
    return MemoryLayout(order)


# ---------------------------------------------------------------- one call


def call_of(node: Node, value: Mapping[Node, Value], sizes: TorchSizes) -> AtenNode:
    """The call that `node` is, with what `value` says of the nodes that it takes.

    Raises:
        NoTerm: an argument is nothing that terms have.
    """
    arguments: dict[str, Any] = {}
    common: list[Any] = []
    for place, parameter in enumerate(node.target._schema.arguments):
        if any(word in str(parameter.type) for word in _PASSED_OVER) or parameter.name == "layout":
            continue
        if place < len(node.args):
            given = node.args[place]
        elif parameter.name in node.kwargs:
            given = node.kwargs[parameter.name]
        else:
            given = parameter.default_value
        arguments[parameter.name] = _argument(given, value, sizes)
        if parameter.name in ("self", "other", "exponent", "min", "max", "value"):
            common.append(given.meta["val"] if isinstance(given, torch.fx.Node) else given)
    results = node.meta["val"]
    types = [
        sizes.type(each) if isinstance(each, torch.Tensor) else None
        for each in (results if isinstance(results, list | tuple) else (results,))
    ]
    first = types[0] if types else None
    return AtenNode(name_of(node), arguments, tuple(types), promoted(common), first is not None and first.dtype.name in saturating())


def name_of(node: Node) -> str:
    """The op with its overload, as `add.Tensor`; that of another library with its own name before it."""
    return str(node.target).removeprefix("aten.")


def _argument(given: Any, value: Mapping[Node, Value], sizes: TorchSizes) -> Any:
    if isinstance(given, torch.fx.Node):
        return value[given] if given in value else sizes.given(given.meta["val"])
    if isinstance(given, list | tuple):
        return [_argument(each, value, sizes) for each in given]
    if isinstance(given, torch.dtype):
        return dtype_of(given)
    if isinstance(given, torch.SymInt | torch.SymFloat | torch.SymBool):
        return sizes.given(given)
    return given


def built(node: Node, value: Mapping[Node, Value], sizes: TorchSizes) -> Value:
    """What `node` computes: a term, or the tuple of its results (None for those that nobody asked for).

    Raises:
        NoTerm: no term says it; the message is the reason.
        CosetError: a hub op refuses its operands.
    """
    if node.target is operator.getitem:
        return value[node.args[0]][node.args[1]]
    if not isinstance(node.target, torch._ops.OpOverload):
        raise NoTerm("it is no ATen op")
    name = name_of(node)
    if torch.Tag.nondeterministic_seeded in node.target.tags:
        raise NoTerm(_RANDOM)
    builder = BUILDERS.get(name) if node.target.namespace in ("aten", "prims") else None
    if builder is None:
        raise NoTerm("coset has no definition of it")
    call = call_of(node, value, sizes)
    found = builder(call)
    if isinstance(found, Term):
        term = _settled(found, call.types[0], sizes.hints)
        return term if isinstance(node.meta["val"], torch.Tensor) else (term,)
    if isinstance(node.meta["val"], torch.Tensor):
        raise NoTerm("its definition has several results")
    asked = {user.args[1] for user in node.users if user.target is operator.getitem}
    if any(found[place] is None for place in asked):
        raise NoTerm("its definition does not say all results that are asked for")
    return tuple(None if term is None else _settled(term, type, sizes.hints) for term, type in zip(found, call.types, strict=False))


def _settled(term: Term, wanted: TensorType | None, hints: Mapping[str, int]) -> Term:
    """`term` under the dims that torch says, which may be spelled in another way.

    Raises:
        NoTerm: the term's type is another one.
    """
    if wanted is None or term.type == wanted:
        return term
    own = term.tensor
    same = own.dtype == wanted.dtype and own.rank == wanted.rank
    for axis, (a, b) in enumerate(zip(own.dims, wanted.dims, strict=True) if same else ()):
        if a != b:
            same = same and not (isinstance(a, int) and isinstance(b, int)) and dims.evaluate(a, hints) == dims.evaluate(b, hints)
            term = sized(term, axis, b) if same else term
    if not same:
        raise NoTerm(f"its term gives {own}, and torch {wanted}")
    return term


# ---------------------------------------------------------------- a graph


@dataclass(frozen=True)
class Imported:
    """A graph as a program with what a caller needs: `places[i]` is the argument that input i of the program is, with its layout (None:
    the tensor [n, 0] that carries the number of the symbol `carried[i]`); `outputs` are the results of the graph: the number of an output
    of the program with its layout, or a dim. `symbols` are those of the sizes, with their numbers in the call that is compiled for, and
    `solved` says how each is found: the argument, the axis (None: the argument is a number), and the expression that stands there."""

    program: Program
    places: tuple[tuple[int, MemoryLayout] | str, ...]
    outputs: tuple[tuple[int, MemoryLayout] | Dim | None, ...]
    hints: Mapping[str, int]
    solved: tuple[tuple[str, int, int | None, Dim], ...]
    ops: int


def import_graph(graph: Any) -> Imported:
    """The program that an FX graph of ATen ops is: its placeholders that are tensors are the inputs x0, x1, .., its results the outputs.

    Raises:
        NoTerm: an op has no term; the message names it.
        CosetError: a hub op refuses its operands.
    """
    sizes = TorchSizes()
    arguments = [node for node in graph.nodes if node.op == "placeholder"]
    value: dict[Node, Value] = {}
    inputs: list[Term] = []
    places: list[tuple[int, MemoryLayout] | str] = []
    ops = 0
    for place, node in enumerate(arguments):
        given = node.meta["val"]
        if isinstance(given, torch.Tensor):
            layout = layout_of(given, sizes)
            type = sizes.type(given)
            lying = TensorType(type.dtype, tuple(type.dims[axis] for axis in layout.order))
            term = input_term(f"x{len(inputs)}", lying)
            inputs.append(term)
            places.append((place, layout))
            value[node] = transpose(term, layout.back)
    for node in graph.nodes:
        if node.op != "call_function" or is_number(node):
            continue
        ops += node.target is not operator.getitem
        try:
            value[node] = built(node, value, sizes)
        except CosetError as error:
            raise NoTerm(f"`{node.target}`: {error.message}") from error
    (listed,) = next(node for node in graph.nodes if node.op == "output").args
    terms, outputs = _results(listed, value, sizes)
    inputs, places = _with_carriers(inputs, places, terms)
    solved = _solved(arguments, [output for output in outputs if isinstance(output, Poly)], places)
    program = passed("reading an FX graph", Program(tuple(inputs), tuple((f"y{i}", term) for i, term in enumerate(terms))))
    needed = set(program.symbols())
    return Imported(program, tuple(places), tuple(outputs), {name: n for name, n in sizes.hints.items() if name in needed}, solved, ops)


def _results(listed: Any, value: Mapping[Node, Value], sizes: TorchSizes) -> tuple[list[Term], list[tuple[int, MemoryLayout] | Dim | None]]:
    """What a graph returns: the terms of its tensors in row-major order, and of each result which of them it is, or its number."""
    outputs: list[tuple[int, MemoryLayout] | Dim | None] = []
    terms: list[Term] = []
    for result in listed if isinstance(listed, list | tuple) else (listed,):
        if result is None or isinstance(result, int):
            outputs.append(result)
        elif isinstance(result.meta["val"], torch.Tensor):
            layout = layout_of(result.meta["val"], sizes)
            outputs.append((len(terms), layout))
            terms.append(transpose(value[result], layout.order))
        else:
            outputs.append(sizes.given(result.meta["val"]))
    return terms, outputs


def is_number(node: Node) -> bool:
    """True for a node that computes with sizes, which becomes dims."""
    return isinstance(node.meta.get("val"), int | float | torch.SymInt | torch.SymFloat | torch.SymBool)


def _with_carriers(
    inputs: list[Term], places: list[tuple[int, MemoryLayout] | str], terms: Sequence[Term]
) -> tuple[list[Term], list[tuple[int, MemoryLayout] | str]]:
    """The inputs with one [n, 0] for each symbol n that is spoken of, and that no tensor has alone as a dim."""
    alone = {name for term in inputs for dim in term.tensor.dims if (name := dims.alone(dim)) is not None}
    spoken = set(spelled(inputs))
    for term in topological(terms):
        spoken |= symbols_of(term)
        spoken |= {name for type in tensors_in(term.type) for dim in type.dims for name in dims.symbols(dim)}
    carried = sorted(spoken - alone)
    more = [input_term(f"n{i}", TensorType(I8, (dims.symbol(name), 0))) for i, name in enumerate(carried)]
    return [*inputs, *more], [*places, *carried]


def _solved(arguments: Sequence[Node], outputs: Sequence[Dim], places: Sequence[Any]) -> tuple[tuple[str, int, int | None, Dim], ...]:
    """How the numbers of the carried symbols, and of those in `outputs`, are found from the arguments.

    Raises:
        NoTerm: one cannot be found.
    """
    wanted = {place for place in places if isinstance(place, str)}.union(*(dims.symbols(dim) for dim in outputs), ())
    seen = told(arguments)
    known: set[str] = set()
    steps: list[tuple[str, int, int | None, Dim]] = []
    found = True
    while found and not wanted <= known:
        found = False
        for dim, place, axis in seen:
            open_ = dims.symbols(dim) - known
            if len(open_) == 1 and linear(dim, min(open_)) is not None:
                steps.append((min(open_), place, axis, dim))
                known |= open_
                found = True
    if not wanted <= known:
        raise NoTerm(f"no argument tells the size {', '.join(sorted(wanted - known))}")
    return tuple(steps)


def told(arguments: Sequence[Node]) -> list[tuple[Dim, int, int | None]]:
    """The sizes that are seen on arguments: the dim, the argument, and the axis (None: the argument is a number)."""
    seen: list[tuple[Dim, int, int | None]] = []
    for place, node in enumerate(arguments):
        given = node.meta["val"]
        if isinstance(given, torch.SymInt):
            seen.append((dim_of_expression(given.node.expr), place, None))
        elif isinstance(given, torch.Tensor):
            numbers = [(axis, size) for axis, size in enumerate(given.shape) if not isinstance(size, int)]
            seen += [(dim_of_expression(size.node.expr), place, axis) for axis, size in numbers]
    return seen


def linear(dim: Dim, name: str) -> tuple[Dim, Dim] | None:
    """(a, b) where `dim` is a * name + b, and neither speaks of `name`; None where it is no such sum."""
    if not isinstance(dim, Poly):
        return None
    factor: Dim = 0
    rest: Dim = 0
    for monomial, coefficient in dim.terms:
        piece = Poly(((monomial, coefficient),)) if monomial else coefficient
        if name not in dims.symbols(piece):
            rest = dims.add(rest, piece)
            continue
        share = dims.divide_exactly(piece, dims.symbol(name))
        if share is None or name in dims.symbols(share):
            return None
        factor = dims.add(factor, share)
    return factor, rest
