"""The ops: one file a dialect. Importing this package imports every file of the folder, and so registers every op."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

import coset.ir.builtin

assert coset.ir.builtin  # registered too, whether a file of the folder speaks of its ops or not

for _module in sorted(module.name for module in iter_modules(__path__)):
    import_module(f"{__name__}.{_module}")
