"""What hand-written forgeries of certificates are made of: two programs, steps or lines that claim them equal, and both checkers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

import coset.dialects
from coset.ir.program import Program
from coset.ir.term import Term, constant, input_term, make, topological
from coset.ir.types import F32, TensorType
from coset.prove.certificate import Certificate, Line
from coset.prove.certificate_file import packed
from coset.prove.contents import by_content
from coset.prove.kernel import Verdict, verify
from coset.prove.second import Answer, answered, read
from coset.proving.certify import certificate_of
from coset.proving.meanings import DEFINED, meaning, meaning_of
from coset.proving.steps import COMPUTED, MEANING, ROUNDED, CertificateStep, hashed_value
from coset.rules.applied import matched, right_sides
from coset.rules.library import load
from coset.rules.rule import decided
from coset.second import LIBRARY

assert coset.dialects  # ops are registered


@cache
def entries() -> dict[str, list[Any]]:
    """The rule files as the second checker reads them."""
    return read(path.read_text() for path in LIBRARY)


RULES = {rule.name: rule for rule in load().rules}
X, Y = (input_term(name, TensorType(F32, (2,))) for name in "xy")
S = input_term("s", TensorType(F32, ()))


def numbers(*values: float, dtype: Any = np.float32) -> Term:
    return constant(np.asarray(values, dtype))


def number(value: float, dtype: Any = np.float32) -> Term:
    return constant(np.asarray(value, dtype))


def op(name: str, *operands: Term, **attributes: Any) -> Term:
    return make(f"stablehlo.{name}", operands, attributes)


def program(*roots: Term) -> Program:
    inputs = tuple(dict.fromkeys(term for term in topological(roots) if term.op.name == "builtin.input"))
    return by_content(Program(inputs, tuple((f"y{place}", root) for place, root in enumerate(roots))))


def said(name: str, *roots: Term) -> CertificateStep:
    """An instance of a rule, as it is."""
    found = matched(RULES[name], roots)
    assert found is not None, f"{name} does not match"
    decision = decided(RULES[name], *found)
    assert decision is not None, f"{name} does not hold"
    return CertificateStep(RULES[name], tuple(roots), right_sides(RULES[name], decision, found[1]))


def claimed(name: str, left: Term, right: Term) -> CertificateStep:
    """What a rule is said to say."""
    return CertificateStep(RULES[name], (left,), (right,))


def computed(term: Term, value: Term | None = None) -> CertificateStep:
    return CertificateStep(COMPUTED, (term,), (value or hashed_value(term),))


def rounded(term: Term, value: Term) -> CertificateStep:
    return CertificateStep(ROUNDED, (term,), (value,))


def meant(term: Term, other: Term | None = None) -> CertificateStep:
    found = other or meaning_of(term)
    assert found is not None
    return CertificateStep(MEANING, (term,), (found,))


@dataclass(frozen=True)
class Forgery:
    """Two programs, the steps that are to join them, or lines of the file, and a word of the refusal. `head`: what else the head says."""

    before: Program
    after: Program
    steps: Sequence[CertificateStep] = ()
    reason: str = ""
    lines: Sequence[Line] = ()
    head: dict[str, Any] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)

    def forged(self) -> Certificate:
        """The certificate."""
        made = certificate_of(self.before, self.after, self.steps)
        return Certificate({**made.head, **self.head}, [*made.lines, *self.lines])

    def check(self) -> Verdict:
        """What the checker says."""
        return verify(self.forged(), self.before, self.after, RULES.get, meaning=meaning, fallback=DEFINED, names=self.names)

    def second(self) -> Answer:
        """What the second checker says."""
        return answered(packed(self.forged()), self.before, self.after, entries(), names=self.names)


FORGERIES: dict[str, Callable[[], Forgery]] = {}


def forgery(make: Callable[[], Forgery]) -> Callable[[], Forgery]:
    FORGERIES[make.__name__.strip("_")] = make
    return make


def by_one_step(left: Term, right: Term, steps: Sequence[CertificateStep], reason: str) -> Forgery:
    """x + left said to be x + right."""
    x = input_term("x", left.type)
    return Forgery(program(op("add", x, left)), program(op("add", x, right)), steps, reason)
