"""Trials on terminal tasks: what the sandbox costs beside Harbor's own run, and how many fit.

Run as `make bench-harbor_trials`, as root with bubblewrap and tmux; it takes some minutes. The
agents are the built-in harnesses, the tasks those of examples/terminal_bench, the model is
scripted and answers at once. `--quick` measures less and records nothing.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import record
from process_memory import used_mb

os.environ.update(HARBOR_TELEMETRY="0", LITELLM_LOCAL_MODEL_COST_MAP="True", OPENAI_API_KEY="none")
EXAMPLE = Path(__file__).parent.parent / "examples" / "terminal_bench"
sys.path.insert(0, str(EXAMPLE))

from coevolve.benchmarks.harbor.agent_files import built_in  # noqa: E402
from coevolve.benchmarks.harbor.harbor_benchmark import NAMESPACE  # noqa: E402
from coevolve.benchmarks.harbor.namespace_support import why_unavailable  # noqa: E402
from coevolve.executors.isolation.detection import why_not_bubblewrap  # noqa: E402
from coevolve.executors.local import LocalExecutor  # noqa: E402
from coevolve.executors.workload import Spec  # noqa: E402
from coevolve.models.gateway import Gateway  # noqa: E402
from coevolve.models.hosted import HostedProvider  # noqa: E402
from coevolve.search.candidate import Candidate, read_folder  # noqa: E402
from coevolve.search.trials import Trial as OwnTrial  # noqa: E402

TASKS = ("sort-downloads", "sales-totals", "permission-audit", "git-lost-commit")
AGENTS = ("terminus-2", "terminus-kira")
COUNTS = (1, 2, 4, 10)
WAYS = ("Harbor's own, in its process", "in the sandbox, a new one each", "in the sandbox, forked")


class Files:
    """The files of one candidate, where a worker finds them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, address: str) -> bytes:
        """Nothing is prepared."""
        raise KeyError(address)

    def checkout(self, candidate: Candidate) -> Path:
        """The folder of the candidate."""
        return self._folder


async def of_harbor(folder: Path, agent: str, task: str, url: str) -> dict[str, float]:
    """Seconds of the phases of Harbor's own trial, with the agent in this process."""
    from harbor import Trial, TrialConfig
    from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TaskConfig

    module = f"coevolve.benchmarks.harbor.harnesses.{agent.replace('-', '_')}.harness"
    trial = await Trial.create(
        TrialConfig(
            task=TaskConfig(path=EXAMPLE / "tasks" / task),
            trials_dir=folder,
            agent=AgentConfig(
                import_path=f"{module}:AgentHarness",
                model_name="openai/scripted",
                kwargs={"api_base": url, "record_terminal_session": False},
            ),
            environment=EnvironmentConfig(import_path=NAMESPACE, kwargs={"root": "host"}),
        )
    )
    result = await trial.run()
    return {phase: seconds(result, phase) for phase in ("agent_setup", "agent_execution")}


def seconds(result: Any, phase: str) -> float:
    """How long a phase of a trial took."""
    timing = getattr(result, phase)
    return float((timing.finished_at - timing.started_at).total_seconds())


def executor(folder: Path, agent: str, url: str, workers: int, *, fresh: bool) -> LocalExecutor:
    """Workers that run trials of one agent, with the model behind the gateway."""
    provider = HostedProvider("openai/scripted", base_url=url, window=131_072)
    return LocalExecutor(
        Spec(
            factory="coevolve.benchmarks.harbor.harbor_benchmark:HarborBenchmark",
            arguments={
                "path": str(EXAMPLE / "tasks"),
                "environment": "namespace",
                "environment_options": {"root": "host"},
                "fresh_sandbox": fresh,
                "trials_folder": str(folder / "trials"),
            },
        ),
        contents=Files(built_in()[agent]),
        workers=workers,
        isolation="bwrap",
        trial_seconds=300,
        grace_seconds=20,
        services=Gateway(provider).services(),
    )


async def sandboxed(folder: Path, agent: str, url: str, *, fresh: bool) -> list[dict[str, float]]:
    """Seconds of the phases of trials with the agent in its sandbox."""
    candidate = Candidate.of(read_folder(built_in()[agent]), name=agent)
    runs = executor(folder, agent, url, 1, fresh=fresh)
    found = []
    try:
        for task in TASKS:
            result = await runs.run(candidate, OwnTrial(candidate=agent, task=task))
            assert result.fault is None, result.fault
            trace = json.loads(result.trace or "{}")["trace"]
            found.append(
                {phase: trace["seconds"][phase] for phase in ("agent_setup", "agent_execution")}
            )
    finally:
        await runs.close()
    return found


async def per_minute(
    folder: Path, url: str, workers: int, trials: int, *, fresh: bool
) -> dict[str, Any]:
    """How many trials end per minute with so many workers, and the memory of each."""
    agent = "terminus-2"
    candidate = Candidate.of(read_folder(built_in()[agent]), name=agent)
    before = used_mb()
    runs = executor(folder, agent, url, workers, fresh=fresh)
    watching = asyncio.create_task(most_mb())
    try:
        begin = time.perf_counter()
        results = await asyncio.gather(
            *(
                runs.run(candidate, OwnTrial(candidate=agent, task=TASKS[n % 4], trial=n // 4))
                for n in range(trials)
            )
        )
        took = time.perf_counter() - begin
        watching.cancel()
        most = await watching
    finally:
        await runs.close()
    return {
        "sandbox": "a new one each" if fresh else "forked",
        "at once": workers,
        "trials": trials,
        "solved": sum(result.score == 1.0 for result in results),
        "trials/min": f"{60 * trials / took:.1f}",
        "MB per trial": f"{(most - before) / workers:.0f}",
    }


async def most_mb() -> float:
    """The most memory that all processes below this one had, until the task is cancelled."""
    most = 0.0
    try:
        while True:
            most = max(most, used_mb())
            await asyncio.sleep(1.0)
    except asyncio.CancelledError:
        return most


async def measured(folder: Path, *, quick: bool) -> dict[str, Sequence[dict[str, Any]]]:
    """Both tables."""
    from scripted_model import ScriptedModel  # type: ignore[import-not-found]

    phases, counts = [], []
    with ScriptedModel() as server:
        for agent in AGENTS[:1] if quick else AGENTS:
            await of_harbor(folder, agent, TASKS[0], server.url)  # imports, layers
            for way in WAYS:
                print(f"{agent}: {way}", file=sys.stderr)
                if way == WAYS[0]:
                    found = [await of_harbor(folder, agent, task, server.url) for task in TASKS]
                else:
                    found = await sandboxed(folder, agent, server.url, fresh=way == WAYS[1])
                phases.append(
                    {
                        "agent": agent,
                        "run": way,
                        "set-up s": f"{_median(found, 'agent_setup'):.2f}",
                        "agent s": f"{_median(found, 'agent_execution'):.2f}",
                    }
                )
        for fresh in (True, False):
            for workers in COUNTS[:2] if quick else COUNTS:
                print(f"trials per minute, {workers} at once", file=sys.stderr)
                trials = 4 if quick else max(8, 2 * workers)
                counts.append(await per_minute(folder, server.url, workers, trials, fresh=fresh))
    return {"phases": phases, "counts": counts}


def _median(found: list[dict[str, float]], phase: str) -> float:
    return statistics.median(one[phase] for one in found)


def main() -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="measure less, record nothing")
    options = parser.parse_args()
    if reason := why_not_bubblewrap() or why_unavailable():
        print(f"not measured: {reason}")
        return
    with tempfile.TemporaryDirectory() as name:
        os.environ["COEVOLVE_CACHE"] = str(Path(name) / "cache")
        tables = asyncio.run(measured(Path(name), quick=options.quick))
    record.show("Phases of a trial, medians over four tasks", tables["phases"])
    record.show("Trials of terminus-2 per minute", tables["counts"])
    if not options.quick:
        record.save("harbor_trials", tables)


if __name__ == "__main__":
    main()
