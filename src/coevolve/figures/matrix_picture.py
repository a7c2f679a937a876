"""The picture of all outcomes: tasks by candidates, beside estimates and solvability."""

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from coevolve.core.arrays import Bools, Floats, Indices
from coevolve.figures.axes import Scale, padded
from coevolve.figures.figure import Cell, Figure, empty
from coevolve.figures.svg_drawing import CROWD, WIDTH, Drawing, star, text_width
from coevolve.formatting import middle, plural, score
from coevolve.views.grid_order import GridOrders
from coevolve.views.outcome_grid import (
    FAILED,
    KINDS,
    MISSING,
    NOT_SAMPLED,
    OUTSIDE,
    PARTIAL,
    SOLVED,
    WAITING,
    OutcomeGrid,
)
from coevolve.views.report import CandidateRow

_TALLEST = 560.0
"""Height of the cells; more tasks than it has points share a row."""
_SHADES = 5
"""Lightness steps of partial scores, and of rows that are several tasks."""
_ABOVE = 74.0
_NAMED = 8.0
"""A row this tall has room for the name of its task."""
_APART = 4.5
"""Cells of this size have a gap between them."""
_MISSING, _WAITING = _SHADES + 1, _SHADES + 2
_AFTER, _LATE = -1, 0.5
"""Opacity of outcomes that are not of the search: the winner's, scored on all tasks."""


def matrix_figure(
    grid: OutcomeGrid,
    *,
    orders: GridOrders | None = None,
    tasks: str = "solvability",
    candidates: str = "round",
    best: str | None = None,
    width: float = WIDTH,
    prefix: str = "",
) -> Figure:
    """Every outcome: a column for each candidate, a row for each task.

    Args:
        grid: The outcomes.
        orders: Their orders; tasks are sorted by solvability and candidates by round without.
        tasks: The name of an order of the tasks.
        candidates: The name of an order of the candidates.
        best: The candidate to mark.
        width: Width of the figure.
        prefix: Begins every id in it.
    """
    title = "Outcomes of candidates on tasks"
    if not (grid.kinds != NOT_SAMPLED).any():
        text = "No trial has an outcome yet."
        return empty("matrix", title, text, width=width, prefix=prefix)
    down = _by_solvability(grid) if orders is None else orders.tasks[tasks]
    across = np.arange(len(grid.candidates)) if orders is None else orders.candidates[candidates]
    seen = (grid.kinds[across] != NOT_SAMPLED).any(axis=1)
    across = across[seen]  # a refused candidate has no outcome
    caption = _caption(grid, tasks)
    picture = _Picture(grid, across, down, best, width, title, caption, prefix)
    return Figure(
        name="matrix",
        title=title,
        caption=caption,
        svg=picture.svg(),
        columns=("candidate", "round", "tasks run", "solved", "failed", "partial", "missing"),
        rows=tuple(_row(grid, place) for place in across.tolist()),
    )


def _by_solvability(grid: OutcomeGrid) -> Indices:
    known = np.where(np.isnan(grid.solvability), -1.0, grid.solvability)
    return np.argsort(-known, kind="stable")


def _row(grid: OutcomeGrid, place: int) -> tuple[Cell, ...]:
    counts = np.bincount(grid.kinds[place], minlength=WAITING + 1).tolist()
    run = sum(counts[kind] for kind in (SOLVED, FAILED, PARTIAL, MISSING))
    row = grid.candidates[place]
    kinds = (counts[SOLVED], counts[FAILED], counts[PARTIAL], counts[MISSING])
    return (row.name, row.round, run, *kinds)


def _caption(grid: OutcomeGrid, tasks: str) -> str:
    counts = grid.counts()
    cells = grid.codes.size
    run = cells - counts["not sampled"] - counts["waiting"]
    ordered = {
        "solvability": "the tasks that most candidates solve are at the top",
        "cluster": "tasks that the same candidates solve are next to each other",
        "given": "tasks are in the order of the benchmark",
    }[tasks]
    text = (
        f"{run:,} of {cells:,} cells have an outcome ({run / cells:.0%}); {ordered}. Each column "
        "is a candidate. Above: estimated scores. Right: share of candidates that solve a task."
    )
    return text + (f" {plural(counts['missing'], 'cell')} are missing." * (counts["missing"] > 0))


class _Picture:
    """The cells of one matrix and what is around them."""

    def __init__(
        self,
        grid: OutcomeGrid,
        across: Indices,
        down: Indices,
        best: str | None,
        width: float,
        title: str,
        caption: str,
        prefix: str,
    ) -> None:
        self.grid, self.best = grid, best
        beside = -(-len(across) // CROWD)
        self.rows = _leaders(grid, across, beside, best)
        self.share = max(1, -(-len(down) // int(_TALLEST)))
        self.bands = -(-len(down) // self.share)
        self.tall = min(max(_TALLEST / self.bands, 1.0), 14.0 if self.bands < 40 else 9.0)
        named = self.share == 1 and self.tall >= _NAMED and width > 500
        names = [grid.tasks[task] for task in down.tolist()] if named else []
        longest = max((text_width(middle(name, 20), 10) for name in names), default=0.0)
        self.left = longest + 10 if named else 20.0
        self.names = names
        room = 92.0 if width > 500 else 44.0
        self.wide = min((width - self.left - room) / len(self.rows), 26.0)
        self.right = self.left + self.wide * len(self.rows)
        self.top, self.bottom = _ABOVE, _ABOVE + self.tall * self.bands
        self.cells = _Cells.of(grid, across, down, self.share, beside)
        self.down = down
        self.room = room
        used = max(self.right + room, 420.0) if width > 420 else width
        self.drawing = Drawing(
            used, self.bottom + 62, name="matrix", title=title, description=caption, prefix=prefix
        )

    def svg(self) -> str:
        draw = self.drawing
        self._patterns()
        draw.rect(
            self.left, self.top, self.right - self.left, self.bottom - self.top, "fill-absent"
        )
        for place, row in enumerate(self.rows):
            self._column(place, row)
        self._rounds()
        self._estimates()
        self._solvability()
        self._task_names()
        self._legend()
        return draw.svg()

    def _patterns(self) -> None:
        draw = self.drawing
        with (
            draw.group("defs"),
            draw.group(
                "pattern", id=draw.id("hatch"), width=4, height=4, patternUnits="userSpaceOnUse"
            ),
        ):
            draw.rect(0, 0, 4, 4, "fill-absent")
            draw.path("M0 4L4 0", "hatch")

    def _column(self, place: int, row: CandidateRow) -> None:
        """The cells of a candidate, one path for each shade."""
        draw, x = self.drawing, self.left + self.wide * place
        apart = min(self.wide, self.tall) >= _APART
        wide, tall = (1 - 1 / self.wide, 1 - 1 / self.tall) if apart else (1.0, 1.0)
        shades, outside = self.cells.shades[:, place], self.cells.outside[:, place]
        unit = f"matrix({self.wide:.3f} 0 0 {self.tall:.3f} {x:.2f} {self.top:g})"
        with draw.group(data_candidate=row.name, data_tip=_tip(row)):
            with draw.group(transform=unit):  # so that a cell has the size 1 and a short text
                for shade in np.unique(shades[shades > 0]).tolist():
                    if shade == _MISSING:
                        continue
                    style = "fill-line" if shade == _WAITING else f"shade-{shade - 1}"
                    here = shades == shade
                    draw.path(_boxes(here & ~outside, wide, tall, apart), style)
                    late = _boxes(here & outside, wide, tall, apart)
                    draw.path(late, style, fill_opacity=_LATE)
            for first, number in _runs(np.flatnonzero(shades == _MISSING), apart):
                y, high = self.top + first * self.tall, (number - 1 + tall) * self.tall
                hatch = f"url(#{draw.id('hatch')})"
                draw.rect(x, y, wide * self.wide, high, "missing", fill=hatch)
            draw.rect(x, self.top - 60, self.wide, self.bottom - self.top + 60, "hit")

    def _rounds(self) -> None:
        """The numbers of the rounds below their candidates."""
        draw, before = self.drawing, -99.0
        groups = groupby(enumerate(self.rows), key=lambda pair: pair[1].round)
        found = [(round, [place for place, _ in group]) for round, group in groups]
        ordered = [round for round, _ in found]
        if ordered != sorted(ordered):
            draw.text(self.left, self.bottom + 16, "candidates", "small")
            return
        for round, places in found:
            left = self.left + self.wide * places[0]
            right = self.left + self.wide * (places[-1] + 1)
            draw.line(left + 1, self.bottom + 4, right - 1.5, self.bottom + 4, "axis")
            centre = (left + right) / 2
            text = str(round) if round else "start" if right - left > 30 else "0"
            if centre - before > text_width(text, 11) + 8:
                draw.text(centre, self.bottom + 18, text, "small", "middle", data_round=round)
                before = centre + text_width(text, 11) / 2
        draw.text(self.right + 8, self.bottom + 18, "round", "small")

    def _estimates(self) -> None:
        """The estimate of every candidate with its interval, above its column."""
        draw = self.drawing
        values = [
            value
            for row in self.rows
            if row.estimate is not None
            for value in (row.estimate["value"], row.estimate["low"], row.estimate["high"])
            if value is not None
        ]
        low, high = padded(values)
        y = Scale(low, high, self.top - 10, 16)
        for value in (low, high) if values else ():
            draw.text(self.right + 8, y(value) + 4, f"{value:.2f}", "small")
        if values:
            draw.text(self.right + 8, (y(low) + y(high)) / 2 + 4, "estimate", "small")
        best = None
        for place, row in enumerate(self.rows):
            if row.estimate is None:
                continue
            x, found = self.left + self.wide * (place + 0.5), row.estimate
            exact = found["tasks"] == found["pool_size"]
            mine = row.name == self.best
            if found["low"] is not None and found["high"] is not None and not exact:
                style = "whisker-best" if mine else "whisker" if self.wide > 4 else "whisker-thin"
                draw.line(x, y.held(found["low"]), x, y.held(found["high"]), style)
            size, at = min(3.2, max(1.2, self.wide * 0.32)), y.held(found["value"])
            about = {"data_candidate": row.name, "data_tip": _tip(row)}
            if mine:
                best = (x, at, about)
            elif row.start:
                draw.rect(x - size, at - size, 2 * size, 2 * size, "dot-start", **about)
            else:
                draw.add("circle", "dot", cx=x, cy=at, r=size, **about)
        if best is not None:
            draw.path(star(best[0], best[1], 6.5), "dot-best", **best[2])

    def _solvability(self) -> None:
        """How many candidates solve a task, as a bar beside its row."""
        draw, left = self.drawing, self.right + 8
        long = self.room - 30
        points = [(left, self.top)]
        for band, p in enumerate(self.cells.solvability.tolist()):
            y, x = self.top + self.tall * band, left + long * (0 if p != p else p)
            points += [(x, y), (x, y + self.tall)]
        points.append((left, self.bottom))
        data = "".join(f"{'L' if n else 'M'}{x:.1f} {y:.1f}" for n, (x, y) in enumerate(points))
        tip = "share of candidates that solve a task"
        draw.path(f"{data}Z", "fill-pale", data_tip=tip)
        draw.line(left, self.top, left, self.bottom, "axis")
        draw.text(left, self.bottom + 36, "0", "small")
        draw.text(left + long, self.bottom + 36, "1", "small", "middle")
        draw.text(left, self.bottom + 50, "share solving", "small")

    def _task_names(self) -> None:
        draw = self.drawing
        if not self.names:
            middle_y = (self.top + self.bottom) / 2
            text = f"{plural(len(self.down), 'task')}"
            draw.text(
                12, middle_y, text, "small", "middle", transform=f"rotate(-90 12 {middle_y:.0f})"
            )
            return
        for band, name in enumerate(self.names):
            y = self.top + self.tall * (band + 0.5) + 3
            draw.text(self.left - 6, y, middle(name, 20), "tiny", "end", data_task=name)

    def _items(self) -> list[tuple[str, str, int]]:
        """Text, style and kind of what the legend explains."""
        kinds = self.cells.kinds
        items = [("solved", f"shade-{_SHADES - 1}", SOLVED), ("failed", "shade-0", FAILED)]
        if PARTIAL in kinds or self.share > 1:
            text = "between" if self.share == 1 else "share solved"
            items.insert(1, (text, f"shade-{_SHADES // 2}", PARTIAL))
        items += [("missing", "missing", MISSING)] if MISSING in kinds else []
        items += [("waiting", "fill-line", WAITING)] if WAITING in kinds else []
        if self.cells.outside.any():
            items.append(("after the choice", f"shade-{_SHADES - 1}", _AFTER))
        return [*items, ("not sampled", "fill-absent", NOT_SAMPLED)]

    def _legend(self) -> None:
        draw, x = self.drawing, self.left
        items = self._items()
        wide = sum(text_width(text, 11) + 32 for text, _, _ in items)
        y = self.bottom + (41.0 if self.left + wide < self.right else 62.0)
        for text, style, kind in items:
            fill: dict[str, str | float] = {}
            if kind == MISSING:
                fill["fill"] = f"url(#{draw.id('hatch')})"
            if kind == _AFTER:
                fill["fill_opacity"] = _LATE
            if x + text_width(text, 11) + 16 > draw.width:
                x, y = self.left, y + 18
            draw.rect(x, y, 10, 10, style, **fill)
            draw.text(x + 15, y + 9, text, "small")
            x += text_width(text, 11) + 32
        draw.height = max(self.bottom + 58, y + 18)


def _tip(row: CandidateRow) -> str:
    where = "starting harness" if row.start else f"round {row.round}"
    found = row.estimate
    if found is None:
        return f"{row.name}, {where}"
    tasks = f"{found['tasks']} of {found['pool_size']} tasks"
    return f"{row.name}, {where}: {score(found['value'])}, {tasks}"


class _Cells:
    """The shade of every cell: 0 not sampled, then scores, then missing, then waiting.

    `outside` marks outcomes that are not of the search; `kinds` are those of all cells.
    """

    def __init__(
        self, shades: Indices, outside: Bools, solvability: Floats, kinds: set[int]
    ) -> None:
        self.shades, self.outside = shades, outside
        self.solvability, self.kinds = solvability, kinds

    @classmethod
    def of(
        cls, grid: OutcomeGrid, across: Indices, down: Indices, share: int, beside: int
    ) -> "_Cells":
        """The cells in an order; `share` tasks are a row, `beside` candidates a column."""
        codes = (grid.codes & KINDS)[np.ix_(across, down)].T
        outside = (grid.codes & OUTSIDE > 0)[np.ix_(across, down)].T
        scores = grid.scores[np.ix_(across, down)].T
        solvability = grid.solvability[down]
        kinds = set(np.unique(codes).tolist())
        if share > 1:
            codes, scores = _together(codes, scores, share)
            outside = np.logical_and.reduceat(outside, np.arange(0, len(outside), share))
            solvability = _together(down[:0], solvability[:, None], share)[1][:, 0]
        if beside > 1:
            turned = _together(codes.T, scores.T, beside)
            codes, scores = turned[0].T, turned[1].T
            starts = np.arange(0, outside.shape[1], beside)
            outside = np.logical_and.reduceat(outside, starts, axis=1)
        shades = np.zeros(codes.shape, dtype=np.int64)
        known = ~np.isnan(scores)
        steps = np.clip(np.rint(np.nan_to_num(scores) * (_SHADES - 1)), 0, _SHADES - 1)
        between = known & (scores > 0) & (scores < 1)
        steps[between] = np.clip(steps[between], 1, _SHADES - 2)
        shades[known] = steps[known].astype(np.int64) + 1
        shades[(codes == MISSING) & ~known] = _MISSING
        shades[(codes == WAITING) & ~known] = _WAITING
        return cls(shades, outside, solvability, kinds)


def _together(codes: Indices, scores: Floats, share: int) -> tuple[Indices, Floats]:
    """Rows of several tasks: the mean of the scores that are known, and the highest code."""
    starts = np.arange(0, len(scores), share)
    known = ~np.isnan(scores)
    number = np.add.reduceat(known.astype(np.int64), starts)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.add.reduceat(np.where(known, scores, 0.0), starts) / number
    return np.maximum.reduceat(codes, starts) if len(codes) else codes, means


def _leaders(
    grid: OutcomeGrid, across: Indices, beside: int, best: str | None
) -> list[CandidateRow]:
    """The candidate of each column: the one with the highest estimate, if several share it."""

    def value(row: CandidateRow) -> tuple[bool, float]:
        return row.name == best, -1.0 if row.estimate is None else row.estimate["value"]

    rows = [grid.candidates[place] for place in across.tolist()]
    return [max(rows[at : at + beside], key=value) for at in range(0, len(rows), beside)]


def _boxes(here: Bools, wide: float, tall: float, apart: bool) -> str:
    """A path of cells of size 1, one below the other."""
    w = f"{wide:.3g}"
    return "".join(
        f"M0 {first}h{w}v{number - 1 + tall:.3g}H0z"
        for first, number in _runs(np.flatnonzero(here), apart)
    )


def _runs(places: Indices, apart: bool) -> Sequence[tuple[int, int]]:
    """First place and length of rows in a row; single ones if cells are drawn `apart`."""
    if not len(places):
        return ()
    if apart:
        return [(place, 1) for place in places.tolist()]
    breaks = np.flatnonzero(np.diff(places) != 1) + 1
    return [(int(part[0]), len(part)) for part in np.split(places, breaks)]
