"""Inputs to compare two programs on: drawn and adversarial values for every input, and numbers for the dim symbols."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from coset.comparing.loose_inputs import LENGTH, RANK, RANKS, entries_of, has_unknown_rank, keys_for, parts_of
from coset.comparing.noise import weight_bytes
from coset.comparing.roles import fitted, roles_of
from coset.comparing.whole_numbers import plain_integers
from coset.ir import dims
from coset.ir.dims import Dim
from coset.ir.errors import CosetError
from coset.ir.evaluate import describe
from coset.ir.program import Program, tensors_in
from coset.ir.term import INPUT, Term
from coset.ir.types import DType, TensorType

Feed = dict[str, Any]  # arrays by the names of inputs, lists of arrays for sequences, dictionaries for maps
Sample = str | Path | Mapping[str, Any]
"""Inputs that a user knows: the path of a file or a folder of arrays (`coset/comparing/samples.py`), or arrays by the names of inputs."""
# what a free dim may be when the user does not say: the first one that the original program runs with is taken
DIM_CANDIDATES = (32, 64, 16, 224, 128, 1, 2, 8, 320, 4)
FITTING = (224, 32)  # ... beside one that is a size of the program's own
OWN, MOST_OWN = 6, 1024  # how many of these are tried, and the largest
LONG = (1024, 16_000)  # what has no result for less: frames of sound, a second of it
MOST_LONG = 1 << 24  # elements of the inputs with these
MOST_ROWS = 1 << 24  # of a table whose rows are all looked up
DRAWN_BYTES = 8  # for each element: numbers are drawn as f64
SHARE = 4  # of the machine's memory inputs may take one in so many
APART = 8  # between the numbers of two dims that are to differ
INFINITE, ENDS, MIXED, OTHER_SIZES, SAMPLE = "infinite", "ends", "mixed", "normal, of other sizes", "sample"  # names of cases
ONES, HALVES = np.array([0.0, -0.0, 1.0, -1.0]), np.array([0.0, -0.0, *(sign * half / 2 for half in range(1, 5) for sign in (1, -1))])
UNUSUAL = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 0.5])
FEW, LIGHT, MOST_TURNS = 64, 1 << 16, 12  # elements of inputs, bytes of weights, cases
LIGHT_INPUTS = 1 << 20  # bytes of drawn inputs
SMALL = 9  # the largest of small integers
SAMPLES = "samples"  # of a program's source: inputs that its user gave (`coset/comparing/samples.py`)
ROWS = 2  # of a batch: what mixes them shows, and more take longer
BATCH_NAMES = ("batch", "b", "n", "batch_size", "N", "B")


@dataclass(frozen=True)
class Case:
    """One set of inputs and what is special about it (sample 1, normal, negative, zeros, huge, nan, infinite, ends, mixed, wide)."""

    name: str
    feed: Feed


Draw = Callable[[Program, Mapping[str, int], int], Iterator[Case]]
"""Inputs of a program under numbers for its dims, by a seed; samples come first, and then a case named `normal` where there is one."""


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

    batches = _batches(program)

    def sizes(candidate: int) -> dict[str, int]:
        return {**given, **{name: 1 if name in batches else candidate for name in free}}

    small = [found for found in map(sizes, DIM_CANDIDATES) if sum(_drawn_bytes(program, found).values()) <= _most_drawn()]
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
    feeds: Sequence[Feed] = program.source.get(SAMPLES, ())
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
    free = _free(program, program.symbols(), {**sampled_sizes(program), **given})
    apart = {**first, **{name: first[name] + APART * place for place, name in enumerate(free)}}
    apart |= {name: ROWS for name in _leading(program) if name in free}
    if apart != first and sum(_drawn_bytes(program, apart).values()) <= _most_drawn():
        yield apart
    yield first
    yield from found


def _batches(program: Program) -> set[str]:
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


def _free(program: Program, names: Iterable[str], given: Mapping[str, int]) -> list[str]:
    """The dims among `names` that are neither given nor of a batch."""
    batches = _batches(program)
    return [name for name in names if name not in given and name not in batches and name != RANK]


def with_other_sizes(draw: Draw, given: Mapping[str, int]) -> Draw:
    """What `draw` makes, and its normal inputs again with the numbers of the dims that are not `given` the other way round, where these
    differ, and with another number of samples, as many as take no time: what holds of one order of sizes only, or of one sample, is no
    program."""

    def with_others(program: Program, binding: Mapping[str, int], seed: int) -> Iterator[Case]:
        yield from draw(program, binding, seed)
        free = _free(program, binding, given)
        turned = {**binding, **{name: binding[other] for name, other in zip(free, reversed(free), strict=True)}}
        if sum(_drawn_bytes(program, binding).values()) <= LIGHT_INPUTS:
            turned |= {name: ROWS for name in _batches(program) if name in binding and name not in given}
        if len(free) == 1 and binding[free[0]] == ROWS:
            row = sum(_drawn_bytes(program, {**binding, free[0]: 1}).values())
            turned[free[0]] = max(ROWS + 1, min(DIM_CANDIDATES[0], LIGHT_INPUTS // max(1, row)))
        if turned == dict(binding):
            return
        try:
            first = next((case for case in draw(program, turned, seed) if not case.name.startswith(SAMPLE)), None)
        except CosetError:  # they are too many numbers then
            return
        if first is not None:
            yield Case(OTHER_SIZES, first.feed)

    return with_others


def cases(program: Program, binding: Mapping[str, int], seed: int = 0, *, ends: bool = False) -> Iterator[Case]:
    """The samples of the user's, where there are some, and `drawn` inputs, of which there may be none then.

    Raises:
        CosetError: there are no samples, and the inputs are too large or of a type of which nothing is drawn.
    """
    samples = [] if seed else [feed for feed in program.source.get(SAMPLES, ()) if feed.keys() >= names_of(program)]
    yield from (Case(f"{SAMPLE} {number}", feed) for number, feed in enumerate(samples, 1))
    try:
        yield from drawn(program, binding, seed, ends=ends)
    except CosetError:
        if not samples:
            raise


def names_of(program: Program) -> set[str]:
    """What its inputs are called."""
    return {str(term.attribute("name")) for term in program.inputs}


def drawn(program: Program, binding: Mapping[str, int], seed: int = 0, *, ends: bool = False) -> Iterator[Case]:
    """Inputs of growing nastiness, with `ends` also floats at the ends of their types, and those mixed with infinities, NaN and zeros.
    Integers that a node reads as axes, sizes, places, counts or divisors are such (`roles.py`); others that are read as anything but
    numbers are 0 and 1, so that what is an index into a table stays in it. Where the tables are seen, all of their rows are read in the
    cases `wide` of so many seeds, which have all integers of 8 bits too. Other seeds draw no 0 for what divisors are computed from."""
    tables, plain, roles = _tables(program, binding), plain_integers(program), roles_of(program, computed=bool(seed))
    _refuse_vast(program, binding)
    again = [f"second {number}" for number in range(2, _turns(program, binding) + 1)]
    for called_so in ("normal", "second", *again, "negative", "zeros", "huge", "nan", INFINITE, *((ENDS, MIXED) if ends else ()), "wide"):
        rng, name = np.random.default_rng([seed, *called_so.encode()]), called_so.partition(" ")[0]
        feed: Feed = {}
        whole: Feed = {}  # inputs of which all rows, or all numbers, are drawn
        floats = wider = False
        for term in program.inputs:
            called, parts, entries = term.attribute("name"), parts_of(term.type, binding), entries_of(term.type)
            if entries is not None:
                keys = keys_for(program, called, entries, rng)
                floats = floats or entries.dtype.kind == "float"
                feed[called] = dict(zip(keys, _map_values(rng, name, entries.dtype, len(keys)), strict=True))
                continue
            if parts is None:
                raise CosetError(
                    f"input `{called}` is {term.type}, of which nothing is drawn", help="give inputs with --sample-inputs FILE.npz"
                )
            dtype, shape = parts.dtype, parts.shape
            floats = floats or dtype.kind in ("float", "complex")
            span = _span(dtype, tables.get(called, ())) if name == "wide" and not parts.sequence else None
            wider = wider or span is not None
            if span is not None:
                feed[called] = whole[called] = _spread(span, dtype, shape, seed)
            elif called in plain:
                feed[called] = _number(rng, name, dtype, shape)
            elif parts.sequence:
                feed[called] = [_draw(rng, name, dtype, shape) for _ in range(LENGTH)]
            else:
                feed[called] = _draw(rng, name, dtype, shape)
        special = floats or (plain and name in ("negative", "huge"))
        if wider or name in ("normal", "second", "zeros") or (special and name != "wide"):
            yield Case(called_so, {**fitted(roles, binding, feed, rng), **whole})


def cases_of_bits(program: Program, binding: Mapping[str, int], seed: int = 0) -> Iterator[Case]:
    """`cases` where every bit counts: with the ends of the types. What happens there is a matter of range otherwise, which rules may leave
    (docs/numerics.md, C)."""
    return cases(program, binding, seed, ends=True)


def _turns(program: Program, binding: Mapping[str, int]) -> int:
    """How many cases of whole and half numbers there are: several where inputs have few elements, so that numbers of several inputs come
    together, and running the program takes no time."""
    bytes = _drawn_bytes(program, binding)
    few = max(bytes.values(), default=0) <= FEW * DRAWN_BYTES and weight_bytes(program) <= LIGHT
    return min(MOST_TURNS, 2 * FEW * DRAWN_BYTES // max(1, min(bytes.values()))) if few and bytes else 1


def _refuse_vast(program: Program, binding: Mapping[str, int]) -> None:
    """Check that there is memory for drawing the inputs.

    Raises:
        CosetError: they take more of it than there may be.
    """
    bytes = _drawn_bytes(program, binding)
    if sum(bytes.values()) > _most_drawn():
        name = max(bytes, key=lambda each: bytes[each])
        raise CosetError(
            f"drawing inputs to compare with takes {sum(bytes.values()):,} bytes, {bytes[name]:,} of them for input `{name}`",
            help="check the dims that the model declares, and give smaller numbers to free ones (--dim NAME=N)",
        )


def _drawn_bytes(program: Program, binding: Mapping[str, int]) -> dict[str, int]:
    """What drawing each input takes."""
    shapes = {term.attribute("name"): type.shape for term in program.inputs for type in tensors_in(term.type) if type.shape is not None}
    return {name: DRAWN_BYTES * prod(dims.evaluate(dim, binding) for dim in shape) for name, shape in shapes.items()}


def _most_drawn() -> int:
    """Bytes that inputs may take: a share of the machine's memory, since the programs that run on them need some too."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // SHARE


def seeds_for(program: Program, binding: Mapping[str, int]) -> int:
    """How many seeds read all rows of the tables that are seen."""
    tables, inputs = _tables(program, binding), {term.attribute("name"): term for term in program.inputs}
    counts = {name: prod(dims.evaluate(dim, binding) for dim in inputs[name].tensor.dims) for name in tables}
    return max((-(-min(rows) // max(counts[name], 1)) for name, rows in tables.items() if rows), default=0)


def _tables(program: Program, binding: Mapping[str, int]) -> dict[str, list[int]]:
    """The sizes of `tables_of` that are known."""
    found = tables_of(program).items()
    return {name: [dims.evaluate(rows, binding) for rows in each if dims.symbols(rows) <= binding.keys()] for name, each in found}


def tables_of(program: Program) -> dict[str, list[Dim]]:
    """For each input of integers the sizes of the axes that its elements are seen to be positions on."""
    found: dict[str, list[Dim]] = {}
    origins: dict[Term, set[str]] = {}  # the inputs that an index is made of, element by element
    for term in program.terms():
        if not isinstance(term.type, TensorType):
            continue
        index = term.operands[1] if describe(term).split(".")[-1].lower() == "gather" else None
        for name in origins.get(index, ()) if index is not None else ():
            found.setdefault(name, []).extend(_axes(term))
        if term.type.dtype.kind not in ("int", "uint"):
            continue
        if term.op is INPUT:
            origins[term] = {term.attribute("name")}
        elif term.op.has("elementwise") or term.op.has("movement"):
            origins[term] = set().union(*(origins.get(operand, set()) for operand in term.operands))
    return found


def _axes(gather: Term) -> list[Dim]:
    """The sizes of the axes that a gather's indices point into."""
    table = gather.operands[0].tensor.dims
    attributes = dict(gather.attributes)
    if "start_index_map" in attributes:
        return [table[axis] for axis in attributes["start_index_map"]]
    return [table[dict(attributes.get("given", ()), **attributes).get("axis", 0)]]


def _span(dtype: DType, tables: Sequence[int]) -> tuple[int, int] | None:
    """From where to where integers reach that are more than small ones: to the end of the smallest table, or all of 8 bits."""
    if dtype.kind not in ("int", "uint"):
        return None
    if tables:
        return 0, max(min(tables), 1)
    whole = np.iinfo(dtype.numpy) if dtype.numpy.kind in "iu" and dtype.numpy.itemsize == 1 else None
    return None if whole is None else (int(whole.min), int(whole.max) + 1)


def _spread(span: tuple[int, int], dtype: DType, shape: Sequence[int], seed: int) -> np.ndarray[Any, Any]:
    """Numbers of the span in a drawn order, each once before one comes again; the next seed goes on where this one stops."""
    count = prod(shape)
    low, high = span
    if high - low > MOST_ROWS:  # then some of the rows, drawn
        return np.random.default_rng([seed, high]).integers(low, high, shape).astype(dtype.numpy)
    order = np.random.default_rng(high).permutation(np.arange(low, high))
    return order[(seed * count + np.arange(count)) % len(order)].reshape(shape).astype(dtype.numpy)


def _number(rng: np.random.Generator, case: str, dtype: DType, shape: Sequence[int]) -> np.ndarray[Any, Any]:
    """Integers that may have any value: small ones, of both signs where the type has them, or those at the ends of its range."""
    ends = ml_dtypes.iinfo(dtype.numpy)  # type: ignore[no-untyped-call]
    low, high = int(ends.min), int(ends.max)
    if case == "zeros":
        return np.zeros(shape, dtype.numpy)
    if case == "huge":
        chosen = np.array([low, low + 1, high - 1, high, high // 2, high // 3, 0, 1], object)
        return np.asarray(rng.choice(chosen, shape)).astype(dtype.numpy)
    drawn = rng.integers(-SMALL, SMALL + 1, shape)
    drawn = -np.abs(drawn) if case == "negative" else drawn
    return np.asarray(np.clip(drawn if low else np.abs(drawn), low, high)).astype(dtype.numpy)  # of one number clip makes no array


def _draw(rng: np.random.Generator, case: str, dtype: DType, shape: Sequence[int]) -> np.ndarray[Any, Any]:
    if dtype.kind == "bool":
        return np.zeros(shape, np.bool_) if case == "zeros" else rng.integers(0, 2, shape).astype(np.bool_)
    if dtype.kind in ("int", "uint"):
        return (np.zeros(shape) if case == "zeros" else rng.integers(0, 2, shape)).astype(dtype.numpy)
    if dtype.kind == "string":
        return np.full(shape, "", np.object_)
    values = rng.standard_normal(shape)
    if case == "negative":
        values = -np.abs(values)
    elif case == "second":
        # few numbers: many are equal, and zeros of both signs are among them
        values = rng.choice(ONES if values.size < FEW and rng.integers(0, 2) else HALVES, shape)
    elif case == "zeros":
        values = np.where(rng.integers(0, 2, shape) == 1, -0.0, 0.0)
    elif case == "huge":
        values = values * _huge(dtype)
    elif case in (ENDS, MIXED):
        ends = _ends(dtype)
        values = rng.choice(ends if case == ENDS else np.concatenate([ends, UNUSUAL]), shape)
    elif case == "nan" and values.size:
        values.reshape(-1)[rng.integers(values.size)] = np.nan
    elif case == INFINITE and values.size:
        for infinity in (np.inf, -np.inf)[: max(1, min(2, values.size // 2))]:
            values.reshape(-1)[rng.integers(values.size)] = infinity
    with np.errstate(over="ignore"):
        return np.asarray(values).astype(dtype.numpy)


def _map_values(rng: np.random.Generator, case: str, dtype: DType, count: int) -> list[Any]:
    """Values of a map; texts are numbers as they are written, since what reads them may make numbers of them."""
    if dtype.kind == "string":
        return [str(number) for number in (rng.integers(-SMALL, SMALL + 1, count) if case != "zeros" else np.zeros(count, int)).tolist()]
    return list(_draw(rng, case, dtype, (count,)))


def _ends(dtype: DType) -> np.ndarray[Any, Any]:
    """The largest, half of it, the smallest normal number and one, of both signs."""
    if dtype.kind != "float":
        return np.array([1e9, 1.0, 1e-9, 0.0])
    info = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]
    largest = float(info.max)
    return np.array([sign * number for number in (largest, largest / 2, float(info.tiny), 1.0) for sign in (1, -1)])


def _huge(dtype: DType) -> float:
    # the fourth root of the largest number: squares and products of two stay finite, so that only sums of many can overflow
    return float(ml_dtypes.finfo(dtype.numpy).max) ** 0.25 if dtype.kind == "float" else 1e9  # type: ignore[no-untyped-call]
