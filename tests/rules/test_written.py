"""Rules written in Python are those of files: the same text, the same tree, the same hash, for every rule of the library."""

from __future__ import annotations

import operator
import re
import subprocess
import sys
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from lark import Lark, Token, Tree
from onnx import TensorProto, helper

import coset
from coset.rules.format import format_text
from coset.rules.library import DEFAULT, read_text, rule_files
from coset.rules.lock import NAME, read_lock, text_hash
from coset.rules.parser import parse
from coset.rules.spelled import Rest, Spelled, SplicedName, choice, contained, each, function, group, names, number, rest
from coset.rules.syntax import RuleError
from coset.rules.written import WrittenRule, rule

ROOT = Path(__file__).resolve().parents[2]
FILES = [*rule_files(DEFAULT), Path(__file__).with_name("samples.rules"), Path(__file__).with_name("false.rules")]
OPERATORS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv, "%": operator.mod,
    "@": operator.matmul, "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


class Speaker:
    """Says the tree of an expression with the Python API. With `grouped` every parenthesis of the text is said too."""

    def __init__(self, grouped: bool) -> None:
        self.grouped = grouped

    def say(self, tree: Any) -> Any:
        parts = [child for child in tree.children if isinstance(child, Tree)]
        tokens = [str(child) for child in tree.children if isinstance(child, Token)]
        return getattr(self, str(tree.data))(parts, tokens, tree.children)

    def number(self, _: Any, tokens: list[str], __: Any) -> Spelled:
        return number(tokens[0])

    def string(self, _: Any, tokens: list[str], __: Any) -> str:
        return tokens[0][1:-1]

    def name(self, _: Any, tokens: list[str], __: Any) -> Spelled:
        head, *inner = tokens[0].split(".")
        return reduce(getattr, inner, names(head)[0])

    def atom(self, parts: Any, _: Any, __: Any) -> Any:
        return group(self.say(parts[0])) if self.grouped else self.say(parts[0])

    def tuple(self, parts: Any, _: Any, __: Any) -> Any:
        return tuple(map(self.say, parts))

    def call(self, _: Any, tokens: list[str], children: Any) -> Spelled:
        given = children[2].children if isinstance(children[2], Tree) else []
        arguments = [each for each in given if isinstance(each, Tree)]
        keywords = {str(each.children[0]): self.say(each.children[2]) for each in arguments if each.data == "keyword"}
        return self.name(None, tokens[:1], None)(*(self.say(each) for each in arguments if each.data != "keyword"), **keywords)

    def rest(self, _: Any, tokens: list[str], __: Any) -> Rest:
        return rest(tokens[1])

    def splice(self, parts: Any, _: Any, __: Any) -> SplicedName:
        (found,) = [*self.say(parts[0])]
        assert isinstance(found, SplicedName)
        return found

    def list(self, parts: Any, _: Any, __: Any) -> list[Any]:
        return [self.say(part) for part in parts[0].children if isinstance(part, Tree)] if parts else []

    def comprehension(self, parts: Any, _: Any, __: Any) -> Spelled:
        item, bound, lists, *condition = parts
        own = [self.say(part) for part in lists.children if isinstance(part, Tree)]
        keys = [str(key) for key in bound.children if key != ","]
        where = self.say(condition[0]) if condition else None
        return each(self.say(item), where=where, **dict(zip(keys, own, strict=True)))

    def item(self, parts: Any, _: Any, __: Any) -> Spelled:
        return self.say(parts[0])[self.say(parts[1])]

    def slice(self, _: Any, __: Any, children: Any) -> Spelled:
        start, stop = (None if end is None else self.say(end) for end in (children[2], children[4]))
        return self.say(children[0])[start:stop]

    def negate(self, parts: Any, _: Any, __: Any) -> Spelled:
        return -self.say(parts[0])

    def conditional(self, parts: Any, _: Any, __: Any) -> Spelled:
        return choice(*map(self.say, parts))

    def function(self, parts: Any, _: Any, __: Any) -> Spelled:
        bound, body = parts
        return function(" ".join(str(name) for name in bound.children if name != ","), self.say(body))

    def contained(self, parts: Any, _: Any, __: Any) -> Spelled:
        return contained(*map(self.say, parts))

    def negation_of(self, parts: Any, _: Any, __: Any) -> Spelled:
        return ~self.say(parts[0])

    def conjunction(self, parts: Any, _: Any, __: Any) -> Spelled:
        return reduce(operator.and_, map(self.say, parts))

    def disjunction(self, parts: Any, _: Any, __: Any) -> Spelled:
        return reduce(operator.or_, map(self.say, parts))

    def chain(self, _: Any, __: Any, children: Any) -> Spelled:
        result = self.say(children[0])
        for sign, operand in zip(children[1::2], children[2::2], strict=True):
            result = result if sign is None else OPERATORS[str(sign)](result, self.say(operand))
        return result

    sum = product = comparison = chain


def _full() -> Lark:
    """The grammar with its parentheses in the tree."""
    text = (ROOT / "rules" / "grammar.lark").read_text()
    return Lark(text, parser="lalr", propagate_positions=True, maybe_placeholders=True, keep_all_tokens=True)


FULL = _full()


def _spoken(tree: Tree[Token], text: str, *, grouped: bool) -> WrittenRule:
    """The rule of a tree, written with the API."""
    speaker = Speaker(grouped)
    part: dict[str, Any] = {}
    sides, tests = [], list[str]()
    for child in tree.children:
        if isinstance(child, Tree) and child.data == "roots":
            roots = [root.children for root in child.children if isinstance(root, Tree)]
            named = {str(name): speaker.say(term) for name, *_, term in roots if name is not None}
            every = [speaker.say(root[-1]) for root in roots]
            sides.append(named or (every if len(every) > 1 else every[0]))
        elif isinstance(child, Tree) and child.data == "test":
            tests.append(text[child.meta.start_pos : child.meta.end_pos].split(maxsplit=1)[1])
        elif isinstance(child, Tree):
            part[str(child.data)] = child

    def source(clause: str) -> str:
        """What stands behind the keyword of a clause, as text."""
        meta = part[clause].meta
        return text[meta.start_pos : meta.end_pos].split(maxsplit=1)[1]

    locals = [child for child in part["locals"].children if isinstance(child, Tree)] if "locals" in part else []
    return rule(
        str(tree.children[1]),
        next((str(c)[1:-1] for c in tree.children if isinstance(c, Token) and c.type == "STRING"), ""),
        left=sides[0], right=sides[1], numerics=source("numerics"), both=str(part["arrow"].children[0]) == "<=>",
        variables=source("for") if "for" in part else "",
        locals={str(local.children[0]): speaker.say(local.children[2]) for local in locals},
        where=speaker.say(part["where"].children[1]) if "where" in part else None,
        tags=[str(tag) for tag in part["tags"].children if tag not in (":", ",")] if "tags" in part else (),
        tests=tests,
    )  # fmt: skip


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_rule_can_be_written_in_python_and_prints_as_its_file(path: Path) -> None:
    text = read_text(path)
    entries = parse(text, str(path))[0].rules
    trees = [tree for tree in FULL.parse(text).children if isinstance(tree, Tree) and tree.data == "rule"]
    lock = read_lock(path.parent / NAME)
    assert len(trees) == len(entries) > 0
    for tree, entry in zip(trees, entries, strict=True):
        written = _spoken(tree, text, grouped=True)
        in_file = re.sub(r"\n {6}", " ", text[tree.meta.start_pos : tree.meta.end_pos])  # breaks inside a clause are the author's
        assert str(written) == format_text(in_file)
        assert written.syntax.text == entry.text
        assert entry.name not in lock or text_hash(written.syntax.text) == lock[entry.name].hash


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_parentheses_that_change_something_need_not_be_asked_for(path: Path) -> None:
    text = read_text(path)
    entries = parse(text, str(path))[0].rules
    trees = [tree for tree in FULL.parse(text).children if isinstance(tree, Tree) and tree.data == "rule"]
    for tree, entry in zip(trees, entries, strict=True):
        assert _spoken(tree, text, grouped=False).syntax == entry


def test_it_reads_like_the_mathematics() -> None:
    a, b, c = coset.names("a b c")
    written = coset.rule(
        "assoc", "Products are associative.", variables="a: F[A.., M, K], b: F[K, N], c: F[N, P]",
        left=group(a @ b) @ c, right=a @ (b @ c), both=True, numerics="reassociates",
    )  # fmt: skip
    assert str(written) == (
        'rule assoc\n  "Products are associative."\n  for a: F[A.., M, K], b: F[K, N], c: F[N, P]\n'
        "  (a @ b) @ c <=> a @ (b @ c)\n  numerics reassociates\n"
    )


def test_the_example_of_the_manual_prints_what_a_file_has() -> None:
    manual = (ROOT / "docs" / "rules.md").read_text()
    (block,) = [block for block in re.findall(r"```python\n(.*?)```", manual, re.S) if "coset.rule(" in block]
    printed = subprocess.run([sys.executable, "-c", block], check=True, capture_output=True, text=True, cwd=ROOT).stdout.strip()
    assert printed == format_text(printed).strip()
    assert "splat(c) * (a @ b) => a @ (splat(c) * b)" in printed


def test_values_of_python_are_those_of_the_language() -> None:
    x, s, p = names("x s p")
    op = coset.op
    for said, text in (
        (op.f(x, *s, [1, *s, -2], axis=-0.0), "f(x, s.., [1, s.., -2], axis: -0.0)"),
        (op.onnx.Conv(x, group=2, other="SAME", flag=True), 'onnx.Conv(x, group: 2, other: "SAME", flag: true)'),
        (2 - (1 - x) * 0.5, "2 - (1 - x) * 0.5"),
        (-Spelled.__neg__(x + 1e-9), "-(-(x + 0.000000001))"),
        ((-x)[1:], "(-x)[1:]"),
        (~((x == 1) & ~(p[0] < 2) | contained(x, [1, 2])), "not (x == 1 and not p[0] < 2 or x in [1, 2])"),
        (1 / (2 // x % 3), "1 / (2 // x % 3)"),
        (choice(x > 1, choice(x > 2, s, p), p) + 1, "(if x > 1 then if x > 2 then s else p else p) + 1"),
        (op.repeat(float("-inf"), 3), "repeat(-inf, 3)"),
        (op.get((x, s), 0), "get((x, s), 0)"),
    ):
        assert repr(said) == text


def test_what_python_would_decide_is_refused_at_once() -> None:
    x, s = names("x s")
    for wrong, message in (
        (lambda: 0 < x < 2, "neither true nor false"),
        (lambda: x and s, "neither true nor false"),
        (lambda: 1 in s, "decided by Python"),
        (lambda: s[::2], "no step"),
        (lambda: x + None, "nothing in the rule language"),
        (lambda: x == float("nan"), "nan is no number"),
        (lambda: names("x => y"), "is no name"),
        (lambda: number("1; rule"), "is no number"),
        (lambda: coset.op.compare(x, s, 'L"T'), "nothing in the rule language"),
    ):
        with pytest.raises(RuleError, match=message):
            wrong()  # type: ignore[no-untyped-call]


def test_a_mistake_is_told_at_the_call_with_the_line_of_the_file() -> None:
    x = names("x")[0]
    left, right = coset.op.abs(coset.op.abs(x)), coset.op.abs(x)
    with pytest.raises(RuleError, match="unexpected `abs`") as caught:
        coset.rule("r", variables="x: F[S..", left=left, right=right, numerics="exact")
    assert caught.value.place and "test_written.py:" in caught.value.place.file and "<rule r>" in str(caught.value)
    with pytest.raises(RuleError, match="more than one rule"):
        coset.rule("r", variables="x: F[S..]", left=left, right=right, numerics="exact rule q abs(abs(x)) => abs(x) numerics exact")


def _sinh_cosh(path: Path) -> Path:
    """A model of cosh(x) - sinh(x), about which the library knows nothing."""
    nodes = [helper.make_node("Cosh", ["x"], ["c"]), helper.make_node("Sinh", ["x"], ["s"]), helper.make_node("Sub", ["c", "s"], ["y"])]
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [64, 64]) for name in "xy"]
    graph = helper.make_graph(nodes, "g", info[:1], info[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def test_a_model_is_optimized_with_rules_from_python_beside_files(tmp_path: Path) -> None:
    model = _sinh_cosh(tmp_path / "m.onnx")
    x = names("x")[0]
    op = coset.op
    written = coset.rule(
        "difference_is_decay", "cosh x - sinh x is e^-x.", variables="x: F[S..]",
        left=op.chlo.cosh(x) - op.chlo.sinh(x), right=op.exponential(-x), numerics="real",
    )  # fmt: skip
    beside = tmp_path / "mine.rules"
    beside.write_text("use stablehlo\nrule tanh_odd for x: F[S..] tanh(-x) => -tanh(x) numerics exact\n")
    assert "difference_is_decay" not in [each["name"] for each in coset.optimize(model, numerics="real").report["rules"]]
    done = coset.optimize(model, rules=[beside, written], numerics="real")
    used = {each["name"]: each for each in done.report["rules"]}
    assert used["difference_is_decay"]["assurance"] in ("tested", "bounded", "proved")
    feed = {"x": np.linspace(-2, 2, 4096, dtype=np.float32).reshape(64, 64)}
    np.testing.assert_allclose(done(feed)["y"], np.exp(-feed["x"]), rtol=1e-5)


def test_importing_coset_stays_light() -> None:
    code = "import sys, coset; coset.names; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert not {"lark", "numpy", "egglog", "onnx"} & set(loaded)
