"""The A/A check: candidates alike, and how often a difference is declared."""

import numpy as np
import pytest

from coevolve import Choice, Estimate, Selector
from coevolve.analysis import Matrix, check_alike, synthetic_matrix
from coevolve.analysis.aa_check import alarms, alike
from coevolve.analysis.replay_search import Played, Stage

MATRIX = synthetic_matrix(tasks=60, candidates=10, worlds=2)


def test_every_generated_candidate_becomes_the_median_one() -> None:
    series = MATRIX.series[0]
    same = alike(series)
    scores = series.true_scores()
    assert same.candidates == series.candidates
    assert same.outcomes[:2].tolist() == series.outcomes[:2].tolist()
    assert len({tuple(row) for row in same.outcomes[2:].tolist()}) == 1
    assert same.true_scores()[2] in scores[2:]
    assert (scores[2:] < same.true_scores()[2]).sum() <= 4
    assert (scores[2:] > same.true_scores()[2]).sum() <= 4


def test_one_subset_for_all_shows_no_difference() -> None:
    done = check_alike([MATRIX], protocols=["naive", "full"], seeds=range(2))
    for row in done.rows:
        assert row.values["pairs_different"] == row.values["winner_better"] == 0


def test_random_subsets_show_differences_at_about_the_nominal_rate() -> None:
    done = check_alike([MATRIX], protocols=["random-resample"], seeds=range(20))
    rate = done.overall("random-resample", 0.2).means["pairs_different"].mean
    assert rate is not None
    assert 0.005 < rate < 0.15
    assert done.summary[-1].paired is None


def test_alarms_by_hand() -> None:
    matrix = Matrix.from_arrays("m", np.ones((6, 4)))
    stage = Stage.of(matrix.series[0], seed=0)

    def estimate(value: float, se: float | None) -> Estimate:
        return Estimate(
            value=value, se=se, low=None, high=None, tasks=1, drawn=1, pool_size=4, method="test"
        )

    def found(winner: str, *given: tuple[float, float | None]) -> dict[str, float | None]:
        estimates = [estimate(*one) for one in given]
        choice = Choice(candidate=winner, estimate=estimates[0], tied_with=(), why="")
        values = alarms(
            Played(
                stage=stage,
                selector=Selector(stage.pool),
                choice=choice,
                estimates=tuple(estimates),
                evaluations=4,
                cost=None,
            )
        )
        return {name: values[name] for name in ("pairs_different", "winner_better")}

    four = ((0.9, 0.1), (0.5, 0.1), (0.6, 0.1), (0.6, 0.0))
    assert found("candidate-2", *four) == {"pairs_different": 3 / 6, "winner_better": 1.0}
    assert found("candidate-4", *four) == {"pairs_different": 3 / 6, "winner_better": 0.0}
    some = ((0.9, None), (0.2, 0.1), (0.6, 0.1), (0.6, 0.0))
    assert found("candidate-2", *some) == {"pairs_different": 2 / 6, "winner_better": 0.0}
    none = ((0.9, None),) * 4
    assert found("candidate-2", *none) == {"pairs_different": None, "winner_better": None}


def test_copies_differ_by_luck_alone_when_told_as_trials() -> None:
    cells = np.random.default_rng(1).random((8, 50))
    matrix = Matrix.from_arrays("m", cells)
    plain, drawn = (
        check_alike([matrix], protocols=["full"], seeds=range(3), bernoulli=choice)
        for choice in (False, True)
    )
    assert plain.overall("full", 0.2).means["pairs_different"].mean == 0
    assert drawn.overall("full", 0.2).means["pairs_different"].mean == pytest.approx(1, abs=0.2)
