"""`benchmarks.cpu_models`: what times say, what a run keeps of one before it, how a form by hand is made again. Nothing is timed."""

from __future__ import annotations

import json
from math import isclose
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from benchmarks import beside, cpu_models, verdict
from coset.comparing.timing import Timing
from coset.targets.running import KEY, Running


def timing(*medians: float) -> Timing:
    return Timing(np.asarray(medians), np.asarray(medians), 5 * len(medians))


def steady(**seconds: float) -> dict[str, Timing]:
    """Programs that take the same time in each of five rounds."""
    return {name: timing(*[value] * 5) for name, value in seconds.items()}


def row(name: str = "m", **seconds: float) -> dict[str, Any]:
    return {"name": name, **verdict.judged(steady(**seconds))}


def test_the_rival_is_the_fastest_of_the_runtimes_own_and_never_the_form_by_hand() -> None:
    found = row(off=3.0, basic=2.5, all=2.0, onnxsim=1.5, onnxscript=1.75, hand=1.0, coset=1.2)
    assert found["best_rival"] == "onnxsim"
    assert found["slowdown"]["value"] == pytest.approx(0.8)
    assert found["gain"]["value"] == pytest.approx(2.0 / 1.2)
    assert found["headroom"]["value"] == pytest.approx(1.5)
    assert not verdict.slower(found)


@pytest.mark.parametrize(
    ("coset", "slower"),
    [((1.03,) * 5, True), ((1.01,) * 5, False), ((0.9,) * 5, False), ((0.5, 1.2, 1.3, 1.2, 0.5), False), ((1.2, 1.3, 1.1, 1.2, 1.4), True)],
    ids=["just over", "just under", "faster", "who knows", "noisy and slower"],
)
def test_slower_means_that_the_whole_interval_says_so(coset: tuple[float, ...], slower: bool) -> None:
    found = {"name": "m", **verdict.judged({"all": timing(*[1.0] * 5), "coset": timing(*coset)})}
    assert verdict.slower(found) is slower


@pytest.mark.parametrize(
    ("hand", "coset", "share"),
    [(0.5, 0.5, 1.0), (0.25, 0.5, 0.5), (0.5, 1.0, 0.0), (0.5, 0.25, 2.0), (0.5, 2.0, -1.0), (0.99, 0.5, None), (1.5, 0.5, None)],
)
def test_the_share_of_the_headroom_is_in_logarithms(hand: float, coset: float, share: float | None) -> None:
    found = row(all=1.0, hand=hand, coset=coset)["share"]
    assert found is None if share is None else isclose(found, share, abs_tol=1e-12)


def test_the_mean_is_geometric_and_over_those_that_have_a_gain() -> None:
    rows = [row(all=4.0, coset=1.0), row(all=1.0, coset=1.0), row(off=9.0, coset=1.0), {"name": "x", "error": "no"}]
    assert verdict.mean_gain(rows) == pytest.approx(2.0)
    assert verdict.mean_gain(rows[2:]) is None


def test_the_summary_names_every_miss_and_what_was_not_compared() -> None:
    rows = [
        row("good", all=2.0, hand=1.0, coset=1.0),
        row("slow", all=1.0, coset=1.5),
        row("short", all=2.0, hand=1.0, coset=1.9),
        {"name": "wrong", "wrong": {"coset": 0.25}, "failed": {}, "tolerance": 1e-3},
        {"name": "crashed", "error": "coset: status 139"},
    ]
    said = verdict.summary(rows).splitlines()
    blocks = {line.split(":")[0]: place for place, line in enumerate(said) if line and not line.startswith(" ")}
    slow = next(place for head, place in blocks.items() if head.startswith("slower"))
    assert said[slow].endswith(": 1") and said[slow + 1].split()[0] == "slow"
    under = next(place for head, place in blocks.items() if head.startswith("headroom"))
    assert "above 1.02: 2" in said[under] and said[under].endswith(": 1") and said[under + 1].split()[0] == "short"
    assert said[-2].strip().startswith("wrong (coset is off by 2.5e-01") and said[-1].strip() == "crashed (coset: status 139)"


def test_a_run_goes_on_where_one_before_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    rows = [{"name": "done", "ms": {}}, {"name": "failed", "error": "x", "ms": {}}, {"name": "untimed", "report": {}}]
    assert cpu_models.finished(path, timing=True) == {} == cpu_models.finished(None, timing=True)
    path.write_text(json.dumps({"rows": rows}))
    assert set(cpu_models.finished(path, timing=True)) == {"done"}
    assert set(cpu_models.finished(path, timing=False)) == {"done", "untimed"}


def test_a_line_says_what_was_refused_wrong_or_failed() -> None:
    report = {
        "nodes": {"before": 3, "after": 2}, "cost": {"input": 1.0, "output": 0.5}, "peak_mib": 99, "seconds": {"total": 2.0, "check": 0.5},
        "egraph": {"enodes": 9, "stop": "saturated"}, "session": {"refused": [{"level": "all", "problem": "output `y` is off"}]},
    }  # fmt: skip
    found = {**row(off=3.0, all=2.0, hand=1.0, coset=1.2), "report": report, "ms": {"off": 3.0, "all": 2.0, "hand": 1.0, "coset": 1.2}}
    found |= {"wrong": {"onnxsim": 0.5}, "failed": {"onnxscript": "no such op"}, "tolerance": 1e-3}
    head, *rest = cpu_models.line(found).splitlines()
    assert "!" in head and " - " in head and "74%" in head  # ln(2 / 1.2) / ln(2)
    assert [text.split(":")[0].strip() for text in rest] == ["not run at level all", "wrong", "failed"]
    assert cpu_models.line({"name": "x", "report": {"error": "error: no"}}).endswith("error: no")


def graph(op: str, **metadata: str) -> onnx.ModelProto:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    proto = helper.make_model(helper.make_graph([helper.make_node(op, ["x"], ["y"])], op, [x], [y]), ir_version=8)
    proto.opset_import[0].version = 17
    helper.set_model_props(proto, metadata)
    return proto


def test_a_form_by_hand_is_the_one_that_was_named() -> None:
    naive, forms = graph("Tanh"), {"short": graph("Relu"), "short and sweet": graph("Abs")}
    for form, op in (("short", "Relu"), ("short and sweet", "Abs"), ("clean", "Tanh")):
        assert beside.by_hand(naive, forms, {"form": form, "surgeries": []}).graph.node[0].op_type == op
    with pytest.raises(ValueError, match="change nothing"):
        beside.by_hand(naive, forms, {"form": "short + fold", "surgeries": ["fold_constants"]})


def test_the_result_is_timed_as_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(beside, "open_ort", lambda path, options: seen.append(options))
    onnx.save(graph("Tanh", **{KEY: Running("basic", ("A",), 1, (("session.dynamic_block_base", "4"),)).text()}), tmp_path / "a.onnx")
    onnx.save(graph("Tanh"), tmp_path / "b.onnx")
    beside.as_stored(tmp_path / "a.onnx")
    options = seen[0]
    assert (options.level, options.disabled, options.threads) == ("ORT_ENABLE_BASIC", ("A",), 1)
    assert options.entries == (("session.dynamic_block_base", "4"),)
    with pytest.raises(ValueError, match="carries no options"):
        beside.as_stored(tmp_path / "b.onnx")


def test_what_no_clock_can_tell_apart_is_no_loss() -> None:
    found = verdict.judged({"all": timing(1.0, 2.0, 1.0, 2.0, 1.0), "coset": timing(1.0, 2.0, 1.0, 2.0, 1.0)})
    assert found["slowdown"] == {"value": 1.0, "low": 1.0, "high": 1.0}
