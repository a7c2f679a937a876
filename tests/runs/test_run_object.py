"""A run as one object, whatever it was made from; one search gives one journal."""

import asyncio
import json
import runpy
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import coevolve
from coevolve.core.events import Event
from coevolve.errors import ConfigError, InputError, StateError, StopRun
from coevolve.runs.run import Run

COMMAND = Path(sys.executable).parent / "coevolve"

CONFIG = """
[run]
name = "drill"
seed = 5
[search]
rounds = 4
candidates = 2
fraction = 0.3
include_start = true
[benchmark]
kind = "function"
file = "benchmark.py"
starts = ["even", "odd"]
[proposer]
kind = "function"
file = "propose.py"
[executor]
workers = 1
[isolation]
kind = "process"
"""
BENCHMARK = '''
"""Numbers without certain divisors."""
TASKS = {"low": [f"n{i}" for i in range(12)], "high": [f"n{i}" for i in range(12, 30)]}
TEST_TASKS = [f"n{i}" for i in range(30, 36)]


def evaluate(candidate, task):
    return float(candidate.call("solves", int(task[1:]), returns=bool))
'''
PROPOSE = """
import random


def propose(view, count):
    rng = random.Random(view.seed)
    made = []
    for i in range(count):
        gaps = sorted(rng.sample(range(2, 12), 2))
        files = {"harness.py": f"GAPS = {gaps}\\ndef solves(n): return all(n % g for g in GAPS)"}
        made.append({"name": f"r{view.round}-{i}", "files": files, "parents": [view.parent]})
    if view.round == 2:
        made[0]["files"] = {"harness.py": "def solves(n): return 1 // (n % 3)"}
    if view.round == 3:
        made[1]["files"] = {"harness.py": "def solves(n:"}
    return made
"""
HARNESS = "GAPS = {gaps}\ndef solves(n): return all(n % g for g in GAPS)\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = {
        "drill.toml": CONFIG,
        "benchmark.py": BENCHMARK,
        "propose.py": PROPOSE,
        "even/harness.py": HARNESS.format(gaps=[2, 7]),
        "odd/harness.py": HARNESS.format(gaps=[3, 5]),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


SYNTHETIC: dict[str, Any] = {
    "search": {"rounds": 2, "protocol": "naive"},
    "benchmark": {"kind": "synthetic", "pools": {"all": 20}, "test_tasks": 5},
    "proposer": {"kind": "synthetic"},
    "executor": {"workers": 1},
}


def synthetic(folder: Path, **tables: Any) -> Run:
    return coevolve.open(SYNTHETIC | {"run": {"folder": str(folder), "name": "world"}} | tables)


@pytest.fixture(scope="module")
def capped(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with a budget that has ended; tests leave it unchanged."""
    run = synthetic(tmp_path_factory.mktemp("capped"), budget={"trials": 90})
    run.run()
    return run


class TestOneSearchGivesOneJournal:
    """From a TOML file and from Python, with the functions of the same files."""

    def test_whoever_runs_it(self, project: Path) -> None:
        subprocess.run([COMMAND, "run", "drill.toml", "-q"], cwd=project, check=True)
        by_command = coevolve.open(project / "runs/drill")
        (project / "again").mkdir()
        (project / "again.toml").write_text(CONFIG.replace("[run]", '[run]\nfolder = "again"'))
        by_object = coevolve.open(project / "again.toml").run().run
        assert by_object is not None
        benchmark = runpy.run_path(str(project / "benchmark.py"))
        expected = plain(by_command.events())
        assert len(expected) > 100
        assert plain(by_object.events()) == expected
        for isolation in ("process", None):
            folder = project / f"python-{isolation}" / "drill"
            coevolve.optimize(
                benchmark["TASKS"],
                [project / "even", project / "odd"],
                benchmark["evaluate"],
                runpy.run_path(str(project / "propose.py"))["propose"],
                rounds=4,
                candidates=2,
                fraction=0.3,
                seed=5,
                test_tasks=benchmark["TEST_TASKS"],
                isolation=isolation,
                folder=folder,
            )
            found = plain(coevolve.open(folder).events())
            assert [event["type"] for event in found] == [event["type"] for event in expected]
            assert found == expected


def plain(events: Iterable[Event]) -> list[dict[str, Any]]:
    """Events without times, numbers, seals, the configuration, its files and the isolation."""
    found, left_out = [], ("seq", "at", "clock", "seal", "config")
    for event in events:
        if event["type"] == "fingerprinted":  # optimize has functions, not files
            continue
        body = {k: v for k, v in event.items() if k not in left_out}
        body.pop("isolation", None)
        if "usage" in body:
            body["usage"] = body["usage"][:3]
        if "tally" in body:
            tally = json.loads(json.dumps(body["tally"]))
            tally["ledger"]["nano_seconds"] = None
            tally["pace"]["sums"] = list(tally["pace"]["sums"])
            body["tally"] = tally
        if body.get("fault"):  # where in a file an error was is told in other words
            body["fault"] = {**body["fault"], "reason": body["fault"]["reason"].split(" (")[0]}
        found.append(body)
    return found


class TestOpening:
    def test_a_file_a_folder_and_a_mapping(self, tmp_path: Path) -> None:
        run = synthetic(tmp_path)
        assert repr(run) == f"Run('{tmp_path}/world', not started)"
        run.run()
        again = coevolve.open(str(tmp_path / "world"))
        assert repr(again) == f"Run('{tmp_path}/world', ended)"
        assert list(again.events()) == list(run.events())

    def test_a_file_says_where_its_run_is(self, project: Path) -> None:
        run = coevolve.open(project / "drill.toml")
        assert run.folder == project / "runs/drill"
        assert not run.started

    @pytest.mark.parametrize(
        ("source", "error"),
        [
            ("nowhere", "there is no file or folder 'nowhere'"),
            (5, "open needs a TOML file, a run folder or a configuration, got 5"),
            ("benchmark.py", "is neither a TOML file nor a run folder"),
            ("even", "is not a run folder: it has no run.db"),
            ({}, "'search' is missing"),
            (SYNTHETIC | {"serach": {}}, "'serach'"),
        ],
    )
    def test_what_is_no_run(
        self, source: Any, error: str, project: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(project)
        with pytest.raises(InputError, match=error):
            coevolve.open(source)

    def test_nothing_can_be_read_before_it_was_started(self, tmp_path: Path) -> None:
        run = synthetic(tmp_path)
        for look in ("status", "candidates", "state", "result"):
            with pytest.raises(StateError, match=r"has not started; call run\(\)"):
                getattr(run, look)
        with pytest.raises(StateError, match="not started"):
            run.resume()
        with pytest.raises(StateError, match="not started"):
            run.events()
        assert not run.folder.exists()

    def test_a_run_is_started_once(self, tmp_path: Path) -> None:
        synthetic(tmp_path).run()
        for run in (synthetic(tmp_path), coevolve.open(tmp_path / "world")):
            with pytest.raises(StateError, match=r"already has a run; call resume\(\)"):
                run.run()

    def test_a_wrong_configuration_leaves_nothing_behind(self, tmp_path: Path) -> None:
        run = synthetic(tmp_path, budget={"trials": 3})
        with pytest.raises(ConfigError, match="a budget of 3 trials is too small"):
            run.run()
        run = synthetic(tmp_path)
        assert run.run().status.phase == "ended", "the folder of a failed start is used again"


class TestWorking:
    def test_what_was_found(self, tmp_path: Path) -> None:
        run = synthetic(tmp_path)
        result = run.run()
        assert result.run is run
        assert run.status.phase == "ended"
        assert [c.name for c in run.candidates] == [c.name for c in result.candidates]
        assert run.outcomes() == result.outcomes()
        assert len(run.outcomes()) == run.status.spend.evaluating["trials"]
        assert run.report() == result.report()
        assert result.best.folder.is_dir()
        assert result.best.files == {
            path.name: path.read_bytes() for path in result.best.folder.iterdir()
        }
        assert result.best.test is not None

    def test_a_run_that_has_ended_gives_its_result(self, tmp_path: Path) -> None:
        run = synthetic(tmp_path)
        run.run()
        count = len(list(run.events()))
        assert run.resume().status.phase == "ended"
        assert len(list(run.events())) == count

    def test_listeners_hear_every_event_and_may_stop_the_run(self, tmp_path: Path) -> None:
        run, heard = synthetic(tmp_path), []

        @run.listen
        def stop(event: Event) -> None:
            heard.append(event["type"])
            if event["type"] == "settled" and heard.count("settled") == 1:
                raise StopRun("one round is enough.")

        with pytest.raises(StopRun, match="one round is enough"):
            run.run()
        assert run.state.stopped == {"why": "one round is enough."}
        result = run.resume()
        assert [event["type"] for event in run.events()] == ["opened", *heard]
        assert result.status.rounds == result.status.round == 2
        with pytest.raises(InputError, match="listen needs a function"):
            run.listen(5)  # type: ignore[type-var]

    def test_under_asyncio_and_in_a_running_loop(self, tmp_path: Path) -> None:
        async def both() -> list[str]:
            awaited = await synthetic(tmp_path / "a").run_async()
            blocked = synthetic(tmp_path / "b").run()
            resumed = await coevolve.open(tmp_path / "b/world").resume_async()
            return [result.best.name for result in (awaited, blocked, resumed)]

        assert len(set(asyncio.run(both()))) == 1


class TestExtending:
    def test_by_rounds(self, tmp_path: Path) -> None:
        run = synthetic(tmp_path)
        run.run()
        result = run.extend(rounds=4).resume()
        whole = synthetic(tmp_path / "whole", search={**SYNTHETIC["search"], "rounds": 4}).run()
        assert [str(c.estimate) for c in result.candidates] == [
            str(c.estimate) for c in whole.candidates
        ]
        assert result.best.name == whole.best.name
        assert result.status.rounds == 4

    def test_by_the_budget_that_ended_it(self, tmp_path: Path) -> None:
        run = synthetic(tmp_path, budget={"trials": 59, "hours": 3})
        assert run.run().status.why == "budget: trials"
        run.extend(trials=500, hours=4)
        caps = {row.name: row.cap for row in run.status.spend.budget}
        assert (caps["trials"], caps["hours"], caps["dollars"]) == (500, 4, None)
        result = run.resume()
        assert result.status.why == "finished"
        whole = synthetic(tmp_path / "whole").run()
        assert [str(c.estimate) for c in result.candidates] == [
            str(c.estimate) for c in whole.candidates
        ]

    @pytest.mark.parametrize(
        ("limits", "error"),
        [
            ({}, "extend needs a new limit: rounds, trials, tokens, dollars, hours"),
            ({"rounds": 2}, "rounds must be above the current limit of 2, got 2; pass the new"),
            ({"rounds": 2.5}, "rounds must be a whole number of at least 1, got 2.5"),
            ({"trials": 100}, "the run ended at its limit of rounds; raise rounds"),
            ({"dollars": 1}, "the run ended at its limit of rounds; raise rounds"),
            ({"hours": 1e-9}, "hours must be above what the run has spent, "),
            ({"trials": 90.5}, "trials must be a whole number of at least 1, got 90.5"),
            ({"trails": 200}, "unknown limit 'trails'; use rounds, trials, .*mean 'trials'"),
        ],
    )
    def test_limits_that_change_nothing(
        self, limits: dict[str, Any], error: str, capped: Run
    ) -> None:
        count = len(list(capped.events()))
        with pytest.raises(InputError, match=error):
            capped.extend(**limits)
        assert len(list(capped.events())) == count


def test_a_run_of_optimize_is_continued_by_optimize(tmp_path: Path) -> None:
    arguments: dict[str, Any] = {
        "tasks": ["a", "b", "c"],
        "starts": ["apples", "beans"],
        "evaluate": lambda candidate, task: task in candidate.text,
        "propose": lambda view: f"{view.text()} and {view.round} cherries",
        "folder": tmp_path / "mine",
    }
    coevolve.optimize(**arguments, rounds=1)
    run = coevolve.open(tmp_path / "mine")
    assert run.status.rounds == 1
    run.extend(rounds=2)
    with pytest.raises(
        ConfigError, match=r"was started by coevolve\.optimize.*call optimize again"
    ):
        run.resume()
    with pytest.raises(InputError, match=r"rounds is 1, but the run in .* has 2"):
        coevolve.optimize(**arguments, rounds=1)
    done = subprocess.run([COMMAND, "doctor", run.folder], capture_output=True, text=True)
    assert "configuration: none; coevolve.optimize started the run" in done.stdout
    assert coevolve.optimize(**arguments, rounds=2).status.round == 2
