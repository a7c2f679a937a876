"""Best of n, the control that a search must beat: independent proposals without feedback."""

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from coevolve.core.outcomes import Usage
from coevolve.errors import CandidateError
from coevolve.proposers.base import (
    Broken,
    Proposal,
    Proposed,
    Proposer,
    Repairer,
    Standing,
    View,
    as_proposed,
)
from coevolve.search.acceptance import described
from coevolve.search.candidate import Candidate
from coevolve.search.run_state import Status

ATTEMPTS = 4
"""How often a proposer is asked for a candidate that is not a copy of an earlier one."""


class BestOfN:
    """Asks a proposer as if every round were the first, before any evaluation.

    The proposer sees the files of the starting harnesses, with the best of them as the parent,
    and no outcomes. With the same rounds and candidates it spends as much as the search. The
    difference between the two is the gain from feedback. Copies of earlier candidates are
    requested again while there is time.

    Args:
        inner: The proposer.
    """

    def __init__(self, inner: Proposer) -> None:
        self._inner = inner

    async def propose(self, view: View, count: int) -> Proposed:
        known = {standing.candidate.address for standing in view.standings}
        made: list[Proposal] = []
        answers: list[Proposed] = []
        began, longest = time.monotonic(), 0.0
        for attempt in range(ATTEMPTS):
            now = time.monotonic()
            left = view.seconds - (now - began)
            if len(made) == count or left < longest:  # a time-out would lose them
                break
            blind = replace(_blind(view, attempt), seconds=left)
            try:
                given = await self._inner.propose(blind, count - len(made))
            except Exception as error:
                if not answers:
                    raise
                note = f"another attempt failed: {described(error).rstrip('.')}."
                answers.append(Proposed(proposals=(), notes=(note,)))
                break
            longest = max(longest, time.monotonic() - now)
            answers.append(as_proposed(given))
            new = _new(answers[-1].proposals, known)
            made += new
            copies = len(answers[-1].proposals) - len(new)
            if not copies:
                break
            note = f"{copies} of {len(answers[-1].proposals)} were copies of earlier candidates."
            answers.append(Proposed(proposals=(), notes=(note,)))
        transcripts = [one.transcript for one in answers if one.transcript is not None]
        return Proposed(
            proposals=tuple(made),
            usage=sum((answer.usage for answer in answers), Usage()),
            transcript="\n\n".join(transcripts) if transcripts else None,
            notes=tuple(dict.fromkeys(note for answer in answers for note in answer.notes)),
        )

    def check(self) -> None:
        """Check that the inner proposer can work here."""
        if (check := getattr(self._inner, "check", None)) is not None:
            check()

    async def probe(self) -> Usage | None:
        """What a short request to the model of the inner proposer cost; None if it has none."""
        found: Usage | None = None
        if (probe := getattr(self._inner, "probe", None)) is not None:
            found = await probe()
        return found

    async def close(self) -> None:
        """Close the inner proposer."""
        if (close := getattr(self._inner, "close", None)) is not None:
            await close()


class RepairingBestOfN(BestOfN):
    """The same, around a proposer that repairs its candidates."""

    def __init__(self, inner: Repairer) -> None:
        super().__init__(inner)
        self._repairer = inner

    async def repair(self, view: View, broken: Broken) -> Proposed:
        return as_proposed(await self._repairer.repair(_blind(view, 0), broken))


def best_of_n(inner: Proposer) -> BestOfN:
    """A proposer without feedback; it repairs its candidates if the inner one does."""
    return RepairingBestOfN(inner) if isinstance(inner, Repairer) else BestOfN(inner)


def _new(proposals: Sequence[Proposal], known: set[str]) -> list[Proposal]:
    """The proposals that are not copies of known ones; they are added to the known ones."""
    new = []
    for proposal in proposals:
        try:
            address = Candidate.of(proposal.files, name=proposal.name).address
        except CandidateError:  # the engine refuses it with a message
            new.append(proposal)
            continue
        if address not in known:
            known.add(address)
            new.append(proposal)
    return new


def _blind(view: View, attempt: int) -> View:
    """The view before any evaluation, with another seed for every attempt."""
    seed = int(np.random.SeedSequence([view.seed, attempt]).generate_state(1, np.uint64)[0] >> 1)
    starts = [s for s in view.standings if s.candidate.round == 0]
    return replace(
        view,
        round=1,
        seed=seed,
        standings=tuple(_unknown(standing) for standing in starts),
        best=None,
        parent=_best(starts),
        trace=lambda candidate, task: None,
        solvability={},
    )


def _unknown(standing: Standing) -> Standing:
    return replace(standing, status=Status.READY.value, estimate=None, outcomes={}, delta=None)


def _best(starts: list[Standing]) -> str:
    known = [s for s in starts if s.estimate is not None]
    if not known:
        return starts[0].candidate.name
    return max(known, key=lambda s: s.estimate.value if s.estimate else 0.0).candidate.name
