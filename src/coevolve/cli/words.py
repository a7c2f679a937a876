"""How numbers, times and estimates read on a terminal."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from rich.text import Text

_STEPS = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))
_BIG = ((1e9, "G"), (1e6, "M"), (1e5, "k"))


def duration(seconds: float) -> str:
    """A time in its two largest units.

    >>> duration(8.4), duration(134), duration(3_900), duration(200_000)
    ('8s', '2m 14s', '1h 05m', '2d 07h')
    """
    left = round(seconds)
    for (size, unit), (finer, fine) in pairwise(_STEPS):
        if left >= size:
            return f"{left // size}{unit} {left % size // finer:02}{fine}"
    return f"{left}s"


def count(number: float) -> str:
    """A number of things, short when it is large.

    >>> count(1234), count(1_250_000), count(0.25)
    ('1,234', '1.25M', '0.25')
    """
    for size, unit in _BIG:
        if number >= size:
            return f"{number / size if unit != 'k' else number / 1e3:.3g}{unit}"
    return f"{number:,.0f}" if number == round(number) or number >= 100 else f"{number:.2g}"


def dollars(number: float) -> str:
    """An amount of money.

    >>> dollars(0.0123), dollars(12.5), dollars(0), dollars(8.8e-5), dollars(1e-7)
    ('$0.0123', '$12.50', '$0', '$0.000088', '<$0.000001')
    """
    if number >= 1:
        return f"${number:,.2f}"
    if number >= 1e-4 or not number:
        return f"${number:.3g}"
    return f"${number:.6f}" if number >= 1e-6 else "<$0.000001"  # no powers of ten


def of_cap(name: str, number: float) -> str:
    """An amount of what a budget caps.

    >>> of_cap("trials", 1200), of_cap("dollars", 2), of_cap("hours", 1.5)
    ('1,200 trials', '$2.00', '1h 30m')
    """
    if name == "dollars":
        return dollars(number)
    return duration(3600 * number) if name == "hours" else f"{count(number)} {name}"


def plural(number: int, one: str, many: str = "") -> str:
    """A number with its noun.

    >>> plural(1, "trial"), plural(1200, "trial")
    ('1 trial', '1,200 trials')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def clipped(value: float) -> float:
    """An estimate as it is shown: some estimators leave [0, 1]."""
    return min(max(value, 0.0), 1.0)


def score(estimate: Mapping[str, Any]) -> str:
    """An estimate with its standard error; a score that is exact has none.

    Estimates may leave [0, 1], which ranks candidates but is no score: these are shown as the
    end they passed.

    >>> score({"value": 0.8123, "se": 0.041, "tasks": 18, "pool_size": 60, "note": ""})
    '0.812 ± 0.041'
    >>> score({"value": -0.446, "se": 0.2, "tasks": 18, "pool_size": 60, "note": ""})
    '≤0.000 ± 0.200'
    """
    value = estimate["value"]
    passed = "≤" if value < -5e-4 else "≥" if value > 1 + 5e-4 else ""
    shown = f"{passed}{clipped(value):.3f}"
    if estimate["tasks"] == estimate["pool_size"] and not estimate["note"]:
        return shown
    return f"{shown} ± ?" if estimate["se"] is None else f"{shown} ± {estimate['se']:.3f}"


def seen(estimate: Mapping[str, Any]) -> str:
    """How many of the tasks an estimate knows."""
    return f"{estimate['tasks']}/{estimate['pool_size']}"


def interval(estimate: Mapping[str, Any], width: int) -> Text:
    """An estimate and its interval on a scale from 0 to 1.

    >>> interval({"value": 0.5, "low": 0.3, "high": 0.7}, 11).plain
    '···──●──···'
    """
    last = width - 1
    low, high = estimate["low"], estimate["high"]
    at = round(clipped(estimate["value"]) * last)
    ends = (at, at) if low is None else (round(clipped(low) * last), round(clipped(high) * last))
    text = Text(no_wrap=True)
    for place in range(width):
        if place == at:
            text.append("●", "bold cyan")
        elif ends[0] <= place <= ends[1]:
            text.append("─", "cyan")
        else:
            text.append("·", "bright_black")
    return text
