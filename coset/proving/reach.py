"""Which elements of the inputs reach which elements of the outputs: an infinity or a NaN in one makes those no numbers, and no others.

Two programs of sums and products alone that are equal as polynomials are so on infinite inputs too, up to an exchange of an infinity and a
NaN, where the same elements reach the same outputs: `x - x` and `0` are equal as polynomials, and are not. Each element is a NaN in turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from coset.ir.evaluate import evaluate
from coset.ir.term import INPUT, topological
from coset.proving.constants import Goal
from coset.rules.definition import evaluate_defined

MOST = 1 << 11  # elements of inputs that are tried: each takes a run of both programs


def reach_alike(goals: Sequence[Goal]) -> bool:
    """Whether the same elements of the inputs are seen to reach the same elements of both terms of each goal; not where there are too many.

    All types have numbers for dims; the inputs of both sides are called alike.
    """
    types = {term.attribute("name"): term.tensor for term in topological([root for goal in goals for root in goal]) if term.op is INPUT}
    floats = {name: type for name, type in types.items() if type.dtype.kind == "float"}
    if sum(prod(type.static or ()) for type in floats.values()) > MOST:
        return False
    feed = {name: np.ones(type.static or (), type.dtype.numpy) for name, type in types.items()}
    for name in floats:
        for place in range(feed[name].size):
            probe = feed[name].copy()
            probe.reshape(-1)[place] = np.nan
            with np.errstate(all="ignore"):
                one, other = (evaluate(side, {**feed, name: probe}, fallback=evaluate_defined) for side in zip(*goals, strict=True))
            if any(not np.array_equal(np.isnan(left), np.isnan(right)) for left, right in zip(one, other, strict=True)):
                return False
    return True
