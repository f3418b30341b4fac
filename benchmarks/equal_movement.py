"""Spellings of programs that move elements: slices and splits, reshapes, upsampling, blocks, gathers, shapes that are computed."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import numpy_helper

from benchmarks.spelled_net import Net, Shape, both, form, over

Models = tuple[Any, Any]
FAR = (1 << 63) - 1


def sliced(net: Net, x: str, start: int, end: int, axis: int, step: int = 1) -> str:
    """A slice along one axis."""
    return str(net("Slice", x, net.ints(start), net.ints(end), net.ints(axis), net.ints(step)))


@form(*over((2, 6), ("n", 6), (2, 3, 6), (1, 2, 3, 6), dtypes=("f32", "i32")))
def split_as_slices(shape: Shape, dtype: str) -> Models:
    a, b = both(13, dtype)
    x = a.input("x", shape), b.input("x", shape)
    return a.model(*a("Split", x[0], a.ints(2, 3, 1), results=3, axis=-1)), b.model(
        *[sliced(b, x[1], *ends, len(shape) - 1) for ends in ((0, 2), (2, 5), (-1, FAR))]
    )


@form(*over((2, 6), ("n", 6), (2, 3, 6)))
def split_and_back(shape: Shape, dtype: str) -> Models:
    a, b = both(18, dtype)
    x = a.input("x", shape), b.input("x", shape)
    parts = a("Split", x[0], results=3, axis=-1, num_outputs=3)
    return a.model(a("Tanh", a("Concat", *parts, axis=-1))), b.model(b("Tanh", x[1]))


@form(*over((2, 6), ("n", 6), (2, 3, 6)))
def split_by_number(shape: Shape, dtype: str) -> Models:
    a, b = both(18, dtype, other=11)
    x = a.input("x", shape), b.input("x", shape)
    return a.model(*a("Split", x[0], results=2, axis=-1, num_outputs=2)), b.model(*b("Split", x[1], results=2, axis=-1, split=[3, 3]))


@form(*over((2, 3, 4), (2, 3, 4, 5), ("n", 3, 4)))
def transposes_as_one(shape: Shape, dtype: str) -> Models:
    a, b = both(13, dtype)
    x = a.input("x", shape), b.input("x", shape)
    rank = len(shape)
    turn = [*range(1, rank), 0]
    twice = [turn[each] for each in turn]
    return a.model(a("Transpose", a("Transpose", x[0], perm=turn), perm=turn)), b.model(b("Transpose", x[1], perm=twice))


@form(*over((2, 3, 4), (2, 3, 4, 5), ("n", 3, 4)))
def transposed_through_ops(shape: Shape, dtype: str) -> Models:
    """A transpose behind two ops, and before them."""
    a, b = both(14, dtype)
    x = a.input("x", shape), b.input("x", shape)
    turn = [0, *range(len(shape) - 1, 0, -1)]
    one = a("Transpose", a("Sigmoid", a("Mul", x[0], a.const(np.float64(3)))), perm=turn)
    return a.model(one), b.model(b("Sigmoid", b("Mul", b("Transpose", x[1], perm=turn), b.const(np.float64(3)))))


@form(*over((2, 3, 4), (2, 3, 4, 5), (6, 4)))
def flatten_as_reshape(shape: Shape, dtype: str) -> Models:
    a, b = both(13, dtype)
    x = a.input("x", shape), b.input("x", shape)
    return a.model(a("Flatten", x[0], axis=1)), b.model(b("Reshape", x[1], b.ints(int(shape[0]), -1)))


@form(*over((2, 3, 4), ("n", 3, 4), (2, 3, 4, 5)))
def reshapes_as_one(shape: Shape, dtype: str) -> Models:
    a, b = both(13, dtype)
    x = a.input("x", shape), b.input("x", shape)
    one = a("Reshape", a("Reshape", x[0], a.ints(-1)), a.ints(-1, 4, 3))
    return a.model(one), b.model(b("Reshape", x[1], b.ints(-1, 4, 3)))


@form(*over((2, 3, 4), ("n", 3, 4), (5,)))
def unsqueeze_as_reshape(shape: Shape, dtype: str) -> Models:
    a, b = both(13, dtype)
    x = a.input("x", shape), b.input("x", shape)
    return a.model(a("Unsqueeze", x[0], a.ints(1))), b.model(b("Reshape", x[1], b.ints(*([0, 1, *shape[1:]] if shape[1:] else [0, 1]))))


@form(*over((2, 1, 4), ("n", 1, 4), (1, 1, 5)))
def squeeze_by_version(shape: Shape, dtype: str) -> Models:
    a, b = both(11, dtype, other=13)
    x = a.input("x", shape), b.input("x", shape)
    return a.model(a("Squeeze", x[0], axes=[1])), b.model(b("Squeeze", x[1], b.ints(1)))


@form(*over((2, 1, 4), ("n", 1, 4), (1, 5)))
def expand_as_broadcast(shape: Shape, dtype: str) -> Models:
    a, b = both(14, dtype)
    other = [*shape[:-2], 3, shape[-1]]
    x, z = ([net.input(name, given) for net in (a, b)] for name, given in (("x", shape), ("z", other)))
    wanted = [1] * (len(shape) - 2) + [3, 1]
    return a.model(a("Add", a("Expand", x[0], a.ints(*wanted)), z[0])), b.model(b("Add", z[1], x[1]))


@form(*over((2, 3, 4), ("n", 3, 4), (4,)))
def tile_as_concat(shape: Shape, dtype: str) -> Models:
    a, b = both(13, dtype)
    x = a.input("x", shape), b.input("x", shape)
    return a.model(a("Tile", x[0], a.ints(*[1] * (len(shape) - 1), 3))), b.model(b("Concat", x[1], x[1], x[1], axis=-1))


@form(*over((2, 3, 4, 5), ("n", 3, 4, 5), (1, 2, 3, 3), (2, 1, 1, 6), dtypes=("f32", "f16")))
def nearest_by_resize_and_expand(shape: Shape, dtype: str) -> Models:
    a, b = both(13, dtype)
    x = a.input("x", shape), b.input("x", shape)
    one = a("Resize", x[0], "", a.const(np.array([1, 1, 2, 2], np.float32), np.float32), mode="nearest", nearest_mode="floor",
            coordinate_transformation_mode="asymmetric")  # fmt: skip
    _, channels, high, wide = shape
    spread = b("Expand", b("Reshape", x[1], b.ints(-1, channels, high, 1, wide, 1)), b.ints(1, 1, 1, 2, 1, 2))
    return a.model(one), b.model(b("Reshape", spread, b.ints(-1, channels, 2 * int(high), 2 * int(wide))))


@form(*over((2, 3, 4, 5), ("n", 3, 4, 5), (1, 2, 3, 3)))
def nearest_by_upsample(shape: Shape, dtype: str) -> Models:
    a, b = both(9, dtype, other=13)
    x = a.input("x", shape), b.input("x", shape)
    scales = np.array([1, 1, 2, 3], np.float32)
    one = a("Upsample", x[0], a.const(scales, np.float32), mode="nearest")
    other = b(
        "Resize", x[1], "", b.const(scales, np.float32), mode="nearest", nearest_mode="floor", coordinate_transformation_mode="asymmetric"
    )
    return a.model(one), b.model(other)


@form(*over((2, 3, 4, 5), (1, 2, 3, 3)))
def nearest_by_gather(shape: Shape, dtype: str) -> Models:
    a, b = both(13, dtype)
    x = a.input("x", shape), b.input("x", shape)
    high, wide = int(shape[2]), int(shape[3])
    one = a("Resize", x[0], "", "", a.ints(int(shape[0]), int(shape[1]), 2 * high, 2 * wide), mode="nearest", nearest_mode="floor",
            coordinate_transformation_mode="asymmetric")  # fmt: skip
    rows = b("Gather", x[1], b.const(np.repeat(np.arange(high), 2)), axis=2)
    return a.model(one), b.model(b("Gather", rows, b.const(np.repeat(np.arange(wide), 2)), axis=3))


@form(*over((2, 8, 3, 4), ("n", 8, 2, 2), (1, 12, 2, 3)))
def depth_to_space_as_moves(shape: Shape, dtype: str) -> Models:
    a, b = both(13, dtype)
    x = a.input("x", shape), b.input("x", shape)
    _, channels, high, wide = shape
    parts = b("Reshape", x[1], b.ints(-1, 2, 2, int(channels) // 4, high, wide))
    moved = b("Transpose", parts, perm=[0, 3, 4, 1, 5, 2])
    return a.model(a("DepthToSpace", x[0], blocksize=2)), b.model(
        b("Reshape", moved, b.ints(-1, int(channels) // 4, 2 * int(high), 2 * int(wide)))
    )


@form(*over((2, 8, 3, 4), ("n", 8, 2, 2), (1, 12, 2, 3)))
def pixel_shuffle_as_moves(shape: Shape, dtype: str) -> Models:
    a, b = both(13, dtype)
    x = a.input("x", shape), b.input("x", shape)
    _, channels, high, wide = shape
    parts = b("Reshape", x[1], b.ints(-1, int(channels) // 4, 2, 2, high, wide))
    moved = b("Transpose", parts, perm=[0, 1, 4, 2, 5, 3])
    whole = b("Reshape", moved, b.ints(-1, int(channels) // 4, 2 * int(high), 2 * int(wide)))
    return a.model(a("DepthToSpace", x[0], blocksize=2, mode="CRD")), b.model(whole)


@form(*over((2, 3, 4, 6), ("n", 2, 4, 2), (1, 1, 6, 4)))
def space_to_depth_as_moves(shape: Shape, dtype: str) -> Models:
    a, b = both(13, dtype)
    x = a.input("x", shape), b.input("x", shape)
    channels, high, wide = int(shape[1]), int(shape[2]) // 2, int(shape[3]) // 2
    parts = b("Reshape", x[1], b.ints(-1, channels, high, 2, wide, 2))
    moved = b("Transpose", parts, perm=[0, 3, 5, 1, 2, 4])
    return a.model(a("SpaceToDepth", x[0], blocksize=2)), b.model(b("Reshape", moved, b.ints(-1, 4 * channels, high, wide)))


@form(*over((5, 4), ("n", 6), (2, 5, 4), dtypes=("f32", "i64")))
def gather_as_slice(shape: Shape, dtype: str) -> Models:
    a, b = both(13, dtype)
    x = a.input("x", shape), b.input("x", shape)
    return a.model(a("Gather", x[0], a.const(np.array([1, 2, 3])), axis=-1)), b.model(sliced(b, x[1], 1, 4, -1))


@form(*over((5, 4), ("n", 6), (2, 5, 4)))
def gather_of_one_as_squeezed_slice(shape: Shape, dtype: str) -> Models:
    a, b = both(13, dtype)
    x = a.input("x", shape), b.input("x", shape)
    return a.model(a("Gather", x[0], a.const(np.array(2)), axis=-1)), b.model(b("Squeeze", sliced(b, x[1], 2, 3, -1), b.ints(-1)))


@form(*over((5, 4), (3, 6), (2, 5, 4)))
def reversed_by_gather(shape: Shape, dtype: str) -> Models:
    a, b = both(13, dtype)
    x = a.input("x", shape), b.input("x", shape)
    size = int(shape[-1])
    return a.model(a("Gather", x[0], a.const(np.arange(size)[::-1].copy()), axis=-1)), b.model(sliced(b, x[1], -1, -FAR, -1, -1))


@form(*over((5, 4), ("n", 6), (2, 5, 4)))
def slices_as_one(shape: Shape, dtype: str) -> Models:
    a, b = both(13, dtype)
    x = a.input("x", shape), b.input("x", shape)
    return a.model(sliced(a, sliced(a, x[0], 1, FAR, -1), 0, -1, -1)), b.model(sliced(b, x[1], 1, -1, -1))


@form(*over((2, 3), ("n", 3), (2, 2, 3)))
def concats_as_one(shape: Shape, dtype: str) -> Models:
    a, b = both(13, dtype)
    given = [[net.input(name, shape) for name in ("x", "z", "w")] for net in (a, b)]
    inner = a("Concat", *given[0][:2], axis=-1)
    return a.model(a("Concat", inner, given[0][2], axis=-1)), b.model(b("Concat", *given[1], axis=-1))


@form(*over((2, 3), ("n", 3), (2, 2, 3)))
def concat_through_an_op(shape: Shape, dtype: str) -> Models:
    a, b = both(13, dtype)
    given = [[net.input(name, shape) for name in ("x", "z")] for net in (a, b)]
    return a.model(a("Tanh", a("Concat", *given[0], axis=-1))), b.model(b("Concat", *[b("Tanh", each) for each in given[1]], axis=-1))


@form(*over((2, 3, 4), ("n", 3, 4), (4, 2, 6)))
def shape_that_is_computed(shape: Shape, dtype: str) -> Models:
    """A reshape to (batch, -1) whose batch is read from the shape."""
    a, b = both(13, dtype)
    x = a.input("x", shape), b.input("x", shape)
    batch = a("Unsqueeze", a("Gather", a("Shape", x[0]), a.const(np.array(0)), axis=0), a.ints(0))
    target = a("Concat", batch, a.ints(-1), axis=0)
    return a.model(a("Reshape", x[0], target)), b.model(b("Reshape", x[1], b.ints(0, -1)))


@form(*over((2, 3, 4), ("n", 3), (4,)))
def zeros_like(shape: Shape, dtype: str) -> Models:
    """Ones of the shape of an input, and x itself plus them."""
    a, b = both(13, dtype)
    x = a.input("x", shape), b.input("x", shape)
    ones = a("ConstantOfShape", a("Shape", x[0]), value=numpy_helper.from_array(np.ones(1, np.float32)))
    return a.model(a("Add", x[0], ones)), b.model(b("Add", b.const(np.float64(1)), x[1]))


@form(*over((1, 2, 5, 6), ("n", 2, 4, 4)))
def pads_as_concat(shape: Shape, dtype: str) -> Models:
    """Rows of zeros by Pad and by Concat."""
    a, b = both(13, dtype)
    fixed = [1 if isinstance(size, str) else size for size in shape]
    x = a.input("x", fixed), b.input("x", fixed)
    zeros = b.const(np.zeros([fixed[0], fixed[1], 2, fixed[3]]))
    return a.model(a("Pad", x[0], a.ints(0, 0, 2, 0, 0, 0, 0, 0))), b.model(b("Concat", zeros, x[1], axis=2))


@form(*over((4, 4), (3, 5), (2, 3, 3)))
def triangle_as_choice(shape: Shape, dtype: str) -> Models:
    a, b = both(14, dtype)
    x = a.input("x", shape), b.input("x", shape)
    keep = np.triu(np.ones(shape[-2:], bool))  # type: ignore[arg-type]
    return a.model(a("Trilu", x[0])), b.model(b("Where", b.const(keep), x[1], b.const(np.float64(0))))


@form(*over((4, 3), (6, 2)))
def rows_by_gather_nd(shape: Shape, dtype: str) -> Models:
    a, b = both(13, dtype)
    x = a.input("x", shape), b.input("x", shape)
    rows = np.array([2, 0, 1])
    return a.model(a("Gather", x[0], a.const(rows), axis=0)), b.model(b("GatherND", x[1], b.const(rows[:, None])))
