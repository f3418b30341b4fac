"""A failing program made smaller, and programs as text for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.term import INPUT, Term, input_term, make, topological
from coset.ir.types import TensorType

TRIES = 200  # smaller programs that are looked at


def shrunk(program: Program, fails: Callable[[Program], bool]) -> Program:
    """A smaller program that fails too: nothing less of it does, or the tries are used up."""
    left = TRIES
    while True:
        for other in smaller(program):
            left -= 1
            if left < 0:
                return program
            if fails(other):
                program = other
                break
        else:
            return program


def smaller(program: Program) -> Iterator[Program]:
    """Programs with one thing less: an output, the op of the only output, an op whose operand or an input stands in its place. What bounds
    the rounds of a loop stays: a number in its place may be billions of them."""
    for place in range(len(program.outputs) if len(program.outputs) > 1 else 0):
        yield pruned([program.roots[place]], program)
    if len(program.outputs) == 1:
        for operand in dict.fromkeys(program.roots[0].operands):
            if isinstance(operand.type, TensorType):
                yield pruned([operand], program)
    taken = {term.attribute("name") for term in program.inputs}
    counters = {term.operands[0] for term in program.terms() if term.op.name == "stablehlo.while"}
    for term in reversed(list(program.terms())):
        if not term.operands or not isinstance(term.type, TensorType) or term in counters:
            continue
        fresh = input_term(next(name for place in count() if (name := f"z{place}") not in taken), term.type)
        others = [operand for operand in dict.fromkeys(term.operands) if operand.type == term.type]
        for other in (*others, fresh):
            made = replaced(program, term, other)
            if made is not None:
                yield made


def replaced(program: Program, term: Term, other: Term) -> Program | None:
    """The program with `other` in place of `term`; None where it has no types then."""
    made = {term: other}
    try:
        for each in program.terms():
            if each not in made:
                operands = [made[operand] for operand in each.operands]
                made[each] = make(each.op, operands, dict(each.attributes), each.regions) if operands else each
    except CosetError:
        return None
    return pruned([made[root] for root in program.roots], program)


def pruned(roots: Sequence[Term], program: Program) -> Program:
    """The program of these roots, with the inputs that they need, and others only for dims that no needed one has."""
    needed = [term for term in topological(roots) if term.op is INPUT]
    inputs = tuple(dict.fromkeys((*program.inputs, *needed)))
    whole = Program(inputs, tuple((f"y{place}", root) for place, root in enumerate(roots)))
    unread = set(whole.unread())
    return replace(whole, inputs=tuple(term for term in inputs if term not in unread))


def text_of(program: Program) -> str:
    """The program for people, a line a term."""
    lines: list[str] = []

    def listed(roots: Sequence[Term], indent: str) -> None:
        numbers: dict[Term, int] = {}
        for term in topological(roots):
            numbers[term] = len(numbers)
            attributes = "".join(f" {name}={shown(value)}" for name, value in term.attributes)
            operands = " ".join(f"%{numbers[operand]}" for operand in term.operands)
            lines.append(f"{indent}%{numbers[term]} = {term.op.name} {operands}{attributes} : {term.type}")
            for region in term.regions:
                listed((*region.parameters, *region.results), indent + "    ")
        lines.append(f"{indent}return {' '.join(f'%{numbers[root]}' for root in roots)}")

    listed(program.roots, "")
    return "\n".join(lines)


def shown(value: Any) -> str:
    return repr(value.array().tolist()) if hasattr(value, "array") else str(value)
