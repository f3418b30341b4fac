"""The terms of one kernel while it is made, and what the walk that makes groups finds."""

from __future__ import annotations

from collections.abc import Container, Sequence, Set
from dataclasses import dataclass, field

from coset.ir.dims import Dim, Poly, Shape, alone, symbols
from coset.ir.term import Term
from coset.ir.types import TensorType, TupleType
from coset.lowering.kernels.indexing import Index
from coset.lowering.kernels.kernel import Loop

ROWS, SCAN, PRODUCT, ATTENTION, POINTWISE, LIBRARY = "rows", "scan", "product", "attention", "pointwise", "library"
SCATTER, GROUPED, SORT = "scatter", "grouped", "sort"
RECURRENCE = "recurrence"
STATISTICS, CHAIN = "statistics", "chain"  # of attention's gradients
SPATIAL = ("stablehlo.convolution", "stablehlo.reduce_window", "kernel.transposed_convolution", "kernel.filter_gradient")
TILED = (PRODUCT, ATTENTION, GROUPED, STATISTICS, CHAIN)  # whose operands are read again for each tile


@dataclass(eq=False)
class KernelGroup:
    """The terms of one kernel. `at` has the index of each over `loops`; `columns` are the loops that folds run along."""

    number: int
    kind: str
    first: int  # positions of the first and the last term
    last: int
    loops: dict[str, Loop] = field(default_factory=dict)  # role and place -> loop
    columns: frozenset[str] = frozenset()  # names of loops
    heavy: list[Term] = field(default_factory=list)  # folds in order, or the products, or the library's term
    at: dict[Term, Index] = field(default_factory=dict)
    part: dict[Term, int] = field(default_factory=dict)  # the number of the group that a term came with, where groups were merged
    reads: dict[Term, tuple[Index, ...]] = field(default_factory=dict)  # where folds and products read their operands
    outside: dict[Term, None] = field(default_factory=dict)  # operands that are not its own
    whole: list[tuple[Term, Index]] = field(default_factory=list)  # values that it reads along all of its loops
    form: str = ""  # of a scatter
    size: int = 0

    @property
    def extents(self) -> dict[str, Dim]:
        """Loop symbol -> extent."""
        return {loop.name: loop.extent for loop in self.loops.values()}

    def is_row(self, index: Index) -> bool:
        """True for an index that does not move along the columns."""
        return not any(symbols(dim) & self.columns for dim in index)


@dataclass
class Grouping:
    """What the walk has found: the groups, each term's group, and why a term did not join the group of an operand."""

    order: list[Term]
    position: dict[Term, int]
    light: Set[Term]
    required: set[Term]
    given: Container[Term]  # what a library does
    brings: dict[str, Term] = field(default_factory=dict)  # dim symbol -> the library's result whose shape it is first in
    groups: list[KernelGroup] = field(default_factory=list)
    home: dict[Term, KernelGroup] = field(default_factory=dict)
    reasons: dict[tuple[int, Term], str] = field(default_factory=dict)

    def needs(self, term: Term) -> tuple[Term, ...]:
        """The terms that must be computed before `term`: its operands (`read_whole` by a library), and what brings the dim symbols
        that none of them has."""
        operands = read_whole(term) if term in self.given else term.operands
        if not self.brings:
            return operands
        own = symbols_in(term) & self.brings.keys()
        if not own:
            return operands
        given = frozenset[str]().union(*map(symbols_in, operands))
        return (*operands, *(self.brings[name] for name in sorted(own - given) if self.brings[name] is not term))


def read_whole(term: Term) -> tuple[Term, ...]:
    """What a library that computes `term` reads: its operands, in the shape that they have in memory, since elements lie in the same order
    in any other; of convolutions and pools, whose operands may lie in another order, as they are."""
    return term.operands if term.op.name in SPATIAL else tuple(map(_unshaped, term.operands))


def _unshaped(term: Term) -> Term:
    while term.op.name == "stablehlo.reshape":
        (term,) = term.operands
    return term


def symbols_in(term: Term) -> frozenset[str]:
    """The dim symbols of a term's type and attributes."""
    items = term.type.items if isinstance(term.type, TupleType) else (term.type,)
    found = [symbols(dim) for item in items if isinstance(item, TensorType) for dim in item.dims]
    values = [value if isinstance(value, tuple) else (value,) for _, value in term.attributes]
    return frozenset[str]().union(*found, *(symbols(dim) for value in values for dim in value if isinstance(dim, Poly)))


def introduced(order: Sequence[Term], inputs: Sequence[Term], light: Set[Term]) -> dict[str, Term]:
    """The dim symbols that no input has, with the first tensor whose shape spells each alone."""
    known = {name for term in inputs for name in symbols_in(term)}
    found: dict[str, Term] = {}
    for term in order:
        if isinstance(term.type, TensorType) and term not in light:
            for dim in term.tensor.dims:
                name = alone(dim)
                if name is not None and name not in known:
                    found.setdefault(name, term)
    return found


def loops_over(group: KernelGroup, role: str, shape: Shape) -> Index:
    """New loops of `group` over `shape`, and the index that they are; a dim of size 1 has none."""
    index: list[Dim] = []
    place = 0
    for dim in shape:
        if dim == 1:
            index.append(0)
            continue
        loop = group.loops[f"{role}{place}"] = Loop(f"loop:{role}{place}", dim)
        index.append(loop.index)
        place += 1
    return tuple(index)


def along_columns(term: Term, index: Index, group: KernelGroup) -> Index | None:
    """Where a row's value stands when it is spread along the kernel's columns; None where the new dims are not the columns in order."""
    axes, shape = term.attribute("broadcast_dimensions"), term.tensor.dims
    given = {axis: (dim, i) for axis, dim, i in zip(axes, term.operands[0].tensor.dims, index, strict=True)}
    columns = [loop for loop in group.loops.values() if loop.name in group.columns]
    result: list[Dim] = []
    for axis, dim in enumerate(shape):
        if axis in given and given[axis][0] == dim:
            result.append(given[axis][1])
        elif dim == 1:
            result.append(0)
        elif columns and columns[0].extent == dim:
            result.append(columns.pop(0).index)
        else:
            return None
    return None if columns else tuple(result)
