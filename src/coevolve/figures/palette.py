"""Colours and styles of figures: one table for the page, the report, notebooks and papers.

The hues are those of Okabe and Ito (2008), which people with colour blindness can tell apart.
Meaning never rests on hue alone: marks differ in shape, lines in dashes, cells in lightness.
"""

from typing import Literal

Theme = Literal["light", "dark", "notebook"]
"""A notebook may be light or dark, and a figure in it cannot know."""

COLOURS: dict[str, tuple[str, str]] = {
    "paper": ("#ffffff", "#14181d"),
    "ink": ("#1f2933", "#e6eaee"),
    "soft": ("#5b6875", "#9aa7b4"),
    "line": ("#c3ccd4", "#46525e"),
    "faint": ("#e4e9ed", "#2a333c"),
    "band": ("#f5f7f9", "#1a2027"),
    "candidate": ("#0072b2", "#56b4e9"),
    "pale": ("#8dbddb", "#2f6d96"),
    "best": ("#d55e00", "#ff8a3d"),
    "truth": ("#009e73", "#2fc79a"),
    "sealed": ("#a9417f", "#e39ac4"),
    "start": ("#5b6875", "#b4bfca"),
    "amber": ("#c98a12", "#e0a43a"),
    "absent": ("#eef1f3", "#20272e"),
    "missing": ("#a9417f", "#e39ac4"),
    "shade-0": ("#eda52b", "#b5741a"),
    "shade-1": ("#d4ab5c", "#8d6a38"),
    "shade-2": ("#a8a288", "#6f7a72"),
    "shade-3": ("#6a9bb0", "#5691b3"),
    "shade-4": ("#0072b2", "#4aa8de"),
    "depth-0": ("#c9dced", "#1f3a4f"),
    "depth-1": ("#9cc3de", "#265a7d"),
    "depth-2": ("#6aa7cf", "#2f7cac"),
    "depth-3": ("#3389bf", "#4199d1"),
    "depth-4": ("#00598c", "#7cc8f5"),
    "never": ("#c2570c", "#d9752f"),
    "sometimes": ("#f0b04c", "#c08a2e"),
    "mixed": ("#9dcbe8", "#2c6a93"),
    "mostly": ("#0072b2", "#56b4e9"),
    "unseen": ("#dfe4e8", "#303a43"),
    "phase-0": ("#7f8d9a", "#8b98a5"),
    "trials": ("#0072b2", "#56b4e9"),
    "attempts": ("#d55e00", "#ff8a3d"),
    "preparation": ("#e3c63f", "#e3c63f"),
    "proposing": ("#009e73", "#2fc79a"),
    "rescoring": ("#7cc4ec", "#9bd4f5"),
    "request": ("#a6a6a6", "#777f87"),
}
"""Every colour by name: on light paper, and on dark."""

_NEUTRAL = {
    "paper": "transparent",
    "ink": "currentColor",
    "soft": "#7d8894",
    "line": "#7d889480",
    "faint": "#7d889430",
    "band": "#7d889412",
    "absent": "#7d889422",
    "candidate": "#2b8cc4",
    "shade-4": "#2b8cc4",
    "start": "#7d8894",
}
"""Colours that are readable on light and on dark paper, where those of the light theme are not."""
SERIES = ("candidate", "best", "truth", "sealed", "amber", "rescoring", "soft", "preparation")
"""Colours of series that are told apart, such as protocols; then they repeat with dashes."""
DASHES = ("", "6 3", "2 3")

STYLES: dict[str, dict[str, str]] = {
    "text": {"fill": "$ink", "font-size": "12"},
    "small": {"fill": "$soft", "font-size": "11"},
    "tiny": {"fill": "$soft", "font-size": "9"},
    "strong": {"fill": "$ink", "font-size": "12", "font-weight": "600"},
    "axis": {"stroke": "$line", "stroke-width": "1", "fill": "none"},
    "grid": {"stroke": "$faint", "stroke-width": "1", "fill": "none"},
    "band": {"fill": "$band"},
    "zero": {"stroke": "$soft", "stroke-width": "1", "fill": "none"},
    "cap": {"stroke": "$best", "stroke-width": "1.5", "stroke-dasharray": "5 4", "fill": "none"},
    "whisker": {"stroke": "$pale", "stroke-width": "1.5", "fill": "none"},
    "whisker-thin": {
        "stroke": "$pale", "stroke-width": "0.6", "stroke-opacity": "0.7", "fill": "none"
    },
    "whisker-best": {"stroke": "$best", "stroke-width": "2", "fill": "none"},
    "dot": {"fill": "$candidate"},
    "dot-best": {"fill": "$best"},
    "dot-start": {"fill": "$paper", "stroke": "$start", "stroke-width": "1.8"},
    "dot-truth": {"fill": "$paper", "stroke": "$truth", "stroke-width": "2"},
    "dot-sealed": {"fill": "none", "stroke": "$sealed", "stroke-width": "2"},
    "cross": {"stroke": "$soft", "stroke-width": "1.5", "fill": "none"},
    "line-best": {"stroke": "$best", "stroke-width": "2", "fill": "none"},
    "line-today": {
        "stroke": "$best", "stroke-width": "1.2", "stroke-dasharray": "3 3", "fill": "none"
    },
    "line-start": {
        "stroke": "$start", "stroke-width": "1", "stroke-dasharray": "2 3", "fill": "none"
    },
    "line-soft": {"stroke": "$line", "stroke-width": "1.2", "fill": "none"},
    "label-best": {"fill": "$best", "font-size": "12", "font-weight": "600"},
    "halo": {
        "fill": "$ink", "font-size": "12", "stroke": "$paper", "stroke-width": "3",
        "paint-order": "stroke",
    },
    "halo-soft": {
        "fill": "$soft", "font-size": "11", "stroke": "$paper", "stroke-width": "3",
        "paint-order": "stroke",
    },
    "halo-best": {
        "fill": "$best", "font-size": "12", "font-weight": "600", "stroke": "$paper",
        "stroke-width": "3", "paint-order": "stroke",
    },
    "label-truth": {"fill": "$truth", "font-size": "11"},
    "label-sealed": {"fill": "$sealed", "font-size": "11"},
    "hit": {"fill": "$paper", "fill-opacity": "0"},
    "hatch": {"stroke": "$missing", "stroke-width": "1.4", "fill": "none"},
    "spots": {
        "stroke": "$candidate", "stroke-width": "4.5", "stroke-linecap": "round", "fill": "none"
    },
    "spots-fine": {
        "stroke": "$candidate", "stroke-width": "2.4", "stroke-linecap": "round", "fill": "none"
    },
    **{
        f"spots-{name}": {
            "stroke": f"${name}", "stroke-width": "5", "stroke-linecap": "round", "fill": "none"
        }
        for name in COLOURS
        if name.startswith("depth-")
    },
    "missing": {"stroke": "none"},
    **{name: {"fill": f"${name}"} for name in COLOURS if name.startswith("shade-")},
    **{f"fill-{name}": {"fill": f"${name}"} for name in COLOURS},
    **{
        f"stroke-{name}": {"stroke": f"${name}", "stroke-width": "1.8", "fill": "none"}
        for name in SERIES
    },
    **{
        f"mark-{name}": {"fill": "$paper", "stroke": f"${name}", "stroke-width": "2"}
        for name in SERIES
    },
    **{name: {"fill": f"${name}"} for name in COLOURS if name.startswith("depth-")},
    **{f"tag-{name}": {"fill": f"${name}", "font-size": "11"} for name in SERIES},
}  # fmt: skip
"""Attributes of every class of marks; `$name` is a colour."""

FONT = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif"
_DARK, _LIGHT = ':root[data-theme="dark"] .cv', ':root[data-theme="light"] .cv'


def attributes(name: str, theme: Theme = "light") -> dict[str, str]:
    """The presentation attributes of a class, in the colours of a theme.

    >>> attributes("dot"), attributes("dot", "dark")
    ({'fill': '#0072b2'}, {'fill': '#56b4e9'})
    """
    return {key: _valued(value, theme) for key, value in STYLES[name].items()}


def _valued(value: str, theme: Theme) -> str:
    return colour(value[1:], theme) if value.startswith("$") else value


def colour(name: str, theme: Theme) -> str:
    """A colour by its name.

    >>> colour("ink", "light"), colour("ink", "notebook")
    ('#1f2933', 'currentColor')
    """
    if theme == "notebook" and name in _NEUTRAL:
        return _NEUTRAL[name]
    return COLOURS[name][theme == "dark"]


def style_sheet(theme: Theme | None = None) -> str:
    """The style of all figures as CSS.

    With a theme, its colours are in the rules. Without one, colours are variables, which follow
    the system's setting; `data-theme` of the root element ("light" or "dark") overrides it.
    """
    if theme is not None:
        rules = [f".cv-{name}{{{_rule(name, theme)}}}" for name in STYLES]
        return "\n".join([f".cv{{font-family:{FONT}}}", *rules])
    light, dark = (
        ";".join(f"--cv-{name}:{pair[dark]}" for name, pair in COLOURS.items())
        for dark in (False, True)
    )
    rules = [f".cv-{name}{{{_rule(name, None)}}}" for name in STYLES]
    return "\n".join(
        [
            f".cv{{font-family:{FONT};{light}}}",
            f"@media (prefers-color-scheme:dark){{.cv{{{dark}}}}}",
            f"{_LIGHT}{{{light}}}",
            f"{_DARK}{{{dark}}}",
            *rules,
        ]
    )


def _rule(name: str, theme: Theme | None) -> str:
    """The declarations of a class."""
    found = []
    for key, value in STYLES[name].items():
        if value.startswith("$") and theme is None:
            value = f"var(--cv-{value[1:]})"
        elif key == "font-size":
            value = f"{value}px"
        found.append(f"{key}:{value if theme is None else _valued(value, theme)}")
    return ";".join(found)
