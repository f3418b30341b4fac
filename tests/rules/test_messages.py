"""What a first rule file gets wrong: the message names the mistake and says what to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from coset.cli import run
from coset.ir.place import lines_of
from coset.rules.library import check_files
from coset.targets.place import place_of

RULE = 'use {used}\nrule r\n  "Twice."\n  for x: {type}[S..]{more}\n  {rule}\n  {where}numerics exact\n'
FLOOR = "floor(floor(x)) => floor(x)"
MISTAKES = [
    ({"used": "stablehl as hlo", "rule": FLOOR}, "there is no dialect `stablehl`", "do you mean `stablehlo`?"),
    ({"used": "nothing.like.it", "rule": FLOOR}, "there is no dialect `nothing.like.it`", "one of: "),
    ({"used": "onnx", "rule": FLOOR}, "nothing says which shape", "`floor` is a function of numbers here; for the op add `use stablehlo`"),
    ({"rule": FLOOR.replace("=>", "->")}, "unexpected `->`", "`=>` stands between the sides of a rule"),
    ({"type": "float32", "rule": FLOOR}, "`float32` is not declared", "write `f32`"),
    ({"type": "bfloat16", "rule": FLOOR}, "`bfloat16` is not declared", "write `bf16`"),
    ({"type": "double", "rule": FLOOR}, "`double` is not declared", "write `f64`"),
    ({"type": "float8_e4m3fn", "rule": FLOOR}, "`float8_e4m3fn` is not declared", "write `f8e4m3fn`"),
    ({"type": "G", "rule": FLOOR}, "`G` is not declared", "declare it after `for`: `G: float`"),
    ({"rule": "x * splat(c) => splat(c) * x"}, "`c` is not declared", "`c: float` or `c: int` a number"),
]


def written(folder: Path, values: dict[str, str]) -> Path:
    path = folder / "own.rules"
    path.write_text(RULE.format(**({"used": "stablehlo as hlo", "type": "F", "more": "", "where": ""} | values)))
    return path


@pytest.mark.parametrize("number", range(len(MISTAKES)))
def test_the_message_says_what_to_write(number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values, message, help = MISTAKES[number]
    assert run(["check", str(written(tmp_path, values))]) == 2
    out, err = capsys.readouterr()
    assert message in err and help in err and "-->" in err
    assert err.count("error:") == 1, "what follows from a mistake is not said"
    assert out.strip() == "0 rules; 1 mistakes", "no empty table"


FIRING = [  # conditions on what is seldom drawn: an element type, a rank, a size, a number
    {"rule": "x + x => x * splat(2)", "where": "where F == f16\n  "},
    {"rule": "hlo.convert(x, f64) => hlo.convert(hlo.convert(x, f64), f64)", "where": "where F == f8e4m3fn\n  "},
    {"rule": FLOOR, "where": "where len(S) == 7\n  "},
    {"rule": FLOOR, "where": "where len(S) == 1 and S[0] == 64\n  "},
    {"rule": "x * splat(c) => splat(c) * x", "more": ", c: float", "where": "where c in [2, 4]\n  "},
    {"rule": "x * splat(c) => splat(c) * x", "more": ", c: float", "where": "where c > 1000\n  "},
]


@pytest.mark.parametrize("number", range(len(FIRING)))
def test_a_rule_that_fires_seldom_is_not_said_never_to_fire(number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "--require", "tested", str(written(tmp_path, FIRING[number]))]) == 0
    assert "never fires" not in capsys.readouterr().err


def test_a_condition_that_nothing_fulfils_is_still_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", str(written(tmp_path, {"rule": FLOOR, "where": "where len(S) == 2 and len(S) == 3\n  "}))]) == 2
    assert "`r` never fires" in capsys.readouterr().err


def test_a_weaker_assurance_than_required_is_an_answer_of_no(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rule = {"rule": "x * splat(c) => x + x", "more": ", c: float", "where": "where c == 2\n  "}
    path = written(tmp_path, rule)
    assert run(["check", str(path)]) == 0
    assert run(["check", str(path), "--require", "tested"]) == 0
    wanted = run(["check", str(path), "--require", "proved"])
    assert wanted == 1 and "`r` is tested, and proved is required" in capsys.readouterr().err


@pytest.mark.parametrize("separator", ["\u2028", "\u0085", "\x0c"])
def test_a_separator_of_unicode_ends_no_line(separator: str, tmp_path: Path) -> None:
    """The line beside a mistake is the one that the parser counts, in a rule file and in a target's."""
    path = tmp_path / "mine.rules"
    path.write_text(f"# one{separator}two\nuse stablehlo\nrule r\n  for x: F[S..]\n  sinee(-x) => x\n  numerics exact\n")
    (error,) = check_files([path])[1]
    assert error.place and (error.place.line, error.place.source) == (5, "  sinee(-x) => x")
    assert lines_of(f"a{separator}b\r\n\nc\n") == [f"a{separator}b", "", "c"]
    if separator != "\x0c":  # TOML has no such character
        assert place_of("f", f"# one{separator}two\n[kernels]\nadd = 1\n", ("kernels", "add")).line == 3
