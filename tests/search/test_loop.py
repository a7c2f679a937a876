"""The loop, on a small run without processes."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from coevolve.core.events import Event
from coevolve.core.outcomes import Missing, Usage
from coevolve.errors import ConfigError, EventError, StopRun
from coevolve.search.budget import Budget
from coevolve.search.candidate import Candidate
from coevolve.search.effects import fold
from coevolve.search.journal import MemoryJournal
from coevolve.search.loop import Search
from coevolve.search.proposal import Proposal, Proposed, View
from coevolve.search.run_state import Status
from coevolve.search.trials import Blame, Fault, Prepared, Result, Trial
from coevolve.views.report import report
from tests.search.snapshots import snapshot
from tests.search.stubs import (
    POOL,
    STARTS,
    TEST,
    StubExecutor,
    StubProposer,
    beginning,
    chance,
    cuts,
    go_on,
    opened,
    whole_run,
)

PROTOCOLS = ["task-coevolve", "adaptive", "joint", "full", "naive", "cost-aware"]


def fault(blame: Blame, kind: str = "broken") -> Fault:
    shared = blame is Blame.INFRASTRUCTURE
    return Fault(blame=blame, kind=kind, reason="it broke.", advice="Fix it.", shared=shared)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_run_goes_through_every_phase(protocol: str) -> None:
    state = whole_run(protocol=protocol)
    assert state.ended == {"why": "finished"}
    assert [turn.number for turn in state.rounds] == [1, 2, 3]
    assert state.chosen is not None
    assert state.chosen["candidate"] in state.selector.candidates
    assert state.selector.starts == ("plain", "terse")
    assert state.test is not None
    assert set(state.test.starts) == {"plain", "terse", state.chosen["candidate"]}


class TestRescoring:
    def test_the_winner_is_scored_on_every_task_after_the_choice(self) -> None:
        journal, executor = MemoryJournal(), StubExecutor()
        opened(journal, rescore=True)
        state = go_on(journal, executor)
        assert state.chosen is not None
        winner = state.chosen["candidate"]
        again = [trial for trial in executor.ran if trial.split == "rescore"]
        assert sorted(trial.task for trial in again) == sorted(POOL.tasks)
        assert {trial.candidate for trial in again} == {winner}
        row = next(row for row in report(state).candidates if row.name == winner)
        truth = {
            pool: [
                chance("solved", state.candidates[winner].candidate.address, POOL.tasks[i]) < 0.5
                for i in POOL.members(pool)
            ]
            for pool in POOL.names
        }
        assert row.full == pytest.approx(sum(sum(t) / len(t) for t in truth.values()) / 2)
        assert row.test is not None

    def test_it_changes_neither_the_choice_nor_the_estimates(self) -> None:
        plain, rescored = whole_run(), whole_run(rescore=True)
        assert plain.chosen == rescored.chosen
        name = plain.selector.candidates[-1]
        assert plain.selector.estimate(name) == rescored.selector.estimate(name)

    def test_a_budget_leaves_room_for_it(self) -> None:
        journal = MemoryJournal()
        opened(journal, rescore=True, budget=Budget(trials=100))
        state = go_on(journal, StubExecutor())
        assert state.evaluating.trials == 100
        assert len(state.rescored.starts) == 1
        assert state.test is not None
        assert len(state.test.starts) == 3


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_fold_of_the_events_is_the_state(protocol: str, overlap: bool) -> None:
    journal = MemoryJournal()
    opened(journal, protocol=protocol, overlap=overlap)
    state = go_on(journal, StubExecutor(faults=0.2))
    assert snapshot(fold(journal.events())) == snapshot(state)


@pytest.mark.parametrize("protocol", ["task-coevolve", "adaptive"])
def test_the_order_in_which_trials_end_does_not_matter(protocol: str) -> None:
    ends = []
    for capacity in (1, 3, 16):
        journal = MemoryJournal()
        opened(journal, protocol=protocol)
        ends.append(snapshot(go_on(journal, StubExecutor(capacity=capacity, faults=0.2))))
    assert ends[0] == ends[1] == ends[2]


@pytest.mark.parametrize(("overlap", "rescore"), [(False, True), (True, False)])
def test_a_run_continues_from_every_event(overlap: bool, rescore: bool) -> None:
    journal = MemoryJournal()
    opened(journal, rounds=3, candidates=1, overlap=overlap, rescore=rescore)
    expected = snapshot(go_on(journal, StubExecutor(faults=0.2)))
    events = list(journal.events())
    for kept in cuts(events):
        part = beginning(journal, kept)
        assert snapshot(go_on(part, StubExecutor(faults=0.2))) == expected, events[kept - 1]


def test_never_more_at_once_than_the_executor_can_take() -> None:
    journal, executor = MemoryJournal(), StubExecutor(capacity=4)
    opened(journal)
    go_on(journal, executor)
    assert executor.most == 4
    assert executor.closed


def test_longest_trials_start_first_once_their_length_is_known() -> None:
    lengths = {task: 2.0 ** (number % 5) for number, task in enumerate(POOL.tasks)}

    def act(trial: Trial) -> Result | None:
        if trial.split == "test":
            return None
        return Result(score=0.5, usage=Usage(seconds=lengths[trial.task]))

    journal, executor = MemoryJournal(), StubExecutor(capacity=1, act=act)
    opened(journal, protocol="full", rounds=1, candidates=1)
    go_on(journal, executor)
    started = [
        lengths[t.task] for t in executor.ran if t.candidate == "r1-0" and t.task in lengths
    ]
    assert started == sorted(lengths.values(), reverse=True)


def test_another_order_of_trials_ends_the_same_way() -> None:
    journal, executor = MemoryJournal(), StubExecutor(capacity=1)
    opened(journal, protocol="full", rounds=1, candidates=1)
    backwards = Search(
        journal,
        executor,
        StubProposer(),
        order=lambda state, cell: -POOL.position(cell.task) if cell.task in POOL.tasks else 0.0,
    )
    state = asyncio.run(backwards.run())
    started = [t.task for t in executor.ran if t.candidate == "r1-0" and t.split != "test"]
    assert started == list(reversed(POOL.tasks))
    assert snapshot(state) == snapshot(whole_run(protocol="full", rounds=1, candidates=1))


class TestFaults:
    def test_infrastructure_is_tried_again_twice_and_then_missing(self) -> None:
        def act(trial: Trial) -> Result | None:
            bad = trial.task == "law-3" or (trial.task == "law-4" and trial.attempt < 2)
            return Result(fault=fault(Blame.INFRASTRUCTURE)) if bad else None

        journal, executor = MemoryJournal(), StubExecutor(act=act)
        opened(journal, protocol="full", rounds=1, candidates=1)
        state = go_on(journal, executor)
        attempts = Counter(t.task for t in executor.ran if t.candidate == "r1-0")
        assert (attempts["law-3"], attempts["law-4"], attempts["law-5"]) == (3, 3, 1)
        scores = state.selector.scores("r1-0")
        assert scores["law-3"] == Missing("broken: it broke.")
        assert isinstance(scores["law-4"], float)
        assert state.tally.missing["r1-0"] == 1
        assert state.evaluating.failed_attempts == 3 * 4

    @pytest.mark.parametrize("blame", [Blame.CANDIDATE, Blame.BENCHMARK])
    def test_a_candidates_fault_scores_0_and_is_not_tried_again(self, blame: Blame) -> None:
        def act(trial: Trial) -> Result | None:
            return Result(fault=fault(blame)) if trial.candidate == "r1-0" else None

        journal, executor = MemoryJournal(), StubExecutor(act=act)
        opened(journal, protocol="full", rounds=1, candidates=2)
        state = go_on(journal, executor)
        assert set(state.selector.scores("r1-0").values()) == {0.0}
        assert state.tally.zeros["r1-0"] == len(POOL)
        assert state.tally.failures == {"broken": len(POOL)}
        assert max(Counter(t.cell for t in executor.ran).values()) == 1

    @pytest.mark.parametrize("blame", [Blame.OPERATOR, Blame.BENCHMARK])
    def test_what_the_operator_must_fix_stops_the_run_and_loses_nothing(
        self, blame: Blame
    ) -> None:
        def act(trial: Trial) -> Result | None:
            return Result(fault=fault(blame)) if trial.task == "s2d-1" else None

        journal = MemoryJournal()
        opened(journal)
        with pytest.raises(StopRun, match=r"'plain', task 's2d-1': broken: it broke. Fix it."):
            go_on(journal, StubExecutor(act=act))
        state = fold(journal.events())
        assert state.stopped is not None
        assert "Fix it." in state.stopped["why"]
        assert go_on(journal).ended == {"why": "finished"}

    def test_a_round_with_under_half_of_its_outcomes_is_run_again_once_then_reported(
        self,
    ) -> None:
        def act(trial: Trial) -> Result | None:
            bad = trial.candidate == "r1-0" and not trial.task.endswith(("1", "2", "3"))
            return Result(fault=fault(Blame.INFRASTRUCTURE)) if bad else None

        journal, executor = MemoryJournal(), StubExecutor(act=act)
        opened(journal, rounds=2, candidates=1)
        state = go_on(journal, executor)
        trials = {t.trial for t in executor.ran if t.candidate == "r1-0"}
        assert trials == {0, 1}
        assert [turn.thin for turn in state.rounds] == [True, False]
        assert report(state).thin_rounds == (1,)

    def test_a_starting_harness_with_under_half_is_run_again_once(self) -> None:
        def act(trial: Trial) -> Result | None:
            bad = trial.candidate == "plain" and len(executor.ran) < 4 * len(POOL)
            return Result(fault=fault(Blame.INFRASTRUCTURE)) if bad else None

        journal, executor = MemoryJournal(), StubExecutor(act=act)
        opened(journal, rounds=1)
        state = go_on(journal, executor)
        assert sum(isinstance(s, float) for s in state.selector.scores("plain").values()) >= 10
        assert state.ended == {"why": "finished"}

    def test_an_unclear_fault_is_retried_and_then_scores_0(self) -> None:
        def act(trial: Trial) -> Result | None:
            bad = trial.candidate == "r1-0"
            return Result(fault=fault(Blame.DOUBTFUL)) if bad else None

        journal, executor = MemoryJournal(), StubExecutor(act=act)
        opened(journal, protocol="full", rounds=1, candidates=2)
        state = go_on(journal, executor)
        assert set(state.selector.scores("r1-0").values()) == {0.0}
        assert min(Counter(t.cell for t in executor.ran if t.candidate == "r1-0").values()) == 3

    def test_a_starting_harness_without_a_score_in_a_pool_stops_the_run_until_it_has_one(
        self,
    ) -> None:
        def act(trial: Trial) -> Result | None:
            bad = trial.candidate == "plain" and trial.task.startswith("s2d")
            return Result(fault=fault(Blame.INFRASTRUCTURE)) if bad else None

        journal, executor = MemoryJournal(), StubExecutor(act=act)
        opened(journal)
        with pytest.raises(StopRun, match="'plain' has no score in some pool: broken"):
            go_on(journal, executor)
        assert Counter(t.task for t in executor.ran if t.candidate == "plain")["s2d-0"] == 6
        state = go_on(journal)
        assert state.ended == {"why": "finished"}
        assert state.tally.missing == {}
        assert snapshot(fold(journal.events())) == snapshot(state)

    def test_a_round_of_which_nothing_came_back_stops_the_run_once(self) -> None:
        def act(trial: Trial) -> Result | None:
            bad = trial.candidate.startswith("r2-")
            return Result(fault=fault(Blame.INFRASTRUCTURE)) if bad else None

        journal = MemoryJournal()
        opened(journal)
        with pytest.raises(StopRun, match="no trial of round 2 has a score: broken"):
            go_on(journal, StubExecutor(act=act))
        state = go_on(journal, StubExecutor(act=act))
        assert state.ended == {"why": "finished"}
        assert [turn.thin for turn in state.rounds] == [False, True, False]

    @pytest.mark.parametrize("blame", list(Blame))
    def test_a_starting_harness_that_cannot_be_prepared_is_tried_anew_on_resume(
        self, blame: Blame
    ) -> None:
        journal = MemoryJournal()
        opened(journal)
        with pytest.raises(StopRun, match=r"starting harness '\w+' cannot be evaluated: broken"):
            go_on(journal, StubExecutor(refuse=lambda candidate: fault(blame)))
        assert go_on(journal).ended == {"why": "finished"}

    def test_trials_that_end_with_the_one_that_stops_the_run_are_kept(self) -> None:
        async def together() -> None:
            search = Search(journal, Together(capacity=8), StubProposer())
            with pytest.raises(StopRun):
                await search.run()

        journal = MemoryJournal()
        opened(journal)
        asyncio.run(together())
        assert fold(journal.events()).evaluating.trials == 7


class Together(StubExecutor):
    """Eight trials that end at the same instant, the first of them badly."""

    async def run(self, candidate: Candidate, trial: Trial) -> Result:
        self.ran.append(trial)
        first = len(self.ran) == 1
        while len(self.ran) < self.capacity:
            await asyncio.sleep(0)
        return Result(fault=fault(Blame.OPERATOR)) if first else Result(score=1.0)


class TestBudget:
    def test_a_cap_on_trials_is_never_passed_and_leaves_room_for_the_test(self) -> None:
        journal, executor = MemoryJournal(), StubExecutor()
        opened(journal, budget=Budget(trials=80))
        state = go_on(journal, executor)
        assert state.ended == {"why": "budget: trials"}
        assert state.evaluating.trials == len(executor.ran) == 80
        assert state.test is not None
        assert len(state.test.starts) == 3
        assert state.chosen is not None
        assert state.chosen["candidate"] is not None

    @pytest.mark.parametrize(
        "budget",
        [Budget(dollars=0.75), Budget(tokens=8000)],
        ids=["dollars", "tokens"],
    )
    def test_money_and_tokens_are_never_passed(self, budget: Budget) -> None:
        journal = MemoryJournal()
        opened(journal, budget=budget, rounds=20)
        state = go_on(journal, StubExecutor(capacity=8))
        spent = state.spending()
        assert state.ended is not None
        assert state.ended["why"].startswith("budget: ")
        assert spent.dollars <= (budget.dollars or 99)
        assert spent.tokens <= (budget.tokens or 10**9)
        assert spent.dollars > 0.7

    def test_preparing_counts_and_cannot_pass_a_cap(self) -> None:
        class Expensive(StubExecutor):
            async def prepare(self, candidate: Candidate) -> Prepared:
                return Prepared(usage=Usage(dollars=5.0))

        journal = MemoryJournal()
        opened(journal, budget=Budget(dollars=22.0), candidates=9)
        assert go_on(journal, Expensive()).spending().dollars <= 22

    def test_preparing_that_fails_for_want_of_budget_ends_the_run_and_is_counted(self) -> None:
        class Capped(StubExecutor):
            async def prepare(self, candidate: Candidate) -> Prepared:
                return Prepared(fault=fault(Blame.INFRASTRUCTURE), usage=Usage(tokens_in=42))

        journal = MemoryJournal()
        opened(journal, budget=Budget(tokens=30))
        state = go_on(journal, Capped())
        assert state.ended == {"why": "budget: tokens"}
        assert state.spending().tokens == 42

    def test_failed_attempts_have_a_price(self) -> None:
        def act(trial: Trial) -> Result | None:
            bad = trial.attempt < 2
            usage = Usage(dollars=0.3 if bad else 0.01)
            if bad:
                return Result(fault=fault(Blame.INFRASTRUCTURE), usage=usage)
            return Result(score=1.0, usage=usage)

        journal = MemoryJournal()
        opened(journal, budget=Budget(dollars=3.0))
        assert go_on(journal, StubExecutor(act=act, capacity=4)).spending().dollars <= 3.0

    def test_the_price_of_a_proposal_is_learned(self) -> None:
        class DearProposer(StubProposer):
            async def propose(self, view: View, count: int) -> Any:
                proposals = tuple(await super().propose(view, count))
                return Proposed(proposals=proposals, usage=Usage(dollars=4.0))

        journal = MemoryJournal()
        opened(journal, budget=Budget(dollars=10.0), rounds=9)
        state = go_on(journal, proposer=DearProposer())
        assert state.spending().dollars <= 10
        assert state.test is not None
        assert len(state.test.starts) == 3

    def test_before_any_price_is_known_trials_run_alone(self) -> None:
        def act(trial: Trial) -> Result | None:
            if len(executor.ran) == 1:
                assert executor.most == 1
            return Result(score=1.0, usage=Usage(tokens_in=90))

        journal, executor = MemoryJournal(), StubExecutor(act=act, capacity=8)
        opened(journal, budget=Budget(tokens=170))
        assert go_on(journal, executor).spending().tokens <= 170

    def test_a_proposer_that_hangs_is_ended_by_the_hours(self) -> None:
        class Hanging(StubProposer):
            async def propose(self, view: View, count: int) -> Any:
                await asyncio.sleep(1000)

        journal = MemoryJournal()
        opened(journal, budget=Budget(hours=2 / 3600))
        state = go_on(journal, StubExecutor(capacity=16), Hanging())
        assert state.ended == {"why": "budget: hours"}
        assert "took longer than" in state.rounds[0].note

    def test_hours_end_a_run(self) -> None:
        now = [0.0]

        def act(trial: Trial) -> Result | None:
            now[0] += 60
            return None

        journal = MemoryJournal(clock=lambda: now[0])
        opened(journal, budget=Budget(hours=1.0))
        state = go_on(journal, StubExecutor(act=act, capacity=1))
        assert state.ended == {"why": "budget: hours"}
        assert 60 <= state.evaluating.trials <= 61

    def test_hours_leave_time_for_the_test(self) -> None:
        now = [0.0]

        def act(trial: Trial) -> Result | None:
            now[0] += 60
            return Result(score=1.0, usage=Usage(seconds=60))

        journal = MemoryJournal(clock=lambda: now[0])
        opened(journal, budget=Budget(hours=1.5), rounds=9)
        state = go_on(journal, StubExecutor(act=act, capacity=1))
        assert state.ended == {"why": "budget: hours"}
        assert state.test is not None
        assert [state.test.estimate(name).value for name in state.test.starts] == [1, 1, 1]
        assert state.spending().hours <= 1.5 + 1 / 60

    def test_one_dear_trial_does_not_end_the_run_for_the_sake_of_the_test(self) -> None:
        def act(trial: Trial) -> Result | None:
            dear = trial.cell == ("plain", "law-0", 0)
            return Result(score=1.0, usage=Usage(dollars=0.2 if dear else 0.01))

        journal = MemoryJournal()
        opened(journal, budget=Budget(dollars=2.5))
        assert go_on(journal, StubExecutor(act=act)).ended == {"why": "finished"}

    def test_a_budget_that_ends_in_phase_0_leaves_nobody_to_choose(self) -> None:
        journal = MemoryJournal()
        opened(journal, budget=Budget(tokens=1500))
        state = go_on(journal)
        assert state.ended == {"why": "budget: tokens"}
        assert state.chosen == {"candidate": None, "why": "no candidate has an estimate"}

    def test_a_cap_that_cannot_pay_for_phase_0_and_the_test_is_refused(self) -> None:
        with pytest.raises(ConfigError, match=r"a budget of 57 trials is too small.* need 58"):
            opened(MemoryJournal(), budget=Budget(trials=57))


@dataclass
class Offering(StubProposer):
    """Hands over what it was given."""

    offers: Sequence[object] = ()

    async def propose(self, view: View, count: int) -> Sequence[Proposal]:
        self.seen.append(view)
        offer = self.offers[view.round - 1]
        if isinstance(offer, BaseException):
            raise offer
        return offer  # type: ignore[return-value]


def proposal(text: str, name: str = "new", **fields: object) -> Proposal:
    return Proposal(files={"harness.py": text.encode()}, name=name, **fields)  # type: ignore[arg-type]


class TestProposals:
    def run(self, *offers: object, candidates: int = 2) -> tuple[MemoryJournal, Offering]:
        journal, proposer = MemoryJournal(), Offering(offers=offers)
        opened(journal, rounds=len(offers), candidates=candidates)
        go_on(journal, proposer=proposer)
        return journal, proposer

    def test_a_copy_of_an_earlier_candidate_is_refused_without_a_trial(self) -> None:
        plain = STARTS["plain"]["harness.py"].decode()
        journal, _ = self.run([proposal(plain), proposal("x = 1")], [proposal("x = 1", "same")])
        state = fold(journal.events())
        assert state.candidates["new"].status == Status.REFUSED
        assert state.candidates["new"].reason == "it is a copy of 'plain'."
        assert state.candidates["same"].reason == "it is a copy of 'new-2'."
        assert state.selector.candidates == ("new-2",)

    def test_names_are_made_unique_and_fit_for_files(self) -> None:
        offers = [proposal("a", "../x y"), proposal("b", "plain")], [proposal("c", "../x y")]
        journal, _ = self.run(*offers)
        assert list(fold(journal.events()).candidates)[2:] == ["x-y", "plain-2", "x-y-2"]

    def test_files_that_make_no_candidate_are_noted(self) -> None:
        bad = Proposal(files={"../up.py": b""}, name="bad")
        orphan = proposal("x", "orphan", parents=("nobody",))
        journal, _ = self.run([bad, orphan], [proposal("x = 2")])
        state = fold(journal.events())
        assert "'bad': '../up.py' is not a valid path" in state.rounds[0].note
        assert "orphan: the parent 'nobody' is unknown" in state.rounds[0].note
        assert state.candidates["orphan"].candidate.parents == ()

    def test_a_proposer_that_raises_stops_the_run_and_its_round_is_proposed_again(self) -> None:
        journal = MemoryJournal()
        opened(journal, rounds=2)
        broken = Offering(offers=[ValueError("no idea")] * 2)
        with pytest.raises(
            StopRun, match=r"round 1: [a-z_]+\.py, line \d+: ValueError: no idea\. Fix it"
        ):
            go_on(journal, proposer=broken)
        assert [view.round for view in broken.seen] == [1, 1, 1]
        assert snapshot(go_on(journal)) == snapshot(whole_run(rounds=2))

    def test_a_proposer_that_fails_once_is_asked_again(self) -> None:
        class Shaky(StubProposer):
            async def propose(self, view: View, count: int) -> Sequence[Proposal]:
                if not self.seen:
                    self.seen.append(view)
                    raise ConnectionError("try later")
                return await super().propose(view, count)

        journal = MemoryJournal()
        opened(journal)
        assert snapshot(go_on(journal, proposer=Shaky())) == snapshot(whole_run())

    @pytest.mark.parametrize(
        "offer",
        [
            [Proposal(files={"x" * 300: b""}, name="x")],
            [Proposal(files={"a\ud800": b""}, name="x")],
            [Proposal(files={"a\nb": b""}, name="x")],
            [Proposal(files={"a": "text"}, name="x")],  # type: ignore[dict-item]
            Proposed(proposals=(), transcript="\ud800"),
        ],
    )
    def test_odd_proposals_cost_a_round(self, offer: object) -> None:
        journal, _ = self.run(offer, [proposal("x = 1")])
        assert fold(journal.events()).ended == {"why": "finished"}

    @pytest.mark.parametrize(
        "offer",
        [
            "rubbish",
            SystemExit(3),
            [Proposal(files={"a": b""}, name="x", parents=3)],  # type: ignore[arg-type]
            Proposed(proposals=(), usage=None),  # type: ignore[arg-type]
        ],
    )
    def test_rubbish_stops_the_run(self, offer: object) -> None:
        with pytest.raises(StopRun, match="the proposer failed 3 times in round 1"):
            self.run(offer, [proposal("x = 1")])

    def test_three_empty_rounds_in_a_row_stop_the_run(self) -> None:
        with pytest.raises(StopRun, match=r"3 rounds in a row had no candidate.*nothing was"):
            self.run(*[[]] * 5)

    def test_more_than_was_asked_for_is_left_out(self) -> None:
        journal, _ = self.run([proposal(f"x = {i}", f"c{i}") for i in range(4)])
        state = fold(journal.events())
        assert state.selector.candidates == ("c0", "c1")
        assert state.rounds[0].note == "4 candidates were proposed, but 2 were requested."

    def test_usage_and_transcript_are_kept_apart_from_evaluating(self) -> None:
        handed = Proposed(
            proposals=(proposal("x = 1"),), usage=Usage(tokens_in=70, dollars=2), transcript="hm"
        )
        journal, _ = self.run(handed)
        state = fold(journal.events())
        assert (state.proposing.tokens, state.proposing.dollars) == (70, 2.0)
        assert journal.get(state.rounds[0].transcript or "") == b"hm"

    def test_a_failed_check_is_recorded_and_never_evaluated(self) -> None:
        def refuse(candidate: Candidate) -> Fault | None:
            return fault(Blame.CANDIDATE) if candidate.name == "r1-1" else None

        journal, executor = MemoryJournal(), StubExecutor(refuse=refuse)
        opened(journal)
        state = go_on(journal, executor)
        assert state.candidates["r1-1"].reason == "check failed: it broke."
        assert "r1-1" not in {trial.candidate for trial in executor.ran}


def test_a_run_whose_sealed_test_failed_can_be_looked_at() -> None:
    def act(trial: Trial) -> Result | None:
        sealed = trial.split == "test"
        return Result(fault=fault(Blame.INFRASTRUCTURE)) if sealed else None

    journal = MemoryJournal()
    opened(journal)
    state = go_on(journal, StubExecutor(act=act))
    assert state.ended == {"why": "finished"}
    assert {row.test for row in report(state).candidates} == {None}


class TestTheView:
    def test_it_has_what_was_told_and_nothing_of_the_test(self) -> None:
        journal, proposer = MemoryJournal(), StubProposer()
        opened(journal)
        go_on(journal, proposer=proposer)
        view = proposer.seen[-1]
        assert view.tasks == POOL.tasks
        assert not set(view.tasks) & set(TEST.tasks)
        assert {s.candidate.name for s in view.standings} == {
            *("plain", "terse", "r1-0", "r1-1", "r2-0", "r2-1")
        }
        standing = view.standing("r2-0")
        assert standing.estimate is not None
        assert len(standing.outcomes) == standing.estimate.tasks == 9
        assert view.trace("r2-0", next(iter(standing.outcomes))) is not None
        assert view.best is not None
        assert len({view.seed for view in proposer.seen}) == 3

    def test_before_the_first_round_the_best_start_is_the_parent(self) -> None:
        journal, proposer = MemoryJournal(), StubProposer()
        opened(journal)
        state = go_on(journal, proposer=proposer)
        first = proposer.seen[0]
        best = max(("plain", "terse"), key=lambda name: state.selector.estimate(name).value)
        assert (first.best, first.parent) == (None, best)

    def test_overlapping_proposals_know_one_round_less(self) -> None:
        journal, proposer = MemoryJournal(), StubProposer()
        opened(journal, overlap=True)
        go_on(journal, proposer=proposer)
        pending = [
            [s.candidate.round for s in v.standings if s.status == "ready"] for v in proposer.seen
        ]
        assert pending == [[], [1, 1], [2, 2]]


def test_an_interrupted_run_says_so_and_can_be_resumed() -> None:
    journal = MemoryJournal()
    opened(journal)

    async def interrupted() -> None:
        executor = StubExecutor()
        search = Search(journal, executor, StubProposer())
        task = asyncio.create_task(search.run())
        while len(executor.ran) < 30:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert executor.now <= executor.capacity

    asyncio.run(interrupted())
    assert fold(journal.events()).stopped == {"why": "interrupted"}
    expected = snapshot(whole_run())
    assert snapshot(go_on(journal)) == expected


def test_a_journal_whose_draws_do_not_follow_from_its_outcomes_is_refused() -> None:
    journal = MemoryJournal()
    opened(journal)
    go_on(journal)
    events = list(journal.events())
    flipped: list[Event] = []
    for event in events:
        if event["type"] == "outcome" and event["candidate"] == "plain":
            event = {**event, "score": 1 - event["score"]}
        flipped.append(event)
    with pytest.raises(EventError, match="differ from the outcomes before it"):
        fold(flipped)
    alone = [event for event in events if event["type"] != "outcome"]
    scores = next(event for event in alone if event["type"] == "told")["scores"]["plain"]
    scores[0] = 1 - scores[0]
    with pytest.raises(EventError, match="seal does not match"):
        fold(alone)


def test_a_fold_needs_no_outcome_that_is_summed_up_later() -> None:
    journal = MemoryJournal()
    opened(journal)
    state = go_on(journal, StubExecutor(faults=0.3))
    alone = [e for e in journal.events() if e["type"] not in ("outcome", "failed")]
    assert snapshot(fold(alone)) == snapshot(state)
    assert fold(alone).durations == state.durations


def test_an_outcome_that_was_not_asked_is_refused() -> None:
    journal = MemoryJournal()
    opened(journal)
    go_on(journal)
    events = list(journal.events())
    at = next(n for n, e in enumerate(events) if e["type"] == "outcome")
    with pytest.raises(EventError, match="is not asked for, or already known"):
        fold([*events[: at + 1], {**events[at], "seq": at + 1}])


def test_several_trials_per_task() -> None:
    journal, executor = MemoryJournal(), StubExecutor()
    opened(journal, trials=2, rounds=1, candidates=1)
    state = go_on(journal, executor)
    assert {t.trial for t in executor.ran} == {0, 1}
    assert state.test is not None
    tested = Counter(t.cell for t in executor.ran if t.split == "test")
    assert len(tested) == 3 * len(TEST) * 2


def test_trials_of_a_prepared_candidate_get_its_state() -> None:
    journal, executor = MemoryJournal(), StubExecutor()
    opened(journal)
    go_on(journal, executor)
    trial = next(t for t in executor.ran if t.candidate == "r1-0")
    assert journal.get(trial.state or "") == b'"r1-0 has learned"'
    assert replace(trial, attempt=1).cell == trial.cell


def test_what_a_check_printed_is_kept() -> None:
    journal = MemoryJournal()
    opened(journal, rounds=1)
    go_on(journal)
    checked = [event for event in journal.events() if event["type"] == "checked"]
    assert journal.get(checked[0]["trace"]) == b'"plain imported"'
