"""Ops that a target's file speaks of, against the ops that there are: for when all of them are known, a user's rules among them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from coset.ir.op import Op, find_op
from coset.targets.condition import find_condition
from coset.targets.document import Entry, TargetProblem, laid_out, read_file, refusal
from coset.targets.target import Form, Target

CUT = {"start", "limit", "strides"}
"""Attributes of an op that takes a part of a value."""


def check_ops(target: Target) -> None:
    """Nothing for a target of ours, which tests check.

    Raises:
        CosetError: the user's file has a form of an op that there is not, or that the op cannot have.
    """
    if not target.file:
        return
    places = dict(_rows(Path(target.file)))
    problems = [
        TargetProblem(
            f"`{places[name].name}`: {what}", places[name].place, "`coset rules --ops` lists the ops with their operands and attributes"
        )
        for name, forms in target.forms.items()
        if name in places
        for what in dict.fromkeys(why for form in forms for why in misfits(name, form))
    ]
    if problems:
        raise refusal(problems)


def misfits(name: str, form: Form) -> Iterator[str]:
    """What `form` says of the op called `name` that cannot be said of it."""
    op = find_op(name)
    if op is None:
        yield f"there is no op `{name}`"
        return
    for word in form.conditions:
        condition = find_condition(word)
        if condition is not None and not condition.speaks_of(op):
            yield f"`{word}` cannot be said of `{name}`: {condition.says}"
    wrong = [place for place in (*form.views, *(place for _, place in form.passes)) if place >= len(op.operands)]
    if wrong:
        yield f"`{name}` has no operand {wrong[0]}, {_operands(op)}"
    if form.joint and not {attribute.name for attribute in op.attributes} >= CUT:
        yield f"`{name}` takes no slices that could be `joint`"


def _operands(op: Op) -> str:
    listed = ", ".join(f"{place} {operand}" for place, operand in enumerate(op.operands))
    return f"only {listed}" if listed else "nor any other"


def _rows(path: Path) -> Iterator[tuple[str, Entry]]:
    """Each op of the user's files, with where it is last spoken of."""
    for legal in laid_out(read_file(path)).legal:
        if "forms" in legal:
            for row in legal["forms"].listed():
                ops = next(entry for key, entry in row.items() if key == "ops")
                for word in ops.value.split():
                    yield word if "." in word else f"stablehlo.{word}", ops
        if "never" in legal:
            for word in legal["never"].value.split():
                yield word if "." in word else f"stablehlo.{word}", legal["never"]
