"""Triton functions that several kernels of a plan share: layers that differ in their weights only, and rounds of a loop that differ in
where they begin to read and write. A function is compiled once, which takes longer than all launches of a run.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

from coset.ir.dims import evaluate, symbols
from coset.lowering.kernels.addresses import address
from coset.lowering.kernels.kernel import Computed, Kernel, Load, Plan, scalars, stores_of, values_of
from coset.lowering.triton.key import nameless
from coset.lowering.triton.kinds import TRITON_KINDS
from coset.lowering.triton.launch import EmitOptions, EmittedKernel
from coset.lowering.triton.source import emit

_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class _Made:
    """A kernel with its functions and what these are but for names."""

    kernel: Kernel
    emission: EmittedKernel
    tokens: tuple[str, ...]

    @property
    def key(self) -> Hashable:
        """Equal for kernels that can share functions: constexprs are given by name."""
        return self.tokens, tuple(tuple(name for name, _ in launch.constexprs) for launch in self.emission.launches)


def emitted(kernels: Iterable[Kernel], plan: Plan, options: EmitOptions) -> list[EmittedKernel]:
    """What `emit` gives for each kernel, in order. One whose functions an earlier kernel has launches those, and has no source."""
    made = [_made(kernel, emit(kernel, plan, options=options)) for kernel in kernels]
    made = _begun(made, plan, options)
    first: dict[Hashable, list[str]] = {}
    found = []
    for each in made:
        names = functions_of(each.emission.source)
        owned = first.setdefault(each.key, names)
        found.append(each.emission if owned is names else _borrowed(each.emission, dict(zip(names, owned, strict=True))))
    return found


def functions_of(source: str) -> list[str]:
    """The names of the functions of a kernel's source, in order."""
    return re.findall(r"^def (\w+)\(", source, re.MULTILINE)


def _made(kernel: Kernel, emission: EmittedKernel) -> _Made:
    return _Made(kernel, emission, tuple(nameless(emission.source)))


def _borrowed(emission: EmittedKernel, names: dict[str, str]) -> EmittedKernel:
    launches = [replace(launch, function=names[launch.function]) for launch in emission.launches]
    return replace(emission, source="", launches=tuple(launches))


def _begun(made: Sequence[_Made], plan: Plan, options: EmitOptions) -> list[_Made]:
    """The same, where kernels that differ in their numbers only get pointers to where they begin: those that are alike then."""
    shapes = [_shape(each.tokens) for each in made]
    keys: dict[tuple[str, ...], set[Hashable]] = {}
    for shape, each in zip(shapes, made, strict=True):
        keys.setdefault(shape, set()).add(each.key)
    moved = {place: again for place, each in enumerate(made) if len(keys[shapes[place]]) > 1 and (again := _moved(each, plan, options))}
    before, after = (Counter(each.key for each in some) for some in (made, [moved.get(place, each) for place, each in enumerate(made)]))
    return [moved[place] if place in moved and after[moved[place].key] > before[each.key] else each for place, each in enumerate(made)]


def _shape(tokens: Iterable[str]) -> tuple[str, ...]:
    """The tokens without numbers that tell kernels apart; one that is added is none where a kernel begins at 0."""
    found: list[str] = []
    for token in tokens:
        number = _NUMBER.fullmatch(token) is not None
        if number and found and found[-1] == "+":
            found.pop()
        else:
            found.append("0" if number else token)
    return tuple(found)


def _moved(each: _Made, plan: Plan, options: EmitOptions) -> _Made | None:
    """A kernel whose pointers begin at the first element that it touches; None where they do anyway."""
    begins = _begins(each.kernel, plan)
    if not begins:
        return None
    moved = emit(each.kernel, plan, options=replace(options, choice=each.emission.choice, begins=begins))
    return _made(each.kernel, replace(moved, chosen=each.emission.chosen))


def _begins(kernel: Kernel, plan: Plan) -> tuple[tuple[str, int], ...]:
    """For each buffer of a static shape the least place at which a kernel begins in it, in elements, where that is not its own begin."""
    if not isinstance(kernel, Computed) or not TRITON_KINDS[type(kernel)].begins:
        return ()
    found: dict[str, int] = {}
    read = [(item.buffer, item.index) for item in scalars(*values_of(kernel)) if isinstance(item, Load)]
    for name, index in (*read, *((store.buffer, store.index) for store in stores_of(kernel))):
        buffer = plan.buffers[name]
        if (
            buffer.packed is not None
            or buffer.strides is not None
            or buffer.order is not None
            or any(not isinstance(dim, int) for dim in buffer.shape)
        ):
            found[name] = 0
            continue
        place = address(buffer, index)
        begin = evaluate(place, dict.fromkeys(symbols(place), 0))
        found[name] = min(found.get(name, begin), begin)
    return tuple((name, begin) for name, begin in sorted(found.items()) if begin > 0)
