"""`coset calibrate`: what it times, what it keeps, and that the target `cpu` is then what was measured."""

from __future__ import annotations

import json
from math import isfinite, prod
from pathlib import Path

import pytest

from coset.backends.profile import MeasuredAt, opened
from coset.calibration import calibrate
from coset.calibration.cases import SHORT, CalibrationCase, cases
from coset.cli import run
from coset.extract.fit import MeasuredLink, predicted
from coset.ir.errors import CosetError
from coset.job import machine
from coset.job.machine import find_target
from coset.lowering.onnx.model import count_ops
from coset.targets.target import get_target

EVERY = list(cases())
SMALL = [case for case in EVERY if prod(case.type.static or ()) <= 1 << 16 and "2048" not in case.shape]


def test_cases_have_keys_of_their_own() -> None:
    assert len({(case.op, case.dtype, case.shape) for case in EVERY}) == len(EVERY) > 200


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
def test_a_longer_chain_has_more_nodes_and_a_price(case: CalibrationCase) -> None:
    """What the writer or the prices take for one node however long the chain is would be measured as nothing."""
    lengths = (SHORT, SHORT + 1)
    short, long = (case.chain(length) for length in lengths)
    assert sum(count_ops(long).values()) > sum(count_ops(short).values())
    seconds = predicted(MeasuredLink(case.name, (short.roots, long.roots), lengths, 1.0), get_target("cpu-onnxruntime"))
    assert isfinite(seconds) and seconds > 0


def test_links_are_timed() -> None:
    case = next(case for case in EVERY if case.name == "stablehlo.dot_general f32[64x256x256 and back]")
    seconds, rounds = calibrate.link_seconds(case, 0.02)
    assert 0 < seconds < 1 and rounds >= 2


def test_a_profile_keeps_devices_apart(tmp_path: Path) -> None:
    here, there = MeasuredAt("a processor", "1.0"), MeasuredAt("a processor", "1.1")
    with opened(tmp_path / "new" / "p.sqlite") as profile:
        profile.put(here, "op", "f32", "8", 1e-6, 3)
        profile.put(here, "op", "f32", "8", 2e-6, 4)
        profile.put(there, "op", "f32", "8", 5e-6, 3)
    with opened(tmp_path / "new" / "p.sqlite") as profile:
        (row,) = profile.rows(here)
        assert (row.op, row.dtype, row.shape, row.seconds, row.rounds) == ("op", "f32", "8", 2e-6, 4)


@pytest.mark.parametrize("content", [b"no database at all, but long enough to be looked at as one", None])
def test_what_is_no_profile_is_refused(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "p.sqlite"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    with pytest.raises(CosetError, match="cannot be used"), opened(path) as profile:
        profile.rows(MeasuredAt("", ""))


def test_a_run_goes_on_where_one_was_cut_off_and_cpu_is_what_it_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COSET_CACHE", str(tmp_path))
    few = [case for case in SMALL if case.op in ("stablehlo.add", "stablehlo.tanh", "onnx.Softmax")]
    timed: list[str] = []

    def twice_as_long(case: CalibrationCase, _: float) -> tuple[float, int]:
        if len(timed) == 4:
            raise KeyboardInterrupt
        timed.append(case.name)
        lengths = (SHORT, SHORT + 1)
        chains = (case.chain(SHORT).roots, case.chain(SHORT + 1).roots)
        return 2 * predicted(MeasuredLink(case.name, chains, lengths, 1.0), get_target("cpu-onnxruntime")), 2

    monkeypatch.setattr(calibrate, "cases", lambda: iter(few))
    monkeypatch.setattr(calibrate, "link_seconds", twice_as_long)
    assert find_target("cpu") is get_target("cpu-onnxruntime")
    assert run(["calibrate"]) != 0 and len(timed) == 4
    file = machine.calibrated_file()
    assert file is not None and not file.exists()
    monkeypatch.setattr(calibrate, "link_seconds", lambda case, each: (timed.clear(), twice_as_long(case, each))[1])
    capsys.readouterr()
    assert run(["calibrate", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["cases"], answer["measured"], answer["left"]) == (len(few), len(few) - 4, 0)
    assert answer["held_back"]["after"]["median_relative_error"] < answer["held_back"]["before"]["median_relative_error"] / 2
    found = find_target("cpu")
    assert found.kernels["tanh"].rate("f32") != get_target("cpu-onnxruntime").kernels["tanh"].rate("f32")
    assert "`coset calibrate`" in found.kernels["add"].launch.source
    assert found.forms == get_target("cpu-onnxruntime").forms
    assert run(["optimize", str(_model(tmp_path)), "-o", str(tmp_path / "o.onnx"), "--target", "cpu", "--json"]) == 0


def _model(folder: Path) -> Path:
    from coset.lowering.onnx.model import write

    write(SMALL[0].chain(2), folder / "m.onnx")
    return folder / "m.onnx"


def test_a_damaged_calibration_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COSET_CACHE", str(tmp_path))
    file = machine.calibrated_file()
    assert file is not None
    file.parent.mkdir(parents=True)
    file.write_text('base = "cpu-onnxruntime"\ntitle = 3\n')
    with pytest.raises(CosetError, match="calibrated on this machine cannot be read") as caught:
        find_target("cpu")
    assert "coset calibrate" in caught.value.help
    assert find_target("cpu-onnxruntime") is get_target("cpu-onnxruntime")


def test_without_a_cache_files_must_be_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COSET_CACHE", "")
    assert run(["calibrate"]) == 2
    assert "--output" in capsys.readouterr().err
    assert find_target("cpu") is get_target("cpu-onnxruntime")
