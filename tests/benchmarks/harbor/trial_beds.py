"""Trials through the engine's workers, and a way to find what is left of them."""

import asyncio
import contextlib
import secrets
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from coevolve.benchmarks.harbor.harbor_benchmark import HarborBenchmark
from coevolve.executors.local import LocalExecutor
from coevolve.executors.workload import Spec
from coevolve.search.trials import Result, Trial
from tests.benchmarks.harbor.task_boxes import mounts_of, processes_with, wait_for
from tests.benchmarks.harbor.trials import ENVIRONMENT, OPTIONS, SOLVE, agent, write_task
from tests.executors.projects import Contents

ASK = """
import coevolve_host
said = await coevolve_host.ask_async("llm", messages=[{"role": "user", "content": "hello"}])
"""


def new_token() -> str:
    """Digits that no other test uses; they are part of names, so that leftovers are found."""
    return f"{secrets.randbelow(10**9):09d}"


def waiting_command(token: str) -> str:
    """A command that runs until it is killed, and that is found by the token."""
    return f"sleep 86400.{token}"


def waiting_processes(token: str) -> list[int]:
    """The processes of `waiting_command`, not the shells that started them."""
    return processes_with("sleep\0" + f"86400.{token}")


def in_docker_with(token: str) -> list[str]:
    """Containers, networks, volumes and images with a token in their names."""
    if ENVIRONMENT != "docker":
        return []
    listings = (
        ("ps", "--all", "--format", "{{.Names}}"),
        ("network", "ls", "--format", "{{.Name}}"),
        ("volume", "ls", "--format", "{{.Name}}"),
        ("image", "ls", "--format", "{{.Repository}}"),
    )
    found: set[str] = set()
    for listing in listings:
        done = subprocess.run(
            ("docker", *listing), capture_output=True, text=True, check=True, timeout=60
        )
        found |= set(done.stdout.split())
    return sorted(name for name in found if token in name)


class Bed:
    """One task, an executor for it, and a model.

    Args:
        folder: Where everything is.
        cache: The cache folder, with the folders of environments.
        files: Files of the task that differ, as in `write_task`.
        options: Options of the environment.
    """

    def __init__(
        self, folder: Path, cache: Path, *, files: Mapping[str, str] | None = None, **options: Any
    ) -> None:
        self.token = new_token()
        self.task = f"task-{self.token}"
        write_task(folder / "tasks" / self.task, **(files or {}))
        for name in ("one", "two"):
            (folder / "starts" / name).mkdir(parents=True)
            (folder / "starts" / name / "harness.py").write_text(agent(SOLVE) + f"# {name}\n")
        (folder / "files").mkdir()
        self.contents = Contents(folder / "files")
        self.environments = cache / "harbor" / "environments"
        self.wait = f"\nawait environment.exec({waiting_command(self.token)!r})\n"
        self.asked = 0
        self.answer: Callable[[], dict[str, Any]] = lambda: {}
        self.services: Mapping[str, Callable[..., Any]] = {
            "model": self._model,
            "model_facts": self._facts,
        }
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
            trial_seconds=300,
            grace_seconds=60,
            services=self.services,
        )

    async def tried(
        self, source: str, during: Callable[[LocalExecutor, Trial], Any] | None = None
    ) -> Result:
        """One attempt; `during` is called when the agent waits."""
        candidate = self.contents.candidate(source.encode())
        trial = Trial(candidate=candidate.name, task=self.task)
        executor = self.executor()
        try:
            running = asyncio.ensure_future(executor.run(candidate, trial))
            if during is not None:
                await self.waits(running)
                await asyncio.to_thread(during, executor, trial)
            return await running
        finally:
            await executor.close()

    async def waits(self, running: asyncio.Future[Result]) -> None:
        """Wait until the agent's command runs in the environment."""
        while not waiting_processes(self.token):
            assert not running.done(), running.result()
            await asyncio.sleep(0.1)

    def sweep(self) -> None:
        """Remove leftovers, as the next session of a run does."""
        HarborBenchmark(**self.spec.arguments).sweep()

    def left(self) -> dict[str, object]:
        """What is left of environments: folders, mounts, processes, and things of Docker."""
        found: dict[str, object] = {
            "folders": [path.name for path in self.environments.glob("*")],
            "mounts": mounts_of(self.environments),
            "processes": waiting_processes(self.token),
            "docker": in_docker_with(self.token),
        }
        return {name: value for name, value in found.items() if value}

    def settled(self) -> dict[str, object]:
        """What is left after a while: processes that were killed may take a moment to end."""
        wait_for(lambda: not self.left(), 30)
        return self.left()


def namespace_of(process: int) -> list[int]:
    """All processes in the process namespace of one."""
    space = Path(f"/proc/{process}/ns/pid").readlink()
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (path / "ns" / "pid").readlink() == space:
                found.append(int(path.name))
    return found
