"""`coevolve doctor`, run as users run it."""

import json
import os
import shutil
from pathlib import Path

import pytest

from coevolve.executors.isolation import find_isolation
from coevolve.executors.isolation.plain_process import AS_ROOT
from coevolve.runs.session import read_state
from tests.cli.projects import coevolve, write_doubling


def found(*arguments: str | Path) -> dict[str, str]:
    return {row["about"]: row["kind"] for row in json.loads(coevolve(*arguments, "--json").stdout)}


def test_the_machine_alone(tmp_path: Path) -> None:
    done = coevolve("doctor", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    for about in ("python: ", "cores: ", "memory: ", "disk: ", "isolation: ", "no key needed"):
        assert about in done.stdout


def test_a_sound_project(tmp_path: Path) -> None:
    done = coevolve("doctor", write_doubling(tmp_path))
    assert done.returncode == 0, done.stdout
    how = "as root" if find_isolation("process").name == AS_ROOT else "as plain processes"
    assert f"note  isolation: candidates run {how} because isolation.kind is" in done.stdout
    assert "benchmark, run: start 'same' scores" in done.stdout
    assert "No problems found." in done.stdout


def test_a_mistake_in_the_file(tmp_path: Path) -> None:
    path = write_doubling(tmp_path)
    path.write_text(path.read_text().replace("fraction", "fractoin"))
    done = coevolve("doctor", path)
    assert done.returncode == 1
    assert "Did you mean 'search.fraction'?" in " ".join(done.stdout.split())
    assert found("doctor", path)["configuration"] == "failed"


def test_a_key_that_is_not_set_is_said_once_and_not_needed_for_a_replay(tmp_path: Path) -> None:
    path = write_doubling(tmp_path)
    model = '[model]\nname = "openai/tiny"\nkey = "NOBODY_SET_THIS"\n'
    path.write_text(path.read_text() + model)
    done = coevolve("doctor", path)
    assert "fix   keys: the environment variable NOBODY_SET_THIS is not set. Set it" in done.stdout
    assert "1 problem to fix." in done.stdout
    (tmp_path / "calls.jsonl").touch()
    path.write_text(path.read_text() + 'replay = "calls.jsonl"\n')
    assert found("doctor", path)["keys"] == "passed"


def test_a_broken_benchmark_and_a_broken_proposer(tmp_path: Path) -> None:
    path = write_doubling(tmp_path)
    (tmp_path / "benchmark.py").write_text("TASKS = ['1']\ndef evaluate(harness, task): 1 / 0\n")
    (tmp_path / "propose.py").write_text("import nothing_of_the_kind\n")
    done = coevolve("doctor", path)
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stdout
    assert "nothing_of_the_kind" in done.stdout
    assert "fix   proposer: " in done.stdout
    assert "fix   benchmark, run: " in done.stdout


@pytest.mark.parametrize(
    ("code", "line", "about"),
    [
        ("1 / 0\n", "benchmark.py cannot be loaded: line 1: ZeroDivisionError", "benchmark"),
        ("def evaluate(harness, task): {}['gone']\n", "(benchmark.py, line 1, in", "run"),
        ("def evaluate(harness, task): raise SystemExit(3)\n", "(benchmark.py, line 1", "run"),
        ("def check(harness): {}['gone']\n", "(benchmark.py, line 1, in check)", "check"),
        ("def secrets(): {}['gone']\n", "benchmark.py, line 1)", "briefing"),
    ],
)
def test_an_error_of_a_benchmark_has_its_line_and_other_checks_go_on(
    tmp_path: Path, code: str, line: str, about: str
) -> None:
    path, source = write_doubling(tmp_path), tmp_path / "benchmark.py"
    source.write_text(code + source.read_text().replace("def evaluate(", "def other("))
    if "def evaluate" not in code:
        source.write_text(source.read_text().replace("def other(", "def evaluate("))
    (tmp_path / "past.csv").write_text("candidate,task,score\nsame,1,1\n")
    path.write_text(path.read_text().replace("[search]", '[search]\nhistory = "past.csv"'))
    done = coevolve("doctor", path, "--json")
    assert done.returncode == 1
    findings = json.loads(done.stdout)
    wrong = next(one for one in findings if one["kind"] == "failed")
    assert wrong["about"].removeprefix("benchmark, ") == about
    assert line in wrong["detail"]
    past = [one["detail"] for one in findings if one["about"] == "history"]
    assert past == ([] if about == "benchmark" else ["past.csv, 1 row"])


def test_what_run_would_refuse_is_found(tmp_path: Path) -> None:
    path = write_doubling(tmp_path)
    small = coevolve("doctor", path, "--set", "budget.trials=3")
    assert small.returncode == 1
    assert "fix   run: it cannot start: a budget of 3 trials is too small" in small.stdout
    shutil.copy(tmp_path / "starts/same/harness.py", tmp_path / "starts/square/harness.py")
    twins = coevolve("doctor", path)
    assert twins.returncode == 1
    assert "'same' and 'square' have the same files" in " ".join(twins.stdout.split())


def test_a_sound_run(finished: Path) -> None:
    rows = found("doctor", finished / "runs" / "doubling")
    assert (rows["journal"], rows["candidates"], rows["run"]) == ("passed", "passed", "passed")


def test_a_damaged_journal_is_found_and_repaired(finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "runs" / "doubling"
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    events = read_state(run).events
    data = bytearray((run / "run.db").read_bytes())
    at = data.index(b'"type":"chosen"')
    data[at + 8 : at + 14] = b"CHOSEN"
    (run / "run.db").write_bytes(data)
    done = coevolve("doctor", run)
    assert done.returncode == 1
    assert "coevolve doctor --repair" in " ".join(done.stdout.split())
    assert coevolve("status", run).returncode == 2
    repaired = coevolve("doctor", "--repair", run)
    assert repaired.returncode == 0, repaired.stderr
    kept = read_state(run).events
    assert 0 < kept < events
    assert f"Kept {kept} events of {run}, lost {events - kept}." in repaired.stdout
    assert "run.db.damaged-1" in repaired.stdout
    again = json.loads(coevolve("doctor", "--repair", run, "--json").stdout)
    assert again == {"kept": kept, "lost": 0, "backup": None}
    resumed = json.loads(coevolve("resume", run, "--json").stdout)
    assert resumed["why"] == "finished"


def test_a_lost_file_of_a_candidate(finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "runs" / "doubling"
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    address = read_state(run).candidates["r2-0"].candidate.files["harness.py"]
    (blob,) = (p for p in (run / "blobs").rglob("*") if p.is_file() and address in _name(p))
    os.remove(blob)  # noqa: PTH107
    done = coevolve("doctor", run)
    assert done.returncode == 1
    assert "harness.py of r2-0" in " ".join(done.stdout.split())


def _name(path: Path) -> str:
    return path.parent.name + path.name + path.name


HARBOR = """
[search]
rounds = 1
[benchmark]
kind = "harbor"
path = "tasks"
environment = "docker"
[model]
name = "openai/any"
key = "NOBODY_SET_THIS"
[proposer]
kind = "scripted"
folders = ["starts/one"]
"""


def with_docker(folder: Path, script: str) -> dict[str, str]:
    """Variables with a `docker` of ours as the first one."""
    pytest.importorskip("harbor")
    program = folder / "bin" / "docker"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    # Without its weights the embedded model, which has tests of its own, is not tried out.
    cache = str(folder / "cache")
    return {
        **os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "COEVOLVE_CACHE": cache,
    }  # fmt: skip


def test_the_environments_of_harbor_are_listed(tmp_path: Path) -> None:
    env = with_docker(tmp_path, 'case "$1" in version) echo 27.1;; *) echo 2.29;; esac')
    done = coevolve("doctor", cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stdout
    said = " ".join(done.stdout.split())
    assert "'docker' can work here: Docker 27.1, Compose 2.29" in said
    assert "Harbor environment: 'namespace'" in said


def test_a_container_engine_that_is_away_is_named_and_no_trial_is_run(tmp_path: Path) -> None:
    env = with_docker(tmp_path, "echo 'Cannot connect to the daemon' >&2; exit 1")
    assert "note  Harbor environment: 'docker' cannot work" in coevolve("doctor", env=env).stdout
    (tmp_path / "starts" / "one").mkdir(parents=True)
    (tmp_path / "starts" / "one" / "harness.py").touch()
    (tmp_path / "tasks").mkdir()
    (tmp_path / "search.toml").write_text(HARBOR)
    done = coevolve("doctor", tmp_path / "search.toml", env=env)
    said = " ".join(done.stdout.split())
    assert done.returncode == 1
    assert "fix Harbor environment: 'docker' cannot work here: `docker version` failed" in said
    assert "Cannot connect to the daemon. Start Docker" in said
    assert "benchmark: not tested" in said
