"""Standard ONNX and nothing else: which terms are written as ops of the default domain."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx

from coset.dialects.expansion import expanded
from coset.dialects.onnx.kept import opened
from coset.dialects.onnx.origin import header_bytes, onnx_origin, with_header
from coset.ir.program import Program
from coset.ir.stages import passed
from coset.ir.term import Term, rebuild, topological
from coset.ir.types import Type

Printable = Callable[[str, Mapping[str, Any], Sequence[Type]], str | None]
DEFAULT_DOMAINS = ("", "ai.onnx")
RUNTIMES_OWN = (
    "com.microsoft",
    "com.ms",
    "ai.onnx.ml",
    "ai.onnx.preview",
    "ai.onnx.training",
    "ai.onnx.contrib",
)  # how other domains begin
RUNTIMES = ("ort",)  # dialects that are written in a runtime's own domain


def standard_only(printable: Printable) -> Printable:
    """`printable`, which says why an op cannot be written (None: it can), where only the default domain's ops can be."""

    def why_not(name: str, attributes: Mapping[str, Any], types: Sequence[Type]) -> str | None:
        domain = attributes.get("domain", "") if name in ("onnx.node", "builtin.opaque") else ""
        if domain not in DEFAULT_DOMAINS and not is_users_own(domain):
            return f"`{domain}.{attributes['name']}` is no op of the standard's own domain"
        if name.partition(".")[0] in RUNTIMES:
            return f"`{name}` is a runtime's own, and no definition of it has a form here"
        return printable(name, attributes, types)

    return why_not


def is_users_own(domain: str) -> bool:
    """True for a domain that is neither the standard's nor a runtime's: whoever runs the model has its ops."""
    return domain not in DEFAULT_DOMAINS and not domain.startswith(RUNTIMES_OWN)


def without_runtimes(program: Program) -> Program:
    """The program with what nodes of other domains mean in place of those whose definitions say it, and without importing those domains."""
    sources = tuple(program.sources.values())
    made: dict[Term, Term] = {}
    for term in topological((*program.roots, *sources)):
        built = rebuild(term, [made[operand] for operand in term.operands])
        foreign = term.op.name == "onnx.node" and term.attribute("domain") not in DEFAULT_DOMAINS
        made[term] = (opened(built) if foreign else None) or built
    roots = expanded([made[term] for term in (*program.roots, *sources)], lambda term: term.op.dialect not in RUNTIMES)
    count = len(program.roots)
    return passed("leaving runtimes out", _imports_less(program.with_sources(roots[count:]).with_roots(tuple(roots[:count]))))


def _imports_less(program: Program) -> Program:
    """The program with a header that imports the default domain only."""
    header = onnx.ModelProto()
    header.ParseFromString(header_bytes(program))
    kept = [each for each in header.opset_import if each.domain in DEFAULT_DOMAINS or is_users_own(each.domain)]
    del header.opset_import[:]
    header.opset_import.extend(kept)
    given = onnx_origin(program.source).opsets
    opsets = {each.domain: given[each.domain] for each in kept if each.domain in given}
    return with_header(program, header.SerializeToString(), opsets=opsets)
