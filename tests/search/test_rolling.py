"""A search without rounds, under any order of arrivals, killed, interrupted and extended."""

import asyncio
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coevolve.core.allocation import Share
from coevolve.core.events import Event
from coevolve.core.outcomes import Usage
from coevolve.core.protocols import protocol
from coevolve.core.selector import Selector
from coevolve.errors import ConfigError, EmptyRounds, InputError, StopRun, StoreError
from coevolve.search.budget import Budget, Settings
from coevolve.search.candidate import Candidate
from coevolve.search.effects import fold
from coevolve.search.journal import MemoryJournal, Recorder
from coevolve.search.loop import Search, check_opening
from coevolve.search.proposal import Broken, Proposal, Proposed, View
from coevolve.search.proposing import view_of
from coevolve.search.run_state import RunState, Status
from coevolve.search.trials import Blame, Fault, Result, Trial
from coevolve.views.report import report
from tests.effort import effort
from tests.search.snapshots import snapshot
from tests.search.stubs import (
    POOL,
    STARTS,
    StubExecutor,
    StubProposer,
    beginning,
    chance,
    cuts,
    go_on,
    opened,
)
from tests.search.test_failed_appends import FailingJournal

PROTOCOLS = ["task-coevolve", "adaptive", "joint", "full", "naive", "cost-aware"]
_TURNS = 25
"""Passes of the event loop after which nothing moves until the next arrival."""


@dataclass
class Arrivals:
    """Decides which of the trials and proposals under way ends next."""

    picks: Iterator[int]
    pending: list[tuple[str, asyncio.Future[None]]] = field(default_factory=list)
    order: list[str] = field(default_factory=list)

    async def wait(self, label: str) -> None:
        entry = (label, asyncio.get_running_loop().create_future())
        self.pending.append(entry)
        try:
            await entry[1]
        finally:
            if entry in self.pending:
                self.pending.remove(entry)

    async def drive(self) -> None:
        while True:
            for _ in range(_TURNS):
                await asyncio.sleep(0)
            if self.pending:
                label, future = self.pending.pop(next(self.picks) % len(self.pending))
                self.order.append(label)
                future.set_result(None)


@dataclass
class DrivenExecutor(StubExecutor):
    """Trials that end when they are told to."""

    arrivals: Arrivals = field(default_factory=lambda: Arrivals(iter(())))

    async def run(self, candidate: Candidate, trial: Trial) -> Result:
        self.ran.append(trial)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await self.arrivals.wait(f"{trial.candidate}/{trial.task}/{trial.attempt}")
        finally:
            self.now -= 1
        if chance("fault", *trial.cell, trial.attempt) < self.faults:
            fault = Fault(
                blame=Blame.INFRASTRUCTURE, kind="sandbox", reason="did not start", shared=True
            )
            return Result(fault=fault, usage=Usage(dollars=0.004))
        solved = chance("solved", candidate.address, trial.task) < 0.5
        return Result(score=float(solved), usage=Usage(dollars=0.01, seconds=0.5))


@dataclass
class DrivenProposer(StubProposer):
    """Proposals that end when they are told to."""

    arrivals: Arrivals = field(default_factory=lambda: Arrivals(iter(())))

    async def propose(self, view: View, count: int) -> Sequence[Proposal]:
        await self.arrivals.wait(f"proposal {view.round}")
        return await super().propose(view, count)


def forever(picks: Sequence[int]) -> Iterator[int]:
    yield from picks
    source = random.Random(len(picks))
    while True:
        yield source.randrange(100)


def driven(
    journal: MemoryJournal,
    picks: Sequence[int],
    *,
    faults: float = 0.0,
    capacity: int = 4,
    listen: Any = lambda event: None,
) -> tuple[RunState, Arrivals, DrivenExecutor]:
    """Run to the end; trials and proposals arrive as `picks` says."""
    arrivals = Arrivals(forever(picks))
    executor = DrivenExecutor(capacity=capacity, faults=faults, arrivals=arrivals)
    proposer = DrivenProposer(arrivals=arrivals, seconds=0.0)

    async def both() -> RunState:
        driver = asyncio.create_task(arrivals.drive())
        search = Search(journal, executor, proposer, pause=0.0, listen=listen)
        try:
            return await search.run()
        finally:
            driver.cancel()

    return asyncio.run(both()), arrivals, executor


def outcomes(journal: MemoryJournal) -> list[Event]:
    return [event for event in journal.events() if event["type"] == "outcome"]


def check_whole(journal: MemoryJournal, state: RunState) -> None:
    """Every outcome was told once, and no candidate was forgotten."""
    cells = Counter(
        (e["candidate"], e["task"], e["trial"], e.get("split", "")) for e in outcomes(journal)
    )
    assert set(cells.values()) == {1}
    assert snapshot(fold(journal.events())) == snapshot(state)
    told = [e for e in outcomes(journal) if "split" not in e and e["candidate"] not in STARTS]
    assert state.selector.evaluations == len(told)
    assert not state.open_rounds or state.exhausted
    if state.exhausted is None:
        assert state.selector.outstanding() == []
        assert state.wave is None
        live = [n for n, k in state.candidates.items() if k.status != Status.REFUSED]
        assert set(live) == {*state.starts, *state.selector.candidates}
        assert all(state.candidates[name].status == Status.EVALUATED for name in live)


def check_selector(journal: MemoryJournal, state: RunState, protocol: str) -> None:
    """A selector that is told the same, one outcome at a time, draws and estimates the same."""
    twin = Selector(POOL, protocol=protocol, fraction=0.4, seed=7)
    waiting: list[Event] = []
    full: dict[str, dict[str, float]] = {name: {} for name in STARTS}
    for event in journal.events():
        if event["type"] == "outcome" and "split" not in event:
            waiting.append(event)
        elif event["type"] == "told":
            assignments = {a.candidate: a for a in twin.outstanding()}
            for one in waiting:
                if one["candidate"] in STARTS:
                    full[one["candidate"]][one["task"]] = one["score"]
                else:
                    twin.tell(assignments[one["candidate"]], {one["task"]: one["score"]})
            if not twin.starts:
                for name, scores in full.items():
                    twin.tell_full(name, scores)
            waiting = []
        elif event["type"] == "asked":
            for draw in event["events"]:
                if draw["kind"] == "first":
                    made = twin.ask(draw["candidates"])
                else:
                    made = twin.ask(candidates=twin.candidates, final=event["final"])
                tasks = [[d["tasks"] for d in one] for one in draw["draws"]]
                assert [[list(d.tasks) for d in a.designs] for a in made] in (
                    tasks,
                    tasks * len(made),
                )
    for name in state.selector.candidates:
        mine, theirs = state.selector.estimate(name), twin.estimate(name)
        assert mine.value == pytest.approx(theirs.value, abs=1e-6)
        assert (mine.tasks, mine.drawn) == (theirs.tasks, theirs.drawn)


class TestArrivals:
    @settings(max_examples=effort(12, 300), deadline=None)
    @given(
        picks=st.lists(st.integers(0, 9), max_size=60),
        protocol=st.sampled_from(PROTOCOLS),
        in_flight=st.integers(1, 4),
        candidates=st.integers(1, 2),
        capacity=st.integers(1, 6),
        faults=st.sampled_from([0.0, 0.0, 0.3]),
    )
    def test_nothing_is_lost_whatever_ends_first(
        self,
        picks: list[int],
        protocol: str,
        in_flight: int,
        candidates: int,
        capacity: int,
        faults: float,
    ) -> None:
        journal = MemoryJournal()
        in_flight = max(in_flight, candidates)
        opened(journal, rounds=4, candidates=candidates, protocol=protocol, in_flight=in_flight)
        live = fold(journal.events())
        most = 0

        def listen(event: Event) -> None:
            nonlocal most
            recorder.catch_up()
            coming = candidates if live.proposing_since is not None else 0
            most = max(most, len(live.in_flight) + coming)

        recorder = Recorder(journal, state=live)
        state, _, executor = driven(
            journal, picks, faults=faults, capacity=capacity, listen=listen
        )
        assert state.ended == {"why": "finished"}
        assert 1 <= most <= in_flight
        assert executor.most <= capacity
        check_whole(journal, state)
        if not faults:
            check_selector(journal, state, protocol)

    @settings(max_examples=effort(8, 200), deadline=None)
    @given(
        picks=st.lists(st.integers(0, 9), max_size=60),
        protocol=st.sampled_from(["task-coevolve", "adaptive"]),
        budget=st.sampled_from(
            [Budget(trials=n) for n in (66, 75, 90)]
            + [Budget(dollars=n) for n in (0.7, 0.75, 0.9)]
        ),
        faults=st.sampled_from([0.0, 0.3]),
    )
    def test_a_budget_is_never_passed(
        self, picks: list[int], protocol: str, budget: Budget, faults: float
    ) -> None:
        journal = MemoryJournal()
        opened(journal, rounds=6, candidates=1, protocol=protocol, in_flight=3, budget=budget)
        state, _, _ = driven(journal, picks, faults=faults)
        assert budget.exceeded(state.spending()) is None
        assert state.ended is not None
        check_whole(journal, state)
        assert state.test is not None
        if state.chosen is not None and state.chosen["candidate"] and budget.trials is not None:
            assert len(state.test.starts) == 3

    @settings(max_examples=effort(3, 60), deadline=None)
    @given(
        picks=st.lists(st.integers(0, 9), max_size=60),
        protocol=st.sampled_from(["task-coevolve", "adaptive"]),
    )
    def test_the_same_order_of_arrivals_ends_the_same(
        self, picks: list[int], protocol: str
    ) -> None:
        found = []
        for _ in range(2):
            journal = MemoryJournal()
            opened(journal, rounds=4, candidates=1, protocol=protocol, in_flight=3)
            state, arrivals, _ = driven(journal, picks, faults=0.2)
            kinds = [event["type"] for event in journal.events()]
            found.append((snapshot(state), arrivals.order, kinds))
        assert found[0] == found[1]

    def test_another_order_may_end_differently(self) -> None:
        seals = set()
        for picks in ([0] * 400, [9] * 400, [3, 1, 7] * 100):
            journal = MemoryJournal()
            opened(journal, rounds=4, candidates=1, in_flight=3)
            seals.add(driven(journal, picks)[0].selector._log.seal)
        assert len(seals) > 1


@pytest.mark.parametrize("protocol", ["task-coevolve", "joint", "full", "naive"])
def test_one_candidate_at_a_time_is_the_search_with_rounds(protocol: str) -> None:
    found = []
    for in_flight in (None, 1):
        journal = MemoryJournal()
        opened(journal, rounds=4, candidates=1, protocol=protocol, in_flight=in_flight)
        state = go_on(journal)
        found.append((state.selector._log.seal, state.chosen))
    assert found[0] == found[1]


class TestKilled:
    @pytest.mark.parametrize("protocol", ["task-coevolve", "adaptive"])
    def test_a_run_that_was_killed_at_any_instant_resumes_without_loss(
        self, protocol: str
    ) -> None:
        journal = MemoryJournal()
        opened(journal, rounds=5, candidates=1, protocol=protocol, in_flight=3, rescore=True)
        driven(journal, [], faults=0.2)
        instants = random.Random(protocol).sample(
            range(1, len(list(journal.events()))), effort(8, 20)
        )
        for kept in {*instants, *cuts(list(journal.events()))[:: effort(4, 1)]}:
            part = beginning(journal, kept)
            before = list(part.events())
            state, _, executor = driven(part, [5, 2], faults=0.2)
            after = list(part.events())
            assert after[: len(before)] == before
            assert state.ended == {"why": "finished"}
            check_whole(part, state)
            recorded = {
                (e["candidate"], e["task"], e["trial"], e.get("split", "validation"))
                for e in before
                if e["type"] == "outcome"
            }
            again = {(*trial.cell, trial.split) for trial in executor.ran}
            assert not recorded & again

    def test_killed_again_and_again(self) -> None:
        journal = MemoryJournal()
        opened(journal, rounds=5, candidates=2, in_flight=4)
        source = random.Random(3)
        state = None
        while state is None:
            until = len(list(journal.events())) + source.randrange(3, 40)

            def listen(event: Event, until: int = until) -> None:
                if event["seq"] >= until:
                    raise KeyboardInterrupt

            try:
                state, _, _ = driven(journal, [source.randrange(9)], listen=listen)
            except (KeyboardInterrupt, BaseExceptionGroup):
                journal = beginning(journal, until)
        assert state.sessions > 3
        check_whole(journal, state)

    def test_a_proposal_under_way_is_repeated_with_the_same_view(self) -> None:
        journal, first = MemoryJournal(), StubProposer()
        opened(journal, rounds=4, candidates=1, in_flight=3)
        go_on(journal, proposer=first)
        events = list(journal.events())
        at = [event["seq"] for event in events if event["type"] == "proposing"][2]
        more = next(
            n for n in range(at + 1, len(events)) if events[n]["type"] in ("outcome", "proposed")
        )
        part, again = (
            beginning(journal, more + (events[more]["type"] == "outcome")),
            StubProposer(),
        )
        go_on(part, proposer=again)
        old, new = first.seen[2], again.seen[0]
        assert (old.round, old.parent, old.seed) == (new.round, new.parent, new.seed)
        assert [s.outcomes for s in old.standings] == [s.outcomes for s in new.standings]


def test_a_fold_needs_no_outcome_that_is_summed_up_later() -> None:
    journal = MemoryJournal()
    opened(journal, rounds=5, candidates=1, in_flight=3)
    state, _, _ = driven(journal, [4, 8, 1], faults=0.4)
    events = list(journal.events())
    alone = [event for event in events if event["type"] not in ("outcome", "failed")]
    assert snapshot(fold(alone)) == snapshot(state)
    for kept in cuts(events):
        part = events[:kept]
        last = max((n for n, e in enumerate(part) if e["type"] == "told"), default=0)
        skimmed = [
            e for n, e in enumerate(part) if n > last or e["type"] not in ("outcome", "failed")
        ]
        whole, short = fold(part), fold(skimmed)
        assert snapshot(short) == snapshot(whole)
        assert None in (whole.wave, short.wave) or whole.wave.open == short.wave.open  # type: ignore[union-attr]


class TestProposing:
    def test_the_proposer_is_asked_before_the_last_trials_end(self) -> None:
        journal = MemoryJournal()
        opened(journal, rounds=4, candidates=1, in_flight=3)
        driven(journal, [])
        began, open_then = False, []
        state = None
        for event in journal.events():
            if event["type"] == "proposing":
                state = fold(journal.events(until=event["seq"]))
                open_then.append(0 if state.wave is None else len(state.wave.open))
                began = True
        assert began
        assert max(open_then) > 0

    def test_it_knows_at_least_half_of_the_outcomes_of_the_last_candidate(self) -> None:
        journal = MemoryJournal()
        opened(journal, rounds=6, candidates=1, in_flight=3)
        driven(journal, [], capacity=12)
        parents, partial = set(), 0
        for event in journal.events():
            if event["type"] != "proposing" or event["round"] == 1:
                continue
            state = fold(journal.events(until=event["seq"] + 1))
            view = view_of(state, journal, event["round"])
            last = view.standing(state.rounds[-1].names[0])
            assert last.estimate is not None
            assert 2 * last.estimate.tasks >= last.estimate.drawn
            if last.estimate.tasks < last.estimate.drawn:
                partial += 1
                assert "not told yet" in last.estimate.note
            parents.add(view.parent in state.in_flight)
        assert partial
        assert True in parents

    def test_the_proposer_is_asked_when_a_place_is_added(self) -> None:
        """The last trials use every place; none of them ends before the next proposal."""
        proposed = asyncio.Event()

        class Growing(StubExecutor):
            elastic = True

            async def run(self, candidate: Candidate, trial: Trial) -> Result:
                first = [one for one in self.ran if one.candidate == "r1-0"]
                result = await super().run(candidate, trial)
                if trial.candidate == "r1-0" and len(first) >= 7:  # of 9
                    self.capacity = 3
                    async with asyncio.timeout(10):
                        await proposed.wait()
                return result

        class Second(StubProposer):
            async def propose(self, view: View, count: int) -> Sequence[Proposal]:
                if view.round == 2:
                    proposed.set()
                return await super().propose(view, count)

        journal = MemoryJournal()
        opened(journal, rounds=2, candidates=1, in_flight=3)
        assert go_on(journal, Growing(capacity=2), Second()).ended == {"why": "finished"}

    def test_a_proposer_that_fails_stops_the_run_after_the_trials_under_way(self) -> None:
        class Failing(StubProposer):
            async def propose(self, view: View, count: int) -> Sequence[Proposal]:
                if view.round == 3:
                    raise RuntimeError("no answer")
                return await super().propose(view, count)

        journal = MemoryJournal()
        opened(journal, rounds=5, candidates=1, in_flight=3)
        with pytest.raises(StopRun, match="the proposer failed 3 times in round 3"):
            go_on(journal, proposer=Failing())
        state = fold(journal.events())
        assert state.wave is None or not state.wave.open
        assert go_on(journal).ended == {"why": "finished"}
        assert len(fold(journal.events()).rounds) == 5

    def test_rounds_without_a_candidate_stop_the_run(self) -> None:
        class Empty(StubProposer):
            async def propose(self, view: View, count: int) -> Sequence[Proposal]:
                return [] if view.round > 1 else await super().propose(view, count)

        journal = MemoryJournal()
        opened(journal, rounds=8, candidates=1, in_flight=2)
        with pytest.raises(EmptyRounds, match="3 rounds in a row"):
            go_on(journal, proposer=Empty())
        assert len(fold(journal.events()).rounds) == 4
        assert go_on(journal).ended == {"why": "finished"}

    def test_a_candidate_that_fails_its_check_is_repaired_beside_trials(self) -> None:
        class Repairing(StubProposer):
            async def repair(self, view: View, broken: Broken) -> Proposed:
                fixed = Proposal(
                    files={"harness.py": broken.proposal.files["harness.py"] + b"\n# fixed"},
                    name=broken.proposal.name,
                    parents=broken.proposal.parents,
                )
                return Proposed(proposals=(fixed,))

        journal = MemoryJournal()
        opened(journal, rounds=4, candidates=1, in_flight=3, repair=True)

        def once(candidate: Candidate) -> Fault | None:
            bad = candidate.name == "r2-0" and b"# fixed" not in journal.get(
                candidate.files["harness.py"]
            )
            return Fault(blame=Blame.CANDIDATE, kind="x", reason="broken") if bad else None

        state = go_on(journal, StubExecutor(refuse=once), Repairing())
        assert state.candidates["r2-0"].repaired
        assert state.candidates["r2-0"].status == Status.EVALUATED
        check_whole(journal, state)


class TestFaults:
    def test_a_candidate_that_nothing_answers_is_decided_by_controls(self) -> None:
        def act(trial: Trial) -> Result | None:
            bad = trial.candidate == "r2-0" and trial.task.startswith("law")
            fault = Fault(blame=Blame.INFRASTRUCTURE, kind="model", reason="no answer")
            return Result(fault=fault) if bad else None

        journal = MemoryJournal()
        opened(journal, rounds=4, candidates=1, in_flight=3)
        state = go_on(journal, StubExecutor(act=act))
        assert state.ended == {"why": "finished"}
        scores = state.selector.scores("r2-0")
        assert {s for t, s in scores.items() if t.startswith("law")} == {0.0}
        check_whole(journal, state)

    @pytest.mark.parametrize("in_flight", [None, 3])
    @pytest.mark.parametrize("cap", [0.78, 0.82, 0.88, 0.96])
    def test_trials_in_doubt_and_their_controls_do_not_pass_a_budget(
        self, in_flight: int | None, cap: float
    ) -> None:
        ran: list[Trial] = []

        def act(trial: Trial) -> Result:
            ran.append(trial)
            fault = Fault(blame=Blame.INFRASTRUCTURE, kind="model", reason="no answer")
            bad = fault if trial.candidate not in STARTS else None
            return Result(score=None if bad else 1.0, fault=bad, usage=Usage(dollars=0.01))

        journal = MemoryJournal()
        budget = Budget(dollars=cap)
        opened(journal, rounds=4, candidates=1, in_flight=in_flight, budget=budget, test=None)
        state = go_on(journal, StubExecutor(act=act))
        assert state.ended == {"why": "budget: dollars"}
        assert state.spending().dollars == pytest.approx(0.01 * len(ran)), "all is recorded"
        assert budget.exceeded(state.spending()) is None

    def test_a_draw_with_under_half_of_its_outcomes_is_drawn_again(self) -> None:
        def act(trial: Trial) -> Result | None:
            bad = trial.candidate == "r1-0" and not trial.task.endswith(("1", "2", "3"))
            fault = Fault(blame=Blame.INFRASTRUCTURE, kind="x", reason="it broke.", shared=True)
            return Result(fault=fault) if bad else None

        journal, executor = MemoryJournal(), StubExecutor(act=act)
        opened(journal, rounds=3, candidates=1, in_flight=2)
        state = go_on(journal, executor)
        assert {t.trial for t in executor.ran if t.candidate == "r1-0"} == {0, 1}
        assert report(state).thin_rounds == (1,)

    def test_a_round_of_which_nothing_came_back_stops_the_run_once(self) -> None:
        def act(trial: Trial) -> Result | None:
            fault = Fault(blame=Blame.INFRASTRUCTURE, kind="x", reason="it broke.", shared=True)
            return Result(fault=fault) if trial.candidate == "r2-0" else None

        journal = MemoryJournal()
        opened(journal, rounds=4, candidates=1, in_flight=2)
        with pytest.raises(StopRun, match="no trial of round 2 has a score"):
            go_on(journal, StubExecutor(act=act))
        state = go_on(journal, StubExecutor(act=act))
        assert state.ended == {"why": "finished"}
        assert len(state.rounds) == 4

    def test_an_interrupted_search_says_so_and_resumes(self) -> None:
        journal = MemoryJournal()
        opened(journal, rounds=5, candidates=1, in_flight=3)

        async def interrupted() -> None:
            executor = StubExecutor()
            task = asyncio.create_task(Search(journal, executor, StubProposer()).run())
            while len(executor.ran) < 60:
                await asyncio.sleep(0.001)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(interrupted())
        assert fold(journal.events()).stopped == {"why": "interrupted"}
        state = go_on(journal)
        assert state.ended == {"why": "finished"}
        check_whole(journal, state)


@pytest.mark.parametrize("kept", [False, True], ids=["lost", "kept"])
def test_the_same_search_continues_after_an_append_that_failed(kept: bool) -> None:
    for fail in range(10, 120, effort(23, 1)):
        journal = FailingJournal()
        opened(journal, rounds=3, candidates=1, in_flight=2)
        search = Search(journal, StubExecutor(), StubProposer(), pause=0.0)
        journal.fail, journal.kept, journal.appends, journal.places = fail, kept, 0, {}
        try:
            asyncio.run(search.run())
        except StoreError:
            asyncio.run(search.run())
        assert search.state.ended == {"why": "finished"}
        check_whole(journal, search.state)


class TestExtending:
    @pytest.mark.parametrize("protocol", ["task-coevolve", "adaptive"])
    def test_a_run_that_a_budget_cut_off_goes_on(self, protocol: str) -> None:
        journal = MemoryJournal()
        budget = Budget(trials=70)
        opened(journal, rounds=5, candidates=1, protocol=protocol, in_flight=3, budget=budget)
        state, _, _ = driven(journal, [3, 1, 4])
        assert state.ended == {"why": "budget: trials"}
        body = {"rounds": 6, "budget": Budget(trials=400).to_json(), "complete": True}
        Recorder(journal).record("extended", body)
        state, _, _ = driven(journal, [2, 7])
        assert state.ended == {"why": "finished"}
        assert len(state.rounds) == 6
        check_whole(journal, state)


class TestRefused:
    @pytest.mark.parametrize(
        ("given", "why"),
        [
            ({"in_flight": 0}, "in_flight must be a whole number of at least 1"),
            ({"in_flight": True}, "in_flight must be a whole number"),
            ({"in_flight": 2, "overlap": True}, "overlap has no effect with in_flight"),
            ({"in_flight": 2, "candidates": 3}, "in_flight must be at least candidates"),
        ],
    )
    def test_settings_that_do_not_fit(self, given: dict[str, Any], why: str) -> None:
        with pytest.raises(InputError, match=why):
            Settings(rounds=3, **given)

    def test_a_protocol_that_decides_among_the_candidates_of_a_round(self) -> None:
        @dataclass(frozen=True, kw_only=True)
        class OfRounds(Share):
            needs_rounds: ClassVar[bool] = True

        rule = replace(protocol("naive"), name="of-rounds", allocation=OfRounds())
        selector = Selector(POOL, protocol=rule)
        check_opening(Settings(rounds=3), selector, STARTS, None)
        with pytest.raises(ConfigError, match="'of-rounds' decides among the candidates of a r"):
            check_opening(Settings(rounds=3, in_flight=2), selector, STARTS, None)

    def test_a_run_with_rounds_has_no_such_setting(self) -> None:
        assert "in_flight" not in Settings(rounds=3).to_json()


def test_a_report_counts_proposals_and_the_trials_of_candidates_under_way() -> None:
    journal = MemoryJournal()
    opened(journal, rounds=5, candidates=1, in_flight=3)
    driven(journal, [])
    seen = set()
    for event in journal.events():
        if event["type"] in ("outcome", "proposing", "told") and not event["seq"] % 5:
            found = report(fold(journal.events(until=event["seq"] + 1)))
            if found.phase == "searching":
                rows = [row for row in found.candidates if row.asked]
                assert found.done == sum(row.done for row in rows) <= found.asked
                assert found.asked == sum(row.asked for row in rows)
                seen.add(found.round)
    assert max(seen) > 2
