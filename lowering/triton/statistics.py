"""What a softmax is made with, for each row, as Triton: the largest score, one over the sum of the exponentials, and sums of the weights
times values that are made beside the scores. They are found in one pass; what is summed so far is scaled anew where a larger score comes
(Milakov and Gimelshein, arXiv:1805.02867)."""

from __future__ import annotations

from dataclasses import replace

from coset.lowering.kernels.kernel import Plan, Statistics
from coset.lowering.triton.chain import ROW, ChainTiles, narrowed, with_choice
from coset.lowering.triton.launch import EmitOptions, EmittedKernel
from coset.lowering.triton.scalars import TYPES
from coset.lowering.triton.scopes import Value


def emit_statistics(kernel: Statistics, plan: Plan, options: EmitOptions, comment: list[str]) -> EmittedKernel:
    """One Triton function."""
    kernel = replace(kernel, dots=narrowed(kernel.dots, kernel.accumulator))
    return _Writer(kernel, plan, with_choice(_Writer, kernel, plan, options), comment).emission()


class _Writer(ChainTiles):
    """The function of a `Statistics`."""

    def __init__(self, kernel: Statistics, plan: Plan, options: EmitOptions, comment: list[str]) -> None:
        super().__init__(kernel, plan, options, comment)
        self.kernel = kernel

    def emission(self) -> EmittedKernel:
        """The function and its launch."""
        lines, inner, accumulator = self.outer.lines, self.inner.lines, TYPES[self.kernel.accumulator.name]
        self.place()
        self.dots()
        top, total, less = (self.body.name(name) for name in ("top", "total", "less"))
        slopes = [self.body.name(slope.name) for slope in self.kernel.slopes]
        lines.append(f'{top} = tl.full([BLOCK_M, 1], float("-inf"), {accumulator})')
        lines += [f"{name} = tl.full([BLOCK_M, 1], 0.0, {accumulator})" for name in (total, *slopes)]
        scores = self.made(self.kernel.score, "scores", 'float("-inf")')
        reached = [self.made(slope.value, "reached", "0.0") for slope in self.kernel.slopes]
        new, base, powers = (self.body.name(name) for name in ("new", "base", "powers"))
        inner += [
            f"{new} = tl.maximum({top}, tl.max({scores}, 1, keep_dims=True))",
            f'{base} = tl.where({new} == float("-inf"), 0.0, {new})',
            f"{powers} = tl.exp({scores} - {base})",
            f"{less} = tl.exp({top} - {base})",
            f"{total} = {total} * {less} + tl.sum({powers}, 1, keep_dims=True)",
            f"{top} = {new}",
        ]
        for name, each in zip(slopes, reached, strict=True):
            inner.append(f"{name} = {name} * {less} + tl.sum({powers} * {each}, 1, keep_dims=True)")
        result = self.space({"row": self.row})
        lines.append(self.loop(result))
        lines += [f"    {line}" for line in inner]
        if self.kernel.safe:
            lines.append(f"{total} = tl.where({total} == 0.0, 1.0, {total})")
            lines.append(f'{top} = tl.where({top} == float("-inf"), 0.0, {top})')
        lines.append(f"{total} = 1.0 / {total}")
        lines += [f"{name} = {name} * {total}" for name in slopes]
        result.results |= {"top": Value(top, ROW), "share": Value(total, ROW)}
        result.results |= {slope.name: Value(name, ROW) for slope, name in zip(self.kernel.slopes, slopes, strict=True)}
        for store in self.kernel.stores:
            result.store(store, ROW)
        return self.emission_of(lines)
