"""The child process that runs Triton kernels on this machine's GPU, each buffer between guard zones: a kernel that breaks the GPU's
context ends this process and no other.

Started as `python -m coset.backends.torch_device cuda`; with `cpu` (and TRITON_INTERPRET=1) the interpreter runs on torch's memory.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from coset.backends.triton_child import GUARD, POISON, TORCH_NAMES, Answer, described_type, imported, serve

_ALIGNED = 64  # bytes: wider than any access of a kernel


def prepare(device: str) -> Callable[[dict[str, Any], list[bytes], Path], Answer]:
    """The function that answers a request to run launches on `device`."""
    import torch

    if device == "cpu":
        from coset.backends.triton_corrections import correct_interpreter

        correct_interpreter()
    from coset.lowering.package.tiles import described  # as packages make them; it imports Triton

    def answer(request: dict[str, Any], arrays: list[bytes], folder: Path) -> Answer:
        memory, starts = _guarded(arrays, device)
        module = imported(request["source"], folder)

        def tensor(number: int, type: str) -> Any:
            inside = memory[number][starts[number] : starts[number] + len(arrays[number])]
            return inside.view(getattr(torch, TORCH_NAMES[type]))

        def given(type: str, value: Any) -> Any:
            if type.startswith("tensordesc"):
                number, begin, *where = value
                memory_ = tensor(number, described_type(type))
                return described(memory_, begin, *map(tuple, where), floats=memory_.dtype.is_floating_point)
            return tensor(value, type.removeprefix("*")) if type.startswith("*") else value

        try:
            for launch in request["launches"]:
                if all(launch["grid"]):
                    values = [given(type, value) for type, value in launch["arguments"]]
                    numbers = {**launch["constexprs"], "num_warps": launch["num_warps"], "num_stages": launch["num_stages"]}
                    kernel = getattr(module, launch["function"])[tuple(launch["grid"])]
                    kernel(*values, **numbers, enable_fp_fusion=launch["contracts"])
            if device != "cpu":
                torch.cuda.synchronize()
            whole = [block.cpu().numpy() for block in memory]
        except RuntimeError as error:  # after a bad access the context is lost: the next request needs another process
            return {"error": f"{type(error).__name__}: {error}", "last": device != "cpu"}, []
        return _unspoiled(whole, starts, arrays)

    return answer


def _guarded(arrays: list[bytes], device: str) -> tuple[list[Any], list[int]]:
    """The arrays in blocks of memory that are poisoned around them, and where each begins."""
    import torch

    memory = [torch.full((len(array) + 2 * GUARD + _ALIGNED,), POISON, dtype=torch.uint8, device=device) for array in arrays]
    starts = [GUARD + -(block.data_ptr() + GUARD) % _ALIGNED for block in memory]
    for block, start, array in zip(memory, starts, arrays, strict=True):
        if array:
            block[start : start + len(array)] = torch.frombuffer(bytearray(array), dtype=torch.uint8).to(device)
    return memory, starts


def _unspoiled(whole: list[Any], starts: list[int], arrays: list[bytes]) -> Answer:
    """What the arrays are now; an error where something was stored beside one."""
    found = []
    for place, (block, start, array) in enumerate(zip(whole, starts, arrays, strict=True)):
        end = start + len(array)
        if (block[:start] != POISON).any() or (block[end:] != POISON).any():
            return {"error": f"buffer {place} of {len(array)} bytes: a store went outside"}, []
        found.append(block[start:end].tobytes())
    return {}, found


if __name__ == "__main__":
    serve(lambda: prepare(sys.argv[1]))
