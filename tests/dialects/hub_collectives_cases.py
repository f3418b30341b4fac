"""Cases of the hub's ops between processes, with the host, and to foreign code."""

from __future__ import annotations

from typing import Any

import numpy as np
from hub_cases import ANY_TYPE, ANY_VALUE, CASES, DIM, SHAPE, Case, Draw
from hub_regions_cases import NUMBERS, entered, values, words
from hypothesis import strategies as st

from coset.dialects.hub.region_terms import region
from coset.ir.op import Attributes
from coset.ir.term import input_term, make
from coset.ir.types import DTYPES, F32, TensorType, TokenType, Type, tensor

ORDERED = ("after_all", "create_token", "send", "recv", "infeed", "outfeed", "custom_call")
ANY_TYPE |= {f"stablehlo.{name}" for name in ORDERED}
ANY_VALUE |= {("stablehlo.custom_call", "call_target_name"), ("stablehlo.custom_call", "payload"), ("stablehlo.infeed", "layout"),
              ("stablehlo.infeed", "infeed_config"), ("stablehlo.outfeed", "outfeed_config")}  # fmt: skip
GROUPS = st.sampled_from([((0,),), ((0,), (1,)), ((0, 1), (2, 3)), ((0, 1), (2, -1))])
EFFECT = TokenType()


def _of(name: str, types: list[Type], attributes: Attributes, arrays: list[np.ndarray[Any, Any]], *regions: Any) -> Case:
    terms = [input_term(f"x{i}", type) for i, type in enumerate(types)]
    return Case(make(f"stablehlo.{name}", terms, attributes, tuple(regions)), arrays)


def _collective(draw: Draw, name: str, attributes: Attributes, *, alone: bool, count: int = 2) -> Case:
    """The collective with drawn operands, over one group of process 0 (where it has a meaning) or over others."""
    groups = ((0,),) if alone else draw(GROUPS)
    attributes = {**attributes, "replica_groups": groups, "channel_id": draw(st.integers(0, 1))}
    if "use_global_device_ids" in attributes:
        attributes["use_global_device_ids"] = attributes["channel_id"] > 0
    if "group_size" in attributes:
        attributes["group_size"] = len(groups[0])
    if "split_count" in attributes:
        attributes["split_count"] = len(groups[0])
    dtype = draw(st.sampled_from(NUMBERS))
    bodies = []
    if "combiner" in attributes:
        attributes["combiner"] = draw(st.sampled_from([*words(dtype), "region"]))
        if attributes["combiner"] == "region":
            bodies = [region([tensor(dtype)] * 2, lambda a, b: make("stablehlo.maximum", (a, b)))]
    shape = (4, draw(DIM), *draw(SHAPE))
    kinds = [(dtype, shape)] * draw(st.integers(1, count))
    return _of(name, [TensorType(*kind) for kind in kinds], attributes, values(draw, kinds), *bodies)


def _entered(name: str, attributes: Attributes, count: int = 2) -> None:
    @st.composite
    def strategy(draw: Draw) -> Case:
        return _collective(draw, name, attributes, alone=True, count=count)

    CASES[f"stablehlo.{name}"] = strategy


_entered("all_gather", {"all_gather_dim": 1, "group_size": 1, "use_global_device_ids": False})
_entered("all_reduce", {"combiner": "add", "use_global_device_ids": False})
_entered("all_to_all", {"split_dimension": 0, "concat_dimension": 1, "split_count": 1})
_entered("collective_broadcast", {})
_entered("reduce_scatter", {"scatter_dimension": 0, "group_size": 1, "combiner": "add", "use_global_device_ids": False}, 1)


@entered("collective_permute")
@st.composite
def collective_permute(draw: Draw) -> Case:
    kinds = [(draw(st.sampled_from(NUMBERS)), draw(SHAPE))] * draw(st.integers(1, 2))
    attributes = {"source_target_pairs": ((0, 0),), "channel_id": draw(st.integers(0, 1))}
    return _of("collective_permute", [TensorType(*kind) for kind in kinds], attributes, values(draw, kinds))


TYPED: dict[str, tuple[list[Type], Attributes]] = {
    "partition_id": ([], {}), "replica_id": ([], {}), "create_token": ([], {}), "after_all": ([EFFECT, EFFECT], {}),
    "send": ([tensor(F32, 2), EFFECT], {"channel_id": 1, "source_target_pairs": ((0, 1), (1, 0))}),
    "recv": ([EFFECT], {"channel_id": 1, "results": (tensor(F32, 2),)}),
    "infeed": ([EFFECT], {"results": (tensor(F32, 2), tensor(DTYPES["i8"]))}),
    "outfeed": ([tensor(F32, 2), tensor(DTYPES["i8"]), EFFECT], {}),
    "custom_call": ([EFFECT, tensor(F32, 2)], {"call_target_name": "f", "results": (tensor(F32, 3), EFFECT), "effect": True}),
}  # fmt: skip


def _typed(name: str) -> None:
    CASES[f"stablehlo.{name}"] = lambda: st.builds(lambda: _of(name, *TYPED[name], []))


for _name in TYPED:
    _typed(_name)
