"""`Rule`: one direction and one variant of an equation as a search uses it; `decide` says whether and with which attributes it fires."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

from coset.ir.place import Place
from coset.ir.term import AttributeItems, Term, exact_key
from coset.ir.types import DType, TensorType, TupleType, Type
from coset.rules.algebra import Expression, Ref, Scope
from coset.rules.applied import arguments
from coset.rules.arithmetic import equal
from coset.rules.equation import NUMERICS_ORDER, Compiled, Decision, Equation, Numerics, RuleTypeError, right_side
from coset.rules.expression_text import text
from coset.rules.pattern import Application, Pattern, Variable, applications
from coset.rules.scalar import Undefined
from coset.rules.solving import in_classes, match, solve
from coset.rules.watched import questioned

if TYPE_CHECKING:  # a search needs no syntax
    from coset.rules import syntax

RECOGNISE = ".recognise"  # how the family of a definition that is read from right to left ends


def permitted(numerics: Numerics, level: str) -> bool:
    """True when a search that allows promises down to `level` may use a rule of this promise: `exact` is every bit, those of zeros too."""
    if level == "exact" and numerics.exceptions:
        return False
    return NUMERICS_ORDER.index(numerics.word) <= NUMERICS_ORDER.index(level)


@dataclass(frozen=True, eq=False, kw_only=True)
class Rule(Equation):
    """`left => right` for every instance that `decide` accepts. Numbers of the search (`phase`, `limit`) ride along.

    `limit` is the number of iterations of the phase in which the rule is matched, None without one. `definition` is the
    op whose meaning the rule states (left to right it expands, the family `*.recognise` reads it from right to left).
    """

    place: Place
    document: str
    typed: tuple[int, ...]  # the applications of the left side whose types `decide` reads
    definition: str | None = None
    phase: str = "algebra"
    limit: int | None = None
    tags: tuple[str, ...] = ()
    mirrors: tuple[Rule, ...] = field(default=(), repr=False)  # of a recognising rule: those whose right side is its left side
    hints: Mapping[str, tuple[Any, ...]] = field(default_factory=dict, repr=False)  # of a definition: values of its attributes worth trying
    tests: tuple[syntax.Ground, ...] = field(default=(), repr=False)  # of a rule; those of a definition are with its op
    natives: tuple[str, ...] = ()  # the native functions that it calls: no proof looks into them
    targets: tuple[str, ...] = ()  # of a `kernel`: those that have it
    grades: tuple[tuple[str, str], ...] = ()  # by class of floats: where its range is not `always` admitted (`prove.grades`)

    def __str__(self) -> str:
        return f"{self.name}: {self.left} => {self.right}"

    @property
    def recognises(self) -> bool:
        """Whether it reads a definition from right to left."""
        return self.family.endswith(RECOGNISE)

    @property
    def keeps_range(self) -> bool:
        """Whether its promise binds what it stores to the range of what was stored before: results that are the same bits need no such
        promise, `real` and `lossy` do not give it."""
        return self.numerics.word in ("reassociates", "approx")

    @property
    def own_name(self) -> str:
        """Its name without the phase that is behind it where a rule stands in several."""
        return self.name.removesuffix(f" in {self.phase}")

    @property
    def dialect(self) -> str:
        """That of the op that it defines, "" where it defines none."""
        return (self.definition or "").partition(".")[0]

    @cached_property
    def reads(self) -> frozenset[str]:
        """The ops of the left side, each with how many operands it has there."""
        return frozenset().union(*(ops_in(left) for left, _ in self.pairs))

    @cached_property
    def edges(self) -> frozenset[tuple[str, int, str]]:
        """Which op of the left side stands directly above which, and as which operand of it; spelled as in `reads`."""
        return frozenset().union(*(edges_in(left) for left, _ in self.pairs))

    @cached_property
    def makes(self) -> frozenset[str]:
        """The ops of the right side, in the same way."""
        return frozenset().union(*(ops_in(right) for _, right in self.pairs))

    def changed(self, **fields: Any) -> Rule:
        """The rule with other values of fields, the sides aside: `dataclasses.replace` would read sides that are kept for later."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__, **fields)
        return copy

    def decide(
        self, attributes: Sequence[AttributeItems], left_types: Sequence[Type | None], variable_types: Sequence[Type]
    ) -> Decision | None:
        """Whether the rule fires where its left side was found, and the attributes and types of its right side.

        A pure function. `attributes` and `left_types` are indexed by application of the left side, `variable_types` follows
        `variables`. Of the types on the left those that are `typed` are read. `left_types[0]` may be None: then the right side's type
        is not compared.

        Raises:
            RuleTypeError: the sides have different types; no rule that was checked does that.
        """
        scope = self.scope(attributes, left_types, variable_types)
        if scope is None:
            return None
        try:
            decided = right_side(self, scope)
            if self.compiled.result:
                self._check_result(decided.types[0] if isinstance(self.right, Application) else scope.variables[self.right.name], scope)
        except Undefined:
            return None
        if isinstance(self.right, Application) and left_types and left_types[0] is not None:
            return decided if self._same_type(left_types[0], decided.types[0]) else None
        if isinstance(self.right, Variable) and left_types and left_types[0] is not None:
            return decided if self._same_type(left_types[0], scope.variables[self.right.name]) else None
        return decided

    def scope(
        self, attributes: Sequence[AttributeItems], left_types: Sequence[Type | None], variable_types: Sequence[Type]
    ) -> Scope | None:
        """The values of the rule's names where its left side was found; None where its types, attributes or conditions do not fit."""
        scope = Scope({}, dict(zip(self.variables, variable_types, strict=True)), left_types, promise=self.numerics.word)
        return scope if self._bind(attributes, variable_types, scope) else None

    def _bind(self, attributes: Sequence[AttributeItems], variable_types: Sequence[Type], scope: Scope) -> bool:
        """Solve the equations between what is declared and what is there; the ones that are not ready wait."""
        compiled = self.compiled
        equations: list[tuple[Expression, Any]] = []
        for pattern, actual in zip(compiled.types, variable_types, strict=True):
            if not isinstance(actual, TensorType) or actual.shape is None:
                return False
            if isinstance(pattern.dtype, Ref):  # most refusals are of element types: those are seen before anything is solved
                if scope.values.setdefault(pattern.dtype.name, actual.dtype) != actual.dtype:
                    return False
            else:
                equations.append((pattern.dtype, actual.dtype))
            equations.append((pattern.dims, actual.shape))
        if not in_classes(scope, compiled.kinds):
            return False
        for expected, given in zip(compiled.left, attributes, strict=True):
            named = dict(given)
            for name, expression in expected.items:
                if name not in named:
                    return False
                equations.append((expression, named.pop(name)))
            if expected.rest is not None:
                rest = tuple(sorted(named.items()))
                if any(isinstance(value, DType) and value.along is not None for value in named.values()):
                    return False  # scales along a dim: the op computes something else at each place, and the rule does not say where it is
                known = scope.values.setdefault(expected.rest, rest)
                if known is not rest and exact_key(known) != exact_key(rest):
                    return False
        try:
            return solve(equations, compiled.conditions, scope, compiled.kinds, self.name, self.place)
        except RuleTypeError:
            if self.definition is None or self.family == self.definition:
                raise
            return False  # of a definition only the reading from left to right is written to determine its names

    def proposed(
        self, attributes: Sequence[AttributeItems], left_types: Sequence[Type | None], variable_types: Sequence[Type]
    ) -> Mapping[str, Any] | None:
        scope = self.scope(attributes, left_types, variable_types)
        return None if scope is None else scope.values

    def _check_result(self, root: Type, scope: Scope) -> None:
        actual = root.items if isinstance(root, TupleType) else (root,)
        fits = len(actual) == len(self.compiled.result) and all(
            isinstance(type, TensorType) and match(declared.dtype, type.dtype, scope) and match(declared.dims, type.shape, scope)
            for declared, type in zip(self.compiled.result, actual, strict=True)
        )
        if not fits:
            declared = ", ".join(map(text, self.compiled.result))
            raise RuleTypeError(f"`{self.family}` declares {declared} but its meaning is {root}", place=self.place)

    def _same_type(self, left: Type, right: Type) -> bool:
        if left == right:
            return True
        if isinstance(left, TupleType) and isinstance(right, TupleType) and len(left.items) == len(right.items):
            return all(self._same_type(a, b) for a, b in zip(left.items, right.items, strict=True))
        if isinstance(left, TensorType) and isinstance(right, TensorType) and left.dtype.kind == right.dtype.kind == "quantized":
            return False  # scales along a dim follow it, but not the dtype that an attribute names: the rule does not fire
        if isinstance(left, TensorType) and isinstance(right, TensorType) and left.dtype == right.dtype:
            if left.shape is None or right.shape is None:
                return False
            if questioned() and len(left.shape) == len(right.shape):
                return equal(left.shape, right.shape)
            undecided = len(left.shape) == len(right.shape) and all(
                a == b or not isinstance(a, int) or not isinstance(b, int) for a, b in zip(left.shape, right.shape, strict=True)
            )
            if undecided and any(not isinstance(a, int) for a in (*left.shape, *right.shape)):
                return False  # canonical forms too weak to see it: the rule does not fire
        raise RuleTypeError(
            f"the left side of `{self.family}` is {left} but the right side is {right}",
            place=self.place,
            help="both sides of a rule have one type: change the shape, the axes or the element type of one of them",
        )


def with_parts(compiled: Compiled, **parts: Any) -> Compiled:
    """The same with other values of some parts, read whole where it is kept for later."""
    return Compiled(**({each.name: getattr(compiled, each.name) for each in fields(Compiled)} | parts))


def ops_in(pattern: Pattern) -> frozenset[str]:
    """The ops of a side, each with how many operands it has."""
    return frozenset(map(_spelled, applications(pattern)))


def edges_in(pattern: Pattern) -> frozenset[tuple[str, int, str]]:
    """The ops of a side that stand above others: the op, the place of the operand, the op of the operand."""
    return frozenset(
        (_spelled(node), place, _spelled(operand))
        for node in applications(pattern)
        for place, operand in enumerate(node.operands)
        if isinstance(operand, Application)
    )


def _spelled(node: Application) -> str:
    return f"{node.op.name}/{len(node.operands)}"


def decided(rule: Rule, left: Mapping[int, Term], given: Mapping[str, Term]) -> Decision | None:
    """What the rule decides where its left side, by index of application, is `left`."""
    found = arguments(rule, left, given)
    return None if found is None else rule.decide(*found)
