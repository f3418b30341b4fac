"""ONNX Runtime: load a model at a level of optimization, run it, and run one opaque node alone. The only door to the package."""

from __future__ import annotations

import ctypes
import json
import os
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # must stand before the import: from 1.29 on the package phones home without it

from coset.backends.onnx_refusals import of_loading, of_running
from coset.ir.errors import CosetError
from coset.ir.evaluate import describe
from coset.ir.extras import MissingExtra
from coset.ir.packed import packed, unpacked
from coset.ir.program_source import ProgramSource

try:
    import onnxruntime
except ImportError as error:
    raise MissingExtra("ONNX Runtime is not installed", help="pip install onnxruntime") from error

from coset.ir.term import Term
from coset.ir.types import DTYPES, AbsentType, TokenType, TupleType, dtype_of
from coset.lowering.onnx.model import element_code, node_model, run_reference
from coset.targets.running import Running

LEVELS = {
    "off": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
Feed = Mapping[str, Any]
LIBRARIES: list[str] = []  # shared libraries whose ops every session of this process knows, and of those that it forks
PATIENCE = 300.0  # s, for one run
THREADS = 2  # of a session, where nothing says how many
_FOREIGN = {  # element types that the binding does not give back as arrays; those under a byte it gives packed or not at all
    "tensor(bfloat16)": "bf16", "tensor(float8e4m3fn)": "f8e4m3fn", "tensor(float8e4m3fnuz)": "f8e4m3fnuz", "tensor(float8e5m2)": "f8e5m2",
    "tensor(float8e5m2fnuz)": "f8e5m2fnuz", "tensor(float4e2m1)": "f4e2m1fn", "tensor(int4)": "i4", "tensor(uint4)": "u4",
    "tensor(int2)": "i2", "tensor(uint2)": "u2",
}  # fmt: skip


_MAPS = ("map(int64,tensor(float))", "map(string,tensor(float))")  # that the binding makes of dictionaries
_UNKNOWN = ("NOT_IMPLEMENTED", "is not a registered function/op")  # what it says of nodes that it cannot run


class NotLoaded(CosetError):
    """A model that ONNX Runtime does not load since it has no kernel for a node, or does not know its op."""


class Unending(CosetError):
    """A run that was stopped, as it came to no end."""


def use_library(path: str | Path) -> None:
    """Load the shared library of custom ops at `path`: every session from here on knows its ops. It is code, which runs as it is loaded.

    Raises:
        CosetError: it is no library of custom ops of ONNX Runtime's, or it was made for another version.
    """
    help = "give the shared library that `SessionOptions.register_custom_ops_library` takes"
    if not Path(path).is_file():
        raise CosetError(f"there is no library of custom ops at `{path}`", help=help)
    library = str(Path(path).resolve())  # the loader looks elsewhere for a bare name
    try:
        onnxruntime.SessionOptions().register_custom_ops_library(library)
    except Exception as error:  # the binding raises a dozen classes of its own and RuntimeError
        raise CosetError(f"no custom ops are loaded from `{path}`: {_first_line(error)}", help=help) from None
    if library not in LIBRARIES:
        LIBRARIES.append(library)


def _silent() -> Any:
    """Options of a run that writes nothing to stderr."""
    options = onnxruntime.RunOptions()
    options.log_severity_level = 4
    return options


def _end(options: Any, late: threading.Event) -> None:
    late.set()
    options.terminate = True  # looked at between nodes, and in each turn of a loop


def _session_options(
    level: str, threads: int, folder: Path | None, entries: Mapping[str, str], *, profile: bool, arena: bool
) -> onnxruntime.SessionOptions:
    if level not in LEVELS:
        raise CosetError(f"there is no level `{level}`", help=f"levels: {', '.join(LEVELS)}")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = LEVELS[level]
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    options.enable_profiling = profile
    options.enable_cpu_mem_arena = arena
    if profile:
        options.profile_file_prefix = str(Path(tempfile.mkdtemp(prefix="coset-profile-")) / "ort")
    for library in LIBRARIES:
        options.register_custom_ops_library(library)
    if folder is not None:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
    for key, value in entries.items():
        options.add_session_config_entry(key, value)
    return options


def _loaded(model: str | Path | bytes, options: onnxruntime.SessionOptions, disabled: Sequence[str]) -> onnxruntime.InferenceSession:
    if not isinstance(model, bytes) and not _is_unicode(str(model)):
        said = str(model).encode(errors="backslashreplace").decode()
        raise CosetError(f"ONNX Runtime opens no path that is not UTF-8: {said}", help="rename the file, or its folder")
    source = model if isinstance(model, bytes) else str(model)
    try:
        return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"], disabled_optimizers=set(disabled))
    except Exception as error:  # the binding raises a dozen classes of its own and RuntimeError
        kind = NotLoaded if any(word in str(error) for word in _UNKNOWN) else CosetError
        what, help = of_loading(_first_line(error), model, lambda named: _said(named, options))
        help = "kernels for ops of its own come with --custom-op-library" if _UNKNOWN[1] in str(error) else help
        raise kind(f"ONNX Runtime does not load {_called(model)}: {what}", help=help) from None


def _said(model: bytes, options: onnxruntime.SessionOptions) -> str:
    """What ONNX Runtime says of a model that it does not load; nothing where it does."""
    try:
        onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        return _first_line(error)
    return ""


def _called(model: str | Path | bytes) -> str:
    return "the model" if isinstance(model, bytes) else f"`{model}`"


class Session:
    """A loaded model. `level` off is the oracle: no graph optimization at all."""

    def __init__(
        self,
        model: str | Path | bytes,
        *,
        level: str = "off",
        threads: int = THREADS,
        folder: Path | None = None,
        profile: bool = False,
        disabled: Sequence[str] = (),
        entries: Mapping[str, str] | None = None,
        arena: bool = True,
        watched: bool = True,
    ) -> None:
        """Load a file, or serialized bytes whose external data lies in `folder`. `disabled` are optimizers of the level that are left
        out, `entries` further session options, both by their ONNX Runtime names; with `profile` each node is timed (see `node_times`).
        Without an `arena` memory goes back when a value is not needed any more: an arena grows by doubling, and keeps what it has.
        A run that is `watched` is stopped after `PATIENCE`, by a thread that is started for it.

        Raises:
            CosetError: there is no such level, or ONNX Runtime does not load the model.
        """
        self._watched = watched
        options = _session_options(level, threads, folder, entries or {}, profile=profile, arena=arena)
        self._session = _loaded(model, options, disabled)
        maps = [value for value in self._session.get_inputs() if value.type.startswith("map(") and value.type not in _MAPS]
        if maps:
            raise NotLoaded(f"ONNX Runtime takes no {maps[0].type} from Python, which the input `{maps[0].name}` of {_called(model)} is")
        self.inputs = tuple(value.name for value in self._session.get_inputs())
        self.defaults = tuple(value.name for value in self._session.get_overridable_initializers())
        self.outputs = tuple(value.name for value in self._session.get_outputs())
        self._foreign = any(value.type in _FOREIGN for value in self._session.get_outputs())

    @classmethod
    def told(
        cls,
        model: str | Path | bytes,
        running: Running,
        *,
        entries: Mapping[str, str] | None = None,
        folder: Path | None = None,
        arena: bool = True,
        watched: bool = True,
    ) -> Session:
        """The model, as `Session` takes it, under the options `running`; `entries` over those that it names.

        Raises:
            CosetError: ONNX Runtime does not load the model so.
        """
        given = {**dict(running.entries), **(entries or {})}
        threads = running.threads or THREADS
        return cls(
            model, level=running.level, threads=threads, folder=folder, disabled=running.disabled, entries=given, arena=arena,
            watched=watched,
        )  # fmt: skip

    def __call__(self, feed: Feed) -> dict[str, Any]:
        """As `run`."""
        return self.run(feed)

    def run(self, feed: Feed) -> dict[str, Any]:
        """The outputs by name, in the model's order; what the model does not take is passed over.

        Raises:
            CosetError: an input is missing or wrong, or a kernel fails. Unending: a watched run has no result in `PATIENCE` seconds.
        """
        if not self._watched:
            return self._results(feed, _silent())
        options, late = _silent(), threading.Event()
        timer = threading.Timer(PATIENCE, _end, (options, late))
        timer.daemon = True
        timer.start()
        try:
            return self._results(feed, options)
        except CosetError:
            if not late.is_set():
                raise
            what = f"ONNX Runtime was stopped: the model has no result after {PATIENCE:g} s"
            raise Unending(what, help="give smaller numbers to free dims (--dim NAME=N); does a loop of the model end?") from None
        finally:
            timer.cancel()

    def _results(self, feed: Feed, options: Any) -> dict[str, Any]:
        given = {name: _orderly(feed[name]) for name in (*self.inputs, *self.defaults) if name in feed}
        try:
            if self._foreign:
                values = self._session.run_with_ort_values(None, {name: _as_ort_value(value) for name, value in given.items()}, options)
                results = [_as_array(value) for value in values]
            else:
                results = self._session.run(None, given, options)
        except Exception as error:
            raise CosetError(f"ONNX Runtime does not run the model: {of_running(_first_line(error))}") from None
        return dict(zip(self.outputs, results, strict=True))

    def times(self, feed: Feed, calls: int) -> list[float]:
        """Seconds of each of `calls` runs, after one that is not timed."""
        given = {name: _orderly(feed[name]) for name in (*self.inputs, *self.defaults) if name in feed}
        self.run(feed)
        seconds = []
        for _ in range(calls):
            started = time.perf_counter()
            self._session.run(None, given)
            seconds.append(time.perf_counter() - started)
        return seconds

    def node_times(self) -> dict[str, float]:
        """Seconds in all runs of a session made with `profile`, by the name that ONNX Runtime gives each node; ends the profile."""
        path = Path(self._session.end_profiling())
        events = json.loads(path.read_text())
        path.unlink()
        path.parent.rmdir()
        found: dict[str, float] = {}
        for event in events:
            if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
                name = event["name"].removesuffix("_kernel_time")
                found[name] = found.get(name, 0.0) + event["dur"] * 1e-6
        return found


def _orderly(value: Any) -> Any:
    """The binding takes an array of an element type that NumPy has not (bf16, fp8, 4 bits) as an OrtValue only."""
    if isinstance(value, np.ndarray) and value.dtype.type.__module__ == "ml_dtypes":  # of which float8_e5m2 says that it is a float
        dtype = dtype_of(value.dtype)
        code = element_code(dtype)
        if dtype.bits < 8:
            given = onnxruntime.OrtValue.ortvalue_from_shape_and_type(list(value.shape), code)
            parts = packed(value, dtype)
            ctypes.memmove(given.data_ptr(), parts.ctypes.data, parts.nbytes)
            return given
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(value.view(np.uint8 if value.itemsize == 1 else np.uint16), code)
    return value


def _as_ort_value(value: Any) -> Any:
    return onnxruntime.OrtValue.ortvalue_from_numpy(np.asarray(value)) if isinstance(value, np.ndarray | np.generic) else value


def _as_array(value: Any) -> Any:
    """An OrtValue on the CPU as an array, copied from its bytes where the binding has no array of its element type."""
    name = _FOREIGN.get(value.data_type())
    if name is None:
        return value.numpy()
    raw = (ctypes.c_uint8 * value.tensor_size_in_bytes()).from_address(value.data_ptr()) if value.tensor_size_in_bytes() else b""
    elements, dtype, shape = np.frombuffer(bytes(raw), np.uint8), DTYPES[name], value.shape()
    return unpacked(elements, dtype, shape) if dtype.bits < 8 else elements.view(dtype.numpy).reshape(shape)


def _is_unicode(path: str) -> bool:
    """False for a path with bytes that are no text, which Python keeps as surrogates."""
    return not any("\ud800" <= letter <= "\udfff" for letter in path)


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


Runs = Callable[[bytes, Feed], list[Any]]


def node_values(model: bytes, feed: Feed) -> list[Any]:
    """The outputs of a model of one node, by ONNX Runtime, or where that has no kernel by ONNX's own evaluator.

    Raises:
        CosetError: neither can compute it.
    """
    try:
        return list(Session(model).run(feed).values())
    except CosetError as refused:
        try:
            return run_reference(model, feed)
        except CosetError:
            raise refused from None


def evaluate_opaque(term: Term, arrays: Sequence[Any], source: ProgramSource | None, run: Runs = node_values) -> Any:
    """The value of one opaque node of an ONNX program on `arrays` (None where an operand is absent or a token), a tuple if it has
    several results; `source` is its program's `source`. `run` runs the model of that node.

    Raises:
        CosetError: as `run`, or the op is no node of ONNX.
    """
    if not isinstance(term.attribute("payload"), bytes):
        raise CosetError(f"`{describe(term)}` is kept as it came and has no value here, so that no program with it can be compared")
    feed = {f"x{index}": array for index, (operand, array) in enumerate(zip(term.operands, arrays, strict=True)) if _holds_value(operand)}
    values = run(node_model(term, source).SerializeToString(), feed)
    if not isinstance(term.type, TupleType):
        return values[0]
    rest = iter(values)
    return tuple(None if isinstance(type, AbsentType | TokenType) else next(rest) for type in term.type.items)


def _holds_value(operand: Term) -> bool:
    return not isinstance(operand.type, AbsentType | TokenType)
