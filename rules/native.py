"""Native functions: Python that code registers for conditions and values of rules, `native.name(a, b)`. Rule files stay data.

The prover does not look into one: a rule that calls one is `tested` at most, and the lock file's hash of it has the function's source.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from coset.ir.constants import Constant
from coset.ir.errors import CosetError
from coset.ir.types import DType
from coset.rules.scalar import Undefined

if TYPE_CHECKING:
    from coset.rules import syntax

PREFIX = "native."
# what a function may take and give, and the kinds of names of a rule that have such values
KINDS: dict[str, frozenset[str]] = {
    "int": frozenset({"int", "dim", "any"}),
    "float": frozenset({"float", "int", "dim", "any"}),
    "bool": frozenset({"bool", "any"}),
    "string": frozenset({"string", "combiner", "direction", "any"}),
    "ints": frozenset({"ints", "dims", "pack", "permutation", "axes", "any"}),
    "dtype": frozenset({"dtype", "any"}),
    "constant": frozenset({"constant", "any"}),
}


@dataclass(frozen=True)
class Native:
    """A registered function: what it takes and gives, in words of `KINDS`, and a digest of its source."""

    name: str
    takes: tuple[str, ...]
    gives: str
    document: str
    digest: str
    function: Callable[..., Any]

    @property
    def usage(self) -> str:
        """How it is written."""
        return f"{self.name}({', '.join(self.takes)})"

    def compute(self, *arguments: Any) -> Any:
        """Its value. A dim that is a symbol is no integer, so that the rule does not fire.

        Raises:
            Undefined: an argument is not of the kind that it takes.
            CosetError: it fails, or gives something of another kind than it says.
        """
        if not all(_is_a(value, kind) for value, kind in zip(arguments, self.takes, strict=True)):
            raise Undefined
        given = [value.array() if isinstance(value, Constant) else value for value in arguments]
        try:
            result = self.function(*given)
        except Undefined:
            raise
        except Exception as error:
            what = f"`{self.name}` failed on {', '.join(map(str, given))}: {type(error).__name__}: {error}"
            raise CosetError(what, help="a native function is pure and has a value for all of its kind, or raises Undefined") from error
        result = tuple(result) if isinstance(result, list) else result
        if not _is_a(result, self.gives):
            raise CosetError(
                f"`{self.name}` is said to give {self.gives}, but gave {result!r}", help="correct it, or what it is said to give"
            )
        return result


_REGISTRY: dict[str, Native] = {}


def native(*takes: str, gives: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that registers a pure function of arguments of these kinds, as `native.` and its name.

    `int` and `ints` are Python's (a symbolic size has no value there: the rule does not fire), `dtype` a `DType`, `constant` an array. The
    function raises `coset.rules.scalar.Undefined` where it has no value.

    Raises:
        CosetError: no such kind, another number of parameters, or a name that is taken by another function.
    """
    for kind in (*takes, gives):
        if kind not in KINDS or (kind == "constant" and kind is gives):
            raise CosetError(f"`{kind}` is no kind that a native function has", help=f"it takes: {', '.join(KINDS)}")

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        name = PREFIX + function.__name__
        if len(inspect.signature(function).parameters) != len(takes):
            raise CosetError(f"`{name}` has {len(inspect.signature(function).parameters)} parameters and takes {len(takes)} kinds")
        document = inspect.getdoc(function) or ""
        if not document:
            raise CosetError(f"`{name}` does not say what it is", help="give it a docstring of one sentence")
        found = Native(name, takes, gives, document, _digest(function, takes, gives), function)
        if name in _REGISTRY and _REGISTRY[name].digest != found.digest:
            raise CosetError(f"there is another native function `{name}`", help="give yours another name")
        _REGISTRY[name] = found
        return function

    return enter


def find_native(name: str) -> Native | None:
    """The function that is written `name` in a rule, if there is one."""
    return _REGISTRY.get(name)


def all_natives() -> list[Native]:
    """Every registered function, by name."""
    return [_REGISTRY[name] for name in sorted(_REGISTRY)]


def withdraw(name: str) -> None:
    """Take back a registered function."""
    del _REGISTRY[name]


def natives_in(expressions: Iterable[syntax.Expression | syntax.Spread | None]) -> tuple[Native, ...]:
    """The native functions that are called in `expressions`, by name."""
    from coset.rules import syntax  # which what only calls them does without

    called = {part.name for each in expressions for part in syntax.walk(each) if isinstance(part, syntax.Invocation)}
    return tuple(_REGISTRY[name] for name in sorted(called) if name in _REGISTRY)


def _digest(function: Callable[..., Any], takes: tuple[str, ...], gives: str) -> str:
    """A hash of the source, or where there is none (a prompt) of the code: of this function, not of others that it calls."""
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        source = repr((function.__code__.co_code, function.__code__.co_consts, function.__code__.co_names))
    return blake2b(f"{takes} {gives}\n{source}".encode(), digest_size=8).hexdigest()


def _is_a(value: Any, kind: str) -> bool:
    if kind == "int":
        return isinstance(value, int) and not isinstance(value, bool)
    if kind == "float":
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "ints":
        return isinstance(value, tuple) and all(_is_a(item, "int") for item in value)
    return isinstance(value, {"bool": bool, "string": str, "dtype": DType, "constant": Constant}[kind])
