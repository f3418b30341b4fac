"""The ops: one file a dialect. Importing this package imports every file of the folder, and so registers every op."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

for _module in sorted(module.name for module in iter_modules(__path__)):
    import_module(f"{__name__}.{_module}")
