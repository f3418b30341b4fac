"""What tuning keeps in a profile: what compilers say of alternatives, what clocks say of them, and which program of several won."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from coset.backends.profile import MeasuredAt, database, put_row
from coset.ir.errors import CosetError

_TABLES = (
    """
CREATE TABLE IF NOT EXISTS compiled (
    architecture TEXT NOT NULL, versions TEXT NOT NULL, kernel TEXT NOT NULL, choice TEXT NOT NULL,
    registers INTEGER NOT NULL, spilled INTEGER NOT NULL, shared INTEGER NOT NULL, refused TEXT NOT NULL, at TEXT NOT NULL,
    PRIMARY KEY (architecture, versions, kernel, choice)
)""",
    """
CREATE TABLE IF NOT EXISTS tuned (
    target TEXT NOT NULL, device TEXT NOT NULL, versions TEXT NOT NULL, kernel TEXT NOT NULL, choice TEXT NOT NULL,
    seconds REAL NOT NULL, ratio REAL NOT NULL, low REAL NOT NULL, high REAL NOT NULL, rounds INTEGER NOT NULL,
    problem TEXT NOT NULL, at TEXT NOT NULL,
    PRIMARY KEY (target, device, versions, kernel, choice)
)""",
    """
CREATE TABLE IF NOT EXISTS raced (
    target TEXT NOT NULL, device TEXT NOT NULL, versions TEXT NOT NULL, model TEXT NOT NULL, program TEXT NOT NULL,
    strayed INTEGER NOT NULL, seconds REAL NOT NULL, ratio REAL NOT NULL, low REAL NOT NULL, high REAL NOT NULL,
    rounds INTEGER NOT NULL, problem TEXT NOT NULL, at TEXT NOT NULL,
    PRIMARY KEY (target, device, versions, model, program)
)""",
)
TABLES = ("measured", "compiled", "tuned", "raced")
_REMEDY = "give the file that `coset tune --profile` wrote"


@dataclass(frozen=True)
class CompilerFacts:
    """What a compiler says of all functions of an alternative: the most registers of a thread, bytes that a thread spills, the most bytes
    of shared memory; `refused`: why it compiles none."""

    registers: int = 0
    spilled: int = 0
    shared: int = 0
    refused: str = ""


@dataclass(frozen=True)
class Timed:
    """An alternative by the clock: its median `seconds`, the `ratio` to the default with its 95 % interval, of so many rounds.
    `problem`: why there is no time (it gives other values, it does not run)."""

    seconds: float = 0.0
    ratio: float = 0.0
    low: float = 0.0
    high: float = 0.0
    rounds: int = 0
    problem: str = ""


@dataclass(frozen=True)
class Raced:
    """A program of several of one model: which of the prices it was extracted at (0: the target's own), and its time beside that one's."""

    program: str
    strayed: int
    timed: Timed


class Tunings:
    """The tunings of a file; each row is there when `put` returns."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    # ------------------------------------------------------------ compilers

    def facts(self, architecture: str, versions: str, kernel: str) -> dict[str, CompilerFacts]:
        """What is known of a kernel's alternatives, by the text of the choice."""
        asked = "SELECT choice, registers, spilled, shared, refused FROM compiled WHERE architecture = ? AND versions = ? AND kernel = ?"
        return {choice: CompilerFacts(*rest) for choice, *rest in self._connection.execute(asked, (architecture, versions, kernel))}

    def put_facts(self, architecture: str, versions: str, kernel: str, choice: str, facts: CompilerFacts) -> None:
        """Keep what a compiler says."""
        told = (facts.registers, facts.spilled, facts.shared, facts.refused)
        put_row(self._connection, "compiled", architecture, versions, kernel, choice, *told)

    # ------------------------------------------------------------ clocks

    def timed(self, target: str, place: MeasuredAt, kernel: str | None = None) -> dict[str, dict[str, Timed]]:
        """What was timed at `place` (of one kernel, or of all): by kernel, by the text of the choice."""
        asked = (
            "SELECT kernel, choice, seconds, ratio, low, high, rounds, problem FROM tuned WHERE target = ? AND device = ? AND versions = ?"
        )
        found: dict[str, dict[str, Timed]] = {}
        given = (target, place.device, place.versions)
        one = ("", ()) if kernel is None else (" AND kernel = ?", (kernel,))
        for key, choice, *rest in self._connection.execute(f"{asked}{one[0]} ORDER BY kernel, choice", (*given, *one[1])):
            found.setdefault(key, {})[choice] = Timed(*rest)
        return found

    def put_timed(self, target: str, place: MeasuredAt, kernel: str, choice: str, timed: Timed) -> None:
        """Keep a time, in place of an older one."""
        told = (timed.seconds, timed.ratio, timed.low, timed.high, timed.rounds, timed.problem)
        put_row(self._connection, "tuned", target, place.device, place.versions, kernel, choice, *told)

    def places(self, target: str) -> list[MeasuredAt]:
        """Where anything was timed for a target, the place of the latest time first."""
        asked = "SELECT device, versions FROM {} WHERE target = ? GROUP BY device, versions"
        latest = " UNION ALL ".join(asked.replace("SELECT device, versions", "SELECT device, versions, max(at) AS last").format(table)
                                    for table in ("tuned", "raced"))  # fmt: skip
        rows = self._connection.execute(
            f"SELECT device, versions, max(last) FROM ({latest}) GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2", (target,) * 2
        )
        return [MeasuredAt(device, versions) for device, versions, _ in rows]

    # ------------------------------------------------------------ programs

    def raced(self, target: str, place: MeasuredAt, model: str) -> list[Raced]:
        """The programs of a model that were timed, in the order of the prices that they were extracted at."""
        asked = """SELECT program, strayed, seconds, ratio, low, high, rounds, problem FROM raced
                   WHERE target = ? AND device = ? AND versions = ? AND model = ? ORDER BY strayed, program"""
        rows = self._connection.execute(asked, (target, place.device, place.versions, model))
        return [Raced(program, strayed, Timed(*rest)) for program, strayed, *rest in rows]

    def models(self, target: str, place: MeasuredAt) -> list[str]:
        """The models of which programs were timed."""
        asked = "SELECT DISTINCT model FROM raced WHERE target = ? AND device = ? AND versions = ? ORDER BY model"
        return [model for (model,) in self._connection.execute(asked, (target, place.device, place.versions))]

    def put_raced(self, target: str, place: MeasuredAt, model: str, raced: Raced) -> None:
        """Keep the time of a program."""
        timed = raced.timed
        told = (timed.seconds, timed.ratio, timed.low, timed.high, timed.rounds, timed.problem)
        put_row(self._connection, "raced", target, place.device, place.versions, model, raced.program, raced.strayed, *told)


@contextmanager
def opened(path: Path) -> Iterator[Tunings]:
    """The tunings of a file, which is made where there is none, beside whatever `coset calibrate` keeps there.

    Raises:
        CosetError: as `database`.
    """
    with database(path, _TABLES) as connection:
        yield Tunings(connection)


@contextmanager
def reading(path: Path) -> Iterator[Tunings]:
    """The tunings of a file, which is not changed.

    Raises:
        CosetError: there is no such file, or it is no profile.
    """
    if not path.is_file():
        raise CosetError(f"there is no profile `{path}`", help=_REMEDY)
    connection: sqlite3.Connection | None = None
    try:
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not tables & set(TABLES):
            raise CosetError(f"`{path}` is an SQLite file, but no profile", help=_REMEDY)
        if "tuned" not in tables:  # a profile of `coset calibrate` alone
            connection.close()
            connection = sqlite3.connect(":memory:")
            for table in _TABLES:
                connection.execute(table)
        yield Tunings(connection)
    except sqlite3.Error as error:
        raise CosetError(f"`{path}` is no profile: {error}", help=_REMEDY) from None
    finally:
        if connection is not None:
            connection.close()
