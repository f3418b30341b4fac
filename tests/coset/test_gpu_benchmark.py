"""`benchmarks.gpu` where there is no GPU: what it says, and a dry run, so that its first run on a GPU is not its first run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from benchmarks.gpu import PROGRAMS
from benchmarks.gpu_report import text_of
from coset.targets.target import get_target

torch = pytest.importorskip("torch")
from benchmarks.features_last import row  # noqa: E402
from benchmarks.gpu_blocks import KINDS  # noqa: E402
from benchmarks.gpu_models import MODELS, Mamba  # noqa: E402  (needs torch)
from benchmarks.gpu_modules import drawn  # noqa: E402
from benchmarks.gpu_predicted import medians  # noqa: E402

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.gpu", *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so(tmp_path: Path) -> None:
    done = run("--out", str(tmp_path))
    assert done.returncode == 2 and not list(tmp_path.iterdir())
    assert "no GPU" in done.stderr or "not installed" in done.stderr


def test_a_dry_run_takes_every_path_of_the_groups(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    parts = [each for part in ("bandwidth", "matmul", "attention", "irregular", "tuning", "calibrate") for each in ("--part", part)]
    done = run("--device", "cpu", *parts, "--only", "layer_norm", "--json", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr[-800:]
    document = json.loads(done.stdout)
    (norm,) = document["parts"]["bandwidth"]["rows"]
    assert norm["right"] and norm["share_of_copy"]["value"] > 0
    products = document["parts"]["matmul"]["rows"]
    assert len(products) == 4 and all(row["right"] for row in products)
    copied = products[1]
    assert copied["launch"]["BLOCK_M"] >= 64 and copied["pointers_share_of_cublas"]["value"] > 0 and "best_tiling" in copied
    assert [row["case"] for row in products if "f16_share_of_cublas" in row] == ["scaled f8e4m3fn 128x256x128"]
    assert not any("tilings_that_do_not_run" in row or "pointers_share_of_cublas" in row for row in (products[0], products[2]))
    attentions = document["parts"]["attention"]["rows"]
    assert len(attentions) == 4 and all(row["right"] for row in attentions) and "share_of_copy" in attentions[2]
    assert [row.get("other_form", {}).get("form") for row in attentions] == ["pointers", "pointers", "copies", "pointers"]
    assert all("best_tiling" in row for row in attentions if "other_form" in row)
    assert not any("tilings_that_do_not_run" in row for row in attentions)
    irregular = document["parts"]["irregular"]["rows"]
    assert len(irregular) == 5 and all(row["right"] for row in irregular)
    tuned = document["parts"]["tuning"]["rows"]
    assert len(tuned) == 2 and all(row["right"] and row["whole"] and row["chosen"] and row["measured"] for row in tuned)
    assert [row["beside"] for row in tuned] == ["copy", "cublas"] and not any(row["unmeasured"] for row in tuned)
    (calibrated,) = document["parts"]["calibrate"]["rows"]
    assert calibrated["measured"] == calibrated["cases"] > 0 and not calibrated["refused"]
    assert get_target(tmp_path / calibrated["file"]).bases and (tmp_path / calibrated["profile"]).exists()
    (text,) = tmp_path.glob("*.txt")
    assert "layer_norm" in text.read_text() and json.loads(text.with_suffix(".json").read_text()) == document


def test_a_dry_run_of_whole_models(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    pytest.importorskip("onnxscript")
    done = run("--device", "cpu", "--part", "models", "--only", "mlp", "--only", "moe", "--json", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr[-800:]
    *rows, whole = json.loads(done.stdout)["parts"]["models"]["rows"]
    assert [row["block"] for row in rows] == ["mlp", "moe"] and whole["of"] == 2 and whole["geometric_mean"] > 0
    assert all(not row["wrong"] and not row["failed"] and row["ours_over"]["compile_max"]["value"] > 0 for row in rows)
    (text,) = tmp_path.glob("*.txt")
    assert "geometric mean over max-autotune" in text.read_text()


def test_every_program_has_a_name_and_every_name_a_program() -> None:
    assert {kind: set(names) for kind, names in PROGRAMS.items()} == {kind: set(known) for kind, (known, _) in KINDS.items()}


def test_the_table_of_features_last_has_a_block() -> None:
    pytest.importorskip("onnxscript")
    found = row("bottleneck", get_target("nvidia-h200"), half=False)
    *_, first, last, _, before, _, after, moved, _, _ = found.split()
    assert float(last) < float(first) and int(after) < int(before) and int(moved) > 0


@pytest.mark.parametrize("name", PROGRAMS["models"])
def test_models_have_values_of_their_inputs_dtype(name: str) -> None:
    made = drawn(name, MODELS[name], tiny=True)
    results = made.module(*made.inputs.values())
    for result in results if isinstance(results, tuple) else (results,):
        assert torch.isfinite(result).all() and result.dtype in {each.dtype for each in made.inputs.values()}


def test_state_spaces_in_chunks_are_the_recurrence() -> None:
    torch.manual_seed(0)
    block = Mamba(16, 2, 8, 6, 4).double()
    values, steps = torch.randn(2, 12, 2, 8).double(), torch.rand(2, 12, 2).double()
    inward, outward = torch.randn(2, 12, 6).double(), torch.randn(2, 12, 6).double()
    state, expected = torch.zeros(2, 2, 8, 6).double(), []
    for place in range(12):
        state = state * (steps[:, place] * -block.rate.exp()).exp()[..., None, None]
        state = state + (values[:, place] * steps[:, place, :, None])[..., None] * inward[:, place, None, None]
        expected.append((state * outward[:, place, None, None]).sum(-1) + values[:, place] * block.skip)
    torch.testing.assert_close(block.mixed(values, steps, inward, outward), torch.stack(expected, 1), rtol=1e-6, atol=1e-6)


def test_what_went_wrong_is_in_the_text() -> None:
    document = {
        "name": "h200", "date": "2026-01-01", "commit": "abc", "cores": 2, "command": "c", "versions": {"torch": "2"}, "device": "cuda",
        "parts": {
            "tests": {"seconds": 1, "rows": [{"tests": 2, "passed": 1, "skipped": 0, "failures": {"t::f[1]": ["AssertionError: 3"]}}]},
            "sanitizer": {"seconds": 1, "rows": [{"error": "compute-sanitizer is not on the PATH: memory was not checked"}]},
            "matmul": {"seconds": 1, "rows": [{"error": "time ran out", "error_exit": False}]},
            "blocks": {"seconds": 1, "rows": [{"block": "mlp", "error": "no time was left for it"}]},
        },
    }  # fmt: skip
    text = text_of(document)
    for said in ("1 of 2 passed, 0 skipped, 1 failed", "t::f[1]: AssertionError: 3", "not on the PATH", "time ran out", "mlp: no time"):
        assert said in text


def test_kernels_are_compiled_beforehand_for_a_machine_that_is_not_there(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    packed = tmp_path / "cache.tar.xz"
    given = ["--part", "attention", "--only", "decode", "--cache", str(tmp_path / "cache"), "--out", str(packed)]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.gpu_ahead", *given],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-800:]
    with tarfile.open(packed) as archive:
        names = archive.getnames()
    assert sum(name.endswith(".cubin") for name in names) > 3 and all(name.endswith((".json", ".cubin")) for name in names)


def test_what_is_predicted_stands_beside_what_was_measured() -> None:
    """The kept result's medians, ours as it was the fastest; and a row of a small program."""
    kept = Path("benchmarks/results/gpu-models-nvidia-h200-2026-11-26.json")
    found = medians(json.loads(kept.read_text()))
    assert found["dlrm"]["ours_s"] == pytest.approx(0.32e-3, rel=0.01) and found["dlrm"]["compiled_s"] == pytest.approx(0.241e-3, rel=0.01)
    assert set(found) >= set(MODELS)
    command = [sys.executable, "-m", "benchmarks.gpu_predicted", "--only", "dlrm", "--tiny", "--json"]
    result = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    (row,) = result["rows"]
    assert result["measured"] == kept.name and row["ours_s"] == found["dlrm"]["ours_s"]
    assert 0 < row["predicted_s"] < 1e-3 and sum(row["kernels"].values()) > 0
