"""The sugar of terms: splats, broadcasts, reductions, numbers of a given type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coset.ir.op import get_op
from coset.ir.place import Place
from coset.ir.registry import loaded_ops
from coset.ir.types import I64, DType, TensorType
from coset.rules import syntax
from coset.rules.algebra import Call, Expression, Listing, Literal, Ref, Scalar, Splice
from coset.rules.draft import DraftApplication, Hole, Node, SplatContext, type_of
from coset.rules.expression_text import text
from coset.rules.parts import parts
from coset.rules.shapes import shown_broadcast
from coset.rules.syntax import RuleError

if TYPE_CHECKING:
    from coset.rules.terms import Drafter

REDUCTIONS = {"sum": "add", "max": "maximum", "min": "minimum", "prod": "multiply"}
# how sugar is written: the numbers of its positional arguments, and an example
USAGES = {
    "splat": ((1, 1), "splat(v)"), "scalar": ((2, 2), "scalar(v, T)"), "full": ((3, 3), "full(v, [dims], T)"), "host": ((1, 1), "host(n)"),
    "bcast": ((1, 2), "bcast(x, [dims]) or bcast(x, [dims], axes: [..])"), "swap_last": ((1, 1), "swap_last(x)"),
    "get": ((2, 2), "get(x, index)"),
}  # fmt: skip


def sugar(drafter: Drafter, call: syntax.Invocation, context: SplatContext | None) -> Node:
    given = dict(call.keywords)
    counts, usage = USAGES.get(call.name, ((2, 2), f"{call.name}(x, axes)"))
    if not counts[0] <= len(call.arguments) <= counts[1] or set(given) - {"axes"} or call.rest is not None:
        raise RuleError(f"`{call.name}` is not written like this", place=call.place, help=f"write {usage}")
    first = call.plain[0]
    if call.name == "splat":
        return splat(drafter, first, context, call.place)
    if call.name == "host":
        attributes: dict[str, Expression] = {"dims": Listing((drafter.values.value(first),)), "type": Literal(TensorType(I64, ()))}
        return DraftApplication(get_op("builtin.dims"), [], attributes, call.place)
    if call.name == "bcast":
        return _bcast(drafter, call, given.get("axes"), context)
    if call.name in ("scalar", "full"):
        return _filled(drafter, call)
    operand = drafter.term(first, None)
    if call.name == "get":
        return DraftApplication(get_op("builtin.get"), [operand], {"index": drafter.values.attribute(call.plain[1], "int")}, call.place)
    if call.name == "swap_last":
        swapped = Call("swap_axes", (type_of(operand),))
        return DraftApplication(get_op("stablehlo.transpose"), [operand], {"permutation": swapped}, call.place)
    axes = drafter.values.attribute(call.plain[1], "ints")
    return DraftApplication(
        get_op("stablehlo.reduce"), [operand], {"dimensions": axes, "combiner": Literal(REDUCTIONS[call.name])}, call.place
    )


def _filled(drafter: Drafter, call: syntax.Invocation) -> Node:
    """`scalar(v, T)` and `full(v, shape, T)`: a number of a given type, alone or in every element of a shape."""
    dtype = drafter.values.attribute(call.plain[-1], "dtype")
    kind = drafter.names.kinds.get(dtype.name) if isinstance(dtype, Ref) else None
    another = (kind is not None and kind.word not in ("dtype", "any")) or isinstance(dtype, Listing)
    if another or (isinstance(dtype, Literal) and not isinstance(dtype.value, DType)):
        help = "write scalar(1, f32), or the name of a declared one"
        raise RuleError(f"the last argument of `{call.name}` is an element type", place=call.plain[-1].place, help=help)
    inner = DraftApplication(
        get_op("builtin.constant"), [], {"value": Scalar(drafter.values.scalar(call.plain[0], None), dtype)}, call.place
    )
    if call.name == "scalar":
        return inner
    shape = drafter.values.attribute(call.plain[1], "dims")
    fixed = isinstance(shape, Listing) and any(not isinstance(item, Splice) for item in shape.items)
    forms = [Call(comparison, (Call("len", (shape,)), Literal(0))) for comparison in ("!=", "==")]
    form = 0 if fixed else drafter.choose(f"rank of {text(shape)}", *([each] for each in forms))
    if not fixed:
        drafter.conditions[f"rank of {text(shape)}"] = forms[form]
    spread: dict[str, Expression] = {"shape": shape, "broadcast_dimensions": Literal(())}
    return inner if form else DraftApplication(get_op("stablehlo.broadcast_in_dim"), [inner], spread, call.place)


def splat(drafter: Drafter, expression: syntax.Expression, context: SplatContext | None, place: Place) -> Node:
    """A scalar in every element of the context's shape; at rank 0 the scalar itdrafter."""
    if context is None:
        help = _other_dialect(drafter, expression) or "write bcast(.., [dims]), or use it beside an operand whose shape it takes"
        raise RuleError("nothing says which shape this scalar takes", place=place, help=help)
    expression = drafter.resolve(expression)
    inner: Node
    if drafter.scalar(expression):
        value = Scalar(drafter.values.scalar(expression, drafter.known(expression)), Call("dtype", (context.type,)))
        inner = DraftApplication(get_op("builtin.constant"), [], {"value": value}, place)
    else:
        inner = drafter.term(expression, None)
    rank = Call("rank", (context.type,))
    spread_out, alone = Call("!=", (rank, Literal(0))), Call("==", (rank, Literal(0)))
    form = drafter.choose(f"rank of {context.key}", [spread_out], [alone]) if context.scalar is None else int(context.scalar)
    if form == 1:
        if context.scalar is None:
            inner.guards.append(alone)
        return inner
    spread: dict[str, Expression] = {"shape": Call("dims", (context.type,)), "broadcast_dimensions": Literal(())}
    guards: list[Expression] = [spread_out] if context.scalar is None else []
    return DraftApplication(get_op("stablehlo.broadcast_in_dim"), [inner], spread, place, guards=guards)


def _other_dialect(drafter: Drafter, expression: syntax.Expression) -> str:
    """What to do where a function of numbers was written and an op of its name was meant, whose dialect is not in use; else ""."""
    told = {part.value for part in syntax.walk(expression) if isinstance(part, syntax.Name)}
    if not isinstance(expression, syntax.Invocation) or not told & set(drafter.names.terms):
        return ""
    having = sorted({op.dialect for op in loaded_ops() if op.name == f"{op.dialect}.{expression.name}"})
    if not having:
        return ""
    return f"`{expression.name}` is a function of numbers here; for the op add {' or '.join(f'`use {name}`' for name in having)}"


def _bcast(drafter: Drafter, call: syntax.Invocation, axes: syntax.Expression | None, context: SplatContext | None) -> Node:
    first = call.plain[0]
    known = drafter.known(first)
    if known is not None or drafter.scalar(first):
        return splat(drafter, first, context, call.place)
    operand = drafter.term(first, None)
    if len(call.arguments) == 1:
        if context is None:
            raise RuleError("nothing says which shape this takes", place=call.place, help="write bcast(x, [dims])")
        shape: Expression = Call("dims", (context.type,))
        if axes is None:
            return _numpy(drafter, operand, shape, call.place)
    else:
        shape = drafter.values.attribute(call.plain[1], "dims")
        if axes is None and any(isinstance(part, Call) and part.function == "broadcast" for part in parts(shape)):
            return _numpy(drafter, operand, shape, call.place)
    if axes is not None:
        dimensions = drafter.values.attribute(axes, "ints")
        return DraftApplication(
            get_op("stablehlo.broadcast_in_dim"), [operand], {"shape": shape, "broadcast_dimensions": dimensions}, call.place
        )
    total = Call("len", (shape,))
    ones = _literal_ones(drafter, operand)
    if ones is None:
        dimensions = Call("range", (Call("-", (total, Call("rank", (type_of(operand),)))), total))
        return DraftApplication(
            get_op("stablehlo.broadcast_in_dim"), [operand], {"shape": shape, "broadcast_dimensions": dimensions}, call.place
        )
    kept, distances = ones
    places = Listing(tuple(minus(total, distance) for distance in distances))
    squeezed = DraftApplication(get_op("stablehlo.reshape"), [operand], {"shape": Listing(tuple(kept))}, call.place)
    return DraftApplication(get_op("stablehlo.broadcast_in_dim"), [squeezed], {"shape": shape, "broadcast_dimensions": places}, call.place)


def _literal_ones(drafter: Drafter, operand: Node) -> tuple[list[Expression], list[int]] | None:
    """For a variable with dims that are written 1: the other dims and their distances from the end."""
    if not isinstance(operand, Hole):
        return None
    kind = drafter.names.terms[operand.name].kind
    assert isinstance(kind, syntax.TensorKind)
    if not any(isinstance(dim, syntax.Number) and dim.value == 1 for dim in kind.dims):
        return None
    if any(isinstance(dim, syntax.Spread) for dim in kind.dims):
        raise RuleError("bcast of a size-1 dim beside a pack", place=operand.place, help="reshape the dim away first")
    items = [(len(kind.dims) - i, dim) for i, dim in enumerate(kind.dims) if not (isinstance(dim, syntax.Number) and dim.value == 1)]
    return [drafter.values.value(dim) for _, dim in items if not isinstance(dim, syntax.Spread)], [distance for distance, _ in items]


def _numpy(drafter: Drafter, operand: Node, shape: Expression, place: Place) -> Node:
    """`operand` broadcast to `shape` numpy's way, when its own shape is open: as it is, spread, or squeezed and spread."""
    if drafter.reads_nodes:
        found = shown_broadcast(drafter, operand, shape, place)
        if found is not None:
            return found
    own = type_of(operand)
    expanding = Call("expanding", (own, shape))
    none = Call("==", (expanding, Literal(())))
    offset = Call("-", (Call("len", (shape,)), Call("rank", (own,))))
    same: list[Expression] = [Call("==", (Call("dims", (own,)), shape))]
    spread: list[Expression] = [none, Call("!=", (Call("rank", (own,)), Call("len", (shape,))))]
    squeezed: list[Expression] = [Call("not", (none,))]
    form = drafter.choose(f"{operand} to {text(shape)}", same, spread, squeezed)
    if form == 0:
        if isinstance(operand, DraftApplication):
            operand.late += same
        else:
            operand.guards += same
        return operand
    axes: Expression = Call("range", (offset, Call("len", (shape,))))
    if form == 2:
        kept = Call("without", (Call("rank", (own,)), expanding))
        axes = Call("permute", (axes, kept))
        operand = DraftApplication(get_op("stablehlo.reshape"), [operand], {"shape": Call("permute", (Call("dims", (own,)), kept))}, place)
    attributes = {"shape": shape, "broadcast_dimensions": axes}
    return DraftApplication(get_op("stablehlo.broadcast_in_dim"), [operand], attributes, place, guards=spread if form == 1 else squeezed)


def minus(value: Expression, number: int) -> Expression:
    return Call("-", (value, Literal(number)))
