"""Rules in words: expressions of the index algebra and patterns as someone would write them, for explanations."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from coset.rules import syntax
from coset.rules.algebra import Call, Expression, Listing, Literal, MappedList, PayloadFunction, Ref, Scalar, Splice, TypeOf, Wild
from coset.rules.expression_text import text
from coset.rules.pattern import Application, Pattern, Variable, applications
from coset.rules.rule import Rule

INFIX = {"==": 1, "!=": 1, "<": 1, "<=": 1, ">": 1, ">=": 1, "in": 1, "+": 2, "-": 2, "*": 3, "/": 3, "%": 3, "and": 0, "or": 0}
OPERATORS = {"stablehlo.add": "+", "stablehlo.subtract": "-", "stablehlo.multiply": "*", "stablehlo.divide": "/"}
ATOM = 9  # binds tighter than any operator
HUB = ("stablehlo", "chlo")  # dialects that rule files use without their names
MOVED = {"shape", "broadcast_dimensions"}  # attributes that say only how large a result is
BROADCAST, CONSTANT = "stablehlo.broadcast_in_dim", "builtin.constant"
DEEPEST = 5  # levels of a pattern that are written out


@dataclass(frozen=True)
class Wording:
    """How the sides of `rule` and what they are made of are written."""

    rule: Rule

    @cached_property
    def left(self) -> tuple[Application, ...]:
        """The applications of the left side, by index."""
        return tuple(applications(self.rule.left))

    def expression(self, value: Expression | Splice | Any) -> str:
        """An expression with the operators between their operands."""
        return self._expression(value)[0]

    def _expression(self, value: Expression | Splice | Any) -> tuple[str, int]:
        """And how tightly it binds."""
        if isinstance(value, Call):
            return self._call(value)
        if isinstance(value, Listing):
            return f"[{', '.join(map(self.expression, value.items))}]", ATOM
        if isinstance(value, Splice):
            return ("_" if value.value is None else self.expression(value.value)) + "..", ATOM
        if isinstance(value, MappedList):
            lists = ", ".join(map(self.expression, value.lists))
            return f"[{self.expression(value.item)} for {', '.join(value.names)} in {lists} if {self.expression(value.condition)}]", ATOM
        if isinstance(value, TypeOf):
            return self._owner(value), ATOM
        if isinstance(value, Scalar):
            return self._expression(value.value)
        assert isinstance(value, Literal | Ref | Wild | PayloadFunction), value
        return text(value), ATOM

    def _call(self, call: Call) -> tuple[str, int]:
        strength = INFIX.get(call.function)
        if strength is None or len(call.arguments) < 2:
            if call.function in ("negate", "-") and len(call.arguments) == 1:
                return f"-{self.expression(call.arguments[0])}", ATOM
            if call.function == "pi":
                return "pi", ATOM
            return f"{call.function}({', '.join(map(self.expression, call.arguments))})", ATOM
        pieces = []
        for place, argument in enumerate(call.arguments):
            text, bound = self._expression(argument)
            pieces.append(f"({text})" if bound < strength + (place > 0) else text)
        return f" {call.function} ".join(pieces), strength

    def _owner(self, reference: TypeOf) -> str:
        if reference.kind == "left" and reference.key < len(self.left):
            return f"({self.pattern(self.left[reference.key], 2)})"
        return str(reference.key) if reference.kind == "variable" else "the result"

    def pattern(self, pattern: Pattern, depth: int = DEEPEST) -> str:
        """A side of the rule, `depth` levels of it."""
        return self._pattern(pattern, depth)[0]

    def _pattern(self, pattern: Pattern, depth: int) -> tuple[str, int]:
        if isinstance(pattern, Variable):
            return pattern.name, ATOM
        given = dict(self.rule.compiled.left[pattern.index].items)
        if pattern.op.name == CONSTANT:
            return self._expression(given["value"])
        if pattern.op.name == BROADCAST and isinstance(inner := pattern.operands[0], Application) and inner.op.name == CONSTANT:
            return self._pattern(inner, depth)
        if depth <= 0:
            return "..", ATOM
        if (operator := OPERATORS.get(pattern.op.name)) is not None:
            strength = INFIX[operator]
            texts = []
            for place, operand in enumerate(pattern.operands):
                text, bound = self._pattern(operand, depth - 1)
                texts.append(f"({text})" if bound < strength + (place > 0) else text)
            return f" {operator} ".join(texts), strength
        pieces = [self.pattern(operand, depth - 1) for operand in pattern.operands]
        pieces += [f"{name}: {self.expression(value)}" for name, value in given.items() if name not in MOVED]
        return f"{short(pattern.op.name)}({', '.join(pieces)})", ATOM


def short(op: str) -> str:
    """The name of an op as rule files write it."""
    dialect, _, name = op.rpartition(".")
    return ("bcast" if op == BROADCAST else name) if dialect in HUB else op


def declared(kind: syntax.TensorKind | syntax.ValueKind) -> str:
    """A declared type or kind as a rule file has it."""
    if isinstance(kind, syntax.TensorKind):
        return f"{kind.fact} {kind.dtype}[{', '.join(map(_dim, kind.dims))}]".lstrip()
    return f"{kind.word}({', '.join(map(_dim, kind.arguments))})" if kind.arguments else kind.word


def _dim(dim: Any) -> str:
    if isinstance(dim, syntax.Spread):
        return f"{'' if dim.value is None else _dim(dim.value)}.."
    if isinstance(dim, syntax.Operation):
        return f" {dim.operator} ".join(_dim(each) for each in dim.operands)
    return str(getattr(dim, "value", ".."))
