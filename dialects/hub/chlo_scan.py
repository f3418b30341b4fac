"""CHLO's scan: a body sent along a dim of its inputs, with values that it carries from one slice to the next.

The op has outputs (a slice from each step, side by side along the dim) and carries (as the last step leaves them). Its body takes a
slice of each input and the carries, and gives a slice of each output and the next carries; it captures nothing.
Source: https://openxla.org/xla/operation_semantics#scan; https://openxla.org/stablehlo/generated/chlo#chloscan_chloscanop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from coset.dialects.hub import signatures
from coset.dialects.hub.checks import get_axis, get_int, tensor_of
from coset.dialects.hub.region_terms import Body, applied, region, while_term
from coset.dialects.hub.region_types import get_bool, stated_results
from coset.dialects.hub.stablehlo_regions import result_flops
from coset.dialects.hub.tensors import numbers
from coset.dialects.hub.terms import reshape, splat
from coset.ir import dims
from coset.ir.builtin import DIMS
from coset.ir.dims import Dim, Shape
from coset.ir.errors import require
from coset.ir.evaluate import Fallback, region_function
from coset.ir.op import Array, Attribute, Attributes, Op, Signature, register
from coset.ir.term import TUPLE, Region, Term, constant, get, make
from coset.ir.types import I64, TensorType, Type, tensor
from coset.rules.definition import evaluate_defined

NAME = "chlo.scan"


# ---------------------------------------------------------------- types


def _without(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], *shape[axis + 1 :])


def _with(shape: Shape, axis: int, dim: Dim) -> Shape:
    return (*shape[:axis], dim, *shape[axis:])


def _size(operands: Sequence[Type], attributes: Attributes) -> Dim:
    """How many steps there are: the dim of the inputs, or what is stated where there are none."""
    if not attributes["inputs"]:
        return attributes["size"]  # type: ignore[no-any-return]
    return tensor_of(operands[0], "an input").dims[attributes["dimension"]]


def _infer(operands: Sequence[Type], attributes: Attributes) -> Type:
    """The outputs, each a stated slice with the dim put in, then the carries, which have the types of the init values."""
    types = [tensor_of(operand, f"operand {i} of `{NAME}`") for i, operand in enumerate(operands)]
    count = get_int(NAME, attributes, "inputs")
    require(0 <= count <= len(types), f"`inputs` of `{NAME}` must lie in 0..{len(types)}, as it has so many operands, not {count}")
    for key in ("is_reverse", "is_associative"):
        get_bool(NAME, attributes, key)
    slices = stated_results(NAME, {"results": attributes["slices"]})
    taken, stated = types[:count], [tensor_of(type, f"a slice of `{NAME}`") for type in slices]
    require(len(stated) + count >= 1, f"`{NAME}` has an input or an output, or it would scan nothing")
    ranks = [type.rank for type in taken] + [type.rank + 1 for type in stated]
    axis = get_axis(NAME, attributes, "dimension", min(ranks))
    size = attributes["size"]
    stated_size = isinstance(size, dims.Poly) or (isinstance(size, int) and not isinstance(size, bool) and size >= 0)
    require(
        size is None if count else stated_size,
        f"`size` of `{NAME}` is a number of steps where there are no inputs, and only there, not {size!r}",
    )
    for i, type in enumerate(taken):
        same = type.dims[axis] == taken[0].dims[axis]
        require(same, f"inputs of `{NAME}` must agree in dim {axis}, but input 0 is {taken[0]} and input {i} is {type}")
    outputs = [TensorType(type.dtype, _with(type.dims, axis, _size(operands, attributes))) for type in stated]
    return signatures.results_type([*outputs, *types[count:]])


def _body(_: str, operands: Sequence[Type], attributes: Attributes, __: int) -> list[Signature]:
    count, axis = attributes["inputs"], attributes["dimension"]
    types = [tensor_of(operand, "an operand") for operand in operands]
    slices = [TensorType(type.dtype, _without(type.dims, axis)) for type in types[:count]]
    return [Signature("body", (*slices, *types[count:]), (*attributes["slices"], *types[count:]))]


# ---------------------------------------------------------------- meaning


def _meaning(term: Term, arrays: Sequence[Array], binding: Mapping[str, int], fallback: Fallback | None = None) -> Any:
    """One step after the other, from the last slice where it is reversed."""
    count, axis, stated = (term.attribute(key) for key in ("inputs", "dimension", "slices"))
    body = region_function(term.regions[0], binding, fallback or evaluate_defined)
    (size,) = numbers((_size([operand.type for operand in term.operands], dict(term.attributes)),), binding)
    carries: list[Array] = list(arrays[count:])
    outputs: list[Array] = [np.empty(_with(numbers(type.dims, binding), axis, size), type.dtype.numpy) for type in stated]
    for i in reversed(range(size)) if term.attribute("is_reverse") else range(size):
        at: Any = (*[slice(None)] * axis, i, ...)
        results = body(*(x[at] for x in arrays[:count]), *carries)
        for output, part in zip(outputs, results, strict=False):
            output[at] = part
        carries = results[len(outputs) :]
    values = [*outputs, *(np.asarray(carry) for carry in carries)]
    return values[0] if len(values) == 1 else tuple(values)


# ---------------------------------------------------------------- terms


def scan_term(
    inputs: Sequence[Term], carries: Sequence[Term], body: Body, dimension: int, *,
    is_reverse: bool = False, is_associative: bool = False, size: Dim | None = None,
) -> Term:  # fmt: skip
    """The scan whose `body(*slices, *carries)` gives the slices of the outputs and the next carries."""
    slices = [TensorType(x.tensor.dtype, _without(x.tensor.dims, dimension)) for x in inputs]
    made = region([*slices, *(carry.type for carry in carries)], body)
    return of_region(inputs, carries, made, {
        "dimension": dimension, "size": size, "is_reverse": is_reverse, "is_associative": is_associative,
    })  # fmt: skip


def of_region(inputs: Sequence[Term], carries: Sequence[Term], body: Region, attributes: Attributes) -> Term:
    """The scan of a body that is a region."""
    slices = tuple(result.type for result in body.results[: len(body.results) - len(carries)])
    return make(NAME, [*inputs, *carries], {**attributes, "inputs": len(inputs), "slices": slices}, (body,))


def as_loop(term: Term) -> Term:
    """What the scan is defined as: a `while` over the step's number, the carries, the outputs as far as they are, and the inputs."""
    count, axis, stated, backwards = (term.attribute(key) for key in ("inputs", "dimension", "slices", "is_reverse"))
    size = _size([operand.type for operand in term.operands], dict(term.attributes))
    inputs, carries = term.operands[:count], term.operands[count:]
    empty = [splat(0, type.dtype, _with(type.dims, axis, size)) for type in stated]
    if size == 0:
        return _as_one([*empty, *carries])
    steps = constant(size, I64) if isinstance(size, int) else make(DIMS, (), {"dims": (size,), "type": tensor(I64)})
    one, zero = (constant(np.asarray(number), I64) for number in (1, 0))

    def places(at: Term, rank: int) -> list[Term]:
        return [at if i == axis else zero for i in range(rank)]

    def step(i: Term, *state: Term) -> list[Term]:
        carried, made, given = (state[a:b] for a, b in _cut(len(carries), len(stated), count))
        at = make("stablehlo.subtract", (make("stablehlo.subtract", (steps, one)), i)) if backwards else i
        slices = [_taken(x, places(at, x.tensor.rank), axis) for x in given]
        results = applied(term.regions[0], [*slices, *carried])
        parts = [reshape(part, _with(part.tensor.dims, axis, 1)) for part in results[: len(stated)]]
        put = [
            make("stablehlo.dynamic_update_slice", (whole, part, *places(at, whole.tensor.rank)))
            for whole, part in zip(made, parts, strict=True)
        ]
        return [make("stablehlo.add", (i, one)), *results[len(stated) :], *put, *given]

    def goes_on(i: Term, *_: Term) -> Term:
        return make("stablehlo.compare", (i, steps), {"direction": "LT"})

    loop = while_term([zero, *carries, *empty, *inputs], goes_on, step)
    first = 1 + len(carries)
    return _as_one([get(loop, index) for index in (*range(first, first + len(stated)), *range(1, first))])


def _as_one(results: Sequence[Term]) -> Term:
    return results[0] if len(results) == 1 else make(TUPLE, results)


def _cut(*lengths: int) -> list[tuple[int, int]]:
    ends = np.cumsum((0, *lengths)).tolist()
    return list(pairwise(ends))


def _taken(x: Term, places: Sequence[Term], axis: int) -> Term:
    sizes = _with(_without(x.tensor.dims, axis), axis, 1)
    return reshape(make("stablehlo.dynamic_slice", (x, *places), {"slice_sizes": sizes}), _without(x.tensor.dims, axis))


SCAN = register(Op(
    NAME, _infer, _meaning,
    (Attribute("dimension", "int"), Attribute("inputs", "int"), Attribute("slices", "any"), Attribute("size", "any", None, required=False),
     Attribute("is_reverse", "bool", False, required=False), Attribute("is_associative", "bool", False, required=False)),
    ("operands",), variadic=True, flops=result_flops, signatures=_body, functions=(("body", ""),),
    source="https://openxla.org/stablehlo/generated/chlo#chloscan_chloscanop",
    document="The body sent along `dimension` of the first `inputs` operands; the others are carried. Outputs, then carries; the outputs' "
    "`slices` are stated.",
))  # fmt: skip
