"""False rules that are made of the library's by one change each, with an input that shows it (`benchmarks/attacks/generated.rules`)."""

from __future__ import annotations

import random
import sys
from collections import Counter
from pathlib import Path

from benchmarks.oracle_draws import Witness, witness
from benchmarks.rule_changes import Change, shown, shown_all
from benchmarks.rule_falsehoods import falsehoods
from benchmarks.rule_mutants import library
from coset.ir.errors import CosetError
from coset.rules import syntax
from coset.rules.elaborate import rules_of
from coset.rules.parser import parse
from coset.rules.typecheck import type_errors

USE = "use stablehlo as hlo, chlo, onnx, kernel, kernels, part\n"
HEAD = (
    "# False rules made of the library's by one change each (`python -m benchmarks.false_rules --generate`): what was changed\n"
    "# stands in the sentence, an input that shows it below.\n"
)
EACH = 3  # of one rule at most
SECONDS = 2.0  # to look for an input, for each form that is looked at
FORMS = 4


def generate(path: Path, count: int, seed: int) -> None:
    """Write `count` false rules: changes of the library's rules in an order drawn by `seed`, each shown to be false by an input."""
    entries = library()
    random.Random(seed).shuffle(entries)
    found: list[str] = []
    of_kinds: Counter[str] = Counter()
    for entry, _ in entries:
        changes = falsehoods(entry)
        random.Random(f"{seed}:{entry.name}").shuffle(changes)
        changes.sort(key=lambda change: of_kinds[change.kind])  # rare kinds first
        own = 0
        for change in changes[: 3 * EACH]:
            if own == EACH or len(found) == count:
                break
            text = _false(change, f"{entry.name}_{len(found)}", seed)
            if text:
                own += 1
                of_kinds[change.kind] += 1
                found.append(text)
                print(f"{len(found)}/{count} {entry.name}: {change.kind}, {change.text}", file=sys.stderr, flush=True)
                path.write_text(HEAD + USE + "\n" + "\n".join(found))


def _false(change: Change, name: str, seed: int) -> str:
    """The text of the changed rule with an input that shows that it is false, or nothing."""
    document = f"{change.kind}, {change.where}: {change.text}".replace('"', "'")
    return shown_false(written(change.entry, name, document), seed)


def shown_false(text: str, seed: int) -> str:
    """The text of a rule with an input that shows that it is false; nothing where none was found, or it cannot be read."""
    try:
        file, errors = parse(USE + text, "generated.rules")
        if errors or len(file.rules) != 1:
            return ""
        rules, errors = rules_of(file.rules[0], {name: dialect for name, dialect, _ in file.dialects})
        if errors or not rules or type_errors(rules):
            return ""
        found: Witness | None = next((one for rule in rules[:FORMS] if (one := witness(rule, seed, SECONDS)) is not None), None)
    except CosetError:
        return ""
    return f"{text}  # found: {found}\n" if found is not None else ""


def written(entry: syntax.RuleEntry, name: str, document: str) -> str:
    """An entry as a file has it."""
    declarations = ", ".join(map(_declaration, entry.declarations))
    arrow = "<=>" if entry.both else "=>"
    lines = [f"rule {name}{' : ' + ', '.join(entry.tags) if entry.tags else ''}", f'  "{document}"']
    lines += [f"  for {declarations}"] if declarations else []
    lines.append(f"  {_sides(entry.left, entry.roots)} {arrow} {_sides(entry.right, entry.roots)}")
    lines += [f"  with {', '.join(f'{local.name} = {shown(local.value)}' for local in entry.locals)}"] if entry.locals else []
    lines += [f"  where {shown(entry.condition)}"] if entry.condition is not None else []
    promise = " ".join(filter(None, (entry.promise.word, entry.promise.bound)))
    exceptions = f" except {', '.join(entry.promise.exceptions)}" if entry.promise.exceptions else ""
    return "\n".join([*lines, f"  numerics {promise}{exceptions}"]) + "\n"


def _sides(side: syntax.Expression, roots: int) -> str:
    return ", ".join(map(shown, side.operands)) if roots > 1 and isinstance(side, syntax.Operation) else shown(side)


def _declaration(declared: syntax.Declaration | syntax.OpVariable) -> str:
    if isinstance(declared, syntax.OpVariable):
        return f"op {declared.name}: {declared.trait}"
    kind = declared.kind
    if isinstance(kind, syntax.TensorKind):
        text = f"{kind.fact + ' ' if kind.fact else ''}{kind.dtype}{shown_all(kind.dims)}"
    else:
        text = kind.word + (f"({', '.join(map(shown, kind.arguments))})" if kind.arguments else "")
    default = f" = {shown(declared.default)}" if declared.default is not None else ""
    return f"{declared.name}{'..' if declared.variadic else '?' if declared.optional else ''}: {text}{default}"
