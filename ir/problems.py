"""Several mistakes of one file, said at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from coset.ir.errors import CosetError
from coset.ir.place import Place

MOST_SHOWN = 50
"""Mistakes of a file that an error shows."""


@dataclass(frozen=True)
class FileProblem:
    """Something wrong in a file: what, where, and what to do."""

    message: str
    place: Place
    help: str = ""


class WrongFile(CosetError):
    """A file with mistakes: the first is the error's own message, place and help; `others` are those behind it in the file."""

    others: tuple[FileProblem, ...] = ()

    def __str__(self) -> str:
        shown = [super().__str__(), *(str(CosetError(each.message, place=each.place, help=each.help)) for each in self.others)]
        count = f"{len(shown)} mistakes" + (f"; the first {MOST_SHOWN} are above" if len(shown) > MOST_SHOWN else "")
        return "\n".join([*shown[:MOST_SHOWN], *([count] if self.others else [])])


def refusal(problems: Iterable[FileProblem], files: Sequence[str] = ()) -> WrongFile:
    """One error of all `problems`, of which there are some, in the order of their lines; of several `files`, in that of the files."""
    order = {file: index for index, file in enumerate(files)}
    places = {each: (order.get(each.place.file, len(order)), each.place.file, each.place.line, each.place.column) for each in problems}
    ordered = sorted(places, key=places.__getitem__)
    error = WrongFile(ordered[0].message, place=ordered[0].place, help=ordered[0].help)
    error.others = tuple(ordered[1:])
    return error
