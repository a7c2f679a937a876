"""Harbor's tasks as a benchmark: each trial is one of Harbor's own, with the agent sandboxed."""

import asyncio
import contextlib
import os
import shutil
import tempfile
import uuid
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any

from coevolve.benchmarks.base import read_named_starts
from coevolve.benchmarks.harbor.agent_files import agent_briefing, built_in, frame_source
from coevolve.benchmarks.harbor.smoke_trial import check_agent
from coevolve.benchmarks.harbor.task_folders import (
    TaskFolder,
    downloaded,
    matches,
    past_seconds,
    read_tasks_folder,
    selected,
)
from coevolve.core.pool import Pool
from coevolve.errors import ConfigError, UnknownTaskError, nearest
from coevolve.executors.isolation import Harness
from coevolve.executors.workload import Host, Score, attach_trace
from coevolve.models.model_client import ModelClient
from coevolve.search.candidate import Files
from coevolve.search.leaks import Secret

os.environ.setdefault("HARBOR_TELEMETRY", "0")
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

DEFAULT_STARTS = ("terminus-2", "terminus-kira")
"""The starting harnesses of the paper."""
NAMESPACE = "coevolve.benchmarks.harbor.namespace_environment:NamespaceEnvironment"
"""The environment without Docker."""
DOCKER = "coevolve.benchmarks.harbor.docker_environment:GuardedDockerEnvironment"
"""Harbor's Docker environment, for agents that are not trusted."""
SPARE_SECONDS = 120
"""Added to the longest time of a trial, for what Harbor does between its phases."""


class HarborBenchmark:
    """Tasks of Terminal-Bench, or any other of Harbor's data sets.

    Harbor's own `Trial` starts the environment, runs the agent and the verifier. The agent is the
    candidate's and runs in our sandbox. A pipe carries its commands and its model calls.

    Args:
        path: A folder of tasks.
        dataset: Instead, the name of a data set, downloaded by Harbor.
        version: The version of a data set, if its name needs one.
        registry: A registry file, instead of Harbor's registry.
        tasks: Patterns of tasks to use; all by default.
        exclude: Patterns of tasks to leave out.
        starts: Names of built-in harnesses, or folders with a `harness.py`.
        environment: A type of Harbor's (`docker`, `daytona`, `modal`, ...), `namespace` for ours
            without Docker, or `module:Class`.
        environment_options: Arguments of the environment.
        agent_options: Arguments of the agent, such as `max_turns`. An agent gets only those that
            it accepts.
        agent_timeout_multiplier: Factor on the time limit of the agent.
        verifier_timeout_multiplier: Factor on the time limit of the verifier.
        build_timeout_multiplier: Factor on the time limit to build and start an environment.
        setup_timeout_multiplier: Factor on the time limit of the agent's setup.
        services: Patterns of tasks whose tests need a program that the agent has started.
        reward: The name of the reward that counts, if a task has several.
        costs: Expected cost of each task; by default the time limit of its agent.
        costs_from: A folder of earlier trials, whose mean times are the costs of their tasks.
        fresh_sandbox: Whether every trial imports the candidate again; otherwise its process is
            forked from one that has imported it.
        trials_folder: Where to keep the folders of trials; by default they are removed.
        host: Gives access to the model of the run.
    """

    frame: str
    grace_seconds = 60.0

    def __init__(
        self,
        *,
        path: str | Path | None = None,
        dataset: str | None = None,
        version: str | None = None,
        registry: str | Path | None = None,
        tasks: Sequence[str] = (),
        exclude: Sequence[str] = (),
        starts: Sequence[str] = DEFAULT_STARTS,
        environment: str = "docker",
        environment_options: Mapping[str, Any] | None = None,
        agent_options: Mapping[str, Any] | None = None,
        agent_timeout_multiplier: float = 1.0,
        verifier_timeout_multiplier: float = 1.0,
        build_timeout_multiplier: float = 1.0,
        setup_timeout_multiplier: float = 1.0,
        services: Sequence[str] = (),
        reward: str = "reward",
        costs: Mapping[str, float] | None = None,
        costs_from: str | Path | None = None,
        fresh_sandbox: bool = True,
        trials_folder: str | Path | None = None,
        host: Host | None = None,
    ) -> None:
        if (path is None) == (dataset is None):
            raise ConfigError("set one of `path` and `dataset`.")
        folder = (
            Path(path)
            if path is not None
            else downloaded(str(dataset), version, None if registry is None else Path(registry))
        )
        self.tasks = selected(read_tasks_folder(folder), tasks, exclude)
        self.starts: dict[str, Files] = read_named_starts(starts, built_in())
        known = {name: task.agent_seconds for name, task in self.tasks.items()}
        for name in costs or {}:
            if name not in self.tasks:
                raise ConfigError(
                    f"`costs` names {name!r}, which is not a task.{nearest(name, self.tasks)}"
                )
        past = {} if costs_from is None else past_seconds(Path(costs_from))
        known |= {name: cost for name, cost in past.items() if name in self.tasks}
        self.pool = Pool(list(self.tasks), costs={**known, **(costs or {})})
        self.frame = frame_source()
        self._multipliers = {
            "agent_timeout_multiplier": agent_timeout_multiplier,
            "verifier_timeout_multiplier": verifier_timeout_multiplier,
            "environment_build_timeout_multiplier": build_timeout_multiplier,
            "agent_setup_timeout_multiplier": setup_timeout_multiplier,
        }
        longest = max(
            task.seconds(
                agent_timeout_multiplier,
                verifier_timeout_multiplier,
                build_timeout_multiplier,
                setup_timeout_multiplier,
            )
            for task in self.tasks.values()
        )
        self.trial_seconds = longest + SPARE_SECONDS
        agent_seconds = max(task.agent_seconds for task in self.tasks.values())
        self.limits = {
            "asks": 1_000_000,
            "seconds": agent_seconds * agent_timeout_multiplier + SPARE_SECONDS,
            "cpu_seconds": agent_seconds * agent_timeout_multiplier + SPARE_SECONDS,
            "startup_seconds": 60,
            "answer_mb": 32,
            "memory_mb": 4096,
            "processes": 64,
        }
        self._environment, self._environment_options = environment, environment_options or {}
        self._agent_options = {"record_terminal_session": False, **(agent_options or {})}
        self._reward, self._services = reward, tuple(services)
        self.fresh_sandbox = fresh_sandbox
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="coevolve-agent")
        self._kept = None if trials_folder is None else Path(trials_folder)
        self._client = None if host is None else ModelClient(host)

    @property
    def briefing(self) -> str:
        """What proposers should know about these harnesses."""
        return agent_briefing(self.tasks.values(), self._multipliers["agent_timeout_multiplier"])

    def secrets(self) -> dict[str, Secret]:
        """The instructions of the tasks, which no candidate may contain."""
        return {name: Secret(text=task.instruction) for name, task in self.tasks.items()}

    def fingerprint(self) -> dict[str, Path]:
        """What can alter scores: the folder of every task."""
        return {f"tasks/{name}": task.folder for name, task in self.tasks.items()}

    def check(self, harness: Harness) -> None:
        """Import the agent and let it work with a stub environment and a stub model."""
        check_agent(harness, self._agent_options)

    def prepare(self, harness: Harness) -> None:
        """Nothing is shared by trials."""

    def run(self, harness: Harness, task: str, trial: int) -> Score:
        """One of Harbor's trials."""
        if task not in self.tasks:
            raise UnknownTaskError(f"there is no task {task!r}.{nearest(task, self.tasks)}")
        if self._client is None:
            raise ConfigError("the benchmark needs a `host` to reach the model; pass one.")
        self._client.begin(trial=trial)
        with self._folder() as folder:
            return self._tried(harness, self.tasks[task], folder)

    def close(self) -> None:
        """End the thread that calls candidates, and with it their sandboxes."""
        self._thread.shutdown(wait=False)

    def sweep(self) -> None:
        """Remove what killed sessions left: environments and folders."""
        from coevolve.benchmarks.harbor.trial_leftovers import sweep_leftovers, sweep_trials

        folder = self._environment_options.get("folder")
        sweep_leftovers(self._environment_kind, None if folder is None else Path(folder))
        if self._kept is not None:
            sweep_trials(self._kept)

    @property
    def _environment_kind(self) -> str:
        own = {"namespace": NAMESPACE, "docker": DOCKER}
        return own.get(self._environment, self._environment)

    @contextlib.contextmanager
    def _folder(self) -> Any:
        """A folder for Harbor's trials, removed afterwards unless they are kept."""
        if self._kept is not None:
            self._kept.mkdir(parents=True, exist_ok=True)
            yield self._kept
            return
        folder = Path(tempfile.mkdtemp(prefix="coevolve-trials-"))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _tried(self, harness: Harness, task: TaskFolder, folder: Path) -> Score:
        from coevolve.benchmarks.harbor.agent_shim import (
            AgentSession,
            close_session,
            open_session,
        )
        from coevolve.benchmarks.harbor.trajectories import trial_trace
        from coevolve.benchmarks.harbor.trial_faults import check_model, ended_by, score_of
        from coevolve.benchmarks.harbor.trial_leftovers import owned_prefix

        assert self._client is not None
        name = f"{owned_prefix()}-{task.name[:32]}-{uuid.uuid4().hex[:8]}".lower()
        session = AgentSession(
            harness=harness,
            model=self._client,
            facts=self._facts(task),
            options=self._agent_options,
            thread=self._thread,
        )
        open_session(name, session)
        try:
            result = completed(self._trial(name, task, folder))
        finally:
            close_session(name)
        trace = trial_trace(result, session, folder / name)
        try:
            if ended_by(result, "AgentTimeoutError") and session.waited:
                check_model(session.model, session.waited)
            value = score_of(result, session.error, self._reward, broken=session.broken)
        except Exception as error:
            attach_trace(error, trace)
            raise
        return Score(value=value, usage=self._client.usage, trace=trace)

    async def _trial(self, name: str, task: TaskFolder, folder: Path) -> Any:
        from harbor import Trial, TrialConfig
        from harbor.models.trial.config import (
            AgentConfig,
            EnvironmentConfig,
            TaskConfig,
            VerifierConfig,
        )

        kind = self._environment_kind
        place: dict[str, Any] = {"import_path": kind} if ":" in kind else {"type": kind}
        multipliers: dict[str, Any] = self._multipliers
        config = TrialConfig(
            task=TaskConfig(path=task.folder),
            trial_name=name,
            trials_dir=folder,
            agent=AgentConfig(
                import_path="coevolve.benchmarks.harbor.agent_shim:SandboxedAgent",
                model_name=self._model_name,
                kwargs={"session": name},
            ),
            environment=EnvironmentConfig(**place, kwargs=dict(self._environment_options)),
            verifier=VerifierConfig(
                import_path="coevolve.benchmarks.harbor.reward_guard:GuardedVerifier",
                kwargs={"end_processes": not matches(task.name, self._services)},
            ),
            **multipliers,
        )
        trial = await Trial.create(config)
        return await trial.run()

    @cached_property
    def _model_facts(self) -> Mapping[str, Any]:
        assert self._client is not None
        return self._client.facts()

    @property
    def _model_name(self) -> str:
        return f"openai/{self._model_facts['name'] or 'model'}"

    def _facts(self, task: TaskFolder) -> dict[str, Any]:
        """What the agent may know: the task's name would be a hint, so it is left out."""
        return {
            "task": "task",
            "user": None,
            "environment": {},
            "model": self._model_name,
            "window": self._model_facts["window"],
        }


def completed(work: Coroutine[Any, Any, Any]) -> Any:
    """Run a trial to its end; if this process is interrupted, the trial first cleans up.

    `asyncio.run` would cancel everything at once, also what an environment needs to stop.
    """
    with asyncio.Runner() as runner:
        task = runner.get_loop().create_task(work)
        try:
            return runner.get_loop().run_until_complete(task)
        except BaseException:
            if not task.done():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    runner.get_loop().run_until_complete(task)
            raise
