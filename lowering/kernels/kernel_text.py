"""A kernel's scalars, loops and stores as text."""

from __future__ import annotations

from collections import Counter

from coset.ir.dims import Dim
from coset.lowering.kernels.scalar import (
    Choose,
    IndexValue,
    Load,
    Loop,
    Scalar,
    ScalarConstant,
    ScalarOp,
    Store,
    operands_of,
    scalars,
)

INFIX = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "and": "&", "or": "|", "xor": "^"}
COMPARED = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}


def dim_words(dim: Dim) -> str:
    """A dim, with the names of loops alone."""
    return str(dim).replace("loop:", "")


def dims_words(dims: tuple[Dim, ...]) -> str:
    """Dims with commas between them."""
    return ", ".join(map(dim_words, dims))


def loops_words(loops: tuple[Loop, ...]) -> str:
    """Loops with their extents."""
    return ", ".join(f"{dim_words(loop.index)} < {dim_words(loop.extent)}" for loop in loops) or "once"


def bracketed(text: str) -> str:
    """The text of a value as an operand."""
    return f"({text})" if " " in text.split("[", 1)[0] or " * " in text else text


class KernelText:
    """Names for values of one kernel, and the lines that define them."""

    def __init__(self, values: tuple[Scalar, ...]) -> None:
        """`values`: all that the kernel computes at its top level."""
        self.names: dict[int, str] = {}
        self.uses = Counter(map(id, values))
        for item in scalars(*values):
            self.uses.update(map(id, operands_of(item)))
        self.pending: list[str] = []
        self.count = 0

    def flush(self) -> list[str]:
        """The lines of values that were named since the last time."""
        lines, self.pending = self.pending, []
        return lines

    def stores(self, stores: tuple[Store, ...]) -> list[str]:
        """The lines of stores."""
        lines: list[str] = []
        for store in stores:
            value = self.named(store.value)
            lines += [*self.flush(), f"  {store.buffer}[{dims_words(store.index)}] = {value}"]
        return lines

    def named(self, value: Scalar) -> str:
        """The text of `value`: its last step, whose operands have lines of their own where they are computed or loaded for several."""
        for item in scalars(value):
            if id(item) in self.names:
                continue
            text = self._text(item)
            computed, again = isinstance(item, (ScalarOp, Choose)), self.uses[id(item)] > 1
            if (computed and (again or item is not value)) or (again and isinstance(item, Load)):
                name = f"v{self.count}"
                self.count += 1
                self.pending.append(f"  {name}: {item.dtype} = {text}")
                text = name
            self.names[id(item)] = text
        return self.names[id(value)]

    def _text(self, item: Scalar) -> str:
        if isinstance(item, Load):
            return f"{item.buffer}[{dims_words(item.index)}]"
        if isinstance(item, ScalarConstant):
            return repr(item.value)
        if isinstance(item, IndexValue):
            return f"{item.dtype}({dim_words(item.index)})"
        if isinstance(item, Choose):
            bounds = " and ".join(f"{dim_words(b.low)} <= {dim_words(b.index)} < {dim_words(b.high)}" for b in item.bounds)
            return f"{self.names[id(item.inside)]} if {bounds} else {self.names[id(item.outside)]}"
        if not isinstance(item, ScalarOp):
            return item.name
        operands = [self.names[id(operand)] for operand in item.operands]
        name = item.op.name.split(".", 1)[1]
        attributes = dict(item.attributes)
        if name == "compare":
            return f"{operands[0]} {COMPARED[attributes['direction']]} {operands[1]}"
        if name == "convert":
            return f"{item.dtype}({operands[0]})"
        if name in INFIX:
            return f"{operands[0]} {INFIX[name]} {operands[1]}"
        more = [f"{key}={given}" for key, given in attributes.items()]
        return f"{name}({', '.join([*operands, *more])})"
