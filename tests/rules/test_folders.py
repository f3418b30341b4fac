"""The language by examples: `pass/` is read without mistakes, `fail/` says its mistakes in full, `run/` is applied to small programs.

COSET_REWRITE_GOLDENS=1 writes the messages of `fail/` anew; read the difference.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import coset.dialects
from coset.egraph.limits import Limits
from coset.egraph.request import Phase
from coset.egraph.saturate import saturate
from coset.egraph.saturated import Saturated
from coset.ir.term import Term, constant, intern
from coset.ir.types import TensorType
from coset.prove.sample import sides
from coset.prove.sample import test_rule as try_rule
from coset.rules import native as natives
from coset.rules.elaborate import rules_of
from coset.rules.format import format_text
from coset.rules.instance import InstanceSearch
from coset.rules.instances import instances
from coset.rules.library import check_files
from coset.rules.native import native
from coset.rules.parsed import parse
from coset.rules.rule import Rule
from coset.rules.syntax import RuleError
from tests.sampled import sampled

assert coset.dialects
FOLDER = Path(__file__).parent
SOURCES = FOLDER.parents[1] / "rules"
REWRITE = "COSET_REWRITE_GOLDENS"
MARK = "\n# ---------------------------------------------------------------- messages\n"
UNREADABLE = {
    "kernel_target",
    "syntax_arrow",
    "syntax_sign",
    "syntax_character",
    "syntax_end",
    "syntax_text",
}  # what cannot be parsed is not formatted
TRIAL = ".trial"  # the family of what tests a definition
IN_PYTHON = {"spelled.py", "written.py"}  # mistakes of calls: tests/rules/test_written.py


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    """A native function for the files that call one."""
    native("int", gives="bool")(even)
    yield
    natives.withdraw("native.even")


def even(n: int) -> bool:
    """True when n is even."""
    return n % 2 == 0


def files(folder: str) -> list[Path]:
    return sorted((FOLDER / folder).glob("*.rules"))


def said(path: Path, folder: Path) -> list[RuleError]:
    """The mistakes of a file without what it expects, which is told by the name of the file alone."""
    given = folder / path.name
    given.write_text(path.read_text().partition(MARK)[0])
    before = Path.cwd()
    os.chdir(folder)
    try:
        return check_files([Path(path.name)])[1]
    finally:
        os.chdir(before)


@pytest.mark.parametrize("path", files("pass"), ids=lambda path: path.stem)
def test_it_is_read_without_mistakes(path: Path) -> None:
    rules, errors = check_files([path])
    assert errors == []
    assert [rule for rule in rules.rules if rule.place.file == str(path)]
    assert format_text(path.read_text(), path) == path.read_text()


@pytest.mark.parametrize("path", files("fail"), ids=lambda path: path.stem)
def test_its_mistakes_are_told_in_full(path: Path, tmp_path: Path) -> None:
    text, _, expected = path.read_text().partition(MARK)
    errors = said(path, tmp_path)
    messages = "\n".join(f"# {line}".rstrip() for line in "\n\n".join(map(str, errors)).splitlines()) + "\n"
    if os.environ.get(REWRITE):
        path.write_text(text.rstrip("\n") + "\n" + MARK + messages)
        expected = messages
    assert messages == expected
    for error in errors:
        assert error.place and error.place.line and "^" in str(error), f"no caret: {error}"
        assert error.help or "not there yet" in error.message, f"no remedy: {error}"
    assert path.stem in UNREADABLE or format_text(text, path) == text.rstrip("\n") + "\n"


def test_a_mistake_leaves_the_other_rules_alone(tmp_path: Path) -> None:
    path = tmp_path / "given.rules"
    good = "rule good for x: F[S..] -(-x) => x numerics exact"
    path.write_text(f"use stablehlo\n{good}\n{good.replace('good', 'bad').replace('-(-x)', 'z')}\n")
    rules, errors = check_files([path])
    assert [error.place.line for error in errors if error.place] == [3]
    assert rules.family("good") and not rules.family("bad")


# ---------------------------------------------------------------- rules applied to programs


def programs(path: Path) -> list[tuple[str, str]]:
    """What a file of `run/` expects: `becomes` or `stays`, and two programs in the spelling of a rule."""
    return re.findall(r"^# (becomes|stays): (.*)$", path.read_text(), re.M)


EXPECTED = [(path, kind, text) for path in files("run") for kind, text in programs(path)]


def read_pair(path: Path, text: str) -> tuple[Term, Term, list[Rule]]:
    """The two programs, with constants where they are declared `const`, and the rules that read them."""
    used = re.findall(r"^use .*$", path.read_text(), re.M)
    file, errors = parse("\n".join([*used, f"rule expectation {text} numerics real", ""]), str(path))
    dialects = {name: dialect for name, dialect, _ in file.dialects}
    rules, more = rules_of(file.rules[0], {"test_run": "test_run", **dialects})
    assert not errors and not more, [*map(str, errors), *map(str, more)]
    for rule in rules:
        for instance in instances(rule, InstanceSearch()):
            pair = sides(rule, instance)
            if pair is not None:
                known = {name for fact, name in rule.facts if fact == "const"}
                left, right = (fixed(side, known) for side in pair)
                return left, right, rules
    raise AssertionError(f"no program: {text}")


def fixed(term: Term, known: set[str]) -> Term:
    """`term` with numbers in the place of the inputs that are called by the `known` names."""
    if term.op.name == "builtin.input" and term.attribute("name") in known:
        assert isinstance(term.type, TensorType) and term.type.static is not None
        return constant(np.random.default_rng(len(known)).normal(size=term.type.static).astype(np.float32))
    operands = tuple(fixed(operand, known) for operand in term.operands)
    return intern(term.op, operands, term.attributes, term.regions, term.type)


def place_of(term: Term, graph: Saturated) -> int | None:
    """The class of `graph` that `term` is in."""
    places = [place_of(operand, graph) for operand in term.operands]
    for number, nodes in enumerate(graph.nodes):
        for node in nodes:
            same = node.op is term.op and node.attributes == term.attributes and node.regions == term.regions
            if same and list(node.children) == places:
                return number
    return None


@pytest.mark.parametrize(("path", "kind", "text"), sampled(EXPECTED, 2), ids=[f"{path.stem}: {text}" for path, _, text in EXPECTED])
def test_a_program_becomes_another_or_stays_as_it_is(path: Path, kind: str, text: str) -> None:
    rules, errors = check_files([path])
    assert errors == []
    own = [Phase(p.name, tuple(r for r in p.rules if r.place.file == str(path) and not r.family.endswith(TRIAL))) for p in rules.phases]
    left, right, readings = read_pair(path, text)
    graph = saturate([left], own, Limits(seconds=20, iterations=8)).graph
    found = place_of(right, graph)
    assert (found == graph.roots[0]) == (kind == "becomes")
    exact = all(rule.numerics.word != "lossy" for phase in own for rule in phase.rules)
    assert kind == "stays" or not exact or try_rule(readings[0], 0, 4).ok, "the programs have other results"


@pytest.mark.parametrize("path", files("run"), ids=lambda path: path.stem)
def test_a_file_to_run_expects_both_answers(path: Path) -> None:
    assert {kind for kind, _ in programs(path)} == {"becomes", "stays"}
    assert format_text(path.read_text(), path) == path.read_text()


# ---------------------------------------------------------------- nothing is left out


def templates() -> dict[str, re.Pattern[str]]:
    """What every error of the language says, by the line of the source that makes it."""
    found = {}
    for path in sorted(SOURCES.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())) if path.name not in IN_PYTHON else ():
            if not isinstance(node, ast.Call) or not node.args:
                continue
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            message = node.args[0]
            if called in ("RuleError", "refuse", "Untyped") and isinstance(message, ast.Constant | ast.JoinedStr):
                parts = message.values if isinstance(message, ast.JoinedStr) else [message]
                pattern = "".join(re.escape(str(part.value)) if isinstance(part, ast.Constant) else "(.+)" for part in parts)
                found[f"{path.name}:{node.lineno}"] = re.compile(pattern)
    return found


def test_every_error_of_the_language_has_a_file() -> None:
    told = re.findall(r"^# error: (.*)$", "\n".join(path.read_text() for folder in ("fail", "wrong") for path in files(folder)), re.M)
    silent = {place: each.pattern for place, each in templates().items() if not any(map(each.fullmatch, told))}
    assert not silent, "write a file of tests/rules/fail for each"
