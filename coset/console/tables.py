"""What a person reads on stdout: short tables, one fact a line."""

from __future__ import annotations

import sys

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

CONSOLE = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 200)


class _Lines(Table):
    """A table with a line for each row: if the lines are too long, the last column is cut, and no other."""

    def add_row(self, *cells: RenderableType | None, **how: object) -> None:
        """Add a row; the last cell may have markup."""
        *first, last = cells
        cut = Text.from_markup(last, overflow="ellipsis") if isinstance(last, str) else last
        if isinstance(cut, Text):
            cut.no_wrap = True
        super().add_row(*first, cut, **how)  # type: ignore[arg-type]


def new_table(*columns: str) -> Table:
    """A table with these heads; a column whose head begins with `>` is one of numbers."""
    table = _Lines(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, no_wrap=column is not columns[-1], justify="right" if column.startswith(">") else "left")
        table.columns[-1].header = column.lstrip(">")
    return table
