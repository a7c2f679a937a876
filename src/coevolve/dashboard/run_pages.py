"""The pages of one run: overview, matrix, frontier, lineage, costs, failures."""

from collections.abc import Collection, Iterator, Sequence

from coevolve.dashboard.page_frame import (
    LONGEST_FIND,
    Ask,
    Page,
    address,
    candidate_link,
    choices,
    empty,
    facts,
    figure,
    first_row,
    heading,
    link,
    notice,
    paged,
    search_form,
    table,
)
from coevolve.dashboard.run_feed import Moment, RunFeed
from coevolve.figures import (
    certainty_figure,
    costs_figure,
    failures_figure,
    frontier_figure,
    lineage_figure,
    progress_figure,
    spend_figure,
    weights_figure,
)
from coevolve.figures.spend_chart import MEASURES, part_name, telling_measure
from coevolve.formatting import (
    CLIPPED,
    amount,
    count,
    difference,
    dollars,
    duration,
    estimate,
    is_clipped,
    markup,
    plural,
    score,
    tasks_seen,
)
from coevolve.reports.html_parts import data_table
from coevolve.reports.report_words import findings, headline
from coevolve.reports.run_document import incident_table, summary_of
from coevolve.views.outcome_grid import GridSplit
from coevolve.views.report import CandidateRow, Report
from coevolve.views.timeline import Snapshot

STEP = 100
"""Candidates in a list on one page."""
_MOST_FOLLOWED = 8
"""Tasks whose probabilities are followed over the rounds."""
SORTS = {"estimate": "estimate", "round": "newest", "tasks": "tasks run", "name": "name"}


def overview_page(feed: RunFeed, ask: Ask, moment: Moment) -> Page:
    """What won so far, how sure that is, what it cost, and all candidates."""
    now = feed.snapshot()
    progress = feed.figure(
        ("progress", ask.width), lambda: progress_figure(now.progress, width=ask.width)
    )
    sure = feed.figure(
        ("certainty", ask.width), lambda: certainty_figure(now.certainty, width=ask.width)
    )
    return Page(
        title="Overview",
        place="",
        parts={
            "summary": _summary(feed, now, moment),
            "progress": figure(progress, ask=ask),
            "certainty": figure(sure, ask=ask),
            "candidates": _candidates(now.report, ask),
        },
    )


def _summary(feed: RunFeed, now: Snapshot, moment: Moment) -> Iterator[str]:
    found = summary_of(now, feed.timeline().state)
    yield f'<h1 class="headline">{markup(headline(found))}</h1>'
    if moment.trouble:
        yield notice(f"The journal cannot be read any more: {moment.trouble}", "error")
    for text in found["warnings"]:
        if not (moment.held and text.startswith("The run has not ended")):
            yield notice(text, "warning")
    if now.report.stopped and not moment.held:
        yield notice(f"The run stopped: {now.report.why}", "warning")
    if not moment.held and now.report.phase not in ("ended", "evaluation"):
        yield notice(f"No process works on this run. Continue it: coevolve resume {feed.folder}")
    yield from _tiles(now, moment)
    yield '<details class="words" id="words"><summary>Summary in words</summary>'
    for text in findings(found):
        yield f"<p>{markup(text)}</p>"
    yield "</details>"


def _tiles(now: Snapshot, moment: Moment) -> Iterator[str]:
    """The numbers that a reader looks for first."""
    found, sure = now.report, now.certainty
    best = None if found.best is None else found.candidate(found.best)
    yield '<ul class="tiles">'
    if best is not None and best.estimate is not None:
        starts = [r.estimate["value"] for r in found.candidates if r.start and r.estimate]
        gain = best.estimate["value"] - max(starts) if starts and not best.start else None
        beside = "" if gain is None else f"{difference(gain)} against the best starting harness"
        yield _tile("estimated score", estimate(best.estimate), beside)
        if best.full is not None:
            yield _tile("score on all tasks", score(best.full), "measured after the choice")
        if best.test is not None:
            yield _tile("sealed test", score(best.test), "tasks the search never saw")
    if sure.probability is not None:
        yield _tile("is the best of all", f"{sure.probability:.0%} likely", _rivals(now))
    elif sure.compared:
        yield _tile("may be better", f"{len(sure.open)}", f"of {plural(sure.compared, 'other')}")
    yield from _spent(found)
    if moment.held and found.left is not None:
        yield _tile("time left", duration(found.left), f"{duration(found.seconds)} so far")
    else:
        yield _tile("time", duration(found.seconds), "of work")
    yield "</ul>"
    yield from _budget(found)


def _rivals(now: Snapshot) -> str:
    sure = now.certainty
    return f"{len(sure.open)} of {plural(sure.compared, 'other')} may be better"


def _spent(found: Report) -> Iterator[str]:
    spend = found.spend
    savings = spend.savings
    beside = ""
    if savings is not None and savings.paid_full.low:
        beside = f"{savings.paid.low / savings.paid_full.low:.0%} of a full search"
    yield _tile("trials", f"{spend.totals['trials']:,.0f}", beside)
    if spend.totals["tokens"]:
        cost = dollars(spend.totals["dollars"]) if spend.totals["dollars"] else ""
        yield _tile("tokens", count(spend.totals["tokens"]), cost)


def _tile(label: str, value: str, more: str) -> str:
    small = f'<span class="more">{markup(more, 80)}</span>' if more else ""
    return (
        f'<li><span class="label">{markup(label)}</span> '
        f'<span class="value">{markup(value, 40)}</span> {small}</li>'
    )


def _budget(found: Report) -> Iterator[str]:
    """Bars of what is spent of every cap."""
    caps = [cap for cap in found.spend.budget if cap.cap is not None]
    if not caps:
        return
    yield '<ul class="budget" aria-label="Budget">'
    for cap in caps:
        assert cap.cap is not None
        share = min(1.0, cap.spent / cap.cap) if cap.cap else 1.0
        text = f"{amount(cap.name, cap.spent)} of {amount(cap.name, cap.cap)}"
        yield (
            f'<li><span class="label">{markup(cap.name)}</span>'
            f'<meter min="0" max="1" value="{share:.4f}" high="0.9" '
            f'aria-label="{markup(cap.name)} spent">{share:.0%}</meter>'
            f"<span>{markup(text)} ({share:.0%})</span></li>"
        )
    yield "</ul>"


def _candidates(found: Report, ask: Ask) -> Iterator[str]:
    yield heading("Candidates")
    if not found.candidates:
        yield empty("There are no candidates yet.")
        return
    sort = ask.get("sort", tuple(SORTS), "estimate")
    rows = _sorted(found.candidates, sort)
    words = set(ask.get("find")[:LONGEST_FIND].lower().split())
    rows = [row for row in rows if _has(row, words)]
    yield '<div class="tools">'
    yield from search_form(ask, "", "Filter candidates", sort=ask.get("sort"))
    yield from choices(
        "Order by",
        "sort",
        SORTS,
        sort,
        lambda value: address(ask.key, "", find=ask.get("find"), sort=value),
    )
    yield "</div>"
    if not rows:
        yield empty(f"No candidate matches {ask.get('find')[:80]!r}.")
        return
    first = first_row(ask)
    shown = rows[first : first + STEP]
    yield from table(
        (
            "", "candidate", "round", "estimate", "tasks", "all tasks", "sealed test", "status",
            "made from", "hypothesis",
        ),
        (_candidate_cells(row, found, ask) for row in shown),
        "Candidates",
        right=("round", "estimate", "tasks", "all tasks", "sealed test"),
        hidden=("all tasks", "sealed test", "made from", "hypothesis"),
    )  # fmt: skip
    yield paged(ask, "", len(shown), first, len(rows), STEP)
    if any(is_clipped(row.estimate) for row in shown):
        yield f"<p>{markup(CLIPPED)}</p>"


def _sorted(rows: Sequence[CandidateRow], sort: str) -> list[CandidateRow]:
    def value(row: CandidateRow) -> float:
        return float("-inf") if row.estimate is None else row.estimate["value"]

    if sort == "round":
        return list(reversed(rows))
    if sort == "name":
        return sorted(rows, key=lambda row: row.name)
    if sort == "tasks":
        return sorted(rows, key=lambda row: -(row.estimate or {"tasks": 0})["tasks"])
    return sorted(rows, key=lambda row: -value(row))


def _has(row: CandidateRow, words: Collection[str]) -> bool:
    if not words:
        return True
    parts = (row.name, row.status, row.reason, row.hypothesis, row.kind, *row.components)
    text = " ".join(parts).lower()
    return all(word in text for word in words)


def _candidate_cells(row: CandidateRow, found: Report, ask: Ask) -> list[str]:
    mark = '<span class="star" title="the best">★</span>' if row.name == found.best else ""
    if row.start:
        mark += '<span class="box" title="a starting harness">□</span>'
    status = row.status
    if row.asked and row.done < row.asked:
        status = f"{row.done} of {row.asked} trials"
    extra = [f"{row.missing} missing"] if row.missing else []
    extra += [f"{row.zeros} scored 0"] if row.zeros else []
    extra += ["may know answers"] if row.leaks else []
    texts = [status, *extra, *([row.reason] if row.reason else [])]
    return [
        mark,
        candidate_link(ask.key, row.name, most=44),
        "start" if row.start else f"{row.round:,}",
        "-" if row.estimate is None else markup(estimate(row.estimate)),
        "-" if row.estimate is None else markup(tasks_seen(row.estimate)),
        score(row.true_score),
        score(row.test),
        f'<span class="status">{markup("; ".join(texts), 160)}</span>',
        ", ".join(candidate_link(ask.key, name, most=28) for name in row.parents[:3]),
        f'<span class="soft two">{markup(row.hypothesis, 300)}</span>',
    ]


def matrix_page(feed: RunFeed, ask: Ask, moment: Moment) -> Page:
    """All outcomes: a canvas that a script draws, and a picture without one."""
    split: GridSplit = "test" if ask.get("split") == "test" else "validation"
    test = feed.timeline().state.test
    return Page(
        title="Matrix",
        place="matrix",
        parts={
            "head": _matrix_head(feed, ask, split, test is not None),
            "picture": _matrix(ask, split),
        },
        script="matrix.js",
    )


def _matrix_head(feed: RunFeed, ask: Ask, split: GridSplit, sealed: bool) -> Iterator[str]:
    grid = feed.grid(split)
    tasks, made = plural(len(grid.tasks), "task"), plural(len(grid.candidates), "candidate")
    yield f'<h1>Matrix of outcomes <span class="soft">{tasks} × {made}</span></h1>'
    if sealed:
        yield from choices(
            "Outcomes",
            "split",
            {"validation": "of the search", "test": "of the sealed test"},
            split,
            lambda value: address(ask.key, "matrix", split=value),
        )


def _matrix(ask: Ask, split: GridSplit) -> Iterator[str]:
    source = address(ask.key, "matrix.json", split=split)
    yield f'<div id="matrix" data-source="{markup(source)}" data-split="{split}"></div>'
    file = link(address(ask.key, "figures/matrix.svg"), "the picture of the matrix")
    yield f"<noscript><p>Without scripts, open {file}.</p></noscript>"


def frontier_page(feed: RunFeed, ask: Ask, moment: Moment) -> Page:
    """How the solvability of the tasks changed, and what was drawn with which probability."""
    now = feed.snapshot()
    wanted = _followed(now.frontier.tasks, ask.get("tasks")[:LONGEST_FIND])
    groups = feed.figure(
        ("frontier", ask.width), lambda: frontier_figure(now.frontier, width=ask.width)
    )
    weights = feed.figure(
        ("weights", wanted, ask.width),
        lambda: weights_figure(now.frontier, tasks=wanted, width=ask.width),
    )
    return Page(
        title="Frontier",
        place="frontier",
        parts={
            "groups": [
                '<h1>Frontier <span class="soft">which tasks are solved, and which '
                "are drawn</span></h1>",
                *figure(groups, ask=ask),
            ],
            "weights": [*figure(weights, ask=ask), *_task_form(ask, wanted)],
            "draws": _draws(now, ask),
        },
    )


def _followed(tasks: Sequence[str], text: str) -> tuple[str, ...]:
    """The tasks that are named in a text, or have one of its words in their names."""
    words = text.lower().replace(",", " ").split()
    exact = [name for name in tasks if name.lower() in words]
    alike = [name for name in tasks if any(word in name.lower() for word in words)]
    return tuple(dict.fromkeys([*exact, *alike]))[:_MOST_FOLLOWED]


def _task_form(ask: Ask, wanted: Sequence[str]) -> Iterator[str]:
    """A field for the tasks whose probabilities are followed over the rounds."""
    given = markup(ask.get("tasks")[:LONGEST_FIND])
    yield f'<form class="find" method="get" action="{address(ask.key, "frontier")}">'
    yield (
        f'<label>Tasks in the second chart <input type="search" name="tasks" value="{given}" '
        'placeholder="names or parts of names" autocomplete="off" spellcheck="false"></label>'
    )
    yield '<button type="submit">Show</button></form>'
    if given and not wanted:
        yield f'<p class="count">No task matches {given}. Those drawn most often are shown.</p>'


def _draws(now: Snapshot, ask: Ask) -> Iterator[str]:
    """The draws of a round: tasks with p̄, w and π."""
    draws = now.frontier.draws
    yield heading("Draws")
    if not draws:
        yield empty("No task has been drawn yet.")
        return
    rounds = sorted({draw.round for draw in draws})
    asked = {str(number): number for number in rounds}
    round = asked.get(ask.get("round"), rounds[-1])
    yield '<form class="find" method="get">'
    if tasks := ask.get("tasks")[:LONGEST_FIND]:
        yield f'<input type="hidden" name="tasks" value="{markup(tasks)}">'
    yield '<label>Round <select name="round">'
    for number in rounds:
        here = " selected" if number == round else ""
        yield f'<option value="{number}"{here}>{number}</option>'
    yield '</select></label><button type="submit">Show</button></form>'
    rows = [
        (draw, place)
        for draw in draws
        if draw.round == round
        for place in sorted(range(len(draw.tasks)), key=lambda at: -draw.weights[at])
    ]
    yield from table(
        ("task", "pool", "solvability p̄", "weight w", "probability π", "draw", "for"),
        (
            (
                _task_link(ask, now.frontier.tasks[int(draw.tasks[at])]),
                markup(draw.pool, 60),
                _number(float(draw.anchors[at])),
                _number(float(draw.weights[at])),
                _number(float(draw.probabilities[at])),
                markup(draw.kind, 40),
                _for(ask, draw.candidates),
            )
            for draw, at in rows[:STEP]
        ),
        f"Draws of round {round}",
        right=("solvability p̄", "weight w", "probability π"),
        hidden=("pool", "draw", "for"),
    )
    if len(rows) > STEP:
        first = f"The first {STEP} of {len(rows):,} rows are shown, each draw by weight."
        yield f'<p class="count">{first}</p>'
    if any(draw.kind == "further" for draw, _ in rows):
        yield (
            '<p class="count">"first": the draw at the start of the round, for all its '
            'candidates. "further": tasks that the protocol added for a candidate of any '
            "round.</p>"
        )


def _number(value: float) -> str:
    return "-" if value != value else f"{value:.3f}"


def _for(ask: Ask, names: Sequence[str]) -> str:
    links = ", ".join(candidate_link(ask.key, name, most=24) for name in names[:3])
    return links + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _task_link(ask: Ask, task: str) -> str:
    return link(address(ask.key, "task", name=task), task, most=40)


def lineage_page(feed: RunFeed, ask: Ask, moment: Moment) -> Page:
    """Which candidate was made from which."""
    now = feed.snapshot()
    tree = feed.figure(
        ("lineage", ask.width), lambda: lineage_figure(now.lineage, width=ask.width)
    )
    return Page(
        title="Lineage",
        place="lineage",
        parts={
            "tree": [
                '<h1>Lineage <span class="soft">which candidate was made from which</span></h1>',
                *figure(tree, ask=ask, titled=False),
            ],
            "path": _path(now, ask),
        },
    )


def _path(now: Snapshot, ask: Ask) -> Iterator[str]:
    """The way to the best candidate, step by step."""
    nodes = [node for node in now.lineage.nodes if node.ancestor]
    yield heading("The way to the best candidate")
    if not nodes:
        yield empty("No candidate has a score yet.")
        return
    rows = {row.name: row for row in now.report.candidates}
    previous: dict[str, str] = {node.name: node.parents[0] for node in nodes if node.parents}
    yield from table(
        ("candidate", "round", "estimate", "hypothesis", "change"),
        (
            (
                candidate_link(ask.key, node.name, most=44),
                "start" if node.start else str(node.round),
                markup(estimate(found)) if (found := rows[node.name].estimate) else "-",
                markup(rows[node.name].hypothesis, 200),
                _change(ask, node.name, previous.get(node.name)),
            )
            for node in nodes
        ),
        "Ancestors of the best candidate",
        right=("round", "estimate"),
        hidden=("hypothesis",),
    )


def _change(ask: Ask, name: str, parent: str | None) -> str:
    if parent is None:
        return ""
    return link(address(ask.key, "candidate", name=name, against=parent) + "#part-diff", "diff")


def costs_page(feed: RunFeed, ask: Ask, moment: Moment) -> Page:
    """Spending over time by part, and by candidate."""
    now = feed.snapshot()
    measure = ask.get("measure", MEASURES, telling_measure(now.spend))
    spend = feed.figure(
        ("spend", measure, ask.width),
        lambda: spend_figure(now.spend, measure=measure, width=ask.width),
    )
    costs = feed.figure(
        ("costs", measure, ask.width),
        lambda: costs_figure(now.spend, best=now.report.best, measure=measure, width=ask.width),
    )
    return Page(
        title="Costs",
        place="costs",
        parts={
            "spend": [
                '<h1>Costs <span class="soft">what was spent on what</span></h1>',
                *choices(
                    "Measure",
                    "measure",
                    {name: name for name in MEASURES},
                    measure,
                    lambda value: address(ask.key, "costs", measure=value),
                ),
                *_budget(now.report),
                *figure(spend, ask=ask),
            ],
            "parts": _parts_table(now),
            "costs": figure(costs, ask=ask),
        },
    )


def _parts_table(now: Snapshot) -> Iterator[str]:
    yield heading("By part")
    if not now.spend.totals:
        yield empty("Nothing is spent yet.")
        return
    yield from table(
        ("part", "trials", "failed attempts", "tokens in", "tokens out", "dollars", "trial time"),
        (
            (
                markup(part_name(part)),
                f"{spent.trials:,}",
                f"{spent.attempts:,}",
                f"{spent.tokens_in:,}",
                f"{spent.tokens_out:,}",
                dollars(spent.dollars),
                duration(spent.seconds),
            )
            for part, spent in now.spend.totals.items()
        ),
        "Spending by part",
        right=("trials", "failed attempts", "tokens in", "tokens out", "dollars", "trial time"),
        hidden=("failed attempts", "tokens out"),
    )
    savings = now.report.spend.savings
    if savings is not None:
        yield f'<p class="count">{markup(str(savings))}</p>'


def failures_page(feed: RunFeed, ask: Ask, moment: Moment) -> Page:
    """Faults by kind and round, and incidents in order."""
    now = feed.snapshot()
    faults = feed.figure(
        ("failures", ask.width), lambda: failures_figure(now.failures, width=ask.width)
    )
    return Page(
        title="Failures",
        place="failures",
        parts={
            "faults": [
                '<h1>Failures <span class="soft">faults, refusals and stops; the matrix shows '
                "which tasks are not solved</span></h1>",
                *facts(
                    [
                        ("missing outcomes", f"{now.failures.missing:,}"),
                        ("scored 0 by a fault", f"{now.failures.zeros:,}"),
                        ("repeated attempts", f"{now.failures.retried:,}"),
                        ("refused candidates", f"{now.failures.refused:,}"),
                    ]
                ),
                *figure(faults, ask=ask, titled=False),
            ],
            "reasons": _reasons(now),
            "incidents": _incidents(now),
        },
    )


def _reasons(now: Snapshot) -> Iterator[str]:
    if not now.failures.faults:
        return
    yield heading("Reasons")
    for row in now.failures.faults:
        blamed = f'<span class="soft">blamed on {markup(row.blame, 40)}</span>'
        yield f"<h3>{markup(row.kind, 80)} {blamed}</h3>"
        yield "<ul>"
        for text, number in row.reasons:
            yield f"<li><b>{number:,} ×</b> {markup(text, 400)}</li>"
        yield "</ul>"


def _incidents(now: Snapshot) -> Iterator[str]:
    yield heading("Incidents")
    found = incident_table(now.failures)
    if not found["rows"]:
        yield empty("Nothing else happened: no refusal, no repair, no stop.")
        return
    yield from data_table(found, "Incidents")
