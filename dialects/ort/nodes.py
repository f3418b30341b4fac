"""Nodes of ONNX Runtime's domain com.microsoft that `ops.rules` defines: their operands in the order of the definitions.

What a node has and its definition does not know (a cache, a layout) is refused: its meaning is none of what is written there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from coset.dialects.expansion import expanded
from coset.dialects.hub.terms import reshape, splat, transpose
from coset.dialects.onnx import arithmetic as a
from coset.dialects.onnx.node import Builder, Built, Node, define, definition
from coset.dialects.onnx.windows import convolved
from coset.dialects.ort import ops as kernels
from coset.ir import dims
from coset.ir.builtin import absent
from coset.ir.dims import Dim
from coset.ir.errors import require
from coset.ir.op import get_op
from coset.ir.term import Term, get, make
from coset.ir.types import TupleType

DOMAIN = "com.microsoft."
DEFINED = kernels.OPS  # the definitions that are applied here


def contrib(*names: str) -> Callable[[Builder], Builder]:
    """As `definition`, of ops of the domain com.microsoft."""
    return definition(*(DOMAIN + name for name in names))


def applied(name: str, operands: Sequence[Term | None], attributes: dict[str, Any]) -> Term:
    """The op `ort.name` on the operands, where None is one that is not given."""
    op = get_op(f"ort.{name}")
    missing = len(op.operands) - len(operands)
    return make(op, [operand or absent() for operand in (*operands, *(None,) * missing)], attributes)


def parts(term: Term) -> tuple[Term, ...]:
    """The results of a term."""
    return tuple(get(term, index) for index in range(len(term.type.items))) if isinstance(term.type, TupleType) else (term,)


def accept(node: Node, **known: Any) -> None:
    """Raise unless each attribute of `known` has that value or is not given: a definition does not speak of others.

    Raises:
        TypeRuleError: an attribute has another value.
    """
    for name, value in known.items():
        require(node.attributes.get(name, value) == value, f"{node.name} is not defined for {name} = {node.attributes.get(name)}")


def as_standard(node: Node, name: str, operands: Sequence[int] | None = None, *, since: int = 28, **attributes: Any) -> Built:
    """What the standard op `name` says of the operands at these positions, with some attributes in place of the node's (None: without)."""
    chosen = range(len(node.operands)) if operands is None else operands
    given = {key: value for key, value in {**node.attributes, **attributes}.items() if value is not None}
    picked = [(node.operands[i], node.host[i] if i < len(node.host) else None) for i in chosen if i < len(node.operands)]
    terms, host = tuple(term for term, _ in picked), tuple(shown for _, shown in picked)
    return define(replace(node, name=name, operands=terms, host=host, attributes=given, since=since))


def number(x: Term) -> Term:
    """A scale or zero point for all, which may be written with a dim of 1, as a scalar."""
    return reshape(x, ()) if x.tensor.shape == (1,) else x


def scalar(node: Node, index: int, *, like: Term | None = None) -> Term | None:
    """Operand `index` as a scalar; where it is not given, 0 in the type of `like`, if there is one."""
    found = node.operand(index)
    if found is not None:
        return number(found)
    return None if like is None else splat(0, like.tensor.dtype, ())


# ---------------------------------------------------------------- the operands as they are, in some order


@dataclass(frozen=True)
class _Form:
    """Which operand of the node each parameter of the definition is, and the attributes that change no value."""

    operands: tuple[int, ...] | None = None  # None: as they are
    idle: frozenset[str] = frozenset()


_FORMS: dict[str, _Form] = {
    **{name: _Form() for name in ("Gelu", "BiasGelu", "FastGelu", "QuickGelu", "ScaledSiLU", "GatedAdd", "GatedRMSNorm", "CDist")},
    **{name: _Form() for name in ("FusedMatMul", "TransposeMatMul", "MatMulInteger16", "FusedGemm", "SkipLayerNormalization")},
    "EmbedLayerNormalization": _Form((0, 2, 3, 5, 6, 1, 4, 7, 8)),
    "MatMulNBits": _Form((0, 1, 2, 3, 5), frozenset({"K", "N", "accuracy_level"})),
}


@contrib(*_FORMS)
def _as_defined(node: Node) -> Built:
    """The definition on the same attributes."""
    name = node.name.removeprefix(DOMAIN)
    form = _FORMS[name]
    order = form.operands or range(len(node.operands))
    unused = set(range(len(node.operands))) - set(order)
    require(not any(node.given(index) for index in unused), f"{node.name} is not defined for operands {sorted(unused)}")
    known = {attribute.name for attribute in get_op(f"ort.{name}").attributes}
    more = set(node.attributes) - known - form.idle
    for key in more:
        accept(node, **{key: 0})
    attributes = {key: value for key, value in node.attributes.items() if key in known}
    return parts(applied(name, [node.operand(index) for index in order], attributes))


@definition("SimplifiedLayerNormalization")
def _simplified(node: Node) -> Built:
    """ONNX Runtime has it in the default domain."""
    accept(node, stash_type=1)
    attributes = {key: value for key, value in node.attributes.items() if key != "stash_type"}
    return parts(applied("SimplifiedLayerNormalization", node.operands[:2], attributes))


@contrib("SkipSimplifiedLayerNormalization")
def _skip_simplified(node: Node) -> Built:
    """The mean, which no kernel on CPU gives, is that of the sum."""
    normal, inverse, total = parts(applied("SkipSimplifiedLayerNormalization", node.operands, node.attributes))
    mean = a.divide(a.fold(total, (-1,)), total.tensor.dims[-1])
    return normal, mean, inverse, total


@contrib("FusedConv")
def _fused_convolution(node: Node) -> Built:
    """The definition, with the padding in numbers."""
    x, w = node.operands[:2]
    more = {key: value for key, value in node.attributes.items() if key in ("activation", "activation_params")}
    return convolved(
        node, x, w, 0, lambda wide, given: applied("FusedConv", (wide, w, node.operand(2), node.operand(3)), {**given, **more})
    )


@contrib("RotaryEmbedding")
def _rotary(node: Node) -> Built:
    """The definition, of heads packed into the last dim or apart; of heads apart at known positions what the search looks for."""
    accept(node, scale=1.0, is_packed_batching=0)
    attributes = {key: value for key, value in node.attributes.items() if key not in ("scale", "is_packed_batching")}
    x, first = node.operands[0], node.ints(1)
    if x.tensor.rank == 4 and first is not None and len(first) == 1:
        tables = [_rows_from(first[0], table, x.tensor.dims[2]) for table in node.operands[2:4]]
        size, turned = x.tensor.dims[3], dims.multiply(2, node.operands[2].tensor.dims[1])
        whole, chosen = size == turned, attributes.get("rotary_embedding_dim", 0)
        if all(tables) and (whole or isinstance(size, int)) and chosen in (0 if whole else turned, turned):
            heads = applied("RotatedHeads" if whole else "RotatedParts", (x, *tables), {"interleaved": attributes.get("interleaved", 0)})
            return expanded([heads], lambda _: False)[0]
    return rotated(x, node.operands[1:4], attributes)


def _rows_from(first: int, table: Term, length: Dim) -> Term | None:
    """So many rows of a table from position `first` on; None where not all are known to be there."""
    rows = table.tensor.dims[0]
    if first < 0:
        return None
    if first == 0 and length == rows:
        return table
    fits = isinstance(length, int) and isinstance(rows, int) and first + length <= rows
    return a.take(table, 0, first, dims.add(first, length)) if fits else None


def rotated(x: Term, angles: Sequence[Term], attributes: dict[str, Any]) -> Term:
    """`x`, [batch, length, heads * size] or [batch, heads, length, size], turned by the `angles` (positions, cosines, sines)."""
    if x.tensor.rank == 3:
        return applied("RotaryEmbedding", (x, *angles), attributes)
    require(x.tensor.rank == 4, f"RotaryEmbedding takes rank 3 or 4, not {x.type}")
    batch, heads, length, size = x.tensor.dims
    require(isinstance(heads, int) and isinstance(size, int), f"RotaryEmbedding takes a known number of heads, not {x.type}")
    assert isinstance(heads, int) and isinstance(size, int)
    packed = reshape(transpose(x, (0, 2, 1, 3)), (batch, length, heads * size))
    turned = applied("RotaryEmbedding", (packed, *angles), {**attributes, "num_heads": heads})
    return transpose(reshape(turned, (batch, length, heads, size)), (0, 2, 1, 3))


# ---------------------------------------------------------------- quantized ops: zero points that are not given are 0


@contrib("QLinearAdd", "QLinearMul")
def _quantized_pair(node: Node) -> Built:
    first, second = node.operands[0], node.operands[3]
    one, other = ((scalar(node, i + 1), scalar(node, i + 2, like=x)) for i, x in ((0, first), (3, second)))
    end = (scalar(node, 6), scalar(node, 7, like=first))
    return applied(node.name.removeprefix(DOMAIN), (first, *one, second, *other, *end), {})


@contrib("QLinearSigmoid", "QLinearLeakyRelu")
def _quantized_function(node: Node) -> Built:
    x = node.operands[0]
    operands = (x, scalar(node, 1), scalar(node, 2, like=x), scalar(node, 3), scalar(node, 4, like=x))
    return applied(node.name.removeprefix(DOMAIN), operands, node.attributes)


@contrib("QLinearGlobalAveragePool")
def _quantized_mean(node: Node) -> Built:
    """Of images with the channels before or behind the spatial dims."""
    last = bool(node.attributes.get("channels_last", 0))
    x = channels_first(node.operands[0]) if last else node.operands[0]
    operands = (x, scalar(node, 1), scalar(node, 2, like=x), scalar(node, 3), scalar(node, 4, like=x))
    result = applied("QLinearGlobalAveragePool", operands, {})
    return channels_last(result) if last else result


def channels_first(x: Term) -> Term:
    """[batch, spatial dims, channels] as [batch, channels, spatial dims]."""
    return transpose(x, (0, x.tensor.rank - 1, *range(1, x.tensor.rank - 1)))


def channels_last(x: Term) -> Term:
    """[batch, channels, spatial dims] as [batch, spatial dims, channels]."""
    return transpose(x, (0, *range(2, x.tensor.rank), 1))


@contrib("QLinearWhere")
def _quantized_choice(node: Node) -> Built:
    x, y = node.operands[1], node.operands[4]
    scales = {i: scalar(node, i) for i in (2, 5, 7)}
    zeros = {i: scalar(node, i, like=like) for i, like in ((3, x), (6, y), (8, x))}
    return applied("QLinearWhere", (node.operands[0], x, scales[2], zeros[3], y, scales[5], zeros[6], scales[7], zeros[8]), {})


@contrib("MatMulIntegerToFloat")
def _integer_product(node: Node) -> Built:
    x, w, x_scale, w_scale = node.operands[:4]
    operands = (x, w, number(x_scale), number(w_scale), scalar(node, 4), scalar(node, 5), node.operand(6))
    return applied("MatMulIntegerToFloat", operands, {})


@contrib("QGemm")
def _quantized_gemm(node: Node) -> Built:
    """Scales and zero points are those of whole matrices."""
    operands = [node.operand(i) if i in (0, 3, 6) else scalar(node, i) for i in range(9)]
    return applied("QGemm", operands, node.attributes)
