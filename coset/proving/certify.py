"""Certificates: the steps of a search that join a program with what was made of it, down to the text that was written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from time import perf_counter
from typing import Any

import numpy as np

from coset.comparing.fold import computed, fallback_of_constants, fold
from coset.dialects.hub.terms import is_splat
from coset.egraph.chains import is_associativity, product
from coset.egraph.merging import PRODUCT, SLICE, takes_columns
from coset.egraph.request import Phase
from coset.ir.constants import INLINE_ELEMENTS
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.term import CONSTANT, Term, constant, rebuild, topological
from coset.prove.certificate import FORMAT, VERSION, Certificate, Line, Numbered, Rejected
from coset.prove.contents import (
    by_content,
    digest,
    dims_by_content,
    fitted,
    hashed,
    inner_names,
    inner_symbols,
    one_result,
    resized,
    set_apart,
)
from coset.prove.folded import computes
from coset.prove.kernel import text_hash, verify
from coset.prove.writing import alike_of, term_line
from coset.proving.alike import by_values, drawn
from coset.proving.apart import with_own_constants
from coset.proving.constants import Goal
from coset.proving.join import join
from coset.proving.meanings import DEFINED, meaning
from coset.proving.rounded import in_an_order
from coset.proving.sizes import require_one_size, with_shared_dims
from coset.proving.steps import APART, COMPUTED, DIMS, ENTERED, ROUNDED, CertificateStep, Mapped, Uncertified, hashed_value, said, slices_of
from coset.proving.verify import summary
from coset.rules.rule import Rule
from coset.searching.regionwise import Solved


def certificate_of(before: Program, after: Program, steps: Iterable[CertificateStep], *, shown: Program | None = None) -> Certificate:
    """The certificate of these steps, in order, for two programs by content. `shown` is the second with the names and the order of outputs
    of the first, where it has others. The steps speak of both with dims by content.

    Raises:
        Uncertified: a step has something that certificates have no form for.
    """
    written = _Lines(*map(dims_by_content, (before, after if shown is None else shown)))
    try:
        for step in steps:
            written.step(step)
    except CosetError as error:
        raise Uncertified(error.message) from None
    listed = [{"name": r.name, "text": text_hash(r), "numerics": str(r.numerics), "assurance": r.assurance} for r in written.rules]
    head: Line = {"format": FORMAT, "version": VERSION, "before": digest(before), "after": digest(after), "rules": listed}
    return Certificate(head, written.lines)


class _Lines:
    """The lines of a certificate for two programs, as steps are written down."""

    def __init__(self, before: Program, after: Program) -> None:
        self.after = after
        self.numbered = Numbered(before, after)
        self.alike = alike_of(self.numbered.terms)
        self.rules: dict[Rule, int] = {}
        self.lines: list[Line] = []

    def step(self, step: CertificateStep) -> None:
        """Write one more."""
        left = self._numbers(step.left)
        self._numbers(step.cited)
        if step.reason == DIMS:
            pairs = list(zip(step.left, step.right, strict=True))
            self.lines.append({DIMS: [list(pair) for pair in zip(left, self._numbers(step.right), strict=True)]})
            self.after = resized(self.after, one_result(pairs, inner_symbols(self.after)) or {})
            self.numbered.program(self.after)
            self.alike = alike_of(self.numbered.terms)
        elif step.reason == APART:
            self.lines.append({APART: [left[0], left[1:]]})
            self.after = set_apart(self.after, step.left[0], frozenset(step.left[1:]), step.right[0])
            self.numbered.program(self.after)
        elif step.reason == ROUNDED:
            self.lines.append({ROUNDED: [left[0], *self._numbers(step.right)]})
        elif isinstance(step.reason, str):
            self.lines.append({step.reason: left[0]})
            self.numbered.enter(step.right[0])
        else:
            rule = self.rules.setdefault(step.reason, len(self.rules))
            self.lines.append({"rule": rule, "left": left, "right": self._numbers(step.right)})

    def _numbers(self, terms: Sequence[Term]) -> list[int]:
        """The numbers of terms, each with the lines of what is new below it."""
        for term in topological(terms, known=self.numbered.number):
            self.lines.append(term_line(term, self.numbered, self.alike))
            self.numbered.add(term)
        return [self.numbered.number[term] for term in terms]


# ---------------------------------------------------------------- the steps of a search


def steps_of(solved: Solved, roots: Sequence[Term]) -> Iterator[CertificateStep]:
    """The steps from `roots` to the terms that were chosen for them: those of a region at each of its places.

    Raises:
        Uncertified: as `slices_of`.
    """
    if solved.terms == tuple(roots):
        return
    entered = [CertificateStep(ENTERED, (one,), (other,)) for each in solved.entered for one, other in each.pairs]
    owns = [roots if part.region is None else part.region.roots for part in solved.parts]
    goals = [list(zip(own, part.selection.terms, strict=True)) for own, part in zip(owns, solved.parts, strict=True)]
    for part, steps in zip(solved.parts, slices_of(solved.saturation, goals, entered), strict=True):
        if part.region is None:
            yield from steps
            continue
        for place in part.places:
            put = Mapped(dict(zip((*part.region.inputs, *part.region.constants), (*place.inputs, *place.constants), strict=True)))
            yield from (put.step(step) for step in steps)


# ---------------------------------------------------------------- equalities that were entered as a whole


def derived(step: CertificateStep, rules: Sequence[Rule]) -> Iterator[CertificateStep]:
    """The steps that an entered equality stands for: of a chain of products in another order, of a product as columns of a merged one, and
    of constants that hold the same twice.
    Any other step is itself.

    Raises:
        Uncertified: no rule of `rules` says it.
    """
    if step.reason != ENTERED:
        yield step
        return
    (one,), (other,) = step.left, step.right
    if not computes(other):
        value = one if one.op is CONSTANT else hashed_value(one)
        yield from (CertificateStep(COMPUTED, (term,), (value,)) for term in (one, other) if term is not value)
    elif other.op.name == SLICE:
        yield from _as_columns(other, [rule for rule in rules if takes_columns(rule)])
    else:
        associative = [rule for rule in rules if is_associativity(rule)]
        yield from (*_leftwards(one, associative), *_leftwards(other, associative))


def _as_columns(columns: Term, rules: Sequence[Rule]) -> Iterator[CertificateStep]:
    """Columns of a product as a product with columns of the weights, which are computed."""
    step = next((found for rule in rules if (found := said(rule, columns)) is not None), None)
    if step is None:
        raise Uncertified("no rule shows that products were merged")
    yield step
    for term in dict.fromkeys((step.right[0].operands[1], *step.right[0].operands[1].operands[0].operands)):
        if term.op is not CONSTANT:
            yield CertificateStep(COMPUTED, (term,), (hashed_value(term),))


def _leftwards(root: Term, rules: Sequence[Rule]) -> Iterator[CertificateStep]:
    """The rotations that bring a tree of products into the form ((a b) c) d."""
    stack = [root]
    while stack:
        term = stack.pop()
        if term.op.name != PRODUCT:
            continue
        left, right = term.operands
        if right.op.name == PRODUCT and (turned := _turned(term, rules)) is not None:
            yield turned
            stack.append(turned.left[0])
        else:
            stack += [left, right]


def _turned(term: Term, rules: Sequence[Rule]) -> CertificateStep | None:
    """a (b c) = (a b) c, read as a rule says it; None where the products are no chain."""
    left, right = term.operands
    inner, last = right.operands
    try:
        turned = product(product(left, inner, batched=_is_batched(right)), last, batched=_is_batched(term))
    except (CosetError, IndexError):
        return None
    for rule in rules:
        step = said(rule, turned)
        if step is not None and step.right == (term,):
            return step
    return None


def _is_batched(term: Term) -> bool:
    return bool(term.attribute("lhs_batch"))


# ---------------------------------------------------------------- the whole way


def accepted(
    certificate: Certificate, before: Program, after: Program, phases: Sequence[Phase], names: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """What the checker says of a certificate that was made with the rules of `phases`, under a mapping of names.

    Raises:
        Uncertified: it refuses it.
    """
    rules = {rule.name: rule for phase in phases for rule in phase.rules}
    try:
        return summary(verify(certificate, before, after, rules.get, meaning=meaning, fallback=DEFINED, names=names), rules)
    except Rejected as error:
        raise Uncertified(f"the checker refused what was found: {error.message}") from None


@dataclass(frozen=True)
class CertifiedWay:
    """What was made of `program`, whose searched `roots` became those of `solved`: the file that was read says `before`, the one that was
    written `after`."""

    program: Program
    roots: tuple[Term, ...]
    solved: Solved
    before: Program
    after: Program


def certify(way: CertifiedWay, phases: Sequence[Phase]) -> tuple[Certificate, dict[str, Any]]:
    """The certificate that the program which was read and the one that was written are equal, and what the checker says of it, with the
    `seconds` to make and to verify it.

    Raises:
        Uncertified: there is none that it accepts, and why.
    """
    started = perf_counter()
    read, written = by_content(way.before), by_content(way.after)

    def check(found: Certificate) -> dict[str, Any]:
        made = perf_counter()
        said = accepted(found, way.before, way.after, phases)
        return {**said, "seconds": {"make": made - started, "verify": perf_counter() - made}}

    return in_an_order(steps_between(way, phases), phases, partial(certificate_of, read, written, shown=fitted(written, read)), check)


def steps_between(way: CertifiedWay, phases: Sequence[Phase]) -> list[CertificateStep]:
    """The steps from the program that was read to the one that was written, both by content.

    Raises:
        Uncertified: there are none, and why.
    """
    read, written = by_content(way.before), by_content(way.after)
    before, after = dims_by_content(read), dims_by_content(fitted(written, read))
    put = Mapped({}, hashed, inner_names(read))
    if put.all(way.program.roots) != before.roots:
        raise Uncertified("bodies of control flow were written anew, which no certificate says yet")
    rules = [rule for phase in phases for rule in phase.rules]
    steps = [each for step in steps_of(way.solved, way.roots) for each in derived(put.step(step), rules)]
    values: list[CertificateStep] = []
    fallback = fallback_of_constants(way.program.source)

    def value_of(term: Term) -> Term:
        if term.op.name == "stablehlo.broadcast_in_dim":
            operand = value_of(term.operands[0])
            return rebuild(term, [operand])
        try:
            found = computed(term, fallback)
        except CosetError:  # it has no value here, or takes too long: what is under it was folded, or is joined
            return term
        if found is not term:
            values.append(CertificateStep(COMPUTED, put.all([term]), put.all([found])))
        return found

    folded, _ = fold(way.solved.terms, way.solved.storable, way.program.source, value_of=value_of)
    chosen, values, after = with_own_constants(put.all(folded[: len(before.roots)]), values, before, after)
    chosen, forms = _as_read(chosen, after)

    def show(after: Program, goals: Sequence[Goal]) -> list[CertificateStep]:
        return join(goals, phases, alike=partial(by_values, before, after, drawn(way.before, {})))

    sized, after = with_shared_dims(before, after, show, chosen)
    require_one_size(chosen, after.roots)
    joined = show(after, list(zip(chosen, after.roots, strict=True)))
    return [*steps, *values, *forms, *sized, *joined]


def _as_read(roots: Sequence[Term], after: Program) -> tuple[tuple[Term, ...], list[CertificateStep]]:
    """`roots` with constants in place of small splats where `after` has them: a splat without elements is read as one."""
    known = set(after.terms())
    steps: list[CertificateStep] = []
    made: dict[Term, Term] = {}
    for term in topological(roots):
        found = made[term] = rebuild(term, [made[operand] for operand in term.operands])
        if found not in known and is_splat(found) is not None and (whole := _whole(found)) in known:
            made[term] = whole
            steps.append(CertificateStep(COMPUTED, (found,), (whole,)))
    return tuple(made[root] for root in roots), steps


def _whole(splat: Term) -> Term | None:
    """A small splat element by element."""
    value, shape = is_splat(splat), splat.tensor.static
    if value is None or shape is None or prod(shape) > INLINE_ELEMENTS:
        return None
    return hashed(constant(np.broadcast_to(value.array(), shape), splat.tensor.dtype))
