"""The checker of certificates: that each step is an instance of its rule, and that the steps in order join the outputs of two programs.

It knows terms, their types and how rules are matched and decided. What is given to it: the two programs, the rules by name, and what the
definitions of ops mean. docs/trust.md lists what it rests on, and which modules it imports.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from coset.ir.program import Program
from coset.ir.term import CONSTANT, Term
from coset.prove.budget import EACH, OPERATIONS, Budget
from coset.prove.certificate import FORMAT, VERSION, Certificate, Line, Numbered, Rejected, is_number, read_term
from coset.prove.classes import Classes
from coset.prove.contents import all_terms, by_content, digest, inner_symbols, one_result, other_of, resized, set_apart
from coset.prove.facing import Facing, facing
from coset.prove.folded import Folding, computes, leaves_of, refuse_unless, required
from coset.prove.laws import support
from coset.rules.applied import matched, right_sides, said
from coset.rules.equation import NUMERICS_ORDER, Equation, Numerics

ASSURANCES = ("proved", "bounded", "tested", "assumed")  # from the strongest to the weakest
SMALL = 1 << 24  # elements that may always be computed
DERIVED = frozenset({"const", "varying"})  # what a rule asks of a variable for the search's sake, not for its truth
HEAD = frozenset({"format", "version", "before", "after", "rules"})
RULE = frozenset({"name", "text", "numerics", "assurance"})
FOLDED = "constants"  # how the promise of rounded constants is called among those of rules


EXACT = Numerics("exact")


@dataclass(frozen=True)
class Meaning:
    """What a term's op is defined as, one step. `name`: the entry that says it, "" where the checker's own laws do (items of tuples)."""

    term: Term
    name: str = ""
    numerics: Numerics = EXACT
    assurance: str = ASSURANCES[0]


@dataclass(frozen=True)
class Use:
    """A rule or definition that a certificate uses: what it promises, and how far that is shown."""

    numerics: Numerics
    assurance: str


@dataclass(frozen=True)
class Verdict:
    """What a certificate that was checked shows: the two programs are equal up to `numerics`, the weakest word of all that was used, with
    all exceptions together. `used`: rules and definitions by name. `steps`: how many were checked; `computed` are constants that were
    computed, `rounded` such as somebody rounded otherwise; `absolute` and `relative`: the largest bounds of an element's rounding.
    `names`: the mapping under which it holds; `unread`, `reordered`: see `Facing`."""

    numerics: Numerics
    assurance: str
    used: Mapping[str, Use]
    steps: int
    computed: int
    rounded: int
    absolute: float
    relative: float
    names: Mapping[str, str]
    unread: Sequence[str]
    reordered: Sequence[str]


def text_hash(rule: Equation) -> str:
    """The hash that a certificate names a rule's text by: as it is written, without what it rests on."""
    return hashlib.sha256(rule.text.partition("\n#")[0].encode()).hexdigest()


def verify(
    certificate: Certificate, before: Program, after: Program, find: Callable[[str], Equation | None], *,
    meaning: Callable[[Term], Meaning | None], fallback: Callable[[Term, Sequence[Any]], Any], names: Mapping[str, str] | None = None,
    operations: int = OPERATIONS,
) -> Verdict:  # fmt: skip
    """Check that `certificate` shows `before` and `after` to be equal.

    `find` gives a rule by its name as it is now, with the assurance that it has now; `meaning` what the op of a term is defined as.
    `fallback` gives values to defined ops inside functions. `names`: what inputs and outputs of `after` are called in `before`, where that
    is another name: the certificate cannot say it. `operations`: how many may be spent on the values of constants.

    Raises:
        Rejected: it does not, with the step that fails.
        CosetError: a program's weights cannot be read.
    """
    return _Checker(certificate, by_content(before), by_content(after), find, meaning, fallback, dict(names or {}), operations).run()


@dataclass
class _Checker:
    certificate: Certificate
    before: Program
    after: Program
    find: Callable[[str], Equation | None]
    meaning: Callable[[Term], Meaning | None]
    fallback: Callable[[Term, Sequence[Any]], Any]
    names: Mapping[str, str]
    operations: int
    classes: Classes = field(default_factory=Classes)
    used: dict[str, Use] = field(default_factory=dict)
    apart: int = 0

    def run(self) -> Verdict:
        head = self.certificate.head
        if not isinstance(head, dict) or head.keys() != HEAD or head["format"] != FORMAT or not is_number(head["version"], VERSION):
            raise Rejected("the head says something else", help="names of inputs and outputs are given by --map AFTER_NAME=BEFORE_NAME")
        for key, program in (("before", self.before), ("after", self.after)):
            if head[key] != digest(program):
                raise Rejected(f"the certificate speaks of another program {key}", help="give the two files that it was made for, in order")
        found = facing(self.before, self.after, self.names)
        self.before, self.after = found.before, found.after
        self.rules = self._rules(head["rules"])
        self.numbered = Numbered(self.before, self.after)
        self.classes.enter(self.numbered.terms)
        largest = max(SMALL, sum(prod(term.tensor.static or ()) for term in self.numbered.terms if term.op is CONSTANT))
        self.budget = Budget(largest, self.operations)
        own, other = (frozenset(all_terms(program)) for program in (self.before, self.after))
        self.folding = Folding(self.classes, own, other, self._meant, self.fallback, self.budget)
        steps = 0
        for place, line in enumerate(self.certificate.lines, start=2):
            try:
                steps += self._line(line)
            except Rejected as error:
                raise Rejected(f"line {place}: {error.message}") from None
            except Exception as error:  # a line that cannot be looked at shows nothing, whatever is in the way
                raise Rejected(f"line {place}: {error or type(error).__name__}") from None
        self._joined()
        return self._verdict(steps, found)

    def _rules(self, listed: Any) -> list[Equation]:
        if not isinstance(listed, list):
            raise Rejected("the certificate lists no rules")
        found = []
        for each in listed:
            name, text = (each.get(key) for key in ("name", "text")) if isinstance(each, dict) and each.keys() <= RULE else (None, None)
            rule = self.find(name) if isinstance(name, str) else None
            if rule is None:
                raise Rejected(f"there is no rule `{name}`", help="give the rule files that it was made with: --rules FILE")
            if text_hash(rule) != text:
                raise Rejected(f"rule `{name}` is another one than when the certificate was made", help="make the certificate again")
            found.append(rule)
        return found

    def _joined(self) -> None:
        """Require that the outputs are joined in pairs."""
        names = [*(f"`{name}`" for name, _ in self.before.outputs), "the effects"]
        for name, one, other in zip(names, self.before.roots, self.after.roots, strict=False):
            refuse_unless(one.type == other.type, f"{name} is {one.type} before and {other.type} after")
            refuse_unless(self.classes.same(one, other), f"the steps do not join the two values of {name}")

    # ------------------------------------------------------------ lines

    def _line(self, line: Line) -> int:
        """Check one line; 1 where it is a step."""
        (kind,) = line if line.keys() in KINDS else ("",)
        if kind == "term":
            term = read_term(line["term"], self.numbered)
            self.numbered.add(term)
            self.classes.enter([term])
            return 0
        if kind == "computed":
            term = self.numbered[line["computed"]]
            value = self.folding.value(term)
            self.numbered.add(value)
            self.classes.join(term, value)
        elif kind == "rounded":
            term, other = self.numbered.several(line["rounded"], 2)
            self.folding.rounding(term, other)
            self.classes.join(term, other)
        elif kind == "dims":
            refuse_unless(isinstance(line["dims"], list), "dims are given by pairs of nodes")
            self._dims([self.numbered.several(pair, 2) for pair in line["dims"]])
        elif kind == "apart":
            self._apart(line["apart"])
            return 0
        elif kind == "meaning":
            self._meaning(self.numbered[line["meaning"]])
        else:
            refuse_unless(line.keys() == {"rule", "left", "right"}, "no line of a certificate")
            self._step(line)
        return 1

    def _step(self, line: Line) -> None:
        number = line["rule"]
        refuse_unless(type(number) is int and 0 <= number < len(self.rules), f"there is no rule {number}")
        rule = self.rules[number]
        roots = self.numbered.several(line["left"])
        left, given = required(matched(rule, roots), f"the left side of `{rule.name}` is no pattern of these terms")
        rounded = any(term in self.folding.recorded for term in left.values())
        refuse_unless(not rounded, f"`{rule.name}` looks at a number that was rounded")
        for fact, name in rule.facts:
            if fact not in DERIVED:
                shown = support(given[name], fact, self._known_members, self.classes.find)
                pairs = required(shown, f"nothing before shows that `{name}` of `{rule.name}` is {fact}")
                self.folding.looked |= {term for pair in pairs for term in pair if term.op is CONSTANT}
        decision = required(said(rule, left, given), f"`{rule.name}` does not hold of these terms")
        right = right_sides(rule, decision, given)
        claimed = self.numbered.several(line["right"])
        refuse_unless(tuple(right) == claimed, f"`{rule.name}` says something else of these terms")
        self.folding.looked |= {term for term in left.values() if term.op is CONSTANT}
        for one, other in zip(roots, right, strict=True):
            refuse_unless(one.type == other.type, f"`{rule.name}` changes a type")
            self.classes.join(one, other)
        self.used[rule.name] = Use(rule.numerics, rule.assurance)

    def _known_members(self, found: int) -> Iterator[Term]:
        """The terms of a class that facts may rest on: none that was rounded."""
        return (term for term in self.classes.members(found) if term not in self.folding.recorded)

    def _meaning(self, term: Term) -> None:
        """A term of a defined op, or a node that was kept as it came, is what the op's definition says."""
        found = required(self.meaning(term), "the term's op has no definition")
        refuse_unless(found.term.type == term.type, "the definition has another type")
        known = len(self.numbered.terms)
        self.numbered.enter(found.term)
        self.budget.spent += EACH * (len(self.numbered.terms) - known)
        self.classes.join(term, found.term)
        self._use(found)

    def _use(self, found: Meaning) -> None:
        """Count a definition; one that is used in several ways by the weakest of them."""
        if not found.name:
            return
        known = self.used.get(found.name)
        numerics = found.numerics if known is None else weakest([known.numerics, found.numerics])
        assurance = max(found.assurance, found.assurance if known is None else known.assurance, key=ASSURANCES.index)
        self.used[found.name] = Use(numerics, assurance)

    def _meant(self, term: Term) -> Term | None:
        """What a term means where a constant is computed: its value is that of the evaluator by any definition."""
        found = self.meaning(term)
        return None if found is None else found.term

    def _dims(self, pairs: Sequence[tuple[Term, ...]]) -> None:
        """Nodes that are one computation on equal operands have one result: its dims in the program after are those before, and the program
        is read anew with them."""
        before, after = set(all_terms(self.before)), set(all_terms(self.after))
        for one, other in pairs:
            refuse_unless(one in before and other in after, "only nodes of the programs say what their dims are")
            same = len(one.operands) == len(other.operands) and all(map(self.classes.same, one.operands, other.operands))
            refuse_unless(same, "the operands are not seen to be equal")
        sizes = required(one_result(pairs, set(inner_symbols(self.after))), "they are two computations")
        self._read_anew(resized(self.after, sizes))

    def _apart(self, said: Any) -> None:
        """One constant of the program after, or what only moves it, is another term where some nodes use it: it is known to be no other."""
        refuse_unless(isinstance(said, list) and len(said) == 2, "a constant and its users are wanted")
        value, users = self.numbered[said[0]], set(self.numbered.several(said[1]))
        own = set(all_terms(self.after))
        fits = value in own and users and users <= own and all(value in user.operands for user in users)
        refuse_unless(bool(fits), "no term of the program after, or no nodes that use it")
        refuse_unless(not computes(value) and {each.op for each in leaves_of(value)} == {CONSTANT}, "no constant")
        self.apart += 1
        self._read_anew(set_apart(self.after, value, users, other_of(value, self.apart)))

    def _read_anew(self, after: Program) -> None:
        known = len(self.numbered.terms)
        self.after = after
        self.numbered.program(after)
        self.classes.enter(self.numbered.terms[known:])
        self.folding.after = frozenset(all_terms(after))

    # ------------------------------------------------------------ what it rests on

    def _verdict(self, steps: int, found: Facing) -> Verdict:
        folding = self.folding
        if not folding.stable:
            self.used[FOLDED] = Use(Numerics("reassociates"), ASSURANCES[0])
        return Verdict(
            numerics=weakest([use.numerics for use in self.used.values()]),
            assurance=max((use.assurance for use in self.used.values()), key=ASSURANCES.index, default=ASSURANCES[0]),
            used=dict(sorted(self.used.items())),
            steps=steps,
            computed=folding.computed,
            rounded=folding.rounded,
            absolute=folding.absolute,
            relative=folding.relative,
            names=self.names,
            unread=found.unread,
            reordered=found.reordered,
        )


KINDS = [{kind} for kind in ("term", "computed", "rounded", "dims", "apart", "meaning")]


def weakest(promises: Sequence[Numerics]) -> Numerics:
    """The weakest word of all, with every exception and the bounds of those that have this word; `exact` of none."""
    word = max((each.word for each in promises), key=NUMERICS_ORDER.index, default=NUMERICS_ORDER[0])
    bounds = dict.fromkeys(each.bound for each in promises if each.word == word and each.bound)
    return Numerics(word, frozenset().union(*(each.exceptions for each in promises)), " + ".join(bounds))
