"""Faults that a candidate may bring about: repeated, then decided by a control."""

import asyncio
import math
from dataclasses import dataclass, field

import pytest

from coevolve.core.outcomes import Missing, Usage
from coevolve.errors import StopRun
from coevolve.search.candidate import Candidate
from coevolve.search.effects import fold
from coevolve.search.journal import MemoryJournal
from coevolve.search.loop import Search
from coevolve.search.run_state import RunState
from coevolve.search.trials import Blame, Fault, Prepared, Result, Trial
from tests.search.stubs import STARTS, StubExecutor, StubProposer, beginning, opened

LATE = Fault(blame=Blame.INFRASTRUCTURE, kind="Timeout", reason="the judge did not answer")
DOWN = Fault(blame=Blame.INFRASTRUCTURE, kind="Timeout", reason="the judge is down", shared=True)


@dataclass
class Dropping(StubExecutor):
    """The first candidate of every round loses every other task.

    `down` loses so many attempts of controls, `broken` those on some tasks, `flaky` their first
    ones. If `recovers`, the candidate gets answers too after a control did.
    """

    down: float = 0
    recovers: bool = False
    broken: tuple[str, ...] = ()
    flaky: int = 0
    fault: Fault = LATE
    controls: list[Trial] = field(default_factory=list)
    answered: bool = False

    async def run(self, candidate: Candidate, trial: Trial) -> Result:
        searching = any(t.candidate not in STARTS for t in self.ran)
        if trial.candidate in STARTS and searching:
            self.controls.append(trial)
            self.ran.append(trial)
            down = len(self.controls) <= self.down
            if down or trial.task in self.broken or trial.attempt < self.flaky:
                return Result(fault=LATE, usage=Usage(tokens_in=7))
            self.answered = True
            return Result(score=1.0, usage=Usage(tokens_in=7))
        dropped = trial.candidate.endswith("-0") and int(trial.task.rpartition("-")[2]) % 2
        if dropped and not (self.recovers and self.answered):
            self.ran.append(trial)
            return Result(fault=self.fault)
        return await super().run(candidate, trial)


def searched(executor: StubExecutor) -> tuple[MemoryJournal, RunState]:
    journal = MemoryJournal()
    opened(journal, test=None)
    state = asyncio.run(Search(journal, executor, StubProposer(), pause=0.001).run())
    return journal, state


def lost(state: RunState, name: str) -> list[float | Missing]:
    scores = state.selector.scores(name)
    return [s for task, s in scores.items() if int(task.rpartition("-")[2]) % 2]


def test_a_fault_that_only_one_candidate_meets_scores_0_after_six_attempts() -> None:
    executor = Dropping()
    journal, state = searched(executor)
    assert set(lost(state, "r1-0")) == {0.0}
    attempts = [t.attempt for t in executor.ran if t.candidate == "r1-0"]
    assert max(attempts) == 5
    faults = [e["fault"] for e in journal.events() if e["type"] == "outcome" and "fault" in e]
    assert {fault["blame"] for fault in faults} == {"doubtful"}
    assert "but plain got an answer" in faults[0]["reason"]


def test_a_control_runs_each_task_in_doubt_that_a_starting_harness_has_a_score_on() -> None:
    executor = Dropping()
    _, state = searched(executor)
    assert executor.controls
    for control in executor.controls:
        assert int(control.task.rpartition("-")[2]) % 2
        assert not isinstance(state.selector.scores(control.candidate)[control.task], Missing)


def test_a_control_has_as_many_attempts_as_a_trial() -> None:
    executor = Dropping(flaky=5)
    _, state = searched(executor)
    assert set(lost(state, "r1-0")) == {0.0}
    assert {t.attempt for t in executor.controls} == {0, 1, 2, 3, 4, 5}


def test_a_task_that_fails_for_starting_harnesses_too_is_missing_alone() -> None:
    _, whole = searched(Dropping())
    first = next(
        task for task in whole.selector.scores("r1-0") if int(task.rpartition("-")[2]) % 2
    )
    _, state = searched(Dropping(broken=(first,)))
    scores = state.selector.scores("r1-0")
    assert isinstance(scores[first], Missing)
    others = [s for task, s in scores.items() if task != first and int(task[-1]) % 2]
    assert set(others) == {0.0}


def test_a_service_that_the_candidate_keeps_busy_for_the_first_control_scores_0() -> None:
    """Its second control is answered; the first one runs again."""
    executor = Dropping(down=TWO_CONTROLS / 2)
    _, state = searched(executor)
    assert set(lost(state, "r1-0")) == {0.0}
    first = executor.controls[0].task
    assert sum(t.task == first for t in executor.controls[: TWO_CONTROLS + 1]) >= 7


TWO_CONTROLS = 12
"""Attempts of two controls that get no answer."""


def test_an_outage_is_waited_for_and_costs_nobody_anything() -> None:
    _, undisturbed = searched(StubExecutor())
    journal, state = searched(Dropping(down=3 * TWO_CONTROLS, recovers=True))
    assert not any(isinstance(score, Missing) for score in lost(state, "r1-0"))
    for name in undisturbed.selector.candidates:
        assert state.estimate(name) == undisturbed.estimate(name)
    spent = fold(journal.events()).spending().tokens
    assert spent == undisturbed.spending().tokens + 7 * (3 * TWO_CONTROLS + 2)


def test_a_trial_that_fails_again_after_an_outage_scores_0() -> None:
    executor = Dropping(down=3 * TWO_CONTROLS)
    journal, state = searched(executor)
    assert set(lost(state, "r1-0")) == {0.0}
    assert max(t.attempt for t in executor.ran if t.candidate == "r1-0") == 8
    reasons = [e["fault"]["reason"] for e in journal.events() if e.get("fault")]
    assert any("after plain got an answer" in reason for reason in reasons)


def test_an_outage_of_an_hour_stops_the_run_and_decides_nothing() -> None:
    journal = MemoryJournal()
    opened(journal, test=None)
    with pytest.raises(StopRun, match="for an hour either") as stopped:
        asyncio.run(Search(journal, Dropping(down=math.inf), StubProposer(), pause=1e-5).run())
    assert stopped.value.resumable
    assert not any(e["type"] == "outcome" and e.get("fault") for e in journal.events())
    resumed = asyncio.run(Search(journal, StubExecutor(), StubProposer(), pause=0.001).run())
    _, undisturbed = searched(StubExecutor())
    for name in undisturbed.selector.candidates:
        assert resumed.estimate(name) == undisturbed.estimate(name)


def test_trials_in_doubt_are_repeated_one_candidate_at_a_time() -> None:
    def act(trial: Trial) -> Result | None:
        lost = trial.candidate not in STARTS and trial.attempt < 3
        return Result(fault=LATE) if lost else None

    executor = Dropping(capacity=4, act=act)
    searched(executor)
    repeated = [t.candidate for t in executor.ran if t.candidate[:3] == "r1-" and t.attempt > 2]
    assert set(repeated) == {"r1-0", "r1-1"}
    assert repeated == sorted(repeated, key=repeated.index)


def test_a_shared_fault_is_missing_after_three_attempts_without_a_control() -> None:
    executor = Dropping(fault=DOWN)
    _, state = searched(executor)
    assert all(isinstance(score, Missing) for score in lost(state, "r1-0"))
    assert executor.controls == []
    assert max(trial.attempt for trial in executor.ran) == 2


def test_repeated_trials_run_after_all_others() -> None:
    executor = Dropping(capacity=1)
    searched(executor)
    tail = [t for t in executor.ran if t.candidate.startswith("r1-")]
    repeated = [n for n, t in enumerate(tail) if t.attempt > 2]
    assert repeated[0] > max(n for n, t in enumerate(tail) if t.candidate == "r1-1")


@pytest.mark.parametrize("kept", [0.3, 0.5, 0.7, 0.9])
def test_a_search_killed_in_doubt_ends_alike(kept: float) -> None:
    journal, state = searched(Dropping())
    part = beginning(journal, int(kept * len(list(journal.events()))))
    again = asyncio.run(Search(part, Dropping(), StubProposer(), pause=0.001).run())
    assert again.chosen == state.chosen
    names = state.selector.candidates
    assert [again.estimate(name) for name in names] == [state.estimate(name) for name in names]


@dataclass
class Unprepared(StubExecutor):
    """The first candidate of every round is not prepared in its first attempts.

    `down` loses the preparations of starting harnesses too, once candidates are tried.
    """

    failing: int = 99
    down: bool = False
    tried: list[str] = field(default_factory=list)

    async def prepare(self, candidate: Candidate) -> Prepared:
        self.tried.append(candidate.name)
        down = self.down and any(name not in STARTS for name in self.tried)
        failed = candidate.name.endswith("-0") and self.tried.count(candidate.name) <= self.failing
        if failed or down:
            return Prepared(fault=LATE, usage=Usage(tokens_in=7))
        return await super().prepare(candidate)


def test_a_preparation_that_fails_for_one_candidate_only_refuses_it() -> None:
    executor = Unprepared()
    journal, state = searched(executor)
    assert executor.tried.count("r1-0") == 6
    assert "but plain got an answer" in state.candidates["r1-0"].reason
    assert state.candidates["r1-1"].reason == ""
    prepared = {e["candidate"]: e for e in journal.events() if e["type"] == "prepared"}
    control = 5
    assert prepared["r1-0"]["usage"] == Usage(tokens_in=6 * 7 + control).row


def test_a_preparation_that_works_a_minute_later_refuses_nobody() -> None:
    _, state = searched(Unprepared(failing=5))
    assert all(known.reason == "" for known in state.candidates.values())


def test_an_outage_during_a_preparation_stops_the_run_and_refuses_nobody() -> None:
    _, undisturbed = searched(StubExecutor())
    journal = MemoryJournal()
    opened(journal, test=None)
    with pytest.raises(StopRun, match="harness 'plain' has failed for an hour too") as stopped:
        asyncio.run(Search(journal, Unprepared(down=True), StubProposer(), pause=1e-5).run())
    assert stopped.value.resumable
    resumed = asyncio.run(Search(journal, StubExecutor(), StubProposer(), pause=0.001).run())
    assert all(known.reason == "" for known in resumed.candidates.values())
    assert resumed.selector.best() == undisturbed.selector.best()
