"""Files and folders that somebody is at work on: held with a lock that ends with its process, so that what a dead one left is known."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

from coset.ir.errors import CosetError
from coset.ir.place import Place

PART = ".part"  # the end of the name of a file that is being written


@contextmanager
def replacing(path: Path, *, named: Callable[[], Path] | None = None, lasting: bool = True) -> Iterator[BinaryIO]:
    """A file beside `path` that takes its place when all went well, and is removed otherwise. Each writer has one of its own, so that of
    two the last one wins whole; those of dead writers are removed first. `named` gives another name, in the same folder, when all is
    written. One that is not `lasting` need not outlive the machine's next start: see `make_last`.

    Raises:
        CosetError: the folder cannot be written, or the disk is full.
    """
    beside: Path | None = None
    try:
        _sweep(path.parent, f".{path.name}.", PART)
        beside, file = _open_held(path)
        with file:
            yield file
            file.flush()
            if lasting:
                os.fsync(file.fileno())
            beside.replace(path if named is None else named())
    except OSError as error:
        message = f"cannot write {path.name}: {error.strerror or error}"
        raise CosetError(message, place=Place(str(path)), help="write to another folder, or make room; nothing was changed") from None
    finally:
        if beside is not None:
            with suppress(OSError):
                beside.unlink()


def make_last(path: Path) -> None:
    """Have the system write the file out, before it takes the place of another."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def held_folder(prefix: str, parent: Path | None = None) -> tuple[Path, int]:
    """A new folder in `parent`, or where temporary files go, and the descriptor that holds it; those with such names that dead processes
    left there are removed."""
    where = Path(tempfile.gettempdir()) if parent is None else parent
    _sweep(where, prefix, "")
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=where))
        with suppress(FileNotFoundError):
            descriptor = os.open(folder, os.O_RDONLY)
            if _hold(descriptor, folder):
                return folder, descriptor
            os.close(descriptor)


@contextmanager
def working_folder(prefix: str) -> Iterator[Path]:
    """A held folder where temporary files go, removed at the end."""
    folder, descriptor = held_folder(prefix)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


@contextmanager
def locked(folder: Path) -> Iterator[bool]:
    """Keep others who ask so out of `folder`; False where the system has no such locks."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        yield False  # whoever writes there will say what is wrong with it
        return
    try:
        yield _locks(descriptor)
    finally:
        os.close(descriptor)


def _locks(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError:
        return False
    return True


def _open_held(path: Path) -> tuple[Path, BinaryIO]:
    while True:
        beside = path.with_name(f".{path.name}.{token_hex(4)}{PART}")
        file = beside.open("xb")
        if _hold(file.fileno(), beside):
            return beside, file
        file.close()


def _hold(descriptor: int, path: Path) -> bool:
    """Hold a new file or folder; False where somebody who sweeps took it for one that was left behind."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # no locks here: nobody sweeps either
    return path.exists()


def _sweep(folder: Path, first: str, last: str) -> None:
    """Remove what is called so in `folder` and is held by nobody."""
    for path in [each for each in folder.iterdir() if each.name.startswith(first) and each.name.endswith(last)]:
        with suppress(OSError):
            _remove_left(path)


def _remove_left(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
    finally:
        os.close(descriptor)
