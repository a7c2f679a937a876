"""What a run knows of each candidate and of each round."""

from dataclasses import dataclass, field
from enum import StrEnum

from coevolve.search.candidate import Candidate


class Status(StrEnum):
    """How far a candidate has come.

    >>> Status.REFUSED.value
    'refused'
    """

    PROPOSED = "proposed"
    BROKEN = "broken"
    CHECKED = "checked"
    READY = "ready"
    EVALUATED = "evaluated"
    REFUSED = "refused"


@dataclass(slots=True, kw_only=True)
class Entry:
    """A candidate and how far it has come; `reason` says why it was refused.

    A broken one failed its check, and waits to be mended by its proposer, which happens once.
    `leaks` are the places where it speaks of tasks it may not know.
    """

    candidate: Candidate
    status: Status = Status.PROPOSED
    reason: str = ""
    state: str | None = None
    leaks: tuple[str, ...] = ()
    repaired: bool = False

    def refuse(self, reason: str) -> None:
        """Set it aside for good, before any trial of it."""
        self.status, self.reason = Status.REFUSED, reason


@dataclass(slots=True, kw_only=True)
class Turn:
    """One round of the run: what was proposed for it, and whether it is over.

    `note` says what went wrong with the proposal, if anything; `repairs` are the transcripts of
    what was mended, by candidate.
    """

    number: int
    names: tuple[str, ...] = ()
    asked: bool = False
    settled: bool = False
    note: str = ""
    transcript: str | None = None
    repairs: dict[str, str] = field(default_factory=dict)
    trials: int = 0
    missing: int = 0

    @property
    def thin(self) -> bool:
        """Whether under half of its outcomes have a score."""
        return 2 * self.missing > self.trials
