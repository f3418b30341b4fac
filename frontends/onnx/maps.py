"""Inputs that are maps: what their keys and values are, and which keys the nodes know that read them."""

from __future__ import annotations

from dataclasses import dataclass

import onnx
from onnx import helper

from coset.dialects.onnx.dtypes import DTYPE_OF_CODE
from coset.ir.evaluate import describe
from coset.ir.program import Program
from coset.ir.term import INPUT, Term
from coset.ir.types import DType, ForeignType

Key = int | str
VOCABULARIES = ("string_vocabulary", "int64_vocabulary")  # of DictVectorizer
UNBOUND = 5  # keys of a map whose readers name none


@dataclass(frozen=True)
class Entries:
    """A map with keys that are texts or whole numbers, and the element type of its values."""

    texts: bool
    dtype: DType


def entries_of(type: ForeignType) -> Entries | None:
    """What a map holds; None of anything else."""
    proto = onnx.TypeProto.FromString(type.description)
    if not proto.HasField("map_type"):
        return None
    dtype = DTYPE_OF_CODE.get(proto.map_type.value_type.tensor_type.elem_type)
    return None if dtype is None else Entries(proto.map_type.key_type == onnx.TensorProto.STRING, dtype)


def keys_read(program: Program, name: str, entries: Entries) -> list[Key]:
    """The keys that the readers of an input know, in their order: those of a vocabulary, the places of a row; else the first few numbers,
    or letters."""
    found: dict[Key, None] = {}
    for term in program.terms():
        if any(operand.op is INPUT and operand.attribute("name") == name for operand in term.operands) and term.op.has("foreign"):
            found.update(dict.fromkeys(_keys(term)))
    whole = range(UNBOUND)
    return list(found) or ([chr(ord("a") + each) for each in whole] if entries.texts else list(whole))


def _keys(term: Term) -> list[Key]:
    payload = dict(term.attributes).get("payload")
    if not isinstance(payload, bytes):
        return []
    given = {each.name: helper.get_attribute_value(each) for each in onnx.NodeProto.FromString(payload).attribute}
    for vocabulary in VOCABULARIES:
        if vocabulary in given:
            return [key.decode() if isinstance(key, bytes) else int(key) for key in given[vocabulary]]
    if describe(term).endswith("CastMap") and given.get("map_form") == b"SPARSE":
        return list(range(given.get("max_map", 1)))
    return []
