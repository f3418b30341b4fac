"""Collectives of a module as typed hub terms; anything about them that the hub does not say keeps the operation as it is."""

from __future__ import annotations

from typing import Any

import numpy as np

from coset.dialects.hub.mlir_ops import SILENT
from coset.dialects.hub.types import COMBINERS
from coset.frontends.stablehlo.attributes import Foreign, attribute_of
from coset.frontends.stablehlo.module import hlo
from coset.frontends.stablehlo.node import Builder, Built, MlirOperation
from coset.frontends.stablehlo.regions import combiner_word, payload, results
from coset.ir.term import make

_DEVICE_TO_DEVICE = 1


def _rows(node: MlirOperation, name: str) -> tuple[tuple[int, ...], ...]:
    value = node.value(name)
    if value is None or np.ndim(value) != 2:
        raise Foreign
    return tuple(tuple(int(i) for i in row) for row in np.asarray(value))


def _common(node: MlirOperation, *read: str) -> dict[str, Any]:
    """The groups (or pairs) and the channel; every other attribute must be one of `read`.

    Raises:
        Foreign: another attribute is there, or the channel is not between devices.
    """
    known = {*read, "replica_groups", "channel_handle", "channel_id", "use_global_device_ids"}
    if any(name not in known and name not in SILENT for name in node.op.attributes):
        raise Foreign
    given: dict[str, Any] = {"channel_id": 0}
    handle = attribute_of(node.op, "channel_handle")
    if handle is not None:
        channel = hlo().ChannelHandle(handle)
        if channel.channel_type != _DEVICE_TO_DEVICE:
            raise Foreign
        given["channel_id"] = channel.handle
    if attribute_of(node.op, "replica_groups") is not None:
        given["replica_groups"] = _rows(node, "replica_groups")
    if node.name.removeprefix("stablehlo.") in ("all_gather", "all_reduce", "reduce_scatter"):
        given["use_global_device_ids"] = attribute_of(node.op, "use_global_device_ids") is not None
    return given


def _sizes(node: MlirOperation, axis: int) -> tuple[int, int]:
    before, after = node.operands[0].tensor.dims[axis], node.shape()[axis]
    if not isinstance(before, int) or not isinstance(after, int) or not before or not after:
        raise Foreign  # the size of a group is what these say
    return before, after


def _all_gather(node: MlirOperation) -> Built:
    given = _common(node, "all_gather_dim")
    axis = node.value("all_gather_dim")
    before, after = _sizes(node, axis)
    return results(make(node.name, node.operands, {**given, "all_gather_dim": axis, "group_size": after // before}))


def _all_to_all(node: MlirOperation) -> Built:
    names = ("split_dimension", "concat_dimension", "split_count")
    given = _common(node, *names)
    return results(make(node.name, node.operands, {**given, **{name: node.value(name) for name in names}}))


def _collective_broadcast(node: MlirOperation) -> Built:
    return results(make(node.name, node.operands, _common(node)))


def _collective_permute(node: MlirOperation) -> Built:
    given = _common(node, "source_target_pairs")
    return results(make(node.name, node.operands, {**given, "source_target_pairs": _rows(node, "source_target_pairs")}))


def _reducing(node: MlirOperation, given: dict[str, Any]) -> Built:
    word = combiner_word(node.regions[0])
    combiner = word if word in COMBINERS else "region"
    bodies = (payload(node, 0),) if combiner == "region" else ()
    return results(make(node.name, node.operands, {**given, "combiner": combiner}, bodies))


def _all_reduce(node: MlirOperation) -> Built:
    return _reducing(node, _common(node))


def _reduce_scatter(node: MlirOperation) -> Built:
    axis = node.value("scatter_dimension")
    before, after = _sizes(node, axis)
    return _reducing(node, {**_common(node, "scatter_dimension"), "scatter_dimension": axis, "group_size": before // after})


COLLECTIVE_BUILDERS: dict[str, Builder] = {
    "stablehlo.all_gather": _all_gather, "stablehlo.all_reduce": _all_reduce, "stablehlo.all_to_all": _all_to_all,
    "stablehlo.collective_broadcast": _collective_broadcast, "stablehlo.collective_permute": _collective_permute,
    "stablehlo.reduce_scatter": _reduce_scatter,
}  # fmt: skip
