"""Draws the figure of `docs/concepts.md` and prints the numbers behind it.

Left: how likely each of 89 tasks is drawn, uniformly and by the paper's weights. Right: what
the estimators make of 2,000 draws for one candidate, whose full-set score is known.

Run it as `python docs/figures.py [PATH]`; PATH is docs/img/estimators.svg unless given.
"""

import sys
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from coevolve import Design, History, Pool
from coevolve.core.arrays import Floats
from coevolve.core.assignment import drawn_samples
from coevolve.core.designs import DesignMethod, SuccessiveDesign, UniformDesign
from coevolve.core.estimators import Difference, Estimator, Hajek, RawMean
from coevolve.core.variance import Past
from coevolve.core.weights import TaskView, VarianceWeights

GROUPS = {"never solved": 32, "mixed": 23, "always solved": 34}
SIZES = tuple(GROUPS.values())
TASKS = sum(SIZES)
DRAWN = 18
DRAWS = 2_000

POOL = Pool([f"task-{i}" for i in range(TASKS)])
HISTORY = History(mean=np.repeat([0.0, 0.5, 1.0], SIZES), count=np.full(TASKS, 2))
WEIGHTS = VarianceWeights()(TaskView(history=HISTORY))
SOLVED = (4, 14, 33)
"""How many tasks of each group the candidate solves."""
OUTCOMES = np.concatenate([np.arange(n) < k for n, k in zip(SIZES, SOLVED, strict=True)]) * 1.0
TRUTH = float(OUTCOMES.mean())

INK, SOFT = "#22303c", "#5f6f7c"
ACCENT, PALE, TRUE = "#1f6f8b", "#a9b8c2", "#c4512d"
SHADES = ("#7fb0c0", ACCENT, "#b9c6cd")

STYLE: dict[Any, Any] = {
    "svg.hashsalt": "coevolve",
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


class Row(NamedTuple):
    """A way to turn a draw into an estimate."""

    draw: str
    method: DesignMethod
    estimate: str
    estimator: Estimator
    shown: bool = True


ROWS = (
    Row("uniform draw", UniformDesign(), "raw mean", RawMean()),
    Row("uniform draw", UniformDesign(), "difference", Difference(), shown=False),
    Row("weighted draw", SuccessiveDesign(), "raw mean", RawMean()),
    Row("weighted draw", SuccessiveDesign(), "Hájek", Hajek()),
    Row("weighted draw", SuccessiveDesign(), "difference", Difference()),
)


class Repeated(NamedTuple):
    """Estimates of many draws, and how many of their 95% intervals hold the full-set score."""

    values: Floats
    covered: float | None


def repeated(row: Row) -> Repeated:
    """The estimates of one candidate from many draws; equal seeds, so equal draws for a design."""
    everything, values, covered = np.arange(TASKS), np.empty(DRAWS), 0
    bounded = True
    for number in range(DRAWS):
        design = Design.from_draw(
            row.method.draw(WEIGHTS, DRAWN, np.random.default_rng(number)),
            round=1,
            tasks=POOL,
            pool="all",
            members=POOL.members("all"),
            method=row.draw,
            seed=(number,),
            weights=WEIGHTS,
            past=Past.of(HISTORY),
        )
        samples = drawn_samples([[design]], everything, OUTCOMES)
        estimate = row.estimator.estimate(samples, np.ones(1), 0.95)
        values[number] = estimate.value
        if estimate.low is None or estimate.high is None:
            bounded = False
        else:
            covered += estimate.low <= TRUTH <= estimate.high
    return Repeated(values, covered / DRAWS if bounded else None)


def draw_probabilities(axes: Axes) -> None:
    """The left panel: a bar per task, as high as its inclusion probability."""
    probabilities = SuccessiveDesign().draw(WEIGHTS, DRAWN, np.random.default_rng(0)).probabilities
    start = 0
    for (name, size), shade in zip(GROUPS.items(), SHADES, strict=True):
        tasks, height = np.arange(start, start + size), float(probabilities[start])
        axes.bar(tasks, probabilities[tasks], width=0.72, color=shade, linewidth=0)
        label = f"{name}\n{size} tasks\nπ = {height:.3f}"
        axes.text(start + (size - 1) / 2, height + 0.012, label, ha="center", linespacing=1.35)
        start += size
    uniform = DRAWN / TASKS
    axes.axhline(uniform, color=INK, linewidth=1, linestyle=(0, (4, 3)))
    label = f"uniform draw:\nπ = {uniform:.3f} for all"
    axes.text(TASKS, uniform + 0.012, label, ha="right", linespacing=1.35)
    axes.set_xlim(-1.5, TASKS + 0.5)
    axes.set_ylim(0, 0.5)
    axes.set_xticks([])
    axes.set_xlabel(f"the {TASKS} tasks of the pool, by their outcomes in Phase 0")
    axes.set_ylabel("inclusion probability π")


def draw_distribution(axes: Axes, row: Row, values: Floats) -> None:
    """One row of the right panel: the estimates of all draws, and their mean."""
    edges = (np.arange(-4, 24) - 0.5) / DRAWN
    share = np.full(len(values), 1 / len(values))
    color = ACCENT if row.estimate == "difference" else PALE
    axes.hist(values, bins=edges.tolist(), weights=share, color=color, rwidth=0.9)
    axes.axvline(TRUTH, color=TRUE, linewidth=1.4)
    mean, spread = float(values.mean()), float(values.std())
    axes.plot([mean], [-0.05], marker="^", color=INK, markersize=5, clip_on=False)
    axes.text(0.0, 0.30, f"{row.estimate},\n{row.draw}", va="center", ha="left", linespacing=1.35)
    note = f"mean {mean:.3f}\nspread {spread:.3f}"
    axes.text(1.06, 0.30, note, va="center", ha="right", color=SOFT, linespacing=1.35)
    axes.set_xlim(-0.02, 1.08)
    axes.set_ylim(0, 0.44)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.tick_params(labelbottom=False, length=0)


def figure(results: list[Repeated]) -> Figure:
    """Both panels."""
    whole = Figure(figsize=(10, 4.6), facecolor="white")
    title: dict[str, Any] = {"weight": "bold", "size": 10.5}
    draw_probabilities(whole.add_axes((0.06, 0.12, 0.40, 0.72)))
    whole.text(0.06, 0.925, "Which tasks are drawn", **title)
    whole.text(
        0.51, 0.925, f"What {DRAWS:,} draws of {DRAWN} tasks say about one candidate", **title
    )
    shown = [(row, r.values) for row, r in zip(ROWS, results, strict=True) if row.shown]
    height = 0.72 / len(shown)
    for number, (row, values) in enumerate(shown, start=1):
        axes = whole.add_axes((0.51, 0.84 - number * height, 0.47, height - 0.03))
        draw_distribution(axes, row, values)
        if number == 1:
            label = f"full-set score {TRUTH:.3f}"
            axes.text(TRUTH, 0.47, label, ha="center", color=TRUE, size=8.5)
        if number == len(shown):
            note = "far left: draws with the one\nalways-solved task it fails"
            axes.text(1.06, 0.045, note, ha="right", color=SOFT, size=7.5)
            axes.tick_params(labelbottom=True, length=3, pad=8)
            axes.set_xlabel("estimate of the full-set score (▲ mean of all draws)")
    return whole


def report(results: list[Repeated]) -> str:
    """The same as a table."""
    lines = ["draw           estimate      mean  spread  95% interval holds"]
    for row, (values, covered) in zip(ROWS, results, strict=True):
        held = "no interval" if covered is None else f"{covered:.1%}"
        numbers = f"{values.mean():5.3f}  {values.std():6.3f}  {held}"
        lines.append(f"{row.draw:<13}  {row.estimate:<10}  {numbers}")
    return "\n".join([*lines, f"full-set score {TRUTH:.3f}"])


def main() -> None:
    """Draw the figure and print its numbers."""
    default = Path(__file__).parent / "img" / "estimators.svg"
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    path.parent.mkdir(parents=True, exist_ok=True)
    results = [repeated(row) for row in ROWS]
    with mpl.rc_context(STYLE):
        metadata = {"Date": None, "Creator": None} if path.suffix == ".svg" else None
        figure(results).savefig(path, dpi=160, metadata=metadata)
    print(report(results))


if __name__ == "__main__":
    main()
