"""The context of a prompt, packed to a budget of tokens.

Every section has a share of the room that is its own; what one does not need goes to the others,
the most important first. What does not fit is clipped where it stands, and counted there.
"""

from collections.abc import Callable
from typing import NamedTuple

from coevolve.proposers.base import View
from coevolve.proposers.llm.clipping import BYTES, clip, size
from coevolve.proposers.llm.failures import failures
from coevolve.proposers.llm.sharing import Part, fitted
from coevolve.proposers.llm.standings import files_of, leaderboard, refused, sources


class Section(NamedTuple):
    """A part of the context: its title, its own share of the room, and who writes it.

    `write` takes the view and a number of bytes, and returns a text that is no longer.
    """

    title: str
    share: float
    write: Callable[[View, int], str]


def briefing(view: View, most: int) -> str:
    """What the benchmark says a harness is."""
    return clip(view.briefing.strip(), most)


def parent(view: View, most: int) -> str:
    """The files of the best candidate, and of no other."""
    known = any(standing.candidate.name == view.parent for standing in view.standings)
    return clip(files_of(view, view.parent), most) if known else ""


SECTIONS = (
    Section("Briefing", 0.25, briefing),
    Section("Files of the best candidates", 0.30, sources),
    Section("Failures", 0.25, failures),
    Section("Leaderboard", 0.15, leaderboard),
    Section("Refused candidates", 0.05, refused),
)
"""In order of importance, in which they get what others leave."""
FOR_REPAIR = (SECTIONS[0], Section("A harness that passes the check", 0.4, parent))
"""All that is needed to mend a candidate."""
ORDER = (
    "Briefing",
    "Leaderboard",
    "Refused candidates",
    "Files of the best candidates",
    "Failures",
)
"""The order in the prompt: what stays the same from round to round comes first."""


def pack(view: View, tokens: int, sections: tuple[Section, ...] = SECTIONS) -> str:
    """The context of a proposal in at most that many tokens.

    >>> from coevolve.proposers.base import View
    >>> view = View(round=1, seed=0, tasks=(), standings=(), best=None, parent="", read=bytes,
    ...     trace=lambda candidate, task: None, briefing="A harness answers questions.")
    >>> print(pack(view, 100))
    # Briefing
    <BLANKLINE>
    A harness answers questions.
    <BLANKLINE>
    # Leaderboard
    <BLANKLINE>
    This is round 1; there are no candidates yet.
    <BLANKLINE>
    # Failures
    <BLANKLINE>
    No task has a score of the best candidate yet.
    """
    texts = fitted([_writer(section, view) for section in sections], BYTES * tokens)
    titled = dict(zip((section.title for section in sections), texts, strict=True))
    rank = {title: place for place, title in enumerate(ORDER)}
    shown = sorted(titled, key=lambda title: rank.get(title, len(rank)))
    return clip("\n\n".join(titled[title] for title in shown if titled[title]), BYTES * tokens)


def _writer(section: Section, view: View) -> Part:
    head = f"# {section.title}\n\n"

    def write(most: int) -> str:
        text = section.write(view, most - size(head)) if most > size(head) else ""
        return f"{head}{text}" if text.strip() else ""

    return Part(section.share, write)
