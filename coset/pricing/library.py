"""What a library takes for an op, and whether it does a product or an attention sooner than our kernels."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from coset.extract.work import ContractionWork as Sides
from coset.ir.term import Term
from coset.ir.types import TensorType, Type
from coset.lowering.planning.attention import KEPT as ATTENDED
from coset.lowering.planning.kinds import is_light, is_product
from coset.lowering.planning.library_attention import BY_ROWS, CALLS, may_attend
from coset.lowering.planning.library_products import BIASED, is_half, is_made_behind, may_be_librarys, product_in
from coset.pricing.attention import causal_share, scores_seconds
from coset.pricing.machine import Machine
from coset.pricing.products import product_seconds, rating, sides_of, tile_seconds
from coset.targets.target import Form


def library_may_pay(machine: Machine, term: Term) -> bool:
    """True for a product that a plan may do sooner by a library, on a target that says how soon these are done: of f32 in full, of
    16-bit floats by weights; and for attention of these."""
    if term.op.name == ATTENDED:
        return library_of(machine, term) is not None and may_attend(term)
    return library_of(machine, term) is not None and (is_half(term) or not machine.options.tf32) and may_be_librarys(term)


def library_pays(machine: Machine, term: Term) -> bool:
    """True for one that a library does sooner though what stands behind it becomes a kernel, and what stands in front of an operand
    where that is in memory for no other reason."""
    if not library_may_pay(machine, term):
        return False
    if term.op.name == ATTENDED:
        return _is_attended_sooner(machine, term)
    passed = [term.type, *(each.type for each in term.operands if _is_computed_in_front(each))]
    passes = sum(map(machine.passing, passed))
    own, sides, dtype = rating(machine, full=not is_half(term)), sides_of(machine, term), term.tensor.dtype
    working = product_seconds(machine, sides, dtype.name, full=not is_half(term))
    if is_half(term) and all(each.type.static is not None for each in term.operands if isinstance(each.type, TensorType)):
        m, n, k, batch = map(int, (sides.rows, sides.columns, sides.depth, sides.batch))
        working = tile_seconds(machine, (m, n, k, batch), dtype, 0) or working
    return library_call_seconds(machine, term) + passes < own.launch.value + max(working, own.moving(machine.touched(term)))


def _is_attended_sooner(machine: Machine, term: Term) -> bool:
    """Of attention, in front of which only what is computed of queries becomes a kernel: rotary embeddings, say."""
    query, key = (operand.tensor.dims for operand in term.operands[:2])
    batch, rows = machine.sizes.product(query[: len(key) - 2]), machine.sizes.product(query[len(key) - 2 : -1])
    count, width, dtype = machine.sizes.number(key[-2]), machine.sizes.number(key[-1]), term.tensor.dtype.name
    seen = count / 2 if term.attribute("causal") else count
    own = machine.target.kernels[machine.fusion.product]
    products = [(Sides(batch, rows, width, seen), dtype, False), (Sides(batch, rows, seen, width), dtype, False)]
    attending = scores_seconds(machine, products, batch * rows * seen, causal=term.attribute("causal"))
    front = _unmoved(term.operands[0])
    passing = machine.passing(front.type) if _is_computed_in_front(front) else 0.0
    ours = own.launch.value + max(attending, own.moving(machine.touched(term)))
    return _attention_by_library(machine, term) + passing < ours


def _is_computed_in_front(term: Term) -> bool:
    """True for an operand of a library that is in memory for no other reason."""
    return is_light(term) and not is_made_behind(term)


def _attention_by_library(machine: Machine, term: Term) -> float:
    """Of attention by a library: as its products, of heads of this width, of half of which a causal mask leaves out."""
    assert machine.fusion.attention is not None
    kernel = machine.target.kernels[machine.fusion.attention]
    query, key = (operand.tensor.dims for operand in term.operands[:2])
    count, width = machine.sizes.number(key[1 if term.op.name == BY_ROWS else -2]), machine.sizes.number(key[-1])
    work = 4 * machine.sizes.product(query) * count / (2 if term.attribute("causal") else 1)
    working = kernel.multiplying(term.tensor.dtype.name, work, width) / causal_share(machine, term.attribute("causal"))
    return kernel.launch.value + max(working, kernel.moving(machine.touched(term)))


def library_of(machine: Machine, term: Term) -> str | None:
    """The name of the numbers for a product or an attention that a library does; None where it does none, and for all else."""
    if term.op.name in (ATTENDED, *CALLS):
        return machine.fusion.attention
    if not (term.op.name in BIASED or is_product(term)):
        return None
    return machine.fusion.halves if is_half(term) else machine.fusion.library


def library_call_seconds(machine: Machine, term: Term) -> float:
    """Seconds of a product, perhaps with its bias, or an attention by a library."""
    if term.op.name in (ATTENDED, *CALLS):
        return _attention_by_library(machine, term)
    name, sides = library_of(machine, term), sides_of(machine, product_in(term))
    assert name is not None
    kernel = machine.target.kernels[name]
    working = kernel.multiplying(term.tensor.dtype.name, sides.flops(kernel.tiles), min(sides.rows, sides.columns))
    return kernel.launch.value + max(working, kernel.moving(machine.touched(term)))


def library_seconds(machine: Machine, term: Term) -> float:
    """Seconds of an op that a library runs: by its own numbers where it has some, else by those of the form that the target gives it."""
    if library_of(machine, term) is not None:
        return library_call_seconds(machine, term)
    given = tuple(operand.type for operand in term.operands)
    types, adding = _widened(machine, term) if term.op.name == "stablehlo.convolution" else (given, 0.0)
    read = tuple(machine.sizes.bytes(type) for type in types)
    form, fixed = form_of(machine, term), (False,) * len(types)
    return adding + machine.pricer.seconds(form, term.op, term.attributes, term.type, types, read=read, fixed=fixed)


def _widened(machine: Machine, term: Term) -> tuple[tuple[Type, ...], float]:
    """The operands of a convolution as a library multiplies them, with features that it adds to them, and the seconds of that."""
    given, bits = tuple(operand.type for operand in term.operands), machine.target.numbers.get("features_last")
    if bits is None or term.tensor.dtype.bits > bits.value:
        return given, 0.0
    own, made = machine.target.kernels[machine.fusion.pointwise], padded(term, int(machine.number("channels")))
    pairs = [(old, new) for old, new in zip(given, made, strict=True) if old != new]
    return made, sum(own.launch.value + own.moving(machine.sizes.bytes(old) + machine.sizes.bytes(new)) for old, new in pairs)


def form_of(machine: Machine, term: Term) -> Form:
    """The form in which the target runs an op."""
    types = tuple(operand.type for operand in term.operands)
    return machine.pricer.form(term.op, term.attributes, term.type, types, original=True) or machine.target.default


def _unmoved(term: Term) -> Term:
    """What a term is in another order or shape."""
    while term.op.name in ("stablehlo.transpose", "stablehlo.reshape"):
        (term,) = term.operands
    return term


def padded(term: Term, multiple: int) -> tuple[TensorType, ...]:
    """The operands of a convolution with so many more features that there is a multiple; as they are where their number is not known, and
    in groups, of which nothing was measured."""
    x, w = (operand.tensor for operand in term.operands)
    features = w.dims[1]
    if term.attribute("feature_group_count") > 1 or not isinstance(features, int) or features % multiple == 0:
        return x, w
    wide = ceil(features / multiple) * multiple
    return tuple(replace(tensor, shape=(tensor.dims[0], wide, *tensor.dims[2:])) for tensor in (x, w))
