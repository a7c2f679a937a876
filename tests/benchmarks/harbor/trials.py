"""Whole trials of small agents on small tasks, in the environment without Docker or in Docker."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from coevolve.benchmarks.harbor.harbor_benchmark import HarborBenchmark
from coevolve.core.outcomes import Usage
from coevolve.executors.failures import classify
from coevolve.executors.isolation import Harness, Limits, find_isolation
from coevolve.executors.isolation.detection import why_not_bubblewrap
from coevolve.executors.workload import attached_trace
from coevolve.search.trials import Fault

ENVIRONMENT = os.environ.get("HARBOR_TEST_ENVIRONMENT", "namespace")
"""Where the trials of the tests run; `make test-docker` sets it to docker."""
OPTIONS = {"namespace": {"root": "host"}, "docker": {}}

TASK = {
    "task.toml": """
version = "1.0"
[agent]
timeout_sec = 60.0
[verifier]
timeout_sec = 30.0
[environment]
build_timeout_sec = 120.0
""",
    "instruction.md": "Write done into /app/answer.txt.",
    "environment/Dockerfile": "FROM debian:bookworm-slim\nWORKDIR /app\nRUN mkdir -p /app\n",
    "tests/test.sh": """#!/bin/bash
grep -qx done /app/answer.txt && echo 1 > /logs/verifier/reward.txt \
|| echo 0 > /logs/verifier/reward.txt
""",
}
SOLVE = "await environment.exec('echo done > /app/answer.txt')"

AGENT = """
import asyncio, json, os, subprocess, time
from harbor.agents.base import BaseAgent

class AgentHarness(BaseAgent):
    @staticmethod
    def name():
        return "test"

    def version(self):
        return "1"

    async def setup(self, environment):
        {setup}

    async def run(self, instruction, environment, context):
        context.metadata = {{}}
        {run}
"""


def why_not() -> str:
    """Why trials cannot run here; empty if they can."""
    if reason := why_not_bubblewrap():
        return f"the agent's sandbox needs bubblewrap: {reason}"
    if ENVIRONMENT == "docker":
        return ""
    from coevolve.benchmarks.harbor.namespace_support import why_unavailable

    return why_unavailable()


needs_trials = pytest.mark.skipif(bool(why_not()), reason=why_not())


def agent(run: str, setup: str = "pass") -> str:
    """The source of an agent with this body of `run`."""
    indented = "\n        ".join(run.strip().splitlines())
    return AGENT.format(run=indented, setup=setup)


def write_task(folder: Path, **files: str) -> Path:
    """A task in a folder; `files` replaces files of it, with `__` for a slash."""
    given = {name.replace("__", "/"): text for name, text in files.items()}
    for name, text in {**TASK, **given}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


class FakeModel:
    """A model for trials: answers with what a function returns, and counts."""

    def __init__(self, answer: Callable[[list[Any]], dict[str, Any]] | None = None) -> None:
        self._answer = answer
        self.begin()

    def begin(self, *, trial: int = 0) -> None:
        self.asked, self.usage = 0, Usage()
        self.calls: list[dict[str, Any]] = []
        self.requests: list[dict[str, Any]] = []

    def facts(self) -> dict[str, Any]:
        return {"name": "fake", "window": 100_000}

    def model(self, **request: Any) -> dict[str, Any]:
        self.asked += 1
        self.requests.append(request)
        usage = {"tokens_in": 10, "tokens_out": 5, "dollars": 0.001}
        self.usage += Usage(tokens_in=10, tokens_out=5, dollars=0.001)
        reply = {"text": "", "finish": "stop", "scores": None, "usage": usage}
        return {**reply, **(self._answer(request["messages"]) if self._answer else {})}


class NoHost:
    """A host that nobody may ask."""

    def ask(self, service: str, /, **payload: Any) -> Any:
        raise AssertionError(f"{service} was asked for")


@dataclass
class Tried:
    """What became of a trial."""

    score: float | None
    fault: Fault | None
    trace: dict[str, Any]
    folder: Path


class Bench:
    """A benchmark of tasks in a folder, for trials one at a time."""

    def __init__(self, folder: Path, *, model: FakeModel | None = None, **options: Any) -> None:
        self.folder = folder
        starts = folder / "starts"
        for name in ("one", "two"):
            (starts / name).mkdir(parents=True, exist_ok=True)
            (starts / name / "harness.py").write_text(agent(SOLVE) + f"# {name}\n")
        self.benchmark = HarborBenchmark(
            path=folder / "tasks",
            starts=[str(starts / "one"), str(starts / "two")],
            environment=ENVIRONMENT,
            environment_options=OPTIONS[ENVIRONMENT],
            trials_folder=folder / "trials",
            host=NoHost(),
            **options,
        )
        self.model = model or FakeModel()
        self.benchmark._client = self.model  # type: ignore[assignment]

    @contextmanager
    def harness(self, source: str, **limits: Any) -> Iterator[Harness]:
        """A candidate in its sandbox."""
        folder = self.folder / "candidate"
        folder.mkdir(exist_ok=True)
        (folder / "harness.py").write_text(source)
        with Harness(
            folder,
            isolation=find_isolation("bwrap"),
            limits=Limits(**{**self.benchmark.limits, **limits}),
            frame=self.benchmark.frame,
        ) as harness:
            yield harness

    def tried(self, source: str, task: str = "one", **limits: Any) -> Tried:
        """One trial of a candidate."""
        with self.harness(source, **limits) as harness:
            try:
                score = self.benchmark.run(harness, task, 0)
            except Exception as error:
                trace = attached_trace(error)
                shown = trace if isinstance(trace, dict) else {}
                return Tried(None, classify(error), shown, self.folder / "trials")
            finally:
                harness.end_trial()
        assert isinstance(score.trace, dict)
        return Tried(score.value, None, score.trace, self.folder / "trials")
