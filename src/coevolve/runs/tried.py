"""What came of one proposal that nobody recorded."""

from dataclasses import dataclass
from typing import Any

from coevolve.core.outcomes import Usage
from coevolve.search.candidate import Candidate


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A candidate that was proposed and checked.

    Args:
        candidate: What it is.
        files: Its files.
        fault: Why it could not be evaluated; empty if it could.
        leaks: Where it speaks of tasks it may not know.
        broken: Whether the fault is its own, and may be mended.
        mended: Whether it was mended.
    """

    candidate: Candidate
    files: dict[str, bytes]
    fault: str
    leaks: tuple[str, ...]
    broken: bool = False
    mended: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, without the files."""
        return {
            **self.candidate.to_json(),
            "fault": self.fault,
            "leaks": list(self.leaks),
            "mended": self.mended,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class OneProposal:
    """What a proposer would hand over now."""

    round: int
    tried: tuple[Tried, ...]
    notes: tuple[str, ...]
    usage: Usage
    transcript: str | None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "round": self.round,
            "candidates": [one.to_json() for one in self.tried],
            "notes": list(self.notes),
            "tokens_in": self.usage.tokens_in,
            "tokens_out": self.usage.tokens_out,
            "dollars": self.usage.dollars,
        }
