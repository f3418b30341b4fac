"""Symbolic dims: forms that are one number for all sizes are one form, and no form means another number."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from coset.ir import dims
from coset.ir.dims import Dim, symbol

X, Y = symbol("x"), symbol("y")
DIVISORS = st.sampled_from([2, 3, 4, 5, -2, -3])


def _expressions(inner: st.SearchStrategy[Dim]) -> st.SearchStrategy[Dim]:
    return st.one_of(
        st.builds(dims.add, inner, inner),
        st.builds(dims.multiply, st.integers(-5, 5), inner),
        st.builds(dims.mod, inner, DIVISORS),
        st.builds(dims.floordiv, inner, DIVISORS),
    )


EXPRESSIONS = st.recursive(st.one_of(st.sampled_from([X, Y]), st.integers(-9, 9)), _expressions, max_leaves=6)


def _at(dim: Dim, x: int, y: int) -> int:
    return dim if isinstance(dim, int) else dims.evaluate(dim, {"x": x, "y": y})


@given(EXPRESSIONS, DIVISORS, st.integers(0, 40), st.integers(0, 40))
def test_rests_and_quotients_mean_what_python_says(dim: Dim, divisor: int, x: int, y: int) -> None:
    value = _at(dim, x, y)
    assert _at(dims.mod(dim, divisor), x, y) == value % divisor
    assert _at(dims.floordiv(dim, divisor), x, y) == value // divisor


@given(EXPRESSIONS, EXPRESSIONS, st.integers(0, 40), st.integers(0, 40))
def test_sums_and_products_are_in_one_form(one: Dim, other: Dim, x: int, y: int) -> None:
    for made in (dims.add, dims.multiply):
        found = made(one, other)
        assert _at(found, x, y) == made(_at(one, x, y), _at(other, x, y))
        assert found == made(other, one) and (isinstance(found, int) or found == dims.canonical(dict(found.terms)))
    assert dims.substitute(one, {"x": X, "y": Y}) == one
    assert dims.subtract(dims.add(one, other), other) == one


@given(EXPRESSIONS, st.integers(-5, 5), DIVISORS)
def test_a_rest_of_a_rest_is_that_rest(dim: Dim, times: int, divisor: int) -> None:
    plain = dims.mod(dim, divisor)
    assert dims.mod(plain, divisor) == plain
    assert dims.mod(dims.add(plain, times * divisor), divisor) == plain


def test_a_size_that_is_written_and_read_stays_one_form() -> None:
    """What ceil(x / 2) is computed from grew by a rest each time that it was read: two programs were not seen to be one."""
    size = dims.mod(dims.add(X, 1), 2)
    assert dims.mod(dims.add(size, 2), 2) == size


def test_a_rest_by_nothing_is_written_down() -> None:
    """The places of a tensor without elements are counted so: nobody asks for the number, and it is no error to speak of it."""
    rest = dims.mod(symbol("n"), 2)
    for dim in (symbol("n"), dims.add(rest, symbol("m")), dims.multiply(3, rest)):
        assert str(dims.mod(dim, 0))
