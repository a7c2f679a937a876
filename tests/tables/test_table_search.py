"""Searches on a table are whole searches: the same seed, the same winner, and honest counts."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from coevolve.benchmarks.textclass.blocks import TextBlocks
from coevolve.core.choice import HighestEstimate
from coevolve.core.protocols import protocol, register
from coevolve.errors import InputError
from coevolve.proposers.offline.building_blocks import Recipe, RecipeSpace
from coevolve.search.proposal import Proposal, Proposed, View
from coevolve.tables.harness_runs import OTHER
from coevolve.tables.harness_table import HarnessTable, save
from coevolve.tables.mutation_proposer import MutationProposer
from coevolve.tables.search_series import report, run_series, settings
from coevolve.tables.synthetic_table import synthetic_table
from coevolve.tables.table_search import SWAPPED, PlainBlocks, SearchSetting, TableSearches
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
    assert 0 < by_name["joint"].estimate < 1
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
    (tmp_path / "empty.npz").touch()
    for name in ("text", "empty"):
        with pytest.raises(InputError, match=rf"{name}.npz is not a table of harnesses, or it is"):
            HarnessTable.read(tmp_path / f"{name}.npz")
    with pytest.raises(InputError, match="is a folder"):
        HarnessTable.read(tmp_path)
    np.savez(tmp_path / "other.npz", keys=np.arange(3))
    with pytest.raises(InputError, match="needs the arrays"):
        HarnessTable.read(tmp_path / "other.npz")


def facts_with(**changes: object) -> np.ndarray:
    facts = json.loads(bytes(TABLE._arrays["facts"])) | changes
    return np.frombuffer(json.dumps(facts).encode(), np.uint8)


@pytest.mark.parametrize(
    ("name", "array", "said"),
    [
        ("keys", TABLE._arrays["keys"][:-1], "the table has no harness"),
        ("correct", TABLE._arrays["correct"][:-1], "'correct' has the shape"),
        ("answers", TABLE._arrays["answers"][:, :-1], "'answers' has the shape"),
        ("gold", TABLE._arrays["gold"][:-1], "'gold' has the shape"),
        ("facts", facts_with(validation=31), "has the shape"),
        ("facts", facts_with(validation="30"), "whole numbers"),
        ("facts", facts_with(stage=3), "the last filled stage is 3, but the space has 2"),
        ("facts", facts_with(stage=0), "the last filled stage is 0"),
        ("facts", facts_with(stages=[{"magic": ["on"]}] * 2), "magic"),
        ("keys", np.array([*TABLE._arrays["keys"][:-1], "other"]), "the table has no harness"),
    ],
)
def test_a_table_that_does_not_fit_together_is_refused(
    name: str, array: np.ndarray, said: str, tmp_path: Path
) -> None:
    save(tmp_path / "table.npz", {**TABLE._arrays, name: array})
    done = coevolve("searches", str(tmp_path / "table.npz"), "--seeds", "1")
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())


def test_a_table_that_is_damaged_inside_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "table.npz"
    save(file, TABLE._arrays)
    content = bytearray(file.read_bytes())
    place = content.index(b"answers.npy") + 200
    content[place : place + 20] = bytes(20)
    file.write_bytes(content)
    with pytest.raises(InputError, match=r"table.npz: the array 'answers' is damaged"):
        HarnessTable.read(file).load()


def test_a_starting_harness_may_win() -> None:
    usual = protocol("adaptive")
    register(replace(usual, name="with-starts", choice=HighestEstimate(include_start=True)))
    searches = TableSearches(TABLE)
    setting = SearchSetting(protocol="with-starts", fraction=0.2, rounds=1, candidates=1)
    found = [searches.search(setting, seed) for seed in range(6)]
    won = [one for one in found if one.winner in TABLE.starts]
    assert won
    assert all(one.estimate == pytest.approx(one.validation) == one.start for one in won)
    assert all(one.candidates == 1 for one in found)


def test_a_mutation_has_one_other_block_and_none_is_proposed_twice() -> None:
    space = RecipeSpace(PlainBlocks(TextBlocks(), STAGES[1]))
    proposer, setting = (
        MutationProposer(space.blocks),
        SearchSetting(protocol="full", fraction=1.0, rounds=6, candidates=3),
    )
    made: list[tuple[Recipe | None, Proposal]] = []

    class Watched:
        async def propose(self, view: View, count: int) -> Proposed:
            known = {s.candidate.name: space.of(s.candidate.components) for s in view.standings}
            found = await proposer.propose(view, count)
            for one in found.proposals:
                made.append((known[one.parents[0]] if one.parents else None, one))
            return found

    TableSearches(TABLE, lambda blocks: Watched()).search(setting, 2)
    recipes = [space.of(one.components) for _, one in made]
    assert len(set(recipes)) == len(made) == 18
    for (parent, proposal), recipe in zip(made, recipes, strict=True):
        assert (proposal.kind == "exploit") == (parent is not None)
        if parent is not None and recipe is not None:
            slots = parent.differs(recipe)
            assert len([slot for slot in slots if parent.has(slot) and recipe.has(slot)]) == 1
    assert any(parent is not None for parent, _ in made)


def test_the_command_prints_means_with_standard_errors(tmp_path: Path) -> None:
    save(tmp_path / "table.npz", TABLE._arrays)
    given = ["searches", str(tmp_path / "table.npz"), "--protocols", "full,naive"]
    given += ["--fractions", "0.075", "--seeds", "2", "--rounds", "2", "--per-round", "2"]
    shown = coevolve(*given, "--workers", "1")
    assert shown.returncode == 0, shown.stderr
    given[given.index("0.075")] = "0.2"
    done = coevolve(*given, "--workers", "1", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    full = told["series"][0]["validation"]
    [row] = [line for line in shown.stdout.splitlines() if line.startswith("full")]
    assert f"{100 * full['mean']:.1f} ± {100 * full['se']:.1f}" in row
    [row] = [line for line in shown.stdout.splitlines() if line.startswith("naive")]
    assert "7.5%" in row
    assert "2 seeds" in shown.stdout
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
        (["synthetic", "--fractions", "0.2,0.2"], "a fraction is named twice: 0.2, 0.2"),
        (["synthetic", "--fractions", "0"], "above 0 and at most 1, got 0"),
        (["synthetic", "--seeds", "0"], "--seeds must be at least 1"),
        (["synthetic", "--seeds", "9999999999"], "--seeds must be at most 100,000"),
        (["synthetic", "--rounds", "0"], "rounds must be at least 1, got 0"),
        (["synthetic", "--proposer", "oracle"], "one of offline, mutation, got 'oracle'"),
        (["synthetic", "--workers", "0"], "--workers must be at least 1"),
    ],
)
def test_the_command_refuses_what_makes_no_sense(given: list[str], said: str) -> None:
    done = coevolve("searches", *given)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())
