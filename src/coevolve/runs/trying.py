"""One proposal for inspection: nothing is evaluated, and no run learns of it."""

import asyncio
import math
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from coevolve.benchmarks.base import services_of
from coevolve.errors import CoevolveError, ConfigError
from coevolve.executors.local import LocalExecutor
from coevolve.executors.worker_process import Services
from coevolve.proposers.base import Broken, Proposal, Proposed, Repairer, View, as_proposed
from coevolve.runs.building import benchmark_spec, build_benchmark
from coevolve.runs.config import RunConfig
from coevolve.runs.model import trial_gateway
from coevolve.runs.proposer import (
    build_proposer,
    build_rules,
    check_ready,
    proposal_seconds,
    unrecorded,
)
from coevolve.runs.session import new_selector, test_pool
from coevolve.runs.tried import OneProposal, Tried
from coevolve.search.acceptance import Rules, accept, described, mended
from coevolve.search.candidate import Candidate
from coevolve.search.effects import fold
from coevolve.search.journal import Journal, MemoryJournal
from coevolve.search.loop import open_run
from coevolve.search.proposing import told, view_of
from coevolve.search.run_state import RunState
from coevolve.search.trials import Blame, Fault
from coevolve.store import RunStore


class Trying:
    """A project or a run as its proposer sees it now.

    Args:
        config: The configuration.
        base: The folder its paths start from.
        state: The run as it is.
        view: What the proposer sees.
        rules: What it is told, and what may not be in what it writes.
        services: What the benchmark serves from the engine.
    """

    def __init__(
        self,
        config: RunConfig,
        base: Path,
        state: RunState,
        view: View,
        rules: Rules,
        services: Services,
    ) -> None:
        self.config, self.base, self.state = config, base, state
        self.view, self.rules = view, rules
        self._services = services
        self._kept = MemoryJournal()

    async def propose(self, count: int, *, workspace: Path) -> OneProposal:
        """Have candidates proposed, checked in isolation, and mended once, as the engine does.

        Agents work below the folder `workspace`.
        """
        proposer = build_proposer(unrecorded(self.config), self.base, folder=workspace)
        try:
            check_ready(proposer)
            answer = await self._asked(proposer.propose(self.view, count))
            tried, notes = await self._checked(answer, count)
            if isinstance(proposer, Repairer):
                tried, answer = await self._mended(proposer, tried, answer)
        finally:
            if (close := getattr(proposer, "close", None)) is not None:
                await close()
        return OneProposal(
            round=self.view.round,
            tried=tuple(tried),
            notes=(*answer.notes, *notes),
            usage=answer.usage,
            transcript=answer.transcript,
        )

    async def _asked(self, answer: Awaitable[object]) -> Proposed:
        """What a proposer answers in time."""
        seconds = proposal_seconds(self.config)
        limit = asyncio.timeout(seconds if math.isfinite(seconds) else None)
        try:
            async with limit:
                return as_proposed(await answer, source="the proposer")
        except TimeoutError as error:
            if not limit.expired():
                raise ConfigError(f"the proposer failed: {described(error)}") from error
            raise ConfigError(f"the proposer took longer than {seconds:,.0f} s.") from None
        except CoevolveError:
            raise
        except (Exception, SystemExit) as error:
            why = described(error).rstrip(".")
            raise ConfigError(f"the proposer failed: {why}.") from error

    async def _checked(self, answer: Proposed, most: int) -> tuple[list[Tried], list[str]]:
        round, given = self.view.round, answer.proposals
        rows, notes = accept(self.state, self._kept, round, given, self.rules, most)
        return [await self._check(row["candidate"], row) for row in rows], notes

    async def _check(self, data: dict[str, Any], row: dict[str, Any]) -> Tried:
        candidate = Candidate.from_json(data)
        files = {path: self._kept.get(address) for path, address in candidate.files.items()}
        fault = None if row["refused"] else await self._fault(candidate)
        return Tried(
            candidate=candidate,
            files=files,
            fault=row["refused"] or (f"check failed: {fault.reason}" if fault else ""),
            leaks=tuple(row["leaks"]),
            broken=fault is not None and fault.blame == Blame.CANDIDATE,
        )

    async def _fault(self, candidate: Candidate) -> Fault | None:
        """What the check says against a candidate; nothing if it can be evaluated."""
        # A check may want to know what the model can do; it asks nothing that costs.
        gateway = trial_gateway(self.config, self.base)
        executor = LocalExecutor(
            benchmark_spec(self.config, self.base),
            contents=self._kept,
            isolation=self.config.isolation.kind,
            limits=self.config.isolation.limits(),
            prepare_seconds=self.config.executor.prepare_seconds,
            services={**self._services, **(gateway.services() if gateway else {})},
        )
        try:
            return (await executor.check(candidate)).fault
        finally:
            await executor.close()
            if gateway is not None:
                await gateway.close()

    async def _mended(
        self, proposer: Repairer, tried: list[Tried], answer: Proposed
    ) -> tuple[list[Tried], Proposed]:
        """Give back what failed its check, once."""
        after: list[Tried] = []
        for one in tried:
            if one.broken:
                back = await self._given_back(proposer, one)
                one, why = await self._again(one, back)
                answer = replace(
                    answer,
                    usage=answer.usage + back.usage,
                    notes=(*answer.notes, *back.notes, *why),
                    transcript="\n\n".join(filter(None, [answer.transcript, back.transcript])),
                )
            after.append(one)
        return after, answer

    async def _given_back(self, proposer: Repairer, one: Tried) -> Proposed:
        """What a proposer makes of a candidate that failed its check; nothing if it cannot."""
        proposal = Proposal.of(one.candidate, self._kept.get)
        try:
            broken = Broken(proposal=proposal, error=one.fault)
            return await self._asked(proposer.repair(self.view, broken))
        except CoevolveError as error:  # the other candidates are paid for
            return Proposed(proposals=(), notes=(f"Mending {proposal.name}: {error}",))

    async def _again(self, one: Tried, back: Proposed) -> tuple[Tried, list[str]]:
        row, why = mended(self.state, self._kept, one.candidate, back, self.rules)
        if row is None:
            return one, [f"Mending {one.candidate.name}: {why}"] if why else []
        return replace(await self._check(row["to"], row), mended=True), []


@contextmanager
def trying(config: RunConfig, base: Path, run: Path | None) -> Iterator[Trying]:
    """A project as its proposer sees it: as of a run, or before anything was evaluated."""
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
        yield Trying(config, base, state, view, rules, services_of(benchmark))
    else:
        with RunStore.read(run) as store:
            state = fold(store.skim())
            view = _view(state, store, rules, config)
            yield Trying(config, base, state, view, rules, services_of(benchmark))


def _view(state: RunState, journal: Journal, rules: Rules, config: RunConfig) -> View:
    round = len(state.rounds) + 1
    seconds = told(proposal_seconds(config))
    return view_of(state, journal, round, briefing=rules.briefing, seconds=seconds)
