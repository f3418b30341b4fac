"""Small models from which pairs of programs are made: the node cases of `onnx.backend.test`, alone, with constants for operands, with
symbols for dims and among other ops; forms of older versions; and the models of the spelling corpus (ONNX and StableHLO)."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
from onnx import TensorProto, helper, numpy_helper

from benchmarks.onnx_cases import data_sets, symbolic, tensor_cases
from benchmarks.onnx_nodes import FORMS, FREE, STATIC, model_of

CORPUS = Path(__file__).resolve().parent.parent / "tests" / "corpus"
MOST_BYTES = 400_000  # of a model of the corpus
MOST_NODES = 60  # of a case: expanded functions are longer than they are telling
FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE)
RANDOM = ("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial", "Dropout")
Feed = Mapping[str, Any]


@dataclass(frozen=True)
class Seed:
    """A model with the inputs that it came with, where it came with some. `op`: what it is a case of; `varied`: it has variants."""

    name: str
    op: str
    model: Any
    feed: Feed
    varied: bool = False


def _copied(model: Any) -> Any:
    """A copy whose constants need not be inputs, and that has the standard's ops."""
    found = onnx.ModelProto()
    found.CopyFrom(model)
    found.ir_version = max(found.ir_version, 8)
    if not any(each.domain in ("", "ai.onnx") for each in found.opset_import):
        found.opset_import.append(helper.make_opsetid("", 18))
    return found


def variants(seed: Seed) -> Iterator[Seed]:
    """The seed as it is, and where it is varied with constants for operands, with symbols for dims, and among other ops."""
    yield seed
    if not seed.varied:
        return
    frozen = _frozen(seed)
    if frozen is not None:
        yield frozen
    for each in (seed, frozen):
        if each is not None:
            yield Seed(f"{each.name}, free dims", each.op, symbolic(each.model), each.feed)
            composed = among_others(each)
            if composed is not None:
                yield composed


def _frozen(seed: Seed) -> Seed | None:
    """The seed with constants for all inputs but the first."""
    small = [value.name for value in seed.model.graph.input[1:] if np.size(seed.feed.get(value.name, np.zeros(5000))) <= 4096]
    if not small:
        return None
    model = _copied(seed.model)
    kept = [value for value in model.graph.input if value.name not in small]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(seed.feed[name]), name) for name in small)
    return Seed(f"{seed.name}, constants", seed.op, model, {key: value for key, value in seed.feed.items() if key not in small})


# ---------------------------------------------------------------- among other ops


def among_others(seed: Seed) -> Seed | None:
    """The seed with drawn ops before its float inputs and behind its outputs; None where it has no floats."""
    draw = random.Random(seed.name)
    model = _copied(seed.model)
    graph = model.graph
    taken = {name for node in graph.node for name in (*node.input, *node.output)}
    before, behind, weights = [], [], []
    for value in graph.input:
        if value.type.tensor_type.elem_type in FLOATS and draw.random() < 0.6:
            inner = f"inner {value.name}"
            if inner in taken:
                return None
            before += _chain(draw, value.name, inner, value.type.tensor_type.elem_type, weights)
            _rename_reads(graph, value.name, inner)
    for value in graph.output:
        if value.type.tensor_type.elem_type in FLOATS:
            inner = f"result {value.name}"
            _rename_results(graph, value.name, inner)
            behind += _chain(draw, inner, value.name, value.type.tensor_type.elem_type, weights)
    if not before and not behind:
        return None
    nodes = [*before, *graph.node, *behind]
    del graph.node[:]
    graph.node.extend(nodes)
    graph.initializer.extend(weights)
    return Seed(f"{seed.name}, among others", seed.op, model, seed.feed)


def _chain(draw: random.Random, first: str, last: str, code: int, weights: list[Any]) -> list[Any]:
    """One or two elementwise ops between two values."""
    dtype = helper.tensor_dtype_to_np_dtype(code)
    steps: list[tuple[str, tuple[float, ...]]] = [
        ("Mul", (draw.choice((0.5, -1.5, 3.0)),)), ("Add", (draw.choice((0.25, -0.75)),)), ("Tanh", ()), ("Neg", ()), ("Abs", ()),
        ("Sub", (draw.choice((0.5, 1.25)),)), ("Sigmoid", ()),
    ]  # fmt: skip
    chosen = draw.sample(steps, draw.choice((1, 2)))
    nodes = []
    for place, (op, numbers) in enumerate(chosen):
        reads = [first if place == 0 else f"{last} before {place}"]
        for number in numbers:
            name = f"number {len(weights)} of {last}"
            weights.append(numpy_helper.from_array(np.asarray(number, dtype), name))
            reads.append(name)
        gives = last if place == len(chosen) - 1 else f"{last} before {place + 1}"
        nodes.append(helper.make_node(op, reads, [gives]))
    return nodes


def _rename_reads(graph: Any, name: str, new: str) -> None:
    for node in graph.node:
        for place, each in enumerate(node.input):
            if each == name:
                node.input[place] = new
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                _rename_reads(attribute.g, name, new)


def _rename_results(graph: Any, name: str, new: str) -> None:
    _rename_reads(graph, name, new)
    for node in graph.node:
        for place, each in enumerate(node.output):
            if each == name:
                node.output[place] = new


def in_one_type(model: Any) -> Any:
    """The model with each tensor that it gives made one f32 number: that outputs have other types or shapes shows in a value then."""
    found = _copied(model)
    graph = found.graph
    version = next((each.version for each in found.opset_import if each.domain in ("", "ai.onnx")), 0)
    outputs = [value.name for value in graph.output]
    del graph.output[:]
    del graph.value_info[:]
    graph.initializer.append(numpy_helper.from_array(np.array([-1]), "one axis"))
    graph.initializer.append(numpy_helper.from_array(np.array([0]), "first axis"))
    for name in outputs:
        graph.node.append(helper.make_node("Cast", [name], [f"{name} as f32"], to=TensorProto.FLOAT))
        graph.node.append(helper.make_node("Reshape", [f"{name} as f32", "one axis"], [f"{name} in a row"]))
        graph.node.append(helper.make_node("CumSum", [f"{name} in a row", "first axis"], [f"{name} summed"]))  # so that places count
        if version >= 13:
            graph.node.append(helper.make_node("ReduceSum", [f"{name} summed"], [f"{name} whole"], keepdims=1))
        else:
            graph.node.append(helper.make_node("ReduceSum", [f"{name} summed"], [f"{name} whole"], keepdims=1, axes=[0]))
        graph.output.append(helper.make_tensor_value_info(f"{name} whole", TensorProto.FLOAT, [1]))
    return found


# ---------------------------------------------------------------- all seeds


def _node_cases() -> Iterator[Seed]:
    for case in tensor_cases():
        model = case.model if case.model is not None else onnx.load(str(Path(case.model_dir) / "model.onnx"))
        ops = [node.op_type for node in model.graph.node]
        if len(ops) > MOST_NODES or set(ops) & set(RANDOM):
            continue
        feed = next(data_sets(case, model), ({}, []))[0]
        op = (
            ops[0]
            if len(ops) == 1
            else next((name for name in sorted(_op_types()) if _named_after(case.name, name)), max(ops, key=ops.count))
        )
        yield Seed(case.name, op, model, feed, varied=True)


def _named_after(case: str, op: str) -> bool:
    return case.removeprefix("test_").replace("_", "").startswith(op.lower())


@cache
def _op_types() -> frozenset[str]:
    return frozenset(schema.name for schema in onnx.defs.get_all_schemas())


def _forms() -> Iterator[Seed]:
    draw = np.random.default_rng(0)
    for place, form in enumerate(FORMS):
        op, _, shape, *_ = form
        sizes = [STATIC.get(word) or int(word) for word in shape.split()]
        feed = {"x": draw.standard_normal(sizes).astype(np.float32)}
        for words, dims in (("", STATIC), (", free dims", FREE)):
            yield Seed(f"form {place} {op}{words}", op, model_of(form, dims), feed)


def _corpus() -> Iterator[Seed]:
    for path in sorted(CORPUS.glob("*/*.onnxtxt")):
        if path.stat().st_size > MOST_BYTES:
            continue
        text = "\n".join(line for line in path.read_text().splitlines() if not line.startswith("#"))
        yield Seed(f"corpus {path.parent.name}/{path.stem}", f"corpus {path.parent.name}", onnx.parser.parse_model(text), {})


def onnx_seeds() -> Iterator[Seed]:
    """All seeds, without their variants."""
    yield from _node_cases()
    yield from _forms()
    yield from _corpus()


def modules() -> Iterator[tuple[str, str, str]]:
    """The StableHLO modules of the corpus: name, folder, text."""
    for path in sorted(CORPUS.glob("*/*.mlir")):
        yield f"corpus {path.parent.name}/{path.stem}", f"module {path.parent.name}", path.read_text()
