"""Left sides with several constants, cut into pieces that are looked for one after the other.

egglog joins the tables of a pattern from the smallest to the largest, connected or not: a pattern with three constants starts with every
triple of constants in the e-graph (a GELU took 0.45 s an iteration on GPT-2, a sum of two multiples 3.2 s on DenseNet). So a subtree
with a variable in it becomes a relation of its own where it has a constant and what is beside or above it has one too, and what is above
joins with its few rows. So does a subtree without variables, such as the broadcast of a constant, which a sixth of the rules have (of the
time to find 1/5 on BERT). Pieces that look for the same are one, in whatever rules they stand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from coset.rules.parts import variables
from coset.rules.pattern import Application, applications


@dataclass(frozen=True)
class Piece:
    """A subtree: its root, the nodes that are in no piece inside it, and those pieces."""

    root: Application
    nodes: tuple[Application, ...]
    inner: tuple[Piece, ...]

    @property
    def all_nodes(self) -> tuple[Application, ...]:
        """Those of the pieces inside it too, in preorder."""
        return tuple(applications(self.root))

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of the subtree, by first occurrence."""
        return variables(self.root)

    def deepest_first(self) -> Iterator[Piece]:
        """The pieces inside it."""
        for piece in self.inner:
            yield from piece.deepest_first()
            yield piece


def cut(root: Application) -> Piece:
    """The pattern with pieces inside it, such that one constant is in each where that is possible."""
    return _piece(root)[0]


def _piece(root: Application) -> tuple[Piece, int]:
    """The subtree as a piece, and how many constants meet in it."""
    if not root.operands:
        return Piece(root, (root,), ()), 1
    below = [_piece(operand) for operand in root.operands if isinstance(operand, Application)]
    total = sum(count for _, count in below)
    apart = {piece.root.index for piece, _ in below if piece.root.operands and not piece.variables}
    for piece, count in sorted(below, key=lambda each: -each[1]):
        if total > 1 and count and piece.variables:
            apart.add(piece.root.index)
            total -= count
    nodes, inner = [root], []
    for piece, _ in below:
        if piece.root.index in apart:
            inner.append(piece)
        else:
            nodes += piece.nodes
            inner += piece.inner
    return Piece(root, tuple(nodes), tuple(inner)), total
