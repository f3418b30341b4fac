"""The checker of certificates: that each step is an instance of its rule, and that the steps in order join the outputs of two programs.

It knows terms, their types and the rules as they are written, and nothing of searches. docs/trust.md lists what it rests on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import ml_dtypes
import numpy as np

from coset.dialects.hub_region_terms import plain_choice
from coset.dialects.onnx_kept import opened
from coset.ir.constants import constant_of
from coset.ir.errors import CosetError
from coset.ir.evaluate import Fallback, evaluate
from coset.ir.program import Program, tensors_in
from coset.ir.term import CONSTANT, GET, INPUT, TUPLE, Term, constant, exact_key, topological
from coset.ir.types import TensorType, dtype_of
from coset.prove.certificate import Certificate, Line, Numbered, read_term
from coset.prove.contents import all_terms, by_content, digest, dims_by_content, fitted, hashed, inner_symbols, one_result, renamed, resized
from coset.prove.laws import support
from coset.rules.applied import decided, matched, right_sides
from coset.rules.definition import expand, is_defined
from coset.rules.rule import NUMERICS_ORDER, Rule

ASSURANCES = ("proved", "bounded", "tested", "assumed")  # from the strongest to the weakest
CONSTANTS = frozenset({"builtin.constant", "builtin.absent", "stablehlo.iota"})  # leaves whose values are known
ROUNDINGS = 64  # of the largest element: how far a constant may be from what it is computed from, where somebody rounded otherwise
SMALL = 1 << 24  # elements that may always be computed
DERIVED = frozenset({"const", "varying"})  # what a rule asks of a variable for the search's sake, not for its truth


class Rejected(CosetError):
    """The certificate does not show what it claims."""


@dataclass(frozen=True)
class Verdict:
    """What a certificate that was checked shows: the two programs are equal up to `numerics`, resting on rules of which the weakest has
    this `assurance`. `promises`: what the rules promise and except, each with the rules' names. `steps`: how many were checked; `folded`
    are constants that were computed, `rounded` such as somebody rounded otherwise, at most `apart` of their largest element away. `unread`:
    inputs that only one of the programs has, and that nothing reads."""

    numerics: str
    assurance: str
    promises: Mapping[str, Sequence[str]]
    steps: int
    folded: int
    rounded: int
    apart: float
    unread: Sequence[str]


def apart(value: Any, other: Any) -> float | None:
    """How far two arrays of floats of one type are apart, by the largest finite element of the first; None where that is more than
    `ROUNDINGS` roundings of it, or what is not finite differs."""
    kind = dtype_of(value.dtype)
    if kind.kind != "float" or value.shape != other.shape:
        return None
    exact, given = (np.asarray(each, np.float64) for each in (value, other))
    finite = np.isfinite(exact)
    if not np.array_equal(exact[~finite], given[~finite], equal_nan=True) or not np.isfinite(given[finite]).all():
        return None
    largest = float(np.abs(exact[finite]).max(initial=0.0))
    distance = float(np.abs(exact[finite] - given[finite]).max(initial=0.0)) / (largest or 1.0)
    eps = float(ml_dtypes.finfo(kind.numpy).eps)  # type: ignore[no-untyped-call]
    return distance if distance <= ROUNDINGS * eps else None


def computes(term: Term) -> bool:
    """True where a term does more than to move the elements of its leaves."""
    return any(each.operands and not each.op.has("movement") for each in topological([term]))


def text_hash(rule: Rule) -> str:
    """The hash that a certificate names a rule's text by."""
    return hashlib.sha256(rule.text.encode()).hexdigest()


def verify(certificate: Certificate, before: Program, after: Program, find: Callable[[str], Rule | None], *, fallback: Fallback) -> Verdict:
    """Check that `certificate` shows `before` and `after` to be equal.

    `find` gives a rule by its name as it is now, with the assurance that it has now. `fallback` gives meanings to defined ops, where a
    constant is computed.

    Raises:
        Rejected: it does not, with the step that fails.
        CosetError: a program's weights cannot be read.
    """
    before, after = by_content(before), by_content(after)
    return _Checker(certificate, before, after, find, fallback).run()


def meaning_of(term: Term) -> Term | None:
    """The term that the definition of a term's op gives for it, one step; None where there is none. An item of a tuple means that item,
    a choice the one that captures what it uses."""
    if term.op is GET and term.operands[0].op is TUPLE:
        index: int = term.attribute("index")
        return term.operands[0].operands[index]
    if term.op.name == "onnx.node":
        return opened(term)
    if (plain := plain_choice(term)) is not None:
        return plain
    return expand(term) if is_defined(term.op) else None


@dataclass
class _Checker:
    certificate: Certificate
    before: Program
    after: Program
    find: Callable[[str], Rule | None]
    fallback: Fallback
    closure: _Closure = field(default_factory=lambda: _Closure())
    used: dict[str, Rule] = field(default_factory=dict)
    folded: int = 0
    rounded: int = 0
    apart: float = 0.0
    unread: list[str] = field(default_factory=list)

    def run(self) -> Verdict:
        head = self.certificate.head
        for key, program in (("before", self.before), ("after", self.after)):
            if head.get(key) != digest(program):
                raise Rejected(f"the certificate speaks of another program {key}", help="give the two files that it was made for, in order")
        self.after = self._facing(dims_by_content(self._renamed(head.get("names"))))
        self.before = dims_by_content(self.before)
        self.rules = self._rules(head.get("rules"))
        self.numbered = Numbered(self.before, self.after)
        self.closure.enter(self.numbered.terms)
        self.largest = max(SMALL, sum(prod(term.tensor.static or ()) for term in self.numbered.terms if term.op is CONSTANT))
        steps = 0
        for place, line in enumerate(self.certificate.lines, start=2):
            try:
                steps += self._line(line)
            except Rejected as error:
                raise Rejected(f"line {place}: {error.message}") from None
            except Exception as error:  # a line that cannot be looked at shows nothing, whatever is in the way
                raise Rejected(f"line {place}: {error or type(error).__name__}") from None
        names = [*(f"`{name}`" for name, _ in self.before.outputs), "the effects"]
        for name, one, other in zip(names, self.before.roots, self.after.roots, strict=False):
            if one.type != other.type:
                raise Rejected(f"{name} is {one.type} before and {other.type} after")
            if not self.closure.same(one, other):
                raise Rejected(f"the steps do not join the two values of {name}")
        return self._verdict(steps)

    # ------------------------------------------------------------ what is claimed

    def _renamed(self, names: Any) -> Program:
        """The program after with the names that its inputs and outputs have before, where the certificate says which is which, and for the
        dims that its inputs have before."""
        try:
            own = self.after if names is None else renamed(self.after, dict(names["inputs"]), dict(names["outputs"]))
            return fitted(own, self.before)
        except (CosetError, ValueError, TypeError, KeyError) as error:
            raise Rejected(f"the inputs and outputs of the program after cannot be those before: {error}") from None

    def _facing(self, after: Program) -> Program:
        """The program after with its outputs in the order before; both programs must have the same inputs and outputs, in any order. An
        input that only one has is none that it reads."""
        programs = self.before, after
        given = [{term.attribute("name"): str(term.type) for term in program.inputs} for program in programs]
        if any(len(each) < len(program.inputs) for each, program in zip(given, programs, strict=True)):
            raise Rejected("two inputs have one name")
        for program, other in zip(programs, reversed(given), strict=True):
            alone = {term for term in program.inputs if other.get(term.attribute("name")) != str(term.type)}
            names = {term.attribute("name") for term in alone}
            if names & set(other) or not alone <= set(program.unread()):
                raise Rejected("the programs have other inputs")
            self.unread += sorted(names)
        others, called = dict(after.outputs), [name for name, _ in self.before.outputs]
        same = sorted(others) == sorted(called) and len(others) == len(after.outputs)
        if not same or (self.before.effects is None) != (after.effects is None):
            raise Rejected("the programs have other outputs")
        return replace(after, outputs=tuple((name, others[name]) for name in called))

    def _rules(self, listed: Any) -> list[Rule]:
        if not isinstance(listed, list):
            raise Rejected("the certificate lists no rules")
        found = []
        for each in listed:
            name, text = (each.get(key) for key in ("name", "text")) if isinstance(each, dict) else (None, None)
            rule = self.find(name) if isinstance(name, str) else None
            if rule is None:
                raise Rejected(f"there is no rule `{name}`", help="give the rule files that it was made with: --rules FILE")
            if text_hash(rule) != text:
                raise Rejected(f"rule `{name}` is another one than when the certificate was made", help="make the certificate again")
            found.append(rule)
        return found

    # ------------------------------------------------------------ lines

    def _line(self, line: Line) -> int:
        """Check one line; 1 where it is a step."""
        if line.keys() == {"term"}:
            term = read_term(line["term"], self.numbered)
            self._require(term.op is not INPUT or term in self.numbered.number, "a certificate adds no inputs")
            self.numbered.add(term)
            self.closure.enter([term])
            return 0
        if line.keys() == {"rule", "left", "right"}:
            self._step(line)
            return 1
        if line.keys() == {"computed"}:
            self._computed(self.numbered[line["computed"]])
            return 1
        if line.keys() == {"rounded"}:
            self._rounded(*(self.numbered[each] for each in line["rounded"]))
            return 1
        if line.keys() == {"dims"}:
            self._dims([(self.numbered[one], self.numbered[other]) for one, other in line["dims"]])
            return 1
        if line.keys() == {"meaning"}:
            self._meaning(self.numbered[line["meaning"]])
            return 1
        raise Rejected("no line of a certificate")

    def _step(self, line: Line) -> None:
        number = line["rule"]
        self._require(type(number) is int and 0 <= number < len(self.rules), f"there is no rule {number}")
        rule = self.rules[number]
        roots = [self.numbered[each] for each in line["left"]]
        found = matched(rule, roots)
        self._require(found is not None, f"the left side of `{rule.name}` is no pattern of these terms")
        assert found is not None
        left, given = found
        for fact, name in rule.facts:
            shown = fact in DERIVED or support(given[name], fact, self.closure.members, self.closure.find) is not None
            self._require(shown, f"nothing before shows that `{name}` of `{rule.name}` is {fact}")
        decision = decided(rule, left, given)
        self._require(decision is not None, f"`{rule.name}` does not hold of these terms")
        assert decision is not None
        right = right_sides(rule, decision, given)
        claimed = [self.numbered[each] for each in line["right"]]
        self._require(list(right) == claimed, f"`{rule.name}` says something else of these terms")
        for one, other in zip(roots, right, strict=True):
            self._require(one.type == other.type, f"`{rule.name}` changes a type")
            self.closure.join(one, other)
        self.used[rule.name] = rule

    def _meaning(self, term: Term) -> None:
        """A term of a defined op, or a node that was kept as it came, is what the op's definition says."""
        found = meaning_of(term)
        self._require(found is not None, "the term's op has no definition")
        assert found is not None
        self._require(found.type == term.type, "the definition has another type")
        self.numbered.enter(found)
        self.closure.join(term, found)

    def _computed(self, term: Term) -> None:
        """A term of constants alone is its value, a new constant."""
        value = hashed(constant(constant_of(self._value(term), term.tensor.dtype)))
        self._require(value.type == term.type, "the value has another type")
        self.numbered.add(value)
        self.closure.join(term, value)
        self.folded += 1

    def _rounded(self, term: Term, other: Term) -> None:
        """A term of constants alone is a constant but for roundings: those of what it computes, so it must compute something."""
        self._require(other.op is CONSTANT and term.type == other.type, "it is no constant of this type")
        self._require(computes(term), "nothing is computed, so that nothing rounds")
        distance = apart(self._value(term), other.attribute("value").array())
        self._require(distance is not None, "the constant is not what is computed")
        assert distance is not None
        self.closure.join(term, other)
        self.rounded += 1
        self.apart = max(self.apart, distance)

    def _dims(self, pairs: Sequence[tuple[Term, Term]]) -> None:
        """Nodes that are one computation on equal operands have one result: its dims in the program after are those before, and the program
        is read anew with them."""
        before, after = set(all_terms(self.before)), set(all_terms(self.after))
        for one, other in pairs:
            self._require(one in before and other in after, "only nodes of the programs say what their dims are")
            same = len(one.operands) == len(other.operands) and all(map(self.closure.same, one.operands, other.operands))
            self._require(same, "the operands are not seen to be equal")
        sizes = one_result(pairs, set(inner_symbols(self.after)))
        self._require(sizes is not None, "they are two computations")
        assert sizes is not None
        known = len(self.numbered.terms)
        self.after = resized(self.after, sizes)
        self.numbered.program(self.after)
        self.closure.enter(self.numbered.terms[known:])

    def _value(self, term: Term) -> Any:
        self._require(isinstance(term.type, TensorType), "only tensors are computed")
        terms = list(topological([term]))
        self._require(all(each.op.name in CONSTANTS for each in terms if not each.operands), "it is not constant")
        sizes = (prod(type.static or ()) for each in terms for type in tensors_in(each.type))
        self._require(max(sizes, default=0) <= self.largest, "it is larger than all constants of the programs")
        with np.errstate(all="ignore"):
            (found,) = evaluate([term], {}, fallback=self.fallback)
        return found

    def _require(self, holds: bool, message: str) -> None:
        if not holds:
            raise Rejected(message)

    # ------------------------------------------------------------ what it rests on

    def _verdict(self, steps: int) -> Verdict:
        rules = list(self.used.values())
        promises: dict[str, list[str]] = {}
        for rule in rules:
            promises.setdefault(str(rule.numerics), []).append(rule.name)
        words = [*(rule.numerics.word for rule in rules), *(["reassociates"] if self.rounded else [])]
        return Verdict(
            numerics=max(words, key=NUMERICS_ORDER.index, default=NUMERICS_ORDER[0]),
            assurance=max((rule.assurance for rule in rules), key=ASSURANCES.index, default=ASSURANCES[0]),
            promises={promise: sorted(names) for promise, names in sorted(promises.items())},
            steps=steps,
            folded=self.folded,
            rounded=self.rounded,
            apart=self.apart,
            unread=self.unread,
        )


class _Closure:
    """Congruence closure: which terms are equal, by the equations so far and since equal operands give equal terms."""

    def __init__(self) -> None:
        self.number: dict[Term, int] = {}
        self.parent: list[int] = []
        self.own: list[list[Term]] = []
        self.users: list[list[Term]] = []
        self.known: dict[Any, Term] = {}

    def enter(self, terms: Sequence[Term]) -> None:
        for term in topological(terms, known=self.number):
            self.number[term] = len(self.parent)
            self.parent.append(len(self.parent))
            self.own.append([term])
            self.users.append([])
            for operand in term.operands:
                self.users[self.find(operand)].append(term)
            other = self.known.setdefault(self._sign(term), term)
            if other is not term:
                self.join(term, other)

    def same(self, one: Term, other: Term) -> bool:
        return self.find(one) == self.find(other)

    def members(self, number: int) -> list[Term]:
        return self.own[number]

    def join(self, one: Term, other: Term) -> None:
        self.enter([one, other])
        pending = [(one, other)]
        while pending:
            small, large = (self.find(term) for term in pending.pop())
            if small == large:
                continue
            if len(self.users[small]) > len(self.users[large]):
                small, large = large, small
            self.parent[small] = large
            self.own[large] += self.own[small]
            self.own[small] = []
            moved, self.users[small] = self.users[small], []
            for user in moved:
                equal = self.known.setdefault(self._sign(user), user)
                if equal is not user:
                    pending.append((user, equal))
            self.users[large] += moved

    def find(self, term: Term) -> int:
        number = self.number[term]
        while self.parent[number] != number:
            self.parent[number] = self.parent[self.parent[number]]
            number = self.parent[number]
        return number

    def _sign(self, term: Term) -> Any:
        return term.op, exact_key(term.attributes), term.regions, term.type, tuple(map(self.find, term.operands))
