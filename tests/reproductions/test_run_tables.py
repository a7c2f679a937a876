"""Tables of run folders whose scores, draws and costs can be worked out by hand."""

import asyncio
import csv
import io
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coevolve.core.allocation import Share
from coevolve.core.estimators import Difference, Hajek
from coevolve.core.pool import Pool
from coevolve.core.protocols import protocol
from coevolve.errors import InputError
from coevolve.runs.rescore_plan import leading, plan_rescore
from coevolve.runs.session import read_state
from coevolve.search.requesting import Requesting
from coevolve.store import RunStore
from coevolve.views.report import report
from coevolve.views.spend_parts import EVALUATING, PHASES, PROPOSING, REQUEST, spend_parts
from coevolve_reproductions.run_tables import TABLES, RunTable, read_runs, run_table
from coevolve_reproductions.run_tables.published import published
from coevolve_reproductions.run_tables.run_group import UNFINISHED
from coevolve_reproductions.tables import analyse, read_source
from coevolve_reproductions.tables.table_text import FORMATS, latex, markdown
from tests.reproductions.small_runs import SkillExecutor, make_run

FULL, NAIVE, OURS = "full", "naive", "task-coevolve"
UNSTABLE = frozenset({"u0"})
SIZES = {"uspto": 30, "s2d": 50, "law": 50}
TEXTS = Pool.grouped({name: [f"{name[0]}{n}" for n in range(k)] for name, k in SIZES.items()})
TERMINAL = Pool([f"t{n}" for n in range(89)])


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seeds of full search, naive and task-coevolve; tests only read them."""
    folder = tmp_path_factory.mktemp("runs")
    for seed in (0, 1):
        for name in (FULL, NAIVE, OURS):
            fails = UNSTABLE if name == NAIVE else frozenset()
            make_run(folder / f"{name}-{seed}", name, seed=seed, fails=fails)
    return folder


@pytest.fixture(scope="module")
def alike(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs on as many tasks as the paper's, in fewer rounds; tests only read them."""
    folder = tmp_path_factory.mktemp("alike")
    for name in ("tc", "tb"):
        (folder / name).mkdir()
    for estimator in ("hajek", "difference"):
        rule = protocol(OURS, estimator=estimator)
        make_run(folder / f"tc/{estimator}", rule, rounds=1, pool=TEXTS, model="gpt-oss-120b")
        make_run(folder / f"tb/{estimator}", rule, rounds=1, pool=TERMINAL, test=None)
    return folder


def made(name: str, *paths: Path, **options: Any) -> RunTable:
    return run_table(name, read_runs(paths), **options)


def row_of(found: RunTable, **cells: object) -> dict[str, Any]:
    (row,) = (r for r in found.table.rows if all(r.get(k) == v for k, v in cells.items()))
    return dict(row)


def skill(name: str) -> int:
    """The skill of a candidate, which its name gives."""
    round, index = name.removeprefix("r").split("-")
    return int(round) + 1 + int(index)


def on_test(skill: int) -> tuple[float, float]:
    return min(skill, 4) / 4, min(skill, 8) / 8


def winners(runs: Path, name: str) -> list[int]:
    chosen = (read_state(runs / f"{name}-{seed}").chosen for seed in (0, 1))
    return [skill(one["candidate"]) for one in chosen if one is not None]


def score_in(folder: Path, names: list[str], split: Any = "rescore") -> None:
    """What `coevolve rescore` records."""
    with RunStore.open(folder) as store:
        asyncio.run(Requesting(store, SkillExecutor(store)).run(names, split))


class TestTc:
    def test_hand_designed_harnesses_come_first(self, runs: Path) -> None:
        rows = made("tc", runs).table.rows
        assert [row["method"] for row in rows] == ["zero-shot", "few-shot", FULL, NAIVE, OURS]
        first = dict(rows[1])
        assert (first["test:uspto"], first["test:law"], first["test"]) == (0.5, 0.25, 0.375)
        assert (first["n"], first["test_sd"]) == (6, 0)
        assert "per_round" not in first

    def test_full_search_and_protocols(self, runs: Path) -> None:
        found = made("tc", runs)
        full = row_of(found, method=FULL)
        assert (full["per_round"], full["evaluations"], full["fraction"]) == ("5/10", 90, 1)
        assert (full["test:uspto"], full["test:law"], full["test"]) == (1, 0.625, 0.8125)
        assert full["gain"] is full["saved"] is None
        for name in (NAIVE, OURS):
            row, skills = row_of(found, method=name), winners(runs, name)
            assert (row["per_round"], row["evaluations"], row["n"]) == ("1/2", 18, 2)
            uspto, law = (sum(on_test(s)[at] for s in skills) / 2 for at in (0, 1))
            assert (row["test:uspto"], row["test:law"]) == pytest.approx((uspto, law))
            assert row["test"] == pytest.approx((uspto + law) / 2)
            assert row["gain"] == pytest.approx((uspto + law) / 2 - 0.8125)
            assert row["saved"] == pytest.approx(-0.8)

    def test_rounding_down_is_read_from_the_recorded_protocol(self, tmp_path: Path) -> None:
        rule = replace(protocol(NAIVE), allocation=Share(fraction=0.25, rounding="floor"))
        up = make_run(tmp_path / "up", NAIVE, fraction=0.25)
        down = make_run(tmp_path / "down", rule, fraction=0.25)
        found = {row["per_round"]: row for row in made("tc", up, down).table.rows[2:]}
        assert {key: row["evaluations"] for key, row in found.items()} == {"2/3": 30, "1/2": 18}
        assert found["1/2"]["method"] == "naive, rounding floor"

    def test_without_a_full_search_the_gain_is_unknown(self, runs: Path) -> None:
        found = made("tc", runs / f"{OURS}-0")
        row = row_of(found, method=OURS)
        assert row["gain"] is None
        assert row["saved"] == pytest.approx(-0.8)
        assert "No run is a full search" in found.table.note

    def test_an_unfinished_run_is_missing_and_names_the_command(
        self, runs: Path, tmp_path: Path
    ) -> None:
        begun = make_run(tmp_path / "it's begun", OURS, seed=2, ended=False)
        found = made("tc", runs, begun)
        row = row_of(found, method=OURS)
        assert row["n"] == 2
        (command,) = found.commands
        assert command.startswith("coevolve resume '")
        ((purpose, commands),) = found.table.steps.items()
        assert (purpose, list(commands)) == (UNFINISHED, [command])
        alone = row_of(made("tc", begun), method=OURS)
        assert alone["test"] is alone["test:uspto"] is None
        assert alone["n"] == 0

    def test_a_benchmark_without_a_sealed_test(self, tmp_path: Path) -> None:
        make_run(tmp_path / "one", NAIVE, test=None)
        with pytest.raises(InputError, match=r"no sealed test, which the table tc shows; .* tb"):
            made("tc", tmp_path)

    def test_runs_of_different_benchmarks(self, runs: Path, tmp_path: Path) -> None:
        other = make_run(tmp_path / "other", NAIVE, pool=Pool(["u0", "u1", "u2"]))
        for table in ("tc", "tb"):
            with pytest.raises(InputError, match=r"other \(skills\).* make a table\s+for each"):
                made(table, runs, other)
        benchmarks = made("phase0", runs, other).table
        assert [row["tasks"] for row in benchmarks.rows] == [5, 10, 3]

    def test_two_starts_with_one_name_and_different_files(
        self, runs: Path, tmp_path: Path
    ) -> None:
        starts = {"few-shot": {"harness.py": b"3 # other"}}
        other = make_run(tmp_path / "other", NAIVE, starts=starts)
        names = [str(row["method"]) for row in made("tc", runs / "full-0", other).table.rows]
        assert len([name for name in names if name.startswith("few-shot (")]) == 2


class TestTb:
    def test_what_is_not_scored_in_full_is_missing(self, runs: Path) -> None:
        found = made("tb", runs)
        column = "model:openai/gpt-5.6-luna"
        assert row_of(found, method="few-shot")[column] == pytest.approx(0.3)
        assert row_of(found, method=FULL)[column] == 0.75
        row = row_of(found, method=NAIVE)
        assert (row[column], row["average"], row["runs"]) == (None, None, "0")
        assert len(found.commands) == 4
        assert all(command.startswith("coevolve rescore r") for command in found.commands)

    def test_models_side_by_side_and_their_average(self, tmp_path: Path) -> None:
        make_run(tmp_path / "a", NAIVE, rescore=True, model="openai/gpt-5.6-luna")
        make_run(tmp_path / "b", NAIVE, rescore=True, model="vllm/qwen", seed=5)
        found = made("tb", tmp_path)
        row = row_of(found, method=NAIVE)
        one, two = row["model:openai/gpt-5.6-luna"], row["model:vllm/qwen"]
        assert row["average"] == pytest.approx((one + two) / 2)
        assert [c.heading for c in found.table.shown][3:5] == ["gpt-5.6-luna", "qwen"]
        assert not found.commands


class TestCost:
    def test_every_part_in_tokens(self, runs: Path) -> None:
        """A trial has 100 tokens in, preparing 50, proposing 7,000; u0 fails once everywhere."""
        found = made("cost", runs)
        parts = {row["part"]: row for row in found.table.rows if row["method"] == OURS}
        assert parts["search"]["tokens_in"] == 18 * 100 + 6 * 50
        assert parts["of it preparation"]["tokens_in"] == 6 * 50
        assert parts["proposing"]["tokens_in"] == 3 * 7_000
        assert parts["phase 0"]["tokens_in"] == 30 * 100 + 2 * 50
        assert parts["sealed test"]["trials"] == 36
        assert "of it failed attempts" not in parts
        failed = row_of(found, method=NAIVE, part="of it failed attempts")
        drew = [
            sum("u0" in e["tasks"] for e in run.search.events if e["type"] == "told")
            for run in read_runs([runs / f"{NAIVE}-{seed}" for seed in (0, 1)])
        ]
        assert failed["tokens_in"] == 100 * sum(drew) / 2
        assert failed["failed"] == sum(drew) / 2

    def test_vs_a_measured_full_search_or_a_projected_one(self, runs: Path) -> None:
        full = 90 * 100 + 6 * 50
        measured = row_of(made("cost", runs), method=OURS, part="search")
        assert measured["reduction"] == pytest.approx(2_100 / full - 1)
        alone = made("cost", runs / f"{OURS}-0")
        projected = row_of(alone, method="full, projected")
        assert (projected["trials"], projected["tokens_in"]) == (90, full)
        assert projected.get("hours") is None
        assert row_of(alone, method=OURS, part="search")["reduction"] == measured["reduction"]
        assert not [r for r in made("cost", runs).table.rows if "projected" in str(r["method"])]

    @pytest.mark.parametrize("name", [FULL, NAIVE, OURS])
    def test_the_whole_run_is_what_status_shows(self, runs: Path, name: str) -> None:
        folder = runs / f"{name}-1"
        row = row_of(made("cost", folder), method=name, part="whole run")
        shown = report(read_state(folder)).spend.totals
        assert row["trials"] == shown["trials"]
        assert row["tokens_in"] + row["tokens_out"] == shown["tokens"]
        assert row["dollars"] == pytest.approx(shown["dollars"])
        assert row["hours"] == pytest.approx(shown["hours"], abs=1e-9)

    def test_the_parts_add_up_to_both_ledgers_and_the_clock(self, tmp_path: Path) -> None:
        folder = make_run(tmp_path / "run", NAIVE, rescore=True, fails=UNSTABLE)
        score_in(folder, ["r1-0"])
        state = read_state(folder)
        with RunStore.read(folder) as store:
            parts = spend_parts(store.events())
        assert parts.total(*EVALUATING).sums() == state.evaluating.sums()
        assert parts.total(PROPOSING).sums() == state.proposing.sums()
        assert parts.ledgers[REQUEST].trials == 15
        seconds = sum(parts.seconds[phase] for phase in PHASES)
        assert seconds / 3600 == pytest.approx(state.spending().hours, abs=1e-9)
        rows = {str(row["part"]): row for row in made("cost", folder).table.rows}
        assert (rows["rescoring"]["trials"], rows["on request"]["trials"]) == (15, 15)

    def test_analyse_counts_preparation_and_proposing_of_a_run_too(self, runs: Path) -> None:
        table = analyse(read_source(runs / f"{OURS}-0"), "cost")
        tokens = {row["search"]: row["tokens_in"] for row in table.rows}
        assert tokens == {
            "full, projected": 90 * 100 + 6 * 50,
            OURS: 18 * 100 + 6 * 50,
            "of it preparation": 6 * 50,
            "proposing": 3 * 7_000,
        }

    def test_the_price_of_rescoring_is_that_of_the_trials_of_the_run(self, tmp_path: Path) -> None:
        folder = make_run(tmp_path / "run", OURS)
        plan = plan_rescore(folder, leading(folder, 2))
        assert plan.trials == 30
        assert str(plan).endswith("30 trials: 3,300 tokens, $0.30, 18m 00s")
        with RunStore.open(folder) as store:  # as a command that was killed
            request = Requesting(store, SkillExecutor(store))
            asyncio.run(request.run(list(plan.names[:1]), tasks=["u0", "u1", "l0"]))
        assert plan_rescore(folder, leading(folder, 2)).trials == 27
        score_in(folder, list(plan.names))
        assert plan_rescore(folder, leading(folder, 2)).names == ()


class TestParts:
    def test_ablation(self, runs: Path) -> None:
        rows = made("ablation", runs).table.rows
        assert [row["method"] for row in rows] == [NAIVE, OURS]
        ticks = [(row["rotates"], row["estimates"], row["weighted"]) for row in rows]
        assert ticks == [(False, False, False), (True, True, True)]
        assert row_of(made("ablation", runs), method=NAIVE)["score"] == pytest.approx(
            sum(sum(on_test(s)) / 2 for s in winners(runs, NAIVE)) / 2
        )

    def test_ablation_needs_a_run_of_the_paper_s_protocols(self, runs: Path) -> None:
        with pytest.raises(InputError, match=r"needs runs of naive, .*none was found"):
            made("ablation", runs / "full-0")

    def test_swap_has_searches_guided_by_both_estimators(self, tmp_path: Path) -> None:
        for estimator in (Hajek(), Difference()):
            rule = replace(protocol(OURS), estimator=estimator)
            make_run(tmp_path / type(estimator).__name__, rule)
        rows = made("swap", tmp_path).table.rows
        kinds = [(row["estimator"], row["kind"]) for row in rows]
        assert sorted(kinds) == sorted(
            (name, kind) for name in ("Hájek", "difference") for kind in ("search", "replay")
        )
        for row in rows:
            if row["kind"] == "search":
                found = {"Hájek": "Hajek", "difference": "Difference"}[str(row["estimator"])]
                chosen = read_state(tmp_path / found).chosen
                assert chosen is not None
                expected = sum(on_test(skill(chosen["candidate"]))) / 2
                assert row["score"] == pytest.approx(expected)
            assert row["method"] == OURS

    def test_ties_show_the_test_score_of_the_other_winner_once_it_is_scored(
        self, tmp_path: Path
    ) -> None:
        folder = make_run(tmp_path / "naive", NAIVE, seed=0)
        before = made("ties", folder)
        (row,) = before.table.rows
        assert row["ties"] == "3"  # r2-1, r3-0 and r3-1 solve everything that was drawn
        assert row["earliest"] == sum(on_test(4)) / 2
        assert row["latest"] is None
        (command,) = before.commands
        assert command == f"coevolve rescore r3-1 {folder} --split test"
        score_in(folder, ["r3-1"], "test")
        (row,) = made("ties", folder).table.rows
        assert row["latest"] == sum(on_test(5)) / 2

    def test_stronger(self, runs: Path) -> None:
        row = row_of(
            made("stronger", runs / "full-0", runs / "full-1"), model="openai/gpt-5.6-luna"
        )
        assert (row["start"], row["n"]) == ("few-shot", 2)
        assert (row["before"], row["after"]) == pytest.approx((0.3, 0.75))
        assert row["gain"] == pytest.approx(0.45)


class TestTasks:
    def test_phase_0(self, runs: Path) -> None:
        """Task 0 of each pool is solved by both starts, task 1 by one, the others by none."""
        uspto, law = made("phase0", runs).table.rows
        assert (uspto["pool"], uspto["tasks"], uspto["zeros"], uspto["ones"]) == ("uspto", 5, 3, 1)
        assert (law["pool"], law["tasks"], law["zeros"], law["ones"]) == ("law", 10, 8, 1)
        assert uspto["mean"] == pytest.approx(0.3)
        assert law["start:few-shot"] == pytest.approx(0.2)

    def test_difficulty(self, runs: Path) -> None:
        found = made("difficulty", runs, rounds=(0, 3))
        rows = {row["group"]: row for row in found.table.rows if row["method"] == FULL}
        start = {group: row["round_0"] for group, row in rows.items()}
        assert start == {"never": 11, "sometimes": 0, "mixed": 2, "mostly": 2}
        assert rows["never"]["round_3"] == 5  # l5 to l9
        with pytest.raises(InputError, match="must be from 0 to 3, got 9"):
            made("difficulty", runs, rounds=(9,))
        with pytest.raises(InputError, match="--rounds has no effect on the table tc"):
            made("tc", runs, rounds=(0,))

    def test_accuracy_ranks_the_candidates_scored_in_full(self, tmp_path: Path) -> None:
        folder = make_run(tmp_path / "run", OURS)
        before = made("accuracy", folder)
        (row,) = before.table.rows
        assert row["spearman"] is None
        assert row["n"] == 0
        names = [f"r{round}-{index}" for round in (1, 2, 3) for index in (0, 1)]
        score_in(folder, names)
        after = made("accuracy", folder)
        (row,) = after.table.rows
        chosen = read_state(folder).chosen
        assert chosen is not None
        skills = sorted(map(skill, names), reverse=True)
        rank = 1 + skills.index(skill(chosen["candidate"]))
        assert row["place"] == f"{rank} / 6"
        assert row["best"] == 0.75
        assert not after.commands

    def test_many_missing_scores_are_one_command(self, tmp_path: Path) -> None:
        folder = make_run(tmp_path / "run", OURS, rounds=5)
        (command,) = made("accuracy", folder).commands
        assert command == f"coevolve analyse {folder} --table accuracy --rescore all"


class TestReading:
    def test_a_folder_of_runs_has_each_once(self, runs: Path) -> None:
        assert len(read_runs([runs, runs / "full-0"])) == 6

    @pytest.mark.parametrize("path", ["nothing", "empty", "file"])
    def test_what_is_no_run(self, path: str, tmp_path: Path) -> None:
        (tmp_path / "empty").mkdir()
        (tmp_path / "file").write_text("hello")
        with pytest.raises(InputError, match=path):
            read_runs([tmp_path / path])

    def test_the_same_seed_twice_is_said(self, tmp_path: Path) -> None:
        for name in ("one", "two"):
            make_run(tmp_path / name, NAIVE)
        assert "2 runs of naive have the same seed, 0." in made("tc", tmp_path).table.note

    def test_an_unknown_table(self, runs: Path) -> None:
        with pytest.raises(InputError, match=r"no table 'tie'; .*Did you mean 'ties'\?"):
            made("tie", runs)

    def test_settings_set_groups_apart(self, tmp_path: Path) -> None:
        make_run(tmp_path / "short", NAIVE, rounds=2)
        make_run(tmp_path / "long", NAIVE, rounds=3)
        names = {str(row["method"]) for row in made("ablation", tmp_path).table.rows}
        assert names == {"naive, rounds 2", "naive, rounds 3"}

    def test_settings_have_the_names_that_a_file_gives_them(self, tmp_path: Path) -> None:
        faithful = protocol(OURS, estimator="difference", inclusion="monte-carlo")
        for number, rule in enumerate((protocol(OURS), protocol(OURS, estimator="hajek"))):
            make_run(tmp_path / str(number), rule)
        make_run(tmp_path / "faithful", faithful)
        names = {str(row["method"]) for row in made("ablation", tmp_path).table.rows}
        assert names == {
            f"{OURS}, estimator phase-zero, inclusion exact",
            f"{OURS}, estimator hajek, inclusion exact",
            f"{OURS}, estimator difference, inclusion monte-carlo",
        }
        swapped = {str(row["method"]) for row in made("swap", tmp_path).table.rows}
        assert swapped == {f"{OURS}, inclusion exact", f"{OURS}, inclusion monte-carlo"}

    def test_benchmarks_of_one_name_are_told_apart(self, tmp_path: Path) -> None:
        for size in (3, 4):
            pool = Pool([f"u{n}" for n in range(size)])
            make_run(tmp_path / str(size), FULL, pool=pool, test=None)
        other = Pool([f"l{n}" for n in range(4)])
        make_run(tmp_path / "other", FULL, pool=other, test=None)
        for table in ("cost", "difficulty", "stronger", "phase0"):
            found = made(table, tmp_path).table
            names = {str(row["benchmark"]) for row in found.rows}
            assert names == {"skills, tasks 3", "skills, tasks 4", "skills, tasks 4 (2)"}
            assert {name for name, _ in found.sections()} == names

    def test_a_run_without_a_model_among_others(self, tmp_path: Path) -> None:
        for number, model in enumerate(("", "openai/gpt-5.6-luna")):
            make_run(tmp_path / str(number), FULL, model=model)
        models = [row["model"] for row in made("stronger", tmp_path).table.rows]
        assert models == ["no model", "openai/gpt-5.6-luna"]

    def test_rows_are_in_the_order_of_the_paper(self, tmp_path: Path) -> None:
        order = [(FULL, 1.0), (NAIVE, 0.2), ("random-resample", 0.2), ("random-estimate", 0.2)]
        order += [(OURS, 0.2), ("joint", 0.2), (NAIVE, 0.4), (OURS, 0.4)]
        for number, (name, fraction) in enumerate(reversed(order)):
            model = "b" if name == FULL else "a"
            make_run(tmp_path / str(number), name, fraction=fraction, rounds=1, model=model)
        found = [(row["method"], row["fraction"]) for row in made("tb", tmp_path).table.rows[2:]]
        assert found == order


class TestPaper:
    def test_every_table_of_runs_has_published_rows(self) -> None:
        assert set(published()) == set(TABLES)

    def test_its_figures_are_beside_ours(self, alike: Path) -> None:
        found = made("tc", alike / "tc", paper=True)
        row = row_of(found, method=f"{OURS}, estimator hajek")
        assert (row["test_paper"], row["test_sd_paper"]) == pytest.approx((0.493, 0.008))
        assert (row["evaluations_paper"], row["per_round_paper"]) == (1_560, "6/10/10")
        assert row_of(found, method="few-shot")["test:law_paper"] == 0.25
        headings = [column.heading for column in found.table.shown]
        assert headings[headings.index("Avg") + 1] == "Avg, paper"
        said = "have 20 rounds of 3 candidates; some of these runs have 1 round of 2 candidates."
        assert said in found.table.note
        cost = row_of(
            made("cost", alike / "tb", paper=True),
            method=f"{OURS}, estimator difference",
            part="search",
        )
        assert cost["tokens_in_paper"] == pytest.approx(579e6)

    @pytest.mark.parametrize("table", ["tc", "ablation", "accuracy", "ties", "difficulty"])
    def test_its_figures_of_text_classification_are_those_of_hajek(
        self, table: str, alike: Path
    ) -> None:
        rows = made(table, alike / "tc", paper=True).table.rows
        guided = {str(row.get("estimator")) for row in rows if _published_cells(row)}
        assert guided <= {"Hájek", "None"}  # hand-designed harnesses have none
        assert table == "difficulty" or "Hájek" in guided  # whose figures are those at 7%

    @pytest.mark.parametrize("table", ["tb", "cost", "difficulty"])
    def test_its_figures_of_terminal_bench_are_those_of_difference(
        self, table: str, alike: Path
    ) -> None:
        rows = made(table, alike / "tb", paper=True).table.rows
        evolved = [row for row in rows if row.get("estimator")]
        assert {row["estimator"] for row in evolved if _published_cells(row)} == {"difference"}
        assert not [row for row in rows if "average_paper" in row]  # one of two models

    @pytest.mark.parametrize("table", TABLES)
    def test_other_tasks_have_none_of_its_figures(self, table: str, runs: Path) -> None:
        found = made(table, runs, paper=True).table
        assert not [row for row in found.rows if _published_cells(row)]
        assert found.note.startswith("There are no figures of the paper: its table is on ")
        assert "these runs have 5 uspto + 10 law." in found.note

    def test_other_models_have_none_of_its_figures(self, tmp_path: Path) -> None:
        make_run(tmp_path / "run", FULL, rounds=1, pool=TERMINAL, test=None, model="other")
        found = made("tb", tmp_path, paper=True).table
        assert not [row for row in found.rows if _published_cells(row)]
        assert "its models are deepseek-v4-flash, gpt-5.6-luna, " in found.note
        assert "these runs have other." in found.note

    def test_its_averages_are_those_of_its_rows(self) -> None:
        for entry in published()["tc"]:
            paper = entry["paper"]
            pools = [paper[f"test:{pool}"] for pool in ("uspto", "s2d", "law")]
            assert sum(pools) / 3 == pytest.approx(paper["test"], abs=0.11)
        for entry in published()["tb"]:
            *models, average = entry["paper"].values()
            assert sum(models) / 2 == pytest.approx(average, abs=0.051)

    def test_rows_that_the_paper_does_not_have(self, tmp_path: Path) -> None:
        make_run(tmp_path / "run", NAIVE, fraction=0.5, rounds=1, pool=TEXTS)
        found = made("ablation", tmp_path, paper=True)
        assert found.table.note.startswith("The paper has no figures for these rows.")
        assert not [name for name in found.table.names if "paper" in name]


def _published_cells(row: Mapping[str, object]) -> list[str]:
    return [name for name in row if name.endswith("_paper")]


HOSTILE = r"\input{x}|<b>$&%#_^~`*[a](b)" + "\x1b[31m\u202e"


class TestFormats:
    def test_commands_are_lines_of_their_own(self, tmp_path: Path) -> None:
        for seed in range(7):
            make_run(tmp_path / f"run-{seed}", NAIVE, seed=seed, rounds=1)
        found = made("tb", tmp_path)
        assert len(found.commands) == 7
        shown = [*found.commands[:5], "and 2 more: --format json lists all"]
        assert [lines for _, lines in found.table.step_lines()] == [shown]
        assert "\n".join(f"    {line}" for line in shown) in markdown(found.table)
        assert "\n".join(f"% {line}" for line in shown) in latex(found.table)
        assert found.to_json()["missing"] == list(found.commands)
        assert "coevolve rescore" not in found.table.note

    @pytest.mark.parametrize("table", TABLES)
    @pytest.mark.parametrize("form", FORMATS)
    def test_every_table_in_every_format(self, table: str, form: str, runs: Path) -> None:
        text = FORMATS[form][1](made(table, runs, paper=True).table)
        assert text.endswith("\n")
        if form == "csv":
            assert len(list(csv.DictReader(io.StringIO(text)))) > 1
        elif form == "json":
            assert json.loads(text)["rows"]
        elif form == "latex":
            body = text.partition(r"\toprule")[2].partition(r"\bottomrule")[0]
            lines = [line for line in body.splitlines() if "&" in line]
            assert len({line.count(" & ") for line in lines}) == 1
            assert text.isascii() or "á" in text

    @pytest.fixture
    def hostile(self, tmp_path: Path) -> RunTable:
        """Names of starting harnesses are checked; those of models and pools are not."""
        test = Pool.grouped({HOSTILE: [f"U{n}" for n in range(4)]})
        make_run(tmp_path / "run", NAIVE, model=HOSTILE, test=test)
        return made("tc", tmp_path)

    def test_names_are_not_latex(self, hostile: RunTable) -> None:
        text = latex(hostile.table)
        shown = r"\textbackslash{}input\{x\}\textbar{}\textless{}b\textgreater{}\$\&\%\#\_"
        assert shown in text
        assert "\x1b" not in text
        assert "\u202e" not in text

    def test_names_are_not_markdown_or_html(self, hostile: RunTable) -> None:
        text = markdown(hostile.table)
        assert r"\\input\{x\}\|&lt;b&gt;" in text
        assert r"\`\*\[a\]\(b\)" in text
        assert "\x1b" not in text
        widths = {line.replace(r"\|", "").count("|") for line in text.splitlines() if "|" in line}
        assert len(widths) <= 2  # the title has none of its own

    def test_names_are_neither_formulas_nor_escapes_in_csv(self, tmp_path: Path) -> None:
        make_run(tmp_path / "run", NAIVE, model="=1+1\x1b[31m")
        text = FORMATS["csv"][1](made("tc", tmp_path).table)
        assert "'=1+1" in text
        assert "\x1b" not in text
