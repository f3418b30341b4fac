"""Values and error bounds of constants in the second checker: right numbers, the evaluator's elements, the table of the page."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coset.dialects
from benchmarks.two_checkers import Checkers
from coset.ir.constants import constant_of
from coset.ir.errors import CosetError
from coset.ir.evaluate import evaluate
from coset.ir.op import get_op
from coset.ir.program import Program
from coset.ir.term import CONSTANT, Term, constant, input_term, make
from coset.ir.types import DTYPES, F32, DType, TensorType
from coset.prove.second import ACCEPTS, CANNOT_SAY, REJECTS, Answer, answered, read
from coset.prove.second.answer import CannotSay
from coset.prove.second.classes import Contents
from coset.prove.second.computed import COMPUTED
from coset.prove.second.programs import by_content, ordered, program_hash
from coset.prove.second.values import Evaluator, Value
from coset.second import LIBRARY

assert coset.dialects
ENTRIES = read(path.read_text() for path in LIBRARY)
NUMBERS = [dtype for dtype in DTYPES.values() if dtype.kind != "string"]
F64, I64 = DTYPES["f64"], DTYPES["i64"]


def op(name: str, *operands: Term, **attributes: Any) -> Term:
    return make(name if "." in name else f"stablehlo.{name}", operands, attributes)


def floats(*numbers: float) -> Term:
    return constant(np.array(numbers, np.float32))


def of_type(array: Any, dtype: DType) -> Term:
    return make(CONSTANT, (), {"value": constant_of(np.asarray(array), dtype)})


def value(term: Term) -> Value:
    def nothing(_: Term) -> Term:
        raise CannotSay("no op is defined here")

    return Evaluator(100, nothing).value(term)


def bounds(term: Term) -> list[float]:
    found: list[float] = value(term).bound.reshape(-1).tolist()
    return found


def converted(array: Any, source: str, target: str) -> list[Any]:
    found: list[Any] = value(op("convert", of_type(array, DTYPES[source]), dtype=DTYPES[target])).array.tolist()
    return found


# ---------------------------------------------------------------- conversions

ODD = np.array([1e10, -1e10, math.nan, math.inf, 300.7, -1.5])


@pytest.mark.parametrize(
    ("target", "result"),
    [
        ("i8", [127, -128, 0, 127, 127, -1]),
        ("u8", [255, 0, 0, 255, 255, 0]),
        ("i32", [2**31 - 1, -(2**31), 0, 2**31 - 1, 300, -1]),
        ("i64", [10**10, -(10**10), 0, 2**63 - 1, 300, -1]),
        ("u64", [10**10, 0, 0, 2**64 - 1, 300, 0]),
        ("i4", [7, -8, 0, 7, 7, -1]),
        ("bool", [True] * 6),
    ],
)
def test_a_float_becomes_the_nearest_integer_towards_0(target: str, result: list[Any]) -> None:
    assert converted(ODD, "f64", target) == result


@pytest.mark.parametrize(
    ("source", "numbers", "target", "result"),
    [
        ("i64", [2**40 + 5, -1, 300], "u8", [5, 255, 44]),  # the low bits
        ("i32", [9, -9, 8], "i4", [-7, 7, -8]),
        ("u64", [2**64 - 1, 2**63], "i64", [-1, -(2**63)]),
        ("bool", [True, False], "f32", [1.0, 0.0]),
        ("i64", [2**53 + 1, 2**53 + 3], "f64", [2.0**53, 2.0**53 + 4]),  # ties to even
        ("i64", [2**24 + 1, -(2**24) - 3], "f32", [2.0**24, -(2.0**24) - 4]),
        ("i64", [2**62 + 2**54 + 1], "bf16", [2.0**62 + 2.0**55]),  # by way of f64, or of f32, it would be a tie
        ("i64", [-(2**62) - 2**54 - 1], "bf16", [-(2.0**62) - 2.0**55]),
        ("f64", [1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-8], "bf16", [1 + 2.0**-7, 1.0]),
        ("f64", [-1 - 2.0**-11 - 2.0**-50], "f16", [-1 - 2.0**-10]),
        ("f64", [1e300, -1e300], "f16", [math.inf, -math.inf]),
        ("f64", [1e300, -1e300], "bf16", [math.inf, -math.inf]),
        ("c64", [3 - 4j], "f64", [3.0]),
        ("c64", [2j, 0j], "bool", [True, False]),
        ("i8", [-3], "c64", [-3 + 0j]),
    ],
)
def test_a_conversion_rounds_once(source: str, numbers: list[Any], target: str, result: list[Any]) -> None:
    assert converted(np.array(numbers).astype(DTYPES[source].numpy), source, target) == result


def test_a_float_that_counts_is_a_shape() -> None:
    """What torch exports an arange as."""
    shape = op("broadcast_in_dim", op("convert", constant(np.array(3.0)), dtype=I64), shape=(1,), broadcast_dimensions=())
    found = value(op("dynamic_iota", shape, shape=(3,), dtype=I64, dimension=0))
    assert (found.array.tolist(), found.bound.tolist()) == ([0, 1, 2], [0, 0, 0])


# ---------------------------------------------------------------- the evaluator's elements

ELEMENTS = [
    0.0, -0.0, math.inf, -math.inf, math.nan, 1, -1, 0.5, -0.5, 1.5, 2.5, 300.7, 1e10, -1e10, 65504, 65520, 1e-8, 1e-45, 7, 2.0**31, 127.5,
]  # fmt: skip


def drawn(dtype: DType, draw: random.Random) -> Any:
    """Forty elements of a type, its ends and the odd ones among them."""
    if dtype.kind == "bool":
        return np.array([draw.random() < 0.5 for _ in range(40)])
    if dtype.kind in ("int", "uint"):
        low = 0 if dtype.kind == "uint" else -(1 << dtype.bits - 1)
        high = low + (1 << dtype.bits) - 1
        named = [number for number in (low, high, 0, 1, 2, 3, 7, -1, -2, 100, 2**53 + 1, 2**62 + 2**38 + 1) if low <= number <= high]
        numbers = named + [draw.randint(low, high) for _ in range(40 - len(named))]
        draw.shuffle(numbers)
        return np.array(numbers, np.uint64 if dtype.name == "u64" else np.int64).astype(dtype.numpy)
    real = ELEMENTS + [draw.gauss(0, 1) * 2.0 ** draw.randint(-20, 20) for _ in range(40 - len(ELEMENTS))]
    draw.shuffle(real)
    if dtype.kind == "complex":
        return np.array([complex(a, b) for a, b in zip(real, real[::-1], strict=True)]).astype(dtype.numpy)
    with np.errstate(over="ignore"):
        return np.array(real).astype(np.float32 if dtype.bits < 32 else np.float64).astype(dtype.numpy)


def differing(found: Value, wanted: Any) -> int:
    """How many elements are further from the evaluator's than their bounds, or have another sign of zero though they are exact."""
    assert found.array.dtype == np.asarray(wanted).dtype
    parts = [
        (part(found.array), part(np.asarray(wanted))) for part in ((np.real, np.imag) if found.array.dtype.kind == "c" else (np.array,))
    ]
    count = 0
    for mine, other in parts:
        if mine.dtype.kind in "iub":
            count += int((mine != other).sum())
            continue
        a, b = mine.astype(np.float64), other.astype(np.float64)
        same = (a == b) & ((a != 0) | (np.signbit(a) == np.signbit(b))) | (np.isnan(a) & np.isnan(b))
        with np.errstate(invalid="ignore"):
            count += int((~(same | ((found.bound > 0) & (np.abs(a - b) <= found.bound)))).sum())
    return count


def terms_of(name: str, dtype: DType, draw: random.Random) -> list[Term]:
    """Applications of an op to drawn elements of a type, where it takes them."""
    found = get_op(name)
    arrays = [drawn(dtype, draw) for _ in found.operands]
    operands = [of_type(array, dtype) for array in arrays]
    if name == "stablehlo.select":
        operands[0] = constant(np.array([draw.random() < 0.5 for _ in arrays[1]]))
    choices: list[dict[str, Any]] = [{}]
    if name == "stablehlo.compare":
        choices = [{"direction": word} for word in ("EQ", "NE", "LT", "LE", "GT", "GE")]
    elif name == "stablehlo.convert":
        choices = [{"dtype": target} for target in NUMBERS]
    elif name == "stablehlo.reduce":
        choices = [{"dimensions": (0,), "combiner": word} for word in ("add", "multiply", "maximum", "minimum", "and", "or", "xor")]
    elif name == "stablehlo.dot_general":
        choices = [{"lhs_contract": (0,), "rhs_contract": (0,)}]
    terms = []
    for attributes in choices:
        try:
            terms.append(make(name, operands, attributes))
        except CosetError:
            continue
    return terms


@pytest.mark.parametrize("name", COMPUTED)
def test_an_op_has_the_evaluator_s_elements(name: str) -> None:
    draw, count = random.Random(name), 0
    for dtype in NUMBERS:
        for term in terms_of(name, dtype, draw):
            try:
                with np.errstate(all="ignore"):
                    found, (wanted,) = value(term), evaluate([term], {})
            except CannotSay:
                assert dtype.kind in ("complex", "bool"), str(dtype)
                continue
            assert differing(found, wanted) == 0, f"{name} of {dtype} {term.attributes}"
            count += 1
    assert count


@pytest.mark.parametrize(
    ("low", "high", "interior"),
    [((1, 0), (0, 2), (0, 0)), ((-1, 2), (1, -2), (0, 1)), ((-2, -1), (-1, 0), (1, 2)), ((0, 0), (-3, 0), (0, 0))],
)
def test_padding_may_crop(low: tuple[int, ...], high: tuple[int, ...], interior: tuple[int, ...]) -> None:
    operand, fill = constant(np.arange(12, dtype=np.float32).reshape(3, 4)), floats(7)
    fill = op("reshape", fill, shape=())
    term = op("pad", operand, fill, low=low, high=high, interior=interior)
    assert np.array_equal(value(term).array, evaluate([term], {})[0])
    parts = [constant(np.array(each, np.int64)) for each in (low, high, interior)]
    assert np.array_equal(value(op("dynamic_pad", operand, fill, *parts, shape=term.tensor.dims)).array, value(term).array)


@pytest.mark.parametrize("starts", [(0, 1), (-4, 9), (1, 1)])
def test_windows_are_clamped(starts: tuple[int, int]) -> None:
    operand, places = constant(np.arange(12, dtype=np.float32).reshape(3, 4)), [constant(np.array(each, np.int32)) for each in starts]
    for term in (
        op("dynamic_slice", operand, *places, slice_sizes=(2, 3)),
        op("dynamic_update_slice", operand, constant(np.zeros((2, 2), np.float32)), *places),
    ):
        assert np.array_equal(value(term).array, evaluate([term], {})[0])


def test_a_place_that_is_not_exact_leaves_no_bound() -> None:
    third = op("divide", floats(1), floats(3))
    place = op("reshape", op("convert", op("multiply", third, floats(3)), dtype=DTYPES["i32"]), shape=())
    assert value(place).array == 1  # or 0
    assert bounds(op("dynamic_slice", floats(1, 2), place, slice_sizes=(1,))) == [math.inf]


# ---------------------------------------------------------------- bounds

EPS = 2.0**-23
UP = 1 + 2.0**-20
THIRD = op("divide", floats(1), floats(3))
ZERO = op("subtract", op("add", floats(1e8), floats(1)), floats(1e8))  # 0; the number is 1
NONE = math.inf


def test_a_power_of_exact_quotients_has_a_bound() -> None:
    """The angles of a rotary embedding: 0, 2, 4, 6 divided by 8 are exact."""
    angles = op("divide", floats(0, 2, 4, 6), floats(8, 8, 8, 8))
    assert bounds(angles) == [0] * 4
    found = value(op("power", floats(*[10000] * 4), angles))
    assert found.bound == pytest.approx(8 * EPS * found.array, rel=1e-4)
    assert bounds(op("power", floats(10000), THIRD)) == [NONE]


@pytest.mark.parametrize(
    ("term", "wanted"),
    [
        (op("multiply", floats(3, 0.1), floats(5, 0.1)), [15 * EPS, 0.01 * EPS]),  # if all are exact, or none
        (op("multiply", floats(3, 0.5), floats(5, 7)), [0, 0]),
        (op("add", floats(1, 1), floats(2, 1e-9)), [0, EPS]),  # each by itself
        (op("divide", floats(6, 1), floats(3, 3)), [2 * EPS, EPS / 3]),
        (op("divide", constant(np.array([6.0])), constant(np.array([3.0]))), [2 * 2.0**-52]),  # of f64 it is not asked
        (op("multiply", constant(np.array([3.0])), constant(np.array([5.0]))), [15 * 2.0**-52]),
        (op("multiply", constant(np.array([3.0, 0.0])), constant(np.array([4.0, 0.3]))), [0, 0]),
        (op("reduce", floats(0.1), dimensions=(0,), combiner="add"), [0]),
        (op("reduce", floats(1, 2), dimensions=(0,), combiner="add"), [2 * EPS * 3]),
        (op("reduce", floats(1, 2), dimensions=(0,), combiner="multiply"), [NONE]),
        (op("dot_general", floats(0, 0), floats(1, 2), lhs_contract=(0,), rhs_contract=(0,)), [0]),
        (op("dot_general", floats(1, 1), floats(1, 2), lhs_contract=(0,), rhs_contract=(0,)), [3 * EPS * 3]),
        (op("sqrt", floats(4, 2)), [8 * EPS, 4 * EPS * 2**0.5]),
        (op("sqrt", floats(4, 9)), [0, 0]),
        (op("log", floats(1, 1)), [0, 0]),
        (op("convert", THIRD, dtype=F64), [EPS / 3]),
        (op("convert", op("convert", THIRD, dtype=F64), dtype=DTYPES["f16"]), [0]),  # both ends are one f16
        (op("select", constant(np.array([True])), THIRD, op("power", THIRD, THIRD)), [NONE]),  # `none` spreads
        (op("remainder", floats(7), floats(3)), [0]),
        (op("sign", THIRD), [0]),
        (op("round_nearest_even", op("add", THIRD, floats(1 / 6))), [1]),
        (op("clamp", floats(0), THIRD, floats(1)), [EPS / 3]),
        (op("multiply", THIRD, floats(0)), [0]),
    ],
    ids=lambda part: part.op.name if isinstance(part, Term) else "",
)
def test_a_bound_is_that_of_the_page(term: Term, wanted: list[float]) -> None:
    assert bounds(term) == pytest.approx(wanted, rel=1e-4, abs=1e-44)


def rows(*numbers: float) -> Term:
    return op("reshape", floats(*numbers), shape=(1, len(numbers)))


def total(term: Term) -> Term:
    return op("reduce", term, dimensions=(1,), combiner="add")


def product(*numbers: float) -> Term:
    return op("dot_general", floats(*numbers), floats(*[1.0] * len(numbers)), lhs_contract=(0,), rhs_contract=(0,))


INF = math.inf
SURE = {
    "a pole": op("log", floats(0)), "no number": op("sqrt", floats(-1)), "a division by zero": op("divide", floats(1), floats(0)),
    "an infinity beside a number": op("add", floats(INF), THIRD), "an infinity times a number": op("multiply", THIRD, floats(-INF)),
    "the larger": op("maximum", THIRD, floats(INF)), "a mask": op("select", constant(np.array([False])), THIRD, floats(-INF)),
    "a number by zero": op("divide", THIRD, floats(0)), "NaN times what may be 0": op("multiply", floats(math.nan), ZERO),
    "a sum with an infinity": total(rows(1, -INF, 3)), "a sum of both": total(rows(INF, -INF)), "a product with one": product(1, INF),
    "what f16 does not hold": op("convert", op("add", floats(1e6), THIRD), dtype=DTYPES["f16"]),
}  # fmt: skip
OVERFLOWN = op("multiply", floats(-3e38), floats(10))
ANOTHER_ROW = op("reshape", floats(INF, 0, 0, 3e38, 3e38, -3e38), shape=(2, 3))
UNSURE = {
    "the logarithm of what is 1": op("log", ZERO), "a division by what is 1": op("divide", floats(1), ZERO), "rsqrt": op("rsqrt", ZERO),
    "no root of what may be one": op("sqrt", op("subtract", ZERO, floats(1))),
    "no angle": op("chlo.acos", op("multiply", THIRD, floats(3.0000002))),
    "an infinity times what is 1": op("multiply", floats(INF), ZERO), "an overflow": OVERFLOWN,
    "an infinity by what overflowed": op("add", floats(INF), OVERFLOWN),
    "a sum in another order": total(rows(3e38, 3e38, -3e38)), "an infinity in another row": total(ANOTHER_ROW),
    "a sum that overflows beside an infinity": total(rows(-INF, 3e38, 3e38)), "a large exponential": op("exponential", floats(100)),
    "a large hyperbola": op("chlo.cosh", floats(100)), "a product that overflows": product(3e38, 3e38),
    "an f16 at its end": op("convert", op("multiply", THIRD, floats(196560)), dtype=DTYPES["f16"]),
}  # fmt: skip


@pytest.mark.parametrize("term", SURE.values(), ids=SURE)
def test_an_infinity_that_everybody_has_is_exact(term: Term) -> None:
    found = value(term)
    assert not np.isfinite(found.array).any()
    assert not found.bound.any()


@pytest.mark.parametrize("term", UNSURE.values(), ids=UNSURE)
def test_an_infinity_that_another_evaluation_may_not_have_has_no_bound(term: Term) -> None:
    found = value(term)
    assert not np.isfinite(found.array.astype(np.float64)).all()
    assert found.bound.reshape(-1)[-1] == NONE


# ---------------------------------------------------------------- lines


def packed(before: Program, after: Program, lines: list[Any], *rules: str) -> bytes:
    hashes = [program_hash(by_content(each, Contents())) for each in (before, after)]
    texts = [{"name": name, "text": hashlib.sha256(ENTRIES[name][0].text.encode()).hexdigest()} for name in rules]
    head = {"format": "coset certificate", "version": 3, "before": hashes[0], "after": hashes[1], "rules": texts}
    return gzip.compress("".join(json.dumps(row) + "\n" for row in [head, *lines, {"end": len(lines)}]).encode())


def written(term: Term) -> dict[str, Any]:
    """A line that adds a constant."""
    found = term.attribute("value")
    kind = {"tensor": [{"dtype": term.tensor.dtype.name}, list(found.type.static)]}
    return {"term": ["builtin.constant", [], {"value": {"constant": [kind, base64.b64encode(found.array().tobytes()).decode()]}}]}


def claim(before: Term, after: Term, lines: Any, *rules: str) -> Answer:
    """What is said of x plus one term as x plus another one; `lines` of the number that a term has."""
    x = input_term("x", before.type)
    first, second = (Program((x,), (("y", op("add", x, each)),)) for each in (before, after))
    terms = [*dict.fromkeys((*ordered(first), *ordered(second)))]
    return answered(packed(first, second, lines(terms.index), *rules), first, second, ENTRIES)


def applied(name: str, *operands: int) -> dict[str, Any]:
    return {"term": [f"stablehlo.{name}", list(operands), {}]}


def test_an_absorbed_number_makes_no_infinity(tmp_path: Path) -> None:
    """log(1 + 1e8 - 1e8) is minus infinity in f32, and log(1 + (1e8 - 1e8)) is 0: were both exact, an infinity would be a number."""
    x = input_term("x", TensorType(F32, (1,)))
    before, after = (Program((x,), (("y", op("add", x, floats(each))),)) for each in (-INF, 0.0))
    lines = [
        *(written(floats(each)) for each in (1.0, 1e8, -1e8)),
        applied("add", 5, 6), applied("add", 8, 7), applied("log", 9), {"computed": 10},
        applied("add", 6, 7), applied("add", 5, 11), applied("log", 12), {"computed": 13},
        {"rule": 0, "left": [9], "right": [12]},
    ]  # fmt: skip
    terms = [*dict.fromkeys((*ordered(before), *ordered(after)))]
    assert len(terms) == 5
    data = packed(before, after, lines, "add_assoc_const")
    assert str(answered(data, before, after, ENTRIES)) == "rejects at line 7: numbers that cancel, or absorb others"
    first, reason = Checkers(tmp_path).first(data, before, after)
    assert first == REJECTS and "ill-conditioned" in reason


def test_a_claim_that_other_bits_do_not_make_is_rejected() -> None:
    """Constants whose last bits are another library's are no excuse for others that are far away."""
    number = op("exponential", floats(0.3))
    (mine,) = value(number).array
    near = floats(float(np.nextafter(mine, np.float32(2))))
    assert claim(number, floats(float(mine)), lambda place: [{"computed": place(number)}]).verdict == ACCEPTS
    assert claim(number, near, lambda place: [{"computed": place(number)}]).verdict == CANNOT_SAY
    assert claim(number, floats(1.5), lambda place: [{"computed": place(number)}]).verdict == REJECTS
    exact = op("add", floats(0.3), floats(0.5))
    assert claim(exact, near, lambda place: [{"computed": place(exact)}]).verdict == REJECTS


@pytest.mark.parametrize(("number", "verdict"), [(0.3125, ACCEPTS), (0.21875, ACCEPTS), (0.1875, REJECTS)])
def test_what_must_be_small_is_small_beside_the_constant(number: float, verdict: str) -> None:
    """In f8e5m2 tanh(0.25) is 0.25, a sixteenth more or less. That sixteenth, and another one, are more than 0.51 of 0.1875."""
    eighth = DTYPES["f8e5m2"]
    term = op("tanh", of_type(np.array([0.25], np.float32).astype(eighth.numpy), eighth))
    assert value(term).bound[0] == pytest.approx(0.0625 + 2.0**-16, rel=1e-3)
    constant_term = of_type(np.array([number], np.float32).astype(eighth.numpy), eighth)
    same = Program((), (("t", term),))
    place = len(ordered(same))
    answer = answered(packed(same, same, [written(constant_term), {"rounded": [place - 1, place]}]), same, same, ENTRIES)
    assert (answer.verdict, answer.reason) == (verdict, "" if verdict == ACCEPTS else "numbers that cancel, or absorb others")


def test_a_constant_in_both_programs_takes_no_second_number() -> None:
    """What a line of nobody's own rounds to is joined with nothing, and not in both programs."""
    third = op("divide", floats(1), floats(3))
    same = Program((), (("z", floats(float(np.float32(1) / np.float32(3)))), ("t", third)))
    terms = ordered(same)
    answer = answered(packed(same, same, [{"computed": terms.index(third)}]), same, same, ENTRIES)
    assert (answer.verdict, answer.reason) == (REJECTS, "a constant that stands for another number as well")


@pytest.mark.parametrize(("kind", "byte"), [("bool", 0x21), ("bool", 2), ("i4", 0xFF), ("u2", 4)])
def test_a_byte_that_is_no_element_is_refused(kind: str, byte: int, tmp_path: Path) -> None:
    x = input_term("x", TensorType(F32, (1,)))
    same = Program((x,), (("y", x),))

    def line(number: int) -> dict[str, Any]:
        value = {"constant": [{"tensor": [{"dtype": kind}, [1]]}, base64.b64encode(bytes([number])).decode()]}
        return {"term": ["builtin.constant", [], {"value": value}]}

    assert answered(packed(same, same, [line(1)]), same, same, ENTRIES).verdict == ACCEPTS
    answer = answered(packed(same, same, [line(byte)]), same, same, ENTRIES)
    assert (answer.verdict, answer.reason) == (REJECTS, "a byte that no element is stored as")
    first = Checkers(tmp_path).first
    assert first(packed(same, same, [line(1)]), same, same)[0] == ACCEPTS
    verdict, reason = first(packed(same, same, [line(byte)]), same, same)
    assert verdict == REJECTS and "a byte that no element" in reason


def test_what_is_set_apart_moves_one_constant() -> None:
    one, other = floats(1), floats(2)
    both = op("concatenate", one, other, dimension=0)
    x = input_term("x", both.type)
    same = Program((x,), (("y", op("add", x, both)),))
    terms = ordered(same)
    lines = [{"apart": [terms.index(both), [len(terms) - 1]]}]
    assert answered(packed(same, same, lines), same, same, ENTRIES).verdict == REJECTS
    moved = op("reverse", floats(1, 2), dimensions=(0,))
    single = Program((x,), (("y", op("add", x, moved)),))
    terms = ordered(single)
    answer = answered(packed(single, single, [{"apart": [terms.index(moved), [len(terms) - 1]]}]), single, single, ENTRIES)
    assert answer.line is None  # the line holds; that both are equal is not shown any more


# ---------------------------------------------------------------- both checkers


def plain(dtype: DType, draw: random.Random, depth: int) -> Term:
    """A term of one element, by ops whose bits every library has, over numbers that are not 0."""
    if not depth:
        return of_type(
            np.array([draw.choice((draw.gauss(0, 3), float(draw.randint(1, 9)), 2.0 ** draw.randint(-4, 4)))], dtype.numpy), dtype
        )
    inner = [plain(dtype, draw, depth - 1 if draw.random() < 0.7 else 0) for _ in range(2)]
    match draw.randrange(8):
        case 0:
            return op("sqrt", op("abs", inner[0]))
        case 1:
            other = F64 if dtype is F32 else F32
            return op("convert", plain(other, draw, depth - 1), dtype=dtype)
        case 2:
            both = op("reshape", op("concatenate", *inner, dimension=0), shape=(1, 2))
            return op("reduce", both, dimensions=(1,), combiner=draw.choice(("add", "maximum", "minimum")))
        case 3:
            return op("select", op("compare", *inner, direction="LT"), inner[1], inner[0])
        case _:
            return op(draw.choice(("add", "subtract", "multiply", "divide", "maximum")), *inner)


def steps_away(number: Any, steps: int) -> Any:
    """The float so many numbers of its type further away from 0."""
    bits = np.uint32 if number.dtype == np.float32 else np.uint64
    return (number.view(bits) + bits(steps)).view(number.dtype)


@pytest.mark.parametrize("seed", range(4))
def test_both_checkers_bound_alike(seed: int, tmp_path: Path) -> None:
    """A constant as far away as the bound allows, and its next neighbour: two programs written from one page."""
    draw, checkers, count = random.Random(seed), Checkers(tmp_path), 0
    for _ in range(60):
        term = plain(draw.choice((F32, F64)), draw, draw.randint(1, 3))
        found = value(term)
        (number,), (bound,) = found.array, found.bound
        if term.op is CONSTANT or not np.isfinite(bound) or not number:
            continue
        steps = 0
        while abs(float(steps_away(number, steps + 1)) - float(number)) <= bound and steps < 5000:
            steps += 1
        for some in {steps, steps + 1} if steps < 5000 else ():
            far = abs(float(steps_away(number, some)) - float(number))
            if some and (not bound or abs(far / bound - 1) > 1e-4):
                x, other = input_term("x", term.type), of_type(np.array([steps_away(number, some)]), term.tensor.dtype)
                before, after = (Program((x,), (("y", op("add", x, each)),)) for each in (term, other))
                terms = [*dict.fromkeys((*ordered(before), *ordered(after)))]
                data = packed(before, after, [{"rounded": [terms.index(term), terms.index(other)]}])
                verdicts = [check(data, before, after)[0] for check in (checkers.first, checkers.second)]
                assert verdicts[0] == verdicts[1] == (ACCEPTS if some == steps else REJECTS), f"{some} of {steps} numbers from {number}"
                count += 1
    assert count > 20
