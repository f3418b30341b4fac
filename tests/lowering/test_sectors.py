"""What kernels move where dims lie in another order: whole sectors of 32 bytes, by as many programs as there are."""

from __future__ import annotations

from dataclasses import replace

import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.dialects.hub.terms import broadcast
from coset.ir.program import Program
from coset.ir.term import Term, input_term
from coset.ir.types import F16, F32, DType, TensorType
from coset.lowering.arranging.layouts import features_last, laid_out
from coset.lowering.kernels.kernel import Plan, Pointwise, Rows
from coset.lowering.planning.kinds import KernelLimits
from coset.lowering.planning.plan import plan
from coset.lowering.planning.traffic import kernel_traffic
from coset.lowering.triton.sectors import is_in_order, moved_sectors
from coset.lowering.triton.source import can_emit
from tests.coset.test_features_last import normalized
from tests.lowering.test_triton_windows import op

PROCESSORS = 132


WHOLE = KernelLimits(step_bytes=0)  # no rows are made in parts


def planned(y: Term, x: Term, limits: KernelLimits = WHOLE) -> Plan:
    return plan(Program((x,), (("y", y),)), computes=can_emit, limits=limits)


def share_of(made: Plan) -> tuple[float, float]:
    """The bytes moved in sectors, in those that the only kernel touches, and the share of processors that it has programs for."""
    (kernel,) = made.kernels
    assert isinstance(kernel, Pointwise | Rows)
    moved, processors = moved_sectors(made, kernel, {}, PROCESSORS)
    return moved / kernel_traffic(made, kernel, {}), processors


@pytest.mark.parametrize(("dtype", "features", "more"), [(F16, 320, 96 / 80), (F16, 256, 1.0), (F16, 64, 2.0), (F32, 64, 1.0)])
def test_statistics_of_groups(dtype: DType, features: int, more: float) -> None:
    """Eight groups, read along their features and then along space: runs of 40, 32 and 8 elements. Read along space alone each element
    comes with a sector."""
    x = input_term("x", TensorType(dtype, (8, features, 32, 32)))
    made = planned(normalized(x, 8), x)
    assert not is_in_order(made, made.kernels[0])
    orders = {name: features_last(4) for name, buffer in made.buffers.items() if len(buffer.shape) == 4}
    followed = laid_out(made, orders)
    assert is_in_order(followed, followed.kernels[0])
    assert share_of(followed) == (pytest.approx(more), 1.0)
    across = replace(followed, kernels=made.kernels)
    assert share_of(across) == (pytest.approx(32 / dtype.bytes), 1.0)


def test_statistics_of_each_feature_have_few_programs() -> None:
    """Rows that lie beside each other are read 64 at once."""
    x = input_term("x", TensorType(F16, (4, 512, 16, 16)))
    made = planned(op("reduce", x, dimensions=(0, 2, 3), combiner="add"), x)
    moved, processors = share_of(laid_out(made, {"x": features_last(4)}))
    assert moved == pytest.approx(1.0) and processors == pytest.approx(512 / 64 / PROCESSORS)


def test_elements_that_are_turned_go_in_tiles() -> None:
    """Read with features first and written with features last, each along its own neighbours. Where there are too few features for a tile a
    warp has 17 neighbours in space of each of 15 features."""
    for features, more in ((64, 1.0), (15, (64 / 34 + 512 / 510) / 2)):
        x = input_term("x", TensorType(F16, (8, features, 32, 32)))
        made = planned(
            op("add", x, broadcast(op("reduce", x, dimensions=(0, 1, 2, 3), combiner="add"), x.tensor.dims, ())), x, KernelLimits()
        )
        made = laid_out(made, {"y": features_last(4)})
        assert share_of(replace(made, kernels=made.kernels[-1:]))[0] == pytest.approx(more, rel=1e-3)
