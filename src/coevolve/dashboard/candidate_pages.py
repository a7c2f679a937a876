"""The pages of one candidate, one task and one trial."""

from collections.abc import Iterator, Sequence

import numpy as np

from coevolve.dashboard.page_frame import (
    Ask,
    Page,
    address,
    candidate_link,
    choices,
    empty,
    facts,
    first_row,
    heading,
    link,
    notice,
    paged,
    table,
    trial_link,
)
from coevolve.dashboard.run_feed import Moment, RunFeed
from coevolve.dashboard.source_listing import MOST_CHARACTERS, difference, source
from coevolve.dashboard.trace_view import trace
from coevolve.errors import CoevolveError, titled
from coevolve.formatting import count, dollars, duration, estimate, interval, markup, plural, score
from coevolve.search.benchmark_version import mixture
from coevolve.views.answer_text import flat
from coevolve.views.details import recorded_trials, transcripts
from coevolve.views.questions import file_diff
from coevolve.views.report import CandidateRow
from coevolve.views.run_columns import IMPORTED, NONE, OUTCOME, SPLITS, RunColumns

STEP = 200
"""Outcomes on one page."""
_MOST_FILES = 40
_MOST_SOURCE = 400_000
"""Characters of all files of a candidate together."""
_LONGEST_NAME = 1_000
"""Characters of a name that a reader can choose."""
_MOST_TRANSCRIPT = 400_000
KINDS = {
    "": "all",
    "failed": "failed",
    "solved": "solved",
    "partial": "partial",
    "missing": "missing",
}
NAMES = {"validation": "in the search", "rescore": "after the choice", "test": "sealed test"}


def missing_page(what: str, name: str, advice: str = "") -> Page:
    """A page for something that the run does not have."""
    text = f"The run has no {what} {name[:80]!r}." if name else f"The address names no {what}."
    return Page(title="Not found", place="-", parts={"missing": [empty(text, advice)]}, status=404)


def candidate_page(feed: RunFeed, ask: Ask, moment: Moment) -> Page:
    """A candidate: where it comes from, its files and diff, its outcomes, its transcript."""
    name = ask.get("name")
    state = feed.timeline().state
    if name not in state.candidates:
        return missing_page("candidate", name)
    row = feed.snapshot().report.candidate(name)
    return Page(
        title=name,
        place="candidate",
        parts={
            "about": _about(feed, row, ask),
            "diff": _diff(feed, row, ask),
            "source": _source(feed, row),
            "outcomes": _outcomes(feed.timeline().columns, ask, row.name),
            "transcript": _transcript(feed, row, ask),
        },
    )


def _about(feed: RunFeed, row: CandidateRow, ask: Ask) -> Iterator[str]:
    now = feed.snapshot()
    state = feed.timeline().state
    where = "starting harness" if row.start else f"round {row.round}"
    star = '<span class="star" title="the best">★</span> ' if row.name == now.report.best else ""
    beside = f'<span class="soft">{where}, {markup(row.status)}</span>'
    yield f"<h1>{star}{markup(row.name, 200)} {beside}</h1>"
    if row.hypothesis:
        yield f'<p class="hypothesis">{markup(row.hypothesis, 2_000)}</p>'
    if row.reason:
        yield notice(row.reason, "warning")
    for text in row.leaks[:20]:
        yield notice(f"It may know answers: {text}", "warning")
    if row.estimate is not None and (mixed := mixture(state)):
        yield notice(mixed, "warning")
    found = row.estimate
    rival = next((one for one in now.certainty.rivals if one.candidate == row.name), None)
    children = [n for n, other in state.candidates.items() if row.name in other.candidate.parents]
    yield from facts(
        [
            ("estimate", "" if found is None else markup(estimate(found))),
            ("interval", markup(interval(found))),
            (
                "tasks run",
                "" if found is None else f"{found['tasks']:,} of {found['pool_size']:,}",
            ),
            ("estimated by", "" if found is None else markup(found["method"])),
            ("score on all tasks", "" if row.true_score is None else score(row.true_score)),
            ("sealed test", "" if row.test is None else score(row.test)),
            (
                "probability to be better than the best",
                "" if rival is None or rival.probability is None else f"{rival.probability:.0%}",
            ),
            ("made from", _links(ask, row.parents)),
            ("children", _links(ask, children)),
            ("kind of change", markup(row.kind, 80)),
            ("components", markup(", ".join(row.components), 300)),
            ("missing", f"{row.missing:,}" if row.missing else ""),
            ("scored 0 by a fault", f"{row.zeros:,}" if row.zeros else ""),
        ]
    )
    yield '<p class="jump">'
    parts = {
        "diff": "Diff",
        "source": "Source",
        "outcomes": "Outcomes",
        "transcript": "Transcript",
    }
    yield " · ".join(f'<a href="#part-{name}">{text}</a>' for name, text in parts.items())
    yield "</p>"


def _links(ask: Ask, names: Sequence[str], most: int = 12) -> str:
    shown = ", ".join(candidate_link(ask.key, name, most=44) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def _files(feed: RunFeed, name: str) -> dict[str, bytes]:
    journal = feed.journal()
    files = feed.timeline().state.candidates[name].candidate.files
    return {path: journal.get(address) for path, address in files.items()}


def _diff(feed: RunFeed, row: CandidateRow, ask: Ask) -> Iterator[str]:
    state = feed.timeline().state
    default = next((name for name in row.parents if name in state.candidates), "")
    against = ask.get("against", tuple(state.candidates), default)
    yield heading("Diff")
    others = [name for name in state.candidates if name != row.name]
    if not others:
        yield empty("There is no other candidate to compare with.")
        return
    yield f'<form class="find" method="get" action="{address(ask.key, "candidate")}#part-diff">'
    yield f'<input type="hidden" name="name" value="{markup(row.name)}">'
    yield '<label>Compared with <select name="against">'
    if against not in others:
        yield '<option value="" selected>choose a candidate</option>'
    for name in [name for name in reversed(others) if len(name) <= _LONGEST_NAME][:500]:
        here = " selected" if name == against else ""
        note = " (parent)" if name in row.parents else ""
        yield f'<option value="{markup(name)}"{here}>{markup(name, 60)}{note}</option>'
    yield '</select></label><button type="submit">Compare</button></form>'
    if against not in others:
        return
    try:
        lines = list(file_diff(_files(feed, against), _files(feed, row.name), (against, row.name)))
    except CoevolveError as error:
        yield notice(str(error), "error")
        return
    yield from difference(lines, f"How {row.name} differs from {against}")


def _source(feed: RunFeed, row: CandidateRow) -> Iterator[str]:
    yield heading("Source")
    try:
        files = _files(feed, row.name)
    except CoevolveError as error:
        yield notice(str(error), "error")
        return
    room = _MOST_SOURCE
    for number, (path, data) in enumerate(list(files.items())[:_MOST_FILES]):
        opened = " open" if len(files) == 1 or number == 0 else ""
        yield f'<details id="file-{number}"{opened}><summary>{markup(path, 200)}'
        yield f' <span class="soft">{len(data):,} bytes</span></summary>'
        yield from source(path, data, room)
        yield "</details>"
        room = max(0, room - min(len(data), MOST_CHARACTERS))
    if len(files) > _MOST_FILES:
        yield f"<p>The first {_MOST_FILES} of {len(files):,} files are shown.</p>"


def _outcomes(columns: RunColumns, ask: Ask, name: str) -> Iterator[str]:
    """The outcomes of a candidate, worst first."""
    rows = columns.rows
    number = columns.candidates[name]
    here = (rows.candidate == number) & np.isin(rows.kind, (OUTCOME, IMPORTED))
    yield heading("Outcomes")
    yield from _outcome_list(columns, ask, np.flatnonzero(here), "candidate", name)


def _outcome_list(
    columns: RunColumns,
    ask: Ask,
    at: "np.ndarray[tuple[int], np.dtype[np.int64]]",
    page: str,
    name: str,
) -> Iterator[str]:
    rows = columns.rows
    scores = rows.score[at]
    kind = ask.get("kind", tuple(KINDS), "")
    groups = {
        "": np.ones(len(at), dtype=np.bool_),
        "failed": scores == 0,
        "solved": scores == 1,
        "partial": (scores > 0) & (scores < 1),
        "missing": np.isnan(scores),
    }
    if not len(at):
        yield empty("No trial has an outcome yet.")
        return
    known = {
        key: f"{text} {int(groups[key].sum()):,}"
        for key, text in KINDS.items()
        if groups[key].any()
    }
    yield from choices(
        "Show",
        "kind",
        known,
        kind,
        lambda value: address(ask.key, page, name=name, kind=value) + "#part-outcomes",
    )
    at = at[groups[kind]]
    at = at[np.lexsort((rows.task[at], np.nan_to_num(rows.score[at], nan=-1.0)))]
    first = first_row(ask)
    shown = at[first : first + STEP].tolist()
    tasks = [*columns.tasks, *columns.test_tasks]
    names = list(columns.candidates)
    other = "task" if page == "candidate" else "candidate"
    body = []
    for place in shown:
        candidate, task = names[int(rows.candidate[place])], tasks[int(rows.task[place])]
        value, fault = float(rows.score[place]), int(rows.fault[place])
        split = NAMES[SPLITS[int(rows.split[place])]]
        past = rows.kind[place] == IMPORTED
        body.append(
            (
                trial_link(ask.key, candidate, task, task if other == "task" else candidate),
                _score_mark(value),
                "" if fault == NONE else markup(columns.faults[fault].kind, 60),
                f"{int(rows.tokens[place]):,}" if rows.tokens[place] else "",
                "" if past else _took(float(rows.seconds[place])),
                f"{int(rows.trial[place]) + 1}",
                "imported" if past else split,
            )
        )
    yield from table(
        (other, "score", "fault", "tokens", "time", "trial", "when"),
        body,
        "Outcomes",
        right=("tokens", "time", "trial"),
        hidden=("tokens", "trial"),
    )
    yield paged(ask, page, len(shown), first, len(at), STEP)


def _took(seconds: float) -> str:
    """How long a trial took; short ones in hundredths of a second."""
    return duration(seconds) if seconds >= 10 else f"{seconds:.2f}s"


def _score_mark(value: float) -> str:
    """A score with a sign, so that it does not rest on colour."""
    if value != value:
        return '<span class="mark-missing">▨ missing</span>'
    if value == 1:
        return '<span class="mark-solved">■ solved</span>'
    if value == 0:
        return '<span class="mark-failed">□ failed</span>'
    return f'<span class="mark-partial">◧ {value:.3g}</span>'


def _transcript(feed: RunFeed, row: CandidateRow, ask: Ask) -> Iterator[str]:
    yield heading("Transcript of the proposer")
    state = feed.timeline().state
    addresses = transcripts(row.name, state)
    if not addresses:
        text = "Starting harnesses have none." if row.start else "The proposer recorded none."
        yield f'<p class="count">{text}</p>'
        return
    for kind, place in addresses.items():
        try:
            text = feed.journal().get(place).decode("utf-8", "replace")
        except CoevolveError as error:
            yield notice(str(error), "error")
            continue
        size = f'<span class="soft">{len(text):,} characters</span>'
        yield f'<details id="transcript-{kind}"><summary>{kind} {size}</summary>'
        body = markup(text[:_MOST_TRANSCRIPT])
        label = markup(f"Transcript of the {kind}")
        yield f'<pre tabindex="0" role="region" aria-label="{label}">{body}</pre>'
        if len(text) > _MOST_TRANSCRIPT:
            yield f'<p class="count">The first {_MOST_TRANSCRIPT:,} characters are shown.</p>'
        yield "</details>"


def task_page(feed: RunFeed, ask: Ask, moment: Moment) -> Page:
    """A task: its solvability, draws and outcomes."""
    name = ask.get("name")
    columns = feed.timeline().columns
    task = {**columns.tasks, **columns.test_tasks}.get(name)
    if task is None:
        return missing_page("task", name)
    rows = columns.rows
    here = (rows.task == task) & np.isin(rows.kind, (OUTCOME, IMPORTED))
    return Page(
        title=name,
        place="task",
        parts={
            "about": _about_task(feed, name, task),
            "draws": _task_draws(feed, task, ask),
            "outcomes": [
                heading("Outcomes"),
                *_outcome_list(columns, ask, np.flatnonzero(here), "task", name),
            ],
        },
    )


def _about_task(feed: RunFeed, name: str, task: int) -> Iterator[str]:
    columns = feed.timeline().columns
    sealed = task >= len(columns.tasks)
    grid = feed.grid("test" if sealed else "validation")
    at = task - len(columns.tasks) if sealed else task
    p = float(grid.solvability[at])
    pool = grid.pools[int(grid.pool[at])] if grid.pools else ""
    where = "sealed test" if sealed else f"pool {pool}"
    yield f'<h1>{markup(name, 200)} <span class="soft">{markup(where, 80)}</span></h1>'
    yield from facts(
        [
            ("solvability p̄", "" if p != p else f"{p:.3f}"),
            ("candidates that ran it", f"{int(grid.seen[at]):,}"),
        ]
    )


def _task_draws(feed: RunFeed, task: int, ask: Ask) -> Iterator[str]:
    found = []
    for draw in feed.timeline().draws.draws:
        for at in np.flatnonzero(draw.tasks == task).tolist():
            found.append((draw, at))
    if not found:
        return
    yield heading("Draws")
    yield from table(
        ("round", "draw", "weight w", "probability π", "solvability p̄ before", "for"),
        (
            (
                str(draw.round),
                markup(draw.kind, 40),
                f"{draw.weights[at]:.3f}",
                f"{draw.probabilities[at]:.3f}",
                f"{draw.anchors[at]:.3f}" if draw.anchors[at] == draw.anchors[at] else "-",
                _links(ask, draw.candidates, 3),
            )
            for draw, at in reversed(found[-STEP:])
        ),
        "Draws of the task",
        right=("round", "weight w", "probability π", "solvability p̄ before"),
    )


def trial_page(feed: RunFeed, ask: Ask, moment: Moment) -> Page:
    """The trials of a candidate on a task, with their traces."""
    candidate, task = ask.get("candidate"), ask.get("task")
    columns = feed.timeline().columns
    if candidate not in columns.candidates:
        return missing_page("candidate", candidate)
    if task not in columns.tasks and task not in columns.test_tasks:
        return missing_page("task", task)
    return Page(
        title=f"{candidate} on {task}",
        place="trial",
        parts={"trials": _trials(feed, candidate, task, ask)},
    )


def _trials(feed: RunFeed, candidate: str, task: str, ask: Ask) -> Iterator[str]:
    yield f'<h1>{candidate_link(ask.key, candidate)} <span class="soft">on</span> '
    yield f"{link(address(ask.key, 'task', name=task), task)}</h1>"
    yield from _neighbours(feed, candidate, task, ask)
    try:
        trials = recorded_trials(candidate, task, feed.timeline(), feed.journal())
    except CoevolveError as error:
        yield notice(str(error), "error")
        return
    if not trials:
        yield empty("This candidate has no outcome on this task.")
        return
    for trial in trials:
        row = trial.outcome
        where = NAMES[row.split]
        parts = [f"trial {row.trial + 1}", where, "" if row.imported else _took(row.seconds)]
        tokens = row.tokens_in + row.tokens_out
        parts += [f"{count(tokens)} tokens" if tokens else ""]
        parts += [dollars(row.dollars) if row.dollars else ""]
        value = float("nan") if row.score is None else row.score
        text = ", ".join(part for part in parts if part)
        yield f'<h2>{_score_mark(value)} <span class="soft">{markup(text)}</span></h2>'
        if row.fault:
            yield notice(titled(row.fault, row.reason), "warning")
        if trial.content is None:
            why = f": it was imported from {row.imported}" if row.imported else ""
            yield f'<p class="count">There is no trace{markup(why, 200)}.</p>'
        else:
            yield from trace(flat(trial.content))


def _neighbours(feed: RunFeed, candidate: str, task: str, ask: Ask) -> Iterator[str]:
    """Who else ran this task, next to this candidate."""
    columns = feed.timeline().columns
    rows = columns.rows
    number = {**columns.tasks, **columns.test_tasks}[task]
    mine = (rows.task == number) & np.isin(rows.kind, (OUTCOME, IMPORTED))
    others = [int(n) for n in np.unique(rows.candidate[mine]).tolist()]
    names = list(columns.candidates)
    shown = [names[n] for n in others if names[n] != candidate]
    if not shown:
        return
    links = ", ".join(trial_link(ask.key, name, task, name) for name in shown[-8:])
    more = f" and {len(shown) - 8} more" if len(shown) > 8 else ""
    yield f'<p class="count">{plural(len(shown), "other candidate")} ran it: {links}{more}</p>'
