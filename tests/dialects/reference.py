"""StableHLO's reference interpreter (of the torch-mlir wheel) on one op at a time, in a child process: it aborts on some types.

A case is written as MLIR with its operands as constants of raw bytes; every result leaves as integers (floats by their bits,
complex numbers by their parts, booleans and narrow integers widened), so that nothing is lost on the way.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from coset.backends.child import Child
from coset.dialects.hub.bits import from_patterns, patterns
from coset.ir.quantized import QuantizedType
from coset.ir.types import DTYPES, DType, TensorType, dtype_of

Array = np.ndarray[Any, Any]
NAMES = {
    **{name: name for name in ("f64", "f32", "f16", "bf16")}, **{f"i{n}": f"i{n}" for n in (64, 32, 16, 8, 4, 2)},
    **{f"u{n}": f"ui{n}" for n in (64, 32, 16, 8, 4, 2)}, "bool": "i1", "c64": "complex<f32>", "c128": "complex<f64>",
    "f8e4m3fn": "f8E4M3FN", "f8e5m2": "f8E5M2", "f8e4m3fnuz": "f8E4M3FNUZ", "f8e5m2fnuz": "f8E5M2FNUZ", "f4e2m1fn": "f4E2M1FN",
}  # fmt: skip


def spell(dtype: DType, shape: Sequence[int]) -> str:
    """The MLIR type of a tensor."""
    if isinstance(dtype, QuantizedType):
        limits = f"{spell(dtype.storage, ())[7:-1]}<{dtype.minimum}:{dtype.maximum}>".replace("ui", "u")
        pairs = ", ".join(f"{scale!r}:{point}" for scale, point in zip(dtype.scales, dtype.zero_points, strict=True))
        inner = f":{dtype.axis}, {{{pairs}}}" if dtype.axis is not None else f", {pairs}"
        return f"tensor<{''.join(f'{size}x' for size in shape)}!quant.uniform<{limits}:{NAMES[dtype.expressed.name]}{inner}>>"
    return f"tensor<{''.join(f'{size}x' for size in shape)}{NAMES[dtype.name]}>"


def _constant(x: Array) -> str:
    if not x.size:
        return "dense<>"
    if x.dtype == np.bool_:
        return f"dense<{json.dumps(x.tolist())}>"
    raw = x if x.dtype.kind == "c" else patterns(x)
    return f'dense<"0x{np.ascontiguousarray(raw).tobytes().hex()}">'


def _leave(name: str, dtype: DType, shape: tuple[int, ...], lines: list[str]) -> list[tuple[str, str]]:
    """The (value, type) pairs that carry one result out."""
    given = spell(dtype, shape)
    if isinstance(dtype, QuantizedType):
        lines.append(f"{name}_q = stablehlo.bitcast_convert {name} : ({given}) -> {spell(dtype.storage, shape)}")
        return _leave(f"{name}_q", dtype.storage, shape, lines)
    if dtype.kind == "complex":
        part = DTYPES["f32" if dtype.bits == 64 else "f64"]
        pairs = []
        for which in ("real", "imag"):
            lines.append(f"{name}_{which} = stablehlo.{which} {name} : ({given}) -> {spell(part, shape)}")
            pairs += _leave(f"{name}_{which}", part, shape, lines)
        return pairs
    if dtype.kind == "float":
        out, op = spell(DTYPES[f"u{dtype.bits}"], shape), "bitcast_convert"
        lines.append(f"{name}_b = stablehlo.{op} {name} : ({given}) -> {out}")
        return _leave(f"{name}_b", DTYPES[f"u{dtype.bits}"], shape, lines)
    if dtype.kind == "bool" or dtype.bits < 8:
        out = spell(DTYPES["i8" if dtype.kind == "int" else "u8"], shape)
        lines.append(f"{name}_w = stablehlo.convert {name} : ({given}) -> {out}")
        return [(f"{name}_w", out)]
    return [(name, given)]


def module(
    op: str,
    attributes: str,
    arrays: Sequence[Array],
    results: Sequence[TensorType],
    regions: Sequence[str] = (),
    *,
    given: int | None = None,
    types_of: Sequence[TensorType] = (),
) -> str:
    """A module whose `main` applies the op (generic form, `attributes` and `regions` in MLIR) to the first `given` arrays, or to all:
    the arrays are %x0, %x1 .. for the regions. `types_of` says the operands' types where they are quantized."""
    lines, types = [], []
    for i, x in enumerate(arrays):
        stored, given_type = spell(dtype_of(x.dtype), x.shape), types_of[i].dtype if types_of else dtype_of(x.dtype)
        types.append(spell(given_type, x.shape))
        name = f"%x{i}" if types[-1] == stored else f"%x{i}_s"
        lines.append(f"{name} = stablehlo.constant {_constant(x)} : {stored}")
        if types[-1] != stored:
            lines.append(f"%x{i} = stablehlo.bitcast_convert {name} : ({stored}) -> {types[-1]}")
    shapes = [(type.dtype, type.static) for type in results]
    outs = ", ".join(spell(dtype, shape or ()) for dtype, shape in shapes)
    count = f":{len(results)}" if len(results) > 1 else ""
    inside = f" <{{{attributes}}}>" if attributes else ""
    inside += f" ({', '.join(regions)})" if regions else ""
    operands = ", ".join(f"%x{i}" for i in range(len(arrays[:given])))
    lines.append(f'%r{count} = "stablehlo.{op}"({operands}){inside} : ({", ".join(types[:given])}) -> ({outs})')
    leaving: list[tuple[str, str]] = []
    for i, (dtype, shape) in enumerate(shapes):
        name = f"%r#{i}" if count else "%r"
        if count:  # a copy with a plain name
            lines.append(f"%s{i} = stablehlo.reshape {name} : ({spell(dtype, shape or ())}) -> {spell(dtype, shape or ())}")
            name = f"%s{i}"
        leaving += _leave(name, dtype, shape or (), lines)
    ends = ", ".join(type for _, type in leaving)
    lines.append(f"return {', '.join(name for name, _ in leaving)} : {ends}")
    body = "\n  ".join(lines)
    return f"func.func @main() -> ({ends}) {{\n  {body}\n}}\n"


_CHILD = """
import json, sys
import numpy as np
from torch_mlir import ir
from torch_mlir._mlir_libs import _stablehlo
context = ir.Context()
_stablehlo.register_dialect(context, True)
_stablehlo.register_interpreter_dialect(context)
for line in sys.stdin:
    try:
        results = _stablehlo.eval_module(ir.Module.parse(json.loads(line), context=context), [])
        answer = [[np.array(x).astype(object).ravel().tolist()] for x in results]
    except Exception as error:
        answer = str(error)
    print("answer " + json.dumps(answer), flush=True)
"""


def interpret(modules: Sequence[str]) -> list[list[list[int]] | str]:
    """For each module the numbers of its results, or what went wrong (`aborted` when the interpreter died on it)."""
    with Child(("-c", _CHILD)) as child:
        return [_asked(child, source) for source in modules]


def _asked(child: Child, source: str) -> list[list[int]] | str:
    outgoing, incoming = child.streams()
    outgoing.write(json.dumps(source).encode() + b"\n")
    outgoing.flush()
    for line in incoming:
        if line.startswith(b"answer "):
            answer = json.loads(line.removeprefix(b"answer "))
            return answer if isinstance(answer, str) else [numbers[0] for numbers in answer]
    return f"aborted: {child.last_words()}"


def arrays_of(answer: Sequence[list[int]], results: Sequence[TensorType]) -> list[Array]:
    """The arrays of the results from the numbers that left."""
    rest = iter(answer)
    return [_array(type, rest) for type in results]


def _array(type: TensorType, rest: Any) -> Array:
    shape, dtype = type.static, type.dtype
    assert shape is not None
    if isinstance(dtype, QuantizedType):
        return _array(TensorType(dtype.storage, shape), rest)
    if dtype.kind == "complex":
        part = TensorType(DTYPES["f32" if dtype.bits == 64 else "f64"], shape)
        result = np.empty(shape, dtype.numpy)
        result.real, result.imag = _array(part, rest), _array(part, rest)
        return result
    numbers = next(rest)
    if dtype.kind == "float":
        return from_patterns(np.array(numbers, object).astype(f"u{dtype.numpy.itemsize}").reshape(shape), dtype)
    return np.array(numbers, object).astype(np.int64 if dtype.kind == "int" else np.uint64).astype(dtype.numpy).reshape(shape)
