"""Pieces of the pages an agent reads."""

import re
from collections.abc import Sequence

from coevolve.proposers.view.query.printing import short


def plural(number: int, one: str, many: str = "") -> str:
    """A number with its noun.

    >>> plural(1, "candidate"), plural(1200, "task")
    ('1 candidate', '1,200 tasks')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def minutes(seconds: float) -> str:
    """A time limit in words.

    >>> minutes(2400), minutes(90), minutes(60), minutes(7200)
    ('40 minutes', '90 seconds', '60 seconds', '2 hours')
    """
    if seconds < 120:
        return plural(max(int(seconds), 0), "second")
    if seconds < 7200:
        return plural(int(seconds / 60), "minute")
    return f"{seconds / 3600:.2g} hours"


def code(text: str) -> str:
    r"""A name or id in a line of Markdown, also in a table.

    >>> code("a|b"), code("one\ntwo")
    ('`a¦b`', '`one two`')
    """
    return f"`{_line(text).replace('`', chr(39))}`"


def said(text: str, most: int = 180) -> str:
    r"""What somebody wrote, in a line of Markdown.

    >>> said("Shorter | better,\nI think.")
    'Shorter ¦ better, I think.'
    """
    return short(_line(text), most)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table in Markdown."""
    rule = "|" + "---|" * len(head)
    return [f"| {' | '.join(head)} |", rule, *(f"| {' | '.join(row)} |" for row in rows)]


def below(text: str, level: int) -> str:
    r"""Markdown whose highest headings are of a level, so that it fits below another heading.

    >>> below("# Harness\nText\n## Rules", 3)
    '### Harness\nText\n#### Rules'
    """
    lines, fence, headings = text.strip().splitlines(), "", []
    for number, line in enumerate(lines):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        elif not fence and re.match(r"#{1,6} ", line):
            headings.append(number)
    depth = level - min((len(lines[n].split()[0]) for n in headings), default=level)
    for number in headings:
        lines[number] = "#" * depth + lines[number]
    return "\n".join(lines)


def _line(text: str) -> str:
    return " ".join(text.replace("|", "¦").split())
