"""One side of an entry as a draft: applications of ops with an expression for each attribute; sugar is gone here.

Where one way of writing has several normal forms (a splat is a bare constant at rank 0, an optional operand is there or
not), `Drafter.choose` asks for a decision, and the caller tries each: the variants of a rule.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from coset.ir.op import Op, get_op
from coset.ir.place import Place
from coset.rules import payloads, syntax
from coset.rules.algebra import Call, Expression, Listing, Literal, TypeOf, evaluate
from coset.rules.arithmetic import as_list
from coset.rules.attribute_kinds import LISTS, check_kind, no_attribute
from coset.rules.draft import DraftApplication, Hole, NeedChoice, Node, SplatContext, context_of, inlined, type_of
from coset.rules.equation import Kind
from coset.rules.expression_text import text
from coset.rules.names import FUNCTION, SUGAR, Names, imply
from coset.rules.nodes import meanings, node_op, written_as
from coset.rules.scalar import Undefined
from coset.rules.sugar import minus, splat, sugar
from coset.rules.syntax import RuleError
from coset.rules.unroll import substituted
from coset.rules.values import ValueResolver

if TYPE_CHECKING:
    from coset.rules.expansion import Guide

BINARY = {"+": "stablehlo.add", "-": "stablehlo.subtract", "*": "stablehlo.multiply", "/": "stablehlo.divide"}
# (op, position of the operand) -> the value that makes the op the identity in its other operand
IDENTITIES = {
    ("stablehlo.add", 0): 0, ("stablehlo.add", 1): 0, ("stablehlo.subtract", 1): 0,
    ("stablehlo.multiply", 0): 1, ("stablehlo.multiply", 1): 1,
    ("stablehlo.divide", 1): 1, ("stablehlo.maximum", 0): Decimal("-Infinity"), ("stablehlo.maximum", 1): Decimal("-Infinity"),
    ("stablehlo.minimum", 0): Decimal("Infinity"), ("stablehlo.minimum", 1): Decimal("Infinity"),
}  # fmt: skip
NODE_FORM = "form of "  # how the choice among the meanings of a node is called


class Drafter:
    """Drafts terms of one side of an entry under given choices."""

    def __init__(self, names: Names, choices: dict[str, int], *, left: bool, guide: Guide | None = None, reads_nodes: bool = False) -> None:
        self.names, self.choices, self.left, self.guide = names, choices, left, guide
        self.reads_nodes = reads_nodes  # in a rule: calls of ops that no program holds stand for their meaning
        self.shared: dict[str, Node] = {}  # with a guide: what local names stand for, made once
        self.values, self.judging = ValueResolver(names, left=left), ValueResolver(names, left=False)  # of attributes; of conditions
        self.values.absent = self.judging.absent = self.absent
        self.values.typed = self.type_of_term
        if guide is not None:  # a rule's conditions come before its right side has types
            self.judging.typed = self.type_of_term
        self.conditions: dict[str, Expression] = {}  # what the chosen branches need, by place

    def choose(self, key: str, *forms: Sequence[Expression]) -> int:
        """The form chosen for `key`; each is written as the conditions under which it is right."""
        if key not in self.choices:
            if self.guide is None:
                raise NeedChoice(key, len(forms))
            self.choices[key] = self.guide.pick(forms)
        return self.choices[key]

    # ------------------------------------------------------------ what an expression is

    def resolve(self, expression: syntax.Expression) -> syntax.Expression:
        """`expression`, or what the local name stands for, or the chosen branch of a conditional term."""
        while True:
            if isinstance(expression, syntax.Name) and expression.value in self.names.locals:
                expression = self.names.locals[expression.value]
            elif isinstance(expression, syntax.Operation) and expression.operator == "if" and not self.values.numeric(expression):
                expression = self.branch(expression)
            else:
                return expression

    def branch(self, expression: syntax.Operation) -> syntax.Expression:
        """The branch of a conditional between terms that this variant takes; its condition must hold where the variant is used."""
        condition, chosen, other = (operand for operand in expression.operands if operand is not None)
        value = self.judging.value(condition)
        if isinstance(value, Call) and value.function == "not" and isinstance(value.arguments[0], Literal):
            value = Literal(not value.arguments[0].value)
        if isinstance(value, Literal):
            return chosen if value.value else other
        key = f"if {text(value)}"
        forms = value, Call("not", (value,))
        form = self.choose(key, *([each] for each in forms))
        self.conditions[key] = forms[form]
        return other if form else chosen

    def type_of_term(self, expression: syntax.Expression) -> TypeOf:
        """The type of a term that occurs on this side, for `dims(d)` of a local name and the like."""
        outer, self.values.bound = self.values.bound, ()  # a term does not speak of the names of comprehensions around
        try:
            return type_of(self.term(expression, None))
        finally:
            self.values.bound = outer

    def absent(self, expression: syntax.Expression) -> bool:
        """True for the name of an optional operand that this variant leaves out."""
        if not isinstance(expression, syntax.Name) or expression.value not in self.names.terms:
            return False
        return self.names.terms[expression.value].optional and self.choose(f"optional {expression.value}", (), ()) == 1

    def known(self, expression: syntax.Expression | None) -> Decimal | None:
        """The number that `expression` is in this variant because an operand is absent or an attribute has its default."""
        if expression is None:
            return None
        expression = self.resolve(expression)
        if isinstance(expression, syntax.Name):
            if self.absent(expression):
                default = self.names.terms[expression.value].default
                if default is None:
                    help = f"write `if given({expression.value}) then .. else ..`, or say which value stands for its absence"
                    raise RuleError(f"`{expression.value}` may be absent here", place=expression.place, help=help)
                return self.values.decimal(default)
            return self.defaulted(expression.value)
        if isinstance(expression, syntax.Invocation) and expression.name in ("bcast", "splat") and expression.arguments:
            return self.known(expression.plain[0])
        if isinstance(expression, syntax.Operation) and expression.operator == "*":
            return Decimal(0) if any(self.known(operand) == 0 for operand in expression.operands) else None
        return None

    def defaulted(self, name: str) -> Decimal | None:
        """The default of a float parameter where it is 0 or 1: the variant for it has no trace of it."""
        declaration = self.names.attributes.get(name)
        if declaration is None or declaration.default is None or self.names.kinds[name].word != "float":
            return None
        value = self.values.decimal(declaration.default)
        return value if value in (0, 1) and self.choose(f"default {name}", (), ()) == 0 else None

    def scalar(self, expression: syntax.Expression) -> bool:
        """True for an expression of numbers, attributes and dims only."""
        expression = self.resolve(expression)
        if isinstance(expression, syntax.Number):
            return True
        if isinstance(expression, syntax.Name):
            return self.absent(expression) or expression.value in ("pi", "inf", "nan") or expression.value in self.names.kinds
        if isinstance(expression, syntax.Invocation):
            return self.values.is_function(expression)
        if isinstance(expression, syntax.Operation) and expression.operator in ("+", "-", "*", "/", "//", "%", "negate", "item", "if"):
            if expression.operator in ("item", "if"):  # a conditional between terms is resolved above
                return True
            return all(operand is None or self.scalar(operand) for operand in expression.operands)
        return False

    def waiting(self, expression: syntax.Expression) -> bool:
        """True when the shape of `expression` comes from its context."""
        expression = self.resolve(expression)
        if self.scalar(expression):
            return True
        if isinstance(expression, syntax.Invocation):
            if expression.name == "splat":
                return True
            if expression.name == "bcast":
                return len(expression.arguments) == 1
            return False
        if isinstance(expression, syntax.Operation) and expression.operator in (*BINARY, "negate"):
            return all(operand is None or self.waiting(operand) for operand in expression.operands)
        return False

    # ------------------------------------------------------------ terms

    def term(self, expression: syntax.Expression, context: SplatContext | None) -> Node:
        """The draft of a term.

        Raises:
            RuleError: it is no term, or its shape is not determined.
        """
        if self.guide is not None and isinstance(expression, syntax.Name) and expression.value in self.names.locals:
            if expression.value not in self.shared and not self.waiting(expression):
                self.shared[expression.value] = self.term(self.names.locals[expression.value], None)
            if expression.value in self.shared:
                return self.shared[expression.value]
        expression = self.resolve(expression)
        if self.scalar(expression):
            return splat(self, expression, context, expression.place)
        if isinstance(expression, syntax.Name):
            if expression.value == "_":
                help = "name the variable and declare its type"
                raise RuleError("`_` stands for an attribute, not for a term", place=expression.place, help=help)
            if expression.value not in self.names.terms:
                name = expression.value
                help = f"declare it after `for`: `{name}: T[S..]` is a tensor, `{name}: float` or `{name}: int` a number"
                raise RuleError(f"`{expression.value}` is not declared", place=expression.place, help=help)
            return Hole(expression.value, expression.place)
        if isinstance(expression, syntax.Invocation):
            return sugar(self, expression, context) if expression.name in SUGAR else self.application(expression, context)
        if isinstance(expression, syntax.Operation):
            return self.operation(expression, context)
        if isinstance(expression, syntax.Comprehension) and self.guide is not None:
            return self.results(expression, self.guide)
        raise RuleError(
            "this is a value where a term is needed", place=expression.place, help="splat(v) and full(v, [dims], T) make terms of numbers"
        )

    def results(self, expression: syntax.Comprehension, guide: Guide) -> Node:
        """Several results, one for each item of lists that are known."""
        counts = {len(as_list(evaluate(self.values.value(each), guide.scope))) for each in expression.lists}
        if len(counts) != 1 or expression.condition is not None:
            raise Undefined
        terms: list[Node] = []
        for index in range(counts.pop()):
            number = syntax.Number(Decimal(index), expression.place)
            items = [syntax.Operation("item", (each, number), each.place) for each in expression.lists]
            terms.append(self.term(substituted(expression.item, dict(zip(expression.names, items, strict=True))), None))
        return DraftApplication(get_op("builtin.tuple"), terms, {}, expression.place)

    def operation(self, expression: syntax.Operation, context: SplatContext | None) -> Node:
        operands = [operand for operand in expression.operands if operand is not None]
        if expression.operator == "tuple":
            return DraftApplication(get_op("builtin.tuple"), [self.term(operand, None) for operand in operands], {}, expression.place)
        if expression.operator == "negate":
            return DraftApplication(get_op("stablehlo.negate"), [self.term(operands[0], context)], {}, expression.place)
        if expression.operator in BINARY:
            return self.elementwise(get_op(BINARY[expression.operator]), operands, {}, None, expression.place, context)
        if expression.operator == "@":
            lhs, rhs = (self.term(operand, None) for operand in operands)
            batch = Call("batch_axes", (type_of(lhs), type_of(rhs)))
            contract = (minus(Call("rank", (type_of(lhs),)), 1), minus(Call("rank", (type_of(rhs),)), 2))
            attributes: dict[str, Expression] = {"lhs_batch": batch, "rhs_batch": batch}
            attributes |= {"lhs_contract": Listing((contract[0],)), "rhs_contract": Listing((contract[1],))}
            return DraftApplication(get_op("stablehlo.dot_general"), [lhs, rhs], attributes, expression.place)
        help = 'use an op, e.g. compare(x, y, "EQ")'
        raise RuleError(f"`{expression.operator}` is for values, not for terms", place=expression.place, help=help)

    def elementwise(
        self, op: Op, operands: Sequence[syntax.Expression], attributes: dict[str, Expression], rest: str | None, place: Place,
        context: SplatContext | None,
    ) -> Node:  # fmt: skip
        """An elementwise op: what has no shape of its own takes that of its first sibling that has one."""
        for position, operand in enumerate(operands):
            identity = IDENTITIES.get((op.name, position))
            if identity is not None and self.known(operand) == identity:
                return self.term(operands[1 - position], context)
        drafts: dict[int, Node] = {i: self.term(operand, None) for i, operand in enumerate(operands) if not self.waiting(operand)}
        typed = [i for i in drafts if not (op.name == "stablehlo.select" and i == 0)]
        shared = context_of(drafts[typed[0]], self.names) if typed else context
        for i, operand in enumerate(operands):
            if i not in drafts:
                drafts[i] = self.term(operand, shared)
        return DraftApplication(op, [drafts[i] for i in range(len(operands))], attributes, place, rest)

    def called(self, call: syntax.Invocation) -> Node:
        """What a payload function gives: inside of another one only, where it is known which it is."""
        if self.guide is None:
            help = "name it in the place of an op's function: `body: f`, `body: lambda a: f(f(a))`"
            raise RuleError(f"`{call.name}` is a payload function, and no op", place=call.place, help=help)
        region = self.guide.scope.values[call.name]
        if len(region.parameters) != len(call.arguments) or call.keywords or call.rest is not None:
            raise Undefined
        return inlined(region, [self.term(argument, None) for argument in call.plain], call.place)

    def application(self, call: syntax.Invocation, context: SplatContext | None) -> Node:
        if self.names.kinds.get(call.name, Kind("")).word == FUNCTION:
            return self.called(call)
        arguments: list[syntax.Expression] = []
        for argument in call.arguments:
            if isinstance(argument, syntax.Spread):
                help = "declare it: for xs..: T[..]; a list of numbers is spread in brackets, [a, S..]"
                raise RuleError("this is no operand that repeats", place=argument.place, help=help)
            arguments.append(argument)
        op = self.names.resolve(call.name, call.place)
        node = written_as(op, call) if self.reads_nodes else None
        if node is not None:
            return self.node(node, call, context)
        count = len(arguments) if op.variadic else len(op.operands)
        operands, positional = arguments[:count], arguments[count:]
        if len(operands) < count - op.optional:
            missing = f"{op.name}({', '.join(op.operands)})"
            raise RuleError(f"`{call.name}` takes {count} operands, not {len(operands)}", place=call.place, help=f"its operands: {missing}")
        attributes = self.attributes(op, call, positional)
        if op.has("elementwise"):
            return self.elementwise(op, operands, attributes, call.rest, call.place, context)
        drafts: list[Node] = []
        for position in range(count):
            given = operands[position] if position < len(operands) else None
            if given is None or (self.absent(given) and position >= count - op.optional):
                drafts.append(DraftApplication(get_op("builtin.absent"), [], {}, call.place))
            else:
                drafts.append(self.term(given, None))
        return DraftApplication(op, drafts, attributes, call.place, call.rest)

    def node(self, op: Op, call: syntax.Invocation, context: SplatContext | None) -> Node:
        """What a node of `op` is read as, by the clause that this variant takes."""
        for argument in call.plain:
            if isinstance(argument, syntax.Name) and not self.names.known(argument.value):
                self.term(argument, None)  # which says that it is not declared
        if self.left:
            kinds = {attribute.name: attribute.kind for attribute in op.attributes}
            for name, value in call.keywords:
                self.values.introduce(value, kinds.get(name, "any"))
        found = meanings(op, call, self.names, left=self.left, waiting=self.waiting)
        conditions = [[self.values.value(condition) for condition in meaning.conditions] for meaning in found]
        form = self.choose(f"{NODE_FORM}{call.name} at {call.place}", *conditions) if len(found) > 1 else 0
        draft = self.term(found[form].body, context)
        draft.guards += conditions[form]
        return draft

    def attributes(self, op: Op, call: syntax.Invocation, positional: Sequence[syntax.Expression]) -> dict[str, Expression]:
        known = {attribute.name: attribute for attribute in op.attributes}
        functions = {name: value for name, value in call.keywords if name in payloads.roles(op)}
        given = self.given(op, call, positional, functions)
        result = {name: self.values.attribute(value, known[name].kind) for name, value in given.items() if name in known}
        result |= {name: self.values.function(value) for name, value in functions.items()}
        for role, word in op.functions:
            if word and role in functions and word not in result:
                result[word] = Literal(payloads.REGION)
        if call.rest is not None:
            if self.left:
                imply(self.names, call.rest, "rest", call.place)
            elif self.names.kinds.get(call.rest, Kind("")).word != "rest":
                bound = ", ".join(f"`..{name}`" for name, kind in self.names.kinds.items() if kind.word == "rest")
                help = f"bind it in a call of the left side; bound there: {bound or 'nothing of the kind'}"
                raise RuleError(f"`..{call.rest}` is not bound on the left", place=call.place, help=help)
            return result
        for name, attribute in known.items():
            if name not in result and attribute.required:
                help = f"add `{name}: ...`" + (", `_` for any, or ..attrs for all that remain" if self.left else "")
                raise RuleError(f"`{op.name}` needs the attribute `{name}`", place=call.place, help=help)
            result.setdefault(name, Literal(attribute.default))
        for role, word in op.functions:
            if role not in result and not word:
                help = f"add `{role}: ...`: a name, `lambda a, b: a + b`" + (
                    ", `_` for any, or ..attrs for all that remain" if self.left else ""
                )
                raise RuleError(f"`{op.name}` needs the function `{role}`", place=call.place, help=help)
            result.setdefault(role, Literal(None))
        return result

    def given(
        self, op: Op, call: syntax.Invocation, positional: Sequence[syntax.Expression], functions: Container[str]
    ) -> dict[str, syntax.Expression]:
        """The attributes that a call writes, by place or by name.

        Raises:
            RuleError: the op has no such attribute, it is written twice, or its value is of another kind.
        """
        known = {attribute.name: attribute for attribute in op.attributes}
        if len(positional) > len(known):
            listed = [each.name for each in op.attributes[:1] if each.kind in LISTS]
            help = f"write a list: {listed[0]}: [..]" if listed else "leave it out"
            help += f"; operands: {', '.join(op.operands) or 'none'}; attributes: {', '.join(known) or 'none'}"
            raise RuleError(f"`{call.name}` has too many arguments", place=positional[len(known)].place, help=help)
        given = dict(zip(known, positional, strict=False))
        for name, value in call.keywords:
            if name in functions:
                continue
            if name not in known and call.name not in self.names.op_variables:
                shown = node_op(op.name) if self.reads_nodes and op.dialect == "onnx" else None
                raise no_attribute(op.name, name, [each.name for each in (shown or op).attributes], value)
            if name in given:
                raise RuleError(
                    f"the attribute `{name}` is given twice", place=value.place, help="write it once, by its place or by its name"
                )
            given[name] = value
        for name, value in given.items():
            if name in known and not op.has("leaf"):
                check_kind(op.name, name, known[name].kind, value)
        return given
