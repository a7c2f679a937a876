"""The figure of failures: what went wrong, how often, and in which round."""

from collections.abc import Sequence

from coevolve.figures.axes import Scale, left_axis, ticks
from coevolve.figures.figure import Figure, empty
from coevolve.figures.svg_drawing import WIDTH, Drawing, text_width
from coevolve.formatting import middle, plural
from coevolve.views.failure_log import Failures, FaultRow

_PARTS = (
    ("missing", "missing", "sealed"),
    ("zeros", "scored 0", "amber"),
    ("retried", "repeated", "rescoring"),
    ("checks", "failed check", "soft"),
)
_MOST = 10
"""Kinds of faults in the picture; the table has all."""
_ROW = 22.0


def failures_figure(found: Failures, *, width: float = WIDTH, prefix: str = "") -> Figure:
    """Faults by kind, and the faults of every round."""
    title = "Failures"
    trials = sum(one.trials for one in found.rounds)
    if not found.faults:
        text = f"No faults: all {plural(trials, 'trial')} of the search have a score."
        text = text if trials else "No trial has run yet."
        return empty("failures", title, text, width=width, prefix=prefix)
    caption = (
        f"{plural(found.missing, 'trial')} without a score, {found.zeros:,} scored 0 because of a "
        f"fault, {plural(found.retried, 'attempt')} repeated, "
        f"{plural(found.refused, 'candidate')} refused. The most frequent fault is "
        f"{middle(found.faults[0].kind, 40)} ({found.faults[0].blame})."
    )
    return Figure(
        name="failures",
        title=title,
        caption=caption,
        svg=_picture(found, width, title, caption, prefix),
        columns=("fault", "blame", "missing", "scored 0", "repeated", "failed checks",
                 "candidates", "tasks", "example"),
        rows=tuple(
            (
                one.kind,
                one.blame,
                one.missing,
                one.zeros,
                one.retried,
                one.checks,
                one.candidates,
                one.tasks,
                one.reasons[0][0] if one.reasons else "",
            )
            for one in found.faults
        ),
    )  # fmt: skip


def _picture(found: Failures, width: float, title: str, caption: str, prefix: str) -> str:
    faults = found.faults[:_MOST]
    wide = width > 620
    used = [part for part in _PARTS if any(getattr(one, part[0]) for one in faults)]
    top = 44.0
    high = top + max(_ROW * len(faults), 120.0)
    below = 0.0 if wide else _ROW * len(faults) + 60
    drawing = Drawing(
        width,
        (high if wide else top + below + 130) + 40,
        name="failures",
        title=title,
        description=caption,
        prefix=prefix,
    )
    at = 8.0
    for _, text, colour in used:
        drawing.rect(at, 8, 10, 10, f"fill-{colour}")
        drawing.text(at + 15, 17, text, "small")
        at += text_width(text, 11) + 34
    split = 0.55 * width if wide else width
    _kinds(drawing, faults, used, top, split)
    left, first = (split + 50, top) if wide else (46.0, top + below)
    _rounds(drawing, found, left, width - 12, first, high if wide else first + 120)
    return drawing.svg()


def _kinds(
    drawing: Drawing,
    faults: Sequence[FaultRow],
    used: Sequence[tuple[str, str, str]],
    top: float,
    right: float,
) -> None:
    names = [middle(one.kind, 20) for one in faults]
    left = max(text_width(name) for name in names) + 16
    x = Scale(0, max(one.total for one in faults), left, right - 56)
    for number, (one, name) in enumerate(zip(faults, names, strict=True)):
        y, at = top + _ROW * number, left
        tip = f"{one.kind} ({one.blame}): {one.reasons[0][0] if one.reasons else ''}"
        drawing.text(left - 8, y + 15, name, "text", "end", data_tip=tip)
        for part, _, colour in used:
            long = x(getattr(one, part)) - left
            drawing.rect(at, y + 4, long, _ROW - 8, f"fill-{colour}", data_tip=tip)
            at += long
        drawing.text(at + 6, y + 15, f"{one.total:,}", "small")


def _rounds(
    drawing: Drawing, found: Failures, left: float, right: float, top: float, bottom: float
) -> None:
    """Missing, zero and repeated trials of every round."""
    rounds = found.rounds
    parts = _PARTS[:3]
    most = max(sum(getattr(one, part) for part, _, _ in parts) for one in rounds) if rounds else 0
    if not most:
        return
    y = Scale(0, most * 1.05, bottom, top)
    whole = [value for value in ticks(0, most, 4) if value == int(value)]
    left_axis(drawing, y, left, right, label="by round", form=lambda v: f"{v:g}", at=whole)
    step = min((right - left) / len(rounds), 40.0)
    every = max(1, -(-len(rounds) * 24 // int(right - left)))
    for number, one in enumerate(rounds):
        x, high = left + step * number, bottom
        tip = (
            f"round {one.round}: {plural(one.trials, 'trial')}, {one.missing} missing, "
            f"{one.zeros} scored 0 by a fault, {one.retried} repeated"
        )
        for part, _, colour in parts:
            tall = bottom - y(getattr(one, part))
            high -= tall
            drawing.rect(x + step * 0.14, high, step * 0.72, tall, f"fill-{colour}", data_tip=tip)
        if one.round % every == 0:
            text = str(one.round)
            drawing.text(x + step / 2, bottom + 16, text, "small", "middle", data_round=one.round)
    drawing.line(left, bottom, right, bottom, "axis")
