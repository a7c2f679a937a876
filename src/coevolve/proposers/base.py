"""What a proposer is, and a check that one keeps to it."""

from coevolve.errors import CandidateError, InputError, nearest
from coevolve.search.candidate import check_files
from coevolve.search.handed import as_proposal, as_proposed
from coevolve.search.proposal import (
    Broken,
    Proposal,
    Proposed,
    Proposer,
    Repairer,
    Solvability,
    Standing,
    View,
)

__all__ = [
    "Broken",
    "Proposal",
    "Proposed",
    "Proposer",
    "Repairer",
    "Solvability",
    "Standing",
    "View",
    "as_proposal",
    "as_proposed",
    "check_proposer",
]


async def check_proposer(proposer: Proposer, view: View, count: int = 1) -> Proposed:
    """Ask a proposer once, as the engine does, and check what it hands over; for tests.

    Raises:
        InputError: It is no proposer, or hands over what is no proposal, too many of them, or one
            with a parent that is not in the view.
    """
    source = type(proposer).__name__
    if not isinstance(proposer, Proposer):
        raise InputError(f"{source} has no method propose(view, count).")
    made = as_proposed(await proposer.propose(view, count), source=source)
    if len(made.proposals) > count:
        raise InputError(
            f"{source} returned {len(made.proposals)} proposals, but was asked for {count}."
        )
    known = {standing.candidate.name for standing in view.standings}
    for proposal in made.proposals:
        try:
            check_files(proposal.files, proposal.name)
        except CandidateError as error:
            raise InputError(f"{source}: {error}") from error
        for parent in proposal.parents:
            if parent not in known:
                raise InputError(
                    f"{source}: the parent {parent!r} of {proposal.name!r} is no candidate of "
                    f"the run.{nearest(parent, known)}"
                )
    return made
