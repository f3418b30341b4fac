"""What a rule file says, as trees: expressions, declarations, rules, definitions."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Union


@dataclass(frozen=True)
class Number:
    """A number as it is written; `whole` where it has neither a point nor an exponent."""

    value: Fraction
    whole: bool


@dataclass(frozen=True)
class Text:
    """A string."""

    value: str


@dataclass(frozen=True)
class Name:
    """A name, with its dots."""

    name: str


@dataclass(frozen=True)
class Call:
    """`function(arguments)`: positional ones, some with dots behind them, ones by name, and the name behind `..` or None."""

    function: str
    arguments: tuple["Expression", ...]
    named: tuple[tuple[str, "Expression"], ...] = ()
    rest: str | None = None


@dataclass(frozen=True)
class Binary:
    """Two expressions and what stands between them (`+`, `==`, `and`, `in` ..)."""

    mark: str
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True)
class Unary:
    """`-a` or `not a`."""

    mark: str
    inner: "Expression"


@dataclass(frozen=True)
class Splice:
    """`p..`: the items of a list, in a list or a call."""

    inner: "Expression"


@dataclass(frozen=True)
class AnyDims:
    """`..` alone among dims."""


@dataclass(frozen=True)
class Listed:
    """`[a, S.., b]`."""

    items: tuple["Expression", ...]


@dataclass(frozen=True)
class Grouped:
    """`(a, b)`: one term with several results."""

    items: tuple["Expression", ...]


@dataclass(frozen=True)
class Item:
    """`p[i]`."""

    whole: "Expression"
    index: "Expression"


@dataclass(frozen=True)
class Part:
    """`p[a:b]`."""

    whole: "Expression"
    first: "Expression | None"
    last: "Expression | None"


@dataclass(frozen=True)
class Choice:
    """`if c then a else b`."""

    condition: "Expression"
    yes: "Expression"
    no: "Expression"


@dataclass(frozen=True)
class Each:
    """`[e for a, b in p, q if c]`."""

    inner: "Expression"
    names: tuple[str, ...]
    lists: tuple["Expression", ...]
    condition: "Expression | None"


@dataclass(frozen=True)
class Function:
    """`lambda a, b: e`."""

    names: tuple[str, ...]
    inner: "Expression"


Expression = Union[Number, Text, Name, Call, Binary, Unary, Splice, AnyDims, Listed, Grouped, Item, Part, Choice, Each, Function]


@dataclass(frozen=True)
class Kind:
    """What a variable is: a tensor (`dtype`, `dims`), or a value of the kind `dtype` (`dims` is None), with a fact that is asked for."""

    dtype: str
    dims: tuple[Expression, ...] | None = None
    fact: str = ""


@dataclass(frozen=True)
class Variable:
    """A declared variable; `default` is its value where it may be left out or absent."""

    name: str
    kind: Kind
    optional: bool = False
    repeated: bool = False
    default: Expression | None = None


@dataclass(frozen=True)
class Promise:
    """The numeric word, with the bound of `approx` and `within`, and its exceptions."""

    word: str = ""
    bound: str = ""
    exceptions: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join(part for part in (self.word, self.bound, f"except {', '.join(self.exceptions)}" if self.exceptions else "") if part)


Locals = tuple[tuple[str, Expression], ...]


@dataclass(frozen=True)
class Rule:
    """An entry that says which programs are equal; `text` is its canonical one."""

    name: str
    variables: tuple[Variable, ...]
    ops: tuple[tuple[str, str], ...]
    left: tuple[tuple[str, Expression], ...]
    right: tuple[tuple[str, Expression], ...]
    both: bool
    locals: Locals
    condition: Expression | None
    promise: Promise
    dialects: tuple[tuple[str, str], ...]
    text: str = ""


@dataclass(frozen=True)
class Clause:
    """One `means` of a definition."""

    body: Expression
    locals: Locals
    condition: Expression | None
    promise: Promise


@dataclass(frozen=True)
class Definition:
    """An entry that says what an op is; `results` is empty where no type is declared."""

    name: str
    variables: tuple[Variable, ...]
    ops: tuple[tuple[str, str], ...]
    results: tuple[Kind, ...]
    clauses: tuple[Clause, ...]
    dialects: tuple[tuple[str, str], ...]
    text: str = ""


Entry = Union[Rule, Definition]
