"""The table ties: how many candidates share the top score, and the effect of the tie-break."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from coevolve.analysis.matrix import Series
from coevolve.analysis.replay import Report
from coevolve.core.choice import Choice, HighestEstimate
from coevolve_reproductions.tables.analysis_source import Settings, about, labels, replayed
from coevolve_reproductions.tables.finished_search import Search
from coevolve_reproductions.tables.table import (
    BLUE,
    RED,
    Column,
    Row,
    Table,
    height,
    lines_of_dots,
    mean_and_sd,
)

PROTOCOLS = ("naive", "random-resample", "task-coevolve")


def of_run(search: Search, settings: Settings, report: Report) -> Table:
    """The ties of a run."""
    found = dict(zip(("earliest", "latest"), winners(search), strict=True))
    values = sorted(estimate.value for estimate in search.estimates().values())
    rows = [
        {
            "protocol": search.state.protocol.name,
            "tie_break": rule,
            "ties": 1 + len(choice.tied_with),
            "candidates": len(values),
            "top": choice.estimate.value,
            "winner": choice.candidate,
            "truth": search.truth.get(choice.candidate),
        }
        for rule, choice in found.items()
    ]
    columns = (
        Column(name="protocol", heading="protocol"),
        Column(name="tie_break", heading="ties go to the"),
        Column(name="ties", heading="at the top", kind="count"),
        Column(name="candidates", heading="of", kind="count"),
        Column(name="top", heading="top score", kind="score"),
        Column(name="winner", heading="winner"),
        Column(name="truth", heading="true score", kind="score"),
    )
    note = (
        "Candidates that share the top score, and who wins when ties go to the earliest and to "
        "the latest proposal. Scores in percent; only candidates scored on every task have "
        "true scores."
    )
    hidden = {"truth"} if all(row["truth"] is None for row in rows) else set()

    def draw(figure: Any) -> None:
        figure.set_size_inches(6.0, 3.2)
        axes = figure.subplots()
        scores, counts = np.unique(np.round(np.array(values), 9), return_counts=True)
        shades = [BLUE] * (len(scores) - 1) + [RED]
        axes.vlines(100 * scores, 0, counts, color=shades, linewidth=2.2)
        axes.scatter(100 * scores, counts, color=shades, s=24, zorder=2)
        axes.set_ylim(0, counts.max() * 1.15)
        axes.yaxis.get_major_locator().set_params(integer=True)
        axes.set_xlabel("estimate (%); red: the top score")
        axes.set_ylabel("candidates with it")

    return _table(columns, rows, note, draw, hidden)


def of_series(series: Series, settings: Settings, report: Report) -> Table:
    """The ties of replays over seeds."""
    groups = replayed(series, settings, PROTOCOLS, report)
    ties = {group.label: [_ties(search) for search in group.searches] for group in groups}
    rows = [
        {
            "protocol": group.protocol.name,
            "fraction": group.fraction,
            **mean_and_sd("ties", ties[group.label]),
            "least": min(ties[group.label]),
            "most": max(ties[group.label]),
            **_true_scores(group.searches),
        }
        for group in groups
    ]
    columns = (
        Column(name="protocol", heading="protocol"),
        Column(name="fraction", heading="ρ", kind="score", digits=0),
        Column(name="ties", heading="at the top", kind="count", spread="ties_sd"),
        Column(name="least", heading="least", kind="count"),
        Column(name="most", heading="most", kind="count"),
        Column(name="earliest", heading="earliest", kind="score", spread="earliest_sd"),
        Column(name="latest", heading="latest", kind="score", spread="latest_sd"),
    )
    note = (
        "Candidates that share the top score, and true scores of the winners when exact ties go "
        f"to the earliest and to the latest proposal: means ± SD over {about(series, groups)} "
        "Scores in percent."
    )

    def draw(figure: Any) -> None:
        figure.set_size_inches(6.4, height(len(ties)))
        axes = figure.subplots()
        lines_of_dots(axes, labels(groups), list(ties.values()))
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set_xlim(left=0)
        axes.set_xlabel("candidates that share the top score (1: no tie)")

    return _table(columns, rows, note, draw)


def winners(search: Search) -> tuple[Choice, Choice]:
    """The winners if ties go to the earliest and to the latest proposal."""
    early = search.highest(HighestEstimate(tie_break="earliest"))
    return early, search.highest(HighestEstimate(tie_break="latest"))


def _ties(search: Search) -> int:
    return 1 + len(winners(search)[0].tied_with)


def _true_scores(searches: Sequence[Search]) -> Row:
    found = [(search.truth, *winners(search)) for search in searches]
    early = [truth.get(first.candidate) for truth, first, _ in found]
    late = [truth.get(last.candidate) for truth, _, last in found]
    return mean_and_sd("earliest", early) | mean_and_sd("latest", late)


def _table(
    columns: Sequence[Column],
    rows: Sequence[Row],
    note: str,
    draw: Any,
    hidden: set[str] | None = None,
) -> Table:
    return Table(
        name="ties",
        title="Sensitivity to the tie-break rule",
        columns=tuple(columns),
        rows=tuple(rows),
        note=note,
        hidden=frozenset(hidden or ()),
        draw=draw,
    )
