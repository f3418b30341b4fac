"""Linear algebra, Fourier transforms, sorting, scattering, normalization and random bits of the hub as torch expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from coset.ir.errors import CosetError
from coset.ir.term import Term
from coset.lowering.torch.dims import tuple_text
from coset.lowering.torch.dtypes import ORDER_OF_U64, held, narrowed
from coset.lowering.torch.movement import Expression, position

if TYPE_CHECKING:
    from coset.lowering.torch.program import Writer


def _in_f32(term: Term, text: str, x: Sequence[str]) -> str:
    """`text`, a format over operands, computed in f32 where the dtype is narrower."""
    dtype = term.operands[0].tensor.dtype
    if dtype.kind == "float" and dtype.bits == 16:
        return f"{text.format(*(f'{one}.float()' for one in x))}.to({held(dtype)})"
    return narrowed(text.format(*x), dtype)


def cholesky(_: Writer, term: Term, x: Sequence[str]) -> str:
    """The factor; NaN where the matrix is not positive definite."""
    return _in_f32(term, f"cholesky({{0}}, lower={term.attribute('lower')})", x)


def triangular_solve(_: Writer, term: Term, x: Sequence[str]) -> str:
    """torch's solver; a transposed matrix is a view whose triangle is the other one."""
    lower, word = term.attribute("lower"), term.attribute("transpose_a")
    matrix = {"NO_TRANSPOSE": "{0}", "TRANSPOSE": "{0}.mT", "ADJOINT": "{0}.mH"}[word]
    upper = lower != (word == "NO_TRANSPOSE")
    named = f"upper={upper}, left={term.attribute('left_side')}, unitriangular={term.attribute('unit_diagonal')}"
    return _in_f32(term, f"solve_triangular({matrix}, {{1}}, {named})", x)


def fft(writer: Writer, term: Term, x: Sequence[str]) -> str:
    """cuFFT's transforms through torch."""
    kind, length = term.attribute("fft_type"), term.attribute("fft_length")
    function = {"FFT": "fftn", "IFFT": "ifftn", "RFFT": "rfftn", "IRFFT": "irfftn"}[kind]
    if any(not isinstance(dim, int) or dim == 0 for dim in term.tensor.dims):
        return f"fourier({x[0]}, {kind!r}, {writer.shape(length)}, {writer.shape(term.tensor.dims)})"
    size = f"s={writer.shape(length)}, " if kind == "IRFFT" else ""
    return f"torch.fft.{function}({x[0]}, {size}dim={tuple_text(range(-len(length), 0))})"


def sort(_: Writer, term: Term, x: Sequence[str]) -> str:
    """Stable; NaN is the largest. Operands after the first follow its order."""
    direction, axis, dtype = term.attribute("direction"), term.attribute("dimension"), term.operands[0].tensor.dtype
    if dtype.kind == "complex":
        raise CosetError("`stablehlo.sort` of complex numbers has no torch expression")
    if dtype.kind == "float" and term.attribute("total"):
        key = f"total_order({x[0]}, one_nan={dtype.name.endswith('fnuz')})"
    else:
        key = f"{x[0]} ^ {ORDER_OF_U64}" if dtype.name == "u64" else x[0]
    if len(x) == 1 and direction in ("LT", "GT") and key == x[0]:
        return f"torch.sort({key}, dim={axis}, descending={direction == 'GT'}, stable=True).values"
    return f"sort({tuple_text(x)}, {key}, {axis}, {direction!r})" + ("[0]" if len(x) == 1 else "")


def scatter(_: Writer, term: Term, x: Sequence[str]) -> str:
    """Updates combined in at computed positions; see the function."""
    count, combiner = term.attribute("count"), term.attribute("combiner")
    dtypes = {operand.tensor.dtype for operand in term.operands[:count]}
    if any(dtype.kind == "complex" for dtype in dtypes) and combiner not in ("add", "second"):
        raise CosetError(f"`stablehlo.scatter` of complex numbers by {combiner} has no torch expression")
    keys = ("update_window_dims", "inserted_window_dims", "input_batching_dims", "scatter_indices_batching_dims",
            "scatter_dims_to_operand_dims")  # fmt: skip
    named = [f"{key}={tuple_text(term.attribute(key))}" for key in keys if term.attribute(key)]
    named.append(f"index_vector_dim={term.attribute('index_vector_dim')}")
    indices, text = position(term.operands[count], x[count]), []
    for operand, base, update in zip(term.operands[:count], x[:count], x[count + 1 :], strict=True):
        ordered = operand.tensor.dtype.name == "u64" and combiner in ("maximum", "minimum")
        a, b = (f"{one} ^ {ORDER_OF_U64}" if ordered else one for one in (base, update))
        call = f"scatter({a}, {indices}, {b}, {combiner!r}, {', '.join(named)})"
        text.append(narrowed(f"{call} ^ {ORDER_OF_U64}" if ordered else call, operand.tensor.dtype))
    return text[0] if count == 1 else tuple_text(text)


def select_and_scatter(_: Writer, term: Term, x: Sequence[str]) -> str:
    """The source combined in where `select` finds the window's element."""
    dtype, select, combiner = term.tensor.dtype, term.attribute("select"), term.attribute("combiner")
    if dtype.kind == "complex":
        raise CosetError("`stablehlo.select_and_scatter` of complex numbers has no torch expression")
    if dtype.name == "u64" and combiner in ("maximum", "minimum"):
        raise CosetError("`stablehlo.select_and_scatter` of u64 by extremes has no torch expression")
    window, strides = (tuple_text(term.attribute(key)) for key in ("window_dimensions", "window_strides"))
    padding = tuple_text(tuple_text(pair) for pair in term.attribute("padding"))
    keys = f"{x[0]} ^ {ORDER_OF_U64}" if dtype.name == "u64" else x[0]
    return narrowed(f"select_and_scatter({keys}, {x[1]}, {x[2]}, {select!r}, {combiner!r}, {window}, {strides}, {padding})", dtype)


# ---------------------------------------------------------------- normalization, random bits


def _normalization(function: str) -> Expression:
    def write(_: Writer, term: Term, x: Sequence[str]) -> str:
        dtype = term.operands[0].tensor.dtype
        epsilon, axis = term.attribute("epsilon"), term.attribute("feature_index")
        text = f"{function}({', '.join(x)}, epsilon={epsilon!r}, axis={axis})"
        if dtype.bits < 16:
            return text + "" if function != "batch_norm_inference" else narrowed(text, dtype)
        return text

    return write


def rng_bit_generator(writer: Writer, term: Term, x: Sequence[str]) -> str:
    """The same bits on every machine."""
    dtype, algorithm = term.attribute("dtype"), term.attribute("rng_algorithm")
    generator = "threefry" if algorithm == "THREE_FRY" else "philox"
    return f"random_bits({x[0]}, {generator!r}, {dtype.name!r}, {dtype.bits}, {writer.shape(term.attribute('shape'))})"


def optimization_barrier(_: Writer, __: Term, x: Sequence[str]) -> str:
    """The operands; torch runs in order anyway."""
    return tuple_text(x)


LIBRARY: dict[str, Expression] = {f"stablehlo.{f.__name__}": f for f in (
    cholesky, triangular_solve, fft, sort, scatter, select_and_scatter, rng_bit_generator, optimization_barrier,
)}  # fmt: skip
LIBRARY.update({f"stablehlo.batch_norm_{name}": _normalization(f"batch_norm_{name}") for name in ("inference", "training", "grad")})
