"""Measured seconds that are kept from run to run: an SQLite file, a row for each op, element type and shape on a device."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from coset.ir.errors import CosetError

_TABLE = """
CREATE TABLE IF NOT EXISTS measured (
    device TEXT NOT NULL, versions TEXT NOT NULL, op TEXT NOT NULL, dtype TEXT NOT NULL, shape TEXT NOT NULL,
    seconds REAL NOT NULL, rounds INTEGER NOT NULL, at TEXT NOT NULL,
    PRIMARY KEY (device, versions, op, dtype, shape)
)
"""


@dataclass(frozen=True)
class MeasuredAt:
    """Where something was measured: the `device`, and the `versions` and settings of what ran it."""

    device: str
    versions: str


@dataclass(frozen=True)
class Measurement:
    """One measurement: `seconds` of an op, the median of so many `rounds`; `at` is local time."""

    op: str
    dtype: str
    shape: str
    seconds: float
    rounds: int
    at: str


class Profile:
    """The measurements of a file; each is there when `put` returns, so that a run which is cut off goes on where it was."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, place: MeasuredAt) -> list[Measurement]:
        """What was measured there, in order of op, element type and shape."""
        columns = "op, dtype, shape, seconds, rounds, at"
        found = self._connection.execute(
            f"SELECT {columns} FROM measured WHERE device = ? AND versions = ? ORDER BY op, dtype, shape", (place.device, place.versions)
        )
        return [Measurement(*row) for row in found]

    def put(self, place: MeasuredAt, op: str, dtype: str, shape: str, seconds: float, rounds: int) -> None:
        """Keep a measurement, in place of an older one."""
        put_row(self._connection, "measured", place.device, place.versions, op, dtype, shape, seconds, rounds)


@contextmanager
def opened(path: Path) -> Iterator[Profile]:
    """The profile of a file, which is made where there is none.

    Raises:
        CosetError: as `database`.
    """
    with database(path, (_TABLE,)) as connection:
        yield Profile(connection)


# ---------------------------------------------------------------- for all that a profile keeps


def put_row(connection: sqlite3.Connection, table: str, *values: str | float) -> None:
    """Keep a row in place of an older one, with the local time as its last value; it is there when this returns."""
    row = (*values, time.strftime("%Y-%m-%dT%H:%M:%S"))
    with connection:
        connection.execute(f"INSERT OR REPLACE INTO {table} VALUES ({', '.join('?' * len(row))})", row)


@contextmanager
def database(path: Path, tables: Iterable[str]) -> Iterator[sqlite3.Connection]:
    """A profile's file, which is made where there is none, with the tables that these statements create.

    Raises:
        CosetError: the file cannot be opened or written, or is no profile.
    """
    connection: sqlite3.Connection | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path)
        with connection:
            for table in tables:
                connection.execute(table)
        yield connection
    except (sqlite3.Error, OSError) as error:
        raise CosetError(f"the profile `{path}` cannot be used: {error}", help="give another file with --profile, or remove it") from None
    finally:
        if connection is not None:
            connection.close()
