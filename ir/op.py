"""Ops and their registry: an op is a name, a type rule, a NumPy meaning and the work that it does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coset.ir.errors import CosetError
from coset.ir.types import Type

Array = np.ndarray[Any, Any]
Attributes = dict[str, Any]  # values are hashable: int, float, str, bytes, bool, Dim, tuples of these, DType, Constant
AT_RUN_TIME = frozenset({"effect", "distributed", "hinted"})  # traits of ops that are computed where the program runs, never at build time


@dataclass(frozen=True)
class Attribute:
    """One attribute of an op: `kind` is int, float, string, bool, dims, ints, permutation, dtype, constant, or any."""

    name: str
    kind: str
    default: Any = None
    required: bool = True


TypeRule = Callable[[Sequence[Type], Attributes], Type]
Meaning = Callable[..., Array | tuple[Array, ...]]  # (term, arrays, dims), and a `fallback` (coset.ir.evaluate) if the term has regions
Joint = Callable[..., list[Any]]  # (term, the operands of each process, (replicas, partitions), fallback): the value on each process
SignatureRule = Callable[[str, Sequence[Type], Attributes, int], Sequence["Signature"]]


@dataclass(frozen=True)
class Signature:
    """What an op's payload function takes and gives; `role` is its name among the op's functions."""

    role: str
    parameters: tuple[Type, ...]
    results: tuple[Type, ...]


@dataclass(frozen=True, eq=False)
class Op:
    """One operation of one dialect.

    `infer(operand types, attributes)` gives the result type or raises TypeRuleError. `meaning(term, arrays, dims)` is the reference
    semantics on NumPy arrays, with the numbers of the dim symbols; None when the op is defined by a term instead (its dialect's
    `*.rules`) or is opaque. `flops(result type, operand types, attributes)` counts scalar operations as a dim; None means one for each
    element of the result. `signatures(name, operand types, attributes, count)` are those of the payload functions, of which a term has
    `count`; an op without it has none. `functions` are their roles where there is a fixed number of them, each with the attribute whose
    word may stand for it (unless it says `region`). `traits`: elementwise, commutative, associative, movement (moves elements, computes
    none), foreign (kept in the form of the graph that it came from), effect (ordered by tokens), hinted (a text says how the runtime is to
    compute it), distributed (the value depends on other processes), leaf. `joint` is the meaning of a distributed op on all processes at
    once, in the order of their numbers (replicas, and partitions in each); its `meaning` is that of a process that is alone.
    """

    name: str
    infer: TypeRule
    meaning: Meaning | None = None
    attributes: tuple[Attribute, ...] = ()
    operands: tuple[str, ...] = ()
    optional: int = 0  # how many of the last `operands` may be absent
    variadic: bool = False  # the last operand may repeat
    traits: frozenset[str] = frozenset()
    flops: Callable[[Type, Sequence[Type], Attributes], Any] | None = None
    source: str = ""  # where the semantics is written down
    document: str = field(default="", compare=False)
    signatures: SignatureRule | None = None
    functions: tuple[tuple[str, str], ...] = ()
    joint: Joint | None = None

    @property
    def dialect(self) -> str:
        """The part of the name before the first dot."""
        return self.name.split(".", 1)[0]

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__

    def has(self, trait: str) -> bool:
        """True when the op carries `trait`."""
        return trait in self.traits

    def complete(self, given: Attributes) -> Attributes:
        """`given` with defaults filled in, so that absent and default are one, as are 1 and 1.0 of a float.

        Raises:
            CosetError: an attribute is unknown or a required one is missing.
        """
        known = {a.name: a for a in self.attributes}
        for name in given:
            if name not in known:
                raise CosetError(f"`{self.name}` has no attribute `{name}`", help=f"it has: {', '.join(known) or 'none'}")
        result = dict(given)
        for name, attribute in known.items():
            if name not in result:
                if attribute.required:
                    raise CosetError(f"`{self.name}` needs the attribute `{name}`")
                result[name] = attribute.default
            elif attribute.kind == "float" and type(result[name]) is int:
                result[name] = float(result[name])
        return result


REGISTRY: dict[str, Op] = {}
DEFERRED: dict[str, Callable[[], object]] = {}  # ops whose file is read when one of them is wanted


def register(op: Op) -> Op:
    """Enter `op` under its name; asserts that the name is new."""
    assert op.name not in REGISTRY, f"op {op.name} is declared twice"
    REGISTRY[op.name] = op
    return op


def find_op(name: str) -> Op | None:
    """The op called `name` (`dialect.op`), or None."""
    if name in DEFERRED:
        load_deferred(DEFERRED[name])
    return REGISTRY.get(name)


def load_deferred(load: Callable[[], object]) -> None:
    """Register the ops that `load` was promised to register."""
    for name in [name for name, other in DEFERRED.items() if other is load]:
        del DEFERRED[name]
    load()


def get_op(name: str) -> Op:
    """The op called `name`.

    Raises:
        CosetError: there is none.
    """
    op = find_op(name)
    if op is None:
        raise CosetError(f"there is no op `{name}`", help="`coset rules --ops` lists the ops")
    return op
