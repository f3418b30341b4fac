"""`plan`: a `Program` as kernels in launch order over buffers.

The steps, a file each: `primitive` opens definitions (with `contraction` for thin products), `splitting` cuts long reductions,
`grouped` and `scatter_rows` sort rows, `library_products` gives biases to a library, `grouping` says which terms share a kernel, `storing`
which values are kept in memory, `merging` puts launches together, `emission` writes each kernel as scalar expressions, `parts` stores what
is put together from others in its place, `facing` says which operand of a product is on the left, `memory` places temporaries in one arena,
and `packing` puts several constants below a byte into one.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from coset.ir.dims import alone, symbols
from coset.ir.errors import CosetError
from coset.ir.evaluate import describe
from coset.ir.program import Program
from coset.ir.stages import passed
from coset.ir.term import CONSTANT, GET, INPUT, Term, topological
from coset.ir.types import DType, TensorType, TupleType
from coset.lowering.kernels.identifier import identifier
from coset.lowering.kernels.kernel import Buffer, HeldTerm, Kernel, Library, Plan, writes
from coset.lowering.kernels.memory import arena
from coset.lowering.kernels.needs import needs_of
from coset.lowering.planning.attention import AttentionCalls, Attentions, attending, attends, shared
from coset.lowering.planning.attention_gradients import Unattended
from coset.lowering.planning.emission import emit
from coset.lowering.planning.emission_body import SharedEmission
from coset.lowering.planning.facing import faced
from coset.lowering.planning.group import LIBRARY, TILED, Grouping, KernelGroup, introduced, read_whole
from coset.lowering.planning.grouped import KEPT, by_groups, is_grouped
from coset.lowering.planning.grouping import Grouper
from coset.lowering.planning.kinds import KernelLimits, is_arithmetic, is_convolution_gradient, is_library, is_light, is_plain, is_product
from coset.lowering.planning.library_attention import with_attentions
from coset.lowering.planning.library_products import Libraries, with_biases
from coset.lowering.planning.loops import from_the_host
from coset.lowering.planning.merging import merge, ordered
from coset.lowering.planning.packing import packed
from coset.lowering.planning.parts import PartPlace, stored_in_parts
from coset.lowering.planning.primitive import primitive
from coset.lowering.planning.recurring import Recurring, no_kernel, recurring_in
from coset.lowering.planning.scatter_rows import by_rows
from coset.lowering.planning.sorting import first_sorted, too_long
from coset.lowering.planning.splitting import split
from coset.lowering.planning.storing import StoredTerms, Storer
from coset.lowering.planning.traffic import traffic
from coset.lowering.planning.windows import Windows, over_windows
from coset.targets.target import Target

ASSUMED = 128  # the number that a dim symbol is taken as where only estimates depend on it
MOST_WALKS = 4  # of grouping and storing: three were enough for every program that was seen


Computes = Callable[[str, Sequence[DType]], bool]  # (op, dtypes of its operands and then of its result) -> kernels compute it


def plan(
    program: Program,
    target: Target | None = None,
    *,
    binding: Mapping[str, int] | None = None,
    limits: KernelLimits | None = None,
    computes: Computes | None = None,
    windows: Windows | None = None,
    libraries: Libraries | None = None,
    atomics: bool = False,
    exact: bool = False,
    walks: int = MOST_WALKS,
) -> Plan:
    """The kernels of `program`. `binding` gives typical numbers of dim symbols: the plan holds for all others too. `computes` says which
    elementwise ops kernels have a form for (`triton.can_emit`); the others are a library's. None: all. `windows` says which
    convolutions are kernels over windows. None: none, a library does all. `libraries` says which products and attentions are a
    library's. None: none. `atomics`: scattered sums of floats may be added in any order, so that two runs differ. `exact`: sums are of
    what the program says, in any order. `walks`: how often terms are grouped at most.

    Raises:
        CosetError: an input or output is no tensor, a value has no known rank, or a dim symbol can be read from no input.
    """
    _require_tensors(program)
    _require_ranks(program.terms())
    limits = _limits(target, limits)
    limits = replace(limits, atomics=limits.atomics or atomics, contracts=limits.contracts and not exact)
    kept = _in_rows(opened(program), program.inputs, limits, binding or {})
    if windows is not None:
        kept = over_windows(kept, windows)
    if libraries is not None and not exact:
        kept = with_attentions(with_biases(kept, libraries), libraries)
    passed("making terms primitive", program.with_roots(kept))
    written: set[int] = set()  # attentions that are no kernel
    while True:
        roots, attended = attending(kept, written)
        try:
            return _planned(program, roots, attended, limits, binding or {}, computes, libraries, walks)
        except Unattended as found:
            written |= found.numbers


def opened(program: Program) -> tuple[Term, ...]:
    """The program's roots over what kernels are planned of."""
    return primitive(program, _is_kept)


def _is_kept(term: Term) -> bool:
    """True for a call of a defined op that is a kernel of its own."""
    return attends(term) or is_grouped(term) or is_convolution_gradient(term)


def _in_rows(roots: tuple[Term, ...], inputs: Iterable[Term], limits: KernelLimits, binding: Mapping[str, int]) -> tuple[Term, ...]:
    """Primitive terms with what kernels ask of rows: in the order of their groups or places, long ones cut. The search plans hundreds of
    programs: what no op of theirs needs is not looked for."""
    order = list(topological(roots))
    ops = {term.op.name for term in order}
    numbers = _numbers(order, inputs, binding)
    if KEPT in ops:
        roots = by_groups(roots)
    roots = split(roots, limits, numbers)
    if "stablehlo.scatter" in ops:
        roots = by_rows(roots, limits, numbers)
    return first_sorted(roots, is_plain) if "stablehlo.sort" in ops else roots


def _planned(
    program: Program, roots: Sequence[Term], attended: AttentionCalls, limits: KernelLimits, binding: Mapping[str, int],
    computes: Computes | None, libraries: Libraries | None, walks: int,
) -> Plan:  # fmt: skip
    """The plan of primitive terms. What turned out to be worth storing when all users were known is stored from the start the next time:
    then its users may join its kernel, as the next step of a recurrence does. The plan that moves least is the one.

    Raises:
        Unattended: one of `attended` cannot be a kernel.
    """
    order = [term for term in topological(roots) if term.op is not INPUT or isinstance(term.type, TensorType)]
    numbers = _numbers(order, program.inputs, binding)
    needed = shared(attended.attentions, order, roots)
    if needed is not None:
        raise Unattended({needed.number})
    light = {term for term in order if is_light(term) and (computes is None or _is_computed(term, computes))}
    loops = recurring_in(order, lambda term: computes is None or _is_computed(term, computes))
    own = Attentions(attended)
    given = {term for term in order if libraries is not None and is_product(term) and term not in own and libraries(term)}
    given |= {term for term in order if is_library(term, light) and term not in loops}
    required, brings = _required(roots, order, given), introduced(order, program.inputs, light)
    found: list[Plan] = []
    for _ in range(1 if attended.gradients else walks):  # kernels of gradients keep the group that they were placed in
        grouper = Grouper(order, light, set(required), numbers, limits, Attentions(attended), loops, given)
        grouper.found.brings |= brings
        try:
            grouping = grouper.run()
        except Unattended:
            if not found:
                raise
            break
        placed = set(grouping.home)
        stored = Storer(grouper, grouping).run()
        late = stored.terms - placed
        merge(grouping, stored, limits)
        found.append(_Builder(program, roots, grouping, stored, limits, numbers, attended, loops).build())
        if not late:
            break
        required |= late
    return found[0] if len(found) == 1 else min(found, key=partial(_moved, limits, numbers))


def _moved(limits: KernelLimits, numbers: Mapping[str, int], found: Plan) -> int:
    """The bytes that a plan moves, and those that could be moved while its kernels are launched."""
    total = traffic(found, numbers)
    return total.bytes + total.kernels * limits.launch_bytes


def _is_computed(term: Term, computes: Computes) -> bool:
    """True for a movement, and for an op that kernels compute."""
    dtypes = [operand.tensor.dtype for operand in term.operands]
    return not (is_arithmetic(term) or term.op.name == "stablehlo.bitcast_convert") or computes(term.op.name, [*dtypes, term.tensor.dtype])


def _limits(target: Target | None, limits: KernelLimits | None) -> KernelLimits:
    """The limits given, or the defaults with what the target's data say of a launch."""
    if limits is not None or target is None:
        return limits or KernelLimits()
    launch, step, rate = (target.numbers.get(name) for name in ("launch", "step", "bandwidth"))
    found = replace(KernelLimits(), launch_bytes=int(launch.value * rate.value)) if launch and rate else KernelLimits()
    return replace(found, step_bytes=int(step.value * rate.value)) if step and rate else found


def _require_tensors(program: Program) -> None:
    ends = [(f"input `{term.attribute('name')}`", term) for term in program.inputs]
    for what, term in (*ends, *((f"output `{name}`", term) for name, term in program.outputs)):
        if not isinstance(term.type, TensorType):
            raise CosetError(f"the {what} is {term.type}, no tensor, so that no buffer can be made for it", help="give and return tensors")


def _require_ranks(terms: Iterable[Term]) -> None:
    for term in terms:
        items = term.type.items if isinstance(term.type, TupleType) else (term.type,)
        if any(isinstance(item, TensorType) and item.shape is None for item in items):
            raise CosetError(
                f"`{describe(term)}` gives a tensor of unknown rank, so that no buffer can be made for it",
                help="give the model's inputs static shapes, or make what the shape depends on a constant",
            )


def _numbers(order: Iterable[Term], inputs: Iterable[Term], binding: Mapping[str, int]) -> dict[str, int]:
    """A number for each dim symbol."""
    found: set[str] = set()
    for term in (*order, *inputs):
        items = term.type.items if isinstance(term.type, TupleType) else (term.type,)
        for item in items:
            if isinstance(item, TensorType):
                found |= frozenset[str]().union(*map(symbols, item.dims))
    return {name: binding.get(name, ASSUMED) for name in found}


def _required(roots: Iterable[Term], order: Iterable[Term], given: Container[Term]) -> set[Term]:
    """The terms that must be in memory: outputs, and what a library reads, which does what it is `given`."""
    required = set(roots)  # tokens too: what has an effect is done
    for term in order:
        if term in given:
            required |= {operand for operand in read_whole(term) if isinstance(operand.type, TensorType)}
    return required


@dataclass
class _Builder:
    """Names buffers and kernels, puts kernels in order, and says why neighbours are apart."""

    program: Program
    roots: Sequence[Term]
    grouping: Grouping
    stored: StoredTerms
    limits: KernelLimits
    numbers: dict[str, int]
    attended: AttentionCalls
    loops: Mapping[Term, Recurring]
    buffers: dict[str, Buffer] = field(default_factory=dict)
    names: dict[Term, str] = field(default_factory=dict)
    results: dict[Term, tuple[str, ...]] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)

    def build(self) -> Plan:
        inputs = tuple(self._input(term) for term in self.program.inputs)
        groups = ordered(self.grouping, self.stored)
        outputs = {term: name for (name, _), term in reversed(list(zip(self.program.outputs, self.roots, strict=False)))}
        for group in groups:
            self._name_stored(group, outputs)
        self._name_constants()
        attended = {each.dot: each for each in self.attended.attentions}
        traced = {dot: each for each in self.attended.gradients for dot in each.dots}
        home, light, position = self.grouping.home, self.grouping.light, self.grouping.position
        emission = SharedEmission(self.names, self.results, home, light, position, attended, traced, self.loops)
        emitted = [emit(emission, group, self.stored.live[group]) for group in groups]
        self.buffers, placed, places = stored_in_parts(self.buffers, [kernel for kernel, _ in emitted], self.limits, self.numbers)
        kernels = [replace(faced(kernel, self.buffers), name=f"k{number}_{kernel.name}") for number, (kernel, _) in enumerate(placed)]
        made_by = [groups[place] for _, place in placed]
        apart = self._apart(made_by, kernels, [emitted[place][1] for _, place in placed])
        ends = tuple((name, self.names[term]) for (name, _), term in zip(self.program.outputs, self.roots, strict=False))
        notes = tuple(
            f"{kernel.name}: {why}"
            for group, kernel in zip(made_by, kernels, strict=True)
            if isinstance(kernel, Library) and (why := too_long(group.heavy[0]) or from_the_host(group.heavy[0], no_kernel(group.heavy[0])))
        )
        held = tuple(self._held(kernels, places))
        plan = passed("planning", Plan(self.buffers, tuple(kernels), inputs, ends, self._symbols(), apart, notes=notes, held=held))
        offsets, size = arena(plan)
        placed_plan = passed("placing temporaries", replace(plan, offsets=offsets, arena=size))
        return passed("packing constants", packed(placed_plan))

    # ------------------------------------------------------------ buffers

    def _held(self, kernels: Iterable[Kernel], places: Mapping[str, PartPlace]) -> Iterator[HeldTerm]:
        """What kernels store, by term; `places` of what is a part of something else."""
        made = {name for kernel in kernels for name in writes(kernel)}
        for term, name in self.names.items():
            if name in places:
                place = places[name]
                yield HeldTerm(term, place.into, place.box.low, place.box.high, place.axes)
            elif name in made:
                shape = self.buffers[name].shape
                yield HeldTerm(term, name, (0,) * len(shape), shape, tuple(range(len(shape))))

    def _fresh(self, wanted: str) -> str:
        """An identifier like `wanted` that is new."""
        name = identifier(wanted, self.taken, first=2)
        self.taken.add(name)
        return name

    def _new(self, term: Term, wanted: str, role: str, value: Term | None = None) -> str:
        name = self._fresh(wanted)
        self.buffers[name] = Buffer(name, term.tensor.dtype, term.tensor.dims, role, None, value)
        return name

    def _input(self, term: Term) -> tuple[str, str]:
        name = str(term.attribute("name"))
        if term not in self.names:
            self.names[term] = self._new(term, name, "input")
        return name, self.names[term]

    def _name_stored(self, group: KernelGroup, outputs: Mapping[Term, str]) -> None:
        """Buffers for what `group` stores; a library's results that nobody reads have one too."""
        for term in group.at:
            if term in self.stored.terms and isinstance(term.type, TensorType):
                count = len(self.buffers)
                self.names[term] = self._new(term, outputs.get(term, f"t{count}"), "output" if term in outputs else "temporary")
        if group.kind != LIBRARY:
            return
        (whole,) = group.heavy
        if not isinstance(whole.type, TupleType):
            if isinstance(whole.type, TensorType):
                self.results[whole] = (self.names[whole],)
            else:
                self.results[whole] = ()
            return
        parts = {term.attribute("index"): self.names[term] for term in group.at if term.op is GET and term in self.names}
        found = []
        for place, type in enumerate(whole.type.items):
            if isinstance(type, TensorType):
                if place not in parts:
                    parts[place] = self._fresh("unused")
                    self.buffers[parts[place]] = Buffer(parts[place], type.dtype, type.dims, "temporary")
                found.append(parts[place])
        self.results[whole] = tuple(found)

    def _name_constants(self) -> None:
        for term in self.grouping.order:
            if term.op is CONSTANT and (term.tensor.rank or term in self.grouping.required) and term in self.stored.readers:
                self.names[term] = self._new(term, f"c{len(self.buffers)}", "constant", term)
        for root in self.roots:
            if root.op is CONSTANT and root not in self.names:
                self.names[root] = self._new(root, f"c{len(self.buffers)}", "constant", root)

    def _symbols(self) -> dict[str, tuple[str, int]]:
        """Where each dim symbol is read from: an input, or the result of a library that brings it."""
        found: dict[str, tuple[str, int]] = {}
        made = {name for names in self.results.values() for name in names}
        for buffer in sorted(self.buffers.values(), key=lambda buffer: buffer.role != "input"):
            if buffer.role == "input" or buffer.name in made:
                for axis, dim in enumerate(buffer.shape):
                    name = alone(dim)
                    if name is not None:
                        found.setdefault(name, (buffer.name, axis))
        missing = sorted(self.numbers.keys() - found.keys())
        if missing:
            raise CosetError(
                f"no input and no library's result has the dim `{missing[0]}` alone, so that its number is not known when the plan runs",
                help="give the program an input with that dim",
            )
        return found

    # ------------------------------------------------------------ reasons

    def _apart(
        self, groups: Sequence[KernelGroup], kernels: Sequence[Kernel], used: Sequence[frozenset[Term]]
    ) -> tuple[tuple[str, str, str], ...]:
        found: list[tuple[str, str, str]] = []
        for place, needed in enumerate(needs_of(kernels)):
            for earlier in needed:
                found.append((kernels[earlier].name, kernels[place].name, self._reason(groups[earlier], groups[place], used[place])))
        return tuple(found)

    def _reason(self, earlier: KernelGroup, later: KernelGroup, used: frozenset[Term]) -> str:
        if LIBRARY in (earlier.kind, later.kind):
            return "a library's kernel reads and writes whole buffers"
        for term in sorted(used, key=lambda term: self.grouping.position[term]):
            if (earlier.number, term) in self.grouping.reasons:
                return self.grouping.reasons[earlier.number, term]
        if later.kind in TILED:
            return "a product reads each element in many tiles: it would be computed again for each"
        for term in earlier.at:
            if term in self.stored.choices and term in self.stored.terms:
                return f"`{term.op.name}` is needed by several kernels: {self.stored.choices[term]}"
        return "it reads other elements than the earlier kernel makes at the same place"
