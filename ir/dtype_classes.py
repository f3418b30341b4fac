"""The dtype classes of the rule language, by name."""

from __future__ import annotations

from coset.ir.types import BOOL, DTYPES

CLASSES = {
    "float": frozenset(d for d in DTYPES.values() if d.kind == "float"),
    "int": frozenset(d for d in DTYPES.values() if d.kind in ("int", "uint")),
    "signed": frozenset(d for d in DTYPES.values() if d.kind == "int"),
    "unsigned": frozenset(d for d in DTYPES.values() if d.kind == "uint"),
    "bool": frozenset({BOOL}),
    "complex": frozenset(d for d in DTYPES.values() if d.kind == "complex"),
    "number": frozenset(d for d in DTYPES.values() if d.kind in ("float", "int", "uint", "complex")),
    "any": frozenset(DTYPES.values()),
}
