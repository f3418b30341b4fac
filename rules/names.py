"""The names of one entry: term variables, dims, packs, dtypes, attributes, op variables, local definitions, dialects."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

from coset.ir.dtype_classes import CLASSES
from coset.ir.op import Op, find_op
from coset.ir.place import Place
from coset.ir.registry import loaded_ops, op_names
from coset.ir.types import DTYPES, DType
from coset.rules import syntax
from coset.rules.algebra import SCALAR_FUNCTIONS, Expression, Literal, Ref
from coset.rules.equation import Kind
from coset.rules.facts import NUMBERS
from coset.rules.functions import FUNCTIONS
from coset.rules.syntax import RuleError

# Element types that need no declaration; every other dtype variable is declared with its class, `G: float`.
FUNCTION = "function"  # the kind of names that stand for payload functions
CONVENTIONAL = {"T": "any", "F": "float", "I": "int"}
ATTRIBUTE_KINDS = (
    "int", "float", "bool", "string", "ints", "floats", "dims", "padding", "combiner", "direction", "dtype", "permutation", "axes",
    "constant", "function", "any",
)  # fmt: skip
SUGAR = ("splat", "bcast", "swap_last", "sum", "max", "min", "prod", "host", "get", "scalar", "full")
OTHER_NAMES = {"half": "f16", "float": "f32", "double": "f64", "boolean": "bool", "byte": "u8", "short": "i16", "int": "i32", "long": "i64"}
OTHER_OPS = dict.fromkeys(("matmul", "mm", "bmm", "dot"), "a @ b") | {"mul": "a * b", "sub": "a - b", "div": "a / b", "neg": "-a"}
OTHER_DIALECTS = {"hlo": "stablehlo as hlo", "ai": "onnx", "torch": "aten"}  # how they are called elsewhere
HUB = ("stablehlo", "chlo", "onnx")  # dialects that rules are mostly written in, the usual one first
OP_TRAITS = {"unary": 1, "binary": 2, "ternary": 3, "commutative": 2}  # elementwise ops of so many operands


# An element type without zeros and signs (a scale of others) keeps no law of arithmetic: x + 0, -(-x) and x - y are NaN in it. Definitions
# say what ops mean there too; rules speak of it as `any` alone.
LAWFUL = {word: found if word == "any" else found - {DTYPES["f8e8m0fnu"]} for word, found in CLASSES.items()}


@dataclass
class Names:
    """What each name of an entry means. `implied` are those that an attribute of the left side introduces."""

    terms: dict[str, syntax.Declaration] = field(default_factory=dict)
    kinds: dict[str, Kind] = field(default_factory=dict)
    ops: dict[str, Op] = field(default_factory=dict)
    op_variables: dict[str, syntax.OpVariable] = field(default_factory=dict)
    locals: dict[str, syntax.Expression] = field(default_factory=dict)
    attributes: dict[str, syntax.Declaration] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)
    dialects: Mapping[str, str] = field(default_factory=dict)
    classes: Mapping[str, frozenset[DType]] = field(default_factory=lambda: CLASSES)

    def known(self, name: str) -> bool:
        """True when `name` is declared or implied."""
        return name in self.terms or name in self.kinds or name in self.locals or name in self.op_variables

    def resolve(self, name: str, place: Place) -> Op:
        """The op that `name` means: an op variable, `dialect.op`, or the one op of the used dialects with that name.

        Raises:
            RuleError: there is none, or more than one.
        """
        found = self.meant(name, place)
        if len(found) == 1:
            return found[0]
        if found:
            raise RuleError(f"`{name}` is an op of several dialects: {', '.join(map(str, found))}", place=place, help="write the dialect")
        raise RuleError(f"there is no op `{name}`", place=place, help=_nearest(name, self.dialects.values()))

    def meant(self, name: str, place: Place) -> list[Op]:
        """The ops that `name` may mean.

        Raises:
            RuleError: it names a dialect that is not in use.
        """
        if name in self.ops:
            return [self.ops[name]]
        if "." in name:
            dialect, rest = name.split(".", 1)
            if dialect not in self.dialects:
                known = ", ".join(sorted(self.dialects)) or "none"
                used = OTHER_DIALECTS.get(dialect, dialect)
                raise RuleError(f"the dialect `{dialect}` is not in use", place=place, help=f"add `use {used}`; in use: {known}")
            candidates = [f"{self.dialects[dialect]}.{rest}"]
        else:
            candidates = [f"{dialect}.{name}" for dialect in dict.fromkeys(self.dialects.values())]
        return [op for op in map(find_op, candidates) if op is not None]


def _nearest(name: str, dialects: Iterable[str]) -> str:
    from difflib import get_close_matches

    used = set(dialects)
    spelled = {op.name.split(".", 1)[1]: op.name for op in loaded_ops() if op.dialect in used}
    spelled |= {function: function for function in (*SUGAR, *FUNCTIONS)}
    own = name.split(".")[-1]
    if name in OTHER_OPS:
        return f"write {OTHER_OPS[name]}"
    elsewhere = {full.partition(".")[0] for full in op_names() if full.partition(".")[2] == name} - used
    if elsewhere:
        return f"add `use {next((each for each in HUB if each in elsewhere), min(elsewhere))}`"
    close = [each for each in spelled if each.casefold() == own.casefold()] or get_close_matches(own, spelled, 3)
    if close:
        return f"did you mean {' or '.join(spelled[c] for c in close)}?"
    listed = " ".join(f"'{dialect}.*'" for dialect in sorted(used) if any(op.dialect == dialect for op in loaded_ops()))
    return f"`coset rules --ops {listed}` lists the ops that can be named here" if listed else "add `use onnx` or `use stablehlo`"


def _refuse_circles(locals: Sequence[syntax.Local]) -> None:
    uses = {
        local.name: {part.value for part in syntax.walk(local.value) if isinstance(part, syntax.Name)} & {other.name for other in locals}
        for local in locals
    }
    try:
        list(TopologicalSorter(uses).static_order())
    except CycleError as error:
        circle = error.args[1]
        local = next(local for local in locals if local.name == circle[0])
        raise RuleError(f"`{local.name}` is defined by itself", place=local.place, help="a local may use others, not in a circle") from None


def collect(
    declarations: Iterable[syntax.Declaration | syntax.OpVariable],
    locals: Sequence[syntax.Local],
    dialects: Mapping[str, str],
    *,
    classes: Mapping[str, frozenset[DType]] = CLASSES,
) -> Names:
    """The names that an entry declares, where the words of element types mean these `classes`.

    Raises:
        RuleError: a name is declared twice, shadows another one, or has no known kind.
    """
    names = Names(dialects=dialects, classes=classes)
    for declaration in declarations:
        kind = declaration.kind if isinstance(declaration, syntax.Declaration) else None
        _not_taken(names, declaration.name, declaration.place, attribute=isinstance(kind, syntax.ValueKind))
        names.places[declaration.name] = declaration.place
        if isinstance(declaration, syntax.OpVariable):
            if declaration.trait not in OP_TRAITS:
                raise RuleError(
                    f"`{declaration.trait}` is no trait of ops", place=declaration.place, help=f"one of: {', '.join(OP_TRAITS)}"
                )
            names.op_variables[declaration.name] = declaration
        elif isinstance(declaration.kind, syntax.TensorKind):
            names.terms[declaration.name] = declaration
        else:
            _value_name(names, declaration, declaration.kind)
    for declaration in names.terms.values():
        assert isinstance(declaration.kind, syntax.TensorKind)
        tensor_names(names, declaration.kind)
    for local in locals:
        _not_taken(names, local.name, local.place)
        names.locals[local.name] = local.value
        names.places[local.name] = local.place
    _refuse_circles(locals)
    return names


def _not_taken(names: Names, name: str, place: Place, *, attribute: bool = False) -> None:
    """Refuse a name that has a meaning. Attributes are named by others and may be called as a function is (`bits: 4`, `bits(T)`)."""
    if names.known(name):
        raise RuleError(f"`{name}` is declared twice", place=place, help="give one of them another name")
    called = (name in FUNCTIONS and name.isidentifier()) or name in SCALAR_FUNCTIONS or name in SUGAR
    if (called and not attribute) or name in DTYPES or name == "_":
        raise RuleError(f"`{name}` shadows a word of the language", place=place, help="give it another name")


def _value_name(names: Names, declaration: syntax.Declaration, kind: syntax.ValueKind) -> None:
    if declaration.name[0].isupper() and kind.word in CLASSES:
        names.kinds[declaration.name] = Kind("dtype", (), names.classes[kind.word])
        return
    if kind.word not in ATTRIBUTE_KINDS:
        help = f"one of: {', '.join(ATTRIBUTE_KINDS)}; classes of element types: {', '.join(CLASSES)}"
        raise RuleError(f"`{kind.word}` is no kind of value", place=kind.place, help=help)
    arguments = tuple(_plain(argument) for argument in kind.arguments)
    names.kinds[declaration.name] = Kind(kind.word, arguments, CLASSES["any"] if kind.word == "dtype" else frozenset())
    names.attributes[declaration.name] = declaration


def _plain(expression: syntax.Expression) -> Expression:
    if isinstance(expression, syntax.Name):
        return Ref(expression.value)
    if isinstance(expression, syntax.Number) and expression.integral:
        return Literal(int(expression.value))
    raise RuleError("a pack or a number stands here", place=expression.place, help="write permutation(S) for x: T[S..]")


def spelled_elsewhere(name: str) -> str:
    """What a name of an element type in other languages is called here; "" for another name."""
    short = re.fullmatch(r"(float|int|uint|complex|bfloat)(\d+)(_?\w*)", name.lower())
    shorter = {"float": "f", "int": "i", "uint": "u", "complex": "c", "bfloat": "bf"}
    found = OTHER_NAMES.get(name.lower()) or (short and f"{shorter[short[1]]}{short[2]}{short[3].replace('_', '')}")
    return f"write `{found}`" if found in DTYPES else ""


def tensor_names(names: Names, kind: syntax.TensorKind) -> None:
    """Enter the dtype variable, dims and packs of a tensor type.

    Raises:
        RuleError: the element type is no type and not declared, or a name is used as two things.
    """
    if kind.dtype not in DTYPES and kind.dtype not in names.kinds:
        if kind.dtype not in CONVENTIONAL:
            known = ", ".join(f"{name} ({word})" for name, word in CONVENTIONAL.items())
            help = spelled_elsewhere(kind.dtype) or f"declare it after `for`: `{kind.dtype}: float`; {known} need no declaration"
            raise RuleError(f"the element type `{kind.dtype}` is not declared", place=kind.place, help=help)
        names.kinds[kind.dtype] = Kind("dtype", (), names.classes[CONVENTIONAL[kind.dtype]])
    elif kind.dtype in names.kinds and names.kinds[kind.dtype].word != "dtype":
        word = names.kinds[kind.dtype].word
        raise RuleError(f"`{kind.dtype}` is a {word} and an element type", place=kind.place, help="give one of them another name")
    if kind.fact == "unique_indices" and any(dtype.kind not in ("int", "uint") for dtype in _dtypes(names, kind)):
        help = "declare a type of integers: I, or one that is declared so, J: int"
        raise RuleError(f"`{kind.fact}` is said of integers, and {kind.dtype} is more", place=kind.place, help=help)
    if kind.fact in NUMBERS and any(dtype.kind != "float" for dtype in _dtypes(names, kind)):
        help = "declare a type of floats: F, or one that is declared so, G: float"
        raise RuleError(f"`{kind.fact}` is said of floats, and {kind.dtype} is more", place=kind.place, help=help)
    for dim in kind.dims:
        pack = dim.value if isinstance(dim, syntax.Spread) else None
        for part in syntax.walk(dim):
            if isinstance(part, syntax.Name) and part.value != "_":
                imply(names, part.value, "pack" if part is pack else "dim", part.place)
            elif isinstance(part, syntax.Invocation | syntax.Text | syntax.Brackets):
                raise RuleError(
                    "a dim is made of names, numbers and + - * / // %", place=part.place, help="write a name and a condition on it"
                )


def _dtypes(names: Names, kind: syntax.TensorKind) -> frozenset[DType]:
    """The element types that a tensor may have."""
    return frozenset({DTYPES[kind.dtype]}) if kind.dtype in DTYPES else names.kinds[kind.dtype].classes


def imply(names: Names, name: str, word: str, place: Place) -> None:
    """Enter a name by its use; the second use must be of the same kind.

    Raises:
        RuleError: it is another kind of thing already.
    """
    found = names.kinds.get(name)
    if found is None:
        if names.known(name):
            raise RuleError(f"`{name}` is a term and a {word}", place=place, help="give one of them another name")
        names.kinds[name] = Kind(word, (), CLASSES["any"] if word == "dtype" else frozenset())
        names.places.setdefault(name, place)
    elif found.word != word and word in ("dim", "pack") and found.word in ("dim", "pack", "dtype"):
        help = f"a pack is written `{name}..`" if "pack" in (word, found.word) else "give one of them another name"
        raise RuleError(f"`{name}` is a {found.word} and a {word}", place=place, help=help)


def ops_with(trait: str, dialects: Iterable[str]) -> list[Op]:
    """The ops of the dialects in use that an op variable with this trait ranges over, by name."""
    count, used = OP_TRAITS[trait], set(dialects)
    fits = (op for op in _ranged() if op.dialect in used)
    return [op for op in fits if len(op.operands) == count and (trait != "commutative" or op.has("commutative"))]


def ranged_over() -> str:
    """The ops that op variables can range over now, with what decides which: what is kept of rules belongs to them."""
    return " ".join(f"{op.name}/{len(op.operands)}{'c' * op.has('commutative')}" for op in _ranged())


def _ranged() -> Iterator[Op]:
    return (op for op in loaded_ops() if op.has("elementwise") and not op.optional and not op.variadic)
