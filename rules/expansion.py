"""Reading a definition from left to right: what an op means for operands of given types and given attributes.

All types are known here, so that each place with several forms (an operand that may be absent, a broadcast that may change
nothing, a conditional) has the one form that fits, and what a definition names once is made once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, Union

from coset.ir import dims
from coset.ir.errors import CosetError, TypeRuleError
from coset.ir.op import Op
from coset.ir.term import AttributeItems, Term
from coset.ir.types import TensorType, TupleType, Type
from coset.rules import payloads, syntax
from coset.rules.algebra import Call, Expression, PayloadFunction, Scope, TypeOf, Unbound, evaluate
from coset.rules.arithmetic import Undecided
from coset.rules.compile import type_pattern
from coset.rules.draft import DraftApplication, Hole, Node
from coset.rules.equation import TypePattern
from coset.rules.names import Names
from coset.rules.parts import conjuncts, parts
from coset.rules.scalar import Undefined, note
from coset.rules.solving import match, solve
from coset.rules.terms import Drafter
from coset.rules.watched import noting

FORM = "`static`"  # how notes begin on how something is written, which clauses of one meaning tell apart


class Unsettled(TypeRuleError, Undefined):
    """Whether a clause speaks of the operands depends on the numbers that their symbolic sizes stand for: a rule that makes such an op of
    them does not fire."""


class Doubt(str):
    """Why it is not known which clause speaks of the operands."""


@dataclass(frozen=True)
class ExpansionStep:
    """One application. An operand is an earlier step, by number, or an operand of the op, by name."""

    op: Op
    operands: tuple[Union[int, str], ...]
    attributes: AttributeItems
    type: Type


@dataclass(frozen=True)
class Expansion:
    """What an op means: steps in order, and the one (or the operand) that is the result, with its type."""

    steps: tuple[ExpansionStep, ...]
    result: Union[int, str]
    type: Type
    operands: tuple[str, ...]  # the names of the operands, by position
    clause: int = 0  # of the definition: which one says it

    def term(self, operands: Sequence[Term]) -> Term:
        """The expansion over `operands`."""
        named = dict(zip(self.operands, operands, strict=True))
        made: list[Term] = []

        def chosen(key: int | str) -> Term:
            return named[key] if isinstance(key, str) else made[key]

        for step in self.steps:
            made.append(payloads.made(step.op, tuple(map(chosen, step.operands)), step.attributes, step.type))
        return chosen(self.result)

    def flops(self, operands: Sequence[Type]) -> Any:
        """The scalar operations of all steps, as a dim."""
        named = dict(zip(self.operands, operands, strict=True))
        total: Any = 0
        for step in self.steps:
            if step.op.has("leaf"):
                continue
            inner = [named[key] if isinstance(key, str) else self.steps[key].type for key in step.operands]
            if step.op.flops is not None:
                total = dims.add(total, step.op.flops(step.type, inner, dict(step.attributes)))
            elif isinstance(step.type, TensorType):
                total = dims.add(total, step.type.elements)
        return total


@dataclass
class _Scope(Scope):
    """The scope of a definition that is read: types of drafts are those that the guide finds."""

    guide: "Guide | None" = None

    def type_of(self, reference: TypeOf) -> TensorType:
        if reference.kind != "draft":
            return super().type_of(reference)
        assert self.guide is not None
        found = self.guide.type(reference.key)
        if not isinstance(found, TensorType) or found.shape is None:
            raise Undefined
        return found


class Guide:
    """Knows the types of drafts, and so which form of a term fits."""

    def __init__(self, values: dict[str, Any], variables: Mapping[str, Type]) -> None:
        self.scope = _Scope(values, variables, guide=self)
        self.found: dict[DraftApplication, tuple[AttributeItems, Type]] = {}

    def pick(self, forms: Sequence[Sequence[Expression]]) -> int:
        """The first form whose conditions are known to hold.

        Raises:
            Undefined: there is none.
        """
        for number, conditions in enumerate(forms):
            if all(map(self.holds, conditions)):
                return number
        raise Undefined

    def holds(self, condition: Expression) -> bool:
        """True when `condition` is known to be true."""
        try:
            return bool(evaluate(condition, self.scope))
        except Undecided:
            return False

    def type(self, node: Node) -> Type:
        """The type of a draft."""
        if isinstance(node, Hole):
            return self.scope.variables[node.name]
        if node not in self.found:
            operands = [self.type(operand) for operand in node.operands]
            assert node.rest is None, "a definition has no left side that binds `..rest`"
            given = {
                name: value if isinstance(value, PayloadFunction) else evaluate(value, self.scope)
                for name, value in node.attributes.items()
            }
            complete = payloads.complete(node.op, given, operands, self.scope)
            self.found[node] = tuple(sorted(complete.items())), node.op.infer(operands, complete)
        return self.found[node][1]


@dataclass(frozen=True)
class Reading:
    """One clause of a definition without variadic operands, ready to be read."""

    name: str
    clause: syntax.Clause
    names: Names
    operands: tuple[tuple[str, TypePattern], ...]
    result: tuple[TypePattern, ...]

    @staticmethod
    def of(entry: syntax.OpEntry, clause: syntax.Clause, names: Names) -> "Reading":
        """What reading `clause` needs; `names` are those of the entry with the locals of the clause."""
        operands = [(d.name, type_pattern(d.kind, names)) for d in entry.parameters if isinstance(d.kind, syntax.TensorKind)]
        return Reading(entry.name, clause, names, tuple(operands), tuple(type_pattern(kind, names) for kind in entry.result))

    def expansion(self, operands: Sequence[Type], attributes: Mapping[str, Any]) -> Expansion | None:
        """The expansion for operands of these types, or None where the clause does not speak of them.

        Raises:
            Unsettled: it does for some numbers that their sizes may stand for, and for others it does not.
            CosetError: the clause does, and is wrong: a type rule refuses what it builds.
        """
        taken = self._taken(operands)
        if taken is None:
            return None
        choices, variables, equations = taken
        for name, value in attributes.items():
            default = self.names.attributes[name].default
            if isinstance(value, float) and isinstance(default, syntax.Number):
                choices[f"default {name}"] = int(value != float(default.value))
        guide = Guide(dict(attributes), variables)
        drafter = Drafter(self.names, choices, left=False, guide=guide)
        conditions: list[Expression] = []
        with noting() as noted:
            try:
                if self.clause.condition is not None:
                    conditions += conjuncts(drafter.judging.value(self.clause.condition))
                if solve(equations, conditions, guide.scope, self.names.kinds, self.name):
                    root = drafter.term(self.clause.body, None)
                    found = self._checked(_expanded(root, guide, tuple(name for name, _ in self.operands)), guide.scope)
                else:
                    found = None
            except (Undefined, Unbound):
                found = None
        for what in noted:
            note(what)
        if found is None and noted:
            self._require_settled(conditions, guide.scope, noted)
        return found

    def _taken(self, operands: Sequence[Type]) -> tuple[dict[str, int], dict[str, Type], list[tuple[Expression, Any]]] | None:
        """Which operands are given, their types, and what their types say of the names of the entry; None for
        types that it does not take."""
        if len(operands) != len(self.operands):
            return None
        choices: dict[str, int] = {}
        variables: dict[str, Type] = {}
        equations: list[tuple[Expression, Any]] = []
        for (name, pattern), type in zip(self.operands, operands, strict=True):
            given = isinstance(type, TensorType) and type.shape is not None
            if self.names.terms[name].optional:
                choices[f"optional {name}"] = int(not given)
            elif not given:
                return None
            if isinstance(type, TensorType):
                variables[name] = type
                equations += [(pattern.dtype, type.dtype), (pattern.dims, type.shape)]
        return choices, variables, equations

    def _require_settled(self, conditions: Sequence[Expression], scope: Scope, noted: AbstractSet[str]) -> None:
        """Nothing for a clause that does not speak of operands whatever numbers their sizes are.

        Raises:
            Unsettled: it does for some.
        """
        asked = [condition for condition in conditions if not _asks_form(condition)]  # a symbol is one form of writing a number
        with noting() as more:
            never = any(_is_false(condition, scope) for condition in asked)
        told = sorted(what for what in noted | more if not what.startswith(FORM))
        if told and not never:
            raise Unsettled(f"which of its meanings holds depends on {', '.join(told)} of sizes that have no numbers")

    def _checked(self, expansion: Expansion, scope: Scope) -> Expansion:
        actual = expansion.type.items if isinstance(expansion.type, TupleType) else (expansion.type,)
        fits = not self.result or len(actual) == len(self.result)
        for declared, type in zip(self.result, actual, strict=False):
            fits &= isinstance(type, TensorType) and match(declared.dtype, type.dtype, scope) and match(declared.dims, type.shape, scope)
        if not fits:
            raise TypeRuleError(f"`{self.name}` declares {', '.join(map(str, self.result))} but its meaning is {expansion.type}")
        return expansion


def _asks_form(condition: Expression) -> bool:
    """Whether a condition asks how a size is written."""
    return any(isinstance(part, Call) and part.function == "static" for part in parts(condition))


def _is_false(condition: Expression, scope: Scope) -> bool:
    """Whether `condition` is known not to hold."""
    try:
        return not evaluate(condition, scope)
    except (Undefined, Unbound):
        return False


def expanded(body: syntax.Expression, names: Names, guide: Guide, operands: tuple[str, ...]) -> Expansion:
    """What `body` means over `operands`, whose types the guide knows.

    Raises:
        Undefined, Unbound: it is not defined for them.
        CosetError: a type rule refuses what it builds.
    """
    return _expanded(Drafter(names, {}, left=False, guide=guide).term(body, None), guide, operands)


def _expanded(root: Node, guide: Guide, operands: tuple[str, ...]) -> Expansion:
    """The drafts under `root` as steps, each once."""
    type = guide.type(root)
    steps: list[ExpansionStep] = []
    numbers: dict[Any, int] = {}

    def key(node: Node) -> int | str:
        return node.name if isinstance(node, Hole) else numbers[node]

    pending = [root]
    while pending:
        node = pending[-1]
        late = [] if isinstance(node, Hole) else [o for o in node.operands if isinstance(o, DraftApplication) and o not in numbers]
        if late:
            pending += late
            continue
        pending.pop()
        if isinstance(node, DraftApplication) and node not in numbers:
            attributes, own = guide.found[node]
            numbers[node] = len(steps)
            steps.append(ExpansionStep(node.op, tuple(map(key, node.operands)), attributes, own))
    return Expansion(tuple(steps), key(root), type, operands)


def first_expansion(readings: Sequence[Reading], operands: Sequence[Type], attributes: Mapping[str, Any]) -> Expansion | str:
    """The expansion by the first clause that fits, or why none does."""
    reason = ""
    for number, reading in enumerate(readings):
        try:
            found = reading.expansion(operands, attributes)
        except Unsettled as error:  # a later clause speaks of what the earlier ones leave
            return Doubt(error.message)
        except CosetError as error:
            reason = reason or error.message
            continue
        if found is not None:
            return replace(found, clause=number)
    return reason or f"it is not defined for ({', '.join(map(str, operands))}) with {dict(attributes)}"
