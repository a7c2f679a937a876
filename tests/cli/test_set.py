"""`--set` changes values of a TOML file on the command line."""

import json
from pathlib import Path

from coevolve.runs.session import read_state
from tests.cli.projects import coevolve, write_doubling, write_synthetic


def test_a_run_with_other_values_resumes_without_the_option(tmp_path: Path) -> None:
    file = write_synthetic(tmp_path)
    changed = ("--set", "search.rounds=1", "--set", "search.protocol=naive")
    assert coevolve("run", file, *changed, "-q").returncode == 0
    folder = tmp_path / "runs/world"
    state = read_state(folder)
    assert (state.settings.rounds, state.selector.protocol.name) == (1, "naive")
    for run in (folder, file):
        assert coevolve("resume", run).returncode == 0
    again = coevolve("run", file, *changed)
    assert "it has ended: finished. Extend it" in again.stderr
    other = coevolve("run", file)
    assert other.returncode == 2
    assert "search.rounds: recorded 1, now 2" in other.stderr
    assert 'search.protocol: recorded "naive", now' in other.stderr
    extended = coevolve("resume", folder, "--extend", "--ignore-changes", "-q")
    assert extended.returncode == 0, extended.stderr
    assert read_state(folder).settings.rounds == 2


def test_commands_that_read_a_file_take_other_values(tmp_path: Path) -> None:
    file = write_doubling(tmp_path)
    estimate = coevolve("estimate", file, "--set", "search.rounds=1", "--json")
    rounds = next(p for p in json.loads(estimate.stdout)["parts"] if p["part"] == "rounds")
    assert rounds["trials"] == [8, 16]
    propose = ("propose", file, "--set", "search.candidates=1", "--view", "--to", tmp_path / "to")
    assert "write 1 new candidate " in " ".join(coevolve(*propose).stdout.split())
    doctor = coevolve("doctor", file, "--set", "search.rounds=0", "--json")
    assert doctor.returncode == 1
    assert "'search.rounds' comes from --set" in doctor.stdout
    scored = coevolve(
        "evaluate", "same", "--config", file, "--set", "search.trials=2", "--json", cwd=tmp_path
    )
    assert json.loads(scored.stdout)["trials"] == 2


def test_a_run_keeps_what_it_recorded(tmp_path: Path) -> None:
    file = write_synthetic(tmp_path)
    assert coevolve("run", file, "-q", "--set", "search.rounds=1").returncode == 0
    folder = tmp_path / "runs/world"
    for command in (("doctor", folder), ("doctor",), ("propose", folder)):
        done = coevolve(*command, "--set", "search.rounds=3")
        assert done.returncode == 2
        assert "--set changes values of a TOML file; name the file." in done.stderr
    done = coevolve("evaluate", "start-0", "--run", folder, "--set", "search.rounds=3")
    assert done.returncode == 2
    assert "name it with --config" in done.stderr
