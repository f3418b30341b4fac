"""Inputs to compare two programs on: drawn and adversarial values for every input."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coset.comparing.drawing import (
    ENDS,
    FEW,
    INFINITE,
    MIXED,
    draw_integers,
    draw_values,
    map_values,
    span_of,
    spread,
)
from coset.comparing.loose_inputs import LENGTH, entries_of, keys_for, parts_of
from coset.comparing.noise import weight_bytes
from coset.comparing.roles import fitted, roles_of
from coset.comparing.sizes import DIM_CANDIDATES, DRAWN_BYTES, ROWS, batches, drawn_bytes, free_dims, refuse_vast
from coset.comparing.tables import known_tables
from coset.comparing.whole_numbers import plain_integers
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.program_source import source_of

Feed = dict[str, Any]  # arrays by the names of inputs, lists of arrays for sequences, dictionaries for maps
Sample = str | Path | Mapping[str, Any]
"""Inputs that a user knows: the path of a file or a folder of arrays (`coset/comparing/samples.py`), or arrays by the names of inputs."""
OTHER_SIZES, SAMPLE = "normal, of other sizes", "sample"  # names of cases, beside those of `drawing.py`
LIGHT, MOST_TURNS = 1 << 16, 12  # bytes of weights, cases
LIGHT_INPUTS = 1 << 20  # bytes of drawn inputs


@dataclass(frozen=True)
class Case:
    """One set of inputs and what is special about it (sample 1, normal, negative, zeros, huge, nan, infinite, ends, mixed, wide)."""

    name: str
    feed: Feed


Draw = Callable[[Program, Mapping[str, int], int], Iterator[Case]]
"""Inputs of a program under numbers for its dims, by a seed; samples come first, and then a case named `normal` where there is one."""


def with_other_sizes(draw: Draw, given: Mapping[str, int]) -> Draw:
    """What `draw` makes, and its normal inputs again with the numbers of the dims that are not `given` the other way round, where these
    differ, and with another number of samples, as many as take no time: what holds of one order of sizes only, or of one sample, is no
    program."""

    def with_others(program: Program, binding: Mapping[str, int], seed: int) -> Iterator[Case]:
        yield from draw(program, binding, seed)
        free = free_dims(program, binding, given)
        turned = {**binding, **{name: binding[other] for name, other in zip(free, reversed(free), strict=True)}}
        if sum(drawn_bytes(program, binding).values()) <= LIGHT_INPUTS:
            turned |= {name: ROWS for name in batches(program) if name in binding and name not in given}
        if len(free) == 1 and binding[free[0]] == ROWS:
            row = sum(drawn_bytes(program, {**binding, free[0]: 1}).values())
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
    samples = [] if seed else [feed for feed in source_of(program).samples if feed.keys() >= names_of(program)]
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
    tables, plain, roles = known_tables(program, binding), plain_integers(program), roles_of(program, computed=bool(seed))
    refuse_vast(program, binding)
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
                feed[called] = dict(zip(keys, map_values(rng, name, entries.dtype, len(keys)), strict=True))
                continue
            if parts is None:
                raise CosetError(
                    f"input `{called}` is {term.type}, of which nothing is drawn", help="give inputs with --sample-inputs FILE.npz"
                )
            dtype, shape = parts.dtype, parts.shape
            floats = floats or dtype.kind in ("float", "complex")
            span = span_of(dtype, tables.get(called, ())) if name == "wide" and not parts.sequence else None
            wider = wider or span is not None
            if span is not None:
                feed[called] = whole[called] = spread(span, dtype, shape, seed)
            elif called in plain:
                feed[called] = draw_integers(rng, name, dtype, shape)
            elif parts.sequence:
                feed[called] = [draw_values(rng, name, dtype, shape) for _ in range(LENGTH)]
            else:
                feed[called] = draw_values(rng, name, dtype, shape)
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
    bytes = drawn_bytes(program, binding)
    few = max(bytes.values(), default=0) <= FEW * DRAWN_BYTES and weight_bytes(program) <= LIGHT
    return min(MOST_TURNS, 2 * FEW * DRAWN_BYTES // max(1, min(bytes.values()))) if few and bytes else 1
