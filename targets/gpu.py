"""What GPUs under torch and Triton have in common: the kernels that ops become, the shapes of the curves, and how a GPU's data becomes a
target. A file beside this gives one GPU's numbers. Coarse: see `NOTES`."""

from __future__ import annotations

from collections.abc import Mapping

from coset.targets.target import EVERY, Curve, Form, Kernel, Rate, Storing, Target

ASSUMED = "assumed until measured: the order of magnitude that launches in a stream are known to cost"
NOTIONAL = "assumed until measured: a share of the bandwidth that grows with the bytes in flight; full from 64 MB on"
FUSED = "assumed: elementwise ops and movement are fused into neighbours, so that one in four touches memory"
GUIDE = "published, not measured: CUDA C++ Programming Guide, compute capability {}"
NOTES = (
    "Coarse: extraction prices one op at a time, while `lowering/plan.py` fuses elementwise ops, movement and reductions into one "
    "kernel. So elementwise ops and movement are priced without a launch and at four times the memory's bandwidth. No number is "
    "measured: benchmarks/gpu.py is to replace the assumed ones."
)
REACHED = 0.85  # what copies reach of the memory's bandwidth: the goal of the kernels, not a measurement
STORING = Storing(growth=1.0, small=1 << 14)  # a transposed or narrowed weight, a scale of a row; not an int8 weight as f32
LAUNCH = Rate(3e-6, "s", ASSUMED)
NO_LAUNCH = Rate(0.0, "s", FUSED)
LITTLE_WORK = Curve(((1e7, 0.02), (1e9, 0.3), (3e10, 1.0)), "FLOP", "share", "assumed until measured: all processors fill with work")


def gpu(
    name: str,
    title: str,
    *,
    bandwidth: Rate,
    flops: Mapping[str, float],
    flops_source: str,
    functions: Rate,
    rows: Curve,
    numbers: Mapping[str, Rate],
) -> Target:
    """The target of one GPU. `bandwidth` in B/s; `flops` by dtype, dense, in FLOP/s, with `EVERY`; `functions`: special functions in
    element/s; `rows`: the share of the rate that a product with few rows reaches; `numbers`: further facts."""
    rates = {dtype: Rate(value, "FLOP/s", flops_source) for dtype, value in flops.items()}
    stream, inline, strided = (
        _scaled(bandwidth.value * REACHED * share, source) for share, source in ((1, NOTIONAL), (4, FUSED), (0.5, NOTIONAL))
    )
    kernels = {
        "nothing": Kernel(Rate(0.0, "s", "no kernel is launched")),
        "host": Kernel(Rate(0.0, "s", "numbers of the host, and views")),
        "pointwise": Kernel(NO_LAUNCH, bandwidth=inline),
        "function": Kernel(NO_LAUNCH, {EVERY: functions}, inline),
        "movement": Kernel(NO_LAUNCH, bandwidth=inline),
        "reduce": Kernel(LAUNCH, bandwidth=stream),
        "matmul": Kernel(LAUNCH, rates, stream, rows, LITTLE_WORK),
        "conv": Kernel(LAUNCH, rates, stream, None, LITTLE_WORK),
        "gather": Kernel(LAUNCH, bandwidth=strided),
        "library": Kernel(Rate(1e-5, "s", ASSUMED), bandwidth=strided),
        "loop": Kernel(Rate(1e-4, "s", "assumed: the host reads a condition back from the device"), bandwidth=strided),
    }
    facts = {"bandwidth": bandwidth, "launch": LAUNCH, **numbers}
    return Target(name, title, "torch", kernels, FORMS, Form("library"), {}, facts, storing=STORING, notes=NOTES)


def _scaled(full: float, source: str) -> Curve:
    points = ((1e5, 0.03), (1e6, 0.2), (8e6, 0.6), (6.4e7, 1.0))
    return Curve(tuple((x, y * full) for x, y in points), "B", "B/s", source)


def _ops(kernel: str, names: str, *, dialect: str = "stablehlo", views: frozenset[int] = frozenset()) -> dict[str, tuple[Form, ...]]:
    return {f"{dialect}.{name}": (Form(kernel, views=views),) for name in names.split()}


_BOTH = frozenset({0, 1})
FORMS: dict[str, tuple[Form, ...]] = {
    **_ops("pointwise", "abs negate sign floor ceil round_nearest_even round_nearest_afz not is_finite real imag complex popcnt "
           "count_leading_zeros reduce_precision convert uniform_quantize uniform_dequantize"),
    **_ops("function", "sqrt rsqrt cbrt exponential exponential_minus_one log log_plus_one logistic tanh tan sine cosine"),
    **_ops("function", "erf erfc erf_inv lgamma digamma bessel_i1e asin acos atan sinh cosh asinh acosh atanh polygamma zeta",
           dialect="chlo"),
    **_ops("pointwise", "is_nan is_inf", dialect="chlo"),
    **_ops("pointwise", "add subtract multiply maximum minimum and or xor compare shift_left shift_right_logical shift_right_arithmetic",
           views=_BOTH),
    **_ops("function", "divide remainder power atan2", views=_BOTH),
    "stablehlo.select": (Form("pointwise", views=frozenset({0, 1, 2}), typed=1),),
    "stablehlo.clamp": (Form("pointwise", views=frozenset({0, 2}), typed=1),),
    **_ops("movement", "broadcast_in_dim transpose slice concatenate pad reverse iota bitcast_convert dynamic_broadcast_in_dim "
           "dynamic_iota dynamic_pad real_dynamic_slice"),
    **_ops("host", "reshape dynamic_reshape get_dimension_size optimization_barrier"),
    **_ops("reduce", "reduce reduce_window batch_norm_inference batch_norm_training batch_norm_grad rng_bit_generator"),
    **_ops("matmul", "dot_general"),
    **_ops("conv", "convolution dynamic_conv"),
    **_ops("gather", "gather dynamic_gather dynamic_slice dynamic_update_slice scatter select_and_scatter"),
    **_ops("library", "sort fft cholesky triangular_solve"),
    **_ops("loop", "if case while composite map reduce_region reduce_window_region"),
    **_ops("nothing", "input constant absent token tuple get parameter", dialect="builtin"),
    **_ops("host", "dims", dialect="builtin"),
    **_ops("library", "node", dialect="onnx"),  # a kept node whose definition opens it
}  # fmt: skip
