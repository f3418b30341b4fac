"""Both checkers on certificates of models of the corpus and on corruptions of them: they never differ, and no false claim is accepted."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from benchmarks.two_checkers import CORPUS, Case, Change, Checkers, change_of, judged, made, trial
from coset.ir.program import Program
from coset.ir.term import constant, input_term, make
from coset.ir.types import DTYPES, TensorType
from coset.prove import second

NAMES = (
    "rms_norm/jax-gemma", "silu/jax-silu-dynamic", "conv_bn/torch-script14-inputs", "gelu/jax-erf-dynamic", "attention/torch-hlo-causal",
    "attention_rope/jax-gemma",
)  # fmt: skip


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


def test_an_attribute_is_changed_to_one_that_a_file_holds() -> None:
    """Files have floats of 32 bits: 1.0000000000000002 would be no other claim."""
    x, w = (input_term(name, TensorType(DTYPES["f32"], (2, 2))) for name in "xw")
    node = make(
        "onnx.Gemm", (x, w, input_term("c", TensorType(DTYPES["f32"], (2,)))), {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0}
    )
    program = Program((x, w, node.operands[2]), (("y", node),))
    changes = [found for seed in range(60) if isinstance(found := change_of(program, random.Random(seed)), Change)]
    drawn = {value for found in changes for name, value in found.new.attributes if name in ("alpha", "beta")}
    assert drawn == {1.0, 3.0, float(np.nextafter(np.float32(1), np.float32(2)))}


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "the same bits"), (1 + 2.0**-10, "within roundings"), (1.25, "different")])
def test_a_claim_is_judged_by_its_coarsest_type(factor: float, verdict: str) -> None:
    x = input_term("x", TensorType(DTYPES["f16"], (2,)))
    before, after = (
        Program((x,), (("y", make("stablehlo.multiply", (x, constant(np.array([each] * 2, np.float16))))),)) for each in (1.0, factor)
    )
    assert judged(before, after) == verdict
