"""Spellings of elementwise programs: activations by their formulas, choices, powers, limits, integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.spelled_net import Shape, both, form, over, weights

SHAPES = ((3, 4), ("n", 5), (2, 3, 4, 5))
Models = tuple[Any, Any]


@form(*over(*SHAPES, (7,), dtypes=("f32", "f64")))
def prelu_as_leaky(shape: Shape, dtype: str) -> Models:
    a, b = both(16, dtype)
    x = a.input("x", shape), b.input("x", shape)
    return a.model(a("PRelu", x[0], a.const(np.full(1, 0.25)))), b.model(b("LeakyRelu", x[1], alpha=0.25))


@form(*over(*SHAPES, dtypes=("f32", "f16")))
def leaky_as_where(shape: Shape, dtype: str) -> Models:
    a, b = both(16, dtype)
    x = a.input("x", shape), b.input("x", shape)
    chosen = b("Where", b("Less", x[1], b.const(np.float64(0))), b("Mul", x[1], b.const(np.float64(0.125))), x[1])
    return a.model(a("LeakyRelu", x[0], alpha=0.125)), b.model(chosen)


@form(*over((2, 6, 4), ("n", 6, 5), (2, 6, 3, 3)))
def prelu_of_channels_as_where(shape: Shape, dtype: str) -> Models:
    a, b = both(16, dtype)
    x = a.input("x", shape), b.input("x", shape)
    slope = weights(6, *[1] * (len(shape) - 2))
    chosen = b("Where", b("Less", x[1], b.const(np.float64(0))), b("Mul", b.const(slope), x[1]), x[1])
    return a.model(a("PRelu", x[0], a.const(slope))), b.model(chosen)


@form(*over(*SHAPES, dtypes=("f32", "f64")))
def leaky_as_parts(shape: Shape, dtype: str) -> Models:
    """max(x, 0) + a min(x, 0)."""
    a, b = both(16, dtype)
    x = a.input("x", shape), b.input("x", shape)
    zero = b.const(np.float64(0))
    parts = b("Add", b("Max", x[1], zero), b("Mul", b("Min", x[1], zero), b.const(np.float64(0.25))))
    return a.model(a("LeakyRelu", x[0], alpha=0.25)), b.model(parts)


@form(*over(*SHAPES, dtypes=("f32", "f16", "f64")))
def clip_as_extremes(shape: Shape, dtype: str) -> Models:
    a, b = both(13, dtype)
    x = a.input("x", shape), b.input("x", shape)
    limits = [net.const(np.float64(value)) for net in (a, b) for value in (0.0, 6.0)]
    return a.model(a("Clip", x[0], *limits[:2])), b.model(b("Min", b("Max", x[1], limits[2]), limits[3]))


@form(*over(*SHAPES))
def clip_by_attributes(shape: Shape, dtype: str) -> Models:
    a, b = both(6, dtype, other=13)
    x = a.input("x", shape), b.input("x", shape)
    return a.model(a("Clip", x[0], min=-1.0, max=2.0)), b.model(b("Clip", x[1], b.const(np.float64(-1)), b.const(np.float64(2))))


@form(*over(*SHAPES, dtypes=("f32", "f16")))
def relu_as_maximum(shape: Shape, dtype: str) -> Models:
    a, b = both(14, dtype)
    x = a.input("x", shape), b.input("x", shape)
    return a.model(a("Relu", x[0])), b.model(b("Max", b.const(np.zeros(1)), x[1]))


@form(*over(*SHAPES))
def hard_swish_as_product(shape: Shape, dtype: str) -> Models:
    a, b = both(14, dtype)
    x = a.input("x", shape), b.input("x", shape)
    return a.model(a("HardSwish", x[0])), b.model(b("Mul", x[1], b("HardSigmoid", x[1], alpha=1 / 6, beta=0.5)))


@form(*over(*SHAPES, dtypes=("f32",)))
def hard_swish_by_relu6(shape: Shape, dtype: str) -> Models:
    """x clip(x + 3, 0, 6) / 6."""
    a, b = both(14, dtype)
    x = a.input("x", shape), b.input("x", shape)
    limits = b.const(np.float64(0)), b.const(np.float64(6))
    six = b("Clip", b("Add", x[1], b.const(np.float64(3))), *limits)
    return a.model(a("HardSwish", x[0])), b.model(b("Div", b("Mul", x[1], six), limits[1]))


@form(*over(*SHAPES))
def hard_sigmoid_as_clip(shape: Shape, dtype: str) -> Models:
    a, b = both(14, dtype)
    x = a.input("x", shape), b.input("x", shape)
    line = b("Add", b("Mul", x[1], b.const(np.float64(0.25))), b.const(np.float64(0.5)))
    return a.model(a("HardSigmoid", x[0], alpha=0.25, beta=0.5)), b.model(b("Clip", line, b.const(np.float64(0)), b.const(np.float64(1))))


@form(*over(*SHAPES, dtypes=("f32", "f64")))
def gelu_by_erf(shape: Shape, dtype: str) -> Models:
    a, b = both(20, dtype)
    x = a.input("x", shape), b.input("x", shape)
    half = b("Mul", x[1], b.const(np.float64(0.5)))
    inner = b("Add", b("Erf", b("Div", x[1], b.const(np.sqrt(2.0)))), b.const(np.float64(1)))
    return a.model(a("Gelu", x[0])), b.model(b("Mul", half, inner))


@form(*over(*SHAPES))
def gelu_in_another_order(shape: Shape, dtype: str) -> Models:
    a, b = both(17, dtype)
    x = a.input("x", shape), b.input("x", shape)

    def inner(net: Any, x: str) -> str:
        return str(net("Add", net.const(np.float64(1)), net("Erf", net("Mul", x, net.const(np.sqrt(0.5))))))

    one = a("Mul", a("Mul", x[0], inner(a, x[0])), a.const(np.float64(0.5)))
    return a.model(one), b.model(b("Mul", b("Mul", b.const(np.float64(0.5)), x[1]), inner(b, x[1])))


@form(*over(*SHAPES, dtypes=("f32", "f64")))
def sigmoid_by_exp(shape: Shape, dtype: str) -> Models:
    a, b = both(13, dtype)
    x = a.input("x", shape), b.input("x", shape)
    one = b.const(np.float64(1))
    return a.model(a("Sigmoid", x[0])), b.model(b("Div", one, b("Add", one, b("Exp", b("Neg", x[1])))))


@form(*over(*SHAPES))
def swish_as_product(shape: Shape, dtype: str) -> Models:
    a, b = both(24, dtype)
    x = a.input("x", shape), b.input("x", shape)
    return a.model(a("Swish", x[0])), b.model(b("Mul", b("Sigmoid", x[1]), x[1]))


@form(*over(*SHAPES))
def softsign_as_quotient(shape: Shape, dtype: str) -> Models:
    a, b = both(13, dtype)
    x = a.input("x", shape), b.input("x", shape)
    return a.model(a("Softsign", x[0])), b.model(b("Div", x[1], b("Add", b("Abs", x[1]), b.const(np.float64(1)))))


@form(*over(*SHAPES))
def celu_as_elu(shape: Shape, dtype: str) -> Models:
    a, b = both(16, dtype)
    x = a.input("x", shape), b.input("x", shape)
    return a.model(a("Celu", x[0], alpha=1.0)), b.model(b("Elu", x[1], alpha=1.0))


@form(*over(*SHAPES))
def thresholded_as_where(shape: Shape, dtype: str) -> Models:
    a, b = both(16, dtype)
    x = a.input("x", shape), b.input("x", shape)
    chosen = b("Where", b("Greater", x[1], b.const(np.float64(0.75))), x[1], b.const(np.float64(0)))
    return a.model(a("ThresholdedRelu", x[0], alpha=0.75)), b.model(chosen)


@form(*over(*SHAPES, dtypes=("f32", "f64")))
def difference_as_sum(shape: Shape, dtype: str) -> Models:
    a, b = both(14, dtype)
    x, y = ([net.input(name, shape) for net in (a, b)] for name in "xz")
    return a.model(a("Sub", x[0], y[0])), b.model(b("Add", x[1], b("Neg", y[1])))


@form(*over(*SHAPES, dtypes=("f32", "f64")))
def quotient_by_a_number(shape: Shape, dtype: str) -> Models:
    a, b = both(14, dtype)
    x = a.input("x", shape), b.input("x", shape)
    return a.model(a("Div", x[0], a.const(np.float64(8)))), b.model(b("Mul", x[1], b.const(np.float64(0.125))))


@form(*over(*SHAPES, dtypes=("f32", "f64")))
def square_as_power(shape: Shape, dtype: str) -> Models:
    a, b = both(15, dtype)
    x = a.input("x", shape), b.input("x", shape)
    return a.model(a("Pow", x[0], a.const(np.float64(2)))), b.model(b("Mul", x[1], x[1]))


@form(*over(*SHAPES))
def cube_as_power(shape: Shape, dtype: str) -> Models:
    a, b = both(15, dtype)
    x = a.input("x", shape), b.input("x", shape)
    return a.model(a("Pow", x[0], a.const(np.float64(3)))), b.model(b("Mul", b("Mul", x[1], x[1]), x[1]))


@form(*over(*SHAPES, dtypes=("f32", "f64")))
def sums_of_numbers(shape: Shape, dtype: str) -> Models:
    """(x + 0.5) + 0.25, and x times 2 times 3, as one op each."""
    a, b = both(14, dtype)
    x = a.input("x", shape), b.input("x", shape)
    one = a(
        "Mul",
        a("Mul", a("Add", a("Add", x[0], a.const(np.float64(0.5))), a.const(np.float64(0.25))), a.const(np.float64(2))),
        a.const(np.float64(3)),
    )
    return a.model(one), b.model(b("Mul", b("Add", x[1], b.const(np.float64(0.75))), b.const(np.float64(6))))


@form(*over(*SHAPES))
def many_as_nested(shape: Shape, dtype: str) -> Models:
    """Sum, Max and Mean of three as ops of two."""
    a, b = both(13, dtype)
    given = [[net.input(name, shape) for name in ("x", "z", "w")] for net in (a, b)]
    one = [a(op, *given[0]) for op in ("Sum", "Max", "Mean")]
    x, z, w = given[1]
    total = b("Add", b("Add", x, z), w)
    return a.model(*one), b.model(total, b("Max", b("Max", x, z), w), b("Div", total, b.const(np.float64(3))))


@form(*over(*SHAPES))
def choice_by_the_other_condition(shape: Shape, dtype: str) -> Models:
    a, b = both(16, dtype)
    given = [[net.input(name, shape) for name in ("x", "z")] for net in (a, b)]
    one = a("Where", a("Not", a("Less", *given[0])), *given[0])
    return a.model(one), b.model(b("Where", b("Greater", given[1][1], given[1][0]), given[1][1], given[1][0]))


@form(*over(*SHAPES, dtypes=("f32", "i32")))
def at_most_as_not_above(shape: Shape, dtype: str) -> Models:
    """x <= z as x < z or x = z; bit by bit also for NaN."""
    a, b = both(16, dtype)
    given = [[net.input(name, shape) for name in ("x", "z")] for net in (a, b)]
    return a.model(a("LessOrEqual", *given[0]), dtypes=["bool"]), b.model(
        b("Or", b("Less", *given[1]), b("Equal", *given[1])), dtypes=["bool"]
    )


@form(*over(*SHAPES, dtypes=("bool",)))
def de_morgan(shape: Shape, dtype: str) -> Models:
    a, b = both(13, dtype)
    given = [[net.input(name, shape) for name in ("x", "z")] for net in (a, b)]
    return a.model(a("Not", a("And", *given[0]))), b.model(b("Or", *[b("Not", each) for each in given[1]]))


@form(*over(*SHAPES, dtypes=("bool",)))
def exclusive_as_inequality(shape: Shape, dtype: str) -> Models:
    a, b = both(13, dtype)
    given = [[net.input(name, shape) for name in ("x", "z")] for net in (a, b)]
    return a.model(a("Xor", *given[0])), b.model(b("Not", b("Equal", *given[1])))


@form(*over(*SHAPES, dtypes=("i32", "i64")))
def integers_distributed(shape: Shape, dtype: str) -> Models:
    a, b = both(14, dtype)
    given = [[net.input(name, shape) for name in ("x", "z", "w")] for net in (a, b)]
    x, z, w = given[1]
    return a.model(a("Mul", a("Add", *given[0][:2]), given[0][2])), b.model(b("Add", b("Mul", w, x), b("Mul", z, w)))


@form(*over(*SHAPES, dtypes=("u8", "u32")))
def shift_as_product(shape: Shape, dtype: str) -> Models:
    a, b = both(14, dtype)
    x = a.input("x", shape), b.input("x", shape)
    one = a("BitShift", x[0], a.const(np.array(3, a.numpy)), direction="LEFT")
    return a.model(one), b.model(b("Mul", x[1], b.const(np.array(8, b.numpy))))


@form(*over(*SHAPES, dtypes=("f32", "f16")))
def what_does_nothing(shape: Shape, dtype: str) -> Models:
    """Identity, a conversion to the same type, a Dropout that drops nothing."""
    a, b = both(13, dtype)
    x = a.input("x", shape), b.input("x", shape)
    code = {"f32": 1, "f16": 10}[dtype]
    return a.model(a("Tanh", a("Dropout", a("Cast", a("Identity", x[0]), to=code)))), b.model(b("Tanh", x[1]))


@form(*over(*SHAPES, dtypes=("f32", "f64")))
def shared_and_unused(shape: Shape, dtype: str) -> Models:
    """The same value computed twice, and one that nothing reads."""
    a, b = both(14, dtype)
    x = a.input("x", shape), b.input("x", shape)
    a("Cos", x[0])
    one = a("Sub", a("Tanh", x[0]), a("Mul", a("Tanh", x[0]), x[0]))
    tanh = b("Tanh", x[1])
    return a.model(one), b.model(b("Sub", tanh, b("Mul", x[1], tanh)))
