"""What tests of the terminal tasks share: their folder, the scripted model, and Harbor jobs."""

import importlib
import shutil
import sys
from pathlib import Path
from typing import Any

from harbor import Job, JobConfig
from harbor.models.job.config import DatasetConfig
from harbor.models.trial.config import AgentConfig, EnvironmentConfig

from coevolve.benchmarks.harbor.harbor_benchmark import DOCKER, NAMESPACE
from tests.benchmarks.harbor.trials import ENVIRONMENT
from tests.benchmarks.harbor.trials import why_not as why_no_environment

EXAMPLE = Path(__file__).parents[3] / "examples" / "terminal_bench"
TASKS = sorted(path for path in (EXAMPLE / "tasks").iterdir() if path.is_dir())
HARNESSES = ("terminus_2", "terminus_kira", "wait_after", "environment_snapshot")
PROGRAMS = ("git", "make", "ps", "python3", "sqlite3", "tmux")


def example_module(name: str) -> Any:
    """A module of the example, which is not part of the package."""
    if str(EXAMPLE) not in sys.path:
        sys.path.insert(0, str(EXAMPLE))
    return importlib.import_module(name)


def why_not() -> str:
    """Why tasks cannot run here, empty if they can; without Docker on the machine's programs."""
    needed = ("docker",) if ENVIRONMENT == "docker" else PROGRAMS
    missing = [name for name in needed if shutil.which(name) is None]
    return f"{', '.join(missing)} missing" if missing else why_no_environment()


def environment_config(folder: Path) -> EnvironmentConfig:
    """The environment of the tests, which `make test-docker` changes."""
    if ENVIRONMENT == "docker":
        return EnvironmentConfig(import_path=DOCKER)
    options = {"root": "host", "folder": str(folder / "environments")}
    return EnvironmentConfig(import_path=NAMESPACE, kwargs=options)


def harness(name: str, url: str, seconds: float | None = None) -> AgentConfig:
    """A starting harness that asks the model at an address, with a time budget."""
    return AgentConfig(
        import_path=f"coevolve.benchmarks.harbor.harnesses.{name}.harness:AgentHarness",
        model_name="openai/scripted",
        override_timeout_sec=seconds,
        kwargs={"api_base": url, "record_terminal_session": False},
    )


async def rewards(
    folder: Path, agents: list[AgentConfig], tasks: list[str], concurrent: int = 6
) -> dict[str, dict[str, float | None]]:
    """Run Harbor's own job; the reward of each task by the agent's name."""
    config = JobConfig(
        job_name="job",
        jobs_dir=folder / "jobs",
        n_concurrent_trials=concurrent,
        quiet=True,
        agents=agents,
        environment=environment_config(folder),
        datasets=[DatasetConfig(path=EXAMPLE / "tasks", task_names=tasks)],
    )
    result = await (await Job.create(config)).run()
    found: dict[str, dict[str, float | None]] = {}
    for trial in result.trial_results:
        verdict = trial.verifier_result
        reward = (verdict.rewards or {}).get("reward") if verdict else None
        found.setdefault(trial.agent_info.name, {})[trial.task_name.split("/")[-1]] = reward
    return found
