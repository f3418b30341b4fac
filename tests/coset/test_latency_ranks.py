"""`benchmarks.latency_ranks`: what it counts and says. Nothing is timed."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.latency_ranks import line, spearman, summary, text


def row(name: str, *programs: tuple[float, float, float], **more: Any) -> dict[str, Any]:
    """A graph whose programs are (predicted there, predicted here, measured), ms."""
    made = [{"origin": str(n), "there_ms": a, "here_ms": b, "ms": c} for n, (a, b, c) in enumerate(programs)]
    return {"name": name, "programs": made, "wrong": {}, "refusal": "", "pairs": [], **more}


def pair(there: float, here: float, measured: float) -> dict[str, Any]:
    return {"programs": ["0", "1"], "there": there, "here": here, "measured": {"value": measured, "low": measured, "high": measured}}


def test_ranks_across_graphs_and_within_them_are_counted_apart() -> None:
    rows = [row("a", (1, 1, 1), (2, 2, 3), (3, 3, 2)), row("b", (10, 30, 10), (9, 20, 9), (8, 10, 8)), row("c", (5, 5, 50), (5, 4, 40))]
    found = summary(rows)
    assert (found["graphs"], found["programs"]) == (3, 8)
    assert found["there"]["within"] == pytest.approx((0.5 + 1.0) / 2) and found["there"]["graphs within"] == 2
    assert found["there"]["inputs"] == pytest.approx(0.5) and found["here"]["inputs"] == pytest.approx(0.5)


def test_equal_predictions_are_not_right_and_have_no_rank() -> None:
    assert spearman(row("a", (1, 1, 1), (1, 2, 3))["programs"], "there_ms") is None
    found = summary([row("a", (1, 1, 1), (1, 2, 3), pairs=[pair(1.0, 0.5, 0.33), pair(2.0, 2.0, 1.01), pair(2.0, 0.5, 2.0)])])
    assert found["pairs told apart"] == 2
    assert (found["there"]["right"], found["there"]["equal"]) == (1, 1) and found["here"]["right"] == 1


def test_what_is_left_out_is_said() -> None:
    said = line(row("a", (1, 1, 1), wrong={"cpu 1": 0.5}, refusal="it cannot run this program: `a.b`: `a.b` has no ONNX form"))
    assert "cpu 1 is off by 5.0e-01" in said and said.endswith("for what is chosen for the target: a.b)")
    assert "nvidia-a100" in text(summary([row("a", (1, 1, 1))]), "nvidia-a100")
