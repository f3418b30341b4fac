"""The packages of one optimized program: in Triton, in torch functions, or op by op."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from coset.comparing.fault import Made, Runs
from coset.ir.held import working_folder
from coset.ir.program import Program
from coset.lowering.kernels.kernel import Plan
from coset.lowering.package.plan import planned_package
from coset.lowering.package.program import Package, aten_package, write_package
from coset.lowering.triton.choice import KernelChoices
from coset.packaging.asked import Lowering
from coset.pricing.kernel_options import options_for


@dataclass(frozen=True)
class Emitted:
    """The packages of one optimized program."""

    asked: Lowering
    program: Program
    plan: Plan | None
    facts: Mapping[str, Any]
    choices: KernelChoices | None

    def package(self, code: str) -> Package:
        """The package in this code."""
        title = _title(self.asked)
        if code == "aten":
            return aten_package(self.program, title=title, facts=self.facts)
        assert self.plan is not None
        options = replace(options_for(self.asked.numerics, self.asked.target), choices=self.choices)
        return planned_package(self.program, self.plan, title=title, facts=self.facts, triton=code == "triton", options=options)

    def runs(self, code: str, *, interpreted: bool) -> Made:
        """How the same package is made of another program and plan, and run."""

        @contextmanager
        def made(program: Program, plan: Plan) -> Iterator[Runs]:
            with working_folder("coset-work-") as place:
                write_package(replace(self, program=program, plan=plan).package(code), place / "package")
                with self.asked.opened(place / "package", interpreted) as package:
                    yield package

        return made


def _title(asked: Lowering) -> str:
    name = Path(asked.model).name if isinstance(asked.model, str | Path) else "a model"
    return f"{name}, lowered for {asked.target.title} by coset."
