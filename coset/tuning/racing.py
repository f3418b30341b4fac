"""Programs of one e-graph as whole packages against the clock, in turn, with the kernels that the profile chose."""

from __future__ import annotations


def race_programs(*_: object) -> None:
    raise NotImplementedError
