"""Figures of comparisons: several runs side by side, and protocols in a replay."""

import math
from collections.abc import Callable, Mapping, Sequence

from coevolve.figures.axes import Scale, bottom_axis, joined, left_axis, padded, spread, stepped
from coevolve.figures.figure import Figure, empty
from coevolve.figures.palette import DASHES, SERIES
from coevolve.figures.svg_drawing import WIDTH, Drawing, diamond, text_width
from coevolve.formatting import count, dollars, duration, middle, plural, score
from coevolve.views.run_comparison import AXES, ReplayComparison, RunComparison, RunCurve

_FORMS: Mapping[str, Callable[[float], str]] = {
    "evaluations": count,
    "trials": count,
    "tokens": count,
    "dollars": dollars,
    "hours": lambda hours: duration(3600 * hours),
}
_LABELS = {
    "evaluations": "evaluations of new candidates",
    "trials": "trials, all",
    "tokens": "tokens",
    "dollars": "dollars",
    "hours": "working time",
}


def comparison_figure(
    found: RunComparison, *, axis: str = "evaluations", width: float = WIDTH, prefix: str = ""
) -> Figure:
    """The best score so far of several runs, against evaluations or another cost."""
    title = "Runs side by side"
    runs = [one for one in found.runs if one.points]
    if not runs:
        text = "No run has a score yet."
        return empty("comparison", title, text, width=width, prefix=prefix)
    top = max(runs, key=lambda one: -math.inf if one.full is None else one.full)
    caption = (
        f"The estimate of the best candidate so far in {plural(len(runs), 'run')}, as it was "
        "known then. Estimates of protocols without a correction can be too high."
    )
    if top.full is not None:
        caption += (
            f" Diamonds are scores on all tasks, measured after the choice: the highest is "
            f"{score(top.full)}, of {middle(top.label, 40)}."
        )
    if len({getattr(one.points[-1], axis) for one in runs}) > 1:
        caption += " A dotted line continues the last estimate of a run that spent less."
    return Figure(
        name="comparison",
        title=title,
        caption=caption,
        svg=_curves(runs, axis, width, title, caption, prefix),
        columns=("run", "protocol", "seed", "rounds", "candidates", "winner", "estimate",
                 "all tasks", "test", *AXES),
        rows=tuple(
            (
                one.label,
                one.protocol,
                one.seed,
                one.rounds,
                one.candidates,
                one.best,
                None if one.estimate is None else one.estimate["value"],
                one.full,
                one.test,
                *(getattr(one, name) for name in AXES),
            )
            for one in found.runs
        ),
    )  # fmt: skip


def _styles(runs: Sequence[RunCurve]) -> dict[str, tuple[str, str]]:
    """A colour for each protocol, and dashes after all colours are used."""
    protocols = list(dict.fromkeys(one.protocol for one in runs))
    if len(protocols) == 1:  # then runs differ in other ways
        keys, of = [one.label for one in runs], {one.label: one.label for one in runs}
    else:
        keys, of = protocols, {one.label: one.protocol for one in runs}
    table = {
        key: (SERIES[n % len(SERIES)], DASHES[n // len(SERIES) % len(DASHES)])
        for n, key in enumerate(keys)
    }
    return {label: table[key] for label, key in of.items()}


def _curves(
    runs: Sequence[RunCurve], axis: str, width: float, title: str, caption: str, prefix: str
) -> str:
    labelled = width > 500
    names = [middle(one.label, 22) for one in runs]
    room = max(text_width(name, 11) for name in names) + 16 if labelled else 16
    left, right, top, bottom = 46.0, width - room, 30.0, 300.0
    bottom = max(bottom, top + 14.0 * len(runs)) if labelled else bottom
    height = bottom + 42 + (0 if labelled else 16 * len(runs) + 6)
    drawing = Drawing(
        width, height, name="comparison", title=title, description=caption, prefix=prefix
    )
    most = max([getattr(point, axis) for one in runs for point in one.points] + [0])
    values = [point.value for one in runs for point in one.points]
    low, high = padded([*values, *(one.full for one in runs if one.full is not None)])
    x, y = Scale(0, max(most, 1e-9), left, right), Scale(low, high, bottom, top)
    left_axis(drawing, y, left, right, label="best score so far", form=lambda v: f"{v:g}")
    bottom_axis(drawing, x, bottom, label=_LABELS[axis], form=_FORMS[axis], most=6)
    styles, ends = _styles(runs), []
    for one in runs:
        colour, dashes = styles[one.label]
        points = [(x(getattr(point, axis)), y.held(point.value)) for point in one.points]
        more = {"stroke_dasharray": dashes} if dashes else {}
        about = {"data_run": one.label, "data_tip": _tip(one)}
        drawing.path(stepped(points), f"stroke-{colour}", **more, **about)
        if right - points[-1][0] > 1:  # the line is joined to its name, but no cost is made up
            data = f"M{points[-1][0]:.1f} {points[-1][1]:.1f}H{right:.1f}"
            drawing.path(data, f"stroke-{colour}", stroke_dasharray="1 5", **about)
        if one.full is not None:
            where = diamond(points[-1][0], y.held(one.full), 5)
            drawing.path(where, f"mark-{colour}", **about)
        ends.append(points[-1][1])
    places = spread(ends, 14, top, bottom) if labelled else []
    for number, (one, name) in enumerate(zip(runs, names, strict=True)):
        colour, _ = styles[one.label]
        at_x, at_y = (right + 8, places[number]) if labelled else (16, bottom + 54 + 16 * number)
        drawing.text(at_x, at_y + 4, name, f"tag-{colour}", data_run=one.label)
    return drawing.svg()


def _tip(one: RunCurve) -> str:
    value = "no score" if one.estimate is None else score(one.estimate["value"])
    text = f"{one.label}: {one.protocol}, seed {one.seed}, {value}"
    return text if one.full is None else f"{text}, on all tasks {score(one.full)}"


def replay_figure(found: ReplayComparison, *, width: float = WIDTH, prefix: str = "") -> Figure:
    """The regret of protocols on recorded outcomes, against the fraction of the tasks."""
    title = "Protocols on recorded outcomes"
    curves = [curve for curve in found.curves if curve.points]
    if not curves:
        text = "The replay has no regret to show."
        return empty("replay", title, text, width=width, prefix=prefix)
    largest = max(point.fraction for curve in curves for point in curve.points)
    at_largest = {
        curve.protocol: point.regret
        for curve in curves
        for point in curve.points
        if point.fraction == largest
    }
    least = min(at_largest, key=at_largest.__getitem__)
    matrices = plural(len(found.matrices), "matrix", "matrices")
    caption = (
        "Regret: how much lower the winner scores than the best candidate, on average over "
        f"{matrices}, {found.series} series "
        f"and {plural(found.seeds, 'seed')}; lines are standard errors. At {largest:.0%} of the "
        f"tasks {least} has the least, {at_largest[least]:.4f}."
    )
    return Figure(
        name="replay",
        title=title,
        caption=caption,
        svg=_regrets(found, width, title, caption, prefix),
        columns=("protocol", "fraction", "regret", "standard error", "Spearman", "evaluations"),
        rows=tuple(
            (
                curve.protocol,
                point.fraction,
                point.regret,
                point.regret_se,
                point.spearman,
                point.evaluations,
            )
            for curve in curves
            for point in curve.points
        ),
    )


def _regrets(found: ReplayComparison, width: float, title: str, caption: str, prefix: str) -> str:
    curves = [curve for curve in found.curves if curve.points]
    labelled = width > 500
    room = max(text_width(curve.protocol, 11) for curve in curves) + 18 if labelled else 18
    left, right, top, bottom = 56.0, width - room, 30.0, 270.0
    height = bottom + 42 + (0 if labelled else 16 * len(curves) + 6)
    drawing = Drawing(
        width, height, name="replay", title=title, description=caption, prefix=prefix
    )
    fractions = sorted({point.fraction for curve in curves for point in curve.points})
    most = max(
        point.regret + (point.regret_se or 0.0) for curve in curves for point in curve.points
    )
    edges = math.log(fractions[0]) - 0.06, math.log(fractions[-1]) + 0.06
    across = Scale(*edges, left + 12, right - 12)
    y = Scale(0, max(most, 1e-6) * 1.05, bottom, top)
    left_axis(drawing, y, left, right, label="regret", form=lambda v: f"{v:g}")
    drawing.line(left, bottom, right, bottom, "axis")
    for fraction in fractions:
        drawing.text(across(math.log(fraction)), bottom + 17, f"{fraction:.0%}", "small", "middle")
    drawing.text(right, bottom + 33, "tasks that a candidate is run on", "small", "end")
    ends = []
    for number, curve in enumerate(curves):
        colour = SERIES[number % len(SERIES)]
        shift = (number - (len(curves) - 1) / 2) * 5  # so that errors do not cover each other
        points = [(across(math.log(p.fraction)) + shift, y(p.regret)) for p in curve.points]
        drawing.path(joined(points), f"stroke-{colour}", data_tip=curve.protocol)
        for point, (a, b) in zip(curve.points, points, strict=True):
            if point.regret_se is not None:
                up = y.held(point.regret + point.regret_se)
                drawing.line(a, up, a, y.held(point.regret - point.regret_se), f"stroke-{colour}")
            tip = f"{curve.protocol} at {point.fraction:.0%}: {point.regret:.4f}"
            drawing.add("circle", f"fill-{colour}", cx=a, cy=b, r=4, data_tip=tip)
        ends.append(points[-1][1])
    places = spread(ends, 14, top, bottom) if labelled else []
    for number, curve in enumerate(curves):
        at_x, at_y = (right + 8, places[number]) if labelled else (16, bottom + 54 + 16 * number)
        drawing.text(at_x, at_y + 4, curve.protocol, f"tag-{SERIES[number % len(SERIES)]}")
    return drawing.svg()
