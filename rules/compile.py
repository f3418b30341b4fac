"""Two drafts and what was declared, as one compiled `Rule`: indices, typed attributes, conditions, an order of evaluation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from coset.ir.place import Place
from coset.ir.types import DTYPES
from coset.rules import syntax
from coset.rules.algebra import Call, Expression, Listing, Literal, MappedList, Ref, Scalar, Splice, TypeOf, Wild
from coset.rules.draft import DraftApplication, Hole, Node
from coset.rules.equation import Attributes, Compiled, TypePattern
from coset.rules.names import Names
from coset.rules.parts import parts, variables
from coset.rules.pattern import Application, Pattern, Variable, applications
from coset.rules.solving import SOLVED
from coset.rules.syntax import RuleError
from coset.rules.values import ValueResolver


@dataclass(frozen=True)
class CompiledSide:
    """One finished side."""

    pattern: Pattern
    attributes: tuple[Attributes, ...]
    places: tuple[Place, ...]
    guards: tuple[tuple[Expression, ...], ...]
    loose: tuple[Expression, ...]  # guards of a root that is a variable


def finish(left: Node, right: Node) -> tuple[CompiledSide, CompiledSide]:
    """Both sides with preorder indices; types of drafts become references by index."""
    indices = Indices()
    for kind, root in (("left", left), ("right", right)):
        for index, draft in enumerate(_preorder(root)):
            assert draft not in indices.drafts, "a draft occurs twice"
            indices.drafts[draft] = TypeOf(kind, index)
            indices.texts.setdefault(draft.text, TypeOf(kind, index))
    return _side(left, indices), _side(right, indices)


@dataclass
class Indices:
    """References to drafts by index. One that was made for its type only is found by its text."""

    drafts: dict[DraftApplication, TypeOf] = field(default_factory=dict)
    texts: dict[str, TypeOf] = field(default_factory=dict)

    def of(self, draft: DraftApplication) -> TypeOf:
        """The reference to `draft`.

        Raises:
            RuleError: neither it nor one like it is in the rule.
        """
        found = self.drafts.get(draft) or self.texts.get(draft.text)
        if found is None:
            help = "types of variables and of terms that the rule makes are known"
            raise RuleError("the type of a term that does not occur", place=draft.place, help=help)
        return found


def _preorder(node: Node) -> Iterator[DraftApplication]:
    if isinstance(node, DraftApplication):
        yield node
        for operand in node.operands:
            yield from _preorder(operand)


def _side(root: Node, indices: Indices) -> CompiledSide:
    def pattern(node: Node) -> Pattern:
        if isinstance(node, Hole):
            return Variable(node.name)
        return Application(node.op, tuple(pattern(operand) for operand in node.operands), indices.of(node).key)

    drafts = list(_preorder(root))
    attributes = tuple(
        Attributes(tuple((name, rewrite(value, indices)) for name, value in sorted(draft.attributes.items())), draft.rest)
        for draft in drafts
    )
    guards = tuple(
        tuple(
            rewrite(guard, indices)
            for guard in (*draft.guards, *(g for o in draft.operands for g in (o.guards if isinstance(o, Hole) else o.late)))
        )
        for draft in drafts
    )
    loose = tuple(rewrite(guard, indices) for guard in root.guards) if isinstance(root, Hole) else ()
    return CompiledSide(pattern(root), attributes, tuple(draft.place for draft in drafts), guards, loose)


def rewrite(expression: Any, indices: Indices) -> Any:
    """`expression` with every reference to a draft replaced."""
    if isinstance(expression, TypeOf):
        return indices.of(expression.key) if expression.kind == "draft" else expression
    if isinstance(expression, Call):
        return Call(expression.function, tuple(rewrite(argument, indices) for argument in expression.arguments))
    if isinstance(expression, Listing):
        return Listing(tuple(rewrite(item, indices) for item in expression.items))
    if isinstance(expression, MappedList):
        item, condition = rewrite(expression.item, indices), rewrite(expression.condition, indices)
        return MappedList(item, expression.names, tuple(rewrite(each, indices) for each in expression.lists), condition)
    if isinstance(expression, Splice):
        return Splice(rewrite(expression.value, indices))
    if isinstance(expression, Scalar):
        return Scalar(rewrite(expression.value, indices), rewrite(expression.dtype, indices))
    return expression


def type_pattern(kind: syntax.TensorKind, names: Names) -> TypePattern:
    """The declared type of a term variable."""
    values = ValueResolver(names, left=True)
    dims = values.value(syntax.Brackets(kind.dims, kind.place))
    assert isinstance(dims, Listing)
    dtype = Literal(DTYPES[kind.dtype]) if kind.dtype in DTYPES else Wild() if kind.dtype == "_" else Ref(kind.dtype)
    return TypePattern(dtype, dims)


def compiled(left: CompiledSide, right: CompiledSide, conditions: Sequence[Expression], names: Names) -> tuple[tuple[str, ...], Compiled]:
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
        right.guards, _order(right, "right"), _order(left, "left"), (),
    )  # fmt: skip
    return found, written


def _order(side: CompiledSide, kind: str) -> tuple[int, ...]:
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


def types_read(written: Compiled) -> tuple[int, ...]:
    """The applications of the left side whose types are read, by index; the root's is compared in any case."""
    expressions: list[Any] = [e for pattern in (*written.types, *written.result) for e in (pattern.dtype, pattern.dims)]
    expressions += [value for attributes in (*written.left, *written.right) for _, value in attributes.items]
    expressions += [*written.conditions, *(guard for own in written.guards for guard in own)]
    found = {part.key for e in expressions for part in parts(e) if isinstance(part, TypeOf) and part.kind == "left"}
    return tuple(sorted(found | {0}))


def determined(found: Sequence[str], written: Compiled) -> set[str]:
    """The names that have a value once the equations of the left side are solved, as `Rule.decide` does it: in any order, each
    read from left to right where its names are known, else from right to left where `solving.match` can."""
    equations: list[Any] = [e for pattern in written.types for e in (pattern.dtype, pattern.dims)]
    equations += [value for attributes in written.left for _, value in attributes.items]
    pairs = [(c.arguments[0], c.arguments[1]) for c in written.conditions if isinstance(c, Call) and c.function == "=="]
    known = set(found) | {attributes.rest for attributes in written.left if attributes.rest is not None}
    while True:
        late = [equation for equation in equations if not _read(equation, known)]
        open_pairs = [(a, b) for a, b in pairs if not ((_free(b) <= known and _read(a, known)) or (_free(a) <= known and _read(b, known)))]
        if len(late) == len(equations) and len(open_pairs) == len(pairs):
            return known
        equations, pairs = late, open_pairs


def readable(found: Sequence[str], written: Compiled) -> bool:
    """True when the left side determines every name in it."""
    known = determined(found, written)
    expressions = [value for attributes in written.left for _, value in attributes.items]
    expressions += [e for pattern in written.types for e in (pattern.dtype, pattern.dims)]
    return all(_free(expression) <= known for expression in (*expressions, *written.conditions))


def _free(expression: Any) -> set[str]:
    return {part.name for part in parts(expression) if isinstance(part, Ref)}


def _read(pattern: Any, known: set[str]) -> bool:
    """Whether `pattern` can be matched with a value now; the names that this binds become known."""
    free = _free(pattern)
    if free <= known and not any(isinstance(part, Wild) for part in parts(pattern)):
        return True
    if isinstance(pattern, Ref):
        known.add(pattern.name)
        return True
    if isinstance(pattern, Wild):
        return True
    if isinstance(pattern, Scalar):
        if isinstance(pattern.dtype, Ref):  # a constant says its type
            known.add(pattern.dtype.name)
        return _free(pattern.dtype) <= known and (isinstance(pattern.value, Wild) or _read(pattern.value, known))
    if isinstance(pattern, Listing):
        spliced = [item for item in pattern.items if isinstance(item, Splice) and (item.value is None or not _free(item.value) <= known)]
        if len(spliced) > 1:
            return False
        inner = [item.value if isinstance(item, Splice) else item for item in pattern.items]
        late = [each for each in inner if each is not None and not _read(each, known)]
        return not late
    if isinstance(pattern, Call) and pattern.function in SOLVED:
        unknown = [argument for argument in pattern.arguments if not _free(argument) <= known]
        return len(unknown) == 1 and (pattern.function != "%" or unknown[0] is pattern.arguments[0]) and _read(unknown[0], known)
    return False


def needed_names(right: CompiledSide, written: Compiled) -> set[str]:
    """The names that the right side and the conditions read."""
    expressions: list[Any] = [value for attributes in right.attributes for _, value in attributes.items]
    expressions += [*written.conditions, *(guard for own in right.guards for guard in own)]
    names = {part.name for e in expressions for part in parts(e) if isinstance(part, Ref)}
    names |= {part.key for e in expressions for part in parts(e) if isinstance(part, TypeOf) and part.kind == "variable"}
    return names | {attributes.rest for attributes in right.attributes if attributes.rest is not None} | set(variables(right.pattern))
