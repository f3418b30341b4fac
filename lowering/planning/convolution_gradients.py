"""Convolutions that are gradients of others, as calls of `kernel.filter_gradient` and `kernel.transposed_convolution`: in whatever layout
they were written, for their transposes and turns say it.
"""

from __future__ import annotations

from dataclasses import dataclass

from coset.dialects.hub.terms import transpose
from coset.ir.term import Term, make
from coset.lowering.planning.kinds import is_convolution_gradient


def gradient_of_convolution(term: Term) -> Term | None:
    """The convolution as such a call, or None where it is none that a library computes better as one."""
    if term.op.name != "stablehlo.convolution":
        return None
    return _filter_gradient(term) or _transposed_convolution(term)


def _filter_gradient(term: Term) -> Term | None:
    """Where the sum is over what was the first axis of both operands: over the batch of a convolution."""
    spatial = term.tensor.rank - 2
    plain = term.attribute("feature_group_count") == 1 and set(term.attribute("lhs_dilation")) == {1}
    if not plain or not all(_is_over_first(operand) for operand in term.operands):
        return None
    swap = (1, 0, *range(2, 2 + spatial))
    x, g = (_moved(_Moved.of(operand).transposed(swap)) for operand in term.operands)
    attributes = {"strides": term.attribute("rhs_dilation"), "padding": term.attribute("padding"), "dilations": term.attribute("strides"),
                  "group": term.attribute("batch_group_count")}  # fmt: skip
    found = make("kernel.filter_gradient", (x, g), attributes)
    return transpose(found, swap) if is_convolution_gradient(found) else None


def _is_over_first(operand: Term) -> bool:
    return operand.op.name == "stablehlo.transpose" and bool(operand.attribute("permutation")[1] == 0)


def _transposed_convolution(term: Term) -> Term | None:
    """Where zeros stand between the elements of x, or the filters came turned."""
    x, w = term.operands
    space = tuple(range(2, w.tensor.rank))
    plain = all(term.attribute(f"{one}_group_count") == 1 for one in ("feature", "batch")) and set(term.attribute("strides")) == {1}
    came = _Moved.of(w)
    filters = came.transposed((1, 0, *space)).reversed(space)
    spread = set(term.attribute("lhs_dilation")) != {1}
    if not plain or not (spread or (came.turned and not filters.turned)):
        return None
    attributes = {"strides": term.attribute("lhs_dilation"), "padding": term.attribute("padding"),
                  "dilations": term.attribute("rhs_dilation"), "group": 1}  # fmt: skip
    found = make("kernel.transposed_convolution", (x, _moved(filters)), attributes)
    return found if is_convolution_gradient(found) else None


# ---------------------------------------------------------------- transposes and turns of one term


@dataclass(frozen=True)
class _Moved:
    """`base` with its axes in the order `permutation`, turned round along `turned` of them."""

    base: Term
    permutation: tuple[int, ...]
    turned: frozenset[int]

    @staticmethod
    def of(term: Term) -> _Moved:
        """What `term` is made of by transposes and turns."""
        steps = []
        while term.op.name in ("stablehlo.transpose", "stablehlo.reverse"):
            steps.append(term)
            term = term.operands[0]
        found = _Moved(term, tuple(range(term.tensor.rank)), frozenset())
        for step in reversed(steps):
            turned = step.op.name == "stablehlo.reverse"
            found = found.reversed(step.attribute("dimensions")) if turned else found.transposed(step.attribute("permutation"))
        return found

    def transposed(self, permutation: tuple[int, ...]) -> _Moved:
        """With its axes in another order."""
        order = tuple(self.permutation[axis] for axis in permutation)
        return _Moved(self.base, order, frozenset(new for new, old in enumerate(permutation) if old in self.turned))

    def reversed(self, axes: tuple[int, ...]) -> _Moved:
        """Turned round along `axes`; one of 1 looks the same."""
        several = {axis for axis in axes if self.base.tensor.dims[self.permutation[axis]] != 1}
        return _Moved(self.base, self.permutation, self.turned ^ several)


def _moved(what: _Moved) -> Term:
    term = transpose(what.base, what.permutation)
    return make("stablehlo.reverse", (term,), {"dimensions": tuple(sorted(what.turned))}) if what.turned else term
