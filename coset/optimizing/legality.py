"""What of a program a target cannot run as it stands, op by op: for targets that nothing is written for yet, and for docs/targets.md."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from coset.comparing.reference import read_program
from coset.extract.cost import Pricer
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.term import Term
from coset.targets.ops import check_ops
from coset.targets.target import Target

WRITTEN = ("onnx", "stablehlo", "torch", "*")
"""Dialects that coset writes."""
LISTED = 8


def without_form(program: Program, target: Target) -> dict[Term, str]:
    """The terms of `program` that the target has no legal form for, each with why. What no input goes into is computed when it is built."""
    pricer = Pricer(target, {})
    needs: set[Term] = set()
    found: dict[Term, str] = {}
    for term in program.terms():
        if term.op.name not in ("builtin.input", "builtin.parameter") and not any(operand in needs for operand in term.operands):
            continue
        needs.add(term)
        types = tuple(operand.type for operand in term.operands)
        if pricer.form(term.op, term.attributes, term.type, types, original=True) is None:
            found[term] = pricer.why_illegal(term.op, term.attributes, types)
    return found


def refuse_unwritten(model: Any, target: Target, own: Collection[str] = ()) -> None:
    """Nothing, where coset writes what the target takes. `own`: the user's ops whose nodes are read as terms.

    Raises:
        CosetError: it does not; with the ops of `model` that have no form there either, and why.
    """
    if target.dialect in WRITTEN:
        return
    from coset.lowering.planning.primitive import primitive  # and the whole of lowering with it

    check_ops(target)
    original = read_program(model, own=own)
    found = without_form(original.with_roots(primitive(original)), target)
    reasons = list(dict.fromkeys(f"`{term.op.name}`: {why}" for term, why in found.items()))
    what = f"coset writes no {target.dialect.upper()}, which `{target.name}` takes"
    if not reasons:
        raise CosetError(f"{what}, yet; every op of this program has a form there", help="docs/targets.md says what is written")
    raise CosetError(f"{what}, and the target cannot run this program: {_listed(reasons)}", help="docs/targets.md says what runs where")


def _listed(reasons: Sequence[str]) -> str:
    more = len(reasons) - LISTED
    return "; ".join([*reasons[:LISTED], *([f"and {more} more"] if more > 0 else [])])
