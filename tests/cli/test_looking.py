"""`coevolve status`, `show` and `diff`, run as users run them."""

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.projects import coevolve


def test_status_shows_candidates_and_how_it_ended(finished: Path) -> None:
    done = coevolve("status", cwd=finished)
    assert done.returncode == 0, done.stderr
    for text in ("★ r3-0", "same", "68 of 200 trials", "refused: check failed", "Ended: finished"):
        assert text in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines())


def test_the_runs_of_a_folder(finished: Path, tmp_path: Path) -> None:
    done = coevolve("runs", cwd=finished)
    (line,) = [line for line in done.stdout.splitlines() if "runs/" in line]
    assert line.split()[1:4] == ["ended", "3/3", "r3-0"]
    (row,) = json.loads(coevolve("runs", finished, "--json").stdout)
    assert (row["state"], row["best"], row["trials"]) == ("ended", "r3-0", 68)
    broken = tmp_path / "runs" / "broken"
    broken.mkdir(parents=True)
    (broken / "run.db").write_bytes(b"not a journal")
    done = coevolve("runs", tmp_path)
    assert "unreadable" in done.stdout
    assert "run.db" in done.stderr
    assert coevolve("runs", tmp_path / "nowhere").returncode == 2


def test_a_folder_without_runs_says_how_to_start_one(tmp_path: Path) -> None:
    done = coevolve("runs", tmp_path)
    assert done.returncode == 0
    assert "coevolve run FILE.toml" in done.stdout


def test_status_as_json(finished: Path) -> None:
    report = json.loads(coevolve("status", finished / "coevolve.toml", "--json").stdout)
    assert report["best"] == "r3-0"
    assert report["owner"] is None
    assert {row["name"]: row["status"] for row in report["candidates"]}["r1-1"] == "refused"


def test_a_candidate(finished: Path) -> None:
    done = coevolve("show", "r2-0", cwd=finished)
    first = json.loads(coevolve("show", "r1-0", "--json", cwd=finished).stdout)
    assert first["children"] == ["r2-0", "r2-1", "r3-0", "r3-1"]
    for text in ("round 2, evaluated", "numbers below 80 are enough", "harness.py", "8/16 tasks"):
        assert text in done.stdout
    found = json.loads(coevolve("show", "r2-0", "--json", cwd=finished).stdout)
    assert found["parents"] == ["r1-0"]
    assert found["round"] == 2
    assert len(found["outcomes"]) == 8
    assert (finished / found["folder"] / "harness.py").is_file()


def test_a_refused_candidate_has_its_reason(finished: Path) -> None:
    done = coevolve("show", "r1-1", cwd=finished)
    assert "check failed: the harness has no function 'double'" in done.stdout
    assert "No outcomes." in done.stdout


def test_a_task(finished: Path) -> None:
    found = json.loads(coevolve("show", "100", "--json", cwd=finished).stdout)
    assert (found["pool"], found["split"]) == ("large", "validation")
    assert {row["candidate"] for row in found["outcomes"]} >= {"same", "square"}
    assert all(0 < draw["probability"] <= 1 for draw in found["draws"])
    done = coevolve("show", "200", cwd=finished)
    assert "sealed test" in done.stdout
    assert "r3-0" in done.stdout


def test_a_round(finished: Path) -> None:
    done = coevolve("show", "3", "--as", "round", cwd=finished)
    assert "round 3  8 trials" in done.stdout
    assert "r3-0" in done.stdout
    found = json.loads(coevolve("show", "0", "--as", "round", "--json", cwd=finished).stdout)
    assert [row["name"] for row in found["candidates"]] == ["same", "square"]


def test_a_round_with_a_refusal_keeps_its_columns(finished: Path) -> None:
    done = coevolve("show", "1", "--as", "round", cwd=finished)
    refused = next(line for line in done.stdout.splitlines() if "refused" in line)
    assert refused.split()[:4] == ["r1-1", "-", "-", "refused:"]
    assert "estimate" in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines())


def test_a_trial_with_its_trace(finished: Path) -> None:
    done = coevolve("show", "same", "--on", "100", cwd=finished)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("same on 100  score ")
    (trial,) = json.loads(coevolve("show", "same", "--on", "100", "--json", cwd=finished).stdout)
    assert (trial["candidate"], trial["task"], trial["split"]) == ("same", "100", "validation")
    assert "content" in trial
    refused = coevolve("show", "r1-1", "--on", "100", cwd=finished)
    assert "r1-1 has no outcome on 100" in refused.stdout
    unknown = coevolve("show", "same", "--on", "1000", cwd=finished)
    assert unknown.returncode == 2
    assert "has no task '1000'" in unknown.stderr


def test_a_word_with_two_meanings_asks_for_one(finished: Path) -> None:
    done = coevolve("show", "3", cwd=finished)
    assert done.returncode == 2
    assert "'3' is a task and a round; choose one, such as --as task." in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--on 100 --as round", "--on shows a candidate; leave out --as round."),
        ("--transcript --as task", "--transcript shows a candidate; leave out --as task."),
        ("--transcript --json", "--transcript prints plain text; leave out --json."),
        ("--transcript --on 100", "use one of them"),
    ],
)
def test_options_without_effect_are_refused(finished: Path, options: str, message: str) -> None:
    done = coevolve("show", "same", *options.split(), cwd=finished)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("run", ["runs/doubling", "coevolve.toml"])
@pytest.mark.parametrize(("words", "usage"), [("show", "CANDIDATE|"), ("diff", "A B")])
def test_a_run_alone_asks_for_the_rest(finished: Path, run: str, words: str, usage: str) -> None:
    done = coevolve(words, run, *["same"] * (words == "diff"), cwd=finished)
    assert done.returncode == 2
    assert (
        f"{run} is a run; name what to show of it: coevolve {words} [RUN] {usage}" in done.stderr
    )


def test_an_unknown_word_is_answered_with_the_nearest(finished: Path) -> None:
    done = coevolve("show", "squaer", cwd=finished)
    assert done.returncode == 2
    assert "Did you mean 'square'?" in done.stderr


def test_a_diff_of_files_estimates_and_outcomes(finished: Path) -> None:
    done = coevolve("diff", "r1-0", "r3-0", cwd=finished)
    assert done.returncode == 0, done.stderr
    assert "-    return 2 * n if n < 40 else 0" in done.stdout
    assert "+    return 2 * n if n < 120 else 0" in done.stdout
    assert "numbers below 120 are enough" in done.stdout
    found = json.loads(coevolve("diff", "r1-0", "r3-0", "--json", cwd=finished).stdout)
    assert found["shared"]["first_better"] == {}
    assert all(task.startswith("10") for task in found["shared"]["second_better"])
    assert "+++ r3-0/harness.py" in found["diff"]


def test_a_diff_with_an_unknown_candidate(finished: Path) -> None:
    done = coevolve("diff", finished / "runs" / "doubling", "r1-0", "r3-9")
    assert done.returncode == 2
    assert "has no candidate 'r3-9'. Did you mean" in done.stderr


@pytest.mark.parametrize("command", ["status", "resume", "export --to x.csv"])
def test_a_run_must_be_found(tmp_path: Path, command: str) -> None:
    done = coevolve(*command.split(), cwd=tmp_path)
    assert done.returncode == 2
    assert "there is no run in runs/ of the current folder; name a run." in done.stderr
    done = coevolve(*command.split(), "nowhere", cwd=tmp_path)
    assert "nowhere does not exist" in done.stderr


def test_several_runs_are_listed(finished: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        shutil.copytree(finished / "runs" / "doubling", tmp_path / "runs" / name)
    done = coevolve("status", cwd=tmp_path)
    assert done.returncode == 2
    assert "Runs found: runs/one, runs/two." in done.stderr
    assert coevolve("status", "runs/two", cwd=tmp_path).returncode == 0
    assert "Runs found: " in coevolve("status", ".", cwd=tmp_path).stderr
