"""The user's own ops in a job: which of them a search sees, and which are what they mean from the start."""

from __future__ import annotations

from collections.abc import Iterable

from coset.dialects.expansion import expanded
from coset.dialects.onnx.own import domain_and_name
from coset.ir.op import get_op
from coset.ir.program import Program
from coset.job.own_rules import OwnRules
from coset.rules.definition import definition_of
from coset.rules.elaborate import numerics_of
from coset.rules.library import DEFAULT, load
from coset.rules.rule import Rule, permitted
from coset.rules.written import WrittenRule
from coset.targets.target import Target, get_target


def has_form(target: Target, op: str) -> bool:
    """Whether the file of the target, or of its host, lists a form of the op."""
    host = () if target.host is None else get_target(target.host).forms.get(op, ())
    return bool(target.forms.get(op, ()) or host)


def meant_at_once(own: OwnRules, target: Target, numerics: str, *, certified: bool = False) -> frozenset[str]:
    """The ops that are read as what they mean: the target runs none of their nodes, and no rule of the user's looks for them. A certificate
    (`certified`) says each step from the node on, if the definition promises what `numerics` ask."""
    sought = {spelled.rpartition("/")[0] for rule in _own_rules(own) for spelled in rule.reads}
    return frozenset(op for op in own.ops if not has_form(target, op) and not ((certified or op in sought) and _is_permitted(op, numerics)))


def _is_permitted(op: str, numerics: str) -> bool:
    """Whether rules may read an op as what it means, by each clause of its definition."""
    return all(permitted(numerics_of(clause.promise), numerics) for clause in definition_of(get_op(op)).entry.clauses)


def _own_rules(own: OwnRules) -> Iterable[Rule]:
    """The user's rules, without what their definitions are expanded by."""
    if not own.ops:
        return ()
    written = [source for source in own.sources if isinstance(source, WrittenRule)]
    files = [source for source in own.sources if not isinstance(source, WrittenRule)]
    return [rule for rule in load([*DEFAULT, *files], written=written).rules if rule.definition is None or rule.recognises]


def as_written(program: Program, target: Target) -> Program:
    """The program with what a user's ops mean in place of those that the target lists no form of."""
    used = {term.op.name for term in program.terms() if domain_and_name(term.op) is not None}
    left = {name for name in used if not has_form(target, name)}
    if not left:
        return program
    roots = expanded(program.roots, lambda term: term.op.name not in left)
    return program.with_roots(tuple(roots))


def why_unwritten(op: str, target: Target) -> str:
    """Why no node of the user's op can stand in what is written for the target; "" where one may."""
    if domain_and_name(get_op(op)) is None or has_form(target, op):
        return ""
    return f"the target `{target.name}` lists no form of `{op}` under [legal] of its file"
