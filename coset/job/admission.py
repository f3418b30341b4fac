"""Which rules take part in a search: of all that the numerics allow, less those that the user leaves out, or those alone that are named."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from coset.egraph.request import Phase
from coset.ir.errors import CosetError
from coset.ir.suggestions import like
from coset.rules.rule import RECOGNISE, Rule


@dataclass(frozen=True)
class Admission:
    """All rules but the `without` ones; where `only` names some, of the rules without a definition those alone. A name is that of a rule,
    of an entry of a rule file, or of the op that a definition is of; `*`, `?` and `[..]` stand for letters as in file names."""

    without: tuple[str, ...] = ()
    only: tuple[str, ...] = ()

    def admits(self, rule: Rule) -> bool:
        """True for a rule that takes part."""
        if any(_called(rule, name) for name in self.without):
            return False
        return not self.only or rule.definition is not None or any(_called(rule, name) for name in self.only)

    def phases(self, phases: Sequence[Phase]) -> list[Phase]:
        """`phases` with the rules that take part."""
        return [phase.where(self.admits) for phase in phases]

    def check(self, every: Iterable[Rule]) -> None:
        """Refuse names that no rule of `every` has.

        Raises:
            CosetError: a name that is given is nobody's.
        """
        rules = list(every)
        for name in (*self.without, *self.only):
            if not any(_called(rule, name) for rule in rules):
                known = dict.fromkeys(rule.family.removesuffix(RECOGNISE) for rule in rules)
                raise CosetError(f"there is no rule called `{name}`", help=like(name, known) or "`coset rules` lists them")


EVERY_RULE = Admission()


def _called(rule: Rule, name: str) -> bool:
    return any(fnmatchcase(each, name) for each in (rule.name, rule.family, rule.family.removesuffix(RECOGNISE)))
