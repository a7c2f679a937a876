"""`coevolve query`, for people outside and inside a workspace."""

import json
from pathlib import Path

import pytest

from coevolve.proposers.workspace import lay_out
from tests.cli.projects import coevolve, write_synthetic
from tests.proposers.workspace.histories import small


def test_the_best_of_the_only_run(finished: Path) -> None:
    done = coevolve("query", "top", "2", cwd=finished)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("candidates: 2\n  rank  name")
    assert "r3-1" in done.stdout  # refused, and listed with its reason


def test_a_run_may_be_named_by_its_file(finished: Path) -> None:
    done = coevolve("query", "show", "r1-0", "--run", finished / "coevolve.toml", "--json")
    shown = json.loads(done.stdout)
    assert shown["hypothesis"] == "numbers below 40 are enough"
    assert shown["files"] == ["harness.py"]
    assert shown["tried"] == shown["estimate"]["tasks"]


@pytest.mark.parametrize(
    "words",
    [
        ["diff", "r1-0", "r2-0"],
        ["failures", "r1-0"],
        ["task", "3"],
        ["tasks"],
        ["tasks", "--mixed"],
        ["trace", "same", "3"],
    ],
)
def test_every_query_is_answered(finished: Path, words: list[str]) -> None:
    for options in ([], ["--json"]):
        done = coevolve("query", *words, *options, cwd=finished)
        assert done.returncode == 0, done.stderr
        assert done.stdout


def test_nothing_of_the_sealed_test_is_told(finished: Path) -> None:
    done = coevolve("query", "task", "200", cwd=finished)
    assert done.returncode == 2
    assert "there is no task '200'" in done.stderr


def test_a_mistake_is_said_with_what_to_do(finished: Path) -> None:
    done = coevolve("query", "shw", "r1-0", cwd=finished)
    assert done.returncode == 2
    assert "coevolve: there is no query 'shw'. Did you mean 'show'?" in done.stderr
    done = coevolve("query", "show", "r1-9", cwd=finished)
    assert done.returncode == 2
    assert "Did you mean 'r1-" in done.stderr


def test_without_words_it_says_what_can_be_asked(tmp_path: Path) -> None:
    done = coevolve("query", cwd=tmp_path)
    assert done.returncode == 0
    assert "coevolve query failures A" in done.stdout


def test_inside_a_workspace_it_answers_about_that(tmp_path: Path) -> None:
    lay_out(small(), tmp_path, count=1)
    done = coevolve("query", "top", "1", cwd=tmp_path / "candidates" / "plain")
    assert done.returncode == 0, done.stderr
    assert "second" in done.stdout


def test_a_run_without_estimates_cannot_be_asked(tmp_path: Path) -> None:
    from coevolve.runs.session import create_run

    create_run(write_synthetic(tmp_path))
    done = coevolve("query", "top", cwd=tmp_path)
    assert done.returncode == 2
    assert "phase 0" in done.stderr
