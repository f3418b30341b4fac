"""Loops of JAX and ONNX as one kernel each: whole packages in Triton's interpreter, compared with their reference, and which form pays."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")
pytest.importorskip("jax")

from benchmarks.recurrent_programs import Layer, Scan, scans
from coset.egraph.limits import Limits
from coset.packaging import lower
from coset.packaging.asked import Check, Lowering
from coset.pricing.looping import Loops
from coset.pricing.machine import Machine
from coset.pricing.plan_price import PlanPrices
from coset.targets.target import get_target
from tests.sampled import sampled

TINY = scans(7, 3, 8, 16)


def lowered(program: Scan | Layer, folder: Path, *, numerics: str = "reassociates", code: str = "triton") -> list[str]:
    """The names of the package's kernels; it gave what the program means."""
    check = Check.INTERPRETED if code == "triton" else Check.TORCH
    limits, target = Limits(seconds=20, nodes=4000), get_target("nvidia-h200")
    asked = Lowering(program.write(folder), target, numerics, limits, code=code, check=check)
    report = lower.lower(asked, folder / "out")
    assert report["check"]["ok"]
    return [kernel["name"] for kernel in report["kernels"]]


def recurrences(names: list[str]) -> int:
    return sum("recurrence" in name for name in names)


@pytest.fixture
def one_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops are kernels whatever they cost."""
    monkeypatch.setattr(Loops, "_pays", lambda *_: True)


@pytest.mark.parametrize("name", sampled(TINY, 2))
def test_scans(name: str, tmp_path: Path, one_kernel: None) -> None:
    """What rounds make of no state is a product before them, what no state needs one behind them, or two for gradients of weights."""
    found = lowered(TINY[name], tmp_path)
    others = {"RNN": 1, "LSTM": 1, "projected RNN": 2, "RNN's gradient": 3}
    assert recurrences(found) == (2 if name == "RNN's gradient" else 1)
    assert others.get(name, 0) <= len(found) - recurrences(found) <= others.get(name, 0) + (name == "RNN's gradient")


@pytest.mark.parametrize("name", sampled(["moving average", "state space", "RNN", "LSTM"]))
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_scans_of_half_precision(name: str, dtype: str, tmp_path: Path, one_kernel: None) -> None:
    assert recurrences(lowered(scans(5, 2, 8, 16, dtype)[name], tmp_path, numerics="exact")) == 1


def test_exact_sums_of_rounds_are_made_in_their_order(tmp_path: Path, one_kernel: None) -> None:
    """Gradients of weights stay in the loop where sums may not be made anew: that loop is no kernel and is unrolled."""
    found = lowered(TINY["RNN's gradient"], tmp_path, numerics="exact", code="torch")
    assert recurrences(found) == 1


@pytest.mark.parametrize(("kind", "length", "ends"), sampled(itertools.product(("LSTM", "GRU", "RNN"), (6, None), (False, True)), 5))
def test_recurrent_layers(kind: str, length: int | None, ends: bool, tmp_path: Path) -> None:
    """Both directions, lengths that are known or not, sequences of one length or of their own."""
    found = lowered(Layer(kind, length, 2, 5, 8, "bidirectional", ends), tmp_path)
    assert recurrences(found) == 2
    assert not any("while" in name for name in found)


@pytest.mark.parametrize("code", ["torch", "aten"])
def test_code_without_triton(code: str, tmp_path: Path) -> None:
    found = lowered(TINY["LSTM"], tmp_path, code=code)
    assert recurrences(found) == (1 if code == "torch" else 0)


def test_the_form_is_chosen_by_its_predicted_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same RNN as one kernel; and unrolled where a round of a kernel is said to take a millisecond."""
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    assert recurrences(lowered(TINY["RNN"], tmp_path / "first", code="torch")) == 1
    number = Machine.number
    monkeypatch.setattr(Machine, "number", lambda self, name: 1e-3 if name == "round" else number(self, name))
    assert recurrences(lowered(TINY["RNN"], tmp_path / "second", code="torch")) == 0


def test_rounds_that_wait_for_launches_are_not_even_planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each round of an RNN is a launch at least."""
    monkeypatch.setattr(
        "coset.pricing.looping.products_of_rounds", lambda *_, **__: pytest.fail("rounds one after the other were looked at")
    )
    assert recurrences(lowered(scans(200, 3, 8, 16)["RNN"], tmp_path, code="torch")) == 1


def test_matrices_that_a_program_does_not_hold_stay_products(tmp_path: Path) -> None:
    found = lowered(scans(4, 3, 8, 80)["RNN"], tmp_path, code="torch")
    assert recurrences(found) == 0 and len(found) >= 5


def test_prices_grow_with_rounds_and_with_what_waits() -> None:
    """Each round takes what one takes at least, each fold that a state waits for more."""
    from coset.lowering.planning.plan import plan
    from tests.lowering.plan_cases import CASES

    prices = PlanPrices(get_target("nvidia-h200"), {"s": 100, "n": 5})
    longer = PlanPrices(get_target("nvidia-h200"), {"s": 200, "n": 5})
    made = plan(CASES["recurrent_layer"]()[0])
    first, second = (each.kernel(made, made.kernels[0]) for each in (prices, longer))
    assert 1.9 < (second - 3e-6) / (first - 3e-6) < 2.1
    assert first > 100 * 4e-7 + 3e-6
    work = prices.work(made, made.kernels[0])
    assert work.share < 0.1  # one program: the others of the machine are free for what stands beside it
