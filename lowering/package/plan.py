"""A plan as a Python package: kernels as Triton functions (or torch functions with the same buffers), and the launches in order."""

from __future__ import annotations

import keyword
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from coset.ir.dims import Dim
from coset.ir.program import Program
from coset.ir.term import Term
from coset.ir.types import DType, TupleType
from coset.lowering.arranging.layouts import runs_last
from coset.lowering.kernels.identifier import identifier
from coset.lowering.kernels.kernel import Kernel, Library, Plan, stores_of
from coset.lowering.kernels.memory import released
from coset.lowering.kernels.renaming import renamed
from coset.lowering.package.program import HOST_IMPORTS, RUNTIME, TILES, Package, init_text, inputs_text, interface
from coset.lowering.planning.library_products import is_half_product
from coset.lowering.torch.convolutions import in_order, with_features_last
from coset.lowering.torch.copied import copied_functions, known_functions
from coset.lowering.torch.dims import dim_text, tuple_text
from coset.lowering.torch.dtypes import STORED, plain, stored, to_held, to_stored
from coset.lowering.torch.kernel import kernel_arguments, kernel_function
from coset.lowering.torch.program import IMPORTS, RESERVED, Writer, called_functions
from coset.lowering.triton.launch import INT32_LIMIT, Argument, CopyTiles, EmitOptions, EmittedKernel, Launch
from coset.lowering.triton.scalars import EIGHTS
from coset.lowering.triton.shared import emitted
from coset.lowering.triton.source import module_of, refusal

OWN = (
    "program",
    "MEMORY",
    "INPUTS",
    "OUTPUTS",
    "Input",
    "Memory",
    "Model",
    "Path",
    "Streams",
    "described",
    "empty",
    "kernels",
    "start",
    "streams",
    "results",
)


def planned_package(program: Program, plan: Plan, *, title: str, facts: Mapping[str, Any] | None = None, triton: bool = True,
                    options: EmitOptions | None = None) -> Package:  # fmt: skip
    """The package of `plan`; without `triton` every kernel is a torch function. `options` are those of its Triton kernels.

    Raises:
        CosetError: a library's op has no torch expression.
    """
    plan = _renamed(plan)
    host = _Host(program, plan, triton, replace(options or EmitOptions(), splits=not plan.frees))
    body = host.write()
    texts = {"__init__.py": init_text(title), "runtime.py": RUNTIME.read_text()}
    functions = "\n\n".join(host.functions)
    kept = "DESCRIPTORS = Descriptors()\n" if "Descriptors" in host.described else ""
    called = [name for name in called_functions(functions + body) if name in known_functions()]
    runtime = ["Input", "Memory", "Model", *(["Streams"] if plan.streams else []), *(["start"] if host.emissions else [])]
    runtime += ["empty"] * host.empties
    imports = f"from .functions import {', '.join(sorted(called))}\n" if called else ""
    if host.emissions:
        imports += "from . import kernels\n"
        if host.described:
            imports += f"from .tiles import {', '.join(sorted(host.described))}\n"
            texts["tiles.py"] = TILES.read_text()
        texts["kernels.py"] = f'"""The Triton kernels of {title}"""\n\n{module_of(host.emissions)}'
    if called:
        texts["functions.py"] = f'"""What the program calls beside torch."""\n\n{IMPORTS}{copied_functions(called)}'
    texts["model.py"] = (
        f'"""{title}"""\n\n{HOST_IMPORTS}\n{imports}from .runtime import {", ".join(runtime)}\n\n{inputs_text(program)}'
        f"OUTPUTS = {tuple_text(repr(name) for name, _ in program.outputs)}\nMEMORY = Memory()\n{kept}\n\n"
        + (functions + "\n\n" if functions else "") + f"{body}\n\nmodel = Model(program, INPUTS, OUTPUTS, Path(__file__).parent)\n"
    )  # fmt: skip
    weights = {name: term.attribute("value") for name, term in host.weights.items()}
    code = "triton" if host.emissions else "torch"
    facts = {**interface(program), **(facts or {}), "code": code, "kernels": host.launch_table(), "arena": plan.arena}
    if any(isinstance(kernel, Library) and is_half_product(kernel.term) for kernel in plan.kernels):
        facts["f32_sums"] = True  # whatever torch is told
    packed = {name: buffer.packed for name, buffer in plan.buffers.items() if buffer.packed is not None}
    orders = {name: buffer.order for name, buffer in plan.buffers.items() if buffer.order is not None and name in weights}
    return Package(texts, weights, facts, packed, orders)


def _renamed(plan: Plan) -> Plan:
    """The plan with other names for buffers that the host code could not use: keywords, and names of its own."""
    taken = {*RESERVED, *known_functions(), *OWN, *(kernel.name for kernel in plan.kernels)}
    clashing = [name for name in plan.buffers if name in taken or keyword.iskeyword(name)]
    if not clashing:
        return plan
    taken |= plan.buffers.keys()
    names: dict[str, str] = {}
    for name in clashing:
        names[name] = identifier(name, taken)
        taken.add(names[name])
    return renamed(plan, names)


@dataclass
class _Host:
    """Writes the function that allocates, launches and returns."""

    program: Program
    plan: Plan
    triton: bool
    options: EmitOptions
    names: dict[str, str] = field(default_factory=dict)  # buffer -> variable
    lines: list[str] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    emissions: list[EmittedKernel] = field(default_factory=list)
    emitted: dict[str, EmittedKernel] = field(default_factory=dict)  # by kernel
    weights: dict[str, Term] = field(default_factory=dict)
    table: list[dict[str, Any]] = field(default_factory=list)
    allocated: set[str] = field(default_factory=set)  # buffers: several kernels may store parts of one
    described: set[str] = field(default_factory=set)  # what makes descriptors
    empties: bool = False  # memory in another order is made

    def write(self) -> str:
        """The text of the function `program`."""
        plan = self.plan
        self.writer = Writer({*RESERVED, *known_functions(), *OWN, *plan.buffers, *(kernel.name for kernel in plan.kernels)})
        self.writer.weights = self.weights
        self.writer.lines = []
        self.symbols = self.writer.symbols
        parameters = [self._input(name, buffer) for name, buffer in plan.inputs]
        for buffer in plan.buffers.values():
            if buffer.role == "constant":
                assert buffer.value is not None
                self.weights[buffer.name] = buffer.value
                self._line(f"{buffer.name} = weights[{buffer.name!r}]")
        mine = [kernel for kernel in plan.kernels if self.triton and not isinstance(kernel, Library) and not refusal(kernel)]
        self.emissions = emitted(mine, plan, self.options)
        self.emitted = dict(zip((kernel.name for kernel in mine), self.emissions, strict=True))
        gone = released(plan)
        if plan.streams is not None:
            self._line(f"streams = Streams({max(plan.streams.of) + 1}, device)")
        for place, kernel in enumerate(plan.kernels):
            self._kernel(kernel, self._beside(place))
            if place in gone:
                self._line(f"del {', '.join(gone[place])}")
        if plan.streams is not None:
            self._line("streams.join()")
        self._line(f"return {tuple_text(buffer for _, buffer in plan.outputs)}")
        typed = ", ".join(["weights: dict[str, Tensor]", *(f"{one}: Tensor" for one in parameters), "*", "device: torch.device"])
        names = ", ".join(name for name, _ in plan.outputs)
        return f'def program({typed}) -> tuple[Tensor, ...]:\n    """The outputs {names}."""\n' + "\n".join(self.writer.lines) + "\n"

    def launch_table(self) -> list[dict[str, Any]]:
        """The kernels in launch order, for the manifest."""
        return self.table

    def _line(self, text: str) -> None:
        self.writer.line(text)

    def _dim(self, dim: Dim) -> str:
        return dim_text(dim, self.symbols)

    def _input(self, name: str, buffer: str) -> str:
        found = self.plan.buffers[buffer]
        if found.shape:
            self._line(f"{buffer} = {buffer}.contiguous()")
        self._bind(buffer)
        return buffer

    def _bind(self, buffer: str) -> None:
        for symbol, (source, axis) in self.plan.symbols.items():
            if source == buffer and symbol not in self.symbols:
                self.symbols[symbol] = self.writer.fresh(symbol)
                self._line(f"{self.symbols[symbol]} = {buffer}.shape[{axis}]")

    # ------------------------------------------------------------ kernels

    def _beside(self, place: int) -> dict[str, Any]:
        """What the launch table says of streams: that of a kernel, and the ones that it waits for on others."""
        streams = self.plan.streams
        if streams is None:
            return {}
        return {"stream": streams.of[place], "after": [self.plan.kernels[other].name for other in streams.waits[place]]}

    @cached_property
    def _awaited(self) -> set[str]:
        """The kernels that others wait for."""
        streams = self.plan.streams
        return {self.plan.kernels[place].name for waits in streams.waits for place in waits} if streams else set()

    @contextmanager
    def _on_its_stream(self, kernel: Kernel, beside: Mapping[str, Any]) -> Iterator[None]:
        """The lines that are written meanwhile are launched there."""
        if not beside or not (beside["stream"] or beside["after"] or kernel.name in self._awaited):
            yield
            return
        marked = f", marks={kernel.name!r}" if kernel.name in self._awaited else ""
        after = f", after={tuple_text(map(repr, beside['after']))}" if beside["after"] else ""
        self._line(f"with streams.on({beside['stream']}{after}{marked}):")
        self.writer.depth += 1
        yield
        self.writer.depth -= 1

    def _kernel(self, kernel: Kernel, beside: dict[str, Any]) -> None:
        if isinstance(kernel, Library):
            with self._on_its_stream(kernel, beside):
                self._library(kernel)
            self.table[-1] |= beside
            return
        for name in dict.fromkeys(store.buffer for store in stores_of(kernel)):
            if name not in self.allocated:
                self.allocated.add(name)
                self._allocate(name)
        if kernel.name in self.emitted:
            emission = self.emitted[kernel.name]
            for buffer in emission.scratch:
                self._line(f"{buffer.name} = MEMORY.own({buffer.name!r}, {self._shape(buffer.shape)}, {stored(buffer.dtype)}, device)")
            with self._on_its_stream(kernel, beside):
                for launch in emission.launches:
                    self._launch(launch)
            row = {"name": kernel.name, "code": "triton", "ops": list(kernel.terms), "launches": len(emission.launches)}
            row |= {} if emission.source else {"functions": [launch.function for launch in emission.launches]}  # another kernel's
            row |= {"multiplies": emission.unit} if emission.unit else {}
            chosen = emission.chosen
            row |= {"tuned": {"choice": chosen.choice.text(), "factor": chosen.factor}} if chosen is not None else {}
            self.table.append(row | beside)
            return
        self.functions.append(kernel_function(kernel, self.plan, self.symbols))
        with self._on_its_stream(kernel, beside):
            self._line(f"{kernel.name}({', '.join(kernel_arguments(kernel, self.symbols))})")
        self.table.append({"name": kernel.name, "code": "torch", "ops": list(kernel.terms), "launches": 1} | beside)

    def _shape(self, shape: tuple[Dim, ...]) -> str:
        return tuple_text(map(self._dim, shape))

    def _allocate(self, name: str) -> None:
        """Outputs are new at each call; temporaries have their place in the arena, or memory of their own where a dim is free. Where the
        plan frees they are new, or have the memory of another."""
        buffer, plan = self.plan.buffers[name], self.plan
        ends = f"{self._shape(buffer.shape)}, "
        order = "" if buffer.order is None else f", {tuple_text(buffer.order)}"
        if name in plan.offsets:
            self._line(f"{name} = MEMORY.part({plan.arena}, {plan.offsets[name]}, {ends}{stored(buffer.dtype)}, device{order})")
        elif name in plan.over:
            self._line(f"{name} = {plan.over[name]}")
        elif buffer.role == "temporary" and not plan.frees:
            self._line(f"{name} = MEMORY.own({name!r}, {ends}{stored(buffer.dtype)}, device{order})")
        elif order:
            self.empties = True
            self._line(f"{name} = empty({ends}{stored(buffer.dtype)}, device{order})")
        else:
            self._line(f"{name} = torch.empty({ends}dtype={stored(buffer.dtype)}, device=device)")

    def _launch(self, launch: Launch) -> None:
        arguments = []
        for argument in launch.arguments:
            if argument.buffer is None:
                arguments.append(self._dim(argument.dim))
                continue
            if argument.tiles is not None:
                arguments.append(self._described(launch, argument, argument.tiles))
                continue
            dtype = self._held(argument.buffer)
            bytes_ = argument.type == "*u8" and STORED[plain(dtype).name] != "uint8"
            begun = f"{argument.buffer}.view(-1)[{argument.begin}:]" if argument.begin else argument.buffer
            arguments.append(f"{begun}.view(torch.uint8)" if bytes_ else begun)
        numbers = [f"{name}={value}" for name, value in launch.constexprs]
        if launch.extents:
            most = ", ".join(map(self._dim, launch.extents))
            numbers.append(f"WIDE=max({most}) >= {INT32_LIMIT}" if len(launch.extents) > 1 else f"WIDE={most} >= {INT32_LIMIT}")
        numbers += [f"{name}={value}" for name, value in launch.options().items()]
        grid = tuple_text(map(self._dim, launch.grid))
        self._line(f"start(kernels.{launch.function}, {grid}, {', '.join(arguments)},")
        self._line(f"      {', '.join(numbers)})")

    def _described(self, launch: Launch, argument: Argument, tiles: CopyTiles) -> str:
        """The variable of a descriptor, made once of memory that is the package's own."""
        assert argument.buffer is not None
        buffer = self.plan.buffers[argument.buffer]
        where = f"{buffer.name}, {argument.begin}, {self._shape(tiles.shape)}, {self._shape(tiles.strides)}, {launch.block(tiles)}"
        where += ", floats=True" if argument.type.removeprefix("*") in EIGHTS.values() else ""
        stays = buffer.role == "constant" or (buffer.role == "temporary" and not self.plan.frees)
        name = self.writer.fresh(argument.name)
        self.described.add("Descriptors" if stays else "described")
        self._line(f"{name} = DESCRIPTORS.of({name!r}, {where})" if stays else f"{name} = described({where})")
        return name

    def _held(self, name: str) -> DType:
        if name in self.plan.buffers:
            return self.plan.buffers[name].held
        return next(buffer.dtype for emission in self.emissions for buffer in emission.scratch if buffer.name == name)

    def _library(self, kernel: Library) -> None:
        texts = []
        for name, given in zip(kernel.operands, kernel.term.operands, strict=True):
            text = "None" if name is None else to_held(name, self.plan.buffers[name].dtype)
            if name is not None and self.plan.buffers[name].shape != given.tensor.dims:
                text = f"{text}.reshape({self.writer.shape(given.tensor.dims)})"
            texts.append(text)
        if runs_last(self.plan, kernel):
            laid = [name is not None and self.plan.buffers[name].order is not None for name in kernel.operands]
            text = with_features_last(self.writer, kernel.term, texts, laid)
        else:
            text = self.writer.expression(kernel.term, texts)
        results = [(name, self.plan.buffers[name].dtype) for name in kernel.results]
        if len(results) == 1 and not isinstance(kernel.term.type, TupleType):
            order = self.plan.buffers[results[0][0]].order
            whole = _whole(to_stored(f"({text})", results[0][1]), text)
            self._line(f"{results[0][0]} = {whole}.contiguous()" if order is None else f"{results[0][0]} = {in_order(whole, order)}")
        else:
            several = identifier("results", self.writer.taken)
            self._line(f"{several} = {text}")
            for place, (name, dtype) in enumerate(results):
                self._line(f"{name} = {to_stored(f'{several}[{place}]', dtype)}.contiguous()")
            self._line(f"del {several}")
        for name, _ in results:
            self._bind(name)
        told = [note.removeprefix(f"{kernel.name}: ") for note in self.plan.notes if note.startswith(f"{kernel.name}: ")]
        noted = {"note": told[0]} if told else {}
        self.table.append({"name": kernel.name, "code": "library", "ops": list(kernel.terms), "launches": 1} | noted)


def _whole(converted: str, text: str) -> str:
    """Without the parentheses around what is one call."""
    call = text.endswith(")") and text[0] not in "(-~" and " " not in text.split("(", 1)[0]
    return text if converted == f"({text})" and call else converted
