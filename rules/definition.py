"""Ops that a term defines: their registration, type rule and work, and reading the definition in both directions."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from coset.ir.builtin import absent
from coset.ir.dims import Poly
from coset.ir.errors import CosetError, TypeRuleError
from coset.ir.evaluate import evaluate
from coset.ir.op import DEFERRED, Attribute, Attributes, Op, defer, find_op, get_op, register
from coset.ir.registry import withdraw
from coset.ir.term import AttributeItems, Term, exact_key, input_term, make
from coset.ir.types import TensorType, Type, dtype_of
from coset.rules import syntax
from coset.rules.algebra import Scope
from coset.rules.algebra import evaluate as evaluate_value
from coset.rules.elaborate import Direction, numerics_of, variants
from coset.rules.elaborated import in_dialects, keep_definition, kept_definition
from coset.rules.expansion import FORM, Doubt, Expansion, Reading, Unsettled, first_expansion
from coset.rules.ground import lint_tests
from coset.rules.lock import ASSURANCES, NAME, assure, read_lock, text_hash
from coset.rules.meant import CLAUSES, OWN, of_one_form, with_what_it_rests_on, written
from coset.rules.names import Names, collect
from coset.rules.native import PREFIX
from coset.rules.noted import note
from coset.rules.op_parameters import written_out
from coset.rules.parsed import parse
from coset.rules.rule import Rule
from coset.rules.syntax import RuleError
from coset.rules.unroll import UNROLLED, unrolled, variadic
from coset.rules.values import Values
from coset.rules.watched import asking, noting, questioned

MOST_FORMS = 32  # of a clause as rules of the search


@dataclass(eq=False)
class Definition:
    """One defined op. Its clauses are read when they are needed: for operands at hand, or as rules of the search."""

    op: Op
    entry: syntax.OpEntry
    dialects: Mapping[str, str]
    directory: Path
    readings_by_count: dict[int, list[Reading]] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The entry in canonical form, and what it rests on."""
        return with_what_it_rests_on(self.entry.text, self.mentioned) if OWN else self.entry.text  # few have own ones

    @property
    def assurance(self) -> str:
        """What the lock file beside it says of the entry: `assumed` without a line of its text."""
        line = read_lock(self.directory / NAME).get(self.entry.name)
        return line.assurance if line is not None and line.hash == text_hash(self.text) and line.assurance in ASSURANCES else "assumed"

    @property
    def targets(self) -> frozenset[str]:
        """The targets that have a kernel of this meaning, by name; none for an `op`, which whatever has a form of it runs."""
        return frozenset(map(target_name, self.entry.targets))

    @property
    def is_sugar(self) -> bool:
        """True when terms of the op are expanded as soon as they are made, so that no search has rules for it."""
        return "sugar" in self.entry.tags

    @property
    def parameters(self) -> tuple[str, ...]:
        """The operands and attributes as they are written, without the classes of element types."""
        own = {*self.op.operands, *(attribute.name for attribute in self.op.attributes)}
        return tuple(parameter.name for parameter in self.entry.parameters if parameter.name in own)

    def counted(self, count: int) -> syntax.OpEntry | None:
        """The entry for `count` operands, without a variadic one; None for too few."""
        if variadic(self.entry) is None:
            return self.entry
        fixed = len(self.op.operands) - 1
        return unrolled(self.entry, count - fixed) if count > fixed else None

    def readings(self, count: int) -> list[Reading]:
        """The clauses, ready to be read for `count` operands."""
        key = count if self.op.variadic else 0
        if key not in self.readings_by_count:
            entry = self.counted(count)
            found = [] if entry is None else [Reading.of(entry, c, _names(entry, c, self.dialects)) for c in entry.clauses]
            self.readings_by_count[key] = found
        return self.readings_by_count[key]

    @cached_property
    def of_one_form(self) -> bool:
        """Whether the op means the same of sizes that are symbols as of sizes that are numbers."""
        return of_one_form(self.entry.clauses)

    def meant(self, call: syntax.Invocation) -> Op | None:
        """The op that the entry calls so; None where it is no one op."""
        return _maybe(_names(self.entry, self.entry.clauses[0], self.dialects), call)

    @cached_property
    def mentioned(self) -> set[str]:
        """The ops that the entry names."""
        found: set[str] = set()
        for clause in self.entry.clauses:
            names = _names(self.entry, clause, self.dialects)
            for expression in clause.said:
                for part in syntax.walk(expression):
                    if isinstance(part, syntax.Invocation):
                        folded = part.arguments[0] if part.name == "fold" and part.arguments else None
                        op = _maybe(names, replace(part, name=folded.value) if isinstance(folded, syntax.Name) else part)
                        found |= set() if op is None else {op.name}
        return found

    @cached_property
    def rules(self) -> tuple[tuple[Rule, ...], tuple[Rule, ...]]:
        """The rules that expand the op and those that recognise it, by clause and form. An op with a variadic operand has them
        for a few numbers of operands. One that is tagged `sugar` has none: it is expanded on import."""
        entries = [] if self.is_sugar else self.few
        pairs = [_read(entry, self.op, self.dialects) for entry in entries]
        both = (self.hinted(_numbered([rule for pair in pairs for rule in pair[position]])) for position in (0, 1))
        expand, recognise = (tuple(assure(self._with_text(rules), self.directory)) for rules in both)
        if self.entry.targets:
            recognise = tuple(rule.changed(targets=tuple(sorted(self.targets))) for rule in recognise)
        return expand, recognise

    @cached_property
    def forms(self) -> tuple[Rule, ...]:
        """The rules that expand the op, by clause and form, of one that is `sugar` too.

        Raises:
            RuleError: such an op gives lists of terms.
        """
        return (
            tuple(rule for entry in self.few for rule in _elaborated(entry, self.op, self.dialects)[0]) if self.is_sugar else self.rules[0]
        )

    @property
    def few(self) -> list[syntax.OpEntry]:
        """The entry for a few numbers of variadic operands, or as it is."""
        start = len(self.op.operands)
        counts = [start - 1 + count for count in UNROLLED] if self.op.variadic else [start]
        return [entry for entry in map(self.counted, counts) if entry is not None]

    @cached_property
    def trials(self) -> tuple[Rule, ...]:
        """Rules for tests only: the op equals itself, for what is drawn of its operands and attributes."""
        found: list[Rule] = []
        name = f"{self.op.name}.trial"
        for entry in self.few:
            head, clause = _head(entry, self.op), entry.clauses[0]
            direction = Direction(
                name, name, head, head, None, clause.promise, entry.document, entry.place, entry.text, definition=self.op.name, trial=True
            )
            found += variants(direction, collect(entry.parameters, (), self.dialects))
        return tuple(assure(self._with_text(_numbered(self.hinted(found))), self.directory))

    def _with_text(self, rules: Sequence[Rule]) -> list[Rule]:
        return [rule if rule.text == self.text else rule.changed(text=self.text) for rule in rules]

    def hinted(self, rules: Sequence[Rule]) -> list[Rule]:
        """`rules` with what is worth trying for their attributes."""
        return [rule.changed(hints=_Hints(self)) for rule in rules]

    @cached_property
    def hints(self) -> dict[str, tuple[Any, ...]]:
        """Values of attributes that are worth trying: defaults, and what the entry compares them with."""
        hints: dict[str, list[Any]] = {
            attribute.name: [] if attribute.required else [attribute.default] for attribute in self.op.attributes
        }
        for clause in self.entry.clauses:
            for part in clause.parts():
                name = part.operands[0] if isinstance(part, syntax.Operation) and part.operator in ("==", "!=", "in") else None
                if isinstance(part, syntax.Operation) and isinstance(name, syntax.Name) and name.value in hints:
                    hints[name.value] += [written(each) for each in syntax.walk(part.operands[1]) if written(each) is not None]
        return {name: tuple(values) for name, values in hints.items()}


@dataclass(frozen=True, eq=False)
class _Hints(Mapping[str, tuple[Any, ...]]):
    """The hints of a definition, looked for when one is asked for: a search asks for none."""

    definition: Definition

    def __getitem__(self, name: str) -> tuple[Any, ...]:
        return self.definition.hints[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.definition.hints)

    def __len__(self) -> int:
        return len(self.definition.hints)


_DEFINITIONS: dict[str, Definition] = {}
_DEFERRED: set[str] = set()  # those of them that were read because their op was looked up
_PUT_OFF: set[str] = set()  # the kernels that are read when they are looked up


def definitions(without: Container[str] = ()) -> list[Rule]:
    """The rules of every registered definition but those `without`, expanding and recognising, by name."""
    found: dict[str, tuple[tuple[Rule, ...], tuple[Rule, ...]]] = {}
    while new := [name for name in _DEFINITIONS if name not in found and name not in without]:
        found |= {name: _DEFINITIONS[name].rules for name in new}  # which looks up the ops that it mentions: that may register more
    return sorted((rule for both in found.values() for own in both for rule in own), key=lambda rule: rule.name)


def trials(name: str) -> tuple[Rule, ...]:
    """Rules that test the definition of the op `name` on values, if it has one; they are no rules of a search."""
    return _DEFINITIONS[name].trials if name in _DEFINITIONS else ()


def definition_texts() -> frozenset[str]:
    """The texts of all registered definitions that have rules: what a cache of rules that were read with them must be keyed by."""
    return frozenset(definition.text for definition in _DEFINITIONS.values() if not definition.is_sugar)


def ready_definitions() -> frozenset[str]:
    """The ops that files of the dialects define, and that are registered whatever the program is."""
    return frozenset(name for name, each in _DEFINITIONS.items() if in_dialects(each.directory) and name not in _DEFERRED)


def further_definitions() -> list[str]:
    """The texts of the registered definitions that stand elsewhere than in files of the dialects, by name."""
    return [each.text for _, each in sorted(_DEFINITIONS.items()) if not in_dialects(each.directory)]


def is_defined(op: Op) -> bool:
    """True when a term defines `op`."""
    return op.name in _DEFINITIONS


def is_kernel(name: str) -> bool:
    """True when `name` is an op that some targets have, and that a term defines. One that was put off is not read for it."""
    return name in _PUT_OFF if name in DEFERRED else is_defined(get_op(name)) and bool(_DEFINITIONS[name].targets)


def target_name(written: syntax.Name) -> str:
    """The name of a target that a kernel names, which has `_` for `-`."""
    return written.value.replace("_", "-")


def kernels() -> list[Definition]:
    """The definitions of kernels that were read so far, by name."""
    return [_DEFINITIONS[name] for name in sorted(_DEFINITIONS) if _DEFINITIONS[name].entry.targets]


def definition_of(op: Op) -> Definition:
    """The definition of `op`, which has one."""
    return _DEFINITIONS[op.name]


def defer_definitions(path: Path) -> tuple[str, ...]:
    """The names of the ops that the file defines; each entry is read when its op is looked up (most programs need few ops).

    Until then no rule over all ops of a dialect is written out for them: a program without them has no use for it.
    """
    text = path.read_text()
    found = list(_ENTRY.finditer(text))
    ends = [match.start() for match in found[1:]] + [len(text)]
    for match, end in zip(found, ends, strict=True):
        defer((match[1],), partial(_load_entry, path, text, match.start(), end, found[0].start()))
    _PUT_OFF.update(match[1] for match in found if match[0].startswith("kernel"))
    return tuple(match[1] for match in found)


_ENTRY = re.compile(r"^(?:op|kernel)\s+([\w.]+)", re.MULTILINE)


def _load_entry(path: Path, text: str, start: int, end: int, head: int) -> list[Op]:
    """Register the op whose entry stands from `start` to `end` of a file that begins with `head` characters for all entries."""
    lines = text.count("\n", head, start)  # places are those of the file
    found = _load_text(text[:head] + "\n" * lines + text[start:end], path)
    _DEFERRED.update(op.name for op in found)
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
    return [_DEFINITIONS[entry.name].op for entry in file.ops]


def define_all(entries: Sequence[syntax.OpEntry], dialects: Mapping[str, str], directory: Path) -> list[RuleError]:
    """Register the ops of one file; what is wrong with them is returned, and then none of the new ones stays.

    An op that is defined in the same words already is passed over.
    """
    errors: list[RuleError] = []
    fresh: list[tuple[syntax.OpEntry, Op]] = []
    for entry in sorted(entries, key=lambda entry: entry.name):
        there = find_op(entry.name) is not None  # which reads its file, if it was put off
        if entry.name in _DEFINITIONS and _DEFINITIONS[entry.name].entry.text == entry.text:
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
        definition = _DEFINITIONS[op.name] = Definition(op, entry, _own(op.name, dialects), directory)
        CLAUSES[op.name] = entry.clauses
        if not in_dialects(directory):
            OWN[op.name] = entry.text, partial(getattr, definition, "mentioned")
        if entry.name in locked and locked[entry.name].hash == text_hash(entry.text):
            continue  # read without mistakes before
        new.append(entry)
        try:
            _lint_parameters(entry)
            _lint_natives(entry)
            for clause in entry.clauses:
                numerics_of(clause.promise)
            assert all(_names(few, clause, definition.dialects) for few in definition.few for clause in few.clauses)
            assert definition.rules and definition.trials
            if entry.targets and not definition.rules[1]:
                help = "its meaning must determine every attribute, and be no bare operand"
                raise RuleError(f"the kernel `{entry.name}` can never be chosen: it is not recognised", place=entry.place, help=help)
            names = collect(entry.parameters, (), definition.dialects)
            errors += lint_tests(entry.tests, names, names.kinds, results=len(entry.result) or None, needed=True)
        except RuleError as error:
            errors.append(error)
    if not errors:
        errors += [circle for entry in new if (circle := _circle(entry)) is not None]
    if errors:
        for _, op in fresh:
            forget(op)
    return errors


def forget(op: Op) -> None:
    """Withdraw an op and what defines it."""
    for registry in (_DEFINITIONS, CLAUSES, OWN):
        registry.pop(op.name, None)
    _expansion.cache_clear()  # of an op of this name that means something else
    _unquestioned.cache_clear()
    withdraw(op)


def _own(name: str, dialects: Mapping[str, str]) -> dict[str, str]:
    """The dialects in use and that of the op itself."""
    dialect = name.split(".")[0]
    return {dialect: dialect, **dialects}


def _operands(entry: syntax.OpEntry) -> list[syntax.Declaration]:
    return [parameter for parameter in entry.parameters if isinstance(parameter.kind, syntax.TensorKind)]


def _signature(entry: syntax.OpEntry, dialects: Mapping[str, str]) -> Op:
    """The op of an entry; its type rule and work look the definition up, so that entries may come in any order."""
    operands = _operands(entry)
    optional, repeated = [operand.optional for operand in operands], [operand.variadic for operand in operands]
    if optional != sorted(optional):
        raise RuleError("optional operands come last", place=entry.place, help="move them behind the others")
    if repeated != sorted(repeated) or sum(repeated) > 1 or (any(repeated) and any(optional)):
        raise RuleError("a variadic operand comes last, without optional ones", place=entry.place, help="write xs..: T[..] last, once")
    names = collect(entry.parameters, (), dialects)
    values = Values(names, left=True)
    attributes = []
    for name, parameter in names.attributes.items():
        default = None
        if parameter.default is not None:
            word = names.kinds[name].word
            default = evaluate_value(values.attribute(parameter.default, word), Scope())
            default = tuple(map(float, default)) if word == "floats" else default
        attributes.append(Attribute(name, names.kinds[name].word, default, required=parameter.default is None))
    elementwise = not any(optional) and "sugar" not in entry.tags and all(_elementwise(entry, clause, names) for clause in entry.clauses)
    return Op(
        entry.name, partial(_infer, entry.name), None, tuple(attributes), tuple(operand.name for operand in operands), sum(optional),
        variadic=any(repeated), traits=frozenset({"elementwise"} if elementwise else ()), flops=partial(_flops, entry.name),
        source=f"{Path(entry.place.file).name}:{entry.place.line}", document=entry.document,
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
                op = None if part.name in ("bcast", "sum", "max", "min", "prod", "host", "swap_last") else _maybe(names, part)
                if op is None or not op.has("elementwise"):
                    return False
    return True


def _maybe(names: Names, call: syntax.Invocation) -> Op | None:
    try:
        found = names.meant(call.name, call.place)
    except RuleError:
        return None
    return found[0] if len(found) == 1 else None


def _read(entry: syntax.OpEntry, op: Op, dialects: Mapping[str, str]) -> tuple[list[Rule], list[Rule]]:
    """The rules that expand the op of an entry without variadic operands, and those that recognise it."""
    found = kept_definition(entry, op.name)
    if found is not None:
        return found
    expand, recognise = _elaborated(entry, op, dialects)
    sides: dict[str, list[Rule]] = {}
    for rule in expand:
        sides.setdefault(str(rule.right), []).append(rule)
    recognise = [replace(rule, mirrors=tuple(sides.get(str(rule.left), ()))) for rule in recognise]
    keep_definition(entry, op.name, expand, recognise)
    return expand, recognise


def _elaborated(entry: syntax.OpEntry, op: Op, dialects: Mapping[str, str]) -> tuple[list[Rule], list[Rule]]:
    expand: list[Rule] = []
    recognise: list[Rule] = []
    head = _head(entry, op)
    for clause in entry.clauses:
        forward = Direction(
            op.name, op.name, head, clause.body, clause.condition, clause.promise, entry.document, entry.place, entry.text,
            definition=op.name, result=entry.result,
        )  # fmt: skip
        expand += variants(forward, _names(entry, clause, dialects), most=MOST_FORMS)
        for left, right in _mirrored(clause.body, head):
            name = f"{op.name}.recognise"
            backward = replace(forward, name=name, family=name, left=left, right=right, result=(), lenient=True)
            recognise += variants(backward, _names(entry, clause, dialects), most=MOST_FORMS)
    return expand, recognise


def _head(entry: syntax.OpEntry, op: Op) -> syntax.Invocation:
    """The op over its own operands, with its own attributes."""
    keywords = tuple((attribute.name, syntax.Name(attribute.name, entry.place)) for attribute in op.attributes)
    operands = tuple(syntax.Name(operand.name, operand.place) for operand in _operands(entry))
    return syntax.Invocation(entry.name, operands, keywords, None, entry.place)


def _mirrored(body: syntax.Expression, head: syntax.Invocation) -> list[tuple[syntax.Expression, syntax.Expression]]:
    """What is recognised as what: the body as the op, or each of several results as that result of it."""
    if not (isinstance(body, syntax.Operation) and body.operator == "tuple"):
        return [(body, head)]
    places = [(each, syntax.Number(Decimal(index), head.place)) for index, each in enumerate(body.operands) if each is not None]
    return [(each, syntax.Invocation("get", (head, index), (), None, head.place)) for each, index in places]


def _names(entry: syntax.OpEntry, clause: syntax.Clause, dialects: Mapping[str, str]) -> Names:
    return collect(entry.parameters, clause.locals, dialects)


def _numbered(rules: Sequence[Rule]) -> list[Rule]:
    return [rule if not i else rule.changed(name=f"{rule.name.split('#')[0]}#{i + 1}") for i, rule in enumerate(rules)]


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
        definition = _DEFINITIONS.get(pending.pop())
        for name in sorted(definition.mentioned) if definition else ():
            if name == entry.name:
                help = "say what it means by ops that mean something without it"
                return RuleError(f"the definition of `{entry.name}` leads back to itself", place=entry.place, help=help)
            if name not in seen:
                seen.add(name)
                pending.append(name)
    return None


# ---------------------------------------------------------------- reading a definition from left to right


def _read_expansion(name: str, operands: tuple[Type, ...], items: AttributeItems) -> tuple[Expansion | str, frozenset[str]]:
    """The expansion by the first clause that fits, or why none does, and what was noted on the way."""
    definition = _DEFINITIONS.get(name)
    assert definition is not None, f"{name} is used before its file is read"
    try:
        readings = definition.readings(len(operands))
    except RuleError as error:  # too many operands for a fold
        return error.message, frozenset()
    with noting() as noted:
        found = first_expansion(readings, operands, dict(items))
    if FORM in noted:  # that of another definition says of which
        noted.remove(FORM)
        noted |= set() if definition.of_one_form else {f"{FORM} in {name}"}
    return found, frozenset(noted)


@lru_cache(maxsize=65536)
def _expansion(name: str, operands: tuple[Type, ...], items: AttributeItems, _: Any) -> tuple[Expansion | str, frozenset[str]]:
    """As `_read_expansion`. The last argument tells attributes apart that are `==`."""
    return _read_expansion(name, operands, items)


@lru_cache(maxsize=65536)
def _unquestioned(name: str, operands: tuple[Type, ...], items: AttributeItems, _: Any) -> tuple[Expansion | str, frozenset[str]] | None:
    """The same in a proof, where it asks nothing of the sizes; else None: each case of the proof has its own answers."""
    try:
        with asking(_refuse):
            return _read_expansion(name, operands, items)
    except _Asked:
        return None


class _Asked(Exception):
    pass


def _refuse(question: str, difference: Poly) -> bool:
    raise _Asked


def expansion(name: str, operands: Sequence[Type], attributes: Attributes) -> Expansion:
    """What the defined op `name` means for operands of these types, in steps; `attributes` are complete.

    Raises:
        TypeRuleError: no clause of its definition fits.
    """
    items = tuple(sorted(attributes.items()))
    key = (name, tuple(operands), items)
    if questioned():
        found, noted = _unquestioned(*key, exact_key(items)) or _read_expansion(*key)
    else:
        found, noted = _expansion(*key, exact_key(items))
    for what in noted:
        note(what)
    if isinstance(found, str):
        kind = Unsettled if isinstance(found, Doubt) else TypeRuleError
        raise kind(f"`{name}`: {found}", help="see its definition in the dialect's rules")
    return found


def _infer(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """The type of the expansion."""
    return expansion(name, operands, attributes).type


def _flops(name: str, _: Type, operands: Sequence[Type], attributes: Attributes) -> Any:
    """The work of the expansion."""
    return expansion(name, operands, attributes).flops(operands)


def expand(term: Term) -> Term:
    """The term that defines `term`, one step; its operands stay as they are.

    Raises:
        CosetError: no definition of the op fits.
    """
    if term.op.name not in _DEFINITIONS:
        raise CosetError(f"the op `{term.op.name}` has no definition")
    types = [operand.type for operand in term.operands]
    return expansion(term.op.name, types, dict(term.attributes)).term(term.operands)


def evaluate_defined(term: Term, operands: Sequence[Any]) -> Any:
    """The value of a defined op on arrays: the `fallback` of `coset.ir.evaluate` for defined ops.

    Raises:
        CosetError: the op is not defined by a term.
    """
    if term.op.name not in _DEFINITIONS:
        raise CosetError(f"`{term.op.name}` has no NumPy meaning and no definition, so that the program cannot be evaluated")
    inputs = {f"operand_{i}": np.asarray(value) for i, value in enumerate(operands) if value is not None}
    terms = [
        absent() if value is None else input_term(f"operand_{i}", TensorType(dtype_of(np.asarray(value).dtype), np.shape(value)))
        for i, value in enumerate(operands)
    ]
    return evaluate([expand(make(term.op, terms, dict(term.attributes)))], inputs, fallback=evaluate_defined)[0]
