"""ONNX in: a ModelProto or file becomes a `Program`. Known ops become hub or named terms; every other node is kept exactly, opaque."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx

from coset.dialects.hub.terms import is_splat, literal
from coset.dialects.onnx import importing as dialect
from coset.dialects.onnx.bodies import CAPTURE, all_names, bodies, captured_names, free_names, ops_of, rename_free
from coset.dialects.onnx.graphs import CAPTURED
from coset.dialects.onnx.kept import KEPT
from coset.dialects.onnx.origin import OnnxOrigin
from coset.frontends.onnx import values
from coset.frontends.onnx.checked import RUNTIME, check_node, defaults_of, form_for, is_newer, schema_of
from coset.frontends.onnx.facts import Bounded, Fixed, Impossible, RunFacts, UndecidedBranch, read, wrong_rank
from coset.frontends.onnx.functions import inlined
from coset.frontends.onnx.inner import Rewrite, Rewriting, rewritten
from coset.frontends.onnx.nodes import Attributes, attributes_of, draws, ordered, random_functions, used_names
from coset.frontends.onnx.own import OwnOp, OwnOps, own_ops, own_results
from coset.frontends.onnx.results import ONE_SIDED, Dims, bounds_of, defined_types, filled_by, fixed_by, note_likely, result_dims
from coset.frontends.onnx.sequences import element
from coset.frontends.onnx.tensors import Model, OpenedModel, open_model, opsets_of
from coset.frontends.onnx.types import UNKNOWN, Inference, Symbols, merged_type, named_dims, shown, type_of, without_shape
from coset.ir import dims
from coset.ir.builtin import ABSENT, OPAQUE, TOKEN, absent
from coset.ir.constants import Constant
from coset.ir.dims import Dim
from coset.ir.program import Program, spelled
from coset.ir.program_source import ProgramSource
from coset.ir.stages import passed
from coset.ir.suggestions import like
from coset.ir.term import CONSTANT, PARAMETER, Region, Term, get, input_term, make, topological
from coset.ir.types import I64, AbsentType, TensorType, TokenType, TupleType, Type

MOST = (1 << 63) - 1  # what ONNX writes a dim with
STANDARD = ("", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training", RUNTIME)  # the domains whose ops can have definitions


def import_model(
    source: str | Path | bytes | Model, *, folder: Path | None = None, rewrite: Rewriting | None = None, keep: Sequence[str] = (),
    inline: bool = False, own: Collection[str] = (), meant: Collection[str] = (),
) -> Program:  # fmt: skip
    """The program in an ONNX file (path), in serialized bytes or in a ModelProto; `folder` is where external data of the latter two lies.
    Bodies of nodes that stay as they came are written anew by `rewrite`. Values called `keep` become outputs that no header lists.
    `inline`: the model's own functions are read as their nodes. `own`: the user's ops whose nodes are read as terms, by their names;
    those that are `meant` are what they mean at once.

    Weights of a file stay in it and are mapped when they are used. The origin of the program's source is an `OnnxOrigin`.

    Raises:
        CosetError: the file cannot be read, is no valid model, its data lies outside its folder, or it has no value to `keep`; a node of an
        `own` op has not the form that the definition says.
    """
    opened = open_model(source, folder=folder)
    opened = inlined(opened) if inline else opened
    ops = own_ops(own, meant, opened)
    return passed("reading ONNX", read(lambda facts: _Importer(opened, facts, rewrite=rewrite, own=ops).program(keep)))


class _Importer:
    """The state of one import: what each name means so far."""

    def __init__(
        self, opened: OpenedModel, facts: RunFacts, *, rewrite: Rewriting | None = None, outer: _Importer | None = None,
        graph: Model = None, runs: bool = True, own: OwnOps | None = None,
    ) -> None:  # fmt: skip
        """`outer` is the importer of the graph that holds the node whose body `graph` is; `runs`: the graph's nodes run in every run."""
        model = opened.proto
        self.facts = facts
        self.runs = runs
        self.rewrite: Rewriting | None = rewrite if outer is None else outer.rewrite
        self.own: OwnOps = (own or {}) if outer is None else outer.own
        self.unread: dict[str, str] = {} if outer is None else outer.unread  # why nodes of those stay as they came
        self.opened = opened
        self.graph = model.graph if outer is None else graph
        self.opsets = opsets_of(opened)
        self.functions = {(function.domain, function.name, function.overload): function for function in model.functions}
        self.random = random_functions(self.functions)
        named = named_dims([value.type for value in (*self.graph.input, *self.graph.output)])
        self.symbols: Symbols = Symbols(named, facts.fixed) if outer is None else outer.symbols
        asked = Inference(self.opsets, model.ir_version, self.functions)
        self.inference: Inference = asked if outer is None else outer.inference
        declared = (*self.graph.value_info, *self.graph.output)
        opened.check_texts(each.name for each in (*declared, *self.graph.input, *self.graph.initializer))
        opened.check_texts(named_dims([value.type for value in (*declared, *self.graph.input)]))
        self.declared = {value.name: value.type for value in declared if value.type.WhichOneof("value")}
        self.scope: dict[str, Term] = {}
        self.pending: dict[str, Model] = {}  # initializers that nothing has used yet
        self.names: dict[Term, str] = {}
        self.reserved: set[str] = set()
        self.introduces: dict[str, Term] = {}
        self.likely: dict[str, Dim] = {} if outer is None else outer.likely
        self.positive: set[str] = set() if outer is None else outer.positive
        self.given: set[str] = set() if outer is None else outer.given  # the dim symbols of the model's inputs
        self.made: dict[Any, Term] = {}  # opaque terms by what they are, so that equal nodes have equal fresh symbols
        self.token: Term | None = None
        self.external = False
        self.listed: dict[str, Constant] = {}

    def program(self, keep: Sequence[str]) -> Program:
        """The imported program; the values called `keep` are outputs of it that the header does not list."""
        initializers = self._initializers()
        inputs, defaults = self._inputs(initializers)
        self.given |= spelled(inputs)
        self.pending = {name: tensor for name, tensor in initializers.items() if name not in defaults}
        self.wanted = used_names(self.graph)
        for node in ordered(self.opened, self.graph, {*self.scope, *self.pending}):
            self._node(node)
        outputs = tuple((value.name, self._value(value.name, "the graph's output")) for value in self.graph.output)
        outputs += tuple((name, self._kept(name)) for name in dict.fromkeys(keep) if name not in dict(outputs))
        origin = OnnxOrigin(
            self._header(), dict(self.opsets), defaults, self.listed, frozenset(self.reserved), frozenset(self.positive), self.external,
            self.scope, {name: node.name for node in self.graph.node if node.name for name in node.output},
            {name: node.op_type for node in self.graph.node for name in node.output}, len(self.pending),
            ops_of(self.graph.node), self.unread,
        )  # fmt: skip
        return Program(inputs, outputs, self.token, self.introduces, ProgramSource(self.names, self.likely, origin=origin))

    def _kept(self, name: str) -> Term:
        if name not in self.scope and name not in self.pending:
            help = like(name, (*self.scope, *self.pending)) or "name what a node of the graph computes"
            raise self.opened.error(f"there is no value `{name}` to keep", help=help)
        return self._value(name, "--keep-value")

    def body(self, captured: Mapping[str, Term]) -> Region | None:
        """The graph as a function of its inputs and then of the captured values; None where it has an effect or an unknown node."""
        parameters = [make(PARAMETER, (), {"index": i, "type": self._formal(value)}) for i, value in enumerate(self.graph.input)]
        self.scope.update(zip((value.name for value in self.graph.input), parameters, strict=True))
        for name, term in captured.items():
            parameters.append(make(PARAMETER, (), {"index": len(parameters), "type": term.type}))
            known = term.op is CONSTANT or is_splat(term) is not None
            self.scope.setdefault(name, term if known else parameters[-1])
        results = tuple(self._results("a body's output"))
        unknown = any(term.op is OPAQUE for term in topological(results))
        return None if self.token is not None or unknown else Region(tuple(parameters), results)

    def _chosen(self, node: Model, operands: Sequence[Term]) -> Model | None:
        """The branch of an If whose condition is known."""
        host = values.host_value(operands[0]) if operands else None
        truth = self.facts.branches.get(node.output[0]) if host is None or host.size != 1 else host.item()
        if truth is None:
            return None
        wanted = "then_branch" if truth else "else_branch"
        return next((attribute.g for attribute in node.attribute if attribute.name == wanted and attribute.HasField("g")), None)

    def _inlined(self, branch: Model) -> list[Term]:
        """The results of a branch that is always taken: its nodes, of any kind, become nodes of this graph.

        Its names are given up: another body that stays may use them too.
        """
        inner = _Importer(self.opened, self.facts, outer=self, graph=branch, runs=self.runs)
        inner.introduces, inner.made, inner.token = self.introduces, self.made, self.token
        inner.scope = {name: self._value(name, "a branch of If") for name in free_names(branch)}
        results = inner._results("a branch's output")
        self.token, self.external = inner.token, self.external or inner.external
        self.reserved |= inner.reserved
        return results

    def _results(self, what: str) -> list[Term]:
        """The terms of the graph's outputs; `scope` holds its inputs."""
        self.pending = {name: tensor for name, tensor in self._initializers().items() if name not in self.scope}
        self.wanted = used_names(self.graph)
        for node in ordered(self.opened, self.graph, {*self.scope, *self.pending}):
            self._node(node)
        return [self._value(value.name, what) for value in self.graph.output]

    def _formal(self, value: Model) -> Type:
        return (
            type_of(value.type, self.symbols, self.opened, f"input `{value.name}` of a body") if value.type.WhichOneof("value") else UNKNOWN
        )

    # ------------------------------------------------------------ leaves

    def _initializers(self) -> dict[str, Model]:
        result: dict[str, Model] = {}
        sparse = {tensor.values.name: tensor for tensor in self.graph.sparse_initializer}
        for name, tensor in [(tensor.name, tensor) for tensor in self.graph.initializer] + list(sparse.items()):
            if not name or name in result:
                raise self.opened.error(f"two initializers are called `{name}`" if name else "an initializer has no name")
            result[name] = tensor
            self.external |= _is_external(tensor)
        return result

    def _inputs(self, initializers: Mapping[str, Model]) -> tuple[tuple[Term, ...], dict[str, Constant]]:
        """The program's inputs, and the constants of those that are initializers too.

        Before IR version 4 every initializer is listed as an input, and runtimes take it as a constant: so do we.
        """
        inputs: list[Term] = []
        defaults: dict[str, Constant] = {}
        seen: set[str] = set()
        for value in self.graph.input:
            if value.name in seen:
                raise self.opened.error(f"two inputs are called `{value.name}`", help="rename one of them")
            seen.add(value.name)
            if value.name in initializers:
                if self.opened.proto.ir_version < 4:
                    self.listed[value.name] = self._constant(initializers[value.name])
                    continue
                defaults[value.name] = self._constant(initializers[value.name])
            type = type_of(value.type, self.symbols, self.opened, f"input `{value.name}`")
            term = input_term(value.name, type)
            self._introduce(type, term)
            inputs.append(term)
            self.scope[value.name] = term
        return tuple(inputs), defaults

    def _constant(self, tensor: Model) -> Constant:
        return self.opened.constant(tensor)

    def _value(self, name: str, user: str) -> Term:
        """The term of the value `name`; an initializer becomes one when it is first used."""
        if name not in self.scope and name in self.pending:
            tensor = self.pending.pop(name)
            if isinstance(tensor, onnx.SparseTensorProto):
                self._node(onnx.helper.make_node("Constant", [], [name], sparse_value=tensor))
            else:
                self._define(name, literal(self._constant(tensor)))
        if name not in self.scope:
            help = like(name, [*self.scope, *self.pending]) or "the graph is incomplete, export it again, or make the value an input"
            raise self.opened.error(f"{user} uses `{name}`, which nothing computes", help=help)
        return self.scope[name]

    def _define(self, name: str, term: Term) -> None:
        if name in self.scope:
            raise self.opened.error(f"two values are called `{name}`", help="names of values must be unique in a graph")
        if isinstance(term.type, TensorType) and any(isinstance(dim, int) and dim > MOST for dim in term.type.shape or ()):
            raise self.opened.error(f"the value `{name}` would be {term.type}: no tensor is as large", help="check the dims of the model")
        self.scope[name] = term
        if term.op.name != "builtin.input":
            self.names.setdefault(term, name)

    def _introduce(self, type: Type, term: Term) -> None:
        """Remember `term` as the source of the symbols that its type spells alone for the first time."""
        if isinstance(type, TensorType):
            for dim in type.shape or ():
                name = dims.alone(dim)
                if name is not None:
                    self.introduces.setdefault(name, term)

    # ------------------------------------------------------------ nodes

    def _node(self, node: Model) -> None:
        self.opened.check_texts((node.name, node.op_type, node.domain, node.overload, *node.input, *node.output))
        what = f"node `{node.name or (node.output[0] if node.output else '?')}` ({node.op_type})"
        operands = [self._value(name, what) if name else absent() for name in node.input]
        domain = "" if node.domain == "ai.onnx" else node.domain
        own = self.own.get((domain, node.op_type))
        results = None if own is None else self._own(own, node, operands, what)
        for name, term in zip(node.output, self._standard(node, domain, operands, what) if results is None else results, strict=False):
            if name:
                self._define(name, term)

    def _standard(self, node: Model, domain: str, operands: Sequence[Term], what: str) -> Sequence[Term]:
        """The results of a node that is none of a user's op."""
        standard = domain in STANDARD and (domain, node.op_type, node.overload) not in self.functions
        check_node(node, form_for(node.op_type, self.opsets.get(domain, 1), domain) if standard else None, what, self.opened)
        branching = standard and node.op_type == "If"
        chosen = self._chosen(node, operands) if branching else None
        seen = self._seen(node, domain, operands) if standard and chosen is None else None
        if chosen is not None:
            return self._inlined(chosen)
        known = None if seen is None else self._known(seen, node.output)
        if known is not None:
            return known
        if self.facts.trying and self.runs and standard and wrong_rank(node.op_type, operands):
            raise Impossible
        stays, seen = self._with_better_bodies(node, domain, operands, what, seen)
        results = self._opaque(stays, domain, operands, what, seen)
        if branching and self.runs and self.facts.asks and node.output[0] not in self.facts.branches and _without_rank(results):
            raise UndecidedBranch(node.output[0])
        return results

    def _own(self, op: OwnOp, node: Model, operands: Sequence[Term], what: str) -> Sequence[Term] | None:
        """The results of a node of the user's `op`; None where its definition says nothing of the node, which is noted."""
        found = own_results(op, node, operands, self.opened, what)
        if isinstance(found, str):
            self.unread[what] = found
            return None
        return found

    def _seen(self, node: Model, domain: str, operands: Sequence[Term]) -> dialect.Node | None:
        """A node of a standard domain as builders of terms see it; None where its attributes are not plain values."""
        attributes = attributes_of(node, self.opened)
        name = f"{domain}.{node.op_type}" if domain else node.op_type
        since = _since(node.op_type, self.opsets.get(domain, 1), domain)
        if since is None:
            if domain != RUNTIME or not dialect.known(name, 1) or is_newer(node):
                return None
            since = 1  # its versions are not ONNX's
        if attributes is None:
            return None
        if any(True for _ in bodies(node)):
            regions = self._regions(node, domain)
            if regions is None:
                return None
            attributes |= regions
            operands = [*operands, *(self._value(name, node.op_type) for name in captured_names(node))]
        wanted = max((i + 1 for i, name in enumerate(node.output) if name in self.wanted), default=1)
        host = tuple(values.host_value(operand) for operand in operands)
        return dialect.Node(name, tuple(operands), attributes, host, since, wanted, len(node.output), self.facts.most)

    def _regions(self, node: Model, domain: str) -> Attributes | None:
        """The bodies of a node whose op has a definition, by attribute, and how many values they capture; None where one stays unknown."""
        name = f"{domain}.{node.op_type}" if domain else node.op_type
        if not dialect.known(name, 1):
            return None
        captured = {name: self._value(name, f"a body of {node.op_type}") for name in captured_names(node)}
        regions: Attributes = {CAPTURED: len(captured)}
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                region = _Importer(self.opened, self.facts, outer=self, graph=attribute.g, runs=False).body(captured)
                if region is None:
                    return None
                regions[attribute.name] = region
        return regions

    def _known(self, node: dialect.Node, outputs: Sequence[str]) -> tuple[Term, ...] | None:
        """The results of `node` as hub or named terms, up to the last one that is used; None where it is to stay as it is."""
        if node.results == 1 and (folded := self._folded(node.name, node.operands, node.host, node.attributes)) is not None:
            return (folded,)
        part = element(node.operands[0], node.host[1]) if node.name == "SequenceAt" else None
        if part is not None:
            return (part,)
        built = dialect.build(node)
        if built is None and self.runs:
            self._learn(node)
        if built is not None and self.runs and not self.wanted.isdisjoint(outputs):
            self.positive |= filled_by(node)
        return built

    def _learn(self, node: dialect.Node) -> None:
        """What is known of dims because `node`, which runs in every run, would fail.

        Raises:
            Fixed, Bounded: it is news.
        """
        bound = bounds_of(node)
        for name, number in fixed_by(node):
            if self.symbols.is_fresh(name) and name not in self.given:
                raise Fixed(name, number)
        if bound is not None and self.facts.most.get(bound[0], bound[1] + 1) > bound[1]:
            raise Bounded(*bound)

    def _folded(self, name: str, operands: Sequence[Term], host: Sequence[values.Host | None], attributes: Attributes) -> Term | None:
        """The result of shape arithmetic as numbers of the host, or None."""
        if not operands or not isinstance(operands[0].type, TensorType):
            return None
        type = operands[0].type
        if name in ("Shape", "Size") and type.shape is not None:
            shape = type.shape[slice(attributes.get("start", 0), attributes.get("end"))]
            vector = values.host_array(shape, (len(shape),))
            return values.term_of(vector if name == "Shape" else values.host_array([type.elements], ()), I64)
        if any(value is None and operand.op is not ABSENT for value, operand in zip(host, operands, strict=True)):
            return None
        return values.evaluate(name, host, attributes, values.result_dtype(name, type, operands, attributes))

    def _opaque(self, node: Model, domain: str, operands: Sequence[Term], what: str, seen: dialect.Node | None) -> tuple[Term, ...]:
        captured = captured_names(node)
        for body in bodies(node):
            self.reserved |= all_names(body)
        operands = [*operands, *(self._value(name, what) for name in captured)]
        payload = self._payload(node, captured)
        defined = {*self.functions, *((*called, "") for called in self.own)}
        effect = draws(node, domain, operands, self.random, self.opsets, defined)
        key = (domain, node.op_type, payload, tuple(operands), tuple(map(bool, node.output)))
        if effect or key not in self.made:
            self.made[key] = self._opaque_term(node, domain, operands, payload, len(captured), seen, effect=effect)
        term = self.made[key]
        if not isinstance(term.type, TupleType):
            if effect:
                self.token = term
                return ()
            return (term,)
        results = tuple(get(term, index) for index in range(len(term.type.items)))
        if effect:
            self.token = results[-1]
            return results[:-1]
        return results

    def _with_better_bodies(
        self, node: Model, domain: str, operands: Sequence[Term], what: str, seen: dialect.Node | None
    ) -> tuple[Model, dialect.Node | None]:
        """The node with its bodies written anew where that is asked for, and how builders see it then."""
        if self.rewrite is None or not self.runs or not any(True for _ in bodies(node)):
            return node, seen
        if seen is None:
            return self._rewritten(node, self.rewrite.write, what), None
        if not self.rewrite.known:
            return node, seen
        made = self._rewritten(node, self.rewrite.write, what)
        again = self._seen(made, domain, operands)
        return (node, seen) if again is None else (made, again)  # what has a meaning keeps one

    def _rewritten(self, node: Model, rewrite: Rewrite, what: str) -> Model:
        """The node with its bodies written anew. Small constants that they capture become their own."""
        result = onnx.NodeProto()
        result.CopyFrom(node)
        for body in bodies(result):
            self._embed(body)
            captured = {name: self._value(name, what) for name in free_names(body)}
            constants = {name: proto for name, term in captured.items() if (proto := shown(term)) is not None}
            types = {name: term.type for name, term in captured.items() if name not in constants}
            body.CopyFrom(rewritten(body, types, constants, self.opened.proto, rewrite))
        return result

    def _payload(self, node: Model, captured: Sequence[str]) -> bytes:
        """The attributes of `node` as a NodeProto without the names of its operands and results; captured names are numbered."""
        payload = onnx.NodeProto(overload=node.overload) if node.overload else onnx.NodeProto()
        payload.attribute.extend(sorted(node.attribute, key=lambda attribute: str(attribute.name)))
        for attribute in payload.attribute:
            attribute.ClearField("doc_string")
            if attribute.HasField("t"):
                self.opened.whole(attribute.t)
            for tensor in attribute.tensors:
                self.opened.whole(tensor)
        mapping = {name: f"{CAPTURE}{index}" for index, name in enumerate(captured)}
        payload.input.extend(mapping.values())
        for body in bodies(payload):
            self._embed(body)
            rename_free(body, mapping)
        return bytes(payload.SerializeToString(deterministic=True))

    def _embed(self, body: Model) -> None:
        """Put external tensors of a body into it: a payload stands for itself."""
        for tensor in body.initializer:
            self.opened.whole(tensor)
        self._embed_nodes(body.node)

    def _embed_nodes(self, nodes: Sequence[Model]) -> None:
        for node in nodes:
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    self.opened.whole(attribute.t)
            for inner in bodies(node):
                self._embed(inner)

    def _opaque_term(
        self, node: Model, domain: str, operands: Sequence[Term], payload: bytes, captures: int, seen: dialect.Node | None, *, effect: bool
    ) -> Term:
        ours: Dims = None if seen is None else result_dims(seen)
        question = self._question(node, domain, operands, payload, captures, defined=seen is not None)
        data = [shown(operand) for operand in operands]
        known_operands = tuple(operand if proto is not None else None for operand, proto in zip(operands, data, strict=True))
        key = (payload, tuple(map(bool, node.output)), known_operands)
        inferred, spelled = self.inference.results(question, [operand.type for operand in operands], data, key)
        if seen is not None and seen.name in ONE_SIDED and ours is not None:
            inferred = [without_shape(proto) for proto in inferred]
        types: list[Type] = []
        for index, (name, proto) in enumerate(zip(node.output, inferred, strict=True)):
            known = ours if index == 0 else None
            types.append(merged_type(proto, self.declared.get(name), known, spelled, self.symbols) if name else AbsentType())
        if seen is not None:
            types = defined_types(seen, types)
        if types:
            note_likely(self.likely, seen, types[0])
        if effect:
            types.append(TokenType())
            operands = [self.token or make(TOKEN), *operands]
        attributes = {"domain": domain, "name": node.op_type, "payload": payload, "results": tuple(types), "effect": effect}
        if seen is not None and not effect and dialect.known(seen.name, seen.since):
            given = {"since": seen.since, "given": tuple(sorted(seen.attributes.items()))}
            term = make(KEPT, operands, {**attributes, **given})
        else:
            term = make(OPAQUE, operands, attributes)
        for index, type in enumerate(types):
            self._introduce(type, term if len(types) == 1 else get(term, index))
        return term

    def _question(self, node: Model, domain: str, operands: Sequence[Term], payload: bytes, captures: int, *, defined: bool) -> Model:
        """The node as type inference is asked about it: with operands and results by number, and the defaults of a `defined` op."""
        question = onnx.NodeProto()
        question.ParseFromString(payload)
        question.op_type, question.domain = node.op_type, domain
        said = {attribute.name for attribute in question.attribute}
        defaults = defaults_of(node.op_type, self.opsets.get(domain, 1), domain) if defined else ()
        question.attribute.extend(each for each in defaults if each.name not in said)
        formal = len(operands) - captures
        inputs = [f"i{index}" if index < formal else f"{CAPTURE}{index - formal}" for index in range(len(operands))]
        del question.input[:]
        question.input.extend(name if operand.op is not ABSENT else "" for name, operand in zip(inputs, operands, strict=True))
        question.output.extend(f"o{index}" if name else "" for index, name in enumerate(node.output))
        return question

    def _header(self) -> bytes:
        header = onnx.ModelProto()
        header.CopyFrom(self.opened.proto)
        for field in ("node", "initializer", "sparse_initializer", "value_info"):
            header.graph.ClearField(field)
        for function in header.functions:
            self._embed_nodes(function.node)
        return bytes(header.SerializeToString(deterministic=True))


def _since(name: str, opset: int, domain: str) -> int | None:
    """The version in which the op was last changed, up to version `opset` of its domain; None where the domain has no such op."""
    schema = schema_of(name, opset, domain)
    return None if schema is None else int(schema.since_version)


def _without_rank(results: Sequence[Term]) -> bool:
    return any(isinstance(term.type, TensorType) and term.type.shape is None for term in results)


def _is_external(tensor: Model) -> bool:
    return isinstance(tensor, onnx.TensorProto) and tensor.data_location == onnx.TensorProto.EXTERNAL
