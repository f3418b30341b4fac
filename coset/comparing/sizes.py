"""Numbers for the dim symbols of a program whose inputs are drawn, and the memory that drawing them takes."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import prod
from typing import Any

import numpy as np

from coset.comparing.loose_inputs import RANK, RANKS, has_unknown_rank
from coset.ir import dims
from coset.ir.errors import CosetError
from coset.ir.program import Program, tensors_in
from coset.ir.program_source import source_of
from coset.ir.term import Term
from coset.ir.types import TensorType

# what a free dim may be when the user does not say: the first one that the original program runs with is taken
DIM_CANDIDATES = (32, 64, 16, 224, 128, 1, 2, 8, 320, 4)
FITTING = (224, 32)  # ... beside one that is a size of the program's own
OWN, MOST_OWN = 6, 1024  # how many of these are tried, and the largest
LONG = (1024, 16_000)  # what has no result for less: frames of sound, a second of it
MOST_LONG = 1 << 24  # elements of the inputs with these


DRAWN_BYTES = 8  # for each element: numbers are drawn as f64
SHARE = 4  # of the machine's memory inputs may take one in so many
APART = 8  # between the numbers of two dims that are to differ


ROWS = 2  # of a batch: what mixes them shows, and more take longer
BATCH_NAMES = ("batch", "b", "n", "batch_size", "N", "B")


def bindings(program: Program, given: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Numbers for the program's dim symbols, most natural first, and under `RANK` for the rank of inputs that have none; the user's
    numbers, and those of the first sample, are never changed.

    Raises:
        CosetError: `given` names a symbol that the program has not, a number below 1, or another one than the first sample has.
    """
    if not has_unknown_rank(program):
        yield from _sizes(program, given)
    elif RANK in given:
        yield from ({**sizes, RANK: given[RANK]} for sizes in _sizes(program, {k: number for k, number in given.items() if k != RANK}))
    else:
        yield from ({**sizes, RANK: rank} for sizes in _sizes(program, given) for rank in RANKS)


def _sizes(program: Program, given: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """As `bindings`, of dims alone."""
    symbols = program.symbols()
    sampled = sampled_sizes(program)
    for name, number in given.items():
        if sampled.get(name, number) != number:
            raise CosetError(
                f"the dim `{name}` is {sampled[name]} in the sample inputs, and {number} by --dim", help="leave one of them out"
            )
    given = {**sampled, **given}
    for name, number in given.items():
        if name not in symbols:
            raise CosetError(f"the model has no free dim `{name}`", help=f"it has: {', '.join(symbols) or 'none'}")
        if number < 1:
            raise CosetError(f"the dim `{name}` is {number}; it must be at least 1")
    free = [name for name in symbols if name not in given]
    if not free:
        yield dict(given)
        return

    of_batches = batches(program)

    def sizes(candidate: int) -> dict[str, int]:
        return {**given, **{name: 1 if name in of_batches else candidate for name in free}}

    small = [found for found in map(sizes, DIM_CANDIDATES) if sum(drawn_bytes(program, found).values()) <= most_drawn()]
    yield from small or [sizes(DIM_CANDIDATES[0])]
    yield {**given, **dict.fromkeys(free, 1)}
    own = _own_sizes(program)
    yield from map(sizes, own)
    yield from ({**sizes(candidate), name: size} for candidate in FITTING for name in free for size in own)
    for candidate in LONG:
        found = sizes(candidate)
        shapes = [type.shape for term in program.inputs for type in tensors_in(term.type) if type.shape is not None]
        if sum(prod(dims.evaluate(dim, found) for dim in shape) for shape in shapes) <= MOST_LONG:
            yield found


def with_few_rows(program: Program, given: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """`bindings` with `ROWS` for each dim that leads others and has no number yet: most of these count rows that do not meet.

    Raises:
        CosetError: as `bindings`.
    """
    fixed = {**sampled_sizes(program), **given}
    few = {name: ROWS for name in _first_dims(program.inputs) if name not in fixed}
    yield from ({**natural, **few} for natural in bindings(program, given))


def sizes_in(program: Program, feed: Mapping[str, Any]) -> dict[str, int]:
    """The numbers of the free dims that are dims of inputs, as the first array has them."""
    found: dict[str, int] = {}
    for term in program.inputs:
        if not isinstance(term.type, TensorType):
            continue
        for dim, size in zip(term.type.shape or (), np.shape(feed[term.attribute("name")]), strict=False):
            name = dims.alone(dim)
            if name is not None:
                found.setdefault(name, size)
    return found


def sampled_sizes(program: Program) -> dict[str, int]:
    """The numbers of free dims in the first sample of the user's."""
    feeds = source_of(program).samples
    return {name: size for name, size in sizes_in(program, feeds[0]).items() if size > 0} if feeds else {}


def _own_sizes(program: Program) -> list[int]:
    """Sizes that values of the program have, the most frequent ones first: a free dim may have to be one of them."""
    shapes = (type.shape for term in program.terms() for type in tensors_in(term.type) if type.shape is not None)
    counts = Counter(size for shape in shapes for size in shape if isinstance(size, int) and 1 < size <= MOST_OWN)
    return [size for size, _ in counts.most_common(OWN)]


def trials(program: Program, given: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Numbers for the dim symbols to compare programs under: first another one for each, for what holds of equal sizes only is no program,
    and `ROWS` for a dim that leads; then `bindings`, for what does not run with others.

    Raises:
        CosetError: as `bindings`.
    """
    found = bindings(program, given)
    first = next(found)
    free = free_dims(program, program.symbols(), {**sampled_sizes(program), **given})
    apart = {**first, **{name: first[name] + APART * place for place, name in enumerate(free)}}
    apart |= {name: ROWS for name in _leading(program) if name in free}
    if apart != first and sum(drawn_bytes(program, apart).values()) <= most_drawn():
        yield apart
    yield first
    yield from found


def batches(program: Program) -> set[str]:
    """The dims that are called as those of a batch are, and lead the others of an input."""
    return {name for name in _first_dims(program.inputs) if name in BATCH_NAMES}


def _leading(program: Program) -> set[str]:
    """The dims that lead in every input and every output that has them: of a batch, whatever they are called, or of time."""
    ends = (*program.inputs, *program.roots)
    behind = {name for term in ends for type in tensors_in(term.type) for dim in (type.shape or ())[1:] for name in dims.symbols(dim)}
    return _first_dims(ends) - behind


def _first_dims(terms: Iterable[Term]) -> set[str]:
    """The dims that stand alone in front of others in the types of terms."""
    shapes = (type.shape for term in terms for type in tensors_in(term.type))
    return {name for shape in shapes if shape is not None and len(shape) > 1 and (name := dims.alone(shape[0])) is not None}


def free_dims(program: Program, names: Iterable[str], given: Mapping[str, int]) -> list[str]:
    """The dims among `names` that are neither given nor of a batch."""
    of_batches = batches(program)
    return [name for name in names if name not in given and name not in of_batches and name != RANK]


def refuse_vast(program: Program, binding: Mapping[str, int]) -> None:
    """Check that there is memory for drawing the inputs.

    Raises:
        CosetError: they take more of it than there may be.
    """
    bytes = drawn_bytes(program, binding)
    if sum(bytes.values()) > most_drawn():
        name = max(bytes, key=lambda each: bytes[each])
        raise CosetError(
            f"drawing inputs to compare with takes {sum(bytes.values()):,} bytes, {bytes[name]:,} of them for input `{name}`",
            help="check the dims that the model declares, and give smaller numbers to free ones (--dim NAME=N)",
        )


def drawn_bytes(program: Program, binding: Mapping[str, int]) -> dict[str, int]:
    """What drawing each input takes."""
    shapes = {term.attribute("name"): type.shape for term in program.inputs for type in tensors_in(term.type) if type.shape is not None}
    return {name: DRAWN_BYTES * prod(dims.evaluate(dim, binding) for dim in shape) for name, shape in shapes.items()}


def most_drawn() -> int:
    """Bytes that inputs may take: a share of the machine's memory, since the programs that run on them need some too."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // SHARE
