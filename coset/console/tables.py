"""What a person reads on stdout: short tables, one fact a line."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.table import Table

CONSOLE = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 200)


def new_table(*columns: str) -> Table:
    """A table with these heads; a column whose head begins with `>` is one of numbers."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, no_wrap=True, justify="right" if column.startswith(">") else "left")
        table.columns[-1].header = column.lstrip(">")
    return table
