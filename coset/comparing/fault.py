"""Which kernel of a package that differs from its model is at fault: the first one that makes something else of what it reads than its ops
mean. Each is judged by what those before it stored, so that their roundings, which may grow, are not its fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, Protocol

import numpy as np

from coset.comparing.check import EXTREME
from coset.comparing.difference import Difference, difference
from coset.comparing.feeds import Case, Feed
from coset.comparing.infinities import REORDERED, Exact
from coset.comparing.reference import noise_of, nudges, values_of
from coset.ir.dims import evaluate
from coset.ir.program import Program
from coset.ir.stages import passed
from coset.ir.term import Term, input_term, rebuild, topological
from coset.lowering.kernels.kernel import HeldTerm, Kernel, Library, Plan, extents_of, reads, stores_of, writes
from coset.lowering.kernels.needs import Span, region_of

BATCH_BYTES = 256 << 20  # of values that are compared in one run


class Runs(Protocol):
    """A package that runs on NumPy arrays by name."""

    def run(self, feed: Feed) -> Feed:
        """The outputs for the inputs."""


Made = Callable[[Program, Plan], AbstractContextManager[Runs]]  # a package of a plan that runs


@dataclass(frozen=True)
class Fault:
    """A kernel that stores something else than its ops mean: the largest difference that one of its buffers shows. `function`: its Triton
    function alone is at fault; the torch function of the same kernel is right."""

    kernel: str
    ops: tuple[str, ...]
    buffer: str
    difference: Difference
    function: bool = False

    def __str__(self) -> str:
        """The kernel, for a message."""
        off = self.difference.problem or f"{self.difference.max_abs:.3g} off, allowed {self.difference.tolerance:.3g}"
        which = "; as a torch function it is right, so it is its Triton function" if self.function else ""
        ops = ", ".join(dict.fromkeys(self.ops))
        where = f"it stores `{self.buffer}` {off}, on {self.difference.case} inputs"
        return f"kernel `{self.kernel}` ({ops}) is the first at fault: {where}{which}"

    def summary(self) -> dict[str, Any]:
        """What `--json` prints under `fault`."""
        found = self.difference
        return {
            "kernel": self.kernel, "ops": list(self.ops), "buffer": self.buffer, "inputs": found.case, "max_abs": found.max_abs,
            "tolerance": found.tolerance, "problem": found.problem, "function": self.function,
        }  # fmt: skip


def first_fault(
    program: Program, plan: Plan, case: Case, binding: Mapping[str, int], made: Made, *, amplified: float = 1.0, plain: Made | None = None
) -> Fault | None:
    """The first kernel of the plan of `program`, in launch order, that stores something else than the evaluator makes of what it reads, on
    the inputs of `case`; None where all are right: then the program itself means something else than the one that it was made of.

    `binding`: numbers of the dims. `made` gives the package in which kernels are at fault; `plain` the one of the same kernels as torch
    functions, where that is another. `amplified`: as `against_reference`.
    """
    for kernels in _batches(plan, binding):
        names = dict.fromkeys(name for kernel in kernels for name in (*reads(kernel), *writes(kernel)))
        held = [each for each in plan.held if each.buffer in names]
        wholes = {
            each.buffer: each.term for each in held if each.low == (0,) * len(each.low) and each.high == plan.buffers[each.buffer].shape
        }
        asked = replace(program, outputs=tuple(wholes.items()), effects=None)
        shown = shows(plan, list(wholes))
        with made(asked, shown) as package:
            found = package.run(case.feed)
        compared = _Compared(program, plan, case, found, held, amplified)
        fault = next((fault for kernel in kernels if (fault := compared.fault(kernel)) is not None), None)
        if fault is not None and plain is not None:
            with plain(asked, shown) as package:
                beside = replace(compared, found=package.run(case.feed))
            kernel = next(kernel for kernel in kernels if kernel.name == fault.kernel)
            return replace(fault, function=beside.fault(kernel) is None)
        if fault is not None:
            return fault
    return None


def shows(plan: Plan, names: Sequence[str]) -> Plan:
    """The plan with the same kernels and the buffers of these names as its outputs, each in memory of its own."""
    buffers = {name: replace(buffer, role="output") if name in names else buffer for name, buffer in plan.buffers.items()}
    outputs = tuple((name, name) for name in names)
    return passed("showing values", replace(plan, buffers=buffers, outputs=outputs, offsets={}, arena=0, over={}, streams=None))


def _batches(plan: Plan, binding: Mapping[str, int]) -> Iterator[list[Kernel]]:
    """The kernels in launch order, a few at a time: what a batch reads and stores is held at once."""
    known = {each.buffer for each in plan.held}
    batch: list[Kernel] = []
    names: set[str] = set()
    for kernel in plan.kernels:
        more = {*reads(kernel), *writes(kernel)} & known
        if batch and sum(_bytes(plan, name, binding) for name in names | more) > BATCH_BYTES:
            yield batch
            batch, names = [], set()
        if any(name in known for name in writes(kernel)):
            batch.append(kernel)
            names |= more
    if batch:
        yield batch


def _bytes(plan: Plan, name: str, binding: Mapping[str, int]) -> int:
    buffer = plan.buffers[name]
    missing = dict.fromkeys(plan.symbols.keys() - binding.keys(), 1)  # sizes that a library brings
    return int(prod(evaluate(dim, {**missing, **binding}) for dim in buffer.shape) * buffer.dtype.bytes)


Box = tuple[slice, ...]


@dataclass(frozen=True)
class _Compared:
    """What kernels stored on one case, `found` by buffer, beside what the evaluator makes of what they read of it."""

    program: Program
    plan: Plan
    case: Case
    found: Feed
    held: Sequence[HeldTerm]
    amplified: float

    @cached_property
    def binding(self) -> dict[str, int]:
        """The numbers of the dims."""
        arrays = {**{buffer: self.case.feed[name] for name, buffer in self.plan.inputs}, **self.found}
        return {name: arrays[buffer].shape[axis] for name, (buffer, axis) in self.plan.symbols.items() if buffer in arrays}

    @cached_property
    def holders(self) -> dict[Term, HeldTerm]:
        """Where each term is; of several buffers that hold it, in the first."""
        found: dict[Term, HeldTerm] = {}
        for each in self.held:
            if each.buffer in self.found:
                found.setdefault(each.term, each)
        return found

    def fault(self, kernel: Kernel) -> Fault | None:
        """The fault of one kernel: of what it stores the one that is furthest off."""
        stored = list(self._stored(kernel))
        values = self._expected([held for held, _ in stored])
        differences = [self._difference(held, box, *values[held.term]) for held, box in stored]
        wrong = [each for each in differences if not each.ok]
        worst = max(wrong, key=lambda each: (bool(each.problem), each.max_abs), default=None)
        return None if worst is None else Fault(kernel.name, kernel.terms, worst.output, worst)

    def _stored(self, kernel: Kernel) -> Iterator[tuple[HeldTerm, Box]]:
        """What a kernel stores: the smallest held term that has it, and the box of the buffer."""
        for name in writes(kernel):
            mine = [(each, self._box(each)) for each in self.held if each.buffer == name and name in self.found]
            for box in self._boxes(kernel, name) if mine else ():
                around = [(prod(end.stop - end.start for end in own), place) for place, (_, own) in enumerate(mine) if _contains(own, box)]
                yield mine[min(around)[1]][0], box

    def _box(self, held: HeldTerm) -> Box:
        return tuple(
            slice(evaluate(low, self.binding), evaluate(high, self.binding)) for low, high in zip(held.low, held.high, strict=True)
        )

    def _boxes(self, kernel: Kernel, name: str) -> Iterator[Box]:
        """The boxes of a buffer that a kernel stores: others may store the rest."""
        shape = self.found[name].shape
        if isinstance(kernel, Library):
            yield tuple(slice(0, size) for size in shape)
            return
        extents = extents_of(kernel)
        for store in stores_of(kernel):
            if store.buffer == name:
                spans = zip(region_of(store.index, extents), shape, strict=True)
                yield tuple(slice(0, size) if span is None else self._ends(span, size) for span, size in spans)

    def _ends(self, span: Span, size: int) -> slice:
        low, high = (evaluate(end, self.binding) for end in span)
        return slice(max(0, low), min(size, high + 1))

    # ------------------------------------------------------------ values

    def _expected(self, wanted: Sequence[HeldTerm]) -> dict[Term, tuple[Any, Any]]:
        """The values of terms, made of what was stored below them, and how far one rounding error on that moves each."""
        own = {held.term for held in wanted}
        below = _Below(self.holders, own)
        feed = dict(self.case.feed)
        done: dict[Term, Term] = {}
        inputs: list[Term] = []
        for term in topological(own, known=below):
            for operand in term.operands:
                if operand in below and operand not in done:
                    held = self.holders[operand]
                    name = f"stored:{len(inputs)}"
                    inputs.append(input_term(name, operand.type))
                    feed[name], done[operand] = self._value(held), inputs[-1]
            done[term] = rebuild(term, [done[operand] for operand in term.operands])
        outputs = {f"value:{place}": term for place, term in enumerate(own)}
        roots = tuple((name, done[term]) for name, term in outputs.items())
        program = replace(self.program, inputs=(*self.program.inputs, *inputs), outputs=roots, effects=None)
        values = values_of(program, feed)
        noise = noise_of(program, nudges(program), feed, values)
        return {term: (values[name], noise[name] * self.amplified) for name, term in outputs.items()}

    def _value(self, held: HeldTerm) -> Any:
        """A term's value as it was stored."""
        part = self.found[held.buffer][self._box(held)].transpose(held.axes)
        return part.reshape([evaluate(dim, self.binding) for dim in held.term.tensor.dims])

    def _difference(self, held: HeldTerm, box: Box, expected: Any, noise: Any) -> Difference:
        """How far a box of a buffer is off; `expected` is the value of the whole term."""
        got, around = self.found[held.buffer], self._box(held)
        shape = [around[axis].stop - around[axis].start for axis in held.axes]
        if expected.size == prod(shape):
            expected = expected.reshape(shape).transpose(np.argsort(held.axes) if held.axes else ())
            inner = tuple(slice(own.start - outer.start, own.stop - outer.start) for own, outer in zip(box, around, strict=True))
            expected, got = expected[inner], got[box]
        return difference(
            self.case.name, held.buffer, np.asarray(expected), np.asarray(got), noise, exact=False, exceptions=REORDERED,
            beyond=UNSAID if self.case.name in EXTREME else None,
        )  # fmt: skip


UNSAID: Exact = lambda: None  # noqa: E731 - what a buffer would be without overflow is not known


@dataclass(frozen=True)
class _Below:
    """The terms that are held, without those that are asked for."""

    holders: Mapping[Term, HeldTerm]
    asked: Set[Term]

    def __contains__(self, term: object) -> bool:
        return term in self.holders and term not in self.asked


def _contains(outer: Box, inner: Box) -> bool:
    return all(a.start <= b.start and b.stop <= a.stop for a, b in zip(outer, inner, strict=True))
