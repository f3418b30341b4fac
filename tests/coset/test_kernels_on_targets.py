"""`kernel .. on TARGET`: a definition that is recognised for the targets that have it, and must have a price there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import coset.dialects
from coset.cli import run
from coset.egraph.limits import Limits
from coset.egraph.saturate import saturate
from coset.extract.select import select
from coset.ir.errors import CosetError
from coset.ir.op import get_op
from coset.ir.term import input_term, make, topological
from coset.ir.types import F32, tensor
from coset.job.job import Job
from coset.job.kernels import kernel_errors
from coset.job.phases import phases_for
from coset.packaging.searched import EVERY_OPSET
from coset.rules.defining import define_all
from coset.rules.definition import definition_of
from coset.rules.format import format_text
from coset.rules.library import check_files
from coset.rules.parser import parse
from coset.targets import target as registry
from coset.targets.document import HERE
from coset.targets.target import Form, Target, get_target

assert coset.dialects
HEAD = "use stablehlo, test_kernels\n"
NEGATED = 'kernel test_kernels.negated_square(x: F[N]) -> F[N] on {}\n  "-x^2"\n  means -(x * x)\n  numerics exact\n'
HIDDEN = NEGATED.replace("(x: F[N])", "(x: F[N], n: int)").replace("means -(x", "means if n // 2 == 1 then x else -(x")
NAME = "test_kernels.negated_square"


def machine(name: str) -> Target:
    """A copy of the target of recognition that has the kernel, at a lower price than its parts."""
    plain = get_target("recognition")
    return replace(plain, name=name, forms={**plain.forms, NAME: (Form("wanted"),)})


@pytest.fixture
def targets(monkeypatch: pytest.MonkeyPatch) -> dict[str, Target]:
    """Two machines with a form for the kernel, and none else."""
    found = {name: machine(name) for name in ("one-machine", "other-machine")}
    monkeypatch.setattr(registry, "_REGISTRY", {**registry._REGISTRY, **found})
    return found


def defined(text: str) -> None:
    file, errors = parse(HEAD + text, "given.rules")
    assert not errors
    assert not define_all(file.ops, {name: dialect for name, dialect, _ in file.dialects}, Path("nowhere"))


def job(target: Target) -> Job:
    return Job(None, target, "exact", Limits(seconds=20), (), {}, print)


@pytest.mark.parametrize(
    ("name", "chosen"),
    [("one-machine", {NAME}), ("other-machine", {"stablehlo.multiply", "stablehlo.negate"})],
)
def test_a_kernel_is_chosen_on_the_target_that_it_names_and_on_no_other(name: str, chosen: set[str], targets: dict[str, Target]) -> None:
    defined(NEGATED.format("one_machine"))
    x = input_term("x", tensor(F32, 64))
    root = make("stablehlo.negate", (make("stablehlo.multiply", (x, x)),))
    phases = phases_for(job(targets[name]), EVERY_OPSET)
    assert any(rule.recognises and rule.definition == NAME for phase in phases for rule in phase.rules) is (name == "one-machine")
    found = saturate([root], phases, Limits(seconds=20))
    terms = select(found.graph, targets[name], {}).terms
    assert {term.op.name for term in topological(terms)} - {"builtin.input"} == chosen


def test_a_kernel_of_two_targets_is_one_of_both(targets: dict[str, Target]) -> None:
    defined(NEGATED.format("one_machine, other_machine"))
    assert definition_of(get_op(NAME)).targets == {"one-machine", "other-machine"}
    assert kernel_errors() == []


MISTAKES = {
    "no_target": ("nowhere", "2:56", "there is no target `nowhere`", "there are: amd_mi300x, "),
    "no_price": ("cpu_onnxruntime", "2:56", f"the target `cpu_onnxruntime` has no price for `{NAME}`", f'add {{ ops = "{NAME}"'),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_kernel_that_could_never_be_chosen_is_a_mistake(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target, place, message, help = MISTAKES[name]
    path = tmp_path / "given.rules"
    path.write_text(HEAD + NEGATED.format(target))
    assert run(["check", str(path)]) == 2
    (error,) = kernel_errors([path])
    assert error.place and f"{error.place.line}:{error.place.column}" == place
    assert error.message == message and error.help.startswith(help)
    assert message in capsys.readouterr().err
    with pytest.raises(CosetError, match=f"{target}`"):
        phases_for(job(get_target("recognition")), EVERY_OPSET)


def test_mistakes_that_need_no_target(tmp_path: Path) -> None:
    for text, message in (
        (NEGATED.format("recognition, recognition"), "`recognition` is named twice"),
        (HIDDEN.format("recognition"), f"the kernel `{NAME}` can never be chosen: it is not recognised"),
    ):  # fmt: skip
        path = tmp_path / "given.rules"
        path.write_text(HEAD + text)
        _, (error,) = check_files([path])
        assert error.message == message and error.place and "^" in str(error)


def test_a_kernel_is_formatted_as_an_op() -> None:
    text = HEAD + "\n" + NEGATED.format("recognition, stablehlo")
    assert format_text(" ".join(text.split())) == text


def test_a_kernel_is_one_of_what_is_based_on_its_target(tmp_path: Path) -> None:
    """A user's file over a target's has its kernels, also by another name of it; a copy that is based on nothing has not."""
    for text, there in (('base = "cpu"\ntitle = "mine"\n', True), ((HERE / "cpu-onnxruntime.toml").read_text(), False)):
        path = tmp_path / "mine.toml"
        path.write_text(text)
        phases = phases_for(replace(job(get_target(path)), numerics="reassociates"), EVERY_OPSET)
        assert any(rule.recognises and rule.definition == "ort.SelfAttention" for phase in phases for rule in phase.rules) is there


def test_the_attention_of_onnx_runtime_is_a_kernel_of_its_target() -> None:
    assert definition_of(get_op("ort.SelfAttention")).targets == {"cpu-onnxruntime"}
    assert kernel_errors() == []
