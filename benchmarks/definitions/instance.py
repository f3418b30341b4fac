"""An instance of an ONNX op: one node with drawn attributes, and what is drawn for each of its operands."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from coset.dialects.onnx.dtypes import CODE_OF_DTYPE, DTYPE_OF_CODE
from coset.ir.types import DTYPES, DType, dtype_of
from coset.prove.values import GRID, RANGE, draw, grid

Shape = tuple[int, ...]
Fit = Callable[[Any], Any]  # what is done to a drawn array, so that the op is defined on it
DIMS = (2, 3, 1, 4, 2, 3, 0, 5)
NEWEST = 28  # of the default domain
IR_VERSION = 12


@dataclass(frozen=True)
class Slot:
    """An operand: drawn numbers of a type and shape, made to `fit`, or `value` as it is; a constant of the model if it is `known`."""

    dtype: DType
    shape: Shape
    fit: Fit | None = None
    value: Any = None
    known: bool = False


@dataclass(frozen=True)
class Instance:
    """A node of one op; an operand that is None is not given."""

    op: str
    slots: tuple[Slot | None, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    opset: int = NEWEST
    outputs: int = 1
    domain: str = ""
    thresholds: tuple[float, ...] = ()
    most_ulps: float = 0.0  # what a runtime's approximation is off, beside roundings

    def arrays(self, kind: str, generator: np.random.Generator) -> list[Any]:
        """Values of the operands of one kind (`coset.prove.values`)."""
        found: list[Any] = []
        for place, slot in enumerate(self.slots):
            if slot is None or slot.value is not None:
                found.append(None if slot is None else slot.value)
                continue
            if kind == GRID:
                array = grid(place, slot.dtype, slot.shape, self.thresholds, finite=False)
            else:
                array = draw(generator, slot.dtype, slot.shape, kind, self.thresholds)
            with np.errstate(all="ignore"):
                found.append(array if slot.fit is None else np.asarray(slot.fit(array)).astype(slot.dtype.numpy).reshape(slot.shape))
        return found

    def model(self, arrays: Sequence[Any]) -> onnx.ModelProto:
        """The model of the node, whose known operands are constants."""
        names = [f"x{place}" if array is not None else "" for place, array in enumerate(arrays)]
        while names and not names[-1]:
            names.pop()
        results = [f"y{place}" for place in range(self.outputs)]
        node = onnx.helper.make_node(self.op, names, results, domain=self.domain, **self.attributes)
        kept = [(name, slot, array) for name, slot, array in zip(names, self.slots, arrays, strict=False) if slot is not None and name]
        given = [
            onnx.helper.make_tensor_value_info(name, CODE_OF_DTYPE[slot.dtype], slot.shape) for name, slot, _ in kept if not slot.known
        ]
        constants = [onnx.numpy_helper.from_array(np.asarray(array), name) for name, slot, array in kept if slot.known]
        graph = onnx.helper.make_graph([node], "one", given, [onnx.ValueInfoProto(name=name) for name in results], constants)
        own = {"": 1, "com.microsoft": 1}.get(self.domain, 1)
        versions = [onnx.helper.make_opsetid("", self.opset)] + ([onnx.helper.make_opsetid(self.domain, own)] if self.domain else [])
        model = onnx.helper.make_model(graph, opset_imports=versions, ir_version=IR_VERSION)
        try:
            return onnx.shape_inference.infer_shapes(model, data_prop=True)
        except Exception:  # what it does not know it says in errors of many kinds: the runtimes find out themselves
            return model

    def feed(self, arrays: Sequence[Any]) -> dict[str, Any]:
        """The operands that are no constants, by name."""
        return {
            f"x{place}": np.asarray(array)
            for place, (slot, array) in enumerate(zip(self.slots, arrays, strict=True))
            if slot is not None and array is not None and not slot.known
        }

    def __str__(self) -> str:
        shown = ", ".join("-" if slot is None else f"{slot.dtype}{list(slot.shape)}" for slot in self.slots)
        attributes = "; " + ", ".join(f"{key}={value}" for key, value in self.attributes.items()) if self.attributes else ""
        return f"{self.op}-{self.opset}({shown}{attributes})"


class Draw(random.Random):
    """Choices of shapes, axes, element types and versions."""

    def maybe(self, share: float = 0.5) -> bool:
        """True as often as `share` says."""
        return self.random() < share

    def dim(self, *, least: int = 0) -> int:
        """A size, seldom 0 or 1."""
        return max(least, self.choice(DIMS))

    def shape(self, low: int = 0, high: int = 4, *, least: int = 0) -> Shape:
        """A shape of a rank between these."""
        return tuple(self.dim(least=least) for _ in range(self.randint(low, high)))

    def wide(self) -> Shape:
        """The shape of an elementwise operand: small ones, and rows in which numbers meet."""
        return self.choice([self.shape(), self.shape(1, 3), (64,), (257,), (300,)])

    def shapes(self, count: int) -> list[Shape]:
        """Shapes that are broadcast together."""
        whole = self.wide()
        if self.maybe(0.5):
            return [whole] * count
        return [
            tuple(1 if self.maybe(0.25) else dim for dim in whole)[self.randint(0, len(whole)) * self.maybe(0.5) :] for _ in range(count)
        ]

    def axis(self, rank: int) -> int:
        """An axis, counted from the front or the end."""
        return self.randrange(-rank, rank)

    def axes(self, rank: int, *, empty: bool = True) -> list[int]:
        """Different axes, some of them counted from the end."""
        chosen = self.sample(range(rank), self.randint(0 if empty or not rank else 1, rank))
        return [axis - rank if self.maybe(0.3) else axis for axis in chosen]

    def version(self, op: str, least: int = 7, domain: str = "") -> int:
        """A version of the domain at which the op has one of its forms."""
        versions = [v for v in since(op, domain) if v <= NEWEST]
        usable = [v for v in versions if v >= least] or versions[-1:]
        start = self.choice(usable)
        return max(start, least)

    def dtype(self, op: str, opset: int, place: int = 0, *, kinds: Sequence[str] = (), domain: str = "") -> DType:
        """An element type that an operand of the op may have; usual ones more often."""
        types = [each for each in types_of(op, opset, place, domain) if not kinds or each.kind in kinds]
        common = [each for each in types if each.name in ("f32", "f64", "f16", "i32", "i64", "u8", "i8", "bool", "bf16")]
        return self.choice(common if common and self.maybe(0.7) else types)


def since(op: str, domain: str = "") -> list[int]:
    """The versions in which an op was changed, ascending."""
    return sorted(_HISTORY.get((domain, op), [1]))


def _history() -> dict[tuple[str, str], list[int]]:
    found: dict[tuple[str, str], list[int]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if not schema.deprecated:
            found.setdefault((schema.domain, schema.name), []).append(schema.since_version)
    return found


_HISTORY = _history()


def types_of(op: str, opset: int, place: int, domain: str = "") -> list[DType]:
    """The element types of numbers that the schema gives for an operand."""
    schema = onnx.defs.get_schema(op, opset, domain)
    inputs = schema.inputs
    allowed = inputs[min(place, len(inputs) - 1)].types
    codes = {f"tensor({name})": code for name, code in _TYPES.items()}
    found = [DTYPE_OF_CODE[codes[each]] for each in sorted(allowed) if each in codes]
    return [each for each in found if each.kind in ("float", "int", "uint", "bool") and each is not DTYPES["string"]]


_TYPES = {
    "float": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10, "double": 11,
    "uint32": 12, "uint64": 13, "bfloat16": 16, "float8e4m3fn": 17, "float8e4m3fnuz": 18, "float8e5m2": 19, "float8e5m2fnuz": 20,
    "uint4": 21, "int4": 22, "float4e2m1": 23, "float8e8m0": 24, "uint2": 25, "int2": 26,
}  # fmt: skip


def constant(value: Any) -> Slot:
    """A known operand: axes, shapes, widths."""
    array = np.asarray(value)
    return Slot(_dtype(array), array.shape, value=array, known=True)


def fixed(value: Any) -> Slot:
    """An operand with these values, which the model does not know."""
    array = np.asarray(value)
    return Slot(_dtype(array), array.shape, value=array)


def _dtype(array: Any) -> DType:
    return dtype_of(array.dtype)


def kinds_of(instance: Instance, kinds: Sequence[str]) -> list[str]:
    """Those kinds of numbers that make a difference to the instance's operands."""
    drawn = [slot for slot in instance.slots if slot is not None and slot.value is None]
    if not drawn:
        return list(kinds[:1])
    if all(slot.dtype.kind == "bool" for slot in drawn):
        return list(kinds[:2])
    return [kind for kind in kinds if kind != RANGE or any(slot.dtype.kind in ("float", "int", "uint") for slot in drawn)]
