"""Figures: one style, and the shapes that several analyses share.

matplotlib is imported when a figure is saved, and not before.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from coevolve.analysis.tables.table import Table
from coevolve.errors import InputError

BLUE, ORANGE, GREEN, RED, PURPLE, SKY = (
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#d55e00",
    "#cc79a7",
    "#56b4e9",
)
"""The palette of Okabe and Ito, which the colour-blind can tell apart."""

INK, SOFT, PALE = "#22303c", "#5f6f7c", "#c3ccd3"

SUFFIXES = (".svg", ".png", ".pdf")

_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "coevolve",
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "xtick.color": SOFT,
    "ytick.color": INK,
}


def checked_suffix(path: Path) -> Path:
    """The path, if a figure can be saved under it.

    >>> checked_suffix(Path("ties.png")).name
    'ties.png'
    """
    if path.suffix not in SUFFIXES:
        raise InputError(
            f"a figure is saved as {', '.join(SUFFIXES)}, by the suffix of its name; got {path}."
        )
    return path


def save_figure(table: Table, path: Path) -> bool:
    """Draw a table's figure into a file; False if it has none.

    Raises:
        ImportError: matplotlib is not installed.
    """
    checked_suffix(path)
    if table.draw is None:
        return False
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE):
        figure = Figure(facecolor="white", layout="constrained")
        table.draw(figure)
        metadata: Any = {".svg": {"Date": None, "Creator": None}}.get(path.suffix)
        figure.savefig(path, dpi=160, metadata=metadata)
    return True


def lines_of_dots(
    axes: Any,
    labels: Sequence[str],
    values: Sequence[Sequence[float]],
) -> None:
    """A line per label, from the top: the mean ± SD, and every value as a small dot below."""
    import numpy as np

    for place, each in enumerate(values):
        if not len(each):
            continue
        if len(each) > 1:
            below = place + 0.18 + np.random.default_rng(place).uniform(0, 0.16, len(each))
            axes.scatter(each, below, s=13, color=SOFT, alpha=0.55, linewidth=0, zorder=1)
        spread = float(np.std(each, ddof=1)) if len(each) > 1 else 0.0
        axes.errorbar(
            [float(np.mean(each))],
            [place],
            xerr=[spread],
            fmt="o",
            color=BLUE,
            markersize=6,
            elinewidth=1.6,
            zorder=2,
        )
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color=PALE, linewidth=0.6, alpha=0.6)
    axes.set_axisbelow(True)


def height(lines: int) -> float:
    """Height in inches of a figure with this many lines.

    >>> height(4) > height(2)
    True
    """
    return 1.3 + 0.36 * lines
