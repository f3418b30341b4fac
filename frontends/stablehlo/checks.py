"""Assertions about sizes, which JAX writes for each constraint of an exported program: kept with all that they are computed from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from coset.dialects.hub.mlir_origin import KeptOperation
from coset.frontends.stablehlo.module import mlir
from coset.frontends.stablehlo.opaque import opaque_payload

Value = Any  # torch_mlir.ir.Value


class SizeChecks:
    """The assertions of a program that is being read, as operations over its inputs.

    `callers` has, for arguments of functions that are being put in, the values that they are called with.
    """

    def __init__(self, inputs: Sequence[Value]) -> None:
        self.operations: list[KeptOperation] = []
        self.callers: dict[Value, Value] = {}
        self._inputs: Mapping[Value, int] = {value: ~index for index, value in enumerate(inputs)}
        self._written: dict[KeptOperation, int] = {}  # the number of the first result
        self._count = 0

    def keep(self, op: Any) -> bool:
        """Keep the assertion `op`; False if it stands inside of control flow, or is computed by some: then nothing is kept."""
        before = len(self.operations)
        numbers: dict[Value, int] = {}
        waiting = [op]
        while waiting:
            top = waiting[-1]
            operands = [self._resolved(value) for value in top.operands]
            missing = [value.owner for value in operands if value not in numbers and value not in self._inputs]
            if any(isinstance(owner, mlir().Block) for owner in missing) or list(top.regions):
                self._forget(before)
                return False
            if missing:
                waiting += [getattr(owner, "operation", owner) for owner in missing]
                continue
            waiting.pop()
            if not top.results or top.results[0] not in numbers:
                self._write(top, [self._inputs.get(value, numbers.get(value, 0)) for value in operands], numbers)
        return True

    def _resolved(self, value: Value) -> Value:
        while value in self.callers:
            value = self.callers[value]
        return value

    def _write(self, op: Any, operands: Sequence[int], numbers: dict[Value, int]) -> None:
        kept = KeptOperation(op.name, tuple(operands), opaque_payload(op, ()), tuple(str(result.type) for result in op.results))
        if kept not in self._written:
            self._written[kept] = self._count
            self._count += len(kept.results)
            self.operations.append(kept)
        for place, result in enumerate(op.results):
            numbers[result] = self._written[kept] + place

    def _forget(self, count: int) -> None:
        """Drop what was kept for an assertion that cannot be."""
        for kept in self.operations[count:]:
            self._count -= len(kept.results)
            del self._written[kept]
        del self.operations[count:]
