"""What ONNX's If, Loop and Scan mean: their bodies (`onnx_graphs`) as regions of the hub's control flow.

The text: https://onnx.ai/onnx/operators/onnx__If.html, onnx__Loop.html, onnx__Scan.html.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coset.dialects.hub import stablehlo_data
from coset.dialects.hub.region_terms import if_term, while_term
from coset.dialects.hub.terms import convert, literal, reshape, splat, transpose
from coset.dialects.onnx import arithmetic as a
from coset.dialects.onnx.graphs import CAPTURED, instantiate
from coset.dialects.onnx.loops import placed, scan
from coset.dialects.onnx.node import Built, Node, axis_of, constant_elements, definition
from coset.ir import dims
from coset.ir.builtin import DIMS
from coset.ir.dims import Dim
from coset.ir.errors import TypeRuleError, require
from coset.ir.term import PARAMETER, Region, Term, get, make
from coset.ir.types import BOOL, I64, TensorType, TupleType

PRIMITIVES = (stablehlo_data,)
_UNROLLED = 256  # steps of a loop whose values change their shape


def _captured(node: Node) -> tuple[list[Term], list[Term]]:
    """The operands and, apart, the values that the bodies capture."""
    count = len(node.operands) - node.attributes.get(CAPTURED, 0)
    return list(node.operands[:count]), list(node.operands[count:])


def _truth(node: Node, index: int) -> bool | None:
    found = node.host[index] if index < len(node.host) else None
    return None if found is None or found.size != 1 else bool(found.reshape(-1)[0])


@definition("If")
def _if(node: Node) -> Built:
    """The branch that the condition chooses; where it is known, that branch alone."""
    (condition, *_), captured = _captured(node)
    then, other = node.attributes["then_branch"], node.attributes["else_branch"]
    known = _truth(node, 0)
    if known is not None:
        return instantiate(then if known else other, captured)
    made = if_term(
        reshape(condition, ()), captured, lambda *inner: instantiate(then, inner), lambda *inner: instantiate(other, inner)
    )  # fmt: skip
    return tuple(get(made, i) for i in range(len(made.type.items))) if isinstance(made.type, TupleType) else made


# ---------------------------------------------------------------- Scan


@definition("Scan")
def _scan(node: Node) -> Built:
    """The body of the states and of one element of each scanned operand after the other; what else it gives is stacked."""
    operands, captured = _captured(node)
    if node.since < 9:
        return _batched_scan(node, operands, captured)
    body, count = node.attributes["body"], node.attributes["num_scan_inputs"]
    states, scanned = operands[: len(operands) - count], operands[len(operands) - count :]
    outputs = len(body.results) - len(states)
    axes = _axes(node, "scan_input_axes", [x.tensor.rank for x in scanned])
    turned = [bool(d) for d in node.attributes.get("scan_input_directions", (0,) * count)]
    stacked = [bool(d) for d in node.attributes.get("scan_output_directions", (0,) * outputs)]
    leading = [_moved(x, axis, 0) for x, axis in zip(scanned, axes, strict=True)]
    finals, stacks = scan(_step(body, len(states)), states, leading, captured, leading[0].tensor.dims[0], backward=turned, stacked=stacked)
    places = _axes(node, "scan_output_axes", [x.tensor.rank for x in stacks])
    return *finals, *(_moved(x, 0, axis) for x, axis in zip(stacks, places, strict=True))


def _step(body: Region, states: int):  # type: ignore[no-untyped-def]
    """One step of a scan: the new states, and the outputs."""

    def step(_: Term, carried: Sequence[Term], elements: Sequence[Term], captured: Sequence[Term]) -> tuple[list[Term], list[Term]]:
        results = instantiate(body, [*carried, *elements, *captured])
        return list(results[:states]), list(results[states:])

    return step


def _axes(node: Node, name: str, ranks: Sequence[int]) -> list[int]:
    given = node.attributes.get(name, (0,) * len(ranks))
    found = [axis_of(axis, rank) for axis, rank in zip(given, ranks, strict=True)]
    require(all(axis is not None for axis in found), f"{node.name} has an axis in `{name}` that is no dim")
    return [axis for axis in found if axis is not None]


def _moved(x: Term, source: int, target: int) -> Term:
    """`x` with its dim `source` as dim `target`."""
    order = [axis for axis in range(x.tensor.rank) if axis != source]
    order.insert(target, source)
    return transpose(x, tuple(order))


def _batched_scan(node: Node, operands: list[Term], captured: list[Term]) -> Built:
    """Version 8: states and scanned operands have a leading batch dim; each of its elements is scanned by itself."""
    body, count = node.attributes["body"], node.attributes["num_scan_inputs"]
    if node.given(0):
        return None  # lengths of the sequences
    states, scanned = operands[1 : len(operands) - count], operands[len(operands) - count :]
    turned = [bool(d) for d in node.attributes.get("directions", (0,) * count)]
    width = len(states)

    def each(_: Term, __: Sequence[Term], elements: Sequence[Term], inner: Sequence[Term]) -> tuple[list[Term], list[Term]]:
        length = elements[width].tensor.dims[0]
        finals, stacks = scan(_step(body, width), elements[:width], elements[width:], inner, length, backward=turned)
        return [], [*finals, *stacks]

    return tuple(scan(each, [], [*states, *scanned], captured, operands[-1].tensor.dims[0])[1])


# ---------------------------------------------------------------- Loop


@definition("Loop")
def _loop(node: Node) -> Built:
    """The body as long as its condition holds and, where there is one, the trip count is not reached; scan outputs are stacked."""
    (_, _, *carried), captured = _captured(node)
    body = node.attributes["body"]
    limit, going = node.ints(0) if node.given(0) else None, _truth(node, 1) if node.given(1) else True
    count = 0 if going is False else max(0, limit[0]) if limit else None
    steady = going is not None and _keeps_going(body)
    if steady and count is not None:
        try:
            return _counted(body, carried, captured, count)
        except TypeRuleError:
            if count > _UNROLLED:
                raise
            return _unrolled(body, carried, captured, count)
    return _general(node, body, carried, captured, count)


def _keeps_going(body: Region) -> bool:
    """True when the condition that the body gives is the one that it got, or true."""
    result = body.results[0]
    return (result.op is PARAMETER and result.attribute("index") == 1) or _is_true(result)


def _is_true(term: Term) -> bool:
    known = constant_elements(term, 1)
    return known is not None and bool(known.all())


def _counted(body: Region, carried: Sequence[Term], captured: Sequence[Term], count: Dim) -> tuple[Term, ...]:
    """A known number of steps; the values keep their types."""

    def step(index: Term, values: Sequence[Term], _: Sequence[Term], inner: Sequence[Term]) -> tuple[list[Term], list[Term]]:
        _go, *results = instantiate(body, [convert(index, I64), literal(np.array(True)), *values, *inner])
        return results[: len(carried)], results[len(carried) :]

    finals, stacks = scan(step, carried, [], captured, count)
    return *finals, *stacks


def _unrolled(body: Region, carried: Sequence[Term], captured: Sequence[Term], count: int) -> tuple[Term, ...]:
    """A known, small number of steps, one after the other: the values may change their shapes."""
    values, outputs = list(carried), []
    for index in range(count):
        _, *results = instantiate(body, [literal(np.int64(index)), literal(np.array(True)), *values, *captured])
        values = list(results[: len(carried)])
        outputs.append(results[len(carried) :])
    stacks = [a.concatenate([a.unsqueeze(x, 0) for x in column], 0) for column in zip(*outputs, strict=True)]
    return *values, *stacks


def _general(node: Node, body: Region, carried: list[Term], captured: list[Term], count: int | None) -> tuple[Term, ...]:
    """A loop whose condition may end it: stacks as long as the trip count, cut to the steps that were made."""
    go = reshape(node.operands[1], ()) if node.given(1) else literal(np.array(True))
    scalar = splat(0, I64, ())
    types = [make(PARAMETER, (), {"index": i, "type": x.type}) for i, x in enumerate((scalar, go, *carried, *captured))]
    kinds = instantiate(body, types)[1 + len(carried) :]
    bounded = node.given(0)
    limit = reshape(convert(node.operands[0], I64), ()) if bounded else splat(np.iinfo(np.int64).max, I64, ())
    if kinds and count is None:
        raise TypeRuleError("how often a Loop runs at most is not known, and with it how long its outputs are")
    stacks = [splat(0, kind.tensor.dtype, (count or 0, *kind.tensor.dims)) for kind in kinds]
    first, second = 3 + len(carried), 3 + len(carried) + len(stacks)

    def step(*state: Term) -> list[Term]:
        index, limit, going = state[:3]
        proceed, *results = instantiate(body, [index, going, *state[3:first], *state[second:]])
        piles = [placed(pile, x, index) for pile, x in zip(state[first:second], results[len(carried) :], strict=True)]
        return [a.add(index, 1), limit, reshape(convert(proceed, BOOL), ()), *results[: len(carried)], *piles, *state[second:]]

    start = [scalar, limit, go, *carried, *stacks, *captured]
    if kinds and count == 0:
        return *carried, *stacks
    loop = while_term(start, lambda *state: a.both(a.compare(state[0], "LT", state[1]), state[2]), step)
    steps = get(loop, 0)
    return *(get(loop, i) for i in range(3, first)), *(_cut(get(loop, i), steps) for i in range(first, second))


def _cut(stack: Term, steps: Term) -> Term:
    """The first `steps` elements: a dim that the run decides."""
    rank, shape = stack.tensor.rank, stack.tensor.dims
    low = literal(np.zeros(rank, np.int64))
    rest = [reshape(a.counted(dim, I64), (1,)) for dim in shape[1:]]
    high = a.concatenate([reshape(steps, (1,)), *rest], 0)
    return make("stablehlo.real_dynamic_slice", (stack, low, high, literal(np.ones(rank, np.int64))),
                {"shape": (dims.symbol("loop_steps"), *shape[1:])})  # fmt: skip


# ---------------------------------------------------------------- what a body asks of its operands


@definition("Shape")
def _shape(node: Node) -> Built:
    """The dims from `start` to before `end` as integers."""
    shape = node.operands[0].tensor.dims[slice(node.attributes.get("start", 0), node.attributes.get("end"))]
    return _numbers(shape, (len(shape),))


@definition("Size")
def _size(node: Node) -> Built:
    """The number of elements."""
    return _numbers((node.operands[0].tensor.elements,), ())


def _numbers(numbers: Sequence[Dim], shape: tuple[int, ...]) -> Term:
    if all(isinstance(number, int) for number in numbers):
        return literal(np.array(numbers, np.int64).reshape(shape))
    return make(DIMS, (), {"dims": tuple(numbers), "type": TensorType(I64, shape)})
