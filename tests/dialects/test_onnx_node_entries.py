"""The entries `node.NAME`: each is the term that the reader of models makes of such a node."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest

import coset.dialects
from coset.dialects.onnx.node import Node, define
from coset.dialects.onnx.sugar import expanded
from coset.ir.builtin import absent
from coset.ir.op import get_op
from coset.ir.registry import all_ops
from coset.ir.term import Term, constant, input_term
from coset.ir.types import F32, I64, TensorType
from coset.rules.definition import definition_of, is_defined
from coset.rules.nodes import NODE

assert coset.dialects
NAMES = [op.name.removeprefix(NODE) for op in all_ops() if op.name.startswith(NODE)]
DRAWS = 12
OF_OPERANDS = {"CumSum": ["axis"], "CumProd": ["axis"], "Reshape": ["shape"]}  # a node has an operand in the place of the attribute
BEFORE_AXES_WERE_OPERANDS = 13


def operand(name: str, *shape: int, dtype: Any = F32) -> Term:
    return input_term(name, TensorType(dtype, shape))


def operands_of(name: str, draw: random.Random) -> list[Term]:
    """Operands of the kind that a node of the op takes."""
    if name in ("Conv", "ConvTranspose"):
        filters = (4, 3, 3, 2) if name == "Conv" else (3, 4, 3, 2)
        return [operand("x", 2, 3, 8, 7), operand("w", *filters), *([operand("b", 4)] if draw.random() < 0.5 else [])]
    if name.endswith("Pool") or name == "MeanVarianceNormalization":
        return [operand("x", 2, 3, 8, 7)]
    if name in ("LayerNormalization", "RMSNormalization"):
        return [operand("x", 2, 3, 5), operand("s", 5)]
    if name in ("Gather", "GatherElements"):
        return [operand("x", 2, 3, 5), operand("i", 2, 3, 5, dtype=I64)]
    return [operand("x", 2, 3, 5)]


def values(name: str, attribute: str, rank: int, draw: random.Random) -> Any:
    """A value of the attribute that a node may have."""
    some = {
        "axes": lambda: tuple(draw.sample(range(-rank, 0), draw.randrange(1, rank))), "axis": lambda: draw.randrange(-rank, rank),
        "keepdims": lambda: draw.randrange(2), "noop_with_empty_axes": lambda: draw.randrange(2), "exclusive": lambda: draw.randrange(2),
        "reverse": lambda: draw.randrange(2), "select_last_index": lambda: draw.randrange(2),
        "count_include_pad": lambda: draw.randrange(2),
        "strides": lambda: (draw.randrange(1, 3), 1), "dilations": lambda: (1, draw.randrange(1, 3)),
        "pads": lambda: tuple(draw.randrange(2) for _ in range(4)), "kernel_shape": lambda: (3, 2), "p": lambda: draw.randrange(1, 3),
        "epsilon": lambda: 0.5, "shape": lambda: (5, 6),
        "output_padding": lambda: (0, 0), "group": lambda: 1, "ceil_mode": lambda: 0, "auto_pad": lambda: "NOTSET",
    }  # fmt: skip
    if name in ("LayerNormalization", "RMSNormalization") and attribute == "axis":
        return draw.choice((-1, rank - 1))
    return some[attribute]()


def draws(name: str) -> Iterator[tuple[list[Term], dict[str, Any]]]:
    draw = random.Random(name)
    for number in range(DRAWS):
        operands = operands_of(name, draw)
        attributes = {}
        for attribute in get_op(NODE + name).attributes:
            if attribute.required or (number and draw.random() < 0.6):  # the first has the defaults
                attributes[attribute.name] = values(name, attribute.name, operands[0].tensor.rank, draw)
        yield operands, attributes


@pytest.mark.parametrize("name", NAMES)
def test_an_entry_is_what_a_node_is_read_as(name: str) -> None:
    """Terms are interned: those that are alike are one."""
    op = get_op(NODE + name)
    for operands, attributes in draws(name):
        optional = [absent()] * (len(op.operands) - len(operands))
        ours = expanded(op, [*operands, *optional], op.complete(attributes))
        given = [constant(np.array(attributes[each])) for each in OF_OPERANDS.get(name, [])]
        host = (None,) * len(operands) + tuple(np.array(attributes[each], object) for each in OF_OPERANDS.get(name, []))
        kept = {key: value for key, value in attributes.items() if key not in OF_OPERANDS.get(name, [])}
        since = BEFORE_AXES_WERE_OPERANDS if "axes" in attributes else 18
        node = Node(name, (*operands, *given), kept, host, since)
        found = define(node)
        assert found is not None
        term = found[0]
        if is_defined(term.op) and definition_of(term.op).is_sugar:  # of a node that stays as it came
            term = expanded(term.op, term.operands, dict(term.attributes))
        assert term is ours, attributes


@pytest.mark.parametrize("name", NAMES)
def test_an_entry_has_the_defaults_of_the_standard(name: str) -> None:
    schema = onnx.defs.get_schema(name)
    for attribute in get_op(NODE + name).attributes:
        told = schema.attributes.get(attribute.name)
        default = None if told is None or not told.default_value.name else onnx.helper.get_attribute_value(told.default_value)
        default = default.decode() if isinstance(default, bytes) else default
        if attribute.required or default is None:  # left out: a list without items, or what an operand says
            assert attribute.required or attribute.default == () or attribute.name in ("axes", "noop_with_empty_axes"), attribute
        else:
            assert attribute.default == (tuple(default) if isinstance(default, list) else default), attribute


@pytest.mark.parametrize("name", NAMES)
def test_operands_stand_in_the_order_of_the_standard(name: str) -> None:
    inputs = [each.name for each in onnx.defs.get_schema(name).inputs]
    named = [each for each in inputs if each in get_op(NODE + name).operands]
    own = [each for each in get_op(NODE + name).operands if each in inputs]
    assert own == named and all(a == b for a, b in zip(own, inputs, strict=False))
    assert list(itertools.islice(inputs, len(own))) == own
