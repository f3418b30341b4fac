"""`Equation`: what one direction and one variant of a rule says: two sides, what must hold of the terms and types on the left, and how the
attributes and types on the right follow. How values of its names are found is the rule's affair (`coset.rules.rule`), and nothing here
rests on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from coset.ir.errors import CosetError
from coset.ir.term import AttributeItems
from coset.ir.types import DType, Type
from coset.rules import payloads
from coset.rules.algebra import Expression, Listing, PayloadFunction, Scope, evaluate
from coset.rules.pattern import Application, Pattern, Variable, applications
from coset.rules.scalar import Undefined

if TYPE_CHECKING:
    from coset.ir.place import Place

NUMERICS_ORDER = ("exact", "reassociates", "real", "approx", "lossy")  # from the strongest promise to the weakest
# what a promise may except: of `exact` the sign of a zero; of `reassociates` that a NaN and an infinity are exchanged, that one which a
# constant mask closes vanishes, that an inner value is kept wider than the program stores it
EXCEPTIONS = ("signed_zero", "nonfinite", "masked", "wider")


class RuleTypeError(CosetError):
    """A rule whose two sides have different types: the rule is wrong, and the message names it."""


@dataclass(frozen=True)
class Numerics:
    """What a rule promises about numbers: a word of `NUMERICS_ORDER`, what it excepts, and for `approx` the bound."""

    word: str
    exceptions: frozenset[str] = frozenset()
    bound: str = ""

    def __str__(self) -> str:
        exceptions = [name for name in EXCEPTIONS if name in self.exceptions]
        return self.word + (f" {self.bound}" if self.bound else "") + (f" except {', '.join(exceptions)}" if exceptions else "")


@dataclass(frozen=True)
class Decision:
    """Attributes and types of the right side's applications, by index."""

    attributes: tuple[AttributeItems, ...]
    types: tuple[Type, ...]


@dataclass(frozen=True)
class Kind:
    """What a name of the index algebra ranges over: dim, pack, dtype, rest, or an attribute kind with its arguments."""

    word: str
    arguments: tuple[Expression, ...] = ()
    classes: frozenset[DType] = frozenset()


@dataclass(frozen=True)
class TypePattern:
    """The declared type of a term variable."""

    dtype: Expression
    dims: Listing


@dataclass(frozen=True)
class Attributes:
    """The attributes of one application: an expression for each name, and the name that stands for the remaining ones."""

    items: tuple[tuple[str, Expression], ...]
    rest: str | None = None


@dataclass(frozen=True)
class Compiled:
    """What a rule is decided by. Types are in the order of `variables`; attributes and places by index of application."""

    types: tuple[TypePattern, ...]
    left: tuple[Attributes, ...]
    right: tuple[Attributes, ...]
    conditions: tuple[Expression, ...]
    kinds: Mapping[str, Kind]
    left_places: tuple[Place, ...]
    right_places: tuple[Place, ...]
    guards: tuple[tuple[Expression, ...], ...]  # what must hold before an application of the right side is typed
    order: tuple[int, ...]  # the applications of the right side, each after those whose types it reads
    left_order: tuple[int, ...]  # the same of the left side: the order in which an instance is built
    result: tuple[TypePattern, ...]  # the declared results of a definition


@dataclass(frozen=True, eq=False, kw_only=True)
class Equation:
    """`left` equals `right` wherever values of the names fulfil what `compiled` says."""

    name: str
    family: str
    left: Application
    right: Pattern
    variables: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    numerics: Numerics
    compiled: Compiled = field(repr=False)
    assurance: str = "assumed"
    text: str = field(default="", repr=False)  # the entry in canonical form: what the lock file hashes
    roots: int = 1  # where there are several, both sides are tuples of so many terms, which stand for themselves

    @property
    def pairs(self) -> tuple[tuple[Application, Pattern], ...]:
        """Each root of the left side with what equals it."""
        if self.roots == 1:
            return ((self.left, self.right),)
        assert isinstance(self.right, Application)
        found = zip(self.left.operands, self.right.operands, strict=True)
        return tuple((left, right) for left, right in found if isinstance(left, Application))

    def proposed(
        self, attributes: Sequence[AttributeItems], left_types: Sequence[Type | None], variable_types: Sequence[Type]
    ) -> Mapping[str, Any] | None:
        """Values of the names for a left side with these attributes and types, None without any: a proposal, which is looked at anew."""
        raise NotImplementedError

    @cached_property
    def made(self) -> tuple[Application, ...]:
        """The applications of the right side, by index."""
        return tuple(applications(self.right))


def right_side(rule: Equation, scope: Scope) -> Decision:
    """The attributes and types of the right side's applications under the values in `scope`.

    Raises:
        Undefined, Unbound: something in it has no value, or a guard does not hold.
        RuleTypeError: a type rule refuses what the right side says.
    """
    compiled, nodes = rule.compiled, rule.made
    scope.right = types = list[Any]([None] * len(nodes))
    items = list[Any]([()] * len(nodes))
    for node in (nodes[index] for index in compiled.order):
        if not all(evaluate(guard, scope) for guard in compiled.guards[node.index]):
            raise Undefined
        written = compiled.right[node.index]
        given: dict[str, Any] = dict(scope.values[written.rest]) if written.rest is not None else {}
        for name, expression in written.items:
            given[name] = expression if isinstance(expression, PayloadFunction) else evaluate(expression, scope)
        operands = [scope.variables[o.name] if isinstance(o, Variable) else types[o.index] for o in node.operands]
        try:
            complete = payloads.complete(node.op, given, operands, scope)
            types[node.index] = node.op.infer(operands, complete)
        except CosetError as error:
            wrong = RuleTypeError(f"`{rule.family}`: {error.message}", place=compiled.right_places[node.index], help=error.help)
            raise error if isinstance(error, Undefined) else wrong from None
        items[node.index] = tuple(sorted(complete.items()))
    return Decision(tuple(items), tuple(types))
