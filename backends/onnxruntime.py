"""ONNX Runtime: load a model at a level of optimization, run it, and run one opaque node alone. The only door to the package."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # must stand before the import: from 1.29 on the package phones home without it

import onnxruntime

from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.term import Term, get, input_term, rebuild
from coset.ir.types import AbsentType, TensorType, TupleType
from coset.lowering.onnx import lower

LEVELS = {
    "off": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
Feed = Mapping[str, Any]


class Session:
    """A loaded model. `level` off is the oracle: no graph optimization at all."""

    def __init__(self, model: str | Path | bytes, *, level: str = "off", threads: int = 2, folder: Path | None = None) -> None:
        """Load a file, or serialized bytes whose external data lies in `folder`.

        Raises:
            CosetError: ONNX Runtime does not load the model.
        """
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = LEVELS[level]
        options.intra_op_num_threads = threads
        options.log_severity_level = 4
        if folder is not None:
            options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
        name = "the model" if isinstance(model, bytes) else f"`{model}`"
        try:
            source = model if isinstance(model, bytes) else str(model)
            self._session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the binding raises a dozen classes of its own and RuntimeError
            raise CosetError(f"ONNX Runtime does not load {name}: {_first_line(error)}") from None
        self.inputs = tuple(value.name for value in self._session.get_inputs())
        self.outputs = tuple(value.name for value in self._session.get_outputs())

    def run(self, feed: Feed) -> dict[str, Any]:
        """The outputs by name, in the model's order.

        Raises:
            CosetError: an input is missing or wrong, or a kernel fails.
        """
        given = {name: _orderly(value) for name, value in feed.items() if name in self.inputs}
        try:
            results = self._session.run(None, given)
        except Exception as error:
            raise CosetError(f"ONNX Runtime does not run the model: {_first_line(error)}") from None
        return dict(zip(self.outputs, results, strict=True))


def _orderly(value: Any) -> Any:
    """NumPy arrays of dtypes that the binding does not know by NumPy's own type number need an OrtValue."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "V":
        from coset.ir.types import dtype_of
        from coset.lowering.onnx import element_code

        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(value, element_code(dtype_of(value.dtype)))
    return value


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def evaluate_opaque(term: Term, arrays: Sequence[Any], source: Mapping[str, Any]) -> Any:
    """The value of one opaque node of an ONNX program on `arrays` (None where an operand is absent), a tuple if it has
    several results; `source` is its program's `source`.

    Raises:
        CosetError: ONNX Runtime has no kernel for it.
    """
    operands, feed = [], {}
    for index, (operand, array) in enumerate(zip(term.operands, arrays, strict=True)):
        if isinstance(operand.type, AbsentType):
            operands.append(operand)
            continue
        name = f"x{index}"
        operands.append(input_term(name, operand.type))
        feed[name] = array
    alone = rebuild(term, operands)
    count = len(term.type.items) if isinstance(term.type, TupleType) else 1
    results = [get(alone, index) for index in range(count)] if isinstance(term.type, TupleType) else [alone]
    inputs = tuple(operand for operand in operands if not isinstance(operand.type, AbsentType))
    outputs = tuple((f"y{index}", result) for index, result in enumerate(results))
    model = lower(replace(Program(inputs, outputs), source={"opsets": source.get("opsets", {}), "format": "node"}))
    values = list(Session(model.SerializeToString()).run(feed).values())
    return tuple(values) if isinstance(term.type, TupleType) else values[0]


def runnable(term: Term) -> bool:
    """True when every operand and result of the node is a tensor of known shape: what can be evaluated at build time."""
    types = term.type.items if isinstance(term.type, TupleType) else (term.type,)
    return all(isinstance(t, TensorType) and t.static is not None for t in types)
