"""Rows of the paper's Terminal-Bench matrix on two small Harbor tasks, and their tables."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.harbor.trials import ENVIRONMENT, agent, needs_trials, write_task
from tests.cli.projects import coevolve
from tests.cli.test_paper_examples import PAPER
from tests.models.endpoint import Endpoint

pytestmark = needs_trials
WHERE = {"namespace": 'environment_options = { root = "host" }', "docker": ""}
BASE = """
[run]
folder = "runs/paper-tb"
[search]
rounds = 1
rescore = true
[benchmark]
kind = "harbor"
path = "tasks"
starts = ["harnesses/none", "harnesses/easy"]
environment = "{environment}"
{options}
fresh_sandbox = false
[proposer]
kind = "scripted"
folders = ["harnesses/all"]
[model]
name = "openai/gpt-5.6-luna"
base_url = "{url}"
key = "LOOPBACK_KEY"
temperature = "default"
window = 1000
max_tokens = 100
price_in = 1000000.0
price_out = 0.0
cache = "off"
[executor]
workers = 2
"""
RUN = """
import coevolve_host
await coevolve_host.ask_async("llm", messages=[{{"role": "user", "content": instruction}}])
if {solves}:
    await environment.exec("echo done > /app/answer.txt")
"""
HARNESSES = {"none": "False", "easy": "'easy' in instruction", "all": "True"}
"""Which tasks a harness solves."""
TOKENS = 10
"""Those that the server says it has read, of each request; each costs a dollar."""
ROWS = "luna-full,luna-task-coevolve-20"
TRIALS = {
    ("full", "search"): 2,
    ("full", "phase 0"): 4,
    ("full", "whole run"): 6,
    ("task-coevolve", "search"): 1,
    ("task-coevolve", "phase 0"): 4,
    ("task-coevolve", "rescoring"): 2,
    ("task-coevolve", "whole run"): 7,
}
"""The trials of each part of a run."""


def write_project(folder: Path, url: str) -> None:
    """The paper's matrix with a base of two tasks, two starting harnesses and a candidate."""
    shutil.copy(PAPER / "tb.toml", folder)
    text = BASE.format(environment=ENVIRONMENT, options=WHERE[ENVIRONMENT], url=url)
    for name in ("gpt_5_6_luna.toml", "qwen_3_6.toml"):
        (folder / name).write_text(text)
    for name in ("easy", "hard"):
        instruction = f"Task {name}: write done into /app/answer.txt."
        write_task(folder / "tasks" / name, **{"instruction.md": instruction})
    for name, solves in HARNESSES.items():
        (folder / "harnesses" / name).mkdir(parents=True)
        source = agent(RUN.format(solves=solves))
        (folder / "harnesses" / name / "harness.py").write_text(source)


def table(folder: Path, name: str) -> list[dict[str, Any]]:
    done = coevolve("table", name, "runs/paper-tb", "--format", "json", cwd=folder)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["missing"] == []
    return list(found["rows"])


@pytest.mark.long
def test_the_tables_of_terminal_bench_come_from_harbor_runs(tmp_path: Path) -> None:
    given = {"COEVOLVE_CACHE": str(tmp_path / "cache"), "LOOPBACK_KEY": "a-key-of-loopback"}
    with Endpoint(answer=lambda body: "go on") as endpoint:
        write_project(tmp_path, endpoint.base_url)
        words = ("run", "--matrix", "tb.toml", "--only", ROWS, "-q")
        done = coevolve(*words, cwd=tmp_path, env=os.environ | given, litellm=True)
    assert done.returncode == 0, done.stderr

    scores = {row["method"]: row["average"] for row in table(tmp_path, "tb")}
    assert scores == {"none": 0, "easy": 0.5, "full": 1, "task-coevolve": 1}

    gains = [(row["start"], row["before"], row["after"]) for row in table(tmp_path, "stronger")]
    assert gains == [("easy", 0.5, 1)] * 2

    rows = {(row["method"], row["part"]): row for row in table(tmp_path, "cost")}
    assert {part: row["trials"] for part, row in rows.items()} == TRIALS
    for part, row in rows.items():
        assert row["tokens_in"] == TRIALS[part] * TOKENS
        assert row["dollars"] == pytest.approx(TRIALS[part] * TOKENS)
        assert row["hours"] > 0
    assert rows["task-coevolve", "search"]["reduction"] == pytest.approx(-0.5)
