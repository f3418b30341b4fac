"""Packages whose kernels read by bulk copies: what they compute in Triton's interpreter, what makes descriptors and how often."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.torch_package import TorchPackage
from coset.dialects.hub.scalars import cast
from coset.ir.dims import multiply, symbol
from coset.ir.evaluate import evaluate_program
from coset.ir.program import Program
from coset.ir.term import Term, constant
from coset.ir.types import DTYPES, F16, DType
from coset.lowering.package.plan import planned_package
from coset.lowering.package.program import Package, write_package
from coset.lowering.planning.plan import plan
from coset.lowering.triton.launch import EmitOptions
from coset.lowering.triton.source import can_emit
from tests.lowering.test_triton_shared import matmul, op, part, x_

pytest.importorskip("triton")
torch = pytest.importorskip("torch")
from coset.lowering.package.tiles import Descriptors, described  # noqa: E402

FEW = EmitOptions(bulk=232448, processors=2)  # so that programs go from tile to tile


def weight(dtype: DType, *shape: int) -> Term:
    return constant(cast(np.random.default_rng(sum(shape)).integers(-2, 3, shape), dtype), dtype)


def layer(x: Term, width: int, columns: int) -> Term:
    rows = x.tensor.dims[0]
    bias = op("broadcast_in_dim", weight(F16, columns), shape=(rows, columns), broadcast_dimensions=(1,))
    return op("tanh", op("add", matmul(x, weight(F16, width, columns)), bias))


def mlp(rows: Any = 130) -> Program:
    """Two layers of which the second one reads what the first one wrote."""
    x = x_("x", F16, rows, 64)
    return Program((x,), (("y", layer(layer(x, 64, 264), 264, 72)),))


def parts() -> Program:
    """Rows from the middle on, each part with the same function."""
    x = x_("x", F16, 512, 64)
    w = weight(F16, 64, 128)
    return Program((x,), tuple((f"y{at}", op("tanh", matmul(part(x, at, 128), w))) for at in (0, 128, 384)))


def bytes_() -> Program:
    """8-bit floats, which Triton reads as bytes."""
    x, w = x_("x", DTYPES["f8e4m3fn"], 96, 64), x_("w", DTYPES["f8e4m3fn"], 64, 128)
    return Program((x, w), (("y", op("dot_general", x, w, lhs_batch=(), rhs_batch=(), lhs_contract=(1,), rhs_contract=(0,))),))


def sixteens() -> Program:
    """k of a multiple of 16 that is not known but by an input of as many elements."""
    x, w = x_("x", F16, 80, multiply(16, symbol("n"))), x_("w", F16, multiply(16, symbol("n")), 64)
    return Program((x, w, x_("n", F16, symbol("n"))), (("y", op("tanh", matmul(x, w))),))


PROGRAMS: dict[str, tuple[Callable[[], Program], tuple[int, ...]]] = {  # with numbers for `n`
    "mlp": (mlp, (0,)), "rows": (lambda: mlp(symbol("n")), (130, 1, 70, 0)), "parts": (parts, (0,)), "bytes": (bytes_, (0,)),
    "sixteens": (sixteens, (3, 1, 0)),
}  # fmt: skip


def packaged(program: Program, options: EmitOptions = FEW) -> Package:
    return planned_package(program, plan(program, computes=can_emit), title="A test.", options=options)


@pytest.mark.parametrize("name", PROGRAMS)
def test_packages_compute_what_their_programs_mean(name: str, tmp_path: Path) -> None:
    """One after the other with other sizes, in one process."""
    make, numbers = PROGRAMS[name]
    program = make()
    package = packaged(program)
    assert "_tiles.load(" in package.texts["kernels.py"] and "TensorDescriptor" in package.texts["tiles.py"]
    write_package(package, tmp_path / "p")
    draw = np.random.default_rng(2)
    with TorchPackage(tmp_path / "p", interpreted=True) as running:
        for number in numbers:
            shapes = {term.attribute("name"): term.tensor for term in program.inputs}
            feed = {
                str(key): cast(draw.integers(-2, 3, [dim if isinstance(dim, int) else sized(dim, number) for dim in each.dims]), each.dtype)
                for key, each in shapes.items()
            }
            found = running.run(feed)
            for (output, _), expected in zip(program.outputs, evaluate_program(program, feed), strict=True):
                np.testing.assert_allclose(found[output].astype(np.float64), np.asarray(expected, np.float64), rtol=2e-3, atol=2e-3)


def sized(dim: Any, number: int) -> int:
    from coset.ir.dims import evaluate

    return evaluate(dim, {"n": number})


def test_descriptors_of_what_stays_are_made_once() -> None:
    """Weights and temporaries that keep their memory; inputs are others at each call."""
    text = packaged(mlp()).texts["model.py"]
    assert "from .tiles import Descriptors, described" in text and "DESCRIPTORS = Descriptors()" in text
    assert text.count("DESCRIPTORS.of(") == 3 and text.count(" described(x, 0, (130, 64), (64, 1), ") == 1
    made = replace(plan(mlp(), computes=can_emit), frees=True, offsets={}, arena=0)
    text = planned_package(mlp(), made, title="A test.", options=FEW).texts["model.py"]
    assert text.count("DESCRIPTORS.of(") == 2 and text.count(" described(") == 2, "a temporary that goes is not kept"


def test_other_targets_have_no_descriptors() -> None:
    package = packaged(mlp(), EmitOptions())
    assert "tiles.py" not in package.texts and not any("escript" in text for text in package.texts.values() if "base" not in text)


def test_parts_of_a_buffer_are_one_function_with_descriptors_of_their_own() -> None:
    package = packaged(parts())
    assert package.texts["kernels.py"].count("def k") == 1
    begins = [line.split(", ")[1] for line in package.texts["model.py"].splitlines() if " = described(x" in line]
    assert begins == ["0", str(128 * 64), str(384 * 64)]


# ---------------------------------------------------------------- descriptors


def test_a_descriptor_is_of_the_memory_itself_where_it_is_aligned() -> None:
    x = torch.arange(64 * 64, dtype=torch.float16).reshape(64, 64)
    found = described(x, 64, (63, 64), (64, 1), (16, 32))
    assert found.base.data_ptr() == x.data_ptr() + 128 and (found.shape, found.strides) == ([63, 64], [64, 1])
    assert found.block_shape == [16, 32]
    eight = described(x.to(torch.float8_e5m2), 0, (64, 64), (64, 1), (16, 32))
    assert eight.base.dtype == torch.uint8


def test_memory_that_begins_anywhere_is_copied() -> None:
    x = torch.arange(1 + 64 * 64, dtype=torch.float16)[1:].reshape(64, 64)
    assert x.data_ptr() % 16
    found = described(x, 64, (63, 64), (64, 1), (16, 32))
    assert found.base.data_ptr() % 16 == 0 and torch.equal(found.base[:64], x[1])


def test_a_descriptor_of_nothing_is_one() -> None:
    for shape in ((0, 64), (64, 0), (0, 0)):
        found = described(torch.empty(shape), 0, shape, (shape[1], 1), (16, 32))
        assert found.shape == [1, 1] and found.strides[-1] == 1


def test_more_elements_than_a_descriptor_sees_are_refused() -> None:
    with pytest.raises(ValueError, match="2147483647 at most"):
        described(torch.empty(8), 0, (2**31, 8), (8, 1), (16, 16))


def test_kept_descriptors_are_of_the_same_tensor() -> None:
    kept, x, y = Descriptors(), torch.zeros(64, 64), torch.zeros(64, 64)
    where = ((64, 64), (64, 1), (16, 16))
    first = kept.of("a", x, 0, *where)
    assert kept.of("a", x, 0, *where) is first
    assert kept.of("b", x, 0, *where) is not first
    assert kept.of("a", y, 0, *where).base is y, "another tensor"
    assert kept.of("a", y, 64, (63, 64), *where[1:]).base.data_ptr() == y.data_ptr() + 256, "another place"
    assert kept.of("a", y, 0, (32, 64), *where[1:]).shape == [32, 64], "another size"


def test_copies_are_made_anew() -> None:
    """Where memory is not aligned, what is kept would be what it held when it was copied."""
    kept, x = Descriptors(), torch.zeros(1 + 64 * 64, dtype=torch.float16)[1:].reshape(64, 64)
    where = ((64, 64), (64, 1), (16, 16))
    assert not kept.of("a", x, 0, *where).base.any()
    x += 1
    assert kept.of("a", x, 0, *where).base.all()


def test_tensors_on_a_cpu_are_told_from_those_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    from coset.lowering.package.runtime import WrongInput, start

    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    with pytest.raises(WrongInput, match="tensors on a GPU"):
        start(None, (1,), described(torch.zeros(64, 64, dtype=torch.float32), 0, (64, 64), (64, 1), (16, 16)))


def test_memory_in_another_order_is_seen_from_an_element_on() -> None:
    """What lies there, as the descriptor says it: its base is the memory, not the tensor's dims."""
    memory = torch.arange(2 * 4 * 16, dtype=torch.float16)
    tensor = memory.reshape(2, 4, 16).permute(0, 2, 1)  # features last
    base = described(tensor, 64, (4, 16), (16, 1), (4, 16)).base
    assert base.data_ptr() == memory.data_ptr() + 64 * 2 and base.shape == (64,) and torch.equal(base, memory[64:])
