"""The cost of a trial, measured on one trial of each starting harness."""

import asyncio
from pathlib import Path

from coevolve.benchmarks.base import Benchmark
from coevolve.core.outcomes import Usage
from coevolve.errors import StopRun, titled
from coevolve.runs.building import build_executor, trial_gateway
from coevolve.runs.config import RunConfig
from coevolve.search.candidate import Candidate
from coevolve.search.journal import MemoryJournal
from coevolve.search.trials import Trial
from coevolve.views.spend import Costs, Range

DOUBT = 2.0
"""The factor by which the cost of a single trial may differ from the mean, either way."""


def measure_trial(config: RunConfig, base: Path, benchmark: Benchmark) -> Costs:
    """The cost of a trial, from one trial of each starting harness on a task of median cost."""
    used = asyncio.run(_run_trials(config, base, benchmark))
    scale = 1.0
    if benchmark.pool.costs is not None:
        scale = float(benchmark.pool.costs.mean()) / float(benchmark.pool.costs[_task(benchmark)])
    found: dict[str, list[float]] = {
        "tokens": [usage.tokens_in + usage.tokens_out for usage in used],
        "dollars": [usage.dollars for usage in used],
        "seconds": [usage.seconds for usage in used],
    }
    return {
        name: Range(scale * min(values) / DOUBT, scale * max(values) * DOUBT)
        for name, values in found.items()
    }


async def _run_trials(config: RunConfig, base: Path, benchmark: Benchmark) -> list[Usage]:
    journal = MemoryJournal()
    gateway = trial_gateway(config, base)
    executor = build_executor(
        config, base, benchmark, contents=journal, gateway=gateway, at_once=1
    )
    used = []
    try:
        for name, files in benchmark.starts.items():
            for data in files.values():
                journal.put(data)
            candidate = Candidate.of(files, name=name)
            prepared = await executor.prepare(candidate)
            state = None if prepared.state is None else journal.put(prepared.state.encode())
            task = benchmark.pool.tasks[_task(benchmark)]
            result = await executor.run(candidate, Trial(candidate=name, task=task, state=state))
            fault = prepared.fault or result.fault
            if fault is not None:
                reason = titled(fault.kind, fault.reason)
                raise StopRun(
                    f"the trial of {name!r} on {task!r} failed: {reason} {fault.advice}".rstrip()
                )
            used.append(result.usage)
    finally:
        await executor.close()
    return used


def _task(benchmark: Benchmark) -> int:
    """The task of median cost, or the first where tasks have no costs."""
    costs = benchmark.pool.costs
    return 0 if costs is None else int(costs.argsort()[len(costs) // 2])
