"""Loops taken apart: one whose index is only looked at by its digits (`i // 64`, `i // 8 % 8`, `i % 8`) as a loop for each digit, so that
they can stand in another order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar, cast

from coset.ir.dims import Atom, Dim, add, divide_exactly, floordiv, maximum, minimum, mod, multiply, symbol, symbols
from coset.lowering.arranging.following import FOLLOWING, Loops
from coset.lowering.kernels.addresses import terms_of
from coset.lowering.kernels.index_arithmetic import Extents, divided
from coset.lowering.kernels.kernel import Computed, Load, Loop, Store, dims_in, extents_of, loops_of, scalars, stores_of, values_of
from coset.lowering.kernels.renaming import mapped_kernel

K = TypeVar("K", bound=Computed)


def by_digits(kernel: K) -> K:
    """The same kernel, of a kind that opens its loops, with a loop for each digit by which indices of memory look at one."""
    digits = {loop.name: _digits(loop, steps) for loop, steps in _steps(kernel).items() if steps}
    digits = {name: loops for name, loops in digits.items() if len(loops) > 1}
    if not digits:
        return kernel
    binding = {name: _number(loops) for name, loops in digits.items()}
    extents = extents_of(kernel) | {loop.name: loop.extent for loops in digits.values() for loop in loops}

    def over(index: tuple[Dim, ...]) -> tuple[Dim, ...]:
        return tuple(_over(dim, binding, extents) for dim in index)

    def loaded(load: Load) -> Load:
        return Load(load.buffer, over(load.index), load.dtype)

    def stored(store: Store) -> Store:
        return Store(store.buffer, over(store.index), store.value)

    def loops(old: Loops) -> Loops:
        return tuple(digit for loop in old for digit in digits.get(loop.name, (loop,)))

    return cast(K, FOLLOWING[type(kernel)].ordered(mapped_kernel(kernel, loaded, stored), loops))


def _steps(kernel: Computed) -> dict[Loop, list[Dim]]:
    """For each loop the steps from one digit to the next by which indices look at it: none where it is looked at otherwise too."""
    values = list(scalars(*values_of(kernel)))
    places = [dim for store in stores_of(kernel) for dim in store.index]
    places += [dim for value in values if isinstance(value, Load) for dim in value.index]
    elsewhere = {name for value in values if not isinstance(value, Load) for dim in dims_in(value) for name in symbols(dim)}
    found: dict[Loop, list[Dim]] = {}
    for loop in loops_of(kernel):
        if loop.name not in elsewhere:
            steps = {step: None for dim in places if loop.name in symbols(dim) for step in _looked_at(dim, loop.name)}
            found[loop] = list(steps)
    return found


def _looked_at(dim: Dim, name: str) -> list[Dim]:
    """The steps of the digits of a symbol in a dim."""
    found: list[Dim] = []
    for monomial, _ in terms_of(dim):
        for atom in monomial:
            for inner in atom.args:
                found += _looked_at(inner, name)
            if atom.name in ("floordiv", "mod") and atom.args:
                base = _quotient(atom.args[0], name)
                if base is not None:
                    found.append(multiply(base, atom.args[1]))
    return found


def _quotient(dim: Dim, name: str) -> Dim | None:
    """The number by which the symbol is divided to give `dim`; 1 for itself, None where it is no such quotient."""
    if dim == symbol(name):
        return 1
    terms = terms_of(dim)
    if len(terms) != 1 or terms[0][1] != 1 or len(terms[0][0]) != 1 or terms[0][0][0].name != "floordiv":
        return None
    inner, divisor = terms[0][0][0].args
    base = _quotient(inner, name)
    return None if base is None else multiply(base, divisor)


def _digits(loop: Loop, steps: Sequence[Dim]) -> tuple[Loop, ...]:
    """A loop for each digit, the highest first; the loop alone where the steps do not divide each other and its extent."""
    left = [step for step in dict.fromkeys(steps) if step not in (1, loop.extent)]
    chain: list[Dim] = []
    while left:
        first = next((step for step in left if all(divide_exactly(other, step) is not None for other in left)), None)
        if first is None:
            return (loop,)
        left.remove(first)
        chain.append(first)
    ends: list[Dim] = []
    base: Dim = 1
    for step in (*chain, loop.extent):
        extent = divide_exactly(step, base)
        if extent is None:
            return (loop,)
        ends.append(extent)
        base = step
    return tuple(Loop(f"{loop.name}_{place}", extent) for place, extent in reversed(list(enumerate(ends))))


def _number(digits: Sequence[Loop]) -> Dim:
    total: Dim = 0
    for digit in digits:
        total = add(multiply(total, digit.extent), digit.index)
    return total


def _over(dim: Dim, binding: Mapping[str, Dim], extents: Extents) -> Dim:
    """A dim over digits, with the quotients and remainders that they make plain."""
    if not symbols(dim) & binding.keys():
        return dim
    total: Dim = 0
    for monomial, coefficient in terms_of(dim):
        factor: Dim = coefficient
        for atom in monomial:
            factor = multiply(factor, _atom(atom, binding, extents))
        total = add(total, factor)
    return total


def _atom(atom: Atom, binding: Mapping[str, Dim], extents: Extents) -> Dim:
    if not atom.args:
        return binding.get(atom.name, symbol(atom.name))
    first, second = (_over(inner, binding, extents) for inner in atom.args)
    if atom.name in ("floordiv", "mod") and not symbols(second) & extents.keys():
        return divided(first, second, extents)[atom.name == "mod"]
    return {"floordiv": floordiv, "mod": mod, "max": maximum, "min": minimum}[atom.name](first, second)
