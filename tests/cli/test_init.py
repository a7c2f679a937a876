"""`coevolve init`: the project it writes."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from coevolve.benchmarks import SealedBenchmark
from coevolve.cli.init_command import init, write_project
from coevolve.errors import ConfigError
from coevolve.executors.isolation import Harness, find_isolation
from coevolve.runs import build_benchmark, build_proposer, read_config
from coevolve.search.candidate import Files
from coevolve.testing import check_benchmark
from tests.proposers.views import view

FILES = [
    "README.md",
    "benchmark.py",
    "coevolve.toml",
    "propose.py",
    "starts/digits/harness.py",
    "starts/words/harness.py",
]


def command() -> typer.Typer:
    app = typer.Typer()
    app.command()(init)
    return app


def test_it_says_what_it_wrote_and_what_to_do_next(tmp_path: Path) -> None:
    done = CliRunner().invoke(command(), [str(tmp_path / "new")])
    assert done.exit_code == 0, done.output
    assert sorted(
        path.relative_to(tmp_path / "new").as_posix()
        for path in (tmp_path / "new").rglob("*")
        if path.is_file()
    ) == sorted(FILES)
    for word in (*FILES, "coevolve run coevolve.toml", "coevolve doctor coevolve.toml"):
        assert word in done.output


def test_it_writes_beside_other_files_but_never_over_them(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert write_project(tmp_path) == FILES
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(ConfigError, match=r"README\.md already exists"):
        write_project(tmp_path)
    (tmp_path / "README.md").unlink()
    with pytest.raises(ConfigError, match=r"benchmark\.py already exists"):
        write_project(tmp_path)
    assert not (tmp_path / "README.md").exists()
    assert all(path.read_bytes() == data for path, data in before.items() if path.exists())


def test_a_file_is_not_a_folder(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    with pytest.raises(ConfigError, match="is not a folder"):
        write_project(tmp_path / "x")


def test_the_project_conforms(tmp_path: Path) -> None:
    write_project(tmp_path)
    config = read_config(tmp_path / "coevolve.toml")
    benchmark = build_benchmark(config, tmp_path)
    assert isinstance(benchmark, SealedBenchmark)
    assert (len(benchmark.pool), len(benchmark.test_tasks)) == (60, 30)
    findings = check_benchmark(benchmark, limits=config.isolation.limits())
    assert {one.kind for one in findings} == {"passed"}


def test_the_project_passes_the_linter(tmp_path: Path) -> None:
    write_project(tmp_path)
    done = subprocess.run(
        [Path(sys.executable).parent / "ruff", "check", "--no-cache", tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_there_is_something_to_find(tmp_path: Path) -> None:
    """The starting harnesses solve a little under half; one round of proposals does better."""
    write_project(tmp_path)
    config = read_config(tmp_path / "coevolve.toml")
    benchmark = build_benchmark(config, tmp_path)

    def outcomes(name: str, files: Files) -> dict[str, float]:
        folder = tmp_path / "candidates" / name
        folder.mkdir(parents=True)
        for path, data in files.items():
            (folder / path).write_bytes(data)
        isolation, limits = find_isolation("auto"), config.isolation.limits()
        with Harness(folder, isolation=isolation, limits=limits) as harness:
            found = {task: benchmark.run(harness, task, 0) for task in benchmark.pool.tasks}
        return {task: float(getattr(score, "value", 0.0)) for task, score in found.items()}

    known = {name: outcomes(name, files) for name, files in benchmark.starts.items()}
    for given in known.values():
        assert 0.35 < sum(given.values()) / 60 < 0.5
    proposer = build_proposer(config, tmp_path)
    seen = view(candidates=benchmark.starts, outcomes=known, parent="digits", seed=3)
    twice = [asyncio.run(proposer.propose(seen, 4)) for _ in range(2)]
    assert twice[0] == twice[1], "proposals follow from the seed"
    children = [outcomes(one.name, one.files) for one in twice[0].proposals]  # type: ignore[union-attr]
    assert max(sum(child.values()) for child in children) > sum(known["digits"].values())


@pytest.mark.parametrize("grows", [False, True])
def test_no_proposal_is_a_copy_of_an_earlier_harness(tmp_path: Path, grows: bool) -> None:
    """A copy is refused, and rounds of refused candidates alone end a run.

    The parent fails on a text that few rules change, or is the last proposal of the round before
    and soon has every rule.
    """
    write_project(tmp_path)
    config = read_config(tmp_path / "coevolve.toml")
    proposer = build_proposer(config, tmp_path)
    known = dict(build_benchmark(config, tmp_path).starts)
    parent = "digits"
    for round in range(1, 21):
        failed = {parent: {"a fortnight": 0.0}}
        seen = view(round=round, seed=round, candidates=known, outcomes=failed, parent=parent)
        made = asyncio.run(proposer.propose(seen, 2)).proposals  # type: ignore[union-attr]
        known |= {one.name: one.files for one in made}
        parent = made[-1].name if grows else parent
    assert len(known) == 2 + 20 * 2
    assert len({files["harness.py"] for files in known.values()}) == len(known)
