"""Certificates written by someone who knows the format: each claims what is false, and each is refused by both checkers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from coset.dialects.hub.region_terms import while_term
from coset.dialects.hub.terms import broadcast, convert, dot, reshape, transpose
from coset.ir.program import Program
from coset.ir.term import Term, constant, get, input_term, make
from coset.ir.types import BF16, BOOL, DTYPES, F32, TensorType
from coset.prove.certificate import Certificate, Line, Rejected
from coset.prove.contents import digest
from coset.prove.kernel import verify
from coset.prove.second import ACCEPTS, REJECTS
from coset.proving.certify import certificate_of
from coset.proving.meanings import DEFINED, meaning, meaning_of
from coset.proving.steps import COMPUTED, CertificateStep, hashed_value
from tests.prove.forged_certificates import (
    FORGERIES,
    RULES,
    Forgery,
    S,
    X,
    Y,
    by_one_step,
    claimed,
    computed,
    forgery,
    meant,
    number,
    numbers,
    op,
    program,
    rounded,
    said,
)  # fmt: skip

# ---------------------------------------------------------------- one constant becomes another


@forgery
def beside_a_large_number() -> Forgery:
    """1 and 1e30 are [1e30, 8] but for roundings of the largest element, and a slice takes the 8 out again."""
    large, other = op("multiply", numbers(1e30, 1), numbers(1, 1)), numbers(1e30, 8)
    cut = [op("slice", each, start=(1,), limit=(2,), strides=(1,)) for each in (large, other)]
    return by_one_step(cut[0], cut[1], [rounded(large, other)], "not what is computed")


def weight_as(trivial: Callable[[Term], Term], by: float = 1.5) -> Forgery:
    weight, other = numbers(1, 2), numbers(1, 2 * by)
    return by_one_step(trivial(weight), other, [rounded(trivial(weight), other)], "not what is computed|nothing is computed")


@forgery
def a_weight_times_one() -> Forgery:
    return weight_as(lambda w: op("multiply", w, numbers(1, 1)))


@forgery
def a_weight_times_one_by_a_unit() -> Forgery:
    return weight_as(lambda w: op("multiply", w, numbers(1, 1)), 1 + 2.0**-23)


@forgery
def a_weight_plus_zero() -> Forgery:
    return weight_as(lambda w: op("add", w, numbers(0, 0)), 1 + 2.0**-23)


@forgery
def a_weight_converted_to_its_type() -> Forgery:
    return weight_as(lambda w: make("stablehlo.convert", (w,), {"dtype": F32}), 1 + 2.0**-23)


@forgery
def a_weight_as_the_larger_of_itself() -> Forgery:
    return weight_as(lambda w: op("maximum", w, w), 1 + 2.0**-23)


@forgery
def a_weight_that_is_moved() -> Forgery:
    return weight_as(lambda w: op("reverse", w, dimensions=(0,)), 1 + 2.0**-23)


@forgery
def a_weight_halved_and_doubled() -> Forgery:
    return weight_as(lambda w: op("multiply", op("multiply", w, numbers(0.5, 0.5)), numbers(2, 2)), 1 + 2.0**-23)


@forgery
def drift_by_many_roundings() -> Forgery:
    """Three times a third: two roundings each time, in one class: the third constant is too far from the first."""
    weight = numbers(1.1, 2.2)
    value, steps, root = weight, list[CertificateStep](), op("add", X, weight)
    for _ in range(6):
        third = op("divide", value, numbers(3, 3))
        around = op("multiply", third, numbers(3, 3))
        step = hashed_value(around).attribute("value").array() * np.float32(1 + 2.0**-22)
        value = constant(np.asarray(step, np.float32))
        steps.append(rounded(around, value))
    return Forgery(program(root), program(op("add", X, value)), steps, "not what is computed|another constant")


@forgery
def two_values_of_one_term() -> Forgery:
    """A constant and one on the other side of what is computed, each within the bound: they are not within it of each other."""
    term = op("divide", numbers(1, 2), numbers(3, 7))
    value = hashed_value(term).attribute("value").array()
    near = [constant(np.asarray(value * np.float32(1 + side * 2.0**-21), np.float32)) for side in (-1, 1)]
    before, after = program(op("add", X, near[0]), op("add", X, term)), program(op("add", X, near[1]), op("add", X, term))
    return Forgery(before, after, [rounded(term, each) for each in near], "not what is computed|another constant")


@forgery
def a_nan_as_a_number() -> Forgery:
    return by_one_step(*(pair := (op("divide", numbers(0, 1), numbers(0, 3)), numbers(1, 1 / 3))), [rounded(*pair)], "not what")


@forgery
def an_infinity_as_the_largest_number() -> Forgery:
    return by_one_step(*(pair := (op("divide", numbers(1, 1), numbers(0, 3)), numbers(3.4e38, 1 / 3))), [rounded(*pair)], "not what")


@forgery
def an_infinity_of_the_other_sign() -> Forgery:
    return by_one_step(*(pair := (op("divide", numbers(1, 1), numbers(0, 3)), numbers(-np.inf, 1 / 3))), [rounded(*pair)], "not what")


@forgery
def an_overflow_as_infinity() -> Forgery:
    """(s 1e30) 1e30 is s times infinity."""
    root, large = op("multiply", op("multiply", S, number(1e30)), number(1e30)), op("multiply", number(1e30), number(1e30))
    after = program(op("multiply", S, number(np.inf)))
    return Forgery(program(root), after, [said("multiply_assoc_const", root), computed(large)], "no bound|ill-conditioned")


@forgery
def an_integer_rounded() -> Forgery:
    pair = op("add", constant(np.int32([1, 2])), constant(np.int32([1, 1]))), constant(np.int32([2, 4]))
    return by_one_step(*pair, [rounded(*pair)], "only floats")


@forgery
def a_sum_of_many_in_few_bits() -> Forgery:
    """4,096 terms in bf16: first-order bounds say nothing."""
    many = broadcast(number(0.01, BF16.numpy), (4096, 2), ())
    total, other = op("reduce", many, dimensions=(0,), combiner="add"), constant(np.asarray([300, 300], BF16.numpy))
    return by_one_step(total, other, [rounded(total, other)], "not what|no bound")


@forgery
def a_16_bit_number_by_three_units() -> Forgery:
    pair = op("divide", numbers(1, 2, dtype=BF16.numpy), numbers(3, 3, dtype=BF16.numpy)), numbers(0.3398, 0.68, dtype=BF16.numpy)
    return by_one_step(*pair, [rounded(*pair)], "not what")


@forgery
def a_subnormal_as_another() -> Forgery:
    pair = op("multiply", numbers(1e-30, 1), numbers(1e-10, 1)), numbers(3e-40, 1)
    return by_one_step(*pair, [rounded(*pair)], "not what|ill-cond")


def absorbed(large: Term, small: Term, further: Sequence[Term] = ()) -> tuple[Forgery, Term]:
    """s + 1 said to be s: (s + 1) + large is s + large in few bits, and what is large is taken away again."""
    one, negative = number(1), number(-float(large.attribute("value").array()) if large.op.name == "builtin.constant" else -1e8)
    shifted, inner = op("add", op("add", S, one), large), op("add", one, large)
    zero, around = op("add", large, negative), op("add", shifted, negative)
    steps = [
        said("add_assoc_const", shifted), computed(inner), said("add_assoc_const", around), computed(zero),
        said("add_zero#2", op("add", op("add", S, one), number(0))),
        said("add_assoc_const", op("add", op("add", S, large), negative)), said("add_zero#2", op("add", S, number(0))),
    ]  # fmt: skip
    before, after = program(op("add", S, one), *further), program(S, *further)
    return Forgery(before, after, steps, "stands for something else|ill-conditioned|computed from it"), inner


@forgery
def absorbed_by_a_large_number() -> Forgery:
    return absorbed(number(1e8), number(1))[0]


@forgery
def absorbed_by_a_mask_of_the_programs() -> Forgery:
    mask = op("add", input_term("m", TensorType(F32, ())), number(-3.4e38))
    return absorbed(number(-3.4e38), number(1), [mask])[0]


@forgery
def absorbed_where_both_programs_cancel() -> Forgery:
    """The programs themselves have 1e8 - 1e8, in an output that nobody cares for."""
    cancelling = op("add", op("add", number(1e8), number(-1e8)), input_term("m", TensorType(F32, ())))
    return absorbed(number(1e8), number(1), [cancelling])[0]


@forgery
def a_sum_that_cancels() -> Forgery:
    """(5 + 1e8) - 1e8 is 8."""
    around = op("add", op("add", number(5), number(1e8)), number(-1e8))
    steps = [computed(around), said("add_assoc_const", around), computed(op("add", number(1e8), number(-1e8)))]
    steps.append(said("add_zero#2", op("add", number(5), number(0))))
    return by_one_step(number(5), number(8), steps, "ill-conditioned")


@forgery
def a_sum_that_cancels_rounded() -> Forgery:
    around = op("add", op("add", number(5), number(1e8)), number(-1e8))
    return by_one_step(number(5), number(11), [rounded(around, number(11))], "ill-conditioned")


@forgery
def a_number_that_underflows() -> Forgery:
    """w 1e-30 1e-20 is 0."""
    small = op("multiply", op("multiply", number(3), number(1e-30)), number(1e-20))
    return by_one_step(number(3), number(0), [computed(small)], "ill-conditioned")


@forgery
def a_rounded_number_as_a_number_of_a_rule() -> Forgery:
    """3 (1 / 3), rounded to 1, is no 1 that a rule may drop."""
    third = op("multiply", op("divide", number(1), number(3)), number(3))
    one = hashed_value(third)
    factor = op("multiply", S, third)
    steps = [computed(third), said("multiply_one#2", op("multiply", S, one))]
    assert float(one.attribute("value").array()) == 1
    return Forgery(program(factor), program(S), steps, "looks at a number that was rounded|computed from it")


@forgery
def a_value_that_is_not_computed() -> Forgery:
    two, wrong = numbers(1, 2), numbers(2, 5)
    return by_one_step(op("add", two, two), wrong, [computed(op("add", two, two), wrong)], "do not join")


@forgery
def a_value_of_what_varies() -> Forgery:
    root = op("add", X, numbers(1, 2))
    return Forgery(program(root), program(X), [computed(root, numbers(1, 2))], "not constant")


@forgery
def a_comparison_of_rounded_numbers() -> Forgery:
    """Whether 0.1 + 0.2 is 0.3 is nothing that roundings leave alone."""
    total = op("add", numbers(0.1, 0.7), numbers(0.2, 0.1))
    equal = make("stablehlo.compare", (total, numbers(0.3, 0.8)), {"direction": "EQ"})
    chosen = input_term("x", TensorType(BOOL, (2,)))
    return Forgery(program(op("or", chosen, equal)), program(op("or", chosen, hashed_value(equal))), [computed(equal)], "rounded numbers")


@forgery
def a_sum_over_processes() -> Forgery:
    """Alone a process has its own number; two have twice that."""
    total = make("stablehlo.all_reduce", (number(3),), {"replica_groups": ((0, 1),), "combiner": "add", "use_global_device_ids": False})
    return by_one_step(total, number(3), [computed(total, number(3))], "depends on other processes")


# ---------------------------------------------------------------- inputs, outputs and their names


DIFFERENCE, TURNED = op("subtract", X, Y), op("subtract", Y, X)


@forgery
def names_in_the_head() -> Forgery:
    return Forgery(program(DIFFERENCE), program(TURNED), head={"names": {"inputs": {"x": "y", "y": "x"}, "outputs": {}}}, reason="the head")


@forgery
def inputs_swapped() -> Forgery:
    return Forgery(program(DIFFERENCE), program(TURNED), reason="do not join")


@forgery
def outputs_swapped() -> Forgery:
    return Forgery(program(DIFFERENCE, X), program(X, DIFFERENCE), reason="do not join")


@forgery
def outputs_renamed() -> Forgery:
    one = program(DIFFERENCE, X)
    return Forgery(one, Program(one.inputs, (("y1", one.outputs[0][1]), ("y0", one.outputs[1][1]))), reason="do not join")


@forgery
def an_output_left_out() -> Forgery:
    return Forgery(program(DIFFERENCE, X), program(DIFFERENCE), reason="other outputs")


@forgery
def an_output_twice() -> Forgery:
    one = program(DIFFERENCE, X)
    return Forgery(one, Program(one.inputs, (one.outputs[0], one.outputs[0])), reason="other outputs")


@forgery
def an_input_of_another_type() -> Forgery:
    other = input_term("x", TensorType(F32, (2, 1)))
    return Forgery(program(op("negate", X)), program(reshape(op("negate", other), (2,))), reason="other inputs")


@forgery
def an_input_that_is_read() -> Forgery:
    return Forgery(program(DIFFERENCE), program(op("subtract", X, X)), reason="other inputs")


@forgery
def a_mapping_of_a_name_that_is_not_there() -> Forgery:
    return Forgery(program(X), program(X), names={"z": "x"}, reason="no input or output `z`")


@forgery
def a_mapping_of_two_names_to_one() -> Forgery:
    return Forgery(program(DIFFERENCE), program(DIFFERENCE), names={"x": "y"}, reason="cannot be those before")


# ---------------------------------------------------------------- definitions


@forgery
def a_meaning_without_a_definition() -> Forgery:
    return Forgery(program(op("negate", X)), program(X), [meant(op("negate", X), X)], "no definition")


@forgery
def another_item_of_a_tuple() -> Forgery:
    pair = make("builtin.tuple", (X, Y))
    items = [meant(get(pair, place), item) for place, item in enumerate((X, Y))]
    return Forgery(program(op("subtract", get(pair, 1), get(pair, 0))), program(DIFFERENCE), items, "do not join")


@forgery
def a_softmax_of_another_axis() -> Forgery:
    x = input_term("x", TensorType(F32, (2, 3)))
    one, other = (make("onnx.Softmax", (x,), {"axis": axis}) for axis in (0, 1))
    return Forgery(program(one), program(other), [meant(one), meant(other)], "do not join")


@forgery
def a_gelu_that_is_another() -> Forgery:
    one, other = (make("onnx.Gelu", (X,), {"approximate": word}) for word in ("none", "tanh"))
    return Forgery(program(one), program(other), [meant(one), meant(other)], "do not join")


# ---------------------------------------------------------------- facts


MAGNITUDE = next(rule for rule in RULES.values() if str(rule.left) == "stablehlo.abs(x)" and str(rule.right) == "x")
ABSOLUTE = op("abs", X)


@forgery
def a_fact_that_rests_on_itself() -> Forgery:
    return Forgery(program(ABSOLUTE), program(X), [CertificateStep(MAGNITUDE, (ABSOLUTE,), (X,), (ABSOLUTE,))], "nothing before shows")


@forgery
def a_fact_that_comes_later() -> Forgery:
    around = op("negate", op("negate", op("exponential", X)))
    steps = [CertificateStep(MAGNITUDE, (op("abs", around),), (around,)), said("double_negate", around)]
    return Forgery(program(op("abs", around)), program(around), steps, "nothing before shows")


@forgery
def a_fact_of_a_negative_constant() -> Forgery:
    root = op("abs", numbers(1, -2))
    return by_one_step(root, numbers(1, -2), [CertificateStep(MAGNITUDE, (root,), (numbers(1, -2),))], "nothing before shows")


@forgery
def two_facts_that_rest_on_each_other() -> Forgery:
    """abs(x) = x once x is nonnegative, and abs(abs(x)) = abs(x), which is."""
    twice = op("abs", ABSOLUTE)
    steps = [CertificateStep(MAGNITUDE, (twice,), (ABSOLUTE,)), CertificateStep(MAGNITUDE, (ABSOLUTE,), (X,), (twice, ABSOLUTE))]
    return Forgery(program(ABSOLUTE), program(X), steps, "nothing before shows")


# ---------------------------------------------------------------- instances of rules


M = input_term("m", TensorType(F32, (2, 2)))


@forgery
def a_transpose_that_is_no_identity() -> Forgery:
    return Forgery(program(transpose(M, (1, 0))), program(M), [claimed("transpose_identity", transpose(M, (1, 0)), M)], "does not hold")


@forgery
def a_rule_at_another_op() -> Forgery:
    return Forgery(program(DIFFERENCE), program(TURNED), [claimed("commute[stablehlo.add]", DIFFERENCE, TURNED)], "no pattern")


@forgery
def a_right_side_of_its_own() -> Forgery:
    total = op("add", X, Y)
    other = op("add", Y, op("negate", X))
    return Forgery(program(total), program(other), [claimed("commute[stablehlo.add]", total, other)], "something else")


@forgery
def an_instance_with_two_values_of_a_variable() -> Forgery:
    root = op("negate", op("negate", X))
    return Forgery(program(root), program(Y), [claimed("double_negate", root, Y)], "other inputs|something else")


@forgery
def a_product_with_another_contraction() -> Forgery:
    a, b, c = (input_term(name, TensorType(F32, (2, 2))) for name in "abc")
    left = dot(dot(a, b, lhs_contract=(1,), rhs_contract=(0,)), c, lhs_contract=(1,), rhs_contract=(0,))
    right = dot(a, dot(b, c, lhs_contract=(0,), rhs_contract=(0,)), lhs_contract=(1,), rhs_contract=(0,))
    return Forgery(program(left), program(right), [claimed("matmul_assoc", left, right)], "something else")


@forgery
def a_zero_that_is_a_one() -> Forgery:
    root = op("add", S, number(1))
    return Forgery(program(root), program(S), [claimed("add_zero#2", root, S)], "does not hold")


def by_line(line: Line, reason: str) -> Forgery:
    return Forgery(program(DIFFERENCE), program(TURNED), lines=[line], reason=reason)


LINES: dict[str, tuple[Line, str]] = {
    "a rule that is not there": ({"rule": 0, "left": [2], "right": [3]}, "there is no rule"),
    "a rule of a negative number": ({"rule": -1, "left": [2], "right": [3]}, "there is no rule"),
    "a rule whose number is a truth": ({"rule": True, "left": [2], "right": [3]}, "there is no rule"),
    "a term that is not there": ({"computed": 99}, "there is no term"),
    "a term of a negative number": ({"computed": -1}, "there is no term"),
    "a meaning of a number that is a truth": ({"meaning": True}, "there is no term"),
    "another line": ({"equal": [2, 3]}, "no line"),
    "a line with more": ({"computed": 2, "value": 3}, "no line"),
    "dims of what gives none": ({"dims": [[2, 3]]}, "not seen to be equal"),
    "dims of inputs": ({"dims": [[0, 0]]}, "two computations"),
    "an input more": ({"term": ["builtin.input", [], {"name": "z", "type": {"tensor": [{"dtype": "f32"}, [2]]}}]}, "adds no inputs"),
    "a parameter": ({"term": ["builtin.parameter", [], {"index": 0, "type": {"tensor": [{"dtype": "f32"}, [2]]}}]}, "adds no inputs"),
    "an attribute less": ({"term": ["stablehlo.reverse", [0], {}]}, "other attributes"),
    "an attribute more": ({"term": ["stablehlo.negate", [0], {"a": 1}]}, "other attributes"),
    "attributes of another op": ({"term": ["stablehlo.reverse", [0], 2]}, "is no"),
    "a loop without functions": ({"term": ["stablehlo.while", [0], {}]}, "regions"),
    "functions that an op has not": ({"term": ["stablehlo.negate", [0], {}, [[[], [], []]]]}, "regions"),
    "a large constant": (
        {"term": ["builtin.constant", [], {"value": {"constant": [{"tensor": [{"dtype": "u8"}, [17]]}, 22 * "A" + "A="]}}]},
        "more than 16",
    ),
    "operands that do not fit": ({"term": ["stablehlo.add", [0], {}]}, "line"),
    "an op that is not there": ({"term": ["stablehlo.equal", [0], {}]}, "there is no op"),
}  # fmt: skip


@pytest.mark.parametrize("what", LINES)
def test_lines_that_say_nothing_are_refused(what: str) -> None:
    forged = by_line(*LINES[what])
    with pytest.raises(Rejected, match=LINES[what][1]):
        forged.check()
    assert forged.second().verdict == REJECTS


# ---------------------------------------------------------------- heads


@pytest.mark.parametrize(
    "head",
    [{"version": 2}, {"version": "3"}, {"format": "another"}, {"numerics": "exact"}, {"map": {"x": "y"}}, {"rules": None}, {"rules": {}}],
    ids=str,
)
def test_heads_that_say_something_else_are_refused(head: dict[str, Any]) -> None:
    with pytest.raises(Rejected, match=r"head|lists no rules"):
        Forgery(program(DIFFERENCE), program(DIFFERENCE), head=head).check()


def test_hashes_must_be_those_of_the_programs_in_order() -> None:
    before, after = program(DIFFERENCE), program(op("negate", op("negate", DIFFERENCE)))
    for head in ({"before": digest(after)}, {"after": digest(before)}, {"before": None}, {"after": "0" * 64}):
        with pytest.raises(Rejected, match="another program"):
            Forgery(before, after, [said("double_negate", after.roots[0])], head=head).check()


def test_a_rule_under_the_text_of_another_is_refused() -> None:
    total = op("add", X, Y)
    made = certificate_of(program(total), program(op("add", Y, X)), [said("commute[stablehlo.add]", total)])
    for changed in ({"name": "double_negate"}, {"text": "0" * 64}, {"name": 7}, {"name": "nobody"}):
        head = {**made.head, "rules": [{**made.head["rules"][0], **changed}]}
        with pytest.raises(Rejected, match="rule"):
            verify(Certificate(head, made.lines), program(total), program(op("add", Y, X)), RULES.get, meaning=meaning, fallback=DEFINED)


# ---------------------------------------------------------------- what takes for ever


def counted(limit: int, body: Callable[[Term], Term]) -> Term:
    """A loop over a number of i32 that ends when it is `limit`."""
    start = constant(np.int32(0))
    return while_term(
        (start,), lambda i: make("stablehlo.compare", (i, constant(np.int32(limit))), {"direction": "LT"}), body
    )  # fmt: skip


def endless() -> Term:
    return while_term((constant(np.bool_(True)),), lambda go: go, lambda go: go)


IOTA = make("stablehlo.iota", (), {"dtype": F32, "shape": (1 << 23,), "dimension": 0})


def next_number(i: Term) -> Term:
    return op("add", i, constant(np.int32(1)))


def product(rows: int, depth: int) -> Term:
    """A product of two square matrices that nobody has to store."""
    return dot(reshape(IOTA, (rows, depth)), reshape(IOTA, (depth, rows)), lhs_contract=(1,), rhs_contract=(0,))


BOMBS: dict[str, Callable[[], Term]] = {
    "a long loop": lambda: counted((1 << 31) - 1, next_number),
    "a loop that stands still": lambda: counted(1, lambda i: op("multiply", i, constant(np.int32(0)))),
    "a loop that computes nothing": endless,
    "a loop in a loop": lambda: counted(1000, lambda i: op("subtract", counted((1 << 31) - 1, next_number), i)),
    "a large iota": lambda: make("stablehlo.iota", (), {"dtype": F32, "shape": (10**12,), "dimension": 0}),
    "a number in all places": lambda: broadcast(number(1), (1 << 20, 1 << 20), ()),
    "a product of long rows": lambda: product(1 << 13, 1 << 10),
    "sums of a product": lambda: op("reduce", product(1 << 12, 1 << 11), dimensions=(0,), combiner="add"),
}


@pytest.mark.parametrize("what", BOMBS)
def test_what_would_take_for_ever_is_refused_by_the_operations(what: str) -> None:
    term = BOMBS[what]()
    used = program(op("negate", X))
    # the value is never known here: what is said to be computed is the term itself
    made = certificate_of(used, used, [CertificateStep(COMPUTED, (term,), (term,))])
    with pytest.raises(Rejected, match=r"more than \d+ (operations|elements)"):
        verify(made, used, used, RULES.get, meaning=meaning, fallback=DEFINED, operations=1 << 28)


# ---------------------------------------------------------------- what is true


@pytest.mark.parametrize("what", FORGERIES)
def test_forgeries_are_refused(what: str) -> None:
    forged = FORGERIES[what]()
    with pytest.raises(Rejected, match=forged.reason):
        forged.check()
    assert forged.second().verdict != ACCEPTS


def test_a_rounding_is_admitted_by_the_bound_of_what_was_folded() -> None:
    """After cancellation one unit is too strict: 1e8 + 1 - 1e8 in the program itself is 0 or 8, as it is rounded."""
    term = op("subtract", op("add", numbers(1e8, 1), numbers(3, 3)), numbers(1e8, 1))
    for claim in ((0, 3), (8, 3)):
        verdict = by_one_step(term, numbers(*claim), [rounded(term, numbers(*claim))], "").check()
        assert verdict.rounded == 1 and 8 <= verdict.absolute < 64
        assert str(verdict.numerics) == ("exact" if claim == (0, 3) else "reassociates")  # sums have their bits in every evaluation
    with pytest.raises(Rejected, match="not what is computed"):
        by_one_step(term, numbers(100, 3), [rounded(term, numbers(100, 3))], "").check()
    with pytest.raises(Rejected, match="not what is computed"):
        by_one_step(term, numbers(0, 4), [rounded(term, numbers(0, 4))], "").check()


def test_bounds_add_up_over_a_certificate() -> None:
    """What is computed from a rounded constant starts with its bound."""
    third = op("divide", numbers(1, 2), numbers(3, 7))
    value = hashed_value(third)
    product = op("multiply", value, numbers(3.3, 7.7))
    root = op("add", X, op("multiply", third, numbers(3.3, 7.7)))
    once = Forgery(program(root), program(op("add", X, product)), [computed(third)]).check()
    twice = Forgery(program(root), program(op("add", X, hashed_value(product))), [computed(third), computed(product)]).check()
    assert 0 < once.relative < twice.relative < 3.1 * 2.0**-23


def test_exact_is_said_only_of_bits_that_every_evaluation_has() -> None:
    def folded(term: Term) -> str:
        return str(by_one_step(term, hashed_value(term), [computed(term)], "").check().numerics)

    assert folded(op("divide", numbers(1, 2), numbers(3, 7))) == "exact"
    assert folded(op("sqrt", numbers(2, 3))) == "exact"
    assert folded(convert(numbers(2.1, 3.3), DTYPES["f16"])) == "exact"
    assert folded(op("reduce", constant(np.float32([[1, 2], [3, 4]])), dimensions=(0,), combiner="maximum")) == "exact"
    assert folded(op("exponential", numbers(2, 3))) == "reassociates"
    assert folded(op("reduce", constant(np.float32([[0.1, 2], [0.2, 4]])), dimensions=(0,), combiner="add")) == "reassociates"
    third = op("divide", numbers(1, 2), numbers(3, 7))
    other = constant(np.nextafter(hashed_value(third).attribute("value").array(), np.float32(1)))
    assert str(by_one_step(third, other, [rounded(third, other)], "").check().numerics) == "reassociates"


def test_definitions_count_with_their_promises() -> None:
    """A softmax and what it means differ in bits, and the verdict says so."""
    x = input_term("x", TensorType(F32, (2, 3)))
    softmax = make("onnx.Softmax", (x,), {"axis": 1})
    other = meaning_of(softmax)
    assert other is not None
    verdict = Forgery(program(softmax), program(other), [meant(softmax)]).check()
    assert verdict.numerics.word == "reassociates" and "onnx.Softmax" in verdict.used
    assert verdict.assurance == verdict.used["onnx.Softmax"].assurance


def test_exceptions_of_all_steps_are_said_together() -> None:
    root = op("add", op("negate", op("negate", S)), number(0))
    verdict = Forgery(program(root), program(S), [said("add_zero#2", root), said("double_negate", root.operands[0])]).check()
    assert verdict.numerics.exceptions >= RULES["add_zero#2"].numerics.exceptions
    assert verdict.numerics.word == "exact"


def test_a_mapping_is_an_argument_and_is_said() -> None:
    verdict = Forgery(program(DIFFERENCE), program(TURNED), names={"x": "y", "y": "x"}).check()
    assert dict(verdict.names) == {"x": "y", "y": "x"}


def test_another_order_is_said() -> None:
    one = program(DIFFERENCE, X)
    other = Program(one.inputs[::-1], one.outputs[::-1])
    assert Forgery(one, other).check().reordered == ("inputs", "outputs")
    assert Forgery(one, one).check().reordered == ()
