"""Facts of a model that show while it is read: what is learned of an If by assuming each of its branches."""

from __future__ import annotations

import pytest

from coset.frontends.onnx_facts import Bounded, Facts, Impossible, Undecided, read
from coset.ir.errors import CosetError
from coset.ir.program import Program

DONE = Program((), ())


@pytest.mark.parametrize(("failing", "problem", "learned"), [
    (True, Impossible(), False), (False, Impossible(), True), (True, CosetError("cannot be read so"), None), (True, Bounded("n", 1), None),
])  # fmt: skip
def test_only_a_branch_after_which_every_run_fails_is_never_taken(failing: bool, problem: Exception, learned: bool | None) -> None:
    seen: list[Facts] = []

    def once(facts: Facts) -> Program:
        if "y" not in facts.branches:
            raise Undecided("y")
        if facts.trying and facts.branches["y"] is failing:
            raise problem
        seen.append(facts)
        return DONE

    assert read(once) is DONE
    assert seen[-1].branches == {"y": learned} and not seen[-1].trying


def test_where_both_branches_fail_nothing_is_learned() -> None:
    """The model fails whatever is done: its user is to see how."""

    def once(facts: Facts) -> Program:
        if facts.trying:
            raise Impossible
        if not facts.branches:
            raise Undecided("y")
        assert facts.branches == {"y": None}
        return DONE

    assert read(once) is DONE


def test_few_are_asked_about() -> None:
    asked: list[str] = []

    def once(facts: Facts) -> Program:
        name = f"y{len(facts.branches)}"
        if facts.asks:
            asked.append(name)
            raise Undecided(name)
        return DONE

    assert read(once) is DONE
    assert 0 < len(asked) < 20
