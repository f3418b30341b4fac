"""Both checkers on certificates of models of the corpus and on corruptions of them: they never differ, and no false claim is accepted."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from benchmarks.two_checkers import CORPUS, Case, Checkers, made, trial
from coset.prove import second

NAMES = ("rms_norm/jax-gemma", "silu/jax-silu-dynamic", "conv_bn/torch-script14-inputs", "gelu/jax-erf-dynamic")


@pytest.fixture(scope="module")
def checkers(tmp_path_factory: pytest.TempPathFactory) -> Checkers:
    return Checkers(tmp_path_factory.mktemp("checkers"))


def case(name: str, folder: Path) -> Case:
    path = next(path for path in (CORPUS / name).parent.glob(f"{Path(name).name}.*"))
    found = made(Path(name).name, path, folder)
    assert found is not None, name
    return found


@pytest.mark.parametrize("name", NAMES)
def test_they_agree(name: str, checkers: Checkers, tmp_path: Path) -> None:
    found = case(name, tmp_path)
    ends = (found.data, found.before, found.after)
    assert (checkers.first(*ends)[0], checkers.second(*ends)[0]) == (second.ACCEPTS, second.ACCEPTS)
    draw = random.Random(name)
    texts = {rule["name"]: rule["text"] for rule in found.parts()[0]["rules"]}
    rows = [row for _ in range(40) if (row := trial(found, checkers, draw, texts)) is not None]
    assert len(rows) >= 20
    for row in rows:
        assert row["first"] == row["second"] or row["second"] == second.CANNOT_SAY, row
        assert row.get("judged", "the same bits") in ("the same bits", "within roundings"), row
