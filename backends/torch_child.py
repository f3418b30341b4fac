"""Runs a package that coset wrote: a script that needs torch and the package, not coset (with TRITON_INTERPRET=1 the corrections of
the interpreter beside it).

`python torch_child.py FOLDER [DEVICE]` reads requests from standard input and answers on standard output, both as one line of JSON
followed by raw arrays. A request has the arrays of the inputs in the model's order, as (torch dtype, shape) and bytes.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
from pathlib import Path
from typing import Any


def main(folder: str, device: str = "cpu") -> None:
    """Answer requests until the input ends."""
    out, sys.stdout = sys.stdout.buffer, sys.stderr  # what libraries print does not mix with the answers
    try:
        model, torch = _load(Path(folder), device)
    except ImportError as error:
        out.write((json.dumps({"missing": str(error)}) + "\n").encode())
        out.flush()
        return
    while line := sys.stdin.buffer.readline():
        head = json.loads(line)
        given = []
        for dtype, shape in head["arrays"]:
            kind = getattr(torch, dtype)
            count = kind.itemsize
            for size in shape:
                count *= size
            data = bytearray(sys.stdin.buffer.read(count))
            tensor = torch.frombuffer(data, dtype=torch.uint8).view(kind) if count else torch.empty(0, dtype=kind)
            given.append(tensor.reshape(shape).to(device))
        try:
            started = time.perf_counter()
            results = model(*given)
            seconds = time.perf_counter() - started
        except Exception as error:
            _answer(out, {"error": f"{type(error).__name__}: {error}"}, [])
            continue
        results = results if isinstance(results, tuple) else (results,)
        results = [result.cpu().clone(memory_format=torch.contiguous_format) for result in results]
        described = [[str(result.dtype).removeprefix("torch."), list(result.shape)] for result in results]
        raw = [bytes(result.reshape(-1).view(torch.uint8).numpy()) if result.numel() else b"" for result in results]
        _answer(out, {"arrays": described, "seconds": seconds}, raw)


def _load(folder: Path, device: str) -> tuple[Any, Any]:
    """The package's model, imported from where it lies under a name of its own."""
    import torch

    if os.environ.get("TRITON_INTERPRET") == "1":
        _imported("triton_corrections", Path(__file__).with_name("triton_corrections.py")).correct_interpreter()
    return _imported("lowered", folder / "__init__.py", [str(folder)]).model.to(device), torch


def _imported(name: str, path: Path, inside: list[str] | None = None) -> Any:
    """The module in a file; `inside` is where the modules of a package lie."""
    specification = importlib.util.spec_from_file_location(name, path, submodule_search_locations=inside)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    specification.loader.exec_module(module)
    return module


def _answer(out: Any, head: dict[str, Any], arrays: list[bytes]) -> None:
    out.write((json.dumps(head) + "\n").encode())
    for array in arrays:
        out.write(array)
    out.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
