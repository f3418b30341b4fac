"""The instances of a rule with symbols that its conditions tell apart: each answer to what is asked of the sizes is looked at.

Where a condition asks whether two dims are equal, the symbols are bound so that they are, and the other answer is taken for granted too.
Whether one dim is less than another is taken for granted both ways. All answers together speak of all sizes; an answer that no size has
only asks for more than is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from coset.ir import dims
from coset.ir.dim_factors import factors as factors_of
from coset.ir.dims import Dim, Poly
from coset.ir.errors import CosetError
from coset.ir.term import Term, topological
from coset.prove.equal import Numbers
from coset.prove.index import IndexFacts
from coset.prove.sample import numbers_of, sides
from coset.rules.arithmetic import Oracle
from coset.rules.attempts import symbols_of
from coset.rules.definition import is_defined
from coset.rules.instance import Instance
from coset.rules.pattern import Variable, applications
from coset.rules.rule import Rule
from coset.rules.unify import Binding, bound, solved
from coset.rules.watched import asking, noting

MOST_ANSWERS = 1024  # of one instance
Answers = dict[tuple[str, Poly], bool]


class Untold(Exception):
    """Sizes at which the rule may fire are left out: an equation of dims could not be solved, or too much was asked."""


class _Question(Exception):
    def __init__(self, question: str, difference: Poly) -> None:
        self.question, self.difference = question, difference


@dataclass(frozen=True)
class ProofCase:
    """Both sides of an instance, dims that are not negative there, truths about the numbers in it, what its constants round, and the
    results of definitions that were opened in it."""

    sides: tuple[Term, Term]
    facts: tuple[Dim, ...] = ()
    truths: tuple[Term, ...] = ()
    numbers: tuple[Numbers, Numbers] = ((), ())
    stored: frozenset[Term] = frozenset()


def decided(rule: Rule, instance: Instance, gaps: set[str]) -> Iterator[ProofCase]:
    """Both sides, for each way to answer what the rule asks of symbolic sizes in which it fires.

    Where it does not fire, or fires otherwise, as a symbol is no number, `gaps` says so: at some sizes it may fire.

    Raises:
        Untold: not all ways were looked at.
    """
    waiting: list[tuple[Instance, Answers]] = [(instance, {})]
    looked = 0
    while waiting:
        here, answers = waiting.pop()
        looked += 1
        if looked > MOST_ANSWERS:
            raise Untold
        try:
            with asking(_recall(answers)), noting() as noted:
                pair = sides(rule, here)
            gaps.update(f"sizes that {what} tells apart" for what in noted)
        except _Question as asked:
            waiting += _answered(asked, here, answers)
            continue
        except CosetError:
            if _typed(rule, here):
                raise
            if any(map(symbols_of, (*here.left_types, *here.variable_types))):
                gaps.add("sizes that a condition tells apart")
            continue  # what was bound later leaves an op of the left side without a type
        if pair is not None:
            gaps.update(f"sizes that {what} tells apart" for what in _forms(pair))
            facts = tuple(_fact(difference, answer) for (question, difference), answer in answers.items() if question == "<")
            with asking(_recall(answers)):
                before, after = numbers_of(rule, here)
            yield ProofCase(pair, facts, (), (tuple(before.items()), tuple(after.items())))


def _answered(asked: _Question, here: Instance, answers: Answers) -> list[tuple[Instance, Answers]]:
    """The ways to answer a question about sizes.

    Raises:
        Untold: some are not known.
    """
    key = asked.question, asked.difference
    ways = [(here, {**answers, key: False})]
    if asked.question == "<":
        return [*ways, (here, {**answers, key: True})]
    bindings = solved(*_apart(asked.difference))
    if bindings is None:
        raise Untold from None
    nothing: list[Binding] = [{name: 0} for name in sorted(_shared(asked.difference))]
    return [*ways, *((_with(here, binding), _renamed(answers, binding)) for binding in (*bindings, *nothing))]


def _forms(pair: tuple[Term, Term]) -> set[str]:
    """What definitions of ops of both sides tell symbols and numbers apart by, which stands for no size."""
    with noting() as noted:
        for term in filter(lambda term: is_defined(term.op), topological(pair)):
            with suppress(CosetError):  # what depends on sizes is seen where the op is opened
                term.op.infer([operand.type for operand in term.operands], dict(term.attributes))
    return noted


def _typed(rule: Rule, instance: Instance) -> bool:
    """Whether the left side has the types that the instance says, each op of it."""
    variables = dict(zip(rule.variables, instance.variable_types, strict=True))
    for node in applications(rule.left):
        operands = [variables[o.name] if isinstance(o, Variable) else instance.left_types[o.index] for o in node.operands]
        try:
            if node.op.infer(operands, dict(instance.attributes[node.index])) != instance.left_types[node.index]:
                return False
        except CosetError:
            return False
    return True


def _recall(answers: Answers) -> Oracle:
    """Answers what was answered before."""

    def oracle(question: str, difference: Poly) -> bool:
        turned = dims.multiply(-1, difference)
        if _vanishes(difference, answers):
            return question == "=="
        found = answers.get((question, difference))
        if found is None and question == "==" and isinstance(turned, Poly):
            found = answers.get((question, turned))
        if found is None:
            raise _Question(question, difference)
        return found

    return oracle


def _vanishes(difference: Poly, answers: Answers) -> bool:
    """Whether a difference of dims is 0 wherever the answers hold. What divides is not 0: a rule that divides by 0 does not fire."""
    facts = tuple(_fact(asked, answer) for (question, asked), answer in answers.items() if question == "<")
    return (
        IndexFacts({}, facts, frozenset().union(*(factors_of(divisor) or () for divisor in _divisors(difference)))).simplify(difference)
        == 0
    )


def _divisors(dim: Dim) -> Iterator[Dim]:
    """What divides in a dim, at any depth."""
    for monomial, _ in dim.terms if isinstance(dim, Poly) else ():
        for atom in monomial:
            if atom.name in ("floordiv", "mod") and atom.args:
                yield atom.args[1]
            for argument in atom.args:
                yield from _divisors(argument)


def _fact(difference: Poly, less: bool) -> Dim:
    """What is not negative where `difference` is less than 0, or is not."""
    return dims.subtract(-1, difference) if less else difference


def _apart(difference: Poly) -> tuple[Dim, Dim]:
    """The terms of a difference with a plus, and those with a minus."""
    more: Dim = 0
    less: Dim = 0
    for monomial, coefficient in difference.terms:
        part: Dim = Poly(((monomial, abs(coefficient)),)) if monomial else abs(coefficient)
        more, less = (dims.add(more, part), less) if coefficient > 0 else (more, dims.add(less, part))
    return more, less


def _shared(difference: Poly) -> frozenset[str]:
    """The symbols that every term has as a factor: the equation holds where one is 0, too."""
    each = [frozenset(atom.name for atom in monomial if not atom.args) for monomial, _ in difference.terms]
    return frozenset.intersection(*each)


def _renamed(answers: Answers, binding: Binding) -> Answers:
    """What was answered, of the sizes that are left; what is a number now is not asked again."""
    found: Answers = {}
    for (question, difference), answer in answers.items():
        dim = dims.substitute(difference, binding)
        if isinstance(dim, Poly):
            found[question, dim] = answer
    return found


def _with(instance: Instance, binding: Binding) -> Instance:
    return Instance(
        bound(instance.attributes, binding), bound(instance.left_types, binding), bound(instance.variable_types, binding), {}
    )  # fmt: skip
