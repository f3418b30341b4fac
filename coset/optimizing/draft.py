"""A model on its way out: written once, compared where it lies, then moved to its name or kept while its owner lives."""

from __future__ import annotations

import os
import shutil
import weakref
from pathlib import Path

from coset.ir.errors import CosetError
from coset.ir.held import held_folder
from coset.ir.place import Place
from coset.lowering.onnx.write import move_model


class Draft:
    """The place `path` for one model, in a new folder that goes with `discard`, with the last reference, or at exit."""

    def __init__(self, name: str, parent: Path | None = None) -> None:
        """Make the folder: hidden in `parent`, so that a finished model moves from it by renaming, or where temporary files go."""
        folder, held = held_folder("coset-draft-" if parent is None else ".coset-draft-", parent)
        self.path = folder / name
        self.discard = weakref.finalize(self, _remove, folder, held, os.getpid())

    def move(self, path: Path) -> None:
        """Move the model and its weights to `path`, in place of what is there."""
        move_model(self.path, path)


def draft_for(path: Path) -> Draft:
    """The draft of a model that is to be moved to `path`.

    Raises:
        CosetError: nothing can be written there.
    """
    if path.exists() and not path.is_file():
        raise CosetError(f"cannot write {path}: it is no file", place=Place(str(path)), help="name a file")
    try:
        return Draft(path.name, path.parent)
    except OSError as error:
        message = f"cannot write {path}: {error.strerror or error}"
        raise CosetError(message, place=Place(str(path)), help="write to a folder that exists and may be written") from None


def _remove(folder: Path, held: int, process: int) -> None:
    if os.getpid() == process:  # a forked process that exits takes nothing from the one that it came from
        shutil.rmtree(folder, ignore_errors=True)
        os.close(held)
