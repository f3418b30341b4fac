"""Wrong edits of ONNX models, as careless optimizers make them: an operand swapped, an axis, a scale, a mask's sign, a dropped residual.

Each keeps the model valid and all its types. Whether it changes what the model computes is for whoever draws it to find out.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

LARGE = 1e4  # from here on a number in a model masks what it is added to
OPERATORS = {"Add": "Sub", "Sub": "Add", "Mul": "Add", "Max": "Min", "Tanh": "Sigmoid", "Sigmoid": "Tanh", "Relu": "Abs", "Sqrt": "Exp",
             "Erf": "Tanh", "Cos": "Sin", "Sin": "Cos", "ReduceMean": "ReduceMax", "MaxPool": "AveragePool"}  # fmt: skip
SWAPPED = {
    "Sub": (0, 1),
    "Div": (0, 1),
    "Pow": (0, 1),
    "MatMul": (0, 1),
    "Concat": (0, 1),
    "Less": (0, 1),
    "Greater": (0, 1),
    "Where": (1, 2),
}
AXES = ("Softmax", "LogSoftmax", "Concat", "Gather", "Split", "ReduceMean", "ReduceSum", "ReduceMax", "CumSum")


@dataclass(frozen=True)
class Edit:
    """One change: `apply` makes it in a model that is equal to the one it was found in. `values`: what it changes directly, by name."""

    kind: str
    place: str
    values: tuple[str, ...]
    apply: Callable[[onnx.ModelProto], None]


class Sites:
    """The places of a model where something can be edited, by kind."""

    def __init__(self, path: Path) -> None:
        """Read the model and the types of its values."""
        self.path = path
        self.model = onnx.load(path)
        self.types = _types(self.model)
        self.tensors = {tensor.name: tensor for tensor in self.model.graph.initializer}
        self.readers: dict[str, list[onnx.NodeProto]] = {}
        for node in self.model.graph.node:
            for name in node.input:
                self.readers.setdefault(name, []).append(node)
        self.constant = {*self.tensors, ""}  # values that are made of constants alone
        for node in self.model.graph.node:
            if self.constant.issuperset(node.input):
                self.constant |= set(node.output)
        self.by_kind: dict[str, list[Edit]] = {}
        for edit in self._all():
            self.by_kind.setdefault(edit.kind, []).append(edit)

    def draw(self, kind: str, draw: random.Random) -> tuple[Edit, onnx.ModelProto] | None:
        """A valid edit of this kind, taken out of the list, with the model after it; None where none is left."""
        edits = self.by_kind.get(kind, [])
        while edits:
            edit = edits.pop(draw.randrange(len(edits)))
            model = copy.deepcopy(self.model)
            edit.apply(model)
            if self._valid(model):
                return edit, model
        return None

    def near(self, edit: Edit) -> set[str]:
        """The values that an edit changes directly, and those computed from them; what is made of constants alone does not count."""
        found, ends = set(edit.values), list(edit.values)
        for value in ends:
            readers = [name for node in self.readers.get(value, ()) for name in node.output if name not in found]
            found |= set(readers)
            ends += [name for name in readers if value in self.constant or name in self.constant]
        return found

    def _valid(self, model: onnx.ModelProto) -> bool:
        """Whether the checker takes the model, and every value has the type that it had."""
        try:
            onnx.checker.check_model(model)
            return _types(model) == self.types
        except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
            return False

    # ------------------------------------------------------------ edits by kind

    def _all(self) -> Iterator[Edit]:
        for place, node in enumerate(self.model.graph.node):
            yield from self._swapped(place, node)
            yield from self._axes(place, node)
            yield from self._operators(place, node)
            yield from self._dropped(place, node)
            yield from self._turned(place, node)
            yield from self._scales(place, node)
        for place, tensor in enumerate(self.model.graph.initializer):
            yield from self._constants(place, tensor)

    def _swapped(self, place: int, node: onnx.NodeProto) -> Iterator[Edit]:
        pair = SWAPPED.get(node.op_type)
        if pair is None or len(node.input) <= pair[1] or node.input[pair[0]] == node.input[pair[1]]:
            return

        def apply(model: onnx.ModelProto) -> None:
            given = model.graph.node[place].input
            given[pair[0]], given[pair[1]] = given[pair[1]], given[pair[0]]

        kind = "mask" if node.op_type == "Where" and any(map(self._masks, node.input)) else "swapped operands"
        yield _of_node(kind, node, f"operands {pair[0]} and {pair[1]}", apply)

    def _axes(self, place: int, node: onnx.NodeProto) -> Iterator[Edit]:
        rank = len(self.types.get(node.output[0], (0, ()))[1])
        for number, attribute in enumerate(node.attribute):
            if node.op_type not in AXES or attribute.name not in ("axis", "axes"):
                continue
            given = [attribute.i] if attribute.name == "axis" else list(attribute.ints)
            for axis in range(rank) if len(given) == 1 else ():
                old = given[0] % rank
                if axis == old:
                    continue

                def apply(model: onnx.ModelProto, axis: int = axis, number: int = number) -> None:
                    found = model.graph.node[place].attribute[number]
                    if found.name == "axis":
                        found.i = axis
                    else:
                        found.ints[0] = axis

                yield _of_node("axis", node, f"axis {old} -> {axis}", apply)

    def _operators(self, place: int, node: onnx.NodeProto) -> Iterator[Edit]:
        other = OPERATORS.get(node.op_type)
        if other is None or node.domain or len(node.output) > 1:
            return

        def apply(model: onnx.ModelProto) -> None:
            found = model.graph.node[place]
            found.op_type = other
            if other == "AveragePool":
                kept = [each for each in found.attribute if each.name not in ("storage_order", "dilations")]
                del found.attribute[:]
                found.attribute.extend(kept)

        yield _of_node("operator", node, f"{node.op_type} -> {other}", apply)

    def _dropped(self, place: int, node: onnx.NodeProto) -> Iterator[Edit]:
        if node.op_type != "Add" or any(name in self.tensors for name in node.input):
            return
        for number, name in enumerate(node.input):
            if self.types.get(name) == self.types.get(node.output[0], ()):

                def apply(model: onnx.ModelProto, number: int = number) -> None:
                    found = model.graph.node[place]
                    found.op_type, kept = "Identity", found.input[number]
                    del found.input[:]
                    found.input.append(kept)

                yield _of_node("dropped residual", node, f"only operand {number} is kept", apply)

    def _turned(self, place: int, node: onnx.NodeProto) -> Iterator[Edit]:
        order = next((list(each.ints) for each in node.attribute if each.name == "perm"), None) if node.op_type == "Transpose" else None
        for one in range(len(order or ())):
            for other in range(one):

                def apply(model: onnx.ModelProto, one: int = one, other: int = other) -> None:
                    (found,) = (each for each in model.graph.node[place].attribute if each.name == "perm")
                    found.ints[one], found.ints[other] = found.ints[other], found.ints[one]

                yield _of_node("transpose", node, f"perm {order}, {other} and {one} swapped", apply)
        for name in node.input[1:] if node.op_type == "MatMul" else ():
            tensor = self.tensors.get(name)
            if tensor is not None and len(tensor.dims) == 2 and tensor.dims[0] == tensor.dims[1]:
                yield self._of_tensor("transpose", name, "a square weight", lambda value: np.ascontiguousarray(value.T))

    def _scales(self, place: int, node: onnx.NodeProto) -> Iterator[Edit]:
        for number, attribute in enumerate(node.attribute):
            if attribute.name not in ("epsilon", "alpha", "beta") or attribute.type != onnx.AttributeProto.FLOAT:
                continue

            def apply(model: onnx.ModelProto, number: int = number) -> None:
                found = model.graph.node[place].attribute[number]
                found.f = found.f * 4 + 0.1

            yield _of_node("scale", node, f"{attribute.name} {attribute.f:g} -> {attribute.f * 4 + 0.1:g}", apply)

    def _constants(self, place: int, tensor: TensorProto) -> Iterator[Edit]:
        if tensor.data_type not in (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE) or tensor.name not in self.readers:
            return
        if self._masks(tensor.name):
            yield self._of_tensor("mask", tensor.name, "the sign of a mask", lambda value: -value)
        elif int(np.prod(tensor.dims)) == 1:
            yield self._of_tensor("scale", tensor.name, "doubled", lambda value: value * 2)
        else:
            yield self._of_tensor("constant", tensor.name, "an element", lambda value: _one_changed(value, place))

    def _masks(self, name: str) -> bool:
        tensor = self.tensors.get(name)
        if tensor is None or tensor.data_type not in (TensorProto.FLOAT, TensorProto.FLOAT16) or tensor.external_data:
            return False
        return bool(np.any(np.abs(numpy_helper.to_array(tensor)) >= LARGE))

    def _of_tensor(self, kind: str, name: str, what: str, change: Callable[[np.ndarray], np.ndarray]) -> Edit:
        def apply(model: onnx.ModelProto) -> None:
            (tensor,) = (each for each in model.graph.initializer if each.name == name)
            value = numpy_helper.to_array(tensor)
            tensor.CopyFrom(numpy_helper.from_array(change(value).astype(value.dtype), name))

        return Edit(kind, f"`{name}`: {what}", tuple(each for node in self.readers[name] for each in node.output), apply)


def _of_node(kind: str, node: onnx.NodeProto, what: str, apply: Callable[[onnx.ModelProto], None]) -> Edit:
    return Edit(kind, f"{node.op_type} `{node.name or node.output[0]}`: {what}", tuple(node.output), apply)


def _one_changed(value: np.ndarray, seed: int) -> np.ndarray:
    """The value with one drawn element moved by twice the largest."""
    changed = np.array(value)
    changed.reshape(-1)[np.random.default_rng(seed).integers(value.size)] += 2 * np.max(np.abs(value)) + 0.1
    return changed


def _types(model: onnx.ModelProto) -> dict[str, tuple[int, tuple[int | str, ...]]]:
    """The element type and shape of each value, as shape inference finds them."""
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    del bare.graph.value_info[:]
    graph = onnx.shape_inference.infer_shapes(bare, strict_mode=True).graph
    return {value.name: _type(value) for value in (*graph.input, *graph.value_info, *graph.output)}


def _type(value: onnx.ValueInfoProto) -> tuple[int, tuple[int | str, ...]]:
    tensor = value.type.tensor_type
    return tensor.elem_type, tuple(dim.dim_value if dim.HasField("dim_value") else dim.dim_param for dim in tensor.shape.dim)


def kinds_of(sites: Sequence[Sites]) -> list[str]:
    """All kinds that there are."""
    return sorted({kind for each in sites for kind in each.by_kind})
