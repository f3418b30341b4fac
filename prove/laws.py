"""Facts about the numbers of a term, derived from what is below: `NUMBERS` and `PATTERNS` of `coset.rules.facts`.

A fact about floats is true of every element that is no NaN, as it is computed: the exponential is not positive, since it may underflow
to 0, and a product of positive numbers is not either. `finite` excludes NaN too. What is not derived is unknown, and no rule fires on it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from coset.ir.constants import Constant
from coset.ir.term import Term
from coset.ir.types import DType
from coset.rules.constants import has_pattern
from coset.rules.facts import PATTERNS

MOST = 1 << 16  # elements of a constant that are looked at
N, P, F, ANY = "nonnegative", "positive", "finite", ""
UNIQUE, SPARSE = PATTERNS
MOVING = tuple(f"stablehlo.{name}" for name in ("transpose", "reshape", "broadcast_in_dim", "reverse", "slice"))
# by op: what its operands must be, one way after the other, so that the result is it; an op of MOVING keeps what its operand is
LAWS: dict[str, dict[str, tuple[tuple[str, ...], ...]]] = {
    N: {
        "abs": ((ANY,),), "sqrt": ((ANY,),), "exponential": ((ANY,),), "logistic": ((ANY,),), "add": ((N, N),), "multiply": ((N, N),),
        "divide": ((N, P),), "maximum": ((N, ANY), (ANY, N)), "minimum": ((N, N),), "select": ((ANY, N, N),), "dot_general": ((N, N),),
        "convolution": ((N, N),),
    },
    P: {
        "abs": ((P,),), "sqrt": ((P,),), "add": ((N, P), (P, N)), "maximum": ((P, ANY), (ANY, P)), "minimum": ((P, P),),
        "select": ((ANY, P, P),),
    },
    F: {
        "abs": ((F,),), "negate": ((F,),), "sign": ((F,),), "floor": ((F,),), "ceil": ((F,),), "round_nearest_even": ((F,),),
        "round_nearest_afz": ((F,),), "tanh": ((F,),), "logistic": ((F,),), "sine": ((F,),), "cosine": ((F,),), "maximum": ((F, F),),
        "minimum": ((F, F),), "select": ((ANY, F, F),), "clamp": ((F, F, F),),
    },
    UNIQUE: dict.fromkeys(("transpose", "reshape", "reverse", "slice"), ((UNIQUE,),)),
    SPARSE: {"negate": ((SPARSE,),), "abs": ((SPARSE,),)},
}  # fmt: skip
KEEPING = ("add", "multiply")  # combiners of folds that keep nonnegative what is

Demand = tuple[int, str]
"""A class and a fact."""


@dataclass(frozen=True)
class Premises:
    """Why a term is something: other terms are what `needs` says, and those of `pairs` are equal."""

    needs: tuple[tuple[Term, str], ...] = ()
    pairs: tuple[tuple[Term, Term], ...] = ()


def of_iota(attributes: Mapping[str, Any]) -> list[str]:
    """The facts that hold of an iota with these attributes: its type may not hold all its numbers, and wraps around or overflows there."""
    shape, dtype, axis = (attributes.get(name) for name in ("shape", "dtype", "dimension"))
    if not isinstance(shape, tuple) or not isinstance(dtype, DType) or not isinstance(axis, int) or not isinstance(shape[axis], int):
        return []
    if dtype.kind == "float":
        with np.errstate(over="ignore"):
            return [F] if np.isfinite(np.asarray(max(0, shape[axis] - 1)).astype(dtype.numpy).astype(np.float64)) else []
    return [UNIQUE] if len(shape) == 1 and dtype.kind in ("int", "uint") and shape[0] <= 1 << (dtype.bits - 1) else []


def of_constant(value: Constant) -> list[str]:
    """The facts that hold of a constant; of a large one nothing is known, nor of one that stands for those of equal regions."""
    kind, shape = value.type.dtype.kind, value.type.static
    if not value.has_elements or shape is None or np.prod(shape, dtype=np.int64) > MOST or kind not in ("float", "int", "uint"):
        return []
    patterns = [name for name in PATTERNS if (name == SPARSE or kind != "float") and has_pattern(value.array(), name)]
    if kind != "float":
        return patterns
    array = value.array().astype(np.float64)
    nan = np.isnan(array)
    truths = {N: bool(np.all(nan | (array >= 0))), P: bool(np.all(nan | (array > 0))), F: bool(np.all(np.isfinite(array)))}
    return [*(fact for fact, holds in truths.items() if holds), *patterns]


# ---------------------------------------------------------------- terms of classes


def ways(term: Term, fact: str, find: Callable[[Term], int]) -> list[Premises]:
    """The ways in which `term` is what `fact` says; `find` gives the class of a term."""
    named, op, operands = dict(term.attributes), term.op.name, term.operands
    found: list[Premises] = []
    value = named.get("value")
    if (isinstance(value, Constant) and fact in of_constant(value)) or (op == "stablehlo.iota" and fact in of_iota(named)):
        found.append(Premises())
    if fact not in PATTERNS and operands and (op in MOVING or op == "stablehlo.concatenate"):
        found.append(Premises(tuple((operand, fact) for operand in operands)))
    laws = LAWS[fact].get(op.removeprefix("stablehlo."), ()) if term.op.dialect == "stablehlo" else ()
    found += [
        Premises(tuple((operand, need) for operand, need in zip(operands, way, strict=True) if need))
        for way in laws
        if len(way) == len(operands)
    ]
    if fact == N and op == "stablehlo.multiply" and find(operands[0]) == find(operands[1]):
        found.append(Premises((), ((operands[0], operands[1]),)))
    if fact == N and op == "stablehlo.reduce" and named.get("combiner") in KEEPING:
        found.append(Premises(((operands[0], N),)))
    if fact == N:
        found.append(Premises(((term, P),)))
    return found


def support(term: Term, fact: str, members: Callable[[int], Iterable[Term]], find: Callable[[Term], int]) -> list[tuple[Term, Term]] | None:
    """Why `term` is what `fact` says: the pairs of equal terms on which that rests, by what its class and those below have among their
    `members`. None where it is not derived."""
    start = (find(term), fact)
    users: dict[Demand, list[int]] = {}
    every: list[tuple[Demand, Term, Premises]] = []
    missing: list[int] = []
    ready: deque[int] = deque()
    asked, stack = {start}, [start]
    while stack:
        demand = stack.pop()
        for member in members(demand[0]):
            for way in ways(member, demand[1], find):
                needs = sorted({(find(needed), what) for needed, what in way.needs})
                for need in needs:
                    users.setdefault(need, []).append(len(every))
                stack += [need for need in needs if need not in asked]
                asked.update(needs)
                if not needs:
                    ready.append(len(every))
                every.append((demand, member, way))
                missing.append(len(needs))
    shown: dict[Demand, tuple[Term, Premises]] = {}
    while ready:
        demand, member, way = every[ready.popleft()]
        if demand not in shown:
            shown[demand] = (member, way)
            for user in users.get(demand, ()):
                missing[user] -= 1
                if not missing[user]:
                    ready.append(user)
    return _pairs(term, fact, shown, find) if start in shown else None


def _pairs(term: Term, fact: str, shown: Mapping[Demand, tuple[Term, Premises]], find: Callable[[Term], int]) -> list[tuple[Term, Term]]:
    pairs: list[tuple[Term, Term]] = []
    done: set[tuple[Term, str]] = set()
    stack = [(term, fact)]
    while stack:
        current, what = stack.pop()
        if (current, what) not in done:
            done.add((current, what))
            member, way = shown[find(current), what]
            pairs += [(current, member), *way.pairs]
            stack += way.needs
    return pairs
