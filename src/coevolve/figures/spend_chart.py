"""Figures of spending: by part over time, and by candidate."""

from collections.abc import Callable, Mapping, Sequence

from coevolve.figures.axes import (
    Scale,
    bottom_axis,
    clock_text,
    joined,
    left_axis,
    spread,
    time_ticks,
)
from coevolve.figures.figure import Figure, empty
from coevolve.figures.svg_drawing import CROWD, WIDTH, Drawing, text_width
from coevolve.formatting import amount, count, dollars, duration, middle
from coevolve.views.spend import CapRow
from coevolve.views.spend_parts import (
    FAILED,
    PHASE_0,
    PREPARATION,
    PROPOSING,
    REQUEST,
    RESCORING,
    SEALED_TEST,
    TRIALS,
)
from coevolve.views.spend_timeline import CandidateSpent, SpendTimeline, Spent

MEASURES = ("dollars", "tokens", "trials")
"""What the figures can show, the most telling first."""
_COLOURS = {
    PHASE_0: "phase-0",
    TRIALS: "trials",
    FAILED: "attempts",
    PREPARATION: "preparation",
    PROPOSING: "proposing",
    RESCORING: "rescoring",
    SEALED_TEST: "sealed",
    REQUEST: "request",
}
_NAMED = {PHASE_0: "starting harnesses", TRIALS: "rounds"}
"""Parts with another name in figures."""
_FORMS: Mapping[str, Callable[[float], str]] = {
    "dollars": dollars,
    "tokens": count,
    "trials": count,
}
_FAR = 2.5
"""A cap that is this many times what is spent is not drawn."""


def telling_measure(found: SpendTimeline) -> str:
    """The measure that says most: dollars, or else tokens, or else trials."""
    for measure in MEASURES[:-1]:
        if any(curves[measure][-1] > 0 for curves in found.curves.values()):
            return measure
    return MEASURES[-1]


def spend_figure(
    found: SpendTimeline, *, measure: str | None = None, width: float = WIDTH, prefix: str = ""
) -> Figure:
    """What a run spent over the working clock, part by part, beside its cap."""
    title = "Spending over time"
    if not found.curves:
        text = "Nothing is spent yet."
        return empty("spend", title, text, width=width, prefix=prefix)
    measure = measure or telling_measure(found)
    parts = [part for part, curves in found.curves.items() if curves[measure][-1] > 0]
    if not parts:
        text = f"No {measure} are spent."
        return empty("spend", title, text, width=width, prefix=prefix)
    total = sum(found.curves[part][measure][-1] for part in parts)
    largest = max(parts, key=lambda part: found.curves[part][measure][-1])
    share = found.curves[largest][measure][-1] / total
    caption = (
        f"{_FORMS[measure](total)} {'' if measure == 'dollars' else measure + ' '}spent in "
        f"{duration(found.clock[-1])} of work. The largest part: {part_name(largest)}, "
        f"{share:.0%}."
    )
    return Figure(
        name="spend",
        title=title,
        caption=caption,
        svg=_areas(found, parts, measure, width, title, caption, prefix),
        columns=(
            "part",
            "trials",
            "repeated attempts",
            "tokens in",
            "tokens out",
            "dollars",
            "hours",
        ),
        rows=tuple(
            (
                part_name(part),
                spent.trials,
                spent.attempts,
                spent.tokens_in,
                spent.tokens_out,
                spent.dollars,
                spent.seconds / 3600,
            )
            for part, spent in found.totals.items()
        ),
    )


def part_name(part: str) -> str:
    """The name of a part of the spending, as figures and pages show it."""
    return _NAMED.get(part, part)


def _ticks_of(measure: str, high: float) -> Callable[[float], str]:
    """How an axis up to `high` writes its numbers: all in the same unit."""
    if measure == "dollars" or high < 20_000:
        return _FORMS[measure]
    size, unit = (1e6, "M") if high >= 2e6 else (1e3, "k")
    return lambda value: f"{value / size:g}{unit}" if value else "0"


def _areas(
    found: SpendTimeline,
    parts: Sequence[str],
    measure: str,
    width: float,
    title: str,
    caption: str,
    prefix: str,
) -> str:
    labelled = width > 500
    room = max((text_width(_label(found, part, measure)) for part in parts), default=0) + 16
    left, right = 62.0, width - (room if labelled else 16)
    top, bottom = 30.0, 262.0
    height = bottom + 42 + (0 if labelled else 18 * len(parts))
    drawing = Drawing(width, height, name="spend", title=title, description=caption, prefix=prefix)
    total = sum(found.curves[part][measure][-1] for part in parts)
    cap = next((one for one in found.caps if one.name == measure and one.cap), None)
    high = total * 1.04
    if cap is not None and cap.cap is not None and cap.cap <= _FAR * total:
        high = max(high, cap.cap * 1.06)
    y = Scale(0, high, bottom, top)
    hours = next((one for one in found.caps if one.name == "hours" and one.cap), None)
    x = Scale(0, max(found.clock[-1], 1e-9), left, right)
    left_axis(drawing, y, left, right, label=measure, form=_ticks_of(measure, high))
    below = [0.0] * len(found.clock)
    middles: list[float] = []
    for part in parts:
        above = [b + v for b, v in zip(below, found.curves[part][measure], strict=True)]
        up = [(x(t), y(v)) for t, v in zip(found.clock, above, strict=True)]
        down = [(x(t), y(v)) for t, v in zip(found.clock, below, strict=True)]
        tip = _label(found, part, measure)
        style = f"fill-{_COLOURS[part]}"
        drawing.path(joined([*up, *reversed(down)]) + "Z", style, data_tip=tip)
        middles.append((y(above[-1]) + y(below[-1])) / 2)
        below = above
    _cap_line(drawing, cap, y, left, right)
    bottom_axis(
        drawing, x, bottom, label=_clock_label(hours), form=clock_text, at=time_ticks(x.high)
    )
    _part_labels(drawing, found, parts, measure, middles, right, bottom, labelled=labelled)
    return drawing.svg()


def _part_labels(
    drawing: Drawing,
    found: SpendTimeline,
    parts: Sequence[str],
    measure: str,
    middles: Sequence[float],
    right: float,
    bottom: float,
    *,
    labelled: bool,
) -> None:
    """The name and amount of each part: beside the chart, or below a narrow one."""
    if labelled:
        places = spread(middles, 15, 30, bottom)
        for part, at, place in zip(parts, middles, places, strict=True):
            drawing.path(f"M{right + 1:.1f} {at:.1f}L{right + 7:.1f} {place:.1f}", "axis")
            drawing.rect(right + 9, place - 4, 8, 8, f"fill-{_COLOURS[part]}")
            drawing.text(right + 21, place + 4, _label(found, part, measure), "small")
        return
    for number, part in enumerate(parts):
        y = bottom + 54 + 18 * number
        drawing.rect(16, y - 9, 10, 10, f"fill-{_COLOURS[part]}")
        drawing.text(32, y, _label(found, part, measure), "small")


def _label(found: SpendTimeline, part: str, measure: str) -> str:
    return f"{part_name(part)} {_FORMS[measure](found.curves[part][measure][-1])}"


def _clock_label(hours: CapRow | None) -> str:
    if hours is None or hours.cap is None:
        return "working time"
    return f"working time, cap {amount('hours', hours.cap)}"


def _cap_line(drawing: Drawing, cap: CapRow | None, y: Scale, left: float, right: float) -> None:
    if cap is None or cap.cap is None:
        return
    text = f"cap {amount(cap.name, cap.cap)}"
    if cap.cap > y.high:
        drawing.text(left + 6, y.end + 2, f"{text}, far above", "small")
        return
    at = y(cap.cap)
    drawing.line(left, at, right, at, "cap")
    drawing.text(left + 6, at - 5, text, "label-best")


_GROUPS = (
    ("searching", "search", "trials"),
    ("preparing", "check and preparation", "preparation"),
    ("closing", "rescoring and sealed test", "sealed"),
    ("requested", "on request", "request"),
)


def costs_figure(
    found: SpendTimeline,
    *,
    best: str | None = None,
    measure: str | None = None,
    width: float = WIDTH,
    prefix: str = "",
) -> Figure:
    """What every candidate cost, in the order of proposal."""
    title = "Cost per candidate"
    measure = measure or telling_measure(found)
    rows = [one for one in found.candidates if _total(one, measure) > 0]
    if not rows:
        text = f"No candidate has spent any {measure} yet."
        return empty("costs", title, text, width=width, prefix=prefix)
    mean = sum(_total(one, measure) for one in rows) / len(rows)
    most = max(rows, key=lambda one: _total(one, measure))
    caption = (
        f"A candidate costs {_amount(measure, mean)} on average; {middle(most.candidate, 40)} "
        f"cost the most, {_amount(measure, _total(most, measure))}."
    )
    return Figure(
        name="costs",
        title=title,
        caption=caption,
        svg=_bars(rows, measure, best, width, title, caption, prefix),
        columns=(
            "candidate",
            "round",
            "trials",
            "repeated attempts",
            "tokens",
            "dollars",
            "hours",
        ),
        rows=tuple(
            (
                one.candidate,
                one.round,
                sum(getattr(one, name).trials for name, _, _ in _GROUPS),
                sum(getattr(one, name).attempts for name, _, _ in _GROUPS),
                sum(getattr(one, name).tokens for name, _, _ in _GROUPS),
                sum(getattr(one, name).dollars for name, _, _ in _GROUPS),
                sum(getattr(one, name).seconds for name, _, _ in _GROUPS) / 3600,
            )
            for one in found.candidates
        ),
    )


def _amount(measure: str, number: float) -> str:
    text = _FORMS[measure](number)
    return text if measure == "dollars" else f"{text} {measure}"


def _value(spent: Spent, measure: str) -> float:
    return float(getattr(spent, measure))


def _total(one: CandidateSpent, measure: str) -> float:
    return sum(_value(getattr(one, name), measure) for name, _, _ in _GROUPS)


def _bars(
    rows: Sequence[CandidateSpent],
    measure: str,
    best: str | None,
    width: float,
    title: str,
    caption: str,
    prefix: str,
) -> str:
    used = [g for g in _GROUPS if any(_value(getattr(one, g[0]), measure) for one in rows)]
    named = used if len(used) > 1 else []
    wide = width > 500
    left, right = 62.0, width - 16
    top = 44.0 + (0 if wide else 16.0 * max(len(named) - 1, 0))
    bottom = top + 182
    drawing = Drawing(
        width, bottom + 40, name="costs", title=title, description=caption, prefix=prefix
    )
    y = Scale(0, max(_total(one, measure) for one in rows) * 1.05, bottom, top)
    step = min((right - left) / len(rows), 72.0)
    right = max(left + step * len(rows), left + 200)
    left_axis(drawing, y, left, right, label=measure, form=_ticks_of(measure, y.high), most=5)
    at, line = (left + 40 if wide else left), 17.0
    for _, text, colour in named:
        drawing.rect(at, line - 9, 10, 10, f"fill-{colour}")
        drawing.text(at + 15, line, text, "small")
        if wide:
            at += text_width(text, 11) + 36
        else:
            line += 16
    before, shown_at = -1, -99.0
    crowd: dict[str, list[str]] = {}
    for number, one in enumerate(rows):
        x, height = left + step * number, 0.0
        for name, _, colour in used:
            value = _value(getattr(one, name), measure)
            tall = y.start - y(value)
            tip = f"{one.candidate}: {_amount(measure, _total(one, measure))}"
            about = {"data_candidate": one.candidate, "data_tip": tip}
            top_y = bottom - height - tall
            if len(rows) > CROWD:
                box = f"M{x:.1f} {top_y:.1f}h{step:.2f}v{tall:.1f}h{-step:.2f}z"
                crowd.setdefault(colour, []).append(box)
            elif tall:
                left_x = x + step * 0.12
                drawing.rect(left_x, top_y, step * 0.76, tall, f"fill-{colour}", **about)
            height += tall
        if one.candidate == best:
            drawing.text(x + step / 2, bottom - height - 5, "★", "label-best", "middle")
        if one.round != before and x - shown_at > 26:
            text = str(one.round) if one.round else "start" if step > 14 else "0"
            drawing.text(x + step * 0.12, bottom + 16, text, "small")
            shown_at = x
        before = one.round
    for colour, boxes in crowd.items():
        drawing.path("".join(boxes), f"fill-{colour}")
    drawing.line(left, bottom, right, bottom, "axis")
    drawing.text(right, bottom + 32, "round", "small", "end")
    return drawing.svg()
