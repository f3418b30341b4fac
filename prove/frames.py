"""Whether a rule says the same of its axes whichever of them are left out: the hypothesis of the theorem on ranks in `docs/proofs.md`.

A frame is the sequence of axes that a tensor or a list has an item for. Each axis of each frame lies on a thread, and a list of axes takes
an item to an axis on the same thread: a permutation says which axis of the operand each axis of the result is. A rule in which frames can
be told so apart commutes with leaving threads out. Where they cannot, a permutation goes from a frame to itself: its powers count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import networkx as nx

from coset.prove.axis_counts import _of_count, axes_from_end, counted_behind, counts_axes, counts_last_of, is_identity_range, refuse_sums
from coset.prove.frame_sorts import PLAIN, AxisList, FrameAxis, Plain, Sort, Sorts, Unnatural
from coset.rules.algebra import Call, Listing, Literal, MappedList, Ref, Scalar, Splice, TypeOf, Wild
from coset.rules.candidates import names_axes
from coset.rules.expression_text import text as text_of
from coset.rules.parts import parts
from coset.rules.pattern import Application, Pattern, Variable
from coset.rules.rule import Rule

# ops whose result has the axes of their first operand, beside elementwise ones
_SAME_AXES = frozenset((
    "stablehlo.reverse", "stablehlo.slice", "stablehlo.pad", "stablehlo.concatenate", "stablehlo.reduce_window", "stablehlo.map",
    "stablehlo.dynamic_slice", "onnx.Softmax", "onnx.LogSoftmax", "onnx.CumSum", "part.standardized", "part.unit_rms",
    "onnx.LayerNormalization", "onnx.BatchNormalization", "onnx.RMSNormalization", "onnx.InstanceNormalization",
))  # fmt: skip
_PER_AXIS = (
    "start",
    "limit",
    "strides",
    "low",
    "high",
    "interior",
    "window_dimensions",
    "window_strides",
    "base_dilations",
    "window_dilations",
)
_OF_NUMBERS = frozenset((
    "-", "*", "/", "//", "%", "negate", "min", "max", "ceildiv", "floor", "ceil", "sum", "product", "elements", "bits", "kind", "lowest",
    "highest", "lossless", "dtype", "static", "sqrt", "exp", "log", "pi", "associative", "commutative", "neutral", "integers", "diagonal",
    "masking",
))  # fmt: skip
_COMPARED = frozenset(("<", "<=", ">", ">="))
_BENT = frozenset(("*", "/", "//", "%", "min", "max", "ceildiv", "floor", "ceil", "sqrt", "exp", "log"))


@dataclass(frozen=True)
class Frames:
    """What was found of a rule whose axes fall into frames: how many axes stand before one that has a number, which must stay."""

    before: int


def frames_of(rule: Rule) -> Frames:
    """The frames of a rule.

    Raises:
        Unnatural: there is no way to tell them apart.
    """
    return _Reading(rule=rule).frames()


@dataclass
class _Reading(Sorts):
    rule: Rule = field(kw_only=True)
    names: dict[str, Sort] = field(default_factory=dict)
    texts: dict[str, Sort] = field(default_factory=dict)  # of expressions: what is written alike is one list
    numbers: list[Sort] = field(default_factory=list)  # what must not be an axis
    literals: list[tuple[Sort, int]] = field(default_factory=list)
    identities: set[str] = field(default_factory=set)  # names that are said to keep each axis in its place
    nodes: dict[tuple[str, Any], int | None] = field(default_factory=dict)
    counted: set[int] = field(default_factory=set)  # frames of lists that are as long as a number says
    turning: set[str] = field(default_factory=set)  # names of what transposes do

    # ---------------------------------------------------------------- expressions

    def sort(self, expression: Any, local: Mapping[str, Sort] | None = None) -> Sort:
        local = local or {}
        text = text_of(expression)
        free = not any(isinstance(part, Ref) and part.name in local for part in parts(expression)) if local else True
        if free and text in self.texts and not is_identity_range(expression):
            return self.texts[text]
        found = self._sort(expression, local)
        if free and not isinstance(expression, Literal):
            self.texts[text] = found
        return found

    def _sort(self, expression: Any, local: Mapping[str, Sort]) -> Sort:
        if isinstance(expression, Literal):
            return self._literal(expression.value)
        if isinstance(expression, Ref):
            return local[expression.name] if expression.name in local else self._name(expression.name)
        if isinstance(expression, Listing):
            return self._listing(expression, local)
        if isinstance(expression, MappedList):
            return self._comprehension(expression, local)
        if isinstance(expression, TypeOf):
            place = self.nodes.get((expression.kind, expression.key))
            return AxisList(self.fresh() if place is None else place, PLAIN)
        if isinstance(expression, Wild):
            return self.unknown()
        if isinstance(expression, Scalar):
            self.numbers.append(self.sort(expression.value, local))
            refuse_sums(expression.value)
            return PLAIN
        return self._call(expression, local) if isinstance(expression, Call) else PLAIN

    def _literal(self, value: Any) -> Sort:
        if isinstance(value, tuple):
            items = self.unknown()
            for each in value:
                self.unify(items, self._literal(each))
            return AxisList(self.fresh(), items)
        if isinstance(value, bool) or not isinstance(value, int):
            return PLAIN
        sort = self.unknown()
        self.literals.append((sort, value))
        return sort

    def _name(self, name: str) -> Sort:
        if name not in self.names:
            word = self.rule.compiled.kinds[name].word if name in self.rule.compiled.kinds else "any"
            if word in ("permutation", "axes"):
                self.names[name] = AxisList(self.fresh(), FrameAxis(self.fresh()))
            elif word == "pack":
                self.names[name] = AxisList(self.fresh(), PLAIN)
            elif word in ("ints", "dims"):
                self.names[name] = AxisList(self.fresh(), self.unknown())
            else:
                self.names[name] = self.unknown() if word in ("int", "any") else PLAIN
        return self.names[name]

    def _listing(self, listing: Listing, local: Mapping[str, Sort]) -> Sort:
        items = self.unknown()
        frames = []
        for item in listing.items:
            if isinstance(item, Splice):
                row = self.row(self.unknown() if item.value is None else self.sort(item.value, local))
                self.unify(items, row.item)
                frames.append(row.frame)
            else:
                self.unify(items, self.sort(item, local))
        return AxisList(frames[0] if len(frames) == len(listing.items) == 1 else self.fresh(), items)

    def _comprehension(self, whole: MappedList, local: Mapping[str, Sort]) -> Sort:
        rows = [self.row(self.sort(each, local)) for each in whole.lists]
        for row in rows[1:]:
            self.join(rows[0].frame, row.frame)
        inner = {**local, **{name: row.item for name, row in zip(whole.names, rows, strict=True)}}
        item = self.sort(whole.item, inner)
        all_ = isinstance(whole.condition, Literal)
        self.sort(whole.condition, inner)
        return AxisList(rows[0].frame if all_ else self.fresh(), item)

    def _call(self, call: Call, local: Mapping[str, Sort]) -> Sort:
        name = call.function
        if name in ("==", "!=") and any(map(is_identity_range, call.arguments)):
            other = next((argument for argument in call.arguments if not is_identity_range(argument)), None)
            if other is not None and name == "==":
                self.join(*self.axes(self.sort(other, local)))
                self.identities.add(text_of(other))
                if isinstance(other, Call) and other.function == "compose":  # each undoes the other
                    self.identities.add(text_of(other.arguments[-1]))
            elif other is not None:
                raise Unnatural("a list of axes that is not 0, 1, 2 ..")
            return PLAIN
        if name == "==" and any(map(counts_last_of, call.arguments, call.arguments[::-1])):
            return PLAIN  # that axes are the last ones stays so
        if (end := axes_from_end(call)) is not None:
            return self._literal(-end)  # an axis counted from the end
        given = [self.sort(argument, local) for argument in call.arguments]
        if counts_axes(call):
            return self._literal(-1)  # also the axis behind those that are counted
        if name == "%" and counts_axes(call.arguments[1]) and isinstance(call.arguments[0], Ref):
            return given[0]
        if name in ("+", "-") and isinstance(call.arguments[1], Literal) and isinstance(self.found(given[0]), FrameAxis):
            return self._moved(call.arguments[1].value)
        handler = getattr(self, f"_{_HANDLED[name]}", None) if name in _HANDLED else None
        if handler is not None:
            result: Sort = handler(call, *given)
            return result
        if name in _OF_NUMBERS:
            if name in _BENT and any(map(_of_count, call.arguments)):
                raise Unnatural("a number computed from how many axes there are")
            self.numbers += given
            return PLAIN
        if name in _COMPARED:
            if any(isinstance(self.found(each), Plain) for each in given) or any(map(counts_axes, call.arguments)):
                self.numbers += given
            else:
                self.unify(*given)
            return PLAIN
        raise Unnatural(f"`{name}`")

    def _moved(self, places: int) -> Sort:
        """An axis of a frame that begins some axes later or earlier than another one."""
        frame = self.fresh()
        self.literals.append((FrameAxis(frame), abs(places) - 1))
        return FrameAxis(frame)

    def _equal(self, _: Call, a: Sort, b: Sort) -> Sort:
        self.unify(a, b)
        return PLAIN

    def _truth(self, _: Call, *given: Sort) -> Sort:
        return PLAIN

    def _chosen(self, _: Call, condition: Sort, a: Sort, b: Sort) -> Sort:
        return self.unify(a, b)

    def _compose(self, _: Call, p: Sort, q: Sort) -> Sort:
        (middle, operand), (result, again) = self.axes(p), self.axes(q)
        self.join(middle, again)
        return AxisList(result, FrameAxis(operand))

    def _inverse(self, _: Call, p: Sort) -> Sort:
        result, operand = self.axes(p)
        return AxisList(operand, FrameAxis(result))

    def _permute(self, _: Call, items: Sort, p: Sort) -> Sort:
        row, (result, operand) = self.row(items), self.axes(p)
        self.join(row.frame, operand)
        return AxisList(result, row.item)

    def _item(self, _: Call, items: Sort, place: Sort) -> Sort:
        row = self.row(items)
        self.unify(place, FrameAxis(row.frame))
        return row.item

    def _index(self, _: Call, items: Sort, value: Sort) -> Sort:
        row = self.row(items)
        self.unify(row.item, value)
        return PLAIN if row.frame in self.counted else FrameAxis(row.frame)

    def _within(self, _: Call, value: Sort, items: Sort) -> Sort:
        self.unify(self.row(items).item, value)
        return PLAIN

    def _range(self, call: Call, *ends: Sort) -> Sort:
        if (behind := counted_behind(call)) is not None:
            whole, part = (self.row(self.sort(counted)).frame for counted in behind)
            return AxisList(part, FrameAxis(whole))
        frame = self.fresh()
        if len(ends) == 1 and isinstance(call.arguments[0], Literal):
            self.counted.add(frame)
            return AxisList(frame, PLAIN)
        for end, written in zip(ends, call.arguments, strict=True):
            if isinstance(written, Literal) or axes_from_end(written) is not None:
                self.unify(end, FrameAxis(frame))
            elif not counts_axes(written):
                raise Unnatural("a range of axes that begins or ends at a number that is computed")
        return AxisList(frame if len(ends) == 1 else self.fresh(), FrameAxis(frame))

    def _without(self, call: Call, _: Sort, axes: Sort) -> Sort:
        of = self.axes(axes)[1]
        return AxisList(self.rest(of, text_of(call.arguments[1])), FrameAxis(of))

    def _drop(self, call: Call, items: Sort, axes: Sort) -> Sort:
        row, of = self.row(items), self.axes(axes)[1]
        self.join(row.frame, of)
        return AxisList(self.rest(of, text_of(call.arguments[1])), row.item)

    def _insert(self, call: Call, items: Sort, axes: Sort, value: Sort) -> Sort:
        row, of = self.row(items), self.axes(axes)[1]
        self.join(row.frame, self.rest(of, text_of(call.arguments[1])))
        self.unify(row.item, value)
        return AxisList(of, row.item)

    def _ones_at(self, _: Call, items: Sort, axes: Sort) -> Sort:
        row, of = self.row(items), self.axes(axes)[1]
        self.join(row.frame, of)
        return row

    def _put(self, _: Call, items: Sort, place: Sort, value: Sort) -> Sort:
        row = self.row(items)
        self.unify(place, FrameAxis(row.frame))
        self.unify(row.item, value)
        return row

    def _joined(self, call: Call, first: Sort, second: Sort) -> Sort:
        of, inner = self.axes(first)[1], self.axes(second)[1]
        self.join(inner, self.rest(of, text_of(call.arguments[0])))
        return AxisList(self.fresh(), FrameAxis(of))

    def _sorted(self, _: Call, items: Sort) -> Sort:
        return AxisList(self.fresh(), self.row(items).item)

    def _repeated(self, _: Call, value: Sort, count: Sort) -> Sort:
        return AxisList(self.fresh(), value)

    def _added(self, _: Call, a: Sort, b: Sort) -> Sort:
        if isinstance(self.found(a), AxisList) or isinstance(self.found(b), AxisList):
            first, second = self.row(a), self.row(b)
            return AxisList(self.fresh(), self.unify(first.item, second.item))
        self.numbers += [a, b]
        return PLAIN

    def _rows(self, _: Call, items: Sort) -> Sort:
        return self.row(items)

    def _swapped(self, call: Call, items: Sort) -> Sort:
        for end in (-1, -2):
            self.literals.append((FrameAxis(self.row(items).frame), end))
        return AxisList(self.fresh(), FrameAxis(self.row(items).frame))

    def _batch(self, call: Call, a: Sort, b: Sort) -> Sort:
        self.join(self.row(a).frame, self.row(b).frame)
        return self._swapped(call, a) if call.function == "swap_axes" else AxisList(self.fresh(), FrameAxis(self.row(a).frame))

    # ---------------------------------------------------------------- sides

    def frames(self) -> Frames:
        compiled = self.rule.compiled
        for name, pattern in zip(self.rule.variables, compiled.types, strict=True):
            listing = pattern.dims
            nothing = isinstance(listing, Listing) and not listing.items
            self.nodes["variable", name] = None if nothing else self.row(self.sort(listing)).frame
        for condition in compiled.conditions:
            self.sort(condition)
        for left, right in self.rule.pairs:
            first, second = self._side("left", left), self._side("right", right)
            if first is not None and second is not None:
                self.join(first, second)
        for guards in compiled.guards:
            for guard in guards:
                self.sort(guard)
        self._check()
        return Frames(max(0, self._before()))

    def _check(self) -> None:
        if any(isinstance(self.found(each), FrameAxis) for each in self.numbers):
            raise Unnatural("arithmetic of axes")
        for text, sort in (*self.texts.items(), *self.names.items()):
            sort = self.found(sort)
            if not isinstance(sort, AxisList) or text in self.identities or text.startswith("range("):
                continue  # a range of all axes takes each to itself
            item = self.found(sort.item)
            if isinstance(item, FrameAxis) and self.frame(item.frame) == self.frame(sort.frame):
                raise Unnatural(f"`{text}` takes axes to others of the same tensor")
        ties: nx.Graph[int] = nx.Graph()
        for name in self._bijections():
            result, operand = map(self.frame, self.axes(self.names[name]))
            if ties.has_node(result) and ties.has_node(operand) and nx.has_path(ties, result, operand):
                raise Unnatural(f"`{name}` ties axes that are tied already")
            ties.add_edge(result, operand)

    def _bijections(self) -> list[str]:
        """The names that permute all axes, but for those that conditions determine."""
        kinds = self.rule.compiled.kinds
        return [
            n for n in self.names if n not in self.identities and (n in self.turning or (n in kinds and kinds[n].word == "permutation"))
        ]

    def _before(self) -> int:
        """The greatest number, from the front, of an axis that is named by it."""
        return max((value for sort, value in self.literals if isinstance(self.found(sort), FrameAxis)), default=0)

    def _side(self, side: str, pattern: Pattern) -> int | None:
        if isinstance(pattern, Variable):
            return self.nodes["variable", pattern.name]
        operands = [self._side(side, operand) for operand in pattern.operands]
        result = self._result(side, pattern, operands)
        self.nodes[side, pattern.index] = result
        return result

    def _attributes(self, side: str, node: Application) -> dict[str, Sort]:
        attributes = (self.rule.compiled.left if side == "left" else self.rule.compiled.right)[node.index]
        found = {name: self.sort(value) for name, value in attributes.items}
        if node.op.name == "builtin.dims":
            for _, value in attributes.items:
                refuse_sums(value)
        self_rest = attributes.rest
        if self_rest is not None:
            for attribute in node.op.attributes:
                if attribute.name not in found:
                    found[attribute.name] = self.names.setdefault(f"{self_rest}.{attribute.name}", self.unknown())
        return found

    def _result(self, side: str, node: Application, operands: list[int | None]) -> int | None:
        given = self._attributes(side, node)
        name = node.op.name
        there = [frame for frame in operands if frame is not None]
        first = there[0] if there else None
        if name == "stablehlo.transpose" and first is not None:
            self.turning.add(self._written(side, node, "permutation"))
            result, operand = self.axes(given["permutation"])
            self.join(operand, first)
            return result
        if name in ("stablehlo.broadcast_in_dim", "stablehlo.iota", "stablehlo.reshape"):
            shape = self.row(given["shape"]).frame
            if name == "stablehlo.broadcast_in_dim" and first is not None:
                own, of = self.axes(given["broadcast_dimensions"])
                self.join(own, first)
                self.join(of, shape)
            if name == "stablehlo.iota":
                self.unify(given["dimension"], FrameAxis(shape))
            return shape
        if name in ("stablehlo.reduce", "stablehlo.reduce_region") and first is not None:
            self.join(self.axes(given["dimensions"])[1], first)
            return self.rest(first, self._written(side, node, "dimensions"))
        if name == "stablehlo.dot_general" and len(there) == 2:
            for kind in ("batch", "contract"):
                pair = [self.axes(given[f"{hand}_{kind}"]) for hand in ("lhs", "rhs")]
                self.join(pair[0][0], pair[1][0])
                for (_, of), frame in zip(pair, there, strict=True):
                    self.join(of, frame)
            return self.fresh()
        if node.op.has("elementwise") or name in _SAME_AXES:
            for other in there[1:]:
                self.join(there[0], other) if node.op.has("elementwise") or name == "stablehlo.concatenate" else None
            self._of_axes({} if name == "stablehlo.map" else given, first)  # a map is over all axes, in their order
            return first
        if name.startswith("onnx.Reduce"):
            self._of_axes(given, first)
            return self.fresh()
        if any(names_axes(attribute) for attribute in given):
            raise Unnatural(f"axes of {name}")
        return self.fresh() if there or not name.startswith("builtin.") else None

    def _written(self, side: str, node: Application, name: str) -> str:
        items = dict((self.rule.compiled.left if side == "left" else self.rule.compiled.right)[node.index].items)
        return text_of(items[name]) if name in items else f"{side} {node.index}"

    def _of_axes(self, given: Mapping[str, Sort], frame: int | None) -> None:
        """What the attributes of an op say of the axes of its operand."""
        if frame is None:
            return
        for name, sort in given.items():
            if name in _PER_AXIS:
                self.join(self.row(sort).frame, frame)
            elif name in ("axis", "dimension"):
                self.unify(sort, FrameAxis(frame))
            elif names_axes(name):
                self.join(self.axes(sort)[1], frame)


_HANDLED = {
    "==": "equal", "!=": "equal", "and": "truth", "or": "truth", "not": "truth", "all": "truth", "any": "truth", "if": "chosen",
    "compose": "compose", "inverse": "inverse", "permute": "permute", "item": "item", "index": "index", "in": "within",
    "range": "range", "without": "without", "drop": "drop", "insert": "insert", "ones_at": "ones_at", "put": "put",
    "join": "joined", "sort": "sorted", "repeat": "repeated", "+": "added", "dims": "rows", "swap_axes": "swapped", "batch_axes": "batch",
}  # fmt: skip
