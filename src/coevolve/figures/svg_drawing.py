"""A drawing: SVG elements with escaped texts, styled by classes that every theme knows."""

from collections.abc import Iterator
from contextlib import contextmanager

from coevolve.figures.palette import FONT, STYLES, attributes
from coevolve.formatting import markup, one_line

WIDTH = 760
"""The usual width of a figure; below 500, labels beside the chart are left out."""
CROWD = 600
"""More marks than this are drawn together, without tips: a picture must stay small."""
_LONGEST = 300
"""Characters of a text or of an attribute; names may be as long as a candidate likes."""
_WIDE = 0.6
"""Width of an average character, in units of the font size."""

Value = str | float


def text_width(text: str, size: float = 12) -> float:
    """About how wide a text is; characters of East Asia count twice.

    >>> round(text_width("harness"), 1)
    50.4
    """
    return size * _WIDE * sum(1 + (ord(character) > 0x2E80) for character in text)


class Drawing:
    """Collects the elements of a figure.

    Args:
        width: Width of the drawing.
        height: Its height.
        name: Name of the figure; ids in it begin with it.
        title: What it shows, for people who cannot see it.
        description: What to see in it, for the same people.
        prefix: Begins every id, so that figures of one page differ.
    """

    def __init__(
        self,
        width: float,
        height: float,
        *,
        name: str,
        title: str,
        description: str,
        prefix: str = "",
    ) -> None:
        self.width, self.height = width, height
        self._id = f"{prefix}{name}"
        self._title, self._description = title, description
        self._parts: list[str] = []

    def id(self, part: str) -> str:
        """The id of a part of the figure."""
        return f"{self._id}-{part}"

    def add(self, tag: str, style: str = "", **given: Value) -> None:
        """Add an element; underscores in the names of attributes stand for hyphens."""
        self._parts.append(f"<{tag}{_attributes(style, given)}/>")

    @contextmanager
    def group(self, tag: str = "g", style: str = "", **given: Value) -> Iterator[None]:
        """Elements that are added inside are children of a new one."""
        self._parts.append(f"<{tag}{_attributes(style, given)}>")
        yield
        self._parts.append(f"</{tag}>")

    def text(
        self,
        x: float,
        y: float,
        text: str,
        style: str = "text",
        anchor: str = "start",
        **given: Value,
    ) -> None:
        """Add a text; `anchor` is the end of it that is at x."""
        if anchor != "start":
            given["text_anchor"] = anchor
        body = markup(one_line(text, _LONGEST))
        placed = _attributes(style, {"x": x, "y": y, **given})
        self._parts.append(f"<text{placed}>{body}</text>")

    def line(self, x1: float, y1: float, x2: float, y2: float, style: str, **given: Value) -> None:
        """Add a straight line."""
        self.add("line", style, x1=x1, y1=y1, x2=x2, y2=y2, **given)

    def rect(
        self, x: float, y: float, width: float, height: float, style: str, **given: Value
    ) -> None:
        """Add a rectangle."""
        self.add("rect", style, x=x, y=y, width=max(0.0, width), height=max(0.0, height), **given)

    def path(self, data: str, style: str, **given: Value) -> None:
        """Add a path."""
        if data:
            self.add("path", style, d=data, **given)

    def svg(self) -> str:
        """The drawing as an SVG element, without a style sheet."""
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="cv" role="img" '
            f'viewBox="0 0 {_number(self.width)} {_number(self.height)}" '
            f'aria-labelledby="{markup(self.id("title"))} {markup(self.id("desc"))}" '
            f'font-family="{markup(FONT)}">'
        )
        named = (
            f'<title id="{markup(self.id("title"))}">{markup(self._title, _LONGEST)}</title>'
            f'<desc id="{markup(self.id("desc"))}">{markup(self._description, 1000)}</desc>'
        )
        return f"{head}{named}{''.join(self._parts)}</svg>"


def _attributes(style: str, given: dict[str, Value]) -> str:
    """Attributes as text: those of the style's class, then those given."""
    found: dict[str, Value] = {}
    if style:
        found["class"] = f"cv-{style}"
        found |= attributes(style) if style in STYLES else {}
    found |= {name.replace("_", "-"): value for name, value in given.items()}
    return "".join(f' {name}="{_value(name, value)}"' for name, value in found.items())


def _value(name: str, value: Value) -> str:
    if isinstance(value, float | int):
        return _number(value)
    return markup(value, _LONGEST) if name.startswith("data-") else markup(value)


def _number(value: float) -> str:
    """A coordinate with at most two decimals.

    >>> _number(3.0), _number(2.345), _number(-0.001)
    ('3', '2.35', '0')
    """
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


_STAR = ((0.0, -1.0), (0.26, -0.35), (0.95, -0.31), (0.42, 0.13), (0.59, 0.81), (0.0, 0.44))
"""The right half of a star, from its top to its bottom."""


def cross(x: float, y: float, d: float) -> str:
    """Two crossed lines."""
    a, b = f"{2 * d:.1f}", f"{-2 * d:.1f}"
    return f"M{x - d:.1f} {y - d:.1f}l{a} {a}m0 {b}l{b} {a}"


def diamond(x: float, y: float, d: float) -> str:
    """A square on its corner."""
    a, b = f"{d:.1f}", f"{-d:.1f}"
    return f"M{x:.1f} {y - d:.1f}l{a} {a}l{b} {a}l{b} {b}z"


def star(x: float, y: float, r: float) -> str:
    """A star with five points."""
    outline = [*_STAR, *((-a, b) for a, b in reversed(_STAR[1:-1]))]
    return f"M{' '.join(f'{x + r * a:.1f},{y + r * b:.1f}' for a, b in outline)}z"
