"""The registry of ops as a whole: all that there are, and taking one back."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from coset.ir.op import DEFERRED, REGISTRY, Op, load_deferred


def defer(names: Iterable[str], load: Callable[[], object]) -> None:
    """Promise that `load()` registers the ops `names`: it is called when the first of them is looked up."""
    for name in names:
        assert name not in DEFERRED and name not in REGISTRY, f"op {name} is declared twice"
        DEFERRED[name] = load


def all_ops() -> list[Op]:
    """Every op, by name; those whose files were not needed so far are read now."""
    while DEFERRED:
        load_deferred(next(iter(DEFERRED.values())))
    return loaded_ops()


def loaded_ops() -> list[Op]:
    """The ops that a program of this process can hold, by name: all but those whose files nothing has asked for."""
    return [REGISTRY[name] for name in sorted(REGISTRY)]


def op_names() -> list[str]:
    """The names of all ops, whether their files were needed so far or not."""
    return sorted((*REGISTRY, *DEFERRED))


def all_dialects() -> frozenset[str]:
    """The dialects that have ops, whether their files were needed so far or not."""
    return frozenset(name.partition(".")[0] for name in (*REGISTRY, *DEFERRED))


def withdraw(op: Op) -> None:
    """Take back an op that was just registered and whose definition turned out to be wrong; no term of it may exist."""
    assert REGISTRY.get(op.name) is op, f"op {op.name} is not registered"
    del REGISTRY[op.name]
