"""What a module says of devices: it stays in StableHLO, and is left out of other formats with a warning."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch_mlir", reason="the extra `mlir` is not installed")

import coset
from coset.frontends.stablehlo.program import import_stablehlo
from coset.ir.errors import CosetError

MATRIX = "tensor<8x8xf32>"


def module(*constraints: str, said: str = "mhlo.sharding", other: str = "") -> str:
    """A module with a constraint on a constant and one on a computed value, inside of double negations."""
    first, second = constraints
    return f"""
module @m attributes {{mhlo.num_partitions = 8 : i32}} {{
  {other}
  func.func public @main(%x: {MATRIX} {{{said}}}) -> ({MATRIX} {{{said}}}) {{
    %c = stablehlo.constant dense<2.0> : {MATRIX}
    %d = {first.format(value="%c")} : ({MATRIX}) -> {MATRIX}
    %0 = stablehlo.negate %x : {MATRIX}
    %1 = stablehlo.negate %0 : {MATRIX}
    %2 = {second.format(value="%1")} : ({MATRIX}) -> {MATRIX}
    %3 = stablehlo.multiply %2, %d : {MATRIX}
    return %3 : {MATRIX}
  }}
}}
"""


def call(sharding: str) -> str:
    return f'stablehlo.custom_call @Sharding({{value}}) {{{{mhlo.sharding = "{{{{{sharding}}}}}"}}}}'


def constraint(axes: str) -> str:
    return f'"sdy.sharding_constraint"({{value}}) <{{{{sharding = #sdy.sharding<@mesh, [{axes}]>}}}}>'


GSPMD = module(call("replicated"), call("devices=[1,8]<=[8]"), said='mhlo.sharding = "{devices=[8,1]<=[8]}"')
SHARDY = module(
    constraint("{{}}, {{}}"), constraint('{{"data"}}, {{}}'), said='sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>',
    other='"sdy.mesh"() <{mesh = #sdy.mesh<["data"=8]>, sym_name = "mesh"}> : () -> ()',
)  # fmt: skip
KEPT = {
    "GSPMD": (GSPMD, ["mhlo.num_partitions = 8", '"{replicated}"', '"{devices=[1,8]<=[8]}"', '"{devices=[8,1]<=[8]}"']),
    "Shardy": (SHARDY, ['#sdy.mesh<["data"=8]>', "<@mesh, [{}, {}]>", '<@mesh, [{"data"}, {}]>', '"sdy.sharding_constraint"']),
}


@pytest.mark.parametrize("name", KEPT)
def test_it_stays_where_it_stands(name: str, tmp_path: Path) -> None:
    text, parts = KEPT[name]
    (tmp_path / "model.mlir").write_text(text)
    result = coset.optimize(tmp_path / "model.mlir")
    result.save(tmp_path / "out.mlir")
    written = (tmp_path / "out.mlir").read_text()
    assert "negate" not in written and result.report["check"]["ok"] and not result.report["warnings"]
    assert all(written.count(part) == text.count(part) > 0 for part in parts)
    names = [term.attribute("name") for term in import_stablehlo(written).terms() if term.op.name == "builtin.opaque"]
    assert len(names) == 2, "one on a constant is not folded away"


@pytest.mark.parametrize("name", KEPT)
def test_onnx_says_that_it_leaves_it_out(name: str, tmp_path: Path) -> None:
    (tmp_path / "model.mlir").write_text(KEPT[name][0])
    result = coset.optimize(tmp_path / "model.mlir", target="cpu-onnxruntime")
    (warning,) = result.report["warnings"]
    assert "2 constraints of sharding" in warning and "sharding` of the input `arg0`" in warning and result.report["check"]["ok"]


def test_a_call_of_a_library_is_no_onnx_node(tmp_path: Path) -> None:
    line = f"%0 = stablehlo.custom_call @mine(%x) : ({MATRIX}) -> {MATRIX}"
    text = f"func.func @main(%x: {MATRIX}) -> {MATRIX} {{\n  {line}\n  return %0 : {MATRIX}\n}}\n"
    (tmp_path / "model.mlir").write_text(text)
    with pytest.raises(CosetError, match=r"`stablehlo\.custom_call` is known to its own format only"):
        coset.optimize(tmp_path / "model.mlir", target="cpu-onnxruntime")


def test_shardy_s_own_text_is_refused_with_what_to_do() -> None:
    function = f"func.func @main(%x: {MATRIX}) -> {MATRIX} {{ return %x : {MATRIX} }}"
    with pytest.raises(CosetError, match="Dialect `sdy' not found") as caught:
        import_stablehlo(f'module {{\n  sdy.mesh @mesh = <["data"=8]>\n  {function}\n}}\n')
    assert "generic form" in caught.value.help and caught.value.place is not None and caught.value.place.line == 2
