"""Whole runs whose harnesses reach a model behind a real endpoint on loopback."""

import itertools
import json
import os
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest

from coevolve.runs.session import read_state
from coevolve.search.run_state import RunState
from tests import command
from tests.effort import first
from tests.models.endpoint import Act, Endpoint, cuts, drops, hangs, raw, refuses, says

KEY = "sk-loopback-0123456789"
TASKS = [str(n) for n in range(10)]
BENCHMARK = f"""
TASKS = {TASKS}
TEST_TASKS = ["20", "21", "22"]


def evaluate(harness, task):
    return float(harness.call("answer", task) == str(2 * int(task)))
"""
HARNESS = """
import coevolve_host


def answer(number):
    reply = coevolve_host.ask("model", prompt=f"{words}: {{number}}", max_tokens=5)
    return reply["text"]
"""
TOML = """
[run]
name = "asked"
[search]
rounds = 1
candidates = 2
protocol = "full"
[benchmark]
kind = "function"
file = "benchmark.py"
starts = ["starts/plain", "starts/polite"]
[proposer]
kind = "scripted"
folders = ["family/double", "family/twice"]
[model]
name = "tiny"
base_url = "{url}"
key = "LOOPBACK_KEY"
seconds = 60
attempts = 4
concurrency = 3
price_in = 1.0
price_out = 2.0
"""


def double(body: Any) -> str:
    """A model that doubles when asked to, and else repeats."""
    words, _, number = body["messages"][-1]["content"].partition(": ")
    return str(2 * int(number)) if words in ("double", "twice") else number


def project(folder: Path, url: str) -> Path:
    """A project whose starting harnesses ask the wrong question."""
    for name in ("starts/plain", "starts/polite", "family/double", "family/twice"):
        (folder / name).mkdir(parents=True)
        words = name.partition("/")[2]
        (folder / name / "harness.py").write_text(HARNESS.format(words=words))
    (folder / "benchmark.py").write_text(BENCHMARK)
    (folder / "asked.toml").write_text(TOML.format(url=url))
    return folder


def coevolve(folder: Path, *args: str, key: str = KEY) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LOOPBACK_KEY": key}
    return command.coevolve(*args, cwd=folder, env=environment, litellm=True)


def state_of(folder: Path) -> RunState:
    return read_state(folder / "runs" / "asked")


def scores(state: RunState) -> dict[str, list[Any]]:
    names = [*state.selector.starts, *state.selector.candidates]
    return {name: [state.selector.estimate(name).value] for name in names}


def test_a_run_asks_the_model_and_finds_the_harness_that_asks_well(tmp_path: Path) -> None:
    with Endpoint(answer=double, key=KEY) as endpoint:
        done = coevolve(project(tmp_path, endpoint.base_url), "run", "asked.toml", "--json")
    assert done.returncode == 0, done.stderr
    state = state_of(tmp_path)
    assert state.chosen is not None
    assert state.chosen["candidate"] == "double"
    assert state.chosen["estimate"]["value"] == 1
    report = json.loads(done.stdout)
    assert {row["name"]: row["test"] for row in report["candidates"]}["double"] == 1
    trials = 2 * 10 + 2 * 10 + 3 * 3
    assert state.evaluating.trials == trials == len(endpoint.seen)
    assert state.evaluating.tokens_in == 10 * trials
    assert state.evaluating.dollars == pytest.approx(
        (state.evaluating.tokens_in + 2 * state.evaluating.tokens_out) / 1e6
    )
    # Nothing of a run shows the key.
    assert KEY not in done.stdout + done.stderr
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in files if KEY.encode() in path.read_bytes()]


TROUBLE: dict[str, list[Act]] = {
    "connection dropped": [drops()] * 3,
    "rate limit": [refuses(429, retry_after=0.1)] * 4,
    "server error": [refuses(500), refuses(503), refuses(502)],
    "time-out": [hangs(120)],
    "truncated": [cuts("4"), cuts("6")],
    "malformed": [raw(b"<html>busy</html>"), raw(b'{"choices": []}'), says(None)],
}


@pytest.mark.parametrize("trouble", first(2, TROUBLE))
def test_what_passes_changes_no_score(trouble: str, tmp_path: Path) -> None:
    with Endpoint(TROUBLE[trouble], answer=double, key=KEY) as endpoint:
        folder = project(tmp_path, endpoint.base_url)
        if trouble == "time-out":
            file = folder / "asked.toml"
            file.write_text(file.read_text().replace("seconds = 60", "seconds = 15"))
        done = coevolve(folder, "run", "asked.toml")
        assert len(endpoint.seen) == 49 + len(TROUBLE[trouble])
    assert done.returncode == 0, done.stderr
    state = state_of(tmp_path)
    assert scores(state) == {"plain": [0.1], "polite": [0.1], "double": [1.0], "twice": [1.0]}
    assert not state.tally.missing


def test_a_model_that_stays_away_leaves_outcomes_missing_and_none_zero(tmp_path: Path) -> None:
    down = itertools.repeat(refuses(503), 10_000)
    with Endpoint(down, key=KEY) as endpoint:
        folder = project(tmp_path, endpoint.base_url)
        file = folder / "asked.toml"
        file.write_text(file.read_text().replace("attempts = 4", "attempts = 1"))
        done = coevolve(folder, "run", "asked.toml")
    assert done.returncode == 2
    state = state_of(tmp_path)
    assert not state.tally.zeros
    assert state.chosen is None


def test_a_wrong_key_stops_the_run_with_advice_and_the_right_one_goes_on(tmp_path: Path) -> None:
    with Endpoint(answer=double, key=KEY) as endpoint:
        folder = project(tmp_path, endpoint.base_url)
        done = coevolve(folder, "run", "asked.toml", key="sk-wrong")
        assert done.returncode == 2
        assert "LOOPBACK_KEY" in done.stderr
        assert "coevolve resume" in done.stderr
        assert "sk-wrong" not in done.stdout + done.stderr
        state = state_of(folder)
        assert not state.tally.zeros
        assert not state.evaluating.trials
        assert len(endpoint.seen) <= 3
        done = coevolve(folder, "resume", "runs/asked")
        assert done.returncode == 0, done.stderr
    assert scores(state_of(folder))["double"] == [1.0]


def test_a_key_that_is_not_set_is_named_before_anything_is_spent(tmp_path: Path) -> None:
    folder = project(tmp_path, "http://127.0.0.1:9/v1")
    environment = {name: value for name, value in os.environ.items() if name != "LOOPBACK_KEY"}
    done = command.coevolve("run", "asked.toml", cwd=folder, env=environment)
    assert done.returncode == 2
    assert "LOOPBACK_KEY" in done.stderr
    assert not (folder / "runs").exists()


@pytest.mark.parametrize("key", first(1, ["sk-secret-0123456789", "gsk_secret0123456789"]))
def test_a_key_in_the_place_of_its_name_is_not_shown_or_kept(key: str, tmp_path: Path) -> None:
    folder = project(tmp_path, "http://127.0.0.1:9/v1")
    file = folder / "asked.toml"
    file.write_text(file.read_text().replace("LOOPBACK_KEY", key))
    done = coevolve(folder, "run", "asked.toml")
    assert done.returncode == 2
    assert "environment variable" in done.stderr
    assert key not in done.stdout + done.stderr
    assert not (folder / "runs").exists()


def test_a_name_that_no_service_has_is_refused_before_there_is_a_run(tmp_path: Path) -> None:
    folder = project(tmp_path, "http://127.0.0.1:9/v1")
    file = folder / "asked.toml"
    file.write_text(file.read_text().replace('base_url = "http://127.0.0.1:9/v1"\n', ""))
    done = coevolve(folder, "run", "asked.toml")
    assert done.returncode == 2
    assert "LiteLLM has no service for 'tiny'" in done.stderr
    assert not (folder / "runs").exists()


def test_a_recording_answers_in_place_of_the_model(tmp_path: Path) -> None:
    with Endpoint(answer=double, key=KEY) as endpoint:
        folder = project(tmp_path, endpoint.base_url)
        file = folder / "asked.toml"
        plain = file.read_text()
        file.write_text(plain + 'record = "calls.jsonl"\n')
        assert coevolve(folder, "run", "asked.toml").returncode == 0
    again = plain.replace('name = "asked"', 'name = "again"') + 'replay = "calls.jsonl"\n'
    (folder / "again.toml").write_text(again)
    done = coevolve(folder, "run", "again.toml")
    assert done.returncode == 0, done.stderr
    first, second = (read_state(folder / "runs" / name) for name in ("asked", "again"))
    assert scores(first) == scores(second)
    assert first.evaluating.tokens == second.evaluating.tokens
    assert first.evaluating.dollars == second.evaluating.dollars


def test_the_cache_of_a_run_answers_what_was_asked_before(tmp_path: Path) -> None:
    with Endpoint(answer=double, key=KEY) as endpoint:
        folder = project(tmp_path, endpoint.base_url)
        file = folder / "asked.toml"
        file.write_text(file.read_text().replace("rounds = 1", "rounds = 1\nrescore = true"))
        assert coevolve(folder, "run", "asked.toml").returncode == 0
        assert len(endpoint.seen) == 49
    state = state_of(folder)
    assert state.evaluating.trials == 49 + 10
    assert state.evaluating.tokens_in == 10 * 49
    with sqlite3.connect(folder / "runs" / "asked" / "responses.db") as cache:
        (count,) = cache.execute("SELECT count(*) FROM replies").fetchone()
    cache.close()
    assert count == 49
