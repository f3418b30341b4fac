"""A tenth of the corruptions that benchmarks/tampering.py draws, of one model: none that changes the claim is accepted, none crashes."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from benchmarks.tampering import Case, drawn
from coset.cli import run
from coset.ir.program import Program
from coset.prove import kernel
from coset.prove.certificate import Certificate, Rejected
from coset.prove.certificate_file import LARGEST, packed
from coset.prove.classes import Classes
from coset.proving.meanings import meaning


def attention(folder: Path) -> Path:
    """A layer of attention with a scale, a mask and a residual, of any number of rows."""
    draw = np.random.default_rng(0)
    node = helper.make_node
    nodes = [node("MatMul", ["x", name], [f"{name}x"], name=f"dot_{name}") for name in "qkv"]
    nodes += [
        node("Transpose", ["kx"], ["kt"], perm=[1, 0], name="turn"), node("MatMul", ["qx", "kt"], ["s"], name="scores"),
        node("Mul", ["s", "scale"], ["t"], name="scaled"), node("Add", ["t", "mask"], ["m"], name="masked"),
        node("Softmax", ["m"], ["p"], axis=-1, name="softmax"), node("MatMul", ["p", "vx"], ["o"], name="mix"),
        node("Add", ["o", "x"], ["r"], name="residual"), node("Neg", ["r"], ["n"], name="n1"), node("Neg", ["n"], ["y"], name="n2"),
    ]  # fmt: skip
    weights = {name: draw.normal(size=(16, 16)).astype(np.float32) for name in "qkv"}
    weights |= {"scale": np.float32(0.25), "mask": np.triu(np.full((16, 16), -1e9, np.float32), 1)}
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [16, 16]) for name in "xy"]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], [numpy_helper.from_array(value, name) for name, value in weights.items()])
    path = folder / "attention.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    folder = tmp_path_factory.mktemp("certified")
    return Case.of("out", attention(folder), folder)


def test_no_corruption_that_changes_the_claim_is_accepted(case: Case, tmp_path: Path) -> None:
    assert case.accepted(case.certificate)
    found = Counter(row["answer"] for row in drawn([case], 100, 0, tmp_path))
    assert found["UNSOUND"] == 0 and found["refused"] >= 80


def test_the_benchmark_sees_a_checker_that_believes_what_is_claimed(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Classes, "same", lambda *_: True)
    assert any(row["answer"] == "UNSOUND" for row in drawn([case], 30, 0, tmp_path))


DEEP = '{"term":["stablehlo.add",[0,0],{"a":' + "[" * 900 + "]" * 900 + "}]}"
LINES: dict[str, tuple[int, str]] = {
    "deep": (1, DEEP),
    "a float that is too large": (1, '{"term":["stablehlo.add",[0,0],{"a":{"float":"0x1p+999999"}}]}'),
    "a dim of many factors": (1, '{"term":["stablehlo.add",[0,0],{"a":{"dim":"' + "*".join(f"(a{n}+b{n})" for n in range(40)) + '"}}]}'),
    "a type that is none": (1, '{"term":["builtin.constant",[],{"value":{"constant":[{"dim":"n"},"AAAA"]}}]}'),
    "half a letter": (2, '{"term":["\\ud800",[0,0],{}]}'),
    "deeper": (2, '{"term":' + "[" * 100_000),
    "a number of many digits": (2, '{"rule":' + "9" * 5000 + ',"left":[],"right":[]}'),
}


@pytest.mark.parametrize("what", LINES)
def test_lines_that_cannot_be_looked_at_are_refused(what: str, case: Case, tmp_path: Path) -> None:
    """1 for what is no step, 2 for what is no certificate."""
    code, line = LINES[what]
    own = gzip.decompress(packed(case.certificate)).decode().splitlines()
    changed = [own[0], line, *own[1:-1], json.dumps({"end": len(own) - 1})]
    assert answer(case, tmp_path, gzip.compress("".join(text + "\n" for text in changed).encode())) == code


BYTES: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "cut off": ("cut off", lambda data: data[: len(data) // 2]),
    "another byte": ("data check", lambda data: data[:-6] + bytes([data[-6] ^ 4]) + data[-5:]),
    "no deflate": ("invalid block", lambda data: data[:10] + b"\xff" * 20),
    "no text": ("utf-8", lambda data: gzip.compress(gzip.decompress(data).replace(b'"term"', b'"ter\xff"', 1))),
    "a bomb": ("larger than", lambda data: gzip.compress(b"0" * (LARGEST + 2), 1)),
    "a bomb of values": ("values", lambda data: gzip.compress(b'{"a":[' + b"[]," * (5 << 20) + b"[]]}", 1)),
}


@pytest.mark.parametrize("what", BYTES)
def test_damaged_bytes_are_no_certificate(what: str, case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message, damage = BYTES[what]
    assert answer(case, tmp_path, damage(packed(case.certificate))) == 2
    said = capsys.readouterr().err
    assert "is no certificate" in said and re.search(message, said)


def answer(case: Case, folder: Path, data: bytes) -> int:
    (folder / "proof").write_bytes(data)
    return run(["verify", str(folder / "proof"), str(case.path), str(case.out)])


def test_what_is_too_large_is_not_computed(case: Case) -> None:
    """4 TB of positions: refused before they are made."""
    count = numbered(case.before, case.after)
    iota = {"term": ["stablehlo.iota", [], {"dtype": {"dtype": "f32"}, "shape": [10**12], "dimension": 0}]}
    lines = [iota, {"computed": count}, *case.certificate.lines]
    with pytest.raises(Rejected, match="line 3: it is larger than all constants"):
        kernel.verify(Certificate(case.certificate.head, lines), case.before, case.after, case.rules.get, meaning=meaning, fallback=_none)


def _none(*_: Any) -> Any:
    raise AssertionError("nothing is computed")


def numbered(before: Program, after: Program) -> int:
    return len(kernel.Numbered(before, after).terms)
