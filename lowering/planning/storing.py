"""Which values are kept in memory: a walk from users to operands that weighs storing a value against computing it again.

Outputs, a library's operands and results, and what folds and products make for other kernels are always stored. A light term that
several kernels need, or one kernel made for another, is stored where that moves fewer bytes; what it is computed from is needed in its
place where it is not.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from coset.ir.term import CONSTANT, Term
from coset.lowering.planning.group import LIBRARY, TILED, Grouping, KernelGroup
from coset.lowering.planning.grouping import Grouper
from coset.lowering.planning.kinds import FREE, LEAVES, WRITTEN_OUT, bytes_of, is_arithmetic, narrow_cut


@dataclass
class StoredTerms:
    """Which terms have memory of their own, what each kernel computes, and why values are stored or computed again."""

    terms: set[Term] = field(default_factory=set)
    live: dict[KernelGroup, set[Term]] = field(default_factory=dict)  # the terms of its own that a kernel needs
    readers: dict[Term, set[KernelGroup]] = field(default_factory=dict)  # stored terms and leaves -> kernels that load them
    choices: dict[Term, str] = field(default_factory=dict)


class Storer:
    """The walk. New groups are opened in `grouper` for floating terms that turn out to be worth storing."""

    def __init__(self, grouper: Grouper, grouping: Grouping) -> None:
        self.grouper, self.grouping, self.binding = grouper, grouping, grouper.binding
        self.limits = grouper.limits
        self.stored = StoredTerms()
        self.needs: dict[Term, dict[KernelGroup, None]] = {}

    def run(self) -> StoredTerms:
        """The stored terms of the whole program."""
        for term in reversed(self.grouping.order):
            needed = self.needs.get(term, {})
            if not needed and term not in self.grouping.required:
                continue
            if term.op.name in LEAVES:
                self.stored.readers[term] = set(needed)
            elif term in self.grouping.home:
                self._in_group(term, self.grouping.home[term], needed)
            elif term in self.grouping.light:
                self._floating(term, needed)
        return self.stored

    def _need(self, term: Term, group: KernelGroup) -> None:
        for operand in self.grouping.needs(term):
            self.needs.setdefault(operand, {})[group] = None

    def _keep(self, term: Term, group: KernelGroup, readers: dict[KernelGroup, None]) -> None:
        self.stored.terms.add(term)
        self.stored.readers[term] = {reader for reader in readers if reader is not group}

    def _in_group(self, term: Term, home: KernelGroup, needed: dict[KernelGroup, None]) -> None:
        outside = [group for group in needed if group is not home]
        required = term in self.grouping.required
        if term not in self.grouping.light:
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

    def _floating(self, term: Term, needed: dict[KernelGroup, None]) -> None:
        readers = list(needed)
        if len(readers) > 1 and self._is_better_stored(term, None, readers):
            group = self.grouper.pointwise(term)
            self._keep(term, group, needed)
            self.stored.live.setdefault(group, set()).add(term)
            self._need(term, group)
            return
        for group in readers:
            self._need(term, group)

    def _is_better_stored(self, term: Term, home: KernelGroup | None, readers: list[KernelGroup]) -> bool:
        """Compare the bytes moved: `term` written once and read by each of `readers`, or what it is made from read by each of them."""
        if term.op.name in WRITTEN_OUT:
            return self._choose(term, True, "it goes through windows")
        tiled = any(reader.kind in TILED for reader in readers)
        cut = narrow_cut(term, self.grouping.light, self.grouping.required, self.binding, self.limits, tiled=tiled)
        if cut is not None and all(source in self.grouping.home or source not in self.grouping.light for source in cut):
            return self._choose(term, False, "what it is made from is narrower")
        found = self._frontier(term)
        if found is None:
            return self._choose(term, True, "it is made from too much to be computed again")
        sources, work, own = found
        if tiled and work > (self.limits.product_scalars if home is None else 0):
            return self._choose(term, True, "a product would compute it again for each tile")
        size = bytes_of(term, self.binding)
        again = read = 0
        for source in sources:
            bytes_ = self._read_bytes(source, term, size)
            needed = self.needs.get(source, {})
            again += bytes_ * sum(1 for reader in readers if reader not in needed)
            read += bytes_
            if home is not None and self.grouping.home.get(source) is home and all(group is home for group in needed):
                again += bytes_of(source, self.binding)  # it would have to be written for them
        kept = size * (1 + len(readers))
        if home is None:
            kept += read + self.limits.launch_bytes
        full = again > 0 and own > 0 and any(reader.size + own > self.limits.scalars for reader in readers)
        if full:
            return self._choose(term, True, "a kernel that needs it is full")
        better = kept < again or (kept == again and work > 0)
        if not better:
            for reader in readers:
                reader.size += own
        return self._choose(term, better, f"stored it moves {kept} bytes, computed again {again}")

    def _read_bytes(self, source: Term, term: Term, size: int) -> int:
        """The bytes of `source` that computing `term` reads: at most one element of it for each of its own."""
        if source.op is CONSTANT and not source.tensor.rank:
            return 0
        return min(bytes_of(source, self.binding), size * source.tensor.dtype.bits // term.tensor.dtype.bits)

    def _frontier(self, term: Term) -> tuple[list[Term], int, int] | None:
        """The values nearest to `term` that are in memory or needed elsewhere too, the number of scalar operations from them to it, and how
        many of these are on this side of values for which the same question is still to be asked. None where they are too many."""
        found: list[Term] = []
        work = own = int(is_arithmetic(term))
        done: set[Term] = set()
        stack = [(operand, True) for operand in term.operands]
        while stack:
            top, near = stack.pop()
            if top in done:
                continue
            done.add(top)
            home = self.grouping.home.get(top)
            near = near and home is None
            known = any(group is not home for group in self.needs.get(top, {}))
            if top not in self.grouping.light or top in self.grouping.required or known or top.op.name in WRITTEN_OUT:
                found.append(top)
            elif top.op.name not in FREE:
                work += is_arithmetic(top)
                own += is_arithmetic(top) and near
                stack += [(operand, near) for operand in top.operands]
            if len(found) > self.limits.sources or len(done) > self.limits.inlined:
                return None
        return found, work, own

    def _choose(self, term: Term, stored: bool, words: str) -> bool:
        self.stored.choices[term] = words
        return stored
