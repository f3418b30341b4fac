"""Two drafts and what was declared, as one compiled `Rule`: indices, typed attributes, conditions, an order of evaluation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from coset.ir.errors import Place
from coset.ir.types import DTYPES
from coset.rules import syntax
from coset.rules.algebra import Call, Expression, Listing, Literal, Ref, Scalar, Splice, TypeOf
from coset.rules.names import Names
from coset.rules.pattern import Application, Pattern, Variable, applications, variables
from coset.rules.rule import Attributes, Compiled, TypePattern
from coset.rules.terms import Draft, Hole, Node
from coset.rules.values import Values


@dataclass(frozen=True)
class Side:
    """One finished side."""

    pattern: Pattern
    attributes: tuple[Attributes, ...]
    places: tuple[Place, ...]
    guards: tuple[tuple[Expression, ...], ...]
    loose: tuple[Expression, ...]  # guards of a root that is a variable


def finish(left: Node, right: Node) -> tuple[Side, Side]:
    """Both sides with preorder indices; types of drafts become references by index."""
    indices: dict[Draft, TypeOf] = {}
    for kind, root in (("left", left), ("right", right)):
        for index, draft in enumerate(_preorder(root)):
            assert draft not in indices, "a draft occurs twice"
            indices[draft] = TypeOf(kind, index)
    return _side(left, indices), _side(right, indices)


def _preorder(node: Node) -> Iterator[Draft]:
    if isinstance(node, Draft):
        yield node
        for operand in node.operands:
            yield from _preorder(operand)


def _side(root: Node, indices: dict[Draft, TypeOf]) -> Side:
    def pattern(node: Node) -> Pattern:
        if isinstance(node, Hole):
            return Variable(node.name)
        return Application(node.op, tuple(pattern(operand) for operand in node.operands), indices[node].key)

    drafts = list(_preorder(root))
    attributes = tuple(
        Attributes(tuple((name, rewrite(value, indices)) for name, value in sorted(draft.attributes.items())), draft.rest)
        for draft in drafts
    )
    guards = tuple(
        tuple(
            rewrite(guard, indices)
            for guard in (*draft.guards, *(g for operand in draft.operands if isinstance(operand, Hole) for g in operand.guards))
        )
        for draft in drafts
    )
    loose = tuple(rewrite(guard, indices) for guard in root.guards) if isinstance(root, Hole) else ()
    return Side(pattern(root), attributes, tuple(draft.place for draft in drafts), guards, loose)


def rewrite(expression: Any, indices: dict[Draft, TypeOf]) -> Any:
    """`expression` with every reference to a draft replaced."""
    if isinstance(expression, TypeOf):
        return indices[expression.key] if expression.kind == "draft" else expression
    if isinstance(expression, Call):
        return Call(expression.function, tuple(rewrite(argument, indices) for argument in expression.arguments))
    if isinstance(expression, Listing):
        return Listing(tuple(rewrite(item, indices) for item in expression.items))
    if isinstance(expression, Splice):
        return Splice(rewrite(expression.value, indices))
    if isinstance(expression, Scalar):
        return Scalar(rewrite(expression.value, indices), rewrite(expression.dtype, indices))
    return expression


def parts(expression: Any) -> Iterator[Any]:
    """`expression` and everything in it."""
    yield expression
    inside: Sequence[Any] = ()
    if isinstance(expression, Call):
        inside = expression.arguments
    elif isinstance(expression, Listing):
        inside = expression.items
    elif isinstance(expression, Splice):
        inside = (expression.value,)
    elif isinstance(expression, Scalar):
        inside = (expression.value, expression.dtype)
    for part in inside:
        yield from parts(part)


def type_pattern(kind: syntax.TensorKind, names: Names) -> TypePattern:
    """The declared type of a term variable."""
    values = Values(names, left=True)
    dims = values.value(syntax.Brackets(kind.dims, kind.place))
    assert isinstance(dims, Listing)
    return TypePattern(Literal(DTYPES[kind.dtype]) if kind.dtype in DTYPES else Ref(kind.dtype), dims)


def compiled(left: Side, right: Side, conditions: Sequence[Expression], names: Names) -> tuple[tuple[str, ...], Compiled]:
    """The variables of the left side, and what `Rule.decide` reads."""
    found = variables(left.pattern)
    types = []
    for name in found:
        kind = names.terms[name].kind
        assert isinstance(kind, syntax.TensorKind)
        types.append(type_pattern(kind, names))
    guards = tuple(guard for own in left.guards for guard in own)
    written = Compiled(
        tuple(types), left.attributes, right.attributes, (*conditions, *guards, *right.loose), dict(names.kinds), left.places, right.places,
        right.guards, _order(right, "right"), _order(left, "left"),
    )  # fmt: skip
    return found, written


def _order(side: Side, kind: str) -> tuple[int, ...]:
    """The applications, each after its operands and after those whose types its attributes and guards read."""
    nodes = list(applications(side.pattern))
    order: list[int] = []
    state: dict[int, bool] = {}

    def visit(index: int) -> None:
        if index in state:
            assert state[index], "attributes depend on each other in a circle"
            return
        state[index] = False
        needed = [operand.index for operand in nodes[index].operands if isinstance(operand, Application)]
        expressions = [value for _, value in side.attributes[index].items] + (list(side.guards[index]) if kind == "right" else [])
        needed += [p.key for e in expressions for p in parts(e) if isinstance(p, TypeOf) and p.kind == kind]
        for other in needed:
            if other != index:
                visit(other)
        state[index] = True
        order.append(index)

    for index in range(len(nodes)):
        visit(index)
    return tuple(order)


def bound_names(found: Sequence[str], written: Compiled) -> set[str]:
    """The names that the left side, or an equality among the conditions, gives a value."""
    expressions: list[Any] = [e for pattern in written.types for e in (pattern.dtype, pattern.dims)]
    expressions += [value for attributes in written.left for _, value in attributes.items]
    expressions += [c for c in written.conditions if isinstance(c, Call) and c.function == "=="]
    names = {part.name for e in expressions for part in parts(e) if isinstance(part, Ref)}
    return names | {attributes.rest for attributes in written.left if attributes.rest is not None} | set(found)


def needed_names(right: Side, written: Compiled) -> set[str]:
    """The names that the right side and the conditions read."""
    expressions: list[Any] = [value for attributes in right.attributes for _, value in attributes.items]
    expressions += [*written.conditions, *(guard for own in right.guards for guard in own)]
    names = {part.name for e in expressions for part in parts(e) if isinstance(part, Ref)}
    names |= {part.key for e in expressions for part in parts(e) if isinstance(part, TypeOf) and part.kind == "variable"}
    return names | {attributes.rest for attributes in right.attributes if attributes.rest is not None} | set(variables(right.pattern))
