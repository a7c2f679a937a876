"""The frame of every page: head, navigation, state of the run, and the parts in it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from coevolve.dashboard.run_feed import Moment, RunFeed
from coevolve.figures import Figure
from coevolve.formatting import markup, plural
from coevolve.reports.html_parts import data_table
from coevolve.reports.run_document import figure_table
from coevolve.runs.run_listing import run_state

WIDE, NARROW = 1000.0, 420.0
"""Widths of figures, on a desk and on a phone."""
PAGES = {
    "": "Overview",
    "matrix": "Matrix",
    "frontier": "Frontier",
    "lineage": "Lineage",
    "costs": "Costs",
    "failures": "Failures",
}
"""The pages of a run: the last part of their address, and their title."""
LONGEST_FIND = 200
"""Characters of a filter."""
_LONGEST_ADDRESS = 8_000
"""Characters of an address that is linked to; servers refuse much longer ones."""
KEPT = ("picture",)
"""Parts that a script keeps up to date itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a reader asked for.

    `key` is the name of the run in addresses, empty on pages of several runs. `query` are the
    values behind the question mark, the last of each name. `narrow` asks for figures of a phone.
    """

    key: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    narrow: bool = False
    theme: str = ""
    home: bool = False

    @property
    def width(self) -> float:
        """The width of figures."""
        return NARROW if self.narrow else WIDE

    def get(self, name: str, known: Sequence[str] = (), default: str = "") -> str:
        """A value of the query; the default if it is not one of the known ones."""
        value = self.query.get(name, default)
        return value if not known or value in known else default


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page: its title, the place in the navigation, and its parts as HTML by name.

    A part is replaced as a whole when the run goes on. `script` is a module that only this page
    needs. `status` is that of HTTP.
    """

    title: str
    place: str = ""
    parts: Mapping[str, Iterable[str]]
    script: str = ""
    status: int = 200


def address(key: str, page: str = "", /, **query: Any) -> str:
    """The address of a page of a run; values that are empty or None are left out.

    >>> address("demo", "candidate", name="a/b&c", against=None)
    '/runs/demo/candidate?name=a%2Fb%26c'
    """
    given = {
        name: str(value).encode("utf-8", "surrogatepass")
        for name, value in query.items()
        if value not in (None, "")
    }
    path = f"/runs/{quote(key, safe='')}" + (f"/{page}" if page else "")
    return path + (f"?{urlencode(given)}" if given else "")


def link(url: str, text: str, *, most: int = 80, style: str = "") -> str:
    """A link; the text may be foreign, and more of a long one is shown as a tip."""
    tip = f' title="{markup(text, 400)}"' if len(text) > most else ""
    kind = f' class="{style}"' if style else ""
    if len(url) > _LONGEST_ADDRESS:
        return f"<span{kind}{tip}>{markup(text, most)}</span>"
    return f'<a href="{markup(url)}"{kind}{tip}>{markup(text, most)}</a>'


def candidate_link(key: str, name: str, *, most: int = 60, style: str = "") -> str:
    """A link to a candidate."""
    return link(address(key, "candidate", name=name), name, most=most, style=style)


def trial_link(key: str, candidate: str, task: str, text: str) -> str:
    """A link to the trials of a candidate on a task."""
    return link(address(key, "trial", candidate=candidate, task=task), text)


def document(page: Page, ask: Ask, moment: Moment | None, state: str, name: str) -> str:
    """The whole page as HTML.

    Args:
        page: What it shows.
        ask: What was asked for.
        moment: How far the run is; None on pages of several runs.
        state: The state of the run in words.
        name: The name of the run.
    """
    theme = f' data-theme="{ask.theme}"' if ask.theme in ("light", "dark") else ""
    scripts = ["live.js", *([page.script] if page.script else [])]
    heading = f"{page.title} · {name}" if name else page.title
    return "\n".join(
        [
            "<!doctype html>",
            f'<html lang="en"{theme}>',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{markup(heading, 200)}</title>",
            '<link rel="icon" href="/assets/icon.svg" type="image/svg+xml">',
            '<link rel="stylesheet" href="/assets/page.css">',
            *(f'<script type="module" src="/assets/{one}"></script>' for one in scripts),
            "</head>",
            _body_tag(ask, moment),
            '<a class="skip" href="#main">Skip to the content</a>',
            *_head(ask, page, state, name),
            '<main id="main" tabindex="-1">',
            *_parts(page.parts),
            "</main>",
            _foot(moment),
            '<div id="tip" role="tooltip" hidden></div>',
            '<div id="spoken" class="hidden" aria-live="polite"></div>',
            "</body>",
            "</html>",
            "",
        ]
    )


def _body_tag(ask: Ask, moment: Moment | None) -> str:
    width = "narrow" if ask.narrow else "wide"
    if moment is None:
        return f'<body data-stream="/stream" data-width="{width}">'
    return (
        f'<body data-run="{markup(ask.key)}" data-stream="{address(ask.key, "stream")}" '
        f'data-tag="{moment.tag}" data-width="{width}">'
    )


def _head(ask: Ask, page: Page, state: str, name: str) -> Iterator[str]:
    yield '<header class="top">'
    yield '<div class="bar">'
    yield '<a class="mark" href="/" title="All runs">coevolve</a>'
    if name:
        yield f'<a class="name" href="{address(ask.key)}">{markup(name, 80)}</a>'
        yield f'<span class="state" data-part="state">{state}</span>'
    yield '<span class="room"></span>'
    yield '<span class="linked" id="linked" role="status"></span>'
    yield '<button type="button" id="theme" class="plain">Theme: system</button>'
    yield "</div>"
    if name:
        yield '<nav aria-label="Pages of the run">'
        for place, title in PAGES.items():
            here = ' aria-current="page"' if place == page.place else ""
            yield f'<a href="{address(ask.key, place)}"{here}>{title}</a>'
        yield f'<a href="/compare?run={markup(ask.key)}">Comparison</a>'
        yield f'<a href="{address(ask.key, "report.html")}" class="out">Report</a>'
        yield "</nav>"
    yield "</header>"


def _parts(parts: Mapping[str, Iterable[str]]) -> Iterator[str]:
    for name, inside in parts.items():
        kept = " data-keep" if name in KEPT else ""
        yield f'<section data-part="{name}" id="part-{name}"{kept}>'
        yield from inside
        yield "</section>"


def _foot(moment: Moment | None) -> str:
    keys = (
        "<kbd>o</kbd> overview <kbd>m</kbd> matrix <kbd>f</kbd> frontier <kbd>l</kbd> lineage "
        "<kbd>c</kbd> costs <kbd>x</kbd> failures <kbd>/</kbd> filter"
    )
    shown = "" if moment is None else f"<p>Keys: {keys}</p>"
    return f'<footer class="foot">{shown}</footer>'


def heading(text: str, level: int = 2, *, more: str = "") -> str:
    """A heading; `more` is HTML behind it."""
    return f"<h{level}>{markup(text, 200)}{more}</h{level}>"


def figure(found: Figure, *, ask: Ask | None = None, titled: bool = True) -> Iterator[str]:
    """A figure with its caption and its numbers; with `ask`, a link to it as a file."""
    if titled:
        yield heading(found.title)
    yield f'<figure id="figure-{found.name}">'
    label = markup(f"Figure: {found.title}")
    yield f'<div class="picture" tabindex="0" role="group" aria-label="{label}">{found.svg}</div>'
    if not found.rows:  # an empty figure says its caption itself
        yield "</figure>"
        return
    yield f"<figcaption>{markup(found.caption)}</figcaption>"
    yield "</figure>"
    table = figure_table(found)
    yield f'<details id="numbers-{found.name}"><summary>Numbers</summary>'
    yield from data_table(table, f"Numbers of: {found.title}")
    yield "</details>"
    if ask is not None and ask.key:
        for kind in ("svg", "png"):
            yield link(address(ask.key, f"figures/{found.name}.{kind}"), kind.upper(), style="out")


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    label: str,
    *,
    right: Iterable[str] = (),
    hidden: Iterable[str] = (),
) -> Iterator[str]:
    """A table whose cells are HTML; columns in `hidden` disappear on a phone."""
    ends, gone = set(right), set(hidden)
    style = [
        " ".join(word for word, given in (("n", name in ends), ("wide", name in gone)) if given)
        for name in columns
    ]
    marks = [f' class="{one}"' if one else "" for one in style]
    yield f'<div class="scroll" tabindex="0" role="region" aria-label="{markup(label)}"><table>'
    heads = "".join(
        f'<th scope="col"{mark}>{markup(name)}</th>'
        for name, mark in zip(columns, marks, strict=True)
    )
    yield f"<thead><tr>{heads}</tr></thead><tbody>"
    for row in rows:
        cells = "".join(f"<td{mark}>{cell}</td>" for cell, mark in zip(row, marks, strict=True))
        yield f"<tr>{cells}</tr>"
    yield "</tbody></table></div>"


def facts(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Labels and values; the values are HTML, and empty ones are left out."""
    yield '<dl class="facts">'
    for label, value in rows:
        if value:
            yield f"<div><dt>{markup(label)}</dt><dd>{value}</dd></div>"
    yield "</dl>"


def notice(text: str, kind: str = "note") -> str:
    """A sentence in a box: a "note", a "warning" or an "error"."""
    role = ' role="alert"' if kind == "error" else ""
    word = {"warning": "<strong>Warning.</strong> ", "error": "<strong>Error.</strong> "}
    return f'<p class="notice {kind}"{role}>{word.get(kind, "")}{markup(text, 2_000)}</p>'


def empty(text: str, advice: str = "") -> str:
    """What a page says that has nothing to show; `advice` is a command."""
    code = f"<code>{markup(advice)}</code>" if advice else ""
    return f'<div class="empty"><p>{markup(text)}</p>{code}</div>'


def choices(
    label: str, name: str, options: Mapping[str, str], chosen: str, url: Any
) -> Iterator[str]:
    """Links between which a reader chooses; `url` makes the address of each value."""
    yield f'<div class="choices" role="group" aria-label="{markup(label)}">'
    yield f"<span>{markup(label)}</span>"
    for value, text in options.items():
        here = ' aria-current="true"' if value == chosen else ""
        yield f'<a href="{markup(url(value))}" data-choice="{name}"{here}>{markup(text)}</a>'
    yield "</div>"


def search_form(ask: Ask, page: str, label: str, **kept: str) -> Iterator[str]:
    """A field that filters a list; it works without a script too."""
    found = markup(ask.get("find")[:LONGEST_FIND])
    yield f'<form class="find" method="get" action="{address(ask.key, page)}" role="search">'
    for name, value in kept.items():
        if value:
            yield f'<input type="hidden" name="{name}" value="{markup(value)}">'
    yield (
        f'<label>{markup(label)} <input type="search" name="find" value="{found}" '
        'autocomplete="off" spellcheck="false"></label>'
    )
    yield '<button type="submit">Filter</button>'
    yield "</form>"


def paged(ask: Ask, page: str, shown: int, first: int, total: int, step: int) -> str:
    """Links to the rows before and after those that are shown."""
    if total <= shown:
        return f'<p class="count">{total:,} shown.</p>' if total else ""
    query = {name: value for name, value in ask.query.items() if name != "from"}
    parts = [f"{first + 1:,} to {first + shown:,} of {total:,}"]
    if first:
        back = address(ask.key, page, **query, **{"from": max(0, first - step)})
        parts.append(link(back, "Previous"))
    if first + shown < total:
        parts.append(link(address(ask.key, page, **query, **{"from": first + step}), "Next"))
    return f'<p class="count">{" · ".join(parts)}</p>'


def first_row(ask: Ask) -> int:
    """The number of the first row of a list that is shown."""
    text = ask.get("from", default="0")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0


def state_badge(feed: RunFeed, moment: Moment) -> str:
    """The state of a run as a word with a sign."""
    if moment.trouble and not moment.events:
        return '<b class="badge bad">unreadable</b>'
    now = feed.snapshot().report
    word = run_state(now, held=moment.held)
    kind = {"running": "good", "stopped": "bad", "not finished": "bad"}.get(word, "calm")
    rounds = f"round {now.round} of {now.rounds}" if now.rounds else ""
    doing = now.doing if moment.held else ""
    rest = ", ".join(part for part in (rounds, doing) if part)
    waves = f" · {now.done:,} of {plural(now.asked, 'trial')}" if moment.held and now.asked else ""
    soft = f'<span class="soft">{markup(rest, 120)}{waves}</span>'
    return f'<b class="badge {kind}">{markup(word)}</b> {soft}'
