"""Replays: what every protocol is given, what it spends, and that results repeat."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from coevolve import protocol
from coevolve.analysis import Matrix, Replay, read_matrix, replay, synthetic_matrix
from coevolve.analysis.replay_search import Stage, play
from coevolve.core.estimators import Difference
from coevolve.core.protocols import protocols
from coevolve.errors import InputError, ReplayError, UnknownProtocolError

MATRIX = synthetic_matrix(tasks=30, candidates=9, worlds=2)
SHARED = Path(__file__).parents[2].parent / "shared" / "data" / "matrices"


def small(**options: object) -> Replay:
    given: dict[str, object] = {"protocols": ["naive", "task-coevolve"], "seeds": range(2)}
    return replay([MATRIX], **(given | options))  # type: ignore[arg-type]


def test_full_finds_the_best_and_spends_everything() -> None:
    for row in small(protocols=["full"]).rows:
        assert row.values["regret"] == 0
        assert row.values["spearman"] == row.values["kendall"] == row.values["rank"] == 1
        assert row.values["rmse"] == pytest.approx(0)
        assert row.values["coverage"] == row.values["share"] == 1
        assert row.values["evaluations"] == 7 * 30


def test_a_fixed_share_spends_m_per_candidate() -> None:
    names = ("naive", "random-resample", "random-estimate", "task-coevolve")
    for row in small(protocols=names, fractions=[0.07, 0.2]).rows:
        assert row.values["evaluations"] == 7 * math.ceil(row.fraction * 30)


def test_every_protocol_can_be_replayed_within_its_budget() -> None:
    """Cost-aware protocols have a budget of cost, and may buy more evaluations with it."""
    done = small(protocols=protocols(), fractions=[0.2], seeds=[0])
    assert {row.protocol for row in done.rows} == {known.name for known in protocols()}
    for row in done.rows:
        spent = row.values["evaluations"]
        assert spent is not None
        assert row.protocol in ("full", "cost-aware") or spent <= 7 * 6


def test_the_cost_is_that_of_the_evaluated_cells() -> None:
    cost = np.arange(1.0, 41).reshape(4, 10)
    cells = np.random.default_rng(0).integers(0, 2, (4, 10))
    matrix = Matrix.from_arrays("m", cells, cost=cost)
    (row,) = replay([matrix], protocols=["full"], seeds=[0]).rows
    assert row.values["cost"] == cost[2:].sum()
    (row,) = replay([Matrix.from_arrays("m", cells)], protocols=["full"], seeds=[0]).rows
    assert row.values["cost"] is None


def test_a_replay_asks_until_nothing_more_is_wanted_and_spends_the_reserve() -> None:
    """Adaptive spends all of its budget only if it is asked in the rounds and in the end."""
    (series, _) = MATRIX.series
    played = play(Stage.of(series, seed=0), protocol("adaptive"), fraction=0.4)
    assert played.evaluations == 7 * 12
    further = [
        e for e in played.selector.events if e["type"] == "drawn" and e["kind"] == "further"
    ]
    last = max(e["seq"] for e in played.selector.events if e.get("kind") == "first")
    assert any(event["seq"] < last for event in further)
    assert any(event["seq"] > last for event in further)


def test_protocols_are_paired_by_the_same_draws() -> None:
    """Two that differ in their estimator alone draw the same tasks."""
    twin = replace(protocol("random-resample"), name="a-much-longer-name", estimator=Difference())
    (series, _) = MATRIX.series
    stage = Stage.of(series, seed=3)
    drawn = [
        [e["draws"] for e in play(stage, p, fraction=0.2).selector.events if e["type"] == "drawn"]
        for p in (protocol("random-resample"), twin)
    ]
    assert [d[0][0]["tasks"] for d in drawn[0]] == [d[0][0]["tasks"] for d in drawn[1]]


def test_rows_come_by_matrix_series_seed_fraction_and_protocol() -> None:
    done = small(fractions=[0.2, 0.1], seeds=[5, 3])
    keys = [(row.series, row.seed, row.fraction, row.protocol) for row in done.rows]
    assert keys == [
        (series, seed, fraction, name)
        for series in ("0", "1")
        for seed in (5, 3)
        for fraction in (0.2, 0.1)
        for name in ("naive", "task-coevolve")
    ]


def test_the_number_of_workers_changes_nothing() -> None:
    one, two = (small(fractions=[0.1, 0.3], workers=n).to_json() for n in (1, 2))
    assert json.dumps(one) == json.dumps(two)


def test_a_protocol_does_not_depend_on_the_company_it_is_in() -> None:
    together = small(protocols=["naive", "random-resample", "task-coevolve"], fractions=[0.1, 0.2])
    alone = small(protocols=["task-coevolve"], fractions=[0.2])
    shared = [r for r in together.rows if (r.protocol, r.fraction) == ("task-coevolve", 0.2)]
    assert shared == list(alone.rows)


def test_a_limit_on_series_does_not_change_those_that_stay() -> None:
    limited = replay([MATRIX.limited(series=1)], protocols=["naive"], seeds=range(2)).rows
    assert list(limited) == [row for row in small(protocols=["naive"]).rows if row.series == "0"]


def test_series_are_drawn_independently() -> None:
    (one,) = Matrix.from_arrays("m", MATRIX.series[0].outcomes).series
    assert one.stream(0) != one.stream(1) != replace(one, name="other").stream(1)


def test_trials_are_the_same_for_every_protocol() -> None:
    cells = np.random.default_rng(3).random((8, 25))
    (series,) = Matrix.from_arrays("m", cells).series
    stage = Stage.of(series, seed=4, bernoulli=True)
    told = np.array([list(scores.values()) for scores in stage.scores.values()])
    assert told.tolist() == series.trial(4).tolist()
    assert list(stage.truth.values()) == pytest.approx(cells.mean(axis=1).tolist())


def test_trials_make_even_full_evaluation_err() -> None:
    cells = np.random.default_rng(3).random((12, 10))
    matrix = Matrix.from_arrays("m", cells)
    plain, drawn = (
        replay([matrix], protocols=["full"], seeds=range(5), bernoulli=choice)
        for choice in (False, True)
    )
    assert plain.overall("full", 0.2).means["rmse"].mean == pytest.approx(0)
    error = drawn.overall("full", 0.2).means["rmse"].mean
    assert error is not None
    assert error > 0.05


def test_several_candidates_of_a_round_share_its_draw() -> None:
    stage = Stage.of(MATRIX.series[0], seed=0)
    by_one, by_three = (
        play(stage, protocol("random-resample"), fraction=0.2, per_round=number)
        for number in (1, 3)
    )
    assert by_one.evaluations == by_three.evaluations
    assert by_one.estimates[:1] == by_three.estimates[:1]
    assert by_one.estimates[1:] != by_three.estimates[1:]


def test_pools_are_drawn_and_weighed_each() -> None:
    cells = np.random.default_rng(5).integers(0, 2, (6, 30)).astype(float)
    matrix = Matrix.from_arrays("m", cells, pools=["x"] * 10 + ["y"] * 20)
    naive, full = replay([matrix], protocols=["naive", "full"], seeds=[0]).rows
    assert naive.values["evaluations"] == 4 * (2 + 4)
    assert full.values["rmse"] == pytest.approx(0)


def test_missing_cells_are_told_as_missing() -> None:
    cells = np.random.default_rng(6).integers(0, 2, (8, 40)).astype(float)
    cells[np.random.default_rng(7).random(cells.shape) < 0.2] = np.nan
    full, paper = replay(
        [Matrix.from_arrays("m", cells)], protocols=["full", "task-coevolve"], seeds=[0]
    ).rows
    assert full.values["rmse"] == pytest.approx(0)
    assert paper.values["evaluations"] == 6 * 8


@pytest.mark.parametrize("workers", [1, 2])
def test_a_search_that_cannot_go_on_is_named(workers: int) -> None:
    cells = np.ones((5, 200))
    cells[2:, 1:] = np.nan
    with pytest.raises(
        ReplayError,
        match=r"matrix 'm', series 'all', protocol 'naive', fraction 0.01, seed \d: the tasks "
        "that it drew have no outcome of any new candidate, .* use a larger fraction "
        r".*--fractions 0.5.*a run with protocol 'full'",
    ):
        replay(
            [Matrix.from_arrays("m", cells)],
            protocols=["naive"],
            fractions=[0.01],
            seeds=range(3),
            workers=workers,
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"protocols": []}, "at least one protocol"),
        ({"protocols": ["naive", "naive"]}, "protocol 'naive' is given twice"),
        ({"fractions": [0.2, 1.2]}, r"fractions must be in \(0, 1\], got 1.2"),
        ({"seeds": []}, "at least one seed"),
        ({"seeds": [-1]}, "seeds must be whole numbers of at least 0, got -1"),
        ({"per_round": 0}, "per_round must be at least 1, got 0"),
        ({"workers": 0}, "workers must be at least 1, got 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        small(**options)


def test_unknown_protocols_and_doubled_matrices_are_refused() -> None:
    with pytest.raises(UnknownProtocolError, match="Did you mean 'naive'"):
        small(protocols=["niave"])
    with pytest.raises(InputError, match="two matrices are named 'synthetic'"):
        replay([MATRIX, MATRIX], protocols=["naive"])


def test_progress_counts_searches() -> None:
    seen: list[tuple[int, int]] = []
    small(fractions=[0.1, 0.2], report=lambda done, total: seen.append((done, total)))
    assert seen == [(done, 16) for done in (0, 4, 8, 12, 16)]


def test_a_real_matrix() -> None:
    path = SHARED / "gepa_pupa_qwen27b.npz"
    if not path.exists():
        pytest.skip("no matrices in ../shared/data beside the repository")
    matrix = read_matrix(path).limited(series=2, candidates=12)
    done = replay([matrix], protocols=["full", "task-coevolve"], fractions=[0.2], seeds=range(2))
    assert {row.series for row in done.rows} == {"0", "1"}
    assert done.overall("full", 0.2).means["regret"].mean == 0
    for row in done.rows:
        assert row.tasks == 95
        assert row.candidates == 10
        assert row.protocol == "full" or row.values["evaluations"] == 10 * 19
