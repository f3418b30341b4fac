"""A model's own functions: what they are, and the model with their nodes in place of calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import onnx
from onnx import inliner

from coset.frontends.onnx_tensors import Opened
from coset.ir.program import Program


def functions_of(program: Program) -> Mapping[tuple[str, str, str], bytes]:
    """The text of each function of the model's own that a program was read from, by domain, name and overload."""
    if program.source.get("format") != "onnx":
        return {}
    header = onnx.ModelProto.FromString(program.source["model"])
    return {(each.domain, each.name, each.overload): each.SerializeToString(deterministic=True) for each in header.functions}


def two_of_one_name(one: Program, other: Program) -> str | None:
    """A function that both models have under one name with two texts: calls of it are no one op. None where there is none."""
    own, theirs = functions_of(one), functions_of(other)
    return next((name for key in own.keys() & theirs.keys() if own[key] != theirs[key] for name in (".".join(filter(None, key)),)), None)


def inlined(opened: Opened) -> Opened:
    """The model with the nodes of its own functions in place of their calls; those stay whose versions of the opsets are others than the
    model's, and all where ONNX's inliner refuses the model."""
    if not opened.proto.functions:
        return opened
    try:
        return replace(opened, proto=inliner.inline_local_functions(opened.proto))
    except (RuntimeError, ValueError):
        return opened
