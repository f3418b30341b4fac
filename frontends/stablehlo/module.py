"""The door to the `torch-mlir` wheel: MLIR text, bytecode and StableHLO's portable artifacts become a verified module."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from coset.ir.errors import CosetError
from coset.ir.extras import MissingExtra, install
from coset.ir.place import Place

Module = Any  # torch_mlir.ir.Module; the wheel has no stubs
_MAGIC = b"ML\xefR"
_ERROR = re.compile(r'error: (?:"(?P<file>[^"]*)"|\S+?):(?P<line>\d+):(?P<column>\d+): (?P<what>[^\n]*)')
SHARDY = (
    "Shardy's own text is not read: export the module without Shardy (in JAX: jax.config.update('jax_use_shardy_partitioner', False)), or "
    "print it in MLIR's generic form, which is kept"
)
_BLOB = re.compile(r'([\w.$-]+|"[^"]*")\s*:\s*"0x([0-9A-Fa-f]*)"')


@cache
def mlir() -> Any:
    """The bindings: `torch_mlir.ir`.

    Raises:
        MissingExtra: the wheel is not installed.
    """
    try:
        from torch_mlir import ir
    except ImportError as error:
        raise MissingExtra("reading StableHLO needs MLIR, which is not installed", help=install("mlir")) from error
    return ir


@cache
def hlo() -> Any:
    """The bindings of StableHLO.

    Raises:
        MissingExtra: the wheel is not installed.
    """
    mlir()
    from torch_mlir._mlir_libs import _stablehlo

    _stablehlo.register_stablehlo_passes()
    return _stablehlo


def new_context() -> Any:
    """A context with StableHLO, CHLO and upstream's dialects; other dialects are read in the generic form."""
    context = mlir().Context()
    hlo().register_dialect(context, True)
    context.allow_unregistered_dialects = True
    _load_chlo(context)
    return context


def _load_chlo(context: Any) -> None:
    """The bindings cannot register CHLO; a pass that writes it does, even where there is nothing to run on."""
    from torch_mlir import passmanager
    from torch_mlir.dialects import torch  # registers the pass

    nothing = mlir().Module.parse("module {}", context=context)
    passmanager.PassManager.parse("builtin.module(func.func(convert-torch-to-stablehlo))", context=context).run(nothing.operation)
    assert torch


@dataclass
class OpenedModule:
    """A verified module, what it was read from, and the bytes of its `dense_resource` constants by name."""

    module: Module
    name: str
    text: str | None
    _blobs: dict[str, str] | None = field(default=None, repr=False)

    def error(self, message: str, *, op: Any = None, help: str = "") -> CosetError:
        """An error at the place of `op`."""
        return CosetError(message, place=self.place(op), help=help)

    def place(self, op: Any) -> Place:
        """Where `op` stands."""
        return _place(op, self.name, self.text)

    def resource(self, name: str) -> bytes:
        """The bytes of the resource `name` (without the alignment that stands before them).

        Raises:
            CosetError: the module has no such resource.
        """
        return bytes.fromhex(self.written_resource(name)[8:])

    def written_resource(self, name: str) -> str:
        """The resource `name` as MLIR writes it: hexadecimal digits, of the alignment first.

        Raises:
            CosetError: the module has no such resource.
        """
        if self._blobs is None:
            whole = self.text if self.text is not None else self.module.operation.get_asm()
            start = whole.rfind("{-#")
            found = _BLOB.finditer(whole, start) if start >= 0 else ()
            self._blobs = {match.group(1).strip('"'): match.group(2) for match in found}
        if name not in self._blobs:
            raise CosetError(f"the constant `{name}` has no data", place=Place(self.name), help="the file was printed without its weights")
        return self._blobs[name]


def open_module(source: str | Path | bytes) -> OpenedModule:
    """The module in a file (Path, or str without a line break or brace), in text, or in bytes (bytecode, portable artifact, text).

    Raises:
        CosetError: the file cannot be read, or holds no valid module.
        MissingExtra: the wheel is not installed.
    """
    ir = mlir()
    name, raw = _read(source)
    text: str | None = None
    context = new_context()
    try:
        if raw.startswith(_MAGIC):
            if raw[5:].startswith(b"StableHLO_v"):
                module = hlo().deserialize_portable_artifact(context, raw)
            else:
                module = ir.Module.parse(raw, context=context)
        else:
            text = _decoded(raw, name)
            module = ir.Module.parse(text, context=context)
    except (ir.MLIRError, ValueError) as error:  # ValueError: an artifact that cannot be read
        raise _refused(str(error), name, text) from None
    return OpenedModule(module, name, text)


def _read(source: str | Path | bytes) -> tuple[str, bytes]:
    if isinstance(source, bytes):
        return "<bytes>", source
    if isinstance(source, str) and ("\n" in source or "{" in source):
        return "<text>", source.encode()
    path = Path(source)
    try:
        return str(path), path.read_bytes()
    except OSError as error:
        raise CosetError(f"cannot read {path}: {error.strerror}", help="give the path of an .mlir, .mlirbc or artifact file") from None


def _decoded(raw: bytes, name: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise CosetError("this is neither MLIR text nor MLIR bytecode", place=Place(name)) from None


def _refused(message: str, name: str, text: str | None) -> CosetError:
    help = SHARDY if "Dialect `sdy' not found" in message else ""
    match = _ERROR.search(message)
    if match is None:
        return CosetError(f"MLIR refuses the module: {message.strip().splitlines()[-1]}", place=Place(name))
    line, column = int(match["line"]), int(match["column"])
    return CosetError(f"MLIR refuses the module: {match['what']}", place=Place(name, line, column, _line(text, line)), help=help)


def _line(text: str | None, line: int) -> str:
    lines = text.splitlines() if text is not None else []
    return lines[line - 1] if 0 < line <= len(lines) and len(lines[line - 1]) <= 400 else ""


def _place(op: Any, name: str, text: str | None) -> Place:
    location: Any = getattr(op, "location", None)
    while hasattr(location, "child_loc"):  # a name around it
        location = location.child_loc
    if text is not None and hasattr(location, "start_line"):
        line, column = int(location.start_line), int(location.start_col)
        return Place(name, line, column, _line(text, line))
    return Place(name)
