"""The hub's linear algebra: Cholesky factors, triangular systems, discrete Fourier transforms; each over any batch dims.

Everything is computed in f64 (c128) and rounded once. Each op's type rule stands before its meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from coset.dialects.hub.bits import COMPLEX_OF, REAL_OF
from coset.dialects.hub.checks import get_bool, get_dims, get_word, require_class, tensors
from coset.dialects.hub.scalars import narrow, widen
from coset.dialects.hub.tensors import Binding, numbers
from coset.ir import dims
from coset.ir.errors import require
from coset.ir.op import Array, Attributes
from coset.ir.types import TensorType, Type

if TYPE_CHECKING:
    from coset.ir.term import Term

TRANSPOSES = ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")
FFT_TYPES = ("FFT", "IFFT", "RFFT", "IRFFT")


def _exact(x: Array) -> Array:
    """`x` in the dtype that these ops compute in."""
    return widen(x).astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def _require_square(name: str, what: str, type: TensorType) -> None:
    require_class(name, what, type.dtype, "float complex")
    require(type.rank >= 2, f"{what} of `{name}` must have rank 2 or more, not {type}")
    require(type.dims[-2] == type.dims[-1], f"{what} of `{name}` must hold square matrices, not {type}")


# ---------------------------------------------------------------- Cholesky


def cholesky_type(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """The operand's type."""
    (a,) = tensors(name, operands, "a")
    _require_square(name, "`a`", a)
    get_bool(name, attributes, "lower")
    return a


def cholesky(term: Term, arrays: Sequence[Array], _: Binding) -> Array:
    """The factor in its triangle, zeros in the other, which is not read either. A matrix that is not positive definite gives NaN in
    all of the triangle (the specification leaves it open; XLA does so)."""
    lower = term.attribute("lower")
    a = _exact(arrays[0])
    factor = _lower_factor(a if lower else np.conj(np.swapaxes(a, -1, -2)))
    return narrow(factor if lower else np.conj(np.swapaxes(factor, -1, -2)), term.tensor.dtype)


def _lower_factor(a: Array) -> Array:
    """L with L L^H = a, column by column over all matrices at once."""
    size = a.shape[-1]
    result = np.zeros_like(a)
    with np.errstate(all="ignore"):
        for j in range(size):
            row = result[..., j, :j]
            column = a[..., j:, j] - np.matmul(result[..., j:, :j], np.conj(row)[..., None])[..., 0]
            pivot = np.sqrt(np.where(column[..., :1].real > 0, column[..., :1].real, np.nan))
            result[..., j, j] = pivot[..., 0]
            result[..., j + 1 :, j] = column[..., 1:] / pivot
        broken = np.isnan(result).any(axis=(-1, -2), keepdims=True)
    return np.where(broken & np.tri(size, dtype=bool), np.nan, result)


# ---------------------------------------------------------------- triangular systems


def triangular_solve_type(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """The type of b; a has its batch dims and the size of the side that it stands on."""
    a, b = tensors(name, operands, "a", "b")
    _require_square(name, "`a`", a)
    require(a.dtype == b.dtype, f"`{name}` takes operands of one element type, not {a.dtype} and {b.dtype}")
    require(a.rank == b.rank, f"`{name}` takes operands of one rank, not {a} and {b}")
    require(a.dims[:-2] == b.dims[:-2], f"`{name}` takes operands of equal batch dims, not {a} and {b}")
    left = get_bool(name, attributes, "left_side")
    for key in ("lower", "unit_diagonal"):
        get_bool(name, attributes, key)
    get_word(name, attributes, "transpose_a", TRANSPOSES)
    axis = -2 if left else -1
    require(a.dims[-1] == b.dims[axis], f"`{name}` has a of {a} on the {'left' if left else 'right'} of b, which is {b}")
    return b


def triangular_solve(term: Term, arrays: Sequence[Array], _: Binding) -> Array:
    """Substitution; only the stated triangle of a is read, and not its diagonal where it is said to be 1."""
    a, b = map(_exact, arrays)
    lower, word = term.attribute("lower"), term.attribute("transpose_a")
    if word == "ADJOINT":
        a = np.conj(a)
    if word != "NO_TRANSPOSE":
        a, lower = np.swapaxes(a, -1, -2), not lower
    if not term.attribute("left_side"):  # X A = B is A^T X^T = B^T
        a, b, lower = np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2), not lower
    x = _substituted(a, b, lower=lower, unit_diagonal=term.attribute("unit_diagonal"))
    return narrow(x if term.attribute("left_side") else np.swapaxes(x, -1, -2), term.tensor.dtype)


def _substituted(a: Array, b: Array, *, lower: bool, unit_diagonal: bool) -> Array:
    """The x of a x = b, row by row over all systems at once."""
    size = a.shape[-1]
    x = np.zeros_like(b)
    with np.errstate(all="ignore"):
        for row in range(size) if lower else reversed(range(size)):
            done = slice(0, row) if lower else slice(row + 1, size)
            rest = b[..., row, :] - np.matmul(a[..., row, None, done], x[..., done, :])[..., 0, :]
            x[..., row, :] = rest if unit_diagonal else rest / a[..., row, row, None]
    return x


# ---------------------------------------------------------------- Fourier transforms


def fft_type(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """Complex to complex; RFFT halves the last dim and makes it complex, IRFFT does the reverse."""
    (operand,) = tensors(name, operands, "operand")
    kind = get_word(name, attributes, "fft_type", FFT_TYPES)
    length = get_dims(name, attributes, "fft_length")
    require(1 <= len(length) <= 3, f"`fft_length` of `{name}` must have 1 to 3 entries, not {len(length)}")
    require(len(length) <= operand.rank, f"`fft_length` of `{name}` has {len(length)} entries, but the operand is {operand}")
    expected = COMPLEX_OF if kind == "RFFT" else REAL_OF
    require(
        operand.dtype in expected, f"`{name}` {kind} takes {' or '.join(map(str, expected))} elements, but `operand` has {operand.dtype}"
    )
    half = 0 if length[-1] == 0 else dims.add(dims.floordiv(length[-1], 2), 1)
    wanted = (*length[:-1], half) if kind == "IRFFT" else length
    last = operand.dims[operand.rank - len(length) :]
    require(last == wanted, f"`{name}` {kind} of length {length} needs an operand whose last dims are {wanted}, but it is {operand}")
    if kind == "RFFT":
        return TensorType(COMPLEX_OF[operand.dtype], (*operand.dims[:-1], half))
    return TensorType(REAL_OF[operand.dtype], (*operand.dims[:-1], length[-1])) if kind == "IRFFT" else operand


def fft(term: Term, arrays: Sequence[Array], binding: Binding) -> Array:
    """NumPy's transforms over the last dims; IFFT and IRFFT divide by the number of elements."""
    kind, length = term.attribute("fft_type"), numbers(term.attribute("fft_length"), binding)
    x, axes = arrays[0], tuple(range(-len(length), 0))
    shape = numbers(term.tensor.dims, binding)
    if 0 in shape:
        return np.zeros(shape, term.tensor.dtype.numpy)
    transforms: dict[str, Any] = {"FFT": np.fft.fftn, "IFFT": np.fft.ifftn, "RFFT": np.fft.rfftn, "IRFFT": np.fft.irfftn}
    with np.errstate(all="ignore"):
        return narrow(transforms[kind](_exact(x), s=length, axes=axes), term.tensor.dtype)
