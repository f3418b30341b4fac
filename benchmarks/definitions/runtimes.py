"""The runtimes that compute a node besides us, each in a process of its own: one that aborts or does not end is started again."""

from __future__ import annotations

import base64
import json
import os
import selectors
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np

from coset.backends.child import Child
from coset.ir.types import DTYPES, dtype_of

ONNX_RUNTIME, REFERENCE, XLA, NUMPY = "ONNX Runtime", "ONNX reference", "XLA", "NumPy"
SECONDS = 60.0  # for an answer
Answer = list[Any] | str  # the results, or why there are none


def written(array: Any) -> dict[str, Any]:
    """An array as JSON."""
    array = np.asarray(array)
    data = np.ascontiguousarray(array).tobytes()
    return {"dtype": dtype_of(array.dtype).name, "shape": list(array.shape), "data": base64.b64encode(data).decode()}


def read(given: Mapping[str, Any]) -> Any:
    """The array of `written`."""
    dtype = DTYPES[given["dtype"]].numpy
    return np.frombuffer(base64.b64decode(given["data"]), dtype).reshape(given["shape"]).copy()


@dataclass
class Worker:
    """A process that answers for one runtime."""

    runtime: str
    child: Child = field(init=False)

    def __post_init__(self) -> None:
        self.child = Child(("-m", "benchmarks.definitions.runtimes", self.runtime), {**os.environ, "ORT_DISABLE_TELEMETRY": "1"})

    def ask(self, program: bytes, feeds: Sequence[Mapping[str, Any]]) -> Answer:
        """The results for each feed: a list of lists of arrays; or what went wrong."""
        outgoing, incoming = self.child.streams()
        question = {"program": base64.b64encode(program).decode(), "feeds": [{k: written(v) for k, v in feed.items()} for feed in feeds]}
        try:
            outgoing.write(json.dumps(question).encode() + b"\n")
            outgoing.flush()
            line = self._line(incoming)
        except BrokenPipeError:
            line = b""
        if not line:
            return f"aborted: {self.child.last_words()}"
        answer = json.loads(line)
        if isinstance(answer, str):
            return answer
        return [each if isinstance(each, str) else [read(result) for result in each] for each in answer]

    def _line(self, incoming: Any) -> bytes:
        end = time.monotonic() + SECONDS
        with selectors.DefaultSelector() as selector:
            selector.register(incoming, selectors.EVENT_READ)
            while True:
                if not selector.select(max(0.0, end - time.monotonic())):
                    self.child.stop()
                    return b""
                line: bytes = incoming.readline()
                if not line or line.startswith((b"[", b'"')):
                    return line


@contextmanager
def workers(names: Sequence[str]) -> Iterator[dict[str, Worker]]:
    """A worker for each runtime."""
    found = {name: Worker(name) for name in names}
    try:
        yield found
    finally:
        for worker in found.values():
            worker.child.close()


# ---------------------------------------------------------------- inside the process


def _onnx_runtime(program: bytes) -> Any:
    from coset.backends.onnxruntime import Session

    session = Session(program, level="off", threads=1, watched=False)

    def run(feed: Mapping[str, Any]) -> list[Any]:
        packed = [name for name, array in feed.items() if dtype_of(array.dtype).bits < 8]
        if packed:
            raise ValueError(f"elements of less than a byte are not given to ONNX Runtime ({', '.join(packed)}): it wants them packed")
        results = session(feed)
        return [results[name] for name in session.outputs]

    return run


def _reference(program: bytes) -> Any:
    import onnx
    from onnx.reference import ReferenceEvaluator

    session = ReferenceEvaluator(onnx.load_from_string(program))
    return lambda feed: session.run(None, dict(feed))


def _xla(program: bytes) -> Any:
    import jax
    from jax._src.interpreters import mlir
    from jaxlib import xla_client
    from jaxlib.mlir import ir

    jax.config.update("jax_enable_x64", True)  # type: ignore[no-untyped-call]
    device = jax.devices("cpu")[0]
    with mlir.make_ir_context():
        devices = xla_client.DeviceList((device,))
        compiled = device.client.compile_and_load(ir.Module.parse(program.decode()), devices, xla_client.CompileOptions())
    return lambda feed: [np.asarray(x) for x in compiled.execute([jax.device_put(feed[name]) for name in sorted(feed)])]


LOADERS = {ONNX_RUNTIME: _onnx_runtime, REFERENCE: _reference, XLA: _xla}


def _said(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:240] if lines else ''}"


def _answer(runtime: str, question: Mapping[str, Any]) -> Any:
    try:
        run = LOADERS[runtime](base64.b64decode(question["program"]))
    except Exception as error:  # each runtime has classes of its own; what it says is the answer
        return _said(error)
    answers: list[Any] = []
    for feed in question["feeds"]:
        try:
            with np.errstate(all="ignore"):
                answers.append([written(result) for result in run({name: read(value) for name, value in feed.items()})])
        except Exception as error:  # as above
            answers.append(_said(error))
    return answers


def main() -> None:
    """Answer questions, one a line."""
    warnings.simplefilter("ignore")
    out = os.fdopen(os.dup(1), "w")  # what a runtime prints goes elsewhere
    os.dup2(2, 1)
    for line in sys.stdin:
        print(json.dumps(_answer(sys.argv[1], json.loads(line))), file=out, flush=True)


if __name__ == "__main__":
    main()
