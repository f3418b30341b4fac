"""What a profile says that kernels and programs should be: the same for the same profile, on any machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from coset.backends.profile import MeasuredAt
from coset.backends.tuning_profile import Raced, Timed, Tunings, reading
from coset.lowering.triton.choice import KernelChoice, KernelChoices, MeasuredChoice
from coset.targets.target import Target

Kernels = Mapping[str, MeasuredChoice]  # by key


@dataclass(frozen=True)
class Advice:
    """What one profile has for a target: from which `place` (None: it has nothing), and the choices by kernel."""

    place: MeasuredAt | None
    kernels: Kernels
    raced: Mapping[str, tuple[Raced, ...]]  # by the model's digest

    def choices(self, sizes: Mapping[str, int]) -> KernelChoices:
        """For kernels whose free dims have these sizes."""
        return KernelChoices(self.kernels, sizes)

    def program(self, model: str) -> Raced | None:
        """The program that was the fastest of a model's; None where the first was, or nothing is known."""
        return fastest(self.raced.get(model, ()))


def advice(file: Path, target: Target) -> Advice:
    """What the profile in `file` has for `target`: measurements of the place where it was measured last.

    Raises:
        CosetError: there is no such file, or it is no profile.
    """
    with reading(file) as store:
        place = next(iter(store.places(target.name)), None)
        if place is None:
            return Advice(None, {}, {})
        raced = {model: tuple(store.raced(target.name, place, model)) for model in store.models(target.name, place)}
        return Advice(place, kernels_of(store, target.name, place), raced)


def kernels_of(store: Tunings, target: str, place: MeasuredAt) -> Kernels:
    """What was chosen for each kernel that was timed there."""
    return {key: chosen for key, timed in store.timed(target, place).items() if (chosen := best(timed))}


def best(timed: Mapping[str, Timed]) -> MeasuredChoice | None:
    """The fastest of a kernel's alternatives: of those whose whole 95 % interval lies below the default the one with the least ratio; where
    there is none the default, which is the one of ratio 1 in no interval. None where nothing was timed to its end."""
    right = {text: each for text, each in timed.items() if not each.problem}
    faster = [(each.ratio, text) for text, each in right.items() if each.high < 1.0]
    if faster:
        ratio, text = min(faster)
        return MeasuredChoice(KernelChoice.read(text), 1.0 / ratio)
    default = next((text for text, each in sorted(right.items()) if is_default(each)), None)
    return None if default is None else MeasuredChoice(KernelChoice.read(default), 1.0)


def default_row(seconds: float) -> Timed:
    """What is kept of a default when all of its alternatives were measured."""
    return Timed(seconds, 1.0, 1.0, 1.0, 0)


def is_default(timed: Timed) -> bool:
    """Whether it is the row of a default."""
    return not timed.rounds and timed.ratio == 1.0 and not timed.problem


def fastest(raced: tuple[Raced, ...]) -> Raced | None:
    """The program that is faster than the first by the whole of its interval, the one with the least ratio; None where none is."""
    faster = [(each.timed.ratio, each.strayed, each) for each in raced if not each.timed.problem and each.timed.high < 1.0]
    return min(faster, key=lambda row: row[:2])[2] if faster else None
