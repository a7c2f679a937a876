"""One proposal for inspection: nothing is evaluated, and no run records it."""

import asyncio
import math
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from coevolve.benchmarks.base import Benchmark
from coevolve.core.outcomes import Usage
from coevolve.errors import CoevolveError, ConfigError
from coevolve.proposers.base import Broken, Proposal, Proposed, Repairer, View, as_proposed
from coevolve.proposers.proposer_settings import check_ready
from coevolve.runs.building import (
    build_benchmark,
    build_executor,
    build_proposer,
    build_rules,
    trial_gateway,
)
from coevolve.runs.config import RunConfig
from coevolve.runs.session import find_protocol, new_selector, test_pool
from coevolve.search.acceptance import Rules, accept, accept_repair, described
from coevolve.search.candidate import Candidate
from coevolve.search.effects import fold
from coevolve.search.journal import Journal, MemoryJournal
from coevolve.search.loop import open_run
from coevolve.search.proposing import announced_seconds, view_of
from coevolve.search.run_state import CandidateState, RunState
from coevolve.search.trials import Blame, Fault
from coevolve.store import RunStore


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedCandidate:
    """A candidate that was proposed and checked.

    Args:
        candidate: The candidate.
        files: Its files.
        fault: Why it cannot be evaluated; empty if it can.
        leaks: Where its files mention tasks that it must not know.
        broken: Whether the fault is its own and may be repaired.
        repaired: Whether it was repaired.
    """

    candidate: Candidate
    files: dict[str, bytes]
    fault: str
    leaks: tuple[str, ...]
    broken: bool = False
    repaired: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, without the files."""
        return {
            **self.candidate.to_json(),
            "fault": self.fault,
            "leaks": list(self.leaks),
            "repaired": self.repaired,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedProposal:
    """What a proposer proposes now."""

    round: int
    tried: tuple[TriedCandidate, ...]
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


class ProposalTrial:
    """A project or a run as its proposer sees it now.

    Args:
        config: The configuration.
        base: The folder that its paths are relative to.
        benchmark: The benchmark of the configuration.
        state: The state of the run.
        view: What the proposer sees.
        rules: The briefing, and the scan for tasks that candidates must not know.
    """

    def __init__(
        self,
        config: RunConfig,
        base: Path,
        benchmark: Benchmark,
        state: RunState,
        view: View,
        rules: Rules,
    ) -> None:
        self.config, self.base, self.state = config, base, state
        self.view, self.rules = view, rules
        self._benchmark = benchmark
        self._kept = MemoryJournal()

    async def propose(self, count: int, *, workspace: Path) -> TriedProposal:
        """Propose candidates, check them in isolation, and repair them once, as the engine does.

        Agents work below the folder `workspace`.
        """
        quiet = self.config.model_copy(update={"proposer": self.config.proposer.unrecorded()})
        proposer = build_proposer(quiet, self.base, folder=workspace)
        try:
            check_ready(proposer)
            answer = await self._asked(proposer.propose(self.view, count))
            tried, notes = await self._checked(answer, count)
            if isinstance(proposer, Repairer):
                tried, answer = await self._repaired(proposer, tried, answer)
        finally:
            if (close := getattr(proposer, "close", None)) is not None:
                await close()
        return TriedProposal(
            round=self.view.round,
            tried=tuple(tried),
            notes=(*answer.notes, *notes),
            usage=answer.usage,
            transcript=answer.transcript,
        )

    async def _asked(self, answer: Awaitable[object]) -> Proposed:
        """The answer of a proposer, within its time limit."""
        seconds = self.config.proposer.patience
        limit = asyncio.timeout(seconds if math.isfinite(seconds) else None)
        try:
            async with limit:
                return as_proposed(await answer, source="the proposer")
        except TimeoutError as error:
            if not limit.expired():
                raise ConfigError(f"the proposer failed: {described(error)}") from error
            late = f"the proposer exceeded {seconds:,.0f} s; raise proposer.seconds."
            raise ConfigError(late) from None
        except CoevolveError:
            raise
        except (Exception, SystemExit) as error:
            why = described(error).rstrip(".")
            raise ConfigError(f"the proposer failed: {why}.") from error

    async def _checked(
        self, answer: Proposed, most: int
    ) -> tuple[list[TriedCandidate], list[str]]:
        round, given = self.view.round, answer.proposals
        accepted, notes = accept(self.state, self._kept, round, given, self.rules, most)
        return [await self._check(known) for known in accepted], notes

    async def _check(self, known: CandidateState) -> TriedCandidate:
        candidate = known.candidate
        files = {path: self._kept.get(address) for path, address in candidate.files.items()}
        fault = None if known.reason else await self._fault(candidate)
        return TriedCandidate(
            candidate=candidate,
            files=files,
            fault=known.reason or (f"check failed: {fault.reason}" if fault else ""),
            leaks=known.leaks,
            broken=fault is not None and fault.blame == Blame.CANDIDATE,
        )

    async def _fault(self, candidate: Candidate) -> Fault | None:
        """Why a candidate fails its check; None if it passes."""
        # A check may ask what the model can do, which costs nothing.
        executor = build_executor(
            self.config,
            self.base,
            self._benchmark,
            contents=self._kept,
            gateway=trial_gateway(self.config, self.base),
            at_once=1,
        )
        try:
            return (await executor.check(candidate)).fault
        finally:
            await executor.close()

    async def _repaired(
        self, proposer: Repairer, tried: list[TriedCandidate], answer: Proposed
    ) -> tuple[list[TriedCandidate], Proposed]:
        """Send candidates that failed their check back for repair, once."""
        after: list[TriedCandidate] = []
        for one in tried:
            if one.broken:
                back = await self._sent_back(proposer, one)
                one, why = await self._again(one, back)
                answer = replace(
                    answer,
                    usage=answer.usage + back.usage,
                    notes=(*answer.notes, *back.notes, *why),
                    transcript="\n\n".join(filter(None, [answer.transcript, back.transcript])),
                )
            after.append(one)
        return after, answer

    async def _sent_back(self, proposer: Repairer, one: TriedCandidate) -> Proposed:
        """What a proposer returns for a candidate that failed its check; nothing if it fails."""
        proposal = Proposal.of(one.candidate, self._kept.get)
        try:
            broken = Broken(proposal=proposal, error=one.fault)
            return await self._asked(proposer.repair(self.view, broken))
        except CoevolveError as error:  # the other candidates are paid for
            return Proposed(proposals=(), notes=(f"Repair of {proposal.name}: {error}",))

    async def _again(
        self, one: TriedCandidate, back: Proposed
    ) -> tuple[TriedCandidate, list[str]]:
        known, why = accept_repair(self.state, self._kept, one.candidate, back, self.rules)
        if known is None:
            return one, [f"Repair of {one.candidate.name}: {why}"] if why else []
        return replace(await self._check(known), repaired=True), []


@contextmanager
def proposal_trial(config: RunConfig, base: Path, run: Path | None) -> Iterator[ProposalTrial]:
    """A project as its proposer sees it: in the state of a run, or before its first trial."""
    benchmark = build_benchmark(config, base)
    rules = build_rules(config, benchmark, trial_gateway(config, base))
    if run is None:
        journal = MemoryJournal()
        open_run(
            journal,
            name=config.run.name,
            settings=config.settings(),
            selector=new_selector(config, benchmark.pool),
            starts=benchmark.starts,
            test=test_pool(benchmark),
        )
        state = fold(journal.skim())
        view = _view(state, journal, rules, config)
        yield ProposalTrial(config, base, benchmark, state, view, rules)
    else:
        find_protocol(run)
        with RunStore.read(run) as store:
            state = fold(store.skim())
            view = _view(state, store, rules, config)
            yield ProposalTrial(config, base, benchmark, state, view, rules)


def _view(state: RunState, journal: Journal, rules: Rules, config: RunConfig) -> View:
    round = len(state.rounds) + 1
    seconds = announced_seconds(config.proposer.patience)
    return view_of(state, journal, round, briefing=rules.briefing, seconds=seconds)
