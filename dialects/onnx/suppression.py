"""ONNX's NonMaxSuppression: the boxes of each class by falling score, without those that overlap a better one too much."""

from __future__ import annotations

from collections.abc import Sequence

from coset.dialects.hub import stablehlo_data, stablehlo_regions
from coset.dialects.hub.region_terms import while_term
from coset.dialects.hub.terms import convert, reshape, splat
from coset.dialects.onnx.arithmetic import (
    add,
    both,
    compare,
    concatenate,
    divide,
    either,
    fold,
    invert,
    iota,
    maximum,
    minimum,
    multiply,
    picked,
    pointwise,
    subtract,
    unsqueeze,
)
from coset.dialects.onnx.node import Built, Node, definition
from coset.dialects.onnx.selection import ordered, positions, take
from coset.ir import dims
from coset.ir.dims import Shape
from coset.ir.term import Term, get, make
from coset.ir.types import BOOL, I64

PRIMITIVES = (stablehlo_data, stablehlo_regions)  # their ops are made here


def _number(node: Node, index: int) -> Term | None:
    """An operand of one element as a scalar, or None where it is not given or has no element."""
    found = node.operand(index)
    return None if found is None or found.tensor.elements == 0 else reshape(found, ())


@definition("NonMaxSuppression")
def non_max_suppression(node: Node) -> Built:
    """Rows (batch, class, box): each class takes its boxes by falling score (of equals the first), but for those whose intersection
    over union with a taken box is above the threshold, until it has as many as it may."""
    boxes, scores = node.operands[:2]
    shape = scores.tensor.dims
    if 0 in shape:
        return splat(0, I64, (0, 3))
    most, overlap, least = (_number(node, index) for index in (2, 3, 4))
    most = most or splat(0, I64, ())
    overlap = overlap or splat(0, scores.tensor.dtype, ())
    ranked, order = ordered([scores, iota(shape, 2)], "GT", axis=2)
    good = compare(ranked, "GT", least) if least is not None else splat(True, BOOL, shape)
    corners = _corners(_sorted_boxes(boxes, order), centred=bool(node.attributes.get("center_point_box", 0)))
    state = (splat(0, I64, ()), splat(False, BOOL, shape), good, most, overlap, *corners)
    kept = get(while_term(state, _goes_on, _step), 1)
    return _rows(kept, order)


def _sorted_boxes(boxes: Term, order: Term) -> Term:
    """The boxes [b, n, 4] of each class in its order [b, c, n]: [b, c, n, 4]."""
    attributes = {
        "offset_dims": (3,), "collapsed_slice_dims": (1,), "operand_batching_dims": (0,), "start_indices_batching_dims": (0,),
        "start_index_map": (1,), "index_vector_dim": 3, "slice_sizes": (1, 1, 4),
    }  # fmt: skip
    return make("stablehlo.gather", (boxes, order), attributes)


def _corners(boxes: Term, *, centred: bool) -> tuple[Term, Term, Term, Term]:
    """The lowest and highest y and x, of (y1, x1, y2, x2) in any order or of (x, y, width, height) around a centre."""
    parts = [picked(boxes, 3, i) for i in range(4)]
    if centred:
        x, y, width, height = parts
        half_width, half_height = divide(width, 2), divide(height, 2)
        return subtract(y, half_height), add(y, half_height), subtract(x, half_width), add(x, half_width)
    y1, x1, y2, x2 = parts
    return minimum(y1, y2), maximum(y1, y2), minimum(x1, x2), maximum(x1, x2)


# ---------------------------------------------------------------- the loop over the boxes by score


def _goes_on(step: Term, kept: Term, *_: Term) -> Term:
    return compare(step, "LT", kept.tensor.dims[2])


def _step(step: Term, kept: Term, good: Term, most: Term, overlap: Term, *corners: Term) -> tuple[Term, ...]:
    """Box `step` of each class is kept if it is good, has room, and is not suppressed by one that is kept."""
    mine = [_at(corner, step) for corner in corners]
    suppressed = fold(both(kept, _overlapping(mine, corners, overlap)), (2,), "or")
    full = compare(fold(convert(kept, I64), (2,)), "GE", most)
    takes = both(_at(good, step), invert(either(suppressed, full)))
    zero = splat(0, I64, ())
    updated = make("stablehlo.dynamic_update_slice", (kept, takes, zero, zero, step))
    return (add(step, 1), updated, good, most, overlap, *corners)


def _at(x: Term, step: Term) -> Term:
    """Element `step` along the last dim, which stays with size 1."""
    zero = splat(0, I64, ())
    return make("stablehlo.dynamic_slice", (x, zero, zero, step), {"slice_sizes": (*x.tensor.dims[:2], 1)})


def _overlapping(mine: Sequence[Term], others: Sequence[Term], overlap: Term) -> Term:
    """Where intersection over union is above the threshold; boxes without area overlap nothing."""
    sides = [subtract(minimum(mine[i + 1], others[i + 1]), maximum(mine[i], others[i])) for i in (0, 2)]
    intersection = multiply(*sides)
    areas = [multiply(subtract(box[1], box[0]), subtract(box[3], box[2])) for box in (mine, others)]
    union = subtract(add(*areas), intersection)
    found = [compare(number, "GT", 0) for number in (*sides, intersection, *areas, union)]
    ratio = divide(intersection, union)
    result = compare(ratio, "GT", overlap)
    for each in found:
        result = both(result, each)
    return result


# ---------------------------------------------------------------- what was kept as rows


def _rows(kept: Term, order: Term) -> Term:
    shape = kept.tensor.dims
    count = dims.symbol("count")
    flat: Shape = (kept.tensor.elements,)
    place = positions(reshape(kept, flat), count)
    box = take(reshape(order, flat), place, 0)
    row = divide(place, shape[2])  # batch * classes + class
    columns = (divide(row, shape[1]), pointwise("remainder", row, shape[1]), box)
    return concatenate([unsqueeze(column, 1) for column in columns], 1)
