"""The second checker itself: line by line, each by what was joined before it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from coset.ir.dims import Dim
from coset.ir.errors import CosetError
from coset.ir.op import find_op
from coset.ir.program import Program
from coset.ir.term import CONSTANT, INPUT, PARAMETER, Term, constant, intern, make
from coset.prove.second import language, programs, reading
from coset.prove.second.answer import ACCEPTS, CANNOT_SAY, REJECTS, Answer, CannotSay, Refused, Unknown
from coset.prove.second.classes import Classes, Contents, below
from coset.prove.second.facts import Facts
from coset.prove.second.folding import Folding
from coset.prove.second.formats import Array, same_elements, wide
from coset.prove.second.functions import functions
from coset.prove.second.meaning import meaning
from coset.prove.second.nodes import refuse_nodes
from coset.prove.second.rules import BASIC_FACTS, Named, entry_name, instance, named
from coset.prove.second.scope import Unbound
from coset.prove.second.syntax import Entry
from coset.prove.second.values import EACH, Evaluator, elements_of, moves_alone

Entries = dict[str, list[Entry]]
UNFORESEEN = (CosetError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError, AssertionError, RecursionError, MemoryError)


class Checker:
    """Terms by number, what is equal so far, and the rules of the head."""

    def __init__(
        self, head: dict[str, Any], before: Program, after: Program, entries: Entries, names: Mapping[str, str] | None = None
    ) -> None:
        self.contents = Contents()
        for key, program in (("before", before), ("after", after)):
            if programs.program_hash(programs.by_content(program, self.contents)) != head.get(key):
                raise Refused(f"the certificate is about another program {key}")
        self.before, self.after = self._as_pair(before, after, names or {})
        self.entries = entries
        self.rules = self._rules(head)
        self.terms: list[Term] = []
        self.known: dict[Term, int] = {}
        self.classes = Classes()
        self.promises: dict[str, str] = {}
        self.apart = 0  # constants that were set apart so far
        self.loose: dict[Term, Array] = {}  # constants whose bits another library may have otherwise, and their bounds
        own = [programs.ordered(program) for program in (self.before, self.after)]
        for term in (*own[0], *own[1]):
            self.add(term)
        self.folding = Folding(own[0], own[1], Evaluator(elements_of(list(self.known)), self.opened), self.classes)
        self.facts = Facts(self.classes, self.folding.evaluator.recorded, self.folding.used)

    def _as_pair(self, before: Program, after: Program, names: Mapping[str, str]) -> tuple[Program, Program]:
        """The two programs with one interface and dims by content."""
        before, after = (programs.by_content(program, self.contents) for program in (before, after))
        after = programs.fitted(before, programs.mapped(after, names))
        after = programs.interface(before, after)
        return programs.with_content_dims(before), programs.with_content_dims(after)

    def _rules(self, head: dict[str, Any]) -> list[dict[str, Any]]:
        rules = head.get("rules")
        if set(head) != {"format", "version", "before", "after", "rules"} or not isinstance(rules, list):
            raise Refused("the head has other keys than it must")
        for each in rules:
            if not isinstance(each, dict) or not all(isinstance(each.get(key), str) for key in ("name", "text")):
                raise Refused("a rule of the head has a name and the hash of its text")
            if not set(each) <= {"name", "text", "numerics", "assurance"}:
                raise Refused("a rule of the head has other keys than it may")
        return rules

    # ------------------------------------------------------------ terms

    def add(self, term: Term) -> None:
        """Give a term the next number; one that has a number keeps it."""
        if term not in self.known:
            self.known[term] = len(self.terms)
            self.terms.append(term)
            self.classes.add(term)

    def term(self, number: Any) -> Term:
        """The term with a number."""
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < len(self.terms):
            raise Refused(f"there is no term {number!r}")
        return self.terms[number]

    def several(self, numbers: Any) -> tuple[Term, ...]:
        """Terms by their numbers."""
        if not isinstance(numbers, list):
            raise Refused("numbers of terms are a list")
        return tuple(self.term(number) for number in numbers)

    # ------------------------------------------------------------ lines

    def line(self, line: dict[str, Any]) -> None:
        """Check one line, and do what it says."""
        kind = next(iter(line), "")
        if kind == "rule" and set(line) == {"rule", "left", "right"}:
            self.rule(line["rule"], self.several(line["left"]), self.several(line["right"]))
        elif len(line) != 1 or kind not in ("term", "computed", "rounded", "meaning", "dims", "apart"):
            raise Refused("a line of no known form")
        else:
            getattr(self, f"line_{kind}")(line[kind])

    def line_term(self, row: Any) -> None:
        """A term over earlier ones."""
        if not isinstance(row, list) or len(row) not in (3, 4) or not isinstance(row[0], str):
            raise Refused("a term is an op, operands and attributes")
        op = find_op(row[0])
        if op is None or op is INPUT or op is PARAMETER:
            raise Refused(f"there is no op `{row[0]}`")
        operands = self.several(row[1])
        if isinstance(row[2], dict):
            attributes = reading.attributes(op, row[2])
            regions = functions(row[3]) if len(row) == 4 else ()
        elif len(row) == 4:
            raise Refused("functions of their own beside those of another term")
        else:
            like = self.term(row[2])
            if like.op is not op:
                raise Refused("attributes of a term of another op")
            attributes, regions = dict(like.attributes), like.regions
        self.add(self.made(op, operands, attributes, regions))

    def made(self, op: Any, operands: Sequence[Term], attributes: dict[str, Any], regions: tuple[Any, ...]) -> Term:
        """The term with these parts, its type by the op's rule."""
        try:
            made = make(op, operands, attributes, regions)
        except (CosetError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError, AssertionError) as error:
            raise Refused(f"no such term: {error}") from None
        return self.contents.term(made, made.operands)

    def rule(self, number: Any, left: tuple[Term, ...], right: tuple[Term, ...]) -> None:
        """An instance of a rule joins its sides."""
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < len(self.rules):
            raise Refused(f"there is no rule {number!r}")
        rule = self.named(number)
        try:
            side, found = instance(rule, left, right)
        except Unknown as error:
            raise Refused(str(error)) from None
        except Unbound as error:
            raise CannotSay(f"`{error}` of `{rule.name}`, which nothing binds") from None
        self.folding.looked_at(left, found)
        for variable in side.scope.variables.values():
            asked = found.values.get(variable.name)
            if variable.kind.fact not in BASIC_FACTS and isinstance(asked, Term) and not self.facts.holds(variable.kind.fact, asked):
                raise CannotSay(f"no law says that `{variable.name}` of `{rule.name}` is {variable.kind.fact}")
        self.promises[rule.name] = str(side.promise)
        for one, other in zip(left, right, strict=True):
            self.classes.join(one, other)

    def named(self, number: int) -> Named:
        """The rule of the head with a number: of the entries of its name those whose canonical text has the hash.

        Raises:
            Refused: there is an entry of that name, but none with this text.
            CannotSay: as `rules.named`.
        """
        name, text = (self.rules[number][key] for key in ("name", "text"))
        known = entry_name(name)
        same = [each for each in self.entries.get(known, []) if hashlib.sha256(each.text.encode()).hexdigest() == text]
        if known in self.entries and not same:
            raise Refused(f"the rule `{name}` had another text")
        for each in same:
            refuse_nodes(each, self.entries)
        return named(name, {known: same} if same else {})

    def line_computed(self, number: Any) -> None:
        """A term made of constants is its value."""
        t = self.term(number)
        value = self.folding.value(t)
        c = self.contents.term(constant(value.array, t.tensor.dtype), ())
        known = c in self.known
        self.folding.computed(t, value, c, known)
        if self.folding.evaluator.loose and value.bound.any():
            self.loose[c] = value.bound
        self.add(c)
        self.classes.join(t, c)

    def line_rounded(self, pair: Any) -> None:
        """A term made of constants is a constant but for roundings."""
        t, c = self.pair(pair)
        value = self.folding.value(t)
        self.folding.rounded(t, value, c)
        self.classes.join(t, c)

    def pair(self, numbers: Any) -> tuple[Term, Term]:
        """Two terms by their numbers."""
        found = self.several(numbers)
        if len(found) != 2:
            raise Refused("two numbers of terms are wanted")
        return found[0], found[1]

    def opened(self, term: Term) -> Term:
        """What a term of a defined op means, for its value."""
        try:
            return meaning(term, self.entries)[0]
        except Refused:
            raise CannotSay(f"the value of {term.op.name}") from None

    def line_meaning(self, number: Any) -> None:
        """A term is what its op's definition says."""
        t = self.term(number)
        whole, promise = meaning(t, self.entries)
        if whole.type != t.type:
            raise Refused("what the definition says has another type")
        (found,) = self.contents.terms([whole])
        known = len(self.terms)
        for term in below([found]):
            self.add(term)
        self.folding.evaluator.left -= EACH * (len(self.terms) - known)
        self.promises[f"{t.op.name} (its definition)"] = promise
        self.classes.join(t, found)

    def line_dims(self, pairs: Any) -> None:
        """Nodes of the two programs are one computation: so are the sizes that they say."""
        if not isinstance(pairs, list):
            raise Refused("pairs of numbers are a list")
        given = set(self.after.symbols())
        ends = [set(programs.ordered(program)) for program in (self.before, self.after)]
        found = [self.pair(pair) for pair in pairs]
        binding: dict[str, Dim] = {}
        for a, b in found:
            joined = len(a.operands) == len(b.operands) and all(map(self.classes.equal, a.operands, b.operands))
            if a not in ends[0] or b not in ends[1] or not joined or not programs.sized(a) or not programs.sized(b):
                raise Refused("nodes that are not one computation, or do not say how large they are")
            for name, dim in programs.places(b.type, a.type):
                if name not in given:
                    binding.setdefault(name, dim)
        for a, b in found:
            renamed = programs.renamed_term(b, b.operands, binding)
            if (renamed.op, renamed.exact, renamed.regions, renamed.type) != (a.op, a.exact, a.regions, a.type):
                raise Refused("nodes that differ in more than the names of their sizes")
        self._read_anew(programs.with_dims(self.after, binding))

    def line_apart(self, said: Any) -> None:
        """A constant of AFTER is a term of its own where some terms have it as an operand."""
        if not isinstance(said, list) or len(said) != 2:
            raise Refused("a constant and the terms that have it")
        moved, users = self.term(said[0]), self.several(said[1])
        own = frozenset(programs.ordered(self.after))
        if moved not in own or not users or not all(u in own and moved in u.operands for u in users):
            raise Refused("no term of AFTER, or no terms of it that have that one")
        parts = below([moved])
        leaves = [each for each in parts if not each.operands]
        if not moves_alone(moved) or len(leaves) != 1 or leaves[0].op is not CONSTANT:
            raise Refused("what is set apart is a constant, or what moves one")
        self.apart += 1
        done: dict[Term, Term] = {}
        for each in parts:
            if each.op is CONSTANT:
                content = each.attribute("value")
                done[each] = constant(replace(content, key=f"{content.key}, apart for the time {self.apart}"))
            else:
                done[each] = intern(each.op, tuple(done[x] for x in each.operands), each.attributes, each.regions, each.type)
        self._read_anew(programs.with_own_constant(self.after, moved, frozenset(users), done[moved]))

    def _read_anew(self, after: Program) -> None:
        """AFTER as it is from now on; its new terms get numbers."""
        self.after = after
        own = programs.ordered(after)
        for term in own:
            self.add(term)
        self.folding.programs = (self.folding.programs[0], frozenset(own))

    # ------------------------------------------------------------ the claim

    def end(self) -> None:
        """The outputs are equal, name by name."""
        ends = [dict(program.outputs) for program in (self.before, self.after)]
        pairs = [(f"the output {name}", ends[0][name], ends[1][name]) for name in ends[0]]
        if self.before.effects is not None and self.after.effects is not None:
            pairs.append(("what the programs do besides", self.before.effects, self.after.effects))
        different = [pair for pair in pairs if pair[1].type != pair[2].type or not self.classes.equal(*pair[1:])]
        if not different:
            return
        self._with_other_bits()
        if all(one.type == other.type and self.classes.equal(one, other) for _, one, other in different):
            raise CannotSay(f"whether {different[0][0]} is equal: constants were computed whose last bits are another library's")
        raise Refused(f"{different[0][0]} is not shown to be equal")

    def _with_other_bits(self) -> None:
        """Join each constant whose last bits are NumPy's with all that another library may have computed in its place. Nothing follows
        from that but what no library can show."""
        recorded = self.folding.evaluator.recorded
        for c, bound in self.loose.items():
            mine = wide(c.attribute("value").array())
            for other in self.terms:
                if other.op is CONSTANT and other.type == c.type:
                    array = wide(other.attribute("value").array())
                    with np.errstate(invalid="ignore"):
                        near = np.abs(array - mine) <= 2 * bound + recorded.get(other, 0.0)
                    if bool((near | same_elements(array, mine) | np.isinf(bound)).all()):
                        self.classes.join(c, other)


def verify(
    certificate: str | Path | bytes,
    before: Program,
    after: Program,
    rule_files: Sequence[str | Path],
    *,
    names: Mapping[str, str] | None = None,
) -> Answer:
    """What the second checker says of a certificate for two programs, with the rules of these files. `names` are the names that inputs and
    outputs of `after` have in `before`, where they differ."""
    try:
        entries = language.read(Path(path).read_text() for path in rule_files)
    except CannotSay as error:
        return Answer(CANNOT_SAY, str(error))
    return answered(certificate, before, after, entries, names=names)


def answered(
    certificate: str | Path | bytes, before: Program, after: Program, entries: Entries, *, names: Mapping[str, str] | None = None
) -> Answer:
    """What `verify` says, with the entries of rule files that are read already."""
    place: int | None = None
    steps = 0
    try:
        head, lines = reading.read_lines(certificate)
        checker = Checker(head, before, after, entries, names)
        for number, line in enumerate(lines, start=1):
            place = number
            checker.line(line)
            steps += "term" not in line
        place = None
        checker.end()
    except Refused as error:
        return Answer(REJECTS, str(error), place, steps)
    except CannotSay as error:
        return Answer(CANNOT_SAY, str(error), place, steps)
    except UNFORESEEN as error:
        return Answer(CANNOT_SAY, f"{type(error).__name__} on the way: {error}", place, steps)
    return Answer(ACCEPTS, "", None, steps, tuple(checker.promises.items()))
