"""Run a model the ways that a user already can: ONNX Runtime, onnxsim or onnxscript before it, OpenVINO."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import numpy as np
import onnx

THREADS = int(os.environ.get("BENCHMARK_THREADS", "2"))
"""Of each session: what a script is told goes on to the processes that it starts."""
CONVERTERS = ("onnxsim", "onnxscript")
OPTIMIZERS = {  # what `converted` can leave a model to -> the package that does it
    "onnxsim": "onnxsim", "onnxscript": "onnxscript", "onnxoptimizer": "onnxoptimizer", "ort-basic": "onnxruntime",
    "ort-extended": "onnxruntime",
}  # fmt: skip
PACKAGES = ("onnxruntime", "onnx", "onnxsim", "onnxscript", "onnxoptimizer", "openvino", "numpy")
CONVERSION_SECONDS = 120
"""onnxsim 0.8.1 does not end on some graphs (a causal mask of -inf); it is given this long, and the failure is kept beside its results."""

Feeds = Mapping[str, np.ndarray]
Run = Callable[[Feeds], list[np.ndarray]]


@dataclass(frozen=True)
class Options:
    """Settings of an ONNX Runtime session; the defaults are ONNX Runtime's own, on two threads or as many as are asked for."""

    level: str = "ORT_ENABLE_ALL"
    disabled: tuple[str, ...] = ()
    threads: int = THREADS
    parallel: bool = False
    entries: tuple[tuple[str, str], ...] = ()


OPTIONS: dict[str, Options] = {
    "all": Options(),
    "extended": Options("ORT_ENABLE_EXTENDED"),
    "all, no MatMulAddFusion": Options(disabled=("MatMulAddFusion",)),
    "basic": Options("ORT_ENABLE_BASIC"),
    "one thread": Options(threads=1),
    "dynamic blocks": Options(entries=(("session.dynamic_block_base", "4"),)),
    "no spinning": Options(entries=(("session.intra_op.allow_spinning", "0"),)),
    "parallel branches": Options(parallel=True),
    "off": Options("ORT_DISABLE_ALL"),
}
"""Session settings worth a try, the likeliest to matter first."""


def versions() -> dict[str, str | None]:
    """Return the version of each package that takes part, None for one that is not installed."""
    found: dict[str, str | None] = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found


def open_ort(model: Path | onnx.ModelProto, options: Options) -> Run:
    """Return `model` as a function in an ONNX Runtime session."""
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, options.level)
    settings.intra_op_num_threads = options.threads
    settings.log_severity_level = 4
    if options.parallel:
        settings.execution_mode = onnxruntime.ExecutionMode.ORT_PARALLEL
        settings.inter_op_num_threads = THREADS
    for key, value in options.entries:
        settings.add_session_config_entry(key, value)
    source = str(model) if isinstance(model, Path) else model.SerializeToString()
    session = onnxruntime.InferenceSession(source, settings, ["CPUExecutionProvider"], disabled_optimizers=set(options.disabled))
    names = {value.name for value in session.get_inputs()}
    return lambda feeds: session.run(None, {name: value for name, value in feeds.items() if name in names})


def open_openvino(model: Path | onnx.ModelProto) -> Run:
    """Return `model` as an OpenVINO request: f32, low latency, as many threads, inputs and outputs shared, no telemetry."""
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]  # the import fails, and OpenVINO then sends nothing
    import openvino  # type: ignore[import-untyped]

    hints = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": THREADS, "INFERENCE_PRECISION_HINT": "f32"}
    source = openvino.Core().read_model(str(model) if isinstance(model, Path) else model.SerializeToString())
    compiled = openvino.Core().compile_model(source, "CPU", hints)
    request = compiled.create_infer_request()
    names = {name for port in compiled.inputs for name in port.get_names()}

    def run(feeds: Feeds) -> list[np.ndarray]:
        found = request.infer({name: value for name, value in feeds.items() if name in names}, share_inputs=True, share_outputs=True)
        return [found[port] for port in compiled.outputs]

    return run


def converted(kind: str, source: Path) -> tuple[Path | None, str]:
    """Return `source` as `kind`'s optimizer leaves it, made in a child process and kept by content and version; or None and why not."""
    release = versions()[OPTIMIZERS[kind]]
    if release is None:
        return None, f"not installed: pip install {OPTIMIZERS[kind]}"
    key = hashlib.sha256(source.read_bytes() + f"{kind} {release}".encode()).hexdigest()[:24]
    folder = Path(os.environ.get("COSET_RIVALS", "~/.cache/coset/rivals")).expanduser()
    folder.mkdir(parents=True, exist_ok=True)
    target, failure = folder / f"{key}.onnx", folder / f"{key}.failed"
    if not target.exists() and not failure.exists():
        command = [sys.executable, "-m", "benchmarks.rivals", kind, str(source), str(target)]
        root = Path(__file__).resolve().parents[1]
        try:
            done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=CONVERSION_SECONDS, check=False)
            reason = "" if done.returncode == 0 else (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        except subprocess.TimeoutExpired:
            reason = f"took more than {CONVERSION_SECONDS} s"
        if reason or not target.exists():
            target.unlink(missing_ok=True)
            failure.write_text(reason or "wrote nothing")
    return (target, "") if target.exists() else (None, failure.read_text())


def convert(kind: str, source: Path, target: Path) -> None:
    """Optimize `source` with one of `OPTIMIZERS`, each with its defaults, and write it to `target`."""
    partial = target.with_suffix(".partial")
    if kind.startswith("ort-"):
        import onnxruntime

        settings = onnxruntime.SessionOptions()
        settings.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_ENABLE_{kind[4:].upper()}")
        settings.optimized_model_filepath = str(partial)
        settings.log_severity_level = 4
        onnxruntime.InferenceSession(str(source), settings, ["CPUExecutionProvider"])
        partial.rename(target)
        return
    model = onnx.load(source)
    if kind == "onnxsim":
        import onnxsim  # type: ignore[import-untyped]

        model, _ = onnxsim.simplify(model)
    elif kind == "onnxoptimizer":
        import onnxoptimizer  # type: ignore[import-not-found,import-untyped,unused-ignore]

        model = onnxoptimizer.optimize(model)
    else:
        import onnx_ir
        import onnxscript.optimizer

        wrapped = onnx_ir.serde.deserialize_model(model)
        onnxscript.optimizer.optimize(wrapped)
        model = onnx_ir.serde.serialize_model(wrapped)
    onnx.save(model, partial)
    partial.rename(target)


if __name__ == "__main__":
    convert(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
