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
    rows, titles, ends = _with_titles(table, lines)
    grid = fitted(width, headings, rows, right=numbers, wrap=names, drop=drop)
    for place in titles:
        grid.rows[place].style = "italic"
    for place in ends:
        grid.rows[place].end_section = True
    notes = [] if grid.caption is None else [f"{grid.caption}; {rest}"]
    if more := len(table.rows) - len(lines):
        notes.insert(0, f"and {more} more in the CSV file")
    if notes:
        grid.caption, grid.caption_justify = "; ".join(notes), "left"
    return grid


def _with_titles(
    table: "Table", lines: list[list[str]]
) -> tuple[list[list[str]], list[int], list[int]]:
    """The lines with the titles of sections, the places of these, and those of last lines."""
    rows: list[list[str]] = []
    titles, ends = [], []
    column = next((place for place, one in enumerate(table.shown) if one.left), 0)
    for name, places in table.sections():
        if name:
            titles.append(len(rows))
            rows.append(["" if place != column else name for place in range(len(table.shown))])
        rows += [lines[place] for place in places]
        ends.append(len(rows) - 1)
    return rows, titles, ends[:-1]
