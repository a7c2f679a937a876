"""Figures of the frontier: how solvable the tasks are over rounds, and what was drawn by it."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from coevolve.core.outcome_table import GROUPS
from coevolve.figures.axes import Scale, bottom_axis, joined, left_axis, spread
from coevolve.figures.figure import Cell, Figure, empty
from coevolve.figures.palette import SERIES
from coevolve.figures.svg_drawing import WIDTH, Drawing, text_width
from coevolve.formatting import middle, plural
from coevolve.views.draw_log import TaskDraw
from coevolve.views.milestones import Milestone
from coevolve.views.timeline import Frontier

_WORDS = {
    "never": "never solved",
    "sometimes": "solved by under 1/3",
    "mixed": "solved by 1/3 to 2/3",
    "mostly": "solved by over 2/3",
    "unseen": "not run yet",
}
_STACK = ("unseen", "never", "sometimes", "mixed", "mostly")
_CHOSEN = 6
"""Tasks that are followed if none are named: those drawn most often."""
_MOST_DOTS = 3_000


def frontier_figure(found: Frontier, *, width: float = WIDTH, prefix: str = "") -> Figure:
    """How many tasks are in each solvability group after every round."""
    title = "Solvability of the tasks"
    stones = [one for one in found.milestones if one.kind != "choice"]
    stones = stones or list(found.milestones[-1:])
    if not stones:
        text = "The starting harnesses have no scores yet."
        return empty("frontier", title, text, width=width, prefix=prefix)
    caption = _frontier_caption(stones)
    return Figure(
        name="frontier",
        title=title,
        caption=caption,
        svg=_stack(stones, width, title, caption, prefix),
        columns=("after round", *(_WORDS[group] for group in GROUPS)),
        rows=tuple((one.round, *(one.groups[group] for group in GROUPS)) for one in stones),
    )


def _frontier_caption(stones: Sequence[Milestone]) -> str:
    first, last = stones[0].groups, stones[-1].groups
    total = sum(last.values())
    if len(stones) == 1:
        return (
            f"Of {plural(total, 'task')}, {last['never']} are solved by no candidate and "
            f"{last['mostly']} by more than two thirds of them."
        )
    return (
        f"Of {plural(total, 'task')}, {first['never']} were solved by no starting harness; "
        f"{last['never']} are solved by no candidate now. {last['mixed']} are solved by a third "
        "to two thirds of the candidates that ran them: these tell candidates apart best "
        f"({first['mixed']} after the starting harnesses)."
    )


def _stack(
    stones: Sequence[Milestone], width: float, title: str, caption: str, prefix: str
) -> str:
    labelled = width > 500
    groups = [group for group in _STACK if any(one.groups[group] for one in stones)]
    texts = [f"{stones[-1].groups[group]} {_WORDS[group]}" for group in groups]
    room = max(text_width(text, 11) for text in texts) + 30 if labelled else 16
    left, right, top, bottom = 46.0, width - room, 30.0, 240.0
    height = bottom + 42 + (0 if labelled else 18 * len(groups))
    drawing = Drawing(
        width, height, name="frontier", title=title, description=caption, prefix=prefix
    )
    total = sum(stones[-1].groups.values())
    x = Scale(stones[0].round, max(stones[-1].round, stones[0].round + 1), left, right)
    y = Scale(0, total, bottom, top)
    left_axis(drawing, y, left, right, label="tasks", form=lambda v: f"{v:g}", most=5)
    below = [0] * len(stones)
    middles = []
    single = len(stones) == 1
    for group in groups:
        above = [b + one.groups[group] for b, one in zip(below, stones, strict=True)]
        up = [(x(one.round), y(v)) for one, v in zip(stones, above, strict=True)]
        down = [(x(one.round), y(v)) for one, v in zip(stones, below, strict=True)]
        if single:
            up, down = [*up, (right, up[0][1])], [*down, (right, down[0][1])]
        tip = f"{_WORDS[group]}: {stones[0].groups[group]} to {stones[-1].groups[group]} tasks"
        drawing.path(joined([*up, *reversed(down)]) + "Z", f"fill-{group}", data_tip=tip)
        middles.append((y(above[-1]) + y(below[-1])) / 2)
        below = above
    for one in stones:
        tip = ", ".join(f"{one.groups[group]} {_WORDS[group]}" for group in reversed(groups))
        step = (right - left) / max(len(stones) - 1, 1)
        drawing.rect(
            x(one.round) - step / 2, top, step, bottom - top, "hit",
            data_round=one.round, data_tip=f"after round {one.round}: {tip}",
        )  # fmt: skip
    bottom_axis(
        drawing, x, bottom, label="after round (0: starting harnesses)",
        form=lambda v: f"{v:g}", at=_rounds(stones, right - left),
    )  # fmt: skip
    places = spread(middles, 15, top, bottom) if labelled else []
    for number, (group, text) in enumerate(zip(groups, texts, strict=True)):
        at_x, at_y = (right + 9, places[number]) if labelled else (16.0, bottom + 50 + 18 * number)
        drawing.rect(at_x, at_y - 4, 8, 8, f"fill-{group}")
        drawing.text(at_x + 13, at_y + 4, text, "small")
    return drawing.svg()


def _rounds(stones: Sequence[Milestone], width: float) -> list[float]:
    """The rounds whose numbers fit below the axis."""
    every = max(1, -(-len(stones) * 26 // int(width)))
    return [float(one.round) for one in stones if one.round % every == 0]


def weights_figure(
    found: Frontier, *, tasks: Sequence[str] = (), width: float = WIDTH, prefix: str = ""
) -> Figure:
    """How likely tasks were drawn: by their solvability, and for some tasks over rounds.

    Args:
        found: The draws of a run.
        tasks: The tasks to follow; those drawn most often if left out.
        width: Width of the figure.
        prefix: Begins every id in it.
    """
    title = "What was drawn"
    draws = [draw for draw in found.draws if draw.kind != "further"]
    if not draws:
        text = "No tasks are drawn yet."
        return empty("weights", title, text, width=width, prefix=prefix)
    chosen = [found.tasks.index(task) for task in tasks if task in found.tasks]
    chosen = chosen or _often(draws)
    further = sum(draw.kind == "further" for draw in found.draws)
    caption = (
        "First chart: the inclusion probability π of the drawn tasks against their solvability p̄ "
        "before the draw; darker dots are later rounds. Second chart: π of some tasks in the "
        "rounds that drew them."
    )
    if further:
        caption += (
            f" Not shown: {plural(further, 'further draw')}, which an adaptive protocol added "
            "for leading candidates."
        )
    rows: list[tuple[Cell, ...]] = []
    for draw in draws:
        columns = zip(draw.tasks.tolist(), draw.anchors.tolist(), draw.weights.tolist(),
                      draw.probabilities.tolist(), strict=True)  # fmt: skip
        rows += [(draw.round, found.tasks[t], p, w, pi) for t, p, w, pi in columns if t in chosen]
    return Figure(
        name="weights",
        title=title,
        caption=caption,
        svg=_panels(found, draws, chosen, width, title, caption, prefix),
        columns=("round", "task", "solvability", "weight w", "probability π"),
        rows=tuple(rows),
    )


def _often(draws: Sequence[TaskDraw]) -> list[int]:
    """The tasks that were drawn most often."""
    counts = Counter(task for draw in draws for task in draw.tasks.tolist())
    order = sorted(counts, key=lambda task: (-counts[task], task))
    return order[:_CHOSEN]


def _panels(
    found: Frontier,
    draws: Sequence[TaskDraw],
    chosen: Sequence[int],
    width: float,
    title: str,
    caption: str,
    prefix: str,
) -> str:
    wide = width > 620
    split = 0.42 * width if wide else width
    top, tall = 30.0, 210.0
    below = 0.0 if wide else tall + 74
    height = top + tall + 42 + below + 8
    drawing = Drawing(
        width, height, name="weights", title=title, description=caption, prefix=prefix
    )
    highest = max(float(draw.probabilities.max(initial=0.0)) for draw in draws)
    top_pi = min(1.0, max(0.05, highest * 1.05))
    _dots(drawing, draws, Scale(0, 1, 46, split - 24), Scale(0, top_pi, top + tall, top))
    left = split + 46 if wide else 46.0
    _tracks(drawing, found, draws, chosen, left, width, top + below, tall, top_pi)
    return drawing.svg()


def _dots(drawing: Drawing, draws: Sequence[TaskDraw], x: Scale, y: Scale) -> None:
    left_axis(drawing, y, x.start, x.end, label="π", form=lambda v: f"{v:g}", most=5)
    last = max(draw.round for draw in draws)
    total = sum(len(draw.tasks) for draw in draws)
    keep = max(1, -(-total // _MOST_DOTS))
    for draw in draws:
        share = draw.round / last if last else 1.0
        places = [
            (x.held(p), y.held(pi))
            for p, pi in zip(draw.anchors.tolist(), draw.probabilities.tolist(), strict=True)
        ][::keep]
        spots = "".join(f"M{a:.1f} {b:.1f}h0" for a, b in dict.fromkeys(places))
        drawing.path(
            spots, "spots", stroke_opacity=0.25 + 0.6 * share, data_round=draw.round,
            data_tip=f"round {draw.round}: {plural(len(draw.tasks), 'task')} of {draw.pool}",
        )  # fmt: skip
    bottom_axis(
        drawing, x, y.start, label="solvability p̄ before the draw", form=lambda v: f"{v:g}", most=5
    )


def _tracks(
    drawing: Drawing,
    found: Frontier,
    draws: Sequence[TaskDraw],
    chosen: Sequence[int],
    left: float,
    width: float,
    top: float,
    tall: float,
    high: float,
) -> None:
    names = [middle(found.tasks[task], 18) for task in chosen]
    right = width - max(text_width(name, 11) for name in names) - 14
    rounds = sorted({draw.round for draw in draws})
    x = Scale(rounds[0], max(rounds[-1], rounds[0] + 1), left, right)
    y = Scale(0, high, top + tall, top)
    left_axis(drawing, y, left, right, label="π", form=lambda v: f"{v:g}", most=5)
    ends = []
    for number, task in enumerate(chosen):
        colour = SERIES[number % len(SERIES)]
        points = []
        for draw in draws:
            at = np.flatnonzero(draw.tasks == task)
            if at.size:
                points.append((x(draw.round), y.held(float(draw.probabilities[at[0]]))))
        points = list(dict.fromkeys(points))
        tip = found.tasks[task]
        drawing.path(joined(points), f"stroke-{colour}", data_task=tip, data_tip=tip)
        for a, b in points:
            drawing.add("circle", f"fill-{colour}", cx=a, cy=b, r=3, data_task=tip, data_tip=tip)
        ends.append(points[-1] if points else (right, y(0)))
    every = max(1, -(-len(rounds) * 26 // int(max(right - left, 26))))
    bottom_axis(
        drawing, x, top + tall, label="round", form=lambda v: f"{v:g}",
        at=[float(round) for round in rounds if round % every == 0],
    )  # fmt: skip
    places = spread([end[1] for end in ends], 14, top, top + tall)
    for number, (name, end, place) in enumerate(zip(names, ends, places, strict=True)):
        colour = SERIES[number % len(SERIES)]
        drawing.path(f"M{end[0] + 4:.1f} {end[1]:.1f}L{right + 4:.1f} {place:.1f}", "line-soft")
        drawing.text(
            right + 8, place + 4, name, f"tag-{colour}", data_task=found.tasks[chosen[number]]
        )
