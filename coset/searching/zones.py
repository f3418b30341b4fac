"""Zones: parts of a program, by the names of its values, that are searched apart with numerics of their own, and put together again.

What crosses the border of a zone is an input of whoever reads it, so that no rule sees both sides: what a zone promises holds for each of
its values by itself. What is made of constants alone goes with its users.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from coset.dialects.onnx.origin import onnx_origin
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.term import INPUT, PARAMETER, Term, input_term, rebuild, topological
from coset.ir.types import TupleType
from coset.job.zone import Zone
from coset.searching.regionwise import Solved

REST = -1  # what is in no zone


@dataclass(frozen=True)
class Pieces:
    """A program in pieces: the roots of what is in no zone, first those of the program (`count`), and those of each zone. `borders` are the
    inputs that stand for a root of another piece: its piece (a zone's index or REST), and the place among the roots there."""

    rest: tuple[Term, ...]
    zones: tuple[tuple[Term, ...], ...]
    borders: Mapping[Term, tuple[int, int]]
    count: int

    def joined(self, rest: Solved, zones: Sequence[Solved]) -> Solved:
        """What was found for the pieces as one program.

        Raises:
            CosetError: pieces would have to be computed before each other.
        """
        stands = {border: (rest if piece == REST else zones[piece]).terms[place] for border, (piece, place) in self.borders.items()}
        terms = _filled(rest.terms[: self.count], stands)
        storable = rest.storable.union(*(zone.storable for zone in zones))
        return replace(rest, terms=terms, storable=storable, zones=tuple(zones))


def split(program: Program, roots: Sequence[Term], zones: Sequence[Zone]) -> Pieces:
    """`roots` of a program in pieces. A value is in the first zone that has its name; one without a name is where it is read.

    Raises:
        CosetError: a zone has no values.
    """
    order = list(topological(roots))
    piece = _assigned(program, order, zones)
    built: dict[Term, Term] = {}
    borders: dict[Term, tuple[int, int]] = {}
    stand: dict[Term, Term] = {}
    found: dict[int, dict[Term, int]] = {REST: {}, **{number: {} for number in range(len(zones))}}
    prefix = "border" + "'" * max((len(str(term.attribute("name"))) for term in program.inputs), default=0)  # as no input is called

    def seen(term: Term, by: int) -> Term:
        """A term as another piece reads it."""
        if piece.get(term, by) == by:
            return built[term]
        if term not in stand:
            stand[term] = input_term(f"{prefix} {len(stand)}", term.type)
            own = piece[term]
            borders[stand[term]] = (own, found[own].setdefault(built[term], len(found[own])))
        return stand[term]

    for term in order:
        built[term] = rebuild(term, [seen(operand, piece.get(term, REST)) for operand in term.operands])
    wanted = [seen(root, REST) for root in roots]
    rest = (*wanted, *found[REST])
    moved = {term: (own, place + len(wanted) if own == REST else place) for term, (own, place) in borders.items()}
    return Pieces(rest, tuple(tuple(found[number]) for number in range(len(zones))), moved, len(wanted))


def _assigned(program: Program, order: Sequence[Term], zones: Sequence[Zone]) -> dict[Term, int]:
    """The piece of each term; none of those that are made of constants alone, which are wherever they are read."""
    origin = onnx_origin(program.source)
    named: dict[Term, int] = {}
    held: set[int] = set()
    wanted = set(order)
    for name, term in origin.values.items():
        own = next((n for n, zone in enumerate(zones) if zone.holds(name) or zone.holds(origin.nodes.get(name, ""))), REST)
        both = (own, named.get(term, REST))
        named[term] = min(both) if REST not in both else max(both)  # of a value with several names the first zone that has one
        if term in wanted and term.op is not INPUT:
            held.add(own)
    live: set[Term] = set()
    for term in order:
        if term.op is INPUT or term.op is PARAMETER or term.op.has("effect") or any(operand in live for operand in term.operands):
            live.add(term)
    piece = {term: REST for term in live if term.op is INPUT or term.op.has("effect")}
    for term in reversed(order):
        if term in live and term not in piece:
            piece[term] = named.get(term, REST)
        own = piece.get(term, REST)
        for operand in term.operands if own != REST else ():
            if operand in live and operand not in named and operand.op is not INPUT and not operand.op.has("effect"):
                piece[operand] = own
    for term in order:  # a tuple goes no further than what reads its items
        if term in live and any(isinstance(operand.type, TupleType) for operand in term.operands):
            piece[term] = max(piece[operand] for operand in term.operands if operand in live)
    for number, zone in enumerate(zones):
        if number not in held:
            what = f"no value that the outputs need is called `{zone.pattern}`"
            raise CosetError(what, help="--numerics-for 'PATTERN=NUMERICS': names of values or of nodes")
    return piece


def _filled(roots: Sequence[Term], stands: Mapping[Term, Term]) -> tuple[Term, ...]:
    """`roots` with the terms that inputs stand for in their place, which may be over such inputs too."""
    made: dict[Term, Term] = {}
    begun: set[Term] = set()
    for root in roots:
        stack = [(root, 0)]
        while stack:
            term, position = stack.pop()
            if term in made:
                continue
            if position == 0 and term in begun:
                what = "the zones of --numerics-for would have to be computed before each other"
                raise CosetError(what, help="give one pattern for both")
            begun.add(term)
            below = (stands[term],) if term in stands else term.operands
            if position < len(below):
                stack += [(term, position + 1), (below[position], 0)]
            else:
                made[term] = made[stands[term]] if term in stands else rebuild(term, [made[operand] for operand in below])
    return tuple(made[root] for root in roots)
