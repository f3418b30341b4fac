"""Two programs as a certificate speaks of them: weights by bytes, one interface, dims by what they are computed from, hashes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from coset.ir import dims
from coset.ir.constants import Constant
from coset.ir.dims import Dim, Poly
from coset.ir.program import Program
from coset.ir.stored import pieces
from coset.ir.term import INPUT, Region, Term, intern
from coset.ir.types import TensorType, TupleType, Type
from coset.prove.second.answer import Refused
from coset.prove.second.classes import Contents, below

SIZED = frozenset(
    f"stablehlo.{name}"
    for name in [
        "dynamic_broadcast_in_dim",
        "dynamic_conv",
        "dynamic_gather",
        "dynamic_iota",
        "dynamic_pad",
        "dynamic_reshape",
        "real_dynamic_slice",
    ]
)
INLINE = 16  # elements of a constant whose key is over the elements alone


def ordered(program: Program) -> list[Term]:
    """The terms of a program in the order of their numbers."""
    sources = program.sources
    return below([*program.roots, *(sources[name] for name in sorted(sources))])


# ---------------------------------------------------------------- changes of names, dims and weights


def symbols_in(term: Term) -> Iterator[str]:
    """The symbols that a term speaks of: in its type, then its attributes, then its regions; each as often as it stands there."""
    yield from _symbols_of_value(term.type)
    for _, value in term.attributes:
        yield from _symbols_of_value(value)
    for region in term.regions:
        yield from _symbols_of_value(region)


def _symbols_of_value(value: Any) -> Iterator[str]:
    if isinstance(value, Poly):
        yield from sorted(dims.symbols(value))
    elif isinstance(value, TensorType):
        yield from _symbols_of_value(value.shape or ())
    elif isinstance(value, TupleType):
        yield from _symbols_of_value(value.items)
    elif isinstance(value, tuple):
        for each in value:
            yield from _symbols_of_value(each)
    elif isinstance(value, Region):
        for term in below((*value.parameters, *value.results)):
            yield from symbols_in(term)


def renamed(value: Any, binding: Mapping[str, Dim]) -> Any:
    """An attribute or a type with symbols replaced."""
    if isinstance(value, Poly):
        return dims.substitute(value, binding)
    if isinstance(value, TensorType):
        return value if value.shape is None else TensorType(value.dtype, renamed(value.shape, binding))
    if isinstance(value, TupleType):
        return TupleType(renamed(value.items, binding))
    if isinstance(value, tuple):
        return tuple(renamed(each, binding) for each in value)
    if isinstance(value, Region):
        done = _over(below((*value.parameters, *value.results)), lambda term, operands: renamed_term(term, operands, binding))
        return Region(tuple(done[term] for term in value.parameters), tuple(done[term] for term in value.results))
    return value


def renamed_term(term: Term, operands: Sequence[Term], binding: Mapping[str, Dim]) -> Term:
    """A term with symbols replaced, over other operands."""
    attributes = tuple((name, renamed(value, binding)) for name, value in term.attributes)
    return intern(term.op, tuple(operands), attributes, renamed(term.regions, binding), renamed(term.type, binding))


def _over(terms: Sequence[Term], change: Callable[[Term, Sequence[Term]], Term]) -> dict[Term, Term]:
    done: dict[Term, Term] = {}
    for term in terms:
        done[term] = change(term, [done[operand] for operand in term.operands])
    return done


def changed(program: Program, change: Callable[[Term, Sequence[Term]], Term], names: Mapping[str, Dim] | None = None) -> Program:
    """A program whose terms are changed, operands first; `names` are the symbols that get other names."""
    introduces = program.introduces
    done = _over(below([*program.inputs, *program.roots, *introduces.values()]), change)
    own = {_name(name, names or {}): done[term] for name, term in introduces.items()}
    return replace(
        program,
        inputs=tuple(done[term] for term in program.inputs),
        outputs=tuple((name, done[term]) for name, term in program.outputs),
        effects=None if program.effects is None else done[program.effects],
        introduces=own,
    )


def _name(name: str, names: Mapping[str, Dim]) -> str:
    other = names.get(name)
    return (None if other is None else dims.alone(other)) or name


def with_dims(program: Program, binding: Mapping[str, Dim]) -> Program:
    """A program with symbols replaced everywhere."""
    if not binding:
        return program
    return changed(program, lambda term, operands: renamed_term(term, operands, binding), binding)


def with_own_constant(program: Program, c: Term, users: frozenset[Term], other: Term) -> Program:
    """A program in which these terms have another constant in place of one of their operands."""

    def change(term: Term, operands: Sequence[Term]) -> Term:
        mine = [other if operand is c and term in users else made for operand, made in zip(term.operands, operands, strict=True)]
        return intern(term.op, tuple(mine), term.attributes, term.regions, term.type)

    return changed(program, change)


def inner_symbols(program: Program) -> list[str]:
    """The symbols that no input has, in the order in which the terms speak of them."""
    given = set(program.symbols())
    return list(dict.fromkeys(name for term in ordered(program) for name in symbols_in(term) if name not in given))


# ---------------------------------------------------------------- one interface


def mapped(program: Program, names: Mapping[str, str]) -> Program:
    """AFTER with the names of BEFORE: `names` gives for a name of an input or output the one that it has there."""
    inputs = {term.attribute("name") for term in program.inputs}
    if unknown := set(names) - inputs - {name for name, _ in program.outputs}:
        raise Refused(f"the mapping speaks of {sorted(unknown)}, which the program has not")
    if not names:
        return program

    def change(term: Term, operands: Sequence[Term]) -> Term:
        if term.op is not INPUT or term.attribute("name") not in names:
            return intern(term.op, tuple(operands), term.attributes, term.regions, term.type)
        attributes = tuple((key, names[value] if key == "name" else value) for key, value in term.attributes)
        return intern(term.op, (), attributes, (), term.type)

    whole = changed(program, change)
    return replace(whole, outputs=tuple((names.get(name, name), term) for name, term in whole.outputs))


def fitted(before: Program, after: Program) -> Program:
    """AFTER, whose inputs have the dims that those of the same name have in BEFORE."""
    mine = {term.attribute("name"): term.type for term in before.inputs}
    binding: dict[str, Dim] = {}
    for term in after.inputs:
        for dim, there in _side_by_side(term.type, mine.get(term.attribute("name"))):
            name = dims.alone(dim)
            if name is not None:
                binding.setdefault(name, there)
    binding = {name: dim for name, dim in binding.items() if dims.alone(dim) != name}
    if not binding:
        return after
    taken = {name for dim in binding.values() for name in dims.symbols(dim)}
    spoken = {name for term in ordered(after) for name in symbols_in(term)} | taken | set(after.symbols())
    for name in inner_symbols(after):
        if name in taken:
            free = _free(name, spoken)
            binding[name] = dims.symbol(free)
            spoken.add(free)
    return with_dims(after, binding)


def _side_by_side(own: Type, other: Type | None) -> list[tuple[Dim, Dim]]:
    """The dims of two tensor types of one rank."""
    if not isinstance(own, TensorType) or not isinstance(other, TensorType) or own.shape is None or other.shape is None:
        return []
    return list(zip(own.shape, other.shape, strict=True)) if len(own.shape) == len(other.shape) else []


def interface(before: Program, after: Program) -> Program:
    """AFTER with its outputs in BEFORE's order.

    Raises:
        Refused: the inputs and outputs of the two do not fit.
    """
    inputs = [_inputs(program) for program in (before, after)]
    outputs = [dict(program.outputs) for program in (before, after)]
    for program, named in zip((before, after), outputs, strict=True):
        if len(named) != len(program.outputs):
            raise Refused("two outputs have one name")
    if set(outputs[0]) != set(outputs[1]) or (before.effects is None) != (after.effects is None):
        raise Refused("the programs have other outputs")
    for mine, theirs, program in ((inputs[0], inputs[1], before), (inputs[1], inputs[0], after)):
        free = program.unread()
        for name, term in mine.items():
            if name in theirs:
                if theirs[name].type != term.type:
                    raise Refused(f"the input {name} has another type")
            elif term not in free:
                raise Refused(f"the input {name} is read, and only one program has it")
    return replace(after, outputs=tuple((name, outputs[1][name]) for name, _ in before.outputs))


def _inputs(program: Program) -> dict[str, Term]:
    named = {term.attribute("name"): term for term in program.inputs}
    if len(named) != len(program.inputs):
        raise Refused("two inputs have one name")
    return named


def by_content(program: Program, contents: Contents) -> Program:
    """A program whose weights are the first that were seen with their bytes."""
    return changed(program, contents.term)


# ---------------------------------------------------------------- hashes


def program_hash(program: Program) -> str:
    """SHA-256 of a program, in hexadecimal."""
    digest = hashlib.sha256()
    terms = ordered(program)
    numbers = {term: place for place, term in enumerate(terms)}
    for term in terms:
        digest.update(_json([term.op.name, [numbers[operand] for operand in term.operands], _parts(term), str(term.type)]))
    inputs = [[term.attribute("name"), str(term.type)] for term in program.inputs]
    outputs = [[name, numbers[term]] for name, term in program.outputs]
    digest.update(json.dumps([inputs, outputs, None if program.effects is None else numbers[program.effects]]).encode())
    return digest.hexdigest()


def _json(value: Any) -> bytes:
    return (json.dumps(value) + "\n").encode()


def _parts(term: Term) -> list[Any]:
    return [[[name, _written(value)] for name, value in term.attributes], [_region(region) for region in term.regions]]


def _region(region: Region) -> list[Any]:
    terms = below((*region.parameters, *region.results))
    numbers = {term: place for place, term in enumerate(terms)}
    rows = [[term.op.name, [numbers[operand] for operand in term.operands], _parts(term), str(term.type)] for term in terms]
    return [rows, [numbers[term] for term in region.parameters], [numbers[term] for term in region.results]]


def _written(value: Any) -> list[Any]:
    if isinstance(value, Constant):
        return ["constant", str(value.type), _key(value)]
    if isinstance(value, tuple):
        return ["tuple", *(_written(each) for each in value)]
    if isinstance(value, Region):
        return ["region", *_region(value)]
    if isinstance(value, float):
        return ["float", value.hex() if value == value else "nan"]
    if isinstance(value, bytes):
        return ["bytes", hashlib.sha256(value).hexdigest()]
    return [type(value).__name__, str(value)]


def _key(value: Constant) -> str:
    digest = hashlib.blake2b(digest_size=16)
    shape = value.type.static
    assert shape is not None
    if value.type.dtype.kind == "string":
        digest.update(f"{value.type.dtype.name}{shape}".encode())
        for item in value.array().ravel().tolist():
            text = item if isinstance(item, bytes) else str(item).encode()
            digest.update(len(text).to_bytes(8, "little") + text)
        return digest.hexdigest()
    small = prod(shape) <= INLINE
    digest.update((f"{value.type.dtype.name}{shape}" if small else str(value.type)).encode())
    if prod(shape):
        for piece in pieces(value):
            digest.update(piece)
    return digest.hexdigest() if small else f"bytes {digest.hexdigest()}"


# ---------------------------------------------------------------- dims by content


def sized(term: Term) -> bool:
    """Whether running a term says how large it is."""
    return term.op.name in SIZED or term.op.has("foreign")


def places(type: Type, other: Type) -> list[tuple[str, Dim]]:
    """The symbols that are alone a dim of a type, with the dim at their place in another one."""
    found: list[tuple[str, Dim]] = []
    for mine, theirs in zip(_tensors(type), _tensors(other), strict=False):
        for dim, there in zip(mine.shape or (), theirs.shape or (), strict=False):
            name = dims.alone(dim)
            if name is not None:
                found.append((name, there))
    return found


def introduced(term: Term) -> list[str]:
    """The symbols that are alone a dim of a term's type, where running the term says how large it is."""
    if not sized(term):
        return []
    found: list[str] = []
    for each in _tensors(term.type):
        found += [name for dim in each.shape or () if (name := dims.alone(dim)) is not None]
    return list(dict.fromkeys(found))


def _tensors(type: Type) -> list[TensorType]:
    return [each for each in (type.items if isinstance(type, TupleType) else (type,)) if isinstance(each, TensorType)]


def with_content_dims(program: Program) -> Program:
    """A program whose inner symbols are called by what they are computed from."""
    inner = inner_symbols(program)
    if not inner:
        return program
    given = set(program.symbols())
    plain = with_dims(program, {name: dims.symbol(f"_{place}") for place, name in enumerate(inner)})
    whole = program_hash(plain)[:32]
    names: dict[str, str] = {name: _free(f"p{whole}_{place}", given) for place, name in enumerate(inner)}
    unknown = set(inner)
    hashes: dict[Term, str] = {}
    for term in ordered(program):
        new = [name for name in introduced(term) if name in unknown]
        binding = {name: dims.symbol(other) for name, other in names.items()}
        binding |= {name: dims.symbol(f"_{place}") for place, name in enumerate(new)}
        own = renamed_term(term, term.operands, binding)
        row = [term.op.name, [hashes[operand] for operand in term.operands], _parts(own), str(own.type)]
        hashes[term] = hashlib.sha256(json.dumps(row).encode()).hexdigest()[:32]
        for place, name in enumerate(new):
            names[name] = _free(f"d{hashes[term]}_{place}", given)
            unknown.discard(name)
    return with_dims(program, {name: dims.symbol(other) for name, other in names.items()})


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "@"
    return name
