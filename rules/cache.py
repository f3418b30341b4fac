"""Files that save time from run to run, in the user's cache folder: bytes under a name, with a digest of what they hold.

A cache and nothing more. What cannot be read, was cut off or is of another version is made anew; a folder that cannot be written to is
left alone. Files take their name when they are complete, so that processes may write at the same time.
"""

from __future__ import annotations

import os
import tempfile
from hashlib import blake2b
from pathlib import Path

FOLDER = "COSET_CACHE"  # the variable that names another folder, or none where it is empty
MOST = 2000  # files of a kind, above which the oldest half goes


def cache_file(kind: str, *key: str) -> Path | None:
    """Where what belongs to `key` is kept, in the folder of its `kind`; None where the user wants no cache."""
    folder = _folder()
    return None if folder is None else folder / kind / f"{blake2b(chr(0).join(key).encode(), digest_size=20).hexdigest()}.json"


def _folder() -> Path | None:
    given = os.environ.get(FOLDER)
    if given is not None:
        return Path(given) if given else None
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not base.is_absolute():
        try:
            base = Path.home() / ".cache"
        except RuntimeError:  # a user without a home
            return None
    return base / "coset"


def read(file: Path | None) -> bytes | None:
    """What was kept there, whole; None where it is not."""
    if file is None:
        return None
    try:
        found, _, body = file.read_bytes().partition(b"\n")
    except OSError:
        return None
    return body if found == digest(body) else None


def digest(body: bytes) -> bytes:
    """The first line of a file with `body`."""
    return blake2b(body, digest_size=20).hexdigest().encode()


def write(file: Path | None, body: bytes) -> None:
    """Keep `body` there."""
    if file is None:
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=file.parent, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(digest(body) + b"\n" + body)
            Path(name).replace(file)
        finally:
            Path(name).unlink(missing_ok=True)
        _prune(file.parent)
    except OSError:
        return  # a full or read-only disk costs time, not the result


def _prune(folder: Path) -> None:
    files = list(folder.iterdir())
    if len(files) > MOST:
        for old in sorted(files, key=lambda file: file.stat().st_mtime_ns)[: MOST // 2]:
            old.unlink(missing_ok=True)
