"""Certificates: the steps of a search that join a program with what was made of it, down to the text that was written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import permutations
from math import prod

from coset.egraph.chains import is_associativity, product
from coset.egraph.limits import Limits
from coset.egraph.merging import PRODUCT, SLICE, takes_columns
from coset.egraph.saturate import Saturation, saturate
from coset.egraph.search import Phase
from coset.fold import computed, fallback_for, fold
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.term import CONSTANT, Term, intern, make, topological
from coset.prove.certificate import FORMAT, VERSION, Certificate, Line, Numbered, alike_of, by_content, digest, hashed, term_line
from coset.prove.closure import Closure
from coset.prove.kernel import DERIVED, meaning_of, text_hash
from coset.regionwise import Solved
from coset.rules.applied import decided, matched, right_sides
from coset.rules.rule import Rule

WRITTEN = Limits(seconds=20.0, nodes=50_000, iterations=6)  # for the way from what was chosen to what the written file says


class Uncertified(CosetError):
    """There is no certificate, and why not."""


@dataclass(frozen=True)
class Step:
    """Each of `left` equals that of `right` at its place: by a rule; or, of one term, because it is `computed` (the right one is its value)
    or a node that was kept, whose `meaning` the right one is."""

    reason: Rule | str
    left: tuple[Term, ...]
    right: tuple[Term, ...]


COMPUTED, MEANING, ENTERED = "computed", "meaning", "entered"
MOST_AXES = 4  # of a constant whose orders are tried


def certificate_of(before: Program, after: Program, steps: Iterable[Step]) -> Certificate:
    """The certificate of these steps, in order, for two programs by content.

    Raises:
        Uncertified: a step has something that certificates have no form for.
    """
    numbered = Numbered(before, after)
    alike = alike_of(numbered.terms)
    rules: dict[Rule, int] = {}
    lines: list[Line] = []

    def numbers(terms: Sequence[Term]) -> list[int]:
        for term in topological(terms):
            if term not in numbered.number:
                lines.append(term_line(term, numbered, alike))
                numbered.add(term)
        return [numbered.number[term] for term in terms]

    try:
        for step in steps:
            left = numbers(step.left)
            if isinstance(step.reason, str):
                lines.append({step.reason: left[0]})
                numbered.enter(step.right[0])
            else:
                lines.append({"rule": rules.setdefault(step.reason, len(rules)), "left": left, "right": numbers(step.right)})
    except CosetError as error:
        raise Uncertified(error.message) from None
    listed = [{"name": r.name, "text": text_hash(r), "numerics": str(r.numerics), "assurance": r.assurance} for r in rules]
    head = {"format": FORMAT, "version": VERSION, "before": digest(before), "after": digest(after), "rules": listed}
    return Certificate(head, lines)


# ---------------------------------------------------------------- the steps of a search


def slice_of(found: Saturation, goals: Sequence[tuple[Term, Term]], entered: Sequence[Step] = ()) -> list[Step]:
    """The steps that join each pair of `goals`: of those that were `entered` as equalities, then instances in the order of the search.

    Raises:
        Uncertified: they do not, or a rule rests on what no certificate says.
    """
    assert found.decoder is not None, "a search that was logged"
    closure = Closure()
    closure.enter(term for goal in goals for term in goal)
    steps = [*entered, *(Step(each.rule, *zip(*each.pairs, strict=True)) for each in found.decoder.instances())]
    for number, step in enumerate(steps):
        for one, other in zip(step.left, step.right, strict=True):
            closure.enter((one, other))
            closure.join(one, other, number)
    if not all(closure.same(*goal) for goal in goals):
        raise Uncertified("the log of the search does not join the result with the program")
    chosen = [steps[number] for number in sorted(closure.explain(goals))]
    for step in chosen:
        if isinstance(step.reason, Rule) and any(fact not in DERIVED for fact, _ in step.reason.facts):
            raise Uncertified(f"rule `{step.reason.name}` rests on a fact about numbers, which no certificate cites yet")
    return chosen


def steps_of(solved: Solved, roots: Sequence[Term]) -> Iterator[Step]:
    """The steps from `roots` to the terms that were chosen for them: those of a region at each of its places.

    Raises:
        Uncertified: as `slice_of`.
    """
    if solved.terms == tuple(roots):
        return
    entered = [Step(ENTERED, (one,), (other,)) for each in solved.entered for one, other in each.pairs]
    for part in solved.parts:
        own = roots if part.region is None else part.region.roots
        steps = slice_of(solved.saturation, list(zip(own, part.selection.terms, strict=True)), entered)
        if part.region is None:
            yield from steps
            continue
        for place in part.places:
            put = Mapped(dict(zip((*part.region.inputs, *part.region.constants), (*place.inputs, *place.constants), strict=True)))
            yield from (put.step(step) for step in steps)


# ---------------------------------------------------------------- equalities that were entered as a whole


def derived(step: Step, rules: Sequence[Rule]) -> Iterator[Step]:
    """The steps that an entered equality stands for: of a chain of products in another order, and of a product as columns of a merged one.
    Any other step is itself.

    Raises:
        Uncertified: no rule of `rules` says it.
    """
    if step.reason != ENTERED:
        yield step
        return
    (one,), (other,) = step.left, step.right
    if other.op.name == SLICE:
        yield from _as_columns(other, [rule for rule in rules if takes_columns(rule)])
    else:
        associative = [rule for rule in rules if is_associativity(rule)]
        yield from (*_leftwards(one, associative), *_leftwards(other, associative))


def _said(rule: Rule, root: Term) -> Step | None:
    """The rule at `root`; None where it does not hold there."""
    found = matched(rule, (root,))
    decision = None if found is None else decided(rule, *found)
    return None if found is None or decision is None else Step(rule, (root,), right_sides(rule, decision, found[1]))


def _as_columns(columns: Term, rules: Sequence[Rule]) -> Iterator[Step]:
    """Columns of a product as a product with columns of the weights, which are computed."""
    step = next((said for rule in rules if (said := _said(rule, columns)) is not None), None)
    if step is None:
        raise Uncertified("no rule shows that products were merged")
    yield step
    for term in dict.fromkeys((step.right[0].operands[1], *step.right[0].operands[1].operands[0].operands)):
        if term.op is not CONSTANT:
            yield Step(COMPUTED, (term,), (hashed_value(term),))


def _leftwards(root: Term, rules: Sequence[Rule]) -> Iterator[Step]:
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


def _turned(term: Term, rules: Sequence[Rule]) -> Step | None:
    """a (b c) = (a b) c, read as a rule says it; None where the products are no chain."""
    left, right = term.operands
    inner, last = right.operands
    try:
        turned = product(product(left, inner, batched=_is_batched(right)), last, batched=_is_batched(term))
    except (CosetError, IndexError):
        return None
    for rule in rules:
        step = _said(rule, turned)
        if step is not None and step.right == (term,):
            return step
    return None


def _is_batched(term: Term) -> bool:
    return bool(term.attribute("lhs_batch"))


class Mapped:
    """Terms with others in place of some of their leaves, or of leaves that a function says."""

    def __init__(self, known: dict[Term, Term], leaf: Callable[[Term], Term] = lambda term: term) -> None:
        self.known, self.leaf = known, leaf

    def all(self, terms: Sequence[Term]) -> tuple[Term, ...]:
        """What the terms become. Each is built once."""
        stack = [(term, False) for term in terms]
        while stack:
            term, ready = stack.pop()
            if term in self.known:
                continue
            if not term.operands:
                self.known[term] = self.leaf(term)
            elif ready:
                operands = tuple(self.known[operand] for operand in term.operands)
                self.known[term] = intern(term.op, operands, term.attributes, term.regions, term.type)
            else:
                stack.append((term, True))
                stack += [(operand, False) for operand in term.operands if operand not in self.known]
        return tuple(self.known[term] for term in terms)

    def step(self, step: Step) -> Step:
        """The same step over what its terms become."""
        return Step(step.reason, self.all(step.left), self.all(step.right))


# ---------------------------------------------------------------- the whole way


@dataclass(frozen=True)
class Way:
    """What was made of `program`, whose searched `roots` became those of `solved`: the file that was read says `before`, the one that was
    written `after`."""

    program: Program
    roots: tuple[Term, ...]
    solved: Solved
    before: Program
    after: Program


def certify(way: Way, phases: Sequence[Phase]) -> Certificate:
    """The certificate that the program which was read and the one that was written are equal.

    Raises:
        Uncertified: there is none, and why.
    """
    before, after = by_content(way.before), by_content(way.after)
    if by_content(way.program).roots != before.roots:
        raise Uncertified("bodies of control flow were written anew, which no certificate says yet")
    put = Mapped({}, hashed)
    rules = [rule for phase in phases for rule in phase.rules]
    steps = [each for step in steps_of(way.solved, way.roots) for each in derived(put.step(step), rules)]
    values: list[Step] = []
    fallback = fallback_for(way.program.source)

    def value_of(term: Term) -> Term:
        if term.op.name == "stablehlo.broadcast_in_dim":
            operand = value_of(term.operands[0])
            return term if operand is term.operands[0] else intern(term.op, (operand,), term.attributes, term.regions, term.type)
        found = computed(term, fallback)
        if found is not term:
            values.append(Step(COMPUTED, put.all([term]), put.all([found])))
        return found

    folded, _ = fold(way.solved.terms, way.solved.storable, way.program.source, value_of=value_of)
    chosen = put.all(folded[: len(before.roots)])
    return certificate_of(before, after, [*steps, *values, *_to_written(chosen, after.roots, phases)])


def _to_written(chosen: Sequence[Term], written: Sequence[Term], phases: Sequence[Phase]) -> list[Step]:
    """The steps from what was chosen to what the file that was written says, where printing put it in other words.

    Raises:
        Uncertified: none were found.
    """
    goals = [(one, other) for one, other in zip(chosen, written, strict=True) if one is not other]
    if not goals:
        return []
    exact = [Phase(phase.name, tuple(rule for rule in phase.rules if rule.numerics.word == "exact")) for phase in phases]
    roots = list(dict.fromkeys(term for goal in goals for term in goal))
    sides = [set(topological(side)) for side in zip(*goals, strict=True)]
    begun = [*_meanings(sides), *_moved_constants(sides)]
    pairs = [(step.left[0], step.right[0]) for step in begun]
    for tried in (exact, phases):
        searched = saturate(roots, tried, WRITTEN, equalities=pairs, logged=True)
        try:
            return slice_of(searched, goals, begun)
        except Uncertified:
            continue
    raise Uncertified("what was written is not seen to be what was chosen")


def _meanings(sides: Sequence[AbstractSet[Term]]) -> list[Step]:
    """What the terms mean that only one side has, by their ops' definitions, down to ops without one."""
    stack = [term for term in topological(sides[0] | sides[1]) if (term in sides[0]) != (term in sides[1])]
    found: dict[Term, Step] = {}
    while stack:
        term = stack.pop()
        if term in found or (meaning := meaning_of(term)) is None:
            continue
        found[term] = Step(MEANING, (term,), (meaning,))
        stack += [inner for inner in topological([meaning]) if inner not in found and inner is not term]
    return list(found.values())


def _moved_constants(sides: Sequence[AbstractSet[Term]]) -> list[Step]:
    """The constants of the second side that have the elements of one of the first in another order or shape."""
    ours, theirs = ([term for term in side if term.op is CONSTANT and term.tensor.rank] for side in sides)
    by_size: dict[tuple[object, int], list[Term]] = {}
    for term in sorted(set(ours) - sides[1], key=lambda term: term.attribute("value").key):
        by_size.setdefault((term.tensor.dtype, prod(term.tensor.static or ())), []).append(term)
    steps = []
    for term in sorted(set(theirs) - sides[0], key=lambda term: term.attribute("value").key):
        for other in by_size.get((term.tensor.dtype, prod(term.tensor.static or ())), ()):
            moved = next((way for way in _ways(other, term) if hashed_value(way) is term), None)
            if moved is not None:
                steps.append(Step(COMPUTED, (moved,), (term,)))
                break
    return steps


def _ways(constant: Term, like: Term) -> Iterator[Term]:
    """The movements of a constant that have the shape of another."""
    shape = like.tensor.dims
    if constant.tensor.rank == like.tensor.rank <= MOST_AXES:
        for order in permutations(range(constant.tensor.rank)):
            if tuple(constant.tensor.dims[axis] for axis in order) == shape:
                yield make("stablehlo.transpose", (constant,), {"permutation": order})
    if constant.tensor.dims != shape:
        yield make("stablehlo.reshape", (constant,), {"shape": shape})


def hashed_value(term: Term) -> Term:
    """The value of a constant term, keyed by its bytes."""
    return hashed(computed(term, fallback_for({})))
