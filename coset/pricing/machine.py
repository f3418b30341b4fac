"""A target as the prices of its kernels read it: rates and numbers, what its kernels may do, and the sizes of dims under one binding."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from coset.extract.cost import Pricer
from coset.extract.work import WorkSizes
from coset.ir.errors import CosetError
from coset.ir.term import Term
from coset.ir.types import TensorType, Type
from coset.lowering.kernels.kernel import Loop
from coset.pricing.kernel_options import options_for
from coset.targets.target import Target


class Machine:
    """`target`, which has a `fusion`, with kernels of these `numerics`. `whole`: a last round of tiles takes as long as any other; else its
    share of that."""

    def __init__(self, target: Target, binding: Mapping[str, int], numerics: str, *, whole: bool) -> None:
        assert target.fusion is not None, f"{target.name} has no kernels that ops share"
        self.target, self.fusion, self.whole = target, target.fusion, whole
        self.options = options_for(numerics, target)
        self.sizes = WorkSizes(binding)
        self.pricer = Pricer(target, self.sizes.binding)

    def number(self, name: str) -> float:
        """A number of the target.

        Raises:
            CosetError: its file has none of this name.
        """
        found = self.target.numbers.get(name)
        if found is None:
            why = f"the target `{self.target.name}` has no number `{name}`, by which some of its kernels are priced"
            raise CosetError(why, help="give it in [numbers], as targets/bases/gpu.toml does")
        return found.value

    def count(self, loops: Iterable[Loop]) -> float:
        """How often the body of these loops is done."""
        return math.prod((self.sizes.number(loop.extent) for loop in loops), start=1.0)

    def touched(self, term: Term) -> float:
        """The bytes of an op's operands and its result."""
        return sum(self.sizes.bytes(type) for type in (term.type, *(each.type for each in term.operands)) if isinstance(type, TensorType))

    def passing(self, type: Type) -> float:
        """Seconds of a kernel that reads and writes a value of this type."""
        own = self.target.kernels[self.fusion.pointwise]
        return own.launch.value + own.moving(2 * self.sizes.bytes(type))
