"""The hub's ops between processes, with the host, and to foreign code: typed, and kept as they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from coset.dialects.hub import collectives as rules
from coset.dialects.hub import exchanges
from coset.ir import dims
from coset.ir.dims import Dim
from coset.ir.op import Attribute, Attributes, Joint, Op, register
from coset.ir.types import TensorType, Type

SPECIFICATION = "https://openxla.org/stablehlo/spec#"


def _no_flops(_: Type, __: Sequence[Type], ___: Attributes) -> Dim:
    return 0


def _reducing_flops(_: Type, operands: Sequence[Type], __: Attributes) -> Dim:
    """One combination for each element of a process's operands."""
    total: Dim = 0
    for operand in operands:
        assert isinstance(operand, TensorType)
        total = dims.add(total, operand.elements)
    return total


def _op(name: str, trait: str, infer: Callable[..., Type], document: str, *attributes: Attribute, **more: Any) -> Op:
    full = f"stablehlo.{name}"
    joint: Joint | None = getattr(exchanges, name, None)
    meaning = exchanges.alone(joint) if joint is not None else None
    given = {"flops": _no_flops, "joint": joint, **more}
    named = frozenset({trait})
    return register(
        Op(full, partial(infer, full), meaning, attributes, traits=named, source=SPECIFICATION + name, document=document, **given)
    )


_GROUPS = Attribute("replica_groups", "any")
_CHANNEL = Attribute("channel_id", "int", 0, required=False)
_GLOBAL = Attribute("use_global_device_ids", "bool", False, required=False)
_SIZE, _COMBINER = Attribute("group_size", "int"), Attribute("combiner", "string")
_PAIRS = Attribute("source_target_pairs", "any", (), required=False)
_RESULTS = Attribute("results", "any")
_MANY: dict[str, Any] = {"operands": ("operands",), "variadic": True}
_REDUCING: dict[str, Any] = {"flops": _reducing_flops, "signatures": rules.computation, "functions": (("computation", "combiner"),)}

# ---------------------------------------------------------------- collectives: the value depends on other processes

ALL_GATHER = _op("all_gather", "distributed", rules.all_gather, "The operands of all processes of a group, joined along a dim.",
                 Attribute("all_gather_dim", "int"), _GROUPS, _SIZE, _CHANNEL, _GLOBAL, **_MANY)  # fmt: skip
ALL_REDUCE = _op("all_reduce", "distributed", rules.all_reduce, "The operands of all processes of a group, combined elementwise.",
                 _GROUPS, _CHANNEL, _GLOBAL, _COMBINER, **_MANY, **_REDUCING)  # fmt: skip
ALL_TO_ALL = _op("all_to_all", "distributed", rules.all_to_all, "Part i of each process goes to process i of its group, which joins them.",
                 Attribute("split_dimension", "int"), Attribute("concat_dimension", "int"), Attribute("split_count", "int"), _GROUPS,
                 _CHANNEL, **_MANY)  # fmt: skip
COLLECTIVE_BROADCAST = _op("collective_broadcast", "distributed", rules.collective_broadcast,
                           "The operands of the first process of a group.", _GROUPS, _CHANNEL, **_MANY)  # fmt: skip
COLLECTIVE_PERMUTE = _op("collective_permute", "distributed", rules.collective_permute,
                         "The operands of the process that sends to this one, or zeros.",
                         Attribute("source_target_pairs", "any"), _CHANNEL,
                         **_MANY)  # fmt: skip
REDUCE_SCATTER = _op("reduce_scatter", "distributed", rules.reduce_scatter,
                     "The operands of all processes of a group, combined elementwise; each process keeps its part along a dim.",
                     Attribute("scatter_dimension", "int"), _GROUPS, _SIZE, _CHANNEL, _GLOBAL, _COMBINER,
                     operands=("operand",), **_REDUCING)  # fmt: skip
PARTITION_ID = _op("partition_id", "distributed", rules.process_number, "The number of this process's partition.")
REPLICA_ID = _op("replica_id", "distributed", rules.process_number, "The number of this process's replica.")

# ---------------------------------------------------------------- effects: ordered by tokens

_TRANSFER = (Attribute("channel_id", "int"), Attribute("channel_type", "int", 1, required=False),
             Attribute("is_host_transfer", "bool", False, required=False), _PAIRS)  # fmt: skip
_TOKEN: dict[str, Any] = {"operands": ("token",)}
_VALUES: dict[str, Any] = {"operands": ("inputs",), "variadic": True}
AFTER_ALL = _op("after_all", "effect", rules.tokens, "A token that comes after all of these.", operands=("tokens",), variadic=True)
CREATE_TOKEN = _op("create_token", "effect", rules.new_token, "A token that comes after nothing.")
SEND = _op("send", "effect", rules.send, "Sends the inputs over a channel; the last operand is the token that it comes after.",
           *_TRANSFER, **_VALUES)  # fmt: skip
RECV = _op("recv", "effect", rules.receive, "What comes over a channel, and the next token.", *_TRANSFER, _RESULTS, **_TOKEN)
INFEED = _op("infeed", "effect", rules.infeed, "What the host feeds in, and the next token.",
             Attribute("infeed_config", "string", "", required=False), Attribute("layout", "any", (), required=False), _RESULTS,
             **_TOKEN)  # fmt: skip
OUTFEED = _op("outfeed", "effect", rules.outfeed, "Gives the inputs to the host; the last operand is the token that it comes after.",
              Attribute("outfeed_config", "string", "", required=False), **_VALUES)  # fmt: skip
CUSTOM_CALL = _op("custom_call", "effect", rules.custom_call,
                  "Code that is known by its name; with `effect` the first operand and the last result are tokens.",
                  Attribute("call_target_name", "string"), Attribute("payload", "any", (), required=False), _RESULTS,
                  Attribute("effect", "bool", False, required=False), **_MANY)  # fmt: skip
