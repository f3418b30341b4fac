"""Ops that a target's file speaks of, against the ops that there are: for when all of them are known, a user's rules among them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from coset.ir.op import Op, find_op
from coset.ir.problems import FileProblem, refusal
from coset.ir.registry import op_names
from coset.ir.suggestions import like, likely, meant
from coset.targets.condition import find_condition
from coset.targets.document import HERE, Document, Entry, laid_out, read_file
from coset.targets.target import Form, Target

CUT = {"start", "limit", "strides"}
"""Attributes of an op that takes a part of a value."""
LISTED = "`coset rules --ops` lists the ops with their operands and attributes"


def check_ops(target: Target) -> None:
    """Nothing for a target of ours, which tests check.

    Raises:
        WrongFile: the user's file names an op that there is not, or has a form of one that this op cannot have.
    """
    if not target.file:
        return
    problems: list[FileProblem] = []
    rows = list(_rows(laid_out(read_file(Path(target.file)), problems)))
    problems += [_no_op(name, entry) for name, entry in rows if find_op(name) is None]
    places = dict(rows)
    for name, forms in target.forms.items():
        if name in places and find_op(name) is not None:
            found = dict.fromkeys(why for form in forms for why in misfits(name, form))
            problems += [FileProblem(f"`{places[name].name}`: {what}", places[name].place, LISTED) for what in found]
    if problems:
        raise refusal(problems)


def misspelt_ops(document: Document) -> list[FileProblem]:
    """The names of ops that there are not and that are like others of their dialect, before the user's rules are read, which may bring
    ops of any name."""
    found = []
    for name, entry in _rows(document):
        dialect = [each for each in op_names() if each.partition(".")[0] == name.partition(".")[0]]
        if find_op(name) is None and likely(name, dialect) is not None:
            found.append(_no_op(name, entry))
    return found


def _no_op(name: str, entry: Entry) -> FileProblem:
    """That there is no op `name`; the remedy is the one that is called so in another dialect, or the one that is called nearly so."""
    known = [each for each in op_names() if not each.startswith("node.")]  # these say what nodes become: no program holds one
    word = name.partition(".")[2]
    same = [each for each in known if each.partition(".")[2] == word] or [
        each for each in known if each.partition(".")[2].lower() == word.lower()
    ]
    return FileProblem(f"`{entry.name}`: there is no op `{name}`", entry.place, meant(same) or like(name, known) or LISTED)


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


def _rows(document: Document) -> Iterator[tuple[str, Entry]]:
    """Each op of the user's files, with where it is spoken of: those that are preferred last."""
    for file, legal in zip(document.files, document.legal, strict=True):
        if file.path.is_relative_to(HERE):
            continue
        forms = legal.get("forms")
        rows = forms.listed() if forms is not None and isinstance(forms.value, list) else ()
        entries = [entry for row in rows if isinstance(row.value, dict) for key, entry in row.items() if key == "ops"]
        for entry in (*entries, *([legal["never"]] if "never" in legal else [])):
            for word in entry.value.split() if isinstance(entry.value, str) else ():
                yield word if "." in word else f"stablehlo.{word}", entry
