"""Rules written in Python: `rule(..)` makes the text of an entry, and what reads rule files reads it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from coset.rules.parsed import parse
from coset.rules.spelled import Spellable, spelled
from coset.rules.syntax import RuleEntry, RuleError

USUAL = "stablehlo as hlo, chlo, onnx"


@dataclass(frozen=True)
class WrittenRule:
    """One rule as the text of a file, with what it uses and the phases that it runs in; `path` names the line of Python that wrote it."""

    name: str
    text: str
    path: Path
    syntax: RuleEntry = field(repr=False)

    def __str__(self) -> str:
        """The entry in the one layout."""
        from coset.rules.format import format_text

        return format_text(self.syntax.text, self.path)


def rule(
    name: str,
    document: str = "",
    *,
    left: Spellable | Mapping[str, Spellable],
    right: Spellable | Mapping[str, Spellable],
    numerics: str,
    variables: str = "",
    both: bool = False,
    locals: Mapping[str, Spellable] | None = None,
    where: Spellable | None = None,
    tags: Sequence[str] = (),
    tests: Sequence[str] = (),
    phases: str = "",
    use: str = USUAL,
) -> WrittenRule:
    """The rule `left => right`, or `left <=> right` where it holds `both` ways, as a text of the rule language has it.

    `variables` are declarations (`a: F[A.., M, K], b: F[K, N]`), `numerics` the promise, `locals` what stands after `with`, `tests`
    what stands after `test` in each line, `phases` a line such as `phase fuse { name once }`. `use` names the dialects. Expressions are
    made of `coset.names` and `coset.op`; a side with several roots is a list of them, or a mapping from their names.

    Raises:
        RuleError: the parts are no rule. What names and types say is looked at where the rule is read with others.
    """
    caller = sys._getframe(1)
    lines = [f"rule {name}" + (f" : {', '.join(tags)}" if tags else "")]
    lines += [f'  "{document}"'] if document else []
    lines += [f"  for {variables}"] if variables else []
    lines.append(f"  {_side(left)} {'<=>' if both else '=>'} {_side(right)}")
    lines += [f"  with {', '.join(f'{key} = {spelled(value)}' for key, value in locals.items())}"] if locals else []
    lines += [f"  where {spelled(where)}"] if where is not None else []
    lines += [f"  numerics {numerics}", *(f"  test {line}" for line in tests)]
    file = Path(caller.f_code.co_filename)
    path = file.with_name(f"{file.name}:{caller.f_lineno} <rule {name}>")
    text = "\n".join([f"use {use}", "", *lines, phases, ""])
    return WrittenRule(name, text, path, _entry(name, text, path))


def _side(side: Spellable | Mapping[str, Spellable]) -> str:
    if isinstance(side, Mapping):
        return ", ".join(f"{name} = {spelled(term)}" for name, term in side.items())
    return ", ".join(str(spelled(root)) for root in (side if isinstance(side, list) else [side]))


def _entry(name: str, text: str, path: Path) -> RuleEntry:
    file, errors = parse(text, str(path))
    if errors:
        raise errors[0]
    if len(file.rules) != 1 or file.ops:
        raise RuleError(f"`{name}` is more than one rule", help="write each with a call of its own")
    return file.rules[0]
