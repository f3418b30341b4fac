"""Proof of a rule: every instance of small ranks with symbolic dims, both sides equal for all sizes.

The instances have every rank up to two for each pack, every permutation, set of axes and pairing of dims at these ranks, and an element
type of each kind. `docs/proofs.md` states the theorem by which that speaks for all ranks, and its limits; where an attribute
can only be sampled (a stride, a number) or an op looks at positions (reshape, slice, pad, concatenate), the rule is `bounded`.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

from coset.ir.op import find_op
from coset.ir.term import Term, topological
from coset.prove.equal import Open, Sense, compare
from coset.prove.sample import sides
from coset.rules.definition import expand, is_defined
from coset.rules.instance import Search, instances
from coset.rules.rule import Rule

RANKS = 2  # of each pack; see the theorem
KINDS = 7  # element types: at least one of each kind (float, int, uint, bool, complex) that the class has
MOST_CASES = 20_000
QUESTIONS = 2_000_000  # that type rules answer
SECONDS = 20.0
# ops that take each coordinate of the result to a coordinate of an operand, or fold over it: a mistake shows with two axes
COORDINATES = frozenset(
    f"stablehlo.{name}" for name in ("transpose", "broadcast_in_dim", "reduce", "dot_general", "reverse", "iota", "compare", "select")
)


@dataclass(frozen=True)
class Proof:
    """What was shown: `assurance` is `proved`, `bounded` or empty (nothing); `gaps` say what keeps it from `proved`."""

    assurance: str
    cases: int
    solver: bool
    seconds: float
    gaps: tuple[str, ...] = ()
    reason: str = ""

    @property
    def method(self) -> str:
        """How it was shown, in a few words."""
        if not self.assurance:
            return self.reason
        how = "normal forms and Z3" if self.solver else "normal forms"
        return f"{how}, {self.cases} instances of symbolic sizes" + (f"; not all: {', '.join(self.gaps)}" if self.gaps else "")


def prove(rule: Rule, *, seconds: float = SECONDS) -> Proof:
    """Try to show `rule` for all sizes. Never claims what was not shown; says what is missing."""
    generic = _generic(rule)  # an op that stays uninterpreted: which element types it has makes no difference
    proof = _shown(rule, generic, 1, seconds) if generic else None
    return proof if proof is not None and proof.cases else _shown(rule, generic, KINDS, seconds)


def _shown(rule: Rule, generic: frozenset[str], kinds: int, seconds: float) -> Proof:
    start = time.perf_counter()
    search = Search(dtypes=kinds, most_rank=RANKS, exhaustive=True, budget=QUESTIONS)
    seen: set[tuple[Term, Term]] = set()
    solver = False
    word = rule.numerics.word
    sense = Sense(word != "exact", word == "reassociates", rule.numerics.exceptions, generic)
    for instance in instances(rule, search):
        pair = sides(rule, instance)
        if pair is None or pair in seen:
            continue
        seen.add(pair)
        if len(seen) > MOST_CASES or time.perf_counter() - start > seconds:
            search.gaps.add("more instances than there was time for")
            break
        try:
            solver |= compare(*pair, sense).solver
        except Open as open_:
            what = ", ".join(str(type) for type in instance.variable_types)
            return Proof("", len(seen), solver, time.perf_counter() - start, (), f"open for {what}: {open_}")
        search.gaps |= _positional(pair)
    gaps = {gap for gap in search.gaps if not any(gap.endswith(f" of {op}") for op in generic)}
    elapsed = time.perf_counter() - start
    if not seen:
        return Proof("", 0, False, elapsed, (), "no instance with symbolic sizes")
    if word not in ("exact", "reassociates", "real"):
        return Proof("", len(seen), solver, elapsed, (), f"a bound of `{word}` is not proved")
    return Proof("bounded" if gaps else "proved", len(seen), solver, elapsed, tuple(sorted(gaps)))


def _generic(rule: Rule) -> frozenset[str]:
    """The op in the place of `op f: unary` in this variant of an entry: shown for any elementwise op, so for all its attributes."""
    found = re.search(r"\[([\w.]+)\]", rule.name)
    op = find_op(found.group(1)) if found else None
    return frozenset({op.name}) if op is not None and op.has("elementwise") and not op.has("commutative") else frozenset()


def _positional(pair: tuple[Term, Term]) -> set[str]:
    """The ops of an instance for which small ranks do not speak for all."""
    found: set[str] = set()
    roots = list(pair)
    while roots:
        later: list[Term] = []
        for term in topological(roots):
            if is_defined(term.op):
                later.append(expand(term))
            elif not (term.op.name.startswith("builtin.") or term.op.has("elementwise") or term.op.name in COORDINATES):
                found.add(f"ranks over {RANKS} of {term.op.name}")
        roots = later
    return found
