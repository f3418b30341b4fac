"""For scripts: how far two arrays are apart. The comparison itself is in `coset/comparing/`. The job `coset.check` is in `coset/api.py`."""

from coset.comparing.check import CheckReport
from coset.comparing.difference import difference

__all__ = ["CheckReport", "difference"]
