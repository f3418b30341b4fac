"""What holds for every op of the hub: it is documented, and its type rule agrees with its meaning."""

from __future__ import annotations

import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hub_cases import ANY_TYPE, ANY_VALUE, BINDING, CASES, HUB, cases, dtypes_of, numbers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coset.dialects.hub.scalars import widen
from coset.ir import dims
from coset.ir.errors import CosetError, TypeRuleError
from coset.ir.op import Op, get_op
from coset.ir.types import BOOL, AbsentType, TensorType, TokenType, TupleType, Type, tensor

for _path in sorted(Path(__file__).parent.glob("hub_*_cases.py")):
    import_module(_path.stem)
EVERY_OP = pytest.mark.parametrize("op", HUB, ids=str)
EVERY_MEANING = pytest.mark.parametrize("op", [op for op in HUB if op.meaning is not None], ids=str)
NAMES = """
    abs negate sign floor ceil round_nearest_even round_nearest_afz sqrt rsqrt cbrt exponential exponential_minus_one log log_plus_one
    logistic tanh tan sine cosine not is_finite add subtract multiply divide remainder power maximum minimum atan2 and or xor shift_left
    shift_right_arithmetic shift_right_logical compare select clamp convert broadcast_in_dim reshape transpose slice concatenate pad
    reverse iota dot_general convolution reduce
"""


def test_every_op_of_the_hub_is_there() -> None:
    assert set(NAMES.split()) <= {op.name.split(".")[1] for op in HUB if op.dialect == "stablehlo"}


@EVERY_OP
def test_op_is_documented(op: Op) -> None:
    assert op.document.endswith(".") and op.source.startswith("https://openxla.org/stablehlo/")
    assert op.meaning is not None or op.has("effect") or op.has("distributed")
    assert op.name in CASES or dtypes_of(op)
    assert op.traits <= {"elementwise", "commutative", "associative", "movement", "effect", "distributed"}


def has_type(value: Any, type: Type) -> bool:
    """True when `value` is what a term of this type evaluates to, its dims under BINDING."""
    if isinstance(type, TupleType):
        return isinstance(value, tuple) and len(value) == len(type.items) and all(map(has_type, value, type.items))
    assert isinstance(type, TensorType)
    return isinstance(value, np.ndarray) and value.dtype == type.dtype.numpy and value.shape == numbers(type.dims)


def bound(type: Type) -> Type:
    """The type with its dims under BINDING."""
    if isinstance(type, TupleType):
        return TupleType(tuple(map(bound, type.items)))
    return TensorType(type.dtype, numbers(type.dims)) if isinstance(type, TensorType) else type


@EVERY_MEANING
@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_meaning_has_the_inferred_type(op: Op, data: Any) -> None:
    case = data.draw(cases(op))
    before = [array.copy() for array in case.arrays]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value = case.value()
    assert has_type(value, case.term.type)
    for array, kept in zip(case.arrays, before, strict=True):
        assert array.tobytes() == kept.tobytes() or array.dtype == object, "a meaning must not write to its operands"


@EVERY_OP
@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_rule_over_symbols_is_the_rule_over_numbers(op: Op, data: Any) -> None:
    term = data.draw(cases(op)).term
    of_dims = {a.name for a in op.attributes if a.kind == "dims"}
    attributes = {k: numbers(v) if k in of_dims else v for k, v in term.attributes}
    assert op.infer([bound(o.type) for o in term.operands], attributes) == bound(term.type)
    if op.flops is not None:
        symbolic = op.flops(term.type, [o.type for o in term.operands], dict(term.attributes))
        assert dims.evaluate(symbolic, BINDING) >= 0


@EVERY_OP
@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_wrong_operands_are_refused(op: Op, data: Any) -> None:
    term = data.draw(cases(op)).term
    types, attributes = [o.type for o in term.operands], dict(term.attributes)
    if not op.variadic:
        with pytest.raises(TypeRuleError):
            op.infer([*types, tensor(BOOL)], attributes)
    for i in range(len(types) if op.name not in ANY_TYPE else 0):
        for wrong in (AbsentType(), TokenType(), TensorType(BOOL, None)):
            with pytest.raises(TypeRuleError, match=r"tensor of known rank|takes"):
                op.infer([*types[:i], wrong, *types[i + 1 :]], attributes)
    for key in [key for key in attributes if (op.name, key) not in ANY_VALUE]:
        with pytest.raises(TypeRuleError):
            op.infer(types, {**attributes, key: "nonsense"})
    with pytest.raises(CosetError, match="has no attribute"):
        op.complete({"nonsense": 1})


def test_a_whole_number_of_a_float_is_one() -> None:
    """A rule that asks for `alpha == 1` recognised an op that was written with an integer, which no runtime takes."""
    given = get_op("onnx.Swish").complete({"alpha": 1})
    assert type(given["alpha"]) is float and given == get_op("onnx.Swish").complete({})


COMMUTATIVE = [op for op in HUB if op.has("commutative")]


@pytest.mark.parametrize("op", COMMUTATIVE, ids=str)
@settings(max_examples=30, deadline=None, derandomize=True)
@given(data=st.data())
def test_commutative_ops_commute(op: Op, data: Any) -> None:
    case = data.draw(cases(op))
    assert op.meaning is not None
    np.testing.assert_array_equal(widen(case.value()), widen(op.meaning(case.term, case.arrays[::-1], BINDING)))


@pytest.mark.parametrize("op", [op for op in HUB if op.has("associative")], ids=str)
@settings(max_examples=30, deadline=None, derandomize=True)
@given(data=st.data())
def test_associative_ops_of_integers_associate(op: Op, data: Any) -> None:
    case = data.draw(cases(op).filter(lambda case: case.arrays[0].dtype.kind in "iub"))
    assert op.meaning is not None
    (a, b), c = case.arrays, case.arrays[0][..., ::-1] if case.arrays[0].ndim else case.arrays[0]
    left = op.meaning(case.term, [op.meaning(case.term, [a, b], BINDING), c], BINDING)
    right = op.meaning(case.term, [a, op.meaning(case.term, [b, c], BINDING)], BINDING)
    np.testing.assert_array_equal(widen(left), widen(right))
