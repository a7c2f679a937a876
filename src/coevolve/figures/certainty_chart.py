"""The figure of how sure the choice is: the best candidate beside its closest rivals."""

from collections.abc import Sequence

from coevolve.figures.axes import Scale, bottom_axis
from coevolve.figures.figure import Figure, empty
from coevolve.figures.svg_drawing import WIDTH, Drawing
from coevolve.formatting import difference, middle, plural
from coevolve.views.certainty import Certainty, Rival

_MOST = 12
"""Rivals in the picture; the table has all."""
_ROW = 20.0


def certainty_figure(found: Certainty, *, width: float = WIDTH, prefix: str = "") -> Figure:
    """How much higher the best candidate scores than its rivals, with intervals."""
    title = "How sure the choice is"
    if found.best is None or not found.rivals:
        text = "There are not two candidates with a score to compare yet."
        return empty("certainty", title, text, width=width, prefix=prefix)
    caption = sentence(found)
    return Figure(
        name="certainty",
        title=title,
        caption=caption,
        svg=_picture(found, found.rivals[:_MOST], width, title, caption, prefix),
        columns=(
            "rival",
            "round",
            "estimate",
            "difference",
            "low",
            "high",
            "better with",
            "method",
        ),
        rows=tuple(
            (
                rival.candidate,
                rival.round,
                rival.value,
                rival.difference,
                rival.low,
                rival.high,
                rival.probability,
                rival.method,
            )
            for rival in found.rivals
        ),
    )


def sentence(found: Certainty) -> str:
    """How sure the choice is, in words."""
    name, unclear = middle(str(found.best), 40), len(found.open)
    parts = []
    if found.probability is not None and found.regret is not None:
        parts.append(
            f"{name} is the best of all with probability {found.probability:.0%}; the expected "
            f"loss of choosing it is {found.regret:.3f}."
        )
    among = plural(found.compared, "other candidate")
    if unclear:
        rest = f"{unclear} of {among}" if found.compared > 1 else "the other candidate"
        parts.append(
            f"{rest} may be better than {name}: the interval of the difference contains 0, or "
            "is unknown."
        )
    else:
        parts.append(
            f"No other candidate may be better than {name} ({found.compared:,} compared)."
        )
    parts.append(f"Lines are {found.level:.0%} intervals.")
    return " ".join(parts)


def _picture(
    found: Certainty, rivals: Sequence[Rival], width: float, title: str, caption: str, prefix: str
) -> str:
    names = 190.0 if width > 500 else 116.0
    chance = any(rival.probability is not None for rival in rivals)
    room = 84.0 if chance else 20.0
    top, bottom = 34.0, 34.0 + _ROW * len(rivals)
    drawing = Drawing(
        width, bottom + 46, name="certainty", title=title, description=caption, prefix=prefix
    )
    ends = [v for one in rivals for v in (one.low, one.high, one.difference) if v is not None]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    edge = max(0.01, 0.05 * (high - low))
    x = Scale(low - edge, high + edge, names, width - room)
    drawing.text(x(0) + 6, 16, "better →", "small")
    if width > 500:  # a narrow picture has no room for both
        drawing.text(names - 8, 16, f"{middle(str(found.best), 18)} against", "small", "end")
        drawing.text(x(0) - 6, 16, "← worse", "small", "end")
    else:
        drawing.text(names - 8, 16, "the best against", "small", "end")
    if chance:
        drawing.text(width - 4, 16, "rival is better", "small", "end")
    for number, rival in enumerate(rivals):
        _row(drawing, x, top + _ROW * (number + 0.5), number, rival, names, width, found)
    drawing.line(x(0), top - 6, x(0), bottom, "zero")
    bottom_axis(
        drawing,
        x,
        bottom + 4,
        label="difference of the scores",
        form=lambda v: f"{v:+g}" if v else "0",
        most=7,
    )
    return drawing.svg()


def _row(
    drawing: Drawing,
    x: Scale,
    y: float,
    number: int,
    rival: Rival,
    names: float,
    width: float,
    found: Certainty,
) -> None:
    about = {"data_candidate": rival.candidate, "data_tip": _tip(rival, found)}
    if number % 2 == 0:
        drawing.rect(0, y - _ROW / 2, width, _ROW, "band")
    style = "text" if rival.open else "small"
    most = 24 if names > 150 else 14
    drawing.text(names - 8, y + 4, middle(rival.candidate, most), style, "end", **about)
    if rival.low is not None and rival.high is not None:
        line = "whisker-best" if rival.open else "whisker"
        drawing.line(x(rival.low), y, x(rival.high), y, line)
    dot = "dot-best" if rival.open else "dot"
    drawing.add("circle", dot, cx=x(rival.difference), cy=y, r=4, **about)
    if rival.probability is not None:
        drawing.text(width - 4, y + 4, f"{rival.probability:.0%}", style, "end")


def _tip(rival: Rival, found: Certainty) -> str:
    text = f"{found.best} minus {rival.candidate}: {difference(rival.difference)}"
    if rival.low is not None and rival.high is not None:
        text += f" ({difference(rival.low)} to {difference(rival.high)})"
    return f"{text}, {rival.method}"
