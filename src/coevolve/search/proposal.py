"""What a proposer sees and what it hands over."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, Self, get_args, runtime_checkable

from coevolve.core.choice import Choice
from coevolve.core.estimate import Estimate
from coevolve.core.outcomes import Missing, Usage
from coevolve.search.candidate import Candidate, Files, Kind

KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A new candidate as a proposer hands it over.

    Args:
        files: Contents by relative path.
        name: What to call it; the engine makes it unique.
        parents: Names of the candidates it was written on top of.
        hypothesis: Why it should be better.
        kind: "exploit" if it refines what is known to work, "explore" if it tries something
            else; "" if its proposer does not say.
        components: What it is made of, in a few words each.

    >>> Proposal(files={"harness.py": b"..."}, name="shorter-prompt").parents
    ()
    """

    files: Files
    name: str
    parents: tuple[str, ...] = ()
    hypothesis: str = ""
    kind: Kind = ""
    components: tuple[str, ...] = ()

    @classmethod
    def of(cls, candidate: Candidate, read: Callable[[str], bytes]) -> Self:
        """The proposal a candidate was; `read` gives contents by their address."""
        return cls(
            files={path: read(address) for path, address in candidate.files.items()},
            name=candidate.name,
            parents=candidate.parents,
            hypothesis=candidate.hypothesis,
            kind=candidate.kind,
            components=candidate.components,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """What one proposal gave.

    Args:
        proposals: The candidates.
        usage: What they cost to write.
        transcript: All that was said while writing them.
        notes: What went wrong: a folder that was no candidate, a time limit that was reached.
    """

    proposals: tuple[Proposal, ...]
    usage: Usage = field(default_factory=Usage)
    transcript: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A candidate that failed its check, with what its proposer needs to mend it."""

    proposal: Proposal
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What is known of an earlier candidate.

    `status` is "evaluated", "pending" or "refused"; `outcomes` holds what was told of it. `delta`
    is its estimate less the best of those known before its round, starting harnesses included;
    None for these, and without an estimate.
    """

    candidate: Candidate
    status: str
    reason: str
    estimate: Estimate | None
    outcomes: Mapping[str, float | Missing]
    delta: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Solvability:
    """How often a task was solved: the mean over the candidates that were tried on it."""

    mean: float
    candidates: int


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
        briefing: What a harness is here, its interface and its rules, in Markdown.
        pools: The pool of each task, where there are several.
        solvability: What earlier candidates made of each task that was tried.
        seconds: How long the proposal may take.
    """

    round: int
    seed: int
    tasks: tuple[str, ...]
    standings: tuple[Standing, ...]
    best: Choice | None
    parent: str
    read: Callable[[str], bytes]
    trace: Callable[[str, str], str | None]
    briefing: str = ""
    pools: Mapping[str, str] = field(default_factory=dict)
    solvability: Mapping[str, Solvability] = field(default_factory=dict)
    seconds: float = math.inf

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


@runtime_checkable
class Repairer(Proposer, Protocol):
    """A proposer that gets a candidate back, once, if it fails its check."""

    async def repair(self, view: View, broken: Broken) -> Proposed | Sequence[Proposal]:
        """The candidate mended, or nothing."""
        ...
