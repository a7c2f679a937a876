r"""Tables as Markdown and LaTeX; texts of candidates and models are escaped.

LaTeX needs the packages booktabs and amssymb (for \checkmark).
"""

import html
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping

from coevolve.formatting import json_text
from coevolve_reproductions.tables.table import MISSING, Column, Row, Table, flat

_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+!|~])")
_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "_": r"\_",
    "%": r"\%",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "±": r"$\pm$",
    "✓": r"\checkmark",
    "ρ": r"$\rho$",
    "…": r"\ldots{}",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "×": r"$\times$",
}
_BARRED = (("p̄", r"$\bar{p}$"), ("Ŝ", r"$\hat{S}$"))


def markdown(table: Table) -> str:
    r"""The table in Markdown, with its title above and its note below.

    >>> from coevolve_reproductions.tables.table import Column
    >>> made = Table(name="t", title="Ties", columns=(Column(name="a", heading="name"),),
    ...     rows=({"a": "x|y"},), note="One run.")
    >>> print(markdown(made))
    **Ties**
    <BLANKLINE>
    | name |
    |---|
    | x\|y |
    <BLANKLINE>
    One run.
    <BLANKLINE>
    """
    columns = table.shown
    lines = [
        _line(_escaped_markdown(column.heading) for column in columns),
        "|" + "|".join("---" if column.left else "---:" for column in columns) + "|",
    ]
    for name, places in table.sections():
        if name:
            first = [f"*{_escaped_markdown(name)}*"]
            lines.append(_line(first + [""] * (len(columns) - 1)))
        for place in places:
            row = table.rows[place]
            lines.append(_line(_escaped_markdown(column.shown(row)) for column in columns))
    parts = (
        f"**{_escaped_markdown(table.title)}**",
        "\n".join(lines),
        _escaped_markdown(table.note),
        *_steps_markdown(table),
    )
    return "\n\n".join(filter(None, parts)) + "\n"


def latex(table: Table) -> str:
    r"""The table in LaTeX with booktabs: the environment `table`, with caption and label.

    >>> from coevolve_reproductions.tables.table import Column
    >>> columns = (Column(name="score", heading="score", kind="score", spread="score_sd"),)
    >>> made = Table(name="t", title="Scores_1", columns=columns,
    ...     rows=({"score": 0.5, "score_sd": 0.01},))
    >>> r"50.0{\scriptsize$\pm$1.0} \\" in latex(made), r"\caption{Scores\_1}" in latex(made)
    (True, True)
    """
    columns = table.shown
    lines = [
        r"\begin{table}[t]",
        r"\centering",
        rf"\caption{{{_caption(table)}}}",
        rf"\label{{table:{table.name}}}",
        r"\small",
        rf"\begin{{tabular}}{{{''.join('l' if column.left else 'r' for column in columns)}}}",
        r"\toprule",
        _row_latex([_escaped_latex(column.heading) for column in columns]),
    ]
    for name, places in table.sections():
        lines.append(r"\midrule")
        if name:
            said = rf"\textit{{{_escaped_latex(name)}}}"
            lines += [rf"\multicolumn{{{len(columns)}}}{{c}}{{{said}}} \\", r"\midrule"]
        for place in places:
            lines.append(
                _row_latex([_cell_latex(column, table.rows[place]) for column in columns])
            )
    steps = [
        f"% {line}" for purpose, found in table.step_lines() for line in (f"{purpose}:", *found)
    ]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", *steps, ""])


FORMATS: Mapping[str, tuple[str, Callable[[Table], str]]] = {
    "markdown": (".md", markdown),
    "latex": (".tex", latex),
    "csv": (".csv", Table.csv),
    "json": (".json", lambda table: json_text(table.to_json(), indent=2, allow_nan=False) + "\n"),
}
"""The suffix of each format, and its text of a table."""


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped_markdown(text: str) -> str:
    """A cell; nothing in it is markup or HTML."""
    return _MARKDOWN.sub(r"\\\1", html.escape(flat(text), quote=False))


def _steps_markdown(table: Table) -> Iterator[str]:
    """Commands as code blocks, indented so that none of their characters ends the block."""
    for purpose, lines in table.step_lines():
        yield f"{_escaped_markdown(purpose)}:"
        yield "\n".join(f"    {line}" for line in lines)


def _caption(table: Table) -> str:
    return " ".join(
        filter(None, (f"{_escaped_latex(table.title)}.", _escaped_latex(table.note)))
    ).removesuffix("." if not table.note else "")


def _cell_latex(column: Column, row: Row) -> str:
    shown = column.shown(row)
    if shown == MISSING:
        return "--"
    if column.kind == "text":
        return _escaped_latex(shown)
    value, plus, spread = shown.partition(" ± ")
    small = rf"{{\scriptsize$\pm${spread}}}" if plus else ""
    return f"{_number_latex(value)}{small}"


def _number_latex(text: str) -> str:
    text = text.replace(",", "{,}")
    return f"$-${text[1:]}" if text.startswith("-") else text.replace("✓", r"\checkmark")


def _row_latex(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"


def _escaped_latex(text: str) -> str:
    """A text in which nothing is a command; a letter that LaTeX may lack becomes an escape."""
    text = flat(text)
    kept = {mark: f"\x00{at}\x00" for at, (mark, _) in enumerate(_BARRED)}
    for mark, place in kept.items():
        text = text.replace(mark, place)
    shown = "".join(_LATEX.get(character) or _letter(character) for character in text)
    for at, (_, meant) in enumerate(_BARRED):
        shown = shown.replace(f"\x00{at}\x00", meant)
    return shown.replace("--", "-{}-")


def _letter(character: str) -> str:
    """A character of a Latin alphabet, punctuation, or its code."""
    if character.isascii() or character == "\x00":
        return character
    latin = unicodedata.name(character, "").startswith("LATIN")
    return character if latin else rf"[U+{ord(character):04X}]"
