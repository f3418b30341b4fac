"""Every block of the tutorials runs, in order, in one empty folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from blocks import run_page

pytestmark = pytest.mark.slow


def test_the_tutorial_runs(tmp_path: Path) -> None:
    kinds = run_page("tutorial.md", tmp_path)
    assert kinds["sh"] == 6 and kinds["rules"] == 3


def test_the_small_model_of_the_concepts_is_as_the_page_says(tmp_path: Path) -> None:
    kinds = run_page("concepts.md", tmp_path)
    assert kinds["sh"] == 4 and kinds["prints"] == 4


def test_a_target_is_added_as_the_page_says(tmp_path: Path) -> None:
    kinds = run_page("adding-a-target.md", tmp_path)
    assert kinds["sh"] == 11 and kinds["toml"] == 5


def test_an_op_of_one_s_own_goes_from_end_to_end(tmp_path: Path) -> None:
    kinds = run_page("own-ops.md", tmp_path)
    assert kinds["sh"] == 7 and kinds["python"] == 3


def test_explanations_are_as_the_page_says(tmp_path: Path) -> None:
    kinds = run_page("explaining.md", tmp_path)
    assert kinds["sh"] == 6 and kinds["prints"] == 6


def test_the_page_of_tuning_runs(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    kinds = run_page("tuning.md", tmp_path)
    assert kinds["sh"] == 2 and kinds["prints"] == 2


def test_the_page_of_torch_runs(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    about = tmp_path / "named_backend-1.dist-info"  # the name of the backend, also where coset runs in place
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: named-backend\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[torch_dynamo_backends]\ncoset = coset.compiling:backend\n")
    kinds = run_page("torch.md", tmp_path)
    assert kinds["python"] == 2
