"""A plan: kernels in launch order over buffers."""

from __future__ import annotations

from dataclasses import dataclass, field

from coset.ir.dims import Shape, floordiv
from coset.ir.term import Term
from coset.ir.types import DTYPES, DType
from coset.lowering.kernels.computed import Kernel


@dataclass(frozen=True)
class Buffer:
    """Memory of one tensor: row-major without gaps, unless `strides` (in elements) say otherwise, or `order`: its dims from the outermost
    in memory to the one whose elements are neighbours, without gaps.

    `role`: input, constant, output or temporary. A constant's `value` is the term that it is (read by reference, never copied).
    Elements below a byte have one each, unless they are `packed`: then neighbours along that dim share one, the first in its lowest bits.
    """

    name: str
    dtype: DType
    shape: Shape
    role: str
    strides: Shape | None = None
    value: Term | None = None
    packed: int | None = None
    order: tuple[int, ...] | None = None

    @property
    def sharing(self) -> int:
        """How many elements a byte has; 1 where elements are apart."""
        return 1 if self.packed is None else 8 // self.dtype.bits

    @property
    def held(self) -> DType:
        """The element type of the memory."""
        return self.dtype if self.packed is None else DTYPES["u8"]

    @property
    def extents(self) -> Shape:
        """The dims of the memory."""
        return tuple(floordiv(dim, self.sharing) if axis == self.packed else dim for axis, dim in enumerate(self.shape))


@dataclass(frozen=True)
class HeldTerm:
    """A term that a buffer holds: as the whole, or in the box from `low` to before `high`, whose dims in the order `axes` are the term's
    elements in row-major order."""

    term: Term
    buffer: str
    low: Shape
    high: Shape
    axes: tuple[int, ...]


@dataclass(frozen=True)
class StreamPlan:
    """How kernels run beside each other: by the place of each, the stream that it is launched on (0 is the caller's), and the kernels of
    other streams that it waits for. Those of one stream run one after the other."""

    of: tuple[int, ...]
    waits: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Plan:
    """A program as kernels in launch order over buffers.

    `inputs` and `outputs` name buffers in the program's order (an output may be an input's or a constant's buffer). `symbols` are the
    program's dim symbols with the (buffer, axis) that each is read from: an input, or a library's result that brings a new symbol.
    `apart` says why neighbours did not share a kernel: (earlier kernel, later kernel, reason). `offsets` place the temporaries of
    static shape in one arena of `arena` bytes; `memory.shared` says which of the others may share memory. Where the plan `frees`, there is
    no arena: each temporary is new when it is first written and gone after its last use, and one of `over` has the memory of the other.
    `streams` says which kernels may run beside each other; None: each waits for the one before it. `held` are the terms that kernels
    store, so that what each makes can be compared with its meaning.
    """

    buffers: dict[str, Buffer]
    kernels: tuple[Kernel, ...]
    inputs: tuple[tuple[str, str], ...]  # (name in the program, buffer)
    outputs: tuple[tuple[str, str], ...]
    symbols: dict[str, tuple[str, int]] = field(default_factory=dict)
    apart: tuple[tuple[str, str, str], ...] = ()
    offsets: dict[str, int] = field(default_factory=dict)
    arena: int = 0
    frees: bool = False
    over: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    streams: StreamPlan | None = None
    held: tuple[HeldTerm, ...] = ()
