"""The second checker says nothing of rules that write ONNX's ops as nodes, and reads those that write what programs hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from coset.prove.second import language
from coset.prove.second.answer import CannotSay
from coset.prove.second.nodes import refuse_nodes
from coset.rules.library import DEFAULT, rule_files

ROOT = Path(__file__).resolve().parents[2]
DIALECTS = sorted((ROOT / "dialects" / "onnx").glob("*.rules"))
RULE = "use onnx, stablehlo\nrule r\n  for x: F[N, C, H, W], w: F[O, I, K, L]\n  {} => x\n  numerics exact\n"
NODES = [
    "onnx.Add(x, x)", "onnx.Transpose(x, perm: [0, 1, 2, 3])", "onnx.Conv(x, w)", "onnx.Conv(x, w, pads: p, ..attrs)", "onnx.Softmax(x)",
    "abs(onnx.Softmax(x, axis: -1))", "onnx.ReduceMean(x, axes: [1])", "Mul(x, x)",
]  # fmt: skip
HELD = [
    "onnx.Conv(x, w, ..attrs)",
    "onnx.Conv(x, w, padding: p, ..attrs)",
    "onnx.ReduceMean(x, [1])",
    "onnx.Relu(x)",
    "onnx.Softmax(x, axis: a)",
]


def entries(*more: str) -> dict[str, list[language.Entry]]:
    return language.read([*(path.read_text() for path in DIALECTS), *more])


@pytest.mark.parametrize("term", NODES)
def test_nothing_is_said_of_nodes(term: str) -> None:
    known = entries(RULE.format(term))
    with pytest.raises(CannotSay, match="what a node of onnx"):
        refuse_nodes(known["r"][0], known)


@pytest.mark.parametrize("term", HELD)
def test_what_programs_hold_is_read(term: str) -> None:
    known = entries(RULE.format(term))
    refuse_nodes(known["r"][0], known)


def test_the_library_is_read() -> None:
    known = entries(*(path.read_text() for path in rule_files(DEFAULT)))
    for own in known.values():
        for entry in own:
            refuse_nodes(entry, known)
