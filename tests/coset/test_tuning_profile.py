"""What a profile of `coset tune` says: which choice, which program, from which place; what `coset lower` makes of it."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset.backends.profile import MeasuredAt
from coset.backends.profile import opened as measured
from coset.backends.triton_runtime import Runner
from coset.backends.tuning_profile import CompilerFacts, Raced, Timed, Tunings, opened, reading
from coset.calibration.cases import constant_term
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.types import F32
from coset.lowering.triton.choice import KernelChoice, MeasuredChoice
from coset.packaging.asked import Check, Lowering
from coset.packaging.chosen import advice, best, default_row, fastest
from coset.packaging.lower import lower
from coset.packaging.programs import digest_of, model_key
from coset.targets.target import get_target
from coset.tuning import tune as tune_module
from coset.tuning.measuring import KernelBench
from coset.tuning.tune import prepare, tune_model
from tests.coset.tuning_bench import PLACE, ROOT, TARGET, FakeBench, asked, model, quicker, several, tuned
from tests.lowering.plan_cases import op, x_

pytest.importorskip("triton", reason="Triton is not installed")
pytestmark = pytest.mark.slow


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Tunings]:
    with opened(tmp_path / "profile.sqlite") as found:
        yield found


# ---------------------------------------------------------------- what is chosen


def test_the_choice_is_the_one_whose_interval_is_below_the_default_and_whose_ratio_is_the_least() -> None:
    rows = {
        "A=1 warps=4 stages=3": Timed(1.0, 0.7, 0.6, 1.01, 5),
        "A=2 warps=4 stages=3": Timed(1.0, 0.9, 0.85, 0.95, 5),
        "A=4 warps=4 stages=3": Timed(1.0, 0.8, 0.75, 0.99, 5),
        "A=8 warps=4 stages=3": Timed(1.0, 0.1, 0.1, 0.1, 5, "other values"),
    }
    assert best(rows) == MeasuredChoice(KernelChoice.read("A=4 warps=4 stages=3"), 1.25)
    assert best(dict(reversed(rows.items()))) == best(rows)
    rows["A=2 warps=8 stages=3"] = replace(rows["A=4 warps=4 stages=3"])
    assert best(rows) == MeasuredChoice(KernelChoice.read("A=2 warps=8 stages=3"), 1.25), "of equal ones the first by its text"
    slow = {"A=1 warps=4 stages=3": rows["A=1 warps=4 stages=3"]}
    assert best(slow) is None
    assert best({**slow, "A=16 warps=4 stages=3": default_row(1.0)}) == MeasuredChoice(KernelChoice.read("A=16 warps=4 stages=3"), 1.0)
    won = [Raced("b", 2, Timed(1, 0.8, 0.7, 0.9, 5)), Raced("a", 0, Timed(1, 1.0, 1.0, 1.0)), Raced("c", 1, Timed(1, 0.5, 0.4, 1.2, 5))]
    assert fastest(tuple(won)) == won[0] and fastest(tuple(won[1:])) is None
    assert fastest((Raced("d", 3, Timed(1, 0.5, 0.4, 0.6, 5, "other values")), won[1])) is None


def package_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def lowered(folder: Path, **given: Any) -> dict[str, Any]:
    return lower(Lowering(model(), TARGET, **{"check": Check.NONE, **given}), folder)


def lowered_again(folder: Path, file: Path) -> dict[str, bytes]:
    lowered(folder, profile=file)
    return package_of(folder)


def test_lowering_takes_the_choices_the_same_each_time_and_says_so(interpreter: Runner, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    file = tmp_path / "profile.sqlite"
    with opened(file) as store:
        found = tuned(store, FakeBench(interpreter, quicker))
    chosen = {kernel["name"]: kernel for kernel in found["kernels"]}
    said: list[str] = []
    before = file.read_bytes()
    report = lowered(tmp_path / "a", profile=file, progress=said.append, check=Check.INTERPRETED)
    again = lowered(tmp_path / "b", profile=file)
    plain, plain_again = lowered(tmp_path / "c"), lowered(tmp_path / "d")
    assert file.read_bytes() == before, "a profile is only read"
    first, second = package_of(tmp_path / "a"), package_of(tmp_path / "b")
    assert {name for name in first if first[name] != second[name]} == {"manifest.json"}, "only what was compared differs"
    assert package_of(tmp_path / "b") == lowered_again(tmp_path / "e", file) and package_of(tmp_path / "c") == package_of(tmp_path / "d")
    assert package_of(tmp_path / "a")["model.py"] != package_of(tmp_path / "c")["model.py"]
    assert report["check"]["ok"] and again["profile"] and plain["profile"] is plain_again["profile"] is None
    assert report["profile"]["device"] == {"name": PLACE.device, "versions": PLACE.versions}
    rows = {row["name"]: row["tuned"] for row in report["kernels"]}
    assert report["profile"]["tuned"] == {name: row["factor"] for name, row in rows.items()}
    assert {name: row["choice"] for name, row in rows.items()} == {name: kernel["chosen"] for name, kernel in chosen.items()}
    assert any(row["factor"] > 1.05 for row in rows.values()) and not any("tuned" in row for row in plain["kernels"])
    assert any(PLACE.device in line for line in said)


def test_a_profile_of_another_target_is_told_and_changes_nothing(interpreter: Runner, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    file = tmp_path / "profile.sqlite"
    with opened(file) as store:
        store.put_timed("nvidia-a100", PLACE, "k", "A=1 warps=4 stages=3", Timed(1.0, 0.5, 0.5, 0.5, 5))
    said: list[str] = []
    report = lowered(tmp_path / "a", profile=file, progress=said.append)
    lowered(tmp_path / "b")
    assert any("has nothing for `nvidia-h200`" in line for line in said) and report["profile"]["device"] is None
    kernels = [package_of(tmp_path / each)["model.py"] for each in "ab"]
    assert kernels[0] == kernels[1]


def test_the_place_is_the_one_of_the_latest_measurement(tmp_path: Path) -> None:
    file = tmp_path / "profile.sqlite"
    later = MeasuredAt("a GPU of ours", "version 2")
    with opened(file) as store:
        store.put_timed(TARGET.name, PLACE, "k", "A=1 warps=4 stages=3", Timed(1.0, 0.5, 0.5, 0.5, 5))
        store.put_timed(TARGET.name, later, "k", "A=2 warps=4 stages=3", Timed(1.0, 0.5, 0.5, 0.5, 5))
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE tuned SET at = '2026-01-01T00:00:00' WHERE versions = 'version 1'")
        connection.execute("UPDATE tuned SET at = '2026-01-02T00:00:00' WHERE versions = 'version 2'")
    found = advice(file, TARGET)
    assert found.place == later and found.kernels["k"].choice.text() == "A=2 warps=4 stages=3"
    assert advice(file, get_target("nvidia-a100")).place is None


def test_bad_profiles_are_refused_by_what_is_wrong(tmp_path: Path) -> None:
    text, other, empty = tmp_path / "text", tmp_path / "other", tmp_path / "empty"
    text.write_text("no database at all, but long enough to be taken for one" * 20)
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE things (x)")
    empty.touch()
    for file, what in ((tmp_path / "none", "there is no profile"), (tmp_path, "there is no profile"), (text, "is no profile"),
                       (other, "no profile"), (empty, "no profile")):  # fmt: skip
        with pytest.raises(CosetError, match=what) as caught:
            advice(file, TARGET)
        assert "coset tune" in (caught.value.help or "")
    calibrated = tmp_path / "calibrated"
    with measured(calibrated) as profile:
        profile.put(PLACE, "op", "f32", "1", 1.0, 5)
    assert advice(calibrated, TARGET).place is None
    before = calibrated.read_bytes()
    with reading(calibrated) as store:
        assert store.places(TARGET.name) == []
    assert calibrated.read_bytes() == before
    with opened(calibrated) as store, measured(calibrated) as profile:  # both live in one file
        store.put_facts("sm_90", "t", "k", "c", CompilerFacts(1))
        assert store.facts("sm_90", "t", "k") == {"c": CompilerFacts(1)} and len(profile.rows(PLACE)) == 1
    with pytest.raises(CosetError, match="aten"):
        lower(Lowering(model(), TARGET, code="aten", profile=calibrated), tmp_path / "out")


# ---------------------------------------------------------------- other programs


def test_programs_are_raced_kept_and_taken(interpreter: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr(tune_module, "tunables", lambda *_: [])  # programs alone
    file = tmp_path / "profile.sqlite"
    given = {"model": several(), "programs": 3}
    prepared = prepare(asked(**given))
    assert len(prepared.programs) > 1, "the case has no other program"
    others = [each for each in prepared.programs if each.strayed]
    ours = FakeBench(interpreter, programs=lambda name: 0.5 if name == f"program_{others[-1].strayed}" else 1.0)
    with opened(file) as store:
        found = tuned(store, ours, **given)
        assert found["stop"] == "done" and len(found["raced"]) == len(prepared.programs)
        assert [row["problem"] for row in found["raced"]] == [""] * len(found["raced"])
        before = len(ours.timed)
        assert len(tuned(store, ours, **given)["raced"]) == len(found["raced"]) and len(ours.timed) == before
        won = fastest(tuple(store.raced(TARGET.name, PLACE, model_key(prepared.task))))
    assert won is not None and won.strayed
    report = lower(Lowering(several(), TARGET, check=Check.INTERPRETED, profile=file), tmp_path / "out")
    assert report["profile"]["program"]["strayed"] == won.strayed and report["profile"]["program"]["factor"] > 1.5
    assert report["check"]["ok"] and report["cost"]["method"] == "measured"
    said: list[str] = []
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE raced SET program = 'another' || strayed WHERE strayed != 0")
    other = lower(Lowering(several(), TARGET, check=Check.NONE, profile=file, progress=said.append), tmp_path / "other")
    assert other["profile"]["program"]["strayed"] == 0 and any("is not found" in line for line in said)


def test_a_program_that_differs_from_the_model_is_dropped_and_the_first_must_not(
    interpreter: Runner, store: Tunings, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    given = {"model": several(), "programs": 3}
    prepared = prepare(asked(**given))
    others = {f"program_{each.strayed}" for each in prepared.programs if each.strayed}

    def broken(names: set[str]) -> KernelBench:
        ours = FakeBench(interpreter)

        @contextmanager
        def package(folder: Path) -> Iterator[Any]:
            with ours.package(folder) as runs:
                moved = folder.name in names
                yield SimpleNamespace(run=lambda feed: {name: value + 1 if moved else value for name, value in runs.run(feed).items()})

        return replace(ours.bench(), package=package)

    monkeypatch.setattr(tune_module, "tunables", lambda *_: [])  # programs alone
    found = tune_model(asked(**given), store, bench=broken(others))
    rows = {row["strayed"]: row["problem"] for row in found["raced"]}
    assert rows.pop(0) == "" and rows and all(problem.startswith("other values") for problem in rows.values())
    with opened(Path(":memory:")) as empty, pytest.raises(CosetError, match="cannot be timed: other values"):
        tune_model(asked(**given), empty, bench=broken({"program_0"}))


def test_a_program_s_digest_has_no_names() -> None:
    x, v, w = x_("x", F32, 32, 48), x_("v", F32, 48, 40), x_("w", F32, 48, 40)
    a, b, c = x_("a", F32, 32, 48), x_("b", F32, 48, 40), x_("c", F32, 48, 40)

    def product(x: Any, y: Any) -> Any:
        return op("dot_general", x, y, lhs_contract=(1,), rhs_contract=(0,))

    first = Program((x, v, w), (("y", op("add", product(x, v), product(x, w))),))
    second = Program((a, b, c), (("other", op("add", product(a, b), product(a, c))),))
    swapped = Program((a, c, b), (("other", op("add", product(a, b), product(a, c))),))
    assert digest_of(first) == digest_of(second) != digest_of(swapped) != digest_of(model())

    def scaled(value: np.ndarray[Any, Any]) -> str:
        x = x_("x", F32, *value.shape)
        return digest_of(Program((x,), (("y", op("multiply", x, constant_term(value, F32))),)))

    large, small = np.ones((8, 8), np.float32), np.ones(2, np.float32)
    assert scaled(large) == scaled(2 * large) != scaled(np.ones((8, 9), np.float32)) and scaled(small) != scaled(2 * small)


def test_the_path_of_a_gpu_over_torch_s_memory(tmp_path: Path) -> None:
    """Everything that `on_gpu` does but CUDA itself, in a process with Triton's interpreter: kernels and whole packages."""
    pytest.importorskip("torch")
    script = f"""
from pathlib import Path
from coset.backends.tuning_profile import opened
from coset.backends.triton_corrections import correct_interpreter
correct_interpreter()
from coset.comparing.timing import Protocol
from coset.tuning.measuring import on_gpu
from coset.tuning.tune import tune_model
from tests.coset.tuning_bench import asked, several
with opened(Path({str(tmp_path / "profile")!r})) as store:
    bench = on_gpu("cpu", Protocol(1, 1.0, 1, 1))
    kernels = tune_model(asked(), store, bench=bench)
    assert kernels["stop"] == "done" and all(one["measured"] and not one["problems"] for one in kernels["kernels"]), kernels
    from coset.tuning.racing import _Race
    from coset.tuning.tune import prepare
    prepared = prepare(asked(model=several(), programs=3))
    race = _Race(prepared.task, prepared.original, prepared.options, bench, Path({str(tmp_path)!r}))
    first, *_, other = prepared.programs
    assert not race.written(first) and not race.written(other)
    timed = race.timed(first, other)
    assert timed.rounds == 1 and timed.ratio > 0 and not timed.problem, timed
"""
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-1500:]
