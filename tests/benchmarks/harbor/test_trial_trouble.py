"""Trials through the engine's workers, with trouble from outside; nothing is left behind."""

import asyncio
import contextlib
import functools
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coevolve.executors.failures import InfrastructureError
from coevolve.executors.local import LocalExecutor
from coevolve.executors.workload import Spec
from coevolve.search.trials import Blame, Result, Trial
from tests.benchmarks.harbor.trials import (
    ENVIRONMENT,
    OPTIONS,
    SOLVE,
    agent,
    needs_trials,
    write_task,
)
from tests.executors.projects import Contents

pytestmark = [
    needs_trials,
    pytest.mark.skipif(ENVIRONMENT != "namespace", reason="looks at the namespaces themselves"),
]
ASK = """
import coevolve_host
said = await coevolve_host.ask_async("llm", messages=[{"role": "user", "content": "hello"}])
"""
WAIT = "\nawait environment.exec('touch /app/waiting; sleep 600')"


class Bed:
    """One task, an executor for it, and a model."""

    def __init__(self, folder: Path, cache: Path, **options: Any) -> None:
        write_task(folder / "tasks" / "one")
        for name in ("one", "two"):
            (folder / "starts" / name).mkdir(parents=True)
            (folder / "starts" / name / "harness.py").write_text(agent(SOLVE) + f"# {name}\n")
        (folder / "files").mkdir()
        self.contents = Contents(folder / "files")
        self.environments = cache / "harbor" / "environments"
        self.asked = 0
        self.answer: Callable[[], dict[str, Any]] = lambda: {}
        self.spec = Spec(
            factory="coevolve.benchmarks.harbor.harbor_benchmark:HarborBenchmark",
            arguments={
                "path": str(folder / "tasks"),
                "starts": [str(folder / "starts" / name) for name in ("one", "two")],
                "environment": ENVIRONMENT,
                "environment_options": {**OPTIONS[ENVIRONMENT], **options},
                "trials_folder": str(folder / "trials"),
                "fresh_sandbox": False,
            },
            folder=folder,
        )

    async def _model(self, **payload: Any) -> dict[str, Any]:
        self.asked += 1
        usage = {"tokens_in": 7, "tokens_out": 3, "dollars": 0.0}
        reply = {"text": "hello", "finish": "stop", "scores": None, "usage": usage}
        return {**reply, "cached": False, **self.answer()}

    def _facts(self) -> dict[str, Any]:
        caps = {"trial_calls": None, "trial_tokens": None}
        return {"name": "fake", "window": 1000, "scores": False, "tools": True, **caps}

    def executor(self) -> LocalExecutor:
        return LocalExecutor(
            self.spec,
            contents=self.contents,
            isolation="bwrap",
            trial_seconds=120,
            grace_seconds=20,
            services={"model": self._model, "model_facts": self._facts},
        )

    async def tried(
        self, source: str, during: Callable[[LocalExecutor, Trial], Any] | None = None
    ) -> Result:
        """One attempt; `during` is called when the agent waits."""
        candidate = self.contents.candidate(source.encode())
        trial = Trial(candidate=candidate.name, task="one")
        executor = self.executor()
        try:
            running = asyncio.ensure_future(executor.run(candidate, trial))
            if during is not None:
                await self._waits(running)
                during(executor, trial)
            return await running
        finally:
            await executor.close()

    async def _waits(self, running: asyncio.Future[Result]) -> None:
        """Wait until the agent's command runs in the environment."""
        while not any("sleep\x00600" in line for line in command_lines().values()):
            assert not running.done(), running.result()
            await asyncio.sleep(0.1)

    def left(self) -> dict[str, object]:
        """What is left of environments: folders, mounts and processes."""
        mounts = Path("/proc/self/mounts").read_text()
        found: dict[str, object] = {
            "folders": [path.name for path in self.environments.glob("*")],
            "mounts": [line for line in mounts.splitlines() if str(self.environments) in line],
            "processes": [line for line in command_lines().values() if "sleep\x00600" in line],
        }
        return {name: value for name, value in found.items() if value}

    def settled(self) -> dict[str, object]:
        """What is left after a while: processes that were killed may take a moment to end."""
        deadline = time.monotonic() + 30
        while self.left() and time.monotonic() < deadline:
            time.sleep(0.1)
        return self.left()


def command_lines() -> dict[int, str]:
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found[int(path.parent.name)] = path.read_text(errors="replace")
    return found


def in_loop(test: Callable[..., Any]) -> Callable[..., None]:
    """Run a test that awaits."""

    @functools.wraps(test)
    def run(*given: Any, **named: Any) -> None:
        asyncio.run(test(*given, **named))

    return run


@pytest.fixture
def bed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bed:
    monkeypatch.setenv("COEVOLVE_CACHE", str(tmp_path / "cache"))
    return Bed(tmp_path, tmp_path / "cache")


@in_loop
async def test_a_trial_through_the_engine_counts_what_the_model_used(bed: Bed) -> None:
    result = await bed.tried(agent(ASK + SOLVE))
    assert (result.score, result.usage.tokens_in, bed.asked) == (1.0, 7, 1)
    assert bed.settled() == {}


@in_loop
async def test_a_model_that_fails_in_the_middle_is_not_the_agents_fault(bed: Bed) -> None:
    def down() -> dict[str, Any]:
        raise InfrastructureError("the service is down", shared=True)

    bed.answer = down
    result = await bed.tried(agent(SOLVE + ASK))
    assert result.fault is not None
    assert (result.fault.blame, result.fault.shared) == (Blame.INFRASTRUCTURE, True)
    assert bed.settled() == {}


@in_loop
async def test_a_worker_that_is_killed_leaves_nothing(bed: Bed) -> None:
    def kill(executor: LocalExecutor, trial: Trial) -> None:
        pid = executor.worker_of(trial)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)

    result = await bed.tried(agent(SOLVE + WAIT), kill)
    assert result.fault is not None
    assert (result.fault.kind, result.fault.retried) == ("worker-died", True)
    assert bed.settled() == {}


@in_loop
async def test_an_environment_that_is_killed_is_tried_again(bed: Bed) -> None:
    def kill(executor: LocalExecutor, trial: Trial) -> None:
        (waits,) = (pid for pid, line in command_lines().items() if line == "sleep\x00600\x00")
        space = Path(f"/proc/{waits}/ns/pid").readlink()
        for pid in command_lines():
            with contextlib.suppress(OSError):
                if Path(f"/proc/{pid}/ns/pid").readlink() == space:
                    os.kill(pid, signal.SIGKILL)

    result = await bed.tried(agent(SOLVE + WAIT), kill)
    assert result.fault is not None
    assert result.fault.retried, result.fault
    assert result.fault.score is None or result.fault.blame is Blame.DOUBTFUL
    from coevolve.benchmarks.harbor.namespace_leftovers import sweep_leftovers

    deadline = time.monotonic() + 30
    while bed.left() and time.monotonic() < deadline:
        sweep_leftovers(bed.environments)
        time.sleep(0.2)
    assert bed.left() == {}


@in_loop
async def test_a_run_that_is_closed_takes_its_environments_down(bed: Bed) -> None:
    candidate = bed.contents.candidate(agent(SOLVE + WAIT).encode())
    executor = bed.executor()
    running = asyncio.ensure_future(
        executor.run(candidate, Trial(candidate=candidate.name, task="one"))
    )
    await bed._waits(running)
    await executor.close()
    assert (await running).fault is not None
    assert bed.settled() == {}


@in_loop
async def test_an_agent_that_fills_the_disk_fails_by_its_own_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COEVOLVE_CACHE", str(tmp_path / "cache"))
    bed = Bed(tmp_path, tmp_path / "cache", disk_mb=40)
    fill = "await environment.exec('dd if=/dev/zero of=/app/full bs=1M count=200; true')"
    result = await bed.tried(agent(fill))
    assert (result.score == 0.0) or (
        result.fault is not None and result.fault.blame is Blame.CANDIDATE
    ), result
    assert bed.settled() == {}
