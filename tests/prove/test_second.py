"""The second checker: true certificates are accepted, damaged and false ones are not, and it shares no judgement with the first."""

from __future__ import annotations

import ast
import gzip
import hashlib
import json
import math
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import coset.dialects
from coset.dialects.hub.terms import broadcast, dot, transpose
from coset.ir.builtin import absent
from coset.ir.dims import symbol
from coset.ir.errors import TypeRuleError
from coset.ir.evaluate import evaluate
from coset.ir.op import get_op
from coset.ir.program import Program
from coset.ir.term import Term, constant, input_term, intern, make, topological
from coset.ir.types import DTYPES, F32, TensorType
from coset.prove.second import ACCEPTS, REJECTS, Answer, answered, exact, read
from coset.prove.second.algebra import FUNCTIONS
from coset.prove.second.answer import Refused, Unknown
from coset.prove.second.classes import Classes, Contents, below
from coset.prove.second.facts import Facts
from coset.prove.second.meaning import meaning
from coset.prove.second.programs import by_content, ordered, program_hash, with_content_dims
from coset.prove.second.rules import entry_name, instance, named
from coset.prove.second.values import BUDGET, Evaluator, Value
from coset.rules import lists as first_lists
from coset.rules.arithmetic import Undefined
from coset.rules.defining import define_all
from coset.rules.definition import expand
from coset.rules.library import load
from coset.rules.parser import parse
from coset.second import LIBRARY

assert coset.dialects
ROOT = Path(__file__).resolve().parents[2]
ENTRIES = read(path.read_text() for path in LIBRARY)
N = symbol("n")


def x_(name: str, *shape: Any) -> Term:
    return input_term(name, TensorType(F32, shape))


def op(name: str, *operands: Term, **attributes: Any) -> Term:
    return make(f"stablehlo.{name}", operands, attributes)


def floats(*numbers: float) -> Term:
    return constant(np.array(numbers, np.float32))


def program(*roots: Term) -> Program:
    inputs = tuple(dict.fromkeys(term for term in topological(roots) if term.op.name == "builtin.input"))
    return Program(inputs, tuple((f"y{place}", root) for place, root in enumerate(roots)))


def text_hash(name: str) -> str:
    """The hash of the canonical text of the entry that a rule is named by."""
    found = ENTRIES.get(entry_name(name), [])
    return hashlib.sha256(found[0].text.encode()).hexdigest() if found else "0" * 64


def head(before: Program, after: Program, *rules: str) -> dict[str, Any]:
    hashes = [program_hash(by_content(each, Contents())) for each in (before, after)]
    named_rules = [{"name": name, "text": text_hash(name), "numerics": "", "assurance": ""} for name in rules]
    return {"format": "coset certificate", "version": 3, "before": hashes[0], "after": hashes[1], "rules": named_rules}


def packed(first: Any, lines: list[Any]) -> bytes:
    return gzip.compress("".join(json.dumps(row) + "\n" for row in [first, *lines, {"end": len(lines)}]).encode())


def check(before: Program, after: Program, rules: list[str], lines: list[Any], /, **changes: Any) -> Answer:
    return answered(packed({**head(before, after, *rules), **changes}, lines), before, after, ENTRIES)


# ---------------------------------------------------------------- certificates


def example() -> tuple[Program, Program, list[str], list[Any]]:
    """-(-(x w)) + (b + b) with a transposed weight, as 2b + x w with both folded: the terms of BEFORE and AFTER have the numbers below."""
    x = x_("x", N, 4)
    weight, bias = constant(np.arange(24, dtype=np.float32).reshape(6, 4)), constant(np.arange(6, dtype=np.float32))
    product = dot(x, transpose(weight, (1, 0)), lhs_contract=(1,), rhs_contract=(0,))
    twice = op("negate", op("negate", product))
    before = program(op("add", twice, broadcast(op("add", bias, bias), (N, 6), (1,))))
    folded = constant(np.ascontiguousarray(np.arange(24, dtype=np.float32).reshape(6, 4).T))
    kept = constant(np.arange(6, dtype=np.float32) * 2)
    after = program(op("add", broadcast(kept, (N, 6), (1,)), dot(x, folded, lhs_contract=(1,), rhs_contract=(0,))))
    terms = ordered(before)
    numbers = {each.op.name: place for place, each in enumerate(terms)}
    assert [each.op.name.split(".")[1] for each in terms] == [
        "input", "constant", "transpose", "dot_general", "negate", "negate", "constant", "add", "broadcast_in_dim", "add",
    ]  # fmt: skip
    assert numbers["stablehlo.transpose"] == 2
    # AFTER adds 10: the constant 2b, 11: its broadcast, 12: the folded weight, 13: the product, 14: the sum
    lines = [
        {"rule": 0, "left": [5], "right": [3]},
        {"computed": 2},
        {"computed": 7},
        {"term": ["stablehlo.add", [8, 5], {}]},
        {"rule": 1, "left": [9], "right": [15]},
    ]
    return before, after, ["double_negate", "commute[stablehlo.add]"], lines


def test_a_true_certificate_is_accepted_with_its_promises() -> None:
    answer = check(*example())
    assert str(answer) == ACCEPTS
    assert dict(answer.promises) == {"double_negate": "exact", "commute[stablehlo.add]": "exact"}


@pytest.mark.parametrize("left_out", [0, 1, 2, 4])
def test_no_step_may_be_missing(left_out: int) -> None:
    before, after, rules, lines = example()
    answer = check(before, after, rules, [line for place, line in enumerate(lines) if place != left_out])
    assert (answer.verdict, answer.reason) == (REJECTS, "the output y0 is not shown to be equal")


@pytest.mark.parametrize(
    ("place", "line"),
    [
        (0, {"rule": 1, "left": [5], "right": [3]}),  # another rule
        (0, {"rule": 0, "left": [4], "right": [3]}),  # another term
        (0, {"rule": 0, "left": [3], "right": [5]}),  # the rule read backwards
        (0, {"rule": 0, "left": [5, 5], "right": [3, 3]}),
        (0, {"rule": True, "left": [5], "right": [3]}),
        (0, {"rule": 0, "left": [5.0], "right": [3]}),
        (0, {"rule": 0, "left": [5], "right": [3], "more": 1}),
        (0, {"rule": 2, "left": [5], "right": [3]}),
        (1, {"computed": 3}),  # not of constants alone
        (1, {"rounded": [2, 10]}),  # a constant of another type
        (1, {"computed": 99}),
        (2, {"unknown": 7}),
        (3, {"term": ["stablehlo.add", [5, 8], {}]}),  # the operands as they were
        (3, {"term": ["stablehlo.subtract", [8, 5], {}]}),
        (3, {"term": ["stablehlo.add", [8, 5], {"more": 1}]}),
        (3, {"term": ["builtin.input", [], {"name": "z", "type": {"tensor": [{"dtype": "f32"}, [2]]}}]}),
    ],
)
def test_a_damaged_line_is_rejected(place: int, line: Any) -> None:
    before, after, rules, lines = example()
    assert check(before, after, rules, [line if i == place else each for i, each in enumerate(lines)]).verdict == REJECTS


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 2},
        {"version": True},
        {"version": 3.0},
        {"names": {}},
        {"before": "0" * 64},
        {"after": "0" * 64},
        {"rules": {}},
        {"format": "x"},
    ],
)
def test_the_head_is_as_the_page_says(changes: dict[str, Any]) -> None:
    assert check(*example(), **changes).verdict == REJECTS


NO_CERTIFICATES = {
    "nothing": b"",
    "not compressed": b"{}",
    "no head": gzip.compress(b"{}\n"),
    "another head": gzip.compress(b'{"a": 1}\n{"end": 1}\n'),
    "no text": gzip.compress(b"\xff\n"),
}


@pytest.mark.parametrize("data", NO_CERTIFICATES.values(), ids=NO_CERTIFICATES)
def test_what_is_no_certificate_is_rejected(data: bytes) -> None:
    before, after, _, _ = example()
    assert answered(data, before, after, ENTRIES).verdict == REJECTS


def test_names_are_an_argument_and_never_the_certificate_s() -> None:
    x, w, a, b = x_("x", 2), x_("w", 2), x_("a", 2), x_("b", 2)
    before, after = program(op("subtract", x, w)), program(op("subtract", a, b))
    data = packed(head(before, after), [])
    assert answered(data, before, after, ENTRIES).verdict == REJECTS
    assert answered(data, before, after, ENTRIES, names={"a": "x", "b": "w"}).verdict == ACCEPTS
    assert answered(data, before, after, ENTRIES, names={"a": "w", "b": "x"}).verdict == REJECTS
    assert answered(data, before, after, ENTRIES, names={"a": "x", "b": "x"}).verdict == REJECTS
    assert answered(data, before, after, ENTRIES, names={"a": "x", "b": "w", "c": "y"}).verdict == REJECTS


def test_outputs_are_compared_name_by_name() -> None:
    x = x_("x", 2)
    one, other = op("negate", x), op("abs", x)
    before = Program((x,), (("a", one), ("b", other)))
    reordered, swapped = Program((x,), (("b", other), ("a", one))), Program((x,), (("a", other), ("b", one)))
    assert check(before, reordered, [], []).verdict == ACCEPTS
    assert check(before, swapped, [], []).verdict == REJECTS


# ---------------------------------------------------------------- constants


def rounding(before: Term, after: Term) -> Answer:
    """What is said of the claim that a term of constants, plus x, is another constant plus x, with a `rounded` line."""
    x = x_("x", *before.tensor.dims)
    first, second = program(op("add", x, before)), program(op("add", x, after))
    terms = [*dict.fromkeys((*ordered(first), *ordered(second)))]
    return answered(packed(head(first, second), [{"rounded": [terms.index(before), terms.index(after)]}]), first, second, ENTRIES)


def test_a_rounding_is_admitted_element_by_element() -> None:
    third = op("divide", floats(1, 1e30), floats(3, 1))
    exact_third = np.float32(1) / np.float32(3)
    assert rounding(third, floats(np.nextafter(exact_third, np.float32(1)), 1e30)).verdict == ACCEPTS
    assert rounding(third, floats(8, 1e30)).verdict == REJECTS  # small beside the largest element, and false


def test_a_weight_is_never_another_weight() -> None:
    one, other = floats(1, 2), floats(1, np.nextafter(np.float32(2), np.float32(3)))
    assert rounding(one, other).verdict == REJECTS
    assert rounding(op("reverse", one, dimensions=(0,)), other).verdict == REJECTS


def value(term: Term) -> Value:
    def nothing(_: Term) -> Term:
        raise AssertionError("no op is defined here")

    return Evaluator(100, nothing).value(term)


def test_numbers_that_cancel_have_a_large_bound() -> None:
    found = value(op("subtract", op("add", floats(1e8), floats(1)), floats(1e8)))
    assert found.array[0] == 0
    assert found.bound[0] >= 1  # 1e8 + 1 is rounded


def test_exact_arithmetic_has_no_bound() -> None:
    found = value(op("multiply", op("add", floats(1.5, 3), floats(2.25, 4)), floats(2, 4)))
    assert (found.array.tolist(), found.bound.tolist()) == ([7.5, 28], [0, 0])


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide"])
def test_a_bound_holds_the_exact_result(name: str) -> None:
    draw = np.random.default_rng(7)
    a, b = (draw.standard_normal(200).astype(np.float32) for _ in range(2))
    found = value(op(name, constant(a), constant(b)))
    operations = {"add": lambda p, q: p + q, "subtract": lambda p, q: p - q, "multiply": lambda p, q: p * q, "divide": lambda p, q: p / q}
    for got, bound, p, q in zip(found.array, found.bound, a, b, strict=True):
        whole = operations[name](Fraction(float(p)), Fraction(float(q)))
        assert abs(Fraction(float(got)) - whole) <= Fraction(float(bound))


def test_what_costs_too_much_is_refused() -> None:
    wide = op("broadcast_in_dim", constant(np.float32(1)), shape=(1 << 13, 1 << 12), broadcast_dimensions=())
    with pytest.raises(Refused, match=f"more than {BUDGET}"):
        value(op("dot_general", wide, wide, lhs_contract=(0,), rhs_contract=(0,)))


# ---------------------------------------------------------------- instances of rules


def holds(name: str, left: Term, right: Term) -> bool:
    try:
        instance(named(name, ENTRIES), (left,), (right,))
    except (Unknown, Refused):
        return False
    return True


def splat(number: float, *shape: Any) -> Term:
    return broadcast(constant(np.float32(number)), shape, ())


X, Y, M = x_("x", N, 4), x_("y", N, 4), x_("m", 4, 5)


@pytest.mark.parametrize(
    ("name", "left", "right", "near"),
    [
        ("double_negate", op("negate", op("negate", X)), X, Y),
        ("commute[stablehlo.add]", op("add", X, Y), op("add", Y, X), op("add", X, Y)),
        ("commute[stablehlo.multiply] in algebra", op("multiply", X, Y), op("multiply", Y, X), op("multiply", X, Y)),
        (
            "transpose_transpose",
            op("transpose", op("transpose", x_("t", 2, 3, 4), permutation=(1, 2, 0)), permutation=(1, 2, 0)),
            op("transpose", x_("t", 2, 3, 4), permutation=(2, 0, 1)),
            x_("t", 2, 3, 4),
        ),
        ("add_negated", op("add", X, op("negate", Y)), op("subtract", X, Y), op("subtract", Y, X)),
        ("add_negated.reverse", op("subtract", X, Y), op("add", X, op("negate", Y)), op("add", Y, op("negate", X))),
        ("reciprocal_sqrt", op("divide", splat(1, N, 4), op("sqrt", X)), op("rsqrt", X), op("rsqrt", Y)),
        (
            "factor_of_sum",
            op("add", op("multiply", splat(3, N, 4), X), op("multiply", splat(3, N, 4), Y)),
            op("multiply", splat(3, N, 4), op("add", X, Y)),
            op("multiply", splat(4, N, 4), op("add", X, Y)),
        ),
        (
            "divide_quotient",
            op("divide", op("divide", X, splat(3, N, 4)), splat(7, N, 4)),
            op("divide", X, splat(21, N, 4)),
            op("divide", X, splat(float(np.nextafter(np.float32(21), np.float32(22))), N, 4)),
        ),
        (
            "slice_slice",
            op("slice", op("slice", x_("s", 20), start=(2,), limit=(18,), strides=(2,)), start=(1,), limit=(7,), strides=(3,)),
            op("slice", x_("s", 20), start=(4,), limit=(11,), strides=(6,)),
            op("slice", x_("s", 20), start=(4,), limit=(12,), strides=(6,)),
        ),
        ("reshape_identity", op("reshape", X, shape=(N, 4)), X, Y),
        (
            "reduce_of_reduce",
            op("reduce", op("reduce", x_("r", 2, 3, 4), dimensions=(1,), combiner="add"), dimensions=(1,), combiner="add"),
            op("reduce", x_("r", 2, 3, 4), dimensions=(1, 2), combiner="add"),
            op("reduce", op("transpose", x_("r", 2, 3, 4), permutation=(0, 2, 1)), dimensions=(1, 2), combiner="add"),
        ),
        ("onnx.Relu", make("onnx.Relu", (X,)), op("maximum", X, splat(0, N, 4)), op("maximum", X, splat(-0.0, N, 4))),
        ("onnx.Relu.recognise", op("maximum", X, splat(0, N, 4)), make("onnx.Relu", (X,)), make("onnx.Relu", (Y,))),
    ],
)
def test_an_instance_holds_and_its_neighbour_does_not(name: str, left: Term, right: Term, near: Term) -> None:
    assert holds(name, left, right)
    assert not holds(name, left, near)
    assert not holds(name, right, left) or name.startswith("commute")


def test_a_condition_that_is_not_known_does_not_hold() -> None:
    guarded = op("maximum", op("multiply", X, splat(2, N, 4)), op("multiply", Y, splat(2, N, 4)))
    assert holds("scaled_maximum", guarded, op("multiply", op("maximum", X, Y), splat(2, N, 4)))
    negative = op("maximum", op("multiply", X, splat(-2, N, 4)), op("multiply", Y, splat(-2, N, 4)))
    assert not holds("scaled_maximum", negative, op("multiply", op("maximum", X, Y), splat(-2, N, 4)))


def test_an_entry_has_the_text_that_the_head_says() -> None:
    before, after, names, lines = example()
    rules = head(before, after, *names)["rules"]
    changed = [{**rules[0], "text": "0" * 64}, *rules[1:]]
    assert check(before, after, names, lines, rules=changed).verdict == REJECTS
    assert check(before, after, names, lines, rules=[{**rules[0], "more": 1}, *rules[1:]]).verdict == REJECTS


def test_the_canonical_text_is_that_of_the_library() -> None:
    """Two readers of the rule language, one text."""
    own = {each.text for entries in ENTRIES.values() for each in entries}
    assert all(rule.text in own for rule in load().rules)


@pytest.mark.parametrize("name", ["no_such_rule", "double_negate.reverse.reverse", "commute[stablehlo.add].reverse", "double_negate in"])
def test_a_name_that_no_entry_has_is_rejected(name: str) -> None:
    """The direction stands before the op: `commute.reverse[stablehlo.add]`."""
    before, after, _, lines = example()
    assert check(before, after, [name, "commute[stablehlo.add]"], lines).verdict == REJECTS


def gemm(beta: float, *c: Term) -> Term:
    return make("onnx.Gemm", (X, M, *(c or (absent(),))), {"alpha": 0.5, "beta": beta, "transA": 0, "transB": 0})


def test_what_a_body_does_not_determine_is_not_recognised() -> None:
    """Without a summand nothing says what its factor is: a Gemm means the product whatever that is, and the product is the plain Gemm."""
    product = op("multiply", splat(0.5, N, 5), dot(X, M, lhs_contract=(1,), rhs_contract=(0,)))
    assert holds("onnx.Gemm.recognise#8", product, gemm(1.0))
    for beta in (float(np.nextafter(np.float32(1), np.float32(2))), 2.0, 0.0):
        assert holds("onnx.Gemm", gemm(beta), product)
        assert not holds("onnx.Gemm.recognise#8", product, gemm(beta))
    summand = x_("c", 5)
    sum_of = op("add", product, op("multiply", splat(3, N, 5), broadcast(summand, (N, 5), (1,))))
    assert holds("onnx.Gemm.recognise", sum_of, gemm(3.0, summand))
    assert not holds("onnx.Gemm.recognise", sum_of, gemm(4.0, summand))


@pytest.mark.parametrize(
    "term",
    [
        make("onnx.Softmax", (X,), {"axis": -1}),
        make("onnx.Gelu", (X,), {"approximate": "tanh"}),
        make("onnx.Gelu", (X,), {"approximate": "none"}),
        make("onnx.LayerNormalization", (X, x_("scale", 4), absent()), {"axis": 1, "epsilon": 1e-5}),
        make("onnx.Gemm", (X, M, absent()), {"alpha": 2.0, "beta": 1.0, "transA": 0, "transB": 0}),
        make("onnx.Gemm", (X, M, x_("c", 5)), {"alpha": 1.0, "beta": 0.5, "transA": 0, "transB": 0}),
        make("onnx.HardSigmoid", (X,)),
        make("onnx.ReduceMean", (X,), {"dimensions": (1,)}),
        make("onnx.ReduceMean", (X,), {"dimensions": (0,)}),
    ],
    ids=lambda term: term.op.name,
)
def test_a_meaning_is_an_instance_of_the_definition(term: Term) -> None:
    whole, _ = meaning(term, ENTRIES)
    assert whole.type == term.type
    assert holds(term.op.name, term, whole)


CLAUSES = """use stablehlo, clause

op clause.Second(x: F[S..], way: int) -> F[S..]
  "One more where there are many elements, else x."
  means x + 1
  where way == 3 and product(S) > 7
  numerics exact
  means x
  numerics exact
"""


@pytest.mark.parametrize(("count", "way", "clause"), [(8, 3, "more"), (7, 3, "same"), (8, 4, "same"), (N, 4, "same"), (N, 3, "")])
def test_a_clause_is_not_passed_over_where_a_free_dim_decides(count: Any, way: int, clause: str) -> None:
    """Both checkers take the first clause that fits, and none where it may fit for some numbers."""
    file, errors = parse(CLAUSES, "clauses.rules")
    assert not errors and not define_all(file.ops, {name: dialect for name, dialect, _ in file.dialects}, Path())
    x = x_("x", count)
    if clause:
        term = make("clause.Second", (x,), {"way": way})
        assert meaning(term, read([CLAUSES]))[0] == expand(term) == (x if clause == "same" else op("add", x, splat(1, count)))
        return
    untyped = intern(get_op("clause.Second"), (x,), (("way", way),), (), x.type)
    with pytest.raises(Refused, match="no clause"):
        meaning(untyped, read([CLAUSES]))
    with pytest.raises(TypeRuleError, match="which of its meanings holds"):
        expand(untyped)


def test_a_fact_never_supports_itself() -> None:
    classes = Classes()
    doubled = op("add", X, X)
    classes.add(doubled)
    classes.join(X, doubled)
    assert not Facts(classes).holds("nonnegative", X)
    classes.add(op("abs", Y))
    classes.join(X, op("abs", Y))
    assert Facts(classes).holds("nonnegative", doubled)


def test_equal_operands_make_equal_terms() -> None:
    classes = Classes()
    one, other = op("negate", op("abs", X)), op("negate", op("abs", Y))
    for each in (one, other):
        classes.add(each)
    assert not classes.equal(one, other)
    classes.join(X, Y)
    assert classes.equal(one, other)
    assert not classes.equal(one, X)


# ---------------------------------------------------------------- the parts


@pytest.mark.parametrize("name", ["f32", "f16", "bf16", "f8e4m3fn", "f8e5m2"])
def test_a_rational_is_rounded_once_to_the_nearest(name: str) -> None:
    dtype, draw = DTYPES[name], random.Random(5)
    largest = float(ml_dtypes.finfo(dtype.numpy).max)
    for _ in range(2000):
        number = Fraction(draw.gauss(0, 1) * 2.0 ** draw.randint(-160 if name in ("f32", "bf16") else -30, 5))
        if abs(number) < largest:
            assert exact.rounded(number, dtype).tobytes() == np.float64(float(number)).astype(dtype.numpy).tobytes()
    third = exact.rounded(Fraction(1, 3), dtype)
    assert abs(Fraction(float(third)) - Fraction(1, 3)) <= Fraction(1, 2) * Fraction(float(ml_dtypes.finfo(dtype.numpy).eps)) / 3


def test_zeros_have_signs_and_infinities_are_ieee_s() -> None:
    assert math.copysign(1, exact.multiplied(Fraction(0), Fraction(-1))) == -1
    assert exact.divided(Fraction(1), -0.0) == -math.inf
    assert math.isnan(float(exact.multiplied(math.inf, Fraction(0))))
    assert exact.added(-0.0, -0.0) == 0
    assert math.copysign(1, exact.added(-0.0, -0.0)) == -1
    assert exact.added(-0.0, Fraction(2)) == 2


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [
        ("compose", ((1, 2, 0), (2, 0, 1)), (0, 1, 2)),
        ("inverse", ((1, 2, 0),), (2, 0, 1)),
        ("insert", ((5, 7), (0, 2), 1), (1, 5, 1, 7)),
        ("drop", ((5, 6, 7), (1,)), (5, 7)),
        ("join", ((1,), (1,)), (1, 2)),
        ("without", (4, (1, -1)), (0, 2)),
        ("broadcast", ((N, 1), (4,)), (N, 4)),
        ("placement", ((3, 4), (1, 3, 1, 4)), (1, 3)),
        ("cut", ((2, 3, 4), 6), 2),
        ("runs", ((2, 4, 1, 3, 8), (8, 3, 8)), ((0, 1), (2, 3), (4,))),
        ("relocated", ((0, 2), (3, 1, 4), (1, 3, 4)), (1, 2)),
        ("regrouped", ((2, 3, 4), (6, 4), (0,)), (0, 1)),
        ("index", ((4, 5, 6), 6), 2),
        ("ones_at", ((4, 5, 6), (1,)), (4, 1, 6)),
    ],
)
def test_the_index_algebra_is_the_page_s(name: str, arguments: tuple[Any, ...], result: Any) -> None:
    assert FUNCTIONS[name](*arguments) == result


NOT_HERE = {"associative", "commutative", "neutral", "diagonal", "masking", "expanding", "begin_end", "given"}


def test_every_function_of_the_page_is_known_or_listed() -> None:
    lines = (ROOT / "docs" / "rules.md").read_text().splitlines()
    table = {line.split("`")[1].split("(")[0] for line in lines if line.startswith("| `") and "(" in line.split("`")[1]}
    assert {name for name in table if name.isidentifier()} - set(FUNCTIONS) - NOT_HERE == {"range"} - set(FUNCTIONS)


def test_inner_dims_are_called_by_what_they_are_computed_from() -> None:
    def sized(name: str) -> Program:
        inner = symbol(name)
        found = make("stablehlo.dynamic_reshape", (X, input_term("s", TensorType(DTYPES["i32"], (1,)))), {"shape": (inner,)})
        return program(op("negate", found))

    one, other = (with_content_dims(sized(name)) for name in ("k", "j"))
    assert [term.type for term in below(one.roots)] == [term.type for term in below(other.roots)]
    assert program_hash(sized("k")) != program_hash(sized("j"))


def test_it_shares_no_judgement_with_the_first_checker() -> None:
    allowed = ("coset.ir", "coset.dialects", "coset.prove.second")
    forbidden = ("coset.ir.evaluate", "coset.dialects.hub", "coset.dialects.expansion")
    for path in sorted((ROOT / "prove" / "second").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = (
                [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else [each.name for each in node.names]
                if isinstance(node, ast.Import)
                else []
            )
            for name in names:
                assert not name.startswith("coset") or (name.startswith(allowed) and not name.startswith(forbidden)), f"{path.name}: {name}"


@pytest.mark.parametrize("seed", range(4))
def test_both_checkers_cut_shapes_alike(seed: int) -> None:
    """`runs` and `regrouped` of drawn shapes, dims of 1 among them: two programs written from one page."""
    draw = random.Random(seed)

    def said(function: Any, *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except (Unknown, Undefined):
            return None

    for _ in range(500):
        shape, other = (tuple(draw.choice((1, 2, 3, 4, 6)) for _ in range(draw.randrange(5))) for _ in range(2))
        axes = tuple(axis for axis in range(len(other)) if draw.random() < 0.5)
        assert said(FUNCTIONS["runs"], shape, other) == said(first_lists.runs, shape, other)
        assert said(FUNCTIONS["regrouped"], shape, other, axes) == said(first_lists.regrouped, shape, other, axes)


def drawn_gather(draw: random.Random) -> Term:
    """A gather of the rows or windows of a tensor, at places some of which are out of range."""
    shape = tuple(draw.randrange(2, 5) for _ in range(3))
    operand = constant(np.arange(np.prod(shape), dtype=np.float32).reshape(shape))
    count = draw.randrange(1, 3)
    named = draw.sample(range(3), count)
    collapsed = sorted(draw.sample(named, draw.randrange(count + 1)))
    sizes = tuple(1 if axis in collapsed else draw.randrange(1, size + 1) for axis, size in enumerate(shape))
    starts = np.array([[[draw.randrange(-2, 6) for _ in range(count)] for _ in range(2)] for _ in range(3)], np.int32)
    vector = draw.randrange(3)
    offsets = sorted(draw.sample(range(5 - len(collapsed)), 3 - len(collapsed)))
    return op(
        "gather", operand, constant(np.ascontiguousarray(np.moveaxis(starts, 2, vector))), offset_dims=tuple(offsets),
        collapsed_slice_dims=tuple(collapsed), start_index_map=tuple(named), index_vector_dim=vector, slice_sizes=sizes,
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(60))
def test_a_gather_has_the_evaluator_s_elements(seed: int) -> None:
    term = drawn_gather(random.Random(seed))
    (wanted,) = evaluate([term], {})
    assert np.array_equal(value(term).array, wanted)
