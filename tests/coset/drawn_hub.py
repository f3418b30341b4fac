"""Random well-typed programs over the hub's ops, from a seed: what the whole optimizer is tried on.

A program grows step by step, each over what is there already. Half of the steps are a case of any op of the hub, as Hypothesis draws it
for the tests of that op (`tests/dialects/hub_cases.py`), so that an op that is new to the registry is drawn here by itself. The others
are what makes rules fire: left sides of rules, ops that undo each other, operands that repeat, neutral constants, chains of movement; and
regions (loops, branches, folds) whose bodies are random programs themselves.
"""

from __future__ import annotations

import random
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.internal.conjecture import providers

from coset.dialects.hub.region_terms import case_term, composite_term, if_term, region, while_term
from coset.dialects.hub.scalars import cast
from coset.dialects.hub.terms import convert, reshape, splat, transpose
from coset.ir import dims
from coset.ir.builtin import DIMS
from coset.ir.constants import constant_of
from coset.ir.dims import symbol
from coset.ir.errors import CosetError
from coset.ir.op import Op
from coset.ir.program import Program
from coset.ir.quantized import QuantizedType
from coset.ir.term import INPUT, Region, Term, constant, get, input_term, make, topological
from coset.ir.types import BOOL, DTYPES, I32, DType, TensorType, TupleType, Type
from coset.prove.sample import drawn as drawn_sides
from coset.prove.values import draw as draw_values
from coset.rules.library import DEFAULT, load
from coset.rules.pattern import applications
from coset.rules.rule import Rule

TESTS = Path(__file__).parents[1]
sys.path += [str(TESTS / folder) for folder in ("dialects", "lowering")]
hub_cases, drawn_programs = import_module("hub_cases"), import_module("drawn_programs")
for _path in sorted((TESTS / "dialects").glob("hub_*_cases.py")):
    import_module(_path.stem)

Array = np.ndarray[Any, Any]
BINDINGS = ({"A": 1, "B": 2, "C": 3}, {"A": 2, "B": 3, "C": 5}, {"A": 4, "B": 2, "C": 3}, {"A": 1, "B": 1, "C": 1})
LARGEST = {"A": 4, "B": 3, "C": 5}
MOST = 1_000  # elements of a drawn value
CASES_OF_AN_OP = 60
LEFT_OUT: Mapping[str, str] = {}  # ops with a meaning that no program is drawn with, and why
STATED = {"shape", "low", "high", "interior", "start", "limit", "strides", "slice_sizes", "padding", "output_shape", "output_dimensions"}
NEUTRAL = (0, 1, -1, 2, 0.5, -0.0, np.inf, -np.inf, np.nan)
UNDOING = (
    *((name, name) for name in ("negate", "not", "sqrt", "abs", "reverse", "transpose", "reshape", "convert")),
    ("exponential", "log"), ("log", "exponential"),
)  # fmt: skip
BINARY = ("add", "subtract", "multiply", "divide", "maximum", "minimum", "and", "or", "xor", "power", "remainder", "shift_left")


def drawn_ops() -> list[Op]:
    """The ops of the hub that have a value in a program by itself: neither ordered by tokens nor defined by others."""
    return [op for op in hub_cases.HUB if op.meaning is not None and not op.has("effect") and op.name not in LEFT_OUT]


@cache
def bank(op: Op) -> list[Any]:
    """Cases of the op (`hub_cases.Case`), drawn by Hypothesis: the same ones every time."""
    found: list[Any] = []

    @seed(zlib.crc32(op.name.encode()))
    @settings(max_examples=CASES_OF_AN_OP, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(hub_cases.cases(op))
    def take(case: Any) -> None:
        found.append(case)

    with _own_constants_only():
        take()
    return found


@contextmanager
def _own_constants_only() -> Iterator[None]:
    """Hypothesis also draws constants that it finds in the modules at hand: with them a program would be another one in another run."""
    found = providers._get_local_constants
    providers._get_local_constants = providers.Constants
    providers.CONSTANTS_CACHE.cache.clear()
    try:
        yield
    finally:
        providers._get_local_constants = found
        providers.CONSTANTS_CACHE.cache.clear()


@cache
def hub_rules() -> list[Rule]:
    """Rules of the library whose left side is of the hub's ops."""
    rules = [rule for phase in load(DEFAULT).phases for rule in phase.rules]
    return [rule for rule in rules if all(each.op.dialect in ("stablehlo", "chlo") for each in applications(rule.left))]


@cache
def pointwise_ops() -> list[Op]:
    return [op for op in drawn_ops() if op.has("elementwise") and all(a.name in ("direction", "dtype") for a in op.attributes)]


@dataclass
class Drawing:
    """A program in the making: `pool` is what new terms are made over."""

    random: random.Random
    pool: list[Term] = field(default_factory=list)
    inputs: list[Term] | None = None  # None in a function, which takes what it is given

    # ------------------------------------------------------------ what is there

    def one(self) -> Term:
        """A term of the pool, the later ones likelier, so that chains grow."""
        place = max(self.random.randrange(len(self.pool)), self.random.randrange(len(self.pool)))
        return self.pool[place]

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def add(self, *terms: Term) -> None:
        """Put terms into the pool, with what their operands have that is not there; tuples as their items."""
        for term in terms:
            if isinstance(term.type, TupleType):
                self.add(*(get(term, place) for place in range(len(term.type.items))))
            elif isinstance(term.type, TensorType) and term not in self.pool:
                self.pool.append(term)

    def number(self, dtype: DType) -> float | int:
        """A number that rules look for, in the range of the type."""
        if dtype.kind == "bool":
            return self.random.choice((0, 1))
        if dtype.kind in ("int", "uint"):
            low, high = (-(1 << dtype.bits - 1), (1 << dtype.bits - 1) - 1) if dtype.kind == "int" else (0, (1 << dtype.bits) - 1)
            return min(max(self.random.choice((0, 1, -1, 2, 3, low, high)), low), high)
        return self.random.choice(NEUTRAL)

    def fresh(self, type: TensorType) -> Term:
        """A new leaf: an input, or a constant."""
        if self.inputs is not None and (type.static is None or isinstance(type.dtype, QuantizedType) or self.chance(0.6)):
            self.inputs.append(input_term(f"x{len(self.inputs)}", type))
            return self.inputs[-1]
        if isinstance(type.dtype, QuantizedType):
            return make("stablehlo.uniform_quantize", (self.fresh(TensorType(type.dtype.expressed, type.dims)),), {"dtype": type.dtype})
        if type.static is None or self.chance(0.5):
            return splat(self.number(type.dtype), type.dtype, type.dims)
        generator = np.random.default_rng(self.random.randrange(1 << 32))
        return constant(constant_of(draw_values(generator, type.dtype, type.static, "zeros"), type.dtype))

    def supply(self, type: TensorType) -> Term:
        """A term of this type: one of the pool, one made of one, or a new leaf."""
        same = [term for term in self.pool if term.type == type]
        if same and self.chance(0.6):
            return self.random.choice(same)
        made = self.fitted(self.one(), type) if self.pool and self.chance(0.7) else None
        return self.fresh(type) if made is None else made

    def fitted(self, term: Term, type: TensorType) -> Term | None:
        """`term` as one of this type, whatever its elements are then; None where its dtype is of no use."""
        try:
            whole = shaped(converted(term, type.dtype), type.dims)
        except CosetError:
            return None
        return whole if whole.type == type else None

    # ------------------------------------------------------------ steps

    def case(self) -> Term | None:
        """Any op of the hub, as its tests have it."""
        return self.placed(self.random.choice(bank(self.random.choice(drawn_ops()))))

    def placed(self, case: Any) -> Term | None:
        """The term of a case with terms of ours in the place of its inputs."""
        root, made = case.term, dict[Term, Term]()
        arrays = dict(zip(leaves(root), case.arrays, strict=False))
        for term in topological([root]):
            if term.op is not INPUT:
                made[term] = again(term, [made[operand] for operand in term.operands])
            elif not isinstance(term.type, TensorType):
                return None
            else:
                made[term] = self.operand(root, term, arrays)
        return made[root]

    def operand(self, root: Term, leaf: Term, arrays: Mapping[Term, Array]) -> Term:
        role = dict(zip(root.operands, root.op.operands, strict=False)).get(leaf, "")
        if role in STATED and any(each.name == "shape" for each in root.op.attributes):  # numbers that the result's type repeats
            shape = dict(root.attributes)["shape"]
            numbers = arrays[leaf].reshape(-1).tolist()
            stated = role.startswith(("shape", "output")) and len(shape) == len(numbers)
            return make(DIMS, (), {"dims": tuple(shape) if stated else tuple(numbers), "type": leaf.type})
        found = self.supply(leaf.tensor)
        if (
            root.op.name == "stablehlo.while" and leaf.tensor.dtype is I32 and leaf is root.operands[0]
        ):  # a counter: not from the lowest one
            return make("stablehlo.clamp", (splat(-1, I32, ()), found, splat(4, I32, ())))
        return found

    def left_side(self) -> Term | None:
        """One side of a rule, where a rule can be drawn; over symbols in place of some of its sizes."""
        rule = self.random.choice(hub_rules())
        pairs = drawn_sides(rule, self.random.randrange(100), 1)
        if not pairs:
            return None
        root = pairs[0][0] if self.chance(0.8) else pairs[0][1]
        if any(term.op.dialect not in ("stablehlo", "chlo", "builtin") for term in topological([root])):
            return None
        facts = {name: fact for fact, name in rule.facts}
        sizes = sorted(
            {dim for term in topological([root]) if isinstance(term.type, TensorType) for dim in term.type.static or () if dim > 1}
        )
        if sizes and self.chance(0.4):
            with suppress(CosetError):  # sizes that an op needs as numbers
                root = lifted(root, {self.random.choice(sizes): symbol(self.random.choice(tuple(LARGEST)))})
        made: dict[Term, Term] = {}
        for term in topological([root]):
            if term.op is INPUT:
                made[term] = asserted(self.supply(term.tensor), facts.get(term.attribute("name"), ""))
            else:
                made[term] = again(term, [made[operand] for operand in term.operands])
        return made[root]

    def pointwise(self) -> Term | None:
        """An elementwise op on what is there, with operands that often repeat."""
        op, x = self.random.choice(pointwise_ops()), self.one()
        attributes: dict[str, Any] = {}
        if any(each.name == "direction" for each in op.attributes):
            attributes["direction"] = self.random.choice(("EQ", "NE", "LT", "LE", "GT", "GE"))
        if any(each.name == "dtype" for each in op.attributes):
            attributes["dtype"] = self.random.choice([each for each in DTYPES.values() if each.kind != "string"])
        operands = [x if self.chance(0.4) else self.supply(x.tensor) for _ in op.operands]
        if op.name == "stablehlo.select":
            operands[0] = self.supply(TensorType(BOOL, x.tensor.dims))
        return make(op, operands, attributes)

    def moved(self) -> Term | None:
        """A chain of movement and other plain ops: see `tests/lowering/drawn_programs.py`."""
        generator = np.random.default_rng(self.random.randrange(1 << 32))
        pool = list(self.pool)
        for _ in range(self.random.randrange(1, 4)):
            step = drawn_programs.STEPS[generator.integers(len(drawn_programs.STEPS))]
            made = step(generator, pool)
            if made is not None:
                pool.append(made)
        return pool[-1]

    def neutral(self) -> Term | None:
        """An op with a constant that may be neutral."""
        x = self.one()
        operands = [x, splat(self.number(x.tensor.dtype), x.tensor.dtype, x.tensor.dims)]
        return make(f"stablehlo.{self.random.choice(BINARY)}", operands if self.chance(0.7) else operands[::-1])

    def undone(self) -> Term | None:
        """Two ops that undo each other, or nearly."""
        x = self.one()
        rank = x.tensor.rank
        order = tuple(self.random.sample(range(rank), rank))
        back = tuple(sorted(range(rank), key=order.__getitem__))
        axes = tuple(axis for axis in range(rank) if self.chance(0.5))
        first, second = self.random.choice(UNDOING)
        if first == "reverse":
            return make("stablehlo.reverse", (make("stablehlo.reverse", (x,), {"dimensions": axes}),), {"dimensions": axes})
        if first == "transpose":
            return transpose(transpose(x, order), back)
        if first == "reshape":
            return reshape(reshape(x, (dims.product(x.tensor.dims),)), x.tensor.dims)
        if first == "convert":
            other = self.random.choice([each for each in DTYPES.values() if each.kind in ("float", "int", "uint", "bool", "complex")])
            return converted(converted(x, other), x.tensor.dtype)
        return make(f"stablehlo.{second}", (make(f"stablehlo.{first}", (x,)),))

    # ------------------------------------------------------------ regions

    def body(self, results: Sequence[Type] | None = None, *, scalar: bool = False) -> Callable[..., list[Term]]:
        """A random function: its results are of these types, or of any."""

        def build(*parameters: Term) -> list[Term]:
            inner = Drawing(self.random, list(parameters))
            inner.grow(self.random.randrange(1, 5), (Drawing.pointwise, Drawing.neutral) if scalar else PLAIN_STEPS)
            if results is None:
                return self.random.sample(inner.pool, min(len(inner.pool), self.random.randrange(1, 4)))
            return [inner.result(type) for type in results if isinstance(type, TensorType)]

        return build

    def result(self, type: TensorType) -> Term:
        """Something of this type, of what was made last if that can be."""
        for term in reversed(self.pool):
            made = self.fitted(term, type)
            if made is not None:
                return made
        return self.fresh(type)

    def captured(self) -> list[Term]:
        return [self.one() for _ in range(self.random.randrange(1, 4))]

    def branches(self) -> Term | None:
        """`if` or `case` with drawn branches, which often have something in common."""
        given = self.captured()
        first = region([term.type for term in given], self.body())
        types = [term.type for term in first.results]

        def like(*parameters: Term) -> list[Term]:
            if self.chance(0.3):
                return called(first, parameters)
            return self.body(types)(*parameters)

        def own(*parameters: Term) -> list[Term]:
            return called(first, parameters)

        if self.chance(0.5):
            return if_term(self.supply(TensorType(BOOL, ())), given, *((own, like) if self.chance(0.5) else (like, own)))
        return case_term(self.supply(TensorType(I32, ())), given, own, *(like for _ in range(self.random.randrange(3))))

    def loop(self) -> Term | None:
        """`while` over a counter and what is there: at most five rounds."""
        given = self.captured()
        counter = make("stablehlo.clamp", (splat(-1, I32, ()), self.supply(TensorType(I32, ())), splat(4, I32, ())))
        last = self.random.randrange(4)

        def goes_on(i: Term, *state: Term) -> Term:
            below = make("stablehlo.compare", (i, splat(last, I32, ())), {"direction": "LT"})
            more = Drawing(self.random, list(state)).result(TensorType(BOOL, ())) if self.chance(0.3) else None
            return below if more is None else make("stablehlo.and", (below, more))

        def round(i: Term, *state: Term) -> list[Term]:
            return [make("stablehlo.add", (i, splat(1, I32, ()))), *self.body([term.type for term in given])(*state, i)]

        return while_term([counter, *given], goes_on, round)

    def fold(self) -> Term | None:
        """`reduce_region`, `map` or a composite with a drawn body."""
        x = self.one()
        given = [x, *(self.supply(TensorType(self.one().tensor.dtype, x.tensor.dims)) for _ in range(self.random.randrange(2)))]
        scalars = [TensorType(term.tensor.dtype, ()) for term in given]
        kind = self.random.choice(("reduce_region", "reduce_region", "map", "composite"))
        if kind == "composite":
            return composite_term("ours.drawn", given, self.body())
        if kind == "map":
            result = self.random.choice(scalars)
            axes = {"dimensions": tuple(range(x.tensor.rank)), "dtype": None if result == scalars[0] else result.dtype}
            return make("stablehlo.map", given, axes, (region(scalars, self.body([result], scalar=True)),))
        axes = {"dimensions": tuple(axis for axis in range(x.tensor.rank) if self.chance(0.6))}
        starts = [self.supply(type) for type in scalars]
        return make("stablehlo.reduce_region", (*given, *starts), axes, (region([*scalars, *scalars], self.body(scalars, scalar=True)),))

    # ------------------------------------------------------------ growing

    def grow(self, steps: int, kinds: Sequence[Callable[[Drawing], Term | None]]) -> None:
        """Add so many steps; one that the type rules refuse is drawn anew."""
        for _ in range(steps):
            kept = None if self.inputs is None else len(self.inputs)
            for _ in range(20):
                try:
                    made = self.random.choice(kinds)(self)
                except CosetError:
                    made = None
                if made is not None and small(made):
                    self.add(made)
                    break
                if self.inputs is not None:
                    del self.inputs[kept:]


PLAIN_STEPS = (Drawing.pointwise, Drawing.pointwise, Drawing.moved, Drawing.neutral, Drawing.undone, Drawing.left_side, Drawing.case)
STEPS_OF_PROGRAMS = (*(Drawing.case,) * 5, *(Drawing.left_side,) * 4, *PLAIN_STEPS[:5], Drawing.branches, Drawing.loop, Drawing.fold)


def drawn_program(number: int) -> Program:
    """The random program of that number."""
    drawing = Drawing(random.Random(number), inputs=[])
    dtypes = [DTYPES[name] for name in ("f32", "f32", "f32", "f64", "f16", "bf16", "i32", "i32", "i64", "i8", "u8", "bool")]
    for _ in range(drawing.random.randrange(1, 4)):
        shape = tuple(drawing.random.choice((1, 2, 3, 4, *map(symbol, LARGEST))) for _ in range(drawing.random.randrange(4)))
        drawing.add(drawing.fresh(TensorType(drawing.random.choice(dtypes), shape)))
    drawing.grow(drawing.random.randrange(3, 13), STEPS_OF_PROGRAMS)
    assert drawing.inputs is not None
    used = {operand for term in topological(drawing.pool) for operand in term.operands}
    ends = [term for term in drawing.pool if term not in used]
    roots = [*ends[-6:], *drawing.random.sample(drawing.pool, min(2, len(drawing.pool)))]
    spelled = {dims.alone(dim) for term in drawing.inputs for dim in term.tensor.dims}
    more = [input_term(f"of_{name}", TensorType(DTYPES["f32"], (symbol(name),))) for name in LARGEST if name not in spelled]
    return Program((*drawing.inputs, *more), tuple((f"y{place}", root) for place, root in enumerate(roots)))


# ---------------------------------------------------------------- terms made of terms


def leaves(root: Term) -> list[Term]:
    """The inputs of a case, in the order of its arrays."""
    found = [term for term in topological([root]) if term.op is INPUT]
    return sorted(found, key=lambda term: int(term.attribute("name")[1:]))


def again(term: Term, operands: Sequence[Term]) -> Term:
    return make(term.op, operands, dict(term.attributes), term.regions)


def called(function: Region, operands: Sequence[Term]) -> list[Term]:
    """The results of a function on these operands."""
    made = dict(zip(function.parameters, operands, strict=True))
    for term in topological(function.results):
        if term not in made:
            made[term] = again(term, [made[operand] for operand in term.operands])
    return [made[result] for result in function.results]


def asserted(term: Term, fact: str) -> Term:
    """`term`, or a term of its type of which the fact can be seen."""
    if fact == "nonnegative" and term.tensor.dtype.kind not in ("uint", "bool"):
        return make("stablehlo.abs", (term,))
    if fact == "positive" and term.tensor.dtype.kind == "float":
        return make("stablehlo.exponential", (term,))
    return term


def converted(term: Term, dtype: DType) -> Term:
    own = term.tensor.dtype
    if own == dtype:
        return term
    if isinstance(own, QuantizedType):
        return converted(make("stablehlo.uniform_dequantize", (term,)), dtype)
    if isinstance(dtype, QuantizedType):
        return make("stablehlo.uniform_quantize", (converted(term, dtype.expressed),), {"dtype": dtype})
    if own.kind == "complex" and dtype.kind != "complex":
        return convert(make("stablehlo.real", (term,)), dtype)
    return convert(term, dtype)


def shaped(term: Term, shape: dims.Shape) -> Term:
    """The elements of `term` in this shape: reshaped, broadcast, cut and padded, or the largest of them everywhere."""
    own = term.tensor
    if own.dims == shape:
        return term
    if dims.product(own.dims) == dims.product(shape):
        return reshape(term, shape)
    spread = drawn_programs._match(term, shape)
    if spread is not None:
        return spread
    static = own.static
    if static is not None and len(static) == len(shape) and all(isinstance(dim, int) for dim in shape):
        kept = tuple(min(pair) for pair in zip(static, shape, strict=True))
        cut = make("stablehlo.slice", (term,), {"start": (0,) * len(kept), "limit": kept, "strides": (1,) * len(kept)})
        more = tuple(dims.subtract(dim, size) for dim, size in zip(shape, kept, strict=True))
        return make("stablehlo.pad", (cut, splat(1, own.dtype, ())), {"low": (0,) * len(kept), "high": more, "interior": (0,) * len(kept)})
    combiner = "or" if own.dtype.kind == "bool" else "add" if own.dtype.kind == "complex" else "maximum"
    largest = make("stablehlo.reduce", (term,), {"dimensions": tuple(range(own.rank)), "combiner": combiner})
    return drawn_programs.broadcast(largest, shape, ())


def lifted(root: Term, sizes: Mapping[int, dims.Dim]) -> Term:
    """`root` with symbols in place of sizes, in its inputs and in attributes that are dims.

    Raises:
        CosetError: it has no type then.
    """

    def put(value: Any) -> Any:
        return tuple(map(put, value)) if isinstance(value, tuple) else sizes.get(value, value) if type(value) is int else value

    made: dict[Term, Term] = {}
    for term in topological([root]):
        if term.op is INPUT:
            made[term] = input_term(term.attribute("name"), TensorType(term.tensor.dtype, put(term.tensor.dims)))
            continue
        kinds = {each.name: each.kind for each in term.op.attributes}
        attributes = {name: put(value) if kinds[name] == "dims" else value for name, value in term.attributes}
        made[term] = make(term.op, [made[operand] for operand in term.operands], attributes, term.regions)
    return made[root]


def small(term: Term) -> bool:
    """Whether all values on the way are small under every binding."""
    for each in topological([term]):
        for type in each.type.items if isinstance(each.type, TupleType) else (each.type,):
            if isinstance(type, TensorType) and not 0 <= dims.evaluate(dims.product(type.dims), LARGEST) <= MOST:
                return False
    return True


# ---------------------------------------------------------------- values


def feed_of(program: Program, binding: Mapping[str, int], kind: str) -> dict[str, Array]:
    """Values for the inputs, the same for one name and type: `kind` as in `prove.values`."""
    found = {}
    for term in program.inputs:
        name, shape = str(term.attribute("name")), tuple(dims.evaluate(dim, binding) for dim in term.tensor.dims)
        generator = np.random.default_rng([zlib.crc32(f"{name} {kind}".encode()), *shape])
        dtype = term.tensor.dtype
        if isinstance(dtype, QuantizedType):
            found[name] = cast(np.asarray(generator.integers(dtype.minimum, dtype.maximum + 1, shape)), dtype.storage)
        elif dtype.kind == "string":
            found[name] = generator.choice(np.array(["", "a", "b"], object), shape)
        else:
            found[name] = draw_values(generator, dtype, shape, kind)
    return found
