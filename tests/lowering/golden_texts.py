"""Text that people read, beside what it was when somebody last looked at it: `goldens/NAME.txt`."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "goldens"
REWRITE = "COSET_REWRITE_GOLDENS"  # set it to write the goldens anew


def read_as_golden(name: str, text: str) -> None:
    """The text is the golden of this name."""
    path = FOLDER / f"{name}.txt"
    if os.environ.get(REWRITE):
        path.write_text(text)
    assert text == path.read_text(), f"the text has changed: set {REWRITE}=1 to write it anew, and look at the difference"
