"""The tasks of the example: their files, and what the oracle and doing nothing score."""

import asyncio
import os
import re
from pathlib import Path

import pytest
from harbor import Task
from harbor.models.trial.config import AgentConfig

from tests.benchmarks.harbor.terminal_tasks import TASKS, example_module, rewards, why_not
from tests.effort import effort

NAMES = [path.name for path in TASKS]


def test_there_are_enough_tasks_of_every_difficulty() -> None:
    difficulties = [Task(path).config.metadata["difficulty"] for path in TASKS]
    assert len(TASKS) >= 16
    assert {name: difficulties.count(name) >= 3 for name in ("easy", "medium", "hard")} == {
        "easy": True,
        "medium": True,
        "hard": True,
    }


@pytest.mark.parametrize("folder", TASKS, ids=NAMES)
def test_a_task_has_all_its_files(folder: Path) -> None:
    task = Task(folder)
    assert task.config.task is not None
    assert task.config.task.name == f"coevolve/{folder.name}"
    assert task.config.environment.network_mode.value == "no-network"
    assert 60 <= (task.config.agent.timeout_sec or 0) <= 180
    for name in ("tests/test.sh", "solution/solve.sh"):
        assert os.access(folder / name, os.X_OK), f"{name} is not executable"
    assert (folder / "tests" / "check.py").is_file()
    assert len(task.instruction) > 100
    assert not re.search(r"/tests|/logs|/solution|solve\.sh", task.instruction)


@pytest.mark.parametrize("folder", TASKS, ids=NAMES)
def test_the_build_is_shared_up_to_the_fixtures(folder: Path) -> None:
    head = (TASKS[0] / "environment" / "Dockerfile").read_text().partition("WORKDIR")[0]
    assert head.startswith("FROM debian:bookworm-slim\n")
    assert (folder / "environment" / "Dockerfile").read_text().startswith(head)


def test_the_scripted_model_knows_every_task_by_one_name() -> None:
    plays = example_module("scripted_plays").PLAYS
    texts = [(path / "instruction.md").read_text() for path in TASKS]
    known = [[name for name in plays if re.search(rf"{name}\b", text)] for text in texts]
    assert sorted(name for names in known for name in names) == sorted(plays)
    assert {len(names) for names in known} == {1}


@pytest.mark.skipif(why_not() != "", reason=why_not())
@pytest.mark.filterwarnings("ignore")  # Harbor and LiteLLM warn about their own calls
def test_the_oracle_passes_and_doing_nothing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COEVOLVE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HARBOR_TELEMETRY", "0")
    agents = [AgentConfig(name="oracle"), AgentConfig(name="nop")]
    names = effort(NAMES[::3], NAMES)
    found = asyncio.run(rewards(tmp_path, agents, names))
    assert found == {"oracle": dict.fromkeys(names, 1.0), "nop": dict.fromkeys(names, 0.0)}
