"""Parts of HTML that the report and the pages share: tables of numbers, listings of files."""

from collections.abc import Iterator, Mapping
from typing import Any

from coevolve.formatting import markup
from coevolve.reports.report_words import cell, incomplete, is_number


def data_table(found: Mapping[str, Any], label: str) -> Iterator[str]:
    """A table with numbers at the right; `found` has columns, rows, and how many there are."""
    columns, rows = found["columns"], found["rows"]
    right = [
        all(row[at] is None or is_number(row[at]) for row in rows) for at in range(len(columns))
    ]
    yield f'<div class="scroll" tabindex="0" role="region" aria-label="{markup(label)}"><table>'
    heads = (
        f"<th{_end(end)}>{markup(name)}</th>" for name, end in zip(columns, right, strict=True)
    )
    yield f"<thead><tr>{''.join(heads)}</tr></thead><tbody>"
    for row in rows:
        cells = zip(columns, row, right, strict=True)
        texts = (f"<td{_end(end)}>{markup(cell(name, value))}</td>" for name, value, end in cells)
        yield f"<tr>{''.join(texts)}</tr>"
    yield "</tbody></table></div>"
    if cut := incomplete(len(rows), found["all_rows"], "rows"):
        yield f"<p>{cut}</p>"


def _end(right: bool) -> str:
    return ' class="n"' if right else ""


def listing(found: Mapping[str, Any], label: str, *, diff: bool) -> Iterator[str]:
    """The lines of a file, or of a diff; `found` has them, and how many there are."""
    if not found["lines"]:
        yield "<p>Nothing.</p>"
        return
    if diff:
        spans = "".join(
            f'<span class="{line_kind(line)}">{markup(line)}\n</span>' for line in found["lines"]
        )
        body = spans
    else:
        body = markup("\n".join(found["lines"]))
    yield f'<pre tabindex="0" role="region" aria-label="{markup(label, 200)}">{body}</pre>'
    if cut := incomplete(len(found["lines"]), found["all_lines"], "lines"):
        yield f"<p>{cut}</p>"


def line_kind(line: str) -> str:
    """The class of a line of a diff."""
    if line.startswith(("+++", "---", "@@")):
        return "h"
    return {"+": "a", "-": "d"}.get(line[:1], "s")
