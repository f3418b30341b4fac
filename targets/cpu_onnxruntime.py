"""This machine's CPU under ONNX Runtime: rates measured by `benchmarks/cpu_rates.py`, legality read from ORT's kernel table."""

from __future__ import annotations

from coset.targets.running import Sessions
from coset.targets.target import EVERY, Curve, Form, Kernel, Rate, Storing, Target, register

MEASURED = (
    "ONNX Runtime 1.31.1, 2 threads of an Intel Xeon with AVX-512 (family 6, model 167; 2 x 2 MiB L2), 2026-11-21, least of many, machine "
    "shared: `python benchmarks/cpu_rates.py --seconds 0.5`; measure again on a quiet machine"
)
KERNELS_OF_ORT = "onnxruntime 1.31.1, capi.onnxruntime_pybind11_state.get_all_opkernel_def(), provider CPUExecutionProvider"


def _seconds(value: float) -> Rate:
    return Rate(value, "s", MEASURED)


def _elements(f32: float, f64: float | None = None) -> dict[str, Rate]:
    """Elements a second; twice the width, half the rate, where f64 was not measured."""
    return {EVERY: Rate(f32, "element/s", MEASURED), "f64": Rate(f64 or f32 / 2, "element/s", MEASURED)}


def _curve(*points: tuple[float, float], x: str = "B", unit: str = "B/s") -> Curve:
    return Curve(points, x, unit, MEASURED)


LAUNCH = _seconds(0.25e-6)
STREAM = _curve((1e4, 60e9), (2e5, 110e9), (1e6, 120e9), (4e6, 90e9), (1.2e7, 55e9), (5e7, 22e9), (2e8, 14e9))
COPY = _curve((5e4, 60e9), (1.2e6, 80e9), (4e6, 50e9), (1.5e7, 25e9), (5e7, 15e9))
BLOCKS = _curve((1e5, 43e9), (8e5, 52e9), (3.2e6, 35e9), (1.5e7, 18e9), (5e7, 14e9))
SWAPS = _curve((3e4, 44e9), (8e5, 40e9), (2e6, 18e9), (8e6, 4.6e9), (3.4e7, 3.2e9))
ROWS = _curve((6e4, 35e9), (1e6, 50e9), (6e6, 32e9), (5e7, 15e9))
WEIGHTS = _curve((3e4, 60e9), (3e5, 106e9), (4.2e6, 120e9), (9.5e6, 59e9), (3e7, 50e9))
FEW_ROWS = _curve((1, 0.16), (2, 0.29), (4, 0.5), (8, 0.75), (16, 0.94), (64, 1.0), x="rows", unit="share")
# A product of 0.1 MFLOP or more is shared out among the threads, which costs about 2.5 us
LITTLE_PRODUCT = _curve(
    (1e5, 0.4), (1.3e5, 0.12), (2.6e5, 0.24), (5.2e5, 0.37), (1e6, 0.5), (2e6, 0.52), (4e6, 0.65), (1.7e7, 0.68), (6e7, 1.0),
    x="FLOP", unit="share",
)  # fmt: skip
LITTLE_WORK = _curve((5e5, 0.4), (1.7e7, 0.6), (6e7, 1.0), x="FLOP", unit="share")

# Attention with its projections, by what makes it as much faster or slower than the parts as `python -m benchmarks.cpu_attention
# --threads 1` found it to be: 0.5 to 0.8 of their time up to 4 MFLOP, 0.9 to 1.0 up to 200, slower from 500 on (768 wide)
LITTLE_ATTENTION = _curve(
    (2e5, 0.3), (2e6, 0.45), (1.4e7, 0.6), (4e7, 0.7), (1e8, 0.78), (2e8, 0.87), (5e8, 1.0), x="FLOP", unit="share"
)  # fmt: skip


def _products(f32: float) -> dict[str, Rate]:
    """FLOP/s of MLAS, half of it in f64, Eigen's loops for integers."""
    table = {EVERY: f32 / 8, "f32": f32, "f64": f32 * 0.46, "i32": 17e9, "i64": 5.4e9}
    return {name: Rate(value, "FLOP/s", MEASURED) for name, value in table.items()}


KERNELS = {
    "nothing": Kernel(Rate(0.0, "s", "no node is printed")),
    "host": Kernel(LAUNCH),  # Reshape and the like: a node that moves no bytes
    "add": Kernel(LAUNCH, bandwidth=STREAM),
    "divide": Kernel(LAUNCH, _elements(5e9), STREAM),  # and the square root
    "exponential": Kernel(LAUNCH, _elements(7.7e9, 2e9), STREAM),
    "tanh": Kernel(LAUNCH, _elements(3.6e9, 0.5e9), STREAM),
    "erf": Kernel(LAUNCH, _elements(2.5e9), STREAM),
    "elu": Kernel(LAUNCH, _elements(1.3e9), STREAM),
    "logarithm": Kernel(LAUNCH, _elements(0.7e9), STREAM),  # and the trigonometric ones
    "power": Kernel(LAUNCH, _elements(0.23e9), STREAM),
    "remainder": Kernel(LAUNCH, _elements(0.13e9), STREAM),  # and softplus
    "select": Kernel(LAUNCH, _elements(3.1e9, 2e9), STREAM),
    "convert": Kernel(LAUNCH, _elements(12e9), STREAM),
    "copy": Kernel(_seconds(0.35e-6), bandwidth=COPY),
    "transpose": Kernel(LAUNCH, bandwidth=BLOCKS),
    "transpose_inner": Kernel(LAUNCH, bandwidth=SWAPS),
    "reverse": Kernel(_seconds(0.35e-6), bandwidth=_curve((4e5, 12.6e9), (6e6, 11e9))),
    "softmax": Kernel(_seconds(0.3e-6), _elements(4.4e9), ROWS),
    "normalize": Kernel(_seconds(0.3e-6), _elements(2.5e9), ROWS),
    "scale": Kernel(_seconds(0.3e-6), _elements(6.3e9), STREAM),
    "reduce": Kernel(_seconds(0.5e-6), _elements(6e9), ROWS),
    "reduce_outer": Kernel(_seconds(0.5e-6), _elements(2.5e9), ROWS),
    "matmul": Kernel(_seconds(0.3e-6), _products(400e9), WEIGHTS, FEW_ROWS, LITTLE_PRODUCT),
    # Gemm copies its summand to the result first, and turns a left operand that is transposed; from 10 kB on both by threads
    "summand": Kernel(_seconds(0.0), bandwidth=_curve((1e3, 20e9), (4e3, 30e9), (9e3, 7e9), (2.6e5, 10e9), (2e6, 9e9))),
    "conv": Kernel(_seconds(0.4e-6), _products(440e9), WEIGHTS, None, LITTLE_WORK),
    "conv_plain": Kernel(_seconds(0.4e-6), _products(270e9), WEIGHTS, None, LITTLE_WORK),  # im2col and a matmul
    "conv_grouped": Kernel(_seconds(0.4e-6), _products(280e9), WEIGHTS, None, LITTLE_WORK),
    "conv_depthwise": Kernel(_seconds(0.4e-6), _products(210e9), STREAM, None, LITTLE_WORK),
    "conv_unblocked": Kernel(_seconds(0.6e-6), _products(60e9), STREAM),
    "attention": Kernel(_seconds(2e-6), _products(350e9), WEIGHTS, FEW_ROWS, LITTLE_ATTENTION),
    "opaque": Kernel(_seconds(1e-6), bandwidth=ROWS),
}

# ---------------------------------------------------------------- legality


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


FLOATS = _set("f32 f64")
F32 = _set("f32")
BOOLS = _set("bool")
INTEGERS = _set("i8 i16 i32 i64 u8 u16 u32 u64")
NUMBERS = FLOATS | INTEGERS
EXTREMES = NUMBERS - _set("i16 u16")
MOVED = NUMBERS | _set("f16 bf16 bool string")  # Transpose, Slice, Concat, Reshape
PADDED = FLOATS | _set("i8 i32 i64 u8 u32 u64 bool")
SUMMED = FLOATS | _set("i32 i64")
CHOSEN = FLOATS | _set("i32 i64 i8 u8 u32")
SHIFTED = _set("u8 u32 u64")
MULTIPLIED = SUMMED | _set("u32 u64")
BOTH = frozenset({0, 1})


def _unary(kernel: str, dtypes: frozenset[str], *, nodes: int = 1) -> tuple[Form, ...]:
    return (Form(kernel, dtypes, nodes=nodes),)


def _binary(kernel: str, dtypes: frozenset[str], *, nodes: int = 1) -> tuple[Form, ...]:
    return (Form(kernel, dtypes, nodes=nodes, views=BOTH),)


_ELEMENTWISE: dict[str, tuple[Form, ...]] = {
    "stablehlo.abs": _unary("add", NUMBERS),
    "stablehlo.negate": _unary("add", NUMBERS - SHIFTED - _set("u16")),
    "stablehlo.sign": _unary("add", NUMBERS | _set("f16 bf16")),
    "stablehlo.floor": _unary("divide", FLOATS),
    "stablehlo.ceil": _unary("divide", FLOATS),
    "stablehlo.round_nearest_even": _unary("divide", FLOATS),
    "stablehlo.sqrt": _unary("divide", FLOATS),
    "stablehlo.rsqrt": _unary("divide", FLOATS, nodes=2),
    "stablehlo.exponential": _unary("exponential", FLOATS),
    "stablehlo.exponential_minus_one": _unary("exponential", FLOATS, nodes=5),
    "stablehlo.log": _unary("logarithm", FLOATS),
    "stablehlo.log_plus_one": _unary("logarithm", FLOATS, nodes=9),
    "stablehlo.logistic": _unary("tanh", FLOATS),
    "stablehlo.tanh": _unary("tanh", FLOATS),
    "stablehlo.tan": _unary("logarithm", F32),
    "stablehlo.sine": _unary("logarithm", FLOATS),
    "stablehlo.cosine": _unary("logarithm", FLOATS),
    "stablehlo.not": _unary("add", BOOLS | INTEGERS),
    "stablehlo.is_finite": _unary("add", FLOATS | _set("f16 bf16"), nodes=3),
    "chlo.erf": _unary("erf", F32),
    **{f"chlo.{name}": _unary("logarithm", F32) for name in ("asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh")},
    "chlo.is_nan": _unary("add", FLOATS | _set("f16 bf16")),
    "chlo.is_inf": _unary("add", FLOATS | _set("f16 bf16")),
    "stablehlo.add": _binary("add", NUMBERS | BOOLS),
    "stablehlo.subtract": _binary("add", NUMBERS),
    "stablehlo.multiply": _binary("add", NUMBERS | BOOLS),
    "stablehlo.divide": _binary("divide", NUMBERS),
    "stablehlo.remainder": _binary("remainder", NUMBERS | _set("f16")),
    "stablehlo.power": _binary("power", SUMMED),
    "stablehlo.maximum": _binary("add", EXTREMES | BOOLS | _set("f16")),
    "stablehlo.minimum": _binary("add", EXTREMES | BOOLS | _set("f16")),
    "stablehlo.and": _binary("add", BOOLS | INTEGERS),
    "stablehlo.or": _binary("add", BOOLS | INTEGERS),
    "stablehlo.xor": _binary("add", BOOLS | INTEGERS),
    "stablehlo.shift_left": _binary("add", SHIFTED),
    "stablehlo.shift_right_logical": _binary("add", SHIFTED),
    "stablehlo.compare": _binary("add", NUMBERS | BOOLS | _set("string")),
    "stablehlo.select": (Form("select", CHOSEN, views=frozenset({0, 1, 2}), typed=1),),
    "stablehlo.clamp": (Form("add", EXTREMES, views=frozenset({0, 2}), typed=1, nodes=2),),
    "stablehlo.convert": (Form("convert"),),
}

_MOVEMENT: dict[str, tuple[Form, ...]] = {
    "stablehlo.broadcast_in_dim": (Form("copy", MOVED),),
    "stablehlo.reshape": (Form("host"),),
    "stablehlo.transpose": (Form("transpose", conditions=("last_dim_stays",)), Form("transpose_inner")),
    "stablehlo.slice": (Form("copy", MOVED, joint=True),),
    "stablehlo.concatenate": (Form("copy", MOVED),),
    "stablehlo.pad": (Form("copy", PADDED, ("interior=0",)),),
    "stablehlo.reverse": (Form("reverse", MOVED),),
    "stablehlo.iota": (Form("copy", SUMMED, nodes=3),),
}

_CONTRACTIONS: dict[str, tuple[Form, ...]] = {
    "stablehlo.dot_general": (
        Form("matmul", MULTIPLIED, ("matmul", "batched"), views=BOTH, kept=2),
        Form("matmul", MULTIPLIED, ("matmul",)),
        Form("matmul", FLOATS, ("matmul_swapped",)),
        Form("matmul", SUMMED, reorder="transpose_inner", nodes=2),
    ),
    "onnx.Gemm": (
        Form("matmul", FLOATS, ("no_summand", "left_as_it_is"), views=frozenset({2})),
        Form("matmul", FLOATS, ("left_as_it_is",), views=frozenset({2}), passes=(("summand", -1),)),
        Form("matmul", FLOATS, ("no_summand",), views=frozenset({2}), passes=(("summand", 0),)),
        Form("matmul", FLOATS, views=frozenset({2}), passes=(("summand", 0), ("summand", -1))),
    ),
}


def _convolutions(*conditions: str) -> tuple[Form, ...]:
    return (
        Form("conv_depthwise", F32, (*conditions, "depthwise", "filled")),
        Form("conv", F32, (*conditions, "blocked", "ungrouped")),
        Form("conv_plain", F32, (*conditions, "ungrouped")),
        Form("conv_grouped", F32, (*conditions, "blocked")),
        Form("conv_unblocked", F32, conditions),
    )


_CONVOLUTIONS = {
    "onnx.Conv": _convolutions(),
    "stablehlo.convolution": _convolutions("lhs_dilation=1", "batch_group_count=1"),
}

_ROWS: dict[str, tuple[Form, ...]] = {
    "stablehlo.reduce": (
        Form("reduce", SUMMED, ("sum", "last_dim")),
        Form("reduce_outer", SUMMED, ("numeric_combiner",)),
        Form("reduce_outer", SUMMED | _set("i8 u8"), ("extreme_combiner",)),
        Form("reduce_outer", BOOLS, ("bool_combiner",), nodes=3),
    ),
    "onnx.ReduceMean": (Form("reduce", SUMMED, ("last_dim",)), Form("reduce_outer", SUMMED)),
    **dict.fromkeys(
        ("onnx.ReduceL1", "onnx.ReduceL2", "onnx.ReduceSumSquare"), (Form("reduce", SUMMED, ("last_dim",)), Form("reduce_outer", SUMMED))
    ),
    **dict.fromkeys(("onnx.ReduceLogSum", "onnx.ReduceLogSumExp"), (Form("opaque"),)),  # not measured
    "onnx.GlobalAveragePool": (Form("reduce", F32),),
    "onnx.Softmax": (Form("softmax", FLOATS),),
    "onnx.LogSoftmax": (Form("softmax", FLOATS),),
    "onnx.LayerNormalization": (Form("normalize", FLOATS | _set("f16 bf16")),),
    "onnx.BatchNormalization": (Form("scale", FLOATS),),
    "onnx.RMSNormalization": (Form("normalize", FLOATS | _set("f16")),),
    "onnx.InstanceNormalization": (Form("normalize", F32),),
    # no kernel: a function of the standard, which the runtime writes out (by running version 21 of it and looking)
    "onnx.GroupNormalization": (Form("normalize", FLOATS, nodes=28),),
}

_ATTENTION: dict[str, tuple[Form, ...]] = {
    "ort.MultiHead": (),  # it is looked for, but MultiHeadAttention takes 0.9 to 1.07 of the time of its parts: never chosen
    "ort.SelfAttention": (Form("attention", F32),),
}

_ACTIVATIONS: dict[str, tuple[Form, ...]] = {
    "onnx.Relu": _unary("add", FLOATS | _set("i8 i32")),
    "onnx.Clip": _unary("add", EXTREMES | _set("f16")),
    "onnx.LeakyRelu": _unary("add", F32),
    "onnx.HardSigmoid": _unary("add", F32),
    "onnx.HardSwish": _unary("divide", F32, nodes=2),
    "onnx.Elu": _unary("elu", F32),
    "onnx.Selu": _unary("elu", F32),
    "onnx.Gelu": _unary("erf", F32),
    "onnx.Swish": _unary("tanh", FLOATS, nodes=4),  # written out by the runtime: Cast, Mul, Sigmoid, Mul
    "onnx.Softplus": _unary("remainder", F32),
    "onnx.Mish": _unary("remainder", F32, nodes=3),
}

_BUILTINS: dict[str, tuple[Form, ...]] = {
    **{f"builtin.{name}": (Form("nothing"),) for name in ("input", "constant", "absent", "token", "tuple", "get", "parameter")},
    "builtin.dims": (Form("host", nodes=4),),  # Shape, Gather, arithmetic, Concat over host integers
    **dict.fromkeys(("builtin.opaque", "onnx.node"), (Form("opaque"),)),
}

# ---------------------------------------------------------------- constants

STORING = Storing(kept=frozenset({"DequantizeLinear"}))  # ONNX Runtime takes it into its int8 kernels (QLinearConv, QLinearMatMul, QGemm)

# ---------------------------------------------------------------- running

SESSIONS = Sessions(
    levels=("all", "basic", "off"),
    disabled={
        "SkipLayerNormFusion": (
            "SkipLayerNormalization is slower than Add and LayerNormalization: level all without it took 0.87 to 0.90 of the processor "
            "time of one thread on bert_12l_d192, onnxruntime 1.31.1, 2026-11-21, blocks in turn; no other optimizer left out did"
        ),
        "MatMulAddFusion": (
            "a product of three dims and a bias becomes Reshape, Gemm, Reshape: 3 % lost on three ViTs and gpt2_4l_d256_static on two "
            "quiet threads (benchmarks/results/headroom-2cpu-2026-11-21.txt, finding 5). Of two dims it becomes one Gemm with the "
            "activation after it, which taso_nasrnn_narrow wants: 0.37 ms of processor time, 0.39 without"
        ),
    },
    stacked=frozenset({"MatMulAddFusion"}),
    alone=Rate(
        25e-6,
        "s",
        "chains of 4 to 16 products and activations, two threads against one, 10th percentiles of blocks in turn, 2026-11-21: one thread "
        "takes 0.91 to 0.99 of the time of two where that is under 25 us, 1.1 to 3.2 of it from 38 us on where products are large",
    ),
)

register(
    Target(
        name="cpu-onnxruntime",
        title="this machine's CPU under ONNX Runtime",
        dialect="onnx",
        kernels=KERNELS,
        forms={**_ELEMENTWISE, **_MOVEMENT, **_CONTRACTIONS, **_CONVOLUTIONS, **_ROWS, **_ATTENTION, **_ACTIVATIONS, **_BUILTINS},
        default=Form("opaque"),
        casts={"f16": "f32"},
        numbers={
            "threads": Rate(2, "threads", "lscpu"),
            "l1": Rate(48 * 1024, "B a core", "lscpu"),
            "l2": Rate(2 * 1024**2, "B a core", "lscpu"),
            "l3": Rate(480 * 1024**2, "B, shared with the host's other guests", "lscpu"),
        },
        folds_constants=True,
        merges=Rate(
            4,
            "rows",
            "merge_projections of benchmarks/hand on optimized models, blocks in turn, 2026-11-21: taso_nasrnn_narrow (1 row) takes 0.60 "
            "of the time, bert_12l_d192, bert_2l and vit_ti16 (128 to 197 rows) take 1.01 to 1.02: Split costs a copy, and the products "
            "gain nothing",
        ),
        storing=STORING,
        sessions=SESSIONS,
        notes=(
            f"Element types: {KERNELS_OF_ORT}. f16 is cast to f32 around each kernel by the runtime. Elementwise kernels broadcast as "
            "NumPy does, so a broadcast operand of theirs is not materialised. A Reshape moves no bytes. A transpose of the last two dims "
            "in front of a matmul is fused (measured: 246 us with and without). Activations after a convolution or a matmul are fused "
            "too; they cost so little beside it (1 %) that the model charges them in full."
        ),
    )
)
