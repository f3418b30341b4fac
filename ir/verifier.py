"""What every program keeps to, whichever stage made it: a fault here is one of the stage before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from weakref import WeakSet

from coset.ir import dims
from coset.ir.errors import CosetError
from coset.ir.program import Program, spelled, symbols_in, symbols_of, tensors_in
from coset.ir.term import GET, INPUT, Term, check_regions, intern, topological
from coset.ir.types import TokenType

_SOUND: WeakSet[Term] = WeakSet()  # terms that were verified: they never change


class VerificationError(AssertionError):
    """A program or a plan that breaks what all of them keep to. It is our fault, never the user's."""


def is_foreign(term: Term) -> bool:
    """True for what is kept in the form of another graph, and for its results."""
    return term.op.has("foreign") or (term.op is GET and term.operands[0].op.has("foreign"))


def verify_program(program: Program, *, gives_dims: Callable[[Term], bool] = is_foreign) -> None:
    """Refuse a program that is not well formed. `gives_dims` says which terms have dims that running them tells.

    Raises:
        VerificationError: an input or an output has no name of its own, a term has another type than its op's rule says, or
            attributes or regions that do not fit it, an effect is outside of the one order, or a dim symbol comes from nowhere.
    """
    order = list(topological((*program.roots, *program.inputs, *program.sources.values())))
    _verify_ends(program, order)
    verify_terms(order)
    _verify_effects(program, order)
    _verify_symbols(program, gives_dims)


def verify_terms(terms: Iterable[Term]) -> None:
    """Refuse terms that are not what their ops' rules say, and such below their regions.

    Raises:
        VerificationError: one is not.
    """
    waiting = [term for term in topological(terms) if term not in _SOUND]
    while waiting:
        term = waiting.pop()
        _verify_term(term)
        _SOUND.add(term)
        results = [result for region in term.regions for result in region.results]
        waiting += [inner for inner in topological(results) if inner not in _SOUND]


def _verify_term(term: Term) -> None:
    attributes = dict(term.attributes)
    try:
        types = [operand.type for operand in term.operands]
        inferred = term.op.infer(types, attributes)
        check_regions(term.op, types, attributes, term.regions)
        complete = term.op.complete(attributes)
    except CosetError as error:
        raise VerificationError(f"{term} is refused by its op: {error.message}") from None
    if inferred != term.type:
        raise VerificationError(f"{term} has another type than its op's rule says: {inferred}")
    if tuple(sorted(complete.items())) != term.attributes:
        raise VerificationError(f"{term} has not all attributes of its op, in order: {sorted(complete)}")
    if intern(term.op, term.operands, term.attributes, term.regions, term.type) is not term:
        raise VerificationError(f"{term} is a second object of an equal term")


def _verify_ends(program: Program, order: Sequence[Term]) -> None:
    for term in program.inputs:
        if term.op is not INPUT:
            raise VerificationError(f"the program has the input {term}, which is no `builtin.input`")
    inputs = [term.attribute("name") for term in program.inputs]
    outputs = [name for name, _ in dict.fromkeys(program.outputs)]  # ONNX lets a graph list one value twice
    for what, names in (("inputs", inputs), ("outputs", outputs)):
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            raise VerificationError(f"the program has two {what} called `{twice[0]}`")
    given = set(program.inputs)
    for term in order:
        if term.op is INPUT and term not in given:
            raise VerificationError(f"the program reads the input {term}, which it does not list")


# ---------------------------------------------------------------- effects


def _verify_effects(program: Program, order: Sequence[Term]) -> None:
    """What has an effect is below the last token, and no token is used by two of them: they are in one order."""
    if program.effects is not None and not isinstance(program.effects.type, TokenType):
        raise VerificationError(f"the last token of the program is {program.effects}, which is no token")
    ordered = set() if program.effects is None else set(topological((program.effects,)))
    used: dict[Term, Term] = {}
    for term in order:
        if not has_effect(term):
            continue
        if term not in ordered:
            raise VerificationError(f"{term} has an effect, but the last token of the program does not wait for it")
        for token in _tokens_of(term):
            other = used.setdefault(token, term)
            if other is not term and token.operands:
                raise VerificationError(f"{other} and {term} have effects and both follow {token}: neither is first")


def has_effect(term: Term) -> bool:
    """True for a term whose effect a token orders."""
    return any(isinstance(operand.type, TokenType) for operand in term.operands) and (
        term.op.has("effect") or dict(term.attributes).get("effect") is True
    )


def _tokens_of(term: Term) -> Iterator[Term]:
    """The tokens that a term takes."""
    return (operand for operand in term.operands if isinstance(operand.type, TokenType))


# ---------------------------------------------------------------- dim symbols


def _verify_symbols(program: Program, gives_dims: Callable[[Term], bool]) -> None:
    """Each dim symbol that a term speaks of is one of an input's, is introduced by a term, or is alone a dim of what gives dims."""
    for name, term in program.introduces.items():
        if all(dims.alone(dim) != name for type in tensors_in(term.type) for dim in type.shape or ()):
            raise VerificationError(f"the program says that {term} introduces the dim `{name}`, which it has not")
    known = spelled(program.inputs) | program.introduces.keys()
    for term in topological((*program.roots, *program.sources.values())):
        if gives_dims(term):
            alone = {dims.alone(dim) for type in tensors_in(term.type) for dim in type.shape or ()}
            known |= {each for each in alone if each is not None}
    for term in program.terms():
        lost = sorted({*symbols_in(term.type), *symbols_of(term)} - known)
        if lost:
            raise VerificationError(f"{term} speaks of the dim `{lost[0]}`, which no input has and nothing introduces")
