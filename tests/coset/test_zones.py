"""Zones: what is searched with numerics of its own keeps them, and the pieces make the same program again."""

from __future__ import annotations

import random
from pathlib import Path

import onnx
import pytest

import coset
from coset.cli import run
from coset.dialects.onnx.origin import onnx_origin
from coset.frontends.onnx.model import import_model
from coset.ir.program import Program
from coset.ir.term import INPUT, Term, topological
from coset.job.zone import Zone
from coset.searching.regionwise import Solved
from coset.searching.zones import split

CORPUS = Path(__file__).resolve().parent.parent / "corpus"
# A product with 4 rounds nothing: the two orders have equal bits, so that nothing is looked for that broke them.
FACTORS = """<ir_version: 9, opset_import: ["": 17]>
g (float[4, 16] x, float[4, 16] u) => (float[4, 16] y, float[4, 16] z)
  <float two = {2.1}, float three = {4.0}>
{
   a = Mul (x, two)
   b = Mul (a, three)
   c = Mul (u, two)
   y = Relu (b)
   d = Mul (c, three)
   z = Relu (d)
}"""


def _model() -> onnx.ModelProto:
    model = onnx.parser.parse_model(FACTORS)
    model.graph.node[1].name = "/encoder/scale"
    return model


def _products(model: onnx.ModelProto, **given: object) -> list[int]:
    """How many products are left of each chain of two, behind which stand `y` and `z`."""
    program = coset.optimize(model, **given).program  # type: ignore[arg-type]
    return [sum(term.op.name == "stablehlo.multiply" for term in topological([root])) for root in program.roots]


@pytest.mark.parametrize(
    ("numerics", "zones", "products"),
    [
        ("reassociates", {}, [1, 1]),
        ("reassociates", {"a": "exact", "b": "exact"}, [2, 1]),
        ("reassociates", {"[ab]": "exact"}, [2, 1]),
        ("reassociates", {"[cd]": "exact"}, [1, 2]),
        ("exact", {}, [2, 2]),
        ("exact", {"[ab]": "reassociates"}, [1, 2]),
        ("exact", {"*": "reassociates"}, [1, 1]),
        ("reassociates", {"encoder/*": "exact", "[cd]": "reassociates"}, [2, 1]),  # the name of a node; its operand is across the border
    ],
)
def test_a_zone_has_its_own_numerics(numerics: str, zones: dict[str, str], products: list[int]) -> None:
    assert _products(_model(), numerics=numerics, numerics_for=zones) == products


FOLDERS = ("attention", "conv_bn", "group_norm", "layer_norm", "attention_rope")
ENTRIES = sorted(path for folder in FOLDERS for path in (CORPUS / folder).glob("torch-*.onnxtxt"))


@pytest.mark.parametrize("path", ENTRIES[::9], ids=lambda path: path.stem)
def test_any_values_make_a_zone(path: Path) -> None:
    """Zones of names drawn at random, so that values cross back and forth: the result passes its comparison, the pieces are whole."""
    model = onnx.parser.parse_model(path.read_text())
    program = import_model(model)
    names = _live(program)
    drawn = random.Random(path.stem)
    zones = {name: drawn.choice(["exact", "real"]) for name in names if drawn.random() < 0.4} or {names[0]: "exact"}
    report = coset.optimize(model, numerics_for=zones).report
    assert report["check"]["ok"]
    assert report["cost"]["output"] <= report["cost"]["input"] * 1.0001


@pytest.mark.parametrize("path", ENTRIES[::9], ids=lambda path: path.stem)
def test_pieces_that_stay_as_they_are_are_the_program(path: Path) -> None:
    program = import_model(onnx.parser.parse_model(path.read_text()))
    live = _live(program)
    drawn = random.Random(path.stem)
    zones = [Zone(name, "exact") for name in drawn.sample(live, min(len(live), 5))]
    pieces = split(program, program.roots, zones)
    rest, *made = (_unchanged(roots) for roots in (pieces.rest, *pieces.zones))
    assert pieces.joined(rest, made).terms == program.roots


def _live(program: Program) -> list[str]:
    """The names of what the outputs need and inputs decide."""
    live: set[Term] = set()
    for term in program.terms():
        if term.op is INPUT or any(operand in live for operand in term.operands):
            live.add(term)
    return sorted(name for name, term in onnx_origin(program.source).values.items() if term in live and term.op is not INPUT)


def _unchanged(roots: tuple[Term, ...]) -> Solved:
    """What a search finds that finds nothing."""
    return Solved(roots, frozenset(), None, (), ())  # type: ignore[arg-type]


def test_what_cannot_be_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "model.onnx", str(tmp_path / "out.onnx")
    onnx.save(_model(), path)
    for given, message in (
        (["--numerics-for", "nothing*=exact"], "no value that the outputs need is called `nothing*`"),
        (["--numerics-for", "a=precise"], "there are no numerics `precise`"),
        (["--numerics-for", "a"], "gives no numerics"),
        (["--numerics-for", "a=exact", "--certificate", str(tmp_path / "proof")], "a certificate speaks of one search"),
    ):
        assert run(["optimize", str(path), "-o", out, *given]) == 2
        assert message in capsys.readouterr().err
    assert run(["optimize", str(path), "-o", out, "--numerics-for", "a=exact"]) == 0
