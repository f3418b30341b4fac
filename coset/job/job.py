"""What is asked for: the model, the target, the numerics, limits and rules of one optimization."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coset.comparing.deadline import USUAL
from coset.comparing.feeds import Sample
from coset.egraph.growth import SILENT, Watch
from coset.egraph.limits import Limits
from coset.job.admission import EVERY_RULE, Admission
from coset.job.own_rules import OwnRules, own_rules
from coset.job.zone import Zone
from coset.rules.equation import NUMERICS_ORDER
from coset.rules.written import WrittenRule
from coset.targets.target import Target

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Job:
    """What is asked for: the arguments of `optimize`. `extraction_problem`: where to write what extraction chose from.
    `max_memory`: live bytes of activations that the result may take."""

    model: Any
    target: Target
    numerics: str
    limits: Limits
    rules: Sequence[str | Path | WrittenRule]
    dims: Mapping[str, int]
    progress: Progress
    extraction_problem: Path | None = None
    max_memory: int | None = None
    measure: int = 0  # further programs that are timed beside the one chosen
    certified: bool = False  # a certificate is made: the search keeps a log
    admission: Admission = EVERY_RULE  # which of the rules take part
    keep: tuple[str, ...] = ()  # values inside the model that survive under their names
    zones: tuple[Zone, ...] = ()  # values for which rules may promise less, or must promise more, than `numerics`
    picture: Callable[..., Mapping[str, Any]] | None = None  # what it makes of task, `Solved`, result and names the report has too
    watch: Watch = SILENT  # who is told how a search goes
    allow_assumed: bool = False  # whether rules of the user's may fire of which nothing is shown
    check_seconds: float = USUAL  # of the comparison with the original
    samples: Sequence[Sample] = ()  # inputs of the user's to compare on, beside drawn ones
    keep_functions: bool = False  # functions of an ONNX model's own stay calls; else their nodes take the place of these
    lost: list[str] = field(default_factory=list, compare=False)  # constants that the runtime was lost with, as they are found

    @property
    def weakest(self) -> str:
        """The weakest numerics that are allowed anywhere."""
        return max((self.numerics, *(zone.numerics for zone in self.zones)), key=NUMERICS_ORDER.index)

    def own(self) -> OwnRules:
        """The user's rules that take part, checked.

        Raises:
            CosetError: one is refuted, or nothing is shown of one and that is not allowed; a file has a mistake.
        """
        return own_rules(
            self.rules, allow_assumed=self.allow_assumed, seconds=self.limits.seconds, admits=self.admission.admits, progress=self.progress
        )
