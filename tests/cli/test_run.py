"""`coevolve run` and `coevolve resume`, run as users run them."""

import contextlib
import json
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from coevolve.errors import CoevolveError
from coevolve.runs.session import read_state
from tests.cli.projects import COMMAND, coevolve, write_doubling, write_synthetic


def test_a_run_tells_what_happens_and_ends_with_the_winner(tmp_path: Path) -> None:
    write_doubling(tmp_path)
    done = coevolve("run", "coevolve.toml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout
    assert (
        "doubling: 16 tasks and 4 sealed, 3 rounds of 2 candidates, protocol task-coevolve"
        in lines
    )
    assert "phase 0 done: same 0.062, square 0.125" in lines
    assert "round 1 of 3: proposed r1-0, r1-1" in lines
    assert "r1-1 refused: check failed: the harness has no function 'double'" in lines
    assert re.search(r"\[\d+s\] round 3 done: r3-0 1\.000 ± ", lines)
    assert "sealed test: same 0.000, square 0.000, r3-0 0.000" in lines
    assert re.search(r"★ +r3-0 +3 +1\.000 ± \S+ +8/16 +0\.000", lines)
    told = (
        "68 trials in all, 74% of a full search (92). The paper counts new candidates only: "
        "24 of 48, 50%."
    )
    assert told in " ".join(lines.split())
    folder = re.search(r"winner +(\S+)", lines)
    assert folder is not None
    assert "n < 120" in (tmp_path / folder[1]).read_text()


def test_a_run_that_is_there_is_not_begun_again(finished: Path) -> None:
    done = coevolve("run", finished / "coevolve.toml")
    assert done.returncode == 2
    assert "already has a run" in done.stderr
    assert "coevolve resume" in done.stderr


def test_a_budget_that_is_too_small_leaves_no_run(tmp_path: Path) -> None:
    toml = write_doubling(tmp_path)
    toml.write_text(toml.read_text().replace("trials = 200", "trials = 5"))
    done = coevolve("run", toml)
    assert done.returncode == 2
    assert "a budget of 5 trials is too small" in done.stderr
    assert not (tmp_path / "runs").exists()


def test_the_report_as_json_and_nothing_else_on_stdout(tmp_path: Path) -> None:
    done = coevolve("run", write_synthetic(tmp_path), "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["phase"] == "ended"
    assert Path(report["winner_folder"], "skills.json").is_file()
    assert report["full"] == 4 * 20
    assert report["searched"] == 4 * 4
    assert "phase 0 done" in done.stderr


def test_quiet_prints_only_the_end(tmp_path: Path) -> None:
    done = coevolve("run", write_synthetic(tmp_path), "-q")
    assert "phase 0" not in done.stdout
    assert "sealed test" in done.stdout
    assert done.stderr == ""


def test_a_reader_that_goes_away_does_not_end_the_run(tmp_path: Path) -> None:
    path = write_synthetic(tmp_path)
    with _started("run", path) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0
    ended = read_state(tmp_path / "runs" / "world").ended
    assert ended is not None
    assert ended["why"] == "finished"


def test_resuming_a_run_that_ended_shows_its_end(finished: Path) -> None:
    before = read_state(finished / "runs" / "doubling").events
    done = coevolve("resume", cwd=finished)
    assert done.returncode == 0, done.stderr
    assert "★" in done.stdout
    assert read_state(finished / "runs" / "doubling").events == before


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["ctrl-c", "term"]
)
def test_a_signal_stops_cleanly_and_resume_goes_on(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    path = write_synthetic(tmp_path, seconds=0.05)
    with _started("run", path) as process:
        _wait_for_trials(tmp_path / "runs" / "world", 5)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    assert "coevolve resume" in out
    assert "Traceback" not in err
    state = read_state(tmp_path / "runs" / "world")
    assert state.stopped is not None
    done = coevolve("resume", path, "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["why"] == "finished"
    assert report["evaluating"]["trials"] == 2 * 20 + 4 * 4 + 3 * 5


def test_a_second_writer_is_told_who_the_first_is(tmp_path: Path) -> None:
    path = write_synthetic(tmp_path, seconds=0.5)
    with _started("run", path) as process:
        _wait_for_trials(tmp_path / "runs" / "world", 1)
        done = coevolve("resume", path)
        shown = coevolve("status", path)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert done.returncode == 2
    assert f"is being written by process {process.pid}" in done.stderr
    assert f"Running: process {process.pid}" in shown.stdout


@pytest.mark.parametrize(("rounds", "left"), [(4, "1 round is"), (5, "2 rounds are")])
def test_a_run_that_needs_help_stops_with_advice(tmp_path: Path, rounds: int, left: str) -> None:
    path = write_doubling(tmp_path)
    path.write_text(path.read_text().replace("rounds = 3", f"rounds = {rounds}"))
    (tmp_path / "propose.py").write_text("def propose(view, count):\n    return []\n")
    done = coevolve("run", path)
    assert done.returncode == 2
    assert f"Fix the proposer; {left} left." in done.stderr
    folder = tmp_path / "runs" / "doubling"
    assert f"When that is fixed, resume with: coevolve resume {folder}" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_mistake_in_the_file_is_named(tmp_path: Path) -> None:
    path = write_doubling(tmp_path)
    path.write_text(path.read_text().replace("rounds = 3", "round = 3"))
    done = coevolve("run", path)
    assert done.returncode == 2
    assert "Did you mean 'search.rounds'?" in done.stderr
    assert not (tmp_path / "runs").exists()


def _started(*arguments: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def _wait_for_trials(folder: Path, trials: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with contextlib.suppress(CoevolveError):
            if read_state(folder).evaluating.trials >= trials:
                return
        time.sleep(0.05)
    raise AssertionError("no trial was done in time")


def test_what_the_users_code_prints_does_not_spoil_json(tmp_path: Path) -> None:
    path = write_doubling(tmp_path)
    for name in ("benchmark.py", "propose.py"):
        text = (tmp_path / name).read_text()
        (tmp_path / name).write_text(f"print('loading')\n{text}")
    for command in (("doctor",), ("estimate", "--trial"), ("run",)):
        done = coevolve(*command, path, "--json")
        assert done.returncode == 0, done.stderr
        json.loads(done.stdout)
        assert "loading" in done.stderr
