"""The expected cost of a run: from an earlier run, or from one trial of each start."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from coevolve.benchmarks.base import Benchmark, sealed_tasks
from coevolve.core.events import Event
from coevolve.core.outcomes import Usage
from coevolve.errors import StateError, StopRun, titled
from coevolve.runs.building import build_benchmark, build_executor, trial_gateway, workers
from coevolve.runs.config import RunConfig, read_config
from coevolve.runs.config_overrides import Override
from coevolve.runs.session import new_selector, past_of, run_folder
from coevolve.search.candidate import Candidate
from coevolve.search.journal import MemoryJournal
from coevolve.search.past_outcomes import given_outcomes
from coevolve.search.trials import Trial
from coevolve.store import RunStore
from coevolve.views.forecast import Forecast, forecast
from coevolve.views.spend import FREE, Costs, Range, costs_of_run

DOUBT = 2.0
"""The factor by which the cost of a single trial may differ from the mean, either way."""


def forecast_run(
    file: Path,
    *,
    like: Path | None = None,
    trial: bool = False,
    overrides: Sequence[Override] = (),
) -> Forecast:
    """The expected cost of the run that a TOML file describes; nothing is recorded.

    Args:
        file: The TOML file.
        like: The folder of an earlier run that tells what trials and proposals cost.
        trial: Whether to measure the cost on one trial of each starting harness.
        overrides: Other values in place of those in the file.
    """
    config = read_config(file, overrides=overrides)
    return forecast_config(
        file, config, build_benchmark(config, file.parent), like=like, trial=trial
    )


def forecast_config(
    file: Path,
    config: RunConfig,
    benchmark: Benchmark,
    *,
    like: Path | None = None,
    ended: Sequence[Path] = (),
    trial: bool = False,
) -> Forecast:
    """The expected cost of the run of a configuration, which is that of a TOML file.

    Args:
        file: The TOML file.
        config: Its configuration.
        benchmark: Its benchmark.
        like: The folder of an earlier run that tells what trials and proposals cost.
        ended: Folders of such runs, whose mean it is without `like`.
        trial: Whether to measure the cost on one trial of each starting harness.
    """
    past = _imports(run_folder(file, config)) or past_of(config, file.parent, benchmark)
    each: Costs = {}
    proposal: Costs = FREE if config.proposer.free else {}
    if like is not None:
        each, proposal = _costs(like)
        if not each:
            raise StateError(f"the run {like} has no outcomes yet, so --like cannot use it.")
    elif ended:
        trials, proposals = zip(*map(_costs, ended), strict=True)
        each, proposal = _mean(trials), proposal or _mean(proposals)
    if trial:
        each = measure_trial(config, file.parent, benchmark)
    return forecast(
        new_selector(config, benchmark.pool),
        config.settings(),
        starts=len(benchmark.starts),
        test_tasks=len(sealed_tasks(benchmark)),
        workers=workers(config),
        trial=each,
        proposal=proposal,
        measured=trial,
        given=sum(map(given_outcomes, past)),
    )


def _costs(folder: Path) -> tuple[Costs, Costs]:
    with RunStore.read(folder) as store:
        return costs_of_run(store)


def _mean(found: Sequence[Costs]) -> Costs:
    """The mean costs of several runs, of the measures that all of them have."""
    names = [name for name in found[0] if all(name in one for one in found)]
    return {
        name: Range(
            float(np.mean([one[name].low for one in found])),
            float(np.mean([one[name].high for one in found])),
        )
        for name in names
    }


def _imports(folder: Path) -> list[Event]:
    """What `coevolve import` has brought into a run that has not started yet."""
    if not (folder / "run.db").exists():
        return []
    with RunStore.read(folder) as store:
        events = list(store.events())
    if any(event["type"] == "session" for event in events):
        return []  # the forecast is that of a new run
    return [event for event in events if event["type"] == "imported"]


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
