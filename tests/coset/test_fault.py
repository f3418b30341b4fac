"""A package that differs from its model is refused with the kernel at fault: planted wrong kernels of every family are named."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset import cli, lower
from coset.dialects.hub_terms import broadcast, dot, splat
from coset.egraph.limits import Limits
from coset.fault import BATCH_BYTES, Fault, shows
from coset.flow import Refused
from coset.frontends import stablehlo  # noqa: F401
from coset.ir.program import Program
from coset.ir.term import Term, make
from coset.ir.types import F32, I32
from coset.lower import Check
from coset.lowering import aten_kernel, triton
from coset.lowering.kernel import Kernel, Pointwise, Product, Rows, Scan, Scatter, Sort, stores_of
from coset.lowering.triton_launch import Emission
from coset.machine import get_target
from tests.lowering.plan_cases import op, scatter_rows, x_

pytest.importorskip("triton")


def families() -> Program:
    """A kernel of each family, which each read the one before."""
    x, w, v, places = x_("x", F32, 6, 16), x_("w", F32, 16, 16), x_("v", F32, 16, 16), x_("places", I32, 6)
    value = op("tanh", dot(x, w, lhs_contract=(1,), rhs_contract=(0,)))
    row = op("reduce", value, dimensions=(1,), combiner="maximum")
    value = op("subtract", value, broadcast(row, (6, 16), (0,)))
    value = op("sort", value, dimension=1, direction="LT")
    one = (1, 1)
    value = op("reduce_window", value, window_dimensions=(1, 16), window_strides=one, base_dilations=one, window_dilations=one,
               padding=((0, 0), (15, 0)), combiner="add")  # fmt: skip
    value = scatter_rows(value, places, op("negate", value))
    both = op("concatenate", dot(value, v, lhs_contract=(1,), rhs_contract=(0,)), op("abs", value), dimension=0)
    return Program((x, w, v, places), (("y", both), ("z", splat(1.0, F32, (2,)))))


def asked(program: Any, check: Check) -> lower.Lowering:
    return lower.Lowering(program, get_target("nvidia-h200"), limits=Limits(seconds=20, nodes=2000), check=check, dims={})


def planted(monkeypatch: pytest.MonkeyPatch, kind: type[Kernel], number: int = 0) -> list[str]:
    """Make the Triton function of one kernel of a kind store a little more than it should; its name, once it was emitted."""
    names: list[str] = []
    right = triton._EMITTERS[kind]

    def wrong(kernel: Any, *rest: Any) -> Emission:
        found = right(kernel, *rest)
        if kernel.name not in names:
            names.append(kernel.name)
        if names.index(kernel.name) != number:
            return found
        lines = found.source.split("\n")
        at = next(place for place, line in enumerate(lines) if line.strip().startswith("tl.store("))
        head, _, tail = lines[at].partition(", ")
        lines[at] = f"{head}, 1.0 + {tail}"
        return replace(found, source="\n".join(lines))

    monkeypatch.setitem(triton._EMITTERS, kind, wrong)
    return names


@pytest.mark.parametrize(
    ("kind", "number"), [(Product, 0), (Product, 1), (Rows, 0), (Sort, 0), (Scan, 0), (Scatter, 0), (Pointwise, 0)],
    ids=lambda value: getattr(value, "__name__", str(value)),
)  # fmt: skip
def test_a_wrong_triton_function_is_named(kind: type[Kernel], number: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    names = planted(monkeypatch, kind, number)
    with pytest.raises(Refused) as caught:
        lower.lower(asked(families(), Check.INTERPRETED), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    fault = caught.value.fault
    assert fault is not None and fault["kernel"] == names[number] and fault["function"]
    assert 0.5 < fault["max_abs"] < 1.5 and fault["tolerance"] < 0.1 and fault["inputs"]
    text = str(caught.value)
    assert f"kernel `{names[number]}`" in text and f"it stores `{fault['buffer']}`" in text and f"{fault['inputs']} inputs" in text
    assert "Triton function" in text and "--disable-rule" in text


@pytest.mark.parametrize("kind", [Product, Rows, Sort, Scatter], ids=lambda kind: kind.__name__)
def test_a_wrong_torch_function_is_named(kind: type[Kernel], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where kernels are compared as torch functions, and in the plan of both."""
    names: list[str] = []
    right = aten_kernel._Function._store

    def wrong(self: Any, store: Any, own: Any) -> None:
        if isinstance(self.kernel, kind) and (not names or names[0] == self.kernel.name):
            names[:] = [self.kernel.name]
            self.lines.append("# planted")
            right(self, store, own)
            self.lines.append(f"{store.buffer}.add_(1)")
        else:
            right(self, store, own)

    monkeypatch.setattr(aten_kernel._Function, "_store", wrong)
    with pytest.raises(Refused) as caught:
        lower.lower(asked(families(), Check.TORCH), tmp_path / "out")
    assert caught.value.fault is not None and caught.value.fault["kernel"] == names[0] and not caught.value.fault["function"]
    assert "Triton function" not in str(caught.value)
