"""The checker of plans: each fault is found, and said as what it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from coset.dialects.hub.terms import dot
from coset.ir.dims import add, symbol
from coset.ir.program import Program
from coset.ir.stages import passed
from coset.ir.term import constant, input_term, make
from coset.ir.types import F32, F64, I32, TensorType
from coset.ir.verifier import VerificationError
from coset.lowering.kernels.kernel import (
    Buffer,
    HeldTerm,
    Kernel,
    Library,
    Load,
    Loop,
    Pick,
    Plan,
    Pointwise,
    ScalarConstant,
    Store,
    StreamPlan,
)
from coset.lowering.kernels.memory import ALIGNMENT
from coset.lowering.kernels.scalar import Choose, InBounds
from coset.lowering.kernels.verifier import verify_plan
from coset.lowering.planning.plan import plan

I = Loop("loop:i", 4)  # noqa: E741
X = Load("x", (I.index,), F32)
ONE = constant(1.0, F32)


def kernel(
    name: str, value: Any, to: str, *, index: Any = (I.index,), loops: tuple[Loop, ...] = (I,), picks: tuple[Pick, ...] = ()
) -> Kernel:
    return Pointwise(name, loops, (Store(to, index, value),), picks=picks)


def buffer(name: str, role: str, **more: Any) -> Buffer:
    return Buffer(name, F32, (4,), role, **more)


def made(*kernels: Kernel, more: tuple[Buffer, ...] = (), **fields: Any) -> Plan:
    """A plan of kernels over an input x, temporaries a and b and an output y, unless `fields` say otherwise."""
    own = (buffer("x", "input"), buffer("a", "temporary"), buffer("b", "temporary"), buffer("y", "output"), *more)
    given = {"inputs": (("x", "x"),), "outputs": (("y", "y"),)} | fields
    return Plan({each.name: each for each in own}, kernels, **given)  # type: ignore[arg-type]


def load(name: str) -> Load:
    return Load(name, (I.index,), F32)


FIRST, THIRD = kernel("k0", X, "a"), kernel("k2", load("b"), "y")
SECOND = kernel("k1", load("a"), "b")
CHAIN = (FIRST, SECOND, THIRD)
N = symbol("n")


def with_buffer(**changed: Any) -> Plan:
    """The chain with another buffer a."""
    found = made(*CHAIN)
    return replace(found, buffers={**found.buffers, "a": replace(found.buffers["a"], **changed)})


def last(value: Any, **more: Any) -> Plan:
    """A plan of one kernel that stores `value` in y."""
    return made(kernel("k", value, "y", **more))


def arena(**offsets: int) -> Plan:
    return made(*CHAIN, offsets=offsets, arena=2 * ALIGNMENT)


def taken_over(name: str, other: str, *, more: tuple[Buffer, ...] = ()) -> Plan:
    return made(*CHAIN, more=more, over={name: other}, frees=True)


NEGATE = make("stablehlo.negate", (input_term("x", TensorType(F32, (4,))),))
BESIDE = made(*CHAIN, streams=StreamPlan((0, 1, 0), ((), (0,), (1,))), offsets={"a": 0, "b": ALIGNMENT}, arena=2 * ALIGNMENT)
SOUND = {
    "a chain": made(*CHAIN),
    "an arena": arena(a=0, b=ALIGNMENT),
    "streams": BESIDE,
    "memory taken over": taken_over("b", "a"),
    "a guarded load": last(Choose((InBounds(I.index, 1, 4),), Load("x", (add(I.index, -1),), F32), ScalarConstant(0.0, F32), F32)),
    "a pick": last(Load("x", (symbol("pick:0"),), F32), picks=(Pick("pick:0", 4, Load("x", (I.index,), F32)),)),
    "parts": made(*(kernel(f"k{at}", X, "y", index=(add(I.index, at),), loops=(Loop("loop:i", 2),)) for at in (0, 2))),
}


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_plan_passes(name: str) -> None:
    verify_plan(SOUND[name])


BROKEN: dict[str, tuple[Callable[[], Plan], str]] = {
    "a buffer under another name": (lambda: with_buffer(name="c"), "the buffer `c` is entered as `a`"),
    "an unknown role": (lambda: with_buffer(role="scratch"), "has the role scratch"),
    "a constant without a value": (lambda: made(*CHAIN, more=(buffer("c", "constant"),)), "is constant and has no value"),
    "a value of what is no constant": (lambda: with_buffer(value=ONE), "is temporary and has a value"),
    "a stride too many": (lambda: with_buffer(strides=(4, 1)), "2 strides for 1 dims"),
    "no order of dims": (lambda: with_buffer(order=(1,)), "is no order of its 1 dims"),
    "packed along no dim": (lambda: with_buffer(packed=1), "packed along dim 1 of 1"),
    "a dim that nothing tells": (lambda: with_buffer(shape=(N,)), "has the dim `n`, which the plan reads from nowhere"),
    "two kernels of a name": (lambda: made(FIRST, FIRST, SECOND, THIRD), "two kernels are called `k0`"),
    "two inputs of a name": (lambda: made(*CHAIN, inputs=(("x", "x"), ("x", "x"))), "two inputs are called `x`"),
    "two outputs of a name": (lambda: made(*CHAIN, outputs=(("y", "y"), ("y", "y"))), "two outputs are called `y`"),
    "an output without a buffer": (lambda: made(*CHAIN, outputs=(("y", "z"),)), "`y` is held by the buffer `z`, which the plan has not"),
    "an input that is a temporary": (lambda: made(*CHAIN, inputs=(("x", "a"),)), "whose role is temporary"),
    "a dim read from another": (lambda: made(*CHAIN, symbols={"n": ("x", 0)}), "the dim `n` is read from dim 0 of `x`, which is another"),
    "a term held in another rank": (
        lambda: made(*CHAIN, held=(HeldTerm(NEGATE, "y", (0, 0), (4, 4), (0, 1)),)), "is held by no box of a buffer",
    ),
    "a load from no buffer": (lambda: last(load("z")), "k uses the buffer `z`, which the plan has not"),
    "a read before the write": (lambda: made(SECOND, FIRST, THIRD), "k1 reads `a` before any kernel has written it"),
    "a store into an input": (lambda: made(*CHAIN, kernel("k3", load("a"), "x")), "k3 writes `x`, which is input"),
    "a library beside others": (
        lambda: made(*CHAIN, Library("k3", NEGATE, ("x",), ("y",))), "k2 and k3 write `y`, but a library writes the whole of it",
    ),
    "an output that nothing writes": (lambda: made(FIRST), "the output `y` is the buffer `y`, which no kernel writes"),
    "a loop bound twice": (lambda: last(X, loops=(I, I)), "k binds the symbol `loop:i` twice"),
    "a loop that hides a dim": (
        lambda: made(
            kernel("k", Load("x", (N,), F32), "y", loops=(I, Loop("n", 4))), more=(Buffer("s", F32, (N,), "input"),),
            symbols={"n": ("s", 0)},
        ),
        "k binds the symbol `n`, which is a dim of the program",
    ),
    "a pick of a later pick": (
        lambda: last(X, picks=(Pick("pick:0", 4, Load("x", (symbol("pick:1"),), F32)), Pick("pick:1", 4, X))),
        "the pick `pick:0` of k speaks of the symbol `pick:1`, which is not bound",
    ),
    "a loop over a loop": (
        lambda: last(X, loops=(I, Loop("loop:j", I.index))), "the loop `loop:j` of k speaks of the symbol `loop:i`, which is not bound",
    ),
    "a loop that is not there": (
        lambda: last(Load("x", (symbol("loop:j"),), F32)), "a value or a store of k speaks of the symbol `loop:j`, which is not bound",
    ),
    "an index too many": (lambda: last(Load("x", (I.index, 0), F32)), "k loads `x` with 2 indices for 1 dims"),
    "a store of another type": (lambda: last(ScalarConstant(1, I32)), "k stores `y` as i32, but its elements are f32"),
    "a load of another type": (
        lambda: last(Choose((InBounds(I.index, 0, 2),), Load("x", (I.index,), F64), ScalarConstant(0.0, F32), F32)),
        "k loads `x` as f64, but its elements are f32",
    ),
    "a store outside": (lambda: last(X, index=(add(I.index, 1),)), "k stores `y` at loop:i \\+ 1 along dim 0, which is not below 4"),
    "a load outside": (lambda: last(Load("x", (add(I.index, -1),), F32)), "k loads `x` at loop:i - 1 along dim 0"),
    "elements that no store reaches": (lambda: last(X, loops=(Loop("loop:i", 3),)), "`y` has 4 elements, and stores reach 3 of them"),
    "a kernel on no stream": (lambda: made(*CHAIN, streams=StreamPlan((0,), ((),))), "3 kernels are on 1 streams"),
    "a wait for a later kernel": (
        lambda: made(*CHAIN, streams=StreamPlan((0, 1, 0), ((1,), (0,), (1,)))), "k0 waits for kernel 1, which is launched later",
    ),
    "no wait for what is read": (
        lambda: made(*CHAIN, streams=StreamPlan((0, 1, 0), ((), (), (1,)))), "k1 needs k0, and does not wait for it",
    ),
    "an output in the arena": (lambda: arena(a=0, y=ALIGNMENT), "`y` has a place in the arena, but is no temporary of static shape"),
    "a place outside of the arena": (lambda: arena(a=2 * ALIGNMENT), f"of an arena of {2 * ALIGNMENT} bytes"),
    "a place between alignments": (lambda: arena(a=8), "`a` lies from 8"),
    "an arena in a plan that frees": (lambda: replace(arena(a=0), frees=True), "the plan frees temporaries, but `a`"),
    "two that live together": (lambda: arena(a=0, b=0), "`a` and `b` share bytes of the arena, and live together"),
    "two on streams that live together": (
        lambda: replace(
            made(FIRST, kernel("k1", X, "b"), kernel("k2", load("a"), "y")), streams=StreamPlan((0, 1, 0), ((), (), ())),
            offsets={"a": 0, "b": 0}, arena=ALIGNMENT,
        ),
        "`a` and `b` share bytes of the arena, and live together",
    ),
    "memory of an output": (lambda: taken_over("y", "b"), "both must be temporaries that kernels use"),
    "memory of another size": (
        lambda: made(
            *CHAIN, kernel("k3", load("b"), "c", loops=(Loop("loop:i", 2),)), more=(Buffer("c", F32, (2,), "temporary"),), frees=True,
            over={"c": "a"},
        ),
        "`c` has the memory of `a`, which is of another size",
    ),
    "memory that is still used": (lambda: taken_over("a", "b"), "`a` has the memory of `b`, which is still used"),
}  # fmt: skip


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_plan_is_refused_for_its_fault(fault: str) -> None:
    build, message = BROKEN[fault]
    with pytest.raises(VerificationError, match=message):
        verify_plan(build())


def test_a_pass_that_breaks_a_plan_is_named() -> None:
    """The tests watch every pass (`tests/conftest.py`)."""
    x = input_term("x", TensorType(F32, (8, 8)))
    whole = plan(Program((x,), (("y", dot(x, dot(x, x, lhs_contract=(1,), rhs_contract=(0,)), lhs_contract=(1,), rhs_contract=(0,))),)))
    assert len(whole.kernels) == 2
    with pytest.raises(VerificationError, match=r"after turning round: .* before any kernel has written it"):
        passed("turning round", replace(whole, kernels=whole.kernels[::-1]))
