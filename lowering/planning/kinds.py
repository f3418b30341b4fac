"""What a planner may do with a term: compute it anywhere (light), fold rows with it, tile it as a product, or hand it to a library."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from math import ceil, prod

from coset.dialects.hub.terms import is_splat
from coset.ir.dims import product
from coset.ir.term import Term
from coset.ir.types import DTYPES, F32, I32, DType, TensorType
from coset.lowering.kernels.indexing import ALTERNATIVES, MOVEMENTS, merges_and_splits
from coset.lowering.planning.grouped import FLOATS, is_grouped
from coset.lowering.planning.picking import PICKED
from coset.lowering.planning.scanning import prefix_of
from coset.lowering.planning.scattering import is_by_rows
from coset.lowering.planning.sorting import sorts_rows


@dataclass(frozen=True)
class KernelLimits:
    """What one kernel may be, and what counts when bytes and work are compared. The defaults keep a kernel's values in registers."""

    scalars: int = 192  # scalar expressions in one kernel
    inlined: int = 48  # scalar expressions of one value that is computed where it is used
    sources: int = 8  # buffers that a value which is computed again may read
    index: int = 64  # atoms in one index
    product_scalars: int = 4  # arithmetic in front of a product, done again for each tile
    once_scalars: int = 16  # the same where there is one tile along the other operand's rows, of at most so many:
    tile: int = 128
    launch_bytes: int = 2 << 20  # what a launch costs, as memory traffic (about 2 us)
    search: int = 128  # kernels looked at to see that one does not wait for another
    step_bytes: int = 1 << 20  # what memory brings while a program that goes along a row waits for its tile (about 1 us)
    contracts: bool = True  # sums about what a fold gives may be made of sums about what it gives of parts: they round otherwise
    long_row: int = 1 << 15  # a cumulative reduction along a row so long is a library's ..
    few_rows: int = 32  # .. where there are so few of them
    atomics: bool = False  # sums of floats may be added into memory in any order, so that two runs differ in their last bits

    def parts(self, rows: int, columns: int, *, along_rows: bool) -> int:
        """Of how many parts each row of a reduction is best made: 1, unless its programs, one for each row (or for each tile of rows, where
        neighbours in memory are neighbours `along_rows`), would so long wait for memory, step by step, that launches of programs for parts
        and for what is made of them take less."""
        height, width = (min(rows, TILE_ALONG_ROWS[0]), TILE_ALONG_ROWS[1]) if along_rows else (1, TILE)
        if not rows or not columns:
            return 1
        programs = -(-rows // height)
        steps = -(-columns // width) if along_rows or columns > WHOLE_ROW else 1
        busy = self.step_bytes / (TILE * F32.bytes)  # programs that keep memory busy
        parts = min(steps, ceil(2 * busy / programs))
        if parts < 2:
            return 1
        moved = rows * columns * F32.bytes
        alone, beside = (max(moved, each * self.step_bytes) for each in (steps, -(-steps // parts)))
        return parts if alone - beside > 2 * self.launch_bytes else 1


WHOLE_ROW = 8192  # elements of a row that one program holds
TILE = 2048  # elements of a tile of rows
TILE_ALONG_ROWS = (64, 32)  # rows and columns of a tile at most, where neighbours in memory are neighbouring rows
WEIGHTS = "kernel.softmax"  # of an attention that is one kernel
WINDOWED = "kernel.windowed_product"  # a convolution that is one
STATISTICAL = tuple(f"kernel.softmax_{word}" for word in ("top", "share", "slope"))  # of each row, of gradients of attention
SUMMED = "kernel.windowed_sum"  # one whose sums are written out
FOLDED = "kernel.windowed_fold"  # a pool, which is written out
WRITTEN_OUT = frozenset({SUMMED, FOLDED})
LEAVES = frozenset({"builtin.input", "builtin.constant", "builtin.parameter"})
NOTHING = frozenset({"builtin.absent", "builtin.token"})
FREE = frozenset({"stablehlo.iota", "builtin.dims"})  # made from indices and numbers of the host
COSTLY = frozenset(
    {"exponential", "exponential_minus_one", "log", "log_plus_one", "logistic", "tanh", "tan", "sine", "cosine", "power", "erf", "erfc",
     "divide", "remainder", "cbrt", "atan2", "sqrt", "rsqrt", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh"}
)  # fmt: skip
CONVOLUTION_GRADIENTS = frozenset({"kernel.transposed_convolution", "kernel.filter_gradient"})
SMALL = frozenset({"i4", "u4", "i2", "u2", "f4e2m1fn"})
READ_ONLY = SMALL | {"f8e8m0fnu"}
_UNUSUAL = frozenset({"f8e8m0fnu", "f8e4m3fnuz", "f8e5m2fnuz"})


def is_plain(type: TensorType) -> bool:
    """True for element types that a GPU kernel loads and computes with."""
    dtype = type.dtype
    return type.shape is not None and dtype.kind in ("float", "int", "uint", "bool") and dtype.bits >= 8 and dtype.name not in _UNUSUAL


def is_readable(type: TensorType) -> bool:
    """True for element types that a GPU kernel loads: those of `READ_ONLY` it moves and converts."""
    return is_plain(type) or (type.shape is not None and type.dtype.name in READ_ONLY)


def is_light(term: Term) -> bool:
    """True for a term that a kernel can compute at any index from its operands at some index."""
    if not isinstance(term.type, TensorType) or not all(isinstance(operand.type, TensorType) for operand in term.operands):
        return False
    if not all(is_readable(operand.tensor) for operand in term.operands):
        return False
    moves = term.op.name in MOVEMENTS or term.op.name in PICKED
    if moves or (term.op.name == "stablehlo.convert" and is_plain(term.tensor)):
        return is_readable(term.tensor)
    if not all(map(is_plain, (term.tensor, *(operand.tensor for operand in term.operands)))):
        return False
    if term.op.name == "stablehlo.bitcast_convert":
        return term.tensor.rank == term.operands[0].tensor.rank
    return term.op.has("elementwise") or term.op.name in FREE or term.op.name in WRITTEN_OUT


def is_arithmetic(term: Term) -> bool:
    """True for a light term that computes; a movement only moves."""
    return term.op.has("elementwise")


def is_widening(term: Term) -> bool:
    """True for integers that become wider ones, which loads do in passing."""
    if term.op.name != "stablehlo.convert":
        return False
    given, made = term.operands[0].tensor.dtype, term.tensor.dtype
    return made.kind in ("int", "uint") and given.kind in (made.kind, "uint") and given.bits < made.bits


def cost_of(term: Term) -> int:
    """The scalar expressions that computing a light term adds to a kernel: none for what only changes an index a little, several for
    a reshape, which divides."""
    name = term.op.name
    if name in PICKED:  # each start is clamped; an update chooses
        return 3 * len(term.operands) if name != "stablehlo.gather" else 3 * len(term.attribute("start_index_map"))
    if name in ALTERNATIVES:
        return 2 * len(term.operands) - 2
    if name == "stablehlo.reshape":
        return 4 if merges_and_splits(term.tensor.dims, term.operands[0].tensor.dims) else 16
    if name in MOVEMENTS:
        return 0
    if name in WRITTEN_OUT:  # each element is read where it is inside
        window = term.attribute("window") if name == FOLDED else term.operands[1].tensor.dims[2:]
        return 4 * prod(dim for dim in window if isinstance(dim, int))
    return 0 if term.operands and all(is_splat(operand) is not None for operand in term.operands) else 1


def is_costly(term: Term) -> bool:
    """True for an elementwise op of many instructions."""
    return term.op.name.split(".", 1)[1] in COSTLY


def is_fold(term: Term) -> bool:
    """True for a reduction that a kernel computes."""
    return term.op.name == "stablehlo.reduce" and is_plain(term.operands[0].tensor)


def is_scanned(term: Term) -> bool:
    """True for a cumulative reduction that a kernel computes: of few long rows a library does it, as most of a GPU would wait."""
    found = prefix_of(term)
    if found is None or not is_plain(term.tensor):
        return False
    length = term.tensor.dims[found.axis]
    rows = product(dim for axis, dim in enumerate(term.tensor.dims) if axis != found.axis)
    few = isinstance(rows, int) and rows <= KernelLimits.few_rows
    return not (few and isinstance(length, int) and length >= KernelLimits.long_row)


def is_scattered(term: Term) -> bool:
    """True for a scatter that a kernel computes."""
    return is_by_rows(term) and is_plain(term.tensor)


def is_sorted(term: Term) -> bool:
    """True for a sort that a kernel computes."""
    return sorts_rows(term) and all(is_plain(operand.tensor) for operand in term.operands)


def is_product(term: Term) -> bool:
    """True for a contraction that a kernel computes with tiles: floats and narrow integers."""
    if term.op.name != "stablehlo.dot_general" or not all(is_plain(operand.tensor) for operand in term.operands):
        return False
    dtype = term.tensor.dtype
    return dtype.kind == "float" or (dtype.kind == "int" and dtype.bits <= 32)


def is_convolution_gradient(term: Term) -> bool:
    """True for a call of `CONVOLUTION_GRADIENTS` that torch computes as it stands; the others are opened into convolutions."""
    if term.op.name not in CONVOLUTION_GRADIENTS:
        return False
    tensors = (*(operand.tensor for operand in term.operands), term.tensor)
    if any(dim == 0 for tensor in tensors for dim in tensor.dims[1:]):
        return False
    known = [*(tensor.dims[1] for tensor in tensors), *(tensors[1].dims if term.op.name.endswith("transposed_convolution") else ())]
    return all(isinstance(dim, int) for dim in known) and tensors[0].dtype.name in FLOATS and 3 <= tensors[0].rank <= 5


def is_library(term: Term, light: Set[Term]) -> bool:
    """True for a term that has operands or results in memory as wholes: none of `light`, and nothing that kernels fold or tile."""
    computed = is_fold(term) or is_scanned(term) or is_scattered(term) or is_product(term) or is_grouped(term) or is_sorted(term)
    known = term in light or computed or term.op.name in (WEIGHTS, WINDOWED, *STATISTICAL)
    return not known and term.op.name not in (*LEAVES, *NOTHING, "builtin.get", "builtin.tuple")


def wide(dtype: DType) -> DType:
    """The type that values of `dtype` are summed in: f32 and 32-bit integers at least."""
    if dtype.kind == "float":
        return F32 if dtype.bits < 32 else dtype
    if dtype.kind in ("int", "uint") and dtype.bits < 32:
        return I32 if dtype.kind == "int" else DTYPES["u32"]
    return dtype


def bytes_of(term: Term, binding: dict[str, int]) -> int:
    """Bytes of a tensor term with its symbols bound."""
    return int(term.tensor.bytes(binding)) if isinstance(term.type, TensorType) else 0


def narrow_cut(
    term: Term, light: Set[Term], required: Set[Term], binding: dict[str, int], limits: KernelLimits, *, tiled: bool
) -> list[Term] | None:
    """Where a few cheap steps before `term` there are fewer bytes (before a cast to a wider type, a scale, a broadcast): the one large
    value there, or nothing where all is small. None where there is no such place. `tiled`: the steps are done again for each tile."""
    size, work, top = bytes_of(term, binding), 0, term
    for _ in range(limits.product_scalars + 4):
        if top not in light or (top in required and top is not term) or top.op.name in FREE:
            return None
        if top.op.name in PICKED or top.op.name in WRITTEN_OUT:
            return None
        large = [x for x in dict.fromkeys(top.operands) if 8 * bytes_of(x, binding) > size and is_splat(x) is None]
        work += limits.product_scalars + 1 if tiled and is_costly(top) else cost_of(top)
        if len(large) > 1 or work > limits.product_scalars:
            return None
        if not large or 4 * bytes_of(large[0], binding) <= 3 * size:
            return large
        (top,) = large
    return None
