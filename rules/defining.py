"""Registering the ops that a file defines: the signature of each entry, what is refused in it; and files of which an entry is read when
its op is looked up."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from coset.ir.op import Attribute, Op, find_op, register
from coset.ir.registry import defer, withdraw
from coset.rules import syntax
from coset.rules.algebra import Scope
from coset.rules.algebra import evaluate as evaluate_value
from coset.rules.definition import DEFINED, LOOKED_UP, PUT_OFF, Definition, _expansion, _unquestioned, type_of_expansion, work_of_expansion
from coset.rules.definition_rules import declared_operands, names_in, op_meant
from coset.rules.elaborate import numerics_of
from coset.rules.elaborated import called, in_dialects
from coset.rules.ground import lint_tests
from coset.rules.lock import NAME, read_lock, text_hash
from coset.rules.meant import CLAUSES, OWN
from coset.rules.names import Names, collect
from coset.rules.native import PREFIX
from coset.rules.nodes import ENTRIES
from coset.rules.op_parameters import written_out
from coset.rules.parsed import parse
from coset.rules.syntax import RuleError
from coset.rules.values import ValueResolver


def defer_definitions(path: Path) -> tuple[str, ...]:
    """The names of the ops that the file defines; each entry is read when its op is looked up (most programs need few ops).

    Until then no rule over all ops of a dialect is written out for them: a program without them has no use for it.
    """
    text = path.read_text()
    found = list(_ENTRY.finditer(text))
    ends = [match.start() for match in found[1:]] + [len(text)]
    for match, end in zip(found, ends, strict=True):
        defer((match[1],), partial(_load_entry, path, text, match.start(), end, found[0].start()))
    PUT_OFF.update(match[1] for match in found if match[0].startswith("kernel"))
    return tuple(match[1] for match in found)


def named_in(text: str) -> tuple[str, ...]:
    """The names of the ops that the text of a rule file defines, in its order."""
    return tuple(match[1] for match in _ENTRY.finditer(text) if "." in match[1])


_ENTRY = re.compile(r"^(?:op|kernel)\s+([\w.]+)", re.MULTILINE)


def _load_entry(path: Path, text: str, start: int, end: int, head: int) -> list[Op]:
    """Register the op whose entry stands from `start` to `end` of a file that begins with `head` characters for all entries."""
    lines = text.count("\n", head, start)  # places are those of the file
    found = _load_text(text[:head] + "\n" * lines + text[start:end], path)
    LOOKED_UP.update(op.name for op in found)
    return found


def load_definitions(path: Path) -> list[Op]:
    """Register the ops that the file defines and give them; its definitions may use each other in any order.

    Raises:
        RuleError: the first mistake in the file.
    """
    return _load_text(path.read_text(), path)


def _load_text(text: str, path: Path) -> list[Op]:
    file, errors = parse(text, str(path))
    if not errors:
        errors = define_all(file.ops, {name: dialect for name, dialect, _ in file.dialects}, path.parent)
    if errors:
        raise errors[0]
    return [DEFINED[entry.name].op for entry in file.ops]


def define_all(entries: Sequence[syntax.OpEntry], dialects: Mapping[str, str], directory: Path) -> list[RuleError]:
    """Register the ops of one file; what is wrong with them is returned, and then none of the new ones stays.

    An op that is defined in the same words already is passed over.
    """
    errors: list[RuleError] = []
    fresh: list[tuple[syntax.OpEntry, Op]] = []
    for entry in sorted(entries, key=lambda entry: entry.name):
        there = find_op(entry.name) is not None  # which reads its file, if it was put off
        if entry.name in DEFINED and DEFINED[entry.name].entry.text == entry.text:
            continue
        try:
            if there:
                raise RuleError(f"the op `{entry.name}` is there already", place=entry.place, help="give yours another name")
            written = written_out(entry, dialects)
            fresh.append((written, register(_signature(written, _own(entry.name, dialects)))))
        except RuleError as error:
            errors.append(error)
    locked = read_lock(directory / NAME) if fresh else {}
    new: list[syntax.OpEntry] = []
    for entry, op in fresh:
        definition = DEFINED[op.name] = Definition(op, entry, _own(op.name, dialects), directory)
        CLAUSES[op.name] = entry.clauses
        if definition.is_sugar:
            ENTRIES[op.name] = entry, definition.dialects
        if not in_dialects(directory):
            OWN[op.name] = entry.text, partial(getattr, definition, "mentioned")
        if entry.name in locked and locked[entry.name].hash == text_hash(entry.text):
            continue  # read without mistakes before
        new.append(entry)
        try:
            errors += _mistakes(entry, definition)
        except RuleError as error:
            errors.append(error)
    if not errors:
        errors += [circle for entry in new if (circle := _circle(entry)) is not None]
    if errors:
        for _, op in fresh:
            forget(op)
    return errors


def _mistakes(entry: syntax.OpEntry, definition: Definition) -> list[RuleError]:
    """What is wrong with the tests of a new entry, and with all else of it.

    Raises:
        RuleError: the first mistake that does not stand in a test.
    """
    _lint_parameters(entry)
    _lint_natives(entry)
    for clause in entry.clauses:
        numerics_of(clause.promise)
    assert all(names_in(few, clause, definition.dialects) for few in definition.few for clause in few.clauses)
    assert definition.rules and definition.trials
    if entry.targets and not definition.rules[1]:
        help = "its meaning must determine every attribute, and be no bare operand"
        raise RuleError(f"the kernel `{entry.name}` can never be chosen: it is not recognised", place=entry.place, help=help)
    names = collect(entry.parameters, (), definition.dialects)
    return lint_tests(entry.tests, names, names.kinds, results=len(entry.result) or None, needed=True)


def forget(op: Op) -> None:
    """Withdraw an op and what defines it."""
    for registry in (DEFINED, CLAUSES, OWN, ENTRIES):
        registry.pop(op.name, None)
    _expansion.cache_clear()  # of an op of this name that means something else
    _unquestioned.cache_clear()
    withdraw(op)


def _own(name: str, dialects: Mapping[str, str]) -> dict[str, str]:
    """The dialects in use and that of the op itself."""
    dialect = name.split(".")[0]
    return {dialect: dialect, **dialects}


def _signature(entry: syntax.OpEntry, dialects: Mapping[str, str]) -> Op:
    """The op of an entry; its type rule and work look the definition up, so that entries may come in any order."""
    operands = declared_operands(entry)
    optional, repeated = [operand.optional for operand in operands], [operand.variadic for operand in operands]
    if optional != sorted(optional):
        raise RuleError("optional operands come last", place=entry.place, help="move them behind the others")
    if repeated != sorted(repeated) or sum(repeated) > 1 or (any(repeated) and any(optional)):
        raise RuleError("a variadic operand comes last, without optional ones", place=entry.place, help="write xs..: T[..] last, once")
    names = collect(entry.parameters, (), dialects)
    values = ValueResolver(names, left=True)
    attributes = []
    for name, parameter in names.attributes.items():
        default = None
        if parameter.default is not None:
            word = names.kinds[name].word
            default = evaluate_value(values.attribute(parameter.default, word), Scope())
            default = tuple(map(float, default)) if word == "floats" else default
        attributes.append(Attribute(name, names.kinds[name].word, default, required=parameter.default is None))
    elementwise = not any(optional) and "sugar" not in entry.tags and all(_elementwise(entry, clause, names) for clause in entry.clauses)
    source = f"{called(Path(entry.place.file))}:{entry.place.line}"
    return Op(
        entry.name, partial(type_of_expansion, entry.name), None, tuple(attributes), tuple(operand.name for operand in operands),
        sum(optional), variadic=any(repeated), traits=frozenset({"elementwise"} if elementwise else ()),
        flops=partial(work_of_expansion, entry.name), source=source, document=entry.document,
    )  # fmt: skip


def _elementwise(entry: syntax.OpEntry, clause: syntax.Clause, names: Names) -> bool:
    """True when each result element depends on the operands' elements of the same place only, and on no size or rank."""
    parts = list(clause.parts())
    if any(
        isinstance(part, syntax.Name) and part.value in names.kinds and names.kinds[part.value].word in ("dim", "pack") for part in parts
    ):
        return False
    if any(isinstance(part, syntax.Invocation) and part.name in ("rank", "dims", "host", "expanding") for part in parts):
        return False
    for expression in clause.said:
        for part in syntax.walk(expression):
            if isinstance(part, syntax.Operation) and part.operator not in ("+", "-", "*", "/", "negate"):
                return False
            if isinstance(part, syntax.Invocation) and part.name not in ("splat", "sqrt", "exp", "log"):
                op = None if part.name in ("bcast", "sum", "max", "min", "prod", "host", "swap_last") else op_meant(names, part)
                if op is None or not op.has("elementwise"):
                    return False
    return True


def _lint_parameters(entry: syntax.OpEntry) -> None:
    used = {part.value for clause in entry.clauses for part in clause.parts() if isinstance(part, syntax.Name)}
    for parameter in entry.parameters:
        if isinstance(parameter.kind, syntax.TensorKind) and parameter.kind.fact:
            help = "a rule may ask what its operands are; an op means something for all that it takes"
            raise RuleError(f"the parameter `{parameter.name}` is said to be {parameter.kind.fact}", place=parameter.place, help=help)
        if parameter.name not in used and not (isinstance(parameter.kind, syntax.ValueKind) and parameter.name[0].isupper()):
            raise RuleError(f"the parameter `{parameter.name}` is not used", place=parameter.place, help="leave it out, or use it")


def _lint_natives(entry: syntax.OpEntry) -> None:
    for clause in entry.clauses:
        for part in clause.parts():
            if isinstance(part, syntax.Invocation) and part.name.startswith(PREFIX):
                help = "what an op means is written in the language; only rules call native functions"
                raise RuleError(f"a definition calls `{part.name}`", place=part.place, help=help)


def _circle(entry: syntax.OpEntry) -> RuleError | None:
    """The error of a definition that leads back to itself."""
    pending, seen = [entry.name], set[str]()
    while pending:
        definition = DEFINED.get(pending.pop())
        for name in sorted(definition.mentioned) if definition else ():
            if name == entry.name:
                help = "say what it means by ops that mean something without it"
                return RuleError(f"the definition of `{entry.name}` leads back to itself", place=entry.place, help=help)
            if name not in seen:
                seen.add(name)
                pending.append(name)
    return None
