"""Figures of a run as SVG: the same drawing for page, report, notebook and paper."""

from coevolve.figures.certainty_chart import certainty_figure
from coevolve.figures.comparison_chart import comparison_figure, replay_figure
from coevolve.figures.failure_chart import failures_figure
from coevolve.figures.figure import Figure
from coevolve.figures.frontier_chart import frontier_figure, weights_figure
from coevolve.figures.lineage_chart import lineage_figure
from coevolve.figures.matrix_picture import matrix_figure
from coevolve.figures.palette import style_sheet
from coevolve.figures.progress_chart import progress_figure
from coevolve.figures.spend_chart import costs_figure, spend_figure
from coevolve.views.outcome_grid import OutcomeGrid
from coevolve.views.timeline import Snapshot

__all__ = [
    "Figure",
    "certainty_figure",
    "comparison_figure",
    "costs_figure",
    "failures_figure",
    "frontier_figure",
    "lineage_figure",
    "matrix_figure",
    "progress_figure",
    "replay_figure",
    "run_figures",
    "spend_figure",
    "style_sheet",
    "weights_figure",
]


def run_figures(found: Snapshot, grid: OutcomeGrid, *, prefix: str = "") -> dict[str, Figure]:
    """Every figure of one run by its name, in the order in which a report shows them."""
    best = found.report.best
    figures = (
        progress_figure(found.progress, prefix=prefix),
        certainty_figure(found.certainty, prefix=prefix),
        matrix_figure(grid, best=best, prefix=prefix),
        frontier_figure(found.frontier, prefix=prefix),
        weights_figure(found.frontier, prefix=prefix),
        lineage_figure(found.lineage, prefix=prefix),
        spend_figure(found.spend, prefix=prefix),
        costs_figure(found.spend, best=best, prefix=prefix),
        failures_figure(found.failures, prefix=prefix),
    )
    return {figure.name: figure for figure in figures}
