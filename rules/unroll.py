"""Definitions and rules with a variadic operand, for a given number of operands: `xs..` becomes `xs_1, xs_2, ..` before all else.

`f(xs..)` passes all of them on, `[e for x in xs]` is a list of terms (with other lists in step), `fold(f, list..)` is
f(f(a, b), c) .., `len(xs)` their number, `xs[i]` one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from coset.ir.place import Place
from coset.rules import syntax
from coset.rules.syntax import RuleError

UNROLLED = (1, 2, 3)  # numbers of terms for which a rule or definition with an operand that repeats is a rule of the search
DEEPEST = 101  # a fold is as deep as it has terms, and the terms of rules are walked by recursion


class NoSuchOperand(RuleError):
    """A term is named that so few operands do not have."""


def repeated(entry: syntax.RuleEntry) -> syntax.Declaration | None:
    """The term variable of a rule that may repeat, or None.

    Raises:
        RuleError: there are several, or the rule has test lines, which say what one term is.
    """
    found = [each for each in entry.declarations if isinstance(each, syntax.Declaration) and each.variadic]
    if len(found) > 1:
        raise RuleError(f"`{found[1].name}` is the second operand that repeats", place=found[1].place, help="a rule has one")
    if found and entry.tests:
        raise RuleError("a rule with an operand that repeats has no test lines", place=entry.tests[0].place, help="leave them out")
    return found[0] if found else None


def unrolled_rule(entry: syntax.RuleEntry, own: syntax.Declaration, count: int) -> syntax.RuleEntry:
    """`entry` with `count` terms in the place of the variable `own`, which repeats.

    Raises:
        RuleError: it is used where one term is needed.
    """
    names = [f"{own.name}_{index + 1}" for index in range(count)]
    declarations: list[syntax.Declaration | syntax.OpVariable] = []
    for each in entry.declarations:
        declarations += [replace(own, name=name, variadic=False) for name in names] if each is own else [each]
    unroll = _Unroll(own.name, names, {local.name: local.value for local in entry.locals})
    left, right = unroll.expression(entry.left), unroll.expression(entry.right)
    locals, condition = unroll.locals(entry.locals), unroll.condition(entry.condition)
    return replace(entry, declarations=tuple(declarations), locals=locals, condition=condition, left=left, right=right)


def variadic(entry: syntax.OpEntry) -> syntax.Declaration | None:
    """The operand of `entry` that may repeat, or None."""
    found = [parameter for parameter in entry.parameters if parameter.variadic]
    return found[0] if found else None


def unrolled(entry: syntax.OpEntry, count: int) -> syntax.OpEntry:
    """`entry` with `count` operands in the place of its variadic one.

    Raises:
        RuleError: the variadic operand is used where one term is needed, or there is no operand to fold.
    """
    own = variadic(entry)
    assert own is not None, f"{entry.name} has no variadic operand"
    names = [f"{own.name}_{index + 1}" for index in range(count)]
    parameters: list[syntax.Declaration] = []
    for parameter in entry.parameters:
        single = [replace(parameter, name=name, variadic=False) for name in names] if parameter is own else [parameter]
        parameters += single
    clauses = tuple(_clause(clause, own.name, names) for clause in entry.clauses)
    return replace(entry, parameters=tuple(parameters), clauses=clauses)


def _clause(clause: syntax.Clause, name: str, names: Sequence[str]) -> syntax.Clause:
    unroll = _Unroll(name, names, {local.name: local.value for local in clause.locals})
    body, condition = unroll.expression(clause.body), unroll.condition(clause.condition)
    return replace(clause, body=body, locals=unroll.locals(clause.locals), condition=condition)


@dataclass
class _Unroll:
    """Rewrites expressions; `lists` are the local names, some of which stand for lists of terms."""

    name: str
    names: Sequence[str]
    lists: dict[str, syntax.Expression]

    def locals(self, given: Sequence[syntax.Local]) -> tuple[syntax.Local, ...]:
        """The local names that stand for one term or value; lists of terms are written out where they are used."""
        return tuple(replace(local, value=self.expression(local.value)) for local in given if self.items(local.value) is None)

    def condition(self, given: syntax.Expression | None) -> syntax.Expression | None:
        return None if given is None else self.expression(given)

    def items(self, expression: Any) -> list[syntax.Expression] | None:
        """The terms that a list of terms has, or None for another expression."""
        if isinstance(expression, syntax.Name) and expression.value == self.name:
            return [syntax.Name(name, expression.place) for name in self.names]
        if isinstance(expression, syntax.Name) and expression.value in self.lists:
            return self.items(self.lists[expression.value])
        if isinstance(expression, syntax.Operation) and expression.operator == "slice":
            whole = self.items(expression.operands[0])
            return None if whole is None else whole[slice(*(_index(bound) for bound in expression.operands[1:]))]
        if isinstance(expression, syntax.Brackets):
            return self.brackets(expression)
        if isinstance(expression, syntax.Comprehension) and any(self.items(each) is not None for each in expression.lists):
            return self.comprehension(expression)
        return None

    def brackets(self, expression: syntax.Brackets) -> list[syntax.Expression] | None:
        parts = [self.items(item.value) if isinstance(item, syntax.Spread) else None for item in expression.items]
        if all(part is None for part in parts):
            return None
        found: list[syntax.Expression] = []
        for item, part in zip(expression.items, parts, strict=True):
            found += [self.expression(item)] if part is None else part
        return found

    def comprehension(self, expression: syntax.Comprehension) -> list[syntax.Expression]:
        if expression.condition is not None:
            raise RuleError("a list of terms takes all of them", place=expression.place, help="leave the `if` out")
        terms = [self.items(each) for each in expression.lists]
        count = min(len(each) for each in terms if each is not None)
        found: list[syntax.Expression] = []
        for index in range(count):
            chosen: dict[str, syntax.Expression] = {}
            for name, each, own in zip(expression.names, expression.lists, terms, strict=True):
                number = syntax.Number(Decimal(index), each.place)
                chosen[name] = syntax.Operation("item", (each, number), each.place) if own is None else own[index]
            found.append(self.expression(substituted(expression.item, chosen)))
        return found

    def expression(self, expression: Any) -> Any:
        """`expression` with all mentions of the variadic operand written out."""
        found = self.items(expression)
        if found is not None:
            help = f"write f({self.name}..), [f(x) for x in {self.name}], fold(f, {self.name}..) or {self.name}[0]"
            raise RuleError(f"`{self.name}` stands for several terms", place=expression.place, help=help)
        if isinstance(expression, syntax.Operation) and expression.operator == "item":
            terms = self.items(expression.operands[0])
            if terms is not None:
                number = _index(expression.operands[1]) or 0
                if not -len(terms) <= number < len(terms):
                    raise NoSuchOperand(
                        f"there is no term {number} of {len(terms)}", place=expression.place, help="begin with one term: xs[0]"
                    )
                return terms[number]
        if isinstance(expression, syntax.Invocation):
            return self.call(expression)
        return rewritten(expression, self.expression)

    def call(self, call: syntax.Invocation) -> syntax.Expression:
        if call.name == "len" and len(call.arguments) == 1:
            terms = self.items(call.arguments[0])
            if terms is not None:
                return syntax.Number(Decimal(len(terms)), call.place)
        arguments: list[Any] = []
        for argument in call.arguments:
            terms = self.items(argument.value) if isinstance(argument, syntax.Spread) else None
            arguments += [self.expression(argument)] if terms is None else terms
        keywords = tuple((key, self.expression(value)) for key, value in call.keywords)
        if call.name == "fold":
            return _folded(arguments, keywords, call.place)
        return replace(call, arguments=tuple(arguments), keywords=keywords)


def _folded(arguments: Sequence[Any], keywords: tuple[tuple[str, Any], ...], place: Place) -> syntax.Expression:
    if len(arguments) < 2 or not isinstance(arguments[0], syntax.Name):
        raise RuleError("`fold` is not written like this", place=place, help="write fold(op, xs..)")
    if len(arguments) > DEEPEST:
        raise RuleError(f"a fold of more than {DEEPEST - 1} terms", place=place, help="combine them in groups")
    result: syntax.Expression = arguments[1]
    for argument in arguments[2:]:
        result = syntax.Invocation(arguments[0].value, (result, argument), keywords, None, place)
    return result


def _index(expression: Any) -> int | None:
    if expression is None:
        return None
    if isinstance(expression, syntax.Number) and expression.integral:
        return int(expression.value)
    raise RuleError("one of several terms is named by a number", place=expression.place, help="write xs[0] or xs[-1]")


def substituted(expression: Any, chosen: Mapping[str, syntax.Expression]) -> Any:
    """`expression` with other expressions for some of its names."""
    if isinstance(expression, syntax.Name):
        return chosen.get(expression.value, expression)
    return rewritten(expression, lambda part: substituted(part, chosen))


def rewritten(expression: Any, change: Callable[[Any], Any]) -> Any:
    """`expression` with `change` of each part."""
    if isinstance(expression, syntax.Spread):
        return expression if expression.value is None else replace(expression, value=change(expression.value))
    if isinstance(expression, syntax.Brackets):
        return replace(expression, items=tuple(map(change, expression.items)))
    if isinstance(expression, syntax.Comprehension):
        condition = None if expression.condition is None else change(expression.condition)
        return replace(expression, item=change(expression.item), lists=tuple(map(change, expression.lists)), condition=condition)
    if isinstance(expression, syntax.Lambda):
        return replace(expression, body=change(expression.body))
    if isinstance(expression, syntax.Invocation):
        keywords = tuple((key, change(value)) for key, value in expression.keywords)
        return replace(expression, arguments=tuple(map(change, expression.arguments)), keywords=keywords)
    if isinstance(expression, syntax.Operation):
        return replace(expression, operands=tuple(None if part is None else change(part) for part in expression.operands))
    return expression
