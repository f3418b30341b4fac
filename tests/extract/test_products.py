"""Many products at once cost what each costs alone."""

from __future__ import annotations

import numpy as np
import pytest

import coset.dialects
from coset.egraph.chains import product
from coset.extract.plain import saturated_of
from coset.extract.products import product_seconds
from coset.extract.select import reprice
from coset.ir.term import input_term
from coset.ir.types import F32, tensor
from coset.targets.target import Target, all_targets

assert coset.dialects and saturated_of


@pytest.mark.parametrize("target", all_targets(), ids=lambda t: t.name)
@pytest.mark.parametrize("batch", [1, 6])
def test_the_vector_formula_is_the_pricers(target: Target, batch: int) -> None:
    rng = np.random.default_rng(0)
    cost = product_seconds(target)
    for _ in range(40):
        m, k, n = (int(v) for v in np.exp(rng.uniform(0, 7, 3)).astype(int) + 1)
        lead = (batch,) if batch > 1 else ()
        left, right = input_term("a", tensor(F32, *lead, m, k)), input_term("b", tensor(F32, *lead, k, n))
        alone = reprice([product(left, right, batched=batch > 1)], target, {})
        assert cost(F32, batch, m, np.array([k]), n)[0] == pytest.approx(alone, rel=1e-9)
