"""A run is extended; a file or a benchmark that has changed needs a decision of the user."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from coevolve.cli import resume_command, run_command
from coevolve.cli.main import app
from coevolve.runs.session import read_state
from tests.cli.projects import coevolve, write_doubling, write_synthetic


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A synthetic run of two rounds that has ended; tests may extend it."""
    path = write_synthetic(tmp_path_factory.mktemp("extended"))
    assert coevolve("run", path, "-q").returncode == 0
    return path


def test_new_limits_extend_a_run(world: Path) -> None:
    ended = coevolve("resume", world)
    folder = world.parent / "runs/world"
    assert f"Extend it with: coevolve resume {folder} --rounds TOTAL" in ended.stdout
    again = coevolve("run", world)
    assert again.returncode == 2
    assert f"it has ended: finished. Extend it with `coevolve resume {folder} --rounds TOTAL`" in (
        again.stderr
    )
    rounds = read_state(folder).settings.rounds + 1
    done = coevolve("resume", world, "--rounds", str(rounds), "--dollars", "5", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["phase"], report["round"], report["rounds"]) == ("ended", rounds, rounds)
    assert next(cap for cap in report["budget"] if cap["name"] == "dollars")["cap"] == 5
    less = coevolve("resume", world, "--rounds", "1")
    assert less.returncode == 2
    assert f"pass the new total, not the increase: {rounds + 1}." in less.stderr


def test_a_changed_file_needs_a_decision(world: Path) -> None:
    folder, text = world.parent / "runs/world", world.read_text()
    before = read_state(folder)
    rounds = before.settings.rounds + 1
    world.write_text(
        text.replace("rounds = 2", f"rounds = {rounds}").replace(
            "candidates = 2", "candidates = 1"
        )
    )
    try:
        for command in (("resume", folder), ("resume", world), ("run", world)):
            done = coevolve(*command)
            assert done.returncode == 2
            limit = f"search.rounds: recorded {rounds - 1}, now {rounds}"
            assert f"{limit}\n  search.candidates: recorded 2, now 1\n" in done.stderr
            assert f"coevolve resume {folder} --ignore-changes" in done.stderr
            assert f"coevolve resume {folder} --extend --ignore-changes" in done.stderr
        limits_only = coevolve("run", world, "--extend")
        assert limits_only.returncode == 2
        assert "takes only new limits" in limits_only.stderr
        assert "search.rounds" not in limits_only.stderr
        assert read_state(folder).events == before.events
        ignored = coevolve("resume", folder, "--ignore-changes", "--json")
        assert json.loads(ignored.stdout)["rounds"] == rounds - 1
        taken = coevolve("run", world, "--extend", "--ignore-changes", "--json")
        assert taken.returncode == 0, taken.stderr
        assert json.loads(taken.stdout)["rounds"] == rounds
        named = coevolve("run", world, "--name", "other", "--json")
        assert named.returncode == 0, named.stderr
        assert read_state(world.parent / "runs/other").settings.candidates == 1
        world.write_text(text.replace("rounds = 2", "rounds = 9"))
        done = coevolve("resume", world.parent / "runs/other")
        assert f"search.rounds: recorded {rounds}, now 9" in done.stderr
    finally:
        world.write_text(text)


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs a command whose user is at a terminal and types some lines."""
    for module in (run_command, resume_command):
        monkeypatch.setattr(module, "at_terminal", lambda: True)

    def run(lines: str, *words: object) -> Result:
        return CliRunner().invoke(app, list(map(str, words)), input=lines)

    return run


def test_the_prompt_offers_what_is_possible(world: Path, answering: Callable[..., Result]) -> None:
    folder, text = world.parent / "runs/world", world.read_text()
    state = read_state(folder)
    more = text.replace("rounds = 2", f"rounds = {state.settings.rounds + 1}")
    other = text.replace("candidates = 2", "candidates = 1")
    both = more.replace("candidates = 2", "candidates = 1")
    capped = f"{text}[budget]\ntrials = {state.settings.rounds + 1}\n"
    try:
        for changed, letters in (
            (more, "e, i, n, q"),
            (other, "i, n, q"),
            (both, "e, i, n, q"),
            (capped, "i, n, q"),  # the run has spent more trials
        ):
            world.write_text(changed)
            for command in (("run", world), ("resume", folder)):
                done = answering("q\n", *command)
                assert done.exit_code == 2
                assert f"Choose {letters}:" in done.stderr
                listed = f"coevolve resume {folder} --extend" in done.stderr
                assert listed == letters.startswith("e")
        pinned = answering("q\n", "resume", folder, "--hours", "5")
        assert "Choose i, q:" in pinned.stderr
        assert read_state(folder).events == state.events
    finally:
        world.write_text(text)


def test_a_run_that_its_budget_ended_names_the_limit_to_raise(tmp_path: Path) -> None:
    world = write_synthetic(tmp_path)
    ended = coevolve("run", world, "-q", "--set", "budget.trials=58")
    assert ended.returncode == 0, ended.stderr
    folder = tmp_path / "runs/world"
    assert (read_state(folder).ended or {})["why"] == "budget: trials"
    again = coevolve("run", world, "--set", "budget.trials=58")
    assert f"Extend it with `coevolve resume {folder} --trials TOTAL`" in again.stderr
    last = coevolve("show", folder, str(len(read_state(folder).rounds)))
    assert ", incomplete\n" in last.stdout
    assert "under way" not in last.stdout


def test_the_prompt_starts_a_new_run_from_the_changed_file(
    tmp_path: Path, answering: Callable[..., Result]
) -> None:
    world = write_synthetic(tmp_path)
    assert coevolve("run", world, "-q").returncode == 0
    world.write_text(world.read_text().replace('name = "world"', 'name = "world"\nseed = 9'))
    before = read_state(tmp_path / "runs/world")
    done = answering("n\n\n", "run", world, "--quiet")
    assert done.exit_code == 0, done.output
    assert "Name of the new run [world-2]:" in done.stderr
    assert read_state(tmp_path / "runs/world-2").settings.seed == 9
    again = answering("n\nworld-2\na/b\nthird\n", "resume", tmp_path / "runs/world", "-q")
    assert again.exit_code == 0, again.output
    assert "[world-3]" in again.stderr
    assert f"{tmp_path / 'runs/world-2'} already has a run." in again.stderr
    assert "run.name" in again.stderr
    assert read_state(tmp_path / "runs/third").settings.seed == 9
    assert read_state(tmp_path / "runs/world").events == before.events
    assert coevolve("resume", tmp_path / "runs/third").returncode == 0


def test_a_changed_benchmark_stops_and_an_accepted_one_is_reported(tmp_path: Path) -> None:
    path = write_doubling(tmp_path)
    assert coevolve("run", path, "-q").returncode == 0
    folder = tmp_path / "runs/doubling"
    before, source = read_state(folder), tmp_path / "benchmark.py"
    source.write_text(source.read_text().replace("return float(", "return 1 - float("))
    stopped = coevolve("resume", path, "--rounds", "4")
    assert stopped.returncode == 2
    assert "has changed since 68 trials were scored:\n  benchmark.py: changed" in stopped.stderr
    apart = coevolve("evaluate", "r1-0", "--run", folder)
    assert "apart from the run, name the configuration: --config FILE.toml" in apart.stderr
    after = read_state(folder)
    assert (after.events, after.chosen) == (before.events, before.chosen)
    done = coevolve("resume", path, "--rounds", "4", "--accept-change")
    assert done.returncode == 0, done.stderr
    mixed = "scores mix 2 versions of the benchmark: benchmark.py changed after round 3"
    assert "warning: changed since the last session: benchmark.py; scores mix" in done.stdout
    for text in (
        done.stdout,
        coevolve("status", path).stdout,
        coevolve("show", folder, "r1-0").stdout,
    ):
        assert mixed in " ".join(text.split())
