"""Draws `wallclock.svg` and `in-flight.svg` of `docs/engine.md`, from recorded results.

`wallclock.svg`, from `benchmarks/wallclock.py`. Left: one round of 89 trials on ten places, as
asked and longest first. Right: hours of a whole search by order, with and without overlap of
proposing and evaluating.

`in-flight.svg`, from `benchmarks/in_flight.py`: hours of a search against the true score of its
winner, with rounds, with overlap, and without rounds.

Run it as `make figures` or `python docs/figures_wallclock.py [FOLDER]`; FOLDER is docs/img unless
given.
"""

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures import ACCENT, INK, PALE, SOFT, STYLE, TRUE

HERE = Path(__file__).parent
RESULTS = HERE.parent / "benchmarks" / "results"
PLACES = 10
BOUND = "no order can beat"
_NEAR = 0.25
"""Hours and points below which two marks share a label."""
SHADES = {"full": ACCENT, "20%": "#d58b2a"}


def draw_round(axes: Axes, rows: list[dict[str, Any]], title: str, most: float) -> None:
    """The trials of a round, each in the place it ran in."""
    end = max(row["began"] + row["minutes"] for row in rows)
    for row in rows:
        last = row["began"] + row["minutes"] == end
        axes.barh(
            row["place"],
            row["minutes"],
            left=row["began"],
            height=0.8,
            color=TRUE if last else ACCENT,
            edgecolor="white",
            linewidth=0.8,
        )
    axes.axvline(end, color=INK, linewidth=0.8)
    axes.text(end, -1.1, f" {end:.0f} min", color=INK, va="center")
    axes.set_title(title, size=9, loc="left", color=INK)
    axes.set_xlim(0, 1.12 * most)
    axes.set_ylim(PLACES - 0.4, -1.8)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)


def draw_hours(axes: Axes, rows: list[dict[str, str]]) -> None:
    """Mean hours with standard errors; hollow with overlap."""
    names = [row["order"] for row in rows]
    for budget, color in SHADES.items():
        for overlap in (False, True):
            column = f"{budget}, overlap" if overlap else budget
            pairs = [row[column].split(" ± ") for row in rows]
            hours, errors = ([float(pair[i]) for pair in pairs] for i in (0, 1))
            places = [place + (0.15 if overlap else -0.15) for place in range(len(rows))]
            axes.errorbar(
                hours,
                places,
                xerr=errors,
                fmt="o",
                color=color,
                markerfacecolor="white" if overlap else color,
                markersize=5,
                linewidth=1.2,
                label=column,
            )
    axes.axhline(names.index(BOUND) - 0.5, color=PALE, linewidth=0.8)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(left=0)
    axes.set_xlabel("hours of ten rounds")
    axes.grid(axis="x", color=PALE, linewidth=0.4)
    axes.tick_params(axis="y", length=0)
    axes.legend(frameon=False, fontsize=8, ncols=2, loc="lower right", bbox_to_anchor=(1, 1))


def figure(results: dict[str, Any]) -> Figure:
    """Both halves."""
    whole = Figure(figsize=(9.6, 4.4), facecolor="white", layout="constrained")
    [[left, right]] = whole.subfigures(1, 2, squeeze=False, width_ratios=(1, 1.5))
    example = results["example"]
    most = max(row["began"] + row["minutes"] for row in example)
    orders = list(dict.fromkeys(row["order"] for row in example))
    panels = left.subplots(len(orders), 1, sharex=True)
    for axes, order in zip(panels, orders, strict=True):
        mine = [row for row in example if row["order"] == order]
        draw_round(axes, mine, f"{len(mine)} trials, {order.split(',')[0]}", most)
    panels[-1].set_xlabel("minutes of one round (red: the last to end)", color=SOFT)
    draw_hours(right.subplots(), results["orders"])
    return whole


def draw_flights(axes: Axes, rows: list[dict[str, str]]) -> None:
    """Hours and winners of one kind of search; marks close to each other share a label."""
    labels: list[tuple[float, float, list[str]]] = []
    for row in rows:
        pairs = [row[name].split(" ± ") for name in ("hours", "winner")]
        (hours, hours_error), (winner, error) = (map(float, pair) for pair in pairs)
        name = row["candidates"].removeprefix("in_flight = ")
        axes.errorbar(
            hours,
            winner,
            xerr=hours_error,
            yerr=error,
            fmt="o",
            color=TRUE if name.isdigit() else ACCENT,
            markersize=5,
            linewidth=1.2,
        )
        near = (n for x, y, n in labels if abs(x - hours) < _NEAR and abs(y - winner) < _NEAR)
        if (names := next(near, None)) is not None:
            names.append(name)
        else:
            labels.append((hours, winner, [name]))
    for hours, winner, names in labels:
        left = names[0].isdigit()
        axes.annotate(
            ", ".join(names),
            (hours, winner),
            xytext=(-6 if left else 6, 4),
            textcoords="offset points",
            ha="right" if left else "left",
            size=8,
            color=INK,
        )
    axes.set_title(rows[0]["search"], size=9, loc="left", color=INK)
    axes.set_xlim(0, 1.2 * max(hours for hours, _, _ in labels))
    axes.set_xlabel("hours", color=SOFT)
    axes.grid(color=PALE, linewidth=0.4)


def flight_figure(rows: list[dict[str, str]]) -> Figure:
    """One panel for each kind of search; numbers are candidates under way at once."""
    whole = Figure(figsize=(9.6, 3.2), facecolor="white", layout="constrained")
    searches = list(dict.fromkeys(row["search"] for row in rows))
    panels = whole.subplots(1, len(searches))
    for axes, search in zip(panels, searches, strict=True):
        draw_flights(axes, [row for row in rows if row["search"] == search])
    panels[0].set_ylabel("true score of the winner, points", color=SOFT)
    return whole


def main() -> None:
    """Draw the figures."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "img"
    folder.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(STYLE):
        drawn = {
            "wallclock": figure(json.loads((RESULTS / "wallclock.json").read_text())),
            "in-flight": flight_figure(
                json.loads((RESULTS / "in_flight.json").read_text())["searches"]
            ),
        }
        for name, one in drawn.items():
            one.savefig(folder / f"{name}.svg", metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    main()
