"""Two programs face to face: AFTER under the names, the dims and the order of outputs that BEFORE has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.prove.certificate import Rejected
from coset.prove.contents import dims_by_content, fitted, renamed


@dataclass(frozen=True)
class Facing:
    """The programs as a certificate speaks of them. `unread`: inputs that only one has, and that nothing reads; `reordered`: what the two
    have in another order, `inputs` and `outputs`."""

    before: Program
    after: Program
    unread: tuple[str, ...]
    reordered: tuple[str, ...]


def facing(before: Program, after: Program, names: Mapping[str, str]) -> Facing:
    """Both programs, given by content. `names`: what inputs and outputs of the second are called in the first.

    Raises:
        Rejected: they have other inputs or outputs.
    """
    after = _fitted(before, after, names)
    unread = _unread(before, after)
    others, called = dict(after.outputs), [name for name, _ in before.outputs]
    same = sorted(others) == sorted(called) and len(others) == len(after.outputs)
    if not same or (before.effects is None) != (after.effects is None):
        raise Rejected("the programs have other outputs", help=_help(called, list(others)))
    shared = [[name for name in _inputs(program) if name in _inputs(other)] for program, other in ((before, after), (after, before))]
    orders = {"inputs": shared, "outputs": [called, [name for name, _ in after.outputs]]}
    reordered = tuple(what for what, (one, other) in orders.items() if one != other)
    ordered = replace(after, outputs=tuple((name, others[name]) for name in called))
    return Facing(dims_by_content(before), dims_by_content(ordered), unread, reordered)


def _inputs(program: Program) -> dict[str, str]:
    return {term.attribute("name"): str(term.type) for term in program.inputs}


def _fitted(before: Program, after: Program, names: Mapping[str, str]) -> Program:
    """The program after with its names mapped, and for the dims that its inputs have before."""
    own = {*(name for name, _ in after.outputs), *_inputs(after)}
    for name in names:
        if name not in own:
            raise Rejected(f"AFTER has no input or output `{name}`", help=f"it has: {', '.join(sorted(own))}")
    try:
        return fitted(renamed(after, names, names) if names else after, before)
    except (CosetError, ValueError, TypeError, KeyError) as error:
        raise Rejected(f"the inputs and outputs of the program after cannot be those before: {error}") from None


def _unread(before: Program, after: Program) -> tuple[str, ...]:
    """The inputs that only one program has; nothing may read them."""
    found: list[str] = []
    given = [_inputs(before), _inputs(after)]
    if any(len(own) < len(program.inputs) for own, program in zip(given, (before, after), strict=True)):
        raise Rejected("two inputs have one name")
    for program, other in zip((before, after), reversed(given), strict=True):
        alone = {term for term in program.inputs if other.get(term.attribute("name")) != str(term.type)}
        names = {term.attribute("name") for term in alone}
        if names & set(other) or not alone <= set(program.unread()):
            raise Rejected("the programs have other inputs", help=_help(list(given[0]), list(given[1])))
        found += sorted(names)
    return tuple(found)


def _help(before: list[str], after: list[str]) -> str:
    return f"BEFORE has {', '.join(before)}; AFTER has {', '.join(after)}; names in pairs are given by --map AFTER_NAME=BEFORE_NAME"
