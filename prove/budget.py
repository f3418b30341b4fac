"""How much a checker computes: operations, counted before each op is computed, with those of functions and loops. No clock is looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from coset.ir.meter import METER
from coset.ir.program import tensors_in
from coset.ir.term import Term
from coset.ir.types import TensorType

OPERATIONS = 1 << 33  # of one certificate: some ten seconds
EACH = 1 << 14  # of an op, however small: what starting it costs
SORTED = 32  # for each element that is sorted
SORTS = frozenset({"stablehlo.sort"})
PRODUCT, TOGETHER = "stablehlo.dot_general", 16  # multiplications of a library for matrices in the time of one


class TooMuch(Exception):
    """More would be computed than is allowed; the message says what."""


@dataclass
class Budget:
    """What may be spent; no array has more than `elements` elements."""

    elements: int
    operations: int = OPERATIONS
    spent: int = field(default=0)

    def spend(self, term: Term | None, operands: Sequence[Any]) -> None:
        """Count an op that is about to be computed, or (None) the call of a function.

        Raises:
            TooMuch: it is too large, or the operations are used up.
        """
        given = sum(int(np.size(each)) for each in _arrays(operands))
        made = 0 if term is None else _elements(term, given)
        if made > self.elements:
            raise TooMuch(f"it is larger than all constants of the programs: more than {self.elements} elements")
        self.spent += EACH + given + made + (0 if term is None else _work(term, operands, made))
        if self.spent > self.operations:
            raise TooMuch(f"more than {self.operations} operations")

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count what functions inside of ops compute too."""
        token = METER.set(self.spend)
        try:
            yield
        finally:
            METER.reset(token)


def _arrays(values: Sequence[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, tuple):
            yield from value
        elif value is not None:
            yield value


def _elements(term: Term, given: int) -> int:
    """Elements of the result; where its type has symbols at least those of the operands."""
    if term.op.name.startswith("stablehlo.dynamic_") and any(type.static is None for type in tensors_in(term.type)):
        raise TooMuch(f"more than is known: the size of `{term.op.name}` is computed")
    return max(sum(prod(type.static) if type.static is not None else given for type in tensors_in(term.type)), 0)


def _work(term: Term, operands: Sequence[Any], made: int) -> int:
    """Operations of the op on operands of these sizes: its own count where it has one."""
    if term.op.name in SORTS:
        return SORTED * made
    flops: Callable[..., Any] | None = term.op.flops
    if flops is None or term.op.meaning is None:
        return made
    types = [
        TensorType(operand.type.dtype, np.shape(value)) if isinstance(operand.type, TensorType) else operand.type
        for operand, value in zip(term.operands, operands, strict=True)
    ]
    found = flops(term.type, types, dict(term.attributes))
    found = found // TOGETHER if isinstance(found, int) and term.op.name == PRODUCT and term.tensor.dtype.kind == "float" else found
    return max(found, 0) if isinstance(found, int) else made
