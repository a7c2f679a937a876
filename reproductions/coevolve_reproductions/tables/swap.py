"""The table swap: the same draws and outcomes under other estimators."""

from collections.abc import Mapping, Sequence
from typing import Any

from coevolve.analysis.matrix import Series
from coevolve.analysis.replay import Report
from coevolve.core.estimators import Difference, Estimator, Hajek, HorvitzThompson, RawMean
from coevolve.core.joint import Joint
from coevolve.core.posterior import JointModel
from coevolve_reproductions.tables.analysis_source import Settings, about, labels, replayed
from coevolve_reproductions.tables.finished_search import Search
from coevolve_reproductions.tables.table import (
    BLUE,
    GREEN,
    PALE,
    RED,
    Column,
    Row,
    Table,
    height,
    lines_of_dots,
    mean_and_sd,
)

ESTIMATORS: Mapping[str, Estimator | JointModel] = {
    "Hájek": Hajek(),
    "difference": Difference(),
    "Horvitz-Thompson": HorvitzThompson(),
    "raw mean": RawMean(),
    "joint": Joint(),
}

_MEASURES = (
    Column(name="truth", heading="true score", kind="score", spread="truth_sd"),
    Column(name="regret", heading="regret", kind="score", spread="regret_sd"),
    Column(name="rank", heading="rank", kind="count", spread="rank_sd"),
    Column(name="spearman", heading="Spearman", kind="number", spread="spearman_sd"),
)


def of_run(search: Search, settings: Settings, report: Report) -> Table:
    """A run re-estimated: the winner of each estimator, and its true score where it is known."""
    own = search.choice()
    swapped = _swapped(search)
    rows = []
    for label, other in swapped.items():
        choice = other.choice()
        rows.append(
            {
                "estimator": label,
                "winner": choice.candidate,
                "estimate": choice.estimate.value,
                "estimate_se": choice.estimate.se,
                "ties": 1 + len(choice.tied_with),
                **_measures([other]),
            }
        )
    known = sum(name in search.truth for name in search.candidates)
    note = (
        f"The draws and outcomes of {search.state.protocol.name} under each estimator; the run "
        f"itself used {own.estimate.method} and chose {own.candidate}. Estimates ± standard "
        f"error, in percent. True scores are known of {known} of {len(search.candidates)} "
        "candidates."
    )
    columns = (
        Column(name="estimator", heading="estimator"),
        Column(name="winner", heading="winner"),
        Column(name="estimate", heading="estimate", kind="score", spread="estimate_se"),
        Column(name="ties", heading="ties", kind="count"),
        *_MEASURES,
    )

    def draw(figure: Any) -> None:
        figure.set_size_inches(6.4, height(len(swapped)) + 0.3)
        _strips(figure.subplots(), swapped)

    hidden = ["ties", "regret"] if known else [column.name for column in _MEASURES]
    return _table(columns, rows, note, draw, hidden)


def of_series(series: Series, settings: Settings, report: Report) -> Table:
    """Replays re-estimated: means ± SD over seeds."""
    groups = replayed(series, settings, ["task-coevolve"], report)
    rows: list[Row] = []
    dots: dict[str, list[float]] = {}
    for group, own in zip(groups, labels(groups), strict=True):
        swapped = [_swapped(search) for search in group.searches]
        for label in ESTIMATORS:
            searches = [each[label] for each in swapped if label in each]
            rows.append(
                {
                    "protocol": group.protocol.name,
                    "fraction": group.fraction,
                    "estimator": label,
                    **_measures(searches),
                }
            )
            name = label if len(groups) == 1 else f"{own}, {label}"
            found = (search.verdict().truth for search in searches)
            dots[name] = [100 * truth for truth in found if truth is not None]
    note = (
        f"The draws of each search under each estimator: means ± SD over {about(series, groups)} "
        "Scores in percent. The search itself follows its protocol."
    )
    columns = (
        Column(name="protocol", heading="protocol"),
        Column(name="fraction", heading="ρ", kind="score", digits=0),
        Column(name="estimator", heading="estimator"),
        *_MEASURES,
    )

    def draw(figure: Any) -> None:
        figure.set_size_inches(6.4, height(len(dots)))
        axes = figure.subplots()
        lines_of_dots(axes, list(dots), list(dots.values()))
        axes.set_xlabel("true score of the winner (%)")

    return _table(columns, rows, note, draw)


def _swapped(search: Search) -> dict[str, Search]:
    return {label: search.re_estimated(each) for label, each in ESTIMATORS.items()}


def _measures(searches: Sequence[Search]) -> Row:
    found = [search.verdict() for search in searches]
    return {
        **mean_and_sd("truth", [verdict.truth for verdict in found]),
        **mean_and_sd("regret", [verdict.regret for verdict in found]),
        **mean_and_sd("rank", [verdict.rank for verdict in found]),
        **mean_and_sd("spearman", [verdict.spearman for verdict in found]),
    }


def _table(
    columns: Sequence[Column],
    rows: Sequence[Row],
    note: str,
    draw: Any,
    hidden: Sequence[str] = (),
) -> Table:
    return Table(
        name="swap",
        title="Estimator swap: the same draws, another estimator",
        columns=tuple(columns),
        rows=tuple(rows),
        note=note,
        hidden=frozenset(hidden),
        draw=draw,
    )


def _strips(axes: Any, swapped: Mapping[str, Search]) -> None:
    """A line per estimator: every candidate's estimate, the winner's, and its true score."""
    for place, search in enumerate(swapped.values()):
        values = [100 * estimate.value for estimate in search.estimates().values()]
        axes.scatter(values, [place] * len(values), s=26, color=BLUE, alpha=0.45, linewidth=0)
        choice = search.choice()
        won, first = 100 * choice.estimate.value, place == 0
        label = "winner's estimate" if first else None
        axes.scatter([won], [place], s=42, marker="D", color=RED, label=label)
        if choice.candidate in search.truth:
            label = "winner's true score" if first else None
            true = 100 * search.truth[choice.candidate]
            axes.scatter(
                [true], [place], s=90, marker="|", color=GREEN, linewidth=2.4, label=label
            )
    axes.set_yticks(range(len(swapped)), list(swapped))
    axes.set_ylim(len(swapped) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color=PALE, linewidth=0.6, alpha=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel("estimate of each candidate (%)")
    axes.figure.legend(loc="outside upper right", ncols=2, fontsize=8, handletextpad=0.2)
