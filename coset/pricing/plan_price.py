"""What a program takes on a target whose ops share kernels: the sum over the kernels of its plan, each a launch and the larger of its work
and of its bytes. No sum over ops: what an op costs depends on which neighbours are in its kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, partial

from coset.extract.work import CONTRACTIONS
from coset.ir.op import Op
from coset.ir.program import Program
from coset.ir.term import AttributeItems, intern, make
from coset.ir.types import DTYPES, F32, Type
from coset.lowering.arranging.layouts import is_multiplied_last, turned
from coset.lowering.arranging.streams import Work
from coset.lowering.kernels.kernel import Buffer, Computed, Kernel, Library, Plan
from coset.lowering.planning.contraction import dot
from coset.lowering.planning.kinds import CONVOLUTION_GRADIENTS, is_convolution_gradient, is_product
from coset.lowering.planning.plan import MOST_WALKS, plan
from coset.lowering.triton.source import can_emit
from coset.lowering.triton.tiling import HOLDING
from coset.pricing.kinds import PRICES
from coset.pricing.layouts import ROUNDS, with_layouts
from coset.pricing.library import form_of, library_call_seconds, library_may_pay, library_of, library_pays, library_seconds
from coset.pricing.machine import Machine
from coset.pricing.products import least_tile_seconds, narrowed, product_seconds, rates_full, rating
from coset.pricing.traffic import buffer_bytes, copy_seconds, moving_seconds
from coset.rules.equation import NUMERICS_ORDER
from coset.targets.target import Target

E4M3 = DTYPES["f8e4m3fn"]


class PlanPrices:
    """Predicted seconds on `target`, which has a `fusion`, under one binding of the dim symbols; of plans in `walks` (see `plan`), whose
    kernels have these `numerics`. `eights`: programs may have 8-bit floats, of which products in wider floats may be. `lays`: orders of
    dims are chosen for each; else as if a library took everything as it lies, which is near to that and six times as fast. `whole`: a last
    round of tiles takes as long as any other; else its share of that."""

    def __init__(
        self,
        target: Target,
        binding: Mapping[str, int],
        walks: int = MOST_WALKS,
        *,
        numerics: str = NUMERICS_ORDER[0],
        eights: bool = False,
        lays: bool = True,
        whole: bool = True,
    ) -> None:
        self.machine = Machine(target, binding, numerics, whole=whole)
        self.target, self.fusion, self.sizes = target, self.machine.fusion, self.machine.sizes
        self.walks, self.numerics, self.eights = walks, numerics, eights
        bits = target.numbers.get("features_last")
        self._bits = int(bits.value) if bits is not None and lays else None  # of floats that are multiplied features last

    def seconds(self, program: Program) -> float:
        """Of one run of the program, as it would be lowered with a library's convolutions, and with the products of a library that pay by
        themselves: of one program more is tried.

        Raises:
            CosetError: as `plan`.
        """
        binding, libraries, exact = self.sizes.binding, partial(library_pays, self.machine), self.numerics == "exact"
        planned = plan(program, self.target, binding=binding, computes=can_emit, libraries=libraries, exact=exact, walks=self.walks)
        return self.plan_seconds(self.laid_out(planned))

    def laid_out(self, planned: Plan, *, rounds: int = ROUNDS) -> Plan:
        """The plan with features last where that is predicted to take less; `rounds` of `with_layouts`."""
        self._name_sizes(planned)
        return with_layouts(planned, self.kernel, self._gains_by_order, rounds=rounds)

    def plan_seconds(self, planned: Plan) -> float:
        """Of one run of a plan."""
        self._name_sizes(planned)
        return sum(self.kernel(planned, kernel) for kernel in planned.kernels)

    def _name_sizes(self, planned: Plan) -> None:
        """Give a number to each symbol that has none."""
        for buffer in planned.buffers.values():
            self.sizes.product(buffer.shape)

    def bytes(self, buffer: Buffer) -> int:
        """What a buffer takes of memory, rounded up as allocations are."""
        return buffer_bytes(self.machine, buffer)

    def kernel(self, planned: Plan, kernel: Kernel) -> float:
        """Seconds of one kernel of a plan."""
        if isinstance(kernel, Library):
            return library_seconds(self.machine, kernel.term) + sum(
                copy_seconds(self.machine, each) for each in self._turned(planned, kernel)
            )
        price = PRICES[type(kernel)]
        own, working = self.target.kernels[price.rating(self.fusion)], price.working(self.machine, planned, kernel)
        again = price.again(self.machine, planned, kernel)
        return own.launch.value + max(working, moving_seconds(self.machine, own, planned, kernel, again))

    def _turned(self, planned: Plan, kernel: Library) -> tuple[Buffer, ...]:
        """What a library lays out anew for its convolution, where the target says how it multiplies."""
        return tuple(planned.buffers[name] for name in turned(planned, kernel, self._bits)) if self._bits is not None else ()

    def _gains_by_order(self, kernel: Kernel) -> bool:
        """True for a convolution that is done with features last, whatever it is given."""
        return self._bits is not None and is_multiplied_last(kernel, self._bits)

    def work(self, planned: Plan, kernel: Kernel) -> Work:
        """The launch of one kernel of a plan, and its work. It needs the share of the machine in which the full rates would do as much."""
        launch = self.launch(kernel)
        share = PRICES[type(kernel)].share if isinstance(kernel, Computed) else None
        if share is not None:
            return Work(launch, self.kernel(planned, kernel) - launch, share(self.machine, kernel))
        seconds, least = (prices.kernel(planned, kernel) - launch for prices in (self, self._full))
        return Work(launch, max(0.0, seconds), min(1.0, max(0.0, least) / seconds) if seconds > 0.0 else 0.0)

    def launch(self, kernel: Kernel) -> float:
        """Seconds to launch a kernel."""
        if isinstance(kernel, Library):
            name = library_of(self.machine, kernel.term) or form_of(self.machine, kernel.term).kernel
        else:
            name = PRICES[type(kernel)].rating(self.fusion)
        return self.target.kernels[name].launch.value

    @cached_property
    def _full(self) -> PlanPrices:
        """Prices on the same machine if the least work had all of it."""
        kernels = {
            name: replace(kernel, rows=None, work=None, bandwidth=kernel.bandwidth and kernel.bandwidth.highest())
            for name, kernel in self.target.kernels.items()
        }
        return PlanPrices(replace(self.target, kernels=kernels), self.sizes.binding, numerics=self.numerics, whole=False)

    def least(self, op: Op, attributes: AttributeItems, result: Type, operands: tuple[Type, ...]) -> float:
        """Seconds that an op adds to any plan, whatever is beside it: nothing for what may share a kernel with another op or may be opened,
        the launch and the work for a matrix product, everything for what a library runs."""
        if op.name not in ("stablehlo.dot_general", "stablehlo.convolution", *CONVOLUTION_GRADIENTS):
            return 0.0
        parameters = [make("builtin.parameter", (), {"index": place, "type": type}) for place, type in enumerate(operands)]
        term = intern(op, tuple(parameters), attributes, (), result)
        if op.name == "stablehlo.convolution" or is_convolution_gradient(term):
            return library_seconds(self.machine, term)
        if not is_product(term) or dot(term) is not None:
            return 0.0
        sides = CONTRACTIONS[op.name](dict(attributes), result, operands, self.sizes)
        dtype = term.operands[0].tensor.dtype
        dtype = narrowed(self.machine, E4M3 if self.eights and dtype.name in HOLDING else dtype)
        ways = (False, True) if dtype is F32 and rates_full(self.machine) else (False,)  # f32 may be narrower numbers
        least = min(rating(self.machine, full).launch.value + product_seconds(self.machine, sides, dtype.name, full) for full in ways)
        tiled = least_tile_seconds(self.machine, sides, dtype)
        least = least if tiled is None else min(least, rating(self.machine, False).launch.value + tiled)
        return min(least, library_call_seconds(self.machine, term)) if library_may_pay(self.machine, term) else least
