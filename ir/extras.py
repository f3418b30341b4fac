"""Optional tools, which extras of the package bring."""

from __future__ import annotations

from coset.ir.errors import CosetError


class MissingExtra(CosetError):
    """An optional tool that is not installed; the message says which extra brings it."""
