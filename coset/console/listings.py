"""Lists on stdout: the rules, the ops and the machines that are known."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from coset.console.tables import CONSOLE, new_table
from coset.job.answer import versioned

if TYPE_CHECKING:
    from coset.ir.op import Op
    from coset.rules.library import RuleSet
    from coset.targets.target import Target


def show_rules(rules: RuleSet, as_json: bool) -> None:
    """The library, phase by phase."""
    rows = [(phase.name, rule) for phase in rules.phases for rule in phase.rules]
    if as_json:
        listed = [
            {"name": r.name, "phase": p, "numerics": r.numerics.word, "assurance": r.assurance, "file": r.place.file, "line": r.place.line}
            for p, r in rows
        ]
        print(json.dumps(versioned({"rules": listed})))
        return
    table = new_table("rule", "phase", "promise", "assurance", "what it says")
    for phase, rule in rows:
        table.add_row(escape(rule.name), phase, rule.numerics.word, rule.assurance, rule.document)
    CONSOLE.print(table)


def show_ops(as_json: bool) -> None:
    """Every registered op with what gives it its meaning, and which of ONNX's ops have none yet."""
    import coset.dialects
    from coset.dialects.onnx.node import DEFINITIONS
    from coset.dialects.ort.nodes import DOMAIN
    from coset.dialects.ort.undefined import UNDEFINED
    from coset.ir.registry import all_ops
    from coset.rules.nodes import NODE

    assert coset.dialects
    ops = [op for op in all_ops() if not op.name.startswith(NODE)]  # those say what nodes of others become
    standard = _standard()
    missing = [name for name, kind in standard.items() if kind == "none"]
    if as_json:
        entries = [
            {"name": op.name, "operands": list(op.operands), "attributes": [a.name for a in op.attributes], "meaning": _meaning(op)}
            for op in ops
        ]
        without = [op.name for op in ops if _meaning(op) == "none"]
        print(json.dumps(versioned({"ops": entries, "onnx": standard, "without": without})))
        return
    table = new_table("op", "meaning", "operands", "attributes")
    table.columns[2].max_width, table.columns[3].max_width = 40, 90
    for op in ops:
        table.add_row(op.name, _meaning(op), ", ".join(op.operands), ", ".join(a.name for a in op.attributes))
    CONSOLE.print(table)
    counts = Counter(standard.values())
    CONSOLE.print(
        f"ONNX: {counts['rules']} ops defined in the rule language, {counts['term']} by the term that a node of them is, "
        f"{counts['no tensors']} on strings, sequences or optionals, {counts['none']} without a definition: {', '.join(missing) or 'none'}"
    )
    defined = sum(name.startswith(DOMAIN) for name in DEFINITIONS)
    CONSOLE.print(
        f"com.microsoft on CPU: {defined} of {defined + len(UNDEFINED)} ops defined, without a definition: {', '.join(sorted(UNDEFINED))}"
    )


def _standard() -> dict[str, str]:
    """Each op of the ONNX standard with what says what it means: `rules` (a definition in the rule language), `term` (the hub term that a
    node of it is), `none`, or `no tensors` where it works on something else."""
    from coset.dialects.onnx.node import BUILDERS, DEFINITIONS
    from coset.frontends.onnx.coverage import standard_ops
    from coset.ir.op import find_op
    from coset.rules.definition import is_defined

    found = {}
    for name, on_tensors in standard_ops().items():
        op = find_op(f"onnx.{name}")
        if op is not None and is_defined(op):
            found[name] = "rules"
        elif name in DEFINITIONS or name in BUILDERS:
            found[name] = "term"
        else:
            found[name] = "none" if on_tensors else "no tensors"
    return found


def _meaning(op: Op) -> str:
    """What says what an op means: NumPy code, a definition in the rule language, or nothing (it is typed only)."""
    from coset.rules.definition import is_defined

    return "definition" if is_defined(op) else "numpy" if op.meaning is not None else "leaf" if op.has("leaf") else "none"


def show_targets(as_json: bool, own: Sequence[Target] = ()) -> None:
    """Every machine of ours, or the user's `own` ones, with its rates and what is behind its numbers."""
    from coset.console.machines import machines, memory, origins, peak, quantity
    from coset.targets.document import other_names

    found, also = own or machines(), {} if own else other_names()
    if as_json:
        listed = [{**_target_summary(t), "aliases": [a for a, name in also.items() if name == t.name]} for t in found]
        print(json.dumps(versioned({"targets": listed})))
        return
    table = new_table("target", "machine", "takes", ">f32", ">bf16", ">i8", ">memory", ">measured", ">published", ">assumed")
    for target in found:
        rates = (peak(target, dtype) for dtype in ("f32", "bf16", "i8"))
        counts = origins(target)
        table.add_row(
            target.name, target.title, target.dialect, *(quantity(rate.value, rate.unit) if rate else "" for rate in rates), memory(target),
            *(str(counts[word]) for word in ("measured", "published", "assumed")),
        )  # fmt: skip
    CONSOLE.print(table)
    each = "" if own else ": docs/targets.md has each"
    CONSOLE.print(f"products and memory at their fastest; how many numbers are measured, published and assumed{each}")
    CONSOLE.print("; ".join(f"{other} is another name of {name}" for other, name in also.items()))


def _target_summary(target: Target) -> dict[str, Any]:
    from coset.console.machines import origins, peak

    rates = {dtype: rate.value for dtype in ("f32", "f16", "bf16", "i8") if (rate := peak(target, dtype)) is not None}
    numbers = {name: {"value": n.value, "unit": n.unit, "source": n.source} for name, n in target.numbers.items()}
    return {"name": target.name, "title": target.title, "dialect": target.dialect, "bases": list(target.bases), "products": rates,
            "numbers": numbers, "origins": dict(origins(target)), "notes": target.notes}  # fmt: skip
