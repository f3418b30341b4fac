"""What Z3 is asked: one door to its answer, which keeps to the time that is left, and writes each question as SMT-LIB where somebody
wants to put it to another solver too.

A file has what is asserted, and the answer as `(set-info :status ..)`. The assertions are those of a counterexample, so `unsat` is what
shows something. Files are called by the entry and a number in the order of the questions, so that the same rules give the same files.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coset.ir.term import Term, topological
from coset.prove.deadline import left, look

LONGEST = 200  # characters of a line that says what an instance is
EVERY = 0.05  # s of the clock between two looks at the time that is left


@dataclass
class _Record:
    """Where questions are written, and what of the entry that is shown now was written already."""

    folder: Path
    entry: str = "rule"
    rule: str = ""
    instance: Sequence[Term] = ()
    written: dict[str, int] = field(default_factory=dict)


_record: _Record | None = None


@contextmanager
def recording(folder: Path) -> Iterator[None]:
    """Inside, each question is written to a file in `folder`, which is made."""
    global _record
    folder.mkdir(parents=True, exist_ok=True)
    _record = _Record(folder)
    try:
        yield
    finally:
        _record = None


def entry(name: str) -> None:
    """From here on the questions are about the entry `name`: its files are numbered from 0."""
    if _record is not None:
        _record.entry, _record.rule, _record.instance = name, name, ()
        _record.written.clear()


def about(rule: str, instance: Sequence[Term] = ()) -> None:
    """From here on the questions are about this `instance` of `rule`, a form of the entry: both sides, or nothing where it is the
    conditions alone."""
    if _record is not None:
        _record.rule, _record.instance = rule, instance


def unsatisfiable(solver: Any, asked: str, *, steps: int) -> bool:
    """Whether Z3 shows that nothing is as the `solver` asserts, with so many of its `steps` and in the time that is left.

    `asked` says in a few words what is asserted. Z3 takes another way, of which the steps may not suffice, where its context was asked
    other things before, and a process that is forked has the contexts of its parent. So each question is read anew from its text, in a
    context of its own.

    Raises:
        Late: the time that was set around it is over.
    """
    import z3

    assertions = solver.sexpr()
    alone = z3.Solver(ctx=z3.Context())
    alone.from_string(assertions)
    alone.set("rlimit", steps)
    with _interrupted(alone):
        answer = alone.check()
    if _record is not None:
        _write(_record, assertions, asked, str(answer))
    if answer == z3.unknown:
        look()
    return bool(answer == z3.unsat)


@contextmanager
def _interrupted(solver: Any) -> Iterator[None]:
    """Inside, the `solver` is interrupted when no time is left. Z3's own limit is one of the clock, which goes on while other work has the
    processor, so that a proof would depend on what else the machine does."""
    if left() is None:
        yield
        return
    done = threading.Event()

    def watch() -> None:
        while not done.wait(EVERY):
            if not left():
                solver.interrupt()  # again and again: it is not heard before the search begins

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield
    finally:
        done.set()
        watching.join()


def _write(record: _Record, assertions: str, asked: str, answer: str) -> None:
    """Write a question, once for each entry."""
    if assertions in record.written:
        return
    number = record.written[assertions] = len(record.written)
    head = [f"rule {record.rule}", *_listed(record.instance), f"asserted: {asked}"]
    lines = [f"; {' '.join(line.split())[:LONGEST]}" for line in head]
    lines += ["(set-logic ALL)", f"(set-info :status {answer})", assertions.rstrip(), "(check-sat)", ""]
    (record.folder / f"{_stem(record.entry)}-{number:04d}.smt2").write_text("\n".join(lines), encoding="utf-8")


def _listed(instance: Sequence[Term]) -> Iterator[str]:
    """The terms of an instance, operands first, a line each; then which of them are its sides."""
    numbers: dict[Term, str] = {}
    for term in topological(instance):
        numbers[term] = f"%{len(numbers)}"
        operands = "".join(f" {numbers[operand]}" for operand in term.operands)
        attributes = "".join(f" {name}={value}" for name, value in term.attributes)
        yield f"{numbers[term]} = {term.op.name}{operands}{attributes} : {term.type}"
    if instance:
        yield f"instance: {' and '.join(numbers[side] for side in instance)}"


def _stem(name: str) -> str:
    """The name of an entry as that of a file."""
    return re.sub(r"[^\w.+-]", "_", name)
