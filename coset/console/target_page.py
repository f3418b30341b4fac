"""docs/targets.md: every machine with its numbers and their sources, and what runs where."""

from __future__ import annotations

from collections.abc import Sequence

from coset.console.machines import FAMILIES, alike, curves, family, legal, machines, memory, origins, peak, quantity
from coset.ir.types import DTYPES
from coset.targets.condition import BOUNDED, CONDITIONS, says
from coset.targets.document import other_names
from coset.targets.target import EVERY, Curve, Form, Kernel, Rate, Target

HEAD = """\
# Targets

*Written by `coset targets --docs docs/targets.md`; edit `targets/*.toml`, not this page.*

A target is one file of data, `targets/NAME.toml`: what a machine with its runtime can run (forms of ops), how fast (kernels), and how
it is told to run a program. Every number has its unit and its source. *Measured* numbers come from this project's scripts or from the
machine itself, *published* ones from the vendor or from the runtime's own model of the machine, *assumed* ones say why. A target of
your own is a file too: `--target mine.toml`; [adding-a-target.md](adding-a-target.md) shows how.
"""
WRITTEN = {
    "onnx": "ONNX, by `coset optimize -o out.onnx`",
    "stablehlo": "StableHLO, by `coset optimize -o out.mlir`",
    "torch": "a Python package with Triton kernels, by `coset lower`",
    "tosa": "TOSA, which coset does not write yet: it says what of a model has no form",
}


def target_page() -> str:
    """The page, in Markdown."""
    found = machines()
    parts = [HEAD, _overview(found), _families(found), _reasons(found), _conditions(), *(_machine(target) for target in found)]
    return "\n".join(part.rstrip() + "\n" for part in parts)


def _table(*rows: Sequence[str], right: int = 0) -> str:
    """A table whose first row is its head; columns from `right` on are numbers."""
    head, *body = rows
    rule = ["---:" if right and place >= right else "---" for place in range(len(head))]
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, rule, *body)) + "\n"


def _overview(found: Sequence[Target]) -> str:
    also = other_names()
    rows: list[Sequence[str]] = [("target", "machine", "f32", "bf16", "i8", "memory", "measured", "published", "assumed")]
    for target in found:
        rates = [peak(target, dtype) for dtype in ("f32", "bf16", "i8")]
        names = "".join(f", `{other}`" for other, name in also.items() if name == target.name)
        counts = origins(target)
        rows.append((
            f"[`{target.name}`](#{target.name}){names}", target.title, *(quantity(rate.value, rate.unit) if rate else "" for rate in rates),
            memory(target), *(str(counts[word]) for word in ("measured", "published", "assumed")),
        ))  # fmt: skip
    return "## Machines\n\nProducts at their fastest, memory at its fastest, and what is behind the numbers:\n\n" + _table(*rows, right=2)


# ---------------------------------------------------------------- what runs where


def _title(group: Sequence[Target]) -> str:
    return ", ".join(f"`{target.name}`" for target in group)


def _families(found: Sequence[Target]) -> str:
    """Families of ops by machines; machines that run the same are one column."""
    groups = alike(found)
    rows: list[Sequence[str]] = [["ops", *map(_title, groups)]]
    for name in FAMILIES:
        ops = family(name)
        cells = []
        for group in groups:
            there = [op for op in ops if legal(group[0], op)]
            cells.append(_cell(group[0], there, len(ops)))
        rows.append([name, *cells])
    text = """## What runs where

*all*: every op of the family, at any element type and shape; element types, *some types* or *some shapes*: with these limits; *n of m*:
some of the ops. The next section says which, and why not. An op that is not legal stands in the way of a program, unless a rule
rewrites it into ops that are. This is about ops of the hub, which rules may bring in: a node of an ONNX model that no rule takes is
written back to ONNX as it came, and there the element types of a user's own ops are the user's choice.
"""
    return text + "\n" + _table(*rows)


def _cell(target: Target, there: Sequence[str], count: int) -> str:
    if not there:
        return "none"
    forms = [form for op in there for form in _forms(target, op)]
    words = [] if len(there) == count else [f"{len(there)} of {count}"]
    if all(form.dtypes is not None for form in forms):
        words.append(_dtypes(frozenset().union(*(form.dtypes or () for form in forms))))
    elif any(form.dtypes is not None for form in forms):
        words.append("some types")
    if any(all(form.conditions for form in _forms(target, op)) for op in there):
        words.append("some shapes")
    return ", ".join(words) or "all"


def _forms(target: Target, op: str) -> tuple[Form, ...]:
    return target.forms.get(op, (target.default,))


def _dtypes(found: frozenset[str]) -> str:
    """Element types, a range of widths as one word."""
    ordered = [name for name in DTYPES if name in found]
    kinds = {
        "floats": [name for name in ordered if name in ("f64", "f32", "f16", "bf16")],
        "signed": [name for name in ordered if name in ("i64", "i32", "i16", "i8")],
        "unsigned": [name for name in ordered if name in ("u64", "u32", "u16", "u8")],
    }
    rest = [name for name in ordered if not any(name in kind for kind in kinds.values())]
    parts = ["all integers"] if len(kinds["signed"] + kinds["unsigned"]) == 8 else [*kinds["signed"], *kinds["unsigned"]]
    return " ".join([*kinds["floats"], *parts, *rest])


def _reasons(found: Sequence[Target]) -> str:
    parts = ["## Why not\n"]
    for group in alike(found):
        lines = [line for name in FAMILIES if (line := _limits(group[0], name))]
        parts.append(f"**{_title(group)}**: " + ("everything above runs.\n" if not lines else "\n\n" + "\n".join(lines) + "\n"))
    return "\n".join(parts)


def _limits(target: Target, name: str) -> str:
    """One line on a family: the ops without a kernel, and what those that have one ask for."""
    ops = family(name)
    missing = [op for op in ops if not legal(target, op)]
    asked: dict[str, list[str]] = {}
    for op in ops:
        if op not in missing and (limit := _limit(_forms(target, op))):
            asked.setdefault(limit, []).append(op)
    words = [f"{_ops(listed)}: {limit}" for limit, listed in asked.items()]
    words += [f"no kernel for {_ops(missing)}"] if missing else []
    return f"- {name}: {'; '.join(words)}" if words else ""


def _ops(names: Sequence[str]) -> str:
    return ", ".join(f"`{name.removeprefix('stablehlo.')}`" for name in names)


def _limit(forms: Sequence[Form]) -> str:
    """What a term must be to have a form; alternatives with the same element types together."""
    by_dtypes: dict[frozenset[str] | None, list[tuple[str, ...]]] = {}
    for form in forms:
        by_dtypes.setdefault(form.dtypes, []).append(form.conditions)
    if None in by_dtypes and () in by_dtypes[None]:
        return ""
    parts = []
    for dtypes, conditions in by_dtypes.items():
        what = "any type" if dtypes is None else _dtypes(dtypes)
        shared = [word for word in conditions[0] if all(word in others for others in conditions)]
        parts.append(what + (f" with {' '.join(f'`{word}`' for word in shared)}" if shared else ""))
    return " or ".join(dict.fromkeys(parts))


def _conditions() -> str:
    rows = [("condition", "it holds where"), *((f"`{word}`", condition.says) for word, condition in CONDITIONS.items())]
    rows += [(f"`{head}N`", says(f"{head}8").replace("8", "N")) for head in BOUNDED]
    return "## Conditions\n\nThe words that a form's `conditions` are made of:\n\n" + _table(*rows)


# ---------------------------------------------------------------- one machine


class _Notes:
    """Sources of one machine, numbered as they are first needed."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def mark(self, *sources: str) -> str:
        return "[" + ", ".join(dict.fromkeys(str(self.numbers.setdefault(source, len(self.numbers) + 1)) for source in sources)) + "]"

    def listed(self) -> str:
        return "\n".join(f"{number}. {source}" for source, number in self.numbers.items())


def _machine(target: Target) -> str:
    notes = _Notes()
    parts = [f"## {target.name}\n", f"{target.title[0].upper()}{target.title[1:]}. It is given {WRITTEN[target.dialect]}.\n"]
    parts += [target.notes.strip() + "\n"] if target.notes.strip() else []
    if target.casts:
        parts.append(f"Computed in another type: {', '.join(f'{one} in {other}' for one, other in target.casts.items())}.\n")
    if numbers := _numbers(target):
        rows = [(name.replace("_", " "), f"{quantity(n.value, n.unit)} {notes.mark(n.source)}") for name, n in numbers.items()]
        parts.append(_table(("number", "value"), *rows))
    head = ("kernel", "launch", "work", "memory", "few rows, little work, tiles", "sources")
    parts += [_table(head, *(_kernel_row(name, kernel, notes) for name, kernel in target.kernels.items())), notes.listed() + "\n"]
    return "\n".join(parts)


def _numbers(target: Target) -> dict[str, Rate]:
    """What is known of a machine beside its kernels, and the bounds of what is done for it."""
    merged = {} if target.merges is None else {"products of one operand are tried as one up to": target.merges}
    alone = {} if target.sessions is None else {"one thread runs programs below": target.sessions.alone}
    return {**target.numbers, **merged, **alone}


def _kernel_row(name: str, kernel: Kernel, notes: _Notes) -> tuple[str, ...]:
    launch = quantity(kernel.launch.value, "s") if kernel.launch.value else "none"
    launch += f", a piece {quantity(kernel.piece.value, 's')}" if kernel.piece is not None else ""
    shares = [f"{what} {_span(curve)}" for what, curve in curves(kernel).items() if what != "memory"]
    if kernel.tiles is not None:
        shares.append(f"tiles {kernel.tiles.rows} x {kernel.tiles.depth} x {kernel.tiles.columns}")
    sources = [kernel.launch.source, *(rate.source for rate in kernel.rates.values()), *(curve.source for curve in curves(kernel).values())]
    sources += [part.source for part in (kernel.tiles, kernel.piece) if part is not None]
    return (
        f"`{name}`", launch, _rates(kernel), _span(kernel.bandwidth) if kernel.bandwidth else "none", ", ".join(shares),
        notes.mark(*sources),
    )  # fmt: skip


def _rates(kernel: Kernel) -> str:
    """Rates by dtype, equal ones together, that of all other dtypes last."""
    by_value: dict[str, list[str]] = {}
    for dtype, rate in kernel.rates.items():
        if dtype != EVERY:
            by_value.setdefault(quantity(rate.value, rate.unit), []).append(dtype)
    words = [f"{' '.join(dtypes)} {value}" for value, dtypes in by_value.items()]
    if EVERY in kernel.rates:
        rest = kernel.rates[EVERY]
        words.append(f"{'others ' if words else ''}{quantity(rest.value, rest.unit)}")
    return "<br>".join(words) or "none"


def _span(curve: Curve) -> str:
    """The values of a curve, from the least to the most."""
    values = [y for _, y in curve.points]
    if curve.unit == "share":
        return f"from {min(values):.2g}"
    low, high = (quantity(value, curve.unit) for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"
