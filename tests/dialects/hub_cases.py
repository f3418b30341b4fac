"""Strategies that draw, for every op of the hub, operands and attributes that its type rule must accept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

import coset.dialects  # noqa: F401  (registers the ops)
from coset.dialects.hub.scalars import cast
from coset.ir import dims
from coset.ir.dims import Shape
from coset.ir.errors import CosetError
from coset.ir.op import Attributes, Op
from coset.ir.registry import all_ops
from coset.ir.term import Term, input_term, make
from coset.ir.types import BOOL, DTYPES, DType, TensorType
from coset.rules.definition import is_defined

Draw = Callable[..., Any]
Shapes = tuple[list[Shape], Attributes]
HUB = [op for op in all_ops() if op.dialect in ("stablehlo", "chlo") and not is_defined(op)]  # definitions are tested as such
CASES: dict[str, Callable[[], st.SearchStrategy[Case]]] = {}  # op: its cases, where FAMILIES cannot say them; filled by hub_*_cases.py
ANY_TYPE: set[str] = set()  # ops that take operands of any type
ANY_VALUE: set[tuple[str, str]] = set()  # (op, attribute) where every value is as good as another
BINDING = {"A": 1, "B": 2, "C": 3}
DIM = st.sampled_from([0, 1, 2, 3, 4, *map(dims.symbol, BINDING)])
SHAPE = st.lists(DIM, max_size=3).map(tuple)


@dataclass(frozen=True)
class Case:
    """A term over inputs, and an array for each of them."""

    term: Term
    arrays: list[np.ndarray[Any, Any]]

    def value(self) -> Any:
        assert self.term.op.meaning is not None
        return self.term.op.meaning(self.term, self.arrays, BINDING)


def case_of(name: str, operands: list[tuple[DType, Shape]], attributes: Attributes, arrays: list[np.ndarray[Any, Any]]) -> Case:
    """The op called `name` on inputs of these types, with their values."""
    terms = [input_term(f"x{i}", TensorType(dtype, shape)) for i, (dtype, shape) in enumerate(operands)]
    return Case(make(name, terms, attributes), arrays)


def numbers(shape: Shape) -> tuple[int, ...]:
    """The shape under BINDING."""
    return tuple(dims.evaluate(dim, BINDING) for dim in shape)


def adversarial(dtype: DType, shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    """Ordinary values mixed with zeros of both signs, NaN, infinities, extremes and subnormals (as `dtype` has them)."""
    random = np.random.default_rng(seed)
    if dtype.kind == "bool":
        return np.asarray(random.integers(0, 2, shape), np.bool_)
    if dtype.kind == "string":
        return random.choice(np.array(["", "a", "b"], object), shape)
    if dtype.kind in ("int", "uint"):
        return cast(random.choice(np.array([0, 1, 2, -1, -(2**63), 2**63 - 1, *random.integers(-100, 100, 6)]), shape), dtype)
    pool = np.array([0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 1e-40, 3e38, *random.normal(0, 3, 9)])
    if dtype.kind == "complex":
        parts = np.stack([random.choice(pool, shape), random.choice(pool, shape)], axis=-1)
        return parts.view(np.complex128)[..., 0].astype(dtype.numpy)
    return cast(random.choice(pool, shape), dtype)


@cache
def dtypes_of(op: Op) -> list[DType]:
    """The dtypes that the op takes, learned from its type rule on the plainest operands."""
    accepted = []
    for dtype in DTYPES.values():
        shapes, attributes = PLAIN.get(op.name, lambda _: ([(2, 2)] * max(1, len(op.operands)), {}))(dtype)
        try:
            op.infer([TensorType(_operand_dtype(op, i, dtype), shape) for i, shape in enumerate(shapes)], op.complete(attributes))
        except CosetError:
            continue
        accepted.append(dtype)
    return accepted


def _operand_dtype(op: Op, index: int, dtype: DType) -> DType:
    return BOOL if op.name == "stablehlo.select" and index == 0 else dtype


@st.composite
def cases(draw: Draw, op: Op) -> Case:
    """A case of `op`, of any dtype that it takes, with static and symbolic dims, empty tensors and rank 0."""
    if op.name in CASES:
        return draw(CASES[op.name]())
    shapes, attributes = draw(FAMILIES.get(op.name, lambda: _pointwise(op))())
    dtype = draw(st.sampled_from(dtypes_of(op)))
    if "dtype" in {a.name for a in op.attributes}:
        attributes = {**attributes, "dtype": draw(st.sampled_from([d for d in DTYPES.values() if d.kind not in ("string", "bool")]))}
    if "combiner" in {a.name for a in op.attributes}:
        names = ["add", "multiply", "maximum", "minimum"] + ["and", "or"] * (dtype.kind in ("int", "uint", "bool"))
        attributes = {**attributes, "combiner": draw(st.sampled_from(names))}
    seed = draw(st.integers(0, 10_000))
    kinds = [_operand_dtype(op, i, dtype) for i in range(len(shapes))]
    terms = [input_term(f"x{i}", TensorType(kind, shape)) for i, (kind, shape) in enumerate(zip(kinds, shapes, strict=True))]
    arrays = [adversarial(kind, numbers(shape), seed + i) for i, (kind, shape) in enumerate(zip(kinds, shapes, strict=True))]
    return Case(make(op, terms, attributes), arrays)


@st.composite
def _pointwise(draw: Draw, op: Op) -> Shapes:
    return [draw(SHAPE)] * len(op.operands), {}


@st.composite
def _compare(draw: Draw) -> Shapes:
    return [draw(SHAPE)] * 2, {"direction": draw(st.sampled_from(["EQ", "NE"]))}


@st.composite
def _select(draw: Draw) -> Shapes:
    shape = draw(SHAPE)
    return [draw(st.sampled_from([(), shape])), shape, shape], {}


@st.composite
def _clamp(draw: Draw) -> Shapes:
    shape = draw(SHAPE)
    return [draw(st.sampled_from([(), shape])), shape, draw(st.sampled_from([(), shape]))], {}


@st.composite
def _broadcast(draw: Draw) -> Shapes:
    shape = draw(SHAPE)
    axes = tuple(draw(st.lists(st.integers(0, len(shape) - 1), unique=True)) if shape else [])
    return [tuple(draw(st.sampled_from([1, shape[axis]])) for axis in axes)], {"shape": shape, "broadcast_dimensions": axes}


@st.composite
def _reshape(draw: Draw) -> Shapes:
    shape = list(draw(SHAPE))
    target = list(draw(st.permutations(shape)))
    if draw(st.booleans()) and len(target) >= 2:
        target[:2] = [dims.multiply(target[0], target[1])]
    target.insert(draw(st.integers(0, len(target))), 1)
    return [tuple(shape)], {"shape": tuple(target)}


@st.composite
def _transpose(draw: Draw) -> Shapes:
    shape = draw(SHAPE)
    return [shape], {"permutation": tuple(draw(st.permutations(range(len(shape)))))}


@st.composite
def _slice(draw: Draw) -> Shapes:
    shape = draw(SHAPE)
    limit = tuple(draw(st.integers(0, dim)) if isinstance(dim, int) else dim for dim in shape)
    start = tuple(draw(st.integers(0, dim)) if isinstance(dim, int) else draw(st.integers(0, 1)) for dim in limit)
    return [shape], {"start": start, "limit": limit, "strides": tuple(draw(st.integers(1, 3)) for _ in shape)}


@st.composite
def _concatenate(draw: Draw) -> Shapes:
    shape = (draw(DIM), *draw(st.lists(DIM, max_size=2)))
    axis = draw(st.integers(0, len(shape) - 1))
    return [(*shape[:axis], draw(DIM), *shape[axis + 1 :]) for _ in range(draw(st.integers(1, 3)))], {"dimension": axis}


@st.composite
def _pad(draw: Draw) -> Shapes:
    shape = draw(SHAPE)
    interior = tuple(draw(st.integers(0, 2)) for _ in shape)
    ends = [draw(st.tuples(st.integers(-size, 3), st.integers(0, 3))) for size in numbers(shape)]
    low, high = (tuple(end[side] for end in ends) for side in (0, 1))
    return [shape, ()], {"low": low, "high": high, "interior": interior}


@st.composite
def _reverse(draw: Draw) -> Shapes:
    shape = draw(SHAPE)
    return [shape], {"dimensions": tuple(draw(st.sets(st.integers(0, len(shape) - 1))) if shape else ())}


@st.composite
def _iota(draw: Draw) -> Shapes:
    shape = (draw(DIM), *draw(SHAPE))
    return [], {"shape": shape, "dimension": draw(st.integers(0, len(shape) - 1))}


@st.composite
def _dot(draw: Draw) -> Shapes:
    batch, contract, left, right = (draw(st.lists(DIM, max_size=2)) for _ in range(4))
    attributes, shapes = {}, []
    for side, free in (("lhs", left), ("rhs", right)):
        roles = draw(st.permutations([("b", i) for i in range(len(batch))] + [("c", i) for i in range(len(contract))]
                                     + [("f", i) for i in range(len(free))]))  # fmt: skip
        shapes.append(tuple({"b": batch, "c": contract, "f": free}[role][i] for role, i in roles))
        attributes[f"{side}_batch"] = tuple(roles.index(("b", i)) for i in range(len(batch)))
        attributes[f"{side}_contract"] = tuple(roles.index(("c", i)) for i in range(len(contract)))
    return shapes, attributes


@st.composite
def _convolution(draw: Draw) -> Shapes:
    spatial = draw(st.integers(0, 2))
    features, batches = draw(st.sampled_from([(1, 1), (2, 1), (3, 1), (1, 2)]))
    outputs, channels = features * batches * draw(st.integers(0, 2)), draw(st.integers(0, 2))
    small, size = st.integers(1, 2), st.sampled_from([0, 1, 5, dims.symbol("C")])
    lhs = (batches * draw(st.integers(0, 2)), channels * features, *(draw(size) for _ in range(spatial)))
    rhs = (outputs, channels, *(draw(st.integers(0, 2)) for _ in range(spatial)))
    low = [draw(st.integers(0 if isinstance(dim, int) else 1, 2)) for dim in lhs[2:]]
    padding = tuple((first, draw(st.integers(-1 if dim == 5 else 0, 2))) for first, dim in zip(low, lhs[2:], strict=True))
    return [lhs, rhs], {
        "strides": tuple(draw(small) for _ in range(spatial)),
        "padding": padding,
        "lhs_dilation": tuple(draw(small) for _ in range(spatial)),
        "rhs_dilation": tuple(draw(small) for _ in range(spatial)),
        "feature_group_count": features,
        "batch_group_count": batches,
    }


@st.composite
def _reduce(draw: Draw) -> Shapes:
    shape = draw(SHAPE)
    return [shape], {"dimensions": tuple(sorted(draw(st.sets(st.integers(0, len(shape) - 1))) if shape else ()))}


FAMILIES: dict[str, Callable[[], st.SearchStrategy[Shapes]]] = {
    "stablehlo.compare": _compare, "stablehlo.select": _select, "stablehlo.clamp": _clamp,
    "stablehlo.broadcast_in_dim": _broadcast, "stablehlo.reshape": _reshape, "stablehlo.transpose": _transpose,
    "stablehlo.slice": _slice, "stablehlo.concatenate": _concatenate, "stablehlo.pad": _pad, "stablehlo.reverse": _reverse,
    "stablehlo.iota": _iota, "stablehlo.dot_general": _dot, "stablehlo.convolution": _convolution, "stablehlo.reduce": _reduce,
}  # fmt: skip
_TWO = ("lhs", "rhs")
PLAIN: dict[str, Callable[[DType], Shapes]] = {
    "stablehlo.compare": lambda _: ([(2,), (2,)], {"direction": "EQ"}),
    "stablehlo.convert": lambda dtype: ([(2,)], {"dtype": dtype}),
    "stablehlo.broadcast_in_dim": lambda _: ([(2,)], {"shape": (2,), "broadcast_dimensions": (0,)}),
    "stablehlo.reshape": lambda _: ([(2,)], {"shape": (2,)}),
    "stablehlo.transpose": lambda _: ([(2,)], {"permutation": (0,)}),
    "stablehlo.slice": lambda _: ([(2,)], {"start": (0,), "limit": (1,), "strides": (1,)}),
    "stablehlo.concatenate": lambda _: ([(2,)], {"dimension": 0}),
    "stablehlo.pad": lambda _: ([(2,), ()], {"low": (0,), "high": (0,), "interior": (0,)}),
    "stablehlo.reverse": lambda _: ([(2,)], {"dimensions": ()}),
    "stablehlo.iota": lambda dtype: ([], {"shape": (2,), "dtype": dtype, "dimension": 0}),
    "stablehlo.convolution": lambda _: ([(2, 2)] * 2, {"strides": (), "padding": (), "lhs_dilation": (), "rhs_dilation": ()}),
    "stablehlo.reduce": lambda _: ([(2,)], {"dimensions": (0,), "combiner": "maximum"}),
}
