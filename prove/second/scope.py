"""What the names of an entry stand for: the substitution that a match finds, and the values of expressions under it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from coset.ir.op import Op, find_op
from coset.ir.types import DTYPES, DType
from coset.prove.second import algebra, arithmetic, exact
from coset.prove.second import syntax as l
from coset.prove.second.answer import CannotSay, Unknown

MISSING = object()  # what an optional operand is that is not given
FORMS = frozenset({"splat", "bcast", "full", "scalar", "host", "swap_last", "get", "fold"})
REDUCTIONS = {"sum": "add", "max": "maximum", "min": "minimum", "prod": "multiply"}
MARKS = {"+": "stablehlo.add", "-": "stablehlo.subtract", "*": "stablehlo.multiply", "/": "stablehlo.divide"}
WORDS: dict[str, Any] = {"true": True, "false": False, "inf": math.inf, "nan": math.nan}


class Unbound(Exception):
    """A name has no value yet."""


@dataclass(frozen=True)
class Scope:
    """What an entry declares: kinds of variables, variables for ops, locals, the dialects in use, what its text calls an element type."""

    variables: Mapping[str, l.Variable]
    ops: Mapping[str, str]
    locals: Mapping[str, l.Expression]
    dialects: tuple[tuple[str, str], ...]

    def op(self, name: str) -> Op | None:
        """The op that is called `name` here: by its full name, or alone where one dialect in use has it."""
        if "." in name:
            head, rest = name.split(".", 1)
            full = dict(self.dialects).get(head, head)
            return find_op(f"{full}.{rest}")
        found = {op.name: op for _, dialect in self.dialects if (op := find_op(f"{dialect}.{name}")) is not None}
        if len(found) > 1:
            raise CannotSay(f"`{name}` is an op of several dialects")
        return next(iter(found.values()), None)

    def is_term(self, e: l.Expression, own: frozenset[str] = frozenset()) -> bool:
        """True of an expression that stands for a term (or for a list of them), and not for a value; `own` are names of terms of a list."""
        match e:
            case l.Name(name):
                variable = self.variables.get(name)
                if variable is not None:
                    return variable.kind.dims is not None
                return name in own or (name in self.locals and self.is_term(self.locals[name]))
            case l.Binary(mark, left, right):
                return mark in ("+", "-", "*", "/", "@", "%") and (self.is_term(left, own) or self.is_term(right, own))
            case l.Unary(_, inner) | l.Item(inner, _) | l.Part(inner, _, _) | l.Splice(inner):
                return self.is_term(inner, own)
            case l.Choice(_, yes, no):
                return self.is_term(yes, own) or self.is_term(no, own)
            case l.Grouped(items) | l.Listed(items):
                return any(self.is_term(item, own) for item in items)
            case l.Each(inner, names, lists, _):
                named = [name for name, each in zip(names, lists, strict=False) if self.is_term(each, own)]
                return self.is_term(inner, own | frozenset(named))
            case l.Call(function, arguments, named, _):
                return self._gives_term(function, arguments, named, own)
        return False

    def _gives_term(
        self, function: str, arguments: tuple[l.Expression, ...], named: tuple[tuple[str, l.Expression], ...], own: frozenset[str]
    ) -> bool:
        if function in FORMS or function in self.ops:
            return True
        given = any(self.is_term(each, own) for each in arguments) or any(self.is_term(each, own) for _, each in named)
        if function in REDUCTIONS:
            return given
        if function in ("rank", "dims", "dtype", "len", "given", "static", "batch_axes", "swap_axes", "expanding"):
            return False
        op = self.op(function) if given or function not in algebra.FUNCTIONS else None
        return op is not None and (given or not op.operands)


@dataclass(frozen=True)
class Found:
    """A substitution so far: values of names, equations that wait for values, and the terms that locals are."""

    scope: Scope
    values: Mapping[str, Any]
    pending: tuple[tuple[l.Expression, Any, DType | None], ...] = ()

    def bind(self, name: str, value: Any) -> Found:
        """With one more name."""
        return replace(self, values={**self.values, name: value})

    def wait(self, expression: l.Expression, value: Any, dtype: DType | None = None) -> Found:
        """With one more equation: `expression` is `value`, or where `dtype` is given the number that `value` of that type stores."""
        return replace(self, pending=(*self.pending, (expression, value, dtype)))


def value_of(e: l.Expression, found: Found) -> Any:
    """The value of an expression.

    Raises:
        Unbound: a name has none yet.
        Unknown: it has none, or one that is not known.
    """
    match e:
        case l.Number(value, whole):
            return int(value) if whole else value
        case l.Text(text):
            return text
        case l.Name(name):
            return _named(name, found)
        case l.Unary("-", inner):
            return _negative(inner, found)
        case l.Unary(_, inner):
            return not _truth(value_of(inner, found))
        case l.Binary(mark, left, right):
            return _binary(mark, left, right, found)
        case l.Listed(items):
            return listed(items, found)
        case l.Item(whole, index):
            return arithmetic.item(value_of(whole, found), value_of(index, found))
        case l.Part(whole, first, last):
            ends = [None if end is None else value_of(end, found) for end in (first, last)]
            return arithmetic.part(value_of(whole, found), *ends)
        case l.Choice(condition, yes, no):
            return value_of(yes if _truth(value_of(condition, found)) else no, found)
        case l.Each():
            return each(e, found)
        case l.Call(function, arguments, (), None):
            return _called(function, arguments, found)
    raise CannotSay(f"the value of {e}")


def _negative(inner: l.Expression, found: Found) -> Any:
    if isinstance(inner, l.Number) and inner.value == 0 and not inner.whole:
        return -0.0
    return arithmetic.minus_one_times(value_of(inner, found))


def _named(name: str, found: Found) -> Any:
    if name in found.values:
        return found.values[name]
    if name in found.scope.variables or name in found.scope.ops:
        raise Unbound(name)
    if name in found.scope.locals:
        if found.scope.is_term(found.scope.locals[name]):
            raise Unbound(name)
        return value_of(found.scope.locals[name], found)
    if name in WORDS:
        return WORDS[name]
    if name == "pi":
        return exact.pi()
    if name in DTYPES:
        return DTYPES[name]
    raise Unbound(name)


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Unknown(f"{value} is neither true nor false")
    return value


def _binary(mark: str, left: l.Expression, right: l.Expression, found: Found) -> Any:
    if mark in ("and", "or"):
        return _joined(mark == "or", left, right, found)
    a, b = value_of(left, found), value_of(right, found)
    match mark:
        case "==":
            return arithmetic.equal(a, b)
        case "!=":
            return not arithmetic.equal(a, b)
        case "<":
            return arithmetic.less(a, b)
        case "<=":
            return arithmetic.not_more(a, b)
        case ">":
            return arithmetic.less(b, a)
        case ">=":
            return arithmetic.not_more(b, a)
        case "in":
            return arithmetic.within(a, b)
    operations = {
        "+": arithmetic.plus,
        "-": arithmetic.minus,
        "*": arithmetic.times,
        "/": arithmetic.over,
        "//": arithmetic.floor_over,
        "%": arithmetic.rest,
    }
    if mark not in operations:
        raise CannotSay(f"`{mark}` between values")
    return operations[mark](a, b)


def _joined(wanted: bool, left: l.Expression, right: l.Expression, found: Found) -> bool:
    """`or` where `wanted`, else `and`: one side that decides is enough, but what has no value on the left takes all with it."""
    if _truth(value_of(left, found)) is wanted:
        return wanted
    return _truth(value_of(right, found))


def listed(items: tuple[l.Expression, ...], found: Found) -> tuple[Any, ...]:
    """The items of a list, those with dots in their places."""
    result: list[Any] = []
    for each_item in items:
        if isinstance(each_item, l.AnyDims):
            raise Unbound("..")
        value = value_of(each_item.inner if isinstance(each_item, l.Splice) else each_item, found)
        if isinstance(each_item, l.Splice):
            if not isinstance(value, tuple):
                raise Unknown(f"{value} is no list")
            result += value
        else:
            result.append(value)
    return tuple(result)


def each(e: l.Each, found: Found) -> tuple[Any, ...]:
    """The items of a comprehension."""
    result = []
    for inner in rounds(e, found):
        if e.condition is None or _truth(value_of(e.condition, inner)):
            result.append(value_of(e.inner, inner))
    return tuple(result)


def rounds(e: l.Each, found: Found) -> list[Found]:
    """The substitutions of each round of a comprehension."""
    lists = [value_of(one, found) for one in e.lists]
    if not all(isinstance(one, tuple) for one in lists) or len({len(one) for one in lists}) > 1:
        raise Unknown("lists that are not in step")
    rows = list(zip(*lists, strict=True))
    if len(e.names) != len(lists):  # one list of lists, each of which is taken apart
        rows = [row[0] for row in rows if isinstance(row[0], tuple) and len(row[0]) == len(e.names)]
    return [replace(found, values={**found.values, **dict(zip(e.names, row, strict=True))}) for row in rows]


def _called(function: str, arguments: tuple[l.Expression, ...], found: Found) -> Any:
    if function == "given":
        return all(value_of(argument, found) is not MISSING for argument in arguments)
    values = listed(arguments, found)
    known = exact.function(function)
    if known is not None:
        return known(arithmetic.number(values[0]))
    if function not in algebra.FUNCTIONS:
        raise CannotSay(f"the function `{function}`")
    try:
        return algebra.FUNCTIONS[function](*values)
    except (TypeError, IndexError) as error:
        raise Unknown(f"`{function}` has no value here: {error}") from None
