"""Operands of products as bulk copies: which loads a tensor descriptor can say, and as what.

A descriptor sees memory as a tensor of at most five dims with one unit stride, the others multiples of 16 bytes, and brings whole blocks
of it; what is outside of the tensor comes as 0 (CUDA driver API, `cuTensorMapEncodeTiled`). So the place of an element must be a sum of
loop indices times strides: each loop is one dim of the tensor, of which a copy brings one index, but for those that a tile runs along.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from coset.ir.dims import Dim, multiply, substitute, subtract, symbols
from coset.lowering.kernels.addresses import address, terms_of
from coset.lowering.kernels.index_arithmetic import is_natural, is_positive, linear
from coset.lowering.kernels.kernel import Buffer, Load, Loop
from coset.lowering.triton.dims import split_index
from coset.lowering.triton.launch import INT32_LIMIT, CopyTiles

COPIED = frozenset({"f16", "bf16", "f32", "i8", "u8", "i16", "u16", "i32", "u32", "f8e4m3fn", "f8e5m2", "f8e8m0fnu"})
"""Element types in memory that are copied: a matrix unit takes them, or what is made of them in registers."""
ALIGNED = 128  # bits: what bases and strides are multiples of, and a block's rows have at least
_RANK, _BOX, _STRIDE = 5, 256, 2**43  # dims, elements of a block along one, bits between neighbours: the most


@dataclass(frozen=True)
class TileSide:
    """A side of a tile: it runs along the last of `loops`, `size` elements (the constexpr `block`) from the place `start` on, which is
    that of the tile among all indices of the loops."""

    loops: tuple[Loop, ...]
    block: str
    size: int
    start: str

    def places(self, names: Mapping[str, str]) -> dict[str, str] | None:
        """The first index of the tile for each loop, as text; None where a tile may reach over an end of the last loop."""
        *outer, last = self.loops
        if not outer:
            return {last.name: self.start}
        if not isinstance(last.extent, int) or last.extent % self.size:
            return None
        found = split_index(outer, f"({self.start} // {last.extent})", names)
        return {**found, last.name: f"{self.start} % {last.extent}"}


@dataclass(frozen=True)
class Copy:
    """A load of a tile as one bulk copy: from the element `begin` of the buffer on, the block of `tiles` at `places` (indices of loops, or
    text). `shape`: what is left of the block without dims of one index; `turned`: the tile is that transposed."""

    buffer: str
    begin: int
    tiles: CopyTiles
    places: tuple[Dim | str, ...]
    shape: tuple[str, str]
    turned: bool

    def text(self, parameter: str, places: Sequence[str]) -> str:
        """The tile in Triton."""
        found = f"{parameter}.load([{', '.join(places)}])"
        if len(self.tiles.block) > 2:
            found += f".reshape([{', '.join(self.shape)}])"
        return f"{found}.T" if self.turned else found


def copy_of(
    load: Load,
    buffer: Buffer,
    binding: Mapping[str, Dim],
    single: Sequence[Loop],
    sides: tuple[TileSide, TileSide],
    names: Mapping[str, str],
) -> Copy | None:
    """A load over the two `sides` of a tile, of which the first one's elements are the rows, as a copy; None where no descriptor says it.
    `single`: loops of which a tile has one index. `binding`: what the kernel's loops are over these and the sides' loops."""
    if buffer.packed is not None or buffer.strides is not None or buffer.held.name not in COPIED or not all(side.loops for side in sides):
        return None
    started = [side.places(names) for side in sides]
    if any(places is None for places in started):
        return None
    texts = {loop: text for places in started if places is not None for loop, text in places.items()}
    found = _affine(substitute(address(buffer, load.index), binding), (*single, *(loop for side in sides for loop in side.loops)))
    if found is None:
        return None
    begin, strides = found
    last = [side.loops[-1] for side in sides]
    units = [place for place, loop in enumerate(last) if strides.get(loop) == 1]
    if len(units) != 1 or not all(loop in strides for loop in last) or begin * buffer.held.bits % ALIGNED:
        return None
    unit = units[0]
    inner, outer = sides[unit], sides[1 - unit]
    loops = [loop for loop in strides if loop not in last] + [last[1 - unit], last[unit]]
    bits = buffer.held.bits
    if not all(_is_fitting(loop.extent, strides[loop], bits) for loop in loops[:-1]) or not _is_sized(loops[-1].extent):
        return None
    if len(loops) > _RANK or max(side.size for side in sides) > _BOX or inner.size * bits < ALIGNED:
        return None
    block: tuple[int | str, ...] = (*(1 for _ in loops[:-2]), outer.block, inner.block)
    tiles = CopyTiles(tuple(loop.extent for loop in loops), tuple(strides[loop] for loop in loops), block)
    places = tuple(texts.get(loop.name, loop.index) for loop in loops)
    return Copy(load.buffer, begin, tiles, places, (outer.block, inner.block), turned=unit == 0)


def _affine(place: Dim, loops: Sequence[Loop]) -> tuple[int, dict[Loop, Dim]] | None:
    """`place` as a number and a stride for each of `loops` that it differs along; None where it is no such sum."""
    strides: dict[Loop, Dim] = {}
    for loop in loops:
        stride = linear(place, loop.name)
        if stride is None or any(name.startswith(("loop:", "pick:")) for name in symbols(stride)):
            return None
        if stride != 0:
            strides[loop] = stride
            place = subtract(place, multiply(stride, loop.index))
    return (place, strides) if isinstance(place, int) else None


def _is_fitting(extent: Dim, stride: Dim, bits: int) -> bool:
    """True for a dim that a descriptor can have beside that of stride 1."""
    aligned = all(coefficient * bits % ALIGNED == 0 for _, coefficient in terms_of(stride))
    return aligned and is_positive(stride) and not (isinstance(stride, int) and stride * bits >= _STRIDE) and _is_sized(extent)


def _is_sized(extent: Dim) -> bool:
    return 0 < extent < INT32_LIMIT if isinstance(extent, int) else is_natural(extent)


def used_lines(lines: Sequence[str]) -> list[str]:
    """The lines of a function's body without assignments of what is not read later, in a next round of a loop either: a tile that is copied
    needs no places of its elements. Lines that are no plain assignments stay."""
    return _used(lines, set())[0]


def _used(lines: Sequence[str], wanted: set[str]) -> tuple[list[str], set[str]]:
    """The lines that stay where `wanted` is read behind them, and what they read of what is before them."""
    wanted = set(wanted)
    kept: list[str] = []
    end = len(lines)
    while end:
        begin = end - 1
        while _indent(lines[begin]) > _indent(lines[0]):
            begin -= 1
        line, body = lines[begin], lines[begin + 1 : end]
        end = begin
        if body:
            inside, before = _used(body, wanted)
            while not before <= wanted:  # what a round reads is made before the loop, or by the round before
                wanted |= before
                inside, before = _used(body, wanted)
            kept += reversed(inside)
        name, sign, rest = line.strip().partition(" = ")
        if sign and name.isidentifier():
            if name not in wanted:
                continue
            wanted.discard(name)
        else:
            rest = line
        wanted |= set(_words(rest))
        kept.append(line)
    return kept[::-1], wanted


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _words(text: str) -> Iterator[str]:
    word = ""
    for letter in f"{text} ":
        if letter.isalnum() or letter == "_":
            word += letter
        elif word:
            yield word
            word = ""
