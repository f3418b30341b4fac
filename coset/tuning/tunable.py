"""The kernels of plans that can be tuned, each once, those first that take most of the time by default."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from coset.lowering.kernels.kernel import Computed, Library, Plan
from coset.lowering.triton.alternatives import alternatives
from coset.lowering.triton.choice import KernelChoice
from coset.lowering.triton.key import key_of
from coset.lowering.triton.launch import EmitOptions
from coset.lowering.triton.predicted import predicted
from coset.lowering.triton.source import EmittedKernel, emit, module_of, refusal
from coset.targets.target import Target

KEPT = 16  # alternatives of a kernel that are compiled, beside the default
WORSE = 2.5  # times as long as the best by prediction: the model knows nothing that is finer


@dataclass(frozen=True)
class Tunable:
    """A kernel of a plan, with the `choices` that there are for it (the default first) and the free dims' `sizes`; `count`: how many
    kernels have its key."""

    key: str
    kernel: Computed
    plan: Plan
    options: EmitOptions
    sizes: Mapping[str, int]
    choices: tuple[KernelChoice, ...]
    target: Target
    count: int = 1

    @property
    def default(self) -> KernelChoice:
        """What is chosen where nothing is known."""
        return self.choices[0]

    @property
    def family(self) -> str:
        """The kind of kernel in a word."""
        return self.kernel.kind

    def seconds(self, choice: KernelChoice) -> float:
        """As `predicted`."""
        return predicted(self.kernel, self.plan, choice, self.options, self.target, self.sizes)

    @cached_property
    def ranked(self) -> tuple[KernelChoice, ...]:
        """The default, then those of the others that prediction does not rule out, the best first: as many of those that read operands by
        bulk copies as of those that do not, as it cannot tell them apart, and of those that multiply 8-bit floats as such or wider."""
        times = {choice: self.seconds(choice) for choice in self.choices}
        best = min(times.values())
        others = [choice for choice in self.choices[1:] if times[choice] <= WORSE * best]
        others.sort(key=lambda choice: (times[choice], self.choices.index(choice)))
        seen: Counter[tuple[int, int]] = Counter()
        places: list[tuple[int, int]] = []  # of each among those of its form, and among all
        for place, choice in enumerate(others):
            form = choice.get("BULK") or 0, choice.get("EIGHTS") or 0
            places.append((seen[form], place))
            seen[form] += 1
        return (self.default, *(others[place] for place in sorted(place for _, place in sorted(places)[:KEPT])))

    def emission(self, choice: KernelChoice) -> EmittedKernel:
        """The kernel with these numbers."""
        return emit(self.kernel, self.plan, options=replace(self.options, choice=choice))

    def source(self, choice: KernelChoice) -> str:
        """The module of the kernel with these numbers."""
        return module_of([self.emission(choice)])


def tunables(plans: Sequence[Plan], options: EmitOptions, target: Target, sizes: Mapping[str, int]) -> list[Tunable]:
    """The kernels of all plans by key, in order of the predicted time of all that have it. A plan that frees its
    temporaries splits no k."""
    found: dict[str, Tunable] = {}
    for plan in plans:
        allowed = replace(options, splits=not plan.frees, choices=None, choice=None)
        for kernel in plan.kernels:
            if isinstance(kernel, Library) or refusal(kernel):
                continue
            emission = emit(kernel, plan, options=allowed)
            if emission.choice is None:
                continue
            key = key_of(emission, plan, sizes)
            if key in found:
                found[key] = replace(found[key], count=found[key].count + 1)
                continue
            choices = alternatives(kernel, emission.choice, allowed, sizes)
            found[key] = Tunable(key, kernel, plan, allowed, sizes, choices, target)
    return sorted(found.values(), key=lambda each: (-each.count * each.seconds(each.default), each.key))
