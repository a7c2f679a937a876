"""Tables of named values, and figures in one style.

matplotlib is imported when a figure is saved, and not before.
"""

import csv
import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from coevolve.errors import InputError
from coevolve.formatting import csv_cell, one_line

Cell = str | float | bool | None
"""A value; None where there is none, which is not 0."""

Row = Mapping[str, Cell]

MISSING = "-"
"""How a missing value is shown."""

_SECTION = "section"
_STEPS = 5
"""Commands that are shown for each purpose."""

Kind = Literal["text", "tick", "count", "number", "score", "difference"]
"""How a value is shown; scores are in [0, 1] and shown in percent, differences with a sign."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column: its name in CSV and JSON, its heading, and how its values are shown.

    `spread` names another column, whose value is shown behind ± and not by itself. Counts and
    numbers are shown in multiples of `unit`, texts as `labels` say.

    >>> column = Column(name="truth", heading="true score", kind="score", spread="truth_sd")
    >>> column.shown({"truth": 0.4931, "truth_sd": 0.008}), column.shown({"truth": None})
    ('49.3 ± 0.8', '-')
    """

    name: str
    heading: str
    kind: Kind = "text"
    spread: str = ""
    digits: int | None = None
    unit: float = 1.0
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def left(self) -> bool:
        """Whether its values are aligned left."""
        return self.kind == "text"

    def shown(self, row: Row) -> str:
        """The value of a row, with its spread."""
        value, spread = row.get(self.name), row.get(self.spread)
        if value is None:
            return MISSING
        text = self._plain(value)
        if spread is None:
            return text
        shown = replace(self, kind="score") if self.kind == "difference" else self
        return f"{text} ± {shown._plain(spread)}"

    def _plain(self, value: str | float | bool) -> str:
        if self.kind == "tick":
            return "✓" if value else ""
        if isinstance(value, str):
            return self.labels.get(value, value)
        if self.kind in ("score", "difference"):
            sign = "+" if self.kind == "difference" else ""
            return f"{100 * value:{sign}.{self._digits(1)}f}"
        value = value / self.unit
        whole = self.kind == "count" and value.is_integer()
        return f"{value:,.{0 if whole else self._digits(1 if self.kind == 'count' else 2)}f}"

    def _digits(self, usual: int) -> int:
        return usual if self.digits is None else self.digits


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    r"""An analysis as rows, with a title and a note that says how to read them.

    A terminal shows `limit` rows, without the `hidden` columns; a narrow one leaves out the
    `minor` columns first. `draw` draws the figure that belongs to it. Rows that follow each other
    and have the same value in the column `section` belong together. `steps` are commands that
    complete the table, under what each of them is for.

    >>> table = Table(name="ties", title="Ties", columns=(Column(name="ties", heading="ties"),),
    ...     rows=({"ties": 2},), note="One run.")
    >>> table.csv()
    'ties\n2\n'
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    note: str = ""
    hidden: frozenset[str] = frozenset()
    limit: int | None = None
    section: str = ""
    minor: tuple[str, ...] = ()
    steps: Mapping[str, Sequence[str]] = field(default_factory=dict)
    draw: Callable[[Any], None] | None = field(default=None, repr=False, compare=False)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns, those of spreads included."""
        pairs = ((column.name, column.spread) for column in self.columns)
        return tuple(name for pair in pairs for name in pair if name)

    def csv(self) -> str:
        """Comma-separated values at full precision; empty where there is none."""
        out = io.StringIO()
        writer = csv.DictWriter(out, self.names, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        for row in self.rows:
            writer.writerow({k: csv_cell(v) if isinstance(v, str) else v for k, v in row.items()})
        return out.getvalue()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON: name, title, note, and rows of named values."""
        rows = [{name: row.get(name) for name in self.names} for row in self.rows]
        return {"table": self.name, "title": self.title, "note": self.note, "rows": rows}

    @property
    def shown(self) -> tuple[Column, ...]:
        """The columns a terminal shows."""
        return tuple(column for column in self.columns if column.name not in self.hidden)

    def headed(self, *names: str) -> "Table":
        """The table with what its rows have in common in the title: protocol and fraction.

        Args:
            names: Columns to look at instead of these.
        """
        common = []
        hidden = set(self.hidden)
        for column in self.columns:
            if column.name in (names or ("protocol", "fraction")):
                values = {row.get(column.name) for row in self.rows}
                if len(values) == 1:
                    hidden.add(column.name)
                    common += [f"{v:.0%}" if isinstance(v, float) else v for v in values if v]
        title = f"{self.title} ({', '.join(map(str, common))})" if common else self.title
        return replace(self, title=title, hidden=frozenset(hidden))

    def sectioned(self, *names: str) -> "Table":
        """The table with a section for each value of the columns that have several."""
        columns = [
            column
            for column in self.columns
            if column.name in names and len({row.get(column.name) for row in self.rows}) > 1
        ]
        if not columns:
            return self
        rows = [
            {**row, _SECTION: ", ".join(filter(None, (one.shown(row) for one in columns)))}
            for row in self.rows
        ]
        hidden = self.hidden | {column.name for column in columns}
        return replace(self, rows=tuple(rows), hidden=hidden, section=_SECTION)

    def sections(self) -> list[tuple[str, list[int]]]:
        """The rows a terminal shows, by place, under the names of their sections."""
        found: list[tuple[str, list[int]]] = []
        for place, row in enumerate(self.rows[: self.limit]):
            name = str(row.get(self.section) or "")
            if not found or found[-1][0] != name:
                found.append((name, []))
            found[-1][1].append(place)
        return found

    def step_lines(self) -> Iterator[tuple[str, list[str]]]:
        """What commands are for, and the first of them, each in one line."""
        for purpose, commands in self.steps.items():
            lines = [flat(command) for command in commands[:_STEPS]]
            if more := len(commands) - len(lines):
                lines.append(f"and {more} more: --format json lists all")
            yield purpose, lines

    def lines(self) -> list[list[str]]:
        """The cells a terminal shows."""
        return [[column.shown(row) for column in self.shown] for row in self.rows[: self.limit]]


def flat(text: str) -> str:
    """A text in one line, whole."""
    return one_line(text, 10 * len(text) + 1)


def mean_and_sd(name: str, values: Sequence[float | None]) -> dict[str, float | None]:
    """Mean and standard deviation of the known values, under a name.

    >>> mean_and_sd("truth", [0.5, 0.7, None])["truth"]
    0.6
    """
    known = np.array([v for v in values if v is not None and not math.isnan(v)])
    spread = None
    if len(known) > 1:  # rounding would give equal values a spread
        spread = 0.0 if np.ptp(known) == 0 else float(known.std(ddof=1))
    return {name: float(known.mean()) if len(known) else None, f"{name}_sd": spread}


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
            f"the suffix of a figure must be one of {', '.join(SUFFIXES)}, got {path}."
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
