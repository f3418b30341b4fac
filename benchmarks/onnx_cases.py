"""The node cases of `onnx.backend.test`: which are imported with no opaque op and computed to the expected values by our evaluator.

    python -m benchmarks.onnx_cases [--op NAME] [--symbolic] [--json] [--verbose]

Cases count whose inputs and outputs are tensors of numbers (NumPy with ml_dtypes holds all their types); strings, sequences, maps and
optionals do not. The table lists by op what is not there yet: `opaque` (no definition), `fails` (a definition that does not fit or raises),
`differs` (another value, shape or dtype than expected, at the case's own tolerance; bf16 at two roundings, transforms at those of their
largest element, because the expected values were rounded on the way). With `--symbolic` the inputs' dims above 1 are symbols
(equal numbers one symbol), so that what is imported is typed for all sizes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import ml_dtypes
import numpy as np
import onnx
from onnx.backend.test.loader import load_model_tests

import coset.dialects
from coset.frontends.onnx.model import import_model
from coset.ir.errors import CosetError
from coset.ir.evaluate import describe, evaluate_program
from coset.rules.definition import evaluate_defined

assert coset.dialects
STRING = 8
TRANSFORM_NOISE = 2.0**-22  # expected transforms were computed in f32: each element carries roundings of the largest


@dataclass(frozen=True)
class Outcome:
    """What became of one case; `op` is the one to blame (the first opaque one, else the one that the case is named after)."""

    case: str
    op: str
    status: str  # ok, opaque, fails, differs
    detail: str = ""


def tensor_cases() -> Iterator[Any]:
    """The cases whose inputs and outputs are all tensors of numbers."""
    for case in load_model_tests(kind="node"):
        graph = onnx.load(str(Path(case.model_dir) / "model.onnx")).graph if case.model is None else case.model.graph
        types = [value.type for value in (*graph.input, *graph.output)]
        if all(type.WhichOneof("value") == "tensor_type" and type.tensor_type.elem_type != STRING for type in types):
            yield case


def symbolic(model: Any) -> Any:
    """The model with a symbol for each number above 1 that is a dim of an input, and no declared shapes of results."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    for value in result.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_value > 1:
                dim.dim_param = f"n{dim.dim_value}"
    for value in result.graph.output:
        value.type.tensor_type.ClearField("shape")
    del result.graph.value_info[:]
    return result


def outcome(case: Any, *, symbols: bool = False) -> Outcome:
    """Import and evaluate one case."""
    model = case.model if case.model is not None else onnx.load(str(Path(case.model_dir) / "model.onnx"))
    model = symbolic(model) if symbols else model
    op = max((node.op_type for node in model.graph.node), key=[n.op_type for n in model.graph.node].count) if model.graph.node else ""
    op = model.graph.node[0].op_type if len(model.graph.node) == 1 else op
    try:
        program = import_model(model)
    except CosetError as error:
        return Outcome(case.name, op, "fails", error.message)
    opaque = [describe(term) for term in program.terms() if term.op.name == "builtin.opaque"]
    if opaque:
        return Outcome(case.name, opaque[0], "opaque", opaque[0])
    for inputs, expected in data_sets(case, model):
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                found = evaluate_program(program, inputs, fallback=evaluate_defined)
        except CosetError as error:
            return Outcome(case.name, op, "fails", error.message)
        except Exception as error:  # a bug of ours: it is what this command looks for
            return Outcome(case.name, op, "fails", f"{type(error).__name__}: {error}")
        for (name, _), value, wanted in zip(program.outputs, found, expected, strict=False):
            noise = TRANSFORM_NOISE * float(np.max(np.abs(wanted))) if op == "DFT" else 0.0
            problem = difference(value, wanted, case.rtol, max(case.atol, noise))
            if problem:
                return Outcome(case.name, op, "differs", f"{name}: {problem}")
    return Outcome(case.name, op, "ok")


def data_sets(case: Any, model: Any) -> Iterator[tuple[dict[str, Any], list[Any]]]:
    """The inputs by name and the expected outputs of each data set."""
    names = [value.name for value in model.graph.input]
    if case.data_sets is not None:
        for inputs, outputs in case.data_sets:
            yield dict(zip(names, map(array, inputs), strict=False)), list(map(array, outputs))
        return
    for folder in sorted(Path(case.model_dir).glob("test_data_set_*")):
        read = [
            [array(onnx.load_tensor(str(path))) for path in sorted(folder.glob(f"{kind}_*.pb"), key=number)] for kind in ("input", "output")
        ]
        yield dict(zip(names, read[0], strict=False)), read[1]


def number(path: Path) -> int:
    """The number in a data file's name."""
    return int(path.stem.rpartition("_")[2])


def array(value: Any) -> Any:
    """A tensor in the dtype that our evaluator has for it."""
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    return np.asarray(value)


def difference(value: Any, wanted: Any, rtol: float, atol: float) -> str:
    """Why two arrays are not the same, or nothing."""
    value, wanted = np.asarray(value), np.asarray(wanted)
    if value.shape != wanted.shape:
        return f"shape {value.shape}, expected {wanted.shape}"
    if value.dtype != wanted.dtype:
        return f"dtype {value.dtype}, expected {wanted.dtype}"
    if wanted.dtype.kind in "biu":
        return "" if np.array_equal(value, wanted) else "other integers"
    wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
    a, b = value.astype(wide), wanted.astype(wide)
    if wanted.dtype == ml_dtypes.bfloat16:  # the cases' tolerances are for f32, and expected values were rounded after each operation
        rtol = max(rtol, 2 * float(ml_dtypes.finfo(wanted.dtype).eps))
    if np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True):
        return ""
    with np.errstate(all="ignore"):
        return f"off by {np.nanmax(np.abs(a - b)):.3g}"


def main() -> None:
    """Print the table, or one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--op", help="only the cases of this op")
    parser.add_argument("--symbolic", action="store_true", help="with symbols for the inputs' dims")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="one line for each case that is not ok")
    options = parser.parse_args()
    cases = [case for case in tensor_cases() if options.op is None or options.op in {node.op_type for node in case.model.graph.node}]
    outcomes = [outcome(case, symbols=options.symbolic) for case in cases]
    counts = Counter(found.status for found in outcomes)
    share = counts["ok"] / max(1, len(outcomes))
    if options.json:
        bad = [vars(found) for found in outcomes if found.status != "ok"]
        print(json.dumps({"cases": len(outcomes), "ok": counts["ok"], "share": share, "failures": bad}))
        return
    table: dict[str, Counter[str]] = {}
    for found in outcomes:
        if found.status != "ok":
            table.setdefault(found.op, Counter())[found.status] += 1
            if options.verbose:
                print(f"{found.status:8s} {found.case}: {found.detail}")
    print(f"{'op':28s} {'opaque':>7s} {'fails':>7s} {'differs':>7s}")
    for op, row in sorted(table.items(), key=lambda item: -sum(item[1].values())):
        print(f"{op:28s} {row['opaque']:7d} {row['fails']:7d} {row['differs']:7d}")
    print(f"{counts['ok']} of {len(outcomes)} cases ({100 * share:.1f} %) with no opaque op and equal values; "
          f"{counts['opaque']} opaque, {counts['fails']} fail, {counts['differs']} differ")  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
