"""Parse trees to terms, types and values of the surface syntax."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from lark import Token, Tree

from coset.ir.place import Place, lines_of
from coset.rules import syntax
from coset.rules.syntax import RuleError


class TermReader:
    """Reads what stands inside entries; mistakes that need no analysis are collected, so that one run reports them all."""

    def __init__(self, text: str, path: str) -> None:
        self.text, self.path, self.lines = text, path, lines_of(text)
        self.errors: list[RuleError] = []

    def place(self, node: Tree[Token] | Token) -> Place:
        if isinstance(node, Token):
            line, column, width = node.line or 1, node.column or 1, len(node)
        else:
            meta = node.meta
            if meta.empty:
                return Place(self.path)
            line, column = meta.line, meta.column
            end = meta.end_column if meta.end_line == line else len(self.lines[line - 1]) + 1
            width = max(1, end - column)
        return Place(self.path, line, column, self.lines[line - 1], width)

    def refuse(self, message: str, node: Tree[Token] | Token, help: str = "") -> None:
        self.errors.append(RuleError(message, place=self.place(node), help=help))

    def kind(self, tree: Any) -> syntax.TensorKind | syntax.ValueKind:
        place = self.place(tree)
        if tree.data == "tensor":
            fact = str(tree.children[0] or "")
            dims = () if tree.children[2] is None else tuple(self.item(dim) for dim in tree.children[2].children)
            return syntax.TensorKind(str(tree.children[1]), dims, fact, place)
        if tree.data == "parametric":
            arguments = tuple(self.expression(argument) for argument in tree.children[1].children)
            return syntax.ValueKind(str(tree.children[0]), arguments, place)
        if tree.data == "fact_kind":
            self.refuse(f"`{tree.children[0]}` belongs before a tensor type", tree, f"write {tree.children[0]} F[N]")
        return syntax.ValueKind(str(tree.children[-1]), (), place)

    def item(self, tree: Any) -> Any:
        if tree.data == "any_dims":
            return syntax.Spread(None, self.place(tree))
        if tree.data == "splice":
            return syntax.Spread(self.expression(tree.children[0]), self.place(tree))
        return self.expression(tree)

    def expression(self, tree: Any) -> Any:
        place, kind, children = self.place(tree), str(tree.data), tree.children
        if kind in ("number", "negative"):
            value = Decimal(str(children[0]))
            return syntax.Number(value if kind == "number" else value.copy_negate(), place)
        if kind == "string":
            return syntax.Text(str(children[0])[1:-1], place)
        if kind == "name":
            return syntax.Name(str(children[0]), place)
        if kind == "negative_name":
            return syntax.Operation("negate", (syntax.Name(str(children[0]), place),), place)
        if kind == "list":
            dims = children[0].children if children[0] is not None else []
            return syntax.Brackets(tuple(self.item(dim) for dim in dims), place)
        if kind == "literal_list":
            return syntax.Brackets(tuple(self.expression(child) for child in children if child is not None), place)
        if kind == "comprehension":
            return self.comprehension(tree)
        if kind == "function":
            return self.function(tree)
        if kind in ("conditional", "tuple"):
            return syntax.Operation("if" if kind == "conditional" else kind, tuple(map(self.expression, children)), place)
        if kind == "call":
            return self.call(tree)
        if kind == "negate":
            inner = self.expression(children[1])
            if isinstance(inner, syntax.Number):
                return syntax.Number(inner.value.copy_negate(), place)
            return syntax.Operation(kind, (inner,), place)
        if kind in ("sum", "product", "comparison"):
            return self.chain(children, place)
        if kind in ("item", "slice"):
            return syntax.Operation(kind, tuple(None if child is None else self.expression(child) for child in children), place)
        return self.joined(tree)

    def joined(self, tree: Any) -> Any:
        """Conditions that `and`, `or`, `not` or `in` join, from the left."""
        place, kind = self.place(tree), str(tree.data)
        name = {"negation_of": "not", "conjunction": "and", "disjunction": "or", "contained": "in"}.get(kind)
        if name is None:
            self.refuse(f"a {kind} does not belong here", tree, "write a name, a number or a term")
            return syntax.Name("_", place)
        operands = [self.expression(child) for child in tree.children]
        result = operands[0] if len(operands) > 1 else syntax.Operation(name, (operands[0],), place)
        for operand in operands[1:]:
            result = syntax.Operation(name, (result, operand), place)
        return result

    def comprehension(self, tree: Tree[Token]) -> syntax.Comprehension:
        item, bound, lists, condition = tree.children
        names = tuple(str(name) for name in bound.children)  # type: ignore[union-attr]
        found = tuple(self.expression(each) for each in lists.children)  # type: ignore[union-attr]
        if len(names) != len(found) or len(set(names)) != len(names):
            self.refuse("each list of a comprehension has a name of its own", tree, "write [a + b for a, b in p, q]")
        given = None if condition is None else self.expression(condition)
        return syntax.Comprehension(self.expression(item), names, found, given, self.place(tree))

    def function(self, tree: Tree[Token]) -> syntax.Lambda:
        bound, body = tree.children
        names = tuple(str(name) for name in bound.children)  # type: ignore[union-attr]
        if len(set(names)) != len(names):
            self.refuse("each parameter of a function has a name of its own", tree, "write lambda a, b: a + b")
        text = " ".join(self.text[tree.meta.start_pos : tree.meta.end_pos].split())
        return syntax.Lambda(names, self.expression(body), text, self.place(tree))

    def chain(self, children: list[Any], place: Place) -> Any:
        """`a + b - c` to the left; a comparison is a chain of one."""
        result = self.expression(children[0])
        for operator, operand in zip(children[1::2], children[2::2], strict=True):
            if operator is not None:
                result = syntax.Operation(str(operator), (result, self.expression(operand)), place)
        return result

    def call(self, tree: Any) -> syntax.Invocation:
        positional: list[Any] = []
        keywords: list[tuple[str, Any]] = []
        rest: str | None = None
        for argument in tree.children[1].children if tree.children[1] is not None else []:
            if argument.data == "keyword":
                keywords.append((str(argument.children[0]), self.expression(argument.children[1])))
            elif argument.data == "rest":
                rest = str(argument.children[1])
            elif argument.data == "splice":
                positional.append(self.item(argument))
            elif keywords:
                self.refuse("an operand after a keyword", argument, "operands come first, then positional attributes, then keywords")
            else:
                positional.append(self.expression(argument))
        return syntax.Invocation(str(tree.children[0]), tuple(positional), tuple(keywords), rest, self.place(tree))


def trees(tree: Any) -> list[Tree[Token]]:
    """The children that are no tokens."""
    return [child for child in tree.children if isinstance(child, Tree)]


def token(tree: Tree[Token], type: str) -> Token:
    """The first child that is a token of this type."""
    return next(child for child in tree.children if isinstance(child, Token) and child.type == type)
