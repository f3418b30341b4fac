"""ONNX nodes that definitions in the rule language expand on import: which they are, how a node is read, and the normal form."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import coset.dialects
from coset.dialects.hub.terms import dot, numpy_broadcast, numpy_shape, reshape, splat
from coset.dialects.onnx.node import BUILDERS, DEFINITIONS, Node
from coset.dialects.onnx.sugar import sugar
from coset.ir.dims import Dim, symbol
from coset.ir.errors import TypeRuleError, require
from coset.ir.evaluate import evaluate
from coset.ir.op import Op
from coset.ir.registry import all_ops
from coset.ir.term import Term, input_term, make, topological
from coset.ir.types import F32, I64, TensorType
from coset.rules.definition import definition_of, is_defined

FOLDER = Path(coset.dialects.__file__).parent
SUGAR = [op for op in all_ops() if op.dialect == "onnx" and is_defined(op) and definition_of(op).is_sugar]
M, N = symbol("M"), symbol("N")


def operand(name: str, *shape: Dim) -> Term:
    return input_term(name, TensorType(F32, shape))


def node(name: str, *operands: Term, since: int = 13, host: tuple[object, ...] = (), outputs: int = 1, **attributes: object) -> Node:
    values = tuple(None if h is None else np.array(h, object) for h in host) or (None,) * len(operands)
    return Node(name, operands, attributes, values, since, outputs, outputs)


def built(name: str, *operands: Term, **more: object) -> Term:
    result = BUILDERS[name](node(name, *operands, **more))  # type: ignore[arg-type]
    assert isinstance(result, Term)
    return result


@pytest.mark.parametrize("op", SUGAR, ids=str)
def test_each_definition_has_a_builder_and_stands_where_its_op_says(op: Op) -> None:
    name = op.name.removeprefix("onnx.")
    assert name in BUILDERS or name in DEFINITIONS
    assert definition_of(op).rules == ((), ())
    file, line = op.source.split(":")
    assert (FOLDER / file).read_text().splitlines()[int(line) - 1].startswith(f"op {op.name} ")


def test_importing_the_dialects_reads_no_entry_of_theirs() -> None:
    program = "import coset.dialects; from coset.ir.registry import loaded_ops; print([o for o in loaded_ops() if o.name == 'onnx.Add'])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


SHAPES: list[tuple[Dim, ...]] = [(), (1,), (N,), (1, N), (M, 1), (M, N), (1, 1), (M, 1, N), (3,), (2, 3), (2, 1), (1, 2, 3)]


@pytest.mark.parametrize(("left", "right"), list(itertools.product(SHAPES, SHAPES)), ids=str)
def test_operands_are_broadcast_as_the_hub_does_it(left: tuple[Dim, ...], right: tuple[Dim, ...]) -> None:
    a, b = operand("a", *left), operand("b", *right)
    try:
        shape = numpy_shape(left, right)
    except TypeRuleError:
        with pytest.raises(TypeRuleError):
            built("Add", a, b)
        return
    spread = [numpy_broadcast(x, shape) for x in (a, b)]
    assert built("Add", a, b) is make("stablehlo.add", spread)
    assert built("Greater", a, b) is make("stablehlo.compare", spread, {"direction": "GT"})
    assert built("Max", a, b) is make("stablehlo.maximum", spread)


def product(a: Term, b: Term) -> Term:
    """NumPy's `a @ b` as one dot_general: no batch when b is one matrix (or vector), else equal leading batch dims."""
    require(a.tensor.rank >= 1 and b.tensor.rank >= 1, f"matmul takes operands of rank 1 or more, not {a.type} and {b.type}")
    left, right = a.tensor.dims[:-2], b.tensor.dims[:-2]
    if all(dim == 1 for dim in right) and len(right) <= len(left):
        matrix = reshape(b, b.tensor.dims[len(right) :])
        return dot(a, matrix, lhs_contract=(a.tensor.rank - 1,), rhs_contract=(0,))
    batch = numpy_shape(left, right)
    lhs, rhs = (numpy_broadcast(x, (*batch, *x.tensor.dims[-2:])) for x in (a, b))
    axes = tuple(range(len(batch)))
    return dot(lhs, rhs, lhs_batch=axes, rhs_batch=axes, lhs_contract=(lhs.tensor.rank - 1,), rhs_contract=(len(batch),))


MATRICES: list[tuple[Dim, ...]] = [(4,), (4, 4), (1, 4, 4), (M, 4, 4), (3, 4, 4), (1, 1, 4, 4), (2, 1, 4, 4), (3, M, 4), (N, M, 4)]


@pytest.mark.parametrize(("left", "right"), list(itertools.product(MATRICES, MATRICES)), ids=str)
def test_a_matrix_product_has_the_hubs_normal_form(left: tuple[Dim, ...], right: tuple[Dim, ...]) -> None:
    a, b = operand("a", *left), operand("b", *right)
    try:
        expected = product(a, b)
    except TypeRuleError:
        with pytest.raises(TypeRuleError):
            built("MatMul", a, b)
        return
    assert built("MatMul", a, b) is expected


MATMULS = [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((5, 2, 3), (1, 3, 4)), ((5, 2, 3), (5, 3, 4)),
    ((2, 3), (5, 3, 4)), ((6, 1, 2, 3), (5, 3, 4)), ((3,), (5, 3, 4)), ((5, 2, 3), (3,)), ((2, 3), (1, 3, 4)), ((3,), (1, 3, 4)),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right"), MATMULS, ids=str)
def test_a_matrix_product_is_numpys(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    random = np.random.default_rng(0)
    a, b = (random.integers(-9, 9, shape).astype(np.float32) for shape in (left, right))
    term = built("MatMul", operand("a", *left), operand("b", *right))
    (result,) = evaluate([term], {"a": a, "b": b})
    np.testing.assert_array_equal(result, a @ b)
    batch = term.attribute("lhs_batch")
    assert batch == term.attribute("rhs_batch") == tuple(range(len(batch)))


def test_a_splat_stays_one() -> None:
    x, half = operand("x", 2, 3), splat(0.5, F32, (1,))
    assert built("Mul", x, half) is make("stablehlo.multiply", (x, splat(0.5, F32, (2, 3))))
    assert built("Transpose", splat(0.5, F32, (2, 3))) is splat(0.5, F32, (3, 2))


def test_what_does_nothing_is_gone() -> None:
    x = operand("x", 2, M)
    assert built("Transpose", x, perm=(0, 1)) is x
    assert built("Concat", x, axis=0) is x
    assert built("ReduceSum", x, axes=(), noop_with_empty_axes=1) is x
    assert built("Pad", x, pads=(0, 0, 0, 0)) is x
    assert built("Reshape", x, operand("shape", 2), host=(None, [2, -1])) is x
    assert BUILDERS["Split"](node("Split", x, outputs=1)) == (x,)


def test_an_empty_list_of_axes_is_as_none() -> None:
    """As ONNX Runtime has it (docs/undefined.md)."""
    x, axes = operand("x", 1, 3), input_term("axes", TensorType(I64, (0,)))
    assert built("Squeeze", x).type == TensorType(F32, (3,))
    assert built("Squeeze", x, axes, host=(None, [])) is built("Squeeze", x)


def test_a_node_whose_numbers_are_not_known_stays() -> None:
    x, axes = operand("x", 2, 3), input_term("axes", TensorType(I64, (1,)))
    assert sugar(node("ReduceSum", x, axes)) is None
    assert sugar(node("Unsqueeze", x)) is None
    assert sugar(node("Add", x, x, since=6)) is None


def test_several_results_are_as_many_as_the_node_has() -> None:
    x = operand("x", M, 7)
    parts = BUILDERS["Split"](node("Split", x, outputs=3, axis=1))
    assert isinstance(parts, tuple)
    assert [part.type for part in parts] == [TensorType(F32, (M, 3)), TensorType(F32, (M, 3)), TensorType(F32, (M, 1))]
    with pytest.raises(TypeRuleError):
        BUILDERS["Split"](node("Split", x, outputs=3, axis=0))  # nobody knows that 3 divides M


def test_definitions_in_definitions_are_expanded_too() -> None:
    terms = topological([built("Mean", operand("a", 2, 3), operand("b", 3), operand("c", 2, 1))])
    assert {term.op.dialect for term in terms} == {"stablehlo", "builtin"}


def test_operands_may_be_many() -> None:
    operands = [operand(f"x{i}", 2) for i in range(250)]
    term = built("Sum", *operands)
    for last in reversed(operands[1:]):
        term, right = term.operands
        assert right is last
    assert term is operands[0]
    assert built("Concat", *operands, axis=0).type == TensorType(F32, (500,))
