"""The table headroom: whether any candidate beats the best starting harness."""

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import Any

from coevolve.analysis.matrix import Series
from coevolve.analysis.replay import Report
from coevolve.core.estimators import Estimate
from coevolve.errors import StateError
from coevolve.formatting import middle
from coevolve_reproductions.tables.analysis_source import Settings
from coevolve_reproductions.tables.finished_search import Search
from coevolve_reproductions.tables.table import BLUE, GREEN, INK, PALE, Column, Row, Table

COLUMNS = (
    Column(name="candidate", heading="candidate"),
    Column(name="kind", heading="kind"),
    Column(name="score", heading="score", kind="score"),
    Column(name="low", heading="low", kind="score"),
    Column(name="high", heading="high", kind="score"),
    Column(name="difference", heading="vs. start", kind="score"),
    Column(name="chance", heading="chance", kind="score", digits=0),
)
_SHOWN = 10
_EXACT = "full set"
_NAMED, _LONGEST = 40, 24
"""Names on the axis of the figure, and how long one may be."""


def of_run(search: Search, settings: Settings, report: Report) -> Table:
    """The scores of a run: exact for candidates scored on every task, else estimates."""
    starts = {name: search.truth[name] for name in search.state.starts if name in search.truth}
    if not starts:
        raise StateError(
            "headroom compares with the best starting harness, but none has a score on every "
            "task. Record one with Selector.tell_full before the first ask."
        )
    best, estimates = max(starts.values()), search.estimates()
    rows = [
        _exact(name, search.truth[name], best)
        if name in search.truth
        else _estimated(name, estimates[name], best, search.state.confidence)
        for name in search.candidates
        if name in search.truth or name in estimates
    ]
    return _table(starts, rows, search.state.confidence)


def of_series(series: Series, settings: Settings, report: Report) -> Table:
    """The true scores of a series; means over some tasks where the others were never run."""
    scores = dict(zip(series.candidates, series.true_scores().tolist(), strict=True))
    seen = dict(zip(series.candidates, series.evaluated().tolist(), strict=True))
    starts = {name: scores[name] for name in series.starts}
    best, size = max(starts.values()), len(series.pool)
    rows = []
    for name in series.generated:
        row = _exact(name, scores[name], best)
        part = {"kind": f"{seen[name]} of {size} tasks", "low": None, "high": None}
        rows.append(row if seen[name] == size else row | part)
    return _table(starts, rows)


def _exact(name: str, score: float, best: float) -> dict[str, Any]:
    return {
        "candidate": name,
        "kind": _EXACT,
        "score": score,
        "low": score,
        "high": score,
        "difference": score - best,
        "chance": None,
    }


def _estimated(name: str, estimate: Estimate, best: float, confidence: float) -> dict[str, Any]:
    return _exact(name, estimate.value, best) | {
        "kind": f"{estimate.tasks} of {estimate.pool_size} tasks",
        "low": estimate.low,
        "high": estimate.high,
        "chance": _chance(estimate, best, confidence),
    }


def _chance(estimate: Estimate, best: float, confidence: float) -> float | None:
    """Φ((Ŝ - best) / s), with s such that the normal interval is as wide as the estimate's.

    >>> estimate = Estimate(value=0.7, se=0.1, low=0.5, high=0.9, tasks=9, drawn=9, pool_size=99,
    ...     method="difference")
    >>> round(_chance(estimate, 0.5, 0.95), 6)
    0.975
    """
    if estimate.high is None or estimate.high <= estimate.value:
        return None
    normal = NormalDist()
    spread = (estimate.high - estimate.value) / normal.inv_cdf((1 + confidence) / 2)
    return normal.cdf((estimate.value - best) / spread)


def _table(
    starts: Mapping[str, float], rows: Sequence[Row], confidence: float | None = None
) -> Table:
    if not rows:
        raise StateError("no generated candidate has a score yet; ask, evaluate and tell first.")
    first = max(starts, key=lambda name: starts[name])
    best = starts[first]
    exact = all(row["kind"] == _EXACT for row in rows)
    above = sum(_number(row, "difference") > 0 for row in rows)
    sure = sum(row["low"] is not None and _number(row, "low") > best for row in rows)
    note = f"{above} of {len(rows)} candidates score above the best starting harness, {first}"
    if confidence is not None and not exact:
        note += (
            f"; the {confidence:.0%} interval of {sure} is above it. Chance to be above it: for "
            "one candidate with this estimate, by a normal distribution as wide as its interval. "
            "The highest of many estimates is high partly by luck: run it on every task before "
            "you trust it"
        )
    elif not exact:
        note += (
            ". Where some tasks were not run, the score is the mean over the others, which may be "
            "easier or harder"
        )
    start = _exact(first, best, best) | {"kind": "best start"}
    ranked = sorted(rows, key=lambda row: -_number(row, "score"))

    def draw(figure: Any) -> None:
        figure.set_size_inches(max(5.0, 2.0 + 0.17 * min(len(rows), _NAMED)), 4.2)
        _points(figure.subplots(), rows, first, best)

    return Table(
        name="headroom",
        title="Headroom: does any candidate beat the start?",
        columns=COLUMNS,
        rows=(start, *ranked),
        note=f"{note}. Scores in percent.",
        hidden=frozenset({"low", "high", "chance"} if exact or confidence is None else ()),
        limit=1 + _SHOWN,
        draw=draw,
    )


def _number(row: Row, name: str) -> float:
    value = row[name]
    return value if isinstance(value, float) else math.nan


def _points(axes: Any, rows: Sequence[Row], first: str, best: float) -> None:
    """Scores in the order of proposal, with their intervals, and the best start as a line."""
    axes.axhline(100 * best, color=INK, linewidth=1.1, linestyle=(0, (4, 3)))
    for kind, color in ((True, GREEN), (False, BLUE)):
        places = [i for i, row in enumerate(rows, start=1) if (row["kind"] == _EXACT) is kind]
        chosen = [rows[i - 1] for i in places]
        if not chosen:
            continue
        bounded = [
            (i, row) for i, row in zip(places, chosen, strict=True) if row["low"] is not None
        ]
        low, high = ([100 * _number(r, end) for _, r in bounded] for end in ("low", "high"))
        axes.vlines([i for i, _ in bounded], low, high, color=PALE, linewidth=1.6, zorder=0)
        partial = "estimate and interval" if bounded else "mean of the evaluated tasks"
        label = "full-set score" if kind else partial
        scores = [100 * _number(row, "score") for row in chosen]
        axes.scatter(places, scores, s=20, color=color, label=label, zorder=2)
    axes.set_xlabel(f"candidate, in the order of proposal (dashed: best start, {first})")
    axes.set_ylabel("score (%)")
    step = math.ceil(len(rows) / _NAMED)
    named = {i: str(row["candidate"]) for i, row in enumerate(rows, start=1)}
    ticks = [i for i in named if (i - 1) % step == 0]
    names = [middle(named[i], _LONGEST) for i in ticks]
    axes.set_xticks(ticks, names, rotation=90, fontsize=7)
    axes.figure.legend(loc="outside upper right", ncols=2, fontsize=8, handletextpad=0.2)
