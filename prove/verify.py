"""Proof of a rule: every instance of small ranks with symbolic dims, both sides equal for all sizes.

The instances have every small rank of each pack, every permutation, set of axes and pairing of dims at these ranks, and an element
type of each kind. `docs/proofs.md` states the theorem by which that speaks for all ranks, and its limits; where an attribute
can only be sampled (a stride, a number) or an op looks at positions (reshape, slice, pad, concatenate), the rule is `bounded`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from coset.dialects.expansion import expanded
from coset.ir.errors import CosetError
from coset.ir.op import Op, find_op, get_op
from coset.ir.term import Term, topological
from coset.ir.types import DTYPES, DType, TensorType
from coset.prove import facts, numbers, obligations, pointwise
from coset.prove.asked_types import WIDTHS, asks_types, computes_numbers, has_places, has_widths, names_types, only_moves
from coset.prove.cases import cases_of, inputs
from coset.prove.conditions import unconditional
from coset.prove.deadline import Late, Time, until
from coset.prove.decisions import ProofCase
from coset.prove.equal import Open, Sense, compare
from coset.prove.finite import finite
from coset.prove.flat import asks_rank, flat, shapeless
from coset.prove.opened import types_told
from coset.prove.ranks import most_rank, open_ranks, positional, rank_gaps
from coset.rules.algebra import Literal, Ref
from coset.rules.instance import InstanceSearch
from coset.rules.parts import parts
from coset.rules.pattern import applications
from coset.rules.rule import Rule

KINDS = ("f32", "i32", "bool", "u8", "c64", "f64", "bf16", "f16")  # the denotation depends on the kind alone
ONE_OF_EACH = ("f32", "i32", "bool", "u8", "c64")
SLOW = "more instances than there was time for"
MOST_CASES = 60_000
QUESTIONS = 2_000_000  # that type rules answer
SECONDS = 30.0  # of the processor, for an entry, with all its forms and all ways to show them
LITTLE = 4.0  # of these, for instances of what will not be shown of all
PATIENT = 10.0  # the same where samples are all that is left
UNTYPED = "an instance cannot be typed"
NATIVE = "nothing is known of"
SHAPES_GIVEN = "all shapes that are only given"
_OF_SHAPES = (" of stablehlo.reshape", " of stablehlo.broadcast_in_dim")


@dataclass(frozen=True)
class Covered:
    """What the instances of a proof have: ranks of operands, and element types."""

    ranks: frozenset[int] = frozenset()
    dtypes: frozenset[str] = frozenset()

    def __or__(self, other: Covered) -> Covered:
        return Covered(self.ranks | other.ranks, self.dtypes | other.dtypes)

    def __str__(self) -> str:
        ranks = f"{min(self.ranks)} to {max(self.ranks)}" if len(self.ranks) > 1 else "".join(map(str, self.ranks))
        return f"ranks {ranks} of {', '.join(sorted(self.dtypes))}" if self.ranks else "nothing"


NOTHING_COVERED = Covered()


@dataclass(frozen=True)
class Proof:
    """What was shown: `assurance` is `proved`, `bounded` or empty (nothing); `gaps` say what keeps it from `proved`."""

    assurance: str
    cases: int
    solver: bool
    gaps: tuple[str, ...] = ()
    reason: str = ""
    bits: bool = False  # whether bit-vectors of the widths at hand were needed
    any_op: bool = False  # whether the op in the place of an op variable stayed uninterpreted: then it speaks for all that are typed alike
    covered: Covered = NOTHING_COVERED  # by instances that were looked at
    vacuous: bool = False  # whether the rule has no instance at all, of any element type: nothing is left out, and nothing shown

    @property
    def method(self) -> str:
        """How it was shown, in a few words."""
        if not self.assurance:
            return self.reason
        how = "normal forms and Z3" if self.solver else "normal forms"
        found = f"{how}, {self.cases} instances of symbolic sizes, {self.covered}"
        return found + (f"; not all: {', '.join(self.gaps)}" if self.gaps else "")


def prove(rule: Rule, *, seconds: float = SECONDS) -> Proof:
    """Try to show `rule` for all sizes in `seconds`. Never claims what was not shown; says what is missing.

    What holds whatever the conditions say holds where they do: the rule without them is tried first, for more instances of it have symbols.
    """
    if rule.natives:
        return Proof("", 0, False, (), f"{NATIVE} {', '.join(rule.natives)}")
    if _takes_nothing(rule):
        return Proof("", 0, False, (), "no instance: the op takes none of the element types", vacuous=True)
    time = Time.of(seconds)
    free = unconditional(rule)
    if free is not None:
        try:
            # bit by bit it is the conditions on numbers and types that count
            proof = _proof(free, time.share(1 / 2), bitwise=False, whole=True)
        except CosetError:  # the conditions are what gives both sides one type
            proof = None
        if proof is not None and proof.assurance == "proved":
            return proof
    try:
        return _proof(rule, time)
    except CosetError as error:  # sizes at which the sides have different types are for the tests to find
        return Proof("", 0, False, (), f"{UNTYPED}: {error.message}")


def _proof(rule: Rule, time: Time, *, bitwise: bool = True, whole: bool = False) -> Proof:
    """The proof with symbols for the numbers that say where an op reads, or with samples of them. `whole`: of all instances or none."""
    if has_places(rule):
        proof = _variants(rule, _Way(time.share(3 / 4), symbolic=True, bitwise=bitwise, whole=True))
        if proof.assurance == "proved" or proof.gaps == (SLOW,):
            return proof
        open_ = bool(proof.cases) and not proof.assurance  # then samples are looked at with patience
        return _variants(rule, _Way(time, bitwise=bitwise, whole=whole, little=PATIENT if open_ else LITTLE))
    return _variants(rule, _Way(time, bitwise=bitwise, whole=whole))


@dataclass(frozen=True)
class _Way:
    """How something is to be shown: until when; with symbols for where ops read (`symbolic`); bit by bit too; all or nothing (`whole`)."""

    time: Time
    symbolic: bool = False
    bitwise: bool = True
    whole: bool = False
    little: float = LITTLE  # seconds for instances of what will not be shown of all

    def within(self, time: Time) -> _Way:
        """The same in other time."""
        return replace(self, time=time)


def _variants(rule: Rule, way: _Way) -> Proof:
    """The proof with the element types that matter, and with any numbers in the place of those that the rule takes as they are."""
    generic, time = _generic(rule), way.time
    commutes = any(get_op(name).has("commutative") for name in generic)
    if (
        generic and not computes_numbers(rule, generic) and not asks_types(rule)
    ):  # an op that stays uninterpreted: which element types it has makes no difference
        for kind in KINDS[:4]:
            proof = _shown(rule, generic, (kind,), way.within(time.share(1 / 2)) if commutes else way)
            if proof.assurance or (proof.cases and not commutes):
                return replace(proof, any_op=True)
            if proof.cases:
                break
    if commutes:
        generic = frozenset()  # the order of its operands does not count, or its numbers do
    if not names_types(rule) and not asks_types(rule):
        elements = ONE_OF_EACH[:1] if only_moves(rule) else ONE_OF_EACH
        found = _shown(rule, generic, elements, replace(way, bitwise=False))
        if not found.solver and not found.bits and (found.assurance == "proved" or SLOW in found.gaps):
            return found
    kinds = (*KINDS, *types_told(rule, KINDS))
    widths = tuple(dict.fromkeys((*kinds, *WIDTHS)))
    any_number = None if _marks_miss(rule) else numbers.marked(rule)
    if any_number is not None:  # all numbers at once, where that can be shown
        proof = _shown(rule, generic, kinds, way if way.whole else way.within(time.share(1 / 2)), any_number)
        if proof.assurance == "proved" and proof.bits:  # and of integers of every width
            proof = replace(_shown(rule, generic, widths, way.within(time.share(1 / 2)), any_number), bits=False)
        if proof.assurance == "proved":
            return proof
    found = _shown(rule, generic, kinds, way)
    if found.bits:
        found = _shown(rule, generic, widths, way)
    elif not found.cases and _idle(rule, found):
        found = _shown(rule, generic, tuple(DTYPES), way)  # does it have one of any type?
        if found.assurance:
            return replace(found, assurance="bounded", gaps=(*found.gaps, "common element types"))
        found = replace(found, vacuous=not found.cases and _idle(rule, found))
    if any_number is None or found.assurance != "bounded" or not {f"`{name}`" for name in any_number.marks} & set(found.gaps):
        return found
    return proof if proof.assurance and len(proof.gaps) < len(found.gaps) and not proof.bits else found


def _idle(rule: Rule, proof: Proof) -> bool:
    """Whether a rule without an instance has none whatever the numbers are that were sampled: no condition speaks of them."""
    compiled = rule.compiled
    asked = [*compiled.conditions, *(guard for guards in compiled.guards for guard in guards)]
    names = {f"`{part.name}`" for whole in asked for part in parts(whole) if isinstance(part, Ref)}
    return all(gap == SHAPES_GIVEN or (gap.startswith("`") and gap not in names) for gap in proof.gaps)


def _marks_miss(rule: Rule) -> bool:
    """Whether numbers may stand among integers: no mark of a float is an integer, so that nothing would be shown of those."""
    kinds = rule.compiled.kinds.values()
    classes = [{dtype.kind for dtype in kind.classes} for kind in kinds if kind.word == "dtype"]
    mixed = any("float" in held and held & {"int", "uint"} for held in classes)
    return mixed and any(kind.word == "float" for kind in kinds)


def _takes_nothing(rule: Rule) -> bool:
    """Whether the op in the place of an op variable takes no element type that the rule has."""
    generic = _generic(rule)
    if any(not (node.op.name in generic or node.op.has("movement")) for node in applications(rule.left)):
        return False  # other types come about
    classes = [kind.classes for kind in rule.compiled.kinds.values() if kind.word == "dtype"]
    written = [pattern.dtype.value for pattern in rule.compiled.types if isinstance(pattern.dtype, Literal)]
    dtypes = frozenset(written).union(*classes)
    return any(
        not get_op(name).attributes and not get_op(name).variadic and not any(
            _takes(get_op(name), chosen) for chosen in itertools.product(dtypes, repeat=len(get_op(name).operands))
        )
        for name in generic
    )  # fmt: skip


def _takes(op: Op, dtypes: Sequence[DType]) -> bool:
    try:
        op.infer([TensorType(dtype, (2,)) for dtype in dtypes], {})
    except CosetError:
        return False
    return True


def _shown(
    rule: Rule, generic: frozenset[str], elements: tuple[str, ...], way: _Way, any_number: numbers.Marked | None = None
) -> Proof:  # fmt: skip
    """What can be shown of the instances of these element types: in rows where shapes do not count, else with all ranks that count."""
    if shapeless(rule):
        for ranks in ((1, 1), (0, 1)) if finite(rule) and not asks_rank(rule) else ((0, 1),):
            look = _Look(rule, generic, elements, way, any_number, ranks, rows=True)
            proof = look.proof()
            if not look.rows:
                break  # it is not what it looked like
            if proof.cases:
                return proof
    return _Look(rule, generic, elements, way, any_number, (0, most_rank(rule)), rows=False).proof()


class _Look:
    """A look at the instances of a rule, one by one. `rows`: its shapes do not count, as far as is seen."""

    def __init__(
        self, rule: Rule, generic: frozenset[str], elements: tuple[str, ...], way: _Way, any_number: numbers.Marked | None,
        ranks: tuple[int, int], *, rows: bool,
    ) -> None:  # fmt: skip
        self.rule, self.generic, self.way, self.any_number, self.rows = rule, generic, way, any_number, rows
        self.time = way.time
        self.search = InstanceSearch(
            dtypes=1, elements=elements, least_rank=ranks[0], most_rank=ranks[1], exhaustive=True, budget=QUESTIONS, symbolic=way.symbolic,
            numbers=numbers.NONE if any_number is None else any_number.marks, choices=finite(rule), watch=self._watch,
        )  # fmt: skip
        word = rule.numerics.word
        rounds = word == "reassociates" and "wider" not in rule.numerics.exceptions
        self.sense = Sense(word != "exact", word == "reassociates", rule.numerics.exceptions, generic, rounds)
        self.elementwise = _Elementwise(rule.numerics.exceptions)
        self.seen: set[ProofCase] = set()
        self.solver = self.bits = False
        self.untested = 0  # instances of element types that nothing speaks about
        self.covered = NOTHING_COVERED
        self.wide = has_widths(rule)

    def _watch(self) -> None:
        if self.time.over:
            raise Late

    def proof(self) -> Proof:
        """What was shown."""
        open_ = ""
        try:
            open_ = self._all()
        except Late:
            self.search.gaps.add(SLOW)
        if open_:
            return Proof("", len(self.seen), self.solver, (), open_)
        rows = self.rows and any(_in_a_row(case.sides) for case in self.seen)
        gaps = tuple(sorted(_lasting(self.search.gaps, self.generic, rows) | (set() if rows else rank_gaps(self.rule))))
        if not self.seen:
            return Proof("", 0, False, gaps, SLOW if SLOW in gaps else "no instance with symbolic sizes")
        if self.untested == len(self.seen):
            return Proof("", len(self.seen), False, (), ", ".join(gaps))
        if self.rule.numerics.word not in ("exact", "reassociates", "real"):
            return Proof("", len(self.seen), self.solver, (), f"a bound of `{self.rule.numerics.word}` is not proved")
        return Proof("bounded" if gaps else "proved", len(self.seen), self.solver, gaps, bits=self.bits, covered=self.covered)

    def _all(self) -> str:
        """Why an instance is open; nothing where none is."""
        little, ranks = False, open_ranks(self.rule)
        for case in cases_of(self.rule, self.search, self.any_number):
            if not little and _lasting(self.search.gaps, self.generic, self.rows):
                little, self.time = True, self.time.at_most(0 if self.way.whole else self.way.little)
            self._watch()
            if len(self.seen) >= MOST_CASES:
                raise Late
            if case in self.seen:
                continue
            open_ = self._one(case)
            self.seen.add(case)
            self.covered |= _covered(case)
            self.rows = self.rows and flat(case.sides)
            self.search.gaps |= positional(self.rule, case.sides) if ranks else set()
            if open_:
                return f"open for {', '.join(str(term.type) for term in inputs(case.sides))}: {open_}"
        return ""

    def _one(self, case: ProofCase) -> str:
        """Why an instance is open; nothing where it is shown."""
        obligations.about(self.rule.name, case.sides)
        try:
            with until(self.time):
                sides = facts.over_the_reals(self.rule, case.sides) if self.sense.real else case.sides
                shown = compare(*sides, replace(self.sense, stored=case.stored), case.facts, case.numbers)
        except Open as open_:
            known = (*case.truths, *facts.truths(self.rule, inputs(case.sides)))
            found = self.elementwise.equal(case.sides, known) if self.way.bitwise else ""
            self.search.gaps |= {found} - {BIT_BY_BIT, ""}
            self.untested += found != BIT_BY_BIT
            whole = any(
                isinstance(x.type, TensorType) and x.tensor.dtype.kind in ("int", "uint")
                for x in topological(expanded(case.sides, keep=lambda _: False))
            )
            self.solver, self.bits = self.solver or bool(found), self.bits or (bool(found) and whole and self.wide)
            return "" if found else str(open_)
        self.solver, self.bits = self.solver or shown.solver, self.bits or (shown.widths and self.wide)
        return ""


def _covered(case: ProofCase) -> Covered:
    types = [term.type for term in (*inputs(case.sides), case.sides[0]) if isinstance(term.type, TensorType)]
    return Covered(frozenset(type.rank for type in types), frozenset(type.dtype.name for type in types))


def _lasting(gaps: set[str], generic: frozenset[str], spread: bool) -> set[str]:
    """The gaps that stay: not those of an op that stands for any one, nor those of shapes where shapes do not count."""
    kept = {gap for gap in gaps if not any(gap.endswith(f" of {op}") for op in generic)}
    return {gap for gap in kept if not (spread and (gap == SHAPES_GIVEN or gap.endswith(_OF_SHAPES)))}


def _in_a_row(pair: tuple[Term, Term]) -> bool:
    """Whether the result is a row of any length, and no input has a higher rank."""
    type = pair[0].type
    row = isinstance(type, TensorType) and type.rank == 1 and not isinstance(type.dims[0], int)
    return row and all(isinstance(x.type, TensorType) and x.type.rank <= 1 for x in inputs(pair))


BIT_BY_BIT = "bit by bit"


@dataclass
class _Elementwise:
    """Elementwise equations bit by bit: by Z3, or in formats that are not IEEE's by all numbers there are. Each form is asked once."""

    exceptions: frozenset[str]
    known: dict[str, str] = field(default_factory=dict)

    def equal(self, pair: tuple[Term, Term], truths: tuple[Term, ...]) -> str:
        """`BIT_BY_BIT`, or what stays open although nothing speaks against it; empty where it could not be shown."""
        if not all(isinstance(side.type, TensorType) for side in pair):
            return ""
        form = pointwise.signature((*pair, *truths))
        if form not in self.known:
            self.known[form] = self._shown(pair, truths)
        return self.known[form]

    def _shown(self, pair: tuple[Term, Term], truths: tuple[Term, ...]) -> str:
        try:
            return BIT_BY_BIT if pointwise.equal(*pair, self.exceptions, truths) else ""
        except pointwise.Unsupported as dtype:
            return f"{dtype} is tested only"


def _generic(rule: Rule) -> frozenset[str]:
    """The op in the place of `op f: unary` in this variant of an entry: shown for any elementwise op, so for all its attributes."""
    found = re.search(r"\[([\w.]+)\]", rule.name)
    op = find_op(found.group(1)) if found else None
    return frozenset({op.name}) if op is not None and op.has("elementwise") else frozenset()
