"""What the prover claims for all sizes holds on numbers; mutants that differ on numbers are never proved; the library's shares."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import numpy as np
import pytest
from mutants import mutants

import coset.dialects
from coset.ir import dims
from coset.ir.errors import CosetError
from coset.ir.evaluate import evaluate
from coset.ir.term import Term, topological
from coset.prove.equal import Open, Sense, compare
from coset.prove.sample import sides
from coset.prove.verify import prove
from coset.rules.definition import evaluate_defined
from coset.rules.instance import InstanceSearch
from coset.rules.instances import instances
from coset.rules.library import check_files, load
from coset.rules.rule import Rule
from tests.sampled import sampled

assert coset.dialects
RULES = {rule.family: rule for rule in reversed(load().rules) if rule.definition is None}
INSTANCES, MUTANTS, DRAWS = 4, 8, 5


def _values(pair: tuple[Term, Term], generator: np.random.Generator) -> list[np.ndarray]:
    """Both terms on random numbers, at random sizes, in f64 where they are f32."""
    inputs = {term.attribute("name"): term.tensor for term in topological(pair) if term.op.name == "builtin.input"}
    names = sorted(frozenset().union(*(dims.symbols(dim) for type in inputs.values() for dim in type.dims)))
    binding = {name: int(generator.integers(1, 4)) for name in names}
    arrays = {}
    for name, type in inputs.items():
        shape = [dims.evaluate(dim, binding) for dim in type.dims]
        low, high = (0, 2) if type.dtype.kind == "bool" else (0, 100) if type.dtype.kind == "uint" else (-100, 100)
        drawn = generator.uniform(-2, 2, shape) if type.dtype.kind in ("float", "complex") else generator.integers(low, high, shape)
        arrays[name] = np.asarray(drawn).astype(type.dtype.numpy)
    with np.errstate(all="ignore"):
        return evaluate(pair, arrays, binding=binding, fallback=evaluate_defined)


def _differ(pair: tuple[Term, Term], exact: bool, generator: np.random.Generator) -> bool:
    for _ in range(DRAWS):
        try:
            a, b = _values(pair, generator)
        except (CosetError, ValueError):
            continue  # sizes that the rule's conditions exclude, or that give a window no place (NumPy's word for a negative dim)
        shape = pair[0].tensor.static
        if np.shape(a) != np.shape(b) or (shape is not None and np.shape(a) != shape):
            continue  # a slice beyond its operand: such sizes the types exclude
        kind = np.asarray(a).dtype.kind
        same = np.array_equal(a, b, equal_nan=kind in "fc") if exact else np.allclose(a, b, rtol=1e-3, atol=1e-3, equal_nan=True)
        if not same:
            return True
    return False


def _pairs(rule: Rule) -> list[tuple[Term, Term]]:
    found = (sides(rule, instance) for instance in itertools.islice(instances(rule, InstanceSearch(dtypes=2)), 60))
    pairs = list(dict.fromkeys(pair for pair in found if pair is not None))
    random.Random(rule.name).shuffle(pairs)
    return [p for p in pairs if all(t.tensor.dtype.bits >= 32 or t.tensor.dtype.kind != "float" for t in p)][:INSTANCES]


@pytest.mark.parametrize("name", sampled(sorted(RULES)))
def test_no_mutant_that_differs_is_proved(name: str) -> None:
    rule = RULES[name]
    exact = rule.numerics.word == "exact"
    generator = np.random.default_rng(len(name))
    for left, right in _pairs(rule):
        changed = list(itertools.islice(mutants(right), 40))
        random.Random(name).shuffle(changed)
        for mutant in changed[:MUTANTS]:
            try:
                compare(left, mutant, Sense(real=not exact, exceptions=rule.numerics.exceptions))
            except Open:
                continue
            assert not _differ((left, mutant), exact, generator), f"{rule}: {mutant} was called equal to {left}"


HOLDS = {
    "softmax_shift": "for x: F[S.., N], m: F[S..] exponential(x - bcast(m, [S.., N], axes: range(len(S)))) "
    "/ bcast(sum(exponential(x - bcast(m, [S.., N], axes: range(len(S)))), [len(S)]), [S.., N], axes: range(len(S))) "
    "=> exponential(x) / bcast(sum(exponential(x), [len(S)]), [S.., N], axes: range(len(S))) numerics real",
    "matmul_of_concatenated": "for a: F[M, K], b: F[M, L], c: F[K, N], d: F[L, N] "
    "concatenate(a, b, dimension: 1) @ concatenate(c, d, dimension: 0) => a @ c + b @ d numerics reassociates",
    "sum_of_flattened": "for x: F[A, B, C] sum(reshape(x, [A * B, C]), [0]) => sum(x, [0, 1]) numerics reassociates",
    "transposed_halves": "for x: T[A, B, C] transpose(reshape(x, [A * B, C]), [1, 0]) "
    "=> reshape(transpose(x, [2, 0, 1]), [C, A * B]) numerics exact",
    "tanh_by_logistic": "for x: F[S..] tanh(x) => splat(2) * logistic(splat(2) * x) - splat(1) numerics real",
    "reversed_sum": "for x: F[N] sum(reverse(x, [0]), [0]) => sum(x, [0]) numerics reassociates",
    "largest_of_scaled": "for x: F[A.., N] max(splat(2) * x + splat(1), [len(A)]) => splat(2) * max(x, [len(A)]) + splat(1) numerics real",
    "clamp_as_extremes": "for x: F[S..], a, b: F[] clamp(a, x, b) => minimum(maximum(x, splat(a)), splat(b)) numerics exact",
    "absolute_by_sign": "for x: F[S..] x * sign(x) => abs(x) numerics real",
    "either_by_not": "for a, b: bool[S..] hlo.not(hlo.and(a, b)) => hlo.or(hlo.not(a), hlo.not(b)) numerics exact",
    "select_of_not": "for c: bool[S..], x, y: T[S..] select(hlo.not(c), x, y) => select(c, y, x) numerics exact",
}
OPEN = {
    "softmax_without_shift": "for x: F[S.., N] x * exponential(x) => exponential(x) numerics real",
    "wrong_order": "for x: T[A, B] reshape(x, [A * B]) => reshape(transpose(x, [1, 0]), [A * B]) numerics exact",
    "square_root_of_square": "for x: F[S..] sqrt(x * x) => x numerics real",
    "cancelled": "for x, y: F[S..] (x * y) / y => x numerics reassociates",
    "sum_of_products": "for x, y: F[N] sum(x * y, [0]) => sum(x, [0]) * sum(y, [0]) numerics reassociates",
    "assoc_exact": "for x, y, z: F[S..] (x + y) + z => x + (y + z) numerics exact",
    "signed_compare": 'for x, y: i32[S..] compare(x - y, splat(0), "LT") => compare(x, y, "LT") numerics exact',
    "minus_zero": "for x: F[S..] x + splat(0.0) => x numerics exact",
    "rounds": "for x: f32[S..] convert(convert(x, f16), f32) => x numerics exact",
    "doubled_parity": "for x, y: I[S..] hlo.xor(x, hlo.xor(x, y)) => hlo.xor(x, y) numerics exact",
}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rule]:
    path = tmp_path_factory.mktemp("rules") / "given.rules"
    path.write_text("use stablehlo as hlo, chlo\n" + "\n".join(f"rule {name} {text}" for name, text in (HOLDS | OPEN).items()))
    rules, errors = check_files([path])
    assert errors == []
    return {rule.family: rule for rule in reversed(rules.rules)}


@pytest.mark.parametrize("name", HOLDS)
def test_is_shown(name: str, written: dict[str, Rule]) -> None:
    proof = prove(written[name])
    assert proof.assurance, proof.reason


@pytest.mark.parametrize("name", OPEN)
def test_is_not_shown(name: str, written: dict[str, Rule]) -> None:
    proof = prove(written[name])
    assert not proof.assurance
    assert proof.cases, proof.reason


BITS = {
    "absorbs": "for x, y: I[S..] maximum(x, minimum(x, y)) => x numerics exact",
    "quotients": "for x: I[S..] (x / splat(2)) / splat(2) => x / splat(4) numerics exact",
    "neither": "for x, y: I[S..] hlo.not(hlo.or(x, y)) => hlo.and(hlo.not(x), hlo.not(y)) numerics exact",
    "magnitude_of_product": "for x, y: F[S..] abs(x * y) => abs(x) * abs(y) numerics exact",
    "ceiling": "for x: F[S..] ceil(x) => -floor(-x) numerics exact",
}
NO_BITS = {
    "shifted_quotient": "for x: I[S..], I: signed x / splat(4) => shift_right_arithmetic(x, splat(2)) numerics exact",
    "nan_becomes_finite": 'for x: F[S..] is_finite(x) => hlo.not(compare(splat(inf), abs(x), "EQ")) numerics exact',
    "integer_quotient_of_quotient": "for a, b, c: I[S..] a / (b / c) => (a * c) / b numerics exact",
    "zero_of_maximum": 'for x, y: F[S..] select(compare(x, y, "GE"), x, y) => maximum(x, y) numerics exact',
    "negated_sum": "for x, y: F[S..] -(x + y) => -x - y numerics exact",
}


@pytest.mark.parametrize("name", [*BITS, *NO_BITS])
def test_elementwise_rules_bit_by_bit(name: str, tmp_path: Path) -> None:
    path = tmp_path / "given.rules"
    path.write_text(f"use stablehlo as hlo, chlo\nrule {name} {(BITS | NO_BITS)[name]}")
    rules, errors = check_files([path])
    assert errors == []
    (rule,) = (rule for rule in rules.family(name) if "#" not in rule.name)
    assert bool(prove(rule).assurance) == (name in BITS)
