"""Attention in the spellings of exporters becomes one kernel of a GPU's plan."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from coset.egraph.limits import Limits
from coset.lower import searched
from coset.lowering.kernel import Attention
from coset.lowering.plan import plan
from coset.lowering.triton import can_emit, refusal
from coset.reference import read_program
from coset.targets.target import get_target
from coset.task import Job, finish, solve_task

CORPUS = Path(__file__).resolve().parent.parent / "corpus"
TARGET = get_target("nvidia-h200")
WITHOUT_VALUE = {"torch-hlo-bert"}  # an op of MLIR's shape dialect that stays as it came
ENTRIES = sorted(
    path for folder in ("attention", "attention_rope") for path in (CORPUS / folder).iterdir() if path.stem not in WITHOUT_VALUE
)


@pytest.mark.parametrize("path", ENTRIES[::8], ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_spelling_becomes_one_kernel(path: Path) -> None:
    """All of `ENTRIES` do; a few are tried here."""
    model = onnx.parser.parse_model(path.read_text()) if path.suffix == ".onnxtxt" else path
    task = searched(Job(model, TARGET, "reassociates", Limits(), (), {}, lambda _: None), read_program(model))
    solved, _ = solve_task(task, task.phases)
    planned = plan(finish(task, solved)[0], TARGET, binding=task.binding, computes=can_emit)
    attentions = [kernel for kernel in planned.kernels if isinstance(kernel, Attention)]
    assert len(attentions) == 1 and not refusal(attentions[0])
