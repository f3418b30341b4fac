"""StableHLO's reference interpreter on NumPy arrays, in a child process: it aborts on types that it does not know.

Run as a module this file is the child: it reads requests from standard input and answers on standard output, both as one
line of JSON followed by raw arrays.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import IO, Any

import numpy as np

from coset.backends.child import Child
from coset.ir.errors import CosetError
from coset.ir.extras import MissingExtra, install
from coset.ir.types import DTYPES, DType, dtype_of
from coset.lowering.stablehlo.module import element_text, stored

_PASSES = {  # what the interpreter has no code for, in terms of what it has
    "chlo.": "builtin.module(func.func(chlo-legalize-to-stablehlo))",
    "real_dynamic_slice": "builtin.module(func.func(stablehlo-canonicalize-dynamism))",
}
_LOADS_CHLO = "builtin.module(func.func(convert-torch-to-stablehlo))"  # the bindings cannot register CHLO, a pass that writes it does
_COLLECTIVES = ("all_gather", "all_reduce", "all_to_all", "collective_broadcast", "collective_permute", "reduce_scatter", "_id")
Arrays = Sequence[np.ndarray[Any, Any]]


class StablehloInterpreter(Child):
    """The interpreter's process."""

    def __init__(self) -> None:
        super().__init__(("-m", "coset.backends.stablehlo_interpreter"))

    def run(self, text: str, arrays: Arrays) -> list[np.ndarray[Any, Any]]:
        """The results of the function `main` of a module on `arrays`.

        Raises:
            CosetError: the text is no valid module, or the interpreter does not run it.
            MissingExtra: the MLIR bindings are not installed.
        """
        return self._asked(text, arrays, (1, 1))

    def run_parallel(self, text: str, feeds: Sequence[Arrays], *, partitions: int = 1) -> list[list[np.ndarray[Any, Any]]]:
        """The results of `main` on each process of a grid, replica by replica and there partition by partition; `feeds` are the
        arrays of each.

        Raises:
            as `run`. A process that waits for one that never comes stops the interpreter for good.
        """
        values = self._asked(text, [array for feed in feeds for array in feed], (len(feeds) // partitions, partitions))
        count = len(values) // len(feeds)
        return [values[first : first + count] for first in range(0, len(values), count)]

    def _asked(self, text: str, arrays: Arrays, grid: tuple[int, int]) -> list[np.ndarray[Any, Any]]:
        outgoing, incoming = self.streams()
        head: dict[str, Any] = {"text": text, "grid": grid, "arrays": [[dtype_of(a.dtype).name, list(a.shape)] for a in arrays]}
        try:
            _send(outgoing, head, arrays)
            answer, values = _receive(incoming)
        except (EOFError, BrokenPipeError):
            raise CosetError(f"the interpreter died: {self.last_words()}") from None
        if "missing" in answer:
            raise MissingExtra(answer["missing"], help=install("mlir"))
        if "error" in answer:
            raise CosetError(f"the interpreter refuses the program: {answer['error']}")
        return values


# ---------------------------------------------------------------- the wire


def _send(stream: IO[bytes], head: dict[str, Any], arrays: Arrays) -> None:
    stream.write(json.dumps(head).encode() + b"\n")
    for array in arrays:
        stream.write(np.ascontiguousarray(array).tobytes())
    stream.flush()


def _receive(stream: IO[bytes]) -> tuple[dict[str, Any], list[np.ndarray[Any, Any]]]:
    line = stream.readline()
    if not line.endswith(b"\n"):
        raise EOFError
    head = json.loads(line)
    arrays = []
    for name, shape in head.get("arrays", ()):
        dtype = DTYPES[name].numpy
        count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        blob = stream.read(count)
        if len(blob) != count:
            raise EOFError
        arrays.append(np.frombuffer(blob, dtype).reshape(shape))
    return head, arrays


# ---------------------------------------------------------------- the child


def _serve() -> None:
    """Answer requests until the parent is gone."""
    incoming, outgoing = sys.stdin.buffer, sys.stdout.buffer
    try:
        from torch_mlir import ir, passmanager
        from torch_mlir._mlir_libs import _stablehlo as hlo
        from torch_mlir.dialects import torch  # registers the pass that loads CHLO

        assert torch
    except ImportError:
        _receive(incoming)
        _send(outgoing, {"missing": "running StableHLO needs MLIR, which is not installed"}, ())
        return
    hlo.register_stablehlo_passes()
    while True:
        try:
            head, arrays = _receive(incoming)
        except EOFError:
            return
        try:
            values = _evaluated(ir, passmanager, hlo, head["text"], arrays, head["grid"])
        except Exception as error:  # the bindings raise classes of their own, RuntimeError and TypeError
            _send(outgoing, {"error": str(error)[:2000]}, ())
            continue
        _send(outgoing, {"arrays": [[dtype_of(v.dtype).name, list(v.shape)] for v in values]}, values)


def _evaluated(ir: Any, passmanager: Any, hlo: Any, text: str, arrays: Arrays, grid: tuple[int, int]) -> list[np.ndarray[Any, Any]]:
    """Complex results come apart and narrow ones as bytes: the bindings have no arrays of them."""
    context = ir.Context()
    hlo.register_dialect(context, True)
    hlo.register_interpreter_dialect(context)
    context.allow_unregistered_dialects = True  # in attributes: the interpreter runs no op of theirs
    with context, ir.Location.unknown():
        passmanager.PassManager.parse(_LOADS_CHLO).run(ir.Module.parse("module {}").operation)
        module = ir.Module.parse(text)
        for word, passes in _PASSES.items():
            if word in text:
                passmanager.PassManager.parse(passes).run(module.operation)
        kinds = _split_results(ir, module)
        if any(name in text for name in _COLLECTIVES):
            module = _in_a_grid(ir, module, *grid)
        given = [_attribute(ir, array) for array in arrays]
        results = iter([_array(value) for value in hlo.eval_module(module, given)])
        return [_joined(dtype, results) for _ in range(grid[0] * grid[1]) for dtype in kinds]


def _in_a_grid(ir: Any, module: Any, replicas: int, partitions: int) -> Any:
    """The module with `main` as every process of a grid: the interpreter runs collectives nowhere else."""
    function = next(op for op in module.body.operations if op.attributes["sym_name"].value == "main")
    function.attributes["sym_name"] = ir.StringAttr.get("process")
    function.attributes["sym_visibility"] = ir.StringAttr.get("private")
    signature = function.attributes["function_type"].value
    processes = replicas * partitions
    given, made = [*signature.inputs] * processes, [*signature.results] * processes
    names = [f"%x{index}" for index in range(len(given))]
    heads = ", ".join(f"{name}: {type}" for name, type in zip(names, given, strict=True))
    inputs, results = (", ".join(map(str, types)) for types in (given, made))
    count = len(made)
    values = ", ".join(f"%r#{index}" for index in range(count)) if count > 1 else "%r"
    rows = ", ".join(f"[{', '.join(['@process'] * partitions)}]" for _ in range(replicas))
    main = (
        f"func.func @main({heads}) -> ({results}) {{\n"
        f'  %r:{count} = "interpreter.run_parallel"({", ".join(names)}) {{programs = [{rows}]}} : ({inputs}) -> ({results})\n'
        f"  return {values} : {results}\n}}\n"
    )
    return ir.Module.parse(f"{main}{function.operation.get_asm()}\n")


def _split_results(ir: Any, module: Any) -> list[DType]:
    """Rewrite `main` so that it returns arrays that the bindings can hold; the element types that it had."""
    by_text = {element_text(dtype): dtype for dtype in DTYPES.values() if dtype.kind != "string"}
    function = next(op for op in module.body.operations if op.attributes["sym_name"].value == "main")
    block = function.regions[0].blocks[0]
    last = list(block.operations)[-1]
    kinds, outputs = [], []
    with ir.InsertionPoint(last):
        for value in last.operands:
            type = ir.RankedTensorType(value.type)
            dtype = by_text[str(type.element_type)]
            kinds.append(dtype)
            sizes = [type.get_dim_size(i) if not type.is_dynamic_dim(i) else ir.ShapedType.get_dynamic_size() for i in range(type.rank)]
            if dtype.kind == "complex":
                part = ir.RankedTensorType.get(sizes, ir.ComplexType(type.element_type).element_type)
                outputs += [ir.Operation.create(f"stablehlo.{name}", [part], [value]).result for name in ("real", "imag")]
            elif dtype.bits < 8:
                wide = {"int": ir.IntegerType.get_signless(8), "uint": ir.IntegerType.get_unsigned(8), "float": ir.F32Type.get()}
                outputs.append(ir.Operation.create("stablehlo.convert", [ir.RankedTensorType.get(sizes, wide[dtype.kind])], [value]).result)
            elif dtype.kind == "float" and dtype.name not in ("f64", "f32", "f16"):
                bits = ir.IntegerType.get_unsigned(dtype.bits)
                outputs.append(ir.Operation.create("stablehlo.bitcast_convert", [ir.RankedTensorType.get(sizes, bits)], [value]).result)
            else:
                outputs.append(value)
        ir.Operation.create("func.return", [], outputs)
    last.operation.erase()
    signature = ir.FunctionType.get([argument.type for argument in block.arguments], [value.type for value in outputs])
    function.attributes["function_type"] = ir.TypeAttr.get(signature)
    if "res_attrs" in function.attributes:
        del function.attributes["res_attrs"]
    module.operation.verify()
    return kinds


def _attribute(ir: Any, array: np.ndarray[Any, Any]) -> Any:
    """The array as an attribute, bit for bit."""
    dtype = dtype_of(array.dtype)
    flat = stored(np.ascontiguousarray(array).reshape(-1), dtype)
    raw = flat if flat.size and flat.dtype.kind in "fiub" else flat.view(np.uint8)
    return ir.DenseElementsAttr.get(raw, type=ir.Type.parse(element_text(dtype)), shape=list(array.shape))


def _array(attribute: Any) -> np.ndarray[Any, Any]:
    return np.array(attribute)


def _joined(dtype: DType, results: Any) -> np.ndarray[Any, Any]:
    first = next(results)
    if dtype.kind == "complex":
        value = np.empty(first.shape, dtype.numpy)
        value.real, value.imag = first, next(results)
        return value
    if dtype.kind == "float" and first.dtype.kind == "u":
        return np.asarray(first).view(dtype.numpy)
    return np.asarray(first).astype(dtype.numpy)


if __name__ == "__main__":
    _serve()
