"""Deep programs proved equal: a Llama of 32 layers against what coset makes of it, and as two exporters of PyTorch write it.

    python -m benchmarks.prove_deep [--layers 32] [--json]

`heads`: a graph of over 10,000 nodes with every head written out, against its optimized form. `torch.export` with and without the
exporter's own optimizer, and `TorchScript`: one model of make_models.py, with its mask in f32 (a Python number in `torch.where` makes
TorchScript compute the softmax in f64, which is another program). Needs torch; each proof is a `coset prove` in a process of its own.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import onnx

from benchmarks import headroom, models
from benchmarks.stacks import STACKS

SIZES = {"d": 64, "h": 4, "kv": 2, "f": 172, "vocab": 256}
TOKENS = 32


def exported(layers: int, folder: Path) -> dict[str, Path]:
    """The files of one model by exporter."""
    import torch

    spec = importlib.util.spec_from_file_location("make_models", models.script())
    assert spec is not None and spec.loader is not None
    made: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)

    class Typed(made.Llama):  # type: ignore[misc]
        """The model with a mask of f32 numbers."""

        def forward(self, input_ids: Any) -> Any:
            count = torch.arange(input_ids.shape[1])
            angles = torch.cat([count[:, None].float() * self.inv] * 2, -1)
            mask = torch.where(count[None] > count[:, None], torch.tensor(float("-inf")), torch.tensor(0.0))
            x = self.e(input_ids)
            for block in self.b:
                x = block(x, angles.cos(), angles.sin(), mask)
            return self.l(self.n(x))

    torch.manual_seed(0)
    model = Typed(layers=layers, **SIZES).eval()
    tokens = (torch.randint(0, SIZES["vocab"], (1, TOKENS)),)
    ways: dict[str, dict[str, Any]] = {
        "torch.export": {"dynamo": True, "optimize": True, "verbose": False},
        "torch.export, raw": {"dynamo": True, "optimize": False, "verbose": False},
        "TorchScript": {"dynamo": False, "opset_version": 17},
    }
    paths = {}
    for place, (name, options) in enumerate(ways.items()):
        paths[name] = folder / f"exported{place}.onnx"
        with torch.no_grad():
            torch.onnx.export(model, tokens, str(paths[name]), input_names=["input_ids"], output_names=["logits"], **options)
    return paths


def proved(before: Path, after: Path) -> dict[str, Any]:
    """What `coset prove` says, with its seconds and the most memory that a child of this process has taken so far."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "coset.cli", "prove", str(before), str(after), "--json", "--certificate", str(before) + ".proof"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    row = json.loads(done.stdout) if done.stdout.strip() else {"answer": "error", "reason": done.stderr.strip()[-300:]}
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
    return {**row, "total": time.perf_counter() - started, "peak_mib": peak}


def main() -> None:
    """Prove the pairs and print a line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    out = sys.stderr if given.json else sys.stdout
    machine = headroom.machine()
    print(f"{machine['cpu']}, {machine['cores']} cores, load {machine['load']:.2f}; {given.layers} layers", file=out, flush=True)
    rows: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="coset-") as name:
        folder = Path(name)
        heads, best = folder / "heads.onnx", folder / "best.onnx"
        onnx.save(STACKS["llama_by_heads"](given.layers), heads)
        subprocess.run([sys.executable, "-m", "coset.cli", "optimize", str(heads), "-o", str(best)], capture_output=True, check=True)
        pairs = {"heads, as coset optimizes it": (heads, best)}
        if importlib.util.find_spec("torch") is not None:
            forms = exported(given.layers, folder)
            first = forms.pop("torch.export")
            pairs |= {f"torch.export and {name}": (first, path) for name, path in forms.items()}
        for name, (before, after) in pairs.items():
            counts = [len(onnx.load(path, load_external_data=False).graph.node) for path in (before, after)]
            row = rows[name] = {"nodes": counts, **proved(before, after)}
            found = f"{row['steps']} steps, {row['assurance']}, {row['numerics']}" if row["answer"] == "proved" else row.get("reason", "")
            text = f"{name:34s} {counts[0]:6d} {counts[1]:6d} nodes  {row['answer']:8s} {row['total']:6.1f} s  {row['peak_mib']:5d} MiB"
            print(f"{text}  {found}", file=out, flush=True)
    if given.json:
        print(json.dumps({"machine": machine, "command": " ".join(sys.argv), "rows": rows}))


if __name__ == "__main__":
    main()
