"""ONNX's Einsum as products of pairs from left to right, sums, diagonals and a transposition."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from coset.dialects.hub.terms import dot, numpy_broadcast, numpy_shape, reshape, splat, transpose
from coset.dialects.onnx.node import Built, Node, definition
from coset.ir.dims import Dim
from coset.ir.errors import require
from coset.ir.term import Term, make
from coset.ir.types import I64

_TERM = re.compile(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*")


@dataclass(frozen=True)
class Labelled:
    """A term with a label for each dim: a letter, or `.0`, `.1`, .. for a dim that an ellipsis stands for."""

    term: Term
    labels: tuple[str, ...]

    def without(self, labels: set[str]) -> Labelled:
        """The sum over the dims of `labels`."""
        axes = tuple(axis for axis, label in enumerate(self.labels) if label in labels)
        if not axes:
            return self
        summed = make("stablehlo.reduce", (self.term,), {"dimensions": axes, "combiner": "add"})
        return Labelled(summed, tuple(label for label in self.labels if label not in labels))


@definition("Einsum")
def einsum(node: Node) -> Built:
    """Repeated labels of one operand take its diagonal; labels that the result has not are summed over."""
    equation = "".join(str(node.attributes["equation"]).split())
    left, arrow, result = equation.partition("->")
    terms = left.split(",")
    valid = len(terms) == len(node.operands) and all(_TERM.fullmatch(term) for term in (*terms, result))
    require(valid, f"`{equation}` is no equation for {len(node.operands)} operands")
    count = _ellipsis_rank(terms, node.operands, equation)
    spread = [_labels(term, count if "." in term else 0) for term in terms]
    if arrow:
        wanted = _labels(result, count)
    else:
        letters = [label for labels in spread for label in labels if label[0] != "."]
        wanted = (*_labels("...", count), *sorted(label for label in letters if letters.count(label) == 1))
    fine = len(set(wanted)) == len(wanted) and set(wanted) <= {label for labels in spread for label in labels}
    require(fine, f"the result of `{equation}` has a label twice, or one that no operand has")
    operands = _fitted([_diagonals(Labelled(x, labels)) for x, labels in zip(node.operands, spread, strict=True)])
    total = operands[0]
    for position, operand in enumerate(operands[1:], start=1):
        later = set(wanted).union(*(other.labels for other in operands[position + 1 :]))
        total = _product(total, operand, later)
    total = total.without(set(total.labels) - set(wanted))
    return transpose(total.term, tuple(total.labels.index(label) for label in wanted))


def _ellipsis_rank(terms: Sequence[str], operands: Sequence[Term], equation: str) -> int:
    """How many dims `...` stands for: the most of any operand."""
    count = 0
    for term, operand in zip(terms, operands, strict=True):
        letters = len(term.replace("...", ""))
        fits = operand.tensor.rank >= letters if "." in term else operand.tensor.rank == letters
        require(fits, f"`{term}` of `{equation}` does not label the dims of {operand.type}")
        count = max(count, operand.tensor.rank - letters)
    require(all("." not in term or x.tensor.rank - len(term) + 3 == count for term, x in zip(terms, operands, strict=True)),
            f"`...` of `{equation}` stands for different numbers of dims")  # fmt: skip
    return count


def _labels(term: str, count: int) -> tuple[str, ...]:
    before, ellipsis, after = term.partition("...")
    return (*before, *(f".{i}" for i in range(count if ellipsis else 0)), *after)


# ---------------------------------------------------------------- one operand


def _diagonals(x: Labelled) -> Labelled:
    """Each label once: of two dims with one label the diagonal is taken."""
    while len(set(x.labels)) < len(x.labels):
        first, second = next((i, j) for j, label in enumerate(x.labels) for i in range(j) if x.labels[i] == label)
        others = [axis for axis in range(len(x.labels)) if axis not in (first, second)]
        square = transpose(x.term, (*others, first, second))
        x = Labelled(_diagonal(square), (*(x.labels[axis] for axis in others), x.labels[first]))
    return x


def _diagonal(x: Term) -> Term:
    """The diagonal of the last two dims, which are equal: where their size is n every (n + 1)-th element of them in a row; of a
    symbolic size the sum over what is 0 off the diagonal."""
    *batch, size, other = x.tensor.dims
    require(size == other, f"a label stands for dims of {size} and {other}")
    if not isinstance(size, int):
        rows, columns = (make("stablehlo.iota", (), {"shape": x.tensor.dims, "dtype": I64, "dimension": len(batch) + i}) for i in (0, 1))
        there = make("stablehlo.compare", (rows, columns), {"direction": "EQ"})
        masked = make("stablehlo.select", (there, x, splat(0, x.tensor.dtype, x.tensor.dims)))
        return make("stablehlo.reduce", (masked,), {"dimensions": (len(batch) + 1,), "combiner": "add"})
    row = reshape(x, (*batch, size * size))
    start, strides = (0,) * row.tensor.rank, (*(1,) * len(batch), size + 1)
    return make("stablehlo.slice", (row,), {"start": start, "limit": row.tensor.dims, "strides": strides})


def _fitted(operands: list[Labelled]) -> list[Labelled]:
    """Dims of 1 that another operand has larger under the same label are repeated."""
    sizes: dict[str, Dim] = {}
    for operand in operands:
        for label, dim in zip(operand.labels, operand.term.tensor.dims, strict=True):
            sizes[label] = numpy_shape((sizes.get(label, 1),), (dim,))[0]
    return [Labelled(numpy_broadcast(x.term, tuple(sizes[label] for label in x.labels)), x.labels) for x in operands]


# ---------------------------------------------------------------- two operands


def _product(a: Labelled, b: Labelled, kept: set[str]) -> Labelled:
    """The product, summed over the labels that neither the result nor a later operand has."""
    a, b = a.without(set(a.labels) - kept - set(b.labels)), b.without(set(b.labels) - kept - set(a.labels))
    shared = [label for label in a.labels if label in b.labels]
    batch = [label for label in shared if label in kept]
    summed = [label for label in shared if label not in kept]
    product = dot(
        a.term, b.term,
        lhs_batch=tuple(map(a.labels.index, batch)), rhs_batch=tuple(map(b.labels.index, batch)),
        lhs_contract=tuple(map(a.labels.index, summed)), rhs_contract=tuple(map(b.labels.index, summed)),
    )  # fmt: skip
    free = [label for x in (a, b) for label in x.labels if label not in shared]
    return Labelled(product, (*batch, *free))
