"""Spellings of linear algebra, convolutions, pooling and normalizations."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.spelled_net import Net, Shape, both, form, over, weights

Models = tuple[Any, Any]


@form(*over((3, 4), ("n", 6), (5, 2), dtypes=("f32", "f64")))
def gemm_as_product_and_sum(shape: Shape, dtype: str) -> Models:
    a, b = both(13, dtype)
    x = a.input("x", shape), b.input("x", shape)
    w, c = weights(int(shape[1]), 7), weights(7)
    return a.model(a("Gemm", x[0], a.const(w), a.const(c))), b.model(b("Add", b("MatMul", x[1], b.const(w)), b.const(c)))


@form(*over((3, 4), ("n", 6), (5, 2)))
def gemm_of_a_transposed_weight(shape: Shape, dtype: str) -> Models:
    a, b = both(13, dtype)
    x = a.input("x", shape), b.input("x", shape)
    w, c = weights(7, int(shape[1])), weights(7)
    one = a("Gemm", x[0], a.const(w), a.const(c), transB=1)
    return a.model(one), b.model(b("Gemm", x[1], b.const(np.ascontiguousarray(w.T)), b.const(c)))


@form(*over((2, 3, 4), ("n", 3, 6), (2, 5, 2)))
def product_of_rows_in_one(shape: Shape, dtype: str) -> Models:
    """A product of rank 3, and as one of rank 2 between reshapes."""
    a, b = both(13, dtype)
    x = a.input("x", shape), b.input("x", shape)
    _, rows, depth = shape
    w = weights(int(depth), 7)
    flat = b("MatMul", b("Reshape", x[1], b.ints(-1, int(depth))), b.const(w))
    return a.model(a("MatMul", x[0], a.const(w))), b.model(b("Reshape", flat, b.ints(-1, int(rows), 7)))


@form(*over((3, 4), ("n", 6), (5, 2)))
def scale_in_the_weight(shape: Shape, dtype: str) -> Models:
    a, b = both(13, dtype)
    x = a.input("x", shape), b.input("x", shape)
    w = weights(int(shape[1]), 7).astype(np.float32)
    one = a("MatMul", a("Mul", x[0], a.const(np.float64(0.5))), a.const(w))
    return a.model(one), b.model(b("MatMul", x[1], b.const(w * np.float32(0.5))))


@form(*over((3, 4), ("n", 6), (2, 5, 4)))
def projections_in_one(shape: Shape, dtype: str) -> Models:
    a, b = both(13, dtype)
    x = a.input("x", shape), b.input("x", shape)
    ws = [weights(int(shape[-1]), 4, seed=seed) for seed in range(3)]
    merged = b("Split", b("MatMul", x[1], b.const(np.concatenate(ws, 1))), b.ints(4, 4, 4), results=3, axis=-1)
    return a.model(*[a("MatMul", x[0], a.const(w)) for w in ws]), b.model(*merged)


@form(*over((3, 4), ("n", 6), (2, 5, 4)))
def product_of_a_sum(shape: Shape, dtype: str) -> Models:
    a, b = both(13, dtype)
    w = weights(int(shape[-1]), 5)
    given = [[net.input(name, shape) for name in ("x", "z")] for net in (a, b)]
    one = a("MatMul", a("Add", *given[0]), a.const(w))
    return a.model(one), b.model(b("Add", *[b("MatMul", each, b.const(w)) for each in given[1]]))


@form(*over((3, 4), ("n", 6), (2, 5, 4)))
def transposed_product(shape: Shape, dtype: str) -> Models:
    """(a b)^T as b^T a^T."""
    a, b = both(13, dtype)
    w = weights(int(shape[-1]), 5)
    x = a.input("x", shape), b.input("x", shape)
    turn = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
    one = a("Transpose", a("MatMul", x[0], a.const(w)), perm=turn)
    return a.model(one), b.model(b("MatMul", b.const(np.ascontiguousarray(w.T)), b("Transpose", x[1], perm=turn)))


@form({"equation": "ij,jk->ik"}, {"equation": "bij,bjk->bik"}, {"equation": "ij,kj->ik"}, {"equation": "bij,bkj->bki"},
      {"equation": "bhqd,bhkd->bhqk"})  # fmt: skip
def einsum_as_product(equation: str) -> Models:
    a, b = both(13)
    left, right = equation.split("->")[0].split(",")
    sizes = {"b": 2, "h": 3, "i": 4, "j": 5, "k": 6, "q": 4, "d": 5}
    shapes = [[sizes[letter] for letter in term] for term in (left, right)]
    given = [[net.input(name, shape) for name, shape in zip("xz", shapes, strict=True)] for net in (a, b)]
    out = equation.split("->")[1]
    x, z = given[1]
    flipped = right[-1] == left[-1]
    order = [*range(len(left) - 2), len(left) - 1, len(left) - 2]
    z = b("Transpose", z, perm=order) if flipped else z
    product = b("MatMul", x, z)
    product = b("Transpose", product, perm=order) if out[-1] == left[-2] else product
    return a.model(a("Einsum", *given[0], equation=equation)), b.model(product)


@form(*over((3, 4), ("n", 6), (2, 5, 4), (2, 3, 4, 5)))
def mean_as_sum(shape: Shape, dtype: str) -> Models:
    a, b = both(18, dtype)
    x = a.input("x", shape), b.input("x", shape)
    total = b("ReduceSum", x[1], b.ints(-1))
    return a.model(a("ReduceMean", x[0], a.ints(-1))), b.model(b("Div", total, b.const(np.float64(int(shape[-1])))))


@form(*over((2, 3, 4), ("n", 3, 4, 5), (2, 3, 4, 5)))
def reduce_by_version(shape: Shape, dtype: str) -> Models:
    """Axes as an attribute and as an operand, kept and squeezed."""
    a, b = both(13, dtype, other=18)
    x = a.input("x", shape), b.input("x", shape)
    one = [a(op, x[0], axes=[-1], keepdims=0) for op in ("ReduceMax", "ReduceMean")]
    return a.model(*one), b.model(*[b("Squeeze", b(op, x[1], b.ints(-1)), b.ints(-1)) for op in ("ReduceMax", "ReduceMean")])


@form(*over((2, 3, 4), ("n", 3, 4), (2, 3, 4, 5)))
def norms_by_formulas(shape: Shape, dtype: str) -> Models:
    a, b = both(18, dtype)
    x = a.input("x", shape), b.input("x", shape)
    one = [a(op, x[0], a.ints(-1)) for op in ("ReduceL1", "ReduceL2", "ReduceSumSquare")]
    squares = b("ReduceSum", b("Mul", x[1], x[1]), b.ints(-1))
    return a.model(*one), b.model(b("ReduceSum", b("Abs", x[1]), b.ints(-1)), b("Sqrt", squares), squares)


@form(*over((2, 3, 4), (2, 3, 4, 5), ("n", 3, 4, 5)))
def reduction_of_reductions(shape: Shape, dtype: str) -> Models:
    a, b = both(18, dtype)
    x = a.input("x", shape), b.input("x", shape)
    one = [a(op, x[0], a.ints(-1, -2), keepdims=0) for op in ("ReduceSum", "ReduceMean")]  # the runtime's ReduceMax may lose a NaN
    return a.model(*one), b.model(
        *[b(op, b(op, x[1], b.ints(-1), keepdims=0), b.ints(-1), keepdims=0) for op in ("ReduceSum", "ReduceMean")]
    )


@form(*over((2, 3, 4, 5), ("n", 3, 4, 5), (1, 2, 3, 3)))
def global_pool_as_mean(shape: Shape, dtype: str) -> Models:
    a, b = both(18, dtype)
    x = a.input("x", shape), b.input("x", shape)
    return a.model(a("GlobalAveragePool", x[0])), b.model(b("ReduceMean", x[1], b.ints(2, 3)))


@form(*over((2, 3, 4, 6), ("n", 2, 6, 4), (1, 1, 2, 2)))
def pools_by_blocks(shape: Shape, dtype: str) -> Models:
    """Pooling by windows that do not overlap as a reduction of blocks."""
    a, b = both(18, dtype)
    x = a.input("x", shape), b.input("x", shape)
    channels, high, wide = (int(size) for size in shape[1:])
    one = a("AveragePool", x[0], kernel_shape=[2, 2], strides=[2, 2])  # the runtime's MaxPool loses a NaN
    blocks = b("Reshape", x[1], b.ints(-1, channels, high // 2, 2, wide // 2, 2))
    return a.model(one), b.model(b("ReduceMean", blocks, b.ints(3, 5), keepdims=0))


def _conv_shapes(*values: tuple[Any, ...]) -> tuple[dict[str, Any], ...]:
    return tuple(dict(zip(("batch", "channels", "size", "kernel", "strides", "pads", "groups"), each, strict=True)) for each in values)


@form(*_conv_shapes((1, 3, 8, 3, 1, 0, 1), (2, 4, 9, 3, 2, 1, 1), ("n", 4, 7, 2, 1, 1, 2), (2, 6, 8, 5, 1, 2, 6), (1, 2, 5, 1, 1, 0, 1)))
def conv_of_lines_as_of_pictures(batch: Any, channels: int, size: int, kernel: int, strides: int, pads: int, groups: int) -> Models:
    a, b = both(13)
    x = [net.input("x", [batch, channels, size]) for net in (a, b)]
    w, c = weights(2 * groups, channels // groups, kernel), weights(2 * groups)
    one = a("Conv", x[0], a.const(w), a.const(c), strides=[strides], pads=[pads, pads], group=groups)
    wide = b(
        "Conv",
        b("Unsqueeze", x[1], b.ints(2)),
        b.const(w[:, :, None]),
        b.const(c),
        strides=[1, strides],
        pads=[0, pads, 0, pads],
        group=groups,
    )
    return a.model(one), b.model(b("Squeeze", wide, b.ints(2)))


@form(*_conv_shapes((1, 3, 6, 3, 1, 1, 1), (2, 4, 7, 3, 2, 1, 2), ("n", 4, 5, 2, 1, 2, 1), (2, 3, 6, 5, 1, 2, 3)))
def padding_in_the_convolution(batch: Any, channels: int, size: int, kernel: int, strides: int, pads: int, groups: int) -> Models:
    a, b = both(13)
    x = [net.input("x", [batch, channels, size, size]) for net in (a, b)]
    w = weights(2 * groups, channels // groups, kernel, kernel)
    padded = a("Pad", x[0], a.ints(0, 0, pads, pads, 0, 0, pads, pads))
    return a.model(a("Conv", padded, a.const(w), strides=[strides] * 2, group=groups)), b.model(
        b("Conv", x[1], b.const(w), strides=[strides] * 2, pads=[pads] * 4, group=groups)
    )


@form(*_conv_shapes((1, 3, 6, 3, 1, 1, 1), (2, 4, 7, 3, 2, 0, 2), ("n", 4, 5, 2, 1, 1, 1), (2, 3, 6, 3, 1, 1, 3)))
def normalization_in_the_convolution(batch: Any, channels: int, size: int, kernel: int, strides: int, pads: int, groups: int) -> Models:
    a, b = both(15)
    x = [net.input("x", [batch, channels, size, size]) for net in (a, b)]
    outs = 2 * groups
    w = weights(outs, channels // groups, kernel, kernel)
    scale, shift, mean = weights(outs), weights(outs, seed=1), weights(outs, seed=2)
    variance = np.abs(weights(outs, seed=3)) + 0.5
    conv = a("Conv", x[0], a.const(w), strides=[strides] * 2, pads=[pads] * 4, group=groups)
    one = a("BatchNormalization", conv, *map(a.const, (scale, shift, mean, variance)), epsilon=1e-3)
    factor = scale / np.sqrt(variance + 1e-3)
    folded = w * factor[:, None, None, None], shift - mean * factor
    return a.model(one), b.model(b("Conv", x[1], *map(b.const, folded), strides=[strides] * 2, pads=[pads] * 4, group=groups))


@form(*over((2, 3, 4, 5), ("n", 6, 4, 5), (2, 3, 8), dtypes=("f32",)))
def normalization_as_scale_and_shift(shape: Shape, dtype: str) -> Models:
    a, b = both(15, dtype)
    x = a.input("x", shape), b.input("x", shape)
    count = int(shape[1])
    scale, shift, mean = (weights(count, seed=seed) for seed in range(3))
    variance = np.abs(weights(count, seed=3)) + 0.5
    one = a("BatchNormalization", x[0], *map(a.const, (scale, shift, mean, variance)), epsilon=1e-3)
    tail = [count] + [1] * (len(shape) - 2)
    factor = scale / np.sqrt(variance + 1e-3)
    line = b("Add", b("Mul", x[1], b.const(factor.reshape(tail))), b.const((shift - mean * factor).reshape(tail)))
    return a.model(one), b.model(line)


@form(*_conv_shapes((1, 3, 6, 1, 1, 0, 1), (2, 4, 3, 1, 1, 0, 1), ("n", 4, 5, 1, 1, 0, 1)))
def pointwise_convolution_as_product(batch: Any, channels: int, size: int, kernel: int, strides: int, pads: int, groups: int) -> Models:
    a, b = both(13)
    x = [net.input("x", [batch, channels, size, size]) for net in (a, b)]
    w = weights(5, channels, 1, 1)
    rows = b("Transpose", x[1], perm=[0, 2, 3, 1])
    product = b("MatMul", rows, b.const(np.ascontiguousarray(w[:, :, 0, 0].T)))
    return a.model(a("Conv", x[0], a.const(w))), b.model(b("Transpose", product, perm=[0, 3, 1, 2]))


@form(*_conv_shapes((1, 4, 6, 3, 1, 1, 2), (2, 6, 7, 3, 2, 0, 2), (1, 6, 5, 2, 1, 1, 3)))
def groups_apart(batch: Any, channels: int, size: int, kernel: int, strides: int, pads: int, groups: int) -> Models:
    """A convolution in groups as one of each part."""
    a, b = both(18)
    x = [net.input("x", [batch, channels, size, size]) for net in (a, b)]
    w = weights(2 * groups, channels // groups, kernel, kernel)
    parts = b("Split", x[1], results=groups, axis=1, num_outputs=groups)
    convs = [b("Conv", part, b.const(w[2 * at : 2 * at + 2]), strides=[strides] * 2, pads=[pads] * 4) for at, part in enumerate(parts)]
    return a.model(a("Conv", x[0], a.const(w), strides=[strides] * 2, pads=[pads] * 4, group=groups)), b.model(b("Concat", *convs, axis=1))


@form(*over((3, 8), ("n", 8), (2, 3, 8), dtypes=("f32", "f64")))
def softmax_by_steps(shape: Shape, dtype: str) -> Models:
    a, b = both(13, dtype, other=18)
    x = a.input("x", shape), b.input("x", shape)
    shifted = b("Exp", b("Sub", x[1], b("ReduceMax", x[1], b.ints(-1))))
    return a.model(a("Softmax", x[0], axis=-1)), b.model(b("Div", shifted, b("ReduceSum", shifted, b.ints(-1))))


@form(*over((3, 8), ("n", 8), (2, 3, 8)))
def softmax_of_the_other_axis(shape: Shape, dtype: str) -> Models:
    a, b = both(13, dtype)
    x = a.input("x", shape), b.input("x", shape)
    turn = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
    return a.model(a("Softmax", x[0], axis=-2)), b.model(b("Transpose", b("Softmax", b("Transpose", x[1], perm=turn)), perm=turn))


@form(*over((2, 3, 4, 5), ("n", 3, 4), (3, 8)))
def softmax_of_the_old_kind(shape: Shape, dtype: str) -> Models:
    """Before version 13 the axes from one on were taken as one."""
    a, b = both(11, dtype, other=13)
    x = a.input("x", shape), b.input("x", shape)
    flat = b("Softmax", b("Flatten", x[1], axis=1), axis=-1)
    return a.model(a("Softmax", x[0], axis=1)), b.model(b("Reshape", flat, b.ints(-1, *[int(size) for size in shape[1:]])))


@form(*over((3, 8), ("n", 8), (2, 3, 8)))
def log_softmax_by_steps(shape: Shape, dtype: str) -> Models:
    a, b = both(13, dtype, other=18)
    x = a.input("x", shape), b.input("x", shape)
    shifted = b("Sub", x[1], b("ReduceMax", x[1], b.ints(-1)))
    return a.model(a("LogSoftmax", x[0], axis=-1)), b.model(b("Sub", shifted, b("Log", b("ReduceSum", b("Exp", shifted), b.ints(-1)))))


def _centered(net: Net, x: str, axes: tuple[int, ...], epsilon: float) -> str:
    """(x - mean) / sqrt(variance + epsilon)."""
    centered = net("Sub", x, net("ReduceMean", x, net.ints(*axes)))
    variance = net("ReduceMean", net("Mul", centered, centered), net.ints(*axes))
    return str(net("Div", centered, net("Sqrt", net("Add", variance, net.const(np.float64(epsilon))))))


@form(*over((3, 8), ("n", 8), (2, 3, 8)))
def layer_norm_by_steps(shape: Shape, dtype: str) -> Models:
    a, b = both(18, dtype)
    x = a.input("x", shape), b.input("x", shape)
    scale, shift = weights(8), weights(8, seed=1)
    one = a("LayerNormalization", x[0], a.const(scale), a.const(shift), axis=-1, epsilon=1e-5)
    return a.model(one), b.model(b("Add", b("Mul", _centered(b, x[1], (-1,), 1e-5), b.const(scale)), b.const(shift)))


@form(*over((2, 3, 4, 5), ("n", 3, 4, 5), (2, 4, 6)))
def instance_norm_by_steps(shape: Shape, dtype: str) -> Models:
    a, b = both(18, dtype)
    x = a.input("x", shape), b.input("x", shape)
    count = int(shape[1])
    scale, shift = weights(count), weights(count, seed=1)
    one = a("InstanceNormalization", x[0], a.const(scale), a.const(shift), epsilon=1e-5)
    tail = [count] + [1] * (len(shape) - 2)
    inner = _centered(b, x[1], tuple(range(2, len(shape))), 1e-5)
    return a.model(one), b.model(b("Add", b("Mul", inner, b.const(scale.reshape(tail))), b.const(shift.reshape(tail))))


@form(*over((2, 4, 3, 5), (1, 6, 4, 4), ("n", 4, 3, 5)))
def group_norm_by_instances(shape: Shape, dtype: str) -> Models:
    a, b = both(21, dtype)
    x = a.input("x", shape), b.input("x", shape)
    count = int(shape[1])
    scale, shift = weights(count), weights(count, seed=1)
    one = a("GroupNormalization", x[0], a.const(scale), a.const(shift), num_groups=2, epsilon=1e-5)
    groups = b("Reshape", x[1], b.ints(-1, 2, count // 2 * int(shape[2]) * int(shape[3])))
    ones, zeros = b.const(np.ones(2)), b.const(np.zeros(2))
    inner = b("Reshape", b("InstanceNormalization", groups, ones, zeros, epsilon=1e-5), b.ints(-1, *[int(size) for size in shape[1:]]))
    return a.model(one), b.model(b("Add", b("Mul", inner, b.const(scale.reshape(-1, 1, 1))), b.const(shift.reshape(-1, 1, 1))))


@form(*over((3, 8), ("n", 8), (2, 3, 8)))
def rms_norm_by_steps(shape: Shape, dtype: str) -> Models:
    a, b = both(23, dtype)
    x = a.input("x", shape), b.input("x", shape)
    scale = weights(8)
    one = a("RMSNormalization", x[0], a.const(scale), axis=-1, epsilon=1e-5)
    mean = b("ReduceMean", b("Mul", x[1], x[1]), b.ints(-1))
    root = b("Sqrt", b("Add", mean, b.const(np.float64(1e-5))))
    return a.model(one), b.model(b("Mul", b("Div", x[1], root), b.const(scale)))
