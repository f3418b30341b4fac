"""A package beside its reference: the values of the evaluator for the program as it came."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coset.backends.torch_package import INSTALL, installed
from coset.comparing.check import CheckReport
from coset.comparing.fault import Runs
from coset.comparing.feeds import Feed
from coset.comparing.infinities import REORDERED
from coset.comparing.reference import against_reference
from coset.ir.held import working_folder
from coset.ir.program import Program
from coset.lowering.kernels.kernel import Computed, Kernel
from coset.lowering.package.program import aten_package, write_package
from coset.lowering.planning.kinds import is_convolution_gradient
from coset.lowering.planning.primitive import primitive
from coset.packaging.asked import Check, Lowering
from coset.packaging.culprit import ComparedPackage, refusal
from coset.packaging.emitted import Emitted
from coset.packaging.searched import with_gradients
from coset.pricing.kernel_options import noise
from coset.searching.task import Task


def checked_package(asked: Lowering, original: Program, task: Task, folder: Path, emitted: Emitted) -> dict[str, Any]:
    """The comparison of the package with the evaluator's values of the original on drawn inputs; why there is none, else. Triton
    kernels that are not to be interpreted are compared as torch functions over the same buffers.

    Raises:
        Refused: they differ.
    """
    if asked.check is Check.NONE:
        return {"ok": None, "why": "not asked for"}
    if not installed():
        asked.progress(f"not checked: torch is not installed: {INSTALL}")
        return {"ok": None, "why": "torch is not installed"}
    asked.progress("comparing with the reference")
    interpreted = asked.code == "triton" and asked.check is Check.INTERPRETED
    with working_folder("coset-work-") as place:
        if asked.code == "triton" and not interpreted:
            folder = place / "package"
            write_package(emitted.package("torch"), folder)
        amplified, sums = noise(json.loads((folder / "manifest.json").read_text())) if interpreted else (1.0, 1.0)
        with asked.opened(folder, interpreted) as package, ExitStack() as stack:
            plain = PlainCode(original, place / "plain", lambda folder: stack.enter_context(asked.opened(folder, False)))
            opened = task.program if any(term.op.has("foreign") for term in original.terms()) else None
            overlooks = HIDDEN if interpreted and emitted.plan is not None and any(map(_hides, emitted.plan.kernels)) else ""
            report = compare(
                original, package, asked.dims or {}, amplified=amplified, sums=sums, plain=plain.run, opened=opened, overlooks=overlooks
            )
    if not report.ok:
        own, beside = (emitted.runs("triton" if code else "torch", interpreted=code) for code in (interpreted, False))
        made = ComparedPackage(emitted.program, emitted.plan, own, beside if interpreted else None)
        raise refusal(original, task, report, made, amplified=amplified)
    ran = "in Triton's interpreter" if interpreted else "as torch functions" if asked.code == "triton" else f"as {asked.code}"
    return {**report.summary(), "kernels": ran, "apart": report.apart}


HIDDEN = "attention does not read the keys that a mask hides"


def _hides(kernel: Kernel) -> bool:
    """True for attention that goes through a part of its keys, whose NaN is lost then: a mask leaves them no weight."""
    return isinstance(kernel, Computed) and kernel.hides


@dataclass
class PlainCode:
    """The program as it came, op by op in torch: written and opened where a comparison asks for it. Gradients of convolutions are torch's
    own there too, which do not multiply the zeros between elements: a NaN of the filters is not everywhere then."""

    program: Program
    folder: Path
    opened: Callable[[Path], Runs]
    package: Runs | None = None

    def run(self, feed: Feed) -> Feed:
        """The outputs by name."""
        if self.package is None:
            program = with_gradients(self.program, primitive(self.program, is_convolution_gradient))
            write_package(aten_package(program, title="The program as it came, op by op."), self.folder)
            self.package = self.opened(self.folder)
        return self.package.run(feed)


def compare(
    program: Program, package: Runs, given: Mapping[str, int], *, amplified: float = 1.0, sums: float = 1.0,
    plain: Callable[[Feed], Feed] | None = None, opened: Program | None = None, overlooks: str = "",
) -> CheckReport:  # fmt: skip
    """Run the package beside the evaluator; see `against_reference`. Its kernels multiply and sum in orders of their own, as rules do that
    except `nonfinite`.

    Raises:
        CosetError: the evaluator runs the program on no drawn input.
    """
    return against_reference(
        program, package.run, given, amplified=amplified, sums=sums, plain=plain, opened=opened, overlooks=overlooks,
        exceptions=REORDERED,
    )  # fmt: skip
