"""A seeded sample of the attack on definitions, and what shows that it would see a wrong one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import coset.rules.definition as definition
from benchmarks.definition_attack import RESULTS, kept
from benchmarks.definitions.attack import RUNTIMES, attack, ops
from benchmarks.definitions.runtimes import Worker, workers
from coset.dialects.onnx import sugar as onnx_sugar
from coset.ir.registry import all_ops
from coset.rules.defining import load_definitions
from coset.rules.definition import is_defined

pytest.importorskip("jax", reason="XLA comes with jax")
pytest.importorskip("torch", reason="gradients are compared with torch's")
SEED, INSTANCES, FOUND = 36, 2, 24
UNREACHED = {
    "chlo._asin_acos_kernel": "XLA has no such op: it is proved from the inverse sine",
}


@pytest.fixture(scope="module")
def runtimes() -> Iterator[Mapping[str, Worker]]:
    with workers(RUNTIMES) as found:
        yield found


@pytest.mark.parametrize("op", ops())
def test_a_definition_is_what_its_runtimes_compute(op: str, runtimes: Mapping[str, Worker]) -> None:
    found = attack(op, runtimes, seed=SEED, instances=INSTANCES)
    assert not found.unknown, found.shown
    assert found.instances == INSTANCES


def test_every_entry_was_attacked() -> None:
    attacks = kept(RESULTS)
    assert set(attacks) == set(ops())
    opened = {entry for found in attacks.values() for entry in found.entries}
    entries = {op.name for op in all_ops() if is_defined(op) and op.source.partition(".rules")[1] and op.dialect in DIALECTS}
    assert entries - opened == set(UNREACHED)
    assert not any(found.unknown for found in attacks.values())


DIALECTS = ("chlo", "kernel", "onnx", "ort", "part")
FORGED = {
    "LeakyRelu": """op forged.LeakyRelu(x: F[S..], alpha: float = 0.01) -> F[S..]
  "Right where alpha is between 0 and 1."
  means maximum(x, alpha * x)
  numerics exact""",
    "ReduceL1": """op forged.ReduceL1(x: N[S..], dimensions: ints, N: number) -> N[..]
  "Without magnitudes."
  means sum(x, dimensions)
  numerics reassociates""",
    "PRelu": """op forged.PRelu : sugar (X: N[S..], slope: N[V..], N: number) -> N[S..]
  "Another value for NaN and for 0 times an infinity."
  means select(compare(X, 0, "GT"), X, bcast(slope, broadcast(S, V)) * X)
  numerics exact""",
    "IsInf": """op forged.IsInf : sugar (x: F[S..], detect_negative: int = 1, detect_positive: int = 1) -> bool[S..]
  "Whatever is asked for."
  means is_inf(x)
  where detect_negative != 2 and detect_positive != 2
  numerics exact""",
}


@pytest.mark.parametrize("name", FORGED)
def test_a_wrong_definition_is_seen(name: str, runtimes: Mapping[str, Worker], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "forged.rules"
    file.write_text(f"use stablehlo as hlo, chlo, onnx, forged\n\n{FORGED[name]}\n")
    load_definitions(file)
    genuine = definition.expansion
    assert not attack(name, runtimes, seed=SEED, instances=FOUND).unknown

    def forged(op: str, operands: Any, attributes: Any) -> Any:
        return genuine(f"forged.{name}" if op == f"onnx.{name}" else op, operands, attributes)

    for module in (definition, onnx_sugar):
        monkeypatch.setattr(module, "expansion", forged)
    assert attack(name, runtimes, seed=SEED, instances=FOUND).unknown
