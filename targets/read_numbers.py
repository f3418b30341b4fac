"""The numbers of a target's file: rates, curves and kernels, each with its unit and its source, told in place or by a name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from coset.ir.types import DTYPES
from coset.targets.document import Entry, own_document, own_file, target_files
from coset.targets.keys import CURVE, CURVE_LIKE, KERNEL, NUMBER, RATES, RATES_LIKE, TILES
from coset.targets.target import EVERY, Curve, Kernel, Rate, Tiles
from coset.targets.values import DocumentValues

Found = TypeVar("Found")
SECONDS, WORK = ("s",), ("FLOP/s", "element/s")
CURVES = {"bandwidth": ("B", "B/s"), "rows": ("rows", "share"), "work": ("FLOP", "share")}  # of a kernel: what it depends on, and its unit
UNITS = {
    "bandwidth": ("B/s",), "launch": SECONDS, "memory": ("B",), "streams": ("streams",), "wait": SECONDS, "windows": ("share",),
}  # fmt: skip  # of the `numbers` that other things read
STOREHOUSES = {"launch": "launches", "piece": "launches", "rates": "rates", "bandwidth": "curves", "rows": "curves", "work": "curves"}


@dataclass
class NumberReader(DocumentValues):
    """Reads the numbers of one document; `others` read those of the files that it names, `known` is what was read."""

    others: dict[str, NumberReader] = field(default_factory=dict)
    known: dict[tuple[str, str], Any] = field(default_factory=dict)

    # ------------------------------------------------------------ numbers with units and sources

    def source(self, found: Mapping[str, Entry]) -> str:
        """What is behind a number: an entry of `sources` or a sentence, with the number's own note."""
        name = self.text(found["source"])
        if name is None:
            return ""
        sources = self.document.sections["sources"]
        text = name
        if name in sources:
            text = sources[name].value if isinstance(sources[name].value, str) else name
        elif len(name.split()) < 2 and self.document.is_known_not(name):
            listed = f"a sentence, or one of [sources]: {', '.join(sources) or 'none'}"
            self.unknown(found["source"], f"there is no source `{name}`", name, list(sources), listed)
        note = self.text(found["note"]) if "note" in found else None
        return f"{text}; {note}" if note else text

    def unit(self, entry: Entry, units: tuple[str, ...]) -> str:
        unit = self.text(entry)
        if unit is not None and units and unit not in units:
            self.wrong(entry, f"`{unit}` is no unit that goes here", f"the unit is {' or '.join(units)}")
        return unit or ""

    def number(self, entry: Entry, units: tuple[str, ...] = (), *, zero: bool = False) -> Rate | None:
        """A number in one of `units`; in any where none are named."""
        found = self.table(entry, NUMBER)
        if found is None:
            return None
        value = self.amount(found["value"], zero=zero)
        unit, source = self.unit(found["unit"], units), self.source(found)
        return None if value is None else Rate(value, unit, source)

    def fact(self, key: str) -> Rate | None:
        """An entry of `numbers`."""
        return self.named("numbers", key, lambda entry: self.number(entry, UNITS.get(key, ())))

    def launch(self, entry: Entry) -> Rate | None:
        return self.number(entry, SECONDS, zero=True)

    def rates(self, entry: Entry) -> dict[str, Rate] | None:
        """Rates by dtype, which share unit and source; or one for all that is `times` that of a dtype in those that it is `like`."""
        if isinstance(entry.value, dict) and "like" in entry.value:
            return self.rate_like(entry)
        found = self.table(entry, RATES)
        if found is None:
            return None
        unit, source = self.unit(found["unit"], WORK), self.source(found)
        values = {key: self.amount(each) for key, each in found.items() if key == EVERY or key in DTYPES}
        return {key: Rate(value, unit, source) for key, value in values.items() if value is not None}

    def rate_like(self, entry: Entry) -> dict[str, Rate] | None:
        found = self.table(entry, RATES_LIKE)
        if found is None:
            return None
        other, dtype = self.named_by(found["like"], "rates", NumberReader.rates), self.text(found["dtype"])
        times, source = self.amount(found["times"]), self.source(found)
        if dtype is not None and other is not None and dtype not in other:
            self.wrong(found["dtype"], f"there is no rate of `{dtype}` there", f"there are: {', '.join(other)}")
            return None
        if other is None or dtype is None or times is None:
            return None
        rate = Rate(other[dtype].value * times, other[dtype].unit, source)
        return {EVERY: rate, dtype: rate}

    def curve(self, entry: Entry) -> Curve | None:
        """Points of its own, whose y are shares of the number that `of` names where it is there; or those of the curve that it is `like`.
        Both are multiplied by `times`."""
        if isinstance(entry.value, dict) and "like" in entry.value:
            return self.curve_like(entry)
        found = self.table(entry, CURVE)
        if found is None:
            return None
        x, unit, source = self.unit(found["x"], ("B", "FLOP", "rows")), self.unit(found["unit"], ("B/s", "share")), self.source(found)
        points = self.points(found["points"])
        factor = self.factor(found, unit)
        if points is None or factor is None:
            return None
        if unit == "share" and any(y > 1 for _, y in points):
            self.wrong(found["points"], "a share is above 1", "shares lie between 0 and 1")
        return Curve(tuple((a, b * factor) for a, b in points) if factor != 1 else points, x, unit, source)

    def factor(self, found: Mapping[str, Entry], unit: str) -> float | None:
        """What the points are to be multiplied by."""
        times = self.amount(found["times"]) if "times" in found else 1
        if "of" not in found or times is None:
            return times
        name = self.text(found["of"])
        if name is None or not self.named_entry(found["of"], "numbers", name):
            return None
        full = self.fact(name)
        if full is not None and full.unit != unit:
            help = "name a number of the curve's unit, or leave `of` out"
            self.wrong(found["of"], f"`{name}` is in {full.unit}, and the curve in {unit}", help)
        return None if full is None else full.value * times

    def curve_like(self, entry: Entry) -> Curve | None:
        found = self.table(entry, CURVE_LIKE)
        if found is None:
            return None
        other = self.named_by(found["like"], "curves", NumberReader.curve)
        times, source = self.amount(found["times"]), self.source(found)
        if other is None or times is None:
            return None
        return Curve(tuple((x, y * times) for x, y in other.points), other.x, other.unit, source)

    def points(self, entry: Entry) -> tuple[tuple[float, float], ...] | None:
        """Pairs of numbers by rising x."""
        found: list[tuple[float, float]] = []
        listed = self.array(entry, "points")
        for each in listed:
            pair = each.value
            if not isinstance(pair, list) or len(pair) != 2:
                self.wrong(each, "is no point", "a pair of numbers: [x, y]")
                continue
            x, y = (self.amount(item) for item in each.listed())
            if x is not None and y is not None:
                if found and x <= found[-1][0]:
                    self.wrong(each, f"x does not rise: {x} after {found[-1][0]}", "points stand by rising x")
                found.append((x, y))
        if isinstance(entry.value, list) and not listed:
            self.wrong(entry, "has no points", "[[x, y], ..] by rising x; one point is the same number everywhere")
        return tuple(found) if found and len(found) == len(listed) else None

    # ------------------------------------------------------------ kernels

    def kernel(self, entry: Entry) -> Kernel | None:
        """A kernel, or that of another file: `file:name`."""
        if isinstance(entry.value, str):
            if ":" in entry.value:
                return self.named_by(entry, "kernels", NumberReader.kernel)
            self.wrong(entry, "is no kernel", 'a table, or the kernel of another file: "cpu-onnxruntime:matmul"')
            return None
        found = self.table(entry, KERNEL)
        if found is None:
            return None
        launch = self.part(found["launch"], "launch", NumberReader.launch)
        piece = self.part(found["piece"], "piece", NumberReader.launch) if "piece" in found else None
        rates = self.part(found["rates"], "rates", NumberReader.rates) if "rates" in found else {}
        curves = {key: self.part(found[key], key, NumberReader.curve) for key in CURVES if key in found}
        for key, curve in curves.items():
            if curve is not None and (curve.x, curve.unit) != CURVES[key]:
                x, unit = CURVES[key]
                self.wrong(found[key], f"a curve in {curve.unit} over {curve.x} is no {key}", f"one in {unit} over {x}")
        if launch is None or rates is None or None in curves.values() or ("piece" in found and piece is None):
            return None
        tiles = self.tiles(found["tiles"]) if "tiles" in found else None
        return Kernel(launch, rates, curves.get("bandwidth"), curves.get("rows"), curves.get("work"), tiles, piece)

    def tiles(self, entry: Entry) -> Tiles | None:
        found = self.table(entry, TILES)
        if found is None:
            return None
        rows, columns, depth = (self.count(found[key], 1) for key in ("rows", "columns", "depth"))
        return Tiles(rows, columns, depth, self.source(found)) if rows and columns and depth else None

    def part(self, entry: Entry, key: str, make: Callable[[NumberReader, Entry], Found | None]) -> Found | None:
        """What a kernel is made of: told in place, or by its name."""
        if isinstance(entry.value, str):
            return self.named_by(entry, STOREHOUSES[key], make)
        return make(self, entry)

    def named_by(self, entry: Entry, section: str, make: Callable[[NumberReader, Entry], Found | None]) -> Found | None:
        """The entry of `section` that a text names: of this file and its bases, or of another target as `file:name`."""
        text = self.text(entry)
        if text is None:
            return None
        file, _, name = text.rpartition(":")
        reader = self
        if file:
            if own_file(file) is None:
                known = list(target_files())
                self.unknown(entry, f"there is no target `{file}` to take `{name}` from", file, known, f"there are: {', '.join(known)}")
                return None
            reader = self.others.setdefault(file, NumberReader(own_document(file), []))
        there = reader.document.sections[section]
        if reader is self:
            if not self.named_entry(entry, section, name):
                return None
        elif name not in there:
            what = f"there is no `{name}` in [{section}] of {file}"
            self.unknown(entry, what, name, list(there), f"there are: {', '.join(there) or 'none'}")
            return None
        if reader.known.get((section, name), self) is BUSY:
            self.wrong(entry, f"`{name}` is made from itself", "name another entry, or write the numbers here")
            return None
        return reader.named(section, name, lambda entry: make(reader, entry))

    def named(self, section: str, name: str, make: Callable[[Entry], Found | None]) -> Found | None:
        """The entry, read once."""
        key = (section, name)
        if key not in self.known:
            self.known[key] = BUSY
            self.known[key] = make(self.document.sections[section][name])
        found: Found | None = self.known[key]
        return found


BUSY = object()
"""In place of what is being read: whoever finds it there needs itself."""
