"""coset: equality saturation for tensor programs. `optimize` is the main job; the layers are subpackages."""

from __future__ import annotations

from typing import Any

_HOMES = {
    "optimize": "coset.optimizing.pipeline", "Optimized": "coset.optimizing.pipeline", "Limits": "coset.egraph.limits",
    "load": "coset.optimizing.running", "with_samples": "coset.comparing.samples",
    "CosetError": "coset.ir.errors", "Refused": "coset.comparing.refused", "Unknown": "coset.comparing.deadline",
    "compile": "coset.compiling", "compiled_graphs": "coset.compiling",
    "rule": "coset.rules.written", "names": "coset.rules.spelled", "op": "coset.rules.spelled",
}  # fmt: skip
__all__ = sorted(_HOMES)  # their types are in `__init__.pyi`


def __getattr__(name: str) -> Any:
    """Load the public names when they are first used, so that `import coset` and the command line start fast."""
    if name not in _HOMES:
        raise AttributeError(f"module 'coset' has no attribute '{name}'")
    import importlib

    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
