"""Which terms share a kernel: a walk from operands to users in which each term joins the kernel that just made its operands.

A kernel begins with a term that must be somewhere in memory or that folds: a reduction, a product, a library's op, an output, an
operand of a library. It takes in what is computed only for it (its prologue), and later terms join it as long as they stand at the
same place of its loops (its epilogue). All other terms float: they are computed wherever they are needed, and `storing` decides for
which of them it is cheaper to be stored. Each step looks at a term's operands and at a bounded number of kernels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from heapq import heappop, heappush

from coset.ir.dims import Dim, evaluate, product, symbols
from coset.ir.term import CONSTANT, GET, TUPLE, Term
from coset.lowering.kernels.index_arithmetic import complexity
from coset.lowering.kernels.indexing import ALTERNATIVES, BIJECTIVE, MOVEMENTS, Index, sources, target
from coset.lowering.kernels.kernel import ATOMIC, Loop
from coset.lowering.planning.attention import Attentions
from coset.lowering.planning.group import (
    LIBRARY,
    POINTWISE,
    PRODUCT,
    RECURRENCE,
    ROWS,
    SORT,
    TILED,
    Grouping,
    KernelGroup,
    along_columns,
    loops_over,
)
from coset.lowering.planning.grouped import is_grouped, place_grouped
from coset.lowering.planning.kinds import (
    FREE,
    LEAVES,
    NOTHING,
    WINDOWED,
    WRITTEN_OUT,
    KernelLimits,
    cost_of,
    is_arithmetic,
    is_costly,
    is_fold,
    is_product,
    is_scanned,
    is_scattered,
    is_sorted,
    is_widening,
    narrow_cut,
)
from coset.lowering.planning.picking import PICKED
from coset.lowering.planning.recurring import Recurring, place_recurrence, result_index
from coset.lowering.planning.scanning import place_scan
from coset.lowering.planning.scattering import place_scatter
from coset.lowering.planning.sorting import place_sort
from coset.lowering.planning.windows import place_windows, place_written_out


class Grouper:
    """The walk over `order` (operands before users). `light` are the terms that kernels compute anywhere, `required` those that must be in
    memory; `binding` are numbers for the dim symbols, for estimates only; `attentions` are those that are kernels; a library does
    what it is `given`.

    Raises:
        Unattended: by `run`; one of them is none."""

    def __init__(
        self,
        order: Sequence[Term],
        light: Set[Term],
        required: Iterable[Term],
        binding: dict[str, int],
        limits: KernelLimits,
        attentions: Attentions,
        loops: Mapping[Term, Recurring],
        given: Set[Term],
    ) -> None:
        self.limits, self.binding, self.light, self.attentions, self.loops = limits, binding, light, attentions, loops
        self.given = given
        self.found = Grouping(list(order), {term: place for place, term in enumerate(order)}, light, set(required), given)
        self.home, self.position = self.found.home, self.found.position
        self.opened = 0
        self.seen: dict[Term, int] = {}  # uses by the terms so far
        self.weight: dict[Term, int] = {}  # scalars of a floating term, an upper bound
        self.reading: dict[tuple[Term | KernelGroup, Index, tuple[Loop, ...]], KernelGroup] = {}  # who reads a value whole

    def run(self) -> Grouping:
        """The groups of all terms."""
        for term in self.found.order:
            for operand in term.operands:
                self.seen[operand] = self.seen.get(operand, 0) + 1
            self._place(term)
        return self.found

    def _place(self, term: Term) -> None:
        if term.op.name in LEAVES or term.op.name in NOTHING:
            return
        if term.op in (GET, TUPLE):
            if term.op is GET and term.operands[0] in self.home:
                home = self.home[term.operands[0]]
                index = home.at[term.operands[0]] if home.kind == SORT else ()
                self.add(home, term, result_index(self, term) if home.kind == RECURRENCE else index)
            return
        if term.op.name in WRITTEN_OUT:
            place_written_out(self, term)
        elif term in self.light:
            self._light(term)
        elif term in self.attentions:
            self.attentions.place(self, term)
        elif is_scanned(term):
            place_scan(self, term)
        elif is_scattered(term):
            place_scatter(self, term)
        elif is_sorted(term):
            place_sort(self, term)
        elif is_grouped(term):
            place_grouped(self, term)
        elif term in self.loops:
            place_recurrence(self, term)
        elif is_fold(term):
            self._fold(term)
        elif is_product(term) and term not in self.given:
            self._product(term)
        elif term.op.name == WINDOWED:
            place_windows(self, term)
        else:
            group = self.open(LIBRARY, term)
            group.heavy.append(term)
            self.add(group, term, ())

    # ------------------------------------------------------------ groups

    def open(self, kind: str, term: Term) -> KernelGroup:
        place = self.position[term]
        group = KernelGroup(self.opened, kind, place, place)
        self.opened += 1
        self.found.groups.append(group)
        return group

    def add(self, group: KernelGroup, term: Term, index: Index) -> None:
        self.home[term] = group
        group.at[term] = index
        group.part[term] = group.number
        group.last = max(group.last, self.position[term])
        group.size += cost_of(term)
        for operand in self.found.needs(term):
            if self.home.get(operand) is not group and operand not in group.outside:
                group.outside[operand] = None
                group.size += self.weight.get(operand, 0)

    def waits(self, terms: Iterable[Term], group: KernelGroup) -> bool:
        """True unless it is seen that none of `terms` needs something of `group`."""
        stack: list[Term] = list(terms)
        done: set[object] = set()
        while stack:
            term = stack.pop()
            home = self.home.get(term)
            if home is group:
                return True
            node: object = home or term
            last = home.last if home is not None else self.position[term]
            if node in done or last < group.first:
                continue
            done.add(node)
            if len(done) > self.limits.search:
                return True
            stack += home.outside if home is not None else self.found.needs(term)
        return False

    # ------------------------------------------------------------ light terms

    def _light(self, term: Term) -> None:
        for group in self._candidates(term):
            index, reason = self._fits(term, group)
            if index is not None:
                self.add(group, term, index)
                return
            if self.attentions.home(self, term) is not None:
                raise self.attentions.refused(term)
            self.found.reasons[group.number, term] = reason
        self.weight[term] = self._weight(term)
        if self.weight[term] > self.limits.inlined:
            self.found.required.add(term)
        if term in self.found.required:
            self._merged(self.pointwise(term))

    def _candidates(self, term: Term) -> list[KernelGroup]:
        """The groups of the operands, the last one first."""
        own = self.attentions.home(self, term)
        if own is not None:
            return [own]
        homes = {self.home[operand] for operand in term.operands if operand in self.home}
        return sorted((g for g in homes if g.kind not in (LIBRARY, RECURRENCE)), key=lambda group: -group.last)

    def _fits(self, term: Term, group: KernelGroup) -> tuple[Index | None, str]:
        """The index of `term` in the loops of `group`, or None and why it cannot be computed there."""
        if group.size + cost_of(term) > self.limits.scalars:
            return None, "the kernel is full"
        if group.form == ATOMIC:
            return None, "it is known only when all programs of the kernel have added to it"
        index: Index | None = None
        others = [other for other in self.found.needs(term) if self.home.get(other) is not group]
        for place, operand in enumerate(term.operands):
            if self.home.get(operand) is not group:
                continue
            moved = self._moved(term, place, group.at[operand], group)
            if moved is None:
                return None, f"`{term.op.name}` takes it to other places than its kernel's loops"
            if index is not None and index != moved:
                return None, f"`{term.op.name}` needs two elements of it at once"
            index = moved
        assert index is not None
        if any(complexity(dim) > self.limits.index for dim in index):
            return None, "its place in the kernel's loops is too long an expression"
        if group.columns and not group.is_row(index) and self._is_long(group):
            return None, "its few rows are too long for one program each"
        if self.waits(others, group):
            return None, f"another operand of `{term.op.name}` waits for it"
        return index, ""

    def _moved(self, term: Term, place: int, index: Index, group: KernelGroup) -> Index | None:
        found = target(term, place, index, group.extents)
        if found is None and term.op.name == "stablehlo.broadcast_in_dim" and group.columns and group.is_row(index):
            return along_columns(term, index, group)
        return found

    def _is_long(self, group: KernelGroup) -> bool:
        rows = columns = 1
        for loop in group.loops.values():
            count = evaluate(loop.extent, self.binding)
            rows, columns = (rows, columns * count) if loop.name in group.columns else (rows * count, columns)
        last = next((loop.name for loop in reversed(group.loops.values()) if evaluate(loop.extent, self.binding) > 1), "")
        return self.limits.parts(rows, columns, along_rows=last not in group.columns) > 1

    def _weight(self, term: Term) -> int:
        """The scalars that computing a floating `term` takes: by the tree, and where that is large, by counting each term once."""
        tree = cost_of(term) + sum(self.weight.get(operand, 0) for operand in term.operands if operand not in self.home)
        if tree <= self.limits.inlined:
            return tree
        total = 0
        done: set[Term] = set()
        stack = [term]
        while stack:
            top = stack.pop()
            if top not in done:
                done.add(top)
                total += cost_of(top)
                stack += [operand for operand in top.operands if operand in self.weight and operand not in self.home]
            if total > self.limits.inlined or len(done) > self.limits.search:
                return self.limits.inlined + 1
        return total

    # ------------------------------------------------------------ what begins a kernel

    def pointwise(self, term: Term) -> KernelGroup:
        """A group of loops over `term` alone."""
        group = self.open(POINTWISE, term)
        index = loops_over(group, "i", term.tensor.dims)
        self.add(group, term, index)
        self.adopt(group, term, index)
        return group

    def adopt(self, group: KernelGroup, user: Term, index: Index) -> None:
        """Take into `group` the floating terms under `user` that nothing else has needed so far and that move no element away. `index` is
        that of a light `user`, or of the operand of a fold."""
        inside: dict[Term, int] = {}
        wanted: dict[Term, Index | None] = {}
        heap: list[tuple[int, Term]] = []

        names = {loop.name for loop in group.loops.values()}

        def push(term: Term, index: Index | None) -> None:
            if term not in self.weight or term in self.home:
                if index is not None and names and names == frozenset[str]().union(*map(symbols, index)):
                    group.whole.append((term, index))
                return
            if term not in wanted:
                heappush(heap, (-self.position[term], term))  # positions differ: terms are never compared
                wanted[term] = index
            elif wanted[term] != index:
                wanted[term] = None
            inside[term] = inside.get(term, 0) + 1

        def spread(term: Term, index: Index) -> None:
            kept = term.op.has("elementwise") or term.op.name in BIJECTIVE
            found = {source.operand: source.index for source in sources(term, index, group.extents)} if kept else {}
            for place, operand in enumerate(term.operands):
                push(operand, found.get(place) if operand.tensor.rank == len(found.get(place, ())) and operand.tensor.rank else None)

        if user in self.light:
            spread(user, index)
        else:
            push(user.operands[0], index)
        while heap and group.size < self.limits.scalars:
            term = heappop(heap)[1]
            at = wanted[term]
            if at is None or inside[term] < self.seen.get(term, 0) or term.op.name in FREE:
                continue
            if term.op.name in MOVEMENTS and term.op.name not in BIJECTIVE:
                continue
            self.add(group, term, at)
            spread(term, at)

    def _fold(self, term: Term) -> None:
        operand = term.operands[0]
        group = self.home.get(operand)
        if group is not None and group.kind in (POINTWISE, ROWS):
            reason = self._fold_reason(term, group)
            if reason is None:
                group.kind = ROWS
                index = tuple(dim for axis, dim in enumerate(group.at[operand]) if axis not in term.attribute("dimensions"))
                group.heavy.append(term)
                group.reads[term] = (group.at[operand],)
                self.add(group, term, index)
                return
            self.found.reasons[group.number, term] = reason
        elif group is not None and group.kind in TILED:
            self.found.reasons[group.number, term] = "a row of the product is spread over many programs"
        self._new_fold(term)

    def _new_fold(self, term: Term) -> None:
        group = self.open(ROWS, term)
        axes = term.attribute("dimensions")
        index = loops_over(group, "i", term.operands[0].tensor.dims)
        group.columns = frozenset(name for axis in axes for name in symbols(index[axis]))
        group.heavy.append(term)
        group.reads[term] = (index,)
        self.add(group, term, tuple(dim for axis, dim in enumerate(index) if axis not in axes))
        self.adopt(group, term, index)
        self._merged(group)

    def _merged(self, group: KernelGroup) -> None:
        """Put a new group, whose terms nobody uses yet, into an earlier one that reads along the same loops one of the same values, or one
        that the same kernel made."""
        loops = tuple(group.loops.values())
        for term, index in group.whole:
            earlier = self.reading.get((self.home.get(term, term), index, loops))
            if earlier is not None and earlier is not group and self._merge(group, earlier):
                return
        for term, index in group.whole:
            self.reading[self.home.get(term, term), index, loops] = group

    def _merge(self, group: KernelGroup, into: KernelGroup) -> bool:
        columns = into.columns or group.columns
        if (group.columns and group.columns != columns) or group.size + into.size > self.limits.scalars:
            return False
        if columns != group.columns or columns != into.columns:
            before, into.columns = into.columns, columns
            if self._is_long(into):
                into.columns = before
                return False
            into.columns = before
        if self.waits(group.outside, into):
            return False
        into.kind, into.columns = (ROWS if into.heavy or group.heavy else POINTWISE), columns
        into.first, into.last = min(into.first, group.first), max(into.last, group.last)
        into.heavy += group.heavy
        into.at |= group.at
        into.part |= group.part
        into.reads |= group.reads
        into.outside |= group.outside
        into.size += group.size
        for term in group.at:
            self.home[term] = into
        assert self.found.groups.pop() is group
        for term, index in group.whole:
            self.reading[self.home.get(term, term), index, tuple(into.loops.values())] = into
        return True

    def _fold_reason(self, term: Term, group: KernelGroup) -> str | None:
        """Why the reduction `term` of a term of `group` is no fold of that kernel; None where it is one. The columns of a kernel without
        folds are set here."""
        axes = term.attribute("dimensions")
        index = group.at[term.operands[0]]
        if group.size + 1 > self.limits.scalars:
            return "the kernel is full"
        reduced = frozenset[str]().union(*(symbols(dim) for axis, dim in enumerate(index) if axis in axes)) & group.extents.keys()
        kept = frozenset[str]().union(*(symbols(dim) for axis, dim in enumerate(index) if axis not in axes)) & group.extents.keys()
        if reduced & kept:
            return "rows and columns mix in one loop"
        if group.kind == ROWS:
            if reduced != group.columns:
                return "it folds along other dims"
            return None
        group.columns = reduced
        if self._is_long(group):
            group.columns = frozenset()
            return "its few rows are too long for one program each"
        return None

    def store_operands(self, operands: Sequence[Term], across: Sequence[Sequence[Dim]]) -> None:
        """See that what is read in many tiles, namely along dims `across` that an operand has not, is in memory, or cheap."""
        for operand, dims in zip(operands, across, strict=True):
            rows = product(dims)
            once = isinstance(rows, int) and rows <= self.limits.tile
            most = self.limits.once_scalars if once else self.limits.product_scalars
            if operand in self.weight and not self.is_cheap(operand, most):
                while operand.op.name in MOVEMENTS - ALTERNATIVES and operand.operands[0] in self.weight:
                    operand = operand.operands[0]  # the movement is done by the product's loads
                cut = narrow_cut(operand, self.light, self.found.required, self.binding, self.limits, tiled=True)
                operand = cut[0] if cut and cut[0] in self.weight else operand
                if operand not in self.home:
                    self.found.required.add(operand)
                    self.pointwise(operand)

    def _product(self, term: Term) -> None:
        lhs, rhs = (operand.tensor.dims for operand in term.operands)
        m, n = _free(term, "lhs", len(lhs)), _free(term, "rhs", len(rhs))
        self.store_operands(term.operands, ([rhs[axis] for axis in n], [lhs[axis] for axis in m]))
        group = self.open(PRODUCT, term)
        group.heavy.append(term)
        axes = {
            role: tuple(term.attribute(f"{side}_{kind}") for side in ("lhs", "rhs")) for role, kind in (("b", "batch"), ("k", "contract"))
        }
        axes["m"], axes["n"] = (m, ()), ((), n)
        reads: tuple[list[Dim], list[Dim]] = [0] * len(lhs), [0] * len(rhs)
        result: list[Dim] = []
        for role in "bmnk":
            left, right = axes[role]
            index = loops_over(group, role, tuple(lhs[axis] for axis in left) or tuple(rhs[axis] for axis in right))
            for read, where in zip(reads, (left, right), strict=True):
                for axis, dim in zip(where, index, strict=False):
                    read[axis] = dim
            result += index if role != "k" else ()
        group.reads[term] = (tuple(reads[0]), tuple(reads[1]))
        self.add(group, term, tuple(result))

    def is_cheap(self, term: Term, most: int) -> bool:
        """True for a floating term that may be computed anew for each tile of a product: a movement, a cast, a scale, `most` in all."""
        done: set[Term] = set()
        stack, work, loads = [term], 0, 0
        elements = evaluate(term.tensor.elements, self.binding)
        while stack:
            top = stack.pop()
            if top in done:
                continue
            done.add(top)
            if top in self.home or top not in self.weight:
                loads += top.op is not CONSTANT and 2 * evaluate(top.tensor.elements, self.binding) >= elements
                continue
            if is_arithmetic(top):
                work += 0 if cost_of(top) == 0 or is_widening(top) else self.limits.product_scalars + 1 if is_costly(top) else 1
            if top.op.name in PICKED:
                return False  # each place would be read again for each tile
            if top.op.name in ALTERNATIVES:
                work += 2 * len(top.operands) - 2
            if work > most or len(done) > self.limits.inlined:
                return False
            stack += top.operands
        return loads <= 2


def _free(term: Term, side: str, rank: int) -> tuple[int, ...]:
    taken = (*term.attribute(f"{side}_batch"), *term.attribute(f"{side}_contract"))
    return tuple(axis for axis in range(rank) if axis not in taken)
