"""A placed model as one model for each stretch that runs on one device, with the order in which they run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from coset.ir.errors import CosetError
from coset.ir.place import Place
from coset.job.answer import as_json, save
from coset.lowering.onnx.split import write_parts
from coset.targets.target import Target

ORDER = "order.json"


def folder_for_parts(folder: str | Path, target: Target) -> Path:
    """Where the parts of a model for `target` go, which is checked before the work.

    Raises:
        CosetError: the target has one device, takes no ONNX, or the folder cannot take them.
    """
    path = Path(folder)
    if target.host is None or target.dialect != "onnx":
        help = "leave out --split, or name a target with a `host` (docs/adding-a-target.md)"
        what = "has no host: all runs on one device" if target.host is None else "takes no ONNX, and parts are ONNX models"
        raise CosetError(f"the target `{target.name}` {what}", help=help)
    if path.is_dir() and any(path.iterdir()):
        raise CosetError(f"the folder {path} is not empty", place=Place(str(path)), help="name a new one")
    if (path.exists() and not path.is_dir()) or not path.parent.is_dir():
        raise CosetError(f"{path} cannot be a folder", place=Place(str(path)), help="name a new one in a folder that is there")
    return path


def split_model(model: Path, folder: Path) -> dict[str, Any]:
    """Write the parts of the ONNX file `model` into `folder`, and `order.json` last. What that file says: `parts` in order, each with its
    `file`, its `device` and the names of its `inputs` and `outputs`; the `inputs` and `outputs` of the whole. Each part is fed with inputs
    of the whole and outputs of parts before it.

    Raises:
        CosetError: the type of a value that goes from one part to another is not known, or a file cannot be written.
    """
    try:
        folder.mkdir(exist_ok=True)
        order = write_parts(model, folder)
    except OSError as error:
        raise CosetError(
            f"cannot write {folder}: {error.strerror or error}", place=Place(str(folder)), help="name another folder"
        ) from None
    save(folder / ORDER, as_json(order, indent=2) + "\n")
    return order
