"""Ops that StableHLO's reference interpreter does not know, against XLA on the CPU (skipped without jax)."""

from __future__ import annotations

from typing import Any

import hub_data_cases  # noqa: F401  (fills CASES)
import ml_dtypes
import numpy as np
import pytest
from hub_cases import Case, numbers
from reference import spell
from test_hub_data_reference import MLIR, drawn, results_of, words

from coset.dialects.hub.scalars import widen
from coset.ir.op import get_op

jax = pytest.importorskip("jax", reason="XLA comes with jax")
mlir = pytest.importorskip("jax._src.interpreters.mlir")

Array = np.ndarray[Any, Any]
BATCH = lambda a: f"epsilon = {a['epsilon']} : f32, feature_index = {a['feature_index']} : i64"  # noqa: E731
ATTRIBUTES: dict[str, Any] = {
    "cholesky": lambda a: words(a, "lower"),
    "triangular_solve": MLIR["triangular_solve"],
    "fft": MLIR["fft"],
    "batch_norm_inference": BATCH,
    "batch_norm_training": BATCH,
    "batch_norm_grad": BATCH,
    "rng_bit_generator": lambda a: f"rng_algorithm = #stablehlo<rng_algorithm {a['rng_algorithm']}>",
}
UNITS = {name: 0 if name == "rng_bit_generator" else 512 for name in ATTRIBUTES}  # f32 sums of a few numbers near 1, in another order
KINDS = ("f32", "f64", "c64", "c128", "u64")


def xla(name: str, case: Case) -> list[Array]:
    """The results of the op compiled by XLA, its operands as arguments."""
    from jaxlib import xla_client
    from jaxlib.mlir import ir

    operands = [spell(o.tensor.dtype, numbers(o.tensor.dims)) for o in case.term.operands]
    results = [spell(type.dtype, type.static or ()) for type in results_of(case)]
    arguments, outs = ", ".join(f"%x{i}: {type}" for i, type in enumerate(operands)), ", ".join(results)
    values, given = (", ".join(f"%{letter}{i}" for i in range(count)) for letter, count in (("r", len(results)), ("x", len(operands))))
    body = f"""func.func @main({arguments}) -> ({outs}) {{
      {values} = "stablehlo.{name}"({given}) <{{{ATTRIBUTES[name](dict(case.term.attributes))}}}>
        : ({", ".join(operands)}) -> ({outs})
      return {values} : {outs}
    }}"""
    client = jax.devices("cpu")[0].client
    with mlir.make_ir_context():
        devices = xla_client.DeviceList(tuple(client.devices()[:1]))
        program = client.compile_and_load(ir.Module.parse(body), devices, xla_client.CompileOptions())
    return [np.asarray(x) for x in program.execute([jax.device_put(x) for x in case.arrays])]


def can_compare(name: str, case: Case) -> bool:
    """What XLA's CPU backend computes."""
    types = [o.tensor for o in case.term.operands] + results_of(case)
    if name == "rng_bit_generator":
        return types[-1].dtype.name in ("u8", "u16", "u32", "u64", "i32", "f32")
    if name == "triangular_solve" and any(0 in (type.static or numbers(type.dims)) for type in types):
        return False  # its expander crashes on nothing
    return all(type.dtype.name in KINDS for type in types) and (name != "cholesky" or 0 not in numbers(types[0].dims))


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_op_is_as_xla_has_it(name: str) -> None:
    with jax.enable_x64(True):
        found = [case for case in drawn(get_op(f"stablehlo.{name}"), 60) if can_compare(name, case)][:16]
        assert len(found) >= 8
        for case in found:
            ours = case.value()
            for mine, theirs in zip(ours if isinstance(ours, tuple) else (ours,), xla(name, case), strict=True):
                if name == "cholesky":  # XLA leaves what it found in the other triangle, or zeros
                    triangle = np.tril if case.term.attribute("lower") else np.triu
                    mine, theirs = triangle(mine), triangle(theirs)
                if UNITS[name] == 0 or mine.dtype.kind not in "fc":
                    assert mine.tobytes() == theirs.tobytes(), case
                    continue
                bound = UNITS[name] * float(ml_dtypes.finfo(mine.real.dtype).eps)  # type: ignore[no-untyped-call]
                scale = float(np.nanmax(np.abs(widen(mine)), initial=1.0, where=np.isfinite(mine)))
                np.testing.assert_allclose(mine, theirs, rtol=bound, atol=bound * scale, err_msg=repr(case))
