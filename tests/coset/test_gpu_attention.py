"""Attention in the spellings of exporters becomes one kernel of a GPU's plan."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from coset.comparing.reference import read_program
from coset.egraph.limits import Limits
from coset.job.job import Job
from coset.lowering.kernels.kernel import Attention, Plan
from coset.lowering.planning.plan import plan
from coset.lowering.triton.source import can_emit, refusal
from coset.packaging.searched import searched
from coset.searching.solving import finish, solve_task
from coset.searching.task import Task
from coset.targets.target import get_target

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
    attentions = [kernel for kernel in _planned(task).kernels if isinstance(kernel, Attention)]
    assert len(attentions) == 1 and not refusal(attentions[0])


def _planned(task: Task) -> Plan:
    solved, _ = solve_task(task, task.phases)
    return plan(finish(task, solved)[0], TARGET, binding=task.binding, computes=can_emit)


DECODED = """<ir_version: 10, opset_import: ["": 21]>
decoded ({dtype}[2, {heads}, 1, 64] q, {dtype}[2, {groups}, 511, 64] past_k, {dtype}[2, {groups}, 511, 64] past_v,
         {dtype}[2, {groups}, 1, 64] k, {dtype}[2, {groups}, 1, 64] v) => ({dtype}[2, {heads}, 1, 64] y)
<int64[1] two = {{2}}, int64[5] wide = {{2, {groups}, {many}, 512, 64}}, int64[4] flat = {{2, {heads}, 512, 64}}, float e = {{0.125}}> {{
    scale = CastLike(e, q)
    keys = Concat<axis = 2>(past_k, k)
    values = Concat<axis = 2>(past_v, v)
    k1 = Unsqueeze(keys, two)
    k2 = Expand(k1, wide)
    k3 = Reshape(k2, flat)
    k4 = Transpose<perm = [0, 1, 3, 2]>(k3)
    v1 = Unsqueeze(values, two)
    v2 = Expand(v1, wide)
    v3 = Reshape(v2, flat)
    scores = MatMul(q, k4)
    scaled = Mul(scores, scale)
    weights = Softmax<axis = -1>(scaled)
    y = MatMul(weights, v3)
}}"""


@pytest.mark.parametrize("dtype", ["float16", "float"])
@pytest.mark.parametrize(("heads", "groups"), [(8, 2), (4, 4)])
def test_one_query_over_a_cache_is_one_kernel(dtype: str, heads: int, groups: int) -> None:
    """A token after others: products with one row, of keys that are joined to a cache and shared by heads."""
    model = onnx.parser.parse_model(DECODED.format(dtype=dtype, heads=heads, groups=groups, many=heads // groups))
    task = searched(Job(model, TARGET, "reassociates", Limits(), (), {}, lambda _: None), read_program(model))
    (attention,) = _planned(task).kernels
    assert isinstance(attention, Attention) and not refusal(attention)
