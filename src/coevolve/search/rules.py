"""What the loop tells proposers, and what it looks for in what they write."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from coevolve.search.candidate import Files
from coevolve.search.leaks.records import UNREAD

MOST_LEAKS = 20


def _nothing(files: Files) -> Sequence[object]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules of a search as proposers meet them.

    Args:
        briefing: What a harness is here, its interface and its rules, in Markdown.
        scan: Finds places in files that speak of tasks a harness may not know.
        refuse_leaks: Whether a candidate with such places is refused, or only reported.

    >>> Rules(scan=lambda files: ["harness.py:3 quotes task t1"]).leaks({"harness.py": b""})
    ('harness.py:3 quotes task t1',)
    """

    briefing: str = ""
    scan: Callable[[Files], Sequence[object]] = _nothing
    refuse_leaks: bool = False

    def leaks(self, files: Files) -> tuple[str, ...]:
        """What a scan finds, in words; the first places if they are many."""
        found = self.scan(files)
        more = len(found) - MOST_LEAKS
        words = tuple(str(leak) for leak in found[:MOST_LEAKS])
        return words if more <= 0 else (*words, f"and {more:,} more places")

    def refusal(self, leaks: Sequence[str]) -> str:
        """Why a candidate with these leaks is refused; nothing if it is not."""
        if not leaks or not self.refuse_leaks:
            return ""
        if leaks[0].endswith(UNREAD):  # tasks come first: none was found where it was read
            return f"it may speak of tasks it may not know: {leaks[0]}"
        return f"it speaks of tasks it may not know: {leaks[0]}"
