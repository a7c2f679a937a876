"""`coevolve import` and `[search] history`, as a user runs them."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from coevolve.runs.session import read_state
from coevolve.store import RunStore
from tests.cli.projects import coevolve, write_synthetic
from tests.effort import effort

TASKS = [f"all-{n:02}" for n in range(20)]
HEAD = "candidate,task,score\n"


def project(folder: Path) -> Path:
    return write_synthetic(folder, name="mine", rounds=1)


def phase_0(*names: str) -> str:
    rows = [f"{name},{task},{n % 2}" for name in names for n, task in enumerate(TASKS)]
    return "\n".join(rows) + "\n"


def test_past_results_spare_phase_0(tmp_path: Path) -> None:
    file = project(tmp_path)
    (tmp_path / "past.csv").write_text(HEAD + phase_0("start-0", "start-1", "old"))
    done = coevolve("import", "past.csv", "--to", file.name, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "40 stand for trials of Phase 0, 20 inform the history" in done.stdout
    assert "Start it with: coevolve resume runs/mine" in done.stdout
    for command in (("status",), ("status", "runs/mine"), ("runs",), ("run", file.name)):
        shown = coevolve(*command, cwd=tmp_path)
        text = shown.stdout + shown.stderr
        assert "not started" in text
        assert "coevolve resume runs/mine" in text
        assert "stopped" not in text
    cost = coevolve("estimate", file.name, "--json", cwd=tmp_path)
    assert "phase 0" not in [row["part"] for row in json.loads(cost.stdout)["parts"]]
    again = coevolve("import", "past.csv", "--to", "runs/mine", cwd=tmp_path)
    assert (again.returncode, again.stdout) == (2, "")
    assert "past.csv was imported before" in again.stderr
    ended = coevolve("resume", "runs/mine", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "phase 0 done: start-0 0.500, start-1 0.500" in ended.stdout
    state = read_state(tmp_path / "runs/mine")
    assert state.selector.observed == ("past:old",)
    assert state.evaluating.trials == state.selector.evaluations + 15  # the sealed test
    exported = coevolve("export", "runs/mine", "--to", "out.csv", cwd=tmp_path)
    assert exported.returncode == 0, exported.stderr
    shown = coevolve("show", "runs/mine", "start-0", "--on", "all-00", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "start-0 on all-00  score 0, imported" in shown.stdout
    assert "imported from past.csv" in shown.stdout
    listed = coevolve("show", "runs/mine", "start-0", cwd=tmp_path)
    assert ["all-00", "0", "imported"] in [line.split() for line in listed.stdout.splitlines()]
    for words in (("replay", "--seeds", 1), ("analyse", "--table", "ties")):
        options = (*words[1:], "--protocols", "full", "--fractions", 1)
        read = coevolve(words[0], "out.csv", *options, cwd=tmp_path)
        assert read.returncode == 0, read.stderr


def test_the_configuration_names_past_results(tmp_path: Path) -> None:
    file = project(tmp_path)
    text = file.read_text().replace("[search]\n", '[search]\nhistory = "past.csv"\n')
    file.write_text(text)
    (tmp_path / "past.csv").write_text(HEAD + phase_0("start-0") + "start-1,all-99,1\n")
    wrong = coevolve("run", file.name, cwd=tmp_path)
    assert wrong.returncode == 2
    assert "'search.history'" in wrong.stderr
    assert "past.csv, row 22, column 'task': the run has no task 'all-99'." in wrong.stderr
    assert "coevolve import --skip-unknown" in wrong.stderr
    assert not (tmp_path / "runs").exists()
    doctor = coevolve("doctor", file.name, cwd=tmp_path)
    assert doctor.returncode == 1
    assert "fix   history: 'search.history': " in doctor.stdout
    (tmp_path / "past.csv").write_text(HEAD + phase_0("start-0"))
    assert "ok    history: past.csv, 20 rows" in coevolve("doctor", file.name, cwd=tmp_path).stdout
    cost = coevolve("estimate", file.name, "--json", cwd=tmp_path)
    assert json.loads(cost.stdout)["parts"][0]["trials"] == [20, 20]
    done = coevolve("run", file.name, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (one,) = json.loads(done.stdout)["imports"]
    assert (one["file"], one["phase_0"], one["observed"]) == ("past.csv", 20, 0)
    (tmp_path / "past.csv").unlink()
    assert coevolve("resume", "runs/mine", cwd=tmp_path).returncode == 0
    assert coevolve("doctor", file.name, cwd=tmp_path).returncode == 0


def test_names_that_match_no_start_are_noted(tmp_path: Path) -> None:
    file = project(tmp_path)
    (tmp_path / "past.csv").write_text(HEAD + phase_0("start 0"))
    done = coevolve("import", "past.csv", "--to", file.name, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "has the name of a starting harness (start-0, start-1)." in done.stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"name,task,score\n", "row 1, column 'candidate'"),
        (HEAD.encode() + b"a,all-00,2\n", "row 2, column 'score'"),
        (HEAD.encode() + b"a,all-99,1\n", "row 2, column 'task'"),
        (HEAD.encode() + b"a,all-00,1\na,all-00,1\n", "row 3"),
        (HEAD.encode() + b"a,\xff,1\n", "row 2, column 'task': this is not UTF-8"),
    ],
)
def test_bad_files_change_nothing(tmp_path: Path, text: bytes, message: str) -> None:
    file = project(tmp_path)
    (tmp_path / "bad.csv").write_bytes(text)
    new = coevolve("import", "bad.csv", "--to", file.name, cwd=tmp_path)
    assert new.returncode == 2
    assert f"bad.csv, {message}" in new.stderr
    assert not (tmp_path / "runs").exists()
    (tmp_path / "good.csv").write_text(HEAD + phase_0("start-0"))
    assert coevolve("import", "good.csv", "--to", file.name, cwd=tmp_path).returncode == 0
    before = read_state(tmp_path / "runs/mine").events
    assert coevolve("import", "bad.csv", "--to", file.name, cwd=tmp_path).returncode == 2
    assert read_state(tmp_path / "runs/mine").events == before


def test_a_log_gets_the_name_of_a_start(tmp_path: Path) -> None:
    file = project(tmp_path)
    samples = [{"id": task, "epoch": 1, "scores": {"s": {"value": "C"}}} for task in TASKS]
    samples.append({"id": "other", "epoch": 1, "scores": {"s": {"value": "C"}}})
    (tmp_path / "log.json").write_text(json.dumps({"eval": {"model": "m"}, "samples": samples}))
    words = ("import", "log.json", "--to", file.name, "--candidate", "start-1", "--json")
    assert coevolve(*words, cwd=tmp_path).returncode == 2
    done = coevolve(*words, "--skip-unknown", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["format"], found["phase_0"], found["left_out"]) == ("inspect", 20, 1)


KILLED = """
import os, signal, sys
from pathlib import Path
from coevolve.runs.run import open
from coevolve.store.event_file import EventFile

where, write = sys.argv[2], EventFile.write

def killed(self, *arguments):
    if where == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    write(self, *arguments)
    os.kill(os.getpid(), signal.SIGKILL)

EventFile.write = killed
open(Path("runs/mine")).import_past(sys.argv[1])
"""


@pytest.mark.parametrize("where", ["before", "after"])
def test_a_killed_import_is_whole_or_nothing(tmp_path: Path, where: str) -> None:
    file = project(tmp_path)
    (tmp_path / "first.csv").write_text(HEAD + "old,all-00,1\n")
    assert coevolve("import", "first.csv", "--to", file.name, cwd=tmp_path).returncode == 0
    (tmp_path / "past.csv").write_text(HEAD + phase_0("start-0", "start-1"))
    script = textwrap.dedent(KILLED)
    process = subprocess.run(
        [sys.executable, "-c", script, "past.csv", where], cwd=tmp_path, check=False
    )
    assert process.returncode == -signal.SIGKILL
    state = read_state(tmp_path / "runs/mine")
    assert len(state.past.imports) == (2 if where == "after" else 1)
    again = coevolve("import", "past.csv", "--to", "runs/mine", cwd=tmp_path)
    assert again.returncode == (2 if where == "after" else 0), again.stderr
    state = read_state(tmp_path / "runs/mine")
    assert [one.file for one in state.past.imports] == ["first.csv", "past.csv"]
    assert len(state.past.given) == 40


def test_an_import_killed_at_any_time_leaves_a_run_that_works(tmp_path: Path) -> None:
    file = project(tmp_path)
    (tmp_path / "first.csv").write_text(HEAD + "old,all-00,1\n")
    assert coevolve("import", "first.csv", "--to", file.name, cwd=tmp_path).returncode == 0
    rows = "".join(f"c{n},{task},1\n" for n in range(2_000) for task in TASKS)
    (tmp_path / "past.csv").write_text(HEAD + rows)
    script = "from coevolve.runs.run import open; open('runs/mine').import_past('past.csv')"
    for delay in effort((0.7,), tuple(0.1 * n for n in range(30))):
        with subprocess.Popen([sys.executable, "-c", script], cwd=tmp_path) as process:
            try:
                process.wait(delay)
            except subprocess.TimeoutExpired:
                os.kill(process.pid, signal.SIGKILL)
        with RunStore.read(tmp_path / "runs/mine") as store:
            assert [event["type"] for event in store.events()][:2] == ["opened", "imported"]
        state = read_state(tmp_path / "runs/mine")
        assert len(state.past.imports) in (1, 2)
        assert len(state.selector.observed) in (1, 2_001)
