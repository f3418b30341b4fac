"""Forgeries by hand about rules, definitions, facts, names and loops: each row says what is claimed, and is refused by both checkers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coset.dialects.hub.region_terms import while_term
from coset.dialects.hub.terms import broadcast, dot, reshape, transpose
from coset.ir.program import Program
from coset.ir.term import Term, constant, get, input_term, make
from coset.ir.types import BOOL, F32, I32, TensorType
from coset.prove.certificate import Certificate, Rejected
from coset.prove.certificate_file import packed
from coset.prove.contents import by_content
from coset.prove.kernel import verify
from coset.prove.second import ACCEPTS, REJECTS, answered
from coset.proving.certify import certificate_of
from coset.proving.meanings import DEFINED, meaning
from coset.proving.steps import COMPUTED, CertificateStep
from coset.proving.verify import summary
from coset.rules.library import DEFAULT, load
from tests.prove.forged_certificates import RULES, Forgery, X, Y, claimed, entries, meant, number, numbers, op, program

A = input_term("a", TensorType(F32, (2, 3)))
B = input_term("b", TensorType(F32, (3, 4)))
T = input_term("t", TensorType(F32, (2, 3, 4)))
P = input_term("p", TensorType(BOOL, (2,)))
WHOLE, OTHER = (input_term(name, TensorType(I32, (2,))) for name in "ij")
Q = input_term("q", TensorType(F32, (3, 3)))
V = input_term("v", TensorType(F32, (20,)))


def refused(forged: Forgery, reason: str = "") -> None:
    """Both checkers refuse it."""
    with pytest.raises(Rejected, match=reason or forged.reason):
        forged.check()
    assert forged.second().verdict != ACCEPTS


def splat(value: float, *shape: int) -> Term:
    return broadcast(number(value), shape, ())


# ---------------------------------------------------------------- instances that are none: the rule, its left side, what it is said to say

TURNED = transpose(T, (2, 0, 1))
INSTANCES: dict[str, tuple[str, Term, Term]] = {
    "a sum as a difference": ("commute[stablehlo.add]", op("add", X, Y), op("subtract", X, Y)),
    "a difference turned": ("commute[stablehlo.add]", op("subtract", X, Y), op("subtract", Y, X)),
    "a product as a sum": ("commute[stablehlo.multiply]", op("multiply", X, Y), op("add", Y, X)),
    "the larger as the smaller": ("commute[stablehlo.maximum]", op("maximum", X, Y), op("minimum", Y, X)),
    "one operand twice": ("commute[stablehlo.add]", op("add", X, Y), op("add", Y, Y)),
    "one negation": ("double_negate", op("negate", X), X),
    "three negations": ("double_negate", op("negate", op("negate", op("negate", X))), X),
    "a negation of an absolute": ("double_negate", op("negate", op("abs", X)), X),
    "a permutation of three": ("transpose_transpose", transpose(TURNED, (2, 0, 1)), T),
    "permutations the other way round": ("transpose_transpose", transpose(transpose(T, (1, 2, 0)), (0, 2, 1)), transpose(T, (1, 2, 0))),
    "a turned matrix": ("transpose_identity", transpose(Q, (1, 0)), Q),
    "a reshape that moves": ("reshape_identity", reshape(A, (3, 2)), transpose(A, (1, 0))),
    "a reshape of another shape": ("reshape_identity", reshape(A, (3, 2)), A),
    "a factor of a sum": (
        "factor_of_sum", op("add", op("multiply", splat(3, 2), X), op("multiply", splat(3, 2), Y)),
        op("multiply", splat(6, 2), op("add", X, Y)),
    ),
    "two factors of a sum": (
        "factor_of_sum", op("add", op("multiply", splat(3, 2), X), op("multiply", splat(2, 2), Y)),
        op("multiply", splat(3, 2), op("add", X, Y)),
    ),
    "a quotient of quotients": (
        "divide_quotient", op("divide", op("divide", X, splat(3, 2)), splat(7, 2)), op("divide", X, splat(20, 2)),
    ),
    "a scale that is negative": (
        "scaled_maximum", op("maximum", op("multiply", X, splat(-2, 2)), op("multiply", Y, splat(-2, 2))),
        op("multiply", op("maximum", X, Y), splat(-2, 2)),
    ),
    "two scales": (
        "scaled_maximum", op("maximum", op("multiply", X, splat(2, 2)), op("multiply", Y, splat(3, 2))),
        op("multiply", op("maximum", X, Y), splat(2, 2)),
    ),
    "a reciprocal of 2": ("reciprocal_sqrt", op("divide", splat(2, 2), op("sqrt", X)), op("rsqrt", X)),
    "a root without a reciprocal": ("reciprocal_sqrt", op("divide", splat(1, 2), X), op("rsqrt", X)),
    "a negated minuend": ("add_negated", op("add", op("negate", X), Y), op("subtract", X, Y)),
    "a sum over one axis as over both": (
        "reduce_of_reduce", op("reduce", op("reduce", T, dimensions=(1,), combiner="add"), dimensions=(1,), combiner="add"),
        op("reduce", T, dimensions=(0, 1), combiner="add"),
    ),
    "a largest of sums": (
        "reduce_of_reduce", op("reduce", op("reduce", T, dimensions=(1,), combiner="add"), dimensions=(1,), combiner="maximum"),
        op("reduce", T, dimensions=(1, 2), combiner="maximum"),
    ),
    "a slice by one more": (
        "slice_slice",
        op("slice", op("slice", V, start=(2,), limit=(18,), strides=(2,)), start=(1,), limit=(7,), strides=(3,)),
        op("slice", V, start=(5,), limit=(12,), strides=(6,)),
    ),
    "a slice as a whole": (
        "slice_identity", op("slice", A, start=(0, 0), limit=(2, 2), strides=(1, 1)), A,
    ),
    "a product of matrices turned": (
        "matmul_assoc", dot(A, B, lhs_contract=(1,), rhs_contract=(0,)), dot(transpose(B, (1, 0)), A, lhs_contract=(1,), rhs_contract=(1,)),
    ),
    "a zero that is small": ("add_zero#2", op("add", X, splat(1e-45, 2)), X),
    "a zero of the other sign": ("add_zero#2", op("add", X, splat(-0.0, 2)), Y),
    "a one that is nearly one": ("multiply_one#2", op("multiply", X, splat(float(np.nextafter(np.float32(1), np.float32(2))), 2)), X),
    "a one that is minus one": ("multiply_one#2", op("multiply", X, splat(-1, 2)), X),
    "a relu below 1": ("onnx.Relu.recognise", op("maximum", X, splat(1, 2)), make("onnx.Relu", (X,))),
    "a relu from above": ("onnx.Relu.recognise", op("minimum", X, splat(0, 2)), make("onnx.Relu", (X,))),
    "a relu of another": ("onnx.Relu.recognise", op("maximum", X, splat(0, 2)), make("onnx.Relu", (Y,))),
    "what a relu is not": ("onnx.Relu", make("onnx.Relu", (X,)), op("maximum", X, splat(-0.0, 2))),
    "a selection turned": ("commute[stablehlo.add]", op("select", P, X, Y), op("select", P, Y, X)),
    "a shift of integers": ("commute[stablehlo.add]", op("shift_left", WHOLE, OTHER), op("shift_left", OTHER, WHOLE)),
    "a remainder turned": ("commute[stablehlo.multiply]", op("remainder", WHOLE, OTHER), op("remainder", OTHER, WHOLE)),
    "a power turned": ("commute[stablehlo.multiply]", op("power", X, Y), op("power", Y, X)),
    "a quotient turned": ("commute[stablehlo.multiply]", op("divide", X, Y), op("divide", Y, X)),
}  # fmt: skip


@pytest.mark.parametrize("what", INSTANCES)
def test_what_is_no_instance_is_refused(what: str) -> None:
    name, left, right = INSTANCES[what]
    if name not in RULES:
        name = next(each for each in RULES if each.startswith(name))
    refused(Forgery(program(left), program(right), [claimed(name, left, right)]))


# ---------------------------------------------------------------- definitions: two ops, or one with other attributes


def onnx(name: str, *operands: Term, **attributes: Any) -> Term:
    return make(f"onnx.{name}", operands, attributes)


def hard(alpha: float, beta: float) -> Term:
    return onnx("HardSigmoid", X, alpha=alpha, beta=beta)


MEANINGS: dict[str, tuple[Callable[[], Term], Callable[[], Term]]] = {
    "softmax over another axis": (lambda: onnx("Softmax", A, axis=0), lambda: onnx("Softmax", A, axis=1)),
    "a logarithm of a softmax": (lambda: onnx("Softmax", A, axis=1), lambda: onnx("LogSoftmax", A, axis=1)),
    "gelu by tanh": (lambda: onnx("Gelu", X, approximate="none"), lambda: onnx("Gelu", X, approximate="tanh")),
    "elu of another slope": (lambda: onnx("Elu", X, alpha=1.0), lambda: onnx("Elu", X, alpha=0.5)),
    "leaky relu of another slope": (lambda: onnx("LeakyRelu", X, alpha=0.01), lambda: onnx("LeakyRelu", X, alpha=0.02)),
    "leaky relu as relu": (lambda: onnx("LeakyRelu", X, alpha=0.01), lambda: onnx("Relu", X)),
    "hard sigmoid of another slope": (lambda: hard(0.2, 0.5), lambda: hard(0.1667, 0.5)),
    "hard sigmoid of another offset": (lambda: hard(0.2, 0.5), lambda: hard(0.2, 0.4)),
    "selu of another gamma": (lambda: onnx("Selu", X, alpha=1.67, gamma=1.05), lambda: onnx("Selu", X, alpha=1.67, gamma=1.06)),
    "celu as elu": (lambda: onnx("Celu", X, alpha=2.0), lambda: onnx("Elu", X, alpha=2.0)),
    "a threshold": (lambda: onnx("ThresholdedRelu", X, alpha=1.0), lambda: onnx("ThresholdedRelu", X, alpha=0.5)),
    "softsign as tanh": (lambda: onnx("Softsign", X), lambda: op("tanh", X)),
    "softplus as mish": (lambda: onnx("Softplus", X), lambda: onnx("Mish", X)),
    "hard swish as a hard sigmoid": (lambda: onnx("HardSwish", X), lambda: hard(1 / 6, 0.5)),
    "relu as an absolute": (lambda: onnx("Relu", X), lambda: op("abs", X)),
    "a softmax as an exponential": (lambda: onnx("Softmax", A, axis=1), lambda: op("exponential", A)),
    "a sigmoid as tanh": (lambda: op("logistic", X), lambda: op("tanh", X)),
    "an exponential without its shift": (lambda: op("exponential_minus_one", X), lambda: op("exponential", X)),
}  # fmt: skip


@pytest.mark.parametrize("what", MEANINGS)
def test_a_definition_makes_nothing_of_another(what: str) -> None:
    """Both mean what they mean, and the steps that say so join neither with the other."""
    one, other = (each() for each in MEANINGS[what])
    steps = [meant(term) for term in (one, other) if term.op.dialect == "onnx"]
    refused(Forgery(program(one), program(other), steps), "do not join")


@pytest.mark.parametrize("what", MEANINGS)
def test_a_meaning_is_the_checker_s_and_not_the_certificate_s(what: str) -> None:
    """A `meaning` line names a term alone: what the forger takes it for is not in the file."""
    one, other = (each() for each in MEANINGS[what])
    if one.op.dialect == "onnx":
        refused(Forgery(program(one), program(other), [meant(one, other)]))
    else:
        refused(Forgery(program(one), program(other), [meant(one, other)]), "no definition")


# ---------------------------------------------------------------- facts that do not hold

MAGNITUDE = next(rule.name for rule in RULES.values() if str(rule.left) == "stablehlo.abs(x)" and str(rule.right) == "x")
SIGNED: dict[str, Callable[[], Term]] = {
    "a sine": lambda: op("sine", X),
    "a tanh": lambda: op("tanh", X),
    "a logarithm": lambda: op("log", X),
    "a cubic root": lambda: op("cbrt", X),
    "a difference of exponentials": lambda: op("subtract", op("exponential", X), op("exponential", Y)),
    "a product of two": lambda: op("multiply", X, Y),
    "a product with an absolute": lambda: op("multiply", op("abs", X), Y),
    "a sum with an absolute": lambda: op("add", op("abs", X), Y),
    "a smaller one of an absolute": lambda: op("minimum", op("abs", X), Y),
    "a choice of an absolute": lambda: op("select", P, op("abs", X), Y),
    "a quotient by an absolute": lambda: op("divide", op("abs", X), Y),
    "a negated exponential": lambda: op("negate", op("exponential", X)),
    "a larger one than -1": lambda: op("maximum", X, numbers(-1, -1)),
    "a constant with -1": lambda: numbers(1, -1),
    "a sum of rows": lambda: op("reduce", A, dimensions=(1,), combiner="add"),
    "a largest of rows": lambda: op("reduce", A, dimensions=(1,), combiner="maximum"),
    "a product of matrices": lambda: dot(A, transpose(A, (1, 0)), lhs_contract=(1,), rhs_contract=(0,)),
    "a floor": lambda: op("floor", X),
    "a turned one": lambda: op("reverse", X, dimensions=(0,)),
    "a joined one": lambda: op("concatenate", op("abs", X), Y, dimension=0),
    "an item of a pair": lambda: get(make("builtin.tuple", (X, op("abs", Y))), 0),
}  # fmt: skip


@pytest.mark.parametrize("what", SIGNED)
def test_what_may_be_negative_is_not_its_magnitude(what: str) -> None:
    term = SIGNED[what]()
    refused(Forgery(program(op("abs", term)), program(term), [claimed(MAGNITUDE, op("abs", term), term)]), "nothing before shows")


# ---------------------------------------------------------------- names

DIFFERENCE, TURNED_DIFFERENCE = op("subtract", X, Y), op("subtract", Y, X)
HEADS: dict[str, dict[str, Any]] = {
    "names of both": {"names": {"inputs": {"x": "y", "y": "x"}, "outputs": {}}},
    "names of inputs": {"inputs": {"x": "y", "y": "x"}},
    "a mapping": {"map": {"x": "y", "y": "x"}},
    "a mapping as pairs": {"mapping": [["x", "y"], ["y", "x"]]},
    "outputs by number": {"outputs": [0]},
    "roots": {"roots": [[0, 0]]},
    "no names": {"names": {}},
    "nothing": {"names": None},
    "an empty key": {"": {}},
    "a promise": {"numerics": "exact"},
    "an assurance": {"assurance": "proved"},
}


@pytest.mark.parametrize("what", HEADS)
def test_a_head_gives_no_names_and_no_promises(what: str) -> None:
    refused(Forgery(program(DIFFERENCE), program(TURNED_DIFFERENCE), head=HEADS[what]), "the head")
    refused(Forgery(program(DIFFERENCE), program(DIFFERENCE), head=HEADS[what]), "the head")


def with_outputs(one: Program, *outputs: tuple[str, Term]) -> Program:
    return Program(one.inputs, outputs)


def interfaces() -> dict[str, Forgery]:
    """Programs whose inputs or outputs are others, under a mapping of the verifier or none."""
    both = program(DIFFERENCE, op("add", X, Y))
    first, second = (term for _, term in both.outputs)
    x3, xi = input_term("x", TensorType(F32, (3,))), input_term("x", TensorType(I32, (2,)))
    return {
        "outputs exchanged": Forgery(both, with_outputs(both, ("y1", first), ("y0", second))),
        "an output under another name": Forgery(both, with_outputs(both, ("y0", first), ("z", second))),
        "an output more": Forgery(both, with_outputs(both, *both.outputs, ("z", first))),
        "an output less": Forgery(both, with_outputs(both, both.outputs[0])),
        "an output of the other program": Forgery(both, with_outputs(both, ("y0", second), ("y1", second))),
        "an input of another size": Forgery(program(op("negate", X)), program(op("negate", x3))),
        "an input of another type": Forgery(program(op("negate", X)), program(op("negate", xi))),
        "an input that is another": Forgery(program(op("negate", X)), program(op("negate", Y))),
        "an input as a constant": Forgery(program(op("negate", X)), program(op("negate", numbers(1, 2)))),
        "a mapping of one input": Forgery(program(DIFFERENCE), program(TURNED_DIFFERENCE), names={"x": "y"}),
        "a mapping to nothing": Forgery(program(op("negate", X)), program(op("negate", Y)), names={"y": "z"}),
        "a mapping of what is not there": Forgery(program(DIFFERENCE), program(DIFFERENCE), names={"q": "x"}),
        "a mapping of outputs to one": Forgery(both, both, names={"y0": "y1"}),
        "an exchange of outputs": Forgery(both, both, names={"y0": "y1", "y1": "y0"}),
    }


@pytest.mark.parametrize("what", interfaces())
def test_inputs_and_outputs_are_the_files_own(what: str) -> None:
    refused(interfaces()[what])


# ---------------------------------------------------------------- what takes for ever, in further forms


def counted(limit: int, body: Callable[[Term], Term]) -> Term:
    compare = {"direction": "LT"}
    return while_term((constant(np.int32(0)),), lambda i: make("stablehlo.compare", (i, constant(np.int32(limit))), compare), body)


def doubled(times: int) -> Term:
    term = numbers(*range(16))
    for _ in range(times):
        term = op("concatenate", term, term, dimension=0)
    return term


def grown(times: int) -> Term:
    term = splat(1.5, 4)
    for _ in range(times):
        size = term.tensor.dims[0]
        spread = op("broadcast_in_dim", term, shape=(4, size), broadcast_dimensions=(1,))
        term = op("reshape", spread, shape=(4 * size,))
    return term


IOTA = make("stablehlo.iota", (), {"dtype": F32, "shape": (1 << 22,), "dimension": 0})
BOMBS: dict[str, Callable[[], Term]] = {
    "a list doubled": lambda: doubled(40),
    "a list four times as long": lambda: grown(20),
    "a pad of terabytes": lambda: op("pad", numbers(1, 2), number(0), low=(1 << 40,), high=(0,), interior=(0,)),
    "gaps of terabytes": lambda: op("pad", numbers(1, 2), number(0), low=(0,), high=(0,), interior=(1 << 40,)),
    "a loop over a loop": lambda: counted(1 << 20, lambda i: op("add", counted(1 << 20, lambda j: op("add", j, constant(np.int32(1)))), i)),
    "a loop that goes back": lambda: counted(5, lambda i: op("subtract", i, constant(np.int32(1)))),
    "many windows": lambda: dot(reshape(IOTA, (1 << 11, 1 << 11)), reshape(IOTA, (1 << 11, 1 << 11)), lhs_contract=(1,), rhs_contract=(0,)),
    "integers multiplied": lambda: dot(
        *(reshape(make("stablehlo.iota", (), {"dtype": I32, "shape": (1 << 20,), "dimension": 0}), (1 << 10, 1 << 10)) for _ in range(2)),
        lhs_contract=(1,), rhs_contract=(0,),
    ),
}  # fmt: skip


WITHIN = ("many windows", "integers multiplied")  # the whole budget of one certificate, and no more is what the second checker knows


@pytest.mark.parametrize("what", BOMBS)
def test_what_takes_for_ever_is_refused_by_the_operations(what: str) -> None:
    term = BOMBS[what]()
    used = program(op("negate", X))
    made = certificate_of(used, used, [CertificateStep(COMPUTED, (term,), (term,))])
    with pytest.raises(Rejected, match=r"more than"):
        verify(made, used, used, RULES.get, meaning=meaning, fallback=DEFINED, operations=1 << 27)
    if what not in WITHIN:
        assert Forgery(used, used, [CertificateStep(COMPUTED, (term,), (term,))]).second().verdict != ACCEPTS


# ---------------------------------------------------------------- rules of the user's own

OWN = """# Source: nowhere
use stablehlo as hlo

rule mine : planted
  "Not so."
  for {names}: F[S..]
  {text}
  numerics exact
"""
SAID: dict[str, tuple[str, Term, Term]] = {
    "a sign that is lost": ("-x => x", op("negate", X), X),
    "a magnitude": ("hlo.abs(x) => x", op("abs", X), X),
    "a square": ("x * x => x", op("multiply", X, X), X),
    "a sum as its first operand": ("x + y => x", op("add", X, Y), X),
    "a difference turned": ("x - y => y - x", op("subtract", X, Y), op("subtract", Y, X)),
    "the larger as the smaller": ("hlo.maximum(x, y) => hlo.minimum(x, y)", op("maximum", X, Y), op("minimum", X, Y)),
}


@pytest.mark.parametrize("what", SAID)
def test_a_rule_of_the_user_s_own_is_named_and_not_shown(what: str, tmp_path: Path) -> None:
    """Without the file both checkers refuse it; with it, the verdict says whose it is and that nothing is shown of it, whatever the head
    says."""
    text, left, right = SAID[what]
    path = tmp_path / "mine.rules"
    path.write_text(OWN.format(text=text, names="x, y" if "y" in text else "x"))
    known = {rule.name: rule for rule in load([*DEFAULT, path]).rules}
    one, other = (Program((X, Y), (("y0", root),)) for root in (left, right))
    made = certificate_of(by_content(one), by_content(other), [CertificateStep(known["mine"], (left,), (right,))])
    listed = [{**made.head["rules"][0], "assurance": "proved", "numerics": "exact"}]
    claim = Certificate({**made.head, "rules": listed}, made.lines)
    with pytest.raises(Rejected, match="there is no rule `mine`"):
        verify(claim, one, other, RULES.get, meaning=meaning, fallback=DEFINED)
    assert answered(packed(claim), one, other, entries()).verdict != ACCEPTS
    renamed = Certificate({**made.head, "rules": [{**listed[0], "name": "double_negate"}]}, made.lines)
    with pytest.raises(Rejected, match="another one"):
        verify(renamed, one, other, known.get, meaning=meaning, fallback=DEFINED)
    assert answered(packed(renamed), one, other, entries()).verdict == REJECTS
    said = summary(verify(claim, one, other, known.get, meaning=meaning, fallback=DEFINED), known)
    assert said["own"] == {"mine": "not shown"} and said["assurance"] == "assumed"
