"""A run in a notebook: a few facts and the progress, static, on light and on dark paper."""

from collections.abc import Iterator
from zlib import crc32

from coevolve.figures import progress_figure, style_sheet
from coevolve.formatting import estimate, markup, middle, score, tasks_seen
from coevolve.reports.report_words import facts, findings, headline
from coevolve.reports.run_document import summary_of
from coevolve.views.report import CandidateRow
from coevolve.views.timeline import Timeline

_MOST = 8
"""Candidates in the table, besides the starting harnesses."""
_STYLE = """
.cv-run{max-width:860px;line-height:1.45}
.cv-run p{margin:6px 0}
.cv-run .cv-warning{border-left:3px solid #d55e00;padding-left:10px}
.cv-run svg{display:block;width:100%;height:auto;max-width:820px}
.cv-run table{border-collapse:collapse;font-size:inherit;margin:8px 0}
.cv-run td{font-variant-numeric:tabular-nums}
.cv-run td,.cv-run th{padding:2px 14px 2px 0;text-align:left;border:0;background:none}
.cv-run .cv-label{opacity:.65}
.cv-run summary{cursor:pointer;opacity:.75}
"""


def notebook_html(timeline: Timeline) -> str:
    """A run as HTML for a notebook: what won, what it cost, and the progress."""
    return "".join(_parts(timeline))


def _parts(timeline: Timeline) -> Iterator[str]:
    now = timeline.snapshot()
    found = summary_of(now, timeline.state)
    style = style_sheet("notebook")
    yield f'<div class="cv-run"><style>{style}{_STYLE}</style>'
    where = f"{found['phase']}: {found['why']}" if found["why"] else found["phase"]
    yield f"<p><strong>{markup(found['name'], 200)}</strong> "
    about = f"{where} · {found['protocol']}"
    yield f'<span class="cv-label">{markup(about, 300)}</span></p>'
    yield f"<p>{markup(headline(found))}</p>"
    for text in found["warnings"]:
        yield f'<p class="cv-warning">{markup(text)}</p>'
    named = f"{found['name']} {timeline.provenance.seal}".encode(errors="surrogatepass")
    prefix = f"cv{crc32(named)}-"
    yield progress_figure(now.progress, width=700, prefix=prefix).svg
    yield from _candidates(now.report.candidates, now.report.best)
    yield "<details><summary>More</summary>"
    for text in findings(found):
        yield f"<p>{markup(text)}</p>"
    yield "<table>"
    for label, value in facts(found):
        yield f'<tr><td class="cv-label">{markup(label)}</td><td>{markup(value, 200)}</td></tr>'
    yield "</table></details></div>"


def _candidates(rows: tuple[CandidateRow, ...], best: str | None) -> Iterator[str]:
    """The starting harnesses and the best candidates."""
    known = [row for row in rows if row.estimate is not None]
    made = sorted(
        (row for row in known if not row.start),
        key=lambda row: (row.name != best, -row.estimate["value"] if row.estimate else 0.0),
    )
    shown = [*made[:_MOST], *(row for row in known if row.start)]
    if not shown:
        return
    yield "<table><tr>"
    for head in ("", "candidate", "round", "estimate", "tasks", "all tasks", "sealed test"):
        yield f'<th class="cv-label">{head}</th>'
    yield "</tr>"
    for row in shown:
        cells = (
            "★" if row.name == best else "",
            middle(row.name, 60),
            "start" if row.start else str(row.round),
            "-" if row.estimate is None else estimate(row.estimate),
            "-" if row.estimate is None else tasks_seen(row.estimate),
            score(row.true_score),
            score(row.test),
        )
        yield f"<tr>{''.join(f'<td>{markup(cell)}</td>' for cell in cells)}</tr>"
    yield "</table>"
    if len(made) > _MOST:
        yield f'<p class="cv-label">and {len(made) - _MOST:,} more</p>'
