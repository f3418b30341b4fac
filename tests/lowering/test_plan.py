"""Plans mean what their programs mean: executed kernel by kernel in NumPy they give the program's values."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import models
from coset.frontends.onnx import import_model
from coset.ir.evaluate import evaluate_program
from coset.lowering.plan import plan
from coset.rules.definition import evaluate_defined
from tests.lowering.plan_numpy import run

MODELS = ("mlp", "bert_2l_d128_dyn", "llama_2l_static", "llama_2l_dyn", "resnet50_w025", "dlrm", "train_mlp", "train_cnn", "mamba_like")


@pytest.mark.parametrize("name", MODELS)
def test_a_model_s_plan_gives_its_values(name: str) -> None:
    found = [model for model in models.built() if model.name == name]
    if not found:
        pytest.skip(f"{name} is not built: python -m benchmarks.models")
    program, feeds = import_model(found[0].path), models.feeds(found[0])
    expected = evaluate_program(program, feeds, fallback=evaluate_defined)
    results = run(plan(program), feeds)
    for (output, result), value in zip(results.items(), expected, strict=True):
        scale = float(np.max(np.abs(value), initial=1.0))
        np.testing.assert_allclose(result, value, atol=2e-5 * scale, rtol=0, err_msg=output)
