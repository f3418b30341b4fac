"""`Target`: what a machine can run and how fast, as data. A file `NAME.toml` of this folder is the target NAME."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import exp, log
from pathlib import Path
from typing import TYPE_CHECKING

from coset.ir.errors import CosetError

if TYPE_CHECKING:
    from coset.targets.running import Sessions

DIALECTS = ("onnx", "stablehlo", "torch", "tosa", "*")
"""What can be printed for a target."""
EVERY = "*"  # the dtype of a rate that holds for all dtypes without one of their own; the dialect of a target that has all ops


@dataclass(frozen=True)
class Rate:
    """A measured or published number: `value` in `unit` (FLOP/s, element/s, s), and where it comes from."""

    value: float
    unit: str
    source: str


@dataclass(frozen=True)
class Curve:
    """A number that depends on another: (x, y) points by rising x, straight between them in logarithms, flat outside."""

    points: tuple[tuple[float, float], ...]
    x: str
    unit: str
    source: str

    def at(self, x: float) -> float:
        """The number at `x`."""
        place = bisect_left(self.points, (x, 0.0))
        if place == 0:
            return self.points[0][1]
        if place == len(self.points):
            return self.points[-1][1]
        (x0, y0), (x1, y1) = self.points[place - 1], self.points[place]
        share = log(x / x0) / log(x1 / x0)
        return exp(log(y0) + share * log(y1 / y0))

    def highest(self) -> Curve:
        """The curve that is everywhere at its highest point."""
        return replace(self, points=(max(self.points, key=lambda point: point[1]),))


@dataclass(frozen=True)
class Tiles:
    """The shape that a matrix unit works in: a product of [rows, depth] x [depth, columns] takes as long as one whose three sizes are
    multiples of these. Source: where that is written."""

    rows: int
    columns: int
    depth: int
    source: str


@dataclass(frozen=True)
class Kernel:
    """How fast one family of kernels works: the larger of work over `rates` and bytes over `bandwidth`, after a launch.

    The work is the op's FLOP where a rate's unit is FLOP/s, and elements of the largest tensor where it is element/s.
    `rows`: the share of the rate that a contraction with few rows reaches. No rates: the bytes alone count. No
    bandwidth: nothing moves. `work`: the share of the rate that little work reaches, before all threads join. The lower of both
    shares counts. `tiles`: the work is that of the padded product; None: the machine wastes less than the model counts anyway.
    `piece`: seconds of each piece that a node goes through one by one (see `coset.extract.work.pieces_of`); None: they cost nothing.
    """

    launch: Rate
    rates: Mapping[str, Rate] = field(default_factory=dict)  # by dtype name
    bandwidth: Curve | None = None  # B/s over the bytes that one launch touches
    rows: Curve | None = None
    work: Curve | None = None
    tiles: Tiles | None = None
    piece: Rate | None = None

    def rate(self, dtype: str) -> Rate | None:
        """The rate for `dtype`; None when the kernel is limited by its bytes alone."""
        return self.rates.get(dtype) or self.rates.get(EVERY)

    def moving(self, size: float) -> float:
        """Seconds for `size` bytes."""
        return size / self.bandwidth.at(size) if self.bandwidth is not None and size else 0.0

    def multiplying(self, dtype: str, flops: float, rows: float) -> float:
        """Seconds for `flops` of a contraction with `rows` (infinite where there are no panels to fill); 0 where there is no rate."""
        rate = self.rate(dtype)
        if rate is None:
            return 0.0
        # what holds it back more: a product of one row with little work waits for memory or for its threads, not for both
        shares = [1.0]
        if self.rows is not None:
            shares.append(self.rows.at(max(1.0, rows)))
        if self.work is not None:
            shares.append(self.work.at(max(1.0, flops)))
        return flops / (rate.value * min(shares))


@dataclass(frozen=True)
class Form:
    """One legal way to print an op: the kernels it becomes, for which element types, under which conditions.

    `dtypes` speaks of operand number `typed`, of the result for an op without operands; None is every dtype.
    `conditions` are words of `coset.targets.condition`. `nodes`: how many nodes are printed. `views`: operands that
    may be a broadcast which is not materialised, because the kernel broadcasts as NumPy does; all dims
    but the last `kept`, which must be there in full. `reorder`: the kernel
    that puts operands and result in order around this one, or None. `passes`: kernels that go once more over an operand (its number)
    or over the result (-1) before the op's own starts. `joint`: slices that are together all of one value are one node.
    `guesses`: the kernel that a mask (operand 0) takes besides where all operands are computed, each element by itself, so that no branch
    on it is foreseen. `whole`: the runtime fuses nodes of the op with others, so rules do not look into it.
    """

    kernel: str
    dtypes: frozenset[str] | None = None
    conditions: tuple[str, ...] = ()
    nodes: int = 1
    views: frozenset[int] = frozenset()
    kept: int = 0
    typed: int = 0
    reorder: str | None = None
    passes: tuple[tuple[str, int], ...] = ()
    joint: bool = False
    guesses: str | None = None
    whole: bool = False


@dataclass(frozen=True)
class Storing:
    """Which values of constants alone are computed at build time and stored: those of at most `growth` times the bytes that they are made
    of, or of at most `small` bytes. Where memory is what limits, nothing may grow: an int8 weight stays one. `kept`: ops of ONNX whose
    value is never stored, since the runtime has kernels that take them in with their reader."""

    growth: float = 4.0
    small: int = 1 << 20
    kept: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Fusion:
    """Where ops share kernels (`planning/plan.py`): the names of the kernels whose numbers price a whole one of each kind. What libraries
    run is priced by its form. `full`: of products of f32 in full, where no matrix unit does them; None: they are priced as `product`.
    `library`: of such products alone, by a library; `halves`: of products of 16-bit floats by a library; None: it does none. They all
    depend on the shorter side of the result, not on its rows. `bf16x6`: of attention in f32 whose products are six of bf16, and of its
    gradients; None: our kernels multiply f32 in full. `attention`: of attention of 16-bit floats by a library, where `rows` of a curve
    are the elements of a head; None: it does none."""

    pointwise: str
    rows: str
    product: str
    full: str | None = None
    library: str | None = None
    halves: str | None = None
    bf16x6: str | None = None
    attention: str | None = None


@dataclass(frozen=True)
class Target:
    """A machine with the runtime on it. `dialect` is what is printed for it; ops of that dialect without a form of their
    own take `default`. `casts`: dtypes that the runtime itself computes in another one. `numbers`: facts such as cache sizes.
    `folds_constants`: the runtime itself computes once, when it loads, what depends on constants only. `strict`: the dtypes of forms hold
    for ops of the user's own program too, where elsewhere what the runtime takes is the user's choice. `merges`: the rows up to which
    products of one operand with several matrices are tried as one; None: not at all. `fusion`: what prices kernels that several ops share;
    None where each op is a kernel. `sessions`: how it is told to run a program; None
    where there is nothing to tell. `host`: the target that computes what this one has no form for; its kernel `transfer` moves values
    there and back. `standard`: what is written are ops of ONNX's own domain in the version that the model came with, nothing that
    is one runtime's. `bases`: the targets and bases that its file is based on, whose kernels are its own too. `file`: of a
    target that a user wrote, where."""

    name: str
    title: str
    dialect: str
    kernels: Mapping[str, Kernel]
    forms: Mapping[str, tuple[Form, ...]]  # by op name; the first that fits is taken
    default: Form
    casts: Mapping[str, str]
    numbers: Mapping[str, Rate]
    folds_constants: bool = False
    strict: bool = False
    storing: Storing = Storing()
    merges: Rate | None = None
    fusion: Fusion | None = None
    sessions: Sessions | None = None
    host: str | None = None
    standard: bool = False
    notes: str = ""
    bases: tuple[str, ...] = ()
    file: str = ""


_REGISTRY: dict[str, Target] = {}  # those that were asked for so far


def get_target(name: str | Path) -> Target:
    """The target called `name`, or that in a file of the user's, where `name` is a path. A file of ours is read when it is first asked
    for, one of the user's each time. Its ops are checked when all of them are known: `coset.targets.ops`.

    Raises:
        CosetError: there is none, or the file is malformed.
    """
    if isinstance(name, Path) or name.endswith(".toml") or "/" in name or "\\" in name:
        return _users(Path(name))
    if name not in _REGISTRY:
        from coset.targets.read import own_target

        found = own_target(name)
        if found is None:
            raise CosetError(f"there is no target `{name}`", help=f"the path of a .toml file, or one of: {', '.join(target_names())}")
        _REGISTRY[name] = _REGISTRY.setdefault(found.name, found)
    return _REGISTRY[name]


def _users(path: Path) -> Target:
    """The target in the user's file, known from now on by the file's name: rules may have kernels on it."""
    from coset.targets.document import target_files
    from coset.targets.read import read_target

    name = path.stem.replace("_", "-")
    if name in target_files() and path.is_file():
        raise CosetError(f"`{path}` has the name of the target `{name}`", help="give the file another name")
    target = replace(read_target(path, name), file=str(path))
    _REGISTRY[name] = target
    return target


def target_names() -> list[str]:
    """The names of all targets; no file is read for it."""
    from coset.targets.document import target_files

    return sorted({*target_files(), *_REGISTRY})


def all_targets() -> list[Target]:
    """Every target once, by name."""
    return [target for name in target_names() if (target := get_target(name)).name == name]
