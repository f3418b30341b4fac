"""Random programs over the hub's ops are optimized, certified and equal: a tenth of `python -m tests.coset.random_programs 2000`."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

pytest.importorskip("torch_mlir", reason="the extra `mlir` is not installed")

from coset.dialects.hub.terms import convert
from coset.ir.op import Op
from coset.ir.program import Program
from coset.ir.registry import all_ops
from coset.ir.term import input_term, make
from coset.ir.types import DTYPES, F32, I32, TensorType
from coset.rules.definition import is_defined
from tests.coset.drawn_hub import LEFT_OUT, Drawing, bank, drawn_ops, drawn_program
from tests.coset.forged import forged
from tests.coset.random_programs import Account, Failure, Means, compare, fails, report, try_number
from tests.coset.smaller_programs import shrunk

PIECE, TENTH = 20, 200
EXACT = Means("exact", None)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, TENTH, PIECE))
def test_random_programs_are_optimized_certified_and_equal(first: int, tmp_path: Path) -> None:
    account = Account()
    for number in range(first, first + PIECE):
        try_number(number, account, tmp_path)
    texts = [path.read_text() for path in sorted(tmp_path.iterdir())]
    assert not account.failures, "\n\n".join([report(account), *texts])
    assert account.programs == account.certified + account.uncertified == PIECE
    assert account.uncertified <= PIECE // 10  # three in the first two hundred: what is drawn depends on the library's rules
    assert account.changed > PIECE // 2 and account.compared > PIECE and account.instances > PIECE


def test_every_op_with_a_value_is_drawn_or_left_out_for_a_reason() -> None:
    """Whoever adds an op to the hub has it drawn here."""
    hub = [op for op in all_ops() if op.dialect in ("stablehlo", "chlo") and not is_defined(op)]
    missing = {op.name for op in hub if op.meaning is not None} - {op.name for op in drawn_ops()}
    assert missing == set(LEFT_OUT) and all(LEFT_OUT.values())


@pytest.mark.slow
@pytest.mark.parametrize("op", drawn_ops(), ids=str)
def test_every_op_finds_a_place_in_a_program(op: Op) -> None:
    """A case of the op is made over terms of a program, and not over inputs of its own alone."""
    for place, case in enumerate(bank(op)):
        drawing = Drawing(random.Random(place), inputs=[])
        drawing.add(convert(drawing.fresh(TensorType(DTYPES["f32"], (2, 3))), DTYPES["i32"]), drawing.fresh(TensorType(F32, (2,))))
        made = drawing.placed(case)
        if made is not None and made.op is op:
            return
    raise AssertionError(f"no case of {op} can be drawn")


def test_a_number_draws_one_program() -> None:
    one, other = drawn_program(11), drawn_program(11)
    assert one.roots == other.roots and one.inputs == other.inputs
    assert drawn_program(12).roots != one.roots


FALSE = """
# Source: nowhere
use stablehlo as hlo

rule {name} : planted
  "Not so."
  {text}
  numerics exact
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "op", "text"),
    [
        ("signs_are_lost", "negate", "for x: F[S..]\n  negate(x) => x"),
        ("reverse_is_nothing", "reverse", "for x: T[S..]\n  reverse(x, dimensions: _) => x"),
    ],
)
def test_a_false_rule_is_found(name: str, op: str, text: str, tmp_path: Path) -> None:
    """By one of the programs that have its op, which becomes a few ops that show it. What is drawn depends on the library's rules."""
    path = tmp_path / "planted.rules"
    path.write_text(FALSE.format(name=name, text=text))
    forged(path)

    def wrong(program: Program) -> bool:
        return fails(program, EXACT, "values", [path])

    drawn = (program for program in map(drawn_program, range(1000, 3000)) if any(t.op.name == f"stablehlo.{op}" for t in program.terms()))
    found = next(filter(wrong, drawn))
    small = shrunk(found, wrong)
    assert len(list(small.terms())) <= max(10, len(list(found.terms())) // 2) and wrong(small)


def test_another_value_is_noticed_where_no_rule_is_to_blame() -> None:
    """A program that the search has nothing to do with: what compares the values sees it by itself."""
    x = input_term("x", TensorType(I32, (3,)))
    before, after = (Program((x,), (("y0", term),)) for term in (make("stablehlo.abs", (x,)), x))
    with pytest.raises(Failure, match=r"^values"):
        compare(before, after, [], Account())
    compare(before, before, [], Account())
