"""`coset calibrate` for a GPU: its cases have prices, its paths run without one, and what it found is the target `gpu`."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from math import isfinite
from pathlib import Path

import pytest

from coset.backends.profile import MeasuredAt, opened
from coset.calibration.calibrate import CalibrationBench, as_file, calibrate
from coset.cli import run
from coset.extract.candidates import slower
from coset.extract.fit import predicted
from coset.ir.errors import CosetError
from coset.job import machine
from coset.job.machine import find_target
from coset.targets.target import all_targets, get_target

torch = pytest.importorskip("torch")

from coset.calibration import gpu as calibrate_gpu  # noqa: E402  (torch must be there)
from coset.calibration.gpu import GpuCase, calls, has_launch, on_gpu  # noqa: E402

EVERY = list(calls())
SMALL = [case for case in EVERY if case.type.static is not None and case.type.static[-1] <= 64]
GPUS = sorted(target.name for target in all_targets() if target.dialect == "torch" and "gpu" in target.bases)
torch.set_num_threads(1)  # two that wait for each other on a busy machine take seconds for microseconds
SINGLE = {"reduce", "matmul", "conv", "gather"}  # the kernels that cases speak about


def test_calls_have_keys_of_their_own() -> None:
    assert len({(case.op, case.dtype, case.shape) for case in EVERY}) == len(EVERY) > 100


@pytest.mark.parametrize("name", GPUS)
def test_each_kernel_that_is_launched_alone_is_what_some_calls_cost(name: str) -> None:
    target = get_target(name)
    base = [predicted(case.measured(1.0), target) for case in SMALL]
    assert all(isfinite(seconds) and seconds > 0 for seconds in base)
    for kernel in SINGLE:
        assert has_launch(target.kernels[kernel])
        other = replace(target, kernels={**target.kernels, kernel: slower(target.kernels[kernel], 2.0)})
        assert any(predicted(case.measured(1.0), other) > 1.2 * seconds for case, seconds in zip(SMALL, base, strict=True)), kernel
    assert not any(has_launch(target.kernels[fused]) for fused in ("pointwise", "function", "movement"))


def test_all_paths_but_the_clock_run_on_a_cpu_and_a_second_run_measures_nothing(tmp_path: Path) -> None:
    base = get_target("nvidia-h200")
    bench = on_gpu(base, "cpu", tiny=True)
    assert bench.place != machine.this_machine()
    said: list[str] = []
    with opened(tmp_path / "p.sqlite") as profile:
        first = calibrate(base, profile, bench, seconds=60, each=0.005, progress=said.append)
        again = calibrate(base, profile, bench, seconds=60, each=0.005)
    assert (first.measured, first.left, first.refused) == (len(bench.cases), 0, {}), said
    assert (again.measured, again.cases) == (0, len(bench.cases))
    (tmp_path / "tried.toml").write_text(as_file(first, base))
    found = get_target(tmp_path / "tried.toml")
    assert any(found.kernels[name].launch.value > base.kernels[name].launch.value for name in SINGLE), "a CPU takes longer"
    assert all(found.kernels[fused] == base.kernels[fused] for fused in ("pointwise", "function", "movement"))
    assert found.forms == base.forms


def test_what_one_case_cannot_do_stops_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(*_: object) -> None:
        raise MemoryError("of the device")

    base = get_target("nvidia-h200")
    bench = on_gpu(base, "cpu", tiny=True)
    monkeypatch.setattr(calibrate_gpu.torch_clock, "repeated", dies)
    with opened(tmp_path / "p.sqlite") as profile:
        found = calibrate(base, profile, bench, seconds=60, each=0.005)
    assert found.measured == found.cases == 0 and len(found.refused) == len(bench.cases)
    assert set(found.refused.values()) == {"MemoryError: of the device"}
    assert found.target.kernels == base.kernels


def test_another_gpu_is_found_from_what_it_measures(tmp_path: Path) -> None:
    base = get_target("nvidia-h200")
    there = replace(base, kernels={**base.kernels, **{name: slower(base.kernels[name], 2.0) for name in SINGLE}})

    def clock(case: object, _: float) -> tuple[float, int]:
        assert isinstance(case, GpuCase)
        return predicted(case.measured(1.0), there), 5

    bench = CalibrationBench(MeasuredAt("another", "1"), [case for case in SMALL if case.dtype == "f32"], clock, has_launch)
    with opened(tmp_path / "p.sqlite") as profile:
        found = calibrate(base, profile, bench, seconds=60, each=0.1)
    assert found.before.error > 0.4 and found.after.error < 0.15


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("arguments", [["calibrate", "--target", "nvidia-h200"], ["lower", "m.onnx", "-o", "m", "--target", "gpu"]])
def test_without_a_gpu_it_says_so(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COSET_CACHE", str(tmp_path))
    assert run(arguments) == 2
    assert "there is no GPU that torch sees" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_programs_of_an_accelerator_are_not_timed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["calibrate", "--target", "ethos-u55"]) == 2
    assert "not timed here" in capsys.readouterr().err


def test_gpu_is_the_target_that_was_calibrated_on_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COSET_CACHE", str(tmp_path))
    monkeypatch.setattr(machine, "this_gpu", lambda: MeasuredAt("a GPU", "torch 1"))
    with pytest.raises(CosetError, match="was not calibrated"):
        find_target("gpu")
    base = get_target("nvidia-h200")
    bench = CalibrationBench(
        MeasuredAt("a GPU", "torch 1"), SMALL[:6], lambda case, _: (2 * predicted(case.measured(1.0), base), 5), has_launch
    )
    with opened(tmp_path / "p.sqlite") as profile:
        found = calibrate(base, profile, bench, seconds=60, each=0.1)
    file = machine.calibrated_file("gpu")
    assert file is not None
    file.parent.mkdir(parents=True)
    file.write_text(as_file(found, base))
    kept = find_target("gpu")
    assert kept.name == "gpu-calibrated" and "a GPU" in kept.title and "nvidia-h200" in kept.bases
    assert {name: kernel.launch for name, kernel in kept.kernels.items()} == {n: k.launch for n, k in found.target.kernels.items()}
    assert find_target("nvidia-h200") is base and base.kernels["reduce"].launch != kept.kernels["reduce"].launch


def test_torch_is_imported_only_where_a_gpu_is_asked_for() -> None:
    code = "import sys, coset.cli, coset.calibration.calibrate, coset.job.machine; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
