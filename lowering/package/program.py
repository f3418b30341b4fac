"""A program as a Python package that needs torch and not coset: `from DIR import model; model(x)`.

The package has `model.py` (the inputs, and the program as torch code), `functions.py` (what it calls), `runtime.py` (weights, checks,
CUDA graph), `tiles.py` (where kernels read by bulk copies), `weights.safetensors` and `manifest.json`. It is written in a folder beside its
own and renamed: never half-written.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coset.ir.constants import Constant
from coset.ir.dims import alone, symbols
from coset.ir.errors import CosetError
from coset.ir.place import Place
from coset.ir.program import Program
from coset.ir.types import TensorType
from coset.lowering.package.safetensors import torch_dtype, write_safetensors
from coset.lowering.torch.copied import copied_functions, known_functions
from coset.lowering.torch.dims import dim_text, tuple_text
from coset.lowering.torch.dtypes import stored
from coset.lowering.torch.program import IMPORTS, Lowered, called_functions, lower_to_aten

FORMAT = 1  # of the manifest
Checked = Callable[[Path], Mapping[str, Any]]
RUNTIME = Path(__file__).with_name("runtime.py")
TILES = Path(__file__).with_name("tiles.py")
WEIGHTS, MANIFEST = "weights.safetensors", "manifest.json"

HOST_IMPORTS = """from __future__ import annotations

import math
from pathlib import Path

import torch
from torch import Tensor
"""


@dataclass(frozen=True)
class Package:
    """The files of a package: texts by name, and the constants of its weights file by name; those of `packed` share bytes along a dim,
    those of `orders` get their dims in that order in memory when they are loaded."""

    texts: Mapping[str, str]
    weights: Mapping[str, Constant]
    manifest: Mapping[str, Any] = field(default_factory=dict)
    packed: Mapping[str, int] = field(default_factory=dict)
    orders: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def aten_package(program: Program, *, title: str, facts: Mapping[str, Any] | None = None) -> Package:
    """The package of `program` as plain torch code; `facts` are entered into its manifest.

    Raises:
        CosetError: an op has no torch expression.
    """
    lowered = lower_to_aten(program)
    texts = {
        "__init__.py": init_text(title),
        "model.py": _model_text(program, lowered, title),
        "runtime.py": RUNTIME.read_text(),
    }
    called = [name for name in lowered.functions if name in known_functions()]
    if called:
        texts["functions.py"] = f'"""What the program calls beside torch."""\n\n{IMPORTS}{copied_functions(called)}'
    weights = {name: term.attribute("value") for name, term in lowered.weights.items()}
    return Package(texts, weights, {**interface(program), **(facts or {}), "code": "aten"})


def interface(program: Program) -> dict[str, Any]:
    """The names, shapes and dtypes at the program's ends, for a manifest."""

    def described(name: str, type: Any) -> dict[str, Any]:
        assert isinstance(type, TensorType)
        shape = [dim if isinstance(dim, int) else str(dim) for dim in type.dims]
        return {"name": name, "dtype": str(type.dtype), "stored": torch_dtype(type.dtype), "shape": shape}

    return {
        "inputs": [described(term.attribute("name"), term.type) for term in program.inputs],
        "outputs": [described(name, term.type) for name, term in program.outputs],
    }


# ---------------------------------------------------------------- texts


def init_text(title: str) -> str:
    use = "Use: `from <this folder> import model; y = model(x)`. Written by coset; do not edit."
    return f'"""{title}\n\n{use}"""\n\nfrom .model import model\n\n__all__ = ["model"]\n'


def _model_text(program: Program, lowered: Lowered, title: str) -> str:
    called = [name for name in called_functions(lowered.body) if name in known_functions()]
    imports = f"from .functions import {', '.join(sorted(called))}\n" if called else ""
    return (
        f'"""{title}"""\n\n{HOST_IMPORTS}\n'
        f"{imports}from .runtime import Input, Model\n\n{inputs_text(program)}"
        f"OUTPUTS = {tuple_text(repr(name) for name, _ in program.outputs)}\n\n\n{lowered.body}\n\n"
        f"model = Model({lowered.name}, INPUTS, OUTPUTS, Path(__file__).parent)\n"
    )


def inputs_text(program: Program) -> str:
    """The table of inputs that the host checks against."""
    rows = []
    for term in program.inputs:
        assert isinstance(term.type, TensorType)
        sizes = []
        for dim in term.type.dims:
            names = {name: f"dims[{name!r}]" for name in symbols(dim)}
            expression = f"({str(dim)!r}, lambda dims: {dim_text(dim, names)})"
            sizes.append(str(dim) if isinstance(dim, int) else repr(str(dim)) if alone(dim) else expression)
        rows.append(f"    Input({term.attribute('name')!r}, {stored(term.type.dtype)}, {tuple_text(sizes)}),\n")
    return f"INPUTS = (\n{''.join(rows)})\n"


# ---------------------------------------------------------------- files


def write_package(package: Package, folder: Path, *, checked: Checked | None = None) -> dict[str, Any]:
    """Write the package at `folder`, in place of an older one; its manifest with the hashes of all files.

    `checked` gets the folder that is about to take the name; it gives facts for the manifest, or raises and nothing is written.

    Raises:
        CosetError: something that is no package of ours is there, or nothing can be written.
    """
    refuse_foreign(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise CosetError(f"cannot write {folder}: {error.strerror or error}", help="write where folders may be made") from None
    try:
        manifest = _write_files(package, beside)
        if checked is not None:
            manifest = {**manifest, **checked(beside)}
            shutil.rmtree(beside / "__pycache__", ignore_errors=True)
            (beside / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n")
        beside.chmod(0o755)
        _move(beside, folder)
    except OSError as error:
        raise CosetError(f"cannot write {folder}: {error.strerror or error}", help="check the disk and the permissions") from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return manifest


def refuse_foreign(folder: Path) -> None:
    """Check that a package may go to `folder`.

    Raises:
        CosetError: it is a file, or a folder with other things in it than a package of ours.
    """
    if not folder.exists():
        return
    if folder.is_dir() and (not any(folder.iterdir()) or _is_ours(folder)):
        return
    what = "is no folder" if not folder.is_dir() else "holds other files than a package that coset wrote"
    raise CosetError(f"{folder} {what}", place=Place(str(folder)), help="name a new folder")


def _is_ours(folder: Path) -> bool:
    """True where a manifest of ours lists every file but compiled Python."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
        listed = {MANIFEST, "__pycache__", *manifest["files"]}
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return manifest.get("writer") == "coset" and {path.name for path in folder.iterdir()} <= listed


def _write_files(package: Package, folder: Path) -> dict[str, Any]:
    files: dict[str, str] = {}
    for name, text in package.texts.items():
        (folder / name).write_text(text)
        files[name] = hashlib.sha256(text.encode()).hexdigest()
    if package.weights:
        files[WEIGHTS] = write_safetensors(folder / WEIGHTS, package.weights, package.packed)
    manifest = {"writer": "coset", "format": FORMAT, **package.manifest, "weights": _weights_facts(package), "files": files}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n")
    return manifest


def _weights_facts(package: Package) -> list[dict[str, Any]]:
    facts = []
    for name, constant in package.weights.items():
        fact: dict[str, Any] = {
            "name": name,
            "dtype": str(constant.type.dtype),
            "shape": list(constant.type.static or ()),
            "key": constant.key,
        }
        fact |= {"packed": package.packed[name]} if name in package.packed else {}
        facts.append(fact | ({"order": list(package.orders[name])} if name in package.orders else {}))
    return facts


def _move(source: Path, folder: Path) -> None:
    """Rename `source` to `folder`; an older package makes way first and comes back where the renaming fails."""
    if not folder.exists():
        source.rename(folder)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{folder.name}-old-", dir=folder.parent))
    folder.replace(old)
    try:
        source.rename(folder)
    except OSError:
        old.replace(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)
