"""`--range`: stretches are where the cheapest program changes, whatever the prices; each gets a file that was compared."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from coset.backends.onnxruntime import Session
from coset.cli import run
from coset.ir.dims import symbol
from coset.ir.program import Program
from coset.ir.term import input_term, make
from coset.ir.types import F32, tensor
from coset.lowering.onnx.model import write
from coset.optimizing.ranges import WORTH, Span, divide

INNER, OUTER = 1024, 32


@pytest.mark.parametrize("seed", range(60))
def test_at_every_size_the_file_is_nearly_the_best(seed: int) -> None:
    generator = random.Random(seed)
    span = Span("n", generator.choice((1, 3, 16)), generator.choice((16, 100, 700)))
    lines = [(generator.uniform(0, 100), generator.uniform(0, 2)) for _ in range(generator.randint(1, 6))]
    asked: list[int] = []

    def price(candidate: int, size: int) -> float:
        asked.append(size)
        fixed, each = lines[candidate]
        return 1 + fixed + each * size

    found_at = list(range(len(lines)))
    found = divide(span, found_at, price)
    assert [s.low for s in found.stretches] == [span.low, *(s.high + 1 for s in found.stretches[:-1])]
    assert found.stretches[-1].high == span.high
    for stretch in found.stretches:
        assert stretch.seconds == (price(stretch.at, stretch.low), price(stretch.at, stretch.high))
    for size in span.sizes():  # where candidates were looked at
        (stretch,) = (s for s in found.stretches if s.low <= size <= s.high)
        best = min(price(candidate, size) for candidate in found_at)
        assert price(stretch.at, size) <= best / (1 - WORTH)
    for left, right in zip(found.stretches, found.stretches[1:], strict=False):  # two lines cross once: at the border and nowhere else
        assert price(left.at, left.high) <= price(right.at, left.high)
        assert price(right.at, right.low) < price(left.at, right.low)
    assert set(asked) <= set(range(span.low, span.high + 1))


def test_one_program_for_all_sizes_is_one_stretch() -> None:
    found = divide(Span("n", 1, 64), [1, 2], lambda candidate, size: size * (1 + 0.001 * candidate))
    assert [(s.low, s.high, s.at) for s in found.stretches] == [(1, 64, 1)] and found.overall == 1


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """x A B: for few rows from the left, for many the matrices first."""
    x = input_term("x", tensor(F32, symbol("rows"), OUTER))
    a, b = input_term("a", tensor(F32, OUTER, INNER)), input_term("b", tensor(F32, INNER, OUTER))
    contract = {"lhs_contract": (1,), "rhs_contract": (0,)}
    product = make("stablehlo.dot_general", (make("stablehlo.dot_general", (x, a), contract), b), contract)
    write(Program((x, a, b), (("y", product),)), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def test_each_stretch_gets_a_file(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["optimize", str(model), "-o", str(tmp_path / "o.onnx"), "--range", "rows=1:1024", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    few, many = answer["ranges"]
    assert few["low"] == 1 and few["high"] + 1 == many["low"] and many["high"] == 1024
    assert {Path(each["output"]).name for each in answer["ranges"]} == {f"o.rows-1-{few['high']}.onnx", f"o.rows-{many['low']}-1024.onnx"}
    assert few["check"] and many["check"] and max(few["saved"], many["saved"]) > 0.1
    generator = np.random.default_rng(0)
    shapes = {"x": (40, OUTER), "a": (OUTER, INNER), "b": (INNER, OUTER)}
    feed = {name: generator.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    expected = Session(model).run(feed)["y"]
    for path in (few["output"], many["output"], answer["output"]):  # right at all sizes, fast at its own
        np.testing.assert_allclose(Session(path).run(feed)["y"], expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("value", ["rows", "rows=4", "rows=0:4", "rows=9:4", "rows=a:b"])
def test_what_is_no_range_is_refused(value: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["optimize", str(model), "-o", str(tmp_path / "o.onnx"), "--range", value]) == 2
    assert "NAME=LOW:HIGH" in capsys.readouterr().err


@pytest.mark.parametrize(("more", "message"), [(["--dim", "rows=4"], "give one of"), (["--dim", "columns=4"], "no free dim")])
def test_a_dim_with_a_number_has_no_range(
    more: list[str], message: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["optimize", str(model), "-o", str(tmp_path / "o.onnx"), "--range", "rows=1:8", *more]) == 2
    assert message in capsys.readouterr().err


def test_a_range_of_no_dim_of_the_model_is_refused(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["optimize", str(model), "-o", str(tmp_path / "o.onnx"), "--range", "tokens=1:8"]) == 2
    assert "no free dim `tokens`" in capsys.readouterr().err
