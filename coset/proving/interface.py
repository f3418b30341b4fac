"""Inputs and outputs of two programs in pairs: by name or by order, and what only one of them has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from coset.ir import dims
from coset.ir.dims import Dim, symbol
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.specialized import sized
from coset.ir.suggestions import like
from coset.ir.term import Term
from coset.ir.types import TensorType, Type
from coset.prove.contents import inner_symbols, renamed
from coset.proving.refute import PairedNames

UNNAMED = "unnamed.dim"  # a dim that no input has


def paired(before: Program, after: Program, pairs: Mapping[str, str]) -> tuple[PairedNames, Sequence[Term]]:
    """Inputs and outputs in pairs: as the user says, by name where both have the same names, else by order. Where one program has more
    inputs, those that nothing reads and that the other has under no name are in no pair; the second program's are given back.

    Raises:
        CosetError: there are more on one side, or types differ.
    """
    _refuse_unknown(before, after, pairs)
    given = [{term.attribute("name"): term for term in program.inputs} for program in (before, after)]
    alone: tuple[Sequence[Term], Sequence[Term]] = ([], [])
    if len(before.inputs) != len(after.inputs):
        alone = _without(before.unread(), {*given[1], *pairs.values()}), _without(after.unread(), {*given[0], *pairs})
    inputs = [[(name, term.type) for name, term in each.items() if term not in left] for each, left in zip(given, alone, strict=True)]
    outputs = [[(name, sized(term.type, _unnamed(program))) for name, term in program.outputs] for program in (before, after)]
    return PairedNames(_by_name("inputs", pairs, *inputs), _by_name("outputs", pairs, *outputs)), alone[1]


def _refuse_unknown(before: Program, after: Program, pairs: Mapping[str, str]) -> None:
    """Nothing where both programs have what is mapped: inputs and outputs of `after`, and what `before` calls them."""
    known = [{*(term.attribute("name") for term in each.inputs), *(name for name, _ in each.outputs)} for each in (before, after)]
    for theirs, mine in pairs.items():
        for name, names, which in ((mine, known[0], "first"), (theirs, known[1], "second")):
            if name not in names:
                raise CosetError(
                    f"the {which} program has no input or output `{name}`", help=like(name, names) or f"it has {', '.join(sorted(names))}"
                )


def _unnamed(program: Program) -> Mapping[str, Dim]:
    """One name for all dims that no input has: what another program calls them says nothing."""
    return dict.fromkeys(inner_symbols(program), symbol(UNNAMED))


def _may_be(one: Type, other: Type) -> bool:
    """Whether two types are one, as far as the dims say that inputs have."""
    if not isinstance(one, TensorType) or not isinstance(other, TensorType):
        return one == other
    if one.shape is None or other.shape is None:
        return one.dtype == other.dtype
    if one.dtype != other.dtype or one.rank != other.rank:
        return False
    pairs = zip(one.dims, other.dims, strict=True)
    return all(mine == theirs or UNNAMED in dims.symbols(mine) | dims.symbols(theirs) for mine, theirs in pairs)


def _without(terms: Sequence[Term], names: Set[str]) -> list[Term]:
    return [term for term in terms if term.attribute("name") not in names]


def _by_name(what: str, pairs: Mapping[str, str], one: Sequence[tuple[str, Type]], other: Sequence[tuple[str, Type]]) -> dict[str, str]:
    """What those of the second program are called in the first, where that is another name."""
    if len(one) != len(other):
        raise CosetError(f"the first program has {len(one)} {what}, the second {len(other)}", help="leave out what only one has")
    types, left = dict(one), [name for name, _ in one]
    said = {name: pairs[name] for name, _ in other if name in pairs}
    for name in said.values():
        if name not in left:
            raise CosetError(
                f"the first program has no {what[:-1]} `{name}`, or two are paired with it", help=f"it has: {', '.join(types)}"
            )
        left.remove(name)
    rest = [name for name, _ in other if name not in said]
    by_name = set(rest) == set(left)
    said |= {name: name if by_name else left[place] for place, name in enumerate(rest)}
    for name, type in other:
        if not _may_be(types[said[name]], type):
            raise CosetError(f"`{said[name]}` is {types[said[name]]} in the first program, and `{name}` is {type} in the second")
    return {name: said[name] for name, _ in other if said[name] != name}


def in_order(before: Program, after: Program, names: PairedNames) -> Program:
    """The second program with the names and in the order of the first."""
    same = renamed(after, names.inputs, names.outputs)
    outputs = dict(same.outputs)
    inputs = {term.attribute("name"): term for term in same.inputs}
    return replace(
        same, inputs=tuple(inputs[name] for term in before.inputs if (name := term.attribute("name")) in inputs),
        outputs=tuple((name, outputs[name]) for name, _ in before.outputs),
    )  # fmt: skip
