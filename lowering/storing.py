"""Which values are kept in memory: a walk from users to operands that weighs storing a value against computing it again.

Outputs, a library's operands and results, and what folds and products make for other kernels are always stored. A light term that
several kernels need, or one kernel made for another, is stored where that moves fewer bytes; what it is computed from is needed in its
place where it is not.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from coset.ir.term import Term
from coset.lowering.grouping import FREE, LEAVES, LIBRARY, PRODUCT, Group, Grouper, Grouping, bytes_of, is_arithmetic, is_light


@dataclass
class Stored:
    """Which terms have memory of their own, what each kernel computes, and why values are stored or computed again."""

    terms: set[Term] = field(default_factory=set)
    live: dict[Group, set[Term]] = field(default_factory=dict)  # the terms of its own that a kernel needs
    readers: dict[Term, set[Group]] = field(default_factory=dict)  # stored terms and leaves -> kernels that load them
    choices: dict[Term, str] = field(default_factory=dict)


class Storer:
    """The walk. New groups are opened in `grouper` for floating terms that turn out to be worth storing."""

    def __init__(self, grouper: Grouper, grouping: Grouping) -> None:
        self.grouper, self.grouping, self.binding = grouper, grouping, grouper.binding
        self.limits = grouper.limits
        self.stored = Stored()
        self.needs: dict[Term, dict[Group, None]] = {}
        self.source = _Sources(grouper, grouping)

    def run(self) -> Stored:
        """The stored terms of the whole program."""
        for term in reversed(self.grouping.order):
            needed = self.needs.get(term, {})
            if not needed and term not in self.grouping.required:
                continue
            if term.op.name in LEAVES:
                self.stored.readers[term] = set(needed)
            elif term in self.grouping.home:
                self._in_group(term, self.grouping.home[term], needed)
            elif is_light(term):
                self._floating(term, needed)
        return self.stored

    def _need(self, term: Term, group: Group) -> None:
        for operand in term.operands:
            self.needs.setdefault(operand, {})[group] = None

    def _keep(self, term: Term, group: Group, readers: dict[Group, None]) -> None:
        self.stored.terms.add(term)
        self.stored.readers[term] = {reader for reader in readers if reader is not group}

    def _in_group(self, term: Term, home: Group, needed: dict[Group, None]) -> None:
        outside = [group for group in needed if group is not home]
        required = term in self.grouping.required
        if not is_light(term):
            if outside or required or home.kind == LIBRARY:
                self._keep(term, home, needed)
        elif required or (outside and self._is_better_stored(term, home, outside)):
            self._keep(term, home, needed)
        elif outside:
            for group in outside:
                self._need(term, group)
            if home not in needed:
                return
        self.stored.live.setdefault(home, set()).add(term)
        self._need(term, home)

    def _floating(self, term: Term, needed: dict[Group, None]) -> None:
        readers = list(needed)
        if len(readers) > 1 and self._is_better_stored(term, None, readers):
            group = self.grouper.pointwise(term)
            self._keep(term, group, needed)
            self.stored.live.setdefault(group, set()).add(term)
            self._need(term, group)
            return
        for group in readers:
            self._need(term, group)

    def _is_better_stored(self, term: Term, home: Group | None, readers: list[Group]) -> bool:
        """Compare the bytes moved: `term` written once and read by each of `readers`, or its sources read by each of them."""
        sources = self.source.of(term)
        if sources is None:
            return self._choose(term, True, "it is made from too much to be computed again")
        work = self.source.work[term]
        if any(reader.kind == PRODUCT for reader in readers) and work > 0 and (home is not None or work > self.limits.product_scalars):
            return self._choose(term, True, "a product would compute it again for each tile")
        size = bytes_of(term, self.binding)
        again, extra = 0, 0
        for source, bytes_ in sources.items():
            again += len(readers) * bytes_
            owner = self.grouping.home.get(source)
            if owner is not None and owner is home and not any(group is not home for group in self.needs.get(source, {})):
                extra += bytes_of(source, self.binding)
        kept = size * (1 + len(readers))
        if home is None:
            kept += sum(sources.values()) + self.limits.launch_bytes
        better = kept < again + extra or (kept == again + extra and work > 0)
        words = f"stored it moves {kept} bytes, computed again {again + extra}"
        return self._choose(term, better, words)

    def _choose(self, term: Term, stored: bool, words: str) -> bool:
        self.stored.choices[term] = words
        return stored


class _Sources:
    """What a light term is computed from, if nothing between is stored: leaves, and what folds, products and libraries make."""

    def __init__(self, grouper: Grouper, grouping: Grouping) -> None:
        self.known: dict[Term, dict[Term, int] | None] = {}
        self.work: dict[Term, int] = {}
        self.limit, self.most = grouper.limits.sources, grouper.limits.inlined
        for term in grouping.order:
            self._enter(term, grouping, grouper.binding)

    def of(self, term: Term) -> dict[Term, int] | None:
        """The sources of a light term with the bytes that it reads of each; None where they are too many."""
        return self.known[term]

    def _enter(self, term: Term, grouping: Grouping, binding: dict[str, int]) -> None:
        self.work[term] = 0
        if not is_light(term):
            self.known[term] = {term: bytes_of(term, binding)} if term.op.name != "builtin.constant" or term.tensor.rank else {}
            return
        if term.op.name in FREE:
            self.known[term] = {}
            return
        work = is_arithmetic(term) + sum(0 if o in grouping.required else self.work[o] for o in term.operands)
        self.work[term] = min(work, self.most + 1)
        most = bytes_of(term, binding)
        found: dict[Term, int] = {}
        for operand in term.operands:
            inner = {operand: bytes_of(operand, binding)} if operand in grouping.required else self.known[operand]
            if inner is None:
                self.known[term] = None
                return
            for source, bytes_ in inner.items():
                ratio = source.tensor.dtype.bits / term.tensor.dtype.bits
                found[source] = max(found.get(source, 0), min(bytes_, int(most * ratio)))
        self.known[term] = found if len(found) <= self.limit and work <= self.most else None
