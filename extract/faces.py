"""An e-graph as an extraction problem. A class has faces: its value in memory, and as a broadcast that nobody materialises.

Kernels that broadcast as NumPy does read an operand's view face: a `broadcast_in_dim` over the operand in memory, for
nothing. Every other user reads the face in memory, where the same `broadcast_in_dim` is a copy. A third face, with 1s put
in, stands between the two where a broadcast needs a Reshape first: a reduction with kept dims gives it for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice, product

from coset.dialects.hub.stablehlo import numpy_view
from coset.egraph.saturated import ENode, Saturated
from coset.extract.cost import Pricer
from coset.extract.problem import Choice, Problem
from coset.extract.storage import BROADCAST, Folded
from coset.ir import dims
from coset.ir.dims import Dim, Poly, Shape
from coset.ir.term import CONSTANT
from coset.ir.types import TensorType
from coset.targets.target import Form

RESHAPE, SLICE = "stablehlo.reshape", "stablehlo.slice"
COMBINATIONS = 64  # of views of one node's operands
_REDUCTIONS = ("ReduceMean", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp")
KEEPS_DIMS = frozenset({"stablehlo.reduce", *(f"onnx.{name}" for name in _REDUCTIONS)})

Cut = tuple[int, int, Dim, Dim]  # class, axis, start, limit
HOST_NODES = 3  # Shape, Gather and a share of Concat: what a number of the host takes, less what it shares with others
TIE = 1e-12  # s: of two equally dear forms the one that the user wrote


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a choice comes from: e-node `node` of `eclass` over the faces `operands`; `node` -1 is the one operand itself,
    -2 is a value made at build time."""

    eclass: int
    node: int
    operands: tuple[int, ...] = ()


ITSELF, FOLDED = -1, -2
STORED = 2e-13  # s/B of a large value made at build time: 411 MB of VGG's weights are not transposed for 3 us


@dataclass(frozen=True)
class Faces:
    """The problem, and the origin of each of its choices. Problem class c is e-class c in memory; the other faces follow."""

    problem: Problem
    origins: list[list[Origin]]


def faces_of(saturated: Saturated, pricer: Pricer, folded: Folded) -> Faces:
    """The extraction problem of an e-graph under a target's costs."""
    builder = _Builder(saturated, pricer, folded)
    return builder.build()


class _Builder:
    def __init__(self, saturated: Saturated, pricer: Pricer, folded: Folded) -> None:
        self.saturated = saturated
        self.pricer = pricer
        self.folded = folded
        self.choices: list[list[Choice]] = [[] for _ in saturated.nodes]
        self.origins: list[list[Origin]] = [[] for _ in saturated.nodes]
        self.broadcasts = [self._broadcasts(number) for number in range(len(saturated.nodes))]
        self.views: dict[tuple[int, Shape], int] = {}
        self.ones: dict[tuple[int, Shape], int] = {}
        self.lines = _lines(saturated)
        self.apart: dict[tuple[Cut, ...], int] = {}

    def build(self) -> Faces:
        for number, broadcasts in enumerate(self.broadcasts):
            for _, _, view in broadcasts:
                if (number, view) not in self.views:
                    self.views[number, view] = self._new()
        for number in range(len(self.saturated.nodes)):
            if number in self.folded.classes:
                self._add(number, self._keeping(number), Origin(number, FOLDED))
            else:
                for index, node in enumerate(self.saturated.nodes[number]):
                    self._add_node(number, index, node)
        for (number, view), face in self.views.items():
            self._add_view(face, number, view)
        problem = Problem([tuple(choices) for choices in self.choices], self.saturated.roots)
        return Faces(problem, self.origins)

    def _new(self) -> int:
        self.choices.append([])
        self.origins.append([])
        return len(self.choices) - 1

    def _add(self, face: int, cost: float, origin: Origin) -> None:
        self.choices[face].append(Choice(cost, tuple(sorted(set(origin.operands)))))
        self.origins[face].append(origin)

    def _shape(self, number: int) -> Shape | None:
        type = self.saturated.types[number]
        return type.shape if isinstance(type, TensorType) else None

    def _broadcasts(self, number: int) -> list[tuple[int, ENode, Shape]]:
        """The e-nodes of a class that are views of their operand, with the operand's shape as NumPy must see it."""
        found = []
        for index, node in enumerate(self.saturated.nodes[number]):
            if node.op.name == BROADCAST and (operand := self._shape(node.children[0])) is not None:
                attributes = dict(node.attributes)
                view = numpy_view(attributes["shape"], attributes["broadcast_dimensions"], operand)
                if view is not None and node.children[0] != number:
                    found.append((index, node, view))
        return found

    # ------------------------------------------------------------ the face in memory

    def _add_node(self, number: int, index: int, node: ENode) -> None:
        if number in self.saturated.heavy:
            return
        types = tuple(self.saturated.types[child] for child in node.children)
        result = self.saturated.types[number]
        form = self.pricer.form(node.op, node.attributes, result, types, original=node.original)
        if form is None:
            return
        if node.op.name == BROADCAST:
            form = self._copying(number, index, form)
        if node.op.name == RESHAPE and self._is_kept(node, self._shape(number)):
            self._add(number, 0.0, Origin(number, index, (self._with_ones(node.children[0], _trimmed(self._shape(number))),)))
            return
        if form.joint and (cut := _cut(self.saturated, node)) in self.lines:
            assert cut is not None
            launch = self.pricer.launch(form.kernel)
            seconds = self._seconds(number, node, form, (self._read(cut[0]),))
            self._add(number, max(0.0, seconds - launch), Origin(number, index, (self._taken_apart(self.lines[cut], launch),)))
            return
        for views in self._viewed(number, node, form):
            operands = tuple(self.views[child, views[place]] if place in views else child for place, child in enumerate(node.children))
            read = tuple(  # the same again comes from the cache
                0.0 if operand in operands[:place] else self._read(node.children[place], views.get(place))
                for place, operand in enumerate(operands)
            )
            self._add(number, self._seconds(number, node, form, read), Origin(number, index, operands))

    def _seconds(self, number: int, node: ENode, form: Form, read: tuple[float, ...]) -> float:
        types = tuple(self.saturated.types[child] for child in node.children)
        fixed = tuple(child in self.folded.classes for child in node.children)
        seconds = self.pricer.seconds(form, node.op, node.attributes, self.saturated.types[number], types, read=read, fixed=fixed)
        seconds += _computed_dims(node, self._shape(node.children[0]) if node.children else None) * HOST_NODES * self.pricer.launch("host")
        return seconds if node.original else seconds + TIE

    def _keeping(self, number: int) -> float:
        """What a large value counts that is stored beside or instead of what the model has: it costs no time at run time, but a copy."""
        made = self.saturated.nodes[number][self.folded.picks[number]].op is not CONSTANT and number in self.folded.stored
        size = self.pricer.sizes.bytes(self.saturated.types[number]) if made else 0.0
        return size * STORED if size > self.pricer.target.storing.small else 0.0

    def _copying(self, number: int, index: int, form: Form) -> Form:
        """Expand takes the trailing dims as they are: 1s in the middle are a Reshape more, another order a Transpose more."""
        node = self.saturated.nodes[number][index]
        view = next((view for place, _, view in self.broadcasts[number] if place == index), None)
        plain = view is not None and view == _trimmed(self._shape(node.children[0]))
        return form if plain else replace(form, nodes=form.nodes + 1)

    def _read(self, child: int, view: Shape | None = None) -> float:
        """Bytes read of an operand; of a view those below the broadcast."""
        type = self.saturated.types[child]
        if view is None or not isinstance(type, TensorType):
            return self.pricer.sizes.bytes(type)
        return self.pricer.sizes.product(view) * type.dtype.bytes

    def _viewed(self, number: int, node: ENode, form: Form) -> list[dict[int, Shape]]:
        """The ways to read operands: place -> view, the others from memory; those that have the result's whole shape together.

        An operand that is nothing but a broadcast is read from memory only where no views reach the shape.
        """
        places = [place for place in sorted(form.views) if place < len(node.children)]
        options = {place: views for place in places if (views := self._readable(node.children[place], form.kept))}
        if not options:
            return [{}]
        shape = self._shape(number)
        assert shape is not None
        shape = shape[: len(shape) - form.kept]
        whole = [place for place, child in enumerate(node.children) if form.kept or self._shape(child) == shape]
        spans = any(place not in form.views for place in range(len(node.children))) or any(place not in options for place in whole)
        found: list[dict[int, Shape]] = []
        short: list[dict[int, Shape]] = []
        ways = [[*views, *([] if self._only_broadcasts(node.children[place]) else [None])] for place, views in options.items()]
        for combination in islice(product(*ways), COMBINATIONS):
            taken = {place: view for place, view in zip(options, combination, strict=True) if view is not None}
            reached = [view[: len(view) - form.kept] for view in taken.values()]
            good = spans or any(place not in taken for place in whole) or _span(reached, shape)
            (found if good else short).append(taken)
        for taken in short:
            found.extend({place: view for place, view in taken.items() if place != left} for left in whole)
        return [dict(entry) for entry in dict.fromkeys(tuple(entry.items()) for entry in found)]

    def _only_broadcasts(self, child: int) -> bool:
        return len(self.broadcasts[child]) == len(self.saturated.nodes[child])

    def _readable(self, child: int, kept: int) -> list[Shape]:
        """The views of a class that a kernel can read which needs the last `kept` dims in full."""
        shape = self._shape(child)
        found = dict.fromkeys(view for _, _, view in self.broadcasts[child])
        if not kept or shape is None:
            return list(found)
        plain = {view for _, node, view in self.broadcasts[child] if view == _trimmed(self._shape(node.children[0]))}
        return [view for view in found if view in plain and len(view) >= kept and view[-kept:] == shape[-kept:]]

    # ------------------------------------------------------------ the other faces

    def _add_view(self, face: int, number: int, view: Shape) -> None:
        for index, node, found in self.broadcasts[number]:
            if found == view:
                child = node.children[0]
                as_it_is = view == _trimmed(self._shape(child)) or child in self.folded.classes
                self._add(face, 0.0, Origin(number, index, (child if as_it_is else self._with_ones(child, view),)))

    def _taken_apart(self, line: tuple[Cut, ...], launch: float) -> int:
        """The face of a value that one node takes apart: it costs the launch, whatever of it is used."""
        face = self.apart.get(line)
        if face is None:
            face = self.apart[line] = self._new()
            self._add(face, launch, Origin(line[0][0], ITSELF, (line[0][0],)))
        return face

    def _with_ones(self, number: int, view: Shape) -> int:
        """The face of a class whose value has the shape `view`."""
        found = self.ones.get((number, view))
        if found is None:
            found = self.ones[number, view] = self._new()
            self._add(found, self.pricer.launch("host"), Origin(number, ITSELF, (number,)))
            for index, node in enumerate(self.saturated.nodes[number]):
                self._add_kept(found, number, index, node, view)
        return found

    def _is_kept(self, node: ENode, shape: Shape | None) -> bool:
        """True when a reduction below this reshape gives the shape by keeping its dims."""
        for inner in self.saturated.nodes[node.children[0]]:
            if inner.op.name in KEEPS_DIMS and (whole := self._shape(inner.children[0])) is not None and _kept_shape(inner, whole) == shape:
                return True
        return False

    def _add_kept(self, face: int, number: int, index: int, node: ENode, view: Shape) -> None:
        """A reduction that keeps its dims, and a reshape that only dropped the 1s."""
        if number in self.saturated.heavy or not node.children or (shape := self._shape(node.children[0])) is None:
            return
        if node.op.name == RESHAPE and _trimmed(shape) == view:
            self._add(face, 0.0, Origin(number, index, node.children))
        if node.op.name not in KEEPS_DIMS:
            return
        if _trimmed(_kept_shape(node, shape)) != view:
            return
        types = tuple(self.saturated.types[child] for child in node.children)
        form = self.pricer.form(node.op, node.attributes, self.saturated.types[number], types, original=node.original)
        if form is not None:
            read = tuple(self._read(child) for child in node.children)
            self._add(face, self._seconds(number, node, form, read), Origin(number, index, node.children))


def _cut(saturated: Saturated, node: ENode) -> Cut | None:
    """The value, the one axis and the stretch of it that a slice without steps takes."""
    given, type = dict(node.attributes), saturated.types[node.children[0]]
    if not isinstance(type, TensorType) or any(step != 1 for step in given["strides"]):
        return None
    columns = zip(given["start"], given["limit"], type.dims, strict=True)
    axes = [axis for axis, (start, limit, dim) in enumerate(columns) if (start, limit) != (0, dim)]
    return (node.children[0], axes[0], given["start"][axes[0]], given["limit"][axes[0]]) if len(axes) == 1 else None


def _lines(saturated: Saturated) -> dict[Cut, tuple[Cut, ...]]:
    """The slices that are together all of one value, each with all in order."""
    found: dict[tuple[int, int], dict[Dim, Cut]] = {}
    for nodes in saturated.nodes:
        for node in nodes:
            if node.op.name == SLICE and (cut := _cut(saturated, node)) is not None:
                found.setdefault(cut[:2], {}).setdefault(cut[2], cut)
    lines: dict[Cut, tuple[Cut, ...]] = {}
    for (value, axis), by_start in found.items():
        type = saturated.types[value]
        assert isinstance(type, TensorType)
        line: list[Cut] = []
        position: Dim = 0
        while position in by_start and by_start[position] not in line:
            line.append(by_start[position])
            position = line[-1][3]
        if len(line) > 1 and position == type.dims[axis]:
            lines.update(dict.fromkeys(line, tuple(line)))
    return lines


def _computed_dims(node: ENode, shape: Shape | None) -> int:
    """How many numbers must be computed at run time to state the node's shapes, where its first operand has this `shape`: dims that stay
    need not be said, nor what is counted from a dim's end, and one dim of a reshape is inferred by the runtime."""
    given = dict(node.attributes)
    if shape is not None and node.op.name == RESHAPE:
        if [dim for dim in given["shape"] if dim != 1] == [dim for dim in shape if dim != 1]:
            return 0
        stays = dict(enumerate(shape))
        return max(0, sum(isinstance(dim, Poly) and dim != stays.get(axis) for axis, dim in enumerate(given["shape"])) - 1)
    if shape is not None and node.op.name == BROADCAST:
        stays = dict(zip(given["broadcast_dimensions"], shape, strict=True))
        return sum(isinstance(dim, Poly) and dim != stays.get(axis) for axis, dim in enumerate(given["shape"]))
    if shape is not None and node.op.name == SLICE:
        ends = ((end, dim) for name in ("start", "limit") for end, dim in zip(given[name], shape, strict=True))
        return sum(isinstance(end, Poly) and isinstance(dims.subtract(end, dim), Poly) for end, dim in ends)
    return sum(isinstance(value, Poly) for values in given.values() if isinstance(values, tuple) for value in values)


def _trimmed(shape: Shape | None) -> Shape:
    """Without leading 1s."""
    assert shape is not None
    first = next((place for place, dim in enumerate(shape) if dim != 1), len(shape))
    return tuple(shape[first:])


def _kept_shape(node: ENode, shape: Shape) -> Shape:
    """The shape of a reduction whose reduced dims stay as 1s."""
    dimensions = dict(node.attributes)["dimensions"]
    return tuple(1 if axis in dimensions else dim for axis, dim in enumerate(shape))


def _span(views: Sequence[Shape], shape: Shape) -> bool:
    """True when the views broadcast against each other to `shape`."""
    reached = {axis for axis, dim in enumerate(shape) if dim == 1}
    for view in views:
        offset = len(shape) - len(view)
        reached |= {offset + place for place, dim in enumerate(view) if dim == shape[offset + place]}
    return len(reached) == len(shape)
