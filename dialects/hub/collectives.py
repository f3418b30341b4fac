"""Type rules of the hub's ops between processes and with the host; what they mean is in `hub_exchanges`.

Ops that the specification orders by tokens take the token last and give the next one last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coset.dialects.hub import checks, signatures
from coset.dialects.hub.checks import get_axis, get_int, tensor_of
from coset.dialects.hub.region_types import get_bool, require_combiner, stated_results
from coset.ir import dims
from coset.ir.dims import Dim
from coset.ir.errors import require
from coset.ir.op import Attributes, Signature
from coset.ir.types import DTYPES, TensorType, TokenType, TupleType, Type

Groups = tuple[tuple[int, ...], ...]


# ---------------------------------------------------------------- checks


def _operands(name: str, operands: Sequence[Type]) -> list[TensorType]:
    require(len(operands) >= 1, f"`{name}` takes one operand or more")
    return [tensor_of(operand, f"operand {i} of `{name}`") for i, operand in enumerate(operands)]


def _groups(name: str, attributes: Attributes, key: str = "replica_groups") -> Groups:
    """Rows of process numbers, each number once; -1 fills rows that are shorter."""
    value: Any = attributes[key]
    rows = isinstance(value, tuple) and all(isinstance(row, tuple) and all(isinstance(i, int) for i in row) for row in value)
    require(rows, f"`{key}` of `{name}` must be a tuple of tuples of integers, not {value!r}")
    require(len({len(row) for row in value}) <= 1, f"rows of `{key}` of `{name}` must have one length: {value}")
    numbers = [i for row in value for i in row if i != -1]
    fine = len(set(numbers)) == len(numbers) and all(i >= 0 for i in numbers)
    require(fine, f"`{key}` of `{name}` must name each process once, and none below 0: {value}")
    return value  # type: ignore[no-any-return]


def _channel(name: str, attributes: Attributes) -> None:
    get_int(name, attributes, "channel_id")
    if "use_global_device_ids" in attributes:
        flat = get_bool(name, attributes, "use_global_device_ids")
        require(not flat or attributes["channel_id"] > 0, f"`use_global_device_ids` of `{name}` needs a `channel_id` above 0")


def _group_size(name: str, attributes: Attributes) -> int:
    """How many processes a group has; the columns of the groups say so unless all partitions take part (a channel without global ids)."""
    size, groups = get_int(name, attributes, "group_size"), _groups(name, attributes)
    require(size >= 1, f"`group_size` of `{name}` must be 1 or more, not {size}")
    spread = attributes["channel_id"] > 0 and not attributes["use_global_device_ids"]
    fits = not groups or (size % len(groups[0]) == 0 if spread else size == len(groups[0]))
    require(fits, f"`group_size` of `{name}` is {size}, but its groups have {len(groups[0]) if groups else 0} processes")
    return size


def _divided(name: str, type: TensorType, axis: int, count: int) -> Dim:
    dim = type.dims[axis]
    require(not isinstance(dim, int) or dim % count == 0, f"`{name}` splits dim {axis} of {type} into {count}, which do not divide it")
    return dims.floordiv(dim, count)


def _with_dim(type: TensorType, axis: int, dim: Dim) -> TensorType:
    return TensorType(type.dtype, (*type.dims[:axis], dim, *type.dims[axis + 1 :]))


# ---------------------------------------------------------------- collectives


def all_gather(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """The operands' dim `all_gather_dim` times the size of a group."""
    types = _operands(name, operands)
    axis = get_axis(name, attributes, "all_gather_dim", min(type.rank for type in types))
    _channel(name, attributes)
    size = _group_size(name, attributes)
    return signatures.results_type([_with_dim(type, axis, dims.multiply(type.dims[axis], size)) for type in types])


def all_reduce(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """The operands' types."""
    types = _operands(name, operands)
    _groups(name, attributes)
    _channel(name, attributes)
    require_combiner(name, attributes, [type.dtype for type in types], "region")
    return signatures.results_type(types)


def all_to_all(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """Dim `split_dimension` divided by `split_count`, dim `concat_dimension` multiplied by it."""
    types = _operands(name, operands)
    rank = min(type.rank for type in types)
    split, joined = (get_axis(name, attributes, key, rank) for key in ("split_dimension", "concat_dimension"))
    count, groups = get_int(name, attributes, "split_count"), _groups(name, attributes)
    _channel(name, attributes)
    require(count >= 1, f"`split_count` of `{name}` must be 1 or more, not {count}")
    fits = not groups or len(groups[0]) == count
    require(fits, f"`split_count` of `{name}` is {count}, but its groups have {len(groups[0]) if groups else 0} processes")
    results = []
    for type in types:
        smaller = _with_dim(type, split, _divided(name, type, split, count))
        results.append(_with_dim(smaller, joined, dims.multiply(smaller.dims[joined], count)))
    return signatures.results_type(results)


def collective_broadcast(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """The operands' types."""
    types = _operands(name, operands)
    _groups(name, attributes)
    _channel(name, attributes)
    return signatures.results_type(types)


def collective_permute(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """The operands' types; each process sends once and receives once at most."""
    types = _operands(name, operands)
    _channel(name, attributes)
    pairs(name, attributes)
    return signatures.results_type(types)


def pairs(name: str, attributes: Attributes) -> None:
    """Check `source_target_pairs`: no process is source twice or target twice."""
    given = attributes["source_target_pairs"]
    value = checks.get_pairs(name, attributes, len(given) if isinstance(given, tuple) else 0, "source_target_pairs")
    sources, targets = ([pair[side] for pair in value] for side in (0, 1))
    once = len(set(sources)) == len(sources) and len(set(targets)) == len(targets) and min([0, *sources, *targets]) >= 0
    require(once, f"`source_target_pairs` of `{name}` must name a process once as source and once as target, none below 0: {value}")


def reduce_scatter(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """Dim `scatter_dimension` divided by the size of a group."""
    (operand,) = checks.tensors(name, operands, "operand")
    axis = get_axis(name, attributes, "scatter_dimension", operand.rank)
    _channel(name, attributes)
    require_combiner(name, attributes, [operand.dtype], "region")
    return _with_dim(operand, axis, _divided(name, operand, axis, _group_size(name, attributes)))


def process_number(name: str, operands: Sequence[Type], _: Attributes) -> Type:
    """One unsigned integer."""
    checks.tensors(name, operands)
    return TensorType(DTYPES["u32"], ())


def computation(name: str, operands: Sequence[Type], attributes: Attributes, _: int) -> list[Signature]:
    """The computation of a reducing collective takes and gives elements of one dtype."""
    if attributes["combiner"] != signatures.REGION:
        return []
    elements = signatures.scalars(operands)
    require(len(set(elements)) == 1, f"`{name}` with a computation of its own takes operands of one element type")
    return [Signature("computation", elements[:1] * 2, elements[:1])]


# ---------------------------------------------------------------- tokens, the host, foreign calls


def _require_token(name: str, what: str, type: Type) -> None:
    require(isinstance(type, TokenType), f"`{name}` takes a token as its {what}, not {type}")


def tokens(name: str, operands: Sequence[Type], _: Attributes) -> Type:
    """Tokens give a token."""
    for i, operand in enumerate(operands):
        _require_token(name, f"operand {i}", operand)
    return TokenType()


def new_token(name: str, operands: Sequence[Type], _: Attributes) -> Type:
    """A token of no operands."""
    require(not operands, f"`{name}` takes no operands")
    return TokenType()


def _ordered(name: str, operands: Sequence[Type], *, values: bool) -> None:
    require(len(operands) >= 1, f"`{name}` takes a token as its last operand")
    _require_token(name, "last operand", operands[-1])
    require(values or len(operands) == 1, f"`{name}` takes a token only, not {len(operands)} operands")
    for i, operand in enumerate(operands[:-1]):
        tensor_of(operand, f"operand {i} of `{name}`")


def _transfer(name: str, attributes: Attributes) -> None:
    for key in ("channel_id", "channel_type"):
        get_int(name, attributes, key)
    get_bool(name, attributes, "is_host_transfer")
    pairs(name, attributes)


def send(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """Tensors and a token give the next token."""
    _ordered(name, operands, values=True)
    _transfer(name, attributes)
    return TokenType()


def receive(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """A token gives the stated results and the next token."""
    _ordered(name, operands, values=False)
    _transfer(name, attributes)
    return TupleType((*stated_results(name, attributes), TokenType()))


def _text(name: str, attributes: Attributes, key: str) -> None:
    require(isinstance(attributes[key], str), f"`{key}` of `{name}` must be a text, not {attributes[key]!r}")


def outfeed(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """Tensors and a token give the next token."""
    _ordered(name, operands, values=True)
    _text(name, attributes, "outfeed_config")
    return TokenType()


def infeed(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """A token gives the stated results and the next token."""
    _ordered(name, operands, values=False)
    _text(name, attributes, "infeed_config")
    return TupleType((*stated_results(name, attributes), TokenType()))


def custom_call(name: str, operands: Sequence[Type], attributes: Attributes) -> Type:
    """The stated results. With `effect` the first operand and the last result are tokens, as `builtin.opaque` has them."""
    _text(name, attributes, "call_target_name")
    results = stated_results(name, attributes)
    if get_bool(name, attributes, "effect"):
        threaded = operands and results and isinstance(operands[0], TokenType) and isinstance(results[-1], TokenType)
        require(bool(threaded), f"`{name}` with an effect takes a token first and gives one last, not {operands} and {results}")
    return signatures.results_type(results)
