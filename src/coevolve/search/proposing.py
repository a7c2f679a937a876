"""What a proposer sees and what it hands over."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from coevolve.core.choice import Choice
from coevolve.core.estimate import Estimate
from coevolve.core.outcomes import Missing, Usage
from coevolve.search.candidate import Candidate, Files


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A new candidate as a proposer hands it over.

    Args:
        files: Contents by relative path.
        name: What to call it; the engine makes it unique.
        parents: Names of the candidates it was written on top of.
        hypothesis: Why it should be better.

    >>> Proposal(files={"harness.py": b"..."}, name="shorter-prompt").parents
    ()
    """

    files: Files
    name: str
    parents: tuple[str, ...] = ()
    hypothesis: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """What one proposal gave: candidates, what they cost to write, and a transcript."""

    proposals: tuple[Proposal, ...]
    usage: Usage = field(default_factory=Usage)
    transcript: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What is known of an earlier candidate.

    `status` is "evaluated", "pending" or "refused"; `outcomes` holds what was told of it.
    """

    candidate: Candidate
    status: str
    reason: str
    estimate: Estimate | None
    outcomes: Mapping[str, float | Missing]


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """All a proposer may know before a round; nothing of the sealed test.

    Args:
        round: The round to propose for, from 1.
        seed: Seed for the proposer's own draws in this round.
        tasks: The tasks of the pool.
        standings: Every earlier candidate, starting harnesses first, in the order of proposal.
        best: The choice as of now; None while only starting harnesses are known.
        parent: The candidate with the best score so far, starting harnesses included.
        read: Reads a file's content by its address.
        trace: The trace of a candidate's last trial of a task, as JSON text, if there is one.
    """

    round: int
    seed: int
    tasks: tuple[str, ...]
    standings: tuple[Standing, ...]
    best: Choice | None
    parent: str
    read: Callable[[str], bytes]
    trace: Callable[[str, str], str | None]

    def standing(self, name: str) -> Standing:
        """What is known of one candidate."""
        return next(s for s in self.standings if s.candidate.name == name)

    def files(self, name: str) -> dict[str, bytes]:
        """The files of one candidate."""
        files = self.standing(name).candidate.files
        return {path: self.read(address) for path, address in files.items()}


@runtime_checkable
class Proposer(Protocol):
    """Who writes candidates."""

    async def propose(self, view: View, count: int) -> Proposed | Sequence[Proposal]:
        """Up to `count` new candidates for the round of the view."""
        ...
