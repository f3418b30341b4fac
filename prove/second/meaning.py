"""What a term means, one step: what its op's definition says of it, by the first clause that fits."""

from __future__ import annotations

from coset.dialects.onnx.kept import opened
from coset.ir.term import GET, TUPLE, Term
from coset.prove.second import syntax as l
from coset.prove.second.answer import CannotSay, Refused, Unknown
from coset.prove.second.building import Builder, built
from coset.prove.second.matching import match
from coset.prove.second.rules import Side, clauses, conditions, starts
from coset.prove.second.scope import Unbound
from coset.prove.second.unify import settle

Entries = dict[str, list[l.Entry]]


def meaning(term: Term, entries: Entries) -> tuple[Term, str]:
    """The term that `term` means, and what its definition promises about numbers.

    Raises:
        Refused: it means nothing.
        CannotSay: its definition cannot be read here.
    """
    if term.op is GET and term.operands[0].op is TUPLE:
        return term.operands[0].operands[term.attribute("index")], "exact"
    if term.op.name == "onnx.node":  # the reader of ONNX files knows what a node is
        whole = opened(term)
        if whole is None:
            raise Refused("a node that nothing defines")
        return whole, "reassociates"
    if term.op.name in ("stablehlo.if", "stablehlo.case"):
        raise CannotSay(f"what {term.op.name} captures")
    if term.op.name == "stablehlo.while":
        raise CannotSay("what the turns of a loop make")
    for entry in entries.get(term.op.name, []):
        if isinstance(entry, l.Definition):
            return _clause(term, clauses(entry))
    raise Refused(f"`{term.op.name}` is not defined by a term")


def _clause(term: Term, sides: list[Side]) -> tuple[Term, str]:
    for side in sides:
        try:
            for start in starts(side.scope, ""):
                for matched in match(side.left[0][1], term, start):
                    for settled in settle(matched):
                        known = Builder(settled).locals_known()
                        for found in conditions(side, known):
                            return built(side.right[0][1], found, term.type), str(side.promise)
        except Unknown:
            continue
        except Unbound as error:
            raise CannotSay(f"`{error}` in the definition of {term.op.name}") from None
    raise Refused(f"no clause of `{term.op.name}` fits")
