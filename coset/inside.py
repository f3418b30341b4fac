"""Functions of a model's own that stay functions (`--keep-functions`), optimized inside: each is searched as a model of its own, for the
types that its calls have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from coset.dialects.onnx_bodies import count
from coset.frontends.onnx_functions import name_of
from coset.frontends.onnx_kept_functions import (
    Calls,
    Name,
    as_model,
    called_by,
    called_in_bodies,
    callers_first,
    header_of,
    note_calls,
    rewritten,
    with_functions,
)
from coset.frontends.onnx_tensors import open_model
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.usage import Usage

Optimize = Callable[[Any], tuple[Program, Any, list[Usage]]]  # of a model in memory: as it was read, as it is written, and by which rules


@dataclass(frozen=True)
class Inside:
    """A function that became a smaller one: how many nodes it had and has, and the rules that were used, which the report has with all."""

    name: str
    before: int
    after: int
    usage: list[Usage]

    def summary(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {"name": self.name, "nodes": {"before": self.before, "after": self.after}}


def optimized_inside(program: Program, model: Any, optimize: Optimize) -> tuple[Program, list[Inside]]:
    """The program with those of its functions written anew that `optimize` makes smaller. One stays as it came that has attributes, is
    called by a body of control flow, or whose calls leave inputs out or differ in more than dims; all do where they call each other."""
    header = header_of(program)
    whole = open_model(model).proto
    order = callers_first(header)
    hidden = called_in_bodies(whole)
    own = {name_of(each): each for each in header.functions}
    calls: Calls = {name: [] for name in order}
    note_calls(program, calls)
    made: dict[Name, Any] = {}
    told: list[Inside] = []
    for name in order:
        alone = None if name in hidden else as_model(own[name], calls[name], header)
        try:
            found = None if alone is None else optimize(alone)
        except CosetError:  # it stays as it came, and what runs it says what is wrong with it
            found = None
        if found is None:
            hidden |= called_by(own[name])  # with types that are not known
            continue
        read, written, usage = found
        note_calls(read, calls)
        smaller = rewritten(own[name], written)
        if smaller is not None:
            made[name] = smaller
            told.append(Inside(".".join(filter(None, name)), count(own[name]), count(smaller), usage))
    return (replace(program, source={**program.source, "model": with_functions(header, made)}) if made else program), told
