"""Scalars of a kernel as Triton statements over tiles: one named value a line, loads with masks, nothing computed twice.

A `Space` is an index space with one axis for each dim of its tiles: every value knows along which axes it differs, stands in the
outermost scope that has these (so that what is one a row is outside the loop over columns) and is broadcast by Triton.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coset.ir.dims import Dim, add, multiply, substitute, subtract, symbol, symbols
from coset.ir.types import BOOL
from coset.lowering.kernels.addresses import address, shift
from coset.lowering.kernels.index_arithmetic import Extents, is_within, linear
from coset.lowering.kernels.kernel import Loop, Store, dims_in
from coset.lowering.kernels.scalar import Choose, InBounds, IndexValue, Load, Pick, Result, Scalar, ScalarConstant, ScalarOp
from coset.lowering.triton.body import FunctionBody
from coset.lowering.triton.copies import Copy, TileSide, copy_of
from coset.lowering.triton.dims import dim_text, is_natural, split_index
from coset.lowering.triton.helpers import helpers_of
from coset.lowering.triton.launch import Rounding
from coset.lowering.triton.scalars import (
    EIGHT_BITS,
    TYPES,
    ScalarText,
    computed,
    conversion,
    filling,
    form_of,
    from_byte,
    from_memory,
    kind_of,
    number,
    to_memory,
    typed_number,
)
from coset.lowering.triton.scopes import NONE, Axes, TileAxis, TileScope, Value
from coset.lowering.triton.walks import _all_under, moves, plain_loads, scalars_under


class Space:
    """An index space: its loops' indices as text, its axes, its scopes from the outside in."""

    def __init__(
        self, body: FunctionBody, axes: dict[str, TileAxis], scopes: list[TileScope], binding: Mapping[str, Dim], picks: Sequence[Pick] = ()
    ) -> None:
        """`binding`: what the kernel's loops are over the loops that are given by `index`."""
        self.body, self.axes, self.scopes, self.binding = body, axes, scopes, binding
        self.picks = {pick.name: pick for pick in picks}
        self._flat: list[tuple[Dim, str, Loop, Axes]] = []
        self._loops: dict[str, tuple[str, Axes]] = {}
        self._values: list[dict[tuple[int, str, str], Value]] = [{} for _ in scopes]
        self._outside: list[dict[str, tuple[str, Axes]]] = []
        self.results: dict[str, Value] = {}
        self.copies: Mapping[Load, Copy] = {}  # loads of whole tiles that are bulk copies
        self.extents: Extents | None = None  # of the kernel's loops, where loads are looked at that conditions may leave out
        self._kept: list[Scalar] = []

    def index(self, loop: str, text: str, axes: Axes) -> None:
        """Say what a loop's index is; it is written when it is first asked for."""
        self._loops[loop] = (text, axes)

    def number(self, loops: Sequence[Loop], flat: str, axes: Axes) -> None:
        """Say that `flat` numbers the points of these loops in row-major order."""
        names = {name: self.body.symbol(name) for loop in loops for name in sorted(symbols(loop.extent))}
        for name, text in split_index(loops, flat, names).items():
            self.index(name, text, axes)
        self._flatten(loops, flat, axes)

    def _flatten(self, loops: Sequence[Loop], text: str, axes: Axes) -> None:
        """Keep what numbers two loops or more: dims that are about it need no quotients."""
        total: Dim = 0
        for loop in loops:
            total = add(multiply(total, loop.extent), loop.index)
        if len(loops) > 1:
            self._flat.append((total, text, loops[-1], axes))

    def copy(self, scalar: Scalar, single: Sequence[Loop], sides: tuple[TileSide, TileSide]) -> None:
        """Read by bulk copies what can be of the loads under `scalar`, an operand of a product over these `sides`; `single`: loops of which
        a tile has one index."""
        names = {name: self.body.symbol(name) for side in sides for loop in side.loops[:-1] for name in sorted(symbols(loop.extent))}
        buffers = self.body.plan.buffers
        found = {load: copy_of(load, buffers[load.buffer], self.binding, single, sides, names) for load in plain_loads(scalar)}
        self.copies = {load: copy for load, copy in found.items() if copy is not None}

    def enter(self, scope: TileScope) -> None:
        """Write further values into `scope`, where their axes need it."""
        self.scopes.append(scope)
        self._values.append({})
        self._outside.append(dict(self._loops))

    def leave(self) -> TileScope:
        """Forget the innermost scope's values; indices that were written outside of it stay."""
        self._values.pop()
        before = self._outside.pop()
        outer = self.scopes[-2].axes
        self._loops = {name: found if found[1] <= outer else before[name] for name, found in self._loops.items()}
        return self.scopes.pop()

    # ------------------------------------------------------------ lines

    def _place(self, axes: Axes) -> int:
        return next(place for place, scope in enumerate(self.scopes) if axes <= scope.axes)

    def line(self, text: str, axes: Axes, hint: str) -> Value:
        """`text` under a name; one that is already there where the same was written before."""
        if text.isidentifier():
            return Value(text, axes)
        place = self._place(axes)
        for scope in self.scopes[: place + 1]:
            if text in scope.known:
                return Value(scope.known[text], axes)
        name = self.body.name(hint)
        self.scopes[place].lines.append(f"{name} = {text}")
        self.scopes[place].known[text] = name
        return Value(name, axes)

    def dim(self, dim: Dim, condition: Value | None = None) -> tuple[str, Axes]:
        """A dim as text, and the axes along which it differs; the picks in it are computed where `condition` holds."""
        dim = substitute(dim, self.binding)
        names: dict[str, str] = {}
        axes: Axes = NONE
        for place, (whole, text, last, own) in enumerate(self._flat):
            step = linear(dim, last.name)
            if step is not None and step != 0 and last.name not in symbols(step):
                rest = subtract(dim, multiply(step, whole))
                if not symbols(rest) & symbols(whole) & self._loops.keys():
                    dim, axes = add(rest, multiply(step, symbol(f"flat:{place}"))), axes | own
                    names[f"flat:{place}"] = text
        for name in sorted(symbols(dim)):
            if name in self._loops:
                text, own = self._loops[name]
                value = self.line(text, own, name)
                self._loops[name] = (value.text, own)
                names[name], axes = value.text, axes | own
            elif name in self.picks:
                value = self._pick(self.picks[name], condition)
                names[name], axes = value.text, axes | value.axes
            elif name not in names:
                names[name] = self.body.symbol(name)
        return dim_text(dim, names), axes

    def _pick(self, pick: Pick, condition: Value | None) -> Value:
        value = self.computed(pick.value, condition)
        plain = value.literal or TYPES[pick.value.dtype.name] == self.body.index_type
        return value if plain else self.line(f"{value.text}.to({self.body.index_type})", value.axes, pick.name.replace(":", ""))

    def mask(self, axes: Axes, condition: Value | None) -> str:
        """What is inside along `axes`, where `condition` holds; empty when that is everything."""
        masks = [axis.mask for name, axis in self.axes.items() if name in axes and axis.mask is not None]
        return " & ".join([*masks, *([condition.text] if condition is not None else [])])

    def pointer(self, buffer: str, index: Sequence[Dim], axes: Axes, condition: Value | None = None, *, type: str = "") -> tuple[str, Axes]:
        """A pointer to an element (of another `type` than memory's own), spread along `axes`, and the axes that it then has."""
        place = subtract(address(self.body.plan.buffers[buffer], index), self.body.begins.get(buffer, 0))
        text, own = self.dim(place, condition)
        spread = "".join(f" + 0 * {self.axes[name].index}" for name in self.axes if name in axes - own)
        base = self.body.pointer(buffer, type)
        if text == "0":
            return (base + spread if spread else base), own | axes
        return f"{base} + {text}{spread}" if not text.startswith("-") else f"{base} + ({text}){spread}", own | axes

    # ------------------------------------------------------------ values

    def computed(self, scalar: Scalar, condition: Value | None = None) -> Value:
        """The value of `scalar` in the dtype that it is computed in."""
        for item in scalars_under(scalar):
            self._emit(item, condition, stored=False)
        return self._emit(scalar, condition, stored=False)

    def stored(self, scalar: Scalar, condition: Value | None = None) -> Value:
        """The value of `scalar` as memory holds it."""
        if not moves(scalar):
            for item in scalars_under(scalar):
                if item is not scalar:
                    self._emit(item, condition, stored=False)
        return self._emit(scalar, condition, stored=True)

    def load(self, item: Load, *, other: str | None, type: str = "") -> Value:
        """An element of memory as memory holds it, or as Triton's `type`, which is as wide; `other` where the mask is off."""
        return self._load(item, None, stored=True, other=other, type=type)

    def runs_along(self, item: Load, axis: str) -> bool:
        """True where the place of a load differs along an axis."""
        names = {name for dim in item.index for name in symbols(substitute(dim, self.binding))} & self._loops.keys()
        return any(axis in self._loops[name][1] for name in names)

    def name(self, scalar: Scalar, value: Value) -> Value:
        """`value` as a Triton value where it is a plain number."""
        if not value.literal:
            return value
        return self.line(self._typed(scalar), NONE, "number")

    def _typed(self, scalar: Scalar) -> str:
        assert isinstance(scalar, ScalarConstant)
        return typed_number(scalar.value, scalar.dtype)

    def _emit(self, item: Scalar, condition: Value | None, *, stored: bool) -> Value:
        reads = condition is not None and any(self._reads(part) for part in _all_under(item))
        key = (id(item), condition.text if condition is not None and reads else "", "stored" if stored else "computed")
        for known in self._values:
            if key in known:
                return known[key]
        self._kept.append(item)
        value = self._written(item, condition if reads else None, stored)
        self._values[self._place(value.axes)][key] = value
        return value

    def _reads(self, item: Scalar) -> bool:
        """True for a load, and for a place that a load gives."""
        return isinstance(item, Load) or any(symbols(dim) & self.picks.keys() for dim in dims_in(item))

    def _written(self, item: Scalar, condition: Value | None, stored: bool) -> Value:
        assert kind_of(item.dtype), f"no kernel holds {item.dtype}"
        narrow = computed(item.dtype) is not item.dtype
        if isinstance(item, ScalarOp) and item.op.name == "stablehlo.bitcast_convert":
            return self._bitcast(item, condition, stored=stored or not narrow)
        if not narrow or moves(item):
            return self._plain(item, condition, stored=stored and narrow)
        if not stored and self._rounds(item):
            value = self._emit(item, condition, stored=True)
            return self.line(from_memory(value.text, item.dtype), value.axes, f"{value.text}_wide")
        if stored:
            value = self._plain(item, condition, stored=False) if self._rounds(item) else self._emit(item, condition, stored=False)
            value = self.name(item, value)
            return self.line(to_memory(value.text, item.dtype), value.axes, f"{value.text}_{item.dtype.name}")
        return self._plain(item, condition, stored=False)

    def _rounds(self, item: Scalar) -> bool:
        """True when a narrow value is rounded to its dtype wherever it is used, not only where it is stored."""
        if isinstance(item, IndexValue):
            return True
        if not isinstance(item, ScalarOp):
            return False
        if item.op.name == "stablehlo.convert":
            return item.operands[0].dtype is not item.dtype
        return self.body.options.rounding is Rounding.EACH and self._form(item).rounds

    @staticmethod
    def _form(item: ScalarOp) -> ScalarText:
        return form_of(item.op.name, [*(operand.dtype for operand in item.operands), item.dtype], dict(item.attributes))

    def _plain(self, item: Scalar, condition: Value | None, *, stored: bool) -> Value:
        if isinstance(item, Choose):
            return self._choose(item, condition, stored=stored)
        if isinstance(item, Load):
            needed = condition is not None and not self._is_always_there(item, condition.axes)
            return self._load(item, condition if needed else None, stored=stored, other=None)
        if isinstance(item, ScalarConstant):
            text = number(item.value, item.dtype)
            return self.line(self._typed(item), NONE, "number") if text is None else Value(text, NONE, literal=True)
        if isinstance(item, IndexValue):
            text, axes = self.dim(item.index, condition)
            return self.line(f"tl.cast({text}, {TYPES[computed(item.dtype).name]})", axes, "index")
        if isinstance(item, Result):
            return self.results[item.name]
        assert isinstance(item, ScalarOp)
        return self._apply(item, condition)

    def _apply(self, item: ScalarOp, condition: Value | None) -> Value:
        values = [self._emit(operand, condition, stored=False) for operand in item.operands]
        axes = NONE.union(*(value.axes for value in values))
        hint = item.op.name.rsplit(".", 1)[-1]
        if hint == "convert":
            source = self.name(item.operands[0], values[0])
            text = conversion(source.text, item.operands[0].dtype, item.dtype)
            return self.line(text, axes, hint)
        form = self._form(item)
        plain = ".to(" not in form.text and not set(helpers_of(form.text)) - {"largest", "smallest"}
        data = values[1:] if hint == "select" else values
        if not plain or all(value.literal for value in data):
            values = [self.name(operand, value) for operand, value in zip(item.operands, values, strict=True)]
        lonely = "(" not in form.text  # between operators, a negative number needs parentheses
        texts = [f"({value.text})" if lonely and value.literal and value.text.startswith("-") else value.text for value in values]
        text = form.text.format(*texts)
        return self.line(text, axes, hint)

    def _bitcast(self, item: ScalarOp, condition: Value | None, *, stored: bool) -> Value:
        (operand,) = item.operands
        value = self.name(operand, self._emit(operand, condition, stored=True))
        bits = self.line(f"{value.text}.to({TYPES[item.dtype.name]}, bitcast=True)", value.axes, "bits")
        return bits if stored else self.line(from_memory(bits.text, item.dtype), bits.axes, "bitcast_convert")

    def _load(self, item: Load, condition: Value | None, *, stored: bool, other: str | None, type: str = "") -> Value:
        """`other`: the value where the mask is off, as memory holds it; of what is packed only 0."""
        if condition is None and item in self.copies:
            return self._copied(item, self.copies[item], stored=stored, type=type)
        pointer, axes = self.pointer(item.buffer, item.index, condition.axes if condition is not None else NONE, condition, type=type)
        buffer = self.body.plan.buffers[item.buffer]
        mask = self.mask(axes, condition)
        outside = f", other={other if buffer.packed is None else 0}" if other is not None and mask else ""
        text = f"tl.load({pointer}, mask={mask}{outside})" if mask else f"tl.load({pointer})"
        if buffer.packed is not None:
            byte = self.line(text, axes, f"{item.buffer}_bytes")
            below, own = self.dim(shift(buffer, item.index), condition)
            return self.line(from_byte(byte.text, below, item.dtype), byte.axes | own, item.buffer)
        if not stored:
            text = from_memory(text, item.dtype)
        return self.line(text, axes, f"{item.buffer}_bits" if stored and not type and item.dtype.name in EIGHT_BITS else item.buffer)

    def _is_always_there(self, item: Load, axes: Axes) -> bool:
        """True where an element is inside of its buffer for every index, and a condition that differs along these axes would have it read
        once for each place of one that it does not differ along."""
        buffer = self.body.plan.buffers[item.buffer]
        if self.extents is None or not all(
            self._is_inside(place, size, self.extents) for place, size in zip(item.index, buffer.shape, strict=True)
        ):
            return False
        return bool(axes - self.dim(address(buffer, item.index))[1])

    @staticmethod
    def _is_inside(place: Dim, size: Dim, extents: Extents) -> bool:
        """True where `place` is seen to be below `size`, also where other loops than its own have no index."""
        if any(name.startswith("pick:") for name in symbols(place)):
            return False
        own = {name for loop in symbols(place) & extents.keys() for name in symbols(extents[loop])}
        return symbols(size) <= own and is_within(place, 0, size, extents)

    def _copied(self, item: Load, copy: Copy, *, stored: bool, type: str) -> Value:
        """A tile by a bulk copy, which is 0 where the masks of a load are off."""
        texts = [place if isinstance(place, str) else self.dim(place)[0] for place in copy.places]
        if self.body.wide is not False:  # places are 32 bits wide: of indices, not of elements
            texts = [text if text.isdigit() else f"tl.cast({text}, tl.int32)" for text in texts]
        text = copy.text(self.body.tiles(copy.buffer, copy.begin, copy.tiles, type), texts)
        if not stored:
            text = from_memory(text, item.dtype)
        bits = stored and not type and item.dtype.name in EIGHT_BITS
        return self.line(text, frozenset(self.axes), f"{item.buffer}_bits" if bits else item.buffer)

    # ------------------------------------------------------------ choices

    def condition(self, bounds: Sequence[InBounds], outer: Value | None = None) -> Value:
        """True where all bounds hold; asked only where `outer` does."""
        parts: list[str] = []
        axes: Axes = NONE
        for bound in bounds:
            index, own = self.dim(bound.index, outer)
            low, low_axes = self.dim(bound.low, outer)
            high, high_axes = self.dim(bound.high, outer)
            axes |= own | low_axes | high_axes
            if not (bound.low == 0 and is_natural(substitute(bound.index, self.binding))):
                parts.append(f"({index} >= {low})")
            parts.append(f"({index} < {high})")
        text = " & ".join(parts) if len(parts) > 1 else parts[0][1:-1]
        if not axes:  # a condition on sizes alone may be a number of the compiler
            text = f"tl.cast({text}, tl.int1)"
        return self.line(text, axes, "inside")

    def _choose(self, item: Choose, condition: Value | None, *, stored: bool) -> Value:
        inside = self.condition(item.bounds, condition)
        within = self._both(condition, inside.text, inside.axes)
        if isinstance(item.inside, Load) and isinstance(item.outside, ScalarConstant):
            other = filling(item.outside.value, item.dtype)
            bits = item.dtype.name in EIGHT_BITS or self.body.plan.buffers[item.inside.buffer].packed is not None
            if other is not None and _is_other(item.outside, other, bits=bits):
                return self._load(item.inside, within, stored=stored, other="0" if bits else other)
        if item.inside == ScalarConstant(True, BOOL) and item.outside == ScalarConstant(False, BOOL):
            return inside
        without = self._both(condition, f"~{inside.text}", inside.axes)
        ask = self.stored if stored else self.computed
        first, second = ask(item.inside, within), ask(item.outside, without)
        if first.literal and second.literal:
            first = self.name(item.inside, first)
        text = f"tl.where({inside.text}, {first.text}, {second.text})"
        return self.line(text, inside.axes | first.axes | second.axes, "chosen")

    def _both(self, condition: Value | None, text: str, axes: Axes) -> Value:
        if condition is None:
            return Value(text, axes)
        return self.line(f"{condition.text} & {text}", condition.axes | axes, "inside")

    # ------------------------------------------------------------ stores

    def store(self, store: Store, axes: Axes, *, passing: bool = False) -> None:
        """Write a store of the tile along `axes`; `passing`: caches need not keep it."""
        value = self.stored(store.value)
        if value.literal:
            value = self.name(store.value, value)
        pointer, all_axes = self.pointer(store.buffer, store.index, axes)
        mask = self.mask(all_axes, None)
        more = (f", mask={mask}" if mask else "") + (', eviction_policy="evict_first"' if passing else "")
        text = f"tl.store({pointer}, {value.text}{more})"
        self.scopes[self._place(axes)].lines.append(text)


def _is_other(outside: ScalarConstant, text: str, *, bits: bool) -> bool:
    """True when `tl.load` takes the number as it is: it reads a plain one as f32, and where it reads `bits` only those of 0 are 0."""
    if bits:
        return text in ("0", "0.0")
    return outside.dtype.name != "f64" or outside.value in (0, 1, -1)
