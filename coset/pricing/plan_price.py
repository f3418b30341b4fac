"""What a program takes on a target whose ops share kernels: the sum over the kernels of its plan, each a launch and the larger of its work
and of its bytes. No sum over ops: what an op costs depends on which neighbours are in its kernel."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cached_property
from typing import Any

from coset.comparing.fold import computed, fallback_of_constants, fold
from coset.extract.cost import Pricer
from coset.extract.work import CONTRACTIONS, Sizes
from coset.extract.work import Product as Sides
from coset.ir import dims
from coset.ir.dims import Dim
from coset.ir.errors import CosetError
from coset.ir.op import Op
from coset.ir.program import Program, tensors_in
from coset.ir.term import INPUT, AttributeItems, Term, intern, make, rebuild, topological
from coset.ir.types import DTYPES, F16, F32, I64, DType, TensorType, TokenType, Type
from coset.lowering.arranging.layouts import is_multiplied_last, turned
from coset.lowering.arranging.streams import Work
from coset.lowering.kernels.kernel import (
    Apply,
    Attention,
    Buffer,
    Chain,
    Computed,
    Fold,
    Grouped,
    Kernel,
    Library,
    Load,
    Loop,
    Plan,
    Pointwise,
    Product,
    Recurrence,
    Result,
    Rows,
    Scalar,
    Scan,
    Scatter,
    Sort,
    Statistics,
    loops_of,
    scalars,
    values_of,
)
from coset.lowering.kernels.memory import allocated
from coset.lowering.planning.attention import KEPT as ATTENDED
from coset.lowering.planning.contraction import dot
from coset.lowering.planning.kinds import CONVOLUTION_GRADIENTS, COSTLY, WHOLE_ROW, is_convolution_gradient, is_light, is_product, wide
from coset.lowering.planning.library_attention import BY_ROWS, CALLS, may_attend
from coset.lowering.planning.library_products import BIASED, is_half, is_made_behind, may_be_librarys, product_in
from coset.lowering.planning.plan import MOST_WALKS, plan
from coset.lowering.planning.scattering import LOOP
from coset.lowering.planning.traffic import kernel_traffic
from coset.lowering.planning.windows import has_windows, is_small_pool, is_thin
from coset.lowering.triton.boxes import boxes_of
from coset.lowering.triton.product import is_plain
from coset.lowering.triton.recurrence import default_choice, read_again
from coset.lowering.triton.rereading import WARPS, fetched_again
from coset.lowering.triton.scalars import EIGHTS
from coset.lowering.triton.scales import without_scales
from coset.lowering.triton.sectors import is_in_order, moved_sectors
from coset.lowering.triton.source import can_emit
from coset.lowering.triton.tiling import (
    AREA,
    HOLDING,
    STEP,
    are_eights,
    eights_of,
    is_copied,
    multiplied,
    narrowest,
    steps_by_copies,
    takes_eights,
    unit_of,
)
from coset.pricing.kernel_options import options_for
from coset.pricing.layouts import ROUNDS, with_layouts
from coset.pricing.window_price import gathered, lies_beside, padded
from coset.rules.equation import NUMERICS_ORDER
from coset.targets.target import Form, Target
from coset.targets.target import Kernel as Rating

ORDERED = (Pointwise, Rows, Product)  # kernels whose buffers may have other orders of dims
Elementwise = Pointwise | Rows | Scan | Scatter | Sort
TILING = (Product, Grouped, Attention, Statistics, Chain)  # kernels of products
E4M3 = DTYPES["f8e4m3fn"]
INLINED = 64  # elements of a stored value that a kernel may have as numbers: whether they are equal decides what is computed
WARPS_AT_ONCE = 32  # of programs that go through rounds, on one processor
INSTRUCTION = 2  # FLOP of a multiply-add, which takes as long as any other op of arithmetic


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
        assert target.fusion is not None, f"{target.name} has no kernels that ops share"
        self.target, self.fusion, self.walks, self.numerics = target, target.fusion, walks, numerics
        self.options, self.eights = options_for(numerics, target), eights
        bits = target.numbers.get("features_last")
        self._bits = int(bits.value) if bits is not None and lays else None  # of floats that are multiplied features last
        self._whole = whole
        self.sizes = Sizes(binding)
        self.pricer = Pricer(target, self.sizes.binding)

    def seconds(self, program: Program) -> float:
        """Of one run of the program, as it would be lowered with a library's convolutions, and with the products of a library that pay by
        themselves: of one program more is tried.

        Raises:
            CosetError: as `plan`.
        """
        binding, libraries, exact = self.sizes.binding, self.is_librarys, self.numerics == "exact"
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
        return allocated(buffer, int(self.sizes.product(buffer.shape)))

    def kernel(self, planned: Plan, kernel: Kernel) -> float:
        """Seconds of one kernel of a plan."""
        if isinstance(kernel, Library):
            return self._library(kernel.term) + sum(map(self._turning, self._turned(planned, kernel)))
        if isinstance(kernel, TILING):
            name, working = self.fusion.product, self._tiling(planned, kernel)
        elif isinstance(kernel, Recurrence):
            name, working = self.fusion.rows, self._recurring(kernel)
        else:
            name, working = self._computing(planned, kernel)
        own = self.target.kernels[name]
        return own.launch.value + max(working, self._moving(own, planned, kernel))

    def _moving(self, own: Rating, planned: Plan, kernel: Computed) -> float:
        """Of the bytes that a kernel touches; where dims lie in another order those of whole sectors, by the programs that it has."""
        again = self._again(planned, kernel) if isinstance(kernel, Rows) else 0
        if not isinstance(kernel, ORDERED) or not is_in_order(planned, kernel):
            return own.moving(kernel_traffic(planned, kernel, self.sizes.binding) + again)
        moved, share = moved_sectors(planned, kernel, self.sizes.binding, self.options.processors)
        return own.moving(int(moved) + again) / share

    def _again(self, planned: Plan, kernel: Rows) -> int:
        """The bytes that a kernel over long rows reads twice, though as few rows are under way as programs of many warps make it."""
        if self._count(kernel.columns) <= WHOLE_ROW:
            return 0
        return int(fetched_again(kernel, planned, WARPS[-1], self.options, self.sizes.binding))

    def _turned(self, planned: Plan, kernel: Library) -> tuple[Buffer, ...]:
        """What a library lays out anew for its convolution, where the target says how it multiplies."""
        return tuple(planned.buffers[name] for name in turned(planned, kernel, self._bits)) if self._bits is not None else ()

    def _gains_by_order(self, kernel: Kernel) -> bool:
        """True for a convolution that is done with features last, whatever it is given."""
        return self._bits is not None and is_multiplied_last(kernel, self._bits)

    def _turning(self, buffer: Buffer) -> float:
        """Of a copy of a buffer in another order: a kernel that reads and writes it."""
        own = self.target.kernels[self.fusion.pointwise]
        return own.launch.value + own.moving(2 * self.bytes(buffer))

    def work(self, planned: Plan, kernel: Kernel) -> Work:
        """The launch of one kernel of a plan, and its work. It needs the share of the machine in which the full rates would do as much."""
        launch = self._launch(kernel)
        if isinstance(kernel, Recurrence):  # it takes as long on any machine that has room for its programs
            return Work(launch, self.kernel(planned, kernel) - launch, min(1.0, self._programs(kernel) / self._number("multiprocessors")))
        seconds, least = (prices.kernel(planned, kernel) - launch for prices in (self, self._full))
        return Work(launch, max(0.0, seconds), min(1.0, max(0.0, least) / seconds) if seconds > 0.0 else 0.0)

    def _launch(self, kernel: Kernel) -> float:
        if isinstance(kernel, Library):
            name = self._library_of(kernel.term) or self._form(kernel.term).kernel
        elif isinstance(kernel, TILING):
            name = self.fusion.product
        else:
            name = self.fusion.pointwise if isinstance(kernel, Pointwise) else self.fusion.rows
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
            return self._library(term)
        if not is_product(term) or dot(term) is not None:
            return 0.0
        sides = CONTRACTIONS[op.name](dict(attributes), result, operands, self.sizes)
        dtype = term.operands[0].tensor.dtype
        dtype = self._narrow(E4M3 if self.eights and dtype.name in HOLDING else dtype)
        ways = (False, True) if dtype is F32 and self._rates_full else (False,)  # f32 may be narrower numbers
        least = min(self._own(full).launch.value + self._product(sides, dtype.name, full) for full in ways)
        tiled = self._fractions(sides, dtype)
        least = least if tiled is None else min(least, self._own(False).launch.value + tiled)
        return min(least, self._librarys(term)) if self.may_be_librarys(term) else least

    def _fractions(self, sides: Sides, dtype: DType) -> float | None:
        """What a product takes at least where its tiles may be priced one by one: of any form, in rounds that are full."""
        share, rate = self.target.numbers.get("tile_share"), self._own(False).rate(dtype.name)
        if share is None or rate is None or not is_copied(dtype):
            return None
        return 2 * sides.batch * sides.rows * sides.depth * sides.columns / (rate.value * share.value)

    def may_be_librarys(self, term: Term) -> bool:
        """True for a product that a plan may do sooner by a library, on a target that says how soon these are done: of f32 in full, of
        16-bit floats by weights; and for attention of these."""
        if term.op.name == ATTENDED:
            return self._library_of(term) is not None and may_attend(term)
        return self._library_of(term) is not None and (is_half(term) or not self.options.tf32) and may_be_librarys(term)

    def is_librarys(self, term: Term) -> bool:
        """True for one that a library does sooner though what stands behind it becomes a kernel, and what stands in front of an operand
        where that is in memory for no other reason."""
        if not self.may_be_librarys(term):
            return False
        if term.op.name == ATTENDED:
            return self._is_attended_sooner(term)
        passed = [term.type, *(each.type for each in term.operands if self._is_computed_in_front(each))]
        beside = self.target.kernels[self.fusion.pointwise]
        passes = sum(beside.launch.value + beside.moving(2 * self.sizes.bytes(type)) for type in passed)
        own, sides, dtype = self._own(full=not is_half(term)), self._sides(term), term.tensor.dtype
        working = self._product(sides, dtype.name, full=not is_half(term))
        if is_half(term) and all(each.type.static is not None for each in term.operands if isinstance(each.type, TensorType)):
            m, n, k, batch = map(int, (sides.rows, sides.columns, sides.depth, sides.batch))
            working = self._tiles((m, n, k, batch), dtype, 0) or working
        return self._librarys(term) + passes < own.launch.value + max(working, own.moving(self._touched(term)))

    def _is_attended_sooner(self, term: Term) -> bool:
        """Of attention, in front of which only what is computed of queries becomes a kernel: rotary embeddings, say."""
        query, key = (operand.tensor.dims for operand in term.operands[:2])
        batch, rows = self.sizes.product(query[: len(key) - 2]), self.sizes.product(query[len(key) - 2 : -1])
        count, width, dtype = self.sizes.number(key[-2]), self.sizes.number(key[-1]), term.tensor.dtype.name
        seen = count / 2 if term.attribute("causal") else count
        own, beside = self.target.kernels[self.fusion.product], self.target.kernels[self.fusion.pointwise]
        products = [(Sides(batch, rows, width, seen), dtype, False), (Sides(batch, rows, seen, width), dtype, False)]
        attending = self._weighed(products, batch * rows * seen, causal=term.attribute("causal"))
        front = _unmoved(term.operands[0])
        passing = beside.launch.value + beside.moving(2 * self.sizes.bytes(front.type)) if self._is_computed_in_front(front) else 0.0
        ours = own.launch.value + max(attending, own.moving(self._touched(term)))
        return self._attended(term) + passing < ours

    @staticmethod
    def _is_computed_in_front(term: Term) -> bool:
        """True for an operand of a library that is in memory for no other reason."""
        return is_light(term) and not is_made_behind(term)

    def _attended(self, term: Term) -> float:
        """Of attention by a library: as its products, of heads of this width, of half of which a causal mask leaves out."""
        assert self.fusion.attention is not None
        kernel = self.target.kernels[self.fusion.attention]
        query, key = (operand.tensor.dims for operand in term.operands[:2])
        count, width = self.sizes.number(key[1 if term.op.name == BY_ROWS else -2]), self.sizes.number(key[-1])
        work = 4 * self.sizes.product(query) * count / (2 if term.attribute("causal") else 1)
        working = kernel.multiplying(term.tensor.dtype.name, work, width) / self._causal(term.attribute("causal"))
        return kernel.launch.value + max(working, kernel.moving(self._touched(term)))

    def _causal(self, causal: bool) -> float:
        """What attention under a causal mask reaches of the rate of one without."""
        found = self.target.numbers.get("attention_causal")
        return found.value if causal and found is not None else 1.0

    def _sides(self, term: Term) -> Sides:
        types = tuple(operand.type for operand in term.operands)
        return CONTRACTIONS[term.op.name](dict(term.attributes), term.type, types, self.sizes)

    def _library_of(self, term: Term) -> str | None:
        """The name of the numbers for a product or an attention that a library does; None where it does none, and for all else."""
        if term.op.name in (ATTENDED, *CALLS):
            return self.fusion.attention
        if not (term.op.name in BIASED or is_product(term)):
            return None
        return self.fusion.halves if is_half(term) else self.fusion.library

    def _librarys(self, term: Term) -> float:
        """Of a product, perhaps with its bias, or an attention by a library."""
        if term.op.name in (ATTENDED, *CALLS):
            return self._attended(term)
        name, sides = self._library_of(term), self._sides(product_in(term))
        assert name is not None
        kernel = self.target.kernels[name]
        working = kernel.multiplying(term.tensor.dtype.name, sides.flops(kernel.tiles), min(sides.rows, sides.columns))
        return kernel.launch.value + max(working, kernel.moving(self._touched(term)))

    def _touched(self, term: Term) -> float:
        """The bytes of an op's operands and its result."""
        return sum(self.sizes.bytes(type) for type in (term.type, *(each.type for each in term.operands)) if isinstance(type, TensorType))

    def may_be_windowed(self, term: Term) -> bool:
        """True for a convolution that a plan may do sooner as a kernel over windows (`planning/windows.py`) than by a library: where its
        work takes at most so much longer as the kernels before and behind it, which it may take in. Pools have nearly no work."""
        if "windows" not in self.target.numbers or not (has_windows(term) or is_small_pool(term)):
            return False
        if is_small_pool(term) or is_thin(term):
            return True
        types = tuple(operand.type for operand in term.operands)
        sides = self._sides(term)
        own, beside = (self.target.kernels[name] for name in (self.fusion.product, self.fusion.pointwise))
        saved = sum(beside.launch.value + beside.moving(2 * self.sizes.bytes(type)) for type in (types[0], term.type))
        features = term.operands[1].tensor.dims[1]
        return own.launch.value + self._convolving(sides, features, term.tensor.dtype, beside=True) < self._library(term) + saved

    def _convolving(self, sides: Sides, features: Dim, dtype: DType, *, beside: bool) -> float:
        """Of the sums of a kernel over windows, which reach a share of what plain products do, and fill their tiles as these do; or of the
        loads that are counted by `gathered`, where these take longer."""
        tiled = Sides(sides.batch, sides.rows, sides.depth, sides.columns)
        rate = self._number("gathered") * self.options.processors
        loading = gathered(tiled, features, dtype, beside=beside) / rate
        full = dtype is F32 and self._rates_full
        return max(self._product(tiled, dtype.name, full) / self._number("windows"), loading)

    # ------------------------------------------------------------ kernels

    def _number(self, name: str) -> float:
        """A number of the target.

        Raises:
            CosetError: its file has none of this name.
        """
        found = self.target.numbers.get(name)
        if found is None:
            why = f"the target `{self.target.name}` has no number `{name}`, by which some of its kernels are priced"
            raise CosetError(why, help="give it in [numbers], as targets/bases/gpu.toml does")
        return found.value

    def _programs(self, kernel: Recurrence) -> float:
        choice = default_choice(kernel, int(self._number("multiprocessors")))
        return math.ceil(self._count(kernel.rows) / choice["BLOCK_ROWS"])

    def _recurring(self, kernel: Recurrence) -> float:
        """Of a kernel whose rounds wait for each other: each takes what a round and its exchanges take at least, and what its products take
        on one processor, whatever the rest of the machine does; as often as programs take turns on a processor."""
        processors = self._number("multiprocessors")
        choice = default_choice(kernel, int(processors))
        programs, height, width = self._programs(kernel), choice["BLOCK_ROWS"], choice["BLOCK_COLUMNS"]
        turns = math.ceil(programs / (processors * max(1, WARPS_AT_ONCE // choice.warps)))
        waiting = self._number("round") + len(chained(kernel)) * self._number("exchange")
        working = read_again(kernel, width) / self._number("cached")
        for each in kernel.dots:
            full = self._rates_full and unit_of(each.lhs.dtype, each.rhs.dtype, wide(each.dtype)) is F32
            rate = self._own(full).rate(each.rhs.dtype.name)
            working += 0.0 if rate is None else 2 * height * width * width / (rate.value / processors * self._number("round_share"))
        return self._count([kernel.round]) * (waiting * turns + working * max(1.0, programs / processors))

    def _computing(self, planned: Plan, kernel: Elementwise) -> tuple[str, float]:
        """The name of the numbers for a kernel of elementwise ops and reductions, and the seconds of its arithmetic."""
        if not isinstance(kernel, Pointwise):
            return self.fusion.rows, self._arithmetic(kernel, self.fusion.rows)
        parts = boxes_of(kernel, planned) or (kernel,)
        return self.fusion.pointwise, sum(self._arithmetic(part, self.fusion.pointwise) for part in parts)

    def _arithmetic(self, kernel: Elementwise, name: str) -> float:
        ops = [value.op.name.split(".", 1)[1] for value in scalars(*values_of(kernel)) if isinstance(value, Apply)]
        if isinstance(kernel, Rows):
            ops += ["add"] * len(kernel.folds)
        if isinstance(kernel, Scan):
            ops += ["add"] * 2  # inside a thread, and over threads
        if isinstance(kernel, Scatter):
            ops.append("add")
        if isinstance(kernel, Sort):  # a network of so many layers, each an exchange and a choice
            assert isinstance(kernel.column.extent, int)
            depth = (kernel.column.extent - 1).bit_length()
            ops += ["minimum"] * (4 * depth * (depth + 1) // 2)
        count = self._points(kernel)
        costly = sum(1 for op in ops if op in COSTLY)
        functions, arithmetic = self.target.kernels[name].rate(F32.name), self.target.kernels[self.fusion.product].rate(F32.name)
        seconds = costly * count / functions.value if functions is not None else 0.0
        return seconds + (INSTRUCTION * len(ops) * count / arithmetic.value if arithmetic is not None else 0.0)

    def _points(self, kernel: Elementwise) -> float:
        """How often a kernel computes its scalars; of a scatter, those of each element of the result and of each one of the updates."""
        if isinstance(kernel, Sort):
            return self._count((*kernel.rows, kernel.column))
        if not isinstance(kernel, Scatter):
            return self._count(loops_of(kernel))
        seen = self._count((*kernel.rows, *kernel.updates)) if kernel.form == LOOP else 0.0
        return self._count(kernel.columns) * (self._count(kernel.rows) + self._count(kernel.updates)) + seen

    def _tiling(self, planned: Plan, kernel: Product | Grouped | Attention | Statistics | Chain) -> float:
        """Of a kernel of products."""
        if isinstance(kernel, Product | Grouped):
            return self._multiplying(planned, kernel)
        return self._attending(kernel) if isinstance(kernel, Attention) else self._retracing(kernel)

    def _multiplying(self, planned: Plan, kernel: Product | Grouped) -> float:
        """Of a grouped product as if all groups had equally many rows."""
        if isinstance(kernel, Product) and kernel.windowed:
            sides = Sides(self._count(kernel.batch), self._count(kernel.m), self._count(kernel.k), self._count(kernel.n))
            return self._convolving(sides, kernel.k[-1].extent, kernel.lhs.dtype, beside=lies_beside(planned, kernel))
        tiled = self._in_tiles(kernel) if isinstance(kernel, Product) else None
        if tiled is not None:
            return tiled
        kernel, _ = without_scales(kernel, self.options)
        batch, rows = self._count(kernel.batch), self._count(kernel.m)
        dtype = (self._narrow(eights_of(kernel)[0].dtype) if are_eights(kernel) else kernel.lhs.dtype).name
        if isinstance(kernel, Grouped):
            batch = min(batch, rows)
            rows /= max(batch, 1.0)
        full = self._is_full(kernel.lhs, kernel.rhs, kernel.accumulator)
        return self._product(Sides(batch, rows, self._count(kernel.k), self._count(kernel.n)), dtype, full)

    def _in_tiles(self, kernel: Product) -> float | None:
        """Of a product of known sizes whose operands, as far as is seen, are bulk copies: round by round of its tiles, and what is done to
        each. None where the target does not say what that takes."""
        given, scales = without_scales(kernel, self.options)
        lhs, rhs, unit = multiplied(given, eights=takes_eights(given, self.options))
        free = any(not isinstance(loop.extent, int) for loop in loops_of(given))
        if free or scales.blockwise or unit is None or not (is_plain(lhs, unit) and is_plain(rhs, unit)):
            return None
        m, n, k, batch = (
            math.prod(loop.extent for loop in loops if isinstance(loop.extent, int)) for loops in (given.m, given.n, given.k, given.batch)
        )
        more = sum(1 for value in scalars(*(store.value for store in given.stores)) if self._is_behind(value, given))
        return self._tiles((m, n, k, batch), unit, more)

    @staticmethod
    def _is_behind(value: Scalar, kernel: Product) -> bool:
        """True for what takes long when a tile is finished: a function, or an operand as large as the tile."""
        if isinstance(value, Apply):
            return value.op.name.split(".", 1)[1] in COSTLY
        if not isinstance(value, Load):
            return False
        names = {name for dim in value.index for name in dims.symbols(dim)}
        return all(any(loop.name in names for loop in loops) for loops in (kernel.m, kernel.n))

    def _tiles(self, sizes: tuple[int, int, int, int], unit: DType, more: int) -> float | None:
        """Of a product of so many m, n, k and batch; `more`: how many functions and large operands there are behind it."""
        rate, share = self._own(False).rate(unit.name), self.target.numbers.get("tile_share")
        if rate is None or share is None:
            return None
        step = 2 * AREA * (8 * STEP // unit.bits) * self.options.processors / (rate.value * share.value)
        finishing = self._number("tile_finish") + more * self._number("tile_more")
        steps = steps_by_copies(sizes, unit, self.options, finishing / step, whole=self._whole)
        return None if steps is None else steps * step

    @property
    def _rates_full(self) -> bool:
        """True where f32 is multiplied in full and the target says what that takes."""
        return self.fusion.full is not None and not self.options.tf32

    def _is_full(self, lhs: Scalar, rhs: Scalar, accumulator: DType) -> bool:
        """True where these operands are multiplied so."""
        return self._rates_full and unit_of(narrowest(lhs).dtype, narrowest(rhs).dtype, accumulator) is F32

    def _own(self, full: bool) -> Rating:
        """The numbers of our kernels of products, of those in full."""
        return self.target.kernels[self.fusion.full if full and self.fusion.full is not None else self.fusion.product]

    def _narrow(self, dtype: DType) -> DType:
        """What 8-bit floats are multiplied as; any other dtype itself."""
        return F16 if dtype.name in EIGHTS and self.options.eights is None else dtype

    def _attending(self, kernel: Attention) -> float:
        """Of both products and the exponentials, for the keys that are seen: under a causal mask on the mean those that the query in the
        middle sees."""
        batch, rows, keys = (self._count(loops) for loops in (kernel.batch, kernel.m, kernel.keys))
        if kernel.seen is not None:
            middle = {loop.name: self.sizes.number(loop.extent) // 2 for loop in kernel.m}
            keys = min(keys, max(1.0, self.sizes.number(dims.substitute(kernel.seen, middle))))
        full = self._is_full(kernel.query, kernel.key, kernel.accumulator)
        compared = Sides(batch, rows, self._count(kernel.k), keys), kernel.key.dtype.name, full
        full = self._is_full(kernel.value, kernel.value, kernel.accumulator)
        weighed = Sides(batch, rows, keys, self._count(kernel.n)), kernel.value.dtype.name, full
        return self._weighed([compared, weighed], batch * rows * keys, causal=kernel.seen is not None)

    def _weighed(self, products: Sequence[tuple[Sides, str, bool]], scores: float, *, causal: bool) -> float:
        """Of both products of attention, and an exponential for each score, by what is known of how near kernels come to their rates."""
        full = any(full for _, _, full in products)
        share, functions = (self.target.numbers.get(name) for name in ("attention_share", "attention_exponentials"))
        multiplying = self._products(products, self._sixth) / (share.value if share is not None and not full else 1.0)
        exponentials = self._exponentials(scores) / (functions.value if functions is not None else 1.0)
        return (multiplying + exponentials) / self._causal(causal)

    def _retracing(self, kernel: Statistics | Chain) -> float:
        """Of all products and an exponential for each score; under a mask that bounds them on the mean of those that the row in the middle
        looks at."""
        batch, rows = self._count(kernel.batch), self._count(kernel.rows)
        summed = self._count(kernel.summed)
        if kernel.summed and (kernel.low is not None or kernel.high is not None):
            whole = float(self.sizes.number(kernel.summed[-1].extent))
            middle = {loop.name: self.sizes.number(loop.extent) // 2 for loop in (*kernel.batch, *kernel.rows)}
            low, high = (None if end is None else self.sizes.number(dims.substitute(end, middle)) for end in (kernel.low, kernel.high))
            seen = min(whole, whole if high is None else high) - max(0, low or 0)
            summed *= min(1.0, max(1.0, seen) / max(whole, 1.0))
        products = []
        for one in kernel.dots:
            full = self._is_full(one.lhs, one.rhs, kernel.accumulator)
            products.append((Sides(batch, rows, self._count(one.k), summed), one.rhs.dtype.name, full))
        for each in kernel.sums if isinstance(kernel, Chain) else ():
            full = self._is_full(each.value, each.value, kernel.accumulator)
            products.append((Sides(batch, rows, summed, self._count(each.n)), each.value.dtype.name, full))
        return self._products(products, self._sixth) + self._exponentials(batch * rows * summed)

    def _exponentials(self, count: float) -> float:
        functions = self.target.kernels[self.fusion.rows].rate(F32.name)
        return count / functions.value if functions is not None else 0.0

    @property
    def _sixth(self) -> Rating | None:
        """The numbers of attention in f32 by six products of bf16, where it is done so."""
        return self.target.kernels[self.fusion.bf16x6] if self.options.f32_as == "bf16x6" and self.fusion.bf16x6 is not None else None

    def _product(self, sides: Sides, dtype: str, full: bool) -> float:
        return self._products([(sides, dtype, full)])

    def _products(self, products: Sequence[tuple[Sides, str, bool]], by: Rating | None = None) -> float:
        """Of the products of one kernel, in full (`by` what, if it is not as plain products are) or not. What share of its rate a kernel
        reaches is told by its work, and all products of a kernel are its work: programs that begin once and wait once for memory do one
        after the other, as they would do a longer sum."""
        own = [(by if full else None) or self._own(full) for _, _, full in products]
        works = [sides.flops(each.tiles) for each, (sides, _, _) in zip(own, products, strict=True)]
        whole, seconds = sum(works), 0.0
        for each, work, (sides, dtype, full) in zip(own, works, products, strict=True):
            rows = min(sides.rows, sides.columns) if full and by is None else sides.rows
            seconds += work / whole * each.multiplying(dtype, whole, rows) if whole else 0.0
        return seconds

    def _library(self, term: Term) -> float:
        if self._library_of(term) is not None:
            return self._librarys(term)
        given = tuple(operand.type for operand in term.operands)
        types, adding = self._widened(term) if term.op.name == "stablehlo.convolution" else (given, 0.0)
        read = tuple(self.sizes.bytes(type) for type in types)
        form, fixed = self._form(term), (False,) * len(types)
        return adding + self.pricer.seconds(form, term.op, term.attributes, term.type, types, read=read, fixed=fixed)

    def _widened(self, term: Term) -> tuple[tuple[Type, ...], float]:
        """The operands of a convolution as a library multiplies them, with features that it adds to them, and the seconds of that."""
        given, bits = tuple(operand.type for operand in term.operands), self.target.numbers.get("features_last")
        if bits is None or term.tensor.dtype.bits > bits.value:
            return given, 0.0
        own, made = self.target.kernels[self.fusion.pointwise], padded(term, int(self._number("channels")))
        pairs = [(old, new) for old, new in zip(given, made, strict=True) if old != new]
        return made, sum(own.launch.value + own.moving(self.sizes.bytes(old) + self.sizes.bytes(new)) for old, new in pairs)

    def _form(self, term: Term) -> Form:
        types = tuple(operand.type for operand in term.operands)
        return self.pricer.form(term.op, term.attributes, term.type, types, original=True) or self.target.default

    def _count(self, loops: Iterable[Loop]) -> float:
        return math.prod((self.sizes.number(loop.extent) for loop in loops), start=1.0)


def chained(kernel: Recurrence) -> tuple[str, ...]:
    """The names of the steps of a round that its states wait for; others are done beside the next round."""
    wanted = {value.name for state in kernel.states for value in scalars(state.next) if isinstance(value, Result)}
    for step in reversed(kernel.steps):
        if step.name in wanted:
            sides = (step.value,) if isinstance(step, Fold) else (step.lhs, step.rhs)
            wanted |= {value.name for value in scalars(*sides) if isinstance(value, Result)}
    return tuple(step.name for step in kernel.steps if step.name in wanted)


def has_eights(program: Program) -> bool:
    """True where a value of the program is of 8-bit floats."""
    return any(type.dtype.name in EIGHTS for term in program.terms() for type in tensors_in(term.type))


class Judge:
    """Predicted seconds of the programs that extraction tries. What they would store is not computed: it is taken as an input of its type,
    unless it is so small that its numbers decide what a kernel computes."""

    def __init__(self, prices: PlanPrices, source: Mapping[str, Any]) -> None:
        self.prices, self.source = prices, source
        self.fallback = fallback_of_constants(source)
        self.values: dict[Term, Term] = {}
        self.known: dict[tuple[Term, ...], float] = {}

    def __call__(self, roots: Sequence[Term], storable: AbstractSet[Term]) -> float:
        """Of the program of these roots.

        Raises:
            CosetError: kernels cannot be planned for it.
        """
        drafted, _ = fold(roots, storable, self.source, value_of=self._value)
        if drafted not in self.known:
            self.known[drafted] = self.prices.seconds(draft(drafted))
        return self.known[drafted]

    def _value(self, term: Term) -> Term:
        found = self.values.get(term)
        if found is None:
            found = self.values[term] = self._made(term)
        return found

    def _made(self, term: Term) -> Term:
        if term.op.name in ("builtin.constant", "builtin.absent"):
            return term
        if term.op.name == "stablehlo.broadcast_in_dim":
            return rebuild(term, [self._value(term.operands[0])])
        if self.prices.sizes.elements(term.type) <= INLINED:
            return computed(term, self.fallback)
        return make(INPUT, (), {"name": f"stored {len(self.values)}", "type": term.type})


def _unmoved(term: Term) -> Term:
    """What a term is in another order or shape."""
    while term.op.name in ("stablehlo.transpose", "stablehlo.reshape"):
        (term,) = term.operands
    return term


def draft(roots: Sequence[Term]) -> Program:
    """A program of these roots with every input that they have, and one more for each dim symbol that none of them has alone.

    Raises:
        CosetError: a root is neither a tensor nor a token.
    """
    terms = list(topological(roots))
    inputs = [term for term in terms if term.op is INPUT and isinstance(term.type, TensorType)]
    tensors = [type for term in terms for type in tensors_in(term.type)]
    alone = {name for term in inputs for dim in term.tensor.dims if (name := dims.alone(dim)) is not None}
    spoken = {name for type in tensors if type.shape is not None for dim in type.dims for name in dims.symbols(dim)}
    inputs += [make(INPUT, (), {"name": f"dim {name}", "type": TensorType(I64, (dims.symbol(name),))}) for name in sorted(spoken - alone)]
    tokens = [root for root in roots if isinstance(root.type, TokenType)]
    if any(not isinstance(root.type, TensorType | TokenType) for root in roots):
        raise CosetError("no kernels are planned for a program whose result is no tensor")
    outputs = tuple((f"{place}", root) for place, root in enumerate(roots) if isinstance(root.type, TensorType))
    return Program(tuple(inputs), outputs, tokens[-1] if tokens else None)
