"""Functions of a model's own that stay functions (`--keep-functions`), optimized inside: each is searched as a model of its own, for the
types that its calls have. What is told of them is told of bodies of control flow, too (`coset/optimizing/bodies.py`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from coset.dialects.onnx.bodies import count
from coset.dialects.onnx.origin import with_header
from coset.frontends.onnx.functions import name_of
from coset.frontends.onnx.kept_functions import (
    Calls,
    Name,
    Stays,
    as_model,
    called_by,
    callers_first,
    header_of,
    note_calls,
    note_calls_in_bodies,
    rewritten,
    with_functions,
)
from coset.frontends.onnx.tensors import open_model
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.searching.usage import Usage

Optimize = Callable[[Any], tuple[Program, Any, list[Usage]]]  # of a model in memory: as it was read, as it is written, and by which rules


@dataclass(frozen=True)
class Inside:
    """A function that became a smaller one, or a `body` of a node that stays: how many nodes it had and has, and the rules that were used,
    which the report has with all."""

    name: str
    before: int
    after: int
    usage: list[Usage]
    body: bool = False

    def summary(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {"name": self.name, "nodes": {"before": self.before, "after": self.after}}


@dataclass(frozen=True)
class AsItCame:
    """A function that stays as it came, and why."""

    name: str
    reason: str

    def summary(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {"name": self.name, "reason": self.reason}


CERTIFIED = "a certificate speaks of the nodes that are written, and not of a search inside a function"
CIRCLE = "functions call each other in a circle"


def optimized_inside(program: Program, model: Any, optimize: Optimize) -> tuple[Program, list[Inside], list[AsItCame]]:
    """The program with those of its functions written anew that `optimize` makes smaller, and those that stay as they came: since the types
    or attributes of a call are not known, or differ by more than dims, or no smaller one was found; all do where they call each other."""
    header = header_of(program)
    order = callers_first(header)
    if not order:
        return program, [], untouched(program, CIRCLE)
    own = {name_of(each): each for each in header.functions}
    calls: Calls = {name: [] for name in order}
    note_calls(program, calls)
    note_calls_in_bodies(open_model(model), calls)
    hidden: set[Name] = set()  # called with types that are not known
    made: dict[Name, Any] = {}
    told: list[Inside] = []
    stay: list[AsItCame] = []
    for name in order:
        called = ".".join(filter(None, name))
        try:
            if name in hidden:
                raise Stays("a function that stays calls it, so that not all types are known")
            alone = as_model(own[name], calls[name], header)
            read, written, usage = optimize(alone)
        except CosetError as error:  # what runs it says what is wrong with it
            stay.append(AsItCame(called, error.message))
            hidden |= called_by(own[name])
            continue
        note_calls(read, calls)
        note_calls_in_bodies(open_model(alone), calls)
        smaller = rewritten(own[name], written)
        if smaller is None:
            stay.append(AsItCame(called, "no smaller one was found"))
            continue
        made[name] = smaller
        told.append(Inside(called, count(own[name]), count(smaller), usage))
    found = with_header(program, with_functions(header, made)) if made else program
    return found, told, stay


def untouched(program: Program, reason: str) -> list[AsItCame]:
    """All functions of a program, which stay for one reason."""
    return [AsItCame(".".join(filter(None, name_of(each))), reason) for each in header_of(program).functions]
