"""Random ONNX models, made and judged without anything of coset: is what `coset optimize` hands out the same program?

    python -m benchmarks.random_models [--count N] [--first SEED] [--seconds S] [--record FILE]

A model has one to three inputs and up to 24 nodes of some ninety ops, drawn by this file alone; a node stays if ONNX Runtime runs it. Each
is optimized with `--numerics exact` and by default. Both models run in ONNX Runtime without its optimizer, on drawn numbers, zeros of both
signs, and numbers mixed with infinities, NaN and the ends of the type. Under `exact` every bit of every output counts, but for NaN; where
the report says that the runtime rounds a model that is written anew elsewhere (`loose`) those of ONNX's evaluator, which rounds at every
node. By default what is finite for ordinary numbers must be near, and integers and truths the same where they are made of no float.

A traceback, a run over the limits, a refused model and a difference are printed with their seeds.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

Array = np.ndarray[Any, Any]
OPSETS = (13, 15, 17, 18, 20, 21)
MOST_ELEMENTS = 4096
TIME_LIMIT, SLACK = 10.0, 20.0  # s of search, and what reading, extraction and the comparison may take beside it
UNARY = (
    "Relu", "Neg", "Abs", "Exp", "Log", "Sqrt", "Sigmoid", "Tanh", "Erf", "Floor", "Ceil", "Round", "Sign", "Reciprocal", "Softplus",
    "Elu", "Selu", "LeakyRelu", "HardSigmoid", "HardSwish", "Softsign", "Identity", "Sin", "Cos", "Celu", "ThresholdedRelu",
)  # fmt: skip
BINARY = ("Add", "Sub", "Mul", "Div", "Pow", "Min", "Max", "PRelu", "Mod")
COMPARED = ("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual")
REDUCED = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp")
NUMBERS = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -3.0, 1e-3, 100.0, 6.0)
FLOATS = (np.float32, np.float16, np.float64)


@dataclass
class Draft:
    """A model that grows. `values` holds what each name was in the last run."""

    rng: random.Random
    opset: int
    nodes: list[Any] = field(default_factory=list)
    inputs: dict[str, Array] = field(default_factory=dict)
    constants: dict[str, Array] = field(default_factory=dict)
    values: dict[str, Array] = field(default_factory=dict)

    def model(self, outputs: list[str]) -> Any:
        """The model with these outputs."""
        used = {name for node in self.nodes for name in node.input}
        heads = [helper.make_tensor_value_info(name, code(value), value.shape) for name, value in self.inputs.items()]
        tails = [onnx.ValueInfoProto(name=name) for name in outputs]
        for tail in tails:
            if tail.name in self.values:
                tail.type.tensor_type.elem_type = code(self.values[tail.name])
        held = [numpy_helper.from_array(value, name) for name, value in self.constants.items() if name in used]
        graph = helper.make_graph(self.nodes, "g", heads, tails, held)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)

    def constant(self, value: Any) -> str:
        """A new constant."""
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(value)
        return name

    def add(self, op: str, operands: list[str], results: int = 1, **attributes: Any) -> bool:
        """A node, if ONNX Runtime runs it and its results are small."""
        names = [f"v{len(self.values)}_{place}" for place in range(results)]
        node = helper.make_node(op, operands, names, **attributes)
        self.nodes.append(node)
        try:
            found = run(self.model(names), self.inputs)
        except Exception:
            found = []
        if found and all(0 < value.size <= MOST_ELEMENTS for value in found):
            self.values.update(zip(names, found, strict=True))
            return True
        self.nodes.pop()
        return False

    def value(self, name: str) -> Array:
        """What a name was in the last run."""
        return self.values[name] if name in self.values else self.inputs[name]

    def pick(self, wanted: Callable[[Array], bool] = lambda value: True) -> str | None:
        """A value, rather one of the last ones."""
        names = [name for name, value in {**self.inputs, **self.values}.items() if wanted(value)]
        return self.rng.choice(names[-4:] if self.rng.random() < 0.7 else names) if names else None


def code(value: Any) -> int:
    """ONNX's number for the element type of an array, or for a type."""
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(value.dtype if isinstance(value, np.ndarray) else value)))


def run(model: Any, feed: dict[str, Array]) -> list[Any]:
    """By ONNX Runtime without its optimizer."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    source = model if isinstance(model, bytes) else model.SerializeToString()
    session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    taken = {value.name for value in session.get_inputs()}
    told = onnxruntime.RunOptions()
    told.log_severity_level = 4
    return list(session.run(None, {name: value for name, value in feed.items() if name in taken}, told))


def same_by_reference(model: Any, written: bytes, feed: dict[str, Array]) -> bool:
    """Whether ONNX's evaluator, which computes and rounds node by node, gives both models the same bits."""
    both = [ReferenceEvaluator(each).run(None, feed) for each in (model, onnx.load_from_string(written))]
    return all(same_bits(np.asarray(left), np.asarray(right)) for left, right in zip(*both, strict=True))


# ---------------------------------------------------------------- what is drawn


def drawn(seed: int) -> tuple[Any, dict[str, Array]]:
    """A model, and an input of each of its kinds."""
    rng = random.Random(seed)
    draft = Draft(rng, rng.choice(OPSETS))
    numbers = np.random.default_rng(seed)
    for place in range(rng.choice((1, 1, 2, 3))):
        shape = tuple(rng.choice((1, 2, 3, 4, 4, 5, 6, 8)) for _ in range(rng.choice((1, 2, 2, 3, 4, 4))))
        dtype = rng.choice((np.float32,) * 8 + (np.float16, np.float64, np.int64, np.int32, np.bool_))
        draft.inputs[f"x{place}"] = plain(numbers, shape, dtype)
    wanted = rng.randrange(3, 25)
    for _ in range(3 * wanted):
        if len(draft.nodes) < wanted:
            rng.choice(KINDS)(draft, numbers)
    read = {name for node in draft.nodes for name in node.input}
    outputs = [name for name in draft.values if name not in read or rng.random() < 0.1]
    return (draft.model(outputs) if outputs else None), draft.inputs


def plain(numbers: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    """Usual numbers of a type."""
    if dtype is np.bool_:
        return np.asarray(numbers.integers(0, 2, shape).astype(bool))
    if dtype in FLOATS:
        return np.asarray(numbers.standard_normal(shape).astype(dtype))
    return np.asarray(numbers.integers(-4 if np.issubdtype(dtype, np.signedinteger) else 0, 9, shape).astype(dtype))


def is_float(value: Array) -> bool:
    return value.dtype.type in FLOATS


def unary(draft: Draft, _: Any) -> None:
    """An elementwise function, or a cast."""
    x = draft.pick()
    if x is None:
        return
    if draft.rng.random() < 0.15:
        draft.add("Cast", [x], to=code(draft.rng.choice((*FLOATS, np.int32, np.int64, np.bool_))))
    elif draft.rng.random() < 0.1:
        draft.add(draft.rng.choice(("Not", "IsNaN", "IsInf")), [x])
    elif draft.rng.random() < 0.15:
        value = draft.value(x)
        low, high = sorted(draft.rng.sample(NUMBERS, 2))
        draft.add("Clip", [x, *(draft.constant(np.asarray(each, value.dtype)) for each in (low, high))])
    else:
        draft.add(draft.rng.choice(UNARY), [x])


def binary(draft: Draft, numbers: Any) -> None:
    """Two operands, of which one may be a constant; comparisons, choices, logic."""
    x = draft.pick()
    if x is None:
        return
    value = draft.value(x)
    other = draft.pick(lambda each: each.dtype == value.dtype)
    if other is None or draft.rng.random() < 0.5:
        if draft.rng.random() < 0.6 and value.dtype.type is not np.bool_:
            constant = np.asarray(draft.rng.choice(NUMBERS)).astype(value.dtype)
        else:
            shape = tuple(draft.rng.choice((1, size)) for size in value.shape[draft.rng.randrange(value.ndim + 1) :])
            constant = plain(numbers, shape, value.dtype.type)
        other = draft.constant(constant)
    pair = [x, other] if draft.rng.random() < 0.7 else [other, x]
    if draft.rng.random() < 0.15:
        draft.add(draft.rng.choice(COMPARED), pair)
    elif value.dtype.type is np.bool_:
        draft.add(draft.rng.choice(("And", "Or", "Xor")), pair)
    elif draft.rng.random() < 0.15 and (chosen := draft.pick(lambda each: each.dtype.type is np.bool_)):
        draft.add("Where", [chosen, *pair])
    else:
        op = draft.rng.choice(BINARY)
        draft.add(op, pair, **({"fmod": 1} if op == "Mod" and is_float(value) else {}))


def movement(draft: Draft, _: Any) -> None:
    """Elements go elsewhere."""
    x = draft.pick(lambda each: each.ndim > 0)
    if x is None:
        return
    rng, value = draft.rng, draft.value(x)
    axis = rng.randrange(value.ndim)
    size = value.shape[axis]
    kind = rng.randrange(12)
    if kind == 0:
        draft.add("Transpose", [x], perm=rng.sample(range(value.ndim), value.ndim))
    elif kind == 1:
        sizes = list(value.shape)
        rng.shuffle(sizes)
        if rng.random() < 0.5 and len(sizes) > 1:
            sizes = [sizes[0] * sizes[1], *sizes[2:]]
        if rng.random() < 0.5:
            sizes[rng.randrange(len(sizes))] = -1
        draft.add("Reshape", [x, draft.constant(np.array(sizes, np.int64))])
    elif kind == 2:
        draft.add("Unsqueeze", [x, draft.constant(np.array([rng.randrange(value.ndim + 1)], np.int64))])
    elif kind == 3:
        draft.add("Squeeze", [x])
    elif kind == 4:
        start, end, step = rng.randrange(-size, size), rng.randrange(-size - 1, size + 2), rng.choice((1, 1, 1, 2, -1))
        given = [draft.constant(np.array([each], np.int64)) for each in (start, end, axis, step)]
        draft.add("Slice", [x, *given])
    elif kind == 5:
        other = draft.pick(lambda each: each.dtype == value.dtype and each.ndim == value.ndim)
        draft.add("Concat", [x, other or x], axis=axis)
    elif kind == 6 and size > 1:
        cut = rng.randrange(1, size)
        draft.add("Split", [x, draft.constant(np.array([cut, size - cut], np.int64))], 2, axis=axis)
    elif kind == 7:
        places = np.array([rng.randrange(-size, size) for _ in range(rng.randrange(1, 5))], np.int64)
        draft.add("Gather", [x, draft.constant(places if rng.random() < 0.7 else places[0])], axis=axis)
    elif kind == 8:
        pads = np.array([rng.choice((0, 0, 1, 2)) for _ in range(2 * value.ndim)], np.int64)
        modes = {"mode": rng.choice(("constant", "constant", "edge", "reflect"))}
        draft.add("Pad", [x, draft.constant(pads)], **modes)
    elif kind == 9:
        draft.add("Expand", [x, draft.constant(np.array([rng.choice((1, 2)), *value.shape], np.int64))])
    elif kind == 10:
        draft.add("Tile", [x, draft.constant(np.array([rng.choice((1, 1, 2)) for _ in value.shape], np.int64))])
    elif kind == 11:
        draft.add("Flatten", [x], axis=axis)


def folding(draft: Draft, _: Any) -> None:
    """Reductions, orders, sums along an axis."""
    x = draft.pick(lambda each: each.ndim > 0)
    if x is None:
        return
    rng, value = draft.rng, draft.value(x)
    axes = sorted(rng.sample(range(value.ndim), rng.randrange(1, value.ndim + 1)))
    kind = rng.randrange(8)
    if kind < 4:
        op = rng.choice(REDUCED)
        if draft.opset >= 18 or (op == "ReduceSum" and draft.opset >= 13):
            draft.add(op, [x, draft.constant(np.array(axes, np.int64))], keepdims=rng.randrange(2))
        else:
            draft.add(op, [x], axes=axes, keepdims=rng.randrange(2))
    elif kind == 4:
        draft.add(rng.choice(("ArgMax", "ArgMin")), [x], axis=axes[0], keepdims=rng.randrange(2), select_last_index=rng.randrange(2))
    elif kind == 5:
        draft.add("CumSum", [x, draft.constant(np.int64(axes[0]))], exclusive=rng.randrange(2), reverse=rng.randrange(2))
    elif kind == 6:
        draft.add(rng.choice(("Softmax", "LogSoftmax", "Hardmax")), [x], axis=axes[0])
    else:
        count = draft.constant(np.array([rng.randrange(1, value.shape[axes[0]] + 1)], np.int64))
        draft.add("TopK", [x, count], 2, axis=axes[0], largest=rng.randrange(2))


def linear(draft: Draft, numbers: Any) -> None:
    """Products, convolutions, pools, normalizations, with constants for weights most of the time."""
    x = draft.pick(lambda each: each.ndim > 1 and is_float(each))
    if x is None:
        return
    rng, value = draft.rng, draft.value(x)
    dtype, channels = value.dtype.type, value.shape[1]

    def weights(*shape: int) -> str:
        return draft.constant(plain(numbers, shape, dtype))

    kind = rng.randrange(9)
    if kind < 3:
        wide = rng.choice((1, 2, 4, 5))
        other = draft.pick(lambda each: each.ndim > 1 and each.dtype == value.dtype and each.shape[-2] == value.shape[-1])
        draft.add("MatMul", [x, other if other and rng.random() < 0.4 else weights(value.shape[-1], wide)])
    elif kind == 3 and value.ndim == 2:
        turned, wide = rng.randrange(2), rng.choice((1, 3, 4))
        shape = (wide, value.shape[1]) if turned else (value.shape[1], wide)
        draft.add("Gemm", [x, weights(*shape), weights(wide)], transB=turned, alpha=rng.choice((1.0, 0.5)), beta=rng.choice((1.0, 2.0)))
    elif kind == 4 and value.ndim > 2:
        spatial = value.ndim - 2
        given = {"pads": [rng.randrange(2) for _ in range(2 * spatial)], "strides": [rng.choice((1, 1, 2)) for _ in range(spatial)]}
        if rng.random() < 0.6:
            draft.add("Conv", [x, weights(rng.choice((2, 4)), channels, *[rng.choice((1, 2, 3))] * spatial)], **given)
        else:
            draft.add("ConvTranspose", [x, weights(channels, rng.choice((2, 3)), *[rng.choice((1, 2, 3))] * spatial)], **given)
    elif kind == 5 and value.ndim > 2:
        op = rng.choice(("MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"))
        draft.add(op, [x], **({} if op.startswith("Global") else {"kernel_shape": [rng.choice((1, 2, 3))] * (value.ndim - 2)}))
    elif kind == 6:
        parts = [weights(channels), weights(channels), weights(channels), draft.constant(np.abs(plain(numbers, (channels,), dtype)))]
        draft.add("BatchNormalization", [x, *parts])
    elif kind == 7 and draft.opset >= 17:
        draft.add("LayerNormalization", [x, weights(value.shape[-1]), weights(value.shape[-1])])
    elif kind == 8 and value.ndim > 2:
        draft.add("InstanceNormalization", [x, weights(channels), weights(channels)])


KINDS = (unary, unary, binary, binary, movement, movement, folding, linear)


# ---------------------------------------------------------------- what is judged


def feeds(seed: int, inputs: dict[str, Array]) -> dict[str, dict[str, Array]]:
    """Inputs of several kinds."""
    numbers = np.random.default_rng([seed, 1])
    found: dict[str, dict[str, Array]] = {"normal": {n: plain(numbers, v.shape, v.dtype.type) for n, v in inputs.items()}}
    for kind in ("zeros", "mixed"):
        found[kind] = {}
        for name, value in inputs.items():
            if is_float(value):
                ends = np.finfo(value.dtype)
                special = [0.0, -0.0] if kind == "zeros" else [np.inf, -np.inf, np.nan, 0.0, -0.0, ends.max, ends.min, ends.tiny, 1.0, -2.5]
                found[kind][name] = numbers.choice(np.array(special, value.dtype), value.shape)
            else:
                found[kind][name] = np.zeros_like(value) if kind == "zeros" else plain(numbers, value.shape, value.dtype.type)
    return found


def same_bits(one: Any, other: Any) -> bool:
    """All NaN are one."""
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if not is_float(one):
        return bool(np.array_equal(one, other))
    return bool(
        np.array_equal(one, other, equal_nan=True) and np.array_equal(np.signbit(one[~np.isnan(one)]), np.signbit(other[~np.isnan(one)]))
    )


def near(one: Any, other: Any) -> bool:
    """Finite numbers up to a share of the largest one."""
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if not is_float(one):
        return bool(np.mean(one != other) <= 0.02) if one.size else True  # a rounding may have decided
    finite = np.isfinite(one)
    share = {np.float16: 2e-2, np.float32: 1e-3, np.float64: 1e-6}[one.dtype.type]
    left, right = one[finite].astype(np.float64), other[finite].astype(np.float64)
    bound = share * max(1.0, float(np.max(np.abs(left), initial=0.0)))
    return bool(np.isfinite(right).all() and np.all(np.abs(left - right) <= bound))


def judged(seed: int, numerics: str) -> tuple[str, str]:
    """What became of a model: `same`, or what is wrong, and more about it."""
    import coset
    from coset.ir.errors import CosetError

    model, inputs = drawn(seed)
    if model is None:
        return "no model", ""
    started = time.monotonic()
    try:
        optimized = coset.optimize(model, numerics=numerics, limits=coset.Limits(seconds=TIME_LIMIT))
    except CosetError as error:
        return "refused", error.message
    except Exception:
        return "TRACEBACK", traceback.format_exc()
    if time.monotonic() - started > TIME_LIMIT + SLACK:
        return "LATE", f"{time.monotonic() - started:.1f} s"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        optimized.save(path)
        written = path.read_bytes()
    ops = "->".join(str(dict(Counter(n.op_type for n in m.graph.node))) for m in (model, onnx.load_from_string(written)))
    for kind, feed in feeds(seed, inputs).items():
        try:
            one = run(model, feed)
        except Exception:
            continue  # what it does not take
        try:
            other = run(written, feed)
        except Exception as error:
            return "DOES NOT RUN", f"{kind}: {error}"
        for place, (left, right) in enumerate(zip(one, other, strict=True)):
            if numerics == "exact" and not same_bits(left, right):
                if optimized.report["check"]["loose"] and same_by_reference(model, written, feed):
                    return "same at every node, the runtime rounds elsewhere", ""
                return "OTHER BITS", f"{kind}, output {place}; {ops}; rules {[rule['name'] for rule in optimized.report['rules']]}"
            if numerics != "exact" and kind == "normal" and not near(left, right):
                return "OTHER NUMBERS", f"{kind}, output {place}; {ops}; rules {[rule['name'] for rule in optimized.report['rules']]}"
    return ("same, smaller" if optimized.report["nodes"]["after"] < optimized.report["nodes"]["before"] else "same"), ""


def main() -> int:
    """Draw, optimize and judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="none is begun after so many")
    parser.add_argument("--record", type=Path, help="write what was found")
    asked = parser.parse_args()
    counts: Counter[str] = Counter()
    lines: list[str] = []
    end, done = time.monotonic() + asked.seconds, 0
    for seed in range(asked.first, asked.first + asked.count):
        if time.monotonic() > end:
            break
        done += 1
        for numerics in ("exact", "reassociates"):
            verdict, more = judged(seed, numerics)
            counts[f"{numerics}: {verdict}"] += 1
            if not verdict.startswith(("same", "no model")):
                lines.append(f"{seed} {numerics}: {verdict}: {' '.join(more.split())[:600]}")
                print(lines[-1], flush=True)
    summary = f"{done} models from seed {asked.first}: " + "; ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    print(summary)
    if asked.record is not None:
        asked.record.write_text("\n".join([summary, *lines]) + "\n")
    return int(any(word in line for line in lines for word in ("TRACEBACK", "LATE", "DOES NOT RUN", "OTHER")))


if __name__ == "__main__":
    sys.exit(main())
