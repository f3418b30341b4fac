"""Forged certificates by a generator that knows the format: none whose claim is false is accepted.

    python -m benchmarks.forgeries [--count 10000] [--seed 0] [--kinds a,b] [--json FILE]

Each forgery starts from a random small program, a program that true steps make of it, and the certificate of these steps. Then it
claims something else: the program after gets one wrong edit, and the certificate gets lines of its kind that are to excuse it. A claim is
false if both programs differ on random inputs, computed in f64: by more than 1e-9 of the largest element, or 1,000 times the relative
rounding of constants that the verdict prints (a twentieth at most); or by a bit, where the verdict says `exact`. What is accepted and not
false is `true anyway`. `benchmarks/tampering.py` damages certificates of real models.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import coset.dialects
from benchmarks import headroom
from coset.dialects.expansion import expanded
from coset.dialects.hub.region_terms import while_term
from coset.dialects.hub.terms import broadcast, dot, transpose
from coset.ir.errors import CosetError
from coset.ir.evaluate import evaluate, evaluate_program
from coset.ir.program import Program
from coset.ir.term import CONSTANT, INPUT, Term, constant, input_term, make, rebuild, topological
from coset.ir.types import F32, F64, DType, TensorType
from coset.prove.budget import OPERATIONS
from coset.prove.certificate import Certificate, Rejected
from coset.prove.contents import by_content, digest, hashed, other_of
from coset.prove.kernel import Verdict, verify
from coset.proving.certify import certificate_of
from coset.proving.meanings import DEFINED, meaning, meaning_of
from coset.proving.steps import APART, COMPUTED, MEANING, ROUNDED, CertificateStep, Uncertified, hashed_value
from coset.rules.applied import matched, right_sides
from coset.rules.definition import evaluate_defined
from coset.rules.library import load
from coset.rules.rule import Rule, decided

assert coset.dialects  # ops are registered

SHAPE = (3, 3)
EPS = 2.0**-23
SMALL_BUDGET = 1 << 26  # operations of a check here: a bomb needs more, and nothing else does
UNARY = ("negate", "abs", "tanh", "exponential", "logistic", "sqrt")
BINARY = ("add", "subtract", "multiply", "maximum", "minimum")
TRUE_WORDS = ("exact", "reassociates")
MOST_ROUNDING = 0.05  # of the largest element: a bound that is printed excuses no more


# ---------------------------------------------------------------- true pairs


@dataclass
class Pair:
    """A program, what `steps` make of it, and a draw for what is done to them."""

    before: Program
    after: Program
    steps: list[CertificateStep]
    draw: random.Random
    array: np.random.Generator

    def certificate(self, after: Program | None = None, steps: Sequence[CertificateStep] = ()) -> Certificate:
        """That of the pair's steps and these."""
        return certificate_of(self.before, after or self.after, [*self.steps, *steps])


@dataclass(frozen=True)
class Forgery:
    """A claim about two programs with a certificate. `names`: the verifier's mapping."""

    before: Program
    after: Program
    certificate: Certificate
    names: Mapping[str, str] = field(default_factory=dict)


def op(name: str, *operands: Term, **attributes: Any) -> Term:
    """A hub term."""
    return make(f"stablehlo.{name}", operands, attributes)


@cache
def rules() -> dict[str, Rule]:
    """The library by name."""
    return {rule.name: rule for rule in load().rules}


@cache
def by_root() -> dict[str, list[Rule]]:
    """Rules of one root whose promise keeps the reals, by the op of that root."""
    found: dict[str, list[Rule]] = {}
    for rule in rules().values():
        if rule.roots == 1 and rule.numerics.word in TRUE_WORDS and rule.assurance == "proved" and not rule.facts:
            found.setdefault(rule.left.op.name, []).append(rule)
    return found


def program(roots: Mapping[str, Term]) -> Program:
    """The program with these outputs."""
    inputs = tuple(input_term(name, TensorType(F32, SHAPE)) for name in "xyz")
    return by_content(Program(inputs, tuple(roots.items())))


def numbers(generator: np.random.Generator, shape: Sequence[int] = SHAPE) -> Term:
    """A constant of moderate numbers."""
    return constant(np.asarray(generator.uniform(0.5, 2.0, shape) * generator.choice([-1, 1], shape), np.float32))


def expression(draw: random.Random, generator: np.random.Generator, depth: int) -> Term:
    """A random term of f32[3, 3]."""
    if depth == 0 or draw.random() < 0.1:
        return input_term(draw.choice("xyz"), TensorType(F32, SHAPE)) if draw.random() < 0.65 else numbers(generator)
    kind = draw.randrange(10)

    def part() -> Term:
        return expression(draw, generator, depth - 1)

    if kind < 2:
        return op(draw.choice(UNARY), part())
    if kind < 6:
        return op(draw.choice(BINARY), part(), part())
    if kind == 6:
        return dot(part(), numbers(generator), lhs_contract=(1,), rhs_contract=(0,))
    if kind == 7:
        return transpose(part(), (1, 0))
    if kind == 8:
        name, attributes = draw.choice([("Softmax", {"axis": draw.randrange(2)}), ("Gelu", {"approximate": "none"})])
        return make(f"onnx.{name}", (part(),), attributes)
    number = constant(np.float32(draw.choice([0.0, 1.0, 2.0, -0.5, 3.0])))
    return op(draw.choice(("add", "multiply")), part(), broadcast(number, SHAPE, ()))


def one_step(root: Term, draw: random.Random) -> CertificateStep | None:
    """A true step somewhere in a term: a rule, a definition or the value of constants."""
    terms = list(topological([root]))
    draw.shuffle(terms)
    for term in terms[:12]:
        if term.operands and all(operand.op is CONSTANT for operand in term.operands) and draw.random() < 0.7:
            value = hashed_value(term)
            return CertificateStep(COMPUTED, (term,), (value,)) if value.op is CONSTANT else None
        if draw.random() < 0.5 and (found := meaning_of(term)) is not None:
            return CertificateStep(MEANING, (term,), (found,))
        own = by_root().get(term.op.name, [])
        for rule in draw.sample(own, min(len(own), 12)):
            step = said(rule, term)
            if step is not None and step.right[0] is not term:
                return step
    return None


def said(rule: Rule, root: Term) -> CertificateStep | None:
    """The rule at a term; None where it does not hold."""
    found = matched(rule, (root,))
    try:
        decision = None if found is None else decided(rule, *found)
        return None if found is None or decision is None else CertificateStep(rule, (root,), right_sides(rule, decision, found[1]))
    except (CosetError, IndexError):
        return None


def replaced(root: Term, change: Mapping[Term, Term]) -> Term:
    """A term with others in the place of some of its parts."""
    made: dict[Term, Term] = {}
    for term in topological([root]):
        made[term] = change.get(term) or rebuild(term, [made[operand] for operand in term.operands])
    return made[root]


def true_pair(seed: int) -> Pair:
    """A random pair with its steps."""
    draw, generator = random.Random(seed), np.random.default_rng(seed)
    roots = {"u": expression(draw, generator, 4), "v": expression(draw, generator, 2)}
    before = program(roots)
    current = dict(before.outputs)
    steps: list[CertificateStep] = []
    for _ in range(draw.randint(1, 4)):
        name = draw.choice("uv")
        step = one_step(current[name], draw)
        if step is not None:
            steps.append(step)
            current = {name: replaced(root, dict(zip(step.left, step.right, strict=True))) for name, root in current.items()}
    return Pair(before, program(current), steps, draw, generator)


# ---------------------------------------------------------------- kinds of forgeries


Kind = Callable[[Pair], Forgery | None]
KINDS: dict[str, Kind] = {}


def kind(make: Kind) -> Kind:
    """Enter a kind of forgeries under its name."""
    KINDS[make.__name__] = make
    return make


def with_edit(pair: Pair, change: Mapping[Term, Term]) -> Program:
    """The program after with other terms in it."""
    return program({name: replaced(root, change) for name, root in pair.after.outputs})


def some_constant(pair: Pair) -> Term | None:
    """A constant of the program after."""
    found = [term for term in topological(pair.after.roots) if term.op is CONSTANT and term.tensor.dtype.kind == "float"]
    return pair.draw.choice(found) if found else None


def evaluated(term: Term) -> np.ndarray[Any, Any]:
    """The value of a term of constants."""
    with np.errstate(all="ignore"):
        (found,) = evaluate([term], {}, fallback=evaluate_defined)
    return np.array(found)


def nudged(pair: Pair, value: Term) -> Term:
    """A constant with one element changed: by a unit, some, a share, a factor, or another number."""
    array = value.attribute("value").array().copy()
    place = pair.draw.randrange(array.size)
    by = pair.draw.choice([EPS, 4 * EPS, 64 * EPS, 1e-3, 0.1, 1.0, 7.0])
    array.flat[place] = np.float32(array.flat[place] * (1 + by) + (by if array.flat[place] == 0 else 0))
    return constant(array)


def full(value: float, like: Term) -> Term:
    """A number in all places of a type."""
    number = constant(np.float32(value))
    return broadcast(number, like.tensor.dims, ()) if like.tensor.rank else number


def trivial(pair: Pair, value: Term) -> tuple[Term, list[CertificateStep]]:
    """A term that computes a constant anew, and steps that show that it does."""
    way = pair.draw.randrange(8)
    if way == 0:
        term = op("multiply", value, full(1, value))
    elif way == 1:
        term = op("add", value, full(0, value))
    elif way == 2:
        term = op("negate", op("negate", value))
    elif way == 3:
        term = make("stablehlo.convert", (value,), {"dtype": F32})
    elif way == 4:
        large = 10.0 ** pair.draw.randint(0, 30)
        term = op("subtract", op("add", value, full(large, value)), full(large, value))
    elif way == 5:
        large = 10.0 ** pair.draw.randint(0, 37)
        term = op("divide", op("multiply", value, full(large, value)), full(large, value))
    elif way == 6:
        term = op("multiply", op("multiply", value, full(1e-30, value)), full(1e30, value))
    else:
        term = op("maximum", value, value)
    steps = [
        step
        for name in ("multiply_one", "multiply_one#2", "add_zero", "add_zero#2", "double_negate")
        if (step := said(rules()[name], term)) is not None
    ]
    if pair.draw.random() < 0.4:
        steps.append(CertificateStep(COMPUTED, (term,), (hashed_value(term),)))
    return term, steps


@kind
def rounding(pair: Pair) -> Forgery | None:
    """A constant becomes another through something that is computed, one time or several."""
    value = some_constant(pair)
    if value is None:
        return None
    other, steps, current = value, list[CertificateStep](), value
    for _ in range(pair.draw.choice([1, 1, 1, 2, 8])):
        term, shown = trivial(pair, current)
        other = nudged(pair, current)
        steps += [*shown, CertificateStep(ROUNDED, (term,), (other,))]
        if pair.draw.random() < 0.5:
            steps.append(CertificateStep(COMPUTED, (term,), (hashed_value(term),)))
        current = other
    after = with_edit(pair, {value: other})
    return Forgery(pair.before, after, pair.certificate(after, steps))


@kind
def beside_a_large_number(pair: Pair) -> Forgery | None:
    """The element of a constant is swapped in a larger one beside a huge number, and cut out again."""
    value = some_constant(pair)
    if value is None or not value.tensor.rank:
        return None
    huge = broadcast(constant(np.float32(10.0 ** pair.draw.randint(5, 38))), value.tensor.dims, ())
    other = nudged(pair, value)
    both, wrong = (make("stablehlo.concatenate", (huge, each), {"dimension": 0}) for each in (value, other))
    ends = tuple(value.tensor.static or ())

    def cut(term: Term) -> Term:
        return op("slice", term, start=(ends[0], *(0,) * (len(ends) - 1)), limit=(2 * ends[0], *ends[1:]), strides=(1,) * len(ends))

    one = broadcast(constant(np.float32(1)), both.tensor.dims, ())
    scaled = op(pair.draw.choice(("multiply", "divide", "add")), both, one)
    stored = hashed(constant(evaluated(wrong)))
    steps = [CertificateStep(COMPUTED, (cut(both),), (value,)), CertificateStep(COMPUTED, (wrong,), (stored,))]
    steps += [step for name in ("multiply_one", "divide_one") if name in rules() and (step := said(rules()[name], scaled)) is not None]
    steps += [CertificateStep(ROUNDED, (scaled,), (stored,)), CertificateStep(COMPUTED, (cut(stored),), (other,))]
    after = with_edit(pair, {value: other})
    return Forgery(pair.before, after, pair.certificate(after, steps))


@kind
def absorbing(pair: Pair) -> Forgery | None:
    """A summand goes into a large number, and this is taken away again; the programs may have the large number themselves."""
    name, root = pair.draw.choice(list(pair.after.outputs))
    size = np.float32(10.0 ** pair.draw.randint(6, 37))
    large, negative, none = (full(each, root) for each in (size, -size, 0.0))
    small = full(pair.draw.choice([1.0, 0.5, 3.0]), root)
    plus = op("add", root, small)
    shifted = op("add", plus, large)
    values = [large, op("add", small, large), op("add", large, negative), none]
    associated = [shifted, op("add", shifted, negative), op("add", op("add", root, large), negative)]
    ends = [op("add", root, none), op("add", plus, none)]
    steps = [CertificateStep(COMPUTED, (term,), (constant(evaluated(term)),)) for term in values]
    found = [said(rules()[rule], term) for rule, terms in (("add_assoc_const", associated), ("add_zero", ends)) for term in terms]
    steps += [each for each in found if each is not None]
    outputs = {**dict(pair.after.outputs), name: plus}
    before = dict(pair.before.outputs)
    if pair.draw.random() < 0.5:  # the programs add the large number up themselves, in an output of its own
        idle = op("multiply", input_term("x", TensorType(F32, SHAPE)), op("add", large, negative))
        outputs["w"] = before["w"] = idle
    one, after = program(before), program(outputs)
    return Forgery(one, after, certificate_of(one, after, [*pair.steps, *steps]))


@kind
def cancelling(pair: Pair) -> Forgery | None:
    """A constant is what is left of it when a large number was added and taken away again."""
    value = some_constant(pair)
    if value is None:
        return None
    size = np.float32(10.0 ** pair.draw.randint(3, 12))
    large, negative, none = (full(each, value) for each in (size, -size, 0.0))
    around = op("add", op("add", value, large), negative)
    other = hashed(constant(evaluated(around)))
    steps = [CertificateStep(COMPUTED, (around,), (other,))]
    steps += [
        CertificateStep(COMPUTED, (term,), (constant(evaluated(term)),)) for term in (op("add", large, negative), none) if term.operands
    ]
    found = [said(rules()["add_assoc_const"], around)]
    found += [said(rules()[rule], op("add", value, none)) for rule in ("add_zero", "add_zero#2")]
    steps += [each for each in found if each is not None]
    after = with_edit(pair, {value: other})
    if pair.draw.random() < 0.4:
        steps[0] = CertificateStep(ROUNDED, (around,), (other,))
    return Forgery(pair.before, after, pair.certificate(after, steps))


@kind
def second_life(pair: Pair) -> Forgery | None:
    """A value that was rounded is used as the number that it looks like, in one program or both."""
    value = some_constant(pair)
    if value is None:
        return None
    third = op("divide", value, full(pair.draw.choice([3.0, 7.0, 10.0]), value))
    other = op("multiply", third, full(pair.draw.choice([3.0, 7.0, 10.0, 1.5]), value))
    result = hashed_value(other)
    after = with_edit(pair, {value: result})
    steps = [
        CertificateStep(COMPUTED, (third,), (hashed_value(third),)),
        CertificateStep(COMPUTED, (other,), (result,)),
        CertificateStep(ROUNDED, (other,), (value,)),
    ]
    pair.draw.shuffle(steps)
    return Forgery(pair.before, after, pair.certificate(after, steps))


@kind
def apart(pair: Pair) -> Forgery | None:
    """A constant of the program after is set apart where some nodes use it, and then said to be what another one computes."""
    value = some_constant(pair)
    if value is None:
        return None
    after = with_edit(pair, {value: pair.draw.choice([value, nudged(pair, value)])})
    stored = next((term for term in topological(after.roots) if term.op is CONSTANT and term.type == value.type), value)
    users = [term for term in topological(after.roots) if stored in term.operands]
    if not users:
        return None
    own = other_of(stored, 1)
    chosen = pair.draw.sample(users, pair.draw.randrange(1, len(users) + 1))
    source = op("multiply", op("divide", value, full(3, value)), full(pair.draw.choice([3.0, 3.0, 1.5]), value))
    further = [
        CertificateStep(ROUNDED, (source,), (own,)),
        CertificateStep(COMPUTED, (own,), (stored,)),
        CertificateStep(ROUNDED, (op("add", value, full(0, value)),), (own,)),
        CertificateStep(COMPUTED, (source,), (hashed_value(source),)),
    ]
    steps = [CertificateStep(APART, (stored, *chosen), (own,)), *pair.draw.sample(further, pair.draw.randrange(len(further) + 1))]
    return Forgery(pair.before, after, pair.certificate(after, steps))


@kind
def wrong_value(pair: Pair) -> Forgery | None:
    """A `computed` line whose value is another one, or of what is no constant."""
    value = some_constant(pair)
    if value is None:
        return None
    other = nudged(pair, value)
    term = pair.draw.choice([op("add", value, full(0, value)), value, pair.after.roots[0]])
    after = with_edit(pair, {value: other})
    return Forgery(pair.before, after, pair.certificate(after, [CertificateStep(COMPUTED, (term,), (other,))]))


@kind
def names(pair: Pair) -> Forgery | None:
    """Inputs or outputs change places: unsaid, in the head, or by a mapping of something else."""
    swapped = dict(zip("xyz", pair.draw.sample("xyz", 3), strict=True))
    change = {input_term(one, TensorType(F32, SHAPE)): input_term(other, TensorType(F32, SHAPE)) for one, other in swapped.items()}
    outputs = dict(pair.after.outputs)
    if pair.draw.random() < 0.5:
        outputs = {"u": outputs["v"], "v": outputs["u"]}
    after = program({name: replaced(root, change) for name, root in outputs.items()})
    certificate = pair.certificate(after)
    if pair.draw.random() < 0.5:
        back = {other: one for one, other in swapped.items()}
        certificate = Certificate({**certificate.head, "names": {"inputs": back, "outputs": {"u": "v", "v": "u"}}}, certificate.lines)
    return Forgery(pair.before, after, certificate)


@kind
def mapping(pair: Pair) -> Forgery | None:
    """A mapping that the verifier is given holds of what it says alone."""
    given = dict(zip("xyz", pair.draw.sample("xyz", 3), strict=True))
    return Forgery(pair.before, pair.after, pair.certificate(), given)


def edited(pair: Pair, root: Term) -> Term:
    """A term with one thing wrong: operands, an op, an attribute, a constant."""
    terms = [term for term in topological([root]) if term.operands]
    if not terms:
        return op("negate", root)
    term = pair.draw.choice(terms)
    hub = term.op.name.removeprefix("stablehlo.")
    if hub in BINARY and pair.draw.random() < 0.6:
        other = op(pair.draw.choice([each for each in BINARY if each != hub]), *term.operands)
    elif hub in UNARY and pair.draw.random() < 0.6:
        other = op(pair.draw.choice([each for each in UNARY if each != hub]), *term.operands)
    elif term.op.name == "onnx.Softmax":
        other = make(term.op, term.operands, {"axis": 1 - term.attribute("axis")})
    elif hub == "dot_general":
        lhs, rhs = term.operands
        other = dot(lhs, rhs, lhs_contract=(pair.draw.randrange(2),), rhs_contract=(pair.draw.randrange(2),))
    elif len(term.operands) > 1 and term.operands[0].type == term.operands[1].type:
        other = rebuild(term, (term.operands[1], term.operands[0], *term.operands[2:]))
    else:
        other = op("add", term, term) if term.type == root.type else term
    return replaced(root, {term: other}) if other.type == term.type else op("negate", root)


@kind
def instance(pair: Pair) -> Forgery | None:
    """A step of a rule with another right side, at another term, or by another rule."""
    places = [place for place, step in enumerate(pair.steps) if isinstance(step.reason, Rule)]
    if not places:
        return None
    place = pair.draw.choice(places)
    step = pair.steps[place]
    wrong = edited(pair, step.right[0])
    after = program({name: replaced(root, {step.right[0]: wrong}) for name, root in pair.after.outputs})
    reason = step.reason if pair.draw.random() < 0.7 else pair.draw.choice(list(rules().values()))
    steps = [*pair.steps[:place], replace(step, reason=reason, right=(wrong,)), *pair.steps[place + 1 :]]
    return Forgery(pair.before, after, certificate_of(pair.before, after, steps))


@kind
def attributes(pair: Pair) -> Forgery | None:
    """A whole edit of the program after, excused by whatever rule has its op at the root."""
    name, root = pair.draw.choice(list(pair.after.outputs))
    wrong = edited(pair, root)
    own = by_root().get(root.op.name, [])
    steps = [CertificateStep(rule, (root,), (wrong,)) for rule in pair.draw.sample(own, min(3, len(own)))]
    after = program({**dict(pair.after.outputs), name: wrong})
    return Forgery(pair.before, after, pair.certificate(after, steps))


@kind
def definitions(pair: Pair) -> Forgery | None:
    """A `meaning` line of what has none, or of another axis or form."""
    terms = [term for term in topological(pair.after.roots) if term.operands]
    term = pair.draw.choice(terms) if terms else None
    if term is None:
        return None
    found = meaning_of(term)
    wrong = edited(pair, found if found is not None and found.type == pair.after.roots[0].type else term)
    if wrong.type != term.type:
        return None
    after = with_edit(pair, {term: wrong})
    return Forgery(pair.before, after, pair.certificate(after, [CertificateStep(MEANING, (term,), (wrong,))]))


@cache
def factual() -> list[Rule]:
    """Rules that ask for facts about numbers, of one variable."""
    return [rule for rule in rules().values() if rule.roots == 1 and any(fact not in ("const", "varying") for fact, _ in rule.facts)]


@kind
def facts(pair: Pair) -> Forgery | None:
    """abs(t) is t, where that rests on itself, comes too late or is not so."""
    magnitude = next(rule for rule in factual() if str(rule.left) == "stablehlo.abs(x)" and str(rule.right) == "x")
    name, root = pair.draw.choice(list(pair.after.outputs))
    absolute = op("abs", root)
    twice = op("abs", absolute)
    before = program({**dict(pair.before.outputs), name: op("abs", dict(pair.before.outputs)[name])})
    steps = [
        CertificateStep(magnitude, (absolute,), (root,)),
        CertificateStep(magnitude, (twice,), (absolute,)),
        CertificateStep(magnitude, (absolute,), (root,), (twice,)),
    ]
    pair.draw.shuffle(steps)
    return Forgery(before, pair.after, certificate_of(before, pair.after, [*pair.steps, *steps]))


@kind
def texts(pair: Pair) -> Forgery | None:
    """A rule under the name or the text of another, beside a wrong edit or none."""
    certificate = pair.certificate()
    head = copy.deepcopy(certificate.head)
    if not head["rules"]:
        return None
    other = pair.draw.choice(list(rules().values()))
    chosen = pair.draw.choice(head["rules"])
    from coset.prove.kernel import text_hash

    ways: list[dict[str, Any]] = [{"name": other.name}, {"text": text_hash(other)}, {"name": other.name, "text": text_hash(other)}]
    chosen.update(pair.draw.choice(ways))
    after = program({name: edited(pair, root) for name, root in pair.after.outputs})
    head["after"] = digest(after) if pair.draw.random() < 0.7 else head["after"]
    return Forgery(pair.before, after if head["after"] == digest(after) else pair.after, Certificate(head, certificate.lines))


@kind
def order(pair: Pair) -> Forgery | None:
    """The lines in another order, some twice and some missing, for the program or one with an edit."""
    certificate = pair.certificate()
    lines = copy.deepcopy(list(certificate.lines))
    pair.draw.shuffle(lines)
    lines = [line for line in lines if pair.draw.random() < 0.9] + lines[:1]
    return _claiming(pair, Certificate(certificate.head, lines))


@kind
def dims(pair: Pair) -> Forgery | None:
    """Lines that say that two nodes are one computation."""
    certificate = pair.certificate()
    count = len({*topological((*pair.before.roots, *pair.after.roots))})
    lines = list(certificate.lines)
    for _ in range(pair.draw.randint(1, 6)):
        pairs = [[pair.draw.randrange(count), pair.draw.randrange(count)] for _ in range(pair.draw.randint(0, 3))]
        lines.insert(pair.draw.randrange(len(lines) + 1), {"dims": pairs})
    return _claiming(pair, Certificate(certificate.head, lines))


def _claiming(pair: Pair, certificate: Certificate) -> Forgery:
    """The certificate for the program after, or for one with a wrong edit under its hash."""
    if pair.draw.random() < 0.3:
        return Forgery(pair.before, pair.after, certificate)
    name, root = pair.draw.choice(list(pair.after.outputs))
    after = program({**dict(pair.after.outputs), name: edited(pair, root)})
    return Forgery(pair.before, after, Certificate({**certificate.head, "after": digest(after)}, certificate.lines))


@kind
def bombs(pair: Pair) -> Forgery | None:
    """A constant that takes for ever."""
    draw = pair.draw

    def loop(limit: int, step: Callable[[Term], Term]) -> Term:
        start = constant(np.int32(draw.randrange(3)))
        return while_term((start,), lambda i: make("stablehlo.compare", (i, constant(np.int32(limit))), {"direction": "NE"}), step)

    side = 1 << draw.randint(12, 20)
    ways: list[Callable[[], Term]] = [
        lambda: loop(-1, lambda i: op("add", i, constant(np.int32(1)))),
        lambda: loop(-1, lambda i: i),
        lambda: while_term((constant(np.bool_(True)),), lambda go: go, lambda go: go),
        lambda: loop(-1, lambda i: op("subtract", loop(-2, lambda j: j), i)),
        lambda: broadcast(constant(np.float32(1)), (side, side), ()),
        lambda: make("stablehlo.iota", (), {"dtype": F32, "shape": (side, side, 7), "dimension": 1}),
        lambda: op("reduce", broadcast(constant(np.float32(1)), (side, side), ()), dimensions=(0, 1), combiner="add"),
    ]
    term = draw.choice(ways)()
    return Forgery(pair.before, pair.after, pair.certificate(None, [CertificateStep(COMPUTED, (term,), (term,))]))


@kind
def exactness(pair: Pair) -> Forgery | None:
    """A constant that other evaluations fold to other bits, folded: the verdict may not say `exact`."""
    value = some_constant(pair)
    if value is None or not value.tensor.rank:
        return None
    term = op(pair.draw.choice(("exponential", "tanh", "logistic", "cosine")), value)
    made = hashed_value(term).attribute("value").array()
    wanted = constant(np.nextafter(made, np.float32(pair.draw.choice([0, 9])))) if pair.draw.random() < 0.7 else hashed_value(term)
    if value.tensor.static != SHAPE:
        return None
    one = {**dict(pair.before.outputs), "w": op("add", input_term("x", TensorType(F32, SHAPE)), term)}
    other = {**dict(pair.after.outputs), "w": op("add", input_term("x", TensorType(F32, SHAPE)), wanted)}
    before, after = program(one), program(other)
    step = (
        CertificateStep(ROUNDED, (term,), (wanted,)) if wanted is not hashed_value(term) else CertificateStep(COMPUTED, (term,), (wanted,))
    )
    return Forgery(before, after, certificate_of(before, after, [*pair.steps, step]))


@kind
def random_edits(pair: Pair) -> Forgery | None:
    """One to three numbers, texts or lists somewhere in the certificate."""
    certificate = pair.certificate()
    head, lines = copy.deepcopy(certificate.head), copy.deepcopy(list(certificate.lines))
    for _ in range(pair.draw.randint(1, 3)):
        _damage(pair.draw.choice([head, *lines * 4]), pair.draw)
    forged = _claiming(pair, Certificate(head, lines))
    return forged if pair.draw.random() < 0.5 else replace(forged, certificate=Certificate({**forged.certificate.head}, lines))


def _damage(value: Any, draw: random.Random) -> None:
    items = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
    if not items:
        return
    key, inner = draw.choice(items)
    if isinstance(inner, dict | list) and inner and draw.random() < 0.8:
        _damage(inner, draw)
    elif type(inner) is int:
        value[key] = inner + draw.choice((-2, -1, 1, 2, 10**6))
    else:
        value[key] = draw.choice([None, -1, 0, 3, "", "stablehlo.add", [], {}, {"dim": "n"}, {"float": "0x1p+0"}, True])


# ---------------------------------------------------------------- judging


def wide(given: Program) -> Program:
    """The program in f64, with its constants as they are: nearly the reals."""

    def type_of(value: Any) -> Any:
        return F64 if isinstance(value, DType) and value == F32 else value

    made: dict[Term, Term] = {}
    roots = expanded(given.roots, keep=lambda _: False)  # the constants of definitions are those of f32
    for term in topological((*roots, *given.inputs)):
        if term.op is INPUT:
            made[term] = input_term(term.attribute("name"), TensorType(F64, term.tensor.shape))
        elif term.op is CONSTANT and term.tensor.dtype == F32:
            made[term] = constant(term.attribute("value").array().astype(np.float64))
        else:
            own = {name: type_of(value) for name, value in term.attributes}
            made[term] = make(term.op, [made[operand] for operand in term.operands], own, term.regions)
    ends = tuple((name, made[root]) for (name, _), root in zip(given.outputs, roots, strict=True))
    return Program(tuple(made[term] for term in given.inputs), ends)


def is_false(forged: Forgery, verdict: Verdict, seed: int) -> bool:
    """Whether the two programs are not what was accepted of them."""
    generator = np.random.default_rng(seed)
    to_before = {term.attribute("name"): term.attribute("name") for term in forged.after.inputs} | dict(forged.names)
    exact = verdict.numerics.word == "exact"
    for scale in (1.0, 3.0):
        feed = {name: np.asarray(generator.normal(size=SHAPE) * scale, np.float32) for name in "xyz"}
        given = {term.attribute("name"): feed[to_before[term.attribute("name")]] for term in forged.after.inputs}
        if exact and any(not _same_bits(*pair) for pair in _values(forged, feed, given, lambda each: each)):
            return True
        large = [{name: array.astype(np.float64) for name, array in each.items()} for each in (feed, given)]
        tolerance = 1e-9 + min(1e3 * verdict.relative, MOST_ROUNDING)
        if any(
            not np.allclose(*pair, rtol=0, atol=tolerance * _largest(pair[0]), equal_nan=True) for pair in _values(forged, *large, wide)
        ):
            return True
    return False


def _values(forged: Forgery, feed: Any, given: Any, read: Callable[[Program], Program]) -> list[tuple[Any, Any]]:
    with np.errstate(all="ignore"):
        one = evaluate_program(read(forged.before), feed, fallback=evaluate_defined)
        other = evaluate_program(read(forged.after), given, fallback=evaluate_defined)
    called = dict(forged.names)
    theirs = {called.get(name, name): value for (name, _), value in zip(forged.after.outputs, other, strict=True)}
    return [(value, theirs[name]) for (name, _), value in zip(forged.before.outputs, one, strict=True)]


def _largest(value: Any) -> float:
    finite = np.abs(value[np.isfinite(value)])
    return float(finite.max(initial=0.0)) or 1.0


def _same_bits(one: Any, other: Any) -> bool:
    return bool(np.array_equal(one, other, equal_nan=True))  # zeros of both signs are equal here


# ---------------------------------------------------------------- the run


def answer(name: str, seed: int) -> dict[str, Any] | None:
    """What became of one forgery of a kind; None where the drawn program has no place for it."""
    try:
        pair = true_pair(seed)
        forged = KINDS[name](pair)
    except (Uncertified, CosetError, ValueError):
        return None  # the format has no form for it
    if forged is None:
        return None
    try:
        verdict = verify(
            forged.certificate, forged.before, forged.after, rules().get, meaning=meaning, fallback=DEFINED, names=forged.names,
            operations=SMALL_BUDGET,
        )  # fmt: skip
    except Rejected as error:
        return {"kind": name, "seed": seed, "answer": "refused", "reason": error.message}
    false = is_false(forged, verdict, seed)
    return {"kind": name, "seed": seed, "answer": "UNSOUND" if false else "true anyway", "numerics": str(verdict.numerics)}


def drawn(count: int, seed: int, kinds: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
    """Rows of `count` forgeries, kinds in turn; the same for the same seed."""
    wanted = list(kinds or KINDS)
    done, turn = 0, 0
    while done < count:
        row = answer(wanted[turn % len(wanted)], seed * 1_000_003 + turn)
        turn += 1
        if row is not None:
            done += 1
            yield row


def true_ones(count: int, seed: int) -> Iterator[bool]:
    """Whether the certificates that forgeries start from are accepted: without that the refusals would say nothing."""
    for place in range(count):
        pair = true_pair(seed * 1_000_003 + place)
        try:
            verify(pair.certificate(), pair.before, pair.after, rules().get, meaning=meaning, fallback=DEFINED)
        except Rejected:
            yield False
        else:
            yield True


def lines_of(table: Mapping[str, Counter[str]]) -> Iterator[str]:
    """The table as text."""
    for name, answers in sorted(table.items()):
        yield f"{name:24s} {sum(answers.values()):6d}  {', '.join(f'{n} {each}' for each, n in sorted(answers.items()))}"


def main() -> None:
    """Draw the forgeries and print what became of them; 1 where one with a false claim was accepted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", default="", help="kinds, separated by commas")
    parser.add_argument("--json", type=Path, help="write the rows that were not refused, and the counts")
    given = parser.parse_args()
    machine = headroom.machine()
    print(
        f"{machine['cpu']}, {machine['cores']} cores; {time.strftime('%Y-%m-%d')}; python -m benchmarks.forgeries {' '.join(sys.argv[1:])}"
    )
    started = time.perf_counter()
    held = list(true_ones(200, given.seed))
    print(f"{sum(held)} of {len(held)} certificates that are true are accepted", flush=True)
    table: dict[str, Counter[str]] = {}
    kept: list[dict[str, Any]] = []
    for row in drawn(given.count, given.seed, [each for each in given.kinds.split(",") if each]):
        table.setdefault(row["kind"], Counter())[row["answer"]] += 1
        if row["answer"] != "refused":
            kept.append(row)
        if row["answer"] == "UNSOUND":
            print(f"UNSOUND: {row}", flush=True)
    total = sum(table.values(), Counter[str]())
    print("\n".join(lines_of(table)))
    said = ", ".join(f"{n} {each}" for each, n in sorted(total.items()))
    print(f"{sum(total.values())} forgeries in {time.perf_counter() - started:.0f} s: {said}")
    print(
        f"largest memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB; budget {SMALL_BUDGET} of {OPERATIONS} operations"
    )
    if given.json:
        counts = {name: dict(answers) for name, answers in table.items()}
        given.json.write_text(json.dumps({"machine": machine, "seed": given.seed, "counts": counts, "accepted": kept}, indent=1) + "\n")
    sys.exit(total["UNSOUND"] > 0)


if __name__ == "__main__":
    main()
