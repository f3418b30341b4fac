"""The one door to egglog: commands as objects, runs, sizes and frozen rows. Nothing else imports the package."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Any

Command = Any
Expression = Any


def _bindings() -> Any:
    """`egglog.bindings` without the rest of the package, whose classes for Python programs (and `black`) take 0.1 s to load."""
    name = "egglog.bindings"
    package = None if "egglog" in sys.modules else PathFinder.find_spec("egglog")
    spec = None if package is None else PathFinder.find_spec(name, package.submodule_search_locations)
    if name not in sys.modules and spec is not None and spec.loader is not None:
        sys.modules[name] = module = module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    if name in sys.modules:
        return sys.modules[name]
    from egglog import bindings

    return bindings


egg = _bindings()
_SPAN = egg.PanicSpan()
_INTEGERS: dict[int, Any] = {}


class EngineError(AssertionError):
    """egglog refused a command: a mistake of ours, never the user's."""


class EnginePanic(EngineError):
    """egglog came to an end that its makers did not foresee, such as no memory for a table."""


def integer(value: int) -> Expression:
    """The literal `value`; small ones are shared."""
    found = _INTEGERS.get(value)
    if found is None:
        found = egg.Lit(_SPAN, egg.Int(value))
        if len(_INTEGERS) < 100_000:
            _INTEGERS[value] = found
    return found


def call(name: str, *arguments: Expression) -> Expression:
    """`(name arguments...)`."""
    return egg.Call(_SPAN, name, list(arguments))


def insert(name: str, *arguments: Expression) -> Command:
    """Insert a row of a relation or build a node."""
    return egg.ActionCommand(egg.Expr_(_SPAN, call(name, *arguments)))


def set_(name: str, arguments: Sequence[Expression], value: Expression) -> Command:
    """Set `name(arguments)` to `value`."""
    return egg.ActionCommand(egg.Set(_SPAN, name, list(arguments), value))


def union(left: Expression, right: Expression) -> Command:
    """Make two expressions one class."""
    return egg.ActionCommand(egg.Union(_SPAN, left, right))


_KEPT: list[Any] | None = None


def keep_engines() -> None:
    """Let no e-graph be freed in this process: freeing one waits for threads that a forked process has not."""
    global _KEPT
    _KEPT = []


class Engine:
    """One egglog e-graph."""

    def __init__(self) -> None:
        self._egraph = egg.EGraph()
        if _KEPT is not None:
            _KEPT.append(self._egraph)

    def parse(self, text: str) -> None:
        """Run declarations given as text. Never a graph: egglog keeps the source with each node, which is quadratic."""
        self.run(self._egraph.parse_program(text))

    def run(self, commands: Sequence[Command]) -> Any:
        """Run commands and return egglog's outputs.

        Raises:
            EngineError: egglog refused. EnginePanic: it panicked, which arrives as BaseException.
        """
        try:
            return self._egraph.run_program(*commands)
        except (KeyboardInterrupt, SystemExit, MemoryError):
            raise
        except Exception as error:
            raise EngineError(f"egglog: {error}") from error
        except BaseException as error:
            raise EnginePanic(f"egglog: {error}") from error

    def ruleset(self, name: str, saturate: bool = False) -> None:
        """Run a ruleset once, or until nothing changes."""
        schedule: Any = egg.Run(_SPAN, egg.RunConfig(name))
        if saturate:
            schedule = egg.Saturate(_SPAN, schedule)
        self.run([egg.RunSchedule(schedule)])

    def together(self, name: str, rulesets: Sequence[str]) -> None:
        """Run the rules of several rulesets once, as one ruleset by the new name `name`: the e-graph is rebuilt once for all."""
        if rulesets:
            self.run([egg.UnstableCombinedRuleset(_SPAN, name, list(rulesets)), egg.RunSchedule(egg.Run(_SPAN, egg.RunConfig(name)))])

    def sizes(self) -> dict[str, int]:
        """Rows of each table."""
        (output,) = self.run([egg.PrintSize(_SPAN, None)])
        return dict(output.sizes)

    def size(self, table: str) -> int:
        """Rows of one table."""
        (output,) = self.run([egg.PrintSize(_SPAN, table)])
        size: int = output.size
        return size

    def integers(self, relation: str) -> Iterator[tuple[int, ...]]:
        """The rows of a relation over integers."""
        (output,) = self.run([egg.PrintFunction(_SPAN, relation, None, None, egg.DefaultPrintFunctionMode())])
        get = output.termdag.get
        values: dict[int, int] = {}  # by place in the dag, which has each integer once: rows share most of theirs
        for row, _ in output.terms:
            arguments = get(row).args
            for argument in arguments:
                if argument not in values:
                    values[argument] = get(argument).value.value
            yield tuple([values[argument] for argument in arguments])

    def frozen(self) -> tuple[dict[str, Any], Any]:
        """All tables (rows with `inputs` and `output`; class ids are hashable) and the reader of integers."""
        return self._egraph.freeze().functions, self._egraph.value_to_i64
