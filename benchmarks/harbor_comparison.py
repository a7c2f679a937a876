"""Harbor's Docker environment beside ours without Docker: rewards, seconds, memory.

The oracle solves each of our own tasks in both. Then environments of one task are started and
stopped, one at a time. Run as `make bench-harbor_comparison`, as root on Debian: it starts a
private Docker engine (`tools/docker_engine.py`). `--quick` takes three tasks and records nothing.
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import record
from process_memory import used_mb

os.environ.setdefault("HARBOR_TELEMETRY", "0")
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

from docker_engine import running_engine
from harbor import Task, Trial, TrialConfig
from harbor.environments.factory import EnvironmentFactory
from harbor.models.environment_type import EnvironmentType
from harbor.models.task.config import NetworkMode, NetworkPolicy
from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TaskConfig
from harbor.models.trial.paths import TrialPaths

from coevolve.benchmarks.harbor.harbor_benchmark import DOCKER, NAMESPACE

TASKS = Path(__file__).resolve().parent.parent / "examples" / "terminal_bench" / "tasks"
LIVES = 5
COMMANDS = 20
AT_ONCE = 4


def environments() -> dict[str, EnvironmentConfig]:
    """What is compared."""
    return {
        "namespace": EnvironmentConfig(import_path=NAMESPACE, kwargs={"root": "host"}),
        "docker (ours)": EnvironmentConfig(import_path=DOCKER),
        "docker (Harbor's)": EnvironmentConfig(type=EnvironmentType.DOCKER),
    }


async def solved(
    tasks: list[Path], environment: EnvironmentConfig, folder: Path
) -> dict[str, float | None]:
    """The rewards of the oracle, several tasks at once."""
    places = asyncio.Semaphore(AT_ONCE)

    async def one(task: Path) -> float | None:
        config = TrialConfig(
            task=TaskConfig(path=task),
            trials_dir=folder,
            agent=AgentConfig(name="oracle"),
            environment=environment,
        )
        async with places:
            result = await (await Trial.create(config)).run()
        verdict = result.verifier_result
        return (verdict.rewards or {}).get("reward") if verdict else None

    found = await asyncio.gather(*map(one, tasks))
    return {task.name: reward for task, reward in zip(tasks, found, strict=True)}


async def life(
    task: Path, config: EnvironmentConfig, folder: Path, times: dict[str, list[float]]
) -> None:
    """Start and stop one environment; its image or layer has been built."""
    paths = TrialPaths(folder / f"trial-{time.monotonic_ns()}")
    paths.mkdir()  # type: ignore[no-untyped-call]
    known = Task(task)
    one = EnvironmentFactory.create_environment_from_config(
        config=config,
        environment_dir=task / "environment",
        environment_name=task.name,
        session_id=f"comparison-{time.monotonic_ns()}__env",
        trial_paths=paths,
        task_env_config=known.config.environment,
        network_policy=NetworkPolicy(network_mode=NetworkMode.NO_NETWORK),
    )
    before = used_mb()
    begun = time.perf_counter()
    await one.start(force_build=False)
    times.setdefault("start s", []).append(time.perf_counter() - begun)
    try:
        for _ in range(COMMANDS):
            begun = time.perf_counter()
            await one.exec("true")
            times.setdefault("command s", []).append(time.perf_counter() - begun)
        times.setdefault("MB", []).append(used_mb() - before)
    finally:
        begun = time.perf_counter()
        await one.stop(delete=True)
        times.setdefault("stop s", []).append(time.perf_counter() - begun)


def main() -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="three tasks, nothing recorded")
    options = parser.parse_args()
    tasks = sorted(path.parent for path in TASKS.glob("*/task.toml"))
    tasks = tasks[:3] if options.quick else tasks
    costs: list[dict[str, Any]] = []
    with running_engine() as engine, tempfile.TemporaryDirectory() as name:
        os.environ.update(engine.variables)
        folder = Path(name)
        found = {
            kind: asyncio.run(solved(tasks, config, folder))
            for kind, config in environments().items()
        }
        rewards = [
            {"task": task.name, **{kind: found[kind][task.name] for kind in found}}
            for task in tasks
        ]
        for kind, config in environments().items():
            times: dict[str, list[float]] = {}
            for _ in range(2 if options.quick else LIVES):
                asyncio.run(life(tasks[0], config, folder, times))
            shown = {name: f"{statistics.median(times[name]):.2f}" for name in times}
            costs.append({"environment": kind, **shown})
    record.show("Rewards of the oracle", rewards)
    record.show("One environment without a network (medians)", costs)
    if not options.quick:
        record.save("harbor_comparison", {"rewards": rewards, "environments": costs})


if __name__ == "__main__":
    main()
