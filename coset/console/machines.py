"""What is said of machines in tables: quantities as people write them, what is behind a target's numbers, what runs where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from coset.ir.op import Op
from coset.targets.target import EVERY, Curve, Kernel, Rate, Target, all_targets

FAMILIES: Mapping[str, str] = {
    "arithmetic": "add subtract multiply negate abs sign maximum minimum",
    "division": "divide remainder",
    "powers and roots": "power sqrt rsqrt cbrt",
    "exponentials": "exponential exponential_minus_one log log_plus_one logistic tanh",
    "trigonometry": "sine cosine tan atan2 chlo.asin chlo.acos chlo.atan chlo.sinh chlo.cosh chlo.asinh chlo.acosh chlo.atanh",
    "error functions": "chlo.erf chlo.erfc chlo.erf_inv chlo.lgamma chlo.digamma",
    "rounding": "floor ceil round_nearest_even round_nearest_afz",
    "logic and shifts": "and or xor not shift_left shift_right_logical shift_right_arithmetic",
    "comparison and choice": "compare select clamp",
    "casts": "convert",
    "movement": "broadcast_in_dim reshape transpose slice concatenate pad reverse",
    "matrix products": "dot_general",
    "convolutions": "convolution",
    "reductions": "reduce",
    "windows (pooling)": "reduce_window",
    "gather and scatter": "gather scatter dynamic_slice dynamic_update_slice",
    "sorting": "sort chlo.top_k",
    "linear algebra": "cholesky triangular_solve fft",
    "loops and branches": "while if case",
    "shapes of a run": "dynamic_reshape dynamic_broadcast_in_dim dynamic_iota dynamic_pad real_dynamic_slice dynamic_gather",
}
"""Families of the hub's ops; a name without a dialect is StableHLO's."""
_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""), (1e-3, "m"), (1e-6, "u"), (1e-9, "n"))
SCALED = ("B", "B/s", "FLOP/s", "element/s", "s", "Hz")
_WORDS = {"published": "published", "assumed": "assumed", "chosen": "by definition", "by definition": "by definition"}


def machines() -> list[Target]:
    """Every target of ours that is one: what only counts (`recognition`) is none."""
    return [target for target in all_targets() if target.dialect != EVERY and not target.file]


def quantity(value: float, unit: str) -> str:
    """A number with its unit, in thousands where the unit has them: 4.8 TB/s."""
    head, _, rest = unit.replace(",", " ,").partition(" ")
    if head not in SCALED or not value:
        return f"{value:g} {unit}"
    size, prefix = next((pair for pair in _PREFIXES if value >= pair[0]), _PREFIXES[-1])
    return f"{value / size:.3g} {prefix}{head}{' ' + rest if rest else ''}".replace(" ,", ",")


def origin(source: str) -> str:
    """Where a number is from, in a word: measured, published, assumed, by definition."""
    return next((word for start, word in _WORDS.items() if source.startswith(start)), "measured")


def curves(kernel: Kernel) -> dict[str, Curve]:
    """The curves of a kernel, by what they are."""
    found = {"memory": kernel.bandwidth, "few rows": kernel.rows, "little work": kernel.work}
    return {name: curve for name, curve in found.items() if curve is not None}


def sources(target: Target) -> Iterator[str]:
    """What is behind each number of a target; a launch that takes nothing is none."""
    for kernel in target.kernels.values():
        yield from (rate.source for rate in kernel.rates.values())
        yield from (curve.source for curve in curves(kernel).values())
        if kernel.launch.value:
            yield kernel.launch.source
        yield from (part.source for part in (kernel.tiles, kernel.piece) if part is not None)
    yield from (number.source for number in target.numbers.values())


def origins(target: Target) -> Counter[str]:
    """How many numbers of a target are measured, published, assumed."""
    return Counter(map(origin, sources(target)))


def peak(target: Target, dtype: str) -> Rate | None:
    """The rate of products of this dtype where no work is little; None for a target without one of its own for it."""
    kernel = target.kernels.get("matmul")
    return kernel.rates.get(dtype) if kernel is not None else None


def memory(target: Target) -> str:
    """The bandwidth that products read with at best."""
    kernel = target.kernels.get("matmul")
    curve = kernel.bandwidth if kernel is not None else None
    return quantity(max(y for _, y in curve.points), "B/s") if curve is not None else ""


def family(name: str) -> list[str]:
    """The ops of a family."""
    return [op if "." in op else f"stablehlo.{op}" for op in FAMILIES[name].split()]


def legal(target: Target, op: Op | str) -> bool:
    """Whether there is any form of an op, at some dtype under some condition."""
    name = str(op)
    return bool(target.forms.get(name, name.split(".")[0] == target.dialect))


def alike(targets: Sequence[Target]) -> list[list[Target]]:
    """Targets that run the same ops in the same forms, together."""
    groups: list[list[Target]] = []
    for target in targets:
        found = next((group for group in groups if group[0].forms == target.forms and group[0].dialect == target.dialect), None)
        if found is None:
            groups.append([target])
        else:
            found.append(target)
    return groups
