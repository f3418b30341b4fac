"""Ops that a term defines: their registration, type rule and work, and reading the definition in both directions."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from coset.ir.builtin import absent
from coset.ir.dims import Poly
from coset.ir.errors import CosetError, TypeRuleError
from coset.ir.evaluate import evaluate
from coset.ir.op import DEFERRED, Attributes, Op, get_op
from coset.ir.term import AttributeItems, Term, exact_key, input_term, make
from coset.ir.types import TensorType, Type, dtype_of
from coset.rules import syntax
from coset.rules.definition_rules import elaborated_rules, head_of, names_in, numbered, op_meant, rules_of_entry
from coset.rules.elaborate import Direction, variants
from coset.rules.elaborated import in_dialects
from coset.rules.expansion import FORM, Doubt, Expansion, Reading, Unsettled, first_expansion
from coset.rules.lock import ASSURANCES, NAME, assure, read_lock, text_hash
from coset.rules.meant import OWN, of_one_form, with_what_it_rests_on, written
from coset.rules.names import collect
from coset.rules.rule import Rule
from coset.rules.scalar import note
from coset.rules.syntax import RuleError
from coset.rules.unroll import UNROLLED, unrolled, variadic
from coset.rules.watched import asking, noting, questioned


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
            found = [] if entry is None else [Reading.of(entry, c, names_in(entry, c, self.dialects)) for c in entry.clauses]
            self.readings_by_count[key] = found
        return self.readings_by_count[key]

    @cached_property
    def of_one_form(self) -> bool:
        """Whether the op means the same of sizes that are symbols as of sizes that are numbers."""
        return of_one_form(self.entry.clauses)

    def meant(self, call: syntax.Invocation) -> Op | None:
        """The op that the entry calls so; None where it is no one op."""
        return op_meant(names_in(self.entry, self.entry.clauses[0], self.dialects), call)

    @cached_property
    def mentioned(self) -> set[str]:
        """The ops that the entry names."""
        found: set[str] = set()
        for clause in self.entry.clauses:
            names = names_in(self.entry, clause, self.dialects)
            for expression in clause.said:
                for part in syntax.walk(expression):
                    if isinstance(part, syntax.Invocation):
                        folded = part.arguments[0] if part.name == "fold" and part.arguments else None
                        op = op_meant(names, replace(part, name=folded.value) if isinstance(folded, syntax.Name) else part)
                        found |= set() if op is None else {op.name}
        return found

    @cached_property
    def rules(self) -> tuple[tuple[Rule, ...], tuple[Rule, ...]]:
        """The rules that expand the op and those that recognise it, by clause and form. An op with a variadic operand has them
        for a few numbers of operands. One that is tagged `sugar` has none: it is expanded on import."""
        entries = [] if self.is_sugar else self.few
        pairs = [rules_of_entry(entry, self.op, self.dialects) for entry in entries]
        both = (self.hinted(numbered([rule for pair in pairs for rule in pair[position]])) for position in (0, 1))
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
            tuple(rule for entry in self.few for rule in elaborated_rules(entry, self.op, self.dialects)[0])
            if self.is_sugar
            else self.rules[0]
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
            head, clause = head_of(entry, self.op), entry.clauses[0]
            direction = Direction(
                name, name, head, head, None, clause.promise, entry.document, entry.place, entry.text, definition=self.op.name, trial=True
            )
            found += variants(direction, collect(entry.parameters, (), self.dialects))
        return tuple(assure(self._with_text(numbered(self.hinted(found))), self.directory))

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


DEFINED: dict[str, Definition] = {}
LOOKED_UP: set[str] = set()  # those of them that were read because their op was looked up
PUT_OFF: set[str] = set()  # the kernels that are read when they are looked up


def definitions(without: Container[str] = ()) -> list[Rule]:
    """The rules of every registered definition but those `without`, expanding and recognising, by name."""
    found: dict[str, tuple[tuple[Rule, ...], tuple[Rule, ...]]] = {}
    while new := [name for name in DEFINED if name not in found and name not in without]:
        found |= {name: DEFINED[name].rules for name in new}  # which looks up the ops that it mentions: that may register more
    return sorted((rule for both in found.values() for own in both for rule in own), key=lambda rule: rule.name)


def trials(name: str) -> tuple[Rule, ...]:
    """Rules that test the definition of the op `name` on values, if it has one; they are no rules of a search."""
    return DEFINED[name].trials if name in DEFINED else ()


def definition_texts() -> frozenset[str]:
    """The texts of all registered definitions that have rules: what a cache of rules that were read with them must be keyed by."""
    return frozenset(definition.text for definition in DEFINED.values() if not definition.is_sugar)


def ready_definitions() -> frozenset[str]:
    """The ops that files of the dialects define, and that are registered whatever the program is."""
    return frozenset(name for name, each in DEFINED.items() if in_dialects(each.directory) and name not in LOOKED_UP)


def further_definitions() -> list[str]:
    """The texts of the registered definitions that stand elsewhere than in files of the dialects, by name."""
    return [each.text for _, each in sorted(DEFINED.items()) if not in_dialects(each.directory)]


def is_defined(op: Op) -> bool:
    """True when a term defines `op`."""
    return op.name in DEFINED


def is_kernel(name: str) -> bool:
    """True when `name` is an op that some targets have, and that a term defines. One that was put off is not read for it."""
    return name in PUT_OFF if name in DEFERRED else is_defined(get_op(name)) and bool(DEFINED[name].targets)


def target_name(written: syntax.Name) -> str:
    """The name of a target that a kernel names, which has `_` for `-`."""
    return written.value.replace("_", "-")


def kernels() -> list[Definition]:
    """The definitions of kernels that were read so far, by name."""
    return [DEFINED[name] for name in sorted(DEFINED) if DEFINED[name].entry.targets]


def definition_of(op: Op) -> Definition:
    """The definition of `op`, which has one."""
    return DEFINED[op.name]


# ---------------------------------------------------------------- reading a definition from left to right


def _read_expansion(name: str, operands: tuple[Type, ...], items: AttributeItems) -> tuple[Expansion | str, frozenset[str]]:
    """The expansion by the first clause that fits, or why none does, and what was noted on the way."""
    definition = DEFINED.get(name)
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


def type_of_expansion(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """The type of the expansion."""
    return expansion(name, operands, attributes).type


def work_of_expansion(name: str, _: Type, operands: Sequence[Type], attributes: Attributes) -> Any:
    """The work of the expansion."""
    return expansion(name, operands, attributes).flops(operands)


def expand(term: Term) -> Term:
    """The term that defines `term`, one step; its operands stay as they are.

    Raises:
        CosetError: no definition of the op fits.
    """
    if term.op.name not in DEFINED:
        raise CosetError(f"the op `{term.op.name}` has no definition")
    types = [operand.type for operand in term.operands]
    return expansion(term.op.name, types, dict(term.attributes)).term(term.operands)


def evaluate_defined(term: Term, operands: Sequence[Any]) -> Any:
    """The value of a defined op on arrays: the `fallback` of `coset.ir.evaluate` for defined ops.

    Raises:
        CosetError: the op is not defined by a term.
    """
    if term.op.name not in DEFINED:
        raise CosetError(f"`{term.op.name}` has no NumPy meaning and no definition, so that the program cannot be evaluated")
    inputs = {f"operand_{i}": np.asarray(value) for i, value in enumerate(operands) if value is not None}
    terms = [
        absent() if value is None else input_term(f"operand_{i}", TensorType(dtype_of(np.asarray(value).dtype), np.shape(value)))
        for i, value in enumerate(operands)
    ]
    return evaluate([expand(make(term.op, terms, dict(term.attributes)))], inputs, fallback=evaluate_defined)[0]
