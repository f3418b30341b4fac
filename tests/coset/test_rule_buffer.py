"""The text in an editor read by its tokens is what the parser reads, and what is looked at again is all that changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coset.editor.buffer import PROVABLE, RuleBuffer
from coset.editor.completion import suggestions
from coset.editor.judging import diagnose
from coset.editor.meaning import Known, meaning_at
from coset.editor.positions import UTF8, UTF16, UTF32, Lines, Spot
from coset.rules import syntax
from coset.rules.parsed import parse

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(
    [*(ROOT / "rules/library").glob("*.rules"), *(ROOT / "dialects").glob("*/*.rules"), *(ROOT / "tests/rules/pass").glob("*.rules")]
)
USE = "use stablehlo, onnx\n\n"
TWICE = "rule twice\n  for x: F[S..]\n  x + x => splat(2) * x\n  numerics reassociates\n\n"
TURNED = "rule turned\n  for x: F[M, N]\n  transpose(x, [1, 0]) => x\n  numerics exact\n\n"
UNUSED = "rule unused\n  for x: F[S..], y: F[S..]\n  x * x => power(x, splat(2))\n  numerics approx 1e-3\n\n"
PHASE = "phase algebra { twice, turned }\n\n"
ROOTS = "rule roots\n  for x: F[S..]\n  y = exp(x), z = abs(x) => y = exp(x + 0), z = abs(x)\n  numerics real\n\n"
HALF = "rule half\n  for x: F[S..]\n  x + (x => x\n  numerics exact\n\n"
EDITS = (
    USE + TWICE + TURNED,
    USE + "# 𝔸\n" + TWICE + TURNED,
    USE + UNUSED + TWICE + TURNED + PHASE,
    USE + TWICE + PHASE,
    USE + TWICE + TWICE + TURNED,
    USE + TWICE + HALF + TURNED,
    USE + ROOTS + TWICE,
    USE + ROOTS + TWICE + "phase algebra { roots once }\n",
    USE + ROOTS + TWICE,
    "use onnx\n\n" + TWICE,
    USE + TWICE + TURNED + UNUSED,
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_entries_and_names_are_those_of_the_parser(path: Path) -> None:
    text = path.read_text()
    file, _ = parse(text, str(path))
    buffer = RuleBuffer(text)
    found = {entry.name: entry for entry in buffer.entries if entry.kind in PROVABLE}
    assert sorted(found) == sorted([*(rule.name for rule in file.rules), *(op.name for op in file.ops)])
    assert buffer.dialects == {name: dialect for name, dialect, _ in file.dialects}
    for rule in file.rules:
        names = found[rule.name].names
        declared = [*(each.name for each in rule.declarations), *(local.name for local in rule.locals)]
        assert [name for name in declared if name not in names] == []
        for declaration in rule.declarations:
            spot = buffer.lines.spot(names[declaration.name].start)
            if isinstance(declaration, syntax.Declaration):
                assert (spot.line, spot.column) == (declaration.place.line - 1, declaration.place.column - 1)
    for op in file.ops:
        assert [each.name for each in op.parameters if each.name not in found[op.name].names] == []


def look(text: str, known: set[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    diagnose(found.append, "/nowhere/mine.rules", text, known, ())
    return found


def mistakes(text: str, answers: list[dict[str, Any]], kept: dict[str, list[Any]]) -> list[tuple[int, int, str]]:
    """Every mistake of a text: those that were told, and those `kept` of entries that were not looked at again."""
    buffer = RuleBuffer(text)
    found = [each for answer in answers if answer["kind"] == "read" for each in answer["errors"]]
    for entry in buffer.entries:
        line = buffer.lines.spot(entry.start).line
        found += [{**each, "line": each["line"] + line} for each in kept.get(buffer.key(entry), ())]
    return sorted((each["line"], each["column"], each["message"]) for each in found)


def test_a_look_at_what_changed_finds_what_a_look_at_everything_does() -> None:
    kept: dict[str, list[Any]] = {}
    anew: set[str] = set()
    spared = 0
    for text in EDITS:
        buffer = RuleBuffer(text)
        answers, whole = look(text, set(kept) - anew), look(text, set())
        both: list[dict[str, list[Any]]] = []
        for told in (answers, whole):
            own = {}
            for answer in (each for each in told if each["kind"] == "entry"):
                entry = buffer.entry_named(answer["name"])
                assert entry is not None
                line = buffer.lines.spot(entry.start).line
                own[answer["key"]] = [{**each, "line": each["line"] - line} for each in answer["errors"]]
                (anew.discard if answer["alone"] else anew.add)(answer["key"])
            both.append(own)
        kept |= both[0]
        spared += len(both[1].keys() - both[0].keys())
        present = {key: kept[key] for key in both[1]}
        assert mistakes(text, answers, present) == mistakes(text, whole, both[1]), text
    assert spared > 5


@pytest.mark.parametrize("encoding", [UTF8, UTF16, UTF32])
def test_places_and_offsets_are_each_other(encoding: str) -> None:
    lines = Lines("a𝔸é\r\n\nß\u2028b𝔹", encoding)
    for offset in range(len(lines.text) + 1):
        if offset != 4:  # between the two signs of an end of line
            assert lines.offset(lines.spot(offset)) == offset
    width = {UTF8: 7, UTF16: 4, UTF32: 3}[encoding]
    assert lines.spot(3) == Spot(0, width) and lines.offset(Spot(0, 99)) == 3 and lines.offset(Spot(9, 0)) == len(lines.text)
    assert lines.offset(Spot(-1, 5)) == 0 and lines.line(2) == "ß\u2028b𝔹"


def test_no_beginning_of_a_text_is_a_failure() -> None:
    """Also of half a pair, and of texts that are none."""
    text = (ROOT / "rules/library/softmax.rules").read_text()[:3000] + '\ud83d rule ( [ op.. \x00 " rule'
    for end in range(0, len(text), 7):
        buffer = RuleBuffer(text[:end])
        suggestions(buffer, end, Known())
        meaning_at(buffer, end, Known())
        for entry in buffer.entries:
            assert buffer.key(entry) and isinstance(entry.names, dict)
        assert len(buffer.without({buffer.key(entry) for entry in buffer.entries})) == end
