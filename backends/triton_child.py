"""The child process of `triton_runtime`: it imports a module of Triton text and runs it in the interpreter, or compiles it ahead of time.

Started as `python -m coset.backends.triton_child interpret` (with TRITON_INTERPRET=1) or `... compile`. Requests and answers are one
line of JSON followed by raw bytes.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import IO, Any

import numpy as np

GUARD = 4096  # bytes before and after each buffer
_COLUMNS = 512  # of tensor memory a processor has (PTX ISA, 9.7.16.1)
POISON = 0xA7  # what guards and unwritten outputs hold: a large negative float in every width
TORCH_NAMES = {
    "fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "i1": "bool", "i8": "int8", "i16": "int16",
    "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "fp8e4nv": "float8_e4m3fn", "fp8e5": "float8_e5m2",
}  # a pointer's type in Triton -> as the launcher asks an array for it  # fmt: skip


class ElementType:
    """An element type by name, printed as torch prints it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.itemsize = 1 if name == "bool" else int(re.findall(r"\d+", name)[0]) // 8

    def __str__(self) -> str:
        return f"torch.{self.name}"

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ElementType) and other.name == self.name


class InterpreterMemory:
    """Memory of this process as Triton's interpreter wants a tensor: an address and an element type. Nothing is copied."""

    def __init__(self, address: int, type: str) -> None:
        self.address, self.dtype = address, ElementType(TORCH_NAMES[type.removeprefix("*")])

    def data_ptr(self) -> int:
        return self.address

    def untyped_storage(self) -> InterpreterMemory:
        return self

    cpu = untyped_storage

    def new_empty(self, *_: object, **__: object) -> InterpreterMemory:
        return self

    def copy_(self, _: object) -> None:
        """It is the same memory."""

    def set_(self, *_: object) -> InterpreterMemory:
        return self

    def storage_offset(self) -> int:
        return 0

    def size(self) -> tuple[int, ...]:
        return ()

    stride = size


def imported(source: str, folder: Path) -> ModuleType:
    """The module that is `source`; Triton reads functions from files, so it is written to one in `folder`."""
    name = f"kernels_{hashlib.sha256(source.encode()).hexdigest()[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    path = folder / f"{name}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


# ---------------------------------------------------------------- the interpreter


def interpret(module: ModuleType, launches: Sequence[dict[str, Any]], addresses: Sequence[int]) -> None:
    """Run launches in order; an argument is ["*type", number of the buffer], ["i32", value], or ["tensordesc<type[block]>", [number of the
    buffer, the element where it begins, shape, strides, block]]."""

    def given(type: str, value: Any) -> Any:
        if type.startswith("*"):
            return InterpreterMemory(addresses[value], type)
        if not type.startswith("tensordesc"):
            return value
        number, begin, *where = value
        element = described_type(type)
        return descriptor(InterpreterMemory(addresses[number] + begin * ElementType(TORCH_NAMES[element]).itemsize, element), *where)

    for launch in launches:
        if all(launch["grid"]):
            arguments = [given(type, value) for type, value in launch["arguments"]]
            with np.errstate(all="ignore"):
                getattr(module, launch["function"])[tuple(launch["grid"])](*arguments, **launch["constexprs"])


def described_type(type: str) -> str:
    """The element type in the type of a descriptor."""
    return type.removeprefix("tensordesc<").partition("[")[0]


def descriptor(base: Any, shape: list[int], strides: list[int], block: list[int]) -> Any:
    """Triton's descriptor of the memory `base`; of none, where a size is 0: nothing is read through it."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    if 0 in shape:
        shape, strides = [1] * len(shape), [*[16] * (len(shape) - 1), 1]
    return TensorDescriptor(base, shape, strides, block)


def _run(request: dict[str, Any], arrays: list[bytes], folder: Path) -> tuple[dict[str, Any], list[bytes]]:
    memory = [np.full(len(array) + 2 * GUARD + 64, POISON, np.uint8) for array in arrays]
    starts = [GUARD + (-(block.ctypes.data + GUARD)) % 64 for block in memory]
    for block, start, array in zip(memory, starts, arrays, strict=True):
        block[start : start + len(array)] = np.frombuffer(array, np.uint8)
    addresses = [block.ctypes.data + start for block, start in zip(memory, starts, strict=True)]
    interpret(imported(request["source"], folder), request["launches"], addresses)
    found = []
    for place, (block, start, array) in enumerate(zip(memory, starts, arrays, strict=True)):
        end = start + len(array)
        if (block[:start] != POISON).any() or (block[end:] != POISON).any():
            return {"error": f"buffer {place} of {len(array)} bytes: a store went outside"}, []
        found.append(block[start:end].tobytes())
    return {}, found


# ---------------------------------------------------------------- the compiler


def compile_one(module: ModuleType, launch: dict[str, Any], target: Sequence[Any]) -> dict[str, Any]:
    """What the compiler says of one function for `target` (backend, architecture, threads of a warp)."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, compile

    function = getattr(module, launch["function"])
    names = list(function.arg_names)
    types = [type for type, _ in launch["arguments"]]
    signature = {**dict(zip(names, types, strict=False)), **dict.fromkeys(launch["constexprs"], "constexpr")}
    attributes = {(place,): [["tt.divisibility", 16]] for place, type in enumerate(types) if type.startswith("*")}
    source = ASTSource(fn=function, signature=signature, constexprs=launch["constexprs"], attrs=attributes)
    options = {"num_warps": launch["num_warps"], "num_stages": launch["num_stages"], "enable_fp_fusion": launch["contracts"]}
    compiled = compile(source, target=GPUTarget(*target), options=options)
    columns = getattr(compiled.metadata, "tmem_size", None) or 0
    if columns > _COLUMNS:  # the text is a trap then, and Triton refuses to load it
        raise ValueError(f"{launch['function']} needs {columns} columns of tensor memory, and there are {_COLUMNS}")
    facts = _nvidia_facts(compiled.asm["cubin"]) if target[0] == "cuda" else _amd_facts(compiled.asm["amdgcn"])
    return {"function": launch["function"], "shared": compiled.metadata.shared, **facts, "text": compiled.asm.get("ptx", "")}


def _nvidia_facts(binary: bytes) -> dict[str, int]:
    import triton

    tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(binary)
        file.flush()
        text = subprocess.run([tool, "--dump-resource-usage", file.name], capture_output=True, text=True, check=True).stdout
    facts = {key: int(value) for key, value in re.findall(r"(REG|STACK|LOCAL):(\d+)", text)}
    return {"registers": facts["REG"], "spilled": facts.get("STACK", 0) + facts.get("LOCAL", 0)}


def _amd_facts(text: str) -> dict[str, int]:
    facts = {key: int(value) for key, value in re.findall(r"\.(vgpr_count|vgpr_spill_count|sgpr_spill_count): +(\d+)", text)}
    return {"registers": facts["vgpr_count"], "spilled": 4 * (facts["vgpr_spill_count"] + facts["sgpr_spill_count"])}


def _compile(request: dict[str, Any], _: list[bytes], folder: Path) -> tuple[dict[str, Any], list[bytes]]:
    module = imported(request["source"], folder)
    return {"kernels": [compile_one(module, launch, request["target"]) for launch in request["launches"]]}, []


# ---------------------------------------------------------------- the wire


def send(stream: IO[bytes], head: dict[str, Any], arrays: Sequence[bytes]) -> None:
    """One message: a line of JSON, then the arrays."""
    stream.write(json.dumps({**head, "sizes": [len(array) for array in arrays]}).encode() + b"\n")
    for array in arrays:
        stream.write(array)
    stream.flush()


def receive(stream: IO[bytes]) -> tuple[dict[str, Any], list[bytes]]:
    """One message of the other side.

    Raises:
        EOFError: the other side is gone.
    """
    line = stream.readline()
    if not line.endswith(b"\n"):
        raise EOFError
    head = json.loads(line)
    arrays = [stream.read(size) for size in head["sizes"]]
    if [len(array) for array in arrays] != head["sizes"]:
        raise EOFError
    return head, arrays


Answer = tuple[dict[str, Any], list[bytes]]


def main(mode: str) -> None:
    """Answer requests until standard input ends."""

    def prepared() -> Callable[[dict[str, Any], list[bytes], Path], Answer]:
        import triton  # noqa: F401

        if mode != "interpret":
            return _compile
        from coset.backends.triton_corrections import correct_interpreter

        correct_interpreter()
        return _run

    serve(prepared)


def serve(prepare: Callable[[], Callable[[dict[str, Any], list[bytes], Path], Answer]]) -> None:
    """Answer requests with the function that `prepare` gives, until standard input ends or an answer says that it is the `last`."""
    output = sys.stdout.buffer
    sys.stdout = sys.stderr  # what kernels print is no answer
    try:
        answer = prepare()
    except ImportError as error:
        receive(sys.stdin.buffer)
        send(output, {"missing": str(error)}, [])
        return
    with tempfile.TemporaryDirectory() as folder:
        while True:
            try:
                request, arrays = receive(sys.stdin.buffer)
            except EOFError:
                return
            try:
                head, results = answer(request, arrays, Path(folder))
            except Exception as error:  # the text is the user's: what is wrong with it is the answer
                head, results = {"error": f"{type(error).__name__}: {error}"}, []
            send(output, head, results)
            if head.get("last"):
                return


if __name__ == "__main__":
    main(sys.argv[1])
