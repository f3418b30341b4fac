"""How much heavier the values are that a rule stores than those it had: the table of the design page, and what is near it.

Each rule of `growth.rules` has the values that its right side stores beyond its left, with the growth of each.
"""

from __future__ import annotations

import random
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import coset.dialects
from coset.ir.term import Term, constant, input_term, make
from coset.ir.types import BF16, DTYPES, F16, F32, F64, DType, TensorType, tensor
from coset.prove.grades import constants_of, entry_grades, grades, growth_of_step
from coset.prove.growth import admitted, growth
from coset.prove.retyped import retyped
from coset.prove.sample import sides
from coset.prove.simplex import Contradiction, Limit, largest
from coset.prove.stored import Growth
from coset.rules.definition import expand
from coset.rules.instance import InstanceSearch
from coset.rules.instances import instances
from coset.rules.library import RuleSet, load
from coset.rules.ranges import ALWAYS, COUNTED, NEVER, SOME
from coset.rules.rule import Rule

assert coset.dialects
RULES = Path(__file__).parent / "growth.rules"
F8 = DTYPES["f8e5m2"]


@pytest.fixture(scope="module")
def rules() -> dict[str, Rule]:
    return {rule.name: rule for rule in _loaded().rules}


def _loaded() -> RuleSet:
    return load([RULES], with_definitions=False)


def _pair(rule: Rule, dtype: DType) -> tuple[Term, Term]:
    """Both sides of the first instance that is drawn."""
    search = InstanceSearch(random.Random("growth"), dtypes=1, firing=True, elements=(dtype.name,))
    return next(pair for pair in (sides(rule, instance) for instance in instances(rule, search)) if pair is not None)


def _growth(rule: Rule, dtype: DType) -> Growth:
    return growth(*_pair(rule, dtype), constants=constants_of(rule))


# name, what the heaviest value grows by at f16, and whether it is admitted at f8, f16, bf16, f32 and f64
TABLE = [
    ("distributed", "h = 1", "nyyyy"),
    ("distributed.reverse", "k = 2", "nnyyy"),
    ("distributed_number", "h = 0", "yyyyy"),
    ("distributed_number.reverse", "h = 3", "nnyyy"),
    ("distributed_fraction", "h = 1", "nyyyy"),
    ("distributed_fraction.reverse", "h = 3", "nyyyy"),  # by the second weight, of which 4 are admitted
    ("sums_of_constants", "h = 1", "nyyyy"),
    ("reciprocal", "h = 0", "yyyyy"),
    ("reciprocal_of_little", "h = 5", "nnyyy"),
    ("mean_of_quotients", "h = 3", "nyyyy"),
    ("scale_behind_product", "h = 3", "nnyyy"),
    ("factor_in_front", "h = 2", "nnyyy"),
    ("factor_in_front.reverse", "h = 2", "nyyyy"),
    ("batch_normalization_in_weights", "k = 2", "nnyyy"),
    ("products_of_a_part", "k = 2", "nnyyy"),
    ("factor_that_may_be_zero", "h = 1", "nyyyy"),
    ("softmax_with_shift", "h = 1", "nyyyy"),
    ("softmax_with_shift.reverse", "no bound", "nnnnn"),
    ("shift_over_another_axis", "no bound", "nnnnn"),
]


@pytest.mark.parametrize(("name", "text", "verdicts"), TABLE, ids=[row[0] for row in TABLE])
def test_growth_and_what_it_is_admitted_for(rules: dict[str, Rule], name: str, text: str, verdicts: str) -> None:
    assert str(_growth(rules[name], F16)) == text
    found = {dtype.name: _growth(rules[name], dtype).admitted for dtype in (F8, F16, BF16, F32, F64)}
    assert found == {dtype.name: verdict == "y" for dtype, verdict in zip((F8, F16, BF16, F32, F64), verdicts, strict=True)}


@pytest.mark.parametrize("name", ["products_in_another_order", "products_in_another_order.reverse"])
def test_products_of_three_matrices_are_of_degree_two(rules: dict[str, Rule], name: str) -> None:
    (value,) = _growth(rules[name], F16).values
    _, right = _pair(rules[name], F16)
    assert value.degree == 2 and value.dtype is F16
    inner = next(term for term in right.operands if term.op is right.op)
    (count,) = (operand.tensor.dims[axis] for operand in inner.operands[:1] for axis in inner.attribute("lhs_contract"))
    assert isinstance(count, int) and value.over == pytest.approx(np.log2(count))


def test_a_sum_in_two_steps_stores_partial_sums(rules: dict[str, Rule]) -> None:
    left, _ = _pair(rules["sum_by_parts"], F32)
    (x,) = left.operands
    assert isinstance(x.type, TensorType)
    assert _growth(rules["sum_by_parts"], F32).values[0].first == pytest.approx(np.log2(float(str(x.tensor.dims[2]))))


def test_a_factor_that_comes_and_goes_is_refused(rules: dict[str, Rule]) -> None:
    found = _growth(rules["there_and_back"], F32)
    assert not found.admitted and found.worst is not None and found.worst.first == 100
    assert not admitted(found, F32) and admitted(found, F16)  # nothing of it is f16


def test_a_summand_weighs_as_much_as_the_sum_and_the_other_at_most() -> None:
    """a b + c in f16: the product is no more than twice as heavy, whatever a and b are; alpha a b tells less of a b."""
    a, b, c = (input_term(name, tensor(F16, *shape)) for name, shape in (("a", (4, 8)), ("b", (8, 3)), ("c", (3,))))
    dense = make("onnx.Gemm", (a, b, c))
    assert str(growth(dense, expand(dense))) == "h = 1"
    little = make("onnx.Gemm", (a, b, c), {"alpha": 0.125})
    assert not growth(little, expand(little)).admitted


def test_what_underflows_and_is_only_added_is_lost_anyway() -> None:
    """max(x, 0) + log(1 + e^-|x|): e^-|x| may be 0, if it is the inside of an op. What is multiplied may not."""
    x = input_term("x", tensor(F32, 4))
    softplus, mish = make("onnx.Softplus", (x,)), make("onnx.Mish", (x,))
    assert growth(softplus, expand(softplus), opens=True).admitted and not growth(softplus, expand(softplus)).admitted
    assert not growth(mish, expand(mish), opens=True).admitted
    power = make("stablehlo.exponential", (make("stablehlo.negate", (make("stablehlo.abs", (x,)),)),))
    added, multiplied = (
        make("stablehlo.add", (make("stablehlo.add", (power, x)), make(op, (power, x)))) for op in ("stablehlo.add", "stablehlo.multiply")
    )
    assert growth(x, added, opens=True).admitted and not growth(x, multiplied, opens=True).admitted


def test_sizes_are_symbols_of_no_account() -> None:
    def both(rows: int) -> Growth:
        x = input_term("x", tensor(F32, rows, 7))
        shift = make("stablehlo.transpose", (x,), {"permutation": (1, 0)})
        half = constant(np.float32(0.5))
        spread = make("stablehlo.broadcast_in_dim", (half,), {"shape": (7, rows), "broadcast_dimensions": ()})
        back = make("stablehlo.transpose", (make("stablehlo.multiply", (shift, spread)),), {"permutation": (1, 0)})
        return growth(make("stablehlo.add", (x, x)), make("stablehlo.add", (back, back)))

    assert str(both(3)) == str(both(100_000)) == "h = 1"  # x / 2 is lighter; its second weight is not


def test_weights_that_are_little_do_not_count() -> None:
    x, y = (input_term(name, tensor(F16, 4)) for name in "xy")
    small = make("stablehlo.tanh", (x,))
    found = growth(make("stablehlo.multiply", (small, y)), make("stablehlo.multiply", (y, make("stablehlo.tanh", (small,)))))
    assert found.worst is None or found.worst.first == 0  # at most 1, where 2^8 begins to count


def test_what_a_function_gives_is_told_by_a_table() -> None:
    x = input_term("x", tensor(F16, 4))
    for name in ("tanh", "logistic", "sqrt", "cosine"):
        made = make(f"stablehlo.{name}", (x,))
        nothing = make("stablehlo.subtract", (made, made))
        found = growth(make("stablehlo.add", (x, x)), make("stablehlo.add", (make("stablehlo.add", (x, nothing)), x)))
        assert all(value.first <= 1 for value in found.values), name
    through = make("stablehlo.log", (make("stablehlo.exponential", (x,)),))
    assert str(growth(make("stablehlo.add", (x, x)), make("stablehlo.add", (through, x)))) == "no bound"


def test_what_is_not_shown_is_drawn() -> None:
    x = input_term("x", tensor(F32, 4))
    wave = make("stablehlo.sine", (x,))
    pair = make("stablehlo.add", (x, x)), make("stablehlo.add", (wave, x))
    assert str(growth(*pair)) == "no bound"
    found = growth(*pair, facts={})
    assert found.drawn and "(drawn)" in str(found) and found.admitted


def test_retyped_terms_have_the_other_types() -> None:
    x = input_term("x", tensor(F32, 2))
    (found,) = retyped([make("stablehlo.multiply", (x, constant(np.array([1.0, 1e6], np.float32))))], {F32: F16})
    assert found.tensor == tensor(F16, 2)
    assert np.isinf(found.operands[1].attribute("value").array()[1])


def test_grades_by_class(rules: dict[str, Rule]) -> None:
    verdicts = {name: grade.verdict for name, grade in grades(rules["products_in_another_order"]).items()}
    assert verdicts == {"f8": NEVER, "f16": NEVER, "bf16": COUNTED, "f32": COUNTED, "f64": ALWAYS}
    assert {name: grade.verdict for name, grade in grades(rules["distributed"]).items()} == {
        "f8": NEVER, "f16": ALWAYS, "bf16": ALWAYS, "f32": ALWAYS, "f64": ALWAYS,
    }  # fmt: skip
    both = entry_grades([rules["distributed"], rules["distributed.reverse"]])
    assert both["=>"]["f16"].verdict == ALWAYS and both["<="]["f16"].verdict == NEVER


def test_numbers_that_a_rule_takes_as_they_are_make_its_grade_one_by_instance() -> None:
    (rule,) = (rule for rule in load().rules if rule.name == "sum_divided")
    assert grades(rule)["f16"].verdict in (SOME, ALWAYS)


@pytest.mark.parametrize("name", ["constant_along_kept_axes", "divisor_along_kept_axes", "factor_along_kept_axes"])
def test_grades_speak_of_sums_over_some_axes(name: str) -> None:
    """A list of axes may be empty, and then nothing grows: a sum of x weighs more than x times a small factor, of which it is moved out."""
    for rule in (rule for rule in load().rules if rule.family == name and not rule.name.endswith(".reverse")):
        assert {key: grade.verdict for key, grade in grades(rule).items()} == {
            "f8": SOME, "f16": SOME, "bf16": COUNTED, "f32": COUNTED, "f64": ALWAYS,
        }  # fmt: skip


def test_a_step_of_a_certificate_has_the_growth_of_its_numbers() -> None:
    (rule,) = (rule for rule in load().rules if rule.name == "scale_columns")
    x, s = input_term("x", tensor(F16, 4, 8)), constant(np.full((2,), 1.5, np.float16))
    w = constant(np.linspace(0.25, 1, 16).astype(np.float16).reshape(8, 2))
    spread = make("stablehlo.broadcast_in_dim", (s,), {"shape": (4, 2), "broadcast_dimensions": (1,)})
    dims = {"lhs_batch": (), "rhs_batch": (), "lhs_contract": (1,), "rhs_contract": (0,)}
    root = make("stablehlo.multiply", (make("stablehlo.dot_general", (x, w), dims), spread))
    found = growth_of_step(rule, [root])
    assert found is not None and found.admitted and grades(rule)["f16"].verdict == NEVER  # of constants that are not known
    assert growth_of_step(rule, [x]) is None


def test_linear_programs() -> None:
    one, two = Fraction(1), Fraction(2)
    box = [Limit({"x": one}, two), Limit({"y": one}, Fraction(3)), Limit({"x": one, "y": one}, Fraction(4))]
    assert largest({"x": two, "y": one}, box) == 6
    assert largest({"x": -one}, box) is None
    with pytest.raises(Contradiction):
        largest({"x": one}, [Limit({"x": one}, one), Limit({"x": -one}, -two), Limit({"y": one}, one)])


def test_linear_programs_are_solved_as_another_solver_solves_them() -> None:
    """Numbers with large denominators among them, and programs without a bound or a point."""
    optimize = pytest.importorskip("scipy.optimize")
    draw = random.Random(5)
    met = {0: 0, 2: 0, 3: 0}  # solved, without a point, without a bound
    for _ in range(300):
        names = [f"x{place}" for place in range(draw.randint(1, 5))]

        def number() -> Fraction:
            return Fraction(draw.random() * 4 - 2) if draw.random() < 0.3 else Fraction(draw.choice((0, 0, 1, -1, 2, -3)))

        goal = {name: number() for name in names}
        limits = [Limit({name: number() for name in names}, Fraction(draw.randint(-2, 6))) for _ in range(draw.randint(1, 8))]
        if draw.random() < 0.6:
            limits += [Limit({name: Fraction(sign)}, Fraction(5)) for name in names for sign in (1, -1)]
        rows = [[float(limit.form[name]) if name in limit.form else 0.0 for name in names] for limit in limits]
        costs, most = [-float(goal[name]) for name in names], [float(limit.most) for limit in limits]
        other = optimize.linprog(costs, rows, most, bounds=(None, None), options={"presolve": False})
        assert other.status in met, other.message
        met[other.status] += 1
        if not any(goal.values()):
            assert largest(goal, limits) == 0  # whether there is a point or not
        elif other.status == 2:
            with suppress(Contradiction):
                assert largest(goal, limits) is None  # the dual program may have no point either
        elif other.status == 3:
            assert largest(goal, limits) is None
        else:
            found = largest(goal, limits)
            assert found is not None and float(found) == pytest.approx(-other.fun, abs=1e-6)
    assert min(met.values()) > 20, met
