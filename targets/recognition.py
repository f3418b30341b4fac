"""The target of recognition: no machine, but a way to count. Every op of every dialect is one kernel, so that the fewest ops win."""

from __future__ import annotations

from coset.targets.target import EVERY, Curve, Form, Kernel, Rate, Target, register

NOTIONAL = "by definition: the unit is one kernel"
STREAM = Curve(((1.0, 1e9),), "B", "B/s", "by definition: bytes only decide between as many kernels, up to gigabytes")


def _ops(kernel: str, names: str, dialect: str) -> dict[str, tuple[Form, ...]]:
    return {f"{dialect}.{name}": (Form(kernel),) for name in names.split()}


register(
    Target(
        name="recognition",
        title="recognition: the fewest kernels, each of which reads its operands and writes its result once",
        dialect=EVERY,
        kernels={
            "kernel": Kernel(Rate(1.0, "s", NOTIONAL), bandwidth=STREAM),
            "wanted": Kernel(Rate(0.9, "s", "by definition: an op that is asked for wins over others that do as well"), bandwidth=STREAM),
            "cast": Kernel(Rate(0.1, "s", "by definition: avoided where it can be, but no kernel"), bandwidth=STREAM),
            "movement": Kernel(Rate(0.001, "s", "by definition: movement of operands is nearly free"), bandwidth=STREAM),
            "host": Kernel(Rate(0.0, "s", "numbers of the host")),
            "nothing": Kernel(Rate(0.0, "s", "no kernel")),
        },
        forms={
            **_ops("movement", "broadcast_in_dim reshape transpose slice concatenate pad reverse", "stablehlo"),
            **_ops("movement", "dynamic_reshape dynamic_broadcast_in_dim dynamic_pad real_dynamic_slice", "stablehlo"),
            **_ops("cast", "convert", "stablehlo"),
            **_ops("nothing", "get_dimension_size optimization_barrier iota dynamic_iota", "stablehlo"),
            **_ops("nothing", "input constant absent token tuple get parameter dims", "builtin"),
            **dict.fromkeys(("part.standardized", "part.unit_rms"), ()),  # what definitions have in common is no op that is looked for
        },
        default=Form("kernel"),
        casts={},
        numbers={},
        folds_constants=True,
        notes="Used by `coset.recognise`; it predicts no time. A composite op wins over the ops that it is made of, wherever it was found.",
    )
)
