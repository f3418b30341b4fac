"""StableHLO, for any compiler that takes it: every op that can be printed is legal; what it costs is a model of a fusing compiler."""

from __future__ import annotations

from coset.targets.cpu_onnxruntime import KERNELS as MEASURED
from coset.targets.cpu_onnxruntime import STREAM
from coset.targets.gpu import FORMS, FUSED
from coset.targets.target import EVERY, Curve, Form, Kernel, Rate, Target, register

ASSUMED = "assumed: rates of this machine's CPU under another runtime (targets/cpu_onnxruntime.py) stand for the compiler's"
NO_LAUNCH = Rate(0.0, "s", FUSED)
LAUNCH = Rate(1e-6, "s", ASSUMED)
INLINE = Curve(tuple((x, 4 * y) for x, y in STREAM.points), STREAM.x, STREAM.unit, FUSED)
_CHLO = {
    "function": "mulhi next_after tan _asin_acos_kernel", "pointwise": "square conj is_pos_inf is_neg_inf constant_like",
    "library": "top_k ragged_dot", "loop": "scan",
}  # fmt: skip

register(
    Target(
        name="stablehlo",
        title="StableHLO text, for a compiler that fuses, on a CPU",
        dialect="stablehlo",
        kernels={
            "nothing": Kernel(NO_LAUNCH),
            "host": Kernel(NO_LAUNCH),
            "pointwise": Kernel(NO_LAUNCH, bandwidth=INLINE),
            "function": Kernel(NO_LAUNCH, {EVERY: Rate(2e9, "element/s", ASSUMED)}, INLINE),
            "movement": Kernel(NO_LAUNCH, bandwidth=INLINE),
            "reduce": Kernel(LAUNCH, bandwidth=STREAM),
            "matmul": MEASURED["matmul"],
            "conv": MEASURED["conv"],
            "gather": Kernel(LAUNCH, bandwidth=STREAM),
            "library": Kernel(LAUNCH, bandwidth=STREAM),
            "loop": Kernel(LAUNCH, bandwidth=STREAM),
        },
        forms={
            **{name: forms for name, forms in FORMS.items() if not name.startswith("onnx.")},
            **{f"chlo.{name}": (Form(kernel),) for kernel, names in _CHLO.items() for name in names.split()},
            "builtin.opaque": (Form("library"),),
        },
        default=Form("library"),
        casts={},
        numbers={},
        notes=(
            "Decides between programs by work and bytes; its seconds are no prediction of any compiler's. What a compiler has fused with "
            "what is unknown here."
        ),
    )
)
