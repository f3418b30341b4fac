"""Spans of files that hold the bytes of constants."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coset.ir.errors import CosetError
from coset.ir.types import TensorType


@dataclass(frozen=True)
class FileSpan:
    """`length` bytes at `offset` of the file `path`, little-endian, row-major. `modified` is the file's time of change (ns) when the span
    was taken: a file that has changed since is not read."""

    path: Path
    offset: int
    length: int
    modified: int | None = None

    def check(self) -> None:
        """Look whether the file is still the one that the span was taken of.

        Raises:
            CosetError: it has changed. OSError: it is gone.
        """
        if self.modified not in (None, self.path.stat().st_mtime_ns):
            raise CosetError(f"{self.path} has changed since its weights were imported", help="import the model again")

    def unreadable(self, error: Exception) -> CosetError:
        """What the user is told where it cannot be read."""
        return CosetError(f"cannot read weights from {self.path}: {error}", help="keep the file beside the model")

    def mapped(self, type: TensorType) -> np.ndarray[Any, Any]:
        """The tensor of this type that the bytes are, mapped anew, so that pages can be dropped after use.

        Raises:
            CosetError: the file is gone, too short, or has changed.
        """
        shape = type.static
        assert shape is not None
        if self.length == 0:
            return np.zeros(shape, type.dtype.numpy)
        try:
            self.check()
            flat = np.memmap(self.path, np.uint8, "r", self.offset, (self.length,))
        except (OSError, ValueError) as error:
            raise self.unreadable(error) from None
        return np.asarray(flat).view(type.dtype.numpy).reshape(shape)
