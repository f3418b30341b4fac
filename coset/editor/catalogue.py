"""What a rule may name, as plain data: ops, rules of the library, functions and words of the language."""

from __future__ import annotations

import inspect
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from coset.console.op_listing import described_op, op_lines
from coset.editor.buffer import RuleBuffer
from coset.ir.dtype_classes import CLASSES
from coset.ir.op import Op
from coset.ir.registry import all_dialects, all_ops
from coset.ir.types import DTYPES
from coset.rules.definition import definition_of, is_defined
from coset.rules.equation import EXCEPTIONS, NUMERICS_ORDER
from coset.rules.functions import FUNCTIONS
from coset.rules.library import DEFAULT, read_text, rule_files
from coset.rules.lock import NAME, read_lock
from coset.rules.names import ATTRIBUTE_KINDS, CONVENTIONAL, OP_TRAITS, SUGAR
from coset.rules.nodes import NODE
from coset.rules.parsed import parse
from coset.rules.sugar import USAGES
from coset.rules.unexpected import FACTS

PROMISES = {  # docs/numerics.md says it in full
    "exact": "both sides are equal bit by bit",
    "reassociates": "exact evaluation gives one value for both sides; stored results differ by rounding only",
    "real": "both sides are equal over the real numbers; infinities and NaN may differ",
    "approx": "both sides differ by no more than the bound behind it",
    "lossy": "the sides may differ",
}
FACTS_SAID = {
    "const": "the value is known when the program is built", "varying": "the value depends on an input",
    "nonnegative": "no element is less than 0", "positive": "each element is more than 0", "finite": "no element is infinite or NaN",
    "unique_indices": "no two of the integers are equal", "sparse": "of four neighbours in a row at most two are not 0 (2:4)",
}  # fmt: skip
SUGAR_SAID = {
    "splat": "a scalar in every element of the shape that is asked for", "scalar": "a number of an element type, of rank 0",
    "full": "a number in every element of a shape", "host": "the number of a dim, as an integer of rank 0",
    "bcast": "a broadcast to a shape; dims are aligned at the right", "swap_last": "the last two axes swapped",
    "get": "one of the results of a term", "sum": "the sum over axes", "max": "the largest element over axes",
    "min": "the smallest element over axes", "prod": "the product over axes",
}  # fmt: skip


def catalogue() -> dict[str, Any]:
    """All that a rule may name, by kind."""
    names = {name: {"usage": each.usage, "document": each.document} for name, each in FUNCTIONS.items() if name.isidentifier()}
    for name in SUGAR:  # some are functions of lists, too: of terms they are sugar
        usage = USAGES[name][1] if name in USAGES else f"{name}(x, axes)"
        also = f"\n\n`{names[name]['usage']}`: {names[name]['document']}" if name in names else ""
        names[name] = {"usage": usage, "document": f"{SUGAR_SAID[name]}{also}"}
    return {
        "ops": {op.name: op_data(op) for op in all_ops() if not op.name.startswith(NODE)},
        "rules": library_rules(),
        "functions": names,
        "dialects": sorted(all_dialects()),
        "promises": {word: PROMISES[word] for word in NUMERICS_ORDER},
        "exceptions": list(EXCEPTIONS),
        "traits": {name: f"an elementwise op of {count} operands" for name, count in OP_TRAITS.items()},
        "facts": {fact: FACTS_SAID[fact] for fact in FACTS},
        "kinds": list(ATTRIBUTE_KINDS),
        "classes": list(CLASSES),
        "conventional": CONVENTIONAL,
        "dtypes": list(DTYPES),
    }


def op_data(op: Op, buffer: RuleBuffer | None = None) -> dict[str, Any]:
    """An op with its operands, attributes, meaning, and the place of its definition: a file and a line from 1. The definition stands in
    `buffer`, or in a stored file."""
    described = described_op(op)
    head, *rest = op_lines(described)
    file, line, text, assurance = "", 0, "", ""
    if is_defined(op):
        definition = definition_of(op)
        place, assurance = definition.entry.place, definition.assurance
        file, line, text = place.file, place.line, _source(buffer or _stored(place.file), op.name)
    else:
        file, line = _written_at(op)
    return {
        "usage": head, "document": described["document"], "lines": rest[bool(described["document"]) :], "operands": described["operands"],
        "attributes": described["attributes"], "file": file, "line": line, "text": text, "assurance": assurance,
    }  # fmt: skip


@lru_cache(maxsize=256)
def _stored(file: str) -> RuleBuffer:
    """The text of a rule file as it is stored; empty if it is not."""
    path = Path(file)
    return RuleBuffer(path.read_text(encoding="utf-8") if path.exists() else "")


def _source(buffer: RuleBuffer, name: str) -> str:
    """The entry of this name as it is written."""
    entry = buffer.entry_named(name)
    return "" if entry is None else buffer.source(entry)


def _written_at(op: Op) -> tuple[str, int]:
    """Where the NumPy meaning of a primitive op is written, or its type rule."""
    for function in (op.meaning, op.infer):
        inner = inspect.unwrap(function.func if isinstance(function, partial) else function) if function is not None else None
        code = getattr(inner, "__code__", None)
        if code is not None and Path(code.co_filename).exists():
            return str(Path(code.co_filename).resolve()), code.co_firstlineno
    return "", 0


def library_rules() -> dict[str, Any]:
    """The rules of the library with what they say and what was shown of them."""
    found = {}
    for path in rule_files(DEFAULT):
        lock = read_lock(path.parent / NAME)
        file, _ = parse(read_text(path), str(path))
        for rule in file.rules:
            line = lock.get(rule.name)
            found[rule.name] = {
                "document": rule.document, "text": _source(_stored(str(path)), rule.name), "file": str(path), "line": rule.place.line,
                "assurance": "" if line is None else line.assurance,
            }  # fmt: skip
    return found
