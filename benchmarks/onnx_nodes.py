"""Models of one ONNX node: which of them are written as more nodes than one, though nothing is gained.

    python -m benchmarks.onnx_nodes [--search] [--verbose]

The models are the node cases of `onnx.backend.test`, each also with symbols for its dims, with constants for its small operands, and with
both; and forms that no case has, mostly of older versions (`FORMS`), at static and at free dims. Without `--search` a model is read and
written again; with it the whole job is done for those that are opened, prices and comparison included (some minutes).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.onnx_cases import data_sets, symbolic, tensor_cases
from coset.frontends.onnx.model import import_model
from coset.ir.errors import CosetError
from coset.lowering.onnx.model import Graphs
from coset.optimizing.pipeline import optimize

SMALL = 4096  # elements of an operand that is made a constant
STATIC: Mapping[str, Any] = {"B": 2, "H": 4, "W": 5}
FREE: Mapping[str, Any] = {"B": "B", "H": "H", "W": "W"}


def form(
    op: str, opset: int, shape: str = "B 3 H W", constants: tuple[Any, ...] = (), *,
    outputs: int = 1, result: int = TensorProto.FLOAT, **attributes: Any,
) -> tuple[Any, ...]:  # fmt: skip
    """A model of one node: an input of a shape, and then constants."""
    return op, opset, shape, constants, outputs, result, attributes


def _slice(start: int, end: int, axis: int, step: int = 1) -> tuple[Any, ...]:
    return form("Slice", 13, constants=tuple(np.array([number]) for number in (start, end, axis, step)))


FAR = (1 << 63) - 1
INT64 = TensorProto.INT64
FORMS = (
    *(form("Gather", 13, constants=(np.array(index),), axis=axis) for axis in (1, 2, 3, -1) for index in (0, 2, -1)),
    *(form(op, opset, axis=axis) for op in ("Softmax", "LogSoftmax", "Hardmax") for opset in (8, 11, 13) for axis in range(4)),
    *(form(op, 11, "B 10 1 1", axis=1) for op in ("Softmax", "LogSoftmax")),
    _slice(3, -9, 2, -1), _slice(-1, -100, 3, -2), _slice(-1, -FAR, 2, -1), _slice(1, 1000, 2), _slice(-2, FAR, 2), _slice(0, -1, 2),
    _slice(0, FAR, 2, 2), _slice(1, 3, 2), _slice(1, 3, 0), _slice(-3, -1, 3),
    *(form(op, opset, result=INT64) for op in ("Size", "Shape") for opset in (9, 13, 20)),
    form("Shape", 15, result=INT64, start=1, end=3), form("Shape", 15, result=INT64, start=-1),
    *(form("Flatten", 13, axis=axis) for axis in range(5)),
    *(form("Reshape", 13, constants=(np.array(to),)) for to in ((-1,), (0, 0, -1), (0, -1), (0, 3, 1, -1), (-1, 3), (0, -1, 1))),
    form("Expand", 13, "B 1 H W", (np.array([3, 1, 1]),)), form("Expand", 13, constants=(np.array([7, 1, 1, 1, 1]),)),
    *(form("Split", opset, outputs=3, axis=1) for opset in (11, 13)), form("Split", 11, outputs=2, axis=1, split=[1, 2]),
    form("Split", 18, outputs=2, axis=3, num_outputs=2),
    *(form(op, 11, axes=[-1], keepdims=keep) for op in ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceL2") for keep in (0, 1)),
    form("Squeeze", 11, "B 1 H W", axes=[1]), form("Unsqueeze", 11, axes=[1, 3]), form("Clip", 6, min=0.0, max=6.0),
    form("Pad", 2, pads=[0, 0, 1, 1, 0, 0, 1, 1]), form("Pad", 18, constants=(np.array([1, 2]), np.float32(0), np.array([-1]))),
    form("MatMul", 13, "B 4 6", (np.ones((6, 5), np.float32),)), form("Cast", 13, result=TensorProto.BOOL, to=TensorProto.BOOL),
    form("HardSwish", 14), form("Softplus", 13), form("Elu", 13), form("Identity", 13),
)  # fmt: skip


def model_of(given: tuple[Any, ...], dims: Mapping[str, Any]) -> Any:
    """The model of a form, under numbers or names for its free dims."""
    op, opset, shape, constants, outputs, result, attributes = given
    sizes = [dims.get(word) or int(word) for word in shape.split()]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, sizes)
    values = [numpy_helper.from_array(np.asarray(value), f"c{place}") for place, value in enumerate(constants)]
    names = [f"y{place}" for place in range(outputs)]
    node = helper.make_node(op, ["x", *(each.name for each in values)], names, **attributes)
    graph = helper.make_graph([node], "g", [x], [helper.make_tensor_value_info(name, result, None) for name in names], values)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def with_constants(case: Any, model: Any) -> Any:
    """The model with its case's first data as constants in place of all inputs but the first that are small; None where there are none."""
    feed = next(data_sets(case, model), ({}, []))[0]
    frozen = [value.name for value in model.graph.input[1:] if value.name in feed and np.size(feed[value.name]) <= SMALL]
    if not frozen:
        return None
    result = onnx.ModelProto()
    result.CopyFrom(model)
    kept = [value for value in model.graph.input if value.name not in frozen]
    del result.graph.input[:]
    result.graph.input.extend(kept)
    result.graph.initializer.extend(numpy_helper.from_array(np.asarray(feed[name]), name) for name in frozen)
    return result


def models() -> Iterator[tuple[str, Any]]:
    """Every model of one node with its name."""
    for case in tensor_cases():
        if len(case.model.graph.node) != 1:
            continue
        frozen = with_constants(case, case.model)
        for words, model in (("", case.model), (", constants", frozen)):
            if model is not None:
                yield f"{case.name}{words}", model
                yield f"{case.name}{words}, free dims", symbolic(model)
    for place, each in enumerate(FORMS):
        yield f"form {place}", model_of(each, STATIC)
        yield f"form {place}, free dims", model_of(each, FREE)


def written(model: Any, *, search: bool = False) -> list[str]:
    """The ops of the nodes that a model is written as.

    Raises:
        CosetError: it cannot be read or written, or with `search` not be run on drawn inputs.
    """
    program = import_model(model)
    if search and not any(term.op.has("foreign") for term in program.terms()):  # a node that is kept stays one
        program = optimize(model).program
    return [node.op_type for node in Graphs().of(program).nodes]


def main() -> None:
    """Print those with more nodes than one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--search", action="store_true", help="do the whole job, not only read and write")
    parser.add_argument("--verbose", action="store_true", help="name what cannot be read, written or run")
    options = parser.parse_args()
    count, more, refused = 0, 0, 0
    for name, model in models():
        count += 1
        try:
            ops = written(model, search=options.search)
        except CosetError as error:
            refused += 1
            if options.verbose:
                print(f"{name} ({model.graph.node[0].op_type}): {error.message}")
            continue
        if len(ops) > 1:
            more += 1
            print(f"{name} ({model.graph.node[0].op_type}): {len(ops)} nodes: {' '.join(ops)}", flush=True)
    print(f"{count} models of one node: {more} are written as more nodes, {refused} cannot be read, written or run")


if __name__ == "__main__":
    sys.exit(main())
