"""What `coset optimize` says while it works: on a terminal one line that moves, else a line for each stage; rule by rule where asked."""

from __future__ import annotations

import math
import sys
from collections import Counter
from types import TracebackType
from typing import TYPE_CHECKING

import click

from coset.egraph.growth import SearchStep, Watch

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live


class Telling:
    """Speaks on stderr, as a context that clears its line at the end. Nothing here starts a thread: the search forks."""

    def __init__(self, seconds: float, *, verbose: bool = False, counted: bool = False, console: Console | None = None) -> None:
        """`seconds`: the limit of a search. `verbose`: say what each iteration and each rule did. `counted`: rules are counted
        in any case."""
        self.seconds = seconds
        self.verbose = verbose
        self.watch = Watch(self.step, self.named, self.chosen, counted=verbose or counted)
        self.live = _line(console) if console is not None or sys.stderr.isatty() else None
        self.stage = ""
        self.last: SearchStep | None = None
        self.costs: list[tuple[float, float]] = []
        self.applied: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.untyped: dict[str, list[str]] = {}
        self.waiting: dict[str, int] = {}
        self.rules: tuple[str, ...] = ()

    def __enter__(self) -> Telling:
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.live is not None:
            self.live.stop()

    def say(self, text: str) -> None:
        """The next stage; or a warning, which stays."""
        if text.startswith("warning:"):
            self._print(text)
            return
        self.stage, self.last = text, None
        if self.live is None:
            click.echo(text, err=True)
        self._draw()

    def named(self, rules: tuple[str, ...]) -> None:
        """A search begins: what the rules are called that its steps have by number."""
        self.rules, self.costs = rules, []

    def step(self, step: SearchStep) -> None:
        """An iteration has ended."""
        grown = step.enodes - (self.last.enodes if self.last is not None else 0)
        self.last = step
        for number, count in step.applied.items():
            self.applied[self.rules[number]] += count
        for number, count in step.refused.items():
            self.refused[self.rules[number]] += count
        for number, why in step.untyped:
            self.untyped.setdefault(self.rules[number], []).append(why)
        self.waiting = {self.rules[number]: count - step.applied.get(number, 0) for number, count in step.matched.items()}
        if self.verbose:
            most = Counter(step.applied).most_common(3)
            rules = ", ".join(f"{self.rules[number]} {count}" for number, count in most)
            self._print(
                f"{step.phase:>12s} {step.iteration + 1:3d}  {step.enodes:7d} e-nodes ({grown:+d})  {step.eclasses:7d} classes  "
                f"{step.seconds:6.2f} s  {rules}"
            )
        self._draw()

    def chosen(self, cost: float, input_cost: float) -> None:
        """What was chosen for a piece of the program, and what the piece costs as it was (s)."""
        self.costs.append((cost, input_cost))
        self._draw()

    def line(self) -> str:
        """The line that moves."""
        parts = [self.stage if self.last is None else "searching"]
        if self.last is not None:
            left = max(0.0, self.seconds - self.last.seconds)
            parts += [
                f"{self.last.phase} {self.last.iteration + 1}", f"{self.last.enodes:,} e-nodes", f"{self.last.eclasses:,} classes",
                f"{left:.0f} s left",
            ]  # fmt: skip
        if self.costs and all(map(math.isfinite, self.costs[-1])):
            cost, input_cost = (sum(side) * 1e3 for side in zip(*self.costs, strict=True))
            parts.append(f"best {cost:.3f} of {input_cost:.3f} ms" + (f" in {len(self.costs)} pieces" if len(self.costs) > 1 else ""))
        return " · ".join(parts)

    def finish(self) -> None:
        """Say what each rule did, where that was asked for."""
        if not self.verbose:
            return
        for name, reasons in self.untyped.items():
            self._print(f"{name}: {len(reasons)} situations dropped, in which its sides have no types or other ones: {reasons[0]}")
        if not (self.applied or self.refused or self.waiting):
            return
        names = sorted({*self.applied, *self.refused, *self.waiting}, key=lambda name: (-self.applied[name], name))
        width = max(map(len, names))
        self._print(f"{'rule':{width}s} {'matches':>9s} {'applied':>9s} {'refused':>9s}")
        for name in names:
            matches = self.applied[name] + self.waiting.get(name, 0)
            self._print(f"{name:{width}s} {matches:9d} {self.applied[name]:9d} {self.refused[name]:9d}")
        self._print("matches: applied, or left when the search ended; refused: situations in which a condition of the rule does not hold")

    def _print(self, text: str) -> None:
        if self.live is None:
            click.echo(text, err=True)
        else:
            from rich.text import Text

            self.live.console.print(Text(text), soft_wrap=True)

    def _draw(self) -> None:
        if self.live is not None:
            from rich.text import Text

            self.live.update(Text(self.line(), style="dim", no_wrap=True, overflow="ellipsis"), refresh=True)


def _line(console: Console | None) -> Live | None:
    """A line that moves, where the terminal can move it. What draws it is loaded here: most commands that are scripted have no terminal."""
    from rich.console import Console
    from rich.live import Live

    own = console or Console(stderr=True, highlight=False)
    if not own.is_terminal or own.is_dumb_terminal:
        return None
    return Live(console=own, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False)
