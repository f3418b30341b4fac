"""A sample of torch's own list of ops under `torch.compile`: equal to eager, or left to torch with a reason; the whole list is run by
`python -m benchmarks.op_db`."""

from __future__ import annotations

import logging
import random
from typing import Any

import pytest
from torch_models import torch  # without torch the tests are skipped here

from benchmarks import op_db

pytest.importorskip("expecttest")
SAMPLE = 24


@pytest.fixture(autouse=True)
def _silent() -> Any:
    logger = logging.getLogger("coset")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(before)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float16", "int64"])
def test_a_sample_of_ops_is_equal_or_left_to_torch(dtype: str) -> None:
    ops = op_db.torch_ops()
    wrong = []
    for name in random.Random(dtype).sample(sorted(ops), SAMPLE):
        if getattr(torch, dtype) in ops[name].dtypes:
            for kind, sample in op_db.samples(name, ops[name], getattr(torch, dtype)):
                verdict, more = ("", "") if sample is None else op_db.judged(ops[name], sample)
                wrong += [f"{name}, {kind}: {verdict}: {more}"] if verdict in op_db.WRONG else []
    assert not wrong


def test_what_differs_is_told() -> None:
    x = torch.tensor([1.0, 2.0, float("nan")])
    assert not op_db.apart([x, 3], (x.clone(), 3))
    assert "off" in op_db.apart(x, x + torch.tensor([0.0, 0.1, 0.0]))
    assert "NaN" in op_db.apart(x, x.nan_to_num(5.0))
    assert "float64" in op_db.apart(x.double(), x)
    narrow = torch.tensor([1.0, 2.0], dtype=torch.bfloat16)
    assert "off" in op_db.apart(narrow * 1.1, narrow) and not op_db.apart(narrow * 1.01, narrow)
    assert op_db.apart(x.long(), x.long() + 1).endswith(op_db.ELEMENTS)
    assert op_db.apart({"a": x}, {"a": x + 1}) and op_db.apart({"a": x}, {"b": x})


def test_what_torch_compiles_otherwise_than_it_runs_is_told_apart() -> None:
    """Of bf16 pixels eager torch takes a neighbour on a CPU, and what it compiles does not (`findings/`)."""
    image = torch.arange(300).remainder(128).to(torch.bfloat16).reshape(1, 1, 1, 300)
    grid = torch.tensor([0.25, 0.0], dtype=torch.bfloat16).reshape(1, 1, 1, 2)
    call = lambda image, grid: torch.nn.functional.grid_sample(image, grid, "nearest", align_corners=False)  # noqa: E731
    run = lambda call: call(image, grid)  # noqa: E731
    assert op_db.as_torch_compiles(run, call, torch.full((1, 1, 1, 1), 187.0 % 128, dtype=torch.bfloat16))
    assert not op_db.as_torch_compiles(run, call, torch.full((1, 1, 1, 1), 3.0, dtype=torch.bfloat16))
    assert not op_db.overflowed(lambda x, *_: x.no_such_method(), type("Sample", (), {"input": grid, "args": (), "kwargs": {}}), grid)
