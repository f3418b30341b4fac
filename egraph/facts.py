"""Facts about the numbers of a class, derived from what is below, for the rules that ask for them: `syntax.NUMBERS` and `PATTERNS`.

A fact about floats is true of every element that is no NaN, as it is computed: the exponential is not positive, since it may underflow
to 0, and a product of positive numbers is not either. `finite` excludes NaN too. What is not derived is unknown, and no rule fires on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from coset.egraph import door
from coset.egraph.tables import Tables
from coset.ir.constants import Constant
from coset.ir.term import AttributeItems
from coset.ir.types import DType
from coset.prove.values import has_pattern
from coset.rules.syntax import NUMBERS, PATTERNS

MOST = 1 << 16  # elements of a constant that are looked at
SUMS = "sums"  # payloads of folds by sums and products: the relation of their numbers
NAMES = (*NUMBERS, *PATTERNS)
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


def asked(facts: Iterable[str]) -> tuple[str, ...]:
    """The facts that must be derived for those that rules ask for."""
    wanted = {fact for fact in facts if fact in NAMES}
    return tuple(name for name in NAMES if name in wanted or (name in (N, P) and wanted & {N, P}))


def declarations(wanted: Sequence[str], ruleset: str) -> Iterator[str]:
    """The relations of facts, of the constants that have them, and of folds that keep signs."""
    for fact in wanted:
        yield f"(relation {fact} (T))"
        yield f"(relation {fact}_constant (i64))"
    if P in wanted:
        yield f'(rule ((positive e)) ((nonnegative e)) :ruleset {ruleset} :name "positive_is_nonnegative")'
        yield f"(relation {SUMS} (i64))"


def derivations(name: str, wanted: Sequence[str], tables: Tables, ruleset: str) -> Iterator[str]:
    """The rules that derive facts about nodes of the constructor `name`."""
    op, arity = tables.constructors[name]
    operands = [f"x{i}" for i in range(arity)]
    node = f"(= e ({' '.join([name, *operands, 'p'])}))"

    def rule(fact: str, label: str, *conditions: str) -> str:
        return f'(rule ({" ".join((node, *conditions))}) (({fact} e)) :ruleset {ruleset} :name "{fact}_{name}_{label}")'

    for fact in wanted:
        if op.name == "builtin.constant" or (fact in (UNIQUE, F) and op.name == "stablehlo.iota"):
            yield rule(fact, "constant", f"({fact}_constant p)")
        if fact in PATTERNS:
            pass  # a broadcast repeats, and what is a row may be a column
        elif op.name in MOVING or (op.name == "stablehlo.concatenate" and operands):
            yield rule(fact, "moved", *(f"({fact} {x})" for x in operands))
        ways = LAWS[fact].get(op.name.removeprefix("stablehlo."), ()) if op.dialect == "stablehlo" else ()
        for number, way in enumerate(ways):
            if len(way) == arity:
                yield rule(fact, str(number), *(f"({need} {x})" for need, x in zip(way, operands, strict=True) if need))
        if fact == N and op.name == "stablehlo.multiply":
            yield f'(rule ((= e ({name} x x p))) (({N} e)) :ruleset {ruleset} :name "square_{name}")'
        if fact == N and op.name == "stablehlo.reduce":
            yield rule(fact, "sum", f"({N} x0)", f"({SUMS} p)")


def rows(number: int, attributes: AttributeItems, wanted: Sequence[str]) -> list[door.Command]:
    """What is known of the payload `number`."""
    named = dict(attributes)
    value = named.get("value")
    found = [f"{fact}_constant" for fact in of_constant(value) if fact in wanted] if isinstance(value, Constant) else []
    found += [f"{fact}_constant" for fact in of_iota(named) if fact in wanted]
    if N in wanted and named.get("combiner") in ("add", "multiply"):
        found.append(SUMS)
    return [door.insert(relation, door.integer(number)) for relation in found]


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
    """The facts that hold of a constant; of a large one, and of one that stands for those of equal pieces, nothing is known."""
    kind, shape = value.type.dtype.kind, value.type.static
    if not value.has_elements or shape is None or np.prod(shape, dtype=np.int64) > MOST or kind not in ("float", "int", "uint"):
        return []
    patterns = [name for name in PATTERNS if has_pattern(value.array(), name) and (name == SPARSE or kind != "float")]
    if kind != "float":
        return patterns
    array = value.array().astype(np.float64)
    nan = np.isnan(array)
    truths = {N: bool(np.all(nan | (array >= 0))), P: bool(np.all(nan | (array > 0))), F: bool(np.all(np.isfinite(array)))}
    return [*(fact for fact, holds in truths.items() if holds), *patterns]
