"""Models that no runtime here runs, compared by the evaluator: element types without kernels, ops of domains that nobody here knows.

A node that has no value here is cut out of both programs: its results become inputs of both, and what it reads becomes an output. Where the
same nodes read the same, and everything behind them is the same whatever they give, the programs are the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from coset.backends.onnxruntime import NotLoaded
from coset.comparing.check import CheckReport
from coset.comparing.reference import KNOWN, UNDEFINED, against_reference, values_in_order
from coset.frontends.onnx.functions import functions_of
from coset.frontends.onnx.model import import_model
from coset.ir.builtin import OPAQUE, TOKEN
from coset.ir.errors import CosetError
from coset.ir.evaluate import describe
from coset.ir.program import Program
from coset.ir.term import GET, Term, exact_key, input_term, make, rebuild, topological
from coset.ir.types import TensorType, TokenType, TupleType
from coset.targets.running import Running

EVALUATOR = "the evaluator, since ONNX Runtime does not run the model"
Compare = Callable[..., CheckReport]  # as `Evaluated`


@dataclass(frozen=True)
class Evaluated:
    """The comparison of an ONNX model with its original by the evaluator, under numbers that are given for its dims."""

    original: Program
    dims: Mapping[str, int]
    own: Collection[str] = ()  # ops of the user's, by their names

    def __call__(
        self, model: Any, *, exact: bool, running: Running | None = None, exceptions: AbstractSet[str] = frozenset()
    ) -> CheckReport:
        """The comparison with the model at a path.

        Raises:
            CosetError: the original has no value on drawn inputs, or the nodes that nobody knows are not the same ones.
        """
        assert running is None, "nothing runs it"
        return compared(self.original, import_model(model, own=self.own), self.dims, exact=exact, exceptions=exceptions)


@dataclass
class Loading:
    """The comparison by a runtime (`by_runtime`), and by the evaluator from the first result on that the runtime does not load: it has
    a node of an op of the user's. `loads` says whether all were loaded."""

    by_runtime: Compare
    evaluated: Callable[[], Evaluated]
    loads: bool = True

    def __call__(
        self, model: Any, *, exact: bool, running: Running | None = None, exceptions: AbstractSet[str] = frozenset()
    ) -> CheckReport:
        """As `Evaluated`."""
        if self.loads:
            try:
                return self.by_runtime(model, exact=exact, running=running, exceptions=exceptions)
            except NotLoaded:
                self.loads = False
        return self.evaluated()(model, exact=exact, exceptions=exceptions)


def compared(
    original: Program, other: Program, dims: Mapping[str, int], *, exact: bool, exceptions: AbstractSet[str] = frozenset()
) -> CheckReport:
    """`other` beside `original`, both evaluated, around the nodes that have no value here.

    Raises:
        CosetError: as `Evaluated`.
    """
    one, two = cut(original), cut(other)
    if [term.attribute("name") for term in one.inputs] != [term.attribute("name") for term in two.inputs]:
        raise CosetError("the nodes that nothing here runs are others in the result, so that it cannot be compared", help=UNDEFINED)
    report = against_reference(one, lambda feed: values_in_order(one, two, feed), dims, exact=exact, exceptions=exceptions)
    return replace(report, by=EVALUATOR)


def cut(program: Program) -> Program:
    """The program with inputs in the place of what nodes give that have no value here, and with what they read as further outputs; both are
    called by what the node is and its place among its likes and all others.

    Raises:
        CosetError: such a node has a result without a known rank.
    """
    made: dict[Term, Term] = {}
    joints: list[Term] = []
    read: list[tuple[str, Term]] = []
    seen: Counter[str] = Counter()
    parts: dict[Term, str] = {}  # unknown nodes with several results by name
    functions = {(domain, name) for domain, name, _ in functions_of(program)}
    for term in topological(program.roots):
        operands = [made[operand] for operand in term.operands]
        if isinstance(term.type, TokenType):
            made[term] = make(TOKEN, ())  # that the order is kept is said by the names
            continue
        if term.op is GET and term.operands[0] in parts:
            made[term] = _joint(f"{parts[term.operands[0]]}, result {term.attribute('index')}", term, joints)
            continue
        made[term] = rebuild(term, operands)
        if term.op is not OPAQUE or (domain := term.attribute("domain")) in KNOWN or (domain, term.attribute("name")) in functions:
            continue
        key = f"{describe(term)} {sha256(repr(exact_key(term.attributes)).encode()).hexdigest()[:12]}"
        seen[key] += 1
        name = f"{key} {len(seen)}.{seen[key]}"
        read += [(f"{name}, operand {place}", operand) for place, operand in enumerate(operands) if isinstance(operand.type, TensorType)]
        if isinstance(term.type, TupleType):
            parts[term] = name
        else:
            made[term] = _joint(f"{name}, result", term, joints)
    outputs = tuple((name, made[term]) for name, term in program.outputs)
    return replace(program, inputs=(*program.inputs, *joints), outputs=(*outputs, *read), effects=None)


def _joint(name: str, term: Term, joints: list[Term]) -> Term:
    if not isinstance(term.type, TensorType) or term.type.shape is None:
        raise CosetError(
            f"`{name}` has no value here, and its type is not known: the model cannot be compared",
            help="say the type and shape of the node's results in the model (value_info), or give its kernels (--custom-op-library)",
        )
    joints.append(input_term(name, term.type))
    return joints[-1]
