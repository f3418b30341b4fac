"""Drafts: applications of ops and variables that have no index yet, and what they tell their siblings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any, Union

from coset.ir.op import Op
from coset.ir.place import Place
from coset.ir.term import TUPLE, Region, Term, topological
from coset.rules import syntax
from coset.rules.algebra import Call, Expression, Listing, Literal, Splice, TypeOf
from coset.rules.expression_text import text
from coset.rules.names import Names
from coset.rules.payloads import described

LONG = 400  # characters from which on the text of a draft is a hash: terms inside terms would make texts grow without end


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

    def __str__(self) -> str:
        return self.name


@dataclass(eq=False)
class DraftApplication:
    """An application that has no index yet. `guards` must hold where this form of it is used, `late` ones speak of its own type."""

    op: Op
    operands: list["Node"]
    attributes: dict[str, Expression]
    place: Place
    rest: str | None = None
    guards: list[Expression] = field(default_factory=list)
    late: list[Expression] = field(default_factory=list)

    def __str__(self) -> str:
        return self.text

    @cached_property
    def text(self) -> str:
        """The draft as text: equal texts on one side of a rule are equal terms."""
        attributes = [f"{name}: {text(value)}" for name, value in sorted(self.attributes.items())]
        whole = f"{self.op.name}({', '.join([*map(str, self.operands), *attributes, *([f'..{self.rest}'] if self.rest else [])])})"
        return whole if len(whole) < LONG else f"{self.op.name}#{blake2b(whole.encode(), digest_size=12).hexdigest()}"


Node = Union[Hole, DraftApplication]


@dataclass(frozen=True)
class SplatContext:
    """The type that a splat takes: that of a sibling. `scalar` says whether its rank is 0, None when that depends."""

    type: TypeOf
    key: str
    scalar: bool | None


def type_of(node: Node) -> TypeOf:
    """The expression for the type of a draft; `finish` turns the draft into an index."""
    return TypeOf("variable", node.name) if isinstance(node, Hole) else TypeOf("draft", node)


def context_of(node: Node, names: Names) -> SplatContext:
    """The context that `node` gives to its siblings."""
    scalar, key = _shape_of(node, names)
    return SplatContext(type_of(node), key, scalar)


def _shape_of(node: Node, names: Names) -> tuple[bool | None, str]:
    """Whether the rank is 0, and a key that is equal for nodes of one shape."""
    while isinstance(node, DraftApplication) and node.op.has("elementwise"):
        position = 1 if node.op.name in ("stablehlo.select", "stablehlo.clamp") else 0
        spread = ("builtin.constant", "stablehlo.broadcast_in_dim")
        own = [o for o in node.operands[position:] if not (isinstance(o, DraftApplication) and o.op.name in spread)]
        node = own[0] if own else node.operands[position]
    if isinstance(node, Hole):
        kind = names.terms[node.name].kind
        assert isinstance(kind, syntax.TensorKind)
        return _rank_zero(kind.dims), " ".join(map(_text, kind.dims)) if kind.dims != (syntax.Spread(None, kind.place),) else node.name
    key = node.text
    shape = node.attributes.get("shape")
    if isinstance(shape, Listing):
        fixed = any(not isinstance(item, Splice) for item in shape.items)
        return (False if fixed else None if shape.items else True), text(shape)
    if node.op.name == "stablehlo.convolution" or (node.op.name == "stablehlo.dot_general" and _keeps_dims(node, names)):
        return False, key
    return (True if node.op.name in ("builtin.constant", "builtin.dims") else None), key


def _keeps_dims(node: DraftApplication, names: Names) -> bool:
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


def inlined(region: Region, arguments: Sequence[Node], place: Place) -> Node:
    """The drafts of what `region` gives for `arguments`: several results are a tuple."""
    done: dict[Term, Node] = dict(zip(region.parameters, arguments, strict=True))
    for term in topological(region.results):
        if term not in done:
            items = described(term.op, term.attributes, term.regions)
            assert items is not None, f"the functions of {term.op} have names"
            attributes = {name: Literal(value) for name, value in items}
            done[term] = DraftApplication(term.op, [done[operand] for operand in term.operands], dict(attributes), place)
    results = [done[result] for result in region.results]
    return results[0] if len(results) == 1 else DraftApplication(TUPLE, results, {}, place)


def _rank_zero(dims: Sequence[Any]) -> bool | None:
    if not dims:
        return True
    return False if any(not isinstance(dim, syntax.Spread) for dim in dims) else None


def _text(dim: Any) -> str:
    return "".join(str(part.value) for part in syntax.walk(dim) if isinstance(part, syntax.Name | syntax.Number)) + type(dim).__name__
