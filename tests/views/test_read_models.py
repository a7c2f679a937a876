"""The projections of a run: what they hold, and that their JSON keeps its keys."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from coevolve.cli.console_output import Screen
from coevolve.cli.run_display import print_closing
from coevolve.core.pool import Pool
from coevolve.core.selector import Selector
from coevolve.runs.result import Result as RunResult
from coevolve.search.budget import Budget, Settings
from coevolve.search.journal import MemoryJournal
from coevolve.search.trials import Result
from coevolve.views.details import (
    candidate_details,
    compare,
    round_details,
    task_details,
    trial_details,
)
from coevolve.views.export import write_csv
from coevolve.views.forecast import forecast, search_trials
from coevolve.views.outcome_rows import outcome_rows
from coevolve.views.report import report
from coevolve.views.spend import FREE, Range, costs_of_run
from tests.search.stubs import TEST, StubExecutor, go_on, opened
from tests.views.conftest import Ended

REPORT = (
    "name phase doing why stopped round rounds done asked under_way tasks trials protocol best "
    "chosen warning candidates failures missing thin_rounds notes imports mixed seconds left "
    "events budget proposing evaluating searched full paid rescored requested tested"
)
CANDIDATE = (
    "name address round start status reason parents hypothesis kind components leaks estimate "
    "full test zeros missing done asked"
)
OUTCOME = (
    "candidate round task pool trial split score missing fault reason tokens_in tokens_out "
    "dollars seconds trace imported"
)


def keys(data: dict[str, Any]) -> str:
    """The keys of a JSON object, in any order."""
    return " ".join(sorted(data))


def ordered(names: str) -> str:
    return " ".join(sorted(names.split()))


def test_the_report_keeps_its_keys(ended: Ended) -> None:
    data = json.loads(json.dumps(report(ended.state).to_json()))
    assert keys(data) == ordered(REPORT)
    assert keys(data["candidates"][0]) == ordered(CANDIDATE)
    assert [row["name"] for row in data["budget"]] == ["trials", "tokens", "dollars", "hours"]


def test_the_spend_adds_up(ended: Ended) -> None:
    spend = report(ended.state).spend
    rows = list(outcome_rows(ended.journal.events()))
    assert spend.totals["trials"] == len(rows)
    assert spend.full == 6 * 20
    assert spend.searched == sum(o.split == "validation" and o.round > 0 for o in rows)
    each = spend.evaluating_tokens / len(rows)
    more = each * (spend.full - spend.searched)
    assert spend.full_tokens == round(spend.evaluating_tokens + more - each * spend.rescored)


def test_savings_count_everything_that_was_paid(ended: Ended) -> None:
    spend = report(ended.state).spend
    rows = list(outcome_rows(ended.journal.events()))
    found = spend.savings
    assert found is not None
    full_search = [o for o in rows if o.split == "test" or o.round == 0]
    assert found.paid == Range(len(rows), len(rows))
    assert found.paid_full == Range(len(full_search) + 6 * 20, len(full_search) + 6 * 20)
    assert (found.searched.low, found.full.low) == (spend.searched, 6 * 20)
    assert spend.rescored == sum(o.split == "rescore" for o in rows) > 0


@pytest.mark.parametrize("candidates", [0.0, 1.0])
def test_a_winner_behind_a_starting_harness_has_a_warning(candidates: float) -> None:
    journal = MemoryJournal()
    opened(journal, rounds=1, candidates=1)
    scores = {"plain": 0.5, "terse": 0.25}
    state = go_on(
        journal,
        StubExecutor(act=lambda trial: Result(score=scores.get(trial.candidate, candidates))),
    )
    now = report(state)
    assert (now.best, bool(now.warning)) == ("r1-0", not candidates)
    found = RunResult(state, journal).report().splitlines()[0]
    expected = (
        "Warning: a starting harness is ahead of the winner, r1-0: plain 0.500 to 0.000 by "
        "estimate, plain 0.500 to 0.000 on the sealed test."
    )
    assert (found == expected) == (not candidates)
    screen = Screen(file=io.StringIO(), width=200, color_system=None)
    print_closing(screen, now, None)
    printed = screen.file.getvalue()  # type: ignore[attr-defined]
    assert printed.strip().startswith(expected) == (not candidates)


def test_a_starting_harness_has_its_true_score_and_the_winner_after_rescoring(
    ended: Ended,
) -> None:
    found = report(ended.state)
    assert found.best is not None
    assert found.candidate("plain").true_score is not None
    assert found.candidate(found.best).true_score == found.candidate(found.best).full
    others = [row for row in found.candidates if not row.start and row.name != found.best]
    assert {row.true_score for row in others} == {None}


def test_a_candidate(ended: Ended) -> None:
    found = candidate_details("r1-0", ended.state, ended.journal)
    data = json.loads(json.dumps(found.to_json()))
    more = "children sent_for_repair files transcripts outcomes"
    assert keys(data) == ordered(f"{CANDIDATE} {more}")
    assert list(data["files"]) == ["harness.py"]
    assert keys(data["outcomes"][0]) == ordered(OUTCOME)
    assert all(row["candidate"] == "r1-0" for row in data["outcomes"])


def test_a_task_and_the_draws_of_its_rounds(ended: Ended) -> None:
    draws = round_details(1, ended.state, ended.journal).draws
    assert draws
    found = task_details(draws[0].task, ended.state, ended.journal)
    assert draws[0] in found.draws
    assert found.split == "validation"
    assert found.mean is not None
    assert {"plain", "terse"} <= {row.candidate for row in found.outcomes}
    sealed = task_details(TEST.tasks[0], ended.state, ended.journal)
    assert (sealed.split, sealed.draws) == ("test", ())


def test_a_round(ended: Ended) -> None:
    first = round_details(1, ended.state, ended.journal)
    assert [row.name for row in first.candidates] == ["r1-0", "r1-1"]
    assert first.settled
    assert first.trials == sum(row.estimate["drawn"] for row in first.candidates if row.estimate)
    start = round_details(0, ended.state, ended.journal).to_json()
    assert (start["trials"], start["draws"]) == (40, ())


def test_the_trials_of_a_candidate_on_a_task(ended: Ended) -> None:
    (trial,) = trial_details("plain", "law-3", ended.journal)
    assert trial.content == "law-3"
    assert trial.to_json()["task"] == "law-3"


def test_two_candidates(ended: Ended) -> None:
    found = compare("plain", "terse", ended.state, ended.journal)
    assert found.shared.tasks == 20
    assert "-skill = 0.4" in found.diff
    data = json.loads(json.dumps(found.to_json()))
    assert sorted(data) == ["candidates", "diff", "shared"]
    assert sorted(data["shared"]) == ["first_better", "second_better", "tasks"]
    assert compare("plain", "plain", ended.state, ended.journal).diff == ()


def test_any_journal_can_be_exported(ended: Ended, tmp_path: Path) -> None:
    written = write_csv(ended.journal, tmp_path / "out.csv")
    rows = list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))
    assert len(rows) == written
    assert list(rows[0]) == OUTCOME.split()
    assert {row["split"] for row in rows} == {"validation", "rescore", "test"}


def test_costs_of_an_earlier_run(ended: Ended) -> None:
    trial, proposal = costs_of_run(ended.journal)
    assert trial["tokens"] == Range(110, 110)
    assert trial["seconds"] == Range(0.5, 0.5)
    assert proposal["dollars"] == Range(0, 0)
    assert proposal["seconds"].low > 0
    empty = MemoryJournal()
    opened(empty)
    assert costs_of_run(empty) == ({}, {})


@pytest.mark.parametrize("protocol", ["full", "adaptive"])
def test_trials_of_the_rounds_follow_from_the_protocol(protocol: str) -> None:
    selector = Selector(Pool([f"t{n}" for n in range(20)]), protocol=protocol, fraction=0.2)
    found = search_trials(selector, Settings(rounds=4, candidates=2), starts=2)
    assert found.low <= found.high
    if protocol == "full":
        assert (found.low, found.high) == (80, 160)
    else:
        assert found.high <= 40


def test_a_forecast_says_what_is_unknown_and_what_a_cap_ends() -> None:
    selector = Selector(Pool([f"t{n}" for n in range(10)], costs=[2.0] * 10), protocol="full")
    settings = Settings(rounds=2, rescore=True, budget=Budget(trials=60))
    trial = {"tokens": Range(100, 200)}
    found = forecast(
        selector, settings, starts=2, test_tasks=5, workers=2, trial=trial, proposal=FREE
    )
    counts = {part.name: part.trials.high for part in (*found.parts, found.total)}
    assert counts == {
        "phase 0": 20,
        "rounds": 20,
        "rescoring the winner": 10,
        "sealed test": 15,
        "proposing": 0,
        "all": 60,
    }
    assert found.total.spent == {"tokens": Range(6500, 13_000)}
    assert found.notes == (
        "A cap of the budget ends the run early.",
        "The pool's costs are 2 per trial on average: 130 in total.",
    )
    unknown = forecast(
        selector, settings, starts=2, test_tasks=0, workers=1, trial={}, proposal={}
    )
    assert unknown.notes[0].startswith("The cost of a trial is unknown. Add --like RUN")
    assert unknown.notes[1].startswith("The cost of proposing is unknown.")
