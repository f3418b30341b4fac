"""Damage to models and texts: bytes that are gone, flipped or from elsewhere, and ONNX models that are well formed and lie."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import onnx
from onnx import AttributeProto, TensorProto

Proto = Any
Damage = Callable[[random.Random, Proto], None]
DIMS = (-1, 0, 1, 2, 3, 7, 1 << 20, 1 << 31, (1 << 31) - 1, 1 << 40, (1 << 62) + 1, (1 << 63) - 1, -(1 << 63))
LOCATIONS = ("../../etc/passwd", "/etc/passwd", "/dev/zero", "", ".", "..", "nothing.bin", "a/../../x", "\0", "x" * 5000, "model.onnx")
NUMBERS = ("-1", "0", "99999999999999999999", "abc", "", "1e3", str(1 << 62), " 7", "٣")
NAMES = ("", "x", "\0", "a" * 70_000, "../x", "\n", "名", "%s%n", "loop", "y", "output")
OPS: tuple[str, ...] = (
    "Nope",
    "",
    "Add",
    "MatMul",
    "If",
    "Loop",
    "Scan",
    "Reshape",
    "Conv",
    "Gemm",
    "Constant",
    "Concat",
    "Transpose",
    "Expand",
    "Tile",
)
OPS += ("Range", "ConstantOfShape", "Slice", "Gather", "Resize", "LSTM", "Softmax", "Cast", "Split", "Einsum", "Pad", "NonZero", "MaxPool")
FLOATS = (0.0, -0.0, float("inf"), float("nan"), 1e38, -1e-45)
DEPTHS = (3, 20, 90, 200, 1000)
WRITABLE = 20  # bodies in bodies that protobuf writes


def bytewise(draw: random.Random, data: bytes, other: bytes) -> bytes:
    """`data` with bytes that are gone, flipped, doubled, or from `other`."""
    kind = draw.randrange(7)
    at = draw.randrange(len(data) + 1)
    some = min(len(data), at + draw.choice((1, 4, 64, 4096)))
    if kind == 0:
        return data[:at]
    if kind == 1:
        changed = bytearray(data)
        for _ in range(draw.choice((1, 1, 8, 256))):
            if changed:
                changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
        return bytes(changed)
    if kind == 2:
        return data[:at] + data[some:]
    if kind == 3:
        return data[:some] + data[at:]
    if kind == 4:
        place = draw.randrange(len(other) + 1)
        return data[:at] + other[place : place + draw.choice((8, 512, 1 << 16))] + data[some:]
    if kind == 5:
        return data + nested(draw.choice(DEPTHS))
    return data[:at] + draw.randbytes(draw.choice((1, 16, 300))) + data[some:]


def nested(depth: int) -> bytes:
    """A further piece of a serialized model's graph: a node with a body with a node with a body .., deeper than protobuf itself writes."""
    body = b""
    for _ in range(depth):
        attribute = b"\x0a\x0bthen_branch\xa0\x01\x05" + _field(6, body)
        body = _field(1, b"\x0a\x01x\x12\x01d\x22\x02If" + _field(5, attribute))
    return _field(7, body)


def _field(number: int, body: bytes) -> bytes:
    length, left = bytearray(), len(body)
    while left >= 0x80:
        length.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([number << 3 | 2, *length, left]) + body


def structural(draw: random.Random, model: Proto) -> str:
    """Do one to three things to `model`; what was done."""
    done = []
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        damage = draw.choice(DAMAGES)
        damage(draw, model)
        done.append(damage.__name__.strip("_"))
    return " ".join(done)


def _graphs(model: Proto) -> list[Proto]:
    found, left = [], [model.graph]
    while left:
        graph = left.pop()
        found.append(graph)
        left += [attribute.g for node in graph.node for attribute in node.attribute if attribute.HasField("g")]
    return found


def _node(draw: random.Random, model: Proto) -> Proto | None:
    nodes = [node for graph in _graphs(model) for node in graph.node]
    return draw.choice(nodes) if nodes else None


def _tensors(model: Proto) -> Iterator[Proto]:
    for graph in _graphs(model):
        yield from graph.initializer
        for node in graph.node:
            yield from (attribute.t for attribute in node.attribute if attribute.HasField("t"))


def _tensor(draw: random.Random, model: Proto) -> Proto | None:
    tensors = list(_tensors(model))
    return draw.choice(tensors) if tensors else None


def _values(model: Proto) -> list[Proto]:
    return [value for graph in _graphs(model) for value in (*graph.input, *graph.output, *graph.value_info)]


def _some_name(draw: random.Random, model: Proto) -> str:
    names = [name for node in model.graph.node for name in (*node.input, *node.output)]
    names += [tensor.name for tensor in model.graph.initializer]
    return str(draw.choice([*names, draw.choice(NAMES)] if names else list(NAMES)))


def _rename(draw: random.Random, model: Proto) -> None:
    node = _node(draw, model)
    if node is not None and node.output:
        node.output[draw.randrange(len(node.output))] = _some_name(draw, model)


def _rewire(draw: random.Random, model: Proto) -> None:
    node = _node(draw, model)
    if node is not None and node.input:
        node.input[draw.randrange(len(node.input))] = _some_name(draw, model)


def _cycle(draw: random.Random, model: Proto) -> None:
    nodes = model.graph.node
    if len(nodes) > 1:
        early, late = sorted(draw.sample(range(len(nodes)), 2))
        if nodes[early].input and nodes[late].output:
            nodes[early].input[0] = nodes[late].output[0]


def _drop_node(draw: random.Random, model: Proto) -> None:
    if model.graph.node:
        del model.graph.node[draw.randrange(len(model.graph.node))]


def _double_node(draw: random.Random, model: Proto) -> None:
    node = _node(draw, model)
    if node is not None:
        model.graph.node.append(node)


def _shuffle(draw: random.Random, model: Proto) -> None:
    nodes = list(model.graph.node)
    draw.shuffle(nodes)
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def _operands(draw: random.Random, model: Proto) -> None:
    node = _node(draw, model)
    if node is None:
        return
    if node.input and draw.random() < 0.5:
        del node.input[draw.randrange(len(node.input))]
    else:
        node.input.extend([_some_name(draw, model)] * draw.choice((1, 2, 40)))


def _results(draw: random.Random, model: Proto) -> None:
    node = _node(draw, model)
    if node is None:
        return
    if node.output and draw.random() < 0.5:
        del node.output[:]
    else:
        node.output.extend(f"more{i}" for i in range(draw.choice((1, 3, 40))))


def _op(draw: random.Random, model: Proto) -> None:
    node = _node(draw, model)
    if node is None:
        return
    if draw.random() < 0.3:
        node.domain = draw.choice(("", "ai.onnx.ml", "com.microsoft", "nobody", "ai.onnx"))
    else:
        node.op_type = draw.choice(OPS)


def _attribute(draw: random.Random, model: Proto) -> None:
    attributes = [a for graph in _graphs(model) for node in graph.node for a in node.attribute]
    if not attributes:
        return
    attribute = draw.choice(attributes)
    kind = draw.randrange(6)
    if kind == 0:
        attribute.type = draw.choice(list(AttributeProto.AttributeType.values()))
    elif kind == 1:
        attribute.name = draw.choice(("axis", "perm", "to", "pads", "shape", "value", *NAMES))
    elif kind == 2:
        attribute.i = draw.choice(DIMS)
    elif kind == 3:
        attribute.ints.extend([draw.choice(DIMS)] * draw.choice((1, 2, 9)))
    elif kind == 4:
        attribute.f = draw.choice(FLOATS)
    else:
        for place in range(len(attribute.ints)):
            attribute.ints[place] = draw.choice(DIMS)
        attribute.s = draw.choice((b"", b"\xff\xfe", b"SAME_UPPER", b"i,j->", b"x" * 9999))


def _attributes(draw: random.Random, model: Proto) -> None:
    node = _node(draw, model)
    if node is None:
        return
    if node.attribute and draw.random() < 0.5:
        del node.attribute[draw.randrange(len(node.attribute))]
    elif node.attribute:
        node.attribute.append(node.attribute[draw.randrange(len(node.attribute))])
    else:
        node.attribute.add(name="axis", type=AttributeProto.INT, i=draw.choice(DIMS))


def _dims(draw: random.Random, model: Proto) -> None:
    values = [value for value in _values(model) if value.type.tensor_type.shape.dim]
    if values:
        dims = draw.choice(values).type.tensor_type.shape.dim
        dim = dims[draw.randrange(len(dims))]
        if draw.random() < 0.3:
            dim.dim_param = draw.choice((*NAMES, "N", "2*N", "-1", "7"))
        else:
            dim.dim_value = draw.choice(DIMS)


def _rank(draw: random.Random, model: Proto) -> None:
    values = [value for value in _values(model) if value.type.HasField("tensor_type")]
    if values:
        type = draw.choice(values).type.tensor_type
        if draw.random() < 0.3:
            type.ClearField("shape")
        elif type.shape.dim and draw.random() < 0.5:
            del type.shape.dim[draw.randrange(len(type.shape.dim))]
        else:
            for _ in range(draw.choice((1, 3, 70))):
                type.shape.dim.add(dim_value=draw.choice((1, 2)))


def _dtype(draw: random.Random, model: Proto) -> None:
    values = _values(model)
    if values:
        type = draw.choice(values).type
        if draw.random() < 0.15:
            type.sequence_type.elem_type.tensor_type.elem_type = TensorProto.FLOAT
        elif draw.random() < 0.1:
            type.Clear()
        else:
            type.tensor_type.elem_type = draw.choice((*range(27), 99, -3))


def _value(draw: random.Random, model: Proto) -> None:
    """A declared value that is gone, there twice, or called otherwise."""
    lists = [each for each in (model.graph.input, model.graph.output, model.graph.value_info) if each]
    if lists:
        chosen = draw.choice(lists)
        place = draw.randrange(len(chosen))
        kind = draw.randrange(3)
        if kind == 0:
            del chosen[place]
        elif kind == 1:
            chosen.append(chosen[place])
        else:
            chosen[place].name = _some_name(draw, model)


def _tensor_dims(draw: random.Random, model: Proto) -> None:
    tensor = _tensor(draw, model)
    if tensor is not None:
        if tensor.dims and draw.random() < 0.7:
            tensor.dims[draw.randrange(len(tensor.dims))] = draw.choice(DIMS)
        else:
            tensor.dims.extend([draw.choice(DIMS)] * draw.choice((1, 2, 40)))


def _tensor_data(draw: random.Random, model: Proto) -> None:
    tensor = _tensor(draw, model)
    if tensor is None:
        return
    kind = draw.randrange(5)
    if kind == 0:
        tensor.data_type = draw.choice((*range(27), 99, -3))
    elif kind == 1:
        tensor.raw_data = draw.randbytes(draw.choice((0, 1, 7, 64)))
    elif kind == 2:
        tensor.float_data.extend([draw.choice(FLOATS)] * draw.choice((1, 5)))
        tensor.ClearField("raw_data")
    elif kind == 3:
        tensor.ClearField("raw_data")
    else:
        tensor.name = _some_name(draw, model)


def _external(draw: random.Random, model: Proto) -> None:
    tensor = _tensor(draw, model)
    if tensor is not None:
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=draw.choice(LOCATIONS))
        for key in ("offset", "length"):
            if draw.random() < 0.5:
                tensor.external_data.add(key=key, value=draw.choice(NUMBERS))
        if draw.random() < 0.2:
            tensor.external_data.add(key="coset.span", value=draw.choice(("", "0,0", "-5,10", "0,99999999999", "a,b", "1")))


def _huge(draw: random.Random, model: Proto) -> None:
    """A few bytes that declare terabytes."""
    kind = draw.randrange(4)
    shape = draw.choice(([1 << 40], [1 << 20, 1 << 20], [1 << 31, 4], [99_999, 99_999, 99]))
    if kind == 0:
        model.graph.initializer.add(name="huge", data_type=TensorProto.FLOAT, dims=shape)
    elif kind == 1:
        tensor = onnx.helper.make_tensor("shape", TensorProto.INT64, [len(shape)], shape)
        model.graph.initializer.append(tensor)
        model.graph.node.append(onnx.helper.make_node("ConstantOfShape", ["shape"], ["huge"]))
    elif kind == 2:
        sparse = model.graph.sparse_initializer.add(dims=shape)
        sparse.values.CopyFrom(onnx.helper.make_tensor("huge", TensorProto.FLOAT, [1], [1.0]))
        sparse.indices.CopyFrom(onnx.helper.make_tensor("where", TensorProto.INT64, [1], [0]))
    else:
        for name, number in (("start", 0), ("end", 1 << 40), ("step", 1)):
            model.graph.initializer.append(onnx.helper.make_tensor(name, TensorProto.INT64, [], [number]))
        model.graph.node.append(onnx.helper.make_node("Range", ["start", "end", "step"], ["huge"]))
    if draw.random() < 0.7:
        model.graph.output.append(onnx.helper.make_tensor_value_info("huge", TensorProto.FLOAT, None))


def _deep(draw: random.Random, model: Proto) -> None:
    """An If in an If in an If."""
    depth = draw.randint(1, WRITABLE)
    inner = onnx.helper.make_graph(
        [onnx.helper.make_node("Constant", [], ["deep"], value_float=1.0)], "in", [], [onnx.helper.make_empty_tensor_value_info("deep")]
    )
    name = next((value.name for value in model.graph.input), "x")
    for _ in range(depth):
        node = onnx.NodeProto(op_type="If", input=["truth" if draw.random() < 0.5 else name], output=["deep"])
        for branch in ("then_branch", "else_branch"):
            attribute = node.attribute.add(name=branch, type=AttributeProto.GRAPH)
            attribute.g.CopyFrom(inner if branch == "then_branch" or draw.random() < 0.1 else onnx.GraphProto())
        inner = onnx.helper.make_graph([node], "in", [], [onnx.helper.make_empty_tensor_value_info("deep")])
    model.graph.initializer.append(onnx.helper.make_tensor("truth", TensorProto.BOOL, [], [True]))
    model.graph.node.extend(inner.node)
    if draw.random() < 0.8:
        model.graph.output.append(onnx.helper.make_tensor_value_info("deep", TensorProto.FLOAT, []))


def _versions(draw: random.Random, model: Proto) -> None:
    kind = draw.randrange(4)
    if kind == 0:
        model.ir_version = draw.choice((0, 1, 2, 3, 4, 99, 1 << 40, -1))
    elif kind == 1 and model.opset_import:
        model.opset_import[0].version = draw.choice((-1, 0, 1, 6, 7, 12, 13, 27, 99, 1 << 40))
    elif kind == 2:
        model.opset_import.add(domain=draw.choice(("", "ai.onnx", "nobody", "com.microsoft")), version=draw.choice((1, 12, 99)))
    else:
        del model.opset_import[:]


def _function(draw: random.Random, model: Proto) -> None:
    """A function of the model that calls itself, or one without a body."""
    function = model.functions.add(domain="own", name="again", input=["a"], output=["b"])
    function.opset_import.add(domain="own", version=1)
    if draw.random() < 0.8:
        function.node.add(op_type="again", domain="own", input=["a"], output=["b"])
    model.opset_import.add(domain="own", version=1)
    node = _node(draw, model)
    if node is not None:
        node.domain, node.op_type = "own", "again"


def _long(draw: random.Random, model: Proto) -> None:
    """Thousands of nodes."""
    last = next((value.name for value in model.graph.input), "x")
    for i in range(draw.choice((300, 3000))):
        model.graph.node.add(op_type=draw.choice(("Identity", "Neg", "Relu")), input=[last], output=[f"long{i}"])
        last = f"long{i}"
    model.graph.output.append(onnx.helper.make_empty_tensor_value_info(last))


DAMAGES: tuple[Damage, ...] = (
    _rename, _rewire, _cycle, _drop_node, _double_node, _shuffle, _operands, _results, _op, _op, _attribute, _attribute, _attributes, _dims,
    _dims, _rank, _dtype, _value, _tensor_dims, _tensor_dims, _tensor_data, _tensor_data, _external, _huge, _deep,
    _versions, _function, _long,
)  # fmt: skip

WORDS = (
    "(",
    ")",
    "[",
    "]",
    ",",
    ":",
    "=>",
    "<=>",
    "..",
    '"',
    "'",
    "\x00",
    "é",
    "1e999",
    "9" * 5000,
    "-1",
    "rule",
    "=",
    "#",
    "\n",
    "\t",
    "nan",
)


def textual(draw: random.Random, text: str, other: str) -> bytes:
    """A text with words that are gone, doubled, swapped or from elsewhere; some with bytes that are no text, some nested deeply."""
    kind = draw.random()
    if kind < 0.15:
        return bytewise(draw, text.encode(), other.encode())
    if kind < 0.2:
        at, deep = draw.randrange(len(text) + 1), draw.choice((50, 1000, 20_000))
        opened = draw.choice(("(", "[", "-", "f(", "{", "<"))
        return (text[:at] + opened * deep + text[at:]).encode()
    if kind < 0.65:
        return _misplaced(draw, text).encode()
    words = text.split(" ")
    for _ in range(draw.choice((1, 1, 2, 5))):
        place = draw.randrange(len(words))
        words[place] = draw.choice(
            (draw.choice(WORDS), draw.choice(words), draw.choice(other.split(" ")), "", f"{words[place]} {words[place]}")
        )
    return " ".join(words).encode()


def _misplaced(draw: random.Random, text: str) -> str:
    """A text in which a word, number or sign is another one of it."""
    words = [found.span() for found in re.finditer(r"\w+|[^\w\s]+", text)]
    for _ in range(draw.choice((1, 1, 2)) if words else 0):
        start, end = draw.choice(words)
        first, last = draw.choice(words)
        kind = text[start : start + 1].isalnum()
        if kind == text[first : first + 1].isalnum():  # else the words are those of a text that is no more
            text = text[:start] + draw.choice((text[first:last], text[first:last], "0" if kind else "..")) + text[end:]
    return text
