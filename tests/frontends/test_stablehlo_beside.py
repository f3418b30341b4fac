"""What a StableHLO module says beside its program is written again: names, attributes, other functions, other operations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("torch_mlir", reason="the extra `mlir` is not installed")

from torch_mlir import ir

import coset
from coset.frontends.stablehlo.module import new_context
from coset.frontends.stablehlo.program import import_stablehlo
from coset.ir.errors import CosetError
from coset.lowering.stablehlo.attributes import name_text, quoted, symbol
from coset.lowering.stablehlo.module import print_stablehlo

MATRIX = "tensor<2x2xf32>"
NAME = st.from_regex(r"x[a-z]{0,2}\.[a-z_]{1,4}([.-][a-z]{1,2})?", fullmatch=True)  # of no dialect that verifies what it has
SCALAR = st.one_of(
    st.integers(-(2**31), 2**31 - 1).map(lambda value: f"{value} : i32"),
    st.integers(0, 255).map(lambda value: f"{value} : ui8"),
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(lambda value: f"{value:.9e} : f32"),
    st.sampled_from(["true", "false", "0x7F800000 : f32", "0x7FC00000 : f32", "-0.0 : f64", "7 : index"]),
    st.text(max_size=6).map(quoted),
    st.sampled_from(["tensor<4xf32>", "i32", "f8E4M3FN", "tensor<?x4xf32, #stablehlo.bounds<8, ?>>", "!foo.type<1>"]),
    st.sampled_from(["dense<[1, 2]> : tensor<2xi64>", "dense<1.5> : tensor<2x2xf32>", 'dense<"0x01020304"> : tensor<4xi8>']),
    st.sampled_from(["array<i64: 1, 2>", "#foo.bar<1>", "@main", "affine_map<(d0) -> (d0)>", "#stablehlo<precision HIGH>", "unit"]),
)
VALUE = st.recursive(
    SCALAR,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.dictionaries(st.from_regex(r"[a-z]{1,4}", fullmatch=True), inner, max_size=2).map(lambda given: braces(given)),
    ),
    max_leaves=4,
)
ATTRIBUTES = st.dictionaries(NAME, VALUE, max_size=3)


def braces(given: dict[str, str]) -> str:
    return f"{{{', '.join(f'{name_text(name)} = {value}' for name, value in given.items())}}}"


def said(text: str, function: str) -> list[dict[str, str]]:
    """What MLIR finds in a module: the attributes of the module, of the function, of each argument and of each result, without what the
    program says."""
    module = ir.Module.parse(text, context=new_context())
    (op,) = (each for each in module.body.operations if each.attributes["sym_name"].value == function)
    own = {name: str(op.attributes[name]) for name in op.attributes if name not in ("function_type", "arg_attrs", "res_attrs")}
    found = [{name: str(module.operation.attributes[name]) for name in module.operation.attributes}, own]
    for kind, count in (("arg_attrs", 2), ("res_attrs", 1)):
        each = list(op.attributes[kind]) if kind in op.attributes else [{}] * count
        found += [{pair.name: str(pair.attr) for pair in given} if given else {} for given in each]
    return found


def module(name: str, function: str, *, attributes: dict[str, str], own: dict[str, str], values: list[dict[str, str]]) -> str:
    first, second, result = map(braces, values)
    return f"""module {symbol(name)} attributes {braces(attributes)} {{
  func.func public {symbol(function)}(%x: {MATRIX} {first}, %y: {MATRIX} {second}) -> ({MATRIX} {result}) attributes {braces(own)} {{
    %0 = stablehlo.negate %x : {MATRIX}
    %1 = stablehlo.negate %0 : {MATRIX}
    %2 = stablehlo.add %1, %y : {MATRIX}
    return %2 : {MATRIX}
  }}
}}
"""


MODULES = st.builds(
    module, st.text(min_size=1, max_size=5), st.text(min_size=1, max_size=5), attributes=ATTRIBUTES, own=ATTRIBUTES,
    values=st.lists(ATTRIBUTES, min_size=3, max_size=3),
)  # fmt: skip


def without_name(found: list[dict[str, str]]) -> list[dict[str, str]]:
    """Without the name that each result gets."""
    return [*found[:-1], {name: text for name, text in found[-1].items() if name != "jax.result_info"}]


def names(text: str) -> tuple[str, str]:
    parsed = ir.Module.parse(text, context=new_context())
    return parsed.operation.attributes["sym_name"].value, parsed.body.operations[0].attributes["sym_name"].value


@given(MODULES)
@settings(max_examples=120, deadline=None)
def test_every_attribute_is_written_again(text: str) -> None:
    _, function = names(text)
    assert without_name(said(print_stablehlo(import_stablehlo(text)), function)) == without_name(said(text, function))


@given(MODULES)
@settings(max_examples=6, deadline=None)
def test_every_attribute_is_there_when_it_was_optimized(text: str) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "model.mlir").write_text(text)
        result = coset.optimize(Path(folder) / "model.mlir")
        result.save(Path(folder) / "out.mlir")
        written = (Path(folder) / "out.mlir").read_text()
    _, function = names(text)
    assert without_name(said(written, function)) == without_name(said(text, function))
    assert "negate" not in written and not result.report["warnings"]


def test_a_name_of_a_result_stays_what_it_is() -> None:
    """Outputs of one name are called otherwise here, but not in the text."""
    pair = f'({MATRIX} {{jax.result_info = "a"}}, {MATRIX} {{jax.result_info = "a", m.n = 1 : i32}})'
    text = f"func.func @main(%x: {MATRIX}) -> {pair} {{\n  return %x, %x : {MATRIX}, {MATRIX}\n}}\n"
    written = print_stablehlo(import_stablehlo(text))
    assert written.count('jax.result_info = "a"') == 2 and "m.n = 1" in written


OTHERS = f"""
module {{
  "foo.global"() {{sym_name = "counter", value = 3 : i32}} : () -> ()
  func.func public @main(%x: {MATRIX}) -> {MATRIX} {{
    %0 = stablehlo.custom_call @mine(%x) {{called_computations = [@helper]}} : ({MATRIX}) -> {MATRIX}
    %1 = stablehlo.composite "a.b" %0 {{decomposition = @decomposition0}} : ({MATRIX}) -> {MATRIX}
    return %1 : {MATRIX}
  }}
  func.func public @train(%x: {MATRIX}) -> {MATRIX} {{
    %0 = func.call @"a function"(%x) : ({MATRIX}) -> {MATRIX}
    return %0 : {MATRIX}
  }}
  func.func private @"a function"(%x: {MATRIX}) -> {MATRIX} {{
    %0 = stablehlo.tanh %x : {MATRIX}
    return %0 : {MATRIX}
  }}
  func.func private @helper(%x: {MATRIX}) -> {MATRIX} {{
    return %x : {MATRIX}
  }}
  func.func private @decomposition0(%x: {MATRIX}) -> {MATRIX} {{
    %0 = stablehlo.sine %x : {MATRIX}
    return %0 : {MATRIX}
  }}
  func.func public @other(%x: {MATRIX}) -> {MATRIX} {{
    %0 = func.call @decomposition0(%x) : ({MATRIX}) -> {MATRIX}
    return %0 : {MATRIX}
  }}
  func.func private @nobody(%x: {MATRIX}) -> {MATRIX} {{
    return %x : {MATRIX}
  }}
}}
"""


def functions(text: str) -> dict[str, str]:
    parsed = ir.Module.parse(text, context=new_context())
    return {op.attributes["sym_name"].value: op.operation.get_asm(use_local_scope=True) for op in parsed.body.operations}


def test_other_functions_and_symbols_stay() -> None:
    before, after = functions(OTHERS), functions(print_stablehlo(import_stablehlo(OTHERS)))
    kept = {"counter", "train", "a function", "helper", "decomposition0", "other"}
    assert after.keys() == kept | {"main", "decomposition0_"}
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    assert "sine" in after["decomposition0_"]


RESOURCE = """
module attributes {a.b = dense_resource<"my blob"> : tensor<2xf32>} {
  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    return %x : tensor<2xf32>
  }
}
{-# dialect_resources: { builtin: { "my blob": "0x040000000000803F00000040" } } #-}
"""


def test_resources_of_attributes_stay() -> None:
    written = print_stablehlo(import_stablehlo(RESOURCE))
    assert '"my blob": "0x040000000000803F00000040"' in written
    assert "dialect_resources" in ir.Module.parse(written, context=new_context()).operation.get_asm()


def test_a_resource_without_data_is_refused() -> None:
    with pytest.raises(CosetError, match="has no data"):
        import_stablehlo(RESOURCE.partition("{-#")[0])


def test_an_attribute_of_an_operation_keeps_the_operation() -> None:
    line = f'%0 = stablehlo.negate %x {{mhlo.sharding = "s"}} : {MATRIX}'
    text = f"func.func @main(%x: {MATRIX}) -> {MATRIX} {{\n  {line}\n  return %0 : {MATRIX}\n}}\n"
    assert 'mhlo.sharding = "s"' in print_stablehlo(import_stablehlo(text))


# ---------------------------------------------------------------- what cannot be kept

SAID = f"""
module @m attributes {{mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32}} {{
  func.func public @main(%x: {MATRIX} {{tf.aliasing_output = 0 : i32, mhlo.layout_mode = "default"}})
      -> ({MATRIX} {{mhlo.sharding = "s"}}) {{
    %0 = func.call @f(%x) {{m.n}} : ({MATRIX}) -> {MATRIX}
    return %0 : {MATRIX}
  }}
  func.func private @f(%x: {MATRIX} {{p.q, jax.global_constant = ""}}) -> {MATRIX} {{
    %0 = stablehlo.tanh %x : {MATRIX}
    return %0 : {MATRIX}
  }}
  func.func public @train(%x: {MATRIX}) -> {MATRIX} {{
    return %x : {MATRIX}
  }}
}}
"""
LOST = ["`m.n` of a call of the function `f`", "`p.q` of values of the function `f`"]
ONLY_HERE = [
    "`mhlo.num_partitions` of the module", "`tf.aliasing_output` of the input `arg0`", "`mhlo.sharding` of the output `result0`",
    "the function or symbol `train` beside it",
]  # fmt: skip


@pytest.mark.parametrize(("target", "names"), [("stablehlo", LOST), ("cpu-onnxruntime", [*LOST, *ONLY_HERE])])
def test_what_is_left_out_is_named(target: str, names: list[str], tmp_path: Path) -> None:
    (tmp_path / "model.mlir").write_text(SAID)
    lines: list[str] = []
    result = coset.optimize(tmp_path / "model.mlir", target=target, progress=lines.append)
    said = f"the result does not say what the module says of it: {', '.join(names)}"
    assert result.report["warnings"] == [said] and f"warning: {said}" in lines


def test_many_inputs_are_counted(tmp_path: Path) -> None:
    values = [f'%x{place}: {MATRIX} {{mhlo.sharding = "s"}}' for place in range(5)]
    (tmp_path / "model.mlir").write_text(f"func.func @main({', '.join(values)}) -> {MATRIX} {{\n  return %x3 : {MATRIX}\n}}\n")
    result: Any = coset.optimize(tmp_path / "model.mlir", target="cpu-onnxruntime")
    assert result.report["warnings"] == ["the result does not say what the module says of it: `mhlo.sharding` of 5 inputs"]
