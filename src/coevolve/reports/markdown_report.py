"""A report as Markdown; its numbers are in a comment at the end."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from coevolve.formatting import json_text, visible
from coevolve.reports.report_words import (
    SECTIONS,
    cell,
    facts,
    findings,
    headline,
    incomplete,
    is_number,
    provenance,
)

NUMBERS_MARK = "<!-- numbers of this report: "
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~$&]|^[-+#=]|^\d+(?=[.)]))")
"""What Markdown is made of: some characters, and others at the beginning of a line."""


def markdown_report(numbers: Mapping[str, Any], pictures: Mapping[str, str]) -> str:
    """The report, from its numbers; `pictures` are paths of the figures by name, or empty."""
    summary = numbers["summary"]
    parts = [f"# {text(summary['name'])}: report", ""]
    parts += [f"**{text(headline(summary))}**", ""]
    for warning in summary["warnings"]:
        parts += [f"> **Warning.** {text(warning)}", ""]
    for sentence in findings(summary):
        parts += [text(sentence), ""]
    parts += [*_pairs(("", ""), facts(summary)), ""]
    for name, (title, figures) in SECTIONS.items():
        parts += [f"## {title}", ""]
        for figure in figures:
            picture = pictures.get(figure, "")
            parts += _figure(numbers["figures"][figure], picture, len(figures) > 1)
        if name == "failures" and numbers["incidents"]["rows"]:
            parts += ["### Incidents", "", *_table(numbers["incidents"]), ""]
    parts += ["## Winner", "", *_winner(numbers["winner"]), ""]
    parts += ["## Configuration and provenance", ""]
    found = numbers["provenance"]
    parts += [*_pairs(("", ""), provenance(found, numbers["version"])), ""]
    for title, values in (
        ("Configuration", found["config"]),
        ("Fingerprint", found["fingerprint"]),
    ):
        if values:
            shown = ((k, v if isinstance(v, str) else json_text(v)) for k, v in values.items())
            parts += [f"### {title}", "", *_pairs(("key", "value"), shown), ""]
    return "\n".join([*parts, f"{NUMBERS_MARK}{_embedded(numbers)} -->", ""])


def _embedded(numbers: Mapping[str, Any]) -> str:
    """JSON that cannot end the comment around it."""
    escaped = json_text(numbers, allow_nan=False).replace("<", "\\u003c").replace(">", "\\u003e")
    return re.sub(r'"(?:[^"\\]|\\.)*"', lambda found: found[0].replace("--", "-\\u002d"), escaped)


def text(foreign: str) -> str:
    r"""A foreign text in one line that no Markdown is made of.

    >>> text("a *b* <c>")
    'a \\*b\\* \\<c\\>'
    """
    line = " ".join(visible(foreign).split())
    return _SPECIAL.sub(lambda found: _escaped(found[0]), line)


def _escaped(found: str) -> str:
    return f"{found}\\" if found.isdigit() else f"\\{found}"


def _figure(found: Mapping[str, Any], picture: str, titled: bool) -> Iterator[str]:
    if titled:
        yield from (f"### {text(found['title'])}", "")
    if picture:
        yield from (f"![{text(found['title'])}]({picture})", "")
    yield from (text(found["caption"]), "")
    if found["rows"]:
        yield from (*_table(found), "")


def _table(found: Mapping[str, Any]) -> Iterator[str]:
    columns, rows = found["columns"], found["rows"]
    right = [
        all(row[at] is None or is_number(row[at]) for row in rows) for at in range(len(columns))
    ]
    yield _line([text(name) for name in columns])
    yield _line(["---:" if end else "---" for end in right])
    for row in rows:
        yield _line([text(cell(name, value)) for name, value in zip(columns, row, strict=True)])
    if cut := incomplete(len(rows), found["all_rows"], "rows"):
        yield from ("", cut)


def _pairs(heads: tuple[str, str], rows: Iterator[tuple[str, str]]) -> Iterator[str]:
    yield _line(heads)
    yield _line(["---", "---"])
    for label, value in rows:
        yield _line([text(label), text(value)])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _winner(found: Mapping[str, Any] | None) -> Iterator[str]:
    if found is None:
        yield "There is no winner yet."
        return
    where = "a starting harness" if not found["round"] else f"from round {found['round']}"
    yield from (f"**{text(found['name'])}**, {where}.", "")
    if found["hypothesis"]:
        yield from (f"Hypothesis: {text(found['hypothesis'])}", "")
    if found["parent"] is not None:
        yield from (f"### What changed from {text(found['parent'])}", "")
        yield from _listing(found["diff"], "diff")
    for one in found["files"]:
        yield from (f"### {text(one['path'])} ({one['bytes']:,} bytes)", "")
        yield from _listing(one, "")
    if cut := incomplete(len(found["files"]), found["all_files"], "files"):
        yield from (cut, "")


def _listing(found: Mapping[str, Any], language: str) -> Iterator[str]:
    """Lines in a fence that none of them can close."""
    lines = [line.replace("\n", " ") for line in found["lines"]]
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from (f"{fence}{language}", *(lines or [""]), fence, "")
    if cut := incomplete(len(lines), found["all_lines"], "lines"):
        yield from (cut, "")
