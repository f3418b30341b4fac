"""The ONNX graph of a program: which terms are printed, under which names, in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from coset.dialects.onnx.bodies import CAPTURE, bodies, rename_free
from coset.dialects.onnx.dtypes import CODE_OF_DTYPE
from coset.dialects.onnx.origin import onnx_origin
from coset.ir import dims
from coset.ir.builtin import ABSENT, TOKEN
from coset.ir.constants import Constant, constant_of
from coset.ir.dims import Dim, Poly
from coset.ir.errors import CosetError
from coset.ir.evaluate import describe
from coset.ir.program import Program
from coset.ir.program_source import source_of
from coset.ir.term import GET, INPUT, TUPLE, Term, exact_key, get, topological
from coset.ir.types import AbsentType, DType, TensorType, TokenType
from coset.lowering.arranging.live import LiveStep, Steps
from coset.lowering.onnx.calls import Input, NodeCall, Numbers, PrintContext
from coset.lowering.onnx.order import by_places, sorted_nodes
from coset.lowering.onnx.printers import print_term
from coset.lowering.onnx.shapes import numbers_call
from coset.lowering.onnx.slice import find_splits
from coset.lowering.onnx.write import tensor_proto

Proto = Any  # a message of the `onnx` package
VIEWS = frozenset({"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity"})  # ONNX Runtime takes the memory of their operand


@dataclass(frozen=True)
class _Name:
    """An input that has been printed already."""

    text: str


class PrintedGraph:
    """The printed graph: `nodes` in order and `initializers` by name."""

    def __init__(
        self, program: Program, opset: int, newest: Callable[[], int], *, whole_dims: bool = True, original_sources: bool = False
    ) -> None:  # fmt: skip
        """Values stand where `places` of the program's source says; those that it does not name, behind what they are made of. Where
        expressions need a newer version than `opset`, that is the version where it is at most `newest` and gives the same expressions;
        else nothing is printed, and `needs_opset` says so."""
        self.program = program
        self.opset = opset
        self.nodes: list[Proto] = []
        self.initializers: dict[str, Constant] = {}
        self._whole_dims = whole_dims
        self._original_sources = original_sources
        origin = onnx_origin(program.source)
        self._context = PrintContext(opset, origin.positive)
        self._given = source_of(program).names
        self._introduces = program.introduces
        self._plans: dict[Term, Input] = {}
        self._sources: dict[str, Term] = {}
        self._dim_sources: dict[Dim, Term] = {}
        self._size_sources: dict[Dim, Term] | None = None  # once one is asked for
        self._names: dict[Term, str] = {}
        self._calls: dict[Any, str] = {}
        self.makers: dict[str, Term] = {}  # the term that a node is printed for, by the first result that it has
        self._constants: dict[str, str] = {constant.key: name for name, constant in origin.listed.items()}
        self._counts: dict[str, int] = {}
        self._taken = {name for name, _ in program.outputs} | {term.attribute("name") for term in program.inputs}
        self._taken |= origin.reserved | set(origin.listed)
        self._inner = origin.reserved
        self._output_name: dict[Term, str] = {}
        order = self._plan()
        self.needs_opset = max([opset, *(since_of(plan) for plan in self._plans.values())])
        if self.needs_opset > opset:
            if not self._context.same_at(self.needs_opset) or self.needs_opset > newest():
                return
            self.opset = self.needs_opset
        places = source_of(program).places
        self.order = order if places is None else by_places(order, places)
        self._emit_all(self.order)

    @property
    def names(self) -> Mapping[Term, str]:
        """What the values of terms are called where they are printed."""
        return self._names

    def steps(self) -> Steps:
        """What is printed for terms, in order: weights and what is computed from them alone is left out."""
        found = []
        constant: set[Term] = set()
        first: dict[Term, Term] = {}  # of the parts of a node with several results: the one that is computed first
        for term in self.order:
            if term.op is INPUT:
                continue
            plan = self._plans[term]
            reads = tuple(dict.fromkeys(_terms(plan) if isinstance(plan, NodeCall | Term) and plan is not term else term.operands))
            if all(read in constant for read in reads):
                constant.add(term)
                continue
            parts = plan.results if isinstance(plan, NodeCall) else ()
            if term in first:
                found.append(LiveStep(term, (first[term],), view=True))
                continue
            first.update(dict.fromkeys(parts, term))
            view = isinstance(plan, Term) or term.op in (GET, TUPLE) or (isinstance(plan, NodeCall) and plan.op in VIEWS)
            together = tuple(part for part in parts if part is not term)
            found.append(LiveStep(term, tuple(read for read in reads if read not in constant), view, together))
        outputs = tuple(term for _, term in self.program.outputs)
        return Steps(tuple(found), self.program.inputs, outputs)

    # ------------------------------------------------------------ which terms are printed

    def _plan(self) -> list[Term]:
        """Print every term that is needed to an expression; the needed terms, operands before users."""
        roots = list(self.program.roots)
        while True:
            order = list(topological(roots))
            self._plans.clear()
            self._context.kept.clear()
            self._context.splits = find_splits(order, set(roots))
            needed = set(roots)
            for term in reversed(order):
                if term in needed:
                    self._plans[term] = print_term(term, self._context)
                    needed.update(_terms(self._plans[term]))
            order = [term for term in order if term in needed]
            missing = self._find_sources(order)
            if not missing:
                return order
            roots += missing

    def _find_sources(self, order: Sequence[Term]) -> list[Term]:
        """Choose for each symbol that is computed with the value that has it; the terms that must be printed for it."""
        wanted = {name for plan in self._plans.values() for name in _symbols(plan)}
        for term in (*self.program.inputs, *(() if self._original_sources else order)):
            if term.op is INPUT or term.op.has("foreign") or (term.op is GET and term.operands[0].op.has("foreign")):
                for name in _alone(term):
                    self._sources.setdefault(name, term)
        if self._whole_dims and not self._original_sources:
            self._dim_sources = {}
            for term in order:
                if isinstance(term.type, TensorType) and self._needs_no_dims(term):
                    for dim in term.type.shape or ():
                        if isinstance(dim, Poly) and dims.alone(dim) is None:
                            self._dim_sources.setdefault(dim, term)
        missing = []
        for name in sorted(wanted - set(self._sources)):
            if name not in self._introduces:
                raise CosetError(f"no value of the program has the dim `{name}`, so that it cannot be computed")
            self._sources[name] = self._introduces[name]
            missing.append(self._introduces[name])
        return missing

    # ------------------------------------------------------------ names

    def _reserve_given(self, order: Sequence[Term]) -> None:
        for name, term in self.program.outputs:
            if term.op is not INPUT and term not in self._output_name:
                self._output_name[term] = name
        self._taken |= {self._given[term] for term in order if term in self._given}
        self._kept_names: dict[str, Term] = {}
        outputs = {name for name, _ in self.program.outputs}
        for term in order:
            given = self._given.get(term)
            if given is not None and given not in outputs and given not in self._inner:
                self._kept_names.setdefault(given, term)

    def _fresh(self, base: str) -> str:
        while True:
            count = self._counts.get(base, 0)
            self._counts[base] = count + 1
            name = f"{base}_{count}"
            if name not in self._taken:
                self._taken.add(name)
                return name

    def _new_name(self, term: Term) -> str:
        """The name for the value of `term`: the output's, the original one, or a new one."""
        if term in self._output_name:
            return self._output_name[term]
        given = self._given.get(term)
        if given is not None and self._kept_names.get(given) is term:
            return given
        return self._fresh(describe(term.operands[0] if term.op is GET else term).rpartition(".")[2].lower())

    # ------------------------------------------------------------ printing

    def _emit_all(self, order: Sequence[Term]) -> None:
        self._reserve_given(order)
        for term in order:
            start = len(self.nodes)
            self._emit_term(term)
            self.makers.update((next(filter(None, node.output), ""), term) for node in self.nodes[start:])
        for name, term in dict(self.program.outputs).items():
            if self._names[term] != name:
                self._append("Identity", [self._names[term]], [name], {})
                self.makers[name] = term
        self.nodes = sorted_nodes(self.nodes)

    def _emit_term(self, term: Term) -> None:
        if term.op is INPUT:
            self._names[term] = term.attribute("name")
        elif term.op.has("foreign"):
            self._emit_opaque(term)
        elif term.op in (TOKEN, ABSENT) or isinstance(term.type, TokenType):
            pass
        elif term.op is GET and term.operands[0].op.has("foreign"):
            pass  # named with its tuple
        elif term.op is not TUPLE:
            plan = self._plans[term]
            self._names[term] = self.emit(plan, term=term) if isinstance(plan, NodeCall) else self._input(plan, term)

    def _emit_opaque(self, term: Term) -> None:
        types = term.attribute("results")
        results = []
        for index, type in enumerate(types):
            value = term if len(types) == 1 else get(term, index)
            if isinstance(type, TokenType):
                continue
            if isinstance(type, AbsentType):
                results.append("")
                continue
            results.append(self._name_early(value))
        operands = term.operands[1:] if term.attribute("effect") else term.operands
        node = onnx.NodeProto()
        node.ParseFromString(term.attribute("payload"))
        captures = len(node.input)
        inputs = [self._names[operand] if operand.op is not ABSENT else "" for operand in operands]
        split = len(inputs) - captures
        mapping = {f"{CAPTURE}{index}": name for index, name in enumerate(inputs[split:])}
        for body in bodies(node):
            rename_free(body, mapping)
        del node.input[:]
        node.input.extend(inputs[:split])
        node.output.extend(results)
        node.op_type, node.domain = term.attribute("name"), term.attribute("domain")
        self.nodes.append(node)

    def _input(self, given: Input | _Name, term: Term | None = None) -> str:
        """The name of an input of a call, which is printed if need be; `term` is what a constant is the value of."""
        if given is None:
            return ""
        if isinstance(given, _Name):
            return given.text
        if isinstance(given, Constant):
            return self.constant(given, term)
        if isinstance(given, Numbers):
            given = self._numbers(given)
            return self._input(given, term) if isinstance(given, Constant | _Name) else self.emit(given, term=term)
        return self.emit(given) if isinstance(given, NodeCall) else self._names[given]

    def _numbers(self, numbers: Numbers) -> Constant | NodeCall:
        """What gives the numbers: a constant where they are known."""
        if any(dims.symbols(dim) for dim in numbers.dims):
            return numbers_call(self, numbers, _Name)  # type: ignore[arg-type]
        shape = numbers.shape if numbers.shape is not None else (len(numbers.dims),)
        return constant_of(np.array(numbers.dims, np.int64).astype(numbers.dtype.numpy).reshape(shape))

    def emit(self, call: NodeCall, *, term: Term | None = None) -> str:
        """Print `call` as the value of `term` (or of none); the name of its result. Equal calls are printed once."""
        inputs = [self._input(given) for given in call.inputs]
        while inputs and not inputs[-1]:
            inputs.pop()
        key = (call.domain, call.op, tuple(inputs), exact_key(tuple(sorted(call.attributes.items()))))
        self.needs_opset = max(self.needs_opset, call.since)
        if call.results:
            return self._emit_parts(call, inputs, key, term)
        early = term is not None and (term in self._output_name or term in self._names)
        if key in self._calls and not early:
            return self._calls[key]
        name = self._fresh(call.op.lower()) if term is None else self._name_early(term)
        self._append(call.op, inputs, [name], call.attributes, call.domain)
        self._calls.setdefault(key, name)
        return name

    def _emit_parts(self, call: NodeCall, inputs: Sequence[str], key: Any, term: Term | None) -> str:
        """Print a node with several results once, and name them all."""
        assert term is not None, "a call with several results is the value of a term"
        if key not in self._calls:
            names = [self._name_early(part) for part in call.results]
            self._append(call.op, inputs, names, call.attributes, call.domain)
            self._calls[key] = names[0]
        return self._names[term]

    def _append(self, op: str, inputs: Sequence[str], outputs: Sequence[str], attributes: Mapping[str, Any], domain: str = "") -> None:
        node = onnx.NodeProto(op_type=op, input=inputs, output=outputs, domain=domain)
        node.attribute.extend(attribute_proto(key, value) for key, value in sorted(attributes.items()))
        self.nodes.append(node)

    def constant(self, constant: Constant, term: Term | None = None) -> str:
        """The name of the initializer that holds `constant`."""
        if constant.key not in self._constants:
            name = self._constant_name(term)
            self._constants[constant.key] = name
            self.initializers[name] = constant
        return self._constants[constant.key]

    def _constant_name(self, term: Term | None) -> str:
        given: str | None = None if term is None else self._given.get(term)
        if term is None or given is None:
            return self._fresh("constant")
        if self._output_name.get(term) == given or self._kept_names.get(given) is term:
            return given
        return self._fresh("constant")

    def shape_source(self, dim: Dim) -> tuple[str, tuple[Dim, ...]] | None:
        """The name and the dims of a value one of whose dims is `dim`, or None where there is none."""
        symbol = dims.alone(dim)
        term = self._dim_sources.get(dim) if symbol is None else self._sources[symbol]
        if term is None:
            return None
        name = str(term.attribute("name")) if term.op is INPUT else self._name_early(term)
        return name, term.tensor.dims

    def size_source(self, dim: Dim) -> str | None:
        """The name of a value that has `dim` elements, or None where there is none."""
        if self._size_sources is None:
            self._size_sources = {}
            whole = self._whole_dims and not self._original_sources
            for term in (*self.program.inputs, *(self.order if whole else ())):
                if isinstance(term.type, TensorType) and term.type.shape is not None and (term.op is INPUT or self._needs_no_dims(term)):
                    self._size_sources.setdefault(term.tensor.elements, term)
        term = self._size_sources.get(dim)
        return None if term is None else str(term.attribute("name")) if term.op is INPUT else self._name_early(term)

    def _needs_no_dims(self, term: Term) -> bool:
        plan = self._plans[term]
        return isinstance(plan, NodeCall) and not any(_symbols(plan))

    def _name_early(self, term: Term) -> str:
        """The name of a value that may be printed later in the list: the final sort puts it first."""
        if term not in self._names:
            self._names[term] = self._new_name(term)
        return self._names[term]


def attribute_proto(name: str, value: Any) -> Proto:
    """An AttributeProto of a number, text, tuple, element type or Constant."""
    if isinstance(value, DType):
        value = CODE_OF_DTYPE[value]
    if isinstance(value, Constant):
        value = tensor_proto("", value)
    if isinstance(value, tuple):
        kinds = onnx.AttributeProto
        return onnx.helper.make_attribute(name, list(value), attr_type=kinds.INTS if not value else None)
    return onnx.helper.make_attribute(name, value)


def since_of(plan: Input) -> int:
    """The version of the operators that an expression needs."""
    return max([plan.since, *map(since_of, plan.inputs)]) if isinstance(plan, NodeCall) else 1


def _terms(plan: Input) -> Iterator[Term]:
    """The terms that an expression uses."""
    if isinstance(plan, Term):
        yield plan
    elif isinstance(plan, NodeCall):
        for given in plan.inputs:
            yield from _terms(given)


def _symbols(plan: Input) -> Iterator[str]:
    if isinstance(plan, Numbers):
        for dim in plan.dims:
            yield from dims.symbols(dim)
    elif isinstance(plan, NodeCall):
        for given in plan.inputs:
            yield from _symbols(given)


def _alone(term: Term) -> Iterator[str]:
    """The symbols that the type of `term` spells alone."""
    if isinstance(term.type, TensorType):
        for dim in term.type.shape or ():
            name = dims.alone(dim)
            if name is not None:
                yield name
