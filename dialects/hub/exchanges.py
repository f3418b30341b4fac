"""Meanings of the hub's ops between processes: from the operands of every process to the results of every process.

Which processes form a group is said by the StableHLO specification (https://openxla.org/stablehlo/spec#collective-ops): ids are
those of replicas, of partitions, or of processes, depending on the channel and on `use_global_device_ids`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from coset.dialects.hub.payloads import WORDS, Payload, accumulator
from coset.dialects.hub.quantized import zeros
from coset.dialects.hub.scalars import narrow
from coset.ir.errors import CosetError
from coset.ir.evaluate import Fallback
from coset.ir.op import Array, Joint, Meaning
from coset.ir.types import dtype_of

if TYPE_CHECKING:
    from coset.ir.term import Term

Grid = tuple[int, int]  # replicas, partitions
Rows = Sequence[Sequence[int]]
Group = list[int]  # process numbers
Values = list[Array]  # the operands, or the results, of one process


# ---------------------------------------------------------------- who talks to whom


def _numbers(term: Term, what: str, rows: Rows, count: int) -> Rows:
    """The rows without the -1 that fill them; every id is that of one of `count`."""
    for number in (number for row in rows for number in row if number >= count):
        raise CosetError(
            f"`{term.op.name}` needs other processes: it names {what} {number}, but the program runs on {count}",
            help="coset.ir.evaluate_parallel runs a program on several processes",
        )
    return [[number for number in row if number != -1] for row in rows]


def _across_replicas(term: Term, rows: Rows, grid: Grid) -> list[Group]:
    replicas, partitions = grid
    named = _numbers(term, "replica", rows, replicas)
    return [[replica * partitions + partition for replica in row] for row in named for partition in range(partitions)]


def _across_partitions(term: Term, rows: Rows, grid: Grid) -> list[Group]:
    replicas, partitions = grid
    named = _numbers(term, "partition", rows, partitions)
    return [[replica * partitions + partition for partition in row] for row in named for replica in range(replicas)]


def _across_both(term: Term, rows: Rows, grid: Grid) -> list[Group]:
    replicas, partitions = grid
    named = _numbers(term, "replica", rows, replicas)
    return [[replica * partitions + partition for partition in range(partitions) for replica in row] for row in named]


def _flat(term: Term, rows: Rows, grid: Grid) -> list[Group]:
    return [list(row) for row in _numbers(term, "process", rows, grid[0] * grid[1])]


def _reducing_groups(term: Term, grid: Grid) -> list[Group]:
    """Of ops that gather or combine: all partitions take part where there is a channel."""
    spread = _across_both if term.attribute("channel_id") > 0 else _across_replicas
    return (_flat if term.attribute("use_global_device_ids") else spread)(term, term.attribute("replica_groups"), grid)


def _moving_groups(term: Term, grid: Grid, key: str = "replica_groups") -> list[Group]:
    """Of ops that pass values on: a channel is between partitions."""
    return (_across_partitions if term.attribute("channel_id") > 0 else _across_replicas)(term, term.attribute(key), grid)


def _each_in_a_group(term: Term, groups: list[Group], grid: Grid) -> None:
    left = set(range(grid[0] * grid[1])) - {process for group in groups for process in group}
    if left:
        raise CosetError(f"`{term.op.name}` leaves process {min(left)} out, which has no value then", help="name it in `replica_groups`")


# ---------------------------------------------------------------- what they do


Exchange = Callable[["Term", list[Values], Grid, Fallback | None], list[Values]]


def joint(exchange: Exchange) -> Joint:
    """The joint meaning: each process's value is one array, or a tuple of them."""

    def meaning(term: Term, operands: list[Values], grid: Grid, fallback: Fallback | None = None) -> list[Any]:
        if any([x.shape for x in values] != [x.shape for x in operands[0]] for values in operands[1:]):
            raise CosetError(f"processes give `{term.op.name}` operands of different shapes", help="it takes equal ones")
        return [values[0] if len(values) == 1 else tuple(values) for values in exchange(term, operands, grid, fallback)]

    return meaning


def alone(meaning: Joint) -> Meaning:
    """The meaning on the only process there is."""
    return lambda term, arrays, _, fallback=None: meaning(term, [list(arrays)], (1, 1), fallback)[0]


def _of_groups(groups: Callable[[Term, Grid], list[Group]], within: Callable[..., list[Values]]) -> Exchange:
    """`within(term, the operands of the processes of a group, fallback)` gives their results, for each group."""

    def exchange(term: Term, operands: list[Values], grid: Grid, fallback: Fallback | None) -> list[Values]:
        found = groups(term, grid)
        _each_in_a_group(term, found, grid)
        results: dict[int, Values] = {}
        for group in found:
            size = dict(term.attributes).get("group_size", len(group))
            if len(group) != size:
                raise CosetError(f"the type of `{term.op.name}` is that of groups of {size} processes, but one has {len(group)}")
            results.update(zip(group, within(term, [operands[process] for process in group], fallback), strict=True))
        return [results[process] for process in range(len(operands))]

    return exchange


def _gathered(term: Term, given: list[Values], _: Fallback | None) -> list[Values]:
    joined = [np.concatenate(parts, term.attribute("all_gather_dim")) for parts in zip(*given, strict=True)]
    return [joined] * len(given)


def _combined(term: Term, given: list[Values], fallback: Fallback | None) -> list[Values]:
    """Folded in the order of the group; sums and products of floats in f64, rounded once."""
    totals = [_folded(term, list(values), fallback) for values in zip(*given, strict=True)]
    return [totals] * len(given)


def _folded(term: Term, values: list[Array], fallback: Fallback | None) -> Array:
    word = term.attribute("combiner")
    if word == "region":
        body, total = Payload(term.regions[0], {}, fallback), values[0]
        for value in values[1:]:
            (total,) = body(total, value)
        return total
    total = accumulator(values[0], word)
    with np.errstate(all="ignore"):
        for value in values[1:]:
            total = np.asarray(WORDS[word](total, accumulator(value, word)))
        return narrow(total, dtype_of(values[0].dtype))


def _scattered(term: Term, given: list[Values], fallback: Fallback | None) -> list[Values]:
    ((total,), *_) = _combined(term, given, fallback)
    return [[part] for part in _split(term, total, len(given), term.attribute("scatter_dimension"))]


def _split(term: Term, x: Array, count: int, axis: int) -> list[Array]:
    if x.shape[axis] % count:
        raise CosetError(f"`{term.op.name}` splits dim {axis} of {list(x.shape)} into {count}, which do not divide it")
    return np.split(x, count, axis)


def _exchanged(term: Term, given: list[Values], _: Fallback | None) -> list[Values]:
    count, split, joined = (term.attribute(key) for key in ("split_count", "split_dimension", "concat_dimension"))
    if len(given) != count:
        raise CosetError(f"`{term.op.name}` splits into {count}, but a group has {len(given)} processes")
    parts = [[_split(term, value, count, split) for value in values] for values in given]
    return [[np.concatenate([sent[i][receiver] for sent in parts], joined) for i in range(len(given[0]))] for receiver in range(count)]


def _passed(term: Term, operands: list[Values], pairs: list[Group]) -> list[Values]:
    """(source, target) pairs of processes; zeros where nothing comes."""
    sources = {target: source for source, target in pairs}
    types = [operand.tensor.dtype for operand in term.operands]

    def empty(process: int) -> Values:
        return [zeros(dtype, value.shape) for dtype, value in zip(types, operands[process], strict=True)]

    return [list(operands[sources[process]]) if process in sources else empty(process) for process in range(len(operands))]


def _broadcast(term: Term, operands: list[Values], grid: Grid, _: Fallback | None) -> list[Values]:
    return _passed(term, operands, [[group[0], process] for group in _moving_groups(term, grid) for process in group])


def _permuted(term: Term, operands: list[Values], grid: Grid, _: Fallback | None) -> list[Values]:
    return _passed(term, operands, _moving_groups(term, grid, "source_target_pairs"))


def _process_number(which: int, _: Term, operands: list[Values], grid: Grid, __: Fallback | None) -> list[Values]:
    return [[np.array(divmod(process, grid[1])[which], np.uint32)] for process in range(len(operands))]


all_gather = joint(_of_groups(_reducing_groups, _gathered))
all_reduce = joint(_of_groups(_reducing_groups, _combined))
reduce_scatter = joint(_of_groups(_reducing_groups, _scattered))
all_to_all = joint(_of_groups(_moving_groups, _exchanged))
collective_broadcast = joint(_broadcast)
collective_permute = joint(_permuted)
replica_id = joint(partial(_process_number, 0))
partition_id = joint(partial(_process_number, 1))
