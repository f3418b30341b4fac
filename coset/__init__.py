"""coset: equality saturation for tensor programs. `optimize` is the main job; the layers are subpackages."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

_HOMES = {
    "optimize": "coset.optimizing.pipeline", "Optimized": "coset.optimizing.optimized", "Limits": "coset.egraph.limits",
    "load": "coset.optimizing.running", "with_samples": "coset.comparing.samples",
    "CosetError": "coset.ir.errors", "Refused": "coset.comparing.refused", "Unknown": "coset.comparing.deadline",
    "compile": "coset.compiling", "compiled_graphs": "coset.compiling",
    "verify": "coset.api", "diff": "coset.api", "explain": "coset.api", "bisect": "coset.api", "lower": "coset.api",
    "rule": "coset.rules.written", "names": "coset.rules.spelled", "op": "coset.rules.spelled",
}  # fmt: skip
_CALLED = ("check", "prove")  # modules with the names of jobs, which may be called
__all__ = sorted((*_HOMES, *_CALLED))  # their types are in `__init__.pyi`


def __getattr__(name: str) -> Any:
    """Load the public names when they are first used, so that `import coset` and the command line start fast."""
    if name not in (*__all__, "__version__"):
        raise AttributeError(f"module 'coset' has no attribute '{name}'")
    import importlib

    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("coset")
    elif name in _CALLED:
        value = importlib.import_module(f"coset.{name}")
    else:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


class _JobModule(ModuleType):
    """A module whose name is that of a job: to call it does the job (`coset.api`)."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        import importlib

        return getattr(importlib.import_module("coset.api"), self.__name__.rpartition(".")[2])(*args, **kwargs)


class _Package(ModuleType):
    """This package: when one of its modules is loaded, the module becomes an attribute here, in place of a function of its name."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _CALLED:
            value.__class__ = _JobModule
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted({*__all__, "__version__", *(name for name in globals() if name.startswith("__"))})
