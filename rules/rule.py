"""`Rule`: one direction and one variant of an equation, compiled; `decide` says whether and with which attributes it fires."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

from coset.ir.errors import CosetError, Place
from coset.ir.term import AttributeItems, Term
from coset.ir.types import DType, QuantizedType, TensorType, TupleType, Type
from coset.rules import payloads
from coset.rules.algebra import Call, Expression, Function, Listing, Ref, Scope, Unbound, evaluate, match
from coset.rules.arithmetic import equal, questioned
from coset.rules.pattern import Application, Pattern, Variable, applications
from coset.rules.scalar import Undefined

if TYPE_CHECKING:  # the checker of certificates needs no syntax
    from coset.rules import syntax

NUMERICS_ORDER = ("exact", "reassociates", "real", "approx", "lossy")  # from the strongest promise to the weakest
RECOGNISE = ".recognise"  # how the family of a definition that is read from right to left ends
# what a promise may except: of `exact` the sign of a zero; of `reassociates` that a NaN and an infinity are exchanged, that one which a
# constant mask closes vanishes, that an inner value is kept wider than the program stores it
EXCEPTIONS = ("signed_zero", "nonfinite", "masked", "wider")


class RuleTypeError(CosetError):
    """A rule whose two sides have different types: the rule is wrong, and the message names it."""


@dataclass(frozen=True)
class Numerics:
    """What a rule promises about numbers: a word of `NUMERICS_ORDER`, what it excepts, and for `approx` the bound."""

    word: str
    exceptions: frozenset[str] = frozenset()
    bound: str = ""

    def permitted(self, level: str) -> bool:
        """True when a search that allows promises down to `level` may use the rule: `exact` is every bit, the signs of zeros among them."""
        if level == "exact" and self.exceptions:
            return False
        return NUMERICS_ORDER.index(self.word) <= NUMERICS_ORDER.index(level)

    def __str__(self) -> str:
        exceptions = [name for name in EXCEPTIONS if name in self.exceptions]
        return self.word + (f" {self.bound}" if self.bound else "") + (f" except {', '.join(exceptions)}" if exceptions else "")


@dataclass(frozen=True)
class Decision:
    """Attributes and types of the right side's applications, by index."""

    attributes: tuple[AttributeItems, ...]
    types: tuple[Type, ...]


@dataclass(frozen=True)
class Kind:
    """What a name of the index algebra ranges over: dim, pack, dtype, rest, or an attribute kind with its arguments."""

    word: str
    arguments: tuple[Expression, ...] = ()
    classes: frozenset[DType] = frozenset()


@dataclass(frozen=True)
class TypePattern:
    """The declared type of a term variable."""

    dtype: Expression
    dims: Listing

    def __str__(self) -> str:
        return f"{self.dtype}{self.dims}"


@dataclass(frozen=True)
class Attributes:
    """The attributes of one application: an expression for each name, and the name that stands for the remaining ones."""

    items: tuple[tuple[str, Expression], ...]
    rest: str | None = None

    def without(self, names: Sequence[str]) -> Attributes:
        """The same less the items called so."""
        return Attributes(tuple(item for item in self.items if item[0] not in names), self.rest) if names else self


@dataclass(frozen=True)
class Compiled:
    """What `decide` reads. Types are in the order of `variables`; attributes and places by index of application."""

    types: tuple[TypePattern, ...]
    left: tuple[Attributes, ...]
    right: tuple[Attributes, ...]
    conditions: tuple[Expression, ...]
    kinds: Mapping[str, Kind]
    left_places: tuple[Place, ...]
    right_places: tuple[Place, ...]
    guards: tuple[tuple[Expression, ...], ...]  # what must hold before an application of the right side is typed
    order: tuple[int, ...]  # the applications of the right side, each after those whose types it reads
    left_order: tuple[int, ...]  # the same of the left side: the order in which an instance is built
    result: tuple[TypePattern, ...]  # the declared results of a definition

    def changed(self, **parts: Any) -> Compiled:
        """The same with other values of some parts, read whole where it is kept for later."""
        return Compiled(**({each.name: getattr(self, each.name) for each in fields(Compiled)} | parts))


@dataclass(frozen=True, eq=False)
class Rule:
    """`left => right` for every instance that `decide` accepts. Numbers of the search (`phase`, `limit`) ride along.

    `limit` is the number of iterations of the phase in which the rule is matched, None without one. `definition` is the
    op whose meaning the rule states (left to right it expands, the family `*.recognise` reads it from right to left).
    """

    name: str
    family: str
    left: Application
    right: Pattern
    variables: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    numerics: Numerics
    place: Place
    document: str
    compiled: Compiled = field(repr=False)
    typed: tuple[int, ...]  # the applications of the left side whose types `decide` reads
    definition: str | None = None
    assurance: str = "assumed"
    phase: str = "algebra"
    limit: int | None = None
    tags: tuple[str, ...] = ()
    mirrors: tuple[Rule, ...] = field(default=(), repr=False)  # of a recognising rule: those whose right side is its left side
    hints: Mapping[str, tuple[Any, ...]] = field(default_factory=dict, repr=False)  # of a definition: values of its attributes worth trying
    text: str = field(default="", repr=False)  # the entry in canonical form: what the lock file hashes
    tests: tuple[syntax.Ground, ...] = field(default=(), repr=False)  # of a rule; those of a definition are with its op
    natives: tuple[str, ...] = ()  # the native functions that it calls: no proof looks into them
    targets: tuple[str, ...] = ()  # of a `kernel`: those that have it
    grades: tuple[tuple[str, str], ...] = ()  # by class of floats: where its range is not `always` admitted (`prove.grades`)
    roots: int = 1  # where there are several, both sides are tuples of so many terms, which stand for themselves

    def __str__(self) -> str:
        return f"{self.name}: {self.left} => {self.right}"

    @property
    def pairs(self) -> tuple[tuple[Application, Pattern], ...]:
        """Each root of the left side with what equals it."""
        if self.roots == 1:
            return ((self.left, self.right),)
        assert isinstance(self.right, Application)
        found = zip(self.left.operands, self.right.operands, strict=True)
        return tuple((left, right) for left, right in found if isinstance(left, Application))

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
            decided = self._right_side(scope)
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
        if not _in_classes(scope, compiled.kinds):
            return False
        for expected, given in zip(compiled.left, attributes, strict=True):
            named = dict(given)
            for name, expression in expected.items:
                if name not in named:
                    return False
                equations.append((expression, named.pop(name)))
            if expected.rest is not None:
                rest = tuple(sorted(named.items()))
                if any(isinstance(value, QuantizedType) and value.axis is not None for value in named.values()):
                    return False  # scales along a dim: the op computes something else at each place, and the rule does not say where it is
                if scope.values.setdefault(expected.rest, rest) != rest:
                    return False
        try:
            return solve(equations, compiled.conditions, scope, compiled.kinds, self.name, self.place)
        except RuleTypeError:
            if self.definition is None or self.family == self.definition:
                raise
            return False  # of a definition only the reading from left to right is written to determine its names

    @cached_property
    def _made(self) -> tuple[Application, ...]:
        return tuple(applications(self.right))

    def _right_side(self, scope: Scope) -> Decision:
        nodes = self._made
        types: list[Any] = [None] * len(nodes)
        items: list[Any] = [()] * len(nodes)
        scope.right = types
        for node in (nodes[index] for index in self.compiled.order):
            if not all(evaluate(guard, scope) for guard in self.compiled.guards[node.index]):
                raise Undefined
            written = self.compiled.right[node.index]
            given: dict[str, Any] = dict(scope.values[written.rest]) if written.rest is not None else {}
            for name, expression in written.items:
                given[name] = expression if isinstance(expression, Function) else evaluate(expression, scope)
            operands = [scope.variables[o.name] if isinstance(o, Variable) else types[o.index] for o in node.operands]
            try:
                complete = payloads.complete(node.op, given, operands, scope)
                types[node.index] = node.op.infer(operands, complete)
            except CosetError as error:
                place = self.compiled.right_places[node.index]
                raise RuleTypeError(f"`{self.family}`: {error.message}", place=place, help=error.help) from None
            items[node.index] = tuple(sorted(complete.items()))
        if self.compiled.result:
            self._check_result(types[0] if isinstance(self.right, Application) else scope.variables[self.right.name], scope)
        return Decision(tuple(items), tuple(types))

    def _check_result(self, root: Type, scope: Scope) -> None:
        actual = root.items if isinstance(root, TupleType) else (root,)
        fits = len(actual) == len(self.compiled.result) and all(
            isinstance(type, TensorType) and match(declared.dtype, type.dtype, scope) and match(declared.dims, type.shape, scope)
            for declared, type in zip(self.compiled.result, actual, strict=True)
        )
        if not fits:
            declared = ", ".join(map(str, self.compiled.result))
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
            help="both sides of a rule have one type",
        )


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


class Refused(Exception):
    """An equation that does not hold: the rule does not fire."""


def solve(
    equations: Sequence[tuple[Expression, Any]], conditions: Sequence[Expression], scope: Scope, kinds: Mapping[str, Kind], name: str,
    place: Place | None = None,
) -> bool:  # fmt: skip
    """Bind names until all equations and conditions hold; False when one does not, or a dtype is not of its class.

    Raises:
        RuleTypeError: what is left determines nothing.
    """
    while equations or conditions:
        try:
            late = [equation for equation in equations if not _solved(equation, scope)]
            if not _in_classes(scope, kinds):
                return False
            waiting = [condition for condition in conditions if not _holds(condition, scope)]
        except (Refused, Undefined):
            return False
        if len(late) == len(equations) and len(waiting) == len(conditions):
            raise RuleTypeError(f"the left side of `{name}` does not determine its variables", place=place)
        equations, conditions = late, waiting
    return _in_classes(scope, kinds)


def _in_classes(scope: Scope, kinds: Mapping[str, Kind]) -> bool:
    """True when no dtype that is known is outside its class."""
    return all(scope.values[key] in kind.classes for key, kind in kinds.items() if kind.word == "dtype" and key in scope.values)


def conjuncts(condition: Expression) -> list[Expression]:
    """The conditions that `and` joins."""
    if isinstance(condition, Call) and condition.function == "and":
        return [part for argument in condition.arguments for part in conjuncts(argument)]
    return [condition]


def _solved(equation: tuple[Expression, Any], scope: Scope) -> bool:
    try:
        if not match(equation[0], equation[1], scope):
            raise Refused
    except Unbound:
        return False
    return True


def _holds(condition: Expression, scope: Scope) -> bool:
    """True when it holds, False when it must wait; an equality may bind a variable. Raises Refused when it is false."""
    try:
        if not evaluate(condition, scope):
            raise Refused
        return True
    except Unbound:
        if not (isinstance(condition, Call) and condition.function == "=="):
            return False
    for pattern, other in (condition.arguments, condition.arguments[::-1]):
        try:
            value = evaluate(other, scope)
        except Unbound:
            continue
        return _solved((pattern, value), scope)
    return False


def build(rule: Rule, decision: Decision, terms: Mapping[str, Term]) -> Term:
    """The right side of `rule` over `terms` (by variable), with the attributes and types that `decide` gave."""

    def construct(pattern: Pattern) -> Term:
        if isinstance(pattern, Variable):
            return terms[pattern.name]
        operands = tuple(construct(operand) for operand in pattern.operands)
        return payloads.made(pattern.op, operands, decision.attributes[pattern.index], decision.types[pattern.index])

    return construct(rule.right)
