"""A model with what its nodes of the user's own ops mean in their place: a runtime that has no kernels for them runs it.

All other nodes stay as they are in the file, so that a mistake in reading them is seen.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from coset.dialects.expansion import expanded
from coset.dialects.onnx.origin import onnx_origin
from coset.frontends.onnx.functions import without_calls
from coset.frontends.onnx.own import OwnOp, own_ops, own_results
from coset.frontends.onnx.tensors import OpenedModel, copy_of, open_model
from coset.ir.builtin import ABSENT, absent
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.term import input_term
from coset.lowering.onnx.model import part_model
from coset.lowering.onnx.spliced import link_data, splice

Model = Any  # a message of the `onnx` package
MEANT = "ONNX Runtime, with what nodes of ops of yours mean in their place in the original"


def with_meanings(model: str | Path | Model, program: Program, own: Collection[str], path: Path) -> None:
    """Write the model that `program` was read from to `path`, with what nodes of the ops called `own` mean in their place. External data is
    linked beside it.

    Raises:
        CosetError: what a node means cannot be written as ONNX in the version that the model imports, or data cannot be linked.
    """
    opened = open_model(model)
    found, ops = without_calls(copy_of(model)), own_ops(own, own, opened)
    called = {number: ops.get((node.domain, node.op_type)) for number, node in enumerate(found.graph.node)}
    nodes = {number: (op, found.graph.node[number]) for number, op in called.items() if op is not None}
    splice(found, {number: _part(op, node, program, opened) for number, (op, node) in nodes.items()})
    if opened.folder is not None:
        link_data(found, opened.folder, path.parent)
    path.write_bytes(found.SerializeToString())


def _part(own: OwnOp, node: Model, program: Program, opened: OpenedModel) -> Model:
    """A model of what one node means: inputs `x0, x1, ..` for its operands, outputs `y0, y1, ..`.

    Raises:
        CosetError: it cannot be written.
    """
    values = onnx_origin(program.source).values
    known = [values.get(name) for name in node.input]
    operands = [absent() if term is None or term.op is ABSENT else input_term(f"x{i}", term.type) for i, term in enumerate(known)]
    results = own_results(own, node, operands, opened, node.op_type)
    if isinstance(results, str):
        raise CosetError(f"a node of `{node.domain}.{node.op_type}` has no meaning: {results}")
    meant = expanded(results, lambda _: False)
    outputs = [(f"y{i}", term) for i, (name, term) in enumerate(zip(node.output, meant, strict=False)) if name]
    return part_model([each for each in operands if each.op is not ABSENT], outputs, program.source)
