"""Conformance of proposers: whether one does what the engine relies on."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace

from coevolve.core.pool import Pool
from coevolve.core.selector import Selector
from coevolve.errors import CandidateError, CoevolveError, InputError, nearest
from coevolve.findings import Finding, failed, noted, passed, raise_failed
from coevolve.registry import described
from coevolve.search.acceptance import Rules
from coevolve.search.budget import Settings
from coevolve.search.candidate import Candidate, check_files
from coevolve.search.journal import MemoryJournal
from coevolve.search.loop import Search, open_run
from coevolve.search.proposal import (
    Broken,
    Proposal,
    Proposed,
    Proposer,
    Repairer,
    View,
    as_proposed,
)
from coevolve.search.trials import Prepared, Result, Trial

_TASKS = tuple(f"word-{number}" for number in range(1, 9))
_BRIEFING = "A harness is one file, `harness.py`, that defines `answer(task)` and returns a text."
_STARTS = {
    "upper": {"harness.py": b"def answer(task):\n    return task.upper()\n"},
    "same": {"harness.py": b"def answer(task):\n    return task\n"},
}
_NEW = Proposal(
    name="title",
    files={"harness.py": b"def answer(task):\n    return task.title()\n"},
    parents=("upper",),
    hypothesis="A word begins with a capital.",
)


async def propose_once(proposer: Proposer, view: View, count: int = 1) -> Proposed:
    """Ask a proposer once, as the engine does, and check what it returns.

    Raises:
        InputError: It is not a proposer, or returns something that is not a proposal, too many
            of them, or one with a parent that is not in the view.
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
                    f"{source}: the parent {parent!r} of {proposal.name!r} is not a candidate of "
                    f"the run.{nearest(parent, known)}"
                )
    return made


def assert_proposer(proposer: Proposer, *, views: tuple[View, ...] = (), count: int = 2) -> None:
    """Raise an AssertionError that lists what `check_proposer` found wrong; for tests."""
    raise_failed(check_proposer(proposer, views=views, count=count))


def check_proposer(
    proposer: Proposer, *, views: tuple[View, ...] = (), count: int = 2
) -> list[Finding]:
    """Ask a proposer for candidates before and after the first round, and list the findings.

    The proposer is closed at the end.

    Args:
        proposer: Yours.
        views: What it sees, one view for each request; by default a small made-up search.
        count: How many candidates each request is for.
    """
    return asyncio.run(_findings(proposer, views or sample_views(), count))


async def _findings(proposer: Proposer, views: tuple[View, ...], count: int) -> list[Finding]:
    found: list[Finding] = []
    try:
        if (check := getattr(proposer, "check", None)) is not None:
            check()
            found.append(passed("check", "the proposer is ready"))
        first: list[Proposal] = []
        for view in views:
            made = await propose_once(proposer, view, count)
            found += _proposals(made, view, count)
            first += made.proposals[:1]
        if isinstance(proposer, Repairer):
            found.append(await _repair(proposer, views[-1], (first or [_NEW])[-1]))
    except CoevolveError as error:
        found.append(failed("propose", str(error)))
    except Exception as error:
        found.append(failed("propose", described(error)))
    found.append(await _closed(proposer))
    return found


def _proposals(made: Proposed, view: View, count: int) -> list[Finding]:
    about = f"round {view.round}"
    names = ", ".join(repr(proposal.name) for proposal in made.proposals)
    if not made.proposals:
        return [noted(about, f"no proposal of {count}", "A round without a proposal is wasted.")]
    known = {standing.candidate.address: standing.candidate.name for standing in view.standings}
    copies = [
        f"{proposal.name!r} is a copy of {known[address]!r}"
        for proposal in made.proposals
        if (address := Candidate.of(proposal.files, name=proposal.name).address) in known
    ]
    if copies:
        return [noted(about, copies[0], "The engine refuses copies.")]
    return [passed(about, f"{len(made.proposals)} of {count} proposals: {names}")]


async def _repair(proposer: Repairer, view: View, proposal: Proposal) -> Finding:
    error = "check failed: NameError: name 'tsak' is not defined (harness.py, line 2)"
    made = as_proposed(await proposer.repair(view, Broken(proposal=proposal, error=error)))
    if len(made.proposals) > 1:
        return failed("repair", f"{len(made.proposals)} proposals for one broken candidate")
    return passed("repair", f"{len(made.proposals)} of 1 candidates repaired")


async def _closed(proposer: Proposer) -> Finding:
    close = getattr(proposer, "close", None)
    if close is None:
        return passed("close", "there is nothing to close")
    try:
        await close()
        await close()
    except Exception as error:
        return failed("close", f"closing it twice failed: {described(error)}")
    return passed("close", "it can be closed twice")


def sample_views(
    starts: Mapping[str, Mapping[str, bytes]] = _STARTS,
) -> tuple[View, View]:
    """What a proposer sees before the first and the second round of a small, made-up search.

    Args:
        starts: The files of each starting harness; at least one.

    >>> first, second = sample_views()
    >>> len(first.standings), len(second.standings), second.round
    (2, 3, 2)
    """
    journal, seen = MemoryJournal(), _Onlooker()
    open_run(
        journal,
        name="sample",
        settings=Settings(rounds=2),
        selector=Selector(Pool(_TASKS), protocol="full"),
        starts=starts,
    )
    asyncio.run(Search(journal, _KnownScores(), seen, rules=Rules(briefing=_BRIEFING)).run())
    return seen.views[0], seen.views[1]


class _Onlooker:
    """A proposer that keeps what it sees, and proposes one candidate."""

    def __init__(self) -> None:
        self.views: list[View] = []

    async def propose(self, view: View, count: int) -> list[Proposal]:
        self.views.append(view)
        return [replace(_NEW, parents=(view.parent,))] if view.round == 1 else []


class _KnownScores:
    """An executor without candidates' code: every second task is solved."""

    capacity = 1

    async def check(self, candidate: Candidate) -> Prepared:
        return Prepared()

    async def prepare(self, candidate: Candidate) -> Prepared:
        return Prepared()

    async def run(self, candidate: Candidate, trial: Trial) -> Result:
        solved = (len(candidate.name) + _TASKS.index(trial.task)) % 2
        trace = json.dumps({"trace": {"task": trial.task, "answer": "?", "solved": bool(solved)}})
        return Result(score=float(solved), trace=trace)

    async def close(self) -> None: ...
