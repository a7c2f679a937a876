"""Axes: scales from numbers to places, round ticks, and labels that do not overlap."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from coevolve.figures.svg_drawing import Drawing
from coevolve.formatting import duration

_STEPS = (1, 2, 2.5, 5)


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps numbers from `low` to `high` to places from `start` to `end`.

    >>> Scale(0, 10, 100, 200)(5), Scale(0, 0, 100, 200)(0)
    (150.0, 150.0)
    """

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        if self.high == self.low:
            return (self.start + self.end) / 2
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def held(self, value: float) -> float:
        """The place of a number, or of the nearest one on the scale."""
        return self(min(max(value, self.low), self.high))


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers between two others, at most so many.

    >>> ticks(0, 1), ticks(0, 937, 5), ticks(0.31, 0.52, 4)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [0, 200, 400, 600, 800], [0.35, 0.4, 0.45, 0.5])
    """
    span = high - low
    if span <= 0 or not math.isfinite(span):
        return [low]
    power = 10.0 ** (math.floor(math.log10(span)) - 1)
    sizes = (power * scale * step for scale in (0.1, 1, 10, 100) for step in _STEPS)
    step = next(size for size in sizes if _last(high, size) - _first(low, size) < most)
    digits = max(0, 2 - math.floor(math.log10(step)))
    found = [round(n * step, digits) for n in range(_first(low, step), _last(high, step) + 1)]
    return found if step < 1 else [int(value) if value == int(value) else value for value in found]


def _first(low: float, step: float) -> int:
    return math.ceil(low / step - 1e-9)


def _last(high: float, step: float) -> int:
    return math.floor(high / step + 1e-9)


_TIMES = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200)
_DAY = 86_400


def time_ticks(high: float, most: int = 7) -> list[float]:
    """Round times from 0 seconds on.

    >>> time_ticks(441), time_ticks(0.9, 4), time_ticks(5 * 86_400)[:2]
    ([0, 120, 240, 360], [0.0, 0.25, 0.5, 0.75], [0, 86400])
    """
    if high < most:
        return ticks(0.0, high, most)
    step = next((step for step in _TIMES if high / step < most), None)
    if step is None:
        step = _DAY * max(1, math.ceil(high / _DAY / most))
    return [step * number for number in range(int(high / step) + 1)]


def clock_text(seconds: float) -> str:
    """A time on an axis.

    >>> clock_text(0), clock_text(0.5), clock_text(120), clock_text(5400)
    ('0', '0.5s', '2m', '1h 30m')
    """
    if seconds < 10 and seconds != round(seconds):
        return f"{seconds:g}s"
    text = duration(seconds).removesuffix(" 00s").removesuffix(" 00m").removesuffix(" 00h")
    return text if seconds else "0"


def padded(
    values: Iterable[float], *, least: float = 0.1, within: tuple[float, float] = (0, 1)
) -> tuple[float, float]:
    """Limits of an axis of scores: all values with some room, at least `least` apart.

    >>> padded([0.5, 0.7]), padded([]), padded([0.98])
    ((0.484, 0.716), (0, 1), (0.9, 1))
    """
    found = [value for value in values if math.isfinite(value)]
    if not found:
        return within
    low, high = max(min(found), within[0]), min(max(found), within[1])
    low, high = min(low, within[1]), max(high, within[0])
    room = 0.08 * (high - low)
    low, high = low - room, high + room
    if high - low < least:
        middle = (low + high) / 2
        low, high = middle - least / 2, middle + least / 2
        low, high = (within[0], within[0] + least) if low < within[0] else (low, high)
        low, high = (within[1] - least, within[1]) if high > within[1] else (low, high)
    return round(max(low, within[0]), 9), round(min(high, within[1]), 9)


def spread(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places at least `gap` apart and near the given ones, in the same order.

    >>> spread([10, 11, 40], 12, 0, 100)
    [4.5, 16.5, 40.0]
    """
    order = sorted(range(len(places)), key=places.__getitem__)
    groups: list[list[float]] = []  # centre, number
    for at in order:
        groups.append([places[at], 1])
        while len(groups) > 1 and _touch(groups[-2], groups[-1], gap):
            right, left = groups.pop(), groups.pop()
            number = left[1] + right[1]
            groups.append([(left[0] * left[1] + right[0] * right[1]) / number, number])
    found = []
    for centre, number in groups:
        reach = (number - 1) * gap / 2
        centre = min(max(centre, low + reach), max(low + reach, high - reach))
        found += [centre - reach + gap * k for k in range(int(number))]
    placed = dict(zip(order, found, strict=True))
    return [placed[at] for at in range(len(places))]


def _touch(left: list[float], right: list[float], gap: float) -> bool:
    return right[0] - (right[1] - 1) * gap / 2 < left[0] + (left[1] - 1) * gap / 2 + gap


def left_axis(
    drawing: Drawing,
    scale: Scale,
    x: float,
    right: float,
    *,
    label: str,
    form: Callable[[float], str],
    most: int = 6,
    at: Sequence[float] | None = None,
) -> None:
    """Numbers and faint lines for a vertical scale; its label is above."""
    for value in ticks(scale.low, scale.high, most) if at is None else at:
        y = scale(value)
        drawing.line(x, y, right, y, "grid")
        drawing.text(x - 8, y + 4, form(value), "small", anchor="end")
    drawing.text(
        x - 8,
        min(scale.start, scale.end) - 12,
        label,
        "small",
        anchor="start" if x < 60 else "end",
    )


def bottom_axis(
    drawing: Drawing,
    scale: Scale,
    y: float,
    *,
    label: str,
    form: Callable[[float], str],
    most: int = 8,
    at: Sequence[float] | None = None,
) -> None:
    """A line, numbers and a label for a horizontal scale."""
    drawing.line(scale.start, y, scale.end, y, "axis")
    for value in ticks(scale.low, scale.high, most) if at is None else at:
        x = scale(value)
        drawing.line(x, y, x, y + 4, "axis")
        drawing.text(x, y + 17, form(value), "small", anchor="middle")
    drawing.text(scale.end, y + 33, label, "small", anchor="end")


def stepped(points: Sequence[tuple[float, float]], last: float | None = None) -> str:
    """A path that keeps each height until the next point, and on to `last`.

    >>> stepped([(0, 5), (10, 3)], 20)
    'M0 5H10V3H20'
    """
    if not points:
        return ""
    data = f"M{_short(points[0][0])} {_short(points[0][1])}"
    for x, y in points[1:]:
        data += f"H{_short(x)}V{_short(y)}"
    return data if last is None else f"{data}H{_short(last)}"


def joined(points: Sequence[tuple[float, float]]) -> str:
    """A path of straight lines.

    >>> joined([(0, 5), (10, 3.25)])
    'M0 5L10 3.25'
    """
    return "".join(
        f"{'L' if number else 'M'}{_short(x)} {_short(y)}" for number, (x, y) in enumerate(points)
    )


def _short(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
