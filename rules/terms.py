"""One side of an entry as a draft: applications of ops with an expression for each attribute; sugar is gone here.

Where one way of writing has several normal forms (a splat is a bare constant at rank 0, an optional operand is there or
not), `Drafter.choose` asks for a decision, and the caller tries each: the variants of a rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Union

from coset.ir.errors import Place
from coset.ir.op import Op, get_op
from coset.ir.types import I64, TensorType
from coset.rules import syntax
from coset.rules.algebra import Call, Expression, Listing, Literal, Scalar, Splice, TypeOf, parts
from coset.rules.names import SUGAR, Names, imply
from coset.rules.rule import Kind
from coset.rules.syntax import RuleError
from coset.rules.values import Values

BINARY = {"+": "stablehlo.add", "-": "stablehlo.subtract", "*": "stablehlo.multiply", "/": "stablehlo.divide"}
REDUCTIONS = {"sum": "add", "max": "maximum", "min": "minimum", "prod": "multiply"}
# (op, position of the operand) -> the value that makes the op the identity in its other operand
IDENTITIES = {
    ("stablehlo.add", 0): 0, ("stablehlo.add", 1): 0, ("stablehlo.subtract", 1): 0,
    ("stablehlo.multiply", 0): 1, ("stablehlo.multiply", 1): 1,
    ("stablehlo.divide", 1): 1, ("stablehlo.maximum", 0): Decimal("-Infinity"), ("stablehlo.maximum", 1): Decimal("-Infinity"),
    ("stablehlo.minimum", 0): Decimal("Infinity"), ("stablehlo.minimum", 1): Decimal("Infinity"),
}  # fmt: skip

# how sugar is written: the numbers of its positional arguments, and an example
USAGES = {
    "splat": ((1, 1), "splat(v)"), "scalar": ((2, 2), "scalar(v, T)"), "full": ((3, 3), "full(v, [dims], T)"), "host": ((1, 1), "host(n)"),
    "bcast": ((1, 2), "bcast(x, [dims]) or bcast(x, [dims], axes: [..])"), "swap_last": ((1, 1), "swap_last(x)"),
    "get": ((2, 2), "get(x, index)"),
}  # fmt: skip


class NeedChoice(Exception):
    """A place with `count` forms that is not decided yet."""

    def __init__(self, key: str, count: int) -> None:
        super().__init__(key)
        self.key, self.count = key, count


@dataclass(eq=False)
class Hole:
    """A term variable."""

    name: str
    place: Place
    guards: list[Expression] = field(default_factory=list)


@dataclass(eq=False)
class Draft:
    """An application that has no index yet. `guards` must hold where this form of it is used."""

    op: Op
    operands: list["Node"]
    attributes: dict[str, Expression]
    place: Place
    rest: str | None = None
    guards: list[Expression] = field(default_factory=list)


Node = Union[Hole, Draft]


@dataclass(frozen=True)
class Context:
    """The type that a splat takes: that of a sibling. `scalar` says whether its rank is 0, None when that depends."""

    type: TypeOf
    key: str
    scalar: bool | None


class Drafter:
    """Drafts terms of one side of an entry under given choices."""

    def __init__(self, names: Names, choices: dict[str, int], *, left: bool) -> None:
        self.names, self.choices, self.left = names, choices, left
        self.values, self.judging = Values(names, left=left), Values(names, left=False)  # of attributes; of conditions
        self.values.absent = self.judging.absent = self.absent
        self.values.typed = self.type_of_term
        self.conditions: dict[str, Expression] = {}  # what the chosen branches need, by place

    def choose(self, key: str, count: int) -> int:
        """The form chosen for `key`."""
        if key not in self.choices:
            raise NeedChoice(key, count)
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
        key = f"if at {expression.place.line}:{expression.place.column}"
        form = self.choose(key, 2)
        self.conditions[key] = Call("not", (value,)) if form else value
        return other if form else chosen

    def type_of_term(self, expression: syntax.Expression) -> TypeOf:
        """The type of a term that occurs on this side, for `dims(d)` of a local name and the like."""
        return type_of(self.term(expression, None))

    def absent(self, expression: syntax.Expression) -> bool:
        """True for the name of an optional operand that this variant leaves out."""
        if not isinstance(expression, syntax.Name) or expression.value not in self.names.terms:
            return False
        return self.names.terms[expression.value].optional and self.choose(f"optional {expression.value}", 2) == 1

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
            return self.known(expression.arguments[0])
        if isinstance(expression, syntax.Operation) and expression.operator == "*":
            return Decimal(0) if any(self.known(operand) == 0 for operand in expression.operands) else None
        return None

    def defaulted(self, name: str) -> Decimal | None:
        """The default of a float parameter where it is 0 or 1: the variant for it has no trace of it."""
        declaration = self.names.attributes.get(name)
        if declaration is None or declaration.default is None or self.names.kinds[name].word != "float":
            return None
        value = self.values.decimal(declaration.default)
        return value if value in (0, 1) and self.choose(f"default {name}", 2) == 0 else None

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

    def term(self, expression: syntax.Expression, context: Context | None) -> Node:
        """The draft of a term.

        Raises:
            RuleError: it is no term, or its shape is not determined.
        """
        expression = self.resolve(expression)
        if self.scalar(expression):
            return self.splat(expression, context, expression.place)
        if isinstance(expression, syntax.Name):
            if expression.value == "_":
                help = "name the variable and declare its type"
                raise RuleError("`_` stands for an attribute, not for a term", place=expression.place, help=help)
            if expression.value not in self.names.terms:
                help = f"declare it: for {expression.value}: T[S..]"
                raise RuleError(f"`{expression.value}` is not declared", place=expression.place, help=help)
            return Hole(expression.value, expression.place)
        if isinstance(expression, syntax.Invocation):
            return self.sugar(expression, context) if expression.name in SUGAR else self.application(expression, context)
        if isinstance(expression, syntax.Operation):
            return self.operation(expression, context)
        raise RuleError("this is a value where a term is needed", place=expression.place)

    def operation(self, expression: syntax.Operation, context: Context | None) -> Node:
        operands = [operand for operand in expression.operands if operand is not None]
        if expression.operator == "tuple":
            return Draft(get_op("builtin.tuple"), [self.term(operand, None) for operand in operands], {}, expression.place)
        if expression.operator == "negate":
            return Draft(get_op("stablehlo.negate"), [self.term(operands[0], context)], {}, expression.place)
        if expression.operator in BINARY:
            return self.elementwise(get_op(BINARY[expression.operator]), operands, {}, None, expression.place, context)
        if expression.operator == "@":
            lhs, rhs = (self.term(operand, None) for operand in operands)
            batch = Call("batch_axes", (type_of(lhs), type_of(rhs)))
            contract = (_minus(Call("rank", (type_of(lhs),)), 1), _minus(Call("rank", (type_of(rhs),)), 2))
            attributes: dict[str, Expression] = {"lhs_batch": batch, "rhs_batch": batch}
            attributes |= {"lhs_contract": Listing((contract[0],)), "rhs_contract": Listing((contract[1],))}
            return Draft(get_op("stablehlo.dot_general"), [lhs, rhs], attributes, expression.place)
        help = 'use an op, e.g. compare(x, y, "EQ")'
        raise RuleError(f"`{expression.operator}` is for values, not for terms", place=expression.place, help=help)

    def elementwise(
        self, op: Op, operands: Sequence[syntax.Expression], attributes: dict[str, Expression], rest: str | None, place: Place,
        context: Context | None,
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
        return Draft(op, [drafts[i] for i in range(len(operands))], attributes, place, rest)

    def application(self, call: syntax.Invocation, context: Context | None) -> Node:
        op = self.names.resolve(call.name, call.place)
        count = len(call.arguments) if op.variadic else len(op.operands)
        operands, positional = call.arguments[:count], call.arguments[count:]
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
                drafts.append(Draft(get_op("builtin.absent"), [], {}, call.place))
            else:
                drafts.append(self.term(given, None))
        return Draft(op, drafts, attributes, call.place, call.rest)

    def attributes(self, op: Op, call: syntax.Invocation, positional: Sequence[syntax.Expression]) -> dict[str, Expression]:
        known = {attribute.name: attribute for attribute in op.attributes}
        if len(positional) > len(known):
            help = f"operands: {', '.join(op.operands) or 'none'}; attributes: {', '.join(known) or 'none'}"
            raise RuleError(f"`{call.name}` has too many arguments", place=positional[len(known)].place, help=help)
        given = dict(zip(known, positional, strict=False))
        for name, value in call.keywords:
            if name not in known and call.name not in self.names.op_variables:
                raise RuleError(f"`{op.name}` has no attribute `{name}`", place=value.place, help=f"it has: {', '.join(known) or 'none'}")
            if name in given:
                raise RuleError(f"the attribute `{name}` is given twice", place=value.place)
            given[name] = value
        result = {name: self.values.attribute(value, known[name].kind) for name, value in given.items() if name in known}
        if call.rest is not None:
            if self.left:
                imply(self.names, call.rest, "rest", call.place)
            elif self.names.kinds.get(call.rest, Kind("")).word != "rest":
                raise RuleError(f"`..{call.rest}` is not bound on the left", place=call.place, help="bind it there in the same way")
            return result
        for name, attribute in known.items():
            if name not in result and attribute.required:
                help = f"add `{name}: ...`" + (", `_` for any, or ..attrs for all that remain" if self.left else "")
                raise RuleError(f"`{op.name}` needs the attribute `{name}`", place=call.place, help=help)
            result.setdefault(name, Literal(attribute.default))
        return result

    # ------------------------------------------------------------ sugar

    def sugar(self, call: syntax.Invocation, context: Context | None) -> Node:
        given = dict(call.keywords)
        counts, usage = USAGES.get(call.name, ((2, 2), f"{call.name}(x, axes)"))
        if not counts[0] <= len(call.arguments) <= counts[1] or set(given) - {"axes"} or call.rest is not None:
            raise RuleError(f"`{call.name}` is not written like this", place=call.place, help=f"write {usage}")
        first = call.arguments[0]
        if call.name == "splat":
            return self.splat(first, context, call.place)
        if call.name == "host":
            attributes: dict[str, Expression] = {"dims": Listing((self.values.value(first),)), "type": Literal(TensorType(I64, ()))}
            return Draft(get_op("builtin.dims"), [], attributes, call.place)
        if call.name == "bcast":
            return self.bcast(call, given.get("axes"), context)
        if call.name in ("scalar", "full"):
            return self.filled(call)
        operand = self.term(first, None)
        if call.name == "get":
            return Draft(get_op("builtin.get"), [operand], {"index": self.values.attribute(call.arguments[1], "int")}, call.place)
        if call.name == "swap_last":
            swapped = Call("swap_axes", (type_of(operand),))
            return Draft(get_op("stablehlo.transpose"), [operand], {"permutation": swapped}, call.place)
        axes = self.values.attribute(call.arguments[1], "ints")
        return Draft(get_op("stablehlo.reduce"), [operand], {"dimensions": axes, "combiner": Literal(REDUCTIONS[call.name])}, call.place)

    def filled(self, call: syntax.Invocation) -> Node:
        """`scalar(v, T)` and `full(v, shape, T)`: a number of a given type, alone or in every element of a shape."""
        dtype = self.values.attribute(call.arguments[-1], "dtype")
        inner = Draft(get_op("builtin.constant"), [], {"value": Scalar(self.values.scalar(call.arguments[0], None), dtype)}, call.place)
        if call.name == "scalar":
            return inner
        shape = self.values.attribute(call.arguments[1], "dims")
        fixed = isinstance(shape, Listing) and any(not isinstance(item, Splice) for item in shape.items)
        form = 0 if fixed else self.choose(f"rank of {shape}", 2)
        if not fixed:
            self.conditions[f"rank of {shape}"] = Call("==" if form else "!=", (Call("len", (shape,)), Literal(0)))
        spread: dict[str, Expression] = {"shape": shape, "broadcast_dimensions": Literal(())}
        return inner if form else Draft(get_op("stablehlo.broadcast_in_dim"), [inner], spread, call.place)

    def splat(self, expression: syntax.Expression, context: Context | None, place: Place) -> Node:
        """A scalar in every element of the context's shape; at rank 0 the scalar itself."""
        if context is None:
            help = "write bcast(.., [dims]), or use it beside an operand whose shape it takes"
            raise RuleError("nothing says which shape this scalar takes", place=place, help=help)
        expression = self.resolve(expression)
        inner: Node
        if self.scalar(expression):
            value = Scalar(self.values.scalar(expression, self.known(expression)), Call("dtype", (context.type,)))
            inner = Draft(get_op("builtin.constant"), [], {"value": value}, place)
        else:
            inner = self.term(expression, None)
        form = self.choose(f"rank of {context.key}", 2) if context.scalar is None else int(context.scalar)
        rank = Call("rank", (context.type,))
        if form == 1:
            if context.scalar is None:
                inner.guards.append(Call("==", (rank, Literal(0))))
            return inner
        spread: dict[str, Expression] = {"shape": Call("dims", (context.type,)), "broadcast_dimensions": Literal(())}
        guards: list[Expression] = [Call("!=", (rank, Literal(0)))] if context.scalar is None else []
        return Draft(get_op("stablehlo.broadcast_in_dim"), [inner], spread, place, guards=guards)

    def bcast(self, call: syntax.Invocation, axes: syntax.Expression | None, context: Context | None) -> Node:
        first = call.arguments[0]
        known = self.known(first)
        if known is not None or self.scalar(first):
            return self.splat(first, context, call.place)
        operand = self.term(first, None)
        if len(call.arguments) == 1:
            if context is None:
                raise RuleError("nothing says which shape this takes", place=call.place, help="write bcast(x, [dims])")
            shape: Expression = Call("dims", (context.type,))
            if axes is None:
                return self.numpy(operand, shape, call.place)
        else:
            shape = self.values.attribute(call.arguments[1], "dims")
            if axes is None and any(isinstance(part, Call) and part.function == "broadcast" for part in parts(shape)):
                return self.numpy(operand, shape, call.place)
        if axes is not None:
            dimensions = self.values.attribute(axes, "ints")
            return Draft(get_op("stablehlo.broadcast_in_dim"), [operand], {"shape": shape, "broadcast_dimensions": dimensions}, call.place)
        total = Call("len", (shape,))
        ones = self.literal_ones(operand)
        if ones is None:
            dimensions = Call("range", (Call("-", (total, Call("rank", (type_of(operand),)))), total))
            return Draft(get_op("stablehlo.broadcast_in_dim"), [operand], {"shape": shape, "broadcast_dimensions": dimensions}, call.place)
        kept, distances = ones
        places = Listing(tuple(_minus(total, distance) for distance in distances))
        squeezed = Draft(get_op("stablehlo.reshape"), [operand], {"shape": Listing(tuple(kept))}, call.place)
        return Draft(get_op("stablehlo.broadcast_in_dim"), [squeezed], {"shape": shape, "broadcast_dimensions": places}, call.place)

    def literal_ones(self, operand: Node) -> tuple[list[Expression], list[int]] | None:
        """For a variable with dims that are written 1: the other dims and their distances from the end."""
        if not isinstance(operand, Hole):
            return None
        kind = self.names.terms[operand.name].kind
        assert isinstance(kind, syntax.TensorKind)
        if not any(isinstance(dim, syntax.Number) and dim.value == 1 for dim in kind.dims):
            return None
        if any(isinstance(dim, syntax.Spread) for dim in kind.dims):
            raise RuleError("bcast of a size-1 dim beside a pack", place=operand.place, help="reshape the dim away first")
        items = [(len(kind.dims) - i, dim) for i, dim in enumerate(kind.dims) if not (isinstance(dim, syntax.Number) and dim.value == 1)]
        return [self.values.value(dim) for _, dim in items if not isinstance(dim, syntax.Spread)], [distance for distance, _ in items]

    def numpy(self, operand: Node, shape: Expression, place: Place) -> Node:
        """`operand` broadcast to `shape` numpy's way, when its own shape is open: as it is, spread, or squeezed and spread."""
        form = self.choose(f"bcast at {place.line}:{place.column}", 3)
        own = type_of(operand)
        expanding = Call("expanding", (own, shape))
        none = Call("==", (expanding, Literal(())))
        if form == 0:
            operand.guards.append(Call("==", (Call("dims", (own,)), shape)))
            return operand
        offset = Call("-", (Call("len", (shape,)), Call("rank", (own,))))
        if form == 1:
            guards: list[Expression] = [none, Call("!=", (Call("rank", (own,)), Call("len", (shape,))))]
            axes: Expression = Call("range", (offset, Call("len", (shape,))))
        else:
            guards = [Call("not", (none,))]
            kept = Call("without", (Call("rank", (own,)), expanding))
            axes = Call("permute", (Call("range", (offset, Call("len", (shape,)))), kept))
            operand = Draft(get_op("stablehlo.reshape"), [operand], {"shape": Call("permute", (Call("dims", (own,)), kept))}, place)
        attributes = {"shape": shape, "broadcast_dimensions": axes}
        return Draft(get_op("stablehlo.broadcast_in_dim"), [operand], attributes, place, guards=guards)


def type_of(node: Node) -> TypeOf:
    """The expression for the type of a draft; `finish` turns the draft into an index."""
    return TypeOf("variable", node.name) if isinstance(node, Hole) else TypeOf("draft", node)


def context_of(node: Node, names: Names) -> Context:
    """The context that `node` gives to its siblings."""
    scalar, key = _shape_of(node, names)
    return Context(type_of(node), key, scalar)


def _shape_of(node: Node, names: Names) -> tuple[bool | None, str]:
    """Whether the rank is 0, and a key that is equal for nodes of one shape."""
    while isinstance(node, Draft) and node.op.has("elementwise"):
        position = 1 if node.op.name in ("stablehlo.select", "stablehlo.clamp") else 0
        spread = ("builtin.constant", "stablehlo.broadcast_in_dim")
        own = [o for o in node.operands[position:] if not (isinstance(o, Draft) and o.op.name in spread)]
        node = own[0] if own else node.operands[position]
    if isinstance(node, Hole):
        kind = names.terms[node.name].kind
        assert isinstance(kind, syntax.TensorKind)
        return _rank_zero(kind.dims), " ".join(map(_text, kind.dims)) if kind.dims != (syntax.Spread(None, kind.place),) else node.name
    key = f"{node.place.line}:{node.place.column}"
    shape = node.attributes.get("shape")
    if isinstance(shape, Listing):
        fixed = any(not isinstance(item, Splice) for item in shape.items)
        return (False if fixed else None if shape.items else True), str(shape)
    if node.op.name == "stablehlo.convolution" or (node.op.name == "stablehlo.dot_general" and _keeps_dims(node, names)):
        return False, key
    return (True if node.op.name in ("builtin.constant", "builtin.dims") else None), key


def _keeps_dims(node: Draft, names: Names) -> bool:
    """True when a contraction is known to leave a dim: that of `@`, or of operands of more dims than are contracted."""
    contract = node.attributes.get("lhs_contract")
    if isinstance(node.attributes.get("lhs_batch"), Call):
        return True
    lhs = node.operands[0]
    if not isinstance(contract, Listing) or not isinstance(lhs, Hole):
        return False
    kind = names.terms[lhs.name].kind
    assert isinstance(kind, syntax.TensorKind)
    return sum(not isinstance(dim, syntax.Spread) for dim in kind.dims) > len(contract.items)


def _rank_zero(dims: Sequence[Any]) -> bool | None:
    if not dims:
        return True
    return False if any(not isinstance(dim, syntax.Spread) for dim in dims) else None


def _text(dim: Any) -> str:
    return "".join(str(part.value) for part in syntax.walk(dim) if isinstance(part, syntax.Name | syntax.Number)) + type(dim).__name__


def _minus(value: Expression, number: int) -> Expression:
    return Call("-", (value, Literal(number)))
