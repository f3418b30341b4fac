"""What rules compile to, and what `decide` answers."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import numpy as np
import pytest
from rule_texts import fires_at, read_rules

from coset.egraph.limits import Limits
from coset.egraph.request import Phase
from coset.egraph.saturate import saturate
from coset.ir.dims import symbol
from coset.ir.term import CONSTANT, constant, input_term, make
from coset.ir.types import F16, F32, F64, I32, DType, tensor
from coset.job.phases import COMPOSITE
from coset.rules.elaborate import rules_of
from coset.rules.elaborated import comes_with_coset
from coset.rules.equation import RuleTypeError
from coset.rules.format import format_text
from coset.rules.functions import FUNCTIONS
from coset.rules.library import DEFAULT, check_files, load, rule_files
from coset.rules.lock import NAME
from coset.rules.parser import parse
from coset.rules.parts import variables
from coset.rules.pattern import applications

FOLDER = Path(__file__).parent
FILES = [*rule_files(DEFAULT), FOLDER / "samples.rules", FOLDER.parents[1] / "dialects" / "onnx" / "ops.rules"]
B, M, K, N, P = map(symbol, "BMKNP")


def test_the_samples_of_the_design_page_are_read() -> None:
    rules, errors = check_files([FOLDER / "samples.rules"])
    assert errors == []
    assert [phase.name for phase in rules.phases] == ["algebra", "fuse"]
    assert {rule.limit for rule in rules.family("sample_matmul_assoc")} == {2}
    assert {(rule.phase, rule.limit) for rule in rules.family("sample_conv_batchnorm")} == {("fuse", 1)}
    assert len(rules.family("sample_conv_batchnorm")) == 2, "one with a bias and one without"


def test_the_order_of_phases_does_not_depend_on_which_file_is_first(tmp_path: Path) -> None:
    texts = ["rule a for x: F[S..] -(-x) => x numerics exact\nphase algebra { a } then phase late {}",
             "rule b for x: F[S..] abs(-x) => abs(x) numerics exact\nphase early { b } then phase algebra {}"]  # fmt: skip
    for names in (("1.rules", "2.rules"), ("2.rules", "1.rules")):
        for name, text in zip(names, texts, strict=True):
            (tmp_path / name).write_text(f"use stablehlo\n{text}\n")
        rules, errors = check_files([tmp_path])
        assert errors == []
        assert [phase.name for phase in rules.phases] == ["early", "algebra", "late"]
    (tmp_path / "3.rules").write_text("phase late {} then phase early {}\n")
    (error,) = check_files([tmp_path])[1]
    assert error.message == "the phases `algebra` and `early` and `late` come before each other"
    assert error.place and error.place.file.endswith("3.rules")


@pytest.mark.slow
def test_the_library_has_no_mistakes_and_documents_each_rule() -> None:
    rules, errors = check_files(DEFAULT)
    assert errors == []
    assert all(rule.document for rule in rules.rules)
    assert len({rule.name for rule in rules.rules}) == len(rules.rules)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_rule_files_are_formatted(path: Path) -> None:
    assert format_text(path.read_text(), path) == path.read_text()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_formatting_a_squeezed_file_twice_changes_nothing_and_keeps_comments(path: Path) -> None:
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    once = format_text("# first\n" + "\n ".join(lines) + "  # last\n")
    assert format_text(once) == once
    assert once.startswith("# first\n") and "# last" in once
    flat = format_text(" ".join(lines))
    assert format_text(flat) == flat


def test_the_order_of_files_and_entries_does_not_matter(tmp_path: Path) -> None:
    shuffled = []
    generator = random.Random(1)
    for path in rule_files(DEFAULT):
        entries = path.read_text().split("\n\n")
        head, rest = entries[0], entries[1:]
        generator.shuffle(rest)
        shuffled.append(tmp_path / path.name)
        shuffled[-1].write_text("\n\n".join([head, *rest]) + "\n")
    generator.shuffle(shuffled)
    shutil.copy(DEFAULT[0] / NAME, tmp_path)  # types do not depend on the order, and the test above checks them
    assert [(rule.name, str(rule), rule.phase, rule.limit) for rule in load(shuffled).rules] == [
        (rule.name, str(rule), rule.phase, rule.limit) for rule in load().rules
    ]


def test_a_phase_names_one_direction(tmp_path: Path) -> None:
    phases = "phase algebra { r.forward limit 2 } then phase last { r.reverse limit 3, r.forward }"
    text = f"rule r for x: F[S..] -tanh(x) <=> tanh(-x) numerics exact\n{phases}"
    rules, errors = read_rules(tmp_path, text)
    assert errors == []
    assert [(rule.name, rule.phase, rule.limit) for rule in rules.family("r")] == [
        ("r", "algebra", 2),
        ("r in last", "last", None),
        ("r.reverse", "last", 3),
    ]
    assert format_text(format_text(text)) == format_text(text)
    assert "r.forward limit 2" in format_text(text)


def test_only_the_files_of_composite_kernels_have_rules_for_their_phase_alone() -> None:
    """A rule runs where phases name it and nowhere else, and the phase of composite kernels is left out where none is wanted."""
    phases = {phase.name: {rule.family for rule in phase.rules} for phase in load().phases}
    elsewhere = set().union(*(families for name, families in phases.items() if name != COMPOSITE))
    alone = [rule for rule in load().rules if rule.family in phases[COMPOSITE] - elsewhere]
    assert {Path(rule.place.file).name for rule in alone} == {"attention.rules", "layout.rules"}


def test_a_rule_is_one_text_entry(tmp_path: Path) -> None:
    path = tmp_path / "mine.rules"
    path.write_text("use stablehlo\nrule mine for x: F[S..] tanh(-x) => -tanh(x) numerics exact\n")
    rules = load([*DEFAULT, path])
    (rule,) = rules.family("mine")
    assert str(rule) == "mine: stablehlo.tanh(stablehlo.negate(x)) => stablehlo.negate(stablehlo.tanh(x))"
    assert rule.assurance == "assumed"
    ours = [r for r in load().rules if comes_with_coset(Path(r.place.file))]  # other tests define ops of their own
    assert ours and {r.assurance for r in ours} <= {"proved", "bounded", "tested"}


def test_indices_are_preorder() -> None:
    for rule in load().rules:
        for side in (rule.left, rule.right):
            assert [node.index for node in applications(side)] == list(range(len(list(applications(side)))))
        assert rule.variables == variables(rule.left)


def test_permutations_compose_and_types_follow() -> None:
    rule, *_ = load().family("transpose_transpose")  # one in each of its phases
    types = [tensor(F32, K, M, N), tensor(F32, M, K, N)]
    given = [(("permutation", (1, 0, 2)),), (("permutation", (0, 1, 2)),)]
    decision = rule.decide(given, types, [tensor(F32, M, K, N)])
    assert decision is not None
    assert decision.attributes == ((("permutation", (1, 0, 2)),),)
    assert decision.types == (tensor(F32, K, M, N),)


def test_sides_of_different_types_are_an_error() -> None:
    (rule,) = load().family("double_negate")
    with pytest.raises(RuleTypeError, match="double_negate"):
        rule.decide([(), ()], [tensor(F32, 2), tensor(F32, 2)], [tensor(F32, 3)])


@pytest.mark.parametrize("dtype", [F16, F32, F64])
def test_a_symbolic_constant_is_rounded_once_to_the_dtype_at_hand(dtype: DType, tmp_path: Path) -> None:
    rules, errors = read_rules(tmp_path, "rule r for x: F[S..] x * splat(1 / sqrt(2)) => x / splat(sqrt(2)) numerics reassociates\n")
    assert errors == []
    rule = next(r for r in rules.family("r") if "broadcast" in str(r.left))
    exact = constant(np.array(np.sqrt(np.longdouble(0.5)).astype(dtype.numpy)))
    spread = (("broadcast_dimensions", ()), ("shape", (4,)))
    types = [tensor(dtype, 4), tensor(dtype, 4), tensor(dtype)]
    fired = rule.decide([(), spread, exact.attributes], types, [tensor(dtype, 4)])
    assert fired is not None
    near = constant(np.nextafter(exact.attribute("value").array(), dtype.numpy.type(1)).astype(dtype.numpy))
    assert rule.decide([(), spread, near.attributes], types, [tensor(dtype, 4)]) is None


def test_unknown_conditions_do_not_fire(tmp_path: Path) -> None:
    rules, errors = read_rules(tmp_path, "rule r for x: F[N] -(-x) => x where N % 8 == 0 numerics exact\n")
    assert errors == []
    (rule,) = rules.family("r")

    assert fires_at(rule, 16) and not fires_at(rule, 12) and not fires_at(rule, symbol("S"))


def test_classes_of_element_types_are_kept() -> None:
    rule = next(r for r in load().family("add_negative_zero") if "broadcast" in str(r.left))
    zero = constant(np.array(0, np.int32))
    spread = (("broadcast_dimensions", ()), ("shape", (4,)))
    assert rule.decide([(), spread, zero.attributes], [tensor(I32, 4), tensor(I32, 4), tensor(I32)], [tensor(I32, 4)]) is None


def test_facts_name_the_constant_variables() -> None:
    (rule,) = load().family("scale_columns")
    assert rule.facts == (("const", "w"), ("const", "s"))
    assert load().family("factor_out_of_product")[0].facts == (("varying", "x"), ("varying", "y"))


def test_a_varying_operand_is_not_known_at_build_time() -> None:
    text = """
rule shifted
  "The tanh of a sum is a sum, which is not true."
  for x: F[S..], y: varying F[S..]
  tanh(x + y) => x + y
  numerics exact
"""
    file, errors = parse(text, "test.rules")
    found, problems = rules_of(file.rules[0], {"stablehlo": "stablehlo"})
    assert not errors and not problems
    x, y = (input_term(name, tensor(F32, 4)) for name in "xy")
    for other, fires in ((y, True), (constant(np.arange(4, dtype=np.float32)), False)):
        root = make("stablehlo.tanh", (make("stablehlo.add", (x, other)),))
        searched = saturate([root], [Phase("all", tuple(found))], Limits())
        assert bool(sum(searched.fired.values())) is fires


def test_a_fact_belongs_before_a_tensor_type() -> None:
    for word in ("const", "varying", "positive"):
        _, (error,) = parse(f'rule a\n  "x"\n  for c: {word} float\n  splat(c) => splat(c)\n  numerics exact\n', "test.rules")
        assert f"`{word}` belongs before a tensor type" in error.message


def test_a_splat_has_a_form_at_rank_zero() -> None:
    forms = load().family("add_zero")
    assert sorted(sum(node.op is CONSTANT for node in applications(form.left)) for form in forms) == [1, 1]
    assert {len(list(applications(form.left))) for form in forms} == {2, 3}


def test_every_function_of_the_algebra_is_in_the_manual() -> None:
    manual = (FOLDER.parents[1] / "docs" / "rules.md").read_text()
    for function in FUNCTIONS.values():
        assert f"| `{function.usage}` | {function.document} |" in manual
