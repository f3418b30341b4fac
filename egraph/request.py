"""What a search is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from coset.egraph.limits import Limits
from coset.egraph.relevance import relevant
from coset.ir.term import Term
from coset.rules.rule import Rule


@dataclass(frozen=True)
class Phase:
    """Rules that run together until nothing new is found or the iterations are spent. One that `seeks` is there for these ops,
    which its definitions find: where none of them can be found, none of its rules is run. Further definitions find their parts."""

    name: str
    rules: tuple[Rule, ...]
    seeks: frozenset[str] | None = None

    def where(self, keep: Callable[[Rule], bool]) -> Phase:
        """The phase with the rules of which `keep` is true."""
        return replace(self, rules=tuple(filter(keep, self.rules)))

    def is_idle(self, ops: Iterable[str]) -> bool:
        """True where it seeks, and can find nothing over `ops` (with numbers of operands, as in `Rule.reads`)."""
        return self.seeks is not None and not relevant((self,), ops)[0].rules


@dataclass(frozen=True)
class Request:
    """A search: the roots, equalities already shown (term, equal term), the phases in order, and the limits."""

    roots: tuple[Term, ...]
    equalities: tuple[tuple[Term, Term], ...]
    phases: tuple[Phase, ...]
    limits: Limits
    logged: bool = False
    counted: bool = False
