"""A table of the paper on a terminal."""

import textwrap
from typing import TYPE_CHECKING

from rich.table import Table as Grid

from coevolve.cli.console_output import fitted

if TYPE_CHECKING:
    from coevolve_reproductions.tables import Table


def table_grid(table: "Table", width: int, rest: str = "the CSV file has them") -> Grid:
    """The table; names wrap at spaces, and columns are left out where they do not fit.

    These are the columns that the table names first, then the last ones; `rest` says where they
    are.
    """
    lines = table.lines()
    headings: list[str] = []
    for place, column in enumerate(table.shown):
        longest = max(
            [len(line[place]) for line in lines] + list(map(len, column.heading.split()))
        )
        heading = "\n".join(textwrap.wrap(column.heading, longest, break_on_hyphens=False))
        while heading in headings:  # names of pools and models may be equal to other headings
            heading += " "
        headings.append(heading)
    numbers = [head for head, col in zip(headings, table.shown, strict=True) if not col.left]
    names = [head for head, col in zip(headings, table.shown, strict=True) if col.left]
    by_name = {column.name: head for head, column in zip(headings, table.shown, strict=True)}
    first = [by_name[name] for name in table.minor if name in by_name]
    drop = [*first, *(head for head in reversed(numbers[1:]) if head not in first)]
    grid = fitted(width, headings, lines, right=numbers, wrap=names, drop=drop)
    notes = [] if grid.caption is None else [f"{grid.caption}; {rest}"]
    for _, places in table.sections()[:-1]:
        grid.rows[places[-1]].end_section = True
    if more := len(table.rows) - len(lines):
        notes.insert(0, f"and {more} more in the CSV file")
    if notes:
        grid.caption, grid.caption_justify = "; ".join(notes), "left"
    return grid
