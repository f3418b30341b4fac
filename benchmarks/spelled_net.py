"""A short way to write ONNX models node by node, and the registry of spellings: functions that write one program in two ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

Shape = Sequence[int | str]
TYPES: Mapping[str, int] = {
    "f32": TensorProto.FLOAT, "f64": TensorProto.DOUBLE, "f16": TensorProto.FLOAT16, "i32": TensorProto.INT32, "i64": TensorProto.INT64,
    "u8": TensorProto.UINT8, "u32": TensorProto.UINT32, "bool": TensorProto.BOOL,
}  # fmt: skip


@dataclass
class Net:
    """A model that is being written; calling it adds a node and gives the name of its result, or the names of all."""

    opset: int = 17
    dtype: str = "f32"
    nodes: list[Any] = field(default_factory=list)
    inputs: list[Any] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)
    weights: list[Any] = field(default_factory=list)
    functions: list[Any] = field(default_factory=list)

    @property
    def numpy(self) -> Any:
        """The element type of its floats."""
        return helper.tensor_dtype_to_np_dtype(TYPES[self.dtype])

    def input(self, name: str, shape: Shape, dtype: str = "") -> str:
        """An input."""
        self.inputs.append(helper.make_tensor_value_info(name, TYPES[dtype or self.dtype], shape))
        return name

    def __call__(self, op: str, *operands: str, results: int = 1, domain: str = "", **attributes: Any) -> Any:
        """The result of a new node."""
        names = [f"v{len(self.nodes)}_{place}" for place in range(results)]
        self.nodes.append(helper.make_node(op, list(operands), names, domain=domain, **attributes))
        return names[0] if results == 1 else names

    def const(self, value: Any, dtype: Any = None) -> str:
        """A constant: floats in the element type of the net, integers as i64."""
        array = np.asarray(value)
        array = array.astype(dtype or (self.numpy if array.dtype.kind == "f" else array.dtype))
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def ints(self, *values: int) -> str:
        """A vector of integers."""
        return self.const(np.array(values, np.int64))

    def model(self, *results: str, dtypes: Sequence[str] = ()) -> Any:
        """The model that gives these values as y0, y1, .."""
        for place, name in enumerate(results):
            self.nodes.append(helper.make_node("Identity", [name], [f"y{place}"]))
            type = TYPES[(dtypes[place] if dtypes else "") or self.dtype]
            self.outputs.append(helper.make_tensor_value_info(f"y{place}", type, None))
        graph = helper.make_graph(self.nodes, "g", self.inputs, self.outputs, self.weights)
        opsets = [helper.make_opsetid("", self.opset), *(helper.make_opsetid(each.domain, 1) for each in self.functions)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10 if self.opset >= 21 else 8, functions=self.functions)


@dataclass(frozen=True)
class Spelled:
    """One program in two spellings. `form`: which two; `name`: the form with its sizes, types and versions."""

    form: str
    name: str
    models: tuple[Any, Any]


Writer = Callable[..., tuple[Any, Any]]
FORMS: dict[str, tuple[Writer, tuple[Mapping[str, Any], ...]]] = {}


def form(*variants: Mapping[str, Any]) -> Callable[[Writer], Writer]:
    """Register a function that writes both models from the values of a variant."""

    def register(writer: Writer) -> Writer:
        assert writer.__name__ not in FORMS
        FORMS[writer.__name__] = writer, variants
        return writer

    return register


def spelled() -> Iterator[Spelled]:
    """All pairs of all forms that are registered."""
    for name, (writer, variants) in FORMS.items():
        for variant in variants:
            words = " ".join(f"{key}={_short(value)}" for key, value in variant.items())
            yield Spelled(name, f"{name} {words}".strip(), writer(**variant))


def _short(value: Any) -> str:
    return "x".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def weights(*shape: int, seed: int = 0) -> Any:
    """Drawn numbers for a weight."""
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


def both(opset: int, dtype: str = "f32", other: int | None = None) -> tuple[Net, Net]:
    """Two empty nets; the second in another version of the opset where one is given."""
    return Net(opset, dtype), Net(opset if other is None else other, dtype)


def over(*shapes: Shape, dtypes: Sequence[str] = ("f32",), **values: Any) -> tuple[dict[str, Any], ...]:
    """Variants of these shapes, each in each of these types, with the same other values."""
    return tuple({"shape": shape, "dtype": dtype, **values} for shape in shapes for dtype in dtypes)
