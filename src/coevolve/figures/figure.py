"""A figure: its picture as SVG, what to see in it, and the numbers behind it."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from coevolve.errors import InputError
from coevolve.figures.palette import Theme, colour, style_sheet
from coevolve.figures.svg_drawing import Drawing

Cell = str | int | float | None
"""A number or a text in the table of a figure; None where it is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A picture and its numbers.

    `svg` is an SVG element for a page that has `style_sheet()`; it has no style of its own, but
    every mark has the colours of the light theme as attributes. `caption` says what to see.
    `columns` and `rows` are the numbers that the picture shows.

    >>> drawing = Drawing(100, 50, name="dots", title="Dots", description="One dot.")
    >>> drawing.add("circle", "dot", cx=20, cy=10, r=3)
    >>> figure = Figure(name="dots", title="Dots", caption="One dot.", svg=drawing.svg(),
    ...     columns=("x", "y"), rows=((20, 10),))
    >>> figure.standalone("dark").count("#56b4e9") > 0
    True
    """

    name: str
    title: str
    caption: str
    svg: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def standalone(self, theme: Theme = "light") -> str:
        """A whole SVG document with its style, for papers and slides."""
        style = f"<style>{style_sheet(theme)}</style>"
        paper = colour("paper", theme)
        head, mark, rest = self.svg.partition("</desc>")
        back = f'<rect width="100%" height="100%" fill="{paper}"/>'
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}{mark}{style}{back}{rest}\n'

    def png(self, *, zoom: float = 2.0, theme: Theme = "light") -> bytes:
        """The figure as a PNG image, `zoom` pixels for each unit of the drawing.

        Raises:
            InputError: resvg-py is not installed.
        """
        try:
            import resvg_py
        except ImportError:
            raise InputError(
                "PNG images need resvg-py: pip install 'task-coevolve[figures]', or use SVG."
            ) from None
        return bytes(
            resvg_py.svg_to_bytes(
                svg_string=self.standalone(theme),
                zoom=zoom,
                sans_serif_family="DejaVu Sans",
                font_dirs=_font_folders(),
            )
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON: the numbers, without the picture."""
        return {
            "name": self.name,
            "title": self.title,
            "caption": self.caption,
            "columns": list(self.columns),
            "rows": [list(row) for row in self.rows],
        }


def _font_folders() -> list[str]:
    """Fonts that are there even if the system has none: those of matplotlib, if installed."""
    found = find_spec("matplotlib")
    if found is None or found.origin is None:
        return []
    folder = Path(found.origin).parent / "mpl-data" / "fonts" / "ttf"
    return [str(folder)] if folder.is_dir() else []


def empty(name: str, title: str, caption: str, *, width: float = 760, prefix: str = "") -> Figure:
    """A figure that says why there is nothing to see yet."""
    drawing = Drawing(width, 96, name=name, title=title, description=caption, prefix=prefix)
    drawing.rect(0.5, 0.5, width - 1, 95, "grid", rx=6)
    drawing.text(width / 2, 52, caption, "small", anchor="middle")
    return Figure(name=name, title=title, caption=caption, svg=drawing.svg(), columns=(), rows=())
