"""The checker: true certificates hold, damaged ones are refused, and none makes two different programs equal."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coset.dialects
from coset.dialects.hub.terms import broadcast, dot, transpose
from coset.ir.dims import symbol
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.term import Term, constant, get, input_term, make, rebuild, topological
from coset.ir.types import F32, TensorType
from coset.prove.certificate import Certificate, Rejected, decode
from coset.prove.certificate_file import packed, read_certificate
from coset.prove.contents import by_content, digest
from coset.prove.kernel import Verdict, verify
from coset.prove.writing import encode
from coset.proving.certify import certificate_of
from coset.proving.meanings import DEFINED, meaning, meaning_of
from coset.proving.steps import COMPUTED, MEANING, ROUNDED, CertificateStep
from coset.proving.verify import promises
from coset.rules.applied import matched, right_sides
from coset.rules.definition import definition_of
from coset.rules.library import load
from coset.rules.rule import Rule, decided

assert coset.dialects  # ops are registered
N = symbol("n")
RULES = {rule.name: rule for rule in load().rules}


def x_(name: str, *shape: Any) -> Term:
    return input_term(name, TensorType(F32, shape))


def program(*roots: Term) -> Program:
    inputs = tuple(dict.fromkeys(term for term in topological(roots) if term.op.name == "builtin.input"))
    return by_content(Program(inputs, tuple((f"y{place}", root) for place, root in enumerate(roots))))


def step(name: str, *roots: Term) -> CertificateStep:
    """A rule at terms."""
    rule = RULES[name]
    found = matched(rule, roots)
    assert found is not None, f"{name} does not match"
    decision = decided(rule, *found)
    assert decision is not None, f"{name} does not hold"
    return CertificateStep(rule, tuple(roots), right_sides(rule, decision, found[1]))


def check(certificate: Certificate, before: Program, after: Program, find: Callable[[str], Rule | None] = RULES.get) -> Verdict:
    return verify(certificate, before, after, find, meaning=meaning, fallback=DEFINED)


def example() -> tuple[Program, Program, Certificate]:
    """-(-(x w)) + 0 with a transposed weight and a computed constant, as x w + c."""
    x = x_("x", N, 4)
    weight = constant(np.arange(24, dtype=np.float32).reshape(6, 4))
    bias = constant(np.arange(6, dtype=np.float32))
    product = dot(x, transpose(weight, (1, 0)), lhs_contract=(1,), rhs_contract=(0,))
    twice = make("stablehlo.negate", (make("stablehlo.negate", (product,)),))
    doubled = make("stablehlo.add", (bias, bias))
    before = program(make("stablehlo.add", (twice, broadcast(doubled, (N, 6), (1,)))))
    kept = constant(np.arange(6, dtype=np.float32) * 2)
    folded = dot(x, constant(np.ascontiguousarray(np.arange(24, dtype=np.float32).reshape(6, 4).T)), lhs_contract=(1,), rhs_contract=(0,))
    after = program(make("stablehlo.add", (broadcast(kept, (N, 6), (1,)), folded)))
    (own,) = before.roots
    moved, (sum_,) = own.operands[0].operands[0].operands[0].operands[1], (own,)
    values = [
        CertificateStep(COMPUTED, (term,), (value,)) for term, value in ((moved, folded.operands[1]), (own.operands[1].operands[0], kept))
    ]
    steps = [step("double_negate", own.operands[0]), *values, step("commute[stablehlo.add]", sum_)]
    return before, after, certificate_of(before, after, [_by_content(each) for each in steps])


def _by_content(each: CertificateStep) -> CertificateStep:
    return CertificateStep(each.reason, program(*each.left).roots, program(*each.right).roots)


def test_a_true_certificate_holds_and_says_what_it_rests_on(tmp_path: Path) -> None:
    before, after, certificate = example()
    path = tmp_path / "c"
    path.write_bytes(packed(certificate))
    verdict = check(read_certificate(path), before, after)
    assert (verdict.steps, verdict.computed, verdict.numerics.word, verdict.assurance) == (4, 2, "exact", "proved")
    assert sorted(name for names in promises(verdict).values() for name in names) == ["commute[stablehlo.add]", "double_negate"]
    assert packed(certificate) == packed(certificate)


def test_it_speaks_of_two_programs_in_order() -> None:
    before, after, certificate = example()
    with pytest.raises(Rejected, match="another program before"):
        check(certificate, after, before)
    with pytest.raises(Rejected, match="another program after"):
        check(certificate, before, before)


@pytest.mark.parametrize("left_out", range(4))
def test_no_step_may_be_missing(left_out: int) -> None:
    before, after, certificate = example()
    places = [place for place, line in enumerate(certificate.lines) if "term" not in line]
    lines = [line for place, line in enumerate(certificate.lines) if place != places[left_out]]
    with pytest.raises(Rejected):
        check(Certificate(certificate.head, lines), before, after)


def test_a_step_says_what_its_rule_says_and_nothing_else() -> None:
    """Lies in form: another right side, terms that are no instance, a rule whose conditions do not hold."""
    x, y = x_("x", 4, 4), x_("y", 4, 4)
    twice = make("stablehlo.negate", (make("stablehlo.negate", (x,)),))
    rule = RULES["double_negate"]
    once = twice.operands[0]
    both = program(make("stablehlo.add", (twice, y))), program(make("stablehlo.add", (once, y)))
    with pytest.raises(Rejected, match="says something else"):
        check(certificate_of(*both, [CertificateStep(rule, (twice,), (once,))]), *both)
    with pytest.raises(Rejected, match="no pattern"):
        check(certificate_of(*both, [CertificateStep(rule, (once,), (twice,))]), *both)
    turned = transpose(transpose(x, (1, 0)), (1, 0))
    before, after = program(make("stablehlo.add", (transpose(x, (1, 0)), y))), program(make("stablehlo.add", (x, y)))
    identity = RULES["transpose_identity"]
    with pytest.raises(Rejected, match="does not hold"):
        check(certificate_of(before, after, [CertificateStep(identity, (turned.operands[0],), (x,))]), before, after)


def wrong_edits(after: Program) -> list[Program]:
    """Programs that differ from `after` in one place: operands swapped or doubled, an op, a constant, a transpose."""

    def edited(change: Callable[[Term, list[Term]], Term | None]) -> Program:
        made: dict[Term, Term] = {}
        for term in topological(after.roots):
            operands = [made[operand] for operand in term.operands]
            made[term] = change(term, operands) or rebuild(term, operands)
        return program(*(made[root] for root in after.roots))

    def other(name: str, op: str) -> Callable[[Term, list[Term]], Term | None]:
        return lambda term, operands: make(op, operands) if term.op.name == name else None

    def raised(term: Term, _: list[Term]) -> Term | None:
        value = term.attribute("value").array() if term.op.name == "builtin.constant" else None
        return None if value is None or value.ndim != 1 else constant(value + np.float32(1))

    found = [edited(other("stablehlo.add", op)) for op in ("stablehlo.multiply", "stablehlo.subtract", "stablehlo.maximum")]
    found += [
        edited(raised),
        edited(lambda term, operands: make("stablehlo.add", (operands[0],) * 2) if term.op.name == "stablehlo.add" else None),
    ]
    return [each for each in found if digest(each) != digest(after)]


def corrupted(certificate: Certificate, draw: random.Random) -> Certificate:
    """The certificate with one to three things damaged."""
    head, lines = copy.deepcopy(certificate.head), copy.deepcopy(list(certificate.lines))
    for _ in range(draw.randint(1, 3)):
        kind = draw.randrange(6)
        if kind == 0 and lines:
            del lines[draw.randrange(len(lines))]
        elif kind == 1 and len(lines) > 1:
            one, other = draw.sample(range(len(lines)), 2)
            lines[one], lines[other] = lines[other], lines[one]
        elif kind == 2 and lines:
            lines.insert(draw.randrange(len(lines) + 1), copy.deepcopy(draw.choice(lines)))
        elif kind == 3 and isinstance(head["rules"], list) and head["rules"]:
            rule = draw.choice(head["rules"])
            rule[draw.choice(("name", "text"))] = draw.choice([draw.choice(sorted(RULES)), "0" * 64, 7, None])
        elif kind == 4:
            head[draw.choice(sorted(head))] = draw.choice([None, 0, "x", [], {}])
        elif lines:
            _damage(lines[draw.randrange(len(lines))], draw)
    return Certificate(head, lines)


def _damage(value: Any, draw: random.Random) -> None:
    """Change one number, text or list somewhere below."""
    items = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
    if not items:
        return
    key, inner = draw.choice(items)
    if isinstance(inner, dict | list) and inner and draw.random() < 0.8:
        _damage(inner, draw)
    elif isinstance(inner, int):
        value[key] = inner + draw.choice((-2, -1, 1, 2, 10**6))
    else:
        value[key] = draw.choice([None, -1, 0, 3, "", "stablehlo.add", [], {}, {"dim": "n"}, {"float": "0x1p+0"}, True])


@pytest.mark.parametrize("share", range(10))
def test_no_corruption_makes_different_programs_equal(share: int) -> None:
    """1,000 in all: the certificate of a true pair, its hash changed to that of a wrong program, and then damaged."""
    before, after, certificate = example()
    wrong = wrong_edits(after)
    assert len(wrong) == 5
    draw = random.Random(share)
    for _ in range(100):
        claimed = draw.choice(wrong)
        forged = corrupted(Certificate({**certificate.head, "after": digest(claimed)}, certificate.lines), draw)
        with pytest.raises(Rejected):
            check(Certificate({**forged.head, "after": digest(claimed)}, forged.lines), before, claimed)


@pytest.mark.parametrize("share", range(5))
def test_a_damaged_certificate_is_refused_or_still_true(share: int) -> None:
    """What remains after damage may suffice (a line twice, two that change places); it is an answer or a refusal, never a crash."""
    before, after, certificate = example()
    draw = random.Random(1_000 + share)
    refused = 0
    for _ in range(100):
        try:
            verdict = check(corrupted(certificate, draw), before, after)
            assert verdict.steps >= 4
        except Rejected:
            refused += 1
    assert refused > 50


MAGNITUDE = next(rule for rule in RULES.values() if str(rule.left) == "stablehlo.abs(x)" and str(rule.right) == "x")


def test_a_fact_does_not_justify_itself() -> None:
    """abs(x) = x where x is nonnegative: abs(x) is, and would be x after the step; before it nothing shows that x is."""
    assert any(fact == "nonnegative" for fact, _ in MAGNITUDE.facts)
    x = x_("x", 4)
    root = make("stablehlo.abs", (x,))
    before, after = program(root), program(x)
    with pytest.raises(Rejected, match="nothing before shows"):
        check(certificate_of(before, after, [CertificateStep(MAGNITUDE, (root,), (x,))]), before, after)
    twice = certificate_of(before, after, [CertificateStep(MAGNITUDE, (root,), (x,), (root,)), CertificateStep(MAGNITUDE, (root,), (x,))])
    with pytest.raises(Rejected, match="nothing before shows"):
        check(twice, before, after)


def test_a_fact_is_derived_from_what_was_joined_before() -> None:
    """|-(-(e^x))| = -(-(e^x)): only once a step says that -(-y) is y."""
    exponential = make("stablehlo.exponential", (x_("x", 4),))
    around = make("stablehlo.negate", (make("stablehlo.negate", (exponential,)),))
    root = make("stablehlo.abs", (around,))
    before, after = program(root), program(around)
    plain, simpler = CertificateStep(MAGNITUDE, (root,), (around,)), step("double_negate", around)
    check(certificate_of(before, after, [simpler, plain]), before, after)
    with pytest.raises(Rejected, match="nothing before shows"):
        check(certificate_of(before, after, [plain, simpler]), before, after)


def test_a_rule_that_changed_is_refused() -> None:
    before, after, certificate = example()
    rule = RULES["double_negate"]
    changed = {**RULES, rule.name: rule.changed(text=rule.text + " ")}
    with pytest.raises(Rejected, match="another one than when"):
        check(certificate, before, after, changed.get)
    with pytest.raises(Rejected, match="there is no rule"):
        check(certificate, before, after, {}.get)


def test_interfaces_must_agree() -> None:
    x, y = x_("x", 4), x_("y", 4)
    one, other = program(make("stablehlo.negate", (x,))), program(make("stablehlo.negate", (y,)))
    with pytest.raises(Rejected, match="other inputs"):
        check(certificate_of(one, other, []), one, other)
    named = Program(one.inputs, (("z", one.roots[0]),))
    with pytest.raises(Rejected, match="other outputs"):
        check(certificate_of(one, named, []), one, named)


def test_an_input_that_only_one_has_is_none_that_it_reads() -> None:
    x, y = x_("x", 4), x_("y", 4)
    one = program(make("stablehlo.negate", (x,)))
    more = replace(one, inputs=(*one.inputs, y))
    assert check(certificate_of(one, more, []), one, more).unread == ("y",)
    assert check(certificate_of(more, one, []), more, one).unread == ("y",)
    assert check(certificate_of(more, more, []), more, more).unread == ()
    read, other = program(make("stablehlo.add", (x, y))), replace(one, inputs=(*one.inputs, x_("y", 5)))
    rows = program(broadcast(x, (N, 4), (1,)))
    counted = replace(rows, inputs=(*rows.inputs, x_("r", N, 4)))
    assert not counted.unread(), "the output has as many rows as `r`"
    for before, after in ((one, read), (read, one), (more, other), (rows, counted)):
        with pytest.raises(Rejected, match="other inputs"):
            check(certificate_of(before, after, []), before, after)


def test_a_computed_value_is_computed_again() -> None:
    """A step cannot say what the value is: it is worked out, and only of constants."""
    two = constant(np.float32([1, 2]))
    term = make("stablehlo.add", (two, two))
    x = x_("x", 2)
    before, wrong = program(make("stablehlo.add", (x, term))), program(make("stablehlo.add", (x, constant(np.float32([2, 5])))))
    forged = certificate_of(before, wrong, [CertificateStep(COMPUTED, (term,), (constant(np.float32([2, 5])),))])
    with pytest.raises(Rejected):
        check(forged, before, wrong)
    varying = certificate_of(before, before, [CertificateStep(COMPUTED, before.roots, (two,))])
    with pytest.raises(Rejected, match="not constant"):
        check(varying, before, before)


def test_only_what_is_computed_may_be_rounded_otherwise() -> None:
    """A third of three as someone else rounds it is one; a number that is further away is not, nor a weight for another weight."""
    x, three = x_("x", 2), constant(np.float32([3, 3e4]))
    third = make("stablehlo.divide", (constant(np.float32([1, 1e4])), three))

    def claimed(term: Term, value: Term) -> Verdict:
        before, after = program(make("stablehlo.add", (x, term))), program(make("stablehlo.add", (x, value)))
        return check(certificate_of(before, after, [CertificateStep(ROUNDED, (term,), (value,))]), before, after)

    verdict = claimed(third, constant(np.nextafter(np.float32([1 / 3, 1 / 3]), np.float32(1))))
    assert (verdict.rounded, str(verdict.numerics)) == (1, "reassociates") and 0 < verdict.relative < 1e-6
    with pytest.raises(Rejected, match="not what is computed"):
        claimed(third, constant(np.float32([1 / 3, 0.3334])))
    with pytest.raises(Rejected, match="nothing is computed"):
        claimed(three, constant(np.nextafter(np.float32([3, 3e4]), np.float32(9))))
    with pytest.raises(Rejected, match="no constant"):
        claimed(third, make("stablehlo.negate", (three,)))


def test_an_item_of_a_tuple_is_that_item() -> None:
    x, y = x_("x", 2), x_("y", 2)
    pair = make("builtin.tuple", (x, y))
    one, other = (make("stablehlo.subtract", (get(pair, 0), get(pair, place))) for place in (1, 0))
    before, after = program(one), program(make("stablehlo.subtract", (x, y)))
    items = [CertificateStep(MEANING, (get(pair, place),), (item,)) for place, item in enumerate((x, y))]
    assert check(certificate_of(before, after, items), before, after).steps == 2
    wrong = Program(after.inputs, (("y0", other),))
    with pytest.raises(Rejected):
        check(certificate_of(wrong, after, items), wrong, after)


def test_definitions_are_meanings() -> None:
    x = x_("x", 4, 8)
    term = make("onnx.Gelu", (x,), {"approximate": "none"})
    meant = meaning_of(term)
    assert meant is not None
    before, after = program(term), program(meant)
    verdict = check(certificate_of(before, after, [CertificateStep(MEANING, (term,), (meant,))]), before, after)
    assert verdict.assurance == definition_of(term.op).assurance
    assert str(verdict.numerics) == "reassociates" and promises(verdict) == {"reassociates": ["onnx.Gelu"]}
    with pytest.raises(Rejected, match="no definition"):
        check(certificate_of(before, after, [CertificateStep(MEANING, (make("stablehlo.negate", (x,)),), (x,))]), before, after)


VALUES = [None, True, 3, -1, "text", 1.5, float("inf"), -0.0, (1, (2, "a")), N, F32, TensorType(F32, (N, 3)), TensorType(F32, None)]


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_values_are_read_as_they_were_written(value: Any) -> None:
    found = decode(encode(value))
    assert found == value and str(found) == str(value)


def test_what_is_no_certificate_is_said(tmp_path: Path) -> None:
    path = tmp_path / "c"
    _, _, certificate = example()
    data = packed(certificate)
    for damaged, message in ((b"", "no certificate"), (b"text", "no certificate"), (data[: len(data) // 2], "no certificate")):
        path.write_bytes(damaged)
        with pytest.raises(CosetError, match=message):
            read_certificate(path)
    for version in (2, 99):
        path.write_bytes(packed(Certificate({**certificate.head, "version": version}, certificate.lines)))
        with pytest.raises(CosetError, match=f"version {version}, this coset reads version 3") as refused:
            read_certificate(path)
        assert "make it again with `coset optimize --certificate`" in str(refused.value.help)
    with pytest.raises(CosetError, match="no certificate"):
        read_certificate(tmp_path / "absent")


RAW: list[Any] = [
    None, [], 3, "line", {}, {1: 2}, {"term": None}, {"term": {}}, {"term": ["stablehlo.negate", [0.0], {}]},
    {"term": ["stablehlo.negate", [True], {}]}, {"term": ["stablehlo.negate", (0,), {}]}, {"term": ["stablehlo.negate", [-1], {}]},
    {"term": ["stablehlo.transpose", [1], {"permutation": [1, False]}]}, {"term": ["stablehlo.transpose", [1], {"permutation": [1.0, 0]}]},
    {"term": ["stablehlo.transpose", [1], {"permutation": (1, 0)}]}, {"term": ["stablehlo.transpose", [1], {"permutation": {"dim": "n"}}]},
    {"term": ["stablehlo.iota", [], {"shape": [{"dim": "n"}], "dimension": 0, "dtype": {"dtype": "f32"}}]},
    {"term": ["stablehlo.iota", [], {"shape": [N], "dimension": 0, "dtype": {"dtype": "f32"}}]},
    {"term": ["stablehlo.iota", [], {"shape": [{"dim": 3}], "dimension": 0, "dtype": {"dtype": "f32"}}]},
    {"term": ["stablehlo.iota", [], {"shape": [3], "dimension": 0, "dtype": F32}]},
    {"computed": 1.0}, {"computed": [1]}, {"computed": True}, {"rounded": [1, 2.0]}, {"rounded": (1, 2)}, {"dims": {}}, {"dims": [(1, 2)]},
    {"apart": [1]}, {"meaning": "1"}, {"rule": 0.0, "left": [0], "right": [0]}, {"rule": True, "left": [0], "right": [0]},
    {"rule": 0, "left": (0,), "right": [0]}, {"rule": 0, "left": [0], "right": [0], "more": 1},
]  # fmt: skip


@pytest.mark.parametrize("line", RAW, ids=repr)
def test_the_checker_rests_on_nothing_that_the_reader_of_files_looks_at(line: Any) -> None:
    """Lines that no file can give, or that its reader refuses, are refused by themselves, at their place."""
    before, after, certificate = example()
    check(certificate, before, after)
    with pytest.raises(Rejected, match="line 2:"):
        check(Certificate(certificate.head, [line, *certificate.lines]), before, after)


@pytest.mark.parametrize("head", [None, [], {}, {"format": 1}], ids=repr)
def test_nor_is_a_head_taken_that_says_nothing(head: Any) -> None:
    before, after, certificate = example()
    with pytest.raises(Rejected):
        check(Certificate(head, certificate.lines), before, after)
