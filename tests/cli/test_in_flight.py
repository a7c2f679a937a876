"""A search without rounds from the command line: refusals, displays, and a resumed run."""

import json
from pathlib import Path

import pytest

from coevolve.runs.optimize import optimize
from coevolve.runs.session import read_state
from tests.cli.projects import coevolve, write_synthetic


def with_keys(toml: Path, *lines: str) -> Path:
    toml.write_text(toml.read_text().replace("[search]\n", "\n".join(["[search]", *lines, ""])))
    return toml


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (["in_flight = 2", "overlap = true"], "overlap has no effect with in_flight"),
        (["in_flight = 0"], "in_flight"),
    ],
)
def test_settings_that_do_not_fit_are_refused(tmp_path: Path, lines: list[str], why: str) -> None:
    done = coevolve("run", with_keys(write_synthetic(tmp_path), *lines), "--quiet")
    assert done.returncode == 2
    assert why in done.stderr
    assert not (tmp_path / "runs").exists()


def test_a_run_is_shown_reported_and_extended(tmp_path: Path) -> None:
    toml = with_keys(write_synthetic(tmp_path), "in_flight = 4")
    done = coevolve("run", toml)
    assert done.returncode == 0, done.stderr
    folder = next((tmp_path / "runs").iterdir())
    state = read_state(folder)
    assert state.settings.in_flight == 4
    rounds = state.settings.rounds
    status = json.loads(coevolve("status", folder, "--json").stdout)
    assert (status["round"], status["rounds"]) == (rounds, rounds)
    shown = coevolve("show", folder, state.selector.candidates[0])
    assert shown.returncode == 0, shown.stderr
    written = coevolve("report", folder, "--to", tmp_path / "report.html")
    assert written.returncode == 0, written.stderr
    verified = coevolve("report", folder, "--verify", "--to", tmp_path / "report.html")
    assert verified.returncode == 0, verified.stderr + verified.stdout
    longer = coevolve("resume", folder, "--rounds", rounds + 2, "--quiet")
    assert longer.returncode == 0, longer.stderr
    assert len(read_state(folder).rounds) == rounds + 2


def test_optimize_keeps_several_candidates_under_way(tmp_path: Path) -> None:
    tasks = ["a", "b", "c", "d", "e", "f"]
    starts = {"plain": "rice", "other": "beans"}

    def go(in_flight: int | None) -> int:
        found = optimize(
            tasks,
            starts,
            lambda candidate, task: float(task in candidate.text),
            lambda view: f"{view.text()} {view.round}",
            rounds=5,
            workers=2,
            in_flight=in_flight,
            folder=tmp_path / "run",
        )
        return len(found.candidates)

    assert go(3) == 7
    with pytest.raises(ValueError, match="different in_flight"):
        go(None)
