"""`Term`: an immutable, hash-consed application of an op. Equal terms are one object; nothing here recurses over depth."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coset.ir.constants import Constant, constant_of
from coset.ir.errors import require
from coset.ir.op import Array, Attribute, Attributes, Op, Signature, get_op, register
from coset.ir.types import TensorType, TupleType, Type

AttributeItems = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Region:
    """A payload function: parameters (`builtin.parameter` terms) and results over them."""

    parameters: tuple["Term", ...]
    results: tuple["Term", ...]


class Term:
    """One node of a program: `op`, `operands`, sorted `attributes`, `regions`, `type`. Compare with `is`."""

    __slots__ = ("__weakref__", "attributes", "exact", "op", "operands", "regions", "type")

    op: Op
    operands: tuple["Term", ...]
    attributes: AttributeItems
    exact: Any  # the `exact_key` of the attributes
    regions: tuple[Region, ...]
    type: Type

    def attribute(self, name: str) -> Any:
        """The value of the attribute `name`; asserts that it is there."""
        for key, value in self.attributes:
            if key == name:
                return value
        raise AssertionError(f"{self.op.name} has no attribute {name}")

    @property
    def tensor(self) -> TensorType:
        """The type, asserted to be a tensor type."""
        assert isinstance(self.type, TensorType), f"{self.op.name} gives {self.type}, not a tensor"
        return self.type

    def __repr__(self) -> str:
        attributes = "".join(f", {k}={v}" for k, v in self.attributes)
        return f"<{self.op.name}({len(self.operands)} operands{attributes}): {self.type}>"


_TABLE: weakref.WeakValueDictionary[Any, Term] = weakref.WeakValueDictionary()


def intern(op: Op, operands: tuple[Term, ...], attributes: AttributeItems, regions: tuple[Region, ...], type: Type) -> Term:
    """The one term with these parts. The type is trusted: use `make` unless it is known already."""
    # float attributes are keyed with their sign and NaN payload kept apart: 0.0 == -0.0 would merge two programs
    return _interned(op, operands, attributes, exact_key(attributes), regions, type)


def _interned(op: Op, operands: tuple[Term, ...], attributes: AttributeItems, exact: Any, regions: tuple[Region, ...], type: Type) -> Term:
    key = (op, operands, exact, regions, type)
    found = _TABLE.get(key)
    if found is None:
        found = Term()
        found.op, found.operands, found.attributes, found.exact, found.regions, found.type = op, operands, attributes, exact, regions, type
        _TABLE[key] = found
    return found


_THEMSELVES = frozenset((int, str))  # types of values that are equal only where they are the same


def exact_key(value: Any) -> Any:
    """A key for an attribute value that tells 0.0 from -0.0 and 1 from True, and makes all NaNs one."""
    kind = type(value)
    if kind in _THEMSELVES:
        return value
    if kind is tuple:
        return value if _THEMSELVES.issuperset(map(type, value)) else tuple([exact_key(item) for item in value])
    if isinstance(value, float):
        return ("float", value.hex() if value == value else "nan")
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, tuple):
        return tuple([exact_key(item) for item in value])
    return value


def make(op: Op | str, operands: Sequence[Term] = (), attributes: Attributes | None = None, regions: tuple[Region, ...] = ()) -> Term:
    """The term `op(operands)` with defaults filled in and its type inferred.

    Raises:
        TypeRuleError: the op's type rule refuses the operands, the attributes or the regions.
        CosetError: an attribute is unknown or missing.
    """
    op = get_op(op) if isinstance(op, str) else op
    complete = op.complete(attributes or {})
    types = [operand.type for operand in operands]
    type = op.infer(types, complete)
    check_regions(op, types, complete, regions)
    return intern(op, tuple(operands), tuple(sorted(complete.items())), regions, type)


def check_regions(op: Op, types: Sequence[Type], attributes: Attributes, regions: tuple[Region, ...]) -> None:
    """Refuse payload functions that do not fit `op` on operands of these types: others, more or fewer, or such as speak of what is outside.

    Raises:
        TypeRuleError: one does not fit.
    """
    wanted = [] if op.signatures is None else op.signatures(op.name, types, attributes, len(regions))
    words = f"{len(wanted)} regions ({', '.join(_role(each) for each in wanted)})" if wanted else "no regions here"
    require(len(regions) == len(wanted), f"`{op.name}` takes {words}, not {len(regions)}")
    for region, signature in zip(regions, wanted, strict=True):
        _require_closed(op.name, region, _role(signature))
        taken, given = (tuple(term.type for term in terms) for terms in (region.parameters, region.results))
        for what, own, right in (("take", taken, signature.parameters), ("give", given, signature.results)):
            require(own == tuple(right), f"the {_role(signature)} of `{op.name}` must {what} {_listed(right)}, not {_listed(own)}")


def _role(signature: Signature) -> str:
    return signature.role.replace("_", " ")


def _listed(types: Sequence[Type]) -> str:
    return f"({', '.join(map(str, types))})"


def _require_closed(name: str, region: Region, role: str) -> None:
    numbered = all(p.op is PARAMETER and p.attribute("index") == i for i, p in enumerate(region.parameters))
    require(numbered, f"parameter i of the {role} of `{name}` must be a `builtin.parameter` of index i")
    own = set(region.parameters)
    for term in topological(region.results):
        require(term.op is not PARAMETER or term in own, f"the {role} of `{name}` uses {term}, which is no parameter of it")
        require(term.op is not INPUT, f"the {role} of `{name}` captures {term}: give captured values as operands")


# ---------------------------------------------------------------- leaves and tuples (`coset.ir.builtin` has the other builtin ops)


def stated(_: Sequence[Type], attributes: Attributes) -> Type:
    """The type that an attribute states."""
    return attributes["type"]  # type: ignore[no-any-return]


def _result_of_get(operands: Sequence[Type], attributes: Attributes) -> Type:
    whole, index = operands[0], attributes["index"]
    require(isinstance(whole, TupleType) and 0 <= index < len(whole.items), f"there is no result {index} of {whole}")
    assert isinstance(whole, TupleType)
    return whole.items[index]


def _result_of_tuple(operands: Sequence[Type], _: Attributes) -> Type:
    return TupleType(tuple(operands))


def _result_of_constant(_: Sequence[Type], attributes: Attributes) -> Type:
    return attributes["value"].type  # type: ignore[no-any-return]


def _mean_constant(term: Term, _: Sequence[Array], __: Mapping[str, int]) -> Array:
    return term.attribute("value").array()  # type: ignore[no-any-return]


STATED = Attribute("type", "any")
INPUT = register(Op("builtin.input", stated, None, (Attribute("name", "string"), STATED), traits=frozenset({"leaf"})))
PARAMETER = register(Op("builtin.parameter", stated, None, (Attribute("index", "int"), STATED), traits=frozenset({"leaf"})))
CONSTANT = register(
    Op("builtin.constant", _result_of_constant, _mean_constant, (Attribute("value", "constant"),), traits=frozenset({"leaf"}))
)
TUPLE = register(Op("builtin.tuple", _result_of_tuple, operands=("items",), variadic=True))
GET = register(Op("builtin.get", _result_of_get, lambda term, arrays, _: arrays[0][term.attribute("index")],
                  (Attribute("index", "int"),), ("tuple",), traits=frozenset({"movement"})))  # fmt: skip


def input_term(name: str, type: Type) -> Term:
    """The program input called `name`."""
    return make(INPUT, (), {"name": name, "type": type})


def constant(value: Constant | object, dtype: Any = None) -> Term:
    """The constant term of a `Constant` or of anything that NumPy takes as an array."""
    return make(CONSTANT, (), {"value": value if isinstance(value, Constant) else constant_of(value, dtype)})


def get(term: Term, index: int) -> Term:
    """Result `index` of a term with several results."""
    return make(GET, (term,), {"index": index})


def topological(roots: Iterable[Term], *, known: Container[Term] = ()) -> Iterator[Term]:
    """Every term under `roots` once, operands before users, in an order that depends on the structure only. Those that are `known` when
    they are come upon are left out, with all that only they have below them."""
    done: set[Term] = set()
    for root in roots:
        stack: list[tuple[Term, int]] = [] if root in known else [(root, 0)]
        while stack:
            term, position = stack.pop()
            if term in done:
                continue
            if position < len(term.operands):
                stack.append((term, position + 1))
                child = term.operands[position]
                if child not in done and child not in known:
                    stack.append((child, 0))
                continue
            done.add(term)
            yield term


def rebuild(term: Term, operands: Sequence[Term]) -> Term:
    """`term` over other operands of the same types: the type is kept, not inferred anew."""
    if all(a is b for a, b in zip(operands, term.operands, strict=True)):
        return term
    return _interned(term.op, tuple(operands), term.attributes, term.exact, term.regions, term.type)


def rewritten(roots: Iterable[Term], change: Callable[[Term], Term]) -> tuple[Term, ...]:
    """`roots` with what `change` makes of each term under them, once and operands first: it is given terms over changed operands."""
    given = tuple(roots)
    done: dict[Term, Term] = {}
    for term in topological(given):
        done[term] = change(rebuild(term, [done[operand] for operand in term.operands]))
    return tuple(done[root] for root in given)
