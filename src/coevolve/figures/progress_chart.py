"""The figure of the progress of a search: every candidate in order, and the best so far."""

from collections.abc import Sequence
from itertools import groupby

from coevolve.figures.axes import Scale, left_axis, padded, spread, stepped
from coevolve.figures.figure import Cell, Figure, empty
from coevolve.figures.svg_drawing import CROWD, WIDTH, Drawing, cross, diamond, star, text_width
from coevolve.formatting import difference, middle, plural, score
from coevolve.views.progress import BestSoFar, Progress, ScoredCandidate

_CROWDED = 150
"""With more candidates than this, dots are small and intervals thin."""


def progress_figure(found: Progress, *, width: float = WIDTH, prefix: str = "") -> Figure:
    """The estimate of every candidate in the order of proposal, and the best so far."""
    title = "Candidates and the best so far"
    scored = [one for one in found.candidates if one.value is not None]
    if not scored:
        text = "No candidate has a score yet."
        return empty("progress", title, text, width=width, prefix=prefix)
    caption = _progress_caption(found, scored)
    chart = _ProgressChart(found, width, title, caption, prefix)
    return Figure(
        name="progress",
        title=title,
        caption=caption,
        svg=chart.svg(),
        columns=(
            "candidate", "round", "status", "estimate", "low", "high", "tasks", "all tasks", "test"
        ),
        rows=tuple(_progress_row(one) for one in found.candidates),
    )  # fmt: skip


def _progress_row(one: ScoredCandidate) -> tuple[Cell, ...]:
    limits = (None, None) if one.exact else (one.low, one.high)
    row = (one.name, one.round, one.status, one.value, *limits, one.tasks, one.full, one.test)
    return row


def _revised(found: Progress) -> bool:
    """Whether later outcomes changed what is known of the best candidates of earlier rounds."""
    known = [(one.value, one.today) for one in found.best if one.today is not None]
    return len(known) > 2 and any(abs(then - today) >= 0.005 for then, today in known)


def _progress_caption(found: Progress, scored: Sequence[ScoredCandidate]) -> str:
    best = next((one for one in scored if one.best), None)
    starts = [one.value for one in scored if one.start and one.value is not None]
    text = "Dots are estimates of the score on all tasks, lines their intervals."
    if any(one.exact and one.start for one in scored):
        text += " Squares are starting harnesses, scored on every task."
    if len(found.best) > 1:
        text += " The stepped line is the best candidate so far, as it was estimated then."
        if _revised(found):
            text += " The dashed line is the same candidate, as it is estimated now."
    if any(one.full is not None and not one.exact for one in scored):
        text += " Diamonds are scores on all tasks, measured after the choice."
    if any(one.test is not None for one in scored):
        text += " Rings are scores on the sealed test."
    if best is not None and starts and not best.start and best.value is not None:
        gain = best.value - max(starts)
        text += (
            f" The estimate of the best candidate, {middle(best.name, 40)}, is "
            f"{difference(gain)} against the best starting harness."
        )
    return text


class _ProgressChart:
    """The chart of candidates in order, with a band for every other round."""

    def __init__(
        self, found: Progress, width: float, title: str, caption: str, prefix: str
    ) -> None:
        self.found, self.crowded = found, len(found.candidates) > _CROWDED
        self.labels = self._labels() if width > 500 else []
        room = max([16.0, *(1.1 * text_width(text) + 12 for _, text, _ in self.labels)])
        self.top, height, self.left = 30.0, 340.0, 46.0
        self.bottom = height - 42
        self.drawing = Drawing(
            width, height, name="progress", title=title, description=caption, prefix=prefix
        )
        count = len(found.candidates)
        self.right = width - room
        step = (self.right - self.left) / max(count, 1)
        self.x = Scale(0, max(count - 1, 1), self.left + step / 2, self.right - step / 2)
        self.step = step
        limits = [
            value
            for one in found.candidates
            for value in (one.value, one.low, one.high, one.full, one.test)
            if value is not None
        ]
        low, high = padded([*limits, *(one.value for one in found.best)])
        self.y = Scale(low, high, self.bottom, self.top)

    def svg(self) -> str:
        draw = self.drawing
        self._rounds()
        left_axis(draw, self.y, self.left, self.right, label="score", form=_tick)
        draw.line(self.left, self.bottom, self.right, self.bottom, "axis")
        self._starts()
        single = self._crowd()
        for one in single:
            self._whisker(one)
        self._best_lines()
        for one in single:
            self._mark(one)
        places = spread([self.y.held(y) for y, _, _ in self.labels], 14, self.top, self.bottom)
        for place, (_, text, style) in zip(places, self.labels, strict=True):
            draw.text(self.right + 8, place + 4, text, style)
        return draw.svg()

    def _crowd(self) -> list[ScoredCandidate]:
        """Draw the candidates of a crowd together; return those that are drawn one by one."""
        if len(self.found.candidates) <= CROWD:
            return list(self.found.candidates)
        single, lines, spots = [], [], []
        for one in self.found.candidates:
            if one.value is None or one.best or one.start or one.full is not None:
                single += [one] if one.value is not None else []
                continue
            x = f"{self.x(one.order):.1f}"
            spots.append(f"M{x} {self.y.held(one.value):.1f}h0")
            if one.low is not None and one.high is not None:
                low, high = self.y.held(one.low), self.y.held(one.high)
                lines.append(f"M{x} {low:.1f}V{high:.1f}")
        self.drawing.path("".join(lines), "whisker-thin")
        self.drawing.path("".join(spots), "spots-fine")
        return single

    def _rounds(self) -> None:
        """A band for every other round, and their numbers."""
        draw, half = self.drawing, self.step / 2
        groups = [
            (round, [one.order for one in group])
            for round, group in groupby(self.found.candidates, key=lambda one: one.round)
        ]
        every = max(1, -(-len(groups) * 22 // int(self.right - self.left)))
        for number, (round, orders) in enumerate(groups):
            left, right = self.x(orders[0]) - half, self.x(orders[-1]) + half
            if number % 2 == 0:
                draw.rect(left, self.top - 6, right - left, self.bottom - self.top + 6, "band")
            if round == 0 or round % every == 0:
                text = "start" if round == 0 and right - left > 32 else str(round)
                draw.text((left + right) / 2, self.bottom + 16, text, "small", "middle")
        draw.text(self.right, self.bottom + 32, "round", "small", "end")

    def _starts(self) -> None:
        """A line across at the score of the best starting harness."""
        known = [one for one in self.found.candidates if one.start and one.value is not None]
        top = max(known, key=lambda one: one.value or 0.0, default=None)
        if top is not None and top.value is not None:
            y = self.y.held(top.value)
            self.drawing.line(self.x(top.order), y, self.right, y, "line-start")

    def _whisker(self, one: ScoredCandidate) -> None:
        if one.low is None or one.high is None or one.exact:
            return
        x, thin = self.x(one.order), "whisker-thin" if self.crowded else "whisker"
        style = "whisker-best" if one.best else thin
        self.drawing.line(x, self.y.held(one.low), x, self.y.held(one.high), style)

    def _best_lines(self) -> None:
        """The best so far as it was known then; and where it differs, as it is known today."""
        by_round = {
            round: max(one.order for one in group)
            for round, group in groupby(self.found.candidates, key=lambda one: one.round)
        }
        places = [(self._after(one, by_round), one) for one in self.found.best]
        then = [(x, self.y.held(one.value)) for x, one in places]
        self.drawing.path(stepped(then, self.right), "line-best")
        today = [(x, self.y.held(one.today)) for x, one in places if one.today is not None]
        if _revised(self.found):
            self.drawing.path(stepped(today, self.right), "line-today")

    def _after(self, one: BestSoFar, by_round: dict[int, int]) -> float:
        orders = [order for round, order in by_round.items() if round <= one.round]
        return self.x(max(orders, default=0)) + self.step / 2

    def _mark(self, one: ScoredCandidate) -> None:
        draw, x = self.drawing, self.x(one.order)
        size = max(1.8, min(4.2, self.step * 0.36))
        about = {"data_candidate": one.name, "data_round": str(one.round), "data_tip": _tip(one)}
        if one.value is None:
            if one.status == "refused":
                y, d = self.bottom - 8, min(3.5, size)
                draw.path(cross(x, y, d), "cross", **about)
            return
        y = self.y.held(one.value)
        if one.start:
            draw.rect(x - size, y - size, 2 * size, 2 * size, "dot-start", **about)
        elif one.best:
            draw.path(star(x, y, size + 3.5), "dot-best", **about)
        else:
            draw.add("circle", "dot", cx=x, cy=y, r=size, **about)
        if one.full is not None and not one.exact:
            draw.path(diamond(x, self.y.held(one.full), max(4.0, size)), "dot-truth", **about)
        if one.test is not None:
            r = max(3.4, size * 0.9)
            draw.add("circle", "dot-sealed", cx=x, cy=self.y.held(one.test), r=r, **about)

    def _labels(self) -> list[tuple[float, str, str]]:
        """Scores, texts and styles at the right: the best candidate, and the best start."""
        labels: list[tuple[float, str, str]] = []
        best = next((one for one in self.found.candidates if one.best), None)
        if best is not None and best.value is not None:
            labels.append((best.value, middle(best.name, 20), "label-best"))
            labels.append((best.value, f"★ {score(best.value)}", "label-best"))
            if best.full is not None and not best.exact:
                labels.append((best.full, f"◇ all tasks {score(best.full)}", "label-truth"))
            if best.test is not None:
                labels.append((best.test, f"○ sealed test {score(best.test)}", "label-sealed"))
        starts = [one for one in self.found.candidates if one.start and one.value is not None]
        top = max(starts, key=lambda one: one.value or 0.0, default=None)
        if top is not None and not top.best and top.value is not None:
            labels.append((top.value, f"□ {middle(top.name, 14)} {score(top.value)}", "small"))
        return labels


def _tip(one: ScoredCandidate) -> str:
    where = "starting harness" if one.start else f"round {one.round}"
    if one.value is None:
        return f"{one.name}, {where}: {one.status} {one.reason}".rstrip()
    text = f"{one.name}, {where}: {score(one.value)}"
    if not one.exact and one.low is not None and one.high is not None:
        text += f" ({score(one.low)} to {score(one.high)}, {plural(one.tasks, 'task')})"
    text += "" if one.full is None or one.exact else f", on all tasks {score(one.full)}"
    return text + ("" if one.test is None else f", sealed test {score(one.test)}")


def _tick(value: float) -> str:
    return f"{value:g}" if value == round(value, 2) else f"{value:.3f}"
