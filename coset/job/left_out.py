"""What a StableHLO module says beside its program, and the result does not: it is named in a warning."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coset.dialects.hub.mlir_origin import MlirOrigin, Named, mlir_origin
from coset.ir.program import Program
from coset.job.job import Job

KEEPS = "stablehlo"  # the dialect of targets whose text says all of it
NOTHING_SAID = frozenset({
    ("mhlo.num_partitions", "1 : i32"), ("mhlo.num_replicas", "1 : i32"), ("jax.uses_shape_polymorphism", "true"),
    ("jax.uses_shape_polymorphism", "false"), ("mhlo.layout_mode", '"default"'),
})  # fmt: skip
"""Attributes that are so in any case."""
READ = "jax.result_info"  # the name of an output
FEW = 3  # inputs or outputs that are named one by one


def left_out(job: Job, program: Program) -> list[str]:
    """What the user should know of what is left out of the result of a `job` on `program`, as sentences."""
    origin = mlir_origin(program.source)
    names = list(origin.lost)
    if job.target.dialect != KEEPS:
        names += _beside(origin, program)
    return [f"the result does not say what the module says of it: {', '.join(names)}"] if names else []


def warn_of_left_out(job: Job, program: Program) -> None:
    """Tell the user what is left out."""
    for said in left_out(job, program):
        job.progress(f"warning: {said}")


def _beside(origin: MlirOrigin, program: Program) -> Iterator[str]:
    yield from (f"`{name}` of the module" for name in _said(origin.module_attributes))
    yield from (f"`{name}` of the function `{origin.function}`" for name in _said(origin.function_attributes))
    yield from _of_values("input", [str(term.attribute("name")) for term in program.inputs], origin.arguments)
    yield from _of_values("output", [name for name, _ in program.outputs], origin.results)
    checks = sum(each.name == "stablehlo.custom_call" for each in origin.checks)
    yield from [f"{checks} assertion{'s' if checks > 1 else ''} about sizes"] if checks else []
    count = origin.constraints
    yield from [f"{count} constraint{'s' if count > 1 else ''} of sharding"] if count else []
    yield from (f"the function or symbol `{name}` beside it" for name in origin.beside if not name.startswith("#"))


def _of_values(kind: str, names: Sequence[str], said: Sequence[Named]) -> Iterator[str]:
    places: dict[str, list[str]] = {}
    for value, named in zip(names, said, strict=False):
        for name in _said(named):
            places.setdefault(name, []).append(value)
    for name, values in places.items():
        listed = f"{len(values)} {kind}s" if len(values) > FEW else ", ".join(f"the {kind} `{value}`" for value in values)
        yield f"`{name}` of {listed}"


def _said(named: Named) -> Iterator[str]:
    return (name for name, text in named if (name, text) not in NOTHING_SAID and name != READ)
