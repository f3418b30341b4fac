"""Facts of a model that show while it is read: what is learned of an If by assuming each of its branches."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from benchmarks.onnx_nodes import FREE, form, model_of
from coset.backends.onnxruntime import Session
from coset.dialects.onnx.origin import onnx_origin
from coset.frontends.onnx.facts import Bounded, Impossible, RunFacts, UndecidedBranch, read
from coset.frontends.onnx.model import import_model
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.lowering.onnx.model import lower

DONE = Program((), ())


@pytest.mark.parametrize(("failing", "problem", "learned"), [
    (True, Impossible(), False), (False, Impossible(), True), (True, CosetError("cannot be read so"), None), (True, Bounded("n", 1), None),
])  # fmt: skip
def test_only_a_branch_after_which_every_run_fails_is_never_taken(failing: bool, problem: Exception, learned: bool | None) -> None:
    seen: list[RunFacts] = []

    def once(facts: RunFacts) -> Program:
        if "y" not in facts.branches:
            raise UndecidedBranch("y")
        if facts.trying and facts.branches["y"] is failing:
            raise problem
        seen.append(facts)
        return DONE

    assert read(once) is DONE
    assert seen[-1].branches == {"y": learned} and not seen[-1].trying


def test_where_both_branches_fail_nothing_is_learned() -> None:
    """The model fails whatever is done: its user is to see how."""

    def once(facts: RunFacts) -> Program:
        if facts.trying:
            raise Impossible
        if not facts.branches:
            raise UndecidedBranch("y")
        assert facts.branches == {"y": None}
        return DONE

    assert read(once) is DONE


def test_few_are_asked_about() -> None:
    asked: list[str] = []

    def once(facts: RunFacts) -> Program:
        name = f"y{len(facts.branches)}"
        if facts.asks:
            asked.append(name)
            raise UndecidedBranch(name)
        return DONE

    assert read(once) is DONE
    assert 0 < len(asked) < 20


@pytest.mark.parametrize(
    ("asked", "positive", "ops"),
    [
        ((0, 3, -1), {"B"}, {"Reshape": 1}),
        ((0, 0, 0, -1), {"B", "H"}, {"Identity": 1}),
        ((-1, 5), set(), {"Reshape": 1}),
        ((0, 3, 0, 0), set(), {"Identity": 1}),
    ],
)
def test_a_reshape_that_finds_a_dim_says_that_the_others_are_not_0(asked: tuple[int, ...], positive: set[str], ops: dict[str, int]) -> None:
    program = import_model(model_of(form("Reshape", 13, constants=(np.array(asked),)), FREE))
    assert onnx_origin(program.source).positive == positive
    assert Counter(node.op_type for node in lower(program).graph.node) == ops


def test_a_dim_that_may_be_0_is_not_divided_by() -> None:
    """Flatten takes no elements as they are, where a Reshape to [0, -1] fails."""
    program = import_model(model_of(form("Flatten", 13, axis=2), FREE))
    assert onnx_origin(program.source).positive == set()
    written = Session(lower(program).SerializeToString())
    assert written.run({"x": np.zeros((0, 3, 4, 5), np.float32)})["y0"].shape == (0, 20)
