"""Checks of payload functions, for the `check_regions` of ops: how many, over which parameters, with which results."""

from __future__ import annotations

from collections.abc import Sequence

from coset.ir.errors import require
from coset.ir.op import Attributes, tensor_of
from coset.ir.term import PARAMETER, Region, topological
from coset.ir.types import BOOL, TensorType, TupleType, Type


def results_type(types: Sequence[Type]) -> Type:
    """The type of an op with these results: one is itself, several are a tuple."""
    return types[0] if len(types) == 1 else TupleType(tuple(types))


def scalars(types: Sequence[Type]) -> list[Type]:
    """One element of each of the tensors."""
    return [TensorType(tensor_of(type, "an operand").dtype, ()) for type in types]


def require_regions(name: str, regions: tuple[Region, ...], *roles: str) -> None:
    """As many regions as roles; each speaks of its own parameters and of nothing outside."""
    words = f"{len(roles)} regions ({', '.join(roles)})" if roles else "no regions here"
    require(len(regions) == len(roles), f"`{name}` takes {words}, not {len(regions)}")
    for region, role in zip(regions, roles, strict=True):
        _require_closed(name, region, role)


def _require_closed(name: str, region: Region, role: str) -> None:
    numbered = all(p.op is PARAMETER and p.attribute("index") == i for i, p in enumerate(region.parameters))
    require(numbered, f"parameter i of the {role} of `{name}` must be a `builtin.parameter` of index i")
    own = set(region.parameters)
    for term in topological(region.results):
        require(term.op is not PARAMETER or term in own, f"the {role} of `{name}` uses {term}, which is no parameter of it")
        free = term.op.name != "builtin.input"
        require(free, f"the {role} of `{name}` captures {term}: give captured values as operands")


def require_signature(name: str, region: Region, role: str, parameters: Sequence[Type], results: Sequence[Type]) -> None:
    """The region takes and gives values of just these types."""
    taken, given = [p.type for p in region.parameters], [r.type for r in region.results]
    require(taken == list(parameters), f"the {role} of `{name}` must take {_listed(parameters)}, not {_listed(taken)}")
    require(given == list(results), f"the {role} of `{name}` must give {_listed(results)}, not {_listed(given)}")


def _listed(types: Sequence[Type]) -> str:
    return f"({', '.join(map(str, types))})"


def no_regions(name: str, _: Sequence[Type], __: Attributes, regions: tuple[Region, ...]) -> None:
    """The check of an op form without a payload."""
    require_regions(name, regions)


def folding(name: str, operands: Sequence[Type], _: Attributes, regions: tuple[Region, ...]) -> None:
    """The body of a reduction: totals and elements of every input give totals."""
    require_regions(name, regions, "body")
    elements = scalars(operands[: len(operands) // 2])
    require_signature(name, regions[0], "body", [*elements, *elements], elements)


def comparator(name: str, operands: Sequence[Type], attributes: Attributes, regions: tuple[Region, ...]) -> None:
    """The comparator of a sort takes two elements of each operand, one after the other."""
    if attributes["direction"] != "region":
        return no_regions(name, operands, attributes, regions)
    require_regions(name, regions, "comparator")
    pairs = [element for element in scalars(operands) for _ in range(2)]
    return require_signature(name, regions[0], "comparator", pairs, [TensorType(BOOL, ())])


def update_function(name: str, operands: Sequence[Type], attributes: Attributes, regions: tuple[Region, ...]) -> None:
    """The update function of a scatter takes the elements and the updates."""
    if attributes["combiner"] != "region":
        return no_regions(name, operands, attributes, regions)
    require_regions(name, regions, "update function")
    elements = scalars(operands[: attributes["count"]])
    return require_signature(name, regions[0], "update function", [*elements, *elements], elements)


def selection(name: str, operands: Sequence[Type], attributes: Attributes, regions: tuple[Region, ...]) -> None:
    """The regions of select_and_scatter, those of the two that are no words."""
    roles = [role for role, key in (("select", "select"), ("scatter", "combiner")) if attributes[key] == "region"]
    require_regions(name, regions, *roles)
    (element,) = scalars(operands[:1])
    for region, role in zip(regions, roles, strict=True):
        require_signature(name, region, role, [element, element], [TensorType(BOOL, ()) if role == "select" else element])


def mapping(name: str, operands: Sequence[Type], attributes: Attributes, regions: tuple[Region, ...]) -> None:
    """The body of a map takes one element of each operand."""
    require_regions(name, regions, "body")
    elements = scalars(operands)
    given = elements[0] if attributes["dtype"] is None else TensorType(attributes["dtype"], ())
    require_signature(name, regions[0], "body", elements, [given])


def branches(name: str, operands: Sequence[Type], attributes: Attributes, regions: tuple[Region, ...]) -> None:
    """Every branch takes the captured values and gives the results."""
    roles = ("true branch", "false branch") if name.endswith(".if") else tuple(f"branch {i}" for i in range(len(regions)))
    require(len(roles) >= 1, f"`{name}` takes one branch or more")
    require_regions(name, regions, *roles)
    for region, role in zip(regions, roles, strict=True):
        require_signature(name, region, role, operands[1:], attributes["results"])


def loop(name: str, operands: Sequence[Type], _: Attributes, regions: tuple[Region, ...]) -> None:
    """The condition gives a boolean, the body the next state."""
    require_regions(name, regions, "condition", "body")
    require_signature(name, regions[0], "condition", operands, [TensorType(BOOL, ())])
    require_signature(name, regions[1], "body", operands, operands)


def decomposition(name: str, operands: Sequence[Type], attributes: Attributes, regions: tuple[Region, ...]) -> None:
    """The decomposition takes the operands and gives the results."""
    require_regions(name, regions, "decomposition")
    require_signature(name, regions[0], "decomposition", operands, attributes["results"])
