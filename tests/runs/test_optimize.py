"""A whole search in one call."""

import asyncio
import functools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coevolve
from coevolve import Budget, Missing, Pool, Proposal, Score, StopRun, Usage, View
from coevolve.core.weights import UniformWeights
from coevolve.errors import ConfigError, InputError, NoOutcomeError
from coevolve.executors.isolation import find_isolation

EXAMPLE = Path(__file__).parents[2] / "examples/optimize.py"
LETTERS = list("abcdefghij")
STARTS = {"one": "a", "two": "bc"}


def contains(candidate: Any, task: str) -> bool:
    return task in candidate.text


def longer(view: View) -> str:
    """The parent with the letter of the round."""
    return view.text() + LETTERS[view.round % 10]


def search(**others: Any) -> coevolve.Result:
    given: dict[str, Any] = {
        "tasks": LETTERS,
        "starts": STARTS,
        "evaluate": contains,
        "propose": longer,
        "rounds": 2,
    }
    return coevolve.optimize(**(given | others))


class TestResult:
    def test_it_has_the_best_candidate_and_all_others(self) -> None:
        result = search(rounds=5, fraction=0.5, test_tasks=["k", "l"], candidates=2)
        assert [c.name for c in result.candidates][:3] == ["one", "two", "r1-0"]
        best = result.best
        assert best is not result.candidates[0]
        assert best.name == result.status.best
        assert best.files == {"prompt.txt": best.text.encode()}
        assert (best.folder / "prompt.txt").read_text() == best.text
        assert result.estimate == best.estimate == result[best.name].estimate
        assert best.test == 0.0
        assert result.run is None
        with pytest.raises(InputError, match=r"no candidate 'r1-1'. Did you mean 'r1-0'"):
            _ = result["r1-1"]

    def test_its_repr_is_short_and_its_report_says_what_happened(self) -> None:
        result = search(test_tasks=["k"])
        assert repr(result).startswith(f"Result(best='{result.best.name}', ")
        assert len(repr(result)) < 120
        assert repr(result.best).startswith(f"CandidateResult('{result.best.name}', ")
        lines = result.report().splitlines()
        assert lines[0].startswith("optimize: finished, 2 of 2 rounds, 27 trials, protocol")
        assert lines[1] == (
            "27 trials in all, 63% of a full search (43). The paper counts new candidates only: "
            "4 of 20, 20%."
        )
        assert any(line.startswith(f"*  {result.best.name} ") for line in lines)
        assert "sealed test" in lines[3]

    def test_a_starting_candidate_that_wins_is_reported_first(self) -> None:
        result = search(propose=lambda view: f"x{view.round}")
        assert result.best.name == "two"
        line = result.report().splitlines()[0]
        assert line == "Warning: no new candidate is ahead of the starting harness two."

    def test_outcomes_are_flat_rows(self) -> None:
        result = search(
            evaluate=lambda candidate, task: Score(value=0.5, usage=Usage(tokens_in=3)),
            tasks={"x": ["a", "b"], "y": ["c"]},
        )
        rows = result.outcomes()
        assert len(rows) == result.status.spend.evaluating["trials"]
        assert rows[0] | {"seconds": 0} == {
            "candidate": "one",
            "round": 0,
            "task": "a",
            "pool": "x",
            "trial": 0,
            "split": "validation",
            "score": 0.5,
            "missing": "",
            "fault": "",
            "reason": "",
            "tokens_in": 3,
            "tokens_out": 0,
            "dollars": 0.0,
            "seconds": 0,
            "trace": "",
            "imported": "",
        }

    def test_a_starting_candidate_wins_if_no_other_is_better(self) -> None:
        result = search(propose=lambda view: f"z{view.round}")
        assert result.best.name == "two"
        result = search(propose=lambda view: f"z{view.round}", protocol=coevolve.protocol("naive"))
        assert result.best.round > 0, "an explicit protocol is used as it is"
        assert "the starting harness two scores 0.200" in result.report()

    def test_without_any_score_there_is_no_best(self) -> None:
        result = search(
            evaluate=lambda candidate, task: Score(value=0.5, usage=Usage(dollars=1)),
            budget={"dollars": 4},
        )
        assert result.status.why == "budget: dollars"
        with pytest.raises(NoOutcomeError, match=r"no candidate of run 'optimize' has a score"):
            _ = result.best
        assert repr(result) == "Result(budget: dollars, 2 candidates, 4 trials)"
        assert "budget: dollars" in result.report()


class TestTasks:
    @pytest.mark.parametrize(
        ("tasks", "ids", "first"),
        [
            (["any text", "at all\nüß"], ["any text", "at all\nüß"], "any text"),
            (iter(["a", "b"]), ["a", "b"], "a"),
            (range(3), ["0", "1", "2"], 0),
            (np.arange(2), ["0", "1"], 0),
            ([{"id": 7, "q": 1}, {"id": "x"}], ["7", "x"], {"id": 7, "q": 1}),
            ([("q", "a"), ("r", "b")], ["task-001", "task-002"], ("q", "a")),
            ({"t1": {"q": 1}, "t2": {"q": 2}}, ["t1", "t2"], {"q": 1}),
            ({"t1": 5, "t2": ["x"]}, ["t1", "t2"], 5),
            ({"law": ["a", "b"], "med": [("c",)]}, ["a", "b", "med-001"], "a"),
            (Pool(["a", "b"], costs=[1, 2]), ["a", "b"], "a"),
        ],
    )
    def test_may_be_given_in_many_ways(self, tasks: Any, ids: list[str], first: Any) -> None:
        seen: list[Any] = []

        def evaluate(candidate: Any, task: Any) -> float:
            seen.append(task)
            return 0.5

        result = search(tasks=tasks, evaluate=evaluate, rounds=1)
        assert result._state.selector.pool.tasks == tuple(ids)
        assert any(task is first or task == first for task in seen)

    def test_pools_are_kept(self) -> None:
        result = search(tasks={"law": ["a", "b"], "med": ["c", "d"]})
        assert {row["pool"] for row in result.outcomes()} == {"law", "med"}

    def test_sealed_ones_are_scored_at_the_end(self) -> None:
        seen: list[Any] = []

        def evaluate(candidate: Any, task: Any) -> float:
            seen.append(task)
            return 0.5

        search(tasks=[(1,), (2,)], test_tasks=[(3,), (4,)], evaluate=evaluate, rounds=1)
        assert seen[-4:] == [(3,), (4,), (3,), (4,)]
        assert (3,) not in seen[:-6]


class TestStarts:
    def test_texts_are_code_if_all_define_something(self) -> None:
        code = {"one": "def f(): ...", "two": "class F: ..."}
        assert list(search(starts=code).candidates[0].files) == ["harness.py"]
        mixed = {"one": "def f(): ...", "two": "x = 1"}
        assert list(search(starts=mixed).candidates[0].files) == ["prompt.txt"]

    def test_files_and_folders(self, tmp_path: Path) -> None:
        (tmp_path / "kept").mkdir()
        (tmp_path / "kept/a.txt").write_text("a")
        (tmp_path / "kept/b.txt").write_text("b")
        (tmp_path / "words.txt").write_text("b")
        result = search(
            starts=[tmp_path / "kept", tmp_path / "words.txt"],
            evaluate=lambda candidate, task: f"{task}.txt" in candidate.files,
            propose=lambda view: {"files": {"c.txt": f"{view.round}"}},
        )
        assert {c.name: sorted(c.files) for c in result.candidates} == {
            "kept": ["a.txt", "b.txt"],
            "words": ["prompt.txt"],
            "r1-0": ["c.txt"],
            "r2-0": ["c.txt"],
        }

    def test_a_list_of_texts_gets_names(self) -> None:
        names = [c.name for c in search(starts=["a", "b", "c"]).candidates]
        assert names == ["start-1", "start-2", "start-3", "r1-0", "r2-0"]

    def test_past_results_stand_for_their_trials(self, tmp_path: Path) -> None:
        ran: list[str] = []

        def evaluate(candidate: Any, task: str) -> float:
            ran.append(candidate.name)
            return 1.0

        (tmp_path / "past.csv").write_text("candidate,task,score\nold,a,0\nold,b,1\nold,c,0\n")
        options: dict[str, Any] = {"history": tmp_path / "past.csv", "folder": tmp_path / "run"}
        result = search(tasks=["a", "b", "c"], starts={"old": "x"}, evaluate=evaluate, **options)
        assert "old" not in ran
        assert [row["score"] for row in result.outcomes() if row["candidate"] == "old"] == [
            0,
            1,
            0,
        ]
        (tmp_path / "past.csv").unlink()
        search(tasks=["a", "b", "c"], starts={"old": "x"}, evaluate=evaluate, **options)

    def test_one_is_enough(self) -> None:
        names = [c.name for c in search(starts="only one").candidates]
        assert names == ["start-1", "r1-0", "r2-0"]


CODE = {
    "one": "def solve(n): return n",
    "two": "import helper\ndef solve(n): return helper.half(n)",
}


class TestCandidates:
    @pytest.mark.parametrize("isolation", [None, "process"])
    def test_functions_of_theirs_are_called(self, isolation: Any) -> None:
        starts = {
            "one": {"harness.py": CODE["one"]},
            "two": {"harness.py": CODE["two"], "helper.py": "def half(n): return n / 2"},
        }

        def propose(view: View) -> Any:
            source = "def solve(n): return [][n]" if view.round == 1 else "def solve(n: ..."
            return {"files": {"harness.py": source}, "hypothesis": "try"}

        result = search(
            tasks=range(5),
            starts=starts,
            evaluate=lambda candidate, task: candidate.call("solve", task) == task,
            propose=propose,
            isolation=isolation,
        )
        assert result["one"].estimate.value == 1.0  # type: ignore[union-attr]
        assert result["two"].estimate.value == 0.2  # type: ignore[union-attr]
        (row,) = [row for row in result.outcomes() if row["candidate"] == "r1-0"]
        assert (row["score"], row["fault"]) == (0.0, "IndexError")
        assert "list index out of range" in row["reason"]
        assert result["r2-0"].status == "refused"
        assert "SyntaxError" in result["r2-0"].reason
        assert "r2-0 was refused: check failed: SyntaxError" in result.report()
        assert result["r1-0"].hypothesis == "try"
        (session,) = [row for row in result._source.events() if row["type"] == "session"]
        assert session["isolation"] == (find_isolation(isolation).name if isolation else "none")

    @pytest.mark.parametrize("isolation", [None, "process"])
    @pytest.mark.parametrize("starts", [STARTS, CODE])
    def test_what_no_candidate_can_be_called_for_is_reported_at_once(
        self, starts: Any, isolation: Any
    ) -> None:
        with pytest.raises(StopRun, match=r"candidate 'one' cannot be called: .*has no f"):
            search(
                starts={"one": starts["one"], "two": f"{starts['one']} "},
                evaluate=lambda candidate, task: candidate.call("sovle", 1),
                isolation=isolation,
            )

    def test_what_it_learns_from_a_service_that_is_away_is_missing(self) -> None:
        tried: list[str] = []

        def evaluate(candidate: Any, task: str) -> Any:
            if candidate.name == "one" and task == "b":
                tried.append(task)
                raise ConnectionResetError("peer went away")
            return Missing("no grader") if candidate.name == "two" and task == "c" else 0.5

        rows = search(evaluate=evaluate, rounds=1, workers=2).outcomes()
        missing = {(r["candidate"], r["task"]): r["missing"] for r in rows if r["score"] is None}
        assert missing == {
            ("one", "b"): "ConnectionResetError: peer went away",
            ("two", "c"): "missing: no grader",
        }
        assert len(tried) == 3


class TestEvaluate:
    def test_a_plain_function_runs_in_this_thread(self) -> None:
        threads = set()

        def evaluate(candidate: Any, task: str) -> float:
            threads.add(threading.current_thread())
            return 0.5

        search(evaluate=evaluate)
        assert threads == {threading.current_thread()}

    def test_several_workers_are_threads(self) -> None:
        meeting = threading.Barrier(2, timeout=10)

        def evaluate(candidate: Any, task: str) -> float:
            meeting.wait()
            return 0.5

        result = search(evaluate=evaluate, workers=2, protocol="full")
        assert [c.estimate and c.estimate.value for c in result.candidates] == [0.5] * 4

    def test_coroutines_run_at_once(self) -> None:
        now, most = 0, 0

        class Evaluator:
            async def __call__(self, candidate: Any, task: str) -> bool:
                nonlocal now, most
                now += 1
                most = max(most, now)
                await asyncio.sleep(0.001)
                now -= 1
                return task in candidate.text

        result = search(evaluate=Evaluator(), workers=5)
        assert most == 5
        assert result.best.name == search().best.name

    def test_its_own_error_ends_the_search_and_is_the_cause(self) -> None:
        error = KeyError("label")

        def evaluate(candidate: Any, task: str) -> float:
            raise error

        with pytest.raises(StopRun, match="candidate 'one', task 'a': KeyError: 'label'") as stop:
            search(evaluate=evaluate)
        assert stop.value.__cause__ is error
        assert "pass folder= to keep" in stop.value.__notes__[0]

    def test_its_docstring_is_what_proposers_are_told(self) -> None:
        told: list[str] = []

        def evaluate(candidate: Any, task: str) -> float:
            """Answer with one letter."""
            return 0.5

        def propose(view: View) -> str:
            told.append(view.briefing)
            return f"{view.round}"

        search(evaluate=evaluate, propose=propose)
        assert told == ["Answer with one letter."] * 2


class TestPropose:
    @pytest.mark.parametrize(
        "propose",
        [
            lambda view: "new",
            lambda view, count: ["new"],
            lambda view: {"text": "new"},
            lambda view: [{"name": "r1-0", "text": "new"}],
            lambda view: {"files": {"prompt.txt": "new"}},
            lambda view: Proposal(name="r1-0", files={"prompt.txt": b"new"}),
        ],
    )
    def test_may_return_a_candidate_in_many_ways(self, propose: Any) -> None:
        result = search(propose=propose, rounds=1)
        assert result["r1-0"].text == "new"

    def test_may_be_async_or_an_object(self) -> None:
        async def propose(view: View, count: int) -> Sequence[Proposal]:
            return [
                Proposal(name=f"new-{i}", files={"prompt.txt": f"{i}".encode()})
                for i in range(count)
            ]

        class Plain:
            def propose(self, view: View, count: int) -> list[str]:
                return ["0", "1"]

        class Async:
            async def propose(self, view: View, count: int) -> Sequence[Proposal]:
                return await propose(view, count)

        for given, names in ((propose, "new-"), (Plain(), "r1-"), (Async(), "new-")):
            result = search(propose=given, rounds=1, candidates=2)
            assert [c.name for c in result.candidates[2:]] == [f"{names}0", f"{names}1"]

    def test_may_be_a_registered_one(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "new").mkdir()
        (tmp_path / "new/prompt.txt").write_text("abc")
        result = search(propose={"kind": "scripted", "folders": ["new"]}, rounds=1)
        assert result["new"].text == "abc"

    def test_an_error_of_its_own_ends_the_search_and_is_the_cause(self) -> None:
        def propose(view: View) -> str:
            raise KeyError("model")

        with pytest.raises(StopRun, match="failed 3 times in round 1: test_optimize") as stop:
            search(propose=propose)
        assert isinstance(stop.value.__cause__, KeyError)

    @pytest.mark.parametrize(
        ("given", "error"),
        [
            (5, "propose returned 5; return a text"),
            (None, "propose returned None; return a text"),
            ([5], "propose returned 5"),
            ({"nam": "x", "text": ""}, "'nam' is not a key of a proposal. Did you mean 'name'"),
        ],
    )
    def test_what_is_no_candidate_ends_the_search_without_another_try(
        self, given: Any, error: str
    ) -> None:
        asked = []

        def propose(view: View) -> Any:
            asked.append(view.round)
            return given

        with pytest.raises(StopRun, match=error):
            search(propose=propose)
        assert asked == [1]

    def test_a_report_hides_two_or_more_candidates(self) -> None:
        reports = [search(rounds=rounds).report() for rounds in range(3, 9)]
        hidden = [report.rpartition("and ")[2] for report in reports if " more" in report]
        assert "1 more" not in hidden
        assert "2 more" in hidden
        assert len(hidden) < len(reports)

    def test_rounds_without_a_new_candidate_end_the_search_with_its_result(self) -> None:
        result = search(
            propose=lambda view: "abcdefgh" if view.round == 1 else "a", rounds=9, fraction=0.5
        )
        assert result.best.text == "abcdefgh"
        assert result.status.round == 4
        assert result.status.why.startswith("3 rounds in a row had no candidate")


class TestFolder:
    def test_calling_again_resumes_where_it_stopped(self, tmp_path: Path) -> None:
        ran: list[str] = []

        def evaluate(candidate: Any, task: str) -> bool:
            ran.append(f"{candidate.name} {task}")
            if len(ran) == 15:
                raise OSError(28, "No space left on device")
            return task in candidate.text

        with pytest.raises(StopRun, match="No space left") as stop:
            search(evaluate=evaluate, folder=tmp_path / "run")
        assert "call optimize again" in stop.value.__notes__[0]
        result = search(evaluate=evaluate, folder=str(tmp_path / "run"))
        assert len(ran) == 1 + len(result.outcomes())
        assert result.run is not None
        assert result.run.folder == tmp_path / "run"
        assert [e["type"] for e in result.run.events()].count("session") == 2
        uninterrupted = search()
        assert result.best.text == uninterrupted.best.text
        assert result.estimate == uninterrupted.estimate
        assert result.best.folder.is_relative_to(tmp_path)

    def test_a_run_that_has_ended_is_not_run_again(self, tmp_path: Path) -> None:
        first = search(folder=tmp_path / "run")

        def fail(*arguments: Any) -> float:
            raise AssertionError

        again = search(folder=tmp_path / "run", evaluate=fail, propose=fail)
        assert repr(again) == repr(first)

    def test_a_budget_that_is_too_small_creates_no_folder(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="a budget of 5 trials is too small"):
            search(folder=tmp_path / "run", budget={"trials": 5})
        assert not (tmp_path / "run").exists()

    def test_more_rounds_or_budget_extend_it(self, tmp_path: Path) -> None:
        folder, budget = tmp_path / "run", Budget(trials=23)
        paper = functools.partial(search, protocol="task-coevolve")  # it has no final draw
        assert paper(folder=folder, budget=budget).status.why == "budget: trials"
        assert paper(folder=folder, budget={"trials": 40}).status.why == "finished"
        result = paper(folder=folder, rounds=4)
        assert result.status.round == 4
        assert [row.cap for row in result.status.spend.budget] == [None] * 4
        assert str(result.estimate) == str(paper(rounds=4).estimate)

    @pytest.mark.parametrize(
        ("other", "error"),
        [
            ({"tasks": ["a", "b"]}, "has a run with different tasks;"),
            ({"starts": ["a", "b"]}, "has a run with different starts;"),
            ({"test_tasks": ["z"]}, "has a run with different test_tasks;"),
            ({"seed": 1}, "has a run with different seed;"),
            ({"candidates": 2}, "has a run with different candidates;"),
            ({"fraction": 0.5}, "has a run with different protocol or fraction;"),
            ({"protocol": "full", "seed": 3}, "different seed, protocol or fraction;"),
            ({"rounds": 1}, "rounds is 1, but the run in .* has 2"),
            ({"budget": {"trials": 90}}, "trials is 90, but the run in .* has no cap"),
        ],
    )
    def test_other_arguments_are_refused(
        self, other: dict[str, Any], error: str, tmp_path: Path
    ) -> None:
        search(folder=tmp_path / "run")
        with pytest.raises(InputError, match=error):
            search(folder=tmp_path / "run", **other)

    def test_the_run_of_a_configuration_is_refused(self, tmp_path: Path) -> None:
        coevolve.open(
            {
                "run": {"folder": str(tmp_path)},
                "search": {"rounds": 1},
                "benchmark": {"kind": "synthetic", "pools": {"all": 8}},
                "proposer": {"kind": "synthetic"},
            }
        ).create()
        with pytest.raises(InputError, match=r"optimize did not start; .*open\(folder\)"):
            search(folder=tmp_path / "run")


class TestListening:
    def test_every_event_is_heard(self) -> None:
        heard: list[str] = []
        others: list[str] = []
        search(listen=[lambda e: heard.append(e["type"]), lambda e: others.append(e["type"])])
        assert heard == others
        assert (heard[0], heard[-1]) == ("session", "ended")

    @pytest.mark.parametrize("kept", [True, False])
    def test_a_listener_may_stop_the_search(self, tmp_path: Path, kept: bool) -> None:
        def stop(event: Any) -> None:
            if event["type"] == "settled":
                raise StopRun("good enough.")

        folder = tmp_path / "run" if kept else None
        result = search(listen=stop, folder=folder)
        assert (result.status.why, result.status.phase) == ("good enough.", "searching")
        assert [c.status for c in result.candidates] == ["evaluated"] * 3
        assert result.best.estimate is not None
        assert "good enough" in result.report()
        assert search(folder=folder).status.round == 2

    def test_a_listener_that_stops_it_before_any_score_raises(self) -> None:
        def stop(event: Any) -> None:
            if event["type"] == "outcome":
                raise StopRun("too slow.")

        with pytest.raises(StopRun, match="too slow"):
            search(listen=stop)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shy(UniformWeights):
    """A part of a protocol that is not built in."""


class TestProtocols:
    def test_by_name(self) -> None:
        assert search(protocol="full").status.spend.searched == 20

    def test_with_a_part_of_ones_own(self) -> None:
        mine = replace(coevolve.protocol("naive"), name="shy-naive", weighting=Shy())
        assert search(protocol=mine).status.protocol == "shy-naive"
        assert search(protocol="shy-naive").status.protocol == "shy-naive"


BAD: list[tuple[dict[str, Any], str]] = [
    ({"tasks": "abc"}, "tasks: must be a list or a mapping, got 'abc'"),
    ({"tasks": 5}, "tasks: must be a list or a mapping, got 5"),
    ({"tasks": []}, "tasks: a pool needs at least one task"),
    ({"tasks": ["a", "a"]}, "tasks: task 'a' appears more than once"),
    ({"tasks": {1: "x"}}, "tasks: the ids of tasks must be text, got 1"),
    ({"test_tasks": ["a"]}, "test_tasks: task 'a' is also in tasks"),
    ({"test_tasks": "k"}, "test_tasks: must be a list or a mapping"),
    ({"starts": 5}, "starts must be a list or a mapping from name to text, got 5"),
    ({"starts": {"x": 5}}, r"starts\['x'\] must be a text, a Path or \{path: text\}, got 5"),
    ({"starts": {"x": {"a": 5}}}, r"starts\['x'\]\['a'\] must be text or bytes, got 5"),
    ({"starts": {"x y": "a"}}, "starts: 'x y' cannot be a name; use letters.* such as 'x-y'"),
    ({"starts": {"x": "/"}}, r"starts\['x'\] is the text '/'; pass Path\('/'\) for the file"),
    ({"starts": [Path("/nowhere")]}, "there is no file or folder '/nowhere'"),
    (
        {"starts": {"x": {"../a": ""}, "y": "z"}},
        r"candidate 'x': '../a' is not a valid path",
    ),
    ({"evaluate": 5}, r"evaluate must be a function of \(candidate, task\), got 5"),
    ({"evaluate": lambda c: 1}, r"\(candidate, task\), got a function of \(c\)"),
    ({"propose": 5}, r"propose must be a function of \(view\) or \(view, count\)"),
    ({"propose": lambda: 1}, r"propose must be a function of .*got a function of \(\)"),
    ({"propose": "offlin"}, "propose: .*'offlin'.*Did you mean 'offline'"),
    ({"rounds": 0}, "rounds must be a whole number of at least 1, got 0"),
    ({"candidates": 1.5}, "candidates must be a whole number of at least 1, got 1.5"),
    ({"fraction": 2}, r"fraction must be in \(0, 1\], got 2"),
    ({"protocol": "task-coevolv"}, "'task-coevolv'.*Did you mean 'task-coevolve'"),
    ({"protocol": 5}, "protocol must be a name or a SearchProtocol, got 5"),
    ({"budget": 100}, "budget must be a Budget or a mapping such as {'trials': 200}, got 100"),
    ({"budget": {"trial": 5}}, "unknown budget 'trial'.*Did you mean 'trials'"),
    ({"budget": {"trials": "5"}}, "budget trials must be a number, got '5'"),
    ({"budget": {"dollars": -1}}, "budget dollars must be positive, got -1"),
    ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
    ({"workers": 0}, "workers must be a whole number of at least 1, got 0"),
    ({"isolation": "docker"}, "isolation must be one of auto, bwrap, .*, got 'docker'"),
    ({"folder": 5}, "folder must be a path, got 5"),
    ({"folder": __file__}, "is a file; pass a folder"),
    ({"listen": 5}, "listen must be a function of one event, or a list, got 5"),
]


@pytest.mark.parametrize(("bad", "error"), BAD, ids=lambda v: next(iter(v)) if v else "")
def test_a_wrong_argument_is_named(bad: dict[str, Any], error: str) -> None:
    with pytest.raises(InputError, match=error):
        search(**bad)


class TestEventLoops:
    def test_a_running_loop_gets_a_thread_of_its_own(self) -> None:
        async def cell() -> coevolve.Result:
            return search(evaluate=contains)

        assert repr(asyncio.run(cell())) == repr(search())

    def test_errors_come_out_of_that_thread(self) -> None:
        async def cell() -> coevolve.Result:
            return search(evaluate=lambda candidate, task: 2)

        with pytest.raises(StopRun, match=r"must be a number in \[0, 1\], got 2"):
            asyncio.run(cell())

    def test_under_asyncio_it_uses_the_loop_that_runs(self) -> None:
        async def main() -> tuple[coevolve.Result, coevolve.Result]:
            loop = asyncio.get_running_loop()

            async def evaluate(candidate: Any, task: str) -> bool:
                assert asyncio.get_running_loop() is loop
                return task in candidate.text

            arguments: Any = (LETTERS, STARTS, evaluate, longer)
            awaited = await coevolve.optimize_async(*arguments, rounds=2)
            plain: Any = (LETTERS, STARTS, contains, longer)
            return awaited, await coevolve.optimize_async(*plain, rounds=2, workers=2)

        for result in asyncio.run(main()):
            assert repr(result) == repr(search())

    def test_cancelling_it_stops_the_search(self, tmp_path: Path) -> None:
        async def main() -> None:
            started = asyncio.Event()

            async def evaluate(candidate: Any, task: str) -> bool:
                started.set()
                await asyncio.sleep(60)
                return True

            given: Any = (LETTERS, STARTS, evaluate, longer)
            task = asyncio.create_task(coevolve.optimize_async(*given, folder=tmp_path / "run"))
            await started.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(main())
        assert coevolve.open(tmp_path / "run").state.stopped == {"why": "interrupted"}


SCRIPT = """
import asyncio, signal, sys, time
import coevolve

# Tests that a shell started in the background have been told to ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
kind, folder, count = sys.argv[1], sys.argv[2], 0

def wait():
    global count
    count += 1
    if count == 8:
        print("waiting", flush=True)
        return 60
    return 0

def plain(candidate, task):
    time.sleep(wait())
    return task in candidate.text

async def awaited(candidate, task):
    await asyncio.sleep(wait())
    return task in candidate.text

def search():
    evaluate = awaited if kind == "async" else plain
    coevolve.optimize(list("abcdef"), ["a", "b"], evaluate, lambda view: view.text() + "c",
        rounds=2, workers=3 if kind == "threads" else 1, folder=folder)

async def cell():
    search()

try:
    asyncio.run(cell()) if kind == "notebook" else search()
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("kind", ["plain", "threads", "async"])
def test_ctrl_c_ends_it_at_once(kind: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, kind, str(tmp_path / "run")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        time.sleep(0.2)
        os.kill(process.pid, signal.SIGINT)
        assert process.communicate(timeout=50)[0] == "interrupted\n"
    run = coevolve.open(tmp_path / "run")
    assert run.state.stopped == {"why": "interrupted"}
    assert 7 <= len(run.outcomes()) <= 12


def test_the_example_runs_in_seconds_and_finds_what_is_needed() -> None:
    done = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, check=True)
    prompt = done.stdout.splitlines()[-1]
    for advice in ("Show your work", "Check units", "Round to cents", "JSON", "Cite"):
        assert advice in prompt
    code = [line for line in EXAMPLE.read_text().split('"""')[2].splitlines() if line.strip()]
    assert len(code) <= 10
    page = (EXAMPLE.parents[1] / "docs/python.md").read_text()
    assert "\n".join(code) in "\n".join(line for line in page.splitlines() if line.strip())
