"""How a Triton kernel is started: its arguments, its grid and its compile-time numbers, as data. The host code is written from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from coset.ir.dims import Dim, evaluate
from coset.lowering.kernels.kernel import Buffer
from coset.lowering.triton.choice import STAGES, WARPS, KernelChoice, KernelChoices, MeasuredChoice

INT32_LIMIT = 2**31


class Rounding(Enum):
    """Where results of floats narrower than f32 are rounded to their dtype: where they are stored, converted or folded, or after
    each op, which is the hub's meaning to the bit and costs two conversions an op."""

    STORES = "stores"
    EACH = "each"


@dataclass(frozen=True)
class EmitOptions:
    """What the user allows: `tf32` lets products of f32 use tensor cores with 10 bits of fraction; else `bf16x6` makes them six products
    of bf16, where the target has no faster way to multiply f32 in full and sums may be in another order. `splits`: a product may keep
    the sums of parts in memory of its own. `choices`: numbers of tiles and launches of kernels that were tuned."""

    rounding: Rounding = Rounding.STORES
    tf32: bool = False
    bf16x6: bool = False
    processors: int = 132  # streaming multiprocessors (or compute units) that a grid should fill
    cache: int = 0  # bytes of a cache that all of these share; 0: none is counted on
    splits: bool = True
    choices: KernelChoices | None = field(default=None, hash=False)
    choice: KernelChoice | None = None  # for the kernel at hand; a part of it that is a kernel of its own has none
    bulk: int = 0  # bytes of shared memory of a program, where operands may be read by bulk copies; 0: the target has no such copies
    eights: int | None = None  # products of 8-bit floats that the matrix units may add before f32 takes the sum on, a power of two; 0: they
    # add in f32; None: they multiply no such floats, which become f16
    begins: tuple[tuple[str, int], ...] = ()  # of the kernel at hand: elements of buffers that its pointers are moved by

    def plain(self) -> EmitOptions:
        """For a part of a kernel that is not what is chosen for."""
        return replace(self, choice=None)

    @property
    def f32_as(self) -> str:
        """What matrix units multiply f32 as: tf32, bf16x6 (six products of bf16), or f32 where they do it in full."""
        return "tf32" if self.tf32 else "bf16x6" if self.bf16x6 else "f32"

    @property
    def contracts(self) -> bool:
        """True where a multiplication and an addition may be one operation, rounded once: it is not what the hub says to the bit."""
        return self.rounding is not Rounding.EACH


@dataclass(frozen=True)
class CopyTiles:
    """How bulk copies see a buffer: a tensor of this `shape` and these `strides`, in elements (the last one 1, the others multiples of 16
    bytes), of which one copy brings a `block`: numbers, or names of the launch's constexprs. What lies outside of the shape is 0."""

    shape: tuple[Dim, ...]
    strides: tuple[Dim, ...]
    block: tuple[int | str, ...]


@dataclass(frozen=True)
class Argument:
    """One run-time argument: the parameter's `name`; a buffer's pointer (of `type`, Triton's name for it), or a number of the host. With
    `tiles` it is a descriptor of the buffer instead of its pointer.

    A pointer of `*u8` may stand for a buffer of 8-bit floats: the host hands over the same bytes as unsigned integers. Only operands of
    matrix units that take such floats have types of theirs.
    """

    name: str
    type: str
    buffer: str | None = None
    dim: Dim = 0
    begin: int = 0  # elements of the buffer before that to which the pointer points
    tiles: CopyTiles | None = None


@dataclass(frozen=True)
class Launch:
    """One start of the Triton function `function`: `arguments` in order, then `constexprs` by name, over `grid` programs.

    Where `extents` is not empty, the function has one more constexpr, `WIDE`: true when any of these dims is 2^31 or more, so that
    offsets need 64 bits. A grid with a 0 in it is not launched.
    """

    function: str
    arguments: tuple[Argument, ...]
    grid: tuple[Dim, ...]
    constexprs: tuple[tuple[str, int], ...] = ()
    extents: tuple[Dim, ...] = ()
    num_warps: int = WARPS
    num_stages: int = STAGES
    contracts: bool = True  # see `EmitOptions`

    def block(self, tiles: CopyTiles) -> tuple[int, ...]:
        """The block of one copy as numbers."""
        numbers = dict(self.constexprs)
        return tuple(numbers[size] if isinstance(size, str) else size for size in tiles.block)

    def type_of(self, argument: Argument) -> str:
        """The type of an argument in the signature of the function."""
        if argument.tiles is None:
            return argument.type
        return f"tensordesc<{argument.type.removeprefix('*')}[{', '.join(map(str, self.block(argument.tiles)))}]>"

    def options(self) -> dict[str, int | bool]:
        """What Triton's compiler is told beside the constexprs: also whether products and sums become one instruction, which has another
        default from Triton 3.10 on, and one from the environment today."""
        return {"num_warps": self.num_warps, "num_stages": self.num_stages, "enable_fp_fusion": self.contracts}

    def numbers(self, binding: Mapping[str, int]) -> dict[str, int | bool]:
        """The constexprs by name for the sizes of `binding`, with `WIDE`."""
        found: dict[str, int | bool] = dict(self.constexprs)
        if self.extents:
            found["WIDE"] = any(evaluate(dim, binding) >= INT32_LIMIT for dim in self.extents)
        return found


@dataclass(frozen=True)
class EmittedKernel:
    """A kernel of the plan as Triton functions: their source (helpers and imports left out), their launches in order, and the
    buffers that they need between them (`scratch`: written and read here only). `unit`: what a product's operands are multiplied as, a
    dtype or tf32; empty where nothing is. `choice`: what it was made with, the default or another; `chosen`: as `Options.choices` say."""

    source: str
    launches: tuple[Launch, ...]
    scratch: tuple[Buffer, ...] = field(default=())
    unit: str = ""
    choice: KernelChoice | None = None
    chosen: MeasuredChoice | None = None
