"""Tables of runs and series small enough to check by hand."""

import csv
import io
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from coevolve import Pool
from coevolve.analysis import Matrix, replay, synthetic_matrix
from coevolve.analysis.replay_search import Stage
from coevolve.core.estimators import Difference, Hajek, RawMean
from coevolve.core.protocols import protocol, protocols
from coevolve.core.selector import Selector
from coevolve.errors import InputError, StateError
from coevolve_reproductions.tables import ANALYSES, Search, Settings, Source, Table, analyse
from coevolve_reproductions.tables.table import Column, mean_and_sd
from tests.analysis.runs import CANDIDATES, finished, series

ALL = tuple(CANDIDATES)
TRUE = {"x": 0.5, "y": 0.75, "z": 0.5}


def of_run(selector: Selector, table: str, **settings: Any) -> Table:
    source = Source(name="run", search=Search.of_events(selector.events))
    return analyse(source, table, Settings(**settings))


def of_series(table: str, **settings: Any) -> Table:
    return analyse(Source(name="tiny", series=series()), table, Settings(**settings))


class TestSearch:
    def test_the_estimates_are_those_before_candidates_were_scored_anew(self) -> None:
        before, after = finished(), finished(rescored=ALL)
        search = Search.of_events(after.events)
        assert search.truth == TRUE | {"start-0": 0.25, "start-1": 0.5}
        for name, estimate in search.estimates().items():
            assert estimate == before.estimate(name)
            assert after.estimate(name).exact
        assert search.choice() == before.best()

    def test_without_scoring_anew_only_the_starts_are_known(self) -> None:
        assert set(Search.of_events(finished().events).truth) == {"start-0", "start-1"}

    def test_full_search_knows_every_score(self) -> None:
        search = Search.of_events(finished("full").events)
        assert {name: search.truth[name] for name in ALL} == TRUE
        assert search.verdict().rank == 1
        assert search.verdict().regret == 0

    def test_re_estimating_with_its_own_estimator_changes_nothing(self) -> None:
        search = Search.of_events(finished("task-coevolve").events)
        again = search.re_estimated(Difference())
        assert again.estimates() == search.estimates()
        assert search.re_estimated(Hajek()).estimates() != search.estimates()
        assert search.choice() == again.choice()

    def test_re_estimating_is_what_a_search_with_that_estimator_says(self) -> None:
        """No draw depends on the estimator of a protocol that does not adapt."""
        stage = Stage.of(series(), 0)
        for other in (Hajek(), RawMean()):
            rule = replace(protocol("task-coevolve"), estimator=other)
            usual, swapped = (
                Search.replayed(stage, each, fraction=0.5, per_round=1)
                for each in (protocol("task-coevolve"), rule)
            )
            assert usual.re_estimated(other).estimates() == swapped.estimates()

    def test_a_replay_agrees_with_the_lab(self) -> None:
        one = synthetic_matrix(tasks=30, candidates=12, worlds=1).series[0]
        source = Source(name="s", series=one)
        table = analyse(source, "ablation", Settings(seeds=4, protocols=("naive", "adaptive")))
        lab = replay(
            [Matrix.from_series("synthetic", [one])],
            protocols=["naive", "adaptive"],
            seeds=range(4),
        )
        for row in table.rows:
            regret = lab.overall(str(row["protocol"]), 0.2).means["regret"].mean
            assert row["regret"] == pytest.approx(regret)


class TestDifficulty:
    def test_groups_of_a_run_after_each_round(self) -> None:
        """With every task drawn: a is solved by all, b by 1/2, 1/3, 2/4 and 3/5 of them, ..."""
        table = of_run(finished("full"), "difficulty", rounds=(0, 1, 3))
        counts = {row["group"]: [row[f"round_{n}"] for n in (0, 1, 3)] for row in table.rows}
        assert counts == {
            "never": [2, 1, 1],  # c and d; c is solved in round 1
            "sometimes": [0, 0, 0],
            "mixed": [1, 2, 2],  # b: 1/2, 1/3, 3/5; c: 1/3, 2/5
            "mostly": [1, 1, 1],
        }

    def test_scores_told_later_do_not_enter(self) -> None:
        plain, rescored = (of_run(finished(rescored=r), "difficulty") for r in ((), ALL))
        assert plain.rows == rescored.rows

    def test_a_replay_of_full_search_is_the_run_of_it(self) -> None:
        run = of_run(finished("full"), "difficulty", rounds=(0, 3))
        replayed = of_series("difficulty", protocols=("full",), rounds=(0, 3), seeds=2)
        for mine, other in zip(run.rows, replayed.rows, strict=True):
            assert [mine[f"round_{n}"] for n in (0, 3)] == [other[f"round_{n}"] for n in (0, 3)]

    def test_rounds_that_are_not_there(self) -> None:
        with pytest.raises(InputError, match="must be from 0 to 3, got 4"):
            of_run(finished(), "difficulty", rounds=(4,))


class TestAccuracy:
    def test_of_full_search_is_perfect(self) -> None:
        (row,) = of_run(finished("full"), "accuracy").rows
        assert row["spearman"] == pytest.approx(1)
        assert (row["rank"], row["ranked"]) == (1, 3)
        assert (row["truth"], row["best"]) == (0.75, 0.75)

    def test_ranks_are_among_the_candidates_scored_anew(self) -> None:
        selector = finished(rescored=("x", "z"))
        table = of_run(selector, "accuracy")
        assert table.rows[0]["ranked"] == 2
        assert table.rows[0]["best"] == 0.5
        assert "2 of 3 candidates" in table.note

    @pytest.mark.parametrize("rescored", [(), ("x",)])
    def test_too_few_full_set_scores_say_what_to_do(self, rescored: tuple[str, ...]) -> None:
        with pytest.raises(StateError, match=f"of {len(rescored)} of 3 .*tell_full"):
            of_run(finished(rescored=rescored), "accuracy")

    def test_of_a_series_at_several_fractions(self) -> None:
        table = of_series("accuracy", fractions=(0.25, 1.0), seeds=3, protocols=("naive",))
        assert [row["fraction"] for row in table.rows] == [0.25, 1.0]
        assert table.rows[1]["truth"] == 0.75
        assert table.rows[1]["truth_sd"] == 0


class TestAblation:
    def test_parts_of_the_paper_s_rows(self) -> None:
        rows = of_series("ablation", seeds=2).rows
        ticks = [(r["rotates"], r["estimates"], r["weighted"]) for r in rows[:4]]
        assert [row["protocol"] for row in rows[:4]] == [
            "naive",
            "random-resample",
            "random-estimate",
            "task-coevolve",
        ]
        assert ticks == [
            (False, False, False),
            (True, False, False),
            (True, True, False),
            (True, True, True),
        ]
        registered = {known.name for known in protocols()}
        assert {row["protocol"] for row in rows[4:]} == {"joint", "adaptive"} & registered

    def test_truth_and_regret_add_up(self) -> None:
        for row in of_series("ablation", seeds=3).rows:
            assert row["truth"] + row["regret"] == pytest.approx(0.75)  # type: ignore[operator]

    def test_a_complete_run_is_replayed_like_its_matrix(self) -> None:
        settings: dict[str, Any] = {"seeds": 2, "protocols": ("full",)}
        run = of_run(finished(rescored=ALL), "ablation", **settings)
        assert run.rows == of_series("ablation", **settings).rows

    def test_one_true_score_is_too_few(self) -> None:
        with pytest.raises(StateError, match=r"1 of 3 candidates have a .*--rescore"):
            of_run(finished(rescored=("x",)), "ablation")

    def test_an_incomplete_run_is_replayed_on_the_candidates_with_true_scores(self) -> None:
        table = of_run(finished(rescored=("x", "z")), "ablation", seeds=2, protocols=("full",))
        assert table.rows[0]["truth"] == 0.5
        assert table.note.startswith("Replayed on the 2 of 3 candidates with a full-set score.")


class TestSwap:
    def test_each_estimator_names_a_winner(self) -> None:
        table = of_run(finished("task-coevolve", rescored=ALL), "swap")
        assert [row["estimator"] for row in table.rows][:2] == ["Hájek", "difference"]
        for row in table.rows:
            assert row["truth"] == TRUE[str(row["winner"])]

    def test_the_run_s_own_estimator_gives_its_winner(self) -> None:
        selector = finished("task-coevolve")
        own = {row["estimator"]: row for row in of_run(selector, "swap").rows}["difference"]
        assert own["winner"] == selector.best().candidate
        assert own["estimate"] == selector.best().estimate.value
        assert own["truth"] is None

    def test_with_every_task_drawn_they_agree(self) -> None:
        table = of_series("swap", fractions=(1.0,), seeds=1)
        assert {row["truth"] for row in table.rows} == {0.75}


class TestTies:
    def test_who_wins_a_tie(self) -> None:
        """On the subset of naive, x, y and z either tie or y is alone at the top."""
        selector = finished()
        values = [selector.estimate(name).value for name in ALL]
        tied = [n for n, v in zip(ALL, values, strict=True) if v == max(values)]
        early, late = of_run(selector, "ties").rows
        assert early["ties"] == late["ties"] == len(tied)
        assert (early["winner"], late["winner"]) == (tied[0], tied[-1])

    def test_true_scores_where_they_are_known(self) -> None:
        early, late = of_run(finished(rescored=ALL), "ties").rows
        assert early["truth"] == TRUE[str(early["winner"])]
        assert late["truth"] == TRUE[str(late["winner"])]
        assert "truth" in of_run(finished(), "ties").hidden

    def test_of_a_series(self) -> None:
        table = of_series("ties", fractions=(0.25,), seeds=4)
        assert [row["protocol"] for row in table.rows] == [
            "naive",
            "random-resample",
            "task-coevolve",
        ]
        for row in table.rows:
            assert 1 <= row["least"] <= row["ties"] <= row["most"] <= 3  # type: ignore[operator]


class TestCost:
    def test_full_search_costs_what_it_is_projected_to(self) -> None:
        full, run = of_run(finished("full", priced=True), "cost").rows
        assert run["trials"] == full["trials"] == 12
        assert run["tokens_in"] == full["tokens_in"] == 3 * 1_000
        assert run["tokens_out"] == full["tokens_out"] == 3 * 100
        assert run["dollars"] == pytest.approx(3.0)
        assert run["hours"] == pytest.approx(3 * 10.0)
        assert run["reduction"] == 0

    def test_a_subset_costs_its_tasks(self) -> None:
        """Phase 0 prices every task, so the projection is exact although two were drawn."""
        selector = finished(priced=True, rescored=ALL)
        full, run = of_run(selector, "cost").rows
        drawn = {
            task for event in selector.events if event["type"] == "told" for task in event["tasks"]
        }
        expected = 3 * sum(100 * (1 + "abcd".index(task)) for task in drawn)
        assert run["trials"] == 6
        assert run["tokens_in"] == expected
        assert full["tokens_in"] == 3_000
        assert run["reduction"] == pytest.approx(expected / 3_000 - 1)

    def test_usage_that_was_not_told_is_not_zero(self) -> None:
        table = of_run(finished(), "cost")
        full, run = table.rows
        assert [run[name] for name in ("tokens_in", "dollars", "hours")] == [None, None, None]
        assert full["dollars"] is None
        assert run["reduction"] == pytest.approx(-0.5)
        assert "compares trials" in table.note
        assert "0 of 6 trials" in table.note

    def test_of_a_series_with_costs(self) -> None:
        one = synthetic_matrix(tasks=20, candidates=6, worlds=1).series[0]
        source = Source(name="s", series=one)
        full, *rows = analyse(source, "cost", Settings(seeds=3, protocols=("full", "naive"))).rows
        assert one.costs is not None
        assert full["cost"] == pytest.approx(one.costs[2:].sum())
        assert rows[0]["cost"] == pytest.approx(full["cost"])
        assert rows[0]["reduction"] == pytest.approx(0)
        assert rows[1]["trials"] == 4 * 4

    def test_of_a_series_without_costs(self) -> None:
        table = of_series("cost", seeds=1, protocols=("naive",), fractions=(0.5,))
        assert table.rows[1]["cost"] is None
        assert table.rows[1]["reduction"] == pytest.approx(-0.5)


class TestHeadroom:
    def test_true_scores_of_a_series(self) -> None:
        table = of_series("headroom")
        assert [(row["candidate"], row["score"]) for row in table.rows] == [
            ("start-1", 0.5),
            ("y", 0.75),
            ("x", 0.5),
            ("z", 0.5),
        ]
        assert table.rows[1]["difference"] == 0.25
        assert "1 of 3 candidates" in table.note

    def test_means_over_some_tasks_are_not_called_scores_of_the_full_set(self) -> None:
        outcomes = series().outcomes.copy()
        outcomes[series().candidates.index("y"), :2] = np.nan
        source = Source(name="tiny", series=replace(series(), outcomes=outcomes))
        table = analyse(source, "headroom", Settings())
        rows = {row["candidate"]: row for row in table.rows}
        assert (rows["y"]["kind"], rows["x"]["kind"]) == ("2 of 4 tasks", "full set")
        assert (rows["y"]["low"], rows["y"]["high"]) == (None, None)
        assert "the mean over the others, which may be easier or harder" in table.note
        assert "chance" in table.hidden

    def test_estimates_have_an_interval_and_scored_ones_none(self) -> None:
        table = of_run(finished("task-coevolve", rescored=("y",)), "headroom")
        rows = {row["candidate"]: row for row in table.rows}
        assert rows["y"]["kind"] == "full set"
        assert rows["y"]["chance"] is None
        assert rows["x"]["kind"] == "2 of 4 tasks"
        low, high = rows["x"]["low"], rows["x"]["high"]
        assert low < rows["x"]["score"] < high  # type: ignore[operator]
        assert 0 < rows["x"]["chance"] < 1  # type: ignore[operator]

    def test_no_chance_without_a_standard_error(self) -> None:
        table = of_run(finished("naive", fraction=0.25), "headroom")
        assert all(row["chance"] is None for row in table.rows)

    def test_a_run_without_starts_is_refused(self) -> None:
        selector = Selector(Pool(["a", "b"]), protocol="naive")
        (assignment,) = selector.ask(["x"])
        selector.tell(assignment, dict.fromkeys(assignment.tasks, 1.0))
        with pytest.raises(StateError, match="best starting harness, but none"):
            of_run(selector, "headroom")


class TestTable:
    def test_csv_has_every_column_at_full_precision(self) -> None:
        table = of_series("accuracy", seeds=2, protocols=("naive",))
        (row,) = csv.DictReader(io.StringIO(table.csv()))
        assert list(row) == list(table.names)
        assert float(row["truth"]) == table.rows[0]["truth"]
        assert row["protocol"] == "naive"

    def test_what_is_missing_is_empty_in_csv_and_null_in_json(self) -> None:
        table = of_run(finished(), "swap")
        row = next(csv.DictReader(io.StringIO(table.csv())))
        assert row["truth"] == ""
        assert table.to_json()["rows"][0]["truth"] is None

    def test_numbers_as_they_are_shown(self) -> None:
        row = {"n": 1234.0, "s": 0.4567, "sd": 0.01, "m": 2.5e6, "t": True, "none": None}
        kinds = (
            (Column(name="n", heading="", kind="count"), "1,234"),
            (Column(name="s", heading="", kind="score", spread="sd"), "45.7 ± 1.0"),
            (Column(name="m", heading="", kind="number", unit=1e6), "2.50"),
            (Column(name="t", heading="", kind="tick"), "✓"),
            (Column(name="none", heading="", kind="score", spread="sd"), "-"),
        )
        for column, shown in kinds:
            assert column.shown(row) == shown

    def test_mean_and_sd_leave_out_what_is_missing(self) -> None:
        assert mean_and_sd("x", [1.0, None, 3.0]) == {"x": 2.0, "x_sd": pytest.approx(2**0.5)}
        assert mean_and_sd("x", [1.0]) == {"x": 1.0, "x_sd": None}
        assert mean_and_sd("x", [None]) == {"x": None, "x_sd": None}


class TestSettings:
    @pytest.mark.parametrize("table", ["accuracy", "swap", "ties", "cost", "headroom"])
    def test_what_has_no_effect_is_refused(self, table: str) -> None:
        with pytest.raises(InputError, match=f"seeds has no effect on the table {table} of a run"):
            of_run(finished("full"), table, seeds=3)
        with pytest.raises(InputError, match="rounds has no effect"):
            of_series(table, rounds=(0,))

    def test_unknown_tables_and_protocols(self) -> None:
        with pytest.raises(InputError, match=r"no table 'tie'.*Did you mean 'ties'"):
            of_series("tie")
        with pytest.raises(InputError, match="unknown protocol 'naiv'"):
            of_series("ties", protocols=("naiv",))

    def test_every_analysis_of_a_series_repeats_itself(self) -> None:
        for name in ANALYSES:
            settings = {} if name == "headroom" else {"seeds": 2}
            assert of_series(name, **settings) == of_series(name, **settings)
