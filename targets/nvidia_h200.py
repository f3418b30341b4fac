"""NVIDIA H200 (SXM) under torch and Triton: published rates, none of them measured here. Coarse: see `notes`."""

from __future__ import annotations

from coset.targets.target import EVERY, Curve, Form, Kernel, Rate, Target, register

DATASHEET = "published, not measured: NVIDIA H200 Tensor Core GPU datasheet (2024), SXM; dense rates, half of those with sparsity"
ARCHITECTURE = "published, not measured: NVIDIA H100 Tensor Core GPU Architecture whitepaper (2022), whose GH100 chip the H200 has"
GUIDE = "published, not measured: CUDA C++ Programming Guide, compute capability 9.0"
ASSUMED = "assumed until measured: the order of magnitude that launches in a stream are known to cost"
NOTIONAL = "assumed until measured: a share of the bandwidth that grows with the bytes in flight; full from 64 MB on"
FUSED = "assumed: elementwise ops and movement are fused into neighbours, so that one in four touches memory"

MEMORY = 4.8e12  # B/s
FULL = 0.85 * MEMORY  # what copies reach of it: the goal of the kernels, not a measurement
LAUNCH = Rate(3e-6, "s", ASSUMED)
NO_LAUNCH = Rate(0.0, "s", FUSED)


def _scaled(share: float, source: str) -> Curve:
    points = ((1e5, 0.03), (1e6, 0.2), (8e6, 0.6), (6.4e7, 1.0))
    return Curve(tuple((x, y * FULL * share) for x, y in points), "B", "B/s", source)


STREAM = _scaled(1.0, NOTIONAL)
INLINE = _scaled(4.0, FUSED)
STRIDED = _scaled(0.5, NOTIONAL)


def _flops(table: dict[str, float]) -> dict[str, Rate]:
    return {name: Rate(value, "FLOP/s", DATASHEET) for name, value in table.items()}


_TENSOR_CORES = _flops(
    {
        EVERY: 67e12, "f64": 67e12, "f32": 67e12, "f16": 989e12, "bf16": 989e12, "f8e4m3fn": 1979e12, "f8e5m2": 1979e12, "i8": 1979e12,
        "u8": 1979e12, "c64": 67e12, "c128": 34e12,
    }
)  # f32 without tf32: the numerics do not allow it  # fmt: skip
FEW_ROWS = Curve(((1, 1 / 64), (64, 1.0)), "rows", "share", "published: a wgmma instruction has 64 rows (PTX ISA, section 9.7.15)")
LITTLE_WORK = Curve(((1e7, 0.02), (1e9, 0.3), (3e10, 1.0)), "FLOP", "share", "assumed until measured: 132 SMs fill with work")

KERNELS = {
    "nothing": Kernel(Rate(0.0, "s", "no kernel is launched")),
    "host": Kernel(Rate(0.0, "s", "numbers of the host, and views")),
    "pointwise": Kernel(NO_LAUNCH, bandwidth=INLINE),
    "function": Kernel(
        NO_LAUNCH, {EVERY: Rate(4e12, "element/s", ARCHITECTURE + "; 16 special functions a clock and SM, 132 SMs")}, INLINE
    ),
    "movement": Kernel(NO_LAUNCH, bandwidth=INLINE),
    "reduce": Kernel(LAUNCH, bandwidth=STREAM),
    "matmul": Kernel(LAUNCH, _TENSOR_CORES, STREAM, FEW_ROWS, LITTLE_WORK),
    "conv": Kernel(LAUNCH, _TENSOR_CORES, STREAM, None, LITTLE_WORK),
    "gather": Kernel(LAUNCH, bandwidth=STRIDED),
    "library": Kernel(Rate(1e-5, "s", ASSUMED), bandwidth=STRIDED),
    "loop": Kernel(Rate(1e-4, "s", "assumed: the host reads a condition back from the device"), bandwidth=STRIDED),
}


def _ops(kernel: str, names: str, *, dialect: str = "stablehlo", views: frozenset[int] = frozenset()) -> dict[str, tuple[Form, ...]]:
    return {f"{dialect}.{name}": (Form(kernel, views=views),) for name in names.split()}


_BOTH = frozenset({0, 1})
_FORMS: dict[str, tuple[Form, ...]] = {
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

register(
    Target(
        name="nvidia-h200",
        title="NVIDIA H200 (SXM) with torch and Triton",
        dialect="torch",
        kernels=KERNELS,
        forms=_FORMS,
        default=Form("library"),
        casts={},
        numbers={
            "bandwidth": Rate(MEMORY, "B/s", DATASHEET),
            "memory": Rate(141e9, "B", DATASHEET),
            "launch": LAUNCH,
            "multiprocessors": Rate(132, "SMs", ARCHITECTURE),
            "l2": Rate(50e6, "B", ARCHITECTURE),
            "shared": Rate(227 * 1024, "B a block", GUIDE),
            "registers": Rate(65536, "32-bit registers a SM", GUIDE),
            "registers_per_thread": Rate(255, "32-bit registers", GUIDE),
            "compute_capability": Rate(9.0, "compute capability", GUIDE),
        },
        notes=(
            "Coarse: extraction prices one op at a time, while `lowering/plan.py` fuses elementwise ops, movement and reductions into one "
            "kernel. So elementwise ops and movement are priced without a launch and at four times the memory's bandwidth. No number is "
            "measured: benchmarks/gpu.py is to replace the assumed ones."
        ),
    )
)
