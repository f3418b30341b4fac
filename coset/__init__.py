"""coset: equality saturation for tensor programs. `optimize` is the main job; the layers are subpackages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coset.comparing.deadline import Unknown
    from coset.comparing.refused import Refused
    from coset.comparing.samples import with_samples
    from coset.compiling import compile, compiled_graphs
    from coset.egraph.limits import Limits
    from coset.ir.errors import CosetError
    from coset.optimizing.pipeline import Optimized, optimize
    from coset.optimizing.running import load
    from coset.rules.spelled import names, op
    from coset.rules.written import rule

__all__ = [
    "CosetError", "Limits", "Optimized", "Refused", "Unknown", "compile", "compiled_graphs", "load", "names", "op", "optimize", "rule",
    "with_samples",
]  # fmt: skip

_HOMES = {
    "optimize": "coset.optimizing.pipeline", "Optimized": "coset.optimizing.pipeline", "Limits": "coset.egraph.limits",
    "load": "coset.optimizing.running", "with_samples": "coset.comparing.samples",
    "CosetError": "coset.ir.errors", "Refused": "coset.comparing.refused", "Unknown": "coset.comparing.deadline",
    "compile": "coset.compiling", "compiled_graphs": "coset.compiling",
    "rule": "coset.rules.written", "names": "coset.rules.spelled", "op": "coset.rules.spelled",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Load the public names when they are first used, so that `import coset` and the command line start fast."""
    if name not in _HOMES:
        raise AttributeError(f"module 'coset' has no attribute '{name}'")
    import importlib

    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
