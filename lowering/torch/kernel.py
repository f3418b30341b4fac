"""A plan's kernel as a torch function over whole buffers: what is launched where no Triton kernel is. Each loop is an axis.

A load whose indices are loops of their own is a view; any other is an indexed read. Values are held as `aten_dtypes` says; buffers
hold stored ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from coset.ir.dims import Atom, Dim, add, product, substitute, symbols
from coset.ir.types import DTYPES, DType
from coset.lowering.kernels.index_arithmetic import Extents, is_within, linear
from coset.lowering.kernels.kernel import (
    Attention,
    Chain,
    Choose,
    ColumnFold,
    Computed,
    Dot,
    Grouped,
    InBounds,
    IndexValue,
    Load,
    Loop,
    Pick,
    Plan,
    Pointwise,
    Product,
    Recurrence,
    Result,
    Rows,
    Scalar,
    ScalarConstant,
    ScalarOp,
    Scan,
    Scatter,
    Sort,
    State,
    Statistics,
    Store,
    dims_in,
    loops_of,
    reads,
    scalars,
    stores_by_sum,
    stores_of,
    values_of,
    writes,
)
from coset.lowering.planning.kinds import wide
from coset.lowering.torch.contractions import identity_text
from coset.lowering.torch.dims import dim_text, tuple_text
from coset.lowering.torch.dtypes import ORDER_OF_U64, held, narrowed, to_held, to_stored
from coset.lowering.torch.elementwise import converted, elementwise


def kernel_function(kernel: Computed, plan: Plan, symbols: dict[str, str]) -> str:
    """The text of a function `kernel.name(buffers read, buffers written, dims)`; `symbols` are the Python names of dim symbols."""
    return _Function(kernel, plan, symbols).text()


def kernel_arguments(kernel: Computed, symbols: dict[str, str]) -> list[str]:
    """The arguments of that function in a call: buffers by name, then the dims."""
    buffers = dict.fromkeys((*reads(kernel), *writes(kernel)))
    return [*buffers, *dict.fromkeys(symbols.values()), "device"]


@dataclass
class _Function:
    kernel: Computed
    plan: Plan
    symbols: dict[str, str]
    lines: list[str] = field(default_factory=list)
    loops: tuple[Loop, ...] = ()
    values: dict[int, tuple[Scalar, str]] = field(default_factory=dict)
    results: dict[str, str] = field(default_factory=dict)
    counter: int = 0

    def text(self) -> str:
        kernel = self.kernel
        for name in reads(kernel):
            buffer = self.plan.buffers[name]
            if buffer.packed is not None:
                self.lines.append(f"{name} = unpacked({name}, {buffer.packed}, {buffer.dtype.name!r})")
        if isinstance(kernel, Pointwise):
            self._begin(kernel.loops)
            self._stores(kernel.stores, len(kernel.loops))
        elif isinstance(kernel, Rows):
            self._rows(kernel)
        elif isinstance(kernel, Scan):
            self._scan(kernel)
        elif isinstance(kernel, Scatter):
            self._scatter(kernel)
        elif isinstance(kernel, Sort):
            self._sort(kernel)
        elif isinstance(kernel, Grouped):
            self._grouped(kernel)
        elif isinstance(kernel, Product):
            self._product(kernel)
        elif isinstance(kernel, Attention):
            self._attention(kernel)
        elif isinstance(kernel, Recurrence):
            self._recurrence(kernel)
        else:
            self._retraced(kernel)
        head = f"def {kernel.name}({', '.join(kernel_arguments(kernel, self.symbols))}):"
        document = f'    """{", ".join(kernel.terms) or kernel.name}."""'
        return "\n".join([head, document, *(f"    {line}" for line in self.lines)]) + "\n"

    # ------------------------------------------------------------ loops and dims

    def _begin(self, loops: tuple[Loop, ...], *, later: Sequence[Pick] = ()) -> None:
        """Name the loops and the picks, but for those that come `later`."""
        self.loops = loops
        names = dict(self.symbols)
        for place, loop in enumerate(loops):
            names[loop.name] = f"i{place}"
        used = {name for value in self._every() for name in _names_in(value)}
        for place, loop in enumerate(loops):
            if loop.name in used:
                shape = ["-1" if other == place else "1" for other in range(len(loops))]
                self.lines.append(f"i{place} = torch.arange({self._dim(loop.extent)}, device=device).reshape({tuple_text(shape)})")
        self.names = names
        for pick in (pick for pick in self.kernel.picks if pick not in later):  # where it is not used it may read any element
            names[pick.name] = self._value(pick.value)

    def _every(self) -> list[Dim]:
        """The dims that need the loops as index tensors."""
        found: list[Dim] = []
        stores = list(stores_of(self.kernel))
        for value in scalars(*values_of(self.kernel)):
            if isinstance(value, Load) and self._view(value) is None:
                found += value.index
            if isinstance(value, IndexValue | Choose):
                found += dims_in(value)
        for store in stores:
            if self._target(store) is None:
                found += store.index
        return found

    def _dim(self, dim: Dim) -> str:
        return dim_text(dim, getattr(self, "names", self.symbols))

    def _index(self, dim: Dim) -> str:
        """A dim over loops: `max` and `min` of tensors."""
        text = self._dim(dim)
        return text.replace("max(", "larger(").replace("min(", "smaller(")

    # ------------------------------------------------------------ scalars

    def _value(self, top: Scalar) -> str:
        """The name of a value over the loops; each scalar under it is one line."""
        for value in scalars(top):
            if id(value) not in self.values:
                text = self._expression(value)
                if not text.isidentifier():
                    name = f"v{self.counter}"
                    self.counter += 1
                    self.lines.append(f"{name} = {text}")
                    text = name
                self.values[id(value)] = (value, text)
        return self.values[id(top)][1]

    def _expression(self, value: Scalar) -> str:
        if isinstance(value, Load):
            return to_held(self._view(value) or self._read(value), value.dtype)
        if isinstance(value, ScalarConstant):
            number = value.value
            text = "math.nan" if number != number else "math.inf" if number == float("inf") else repr(number)
            text = "-math.inf" if number == float("-inf") else text
            if value.dtype.name == "u64" and isinstance(number, int) and number >= 1 << 63:
                text = repr(number - (1 << 64))
            return f"torch.full((), {text}, dtype={held(value.dtype)}, device=device)"
        if isinstance(value, IndexValue):
            return converted(f"as_index({self._index(value.index)}, device)", DTYPES["i64"], value.dtype)
        if isinstance(value, Result):
            return self.results[value.name]
        if isinstance(value, Choose):
            holds = " & ".join(self._bound(bound) for bound in value.bounds) or "True"
            return f"torch.where(as_condition({holds}, device), {self._known(value.inside)}, {self._known(value.outside)})"
        assert isinstance(value, ScalarOp)
        operands = [(self._known(operand), operand.dtype) for operand in value.operands]
        return elementwise(value.op.name, dict(value.attributes), operands, value.dtype)

    def _known(self, value: Scalar) -> str:
        return self.values[id(value)][1]

    def _bound(self, bound: InBounds) -> str:
        index = self._index(bound.index)
        return f"(({index}) >= {self._index(bound.low)}) & (({index}) < {self._index(bound.high)})"

    def _view(self, load: Load) -> str | None:
        """The buffer, or a part of it, with its dims as the loops' axes, where each index is one place or a loop of its own from some place
        on; None for other indices."""
        return self._as_axes(load.buffer, load.index)

    def _as_axes(self, name: str, index: Sequence[Dim]) -> str | None:
        loops = self.loops if self.loops or isinstance(self.kernel, Recurrence) else loops_of(self.kernel)  # a round is no axis
        extents = {loop.name: loop.extent for loop in loops}
        numbers = {loop.name: place for place, loop in enumerate(loops)}
        found = [self._cut(dim, size, extents) for dim, size in zip(index, self.plan.buffers[name].shape, strict=True)]
        places = [numbers[cut[0]] for cut in found if cut is not None and cut[0]]
        if None in found or len(set(places)) != len(places) or not places:
            return None
        cuts = [cut[1] for cut in found if cut is not None]
        part = name if set(cuts) == {":"} else f"{name}[{', '.join(cuts)}]"
        order = sorted(range(len(places)), key=places.__getitem__)
        text = part if order == list(range(len(order))) else f"{part}.permute({tuple_text(order)})"
        first = min(places)
        axes = ", ".join(":" if place in places else "None" for place in range(first, len(extents)))
        return text if axes.count("None") == 0 else f"{text}[{axes}]"

    def _cut(self, dim: Dim, size: Dim, extents: Extents) -> tuple[str, str] | None:
        """The loop along which an index goes through a dim of a buffer, and the subscript of what it reaches; no loop where that is one
        place. None where it goes otherwise, or may be outside where it is not used."""
        own = symbols(dim) & extents.keys()
        loop = min(own, default="")
        if len(own) > 1 or (own and linear(dim, loop) != 1) or not symbols(dim) <= {*own, *self.symbols}:
            return None
        begin = substitute(dim, {loop: 0})
        if own and begin == 0 and extents[loop] == size:
            return loop, ":"
        if not is_within(dim, 0, size, extents) or not (own or isinstance(size, int)):
            return None
        return loop, f"{self._dim(begin)}:{self._dim(add(begin, extents[loop]))}" if own else self._dim(begin)

    def _read(self, load: Load) -> str:
        return f"taken({', '.join([load.buffer, *map(self._index, load.index)])})"

    # ------------------------------------------------------------ kernels

    def _shape(self, loops: Sequence[Loop]) -> str:
        return tuple_text(self._dim(loop.extent) for loop in loops)

    def _stores(self, stores: Sequence[Store], count: int) -> None:
        """Stores over the first `count` loops; the others are of one element."""
        for store in stores:
            self._store(store, self.loops[:count])

    def _store(self, store: Store, own: Sequence[Loop]) -> None:
        """A store over its `own` loops; the others are of one element."""
        value = to_stored(f"torch.broadcast_to({self._value(store.value)}, {self._ends(own)})", store.value.dtype)
        target = self._target(store)
        if target is not None:
            self.lines.append(f"{target}.copy_({value}.reshape({target}.shape))")
        elif not store.index:
            self.lines.append(f"{store.buffer}.copy_({value}.reshape(()))")
        else:
            self.lines.append(f"put({', '.join([store.buffer, value, *map(self._index, store.index)])})")

    def _target(self, store: Store) -> str | None:
        return self._as_axes(store.buffer, store.index)

    def _rows(self, kernel: Rows) -> None:
        self._begin((*kernel.rows, *kernel.columns))
        count = len(kernel.rows)
        axes = tuple_text(range(count, len(self.loops)))
        for fold in kernel.folds:
            value = f"torch.broadcast_to({converted(self._value(fold.value), fold.value.dtype, fold.dtype)}, {self._shape(self.loops)})"
            kept = tuple_text([*(self._dim(loop.extent) for loop in kernel.rows), *["1"] * len(kernel.columns)])
            text = f"fold({value}, {axes}, {fold.combiner!r}, {identity_text(fold.combiner, fold.dtype)}).reshape({kept})"
            name = f"r{len(self.results)}"
            self.lines.append(f"{name} = {narrowed(text, fold.dtype)}")
            self.results[fold.name] = name
        self._stores(kernel.row_stores, count)
        self._stores(kernel.element_stores, len(self.loops))

    def _attention(self, kernel: Attention) -> None:
        """The scores as a whole, and their softmax as the scalar meaning has it: the largest is taken off, a row of -inf is NaN or 0."""
        outer, inner = (*kernel.batch, *kernel.m, *kernel.n), (*kernel.keys, *kernel.k)
        self._begin((*outer, *inner))
        query = self._matrix("m0", kernel.query, kernel.batch, kernel.m, kernel.k, kernel.accumulator)
        key = self._matrix("m1", kernel.key, kernel.batch, kernel.keys, kernel.k, kernel.accumulator)
        rows = (*kernel.batch, *kernel.m, *kernel.keys)
        dot = converted(f"({query} @ {key}.mT)", kernel.accumulator, kernel.dtype)
        self.lines.append(f"dot = {dot}.reshape({self._ends(rows)})")
        self.results["dot"] = "dot"
        scores = self._matrix("scores", kernel.score, kernel.batch, kernel.m, kernel.keys, kernel.accumulator)
        value = self._matrix("m2", kernel.value, kernel.batch, kernel.keys, kernel.n, kernel.accumulator)
        self.lines.append(f"total = (weights_of({scores}, {kernel.safe}) @ {value}).reshape({self._ends(outer)})")
        self.results["sum"] = "total"
        self._stores(kernel.stores, len(outer))

    def _retraced(self, kernel: Statistics | Chain) -> None:
        """The scores as a whole, and what is made of them."""
        batch, rows, summed, accumulator = kernel.batch, kernel.rows, kernel.summed, kernel.accumulator
        outer = (*batch, *rows)
        self._begin(loops_of(kernel))
        for dot in kernel.dots:
            left = self._matrix(f"{dot.name}_left", dot.lhs, batch, rows, dot.k, accumulator)
            right = self._matrix(f"{dot.name}_right", dot.rhs, batch, summed, dot.k, accumulator)
            text = converted(f"({left} @ {right}.mT)", accumulator, dot.dtype)
            self.lines.append(f"{dot.name} = {text}.reshape({self._ends((*outer, *summed))})")
            self.results[dot.name] = dot.name
        if isinstance(kernel, Statistics):
            scores = self._matrix("scores", kernel.score, batch, rows, summed, accumulator)
            self.lines.append(f"top, share = statistics_of({scores}, {kernel.safe})")
            for name in ("top", "share"):
                self.lines.append(f"{name} = {name}.reshape({self._ends(outer)})")
                self.results[name] = name
            for slope in kernel.slopes:
                reached = self._matrix(f"{slope.name}_reached", slope.value, batch, rows, summed, accumulator)
                self.lines.append(f"{slope.name} = (weights_of({scores}, {kernel.safe}) * {reached}).sum(2).reshape({self._ends(outer)})")
                self.results[slope.name] = slope.name
            self._stores(kernel.stores, len(outer))
            return
        for each in kernel.sums:
            weight = self._matrix(f"{each.name}_weight", each.weight, batch, rows, summed, accumulator)
            value = self._matrix(f"{each.name}_value", each.value, batch, summed, each.n, accumulator)
            self.lines.append(f"{each.name} = ({weight} @ {value}).reshape({self._ends((*outer, *each.n))})")
            self.results[each.name] = each.name
        for store, own in stores_by_sum(kernel):
            self._store(store, (*outer, *own.n))

    def _ends(self, own: Sequence[Loop]) -> str:
        """The kernel's loops as a shape in which only `own` are not 1."""
        return tuple_text(self._dim(loop.extent) if loop in own else "1" for loop in self.loops)

    def _matrix(self, name: str, value: Scalar, batch: Sequence[Loop], rows: Sequence[Loop], columns: Sequence[Loop], dtype: DType) -> str:
        """A value over these loops as matrices."""
        own = (*batch, *rows, *columns)
        text = converted(self._value(value), value.dtype, dtype)
        whole = f"torch.broadcast_to({text}, {self._ends(own)})"
        order = [self.loops.index(loop) for loop in own]
        order += [place for place, loop in enumerate(self.loops) if loop not in own]
        sizes = tuple_text(_product(self._dim(loop.extent) for loop in group) for group in (batch, rows, columns))
        turned = whole if order == sorted(order) else f"{whole}.permute({tuple_text(order)})"
        self.lines.append(f"{name} = {turned}.reshape({sizes})")
        return name

    def _recurrence(self, kernel: Recurrence) -> None:
        """Round after round, each over all rows."""
        turning = {kernel.round.name}
        later = []
        for pick in kernel.picks:
            if turning & {name for value in scalars(pick.value) for dim in dims_in(value) for name in _names_in(dim)}:
                turning.add(pick.name)
                later.append(pick)
        self._begin((*kernel.rows, *kernel.columns, *kernel.depth), later=later)
        for state in kernel.states:
            self.lines.append(f"{state.name} = {self._state(kernel, state, state.start)}")
            self.results[state.name] = state.name
        for dot in kernel.dots:
            self._matrix(f"{dot.name}_matrix", dot.rhs, (), kernel.depth, kernel.columns, wide(dot.dtype))
        outside, self.lines = self.lines, []
        self.names[kernel.round.name] = "step"
        for pick in later:
            self.names[pick.name] = self._value(pick.value)
        for step in kernel.steps:
            self._step(kernel, step)
        for store in kernel.round_stores:
            self._store(store, self._own(kernel, store))
        news = [self._state(kernel, state, state.next) for state in kernel.states]
        names = ", ".join(state.name for state in kernel.states)
        self.lines += [f"{names} = {', '.join(news)}"] * bool(news)
        inside, self.lines = self.lines, outside
        self.lines.append(f"for step in range({self._dim(kernel.round.extent)}):")
        self.lines += [f"    {line}" for line in inside or ["pass"]]
        self.values.clear()
        for store in kernel.last_stores:
            self._store(store, self._own(kernel, store))

    def _own(self, kernel: Recurrence, store: Store) -> tuple[Loop, ...]:
        names = {name for dim in store.index for name in _names_in(dim)}
        return (*kernel.rows, *kernel.columns) if names & {loop.name for loop in kernel.columns} else kernel.rows

    def _state(self, kernel: Recurrence, state: State, value: Scalar) -> str:
        """A state over its loops, rounded to its dtype."""
        own = (*kernel.rows, *kernel.columns) if state.wide else kernel.rows
        return f"torch.broadcast_to({narrowed(self._value(value), state.dtype)}, {self._ends(own)})"

    def _step(self, kernel: Recurrence, step: ColumnFold | Dot) -> None:
        both = (*kernel.rows, *kernel.columns)
        if isinstance(step, ColumnFold):
            value = f"torch.broadcast_to({converted(self._value(step.value), step.value.dtype, step.dtype)}, {self._ends(both)})"
            axes = tuple_text(range(len(kernel.rows), len(both)))
            text = f"fold({value}, {axes}, {step.combiner!r}, {identity_text(step.combiner, step.dtype)})"
            self.lines.append(f"{step.name} = {narrowed(f'{text}.reshape({self._ends(kernel.rows)})', step.dtype)}")
        else:
            left = self._matrix(f"{step.name}_left", step.lhs, (), kernel.rows, kernel.columns, wide(step.dtype))
            text = converted(f"({left} @ {step.name}_matrix)", wide(step.dtype), step.dtype)
            self.lines.append(f"{step.name} = {text}.reshape({self._ends(both)})")
        self.results[step.name] = step.name

    def _scan(self, kernel: Scan) -> None:
        self._begin((*kernel.rows, kernel.column))
        value = converted(self._value(kernel.value), kernel.value.dtype, kernel.dtype)
        text = narrowed(
            f"scanned(torch.broadcast_to({value}, {self._shape(self.loops)}), {len(kernel.rows)}, {kernel.combiner!r})", kernel.dtype
        )
        self.lines.append(f"scan = {text}")
        self.results["scan"] = "scan"
        self._stores(kernel.stores, len(self.loops))

    def _sort(self, kernel: Sort) -> None:
        outer = (*kernel.rows, *kernel.front)
        self._begin((*outer, kernel.column))
        rows, dtype = (*kernel.rows, kernel.column), kernel.key.dtype
        key, *values = (self._along(value, rows) for value in (kernel.key, *kernel.values))
        if dtype.kind == "float" and kernel.total:
            key = f"total_order({key}, one_nan=False)"
        key = f"{key} ^ {ORDER_OF_U64}" if dtype.name == "u64" else key
        self.lines.append(f"ranked = sort({tuple_text(values)}, {key}, {len(kernel.rows)}, {kernel.direction!r})")
        count = self._dim(_extent(kernel.front))
        for place in range(len(values)):
            self.lines.append(f"sorted{place} = ranked[{place}][..., :{count}].reshape({self._ends(outer)})")
            self.results[f"sorted{place}"] = f"sorted{place}"
        self._stores(kernel.stores, len(outer))

    def _along(self, value: Scalar, own: Sequence[Loop]) -> str:
        """A value over these loops alone."""
        whole = f"torch.broadcast_to({self._value(value)}, {self._ends(own)})"
        return f"{whole}.reshape({self._shape(own)})"

    def _scatter(self, kernel: Scatter) -> None:
        """Rows as matrices: the operand's by columns, and those of the updates."""
        self._begin((*kernel.rows, *kernel.columns, *kernel.updates))
        base = self._matrix("base", kernel.base, (), kernel.rows, kernel.columns, kernel.dtype)
        key = self._matrix("key", kernel.key, (), kernel.updates, (), kernel.key.dtype)
        value = self._matrix("value", kernel.value, (), kernel.updates, kernel.columns, kernel.dtype)
        rows = (*kernel.rows, *kernel.columns)
        turn = f" ^ {ORDER_OF_U64}" if kernel.dtype.name == "u64" and kernel.combiner in ("maximum", "minimum") else ""
        whole = f"scattered({base}[0]{turn}, {key}.reshape(-1), {value}[0]{turn}, {kernel.combiner!r}){turn}"
        text = narrowed(whole, kernel.dtype)
        self.lines.append(f"total = ({text}).reshape({self._ends(rows)})")
        self.results["sum"] = "total"
        self._stores(kernel.stores, len(rows))

    def _grouped(self, kernel: Grouped) -> None:
        outer = (*kernel.m, *kernel.n)
        self._begin((*outer, *kernel.batch, *kernel.k))
        left = self._matrix("m0", kernel.lhs, (), kernel.m, kernel.k, kernel.accumulator)
        right = self._matrix("m1", kernel.rhs, kernel.batch, kernel.k, kernel.n, kernel.accumulator)
        key = self._matrix("key", kernel.key, (), kernel.m, (), kernel.key.dtype)
        self.lines.append(f"total = grouped({left}[0], {right}, {key}.reshape(-1)).reshape({self._ends(outer)})")
        self.results["sum"] = "total"
        self._stores(kernel.stores, len(outer))

    def _product(self, kernel: Product) -> None:
        outer = (*kernel.batch, *kernel.m, *kernel.n)
        self._begin((*outer, *kernel.k))
        left = self._matrix("m0", kernel.lhs, kernel.batch, kernel.m, kernel.k, kernel.accumulator)
        right = self._matrix("m1", kernel.rhs, kernel.batch, kernel.n, kernel.k, kernel.accumulator)
        text = f"{left} @ {right}.mT"
        if kernel.accumulator.kind in ("int", "uint", "bool"):
            text = f"einsum_of_integers('bmk,bnk->bmn', {left}, {right}, {kernel.accumulator.bits})"
        self.lines.append(f"total = ({text}).reshape({self._ends(outer)})")
        self.results["sum"] = "total"
        self._stores(kernel.stores, len(outer))


def _extent(loops: Sequence[Loop]) -> Dim:
    return product(loop.extent for loop in loops)


def _product(sizes: object) -> str:
    return " * ".join(f"({one})" for one in sizes) or "1"  # type: ignore[attr-defined]


def _names_in(dim: Dim) -> set[str]:
    if isinstance(dim, int):
        return set()
    stack: list[Atom] = [atom for monomial, _ in dim.terms for atom in monomial]
    found: set[str] = set()
    while stack:
        atom = stack.pop()
        if not atom.args:
            found.add(atom.name)
        for arg in atom.args:
            if not isinstance(arg, int):
                stack += [inner for monomial, _ in arg.terms for inner in monomial]
    return found
