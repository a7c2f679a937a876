"""Draws the figure of `docs/searches.md`.

`searches.svg`: the true score of the current choice against the evaluations spent, and the
winners of searches with more and fewer candidates, from the recorded results of
`benchmarks/searches.py`.

Run it as `make figures` or `python docs/figures_searches.py [FOLDER]`; FOLDER is docs/img unless
given.
"""

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from figures import ACCENT, INK, PALE, SOFT, STYLE

HERE = Path(__file__).parent
RESULTS = HERE.parent / "benchmarks" / "results" / "searches.json"
COLORS = {
    "full": INK,
    "adaptive": ACCENT,
    "joint": "#8a6bb1",
    "task-coevolve": "#d58b2a",
    "random-estimate": "#7d9b5a",
    "random-resample": PALE,
    "naive": SOFT,
}


def searches_figure(curves: list[dict[str, Any]], equal: list[dict[str, Any]]) -> Figure:
    """A line for each protocol and fraction, dashed at 7%; dots for other numbers of rounds."""
    whole = Figure(figsize=(7.2, 4.2), facecolor="white", layout="constrained")
    axes = whole.subplots()
    series: dict[tuple[str, float], list[dict[str, Any]]] = {}
    for point in curves:
        series.setdefault((point["protocol"], point["fraction"]), []).append(point)
    for (name, fraction), points in series.items():
        axes.plot(
            [point["evaluations"] for point in points],
            [100 * point["validation"] for point in points],
            color=COLORS[name],
            linestyle=(0, (3, 2)) if fraction < 0.1 else "-",
            linewidth=1.6,
            label=f"{name}, {fraction:.0%}",
        )
    first = curves[0]["evaluations"]  # those of the starting harnesses
    free = [row for row in equal if row["protocol"] == "adaptive" and row["fraction"] == "20%"]
    axes.plot(
        [first + row["evaluations"] for row in free],
        [float(row["validation"].split()[0]) for row in free],
        color=ACCENT,
        linestyle="",
        marker="o",
        markersize=5,
        label="adaptive, 20%: 30, 60 and 90 candidates",
    )
    axes.set_xscale("log")
    ticks = (300, 500, 1000, 2000, 3000, 6000)
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("evaluations, those of starting harnesses included")
    axes.set_ylabel("true score of the current choice in percent")
    axes.legend(frameon=False, fontsize=8)
    return whole


def main() -> None:
    """Draw the figure."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "img"
    folder.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(STYLE):
        recorded = json.loads(RESULTS.read_text())
        curves, equal = recorded["offline: curves"], recorded["offline: equal evaluations"]
        figure = searches_figure(curves, equal)
        figure.savefig(folder / "searches.svg", metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    main()
