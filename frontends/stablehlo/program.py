"""StableHLO in: MLIR text, bytecode or a portable artifact becomes a `Program`. What we do not know is kept exactly, opaque."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from coset.dialects.hub.hints import is_sharding
from coset.dialects.hub.mlir_origin import MlirOrigin
from coset.dialects.hub.terms import literal
from coset.frontends.stablehlo.attributes import Foreign, attribute_of, bounds_of, elements_of, other_type, sized, static_type
from coset.frontends.stablehlo.beside import attributes_of, beside_of, listed_attributes, lost_in_call, name_of, resources_of
from coset.frontends.stablehlo.checks import SizeChecks
from coset.frontends.stablehlo.equalities import equal_dims
from coset.frontends.stablehlo.module import OpenedModule, open_module
from coset.frontends.stablehlo.node import KnownDim, MlirOperation, solve
from coset.frontends.stablehlo.opaque import EFFECTS, captured, opaque_payload
from coset.frontends.stablehlo.ops import build
from coset.ir import dims
from coset.ir.builtin import OPAQUE, TOKEN
from coset.ir.constants import Constant, constant_of
from coset.ir.dims import Dim
from coset.ir.errors import CosetError, TypeRuleError
from coset.ir.place import Place
from coset.ir.program import Program, spelled
from coset.ir.program_source import ProgramSource
from coset.ir.stages import passed
from coset.ir.term import INPUT, PARAMETER, Region, Term, get, input_term, make
from coset.ir.types import TensorType, TokenType, Type

Value = Any  # torch_mlir.ir.Value
Scope = dict[Value, Term]
_CALLS = ("func.call", "call")
_CONSTANTS = ("stablehlo.constant", "arith.constant", "shape.const_shape", "chlo.constant", "shape.const_size")
_NAME = re.compile(r'loc\("([A-Za-z_][\w.\-\[\]\']*)"(?:\(.*\))?\)', re.DOTALL)


def import_stablehlo(source: str | Path | bytes) -> Program:
    """The program of the function `main` (or of the only public one) in a file, in text, or in bytes.

    Private functions are put in where they are called. A dynamic size of an input is a symbol (`x_0` for dim 0 of input x,
    or the name that JAX gives it); sizes that every run needs to be equal are one symbol.

    Raises:
        CosetError: the source cannot be read, is no valid module, has no function to import, or functions call each other in a circle.
        MissingExtra: the MLIR bindings are not installed.
    """
    opened = open_module(source)
    known: dict[str, Dim] = {}
    constants: dict[Value, Constant] = {}
    while True:
        try:
            return passed("reading StableHLO", _Importer(opened, known, constants).program())
        except KnownDim as fact:  # a dim that was left open is known now: from the beginning
            known = {name: dims.substitute(dim, {fact.symbol: fact.dim}) for name, dim in known.items()}
            known[fact.symbol] = fact.dim


class _Importer:
    """The state of one import."""

    def __init__(self, opened: OpenedModule, known: Mapping[str, Dim], constants: dict[Value, Constant]) -> None:
        self.opened, self.known, self.constants = opened, known, constants
        self.functions = {op.attributes["sym_name"].value: op for op in opened.module.body.operations if op.operation.name == "func.func"}
        self.ages: dict[str, int] = {}
        self.calling: list[str] = []
        self.token: Term | None = None
        self.places: dict[Term, Place] = {}
        self.lost: list[str] = []
        self.bounds: dict[str, int] = {}
        self.of_inputs: set[str] = set()
        self.checks = SizeChecks(())
        self.within_region = 0

    def program(self) -> Program:
        """The imported program."""
        name, function = self._main()
        block = self._body(function, name)
        scope: Scope = {}
        taken: set[str] = set()
        inputs = tuple(self._input(argument, index, taken) for index, argument in enumerate(block.arguments))
        scope.update(zip(block.arguments, inputs, strict=True))
        self.checks = SizeChecks(list(block.arguments))
        self.of_inputs = spelled(inputs)
        for argument, term in scope.items():
            self._declared(term, argument.type)
        results = self._block(block, scope, name)
        names = _result_names(function, len(results))
        program = Program(inputs, tuple(zip(names, results, strict=True)), self.token)
        return replace(program, source=ProgramSource(origin=self._origin(program, name, function)))

    def _origin(self, program: Program, name: str, function: Any) -> MlirOrigin:
        """What the module says beside the program."""
        opened, module, type = self.opened, self.opened.module.operation, function.attributes["function_type"].value
        payloads = [str(term.attribute("payload")) for term in program.terms() if term.op is OPAQUE]
        beside = beside_of(opened, function, [*payloads, *(each.payload for each in self.checks.operations)])
        said = MlirOrigin(
            places=self.places, module=name_of(module), function=name,
            module_attributes=attributes_of(module, opened), function_attributes=attributes_of(function, opened),
            arguments=listed_attributes(function, "arg_attrs", len(program.inputs), opened),
            results=listed_attributes(function, "res_attrs", len(program.outputs), opened),
            beside=beside, bounds=self.bounds, argument_bounds=tuple(map(bounds_of, type.inputs)),
            result_bounds=tuple(map(bounds_of, type.results)), checks=tuple(self.checks.operations),
            constraints=sum(map(is_sharding, program.terms())), lost=tuple(dict.fromkeys(self.lost)),
        )  # fmt: skip
        values = [text for named in (said.module_attributes, said.function_attributes, *said.arguments, *said.results) for _, text in named]
        return replace(said, resources=resources_of([*values, *beside.values(), *payloads], self.opened))

    def _main(self) -> tuple[str, Any]:
        public = [name for name, op in self.functions.items() if "private" not in str(attribute_of(op, "sym_visibility"))]
        name = "main" if "main" in self.functions else public[0] if len(public) == 1 else None
        if name is None:
            listed = ", ".join(public) or "none"
            raise self.opened.error(f"the module has no function `main`, and its public functions are: {listed}", help="name one `main`")
        return name, self.functions[name]

    def _body(self, function: Any, name: str, *, op: Any = None) -> Any:
        blocks = list(function.regions[0].blocks)
        if len(blocks) != 1:
            what = "no body" if not blocks else "more than one block"
            raise self.opened.error(f"the function `{name}` has {what}", op=op or function, help="import the module before it is lowered")
        return blocks[0]

    def _input(self, argument: Value, index: int, taken: set[str]) -> Term:
        match = _NAME.fullmatch(str(argument.location))
        name = match.group(1) if match is not None and match.group(1) not in taken else f"arg{index}"
        taken.add(name)
        return input_term(name, self._type(argument.type, re.sub(r"\W", "_", name)))

    def _type(self, type: Any, hint: str) -> Type:
        """Our type, with a symbol for each dynamic size."""
        found = sized(type)
        if found is None:
            return other_type(type)
        dtype, sizes = found
        return TensorType(dtype, tuple(self._symbol(f"{hint}_{axis}") if size is None else size for axis, size in enumerate(sizes)))

    # ------------------------------------------------------------ what builders ask for

    def fresh(self, hint: str) -> Dim:
        """A new symbol; a repeated import gives the same names in the same order."""
        return self._symbol(f"{hint}{len(self.ages)}")

    def _symbol(self, name: str) -> Dim:
        self.ages.setdefault(name, len(self.ages))
        return dims.substitute(dims.symbol(name), self.known)

    def remember(self, term: Term, op: Any) -> None:
        """Where `term` stands in the module: errors about it say so."""
        self.places.setdefault(term, self.opened.place(op))

    def keep_check(self, op: Any) -> None:
        """Keep an assertion about sizes beside the program: it is no term of it."""
        if self.within_region or not self.checks.keep(op):
            self.lost.append("an assertion about sizes inside of control flow")

    def equal(self, a: Dim, b: Dim) -> None:
        """State that a run that does not fail has a = b: the import begins again where that is news.

        Raises:
            TypeRuleError: they are different numbers.
        """
        if a == b:
            return
        if isinstance(dims.subtract(a, b), int):
            raise TypeRuleError(f"dims {a} and {b} must be equal")
        answer = solve(a, b, lambda name: self.ages.get(name, -1))
        if answer is not None:
            raise KnownDim(*answer)

    def inline(self, region: Any, arguments: Sequence[Term], scope: Scope) -> list[Term]:
        """The terms that a region returns, its operations put into the program at this place."""
        (block,) = region.blocks
        inner = dict(scope)
        inner.update(zip(block.arguments, arguments, strict=True))
        return self._block(block, inner, "a region")

    def region(self, region: Any, parameters: Sequence[Term], outer: Scope) -> Region:
        """The payload function of a region, whose outer values are `outer`.

        Raises:
            Foreign: it has effects.
        """
        before = self.token
        self.within_region += 1
        results = self.inline(region, parameters, outer)
        self.within_region -= 1
        if self.token is not before:
            self.token = before
            raise Foreign
        return Region(tuple(parameters), tuple(results))

    def function(self, name: str, types: Sequence[Type]) -> Region:
        """The private function `name` as a payload function of parameters of these types.

        Raises:
            Foreign: it has effects.
        """
        parameters = tuple(make(PARAMETER, (), {"index": index, "type": type}) for index, type in enumerate(types))
        before = self.token
        self.within_region += 1
        results = self._called(name, parameters, None)
        self.within_region -= 1
        if self.token is not before:
            self.token = before
            raise Foreign
        return Region(parameters, tuple(results))

    # ------------------------------------------------------------ operations

    def _block(self, block: Any, scope: Scope, where: str) -> list[Term]:
        """Import the operations of a block; the terms that its terminator returns."""
        operations = list(block.operations)
        if not operations:
            raise self.opened.error(f"{where} returns nothing")
        for op in operations[:-1]:
            self._operation(op.operation, scope)
        return [scope[value] for value in operations[-1].operands]

    def _operation(self, op: Any, scope: Scope) -> None:
        results = self._results(op, scope)
        for value, term in zip(op.results, results, strict=True):
            scope[value] = term
            self._declared(term, value.type)

    def _results(self, op: Any, scope: Scope) -> Sequence[Term]:
        if op.name in _CONSTANTS and not any("." in name for name in op.attributes):
            return (self._constant(op),)
        operands = tuple(scope[value] for value in op.operands)
        if op.name in _CALLS:
            return self._call(op, operands)
        depth, lost = self.within_region, len(self.lost)
        try:
            built = self._built(MlirOperation(op, op.name, operands, scope, self))
            if built is not None:
                return (built,) if isinstance(built, Term) else built
        except (Foreign, TypeRuleError):
            self.within_region = depth
            del self.lost[lost:]  # it is kept with all that is inside
        return self._opaque(op, operands, scope)

    def _built(self, node: MlirOperation) -> Any:
        """The results as hub terms; a type rule that refuses dims which a run needs to be equal states so."""
        try:
            return build(node)
        except TypeRuleError:
            for a, b in equal_dims(node):
                self.equal(a, b)
            raise

    def _constant(self, op: Any) -> Term:
        value = op.results[0]
        if value not in self.constants:
            attribute = attribute_of(op, "value") if "value" in op.attributes else attribute_of(op, "shape")
            try:
                self.constants[value] = self._elements(attribute, value)
            except Foreign:
                return self._opaque(op, (), {})[0]
            except CosetError as error:
                raise self.opened.error(error.message, op=op, help=error.help) from None
        return literal(self.constants[value])

    def _elements(self, attribute: Any, value: Value) -> Constant:
        found = sized(value.type)
        if found is None:
            raise Foreign
        dtype, sizes = found
        if not sizes and not str(attribute).startswith("dense"):  # arith.constant of a number
            return constant_of(attribute.value, dtype)
        return constant_of(elements_of(attribute, self.opened), dtype)

    def _call(self, op: Any, operands: Sequence[Term]) -> list[Term]:
        return self._called(op.attributes["callee"].value, operands, op)

    def _called(self, name: str, operands: Sequence[Term], op: Any) -> list[Term]:
        """The results of the function `name` on `operands`, its operations put in at this place."""
        if name in self.calling:
            circle = " -> ".join([*self.calling[self.calling.index(name) :], name])
            raise self.opened.error(f"functions call each other in a circle: {circle}", op=op, help="write the recursion as a loop")
        if name not in self.functions:
            raise self.opened.error(f"the function `{name}` is called, but not defined", op=op)
        function = self.functions[name]
        block = self._body(function, name, op=op)
        for index, (argument, term) in enumerate(zip(block.arguments, operands, strict=True)):
            self._named_dim(function, index, term)
            self._declared(term, argument.type)
        self.lost += lost_in_call(op, function, self.opened)
        self.calling.append(name)
        callers = dict(zip(block.arguments, op.operands, strict=True)) if op is not None else {}
        self.checks.callers |= callers
        results = self._block(block, dict(zip(block.arguments, operands, strict=True)), f"the function `{name}`")
        self.calling.pop()
        for argument in callers:
            del self.checks.callers[argument]
        return results

    def _named_dim(self, function: Any, index: int, term: Term) -> None:
        """JAX passes the dims of a shape-polymorphic program as arguments with their names: symbols take these names."""
        attributes = attribute_of(function, "arg_attrs")
        text = str(attributes[index]) if attributes is not None else ""
        match = re.search(r'jax\.global_constant = "([A-Za-z_]\w*)"', text)
        if match is None or term.op.name != "builtin.dims":
            return
        (dim,) = term.attribute("dims")
        name = dims.alone(dim)
        if name is not None and name != match.group(1) and match.group(1) not in self.ages and name in self.ages:
            raise KnownDim(name, dims.symbol(match.group(1)))

    def _declared(self, term: Term, type: Any) -> None:
        """A size that the module declares and a symbol that we have for it are equal."""
        found = sized(type)
        if found is None or not isinstance(term.type, TensorType) or term.type.shape is None:
            return
        for dim, bound in zip(term.type.shape, bounds_of(type), strict=False):
            name = None if isinstance(dim, int) else dims.alone(dim)
            if bound is not None and name is not None and (name not in self.of_inputs or term.op is INPUT):
                self.bounds[name] = min(bound, self.bounds.get(name, bound))
        for ours, theirs in zip(term.type.shape, found[1], strict=True):
            if theirs is not None and ours != theirs:
                self.equal(ours, theirs)

    def _opaque(self, op: Any, operands: Sequence[Term], scope: Scope) -> Sequence[Term]:
        """The operation as it is written, over its operands and the outer values that its regions use."""
        outer = captured(op)
        payload = opaque_payload(op, outer)
        domain, _, name = op.name.partition(".")
        effect = EFFECTS(op)
        types = [self._open_type(value.type, index) for index, value in enumerate(op.results)]
        inputs = [*operands, *(scope[value] for value in outer)]
        if effect:
            inputs, types = [self.token or make(TOKEN), *inputs], [*types, TokenType()]
        attributes = {"domain": domain, "name": name, "payload": payload, "results": tuple(types), "effect": effect}
        term = make(OPAQUE, inputs, attributes)
        results = [term] if len(types) == 1 else [get(term, index) for index in range(len(types))]
        if effect:
            self.token = results.pop()
        return results

    def _open_type(self, type: Any, _: int) -> Type:
        found = sized(type)
        if found is None or None not in found[1]:
            return static_type(type)
        return TensorType(found[0], tuple(self.fresh("d") if size is None else size for size in found[1]))


def _result_names(function: Any, count: int) -> list[str]:
    attributes = attribute_of(function, "res_attrs")
    names: list[str] = []
    for index in range(count):
        match = re.search(r'jax\.result_info = "([^"]+)"', str(attributes[index])) if attributes is not None else None
        names.append(match.group(1) if match is not None and match.group(1) not in names else f"result{index}")
    return names if len(set(names)) == count else [f"result{index}" for index in range(count)]
