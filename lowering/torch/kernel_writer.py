"""What the functions of all kinds of kernels are written with: axes, scalars, stores.

A load whose indices are loops of their own is a view; any other is an indexed read. Values are held as `dtypes` says; buffers hold stored
ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from coset.ir.dims import Atom, Dim, add, substitute, symbols
from coset.ir.types import DTYPES, DType
from coset.lowering.kernels.index_arithmetic import Extents, is_within, linear
from coset.lowering.kernels.kernel import (
    Choose,
    Computed,
    InBounds,
    IndexValue,
    Load,
    Loop,
    Pick,
    Plan,
    Result,
    Scalar,
    ScalarConstant,
    ScalarOp,
    Store,
    dims_in,
    scalars,
    stores_of,
    values_of,
)
from coset.lowering.torch.dims import dim_text, tuple_text
from coset.lowering.torch.dtypes import held, to_held, to_stored
from coset.lowering.torch.elementwise import converted, elementwise


@dataclass
class KernelWriter:
    """Writes the body of one function: each of the kernel's `loops` is an axis of every tensor. `results` are the Python names of what
    steps made, by the names that scalars read."""

    kernel: Computed
    plan: Plan
    symbols: dict[str, str]
    lines: list[str] = field(default_factory=list)
    loops: tuple[Loop, ...] = ()
    values: dict[int, tuple[Scalar, str]] = field(default_factory=dict)
    results: dict[str, str] = field(default_factory=dict)
    counter: int = 0

    # ------------------------------------------------------------ loops and dims

    def begin(self, loops: tuple[Loop, ...], *, later: Sequence[Pick] = ()) -> None:
        """Name the loops and the picks, but for those that come `later`."""
        self.loops = loops
        names = dict(self.symbols)
        for place, loop in enumerate(loops):
            names[loop.name] = f"i{place}"
        used = {name for value in self._every() for name in names_in(value)}
        for place, loop in enumerate(loops):
            if loop.name in used:
                shape = ["-1" if other == place else "1" for other in range(len(loops))]
                self.lines.append(f"i{place} = torch.arange({self.dim(loop.extent)}, device=device).reshape({tuple_text(shape)})")
        self.names = names
        for pick in (pick for pick in self.kernel.picks if pick not in later):  # where it is not used it may read any element
            names[pick.name] = self.value(pick.value)

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

    def dim(self, dim: Dim) -> str:
        """A dim as text."""
        return dim_text(dim, getattr(self, "names", self.symbols))

    def _index(self, dim: Dim) -> str:
        """A dim over loops: `max` and `min` of tensors."""
        text = self.dim(dim)
        return text.replace("max(", "larger(").replace("min(", "smaller(")

    def shape(self, loops: Sequence[Loop]) -> str:
        """Loops as a shape."""
        return tuple_text(self.dim(loop.extent) for loop in loops)

    def ends(self, own: Sequence[Loop]) -> str:
        """The kernel's loops as a shape in which only `own` are not 1."""
        return tuple_text(self.dim(loop.extent) if loop in own else "1" for loop in self.loops)

    # ------------------------------------------------------------ scalars

    def value(self, top: Scalar) -> str:
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
        extents = {loop.name: loop.extent for loop in self.loops}
        numbers = {loop.name: place for place, loop in enumerate(self.loops)}
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
        return loop, f"{self.dim(begin)}:{self.dim(add(begin, extents[loop]))}" if own else self.dim(begin)

    def _read(self, load: Load) -> str:
        return f"taken({', '.join([load.buffer, *map(self._index, load.index)])})"

    def matrix(self, name: str, value: Scalar, batch: Sequence[Loop], rows: Sequence[Loop], columns: Sequence[Loop], dtype: DType) -> str:
        """A value over these loops as matrices."""
        own = (*batch, *rows, *columns)
        text = converted(self.value(value), value.dtype, dtype)
        whole = f"torch.broadcast_to({text}, {self.ends(own)})"
        order = [self.loops.index(loop) for loop in own]
        order += [place for place, loop in enumerate(self.loops) if loop not in own]
        sizes = tuple_text(_product(self.dim(loop.extent) for loop in group) for group in (batch, rows, columns))
        turned = whole if order == sorted(order) else f"{whole}.permute({tuple_text(order)})"
        self.lines.append(f"{name} = {turned}.reshape({sizes})")
        return name

    # ------------------------------------------------------------ stores

    def stores(self, stores: Sequence[Store], count: int) -> None:
        """Stores over the first `count` loops; the others are of one element."""
        for store in stores:
            self.store(store, self.loops[:count])

    def store(self, store: Store, own: Sequence[Loop]) -> None:
        """A store over its `own` loops; the others are of one element."""
        value = to_stored(f"torch.broadcast_to({self.value(store.value)}, {self.ends(own)})", store.value.dtype)
        target = self._target(store)
        if target is not None:
            self.lines.append(f"{target}.copy_({value}.reshape({target}.shape))")
        elif not store.index:
            self.lines.append(f"{store.buffer}.copy_({value}.reshape(()))")
        else:
            self.lines.append(f"put({', '.join([store.buffer, value, *map(self._index, store.index)])})")

    def _target(self, store: Store) -> str | None:
        return self._as_axes(store.buffer, store.index)


def _product(sizes: object) -> str:
    return " * ".join(f"({one})" for one in sizes) or "1"  # type: ignore[attr-defined]


def names_in(dim: Dim) -> set[str]:
    """The names of the symbols in a dim."""
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
