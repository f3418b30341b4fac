"""`coset calibrate --from`: the fit recovers the numbers of a machine from what that machine takes, and says what it cannot know."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Iterator
from dataclasses import replace
from math import exp
from pathlib import Path

import pytest

from coset.calibration.from_rows import FittedRows, fit_rows
from coset.calibration.rows import measured_rows
from coset.cli import run
from coset.extract.fit import predicted
from coset.ir.problems import WrongFile
from coset.targets import target as registry
from coset.targets.target import Curve, Kernel, Rate, Target, get_target

HEAD = ["op", "shapes", "dtype", "attributes", "microseconds"]
ELEMENTS = (8, 256, 4096, 32768, 262144, 1048576, 4194304, 16777216)
Row = tuple[str, str, str, str]  # without its time


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test reads is known to no other."""
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))


def scaled(kernel: Kernel, launch: float, rate: float, bandwidth: float) -> Kernel:
    """The kernel of another machine."""

    def curve(given: Curve | None) -> Curve | None:
        return given and replace(given, points=tuple((x, y * bandwidth) for x, y in given.points))

    return replace(
        kernel, launch=replace(kernel.launch, value=kernel.launch.value * launch), bandwidth=curve(kernel.bandwidth),
        rates={dtype: Rate(given.value * rate, given.unit, given.source) for dtype, given in kernel.rates.items()},
    )  # fmt: skip


OTHER = {"add": (1.8, 1.0, 0.5), "tanh": (1.8, 0.4, 0.7), "matmul": (2.5, 0.6, 0.8), "conv": (2.0, 0.5, 0.8), "softmax": (1.5, 2.0, 1.2)}


def another_machine() -> Target:
    """This machine's target, with other numbers of five kernels."""
    base = get_target("cpu-onnxruntime")
    return replace(base, kernels={**base.kernels, **{name: scaled(base.kernels[name], *by) for name, by in OTHER.items()}})


def shapes(small: bool) -> Iterator[Row]:
    """Sizes that the fit sees, or others between and beyond them."""
    for size in ELEMENTS if small else (64, 20000, 700000, 9000000):
        yield "Add", f"{size};{size}", "f32", ""
        yield "Tanh", f"{size}", "f32", ""
        yield "Softmax", f"{max(1, size // 128)}x{min(size, 128)}", "f32", ""
    for m, k, n in (
        ((1, 64, 64), (4, 64, 64), (16, 16, 16), (16, 256, 256), (64, 256, 256), (128, 768, 768), (512, 768, 3072), (1024, 1024, 1024))
        if small
        else ((8, 128, 64), (32, 512, 512), (256, 768, 768))
    ):
        yield "MatMul", f"{m}x{k};{k}x{n}", "f32", ""
    for channels, side in ((16, 4), (32, 14), (64, 28), (64, 56), (128, 56), (256, 14)) if small else ((128, 28), (64, 14)):
        yield "Conv", f"1x{channels}x{side}x{side};{channels}x{channels}x3x3", "f32", "pads=1,1,1,1"


def written(path: Path, rows: list[Row], times: list[float]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(HEAD)
        writer.writerows([*row, repr(took * 1e6)] for row, took in zip(rows, times, strict=True))
    return path


def timed(folder: Path, rows: list[Row], target: Target) -> list[float]:
    """Seconds of each row on `target`."""
    file = written(folder / "sizes.csv", rows, [1e-6] * len(rows))
    return [predicted(row.link, target) for row in measured_rows(file, get_target("cpu-onnxruntime"))]


def errors(folder: Path, target: Target) -> list[float]:
    """How far off `target` is for sizes that no fit has seen."""
    rows = list(shapes(small=False))
    truth = timed(folder, rows, another_machine())
    return sorted(abs(guess / true - 1) for guess, true in zip(timed(folder, rows, target), truth, strict=True))


def fitted(folder: Path, disturb: float = 0.0, outliers: int = 0) -> FittedRows:
    rows, chance = list(shapes(small=True)), random.Random(3)
    times = [took * exp(chance.gauss(0, disturb)) for took in timed(folder, rows, another_machine())]
    for place in chance.sample(range(len(times)), outliers):
        times[place] *= 6
    return fit_rows(written(folder / "mine.csv", rows, times), get_target("cpu-onnxruntime"))


def test_numbers_of_another_machine_are_recovered(tmp_path: Path) -> None:
    found, true = fitted(tmp_path), another_machine()
    unknown = {(each.kernel, each.number) for each in found.undetermined if not each.at}
    recovered = 0
    for name in OTHER:
        for number in ("launch",):
            if (name, number) not in unknown:
                recovered += 1
                assert found.target.kernels[name].launch.value == pytest.approx(true.kernels[name].launch.value, rel=0.1), name
        held = next((each.at for each in found.undetermined if (each.kernel, each.number) == (name, "rates")), ())
        for dtype, rate in true.kernels[name].rates.items():
            if (dtype if dtype != "*" else "others") not in held:
                recovered += 1
                assert found.target.kernels[name].rates[dtype].value == pytest.approx(rate.value, rel=0.15), (name, dtype)
    assert recovered >= 7
    off = errors(tmp_path, found.target)
    assert off[len(off) // 2] < 0.02 and off[-1] < 0.25, off
    assert all(abs(op["after"]["median"] - 1) < 0.05 for op in found.summary()["ops"])


def test_noise_and_outliers_move_the_numbers_little(tmp_path: Path) -> None:
    """A tenth of the rows takes six times as long as it should, the others are off by 5 % (one standard deviation)."""
    found = fitted(tmp_path, disturb=0.05, outliers=4)
    off, before = errors(tmp_path, found.target), errors(tmp_path, get_target("cpu-onnxruntime"))
    assert off[len(off) // 2] < 0.08 < 0.3 < before[len(before) // 2], (off, before)
    worst = {op["op"]: op["after"]["worst"] for op in found.summary()["ops"]}
    assert max(worst.values()) > 3  # what was disturbed is not explained


def test_what_no_row_determines_stays_and_is_told(tmp_path: Path) -> None:
    base = get_target("cpu-onnxruntime")
    times = timed(tmp_path, [("Tanh", "1048576", "f32", "")], another_machine())
    found = fit_rows(written(tmp_path / "one.csv", [("Tanh", "1048576", "f32", "")], times), base)
    told = {(each.kernel, each.number): each.at for each in found.undetermined}
    assert ("tanh", "launch") in told and told["tanh", "rates"] == ("f64",) and "softmax" in found.unmeasured
    assert found.target.kernels["tanh"].launch.value == pytest.approx(base.kernels["tanh"].launch.value, rel=0.05)
    assert found.target.kernels["tanh"].rates["f64"] == base.kernels["tanh"].rates["f64"]
    assert {name for name, kernel in found.target.kernels.items() if kernel != base.kernels[name]} == {"tanh"}


def test_launch_and_rate_are_not_told_apart_by_rows_of_one_size(tmp_path: Path) -> None:
    size = [("Tanh", "600", "f32", "")]  # half of the time is the launch
    found = fit_rows(written(tmp_path / "one.csv", size * 5, timed(tmp_path, size * 5, another_machine())), get_target("cpu-onnxruntime"))
    told = {(each.kernel, each.number): each.at for each in found.undetermined}
    assert ("tanh", "launch") in told and "others" in told["tanh", "rates"]


def test_the_command_writes_a_target_that_predicts_better(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [row for row in shapes(small=True) if row[0] in ("Tanh", "Add")]
    file = written(tmp_path / "mine.csv", rows, timed(tmp_path, rows, another_machine()))
    arguments = ["calibrate", "--from", str(file), "--target", "cpu-onnxruntime", "-o", str(tmp_path / "mine.toml")]
    assert run([*arguments, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["rows"] == len(rows) and [op["op"] for op in answer["ops"]] == ["Add", "Tanh"]
    assert abs(answer["ops"][1]["before"]["median"] - 1) > 0.3 > 0.05 > abs(answer["ops"][1]["after"]["median"] - 1)
    target = get_target(tmp_path / "mine.toml")
    assert target.kernels["tanh"].rates["*"].value == pytest.approx(another_machine().kernels["tanh"].rates["*"].value, rel=0.1)
    assert "mine.csv" in target.kernels["tanh"].launch.source
    assert run(arguments) == 0
    table = capsys.readouterr().out
    assert "measured / predicted" in table and "not determined" in table


@pytest.mark.parametrize("name", ["mine.toml", "mine.target"])
def test_a_target_of_the_users_is_fitted_too(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text('base = "cpu-onnxruntime"\ntitle = "mine"\n')
    row = [("Tanh", "1048576", "f32", "")]
    file = written(tmp_path / "one.csv", row, timed(tmp_path, row, another_machine()))
    assert run(["calibrate", "--from", str(file), "--target", str(tmp_path / name), "-o", str(tmp_path / "fitted.toml")]) == 0
    assert get_target(tmp_path / "fitted.toml").bases == ("mine", "cpu-onnxruntime")


def test_a_gpu_is_fitted_through_the_ops_that_its_kernels_are_made_of(tmp_path: Path) -> None:
    base = get_target("nvidia-h200")
    row = ("MatMul", "4096x4096;4096x4096", "f16", "")
    (link,) = [each.link for each in measured_rows(written(tmp_path / "sizes.csv", [row], [1e-6]), base)]
    took = 2 * predicted(link, base)
    found = fit_rows(written(tmp_path / "one.csv", [row], [took]), base)
    assert found.summary()["ops"][0]["after"]["median"] == pytest.approx(1, rel=0.03)


WRONG = {  # row -> what the message says, what the remedy says
    "Gellu,8x16,f32,5": ("there is no ONNX op `Gellu`", "`Gelu`"),
    "Tanh,8x16,f32,-5": ("-5 microseconds cannot be", "above 0"),
    "Tanh,8x16,f32,0": ("0 microseconds cannot be", "above 0"),
    "Tanh,8x16,f32,nan": ("nan microseconds cannot be", "above 0"),
    "Tanh,8x16,f32,5us": ("`5us` is no number of microseconds", "12.5"),
    "Tanh,8x16,float32,5": ("there is no element type `float32`", "`f32`"),
    "Tanh,8*16,f32,5": ("`8*16` is no shape", "1x64x56x56"),
    "Tanh,8x0,f32,5": ("`8x0` is nothing that was timed", "sizes from 1 on"),
    "Tanh,8x16;8x16,f32,5": ("`Tanh` takes 1 operands, not 2", "input"),
    "MatMul,8x16;17x4,f32,5": ("Incompatible dimensions for matrix multiplication", "shapes"),
    "Conv,1x64x8x8;64x32x3x3,f32,5": ("`Conv` does not take these operands", "shapes"),
    "Tanh,8x16,bool,5": ("unsupported type", "element types"),
    "Tanh,8x16,f32;f32,5": ("2 element types for 1 operands", "one for all"),
    "Identity,8x16,f32,5": ("`Identity` of these operands is nothing that", "leave the row out"),
}  # fmt: skip


def test_rows_that_make_no_sense_are_refused_with_their_lines(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("\n".join(["# of my desk", "op,shapes,dtype,microseconds", "Tanh,8x16,f32,5", "", *WRONG]) + "\n")
    with pytest.raises(WrongFile) as caught:
        measured_rows(file, get_target("cpu-onnxruntime"))
    places = [caught.value.place, *(each.place for each in caught.value.others)]
    told = [(caught.value.message, caught.value.help), *((each.message, each.help) for each in caught.value.others)]
    assert [place.line for place in places if place] == list(range(5, 5 + len(WRONG)))
    for (message, help), (row, (said, remedy)) in zip(told, WRONG.items(), strict=True):
        assert said in message and remedy in help, (row, message, help)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("op,shape,dtype,microseconds\n", "there is no column `shape`"),
        ("op,shapes,dtype\n", "the column `microseconds` is missing"),
        ("op,shapes,dtype,microseconds\n", "there are no measurements"),
        ("op,shapes,dtype,microseconds\nTanh,8,f32\n", "the row has 3 cells, not 4"),
        ("op,op,shapes,dtype,microseconds\n", "named twice"),
        ("op,shapes,dtype,microseconds,attributes\nGelu,8,f32,5,approximte=tanh\n", "`Gelu` has no attribute `approximte`"),
        ("op,shapes,dtype,microseconds,attributes\nSoftmax,8,f32,5,axis\n", "`axis` gives no attribute a value"),
        ("op,shapes,dtype,microseconds,attributes\nSoftmax,8,f32,5,axis=last\n", "the attribute `axis` is `last`"),
    ],
)
def test_a_file_that_is_no_table_of_measurements_is_refused(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.csv").write_text(text)
    arguments = ["calibrate", "--from", str(tmp_path / "mine.csv"), "--target", "cpu-onnxruntime", "-o", str(tmp_path / "mine.toml")]
    assert run(arguments) == 2 and said in capsys.readouterr().err and not (tmp_path / "mine.toml").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--from", "absent.csv"], "the target and the result are named"),
        (["--from", "absent.csv", "--target", "cpu-onnxruntime", "-o", "mine.toml"], "`absent.csv` cannot be read"),
        (["--from", "mine.csv", "--target", "cpu-onnxruntime", "-o", "mine.csv"], "would be written over what is read"),
        (["--from", "mine.csv", "--target", "cpu-onnxruntime", "-o", "mine.toml", "--profile", "p.sqlite"], "--from times nothing"),
    ],
)
def test_options_that_do_not_go_together(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["calibrate", *arguments]) == 2 and said in capsys.readouterr().err
