"""Values to try for what a rule leaves open: dtypes, dims, packs, and attributes by their kind and the operand at hand."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from coset.ir import dims
from coset.ir.constants import constant_of
from coset.ir.dims import Dim
from coset.ir.op import Attribute
from coset.ir.types import DTYPES, DType, TensorType, Type

REPRESENTATIVES = ("f32", "i32", "bool", "f64", "bf16", "u8", "c64", "f16", "i8", "f8e4m3fn")
MOST_AXES = 6  # more dims than any operand has that is looked at
MIXTURES = 3  # further lists that are tried
STEPS = (0, 0, 0, 0, 1, -1)
FLOATS = [1.0, 0.5, 1e-5, -0.75, 0.0, 2.5]  # numbers of attributes; those below 0, 0 itself and those above 1 are forgotten most
RARE_FLOATS = [-1.0, 2.0, 1e4, math.inf, -math.inf, math.nan]  # ... of drawn ones only
SPATIAL = ("strides", "dilations", "lhs_dilation", "rhs_dilation")


def representatives(classes: frozenset[DType], count: int) -> list[DType]:
    """Up to `count` dtypes of a class, the common ones first."""
    chosen = [DTYPES[name] for name in REPRESENTATIVES if DTYPES[name] in classes]
    chosen += sorted((dtype for dtype in classes if dtype not in chosen), key=lambda dtype: dtype.name)
    return chosen[:count]


def attribute_values(attribute: Attribute, operands: Sequence[Type], *, exhaustive: bool = False) -> list[Any]:
    """Values of an attribute of any op, for operands of these types; the op's type rule refuses those that do not fit."""
    return values_of(attribute.kind, attribute.name, operands, None, exhaustive=exhaustive)


_PLACES = ("lhs_batch", "rhs_batch", "lhs_contract", "rhs_contract", "broadcast_dimensions")  # of dims, each of which occurs once
_SETS = ("dimensions", "axes", "combiner", "direction", "transA", "transB")
_AXIS = ("axis", "dimension")  # one dim of the operand


def enumerable(kind: str, name: str) -> bool:
    """True when `values_of` gives every value for operands of small ranks, where it is asked for all."""
    return kind in ("permutation", "axes", "bool", "combiner", "direction", "rest") or name in (*_PLACES, *_SETS) or _one_axis(kind, name)


def _one_axis(kind: str, name: str) -> bool:
    """True for an attribute, or an item of one, that names a dim of the operand by its number."""
    return kind == "int" and names_axes(name)


def values_of(kind: str, name: str, operands: Sequence[Type], rank: int | None, *, exhaustive: bool = False) -> list[Any]:
    """Values of `kind` for an attribute called `name`. `rank` is that of the pack in `permutation(S)` or `axes(S)`.

    `exhaustive`: all orders of dims, for names that `enumerable` knows.
    """
    if exhaustive and name in _PLACES and kind != "int":
        return _places(name, operands)
    own = operands[0].shape if operands and isinstance(operands[0], TensorType) and operands[0].shape is not None else ()
    count = len(own) if rank is None else rank
    axes = range(count)
    if exhaustive and _one_axis(kind, name):  # the type rule refuses what is none
        return _axes(name, operands)
    if kind == "permutation":
        return list(itertools.permutations(axes)) if count <= 3 or exhaustive else _permutations(count)
    if kind == "axes":
        return [c for size in range(count + 1) for c in itertools.combinations(axes, size)]
    words = _words(kind, name, operands)
    if words is not None:
        return words
    if kind == "padding" or name == "padding":
        return _paddings(kind, name, operands, count)
    if kind == "ints" and name in ("start", "limit") and not exhaustive:
        return [*_shapes(name, own), *_integers(name, count)]
    if kind == "ints":
        uneven = [tuple(range(1, count + 1))] if exhaustive and name in SPATIAL else []
        return [*_integers(name, count), *uneven]
    if kind in ("dims", "pack"):
        return _shapes(name, own)
    if kind == "constant":
        return _constants()
    if name == "results":  # of a branch: it gives what it captures
        return [(type,) for type in operands]
    if kind == "dtype" and exhaustive:
        return [DTYPES[dtype] for dtype in REPRESENTATIVES[:7]]  # one of each kind, and two widths of float
    table: dict[str, list[Any]] = {
        "int": [1, 0, -1, 2, 4], "float": [*FLOATS, *(() if exhaustive else RARE_FLOATS)],
        "floats": [(), (0.5,), (0.5, 2.0)], "bool": [False, True], "dim": [1, 2],
        "dtype": [DTYPES[dtype] for dtype in ("f32", "f64", "i32", "bf16", "bool")],
    }  # fmt: skip
    return table.get(kind, [])


def _words(kind: str, name: str, operands: Sequence[Type]) -> list[Any] | None:
    """Values of an attribute that is one of few, whatever its operands are; None of any other."""
    if kind == "combiner" or name == "combiner":
        return ["add", "maximum", "multiply", "minimum"]
    if kind == "direction" or name == "direction":
        return ["EQ", "LT", "GE", "NE", "LE", "GT"]
    if name in ("transA", "transB"):
        return [0, 1]
    if name == "feature_group_count":
        return list(dict.fromkeys([1, *_groups(operands), 2]))
    if kind == "string":
        return ["none", "tanh"]
    return None


def _paddings(kind: str, name: str, operands: Sequence[Type], count: int) -> list[Any]:
    """Nothing, one at each end, and one behind; of the dims behind batch and features, or of all."""
    spatial = max(0, count - 2)
    if len(operands) == 1 and name == "padding" and kind == "any":  # of windows over all dims
        return [((0, 0),) * count, ((0, 0),) * (count - spatial) + ((1, 1),) * spatial, ((0, 1),) * count]
    return [((0, 0),) * spatial, ((1, 1),) * spatial, ((0, 1),) * spatial]


def _permutations(count: int) -> list[tuple[int, ...]]:
    """Of many axes: none moved, all turned round, cycles of all, of all but one and of three at either end, two exchanged, and those beside
    a cycle."""
    axes = tuple(range(count))
    turned = [(*axes[1:n], axes[0], *axes[n:]) for n in (count, count - 1, 3)]
    exchanged = (axes[1], axes[0])
    neighbours = [(*axes[:i], i + 1, i, *axes[i + 2 :]) for i in range(1, count - 1)]
    behind = (*axes[: count - 3], count - 2, count - 1, count - 3)
    return list(dict.fromkeys([axes, axes[::-1], *turned, (*exchanged, *axes[2:]), (*exchanged, *axes[3:], axes[2]), *neighbours, behind]))


def mixed(kind: str, name: str, options: Sequence[Any], draw: random.Random) -> list[Any]:
    """Lists whose items are those of several of the `options`, some of them one more or less: uneven strides, paddings, places."""
    if enumerable(kind, name) or kind not in ("ints", "padding", "any"):
        return []
    lists = [option for option in options if isinstance(option, tuple) and option]
    counts = [len(draw.choice(lists)) for _ in range(MIXTURES if lists else 0)]
    alike = [[each for each in lists if len(each) == count] for count in counts]
    return [_mixture(each, draw) for each in alike] + [_one_changed(each[0], draw) for each in alike]


def _mixture(lists: Sequence[tuple[Any, ...]], draw: random.Random) -> tuple[Any, ...]:
    """A list of items at the same places of the lists, all of one length."""
    return tuple(_stepped(draw.choice(items), draw) for items in zip(*lists, strict=True))


def _one_changed(items: tuple[Any, ...], draw: random.Random) -> tuple[Any, ...]:
    """The list with one item that is one more or less, most often the last."""
    place = len(items) - 1 if draw.random() < 0.5 else draw.randrange(len(items))
    return tuple(item + draw.choice((1, -1)) if i == place and isinstance(item, int) else item for i, item in enumerate(items))


def lengths(operands: Sequence[Type], draw: random.Random) -> list[int]:
    """Whole numbers to try beside the usual ones: the dims of the operands, those beside them, and a few at random."""
    own = [dim for type in operands if isinstance(type, TensorType) for dim in type.static or ()]
    return list(dict.fromkeys([*(dim + step for dim in own for step in (0, 1, -1)), *(draw.randrange(-9, 100) for _ in range(2)), 3, 5]))


def _stepped(item: Any, draw: random.Random) -> Any:
    if isinstance(item, tuple):
        return tuple(_stepped(each, draw) for each in item)
    return item + draw.choice(STEPS) if isinstance(item, int) else item


def names_axes(name: str) -> bool:
    """True for an attribute called `name` that says which dims of an operand an op is about, by their numbers."""
    return name in (*_AXIS, *_PLACES, "dimensions", "axes")


def _axes(name: str, operands: Sequence[Type]) -> list[Any]:
    """All numbers of a dim that the attribute speaks of, from either end; the result may have a dim more."""
    ranks = [len(x.shape) for x in operands if isinstance(x, TensorType) and x.shape is not None]
    if not ranks or name == "broadcast_dimensions":
        return list(range(-MOST_AXES if name in _AXIS else 0, MOST_AXES))
    if name in _PLACES:
        return list(range(ranks[1 if name.startswith("rhs") else 0]))
    return list(range(-ranks[0] - 1, ranks[0] + 1))


def _places(name: str, operands: Sequence[Type]) -> list[Any]:
    """All sequences of different dims of the operand that the attribute speaks of; of the result, one dim more is looked at."""
    ranks = [len(x.shape) for x in operands if isinstance(x, TensorType) and x.shape is not None]
    if name == "broadcast_dimensions":
        return [c for extra in (0, 1) for c in itertools.permutations(range(ranks[0] + extra), ranks[0])]
    count = ranks[1 if name.startswith("rhs") else 0]
    return [c for size in range(count + 1) for c in itertools.permutations(range(count), size)]


def _groups(operands: Sequence[Type]) -> list[int]:
    """The number of groups in which filters of so few channels cover those of the input."""
    shapes = [x.shape for x in operands if isinstance(x, TensorType) and x.shape is not None and len(x.shape) > 1]
    channels = [shape[1] for shape in shapes if isinstance(shape[1], int)]
    return [channels[0] // channels[1]] if len(channels) == 2 and channels[1] and channels[0] >= channels[1] else []


def _integers(name: str, count: int) -> list[Any]:
    spatial = max(0, count - 2)
    if name in SPATIAL:
        return [(1,) * spatial, (2,) * spatial, (1,) * count, *(((2,) * count,) if name == "strides" else ())]
    if name == "pads":
        return [(0,) * 2 * spatial, (1,) * 2 * spatial, (0,) * spatial + (1,) * spatial]
    if name in ("window_dimensions", "window_strides", "base_dilations", "window_dilations"):
        return [(1,) * count, (1,) * (count - spatial) + (2,) * spatial, (2,) * count]
    if name in ("low", "high", "interior"):
        return [(0,) * count, (1,) * count, (0,) * (count - spatial) + (1,) * spatial]
    if name in ("axes", "dimensions"):
        chosen = [c for size in range(count + 1) for c in itertools.combinations(range(count), size)]
        return [*chosen, *((axis - count,) for axis in range(count))]
    ascending = [c for size in range(count + 1) for c in itertools.combinations(range(count), size)]
    if name == "broadcast_dimensions":
        return [c for extra in (0, 1) for c in itertools.combinations(range(count + extra), count)]
    return [*ascending, (1,) * count]


def _shapes(name: str, own: tuple[Dim, ...]) -> list[Any]:
    if name == "start":
        return [(0,) * len(own)]
    if name == "limit":
        return [own, tuple(dim if isinstance(dim, int) and dim < 2 else dims.subtract(dim, 1) for dim in own)]
    shapes = [own, (dims.product(own),), (1, *own), (2, *own), (*own, 1)]
    if len(own) > 1:
        shapes += [(dims.multiply(own[0], own[1]), *own[2:]), tuple(reversed(own))]
    squeezed = tuple(dim for dim in own if dim != 1)
    return list(dict.fromkeys([*shapes, squeezed]))


@lru_cache(maxsize=1)
def _constants() -> list[Any]:
    """Matrices of the kinds that rules look into: triangular ones of truths and of infinities, and ascending integers."""
    triangles = [np.tri(rows, columns, k, dtype=bool) for rows, columns, k in ((3, 3, 0), (2, 4, 2), (4, 3, -1), (3, 4, 0))]
    masks = [np.where(triangles[0], 0, -np.inf).astype(np.float32), np.where(triangles[3], 0, -1e4).astype(np.float32)]
    return [constant_of(array) for array in (*triangles, triangles[3][None, None], *masks, np.array([0, 1]), np.array([2, 0, 1]))]
