"""What goes to another process is the same object there: dtypes and terms are compared by identity."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import coset.dialects
import coset.ir.sent
from coset.ir.dims import symbol
from coset.ir.quantized import quantized
from coset.ir.term import PARAMETER, Region, make
from coset.ir.types import DTYPES, F32, I8, TensorType

assert coset.dialects and coset.ir.sent


def function() -> Region:
    a, b = (make(PARAMETER, (), {"index": place, "type": TensorType(F32, ())}) for place in range(2))
    return Region((a, b), (make("stablehlo.add", (a, b)),))


def sent(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_a_dtype_is_itself(dtype: Any) -> None:
    assert sent(dtype) is dtype and copy.deepcopy(dtype) is dtype


def test_types_are_equal_and_found_again() -> None:
    for found in (TensorType(F32, (symbol("n"), 3)), TensorType(F32, None), quantized(I8, F32, (0.5, 0.25), (0, 1), axis=1)):
        assert sent(found) == found and {found: 1}[sent(found)] == 1
    assert sent(TensorType(F32, (2,))).dtype is F32


def test_a_tensor_s_hash_is_made_anew() -> None:
    """Texts, which are in it, hash otherwise in another process."""
    found = TensorType(F32, (2,))
    assert b"_hash" not in pickle.dumps(found)


def test_a_function_has_the_same_terms() -> None:
    found = sent(function())
    assert found == function() and found.results[0] is function().results[0]
