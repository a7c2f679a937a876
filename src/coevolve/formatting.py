"""How numbers, durations, estimates and foreign texts are written, wherever they are shown.

This is the only place that formats an estimate, and the only place that escapes. A text is foreign
if it comes from a candidate, a model, a proposer or a task. The module uses the standard library
only and runs under Python 3.9, because every workspace contains a copy of it in `bin/coevolve`.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from math import floor, log10
from typing import Any

_STEPS = ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "m"), (60, "m", 1, "s"))
_BIG = ((1e9, "G"), (1e6, "M"), (1e5, "k"))
_ROUNDING = 5e-4
CLIPPED = "≤ and ≥ mark values outside 0 to 1, shown as 0 and 1."
"""The legend of the marks that `score` adds."""


def duration(seconds: float) -> str:
    """A duration in its two largest units.

    >>> duration(8.4), duration(134), duration(3_900), duration(200_000)
    ('8s', '2m 14s', '1h 05m', '2d 07h')
    """
    left = round(seconds)
    for size, unit, finer, fine in _STEPS:
        if left >= size:
            return f"{left // size}{unit} {left % size // finer:02}{fine}"
    return f"{left}s"


def time_limit(seconds: float) -> str:
    """A time limit in words.

    >>> time_limit(2400), time_limit(90), time_limit(60), time_limit(7200)
    ('40 minutes', '90 seconds', '60 seconds', '2 hours')
    """
    if seconds < 120:
        return plural(max(int(seconds), 0), "second")
    if seconds < 7200:
        return plural(int(seconds / 60), "minute")
    return f"{seconds / 3600:.2g} hours"


def count(number: float) -> str:
    """A count, abbreviated when it is large.

    >>> count(1234), count(1_250_000), count(0.25)
    ('1,234', '1.25M', '0.25')
    """
    for size, unit in _BIG:
        if number >= size:
            return f"{number / size if unit != 'k' else number / 1e3:.3g}{unit}"
    return f"{number:,.0f}" if number == round(number) or number >= 100 else f"{number:.2g}"


def plural(number: int, one: str, many: str = "") -> str:
    """A number with its noun.

    >>> plural(1, "trial"), plural(1200, "trial")
    ('1 trial', '1,200 trials')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def dollars(number: float) -> str:
    """An amount of US dollars.

    >>> dollars(0.0123), dollars(0.3), dollars(12.5), dollars(0), dollars(8.8e-5), dollars(1e-7)
    ('$0.0123', '$0.30', '$12.50', '$0', '$0.000088', '<$0.000001')
    """
    if number >= 1:
        return f"${number:,.2f}"
    if number >= 1e-4 or not number:
        digits = f"{number:.3g}"
        return f"${digits}0" if len(digits.partition(".")[2]) == 1 else f"${digits}"
    return f"${number:.6f}" if number >= 1e-6 else "<$0.000001"  # no powers of ten


def amount(measure: str, number: float) -> str:
    """An amount of a measure that a budget caps, with its unit.

    >>> amount("trials", 1200), amount("dollars", 2), amount("hours", 1.5)
    ('1,200 trials', '$2.00', '1h 30m')
    """
    if measure == "dollars":
        return dollars(number)
    return duration(3600 * number) if measure == "hours" else f"{count(number)} {measure}"


UNIT = (0.0, 1.0)
"""The scale of scores, unless an estimate has another."""


def clip(value: float, scale: Sequence[float] = UNIT) -> float:
    """A score within its scale: some estimators leave that range."""
    return min(max(value, scale[0]), scale[1])


def decimals(scale: Sequence[float]) -> int:
    """How many decimals a score has: three on a scale of length 1.

    >>> decimals((0, 1)), decimals((0, 100)), decimals((-1, 1))
    (3, 1, 3)
    """
    return min(max(3 - floor(log10(scale[1] - scale[0])), 0), 12)


def score(value: float | None, scale: Sequence[float] = UNIT) -> str:
    """A score, clipped to its scale; a mark shows that it was clipped.

    >>> score(0.8123), score(1.107), score(-0.446), score(None), score(61.04, (0, 100))
    ('0.812', '≥1.000', '≤0.000', '-', '61.0')
    """
    if value is None:
        return "-"
    rounding = _ROUNDING * (scale[1] - scale[0])
    mark = "≤" if value < scale[0] - rounding else "≥" if value > scale[1] + rounding else ""
    return f"{mark}{clip(value, scale):.{decimals(scale)}f}"


def estimate(found: Mapping[str, Any]) -> str:
    """An estimate with its standard error; an exact score, and a plain mean, have none.

    >>> estimate({"value": 0.8123, "se": 0.041, "tasks": 18, "pool_size": 60, "note": ""})
    '0.812 ± 0.041'
    >>> estimate({"value": -0.446, "se": None, "tasks": 18, "pool_size": 60, "note": ""})
    '≤0.000 ± ?'
    """
    scale = found.get("scale", UNIT)
    shown = score(found["value"], scale)
    if "se" not in found or is_exact(found):
        return shown
    se = found["se"]
    return f"{shown} ± ?" if se is None else f"{shown} ± {se:.{decimals(scale)}f}"


def interval(found: Mapping[str, Any] | None) -> str:
    """The confidence interval of an estimate; empty where it is unknown.

    >>> known = {"low": 0.6118, "high": 1.107, "tasks": 18, "pool_size": 60, "note": ""}
    >>> interval(known), interval({**known, "tasks": 60}), interval({**known, "low": None})
    ('0.612 to ≥1.000', 'exact', '')
    """
    if found is None:
        return ""
    if is_exact(found):
        return "exact"
    if found["low"] is None:
        return ""
    scale = found.get("scale", UNIT)
    return f"{score(found['low'], scale)} to {score(found['high'], scale)}"


def is_clipped(found: Mapping[str, Any] | None, *keys: str) -> bool:
    """Whether the text of an estimate or of its interval has a mark that needs the legend.

    >>> is_clipped({"value": 0.9, "low": 0.6, "high": 1.2}), is_clipped({"value": 0.9}, "value")
    (True, False)
    """
    ends = [] if found is None else [found[key] for key in keys or ("value", "low", "high")]
    scale = UNIT if found is None else found.get("scale", UNIT)
    return any(score(end, scale)[0] in "≤≥" for end in ends)


def is_exact(found: Mapping[str, Any]) -> bool:
    """Whether every trial of every task has a score, so nothing is estimated."""
    return bool(found["tasks"] == found["pool_size"] and not found["note"])


def tasks_seen(found: Mapping[str, Any]) -> str:
    """How many of the tasks an estimate is based on.

    >>> tasks_seen({"tasks": 18, "pool_size": 60})
    '18/60'
    """
    return f"{found['tasks']}/{found['pool_size']}"


def difference(value: float | None) -> str:
    """A difference of scores, with its sign.

    >>> difference(0.1224), difference(-1.0), difference(None)
    ('+0.122', '-1.000', '')
    """
    return "" if value is None else f"{value:+.3f}"


def short(text: str, most: int) -> str:
    """The beginning of a text.

    >>> short("a long story", 8)
    'a lon...'
    """
    return text if len(text) <= most else f"{text[: most - 3]}..."


def middle(text: str, most: int) -> str:
    """A text without its middle: the ends of names tell them apart.

    >>> middle("fused-quota-weighed-3-1", 13)
    'fused-…ed-3-1'
    """
    if len(text) <= most:
        return text
    kept = most - 1
    return f"{text[: kept - kept // 2]}…{text[len(text) - kept // 2 :]}"


_SPECIAL = re.compile(r"[^\n\t -~]")
_FORMULA = tuple("=+-@\t\r＝＋－＠")
"""How a cell begins that a spreadsheet may take for a formula; Excel also takes wide signs."""


def visible(text: str, most: int | None = None) -> str:
    r"""A foreign text that is safe to print or to keep, optionally cut to a length.

    Everything that a terminal or an editor would obey instead of showing it becomes an escape:
    control characters, directions of writing, other invisible characters, half characters. Line
    breaks and tabs stay.

    >>> visible("red\x1b[31m \ud800 two\r\nlines")
    'red\\x1b[31m \\ud800 two\nlines'
    >>> visible("a long story", 8)
    'a lon...'
    """
    kept = text if most is None else text[: 2 * most]
    if not kept.isprintable():
        kept = _SPECIAL.sub(_as_python, kept.replace("\r\n", "\n"))
    return kept if most is None else short(kept, most)


def one_line(text: str, most: int = 500) -> str:
    r"""A foreign text in one line.

    >>> one_line("a\nb\x1b[31m\ud800")
    'a b\\x1b[31m\\ud800'
    """
    line = visible(" ".join(text[: 4 * most].split()))
    return line if len(line) <= most else f"{line[: most - 1]}…"


_MARKUP = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;", "\x60": "&#96;"}
)


def markup(text: str, most: int | None = None) -> str:
    r"""A foreign text inside HTML or SVG, between tags or in a quoted attribute.

    >>> markup('<b title="x">\x1b[31m')
    '&lt;b title=&quot;x&quot;&gt;\\x1b[31m'
    """
    return visible(text, most).translate(_MARKUP)


def json_text(
    value: object, *, indent: int | None = None, ascii: bool = True, allow_nan: bool = True
) -> str:
    r"""JSON that is safe to print; with `ascii=False`, readable letters of all languages stay.

    >>> json_text({"name": "\x7f\u202e\xe9"}, ascii=False)
    '{"name": "\\u007f\\u202eé"}'
    """
    text = json.dumps(value, indent=indent, ensure_ascii=ascii, allow_nan=allow_nan)
    return _SPECIAL.sub(_as_json, text)


def csv_cell(text: str) -> str:
    """A foreign text as a cell of a CSV file, which no spreadsheet takes for a formula.

    >>> csv_cell("=1+1"), csv_cell("plain")
    ("'=1+1", 'plain')
    """
    shown = visible(text)
    return f"'{shown}" if shown.lstrip(" ").startswith(_FORMULA) else shown


def plain_cell(cell: str) -> str:
    """The text of a cell that `csv_cell` made.

    >>> plain_cell("'=1+1"), plain_cell("'quoted'")
    ('=1+1', "'quoted'")
    """
    escaped = cell.startswith("'") and cell[1:].lstrip(" ").startswith(_FORMULA)
    return cell[1:] if escaped else cell


def _as_python(found: re.Match[str]) -> str:
    character = found[0]
    return character if _is_shown(character) else character.encode("unicode_escape").decode()


def _as_json(found: re.Match[str]) -> str:
    character = found[0]
    if _is_shown(character):
        return character
    return json.dumps(character)[1:-1] if character != "\x7f" else "\\u007f"


def _is_shown(character: str) -> bool:
    return character.isprintable() or unicodedata.category(character) == "Zs"
