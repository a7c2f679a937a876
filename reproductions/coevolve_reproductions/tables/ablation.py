"""The table ablation: the gain of each part of a protocol in the winner's true score."""

from dataclasses import replace
from typing import Any

from coevolve.analysis.matrix import Series
from coevolve.analysis.replay import Report
from coevolve.core.estimators import RawMean
from coevolve.core.protocols import SearchProtocol, protocols
from coevolve.core.weights import UniformWeights
from coevolve_reproductions.tables.analysis_source import (
    Replayed,
    Settings,
    about,
    labels,
    replayed,
)
from coevolve_reproductions.tables.finished_search import Search
from coevolve_reproductions.tables.table import (
    Column,
    Row,
    Table,
    height,
    lines_of_dots,
    mean_and_sd,
)

PROTOCOLS = (
    "naive",
    "random-resample",
    "random-estimate",
    "task-coevolve",
    "joint",
    "adaptive",
)
"""Each adds a part to the one before; unknown ones are left out."""

COLUMNS = (
    Column(name="protocol", heading="protocol"),
    Column(name="fraction", heading="ρ", kind="score", digits=0),
    Column(name="rotates", heading="Rot.", kind="tick"),
    Column(name="estimates", heading="Est.", kind="tick"),
    Column(name="weighted", heading="Wgt.", kind="tick"),
    Column(name="evaluations", heading="trials", kind="count"),
    Column(name="truth", heading="true score", kind="score", spread="truth_sd"),
    Column(name="regret", heading="regret", kind="score", spread="regret_sd"),
)


def of_run(search: Search, settings: Settings, report: Report) -> Table:
    """The ablation of a run by replays, on the candidates with a full-set score."""
    series = search.scored_series()
    table = of_series(series, settings, report)
    known, total = len(series.generated), len(search.candidates)
    if known == total:
        return table
    part = f"Replayed on the {known} of {total} candidates with a full-set score."
    return replace(table, note=f"{part} {table.note}")


def of_series(series: Series, settings: Settings, report: Report) -> Table:
    """The ablation on a series: means ± SD over seeds."""
    known = {protocol.name for protocol in protocols()}
    groups = replayed(series, settings, [name for name in PROTOCOLS if name in known], report)
    best = float(series.true_scores()[len(series.starts) :].max())
    note = (
        f"Means ± SD over {about(series, groups)} Rot.: new tasks every round; Est.: an estimate "
        "of the full set instead of the raw mean; Wgt.: tasks drawn by weight. True score: that "
        f"of the winner; the best candidate has {100 * best:.1f}. Scores in percent. A replay has "
        "no proposer that could overfit a fixed subset, so naive looks better here than in a "
        "search."
    )

    def draw(figure: Any) -> None:
        figure.set_size_inches(6.4, height(len(groups)))
        axes = figure.subplots()
        lines_of_dots(
            axes, labels(groups), [[100 * v for v in _truths(group)] for group in groups]
        )
        axes.axvline(100 * best, color="black", linewidth=1, linestyle=(0, (4, 3)))
        axes.set_xlabel("true score of the winner (%); dashed: the best candidate")

    return Table(
        name="ablation",
        title="Component ablation",
        columns=COLUMNS,
        rows=tuple(_row(group) for group in groups),
        note=note,
        draw=draw,
    )


def ticks(rule: SearchProtocol) -> dict[str, bool]:
    """Which of the three components a protocol has."""
    return {
        "rotates": rule.design.redraws,
        "estimates": not isinstance(rule.estimator, RawMean),
        "weighted": not isinstance(rule.weighting, UniformWeights),
    }


def _truths(group: Replayed) -> list[float]:
    found = (search.verdict().truth for search in group.searches)
    return [truth for truth in found if truth is not None]


def _row(group: Replayed) -> Row:
    rule, found = group.protocol, [search.verdict() for search in group.searches]
    spent = mean_and_sd("evaluations", [s.state.evaluations for s in group.searches])
    return {
        "protocol": rule.name,
        "fraction": group.fraction,
        **ticks(rule),
        "evaluations": spent["evaluations"],
        **mean_and_sd("truth", [verdict.truth for verdict in found]),
        **mean_and_sd("regret", [verdict.regret for verdict in found]),
    }
