"""Constants below a byte share bytes: packed and read back as they were, in kernels (NumPy, Triton's interpreter) and in packages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.torch_package import TorchPackage
from coset.backends.triton_runtime import TARGETS, Compiler, Runner
from coset.dialects.hub.scalars import cast
from coset.dialects.hub.terms import broadcast, dot, splat, transpose
from coset.ir.dims import symbol
from coset.ir.evaluate import evaluate_program
from coset.ir.program import Program
from coset.ir.term import Term, constant, input_term, make
from coset.ir.types import BF16, BOOL, DTYPES, F16, F32, DType, TensorType
from coset.lowering.kernels.kernel import Library, Plan, Product
from coset.lowering.kernels.plan_text import show
from coset.lowering.package.plan import planned_package
from coset.lowering.package.program import write_package
from coset.lowering.planning.kinds import READ_ONLY, SMALL, is_light, is_widening
from coset.lowering.planning.packing import packed_pieces, shared_dim
from coset.lowering.planning.plan import plan
from coset.lowering.planning.traffic import kernel_traffic
from coset.lowering.triton.scalars import TYPES
from coset.lowering.triton.source import EmitOptions, Rounding, can_emit, emit, kernel_source
from tests.lowering import plan_numpy
from tests.lowering.triton_cases import assert_near, assert_same, run
from tests.sampled import sampled

EACH = EmitOptions(rounding=Rounding.EACH)
KINDS = [DTYPES[name] for name in sorted(SMALL)]
WIDER = [DTYPES[name] for name in TYPES if name not in READ_ONLY]


@pytest.fixture(autouse=True)
def nothing_is_computed_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Constants of a few elements stay what they are, as large ones do."""
    monkeypatch.setattr("coset.lowering.planning.contraction.FOLDED", 0)


def every(dtype: DType, shape: tuple[int, ...], draw: np.random.Generator) -> Any:
    """Elements of all bit patterns."""
    patterns = draw.permutation(np.arange(int(np.prod(shape))) % (1 << dtype.bits)).astype(np.uint8)
    return patterns.view(dtype.numpy).reshape(shape)


def op(name: str, *operands: Term, **attributes: Any) -> Term:
    return make(f"stablehlo.{name}", operands, attributes)


def converted(x: Term, dtype: DType) -> Term:
    """As a term: of a constant too, which importers do not compute, as it would become larger."""
    return op("convert", x, dtype=dtype)


def planned(program: Program) -> Plan:
    return plan(program, computes=can_emit)


def checked(program: Program, feeds: dict[str, Any], interpreter: Runner, what: str = "", *,
            exact: bool = False) -> Plan:  # fmt: skip
    """Each kernel in the interpreter gives what it gives in NumPy, and the plan what the program means; to the bit where `exact`."""
    made = planned(program)

    def before(kernel: Any, at: plan_numpy._Run) -> None:
        for name, (found, wanted) in run(kernel, at.plan, at.memory, at.binding, interpreter, EACH).items():
            dtype, where = at.plan.buffers[name].dtype, f"{what} {kernel.name} {name}"
            if exact:
                assert_same(found, wanted, dtype, where)
            else:
                assert_near(found, wanted, dtype, 1e-5, 1e-5 * size_of(wanted), where)

    with np.errstate(all="ignore"):
        found = plan_numpy.run(made, feeds, before=before)
        expected = evaluate_program(program, feeds)
    for (name, root), value in zip(program.outputs, expected, strict=True):
        assert found[name].dtype == value.dtype == root.tensor.dtype.numpy
        if exact:
            assert_same(found[name], value, root.tensor.dtype, what)
            continue
        wide = [each.astype(np.float64) for each in (found[name], value)]
        np.testing.assert_allclose(*wide, rtol=2e-2 if root.tensor.dtype is BF16 else 2e-3, atol=2e-3 * size_of(value), err_msg=what)
    return made


def size_of(value: Any) -> float:
    return float(np.max(np.abs(np.nan_to_num(value.astype(np.float64), posinf=0, neginf=0)), initial=1.0))


# ---------------------------------------------------------------- bytes


@pytest.mark.parametrize("dtype", KINDS, ids=str)
@pytest.mark.parametrize(("shape", "axis"), [((8,), 0), ((4, 3), 0), ((3, 8), 1), ((2, 4, 5), 1), ((4, 1, 3), 0), ((4, 0), 0)])
def test_neighbours_share_a_byte(dtype: DType, shape: tuple[int, ...], axis: int, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    from coset.lowering.torch.functions import unpacked

    monkeypatch.setattr("coset.lowering.planning.packing._PIECE", 16)  # in several pieces
    values, count = every(dtype, shape, np.random.default_rng(0)), 8 // dtype.bits
    whole = np.concatenate([np.zeros(0, np.uint8), *packed_pieces(values, axis, dtype.bits)])
    memory = tuple(size // count if place == axis else size for place, size in enumerate(shape))
    assert whole.dtype == np.uint8 and whole.size == int(np.prod(memory))
    whole = whole.reshape(memory)
    bits = values.view(np.uint8) & ((1 << dtype.bits) - 1)
    for index in np.ndindex(shape):
        byte = tuple(place // count if at == axis else place for at, place in enumerate(index))
        assert (whole[byte] >> (index[axis] % count * dtype.bits)) & ((1 << dtype.bits) - 1) == bits[index]
    apart = unpacked(torch.from_numpy(whole), axis, dtype.name).numpy()
    assert apart.dtype == (np.float32 if dtype.kind == "float" else np.int8 if dtype.kind == "int" else np.uint8)
    np.testing.assert_array_equal(apart, values.astype(apart.dtype))
    if dtype.kind == "float":
        np.testing.assert_array_equal(np.signbit(apart), np.signbit(values.astype(np.float32)))


def test_which_dim_has_the_neighbours() -> None:
    i4, u2 = DTYPES["i4"], DTYPES["u2"]
    assert [shared_dim(shape, i4) for shape in ((4, 6), (3, 6), (2, 3, 5), (7,), (6,), (), (0, 4), (3, 0))] == [
        0,
        1,
        0,
        None,
        0,
        None,
        1,
        None,
    ]
    assert [shared_dim(shape, u2) for shape in ((6, 8), (4, 6), (6, 6))] == [1, 0, None]


# ---------------------------------------------------------------- kernels


@pytest.mark.parametrize("dtype", [*KINDS, DTYPES["f8e8m0fnu"]], ids=str)
@pytest.mark.parametrize("shape", [(256,), (6, 8), (3, 8), (5, 7), (2, 3, 8)])
def test_all_numbers_come_out_as_they_are(dtype: DType, shape: tuple[int, ...], interpreter: Runner) -> None:
    """Converted to every kind of number; and of an input, whose elements are apart."""
    values = every(dtype, shape, np.random.default_rng(1))
    given, asked = input_term("x", TensorType(dtype, shape)), input_term("asked", TensorType(BOOL, shape))
    feeds = {"x": values, "asked": np.ones(shape, bool)}
    for source, packs in ((constant(values), dtype.bits < 8 and shared_dim(shape, dtype) is not None), (given, False)):
        wider = [each for each in WIDER if not (each.kind == "uint" and dtype.kind != "uint")]  # out of range it means nothing
        found = [op("select", asked, converted(source, each), splat(0, each, shape)) for each in wider]
        made = checked(Program((given, asked), tuple((f"y{i}", y) for i, y in enumerate(found))), feeds, interpreter, exact=True)
        assert not any(isinstance(kernel, Library) for kernel in made.kernels)
        assert any(buffer.packed is not None for buffer in made.buffers.values()) == packs
        assert ("packed along" in show(made)) == packs


@pytest.mark.parametrize("dtype", [*KINDS, DTYPES["f8e8m0fnu"]], ids=str)
def test_they_are_moved_as_they_are(dtype: DType, interpreter: Runner) -> None:
    """From an input, and from a constant, to an output of the same type, with a number around."""
    values = every(dtype, (6, 8), np.random.default_rng(2))
    x = input_term("x", TensorType(dtype, (6, 8)))
    edge = constant(np.array(1).astype(dtype.numpy))
    moved = [op("pad", transpose(each, (1, 0)), edge, low=(1, 0), high=(0, 2), interior=(0, 1)) for each in (x, constant(values))]
    made = checked(Program((x,), (("y", moved[0]), ("z", moved[1]))), {"x": values}, interpreter, exact=True)
    assert not any(isinstance(kernel, Library) for kernel in made.kernels)


class Drawn:
    """Something that is read through movements, converted, scaled, and folded or multiplied or given out."""

    def __init__(self, seed: int) -> None:
        self.draw = np.random.default_rng(seed)
        self.inputs: list[Term] = []
        self.feeds: dict[str, Any] = {}
        dtype = KINDS[int(self.draw.integers(len(KINDS)))]
        rows, columns = int(self.pick(2, 4, 8, 24)), int(self.pick(3, 4, 16, 40))
        x = self.moved(self.leaf(dtype, (rows, columns)))
        wide = DTYPES[str(self.pick("f32", "f32", "f16", "bf16"))]
        y = converted(x, wide)
        shape = y.tensor.dims
        if self.draw.random() < 0.6:
            scale = constant(cast(self.draw.uniform(0.5, 2, (shape[-1],)), wide))
            y = op("multiply", y, broadcast(scale, shape, (len(shape) - 1,)))
        kind = self.pick("out", "sum", "product", "product")
        if kind == "sum":
            y = op("reduce", y, dimensions=(int(self.draw.integers(len(shape))),), combiner="add")
        elif kind == "product" and len(shape) == 2 and shape[0]:
            count: Any = self.pick(1, 5, 16, symbol("n"))
            left = input_term("left", TensorType(wide, (count, shape[0])))
            self.inputs.append(left)
            self.feeds["left"] = cast(self.draw.normal(size=(count if isinstance(count, int) else 7, int(shape[0]))), wide)
            y = dot(left, y, lhs_contract=(1,), rhs_contract=(0,))
        self.program = Program(tuple(self.inputs), (("y", y),))

    def pick(self, *values: Any) -> Any:
        return values[int(self.draw.integers(len(values)))]

    def leaf(self, dtype: DType, shape: tuple[int, ...]) -> Term:
        values = every(dtype, shape, self.draw)
        if self.draw.random() < 0.85:
            return constant(values)
        term = input_term(f"x{len(self.inputs)}", TensorType(dtype, shape))
        self.inputs.append(term)
        self.feeds[f"x{len(self.feeds)}"] = values
        return term

    def moved(self, x: Term) -> Term:
        for _ in range(int(self.draw.integers(3))):
            rows, columns = x.tensor.dims
            kind = self.pick("transpose", "reshape", "slice", "pad", "concatenate", "gather", "reverse")
            if kind == "transpose":
                x = transpose(x, (1, 0))
            elif kind == "reshape" and int(rows) % 2 == 0:
                x = op("reshape", x, shape=(int(rows) // 2, 2 * int(columns)))
            elif kind == "slice" and int(rows) > 2:
                x = op("slice", x, start=(1, 0), limit=(int(rows), int(columns)), strides=(int(self.pick(1, 2)), 1))
            elif kind == "pad":
                edge = constant(np.array(self.pick(0, 0, 1)).astype(x.tensor.dtype.numpy))
                x = op("pad", x, edge, low=(1, 0), high=(0, 1), interior=(int(self.pick(0, 1)), 0))
            elif kind == "concatenate":
                x = op("concatenate", x, self.leaf(x.tensor.dtype, (2, int(columns))), dimension=0)
            elif kind == "gather":
                places = constant(self.draw.integers(-1, int(rows) + 1, (6, 1)).astype(np.int32))
                x = op("gather", x, places, offset_dims=(1,), collapsed_slice_dims=(0,), operand_batching_dims=(),
                       start_indices_batching_dims=(), start_index_map=(0,), index_vector_dim=1, slice_sizes=(1, int(columns)),
                       indices_are_sorted=False)  # fmt: skip
            elif kind == "reverse":
                x = op("reverse", x, dimensions=(0,))
        return x


@pytest.mark.parametrize("batch", range(5))
def test_drawn_programs(batch: int, interpreter: Runner) -> None:
    for seed in range(batch * 12, batch * 12 + 12):
        drawn = Drawn(seed)
        made = checked(drawn.program, drawn.feeds, interpreter, f"seed {seed}:")
        assert not any(isinstance(kernel, Library) for kernel in made.kernels), seed


def test_the_bytes_of_a_product_are_those_of_its_weights() -> None:
    """A product by blocks with scales reads half a byte an element, and nothing as wide as its result type is between."""
    made = planned(dequantized(DTYPES["i4"], F16, 1024, 512))
    (kernel,) = made.kernels
    assert isinstance(kernel, Product) and made.buffers[kernel_constant(made)].packed == 0
    assert kernel_traffic(made, kernel, {}) == 1024 * 512 // 2 + 8 * 512 * 2 + 2 * 16 * (1024 + 512)


def kernel_constant(made: Plan) -> str:
    return next(name for name, buffer in made.buffers.items() if buffer.role == "constant" and buffer.dtype.name in SMALL)


def dequantized(dtype: DType, wide: DType, k: int, n: int, block: int = 128, *, rows: Any = 16, turned: bool = False) -> Program:
    """x times weights with a scale for each block of `block` along the sum; `turned`: weights lie as a linear layer has them."""
    draw = np.random.default_rng(3)
    values = every(dtype, (k, n), draw)
    weights = transpose(constant(np.ascontiguousarray(values.T)), (1, 0)) if turned else constant(values)
    scales = constant(cast(draw.uniform(0.01, 0.1, (k // block, n)), wide))
    spread = op("reshape", broadcast(scales, (k // block, block, n), (0, 2)), shape=(k, n))
    x = input_term("x", TensorType(wide, (rows, k)))
    y = dot(x, op("multiply", converted(weights, wide), spread), lhs_contract=(1,), rhs_contract=(0,))
    return Program((x,), (("y", y),))


def test_what_others_read_is_apart() -> None:
    """A caller and a library want elements of their own; a number that no size allows to pack is as it was."""
    values = every(DTYPES["i4"], (1, 1, 4, 4), np.random.default_rng(4))
    weights = constant(values)
    x = input_term("x", TensorType(F32, (1, 1, 8, 8)))
    ones = (1, 1)
    y = op("convolution", x, converted(weights, F32), strides=ones, padding=((0, 0), (0, 0)), lhs_dilation=ones, rhs_dilation=ones,
           feature_group_count=1, batch_group_count=1)  # fmt: skip
    assert all(
        buffer.packed is None for buffer in planned(Program((x,), (("y", converted(weights, F32)), ("w", weights)))).buffers.values()
    )
    added = op("add", weights, weights)  # kernels do not add 4 bits: torch does, which wants them apart
    made = planned(Program((x,), (("y", y), ("z", converted(added, F32)))))
    assert made.buffers[kernel_constant(made)].packed is None
    odd = planned(dequantized(DTYPES["i4"], F32, 5, 3, 1))
    assert odd.buffers[kernel_constant(odd)].packed is None


def test_kernels_read_what_is_small_and_compute_with_what_is_wider() -> None:
    i4 = DTYPES["i4"]
    assert can_emit("stablehlo.convert", [i4, F32]) and not can_emit("stablehlo.convert", [F32, i4])
    assert not can_emit("stablehlo.add", [i4, i4, i4]) and not can_emit("stablehlo.compare", [i4, i4, DTYPES["bool"]])


def test_what_a_planner_takes_for_a_kernels() -> None:
    i4, u8, i16 = (DTYPES[name] for name in ("i4", "u8", "i16"))
    small, bytes_, wide = (input_term("x", TensorType(dtype, (4, 4))) for dtype in (i4, u8, F32))
    assert is_light(converted(small, F32)) and is_light(transpose(small, (1, 0)))
    assert not any(map(is_light, (converted(wide, i4), op("add", small, small), op("compare", small, small, direction="EQ"))))
    assert is_widening(converted(small, i16)) and is_widening(converted(bytes_, i16))
    assert not any(map(is_widening, (converted(small, u8), converted(small, F32), converted(bytes_, DTYPES["i8"]), converted(wide, i4))))
    assert not is_widening(converted(input_term("x", TensorType(F16, (4,))), F32)) and not is_widening(op("add", small, small))


# ---------------------------------------------------------------- packages, compilers


@pytest.mark.parametrize("triton", [True, False])
@pytest.mark.parametrize("dtype", sampled(KINDS), ids=str)
@pytest.mark.parametrize("turned", [False, True])
def test_packages_hold_packed_weights(dtype: DType, triton: bool, turned: bool, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    program = dequantized(dtype, F32, 64, 48, 16, rows=symbol("n"), turned=turned)
    made = planned(program)
    package = planned_package(program, made, title="test", triton=triton)
    manifest = write_package(package, tmp_path / "package")
    (fact,) = [each for each in manifest["weights"] if each["dtype"] == dtype.name]
    assert fact["packed"] == 0 and fact["shape"] == ([48, 64] if turned else [64, 48])
    size = (tmp_path / "package" / "weights.safetensors").stat().st_size
    assert size < 64 * 48 * dtype.bits // 8 + 4 * 4 * 48 + 1024
    x = np.random.default_rng(6).normal(size=(5, 64)).astype(np.float32)
    with TorchPackage(tmp_path / "package", interpreted=triton) as running:
        (found,) = running.run({"x": x}).values()
    np.testing.assert_allclose(found, evaluate_program(program, {"x": x})[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_products_of_packed_weights_compile_ahead_of_time(target: str, compiler: Compiler) -> None:
    for dtype in KINDS:
        for rows in (1, 64):
            made = planned(dequantized(dtype, F16, 512, 256, rows=rows, turned=rows == 1))
            for kernel in made.kernels:
                for compiled in compiler.run(kernel_source(kernel, made), emit(kernel, made).launches, target, {}):
                    assert compiled.registers <= 256 and compiled.spilled == 0


def test_bytes_below_zero_are_not_asked_for(interpreter: Runner) -> None:
    """In front of a padded edge the place in a byte is below 0, where nothing is read; an edge that is no 0 is not one in the byte."""
    values = every(DTYPES["u4"], (4, 4), np.random.default_rng(7))
    for number in (0, 9):
        edge = constant(np.array(number).astype(values.dtype))
        padded = op("pad", constant(values), edge, low=(3, 1), high=(1, 0), interior=(0, 0))
        x = input_term("x", TensorType(F32, padded.tensor.dims))
        program = Program((x,), (("y", op("add", x, converted(padded, F32))),))
        made = checked(program, {"x": np.zeros((8, 5), np.float32)}, interpreter)
        assert made.buffers[kernel_constant(made)].packed == 0
