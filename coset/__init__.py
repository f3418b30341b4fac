"""coset: equality saturation for tensor programs. `optimize` is the main job; the layers are subpackages. Types are in `__init__.pyi`."""

import sys
from types import ModuleType
from typing import Any


def __getattr__(name: str) -> Any:
    """Load the public names when they are first used, so that `import coset` and the command line start fast."""
    from coset.public import loaded

    return globals().setdefault(name, loaded(name))


def __dir__() -> list[str]:
    return sorted({*__getattr__("__all__"), "__version__", *(name for name in globals() if name.startswith("__"))})


class _Package(ModuleType):
    """The package. Its modules `check` and `prove` do not become attributes when they are loaded: jobs have these names."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in ("check", "prove"):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
