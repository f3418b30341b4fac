"""Entries that torch exports: `python tests/corpus/make/torch_export.py [PART ..]` writes those whose names hold a PART (all without)."""

# ruff: noqa: E501
from __future__ import annotations

import io
import logging
import sys
import warnings
from typing import Any

import onnx
import torch
import torch_attention
import torch_conv
import torch_norm
import torch_pointwise
from cases import Case, Formula, Plain
from common import save_onnx
from header import save_mlir

SEED = 7
GROUPS = {**torch_norm.CASES, **torch_pointwise.CASES, **torch_attention.CASES, **torch_conv.CASES}


def script(case: Case, opset: int, *, raw: bool = False) -> onnx.ModelProto:
    """By the exporter that traces (dynamo=False). `raw`: without its constant folding, and batch normalizations stay."""
    file = io.BytesIO()
    inputs = case.inputs()
    names = [f"x{i}" for i in range(len(inputs))]
    axes = {names[i]: dims for i, dims in case.dynamic.items()}
    module = case.module().eval()
    options: dict[str, Any] = {"do_constant_folding": False, "training": torch.onnx.TrainingMode.PRESERVE} if raw else {}
    torch.onnx.export(module, inputs, file, dynamo=False, opset_version=opset, input_names=names, dynamic_axes=axes or None, **options)
    return onnx.load_model_from_string(file.getvalue())


def shapes(case: Case, module: torch.nn.Module, inputs: tuple[Any, ...]) -> Any:
    """The dynamic dims as torch.export wants them."""
    if not case.dynamic:
        return None
    every = {name for axes in case.dynamic.values() for name in axes.values()}
    dims = {name: torch.export.Dim(name, min=2, max=64) for name in sorted(every)}
    found = tuple({axis: dims[name] for axis, name in case.dynamic.get(i, {}).items()} for i in range(len(inputs)))
    return (found,) if isinstance(module, Formula | Plain) else found  # its inputs are one starred parameter


def dynamo(case: Case, opset: int) -> onnx.ModelProto:
    """By the exporter over torch.export (dynamo=True), optimized as it does by itself."""
    inputs, module = case.inputs(), case.module().eval()
    program = torch.onnx.export(
        module, inputs, dynamo=True, opset_version=opset, dynamic_shapes=shapes(case, module, inputs), verbose=False
    )
    assert program is not None
    return program.model_proto


def hlo(case: Case) -> str:
    """StableHLO by torch.export and torch-mlir."""
    from torch_mlir import fx

    inputs, module = case.inputs(), case.module().eval()
    return str(fx.export_and_import(module, *inputs, output_type="stablehlo", dynamic_shapes=shapes(case, module, inputs)))


def compiled(case: Case) -> str:
    """StableHLO of the graph that torch.compile gives to a backend, as coset imports it."""
    from coset.frontends.torch.capture import capture
    from coset.frontends.torch.kept import Keeping
    from coset.ir.errors import CosetError
    from coset.lowering.stablehlo.module import print_stablehlo

    programs: list[Any] = []

    def part(imported: Any, _: Any) -> Any:
        programs.append(imported.program)
        raise CosetError("only looked at")

    def backend(graph: Any, inputs: Any) -> Any:
        return capture(graph, inputs, part, lambda *_: None, keeping=Keeping(lambda *_: 0.0))

    module = case.module().eval()
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    torch._dynamo.reset()
    torch.compile(module, backend=backend, dynamic=False)(*case.inputs())
    (program,) = programs
    return print_stablehlo(program)


def make(folder: str, name: str, case: Case, way: str) -> None:
    """Write one entry."""
    torch.manual_seed(SEED)
    version = f"torch {torch.__version__.split('+')[0]}"
    if way == "hlo":
        import importlib.metadata

        source = f"{version}, torch_mlir {importlib.metadata.version('torch-mlir')} fx.export_and_import(.., output_type='stablehlo') of {case.how}"
        save_mlir(hlo(case), f"{folder}/torch-hlo-{name}", source, case.wanted, case.beside)
        return
    if way == "compile":
        save_mlir(
            compiled(case), f"{folder}/torch-compile-{name}", f"{version}, torch.compile's graph of {case.how}", case.wanted, case.beside
        )
        return
    kind, opset = way.rstrip("0123456789"), int(way.lstrip("abcdefghijklmnopqrstuvwxyz"))
    model = dynamo(case, opset) if kind == "dynamo" else script(case, opset, raw=kind == "raw")
    options = ", do_constant_folding=False, training=PRESERVE" if kind == "raw" else ""
    source = f"{version}, torch.onnx.export(.., dynamo={kind == 'dynamo'}, opset_version={opset}{options}) of {case.how}"
    save_onnx(model, f"{folder}/torch-{kind}{opset}-{name}", source, case.wanted, case.beside)


def main() -> None:
    """Write what is asked for and say what could not be."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    for folder, cases in GROUPS.items():
        for name, case in cases.items():
            for way in case.ways:
                label = f"{folder}/{way}-{name}"
                if sys.argv[1:] and not any(part in label for part in sys.argv[1:]):
                    continue
                try:
                    make(folder, name, case, way)
                except Exception as error:
                    print(f"{label}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:300])


if __name__ == "__main__":
    main()
