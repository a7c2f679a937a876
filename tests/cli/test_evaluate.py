"""`coevolve evaluate` and `coevolve rescore`, run as users run them."""

import json
import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from coevolve.runs.session import read_state
from coevolve.store import RunStore
from tests.cli.projects import COMMAND, coevolve, write_doubling

SLOW = "\ndef evaluate(harness, task):\n    import time\n    time.sleep(0.05)\n"


@pytest.fixture
def project(finished: Path, tmp_path: Path) -> Path:
    """A copy of a project whose run has ended."""
    copy = tmp_path / "project"
    shutil.copytree(finished, copy)
    return copy


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    """A project whose trials take a while."""
    write_doubling(tmp_path)
    benchmark = tmp_path / "benchmark.py"
    benchmark.write_text(benchmark.read_text().replace("\ndef evaluate(harness, task):\n", SLOW))
    return tmp_path


def scored(folder: Path) -> Counter[tuple[str, str, int]]:
    """The requested outcomes in a journal."""
    with RunStore.read(folder) as store:
        return Counter(
            (e["candidate"], e["task"], e["trial"])
            for e in store.events()
            if e["type"] == "scored"
        )


def test_a_table_compares_harnesses_within_80_columns(project: Path) -> None:
    done = coevolve("evaluate", "same", "starts/square", "r3-0", cwd=project)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert "16 tasks (validation)" in lines
    assert re.search(r"same +0\.062 +0\.062 ", done.stdout)
    assert re.search(r"r3-0 +1\.000 +1\.000 ± \S+ +\+0\.938", done.stdout)
    assert "same: all scores in pool 'large' are equal" in done.stdout
    assert "…" not in done.stdout
    assert "tokens" not in done.stdout  # nothing used any


def test_a_difference_without_an_interval_says_why(project: Path) -> None:
    """Both fail on half of each pool, and differ only on tasks of the pool 'small'."""
    for name, solved in (
        ("even", "n % 2 == 0"),
        ("high", "n in (4, 5, 6, 7) or n % 2 == 0 < n - 9"),
    ):
        (project / name).mkdir()
        code = f"def double(n):\n    return 2 * n if {solved} else -1\n"
        (project / name / "harness.py").write_text(code)
    done = coevolve("evaluate", "even", "high", "--config", "coevolve.toml", cwd=project)
    assert re.search(r"high +0\.500 .* \+0\.000\s", done.stdout), done.stdout + done.stderr
    why = "high, minus the first: all differences in pool 'large' are equal"
    assert why in " ".join(done.stdout.split())


@pytest.mark.parametrize("width", [50, 60])
def test_a_narrow_table_keeps_scores_and_differences_whole(
    project: Path, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    done = coevolve("evaluate", "same", "starts/square", "r3-0", "-q", cwd=project)
    assert max(map(len, done.stdout.splitlines())) <= width
    assert re.search(r"r3-0 +1\.000 .*\+0\.938", done.stdout)
    assert "left out on a narrow terminal: " in done.stdout


def test_json_has_scores_differences_and_costs(project: Path) -> None:
    done = coevolve("evaluate", "same", "r3-0", "--tasks", "1,2,101", "--json", cwd=project)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["split"], found["tasks"], found["trials"]) == ("validation", 3, 1)
    first, second = found["rows"]
    assert first["harness"] == "same"
    assert first["score"]["value"] == 0
    assert first["difference"] is None
    assert second["scores"] == {"1": 1.0, "2": 1.0, "101": 1.0}
    assert second["difference"]["value"] == 1.0
    assert second["cost"]["trials"] == 3
    assert found["warnings"] == []


def test_a_rescored_candidate_is_shown_by_status_show_and_export(project: Path) -> None:
    done = coevolve("rescore", "r2-0", "runs/doubling", cwd=project)
    assert done.returncode == 0, done.stderr
    assert "evaluating r2-0: 16 trials" in done.stdout
    status = coevolve("status", cwd=project).stdout
    assert re.search(r"r2-0 .*all 0\.500", status)
    assert re.search(r"spent +16 trials.* on request", status)
    assert max(map(len, status.splitlines())) <= 80
    assert re.search(r"all tasks +0\.500", coevolve("show", "r2-0", cwd=project).stdout)
    row = json.loads(coevolve("status", "--json", cwd=project).stdout)
    assert [c["full"] for c in row["candidates"] if c["name"] == "r2-0"] == [0.5]
    coevolve("export", "--to", "all.csv", cwd=project)
    assert (project / "all.csv").read_text().count(",rescore,") == 16
    again = coevolve("rescore", "r2-0", cwd=project)
    assert "evaluating" not in again.stdout
    assert len(scored(project / "runs/doubling")) == 16


def test_the_sealed_test_warns_before_and_after(project: Path) -> None:
    one = coevolve("evaluate", "r3-0", "--split", "test", cwd=project)
    assert "warning" not in one.stdout
    two = coevolve("rescore", "r2-0", "--split", "test", cwd=project)
    assert two.returncode == 0
    warning = "warning: the sealed test was used for 2 candidates"
    assert two.stdout.startswith(warning)
    assert two.stdout.count(warning) == 2
    assert warning in coevolve("status", cwd=project).stdout
    assert json.loads(coevolve("status", "--json", cwd=project).stdout)["tested"] == [
        "r3-0",
        "r2-0",
    ]


def _killed(project: Path, folder: str, *command: str, at: int) -> None:
    """Start a command, and kill its processes when some outcomes are recorded."""
    with subprocess.Popen(
        [COMMAND, *command], cwd=project, start_new_session=True, stdout=subprocess.DEVNULL
    ) as process:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            found = next(project.glob(f"{folder}/run.db"), None)
            if found is not None and len(scored(found.parent)) >= at:
                break
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)


def test_an_evaluation_that_is_killed_continues(slow: Path) -> None:
    command = ("evaluate", "same", "square", "--config", "coevolve.toml")
    _killed(slow, "evaluations/*", *command, at=5)
    (folder,) = (slow / "evaluations").iterdir()
    before = scored(folder)
    assert 5 <= len(before) < 32
    done = coevolve(*command, cwd=slow)
    assert done.returncode == 0, done.stderr
    assert f"evaluating same, square: {32 - len(before)} trials" in done.stdout
    assert len(scored(folder)) == 32
    assert set(scored(folder).values()) == {1}


@pytest.mark.long
def test_a_rescoring_that_is_killed_continues_and_the_run_too(slow: Path) -> None:
    toml = slow / "coevolve.toml"
    assert coevolve("run", toml, "--quiet", cwd=slow).returncode == 0
    chosen = read_state(slow / "runs/doubling").chosen
    _killed(slow, "runs/doubling", "rescore", "r1-0", "r2-0", at=5)
    before = len(scored(slow / "runs/doubling"))
    assert 5 <= before < 32
    extended = coevolve("resume", "--rounds", "4", "--quiet", cwd=slow)
    assert extended.returncode == 0, extended.stderr
    done = coevolve("rescore", "r1-0", "r2-0", cwd=slow)
    assert f"evaluating r1-0, r2-0: {32 - before} trials" in done.stdout
    state = read_state(slow / "runs/doubling")
    assert state.rescored.estimate("r1-0").exact
    assert chosen is not None


def test_a_run_that_another_process_works_on_is_refused(project: Path) -> None:
    with RunStore.open(project / "runs/doubling"):
        done = coevolve("rescore", "r2-0", cwd=project)
    assert done.returncode == 2
    assert re.search(r"is being written by process \d+", done.stderr)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["evaluate", "r9-9"], "there is no harness 'r9-9'"),
        (["evaluate", "empty"], "'empty' is not a harness: candidate 'empty' has no files"),
        (["evaluate", "text"], "harness 'text' cannot be evaluated: check failed"),
        (["evaluate", "runs/doubling"], "is a run, not a harness"),
        (["evaluate", "runs/doubling/r9-9"], "has no candidate 'r9-9'"),
        (["evaluate", "r3-0", "--tasks", "1,nosuch"], "task 'nosuch' is not among the 16 tasks"),
        (["evaluate", "r3-0", "--tasks", "@nosuch"], "--tasks @nosuch cannot be read"),
        (["evaluate", "r3-0", "--split", "sealed"], "'sealed' is not one of"),
        (["evaluate", "r3-0", "--trials", "0"], "trials must be a whole number of at least 1"),
        (["evaluate", "r3-0", "--config", "nosuch.toml"], "there is no file nosuch.toml"),
        (["evaluate", "r3-0", "--model", "a,b=1"], "'a' of a model is not KEY=VALUE"),
        (["rescore", "r9-9"], "the run has no candidate 'r9-9'"),
        (["rescore", "r1-1"], "'r1-1' was refused"),
        (["rescore", "runs/doubling"], "name candidates of it"),
        (["rescore", "r3-0", "--workers", "0"], "workers must be a whole number"),
    ],
)
def test_bad_input_names_the_value_and_loses_nothing(
    project: Path, words: list[str], text: str
) -> None:
    (project / "empty").mkdir()
    (project / "text").mkdir()
    (project / "text/notes.txt").write_text("no code")
    events = read_state(project / "runs/doubling").events
    done = coevolve(*words, cwd=project)
    assert done.returncode == 2
    assert text in " ".join(done.stderr.replace("│", " ").split())
    assert read_state(project / "runs/doubling").events == events


def test_a_benchmark_without_a_sealed_test_says_so(tmp_path: Path) -> None:
    write_doubling(tmp_path)
    benchmark = tmp_path / "benchmark.py"
    benchmark.write_text(benchmark.read_text().replace("TEST_TASKS", "OTHER"))
    done = coevolve(
        "evaluate", "same", "--config", "coevolve.toml", "--split", "test", cwd=tmp_path
    )
    assert done.returncode == 2
    assert "has no sealed test" in done.stderr


def test_commands_for_runs_do_not_take_an_evaluation_for_one(project: Path) -> None:
    coevolve("evaluate", "same", "--config", "coevolve.toml", "--tasks", "1", cwd=project)
    (folder,) = (project / "evaluations").iterdir()
    for command in (["status"], ["resume"], ["query", "top", "--run"]):
        done = coevolve(*command, folder, cwd=project)
        assert done.returncode == 2
        assert "is an evaluation, not a run" in done.stderr
    shown = coevolve("show", folder, "same", cwd=project)
    assert shown.returncode == 0, shown.stderr
    assert "1 (rescored)" in shown.stdout


def test_a_moved_run_says_where_it_belongs(project: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere" / "moved"
    shutil.copytree(project / "runs/doubling", moved)
    for words in (["rescore", "r2-0", moved], ["evaluate", "r2-0", "--run", moved]):
        done = coevolve(*words, cwd=project)
        assert done.returncode == 2
        assert "Move the run folder back to runs/doubling" in " ".join(done.stderr.split())
