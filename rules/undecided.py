"""Which conditions of a rule are false already while its instances are drawn, whatever the names get that have no value yet."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from coset.ir.errors import CosetError
from coset.ir.term import exact_key
from coset.ir.types import DType
from coset.rules.algebra import Expression, Ref, Scope, TypeOf, Unbound, evaluate
from coset.rules.parts import parts
from coset.rules.rule import Rule
from coset.rules.scalar import Undefined

MOST_ANSWERS = 20_000  # of one condition that are remembered


def possible(rule: Rule, dtypes: Sequence[str], elements: Sequence[tuple[DType, ...]]) -> list[tuple[DType, ...]]:
    """The choices of element types of which no condition about element types alone is false."""
    left = list(elements)
    for condition in rule.compiled.conditions:
        names = {part.name for part in parts(condition) if isinstance(part, Ref)}
        if names and names <= set(dtypes) and not any(isinstance(part, TypeOf) for part in parts(condition)):
            own = [place for place, name in enumerate(dtypes) if name in names]
            wrong: dict[tuple[DType, ...], bool] = {}  # of few names there are few choices
            for chosen in left:
                few = tuple(chosen[place] for place in own)
                if few not in wrong:
                    wrong[few] = _is_false(condition, Scope({dtypes[place]: chosen[place] for place in own}))
            left = [chosen for chosen in left if not wrong[tuple(chosen[place] for place in own)]]
    return left


def is_hopeless(rule: Rule, questions: Sequence[Question], scope: Scope) -> bool:
    """Whether one of these conditions of `rule` is false already, whatever the names get that have no value yet."""
    known = Scope(scope.values, scope.variables, scope.left, [None] * len(rule.compiled.right), rule.numerics.word)
    return any(question.is_false(known) for question in questions)


@dataclass(eq=False)
class Question:
    """A condition with the names and the types that it reads, and its answers for their values: most stand while one is tried out."""

    condition: Expression
    names: tuple[str, ...]
    types: tuple[TypeOf, ...]
    answers: dict[Any, bool] = field(default_factory=dict)

    def is_false(self, scope: Scope) -> bool:
        """As `_is_false`."""
        types = [scope.variables.get(each.key) if each.kind == "variable" else getattr(scope, each.kind)[each.key] for each in self.types]
        key = (tuple([exact_key(scope.values.get(name, self)) for name in self.names]), *types)
        known = self.answers.get(key)
        if known is None:
            if len(self.answers) >= MOST_ANSWERS:
                self.answers.clear()
            known = self.answers[key] = _is_false(self.condition, scope)
        return known


def _question(condition: Expression) -> Question:
    found = list(parts(condition))
    names = dict.fromkeys(part.name for part in found if isinstance(part, Ref))
    return Question(condition, tuple(names), tuple(dict.fromkeys(part for part in found if isinstance(part, TypeOf))))


def questions_of(rule: Rule, names: AbstractSet[str] | None = None) -> Sequence[Question]:
    """The conditions of `rule`; those that read one of `names` where these are given."""
    found = _QUESTIONS.get(rule)
    if found is None:
        found = _QUESTIONS[rule] = tuple(map(_question, rule.compiled.conditions))
    return found if names is None else [question for question in found if not names.isdisjoint(question.names)]


_QUESTIONS: WeakKeyDictionary[Rule, tuple[Question, ...]] = WeakKeyDictionary()


def _is_false(condition: Expression, scope: Scope) -> bool:
    """Whether `condition` has a value already, which is false."""
    try:
        return not evaluate(condition, scope)
    except (Unbound, Undefined, CosetError):
        return False
