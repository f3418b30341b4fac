"""A Triton function as a whole: its names, its parameters, how wide its offsets are, its text."""

from __future__ import annotations

import keyword
from collections.abc import Sequence

from coset.ir.dims import Dim, Poly, symbol, symbols
from coset.lowering.kernels.identifier import identifier
from coset.lowering.kernels.kernel import Plan
from coset.lowering.triton.dims import factor_text
from coset.lowering.triton.helpers import HELPERS
from coset.lowering.triton.launch import INT32_LIMIT, Argument, CopyTiles, EmitOptions

_WORDS = "tl triton float int bool range len min max sum abs print mask BLOCK WIDE INDEX"
RESERVED = frozenset({*keyword.kwlist, *_WORDS.split(), *HELPERS})
"""What no name of ours in a Triton function is."""
_POINTERS = {"f64": "fp64", "f32": "fp32", "f16": "fp16", "bf16": "bf16", "f8e4m3fn": "u8", "f8e5m2": "u8", "bool": "i1",
             "i4": "i8", "i2": "i8", "u4": "u8", "u2": "u8", "f4e2m1fn": "fp32", "f8e8m0fnu": "u8"}  # fmt: skip


class FunctionBody:
    """What a Triton function has once: its names and its parameters."""

    def __init__(self, plan: Plan, options: EmitOptions, *, wide: bool | None) -> None:
        """`wide`: offsets need 64 bits, or do not, or (None) `WIDE` says so at launch."""
        self.plan, self.options, self.wide = plan, options, wide
        self.index_type = "INDEX" if wide is None else "tl.int64" if wide else "tl.int32"
        self._names: set[str] = set(RESERVED)
        self.pointers: dict[tuple[str, str], str] = {}  # by buffer and Triton's type of its elements
        self.copied: dict[tuple[str, int, CopyTiles, str], str] = {}
        self.begins = dict(options.begins)
        self.numbers: dict[str, str] = {}

    def name(self, hint: str) -> str:
        """A new name like `hint`."""
        found = identifier(hint.removeprefix("loop:"), self._names, fallback="value")
        self._names.add(found)
        return found

    def pointer(self, buffer: str, type: str = "") -> str:
        """The parameter that points to a buffer, to elements of another `type` than memory's own where that says one."""
        key = (buffer, type or self._element_type(buffer))
        if key not in self.pointers:
            self.pointers[key] = self.name(f"{buffer}_ptr")
        return self.pointers[key]

    def tiles(self, buffer: str, begin: int, tiles: CopyTiles, type: str = "") -> str:
        """The parameter that says where the tiles of a buffer are, from its element `begin` on."""
        key = (buffer, begin, tiles, type or self._element_type(buffer))
        if key not in self.copied:
            self.copied[key] = self.name(f"{buffer}_tiles")
        return self.copied[key]

    def symbol(self, name: str) -> str:
        """The parameter that holds a symbol of the program."""
        if name not in self.numbers:
            self.numbers[name] = self.name(name)
        return self.numbers[name]

    def text(self, dim: Dim) -> str:
        """A dim over the program's symbols as text."""
        return factor_text(dim, {name: self.symbol(name) for name in symbols(dim)})

    def places(self, block: str) -> str:
        """0 to `block` - 1, as wide as offsets: what is multiplied by a stride may need it."""
        return f"tl.arange(0, {block})" + ("" if self.wide is False else f".to({self.index_type})")

    def arguments(self) -> tuple[Argument, ...]:
        """The run-time arguments in the order of the parameters."""
        copied = [
            Argument(name, f"*{type}", buffer, begin=begin, tiles=tiles) for (buffer, begin, tiles, type), name in self.copied.items()
        ]
        pointers = [Argument(name, f"*{type}", buffer, begin=self.begins.get(buffer, 0)) for (buffer, type), name in self.pointers.items()]
        kind = "i32" if self.wide is False else "i64"
        return (*copied, *pointers, *(Argument(name, kind, dim=symbol(source)) for source, name in self.numbers.items()))

    def _element_type(self, buffer: str) -> str:
        name = self.plan.buffers[buffer].held.name
        return _POINTERS.get(name, name)

    def prologue(self) -> list[str]:
        """The first lines: how wide offsets are, and the numbers of the host in that width."""
        lines = ["INDEX: tl.constexpr = tl.int64 if WIDE else tl.int32"] if self.wide is None else []
        return lines + [f"{name} = tl.cast({name}, {self.index_type})" for name in self.numbers.values()]


def wideness(extents: Sequence[Dim]) -> tuple[bool | None, tuple[Dim, ...]]:
    """Whether offsets up to these dims need 64 bits (None: the sizes say), and the dims that are no numbers."""
    if any(isinstance(dim, int) and dim >= INT32_LIMIT for dim in extents):
        return True, ()
    left = tuple(dict.fromkeys(dim for dim in extents if isinstance(dim, Poly)))
    return (None, left) if left else (False, ())


def function_text(body: FunctionBody, name: str, comment: Sequence[str], constexprs: Sequence[str], lines: Sequence[str]) -> str:
    """A Triton function: signature, what it does, statements."""
    compile_time = [*constexprs, *(["WIDE"] if body.wide is None else [])]
    parameters = [
        *body.copied.values(),
        *body.pointers.values(),
        *body.numbers.values(),
        *(f"{each}: tl.constexpr" for each in compile_time),
    ]
    head = f"@triton.jit\ndef {name}({', '.join(parameters)}):\n"
    if len(head.split("\n")[1]) > 140:
        head = f"@triton.jit\ndef {name}(\n" + "".join(f"    {each},\n" for each in parameters) + "):\n"
    text = [f"# {each}" for each in comment]
    return head + "".join(f"    {line}\n" for line in (*text, *body.prologue(), *lines))
