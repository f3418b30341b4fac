"""What `gpu` measures of kernels whose reads or order depend on data: scattered sums, sorts, first elements, grouped products, each as the
package that `coset lower` writes (a library's part of it included), beside torch's own.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from benchmarks.gpu_clock import captured, measure, synchronize
from benchmarks.gpu_kernels import ERROR_GOAL, seconds, shown
from benchmarks.gpu_programs import Case
from coset.backends.torch_clock import loaded
from coset.comparing.timing import Protocol, ratio
from coset.dialects.hub.terms import splat
from coset.ir.program import Program
from coset.ir.term import Term, get, input_term, make
from coset.ir.types import DTYPES, I64, TensorType
from coset.lowering.package.plan import planned_package
from coset.lowering.package.program import write_package
from coset.lowering.planning.plan import plan
from coset.lowering.triton.source import can_emit
from coset.targets.target import get_target

Row = dict[str, Any]
GOAL = 1.0  # as fast as torch's
IRREGULAR = (
    Case("scatter_add", "f32", (50257, 8192, 768)),  # a vocabulary, tokens, a width: the gradient of an embedding
    Case("scatter_add", "f32", (256, 200000, 128)),  # segments of many
    Case("scatter_add", "f32", (100000, 100000, 64)),  # messages between nodes
    Case("top_k", "f32", (8192, 128, 8)),  # a router
    Case("top_k", "f32", (64, 4096, 50)),
    Case("sort", "f32", (4096, 1024)),
    Case("sort", "f32", (512, 4096)),
    Case("grouped_product", "bf16", (8192, 8, 4096, 14336)),
    Case("grouped_product", "bf16", (8192, 64, 2048, 1408)),
    Case("grouped_product", "bf16", (64, 8, 4096, 14336)),
    Case("tables", "f32", (8192, 26, 20000, 64)),  # a recommender's features
)
TINY_IRREGULAR = (
    Case("scatter_add", "f32", (9, 40, 6)),
    Case("top_k", "f32", (5, 16, 3)),
    Case("sort", "f32", (3, 20)),
    Case("grouped_product", "bf16", (20, 3, 16, 24)),
    Case("tables", "f32", (5, 6, 7, 16)),
)


@dataclass(frozen=True)
class Task:
    """A program, its inputs, and torch's own way to its results."""

    program: Program
    inputs: tuple[torch.Tensor, ...]
    own: Callable[[], object]
    ways: str  # what torch's own is
    compared: int = 2  # so many results: places of equal elements are not, as torch's topk takes any


def irregular(device: str, target: str, protocol: Protocol, *, tiny: bool) -> Iterator[Row]:
    """One row for each case: `share_of_torch` is torch's time over ours."""
    for case in TINY_IRREGULAR if tiny else IRREGULAR:
        task = TASKS[case.name](case, device)
        found = plan(task.program, get_target(target), computes=can_emit)
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place) / "ours"
            write_package(planned_package(task.program, found, title=case.title), folder)
            model = loaded(folder).to(device)
            results = _tensors(model(*task.inputs))
            synchronize(device)
            expected = _tensors(task.own())
            error = max(_distance(a, b) for a, b in zip(results[: task.compared], expected[: task.compared], strict=True))
            programs = {
                "ours": captured(lambda: model(*task.inputs), device),  # noqa: B023  (done in this round)
                "torch": captured(task.own, device),
            }
            times = measure(programs, protocol, device)
        yield {
            "case": case.title, "kernels": len(found.kernels), "beside": task.ways, **seconds(times),
            "share_of_torch": shown(ratio(times["torch"], times["ours"])), "goal": GOAL,
            "error": error, "right": error <= ERROR_GOAL[case.dtype],
        }  # fmt: skip


def _tensors(found: object) -> list[torch.Tensor]:
    return [each for each in (found if isinstance(found, tuple | list) else (found,)) if isinstance(each, torch.Tensor)]


def _distance(found: torch.Tensor, expected: torch.Tensor) -> float:
    """By norms; of places, which are the same or not, infinity where they differ."""
    if not expected.is_floating_point():
        return 0.0 if torch.equal(found.to(expected.dtype), expected) else float("inf")
    whole = float(expected.double().norm())
    off = float((found.double() - expected.double()).norm())
    return off / whole if whole and off == off else off if off == off else float("inf")


def _x(name: str, dtype: str, *shape: int) -> Term:
    return input_term(name, TensorType(DTYPES[dtype], shape))


def _drawn(device: str, dtype: str, *shape: int) -> torch.Tensor:
    draw = torch.Generator(device=device).manual_seed(len(shape) + shape[0])
    kinds = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
    return torch.randn(shape, generator=draw, device=device).to(kinds[dtype])


def scatter_add(case: Case, device: str) -> Task:
    """Rows that are added to those of zeros that indices name."""
    rows, count, columns = case.sizes
    at, updates = _x("at", "i64", count), _x("updates", case.dtype, count, columns)
    attributes = {
        "update_window_dims": (1,), "inserted_window_dims": (0,), "input_batching_dims": (), "scatter_indices_batching_dims": (),
        "scatter_dims_to_operand_dims": (0,), "index_vector_dim": 1, "combiner": "add",
    }  # fmt: skip
    zeros = splat(0, DTYPES[case.dtype], (rows, columns))
    program = Program((at, updates), (("y", make("stablehlo.scatter", (zeros, at, updates), attributes)),))
    draw = torch.Generator(device=device).manual_seed(3)
    places, values = torch.randint(0, rows, (count,), generator=draw, device=device), _drawn(device, case.dtype, count, columns)
    into = torch.zeros(rows, columns, dtype=values.dtype, device=device)
    return Task(program, (places, values), lambda: into.index_add(0, places, values), "index_add")


def top_k(case: Case, device: str) -> Task:
    """The largest elements of rows with their places."""
    rows, length, count = case.sizes
    x = _x("x", case.dtype, rows, length)
    both = make("onnx.TopK", (x,), {"k": count, "axis": 1, "largest": 1})
    values = _drawn(device, case.dtype, rows, length)
    return Task(Program((x,), (("y", get(both, 0)), ("i", get(both, 1)))), (values,), lambda: tuple(torch.topk(values, count)), "topk", 1)


def sort(case: Case, device: str) -> Task:
    """Rows in order with the places that their elements came from."""
    rows, length = case.sizes
    x = _x("x", case.dtype, rows, length)
    at = make("stablehlo.iota", (), {"shape": (rows, length), "dtype": I64, "dimension": 1})
    both = make("stablehlo.sort", (x, at), {"dimension": 1, "is_stable": True, "direction": "LT"})
    values = _drawn(device, case.dtype, rows, length)
    return Task(Program((x,), (("y", get(both, 0)), ("i", get(both, 1)))), (values,), lambda: tuple(values.sort(stable=True)), "sort")


def grouped_product(case: Case, device: str) -> Task:
    """Rows in the order of their groups times the matrix of their group; torch's own is a product for each group, whose rows it knows."""
    rows, groups, depth, columns = case.sizes
    x, w, group = _x("x", case.dtype, rows, depth), _x("w", case.dtype, groups, depth, columns), _x("group", "i64", rows)
    program = Program((x, w, group), (("y", make("kernel.grouped_product", (x, w, group), {"ascending": True})),))
    draw = torch.Generator(device=device).manual_seed(5)
    of_rows = torch.randint(0, groups, (rows,), generator=draw, device=device).sort().values
    a, b = _drawn(device, case.dtype, rows, depth), _drawn(device, case.dtype, groups, depth, columns)
    ends = torch.bincount(of_rows, minlength=groups).cumsum(0)
    if device == "cuda" and case.dtype == "bf16" and hasattr(torch, "_grouped_mm"):
        offsets = ends.int()
        return Task(program, (a, b, of_rows), lambda: torch._grouped_mm(a, b, offs=offsets), "_grouped_mm")
    bounds = [0, *ends.tolist()]

    def each() -> torch.Tensor:
        return torch.cat([a[start:end] @ b[place] for place, (start, end) in enumerate(pairwise(bounds))])

    return Task(program, (a, b, of_rows), each, "a loop of mm")


def tables(case: Case, device: str) -> Task:
    """Rows of many tables side by side; torch's own is an embedding for each table."""
    rows, count, length, columns = case.sizes
    weights, at = [_x(f"w{place}", case.dtype, length, columns) for place in range(count)], _x("at", "i64", count, rows, 1)
    attributes = {
        "offset_dims": (1,), "collapsed_slice_dims": (0,), "operand_batching_dims": (), "start_indices_batching_dims": (),
        "start_index_map": (0,), "index_vector_dim": 1, "slice_sizes": (1, columns), "indices_are_sorted": False,
    }  # fmt: skip
    found = []
    for place, weight in enumerate(weights):
        ends = {"start": (place, 0, 0), "limit": (place + 1, rows, 1), "strides": (1, 1, 1)}
        own = make("stablehlo.reshape", (make("stablehlo.slice", (at,), ends),), {"shape": (rows, 1)})
        found.append(make("stablehlo.gather", (weight, own), attributes))
    program = Program((*weights, at), (("y", make("stablehlo.concatenate", tuple(found), {"dimension": 1})),))
    draw = torch.Generator(device=device).manual_seed(7)
    values = [_drawn(device, case.dtype, length, columns) for _ in weights]
    places = torch.randint(0, length, (count, rows, 1), generator=draw, device=device)
    each = [places[place, :, 0] for place in range(count)]

    def own_way() -> torch.Tensor:
        return torch.cat([torch.nn.functional.embedding(at, table) for at, table in zip(each, values, strict=True)], 1)

    return Task(program, (*values, places), own_way, "an embedding for each, and cat")


TASKS: dict[str, Callable[[Case, str], Task]] = {each.__name__: each for each in (scatter_add, top_k, sort, grouped_product, tables)}
