"""Small changes of a term that keep its type: what a careless rule writer might have written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from coset.ir.errors import CosetError
from coset.ir.term import Term, constant, make, rebuild, topological

_OTHER = {
    "add": "subtract", "subtract": "add", "multiply": "add", "divide": "multiply", "maximum": "minimum", "minimum": "maximum",
    "negate": "abs", "abs": "negate", "sqrt": "exponential", "and": "or", "or": "and",
}  # fmt: skip


def mutants(root: Term) -> Iterator[Term]:
    """`root` with one operand exchanged, one op, one attribute or one constant changed."""
    order = list(topological([root]))
    for term in order:
        for changed in _changed(term):
            if changed is None or changed is term or changed.type != term.type:
                continue
            done: dict[Term, Term] = {}
            try:
                for part in order:
                    done[part] = changed if part is term else rebuild(part, [done[operand] for operand in part.operands])
            except CosetError:
                continue
            if done[root] is not root and done[root].type == root.type:
                yield done[root]


def _changed(term: Term) -> Iterator[Term | None]:
    attributes = dict(term.attributes)
    for i in range(len(term.operands) - 1):
        operands = list(term.operands)
        operands[i], operands[i + 1] = operands[i + 1], operands[i]
        yield _made(term.op.name, operands, attributes)
    name = term.op.name.split(".", 1)[1]
    if name in _OTHER:
        yield _made(f"stablehlo.{_OTHER[name]}", term.operands, attributes)
    for key, value in attributes.items():
        for other in _values(value):
            yield _made(term.op.name, term.operands, {**attributes, key: other})
    if term.op.name == "builtin.constant" and term.tensor.dtype.kind in ("float", "int", "uint"):
        array = term.attribute("value").array()
        yield constant((array * 2 + 1).astype(array.dtype), term.tensor.dtype)


def _values(value: Any) -> list[Any]:
    if isinstance(value, tuple) and value and all(isinstance(item, int) for item in value):
        return [value[::-1], value[:-1], tuple(item + 1 for item in value), tuple(max(0, item - 1) for item in value)]
    return (
        {"add": ["maximum"], "maximum": ["add"], "LT": ["GE"], "GE": ["GT"], "EQ": ["NE"]}.get(value, []) if isinstance(value, str) else []
    )


def _made(name: str, operands: Sequence[Term], attributes: dict[str, Any]) -> Term | None:
    try:
        return make(name, operands, attributes)
    except CosetError:
        return None
