"""Runs side by side, and what a replay says of protocols."""

import contextlib
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

from coevolve.analysis import replay, synthetic_matrix
from coevolve.errors import InputError
from coevolve.figures import replay_figure
from coevolve.views.run_comparison import compare_runs, replay_comparison
from coevolve.views.timeline import Timeline
from tests.effort import effort
from tests.fuzz.inputs import changed
from tests.views.small_run import written


def test_runs_have_the_labels_of_the_caller() -> None:
    one = Timeline.of(written()).snapshot()
    other = replace(one, report=replace(one.report, name="other"))
    runs = compare_runs({"a": one, "b": other}).runs
    assert [(run.label, run.name) for run in runs] == [("a", "small"), ("b", "other")]


def test_a_curve_has_the_best_so_far_with_all_costs() -> None:
    (run,) = compare_runs({"a": Timeline.of(written()).snapshot()}).runs
    points = [(p.round, p.candidate, p.value, p.evaluations, p.trials) for p in run.points]
    assert points[:2] == [(0, "plain", 0.5, 0, 8), (1, "r1-0", 1.0, 8, 16)]
    assert (run.best, run.protocol, run.seed, run.test) == ("r1-0", "full", 7, 0.0)
    assert (run.evaluations, run.trials) == (8, 19)
    json.dumps(run.to_json())


def test_a_replay_is_regret_against_the_fraction() -> None:
    matrix = synthetic_matrix(tasks=30, candidates=6, worlds=2)
    done = replay([matrix], protocols=["full", "naive"], fractions=[0.4, 0.2], seeds=range(2))
    found = replay_comparison(json.loads(json.dumps(done.to_json())))
    assert [curve.protocol for curve in found.curves] == ["full", "naive"]
    assert [point.fraction for point in found.curves[1].points] == [0.2, 0.4]
    assert {point.regret for point in found.curves[0].points} == {0.0}
    naive = done.overall("naive", 0.2).means["regret"]
    assert (found.curves[1].points[0].regret, found.curves[1].points[0].regret_se) == (
        naive.mean,
        naive.se,
    )
    assert (found.series, found.seeds) == (2, 2)


MATRIX = synthetic_matrix(tasks=8, candidates=4, worlds=1)
REPLAYED = replay([MATRIX], protocols=["full"], fractions=[0.5], seeds=range(1)).to_json()


@settings(max_examples=effort(12, 2_000), deadline=None)
@given(changed(REPLAYED))
def test_whatever_a_replay_says_it_is_drawn_or_refused(data: Any) -> None:
    with contextlib.suppress(InputError):
        assert replay_figure(replay_comparison(data)).svg


@pytest.mark.parametrize("data", [{}, {"schema": 9}, {"schema": 1, "summary": [{}]}, []])
def test_anything_else_is_refused(data: object) -> None:
    with pytest.raises(InputError, match=r"replay|schema"):
        replay_comparison(data)  # type: ignore[arg-type]
