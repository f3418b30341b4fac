"""The survivors of kernels on a bench, one after the other, each result in the profile as soon as it is known."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from coset.backends.triton_runtime import DeviceLost, Runner
from coset.backends.tuning_profile import Tunings
from coset.ir.errors import CosetError
from coset.job.job import Progress
from coset.packaging.chosen import default_row
from coset.tuning.measuring import KernelBench, Measuring, refusal
from coset.tuning.pruning import PrunedKernel, Pruning
from coset.tuning.tunable import Tunable


@dataclass
class Clocking:
    """What one run measures. `pruned`: the kernels that it came to; `unmeasured`: why one of them has no time, by key."""

    target: str
    profile: Tunings
    bench: KernelBench
    progress: Progress = lambda _: None
    pruned: list[PrunedKernel] = field(default_factory=list)
    unmeasured: dict[str, str] = field(default_factory=dict)
    measured: int = 0

    def kernels(self, kernels: Sequence[Tunable], pruning: Pruning, end: float) -> bool:
        """Compile and measure kernel by kernel, so that those in front are done when time is over (`end`, of the monotonic clock); True
        where all were done.

        Raises:
            Lost: the device answers no more.
        """
        with self.bench.runner() as runner:
            for place, kernel in enumerate(kernels):
                if time.monotonic() > end:
                    return False
                self.progress(f"kernel {place + 1} of {len(kernels)}: {kernel.kernel.name}, {len(kernel.choices)} alternatives")
                (pruned,) = pruning.prune([kernel], end - time.monotonic())
                self.pruned.append(pruned)
                if not self._kernel(pruned, runner, end):
                    return False
        return True

    def _kernel(self, pruned: PrunedKernel, runner: Runner, end: float) -> bool:
        """Time a kernel's survivors; False where time is over before all were."""
        kernel = pruned.tunable
        if why := refusal(kernel):
            self.unmeasured[kernel.key] = why
            return True
        known = self.profile.timed(self.target, self.bench.place, kernel.key).get(kernel.key, {})
        measuring = Measuring(kernel, self.bench, runner)
        for choice in pruned.survivors:
            if choice == kernel.default or choice.text() in known:
                continue
            if time.monotonic() > end:
                return False
            try:
                timed = measuring.timed(choice)
            except DeviceLost:
                raise
            except CosetError as error:
                self.progress(f"  not measured: {error.message}")
                self.unmeasured[kernel.key] = error.message
                return True
            if timed.problem:
                self.progress(f"  {choice.text()}: {timed.problem}")
            self.profile.put_timed(self.target, self.bench.place, kernel.key, choice.text(), timed)
            self.measured += 1
        if not pruned.left:  # its row says that all of them were
            times = self.profile.timed(self.target, self.bench.place, kernel.key).get(kernel.key, {}).values()
            default = next((each.seconds / each.ratio for each in times if each.rounds), 0.0)
            self.profile.put_timed(self.target, self.bench.place, kernel.key, kernel.default.text(), default_row(default))
        return True
