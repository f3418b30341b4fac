"""The ops: one folder a dialect. Importing this package imports every file of the folders, and so registers every op."""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages

import coset.ir.builtin

assert coset.ir.builtin  # registered too, whether a file of the folder speaks of its ops or not

for _module in sorted(module.name for module in walk_packages(__path__, f"{__name__}.")):
    import_module(_module)
