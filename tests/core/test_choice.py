"""Who wins, who tied, and whether a starting harness is better."""

from dataclasses import replace

import pytest

from coevolve import Estimate
from coevolve.core.choice import Contender, HighestEstimate, MostEvaluated
from coevolve.errors import InputError, NoOutcomeError


def standing(name: str, value: float, round: int = 1) -> Contender:
    estimate = Estimate(
        value=value,
        se=None,
        low=None,
        high=None,
        tasks=1,
        drawn=1,
        pool_size=9,
        method="raw mean",
    )
    return Contender(name, round, estimate)


FIELD = [standing("a", 0.5), standing("b", 0.7), standing("c", 0.7, 2), standing("d", 0.6, 2)]


def test_the_earliest_of_equals_wins() -> None:
    choice = HighestEstimate().choose(FIELD, [])
    assert (choice.candidate, choice.tied_with) == ("b", ("c",))
    assert choice.why == "highest estimate 0.700; 2 tied (b, c), the earliest proposal wins"


def test_the_latest_wins_when_asked_for() -> None:
    choice = HighestEstimate(tie_break="latest").choose(FIELD, [])
    assert (choice.candidate, choice.tied_with) == ("c", ("b",))


def test_rounding_does_not_break_a_tie() -> None:
    third = standing("x", 0.1 + 0.2), standing("y", 0.3)
    assert HighestEstimate(tie_break="latest").choose(third, []).candidate == "y"


def test_a_better_start_is_named_but_does_not_win() -> None:
    start = [standing("s", 0.75, 0), standing("t", 0.9, 0)]
    choice = HighestEstimate().choose(FIELD, start)
    assert (choice.candidate, choice.better_start) == ("b", "t")
    assert "starting harness t scores 0.900" in choice.why
    assert HighestEstimate().choose(FIELD, [standing("s", 0.7, 0)]).better_start is None


def test_a_start_may_win_when_included() -> None:
    choice = HighestEstimate(include_start=True).choose(FIELD, [standing("s", 0.7, 0)])
    assert (choice.candidate, choice.tied_with) == ("s", ("b", "c"))


def test_no_candidate_to_choose_from() -> None:
    with pytest.raises(NoOutcomeError, match="no candidate has an estimate yet"):
        HighestEstimate().choose([], [standing("s", 0.7, 0)])


def test_unknown_tie_break() -> None:
    with pytest.raises(InputError, match="'earliest' or 'latest', got 'random'"):
        HighestEstimate(tie_break="random")  # type: ignore[arg-type]


def test_the_most_evaluated_wins_before_the_highest() -> None:
    def after(asked: int, name: str, value: float) -> Contender:
        known = standing(name, value)
        tasks = min(asked, 7)  # a missing outcome does not lose the race
        return known._replace(estimate=replace(known.estimate, tasks=tasks, drawn=asked))

    field = [after(2, "lucky", 1.0), after(8, "known", 0.6), after(8, "less", 0.5)]
    choice = MostEvaluated().choose(field, [])
    assert (choice.candidate, choice.why) == (
        "known",
        "highest estimate 0.600, among 2 with 8 tasks",
    )
