"""What a trial and a proposal take: from an earlier run, or from a first try."""

import asyncio
from collections import defaultdict
from pathlib import Path

from coevolve.benchmarks.base import Benchmark
from coevolve.cli.forecast import MEASURES, Known, Range, usage_range
from coevolve.cli.outcomes import outcome_rows
from coevolve.core.events import Event
from coevolve.core.outcomes import Usage
from coevolve.errors import StateError, StopRun, titled
from coevolve.runs.building import build_executor, trial_gateway
from coevolve.runs.config import RunConfig
from coevolve.search.candidate import Candidate
from coevolve.search.journal import MemoryJournal
from coevolve.search.trials import Trial
from coevolve.store import RunStore

DOUBT = 2.0
"""A single trial of each starting harness may be off by this factor either way."""


def from_run(folder: Path) -> tuple[Known, Known]:
    """What a trial and a proposal took in a run: the range of its candidates' means."""
    spent: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in MEASURES}
    with RunStore.read(folder) as store:
        for row in outcome_rows(store.events()):
            spent["tokens"][row.candidate].append(row.tokens_in + row.tokens_out)
            spent["dollars"][row.candidate].append(row.dollars)
            spent["seconds"][row.candidate].append(row.seconds)
        proposals = _proposals(list(_proposing(store)))
    if not spent["tokens"]:
        raise StateError(f"the run {folder} has no outcomes yet to learn from.")
    trial = {name: usage_range(groups.values()) for name, groups in spent.items()}
    return {name: one for name, one in trial.items() if one is not None}, proposals


def from_trial(config: RunConfig, base: Path, benchmark: Benchmark) -> Known:
    """What one trial of each starting harness takes, on the task of middling cost."""
    used = asyncio.run(_try_out(config, base, benchmark))
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


async def _try_out(config: RunConfig, base: Path, benchmark: Benchmark) -> list[Usage]:
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
    """The task of middling cost, or the first."""
    costs = benchmark.pool.costs
    return 0 if costs is None else int(costs.argsort()[len(costs) // 2])


def _proposing(store: RunStore) -> list[tuple[Event, Event]]:
    """The beginning and the end of every proposal."""
    found, began = [], None
    for event in store.events():
        if event["type"] == "proposing":
            began = event
        elif event["type"] == "proposed" and began is not None:
            found.append((began, event))
            began = None
    return found


def _proposals(found: list[tuple[Event, Event]]) -> Known:
    if not found:
        return {}
    rows = [
        (end["usage"][0] + end["usage"][1], end["usage"][2], end["clock"] - begin["clock"])
        for begin, end in found
    ]
    return {
        name: Range(min(values), max(values))
        for name, values in zip(MEASURES, zip(*rows, strict=True), strict=True)
    }
