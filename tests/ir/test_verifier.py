"""The checker of programs: each fault is found, and said as what it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from coset.dialects.hub.terms import convert
from coset.ir import stages
from coset.ir.builtin import OPAQUE, TOKEN
from coset.ir.dims import add, symbol
from coset.ir.program import Program
from coset.ir.stages import passed
from coset.ir.term import PARAMETER, Region, Term, get, input_term, intern, make
from coset.ir.types import F32, F64, TokenType, tensor
from coset.ir.verifier import VerificationError, verify_program

X = input_term("x", tensor(F32, 4))
Y = make("stablehlo.negate", (X,))


def typed(term: Term, **changed: Any) -> Term:
    """`term` with other parts than `make` would let it have."""
    parts = {name: getattr(term, name) for name in ("op", "operands", "attributes", "regions", "type")} | changed
    return intern(parts["op"], parts["operands"], parts["attributes"], parts["regions"], parts["type"])


def twin(term: Term) -> Term:
    """Another object that is equal to `term`."""
    copy = Term()
    for name in ("op", "operands", "attributes", "exact", "regions", "type"):
        setattr(copy, name, getattr(term, name))
    return copy


def effect(name: str, token: Term) -> Term:
    attributes = {"domain": "", "name": name, "payload": b"", "results": (tensor(F32, 4), TokenType()), "effect": True}
    return make(OPAQUE, (token,), attributes)


def payload(inner: Callable[[Term], Term]) -> Term:
    """A map of x by a function of one number."""
    number = make(PARAMETER, (), {"index": 0, "type": tensor(F32)})
    return make("stablehlo.map", (X,), {"dimensions": (0,)}, (Region((number,), (inner(number),)),))


def well_formed() -> list[Program]:
    """One program of each form that has to pass."""
    first = effect("Print", make(TOKEN))
    second = effect("Print", get(first, 1))
    n = symbol("n")
    found = make(OPAQUE, (X,), {"domain": "", "name": "NonZero", "payload": b"", "results": (tensor(F32, n),)})
    rows = make("builtin.dims", (), {"dims": (n,), "type": tensor(F32, 1)})
    return [
        Program((X,), (("y", Y), ("x", X))),
        Program((), (("y", get(second, 0)),), get(second, 1)),
        Program((X,), (("y", found),)),
        Program((X,), (("rows", rows),), introduces={"n": found}),
        Program((X,), (("y", payload(lambda number: make("stablehlo.negate", (number,)))),)),
    ]


@pytest.mark.parametrize("program", well_formed(), ids=range(5))
def test_a_sound_program_passes(program: Program) -> None:
    verify_program(program)


def unordered() -> Program:
    first = effect("Print", make(TOKEN))
    both = [effect(name, get(first, 1)) for name in ("Log", "Send")]
    last = make("stablehlo.after_all", tuple(get(each, 1) for each in both))
    return Program((), (("y", get(first, 0)),), last)


def wrong_inside() -> Program:
    """A function whose result has the right type, and whose first op has not."""

    def inner(number: Term) -> Term:
        wide = typed(make("stablehlo.negate", (number,)), type=tensor(F64))
        return convert(wide, F32)

    return Program((X,), (("y", payload(inner)),))


BROKEN: dict[str, tuple[Callable[[], Program], str]] = {
    "an input is no input": (lambda: Program((X, Y), (("y", Y),)), "which is no `builtin.input`"),
    "two inputs of a name": (lambda: Program((X, input_term("x", tensor(F32, 5))), (("y", Y),)), "two inputs called `x`"),
    "two outputs of a name": (lambda: Program((X,), (("y", Y), ("y", X))), "two outputs called `y`"),
    "an input that is not listed": (lambda: Program((), (("y", Y),)), "which it does not list"),
    "another type": (lambda: Program((X,), (("y", typed(Y, type=tensor(F32, 5))),)), "another type than its op's rule says: f32\\[4\\]"),
    "an operand too many": (lambda: Program((X,), (("y", typed(Y, operands=(X, X))),)), "is refused by its op"),
    "an attribute too many": (lambda: Program((X,), (("y", typed(Y, attributes=(("axis", 0),))),)), "has no attribute `axis`"),
    "attributes in no order": (
        lambda: Program((X,), (("y", typed(whole := effect("A", make(TOKEN)), attributes=whole.attributes[::-1])),), None),
        "has not all attributes of its op, in order",
    ),
    "a function too many": (
        lambda: Program((X,), (("y", typed(Y, regions=payload(lambda number: number).regions)),)), "takes no regions here",
    ),
    "another type inside a function": (wrong_inside, "stablehlo.negate.* has another type than its op's rule says: f32\\[\\]"),
    "a second object": (lambda: Program((X,), (("y", twin(Y)),)), "a second object of an equal term"),
    "a last token that is none": (lambda: Program((X,), (("y", Y),), Y), "which is no token"),
    "an effect that nothing waits for": (
        lambda: Program((), (("y", get(effect("Print", make(TOKEN)), 0)),)), "the last token of the program does not wait for it",
    ),
    "two effects behind one token": (unordered, "neither is first"),
    "a dim of another term": (lambda: Program((X,), (("y", Y),), introduces={"n": Y}), "introduces the dim `n`, which it has not"),
    "a dim from nowhere": (
        lambda: Program((X,), (("y", make("builtin.dims", (), {"dims": (add(symbol("n"), 1),), "type": tensor(F32, 1)})),)),
        "speaks of the dim `n`, which no input has and nothing introduces",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_program_is_refused_for_its_fault(fault: str) -> None:
    build, message = BROKEN[fault]
    with pytest.raises(VerificationError, match=message):
        verify_program(build())


def test_a_stage_that_breaks_a_program_is_named() -> None:
    """The tests watch every stage (`tests/conftest.py`)."""
    with pytest.raises(VerificationError, match="after dropping an input: the program reads the input"):
        passed("dropping an input", Program((), (("y", Y),)))


def test_nobody_watches_without_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "WATCHERS", [])
    broken = Program((), (("y", Y),))
    assert passed("dropping an input", broken) is broken


def test_one_value_may_be_listed_twice() -> None:
    verify_program(Program((X,), (("y", Y), ("y", Y))))
