"""Searches on a table are whole searches: the same seed, the same winner, and honest counts."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from coevolve.errors import InputError
from coevolve.tables.harness_runs import OTHER
from coevolve.tables.harness_table import HarnessTable, save
from coevolve.tables.search_series import report, run_series, settings
from coevolve.tables.synthetic_table import synthetic_table
from coevolve.tables.table_search import SWAPPED, SearchSetting, TableSearches
from coevolve.tables.table_space import STAGES
from tests.command import coevolve

TABLES = Path(__file__).parents[2] / "benchmarks" / "tables"
TABLE = synthetic_table(3, validation=30, test=20, stages=STAGES[:2])


@pytest.mark.parametrize("proposer", ["offline", "mutation"])
@pytest.mark.parametrize("protocol", ["adaptive", "naive"])
def test_a_search_repeats_itself_and_spends_what_its_protocol_may(
    proposer: str, protocol: str
) -> None:
    searches = TableSearches(TABLE, proposer)  # type: ignore[arg-type]
    setting = SearchSetting(protocol=protocol, fraction=0.2, rounds=4, candidates=3)
    found = searches.search(setting, 5)
    assert found == TableSearches(TABLE, proposer).search(setting, 5)  # type: ignore[arg-type]
    assert found.candidates == 12
    assert found.evaluations == 12 * 6
    assert found.first == 3 * 30
    row = TABLE.keys[found.winner]
    assert found.validation == TABLE.correct[row, :30].mean()
    assert found.test == TABLE.correct[row, 30:].mean()
    assert found.best >= found.validation
    assert len(found.curve) == 5
    assert found.curve[0].evaluations == 90
    assert found.curve[0].validation == found.start
    assert found.curve[-1].evaluations == 90 + 72
    assert found.curve[-1].validation == found.validation


def test_the_full_protocol_finds_the_best_of_its_candidates_and_knows_its_score() -> None:
    searches = TableSearches(TABLE)
    setting = SearchSetting(protocol="full", fraction=1.0, rounds=3, candidates=2)
    for seed in range(3):
        found = searches.search(setting, seed)
        assert found.validation == found.best == pytest.approx(found.estimate)
        assert found.rank == 1
        assert found.spearman == pytest.approx(1.0)
        assert 1 <= found.tied <= found.candidates
        assert all(sum(point.solvability) == 30 for point in found.curve)


def test_winners_of_other_estimators_are_noted_if_asked_for() -> None:
    setting = SearchSetting(protocol="task-coevolve", fraction=0.2, rounds=3, candidates=2)
    found = TableSearches(TABLE, swapped=True).search(setting, 1)
    by_name = {one.estimator: one for one in found.swapped}
    assert tuple(by_name) == SWAPPED
    own = by_name["difference"]  # the paper's rule picks it for one pool
    assert (own.estimate, own.validation) == (found.estimate, found.validation)
    assert by_name["joint"].estimate != found.estimate
    assert TableSearches(TABLE).search(setting, 1) == replace(found, swapped=())
    adaptive = replace(setting, protocol="adaptive")
    assert TableSearches(TABLE, swapped=True).search(adaptive, 1).swapped == ()


def test_several_processes_find_what_one_finds() -> None:
    plan = settings(["full", "random-resample"], [0.2], rounds=2, candidates=2)
    one = run_series(TABLE, plan, range(3))
    two = run_series(TABLE, plan, range(3), workers=2)
    assert one == two
    told = one[1].to_json(one[0])
    assert told["seeds"] == 3
    below = [b.validation - a.validation for a, b in zip(one[1].found, one[0].found, strict=True)]
    assert told["below full"]["mean"] == pytest.approx(np.mean(below))
    assert told["below full"]["se"] == pytest.approx(np.std(below, ddof=1) / np.sqrt(3))


def test_a_table_without_a_test_has_no_score_of_it() -> None:
    table = synthetic_table(3, validation=20, test=0, stages=STAGES[:1])
    plan = settings(["full", "naive"], [0.2], rounds=1, candidates=2)
    told = report(run_series(table, plan, [0, 1]), {})
    json.dumps(told, allow_nan=False)
    assert all("test" not in one and "test" not in one["curve"][0] for one in told["series"])


def test_the_tables_of_the_repository_are_whole_and_say_where_they_are_from() -> None:
    for name, stage in {"service-desk": 5, "s2d": 5, "law": 4}.items():
        table = HarnessTable.read(TABLES / f"{name}.npz")
        assert table.facts.set == name
        assert table.facts.stage == stage
        assert list(table.keys) == [row.key for row in table.space.rows() if row.stage <= stage]
        right = (table.answers == table.gold) & (table.gold != OTHER)  # on Law, many are no label
        assert np.array_equal(table.correct, right)
        assert {
            "model",
            "weights",
            "torch",
            "device",
            "command",
            "date",
        } <= table.facts.source.keys()
        assert "/" not in table.facts.source["command"]


def test_a_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    save(tmp_path / "table.npz", TABLE._arrays)
    again = HarnessTable.read(tmp_path / "table.npz")
    assert again.facts == HarnessTable(TABLE._arrays).facts
    assert list(again.keys) == list(TABLE.keys)
    assert np.array_equal(again.correct, TABLE.correct)
    assert [path.name for path in tmp_path.iterdir()] == ["table.npz"]


def test_other_files_are_no_tables(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no file"):
        HarnessTable.read(tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("no table")
    with pytest.raises(InputError, match="not a table of harnesses, but another file"):
        HarnessTable.read(tmp_path / "text.npz")
    np.savez(tmp_path / "other.npz", keys=np.arange(3))
    with pytest.raises(InputError, match="needs the arrays"):
        HarnessTable.read(tmp_path / "other.npz")


def test_the_command_prints_means_with_standard_errors(tmp_path: Path) -> None:
    save(tmp_path / "table.npz", TABLE._arrays)
    done = coevolve(
        "searches",
        str(tmp_path / "table.npz"),
        "--protocols",
        "full,naive",
        "--fractions",
        "0.2",
        *("--seeds", "2", "--rounds", "2", "--per-round", "2", "--workers", "1", "--json"),
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["harnesses"] == len(TABLE.keys)
    assert [one["protocol"] for one in told["series"]] == ["full", "naive"]
    naive = told["series"][1]
    assert naive["evaluations"]["mean"] == 4 * 6
    assert {"mean", "se"} == naive["validation"].keys() == naive["beats full"].keys()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["nothing.npz"], "there is no file nothing.npz"),
        (["synthetic", "--protocols", "best"], "unknown protocol 'best'"),
        (["synthetic", "--protocols", "naive,naive"], "named twice"),
        (["synthetic", "--fractions", "0"], "above 0 and at most 1, got 0"),
        (["synthetic", "--seeds", "0"], "--seeds must be at least 1"),
        (["synthetic", "--rounds", "0"], "rounds must be at least 1, got 0"),
        (["synthetic", "--proposer", "oracle"], "one of offline, mutation, got 'oracle'"),
        (["synthetic", "--workers", "0"], "--workers must be at least 1"),
    ],
)
def test_the_command_refuses_what_makes_no_sense(given: list[str], said: str) -> None:
    done = coevolve("searches", *given)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())
