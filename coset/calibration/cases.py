"""What `coset calibrate` times: chains of equal links, of the ops and sizes that programs are made of.

A link keeps the shape of its operand, so that links can be chained: the difference of a long and a short chain, over the difference of
their lengths, is the time of one link, without the call and the feeding of inputs. Links are terms: a target's writer prints them, and
they are priced as any program is, so that one list serves every target.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod, sqrt
from typing import Any

import numpy as np

import coset.dialects
from coset.extract.fit import MeasuredLink
from coset.ir.builtin import absent
from coset.ir.constants import constant_of
from coset.ir.program import Program
from coset.ir.term import Term, constant, input_term, make
from coset.ir.types import DTYPES, DType, TensorType

assert coset.dialects  # imported so that every op is registered

SHORT, LONG = 2, 8  # links of the two chains
Link = Callable[[Term, int], Term]
INPUT = "x"


@dataclass(frozen=True)
class CalibrationCase:
    """One measured link. `op`, `dtype` and `shape` are its key; `link(x, i)` is the term of link `i` over `x`; `fused`: it is timed as
    the runtime's own optimizer leaves it, which for convolutions is another layout."""

    op: str
    dtype: str
    shape: str
    type: TensorType
    link: Link
    fused: bool = False

    @property
    def name(self) -> str:
        """What a table says."""
        return f"{self.op} {self.dtype}[{self.shape}]"

    def measured(self, seconds: float) -> MeasuredLink:
        """What the fit is told of a link that took so long."""
        lengths = (SHORT, SHORT + 1)  # prices of links add up: no need for the long chain
        short, long = (self.chain(length).roots for length in lengths)
        return MeasuredLink(self.name, (short, long), lengths, seconds)

    def chain(self, length: int) -> Program:
        """The program of `length` links."""
        start = term = input_term(INPUT, self.type)
        for index in range(length):
            term = self.link(term, index)
        return Program((start,), (("y", term),))

    def feed(self) -> dict[str, Any]:
        """An input that keeps what the links compute away from infinities and subnormal numbers."""
        assert self.type.static is not None
        drawn = np.random.default_rng(0).uniform(0.5, 1.5, self.type.static)
        return {INPUT: np.asarray(drawn > 1 if self.type.dtype.kind == "bool" else drawn).astype(self.type.dtype.numpy)}


def cases() -> Iterator[CalibrationCase]:
    """All of them, small ones of every kind first, so that a run that is cut short knows something of each."""
    kinds = [list(kind) for kind in (_elementwise(), _functions(), _movement(), _rows(), _products(), _attention(), _convolutions())]
    for row in itertools.zip_longest(*kinds):
        yield from (case for case in row if case is not None)


# ---------------------------------------------------------------- terms


def tensor_of(dtype: str, *shape: int) -> TensorType:
    return TensorType(DTYPES[dtype], shape)


@lru_cache(maxsize=8)  # one case's links share some, and the largest are 64 MiB
def weights(type: TensorType, seed: int = 0) -> Term:
    """Weights of a size that keeps chains bounded."""
    shape = type.static
    assert shape is not None
    fan = max(1, prod(shape[1:]) if len(shape) > 1 else prod(shape))
    drawn = np.random.default_rng(prod(shape) + seed).standard_normal(shape) / sqrt(fan)
    return constant_term(drawn if type.dtype.kind == "float" else np.ones(shape), type.dtype)


def constant_term(value: Any, dtype: DType) -> Term:
    return constant(constant_of(np.asarray(value).astype(dtype.numpy), dtype))


def _splat(value: float, x: Term) -> Term:
    """`value` in x's shape: kernels that broadcast read the number."""
    return _spread(constant_term(value, x.tensor.dtype), x.tensor, ())


def _spread(operand: Term, type: TensorType, axes: Sequence[int]) -> Term:
    return make("stablehlo.broadcast_in_dim", (operand,), {"shape": type.dims, "broadcast_dimensions": tuple(axes)})


def _case(op: str, type: TensorType, link: Link, *, label: str = "", fused: bool = False) -> CalibrationCase:
    assert type.static is not None
    return CalibrationCase(op, type.dtype.name, label or ",".join(map(str, type.static)), type, link, fused)


def _unary(op: str, **attributes: Any) -> Link:
    return lambda x, _: make(op, (x,), attributes)


def _after(first: Link, second: Link) -> Link:
    return lambda x, index: second(first(x, 2 * index), 2 * index + 1)


def _with_number(op: str, value: float) -> Link:
    return lambda x, _: make(op, (x, _splat(value, x)))


def _beside(op: str, *others: TensorType) -> Link:
    return lambda x, _: make(op, (x, *(weights(type, seed) for seed, type in enumerate(others))))


def _beside_spread(op: str, other: TensorType, axes: Sequence[int]) -> Link:
    return lambda x, _: make(op, (x, _spread(weights(other), x.tensor, axes)))


def _chosen(x: Term, _: int) -> Term:
    assert x.tensor.static is not None
    every_third = constant_term(np.arange(*x.tensor.static) % 3 == 0, DTYPES["bool"])
    return make("stablehlo.select", (every_third, x, _splat(0.7, x)))


# ---------------------------------------------------------------- kinds

SIZES = (8, 1 << 10, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24)
NEGATE = _unary("stablehlo.negate")


def _elementwise() -> Iterator[CalibrationCase]:
    for size in SIZES:
        for op in ("add", "multiply"):
            type = tensor_of("f32", size)
            yield _case(f"stablehlo.{op}", type, _beside(f"stablehlo.{op}", type))
    for size in (8, 1 << 10, 1 << 16, 1 << 20, 1 << 22):
        yield _case("stablehlo.add", tensor_of("f32", size), _with_number("stablehlo.add", 0.001), label=f"{size} and a number")
    for rows in (64, 512, 4096):
        type = tensor_of("f32", rows, 768)
        row, column = tensor_of("f32", 768), tensor_of("f32", rows)
        for label, beside, axes in (("row", row, (1,)), ("column", column, (0,))):
            yield _case("stablehlo.add", type, _beside_spread("stablehlo.add", beside, axes),
                        label=f"{rows},768 and a {label}")  # fmt: skip
    for dtype, size in itertools.product(("f64", "i64", "i32"), (1 << 14, 1 << 20)):
        yield _case("stablehlo.add", tensor_of(dtype, size), _beside("stablehlo.add", tensor_of(dtype, size)))
    for size in (1 << 8, 1 << 10, 1 << 14, 1 << 18, 1 << 20):
        type = tensor_of("f32", size)
        for other in ("i32", "f64"):
            there, back = (_unary("stablehlo.convert", dtype=DTYPES[name]) for name in (other, "f32"))
            # negated in between: ONNX Runtime leaves out conversions that lose nothing, at every level
            yield _case("stablehlo.convert", type, _after(_after(there, NEGATE), back), label=f"{size} to {other}, negated, and back")
        yield _case("stablehlo.select", type, _chosen)

        def compared(x: Term, _: int) -> Term:
            larger = make("stablehlo.compare", (x, _splat(1.0, x)), {"direction": "GT"})
            return make("stablehlo.select", (larger, _splat(0.9, x), x))

        yield _case("stablehlo.compare", type, compared, label=f"{size}, select")


def _functions() -> Iterator[CalibrationCase]:
    negated = {"stablehlo.exponential", "onnx.Elu", "onnx.Softplus"}
    hub = ("sqrt", "exponential", "tanh", "logistic", "sine", "floor")
    onnx = ("Relu", "LeakyRelu", "HardSigmoid", "HardSwish", "Elu", "Softplus", "Gelu")
    unary = (*(f"stablehlo.{name}" for name in hub), "chlo.erf", *(f"onnx.{name}" for name in onnx))
    for op, size in itertools.product(unary, (8, 1 << 14, 1 << 17, 1 << 20)):
        link = _after(NEGATE, _unary(op)) if op in negated else _unary(op)
        yield _case(op, tensor_of("f32", size), link, label=f"{size} negated" if op in negated else "")
    for size in (1 << 14, 1 << 20):
        logarithm = _after(_with_number("stablehlo.add", 2.0), _unary("stablehlo.log"))
        yield _case("stablehlo.log", tensor_of("f32", size), logarithm, label=f"{size} and 2")
        for op, value in (("divide", 1.001), ("power", 0.7), ("remainder", 3.0), ("maximum", 0.3), ("minimum", 0.9)):
            yield _case(f"stablehlo.{op}", tensor_of("f32", size), _with_number(f"stablehlo.{op}", value), label=f"{size} and {value}")


def _movement() -> Iterator[CalibrationCase]:
    def turned(*permutation: int) -> Link:  # negated: movement that follows movement is written as one
        return _after(_unary("stablehlo.transpose", permutation=permutation), NEGATE)

    for size in (64, 256, 1024, 2048):
        yield _case("stablehlo.transpose", tensor_of("f32", size, size), turned(1, 0), label=f"{size},{size} negated")
    for tokens in (16, 128, 512):
        yield _case("stablehlo.transpose", tensor_of("f32", 1, tokens, 12, 64), _after(turned(0, 2, 1, 3), turned(0, 2, 1, 3)),
                    label=f"1,{tokens},12,64 heads and back, negated")  # fmt: skip
        yield _case("stablehlo.transpose", tensor_of("f32", 1, 12, tokens, 64), _after(turned(0, 1, 3, 2), turned(0, 1, 3, 2)),
                    label=f"1,12,{tokens},64 columns and back, negated")  # fmt: skip
    for channels, side in ((64, 56), (256, 14)):
        yield _case("stablehlo.transpose", tensor_of("f32", 1, channels, side, side), _after(turned(0, 2, 3, 1), turned(0, 3, 1, 2)),
                    label=f"1,{channels},{side},{side} channels last and back, negated")  # fmt: skip
    yield from _moved_rows()
    for columns, pieces in itertools.product((128, 1024), (2, 4, 16)):
        yield _case(
            "stablehlo.concatenate", tensor_of("f32", 1, columns), _joined(pieces), label=f"1,{columns}, the first of {pieces} and others"
        )
        yield _case(
            "stablehlo.slice", tensor_of("f32", 1, columns), _turned_about(pieces), label=f"1,{columns} cut into {pieces} and joined"
        )
    for rows in (16, 1024):
        flat, full = (rows * 1024,), (rows, 1024)
        there, back = (_after(_unary("stablehlo.reshape", shape=shape), NEGATE) for shape in (flat, full))
        yield _case("stablehlo.reshape", tensor_of("f32", rows, 1024), _after(there, back), label=f"{rows},1024 flat and back, negated")


def _moved_rows() -> Iterator[CalibrationCase]:
    """Cut and joined, padded, and the other way round."""
    for rows, columns in ((1, 1 << 14), (1, 1 << 18), (1, 1 << 22), (64, 768), (1024, 768)):
        type = tensor_of("f32", rows, columns)

        def halved(x: Term, _: int, rows: int = rows, columns: int = columns) -> Term:
            cuts = [((0, 0), (rows, columns // 2)), ((0, columns // 2), (rows, columns))]
            first, second = (make("stablehlo.slice", (x,), {"start": low, "limit": high, "strides": (1, 1)}) for low, high in cuts)
            return make("stablehlo.concatenate", (second, first), {"dimension": 1})

        yield _case("stablehlo.concatenate", type, halved, label=f"{rows},{columns} cut and joined")

        def padded(x: Term, _: int, rows: int = rows, columns: int = columns) -> Term:
            zero = constant_term(0, x.tensor.dtype)
            wide = make("stablehlo.pad", (x, zero), {"low": (0, 2), "high": (0, 2), "interior": (0, 0)})
            return make("stablehlo.slice", (wide,), {"start": (0, 2), "limit": (rows, columns + 2), "strides": (1, 1)})

        yield _case("stablehlo.pad", type, padded, label=f"{rows},{columns} and cut")
        turned_round = _after(_unary("stablehlo.reverse", dimensions=(1,)), NEGATE)
        yield _case("stablehlo.reverse", type, turned_round, label=f"{rows},{columns} negated")


def _cuts(x: Term, pieces: int) -> list[Term]:
    assert x.tensor.static is not None
    width = x.tensor.static[1] // pieces
    ends = [((0, width * place), (1, width * (place + 1))) for place in range(pieces)]
    return [make("stablehlo.slice", (x,), {"start": low, "limit": high, "strides": (1, 1)}) for low, high in ends]


def _joined(pieces: int) -> Link:
    def link(x: Term, index: int) -> Term:
        first, *others = _cuts(x, pieces)
        given = [weights(first.tensor, pieces * index + place) for place, _ in enumerate(others)]
        return make("stablehlo.concatenate", (first, *given), {"dimension": 1})

    return link


def _turned_about(pieces: int) -> Link:
    return lambda x, _: make("stablehlo.concatenate", _cuts(x, pieces)[::-1], {"dimension": 1})


def _rows() -> Iterator[CalibrationCase]:
    for rows, columns in ((16, 10), (8, 64), (16, 768), (128, 768), (1024, 768), (1536, 128), (64, 784)):
        type = tensor_of("f32", rows, columns)
        yield _case("onnx.Softmax", type, _unary("onnx.Softmax"))
        yield _case("onnx.LayerNormalization", type, _beside("onnx.LayerNormalization", *[tensor_of("f32", columns)] * 2))
        for combiner, axis in itertools.product(("add", "maximum"), (1, 0)):

            def spread_again(x: Term, _: int, combiner: str = combiner, axis: int = axis) -> Term:
                total = make("stablehlo.reduce", (x,), {"dimensions": (axis,), "combiner": combiner})
                return make("stablehlo.multiply", (x, _spread(total, x.tensor, (1 - axis,))))

            yield _case("stablehlo.reduce", type, spread_again, label=f"{rows},{columns} {combiner} over {axis}, multiply")
    for (batch, channels, side), axes, combiner in itertools.product(((8, 16, 16), (8, 64, 28)), ((0, 2, 3), (1,)), ("add", "maximum")):

        def spread_out(x: Term, _: int, axes: tuple[int, ...] = axes, combiner: str = combiner) -> Term:
            total = make("stablehlo.reduce", (x,), {"dimensions": axes, "combiner": combiner})
            kept = [axis for axis in range(4) if axis not in axes]
            return make("stablehlo.multiply", (x, _spread(total, x.tensor, kept)))

        label = f"{batch},{channels},{side},{side} {combiner} over {','.join(map(str, axes))}, multiply"
        yield _case("stablehlo.reduce", tensor_of("f32", batch, channels, side, side), spread_out, label=label)
    for channels, side in ((64, 56), (512, 7)):
        type = tensor_of("f32", 1, channels, side, side)

        def scaled(x: Term, _: int, channels: int = channels) -> Term:
            given = constant_term(np.linspace(0.5, 1.5, channels), x.tensor.dtype)
            return make("onnx.BatchNormalization", (x, given, given, given, given))

        yield _case("onnx.BatchNormalization", type, scaled)


def _products() -> Iterator[CalibrationCase]:
    contract = {"lhs_contract": (1,), "rhs_contract": (0,)}

    def there_and_back(k: int, n: int, dtype: str = "f32") -> Link:
        def link(x: Term, index: int) -> Term:
            first, second = weights(tensor_of(dtype, k, n), index), weights(tensor_of(dtype, n, k), index)
            return make("stablehlo.dot_general", (make("stablehlo.dot_general", (x, first), contract), second), contract)

        return link

    widths = ((64, 64), (256, 256), (512, 512), (768, 768), (768, 3072), (1024, 1024), (2048, 2048), (512, 1), (512, 8))
    for m, (k, n) in itertools.product((1, 4, 16, 64, 128, 512), widths):
        if m * k * n <= 1 << 30:
            yield _case("stablehlo.dot_general", tensor_of("f32", m, k), there_and_back(k, n), label=f"{m}x{k}x{n} and back")
    for m, k, n in ((16, 16, 16), (16, 32, 10), (16, 64, 32), (16, 784, 64), (1, 128, 128), (1, 256, 128), (1, 128, 1024)):
        yield _case("stablehlo.dot_general", tensor_of("f32", m, k), there_and_back(k, n), label=f"{m}x{k}x{n} and back")
    for dtype, size in (("i32", 128), ("i64", 128), ("f64", 128), ("f64", 512)):
        yield _case(
            "stablehlo.dot_general", tensor_of(dtype, size, size), there_and_back(size, size, dtype), label=f"{size}x{size}x{size} and back"
        )
    yield from _batched_products()
    # fused: what turns an operand is a node of its own for the writer, and the runtime's optimizer takes it into the product
    for depth, m in ((16, 16), (16, 64), (32, 32), (64, 64), (64, 256), (128, 768), (512, 768)):
        label = f"{depth},{m} turned, by {depth}x16, and back"
        yield _case("stablehlo.dot_general", tensor_of("f32", depth, m), _turned(depth), label=label, fused=True)
    for m, k, n in ((16, 16, 16), (64, 16, 64), (64, 16, 256), (64, 16, 784), (256, 16, 784), (256, 64, 256)):
        yield _case("onnx.Gemm", tensor_of("f32", m, n), _onto(m, k, n), label=f"{m}x{k}x{n} onto it")
    for m, k in ((16, 64), (16, 256), (128, 768)):

        def gemm(x: Term, index: int, k: int = k) -> Term:
            return make("onnx.Gemm", (x, weights(tensor_of("f32", k, k), index), weights(tensor_of("f32", k), index)))

        yield _case("onnx.Gemm", tensor_of("f32", m, k), gemm)


def _batched_products() -> Iterator[CalibrationCase]:
    for batch, n, k in ((12, 16, 64), (12, 128, 64), (12, 512, 64), (64, 64, 64)):
        batched = {"lhs_batch": (0,), "rhs_batch": (0,), "lhs_contract": (2,), "rhs_contract": (1,)}

        def attended(x: Term, _: int, batch: int = batch, n: int = n, k: int = k, given: dict[str, Any] = batched) -> Term:
            keys = make("stablehlo.transpose", (x,), {"permutation": (0, 2, 1)})
            return make("stablehlo.dot_general", (make("stablehlo.dot_general", (x, keys), given), x), given)

        label = f"{batch}x{n}x{k} by its transpose and itself"
        yield _case("stablehlo.dot_general", tensor_of("f32", batch, n, k), attended, label=label, fused=True)
    for batch, n, k in ((16, 1, 16), (64, 1, 64), (256, 1, 16), (16, 16, 16), (64, 16, 16), (64, 32, 32)):
        batched = {"lhs_batch": (0,), "rhs_batch": (0,), "lhs_contract": (2,), "rhs_contract": (1,)}

        def each(x: Term, index: int, batch: int = batch, k: int = k, given: dict[str, Any] = batched) -> Term:
            return make("stablehlo.dot_general", (x, weights(tensor_of("f32", batch, k, k), index)), given)

        yield _case("stablehlo.dot_general", tensor_of("f32", batch, n, k), each, label=f"{batch} of {n}x{k}x{k}")


def _turned(depth: int) -> Link:
    """A product whose left operand is turned, of so few columns that turning counts, and one that gives the shape back."""

    def link(x: Term, index: int) -> Term:
        columns, rows = (weights(tensor_of("f32", depth, 16), 2 * index + place) for place in (0, 1))
        narrow = make("stablehlo.dot_general", (x, columns), {"lhs_contract": (0,), "rhs_contract": (0,)})
        return make("stablehlo.dot_general", (rows, narrow), {"lhs_contract": (1,), "rhs_contract": (1,)})

    return link


def _onto(m: int, k: int, n: int) -> Link:
    """A product of little depth that is added to the link's operand."""
    return lambda x, index: make("onnx.Gemm", (weights(tensor_of("f32", m, k), index), weights(tensor_of("f32", k, n), index), x))


def _attention() -> Iterator[CalibrationCase]:
    sizes = ((16, 128, 4), (64, 192, 3), (128, 192, 4), (197, 192, 3), (64, 384, 6), (128, 768, 12), (512, 256, 4))
    for tokens, width, heads in sizes:

        def attended(x: Term, index: int, width: int = width, heads: int = heads) -> Term:
            given = (weights(tensor_of("f32", *shape), index) for shape in ((width, 3 * width), (3 * width,)))
            return make("ort.SelfAttention", (x, *given, absent()), {"num_heads": heads, "scale": (width // heads) ** -0.5})

        yield _case("ort.SelfAttention", tensor_of("f32", 1, tokens, width), attended, label=f"1,{tokens},{width}, {heads} heads")
    for shape in ((2, 4, 16, 32), (1, 8, 1, 64), (1, 12, 128, 64), (4, 8, 128, 32), (1, 32, 512, 64), (1, 4, 64, 128)):

        def rotated(x: Term, _: int, tokens: int = shape[2], pairs: int = shape[3] // 2) -> Term:
            angles = np.linspace(0, 3, tokens * pairs).reshape(tokens, pairs)
            tables = (constant_term(table, x.tensor.dtype) for table in (np.cos(angles), np.sin(angles)))
            return make("ort.RotatedHeads", (x, *tables))

        yield _case("ort.RotatedHeads", tensor_of("f32", *shape), rotated)


def _convolutions() -> Iterator[CalibrationCase]:
    shapes = [
        (64, 56, 1, 1), (256, 14, 1, 1), (512, 7, 1, 1), (64, 56, 3, 1), (128, 28, 3, 1), (256, 14, 3, 1), (512, 7, 3, 1),
        (16, 112, 3, 1), (128, 28, 3, 32), (512, 14, 3, 32), (96, 56, 3, 96), (384, 14, 3, 384), (960, 7, 3, 960), (8, 28, 3, 1),
        (12, 28, 3, 1), (200, 14, 1, 1), (88, 14, 5, 88), (40, 14, 3, 1), (60, 14, 3, 6), (64, 14, 5, 1), (32, 14, 1, 1),
    ]  # fmt: skip
    for channels, side, kernel, groups in shapes:
        attributes = {"strides": (1, 1), "padding": ((kernel // 2, kernel // 2),) * 2, "dilations": (1, 1), "group": groups}

        def convolved(x: Term, index: int, given: dict[str, Any] = attributes, c: int = channels, k: int = kernel, g: int = groups) -> Term:
            return make("onnx.Conv", (x, weights(tensor_of("f32", c, c // g, k, k), index), absent()), given)

        label = f"{channels}x{side}x{side}, {kernel}x{kernel}, groups {groups}"
        yield _case("onnx.Conv", tensor_of("f32", 1, channels, side, side), convolved, label=label, fused=True)
