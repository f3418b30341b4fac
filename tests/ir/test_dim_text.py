"""Dims as text: read back as they were written, and from no other text."""

from __future__ import annotations

import pytest

from coset.ir.dim_text import parse
from coset.ir.dims import Poly, add, ceildiv, floordiv, maximum, minimum, mod, multiply, symbol
from coset.ir.errors import CosetError

N, M = symbol("n"), symbol("m.x:1/@")
WRITTEN = [
    N, M, multiply(-1, N), add(N, 3), add(multiply(-2, N), -3), multiply(multiply(N, N), M), add(multiply(3, multiply(N, M)), add(N, -1)),
    floordiv(add(N, 7), 2), mod(N, 3), maximum(N, M), minimum(4, N), ceildiv(N, 2), floordiv(N, -2), floordiv(mod(add(N, M), 5), M),
    multiply(floordiv(N, 2), add(mod(M, 3), 0)), add(floordiv(floordiv(N, 2), M), multiply(2, maximum(1, minimum(N, M)))),
]  # fmt: skip


@pytest.mark.parametrize("dim", WRITTEN, ids=str)
def test_a_dim_is_read_as_it_was_written(dim: Poly) -> None:
    assert parse(str(dim)) == dim


UNWRITTEN = [
    "", " ", "3", "-3", "n ", " n", "n+1", "1 + n", "+n", "n - -1", "n*1", "1*n", "n*2", "(n)", "2*(n + 1)", "n n", "n +",
    "n*", "*n", "n % 2", "floordiv(n, 2", "floordiv(n 2)", "floordiv(n, 2, 3)", "floordiv(n,2)", "floordiv(4*n, 2)", "abs(n, 1)",
    "max(n, n)", "max(n, m)", "mod(mod(n, 0), 0)", "mod(n)", "n)", "n, m", "n$", "n\n", "--n", "٣*n", "(n + 1)*(n + 2)", 
    "floordiv(2*n + 2*m, 2)*n", "mod(n, 0)", "floordiv(n, 0)",
]  # fmt: skip


@pytest.mark.parametrize("text", UNWRITTEN, ids=repr)
def test_no_other_text_is_a_dim(text: str) -> None:
    with pytest.raises(CosetError):
        parse(text)


def test_a_product_of_sums_is_not_written_out() -> None:
    """Twenty sums of two symbols would be a million terms."""
    text = "*".join(f"floordiv(2*a{i} + 2*b{i}, 2)" for i in range(20))
    with pytest.raises(CosetError, match="factor"):
        parse(text)
