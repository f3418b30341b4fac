"""ONNX out: a `Program` becomes a ModelProto or a file that passes the checker and loads in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from coset.dialects.onnx.bodies import all_nodes, bodies, ops_of
from coset.dialects.onnx.dtypes import CODE_OF_DTYPE
from coset.dialects.onnx.importing import NEWEST
from coset.dialects.onnx.origin import OnnxOrigin, onnx_origin
from coset.dialects.onnx.own import domain_and_name
from coset.ir.builtin import OPAQUE
from coset.ir.constants import Constant, constant_of
from coset.ir.errors import CosetError
from coset.ir.op import get_op
from coset.ir.program import Program
from coset.ir.program_source import ProgramSource
from coset.ir.term import GET, PARAMETER, Term, get, input_term, make, rebuild
from coset.ir.types import AbsentType, DType, ForeignType, TensorType, TokenType, Type
from coset.lowering.arranging.live import Steps
from coset.lowering.onnx.calls import NoOnnxForm, PrintContext
from coset.lowering.onnx.devices import mark_devices
from coset.lowering.onnx.graph import PrintedGraph, attribute_proto, since_of
from coset.lowering.onnx.order import CyclicShapes
from coset.lowering.onnx.printers import print_term
from coset.lowering.onnx.write import EXTERNAL_BYTES, SMALL_BYTES, stored_bytes, tensor_proto, write_beside, write_inside

Model = Any  # onnx.ModelProto
_NO_VALUE = (AbsentType, TokenType)
DEFAULT_OPSET = 20  # of programs that did not come from ONNX: has every op that we print


def lower(program: Program) -> Model:
    """The ModelProto of `program`, weights inside (under 2 GB; `write` has no such bound).

    Raises:
        CosetError: a term has no ONNX form in the versions that the program's opaque nodes allow.
    """
    model, weights = _split(program, small=0)
    for name, constant in weights.items():
        model.graph.initializer.append(tensor_proto(name, constant))
    return model


def write(
    program: Program, path: str | Path, *,
    external: bool | None = None, metadata: Mapping[str, str] | None = None, devices: Mapping[Term, str] | None = None,
    graphs: Graphs | None = None, lasting: bool = True,
) -> None:  # fmt: skip
    """Write `program` to `path`, and its weights beside it (`path`.DIGEST.data) where `external` is true, where it is None and they take
    more than 1.5 GB, or where it is None and the source had external data. The files appear whole, or not at all. `metadata` are entries of
    `metadata_props`, in place of those of the source that have their keys; `devices` are the names that the nodes of terms say they run on;
    `graphs` may have the program's graph. What is not `lasting` is a draft (see `replacing`).

    Raises:
        CosetError: as `lower`, or the files cannot be written.
    """
    path, graphs = Path(path), graphs or Graphs()
    model, weights = _split(program, small=SMALL_BYTES, graphs=graphs)
    _note(model, metadata or {})
    if devices:
        mark_devices(model, graphs.of(program), devices, _type_proto)
    total = sum(map(stored_bytes, weights.values()))
    if external or (external is None and (total > EXTERNAL_BYTES or onnx_origin(program.source).external)):
        write_beside(model, weights, path, lasting=lasting)
    elif total + model.ByteSize() >= 1 << 31:
        raise CosetError(f"the weights take {total} bytes, but an ONNX file ends at 2 GiB", help="write them as external data")
    else:
        write_inside(model, weights, path, lasting=lasting)


class Graphs:
    """The graphs of the two programs that were printed last: a job writes a program, counts its nodes and follows its bytes."""

    def __init__(self) -> None:
        self._known: list[tuple[Program, PrintedGraph]] = []

    def of(self, program: Program) -> PrintedGraph:
        """The graph of `program`.

        Raises:
            CosetError: as `lower`.
        """
        found = next((graph for known, graph in self._known if known is program), None)
        if found is None:
            found = _graph(program)
            self._known = [*self._known[-1:], (program, found)]
        return found


def count_ops(program: Program, graphs: Graphs | None = None) -> dict[str, int]:
    """How many ONNX nodes of each op `program` is written as, bodies included."""
    return ops_of((graphs or Graphs()).of(program).nodes)


def live_steps(program: Program, graphs: Graphs | None = None) -> Steps:
    """What the ONNX nodes of `program` compute, in their order."""
    return (graphs or Graphs()).of(program).steps()


def value_names(program: Program, graphs: Graphs | None = None) -> Mapping[Term, str]:
    """What the values of `program` are called in the ONNX nodes that it is written as."""
    return (graphs or Graphs()).of(program).names


def value_kinds(program: Program, graphs: Graphs | None = None) -> Mapping[str, str]:
    """The op of the ONNX node that each value of `program` is written as, by the value's name."""
    return {name: node.op_type for node in (graphs or Graphs()).of(program).nodes for name in node.output}


def printable(name: str, attributes: Mapping[str, Any], types: Sequence[Type], opset: int) -> str | None:
    """None when the op `name` with these attributes on operands of these types has an ONNX form in version `opset`, else why not."""
    parameters = [make(PARAMETER, (), {"index": index, "type": type}) for index, type in enumerate(types)]
    try:
        plan = print_term(make(get_op(name), parameters, dict(attributes)), PrintContext(opset))
    except CosetError as error:
        return error.message
    except NoOnnxForm as refusal:
        return str(refusal)
    needed = since_of(plan)
    return f"`{name}` needs version {needed} of the ONNX operators, the model has {opset}" if needed > opset else None


def highest_opset(program: Program) -> int:
    """The newest version of the default domain in which every opaque node of `program` means what it means in its own version."""
    version = opset_of(program)
    names = {name for term in program.terms() if term.op.has("foreign") for name in _default_ops(term)}
    functions = _header(program).functions
    names |= {node.op_type for function in functions for node in all_nodes(function.node) if node.domain in ("", "ai.onnx")}
    newest = max(version, NEWEST)
    for newer in range(version + 1, newest + 1):
        if any(_since(name, newer) != _since(name, version) for name in names):
            return newer - 1
    return newest


def opset_of(program: Program) -> int:
    """The version of the default domain that `program` came with, or our default."""
    return onnx_origin(program.source).opsets.get("", DEFAULT_OPSET)


def _default_ops(term: Term) -> set[str]:
    """The names of the default domain's ops that an opaque term is made of."""
    node = onnx.NodeProto()
    node.ParseFromString(term.attribute("payload"))
    inner = {other.op_type for body in bodies(node) for other in all_nodes(body.node) if other.domain in ("", "ai.onnx")}
    return inner | ({term.attribute("name")} if term.attribute("domain") == "" else set())


def _since(name: str, version: int) -> int:
    try:
        return int(onnx.defs.get_schema(name, version, "").since_version)
    except onnx.defs.SchemaError:
        return 0


def element_code(dtype: DType) -> int:
    """ONNX's number of an element type."""
    return CODE_OF_DTYPE[dtype]


def node_model(term: Term, source: ProgramSource | None) -> Model:
    """A model of one opaque node alone: inputs `x0, x1, ..` for its operands (absent ones and tokens left out), outputs `y0, y1, ..`.

    `source` is its program's `source`, for the versions and functions that the node is written in.
    """
    operands = [op if isinstance(op.type, _NO_VALUE) else input_term(f"x{index}", op.type) for index, op in enumerate(term.operands)]
    alone = rebuild(term, operands)
    types = term.attribute("results")
    values = [alone if len(types) == 1 else get(alone, index) for index in range(len(types))]
    outputs = tuple((f"y{index}", value) for index, value in enumerate(values) if not isinstance(value.type, _NO_VALUE))
    inputs = tuple(operand for operand in operands if not isinstance(operand.type, _NO_VALUE))
    return part_model(inputs, outputs, source)


def part_model(inputs: Sequence[Term], outputs: Sequence[tuple[str, Term]], source: ProgramSource | None) -> Model:
    """A model of a part of a program from `source`, with that one's versions and functions.

    Raises:
        CosetError: as `lower`.
    """
    origin = onnx_origin(source)
    kept = OnnxOrigin(opsets=origin.opsets, reserved=origin.reserved)
    model = lower(Program(tuple(inputs), tuple(outputs), source=ProgramSource(origin=kept)))
    if origin.model is not None:
        header = onnx.ModelProto()
        header.ParseFromString(origin.model)
        model.functions.extend(header.functions)
        model.ir_version = max(header.ir_version, model.ir_version)
    return model


def run_reference(model: bytes, feed: Mapping[str, Any]) -> list[Any]:
    """The outputs of a serialized model by ONNX's own evaluator in Python: slow, but it has every op of the standard.

    Raises:
        CosetError: it cannot run the model.
    """
    from onnx.reference import ReferenceEvaluator  # few models come here, and it takes long to load

    try:
        return list(ReferenceEvaluator(model).run(None, dict(feed)))
    except Exception as error:  # it raises whatever its NumPy code meets
        raise CosetError(f"ONNX's evaluator cannot run the model: {error}") from None


def _graph(program: Program) -> PrintedGraph:
    """The printed graph, in a newer version of the operators only where a term needs it and the opaque nodes allow it."""
    opset, newest = opset_of(program), partial(highest_opset, program)
    while True:
        try:
            graph = _printed(program, opset, newest)
            if graph.needs_opset <= graph.opset:
                return graph
            needed = graph.needs_opset
        except NoOnnxForm as refusal:
            needed = refusal.since
            if needed <= opset:
                help = "lower the model for a GPU with `coset lower`, or write StableHLO: a result that ends in .mlir"
                raise CosetError(f"the program cannot be written as ONNX: {refusal}", help=help) from None
        ceiling = newest()
        if needed > ceiling:
            help = "convert the source model to a newer version first"
            raise CosetError(f"a term needs version {needed} of the ONNX operators, opaque nodes allow {ceiling}", help=help)
        opset = needed


def _printed(program: Program, opset: int, newest: Callable[[], int]) -> PrintedGraph:
    """Dims come from the values that have them; where that goes round in a circle, from those that introduce their symbols, and
    where even that does, from the values of the source program."""
    for options in ({}, {"whole_dims": False}):
        try:
            return PrintedGraph(program, opset, newest, **options)
        except CyclicShapes:
            continue
    return PrintedGraph(program, opset, newest, original_sources=True)


def _header(program: Program) -> Model:
    model = onnx.ModelProto()
    origin = onnx_origin(program.source)
    if origin.model is not None:
        model.ParseFromString(origin.model)
        return model
    model.producer_name = "coset"
    opsets = {"": DEFAULT_OPSET, **origin.opsets}
    model.opset_import.extend(onnx.helper.make_opsetid(*item) for item in sorted(opsets.items()))
    model.ir_version = onnx.helper.find_min_ir_version_for(model.opset_import, ignore_unknown=True)
    model.graph.name = "program"
    model.graph.input.extend(onnx.ValueInfoProto(name=term.attribute("name"), type=_type_proto(term.type)) for term in program.inputs)
    model.graph.output.extend(onnx.ValueInfoProto(name=name, type=_type_proto(term.type)) for name, term in program.outputs)
    return model


def _told_types(program: Program, graph: PrintedGraph, outputs: set[str]) -> list[Any]:
    """The types of what nodes of domains without a standard give, as far as they are known: nobody who reads the model can infer them."""
    found = []
    for term in program.terms():
        maker = term.operands[0] if term.op is GET else term
        strange = maker.attribute("domain") if maker.op is OPAQUE else domain_and_name(maker.op)
        if not strange or not isinstance(term.type, TensorType) or term.type.shape is None:
            continue
        name = graph.names.get(term)
        if name and name not in outputs:
            found.append(onnx.ValueInfoProto(name=name, type=_type_proto(term.type)))
    return found


def _type_proto(type: Type) -> Any:
    proto = onnx.TypeProto()
    if isinstance(type, ForeignType):
        proto.ParseFromString(type.description)
        return proto
    assert isinstance(type, TensorType)
    return onnx.helper.make_tensor_type_proto(
        CODE_OF_DTYPE[type.dtype], None if type.shape is None else [dim if isinstance(dim, int) else str(dim) for dim in type.shape]
    )


def _split(program: Program, *, small: int, graphs: Graphs | None = None) -> tuple[Model, dict[str, Constant]]:
    """The model with its weights of at most `small` bytes inside, and the other weights by name."""
    graph = (graphs or Graphs()).of(program)
    model = _header(program)
    if any(not node.domain for node in graph.nodes) and not 0 < model.ir_version < 3:  # versions came with IR version 3
        _set_opset(model, graph.opset)
    origin = onnx_origin(program.source)
    weights = {**origin.defaults, **origin.listed, **graph.initializers}
    if model.ir_version < 4:
        taken = {name for node in graph.nodes for name in node.output} | set(weights)
        new = {name: weights.pop(name) for name in list(weights) if name not in origin.listed}
        model.graph.node.extend(_constant_nodes(new, graph.opset, taken))
    model.graph.node.extend(graph.nodes)
    model.graph.value_info.extend(_told_types(program, graph, {value.name for value in model.graph.output}))
    _import_domains(model, program, {node.domain for node in graph.nodes})
    large = {}
    for name, constant in weights.items():
        if constant.type.dtype.kind == "string" or stored_bytes(constant) <= small:
            model.graph.initializer.append(tensor_proto(name, constant))
        else:
            large[name] = constant
    _keep_annotations(model)
    return model, large


def _constant_nodes(constants: Mapping[str, Constant], opset: int, taken: set[str]) -> list[Any]:
    """Nodes for constants that may be no initializers: before IR version 4 each of those is listed as an input, and the inputs stay.

    Before version 9 of the operators Constant gave floats only: integers are cast from them, where they are exact.

    Raises:
        CosetError: one cannot be written so.
    """
    nodes: list[Any] = []
    for name, constant in constants.items():
        dtype = constant.type.dtype
        if opset >= 9 or dtype.kind == "float":
            nodes.append(onnx.NodeProto(op_type="Constant", output=[name], attribute=[attribute_proto("value", constant)]))
            continue
        exact = dtype.kind in ("int", "uint", "bool") and np.abs(constant.array().astype(np.float64)).max(initial=0) < 1 << 24
        if opset < 6 or not exact:
            raise CosetError(
                f"IR version 3 with operators {opset} has no {dtype} constants", help="convert the source model to a newer version"
            )
        floats = constant_of(constant.array().astype(np.float32))
        source = next(text for count in range(len(taken) + 1) if (text := f"{name}_f32_{count}") not in taken)
        nodes.append(onnx.NodeProto(op_type="Constant", output=[source], attribute=[attribute_proto("value", floats)]))
        nodes.append(onnx.NodeProto(op_type="Cast", input=[source], output=[name], attribute=[attribute_proto("to", dtype)]))
    return nodes


def _set_opset(model: Model, opset: int) -> None:
    """Set the version of the default domain, and an IR version that has it."""
    for entry in model.opset_import:
        if entry.domain in ("", "ai.onnx"):
            if entry.version == opset:
                return
            entry.version = opset
            break
    else:
        model.opset_import.add(domain="", version=opset)
    imports = [entry for entry in model.opset_import if entry.domain in ("", "ai.onnx")]
    model.ir_version = max(model.ir_version, onnx.helper.find_min_ir_version_for(imports, ignore_unknown=True))


def _import_domains(model: Model, program: Program, used: set[str]) -> None:
    """Import the domains of nodes of ours, in version 1, if the model does not: ONNX Runtime's own has no other, a user's op says none.

    Raises:
        CosetError: a user's op would be a call of a function that the model has under its name.
    """
    users = {called for op in {term.op for term in program.terms()} if (called := domain_and_name(op)) is not None}
    for domain, name in sorted(users & {(function.domain, function.name) for function in model.functions}):
        help = "leave --keep-functions out, or give the op another name"
        raise CosetError(f"the model has a function `{domain}.{name}`: a node of the op of this name would be a call of it", help=help)
    for domain in sorted(({"com.microsoft"} | {domain for domain, _ in users}) & used - {entry.domain for entry in model.opset_import}):
        model.opset_import.add(domain=domain, version=1)


def _note(model: Model, metadata: Mapping[str, str]) -> None:
    """Set entries of the model's metadata: the checker refuses a key that is there twice."""
    kept = [entry for entry in model.metadata_props if entry.key not in metadata]
    del model.metadata_props[:]
    model.metadata_props.extend(kept)
    for key, value in sorted(metadata.items()):
        model.metadata_props.add(key=key, value=value)


def _keep_annotations(model: Model) -> None:
    """Drop the quantization annotations of values that are gone."""
    names = {name for node in model.graph.node for name in node.output} | {value.name for value in model.graph.input}
    names |= {tensor.name for tensor in model.graph.initializer}
    notes = model.graph.quantization_annotation
    kept = [note for note in notes if {note.tensor_name, *(entry.value for entry in note.quant_parameter_tensor_names)} <= names]
    del model.graph.quantization_annotation[:]
    model.graph.quantization_annotation.extend(kept)
