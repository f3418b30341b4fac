"""The ways to give a node of a rule attributes that its type rule accepts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from coset.ir import dims
from coset.ir.dims import Dim
from coset.ir.errors import CosetError
from coset.ir.op import Attribute, Op
from coset.ir.term import AttributeItems
from coset.ir.types import TensorType, Type
from coset.rules.algebra import Scope, Unbound, Wild, evaluate
from coset.rules.candidates import enumerable
from coset.rules.drawn_functions import choices
from coset.rules.equation import Attributes
from coset.rules.instance import EXPANSION, NUMBERS, InstanceSearch
from coset.rules.meant import CLAUSES, pinned
from coset.rules.open_values import left_open, open_values
from coset.rules.pattern import Application, Variable
from coset.rules.payloads import roles
from coset.rules.places import PLACES
from coset.rules.rule import Rule
from coset.rules.scalar import Undefined
from coset.rules.undecided import Question, is_hopeless, questions_of
from coset.rules.unify import Binding, bound, understood, unifiers
from coset.rules.watched import noting

MULTIPLES = (6, 12, 16, 64)  # what groups and blocks divide


def attributed(rule: Rule, node: Application, scope: Scope, search: InstanceSearch) -> Iterator[tuple[Scope, AttributeItems, Binding]]:
    """The ways to give `node` attributes that its type rule accepts; in proofs also those that it accepts once dims are bound."""
    attempts = Attempts(rule, node, scope, search)
    for values in attempts.possible():
        yield from attempts.ways(values)
        if attempts.ended:
            return


class Attempts:
    """What is tried to give one node attributes. `count`: how many ways were found; `ended`: no more are looked for; `hopeless`: the last
    choices were refused alike."""

    def __init__(self, rule: Rule, node: Application, scope: Scope, search: InstanceSearch) -> None:
        operands = [scope.variables[o.name] if isinstance(o, Variable) else scope.left[o.index] for o in node.operands]
        self.rule, self.node, self.scope, self.search = rule, node, scope, search
        self.known = [operand for operand in operands if operand is not None]
        written, functions = rule.compiled.left[node.index], roles(node.op)
        self.written = written = Attributes(tuple(item for item in written.items if item[0] not in functions), written.rest)
        names = {name for name, _ in written.items}
        self.plain = [(name, value) for name, value in written.items if not isinstance(value, Wild)]
        wild = names - {name for name, _ in self.plain}
        self.rest = [a for a in node.op.attributes if a.name not in names] if written.rest is not None else []
        self.free = [*(a for a in node.op.attributes if a.name in wild), *self.rest]
        symbols = PLACES.get(node.op.name, {}) if search.symbolic else {}
        self.unknown = [a.name for a in self.free if a.name not in symbols and not _known(a, node.op)]
        self.count, self.ended, self.hopeless = 0, False, False

    def possible(self) -> Iterator[dict[str, Any]]:
        """Values for the names that the attributes bind, under which no condition is false already where that is asked."""
        rule, scope, search = self.rule, self.scope, self.search
        asked: Sequence[Question] | None = None  # the conditions that what is tried here may decide: others are asked once
        for values in open_values(rule, self.written.items, self.node, scope, self.known, search):
            if search.firing:
                if asked is None:
                    asked = questions_of(rule, values.keys() - scope.values.keys())
                    if is_hopeless(rule, questions_of(rule), scope):
                        search.spent += 1
                        return
                if is_hopeless(rule, asked, replace(scope, values=values)):
                    search.spent += 1  # rules that can never fire must come to an end, too
                    if search.spent > search.budget:
                        return
                    continue
            yield values

    def ways(self, values: dict[str, Any]) -> Iterator[tuple[Scope, AttributeItems, Binding]]:
        """The ways under these values."""
        node, search = self.node, self.search
        bound_rest = dict(values.get(self.written.rest, ())) if self.written.rest is not None else {}
        options = [[bound_rest[a.name]] if a.name in bound_rest else left_open(a, node, self.known, search) for a in self.free]
        for name in self.unknown:
            if name not in bound_rest:
                search.guess(f"`{name}` of {node.op.name}")
        given = self._given(values)
        if given is None:
            return
        self.hopeless = False
        for choice in search.first(itertools.product(*options), 120):
            if not search.spend(node.op):
                search.guess("all attributes")
                self.ended = True
                return
            try:
                complete = node.op.complete(given | {a.name: value for a, value in zip(self.free, choice, strict=True)})
            except CosetError as error:
                search.failures.append((node.index, error.message))
                continue
            for binding in _unified(node.op, self.known, complete, search) if search.exhaustive else [dict[str, Dim]()]:
                for way in self._typed(values, bound_rest, bound(complete, binding), binding):
                    self.count += 1
                    yield way
            if self.hopeless:
                return
            if self.count > 40 and not search.exhaustive:
                self.ended = True
                return

    def _given(self, values: dict[str, Any]) -> dict[str, Any] | None:
        """The attributes that the rule writes; None where they have no value."""
        attempt = Scope(values, self.scope.variables, list(self.scope.left))
        try:
            with noting() as noted:
                return {name: evaluate(value, attempt) for name, value in self.plain}
        except (Undefined, Unbound):
            for what in noted:
                self.search.guess(f"sizes that {what} tells apart")
        except CosetError as error:
            self.search.failures.append((self.node.index, error.message))
        return None

    def _typed(
        self, values: dict[str, Any], bound_rest: Mapping[str, Any], fixed: dict[str, Any], binding: Binding
    ) -> Iterator[tuple[Scope, AttributeItems, Binding]]:
        """The ways with the attributes `fixed`, if the type rule takes them: one, or one for each choice of payload functions."""
        rule, node, scope, search, written = self.rule, self.node, self.scope, self.search, self.written
        try:
            type = node.op.infer([bound(operand, binding) for operand in self.known] if binding else self.known, fixed)
        except CosetError as error:
            failure = (node.index, error.message)
            self.hopeless = search.failures[-12:].count(failure) == 12 and not search.exhaustive
            search.failures.append(failure)
            if search.exhaustive and node.op.name == "stablehlo.pad" and _refuses_symbols(node.op, self.known, fixed):
                search.guess(f"sizes of {node.op.name}")
            return
        later = bound(dict(values), binding)
        if written.rest is not None:
            later[written.rest] = tuple(sorted((a.name, fixed[a.name]) for a in self.rest))
        if node.op.functions:
            if written.rest is not None:
                later[written.rest] += tuple((role, bound_rest[role]) for role in roles(node.op) if role in bound_rest)
            yield from _with_functions(rule, node, Scope(later, scope.variables, list(scope.left)), fixed, type, binding, search)
            return
        types = [bound(each, binding) for each in scope.left]
        types[node.index] = type
        variables = bound(dict(scope.variables), binding)
        yield Scope(later, variables, types), tuple(sorted(fixed.items())), binding


def _of_functions(attribute: Attribute, op: Op) -> bool:
    """Whether an attribute is the element type of what a payload function gives: while nothing is known of it, one of each kind does."""
    return bool(op.functions) and attribute.kind == "dtype"


def _known(attribute: Attribute, op: Op) -> bool:
    """Whether all values of an attribute are tried where all are asked for."""
    return enumerable(attribute.kind, attribute.name) or _of_functions(attribute, op) or pinned(op, attribute.name) is not None


def _with_functions(
    rule: Rule, node: Application, scope: Scope, attributes: dict[str, Any], type: Type, binding: Binding, search: InstanceSearch
) -> Iterator[tuple[Scope, AttributeItems, Binding]]:
    """The ways to give payload functions to `node`, whose attributes stand."""
    written = rule.compiled.left[node.index]
    types = [bound(each, binding) for each in scope.left]
    variables = bound(dict(scope.variables), binding)
    operands = [variables[o.name] if isinstance(o, Variable) else types[o.index] for o in node.operands]
    types[node.index] = type
    named = {name for name, _ in written.items}
    search.spent += EXPANSION  # functions are made of many ops, and each choice of them is typed
    for functions, more in choices(
        written, node.op, node.index, operands, attributes, scope, None if search.exhaustive else search.arrange
    ):
        if not search.spend(node.op):
            search.guess("all functions")
            return
        later = {**scope.values, **more}
        if written.rest is not None:
            own = [(role, value) for role, value in functions.items() if role not in named]
            later[written.rest] = tuple(sorted(dict((*later[written.rest], *own)).items()))
        yield Scope(later, variables, list(types)), tuple(sorted((attributes | functions).items())), binding


def _unified(op: Op, operands: Sequence[Type], attributes: dict[str, Any], search: InstanceSearch) -> list[Binding]:
    """What must be bound so that `op` takes the operands; the type rule refuses what still does not fit. What a defined op takes with the
    symbols as they are it takes with any numbers for them: what its definition asks of them is asked again (`prove/decisions.py`)."""
    settled = understood(op) or (op.name in CLAUSES and _accepted(op, operands, attributes))
    if not settled and (len(operands) > 1 or _refuses_symbols(op, operands, attributes)):
        search.guess(f"sizes of {op.name}")
    found = unifiers(op, operands, attributes)
    if found is None and understood(op) and _refuses_symbols(op, operands, attributes):
        search.guess(f"sizes of {op.name}")
    return [{}] if found is None else found


def _refuses_symbols(op: Op, operands: Sequence[Type], attributes: dict[str, Any]) -> bool:
    """Whether the type rule refuses the operands as they are and takes them with some numbers for their symbols."""
    if _accepted(op, operands, attributes):
        return False
    names = sorted({name for value in (*operands, *attributes.values()) for name in symbols_of(value)})
    counted: list[Binding] = [
        dict(zip(names, [*(NUMBERS[turn:] + NUMBERS[:turn])] * len(names), strict=False)) for turn in range(len(NUMBERS))
    ]
    alike: list[Binding] = [dict[str, Dim](dict.fromkeys(names, number)) for number in (*NUMBERS, *MULTIPLES)]
    trials = [*alike, *counted] if names else []
    return any(_accepted(op, [bound(operand, trial) for operand in operands], bound(dict(attributes), trial)) for trial in trials)


def _accepted(op: Op, operands: Sequence[Type], attributes: dict[str, Any]) -> bool:
    try:
        op.infer(operands, attributes)
    except CosetError:
        return False
    return True


def symbols_of(value: Any) -> frozenset[str]:
    """The dim symbols in a type, a dim or a list of them."""
    if isinstance(value, TensorType):
        return frozenset().union(*map(dims.symbols, value.shape or ()))
    if isinstance(value, tuple):
        return frozenset().union(*map(symbols_of, value))
    return dims.symbols(value) if isinstance(value, dims.Poly) else frozenset()
