"""Proof of a rule: every instance of small ranks with symbolic dims, both sides equal for all sizes.

The instances have every small rank of each pack, every permutation, set of axes and pairing of dims at these ranks, and an element
type of each kind. `docs/proofs.md` states the theorem by which that speaks for all ranks, and its limits; where an attribute
can only be sampled (a stride, a number) or an op looks at positions (reshape, slice, pad, concatenate), the rule is `bounded`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

from coset.dialects.expansion import expanded
from coset.ir.dims import Dim
from coset.ir.errors import CosetError
from coset.ir.op import find_op, get_op
from coset.ir.term import Term, topological
from coset.ir.types import TensorType
from coset.prove import numbers, pointwise
from coset.prove.conditions import unconditional
from coset.prove.decisions import Case, Untold, decided
from coset.prove.equal import Open, Sense, compare
from coset.prove.sample import sides
from coset.rules.algebra import Call, Comprehension, Listing, Literal, Ref, Splice, Wild, parts
from coset.rules.candidates import names_axes
from coset.rules.instance import Instance, Search, instances, symbols_of
from coset.rules.pattern import Application, applications
from coset.rules.rule import Rule
from coset.rules.unify import bound

RANKS = 2  # of each pack; see the theorem
KINDS = ("f32", "i32", "bool", "u8", "c64", "f64", "bf16", "f16")  # the denotation depends on the kind alone
ONE_OF_EACH = ("f32", "i32", "bool", "u8", "c64")
SLOW = "more instances than there was time for"
WIDTHS = ("i64", "i16", "i8", "i4", "i2", "u64", "u32", "u16", "u4", "u2")  # Z3's bit-vectors have a width each
MOST_CASES = 60_000
QUESTIONS = 2_000_000  # that type rules answer
SECONDS = 30.0  # for an entry, with all its forms and all ways to show them
UNTYPED = "an instance cannot be typed"
NATIVE = "nothing is known of"
MOST_IDLE = 20_000  # instances that do not fire with symbols, for which numbers are tried
# ops that take each coordinate of the result to a coordinate of an operand, or fold over it: a mistake shows with two axes
COORDINATES = frozenset(
    f"stablehlo.{name}"
    for name in ("transpose", "broadcast_in_dim", "reduce", "dot_general", "reverse", "iota", "compare", "select", "slice", "concatenate")
)


class Time:
    """The time until a moment, for all ways together in which something may be shown."""

    def __init__(self, seconds: float) -> None:
        self._ends = perf_counter() + seconds

    @property
    def over(self) -> bool:
        """Whether none is left."""
        return perf_counter() > self._ends

    def share(self, part: float) -> Time:
        """A part of what is left, for one way of several."""
        return Time(part * max(0.0, self._ends - perf_counter()))


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

    @property
    def method(self) -> str:
        """How it was shown, in a few words."""
        if not self.assurance:
            return self.reason
        how = "normal forms and Z3" if self.solver else "normal forms"
        return f"{how}, {self.cases} instances of symbolic sizes" + (f"; not all: {', '.join(self.gaps)}" if self.gaps else "")


def prove(rule: Rule, *, seconds: float = SECONDS) -> Proof:
    """Try to show `rule` for all sizes in `seconds`. Never claims what was not shown; says what is missing.

    What holds whatever the conditions say holds where they do: the rule without them is tried first, for more instances of it have symbols.
    """
    if rule.natives:
        return Proof("", 0, False, (), f"{NATIVE} {', '.join(rule.natives)}")
    time = Time(seconds)
    free = unconditional(rule)
    if free is not None:
        try:
            proof = _proof(free, time.share(1 / 2), bitwise=False)  # bit by bit it is the conditions on numbers and types that count
        except CosetError:  # the conditions are what gives both sides one type
            proof = None
        if proof is not None and proof.assurance == "proved":
            return proof
    try:
        return _proof(rule, time)
    except CosetError as error:  # sizes at which the sides have different types are for the tests to find
        return Proof("", 0, False, (), f"{UNTYPED}: {error.message}")


def _proof(rule: Rule, time: Time, *, bitwise: bool = True) -> Proof:
    if _slices(rule):
        proof = _variants(rule, time.share(1 / 2), symbolic=True, bitwise=bitwise)
        if proof.assurance == "proved":
            return proof
    return _variants(rule, time, bitwise=bitwise)


def _slices(rule: Rule) -> bool:
    return any(node.op.name == "stablehlo.slice" for node in applications(rule.left))


def _variants(rule: Rule, time: Time, *, symbolic: bool = False, bitwise: bool = True) -> Proof:
    """The proof with the element types that matter, and with any numbers in the place of those that the rule takes as they are."""
    generic = _generic(rule)
    commutes = any(get_op(name).has("commutative") for name in generic)
    if generic and not _computes(rule, generic):  # an op that stays uninterpreted: which element types it has makes no difference
        for kind in KINDS[:4]:
            proof = _shown(rule, generic, (kind,), time.share(1 / 2) if commutes else time, symbolic=symbolic, bitwise=bitwise)
            if proof.assurance or (proof.cases and not commutes):
                return replace(proof, any_op=True)
            if proof.cases:
                break
    if commutes:
        generic = frozenset()  # the order of its operands does not count, or its numbers do
    if not _names_types(rule):
        found = _shown(
            rule, generic, ONE_OF_EACH[:1] if _only_moves(rule) else ONE_OF_EACH, time.share(1 / 2), symbolic=symbolic, bitwise=False
        )
        if not found.solver and (found.assurance == "proved" or SLOW in found.gaps):
            return found
    any_number = None if _marks_miss(rule) else numbers.marked(rule)
    if any_number is not None:  # all numbers at once, where that can be shown
        proof = _shown(rule, generic, KINDS, time.share(1 / 2), any_number, symbolic=symbolic, bitwise=bitwise)
        if proof.assurance == "proved" and not proof.bits:
            return proof
    found = _shown(rule, generic, KINDS, time, symbolic=symbolic, bitwise=bitwise)
    found = _shown(rule, generic, (*KINDS, *WIDTHS), time, symbolic=symbolic, bitwise=bitwise) if found.bits else found
    if any_number is None or found.assurance != "bounded" or not {f"`{name}`" for name in any_number.marks} & set(found.gaps):
        return found
    return proof if proof.assurance and len(proof.gaps) < len(found.gaps) and not proof.bits else found


def _marks_miss(rule: Rule) -> bool:
    """Whether numbers may stand among integers: no mark of a float is an integer, so that nothing would be shown of those."""
    kinds = rule.compiled.kinds.values()
    classes = [{dtype.kind for dtype in kind.classes} for kind in kinds if kind.word == "dtype"]
    mixed = any("float" in held and held & {"int", "uint"} for held in classes)
    return mixed and any(kind.word == "float" for kind in kinds)


def _only_moves(rule: Rule) -> bool:
    """Whether a rule only says which element goes where: of one element type what is shown holds for all."""
    return all(node.op.has("movement") for node in _nodes(rule))


def _names_types(rule: Rule) -> bool:
    """Whether a rule has something that is not the same for all floats: a constant, which is rounded, a conversion, or a definition, in
    which both may be."""
    ops = {node.op for node in _nodes(rule)}
    return any(not op.name.startswith("stablehlo.") or op.name == "stablehlo.convert" for op in ops)


def _computes(rule: Rule, generic: frozenset[str]) -> bool:
    """Whether something other than the op that stays uninterpreted works on numbers."""
    return any(not (node.op.name in generic or node.op.has("movement") or node.op.name == "builtin.absent") for node in _nodes(rule))


def _nodes(rule: Rule) -> list[Application]:
    """The applications of both sides."""
    return [node for pair in rule.pairs for side in pair for node in applications(side)]


def _shown(
    rule: Rule, generic: frozenset[str], elements: tuple[str, ...], time: Time, any_number: numbers.Marked | None = None,
    *, symbolic: bool = False, bitwise: bool = True,
) -> Proof:  # fmt: skip
    search = Search(dtypes=1, elements=elements, most_rank=_ranks(rule), exhaustive=True, budget=QUESTIONS, symbolic=symbolic)
    search.numbers = numbers.NONE if any_number is None else any_number.marks
    search.over = lambda: time.over
    seen: set[Case] = set()
    solver = bits = False
    untested = 0  # instances of element types that nothing speaks about
    word = rule.numerics.word
    open_ranks = _open_ranks(rule)
    elementwise = _Elementwise(rule.numerics.exceptions)
    sense = Sense(word != "exact", word == "reassociates", rule.numerics.exceptions, generic)
    for case in _cases(rule, search, any_number):
        pair = case.sides
        if len(seen) >= MOST_CASES or time.over:
            search.gaps.add(SLOW)
            break
        if case in seen:
            continue
        seen.add(case)
        try:
            solver |= compare(*pair, sense, case.facts).solver
        except Open as open_:
            found = elementwise.equal(pair, case.truths) if bitwise else ""
            if not found:
                what = ", ".join(str(term.type) for term in _inputs(pair))
                return Proof("", len(seen), solver, (), f"open for {what}: {open_}")
            solver = True
            bits |= any(term.tensor.dtype.kind in ("int", "uint") for term in _inputs(pair) if isinstance(term.type, TensorType))
            search.gaps |= {found} - {BIT_BY_BIT}
            untested += found != BIT_BY_BIT
        search.gaps |= _positional(pair) if open_ranks else set()
    search.gaps |= {SLOW} if time.over else set()  # while nothing fired
    gaps = {gap for gap in search.gaps if not any(gap.endswith(f" of {op}") for op in generic)}
    gaps |= _ranks_named(rule)
    if seen and untested == len(seen):
        return Proof("", len(seen), False, (), ", ".join(sorted(gaps)))
    if not seen:
        return Proof("", 0, False, (), SLOW if SLOW in search.gaps else "no instance with symbolic sizes")
    if word not in ("exact", "reassociates", "real"):
        return Proof("", len(seen), solver, (), f"a bound of `{word}` is not proved")
    return Proof("bounded" if gaps else "proved", len(seen), solver, tuple(sorted(gaps)), bits=bits)


def _cases(rule: Rule, search: Search, any_number: numbers.Marked | None) -> Iterator[Case]:
    """Both sides of the instances, for any number in the place of each that the rule takes."""
    for case in (each for whole in _instances(rule, search) for each in _by_root(rule, whole)):
        if any_number is None:
            yield case
            continue
        try:
            for pair in any_number.any_numbers(case.sides):
                yield Case(pair, case.facts, any_number.truths(rule, _inputs(pair)))
        except numbers.Mistaken:
            search.gaps.add("numbers that look alike")


def _by_root(rule: Rule, case: Case) -> list[Case]:
    """Each root of an instance with what equals it: several roots are as many equations."""
    if rule.roots == 1:
        return [case]
    left, right = case.sides
    return [replace(case, sides=pair) for pair in zip(left.operands, right.operands, strict=True)]


def _instances(rule: Rule, search: Search) -> Iterator[Case]:
    """Both sides of the instances, whatever their conditions ask of the sizes."""
    idle = 0  # instances that do not fire with symbols
    for instance in instances(rule, search):
        fires = False
        try:
            for case in decided(rule, instance):
                fires = True
                yield case
        except Untold:
            search.gaps.add("sizes that a condition tells apart")
        if not fires and idle <= MOST_IDLE:
            idle += 1
            if idle > MOST_IDLE:
                search.gaps.add("more instances than are looked at")
            found = _with_numbers(rule, instance)
            if found is not None:
                search.gaps.add("sizes that a condition tells apart")
                yield Case(found)


def _inputs(pair: tuple[Term, Term]) -> list[Term]:
    """The inputs of both sides, by name."""
    found = {term for term in topological(pair) if term.op.name == "builtin.input"}
    return sorted(found, key=lambda term: str(term.attribute("name")))


def _with_numbers(rule: Rule, instance: Instance) -> tuple[Term, Term] | None:
    """An instance that does not fire with symbols, with small numbers for them with which it does: a condition looks at sizes."""
    written = [value for items in instance.attributes for _, value in items]
    names = sorted(frozenset().union(*map(symbols_of, (*instance.variable_types, *written))))
    if not names:
        return None
    sizes = sorted({1, 2, 3, 4, *_integers(rule)})
    for chosen in [*((n,) * len(names) for n in sizes), sizes * len(names)]:
        binding: dict[str, Dim] = dict(zip(names, chosen, strict=False))
        fixed = Instance(
            bound(instance.attributes, binding), bound(instance.left_types, binding), bound(instance.variable_types, binding), {}
        )  # fmt: skip
        try:
            pair = sides(rule, fixed)
        except CosetError:
            continue
        if pair is not None:
            return pair
    return None


def _integers(rule: Rule) -> set[int]:
    """The small integers that a rule speaks of."""
    found = (part.value for whole in _expressions(rule) for part in parts(whole) if isinstance(part, Literal))
    return {value for value in found if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= 64}


def _expressions(rule: Rule) -> list[Any]:
    compiled = rule.compiled
    written = [value for side in (compiled.left, compiled.right) for attributes in side for _, value in attributes.items]
    return [*written, *compiled.conditions, *(guard for guards in compiled.guards for guard in guards)]


def _ranks_named(rule: Rule) -> set[str]:
    """A gap where a comparison of a rank or a length names a number beyond the ranks that are looked at."""
    for whole in _expressions(rule):
        for part in parts(whole):
            if isinstance(part, Call) and part.function in ("==", "!=", "<", "<=", ">", ">=", "in"):
                inside = list(parts(part))
                ranks = any(isinstance(p, Call) and p.function in ("rank", "len") for p in inside)
                if ranks and any(isinstance(p, Literal) and isinstance(p.value, int) and p.value > RANKS for p in inside):
                    return {"ranks that a condition names"}
    return set()


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


def _open_ranks(rule: Rule) -> bool:
    """Whether some rank is not written down: else the instances have all ranks that there are."""
    items = [item for pattern in rule.compiled.types for item in pattern.dims.items]
    return any(kind.word in ("pack", "dims") for kind in rule.compiled.kinds.values()) or any(getattr(i, "value", i) is None for i in items)


def _ranks(rule: Rule) -> int:
    """Up to which rank of each pack instances are made. Of two dims all permutations commute and are their own inverses: of three not."""
    turned = any(kind.word == "permutation" for kind in rule.compiled.kinds.values())
    return RANKS + _designated(rule) + turned


def _designated(rule: Rule) -> int:
    """How many axes of one operand the left side names one by one (`axis: a`, `[c]`, `[rank(x) - 1]`): they must stay when others go."""
    if not _open_ranks(rule):
        return 0
    found: dict[bool, set[str]] = {False: set(), True: set()}  # those of right operands apart
    for node in applications(rule.left):
        for name, value in rule.compiled.left[node.index].items:
            if names_axes(name):
                items = value.items if isinstance(value, Listing) else (value,)
                found[name.startswith("rhs")].update(str(item) for item in items if _one_axis(rule, item))
    return max(map(len, found.values()))


def _one_axis(rule: Rule, item: Any) -> bool:
    """Whether an item of an attribute is the number of one axis of a pack, not a list of some or what is left open."""
    if isinstance(item, Ref):
        return rule.compiled.kinds[item.name].word in ("int", "any")
    if isinstance(item, Literal) and isinstance(item.value, tuple):
        return False
    if any(len(pattern.dims.items) > 1 for pattern in rule.compiled.types):
        return False  # what is counted from an end is a dim that is written down beside the pack
    return not isinstance(item, Splice | Wild | Listing | Comprehension) and not (isinstance(item, Call) and item.function in _LISTS)


_LISTS = frozenset(("range", "without", "join", "permute", "drop", "insert", "regrouped", "relocated", "placement", "+", "sort", "repeat"))


def _keeps_coordinates(term: Term) -> bool:
    """Whether a reshape only adds and drops dims of 1."""
    if term.op.name != "stablehlo.reshape":
        return False
    before, after = ([dim for dim in type.tensor.dims if dim != 1] for type in (term.operands[0], term))
    return before == after


def _positional(pair: tuple[Term, Term]) -> set[str]:
    """The ops of an instance for which small ranks do not speak for all."""
    primitives = {term.op for term in topological(expanded(pair, keep=lambda _: False)) if not _keeps_coordinates(term)}
    ordinary = {op for op in primitives if op.name.startswith("builtin.") or op.has("elementwise") or op.name in COORDINATES}
    return {f"ranks over {RANKS} of {op.name}" for op in primitives - ordinary}
