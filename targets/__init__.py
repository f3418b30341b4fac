"""Targets: one file a machine, found by walking this folder. `import coset.targets` registers every one of them."""

from __future__ import annotations

import importlib
import pkgutil

for _found in sorted(module.name for module in pkgutil.iter_modules(__path__)):
    importlib.import_module(f"{__name__}.{_found}")
