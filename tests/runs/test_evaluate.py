"""`coevolve.evaluate` and `Run.rescore`: any harness, any time, from Python."""

from collections import Counter
from pathlib import Path

import pytest

import coevolve
from coevolve.errors import ChangedBenchmarkError, InputError
from coevolve.runs.config import RunConfig
from coevolve.runs.model_choice import with_model
from coevolve.runs.session import read_state
from coevolve.store import RunStore

BENCHMARK = """
from pathlib import Path
TASKS = {"low": [f"n{i}" for i in range(6)], "high": [f"n{i}" for i in range(6, 10)]}
TEST_TASKS = [f"n{i}" for i in range(10, 14)]
FUNCTIONS = ["solve"]
SHIFT = 0


def evaluate(harness, task):
    with Path(LOG).open("a") as log:
        log.write(task + "\\n")
    return float(harness.call("solve", int(task[1:]) + SHIFT, returns=bool))
"""
TOML = """
[run]
name = "small"
[search]
rounds = 2
fraction = 0.5
[benchmark]
kind = "function"
file = "benchmark.py"
starts = ["starts/even", "starts/none"]
[proposer]
kind = "scripted"
folders = [["found/third"], ["found/all"]]
[executor]
workers = 1
[isolation]
kind = "process"
"""
HARNESSES = {
    "starts/even": "n % 2 == 0",
    "starts/none": "False",
    "found/third": "n % 3 == 0",
    "found/all": "True",
    "mine": "n < 5",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    log = repr(str(tmp_path / "log.txt"))
    (tmp_path / "benchmark.py").write_text(BENCHMARK.replace("LOG", log))
    (tmp_path / "small.toml").write_text(TOML)
    for name, body in HARNESSES.items():
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "harness.py").write_text(f"def solve(n): return {body}\n")
    return tmp_path


def ran(project: Path) -> int:
    """How many trials have run, and forget them."""
    log = project / "log.txt"
    count = len(log.read_text().splitlines()) if log.exists() else 0
    log.write_text("")
    return count


def test_folders_are_scored_compared_and_not_run_twice(project: Path) -> None:
    harnesses = [project / "mine", project / "found/all"]
    table = coevolve.evaluate(harnesses, config=project / "small.toml")
    first, second = table.rows
    assert first.score is not None
    assert first.score.value == pytest.approx(0.5 * 5 / 6)
    assert first.difference is None
    assert second.difference is not None
    assert second.difference.value == pytest.approx(1 - 0.5 * 5 / 6)
    assert second.scores == {f"n{i}": 1.0 for i in range(10)}
    assert ran(project) == 20
    again = coevolve.evaluate([*harnesses, "none"], config=project / "small.toml")
    assert again.row("none").score is not None
    assert ran(project) == 10
    more = coevolve.evaluate(harnesses[0], config=project / "small.toml", trials=2, tasks=["n1"])
    assert (more.tasks, more.trials) == (1, 2)
    assert ran(project) == 1


def test_a_changed_benchmark_is_scored_anew(project: Path) -> None:
    config = project / "small.toml"
    before = coevolve.evaluate(project / "mine", config=config).rows[0]
    text = (project / "benchmark.py").read_text()
    (project / "benchmark.py").write_text(text.replace("SHIFT = 0", "SHIFT = 1  # another size"))
    after = coevolve.evaluate(project / "mine", config=config).rows[0]
    assert before.score is not None
    assert after.score is not None
    assert after.score.value < before.score.value
    (project / "benchmark.py").write_text(text)
    assert ran(project) == 20
    assert coevolve.evaluate(project / "mine", config=config).rows[0].score == before.score
    assert ran(project) == 0


def test_a_run_takes_the_scores_of_its_candidates(project: Path) -> None:
    run = coevolve.open(project / "small.toml")
    winner = run.run().best.name
    ran(project)
    spent = run.status.spend
    other = next(c.name for c in run.candidates if c.round and c.name != winner)
    table = run.rescore([other, "even"])
    assert ran(project) == 10  # the starting harness ran every task in Phase 0
    assert [c.full for c in run.candidates if c.name == other] == [table.rows[0].score.value]  # type: ignore[union-attr]
    assert run.status.spend == spent
    assert run.status.requested["trials"] == 10
    assert "all tasks" in run.report()
    same = coevolve.evaluate([other, project / "starts/even"], run=run.folder)
    assert [row.score for row in same.rows] == [row.score for row in table.rows]
    assert ran(project) == 0
    assert not (project / "evaluations").exists()


def _finished(project: Path) -> tuple[coevolve.Run, str]:
    """A finished run, and a candidate that was not scored on every task."""
    run = coevolve.open(project / "small.toml")
    winner = run.run().best.name
    ran(project)
    return run, next(c.name for c in run.candidates if c.round and c.name != winner)


def test_the_configuration_of_a_run_has_what_the_run_recorded(project: Path) -> None:
    run, other = _finished(project)
    config = project / "small.toml"
    table = coevolve.evaluate(["even", project / "starts/none", other], config=config)
    assert ran(project) == 10  # the starting harnesses ran every task in Phase 0
    assert table.row("even").score == run.rescore("even").rows[0].score
    assert table.row(other).score == run.rescore(other).rows[0].score
    coevolve.evaluate("even", config=config, split="test")
    assert ran(project) == 0
    assert not (project / "evaluations").exists()
    coevolve.evaluate([project / "mine", "even"], config=config)
    assert ran(project) == 10
    coevolve.evaluate("even", config=config, trials=2)
    assert ran(project) == 20


@pytest.mark.parametrize(
    ("file", "before", "after"),
    [
        ("benchmark.py", "SHIFT = 0", "SHIFT = 1"),
        ("small.toml", 'name = "small"', 'name = "small"\nseed = 3'),
        ("small.toml", 'kind = "process"', 'kind = "process"\nseconds = 9'),
    ],
)
def test_a_configuration_that_scores_differently_stays_apart_from_the_run(
    project: Path, file: str, before: str, after: str
) -> None:
    run, other = _finished(project)
    events = run.status.events
    path = project / file
    path.write_text(path.read_text().replace(before, after))
    coevolve.evaluate(["even", other], config=project / "small.toml")
    assert ran(project) == 20
    assert run.status.events == events


def test_an_accepted_change_keeps_evaluations_apart_from_the_run(project: Path) -> None:
    run, other = _finished(project)
    path = project / "benchmark.py"
    path.write_text(path.read_text().replace("SHIFT = 0", "SHIFT = 1"))
    run.rescore(other, accept_change=True)
    assert ran(project) == 10
    coevolve.evaluate("even", config=project / "small.toml")
    assert ran(project) == 10  # what the run has of it was scored before the change


def test_a_run_in_use_is_read_and_not_written(project: Path) -> None:
    run, other = _finished(project)
    with RunStore.open(run.folder):
        coevolve.evaluate(["even", other], config=project / "small.toml")
        assert ran(project) == 10
    coevolve.evaluate(["even", other], config=project / "small.toml")
    assert ran(project) == 0  # the evaluation apart from the run is found again


def test_the_sealed_test_of_several_candidates_is_reported(project: Path) -> None:
    run = coevolve.open(project / "small.toml")
    winner = run.run().best.name
    assert run.rescore(winner, split="test").warnings == ()
    other = next(c.name for c in run.candidates if c.round and c.name != winner)
    (warning,) = run.rescore(other, split="test").warnings
    assert warning.startswith("the sealed test was used for 2 candidates")
    assert run.status.tested == (winner, other)
    assert warning in run.report()
    config = project / "small.toml"
    (warning,) = coevolve.evaluate(
        project / "mine", config=config, run=run.folder, split="test"
    ).warnings
    assert "3 candidates" in warning
    assert coevolve.evaluate("even", config=config, split="test").warnings == (warning,)


def test_a_rescoring_after_a_change_of_the_benchmark_is_refused(project: Path) -> None:
    run = coevolve.open(project / "small.toml")
    run.run()
    text = (project / "benchmark.py").read_text()
    (project / "benchmark.py").write_text(text.replace("SHIFT = 0", "SHIFT = 1  # another size"))
    name = run.candidates[-1].name
    events = run.status.events
    with pytest.raises(ChangedBenchmarkError, match=r"benchmark\.py: changed"):
        run.rescore(name)
    assert run.status.events == events
    run.rescore(name, accept_change=True)
    assert "2 versions of the benchmark" in run.status.mixed


def test_outcomes_of_an_evaluation_are_recorded_once(project: Path) -> None:
    table = coevolve.evaluate(project / "mine", config=project / "small.toml")
    folder = Path(table.rows[0].folder)
    with RunStore.read(folder) as store:
        cells = Counter((e["task"], e["trial"]) for e in store.events() if e["type"] == "scored")
    assert set(cells.values()) == {1}
    assert read_state(folder).evaluation


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"harnesses": "nosuch"}, "there is no harness 'nosuch'"),
        ({"harnesses": []}, "name one or more harnesses"),
        ({"harnesses": ["even", "even"]}, "'even' is named twice"),
        ({"split": "sealed"}, "the split must be 'validation' or 'test', got 'sealed'"),
        ({"trials": 0}, "trials must be a whole number of at least 1, got 0"),
        ({"trials": 10**9}, "trials must be at most 10,000, got 1000000000"),
        ({"workers": 1.5}, "workers must be a whole number of at least 1, got 1.5"),
        ({"tasks": ["n99"]}, "task 'n99' is not among the 10 tasks"),
        ({"tasks": []}, "needs one task or more"),
        ({"models": "temperature=0.5"}, r"has no \[model\]"),
        ({"config": None}, "needs a configuration or a run"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_evaluated(
    project: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, object], text: str
) -> None:
    monkeypatch.chdir(project)
    given = {"harnesses": "even", "config": "small.toml", **arguments}
    with pytest.raises(InputError, match=text):
        coevolve.evaluate(given.pop("harnesses"), **given)  # type: ignore[arg-type]
    assert not (project / "evaluations").exists()


def test_a_harness_that_fails_its_check_stops_before_any_trial(project: Path) -> None:
    (project / "mine/harness.py").write_text("def other(n): return n\n")
    for _ in range(2):
        with pytest.raises(InputError, match="harness 'mine' cannot be evaluated: check failed"):
            coevolve.evaluate([project / "mine", "even"], config=project / "small.toml")
    assert ran(project) == 0


def test_another_model_takes_no_address_and_no_key_of_the_configured_one() -> None:
    config = RunConfig.from_json(
        {
            "search": {"rounds": 1},
            "benchmark": {"kind": "textclass", "sets": ["service-desk"], "starts": ["vote"]},
            "proposer": {"kind": "offline"},
            "model": {
                "name": "openai/first",
                "base_url": "http://localhost:1/v1",
                "key": "FIRST_KEY",
                "price_in": 1.0,
                "price_out": 2.0,
                "temperature": 0.3,
                "max_tokens": 64,
            },
        }
    )
    other = with_model(config, "openai/second", Path()).model
    assert other is not None
    assert (other.name, other.base_url, other.key, other.price_in) == (
        "openai/second",
        None,
        None,
        None,
    )
    assert (other.temperature, other.max_tokens) == (0.3, 64)
    warmer = with_model(config, "temperature=0.9", Path()).model
    assert warmer is not None
    assert (warmer.key, warmer.base_url, warmer.temperature) == (
        "FIRST_KEY",
        "http://localhost:1/v1",
        0.9,
    )
    with pytest.raises(InputError, match="environment variable, not the key itself") as caught:
        with_model(config, "name=openai/x,key=sk-12345", Path())
    assert "12345" not in str(caught.value)
