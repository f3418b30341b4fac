"""`--range`: the best program may be another one for other sizes of a free dim. Where it is, by prices, and a file for each stretch.

A program is sought at sizes between both ends, each twice the one before; all that were found are priced at all of these sizes; between two
sizes with different winners the size where one becomes cheaper than the other is found by halving. Programs that
save less than `WORTH` anywhere are left out, so that there are no more files than it pays to have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from coset.extract.select import reprice
from coset.ir.errors import CosetError
from coset.ir.term import Term
from coset.job.job import Job
from coset.optimizing.formats import Flow
from coset.searching.solving import finish, solve_task

WORTH = 0.01  # of the predicted time: a program that nowhere saves more than that gets no file
Price = Callable[[int, int], float]  # of a candidate at a size


@dataclass(frozen=True)
class Span:
    """Sizes of a free dim, both ends among them."""

    name: str
    low: int
    high: int

    def sizes(self) -> list[int]:
        """Where programs are sought."""
        found = [self.low]
        while found[-1] * 2 < self.high:
            found.append(found[-1] * 2)
        return [*found, self.high] if self.high > self.low else found


@dataclass(frozen=True)
class Stretch:
    """Sizes at which one program is the cheapest: the candidate that was found `at` a size; its predicted seconds at both ends, and the
    share of the time of the program for all sizes that it saves at the end where it saves most."""

    low: int
    high: int
    at: int
    seconds: tuple[float, float]
    saved: float


@dataclass(frozen=True)
class Stretches:
    """All stretches in order, and the size at which the one program was found that does best where there is only one file."""

    stretches: Sequence[Stretch]
    overall: int


def stretches(job: Job, span: Span, flow: Callable[[Job], Flow]) -> Stretches:
    """Where which program is the cheapest for the job's target.

    Raises:
        CosetError: the dim is none of the model's, or has a number already; or as the search does.
    """
    if span.name in job.dims:
        raise CosetError(f"the dim `{span.name}` has the number {job.dims[span.name]} and a range", help="give one of --dim and --range")
    candidates: list[tuple[Term, ...]] = []
    found_at: list[int] = []
    bindings: dict[int, Mapping[str, int]] = {}
    for size in span.sizes():
        given = flow(replace(job, dims={**job.dims, span.name: size}))
        task = given.read()
        bindings[size] = task.binding
        job.progress(f"at {span.name} = {size}")
        solved, _ = solve_task(task, task.phases, given.printable(task))
        roots = finish(task, solved)[0].roots
        if roots not in candidates:
            candidates.append(roots)
            found_at.append(size)
    known: dict[tuple[int, int], float] = {}
    usual = bindings[span.low]

    def price(candidate: int, size: int) -> float:
        if (candidate, size) not in known:
            binding = bindings.get(size, {**usual, span.name: size})
            known[candidate, size] = reprice(candidates[candidate], job.target, binding)
        return known[candidate, size]

    return divide(span, found_at, price)


def divide(span: Span, found_at: Sequence[int], price: Price) -> Stretches:
    """The stretches of `span` with the cheapest of the candidates that were `found_at` these sizes."""
    sizes = span.sizes()
    kept = _worthwhile(sizes, range(len(found_at)), price)
    winners = [min(kept, key=lambda candidate: (price(candidate, size), candidate)) for size in sizes]
    overall = _overall(sizes, kept, price)
    made: list[tuple[int, int, int]] = []
    low = span.low
    for before, after, left, right in zip(winners, winners[1:], sizes, sizes[1:], strict=False):
        if before != after:
            border = _border(left, right, lambda size, a=before, b=after: price(b, size) < price(a, size))  # type: ignore[misc]
            made.append((low, border - 1, before))
            low = border
    made.append((low, span.high, winners[-1]))
    result = []
    for first, last, winner in made:
        ends = (price(winner, first), price(winner, last))
        saved = max(1 - own / price(overall, size) for own, size in zip(ends, (first, last), strict=True))
        result.append(Stretch(first, last, found_at[winner], ends, saved))
    return Stretches(result, found_at[overall])


def _worthwhile(sizes: Sequence[int], candidates: Sequence[int], price: Price) -> list[int]:
    """Few candidates of which one is within `WORTH` of the best at every size: the one that does best at all, then what mends it most."""
    kept = [_overall(sizes, candidates, price)]
    while True:
        best = {size: min(price(candidate, size) for candidate in kept) for size in sizes}

        def mended(candidate: int, best: Mapping[int, float] = best) -> float:
            return max(1 - price(candidate, size) / best[size] for size in sizes)

        further = max(candidates, key=lambda candidate: (mended(candidate), -candidate))
        if mended(further) <= WORTH:
            return kept
        kept.append(further)


def _overall(sizes: Sequence[int], candidates: Sequence[int], price: Price) -> int:
    """The candidate that is at worst the least factor above the best."""
    best = {size: min(price(candidate, size) for candidate in candidates) for size in sizes}
    return min(candidates, key=lambda candidate: (max(price(candidate, size) / best[size] for size in sizes), candidate))


def _border(left: int, right: int, beyond: Callable[[int], bool]) -> int:
    """The first size above `left` for which `beyond` holds, as it does for `right`."""
    while right - left > 1:
        middle = (left + right) // 2
        left, right = (left, middle) if beyond(middle) else (middle, right)
    return right
