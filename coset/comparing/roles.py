"""What integer inputs mean to the nodes that read them: axes, sizes, places, counts. Numbers that fit run where drawn ones are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from coset.ir import dims
from coset.ir.dims import Dim
from coset.ir.errors import CosetError
from coset.ir.evaluate import describe
from coset.ir.program import Program
from coset.ir.term import INPUT, Term
from coset.ir.types import TensorType

FAR = 1 << 40  # an end beyond every axis


@dataclass(frozen=True)
class ReadingNode:
    """A node with the sizes of its operands, as far as they are known; `draw` decides what is left open."""

    term: Term
    binding: Mapping[str, int]
    draw: np.random.Generator

    def shape(self, operand: int) -> list[int] | None:
        """The sizes of an operand; None where they are not known."""
        return _sizes(self.term.operands[operand], self.binding) if operand < len(self.term.operands) else None

    def rank(self, operand: int) -> int:
        """The rank of an operand; 1 where it is not known."""
        type = self.term.operands[operand].type
        return len(type.shape) if isinstance(type, TensorType) and type.shape is not None else 1

    def given(self, name: str, default: int) -> int:
        """An attribute of the node."""
        attributes = dict(self.term.attributes)
        found = dict(attributes.get("given", ()), **attributes).get(name, default)
        return int(found) if isinstance(found, int) else default

    def size(self, axis: int) -> int:
        """The size of the first operand along an axis; 2 where it is not known."""
        shape = self.shape(0)
        return shape[axis] if shape and -len(shape) <= axis < len(shape) else 2


Role = Callable[[ReadingNode, int], Any]
"""`count` numbers that fit."""


def _axes(reader: ReadingNode, count: int) -> Any:
    rank = max(reader.rank(0), count)
    return np.sort(reader.draw.permutation(rank)[:count]) - (rank if reader.draw.random() < 0.3 else 0)


def _new_axes(reader: ReadingNode, count: int) -> Any:
    return np.sort(reader.draw.permutation(reader.rank(0) + count)[:count])


def _ones_axes(reader: ReadingNode, count: int) -> Any:
    shape = reader.shape(0) or [1] * count
    return np.array([*(axis for axis, size in enumerate(shape) if size == 1), *range(count)][:count])


def _target(reader: ReadingNode, count: int) -> Any:
    """The shape of a reshape: the operand's own axes as far as there are that many, the rest in one."""
    kept = min(count, reader.rank(0))
    return np.array([*[0] * (kept - 1), *([-1] if kept else []), *[1] * (count - kept)])


def _spread(reader: ReadingNode, count: int) -> Any:
    """The shape of an expansion: other sizes where the operand's are 1."""
    shape = [*[1] * count, *(reader.shape(0) or [])][-count:] if count else []
    return np.array([int(reader.draw.integers(1, 4)) if size == 1 else size for size in shape])


def _parts(reader: ReadingNode, count: int) -> Any:
    """Sizes of the parts of an axis, none of them the same as the next where that can be."""
    size = reader.size(reader.given("axis", 0))
    cuts = np.sort(reader.draw.permutation(np.arange(1, max(size, 2)))[: count - 1])
    return np.diff(np.array([0, *cuts, size])) if len(cuts) == count - 1 else np.array([size, *[0] * (count - 1)])


def _near_sizes(reader: ReadingNode, count: int) -> Any:
    """Sizes next to those of the operand, along its last axes."""
    shape = [*[4] * count, *(reader.shape(0) or [])][-count:]
    return np.maximum(np.array(shape) + reader.draw.integers(-1, 2, count), 1)


def _resized(reader: ReadingNode, count: int) -> Any:
    """Sizes of a picture: those of the operand, other ones along its last two axes."""
    shape = [*[1] * count, *(reader.shape(0) or [])][-count:]
    return np.array([size if axis < count - 2 else size + int(reader.draw.integers(0, 4)) for axis, size in enumerate(shape)])


def _picture(reader: ReadingNode, count: int) -> Any:
    """The sizes of a grid: the batch of the first operand, and any picture."""
    return np.array([reader.size(0), *reader.draw.integers(2, 6, count - 1)])


def _tuples(reader: ReadingNode, count: int) -> Any:
    """Places along the leading axes, as many as the last axis of the indices has, all different where that can be."""
    indices, shape = reader.shape(1), reader.shape(0)
    batch = reader.given("batch_dims", 0)
    if not indices or not shape or not indices[-1]:
        return np.zeros(count, np.int64)
    axes = shape[batch : batch + indices[-1]]
    rows = count // indices[-1]
    flat = reader.draw.permutation(prod(axes)) if prod(axes) else np.zeros(1, np.int64)
    return np.stack(np.unravel_index(np.resize(flat, rows), axes), -1).reshape(-1)


def _rows(reader: ReadingNode, count: int) -> Any:
    """Places along an axis, each once where that can be."""
    return np.resize(reader.draw.permutation(max(reader.size(reader.given("axis", 0)), 1)), count)


def _between(low: int, high: int) -> Role:
    """Whole numbers from `low` to below `high`."""
    return lambda reader, count: reader.draw.integers(low, high, count)


def _blocks_of(reader: ReadingNode, count: int) -> Any:
    """The sizes of a picture that has as many places as the last axis of the operand."""
    return np.array([*[1] * (count - 1), reader.size(-1)])


def _along(operand: int, axis: int | str, default: int = 0) -> Role:
    """Places along an axis of an operand: that one, or the one that an attribute names."""

    def draw(reader: ReadingNode, count: int) -> Any:
        return reader.draw.integers(0, _extent(reader, operand, axis, default), count)

    return draw


def _counted(operand: int, axis: int | str, default: int = 0) -> Role:
    """Counts from 1 to the size of an axis."""

    def draw(reader: ReadingNode, count: int) -> Any:
        return reader.draw.integers(1, _extent(reader, operand, axis, default) + 1, count)

    return draw


def _extent(reader: ReadingNode, operand: int, axis: int | str, default: int) -> int:
    place = axis if isinstance(axis, int) else reader.given(axis, default)
    shape = reader.shape(operand)
    return max(shape[place] if shape and -len(shape) <= place < len(shape) else 2, 1)


def _of(*numbers: int) -> Role:
    """One of these numbers each."""
    return lambda reader, count: reader.draw.choice(numbers, count)


def _transformed(reader: ReadingNode, count: int) -> Any:
    """The axis of a transform: the last one of signals, behind which real and imaginary parts stand."""
    return np.full(count, max(reader.rank(0) - 2, 0))


def _permuted(reader: ReadingNode, count: int) -> Any:
    """Each place once."""
    return reader.draw.permutation(count)


REDUCES = tuple(f"Reduce{word}" for word in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSum", "LogSumExp"))
DIVISORS = _of(-3, -2, 1, 2, 3, 5)
WINDOW = _between(5, 12)
ROLES: Mapping[tuple[str, int], Role] = {
    # axes
    **{(op, 1): _axes for op in REDUCES},
    ("Squeeze", 1): _ones_axes,
    ("Unsqueeze", 1): _new_axes,
    ("CumSum", 1): _axes,
    ("CumProd", 1): _axes,
    ("Slice", 3): _axes,
    ("Pad", 3): _axes,
    ("DFT", 2): _transformed,
    # sizes
    ("DFT", 1): _between(3, 9),
    ("Reshape", 1): _target,
    ("Expand", 1): _spread,
    ("Tile", 1): _between(1, 3),
    ("ConstantOfShape", 0): _between(1, 5),
    ("Split", 1): _parts,
    ("Resize", 3): _resized,
    ("AffineGrid", 1): _picture,
    ("CenterCropPad", 1): _near_sizes,
    ("Col2Im", 1): _blocks_of,
    ("Col2Im", 2): _between(1, 2),
    **{(f"{name}Window", 0): WINDOW for name in ("Blackman", "Hamming", "Hann")},
    ("MelWeightMatrix", 0): _between(4, 9),
    ("MelWeightMatrix", 1): _between(16, 33),
    ("MelWeightMatrix", 2): _between(8000, 8200),
    ("STFT", 1): _between(2, 5),
    ("STFT", 3): _between(4, 9),
    # ends and steps
    ("Slice", 1): _between(-2, 3),
    ("Slice", 2): _of(FAR, -1),
    ("Slice", 4): _between(1, 3),
    ("Pad", 1): _between(0, 3),
    ("Range", 0): _between(-12, 12),
    ("Range", 1): _between(-12, 12),
    ("Range", 2): _of(-3, -2, -1, 1, 2, 3),
    ("Trilu", 1): _between(-3, 4),
    # places
    ("Gather", 1): _along(0, "axis"),
    ("GatherElements", 1): _along(0, "axis"),
    ("GatherND", 1): _tuples,
    ("ScatterND", 1): _tuples,
    ("ScatterElements", 1): _rows,
    ("Scatter", 1): _rows,
    ("ArrayFeatureExtractor", 1): _along(0, -1),
    ("OneHot", 0): _between(-4, 4),
    ("OneHot", 1): _between(4, 7),
    ("SoftmaxCrossEntropyLoss", 1): _along(0, 1),
    ("NegativeLogLikelihoodLoss", 1): _along(0, 1),
    ("RoiAlign", 2): _along(0, 0),
    ("RotaryEmbedding", 3): _along(1, 0),
    ("TensorScatter", 2): _between(0, 1),
    ("MaxUnpool", 1): _permuted,
    # counts
    ("TopK", 1): _counted(0, "axis", -1),
    ("ReverseSequence", 1): _counted(0, "time_axis"),
    ("Attention", 6): _counted(1, -2),
    **{(op, 4): _counted(0, 0) for op in ("LSTM", "GRU", "RNN")},
    ("Loop", 0): _between(1, 6),
    ("NonMaxSuppression", 2): _between(1, 6),
    # numbers that not all are defined for
    ("BitShift", 1): _between(0, 8),
    ("Pow", 1): _between(0, 4),
    ("Mod", 1): DIVISORS,
}
HUB_DIVISORS = ("stablehlo.divide", "stablehlo.remainder")
KEEPS = frozenset(f"stablehlo.{name}" for name in ("abs", "negate", "multiply", "maximum", "minimum", "convert", "concatenate", "gather"))
KEPT_SO = ("Abs", "Neg", "Mul", "Max", "Min", "Cast", "Concat", "Gather", "TopK")  # the same where they stay nodes of ONNX


def roles_of(program: Program, *, computed: bool = False) -> dict[str, tuple[Term, Role]]:
    """For inputs of integers that a node reads as what it must be: that node and what fits. `computed`: also for those that divisors are
    computed from."""
    found: dict[str, tuple[Term, Role]] = {}
    origins: dict[Term, str] = {}  # inputs that were only moved or converted on the way
    for term in program.terms():
        if term.op is INPUT and isinstance(term.type, TensorType) and term.type.dtype.kind in ("int", "uint"):
            origins[term] = term.attribute("name")
        if len(term.operands) == 1 and term.operands[0] in origins and (term.op.has("movement") or term.op.name == "stablehlo.convert"):
            origins[term] = origins[term.operands[0]]
        for place, operand in enumerate(term.operands):
            name = origins.get(operand)
            role = None if name is None else role_of(term, place)
            if name is not None and role is not None:
                found.setdefault(name, (term, role))
    for name, term in _into_divisors(program) if computed else ():
        found.setdefault(name, (term, DIVISORS))
    return found


def _into_divisors(program: Program) -> Iterator[tuple[str, Term]]:
    """Inputs of integers from which divisors are computed by ops that give no 0 where there was none, each with what divides."""
    pending = [(term.operands[1], term) for term in program.terms() if role_of(term, 1) is DIVISORS]
    seen = set()
    while pending:
        term, reader = pending.pop()
        if term in seen:
            continue
        seen.add(term)
        if term.op is INPUT:
            if isinstance(term.type, TensorType) and term.type.dtype.kind in ("int", "uint"):
                yield str(term.attribute("name")), reader
        elif term.op.name in KEEPS or term.op.has("movement") or _name(term) in KEPT_SO:
            places = _name(term) in ("gather", "Gather", "TopK")  # their second operand says where, or how many
            pending += [(operand, reader) for operand in (term.operands[:1] if places else term.operands)]


def role_of(term: Term, place: int) -> Role | None:
    """What operand `place` of a term must be; None where it may be any numbers."""
    if term.op.name in HUB_DIVISORS and place == 1:
        return DIVISORS
    return ROLES.get((_name(term), place)) if term.op.has("foreign") else None


def _name(term: Term) -> str:
    """The name of its op, or of the node that it keeps, without the dialect."""
    return describe(term).split(".")[-1]


def fitted(
    roles: Mapping[str, tuple[Term, Role]], binding: Mapping[str, int], feed: Mapping[str, Any], draw: np.random.Generator
) -> dict[str, Any]:
    """The inputs with numbers that fit in place of those that have a role (`roles_of`)."""
    result = dict(feed)
    for name, (term, role) in roles.items():
        value = np.asarray(feed[name])
        try:
            numbers = np.resize(np.asarray(role(ReadingNode(term, binding, draw), value.size)), value.size)
        except (CosetError, ValueError):
            continue
        ends = np.iinfo(value.dtype)
        numbers = np.abs(numbers) if ends.min == 0 else numbers  # a divisor of -3 is none of 0
        result[name] = np.clip(numbers, ends.min, ends.max).astype(value.dtype).reshape(value.shape)
    return result


def _sizes(term: Term, binding: Mapping[str, int]) -> list[int] | None:
    shape: Sequence[Dim] | None = term.type.shape if isinstance(term.type, TensorType) else None
    if shape is None or any(not dims.symbols(dim) <= binding.keys() for dim in shape):
        return None
    return [dims.evaluate(dim, binding) for dim in shape]
