"""Programs by content: constants, dims and names are called so that two programs have one term only where it is one value.

What a frontend calls a dim that it does not know is a number of its own counting (`d7`), and an exporter's name (`seq_out`) says no more:
in another program the same name is another dim. A symbol that no input has is therefore called after the node that has it in its result,
by everything that this node is computed from, and after the whole program where no such node is seen.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from coset.ir import dims
from coset.ir.constants import INLINE_ELEMENTS, Constant, constant_of
from coset.ir.dims import Dim, symbol
from coset.ir.program import Program, symbols_in, tensors_in
from coset.ir.specialized import sized, sized_region, specialized
from coset.ir.term import CONSTANT, INPUT, Region, Term, constant, exact_key, input_term, rebuild, rewritten, topological
from coset.ir.types import TensorType

CHUNK = 1 << 22  # B that are hashed at once
SIZED = (
    "dynamic_broadcast_in_dim",
    "dynamic_conv",
    "dynamic_gather",
    "dynamic_iota",
    "dynamic_pad",
    "dynamic_reshape",
    "real_dynamic_slice",
)
DYNAMIC = frozenset(f"stablehlo.{name}" for name in SIZED)  # ops whose operands say how large their results are


def by_content(program: Program) -> Program:
    """The program with every constant keyed by the bytes that it holds: equal programs from different files are the same terms.

    Raises:
        CosetError: a constant's file cannot be read.
    """
    return _mapped(program, hashed)


def _mapped(program: Program, change: Callable[[Term], Term]) -> Program:
    """The program with what `change` makes of each of its terms."""
    sources = tuple(program.sources.values())
    count, total = len(program.roots), len(program.roots) + len(sources)
    ends = rewritten((*program.roots, *sources, *program.inputs), change)
    return replace(program.with_sources(ends[count:total]).with_roots(ends[:count]), inputs=ends[total:])


def hashed(term: Term) -> Term:
    """A leaf as it is, a constant keyed by its bytes."""
    return constant(_hashed(term.attribute("value"))) if term.op is CONSTANT else term


def _hashed(value: Constant) -> Constant:
    array = value.array()
    if value.type.dtype.kind == "string" or array.size <= INLINE_ELEMENTS:
        return constant_of(array, value.type.dtype)
    digest = hashlib.blake2b(f"{value.type}".encode(), digest_size=16)
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    for start in range(0, flat.size, CHUNK):
        digest.update(flat[start : start + CHUNK].data)
    return replace(value, key=f"bytes {digest.hexdigest()}")


# ---------------------------------------------------------------- names of inputs and outputs


def renamed(program: Program, inputs: Mapping[str, str], outputs: Mapping[str, str]) -> Program:
    """The program with other names for its inputs and outputs; both by the name that it has.

    Raises:
        ValueError: two would have one name.
    """
    for names, given in ((inputs, [term.attribute("name") for term in program.inputs]), (outputs, [name for name, _ in program.outputs])):
        wanted = [names.get(name, name) for name in given]
        if len(set(wanted)) != len(wanted) or not all(isinstance(name, str) for name in wanted):
            raise ValueError("two inputs or outputs would have one name")

    def called(term: Term) -> Term:
        return input_term(inputs.get(term.attribute("name"), term.attribute("name")), term.type) if term.op is INPUT else term

    ends = tuple((outputs.get(name, name), term) for name, term in program.outputs)
    return _mapped(replace(program, outputs=ends), called)


def fitted(program: Program, other: Program) -> Program:
    """The program for the dims that `other` gives to its inputs, by name, where its own are symbols: an input that nothing uses any more is
    read from text with a size of its own. What no input has keeps a name of its own.

    Raises:
        CosetError: the program has no types with these dims.
    """
    theirs = {term.attribute("name"): term.type for term in other.inputs}
    sizes: dict[str, dims.Dim] = {}
    for term in program.inputs:
        one, type = term.type, theirs.get(term.attribute("name"))
        if isinstance(one, TensorType) and isinstance(type, TensorType) and one.shape and type.shape and len(one.shape) == len(type.shape):
            pairs = [(dims.alone(own), size) for own, size in zip(one.shape, type.shape, strict=True)]
            sizes.update((name, size) for name, size in pairs if name is not None and name not in sizes)
    if all(dims.alone(size) == name for name, size in sizes.items()):
        return program
    inner, taken = inner_symbols(program), {name for size in sizes.values() for name in dims.symbols(size)}
    known = {*inner, *taken, *program.symbols()}
    apart: dict[str, Dim] = {}
    for name in inner:
        if name in taken:
            apart[name] = _free(f"{name}@", known)
            known.add(str(apart[name]))  # two of them must not become one
    return resized(program, apart | sizes)


# ---------------------------------------------------------------- dim symbols


def dims_by_content(program: Program) -> Program:
    """A program that is given by content, with names by content for the dim symbols that no input has."""
    return resized(program, inner_names(program))


def resized(program: Program, sizes: Mapping[str, Dim]) -> Program:
    """The program with `sizes` for its dim symbols, those of its inputs and of the sources of its dims too.

    Raises:
        CosetError: a term has no type with these sizes.
    """
    if not sizes:
        return program
    terms = _carried(program)
    return _over(program, dict(zip(terms, specialized(terms, sizes), strict=True)), sizes)


def set_apart(program: Program, value: Term, users: Container[Term], other: Term) -> Program:
    """The program with `other` in place of `value` where that is an operand of one of the `users`."""
    made: dict[Term, Term] = {}
    for term in topological(_carried(program)):
        operands = [other if operand is value and term in users else made[operand] for operand in term.operands]
        made[term] = rebuild(term, operands)
    return _over(program, made, {})


def other_of(term: Term, number: int) -> Term:
    """A term like a constant, or like what moves one, over a constant with these elements that is known to be none of the rest."""

    def other(each: Term) -> Term:
        if each.op is not CONSTANT:
            return each
        content: Constant = each.attribute("value")
        return constant(replace(content, key=f"{content.key} apart {number}"))

    (made,) = rewritten([term], other)
    return made


def _carried(program: Program) -> list[Term]:
    """The roots of a program, its inputs and the sources of its dims."""
    return [*program.roots, *program.inputs, *_introducing(program).values()]


def _introducing(program: Program) -> dict[str, Term]:
    known = set(all_terms(program))
    return {name: term for name, term in program.introduces.items() if term in known}


def _over(program: Program, made: Mapping[Term, Term], sizes: Mapping[str, Dim]) -> Program:
    """The program over what its terms become."""
    named = {str(sizes.get(name, name)): made[term] for name, term in _introducing(program).items()}
    ends = program.with_roots(tuple(made[root] for root in program.roots))
    return replace(ends, inputs=tuple(made[term] for term in program.inputs), introduces=named)


def inner_symbols(program: Program) -> list[str]:
    """The dim symbols of a program that no input has, in the order in which its terms speak of them."""
    given = set(program.symbols())
    spoken = (name for term in all_terms(program) for name in all_symbols(term))
    return [name for name in dict.fromkeys(spoken) if name not in given]


def inner_names(program: Program) -> dict[str, Dim]:
    """What each symbol that no input has is called by content."""
    inner, given = inner_symbols(program), set(program.symbols())
    if not inner:
        return {}
    plain = {name: _free(f"_{place}", given) for place, name in enumerate(inner)}
    whole = digest(resized(program, plain))[:32]
    unknown: dict[str, Dim] = {name: _free(f"p{whole}_{place}", given) for place, name in enumerate(inner)}
    names: dict[str, Dim] = {}
    hashes: dict[Term, str] = {}
    for term in all_terms(program):
        new = introduced(term, unknown)
        own = {name: _free(f"_{place}", given) for place, name in enumerate(new)}
        row = _row(term, [hashes[operand] for operand in term.operands], {**unknown, **names, **own})
        hashes[term] = hashlib.sha256(json.dumps(row).encode()).hexdigest()[:32]
        for place, name in enumerate(new):
            del unknown[name]
            names[name] = _free(f"d{hashes[term]}_{place}", given)
    return names | unknown


def _free(name: str, given: set[str]) -> Dim:
    """A symbol that no input has."""
    while name in given:
        name += "@"
    return symbol(name)


def all_terms(program: Program) -> list[Term]:
    """The terms that a program's roots need, and then those that only its dims need."""
    return list(topological((*program.roots, *program.sources.values())))


def gives_dims(term: Term) -> bool:
    """Whether running an op says how large its result is, whatever its type calls it."""
    return term.op.has("foreign") or term.op.name in DYNAMIC


def introduced(term: Term, unknown: Container[str]) -> list[str]:
    """The symbols of `unknown` that the result of `term` has, where running it says what they are."""
    alone = (dims.alone(dim) for type in tensors_in(term.type) for dim in type.shape or ()) if gives_dims(term) else ()
    return [name for name in dict.fromkeys(alone) if name is not None and name in unknown]


def one_result(pairs: Iterable[Sequence[Term]], unknown: Container[str]) -> dict[str, Dim] | None:
    """What the symbols of `unknown` in the second terms are where each of these pairs, whose operands are equal, is one computation; None
    where one is none: they differ in more than what dims of their results are called."""
    sizes: dict[str, Dim] = {}
    pairs = list(pairs)
    for one, other in pairs:
        for mine, theirs in zip(tensors_in(one.type), tensors_in(other.type), strict=False):
            for dim, own in zip(mine.shape or (), theirs.shape or (), strict=False):
                if (name := dims.alone(own)) is not None and name in unknown:
                    sizes.setdefault(name, dim)
    same = all(
        gives_dims(one) and one.op is other.op and one.type == sized(other.type, sizes) and len(one.regions) == len(other.regions)
        and exact_key(one.attributes) == exact_key(tuple((name, sized(value, sizes)) for name, value in other.attributes))
        and all(mine == sized_region(theirs, sizes) for mine, theirs in zip(one.regions, other.regions, strict=True))
        for one, other in pairs
    )  # fmt: skip
    return sizes if same else None


def all_symbols(term: Term) -> Iterator[str]:
    """The dim symbols of a term's type, attributes and functions."""
    yield from symbols_in(term.type)
    for _, value in term.attributes:
        yield from symbols_in(value)
    for region in term.regions:
        for each in topological((*region.parameters, *region.results)):
            yield from all_symbols(each)


# ---------------------------------------------------------------- hashes


def digest(program: Program) -> str:
    """A hash of a program that is given `by_content`: its terms, the names and types of its inputs, the names of its outputs."""
    own = hashlib.sha256()
    numbers: dict[Term, int] = {}
    for term in all_terms(program):
        own.update(json.dumps(_row(term, [numbers[operand] for operand in term.operands])).encode() + b"\n")
        numbers[term] = len(numbers)
    inputs = [[term.attribute("name"), str(term.type)] for term in program.inputs]
    ends = [[name, numbers[term]] for name, term in program.outputs]
    own.update(json.dumps([inputs, ends, None if program.effects is None else numbers[program.effects]]).encode())
    return own.hexdigest()


def _row(term: Term, operands: Sequence[Any], sizes: Mapping[str, Dim] | None = None) -> list[Any]:
    """What a term is, as JSON; with `sizes` for its dim symbols."""
    attributes, regions, type = term.attributes, term.regions, term.type
    if sizes:
        attributes, type = tuple((name, sized(value, sizes)) for name, value in attributes), sized(type, sizes)
        regions = tuple(sized_region(region, sizes) for region in regions)
    text = [[name, _digestible(value)] for name, value in attributes], [_region(region) for region in regions]
    return [term.op.name, list(operands), text, str(type)]


def _region(region: Region) -> Any:
    numbers: dict[Term, int] = {}
    rows = []
    for term in topological((*region.parameters, *region.results)):
        rows.append(_row(term, [numbers[operand] for operand in term.operands]))
        numbers[term] = len(numbers)
    return rows, [numbers[term] for term in region.parameters], [numbers[term] for term in region.results]


def _digestible(value: Any) -> Any:
    if isinstance(value, Constant):
        return ["constant", str(value.type), value.key]
    if isinstance(value, tuple):
        return ["tuple", *map(_digestible, value)]
    if isinstance(value, Region):
        return ["region", _region(value)]
    if isinstance(value, float):
        return ["float", value.hex()]
    if isinstance(value, bytes):
        return ["bytes", hashlib.sha256(value).hexdigest()]
    return [type(value).__name__, str(value)]
