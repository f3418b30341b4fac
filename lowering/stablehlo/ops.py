"""How each op is printed as StableHLO or CHLO: most by the table of spellings, some by a function of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from coset.dialects.hub.hints import without_hints
from coset.dialects.hub.mlir_ops import FIELDS
from coset.dialects.hub.mlir_text import dense_text, type_text
from coset.dialects.hub.terms import is_splat
from coset.ir.builtin import OPAQUE
from coset.ir.dims import Dim
from coset.ir.errors import CosetError, TypeRuleError
from coset.ir.evaluate import describe
from coset.ir.term import Term
from coset.ir.types import I64, TensorType, TupleType, Type
from coset.lowering.stablehlo import numbers, regions
from coset.lowering.stablehlo.attributes import attribute_texts, ints
from coset.lowering.stablehlo.body import NO_VALUE, PrintedBlock, is_number
from coset.lowering.stablehlo.collectives import COLLECTIVE_PRINTERS
from coset.lowering.stablehlo.opaque import print_opaque

Printer = Callable[[PrintedBlock, Term], str]


def print_term(body: PrintedBlock, term: Term) -> None:
    """Print `term`, whose operands are printed.

    Raises:
        CosetError: it has no StableHLO form; the error names its op.
    """
    printer = PRINTERS.get(term.op.name, _plain)
    if printer is _plain and not has_form(term):
        raise CosetError(
            f"the program cannot be written as StableHLO: `{describe(term)}` has no form there", help="define the op by a term"
        )
    if term.op.name in STATIC and symbolic(term.type):
        raise _needs_sizes(term, "its result has symbolic sizes")
    try:
        body.define(term, printer(body, term))
    except TypeRuleError as error:
        raise _needs_sizes(term, error.message) from None


def _needs_sizes(term: Term, why: str) -> CosetError:
    return CosetError(
        f"the program cannot be written as StableHLO: `{describe(term)}`: {why}", help="give numbers for the dims (`binding`)"
    )


def symbolic(type: Type) -> bool:
    """True for a type with a dim that is no number."""
    items = type.items if isinstance(type, TupleType) else (type,)
    return any(isinstance(item, TensorType) and item.static is None for item in items)


STATIC = frozenset({"stablehlo.rng_bit_generator"})  # ops whose results have static sizes in StableHLO


def has_form(term: Term) -> bool:
    """True when the op has a form of its own."""
    return term.op.name in PRINTERS or (term.op.dialect in ("stablehlo", "chlo") and _readable(term))


def _readable(term: Term) -> bool:
    """True when every attribute is in the table of spellings or part of the result's type."""
    spelled = {field.ours for field in FIELDS.get(term.op.name, ())} | {"shape", "dtype"}
    return not term.regions and all(name in spelled for name, _ in term.attributes)


# ---------------------------------------------------------------- by the table


def _plain(body: PrintedBlock, term: Term, hints: Sequence[str] = ()) -> str:
    attributes = [*attribute_texts(term), *hints]
    operands = body.typed(term.operands)
    results = body.result_types(term.type)
    plain = term.op.dialect == "stablehlo" and term.op.has("elementwise") and len(term.operands) <= 2
    if plain and not attributes and all(type == results[0] for _, type in operands):
        value = body.fresh()
        body.line(f"{value} = {term.op.name} {', '.join(v for v, _ in operands)} : {results[0]}")
        return value
    return body.op(term.op.name, operands, attributes, results)


def _hinted(body: PrintedBlock, term: Term) -> str:
    """The op with the attributes that say how it is to be computed."""
    plain = without_hints(term)
    return _WITH_HINTS.get(plain.op.name, _plain)(body, plain, [f"{name} = {text}" for name, text in term.attribute("hints")])


_WITH_HINTS = {
    "stablehlo.dot_general": numbers.dot_general, "stablehlo.convolution": numbers.convolution,
    "stablehlo.dynamic_conv": numbers.convolution,
}  # fmt: skip

# ---------------------------------------------------------------- leaves, tuples


def _constant(body: PrintedBlock, term: Term) -> str:
    value = body.fresh()
    constant = is_splat(term) or term.attribute("value")
    body.line(f"{value} = stablehlo.constant {dense_text(constant.array(), constant.type.dtype)} : {body.type(term)}")
    return value


def _dims(body: PrintedBlock, term: Term) -> str:
    """Numbers of dims: a vector, in the shape and element type that are wanted."""
    value, type = body.vector(term.attribute("dims"), term)
    wanted = term.tensor
    if wanted.rank != 1:
        shape = type_text(TensorType(I64, wanted.dims))
        value, type = body.op("stablehlo.reshape", [(value, type)], [], [shape]), shape
    if wanted.dtype != I64:
        value = body.op("stablehlo.convert", [(value, type)], [], [body.type(term)])
    return value


def _get(body: PrintedBlock, term: Term) -> str:
    """One of several results; a token beside the results of a kept operation has no value of its own."""
    (whole,) = term.operands
    if whole.op.name in ("builtin.input", "builtin.parameter"):
        return body.op("stablehlo.get_tuple_element", body.typed([whole]), [f"index = {term.attribute('index')} : i32"], [body.type(term)])
    assert isinstance(whole.type, TupleType)
    written = len(whole.type.items) - (whole.op is OPAQUE and whole.attribute("effect"))
    return f"{body.value(whole)}#{term.attribute('index')}" if written > 1 else body.value(whole)


def _token(_: PrintedBlock, __: Term) -> str:
    """The token before the first effect: written only where an operation that takes tokens uses it (see `Body.typed`)."""
    return NO_VALUE


def _barrier(body: PrintedBlock, term: Term) -> str:
    return body.op(term.op.name, body.typed(term.operands), [], body.result_types(term.type)) if term.operands else NO_VALUE


def _tuple(body: PrintedBlock, term: Term) -> str:
    return body.op("stablehlo.tuple", body.typed(term.operands), [], [body.type(term)])


# ---------------------------------------------------------------- ops whose shape may be symbolic


def _static(shape: Sequence[Dim]) -> bool:
    return all(isinstance(dim, int) for dim in shape)


def _broadcast(body: PrintedBlock, term: Term) -> str:
    if is_number(term):
        return _constant(body, term)
    shape, axes = term.attribute("shape"), f"broadcast_dimensions = {ints(term.attribute('broadcast_dimensions'))}"
    if _static(shape):
        return body.op("stablehlo.broadcast_in_dim", body.typed(term.operands), [axes], [body.type(term)])
    operands = [*body.typed(term.operands), body.vector(shape, term)]
    return body.op("stablehlo.dynamic_broadcast_in_dim", operands, [axes], [body.type(term)])


def _reshape(body: PrintedBlock, term: Term) -> str:
    if _static(term.attribute("shape")) and term.operands[0].tensor.static is not None:
        return body.op("stablehlo.reshape", body.typed(term.operands), [], [body.type(term)])
    operands = [*body.typed(term.operands), body.vector(term.attribute("shape"), term)]
    return body.op("stablehlo.dynamic_reshape", operands, [], [body.type(term)])


def _iota(body: PrintedBlock, term: Term) -> str:
    if _static(term.attribute("shape")):
        return _plain(body, term)
    return body.op("stablehlo.dynamic_iota", [body.vector(term.attribute("shape"), term)], attribute_texts(term), [body.type(term)])


def _slice(body: PrintedBlock, term: Term) -> str:
    start, limit = term.attribute("start"), term.attribute("limit")
    if _static(start) and _static(limit):
        return _plain(body, term)
    bounds = [body.vector(shape, term) for shape in (start, limit, term.attribute("strides"))]
    return body.op("stablehlo.real_dynamic_slice", [*body.typed(term.operands), *bounds], [], [body.type(term)])


# ---------------------------------------------------------------- CHLO


def _is_nan(body: PrintedBlock, term: Term) -> str:
    operands = body.typed(term.operands * 2)
    return body.op("stablehlo.compare", operands, ["comparison_direction = #stablehlo<comparison_direction NE>"], [body.type(term)])


PRINTERS: dict[str, Printer] = {
    "builtin.constant": _constant, "builtin.dims": _dims, "builtin.get": _get, "builtin.token": _token, "builtin.tuple": _tuple,
    "builtin.opaque": print_opaque, "builtin.hinted": _hinted,
    "stablehlo.broadcast_in_dim": _broadcast, "stablehlo.reshape": _reshape, "stablehlo.iota": _iota, "stablehlo.slice": _slice,
     "chlo.is_nan": _is_nan,
    "stablehlo.reduce": regions.reduce, "stablehlo.reduce_window": regions.reduce, "stablehlo.reduce_region": regions.with_region,
    "stablehlo.reduce_window_region": regions.with_region, "stablehlo.map": regions.with_region,
    "stablehlo.select_and_scatter": regions.select_and_scatter, "stablehlo.sort": regions.sort, "stablehlo.scatter": regions.scatter,
    "stablehlo.optimization_barrier": _barrier, "stablehlo.composite": regions.composite,
    "stablehlo.dot_general": numbers.dot_general, "stablehlo.convolution": numbers.convolution,
    "stablehlo.dynamic_conv": numbers.convolution, "stablehlo.gather": numbers.gather, "stablehlo.dynamic_gather": numbers.gather,
    "stablehlo.dynamic_slice": numbers.dynamic_slice,
    **COLLECTIVE_PRINTERS,
    "stablehlo.if": regions.choice, "stablehlo.case": regions.choice, "stablehlo.while": regions.loop,
    "chlo.scan": regions.scan,
}  # fmt: skip
