"""Broadcasts of ONNX's ops in rules: which form each has, as far as the declared shapes show it.

A program has a broadcast in one of many forms, and a rule for each would be too many. So a rule means the one that its shapes show: dims
that are written 1 are repeated, shapes of fewer dims are spread, and what has the shape of the result stays as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coset.ir.op import get_op
from coset.ir.place import Place
from coset.rules import syntax
from coset.rules.algebra import Call, Expression, Listing, Literal, Splice, TypeOf
from coset.rules.declared_shapes import is_named
from coset.rules.draft import DraftApplication, Hole, Node, type_of
from coset.rules.expression_text import text
from coset.rules.names import Names
from coset.rules.values import ValueResolver

if TYPE_CHECKING:
    from coset.rules.terms import Drafter

SHAPED = ("stablehlo.reshape", "stablehlo.broadcast_in_dim")
LIKE_FIRST = frozenset(f"onnx.{name}" for name in ("Conv", "ConvTranspose", "MaxPool", "AveragePool", "LpPool", "Softmax", "LogSoftmax"))


def shown_broadcast(drafter: Drafter, operand: Node, shape: Expression, place: Place) -> Node | None:
    """`operand` broadcast to `shape` in the form that the shapes show; None where they show none."""
    whole, guards = _common(shape, drafter.names)
    if whole is None:
        return None
    own = _shape_of(operand, drafter.names)
    if text(own) == text(whole):
        (operand.late if isinstance(operand, DraftApplication) else operand.guards).extend(guards)
        return operand
    reduced = _without_kept_dims(operand, whole)
    if reduced is not None:
        return _spread(reduced[0], whole, reduced[1], place)
    if not isinstance(own, Listing) or any(isinstance(item, Splice) for item in own.items):
        return None
    ones = [distance for distance, item in enumerate(reversed(own.items), 1) if item == Literal(1)]
    kept = [(distance, item) for distance, item in zip(range(len(own.items), 0, -1), own.items, strict=True) if distance not in ones]
    total = Call("len", (whole,))
    if ones:
        operand = DraftApplication(get_op("stablehlo.reshape"), [operand], {"shape": Listing(tuple(item for _, item in kept))}, place)
    if not kept and not _has_dim(whole):
        return None  # a scalar is not spread where the rank is 0
    return _spread(operand, whole, Listing(tuple(Call("-", (total, Literal(distance))) for distance, _ in kept)), place)


def _spread(operand: Node, shape: Expression, axes: Expression, place: Place) -> Node:
    given = {"shape": shape, "broadcast_dimensions": axes}
    return DraftApplication(get_op("stablehlo.broadcast_in_dim"), [operand], given, place)


def _has_dim(shape: Expression) -> bool:
    if isinstance(shape, Listing):
        return any(not isinstance(item, Splice) for item in shape.items)
    return isinstance(shape, Call)  # that of an op of which the rank was looked at


def _shape_of(node: Node, names: Names) -> Expression:
    """The shape of a draft: what its variable declares, what its attribute says, that of the operands of an elementwise op; else that of
    the draft, whatever it is."""
    if isinstance(node, Hole):
        kind = names.terms[node.name].kind
        assert isinstance(kind, syntax.TensorKind)
        if all(map(is_named, kind.dims)):
            return ValueResolver(names, left=False).value(syntax.Brackets(kind.dims, kind.place))
    elif node.op.name in SHAPED:
        return _common(node.attributes["shape"], names)[0] or node.attributes["shape"]
    elif node.op.has("elementwise"):
        found = {text(shape): shape for shape in (_shape_of(operand, names) for operand in node.operands)}
        if len(found) == 1:
            return next(iter(found.values()))
    return Call("dims", (type_of(node),))


def _rank(shape: Expression, names: Names) -> int | None:
    """The number of dims of a shape where it is the same for all instances."""
    if isinstance(shape, Listing):
        return None if any(isinstance(item, Splice) for item in shape.items) else len(shape.items)
    if isinstance(shape, Call) and shape.function == "ones_at":
        return _rank(shape.arguments[0], names)
    node = shape.arguments[0].key if isinstance(shape, Call) and isinstance(shape.arguments[0], TypeOf) else None
    if isinstance(node, DraftApplication) and (node.op.has("elementwise") or node.op.name in LIKE_FIRST):
        return _rank(_shape_of(node.operands[0], names), names)
    return None


def _common(shape: Expression, names: Names) -> tuple[Expression | None, list[Expression]]:
    """The common shape of shapes that are broadcast, and what must hold for it; None where they do not show it."""
    if isinstance(shape, Call) and shape.function == "dims" and isinstance(shape.arguments[0], TypeOf):
        node = shape.arguments[0].key
        return (_shape_of(node, names) if isinstance(node, DraftApplication) else shape), []
    if not isinstance(shape, Call) or shape.function != "broadcast":
        return shape, []
    found = [_common(each, names)[0] for each in shape.arguments]
    parts = [each for each in found if each is not None]
    if len(parts) < len(found):
        return None, []
    whole = parts[0]
    for each in parts[1:]:
        common = _of_two(whole, each, names)
        if common is None:
            return None, []
        whole = common
    guard = Call("==", (Call("broadcast", tuple(parts)), whole))
    return whole, [guard] if any(_is_open(each) for each in parts) and len({text(each) for each in parts}) > 1 else []


def _is_open(shape: Expression) -> bool:
    """Whether a shape is that of some op: nothing is declared of it."""
    return isinstance(shape, Call) and shape.function == "dims"


def _of_two(first: Expression, second: Expression, names: Names) -> Expression | None:
    if text(first) == text(second):
        return first
    for whole, other in ((first, second), (second, first)):
        if isinstance(other, Call) and other.function == "ones_at" and text(other.arguments[0]) == text(whole):
            return whole
    if isinstance(first, Listing) and isinstance(second, Listing):
        return _of_lists(first, second)
    if not _is_open(first) and not _is_open(second):
        return None
    whole, other = (first, second) if _is_open(first) else (second, first)
    if isinstance(other, Listing) and not any(isinstance(item, Splice) for item in other.items):
        rank = _rank(whole, names)
        smaller = Literal(1) in other.items or (rank is None and len(other.items) < 2) or (rank is not None and len(other.items) < rank)
        return whole if smaller else other
    return whole if _is_open(other) else other  # of one shape: a broadcast between two ops is not looked for


def _of_lists(first: Listing, second: Listing) -> Expression | None:
    """The common shape of two lists, the last dims of which are no packs."""
    longer, shorter = (first.items, second.items) if len(first.items) >= len(second.items) else (second.items, first.items)
    count = len(longer) - len(shorter)
    if any(isinstance(item, Splice) for item in (*shorter, *longer[count:])):
        return None
    last = [_dim(a, b) for a, b in zip(longer[count:], shorter, strict=True)]
    return None if None in last else Listing((*longer[:count], *last))


def _dim(a: Any, b: Any) -> Any:
    if text(a) == text(b) or b == Literal(1):
        return a
    return b if a == Literal(1) else None


def _without_kept_dims(operand: Node, shape: Expression) -> tuple[Node, Expression] | None:
    """For a reduction that keeps its dims as dims of 1, broadcast to the shape that was reduced: the reduction itself, which has them not,
    and the axes where its dims go. None for another operand."""
    own = operand.attributes.get("shape") if isinstance(operand, DraftApplication) and operand.op.name == "stablehlo.reshape" else None
    if not isinstance(own, Call) or own.function != "ones_at" or text(own.arguments[0]) != text(shape):
        return None
    assert isinstance(operand, DraftApplication)
    return operand.operands[0], Call("without", (Call("len", (shape,)), own.arguments[1]))
