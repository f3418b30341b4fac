"""Where the public names are. Two of them are modules as well, which may be called."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

HOMES = {
    "optimize": "coset.optimizing.pipeline", "Optimized": "coset.optimizing.optimized", "Limits": "coset.egraph.limits",
    "load": "coset.optimizing.running", "with_samples": "coset.comparing.samples",
    "CosetError": "coset.ir.errors", "Refused": "coset.comparing.refused", "Unknown": "coset.comparing.deadline",
    "compile": "coset.compiling", "compiled_graphs": "coset.compiling",
    "verify": "coset.api", "diff": "coset.api", "explain": "coset.api", "bisect": "coset.api", "lower": "coset.api",
    "rule": "coset.rules.written", "names": "coset.rules.spelled", "op": "coset.rules.spelled",
}  # fmt: skip
CALLED = ("check", "prove")  # modules with the names of jobs


def loaded(name: str) -> Any:
    """The public name, from where it is.

    Raises:
        AttributeError: there is none.
    """
    if name == "__all__":
        return sorted((*HOMES, *CALLED))
    if name == "__version__":
        from importlib.metadata import version

        return version("coset")
    if name in CALLED:
        module = import_module(f"coset.{name}")
        module.__class__ = _JobModule
        return module
    if name not in HOMES:
        raise AttributeError(f"module 'coset' has no attribute '{name}'")
    return getattr(import_module(HOMES[name]), name)


class _JobModule(ModuleType):
    """A module whose name is that of a job: to call it does the job (`coset.api`)."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._job(*args, **kwargs)

    @property
    def _job(self) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(import_module("coset.api"), self.__name__.rpartition(".")[2])
        return found

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self._job)

    def __reduce__(self) -> tuple[Any, ...]:
        return loaded, (self.__name__.rpartition(".")[2],)
