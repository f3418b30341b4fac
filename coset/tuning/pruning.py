"""What compilers rule out of alternatives, without a device: what they refuse, what spills, what asks for more than the target has."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Timer
from typing import Any

from coset.backends.triton_runtime import Compiler, architecture, triton_version
from coset.backends.tuning_profile import CompilerFacts, Tunings
from coset.ir.errors import CosetError
from coset.ir.extras import MissingExtra
from coset.lowering.triton.choice import KernelChoice
from coset.targets.target import Target
from coset.tuning.tunable import Tunable

COMPILING = 90.0  # s: what compiles for longer is no alternative
Progress = Callable[[str], None]
Compile = Callable[[Tunable, KernelChoice], CompilerFacts]


@dataclass(frozen=True)
class PrunedKernel:
    """A kernel with its survivors, the default first; why others are out, by their text; `left`: what was not compiled in time."""

    tunable: Tunable
    survivors: tuple[KernelChoice, ...]
    facts: Mapping[str, CompilerFacts]
    out: Mapping[str, str]
    left: int = 0

    def summary(self) -> dict[str, Any]:
        """For `--json`."""
        kernel = self.tunable
        return {
            "key": kernel.key, "name": kernel.kernel.name, "family": kernel.family, "count": kernel.count,
            "alternatives": len(kernel.choices), "compiled": len(self.facts), "left": self.left,
            "survivors": [choice.text() for choice in self.survivors], "default": kernel.default.text(),
            "out": {"predicted": len(kernel.choices) - len(kernel.ranked), **Counter(why.split(":")[0] for why in self.out.values())},
        }  # fmt: skip


@dataclass
class Pruning:
    """Compiles alternatives in child processes, several at once, and keeps what is said of each in the profile as soon as it is known. Use
    it as a context manager: it ends its processes."""

    target: Target
    profile: Tunings
    jobs: int
    progress: Progress = lambda _: None
    architecture: str = ""
    versions: str = ""
    compiled: int = field(default=0, init=False)
    compilers: Sequence[Compiler] = field(default=(), init=False)

    def __enter__(self) -> Pruning:
        self.compilers = [Compiler() for _ in range(self.jobs)]
        return self

    def __exit__(self, *_: object) -> None:
        for each in self.compilers:
            each.close()

    def __post_init__(self) -> None:
        found = architecture(self.target)
        if found is None:
            what = f"the file of the target `{self.target.name}` does not say what it is compiled for"
            raise CosetError(what, help="give it numbers.compute_capability, as those of nvidia-h200 have it")
        self.architecture, self.versions = found, triton_version()

    def prune(self, kernels: Sequence[Tunable], seconds: float) -> list[PrunedKernel]:
        """Each kernel's survivors; what is not known yet is compiled, for at most so many seconds."""
        known = {kernel.key: self.profile.facts(self.architecture, self.versions, kernel.key) for kernel in kernels}
        wanting = [(kernel, choice) for kernel in kernels for choice in kernel.ranked if choice.text() not in known[kernel.key]]
        if wanting:
            self.progress(f"compiling {len(wanting)} alternatives of {len(kernels)} kernels for {self.architecture}")
            self._compile(wanting, known, time.monotonic() + seconds)
        return [survivors(kernel, known[kernel.key], self.target) for kernel in kernels]

    def known(self, kernels: Sequence[Tunable]) -> list[PrunedKernel]:
        """As `prune`, with what the profile has by now."""
        facts = ((kernel, self.profile.facts(self.architecture, self.versions, kernel.key)) for kernel in kernels)
        return [survivors(kernel, found, self.target) for kernel, found in facts]

    def _compile(self, wanting: Sequence[tuple[Tunable, KernelChoice]], known: dict[str, dict[str, CompilerFacts]], end: float) -> None:
        free: SimpleQueue[Compiler] = SimpleQueue()
        for each in self.compilers:
            free.put(each)
        pool, total = ThreadPoolExecutor(self.jobs), self.compiled + len(wanting)
        waiting: dict[Future[CompilerFacts], tuple[Tunable, KernelChoice]] = {}
        try:
            for kernel, choice in wanting:
                waiting[pool.submit(_facts, free, self.architecture, kernel, choice)] = kernel, choice
            while waiting and (left := end - time.monotonic()) > 0:
                done, _ = wait(waiting, timeout=left, return_when=FIRST_COMPLETED)
                for future in done:  # this thread alone writes
                    kernel, choice = waiting.pop(future)
                    facts = future.result()
                    self.profile.put_facts(self.architecture, self.versions, kernel.key, choice.text(), facts)
                    known[kernel.key][choice.text()] = facts
                    self.compiled += 1
                    if self.compiled % 50 == 0:
                        self.progress(f"  {self.compiled} of {total}")
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            if waiting:  # time is over, or the user is tired of it
                for each in self.compilers:
                    each.stop()
            pool.shutdown(wait=True)


def _facts(free: SimpleQueue[Compiler], name: str, kernel: Tunable, choice: KernelChoice) -> CompilerFacts:
    """What the compiler says, in a thread of the pool."""
    compiler = free.get()
    watch = Timer(COMPILING, compiler.stop)
    watch.daemon = True
    watch.start()
    try:
        emission = kernel.emission(choice)
        found = compiler.run(kernel.source(choice), emission.launches, name, kernel.sizes)
    except MissingExtra:
        raise
    except CosetError as error:
        return CompilerFacts(refused=error.message if watch.is_alive() else f"compiles for more than {COMPILING:g} s")
    finally:
        watch.cancel()
        free.put(compiler)
    return CompilerFacts(max(each.registers for each in found), sum(each.spilled for each in found), max(each.shared for each in found))


def survivors(kernel: Tunable, facts: Mapping[str, CompilerFacts], target: Target) -> PrunedKernel:
    """What is left of a kernel's alternatives by what is known of them. What spills is out, unless all do; the default stays: it is what
    the others are measured against."""
    known = [choice for choice in kernel.ranked if choice.text() in facts]
    out = {choice.text(): why for choice in known if (why := _refused(facts[choice.text()], choice, target))}
    fitting = [choice for choice in known if choice.text() not in out]
    if any(not facts[choice.text()].spilled for choice in fitting):
        out |= {choice.text(): f"spills: {spilled} B" for choice in fitting if (spilled := facts[choice.text()].spilled)}
    kept = tuple(choice for choice in known if choice == kernel.default or choice.text() not in out)
    told = {choice.text(): facts[choice.text()] for choice in known}
    return PrunedKernel(
        kernel, kept, told, {text: why for text, why in out.items() if text != kernel.default.text()}, len(kernel.ranked) - len(known)
    )


def _refused(facts: CompilerFacts, choice: KernelChoice, target: Target) -> str:
    """Why an alternative does not run on the target; empty where it may."""
    if facts.refused:
        return f"refused: {facts.refused}"
    numbers = {name: found.value for name, found in target.numbers.items()}
    if facts.shared > numbers.get("shared", float("inf")):
        return f"shared: {facts.shared} B"
    if facts.registers > numbers.get("registers_per_thread", float("inf")):
        return f"registers: {facts.registers} of a thread"
    whole = numbers.get("registers", float("inf")) if "compute_capability" in numbers else float("inf")  # elsewhere a SIMD's
    return f"registers: {facts.registers} of {32 * choice.warps} threads" if facts.registers * 32 * choice.warps > whole else ""
