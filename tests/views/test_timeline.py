"""A run over time: numbers by hand, and the same whether events come one by one or at once."""

import base64
import json
import math
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from coevolve.core.outcome_table import GROUPS
from coevolve.core.outcomes import Usage
from coevolve.errors import EventError
from coevolve.past_results import read_past
from coevolve.search.budget import Budget
from coevolve.search.effects import apply
from coevolve.search.journal import MemoryJournal, Recorder
from coevolve.search.loop import import_past
from coevolve.search.run_state import RunState
from coevolve.search.trials import Blame, Fault, Result, Trial
from coevolve.views.details import round_details
from coevolve.views.outcome_grid import (
    FAILED,
    FAULTY,
    KINDS,
    MISSING,
    NOT_SAMPLED,
    OUTSIDE,
    PARTIAL,
    PAST,
    SOLVED,
    WAITING,
)
from coevolve.views.outcome_rows import outcome_rows
from coevolve.views.spend_parts import spend_parts
from coevolve.views.timeline import Timeline
from tests.effort import effort
from tests.search.stubs import POOL, StubExecutor, beginning, cuts, go_on, opened
from tests.views.conftest import Ended
from tests.views.small_run import written


@pytest.fixture(scope="module")
def small() -> Timeline:
    return Timeline.of(written())


def test_the_best_so_far_is_what_was_known_then(small: Timeline) -> None:
    stones = small.milestones
    assert [(one.kind, one.round, one.best) for one in stones] == [
        ("phase 0", 0, "plain"),
        ("round", 1, "r1-0"),
        ("choice", 1, "r1-0"),
    ]
    assert [one.estimate and one.estimate["value"] for one in stones] == [0.5, 1.0, 1.0]
    assert [(one.evaluations, one.trials) for one in stones[:2]] == [(0, 8), (8, 16)]
    assert stones[0].dollars == 8 * 0.25
    # The proposal, and two attempts at the lost trial that cost nothing.
    assert stones[1].dollars == 2.0 + 1.0 + 7 * 0.25


def test_the_groups_of_solvability_after_every_round(small: Timeline) -> None:
    # Over the two starts a, b, c and d are solved by 1, 1/2, 0 and 0 of the candidates. After
    # round 1 it is 3/4, 2/3 (one outcome is missing), 1/4 and 1/4.
    counts = [[one.groups[group] for group in GROUPS] for one in small.milestones]
    assert counts == [[2, 0, 1, 1, 0], [0, 2, 1, 1, 0], [0, 2, 1, 1, 0]]


def test_progress_has_every_candidate_in_order(small: Timeline) -> None:
    found = small.snapshot().progress
    rows = [(one.name, one.round, one.value, one.exact, one.test) for one in found.candidates]
    assert rows[:3] == [
        ("plain", 0, 0.5, True, 0.0),
        ("terse", 0, 0.25, True, 0.0),
        ("r1-0", 1, 1.0, True, 0.0),
    ]
    assert rows[3][:3] == ("r1-1", 1, 0.0)
    assert [one.name for one in found.candidates if one.best] == ["r1-0"]
    assert [(one.candidate, one.value, one.today) for one in found.best][:2] == [
        ("plain", 0.5, 0.5),
        ("r1-0", 1.0, 1.0),
    ]


def test_a_cell_says_what_became_of_its_trials(small: Timeline) -> None:
    grid = small.grid()
    assert [row.name for row in grid.candidates] == ["plain", "terse", "r1-0", "r1-1"]
    assert (grid.codes & KINDS).tolist() == [
        [SOLVED, SOLVED, FAILED, FAILED],
        [SOLVED, FAILED, FAILED, FAILED],
        [SOLVED] * 4,
        [FAILED, MISSING, FAILED, FAILED],
    ]
    assert grid.codes[3, 2] & FAULTY
    assert not grid.codes[3, 0] & FAULTY
    assert grid.solvability.tolist() == pytest.approx([3 / 4, 2 / 3, 1 / 4, 1 / 4])
    assert grid.seen.tolist() == [4, 3, 4, 4]
    assert small.grid("test").codes.tolist() == [[FAILED], [FAILED], [FAILED], [NOT_SAMPLED]]


def test_a_matrix_is_compact_json_that_can_be_read_back(small: Timeline) -> None:
    grid = small.grid()
    data = json.loads(json.dumps(grid.to_json()))
    codes = np.frombuffer(base64.b64decode(data["codes"]), dtype=np.uint8)
    assert codes.reshape(4, 4).tolist() == grid.codes.tolist()
    assert (data["partial"], data["trials"]) == ("", None)


def test_the_score_of_a_cell_is_the_mean_of_its_trials() -> None:
    journal = MemoryJournal()
    opened(journal, trials=3, rounds=1, rescore=True)

    def act(trial: Trial) -> Result | None:
        if trial.candidate == "plain":
            return Result(score=[1.0, 0.0, 0.25][trial.trial])
        return None

    timeline = Timeline.of_events(_run(journal, act).events())
    grid = timeline.grid()
    assert set((grid.codes[0] & KINDS).tolist()) == {PARTIAL}
    assert set(grid.scores[0].tolist()) == {(1.0 + 0.0 + 0.25) / 3}
    assert set(grid.trials[0].tolist()) == {3}
    data = grid.to_json()
    units = np.frombuffer(base64.b64decode(data["partial"]), dtype="<u2") / 65_535
    partial = grid.scores[(grid.codes & KINDS) == PARTIAL]
    assert np.allclose(units, partial, atol=1e-5)
    assert data["trials"] is not None


def _run(journal: MemoryJournal, act: object) -> MemoryJournal:
    go_on(journal, StubExecutor(act=act))  # type: ignore[arg-type]
    return journal


def test_outcomes_after_the_choice_are_marked(ended: Ended) -> None:
    timeline = Timeline.of(ended.journal)
    grid = timeline.grid()
    best = [row.name for row in grid.candidates].index(
        str(ended.state.chosen and ended.state.chosen["candidate"])
    )
    drawn = {o.task for o in outcome_rows(ended.journal.events())
             if o.candidate == grid.candidates[best].name and o.split == "validation"}  # fmt: skip
    outside = [bool(code & OUTSIDE) for code in grid.codes[best].tolist()]
    assert outside == [task not in drawn for task in grid.tasks]
    assert not (np.delete(grid.codes, best, axis=0) & OUTSIDE).any()


def test_a_trial_that_ran_once_more_counts_with_its_last_outcome() -> None:
    journal = MemoryJournal()
    opened(journal, rounds=1)
    lost = Fault(blame=Blame.INFRASTRUCTURE, kind="sandbox", reason="did not start", shared=True)
    seen: dict[str, int] = {}

    def act(trial: Trial) -> Result | None:
        """Every trial of a starting harness is lost at first."""
        if trial.candidate != "plain" or trial.split != "validation":
            return None
        seen[trial.task] = seen.get(trial.task, 0) + 1
        return Result(fault=lost) if seen[trial.task] <= 3 else Result(score=1.0)

    timeline = Timeline.of(_run(journal, act))
    assert any(event["type"] == "reopened" for event in journal.events())
    assert set((timeline.grid().codes[0] & KINDS).tolist()) == {SOLVED}
    kinds = [one.kind for one in timeline.snapshot().failures.incidents]
    assert kinds == ["rerun"]
    live = Timeline(next(journal.events()))
    for event in journal.events(1):
        live.follow(event)
    assert live.snapshot().to_json() == timeline.snapshot().to_json()


def test_probabilities_of_the_draws_are_those_recorded(ended: Ended) -> None:
    grid = Timeline.of(ended.journal).grid()
    names = [row.name for row in grid.candidates]
    for draw in round_details(1, ended.state, ended.journal).draws:
        found = grid.draw(names.index("r1-0"), grid.tasks.index(draw.task))
        assert found is not None
        assert float(found[0].probabilities[found[1]]) == draw.probability
    assert grid.draw(names.index("plain"), 0) is None


def test_spending_adds_up_to_the_ledgers(ended: Ended) -> None:
    found = Timeline.of(ended.journal).snapshot().spend
    parts = spend_parts(ended.journal.events())
    for part, ledger in parts.ledgers.items():
        total = found.totals.get(part)
        if total is None:
            assert not ledger.trials
            continue
        assert (total.trials, total.attempts) == (ledger.trials, ledger.failed_attempts)
        assert (total.tokens, total.dollars) == (ledger.tokens, ledger.dollars)
        curve = found.curves[part]
        assert curve["trials"][-1] == ledger.trials
        assert list(curve["tokens"]) == sorted(curve["tokens"])
    assert (
        sum(one.evaluating.trials for one in found.rounds) == 40 + ended.state.selector.evaluations
    )
    each = [one.searching.trials + one.closing.trials for one in found.candidates]
    assert sum(each) == ended.state.evaluating.trials


def test_spending_by_round_and_by_candidate(small: Timeline) -> None:
    found = small.snapshot().spend
    assert [(one.round, one.evaluating.trials, one.proposing.tokens) for one in found.rounds] == [
        (0, 8, 0),
        (1, 8, 1200),
    ]
    costs = {one.candidate: one for one in found.candidates}
    assert costs["r1-0"].searching.dollars == 1.0
    assert costs["r1-1"].searching.attempts == 2
    assert costs["r1-1"].searching.dollars == 0.75
    assert costs["r1-0"].closing.trials == 1
    assert costs["r1-1"].closing.trials == 0


def test_the_descent_of_candidates(small: Timeline) -> None:
    found = small.snapshot().lineage
    nodes = {node.name: node for node in found.nodes}
    assert [(node.generation, node.line) for node in found.nodes] == [
        (0, 0.0),
        (0, 1.0),
        (1, 0.0),
        (1, 1.0),
    ]
    assert nodes["r1-1"].parents == ("terse", "plain")
    assert found.edges == [
        ("plain", "r1-0", True),
        ("terse", "r1-1", True),
        ("plain", "r1-1", False),
    ]
    assert {name for name, node in nodes.items() if node.ancestor} == {"plain", "r1-0"}


def test_failures_by_kind_and_blame(small: Timeline) -> None:
    found = small.snapshot().failures
    rows = {row.kind: row for row in found.faults}
    assert (rows["sandbox"].missing, rows["sandbox"].retried) == (1, 2)
    assert (rows["sandbox"].blame, rows["sandbox"].candidates) == ("infrastructure", 1)
    assert (rows["time-limit"].zeros, rows["time-limit"].blame) == (1, "candidate")
    assert rows["time-limit"].reasons == (("ran longer than 60 s", 1),)
    assert [(one.round, one.missing, one.zeros, one.retried) for one in found.rounds] == [
        (0, 0, 0, 0),
        (1, 1, 1, 2),
    ]
    assert [(one.kind, one.text) for one in found.incidents] == [("note", "two ideas")]


def test_how_sure_the_choice_is(small: Timeline, ended: Ended) -> None:
    found = small.snapshot().certainty
    assert (found.best, found.compared, found.probability) == ("r1-0", 3, None)
    assert {rival.candidate: rival.difference for rival in found.rivals} == {
        "plain": 0.5,
        "terse": 0.75,
        "r1-1": 1.0,
    }
    # Four equal differences have no variance to estimate, so that interval is unknown.
    assert [rival.candidate for rival in found.open] == ["r1-1"]
    assert found.short == "1 of 3 others may be better"
    sampled = Timeline.of(ended.journal).snapshot().certainty
    for rival in sampled.rivals:
        compared = ended.state.selector.compare(sampled.best, rival.candidate)
        assert (rival.difference, rival.low, rival.high) == (
            compared.value,
            compared.low,
            compared.high,
        )


def test_a_joint_model_knows_the_probability_of_being_best() -> None:
    journal = MemoryJournal()
    opened(journal, protocol="joint", rounds=2)
    state = go_on(journal)
    found = Timeline.of(journal).snapshot()
    sure = state.selector.best().confidence
    assert sure is not None
    assert (found.certainty.probability, found.certainty.regret) == (sure.probability, sure.regret)
    assert all(one.probability is not None for one in found.frontier.milestones if one.round)
    chances = [rival.probability for rival in found.certainty.rivals]
    assert chances == sorted(chances, key=lambda chance: -(chance or 0))


OPTIONS = {
    "plain": {},
    "adaptive": {"protocol": "adaptive", "rescore": True},
    "overlap": {"overlap": True, "trials": 2},
    "in flight": {"in_flight": 3, "rounds": 4, "candidates": 1},
    "budget": {"budget": Budget(trials=70), "test": None},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_one_event_at_a_time_or_all_at_once(options: dict[str, object]) -> None:
    journal = MemoryJournal()
    opened(journal, **options)  # type: ignore[arg-type]
    go_on(journal, StubExecutor(faults=0.1))
    events = list(journal.events())
    live = Timeline(events[0])
    shared = RunState.opened(events[0])
    beside = Timeline(events[0], shared)
    checks = set(cuts(events)[:: effort(4, 1)])
    for number, event in enumerate(events[1:], start=2):
        live.follow(event)
        apply(shared, event)
        beside.take(event)
        if number in checks or number == len(events):
            whole = Timeline.of(journal, until=number)
            expected = whole.snapshot().to_json()
            assert live.snapshot().to_json() == expected
            assert beside.snapshot().to_json() == expected
            assert live.grid().to_json() == whole.grid().to_json()
            assert live.provenance == whole.provenance


def test_cells_that_changed_since_an_earlier_grid(ended: Ended) -> None:
    events = list(ended.journal.events())
    timeline = Timeline(events[0])
    before = timeline.grid()
    copy, scores = before.codes.copy(), before.scores.copy()
    for event in events[1:]:
        timeline.follow(event)
        if event["seq"] % 37 and event is not events[-1]:
            continue
        now = timeline.grid()
        more = len(now.candidates) - len(copy)
        copy = np.pad(copy, ((0, more), (0, 0)))
        scores = np.pad(scores, ((0, more), (0, 0)), constant_values=np.nan)
        for candidate, task, code, score in now.changes(before):
            copy[candidate, task] = code
            scores[candidate, task] = math.nan if score is None else score
        assert copy.tolist() == now.codes.tolist()
        assert np.array_equal(scores, now.scores, equal_nan=True)
        before = now


def test_trials_that_are_asked_for_wait() -> None:
    whole = MemoryJournal()
    opened(whole)
    go_on(whole)
    asked = next(event["seq"] for event in whole.events() if event["type"] == "asked")
    timeline = Timeline.of(beginning(whole, asked + 1))
    waiting = (timeline.grid().codes & KINDS) == WAITING
    assert waiting.sum() == timeline.state.wave.size  # type: ignore[union-attr]
    assert not waiting[:2].any()


def test_imported_outcomes_are_marked_and_cost_nothing(tmp_path: Path) -> None:
    journal = MemoryJournal()
    opened(journal, rounds=1)
    path = tmp_path / "past.csv"
    lines = [f"plain,{task},1.0" for task in POOL.tasks]
    path.write_text("\n".join(["candidate,task,score", *lines]))
    import_past(Recorder(journal), read_past(path))
    go_on(journal)
    timeline = Timeline.of(journal)
    codes = timeline.grid().codes
    assert set(codes[0].tolist()) == {SOLVED | PAST}
    assert not (codes[1:] & PAST).any()
    costs = {one.candidate: one for one in timeline.snapshot().spend.candidates}
    assert costs["plain"].searching.trials == 0


def test_provenance_names_the_end_of_the_journal(small: Timeline) -> None:
    found = small.provenance
    last = list(written().events())[-1]
    assert (found.events, found.seed, len(found.sessions)) == (last["seq"] + 1, 7, 1)
    assert len(found.seal) == 16
    assert json.loads(json.dumps(asdict(found)))["protocol"]["name"] == "full"


def test_a_journal_without_events_is_an_error() -> None:
    with pytest.raises(EventError, match="never opened"):
        Timeline.of(MemoryJournal())


def test_usage_of_many_reasons_is_bounded() -> None:
    journal = MemoryJournal()
    opened(journal, rounds=1)

    def act(trial: Trial) -> Result:
        reason = f"line {trial.task} {'x' * 5000}"
        fault = Fault(blame=Blame.CANDIDATE, kind="ValueError", reason=reason)
        return Result(fault=fault, usage=Usage(seconds=0.1))

    found = Timeline.of(_run(journal, act)).columns.faults
    assert len(found) == 1
    assert len(found[0].reasons) <= 8
    assert max(map(len, found[0].reasons)) <= 300
