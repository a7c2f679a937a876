"""Refused runs leave nothing behind, and commands end quietly where nobody reads them."""

import os
import subprocess
from pathlib import Path

import pytest

from coevolve.errors import ConfigError, StopRun
from coevolve.runs.run import open as open_run
from coevolve.runs.session import create_run, read_state
from coevolve.store import RunStore
from tests.cli.projects import COMMAND, coevolve, write_doubling, write_synthetic


def test_two_equal_starting_harnesses_are_refused(tmp_path: Path) -> None:
    toml = write_doubling(tmp_path)
    same, square = (tmp_path / "starts" / name / "harness.py" for name in ("same", "square"))
    square.write_text(same.read_text())
    with pytest.raises(ConfigError, match="'same' and 'square' have the same files"):
        create_run(toml)
    assert not (tmp_path / "runs").exists()


def test_a_run_that_is_refused_before_its_first_session_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object, **named: object) -> None:
        raise StopRun("isolation 'bwrap' does not work here.")

    monkeypatch.setattr("coevolve.runs.session.build_executor", refuse)
    with pytest.raises(StopRun, match="does not work here"):
        open_run(write_synthetic(tmp_path)).run()
    assert not (tmp_path / "runs").exists()


def test_options_give_the_name_and_the_seed(tmp_path: Path) -> None:
    toml = write_synthetic(tmp_path)
    done = coevolve("run", toml, "--name", "other", "--seed", 5, "--quiet")
    assert done.returncode == 0, done.stderr
    state = read_state(tmp_path / "runs" / "other")
    assert (state.name, state.settings.seed) == ("other", 5)
    again = coevolve("resume", tmp_path / "runs" / "other")  # the file has another seed
    assert again.returncode == 0, again.stderr


@pytest.mark.parametrize(
    "words", [["protocols"], ["status", "RUN", "--json"], ["show", "RUN", "same"]]
)
def test_a_reader_that_leaves_ends_a_command_quietly(finished: Path, words: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    run = next((finished / "runs").iterdir())
    argv = [str(COMMAND), *(str(run) if word == "RUN" else word for word in words)]
    try:
        done = subprocess.run(argv, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_first_line_says_that_a_run_is_not_worked_on(tmp_path: Path) -> None:
    toml = write_synthetic(tmp_path)
    folder = create_run(toml)
    assert "world  not started" in coevolve("status", toml).stdout.splitlines()[0]
    with RunStore.open(folder) as store:
        store.append([("session", {"capacity": 1, "isolation": ""})])
    first = coevolve("status", toml).stdout.splitlines()[0]
    assert "stopped in phase 0: no process works on it" in first


def test_an_error_of_the_score_function_has_its_line_and_its_traceback(tmp_path: Path) -> None:
    write_doubling(tmp_path)
    file = tmp_path / "benchmark.py"
    file.write_text(
        f"{file.read_text()}    return {{}}['gone']\n".replace("return float", "float")
    )
    done = coevolve("run", "coevolve.toml", cwd=tmp_path)
    line = len(file.read_text().splitlines())
    assert done.returncode == 2
    message = " ".join(done.stderr.split())
    assert f"KeyError: 'gone' (benchmark.py, line {line}, in evaluate)" in message
    assert "The traceback is in runs/doubling/errors.log." in message
    log = (tmp_path / "runs" / "doubling" / "errors.log").read_text()
    assert f'benchmark.py", line {line}, in evaluate' in log


def test_an_error_in_an_imported_file_names_that_file(tmp_path: Path) -> None:
    toml = write_doubling(tmp_path)
    file = tmp_path / "benchmark.py"
    file.write_text(f"import broken_helper\n{file.read_text()}")
    (tmp_path / "broken_helper.py").write_text("x = 1\ny = {}['gone']\n")
    with pytest.raises(ConfigError, match=r"line 1: KeyError.*broken_helper.py, line 2"):
        create_run(toml)


def test_a_moved_run_says_where_it_belongs(tmp_path: Path) -> None:
    toml = write_doubling(tmp_path / "project")
    moved = create_run(toml).rename(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="Move the run folder back to runs/doubling in the"):
        open_run(moved).resume()
    assert "has no coevolve.toml" in coevolve("resume", moved).stderr
    assert coevolve("status", moved).returncode == 0
