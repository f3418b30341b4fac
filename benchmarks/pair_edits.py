"""Models that differ from a given one in one place: an attribute, a constant, an operand, the order of outputs, an op, the opset.

Whether the place makes a difference is for whoever draws it to find out.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

GROUPS = (  # ops that can stand in each other's place
    ("Abs", "Neg", "Relu", "Tanh", "Sigmoid", "Exp", "Sqrt", "Floor", "Ceil", "Round", "Erf", "Softplus", "Softsign", "HardSwish", "Mish"),
    ("Sin", "Cos", "Tan", "Sinh", "Cosh", "Atan", "Asinh"), ("Asin", "Acos", "Atanh", "Log", "Reciprocal"), ("Elu", "LeakyRelu", "Selu"),
    ("Celu", "ThresholdedRelu", "Elu"), ("HardSigmoid", "Sigmoid"), ("Gelu", "Swish", "Mish", "HardSwish"),
    ("Add", "Sub", "Mul", "Div"), ("Max", "Min", "Sum", "Mean"), ("Pow", "Mul"), ("Mod", "Div"), ("PRelu", "Mul"),
    ("Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"), ("And", "Or", "Xor"), ("BitwiseAnd", "BitwiseOr", "BitwiseXor"),
    ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum",
     "ReduceLogSumExp"),
    ("MaxPool", "AveragePool", "LpPool"), ("GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"), ("ArgMax", "ArgMin"),
    ("Softmax", "LogSoftmax", "Hardmax"), ("IsNaN", "Identity"), ("MeanVarianceNormalization", "Identity"), ("Not", "Identity"),
    ("BitwiseNot", "Identity"), ("Sign", "Abs"), ("LayerNormalization", "RMSNormalization"), ("Det", "ReduceSum"),
    ("CumSum", "CumProd"), ("HannWindow", "HammingWindow", "BlackmanWindow"),
)  # fmt: skip
WORDS: Mapping[str, Sequence[str]] = {
    "auto_pad": ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"), "mode": (), "direction": ("forward", "reverse", "bidirectional"),
    "reduction": ("none", "add", "mul", "max", "min", "mean", "sum"), "padding_mode": ("zeros", "border", "reflection"),
    "coordinate_transformation_mode": ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric",
                                       "output_half_pixel", "tf_crop_and_resize"),
    "nearest_mode": ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"), "approximate": ("none", "tanh"),
    "keep_aspect_ratio_policy": ("stretch", "not_larger", "not_smaller"), "activations": ("Tanh", "Sigmoid", "Relu", "Softsign"),
    "equation": (), "activation": ("none", "silu", "swish"),
}  # fmt: skip
MODES: Mapping[str, Sequence[str]] = {
    "Resize": ("nearest", "linear", "cubic"), "Upsample": ("nearest", "linear"), "GridSample": ("linear", "nearest", "cubic", "bilinear"),
    "Pad": ("constant", "reflect", "edge", "wrap"), "RoiAlign": ("avg", "max"), "DepthToSpace": ("DCR", "CRD"),
}  # fmt: skip
DTYPES = ("to", "dtype", "stash_type", "softmax_precision", "output_dtype", "output_datatype")
OTHER_TYPES = (
    TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.INT32, TensorProto.INT8, TensorProto.UINT8, TensorProto.BOOL,
    TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2, TensorProto.INT64, TensorProto.DOUBLE,
)  # fmt: skip
MOST_ELEMENTS = 1 << 16  # of a constant that is changed
TENSORS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.INT32, TensorProto.INT8,
           TensorProto.UINT8, TensorProto.BOOL, TensorProto.INT16, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64)  # fmt: skip


@dataclass(frozen=True)
class Edit:
    """One difference: `apply` makes it in a model that is equal to the one it was found in. `op`: of the node that it is at."""

    kind: str
    op: str
    place: str
    apply: Callable[[Any], None]

    def of(self, model: Any) -> Any:
        """A copy of the model with the difference."""
        found = onnx.ModelProto()
        found.CopyFrom(model)
        self.apply(found)
        return found


def graphs(model: Any) -> Iterator[Any]:
    """The graph of a model and the bodies of its nodes, in one order."""
    stack = [model.graph]
    while stack:
        graph = stack.pop()
        yield graph
        inner = [attribute.g for node in graph.node for attribute in node.attribute if attribute.type == AttributeProto.GRAPH]
        stack += reversed(inner)


def edits(model: Any) -> Iterator[Edit]:
    """All differences in one place."""
    versions = {each.domain: each.version for each in model.opset_import}
    for number, graph in enumerate(graphs(model)):
        for place, node in enumerate(graph.node):
            site = _Site(number, place, node, versions.get(node.domain, versions.get("", 1)))
            yield from site.attributes()
            yield from site.operands()
            yield from site.results()
            yield from site.ops()
        for place, tensor in enumerate(graph.initializer):
            readers = [node.op_type for node in graph.node if tensor.name in node.input]
            if readers:
                yield from _of_constant(_initializer(number, place), tensor, readers[0], f"`{tensor.name}`")
    yield from _outputs(model)
    yield from _versions(model)


# ---------------------------------------------------------------- of one node


@dataclass(frozen=True)
class _Site:
    """A node in its place: the number of its graph, and in that."""

    graph: int
    place: int
    node: Any
    version: int

    def found(self, model: Any) -> Any:
        """The node in a model."""
        return list(graphs(model))[self.graph].node[self.place]

    def edit(self, kind: str, what: str, change: Callable[[Any], None]) -> Edit:
        """The edit that changes the node so."""
        return Edit(kind, self.node.op_type, f"{self.node.op_type} {what}", lambda model: change(self.found(model)))

    def attributes(self) -> Iterator[Edit]:
        """Each attribute, with those that are not written."""
        given = {each.name: each for each in self.node.attribute}
        for name, attribute in given.items():
            if attribute.type == AttributeProto.TENSOR:
                yield from _of_constant(self._tensor(name), attribute.t, self.node.op_type, f"{self.node.op_type} {name}")
                continue
            for kind, value in self._others(name, helper.get_attribute_value(attribute), attribute.type):
                yield self._set(kind, name, value, attribute.type)
        schema = _schema(self.node.op_type, self.version, self.node.domain)
        for name, declared in schema.attributes.items() if schema is not None else ():
            if name not in given and declared.default_value.type:
                default = declared.default_value
                for kind, value in self._others(name, helper.get_attribute_value(default), default.type):
                    yield self._set(kind, name, value, default.type)

    def _tensor(self, name: str) -> Callable[[Any], Any]:
        return lambda model: next(each.t for each in self.found(model).attribute if each.name == name)

    def _set(self, kind: str, name: str, value: Any, type: int) -> Edit:
        def change(node: Any) -> None:
            kept = [each for each in node.attribute if each.name != name]
            del node.attribute[:]
            node.attribute.extend([*kept, helper.make_attribute(name, value, attr_type=type)])

        return self.edit(kind, f"{name} = {_short(value)}", change)

    def _others(self, name: str, value: Any, type: int) -> Iterator[tuple[str, Any]]:
        """Values next to that of an attribute, by kind."""
        if name in DTYPES:
            yield from (("dtype", code) for code in OTHER_TYPES if code != value)
        elif type == AttributeProto.INT:
            yield from (("attribute int", each) for each in dict.fromkeys((value + 1, value - 1, -value)) if each != value)
        elif type == AttributeProto.INTS:
            for place, each in enumerate(value):
                for other in dict.fromkeys((each + 1, each - 1)):
                    yield "attribute ints", [*value[:place], other, *value[place + 1 :]]
            for place in range(len(value) - 1):
                swapped = [*value[:place], value[place + 1], value[place], *value[place + 2 :]]
                if swapped != list(value):
                    yield "attribute order", swapped
        elif type == AttributeProto.FLOAT:
            yield from (("attribute float", each) for each in (value + 1, -value, value * 1.125) if each != value)
            yield "attribute float by one ulp", struct.unpack("f", struct.pack("I", struct.unpack("I", struct.pack("f", value))[0] + 1))[0]
        elif type == AttributeProto.FLOATS:
            for place, each in enumerate(value):
                yield "attribute float", [*value[:place], each + 1, *value[place + 1 :]]
        elif type == AttributeProto.STRING:
            yield from (("attribute word", word) for word in self._words(name) if word != value.decode())
            yield from _equations(value.decode()) if name == "equation" else ()
        elif type == AttributeProto.STRINGS:
            for place, each in enumerate(value):
                for word in self._words(name):
                    if word != each.decode():
                        yield "attribute word", [*value[:place], word.encode(), *value[place + 1 :]]

    def _words(self, name: str) -> Sequence[str]:
        return MODES.get(self.node.op_type, ()) if name == "mode" else WORDS.get(name, ())

    def operands(self) -> Iterator[Edit]:
        """Two operands in the other order, and an optional one left out."""
        reads = list(self.node.input)
        for one in range(len(reads)):
            for other in range(one + 1, len(reads)):
                if reads[one] and reads[other] and reads[one] != reads[other]:

                    def swap(node: Any, one: int = one, other: int = other) -> None:
                        node.input[one], node.input[other] = node.input[other], node.input[one]

                    yield self.edit("operands swapped", f"operands {one} and {other}", swap)
        schema = _schema(self.node.op_type, self.version, self.node.domain)
        for place, name in enumerate(reads if schema is not None else ()):
            declared = schema.inputs[min(place, len(schema.inputs) - 1)]
            if name and place and declared.option == onnx.defs.OpSchema.FormalParameterOption.Optional:

                def drop(node: Any, place: int = place) -> None:
                    node.input[place] = ""

                yield self.edit("operand left out", f"operand {place}", drop)

    def results(self) -> Iterator[Edit]:
        """Two results in the other order."""
        for one in range(len(self.node.output) - 1):
            if self.node.output[one] and self.node.output[one + 1]:

                def swap(node: Any, one: int = one) -> None:
                    node.output[one], node.output[one + 1] = node.output[one + 1], node.output[one]

                yield self.edit("order of outputs", f"results {one} and {one + 1}", swap)

    def ops(self) -> Iterator[Edit]:
        """Another op in the place of this one."""
        group: Sequence[str] = next((each for each in GROUPS if self.node.op_type in each), ())
        for op in group if not self.node.domain else ():
            if op != self.node.op_type:

                def change(node: Any, op: str = op) -> None:
                    node.op_type = op
                    schema = _schema(op, self.version, "")
                    known = () if schema is None else schema.attributes
                    kept = [each for each in node.attribute if each.name in known]
                    del node.attribute[:]
                    node.attribute.extend(kept)

                yield self.edit("another op", f"-> {op}", change)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) < 40 else f"{text[:36]} .."


def _equations(text: str) -> Iterator[tuple[str, str]]:
    """An equation with two letters of a term, or two terms, in the other order."""
    left, arrow, right = text.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) == 2:
        yield "attribute word", f"{terms[1]},{terms[0]}{arrow}{right}"
    for place, term in enumerate(terms):
        if len(term) == 2 and term.isalpha():
            yield "attribute word", ",".join([*terms[:place], term[::-1], *terms[place + 1 :]]) + arrow + right
    if len(right) == 2:
        yield "attribute word", f"{left}->{right[::-1]}"


@cache
def _schema(op: str, version: int, domain: str) -> Any:
    """The schema of an op in a version; None where there is none."""
    try:
        return onnx.defs.get_schema(op, version, domain)
    except onnx.defs.SchemaError:
        return None


# ---------------------------------------------------------------- constants


def _initializer(graph: int, place: int) -> Callable[[Any], Any]:
    return lambda model: list(graphs(model))[graph].initializer[place]


def _of_constant(found: Callable[[Any], Any], tensor: Any, op: str, where: str) -> Iterator[Edit]:
    """One element by one, by one unit in the last place, and with the other sign; two elements swapped."""
    if tensor.data_type not in TENSORS or tensor.external_data:
        return
    value = numpy_helper.to_array(tensor)
    if not 0 < value.size <= MOST_ELEMENTS:
        return
    places = dict.fromkeys((0, value.size - 1, value.size // 2))
    for place in places:
        for kind, other in _next_to(value.reshape(-1)[place]):
            changed = np.array(value)
            changed.reshape(-1)[place] = other
            yield _put(kind, op, f"{where}[{place}] = {other}", found, changed)
    if value.size > 1 and value.reshape(-1)[0] != value.reshape(-1)[-1]:
        changed = np.array(value)
        changed.reshape(-1)[[0, -1]] = changed.reshape(-1)[[-1, 0]]
        yield _put("constant's order", op, f"{where} first and last", found, changed)


def _put(kind: str, op: str, place: str, found: Callable[[Any], Any], changed: Any) -> Edit:
    def apply(model: Any) -> None:
        tensor = found(model)
        tensor.CopyFrom(numpy_helper.from_array(changed, tensor.name))

    return Edit(kind, op, place, apply)


def _next_to(value: Any) -> Iterator[tuple[str, Any]]:
    """Numbers next to one, by kind."""
    if value.dtype.kind == "b":
        yield "constant bool", not value
    elif value.dtype.kind in "iu":
        ends = np.iinfo(value.dtype)
        yield from (("constant int", value.dtype.type(each)) for each in (int(value) + 1, int(value) - 1) if ends.min <= each <= ends.max)
    else:
        one = value.dtype.type(1)
        with np.errstate(all="ignore"):
            yield from (("constant float", each) for each in (value + one, -value, value * value.dtype.type(1.125)) if each != value)
        yield "constant by one ulp", np.nextafter(value, value.dtype.type(np.inf))


# ---------------------------------------------------------------- of the whole model


def _outputs(model: Any) -> Iterator[Edit]:
    """Two outputs of a model, each under the other's name."""
    outputs = list(model.graph.output)
    for one in range(len(outputs) - 1):
        if outputs[one].type != outputs[one + 1].type:
            continue

        def apply(model: Any, one: int = one) -> None:
            names = [model.graph.output[one].name, model.graph.output[one + 1].name]
            behind = [f"{name} itself" for name in names]
            for node in model.graph.node:
                for place, name in enumerate(node.output):
                    if name in names:
                        node.output[place] = behind[names.index(name)]
                for place, name in enumerate(node.input):
                    if name in names and any(name in each.output or behind[names.index(name)] in each.output for each in model.graph.node):
                        node.input[place] = behind[names.index(name)]
            model.graph.node.extend(helper.make_node("Identity", [behind[1 - place]], [name]) for place, name in enumerate(names))

        yield Edit("order of outputs", "outputs", f"outputs {one} and {one + 1}", apply)


def _versions(model: Any) -> Iterator[Edit]:
    """The version of the opset in which an op was another one."""
    version = next((each.version for each in model.opset_import if each.domain in ("", "ai.onnx")), None)
    if version is None:
        return
    ops = {node.op_type for graph in graphs(model) for node in graph.node if not node.domain}
    wanted = set()
    for op in sorted(ops):
        schema = _schema(op, version, "")
        if schema is not None and schema.since_version > 1:
            wanted.add((op, schema.since_version - 1))
        wanted |= {(op, newer) for newer in range(version + 1, onnx.defs.onnx_opset_version() + 1) if _begins(op, newer)}
    for op, other in sorted(wanted):

        def apply(model: Any, other: int = other) -> None:
            for each in model.opset_import:
                if each.domain in ("", "ai.onnx"):
                    each.version = other

        yield Edit("version of the opset", op, f"{op} of opset {other}, not {version}", apply)


def _begins(op: str, version: int) -> bool:
    schema = _schema(op, version, "")
    return schema is not None and schema.since_version == version
