"""What a name that is not known may be meant for, for messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

LIKELY = 0.75  # of `difflib`: two names of eight letters with six in common, in order


def like(name: str, known: Iterable[str]) -> str:
    """A question after those of the names `known` that `name` may be meant for; "" where none is like it."""
    return meant(get_close_matches(name, list(known), n=3))


def likely(name: str, known: Iterable[str]) -> str | None:
    """The one of the names `known` that `name` is most probably meant for; None where none is so like it that one may go on with it."""
    return next(iter(get_close_matches(name, list(known), n=1, cutoff=LIKELY)), None)


def meant(names: Sequence[str]) -> str:
    """A question after `names`; "" where there are none."""
    return f"do you mean {' or '.join(f'`{name}`' for name in names)}?" if names else ""
