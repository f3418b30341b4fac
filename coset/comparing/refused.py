"""Why a result is not handed out: it differs from the original beyond its tolerance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from coset.comparing.check import CheckReport
from coset.ir.errors import CosetError
from coset.ir.forked import error_of, error_parts


class Refused(CosetError):
    """The optimized program differs from the original beyond its tolerance and is not handed out."""

    def __init__(
        self, message: str, *, rule: str | None, check: CheckReport, help: str = "", fault: Mapping[str, Any] | None = None
    ) -> None:
        """`fault`: what a report says of the kernel at fault, where there is one."""
        super().__init__(message, help=help)
        self.rule = rule
        self.check = check
        self.fault = fault

    def __reduce__(self) -> tuple[Any, ...]:
        return error_of, (error_parts(self),)

    def summary(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {"refused": self.message, "help": self.help, "rule": self.rule, "check": self.check.summary(), "fault": self.fault}


def unblamed(check: CheckReport) -> Refused:
    """What is known of a result that differs where the rule was not found."""
    what = str(check.worst) if check.worst else ""
    return Refused(
        f"the result differs from the original ({what}) and is not handed out; which rule breaks it was not found in time", rule=None,
        check=replace(check, feeds={}), help="leave rules out (--disable-rule), or restrict --numerics; please report the model",
    )  # fmt: skip


def refused(culprit: str | None, check: CheckReport, defined: Sequence[str] = ()) -> Refused:
    """The error where the rule `culprit` breaks the program; None where it fails without any rule. `defined`: the user's ops that the
    original has nodes of."""
    what = str(check.worst) if check.worst else ""
    if culprit is None:
        ops = ", ".join(f"`{op}`" for op in defined)
        help = f"the runtime has kernels of its own for {ops}: do the definitions say what they compute?" if defined else ""
        said = f"the program does not survive import and export unchanged ({what}); it is not handed out"
        return Refused(said, rule=None, check=check, help=help)
    return Refused(
        f"rule `{culprit}` breaks the program ({what}); it is not handed out", rule=culprit, check=check,
        help="leave the rule out or restrict --numerics; please report the model",
    )  # fmt: skip
