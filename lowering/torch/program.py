"""A program as plain torch code: one line for each hub term, readable, and the fallback that always works.

`aten_source(program)` is the text of a Python module that needs torch only. The ops keep the hub's exact meaning (integers wrap and
truncate, NaN wins, shifts past the width are 0); where one torch expression does not say it, a function of `functions.py` is
copied into the text and called. Rounding is torch's. The sign of a zero that a maximum over several elements gives is left open.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from coset.ir.builtin import ABSENT, DIMS, TOKEN
from coset.ir.dims import Dim, alone
from coset.ir.errors import CosetError
from coset.ir.evaluate import describe
from coset.ir.program import Program, symbols_of
from coset.ir.term import CONSTANT, GET, INPUT, TUPLE, Region, Term, topological
from coset.ir.types import TensorType, TupleType, Type
from coset.lowering.kernels.identifier import identifier
from coset.lowering.planning.kinds import is_convolution_gradient
from coset.lowering.planning.primitive import primitive
from coset.lowering.torch.contractions import CONTRACTIONS
from coset.lowering.torch.convolutions import CONVOLUTIONS
from coset.lowering.torch.copied import copied_functions, known_functions
from coset.lowering.torch.dims import dim_text, tuple_text
from coset.lowering.torch.dtypes import held, plain, to_held, to_stored
from coset.lowering.torch.elementwise import ELEMENTWISE, elementwise
from coset.lowering.torch.library import LIBRARY
from coset.lowering.torch.movement import MOVEMENT
from coset.lowering.torch.regions import REGIONS, WITH_FUNCTIONS

IMPORTS = """from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import torch
from torch import Tensor
"""
RESERVED = (
    "device",
    "math",
    "product",
    "Callable",
    "Tensor",
    "Any",
    "bool",
    "int",
    "torch",
    "weights",
    "max",
    "min",
    "slice",
    "map",
    "tuple",
    "range",
    "zip",
    "sum",
    "list",
    "model",
)
_TABLES: Mapping[str, Callable[..., str]] = {**MOVEMENT, **CONTRACTIONS, **CONVOLUTIONS, **LIBRARY, **REGIONS}
_LITERAL = {  # ops that take a Python number for an operand as they take a tensor full of it
    f"stablehlo.{name}" for name in ("add", "subtract", "multiply", "divide", "compare", "power")
}


@dataclass(frozen=True)
class Lowered:
    """A program as text: `body` is the function `name`, which calls `functions`; `weights` are its constants by name."""

    name: str
    body: str
    functions: tuple[str, ...]
    weights: Mapping[str, Term]
    inputs: tuple[str, ...]  # the parameters after `weights`, in the program's order


def aten_source(program: Program) -> str:
    """A torch module: the functions that the program needs, then `program(weights, *inputs)`, which returns the outputs in order.

    Raises:
        CosetError: an op has no torch expression, which the message names.
    """
    lowered = lower_to_aten(program)
    return module_text(f"A program written by coset: {len(lowered.body.splitlines())} lines of torch.", lowered)


def module_text(title: str, lowered: Lowered) -> str:
    """The text of a module with the function and all that it calls."""
    functions = copied_functions(lowered.functions)
    return f'"""{title}"""\n\n{IMPORTS}{functions}\n\n{lowered.body}'


def lower_to_aten(program: Program, *, name: str = "program") -> Lowered:
    """The program as one torch function.

    Raises:
        CosetError: an op has no torch expression, which the message names.
    """
    return _Program(program, name).lower()


def can_say(name: str) -> bool:
    """True when the op `name` has a torch expression, at least for some operands."""
    return name in ELEMENTWISE or name in _TABLES


# ---------------------------------------------------------------- one block: terms in order, each with a name


@dataclass
class Writer:
    """Writes terms as lines. `names` are the variables of terms, `symbols` those of dim symbols."""

    taken: set[str]
    names: dict[Term, str] = field(default_factory=dict)
    symbols: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    depth: int = 1
    weights: dict[str, Term] = field(default_factory=dict)
    scalars: bool = False  # tensors of rank 0 stand for whole ones: movement between them is nothing

    def dim(self, dim: Dim) -> str:
        """A dim as an expression."""
        return dim_text(dim, self.symbols)

    def shape(self, dims: Sequence[Dim]) -> str:
        """A shape as a tuple."""
        return tuple_text(map(self.dim, dims))

    def fresh(self, name: str) -> str:
        """A variable that is not taken yet."""
        found = identifier(name, self.taken, fallback="v")
        self.taken.add(found)
        return found

    def line(self, text: str) -> None:
        """One line at the block's depth."""
        self.lines.append("    " * self.depth + text)

    def number(self, term: Term) -> str | None:
        """The Python number that all elements of a constant are, or None."""
        if term.op.name == "stablehlo.broadcast_in_dim":
            return self.number(term.operands[0]) if term.operands[0].tensor.static is not None else None
        if term.op is not CONSTANT or term.tensor.elements == 0:
            return None
        dtype, array = plain(term.tensor.dtype), term.attribute("value").array()
        if dtype.kind not in ("float", "int", "uint") or dtype.name == "u64" or array.size > 16:
            return None
        values = array.astype(np.float64 if dtype.kind == "float" else object).reshape(-1)
        first = values[0]
        same = all(value == first or (value != value and first != first) for value in values)
        if not same or (dtype.kind == "float" and any(np.signbit(values) != np.signbit(first))):
            return None
        return _number_text(float(first) if dtype.kind == "float" else int(first))

    def literal(self, term: Term, index: int) -> str | None:
        """The number that stands for operand `index`, where the op takes one instead of a tensor."""
        if term.op.name not in _LITERAL or term.operands[1 - index].tensor.dtype.kind in ("bool", "complex"):
            return None
        if term.op.name in ("stablehlo.divide", "stablehlo.power") and term.tensor.dtype.kind != "float":
            return None
        if index == 1 and self.literal(term, 0) is not None:
            return None
        return self.number(term.operands[index])

    # ------------------------------------------------------------ terms

    def write(self, roots: Sequence[Term]) -> None:
        """Lines for all terms under `roots` that have no name yet; a term whose dims have no numbers yet waits for the others.

        Raises:
            CosetError: an op has no torch expression, or a dim symbol can be read from no value.
        """
        waiting = self._needed(roots)
        while waiting:
            held_back: list[Term] = []
            stuck: set[Term] = set()
            for term in waiting:
                if any(operand in stuck for operand in term.operands) or not self._known(term):
                    stuck.add(term)
                    held_back.append(term)
                    continue
                self._term(term)
            if len(held_back) == len(waiting):
                missing = sorted(set().union(*(self._symbols_of(term) for term in waiting)) - set(self.symbols))
                raise CosetError(f"the dims {', '.join(missing)} can be read from no input", help="give the model's inputs these dims")
            waiting = held_back

    def _needed(self, roots: Sequence[Term]) -> list[Term]:
        order = [term for term in topological(roots) if term not in self.names]
        needed = set(roots)
        for term in reversed(order):
            if term in needed:
                needed |= {operand for i, operand in enumerate(term.operands) if self.literal(term, i) is None}
        return [term for term in order if term in needed]

    def _symbols_of(self, term: Term) -> set[str]:
        """The symbols that the term's expression speaks of: those in its attributes and, of movement, in its type."""
        return set() if term.op.name.startswith("stablehlo.dynamic_") else symbols_of(term)

    def _known(self, term: Term) -> bool:
        return self._symbols_of(term) <= self.symbols.keys()

    def _term(self, term: Term) -> None:
        op = term.op
        if op in (ABSENT, TOKEN):
            self.names[term] = "None"
            return
        if op is INPUT:
            raise CosetError(f"the program reads `{term.attribute('name')}`, which is none of its inputs")
        if op is CONSTANT:
            name = next((name for name, other in self.weights.items() if other is term), f"w{len(self.weights)}")
            self.weights[name] = term
            self.names[term] = to_held(f"weights[{name!r}]", term.tensor.dtype)
            return
        texts = [self.literal(term, i) or self.names[operand] for i, operand in enumerate(term.operands)]
        text = self.expression(term, texts)
        variable = self.fresh(_short(term))
        self.names[term] = variable
        self.line(f"{variable} = {text}")
        self.bind(term.type, variable)

    def expression(self, term: Term, texts: Sequence[str]) -> str:
        """One term as an expression over the texts of its operands.

        Raises:
            CosetError: the op has no torch expression.
        """
        name = term.op.name
        if any(isinstance(one.type, TensorType) and one.type.dtype.kind == "string" for one in (term, *term.operands)):
            raise CosetError(f"`{describe(term)}` of strings has no torch expression")
        if self.scalars and term.op.has("movement"):
            return texts[0]
        if term.op is GET:
            return f"{texts[0]}[{term.attribute('index')}]"
        if term.op is TUPLE:
            return tuple_text(texts)
        if term.op is DIMS:
            numbers = f"torch.tensor([{', '.join(map(self.dim, term.attribute('dims')))}], device=device)"
            numbers += "" if term.tensor.rank == 1 else f".reshape({self.shape(term.tensor.dims)})"
            return numbers if held(term.tensor.dtype) == "torch.int64" else f"{numbers}.to({held(term.tensor.dtype)})"
        if name in ELEMENTWISE:
            operands = [(text, operand.tensor.dtype) for text, operand in zip(texts, term.operands, strict=True)]
            return elementwise(name, dict(term.attributes), operands, term.tensor.dtype)
        write = (WITH_FUNCTIONS if term.regions else {}).get(name) or _TABLES.get(name)
        if write is None:
            raise CosetError(
                f"`{describe(term)}` has no torch expression", help="lower the program for another target, or report the model"
            )
        return write(self, term, texts)

    def function(self, region: Region, name: str, *, scalars: bool = False) -> str:
        """The name of a function, written here, from the values of the region's parameters to the tuple of its results."""
        found = self.fresh(name)
        inner = Writer(self.taken, {}, dict(self.symbols), [], self.depth + 1, self.weights, scalars)
        parameters = [self.fresh("x") for _ in region.parameters]
        inner.names.update(zip(region.parameters, parameters, strict=True))
        for parameter, variable in zip(region.parameters, parameters, strict=True):
            inner.bind(parameter.type, variable)
        inner.write(region.results)
        self.line(f"def {found}({', '.join(parameters)}):")
        self.lines += inner.lines
        inner.lines.clear()
        inner.line(f"return {tuple_text(inner.names[result] for result in region.results)}")
        self.lines += inner.lines
        return found

    def bind(self, type: Type, variable: str) -> None:
        """Lines that read the dim symbols which `type` spells alone and that are not known yet."""
        if isinstance(type, TupleType):
            for i, item in enumerate(type.items):
                self.bind(item, f"{variable}[{i}]")
        elif isinstance(type, TensorType) and type.shape is not None:
            for axis, dim in enumerate(type.shape):
                name = alone(dim)
                if name is not None and name not in self.symbols:
                    self.symbols[name] = self.fresh(name)
                    self.line(f"{self.symbols[name]} = {variable}.shape[{axis}]")


def _number_text(value: float) -> str:
    if isinstance(value, int):
        return str(value) if value >= 0 else f"({value})"
    if value != value:
        return "math.nan"
    if value in (float("inf"), float("-inf")):
        return "math.inf" if value > 0 else "(-math.inf)"
    return repr(value) if value > 0 or repr(value) == "0.0" else f"({value!r})"


def _short(term: Term) -> str:
    """The name of a variable: what the op is called, shorter."""
    name = describe(term).rsplit(".", 1)[-1]
    return {"broadcast_in_dim": "spread", "dot_general": "product", "exponential": "exp", "get": "part"}.get(name, name)


# ---------------------------------------------------------------- the program


class _Program:
    def __init__(self, program: Program, name: str) -> None:
        self.program, self.name = program, name
        self.writer = Writer({*RESERVED, *known_functions(), name})

    def lower(self) -> Lowered:
        roots = [root for root in primitive(self.program, is_convolution_gradient) if isinstance(root.type, TensorType)]
        outputs = roots[: len(self.program.outputs)]
        if len(outputs) != len(self.program.outputs) or len(self.program.roots) != len(outputs):
            raise CosetError("a program with effects or with results that are no tensors has no torch function")
        parameters = self._inputs()
        self.writer.write([*roots, *self._introducing(roots, self.program.introduces)])
        results = [to_stored(self.writer.names[root], root.tensor.dtype) for root in outputs]
        self.writer.line(f"return {tuple_text(results)}")
        typed = ", ".join(["weights: dict[str, Tensor]", *(f"{one}: Tensor" for one in parameters), "*", "device: torch.device"])
        head = f"def {self.name}({typed}) -> tuple[Tensor, ...]:"
        documented = f'    """The outputs {", ".join(name for name, _ in self.program.outputs)}."""'
        body = "\n".join([head, documented, *self.writer.lines]) + "\n"
        return Lowered(self.name, body, called_functions(body), self.writer.weights, tuple(parameters))

    def _inputs(self) -> list[str]:
        writer, parameters = self.writer, []
        for term in self.program.inputs:
            if not isinstance(term.type, TensorType) or term.type.dtype.kind == "string":
                raise CosetError(f"input `{term.attribute('name')}` is {term.type}: torch has no such tensors")
            parameters.append(writer.fresh(term.attribute("name")))
        for term, parameter in zip(self.program.inputs, parameters, strict=True):
            writer.bind(term.type, parameter)
            text = to_held(parameter, term.tensor.dtype)
            if text != parameter:
                writer.line(f"{parameter} = {text}")
            writer.names[term] = parameter
        return parameters

    def _introducing(self, roots: Sequence[Term], introduces: Mapping[str, Term]) -> list[Term]:
        """The terms that come with dim symbols which no value under the roots spells."""
        spoken = set().union(*(self.writer._symbols_of(term) for term in topological(roots)))
        spelled = set(self.writer.symbols)
        for term in topological(roots):
            items = term.type.items if isinstance(term.type, TupleType) else (term.type,)
            spelled |= {name for item in items if isinstance(item, TensorType) for name in map(alone, item.dims) if name}
        return [introduces[name] for name in sorted(spoken - spelled) if name in introduces]


def called_functions(text: str) -> tuple[str, ...]:
    """The names that `text` calls, in order, each once."""
    return tuple(dict.fromkeys(re.findall(r"(?<![\w.])([a-z_][a-z0-9_]*)\(", text)))
