"""What a search may spend. A limit ends the search with what was found; it is never an error."""

from __future__ import annotations

from dataclasses import dataclass

from coset.ir.errors import CosetError


@dataclass(frozen=True)
class Limits:
    """Limits of one search: `seconds` of wall time, `nodes` e-nodes, `bytes` of memory beyond the start, `iterations` a phase.

    Stops by `nodes` and `iterations` are reproducible; stops by time or memory end at a whole iteration and say so.

    Raises:
        CosetError: a limit is not positive.
    """

    seconds: float = 30.0
    nodes: int = 200_000
    bytes: int = 1 << 30
    iterations: int = 12

    def __post_init__(self) -> None:
        for name in ("seconds", "nodes", "bytes", "iterations"):
            if not getattr(self, name) > 0:
                raise CosetError(f"the limit `{name}` is {getattr(self, name)}; it must be more than 0")
