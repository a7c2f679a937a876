"""The table accuracy: how well the estimates agree with the true scores."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from coevolve.analysis.matrix import Series
from coevolve.analysis.replay import Report
from coevolve.errors import StateError
from coevolve_reproductions.tables.analysis_source import Settings, about, replayed
from coevolve_reproductions.tables.finished_search import PAY, Search
from coevolve_reproductions.tables.table import (
    BLUE,
    PALE,
    RED,
    SOFT,
    Cell,
    Column,
    Row,
    Table,
    mean_and_sd,
)

COLUMNS = (
    Column(name="protocol", heading="protocol"),
    Column(name="fraction", heading="ρ", kind="score", digits=0),
    Column(name="spearman", heading="Spearman", kind="number", spread="spearman_sd"),
    Column(name="rank", heading="rank", kind="count", spread="rank_sd"),
    Column(name="ranked", heading="of", kind="count"),
    Column(name="truth", heading="true score", kind="score", spread="truth_sd"),
    Column(name="best", heading="best", kind="score", spread="best_sd"),
)
_MEANING = (
    "Spearman: rank correlation of estimates and true scores. Rank and true score: those of the "
    "winner, by true score; best: the highest true score. Scores in percent."
)


def of_run(search: Search, settings: Settings, report: Report) -> Table:
    """The accuracy of a run, for the candidates with a full-set score."""
    estimates = search.estimates()
    known = [name for name in estimates if name in search.truth]
    if len(known) < 2:
        total = len(search.candidates)
        raise StateError(
            f"the run has estimates and full-set scores of {len(known)} of {total} candidates; "
            f"accuracy needs two or more. {PAY} Their estimates stay those of the search."
        )
    note = (
        f"{len(known)} of {len(search.candidates)} candidates have a full-set score and are "
        f"ranked; their estimates are those before that score. {_MEANING}"
    )
    if search.choice().candidate not in search.truth:
        note += f" The winner, {search.choice().candidate}, has none: its rank is unknown."
    row = _row([search]) | {"protocol": search.state.protocol.name, "fraction": None}
    return _table([row], [(search.state.protocol.name, search)], note)


def of_series(series: Series, settings: Settings, report: Report) -> Table:
    """The accuracy of replays: means ± SD over seeds."""
    groups = replayed(series, settings, ["task-coevolve"], report)
    rows = [
        _row(group.searches) | {"protocol": group.protocol.name, "fraction": group.fraction}
        for group in groups
    ]
    note = f"Means ± SD over {about(series, groups)} {_MEANING} The figure shows the first replay."
    panels = [(group.label, group.searches[0]) for group in groups]
    return _table(rows, panels, note)


def _row(searches: Sequence[Search]) -> dict[str, Cell]:
    found = [search.verdict() for search in searches]
    return {
        **mean_and_sd("spearman", [verdict.spearman for verdict in found]),
        **mean_and_sd("rank", [verdict.rank for verdict in found]),
        "ranked": found[0].ranked,
        **mean_and_sd("truth", [verdict.truth for verdict in found]),
        **mean_and_sd("best", [verdict.best for verdict in found]),
    }


def _table(rows: Sequence[Row], panels: Sequence[tuple[str, Search]], note: str) -> Table:
    def draw(figure: Any) -> None:
        figure.set_size_inches(max(4.6, 3.4 * len(panels) + 0.4), 4.0)
        parts = figure.subplots(1, len(panels), squeeze=False)[0]
        for axes, (label, search) in zip(parts, panels, strict=True):
            _scatter(axes, search)
            axes.set_title(label)
            axes.set_xlabel("true score (%)")
        parts[0].set_ylabel("estimate Ŝ (%)")
        handles, labels = parts[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8)

    return Table(
        name="accuracy",
        title="Accuracy of the estimates against full-set scores",
        columns=COLUMNS,
        rows=tuple(rows),
        note=note,
        draw=draw,
    )


def _scatter(axes: Any, search: Search) -> None:
    estimates, winner = search.estimates(), search.choice().candidate
    names = [name for name in estimates if name in search.truth]
    x = 100 * np.array([search.truth[name] for name in names])
    y = 100 * np.array([estimates[name].value for name in names])
    margin = 0.06 * max(float(np.ptp(x)), 1.0)
    ends = [float(x.min()) - margin, float(x.max()) + margin]
    axes.plot(ends, ends, color=PALE, linewidth=1.2, zorder=0, label="estimate = truth")
    axes.set_xlim(ends)
    axes.scatter(x, y, s=22, color=BLUE, alpha=0.75, linewidth=0, label="candidate")
    best = int(np.argmax(x))
    axes.scatter(x[best], y[best], s=60, facecolor="none", edgecolor=SOFT, label="truly best")
    if winner in names:
        at = names.index(winner)
        axes.scatter(x[at], y[at], s=46, marker="D", color=RED, label="winner")
