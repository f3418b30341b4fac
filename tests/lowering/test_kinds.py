"""Kinds of kernels: each says all that it has, every stage knows every kind, and a kind that is defined here passes through all stages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.triton_runtime import Runner
from coset.dialects.hub.terms import splat
from coset.ir.dims import ceildiv, product
from coset.ir.evaluate import evaluate_program
from coset.ir.op import get_op
from coset.ir.program import Program
from coset.ir.term import input_term, make
from coset.ir.types import BOOL, F32, I32, TensorType
from coset.lowering.arranging.layouts import laid_out, movable
from coset.lowering.arranging.recomputing import recomputed
from coset.lowering.kernels.kernel import (
    KINDS,
    Buffer,
    ColumnFold,
    Computed,
    Load,
    Loop,
    Plan,
    Pointwise,
    Result,
    Rows,
    Scalar,
    ScalarConstant,
    ScalarOp,
    Store,
    loops_of,
    reads,
    scalars,
    step_values,
    values_of,
    with_step_values,
    writes,
)
from coset.lowering.kernels.kernel_text import KernelText, loops_words
from coset.lowering.kernels.memory import arena
from coset.lowering.kernels.needs import needs_of
from coset.lowering.kernels.plan_text import show
from coset.lowering.kernels.renaming import renamed
from coset.lowering.package.plan import planned_package
from coset.lowering.torch.kernel import WRITERS
from coset.lowering.torch.kernel_writer import KernelWriter
from coset.lowering.triton.body import FunctionBody, function_text
from coset.lowering.triton.choice import KernelChoice
from coset.lowering.triton.kinds import TRITON_KINDS, TritonKind
from coset.lowering.triton.launch import EmitOptions, EmittedKernel, Launch
from coset.lowering.triton.program_shares import ProgramShare, moving_share
from coset.lowering.triton.rows import power_of_two
from coset.lowering.triton.scopes import TileAxis, TileScope, Value
from coset.lowering.triton.source import emit
from coset.lowering.triton.values import Space
from coset.pricing.elementwise import arithmetic_seconds
from coset.pricing.kinds import PRICES, KindPrice
from coset.pricing.machine import Machine
from coset.pricing.plan_price import PlanPrices
from coset.targets.target import get_target
from coset.tuning.drawn import drawn
from coset.tuning.tunable import tunables
from tests.lowering import plan_numpy
from tests.lowering.triton_cases import run

TARGET = get_target("nvidia-h200")
KEPT_BY_BASE = {"name", "terms", "picks"}


# ---------------------------------------------------------------- every kind


def parts_of(hint: Any) -> Iterator[type]:
    """The classes that a type is made of."""
    for inner in get_args(hint):
        yield from parts_of(inner)
    if isinstance(hint, type):
        yield hint


def holders() -> dict[str, type]:
    """Every kind, and every class that their steps have."""
    found: dict[str, type] = {kind.__name__: kind for kind in KINDS}
    for kind in KINDS:
        for hint in get_type_hints(kind).values():
            found |= {part.__name__: part for part in parts_of(hint) if hasattr(part, "value_fields")}
    return found


@pytest.mark.parametrize("name", holders())
def test_a_kind_names_all_its_scalars_loops_and_stores(name: str) -> None:
    """Else passes would not see them, and renaming would leave them as they were."""
    holder: Any = holders()[name]
    hints = get_type_hints(holder)
    parts = {field.name: set(parts_of(hints[field.name])) for field in fields(holder) if field.name not in KEPT_BY_BASE}
    valued = {each for each, found in parts.items() if any(part is Load or hasattr(part, "value_fields") for part in found)}
    assert valued == set(holder.value_fields)
    if issubclass(holder, Computed):
        assert {each for each, found in parts.items() if Store in found} == set(holder.store_fields)
        assert {each for each, found in parts.items() if Loop in found} <= set(holder.loop_fields)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_stage_knows_every_kind(kind: type[Computed]) -> None:
    for table in (WRITERS, TRITON_KINDS, PRICES, plan_numpy.RUNNING):
        assert kind in table


# ---------------------------------------------------------------- a kind that no file of the product knows


@dataclass(frozen=True)
class Tally(Computed):
    """For each index of `rows` how many of the bool `value`s along `column` are true; the stores read it as `Result("count")`, an i32."""

    loop_fields = ("rows", "column")
    value_fields = ("value",)

    rows: tuple[Loop, ...]
    column: Loop
    value: Scalar
    stores: tuple[Store, ...]

    @property
    def sum_loops(self) -> tuple[tuple[Loop, ...], ...]:
        return ((self.column,),)

    def heading(self) -> str:
        return f"for {loops_words(self.rows)} along {loops_words((self.column,))}"

    def lines(self, text: KernelText) -> list[str]:
        value = text.named(self.value)
        return [*text.flush(), f"  count: i32 = how often {value}", *text.stores(self.stores)]


def tally_in_torch(writer: KernelWriter, kernel: Tally) -> None:
    writer.begin((*kernel.rows, kernel.column))
    value = writer.matrix("value", kernel.value, (), kernel.rows, (kernel.column,), BOOL)
    writer.lines.append(f"total = {value}[0].sum(1, dtype=torch.int32).reshape({writer.ends(kernel.rows)})")
    writer.results["count"] = "total"
    writer.stores(kernel.stores, len(kernel.rows))


def tally_in_triton(kernel: Tally, plan: Plan, options: EmitOptions, comment: list[str]) -> EmittedKernel:
    """Each program has some whole rows."""
    count, length = product(loop.extent for loop in kernel.rows), kernel.column.extent
    assert isinstance(length, int)
    choice = options.choice or KernelChoice((("BLOCK_ROWS", 2), ("BLOCK_COLUMNS", power_of_two(length))))
    body, row, both = FunctionBody(plan, options, wide=False), frozenset({"row"}), frozenset({"row", "column"})
    for name in ("rows", "columns", "row_mask", "column_mask", "count", "BLOCK_ROWS", "BLOCK_COLUMNS"):
        body.name(name)
    scope = TileScope(both)
    space = Space(body, {"row": TileAxis("rows", "row_mask"), "column": TileAxis("columns", "column_mask")}, [scope], {}, kernel.picks)
    space.number(kernel.rows, "rows", row)
    space.number((kernel.column,), "columns", frozenset({"column"}))
    scope.lines += [
        "rows = tl.program_id(0) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)[:, None]",
        f"row_mask = rows < {body.text(count)}",
        "columns = tl.arange(0, BLOCK_COLUMNS)[None, :]",
        f"column_mask = columns < {length}",
    ]
    value = space.name(kernel.value, space.computed(kernel.value))
    scope.lines.append(f"count = tl.sum(tl.where(row_mask & column_mask, {value.text}, False).to(tl.int32), 1, keep_dims=True)")
    space.results["count"] = Value("count", row)
    for store in kernel.stores:
        space.store(store, row)
    source = function_text(body, kernel.name, comment, [name for name, _ in choice.numbers], scope.lines)
    launch = Launch(kernel.name, body.arguments(), (ceildiv(count, choice["BLOCK_ROWS"]),), choice.numbers, (), choice.warps, choice.stages)
    return EmittedKernel(source, (launch,), choice=choice)


def tally_choices(kernel: Tally, default: KernelChoice, options: EmitOptions, sizes: Any) -> Iterator[KernelChoice]:
    for height in (1, 2, 4, 8):
        yield KernelChoice((("BLOCK_ROWS", height), ("BLOCK_COLUMNS", default["BLOCK_COLUMNS"])))


def tally_share(kernel: Tally, plan: Plan, choice: KernelChoice, options: EmitOptions, target: Any, sizes: Any) -> ProgramShare:
    height = choice["BLOCK_ROWS"]
    return moving_share(kernel, plan, choice, target, sizes, height * LENGTH, ROWS * LENGTH, -(-ROWS // height))


def tally_seconds(machine: Machine, planned: Plan, kernel: Tally) -> float:
    return arithmetic_seconds(machine, kernel, machine.fusion.rows, machine.count(loops_of(kernel)), ["add"])


def tally_in_numpy(at: plan_numpy._Run, kernel: Tally) -> None:
    at._begin((*kernel.rows, kernel.column))
    value = np.broadcast_to(at.value(kernel.value), at.shape)
    at.results["count"] = value.sum(axis=-1, keepdims=True, dtype=np.int32)
    at.values.clear()
    at._stores(kernel.stores, rows=len(kernel.rows))


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line in the table of each stage."""
    monkeypatch.setitem(WRITERS, Tally, tally_in_torch)
    monkeypatch.setitem(TRITON_KINDS, Tally, TritonKind(tally_in_triton, tally_choices, tally_share))
    monkeypatch.setitem(PRICES, Tally, KindPrice("rows", tally_seconds))
    monkeypatch.setitem(plan_numpy.RUNNING, Tally, tally_in_numpy)


ROWS, LENGTH = 5, 13
OUTER, INNER, AGAIN = Loop("loop:i", ROWS), Loop("loop:j", LENGTH), Loop("loop:k", ROWS)


def counted() -> tuple[Program, Plan]:
    """The number of positive elements of each row and its double, as a program and as two kernels by hand."""
    x = input_term("x", TensorType(F32, (ROWS, LENGTH)))
    positive = make("stablehlo.compare", (x, splat(0.0, F32, (ROWS, LENGTH))), {"direction": "GT"})
    count = make("stablehlo.reduce", (make("stablehlo.convert", (positive,), {"dtype": I32}),), {"dimensions": (1,), "combiner": "add"})
    program = Program((x,), (("count", count), ("double", make("stablehlo.add", (count, count)))))
    element = Load("x", (OUTER.index, INNER.index), F32)
    above = ScalarOp(get_op("stablehlo.compare"), (element, ScalarConstant(0.0, F32)), BOOL, (("direction", "GT"),))
    tally = Tally("k0_tally", (OUTER,), INNER, above, (Store("count", (OUTER.index,), Result("count", I32)),), terms=("compare", "reduce"))
    twice = Load("count", (AGAIN.index,), I32)
    doubled = ScalarOp(get_op("stablehlo.add"), (twice, twice), I32)
    kernels = (tally, Pointwise("k1_add", (AGAIN,), (Store("double", (AGAIN.index,), doubled),), terms=("add",)))
    buffers = {
        "x": Buffer("x", F32, (ROWS, LENGTH), "input"), "count": Buffer("count", I32, (ROWS,), "output"),
        "double": Buffer("double", I32, (ROWS,), "output"),
    }  # fmt: skip
    return program, Plan(buffers, kernels, (("x", "x"),), (("count", "count"), ("double", "double")))


def test_a_new_kind_is_shown_renamed_and_needed() -> None:
    _, made = counted()
    assert show(made).split("\n\n")[1] == (
        "tally k0_tally for i < 5 along j < 13:\n  count: i32 = how often x[i, j] > 0.0\n  count[i] = count"
    )
    other = renamed(made, {"x": "given", "count": "counts"})
    assert reads(other.kernels[0]) == ("given",) and writes(other.kernels[0]) == ("counts",) and reads(other.kernels[1]) == ("counts",)
    assert show(renamed(other, {"given": "x", "counts": "count"})) == show(made)
    assert needs_of(made.kernels) == [[], [0]] and arena(made) == ({}, 0)


def test_a_new_kind_is_priced_and_laid_out(known: None) -> None:
    """Its buffers keep their order, as it says nothing of other ones."""
    _, made = counted()
    prices = PlanPrices(TARGET, {})
    first, second = (prices.kernel(made, kernel) for kernel in made.kernels)
    assert prices.plan_seconds(made) == first + second
    assert first > prices.launch(made.kernels[0]) == TARGET.kernels[prices.fusion.rows].launch.value
    assert 0.0 < prices.work(made, made.kernels[0]).seconds == pytest.approx(first - prices.launch(made.kernels[0]))
    assert not movable(made) and laid_out(made, {"x": (1, 0)}).kernels[0] == made.kernels[0]


def test_a_new_kind_is_done_again_where_memory_is_short(known: None) -> None:
    """Its result is dropped while a large value is summed, and made again behind that."""
    _, made = counted()
    place = Loop("loop:l", 64)
    once, twice = Load("count", (AGAIN.index,), I32), Load("count", (OUTER.index,), I32)
    spread = Pointwise("k1", (AGAIN, place), (Store("wide", (AGAIN.index, place.index), once),))
    fold = ColumnFold("total", "add", Load("wide", (AGAIN.index, place.index), I32), I32)
    summed = Rows("k2", (AGAIN,), (place,), (fold,), (Store("sums", (AGAIN.index,), Result("total", I32)),), ())
    last = ScalarOp(get_op("stablehlo.add"), (twice, Load("sums", (OUTER.index,), I32)), I32)
    kernels = (made.kernels[0], spread, summed, Pointwise("k3", (OUTER,), (Store("y", (OUTER.index,), last),)))
    shapes = {"count": (ROWS,), "wide": (ROWS, 64), "sums": (ROWS,)}
    buffers = {"x": made.buffers["x"], **{name: Buffer(name, I32, shape, "temporary") for name, shape in shapes.items()}}
    buffers["y"] = Buffer("y", I32, (ROWS,), "output")
    short = Plan(buffers, kernels, (("x", "x"),), (("y", "y"),))
    prices = PlanPrices(TARGET, {})
    limit = prices.bytes(buffers["wide"]) + prices.bytes(buffers["sums"])
    found = recomputed(short, limit, prices.kernel, prices.bytes)
    assert found is not None and [kernel.name for kernel in found.kernels] == ["k0_tally", "k1", "k2", "k0_tally_again", "k3"]
    x = np.random.default_rng(5).standard_normal((ROWS, LENGTH)).astype(np.float32)
    np.testing.assert_array_equal(plan_numpy.run(found, {"x": x})["y"], 65 * (x > 0).sum(1))


def test_a_new_kind_runs_as_numpy_and_as_torch(known: None) -> None:
    program, made = counted()
    x = np.random.default_rng(3).standard_normal((ROWS, LENGTH)).astype(np.float32)
    wanted = (x > 0).sum(1).astype(np.int32)
    found = plan_numpy.run(made, {"x": x})
    np.testing.assert_array_equal(found["count"], wanted)
    np.testing.assert_array_equal(found["double"], 2 * wanted)
    for value, other in zip(evaluate_program(program, {"x": x}), (wanted, 2 * wanted), strict=True):
        np.testing.assert_array_equal(value, other)
    pytest.importorskip("torch")
    from tests.lowering.torch_programs import run_package

    package = planned_package(program, made, title="A test.", triton=False)
    for value, other in zip(run_package(package, program, {"x": x}), (wanted, 2 * wanted), strict=True):
        np.testing.assert_array_equal(value, other)


def test_a_new_kind_runs_in_triton_whatever_is_chosen(known: None, interpreter: Runner) -> None:
    _, made = counted()
    (kernel, _) = made.kernels
    assert isinstance(kernel, Tally)
    x = np.random.default_rng(4).standard_normal((ROWS, LENGTH)).astype(np.float32)
    (tunable,) = (each for each in tunables([made], EmitOptions(), TARGET, {}) if each.kernel is kernel)
    assert tunable.family == "tally" and len(tunable.choices) == 4 and drawn(tunable)["x"].size == x.size
    assert all(tunable.seconds(choice) > 0.0 for choice in tunable.choices)
    for choice in tunable.choices:
        found = run(kernel, made, {"x": x}, {}, interpreter, EmitOptions(choice=choice))
        np.testing.assert_array_equal(found["count"][0], (x > 0).sum(1))
        np.testing.assert_array_equal(found["count"][1], found["count"][0])
    assert "# compare, reduce" in emit(kernel, made).source


# ---------------------------------------------------------------- what all kinds share


def test_step_values_are_replaced_where_they_were_found() -> None:
    """Through steps and tuples of steps, with the stores as they were."""
    for kernel in (counted()[1].kernels[0], folded()):
        assert isinstance(kernel, Computed)
        other = with_step_values(kernel, lambda value: ScalarConstant(7, value.dtype))
        assert list(step_values(other)) == [ScalarConstant(7, value.dtype) for value in step_values(kernel)]
        assert values_of(other)[len(step_values(other)) :] == values_of(kernel)[len(step_values(kernel)) :]
        assert not any(isinstance(value, Load) for value in scalars(*step_values(other)))


def folded() -> Rows:
    """A kernel of two folds, of which one reads the other."""
    element = Load("x", (OUTER.index, INNER.index), F32)
    less = ScalarOp(get_op("stablehlo.subtract"), (element, Result("top", F32)), F32)
    folds = (ColumnFold("top", "maximum", element, F32), ColumnFold("total", "add", less, F32))
    return Rows("k", (OUTER,), (INNER,), folds, (Store("y", (OUTER.index,), Result("total", F32)),), ())
