"""What definitions have beyond plain terms: conditionals, comprehensions, several results, open broadcasts, more attributes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rule_texts import read_rules

from coset.ir.builtin import absent
from coset.ir.dims import symbol
from coset.ir.errors import CosetError
from coset.ir.evaluate import evaluate
from coset.ir.op import find_op
from coset.ir.registry import withdraw
from coset.ir.term import input_term, make, topological
from coset.ir.types import BF16, F32, I32, I64, TupleType, tensor
from coset.prove.check import Effort, check_rules
from coset.rules.defining import forget
from coset.rules.definition import DEFINED, evaluate_defined, expand
from coset.rules.rule import Rule

X = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
TEXT = """
op probe.Sum(x: F[S..], axes: ints = [], keepdims: bool = true) -> F[..]
  means if keepdims then reshape(r, ones_at(S, a)) else r
  with a = if len(axes) == 0 then range(rank(x)) else [i % rank(x) for i in axes], r = sum(x, sort(a))
  numerics reassociates

op probe.Add(a: N[A..], b: N[B..], N: number) -> N[..]
  means bcast(a, broadcast(A, B)) + bcast(b, broadcast(A, B))
  numerics exact

op probe.Two(x: F[S..], to: dtype = i32) -> (F[S..], _[S..])
  means (exponential(x), convert(x, to))
  numerics exact

op probe.Axpy(x: F[S..], b?: F[S..], factors: floats = [2.0, -inf]) -> F[S..]
  means if given(b) then s * x + b else s * x
  with s = if len(factors) > 1 and factors[1] > 0 then factors[1] else factors[0]
  numerics reassociates

op probe.Pool(x: F[N, C, H, W], kernel: ints, mode: string = "VALID") -> F[N, C, ..]
  means pad(x, scalar(-inf, F), low: [0, 0] + before, high: [0, 0] + [k - 1 - l for k, l in kernel, before], interior: [0, 0, 0, 0])
  with before = if mode == "SAME" then [(k - 1) // 2 for k in kernel] else [0 for k in kernel]
  numerics exact

op probe.Keep(x: T[S..], axes: ints) -> T[..]
  means reshape(x, [d for d, i in S, range(rank(x)) if not i in axes or d != 1])
  numerics exact

op probe.First(x: F[S..]) -> F[S..]
  means get(probe.Two(x, to: i64), 0)
  numerics exact

op probe.Centred(x: F[S..]) -> F[..]
  means d - bcast(sum(d, [0]), dims(d), axes: range(1, rank(d)))
  with d = reshape(x, [S[0], product(S[1:])])
  where len(S) > 1
  numerics reassociates

op probe.Concat(xs..: T[..], axis: int) -> T[..]
  means concatenate(xs.., dimension: axis % rank(xs[0]))
  numerics exact

op probe.Mean(xs..: F[..]) -> F[..]
  means fold(probe.Add, xs..) / len(xs)
  numerics reassociates

op probe.Total(xs..: F[..]) -> F[..]
  means fold(add, spread..)
  with S = broadcast([dims(x) for x in xs]..), spread = [bcast(x, S) for x in xs]
  numerics reassociates

op probe.Weighted(y: F[S..], xs..: F[S..], factors: floats) -> F[S..]
  means fold(add, [y, [f * x for x, f in xs, factors]..]..)
  where len(factors) == len(xs)
  numerics reassociates
"""


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Any:
    found, errors = read_rules(tmp_path_factory.mktemp("rules"), "use probe\n" + TEXT)
    assert errors == [], "\n".join(map(str, errors))
    yield [rule for rule in found.rules if rule.definition and rule.definition.startswith("probe.")]
    for name in [name for name in DEFINED if name.startswith("probe.")]:
        forget(DEFINED[name].op)


def value(name: str, arrays: list[np.ndarray | None], **attributes: object) -> Any:
    terms = [absent() if a is None else input_term(f"i{i}", tensor(F32, *a.shape)) for i, a in enumerate(arrays)]
    inputs = {f"i{i}": a for i, a in enumerate(arrays) if a is not None}
    return evaluate([make(name, terms, attributes)], inputs, fallback=evaluate_defined)[0]


@pytest.mark.slow
def test_every_definition_is_tested_on_values(rules: list[Rule]) -> None:
    verdicts = {verdict.name: verdict for verdict in check_rules(rules, effort=Effort(proofs=False))}
    assert {name: verdict.assurance for name, verdict in verdicts.items()} == dict.fromkeys(sorted(verdicts), "tested")
    assert len(verdicts) == TEXT.count("op probe.")


def test_a_conditional_between_terms(rules: list[Rule]) -> None:
    np.testing.assert_allclose(value("probe.Sum", [X], axes=(-1, 0)), X.sum((0, 2), keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(value("probe.Sum", [X], axes=(-1,), keepdims=False), X.sum(2), rtol=1e-5)
    assert value("probe.Sum", [X]).shape == (1, 1, 1)
    batch = input_term("x", tensor(F32, symbol("B"), 3))
    assert make("probe.Sum", [batch], {"axes": (1,)}).type == tensor(F32, symbol("B"), 1)


@pytest.mark.parametrize("shapes", [((2, 3), (2, 3)), ((3,), (2, 3)), ((2, 1), (3,)), ((), (2,)), ((1, 1), (4, 1))], ids=str)
def test_an_open_broadcast_is_numpys_and_leaves_no_trace(rules: list[Rule], shapes: tuple[tuple[int, ...], ...]) -> None:
    a, b = (np.random.default_rng(i).normal(size=shape).astype(np.float32) for i, shape in enumerate(shapes))
    np.testing.assert_array_equal(value("probe.Add", [a, b]), a + b)
    terms = [input_term(f"i{i}", tensor(F32, *shape)) for i, shape in enumerate(shapes)]
    spread = [term for term in topological([expand(make("probe.Add", terms))]) if term.op.name == "stablehlo.broadcast_in_dim"]
    assert len(spread) == sum(shape != (a + b).shape for shape in shapes)


def test_an_open_broadcast_of_symbolic_dims(rules: list[Rule]) -> None:
    a, b = input_term("a", tensor(I32, symbol("B"), 1, 4)), input_term("b", tensor(I32, 3, 4))
    assert make("probe.Add", [a, b]).type == tensor(I32, symbol("B"), 3, 4)
    with pytest.raises(CosetError, match=r"probe\.Add"):
        make("probe.Add", [a, input_term("c", tensor(I32, symbol("C"), 3, 4))])


def test_several_results(rules: list[Rule]) -> None:
    both = make("probe.Two", [input_term("x", tensor(F32, 2))], {"to": I64})
    assert both.type == TupleType((tensor(F32, 2), tensor(I64, 2)))
    whole, part = value("probe.Two", [X], to=BF16)
    np.testing.assert_array_equal(whole, np.exp(X))
    assert part.dtype == BF16.numpy
    np.testing.assert_array_equal(value("probe.First", [X]), np.exp(X))


def test_an_operand_that_may_be_absent_without_a_neutral_value(rules: list[Rule]) -> None:
    np.testing.assert_array_equal(value("probe.Axpy", [X, None]), 2 * X)
    np.testing.assert_array_equal(value("probe.Axpy", [X, X], factors=(2.0, 0.5)), X * np.float32(0.5) + X)


def test_paddings_are_computed(rules: list[Rule]) -> None:
    image = input_term("x", tensor(F32, symbol("N"), 3, 8, 9))
    assert make("probe.Pool", [image], {"kernel": (3, 4), "mode": "SAME"}).type == tensor(F32, symbol("N"), 3, 10, 12)
    padded = value("probe.Pool", [X[None]], kernel=(3, 2), mode="SAME")
    np.testing.assert_array_equal(padded[0, 0, 1:4, 0:4], X[0])
    assert np.isneginf(padded[0, 0, 0]).all()


def test_a_comprehension_with_a_condition(rules: list[Rule]) -> None:
    x = input_term("x", tensor(F32, symbol("B"), 1, 1, 2))
    assert make("probe.Keep", [x], {"axes": (1,)}).type == tensor(F32, symbol("B"), 1, 2)


def test_the_type_of_a_local_term(rules: list[Rule]) -> None:
    flat = X.reshape(2, 12)
    np.testing.assert_allclose(value("probe.Centred", [X]), flat - flat.sum(0), rtol=1e-6)


@pytest.mark.parametrize("count", [1, 2, 5, 100])
def test_a_variadic_operand(rules: list[Rule], count: int) -> None:
    arrays: list[np.ndarray | None] = [X + i for i in range(count)]
    np.testing.assert_array_equal(value("probe.Concat", arrays, axis=-2), np.concatenate(arrays, 1))  # type: ignore[arg-type]
    np.testing.assert_allclose(value("probe.Mean", arrays), X + (count - 1) / 2, rtol=1e-3, atol=1e-4)


def test_variadic_operands_of_many_shapes(rules: list[Rule]) -> None:
    shapes = [(3, 1), (4,), (2, 1, 1), ()]
    arrays: list[np.ndarray | None] = [np.random.default_rng(i).normal(size=s).astype(np.float32) for i, s in enumerate(shapes)]
    np.testing.assert_allclose(value("probe.Total", arrays), sum(arrays), rtol=1e-5)  # type: ignore[arg-type, call-overload]
    factors = (0.5, 2.0, -1.0)
    expected = X + X * 1.5
    np.testing.assert_allclose(value("probe.Weighted", [X] * 4, factors=factors), expected, rtol=1e-5)
    with pytest.raises(CosetError, match=r"probe\.Weighted"):
        value("probe.Weighted", [X] * 3, factors=factors)


def test_a_fold_is_not_endless(rules: list[Rule]) -> None:
    with pytest.raises(CosetError, match="a fold of more than 100 terms"):
        value("probe.Mean", [X] * 101)


MISTAKES = {
    "two lists, one name": ("op probe.A(x: F[S..]) means reshape(x, [i for i in S, S]) numerics exact", "each list of a comprehension"),
    "a name twice": ("op probe.A(x: F[S..], i: ints) means reshape(x, [i for i in S] + i) numerics exact", "`i` is declared twice"),
    "given of a given operand": ("op probe.A(x: F[S..]) means if given(x) then x else -x numerics exact", "`given` is about an optional"),
    "absent without a value": ("op probe.A(x: F[S..], b?: F[S..]) means x + b numerics exact", "`b` may be absent here"),
    "results": ("op probe.A(x: F[S..]) -> (F[S..], F[S..]) means -x numerics exact", "`probe.A` declares"),
    "several for one": ("op probe.A(xs..: F[S..]) means -xs numerics exact", "`xs` stands for several terms"),
    "variadic first": ("op probe.A(xs..: F[S..], y: F[S..]) means y numerics exact", "a variadic operand comes last"),
    "kind": ("op probe.A(x: F[S..], p: numbers) means -x numerics exact", "`numbers` is no kind of value"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_named(name: str, tmp_path: Path) -> None:
    text, message = MISTAKES[name]
    _, errors = read_rules(tmp_path, "use probe\n" + text + "\n")
    assert errors, "the mistake went unnoticed"
    left = DEFINED.pop("probe.A", None)  # types are looked at when the op is there already
    if left is not None:
        withdraw(left.op)
    assert message in errors[0].message, str(errors[0])
    assert find_op("probe.A") is None
