"""Inputs that no type says the shape of: tensors of an unknown rank, sequences, optional values, maps; and what is drawn for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from coset.ir import dims
from coset.ir.program import Program
from coset.ir.types import DType, ForeignType, TensorType, Type

if TYPE_CHECKING:
    from coset.frontends.onnx.maps import Entries, Key
    from coset.frontends.onnx.types import Elements

RANK = "rank of inputs"  # among the numbers for dims, of which none is called so: the rank of what is declared without one
RANKS = (2, 1, 3, 4, 0)  # the original's first run says which one will do
LENGTH = 2  # of a sequence
SIZES = (2, 3, 4, 5)  # of dims that have neither a number nor a name


@dataclass(frozen=True)
class Parts:
    """What an input is made of: the tensors of a sequence, or one."""

    dtype: DType
    shape: tuple[int, ...]
    sequence: bool


def parts_of(type: Type, binding: Mapping[str, int]) -> Parts | None:
    """What to draw for an input of this type under numbers for dims, or None where nothing is."""
    if isinstance(type, TensorType):
        sizes = _unknown(binding) if type.shape is None else tuple(dims.evaluate(dim, binding) for dim in type.shape)
        return Parts(type.dtype, sizes, sequence=False)
    found = elements_of(type)
    if found is None:
        return None
    if found.dims is None:
        return Parts(found.dtype, _unknown(binding), found.sequence)
    sizes = tuple(dim if isinstance(dim, int) else binding.get(dim, SIZES[place % len(SIZES)]) for place, dim in enumerate(found.dims))
    return Parts(found.dtype, sizes, found.sequence)


def entries_of(type: Type) -> Entries | None:
    """What a map of ONNX holds; None of anything else."""
    if not isinstance(type, ForeignType) or type.format != "onnx":
        return None
    from coset.frontends.onnx import maps as onnx_maps  # only such inputs need it

    return onnx_maps.entries_of(type)


def keys_for(program: Program, name: str, entries: Entries, draw: np.random.Generator) -> list[Key]:
    """Some of the keys that an input's readers know, one at least."""
    from coset.frontends.onnx import maps as onnx_maps

    known = onnx_maps.keys_read(program, name, entries)
    count = int(draw.integers(1, len(known) + 1))
    return [known[place] for place in sorted(draw.permutation(len(known))[:count])]


def has_unknown_rank(program: Program) -> bool:
    """Whether an input, or what it is made of, is declared without a rank."""
    return any(_is_without_rank(term.type) for term in program.inputs)


def _is_without_rank(type: Type) -> bool:
    if isinstance(type, TensorType):
        return type.shape is None
    found = elements_of(type)
    return found is not None and found.dims is None


def is_sequence(type: Type) -> bool:
    """Whether a value of ONNX is a sequence of tensors."""
    found = elements_of(type)
    return found is not None and found.sequence


def elements_of(type: Type) -> Elements | None:
    """What a value of ONNX that is no tensor is made of, where that is known."""
    if not isinstance(type, ForeignType) or type.format != "onnx":
        return None
    from coset.frontends.onnx import types as onnx_types  # only such inputs need it

    return onnx_types.elements_of(type)


def _unknown(binding: Mapping[str, int]) -> tuple[int, ...]:
    return SIZES[: binding.get(RANK, RANKS[0])]
