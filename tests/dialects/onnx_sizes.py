"""A node case of the standard with symbols for its dims: as many as its definition takes, and which have to be numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import onnx

from benchmarks import onnx_cases
from coset.dialects.onnx.graphs import node_of
from coset.dialects.onnx.node import define
from coset.frontends.onnx.model import import_model
from coset.frontends.onnx.values import host_value
from coset.ir.errors import TypeRuleError
from coset.ir.term import Term

SMALL = 64  # elements of an input that is a constant in real models: axes, shapes, scales, k
Place = tuple[str, int]  # a dim: the name of an input and an axis


@dataclass(frozen=True)
class Form:
    """How a case is written: the inputs that are constants, and the dims of the others that are numbers. Other dims above 1 are symbols."""

    constants: frozenset[str] = frozenset()
    numbers: frozenset[Place] = frozenset()

    def model(self, case: Any, inputs: dict[str, Any]) -> Any:
        """The case in this form; dims of equal size share a symbol, and no shapes of results are declared."""
        result = onnx.ModelProto()
        result.CopyFrom(case.model)
        kept = []
        for value in result.graph.input:
            if value.name in self.constants:
                result.graph.initializer.append(onnx.numpy_helper.from_array(inputs[value.name], value.name))
                continue
            kept.append(value)
            for axis, dim in enumerate(value.type.tensor_type.shape.dim):
                if dim.dim_value > 1 and (value.name, axis) not in self.numbers:
                    dim.dim_param = f"n{dim.dim_value}"
        del result.graph.input[:]
        result.graph.input.extend(kept)
        for value in result.graph.output:
            value.type.tensor_type.ClearField("shape")
        del result.graph.value_info[:]
        return result

    def binding(self, inputs: dict[str, Any]) -> dict[str, int]:
        """The numbers of the symbols."""
        return {f"n{size}": size for name, axis, size in sizes(inputs) if name not in self.constants and (name, axis) not in self.numbers}


@dataclass(frozen=True)
class Found:
    """The most symbolic form that the definition takes, and the terms that it gives for it, by the names of their results."""

    form: Form
    terms: dict[str, Term] = field(hash=False)


def parameters(case: Any) -> dict[str, Any]:
    """The inputs of a case with the parameters of the op's documentation that they are."""
    node = case.model.graph.node[0]
    given = onnx.defs.get_schema(node.op_type, domain=node.domain).inputs
    return {name: given[min(i, len(given) - 1)] for i, name in enumerate(node.input) if name}


def constants_of(case: Any, inputs: dict[str, Any]) -> Iterator[str]:
    """The inputs that exporters write as constants: scalars, and short vectors of a type that the op prescribes (axes, shapes, scales)."""
    for name, parameter in parameters(case).items():
        rank = np.ndim(inputs[name])
        if rank == 0 or (rank == 1 and np.size(inputs[name]) <= SMALL and (_prescribed(parameter) or parameter.name == "roi")):
            yield name


def _prescribed(parameter: Any) -> bool:
    return len(parameter.types) == 1 or parameter.types <= {"tensor(int32)", "tensor(int64)"}


def sizes(inputs: dict[str, Any]) -> Iterator[tuple[str, int, int]]:
    """(input, axis, size) of the dims above 1."""
    for name, array in inputs.items():
        yield from ((name, axis, size) for axis, size in enumerate(np.shape(array)) if size > 1)


def meanings(case: Any, form: Form, inputs: dict[str, Any]) -> dict[str, Term] | None:
    """The terms that the definition gives for a case of one node; None where it gives none."""
    program = import_model(form.model(case, inputs))
    node = case.model.graph.node[0]
    named = [name for name in node.output if name]
    if any(term.op.name == "builtin.opaque" for term in program.terms()):
        return None
    whole = next((term for term in program.terms() if term.op.name == "onnx.node"), None)
    if whole is None:
        return dict(program.outputs)
    seen = node_of(whole, whole.operands, tuple(host_value(operand) for operand in whole.operands))
    try:
        found = define(seen)
    except TypeRuleError:
        return None
    return None if found is None else {name: term for name, term in zip(node.output, found, strict=False) if name in named}


def most_symbolic(case: Any, inputs: dict[str, Any]) -> Found:
    """All dims symbols and nothing constant, if that is defined. Else some of the small operands are constants, as exporters write axes
    and shapes; the fewest. Else, one size after the other and then one dim after the other, what can be a symbol is one."""
    candidates = list(constants_of(case, inputs))
    choices = [frozenset(some) for count in range(len(candidates) + 1) for some in combinations(candidates, count)]
    for constants in choices:
        terms = meanings(case, form := Form(constants), inputs)
        if terms is not None:
            return Found(form, terms)
    best: Found | None = None
    for constants in choices:
        places = [(name, axis, size) for name, axis, size in sizes(inputs) if name not in constants]
        form = Form(constants, frozenset((name, axis) for name, axis, _ in places))
        terms = meanings(case, form, inputs)
        if terms is None:
            continue
        found = Found(form, terms)
        each_size = [
            {(name, axis) for name, axis, size in places if size == wanted} for wanted in dict.fromkeys(size for *_, size in places)
        ]
        for freed in (*each_size, *({(name, axis)} for name, axis, _ in places)):
            tried = Form(constants, found.form.numbers - freed)
            if tried != found.form and (terms := meanings(case, tried, inputs)) is not None:
                found = Found(tried, terms)
        if best is None or len(found.form.numbers) < len(best.form.numbers):
            best = found
    assert best is not None, f"{case.name} has no definition even for numbers"
    return best


def single_cases() -> Iterator[Any]:
    """The cases of one node that our evaluator computes."""
    for case in onnx_cases.tensor_cases():
        if len(case.model.graph.node) == 1 and onnx_cases.outcome(case).status == "ok":
            yield case
