"""Ops that a program asks to be computed in a certain way: with a precision, by an algorithm, to an accuracy.

Source: the StableHLO specification, `dot_general` (precision_config, algorithm), `convolution` (precision_config) and the functions that
have a `result_accuracy` (https://openxla.org/stablehlo/spec).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from coset.dialects.hub.mlir_origin import mlir_origin
from coset.ir.builtin import HINTED, OPAQUE
from coset.ir.errors import CosetError
from coset.ir.op import get_op
from coset.ir.program import Program
from coset.ir.term import Region, Term, intern, make, rewritten, topological

Hints = Mapping[str, str]  # by the names of StableHLO's attributes, the texts that MLIR has for their values
PRECISION, ALGORITHM, ACCURACY = "precision_config", "algorithm", "result_accuracy"
HINTS = (PRECISION, ALGORITHM, ACCURACY)
_DEFAULTS = {PRECISION: r"\[(#stablehlo<precision DEFAULT>(, )?)*\]", ACCURACY: r"#stablehlo.result_accuracy<mode = #\S*<DEFAULT>>"}
_FIELD = re.compile(r"(\w+) = (\w+)")
Unmet = Callable[[Term], str]  # of a hinted term: why a target does not compute it as it is asked; "" if it does


def is_default(name: str, text: str) -> bool:
    """True for a hint that asks for nothing."""
    return name in _DEFAULTS and re.fullmatch(_DEFAULTS[name], text) is not None


def with_hints(term: Term, hints: Hints) -> Term:
    """`term` as its program asks for it; the term itself if no hint asks for anything."""
    asked = tuple(sorted((name, text) for name, text in hints.items() if not is_default(name, text)))
    return make(HINTED, term.operands, {"op": term.op.name, "given": term.attributes, "hints": asked}) if asked else term


def without_hints(term: Term) -> Term:
    """The op of a hinted term on its operands, computed in any way."""
    return intern(get_op(term.attribute("op")), term.operands, term.attribute("given"), (), term.type)


def evaluate_hinted(term: Term, operands: Sequence[Any]) -> Any:
    """The value of a hinted term on arrays: what its op means, whose sums are more precise than any hint asks."""
    plain = without_hints(term)
    assert plain.op.meaning is not None, plain
    return plain.op.meaning(plain, operands, dict[str, int]())


def is_sharding(term: Term) -> bool:
    """True for an operation that says how a value lies on devices, and gives that value. It is kept as it is written."""
    if term.op is not OPAQUE or len(term.operands) != 1 or term.operands[0].type != term.type:
        return False
    name = f"{term.attribute('domain')}.{term.attribute('name')}"
    called = name == "stablehlo.custom_call" and 'call_target_name = "Sharding"' in term.attribute("payload")
    return called or name == "sdy.sharding_constraint"


def full_precision(term: Term) -> str:
    """Why a target that multiplies and adds its element types as they are does not compute a hinted term as it is asked ("" if it does):
    it rounds no operand, but has one algorithm and says nothing of the accuracy of its functions."""
    asked = dict(term.attribute("hints"))
    if ACCURACY in asked:
        return "nothing is known of the accuracy that it has there"
    if ALGORITHM in asked and not _is_plain(term, asked[ALGORITHM]):
        return "that algorithm is not what the target computes"
    return ""


def _is_plain(term: Term, algorithm: str) -> bool:
    """Whether an algorithm multiplies the operands in their own type and adds in it, once."""
    own = term.operands[0].tensor.dtype.name
    given = dict(_FIELD.findall(algorithm))
    types = [given.get(name) for name in ("lhs_precision_type", "rhs_precision_type", "accumulation_type")]
    counts = [given.get(name) for name in ("lhs_component_count", "rhs_component_count", "num_primitive_operations")]
    return own in ("f32", "f64") and types == [own] * 3 and counts == ["1"] * 3


def honoured(program: Program, unmet: Unmet = full_precision) -> Program:
    """`program` without hints, for a target that computes every op as it is asked, and without what it says of values on devices.

    Raises:
        CosetError: `unmet` says why it does not compute one so.
    """
    places = mlir_origin(program.source).places

    def refuse(term: Term) -> None:
        why = unmet(term)
        if why:
            what = f"`{term.attribute('op')}` is asked for with {asked_text(term)}, and {why}"
            raise CosetError(what, place=places.get(term), help="write StableHLO, which keeps it, or leave it out of the model")

    return _plain(program, refuse)


def unhinted(program: Program) -> Program:
    """`program` with every op computed in any way, on any device: what its hints ask for is not looked at."""
    return _plain(program, lambda _: None)


def _plain(program: Program, see: Callable[[Term], None]) -> Program:
    """`program` without hints; `see` is called with each hinted term as it came."""

    def plain(term: Term) -> Term:
        if term.op is HINTED:
            return without_hints(term)
        if is_sharding(term):
            return term.operands[0]
        if not any(map(_has_hints, term.regions)):
            return term
        regions = tuple(Region(region.parameters, rewritten(region.results, plain)) for region in term.regions)
        return intern(term.op, term.operands, term.attributes, regions, term.type)

    _see_all((*program.roots, *program.sources.values()), see)
    roots = rewritten((*program.roots, *program.sources.values()), plain)
    count = len(program.roots)
    return program if roots[:count] == program.roots else program.with_sources(roots[count:]).with_roots(roots[:count])


def _see_all(roots: Sequence[Term], see: Callable[[Term], None]) -> None:
    for term in topological(roots):
        if term.op is HINTED:
            see(term)
        for region in term.regions:
            _see_all(region.results, see)


def _has_hints(region: Region) -> bool:
    return any(term.op is HINTED or is_sharding(term) or any(map(_has_hints, term.regions)) for term in topological(region.results))


def asked_text(term: Term) -> str:
    """What a hinted term asks for, in a line."""
    return ", ".join(f"{name} = {text}" for name, text in term.attribute("hints"))
