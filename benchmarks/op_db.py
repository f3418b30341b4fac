"""Every entry of torch's own list of ops (`op_db`) with coset as `torch.compile`'s backend: equal to eager, or left to torch with a reason.

    python -m benchmarks.op_db [--only NAME,..] [--dtypes f32,f16,..] [--record FILE.jsonl] [--workers N] [--seconds S]

Of each op and each element type that it takes on a CPU: the first of torch's sample inputs, one more that the op's name draws, and the
first without elements, where eager torch takes that. What is compared: the structure of the results, element types, shapes, values (NaN and
infinities at the same places; numbers within 20 times the tolerance of `torch.testing`, twice for bf16, of the largest number of the
result) and what was written into the inputs. With `--record` ops that stand in the file are not run again; without one only what is wrong
is printed.

Workers are processes: an op that takes more than `--seconds` for a sample, or ends its process, is told and the next one begun. The list is
torch's (`torch.testing._internal.common_methods_invocations`), which asks for the package expecttest.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import json
import logging
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

DTYPES = {
    "f32": "float32", "f16": "float16", "bf16": "bfloat16", "f64": "float64", "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8",
    "u8": "uint8", "bool": "bool", "c64": "complex64",
}  # fmt: skip
SAME, LEFT, PARTLY, NO_GRAPH, TIED = "equal", "left to torch", "equal, a part in torch", "no graph", "other places of equal elements"
LOST = "equal, but for an overflow of eager torch"  # which rules may lose (docs/numerics.md, C)
OWN = "as torch compiles it, not as eager torch has it"  # decompositions of torch's own that its kernels differ from (docs/torch.md)
UNSET = ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided", "resize_", "resize_as_")  # any values
TIES = ("sort", "argsort", "topk", "mode", "median", "nanmedian", "kthvalue")  # of equal elements torch names any, unless it is asked
WRONG = ("DIFFERS", "RAISES", "FAULT", "HANGS", "ENDS")  # `FAULT`: torch ran it, since coset failed
ELEMENTS, INFINITIES = " elements", "infinities at other places"
LOOSE, LOOSE_BF16 = 20.0, 2.0  # of bf16 three roundings of the largest number, for torch and we compute it in f32
TOLERANCES = {"float16": 1e-3, "bfloat16": 1.6e-2, "float32": 1.3e-6, "float64": 1e-7, "complex64": 1.3e-6}  # relative, of torch.testing


def torch_ops() -> dict[str, Any]:
    """Torch's list by name, with the variant's name behind a dot.

    Raises:
        SystemExit: a package is missing.
    """
    try:
        found = importlib.import_module("torch.testing._internal.common_methods_invocations").op_db
    except ModuleNotFoundError as error:
        raise SystemExit(f"{error.name} is not installed: pip install torch==2.13.0 expecttest") from None
    return {".".join(filter(None, (op.name, op.variant_test_name))): op for op in found}


def samples(name: str, op: Any, dtype: Any) -> Iterator[tuple[str, Any]]:
    """Inputs of an op, and what each is."""
    import torch

    torch.manual_seed(0)
    given = list(op.sample_inputs("cpu", dtype))
    if not given:
        return
    yield "first", given[0]
    if len(given) > 1:
        yield "drawn", given[random.Random(f"{name} {dtype}").randrange(1, len(given))]
    yield "empty", emptied(given[0])


def emptied(sample: Any) -> Any:
    """Inputs without elements along their first dim."""
    import torch
    from torch.utils._pytree import tree_map

    first = sample.input[0] if isinstance(sample.input, (list, tuple)) and sample.input else sample.input
    if not isinstance(first, torch.Tensor) or first.ndim == 0:
        return None
    size = first.shape[0]

    def cut(value: Any) -> Any:
        alike = isinstance(value, torch.Tensor) and value.ndim and value.shape[0] == size and value.layout == torch.strided
        return value.narrow(0, 0, 0).clone() if alike else value

    found = copy.copy(sample)
    found.input, found.args, found.kwargs = tree_map(cut, (sample.input, sample.args, sample.kwargs))
    return found


# ---------------------------------------------------------------- one sample


def apart(found: Any, wanted: Any) -> str:
    """How a result differs from eager torch's; "" where it does not."""
    import torch

    if isinstance(wanted, dict):
        return apart([*found.values()], [*wanted.values()]) if isinstance(found, dict) and list(found) == list(wanted) else "other keys"
    if isinstance(wanted, (list, tuple)):
        if not isinstance(found, (list, tuple)) or len(found) != len(wanted):
            return f"{type(found).__name__} for {type(wanted).__name__}"
        return next(filter(None, (apart(*pair) for pair in zip(found, wanted, strict=True))), "")
    if not isinstance(wanted, torch.Tensor):
        same = found == wanted or (found != found and wanted != wanted)
        return "" if same else f"{found} for {wanted}"
    if not isinstance(found, torch.Tensor):
        return f"{type(found).__name__} for a tensor"
    if (found.dtype, found.shape, found.layout) != (wanted.dtype, wanted.shape, wanted.layout):
        return f"{found.dtype} {list(found.shape)} for {wanted.dtype} {list(wanted.shape)}"
    if wanted.layout != torch.strided or wanted.is_quantized:
        return ""
    if wanted.is_complex():
        return apart(torch.view_as_real(found.resolve_conj()), torch.view_as_real(wanted.resolve_conj()))
    if not wanted.is_floating_point():
        differing = int((found != wanted).sum())
        return f"{differing} of {wanted.numel()}{ELEMENTS}" if differing else ""
    return numbers_apart(found, wanted)


def numbers_apart(found: Any, wanted: Any) -> str:
    """`apart` of floats."""
    one, other = found.detach().double(), wanted.detach().double()
    if bool((one.isnan() != other.isnan()).any()):
        return f"NaN at {int(one.isnan().sum())} places for {int(other.isnan().sum())}"
    endless = other.isinf() | one.isinf()
    if bool((one[endless] != other[endless]).any()):
        return INFINITIES
    finite = ~(endless | other.isnan())
    if not bool(finite.any()):
        return ""
    distance = (one[finite] - other[finite]).abs()
    name = str(wanted.dtype).removeprefix("torch.")
    share = (LOOSE_BF16 if name == "bfloat16" else LOOSE) * TOLERANCES.get(name, 0.1)
    bound = share * max(1e-30, float(other[finite].abs().max()))
    return "" if float(distance.max()) <= bound else f"{float(distance.max()):.3g} off, largest {float(other[finite].abs().max()):.3g}"


def overflowed(call: Callable[..., Any], sample: Any, found: Any) -> bool:
    """Whether a result is what eager torch gives in f64, where nothing overflows."""
    import torch
    from torch.utils._pytree import tree_leaves, tree_map

    given = tree_map(
        lambda v: v.double() if isinstance(v, torch.Tensor) and v.is_floating_point() else v, (sample.input, sample.args, sample.kwargs)
    )
    try:
        exact = tree_leaves(call(*given))
    except Exception:
        return False  # f64 is nothing that it takes
    pairs = list(zip(tree_leaves(found), exact, strict=True))
    return all(
        torch.allclose(one.double(), other.double(), rtol=0.02, atol=0.01, equal_nan=True)
        if isinstance(one, torch.Tensor)
        else one == other
        for one, other in pairs
    )


def as_torch_compiles(run: Callable[[Callable[..., Any]], Any], call: Callable[..., Any], found: Any) -> bool:
    """Whether a result is what torch makes of the call by its own decompositions, without coset."""
    import torch

    torch._dynamo.reset()
    try:
        return not apart(found, run(torch.compile(call, backend="aot_eager_decomp_partition")))
    except Exception:
        return False  # it does not compile


def judged(op: Any, sample: Any) -> tuple[str, str]:
    """What became of a sample, and more about it; ("eager raises", ..) where there is nothing to compare with."""
    import torch
    from torch.utils._pytree import tree_map

    import coset
    from coset.compiling import compiled_graphs, forget_graphs

    def call(input: Any, args: Any, kwargs: Any) -> Any:
        return op.op(input, *args, **kwargs)

    def run(call: Callable[..., Any]) -> tuple[Any, Any]:
        given = tree_map(lambda v: v.clone() if isinstance(v, torch.Tensor) else v, (sample.input, sample.args, sample.kwargs))
        torch.manual_seed(1)
        return call(*given), given

    try:
        wanted, written = run(call)
    except Exception as error:
        return "eager raises", str(error)
    if apart(run(call)[0], wanted):
        return "eager differs from itself", ""
    torch._dynamo.reset()
    forget_graphs()
    try:
        found, also = run(coset.compile(call, seconds=1.0, nodes=2000))
    except Exception as error:
        return "RAISES", f"{type(error).__name__}: {error}"
    graphs = compiled_graphs()
    left = [f"{each.op}: {each.reason}" for graph in graphs for each in (*graph.fallbacks, *graph.later)]
    words = "" if op.name in UNSET else apart(found, wanted) or apart(also, written)
    if words.endswith(ELEMENTS) and op.name in TIES:
        return TIED, words
    if words == INFINITIES and overflowed(call, sample, found):
        return LOST, words
    if words and as_torch_compiles(lambda step: run(step)[0], call, found):
        return OWN, words
    if words:
        return "DIFFERS", f"{words}; {'; '.join(left)}"
    parts = sum(len(graph.parts) for graph in graphs)
    told = "; ".join(dict.fromkeys(left))
    if any("coset failed" in each for each in left):
        return "FAULT", told
    if not graphs:
        return NO_GRAPH, ""
    return (SAME if not left else PARTLY if parts else LEFT), told


# ---------------------------------------------------------------- a process that runs ops, and what minds it


def work(dtypes: Sequence[str]) -> None:
    """Runs the ops whose names come in; for each sample a line goes out before it and one behind it."""
    import torch

    logging.getLogger("coset").setLevel(logging.CRITICAL)
    logging.getLogger("torch").setLevel(logging.CRITICAL)
    torch.set_num_threads(1)
    ops = torch_ops()
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what ops print is not read

    def say(**line: Any) -> None:
        print(json.dumps(line), file=out, flush=True)

    for name in map(str.strip, sys.stdin):
        for word in dtypes:
            dtype = getattr(torch, DTYPES[word])
            if dtype not in ops[name].dtypes:
                continue
            try:
                given = [each for each in samples(name, ops[name], dtype) if each[1] is not None]
            except Exception as error:
                say(dtype=word, kind="all", verdict="no samples", more=str(error)[:200])
                continue
            for kind, sample in given:
                say(dtype=word, kind=kind)
                verdict, more = judged(ops[name], sample)
                say(dtype=word, kind=kind, verdict=verdict, more=" ".join(more.split())[:600])
        say(done=name)


class Worker:
    """A process of its own for ops, one after the other; a new one where it hung or died."""

    def __init__(self, dtypes: str, seconds: float) -> None:
        self.dtypes, self.seconds = dtypes, seconds
        self.process: subprocess.Popen[str] | None = None

    def rows(self, name: str) -> list[dict[str, Any]]:
        """What became of an op's samples."""
        if self.process is None:
            command = [sys.executable, "-m", "benchmarks.op_db", "--work", "--dtypes", self.dtypes]
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        process = self.process
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(f"{name}\n")
        process.stdin.flush()
        rows: list[dict[str, Any]] = []
        begun: dict[str, Any] = {"dtype": "all", "kind": "all"}
        while True:
            late = threading.Timer(self.seconds + 60.0 * (not rows), process.kill)  # it may have to begin first
            late.start()
            started = time.monotonic()
            line = process.stdout.readline()
            late.cancel()
            if not line:
                self.process = None
                verdict = "HANGS" if time.monotonic() - started > self.seconds else "ENDS"
                return [*rows, {**begun, "verdict": verdict, "more": f"exit code {process.wait()}"}]
            told = json.loads(line)
            if "done" in told:
                return rows
            if "verdict" in told:
                rows.append(told)
            else:
                begun = told


def sweep(names: Sequence[str], dtypes: str, seconds: float, workers: int, tell: Callable[[str, list[dict[str, Any]]], None]) -> None:
    """Runs the ops in some processes; `tell` is called with the rows of each."""
    waiting, lock = list(reversed(names)), threading.Lock()

    def take() -> None:
        worker = Worker(dtypes, seconds)
        while True:
            with lock:
                if not waiting:
                    break
                name = waiting.pop()
            rows = worker.rows(name)
            with lock:
                tell(name, rows)
        if worker.process is not None and worker.process.stdin is not None:
            worker.process.stdin.close()
            worker.process.wait()

    threads = [threading.Thread(target=take) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main() -> int:
    """Run what is asked for, print what is wrong, and the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="ops by name, with commas between them")
    parser.add_argument("--dtypes", default="f32,f16,bf16,i64,bool")
    parser.add_argument("--record", type=Path, help="a file of one JSON object a line for each op, added to")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.work:
        work(asked.dtypes.split(","))
        return 0
    known = torch_ops()
    names = asked.only.split(",") if asked.only else list(known)
    for name in names:
        if name not in known:
            raise SystemExit(f"torch lists no op `{name}`")
    before = {} if asked.record is None or not asked.record.exists() else {
        row["op"]: row["rows"] for row in map(json.loads, asked.record.read_text().splitlines())
    }  # fmt: skip
    results = {name: before[name] for name in names if name in before}

    def tell(name: str, rows: list[dict[str, Any]]) -> None:
        results[name] = rows
        if asked.record is not None:
            with asked.record.open("a") as file:
                print(json.dumps({"op": name, "rows": rows}), file=file)
        for row in rows:
            if row["verdict"] in (*WRONG, OWN):
                print(f"{name} {row['dtype']} {row['kind']}: {row['verdict']}: {row['more']}", flush=True)

    sweep([name for name in names if name not in results], asked.dtypes, asked.seconds, asked.workers, tell)
    counts = Counter(row["verdict"] for rows in results.values() for row in rows)
    print(f"{len(results)} ops, {sum(counts.values())} samples: " + ", ".join(f"{count} {word}" for word, count in counts.most_common()))
    return int(any(counts[word] for word in WRONG))


if __name__ == "__main__":
    raise SystemExit(main())
