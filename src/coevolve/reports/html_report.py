"""A report as one HTML file: it opens offline, asks for nothing, and runs no script."""

import base64
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from importlib.resources import files
from typing import Any

from coevolve.figures import style_sheet
from coevolve.formatting import json_text, markup
from coevolve.reports.html_parts import data_table, listing
from coevolve.reports.report_words import (
    SECTIONS,
    facts,
    findings,
    headline,
    incomplete,
    provenance,
)

NUMBERS_ID = "numbers"
"""The id of the element with the numbers of the report as JSON."""


def html_report(numbers: Mapping[str, Any], pictures: Mapping[str, str]) -> str:
    """The report, from its numbers and the SVG of each figure.

    Everything that is not a picture is made from the numbers.
    """
    style = f"{_css()}\n{style_sheet()}"
    name = numbers["summary"]["name"]
    parts = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(style)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>{markup(name, 200)}: report</title>",
        f"<style>{style}</style>",
        "</head>",
        "<body>",
        *_body(numbers, pictures),
        f'<script type="application/json" id="{NUMBERS_ID}">{_embedded(numbers)}</script>',
        "</body>",
        "</html>",
        "",
    ]
    return "\n".join(parts)


def _css() -> str:
    return files("coevolve.reports").joinpath("report.css").read_text("utf-8").strip()


def _policy(style: str) -> str:
    """A Content-Security-Policy: nothing is loaded, and only the style of this file applies."""
    digest = base64.b64encode(sha256(style.encode()).digest()).decode()
    rules = (
        "default-src 'none'",
        f"style-src 'sha256-{digest}'",
        "base-uri 'none'",
        "form-action 'none'",
    )
    return "; ".join(rules)


def _embedded(numbers: Mapping[str, Any]) -> str:
    """JSON that cannot end its element; it has no character beyond ASCII."""
    text = json_text(numbers, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _body(numbers: Mapping[str, Any], pictures: Mapping[str, str]) -> Iterator[str]:
    summary = numbers["summary"]
    yield "<header>"
    yield f'<p class="of">Search report · protocol {markup(summary["protocol"], 80)}</p>'
    yield f"<h1>{markup(summary['name'], 200)}</h1>"
    yield "</header>"
    yield _navigation()
    yield "<main>"
    yield from _section("summary", "Summary", _summary(summary))
    for name, (title, figures) in SECTIONS.items():
        inside: list[str] = []
        for figure in figures:
            inside += _figure(numbers["figures"][figure], pictures[figure], len(figures) > 1)
        if name == "failures":
            inside += _incidents(numbers["incidents"])
        yield from _section(name, title, inside)
    yield from _section("winner", "Winner", _winner(numbers["winner"]))
    yield from _section("provenance", "Configuration and provenance", _provenance(numbers))
    yield "</main>"


def _navigation() -> str:
    titles = {
        "summary": "Summary",
        **{name: title for name, (title, _) in SECTIONS.items()},
        "winner": "Winner",
        "provenance": "Provenance",
    }
    links = "".join(f'<a href="#{name}">{title}</a>' for name, title in titles.items())
    return f'<nav aria-label="Sections">{links}</nav>'


def _section(name: str, title: str, inside: Iterable[str]) -> Iterator[str]:
    yield f'<section id="{name}" aria-labelledby="{name}-title">'
    yield f'<h2 id="{name}-title">{title}</h2>'
    yield from inside
    yield "</section>"


def _summary(found: Mapping[str, Any]) -> Iterator[str]:
    yield f'<p class="headline">{markup(headline(found))}</p>'
    for text in found["warnings"]:
        yield f'<p class="warning"><strong>Warning.</strong> {markup(text)}</p>'
    for text in findings(found):
        yield f"<p>{markup(text)}</p>"
    yield "<dl>"
    for label, value in facts(found):
        yield f"<div><dt>{markup(label)}</dt><dd>{markup(value, 300)}</dd></div>"
    yield "</dl>"


def _figure(found: Mapping[str, Any], picture: str, titled: bool) -> Iterator[str]:
    if titled:
        yield f"<h3>{markup(found['title'])}</h3>"
    yield f'<figure id="figure-{found["name"]}">'
    label = markup(f"Figure: {found['title']}")
    yield f'<div class="picture" tabindex="0" role="group" aria-label="{label}">{picture}</div>'
    yield f"<figcaption>{markup(found['caption'])}</figcaption>"
    yield "</figure>"
    if found["rows"]:
        yield "<details><summary>Numbers</summary>"
        yield from data_table(found, f"Numbers of: {found['title']}")
        yield "</details>"


def _incidents(found: Mapping[str, Any]) -> Iterator[str]:
    if found["rows"]:
        yield "<h3>Incidents</h3>"
        yield from data_table(found, "Incidents")


def _winner(found: Mapping[str, Any] | None) -> Iterator[str]:
    if found is None:
        yield "<p>There is no winner yet.</p>"
        return
    where = "a starting harness" if not found["round"] else f"from round {found['round']}"
    yield f"<p><strong>{markup(found['name'], 200)}</strong>, {where}.</p>"
    if found["hypothesis"]:
        yield f"<p>Hypothesis: {markup(found['hypothesis'])}</p>"
    if found["parent"] is not None:
        yield f"<h3>What changed from {markup(found['parent'], 200)}</h3>"
        yield from listing(found["diff"], "Difference from the parent", diff=True)
    for one in found["files"]:
        yield f"<h3>{markup(one['path'], 200)}</h3>"
        yield f"<details><summary>{one['bytes']:,} bytes</summary>"
        yield from listing(one, one["path"], diff=False)
        yield "</details>"
    if cut := incomplete(len(found["files"]), found["all_files"], "files"):
        yield f"<p>{cut}</p>"


def _provenance(numbers: Mapping[str, Any]) -> Iterator[str]:
    found = numbers["provenance"]
    yield '<dl class="long">'
    for label, value in provenance(found, numbers["version"]):
        yield f"<div><dt>{markup(label)}</dt><dd>{markup(value)}</dd></div>"
    yield "</dl>"
    for title, values in (
        ("Configuration", found["config"]),
        ("Fingerprint", found["fingerprint"]),
    ):
        if values:
            yield f"<details><summary>{title}</summary>"
            yield '<dl class="long">'
            for key, value in values.items():
                text = value if isinstance(value, str) else json_text(value, ascii=False)
                yield f"<div><dt>{markup(key)}</dt><dd>{markup(text, 1000)}</dd></div>"
            yield "</dl></details>"
    yield (
        "<p>Check every number of this report against the journal: "
        "<code>coevolve report RUN --verify --to FILE</code></p>"
    )
