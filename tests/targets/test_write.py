"""A target with other numbers, written as a file over its base, is read as it was."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

import coset.dialects  # noqa: F401  (registers the ops)
from coset.targets.read import read_target
from coset.targets.target import Curve, Kernel, Rate, Target, all_targets
from coset.targets.write import overlay


def other(kernel: Kernel, generator: random.Random) -> Kernel:
    """The kernel with every number drawn anew near what it was; shares stay shares."""

    def rate(given: Rate) -> Rate:
        return replace(given, value=given.value * generator.uniform(0.3, 1.0), source='of "this" machine\\n, é')

    def curve(given: Curve | None) -> Curve | None:
        return given and replace(given, points=tuple((x, y * generator.uniform(0.3, 1.0)) for x, y in given.points))

    return replace(
        kernel, launch=rate(kernel.launch), rates={dtype: rate(given) for dtype, given in kernel.rates.items()},
        piece=kernel.piece and rate(kernel.piece), bandwidth=curve(kernel.bandwidth), rows=curve(kernel.rows), work=curve(kernel.work),
    )  # fmt: skip


@pytest.mark.parametrize("base", all_targets(), ids=lambda target: target.name)
@pytest.mark.parametrize("seed", range(3))
def test_what_is_written_is_read_bit_by_bit(base: Target, seed: int, tmp_path: Path) -> None:
    generator = random.Random(seed)
    kernels = {name: other(kernel, generator) if generator.random() < 0.7 else kernel for name, kernel in base.kernels.items()}
    file = tmp_path / "mine.toml"
    file.write_text(overlay(replace(base, kernels=kernels), base, 'a "title"'))
    again = read_target(file, "mine")
    assert again.kernels == kernels and again.title == 'a "title"'
    assert (again.forms, again.numbers, again.sessions) == (base.forms, base.numbers, base.sessions)
