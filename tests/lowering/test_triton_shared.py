"""Triton functions that kernels share: as many as there are kinds of kernels, and the values are those of functions of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.torch_package import TorchPackage
from coset.dialects.hub.scalars import cast
from coset.dialects.hub.terms import reshape, splat
from coset.ir.dims import symbol
from coset.ir.program import Program
from coset.ir.term import Term, constant, input_term, make
from coset.ir.types import DTYPES, F16, F32, DType, TensorType
from coset.lowering.kernels.kernel import Library
from coset.lowering.package.plan import planned_package
from coset.lowering.package.program import write_package
from coset.lowering.planning.plan import plan
from coset.lowering.triton.launch import EmitOptions
from coset.lowering.triton.shared import emitted, functions_of
from coset.lowering.triton.source import can_emit, emit
from tests.sampled import sampled

pytest.importorskip("triton")


def op(name: str, *operands: Term, **attributes: object) -> Term:
    return make(f"stablehlo.{name}", operands, attributes)


def part(x: Term, start: int, count: int = 1) -> Term:
    """Some rows of a matrix."""
    _, width = x.tensor.dims
    return op("slice", x, start=(start, 0), limit=(start + count, width), strides=(1, 1))


def matmul(x: Term, y: Term) -> Term:
    return op("dot_general", x, y, lhs_batch=(), rhs_batch=(), lhs_contract=(1,), rhs_contract=(0,))


def x_(name: str, dtype: DType, *shape: Any) -> Term:
    return input_term(name, TensorType(dtype, shape))


def layers() -> Program:
    """Three layers that differ in their weights only."""
    draw = np.random.default_rng(0)
    x = current = x_("x", F32, 8, 32)
    for _ in range(3):
        w = constant(draw.standard_normal((32, 32)).astype(np.float32), F32)
        current = op("tanh", matmul(current, w))
    return Program((x,), (("y", current),))


def rounds(dtype: DType = F32, rows: int = 6) -> Program:
    """Rounds of a recurrence, each of which reads another row of one input and is written into its row of one output."""
    x, w, carried = x_("x", dtype, rows, 32), x_("w", dtype, 32, 32), x_("h", dtype, 1, 32)
    start, found = carried, []
    for row in range(rows):
        carried = op("tanh", op("add", matmul(carried, w), part(x, row)))
        found.append(carried)
    return Program((x, w, start), (("y", op("concatenate", *found, dimension=0)),))


def products() -> Program:
    """Products of parts of one input by one matrix, and pieces that overlap."""
    x, w = x_("x", F32, 24, 32), x_("w", F32, 32, 16)
    dots = [matmul(part(x, at, 4), w) for at in (0, 3, 4, 9, 20)]
    return Program((x, w), tuple((f"y{i}", dot) for i, dot in enumerate(dots)))


def backward() -> Program:
    """Rows in their other order, and both neighbours of an element."""
    x = x_("x", F32, 9, 16)
    found = []
    for at in (1, 3, 5):
        turned = op("reverse", part(x, at, 3), dimensions=(0, 1))
        near = op("subtract", part(x, at + 1, 2), part(x, at - 1, 2))
        sides = [op("reduce", each, dimensions=(1,), combiner="maximum") for each in (turned, near)]
        found += [op("exponential", turned), near, *sides]
    return Program((x,), tuple((f"y{i}", each) for i, each in enumerate(found)))


def padded() -> Program:
    """Elements of which some are outside."""
    x = x_("x", F32, 8, 16)
    found = []
    for at in (1, 3, 6):
        wide = op("pad", part(x, at, 2), splat(1, F32, ()), low=(1, 2), high=(0, 3), interior=(0, 0))
        found.append(op("reduce", wide, dimensions=(0,), combiner="add"))
    return Program((x,), tuple((f"y{i}", each) for i, each in enumerate(found)))


def bytes_() -> Program:
    """Floats of 8 bits are handed over as bytes."""
    x = x_("x", DTYPES["f8e4m3fn"], 6, 48)
    rows = [op("reduce", op("convert", part(x, at, 2), dtype=F32), dimensions=(1,), combiner="add") for at in (0, 2, 3)]
    return Program((x,), tuple((f"y{i}", row) for i, row in enumerate(rows)))


def free() -> Program:
    """Rows of a free number."""
    x = x_("x", F32, symbol("n"), 16)
    rows = [op("reduce", op("add", part(x, at), splat(at, F32, (1, 16))), dimensions=(1,), combiner="add") for at in (0, 1, 2)]
    return Program((x,), tuple((f"y{i}", reshape(row, (1,))) for i, row in enumerate(rows)))


PROGRAMS: dict[str, tuple[Callable[[], Program], int, int]] = {  # with how many kernels and functions there are
    "layers": (layers, 3, 1), "rounds": (rounds, 6, 2), "half": (lambda: rounds(F16, 4), 4, 2), "products": (products, 5, 1),
    "backward": (backward, 0, 0), "padded": (padded, 0, 0), "bytes": (bytes_, 3, 1), "free": (free, 3, 3),
}  # fmt: skip


def written(program: Program, folder: Path, feed: dict[str, Any]) -> list[Any]:
    write_package(planned_package(program, plan(program, computes=can_emit), title="A test."), folder)
    with TorchPackage(folder, interpreted=True) as package:
        return [package.run(feed)[name] for name, _ in program.outputs]


@pytest.mark.parametrize("name", sampled(PROGRAMS))
def test_values_are_those_of_functions_of_their_own(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_, kernels, functions = PROGRAMS[name]
    program = make_()
    draw = np.random.default_rng(1)
    feed = {
        str(term.attribute("name")): cast(
            draw.standard_normal([dim if isinstance(dim, int) else 5 for dim in term.tensor.dims]), term.tensor.dtype
        )
        for term in program.inputs
    }
    found = written(program, tmp_path / "shared", feed)
    text = (tmp_path / "shared" / "kernels.py").read_text()
    if kernels:
        launched = (tmp_path / "shared" / "model.py").read_text().count("start(kernels.")
        assert (launched, text.count("@triton.jit\ndef k")) == (kernels, functions)
    monkeypatch.setattr(
        "coset.lowering.package.plan.emitted", lambda kernels, plan, options: [emit(each, plan, options=options) for each in kernels]
    )
    alone = written(program, tmp_path / "alone", feed)
    assert len(text) < len((tmp_path / "alone" / "kernels.py").read_text()) or name == "free"
    for value, expected in zip(found, alone, strict=True):
        np.testing.assert_array_equal(value, expected)


def test_kernels_that_differ_in_a_number_that_is_no_place_have_functions_of_their_own() -> None:
    x = x_("x", F32, 4, 16)
    rows = [op("reduce", op("multiply", part(x, at), splat(at + 2.5, F32, (1, 16))), dimensions=(1,), combiner="add") for at in range(3)]
    made = plan(Program((x,), tuple((f"y{i}", row) for i, row in enumerate(rows))), computes=can_emit)
    found = emitted(made.kernels, made, EmitOptions())
    assert all(each.source for each in found)
    assert not any(argument.begin for each in found for launch in each.launches for argument in launch.arguments), "which helps nobody"


def test_constants_that_share_bytes_begin_where_they_are() -> None:
    """Half a byte has no address."""
    draw = np.random.default_rng(2)
    w = constant(draw.integers(-8, 8, (6, 32)).astype(DTYPES["i4"].numpy), DTYPES["i4"])
    x = x_("x", F32, 1, 32)
    roots = [op("reduce", op("multiply", op("convert", part(w, at), dtype=F32), x), dimensions=(1,), combiner="add") for at in (1, 2, 4)]
    made = plan(Program((x,), tuple((f"y{i}", root) for i, root in enumerate(roots))), computes=can_emit)
    found = emitted([each for each in made.kernels if not isinstance(each, Library)], made, EmitOptions())
    assert not any(argument.begin for each in found for launch in each.launches for argument in launch.arguments)


def test_each_launch_names_a_function_that_is_there() -> None:
    for make_, *_ in PROGRAMS.values():
        program = make_()
        made = plan(program, computes=can_emit)
        found = emitted(made.kernels, made, EmitOptions())
        there: set[str] = set()
        for each in found:
            there |= {*functions_of(each.source)}
            assert {launch.function for launch in each.launches} <= there
