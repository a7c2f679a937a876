"""Draws the figures of `docs/choosing.md`.

`estimates.svg`: one search of 30 candidates under four protocols, estimates beside true scores,
and how many tasks each candidate was evaluated on. `budgets.svg`: regret and budget, from the
recorded results of `benchmarks/choosing.py`.

Run it as `make figures` or `python docs/figures_choosing.py [FOLDER]`; FOLDER is docs/img unless
given.
"""

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from coevolve import protocol
from coevolve.analysis import synthetic_matrix
from coevolve.analysis.replay_search import Played, Stage, play
from figures import ACCENT, INK, PALE, SOFT, STYLE, TRUE

HERE = Path(__file__).parent
RESULTS = HERE.parent / "benchmarks" / "results" / "choosing.json"
SHOWN = {
    "random-resample": "random-resample: raw means of random subsets",
    "task-coevolve": "task-coevolve: weighted subsets, difference estimate",
    "joint": "joint: the same subsets, one model of all outcomes",
    "adaptive": "adaptive: the same budget, spent on contenders",
}
LINES = {
    "random-resample": (PALE, "o"),
    "naive": (SOFT, "v"),
    "task-coevolve": ("#d58b2a", "s"),
    "joint": ("#7fb0c0", "D"),
    "adaptive": (ACCENT, "o"),
}
FRACTION = 0.1
SEED = 5


def searches() -> list[Played]:
    """The same search under every protocol shown."""
    stage = Stage.of(synthetic_matrix(tasks=89, candidates=32, worlds=1).series[0], seed=SEED)
    return [play(stage, protocol(name), fraction=FRACTION) for name in SHOWN]


def draw_search(axes: Axes, played: Played) -> None:
    """Estimates against true scores; the area of a point is the number of tasks behind it."""
    names, truth = played.stage.series.generated, played.stage.truth
    pairs = [
        (name, estimate)
        for name, estimate in zip(names, played.estimates, strict=True)
        if estimate is not None
    ]
    true = np.array([truth[name] for name, _ in pairs])
    values = np.array([estimate.value for _, estimate in pairs])
    tasks = np.array([estimate.tasks for _, estimate in pairs])
    axes.plot([0, 1.2], [0, 1.2], color=SOFT, linewidth=0.8, linestyle=(0, (4, 3)))
    axes.scatter(true, values, s=1.6 * tasks, color=ACCENT, alpha=0.55, linewidth=0)
    winner = [name for name, _ in pairs].index(played.choice.candidate)
    axes.scatter(
        true[winner], values[winner], s=1.6 * tasks[winner], color=TRUE, linewidth=0, zorder=3
    )
    axes.axvline(true.max(), color=INK, linewidth=0.8)
    lost = 100 * (true.max() - true[winner])
    axes.set_title(SHOWN[played.selector.protocol.name], size=9, loc="left", color=INK)
    least, most = tasks.min(), tasks.max()
    each = f"{least} tasks each" if least == most else f"{least} to {most} tasks each"
    note = f"winner {lost:.1f} points below the best\n{each}"
    axes.text(0.03, 0.97, note, transform=axes.transAxes, va="top", color=SOFT, linespacing=1.35)
    axes.set_xlim(0.45, 0.75)
    axes.set_ylim(0.15, 1.22)


def estimates_figure(played: list[Played]) -> Figure:
    """Four panels, one per protocol."""
    whole = Figure(figsize=(9, 6.4), facecolor="white", layout="constrained")
    grid = whole.subplots(2, 2, sharex=True, sharey=True)
    for axes, search in zip(grid.flat, played, strict=True):
        draw_search(axes, search)
    for axes in grid[:, 0]:
        axes.set_ylabel("estimate")
    for axes in grid[1]:
        axes.set_xlabel("true full-set score (line: the best candidate; red: the winner)")
    return whole


def budgets_figure(rows: list[dict[str, Any]]) -> Figure:
    """Mean regret against the share of the tasks evaluated."""
    whole = Figure(figsize=(7.2, 4.0), facecolor="white", layout="constrained")
    axes = whole.subplots()
    for name, (color, marker) in LINES.items():
        mine = [row for row in rows if row["protocol"] == name]
        x = [100 * row["fraction"] for row in mine]
        y = [float(row["regret"]) for row in mine]
        error = [float(row["±"]) for row in mine]
        axes.errorbar(
            x, y, yerr=error, color=color, marker=marker, markersize=5, linewidth=1.6, label=name
        )
    axes.set_xscale("log")
    axes.set_xticks([3, 7, 10, 20, 40], ["3%", "7%", "10%", "20%", "40%"])
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.set_xlabel("budget: share of the tasks per candidate, on average")
    axes.set_ylabel("regret in points")
    axes.legend(frameon=False)
    return whole


def main() -> None:
    """Draw both figures."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "img"
    folder.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(STYLE):
        drawn = {
            "estimates": estimates_figure(searches()),
            "budgets": budgets_figure(json.loads(RESULTS.read_text())["budgets"]),
        }
        for name, figure in drawn.items():
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    main()
