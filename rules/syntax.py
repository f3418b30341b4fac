"""The surface syntax tree of a rule file: what was written, where, and nothing more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Union

from coset.ir.errors import CosetError
from coset.ir.place import Place


class RuleError(CosetError):
    """A mistake in a rule file, with its place."""


@dataclass(frozen=True)
class Number:
    """A number as written, sign included; exact."""

    value: Decimal
    place: Place = field(compare=False)

    @property
    def integral(self) -> bool:
        """True when it was written without a fraction or exponent."""
        return self.value.as_tuple().exponent == 0


@dataclass(frozen=True)
class Text:
    """A quoted string."""

    value: str
    place: Place = field(compare=False)


@dataclass(frozen=True)
class Name:
    """A name, possibly qualified by a dialect; `_` is the wildcard."""

    value: str
    place: Place = field(compare=False)


@dataclass(frozen=True)
class Spread:
    """`S..` in a list: the items of the list S. Without a value (`..`) any items."""

    value: "Expression | None"
    place: Place = field(compare=False)


@dataclass(frozen=True)
class Brackets:
    """`[a, S.., b]`."""

    items: tuple["Expression | Spread", ...]
    place: Place = field(compare=False)


@dataclass(frozen=True)
class Invocation:
    """`name(operands and positional attributes, key: value, ..rest)`."""

    name: str
    arguments: tuple["Expression | Spread", ...]
    keywords: tuple[tuple[str, "Expression"], ...]
    rest: str | None
    place: Place = field(compare=False)

    @property
    def plain(self) -> tuple["Expression", ...]:
        """The positional arguments of a call that takes no `xs..`.

        Raises:
            RuleError: one of them is `xs..`.
        """
        spread = next((argument for argument in self.arguments if isinstance(argument, Spread)), None)
        if spread is not None:
            raise RuleError(f"`{self.name}` takes no operands that repeat", place=spread.place, help="name them one by one, or fold them")
        return tuple(argument for argument in self.arguments if not isinstance(argument, Spread))


@dataclass(frozen=True)
class Comprehension:
    """`[item for names in lists if condition]`: one name for each list, all lists in step."""

    item: "Expression"
    names: tuple[str, ...]
    lists: tuple["Expression", ...]
    condition: "Expression | None"
    place: Place = field(compare=False)


@dataclass(frozen=True)
class Operation:
    """An operator over operands; `negate` and `not` have one, `item` two, `slice` three (None where left out), `if` three, `tuple` any."""

    operator: str
    operands: tuple["Expression | None", ...]
    place: Place = field(compare=False)


@dataclass(frozen=True)
class Lambda:
    """`lambda a, b: body`: a payload function, and how it is written."""

    parameters: tuple[str, ...]
    body: "Expression"
    text: str
    place: Place = field(compare=False)


Expression = Union[Number, Text, Name, Brackets, Comprehension, Invocation, Operation, Lambda]


@dataclass(frozen=True)
class TensorKind:
    """`const F[M, N]`. `fact`: const, varying, one of `NUMBERS` or `PATTERNS`, or nothing."""

    dtype: str
    dims: tuple["Expression | Spread", ...]
    fact: str
    place: Place = field(compare=False)


@dataclass(frozen=True)
class ValueKind:
    """`float`, `int`, `permutation(S)`: a dtype class or the kind of an attribute."""

    word: str
    arguments: tuple[Expression, ...]
    place: Place = field(compare=False)


@dataclass(frozen=True)
class Declaration:
    """One name after `for` or one parameter of an op."""

    name: str
    kind: TensorKind | ValueKind
    optional: bool
    default: Expression | None
    place: Place = field(compare=False)
    variadic: bool = False


@dataclass(frozen=True)
class OpVariable:
    """`op f: unary`: a name that ranges over the registered ops of that trait."""

    name: str
    trait: str
    place: Place = field(compare=False)


@dataclass(frozen=True)
class Local:
    """`s = ...` after `with`."""

    name: str
    value: Expression
    place: Place = field(compare=False)


@dataclass(frozen=True)
class Promise:
    """The `numerics` clause."""

    word: str
    exceptions: tuple[str, ...]
    bound: str
    place: Place = field(compare=False)


@dataclass(frozen=True)
class Written:
    """`x = [1, 2]: f32`, or such a value without a name; the element type is empty where it is left out."""

    name: str
    value: Expression
    dtype: str
    place: Place = field(compare=False)


@dataclass(frozen=True)
class Ground:
    """A `test` line: an instance of an entry, and the results that are written down. `never`: the entry does not hold there."""

    given: tuple[Written, ...]
    results: tuple[Written, ...]
    never: bool  # `test not`
    place: Place = field(compare=False)


@dataclass(frozen=True)
class RuleEntry:
    """A `rule`."""

    name: str
    tags: tuple[str, ...]
    document: str
    declarations: tuple[Declaration | OpVariable, ...]
    left: Expression
    right: Expression
    both: bool  # `<=>`
    locals: tuple[Local, ...]
    condition: Expression | None
    promise: Promise
    place: Place = field(compare=False)
    text: str = field(default="", compare=False)
    tests: tuple[Ground, ...] = ()
    roots: int = 1  # where there are several, both sides are tuples of so many terms


@dataclass(frozen=True)
class Clause:
    """One `means` of an op definition."""

    body: Expression
    locals: tuple[Local, ...]
    condition: Expression | None
    promise: Promise
    place: Place = field(compare=False)

    @property
    def said(self) -> tuple[Expression, ...]:
        """What it means, without when."""
        return self.body, *(local.value for local in self.locals)

    def parts(self) -> Iterator[Expression | Spread]:
        """All expressions in it, its condition's too."""
        for expression in (self.body, self.condition, *self.said[1:]):
            yield from walk(expression)


@dataclass(frozen=True)
class OpEntry:
    """An op that a term defines: an `op`, or a `kernel` that some targets have."""

    name: str
    parameters: tuple[Declaration, ...]
    result: tuple[TensorKind, ...]  # one for each result; none where nothing is declared
    document: str
    clauses: tuple[Clause, ...]
    place: Place = field(compare=False)
    text: str = field(default="", compare=False)
    tags: tuple[str, ...] = ()
    tests: tuple[Ground, ...] = ()
    targets: tuple[Name, ...] = ()  # of a `kernel`: those that have it; an `op` has none
    ops: tuple[OpVariable, ...] = ()  # the op parameters; each is an attribute among the parameters too


@dataclass(frozen=True)
class PhaseEntry:
    """One phase: the rules in it with their limits; phases run in the order of `RuleFile.phases`."""

    name: str
    entries: tuple[tuple[str, int | None, Place], ...]
    place: Place = field(compare=False)


@dataclass(frozen=True)
class RuleFile:
    """A parsed file."""

    path: str
    dialects: tuple[tuple[str, str, Place], ...]  # (name in this file, dialect, place)
    rules: tuple[RuleEntry, ...]
    ops: tuple[OpEntry, ...]
    phases: tuple[PhaseEntry, ...]


def walk(expression: Expression | Spread | None) -> Iterator[Expression | Spread]:
    """`expression` and everything inside it, outside first."""
    if expression is None:
        return
    yield expression
    inside: tuple[Expression | Spread | None, ...] = ()
    if isinstance(expression, Spread):
        inside = (expression.value,)
    elif isinstance(expression, Brackets):
        inside = expression.items
    elif isinstance(expression, Comprehension):
        inside = (expression.item, *expression.lists, expression.condition)
    elif isinstance(expression, Invocation):
        inside = (*expression.arguments, *(value for _, value in expression.keywords))
    elif isinstance(expression, Operation):
        inside = expression.operands
    elif isinstance(expression, Lambda):
        inside = (expression.body,)
    for part in inside:
        yield from walk(part)


def joined(condition: Expression | None) -> list[Expression]:
    """The conditions that `and` joins, in order; none where there is none."""
    if isinstance(condition, Operation) and condition.operator == "and":
        return [part for operand in condition.operands for part in joined(operand)]
    return [] if condition is None else [condition]
